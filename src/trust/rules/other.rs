//! Configuration that other agents and editors read. Shown, never refused: Claude Code does not read it.

use super::Sink;
use crate::trust::report::Class;
use crate::untrusted::Untrusted;

/// What the file at `path` (relative, `/`-separated) configures; `None` when it is no such file.
pub fn label(path: &[u8]) -> Option<&'static str> {
    let path = std::str::from_utf8(path).ok()?;
    let mut tail = path.rsplitn(3, '/');
    let (name, parent, grand) = (tail.next()?, tail.next().unwrap_or(""), tail.next().unwrap_or(""));
    let parent_of = |dir: &str| parent == dir || parent.rsplit('/').next() == Some(dir);
    let grand = grand.rsplit('/').next().unwrap_or("");
    Some(match name {
        "mcp.json" if parent_of(".cursor") => "Cursor MCP servers",
        "hooks.json" if parent_of(".cursor") => "Cursor hooks",
        "environment.json" if parent_of(".cursor") => "Cursor agent environment",
        _ if parent_of("rules") && grand == ".cursor" => "Cursor rules",
        ".cursorrules" => "Cursor rules",
        "config.toml" if parent_of(".codex") => "Codex configuration",
        "hooks.json" if parent_of(".codex") => "Codex hooks",
        "settings.json" if parent_of(".gemini") => "Gemini CLI settings",
        ".env" if parent_of(".gemini") => "Gemini CLI environment",
        "GEMINI.md" => "Gemini CLI instructions",
        "settings.json" if parent_of(".qwen") => "Qwen Code settings",
        _ if parent_of(".github") && name.starts_with("copilot-") => "Copilot instructions",
        _ if parent_of("instructions") && grand == ".github" => "Copilot instructions",
        _ if parent_of("prompts") && grand == ".github" => "Copilot prompts",
        _ if parent_of("agents") && grand == ".github" => "Copilot agents",
        "tasks.json" if parent_of(".vscode") => "VS Code tasks",
        "settings.json" if parent_of(".vscode") => "VS Code settings",
        "launch.json" if parent_of(".vscode") => "VS Code launch configurations",
        "mcp.json" if parent_of(".vscode") => "VS Code MCP servers",
        "extensions.json" if parent_of(".vscode") => "VS Code extensions",
        "devcontainer.json" if parent_of(".devcontainer") || grand == ".devcontainer" => {
            "development container"
        }
        ".devcontainer.json" => "development container",
        "settings.json" | "tasks.json" if parent_of(".zed") => "Zed configuration",
        ".windsurfrules" => "Windsurf rules",
        _ if parent_of("rules") && grand == ".windsurf" => "Windsurf rules",
        ".clinerules" => "Cline rules",
        ".roomodes" | ".roorules" => "Roo Code configuration",
        "mcp.json" if parent_of(".roo") || parent_of(".kiro") || parent_of(".amazonq") => "MCP servers",
        "mcp.json" if parent_of("settings") && grand == ".kiro" => "Kiro MCP servers",
        "opencode.json" | "opencode.jsonc" => "OpenCode configuration",
        ".aider.conf.yml" => "Aider configuration",
        "config.yaml" | "config.json" if parent_of(".continue") => "Continue configuration",
        ".goosehints" => "Goose hints",
        "guidelines.md" if parent_of(".junie") => "Junie guidelines",
        "WARP.md" => "Warp instructions",
        _ => return None,
    })
}

/// Reports the file; `bytes` may be missing when it could not be read.
pub fn check(sink: &mut Sink, label: &'static str, bytes: Option<&Untrusted<Vec<u8>>>) {
    let text = bytes.map(|b| String::from_utf8_lossy(b.inspect()).into_owned()).unwrap_or_default();
    let value = match label {
        "VS Code tasks" if text.contains("folderOpen") => "a task runs when the folder is opened",
        "VS Code settings" if text.contains("allowAutomaticTasks") => "allows automatic tasks",
        "development container" if text.contains("Command\"") => "runs commands when the container starts",
        "development container" if text.contains("initializeCommand") => "runs a command on the host",
        _ if text.contains("\"command\"") || text.contains("\ncommand") => "names commands",
        _ => "present",
    };
    sink.info(Class::OtherAgent, label, value);
}
