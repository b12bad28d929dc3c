//! YAML to a JSON value, bounded: frontmatter, CodeQL packs.
//!
//! The parser yields events, so nothing expands: an alias is an error, and with it every "billion laughs" document.
//! A duplicate key, a merge key, a key that is no scalar, a second document, nesting beyond [`MAX_DEPTH`] and text
//! beyond [`MAX_BYTES`] are errors too.

use crate::untrusted::Untrusted;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// The deepest nesting that is read.
pub const MAX_DEPTH: usize = 64;

/// The longest text that is read, in bytes. The parser can hold some two hundred times as much while it looks for the
/// end of a key.
pub const MAX_BYTES: usize = 65_536;

/// The most events that are read; a file of [`super::read::MAX_BYTES`] cannot hold many more useful ones.
pub const MAX_EVENTS: usize = 200_000;

enum Open {
    List(Vec<Value>),
    Map(Map<String, Value>, Option<String>),
}

/// Parses `text` as one YAML document. An empty document is `null`.
///
/// # Errors
/// What is wrong, in words that hold nothing of the document.
pub fn parse(text: &Untrusted<impl AsRef<str>>) -> Result<Untrusted<Value>, &'static str> {
    let text = text.inspect().as_ref();
    if text.len() > MAX_BYTES {
        return Err("larger than 64 KiB");
    }
    let mut stack: Vec<Open> = Vec::new();
    let mut root: Option<Value> = None;
    let mut documents = 0;
    for (n, event) in Parser::new_from_str(text).enumerate() {
        if n >= MAX_EVENTS {
            return Err("too many values");
        }
        let (event, _) = event.map_err(|_| "not YAML")?;
        let done = match event {
            Event::Alias(_) => return Err("alias"),
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    return Err("more than one document");
                }
                None
            }
            Event::Scalar(text, style, _, tag) => {
                Some(scalar(&text, style == ScalarStyle::Plain && tag.is_none()))
            }
            Event::SequenceStart(..) => {
                push(&mut stack, Open::List(Vec::new()))?;
                None
            }
            Event::MappingStart(..) => {
                push(&mut stack, Open::Map(Map::new(), None))?;
                None
            }
            Event::SequenceEnd | Event::MappingEnd => Some(match stack.pop() {
                Some(Open::List(items)) => Value::Array(items),
                Some(Open::Map(map, None)) => Value::Object(map),
                _ => return Err("not YAML"),
            }),
            _ => None,
        };
        if let Some(value) = done {
            match stack.last_mut() {
                None => root = Some(value),
                Some(Open::List(items)) => items.push(value),
                Some(Open::Map(map, key)) => match key.take() {
                    None => *key = Some(key_text(value)?),
                    // Some readers merge what follows into the map, others do not.
                    Some(key) if key == "<<" => return Err("merge key"),
                    Some(key) => {
                        if map.insert(key, value).is_some() {
                            return Err("duplicate key");
                        }
                    }
                },
            }
        }
    }
    Ok(Untrusted::new(root.unwrap_or(Value::Null)))
}

fn push(stack: &mut Vec<Open>, open: Open) -> Result<(), &'static str> {
    if stack.len() >= MAX_DEPTH {
        return Err("nested too deeply");
    }
    stack.push(open);
    Ok(())
}

fn key_text(value: Value) -> Result<String, &'static str> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        _ => Err("a key that is no scalar"),
    }
}

fn scalar(text: &str, plain: bool) -> Value {
    if !plain {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match text.parse::<i64>() {
            Ok(n) => Value::from(n),
            Err(_) => Value::String(text.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Value, &'static str> {
        parse(&Untrusted::new(text)).map(|v| v.inspect().clone())
    }

    #[test]
    fn ordinary_shapes_are_read() {
        let text = "name: x\n'hooks':\n  Stop:\n  - hooks:\n    - {type: command, command: ./x}\nn: 3\nq: '3'\nt: true\ne:\n";
        assert_eq!(
            read(text).unwrap(),
            json!({"name": "x", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./x"}]}]},
                   "n": 3, "q": "3", "t": true, "e": null})
        );
    }

    #[test]
    fn aliases_duplicates_and_depth_are_errors() {
        assert_eq!(read("a: &x [1]\nb: *x\n"), Err("alias"));
        assert_eq!(read("a: 1\na: 2\n"), Err("duplicate key"));
        assert_eq!(read("<<: {a: 1}\n"), Err("merge key"));
        assert!(read(&"#".repeat(MAX_BYTES)).is_ok());
        assert_eq!(read(&"#".repeat(MAX_BYTES + 1)), Err("larger than 64 KiB"));
        assert_eq!(read("? [a]\n: b\n"), Err("a key that is no scalar"));
        assert_eq!(read("a: 1\n---\nb: 2\n"), Err("more than one document"));
        assert!(read(&"[".repeat(MAX_DEPTH + 1)).is_err());
        assert!(read(&format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH))).is_ok());
    }
}
