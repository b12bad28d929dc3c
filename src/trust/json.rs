//! Strict JSON, as the client reads its settings: no comments, no trailing commas, one optional BOM.
//!
//! On top of what `serde_json` refuses (NaN, lone surrogates, invalid UTF-8, text after the document), a duplicate key
//! is an error: a first-wins and a last-wins reader would see different documents.

use crate::untrusted::Untrusted;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// The deepest nesting that is read. A deeper document is an error.
pub const MAX_DEPTH: usize = 100;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Parses `bytes`.
///
/// # Errors
/// What is wrong, in words that hold nothing of the document.
pub fn parse(bytes: &Untrusted<impl AsRef<[u8]>>) -> Result<Untrusted<Value>, &'static str> {
    let bytes = bytes.inspect().as_ref();
    let text = bytes.strip_prefix(BOM).unwrap_or(bytes);
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err("empty file");
    }
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") || text.contains(&0) {
        return Err("not UTF-8 text");
    }
    let text = std::str::from_utf8(text).map_err(|_| "not UTF-8 text")?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict { depth: 0 }.deserialize(&mut reader).map_err(|e| explain(&e.to_string()))?;
    reader.end().map_err(|_| "text after the document")?;
    Ok(Untrusted::new(value))
}

fn explain(message: &str) -> &'static str {
    if message.starts_with(DUPLICATE) {
        "duplicate key"
    } else if message.starts_with(TOO_DEEP) || message.starts_with("recursion limit") {
        "nested too deeply"
    } else if message.contains("surrogate") || message.contains("unexpected end of hex escape") {
        "lone surrogate"
    } else {
        "not JSON"
    }
}

const DUPLICATE: &str = "duplicate key";
const TOO_DEEP: &str = "nested too deeply";

/// A part of a document, of any kind, whose objects have each key once: an error of the reader otherwise, and beyond
/// [`MAX_DEPTH`].
#[derive(Debug)]
pub(crate) struct Once(pub(crate) Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Once, D::Error> {
        Strict { depth: 0 }.deserialize(deserializer).map(Once)
    }
}

/// A value of any kind whose objects have each key once.
#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(self) -> Result<Strict, E> {
        let depth = self.depth + 1;
        if depth > MAX_DEPTH { Err(E::custom(TOO_DEEP)) } else { Ok(Strict { depth }) }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(inner)?;
            if object.insert(key, value).is_some() {
                return Err(A::Error::custom(DUPLICATE));
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> &'static str {
        parse(&Untrusted::new(text.as_bytes())).map(|_| "parsed").unwrap_or_else(|e| e)
    }

    #[test]
    fn each_malformed_shape_has_its_reason() {
        for (text, want) in [
            ("", "empty file"),
            (" \n", "empty file"),
            ("{\"a\":1,\"a\":2}", "duplicate key"),
            ("{\"o\":{\"a\":1,\"\\u0061\":2}}", "duplicate key"),
            ("{\"a\":NaN}", "not JSON"),
            ("{\"a\":1,}", "not JSON"),
            ("{// c\n}", "not JSON"),
            ("{} {}", "text after the document"),
            ("{\"a\":\"\\ud800\"}", "lone surrogate"),
            ("\u{feff}\u{feff}{}", "not JSON"),
            ("{}\0", "not UTF-8 text"),
        ] {
            assert_eq!(error(text), want, "{text:?}");
        }
    }

    #[test]
    fn depth_is_bounded_at_the_stated_limit() {
        let nested = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(error(&nested(MAX_DEPTH)), "parsed");
        assert_eq!(error(&nested(MAX_DEPTH + 1)), "nested too deeply");
        assert_eq!(error(&"[".repeat(200_000)), "nested too deeply");
    }

    #[test]
    fn one_bom_and_windows_line_ends_are_fine() {
        assert_eq!(error("\u{feff}{\r\n\"a\": [1, -2, 1.5, \"x\", null, true]}\r\n"), "parsed");
    }
}
