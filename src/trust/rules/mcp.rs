//! MCP servers: every transport, in `.mcp.json`, in settings, in plugins and in agents.

use super::{Sink, command, environment, hooks};
use crate::trust::mask;
use crate::trust::report::Class;
use serde_json::{Map, Value};

/// Transports whose server only answers over a URL.
const REMOTE: &[&str] = &["http", "streamable-http", "streamableHttp", "sse", "ws"];

/// Keys of a server that connect, run or steer nothing by themselves.
const PLAIN_KEYS: &[&str] = &[
    "type",
    "url",
    "headers",
    "timeout",
    "alwaysLoad",
    "tools",
    "disabled",
    "description",
    "env",
    "name",
    "title",
    "discoveryCache",
    "autoModeVerdictTools",
];

/// Variables a header or URL may hold: they say nothing of the operator.
const HARMLESS_VARIABLES: &[&str] = &["CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT", "PWD", "LANG", "TZ"];

/// Judges a whole `.mcp.json`. `flat`: a plugin's file may list servers without the `mcpServers` key.
pub fn check_file(sink: &mut Sink, value: &Value, flat: bool) {
    let Some(root) = super::root_object(sink, value) else { return };
    for (key, value) in root {
        match key.as_str() {
            "mcpServers" => check_servers(sink, value),
            "$schema" | "description" => {}
            _ if flat && value.is_object() => check_server(sink, key, value),
            _ if command::suspicious(key, value) => {
                sink.block(
                    Class::UnknownKey,
                    format!("{} (unknown key)", mask::name(key)),
                    mask::json(value),
                );
            }
            _ => {
                sink.info(Class::UnknownKey, format!("{} (unknown key)", mask::name(key)), mask::json(value))
            }
        }
    }
}

/// Judges the value of an `mcpServers` key.
pub fn check_servers(sink: &mut Sink, value: &Value) {
    match value {
        Value::Object(servers) => servers.iter().for_each(|(name, server)| check_server(sink, name, server)),
        other if super::truthy(other) => {
            sink.block(Class::McpServer, "mcpServers (unrecognised shape)", mask::json(other));
        }
        _ => {}
    }
}

/// Judges one server.
pub fn check_server(sink: &mut Sink, name: &str, value: &Value) {
    let shown = mask::name(name);
    let Value::Object(server) = value else {
        sink.block(Class::McpServer, format!("unknown server \"{shown}\""), "(not an object)");
        return;
    };
    if server.contains_key("command") || server.contains_key("args") {
        sink.names_scripts(value);
        let line = mask::secret(&hooks::command_line(server));
        sink.block(Class::McpServer, format!("stdio server \"{shown}\""), line);
        return;
    }
    let kind = server.get("type").map(|t| t.as_str().unwrap_or("(not a string)"));
    let url = server.get("url").and_then(Value::as_str).unwrap_or_default();
    let scheme = url.split_once("://").map(|(s, _)| s.to_ascii_lowercase()).unwrap_or_default();
    let known = kind.is_none_or(|k| REMOTE.contains(&k));
    if !known || !matches!(scheme.as_str(), "http" | "https" | "ws" | "wss") {
        sink.block(Class::McpServer, format!("unknown server \"{shown}\""), mask::keys(server));
        return;
    }
    remote(sink, &shown, url, server);
}

fn remote(sink: &mut Sink, shown: &str, url: &str, server: &Map<String, Value>) {
    if let Some(helper) = server.get("headersHelper").filter(|h| !h.is_null()) {
        sink.names_scripts(helper);
        let label = format!("url server \"{shown}\" headersHelper");
        sink.block(Class::RunsCommand, label, mask::json(helper));
    }
    if let Some(variable) = sends_variable(url) {
        let label = format!("url server \"{shown}\" sends");
        sink.block(Class::OpensNetwork, label, format!("${{{}}} in its URL", mask::name(variable)));
    }
    if metadata_address(url) {
        sink.block(Class::OpensNetwork, format!("url server \"{shown}\" address"), mask::url(url));
    }
    match server.get("headers") {
        Some(Value::Object(headers)) => {
            for (header, value) in headers {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                for part in [header.as_str(), text.as_str()] {
                    if let Some(variable) = sends_variable(part) {
                        let what = format!("${{{}}} in {}", mask::name(variable), mask::name(header));
                        sink.block(Class::OpensNetwork, format!("url server \"{shown}\" sends"), what);
                    }
                }
            }
        }
        Some(other) if super::truthy(other) => {
            sink.block(Class::McpServer, format!("url server \"{shown}\" headers"), mask::json(other));
        }
        _ => {}
    }
    if let Some(env) = server.get("env") {
        environment::check(sink, env);
    }
    for (key, value) in server {
        if !PLAIN_KEYS.contains(&key.as_str()) && key != "headersHelper" && command::suspicious(key, value) {
            let label = format!("url server \"{shown}\" {}", mask::name(key));
            sink.block(Class::UnknownKey, label, mask::json(value));
        }
    }
    sink.info(Class::McpServer, format!("url server \"{shown}\""), mask::url(url));
}

/// The first environment variable that the client would put into `text` and send along.
fn sends_variable(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        rest = rest.get(at + 1..).unwrap_or_default();
        let inner = rest.strip_prefix('{').unwrap_or(rest);
        let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inner.len());
        let name = inner.get(..end).unwrap_or_default();
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if (starts && !HARMLESS_VARIABLES.contains(&name)) || (name.is_empty() && rest.starts_with('{')) {
            return Some(name);
        }
    }
    None
}

/// The link-local addresses on which clouds hand out credentials.
fn metadata_address(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or_default().rsplit('@').next().unwrap_or_default();
    let host = host.to_ascii_lowercase();
    host.starts_with("169.254.")
        || host.starts_with("[fe80:")
        || host.starts_with("[fd00:ec2:")
        || host.starts_with("metadata.google.internal")
}
