//! The Rule-of-Two audit of agent definitions: which legs an agent stands on by its tools, hooks and description, and
//! the narrowest change that takes one away.

use super::frontmatter;
use super::mask;
use super::read::{self, Content};
use super::rules::markdown::tool_rules;
use crate::policy::rule_of_two::Legs;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// Definitions read in one audit. More are an error.
pub const MAX_AGENTS: usize = 2_000;

/// How an agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Verdict {
    /// No leg.
    #[serde(rename = "tight")]
    Tight,
    /// One leg.
    #[serde(rename = "floor-safe")]
    FloorSafe,
    /// Two legs: safe alone, one change away from all three.
    #[serde(rename = "needs-tightening")]
    NeedsTightening,
    /// All three: a person has to be there.
    #[serde(rename = "needs-hitl")]
    NeedsHitl,
}

impl Verdict {
    const fn of(legs: Legs) -> Verdict {
        match legs.count() {
            0 => Verdict::Tight,
            1 => Verdict::FloorSafe,
            2 => Verdict::NeedsTightening,
            _ => Verdict::NeedsHitl,
        }
    }

    /// The verdict in words.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Tight => "tight",
            Verdict::FloorSafe => "floor-safe",
            Verdict::NeedsTightening => "needs-tightening",
            Verdict::NeedsHitl => "needs-hitl",
        }
    }
}

/// The audit of one definition. All text is safe to print.
#[derive(Debug, Clone, Serialize)]
pub struct Audit {
    /// Where it is, relative to the audited directory.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Its tools; `*` for all.
    pub tools: Vec<String>,
    /// Untrusted input.
    pub a: bool,
    /// Sensitive access.
    pub b: bool,
    /// External effect.
    pub c: bool,
    /// How it stands.
    pub verdict: Verdict,
    /// Why each leg is there, and what was taken into account.
    pub reasons: Vec<String>,
    /// The narrowest changes that take a leg away, best first.
    pub fixes: Vec<String>,
}

/// Audits every `agents/**.md` below `dir` (a repository, a plugin, or an `agents` directory itself), sorted by path.
///
/// # Errors
/// [`enum@super::Error`] when `dir` cannot be read, or holds more than [`MAX_AGENTS`] definitions.
pub fn audit(dir: &Path) -> Result<Vec<Audit>, super::Error> {
    let shown = mask::path(&dir.to_string_lossy());
    if !dir.is_dir() {
        return Err(super::Error::Target { path: shown, reason: "no such directory" });
    }
    let io = |source| super::Error::Io { path: shown.clone(), source };
    let mut files = Vec::new();
    let itself = dir.file_name().is_some_and(|n| n == "agents");
    let real = std::fs::canonicalize(dir).map_err(io)?;
    let mut search = Search { root: &real, seen: HashSet::new(), found: &mut files };
    search.below(dir, Path::new(""), itself).map_err(io)?;
    files.sort();
    let root = std::fs::File::open(dir).map_err(io)?;
    Ok(files.iter().map(|path| one(&root, path)).collect())
}

/// A table for a person: verdict, name, legs, tools, then why and what to change.
pub fn render(audits: &[Audit]) -> String {
    use std::fmt::Write as _;
    let width = audits.iter().map(|a| a.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for audit in audits {
        let leg = |on: bool, name: char| if on { name } else { '-' };
        let legs: String = [leg(audit.a, 'A'), leg(audit.b, 'B'), leg(audit.c, 'C')].iter().collect();
        let verdict = audit.verdict.name();
        let _ = writeln!(out, "{verdict:16}  {:width$}  {legs}  {}", audit.name, audit.tools.join(" "));
        if audit.verdict >= Verdict::NeedsTightening {
            for reason in &audit.reasons {
                let _ = writeln!(out, "    why  {reason}");
            }
            for fix in &audit.fixes {
                let _ = writeln!(out, "    fix  {fix}");
            }
        }
    }
    out
}

/// Collects the definitions below a directory. Links are followed as the client follows them, each directory once, as
/// long as they stay below it; one that leaves is listed itself, and cannot be read.
struct Search<'a> {
    root: &'a Path,
    seen: HashSet<(u64, u64, bool)>,
    found: &'a mut Vec<PathBuf>,
}

