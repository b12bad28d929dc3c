//! What the operator, the machine and a project add to the built-in policy.
//!
//! The built-in policy stands without any of it. Lists under `*_except`, `private` and `off` open something up: only the
//! operator's and the machine's files may hold them (see [`crate::config`]), and none of them opens [`core()`](fn@core).

use super::restricted::Restricted;
use super::shell::glob_matches;
use super::{Decision, Verdict, paths};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Additions and exceptions. The default adds nothing.
#[derive(Debug, Clone, Default)]
pub struct Custom {
    /// More paths that must not be read.
    pub secret: Patterns,
    /// Paths that may be read although the built-in policy takes them for secrets.
    pub secret_except: Patterns,
    /// More paths that must not be written.
    pub protected: Patterns,
    /// Paths that may be written although the built-in policy protects them.
    pub protected_except: Patterns,
    /// Reads must lie below one path of each list. No list: anywhere.
    pub read: Vec<Vec<PathBuf>>,
    /// Writes must lie below one path of each list. No list: anywhere.
    pub write: Vec<Vec<PathBuf>>,
    /// Hosts that must not be reached.
    pub hosts_deny: Vec<Host>,
    /// Hosts must fit one entry of each list. No list: any host.
    pub hosts_allow: Vec<Vec<Host>>,
    /// Hosts of the private network that may be reached without a question.
    pub hosts_private: Vec<Host>,
    /// Only `jess fetch` fetches.
    pub fetch_with_jess: bool,
    /// Globs of tool names that are denied.
    pub tools_deny: Vec<String>,
    /// Globs of tool names that are asked about.
    pub tools_ask: Vec<String>,
    /// Rules about arguments of tools.
    pub arguments: Vec<Argument>,
    /// What starting a subagent meets.
    pub spawn: Verdict,
    /// Globs of subagent types that are denied.
    pub agents_deny: Vec<String>,
    /// Commands that are denied, as words: the program and an ordered subsequence of its arguments.
    pub commands_deny: Vec<Vec<String>>,
    /// Commands that are asked about.
    pub commands_ask: Vec<Vec<String>>,
    /// Rules whose questions become denials; `destroy.*` names all that start so.
    pub rules_deny: Vec<String>,
    /// Rules about commands whose questions are dropped.
    pub rules_off: Vec<String>,
    /// Bash events are held to this allow-list.
    pub restricted: Option<Restricted>,
    /// Every question is a denial: the configuration cannot be read and nothing better is known.
    pub strict: bool,
}

/// Globs over whole paths; `name` fits at any depth, `dir` fits what lies below too.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    set: Option<globset::GlobSet>,
}

/// Most globs in one list.
pub const PATTERNS_MAX: usize = 1_000;

impl Patterns {
    /// Compiles globs. `~/` starts in `home`, `./` in `project`, `/` at the root, anything else fits at any depth.
    pub fn new<'a>(
        globs: impl IntoIterator<Item = &'a str>,
        home: &Path,
        project: &Path,
    ) -> Result<Patterns, String> {
        let mut set = globset::GlobSetBuilder::new();
        let mut count = 0;
        for text in globs {
            count += 1;
            if count > PATTERNS_MAX {
                return Err(format!("more than {PATTERNS_MAX} patterns"));
            }
            let within =
                |dir: &Path, rest: &str| format!("{}/{rest}", globset::escape(&dir.to_string_lossy()));
            let whole = if let Some(rest) = text.strip_prefix("~/") {
                within(home, rest)
            } else if let Some(rest) = text.strip_prefix("./") {
                within(project, rest)
            } else if text.starts_with('/') {
                text.to_owned()
            } else {
                format!("**/{text}")
            };
            for glob in
                [whole.trim_end_matches('/').to_owned(), format!("{}/**", whole.trim_end_matches('/'))]
            {
                let glob = globset::GlobBuilder::new(&paths::fold(&glob))
                    .literal_separator(true)
                    .build()
                    .map_err(|e| format!("{text:?}: {}", e.kind()))?;
                set.add(glob);
            }
        }
        if count == 0 {
            return Ok(Patterns::default());
        }
        set.build().map(|s| Patterns { set: Some(s) }).map_err(|e| e.to_string())
    }

    /// Whether `path` fits one.
    pub fn fit(&self, path: &Path) -> bool {
        self.set.as_ref().is_some_and(|s| s.is_match(paths::fold(&path.to_string_lossy())))
    }
}

