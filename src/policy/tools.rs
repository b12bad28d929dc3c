//! The client's own tools: what each one's input means.

mod agents;
mod carried;
mod powershell;
mod recipes;
mod search;

use super::world::Kind;
use super::{Decision, Scope, Verdict, World, mcp, paths, shell, web};
use serde_json::Value;
use std::borrow::Cow;
use std::path::Path;

/// Tools of the client that neither touch files nor leave the machine.
#[rustfmt::skip]
const INNER: &[&str] = &[
    "TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "TaskStop", "TaskOutput", "ToolSearch", "ListAgents",
    "ReportFindings", "ScheduleWakeup", "StructuredOutput", "ExitPlanMode", "EnterPlanMode", "AskUserQuestion", "Skill", "KillShell", "BashOutput",
    "DeferredToolPlaceholder", "SendMessage", "CronList", "CronDelete", "TeamCreate", "TeamDelete",
];

/// Tools of the client that work on files.
#[rustfmt::skip]
const FILES: &[&str] = &[
    "Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "NotebookRead", "LS", "Glob", "Grep", "LSP", "EnterWorktree", "ExitWorktree",
];

/// Those of them whose results hold what a file holds, or names that came with it.
#[rustfmt::skip]
const READERS: &[&str] = &["Read", "Edit", "MultiEdit", "NotebookEdit", "NotebookRead", "LS", "Glob", "Grep", "LSP"];

/// Tools whose calls are judged by what they start.
const COMMANDS: &[&str] = &["Bash", "Monitor", "PowerShell", "Agent", "Task", "Workflow"];

/// [`judge`], and where the call reaches.
pub fn look(tool: &str, input: &Value, scope: &Scope, world: &dyn World) -> shell::Seen {
    match (tool, input.get("command").and_then(Value::as_str)) {
        ("Bash" | "Monitor" | "PowerShell", Some(line)) if !line.is_empty() && !line.contains('\0') => {
            let mut seen = started(tool, line, input, scope, world);
            seen.decision = scope
                .custom
                .tool(tool, input)
                .or(seen.decision)
                .or(unsandboxed(input))
                .or(carried::beside(line, input, scope, world));
            seen
        }
        _ => {
            // A tool that nobody knows may do anything.
            let outside = !INNER.contains(&tool) && !FILES.contains(&tool) && !COMMANDS.contains(&tool);
            let decision = judge(tool, input, scope, world);
            let reads_arrived = READERS.contains(&tool) && names_arrived(tool, input, scope, world);
            let prints_outside = outside || reads_arrived;
            shell::Seen {
                decision,
                reaches: outside,
                prints_outside,
                reads_arrived,
                ..shell::Seen::default()
            }
        }
    }
}

/// Whether a tool on files is pointed at something that the session brought in; one that searches, at what is above it.
fn names_arrived(tool: &str, input: &Value, scope: &Scope, world: &dyn World) -> bool {
    if scope.arrived.is_empty() {
        return false;
    }
    let searches = matches!(tool, "Grep" | "Glob" | "LSP");
    let named: Vec<&str> = ["file_path", "notebook_path", "path", "filePath", "pattern"]
        .iter()
        .filter(|key| **key != "pattern" || tool == "Glob")
        .filter_map(|key| input.get(*key).and_then(Value::as_str))
        .filter(|path| !path.is_empty() && !path.contains('\0'))
        .collect();
    let mut places: Vec<std::path::PathBuf> =
        named.iter().flat_map(|path| paths::meanings(path, &scope.cwd, scope, world)).collect();
    let rooted = input.get("path").and_then(Value::as_str).is_some_and(|p| !p.is_empty());
    if searches && !rooted {
        places.push(scope.cwd.clone());
    }
    places.iter().any(|p| scope.arrived.iter().any(|a| p.starts_with(a) || searches && a.starts_with(p)))
}

