//! `ConfigChange`: settings that change while the session runs.
//!
//! The client hot-reloads settings files, and the calls after that are judged by what it read. `block` keeps the old
//! settings in force. With nobody there every change stays out; with a person those do that would take the hook away or
//! loosen what it rests on.
//!
//! The event names the file and shows neither what it held nor what it holds. So the file is read, and the hook has to
//! stand, whole and for every tool, in one of the files that the client reads, or come from a plugin. A hook given by
//! `--settings` alone cannot be seen; there every change stays out.

use super::{Answer, Session, block};
use crate::install::{MANAGED, check, client::is_ours};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Events that must keep their hook.
const EVENTS: [&str; 3] = ["PreToolUse", "PostToolUse", "ConfigChange"];
/// Variables that what jess decides rests on, and starts of such names.
const RESTS_ON: [&str; 10] = [
    "JESS_",
    "XDG_",
    "LD_",
    "HOME",
    "TMPDIR",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_PLUGIN_ROOT",
    "BASH_ENV",
];

impl Session<'_> {
    /// Blocks a change when nobody is there, and one that would switch the guard off.
    pub(super) fn config_change(&self) -> Answer {
        let why = if !self.attended || self.dispatched() {
            Some("nobody is there to agree".to_owned())
        } else {
            self.loosened()
        };
        match why {
            None => Answer::silent(),
            Some(why) => Answer::say(block(&format!(
                "The settings changed during the session ({why}); the old ones stay in force until the next start."
            ))),
        }
    }

    /// What the changed settings would take away, if anything.
    fn loosened(&self) -> Option<String> {
        let path = self.event.text("file_path").unwrap_or_default();
        let Some(settings) = self.settings(Path::new(path)) else {
            return Some("the file is not one JSON object, so the client drops all of it".to_owned());
        };
        // In the machine's own settings it keeps every other hook out.
        let managed = path == MANAGED && EVENTS.iter().all(|e| holds(&settings, e));
        if let Some(why) = loosens(&settings, managed).or_else(|| dropped(&settings)) {
            return Some(why);
        }
        let plugin = self.env.var("CLAUDE_PLUGIN_ROOT").is_some();
        if plugin && settings.get("env").is_some_and(|e| e.get("PATH").is_some()) {
            return Some("env sets the PATH by which the plugin's hook is found".to_owned());
        }
        let mut files = check::files(&self.scope.home, &self.scope.project);
        files.extend(self.env.var("CLAUDE_CONFIG_DIR").map(|dir| PathBuf::from(dir).join("settings.json")));
        let stands = plugin
            || files.iter().any(|f| {
                self.settings(f).is_some_and(|s| dropped(&s).is_none() && EVENTS.iter().all(|e| holds(&s, e)))
            });
        (!stands).then(|| "the hook stands in no settings file any more".to_owned())
    }

    /// A settings file as the client reads it; `None` for what it drops as a whole. At most the bytes that a
    /// [`World`](crate::policy::World) reads: a longer file ends in the middle and is no document.
    fn settings(&self, path: &Path) -> Option<Map<String, Value>> {
        let text = self.env.world().read(path)?;
        match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
            Ok(Value::Object(settings)) => Some(settings),
            _ => None,
        }
    }
}

/// A key that loosens by its value. Whatever is not plainly "no" counts as "yes". `managed`: these are the machine's own
/// settings and hold the hook.
fn loosens(settings: &Map<String, Value>, managed: bool) -> Option<String> {
    let yes = |key: &str| !matches!(settings.get(key), None | Some(Value::Null | Value::Bool(false)));
    if yes("disableAllHooks") || (yes("allowManagedHooksOnly") && !managed) {
        return Some("they would switch hooks off".to_owned());
    }
    let modes = [settings.get("defaultMode"), settings.get("permissions").and_then(|p| p.get("defaultMode"))];
    if modes
        .into_iter()
        .flatten()
        .any(|m| m.as_str().is_none_or(|m| m.eq_ignore_ascii_case("bypassPermissions")))
    {
        return Some("the default mode would ask nobody".to_owned());
    }
    match settings.get("env") {
        None | Some(Value::Null) => None,
        Some(Value::Object(vars)) => vars
            .keys()
            .any(|name| {
                RESTS_ON.iter().any(|r| if r.ends_with('_') { name.starts_with(r) } else { name == r })
            })
            .then(|| "env sets a variable that the guard rests on".to_owned()),
        Some(_) => Some("env is no object".to_owned()),
    }
}

/// A value for which the client drops the whole file without a word.
fn dropped(settings: &Map<String, Value>) -> Option<String> {
    let wrong = |key: &str| Some(format!("{key} has a value for which the client drops the whole file"));
    let absent_or = |value: Option<&Value>, right: fn(&Value) -> bool| value.is_none_or(right);
    for key in ["permissions", "hooks", "statusLine"] {
        if !absent_or(settings.get(key), Value::is_object) {
            return wrong(key);
        }
    }
    if !absent_or(settings.get("model"), Value::is_string) {
        return wrong("model");
    }
    if !absent_or(settings.get("cleanupPeriodDays"), Value::is_number) {
        return wrong("cleanupPeriodDays");
    }
    let texts = |v: &Value| v.as_array().is_some_and(|a| a.iter().all(Value::is_string));
    for key in ["allow", "deny", "ask"] {
        if settings.get("permissions").and_then(|p| p.get(key)).is_some_and(|v| !texts(v)) {
            return wrong("permissions");
        }
    }
    handlers(settings, "PreToolUse")
        .any(|(_, handler)| !valid(handler))
        .then(|| wrong("hooks.PreToolUse"))
        .flatten()
}

