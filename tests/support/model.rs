//! A scripted stand-in for the Messages API, so that a test decides what "the model" does next.
//!
//! [`ScriptedModel`] listens on a free port of 127.0.0.1, plays the assistant turns of a [`Script`], streams them as
//! server-sent events in small pieces, and remembers every request with its headers, so that a test can look at
//! exactly what reached the model and with which key. It answers any other path with 404 and remembers it as well, so
//! it doubles as a listener for things that should never arrive. It stops when dropped.
//!
//! *Which conversation.* A request belongs to the first conversation whose `matching` text is part of the request's
//! first user message; a conversation without one takes what is left. A subagent's first user message holds the prompt
//! that it was given. Requests that offer no tools (titles, a page's summary) are side requests: only conversations
//! marked [`Conversation::for_side_requests`] take them, others get [`Script::side_text`].
//!
//! *Which turn.* The server keeps no state for this: the turn is the number of assistant messages already in the
//! request. Past the last turn it answers [`END_OF_SCRIPT`].

use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What the model says when its script has no more turns.
pub const END_OF_SCRIPT: &str = "[end of script]";

/// Characters in one streamed delta: small, so that a client must join them.
const PIECE: usize = 24;
/// Bytes of a request body that are read; a longer one is answered 413.
const MAX_BODY: usize = 64 << 20;
/// Bytes of a request's head that are read.
const MAX_HEAD: u64 = 1 << 20;

// ------------------------------------------------------------------------------------------------------- the script

/// One content block of an assistant turn.
#[derive(Debug, Clone)]
pub enum Block {
    /// Text.
    Text(String),
    /// A tool call.
    Tool {
        /// The tool's name, as the client offers it.
        name: String,
        /// The tool's input.
        input: Value,
    },
}

/// A text block.
pub fn text(text: impl Into<String>) -> Block {
    Block::Text(text.into())
}

/// A tool call.
pub fn tool(name: impl Into<String>, input: Value) -> Block {
    Block::Tool { name: name.into(), input }
}

type Answer = dyn Fn(&Value) -> Vec<Block> + Send + Sync;

/// One assistant turn.
pub struct Turn {
    answer: Box<Answer>,
    delay: Duration,
    error: Option<(u16, String)>,
    tokens: (u64, u64),
}

impl Turn {
    /// A turn of these blocks.
    pub fn of(blocks: impl Into<Vec<Block>>) -> Turn {
        let blocks = blocks.into();
        Turn::answering(move |_| blocks.clone())
    }

    /// A turn that depends on the request's body, for a model that acts on what it has just read.
    pub fn answering(answer: impl Fn(&Value) -> Vec<Block> + Send + Sync + 'static) -> Turn {
        Turn { answer: Box::new(answer), delay: Duration::ZERO, error: None, tokens: (10, 10) }
    }

    /// An API error with this HTTP status and error type, for instance 529 `overloaded_error`.
    pub fn error(status: u16, kind: &str) -> Turn {
        Turn { error: Some((status, kind.to_string())), ..Turn::of([]) }
    }

    /// Waits before it answers.
    pub fn after(mut self, delay: Duration) -> Turn {
        self.delay = delay;
        self
    }

    /// What the turn claims to have cost, in input and output tokens (10 and 10 otherwise).
    pub fn costing(mut self, input: u64, output: u64) -> Turn {
        self.tokens = (input, output);
        self
    }
}

impl<B: Into<Vec<Block>>> From<B> for Turn {
    fn from(blocks: B) -> Turn {
        Turn::of(blocks)
    }
}

/// The turns of one conversation, and which requests belong to it.
pub struct Conversation {
    name: String,
    matching: Option<String>,
    side: bool,
    turns: Vec<Turn>,
}

impl Conversation {
    /// A conversation that takes every request that no earlier one takes.
    pub fn new(name: impl Into<String>) -> Conversation {
        Conversation { name: name.into(), matching: None, side: false, turns: Vec::new() }
    }

