//! Repositories made of a few files.

use jess::trust::{self, Options, Report};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A repository in a directory of its own, with an empty home beside it.
pub struct Repo {
    top: TempDir,
}

impl Repo {
    /// Makes `files` (path, content).
    pub fn new(files: &[(&str, &str)]) -> Repo {
        let top = tempfile::tempdir().unwrap();
        for dir in ["repo", "repo/.git", "home", "state", "outside"] {
            std::fs::create_dir_all(top.path().join(dir)).unwrap();
        }
        let repo = Repo { top };
        for (path, content) in files {
            repo.write(path, content.as_bytes());
        }
        repo
    }

    /// One settings file.
    pub fn settings(json: &str) -> Repo {
        Repo::new(&[(".claude/settings.json", json)])
    }

    /// Writes one file.
    pub fn write(&self, path: &str, content: &[u8]) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// A path in the repository.
    pub fn path(&self, path: &str) -> PathBuf {
        self.top.path().join("repo").join(path)
    }

    /// A path beside the repository.
    pub fn beside(&self, path: &str) -> PathBuf {
        self.top.path().join(path)
    }

    /// The options of a check that sees neither the machine's home nor its approvals.
    pub fn options(&self) -> Options {
        Options { home: Some(self.beside("home")), approvals: None, ..Options::default() }
    }

    /// Checks the repository, or a directory in it.
    pub fn check_in(&self, path: &str) -> Report {
        trust::check_with(&self.path(path), &self.options()).unwrap()
    }

    /// Checks the repository.
    pub fn check(&self) -> Report {
        self.check_in("")
    }

    /// `(path, label, blocking)` of each finding.
    pub fn findings(&self) -> Vec<(String, String, bool)> {
        let report = self.check();
        report
            .files()
            .flat_map(|(path, found)| {
                found.iter().map(|f| (path.to_owned(), f.label.clone(), f.blocking)).collect::<Vec<_>>()
            })
            .collect()
    }
}

/// Runs `jess` with `args` and a home and state of its own.
pub fn jess(repo: &Repo, args: &[&str], target: &Path) -> std::process::Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_jess"))
        .args(args)
        .arg(target)
        .env_clear()
        .env("HOME", repo.beside("home"))
        .env("XDG_STATE_HOME", repo.beside("state"))
        .output()
        .unwrap()
}
