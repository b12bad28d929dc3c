//! A file that `jess run` writes when the command has ended.
//!
//! It is opened before, so that one that can't be written stops the run and not its result. Where the command could write
//! it too, whatever is in it at the end is replaced, and another file at its place is an error.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The file, open.
pub struct Target {
    what: &'static str,
    path: PathBuf,
    file: File,
}

/// What went wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("writing the {what} to {}: {why}", crate::sanitise::path(path))]
pub struct Error {
    /// What was to be written.
    pub what: &'static str,
    /// Where.
    pub path: PathBuf,
    /// Why that failed.
    pub why: io::Error,
}

impl Target {
    /// Opens `path` for a document called `what`. A link is followed: it is the operator's.
    pub fn open(what: &'static str, path: PathBuf) -> Result<Target, Error> {
        Target::open_with(what, path, 0)
    }

    /// The same with further flags of open(2).
    pub fn open_with(what: &'static str, path: PathBuf, flags: i32) -> Result<Target, Error> {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = File::options();
        options.write(true).create(true).truncate(false).custom_flags(flags);
        match options.open(&path) {
            Ok(file) => Ok(Target { what, path, file }),
            Err(why) => Err(Error { what, path, why }),
        }
    }

    /// An error of this file's.
    pub fn error(&self, why: io::Error) -> Error {
        Error { what: self.what, path: self.path.clone(), why }
    }

    /// Makes `text` its content.
    pub fn write(&self, text: &str) -> Result<(), Error> {
        self.put(text).map_err(|why| self.error(why))
    }

    fn put(&self, text: &str) -> io::Result<()> {
        let mut file = &self.file;
        let ours = file.metadata()?;
        if !ours.is_file() {
            return file.write_all(text.as_bytes());
        }
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        let there = self.path.metadata()?;
        if (ours.dev(), ours.ino()) == (there.dev(), there.ino()) {
            Ok(())
        } else {
            Err(io::Error::other(
                "another file took its place during the run; what is there is not from jess",
            ))
        }
    }
}
