//! Settings that disable, shadow or break the hook.

use super::client::is_ours;
use super::{Client, Form};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One fault, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Stable name of the kind: `dropped`, `disabled`, `shadowed`, `incomplete`, `dead`, `open`, `absent`.
    pub name: &'static str,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// Where the hook stands, and what is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Settings files that hold it.
    pub installed: Vec<PathBuf>,
    /// The programs that they name, each once.
    pub programs: Vec<PathBuf>,
    /// What is wrong.
    pub faults: Vec<Fault>,
}

/// The settings files that the client reads for a project, the strongest first.
pub fn files(home: &Path, project: &Path) -> Vec<PathBuf> {
    vec![
        super::MANAGED.into(),
        project.join(".claude/settings.local.json"),
        project.join(".claude/settings.json"),
        home.join(".claude/settings.json"),
    ]
}

/// Looks at the settings files. `client`: for what it honours.
pub fn look(files: &[PathBuf], client: Option<&Client>) -> Standing {
    let mut out = Standing::default();
    let mut managed = false;
    let mut disabled: Vec<(PathBuf, bool)> = Vec::new();
    let fault = |faults: &mut Vec<Fault>, name: &'static str, what: String, remedy: &str| {
        faults.push(Fault { name, what, remedy: remedy.to_owned() });
    };
    for (i, file) in files.iter().enumerate() {
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        let shown = crate::sanitise::path(file);
        let settings: Value = match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
            Ok(v @ Value::Object(_)) => v,
            Ok(_) => {
                fault(
                    &mut out.faults,
                    "dropped",
                    format!("{shown} is no JSON object: the client drops it"),
                    "repair the file",
                );
                continue;
            }
            Err(e) => {
                let what = format!(
                    "{shown} is not plain JSON (line {}): the client drops the whole file without a word",
                    e.line()
                );
                fault(
                    &mut out.faults,
                    "dropped",
                    what,
                    "take out comments and trailing commas, or repair what is broken",
                );
                continue;
            }
        };
        if settings.get("disableAllHooks") == Some(&Value::Bool(true)) {
            disabled.push((file.clone(), i == 0));
        }
        if i == 0 && settings.get("allowManagedHooksOnly") == Some(&Value::Bool(true)) {
            managed = true;
        }
        out.faults.extend(unreadable(file, &settings));
        let handlers: Vec<(&String, &Value)> = handlers(&settings).filter(|(_, h)| is_ours(h)).collect();
        if handlers.is_empty() {
            continue;
        }
        out.installed.push(file.clone());
        managed |= i == 0;
        for event in ["PreToolUse", "PostToolUse", "ConfigChange"] {
            if !handlers.iter().any(|(e, _)| *e == event) {
                fault(
                    &mut out.faults,
                    "incomplete",
                    format!("{shown} has no hook for {event}"),
                    "run jess init again",
                );
            }
        }
        if let Some((_, handler)) = handlers.first() {
            out.faults.extend(broken(file, handler, client));
        }
        for program in handlers.iter().map(|(_, handler)| program(handler)) {
            if !out.programs.contains(&program) {
                out.programs.push(program);
            }
        }
    }
    if out.installed.is_empty() {
        fault(&mut out.faults, "absent", "the hook stands in no settings file".into(), "run jess init");
    }
    for (file, is_managed) in disabled {
        if is_managed || !managed {
            let what = format!(
                "{} says disableAllHooks: no hook runs, the operator's own included",
                crate::sanitise::path(file)
            );
            fault(
                &mut out.faults,
                "disabled",
                what,
                "take it out, or install with jess init --scope managed, which it does not reach",
            );
        }
    }
    if !managed && !out.installed.is_empty() {
        let what = "the hook does not stand in managed settings: --bare, --safe-mode, --restricted, --setting-sources and a project's disableAllHooks leave it out";
        fault(&mut out.faults, "shadowed", what.into(), "run jess init --scope managed as root");
    }
    out
}

