//! Tools that start agents, speak to them, or change how they run.

use crate::policy::mcp;
use crate::policy::{Decision, Scope, World};
use serde_json::Value;

/// Parts of the names of permission modes that ask nobody, in the form of [`flat`].
const LOOSE_MODES: &[&str] = &["bypass", "skip", "dontask", "acceptedits", "yolo", "fullauto", "neverask"];

/// Parts of names of switches that take a guard away, in the form of [`flat`].
const LOOSE_SWITCHES: &[&str] = &[
    "dangerously",
    "skippermission",
    "bypasspermission",
    "nosandbox",
    "disablesandbox",
    "disableallhooks",
    "autoapprove",
];

/// Parts of the names of settings that decide what may run, in the form of [`flat`].
#[rustfmt::skip]
const GUARD_SETTINGS: &[&str] = &[
    "permission", "defaultmode", "hook", "sandbox", "bypass", "autoapprove", "env", "apikey", "mcp", "allow", "trust", "dangerous", "plugin", "statusline",
];

/// Deepest object that is looked into.
const DEPTH_MAX: usize = 32;

fn flat(text: &str) -> String {
    text.chars().take(256).filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// What is said about a subagent, a team or a workflow.
pub(super) fn agent(tool: &str, input: &Value, scope: &Scope, world: &dyn World) -> Decision {
    let kind = input.get("subagent_type").and_then(Value::as_str).unwrap_or("general-purpose");
    let runs = if tool == "Workflow" { mcp::judge(tool, input, scope, world) } else { Decision::SILENT };
    scope.custom.agent(kind).or(loosened(input)).or(runs).or(credential(input))
}

/// What is said about a text for another agent, or for this one later.
pub(super) fn message(tool: &str, input: &Value) -> Decision {
    let later = match tool {
        "CronCreate" => Decision::ask(
            "persist.cron",
            "The prompt would run again by itself later. A person has to agree.",
        ),
        "RemoteTrigger" if !matches!(input.get("action").and_then(Value::as_str), Some("list" | "get")) => {
            Decision::ask(
                "persist.remote",
                "An agent would run on another machine, or be changed there. A person has to agree.",
            )
        }
        _ => Decision::SILENT,
    };
    later.or(loosened(input)).or(credential(input))
}

/// What is said about a change of the client's settings; without a value one is read.
pub(super) fn setting(input: &Value) -> Decision {
    let name = ["setting", "key", "name"].iter().find_map(|k| input.get(k)).and_then(Value::as_str);
    let changes = input.get("value").is_some_and(|v| !v.is_null());
    let name = flat(name.unwrap_or_default());
    if changes && (name.is_empty() || GUARD_SETTINGS.iter().any(|s| name.contains(s))) {
        return Decision::ask(
            "guard.config",
            "The setting decides what the client lets run. A person has to agree to the change.",
        );
    }
    loosened(input).or(credential(input))
}

/// A mode or a switch, anywhere in the input, that takes permission checks away.
fn loosened(input: &Value) -> Decision {
    if loose("", input, 0) {
        return Decision::ask(
            "agent.bypass",
            "The agent would run without permission checks. Start it in the session's own mode.",
        );
    }
    Decision::SILENT
}

fn loose(key: &str, value: &Value, depth: usize) -> bool {
    if depth > DEPTH_MAX {
        return true;
    }
    let switched = || LOOSE_SWITCHES.iter().any(|s| key.contains(s));
    match value {
        Value::String(text) => {
            let text = flat(text);
            key.ends_with("mode") && LOOSE_MODES.iter().any(|m| text.contains(m))
                || switched() && text != "false" && !text.is_empty()
        }
        Value::Bool(on) => *on && switched(),
        Value::Number(n) => switched() && n.as_f64() != Some(0.0),
        Value::Null => false,
        Value::Array(items) => items.iter().any(|v| loose(key, v, depth + 1)),
        Value::Object(map) => map.iter().any(|(k, v)| loose(&flat(k), v, depth + 1)),
    }
}

/// Something shaped like a credential, anywhere in the input.
fn credential(input: &Value) -> Decision {
    if carries(input, 0) {
        return Decision::ask(
            "agent.secret",
            "The text holds something shaped like a credential. Leave it out: the other agent can be told where it is.",
        );
    }
    Decision::SILENT
}

fn carries(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth > DEPTH_MAX => true,
        Value::String(text) => mcp::holds_secret(text),
        Value::Array(items) => items.iter().any(|v| carries(v, depth + 1)),
        Value::Object(map) => map.iter().any(|(k, v)| mcp::holds_secret(k) || carries(v, depth + 1)),
        _ => false,
    }
}
