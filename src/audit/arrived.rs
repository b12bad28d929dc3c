//! Files that a session brought in from another machine: what is read from them later is untrusted content.
//!
//! One absolute path a line in `arrived/ID`; everything below a path is meant too. At most [`PATHS_MAX`] paths of at most
//! [`PATH_MAX`] bytes are kept: a longer path is kept by the directory above it, and past the last place the line is `/`,
//! so that everything counts.

use super::{Error, state};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Most paths kept for one session.
pub const PATHS_MAX: usize = 128;
/// Longest path kept, in bytes.
pub const PATH_MAX: usize = 1024;
/// Most bytes read: all that [`add`] writes, and what several calls at once may write beside each other.
const BYTES: u64 = 1 << 20;

/// What a session brought in. An error when what is there cannot be read as paths: then nobody knows.
pub fn paths(dir: &Path, session: &str) -> Result<Vec<PathBuf>, Error> {
    let path = dir.join("arrived").join(session);
    let damaged = || state::damaged(&path, "paths");
    let Some(text) = state::record(&path, BYTES, "paths")? else { return Ok(Vec::new()) };
    text.lines()
        .map(|line| Some(PathBuf::from(line)).filter(|p| p.is_absolute()).ok_or_else(damaged))
        .collect()
}

/// Keeps `more`, on disk when this returns.
pub fn add(dir: &Path, session: &str, more: &[PathBuf]) -> Result<(), Error> {
    let mut known = paths(dir, session)?;
    let mut lines = String::new();
    for path in more {
        let mut path = kept(path);
        if known.iter().any(|k| path.starts_with(k)) {
            continue;
        }
        if known.len() >= PATHS_MAX {
            path = PathBuf::from("/");
        }
        lines.push_str(&path.to_string_lossy());
        lines.push('\n');
        known.push(path);
    }
    if lines.is_empty() {
        return Ok(());
    }
    let arrived = dir.join("arrived");
    let path = arrived.join(session);
    let io = |source| Error::Io { path: path.clone(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&arrived).map_err(io)?;
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK)
        .open(&path)
        .map_err(io)?;
    state::keep(&mut file, &path, &lines)
}

/// The part of a path that one line can hold.
fn kept(path: &Path) -> PathBuf {
    let fits = |p: &Path| {
        p.to_str().is_some_and(|t| t.len() <= PATH_MAX && t.starts_with('/') && !t.contains(char::is_control))
    };
    path.ancestors().find(|p| fits(p)).unwrap_or(Path::new("/")).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_and_what_lies_below_one_is_kept_once() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(paths(dir.path(), "s").unwrap(), Vec::<PathBuf>::new());
        add(dir.path(), "s", &["/a/b".into(), "/a/b/c".into(), "/a/bc".into()]).unwrap();
        add(dir.path(), "s", &["/a/b/d".into()]).unwrap();
        assert_eq!(paths(dir.path(), "s").unwrap(), [PathBuf::from("/a/b"), PathBuf::from("/a/bc")]);
    }

    #[test]
    fn a_path_that_no_line_can_hold_counts_by_the_directory_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let long = PathBuf::from(format!("/a/{}", "x".repeat(2 * PATH_MAX)));
        add(dir.path(), "s", &["/b/x\n/c".into(), long]).unwrap();
        assert_eq!(paths(dir.path(), "s").unwrap(), [PathBuf::from("/b"), PathBuf::from("/a")]);
    }

    #[test]
    fn past_the_last_place_everything_counts() {
        let dir = tempfile::tempdir().unwrap();
        let many: Vec<PathBuf> = (0..2 * PATHS_MAX).map(|i| PathBuf::from(format!("/a/{i}"))).collect();
        add(dir.path(), "s", &many).unwrap();
        let kept = paths(dir.path(), "s").unwrap();
        assert_eq!(kept.len(), PATHS_MAX + 1);
        assert_eq!(kept.last(), Some(&PathBuf::from("/")));
    }

    #[test]
    fn what_cannot_be_read_as_paths_is_an_error_and_not_no_paths() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("arrived");
        fs::create_dir_all(at.join("dir")).unwrap();
        fs::write(at.join("words"), "nothing to see\n").unwrap();
        fs::write(at.join("emptied"), "").unwrap();
        std::os::unix::fs::symlink("/dev/null", at.join("link")).unwrap();
        for name in ["dir", "words", "emptied", "link"] {
            assert!(paths(dir.path(), name).is_err(), "{name}");
        }
    }
}
