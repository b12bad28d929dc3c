//! What a run left behind, walked by descriptor.
//!
//! Every directory is opened relative to its parent's descriptor and no link is ever followed, so nothing that is
//! swapped in meanwhile leads out of the tree. Anything that is neither a regular file nor a directory is a finding.

use super::encoded::Known;
use super::{Finding, MAX_FINDINGS, TERMINAL, check_document};
use crate::envelope::Policy;
use crate::untrusted::Untrusted;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Directories deeper than this are a finding.
const MAX_DEPTH: usize = 64;
/// More entries than this end the walk with a finding.
const MAX_ENTRIES: usize = 100_000;
/// Bytes of one file that are read; a longer one is a finding.
const MAX_FILE: u64 = 64 << 20;
/// Bytes of all files together that are read; more end the walk with a finding.
const MAX_TOTAL: u64 = 512 << 20;

/// The tree could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory itself does not open.
    #[error(
        "cannot open the output directory {} to check it: {source}; make it readable for this user",
        crate::sanitise::path(path)
    )]
    Open {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Every finding in the files under `dir`.
///
/// Links, fifos, devices, sockets, what cannot be read, and what is beyond the bounds (depth 64, 100,000 entries,
/// 64 MiB a file, 512 MiB together, [`super::MAX_FINDINGS`] findings) are findings, so that "nothing found" means
/// "everything looked at". Names are looked at as content is.
pub fn check_tree(dir: &Path) -> Result<Vec<Finding>, Error> {
    check_tree_for(dir, None, &Policy::default())
}

/// [`check_tree`], and any of the `known` values in any encoding, under a policy for links.
pub fn check_tree_for(dir: &Path, known: Option<&Known>, policy: &Policy) -> Result<Vec<Finding>, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let root = rustix::fs::open(dir, flags, Mode::empty())
        .map_err(|e| Error::Open { path: dir.to_path_buf(), source: e.into() })?;
    let mut walk = Walk { known, policy, findings: Vec::new(), entries: 0, bytes: 0, ended: false };
    walk.directory(root, PathBuf::new(), 0);
    Ok(walk.findings)
}

struct Walk<'a> {
    known: Option<&'a Known>,
    policy: &'a Policy,
    findings: Vec<Finding>,
    entries: usize,
    bytes: u64,
    /// A bound of the whole walk was met: nothing more is looked at.
    ended: bool,
}