/// Every handler with its event.
fn handlers(settings: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let events = settings.get("hooks").and_then(Value::as_object);
    events.into_iter().flatten().flat_map(|(event, groups)| {
        let groups = groups.as_array().into_iter().flatten();
        let handlers = groups.filter_map(|g| g.get("hooks").and_then(Value::as_array)).flatten();
        handlers.map(move |h| (event, h))
    })
}

/// Values that make the client drop the whole file.
fn unreadable(file: &Path, settings: &Value) -> Vec<Fault> {
    let typed = |pointer: &str, fits: fn(&Value) -> bool| {
        settings
            .pointer(pointer)
            .is_some_and(|v| !fits(v))
            .then(|| pointer.trim_start_matches('/').replace('/', "."))
    };
    let mut out: Vec<String> = [
        typed("/permissions/allow", Value::is_array),
        typed("/permissions/deny", Value::is_array),
        typed("/model", Value::is_string),
        typed("/cleanupPeriodDays", Value::is_number),
        typed("/statusLine", Value::is_object),
        typed("/hooks", Value::is_object),
    ]
    .into_iter()
    .flatten()
    .collect();
    let groups = settings.get("hooks").and_then(Value::as_object).into_iter().flatten();
    for (event, list) in groups {
        let fits = list.as_array().is_some_and(|groups| {
            groups.iter().all(|g| {
                g.get("matcher").is_none_or(Value::is_string) && g.get("hooks").is_some_and(Value::is_array)
            })
        });
        if !fits {
            out.push(format!("hooks.{}", crate::sanitise::escape(event, false)));
        }
    }
    let pre = settings.pointer("/hooks/PreToolUse").and_then(Value::as_array).into_iter().flatten();
    let invalid = |h: &Value| {
        let kind = h.get("type").and_then(Value::as_str).unwrap_or_default();
        let timeout = h.get("timeout").is_some_and(|t| !t.as_f64().is_some_and(|t| t > 0.0));
        !matches!(kind, "command" | "http" | "prompt" | "agent" | "mcp_tool")
            || kind == "command" && !h.get("command").is_some_and(Value::is_string)
            || timeout
    };
    if pre.filter_map(|g| g.get("hooks").and_then(Value::as_array)).flatten().any(invalid) {
        out.push("hooks.PreToolUse (a handler)".into());
    }
    out.into_iter()
        .map(|key| Fault {
            name: "dropped",
            what: format!(
                "{}: {key} has a value that the client does not take; it drops the whole file without a word",
                crate::sanitise::path(file)
            ),
            remedy: "repair that value".into(),
        })
        .collect()
}

/// The program that one of jess's handlers runs.
fn program(handler: &Value) -> PathBuf {
    let command = handler.get("command").and_then(Value::as_str).unwrap_or_default();
    if handler.get("args").is_some() {
        return command.into();
    }
    command.split('\'').find(|w| w.ends_with("/jess-hook")).unwrap_or_default().into()
}

/// A handler that cannot do its work.
fn broken(file: &Path, handler: &Value, client: Option<&Client>) -> Vec<Fault> {
    let mut out = Vec::new();
    let exec = handler.get("args").is_some();
    let program = program(handler);
    if program.is_absolute() {
        for needed in [program.clone(), program.with_file_name("jess")] {
            if !needed.is_file() {
                out.push(Fault {
                    name: "dead",
                    what: format!(
                        "{} names {}, which is not there: every call is blocked",
                        crate::sanitise::path(file),
                        crate::sanitise::path(&needed)
                    ),
                    remedy: "install jess again, or run jess init".into(),
                });
            }
        }
    }
    if exec && client.is_some() && Form::of(client) == Form::Shell {
        out.push(Fault {
            name: "open",
            what: format!(
                "the installed client {} ignores onFailure: a hook that fails would let the call run",
                client.map(|c| c.version.to_string()).unwrap_or_default()
            ),
            remedy: "run jess init again: it picks the form that this client honours".into(),
        });
    }
    out
}