/// A command with what its call sets up for it: `env` and `cwd`.
fn started(tool: &str, line: &str, input: &Value, scope: &Scope, world: &dyn World) -> shell::Seen {
    let mut scope = Cow::Borrowed(scope);
    let cwd = ["cwd", "workdir", "working_directory", "workingDirectory"].iter().find_map(|k| input.get(k));
    if let Some(Value::String(dir)) = cwd
        && !dir.contains('\0')
        && let Some(dir) = paths::meanings(dir, &scope.cwd, &scope, world).into_iter().next()
    {
        scope.to_mut().cwd = dir;
    }
    let mut lead = String::new();
    for (name, value) in input.get("env").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let setting = format!("{name}={value}").replace('\'', r"'\''");
        let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        lead.push_str(&format!("{} '{setting}'; ", if plain { "export" } else { "env" }));
    }
    let mut seen = shell::look(&format!("{lead}{line}"), &scope, world);
    if tool == "PowerShell" {
        if seen.decision.rule == "shell.syntax" {
            seen.decision = Decision::SILENT;
        }
        let there = shell::look(&powershell::translated(line), &scope, world);
        let unread = there.decision.rule == "shell.syntax";
        let mut decision = std::mem::take(&mut seen.decision);
        if !unread {
            decision = decision.or(there.decision);
        }
        if unread || powershell::hides(line) {
            decision = decision.or(Decision::ask(
                "shell.powershell",
                "What the line does cannot be told from it. Use plain commands, or a person has to agree.",
            ));
        }
        seen.decision = decision;
        seen.reaches |= there.reaches;
        seen.prints_outside |= there.prints_outside;
        seen.account = seen.account.or(there.account);
        seen.reads_arrived |= there.reads_arrived;
        seen.brought.extend(there.brought);
    }
    seen
}

/// What may be said about a call of `tool` with `input`.
pub fn judge(tool: &str, input: &Value, scope: &Scope, world: &dyn World) -> Decision {
    let named = scope.custom.tool(tool, input);
    if named.verdict == Verdict::Deny {
        return named;
    }
    built_in(tool, input, scope, world).or(named)
}

fn built_in(tool: &str, input: &Value, scope: &Scope, world: &dyn World) -> Decision {
    match tool {
        "Bash" | "Monitor" | "PowerShell" => command(tool, input, scope, world),
        "Read" => required(tool, input, "file_path", |p| read(p, scope, world)),
        "Edit" | "MultiEdit" => required(tool, input, "file_path", |p| {
            read(p, scope, world)
                .or(write(p, scope, world))
                .or(recipes::written(tool, p, input, scope, world))
                .or(carried::written(p, input, scope, world))
        }),
        "Write" => required(tool, input, "file_path", |p| {
            write(p, scope, world)
                .or(match read(p, scope, world) {
                    seen if seen.rule == "secret.read" && !exists(p, scope, world) => Decision::SILENT,
                    seen => seen,
                })
                .or(recipes::written(tool, p, input, scope, world))
                .or(carried::written(p, input, scope, world))
        }),
        "NotebookEdit" => {
            required(tool, input, "notebook_path", |p| read(p, scope, world).or(write(p, scope, world)))
        }
        "NotebookRead" => required(tool, input, "notebook_path", |p| read(p, scope, world)),
        "LS" => required(tool, input, "path", |_| Decision::SILENT),
        "Glob" => search::glob(input, scope, world),
        "Grep" => search::grep(input, scope, world),
        "WebFetch" => required(tool, input, "url", |u| {
            web::fetch(u, web::Fetcher::Tool, &scope.custom).or(carried::secrets(u, scope, world))
        }),
        "WebSearch" => required(tool, input, "query", |q| {
            if mcp::holds_secret(q) {
                Decision::deny("web.secret", "The search holds something shaped like a credential.")
            } else if mcp::holds_password(q) {
                Decision::ask("web.secret", "The search holds something that looks like a password or key.")
            } else {
                Decision::SILENT
            }
        }),
        "Agent" | "Task" | "Workflow" => agents::agent(tool, input, scope, world),
        "SendMessage" | "ScheduleWakeup" => agents::message(tool, input),
        "CronCreate" | "RemoteTrigger" => {
            agents::message(tool, input).or(mcp::judge(tool, input, scope, world))
        }
        "Config" => agents::setting(input).or(mcp::judge(tool, input, scope, world)),
        _ if INNER.contains(&tool) => Decision::SILENT,
        _ => mcp::judge(tool, input, scope, world).or(patched(tool, input, scope, world)),
    }
}

