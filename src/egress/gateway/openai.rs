//! What a run may ask of an OpenAI-shaped API: chat completions, and responses without state.
//!
//! As for the Messages API, the request is read, judged, and written again from what was read. Refused is what makes
//! the API reach out itself or use what is stored with it; nothing is stored there.

use super::api::Call;
use super::judge::{BYTES_PER_TOKEN, Judged, ModelPolicy, bad, known_fields, read, refuse, url_is_covered};
use crate::egress::event::Denial;
use crate::egress::rule::HostRule;
use serde_json::{Map, Value, json};

/// Output tokens of a request that names no bound of its own. It is put into the request, since an answer without
/// bound has no place in a budget; `max_tokens` of the policy stands in its place.
const DEFAULT_OUTPUT: u64 = 16_384;

/// Types of tools that the client runs itself. The API runs the others, with a network of its own.
const CLIENT_TOOLS: [&str; 4] = ["function", "custom", "local_shell", "apply_patch"];

/// Fields that are passed on: see `judge::FIELDS`.
const FIELDS: [&str; 44] = [
    "model",
    "messages",
    "input",
    "instructions",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "stop",
    "n",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "logit_bias",
    "response_format",
    "text",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "parallel_tool_calls",
    "user",
    "safety_identifier",
    "metadata",
    "reasoning",
    "reasoning_effort",
    "verbosity",
    "include",
    "truncation",
    "store",
    "service_tier",
    "prediction",
    "prompt_cache_key",
    "prompt_cache_retention",
    "max_tool_calls",
    "modalities",
    "logprobs",
    "client_metadata",
];

/// Fields that use what is stored with the API, or make it act by itself; absent, null or false they are harmless.
const STATEFUL: [&str; 7] = [
    "background",
    "conversation",
    "previous_response_id",
    "prompt",
    "web_search_options",
    "audio",
    "context_management",
];

/// Reads and judges the body of a chat completion or a response.
pub(super) fn judge(
    body: &[u8],
    call: Call,
    policy: &ModelPolicy,
    hosts: &[HostRule],
) -> Result<Judged, Denial> {
    let mut fields = read(body)?;
    let model = policy.admit(fields.get("model"))?;
    let names: &[&'static str] = match call {
        Call::Responses => &["max_output_tokens"],
        _ => &["max_completion_tokens", "max_tokens"],
    };
    let mut limit = names.first().copied().unwrap_or("max_tokens");
    let mut asked = policy.max_tokens.unwrap_or(DEFAULT_OUTPUT);
    let given: Vec<_> = names.iter().filter(|n| fields.get(**n).is_some_and(|v| !v.is_null())).collect();
    match given.as_slice() {
        [] => {}
        [one] => {
            let n = fields.get(**one).and_then(Value::as_u64);
            let n = n.ok_or_else(|| bad("has no whole number as its bound on output tokens"))?;
            (limit, asked) = (one, n.min(policy.max_tokens.unwrap_or(u64::MAX)));
        }
        _ => return Err(bad("has two bounds on output tokens")),
    }
    fields.insert(limit.to_owned(), asked.into());
    remote_actions(&fields, hosts)?;
    let mut hide_usage = false;
    if call == Call::Responses {
        fields.insert("store".into(), false.into());
    } else if fields.get("stream") == Some(&Value::Bool(true)) {
        // Without it the stream does not say what it cost.
        let told = fields.get("stream_options").and_then(|o| o.get("include_usage"));
        hide_usage = told != Some(&Value::Bool(true));
        fields.insert("stream_options".into(), json!({"include_usage": true}));
    }
    Ok(Judged {
        model,
        max_tokens: asked,
        least_tokens: 0,
        estimate: body.len() as u64 / BYTES_PER_TOKEN,
        limit,
        hide_usage,
        body: fields,
    })
}

