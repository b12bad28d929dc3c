//! Plugins and marketplaces: manifests, hook files, language servers, monitors.

use super::settings::leaves;
use super::{Sink, command, hooks, markdown, mcp, truthy};
use crate::trust::mask;
use crate::trust::report::Class;
use serde_json::{Map, Value};

/// Judges `plugin.json`. Returns the files that it names for hooks and servers, relative to the plugin.
pub fn check_manifest(sink: &mut Sink, value: &Value) -> Vec<(Part, String)> {
    let mut parts = Vec::new();
    if let Some(root) = super::root_object(sink, value) {
        components(sink, root, &mut parts);
        for (key, value) in root {
            if !KNOWN.contains(&key.as_str()) {
                unknown(sink, key, value);
            }
        }
    }
    parts
}

/// What a file named by a manifest holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Hooks.
    Hooks,
    /// MCP servers.
    Mcp,
    /// Language servers.
    Lsp,
    /// Monitors.
    Monitors,
    /// Slash commands: a directory or a file.
    Commands,
    /// Agents.
    Agents,
    /// Skills.
    Skills,
    /// Output styles.
    Styles,
}

const KNOWN: &[&str] = &[
    "$schema",
    "name",
    "displayName",
    "version",
    "description",
    "author",
    "homepage",
    "repository",
    "license",
    "keywords",
    "category",
    "tags",
    "hooks",
    "mcpServers",
    "lspServers",
    "monitors",
    "commands",
    "agents",
    "skills",
    "outputStyles",
    "userConfig",
    "channels",
    "dependencies",
    "settings",
    "experimental",
    "strict",
    "source",
    "themes",
    "icon",
    "logo",
    "relevance",
    "defaultEnabled",
];

fn components(sink: &mut Sink, map: &Map<String, Value>, parts: &mut Vec<(Part, String)>) {
    for (key, part) in [
        ("hooks", Part::Hooks),
        ("mcpServers", Part::Mcp),
        ("lspServers", Part::Lsp),
        ("monitors", Part::Monitors),
    ] {
        if let Some(value) = map.get(key) {
            component(sink, key, part, value, parts);
        }
    }
    for (key, part) in [
        ("commands", Part::Commands),
        ("agents", Part::Agents),
        ("skills", Part::Skills),
        ("outputStyles", Part::Styles),
    ] {
        if let Some(value) = map.get(key) {
            definitions(sink, key, part, value, parts);
        }
    }
    if let Some(value) = map.get("themes") {
        outside(sink, "themes", value);
    }
    for key in ["channels", "dependencies"] {
        if let Some(value) = map.get(key).filter(|v| truthy(v)) {
            sink.info(Class::LoadsCode, key, mask::json(value));
        }
    }
    if let Some(value) = map.get("settings") {
        super::settings::check(sink, value);
    }
    if let Some(Value::Object(inner)) = map.get("experimental") {
        components(sink, inner, parts);
    }
}

/// Definitions that a manifest names: a path, a list of them, or an object of inline ones.
fn definitions(sink: &mut Sink, key: &str, part: Part, value: &Value, parts: &mut Vec<(Part, String)>) {
    match value {
        Value::String(path) if leaves(path) => sink.block(Class::OutsidePath, key, mask::target(path)),
        Value::String(path) => parts.push((part, path.clone())),
        Value::Array(items) => items.iter().for_each(|item| definitions(sink, key, part, item, parts)),
        Value::Object(map) => {
            markdown::check_inline(sink, map);
            if let Some(source) = map.get("source") {
                definitions(sink, key, part, source, parts);
            }
            for item in map.values().filter(|item| item.is_object()) {
                definitions(sink, key, part, item, parts);
            }
        }
        _ => {}
    }
}

fn component(sink: &mut Sink, key: &str, part: Part, value: &Value, parts: &mut Vec<(Part, String)>) {
    match value {
        Value::String(path) if leaves(path) => sink.block(Class::OutsidePath, key, mask::target(path)),
        Value::String(path) => parts.push((part, path.clone())),
        Value::Array(items) => items.iter().for_each(|item| component(sink, key, part, item, parts)),
        other => check_part(sink, part, other),
    }
}

