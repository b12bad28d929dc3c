//! Putting the hook into a client's settings, proving that it blocks, and taking it out again.
//!
//! | file | concern |
//! |---|---|
//! | `client` | which client is installed, and which form of the hook it honours |
//! | `edit` | settings changed in place: comments, order and everything else stay |
//! | `record` | what a file was before, for a removal that gives back every byte |
//! | `plugin` | the hook as a plugin with a marketplace |
//! | `prove` | the client with a scripted model: a deny blocks, and so does a missing binary |
//! | `check` | settings that disable, shadow or break the hook |

pub mod check;
pub mod client;
mod edit;
pub mod plugin;
pub mod prove;
mod record;

pub use client::{Client, Form};

use std::io;
use std::path::{Path, PathBuf};

/// Where the settings that nothing overrides lie.
pub const MANAGED: &str = "/etc/claude-code/managed-settings.json";

/// Why nothing was installed or taken out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The settings are not what the client reads.
    #[error("{path}: {what}. The client drops such a file as a whole, without a word; repair it first")]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The hook's binary is not there.
    #[error("{0} is not there; install jess-hook beside jess")]
    NoHook(PathBuf),
}

/// What a removal did.
#[derive(Debug, PartialEq, Eq)]
pub enum Removed {
    /// The file is byte for byte what it was before; or gone, if there was none.
    Restored,
    /// The file was changed since; the hook's entries are out, the changes stay.
    Edited,
    /// There was nothing of jess in it.
    Nothing,
}

/// The `jess-hook` beside a `jess`.
pub fn hook_of(jess: &Path) -> Result<PathBuf, Error> {
    let hook = jess.with_file_name("jess-hook");
    if hook.is_file() { Ok(hook) } else { Err(Error::NoHook(hook)) }
}

/// Adds the hook to a settings file, or renews it there. `state` keeps what the file was before.
pub fn install(file: &Path, hook: &Path, form: Form, state: &Path) -> Result<(), Error> {
    let target = real(file);
    let before = read(&target)?;
    let text = before.as_deref().unwrap_or("{}\n");
    let settings = |what: String| Error::Settings { path: file.to_path_buf(), what };
    let after = edit::add(text, &|event| form.group(event, hook)).map_err(settings)?;
    if before.as_deref() == Some(after.as_str()) {
        return Ok(());
    }
    record::keep(state, &target, before.as_deref(), &after)?;
    write(&target, &after)
}

/// Takes the hook out of a settings file.
pub fn uninstall(file: &Path, state: &Path) -> Result<Removed, Error> {
    let target = real(file);
    let Some(now) = read(&target)? else {
        record::forget(state, &target);
        return Ok(Removed::Nothing);
    };
    if let Some(before) = record::before(state, &target, &now) {
        match before {
            Some(text) => write(&target, &text)?,
            None => {
                std::fs::remove_file(&target).map_err(|source| Error::Io { path: target.clone(), source })?
            }
        }
        record::forget(state, &target);
        return Ok(Removed::Restored);
    }
    let settings = |what: String| Error::Settings { path: file.to_path_buf(), what };
    match edit::remove(&now).map_err(settings)? {
        Some(text) => {
            write(&target, &text)?;
            record::forget(state, &target);
            Ok(Removed::Edited)
        }
        None => Ok(Removed::Nothing),
    }
}

/// The file itself, where settings are a link into somebody's collection of dotfiles.
fn real(file: &Path) -> PathBuf {
    std::fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf())
}

fn read(file: &Path) -> Result<Option<String>, Error> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { path: file.to_path_buf(), source }),
    }
}

/// Replaces a file at once, with its mode; a client never sees half of it.
fn write(file: &Path, text: &str) -> Result<(), Error> {
    let io = |source| Error::Io { path: file.to_path_buf(), source };
    let dir = file.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(dir).map_err(io)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let new = dir.join(format!(".{name}.jess-{}", std::process::id()));
    let put = || -> io::Result<()> {
        std::fs::write(&new, text)?;
        if let Ok(meta) = std::fs::metadata(file) {
            std::fs::set_permissions(&new, meta.permissions())?;
        }
        std::fs::File::open(&new)?.sync_all()?;
        std::fs::rename(&new, file)
    };
    put().map_err(|e| {
        let _ = std::fs::remove_file(&new);
        io(e)
    })
}

#[cfg(test)]
mod tests;
