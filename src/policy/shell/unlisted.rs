//! Programs without a rule of their own: what their words may have them read or run.

use super::eval::Machine;
use super::limits;
use super::run::{FILTERS, SHELLS};
use super::value::{Taint, Val};
use crate::policy::world::Kind;

/// Most tokens of one argument that are looked at.
const TOKENS: usize = 256;

/// Programs whose words are only shown, noted down, or compared with names. In order.
#[rustfmt::skip]
const DATA_ONLY: &[&str] = &[
    "aider", "amp", "apropos", "ava", "banner", "bats", "bd", "changeset", "claude", "codespell", "codex", "cog", "commitlint", "copilot", "cowsay",
    "crush", "cspell", "cursor-agent", "cypress", "cz", "czg", "dialog", "droid", "dunstify", "espeak", "figlet", "fossil", "gemini", "gitmoji", "goose",
    "gt", "gum", "hg", "jest", "jira", "jj", "kdialog", "linear", "llm", "mocha", "mods", "notify-send", "ollama", "opencode", "phpunit", "playwright",
    "pytest", "qwen", "rspec", "say", "sl", "spd-say", "svn", "tap", "task", "tea", "terminal-notifier", "toilet", "typos", "vale", "vitest", "wall",
    "whiptail", "write", "zenity",
];

/// Options whose value is a text or the name of a test. In order.
const TEXT_OPTIONS: &[&str] = &[
    "--body",
    "--comment",
    "--description",
    "--grep",
    "--message",
    "--notes",
    "--subject",
    "--summary",
    "--title",
    "-k",
    "-m",
];

/// Programs whose input is a program, or names files that are taken in. `-`: the input of a launcher. In order.
#[rustfmt::skip]
const INCLUDERS: &[&str] = &[
    "-", "amm", "as", "bb", "c++", "cc", "clang", "clang++", "clisp", "cpp", "csi", "ecl", "g++", "gcc", "gfortran", "ghci", "gp", "groovysh", "iex",
    "matlab", "maxima", "nasm", "ocaml", "pry", "psysh", "r2", "radare2", "sage", "scala-cli", "swipl", "tcc", "utop", "wish",
];

/// Commands that are known for what they do to files, besides the filters. In order.
const ACTORS: &[&str] = &[
    "chmod", "chown", "cp", "curl", "dd", "env", "find", "git", "mv", "nc", "printenv", "rm", "scp", "shred",
    "ssh", "sudo", "wget",
];

