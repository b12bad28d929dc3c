//! How much a check looks at before it gives up. Reaching a limit refuses the target: what was not looked at cannot
//! be called harmless.

/// Directory entries looked at.
pub const MAX_ENTRIES: usize = 1_000_000;
/// Directories below the target that are entered.
pub const MAX_DEPTH: usize = 128;
/// Configuration files read, with what they import and name.
pub const MAX_FILES: usize = 20_000;
/// Bytes read from all configuration files together (32 MiB).
pub const MAX_TOTAL_BYTES: u64 = 32 << 20;

/// The limits of one check. A test makes them small; everything else uses the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub entries: usize,
    pub depth: usize,
    pub files: usize,
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { entries: MAX_ENTRIES, depth: MAX_DEPTH, files: MAX_FILES, bytes: MAX_TOTAL_BYTES }
    }
}

/// What a check has spent.
#[derive(Debug, Default)]
pub(super) struct Spent {
    limits: Limits,
    entries: usize,
    files: usize,
    bytes: u64,
    reached: bool,
}

/// The limit that was reached: what it counts, and its value.
pub(super) type Reached = (&'static str, u64);

impl Spent {
    pub(super) fn new(limits: Limits) -> Self {
        Spent { limits, ..Spent::default() }
    }

    /// Counts a directory entry.
    pub(super) fn entry(&mut self) {
        self.entries += 1;
    }

    /// Counts a file of `bytes` bytes.
    pub(super) fn file(&mut self, bytes: usize) {
        self.files += 1;
        self.bytes(bytes);
    }

    /// Counts bytes of a file that is counted.
    pub(super) fn bytes(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// True when `open` directories, one in the other, are all that may be.
    pub(super) fn full(&self, open: usize) -> bool {
        open >= self.limits.depth
    }

    /// The depth limit.
    pub(super) fn depth(&self) -> usize {
        self.limits.depth
    }

    /// True when nothing more may be read.
    pub(super) fn over(&self) -> bool {
        self.entries > self.limits.entries || self.files > self.limits.files || self.bytes > self.limits.bytes
    }

    /// The limit that is exceeded, the first time it is asked for.
    pub(super) fn newly_reached(&mut self) -> Option<Reached> {
        if self.reached || !self.over() {
            return None;
        }
        self.reached = true;
        Some(if self.entries > self.limits.entries {
            ("directory entries", self.limits.entries as u64)
        } else if self.files > self.limits.files {
            ("configuration files", self.limits.files as u64)
        } else {
            ("bytes of configuration", self.limits.bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::{Options, Report, walk};
    use std::path::Path;

    fn check(repo: &Path, limits: Limits) -> Report {
        let options = Options { parents: false, home: None, approvals: None, evidence: false };
        walk::run_within(repo, &options, limits).unwrap()
    }

    /// A repository of `files`, each with a harmless text of `size` bytes.
    fn repo(files: &[&str], size: usize) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x".repeat(size)).unwrap();
        }
        dir
    }

    fn reasons(report: &Report) -> Vec<String> {
        report.files().flat_map(|(_, found)| found.iter().map(|f| f.label.clone())).collect()
    }

    #[test]
    fn each_limit_is_fine_when_met_and_refuses_once_when_passed() {
        let all = Limits::default();
        // Three directories with a CLAUDE.md each: six entries, three files, thirty bytes, three directories deep.
        let made = repo(&["a/CLAUDE.md", "b/CLAUDE.md", "c/d/CLAUDE.md"], 10);
        for (met, passed, what) in [
            (Limits { entries: 7, ..all }, Limits { entries: 6, ..all }, "directory entries"),
            (Limits { files: 3, ..all }, Limits { files: 2, ..all }, "configuration files"),
            (Limits { bytes: 30, ..all }, Limits { bytes: 29, ..all }, "bytes of configuration"),
            (Limits { depth: 3, ..all }, Limits { depth: 2, ..all }, "directory depth"),
        ] {
            let report = check(made.path(), met);
            assert!(!report.refuses(), "{what}: {}", report.render_human());
            let report = check(made.path(), passed);
            assert!(report.refuses(), "{what}");
            assert_eq!(reasons(&report), [what]);
        }
    }

    #[test]
    fn what_an_import_reads_counts() {
        let all = Limits::default();
        let made = repo(&["a.md", "b.md"], 10);
        std::fs::write(made.path().join("CLAUDE.md"), "@a.md @b.md\n").unwrap();
        assert!(!check(made.path(), Limits { files: 3, bytes: 32, ..all }).refuses());
        assert!(check(made.path(), Limits { files: 2, ..all }).refuses());
        assert!(check(made.path(), Limits { bytes: 31, ..all }).refuses());
    }

    #[test]
    fn a_script_that_a_command_names_a_thousand_times_is_read_once() {
        let made = repo(&["big.sh"], 1_000);
        let settings =
            format!(r#"{{"statusLine":{{"type":"command","command":"{}"}}}}"#, "big.sh ".repeat(1_000));
        std::fs::create_dir(made.path().join(".claude")).unwrap();
        std::fs::write(made.path().join(".claude/settings.json"), &settings).unwrap();
        let options = Options { parents: false, home: None, approvals: None, evidence: true };
        let limits = Limits { bytes: settings.len() as u64 + 1_000, ..Limits::default() };
        let report = walk::run_within(made.path(), &options, limits).unwrap();
        assert!(
            !reasons(&report).contains(&"bytes of configuration".to_owned()),
            "{}",
            report.render_human()
        );
        assert!(report.seen().contains_key("big.sh"));
    }
}
