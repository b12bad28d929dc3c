//! Guarded places among the arguments of programs of which no rule says what they write.
//!
//! A word, the value of an option, or what follows `=` that leads to a hook, to an agent's or an operator's settings, or
//! to what continuous integration runs is asked about, unless the program is known to read only. With an option that
//! names an output even a reader writes. Each argument is looked at once.

use super::eval::Machine;
use super::language;
use super::run::{SHELLS, starts_another};
use super::unlisted::tokens;
use super::value::Val;
use crate::policy::paths;
use std::path::PathBuf;

/// Programs whose rules say what they write, and those whose words are patterns, texts or another command. In order.
#[rustfmt::skip]
const SAID: &[&str] = &[
    ".", ":", "[", "[[", "ack", "ag", "alias", "awk", "cd", "chgrp", "chmod", "chown", "command", "cp", "dd", "declare", "doas", "echo", "egrep", "env",
    "eval", "exec", "export", "fd", "fdfind", "fgrep", "find", "gawk", "git", "grep", "install", "jess", "kill", "link", "ln", "local", "mkdir", "mv",
    "nice", "nohup", "parallel", "patch", "pcregrep", "pgrep", "pkill", "printf", "pushd", "read", "rename", "rg", "rgrep", "ripgrep", "rm", "rmdir",
    "sed", "set", "shred", "source", "sudo", "tee", "test", "timeout", "touch", "trap", "truncate", "typeset", "ugrep", "unlink", "unset", "watch", "xargs",
    "zgrep",
];

/// Programs that read the files they are given. In order.
#[rustfmt::skip]
const READERS: &[&str] = &[
    "act", "actionlint", "ajv", "ansible-lint", "apt", "apt-get", "aws", "az", "base64", "basename", "bat", "batcat", "bun", "cargo", "cat",
    "check-jsonschema", "checkov", "circleci", "cksum", "claude", "cloc", "cmp", "code", "codespell", "column", "comm", "cspell", "curl", "cursor", "cut",
    "delta", "devcontainer", "diff", "difft", "dirname", "docker", "docker-compose", "dotenv", "dpkg", "du", "exa", "expand", "eza", "file", "fmt", "fold",
    "gcloud", "gh", "gitlab-ci-local", "gitleaks", "glab", "glow", "go", "gsutil", "head", "helm", "hexdump", "hexyl", "husky", "jaq", "jq",
    "jsonlint", "kubectl", "ldd", "lefthook", "less", "lint-staged", "ls", "lsd", "lsof", "make", "man", "markdownlint", "markdownlint-cli",
    "markdownlint-cli2", "md5sum", "mdcat", "mdl", "more", "mosh", "nl", "nm", "npm", "npx", "objdump", "oc", "od", "open", "pandoc", "pnpm", "podman",
    "pre-commit", "prettyping", "psql", "pytest", "rclone", "readelf", "readlink", "realpath", "rsync", "scc", "scp", "semgrep", "sha1sum", "sha256sum",
    "shellcheck", "size", "sort", "ssh", "ssh-add", "ssh-keygen", "stat", "strings", "subl", "systemctl", "tac", "tail", "tar", "tokei", "tree",
    "trufflehog", "type", "vale", "wc", "wget", "which", "xdg-open", "xxd", "yamllint", "yarn", "yq", "zed", "zip", "zizmor",
];

/// Programs in whose texts a place may stand that they write: statements, editors' commands, formats. In order.
const BY_TEXT: &[&str] = &[
    "clickhouse-client",
    "clickhouse-local",
    "curl",
    "duckdb",
    "mongosh",
    "mysql",
    "nvim",
    "psql",
    "redis-cli",
    "sqlite",
    "sqlite3",
    "vi",
    "view",
    "vim",
];

/// Options that have a program look and not write.
const CHECKS: &[&str] =
    &["--check", "--diff", "--dry-run", "--help", "--lint", "--list-different", "--version"];

/// Verbs of clients that put something on this machine where they are told.
const COPIES: &[&str] = &["clone", "copy", "copyto", "cp", "download", "get", "mv", "pull", "save", "sync"];

/// Parts of long options' names that say that the program writes there.
const OUTS: &[&str] = &[
    "alt-svc",
    "cookies",
    "cov",
    "dest",
    "dir",
    "dump",
    "etag-save",
    "export",
    "hsts",
    "junit",
    "libcurl",
    "log",
    "out",
    "prefix",
    "profile",
    "rdb",
    "rejected",
    "report",
    "root",
    "save",
    "screenshot",
    "target",
    "tee",
    "temp",
    "warc",
    "write",
    "xml",
];

/// Reasons for which a place counts although only a word leads there.
const STRICT: &[&str] = &[
    "a file that an agent obeys",
    "a file that continuous integration runs",
    "a file that grants access",
    "a file that runs by itself",
    "a start-up or configuration file of the operator",
    "git's own configuration, hooks or objects",
];

/// Reasons that count for an output, where a word is often only the name of something that is read.
const LOOSE: &[&str] = &[
    "a file that some agents obey",
    "a hidden file of the operator's home",
    "a setting of a tool that can make it run something",
];

