//! The functions of this crate for hosts in other languages: one JSON request a line, one reply a line, in order.
//!
//! Request `{"id": ID, "method": "group.name", "params": {…}}`; reply `{"id": ID, "result": {…}}` or
//! `{"id": ID, "error": {"kind": K, "message": M}}`. Nothing is remembered between requests but compiled patterns. A line
//! may have [`MAX_LINE`] bytes; a longer one, and anything else that is no request, gets an error reply; so does one with a
//! key twice in any object. A panic inside a method is an `Internal` error. Lengths are counted in characters.

mod methods;
mod params;

use crate::trust::json::Once;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt;
use std::io::{self, BufRead, Write};

/// Longest request line, in bytes.
pub const MAX_LINE: usize = 64 << 20;

/// Values in one request; a value takes more memory than its text.
pub const MAX_VALUES: usize = 1 << 20;
/// A shorter line cannot hold more of them than that.
const LARGE: usize = MAX_VALUES;

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    kind: &'static str,
    message: String,
}

impl Failure {
    fn new(kind: &'static str, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into() }
    }

    fn value(message: impl Into<String>) -> Failure {
        Failure::new("ValueError", message)
    }

    fn params(message: impl Into<String>) -> Failure {
        Failure::new("InvalidParams", message)
    }
}

/// Serves requests from `input` to `output` until end of file; each reply is flushed.
///
/// # Errors
/// Only when reading or writing itself fails.
pub fn serve(mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let whole = match read_line(&mut input, &mut line)? {
            Line::End => return Ok(()),
            Line::Whole => true,
            Line::TooLong => false,
        };
        if whole && line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let mut reply = if whole { answer(&line) } else { too_long() };
        reply.push(b'\n');
        output.write_all(&reply)?;
        output.flush()?;
        if line.capacity() > 1 << 20 {
            line = Vec::new();
        }
    }
}

enum Line {
    Whole,
    TooLong,
    End,
}

/// One line without its end; of a line that is too long the rest is read and dropped.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Line> {
    let mut long = false;
    let mut any = false;
    loop {
        let buffer = match input.fill_buf() {
            Ok(buffer) => buffer,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        if buffer.is_empty() {
            return Ok(if long {
                Line::TooLong
            } else if any {
                Line::Whole
            } else {
                Line::End
            });
        }
        any = true;
        let (part, used, done) = match memchr::memchr(b'\n', buffer) {
            Some(end) => (buffer.get(..end).unwrap_or_default(), end + 1, true),
            None => (buffer, buffer.len(), false),
        };
        if line.len() + part.len() > MAX_LINE {
            long = true;
            line.clear();
        }
        if !long {
            line.extend_from_slice(part);
        }
        input.consume(used);
        if done {
            return Ok(if long { Line::TooLong } else { Line::Whole });
        }
    }
}

fn too_long() -> Vec<u8> {
    reply(None, Err(Failure::new("InvalidRequest", format!("the line is longer than {MAX_LINE} bytes"))))
}

/// What a method answers.
pub(crate) enum Body {
    /// A value.
    Value(Value),
    /// The text of a JSON value, with parts that stay as the caller wrote them.
    Written(String),
}

#[derive(Default)]
struct Request<'a> {
    id: Option<&'a RawValue>,
    method: Option<Value>,
    params: Option<Value>,
}

/// Other keys are passed over. A key that stands twice in any object is an error: a caller that takes the first for the
/// request and jess, which would take the last, would mean different requests.
impl<'de> Deserialize<'de> for Request<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Request<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Request<'de>, A::Error> {
        let mut request = Request::default();
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "id" => request.id = map.next_value()?,
                "method" => request.method = map.next_value::<Option<Once>>()?.map(|once| once.0),
                "params" => request.params = map.next_value::<Option<Once>>()?.map(|once| once.0),
                _ => drop(map.next_value::<Once>()?),
            }
            if !seen.insert(key) {
                return Err(A::Error::custom("duplicate key"));
            }
        }
        Ok(request)
    }
}

/// The reply to one request line.
pub fn answer(line: &[u8]) -> Vec<u8> {
    let invalid = |message: String| Failure::new("InvalidRequest", message);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let Ok(text) = std::str::from_utf8(line) else {
        return reply(None, Err(invalid("the line is not UTF-8".into())));
    };
    if !text.trim_start().starts_with('{') {
        return reply(None, Err(invalid("a request is a JSON object on one line".into())));
    }
    if line.len() > LARGE && values(line) > MAX_VALUES {
        return reply(id_alone(text), Err(invalid(format!("the line holds more than {MAX_VALUES} values"))));
    }
    let request: Request<'_> = match serde_json::from_str(text) {
        Ok(request) => request,
        Err(error) => return reply(id_alone(text), Err(invalid(format!("not a JSON request: {error}")))),
    };
    let id = request.id.filter(|id| usable(id));
    if request.id.is_some() && id.is_none() {
        return reply(None, Err(invalid("the id is neither a number nor a string".into())));
    }
    let Some(Value::String(method)) = request.method else {
        return reply(id, Err(invalid("the request has no string \"method\"".into())));
    };
    let params = request.params;
    let outcome =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| methods::call(&method, params, text)));
    reply(
        id,
        outcome
            .unwrap_or_else(|_| Err(Failure::new("Internal", format!("a defect in jess stopped {method}")))),
    )
}

/// How many values a JSON text holds at most: commas, colons and brackets outside strings.
fn values(line: &[u8]) -> usize {
    let (mut count, mut at) = (0, 0);
    while let Some(b) = line.get(at) {
        match b {
            b'"' => {
                at += 1;
                while let Some(found) = memchr::memchr2(b'"', b'\\', line.get(at..).unwrap_or_default()) {
                    at += found;
                    if line.get(at) == Some(&b'"') {
                        break;
                    }
                    at += 2;
                }
            }
            b',' | b':' | b'[' | b'{' => count += 1,
            _ => {}
        }
        at += 1;
    }
    count
}

/// A number, or a string that is text.
fn usable(id: &RawValue) -> bool {
    match id.get().as_bytes().first() {
        Some(b'"') => serde_json::from_str::<String>(id.get()).is_ok(),
        Some(b'-' | b'0'..=b'9') => true,
        _ => false,
    }
}

/// The id of a line that is JSON but holds something that is no text, such as a lone surrogate.
fn id_alone(text: &str) -> Option<&RawValue> {
    #[derive(serde::Deserialize)]
    struct Id<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    serde_json::from_str::<Id<'_>>(text).ok()?.id.filter(|id| usable(id))
}

fn reply(id: Option<&RawValue>, outcome: Result<Body, Failure>) -> Vec<u8> {
    let id = id.map_or("null", RawValue::get);
    let (key, body) = match outcome {
        Ok(result) => ("result", result),
        Err(failure) => ("error", Body::Value(json!({ "kind": failure.kind, "message": failure.message }))),
    };
    let mut out = format!("{{\"id\": {id}, \"{key}\": ").into_bytes();
    let written = match &body {
        Body::Value(value) => serde_json::to_writer(&mut out, value).is_ok(),
        Body::Written(text) => {
            out.extend_from_slice(text.as_bytes());
            true
        }
    };
    if !written {
        out = br#"{"id": null, "error": {"kind": "Internal", "message": "the reply could not be written"}"#
            .to_vec();
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests;
