//! A target and a place for results.

use std::path::PathBuf;
use std::process::{Command, Output};

/// `jess` with an environment that holds nothing of the one that runs the tests.
pub fn jess() -> Command {
    let mut jess = Command::new(env!("CARGO_BIN_EXE_jess"));
    jess.env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", "/nonexistent")
        .stdin(std::process::Stdio::null());
    jess
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Two directories that go away with the test.
pub struct Place {
    pub dir: tempfile::TempDir,
    pub repo: PathBuf,
    pub out: PathBuf,
}

impl Place {
    pub fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let (repo, out) = (dir.path().join("repo"), dir.path().join("out"));
        std::fs::create_dir(&repo).unwrap();
        std::fs::create_dir(&out).unwrap();
        std::fs::write(repo.join("README.md"), "a library\n").unwrap();
        Place { dir, repo, out }
    }

    pub fn arguments(&self, flags: &[&str], command: &[&str]) -> Vec<String> {
        let mut arguments = vec!["dispatch".to_owned(), "--repo".into(), self.repo.display().to_string()];
        arguments.extend(["--out".into(), self.out.display().to_string()]);
        arguments.extend(flags.iter().map(|f| (*f).to_owned()));
        arguments.push("--".into());
        arguments.extend(command.iter().map(|c| (*c).to_owned()));
        arguments
    }

    pub fn dispatch(&self, command: &[&str]) -> Output {
        self.dispatch_with(&[], command)
    }

    pub fn dispatch_with(&self, flags: &[&str], command: &[&str]) -> Output {
        jess().args(self.arguments(flags, command)).output().unwrap()
    }
}
