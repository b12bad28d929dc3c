//! Names in directories, as the calls that make, move and remove them mean them.

use super::caller::{Caller, Object};
use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;

/// Longest target of a symbolic link, with its end (PATH_MAX).
pub const LINK_BYTES: usize = 4096;

/// A name in a directory.
pub struct Entry {
    pub directory: Object,
    pub name: CString,
    /// Whether a slash followed: only a directory may be meant.
    pub slash: bool,
}

/// The entry that the path at `address` relative to `dir` names; `None` for a path that names none ("", "/", "..").
pub fn entry(caller: &Caller<'_>, dir: i32, address: u64) -> Result<Option<Entry>, Errno> {
    let path = caller.path(address)?;
    let bytes = path.as_bytes();
    let end = bytes.iter().rposition(|b| *b != b'/').map_or(0, |at| at + 1);
    let (named, slash) = (bytes.get(..end).unwrap_or_default(), end < bytes.len());
    let start = named.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
    let (parent, name) = (named.get(..start).unwrap_or_default(), named.get(start..).unwrap_or_default());
    if matches!(name, b"" | b"." | b"..") {
        return Ok(None);
    }
    let parent = if parent.is_empty() { b"." } else { parent };
    match caller.directory(dir, OsStr::from_bytes(parent)) {
        Ok(directory) => {
            Ok(Some(Entry { directory, name: CString::new(name).map_err(|_| Errno::INVAL)?, slash }))
        }
        // What the kernel says about such a path is the right answer, and it makes nothing.
        Err(Errno::SRCH) => Err(Errno::SRCH),
        Err(_) => Ok(None),
    }
}

/// What kind of file it is, a link being one.
pub fn kind(entry: &Entry) -> Result<FileType, Errno> {
    rustix::fs::statat(&entry.directory.fd, &entry.name, AtFlags::SYMLINK_NOFOLLOW)
        .map(|stat| FileType::from_raw_mode(stat.st_mode))
}

/// Whether something is there.
pub fn exists(entry: &Entry) -> bool {
    kind(entry).is_ok()
}

/// Does `make` under the file mode creation mask of the caller.
pub fn with_umask_of<T>(caller: &Caller<'_>, make: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    let mask = caller.umask()?;
    let own = rustix::process::umask(Mode::from_raw_mode(mask));
    let result = make();
    rustix::process::umask(own);
    result
}
