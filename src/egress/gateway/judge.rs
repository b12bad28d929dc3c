//! What a run may ask of the model's API.
//!
//! The request is read as JSON, judged, and written again from what was read, so that the API sees exactly what was
//! judged (no doubled keys, no second reading). Depth is bounded by `serde_json` (128), size by the caller.

use crate::egress::event::{Denial, Reason};
use crate::egress::host::{Host, split_port};
use crate::egress::rule::HostRule;
use serde_json::{Map, Value};

/// Types of tools that the client runs itself, by prefix. The API runs the others, with a network of its own.
const CLIENT_TOOLS: [&str; 6] =
    ["custom", "bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_"];

/// Fields of a request that are passed on. Some are judged below; what is not here might make the API act, ask another
/// model, or cost what no table knows.
const FIELDS: [&str; 24] = [
    "model",
    "max_tokens",
    "messages",
    "system",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "output_format",
    "cache_control",
    "context_management",
    "context_hint",
    "diagnostics",
    "service_tier",
    "speed",
    "anthropic_beta",
    "mcp_servers",
    "container",
];
/// Most values in one request: a value takes some eighty bytes of memory, whatever it takes in the request.
const MAX_VALUES: usize = 250_000;

/// Tokens are estimated at one for this many bytes of JSON. English text has about four bytes a token, code about
/// three; an estimate that is too low is corrected when the answer reports its usage.
pub(super) const BYTES_PER_TOKEN: u64 = 3;

/// What a run may ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelPolicy {
    /// Model names, or prefixes with a `*` at the end. Empty: any.
    pub models: Vec<String>,
    /// The most output tokens of one answer. A request for more is lowered to it.
    pub max_tokens: Option<u64>,
    /// Types of tools, by prefix, that the API may run on its own side, such as `web_search_`.
    pub server_tools: Vec<String>,
}

/// A request that may be sent.
pub(super) struct Judged {
    pub(super) body: Map<String, Value>,
    pub model: String,
    /// The output tokens that it asks for, clamped by policy; 0 when it counts tokens only.
    pub max_tokens: u64,
    /// `max_tokens` below this is invalid.
    pub least_tokens: u64,
    pub estimate: u64,
    /// The field that bounds the output.
    pub limit: &'static str,
    /// The stream tells its cost although the run did not ask for that.
    pub hide_usage: bool,
}

impl Judged {
    /// The request as it is sent, its output lowered to what the budget grants.
    pub(super) fn into_body(mut self, granted: u64) -> Map<String, Value> {
        if self.body.contains_key(self.limit) {
            self.body.insert(self.limit.to_owned(), granted.min(self.max_tokens).into());
        }
        self.body
    }
}

/// The values in a request, counted without reading it.
pub(super) fn values(body: &[u8]) -> usize {
    let (mut values, mut quoted, mut escaped) = (0usize, false, false);
    for byte in body {
        match (quoted, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => quoted = !quoted,
            (false, b',' | b'[' | b'{') => values += 1,
            _ => {}
        }
    }
    values
}

/// Reads a request.
pub(super) fn read(body: &[u8]) -> Result<Map<String, Value>, Denial> {
    if values(body) > MAX_VALUES {
        return Err(bad("has too many values"));
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(bad("is no JSON object")),
    }
}

/// Refuses a field that is not known, unless it is null.
pub(super) fn known_fields(body: &Map<String, Value>, known: &[&str]) -> Result<(), Denial> {
    match body.iter().find(|(name, value)| !value.is_null() && !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => {
            let shown: String = name.chars().filter(char::is_ascii_graphic).take(60).collect();
            refuse(&format!("the field {shown}, which is not known to be harmless"))
        }
    }
}

pub(super) fn bad(what: &str) -> Denial {
    Denial::new(Reason::BadRequest, format!("the request to the model {what}"))
}

pub(super) fn refuse<T>(what: &str) -> Result<T, Denial> {
    let message =
        format!("the request asks the model's API to reach out itself ({what}), which no rule allows");
    Err(Denial::new(Reason::RemoteActionNotAllowed, message))
}

