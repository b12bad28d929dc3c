//! Other agents: started so that they ask nobody, or given something new to run or to obey.

use super::eval::Machine;
use super::value::Val;

/// An agent's program, the words with which it works on without asking, and the options with which it does.
type Agent = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Agents, in order. What the client itself may be given is in the rules of the guard.
#[rustfmt::skip]
const AGENTS: &[Agent] = &[
    ("aider", &[], &["--yes", "--yes-always"]),
    ("amp", &[], &["--dangerously-allow-all", "--execute", "-x"]),
    ("auggie", &[], &["--print", "-p"]),
    ("cline", &[], &["--yolo", "-y"]),
    ("cn", &[], &["--auto", "-p"]),
    ("codex", &["e", "exec"], &["--full-auto", "--yolo"]),
    ("copilot", &[], &["--allow-all-paths", "--allow-all-tools", "--allow-tool", "--yolo"]),
    ("crush", &["run"], &["--yolo", "-y"]),
    ("cursor-agent", &[], &["--force", "--yolo", "-f"]),
    ("droid", &[], &["--auto", "--skip-permissions-unsafe"]),
    ("gemini", &[], &["--approval-mode", "--yolo", "-y"]),
    ("goose", &["run"], &[]),
    ("kilo", &["run"], &["--auto", "--yolo"]),
    ("kimi", &[], &["--auto-approve", "--yolo", "--yes", "-y"]),
    ("kiro-cli", &[], &["--trust-all-tools", "--trust-tools", "-a"]),
    ("opencode", &["run"], &[]),
    ("openhands", &[], &["--always-approve", "--headless", "--yolo"]),
    ("q", &[], &["--trust-all-tools", "--trust-tools"]),
    ("qwen", &[], &["--approval-mode", "--yolo", "-y"]),
    ("vibe", &[], &["--auto-approve", "-p"]),
];

/// What an agent keeps that it runs or obeys.
const KEEPS: &[&str] = &["extension", "extensions", "hooks", "mcp", "plugin", "plugins", "skill", "skills"];
/// Verbs that add to it.
const ADDS: &[&str] = &["add", "add-json", "enable", "import", "install", "link", "marketplace", "migrate"];

/// Programs that put servers, skills or rules into agents' settings, and the words with which they do (none: always).
const INSTALLERS: &[(&str, &[&str])] = &[
    ("add-mcp", &[]),
    ("add-skill", &[]),
    ("claude-code-templates", &[]),
    ("install-mcp", &[]),
    ("mcp-get", &["install"]),
    ("mcp-installer", &[]),
    ("mcpm", &["add", "install"]),
    ("openskills", &["install", "sync"]),
    ("skills", &["add", "install", "update"]),
    ("smithery", &["add", "install"]),
];

/// Programs that have another one run a command: a service of the session, a terminal, whatever has the keyboard.
#[rustfmt::skip]
const SEATS: &[(&str, &[&str])] = &[
    ("busctl", &["call"]),
    ("dbus-send", &[]),
    ("gdbus", &["call"]),
    ("kitty", &["send-key", "send-text"]),
    ("wezterm", &["send-text"]),
    ("wtype", &[]),
    ("xdotool", &["key", "type"]),
    ("ydotool", &["key", "type"]),
    ("zellij", &["write", "write-chars"]),
];

/// Programs that only show or look for a word.
const SHOWS: &[&str] = &["ag", "awk", "echo", "egrep", "fgrep", "gh", "git", "grep", "printf", "rg", "sed"];

impl Machine<'_> {
    /// Asks about another agent that would ask nobody, and about what would be added to one.
    pub(super) fn other_agent(&mut self, base: &str, args: &[Val]) {
        let words: Vec<&str> =
            args.iter().map(|a| a.text.as_str()).filter(|a| !a.starts_with('-')).take(8).collect();
        // The client by any path and any interpreter.
        let brakeless = args.iter().any(|a| a.text.contains("dangerously-skip-permissions"));
        if brakeless && SHOWS.binary_search(&base).is_err() {
            self.deny("guard.client", "The command starts the client without its guards.");
        }
        let client = args.iter().any(|a| a.text.starts_with("@anthropic-ai/claude-code"));
        if client && matches!(base, "bun" | "npm" | "pnpm" | "yarn")
            || base == "claude" && matches!(words.first(), Some(&"update" | &"upgrade"))
        {
            self.ask("guard.client", "The command puts another version of the client in place.");
        }
        if SEATS.iter().any(|(program, verbs)| {
            *program == base && (verbs.is_empty() || words.iter().any(|w| verbs.contains(w)))
        }) {
            self.ask(
                "run.elsewhere",
                "The command has another program act in its place. A person has to agree.",
            );
        }
        // `npx @smithery/cli`, `bunx @scope/NAME`: the package is the first word.
        let package = matches!(base, "bunx" | "npx" | "pnpx")
            .then(|| words.first().copied().unwrap_or_default())
            .filter(|p| p.starts_with("@smithery/"));
        let base = if package.is_some() { "smithery" } else { base.split('@').next().unwrap_or_default() };
        if INSTALLERS.iter().any(|(program, verbs)| {
            *program == base && (verbs.is_empty() || words.iter().any(|w| verbs.contains(w)))
        }) {
            self.ask("guard.client", "The command gives an agent something to run or to obey.");
            return;
        }
        let Some((_, verbs, options)) = AGENTS.iter().find(|(program, ..)| *program == base) else { return };
        let given = |a: &Val| {
            let name = a.text.split('=').next().unwrap_or_default();
            options.contains(&name)
        };
        if words.first().is_some_and(|w| verbs.contains(w)) || args.iter().any(given) {
            self.ask(
                "guard.client",
                "The command starts another agent that asks nobody. A person has to agree.",
            );
        }
        if words.first().is_some_and(|w| KEEPS.contains(w)) && words.iter().skip(1).any(|w| ADDS.contains(w))
        {
            self.ask("guard.client", "The command gives another agent something to run or to obey.");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_order() {
        assert!(AGENTS.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(INSTALLERS.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(SEATS.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(SHOWS.windows(2).all(|w| w[0] < w[1]));
        for (_, verbs, options) in AGENTS {
            assert!(verbs.windows(2).all(|w| w[0] < w[1]) && options.len() < 8);
        }
        for table in [KEEPS, ADDS] {
            assert!(table.windows(2).all(|w| w[0] < w[1]), "{table:?}");
        }
    }
}
