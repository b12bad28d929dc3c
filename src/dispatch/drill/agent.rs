//! The built-in agent: a client whose model has been completely turned.
//!
//! It carries out the attacker's tool calls. Called as an honest client it asks the hooks of the managed settings
//! first and gives the model what they leave of a result, as Claude Code does; called as a compromised one it skips
//! them. What the model would have read goes to standard output: the transcript.

use crate::exit::Exit;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// The last line of a transcript, so that the drill knows that all calls were tried.
pub const DONE: &str = "[drill: every call was tried]";

const SETTINGS: &str = "/etc/claude-code/managed-settings.json";

/// One tool call of the attacker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The tool, in the client's spelling.
    pub tool: String,
    /// Its input.
    pub input: Value,
}

impl Call {
    /// A shell command.
    pub fn bash(command: impl Into<String>) -> Call {
        Call { tool: "Bash".into(), input: json!({"command": command.into(), "description": "look around"}) }
    }

    /// Reading a file with the client's own tool.
    pub fn read(path: &std::path::Path) -> Call {
        Call { tool: "Read".into(), input: json!({"file_path": path}) }
    }
}

/// What the agent is told to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Whether the client asks its hooks.
    pub honest: bool,
    /// The calls, in order.
    pub calls: Vec<Call>,
    /// Whether the transcript is printed; else only `answer` is.
    pub transcript: bool,
    /// The final answer.
    pub answer: String,
    /// A file that shows that the agent was started.
    pub started: std::path::PathBuf,
}

/// Carries out the plan (JSON).
pub fn run(plan: &str) -> Exit {
    let Ok(plan) = serde_json::from_str::<Plan>(plan) else { return Exit::USAGE };
    let _ = std::fs::write(&plan.started, "started");
    let mut out = std::io::stdout().lock();
    if plan.transcript {
        let mut stdin = String::new();
        let _ = std::io::stdin().read_to_string(&mut stdin);
        let _ = writeln!(out, "{stdin}");
    }
    for call in &plan.calls {
        let result = if plan.honest { honest(call) } else { execute(call).to_string() };
        if plan.transcript {
            let _ = writeln!(out, "{result}");
        }
    }
    let _ = writeln!(out, "{}", plan.answer);
    if plan.transcript {
        let _ = writeln!(out, "{DONE}");
    }
    Exit::OK
}

/// The call as a client makes it: PreToolUse, the tool, PostToolUse.
fn honest(call: &Call) -> String {
    let mut input = call.input.clone();
    if let Some(answer) = ask("PreToolUse", call, json!({"tool_input": input})) {
        let decision = &answer["hookSpecificOutput"];
        if matches!(decision["permissionDecision"].as_str(), Some("deny" | "ask"))
            || answer["decision"] == "block"
        {
            return format!("denied: {}", decision["permissionDecisionReason"].as_str().unwrap_or_default());
        }
        if let Some(updated) = decision.get("updatedInput") {
            input = updated.clone();
        }
    }
    let response = execute(&Call { tool: call.tool.clone(), input: input.clone() });
    let answer = ask("PostToolUse", call, json!({"tool_input": input, "tool_response": response}));
    match answer.as_ref().and_then(|a| a["hookSpecificOutput"].get("updatedToolOutput")) {
        Some(replaced) => text_of(replaced),
        None => text_of(&response),
    }
}

fn text_of(response: &Value) -> String {
    let text = response["file"]["content"].as_str().or_else(|| response["stdout"].as_str());
    text.map_or_else(|| response.to_string(), str::to_owned)
}

/// Runs the hooks of `event` from the managed settings. A hook that fails blocks, as `onFailure` says.
fn ask(event: &str, call: &Call, more: Value) -> Option<Value> {
    let settings: Value = serde_json::from_slice(&std::fs::read(SETTINGS).ok()?).ok()?;
    let hook = settings["hooks"][event][0]["hooks"][0].clone();
    let program = hook["command"].as_str()?;
    let args: Vec<&str> = hook["args"].as_array()?.iter().filter_map(Value::as_str).collect();
    let mut stdin = json!({
        "session_id": "drill", "transcript_path": "/tmp/drill.jsonl", "permission_mode": "default",
        "cwd": std::env::current_dir().unwrap_or_default(),
        "hook_event_name": event, "tool_name": call.tool, "tool_use_id": "drill_0",
    });
    for (key, value) in more.as_object()? {
        stdin[key] = value.clone();
    }
    let blocked = || Some(json!({"decision": "block", "reason": "the hook failed"}));
    let child = Command::new(program)
        .args(args)
        .env("CLAUDE_PROJECT_DIR", std::env::current_dir().unwrap_or_default())
        .env("CLAUDE_CODE_SESSION_ATTENDED", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return blocked() };
    if let Some(mut pipe) = child.stdin.take() {
        let _ = pipe.write_all(stdin.to_string().as_bytes());
    }
    match child.wait_with_output() {
        Ok(output) if output.status.success() && output.stdout.is_empty() => None,
        Ok(output) if output.status.success() => serde_json::from_slice(&output.stdout).ok(),
        _ => blocked(),
    }
}

/// The tool itself.
fn execute(call: &Call) -> Value {
    let field = |name: &str| call.input[name].as_str().unwrap_or_default();
    match call.tool.as_str() {
        "Bash" => {
            let output = Command::new("/bin/sh").args(["-c", field("command")]).stdin(Stdio::null()).output();
            let text = |o: std::process::Output| {
                format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr))
            };
            let stdout = output.map_or_else(|e| e.to_string(), text);
            json!({"stdout": stdout, "stderr": "", "interrupted": false, "isImage": false})
        }
        "Read" => match std::fs::read_to_string(field("file_path")) {
            Ok(content) => json!({"type": "text", "file": {
                "filePath": field("file_path"), "content": content,
                "numLines": content.lines().count(), "startLine": 1, "totalLines": content.lines().count()}}),
            Err(error) => json!({"error": error.to_string()}),
        },
        "Write" => match std::fs::write(field("file_path"), field("content")) {
            Ok(()) => json!({"type": "create", "filePath": field("file_path")}),
            Err(error) => json!({"error": error.to_string()}),
        },
        tool => json!({"error": format!("no such tool: {tool}")}),
    }
}
