//! Editors, pagers and others that can be told to run a command or read a file; patches.

use super::eval::Machine;
use super::limits;
use super::value::{Taint, Val};

impl Machine<'_> {
    /// Editors, pagers and others that can be told to run a command or read a file.
    pub(super) fn escapes(&mut self, base: &str, args: &[Val], stdin: &Val) {
        let commands: Vec<(usize, &str)> =
            args.iter().enumerate().map(|(i, a)| (i, a.text.as_str())).collect();
        match base {
            "vim" | "vi" | "nvim" | "ex" | "view" | "ed" | "nano" | "emacs" | "less" | "more" | "most"
            | "man" | "gvim" | "vimdiff" | "kak" | "hx" | "micro" | "red" | "emacsclient" => {
                for (i, t) in &commands {
                    let value = args.get(i + 1).cloned().unwrap_or_default();
                    match *t {
                        "-c" | "--cmd" | "-e" | "--eval" | "--execute" | "-sc" | "-ec" | "-esc" => {
                            self.editor_line(&value.text, stdin);
                        }
                        "-S" | "-u" | "-s" | "-l" | "--load" | "--script" | "-q" | "-w" | "-W"
                            if base != "less" =>
                        {
                            self.editor_script(&value, stdin);
                        }
                        "-P" | "--pager" if base == "man" => {
                            self.program(&value.text, &Val::default());
                        }
                        t if t.starts_with('+') => self.editor_line(&t[1..], stdin),
                        t if t.starts_with("--execute=")
                            || t.starts_with("--eval=")
                            || t.starts_with("--load=") =>
                        {
                            let value = value.map(t.split_once('=').map_or("", |(_, v)| v));
                            if t.starts_with("--load=") {
                                self.editor_script(&value, stdin);
                            } else {
                                self.editor_line(&value.text, stdin);
                            }
                        }
                        _ => {}
                    }
                }
                if matches!(base, "ed" | "ex" | "vim" | "vi" | "nvim" | "red") {
                    if stdin.taint.any(Taint::NET) {
                        self.deny("run.fetched", "The editor would do what another machine answers.");
                    }
                    for line in stdin.text.lines().take(limits::LITERALS) {
                        self.editor_line(line, &Val::default());
                    }
                }
            }
            "patch" => self.patch(args, stdin),
            "sponge" => {
                self.receives(args.to_vec(), stdin);
                for a in args {
                    self.write_file(a, true);
                }
            }
            "split" | "csplit" => {
                if let Some(a) = args.iter().find(|a| a.text.starts_with("--filter=")) {
                    let line = a.text[9..].to_owned();
                    self.program(&line, stdin);
                }
            }
            "entr"
            | "watchexec"
            | "nodemon"
            | "reflex"
            | "cargo-watch"
            | "concurrently"
            | "npm-run-all"
            | "foreman"
            | "honcho"
            | "start-server-and-test"
            | "wait-on" => {
                for a in args {
                    if a.text.contains(' ') {
                        let line = a.text.clone();
                        let before = self.found.clone();
                        self.program(&line, stdin);
                        if self.found.rule == "shell.syntax" {
                            self.found = before;
                        }
                    }
                }
                self.suffixes(args, stdin);
            }
            _ => {}
        }
    }

    /// One command of an editor: what it runs, reads and writes.
    fn editor_line(&mut self, line: &str, stdin: &Val) {
        for part in line.split('|').take(32) {
            let part = part.trim_start_matches(|c: char| {
                matches!(c, ':' | ' ' | '%' | ',' | '$' | '.' | '\'') || c.is_ascii_digit()
            });
            let words: Vec<&str> = part.split_whitespace().collect();
            let verb = words.first().copied().unwrap_or_default();
            let letters = verb.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
            let file = words.get(1..).unwrap_or_default().join(" ");
            // `w!` and `e!` are forced, not commands of the shell.
            let forced = matches!(verb, "w!" | "e!" | "wq!" | "x!" | "q!" | "qa!" | "wa!" | "sil!" | "silent!" | "view!" | "r!" if file.is_empty() || !verb.starts_with('r'));
            let after = if forced { part.get(verb.len()..).unwrap_or_default() } else { part };
            if let Some((_, command)) = after.split_once('!') {
                self.program(&command.replace("<CR>", ""), stdin);
            }
            if letters.starts_with("term") {
                self.program(&file, stdin);
            }
            match letters {
                "r" | "read" | "e" | "E" | "edit" | "tabe" | "tabnew" | "sp" | "split" | "vs" | "vsp"
                | "vsplit" | "view" | "sv" | "new" | "f" | "badd" | "arge" => {
                    self.read_file(&Val::known(file.clone()));
                }
                "so" | "source" | "luafile" | "luaf" | "pyfile" | "pyf" | "ru" | "runtime" => {
                    self.editor_script(&Val::known(file.clone()), stdin);
                }
                "w" | "write" | "sav" | "saveas" | "W" if !file.starts_with('!') && !file.is_empty() => {
                    self.write_file(&Val::known(file.trim_start_matches([' ', '>'])), true);
                }
                _ => {}
            }
            let calls = [
                "system(",
                "systemlist(",
                "shell-command",
                "call-process",
                "jobstart(",
                "termopen(",
                "start-process",
                "os.execute",
                "io.popen",
                "delete-directory",
                "delete-file",
            ];
            let pieces: Vec<String> =
                part.split(['"', '\'']).skip(1).step_by(2).take(32).map(str::to_owned).collect();
            if part.contains("delete-directory") || part.contains("delete(") {
                for piece in &pieces {
                    self.removal(&Val::known(self.at_home(piece)), true, false);
                }
            } else if calls.iter().any(|c| part.contains(c)) {
                for piece in &pieces {
                    self.program(piece, &Val::default());
                }
            }
            for piece in &pieces {
                self.read_file(&Val::known(self.at_home(piece)));
            }
        }
    }

    /// A path in a program's own text, where no shell has expanded the home.
    pub(super) fn at_home(&self, text: &str) -> String {
        match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                format!("{}{rest}", self.scope.home.to_string_lossy())
            }
            _ => text.to_owned(),
        }
    }

    /// A file of commands for an editor or a debugger.
    pub(super) fn editor_script(&mut self, file: &Val, stdin: &Val) {
        let content =
            if matches!(file.text.as_str(), "-" | "/dev/stdin") { stdin.clone() } else { self.content(file) };
        if content.taint.any(Taint::NET) {
            self.deny("run.fetched", "The editor would do what another machine answers.");
        }
        let before = self.found.clone();
        for line in content.text.lines().take(limits::LITERALS) {
            self.editor_line(line, &Val::default());
        }
        if self.found.rule == "shell.syntax" {
            self.found = before;
        }
    }

    /// What a file holds: as this command wrote it, or as it lies there.
    pub(super) fn content(&mut self, file: &Val) -> Val {
        let read = self.read_file(file);
        if read.is_known() && !read.text.is_empty() || read.taint.any(Taint::NET) {
            return read;
        }
        let there = self.meanings(file).iter().find_map(|p| self.world.read(p));
        there.map_or(read.clone(), |text| read.map(text))
    }

    /// `patch`: the files that its input names are written.
    fn patch(&mut self, args: &[Val], stdin: &Val) {
        let o = super::options::Options::split(
            args,
            &["-i", "--input", "-d", "--directory", "-p", "-o", "-r", "-F", "-B", "-z", "-D"],
            false,
        );
        let mut texts: Vec<Val> = o.values(&["-i", "--input"]).iter().map(|f| self.content(f)).collect();
        if let Some(file) = o.operands.first() {
            self.write_file(file, false);
        }
        if let Some(file) = o.operands.get(1) {
            texts.push(self.content(file));
        }
        if texts.is_empty() {
            texts.push(stdin.clone());
        }
        let dirs = o.values(&["-d", "--directory"]);
        let dir = dirs.first().cloned().unwrap_or_else(|| Val::known("."));
        for text in texts {
            self.within(&dir, |m| m.patched(&text));
        }
    }

    /// A patch that is applied: what it changes is written.
    pub(super) fn patched(&mut self, text: &Val) {
        if text.taint.any(Taint::NET) {
            self.deny(
                "run.fetched",
                "The patch comes from another machine. Save it, show it to the person, then apply it.",
            );
        }
        for line in text.text.lines().take(100_000) {
            let named = ["+++ ", "--- ", "rename to ", "rename from ", "copy to ", "*** "]
                .iter()
                .find_map(|start| line.strip_prefix(start));
            let Some(name) = named else { continue };
            let name = name.split('\t').next().unwrap_or_default().trim().trim_matches('"');
            if name == "/dev/null" || name.is_empty() {
                continue;
            }
            // By however many leading parts are stripped.
            let mut rest = Some(name);
            for _ in 0..3 {
                let Some(path) = rest else { break };
                let places = self.meanings(&Val::known(path));
                for place in places {
                    if let Some(what) = crate::policy::paths::protected(&place, self.scope) {
                        self.find(crate::policy::tools::protected_denied(&place, what));
                    }
                }
                rest = path.split_once('/').map(|(_, rest)| rest);
            }
            if self.done() {
                break;
            }
        }
    }
}
