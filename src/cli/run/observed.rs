//! Where `jess run --observe` writes the profile.

use super::target;
use crate::sandbox::Outcome;
use crate::sandbox::observe::Observed;
use crate::sandbox::profile::Profile;
use std::io::{self, Write};
use std::path::PathBuf;

/// What is told before the command starts.
pub const WARNING: &str = "observing: no file rule is enforced, and the command can read and change what you can; the network, \
                           other processes and the kernel's surface stay closed";

/// The file, or stdout.
pub enum Target {
    /// Stdout; the command's own goes to stderr.
    Stdout,
    /// This file, open since before the run.
    File(target::Target),
}

const WHAT: &str = "profile";

impl Target {
    /// Opens `path`. A link is not followed.
    pub fn open(path: PathBuf) -> Result<Target, target::Error> {
        if path.as_os_str() == "-" {
            return Ok(Target::Stdout);
        }
        target::Target::open_with(WHAT, path, libc::O_NOFOLLOW).map(Target::File)
    }

    /// Whether the profile goes to stdout.
    pub fn is_stdout(&self) -> bool {
        matches!(self, Target::Stdout)
    }

    /// Writes the profile of a finished run on top of `base`, the settings that it had.
    pub fn write(self, outcome: &Outcome, base: Profile) -> Result<(), target::Error> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let base = Profile { report: None, explain: None, tier: None, ..base };
        let used = outcome.used.clone().unwrap_or_default();
        let text = Observed::new(&used, base, home.as_deref()).to_toml();
        let text = text.map_err(|error| io::Error::other(error.to_string()));
        match self {
            Target::Stdout => text
                .and_then(|text| io::stdout().write_all(text.as_bytes()))
                .map_err(|why| target::Error { what: WHAT, path: PathBuf::from("-"), why }),
            Target::File(file) => file.write(&text.map_err(|why| file.error(why))?),
        }
    }
}