impl Machine<'_> {
    /// A program without rules of its own: its arguments may be paths that it reads, or commands that it runs.
    pub(super) fn unknown_program(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let mut taint = stdin.taint.without(Taint::ENV);
        self.notes_addresses(args);
        if args.iter().any(|a| a.text.contains("://") && a.taint.any(Taint::SECRET.with(Taint::ENV))) {
            self.deny("exfil.address", "The address carries data of this machine.");
        }
        for a in args {
            for part in [
                a.text.as_str(),
                a.text.split_once('=').map_or("", |(_, v)| v),
                a.text.trim_start_matches('@'),
                // `-iFILE`
                a.text
                    .strip_prefix('-')
                    .filter(|t| !t.starts_with('-'))
                    .and_then(|t| t.get(1..))
                    .unwrap_or_default(),
            ] {
                if part.is_empty() || part.len() > 4096 || part.contains('\n') {
                    continue;
                }
                let file = a.map(part);
                if self.names_secret(&file) || !a.is_known() {
                    self.read_file(&file);
                }
            }
            if self
                .meanings(a)
                .iter()
                .any(|p| self.world.kind(p) == Kind::File || self.state.files.contains_key(p))
            {
                taint = taint.with(Taint::FILE);
            }
            taint = taint.with(a.taint.without(Taint::ENV));
        }
        if DATA_ONLY.binary_search(&base).is_err() {
            self.named_within(args);
            self.carried(args, stdin);
        }
        if INCLUDERS.binary_search(&base).is_ok() {
            self.quoted_within(stdin);
        }
        self.suffix_runs(args, stdin);
        Val::unknown(taint)
    }

    /// Whether a word is the path of a secret: of one that is there, or one that is meant as a path.
    fn names_secret(&mut self, file: &Val) -> bool {
        let text = file.text.as_str();
        self.meanings(file).iter().any(|p| {
            self.is_secret(p).is_some()
                && (self.world.kind(p) != Kind::Missing || text.contains('/') || text.starts_with('.'))
        })
    }

    /// Secrets whose path is a part of an argument: a statement, a program, `NAME:PATH`.
    pub(super) fn named_within(&mut self, args: &[Val]) {
        let mut option = "";
        for a in args {
            let before = std::mem::replace(&mut option, a.text.as_str());
            let attached = a.text.split('=').next().unwrap_or_default();
            if TEXT_OPTIONS.contains(&before)
                || TEXT_OPTIONS.contains(&attached) && attached.len() < a.text.len()
            {
                continue;
            }
            self.quoted_within(a);
        }
    }

    /// Secrets that a text names between quotes, blanks, brackets and their like.
    pub(super) fn quoted_within(&mut self, text: &Val) {
        if !text.text.contains(SEPARATORS) || text.text.len() > limits::VALUE {
            return;
        }
        for token in tokens(&text.text) {
            let file = text.map(token);
            if self.names_secret(&file) {
                self.read_file(&file);
            }
            if self.done() {
                return;
            }
        }
    }

    /// Arguments that are commands: the program may run them.
    fn carried(&mut self, args: &[Val], stdin: &Val) {
        for a in args.iter().filter(|a| a.text.contains(' ') && a.text.len() < 4096).take(16) {
            let first = a.text.split_whitespace().next().unwrap_or_default();
            let first = first.rsplit('/').next().unwrap_or_default();
            if !(SHELLS.contains(&first) || FILTERS.contains(&first) || ACTORS.binary_search(&first).is_ok())
            {
                continue;
            }
            let before = self.found.clone();
            let line = a.text.clone();
            self.subshell(|m| m.program(&line, stdin));
            // Text that only starts like a command.
            if matches!(self.found.rule, "shell.syntax" | "run.unknown" | "shell.choices") {
                self.found = before;
            }
        }
    }

    /// An unknown program may be a wrapper: a suffix that deletes or runs a text is judged as if it ran.
    pub(super) fn suffix_runs(&mut self, args: &[Val], stdin: &Val) {
        for (i, a) in args.iter().enumerate().take(limits::SUFFIXES) {
            let base = a.text.rsplit('/').next().unwrap_or_default();
            let next = args.get(i + 1).map(|n| n.text.as_str()).unwrap_or_default();
            let runs = matches!(base, "rm" | "shred") && next.starts_with('-')
                || matches!(base, "sh" | "bash" | "zsh" | "dash")
                    && next.starts_with('-')
                    && next.contains('c')
                || matches!(base, "cat" | "head" | "tail" | "base64" | "less")
                    && !next.is_empty()
                    && i > 0
                    && args[i - 1].text == "--";
            if runs {
                self.run(&args[i..], stdin);
                return;
            }
        }
    }
}

/// What stands between the tokens of a text.
const SEPARATORS: [char; 17] =
    ['\'', '"', '`', ' ', '\t', '\n', '(', ')', '[', ']', '{', '}', '<', '>', ',', ';', ':'];

/// The words of a text between quotes, blanks, brackets, commas, colons and `=`; at most [`TOKENS`].
pub(super) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == '=' || SEPARATORS.contains(&c))
        .filter(|t| !t.is_empty() && t.len() < 1024)
        .take(TOKENS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_order() {
        for table in [DATA_ONLY, TEXT_OPTIONS, INCLUDERS, ACTORS] {
            assert!(table.windows(2).all(|w| w[0] < w[1]), "{table:?}");
        }
    }

    #[test]
    fn a_text_falls_into_its_words() {
        let of = |text| tokens(text).collect::<Vec<_>>();
        assert_eq!(of("load_str(\".env\")"), ["load_str", ".env"]);
        assert_eq!(of("select * from .env"), ["select", "*", "from", ".env"]);
        assert_eq!(of("x:.env"), ["x", ".env"]);
        assert_eq!(of(""), [""; 0]);
        assert_eq!(tokens(&"a ".repeat(TOKENS * 2)).count(), TOKENS);
    }
}
