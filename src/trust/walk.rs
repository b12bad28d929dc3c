//! Finds the configuration files, by descriptor: every directory and file is opened relative to one already open, and
//! no link is followed on the way.

use super::around::{self, Git};
use super::judge::{Judge, Kind};
use super::limits::{Limits, Spent};
use super::place::{Place, child_place, directory_matters, file_kind, plugin_root};
use super::report::{Class, Report};
use super::rules::Sink;
use super::{Error, Options, mask, read};
use crate::untrusted::Untrusted;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

pub(super) const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

struct Frame {
    dir: Dir,
    /// Relative to the boundary, `/`-separated, empty for the boundary itself.
    path: Vec<u8>,
    place: Place,
    plugin: bool,
}

/// Runs a whole check.
pub(super) fn run(repo: &Path, options: &Options) -> Result<Report, Error> {
    run_within(repo, options, Limits::default())
}

/// [`run`] with limits of one's own.
pub(super) fn run_within(repo: &Path, options: &Options, limits: Limits) -> Result<Report, Error> {
    let shown = mask::path(&repo.to_string_lossy());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let target = rustix::fs::open(repo, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => Error::Target { path: shown.clone(), reason: "no such directory" },
        Errno::NOTDIR => Error::Target { path: shown.clone(), reason: "not a directory" },
        Errno::LOOP => Error::Target { path: shown.clone(), reason: "too many links" },
        errno => Error::Io { path: shown.clone(), source: errno.into() },
    })?;
    let io = |errno: Errno| Error::Io { path: shown.clone(), source: errno.into() };
    let mut report = Report::new(&repo.to_string_lossy());
    let parents = if options.parents { around::parents(&target, options).map_err(io)? } else { Vec::new() };
    let (root_up, mains) = repository(&target, &parents, &mut report);
    let boundary = match root_up {
        Some(up) if up > 0 => parents.get(up - 1).map_or(&target, |p| &p.fd),
        _ => &target,
    };
    let prefix = match root_up {
        Some(up) => parents.iter().take(up).rev().map(|p| p.child.as_slice()).collect::<Vec<_>>().join(&b'/'),
        None => Vec::new(),
    };
    let mut walk = Walk {
        judge: Judge::new(
            boundary.as_fd(),
            "../".repeat(root_up.unwrap_or(0)),
            Some(prefix.clone()),
            options.evidence,
            Spent::new(limits),
        ),
        report: &mut report,
        followed: HashSet::new(),
    };
    walk.tree(&target, prefix, Place::Plain)?;
    for (n, parent) in parents.iter().enumerate().filter(|(_, p)| !p.home) {
        let inside = root_up.is_some_and(|up| n < up);
        let up = n + 1;
        if inside {
            let below = root_up.unwrap_or(0) - up;
            let path =
                parents.iter().take(root_up.unwrap_or(0)).rev().take(below).map(|p| p.child.as_slice());
            walk.parent(&parent.fd, path.collect::<Vec<_>>().join(&b'/'), true)?;
        } else {
            walk.elsewhere(&parent.fd, "../".repeat(up), root_up.is_none())?;
        }
    }
    // A main worktree is read as if it were a parent; the target itself and the operator's home have been dealt with.
    let home = parents.iter().find(|p| p.home);
    for main in mains {
        if !around::same(&main, &target) && !home.is_some_and(|h| around::same(&h.fd, &main)) {
            walk.elsewhere(&main, "(main worktree)/".to_owned(), true)?;
        }
    }
    walk.limit();
    Ok(report)
}

/// How many directories above the target its repository is, and the main worktrees it may belong to.
fn repository(
    target: &OwnedFd,
    parents: &[around::Parent],
    report: &mut Report,
) -> (Option<usize>, Vec<OwnedFd>) {
    for (up, dir) in std::iter::once(target).chain(parents.iter().map(|p| &p.fd)).enumerate() {
        match around::git(dir) {
            Git::Absent => {}
            Git::Repository => return (Some(up), Vec::new()),
            Git::Linked(mains) => return (Some(up), mains),
            // A reader that does not take it for a repository goes on above, so that is read as well.
            Git::Odd(reason) => {
                let mut sink = Sink::default();
                sink.unreadable(reason);
                report.add(&format!("{}.git", "../".repeat(up)), sink.into_findings());
            }
        }
    }
    (None, Vec::new())
}

struct Walk<'a> {
    judge: Judge<'a>,
    report: &'a mut Report,
    /// Directories that were entered through a link, so that a loop ends.
    followed: HashSet<(u64, u64, Place)>,
}

