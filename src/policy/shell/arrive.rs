//! Files from another machine that outlast the command which brought them in, and commands that read such files.
//!
//! [`crate::policy::Scope::arrived`] holds what earlier calls of the session brought in. A command that names one of
//! those files, or works below one, prints what others wrote, whatever program it uses.

use super::eval::Machine;
use super::options::Options;
use super::value::{HOLE, Taint, Val};
use std::path::{Path, PathBuf};

/// Most paths that one command brings in; past the last the working directory counts.
const BROUGHT_MAX: usize = 64;

/// What stands for the objects and names that git got from another repository, below the working directory.
const FETCHED: &str = ".git/FETCH_HEAD";

/// Programs that copy to their last operand, and the words that say so; empty where they do nothing else.
#[rustfmt::skip]
const COPIERS: &[(&str, &[&str])] = &[
    ("scp", &[]), ("rsync", &[]), ("sftp", &[]), ("rclone", &["copy", "copyto", "copyurl", "sync", "move"]), ("s5cmd", &["cp", "sync", "mv"]),
    ("aws", &["cp", "sync", "mv", "get-object"]), ("gsutil", &["cp", "rsync", "mv"]), ("gcloud", &["cp", "rsync", "scp"]), ("mc", &["cp", "mirror", "get"]), ("s3cmd", &["get", "sync"]),
    ("docker", &["cp"]), ("podman", &["cp"]), ("kubectl", &["cp"]), ("oc", &["cp", "rsync"]), ("svn", &["checkout", "co", "export"]), ("degit", &[]), ("tiged", &[]),
];

/// Programs that name where a download goes with an option.
#[rustfmt::skip]
const DOWNLOADERS: &[(&str, &[&str])] = &[
    ("gh", &["-O", "--output", "-D", "--dir"]), ("glab", &["-D", "--dir"]), ("yt-dlp", &["-o", "--output", "-P"]), ("youtube-dl", &["-o", "--output"]), ("aria2c", &["-o", "--out", "-d", "--dir"]),
    ("axel", &["-o", "--output"]), ("http", &["-o", "--output"]), ("https", &["-o", "--output"]), ("xh", &["-o", "--output"]), ("helm", &["-d", "--destination", "--untardir"]),
    ("pip", &["-d", "--dest", "-t", "--target"]), ("pip3", &["-d", "--dest", "-t", "--target"]), ("wget", &["-P", "--directory-prefix"]), ("wget2", &["-P", "--directory-prefix"]), ("huggingface-cli", &["--local-dir"]), ("hf", &["--local-dir"]),
];

/// Programs that make files of the ones they are given: the copy of what arrived has arrived.
const COPIES: &[&str] = &["cp", "mv", "ln", "install", "link", "rsync", "ditto"];
/// Programs that unpack what they are given.
const UNPACKERS: &[&str] =
    &["tar", "bsdtar", "unzip", "7z", "7za", "unar", "cpio", "ar", "unxz", "gunzip", "zstd", "xz"];
/// Where those put it.
const UNPACKS_TO: &[&str] = &["-C", "--directory", "-d", "-D", "-output-directory"];

/// Programs that search directories.
const SEARCHERS: &[&str] = &[
    "rg", "ripgrep", "ag", "ack", "ugrep", "rgrep", "git", "fd", "fdfind", "find", "grep", "egrep", "fgrep",
];

/// Subcommands of git that print what a name stands for.
#[rustfmt::skip]
const SHOWN_BY: &[&str] = &[
    "show", "log", "diff", "cat-file", "grep", "blame", "annotate", "archive", "ls-tree", "shortlog", "whatchanged", "range-diff", "format-patch", "rev-list", "for-each-ref", "name-rev", "describe", "checkout", "switch", "restore", "worktree", "merge", "rebase", "cherry-pick", "reset",
];
/// Those of them that put the content into the work tree.
const TAKEN_BY: &[&str] =
    &["checkout", "switch", "restore", "worktree", "merge", "rebase", "cherry-pick", "reset"];

