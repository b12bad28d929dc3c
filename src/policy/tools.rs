//! The client's own tools: what each one's input means.

use super::world::Kind;
use super::{Decision, Scope, Verdict, World, mcp, paths, shell, web};
use serde_json::Value;
use std::path::Path;

/// Tools of the client that neither touch files nor leave the machine.
const INNER: &[&str] = &[
    "TodoWrite",
    "TodoRead",
    "TaskCreate",
    "TaskUpdate",
    "TaskList",
    "TaskGet",
    "TaskStop",
    "TaskOutput",
    "ToolSearch",
    "ListAgents",
    "ReportFindings",
    "ScheduleWakeup",
    "StructuredOutput",
    "ExitPlanMode",
    "EnterPlanMode",
    "AskUserQuestion",
    "Skill",
    "KillShell",
    "BashOutput",
    "DeferredToolPlaceholder",
    "SendMessage",
];

/// Tools of the client that work on files.
const FILES: &[&str] = &[
    "Read",
    "Edit",
    "MultiEdit",
    "Write",
    "NotebookEdit",
    "NotebookRead",
    "LS",
    "Glob",
    "Grep",
    "LSP",
    "EnterWorktree",
    "ExitWorktree",
];

/// Tools whose calls are judged by what they start.
const COMMANDS: &[&str] = &["Bash", "Monitor", "PowerShell", "Agent", "Task", "Workflow"];

/// [`judge`], and where the call reaches.
pub fn look(tool: &str, input: &Value, scope: &Scope, world: &dyn World) -> shell::Seen {
    match (tool, input.get("command").and_then(Value::as_str)) {
        ("Bash" | "Monitor" | "PowerShell", Some(line)) if !line.is_empty() && !line.contains('\0') => {
            let mut seen = shell::look(line, scope, world);
            seen.decision = scope.custom.tool(tool, input).or(seen.decision).or(unsandboxed(input));
            seen
        }
        _ => {
            // A tool that nobody knows may do anything.
            let outside = !INNER.contains(&tool) && !FILES.contains(&tool) && !COMMANDS.contains(&tool);
            let decision = judge(tool, input, scope, world);
            shell::Seen { decision, reaches: outside, prints_outside: outside, account: None }
        }
    }
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
        "Edit" | "MultiEdit" => {
            required(tool, input, "file_path", |p| read(p, scope, world).or(write(p, scope, world)))
        }
        "Write" => required(tool, input, "file_path", |p| {
            write(p, scope, world).or(match read(p, scope, world) {
                seen if seen.rule == "secret.read" && !exists(p, scope, world) => Decision::SILENT,
                seen => seen,
            })
        }),
        "NotebookEdit" => {
            required(tool, input, "notebook_path", |p| read(p, scope, world).or(write(p, scope, world)))
        }
        "NotebookRead" => required(tool, input, "notebook_path", |p| read(p, scope, world)),
        "LS" => required(tool, input, "path", |_| Decision::SILENT),
        "Glob" => glob(input, scope, world),
        "Grep" => grep(input, scope, world),
        "WebFetch" => required(tool, input, "url", |u| web::fetch(u, web::Fetcher::Tool, &scope.custom)),
        "WebSearch" => required(tool, input, "query", |q| {
            if mcp::holds_secret(q) {
                Decision::deny("web.secret", "The search holds something shaped like a credential.")
            } else {
                Decision::SILENT
            }
        }),
        "Agent" | "Task" | "Workflow" => agent(input, scope),
        _ if INNER.contains(&tool) => Decision::SILENT,
        _ => mcp::judge(tool, input, scope, world),
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
    let seen = required(tool, input, "command", |c| shell::judge(c, scope, world));
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
    for p in paths::meanings(path, &scope.cwd, scope, world) {
        if let Some(what) = paths::secret(&p, scope)
            && !(world.kind(&p) == Kind::Dir && p.ends_with(".env"))
        {
            return secret_denied(&p, what);
        }
    }
    Decision::SILENT
}

fn write(path: &str, scope: &Scope, world: &dyn World) -> Decision {
    for p in paths::meanings(path, &scope.cwd, scope, world) {
        if let Some(what) = paths::protected(&p, scope) {
            return protected_denied(&p, what);
        }
    }
    Decision::SILENT
}

fn exists(path: &str, scope: &Scope, world: &dyn World) -> bool {
    paths::meanings(path, &scope.cwd, scope, world).iter().any(|p| world.kind(p) != Kind::Missing)
}

