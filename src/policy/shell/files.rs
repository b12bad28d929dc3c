//! Programs that remove, copy, overwrite or open up files.

use super::builtins::outside;
use super::eval::Machine;
use super::options::Options;
use super::value::{HOLE, Taint, Val};
use crate::policy::paths;
use crate::policy::tools::{protected_denied, secret_denied, shown};
use crate::policy::world::Kind;
use std::path::{Path, PathBuf};

impl Machine<'_> {
    /// Deletes below `target`: judged by where it lies. `narrowed`: only files with certain names.
    pub(super) fn removal(&mut self, target: &Val, recursive: bool, narrowed: bool) {
        let text = target.text.clone();
        if !target.is_known() {
            let head = text.split(HOLE).next().unwrap_or_default();
            if recursive {
                let base = self.meanings(&Val::known(
                    head.rsplit_once('/').map_or("", |(d, _)| if d.is_empty() { "/" } else { d }),
                ));
                let inside = !head.is_empty()
                    && base.iter().all(|p| {
                        paths::in_project(p, self.scope)
                            || paths::is_scratch(p, self.scope)
                            || *p == self.scope.project
                                && head.ends_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_')
                            || self.scope.scratch.contains(p)
                    })
                    && !base.is_empty();
                if !inside {
                    self.ask(
                        "destroy.unknown",
                        "What would be deleted is only known when the command runs. Name the directory.",
                    );
                }
            }
            return;
        }
        let slash = text.ends_with('/');
        for path in self.meanings(target) {
            // Without a trailing slash, rm deletes a link and not what it leads to.
            let path = if slash { path } else { self.parent_resolved(target).unwrap_or(path) };
            if paths::is_scratch(&path, self.scope) {
                continue;
            }
            let git = path.ends_with(".git") || path.components().any(|c| c.as_os_str() == ".git");
            if self.scope.home.starts_with(&path)
                || path == Path::new("/")
                || path.parent() == Some(Path::new("/")) && recursive
            {
                self.deny(
                    "destroy.tree",
                    format!("{} would be deleted with everything in it.", shown(&path)),
                );
            } else if self.scope.project.starts_with(&path) && recursive && !narrowed {
                self.deny(
                    "destroy.tree",
                    format!(
                        "{} is the project or holds it. Delete the one directory that is meant.",
                        shown(&path)
                    ),
                );
            } else if git {
                self.deny("destroy.git", "The repository's history would be deleted.");
            } else if let Some(what) = paths::protected(&path, self.scope)
                && !(path.starts_with(&self.scope.project) && what.contains("integration"))
            {
                self.find(protected_denied(&path, what));
            } else if self.is_secret(&path).is_some() && outside(&path, self) {
                self.ask(
                    "destroy.secret",
                    format!("{} holds credentials and would be deleted.", shown(&path)),
                );
            } else if !paths::in_project(&path, self.scope) && path != self.scope.project {
                if recursive {
                    self.deny(
                        "destroy.outside",
                        format!("{} lies outside the project. Ask the person to delete it.", shown(&path)),
                    );
                } else if !path.starts_with("/dev") {
                    self.ask("destroy.outside", format!("{} lies outside the project.", shown(&path)));
                }
            }
        }
    }

    /// `xargs rm` and its kin, given a listing of a whole directory.
    pub(super) fn removes_all(&mut self, argv: &[Val], names: &Val) {
        let removes = argv.iter().take(4).any(|a| {
            matches!(
                a.text.rsplit('/').next(),
                Some("rm" | "shred" | "unlink" | "rmdir" | "trash" | "truncate")
            )
        });
        let whole = names.text.lines().find(|l| l.ends_with(&format!("/{HOLE}")));
        if removes && let Some(whole) = whole {
            let root = names.map(whole.trim_end_matches(HOLE).trim_end_matches('/'));
            let root = if root.text.is_empty() { Val::known("/") } else { root };
            self.removal(&root, true, false);
        }
    }

    /// A path whose parent is resolved and whose last component is not followed.
    pub(super) fn parent_resolved(&self, target: &Val) -> Option<PathBuf> {
        let text = target.text.trim_end_matches('/');
        let path = self.cwd().join(text);
        let name = path.file_name()?.to_owned();
        let name_text = name.to_string_lossy();
        if name_text == ".." || name_text == "." || text.ends_with("/.") || text.ends_with("..") {
            return None;
        }
        Some(self.world.resolve(path.parent()?).join(name))
    }

    pub(super) fn rm(&mut self, base: &str, args: &[Val]) -> Val {
        let o = Options::split(args, &["-n", "--iterations", "-s", "--size", "--interactive"], false);
        let recursive = o.has(&["-r", "-R", "--recursive", "-d", "--dir"])
            || base == "rimraf"
            || args.iter().any(|a| a.text.starts_with("--rec"));
        let flags = if base == "shred" { &["-x"][..] } else { &[] };
        let _ = flags;
        let mut seen_root = 0;
        let in_root: Vec<PathBuf> =
            self.world.list(&self.scope.project).into_iter().map(|n| self.scope.project.join(n)).collect();
        for t in &o.operands {
            // A glob that nothing matched, after an unknown or an empty start.
            if t.text.starts_with(HOLE) && t.text.contains("/*") || t.text == "/*" || t.text == "/" {
                self.deny("destroy.tree", "The command could delete the whole file system.");
            }
            if matches!(
                t.text.as_str(),
                "*" | "./*" | ".*" | "./.*" | ".[!.]*" | "./.[!.]*" | "./" | "." | ".."
            ) && recursive
            {
                self.ask("destroy.tree", "The command deletes everything in the directory.");
            }
            self.guard_binary(t);
            self.removal(t, recursive, false);
            if recursive && self.meanings(t).iter().any(|p| in_root.contains(p)) {
                seen_root += 1;
            }
            if base == "shred" {
                for path in self.meanings(t) {
                    if self.is_secret(&path).is_some() || path.starts_with("/dev") {
                        self.ask("destroy.secret", format!("{} would be destroyed.", shown(&path)));
                    }
                }
            }
        }
        // A glob that took in nearly all of the project.
        if recursive && in_root.len() >= 4 && seen_root * 4 >= in_root.len() * 3 {
            self.ask("destroy.tree", "The command deletes nearly everything in the project.");
        }
        Val::default()
    }

    pub(super) fn copies(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let o = Options::split(
            args,
            &["-t", "--target-directory", "-S", "--suffix", "-m", "-o", "-g", "--mode", "--owner", "--group"],
            false,
        );
        let mut ops = o.operands.clone();
        let to = match o.values(&["-t", "--target-directory"]).first() {
            Some(t) => Some(t.clone()),
            None if base == "install" && o.has(&["-d"]) => None,
            None if ops.len() > 1 => ops.pop(),
            None if base == "ln" => Some(Val::known(".")),
            None => None,
        };
        let Some(to) = to else { return Val::default() };
        let into_dir =
            self.meanings(&to).iter().any(|p| self.world.kind(p) == Kind::Dir) || to.text.ends_with('/');
        for from in &ops {
            let name = from.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
            let target = if into_dir {
                to.map(format!("{}/{name}", to.text.trim_end_matches('/')))
            } else {
                to.clone()
            };
            let links = base == "ln" || base == "link";
            // A link's own place is written, not what it leads to.
            self.write_file(&target, !o.has(&["-n", "--no-clobber"]) && !links);
            if links {
                let at = self.parent_resolved(&target);
                if let Some(at) = at {
                    if let Some(what) = paths::protected(&at, self.scope) {
                        self.find(protected_denied(&at, what));
                    }
                    let base_dir = at.parent().map(Path::to_path_buf).unwrap_or_default();
                    let leads =
                        if o.has(&["-s", "--symbolic"]) && !from.text.starts_with('/') && from.is_known() {
                            self.world.resolve(&base_dir.join(&from.text))
                        } else {
                            match self.meanings(from).first() {
                                Some(p) => p.clone(),
                                None => continue,
                            }
                        };
                    if self.is_secret(&leads).is_some()
                        || (paths::secret_place(&leads, self.scope).is_some() && leads != Path::new("/"))
                    {
                        self.find(secret_denied(&leads, "a secret that a link would expose"));
                    }
                    if self.state.links.len() < 64 {
                        self.state.links.insert(at, leads);
                    }
                }
                continue;
            }
            if matches!(from.text.as_str(), "/dev/stdin" | "/dev/fd/0") {
                let input = stdin.clone();
                self.receives(vec![target.clone()], &input);
            }
            let sources = self.meanings(from);
            if base == "mv" {
                self.guard_binary(from);
                if sources.iter().any(|p| p.ends_with(".git")) {
                    self.ask("destroy.git", "The repository's history would be moved away.");
                }
            }
            for path in &sources {
                if self.is_secret(path).is_some() {
                    let stays = base == "mv"
                        && self
                            .meanings(&target)
                            .iter()
                            .any(|t| self.is_secret(t).is_some() && paths::in_project(t, self.scope));
                    let template = false;
                    if !stays && !template {
                        self.read_file(from);
                        let content = Val::unknown(Taint::SECRET);
                        for t in self.meanings(&target) {
                            self.state.files.insert(t, content.clone());
                        }
                    }
                } else if let Some(content) = self.state.files.get(path).cloned() {
                    for t in self.meanings(&target) {
                        self.state.files.insert(t, content.clone());
                    }
                }
                if base == "mv" {
                    let gone = to.text == "/dev/null";
                    let anywhere = outside(path, self) && self.world.kind(path) != Kind::Missing;
                    if gone
                        || (anywhere
                            && path.starts_with(&self.scope.home)
                            && !self.state.files.contains_key(path))
                    {
                        self.ask("destroy.move", format!("{} would be moved away.", shown(path)));
                    }
                    if let Some(what) = paths::protected(path, self.scope) {
                        self.find(protected_denied(path, what));
                    }
                }
            }
        }
        if o.has(&["-r", "-R", "-a", "--recursive", "--archive"]) {
            self.lands_in(&to);
            self.gathers(&ops, args);
        }
        Val::default()
    }

    /// Whatever its names are, it is put into this directory.
    pub(super) fn lands_in(&mut self, dir: &Val) {
        for path in self.meanings(dir) {
            let inner = path.join("x");
            if self.scope.home.starts_with(&path) {
                self.ask(
                    "persist.copy",
                    "Files whose names nobody has looked at would land in the operator's home.",
                );
            } else if let Some(what) = paths::protected(&inner, self.scope)
                && !path.starts_with("/dev")
            {
                self.find(protected_denied(&inner, what));
            }
        }
    }

    /// Directories that are taken as a whole: they must not hold secrets.
    pub(super) fn gathers(&mut self, dirs: &[Val], args: &[Val]) {
        let excluded: Vec<String> = args
            .iter()
            .enumerate()
            .filter_map(|(i, a)| {
                a.text.strip_prefix("--exclude=").map(str::to_owned).or_else(|| {
                    matches!(a.text.as_str(), "--exclude" | "-x" | "--exclude-dir")
                        .then(|| args.get(i + 1).map(|v| v.text.clone()).unwrap_or_default())
                })
            })
            .collect();
        for d in dirs {
            for path in self.meanings(d) {
                if let Some(what) = paths::secret_place(&path, self.scope) {
                    self.find(secret_denied(&path, what));
                    continue;
                }
                if self.world.kind(&path) != Kind::Dir {
                    continue;
                }
                let hits = paths::secrets_below(&path, self.scope, self.world, &|p| {
                    !excluded.iter().any(|e| {
                        p.file_name().is_some_and(|n| {
                            super::value::glob_matches(
                                &format!("x{}", e.trim_start_matches("./")),
                                &format!("x{}", n.to_string_lossy()),
                            )
                        })
                    })
                });
                if let Some(hit) = hits.first() {
                    self.find(secret_denied(hit, "a secret file in the directory that is taken as a whole"));
                }
            }
        }
    }

    /// The guard's own program, and the client's.
    pub(super) fn guard_binary(&mut self, target: &Val) {
        let name = target.text.trim_end().rsplit('/').next().unwrap_or_default();
        if matches!(name, "jess" | "claude")
            && self.meanings(target).iter().all(|p| outside(p, self) || self.world.kind(p) == Kind::Missing)
        {
            self.deny("guard.binary", "The command takes the guard or the client out of the way.");
        }
    }

    pub(super) fn dd(&mut self, args: &[Val], stdin: &Val) -> Val {
        let mut taint = Taint::NONE;
        if !args.iter().any(|a| a.text.starts_with("if=")) {
            taint = stdin.taint;
            self.receives(
                args.iter().filter_map(|a| a.text.strip_prefix("of=")).map(Val::known).collect(),
                stdin,
            );
        }
        for a in args {
            if let Some(file) = a.text.strip_prefix("if=") {
                taint = taint.with(self.read_file(&a.map(file)).taint);
            } else if let Some(file) = a.text.strip_prefix("of=") {
                self.write_file(&a.map(file), true);
            }
        }
        Val::unknown(taint)
    }

    /// Files that get what comes in.
    pub(super) fn receives(&mut self, files: Vec<Val>, stdin: &Val) {
        for file in files {
            for path in self.meanings(&file) {
                if self.state.files.len() >= super::limits::FILES && !self.state.files.contains_key(&path) {
                    return self.bound("a command that writes too many files");
                }
                self.state.files.insert(path, stdin.clone());
            }
        }
    }

    pub(super) fn mode(&mut self, base: &str, args: &[Val]) -> Val {
        let o = Options::split(args, &["--reference"], false);
        let recursive = o.has(&["-R", "--recursive"]);
        let how = o.operands.first().map(|a| a.text.clone()).unwrap_or_default();
        if base == "chmod"
            && (how.contains("+s")
                || how.contains("u+s")
                || how.len() == 4
                    && matches!(how.as_bytes().first(), Some(b'2' | b'4' | b'6' | b'7'))
                    && how.chars().all(|c| c.is_ascii_digit()))
        {
            self.ask("persist.setuid", "The file would run with another user's rights.");
        }
        // `chmod -x FILE`: the mode looks like an option.
        let minus = base == "chmod"
            && args.iter().any(|a| {
                a.text.len() > 1
                    && a.text.starts_with('-')
                    && a.text[1..].chars().all(|c| "rwxstX".contains(c))
            });
        let skip = usize::from(!minus && (base != "chattr" || !how.contains(['/', '.'])));
        for t in o.operands.iter().skip(skip) {
            self.guard_binary(t);
            for path in self.meanings(t) {
                if recursive && outside(&path, self) && !self.scope.home.starts_with(&path) {
                    self.ask(
                        "destroy.mode",
                        format!("The rights of everything in {} would change.", shown(&path)),
                    );
                }
                if recursive && (self.scope.home.starts_with(&path) || path == self.scope.home) {
                    self.deny(
                        "destroy.mode",
                        format!("The rights of everything in {} would change.", shown(&path)),
                    );
                } else if let Some(what) = paths::protected(&path, self.scope) {
                    if base == "chmod" && what.contains("integration") {
                        continue;
                    }
                    let hook = how.contains('x') || how.chars().all(|c| c.is_ascii_digit());
                    let in_project = path.starts_with(&self.scope.project);
                    if !in_project && !path.components().any(|c| c.as_os_str() == ".ssh")
                        || (in_project && hook && path.components().any(|c| c.as_os_str() == ".git"))
                        || path.components().any(|c| c.as_os_str() == ".claude")
                    {
                        self.find(protected_denied(&path, what));
                    } else if how.contains('7') && self.is_secret(&path).is_some() || how == "777" {
                        self.ask("persist.mode", "The file would be open to everybody.");
                    }
                } else if self.is_secret(&path).is_some()
                    && (how.ends_with('4')
                        || how.ends_with('6')
                        || how.ends_with('7')
                        || how.contains("o+")
                        || how.contains("a+"))
                {
                    self.ask("persist.mode", "A secret would be open to everybody.");
                }
            }
        }
        Val::default()
    }
}
