//! Watches a run: every path that it uses, and everything that it is refused.
//!
//! Only where the operator asks for it (`--explain`, `--observe`): each call with a path then waits for the supervisor,
//! which makes an open many times slower. What is read of the command's memory here is evidence, never the ground of a
//! decision: a call goes on only if the filter's plain program allows it, by its registers alone.

use super::caller::{Caller, PATH_BYTES};
use super::is_beneath;
use crate::sandbox::denial::{Kind, Notes};
use crate::sandbox::seccomp::{Plain, Ruling, Touch, Use, calls, touches};
use rustix::fs::{Access, AtFlags, CWD};
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Different uses of paths that are looked into; the paths of more are not looked at.
const USES_MAX: usize = 16_384;

/// Bytes of their names.
const BYTES_MAX: usize = 1 << 20;

/// Bytes of a program that are read for the interpreter it names.
const SHEBANG_MAX: usize = 256;

/// What a watched run may use.
#[derive(Debug, Default, Clone)]
pub struct Scope {
    /// Real paths beneath which it may read.
    pub readable: Vec<PathBuf>,
    /// Real paths beneath which it may write.
    pub writable: Vec<PathBuf>,
    /// Whether it has a root of its own: then a path that is not there inside and is on the host was refused.
    pub own_root: bool,
    /// Whether nothing of files is refused, and each use is for the record.
    pub observing: bool,
}

impl Scope {
    /// Whether the innermost place around `path` is writable.
    fn may_write(&self, path: &Path) -> bool {
        let around = self.readable.iter().chain(&self.writable).filter(|root| path.starts_with(root));
        let innermost = around.max_by_key(|root| root.as_os_str().len());
        innermost.is_some_and(|root| self.writable.contains(root))
    }
}

/// What a run used.
#[derive(Debug, Default, Clone)]
pub struct Used {
    /// Host paths outside the usual ones, as the command named them, with the strongest use of each.
    pub paths: BTreeMap<PathBuf, Use>,
    /// Whether there were more than are looked into.
    pub incomplete: bool,
}

/// The witness of one run.
pub struct Witness {
    plain: Plain,
    scope: Scope,
    looked: HashSet<(Use, PathBuf)>,
    /// Bytes of the names in `looked`.
    bytes: usize,
    used: Arc<Mutex<Used>>,
    /// Whether the command has begun: before that, jess itself makes the calls.
    begun: bool,
}

impl Witness {
    pub fn new(plain: Plain, scope: Scope) -> Witness {
        Witness { plain, scope, looked: HashSet::new(), bytes: 0, used: Arc::default(), begun: false }
    }

    /// Whether the call is the command's, and not jess's own before it.
    pub fn has_begun(&mut self, caller: &Caller<'_>) -> bool {
        self.begun |= [calls::execve, calls::execveat].into_iter().any(|call| call.is(caller.call.number));
        self.begun
    }

    /// What the filter says without watching.
    pub fn rule(&self, caller: &Caller<'_>) -> Ruling {
        self.plain.rule(caller.call.number, caller.call.args)
    }

    /// What was used until now.
    pub fn used(&self) -> Arc<Mutex<Used>> {
        self.used.clone()
    }

    fn using(&self) -> std::sync::MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the call is about to use.
    pub fn see(&mut self, caller: &Caller<'_>, denials: &Notes) {
        if calls::connect.is(caller.call.number) {
            if let Some(to) =
                super::network::peer(caller).filter(|to| self.scope.own_root && !to.ip().is_loopback())
            {
                denials.connect(to);
            }
            return;
        }
        for touch in touches(caller.call.number, caller.call.args) {
            if let Some(path) = named(caller, touch) {
                self.look_into(caller, touch.kind, path, denials);
            }
        }
    }

    fn look_into(&mut self, caller: &Caller<'_>, kind: Use, path: PathBuf, denials: &Notes) {
        let looked = (kind, path.clone());
        if self.looked.contains(&looked) {
            return;
        }
        if is_fleeting(&path) {
            return;
        }
        self.bytes += path.as_os_str().len();
        if self.looked.len() >= USES_MAX || self.bytes > BYTES_MAX {
            self.using().incomplete = true;
            return;
        }
        let there = exists(&path);
        // What makes nothing because something is there uses that, and a directory not even so.
        let kind = match kind {
            Use::Make if there && path.is_dir() => Use::Look,
            Use::Make if there => Use::Write,
            kind => kind,
        };
        if self.scope.observing {
            let real = there.then(|| path.canonicalize().ok()).flatten().unwrap_or_else(|| place_of(&path));
            let usual = if kind >= Use::Write { &self.scope.writable } else { &self.scope.readable };
            // What speaks for the kernel stays closed also here, so the run did without.
            let kernel_s = real.starts_with("/sys");
            if (there || kind == Use::Make) && !kernel_s && !is_beneath(&real, usual) {
                let mut used = self.using();
                let strongest = used.paths.entry(path.clone()).or_insert(kind);
                *strongest = (*strongest).max(kind);
            }
            if there && kind == Use::Execute {
                self.interpreter(caller, &real, denials);
            }
        } else if let Some(refused) = self.refused(caller, kind, &path, there) {
            denials.path(refused, &path);
        }
        self.looked.insert(looked);
    }

