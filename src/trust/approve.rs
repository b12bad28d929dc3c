//! Approvals: a person has looked at exactly these bytes.
//!
//! A record lies outside the target, in `$XDG_STATE_HOME/jess/trust` (`~/.local/state` without it), one file a target,
//! named by the hash of its real path. It holds the SHA-256 of every configuration file that was seen, of every file in
//! `.claude` and of every script that a command names. A check compares all of them: when one differs, is missing or is
//! new, the whole approval is void and every finding is back, with the difference.
//!
//! Each directory and record is opened without following links and must belong to the caller and be writable by nobody
//! else. What could not be read, and a limit that was reached, cannot be approved.

use super::mask;
use crate::untrusted::Untrusted;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thiserror::Error;

/// The largest record that is read, in bytes.
const MAX_RECORD: u64 = 32 << 20;
/// Lines of a difference that are shown.
const MAX_DIFF_LINES: usize = 40;
/// Characters of one such line.
const MAX_DIFF_WIDTH: usize = 160;
/// How long one difference may take to compute.
const DIFF_TIME: Duration = Duration::from_millis(200);

/// Why an approval could not be read or written.
#[derive(Debug, Error)]
pub enum Error {
    /// There is no place for records.
    #[error("no place for approvals: set HOME or XDG_STATE_HOME to an absolute path")]
    NoPlace,
    /// The place lies in the target, where the target's own commands could write it.
    #[error("approvals would lie inside the target ({path}); set XDG_STATE_HOME to a directory outside it")]
    Inside {
        /// The state directory, safe to print.
        path: String,
    },
    /// Somebody else can write it.
    #[error("{path} is not private ({why}); approvals there are ignored until it is")]
    NotPrivate {
        /// The directory or record, safe to print.
        path: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The system refused.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what, safe to print.
        path: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The record is damaged.
    #[error("the approval {path} is damaged; revoke it and approve again")]
    Damaged {
        /// The record, safe to print.
        path: String,
    },
    /// There are findings that no approval covers.
    #[error(
        "cannot approve {path}: {count} findings are about files that could not be read or judged; fix those first"
    )]
    NotApprovable {
        /// The target, safe to print.
        path: String,
        /// How many.
        count: usize,
    },
}

/// One file as it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its text, kept for the difference; absent when large or no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<RecordedText>,
}

/// Text in a record. It is as untrusted as the file that it came from, and stays private to this module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordedText(String);

impl Seen {
    /// `bytes` as seen; their text is kept when `keep` says so.
    pub(super) fn new(bytes: &[u8], keep: bool) -> Seen {
        let text = keep.then(|| std::str::from_utf8(bytes).ok()).flatten();
        Seen { sha256: hex(&Sha256::digest(bytes)), text: text.map(|t| RecordedText(t.to_owned())) }
    }
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    version: u32,
    /// The target's real path.
    target: String,
    /// Seconds since 1970.
    approved_at: u64,
    /// Every file, by its path from the target.
    files: BTreeMap<String, Seen>,
}

/// How a file differs from what was approved. All text is safe to print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The file.
    pub path: String,
    /// `added`, `removed` or `changed`.
    pub what: &'static str,
    /// The lines that differ.
    pub diff: Vec<String>,
}

impl Approval {
    /// What differs between this approval and `now`; empty when nothing does.
    pub(super) fn changes(&self, now: &BTreeMap<String, Seen>) -> Vec<Change> {
        let mut changes = Vec::new();
        for (path, before) in &self.files {
            match now.get(path) {
                None => changes.push(Change { path: mask::path(path), what: "removed", diff: Vec::new() }),
                Some(after) if after.sha256 != before.sha256 => {
                    let diff = diff(path, before.text.as_ref(), after.text.as_ref());
                    changes.push(Change { path: mask::path(path), what: "changed", diff });
                }
                Some(_) => {}
            }
        }
        for path in now.keys().filter(|p| !self.files.contains_key(*p)) {
            changes.push(Change { path: mask::path(path), what: "added", diff: Vec::new() });
        }
        changes
    }
}

