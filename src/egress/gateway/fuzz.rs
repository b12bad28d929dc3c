//! The inspection of a model's words, for the fuzz target.

use super::eventstream::Decoder;
use super::scrub::Scrubber;
use super::stream::{Action, Dialect, Inspector};
use serde_json::Value;

/// What must not pass.
const SECRET: &str = "CANARY-7f3a9c1e5b";

/// Reads `stream` whole and in pieces of `size` bytes, in each dialect.
pub(in crate::egress) fn check(size: usize, stream: &[u8]) {
    let _ = Decoder::default().push(stream);
    let openai = |chat| Dialect::OpenAi { chat, hide_usage: true };
    for dialect in [Dialect::Messages, openai(true), openai(false)] {
        let whole = read(dialect, stream.len().max(1), stream);
        let pieces = read(dialect, size, stream);
        assert_eq!(whole.is_some(), pieces.is_some(), "{dialect:?}");
        for passed in [whole, pieces].into_iter().flatten() {
            // What a client reads as one text; a secret across two texts is none.
            for line in passed.split('\n').filter_map(|l| l.strip_prefix("data: ")) {
                if let Ok(event) = serde_json::from_str::<Value>(line) {
                    let delta = event.pointer("/delta/text").and_then(Value::as_str);
                    assert!(!delta.is_some_and(|text| text.contains(SECRET)), "{dialect:?}: {line}");
                }
            }
        }
    }
}

fn read(dialect: Dialect, size: usize, stream: &[u8]) -> Option<String> {
    let (hosts, secrets) = (Vec::new(), Scrubber::new([SECRET]));
    let mut inspector = Inspector::new(Action::Redact, &hosts, &secrets).reading(dialect);
    let mut out = Vec::new();
    for piece in stream.chunks(size) {
        out.extend(inspector.push(piece).ok()?);
    }
    out.extend(inspector.finish().ok()?);
    Some(String::from_utf8_lossy(&out).into_owned())
}
