//! Agents, slash commands and skills: what their head grants and what their body runs.

use super::{Sink, hooks, mcp, truthy};
use crate::trust::frontmatter::{Document, js_space};
use crate::trust::mask;
use crate::trust::report::Class;
use crate::untrusted::Untrusted;
use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// Which kind of definition a Markdown file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `.claude/agents/**.md`
    Agent,
    /// `.claude/commands/**.md`
    Command,
    /// `.claude/skills/*/SKILL.md`
    Skill,
    /// `.claude/output-styles/*.md`
    Style,
}

/// Judges one definition.
pub fn check(sink: &mut Sink, kind: Kind, document: &Document) {
    if let Some(reason) = document.malformed {
        sink.unreadable(reason);
    }
    for head in &document.heads {
        if let Value::Object(map) = head.inspect() {
            check_head(sink, map);
        } else if truthy(head.inspect()) && document.heads.len() == 1 {
            sink.info(Class::Note, "frontmatter", "not a list of keys");
        }
    }
    if matches!(kind, Kind::Command | Kind::Skill) {
        shell_in_body(sink, document);
    }
}

/// Judges a command that a manifest holds inline: its metadata and its text.
pub fn check_inline(sink: &mut Sink, map: &Map<String, Value>) {
    let Some(text) = map.get("content").and_then(Value::as_str) else { return check_head(sink, map) };
    let mut document = crate::trust::frontmatter::read(&Untrusted::new(text));
    document.heads.push(Untrusted::new(Value::Object(map.clone())));
    check(sink, Kind::Command, &document);
}

/// The text of a definition as it may be once the client has put arguments in: every placeholder that may be empty is
/// gone. The names that a head declares are taken as they are written (2.1.332 takes any text up to 64 characters), and
/// so is whatever looks like a name.
pub fn expansions(document: &Document) -> Vec<String> {
    let text = document.text.inspect();
    let declared: Vec<String> =
        document.heads.iter().flat_map(|head| argument_names(head.inspect())).collect();
    let mut texts = rounds(text);
    let placeholders = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&declared);
    if let (false, Ok(placeholders)) = (declared.is_empty(), placeholders) {
        let without = placeholders.replace_all(text, &vec![""; declared.len()]);
        texts.extend(rounds(&without));
        texts.push(without);
    }
    texts
}

