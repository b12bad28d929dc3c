//! Server-sent events: where one ends, what its lines say, and how one is written.

use super::stream::Stop;
use serde_json::Value;

/// The index after the empty line that ends the first event at or after `from`.
pub(super) fn end_of_event(buf: &[u8], from: usize) -> Option<usize> {
    let rest = buf.get(from..)?;
    rest.iter().enumerate().filter(|(_, b)| **b == b'\n').find_map(|(at, _)| match rest.get(at + 1..) {
        Some([b'\n', ..]) => Some(from + at + 2),
        Some([b'\r', b'\n', ..]) => Some(from + at + 3),
        _ => None,
    })
}

/// An event as its lines say.
pub(super) struct Framed {
    pub name: Vec<u8>,
    pub data: Vec<u8>,
}

/// Reads the lines of an event. What two readers could read in two ways is refused: a carriage return that ends a line
/// for some and not for others, a byte order mark, a field that the format does not have.
pub(super) fn framed(raw: &[u8]) -> Result<Framed, Stop> {
    let (mut name, mut data, mut lines) = (Vec::new(), Vec::new(), 0);
    for line in raw.split(|b| *b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.contains(&b'\r') {
            return Err(Stop::Malformed);
        }
        let value = |v: &[u8]| v.strip_prefix(b" ").unwrap_or(v).to_vec();
        match line {
            [] | [b':', ..] => {}
            _ if line.starts_with(b"id:") || line.starts_with(b"retry:") => {}
            _ if line.starts_with(b"event:") => name = value(line.get(6..).unwrap_or_default()),
            _ if line.starts_with(b"data:") => {
                if lines > 0 {
                    data.push(b'\n');
                }
                lines += 1;
                data.extend(value(line.get(5..).unwrap_or_default()));
            }
            _ => return Err(Stop::Malformed),
        }
    }
    Ok(Framed { name, data })
}

/// Reads the data of an event, and says whether half of a surrogate pair was replaced in it: models cut texts there,
/// and readers differ in what they make of it.
pub(super) fn read(data: &[u8]) -> Result<(Value, bool), Stop> {
    if let Ok(event) = serde_json::from_slice(data) {
        return Ok((event, false));
    }
    let mended = mend_surrogates(data);
    serde_json::from_slice(&mended).map(|event| (event, true)).map_err(|_| Stop::Malformed)
}

/// The same JSON with each escaped half of a surrogate pair as the replacement character.
fn mend_surrogates(data: &[u8]) -> Vec<u8> {
    let half = |at: usize| -> Option<u16> {
        let digits = data.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut out, mut at) = (Vec::with_capacity(data.len()), 0);
    while let Some(byte) = data.get(at) {
        let length = match (byte, half(at), half(at + 6)) {
            (b'\\', Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (b'\\', Some(0xd800..0xe000), _) => {
                out.extend_from_slice(b"\\ufffd");
                at += 6;
                continue;
            }
            (b'\\', None, _) => 2,
            (b'\\', Some(_), _) => 6,
            _ => 1,
        };
        out.extend_from_slice(data.get(at..(at + length).min(data.len())).unwrap_or_default());
        at += length;
    }
    out
}

/// Writes an event under the name of its type.
pub(super) fn write_data(out: &mut Vec<u8>, event: &Value) {
    match event.get("type").and_then(Value::as_str).filter(|k| !k.is_empty()) {
        // The API chose the name; a line break in it would begin another field.
        Some(kind) => {
            let plain: String = kind.chars().filter(|c| !c.is_control()).collect();
            out.extend_from_slice(format!("event: {plain}\ndata: {event}\n\n").as_bytes());
        }
        None => out.extend_from_slice(format!("data: {event}\n\n").as_bytes()),
    }
}

pub(super) fn write_event(out: &mut Vec<u8>, name: &str, event: &Value) {
    out.extend_from_slice(format!("event: {name}\ndata: {event}\n\n").as_bytes());
}