/// A host: `example.org` alone, or `*.example.org` for what lies below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host(String);

impl Host {
    /// Reads a host rule. No schemes, ports, paths, or stars elsewhere.
    pub fn parse(text: &str) -> Result<Host, String> {
        let host = text.trim().trim_end_matches('.').to_lowercase();
        let name = host.strip_prefix("*.").unwrap_or(&host);
        let fine = !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']'));
        if fine { Ok(Host(host)) } else { Err(format!("{text:?} is neither a host nor *.DOMAIN")) }
    }

    /// The rule as text.
    pub fn text(&self) -> &str {
        &self.0
    }

    fn fits(&self, host: &str) -> bool {
        match self.0.strip_prefix("*.") {
            Some(domain) => host.strip_suffix(domain).is_some_and(|h| h.len() > 1 && h.ends_with('.')),
            None => host == self.0,
        }
    }
}

/// A rule about one argument of some tools.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Glob of tool names.
    pub tool: String,
    /// The argument's name, at any depth.
    pub argument: String,
    /// Globs of which the value must fit one; empty: any value.
    pub allow: Vec<String>,
    /// Globs of which the value must fit none.
    pub deny: Vec<String>,
}

/// Paths that no exception opens: kernel interfaces, system password files, and jess's own keys, state and configuration.
pub fn core(path: &Path) -> bool {
    let text = paths::fold(&path.to_string_lossy());
    [
        "/proc/",
        "/dev/",
        "/sys/",
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/sudoers",
        "/etc/jess",
        "/etc/claude-code",
    ]
    .iter()
    .any(|p| text.starts_with(p))
        || text.contains("/jess/")
            && [".config/jess/", ".local/state/jess/", ".local/share/jess/"].iter().any(|p| text.contains(p))
}

/// Devices and streams that every program uses.
fn ordinary(path: &Path) -> bool {
    [
        "/dev/null",
        "/dev/zero",
        "/dev/stdin",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/tty",
        "/dev/random",
        "/dev/urandom",
    ]
    .iter()
    .any(|p| path == Path::new(p))
        || path.starts_with("/dev/fd")
}

impl Custom {
    /// Whether a read of `path` lies outside the scopes.
    pub fn outside_read(&self, path: &Path, scratch: bool) -> bool {
        !scratch && !ordinary(path) && self.read.iter().any(|l| !l.iter().any(|p| path.starts_with(p)))
    }

    /// Whether a write of `path` lies outside the scopes.
    pub fn outside_write(&self, path: &Path, scratch: bool) -> bool {
        !scratch && !ordinary(path) && self.write.iter().any(|l| !l.iter().any(|p| path.starts_with(p)))
    }

    /// What is said about reaching `host` (lower case, no trailing dot); `None` leaves it to the built-in policy.
    pub fn host(&self, host: &str) -> Option<Decision> {
        if self.hosts_deny.iter().any(|h| h.fits(host)) {
            return Some(Decision::deny("web.denied", format!("The configuration denies {host}.")));
        }
        if self.hosts_allow.iter().any(|l| !l.iter().any(|h| h.fits(host))) {
            return Some(Decision::deny(
                "web.scope",
                format!(
                    "{host} is not among the hosts that the configuration allows. Ask the person to add it to network.allow."
                ),
            ));
        }
        None
    }

    /// Whether a host of the private network is the operator's own.
    pub fn is_private(&self, host: &str) -> bool {
        self.hosts_private.iter().any(|h| h.fits(host))
    }

    /// What is said about a tool by its name and arguments.
    pub fn tool(&self, tool: &str, input: &Value) -> Decision {
        if self.tools_deny.iter().any(|g| glob_matches(g, tool)) {
            return Decision::deny(
                "tool.denied",
                format!("The configuration denies the tool {}.", shown(tool)),
            );
        }
        for rule in self.arguments.iter().filter(|r| glob_matches(&r.tool, tool)) {
            if !rule.allow.is_empty() && !given(rule, input, 0) {
                return Decision::deny(
                    "tool.argument",
                    format!(
                        "The configuration allows only some values of {} for {}, and the call gives none.",
                        rule.argument,
                        shown(tool)
                    ),
                );
            }
            if let Some(value) = offending(rule, input, 0) {
                return Decision::deny(
                    "tool.argument",
                    format!(
                        "The configuration denies {} = {:?} for {}.",
                        rule.argument,
                        shown(&value),
                        shown(tool)
                    ),
                );
            }
        }
        if self.tools_ask.iter().any(|g| glob_matches(g, tool)) {
            return Decision::ask("tool.asked", format!("A person has to agree to {}.", shown(tool)));
        }
        Decision::SILENT
    }

