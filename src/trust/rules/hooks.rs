//! Hook handlers: every type, every event, every shape that a client, old or new, could take for one.

use super::Sink;
use crate::trust::mask;
use crate::trust::report::Class;
use serde_json::{Map, Value};

/// Keys that a matcher group has besides `hooks`; a group of these alone runs nothing.
const GROUP_KEYS: &[&str] = &["matcher", "description", "$schema"];

/// Judges the value of a `hooks` key: an object of event name to groups.
pub fn check(sink: &mut Sink, value: &Value) {
    match value {
        Value::Object(events) => {
            for (event, groups) in events {
                handlers(sink, event, groups);
            }
        }
        // A list of groups without an event: no client is known to run it, and it holds handlers all the same.
        Value::Array(groups) => groups.iter().for_each(|g| handlers(sink, "(no event)", g)),
        other if super::truthy(other) => {
            sink.block(Class::Hook, "hooks (unrecognised shape)", mask::json(other));
        }
        _ => {}
    }
}

/// Nesting is bounded by the parser's limit.
fn handlers(sink: &mut Sink, event: &str, value: &Value) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| handlers(sink, event, item)),
        Value::Object(map) => {
            if let Some(inner) = map.get("hooks") {
                handlers(sink, event, inner);
            }
            if map.keys().any(|k| k != "hooks" && !GROUP_KEYS.contains(&k.as_str())) {
                handler(sink, event, map);
            }
        }
        other if super::truthy(other) => {
            sink.block(
                Class::Hook,
                format!("{} hook (unrecognised shape)", mask::name(event)),
                mask::json(other),
            );
        }
        _ => {}
    }
}

fn handler(sink: &mut Sink, event: &str, map: &Map<String, Value>) {
    sink.names_scripts(&Value::Object(map.clone()));
    let event = mask::name(event);
    let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
    let (label, value) = match map.get("type").and_then(Value::as_str) {
        Some("command") => (format!("{event} hook"), mask::secret(&command_line(map))),
        Some("http") => (format!("{event} hook (http)"), mask::url(text("url"))),
        Some("mcp_tool") => {
            let tool = format!("{}/{}", text("server"), text("tool"));
            (format!("{event} hook (mcp_tool)"), mask::plain(&tool))
        }
        Some(kind @ ("prompt" | "agent")) => (format!("{event} hook ({kind})"), mask::secret(text("prompt"))),
        Some(kind) => (format!("{event} hook ({}, unknown type)", mask::name(kind)), mask::keys(map)),
        None => (format!("{event} hook ((missing), unknown type)"), mask::keys(map)),
    };
    sink.block(Class::Hook, label, value);
}

/// `command` and `args` in one line, whatever their JSON types.
pub(crate) fn command_line(map: &Map<String, Value>) -> String {
    let mut words = Vec::new();
    for key in ["command", "args"] {
        match map.get(key) {
            Some(Value::String(text)) => words.push(text.clone()),
            Some(Value::Array(items)) => {
                words.extend(items.iter().map(|i| i.as_str().map_or_else(|| i.to_string(), str::to_owned)));
            }
            Some(Value::Null) | None => {}
            Some(other) => words.push(other.to_string()),
        }
    }
    words.join(" ")
}
