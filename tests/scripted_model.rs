//! The scripted model that other tests rely on says what its script says, and remembers what it was asked.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use support::{Conversation, Script, ScriptedModel, Turn, text, tool};

/// Sends one request on a connection of its own and returns the whole answer.
fn ask(model: &ScriptedModel, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", model.port())).unwrap();
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn messages(model: &ScriptedModel, body: &Value) -> Value {
    let answer = ask(model, "/v1/messages?beta=true", "x-api-key: run-token\r\n", &body.to_string());
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn user(words: &str) -> Value {
    json!({"role": "user", "content": words})
}

#[test]
fn the_turn_is_the_number_of_assistant_messages_in_the_request() {
    let model = ScriptedModel::start(Script::turns([[text("first")], [text("second")]])).unwrap();
    let mut history = vec![user("hi")];
    let mut said = Vec::new();
    for _ in 0..3 {
        let answer =
            messages(&model, &json!({"model": "m", "tools": [{"name": "Bash"}], "messages": history}));
        said.push(answer["content"][0]["text"].as_str().unwrap().to_string());
        history.push(json!({"role": "assistant", "content": answer["content"]}));
        history.push(user("go on"));
    }
    assert_eq!(said, ["first", "second", support::model::END_OF_SCRIPT]);
}

#[test]
fn a_conversation_is_found_by_the_first_user_message_and_side_requests_are_apart() {
    let model = ScriptedModel::start(
        Script::new()
            .side_text("a title")
            .conversation(Conversation::new("helper").matching("colours").turn([text("helper here")]))
            .conversation(Conversation::new("main").turn([text("main here")])),
    )
    .unwrap();
    let tools = json!([{"name": "Bash"}]);
    let helper = messages(&model, &json!({"tools": tools, "messages": [user("list the colours")]}));
    let main = messages(&model, &json!({"tools": tools, "messages": [user("list"), user("the colours")]}));
    let side = messages(&model, &json!({"messages": [user("list the colours")]}));
    assert_eq!(helper["content"][0]["text"], "helper here");
    assert_eq!(main["content"][0]["text"], "main here");
    assert_eq!(side["content"][0]["text"], "a title");
    let log = model.conversations();
    assert_eq!(log.iter().map(|r| r.side).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn a_streamed_tool_call_is_complete_when_its_pieces_are_joined() {
    let input = json!({"command": "printf '%s' \"zwölf Kröten, einzeln gezählt\" | wc -c"});
    let model = ScriptedModel::start(Script::turns([[tool("Bash", input.clone())]])).unwrap();
    let body = json!({"stream": true, "tools": [{"name": "Bash"}], "messages": [user("count")]});
    let answer = ask(&model, "/v1/messages", "", &body.to_string());
    let events: Vec<Value> = answer
        .lines()
        .filter_map(|l| l.strip_prefix("data: "))
        .map(|d| serde_json::from_str(d).unwrap())
        .collect();
    let pieces: Vec<&str> = events.iter().filter_map(|e| e["delta"]["partial_json"].as_str()).collect();
    assert!(pieces.len() > 1, "a client must have something to join");
    assert_eq!(serde_json::from_str::<Value>(&pieces.concat()).unwrap(), input);
    let stop = events.iter().find(|e| e["type"] == "message_delta").unwrap();
    assert_eq!(stop["delta"]["stop_reason"], "tool_use");
    assert_eq!(events.last().unwrap()["type"], "message_stop");
}

#[test]
fn a_turn_can_act_on_what_the_model_has_just_read() {
    let model = ScriptedModel::start(Script::turns([Turn::answering(|body| {
        vec![text(format!("you said {}", body["messages"][0]["content"]))]
    })]))
    .unwrap();
    let answer = messages(&model, &json!({"tools": [{"name": "Bash"}], "messages": [user("xyzzy")]}));
    assert_eq!(answer["content"][0]["text"], "you said \"xyzzy\"");
}

#[test]
fn requests_are_remembered_with_their_headers_also_on_unknown_paths() {
    let model = ScriptedModel::start(Script::new()).unwrap();
    let answer = ask(&model, "/collect?x=1", "authorization: Bearer abc\r\nX-Other: v\r\n", "stolen");
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    let requests = model.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!((requests[0].key(), requests[0].header("X-OTHER")), (Some("abc"), Some("v")));
    assert_eq!(
        (requests[0].path.as_str(), requests[0].body.as_slice()),
        ("/collect?x=1", b"stolen".as_slice())
    );
    assert!(model.saw("stolen") && !model.saw("missing"));
    assert!(model.conversations().is_empty());
}

#[test]
fn a_chunked_request_body_is_read_whole() {
    let model = ScriptedModel::start(Script::new()).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", model.port())).unwrap();
    stream
        .write_all(b"POST /x HTTP/1.1\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;q=1\r\nde\r\n0\r\n\r\n")
        .unwrap();
    stream.read_to_string(&mut String::new()).unwrap();
    assert_eq!(model.requests()[0].body, b"abcde");
}

#[test]
fn tool_results_are_read_back_with_their_calls() {
    let model = ScriptedModel::start(Script::new()).unwrap();
    let call = json!({"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/x"}});
    let result = json!({"type": "tool_result", "tool_use_id": "t1", "is_error": true,
                        "content": [{"type": "text", "text": "denied"}]});
    let history =
        json!([user("go"), {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]);
    for _ in 0..2 {
        messages(&model, &json!({"tools": [{"name": "Read"}], "messages": history}));
    }
    let results = model.tool_results();
    assert_eq!(results.len(), 1, "a result that is sent again is still one result");
    assert_eq!((results[0].tool.as_str(), results[0].text.as_str()), ("Read", "denied"));
    assert!(results[0].is_error);
    assert_eq!(results[0].input["file_path"], "/x");
}

#[test]
fn an_error_turn_answers_with_its_status() {
    let model = ScriptedModel::start(Script::turns([Turn::error(529, "overloaded_error")])).unwrap();
    let body = json!({"tools": [{"name": "Bash"}], "messages": [user("hi")]});
    let answer = ask(&model, "/v1/messages", "", &body.to_string());
    assert!(answer.starts_with("HTTP/1.1 529 ") && answer.contains("overloaded_error"), "{answer}");
}

#[test]
fn it_stops_when_dropped_even_while_a_client_is_connected() {
    let model = ScriptedModel::start(Script::new()).unwrap();
    let port = model.port();
    let mut idle = TcpStream::connect(("127.0.0.1", port)).unwrap();
    drop(model);
    assert_eq!(idle.read(&mut [0; 8]).unwrap_or(0), 0, "the open connection was closed");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "nothing listens any more");
}
