//! Where a tool's result comes from: which results are sealed.

use super::{Session, exec};
use crate::audit::state;
use crate::policy;
use serde_json::Value;
use std::path::Path;

/// Tools of the client whose results hold its own words, the person's or the model's, and nothing else.
const OWN: &[&str] = &[
    "TodoWrite",
    "TodoRead",
    "TaskCreate",
    "TaskUpdate",
    "TaskList",
    "TaskGet",
    "TaskStop",
    "KillShell",
    "ListAgents",
    "ReportFindings",
    "ScheduleWakeup",
    "StructuredOutput",
    "ExitPlanMode",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitWorktree",
    "AskUserQuestion",
    "SendMessage",
    "DeferredToolPlaceholder",
];

impl Session<'_> {
    /// Where this event's result came from, if from outside.
    pub(super) fn outside(&self) -> Option<String> {
        self.origin(self.event.tool(), self.event.input())
    }

    /// Where the result of a call came from, if from outside.
    ///
    /// In a dispatched session that is every result but the client's own words: the material, what was made of it and
    /// names that lead there cannot be told apart. Elsewhere it is what another machine sent: pages, MCP servers,
    /// commands that fetch, tools that nobody knows. What such a call left behind for a later one (the output of a task
    /// in the background, the report of a subagent, a skill or the description of a tool) is taken for it once the session has met anything from outside.
    pub(super) fn origin(&self, tool: &str, input: &Value) -> Option<String> {
        let text = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        match tool {
            "ReadMcpResourceTool" | "ReadMcpResource" | "ListMcpResourcesTool" | "ListMcpResources" => {
                Some(text("server"))
            }
            "WebFetch" => Some(text("url")),
            "WebSearch" => Some(text("query")),
            t if t.starts_with("mcp__") => Some(String::new()),
            // Sealed by the process that it runs under.
            "Bash" if exec::unwrap(&text("command"), &self.env.jess()).is_some_and(|(_, how)| !how.plain) => {
                None
            }
            _ if self.dispatched() => (!OWN.contains(&tool))
                .then(|| ["file_path", "notebook_path", "path"].map(text).into_iter().find(|p| !p.is_empty()))
                .map(Option::unwrap_or_default),
            "Agent" | "Task" | "BashOutput" | "TaskOutput" | "Skill" | "ToolSearch" => {
                self.met_outside().then(String::new)
            }
            "Read" if task_output(Path::new(&text("file_path"))) => {
                self.met_outside().then(|| text("file_path"))
            }
            "Bash" | "Monitor" | "PowerShell" if names_output(&text("command")) && self.met_outside() => {
                Some(String::new())
            }
            _ => policy::look(tool, input, &self.scope, self.env.world()).prints_outside.then(String::new),
        }
    }

    /// Whether the session has met anything from outside; what cannot be read may say so.
    fn met_outside(&self) -> bool {
        self.env.state().is_none_or(|dir| {
            state::labels(&dir, &self.event.session()).map_or(true, |l| l.iter().any(|l| l.leg == 'A'))
        })
    }
}

/// Whether a path is one of those that the client keeps the output of tasks and long results under.
fn task_output(path: &Path) -> bool {
    let parent = path.parent().and_then(Path::file_name);
    match parent.and_then(|p| p.to_str()) {
        Some("tasks") => path.extension().is_some_and(|e| e == "output"),
        Some("tool-results") => true,
        _ => false,
    }
}

/// Whether a command names such a path.
fn names_output(command: &str) -> bool {
    command.contains("/tool-results/") || (command.contains("/tasks/") && command.contains(".output"))
}