    /// What is said about starting a subagent of a type.
    pub fn agent(&self, kind: &str) -> Decision {
        if self.agents_deny.iter().any(|g| glob_matches(g, kind)) {
            return Decision::deny(
                "agent.denied",
                format!("The configuration denies subagents of type {}.", shown(kind)),
            );
        }
        match self.spawn {
            Verdict::Deny => Decision::deny(
                "agent.spawn",
                "The configuration denies subagents. Do the work in this session.",
            ),
            Verdict::Ask => Decision::ask("agent.spawn", "A person has to agree to a subagent."),
            Verdict::None => Decision::SILENT,
        }
    }

    /// What is said about a program with its arguments.
    pub fn command(&self, base: &str, args: &[&str]) -> Decision {
        let hit =
            |rules: &[Vec<String>]| rules.iter().find(|r| subsequence(r, base, args)).map(|r| r.join(" "));
        if let Some(rule) = hit(&self.commands_deny) {
            return Decision::deny("command.denied", format!("The configuration denies `{rule}`."));
        }
        if let Some(rule) = hit(&self.commands_ask) {
            return Decision::ask("command.asked", format!("A person has to agree to `{rule}`."));
        }
        Decision::SILENT
    }

    /// A decision about anything after `rules.deny`.
    pub fn sharpened(&self, seen: Decision) -> Decision {
        if seen.verdict == Verdict::Ask && (self.strict || named(&self.rules_deny, seen.rule)) {
            return Decision { verdict: Verdict::Deny, ..seen };
        }
        seen
    }

    /// A decision about a command after `rules.off` and `rules.deny`. Applied to each finding by itself, so that one that
    /// is dropped hides no other.
    pub fn tuned(&self, seen: Decision) -> Decision {
        match self.sharpened(seen) {
            seen if seen.verdict == Verdict::Ask && named(&self.rules_off, seen.rule) => Decision::SILENT,
            seen => seen,
        }
    }
}

/// Whether a rule's name is in a list; `destroy.*` names all that start so.
fn named(list: &[String], rule: &str) -> bool {
    list.iter().any(|r| r.strip_suffix('*').map_or(r == rule, |start| rule.starts_with(start)))
}

/// Whether `rule` is the program and an ordered subsequence of its arguments. A flag fits with and without a value.
pub fn subsequence(rule: &[String], base: &str, args: &[&str]) -> bool {
    let Some((program, wanted)) = rule.split_first() else { return false };
    if !glob_matches(program, base) {
        return false;
    }
    let mut args = args.iter();
    wanted.iter().all(|w| args.any(|a| word_fits(w, a)))
}

/// Whether an argument is the word: a flag also as `--flag=value`, and a one-letter flag also in a cluster.
pub fn word_fits(word: &str, arg: &str) -> bool {
    if arg == word {
        return true;
    }
    if word.starts_with("--") {
        return arg.strip_prefix(word).is_some_and(|rest| rest.starts_with('='));
    }
    match word.strip_prefix('-') {
        Some(letter) if letter.chars().count() == 1 => {
            arg.strip_prefix('-').is_some_and(|c| !c.starts_with('-') && c.contains(letter))
        }
        Some(_) => arg.strip_prefix(word).is_some_and(|rest| rest.starts_with('=')),
        None => false,
    }
}

fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(80).collect()
}

/// Whether the rule's argument stands anywhere in the input.
fn given(rule: &Argument, value: &Value, depth: usize) -> bool {
    match value {
        _ if depth > 128 => false,
        Value::Object(o) => {
            o.iter().any(|(k, v)| k.eq_ignore_ascii_case(&rule.argument) || given(rule, v, depth + 1))
        }
        Value::Array(a) => a.iter().any(|v| given(rule, v, depth + 1)),
        _ => false,
    }
}

/// The first value under the rule's argument that the rule does not let through. `serde_json` bounds the depth.
fn offending(rule: &Argument, value: &Value, depth: usize) -> Option<String> {
    if depth > 128 {
        return Some("nested too deep".into());
    }
    match value {
        Value::Object(o) => o.iter().find_map(|(k, v)| {
            if k.eq_ignore_ascii_case(&rule.argument) {
                refused(rule, v)
            } else {
                offending(rule, v, depth + 1)
            }
        }),
        Value::Array(a) => a.iter().find_map(|v| offending(rule, v, depth + 1)),
        _ => None,
    }
}

