//! Reads one configuration file by descriptor: no link is followed, nothing blocks, and the size is capped.

use crate::untrusted::Untrusted;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};

/// The largest configuration file that is read, in bytes (1,000,000). A larger one blocks.
pub const MAX_BYTES: u64 = 1_000_000;

/// What was found at a name.
#[derive(Debug)]
pub enum Content {
    /// Nothing is there.
    Absent,
    /// A symbolic link, with what it points to.
    Link(Untrusted<String>),
    /// A FIFO, device, socket or directory where a file belongs.
    Special(&'static str),
    /// More than [`MAX_BYTES`].
    TooLarge,
    /// The system refused.
    Unreadable(Errno),
    /// The bytes, read once.
    Bytes(Untrusted<Vec<u8>>),
}

const OPEN: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Reads `name` (one path component) in `dir`.
pub fn component(dir: impl AsFd, name: &[u8]) -> Content {
    match open_beneath(dir.as_fd(), name, OPEN, ResolveFlags::NO_SYMLINKS) {
        Ok(fd) => regular(fd),
        Err(Errno::NOENT | Errno::NOTDIR) => Content::Absent,
        Err(Errno::LOOP) => Content::Link(link_target(dir, name)),
        // Opening a socket fails so; so does a device without a driver.
        Err(Errno::NXIO | Errno::NODEV) => Content::Special("socket or device"),
        Err(errno) => Content::Unreadable(errno),
    }
}

/// Reads `path` (relative, any number of components) beneath `root`, following links that stay beneath it.
pub fn beneath(root: impl AsFd, path: &[u8]) -> Content {
    match open_beneath(root, path, OPEN.difference(OFlags::NOFOLLOW), ResolveFlags::empty()) {
        Ok(fd) => regular(fd),
        Err(Errno::NOENT | Errno::NOTDIR) => Content::Absent,
        Err(Errno::NXIO | Errno::NODEV) => Content::Special("socket or device"),
        Err(errno) => Content::Unreadable(errno),
    }
}

/// Opens `path` beneath `root`; `extra` may forbid links altogether.
pub(super) fn open_beneath(
    root: impl AsFd,
    path: &[u8],
    flags: OFlags,
    extra: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | extra;
    // The kernel answers EAGAIN when a rename races with the resolution of `..`; a few tries are its advice.
    for _ in 0..8 {
        match rustix::fs::openat2(root.as_fd(), path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

fn regular(fd: OwnedFd) -> Content {
    let stat = match rustix::fs::fstat(&fd) {
        Ok(stat) => stat,
        Err(errno) => return Content::Unreadable(errno),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Fifo => return Content::Special("named pipe"),
        FileType::Directory => return Content::Special("directory"),
        FileType::CharacterDevice | FileType::BlockDevice => return Content::Special("device"),
        _ => return Content::Special("special file"),
    }
    if u64::try_from(stat.st_size).map_or(true, |size| size > MAX_BYTES) {
        return Content::TooLarge;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(stat.st_size).unwrap_or(0) + 1);
    match std::fs::File::from(fd).take(MAX_BYTES + 1).read_to_end(&mut bytes) {
        Ok(n) if n as u64 > MAX_BYTES => Content::TooLarge,
        Ok(_) => Content::Bytes(Untrusted::new(bytes)),
        Err(error) => Content::Unreadable(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

/// What the link `name` in `dir` points to; empty when it is gone.
pub(super) fn link_target(dir: impl AsFd, name: &[u8]) -> Untrusted<String> {
    let target = rustix::fs::readlinkat(dir, name, Vec::new());
    Untrusted::new(target.map_or_else(|_| String::new(), |t| t.to_string_lossy().into_owned()))
}