fn remote_actions(body: &Map<String, Value>, hosts: &[HostRule]) -> Result<(), Denial> {
    let off = |v: &Value| v.is_null() || *v == Value::Bool(false);
    for key in STATEFUL {
        if body.get(key).is_some_and(|v| !off(v)) {
            return refuse(key);
        }
    }
    let harmless: Vec<&str> = FIELDS.into_iter().chain(STATEFUL).collect();
    known_fields(body, &harmless)?;
    // Words by single tokens are words that no window sees together.
    if body.get("logprobs").is_some_and(|v| !off(v)) {
        return refuse("logprobs");
    }
    let modes = body.get("modalities").and_then(Value::as_array);
    if modes.is_some_and(|m| m.iter().any(|mode| mode != "text")) {
        return refuse("modalities other than text");
    }
    if body.get("store").is_some_and(|v| !off(v)) && body.contains_key("messages") {
        return refuse("store");
    }
    if body.get("n").is_some_and(|n| !n.is_null() && n.as_u64() != Some(1)) {
        return refuse("n, more than one answer");
    }
    let tier = body.get("service_tier").filter(|v| !v.is_null());
    if tier.is_some_and(|t| !matches!(t.as_str(), Some("auto" | "default" | "flex"))) {
        return refuse("service_tier, which has prices of its own");
    }
    client_tools(body.get("tools").unwrap_or(&Value::Null))?;
    let mut open: Vec<&Value> = ["messages", "input"].iter().filter_map(|key| body.get(*key)).collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                if fields.get("type").and_then(Value::as_str) == Some("item_reference") {
                    return refuse("item_reference");
                }
                for (key, value) in fields {
                    match key.as_str() {
                        // Tools can be given in the middle of a conversation.
                        "tools" => client_tools(value)?,
                        "file_id" if !value.is_null() => return refuse("a file that is stored elsewhere"),
                        "image_url" | "file_url" => {
                            let url = value.get("url").unwrap_or(value);
                            let inline = url.as_str().is_some_and(|u| u.starts_with("data:"));
                            if !(url.is_null() || inline || url_is_covered(url, hosts)) {
                                return refuse("a source with a URL");
                            }
                        }
                        _ => {}
                    }
                    open.push(value);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the client runs all of these tools itself.
fn client_tools(tools: &Value) -> Result<(), Denial> {
    for tool in tools.as_array().into_iter().flatten() {
        let kind = tool.get("type").and_then(Value::as_str).unwrap_or("?");
        if !CLIENT_TOOLS.contains(&kind) {
            let shown: String = kind.chars().filter(char::is_ascii_graphic).take(60).collect();
            return refuse(&format!("tool {shown}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::event::Reason;

    fn judged(call: Call, extra: &Value, policy: &ModelPolicy) -> Result<Map<String, Value>, Reason> {
        let text = if call == Call::Chat { "messages" } else { "input" };
        let mut body = json!({"model": "gpt-x", text: [{"role": "user", "content": "hi"}]});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let hosts = ["images.example.org".parse().unwrap()];
        judge(body.to_string().as_bytes(), call, policy, &hosts)
            .map(|j| j.into_body(u64::MAX))
            .map_err(|d| d.reason)
    }

    fn reason(call: Call, extra: &Value) -> Option<Reason> {
        judged(call, extra, &ModelPolicy::default()).err()
    }

    #[test]
    fn an_ordinary_request_passes_and_gets_a_bound_and_a_count() {
        let tools =
            json!([{"type": "function", "function": {"name": "f", "parameters": {"image_url": "x"}}}]);
        let sent =
            judged(Call::Chat, &json!({"stream": true, "tools": tools}), &ModelPolicy::default()).unwrap();
        assert_eq!(sent.get("tools"), Some(&tools));
        assert_eq!(sent.get("max_completion_tokens"), Some(&json!(DEFAULT_OUTPUT)));
        assert_eq!(sent.get("stream_options"), Some(&json!({"include_usage": true})));
        let sent = judged(Call::Responses, &json!({"store": true}), &ModelPolicy::default()).unwrap();
        assert_eq!(
            (sent.get("store"), sent.get("max_output_tokens")),
            (Some(&json!(false)), Some(&json!(DEFAULT_OUTPUT)))
        );
    }

    #[test]
    fn the_bound_is_clamped_under_the_name_that_was_used() {
        let policy = ModelPolicy { max_tokens: Some(50), ..ModelPolicy::default() };
        for (call, name) in [
            (Call::Chat, "max_tokens"),
            (Call::Chat, "max_completion_tokens"),
            (Call::Responses, "max_output_tokens"),
        ] {
            let sent = judged(call, &json!({name: 900}), &policy).unwrap();
            let bounds = sent.iter().filter(|(k, _)| k.starts_with("max_"));
            assert_eq!(bounds.collect::<Vec<_>>(), [(&name.to_owned(), &json!(50))]);
            assert_eq!(judged(call, &json!({name: "900"}), &policy).err(), Some(Reason::BadRequest));
        }
        let two = json!({"max_tokens": 5, "max_completion_tokens": 9000});
        assert_eq!(judged(Call::Chat, &two, &policy).err(), Some(Reason::BadRequest));
    }

    #[test]
    fn what_makes_the_api_reach_out_or_remember_is_refused() {
        let content = |part: Value| json!({"messages": [{"role": "user", "content": [part]}]});
        let input = |item: Value| json!({"input": [item]});
        for (call, extra) in [
            (Call::Chat, json!({"web_search_options": {}})),
            (Call::Chat, json!({"n": 8})),
            (Call::Chat, json!({"logprobs": true})),
            (Call::Chat, json!({"models": ["a"], "plugins": [{"id": "web"}]})),
            (
                Call::Responses,
                input(
                    json!({"type": "additional_tools", "tools": [{"type": "mcp", "server_url": "https://evil.test"}]}),
                ),
            ),
            (Call::Chat, json!({"store": true})),
            (Call::Chat, json!({"service_tier": "priority"})),
            (
                Call::Chat,
                content(json!({"type": "image_url", "image_url": {"url": "https://evil.test/?a=1"}})),
            ),
            (Call::Chat, content(json!({"type": "file", "file": {"file_id": "f"}}))),
            (Call::Chat, content(json!({"image_url": {"url": "data:x", "more": {"file_id": "f"}}}))),
            (Call::Responses, json!({"tools": [{"type": "mcp", "server_url": "https://evil.test"}]})),
            (Call::Responses, json!({"tools": [{"type": "web_search"}]})),
            (Call::Responses, json!({"tools": [{"type": "code_interpreter"}]})),
            (Call::Responses, json!({"previous_response_id": "r"})),
            (Call::Responses, json!({"background": true})),
            (Call::Responses, json!({"conversation": "c"})),
            (Call::Responses, json!({"prompt": {"id": "p"}})),
            (Call::Responses, input(json!({"type": "item_reference", "id": "i"}))),
            (
                Call::Responses,
                input(json!({"type": "input_image", "image_url": "http://images.example.org/a"})),
            ),
            (Call::Responses, input(json!({"type": "input_file", "file_url": "https://evil.test/"}))),
        ] {
            assert_eq!(reason(call, &extra), Some(Reason::RemoteActionNotAllowed), "{extra}");
        }
        for extra in [
            content(json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}})),
            content(json!({"type": "image_url", "image_url": {"url": "https://images.example.org/a.png"}})),
            json!({"n": 1, "web_search_options": null, "service_tier": "auto"}),
        ] {
            assert_eq!(reason(Call::Chat, &extra), None, "{extra}");
        }
    }
}
