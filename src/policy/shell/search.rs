//! Programs that search through files or pack them.

use super::eval::Machine;
use super::limits;
use super::options::Options;
use super::value::{HOLE, Taint, Val};
use crate::policy::paths;
use crate::policy::tools::secret_denied;
use crate::policy::world::Kind;
use std::path::Path;

/// Programs whose path arguments are not read.
#[rustfmt::skip]
pub(super) const BLIND: &[&str] = &[
    "ls", "wc", "stat", "touch", "mkdir", "rmdir", "chmod", "chown", "chgrp", "du", "tree", "exa", "eza", "lsd", "test", "logger", "notify-send", "say", "seq", "expr", "bc", "dc", "printenv", "tput", "stty", "locale", "getconf", "lsof", "fuser", "pgrep", "pidof", "killall5", "man", "info", "apropos", "tldr", "jest", "factor", "cal", "watchman", "ln", "install", "link", "file",
];

/// Whether a pattern finds a line of a text: as an extended expression or as it stands, in any case of letters.
fn finds(pattern: &str, text: &str) -> bool {
    let regex = regex::RegexBuilder::new(&pattern.replace("\\|", "|"))
        .case_insensitive(true)
        .multi_line(true)
        .size_limit(1 << 20)
        .build();
    regex.is_ok_and(|r| r.is_match(text)) || text.to_lowercase().contains(&pattern.to_lowercase())
}