/// The string `key` of a tool's input; a call without it cannot be judged and is denied.
fn required(tool: &str, input: &Value, key: &str, judge: impl FnOnce(&str) -> Decision) -> Decision {
    match input.get(key).and_then(Value::as_str) {
        Some(text) if text.contains('\0') => {
            Decision::deny("input.nul", format!("{tool}: `{key}` holds a NUL byte. Give a plain value."))
        }
        Some(text) if !text.is_empty() => judge(text),
        _ => Decision::deny(
            "input.malformed",
            format!("{tool}: `{key}` is missing, empty or not a text, so the call cannot be judged."),
        ),
    }
}

fn command(tool: &str, input: &Value, scope: &Scope, world: &dyn World) -> Decision {
    let seen = required(tool, input, "command", |c| started(tool, c, input, scope, world).decision);
    seen.or(unsandboxed(input))
}

/// A command that asks to leave the client's own sandbox.
fn unsandboxed(input: &Value) -> Decision {
    match input.get("dangerouslyDisableSandbox") {
        None | Some(Value::Bool(false) | Value::Null) => Decision::SILENT,
        Some(_) => Decision::ask(
            "guard.sandbox",
            "The call asks to leave the client's sandbox. Run it without dangerouslyDisableSandbox.",
        ),
    }
}

pub(super) fn shown(path: &Path) -> String {
    let text: String = path
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .take(200)
        .collect();
    text
}

/// What is said about reading a secret: a denial, or a question where a person may reasonably agree.
pub(super) fn secret_denied(path: &Path, what: &str) -> Decision {
    if paths::secret_asks(path, what) {
        return Decision::ask(
            "secret.read",
            format!("{} looks like {what}. A person has to agree to reading it.", shown(path)),
        );
    }
    Decision::deny(
        "secret.read",
        format!(
            "{} is {what} and must not be read. Work from its template or ask the person for the one value you need.",
            shown(path)
        ),
    )
}

/// What is said about writing what is protected: a denial, or a question where a person may reasonably agree.
pub(super) fn protected_denied(path: &Path, what: &str) -> Decision {
    if paths::protected_asks(what) {
        return Decision::ask(
            "protected.write",
            format!("{} is {what}. A person has to agree to the change.", shown(path)),
        );
    }
    Decision::deny(
        "protected.write",
        format!(
            "{} is {what}; agents do not change it. Describe the change to the person instead.",
            shown(path)
        ),
    )
}

fn read(path: &str, scope: &Scope, world: &dyn World) -> Decision {
    let mut seen = Decision::SILENT;
    for p in paths::meanings(path, &scope.cwd, scope, world) {
        if let Some(what) = paths::secret(&p, scope)
            && !(world.kind(&p) == Kind::Dir && p.ends_with(".env"))
        {
            seen = seen.or(secret_denied(&p, what));
        } else if holds_token(&p, world) {
            seen = seen.or(Decision::ask(
                "secret.read",
                format!("{} holds a token or a password. A person has to agree to reading it.", shown(&p)),
            ));
        }
    }
    seen
}

/// Settings of package managers that are ordinary until somebody puts a token into them.
#[rustfmt::skip]
const TOKEN_FILES: &[&str] = &[
    ".npmrc", ".yarnrc", ".yarnrc.yml", "pip.conf", "pip.ini", "nuget.config", ".bowerrc", "bunfig.toml", "uv.toml",
];

/// What such a token stands behind, in small letters.
#[rustfmt::skip]
const TOKEN_MARKS: &[&str] = &[
    "_authtoken=", "_auth=", "_password=", "authtoken:", "npmauthtoken", "npmauthident", "cleartextpassword", "token =",
];