/// Whether the client takes a handler.
fn valid(handler: &Value) -> bool {
    let text = |key: &str| handler.get(key).is_some_and(|v| v.as_str().is_some_and(|s| !s.is_empty()));
    let known = match handler.get("type").and_then(Value::as_str) {
        Some("command") => text("command"),
        Some("http") => text("url"),
        Some("prompt" | "agent") => text("prompt"),
        Some("mcp_tool") => true,
        _ => false,
    };
    known && handler.get("timeout").is_none_or(|t| t.as_f64().is_some_and(|t| t > 0.0))
}

/// The handlers of an event, each with its group.
fn handlers<'a>(
    settings: &'a Map<String, Value>,
    event: &str,
) -> impl Iterator<Item = (&'a Value, &'a Value)> + use<'a> {
    let groups = settings.get("hooks").and_then(|h| h.get(event)).and_then(Value::as_array);
    groups.into_iter().flatten().flat_map(|group| {
        let handlers = group.get("hooks").and_then(Value::as_array);
        handlers.into_iter().flatten().map(move |handler| (group, handler))
    })
}

/// Whether the settings hold jess's hook for an event, for every tool and without a condition.
fn holds(settings: &Map<String, Value>, event: &str) -> bool {
    handlers(settings, event).any(|(group, handler)| {
        let all = match group.get("matcher") {
            None | Some(Value::Null) => true,
            Some(matcher) => matches!(matcher.as_str(), Some("" | "*" | ".*")),
        };
        let held_back =
            handler.get("async").is_some_and(|a| *a != Value::Bool(false)) || handler.get("if").is_some();
        all && !held_back && is_ours(handler) && valid(handler)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn every_form_of_switching_hooks_off_is_seen_and_ordinary_settings_are_not() {
        for bad in [
            json!({"disableAllHooks": true}),
            json!({"disableAllHooks": "true"}),
            json!({"disableAllHooks": 1}),
            json!({"allowManagedHooksOnly": true}),
            json!({"permissions": {"defaultMode": "bypassPermissions"}}),
            json!({"permissions": {"defaultMode": ["bypassPermissions"]}}),
            json!({"env": {"JESS_UNTRUSTED_ROOT": ""}}),
            json!({"env": {"XDG_STATE_HOME": "/tmp/x"}}),
            json!({"env": {"CLAUDE_CODE_SESSION_ATTENDED": "1"}}),
            json!({"env": [1]}),
        ] {
            assert!(loosens(&object(bad.clone()), false).is_some(), "{bad}");
        }
        for good in [
            json!({}),
            json!({"disableAllHooks": false, "model": "opus"}),
            json!({"permissions": {"defaultMode": "acceptEdits", "allow": ["Bash(ls)"]}}),
            json!({"env": {"RUST_LOG": "info", "HOMEBREW_PREFIX": "/opt"}}),
        ] {
            assert_eq!(loosens(&object(good.clone()), false), None, "{good}");
            assert_eq!(dropped(&object(good.clone())), None, "{good}");
        }
    }

    #[test]
    fn the_machine_s_settings_may_keep_other_hooks_out() {
        let only = object(json!({"allowManagedHooksOnly": true}));
        assert!(loosens(&only, false).is_some());
        assert_eq!(loosens(&only, true), None);
    }

    #[test]
    fn a_file_that_the_client_drops_holds_no_hook() {
        for bad in [
            json!({"permissions": {"allow": "Bash"}}),
            json!({"model": 7}),
            json!({"hooks": []}),
            json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command"}]}]}}),
            json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "timeout": 0}]}]}}),
        ] {
            assert!(dropped(&object(bad.clone())).is_some(), "{bad}");
        }
    }

    #[test]
    fn the_hook_stands_only_for_every_tool_and_without_a_condition() {
        let handler =
            json!({"type": "command", "command": "/opt/jess-hook", "args": ["hook"], "timeout": 30});
        let with = |more: Value, matcher: &str| {
            let mut handler = handler.clone();
            if let (Some(h), Some(m)) = (handler.as_object_mut(), more.as_object()) {
                h.extend(m.clone());
            }
            object(json!({"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [handler]}]}}))
        };
        assert!(holds(&with(json!({}), "*"), "PreToolUse"));
        assert!(!holds(&with(json!({}), "*"), "PostToolUse"));
        assert!(!holds(&with(json!({}), "Read"), "PreToolUse"));
        assert!(!holds(&with(json!({"async": true}), "*"), "PreToolUse"));
        assert!(!holds(&with(json!({"if": "Bash(("}), "*"), "PreToolUse"));
        assert!(!holds(&with(json!({"command": "/bin/true"}), "*"), "PreToolUse"));
    }
}