/// Reads and judges the body of a request for a message, or for a count of its tokens (`counting`).
pub(super) fn judge(
    body: &[u8],
    counting: bool,
    policy: &ModelPolicy,
    hosts: &[HostRule],
) -> Result<Judged, Denial> {
    let body_map = read(body)?;
    known_fields(&body_map, &FIELDS)?;
    let model = policy.admit(body_map.get("model"))?;
    let asked = body_map.get("max_tokens").map(Value::as_u64);
    let max_tokens = match (asked, counting) {
        (Some(Some(n)), _) => n.min(policy.max_tokens.unwrap_or(u64::MAX)),
        (None, true) => 0,
        _ => return Err(bad("has no whole number as max_tokens")),
    };
    let thinking = body_map.get("thinking").and_then(|t| t.get("budget_tokens")).and_then(Value::as_u64);
    remote_actions(&body_map, policy, hosts)?;
    let estimate = body.len() as u64 / BYTES_PER_TOKEN;
    let least_tokens = thinking.map_or(0, |t| t.saturating_add(1));
    let (limit, hide_usage) = ("max_tokens", false);
    Ok(Judged { body: body_map, model, max_tokens, least_tokens, estimate, limit, hide_usage })
}

impl ModelPolicy {
    /// The model that a request names, if the run may ask for it.
    pub(super) fn admit(&self, model: Option<&Value>) -> Result<String, Denial> {
        let model = model.and_then(Value::as_str).ok_or_else(|| bad("names no model"))?;
        if self.allows(model) {
            return Ok(model.to_owned());
        }
        let shown: String = model.chars().filter(char::is_ascii_graphic).take(80).collect();
        let message = format!("the model {shown} is not on this run's list");
        Err(Denial::new(Reason::ModelNotAllowed, message))
    }

    fn allows(&self, model: &str) -> bool {
        self.models.is_empty()
            || self.models.iter().any(|allowed| match allowed.strip_suffix('*') {
                Some(prefix) => model.starts_with(prefix),
                None => model == allowed,
            })
    }
}

