//! Redirections and files.

use super::eval::Machine;
use super::limits;
use super::value::{HOLE, Taint, Val};
use crate::policy::world::Kind;
use crate::policy::{Scope, paths, web};
use brush_parser::ast;
use std::path::{Path, PathBuf};

/// Redirections of one command.
#[derive(Default)]
pub(super) struct Io {
    pub(super) stdin: Val,
    pub(super) redirected_in: bool,
    pub(super) targets: Vec<Val>,
    pub(super) appends: bool,
    pub(super) substitution: Option<ast::SubshellCommand>,
}

impl Machine<'_> {
    /// `<(…)` and `>(…)`: a file that holds the output.
    pub(super) fn process(&mut self, kind: &ast::ProcessSubstitutionKind, sub: &ast::SubshellCommand) -> Val {
        let input = match kind {
            ast::ProcessSubstitutionKind::Read => Val::default(),
            ast::ProcessSubstitutionKind::Write => Val::unknown(Taint::FILE),
        };
        let out = self.subshell(|m| m.list(&sub.list, &input));
        self.told |= out.taint.any(Taint::NET);
        let path = format!("/dev/fd/{}", self.next_fd);
        self.next_fd += 1;
        let taint = out.taint;
        self.state.files.insert(PathBuf::from(&path), out);
        Val { text: path, taint }
    }

    pub(super) fn redirect(&mut self, r: &ast::IoRedirect, io: &mut Io) {
        use ast::{IoFileRedirectKind as K, IoFileRedirectTarget as T};
        match r {
            ast::IoRedirect::HereDocument(fd, doc) => {
                let mut val = self.heredoc(&doc.doc, doc.requires_expansion);
                if doc.remove_tabs {
                    val.text =
                        val.text.lines().map(|l| l.trim_start_matches('\t')).collect::<Vec<_>>().join("\n")
                            + "\n";
                }
                if fd.is_none_or(|f| f == 0) {
                    io.stdin = val;
                }
            }
            ast::IoRedirect::HereString(_, w) => {
                let mut val = self.single(&w.value);
                val.push(&Val::known("\n"));
                io.stdin = val;
            }
            ast::IoRedirect::OutputAndError(w, _) => {
                let target = self.single(&w.value);
                self.output(&target, io);
            }
            ast::IoRedirect::File(fd, kind, target) => match (kind, target) {
                (K::Read | K::ReadAndWrite, T::Filename(w)) => {
                    for file in self.words(&w.value) {
                        let is_net = self.socket(&file, &Val::default());
                        if is_net {
                            self.state.sockets.push(fd.unwrap_or(0));
                        }
                        let val = if is_net { Val::unknown(Taint::NET) } else { self.read_file(&file) };
                        if fd.is_none_or(|f| f == 0) {
                            io.stdin = val;
                            io.redirected_in = true;
                        }
                    }
                }
                (K::Read | K::ReadAndWrite, T::ProcessSubstitution(kind, sub)) => {
                    let val = self.process(kind, sub);
                    io.stdin = self.read_file(&val);
                    io.redirected_in = true;
                }
                (K::Write | K::Append | K::Clobber, T::Filename(w)) => {
                    for file in self.words(&w.value) {
                        if fd.is_none_or(|f| f == 1) {
                            io.appends = matches!(kind, K::Append);
                            self.output(&file, io);
                        } else if !self.socket(&file, &Val::default()) {
                            self.write_file(&file, !matches!(kind, K::Append));
                        }
                    }
                }
                (K::Write | K::Append | K::Clobber, T::ProcessSubstitution(_, sub)) => {
                    io.substitution = Some(sub.clone());
                }
                (K::DuplicateOutput, T::Duplicate(w)) => {
                    let target = self.single(&w.value);
                    if target.text.parse::<i32>().is_err()
                        && target.text != "-"
                        && !target.text.ends_with('-')
                    {
                        self.output(&target, io);
                    }
                }
                (_, T::Duplicate(w)) => {
                    self.single(&w.value);
                }
                (_, T::ProcessSubstitution(kind, sub)) => {
                    self.process(kind, sub);
                }
                _ => {}
            },
        }
    }

    pub(super) fn output(&mut self, target: &Val, io: &mut Io) {
        if !target.text.starts_with("/dev/tcp/") && !target.text.starts_with("/dev/udp/") {
            self.write_file(target, !io.appends);
        }
        self.notes_terminal(target);
        io.targets.push(target.clone());
    }

    /// Sends a command's output where its redirections say.
    pub(super) fn deliver(&mut self, out: Val, io: &Io) -> Val {
        if let Some(sub) = &io.substitution {
            self.subshell(|m| m.list(&sub.list, &out));
            return Val::default();
        }
        let Some(target) = io.targets.last() else { return out };
        for target in &io.targets {
            self.socket(target, &out);
        }
        if matches!(
            target.text.as_str(),
            "/dev/stdout" | "/dev/stderr" | "/dev/tty" | "/dev/fd/1" | "/dev/fd/2"
        ) {
            return out;
        }
        if out.taint.any(Taint::ENV) && target.text != "/dev/null" {
            self.ask("secret.env", "The command writes credentials of the environment into a file. Name the one harmless variable you need.");
        }
        for path in self.meanings(target) {
            let mut all = if io.appends {
                self.state.files.get(&path).cloned().unwrap_or_default()
            } else {
                Val::default()
            };
            all.push(&out);
            if self.state.files.len() >= limits::FILES && !self.state.files.contains_key(&path) {
                self.bound("a command that writes too many files");
                break;
            }
            self.state.files.insert(path, all);
        }
        Val::default()
    }

    /// A redirection to `/dev/tcp/…`: whether it is one.
    pub(super) fn socket(&mut self, target: &Val, data: &Val) -> bool {
        let Some(rest) =
            target.text.strip_prefix("/dev/tcp/").or_else(|| target.text.strip_prefix("/dev/udp/"))
        else {
            return false;
        };
        let (host, port) = rest.split_once('/').unwrap_or((rest, ""));
        let own = matches!(host, "localhost" | "127.0.0.1" | "::1");
        self.reaches |= !own;
        self.told |= !own;
        if data.taint.any(Taint::LOCAL) && !own {
            self.deny(
                "exfil.socket",
                "The command sends data of this machine to another one over a raw connection.",
            );
        } else if !own {
            self.ask(
                "net.socket",
                format!("The command opens a raw connection to {host}. A person has to agree."),
            );
        } else {
            self.find(web::fetch(
                &format!("http://{host}:{port}/"),
                web::Fetcher::Command,
                &self.scope.custom,
            ));
        }
        true
    }

    /// Every place that a path argument can mean, links made by this program included.
    pub(super) fn meanings(&mut self, file: &Val) -> Vec<PathBuf> {
        if file.text.contains(HOLE) || file.text.is_empty() || file.text.len() > 64 * 1024 {
            return Vec::new();
        }
        let mut out = Vec::new();
        let cwds = self.state.cwds.clone();
        let scope = Scope { cwd: self.cwd(), ..Scope::default() };
        let scope = Scope { home: self.scope.home.clone(), project: self.scope.project.clone(), ..scope };
        for cwd in &cwds {
            // `~` has been expanded by the shell already.
            let text =
                if file.text.starts_with('~') { format!("./{}", file.text) } else { file.text.clone() };
            for path in paths::meanings(&text, cwd, &scope, self.world) {
                let mut path = path;
                for _ in 0..4 {
                    let led = self.state.links.iter().find_map(|(link, to)| {
                        path.strip_prefix(link)
                            .ok()
                            .map(|rest| if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) })
                    });
                    match led {
                        Some(to) if to != path => path = to,
                        _ => break,
                    }
                }
                if !out.contains(&path) {
                    out.push(path);
                }
            }
        }
        out
    }

    /// Reads a file: denied when it is a secret, else what it holds.
    pub(super) fn read_file(&mut self, file: &Val) -> Val {
        // The output of a command that gives several lines where one path was wanted.
        if file.text.contains('\n') && file.text.len() < 4096 {
            for line in file.text.lines().take(16).filter(|l| !l.is_empty() && l.len() < 512) {
                let line = file.map(line);
                self.read_file(&line);
            }
        }
        let mut content = Val::unknown(Taint::FILE.with(file.taint));
        for path in self.meanings(file) {
            if let Some(known) = self.state.files.get(&path) {
                content = known.clone();
                continue;
            }
            if self.is_secret(&path).is_some() {
                self.deny_secret(&path);
                content.taint = content.taint.with(Taint::SECRET);
            }
            if self.has_arrived(&path) {
                content.taint = content.taint.with(Taint::ARRIVED);
                self.met_arrived = true;
            }
            if path == Path::new("/dev/null")
                || path == Path::new("/dev/stdin")
                || path == Path::new("/dev/zero")
            {
                content = Val::default();
            }
            // What is in it is the number of the guard's process; the name stands for it, so that `kill` sees whose it is.
            if path.ends_with("jess/daemon.lock") {
                content = Val::known("jess\n");
            }
        }
        // A path that is not known in full can still have a secret's form, or end in a secret's name.
        if !file.is_known() && file.text.starts_with('/') {
            let path = PathBuf::from(file.text.replace(HOLE, "1"));
            if self.is_secret(&path).is_some() {
                self.deny_secret(&path);
            }
        }
        if !file.is_known()
            && let Some((_, known)) = file.text.rsplit_once(HOLE)
            && let Some(tail) = known.strip_prefix('/').or(Some(known).filter(|k| k.starts_with(".env")))
            && !tail.is_empty()
        {
            let path = Path::new("/unknown").join(tail.trim_start_matches('/'));
            if self.is_secret(&path).is_some() {
                self.deny_secret(&path);
            }
        }
        content
    }

    /// Whether reading `path` reads a secret.
    pub(super) fn is_secret(&self, path: &Path) -> Option<&'static str> {
        let what = paths::secret(path, self.scope)?;
        if what == "a secret file of the project" && self.world.kind(path) == Kind::Dir {
            return None;
        }
        Some(what)
    }

    /// Whether a path is a secret file of the project's own, in it.
    pub(super) fn of_project(&self, path: &Path) -> bool {
        paths::in_project(path, self.scope) && self.is_secret(path) == Some("a secret file of the project")
    }

    pub(super) fn deny_secret(&mut self, path: &Path) {
        if let Some(what) = self.is_secret(path) {
            if self.lenient && what == "a secret file of the project" {
                return;
            }
            self.find(crate::policy::tools::secret_denied(path, what));
        }
    }

    /// Writes a file: denied when it is protected.
    pub(super) fn write_file(&mut self, file: &Val, truncates: bool) {
        for path in self.meanings(file) {
            if let Some(what) = paths::protected(&path, self.scope) {
                self.find(crate::policy::tools::protected_denied(&path, what));
            } else if truncates
                && !paths::in_project(&path, self.scope)
                && !paths::is_scratch(&path, self.scope)
                && !path.starts_with("/dev")
                && path.starts_with(&self.scope.home)
                && self.world.kind(&path) == Kind::File
                && !self.state.files.contains_key(&path)
            {
                self.ask(
                    "destroy.overwrite",
                    format!(
                        "{} lies outside the project and would be overwritten.",
                        crate::sanitise::path(path)
                    ),
                );
            }
        }
        if !file.is_known()
            && let Some((_, tail)) = file.text.rsplit_once(HOLE)
            && let Some(tail) = tail.strip_prefix('/')
            && !tail.is_empty()
        {
            let path = self.scope.home.join(tail);
            if let Some(what) = paths::protected(&path, self.scope) {
                self.find(crate::policy::tools::protected_denied(&path, what));
            }
        }
    }
}