impl Walk<'_> {
    fn about(&mut self, file: PathBuf, kind: &str) {
        self.findings.push(Finding { file, line: 0, kind: kind.to_string() });
        if self.findings.len() >= MAX_FINDINGS && !self.ended {
            self.end(PathBuf::new(), "too-many-findings");
        }
    }

    fn end(&mut self, file: PathBuf, kind: &str) {
        self.ended = true;
        self.about(file, kind);
    }

    /// The findings in one text about `file`. Control characters are no finding in what is no text.
    fn text(&mut self, file: &Path, text: &str, whole: bool, binary: bool) {
        for finding in check_document("", &Untrusted::new(text), self.known, self.policy) {
            if self.ended {
                return;
            }
            if binary && finding.kind == TERMINAL {
                continue;
            }
            let line = if whole { 0 } else { finding.line };
            self.findings.push(Finding { file: file.to_path_buf(), line, ..finding });
            if self.findings.len() >= MAX_FINDINGS {
                self.end(PathBuf::new(), "too-many-findings");
            }
        }
    }

    fn directory(&mut self, fd: OwnedFd, path: PathBuf, depth: usize) {
        if depth > MAX_DEPTH {
            return self.about(path, "too-deep");
        }
        let Ok(dir) = Dir::read_from(&fd) else { return self.about(path, "unreadable") };
        let mut names = Vec::new();
        for entry in dir {
            match entry {
                Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Ok(entry) => names.push(entry.file_name().to_owned()),
                Err(_) => return self.about(path, "unreadable"),
            }
            if self.entries + names.len() > MAX_ENTRIES {
                return self.end(path, "too-many-entries");
            }
        }
        self.entries += names.len();
        names.sort();
        for name in names {
            if self.ended {
                return;
            }
            let shown = String::from_utf8_lossy(name.to_bytes());
            let child = path.join(std::ffi::OsStr::new(&*shown));
            // The finding must not carry the secret that the name is.
            let before = self.findings.len();
            self.text(&path.join("(a name)"), &shown, true, false);
            let child = if self.findings.len() > before { path.join("(a name)") } else { child };
            let Ok(stat) = rustix::fs::statat(&fd, &*name, AtFlags::SYMLINK_NOFOLLOW) else {
                self.about(child, "unreadable");
                continue;
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                    match rustix::fs::openat(&fd, &*name, flags, Mode::empty()) {
                        Ok(sub) => self.directory(sub, child, depth + 1),
                        Err(_) => self.about(child, "unreadable"),
                    }
                }
                FileType::RegularFile => self.file(&fd, &name, child),
                FileType::Symlink => self.about(child, "link"),
                FileType::Fifo => self.about(child, "fifo"),
                FileType::Socket => self.about(child, "socket"),
                _ => self.about(child, "device"),
            }
        }
    }

    fn file(&mut self, dir: &OwnedFd, name: &std::ffi::CStr, path: PathBuf) {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let Ok(fd) = rustix::fs::openat(dir, name, flags, Mode::empty()) else {
            return self.about(path, "unreadable");
        };
        // The name may have been swapped between the look and the opening: what counts is what was opened.
        match rustix::fs::fstat(&fd) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                if u64::try_from(stat.st_size).unwrap_or(u64::MAX) > MAX_FILE {
                    return self.about(path, "too-large");
                }
            }
            _ => return self.about(path, "not-a-regular-file"),
        }
        let mut bytes = Vec::new();
        if std::fs::File::from(fd).take(MAX_FILE + 1).read_to_end(&mut bytes).is_err() {
            return self.about(path, "unreadable");
        }
        if bytes.len() as u64 > MAX_FILE {
            return self.about(path, "too-large");
        }
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_TOTAL {
            return self.end(path, "too-much");
        }
        let text = String::from_utf8_lossy(&bytes);
        let binary = matches!(text, Cow::Owned(_)) || bytes.contains(&0);
        self.text(&path, &text, false, binary);
        // UTF-16 and UTF-32 hide from a search for bytes; without their zeros Latin text is plain again.
        if bytes.contains(&0) {
            bytes.retain(|byte| *byte != 0);
            self.text(&path, &String::from_utf8_lossy(&bytes), false, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_fifos_are_findings_and_never_opened() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ok.md"), "fine").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("pipe"), Mode::RUSR).unwrap();
        let kinds: Vec<String> = check_tree(dir.path()).unwrap().into_iter().map(|f| f.kind).collect();
        assert_eq!(kinds, ["link", "fifo"]);
    }

    #[test]
    fn a_secret_in_a_nested_file_is_found_by_its_relative_path() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::write(dir.path().join("a/b.txt"), format!("\nAKIA{}", "Q".repeat(16))).unwrap();
        let findings = check_tree(dir.path()).unwrap();
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].to_string(), "a/b.txt:2: secret:aws-access-key-id");
    }

    #[test]
    fn a_secret_in_a_name_is_found_and_not_repeated() {
        let dir = tempfile::tempdir().unwrap();
        let secret = format!("AKIA{}", "QZ7X".repeat(4));
        std::fs::create_dir(dir.path().join(&secret)).unwrap();
        std::fs::write(dir.path().join(&secret).join("x"), &secret).unwrap();
        let shown: Vec<String> = check_tree(dir.path()).unwrap().iter().map(Finding::to_string).collect();
        assert_eq!(shown.len(), 2, "the name and the content: {shown:?}");
        assert!(shown.iter().all(|line| !line.contains(&secret)), "{shown:?}");
    }

    #[test]
    fn a_known_value_is_found_in_contents_and_in_names_and_not_repeated() {
        let dir = tempfile::tempdir().unwrap();
        let value = "Canary-93vQx7-Lm42";
        std::fs::write(dir.path().join("a"), format!("x {value} y")).unwrap();
        std::fs::write(dir.path().join(value), "").unwrap();
        assert_eq!(check_tree(dir.path()).unwrap(), [], "unknown to the plain check");
        let known = Known::new([value]);
        let found = check_tree_for(dir.path(), Some(&known), &Policy::default()).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found.iter().all(|f| f.kind == "secret:known-value" && !f.to_string().contains(value)),
            "{found:?}"
        );
    }

    #[test]
    fn a_secret_in_utf_16_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let secret = format!("\nAKIA{}\n", "QZ7X".repeat(4));
        let wide: Vec<u8> = secret.encode_utf16().flat_map(u16::to_be_bytes).collect();
        std::fs::write(dir.path().join("wide"), wide).unwrap();
        assert!(!check_tree(dir.path()).unwrap().is_empty());
        std::fs::write(dir.path().join("wide"), [0, b'a', 0, b'b']).unwrap();
        assert!(check_tree(dir.path()).unwrap().is_empty());
    }

    #[test]
    fn a_flood_of_findings_ends_the_walk_with_a_finding() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..3 {
            std::fs::write(dir.path().join(n.to_string()), "![x](http://e/)\n".repeat(MAX_FINDINGS)).unwrap();
        }
        let findings = check_tree(dir.path()).unwrap();
        assert!(findings.len() <= MAX_FINDINGS + 1, "{}", findings.len());
        assert_eq!(findings.last().map(|f| f.kind.as_str()), Some("too-many-findings"));
    }

    #[test]
    fn a_huge_sparse_file_is_a_finding_that_costs_no_reading() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::File::create(dir.path().join("sparse")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(check_tree(dir.path()).unwrap()[0].kind, "too-large");
    }

    #[test]
    fn a_linked_root_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("l");
        std::os::unix::fs::symlink("/", &link).unwrap();
        assert!(check_tree(&link).is_err());
    }
}
