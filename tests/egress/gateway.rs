//! The model gateway: the key never comes in, and the run gets what its policy allows.

use crate::support::{Authority, Door, INSIDE, Origin, config, read_all, read_request};
use jess::egress::event::{Alert, Reason};
use jess::egress::{Action, Budget, Config, Credential, Inspection, ModelPolicy, ModelUpstream};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const KEY: &str = "sk-ant-api03-REAL-9f8e7d6c5b4a";
const TOKEN: &str = "jess-run-token-0123456789";

fn with_model(origin: &Origin) -> Config {
    let url = format!("http://127.0.0.1:{}", origin.port());
    let model = ModelUpstream::new(&url, Credential::new(KEY).unwrap(), TOKEN).unwrap();
    Config { model: Some(model), ..config(&[], &[]) }
}

fn message(extra: &str) -> String {
    format!(
        "{{\"model\":\"claude-opus-5-5\",\"max_tokens\":100{extra},\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}]}}"
    )
}

fn post(door: &Door, path: &str, token: &str, body: &str) -> String {
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nx-api-key: {token}\r\nanthropic-version: 2023-06-01\r\ncookie: c=1\r\n\
         content-type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        door.addr,
        body.len()
    );
    door.say(request.as_bytes())
}

pub fn events(texts: &[&str], input: u64, output: u64) -> String {
    let mut out = format!(
        "event: message_start\ndata: {{\"type\":\"message_start\",\"message\":{{\"usage\":{{\"input_tokens\":{input},\"output_tokens\":1}}}}}}\n\n"
    );
    for text in texts {
        let delta = serde_json::json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
        out.push_str(&format!("event: content_block_delta\ndata: {delta}\n\n"));
    }
    out.push_str("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n");
    out.push_str(&format!("event: message_delta\ndata: {{\"type\":\"message_delta\",\"usage\":{{\"output_tokens\":{output}}}}}\n\n"));
    out.push_str("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    out
}

pub fn stream_answer(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// An API that answers each request on a connection with what `answer` says.
pub fn api(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Origin {
    Origin::start(INSIDE, move |mut stream, log| {
        loop {
            let request = read_request(&mut stream);
            if request.is_empty() {
                return;
            }
            log.lock().unwrap().extend_from_slice(&request);
            let text = String::from_utf8_lossy(&request).into_owned();
            if stream.write_all(answer(&text).as_bytes()).is_err() {
                return;
            }
        }
    })
}

#[test]
fn the_key_is_added_outside_and_the_token_stays_inside() {
    let api = api(|_| stream_answer(&events(&["hello"], 5, 5)));
    let door = Door::open(with_model(&api));
    let answer = post(&door, "/v1/messages?beta=true", TOKEN, &message(",\"stream\":true"));
    assert!(answer.contains("hello") && answer.contains("message_stop"), "{answer}");
    let received = api.received();
    assert!(received.starts_with("POST /v1/messages?beta=true HTTP/1.1"), "{received}");
    assert!(received.contains(&format!("x-api-key: {KEY}")) && received.contains("anthropic-version"));
    assert!(!received.contains(TOKEN) && !received.contains("cookie"), "{received}");
}

#[test]
fn the_key_does_not_come_back_in_any_form() {
    use base64::Engine as _;
    let hex: String = KEY.bytes().map(|b| format!("{b:02x}")).collect();
    let b64 = base64::engine::general_purpose::STANDARD.encode(format!("x {KEY} y"));
    let forms = [KEY.to_owned(), KEY.chars().rev().collect(), hex, b64.clone()];
    let echoed = forms.clone();
    let api = api(move |request| {
        let body = echoed.join(" | ");
        let head = if request.contains("error") { "HTTP/1.1 400 Bad Request" } else { "HTTP/1.1 200 OK" };
        let kind = if request.contains("stream") { "text/event-stream" } else { "text/plain" };
        format!(
            "{head}\r\nContent-Type: {kind}\r\nrequest-id: {KEY}\r\nanthropic-echo: {KEY}\r\nset-cookie: k={KEY}\r\n\
             Content-Length: {}\r\n\r\n{body}\n\n",
            body.len() + 2
        )
    });
    let door = Door::open(with_model(&api));
    for extra in [",\"stream\":true", ",\"metadata\":{\"error\":1}", ""] {
        let answer = post(&door, "/v1/messages", TOKEN, &message(extra));
        // What is no stream and no document is not passed at all.
        assert!(answer.contains("[redacted by jess]") || answer.contains("can't be read"), "{answer}");
        for form in &forms[..3] {
            assert!(!answer.contains(form.as_str()), "{answer}");
        }
        assert!(!answer.contains(&b64[4..36]), "{answer}");
    }
    // What the API got is the key, so there was something to echo.
    assert!(api.received().contains(KEY));
}

#[test]
fn a_key_that_comes_back_in_pieces_is_found() {
    let origin = Origin::start(INSIDE, |mut stream, _| {
        read_request(&mut stream);
        let _ = stream
            .write_all(b"HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nkey=");
        for byte in KEY.bytes() {
            let _ = stream.write_all(&[byte]);
            let _ = stream.flush();
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = stream.write_all(b" end");
    });
    let door = Door::open(with_model(&origin));
    let answer = post(&door, "/v1/messages", TOKEN, &message(""));
    assert!(answer.contains("[redacted by jess]") && !answer.contains("REAL"), "{answer}");
}

#[test]
fn only_the_run_may_ask_and_only_for_a_conversation() {
    let api = api(|_| stream_answer(&events(&["hello"], 5, 5)));
    let door = Door::open(with_model(&api));
    for token in ["", "wrong", KEY, &TOKEN[1..]] {
        assert!(post(&door, "/v1/messages", token, &message("")).starts_with("HTTP/1.1 401"), "{token}");
    }
    for path in [
        "/v1/messages/batches",
        "/v1/files",
        "/v1/organizations/api_keys",
        "/v1/messages/../files",
        "//v1/messages",
        "/v1/messages/",
        "/V1/messages",
        "/v1/%6dessages",
        "/v1/complete",
        "/api/oauth/claude_cli/create_api_key",
    ] {
        let answer = post(&door, path, TOKEN, &message(""));
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
    assert_eq!(api.connections(), 0);
    let probe = door.say(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(probe.starts_with("HTTP/1.1 200"), "{probe}");
    assert_eq!(api.connections(), 0);
}

#[test]
fn a_redirect_of_the_api_is_not_followed() {
    let elsewhere = Origin::http(INSIDE, "STOLEN");
    let target = elsewhere.addr;
    let api = api(move |_| {
        format!("HTTP/1.1 307 Moved\r\nLocation: http://{target}/{KEY}\r\nContent-Length: 0\r\n\r\n")
    });
    let door = Door::open(with_model(&api));
    let answer = post(&door, "/v1/messages", TOKEN, &message(""));
    assert!(answer.starts_with("HTTP/1.1 502") && !answer.contains(KEY), "{answer}");
    assert_eq!(elsewhere.connections(), 0);
}

#[test]
fn an_event_reaches_the_run_before_the_next_one_exists() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let origin = Origin::start(INSIDE, move |mut stream, _| {
        read_request(&mut stream);
        let body = events(&["first", "second"], 5, 5);
        let cut = body.find("second").unwrap() - 200;
        let cut = body[..cut + 200].rfind("event:").unwrap();
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
        let _ = stream.write_all(&body.as_bytes()[..cut]);
        wait.lock().unwrap().recv_timeout(Duration::from_secs(10)).expect("the client saw the first event");
        let _ = stream.write_all(&body.as_bytes()[cut..]);
    });
    let door = Door::open(with_model(&origin));
    let mut client = TcpStream::connect(door.addr).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let body = message(",\"stream\":true");
    write!(client, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let (mut seen, mut chunk) = (String::new(), [0; 4096]);
    while !seen.contains("first") {
        let n = client.read(&mut chunk).expect("the first event arrives");
        assert!(n > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&chunk[..n]));
    }
    assert!(!seen.contains("second"));
    go.send(()).unwrap();
    assert!(read_all(&mut client).contains("message_stop"));
}

#[test]
fn an_api_over_tls_is_reached_and_a_false_one_is_not() {
    let (authority, false_authority) = (Authority::new(), Authority::new());
    let origin = Origin::https(INSIDE, &authority, &["localhost"], "{\"input_tokens\":3}");
    let open = |trusted: &Authority| {
        let url = format!("https://localhost:{}", origin.port());
        let model = ModelUpstream::new(&url, Credential::new(KEY).unwrap(), TOKEN).unwrap();
        Door::open(Config { model: Some(model), extra_roots: Some(trusted.file()), ..config(&[], &[]) })
    };
    let answer = post(&open(&authority), "/v1/messages/count_tokens", TOKEN, &message(""));
    assert!(answer.contains("input_tokens"), "{answer}");
    let before = origin.received().len();
    let answer = post(&open(&false_authority), "/v1/messages", TOKEN, &message(""));
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert_eq!(origin.received().len(), before, "the key was not sent");
}

#[test]
fn the_model_and_the_length_of_answers_are_held_to_policy() {
    let api = api(|_| stream_answer(&events(&["hello"], 5, 5)));
    let policy =
        ModelPolicy { models: vec!["claude-opus-*".into()], max_tokens: Some(60), ..ModelPolicy::default() };
    let door = Door::open(Config { model_policy: policy, ..with_model(&api) });
    let other = message("").replace("claude-opus-5-5", "claude-fable-5");
    assert!(post(&door, "/v1/messages", TOKEN, &other).starts_with("HTTP/1.1 403"));
    let remote = message(",\"mcp_servers\":[{\"type\":\"url\",\"url\":\"https://evil.test\"}]");
    assert!(post(&door, "/v1/messages", TOKEN, &remote).starts_with("HTTP/1.1 403"));
    assert_eq!(api.connections(), 0);
    assert!(post(&door, "/v1/messages", TOKEN, &message("")).contains("hello"));
    assert!(api.received().contains("\"max_tokens\":60"), "{}", api.received());
}

#[test]
fn the_models_words_are_inspected_on_the_way_in() {
    let api = api(|_| {
        stream_answer(&events(&["see CANARY-", "0123456789 and ![b](https://ev", "il.test/?q) done"], 5, 5))
    });
    let secrets = || vec![Credential::new("CANARY-0123456789").unwrap()];
    let door = Door::open(Config {
        inspection: Inspection { action: Action::Redact, secrets: secrets() },
        ..with_model(&api)
    });
    let answer = post(&door, "/v1/messages", TOKEN, &message(",\"stream\":true"));
    assert!(!answer.contains("evil.test") && !answer.contains("0123456789 and"), "{answer}");
    assert!(answer.contains("[image removed by jess]") && answer.contains("message_stop"), "{answer}");
    let alerts = door.handle.stop().alerts;
    assert_eq!(alerts.iter().filter(|a| matches!(a, Alert::ModelOutput { .. })).count(), 2, "{alerts:?}");

    let door = Door::open(Config {
        inspection: Inspection { action: Action::Stop, secrets: secrets() },
        ..with_model(&api)
    });
    let answer = post(&door, "/v1/messages", TOKEN, &message(",\"stream\":true"));
    assert!(answer.contains("was stopped") && !answer.contains("done"), "{answer}");
    assert!(door.handle.stop().events.iter().any(|e| e.reason == Reason::ResponseStopped));
}

#[test]
fn the_budget_stops_twenty_parallel_streams_exactly() {
    // Each answer costs 10 + 90 tokens; requests ask for 100 and are about 30 tokens long by the estimate.
    let answered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answered);
    let api = api(move |request| {
        count.fetch_add(1, SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        let asked: u64 =
            request.split("\"max_tokens\":").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
        stream_answer(&events(&["hello"], 10, asked.min(90)))
    });
    let limit = 1_000;
    let raised = Arc::new(AtomicUsize::new(0));
    let on_alert = Arc::clone(&raised);
    let door = Door::open(Config {
        budget: Budget { usd: None, tokens: Some(limit) },
        on_alert: Some(Arc::new(move |alert: &Alert| {
            on_alert.fetch_add(usize::from(matches!(alert, Alert::BudgetExhausted { .. })), SeqCst);
        })),
        ..with_model(&api)
    });
    let refused = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let answer = post(&door, "/v1/messages", TOKEN, &message(",\"stream\":true"));
                    if answer.starts_with("HTTP/1.1 402") {
                        assert!(answer.contains("budget") && answer.contains("billing_error"), "{answer}");
                        refused.fetch_add(1, SeqCst);
                    }
                }
            });
        }
    });
    let answered = answered.load(SeqCst);
    let report = door.handle.stop();
    let used = report.usage.input_tokens + report.usage.output_tokens;
    assert!(used <= limit && used + 130 > limit, "{used} of {limit}");
    assert_eq!(report.usage.responses as usize, answered);
    assert_eq!(refused.load(SeqCst) + answered, 60);
    assert!(report.budget_exhausted && raised.load(SeqCst) == 1, "{report:?}");
}

#[test]
fn a_run_without_a_model_has_none() {
    let door = Door::open(config(&[], &[]));
    assert!(post(&door, "/v1/messages", TOKEN, &message("")).starts_with("HTTP/1.1 404"));
}
