//! Ways to the guard and its client that go round their names, and to places where a command runs outside of what is
//! judged: another process tree, another terminal, a copy of the program.

use super::eval::Machine;
use super::value::{HOLE, Val};

/// The client's options that take its guards away.
const BRAKES_OFF: &[&str] = &["--dangerously-skip-permissions", "--allow-dangerously-skip-permissions"];

/// Programs that take such an option for a text.
#[rustfmt::skip]
const TEXTUAL: &[&str] = &[
    "echo", "printf", "grep", "egrep", "fgrep", "rg", "ag", "ack", "ugrep", "git", "gh", "sed", "awk", "gawk", "man", "test", "[", "jess", "cat", "less", "sort", "tr", "cut", "set", "alias", "read", "expr", "jq", "yq", "diff", "basename", "which", "type",
];

/// Programs that write into another terminal or window, and the words with which they do; none: always.
#[rustfmt::skip]
const TYPISTS: &[(&str, &[&str])] = &[
    ("xdotool", &["type", "key", "keydown"]), ("ydotool", &["type", "key"]), ("dotool", &[]), ("wtype", &[]), ("kitty", &["send-text", "send-key", "launch"]), ("kitten", &["send-text", "send-key", "launch"]), ("wezterm", &["send-text", "spawn"]), ("zellij", &["write", "write-chars", "run"]),
];

/// Programs that call services over D-Bus.
const CALLERS: &[&str] = &["busctl", "gdbus", "dbus-send", "qdbus", "qdbus6"];

impl Machine<'_> {
    /// Notes what acts on the guard or the client by another way, or runs a command elsewhere.
    pub(super) fn notes_seats(&mut self, base: &str, args: &[Val]) {
        let any = |f: &dyn Fn(&str) -> bool| args.iter().any(|a| f(&a.text));
        let says = |words: &[&str]| any(&|t| words.contains(&t));
        if !TEXTUAL.contains(&base)
            && any(&|t| {
                BRAKES_OFF.iter().any(|o| t == *o || t.strip_prefix(o).is_some_and(|r| r.starts_with('=')))
            })
        {
            self.deny("guard.client", "The command starts the client without its guards.");
        }
        if matches!(base, "node" | "bun" | "deno" | "nodejs")
            && let Some(at) = args
                .iter()
                .position(|a| a.text.ends_with("claude-code/cli.js") || a.text.ends_with("/bin/claude"))
        {
            let rest: Vec<Val> = args.iter().skip(at + 1).cloned().collect();
            self.guard("cli.js", &rest);
        }
        let installs = ["i", "install", "add", "update", "upgrade", "up"];
        if matches!(base, "npm" | "pnpm" | "yarn" | "bun" | "brew")
            && says(&installs)
            && any(&|t| t.contains("claude-code"))
            || matches!(base, "claude" | "claude-code")
                && args.first().is_some_and(|a| matches!(a.text.as_str(), "update" | "upgrade" | "install"))
        {
            self.ask(
                "guard.client",
                "The command puts another version of the client in place. A person has to agree.",
            );
        }
        if matches!(base, "cp" | "ln" | "install" | "dd" | "rsync" | "scp" | "link") {
            let from = args.len().saturating_sub(1);
            let own = |t: &str| {
                let name =
                    t.strip_prefix("if=").unwrap_or(t).trim_end().rsplit('/').next().unwrap_or_default();
                matches!(name, "jess" | "jess-hook" | "jess-run" | "jess-check")
            };
            if args.iter().take(from).any(|a| own(&a.text) && !self.is_directory(a)) {
                self.ask(
                    "guard.binary",
                    "The command makes the guard's program available under another name.",
                );
            }
        }
        if matches!(base, "chrt" | "taskset" | "ionice")
            && any(&|t| t == "$PPID" || t.contains("claude"))
            && says(&["-p", "--pid", "-a"])
        {
            self.deny("guard.kill", "The command takes hold of the guard or the client.");
        }
        if matches!(base, "chmod" | "chown" | "mv" | "rm" | "umount" | "fusermount" | "fusermount3")
            && any(&|t| t.starts_with("/run/user/") && t.trim_end_matches('/').matches('/').count() == 3)
        {
            self.deny("guard.files", "The command takes the directory away in which the guard listens.");
        }
        let calls = CALLERS.contains(&base)
            && any(&|t| {
                t.contains("systemd1")
                    || t.contains("StartTransientUnit")
                    || t.contains("Terminal")
                    || t.contains("gnome.Shell")
                    || t.contains("klauncher")
            });
        let types = TYPISTS.iter().any(|(program, words)| {
            *program == base && (words.is_empty() && !args.is_empty() || says(words))
        });
        let script = base == "osascript" && any(&|t| t.contains("do script") || t.contains("keystroke"));
        if calls || types || script {
            self.ask(
                "run.remote",
                "What the command starts or types runs in another place than the one that is judged. A person has to agree.",
            );
        }
        if base == "socat"
            && any(&|t| {
                t.to_uppercase().contains("UNIX") && !t.contains("LISTEN") || t.contains("MESSAGING_SOCKET")
            })
        {
            self.ask(
                "net.socket",
                "The command talks to a local service behind a socket. A person has to agree.",
            );
        }
    }

    /// Whether a word names a directory that is there.
    fn is_directory(&mut self, word: &Val) -> bool {
        let places = self.meanings(word);
        places.iter().any(|p| self.world.kind(p) == crate::policy::Kind::Dir)
    }

    /// A terminal of another program: what is written to it shows there, or is typed there.
    pub(super) fn notes_terminal(&mut self, target: &Val) {
        let text = target.text.as_str();
        let terminal = text.strip_prefix("/dev/pts/").or_else(|| text.strip_prefix("/dev/tty"));
        if terminal.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == HOLE)) {
            self.ask(
                "run.remote",
                "The command writes to another program's terminal. A person has to agree.",
            );
        }
    }

    /// Programs on the command line that end the client by way of what is around them, or type into its terminal.
    pub(super) fn code_reaches_seats(&mut self, code: &str) {
        let has = |words: &[&str]| words.iter().any(|w| code.contains(w));
        let ends = has(&[
            "os.kill",
            "process.kill",
            "Process.kill",
            "kill(",
            "killpg",
            "kill 9",
            "kill -9",
            "kill 'KILL'",
            "kill \"KILL\"",
            "kill KILL",
            "kill 'TERM'",
            "kill TERM",
            ".terminate()",
        ]);
        let around = has(&[
            "ppid",
            "PPID",
            "getpgrp",
            "killpg(0",
            "getpgid(0",
            "getsid",
            "os.kill(0",
            "os.kill(-1",
            "process.kill(0",
            "process_iter",
            "jess",
            "claude",
        ]) || has(&["psutil"]) && has(&[".parent(", ".parents("]);
        if ends && around {
            self.deny("guard.kill", "The program stops the guard or the client.");
        } else if ends
            && has(&["process_iter", "psutil.pids"])
            && !has(&["name", "cmdline", "port", "connections"])
        {
            self.deny("guard.kill", "The program stops every process that there is.");
        }
        if has(&["TIOCSTI", "0x5412", "21522"]) {
            self.ask("run.remote", "The program types into a terminal. A person has to agree.");
        }
    }
}
