//! Finds the configuration files, by descriptor: every directory and file is opened relative to one already open, and
//! no link is followed on the way.

use super::judge::{Judge, Kind};
use super::limits::{Limits, Spent};
use super::report::{Class, Report};
use super::rules::{Sink, other};
use super::{Error, Options, mask, read};
use crate::untrusted::Untrusted;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Parents looked at above the target.
const MAX_PARENTS: usize = 128;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

/// What a directory is to the client, which decides what the names in it mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Any directory.
    Plain,
    /// `.claude`
    Claude,
    /// `.claude-plugin`
    PluginMeta,
    /// `hooks` in a plugin
    PluginHooks,
    /// `monitors` in a plugin
    PluginMonitors,
    /// `agents`, `commands`, `skills`, `rules`, `output-styles`, and what is below them
    Agents,
    Commands,
    Skills,
    Rules,
    Styles,
    /// The rest of `.claude`, where only nested `.claude` directories matter.
    Inert,
}

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
    let parents = if options.parents { parents(&target, options).map_err(io)? } else { Vec::new() };
    // The repository the target lies in bounds what its files may reach; without one, the target does.
    let root_up = std::iter::once(&target).chain(parents.iter().map(|p| &p.fd)).position(has_git);
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
            prefix.clone(),
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
            let mut outer = Walk {
                judge: Judge::new(
                    parent.fd.as_fd(),
                    "../".repeat(up),
                    Vec::new(),
                    options.evidence,
                    walk.judge.take_spent(),
                ),
                report: &mut *walk.report,
                followed: HashSet::new(),
            };
            outer.parent(&parent.fd, Vec::new(), root_up.is_none())?;
            let spent = outer.judge.take_spent();
            walk.judge.give_spent(spent);
        }
    }
    walk.limit();
    Ok(report)
}

struct Parent {
    fd: OwnedFd,
    /// The name of the directory below, on the way to the target.
    child: Vec<u8>,
    /// The operator's home directory.
    home: bool,
}