impl Machine<'_> {
    /// Searches that print lines.
    pub(super) fn searches(
        &mut self,
        pattern: &str,
        roots: Vec<Val>,
        hidden: bool,
        filter: Option<&[String]>,
    ) {
        for root in roots {
            for path in self.meanings(&root) {
                if self.is_secret(&path).is_some() {
                    self.deny_secret(&path);
                    continue;
                }
                if self.world.kind(&path) == Kind::File {
                    continue;
                }
                if let Some(what) = paths::secret_place(&path, self.scope)
                    && hidden
                    && what != "a system directory that holds secrets"
                {
                    self.find(secret_denied(&path, what));
                }
                let ignored = if hidden {
                    String::new()
                } else {
                    self.world.read(&self.scope.project.join(".gitignore")).unwrap_or_default()
                };
                let passed_over = |p: &std::path::Path| {
                    !hidden
                        && p.strip_prefix(&path).is_ok_and(|below| {
                            below.components().any(|c| {
                                let name = c.as_os_str().to_string_lossy();
                                name.starts_with('.')
                                    || ignored.lines().any(|l| l.trim().trim_matches('/') == name)
                            })
                        })
                };
                let hits = paths::secrets_below(&path, self.scope, self.world, &|p| {
                    !passed_over(p)
                        && filter.is_none_or(|f| {
                            f.is_empty()
                                || f.iter().any(|g| {
                                    p.file_name().is_some_and(|n| {
                                        super::value::glob_matches(
                                            &format!("x{g}"),
                                            &format!("x{}", n.to_string_lossy()),
                                        )
                                    })
                                })
                        })
                });
                let aimed = filter.is_some_and(|f| {
                    f.iter().any(|g| g.starts_with(".e") || g.contains("env") || g.starts_with(".*"))
                });
                let shown = hits.iter().find(|hit| {
                    hidden && (seeks_secrets(pattern) || aimed)
                        || pattern.contains(HOLE)
                        || self.world.read(hit).is_some_and(|text| finds(pattern, &text))
                });
                if let Some(hit) = shown {
                    self.find(secret_denied(hit, "a secret file that the search would print"));
                }
            }
        }
    }

    pub(super) fn grep(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let valued: &[&str] = if matches!(base, "rg" | "ripgrep") {
            &[
                "-e",
                "--regexp",
                "-f",
                "--file",
                "-g",
                "--glob",
                "--iglob",
                "-t",
                "--type",
                "-T",
                "-A",
                "-B",
                "-C",
                "-m",
                "--max-count",
                "--max-depth",
                "-d",
                "-j",
                "-M",
                "--sort",
                "-r",
                "--replace",
                "-E",
                "--pre",
                "--pre-glob",
            ]
        } else {
            &[
                "-e",
                "--regexp",
                "-f",
                "--file",
                "-A",
                "-B",
                "-C",
                "-m",
                "--max-count",
                "--include",
                "--exclude",
                "--exclude-dir",
                "-d",
                "-D",
                "--color",
                "--label",
                "-G",
                "--ignore",
            ]
        };
        let o = Options::split(args, valued, false);
        let mut ops = o.operands.clone();
        for file in o.values(&["-f", "--file"]) {
            self.read_file(&file);
        }
        for line in o.values(&["--pre"]) {
            self.run(&[line], &Val::default());
        }
        let mut patterns = o.values(&["-e", "--regexp"]);
        if patterns.is_empty() && !o.has(&["-f", "--file", "--files"]) && !ops.is_empty() {
            patterns.push(ops.remove(0));
        }
        let pattern = patterns.iter().map(|p| p.text.clone()).collect::<Vec<_>>().join("|");
        let quiet = o.has(&["-q", "--quiet", "-c", "--count", "-l", "--files-with-matches", "-L"]);
        let rg = matches!(base, "rg" | "ripgrep" | "ag" | "ack");
        let recursive = rg || o.has(&["-r", "-R", "--recursive"]) || base == "ugrep" && o.has(&["-r"]);
        let mut taint = stdin.taint;
        if taint.any(Taint::ENV)
            && !o.has(&["-v", "--invert-match"])
            && !seeks_secrets(&pattern)
            && pattern.chars().filter(|c| c.is_ascii_alphabetic()).count() >= 3
            && !pattern.contains(HOLE)
            && !pattern.contains(".*")
        {
            taint = taint.without(Taint::ENV);
        }
        if quiet && taint.any(Taint::ENV) {
            taint = taint.without(Taint::ENV);
        }
        let files: Vec<Val> = ops.clone();
        if recursive {
            let hidden = if rg {
                o.given.iter().any(|(n, _)| {
                    matches!(n.as_str(), "-u" | "--hidden" | "--no-ignore" | "-." | "--unrestricted")
                })
            } else {
                true
            };
            let filter: Vec<String> = o
                .values(&["--include", "-g", "--glob", "--iglob"])
                .into_iter()
                .map(|v| v.text)
                .filter(|g| !g.starts_with('!'))
                .collect();
            let excluded: Vec<String> =
                o.values(&["--exclude", "--ignore"]).into_iter().map(|v| v.text).collect();
            let skips = excluded.iter().any(|e| e.contains("env"))
                || o.values(&["-g", "--glob"])
                    .iter()
                    .any(|g| g.text.starts_with('!') && g.text.contains("env"))
                || o.has(&["-t", "--type"]);
            let aimed = filter.iter().any(|g| g.starts_with('.') || g.contains("env"));
            let roots = if files.is_empty() { vec![Val::known(".")] } else { files.clone() };
            if !skips && (!quiet || aimed) {
                self.searches(&pattern, roots.clone(), hidden || aimed, Some(&filter));
            } else {
                for r in &roots {
                    for p in self.meanings(r) {
                        self.deny_secret(&p);
                    }
                }
            }
            return Val::unknown(taint.with(Taint::FILE));
        }
        for f in &files {
            if quiet && o.has(&["-q", "--quiet", "-c", "--count", "-l"]) {
                continue;
            }
            taint = taint.with(self.read_file(f).taint);
        }
        if files.is_empty() && !stdin.text.is_empty() {
            let inverted = o.has(&["-v", "--invert-match"]);
            return Val { text: matching(&stdin.text, &pattern, inverted), taint };
        }
        Val::unknown(taint)
    }

    pub(super) fn archive(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        for a in args {
            for start in [
                "--to-command=",
                "--checkpoint-action=exec=",
                "--use-compress-program=",
                "--info-script=",
                "--rsh-command=",
                "-I",
            ] {
                if let Some(line) = a
                    .text
                    .strip_prefix(start)
                    .filter(|l| !l.is_empty() && l.chars().any(|c| c == ' ' || c == '/'))
                {
                    let line = line.to_owned();
                    self.program(&line, stdin);
                }
            }
        }
        for (i, a) in args.iter().enumerate() {
            if matches!(
                a.text.as_str(),
                "--to-command"
                    | "-I"
                    | "--use-compress-program"
                    | "-F"
                    | "--info-script"
                    | "-TT"
                    | "--unzip-command"
            ) && let Some(line) = args.get(i + 1).cloned()
            {
                self.text(&line, &[], stdin);
            }
        }
        let first = args.first().map(|a| a.text.clone()).unwrap_or_default();
        let flags: String =
            if first.starts_with("--") { String::new() } else { first.trim_start_matches('-').to_owned() };
        let lists = base == "tar" && flags.contains('t') || matches!(base, "zipinfo");
        let extracts = (matches!(base, "tar" | "bsdtar")
            && (flags.contains('x') || args.iter().any(|a| a.text == "--extract")))
            || matches!(base, "unzip")
            || matches!(base, "7z" | "rar" | "ar" | "jar") && flags.starts_with('x');
        let mut dir = None;
        for (i, a) in args.iter().enumerate() {
            if matches!(a.text.as_str(), "-C" | "--directory" | "-d") {
                dir = args.get(i + 1).cloned();
            } else if let Some(d) = a.text.strip_prefix("--directory=") {
                dir = Some(a.map(d));
            }
        }
        if extracts || lists {
            if let Some(d) = &dir {
                let inner = d.map(format!("{}/x", d.text));
                self.write_file(&inner, false);
                for p in self.meanings(d) {
                    if p == Path::new("/") || p == self.scope.home {
                        self.ask(
                            "persist.extract",
                            "The archive would be unpacked over the operator's own files.",
                        );
                    }
                }
            }
            if args.iter().any(|a| matches!(a.text.as_str(), "-P" | "--absolute-names")) {
                self.ask("persist.extract", "The archive may write anywhere.");
            }
            return Val::unknown(stdin.taint);
        }
        let deletes = args.iter().any(|a| {
            matches!(a.text.as_str(), "--remove-files" | "-sdel")
                || base == "zip"
                    && a.text.starts_with('-')
                    && !a.text.starts_with("--")
                    && a.text.contains('m')
        });
        let saved = self.state.cwds.clone();
        if let Some(d) = &dir {
            let to = self.meanings(d);
            if !to.is_empty() {
                self.state.cwds = to;
            }
        }
        let skip = usize::from(!first.starts_with('-') || matches!(base, "tar") && !first.starts_with("--"));
        let mut operands: Vec<Val> = Vec::new();
        let mut takes = flags.contains('f') && base == "tar"
            || matches!(base, "zip" | "7z" | "7za" | "rar" | "jar" | "mksquashfs");
        let mut iter = args.iter().enumerate();
        while let Some((i, a)) = iter.next() {
            if (i < skip && base != "zip") || a.text.starts_with('-') && a.text.len() > 1 {
                if matches!(
                    a.text.as_str(),
                    "-f" | "--file" | "-C" | "--directory" | "-T" | "-X" | "--exclude" | "-x" | "-o" | "-I"
                ) && let Some((_, v)) = iter.next()
                    && a.text == "-f"
                {
                    self.write_file(v, true);
                    takes = false;
                }
                continue;
            }
            if takes {
                if a.text != "-" {
                    self.write_file(a, true);
                }
                takes = false;
                continue;
            }
            operands.push(a.clone());
        }
        for a in &operands {
            if deletes {
                self.removal(a, true, false);
            }
            self.read_file(a);
        }
        if matches!(base, "zip" | "cpio" | "pax" | "tar")
            && args.iter().any(|a| matches!(a.text.as_str(), "-@" | "-" | "-T-"))
        {
            for name in stdin.text.lines().take(limits::ROUNDS_MAX) {
                self.read_file(&stdin.map(name));
            }
        }
        for (i, a) in args.iter().enumerate() {
            let list = match a.text.as_str() {
                "-T" | "--files-from" => args.get(i + 1).cloned(),
                t => t
                    .strip_prefix("--files-from=")
                    .or_else(|| t.strip_prefix('@').filter(|_| base.starts_with('7')))
                    .map(|f| a.map(f)),
            };
            if let Some(list) = list.filter(|l| l.text != "-") {
                let names = self.content(&list);
                for name in names.text.lines().take(limits::ROUNDS_MAX) {
                    self.read_file(&names.map(name));
                }
            }
            for start in ["-I", "--use-compress-program=", "-TT"] {
                let line = match a.text.strip_prefix(start) {
                    Some("") => args.get(i + 1).map(|v| v.text.clone()),
                    Some(line) if line.contains(' ') => Some(line.trim_start_matches('=').to_owned()),
                    _ => None,
                };
                if let Some(line) = line.filter(|l| l.contains(' ')) {
                    self.program(&line, &Val::default());
                }
            }
        }
        if base == "cpio" || base == "pax" {
            for name in stdin.text.split_whitespace().take(64) {
                self.read_file(&stdin.map(name));
            }
        }
        self.gathers(&operands, args);
        self.state.cwds = saved;
        Val::unknown(Taint::FILE)
    }
}