impl Search<'_> {
    fn below(&mut self, dir: &Path, rel: &Path, agents: bool) -> std::io::Result<()> {
        use std::os::unix::fs::MetadataExt as _;
        let here = std::fs::metadata(dir)?;
        if !self.seen.insert((here.dev(), here.ino(), agents)) {
            return Ok(());
        }
        if rel.components().count() > super::limits::MAX_DEPTH {
            return Err(std::io::Error::other("directories are nested too deeply"));
        }
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let path = rel.join(&name);
            let inside = agents || name == "agents";
            let mut kind = entry.file_type()?;
            if kind.is_symlink() {
                kind = match std::fs::metadata(entry.path()) {
                    Ok(target) => target.file_type(),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                    Err(_) => {
                        if inside || name == ".claude" {
                            self.take(path)?;
                        }
                        continue;
                    }
                };
                if kind.is_dir() && !self.stays(dir, &entry.path()) {
                    if inside || name == ".claude" {
                        self.take(path)?;
                    }
                    continue;
                }
            }
            if kind.is_dir() {
                // A dependency's own definitions are no agents of this repository; below `agents` every name counts.
                if name != ".git" && (agents || name != "node_modules") {
                    self.below(&entry.path(), &path, inside)?;
                }
            } else if agents && path.extension().is_some_and(|e| e.eq_ignore_ascii_case("md")) {
                self.take(path)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, path: PathBuf) -> std::io::Result<()> {
        if self.found.len() >= MAX_AGENTS {
            return Err(std::io::Error::other(format!("more than {MAX_AGENTS} agent definitions")));
        }
        self.found.push(path);
        Ok(())
    }

    /// True when a link leads below the root, and not to a directory that holds the link.
    fn stays(&self, dir: &Path, link: &Path) -> bool {
        match (std::fs::canonicalize(dir), std::fs::canonicalize(link)) {
            (Ok(dir), Ok(target)) => target.starts_with(self.root) && !dir.starts_with(target),
            _ => false,
        }
    }
}

fn one(root: &std::fs::File, path: &Path) -> Audit {
    use std::os::unix::ffi::OsStrExt as _;
    let shown = mask::path(&path.to_string_lossy());
    let stem = path.file_stem().map(|s| mask::name(&s.to_string_lossy())).unwrap_or_default();
    let Content::Bytes(bytes) = read::beneath(root, path.as_os_str().as_bytes()) else {
        return unreadable(shown, stem, "it cannot be read, or lies outside");
    };
    let document = frontmatter::read(&bytes);
    if let Some(reason) = document.malformed {
        return unreadable(shown, stem, reason);
    }
    // When the client's readings of the head differ, the worse one counts.
    let audits = document.heads.iter().map(|head| match head.inspect() {
        Value::Object(head) => score(shown.clone(), stem.clone(), head),
        Value::Null => score(shown.clone(), stem.clone(), &Map::new()),
        _ => unreadable(shown.clone(), stem.clone(), "the frontmatter is no list of keys"),
    });
    audits
        .max_by_key(|audit| audit.verdict)
        .unwrap_or_else(|| score(shown.clone(), stem.clone(), &Map::new()))
}

/// What cannot be read counts as everything.
fn unreadable(path: String, name: String, reason: &str) -> Audit {
    Audit {
        path,
        name,
        tools: vec!["*".to_string()],
        a: true,
        b: true,
        c: true,
        verdict: Verdict::NeedsHitl,
        reasons: vec![format!("counts as all three legs: {reason}")],
        fixes: vec!["make the frontmatter valid YAML".to_string()],
    }
}

/// Words of a description that say that the input was checked before the agent sees it.
const CHECKED_INPUT: &[&str] =
    &["verified evidence", "validated", "confirmed", "schema-checked", "trusted input", "verified findings"];

/// True when `words` stand in `description` as words, and nothing shortly before them turns them round.
fn says(description: &str, words: &str) -> bool {
    /// Words before that are looked at.
    const BEFORE: usize = 5;
    description.match_indices(words).any(|(at, _)| {
        let before = description.get(..at).unwrap_or_default();
        let after = description.get(at + words.len()..).unwrap_or_default();
        let whole = !before.ends_with(|c: char| c.is_alphanumeric() || c == '-')
            && !after.starts_with(|c: char| c.is_alphanumeric());
        let turns = |word: &str| {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            matches!(
                word,
                "not" | "never" | "no" | "nor" | "neither" | "without" | "cannot" | "be" | "un" | "rarely"
            ) || word.ends_with("n't")
                || word.ends_with("n\u{2019}t")
        };
        whole && !before.split_whitespace().rev().take(BEFORE).any(turns)
    })
}

#[derive(Default)]
struct Score {
    legs: Legs,
    reasons: Vec<String>,
    fixes: Vec<String>,
}

impl Score {
    fn raise(&mut self, legs: Legs, why: String) {
        self.legs = self.legs.union(legs);
        self.reasons.push(why);
    }

    fn fix(&mut self, text: &str) {
        if !self.fixes.iter().any(|f| f == text) {
            self.fixes.push(text.to_string());
        }
    }
}

const A: Legs = Legs { a: true, b: false, c: false };
const B: Legs = Legs { a: false, b: true, c: false };
const C: Legs = Legs { a: false, b: false, c: true };

