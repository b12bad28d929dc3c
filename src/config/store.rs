//! Files on disk: read with care, and the last good version kept.

use super::Origin;
use super::layer::{FILE_MAX, Layer};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What became of a file.
pub enum Read {
    /// There is none.
    Absent,
    /// It was read.
    Good(Box<Layer>),
    /// It cannot be used; the last version that could.
    Bad {
        /// What is wrong with it.
        why: String,
        /// The last good version.
        last: Option<Box<Layer>>,
    },
}

/// Reads a file, and keeps or brings back the last good version of it in `state`.
pub fn read(origin: Origin, path: &Path, state: Option<&Path>) -> Read {
    let text = match text(origin, path) {
        Ok(Some(text)) => text,
        Ok(None) => return Read::Absent,
        Err(why) => return Read::Bad { why, last: recall(path, state) },
    };
    match Layer::parse(&text) {
        Ok(layer) => {
            if origin != Origin::Flag {
                keep(path, state, &text);
            }
            Read::Good(Box::new(layer))
        }
        Err(why) => Read::Bad { why, last: recall(path, state) },
    }
}

/// The text of a file that only its owner can write. `None`: there is no file.
fn text(origin: Origin, path: &Path) -> Result<Option<String>, String> {
    match guarded(path, origin != Origin::Project, origin != Origin::Project)? {
        // The flag names a file that has to be there.
        None if origin == Origin::Flag => Err("there is no such file".into()),
        text => Ok(text),
    }
}

/// The text of a regular file of at most [`FILE_MAX`] bytes (one more is read, so that a longer one is seen). `links`:
/// a link is followed. `own`: it must be this user's or root's, and not writable by everybody.
fn guarded(path: &Path, links: bool, own: bool) -> Result<Option<String>, String> {
    // Never waits for a pipe, and never follows a project's link to another file.
    let mut flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
    if !links {
        flags |= libc::O_NOFOLLOW;
    }
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(format!("cannot be read ({e})")),
    };
    let meta = file.metadata().map_err(|e| format!("cannot be read ({e})"))?;
    if !meta.is_file() {
        return Err("is no regular file".into());
    }
    if own {
        let me = rustix::process::geteuid().as_raw();
        if meta.uid() != me && meta.uid() != 0 {
            return Err("belongs to somebody else; change its owner".into());
        }
        if meta.mode() & 0o002 != 0 {
            return Err("can be written by everybody; run chmod o-w on it".into());
        }
    }
    let mut bytes = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(|e| format!("cannot be read ({e})"))?;
    String::from_utf8(bytes).map(Some).map_err(|_| "is not UTF-8".into())
}

/// Where the last good version of `path` is kept.
fn kept(path: &Path, state: &Path) -> PathBuf {
    use sha2::{Digest, Sha256};
    use std::os::unix::ffi::OsStrExt;
    let digest = Sha256::digest(path.as_os_str().as_bytes());
    let name: String = digest.iter().take(16).map(|b| format!("{b:02x}")).collect();
    state.join("last-good").join(name)
}

/// Keeps `text`. A version that cannot be kept is not kept: it counts all the same.
fn keep(path: &Path, state: Option<&Path>, text: &str) {
    let Some(state) = state else { return };
    let at = kept(path, state);
    if fs::read(&at).is_ok_and(|old| old == text.as_bytes()) {
        return;
    }
    let Some(dir) = at.parent() else { return };
    let new = at.with_extension(format!("{}.new", std::process::id()));
    let write = || -> std::io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let mut file: File = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&new)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&new, &at)
    };
    if write().is_err() {
        let _ = fs::remove_file(&new);
    }
}

/// The copy of `path`, unless it has faults itself: a copy is read with the care of the file it is of.
fn recall(path: &Path, state: Option<&Path>) -> Option<Box<Layer>> {
    let text = guarded(&kept(path, state?), false, true).ok()??;
    Layer::parse(&text).ok().map(Box::new)
}