fn diff(path: &str, before: Option<&RecordedText>, after: Option<&RecordedText>) -> Vec<String> {
    let (Some(before), Some(after)) = (before, after) else { return Vec::new() };
    // Redacted first, so that a secret is cut whole and not line by line.
    let clean = |text: &RecordedText| {
        let text = crate::gate::redact(&Untrusted::new(text.0.as_str()));
        if path.ends_with(".json") { mask::json_text(&text) } else { text }
    };
    let (before, after) = (clean(before), clean(after));
    if before == after {
        return vec!["(only in what is masked here)".to_owned()];
    }
    let diff = similar::TextDiff::configure().timeout(DIFF_TIME).diff_lines(&before, &after);
    diff.iter_all_changes()
        .filter(|change| change.tag() != similar::ChangeTag::Equal)
        .take(MAX_DIFF_LINES)
        .map(|change| {
            let line = Untrusted::new(change.value().trim_end_matches(['\n', '\r']));
            format!("{}{}", change.tag(), crate::sanitise::for_terminal(&line, MAX_DIFF_WIDTH))
        })
        .collect()
}

/// Where records are kept.
#[derive(Debug, Clone)]
pub struct Place(PathBuf);

impl Place {
    /// From `XDG_STATE_HOME`, or `HOME`. `None` when neither is an absolute path.
    pub fn from_environment() -> Option<Place> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|h| h.join(".local/state"))).map(Place)
    }

    /// In `state`, an absolute path.
    pub fn at(state: &Path) -> Place {
        Place(state.to_owned())
    }

    fn directory(&self) -> PathBuf {
        self.0.join("jess/trust")
    }

    /// Opens the directory; makes it when `create`. `None` when it does not exist.
    fn open(&self, target: Option<&Path>, create: bool) -> Result<Option<OwnedFd>, Error> {
        if create {
            let mut builder = std::fs::DirBuilder::new();
            use std::os::unix::fs::DirBuilderExt as _;
            builder.recursive(true).mode(0o700);
            builder.create(self.directory()).map_err(|e| io("create", &self.directory(), e))?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let state = match rustix::fs::open(&self.0, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) if !create => return Ok(None),
            Err(errno) => return Err(io("open", &self.0, errno.into())),
        };
        private(&state, &self.0, false)?;
        let mut here = state;
        let mut path = self.0.clone();
        for name in ["jess", "trust"] {
            path.push(name);
            here = match rustix::fs::openat(&here, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(fd) => fd,
                Err(Errno::NOENT) if !create => return Ok(None),
                Err(errno) => return Err(io("open", &path, errno.into())),
            };
            private(&here, &path, name == "trust")?;
        }
        if let Some(target) = target {
            let real = std::fs::canonicalize(&path).map_err(|e| io("resolve", &path, e))?;
            if real.starts_with(target) {
                return Err(Error::Inside { path: shown(&path) });
            }
        }
        Ok(Some(here))
    }

    /// The approval of `target` (a real path), if there is one.
    ///
    /// # Errors
    /// [`enum@Error`] when it cannot be trusted; treat that as no approval.
    pub fn load(&self, target: &Path) -> Result<Option<Approval>, Error> {
        let Some(dir) = self.open(Some(target), false)? else { return Ok(None) };
        match self.read(&dir, &record_name(target))? {
            Some(approval) if approval.target == target.to_string_lossy() => Ok(Some(approval)),
            Some(_) => Err(Error::Damaged { path: record_name(target) }),
            None => Ok(None),
        }
    }

    fn read(&self, dir: &OwnedFd, name: &str) -> Result<Option<Approval>, Error> {
        let path = self.directory().join(name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(io("open", &path, errno.into())),
        };
        private(&fd, &path, true)?;
        let mut bytes = Vec::new();
        std::fs::File::from(fd)
            .take(MAX_RECORD + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| io("read", &path, e))?;
        if bytes.len() as u64 > MAX_RECORD {
            return Err(Error::Damaged { path: shown(&path) });
        }
        serde_json::from_slice::<Approval>(&bytes)
            .ok()
            .filter(|a| a.version == 1)
            .map(Some)
            .ok_or_else(|| Error::Damaged { path: shown(&path) })
    }

    /// Records `files` as approved for `target` (a real path).
    ///
    /// # Errors
    /// [`enum@Error`]; nothing is half-written.
    pub fn save(&self, target: &Path, files: &BTreeMap<String, Seen>) -> Result<(), Error> {
        let dir = self.open(Some(target), true)?.ok_or(Error::NoPlace)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let target_text = target.to_string_lossy().into_owned();
        let approval = Approval { version: 1, target: target_text, approved_at: now, files: files.clone() };
        let name = record_name(target);
        let path = self.directory().join(&name);
        let bytes = serde_json::to_vec(&approval).map_err(|e| io("write", &path, e.into()))?;
        if bytes.len() as u64 > MAX_RECORD {
            return Err(io("write", &path, std::io::Error::other("the record would be too large")));
        }
        let temporary = format!(".{name}.{}", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&dir, temporary.as_str(), flags, Mode::RUSR | Mode::WUSR)
            .map_err(|e| io("create", &path, e.into()))?;
        let mut file = std::fs::File::from(fd);
        let written = file.write_all(&bytes).and_then(|()| file.sync_all());
        let moved =
            written.and_then(|()| Ok(rustix::fs::renameat(&dir, temporary.as_str(), &dir, name.as_str())?));
        if let Err(error) = moved {
            let _ = rustix::fs::unlinkat(&dir, temporary.as_str(), rustix::fs::AtFlags::empty());
            return Err(io("write", &path, error));
        }
        Ok(())
    }

    /// Removes the approval of `target`. False when there was none.
    ///
    /// # Errors
    /// [`enum@Error`] when it could not be removed.
    pub fn revoke(&self, target: &Path) -> Result<bool, Error> {
        let Some(dir) = self.open(None, false)? else { return Ok(false) };
        let name = record_name(target);
        match rustix::fs::unlinkat(&dir, name.as_str(), rustix::fs::AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(io("remove", &self.directory().join(name), errno.into())),
        }
    }

    /// Every approval: target (safe to print), seconds since 1970, number of files. Sorted by target.
    ///
    /// # Errors
    /// [`enum@Error`] when the directory or a record cannot be trusted.
    pub fn list(&self) -> Result<Vec<(String, u64, usize)>, Error> {
        let Some(dir) = self.open(None, false)? else { return Ok(Vec::new()) };
        let path = self.directory();
        let mut found = Vec::new();
        let entries = rustix::fs::Dir::read_from(&dir).map_err(|e| io("list", &path, e.into()))?;
        for entry in entries {
            let entry = entry.map_err(|e| io("list", &path, e.into()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || !name.ends_with(".json") {
                continue;
            }
            if let Some(approval) = self.read(&dir, &name)? {
                found.push((mask::path(&approval.target), approval.approved_at, approval.files.len()));
            }
        }
        found.sort();
        Ok(found)
    }
}

fn record_name(target: &Path) -> String {
    format!("{}.json", hex(&Sha256::digest(target.as_os_str().as_bytes())))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn shown(path: &Path) -> String {
    mask::path(&path.to_string_lossy())
}

fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Io { doing, path: shown(path), source }
}

/// Owner and mode: the caller's (or root's, above our own directories), and nobody else may write. `strict`: nor read.
fn private(fd: &OwnedFd, path: &Path, strict: bool) -> Result<(), Error> {
    let stat = rustix::fs::fstat(fd).map_err(|e| io("inspect", path, e.into()))?;
    let mine = stat.st_uid == rustix::process::geteuid().as_raw();
    let not = |why| Err(Error::NotPrivate { path: shown(path), why });
    if !mine && (strict || stat.st_uid != 0) {
        return not("it belongs to somebody else");
    }
    let others = stat.st_mode & if strict { 0o077 } else { 0o022 };
    if others != 0 {
        return not(if strict { "others can read or write it" } else { "others can write it" });
    }
    Ok(())
}