impl Machine<'_> {
    /// Asks about arguments that lead to a guarded place.
    pub(super) fn touches(&mut self, base: &str, args: &[Val]) {
        if SAID.binary_search(&base).is_ok() || SHELLS.contains(&base) || self.done() {
            return;
        }
        let is = |words: &[&str]| args.iter().any(|a| words.contains(&a.text.as_str()));
        let copies = is(COPIES)
            && matches!(
                base,
                "aws"
                    | "docker"
                    | "gcloud"
                    | "gh"
                    | "glab"
                    | "gsutil"
                    | "helm"
                    | "kubectl"
                    | "oc"
                    | "podman"
                    | "rclone"
            );
        let in_place = base == "yq" && is(&["-i", "--inplace"]);
        let makes = language::language(base).is_some() && !is(&["venv", "virtualenv"]);
        let reads =
            (READERS.binary_search(&base).is_ok() || makes || starts_another(base)) && !copies && !in_place
                || is(CHECKS);
        let mut option = String::new();
        for (i, a) in args.iter().enumerate() {
            let before = std::mem::take(&mut option);
            let text = a.text.as_str();
            let (name, value) = match text.strip_prefix("--") {
                Some(_) => match text.split_once('=') {
                    Some((name, value)) => (name.to_owned(), value),
                    None => {
                        option = text.to_owned();
                        continue;
                    }
                },
                None if text.starts_with('-') && text.len() > 1 => match text.char_indices().nth(2) {
                    // `-oFILE`; in `-xo FILE` the last letter is the option.
                    Some((at, _)) => {
                        option = format!("-{}", text.chars().next_back().unwrap_or('-'));
                        (text.get(..at).unwrap_or_default().to_owned(), text.get(at..).unwrap_or_default())
                    }
                    None => {
                        option = text.to_owned();
                        continue;
                    }
                },
                None => (before, text),
            };
            let out = writes_out(&name, reads)
                || base == "wget" && name == "-a"
                || copies && i > 0 && i + 1 == args.len();
            if reads && !out {
                continue;
            }
            let after = value.split_once('=').map_or("", |(_, v)| v);
            for part in [value, after] {
                if self.asks_about(base, &a.map(part), out) {
                    return;
                }
            }
        }
        if BY_TEXT.binary_search(&base).is_ok() {
            let holds = |text: &str| {
                if base == "curl" { text.contains("%output{") } else { text.contains([' ', '\'', '"']) }
            };
            for a in args.iter().filter(|a| holds(&a.text)) {
                for token in tokens(&a.text) {
                    if self.asks_about(base, &a.map(token), false) {
                        return;
                    }
                }
            }
        }
    }

    /// Whether `word` is a guarded place, which is then asked about.
    fn asks_about(&mut self, base: &str, word: &Val, out: bool) -> bool {
        let Some((path, what)) = self.guarded(word, out) else { return false };
        self.ask(
            "protected.write",
            format!(
                "{} is {what}, and {} may write it. A person has to agree.",
                crate::sanitise::path(&path),
                base.chars().take(40).collect::<String>()
            ),
        );
        true
    }

    /// The guarded place that `word` leads to; `out`: where a file of any name may be made as well.
    fn guarded(&mut self, word: &Val, out: bool) -> Option<(PathBuf, &'static str)> {
        let text = word.text.as_str();
        if text.is_empty() || text.len() > 4096 || text.contains('\n') || text.contains("://") {
            return None;
        }
        let home =
            text.strip_prefix("~/").map(|rest| self.scope.home.join(rest).to_string_lossy().into_owned());
        let word = home.map_or_else(|| word.clone(), |path| word.map(path));
        let counts = |what: &&'static str| STRICT.contains(what) || out && LOOSE.contains(what);
        self.meanings(&word).into_iter().find_map(|path| {
            let own = paths::protected(&path, self.scope).filter(counts);
            let inner = || out.then(|| paths::protected(&path.join("x"), self.scope)).flatten();
            let what = own.or_else(|| inner().filter(|w| STRICT.contains(w)))?;
            Some((path, what))
        })
    }
}

/// Whether an option of this name is followed by what the program writes; some letters are other things to readers.
fn writes_out(name: &str, reads: bool) -> bool {
    match name.strip_prefix("--") {
        Some(long) => !long.starts_with("config") && OUTS.iter().any(|o| long.contains(o)),
        None => matches!(name, "-O" | "-o") || !reads && matches!(name, "-D" | "-d" | "-t" | "-w"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_order() {
        for table in [SAID, READERS, BY_TEXT, CHECKS, COPIES, OUTS, STRICT, LOOSE] {
            assert!(table.windows(2).all(|w| w[0] < w[1]), "{table:?}");
        }
    }

    #[test]
    fn options_that_name_an_output_are_known() {
        for name in
            ["-o", "--out", "--output-dir", "--junitxml", "--target-dir", "--etag-save", "--python_out"]
        {
            assert!(writes_out(name, true), "{name}");
        }
        assert!(writes_out("-d", false) && !writes_out("-d", true));
        for name in ["-i", "--config", "--config-dir", "--file", "--workspace", "--kubeconfig", ""] {
            assert!(!writes_out(name, false), "{name}");
        }
    }
}
