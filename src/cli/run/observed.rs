//! Where `jess run --observe` writes the profile.

use crate::sandbox::Outcome;
use crate::sandbox::observe::Observed;
use crate::sandbox::profile::Profile;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

/// What is told before the command starts.
pub const WARNING: &str = "observing: no file rule is enforced, and the command can read and change what you can; the network, \
                           other processes and the kernel's surface stay closed";

/// The file, or stdout.
pub enum Target {
    /// Stdout, after the command's own output.
    Stdout,
    /// This file, open since before the run.
    File(PathBuf, File),
}

/// What went wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("writing the profile to {}: {why}; choose another --observe", crate::sanitise::path(path))]
pub struct Error {
    path: PathBuf,
    why: io::Error,
}

impl Target {
    /// Opens `path`, so that a file that can't be written stops the run, not its result. A link is not followed.
    pub fn open(path: PathBuf) -> Result<Target, Error> {
        if path.as_os_str() == "-" {
            return Ok(Target::Stdout);
        }
        let opened = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path);
        match opened {
            Ok(file) => Ok(Target::File(path, file)),
            Err(why) => Err(Error { path, why }),
        }
    }

    /// Writes the profile of a finished run on top of `base`, the settings that it had.
    pub fn write(self, outcome: &Outcome, base: Profile) -> Result<(), Error> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let base = Profile { report: None, explain: None, tier: None, ..base };
        let used = outcome.used.clone().unwrap_or_default();
        let observed = Observed::new(&used, base, home.as_deref());
        let text = observed.to_toml().map_err(|error| io::Error::other(error.to_string()));
        let (path, file) = match self {
            Target::Stdout => (PathBuf::from("-"), None),
            Target::File(path, file) => (path, Some(file)),
        };
        let put = |text: String| -> io::Result<()> {
            let Some(mut file) = file else { return io::stdout().write_all(text.as_bytes()) };
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(text.as_bytes())?;
            // The command could have put another file there.
            let (ours, there) = (file.metadata()?, path.symlink_metadata()?);
            if (ours.dev(), ours.ino()) == (there.dev(), there.ino()) {
                Ok(())
            } else {
                Err(io::Error::other("another file took its place during the run"))
            }
        };
        text.and_then(put).map_err(|why| Error { path, why })
    }
}
