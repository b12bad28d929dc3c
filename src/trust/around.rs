//! What lies around the target: its parent directories, and the main worktree that a `.git` file leads to.

use super::walk::DIRECTORY;
use super::{Options, read};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Parents looked at above the target.
const MAX_PARENTS: usize = 128;
/// The longest `.git` or `commondir` file that is read, in bytes.
const MAX_LINK: u64 = 4_096;

/// A directory above the target.
pub(super) struct Parent {
    pub fd: OwnedFd,
    /// The name of the directory below, on the way to the target.
    pub child: Vec<u8>,
    /// The operator's home directory.
    pub home: bool,
}

/// The directories above `target`, nearest first, by `..` from its descriptor.
pub(super) fn parents(target: &OwnedFd, options: &Options) -> Result<Vec<Parent>, Errno> {
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

/// What `.git` in a directory is.
pub(super) enum Git {
    /// Not there.
    Absent,
    /// A repository of its own.
    Repository,
    /// A `.git` file or directory that shares another repository: the directories the client may take for its main
    /// worktree.
    Linked(Vec<OwnedFd>),
    /// Something that git would not make there, or that cannot be followed. Readers disagree on what it means.
    Odd(&'static str),
}

/// Looks at `.git` in `dir`.
///
/// In a linked worktree the client (2.1.332) also reads settings, commands and skills of the main worktree, which it
/// finds by the `commondir` file of the git directory. All of those files can belong to the target.
pub(super) fn git(dir: &OwnedFd) -> Git {
    let Ok(stat) = rustix::fs::statat(dir, ".git", AtFlags::SYMLINK_NOFOLLOW) else { return Git::Absent };
    let (git_dir, at) = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {
            (rustix::fs::openat(dir, ".git", DIRECTORY, Mode::empty()), PathBuf::from(".git"))
        }
        FileType::RegularFile => {
            let Some(text) = line_of(dir, ".git") else { return Git::Odd("`.git` cannot be read") };
            let Some(path) = text.strip_prefix("gitdir:").map(str::trim) else {
                return Git::Odd("`.git` is no link to a repository");
            };
            let flags = DIRECTORY.difference(OFlags::NOFOLLOW);
            (rustix::fs::openat(dir, path, flags, Mode::empty()), PathBuf::from(path))
        }
        _ => return Git::Odd("`.git` is neither a directory nor a file"),
    };
    let git_dir = match git_dir {
        Ok(fd) => fd,
        Err(Errno::NOENT | Errno::NOTDIR) => return Git::Odd("`.git` leads to no repository"),
        Err(_) => return Git::Odd("`.git` leads to a repository that cannot be read"),
    };
    match rustix::fs::statat(&git_dir, "commondir", AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Git::Repository,
        Err(_) => return Git::Odd("`commondir` cannot be read"),
        Ok(_) => {}
    }
    let Some(common) = line_of(&git_dir, "commondir") else { return Git::Odd("`commondir` cannot be read") };
    let common = common.trim();
    let mut mains: Vec<OwnedFd> = Vec::new();
    let flags = DIRECTORY.difference(OFlags::NOFOLLOW);
    if let Ok(fd) = rustix::fs::openat(&git_dir, common, flags, Mode::empty())
        && let Ok(main) = rustix::fs::openat(&fd, "..", DIRECTORY, Mode::empty())
    {
        mains.push(main);
    }
    // The client joins the paths as text, the kernel follows links: the two can lead to different places.
    if let Ok(here) = rustix::fs::readlinkat(rustix::fs::CWD, proc_path(dir), Vec::new()) {
        let base = Path::new(OsStr::from_bytes(here.as_bytes()));
        let joined = base.join(at).join(common);
        if let Some(main) = lexical(&joined).parent()
            && let Ok(fd) = rustix::fs::open(main, flags, Mode::empty())
            && !mains.iter().any(|m| same(m, &fd))
        {
            mains.push(fd);
        }
    }
    Git::Linked(mains)
}

/// True when both are the same directory.
pub(super) fn same(a: &OwnedFd, b: &OwnedFd) -> bool {
    match (rustix::fs::fstat(a), rustix::fs::fstat(b)) {
        (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
        _ => false,
    }
}

/// The text of a small regular file.
fn line_of(dir: &OwnedFd, name: &str) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = read::open_beneath(dir, name.as_bytes(), flags, ResolveFlags::NO_SYMLINKS).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut text = String::new();
    let read = std::fs::File::from(fd).take(MAX_LINK + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= MAX_LINK).then_some(text)
}

/// `path` without `.` and `..`, by its words.
fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}