/// `$name` for each argument that a head declares.
fn argument_names(head: &Value) -> Vec<String> {
    let names: Vec<&str> = match head.get("arguments") {
        Some(Value::String(text)) => text.split(js_space).collect(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    names.into_iter().filter(|name| !name.is_empty()).map(|name| format!("${name}")).collect()
}

/// `text` without whatever looks like a placeholder, and what comes of it when that makes another one.
fn rounds(text: &str) -> Vec<String> {
    let mut rounds: Vec<String> = Vec::new();
    if let Some(pattern) = LazyLock::force(&PLACEHOLDER) {
        while rounds.len() < MAX_ROUNDS {
            let from = rounds.last().map_or(text, String::as_str);
            let next = pattern.replace_all(from, "");
            if next.len() == from.len() {
                break;
            }
            let next = next.into_owned();
            rounds.push(next);
        }
    }
    rounds
}

fn check_head(sink: &mut Sink, map: &Map<String, Value>) {
    for (key, value) in map {
        match key.as_str() {
            "hooks" => hooks::check(sink, value),
            "mcpServers" | "mcp-servers" => inline_servers(sink, value),
            "permissionMode" | "permission-mode" => {
                let quiet = ["default", "plan", "manual", "dontAsk", "inherit"];
                if truthy(value) && !value.as_str().is_some_and(|v| quiet.contains(&v)) {
                    let shown = value.as_str().map_or_else(|| mask::json(value), mask::plain);
                    sink.block(Class::WidensPermissions, "permissionMode", shown);
                }
            }
            "allowed-tools" | "allowedTools" | "allowed_tools" => grants(sink, value),
            _ => {}
        }
    }
}

/// An agent's servers: names refer to servers that are judged where they are defined; objects define one.
fn inline_servers(sink: &mut Sink, value: &Value) {
    match value {
        Value::Array(items) => items.iter().filter(|i| !i.is_string()).for_each(|i| inline_servers(sink, i)),
        // A definition that only a quoting reader takes for text is no name.
        Value::String(text) if text.contains(['{', '[', '*', '&', '!']) => {
            sink.block(Class::McpServer, "mcpServers (unrecognised shape)", mask::secret(text));
        }
        Value::String(_) => {}
        other => mcp::check_servers(sink, other),
    }
}

/// Tools a command or skill may use without asking.
fn grants(sink: &mut Sink, value: &Value) {
    for rule in tool_rules(value) {
        sink.names_scripts(&Value::from(rule.as_str()));
        if let Some(why) = wide_grant(&rule) {
            sink.block(Class::WidensPermissions, format!("allowed-tools ({why})"), mask::plain(&rule));
        } else if matches!(rule.as_str(), "Write" | "Edit" | "MultiEdit" | "NotebookEdit") {
            sink.info(
                Class::WidensPermissions,
                "allowed-tools (writes any file without asking)",
                mask::plain(&rule),
            );
        }
    }
    if matches!(value, Value::Object(_) | Value::Bool(true) | Value::Number(_)) {
        sink.block(Class::WidensPermissions, "allowed-tools (unrecognised shape)", mask::json(value));
    }
}

/// The rules of a list, or of a string separated by commas or spaces (not those inside parentheses).
pub(crate) fn tool_rules(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(tool_rules).collect(),
        Value::String(text) => {
            let mut rules = Vec::new();
            let mut depth = 0usize;
            let mut current = String::new();
            for c in text.chars() {
                match c {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if depth == 0 && (c == ',' || c.is_whitespace()) {
                    rules.push(std::mem::take(&mut current));
                } else {
                    current.push(c);
                }
            }
            rules.push(current);
            rules.retain(|r| !r.trim().is_empty());
            rules.iter().map(|r| r.trim().to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

/// Why a grant is too wide; `None` for one that is not.
fn wide_grant(rule: &str) -> Option<&'static str> {
    let (name, argument) = match rule.split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest.trim_end().trim_end_matches(')').trim())),
        None => (rule, None),
    };
    match name {
        "*" => Some("every tool"),
        "Bash" | "PowerShell" | "Monitor" => match argument {
            None => Some("every command"),
            Some(prefix) if harmless_prefix(prefix) => None,
            Some(prefix) if prefix.trim_matches([':', '*', ' ']).is_empty() => Some("every command"),
            Some(_) => Some("a command that can run anything"),
        },
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" if argument.is_some_and(leaves_tree) => {
            Some("writes anywhere without asking")
        }
        "Read" | "Glob" | "Grep" if argument.is_some_and(leaves_tree) => {
            Some("reads anywhere without asking")
        }
        "WebFetch" => Some("sends requests without asking"),
        name if name.starts_with("mcp__") && name.contains('*') => Some("every tool of a server"),
        name if name.contains('*') => Some("every tool"),
        _ => None,
    }
}

/// True for a path pattern that reaches out of the directory it is used in.
fn leaves_tree(pattern: &str) -> bool {
    pattern.is_empty()
        || pattern.starts_with(['/', '~', '$', '\\'])
        || pattern.split(['/', '\\']).any(|part| part == "..")
}

/// Command prefixes that only look, or only touch the index of the repository's own version control.
fn harmless_prefix(prefix: &str) -> bool {
    if prefix.contains([';', '&', '|', '`', '$', '<', '>', '\n']) {
        return false;
    }
    // Without a boundary `git diff*` is also `git difftool`.
    let whole = prefix.strip_suffix(":*").or_else(|| prefix.strip_suffix(" *")).unwrap_or(prefix);
    if whole.contains('*') {
        return false;
    }
    let words: Vec<&str> = whole.split_whitespace().collect();
    match words.as_slice() {
        ["git", verb, ..] => [
            "status",
            "diff",
            "log",
            "show",
            "branch",
            "blame",
            "rev-parse",
            "ls-files",
            "add",
            "commit",
            "describe",
            "shortlog",
            "tag",
            "remote",
            "checkout",
            "switch",
            "stash",
        ]
        .contains(verb),
        [
            "gh",
            "pr" | "issue" | "run" | "release" | "repo",
            "view" | "list" | "diff" | "status" | "checks",
            ..,
        ] => true,
        [
            "ls" | "cat" | "head" | "tail" | "wc" | "grep" | "rg" | "pwd" | "date" | "echo" | "tree" | "stat"
            | "file" | "which" | "uname" | "whoami" | "diff" | "sort" | "uniq" | "cut" | "tr" | "du" | "df"
            | "jq" | "basename" | "dirname" | "realpath" | "true",
            ..,
        ] => true,
        _ => false,
    }
}

/// Shell that the client runs while it expands a command or skill, before the model sees anything and without
/// PreToolUse: `` !`cmd` `` after white space or at a line's start, and a fence opened with `` ```! ``. Arguments are
/// put in first, so `` !$x`cmd` `` is one too.
fn shell_in_body(sink: &mut Sink, document: &Document) {
    let (Some(inline), Some(fence), Some(_)) =
        (LazyLock::force(&INLINE), LazyLock::force(&FENCE), LazyLock::force(&PLACEHOLDER))
    else {
        return sink.unreadable("the pattern for shell in a body is broken");
    };
    let expanded = expansions(document);
    let mut seen = std::collections::HashSet::new();
    for text in std::iter::once(document.text.inspect()).chain(&expanded) {
        for pattern in [inline, fence] {
            for hit in pattern.captures_iter(text).take(MAX_SHOWN) {
                let command = hit.get(1).map_or("", |m| m.as_str().trim());
                if seen.insert(command.to_owned()) {
                    sink.names_scripts(&Value::from(command));
                    sink.block(Class::RunsCommand, "shell in the body", mask::secret(command));
                }
            }
        }
    }
}

/// Shell lines of one body that are listed.
const MAX_SHOWN: usize = 20;
/// How often placeholders are taken out of a text.
const MAX_ROUNDS: usize = 4;

static INLINE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?:^|[\s\x{FEFF}])!`([^`]+)`").ok());
static FENCE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?s)```!\s*(.*?)```").ok());
static PLACEHOLDER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\$(?:ARGUMENTS(?:\[[^\]\n]*\])?|\{\w+\}|\w+)").ok());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::frontmatter;

    fn blocked(kind: Kind, text: &str) -> Vec<String> {
        let mut sink = Sink::default();
        check(&mut sink, kind, &frontmatter::read(&Untrusted::new(text.as_bytes())));
        sink.into_findings().into_iter().filter(|f| f.blocking).map(|f| f.label).collect()
    }

    #[test]
    fn shell_that_runs_on_expansion_is_found() {
        for text in [
            "Now: !`id`",
            "!`id`\n",
            "a\n```!\nid\n```\n",
            "```bash\n!`id`\n```\n",
            "x\t!`id`",
            "```!id\n```",
            "!$ARGUMENTS`id`",
            "!$foo`id`",
            "$ARGUMENTS!`id`",
            "!$1`id`",
            "!$ARG$fooUMENTS`id`",
            "!$ARGUMENTS[0]`id`",
            "```$ARGUMENTS!\nid\n```",
            "---\na: x\n!`id`\n---\n",
            "---\narguments: foo-bar\n---\n!$foo-bar`id`",
            "---\narguments: [foo.bar, 'two words']\n---\n!$two words`id`",
            "---\narguments: ['(']\n---\n```$(!\nid\n```",
        ] {
            assert!(!blocked(Kind::Command, text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn a_placeholder_of_any_length_is_taken_out() {
        let name = "n".repeat(64);
        for text in [
            format!("!${name}`id`"),
            format!("!${{{name}}}`id`"),
            format!("!$ARGUMENTS[{}]`id`", "0".repeat(64)),
        ] {
            assert!(!blocked(Kind::Command, &text).is_empty(), "{text}");
        }
    }

    #[test]
    fn exclamation_marks_and_fences_that_run_nothing_pass() {
        for text in [
            "![a](b.png)",
            "wow!`id`",
            "> **Note!** Use `git log`",
            "```sh\nid\n```",
            "! `id`",
            "!``",
            "a !b",
            "---\narguments: foo\n---\nCosts $foo! See `id`",
        ] {
            assert!(blocked(Kind::Command, text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn wide_grants_block_and_narrow_ones_pass() {
        for grant in [
            "*",
            "Bash",
            "Read, Bash(*)",
            "Bash(:*)",
            "Bash(npm run test:*)",
            "Bash(git:*)",
            "[Bash]",
            "mcp__*",
            "Bash(cat $(id):*)",
            "Bash(git diff*)",
            "Edit(//**)",
            "Read(~/.ssh/**)",
            "Write(../x)",
        ] {
            assert!(
                !blocked(Kind::Skill, &format!("---\nallowed-tools: {grant}\n---\n")).is_empty(),
                "{grant}"
            );
        }
        for grant in [
            "Read, Grep, Glob",
            "Bash(git status:*), Bash(git diff *)",
            "[Read, Write(out/**)]",
            "''",
            "Bash(ls:*)",
            "Edit(src/**)",
        ] {
            assert!(
                blocked(Kind::Skill, &format!("---\nallowed-tools: {grant}\n---\n")).is_empty(),
                "{grant}"
            );
        }
    }
}