    /// Takes only requests whose first user message contains `part`.
    pub fn matching(mut self, part: impl Into<String>) -> Conversation {
        self.matching = Some(part.into());
        self
    }

    /// Takes requests that offer no tools, instead of those that do.
    pub fn for_side_requests(mut self) -> Conversation {
        self.side = true;
        self
    }

    /// Adds the next assistant turn.
    pub fn turn(mut self, turn: impl Into<Turn>) -> Conversation {
        self.turns.push(turn.into());
        self
    }
}

/// All that the model will say.
pub struct Script {
    conversations: Vec<Conversation>,
    side_text: String,
}

impl Script {
    /// A model that says nothing but [`END_OF_SCRIPT`], and `ok` to side requests.
    pub fn new() -> Script {
        Script { conversations: Vec::new(), side_text: "ok".to_string() }
    }

    /// One conversation that takes everything, with these turns.
    pub fn turns<T: Into<Turn>>(turns: impl IntoIterator<Item = T>) -> Script {
        let mut main = Conversation::new("main");
        main.turns = turns.into_iter().map(Into::into).collect();
        Script::new().conversation(main)
    }

    /// Adds a conversation; earlier ones are asked first.
    pub fn conversation(mut self, conversation: Conversation) -> Script {
        self.conversations.push(conversation);
        self
    }

    /// What side requests get that no conversation takes.
    pub fn side_text(mut self, text: impl Into<String>) -> Script {
        self.side_text = text.into();
        self
    }

    fn next(&self, body: &Value) -> Reply {
        let side = list(body, "tools").is_empty();
        let messages = list(body, "messages");
        let first = messages.iter().find(|m| role(m) == "user").map(content_text).unwrap_or_default();
        let conversation = self
            .conversations
            .iter()
            .find(|c| c.side == side && c.matching.as_ref().is_none_or(|part| first.contains(part.as_str())));
        let mut reply = Reply {
            conversation: conversation.map(|c| c.name.clone()),
            turn: messages.iter().filter(|m| role(m) == "assistant").count(),
            side,
            blocks: vec![text(if side { self.side_text.as_str() } else { END_OF_SCRIPT })],
            delay: Duration::ZERO,
            error: None,
            tokens: (10, 10),
        };
        match conversation.map(|c| c.turns.get(reply.turn)) {
            Some(Some(turn)) => {
                reply.blocks = (turn.answer)(body);
                reply.delay = turn.delay;
                reply.error = turn.error.clone();
                reply.tokens = turn.tokens;
            }
            Some(None) => reply.blocks = vec![text(END_OF_SCRIPT)],
            None => {}
        }
        reply
    }
}

impl Default for Script {
    fn default() -> Script {
        Script::new()
    }
}

struct Reply {
    conversation: Option<String>,
    turn: usize,
    side: bool,
    blocks: Vec<Block>,
    delay: Duration,
    error: Option<(u16, String)>,
    tokens: (u64, u64),
}

// ---------------------------------------------------------------------------------------------------------- the log

/// One request, as it arrived.
#[derive(Debug, Clone)]
pub struct Request {
    /// `POST`, `GET`, …
    pub method: String,
    /// The request target, with its query.
    pub path: String,
    /// Header names in lower case, and values, in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The conversation that answered it; `None` for another path, or when no conversation took it.
    pub conversation: Option<String>,
    /// The index of the turn that answered it; `None` for another path.
    pub turn: Option<usize>,
    /// Whether it was a Messages request without tools.
    pub side: bool,
}

impl Request {
    /// The value of header `name`, any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The key that the request carries: `x-api-key`, or the bearer token of `authorization`.
    pub fn key(&self) -> Option<&str> {
        self.header("x-api-key").or_else(|| self.header("authorization")?.strip_prefix("Bearer "))
    }

    /// The body as JSON, `null` when it is something else.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The names of the tools that the client offered.
    pub fn tools(&self) -> Vec<String> {
        let body = self.json();
        list(&body, "tools").iter().filter_map(|t| t.get("name")?.as_str().map(str::to_string)).collect()
    }
}

