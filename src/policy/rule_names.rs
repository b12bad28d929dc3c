//! Every rule's name, in one list, so that a configuration can only name rules that there are.

/// The names, in order. A decision carries one of them.
pub const RULES: &[&str] = &[
    "agent.bypass",
    "agent.denied",
    "agent.secret",
    "agent.spawn",
    "audit.unrecorded",
    "command.asked",
    "command.denied",
    "destroy.cloud",
    "destroy.cluster",
    "destroy.container",
    "destroy.data",
    "destroy.disk",
    "destroy.git",
    "destroy.infrastructure",
    "destroy.machine",
    "destroy.mode",
    "destroy.move",
    "destroy.outside",
    "destroy.overwrite",
    "destroy.power",
    "destroy.processes",
    "destroy.repository",
    "destroy.secret",
    "destroy.tree",
    "destroy.unknown",
    "exfil.address",
    "exfil.code",
    "exfil.copy",
    "exfil.dns",
    "exfil.file",
    "exfil.git",
    "exfil.mail",
    "exfil.publish",
    "exfil.secret",
    "exfil.socket",
    "exfil.ssh",
    "exfil.unknown",
    "guard.binary",
    "guard.client",
    "guard.config",
    "guard.files",
    "guard.kill",
    "guard.sandbox",
    "guard.switch",
    "input.malformed",
    "input.nul",
    "mcp.bound",
    "mcp.consequence",
    "mcp.public",
    "mcp.secret",
    "mcp.sql",
    "net.socket",
    "net.transfer",
    "net.tunnel",
    "persist.access",
    "persist.account",
    "persist.config",
    "persist.copy",
    "persist.cron",
    "persist.editor",
    "persist.extract",
    "persist.gitconfig",
    "persist.hook",
    "persist.mode",
    "persist.packages",
    "persist.remote",
    "persist.schedule",
    "persist.script",
    "persist.service",
    "persist.setuid",
    "persist.system",
    "protected.write",
    "publish.image",
    "publish.package",
    "publish.release",
    "restricted",
    "result.unsealed",
    "rule_of_two.third",
    "rule_of_two.unknown",
    "run.container",
    "run.database",
    "run.elsewhere",
    "run.fetched",
    "run.gitconfig",
    "run.hidden",
    "run.preload",
    "run.remote",
    "run.root",
    "run.unknown",
    "secret.env",
    "secret.hidden",
    "secret.read",
    "secret.use",
    "session.needs_human",
    "shell.bound",
    "shell.choices",
    "shell.powershell",
    "shell.syntax",
    "tool.argument",
    "tool.asked",
    "tool.denied",
    "web.browser",
    "web.collector",
    "web.data",
    "web.denied",
    "web.jess_fetch",
    "web.literal",
    "web.lookalike",
    "web.loopback",
    "web.metadata",
    "web.nested",
    "web.port",
    "web.private",
    "web.scheme",
    "web.scope",
    "web.secret",
    "web.unreadable",
    "web.userinfo",
    "write.outside",
];

/// Most names that are offered instead of an unknown one.
const NEAREST: usize = 3;

/// Whether `pattern` names a rule: by its whole name, or by its start and a `*`.
pub fn known(pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => RULES.iter().any(|r| r.starts_with(start)),
        None => RULES.contains(&pattern),
    }
}

/// The known names that are most like `name`, the likest first, at most three. Empty when none is like it.
pub fn nearest(name: &str) -> Vec<&'static str> {
    let name: String = name.trim_end_matches('*').chars().take(64).collect::<String>().to_lowercase();
    let group = |n: &str| n.split('.').next().unwrap_or_default().to_owned();
    let mut all: Vec<(usize, &str)> = RULES
        .iter()
        .map(|rule| {
            let apart = strsim::damerau_levenshtein(&name, rule);
            // Of two that are as far away, the one of the same group is meant.
            (apart * 2 + usize::from(group(&name) != group(rule)), *rule)
        })
        .filter(|(apart, rule)| *apart <= 10 || group(&name) == group(rule))
        .collect();
    all.sort_unstable();
    all.into_iter().take(NEAREST).map(|(_, rule)| rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Literals of the policy's sources that look like the name of a rule and are none.
    const OTHERS: &[&str] = &["net.connect"];

    fn sources(dir: &Path, out: &mut String) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            // Lists of files there, no rules.
            if path.is_dir() && path.file_name().is_some_and(|n| n != "paths") {
                sources(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("rule_names.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                out.push_str(text.split("#[cfg(test)]\nmod tests {").next().unwrap());
            }
        }
    }

    #[test]
    fn every_rule_that_the_policy_gives_is_on_the_list_and_no_other() {
        let mut text = String::new();
        for dir in ["src/policy", "src/hook"] {
            sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(dir), &mut text);
        }
        let groups: BTreeSet<&str> = RULES.iter().filter_map(|r| Some(r.split_once('.')?.0)).collect();
        let literal = regex::Regex::new(r#""([a-z_]+)\.([a-z_]+)""#).unwrap();
        let used: BTreeSet<String> = literal
            .captures_iter(&text)
            .filter(|c| groups.contains(&c[1]))
            .map(|c| format!("{}.{}", &c[1], &c[2]))
            .filter(|name| !OTHERS.contains(&name.as_str()))
            .collect();
        let listed: BTreeSet<String> =
            RULES.iter().filter(|r| r.contains('.')).map(|r| (*r).to_owned()).collect();
        assert_eq!(used, listed);
        // What is given directly has a group that is known.
        let given = regex::Regex::new(r#"(?:deny|ask)\(\s*"([a-z_]+(?:\.[a-z_]+)?)""#).unwrap();
        let unknown: Vec<&str> = given
            .captures_iter(&text)
            .filter_map(|c| c.get(1))
            .map(|m| m.as_str())
            .filter(|n| !known(n))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        assert!(RULES.is_sorted(), "in order");
    }

    #[test]
    fn names_and_starts_of_names_are_known_and_the_nearest_are_offered() {
        for name in ["destroy.git", "destroy.*", "*", "web.d*", "restricted"] {
            assert!(known(name), "{name}");
        }
        for name in ["destroy.gti", "destory.*", "git.*", "destroy", "", "*.git", "Destroy.git"] {
            assert!(!known(name), "{name}");
        }
        assert_eq!(nearest("destroy.gti").first(), Some(&"destroy.git"));
        assert_eq!(nearest("Secret.Raed").first(), Some(&"secret.read"));
        assert_eq!(nearest("web.dta").first(), Some(&"web.data"));
        assert!(nearest("destory.git*").contains(&"destroy.git"));
        assert!(nearest("nothing_that_is_like_any_of_them").is_empty());
        assert!(nearest(&"x".repeat(1 << 20)).is_empty());
    }
}