/// The directories above `target`, nearest first, by `..` from its descriptor.
fn parents(target: &OwnedFd, options: &Options) -> Result<Vec<Parent>, Errno> {
    let home = options.home.as_deref().and_then(|h| rustix::fs::stat(h).ok()).map(|s| (s.st_dev, s.st_ino));
    let path = rustix::fs::readlinkat(rustix::fs::CWD, proc_path(target), Vec::new())?;
    let mut names: Vec<Vec<u8>> =
        path.as_bytes().split(|b| *b == b'/').filter(|n| !n.is_empty()).map(<[u8]>::to_vec).collect();
    let mut found: Vec<Parent> = Vec::new();
    let mut here = rustix::fs::fstat(target)?;
    for _ in 0..MAX_PARENTS {
        let below = found.last().map_or(target.as_fd(), |p: &Parent| p.fd.as_fd());
        let fd = rustix::fs::openat(below, "..", DIRECTORY, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        if (stat.st_dev, stat.st_ino) == (here.st_dev, here.st_ino) {
            return Ok(found);
        }
        let child = names.pop().unwrap_or_default();
        found.push(Parent { home: home == Some((stat.st_dev, stat.st_ino)), fd, child });
        here = stat;
    }
    Err(Errno::NAMETOOLONG)
}

fn proc_path(fd: &OwnedFd) -> String {
    use std::os::fd::AsRawFd as _;
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

fn has_git(fd: &OwnedFd) -> bool {
    rustix::fs::statat(fd, ".git", AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

struct Walk<'a> {
    judge: Judge<'a>,
    report: &'a mut Report,
    /// Directories that were entered through a link, so that a loop ends.
    followed: HashSet<(u64, u64)>,
}

impl Walk<'_> {
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

    /// Everything below one directory.
    fn tree(&mut self, fd: &OwnedFd, path: Vec<u8>, place: Place) -> Result<(), Error> {
        let mut stack: Vec<Frame> = Vec::new();
        match Dir::read_from(fd) {
            Ok(dir) => stack.push(Frame { plugin: plugin_root(fd.as_fd(), place), dir, path, place }),
            Err(errno) => self.unreadable(&path, errno),
        }
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
            Err(_) => {
                self.outside(path, target);
                return None;
            }
        };
        let stat = rustix::fs::fstat(&opened).ok()?;
        if !self.followed.insert((stat.st_dev, stat.st_ino)) {
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

fn join(parent: &[u8], name: &[u8]) -> Vec<u8> {
    if parent.is_empty() { name.to_vec() } else { [parent, b"/", name].concat() }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()),
        None => (&[], path),
    }
}

/// True when a directory holds `.claude-plugin`, which makes it a plugin or a marketplace.
fn plugin_root(fd: BorrowedFd<'_>, place: Place) -> bool {
    matches!(place, Place::Plain | Place::Skills | Place::Inert)
        && rustix::fs::statat(fd, ".claude-plugin", AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

fn child_place(place: Place, plugin: bool, name: &[u8]) -> Place {
    match (place, name) {
        // Copies of the repository live below .claude/worktrees; they are repositories of their own.
        (_, b".claude") => Place::Claude,
        (_, b".claude-plugin") => Place::PluginMeta,
        (Place::Claude, b"agents") => Place::Agents,
        (Place::Claude, b"commands") => Place::Commands,
        (Place::Claude, b"skills") => Place::Skills,
        (Place::Claude, b"rules") => Place::Rules,
        (Place::Claude, b"output-styles") => Place::Styles,
        (Place::Claude, b"worktrees") => Place::Plain,
        (Place::Claude, _) => Place::Inert,
        (_, b"agents") if plugin => Place::Agents,
        (_, b"commands") if plugin => Place::Commands,
        (_, b"skills") if plugin => Place::Skills,
        (_, b"output-styles") if plugin => Place::Styles,
        (_, b"hooks") if plugin => Place::PluginHooks,
        (_, b"monitors") if plugin => Place::PluginMonitors,
        (Place::PluginMeta | Place::PluginHooks | Place::PluginMonitors, _) => Place::Plain,
        (place, _) => place,
    }
}

/// True for the name of a directory whose replacement by a link must not go unseen.
fn directory_matters(place: Place, plugin: bool, name: &[u8]) -> bool {
    let child = child_place(place, plugin, name);
    child != place && child != Place::Inert && child != Place::Plain
        || matches!(place, Place::Agents | Place::Commands | Place::Skills | Place::Rules | Place::Styles)
}

/// What the client takes the file `name` in a directory of kind `place` for.
fn file_kind(place: Place, plugin: bool, name: &[u8], parent: &[u8]) -> Option<Kind> {
    let markdown =
        name.len() > 3 && name.get(name.len() - 3..).is_some_and(|e| e.eq_ignore_ascii_case(b".md"));
    let by_place = match place {
        Place::Claude => match name {
            b"settings.json" | b"settings.local.json" => Some(Kind::Settings),
            b"CLAUDE.md" | b"CLAUDE.local.md" => Some(Kind::Memory),
            b"scheduled_tasks.json" => Some(Kind::Schedule),
            _ => None,
        },
        Place::PluginMeta => match name {
            b"plugin.json" => Some(Kind::Manifest),
            b"marketplace.json" => Some(Kind::Marketplace),
            _ => None,
        },
        Place::PluginHooks if name == b"hooks.json" => Some(Kind::Hooks),
        Place::PluginMonitors if name == b"monitors.json" => Some(Kind::Monitors),
        Place::Agents if markdown => Some(Kind::Agent),
        Place::Commands if markdown => Some(Kind::Command),
        Place::Skills if name.eq_ignore_ascii_case(b"SKILL.md") => Some(Kind::Skill),
        Place::Styles if markdown => Some(Kind::Style),
        Place::Rules if markdown => Some(Kind::Memory),
        _ => None,
    };
    by_place.or_else(|| match name {
        b".mcp.json" if plugin => Some(Kind::PluginMcp),
        b".mcp.json" => Some(Kind::Mcp),
        b".lsp.json" if plugin => Some(Kind::Lsp),
        b"monitors.json" if plugin => Some(Kind::Monitors),
        b"settings.json" if plugin => Some(Kind::Settings),
        b"hooks.json" if parent == b"hooks" || parent.ends_with(b"/hooks") => Some(Kind::MaybeHooks),
        b"CLAUDE.md" | b"CLAUDE.local.md" | b"AGENTS.md" | b"AGENTS.local.md" | b"AGENTS.override.md" => {
            Some(Kind::Memory)
        }
        b"qlpack.yml" | b"qlpack.yaml" | b"codeql-pack.yml" | b"codeql-pack.yaml" => Some(Kind::CodeQlPack),
        b"codeql-config.yml" | b"codeql-config.yaml"
            if parent == b".github/codeql" || parent.ends_with(b"/.github/codeql") =>
        {
            Some(Kind::CodeQlConfig)
        }
        _ => interesting(name, parent).map(Kind::Other),
    })
}

/// The other agents' files. Most names in a repository are none, so the first byte and the parent decide quickly.
fn interesting(name: &[u8], parent: &[u8]) -> Option<&'static str> {
    let base = parent.rsplit(|b| *b == b'/').next().unwrap_or_default();
    let dotted = name.starts_with(b".")
        || base.starts_with(b".")
        || matches!(base, b"rules" | b"instructions")
        || matches!(base, b"prompts" | b"agents" | b"settings")
        || parent.windows(14).any(|w| w == b".devcontainer/");
    let named = matches!(name, b"GEMINI.md" | b"WARP.md" | b"opencode.json" | b"opencode.jsonc");
    if dotted || named { other::label(&join(parent, name)) } else { None }
}