fn score(path: String, stem: String, head: &Map<String, Value>) -> Audit {
    let text = |key: &str| head.get(key).and_then(Value::as_str).unwrap_or_default();
    let name = if text("name").is_empty() { stem } else { mask::name(text("name")) };
    let description = text("description").to_lowercase();
    let tools = head.get("tools").map(tool_rules).filter(|t| !t.is_empty());
    let guarded = guarded_tools(head);
    let mut score = Score::default();
    match &tools {
        None => {
            score.raise(Legs::ALL, "no `tools` list: the agent has every tool".to_string());
            score.fix("give it an explicit `tools` list with only what it uses");
        }
        Some(tools) => tools.iter().for_each(|t| tool(&mut score, t, &guarded, &description)),
    }
    if head.get("mcpServers").is_some_and(super::rules::truthy) {
        score.raise(Legs::ALL, "starts MCP servers of its own".to_string());
        score.fix("remove `mcpServers`, or list the few tools it needs from a server the operator runs");
    }
    if text("permissionMode") == "bypassPermissions" {
        score.raise(B, "runs without any permission prompt".to_string());
        score.fix("remove `permissionMode: bypassPermissions`");
    }
    let verdict = Verdict::of(score.legs);
    if verdict < Verdict::NeedsTightening {
        score.fixes.clear();
    }
    Audit {
        path,
        name,
        tools: tools.unwrap_or_else(|| vec!["*".to_string()]).iter().map(|t| mask::name(t)).collect(),
        a: score.legs.a,
        b: score.legs.b,
        c: score.legs.c,
        verdict,
        reasons: score.reasons,
        fixes: score.fixes,
    }
}

fn tool(score: &mut Score, rule: &str, guarded: &BTreeSet<&'static str>, description: &str) {
    let (name, argument) = match rule.split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest.trim_end_matches(')').trim())),
        None => (rule.trim(), None),
    };
    let narrowed = argument.is_some_and(|a| !a.trim_matches([':', '*', ' ']).is_empty());
    match name {
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" | "TodoWrite" => {}
        "Read" | "Grep" | "Glob" | "LS" | "NotebookRead" => {
            if CHECKED_INPUT.iter().any(|words| says(description, words)) {
                score.reasons.push(format!("{name}: its description says that its input was checked before"));
            } else {
                score.raise(A, format!("{name} reads files an outsider may have written"));
                score.fix("hand it only inputs that were validated against a schema");
            }
        }
        // The client does not enforce what `tools` says in parentheses after Bash (2.1.332); only a hook narrows it.
        "Bash" | "PowerShell" | "Monitor" if guarded.contains("Bash") => {
            score.raise(A, format!("{name} shows the output of commands"));
            score.raise(C, format!("{name} runs allowlisted commands, which may reach other systems"));
        }
        "Bash" | "PowerShell" | "Monitor" => {
            score.raise(A, format!("{name} shows the output of commands"));
            score.raise(B, format!("{name} runs any command with the operator's rights"));
            score.fix("replace Bash by the tools it needs, or allowlist its commands: `jess hook bash-allowlist CMD…`");
        }
        "WebFetch" => {
            score.raise(A, "WebFetch brings in pages".to_string());
            score.raise(C, "WebFetch sends requests out".to_string());
            if !narrowed && !guarded.contains("WebFetch") {
                score.fix("limit WebFetch to its hosts: `jess hook webfetch-allowlist HOST…`");
            }
        }
        "WebSearch" => {
            score.raise(A, "WebSearch brings in pages".to_string());
            score.raise(C, "WebSearch sends queries out".to_string());
            score.fix("drop WebSearch, or move it into an agent of its own");
        }
        "Task" | "Agent" if narrowed => score.raise(B, format!("{name} starts the agents it names")),
        "Task" | "Agent" => {
            score.raise(B, format!("{name} starts any other agent"));
            score.fix("name the agents it may start: `Agent(name, …)`");
        }
        _ => {
            score.raise(Legs::ALL, format!("{} is not known and counts as all three", mask::name(name)));
            score.fix("list the known tools it needs instead of a wildcard, a server or an unknown tool");
        }
    }
}

/// The tools whose calls a PreToolUse hook of the definition limits to an allowlist.
///
/// Only hooks that are known to deny everything else count; any other command says nothing about what it allows.
fn guarded_tools(head: &Map<String, Value>) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let groups = head.get("hooks").and_then(|h| h.get("PreToolUse")).and_then(Value::as_array);
    for group in groups.into_iter().flatten() {
        let matcher = group.get("matcher").and_then(Value::as_str).unwrap_or_default();
        for hook in group.get("hooks").and_then(Value::as_array).into_iter().flatten() {
            let Value::Object(map) = hook else { continue };
            let line = super::rules::hooks::command_line(map);
            match guard(&line) {
                Some("Bash") if matcher == "Bash" => found.insert("Bash"),
                Some("WebFetch") if matcher == "WebFetch" => found.insert("WebFetch"),
                _ => false,
            };
        }
    }
    found
}

