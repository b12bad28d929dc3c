//! Watches a run: every path that it uses, and everything that it is refused.
//!
//! Only where the operator asks for it (`--explain`, `--observe`): each call with a path then waits for the supervisor,
//! which makes an open many times slower. What is read of the command's memory here is evidence, never the ground of a
//! decision: a call goes on only if the filter's plain program allows it, by its registers alone.

use super::caller::{Caller, PATH_BYTES};
use super::is_beneath;
use crate::sandbox::denial::{Kind, Notes};
use crate::sandbox::plan::SYSTEM_DIRS;
use crate::sandbox::seccomp::{Plain, Ruling, Touch, Use, calls, touches};
use crate::sandbox::walk::{Walk, walk};
use rustix::fs::{Access, AtFlags, CWD};
use std::collections::{BTreeMap, BTreeSet, HashSet};
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
    /// Host paths outside the usual ones, without any link, with the strongest use of each that its user has a right to.
    pub paths: BTreeMap<PathBuf, Use>,
    /// Links outside the usual places that paths led through.
    pub links: BTreeSet<PathBuf>,
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
        let touches = touches(caller.call.number, caller.call.args);
        if self.scope.observing {
            return self.observe(caller, &touches);
        }
        for touch in touches {
            if let Some(path) = named(caller, touch) {
                self.look_into(caller, touch.kind, normal(&path), denials);
            }
        }
    }

    /// Notes what the paths of a call lead to, if the call can do what it is about to.
    fn observe(&mut self, caller: &Caller<'_>, touches: &[Touch]) {
        let is = |call: calls::Call| call.is(caller.call.number);
        let moves = [calls::rename, calls::renameat, calls::renameat2].into_iter().any(is);
        let new_names = [calls::mkdir, calls::mkdirat, calls::mknod, calls::mknodat, calls::symlink]
            .into_iter()
            .chain([calls::symlinkat, calls::link, calls::linkat])
            .any(is);
        for (index, touch) in touches.iter().enumerate() {
            let Some(path) = named(caller, *touch) else { continue };
            if is_fleeting(&path) && path != Path::new("/") {
                continue;
            }
            let about = About {
                kind: touch.kind,
                follow: follows(caller, touch.kind) && !new_names,
                // Where a name is moved to, nothing need be.
                fresh: (new_names && touch.kind == Use::Make) || is_exclusive(caller),
                destination: moves && index == 1,
                emptied: is(calls::rmdir),
            };
            if !self.use_of(path, about) {
                // Without what is moved, nothing is.
                return;
            }
        }
    }

    /// Notes one use. False: the call will fail for it.
    fn use_of(&mut self, path: PathBuf, about: About) -> bool {
        let looked = (about.kind, path.clone());
        if self.looked.contains(&looked) && about.kind < Use::Write {
            return true;
        }
        let bytes = path.as_os_str().len();
        if self.looked.len() >= USES_MAX || self.bytes + bytes > BYTES_MAX {
            self.using().incomplete = true;
            return true;
        }
        let Some(walk) = walk(&path, about.follow) else { return true };
        let Some(kind) = about.needed(&walk) else { return false };
        let real = &walk.real;
        let usual = if kind >= Use::Write { &self.scope.writable } else { &self.scope.readable };
        // What is listed of the root is all that is used of it.
        let passing = if real == Path::new("/") { kind != Use::Read } else { is_fleeting(real) };
        let outside = !is_beneath(real, usual) && !passing && !real.starts_with("/sys");
        let at_link = walk.at_link.then(|| real.clone());
        let links: Vec<PathBuf> = walk
            .links
            .iter()
            .map(|(at, _)| at.clone())
            .chain(at_link.filter(|_| kind == Use::Look))
            .filter(|at| !is_beneath(at, &self.scope.readable) && !is_system_link(at))
            .collect();
        {
            let mut used = self.using();
            if outside && !(walk.at_link && kind == Use::Look) {
                let strongest = used.paths.entry(real.clone()).or_insert(kind);
                *strongest = (*strongest).max(kind);
            }
            used.links.extend(links);
        }
        if self.looked.insert(looked) {
            self.bytes += bytes;
        }
        if kind == Use::Execute
            && let Some(interpreter) = interpreter(real)
        {
            self.use_of(interpreter, About { kind: Use::Execute, follow: true, ..About::default() });
        }
        true
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
        if let Some(refused) = self.refused(caller, kind, &path, there) {
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
}

/// What a call is about to do with a path.
#[derive(Debug, Clone, Copy)]
struct About {
    kind: Use,
    /// Whether a link at the end is followed.
    follow: bool,
    /// Whether something that is there makes it fail.
    fresh: bool,
    /// Whether nothing need be there to be replaced.
    destination: bool,
    /// Whether a directory must be empty.
    emptied: bool,
}

impl Default for About {
    fn default() -> About {
        About { kind: Use::Look, follow: true, fresh: false, destination: false, emptied: false }
    }
}

impl About {
    /// What right the use needs, as the one who asks can do it at all: nobody needs what fails anyway.
    fn needed(&self, walk: &Walk) -> Option<Use> {
        let may = |path: &Path, access| rustix::fs::accessat(CWD, path, access, AtFlags::EACCESS).is_ok();
        let real = walk.real.as_path();
        let directory = walk.there && !walk.at_link && real.is_dir();
        let in_parent = || real.parent().is_some_and(|up| may(up, Access::WRITE_OK | Access::EXEC_OK));
        match self.kind {
            Use::Make if walk.there && self.fresh => None,
            Use::Make if walk.there && directory => Some(Use::Look),
            Use::Make if walk.there => may(real, Access::WRITE_OK).then_some(Use::Write),
            Use::Make => in_parent().then_some(Use::Make),
            Use::Name if !walk.there && !self.destination => None,
            Use::Name if self.emptied && !is_empty(real) => None,
            Use::Name => in_parent().then_some(Use::Name),
            _ if !walk.there => None,
            Use::Look => Some(Use::Look),
            Use::Write => (!directory && may(real, Access::WRITE_OK)).then_some(Use::Write),
            Use::Execute => may(real, Access::EXEC_OK).then_some(Use::Execute),
            Use::Read => may(real, Access::READ_OK).then_some(Use::Read),
        }
    }
}

/// Whether `at` is a link that every run has: a directory of the system's that is one.
fn is_system_link(at: &Path) -> bool {
    let system = |name| SYSTEM_DIRS.iter().any(|dir| Path::new(dir) == Path::new(name));
    at.parent() == Some(Path::new("/")) && at.file_name().is_some_and(system)
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether a link at the end of the call's path is followed.
fn follows(caller: &Caller<'_>, kind: Use) -> bool {
    let is = |call: calls::Call| call.is(caller.call.number);
    let flag = |argument: usize, flag: i32| caller.int(argument) & flag != 0;
    if kind == Use::Name || is(calls::lstat) || is(calls::readlink) || is(calls::readlinkat) {
        return false;
    }
    if is(calls::newfstatat) || is(calls::fstatat) || is(calls::faccessat2) {
        return !flag(3, libc::AT_SYMLINK_NOFOLLOW);
    }
    if is(calls::statx) {
        return !flag(2, libc::AT_SYMLINK_NOFOLLOW);
    }
    if is(calls::open) || is(calls::openat) {
        let flags = if is(calls::open) { 1 } else { 2 };
        return !flag(flags, libc::O_NOFOLLOW) && !is_exclusive(caller);
    }
    true
}

/// Whether the call opens a file that must be new.
fn is_exclusive(caller: &Caller<'_>) -> bool {
    const NEW: i32 = libc::O_CREAT | libc::O_EXCL;
    (calls::open.is(caller.call.number) && caller.int(1) & NEW == NEW)
        || (calls::openat.is(caller.call.number) && caller.int(2) & NEW == NEW)
}

/// The program that a script names in its first line: it is opened by the kernel, which asks nobody.
fn interpreter(program: &Path) -> Option<PathBuf> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    // Whatever is there now: neither a FIFO nor a terminal may hold the supervisor.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = std::fs::File::options().read(true).custom_flags(flags).open(program).ok()?;
    if !file.metadata().is_ok_and(|m| m.is_file()) {
        return None;
    }
    let mut first = Vec::new();
    let _ = file.take(SHEBANG_MAX as u64).read_to_end(&mut first);
    let line = first.strip_prefix(b"#!")?;
    let word = line.split(|b| *b == b'\n').next().unwrap_or_default();
    let word = word.split(|b| b.is_ascii_whitespace()).find(|w| !w.is_empty())?;
    let path = Path::new(OsStr::from_bytes(word));
    path.is_absolute().then(|| path.to_path_buf())
}

/// The path of an argument, absolute, otherwise as it was given. Nothing where it can't be read.
fn named(caller: &Caller<'_>, touch: Touch) -> Option<PathBuf> {
    let given = caller.string(caller.arg(touch.path), PATH_BYTES).ok()?;
    let given = Path::new(OsStr::from_bytes(given.as_bytes()));
    if given.as_os_str().is_empty() {
        return None;
    }
    if given.is_absolute() {
        return Some(given.to_path_buf());
    }
    let start = match touch.directory.map(|n| caller.int(n)) {
        None | Some(libc::AT_FDCWD) => "cwd".to_owned(),
        Some(number) => format!("fd/{number}"),
    };
    let start = rustix::fs::readlink(format!("/proc/{}/{start}", caller.call.pid), Vec::new()).ok()?;
    let start = PathBuf::from(OsStr::from_bytes(start.as_bytes()));
    start.is_absolute().then(|| start.join(given))
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
