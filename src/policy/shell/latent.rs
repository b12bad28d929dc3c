//! Text that bash evaluates although it stands in quotes: subscripts, prompts, callbacks; and builtins that change what
//! a later word means.

use super::eval::Machine;
use super::value::{Taint, Val};

/// Variables that bash expands as it would a word in double quotes, each time it prompts or traces.
const PROMPTS: [&str; 5] = ["PS0", "PS1", "PS2", "PS3", "PS4"];
/// Variables that hold a command, whether or not one follows on the same line.
const COMMANDS: [&str; 7] =
    ["PROMPT_COMMAND", "BASH_ENV", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "LD_PRELOAD", "PATH"];

impl Machine<'_> {
    /// `name[$(…)]`: where bash takes a text for the name of a variable, or for arithmetic, it runs what the subscript
    /// holds.
    pub(super) fn latent(&mut self, text: &str) {
        if text.contains("[$(") || text.contains("[`") {
            self.expanded(text);
        }
    }

    /// What a text runs when it is expanded once more.
    pub(super) fn expanded(&mut self, text: &str) {
        if (text.contains("$(") || text.contains('`')) && !self.done() {
            self.single(text);
        }
    }

    /// A value that a variable of this shell gets.
    pub(super) fn latent_value(&mut self, name: &str, value: &[Val]) {
        for v in value.iter().take(64) {
            if PROMPTS.contains(&name) {
                self.expanded(&v.text.clone());
            } else {
                self.latent(&v.text.clone());
            }
        }
        if COMMANDS.contains(&name)
            && let Some(first) = value.first().cloned()
        {
            self.environment(name, &first);
        }
        if name == "GLOBIGNORE" {
            self.state.dotglob = true;
        }
    }

    /// Arguments of builtins that are names, arithmetic or callbacks.
    pub(super) fn latent_arguments(&mut self, base: &str, args: &[Val], stdin: &Val) {
        let after = |flag: &str| {
            args.iter().position(|a| a.text == flag).and_then(|at| args.get(at + 1)).map(|a| a.text.clone())
        };
        match base {
            "let" | "unset" | "test" | "[" | "declare" | "typeset" | "local" | "readonly" | "export"
            | "read" | "mapfile" | "readarray" | "getopts" | "wait" => {
                for a in args.iter().take(64) {
                    self.latent(&a.text.clone());
                }
            }
            "printf" => {
                if let Some(name) = after("-v") {
                    self.latent(&name);
                }
            }
            _ => {}
        }
        match base {
            "mapfile" | "readarray" => {
                if let Some(callback) = after("-C") {
                    self.program(&format!("{callback} 0 x"), stdin);
                }
            }
            "compgen" | "complete" => {
                if let Some(command) = after("-C") {
                    self.program(&command, stdin);
                }
                if let Some(words) = after("-W") {
                    self.expanded(&words);
                }
            }
            "hash" if args.iter().any(|a| a.text == "-p") => {
                self.ask(
                    "run.unknown",
                    "The command makes a name stand for another program. Call that program.",
                );
            }
            "enable" if args.iter().any(|a| a.text.starts_with("-f")) => {
                self.ask("run.preload", "The command loads code into the shell.");
            }
            "shopt" if args.iter().any(|a| a.text == "dotglob") => self.state.dotglob = true,
            _ => {}
        }
    }

    /// Whether an archive or a repository from another machine was unpacked by this command, so that a file which is not
    /// there yet may be one of its.
    pub(super) fn unpacks(&mut self, base: &str, args: &[Val], stdin: &Val) {
        let fetched = match base {
            "tar" | "bsdtar" | "unzip" | "7z" | "cpio" | "unar" => {
                stdin.taint.any(Taint::NET)
                    || args.iter().any(|a| {
                        let paths = self.meanings(a);
                        paths.iter().any(|p| self.state.files.get(p).is_some_and(|f| f.taint.any(Taint::NET)))
                    })
            }
            "git" | "gh" | "hg" | "svn" => {
                args.iter().take(3).any(|a| matches!(a.text.as_str(), "clone" | "checkout"))
                    && args.iter().any(|a| a.text.contains("://") || a.text.contains('@'))
                    || base == "gh"
                        && matches!(
                            args.iter().map(|a| a.text.as_str()).collect::<Vec<_>>().as_slice(),
                            ["release" | "run", "download", ..] | ["repo", "clone", ..]
                        )
                    || base == "git" && args.first().is_some_and(|a| a.text == "pull") && args.len() > 2
            }
            "scp" | "rsync" | "sftp" => args.iter().any(|a| {
                let head = a.text.split('/').next().unwrap_or_default();
                !a.text.starts_with('-') && head.contains(':') && !a.text.starts_with('/')
            }),
            "curl" => args
                .iter()
                .any(|a| a.text.starts_with('-') && !a.text.starts_with("--") && a.text.contains('J')),
            "wget" => args.iter().any(|a| {
                matches!(
                    a.text.as_str(),
                    "-i" | "--input-file" | "-r" | "-m" | "--mirror" | "--content-disposition"
                ) || a.text == "-qi"
            }),
            _ => false,
        };
        self.state.unpacked |= fetched;
    }

    /// A file that runs and is not there: it may come out of what was just fetched.
    pub(super) fn runs_unpacked(&mut self, file: &Val) {
        use crate::policy::world::Kind;
        if self.state.unpacked && self.meanings(file).iter().any(|p| self.world.kind(p) == Kind::Missing) {
            self.ask(
                "run.fetched",
                "The command runs something out of what it has just fetched. Look at it first, then run it in another call.",
            );
        }
    }
}