/// Refuses what would make the API itself reach out: its network is not under this door's rules.
fn remote_actions(body: &Map<String, Value>, policy: &ModelPolicy, hosts: &[HostRule]) -> Result<(), Denial> {
    for key in ["mcp_servers", "container"] {
        let empty = |v: &Value| v.is_null() || v.as_array().is_some_and(Vec::is_empty);
        if body.get(key).is_some_and(|v| !empty(v)) {
            return refuse(key);
        }
    }
    if body.get("speed").is_some_and(|v| !v.is_null() && v != "standard") {
        return refuse("speed, which has prices of its own");
    }
    let tier = body.get("service_tier").filter(|v| !v.is_null());
    if tier.is_some_and(|v| !matches!(v.as_str(), Some("auto" | "standard_only"))) {
        return refuse("service_tier, which has prices of its own");
    }
    if !body.get("context_management").is_none_or(clears_only) {
        return refuse("context_management that does more than clear");
    }
    for tool in body.get("tools").and_then(Value::as_array).into_iter().flatten() {
        client_tool(tool, policy)?;
    }
    let mut open: Vec<&Value> = ["system", "messages"].iter().filter_map(|key| body.get(*key)).collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                let kind = fields.get("type").and_then(Value::as_str);
                if let Some(source) = fields.get("source") {
                    source_is_inline(source, hosts)?;
                }
                // Tools can be given in the middle of a conversation.
                if kind == Some("tool_addition") {
                    let tool = fields.get("tool").unwrap_or(&Value::Null);
                    client_tool(tool.get("definition").unwrap_or(tool), policy)?;
                }
                if kind == Some("container_upload") {
                    return refuse("container_upload");
                }
                // The input of a tool call is the model's own text and fetches nothing.
                let own_text = kind.is_some_and(|k| k.ends_with("tool_use"));
                open.extend(fields.iter().filter(|(k, _)| !(own_text && *k == "input")).map(|(_, v)| v));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether edits of the context only drop what was said: compaction asks a model once more.
fn clears_only(management: &Value) -> bool {
    let clears =
        |edit: &Value| edit.get("type").and_then(Value::as_str).is_some_and(|t| t.starts_with("clear_"));
    match management {
        Value::Null => true,
        Value::Object(fields) => fields.iter().all(|(key, value)| match value {
            Value::Null => true,
            Value::Array(edits) => key == "edits" && edits.iter().all(clears),
            _ => false,
        }),
        _ => false,
    }
}

/// Whether the client runs the tool itself.
fn client_tool(tool: &Value, policy: &ModelPolicy) -> Result<(), Denial> {
    let kind = match tool.get("type") {
        None | Some(Value::Null) if tool.is_object() => "custom",
        Some(kind) => kind.as_str().unwrap_or("?"),
        None => "?",
    };
    let allowed = policy.server_tools.iter().map(String::as_str);
    if CLIENT_TOOLS.into_iter().chain(allowed).any(|prefix| kind.starts_with(prefix)) {
        return Ok(());
    }
    let shown: String = kind.chars().filter(char::is_ascii_graphic).take(60).collect();
    refuse(&format!("tool {shown}"))
}

fn source_is_inline(source: &Value, hosts: &[HostRule]) -> Result<(), Denial> {
    match source.get("type").and_then(Value::as_str) {
        Some("base64" | "text" | "content") | None => Ok(()),
        Some("url") if url_is_covered(source.get("url").unwrap_or(&Value::Null), hosts) => Ok(()),
        Some("url") => refuse("a source with a URL"),
        Some(_) => refuse("a source that is stored elsewhere"),
    }
}

/// Whether a URL that the API would fetch is of a host that the run may reach itself.
pub(super) fn url_is_covered(url: &Value, hosts: &[HostRule]) -> bool {
    let rest = url.as_str().and_then(|url| url.strip_prefix("https://")).unwrap_or("");
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or("");
    let place = split_port(authority).and_then(|(h, p)| Some((Host::parse(h).ok()?, p.unwrap_or(443))));
    place.is_some_and(|(h, p)| hosts.iter().any(|r| r.opens_tunnels() && r.covers(&h, p)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reason(body: &Value, policy: &ModelPolicy) -> Option<Reason> {
        let hosts = ["images.example.org".parse().unwrap()];
        judge(body.to_string().as_bytes(), false, policy, &hosts).err().map(|d| d.reason)
    }

    fn plain(extra: Value) -> Value {
        let mut body = json!({"model": "claude-opus-5-5", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        body
    }

    #[test]
    fn an_ordinary_request_passes_with_its_content_unchanged() {
        let body = plain(
            json!({"tools": [{"name": "Bash", "input_schema": {"source": {"type": "url"}}}], "stream": true}),
        );
        let judged = judge(body.to_string().as_bytes(), false, &ModelPolicy::default(), &[]).unwrap();
        assert_eq!(Value::Object(judged.into_body(u64::MAX)), body);
    }

    #[test]
    fn what_makes_the_api_reach_out_is_refused() {
        let image = |source: Value| {
            json!({"messages": [{"role": "user", "content": [
            {"type": "tool_result", "content": [{"type": "image", "source": source}]}]}]})
        };
        for extra in [
            json!({"mcp_servers": [{"type": "url", "url": "https://evil.test/mcp"}]}),
            json!({"container": "c1"}),
            json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
            json!({"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}),
            json!({"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}),
            json!({"tools": [{"type": 7}]}),
            image(json!({"type": "url", "url": "https://evil.test/?leak=1"})),
            image(json!({"type": "url", "url": "https://images.example.org@evil.test/"})),
            image(json!({"type": "url", "url": "http://images.example.org/"})),
            image(json!({"type": "file", "file_id": "f"})),
            json!({"speed": "fast"}),
            json!({"fallbacks": [{"model": "claude-opus-5-5"}]}),
            json!({"inference_geo": "us"}),
            json!({"context_management": {"edits": [{"type": "compact_20260112"}]}}),
            json!({"context_management": {"compact": {"type": "clear_x"}}}),
            json!({"service_tier": ["priority"]}),
            json!({"messages": [{"role": "system", "content": [{"type": "tool_addition", "tool":
                {"type": "tool_definition", "definition": {"type": "web_fetch_20250910", "name": "web_fetch"}}}]}]}),
            json!({"messages": [{"role": "system", "content": [{"type": "tool_addition", "tool": {"type": "mcp_tool"}}]}]}),
        ] {
            let found = reason(&plain(extra.clone()), &ModelPolicy::default());
            assert_eq!(found, Some(Reason::RemoteActionNotAllowed), "{extra}");
        }
        let allowed = image(json!({"type": "url", "url": "https://images.example.org/a.png"}));
        assert_eq!(reason(&plain(allowed), &ModelPolicy::default()), None);
        let search = ModelPolicy { server_tools: vec!["web_search_".into()], ..ModelPolicy::default() };
        assert_eq!(reason(&plain(json!({"tools": [{"type": "web_search_20250305"}]})), &search), None);
    }

    #[test]
    fn a_request_has_a_bound_on_its_values() {
        let many =
            |n: usize| format!("{{\"model\":\"m\",\"max_tokens\":1,\"messages\":[{}0]}}", "0,".repeat(n));
        let judge =
            |n| judge(many(n).as_bytes(), false, &ModelPolicy::default(), &[]).err().map(|d| d.reason);
        assert_eq!((judge(MAX_VALUES - 8), judge(MAX_VALUES)), (None, Some(Reason::BadRequest)));
        let text =
            format!("{{\"model\":\"m\",\"max_tokens\":1,\"messages\":\"{}\"}}", ",".repeat(MAX_VALUES * 2));
        assert!(read(text.as_bytes()).is_ok(), "commas in a text are no values");
    }

    #[test]
    fn clearing_the_context_passes() {
        let edits =
            json!({"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}});
        assert_eq!(reason(&plain(edits), &ModelPolicy::default()), None);
    }

    #[test]
    fn the_input_of_a_tool_call_is_not_a_source() {
        let call = json!({"messages": [{"role": "assistant", "content": [
            {"type": "tool_use", "id": "1", "name": "X", "input": {"source": {"type": "url", "url": "https://e.test"}}}]}]});
        assert_eq!(reason(&plain(call), &ModelPolicy::default()), None);
    }

    #[test]
    fn a_doubled_key_cannot_be_judged_one_way_and_read_another() {
        let policy = ModelPolicy { models: vec!["cheap*".into()], ..ModelPolicy::default() };
        let doubled = br#"{"model":"dear-1","max_tokens":1,"messages":[],"mod\u0065l":"cheap-1"}"#;
        let sent = judge(doubled, false, &policy, &[]).unwrap().into_body(1);
        assert!(!Value::Object(sent).to_string().contains("dear"));
        let other = br#"{"model":"cheap-1","max_tokens":1,"messages":[],"model":"dear-1"}"#;
        assert_eq!(judge(other, false, &policy, &[]).err().unwrap().reason, Reason::ModelNotAllowed);
    }

    #[test]
    fn max_tokens_is_clamped_and_must_be_a_number() {
        let policy = ModelPolicy { max_tokens: Some(50), ..ModelPolicy::default() };
        let judged = judge(plain(json!({})).to_string().as_bytes(), false, &policy, &[]).unwrap();
        assert_eq!(judged.into_body(u64::MAX).get("max_tokens"), Some(&json!(50)));
        for value in [json!(-1), json!("100"), json!(1.5), json!(null)] {
            assert_eq!(reason(&plain(json!({"max_tokens": value})), &policy), Some(Reason::BadRequest));
        }
    }
}
