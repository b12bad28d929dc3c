//! A scripted model: answers every request of a client with the attacker's next turn.
//!
//! Speaks as much of the Messages API as the client needs: `POST /v1/messages`, streamed. It keeps no state: the turn
//! is the number of assistant messages in the request. What it was sent is appended to a log: what reached the model.

// Plays inside the sandbox or answers the drill: nobody reads it at a terminal.
#![allow(clippy::disallowed_macros)]

use crate::exit::Exit;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;

/// Largest request that is read, bytes.
const MAX_REQUEST: usize = 64 << 20;

/// Serves `script` (a JSON list of turns, each a list of content blocks) on a free port of loopback, says the port on
/// standard output, and appends every request to `log`. Ends when standard input does.
pub fn serve(script: &Path, log: &Path) -> Exit {
    let turns =
        std::fs::read(script).ok().and_then(|bytes| serde_json::from_slice::<Vec<Value>>(&bytes).ok());
    let (Some(turns), Ok(listener)) = (turns, TcpListener::bind((Ipv4Addr::LOCALHOST, 0))) else {
        return Exit::USAGE;
    };
    let Ok(address) = listener.local_addr() else { return Exit::INTERNAL };
    println!("{}", address.port());
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let turns = std::sync::Arc::new(turns);
    for stream in listener.incoming().flatten() {
        let (turns, log) = (std::sync::Arc::clone(&turns), log.to_path_buf());
        std::thread::spawn(move || {
            let _ = converse(&stream, &turns, &log);
        });
    }
    Exit::OK
}

/// Serves `turns` on a free port of loopback from this process, until it ends; the port.
pub fn start(turns: Vec<Value>, log: &Path) -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let (turns, log) = (std::sync::Arc::new(turns), log.to_path_buf());
    std::thread::Builder::new().name("model".into()).spawn(move || {
        for stream in listener.incoming().flatten() {
            let (turns, log) = (std::sync::Arc::clone(&turns), log.clone());
            std::thread::spawn(move || {
                let _ = converse(&stream, &turns, &log);
            });
        }
    })?;
    Ok(port)
}

fn converse(stream: &TcpStream, turns: &[Value], log: &Path) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0usize;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0).min(MAX_REQUEST);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let mut file = std::fs::File::options().append(true).create(true).open(log)?;
    file.write_all(format!("{body}\n").as_bytes())?;
    // Text inside JSON strings is escaped; the words are also looked for as they are.
    let mut words = Vec::new();
    strings(&body, &mut words);
    file.write_all((words.join("\n") + "\n").as_bytes())?;
    answer(stream, &message(&body, turns))
}

fn strings(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => words.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, words)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, words)),
        _ => {}
    }
}

fn message(body: &Value, turns: &[Value]) -> Value {
    let said =
        body["messages"].as_array().map_or(0, |m| m.iter().filter(|m| m["role"] == "assistant").count());
    let side = body["tools"].as_array().is_none_or(Vec::is_empty);
    let content =
        turns.get(said).filter(|_| !side).cloned().unwrap_or_else(|| json!([{"type": "text", "text": "ok"}]));
    let calls = content.as_array().is_some_and(|blocks| blocks.iter().any(|b| b["type"] == "tool_use"));
    json!({
        "id": format!("msg_drill_{said}"), "type": "message", "role": "assistant",
        "model": body["model"], "content": content,
        "stop_reason": if calls { "tool_use" } else { "end_turn" }, "stop_sequence": null,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    })
}

fn answer(mut stream: &TcpStream, message: &Value) -> std::io::Result<()> {
    let mut events = String::new();
    let mut event = |name: &str, mut data: Value| {
        data["type"] = name.into();
        events.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    };
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    event("message_start", json!({"message": start}));
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let mut opening = block.clone();
        let delta = if block["type"] == "tool_use" {
            opening["input"] = json!({});
            json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
        } else {
            opening["text"] = "".into();
            json!({"type": "text_delta", "text": block["text"]})
        };
        event("content_block_start", json!({"index": index, "content_block": opening}));
        event("content_block_delta", json!({"index": index, "delta": delta}));
        event("content_block_stop", json!({"index": index}));
    }
    event(
        "message_delta",
        json!({"delta": {"stop_reason": message["stop_reason"], "stop_sequence": null}, "usage": {"output_tokens": 1}}),
    );
    event("message_stop", json!({}));
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{events}",
        events.len()
    )
}