fn refused(rule: &Argument, value: &Value) -> Option<String> {
    let texts: Vec<String> = match value {
        Value::Array(a) => a.iter().map(plain).collect(),
        other => vec![plain(other)],
    };
    texts.into_iter().find(|t| {
        rule.deny.iter().any(|g| glob_matches(g, t))
            || !rule.allow.is_empty() && !rule.allow.iter().any(|g| glob_matches(g, t))
    })
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_at_the_depth_they_say() {
        let p = Patterns::new(
            ["vault", "*.sealed", "/srv/data/*", "~/notes", "./infra/**/x"],
            Path::new("/home/u"),
            Path::new("/w/p"),
        )
        .unwrap();
        for fits in [
            "/w/p/vault",
            "/w/p/a/vault/deep/file",
            "/x/A.SEALED",
            "/srv/data/one",
            "/home/u/notes/n.md",
            "/w/p/infra/a/b/x",
        ] {
            assert!(p.fit(Path::new(fits)), "{fits}");
        }
        for not in ["/w/p/vaults", "/srv/data", "/home/v/notes", "/infra/x", "/w/p/x.sealed.txt"] {
            assert!(!p.fit(Path::new(not)), "{not}");
        }
        assert!(!Patterns::default().fit(Path::new("/vault")));
        assert!(Patterns::new(["a{b"], Path::new("/"), Path::new("/")).is_err());
    }

    #[test]
    fn a_star_host_fits_what_lies_below_and_not_the_domain_itself() {
        let star = Host::parse("*.Example.org").unwrap();
        assert!(star.fits("a.example.org") && star.fits("a.b.example.org"));
        assert!(!star.fits("example.org") && !star.fits("evilexample.org") && !star.fits(".example.org"));
        assert!(
            Host::parse("https://a/").is_err() && Host::parse("a*.b").is_err() && Host::parse("").is_err()
        );
    }

    #[test]
    fn command_rules_are_ordered_subsequences_with_flags_in_every_spelling() {
        let rule = |t: &str| t.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(subsequence(&rule("terraform apply"), "terraform", &["-chdir=x", "apply", "-y"]));
        assert!(subsequence(&rule("git remote add"), "git", &["-C", "x", "remote", "-v", "add", "o"]));
        assert!(subsequence(&rule("tool --exec"), "tool", &["--exec=sh"]));
        assert!(subsequence(&rule("tar -x"), "tar", &["-vxf"]));
        assert!(!subsequence(&rule("git remote add"), "git", &["add", "remote"]), "the order counts");
        assert!(!subsequence(&rule("tool --exec"), "tool", &["--execute"]));
        assert!(!subsequence(&rule("tool --exec"), "other", &["--exec"]));
    }

    #[test]
    fn arguments_of_tools_are_held_to_their_lists() {
        let custom = Custom {
            tools_deny: vec!["mcp__*__delete_*".into()],
            arguments: vec![Argument {
                tool: "mcp__forge__*".into(),
                argument: "owner".into(),
                allow: vec!["ours".into()],
                deny: vec![],
            }],
            ..Custom::default()
        };
        let verdict = |tool: &str, input: Value| custom.tool(tool, &input).verdict;
        assert_eq!(verdict("mcp__db__delete_rows", Value::Null), Verdict::Deny);
        assert_eq!(verdict("mcp__forge__issue", serde_json::json!({"owner": "ours"})), Verdict::None);
        assert_eq!(
            verdict("mcp__forge__issue", serde_json::json!({"q": [{"Owner": "theirs"}]})),
            Verdict::Deny
        );
        assert_eq!(verdict("mcp__other__issue", serde_json::json!({"owner": "theirs"})), Verdict::None);
    }

    #[test]
    fn questions_are_dropped_or_sharpened_by_name_and_denials_never_fall() {
        let custom = Custom {
            rules_off: vec!["git.*".into()],
            rules_deny: vec!["web.data".into()],
            ..Custom::default()
        };
        assert_eq!(custom.tuned(Decision::ask("git.history", "x")).verdict, Verdict::None);
        assert_eq!(custom.tuned(Decision::ask("web.data", "x")).verdict, Verdict::Deny);
        assert_eq!(custom.tuned(Decision::deny("git.push", "x")).verdict, Verdict::Deny);
    }
}
