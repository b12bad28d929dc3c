//! The environment inside: an allowlist, never a blocklist.

use std::ffi::{OsStr, OsString};

/// Where the private, empty HOME is inside.
pub const HOME: &str = "/home/jess";
/// The search path inside.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Variables that pass from the operator's environment: locale, terminal, time zone and build-independent hints.
///
/// Start of the list: RAPTOR's 55 names, less what identifies the operator's session (DISPLAY, XDG_RUNTIME_DIR,
/// HOSTNAME, LOGNAME, PWD, SHELL), its own control variables, and the marks that its helper scripts take for trust.
const PASSED: &[&str] =
    &["CI", "COLORTERM", "DEBIAN_FRONTEND", "LANG", "LANGUAGE", "NO_COLOR", "PYTHONUNBUFFERED", "TERM", "TZ"];

/// The environment that every run starts from: allowlisted variables of `outer`, then the fixed ones.
pub fn base(outer: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = outer.into_iter().filter(|(name, _)| passes(name)).collect();
    for (name, value) in [
        ("HOME", HOME),
        ("PATH", PATH),
        ("USER", "jess"),
        ("LOGNAME", "jess"),
        ("SHELL", "/bin/sh"),
        ("TMPDIR", "/tmp"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ASKPASS", "true"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
    ] {
        set(&mut env, name, value);
    }
    env
}

/// Sets `name` to `value`, replacing an earlier value.
pub fn set(env: &mut Vec<(OsString, OsString)>, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
    let name = name.as_ref();
    env.retain(|(n, _)| n != name);
    env.push((name.to_os_string(), value.as_ref().to_os_string()));
}

fn passes(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| PASSED.contains(&name) || name.starts_with("LC_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        base(pairs.iter().map(|(n, v)| (n.into(), v.into())))
            .into_iter()
            .map(|(n, v)| (n.into_string().unwrap(), v.into_string().unwrap()))
            .collect()
    }

    #[test]
    fn keys_sockets_loaders_and_trust_marks_stay_outside() {
        let env = built(&[
            ("ANTHROPIC_API_KEY", "k"),
            ("AWS_SECRET_ACCESS_KEY", "k"),
            ("SSH_AUTH_SOCK", "/s"),
            ("LD_PRELOAD", "/x.so"),
            ("_RAPTOR_TRUSTED", "1"),
            ("CLAUDECODE", "1"),
            ("BASH_FUNC_x%%", "() { :; }"),
            ("LC_ALL", "C.UTF-8"),
            ("TERM", "xterm"),
        ]);
        let names: Vec<&str> = env.iter().map(|(n, _)| n.as_str()).collect();
        for gone in [
            "ANTHROPIC_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "SSH_AUTH_SOCK",
            "LD_PRELOAD",
            "_RAPTOR_TRUSTED",
            "CLAUDECODE",
            "BASH_FUNC_x%%",
        ] {
            assert!(!names.contains(&gone), "{gone} passed");
        }
        assert!(names.contains(&"LC_ALL") && names.contains(&"TERM"));
    }

    #[test]
    fn home_and_path_are_the_sandbox_s_own() {
        let env = built(&[("HOME", "/home/operator"), ("PATH", "/home/operator/bin:/usr/bin")]);
        assert!(env.contains(&("HOME".into(), HOME.into())));
        assert!(env.contains(&("PATH".into(), PATH.into())));
        assert_eq!(env.iter().filter(|(n, _)| n == "HOME").count(), 1);
    }
}