impl Machine<'_> {
    /// Whether an earlier call brought `path` in.
    pub(super) fn has_arrived(&self, path: &Path) -> bool {
        self.scope.arrived.iter().any(|a| path.starts_with(a))
    }

    /// Notes what `base` reads of what has arrived, and what it brings in.
    pub(super) fn notes_arrived(&mut self, base: &str, args: &[Val]) {
        if args.len() > super::limits::FIELDS {
            self.met_arrived |= !self.scope.arrived.is_empty();
            return;
        }
        self.notes_brought(base, args);
        let fetched_here = self.state.files.values().any(|f| f.taint.any(Taint::NET.with(Taint::ARRIVED)));
        if self.scope.arrived.is_empty() && !fetched_here && self.brought.is_empty() {
            return;
        }
        let cwds = self.state.cwds.clone();
        if !matches!(base, "cd" | "pushd" | "popd" | "pwd" | "echo" | "printf" | "true" | ":") {
            self.met_arrived |= cwds.iter().any(|c| self.has_arrived(c));
        }
        let mut given = false;
        for a in args {
            let value = a.text.split_once('=').map_or("", |(_, v)| v).to_owned();
            for part in [a.text.clone(), value] {
                if part.is_empty() || part.contains('\n') {
                    continue;
                }
                let places = self.meanings(&a.map(part));
                given |= places.iter().any(|p| {
                    self.has_arrived(p)
                        || self.brought.iter().any(|b| p.starts_with(b))
                        || self
                            .state
                            .files
                            .get(p)
                            .is_some_and(|f| f.taint.any(Taint::NET.with(Taint::ARRIVED)))
                });
            }
        }
        let silent = ["cd", "pushd", "rm", "mkdir", "touch", "test", "[", "echo", "printf"].contains(&base);
        self.met_arrived |= given && !silent;
        self.given |= given && !silent;
        if given {
            self.notes_copies(base, args);
        }
        if SEARCHERS.contains(&base) && searches(base, args) {
            let dirs: Vec<PathBuf> = args.iter().flat_map(|a| self.meanings(a)).chain(cwds).collect();
            let arrived = &self.scope.arrived;
            self.met_arrived |= dirs.iter().any(|d| arrived.iter().any(|a| a.starts_with(d)));
        }
        if base == "git" {
            self.notes_names(args);
        }
    }

    /// What comes in with a program that has no output to be followed.
    fn notes_brought(&mut self, base: &str, args: &[Val]) {
        let words: Vec<Val> = args.iter().filter(|a| !a.text.starts_with('-')).cloned().collect();
        let word = |n: usize| words.get(n).map(|w| w.text.as_str()).unwrap_or_default();
        let said = |list: &[&str]| words.iter().take(4).any(|w| list.contains(&w.text.as_str()));
        let cwd = self.cwd();
        match base {
            "git" | "hg" if said(&["clone"]) => {
                let from = words.iter().position(|w| remote(&w.text));
                if let Some(from) = from {
                    // An option's value may stand between the address and the directory.
                    let rest: Vec<Val> = words.iter().skip(from + 1).cloned().collect();
                    let own = words.get(from).map(named_after).filter(|_| rest.is_empty());
                    rest.iter().chain(&own).for_each(|to| self.brings(to));
                }
            }
            "gh" | "glab" if matches!(word(0), "repo" | "gist") && word(1) == "clone" => {
                let to = words.get(3).cloned();
                let to = to.or_else(|| words.get(2).map(named_after));
                to.iter().for_each(|to| self.brings(to));
            }
            "gh" | "glab" if matches!(word(0), "pr" | "mr") && word(1) == "checkout" => {
                self.bring(cwd.join(FETCHED));
                self.bring(cwd);
            }
            "git"
                if said(&["fetch", "pull"])
                    || word(0) == "remote" && word(1) == "update"
                    || matches!(word(0), "submodule" | "lfs")
                        && matches!(word(1), "update" | "pull" | "fetch") =>
            {
                self.bring(cwd.join(FETCHED));
            }
            _ => {}
        }
        if COPIERS.iter().any(|(program, verbs)| *program == base && (verbs.is_empty() || said(verbs)))
            && words.iter().rev().skip(1).any(|w| remote(&w.text) || matches!(base, "degit" | "tiged"))
            && let Some(to) = words.last().filter(|w| !remote(&w.text)).cloned()
        {
            let from = words.get(words.len().saturating_sub(2)).map(named_after);
            self.brings_into(&to, from.as_ref());
        }
        if let Some((_, options)) = DOWNLOADERS.iter().find(|(program, _)| *program == base) {
            for to in Options::split(args, options, false).values(options) {
                self.brings(&to);
            }
        }
    }

    /// What a copy of something that arrived makes.
    fn notes_copies(&mut self, base: &str, args: &[Val]) {
        let words: Vec<Val> = args.iter().filter(|a| !a.text.starts_with('-')).cloned().collect();
        if COPIES.contains(&base) {
            if let [.., from, to] = words.as_slice() {
                self.brings_into(to, Some(&named_after(from)));
            }
        } else if UNPACKERS.contains(&base) {
            let mut dirs = Options::split(args, UNPACKS_TO, false).values(UNPACKS_TO);
            dirs.extend(args.iter().filter_map(|a| a.text.strip_prefix("-o").map(|d| a.map(d))));
            let dirs: Vec<Val> = dirs.into_iter().filter(|d| !d.text.is_empty()).collect();
            if dirs.is_empty() {
                // What an archive holds most often lies in a directory of its own name.
                for archive in &words {
                    self.brings(&stem(archive));
                }
            }
            for dir in dirs {
                self.brings_into(&dir, None);
            }
        }
    }

    /// Names of what git got from another repository.
    fn notes_names(&mut self, args: &[Val]) {
        let has_fetched = self.scope.arrived.iter().chain(&self.brought).any(|a| a.ends_with(FETCHED));
        let Some(sub) = args.iter().find(|a| SHOWN_BY.contains(&a.text.as_str())) else { return };
        let foreign = args.iter().any(|a| {
            let text = a.text.as_str();
            text.contains("FETCH_HEAD")
                || text.contains("@{u")
                || text.contains("refs/remotes/")
                || text.contains("refs/pull/")
                || text.split("..").any(|t| {
                    ["origin/", "upstream/", "fork/", "remotes/", "pull/"]
                        .iter()
                        .any(|r| t.trim_start_matches('.').starts_with(r))
                })
        });
        if !has_fetched || !foreign {
            return;
        }
        self.met_arrived = true;
        let others = args.iter().any(|a| a.text.contains("FETCH_HEAD") || a.text.contains("pull/"));
        if TAKEN_BY.contains(&sub.text.as_str()) && others {
            let cwd = self.cwd();
            self.bring(cwd);
        }
    }

    /// A file or directory that comes in under this name.
    fn brings(&mut self, to: &Val) {
        if !to.text.is_empty() && to.text != "-" {
            for path in self.meanings(to) {
                self.bring(path);
            }
        }
    }

    /// The same, with the name that it gets in a directory which is there.
    fn brings_into(&mut self, to: &Val, name: Option<&Val>) {
        for path in self.meanings(to) {
            let dir = self.world.kind(&path) == crate::policy::Kind::Dir;
            match name.filter(|n| dir && !n.text.is_empty() && !n.text.contains(HOLE)) {
                Some(name) => self.bring(path.join(&name.text)),
                None => self.bring(path),
            }
        }
    }

    fn bring(&mut self, path: PathBuf) {
        if path.starts_with("/dev") || self.brought.contains(&path) {
            return;
        }
        if self.brought.len() < BROUGHT_MAX {
            self.brought.push(path);
        } else {
            let cwd = self.cwd();
            if !self.brought.contains(&cwd) {
                self.brought.push(cwd);
            }
        }
    }

    /// Everything that this command brings in.
    pub(super) fn all_brought(&mut self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = self
            .state
            .files
            .iter()
            .filter(|(_, f)| f.taint.any(Taint::NET) && self.reaches || f.taint.any(Taint::ARRIVED))
            .map(|(path, _)| path.clone())
            .collect();
        files.sort();
        for file in files {
            self.bring(file);
        }
        std::mem::take(&mut self.brought)
    }
}

