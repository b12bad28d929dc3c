//! Amazon's event stream, as Bedrock answers with it, rewritten as server-sent events of the Messages API.
//!
//! A message is: total length, length of its headers, CRC of those eight bytes, headers, payload, CRC of all before it;
//! numbers are 32-bit big-endian, the CRC is that of IEEE 802.3 (AWS SDK documentation, "Event stream encoding"). The
//! payload of a `chunk` is JSON whose `bytes` is the event in base64. Memory: one message, [`MAX_EVENT`] at most.

use super::stream::MAX_EVENT;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Bytes before the headers, and of the last CRC.
const PRELUDE: usize = 12;
const TRAILER: usize = 4;

/// The stream is not what Bedrock sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Reads one stream.
#[derive(Default)]
pub(super) struct Decoder {
    buf: Vec<u8>,
}

impl Decoder {
    /// Takes the next bytes and returns the events that are complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
        self.buf.extend_from_slice(bytes);
        let (mut out, mut at) = (Vec::new(), 0);
        while let Some(rest) = self.buf.get(at..).filter(|rest| rest.len() >= PRELUDE) {
            let total = number(rest, 0)?;
            let headers = number(rest, 4)?;
            if total > MAX_EVENT || headers.saturating_add(PRELUDE + TRAILER) > total {
                return Err(Malformed);
            }
            checked(rest, 8)?;
            let Some(message) = rest.get(..total) else { break };
            checked(message, total - TRAILER)?;
            let payload = message.get(PRELUDE + headers..total - TRAILER).ok_or(Malformed)?;
            event(payload, &mut out)?;
            at += total;
        }
        self.buf.drain(..at);
        Ok(out)
    }

    /// Whether the stream ended between two messages.
    pub(super) fn is_whole(&self) -> bool {
        self.buf.is_empty()
    }
}

fn number(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    let four = bytes.get(at..at + 4).and_then(|b| <[u8; 4]>::try_from(b).ok()).ok_or(Malformed)?;
    usize::try_from(u32::from_be_bytes(four)).map_err(|_| Malformed)
}

/// The CRC at `at` must be that of all bytes before it.
fn checked(bytes: &[u8], at: usize) -> Result<(), Malformed> {
    let sum = crc32fast::hash(bytes.get(..at).ok_or(Malformed)?);
    if usize::try_from(sum).ok() == Some(number(bytes, at)?) { Ok(()) } else { Err(Malformed) }
}

fn event(payload: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let payload: Value = serde_json::from_slice(payload).map_err(|_| Malformed)?;
    let data = match payload.get("bytes").and_then(Value::as_str) {
        Some(text) => STANDARD.decode(text).map_err(|_| Malformed)?,
        None => {
            // An exception in mid-stream: its message is all that it has.
            let message =
                payload.get("message").and_then(Value::as_str).unwrap_or("Bedrock ended the stream");
            let error =
                serde_json::json!({"type": "error", "error": {"type": "api_error", "message": message}});
            error.to_string().into_bytes()
        }
    };
    // Written again from what was read, on one line: a line break in it would begin another field.
    let event: Value = serde_json::from_slice(&data).map_err(|_| Malformed)?;
    let kind = event.get("type").and_then(Value::as_str).ok_or(Malformed)?;
    if !kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(Malformed);
    }
    out.extend_from_slice(format!("event: {kind}\ndata: {event}\n\n").as_bytes());
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// A message with `payload`, as Bedrock frames it.
    pub(in super::super) fn framed(payload: &[u8]) -> Vec<u8> {
        let name = b"\x0b:event-type\x07\x00\x05chunk";
        let total = (PRELUDE + name.len() + payload.len() + TRAILER) as u32;
        let mut out = total.to_be_bytes().to_vec();
        out.extend((name.len() as u32).to_be_bytes());
        out.extend(crc32fast::hash(&out).to_be_bytes());
        out.extend(name);
        out.extend(payload);
        out.extend(crc32fast::hash(&out).to_be_bytes());
        out
    }

    fn chunk(event: &Value) -> Vec<u8> {
        framed(json!({"bytes": STANDARD.encode(event.to_string()), "p": "abc"}).to_string().as_bytes())
    }

    #[test]
    fn events_come_out_as_server_sent_events_however_the_stream_is_cut() {
        let events = [json!({"type": "message_start", "message": {}}), json!({"type": "message_stop"})];
        let bytes: Vec<u8> = events.iter().flat_map(chunk).collect();
        for size in [1, 7, bytes.len()] {
            let mut decoder = Decoder::default();
            let out: Vec<u8> = bytes.chunks(size).flat_map(|c| decoder.push(c).unwrap()).collect();
            let expected: String = events
                .iter()
                .map(|e| format!("event: {}\ndata: {e}\n\n", e["type"].as_str().unwrap()))
                .collect();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            assert!(decoder.is_whole());
        }
    }

    #[test]
    fn an_exception_becomes_an_error_event() {
        let out = Decoder::default().push(&framed(br#"{"message":"too many requests"}"#)).unwrap();
        assert!(String::from_utf8(out).unwrap().starts_with("event: error\ndata: {\"type\":\"error\""));
    }

    #[test]
    fn what_is_not_framed_so_is_refused() {
        let good = chunk(&json!({"type": "ping"}));
        for at in [0, 5, 9, 20, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(Decoder::default().push(&bad).err(), Some(Malformed), "byte {at}");
        }
        assert!(Decoder::default().push(&chunk(&json!({"type": "a\nevent: b"}))).is_err());
        assert!(Decoder::default().push(&u32::MAX.to_be_bytes().repeat(3)).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Decoder::default().push(&bytes);
        }
    }
}
