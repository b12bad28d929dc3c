//! Which client is installed, and which form of the hook it honours.

use crate::hook::exec::quote;
use crate::hook::managed::CLIENT_TIMEOUT_S;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The first client known to honour `onFailure`; before it a hook that fails lets the call run.
const ON_FAILURE: Version = Version(2, 1, 295);

/// A client's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// Reads the start of `2.1.332 (Claude Code)`.
    pub fn parse(text: &str) -> Option<Version> {
        let mut parts = text.split_whitespace().next()?.split('.').map(|p| p.parse().ok());
        Some(Version(parts.next()??, parts.next()??, parts.next()??))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// An installed client.
#[derive(Debug, Clone)]
pub struct Client {
    /// Its program.
    pub program: PathBuf,
    /// What it says of itself.
    pub version: Version,
}

impl Client {
    /// The client at `program`, else the `claude` on the PATH.
    pub fn find(program: Option<&Path>) -> Option<Client> {
        let program = match program {
            Some(p) => p.to_path_buf(),
            None => std::env::split_paths(&std::env::var_os("PATH")?)
                .filter(|d| d.is_absolute())
                .map(|d| d.join("claude"))
                .find(|p| p.is_file())?,
        };
        let said = Command::new(&program)
            .arg("--version")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let version = Version::parse(&String::from_utf8_lossy(&said.stdout))?;
        Some(Client { program, version })
    }
}

/// How the hook is written into settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The program itself, without a shell, with `onFailure: "block"`.
    Exec,
    /// A shell line that turns every failure into exit 2, which all clients take for a refusal.
    Shell,
}

impl Form {
    /// The form for a client; the shell line, which every version honours, when none is known.
    pub fn of(client: Option<&Client>) -> Form {
        match client {
            Some(c) if c.version >= ON_FAILURE => Form::Exec,
            _ => Form::Shell,
        }
    }

    /// The handler.
    pub fn handler(self, hook: &Path) -> Value {
        let path = hook.to_string_lossy();
        match self {
            Form::Exec => json!({
                "type": "command", "command": path, "args": ["hook"],
                "timeout": CLIENT_TIMEOUT_S, "onFailure": "block",
            }),
            // The inner limit is below the client's, since the client lets the call run at its own. `$(…)` keeps
            // what a hook killed half way had printed from being taken for an answer.
            Form::Shell => json!({
                "type": "command",
                "command": format!(
                    "out=$(timeout -k 1 {} {} hook) || {{ echo 'jess: the hook failed, so this is blocked' >&2; exit 2; }}; printf '%s' \"$out\"",
                    CLIENT_TIMEOUT_S / 2,
                    quote(&path)
                ),
                "timeout": CLIENT_TIMEOUT_S, "onFailure": "block",
            }),
        }
    }

    /// The group for an event: the handler for everything.
    pub fn group(self, _event: &str, hook: &Path) -> Value {
        json!({ "matcher": "*", "hooks": [self.handler(hook)] })
    }
}

/// Whether a handler is one of jess's.
pub fn is_ours(handler: &Value) -> bool {
    handler.get("command").and_then(Value::as_str).is_some_and(|c| {
        let words = c.split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '/' | '(' | ')'));
        let jess = words.clone().any(|w| w == "jess-hook");
        let plain = c.ends_with("/jess") && handler.get("args") == Some(&json!(["hook"]));
        jess || plain
    })
}
