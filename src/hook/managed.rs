//! Settings that install the hook.

use super::event;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Seconds that the client waits for the hook; [`super::DEADLINE`] is far below.
pub const CLIENT_TIMEOUT_S: u64 = 30;

/// Events in which the hook has something to say or to record.
///
/// `WorktreeCreate` is left out: a hook there must print the worktree's path, so an observer breaks the client.
/// `MessageDisplay` is left out: it fires for each piece of output and nothing is decided there.
const LEFT_OUT: &[&str] = &["WorktreeCreate", "MessageDisplay"];

/// The events that the hook is installed for.
pub static EVENTS: std::sync::LazyLock<Vec<&'static str>> =
    std::sync::LazyLock::new(|| event::ALL.iter().copied().filter(|e| !LEFT_OUT.contains(e)).collect());

/// One entry of the `hooks` settings: exec form (no shell), absolute path, blocking on every fault.
fn entry(jess: &Path) -> Value {
    json!({
        "matcher": "*",
        "hooks": [{
            "type": "command",
            "command": jess.to_string_lossy(),
            "args": ["hook"],
            "timeout": CLIENT_TIMEOUT_S,
            "onFailure": "block",
        }],
    })
}

/// The `hooks` object for a settings file: every event, one handler.
pub fn hooks(jess: &Path) -> Value {
    Value::Object(
        EVENTS
            .iter()
            .map(|e| ((*e).to_owned(), entry(jess)))
            .map(|(k, v)| (k, json!([v])))
            .collect::<Map<_, _>>(),
    )
}

/// Managed settings (`/etc/claude-code/managed-settings.json`) that put every event through `jess hook`.
///
/// Managed settings are the only ones that `--bare`, `--safe-mode` and a project's `disableAllHooks` leave in force; a
/// broken hook entry there makes the client refuse to start. `jess_binary` must be an absolute path inside the sandbox.
pub fn managed_settings(jess_binary: &Path) -> Value {
    json!({
        "disableAllHooks": false,
        "allowManagedHooksOnly": true,
        "hooks": hooks(jess_binary),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_blocks_on_failure_and_runs_without_a_shell() {
        let settings = managed_settings(Path::new("/opt/jess"));
        let hooks = settings["hooks"].as_object().unwrap();
        assert_eq!(hooks.len(), event::ALL.len() - LEFT_OUT.len());
        for (name, groups) in hooks {
            let handler = &groups[0]["hooks"][0];
            assert_eq!(groups[0]["matcher"], "*", "{name}");
            assert_eq!(handler["onFailure"], "block", "{name}");
            assert_eq!(handler["command"], "/opt/jess", "{name}");
            assert_eq!(handler["args"], json!(["hook"]), "{name}");
        }
    }
}
