//! A directory to work in, and `jess run` over it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The command line `jess`.
pub const JESS: &str = env!("CARGO_BIN_EXE_jess");

/// The tiers by name.
pub const TIERS: [&str; 2] = ["full", "landlock"];

/// `options` in `tier`.
pub fn in_tier<'o>(tier: &'o str, options: &[&'o str]) -> Vec<&'o str> {
    [&["--tier", tier][..], options].concat()
}

/// A new directory with a `project` in it, removed at the end.
pub struct World(tempfile::TempDir);

impl World {
    pub fn new() -> World {
        let world = World(tempfile::tempdir().expect("a temporary directory"));
        std::fs::create_dir(world.path("project")).expect("own directory");
        world
    }

    /// A world in this directory.
    pub fn within(dir: &Path) -> World {
        let world = World(tempfile::tempdir_in(dir).expect("a temporary directory"));
        std::fs::create_dir(world.path("project")).expect("own directory");
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().expect("it exists").join(name)
    }

    /// Writes a file, with its directories.
    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("below the world")).expect("own directory");
        std::fs::write(&path, content).expect("own file");
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// `jess run OPTIONS -- sh -c SCRIPT` in the project.
    pub fn jess<S: AsRef<OsStr>>(&self, options: &[S], script: &str) -> Ran {
        let mut command = Command::new(JESS);
        command.arg("run");
        if options.iter().all(|option| option.as_ref() != "--timeout") {
            command.args(["--timeout", "60"]);
        }
        command.args(options).args(["--", "bash", "-c", script]);
        Ran::of(command.current_dir(self.path("project")))
    }

    /// Every path below the project, sorted.
    pub fn tree(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut dirs = vec![self.path("project")];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).expect("own directory").flatten() {
                if entry.file_type().is_ok_and(|t| t.is_dir()) {
                    dirs.push(entry.path());
                }
                found.push(entry.path());
            }
        }
        found.sort();
        found
    }
}

/// What a run gave.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(command: &mut Command) -> Ran {
        let Output { status, stdout, stderr } = command.output().expect("jess starts");
        Ran {
            code: status.code(),
            stdout: String::from_utf8_lossy(&stdout).into_owned(),
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
        }
    }

    /// The output of a run that ended well.
    #[track_caller]
    pub fn ok(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout.trim_end()
    }
}
