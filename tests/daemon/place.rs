//! A home of its own with a runtime directory, and the two binaries in it.

use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

pub const JESS: &str = env!("CARGO_BIN_EXE_jess");
pub const HOOK: &str = env!("CARGO_BIN_EXE_jess-hook");

pub struct Place {
    root: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        fs::create_dir_all(env!("CARGO_TARGET_TMPDIR")).unwrap();
        // A socket's path is at most 107 bytes long.
        let root = tempfile::Builder::new().prefix("d").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let place = Place { root };
        for dir in ["h/.config/jess", "h/p", "run"] {
            fs::create_dir_all(place.at(dir)).unwrap();
        }
        fs::set_permissions(place.at("run"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(place.at("h/p/.env"), "X=planted\n").unwrap();
        place.config("");
        place
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    /// The operator's configuration; sessions of these tests may meet any number of denials.
    pub fn config(&self, text: &str) {
        fs::write(self.at("h/.config/jess/config.toml"), format!("{text}\n[session]\ndenials_max = 0\n"))
            .unwrap();
    }

    pub fn command(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env("HOME", self.at("h"))
            .env("XDG_RUNTIME_DIR", self.at("run"))
            .env("CLAUDE_PROJECT_DIR", self.at("h/p"))
            .env("CLAUDE_CODE_SESSION_ATTENDED", "1")
            .env("PATH", "/usr/bin:/bin");
        command
    }

    /// Runs the daemon until the guard is dropped.
    pub fn daemon(&self) -> Daemon {
        let child =
            self.command(Path::new(JESS), &["daemon", "--idle", "600"]).stdin(Stdio::null()).spawn().unwrap();
        let daemon = Daemon { child };
        // The name is there a moment before anybody listens.
        wait_for(|| std::os::unix::net::UnixStream::connect(self.at("run/jess/hook.sock")).is_ok());
        daemon
    }

    pub fn event(&self, tool: &str, input: Value, id: &str) -> Value {
        json!({
            "session_id": "s", "cwd": self.at("h/p"), "hook_event_name": "PreToolUse", "permission_mode": "default",
            "tool_name": tool, "tool_input": input, "tool_use_id": id,
        })
    }

    /// One call of the hook.
    pub fn hook(&self, program: &Path, event: &Value) -> Output {
        let args: &[&str] = if program == Path::new(JESS) { &["hook"] } else { &[] };
        let mut command = self.command(program, args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = loop {
            match command.spawn() {
                Ok(child) => break child,
                // A copy that was just written is still open in a process that another thread is starting.
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => panic!("{}: {error}", program.display()),
            }
        };
        // A hook that refuses early reads nothing.
        let _ = child.stdin.take().unwrap().write_all(event.to_string().as_bytes());
        child.wait_with_output().unwrap()
    }

    /// What the daemon, and nobody else, says to the question that `jess-hook` asks; status 77 when it says nothing.
    pub fn asked(&self, event: &Value) -> Output {
        let command = self.command(Path::new(HOOK), &[]);
        let mut env = Vec::new();
        for (name, value) in command.get_envs() {
            env.extend(name.as_encoded_bytes());
            env.push(b'=');
            env.extend(value.unwrap_or_default().as_encoded_bytes());
            env.push(0);
        }
        let said = jess::daemon::client::ask(
            &self.at("run/jess"),
            Path::new(JESS),
            &env,
            event.to_string().as_bytes(),
        );
        let (code, stdout, stderr) =
            said.map_or((77, Vec::new(), Vec::new()), |r| (r.exit, r.document, r.message));
        Output { status: ExitStatus::from_raw(i32::from(code) << 8), stdout, stderr }
    }
}

impl Drop for Place {
    /// Ends the daemons of this home. One that is just being started has the home too.
    fn drop(&mut self) {
        while let Some(pid) = self.started() {
            kill(pid, rustix::process::Signal::KILL);
            wait_for(|| self.started() != Some(pid));
        }
    }
}

impl Place {
    /// A process, not yet ended, that a hook or daemon of this home has started.
    fn started(&self) -> Option<i32> {
        let home = format!("HOME={}", self.at("h").display());
        fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let environ = fs::read(entry.path().join("environ")).ok()?;
            environ.split(|b| *b == 0).any(|var| var == home.as_bytes()).then_some(pid)
        })
    }
}

/// The word of a `PreToolUse` answer: `deny`, `ask` or `none`.
pub fn word(output: &Output) -> String {
    if output.status.code() != Some(0) {
        return format!("exit {:?}", output.status);
    }
    if output.stdout.is_empty() {
        return "none".into();
    }
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["hookSpecificOutput"]["permissionDecision"].as_str().unwrap().into()
}

pub struct Daemon {
    child: Child,
}

impl Daemon {
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn kill(pid: i32, signal: rustix::process::Signal) {
    let _ = rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal);
}

/// The daemon whose process id is in the lock, if it is one.
pub fn running(lock: &Path) -> Option<i32> {
    let pid: i32 = fs::read_to_string(lock).ok()?.trim().parse().ok()?;
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    String::from_utf8_lossy(&line).contains("daemon").then_some(pid)
}

pub fn wait_for(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(30), "it does not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}