    /// Whether the use of `path` is refused here although the host would not refuse it.
    fn refused(&self, caller: &Caller<'_>, kind: Use, path: &Path, there: bool) -> Option<Kind> {
        if kind >= Use::Write {
            let place = place_of(path);
            if self.scope.may_write(&place) {
                return None;
            }
            let target = if there { path } else { path.parent()? };
            let may = rustix::fs::accessat(CWD, target, Access::WRITE_OK, AtFlags::empty()).is_ok();
            return may.then_some(Kind::Write);
        }
        if !there {
            return None;
        }
        let inside = if self.scope.own_root {
            let below = path.strip_prefix("/").unwrap_or(path);
            exists(&Path::new(&format!("/proc/{}/root", caller.call.pid)).join(below))
        } else {
            let real = path.canonicalize().unwrap_or_else(|_| path.into());
            kind == Use::Look || is_beneath(&real, &self.scope.readable)
        };
        let wanted = if kind == Use::Execute { Access::EXEC_OK } else { Access::READ_OK };
        let may = || rustix::fs::accessat(CWD, path, wanted, AtFlags::empty()).is_ok();
        (!inside && may()).then_some(if kind == Use::Execute { Kind::Execute } else { Kind::Read })
    }

    /// The program that a script names in its first line is opened by the kernel, which asks nobody.
    fn interpreter(&mut self, caller: &Caller<'_>, program: &Path, denials: &Notes) {
        use std::io::Read;
        use std::os::unix::fs::OpenOptionsExt;
        // Whatever is there now: neither a FIFO nor a terminal may hold the supervisor.
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let Ok(file) = std::fs::File::options().read(true).custom_flags(flags).open(program) else { return };
        if !file.metadata().is_ok_and(|m| m.is_file()) {
            return;
        }
        let mut first = Vec::new();
        let _ = file.take(SHEBANG_MAX as u64).read_to_end(&mut first);
        let Some(line) = first.strip_prefix(b"#!") else { return };
        let word = line.split(|b| *b == b'\n').next().unwrap_or_default();
        let word = word.split(|b| b.is_ascii_whitespace()).find(|w| !w.is_empty()).unwrap_or_default();
        let path = Path::new(OsStr::from_bytes(word));
        if path.is_absolute() {
            self.look_into(caller, Use::Execute, normal(path), denials);
        }
    }
}

/// The path of an argument, absolute, without `.` and `..`. Nothing where it can't be read.
fn named(caller: &Caller<'_>, touch: Touch) -> Option<PathBuf> {
    let given = caller.string(caller.arg(touch.path), PATH_BYTES).ok()?;
    let given = Path::new(OsStr::from_bytes(given.as_bytes()));
    if given.as_os_str().is_empty() {
        return None;
    }
    if given.is_absolute() {
        return Some(normal(given));
    }
    let start = match touch.directory.map(|n| caller.int(n)) {
        None | Some(libc::AT_FDCWD) => "cwd".to_owned(),
        Some(number) => format!("fd/{number}"),
    };
    let start = rustix::fs::readlink(format!("/proc/{}/{start}", caller.call.pid), Vec::new()).ok()?;
    let start = PathBuf::from(OsStr::from_bytes(start.as_bytes()));
    start.is_absolute().then(|| normal(&start.join(given)))
}

fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            _ => {}
        }
    }
    normal
}

fn exists(path: &Path) -> bool {
    rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Where `path` really is, as far as it exists.
fn place_of(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let Ok(real) = above.canonicalize() {
            return match path.strip_prefix(above) {
                Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
                _ => real,
            };
        }
    }
    path.to_path_buf()
}

/// Paths of processes, descriptors and devices, which no grant is about.
fn is_fleeting(path: &Path) -> bool {
    path.starts_with("/proc") || path.starts_with("/dev") || path == Path::new("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_only_grant_in_a_writable_place_is_not_writable() {
        let scope = Scope {
            readable: ["/usr", "/tmp", "/tmp/ro"].map(PathBuf::from).into(),
            writable: vec!["/tmp".into()],
            ..Scope::default()
        };
        assert!(scope.may_write(Path::new("/tmp/x")) && !scope.may_write(Path::new("/tmp/ro/x")));
        assert!(!scope.may_write(Path::new("/usr/x")) && !scope.may_write(Path::new("/home")));
    }

    #[test]
    fn paths_are_made_plain_and_missing_ones_keep_their_names() {
        assert_eq!(normal(Path::new("/a/./b/../c//d")), PathBuf::from("/a/c/d"));
        assert_eq!(normal(Path::new("/../..")), PathBuf::from("/"));
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(&real, real.join("link")).unwrap();
        assert_eq!(place_of(&real.join("link/new/name")), real.join("new/name"));
    }
}