impl Walk<'_> {
    /// The configuration directly in a directory that is not part of the target; `shown` is how it is written.
    fn elsewhere(&mut self, fd: &OwnedFd, shown: String, settings: bool) -> Result<(), Error> {
        let evidence = self.judge.wants_evidence();
        let mut outer = Walk {
            judge: Judge::new(fd.as_fd(), shown, None, evidence, self.judge.take_spent()),
            report: &mut *self.report,
            followed: HashSet::new(),
        };
        let done = outer.parent(fd, Vec::new(), settings);
        let spent = outer.judge.take_spent();
        self.judge.give_spent(spent);
        done
    }

    /// The configuration directly in one parent directory.
    fn parent(&mut self, fd: &OwnedFd, path: Vec<u8>, settings: bool) -> Result<(), Error> {
        if self.limit() {
            return Ok(());
        }
        for name in ["CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", ".mcp.json"] {
            if let Ok(stat) = rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                let kind = file_kind(Place::Plain, false, name.as_bytes(), &path);
                self.file(fd.as_fd(), name.as_bytes(), &path, FileType::from_raw_mode(stat.st_mode), kind);
            }
        }
        match rustix::fs::statat(fd, ".claude", AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if settings => {
                let path = join(&path, b".claude");
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Directory => {
                        match rustix::fs::openat(fd, ".claude", DIRECTORY, Mode::empty()) {
                            Ok(dir) => self.tree(&dir, path, Place::Claude)?,
                            Err(errno) => self.unreadable(&path, errno),
                        }
                    }
                    FileType::Symlink => self.link(fd.as_fd(), b".claude", &path),
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Everything below one directory, and the components that manifests in it name elsewhere.
    fn tree(&mut self, fd: &OwnedFd, path: Vec<u8>, place: Place) -> Result<(), Error> {
        self.below(fd, path, place)?;
        while let Some((path, place)) = self.judge.take_component() {
            if let Some(frame) = self.follow(&path, place, &Untrusted::new(String::new())) {
                self.frames(vec![frame])?;
            }
        }
        Ok(())
    }

    fn below(&mut self, fd: &OwnedFd, path: Vec<u8>, place: Place) -> Result<(), Error> {
        let mut stack: Vec<Frame> = Vec::new();
        match Dir::read_from(fd) {
            Ok(dir) => stack.push(Frame { plugin: plugin_root(fd.as_fd(), place), dir, path, place }),
            Err(errno) => self.unreadable(&path, errno),
        }
        self.frames(stack)
    }

    fn frames(&mut self, mut stack: Vec<Frame>) -> Result<(), Error> {
        loop {
            if self.limit() {
                return Ok(());
            }
            let full = self.judge.spent().full(stack.len());
            let Some(frame) = stack.last_mut() else { break };
            let entry = match frame.dir.read() {
                None => {
                    stack.pop();
                    continue;
                }
                Some(Err(errno)) => {
                    let path = frame.path.clone();
                    stack.pop();
                    self.unreadable(&path, errno);
                    continue;
                }
                Some(Ok(entry)) => entry,
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            self.judge.spent().entry();
            let Ok(dir) = frame.dir.fd() else { continue };
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => kind = FileType::from_raw_mode(stat.st_mode),
                    Err(_) => continue,
                }
            }
            if kind == FileType::Directory {
                if let Some(child) = self.enter(frame, name, full)? {
                    stack.push(child);
                }
                continue;
            }
            if kind == FileType::Symlink && directory_matters(frame.place, frame.plugin, name) {
                let place = child_place(frame.place, frame.plugin, name);
                let path = join(&frame.path, name);
                match place {
                    Place::Agents | Place::Commands | Place::Skills | Place::Rules | Place::Styles => {
                        let target = read::link_target(dir, name);
                        if let Some(child) = self.follow(&path, place, &target) {
                            stack.push(child);
                        }
                    }
                    _ => self.link(dir, name, &path),
                }
                continue;
            }
            let file = file_kind(frame.place, frame.plugin, name, &frame.path).or_else(|| {
                (self.judge.wants_evidence() && frame.place != Place::Plain).then_some(Kind::Evidence)
            });
            if let Some(file) = file {
                let path = frame.path.clone();
                self.file(dir, name, &path, kind, Some(file));
            }
        }
        Ok(())
    }

    /// Opens a child directory. `None` when it is of no interest or is gone.
    fn enter(&mut self, frame: &Frame, name: &[u8], full: bool) -> Result<Option<Frame>, Error> {
        if name == b".git" {
            return Ok(None);
        }
        let path = join(&frame.path, name);
        if let Some(kind) = file_kind(frame.place, frame.plugin, name, &frame.path)
            && kind.strict()
        {
            let mut sink = Sink::default();
            sink.unreadable("a directory where a file belongs");
            self.add(&path, sink);
        }
        if full {
            let mut sink = Sink::default();
            let limit = self.judge.spent().depth();
            sink.block(Class::LimitReached, "directory depth", format!("deeper than {limit}"));
            self.add(&path, sink);
            return Ok(None);
        }
        let Ok(dir) = frame.dir.fd() else { return Ok(None) };
        let fd = match rustix::fs::openat(dir, name, DIRECTORY, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => {
                self.unreadable(&path, errno);
                return Ok(None);
            }
        };
        let place = child_place(frame.place, frame.plugin, name);
        let plugin = plugin_root(fd.as_fd(), place);
        match Dir::new(fd) {
            Ok(dir) => Ok(Some(Frame { dir, path, place, plugin })),
            Err(errno) => {
                self.unreadable(&path, errno);
                Ok(None)
            }
        }
    }

    /// Enters a directory of definitions through a link that stays in the repository.
    fn follow(&mut self, path: &[u8], place: Place, target: &Untrusted<String>) -> Option<Frame> {
        let flags = DIRECTORY.difference(OFlags::NOFOLLOW);
        let opened = read::open_beneath(self.judge.boundary(), path, flags, ResolveFlags::empty());
        let opened = match opened {
            Ok(fd) => fd,
            // A link to a file is read as a file.
            Err(Errno::NOTDIR) => {
                let (dir, name) = split(path);
                if let Some(kind) = file_kind(place, false, name, dir) {
                    let content = read::beneath(self.judge.boundary(), path);
                    self.judge.content(self.report, path, kind, content);
                }
                return None;
            }
            Err(Errno::NOENT) if target.inspect().is_empty() => return None,
            Err(_) => {
                self.outside(path, target);
                return None;
            }
        };
        let stat = rustix::fs::fstat(&opened).ok()?;
        if !self.followed.insert((stat.st_dev, stat.st_ino, place)) {
            return None;
        }
        let dir = Dir::new(opened).ok()?;
        Some(Frame { dir, path: path.to_vec(), place, plugin: false })
    }

    /// Reads and judges one file.
    fn file(&mut self, dir: BorrowedFd<'_>, name: &[u8], parent: &[u8], kind: FileType, file: Option<Kind>) {
        let Some(file) = file else { return };
        let path = join(parent, name);
        if kind == FileType::Symlink {
            if file.strict() {
                self.link(dir, name, &path);
                return;
            }
            let target = read::link_target(dir, name);
            match read::beneath(self.judge.boundary(), &path) {
                read::Content::Absent | read::Content::Unreadable(_) if file.informs() => {}
                read::Content::Absent | read::Content::Unreadable(_) => self.outside(&path, &target),
                content => self.judge.content(self.report, &path, file, content),
            }
            return;
        }
        let content = read::component(dir, name);
        self.judge.content(self.report, &path, file, content);
    }

    fn link(&mut self, dir: BorrowedFd<'_>, name: &[u8], path: &[u8]) {
        let target = read::link_target(dir, name);
        let mut sink = Sink::default();
        sink.block(Class::Unreadable, "symlink", mask::target(target.inspect()));
        self.add(path, sink);
    }

    fn outside(&mut self, path: &[u8], target: &Untrusted<String>) {
        let mut sink = Sink::default();
        sink.block(Class::OutsidePath, "symlink out of the repository", mask::target(target.inspect()));
        self.add(path, sink);
    }

    fn unreadable(&mut self, path: &[u8], errno: Errno) {
        let mut sink = Sink::default();
        sink.unreadable(&format!("cannot read: {errno}"));
        self.add(path, sink);
    }

    /// True when the check must stop; says so in the report, once.
    fn limit(&mut self) -> bool {
        if let Some((what, limit)) = self.judge.spent().newly_reached() {
            let mut sink = Sink::default();
            sink.block(Class::LimitReached, what, format!("more than {limit}; the rest was not looked at"));
            self.add(b".", sink);
        }
        self.judge.spent().over()
    }

    fn add(&mut self, path: &[u8], sink: Sink) {
        let shown = self.judge.shown(path);
        self.report.add(&shown, sink.into_findings());
    }
}

pub(super) fn join(parent: &[u8], name: &[u8]) -> Vec<u8> {
    if parent.is_empty() { name.to_vec() } else { [parent, b"/", name].concat() }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()),
        None => (&[], path),
    }
}