/// What the model was told about one tool call.
#[derive(Debug, Clone)]
pub struct ToolResult {
    /// The call's identifier.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The input that the model gave.
    pub input: Value,
    /// The text of the result.
    pub text: String,
    /// Whether it was marked as an error.
    pub is_error: bool,
    /// The conversation it belongs to.
    pub conversation: Option<String>,
}

/// The tool results in `requests`, in the order in which the model first saw them.
pub fn tool_results(requests: &[Request]) -> Vec<ToolResult> {
    let mut found: Vec<ToolResult> = Vec::new();
    for request in requests {
        let body = request.json();
        let mut calls: HashMap<String, Value> = HashMap::new();
        for block in list(&body, "messages").iter().flat_map(|message| list(message, "content")) {
            match string(block, "type") {
                "tool_use" => {
                    calls.insert(string(block, "id").to_string(), block.clone());
                }
                "tool_result" => {
                    let id = string(block, "tool_use_id");
                    if found.iter().any(|seen| seen.id == id && seen.conversation == request.conversation) {
                        continue;
                    }
                    let call = calls.get(id).unwrap_or(&Value::Null);
                    found.push(ToolResult {
                        id: id.to_string(),
                        tool: string(call, "name").to_string(),
                        input: call.get("input").cloned().unwrap_or(Value::Null),
                        text: content_text(block),
                        is_error: block.get("is_error").and_then(Value::as_bool).unwrap_or(false),
                        conversation: request.conversation.clone(),
                    });
                }
                _ => {}
            }
        }
    }
    found
}

// ------------------------------------------------------------------------------------------------------- the server

struct Shared {
    script: Script,
    requests: Mutex<Vec<Request>>,
    open: Mutex<HashMap<u64, TcpStream>>,
    stopping: AtomicBool,
    count: AtomicU64,
}

/// The running server.
pub struct ScriptedModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl ScriptedModel {
    /// Starts a server on a free port of 127.0.0.1, in the network namespace of the calling thread.
    pub fn start(script: Script) -> io::Result<ScriptedModel> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script,
            requests: Mutex::default(),
            open: Mutex::default(),
            stopping: AtomicBool::new(false),
            count: AtomicU64::new(0),
        });
        let acceptor = thread::Builder::new().name("scripted-model".into()).spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        })?;
        Ok(ScriptedModel { address, shared, acceptor: Some(acceptor) })
    }

    /// The base URL, without a final slash: what `ANTHROPIC_BASE_URL` takes.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.requests).clone()
    }

    /// The requests to the Messages API.
    pub fn conversations(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|r| r.turn.is_some()).collect()
    }

    /// What the model was told about its tool calls, in order.
    pub fn tool_results(&self) -> Vec<ToolResult> {
        tool_results(&self.requests())
    }

    /// Whether `needle` reached the model anywhere: in a header, a prompt, a tool result or an injected message.
    pub fn saw(&self, needle: &str) -> bool {
        self.requests().iter().any(|request| {
            request.path.contains(needle)
                || request.headers.iter().any(|(_, value)| value.contains(needle))
                || String::from_utf8_lossy(&request.body).contains(needle)
                || any_string(&request.json(), &|s| s.contains(needle))
        })
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        for stream in lock(&self.shared.open).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let _ = TcpStream::connect(self.address); // wakes the acceptor
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while let Ok((stream, _)) = listener.accept() {
        if shared.stopping.load(Ordering::SeqCst) {
            break;
        }
        let id = shared.count.fetch_add(1, Ordering::SeqCst);
        if let Ok(copy) = stream.try_clone() {
            lock(&shared.open).insert(id, copy);
        }
        let shared = Arc::clone(shared);
        threads.push(thread::spawn(move || {
            let _ = serve(&stream, &shared); // a client that hangs up is no error
            let _ = stream.shutdown(Shutdown::Both);
            lock(&shared.open).remove(&id);
        }));
        threads.retain(|thread| !thread.is_finished());
    }
    for stream in lock(&shared.open).values() {
        let _ = stream.shutdown(Shutdown::Both);
    }
    for thread in threads {
        let _ = thread.join();
    }
}

fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while !shared.stopping.load(Ordering::SeqCst) {
        let Some(mut request) = read_head(&mut reader)? else { return Ok(()) };
        if request.header("expect").is_some() {
            writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        if let Err(error) = read_body(&mut reader, &mut request) {
            send_json(&mut writer, 413, &error_body("request_too_large", &error.to_string()))?;
            return Ok(());
        }
        let close = request.header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
        answer(&mut writer, request, shared)?;
        if close {
            return Ok(());
        }
    }
    Ok(())
}

fn read_head(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut head = reader.take(MAX_HEAD);
    let mut line = String::new();
    if head.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_ascii_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not an HTTP request line"));
    };
    let (method, path) = (method.to_string(), path.to_string());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
        }
    }
    Ok(Some(Request { method, path, headers, body: Vec::new(), conversation: None, turn: None, side: false }))
}

fn read_body(reader: &mut impl BufRead, request: &mut Request) -> io::Result<()> {
    let too_large = || io::Error::new(io::ErrorKind::InvalidData, "the request body is too large");
    let mut body = Vec::new();
    if request.header("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size =
                usize::from_str_radix(size, 16).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            if size > MAX_BODY.saturating_sub(body.len()) {
                return Err(too_large());
            }
            let start = body.len();
            body.resize(start + size, 0);
            reader.read_exact(body.get_mut(start..).unwrap_or_default())?;
            reader.read_line(&mut line)?;
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = request.header("content-length") {
        let length: usize = length.parse().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        if length > MAX_BODY {
            return Err(too_large());
        }
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
    }
    request.body = body;
    Ok(())
}

fn answer(writer: &mut impl Write, mut request: Request, shared: &Shared) -> io::Result<()> {
    let path = request.path.split('?').next().unwrap_or_default().to_string();
    let body = request.json();
    let reply = (request.method == "POST" && path == "/v1/messages" && body.is_object())
        .then(|| shared.script.next(&body))
        .inspect(|reply| {
            request.conversation = reply.conversation.clone();
            request.turn = Some(reply.turn);
            request.side = reply.side;
        });
    let head = request.method == "HEAD";
    let number = {
        let mut requests = lock(&shared.requests);
        requests.push(request);
        requests.len()
    };
    let Some(reply) = reply else {
        return match path.as_str() {
            _ if head => writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
            "/v1/messages/count_tokens" => send_json(writer, 200, &json!({ "input_tokens": 100 })),
            _ => send_json(
                writer,
                404,
                &error_body("not_found_error", "the scripted model has no such resource"),
            ),
        };
    };
    let mut left = reply.delay;
    while !left.is_zero() && !shared.stopping.load(Ordering::SeqCst) {
        let step = left.min(Duration::from_millis(20));
        thread::sleep(step);
        left = left.saturating_sub(step);
    }
    if let Some((status, kind)) = &reply.error {
        return send_json(writer, *status, &error_body(kind, "scripted error"));
    }
    let message = message(&body, &reply, number);
    if body.get("stream").and_then(Value::as_bool) == Some(true) {
        send_stream(writer, &message, number)
    } else {
        send_json(writer, 200, &message)
    }
}

fn error_body(kind: &str, message: &str) -> Value {
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}

fn send_json(writer: &mut impl Write, status: u16, value: &Value) -> io::Result<()> {
    let body = value.to_string();
    let length = body.len();
    write!(
        writer,
        "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )?;
    writer.write_all(body.as_bytes())?;
    writer.flush()
}

fn send_stream(writer: &mut impl Write, message: &Value, number: usize) -> io::Result<()> {
    write!(
        writer,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
         transfer-encoding: chunked\r\nrequest-id: req_scripted_{number:06}\r\n\r\n"
    )?;
    for (name, mut data) in events(message) {
        data.insert("type".into(), name.into());
        let event = format!("event: {name}\ndata: {}\n\n", Value::Object(data));
        write!(writer, "{:x}\r\n{event}\r\n", event.len())?;
        writer.flush()?;
    }
    writer.write_all(b"0\r\n\r\n")?;
    writer.flush()
}

// ------------------------------------------------------------------------------------------------------ the message

fn message(body: &Value, reply: &Reply, number: usize) -> Value {
    let prefix: String = reply
        .conversation
        .as_deref()
        .unwrap_or("side")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let content: Vec<Value> = reply
        .blocks
        .iter()
        .enumerate()
        .map(|(index, block)| match block {
            Block::Text(text) => json!({ "type": "text", "text": text }),
            Block::Tool { name, input } => json!({
                "type": "tool_use", "id": format!("toolu_{prefix}_{}_{index}", reply.turn), "name": name, "input": input,
            }),
        })
        .collect();
    let calls = reply.blocks.iter().any(|block| matches!(block, Block::Tool { .. }));
    json!({
        "id": format!("msg_scripted_{number:06}"), "type": "message", "role": "assistant",
        "model": body.get("model").cloned().unwrap_or_else(|| "scripted".into()),
        "content": content,
        "stop_reason": if calls { "tool_use" } else { "end_turn" }, "stop_sequence": null,
        "usage": {
            "input_tokens": reply.tokens.0, "output_tokens": reply.tokens.1,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        },
    })
}

/// The server-sent events that stream `message`, each with its data (the `type` field is added when sent).
fn events(message: &Value) -> Vec<(&'static str, Map<String, Value>)> {
    let mut opening = message.clone();
    if let Some(fields) = opening.as_object_mut() {
        fields.insert("content".into(), json!([]));
        fields.insert("stop_reason".into(), Value::Null);
    }
    let mut events = vec![event("message_start", json!({ "message": opening })), event("ping", json!({}))];
    for (index, block) in list(message, "content").iter().enumerate() {
        let (opening, deltas): (Value, Vec<Value>) = match string(block, "type") {
            "tool_use" => {
                let mut opening = block.clone();
                if let Some(fields) = opening.as_object_mut() {
                    fields.insert("input".into(), json!({}));
                }
                let input = block.get("input").unwrap_or(&Value::Null).to_string();
                (opening, pieces(&input, |p| json!({ "type": "input_json_delta", "partial_json": p })))
            }
            _ => (
                json!({ "type": "text", "text": "" }),
                pieces(string(block, "text"), |p| json!({ "type": "text_delta", "text": p })),
            ),
        };
        events.push(event("content_block_start", json!({ "index": index, "content_block": opening })));
        for delta in deltas {
            events.push(event("content_block_delta", json!({ "index": index, "delta": delta })));
        }
        events.push(event("content_block_stop", json!({ "index": index })));
    }
    let output_tokens = message.pointer("/usage/output_tokens").cloned().unwrap_or(Value::Null);
    events.push(event(
        "message_delta",
        json!({
            "delta": { "stop_reason": message.get("stop_reason"), "stop_sequence": null },
            "usage": { "output_tokens": output_tokens },
        }),
    ));
    events.push(event("message_stop", json!({})));
    events
}

fn event(name: &'static str, data: Value) -> (&'static str, Map<String, Value>) {
    match data {
        Value::Object(fields) => (name, fields),
        _ => (name, Map::new()),
    }
}

fn pieces(text: &str, delta: impl Fn(&str) -> Value) -> Vec<Value> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(PIECE).map(|chunk| delta(&chunk.iter().collect::<String>())).collect()
}

// ------------------------------------------------------------------------------------------------------------- JSON

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn role(message: &Value) -> &str {
    string(message, "role")
}

/// The text of a message or a tool result: its `content` is a string or a list of blocks.
fn content_text(holder: &Value) -> String {
    match holder.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts: Vec<&str> =
                blocks.iter().map(|b| string(b, "text")).filter(|t| !t.is_empty()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn any_string(value: &Value, test: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => test(text),
        Value::Array(items) => items.iter().any(|item| any_string(item, test)),
        Value::Object(fields) => fields.iter().any(|(key, item)| test(key) || any_string(item, test)),
        _ => false,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