/// A directory that a search starts from; the project's own is the default.
fn root(input: &Value, scope: &Scope, world: &dyn World) -> Result<Vec<std::path::PathBuf>, Decision> {
    match input.get("path") {
        None | Some(Value::Null) => Ok(vec![scope.cwd.clone()]),
        Some(Value::String(p)) if !p.contains('\0') => Ok(paths::meanings(p, &scope.cwd, scope, world)),
        Some(_) => Err(Decision::deny(
            "input.malformed",
            "`path` is not a plain text, so the call cannot be judged.",
        )),
    }
}

fn glob(input: &Value, scope: &Scope, world: &dyn World) -> Decision {
    let roots = match root(input, scope, world) {
        Ok(roots) => roots,
        Err(denied) => return denied,
    };
    let Some(pattern) = input.get("pattern").and_then(Value::as_str) else {
        return Decision::deny(
            "input.malformed",
            "Glob: `pattern` is missing or not a text, so the call cannot be judged.",
        );
    };
    // Names are no secret by themselves, but a listing of a place of secrets has no other use.
    let fixed = pattern.split(['*', '?', '[', '{']).next().unwrap_or_default();
    let fixed = fixed.rsplit_once('/').map_or("", |(dir, _)| if dir.is_empty() { "/" } else { dir });
    for root in &roots {
        for p in paths::meanings(fixed, root, scope, world).iter().chain([root]) {
            if let Some(what) = paths::secret_place(p, scope)
                && what == "a directory of credentials"
            {
                return secret_denied(p, what);
            }
        }
    }
    Decision::SILENT
}

fn grep(input: &Value, scope: &Scope, world: &dyn World) -> Decision {
    let roots = match root(input, scope, world) {
        Ok(roots) => roots,
        Err(denied) => return denied,
    };
    let Some(pattern) = input.get("pattern").and_then(Value::as_str) else {
        return Decision::deny(
            "input.malformed",
            "Grep: `pattern` is missing or not a text, so the call cannot be judged.",
        );
    };
    let content = input.get("output_mode").and_then(Value::as_str) == Some("content");
    let filter = input.get("glob").and_then(Value::as_str);
    for root in &roots {
        if let Some(what) = paths::secret(root, scope).or_else(|| paths::secret_place(root, scope)) {
            return secret_denied(root, what);
        }
        if let Some(filter) = filter {
            let dots = filter.split([',', '{', '}', '/']).any(|f| f.starts_with('.') || f.contains("env"));
            let hit = paths::secrets_below(root, scope, world, &|p| {
                p.file_name().is_some_and(|n| {
                    filter.split([',', '{', '}', '/', ' ']).any(|f| {
                        !f.is_empty()
                            && f.contains(|c: char| c.is_alphanumeric())
                            && shell::glob_matches(f, &n.to_string_lossy())
                    })
                })
            });
            if let Some(p) = hit.first() {
                return secret_denied(p, "a secret file that the glob selects");
            }
            if dots && ["**/.env", ".env", ".env*", "*.env", ".env.*"].contains(&filter) {
                return secret_denied(Path::new(filter), "a pattern for secret files");
            }
        }
        if content
            && shell::seeks_secrets(pattern)
            && filter.is_none()
            && input.get("type").is_none_or(Value::is_null)
        {
            let ignored = world.read(&scope.project.join(".gitignore")).unwrap_or_default();
            let hit = paths::secrets_below(root, scope, world, &|p| {
                p.file_name().is_some_and(|n| {
                    !ignored.lines().any(|l| l.trim().trim_start_matches('/') == n.to_string_lossy())
                })
            });
            if let Some(p) = hit.first() {
                return secret_denied(p, "a secret file that the search would print");
            }
        }
    }
    Decision::SILENT
}

fn agent(input: &Value, scope: &Scope) -> Decision {
    let kind = input.get("subagent_type").and_then(Value::as_str).unwrap_or("general-purpose");
    let asked = scope.custom.agent(kind);
    asked.or(mode_of(input))
}

/// A subagent without permission checks.
fn mode_of(input: &Value) -> Decision {
    match input.get("mode").or_else(|| input.get("permission_mode")).or_else(|| input.get("permissionMode")) {
        Some(Value::String(m))
            if m.to_lowercase().contains("bypass") || m.to_lowercase().contains("skip") =>
        {
            Decision::ask(
                "agent.bypass",
                "The subagent would run without permission checks. Start it in the session's own mode.",
            )
        }
        _ => Decision::SILENT,
    }
}
