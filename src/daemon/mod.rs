//! The hook daemon: the same verdicts, from a process that is already warm.
//!
//! `jess-hook` sends the event and its environment over a unix socket and prints the answer. Everything that a verdict
//! rests on (labels, counts, the audit trail, configuration) lies on disk and is written before the answer is sent, so
//! a daemon that is killed at any moment loses nothing: the hook process then judges by itself, with the same outcome.
//!
//! The socket lies in a directory of the user's with mode 0700 (`$XDG_RUNTIME_DIR/jess`, else `run` in the state
//! directory). Both ends check that the other runs as the same user. A process of that user can stand in for the
//! daemon; it could write the labels and settings as well, so the socket gives it nothing.
//!
//! | file | concern |
//! |---|---|
//! | `wire` | frames, bounded |
//! | `client` | the hook's end: blocking, no runtime |
//! | `server` | the daemon's end: many clients, idle exit |
//! | `cache` | configuration, read again when a file changes |

mod cache;
pub mod client;
mod server;
pub mod wire;

pub use server::{Error, serve};

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Name of the socket.
pub const SOCKET: &str = "hook.sock";
/// Held by the running daemon; holds its process id.
pub const LOCK: &str = "daemon.lock";

/// Where the socket lies. `None` without a home.
pub fn dir(var: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    match var("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_absolute() && p.is_dir()) {
        Some(runtime) => Some(runtime.join("jess")),
        None => crate::audit::state::dir(var).map(|s| s.join("run")),
    }
}

/// Whether `dir` is a directory (no link) that this user alone can use.
pub fn private(dir: &Path) -> bool {
    std::fs::symlink_metadata(dir)
        .is_ok_and(|m| m.is_dir() && m.uid() == rustix::process::geteuid().as_raw() && m.mode() & 0o077 == 0)
}

/// Makes the directory with mode 0700, or takes the one that is there if it is [`private`].
pub fn make(dir: &Path) -> std::io::Result<()> {
    if std::fs::symlink_metadata(dir).is_err() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    if private(dir) {
        return Ok(());
    }
    Err(std::io::Error::other(format!(
        "{} is a link, belongs to somebody else or is open to others; move it away",
        crate::sanitise::path(dir)
    )))
}