/// Whether such settings hold a token of their own, and not only a variable's name.
fn holds_token(path: &Path, world: &dyn World) -> bool {
    let name = path.file_name().map(|n| paths::fold(&n.to_string_lossy())).unwrap_or_default();
    if !TOKEN_FILES.contains(&name.as_str()) {
        return false;
    }
    let text = world.read(path).unwrap_or_default();
    text.lines().any(|line| {
        let line = line.trim().to_lowercase();
        let marked = TOKEN_MARKS.iter().find_map(|m| line.split_once(*m)).is_some_and(|(_, value)| {
            let value = value.trim_matches([' ', '"', '\'', ':', '=']);
            !value.is_empty() && !value.contains("${")
        });
        let userinfo = line
            .split_once("://")
            .and_then(|(_, rest)| rest.split('/').next())
            .and_then(|host| host.split_once('@'))
            .is_some_and(|(user, _)| user.contains(':') && !user.contains("${"));
        !line.starts_with(['#', ';']) && (marked || userinfo)
    })
}

fn write(path: &str, scope: &Scope, world: &dyn World) -> Decision {
    let places = paths::meanings(path, &scope.cwd, scope, world);
    let mut seen = Decision::SILENT;
    for p in &places {
        if let Some(what) = paths::protected(p, scope) {
            seen = seen.or(protected_denied(p, what));
        } else if p.ends_with(".git") && world.kind(p) != Kind::Dir {
            seen = seen.or(protected_denied(p, "a file that says where a repository and its hooks are"));
        } else if foreign(p, scope) {
            seen = seen.or(Decision::ask(
                "write.outside",
                format!("{} lies outside the project. A person has to agree to the change.", shown(p)),
            ));
        }
    }
    seen
}

/// Whether a path is neither the project's, nor scratch space, nor opened by the configuration.
fn foreign(path: &Path, scope: &Scope) -> bool {
    let inside = path.starts_with(&scope.project) || path.starts_with(&scope.cwd);
    // What is writable below `.claude` is the client's own scratch.
    let client = path.components().any(|c| c.as_os_str() == ".claude");
    let own = inside || client || path.starts_with("/dev") || paths::is_scratch(path, scope);
    let opened = !scope.custom.write.is_empty() || scope.custom.protected_except.fit(path);
    !(own || opened)
}

/// Most files that a patch may change; at the bound a person is asked.
const PATCH_MAX: usize = 1_000;

/// The files that a patch among the arguments of an unknown tool changes.
fn patched(tool: &str, input: &Value, scope: &Scope, world: &dyn World) -> Decision {
    let lower: String = tool.chars().take(256).flat_map(char::to_lowercase).collect();
    let applies = ["patch", "apply", "edit"].iter().any(|w| lower.contains(w));
    let mut todo = vec![input];
    let mut seen = Decision::SILENT;
    let mut files = 0;
    while let Some(value) = todo.pop() {
        match value {
            Value::String(text) if applies || text.trim_start().starts_with("*** Begin Patch") => {
                for path in patch_targets(text) {
                    files += 1;
                    if files > PATCH_MAX {
                        return seen.or(Decision::ask(
                            "mcp.bound",
                            "The patch changes more files than can be judged. Make smaller ones.",
                        ));
                    }
                    seen = seen.or(write(path, scope, world));
                }
            }
            Value::Array(items) => todo.extend(items),
            Value::Object(map) => todo.extend(map.values()),
            _ => {}
        }
    }
    seen
}

/// The paths that the headers of a patch name: a model's own format, and unified diffs.
fn patch_targets(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let own = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];
        let path = own.iter().find_map(|h| line.strip_prefix(*h)).or_else(|| {
            let path = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- "))?;
            let path = path.split('\t').next().unwrap_or(path);
            Some(path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path))
        })?;
        let path = path.trim();
        (!path.is_empty() && path != "/dev/null" && !path.contains('\0')).then_some(path)
    })
}

fn exists(path: &str, scope: &Scope, world: &dyn World) -> bool {
    paths::meanings(path, &scope.cwd, scope, world).iter().any(|p| world.kind(p) != Kind::Missing)
}
