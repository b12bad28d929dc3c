//! The proof: the installed client, a scripted model on loopback, and a hook as it is installed.
//!
//! Three runs in a home of their own: with the hook a dangerous call leaves no trace and an ordinary one does; with the
//! hook's binary missing the ordinary call leaves no trace either. The ordinary call is the control: without it a client
//! that runs nothing at all would look like one that blocks.

use super::client::{Client, Form};
use crate::dispatch::drill::model::start as scripted;
use crate::hook::managed::EVENTS;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long one run of the client may take.
const LIMIT: Duration = Duration::from_secs(90);

/// One thing that was tried.
#[derive(Debug, Clone)]
pub struct Proof {
    /// What was to be shown.
    pub what: &'static str,
    /// Whether it was.
    pub holds: bool,
}

/// Why nothing could be proved.
#[derive(Debug, thiserror::Error)]
#[error("the proof cannot be run: {what}: {source}")]
pub struct Error {
    what: &'static str,
    source: std::io::Error,
}

/// Runs the client three times. About a second each.
pub fn prove(client: &Client, hook: &Path, form: Form) -> Result<Vec<Proof>, Error> {
    let ran = |hook: &Path, command: &str| run(client, hook, form, command);
    let missing = hook.with_file_name("jess-hook-that-is-not-there");
    Ok(vec![
        Proof { what: "an ordinary call runs", holds: ran(hook, "echo ran > trace")? },
        Proof { what: "a denied call does not run", holds: !ran(hook, "cat .env > trace")? },
        Proof { what: "a missing hook binary blocks the call", holds: !ran(&missing, "echo ran > trace")? },
    ])
}

/// Whether the client ran a Bash command that makes a file `trace`.
fn run(client: &Client, hook: &Path, form: Form, command: &str) -> Result<bool, Error> {
    let err = |what| move |source| Error { what, source };
    let place = scratch().map_err(err("a scratch directory"))?;
    let outcome = (|| {
        let project = place.join("project");
        std::fs::create_dir_all(place.join("home/.claude")).map_err(err("a home"))?;
        std::fs::create_dir_all(place.join("tmp")).map_err(err("a home"))?;
        std::fs::create_dir_all(&project).map_err(err("a project"))?;
        std::fs::write(project.join(".env"), "TOKEN=planted\n").map_err(err("a project"))?;
        let hooks: Map<String, Value> =
            EVENTS.iter().map(|e| ((*e).to_owned(), json!([form.group(e, hook)]))).collect();
        let settings = json!({ "hooks": hooks, "permissions": { "allow": ["Bash"] } });
        std::fs::write(place.join("home/.claude/settings.json"), settings.to_string())
            .map_err(err("settings"))?;
        let turn = json!([{"type": "tool_use", "id": "toolu_proof", "name": "Bash", "input": {"command": command, "description": "proof"}}]);
        let port = scripted(vec![turn], &place.join("model.log")).map_err(err("a scripted model"))?;
        let mut child = Command::new(&client.program)
            .args(["-p", "go", "--output-format", "json", "--allowedTools", "Bash"])
            .current_dir(&project)
            .env_clear()
            .env("HOME", place.join("home"))
            .env("TMPDIR", place.join("tmp"))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("ANTHROPIC_API_KEY", "sk-ant-scripted-not-a-real-key")
            .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}"))
            .env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("NO_PROXY", "127.0.0.1")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("CLAUDE_CODE_MAX_RETRIES", "1")
            .env("DISABLE_TELEMETRY", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("DISABLE_ERROR_REPORTING", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(err("the client"))?;
        let start = Instant::now();
        while child.try_wait().map_err(err("the client"))?.is_none() {
            if start.elapsed() > LIMIT {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error { what: "the client", source: std::io::ErrorKind::TimedOut.into() });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(project.join("trace").exists())
    })();
    let _ = std::fs::remove_dir_all(&place);
    outcome
}

/// A directory of one's own, where nothing counts as scratch for the policy.
fn scratch() -> std::io::Result<std::path::PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let mut name = [0u8; 8];
    getrandom::fill(&mut name).map_err(|e| std::io::Error::other(e.to_string()))?;
    let name: String = name.iter().map(|b| format!("{b:02x}")).collect();
    let dir = std::env::temp_dir().join(format!("jess-proof-{name}"));
    std::fs::DirBuilder::new().mode(0o700).create(&dir)?;
    Ok(dir)
}