/// Whether a program looks into every file below a directory.
fn searches(base: &str, args: &[Val]) -> bool {
    let any = |f: &dyn Fn(&str) -> bool| args.iter().any(|a| f(&a.text));
    match base {
        "grep" | "egrep" | "fgrep" => any(&|t| {
            t.starts_with("--recursive")
                || t.starts_with("--dereference-recursive")
                || t.starts_with('-') && !t.starts_with("--") && t.contains(['r', 'R'])
        }),
        "git" => any(&|t| t == "grep"),
        "find" => any(&|t| t.starts_with("-exec") || t == "-ok"),
        "fd" | "fdfind" => any(&|t| matches!(t, "-x" | "-X" | "--exec" | "--exec-batch")),
        _ => true,
    }
}

/// Whether an operand names another machine, or nobody knows which place.
fn remote(text: &str) -> bool {
    if let Some((scheme, _)) = text.split_once("://") {
        return scheme != "file";
    }
    if text.starts_with(HOLE) {
        return true;
    }
    text.split_once(':').is_some_and(|(host, _)| {
        !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '@'))
    })
}

/// What a copy of `from` is called where only the directory is given.
fn named_after(from: &Val) -> Val {
    let text = from.text.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let name = text.rsplit(['/', ':']).next().unwrap_or_default();
    from.map(name.strip_suffix(".git").unwrap_or(name))
}

/// The name of an archive without what says that it is one.
fn stem(archive: &Val) -> Val {
    let mut name = archive.text.rsplit('/').next().unwrap_or_default();
    for end in [".gz", ".xz", ".bz2", ".zst", ".tgz", ".txz", ".tar", ".zip", ".7z", ".crate", ".whl", ".jar"]
    {
        name = name.strip_suffix(end).unwrap_or(name);
    }
    archive.map(name)
}