/// Programs that run whatever they are given: an allowlist with one of them allows everything.
const RUNS_ANYTHING: &[&str] = &[
    "bash", "sh", "zsh", "dash", "env", "sudo", "xargs", "find", "python", "python3", "perl", "ruby", "node",
    "awk", "ssh",
];

/// The tool that a hook's command line limits: `jess hook bash-allowlist …`, or RAPTOR's script of that name, alone
/// or behind its interpreter, as one plain command.
fn guard(line: &str) -> Option<&'static str> {
    if line.contains([';', '|', '&', '#', '<', '>', '`', '\n']) || line.contains("$(") {
        return None;
    }
    let mut words = line.split_whitespace().map(|w| w.trim_matches(['"', '\'']));
    let base = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let program = words.next()?;
    let mut first = base(program);
    // A `jess` that the directory brings along is anybody's program.
    if first == "jess" && program.contains('/') && !program.starts_with('/') {
        return None;
    }
    if matches!(first.as_str(), "python3" | "python" | "bash" | "sh") {
        first = base(words.next()?);
        if first == "jess" {
            return None;
        }
    }
    let name = if first == "jess" {
        if words.next() != Some("hook") {
            return None;
        }
        words.next()?.to_owned()
    } else {
        first.trim_end_matches(".py").trim_end_matches(".sh").replace('_', "-")
    };
    let tool = match name.as_str() {
        "bash-allowlist" | "bash-command-allowlist" => "Bash",
        "webfetch-allowlist" | "webfetch-domain-allowlist" => "WebFetch",
        _ => return None,
    };
    (tool != "Bash" || !words.any(|word| RUNS_ANYTHING.contains(&base(word).as_str()))).then_some(tool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn verdict(head: Value) -> Verdict {
        score(String::new(), String::new(), head.as_object().unwrap()).verdict
    }

    #[test]
    fn every_tool_is_all_three_legs() {
        assert_eq!(verdict(json!({"name": "x"})), Verdict::NeedsHitl);
        assert_eq!(verdict(json!({"tools": "*"})), Verdict::NeedsHitl);
        assert_eq!(verdict(json!({"tools": ""})), Verdict::NeedsHitl);
        assert_eq!(verdict(json!({"tools": "mcp__x__y"})), Verdict::NeedsHitl);
    }

    #[test]
    fn an_allowlist_hook_takes_the_shell_leg_away() {
        let hook = |command: &str, matcher: &str| {
            json!({"tools": "Read, Bash, WebFetch", "hooks": {"PreToolUse": [
                {"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]}})
        };
        assert_eq!(verdict(hook("jess hook bash-allowlist 'git log'", "Bash")), Verdict::NeedsTightening);
        assert_eq!(verdict(hook("./check.sh", "Bash")), Verdict::NeedsHitl);
        for fake in [
            "true # jess hook bash-allowlist 'git log'",
            "true; jess hook bash-allowlist 'git log'",
            "echo jess hook bash-allowlist 'git log'",
            "jess hook bash-allowlist bash",
            "./jess hook bash-allowlist 'git log'",
            "tools/jess hook bash-allowlist 'git log'",
            "$CLAUDE_PROJECT_DIR/jess hook bash-allowlist 'git log'",
            "jess hook bash-allowlist '/bin/sh -c'",
        ] {
            assert_eq!(verdict(hook(fake, "Bash")), Verdict::NeedsHitl, "{fake}");
        }
        assert_eq!(verdict(hook("jess hook bash-allowlist 'git log'", "Write")), Verdict::NeedsHitl);
    }

    #[test]
    fn only_a_hook_narrows_the_shell() {
        assert_eq!(verdict(json!({"tools": "Bash(git log:*), Read, WebFetch"})), Verdict::NeedsHitl);
    }

    #[test]
    fn input_counts_as_checked_when_the_description_says_so_and_not_the_contrary() {
        let read = |description: &str| verdict(json!({"tools": "Read", "description": description}));
        assert_eq!(read("Works on validated input"), Verdict::Tight);
        for text in [
            "Works on unvalidated input",
            "Reads unconfirmed reports",
            "input that was not validated",
            "non-validated input",
            "input that has not yet been validated",
            "input which isn't always validated",
        ] {
            assert_eq!(read(text), Verdict::FloorSafe, "{text}");
        }
    }

    #[test]
    fn each_two_legged_agent_is_told_what_to_change() {
        let audit = score(String::new(), String::new(), json!({"tools": "Read, Bash"}).as_object().unwrap());
        assert_eq!(audit.verdict, Verdict::NeedsTightening);
        assert!(audit.fixes.iter().any(|f| f.contains("bash-allowlist")));
    }
}