/// Judges hooks, servers or monitors, inline or from the file that holds them.
pub fn check_part(sink: &mut Sink, part: Part, value: &Value) {
    match part {
        // A hooks file wraps the events in a `hooks` key; a manifest may do either.
        Part::Hooks => match value.get("hooks") {
            Some(inner) => hooks::check(sink, inner),
            None => hooks::check(sink, value),
        },
        Part::Mcp => mcp::check_file(sink, value, true),
        Part::Commands | Part::Agents | Part::Skills | Part::Styles => {}
        Part::Lsp | Part::Monitors => {
            if truthy(value) {
                let what = if part == Part::Lsp { "language servers" } else { "monitors" };
                sink.block(Class::RunsCommand, what, mask::json(value));
            }
        }
    }
}

/// Judges `marketplace.json`.
pub fn check_marketplace(sink: &mut Sink, value: &Value) -> Vec<(Part, String)> {
    let mut parts = Vec::new();
    let Some(root) = super::root_object(sink, value) else { return parts };
    match root.get("plugins") {
        Some(Value::Array(plugins)) => {
            for plugin in plugins {
                match plugin {
                    Value::Object(map) => entry(sink, map, &mut parts),
                    other if truthy(other) => {
                        sink.block(Class::LoadsCode, "plugin (not an object)", mask::json(other))
                    }
                    _ => {}
                }
            }
        }
        Some(other) if truthy(other) => {
            sink.block(Class::LoadsCode, "plugins (unrecognised shape)", mask::json(other));
        }
        _ => {}
    }
    parts
}

fn entry(sink: &mut Sink, map: &Map<String, Value>, parts: &mut Vec<(Part, String)>) {
    let name = mask::name(map.get("name").and_then(Value::as_str).unwrap_or("(no name)"));
    match map.get("source") {
        Some(Value::String(path)) if leaves(path) => {
            sink.block(Class::OutsidePath, format!("plugin \"{name}\" source"), mask::target(path));
        }
        Some(Value::String(_)) | None => {}
        Some(Value::Object(source)) => match source.get("source").and_then(Value::as_str) {
            Some(kind @ ("github" | "url" | "git" | "git-subdir" | "npm" | "pip" | "directory" | "file")) => {
                let label = format!("plugin \"{name}\" source ({kind})");
                sink.info(Class::LoadsCode, label, mask::keys(source));
            }
            other => {
                let kind = mask::name(other.unwrap_or("(missing)"));
                let label = format!("plugin \"{name}\" source ({kind})");
                sink.block(Class::LoadsCode, label, mask::secret(&hooks::command_line(source)));
            }
        },
        Some(other) => sink.block(Class::LoadsCode, format!("plugin \"{name}\" source"), mask::json(other)),
    }
    // Paths in an entry are relative to the plugin's source, which is walked as a plugin of its own.
    let mut ignored = Vec::new();
    components(sink, map, &mut ignored);
    parts.extend(ignored);
}

/// Blocks component paths that leave the plugin.
fn outside(sink: &mut Sink, key: &str, value: &Value) {
    match value {
        Value::String(path) if leaves(path) => sink.block(Class::OutsidePath, key, mask::target(path)),
        Value::Array(items) => items.iter().for_each(|item| outside(sink, key, item)),
        Value::Object(map) => map.values().for_each(|item| {
            if let Some(source) = item.get("source") {
                outside(sink, key, source);
            }
        }),
        _ => {}
    }
}

fn unknown(sink: &mut Sink, key: &str, value: &Value) {
    let label = format!("{} (unknown key)", mask::name(key));
    if command::suspicious(key, value) {
        sink.block(Class::UnknownKey, label, mask::json(value));
    } else {
        sink.info(Class::UnknownKey, label, mask::json(value));
    }
}
