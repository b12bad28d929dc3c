//! The pinned real Claude Code client, run with nothing of the developer's.
//!
//! Its licence forbids committing it, so `tests/support/install-client.sh` puts it under `target/`. A test that needs
//! it and does not find it fails and says so.

use super::model::ScriptedModel;
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The version that the tests hold for.
pub const VERSION: &str = "2.1.332";
/// One that ignores `onFailure`, for the tests that say which they run: the last that npm installs where Node is older
/// than 22.
#[allow(dead_code)]
pub const OLD: &str = "2.1.197";
/// The key that the client is given when nothing else is said.
pub const KEY: &str = "sk-ant-scripted-not-a-real-key";

/// The installed client.
pub struct Client {
    binary: PathBuf,
}

impl Client {
    /// The pinned client.
    ///
    /// # Panics
    /// When it is not installed.
    pub fn pinned() -> Client {
        Client::of_version(VERSION)
    }

    /// The client of this version.
    ///
    /// # Panics
    /// When it is not installed.
    pub fn of_version(version: &str) -> Client {
        // `cargo build --target …` puts a folder more between the target folder and the binary.
        let jess = Path::new(env!("CARGO_BIN_EXE_jess"));
        let place = |folder: &Path| folder.join("client").join(version).join("claude");
        let found = jess.ancestors().skip(2).take(2).map(place).find(|file| file.is_file());
        let Some(binary) = found else {
            let target = jess.ancestors().nth(2).unwrap_or(jess);
            panic!(
                "Claude Code {version} is not at {}.\nInstall it with:  tests/support/install-client.sh {} {version}\n\
                 (needs npm and the network, once; about 0.4 GB)",
                place(target).display(),
                target.display(),
            );
        };
        Client { binary }
    }

    /// Where the binary is.
    pub fn path(&self) -> &Path {
        &self.binary
    }

    /// `claude -p PROMPT ARGS…` in `place`, against `model`, with an empty environment but for what it needs.
    pub fn print<A: AsRef<OsStr>>(
        &self,
        place: &Place,
        model: &ScriptedModel,
        prompt: &str,
        args: impl IntoIterator<Item = A>,
    ) -> Run {
        let mut command = Command::new(&self.binary);
        command.arg("-p").arg(prompt).args(["--output-format", "json"]).args(args);
        place.prepare(&mut command, model);
        Run::of(&mut command)
    }

    /// The same, with `settings` as the machine's managed settings. Needs bubblewrap.
    ///
    /// The client sees the system's programs, its own binary and `place`, at their real paths, and `visible` read-only.
    pub fn print_managed<A: AsRef<OsStr>>(
        &self,
        place: &Place,
        model: &ScriptedModel,
        settings: &Value,
        visible: &[&Path],
        prompt: &str,
        args: impl IntoIterator<Item = A>,
    ) -> Run {
        let file = place.root().join("managed-settings.json");
        std::fs::write(&file, settings.to_string()).expect("the settings are written");
        let mut command = Command::new("bwrap");
        command.args(["--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
        for path in [
            "/usr",
            "/bin",
            "/lib",
            "/lib64",
            "/etc/passwd",
            "/etc/group",
            "/etc/nsswitch.conf",
            "/etc/hosts",
        ] {
            command.args(["--ro-bind-try", path, path]);
        }
        let hosts = place.root().join("hosts");
        if hosts.is_file() {
            command.arg("--ro-bind").arg(&hosts).arg("/etc/hosts");
        }
        for path in visible.iter().copied().chain([self.binary.as_path()]) {
            command.arg("--ro-bind").args([path, path]);
        }
        command.arg("--bind").args([place.root(), place.root()]);
        command.arg("--ro-bind").arg(&file).arg("/etc/claude-code/managed-settings.json");
        command
            .arg("--")
            .arg(&self.binary)
            .arg("-p")
            .arg(prompt)
            .args(["--output-format", "json"])
            .args(args);
        place.prepare(&mut command, model);
        Run::of(&mut command)
    }
}

/// A private home, scratch folder and project for one run of the client; removed when dropped.
pub struct Place {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl Place {
    /// Three empty folders.
    pub fn new() -> Place {
        let dir = tempfile::Builder::new().prefix("jess-client-").tempdir().expect("a temporary folder");
        for name in ["home", "tmp", "project"] {
            std::fs::create_dir(dir.path().join(name)).expect("a folder in it");
        }
        Place { dir, env: Vec::new() }
    }

    /// Adds a variable to the client's environment.
    pub fn with_env(mut self, name: &str, value: impl Into<String>) -> Place {
        self.env.push((name.to_string(), value.into()));
        self
    }

    /// Lets `name` stand for this machine, for clients that are run with managed settings.
    #[allow(dead_code)]
    pub fn with_host(self, name: &str) -> Place {
        std::fs::write(self.root().join("hosts"), format!("127.0.0.1 localhost {name}\n"))
            .expect("the names");
        self
    }

    /// The folder that holds the three.
    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    /// The client's `HOME`.
    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The client's working directory.
    pub fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// Writes a file below the project folder, with the folders it needs.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.project().join(path);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("its folders");
        std::fs::write(&file, content).expect("the file");
        file
    }

    /// Writes an executable file beside the project folder, where the client does not look for settings.
    pub fn program(&self, name: &str, content: &str) -> PathBuf {
        let file = self.dir.path().join(name);
        std::fs::write(&file, content).expect("the program");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("its mode");
        file
    }

    fn prepare(&self, command: &mut Command, model: &ScriptedModel) {
        command
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("ANTHROPIC_API_KEY", KEY)])
            .env("HOME", self.home())
            .env("TMPDIR", self.dir.path().join("tmp"))
            .env("ANTHROPIC_BASE_URL", model.url())
            .envs([
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                ("DISABLE_TELEMETRY", "1"),
                ("DISABLE_AUTOUPDATER", "1"),
                ("DISABLE_ERROR_REPORTING", "1"),
                ("CLAUDE_CODE_MAX_RETRIES", "1"),
            ])
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.project())
            .stdin(Stdio::null());
    }
}

impl Default for Place {
    fn default() -> Place {
        Place::new()
    }
}

/// How a run of the client ended.
#[derive(Debug)]
pub struct Run {
    /// How the process ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Run {
    /// Runs `command` to its end.
    pub fn of(command: &mut Command) -> Run {
        let output = command
            .output()
            .unwrap_or_else(|error| panic!("could not start {}: {error}", command.get_program().display()));
        Run {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The final answer of `--output-format json`.
    ///
    /// # Panics
    /// When the client printed something else.
    pub fn answer(&self) -> String {
        let document: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|_| panic!("the client printed no JSON: {self:#?}"));
        document["result"].as_str().unwrap_or_default().to_string()
    }
}