/// Whether a search pattern is made to find credentials, or finds every line.
pub fn seeks_secrets(pattern: &str) -> bool {
    let lower = pattern.to_lowercase();
    let plain = lower.trim_matches(|c: char| matches!(c, '^' | '$' | '(' | ')' | '\'' | '"' | '\\' | 'b'));
    if matches!(plain, "" | "." | ".*" | ".+" | "=" | ".*=.*" | "[a-z]" | ":" | "[^ ]" | "[a-z_]+=" | "\\w+=")
    {
        return true;
    }
    [
        "secret",
        "token",
        "passw",
        "passwd",
        "api_key",
        "apikey",
        "api-key",
        "credential",
        "private_key",
        "private key",
        "access_key",
        "bearer",
        "aws_",
        "sk-ant",
        "ghp_",
        "akia",
        "auth_key",
        "client_id",
        "begin rsa",
        "begin openssh",
        "_key",
    ]
    .iter()
    .any(|w| lower.contains(w))
        || matches!(plain, "key" | "keys" | "pass" | "pwd" | "auth")
        || lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| w == "key" || w == "pwd" || w == "pass")
}

/// The lines that a search lets through; lines that are not known stay, and all stay when the pattern cannot be read.
pub(super) fn matching(text: &str, pattern: &str, inverted: bool) -> String {
    let regex = regex::RegexBuilder::new(pattern).size_limit(1 << 16).build();
    text.lines()
        .filter(|l| l.contains(HOLE) || regex.as_ref().map_or(true, |r| r.is_match(l) != inverted))
        .map(|l| format!("{l}\n"))
        .collect()
}
