//! The environment inside: an allowlist, never a blocklist.

use super::sys;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

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
pub fn base<'a>(outer: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = outer
        .into_iter()
        .filter(|(name, _)| passes(name))
        .map(|(name, value)| (name.to_os_string(), value.to_os_string()))
        .collect();
    fix(&mut env);
    env
}

/// [`base`] of this process's own environment. Only what passes is copied, so that the operator's keys are nowhere
/// in the memory that PID 1 starts from.
pub fn base_of_process() -> Vec<(OsString, OsString)> {
    let mut env = Vec::new();
    sys::each_variable(|variable| {
        if let Some((name, value)) = split(variable)
            && passes(name)
        {
            env.push((name.to_os_string(), value.to_os_string()));
        }
    });
    fix(&mut env);
    env
}

/// Whether this process has a variable `name` that is not empty. Copies nothing.
pub fn process_has(name: &str) -> bool {
    let mut found = false;
    sys::each_variable(|variable| {
        found |= split(variable).is_some_and(|(n, value)| n == name && !value.is_empty());
    });
    found
}

fn split(variable: &[u8]) -> Option<(&OsStr, &OsStr)> {
    let at = variable.iter().position(|b| *b == b'=')?;
    let (name, value) = variable.split_at(at);
    Some((OsStr::from_bytes(name), OsStr::from_bytes(value.get(1..).unwrap_or_default())))
}

/// Sets the variables that are the same in every run.
fn fix(env: &mut Vec<(OsString, OsString)>) {
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
        set(env, name, value);
    }
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

/// `HOME`, if it is absolute. The C library's table of users is not asked: a static program would have to load modules for it.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        base(pairs.iter().map(|(n, v)| (OsStr::new(n), OsStr::new(v))))
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
