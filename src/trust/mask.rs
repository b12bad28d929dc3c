//! Makes what was found printable: control characters escaped, secrets cut.

use crate::sanitise::for_terminal;
use crate::untrusted::Untrusted;
use serde_json::Value;

/// Characters of a masked value that stay readable.
const KEEP: usize = 8;
/// Longest printed name, in characters.
const NAME: usize = 40;
/// Longest printed value, in characters.
const VALUE: usize = 80;
/// Longest printed link target, in characters.
const TARGET: usize = 120;
/// Longest printed path, in characters.
const PATH: usize = 400;

/// A key, server or event name.
pub fn name(text: &str) -> String {
    for_terminal(&Untrusted::new(text), NAME)
}

/// A value that holds no secret (a mode, a boolean, a shape).
pub fn plain(text: &str) -> String {
    for_terminal(&Untrusted::new(text), VALUE)
}

/// A link's target.
pub fn target(text: &str) -> String {
    for_terminal(&Untrusted::new(text), TARGET)
}

/// A path in a report.
pub fn path(text: &str) -> String {
    for_terminal(&Untrusted::new(text), PATH)
}

/// The first eight characters and the length; only the length when there are no more than eight.
pub fn secret(text: &str) -> String {
    let n = text.chars().count();
    if n == 0 {
        return "(empty)".to_string();
    }
    if n <= KEEP {
        return format!("*** ({n} chars)");
    }
    let head: String = text.chars().take(KEEP).collect();
    format!("{}*** ({n} chars)", plain(&head))
}

/// The length alone.
pub fn hidden(text: &str) -> String {
    match text.chars().count() {
        0 => "(empty)".to_string(),
        n => format!("*** ({n} chars)"),
    }
}

/// Scheme and host of a URL, and its length; masked like a secret when it has none.
pub fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return secret(text) };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if scheme.is_empty() || host.is_empty() || host.contains("${") {
        return secret(text);
    }
    format!("{}://{}/*** ({} chars)", name(scheme), plain(host), text.chars().count())
}

/// Any JSON value: strings masked, scalars shown, containers by shape.
pub fn json(value: &Value) -> String {
    match value {
        Value::String(text) => secret(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => plain(&value.to_string()),
        Value::Array(items) => match items.as_slice() {
            [Value::String(one)] => format!("[{}]", secret(one)),
            items => format!("[{} entries]", items.len()),
        },
        Value::Object(map) => keys(map),
    }
}

/// The sorted keys of an object, comma-joined.
pub fn keys(map: &serde_json::Map<String, Value>) -> String {
    let mut keys: Vec<&str> = map.keys().map(String::as_str).collect();
    keys.sort_unstable();
    if keys.is_empty() { "(no keys)".to_string() } else { plain(&format!("keys: {}", keys.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_secret_shows_nothing_of_itself() {
        assert_eq!(secret("hunter2"), "*** (7 chars)");
        assert_eq!(secret("curl https://x/?k=sk-1"), "curl htt*** (22 chars)");
        assert_eq!(hidden("tok"), "*** (3 chars)");
    }

    #[test]
    fn a_url_keeps_scheme_and_host_alone() {
        assert_eq!(url("https://u:p@h.example/a?t=1"), "https://h.example/*** (27 chars)");
        assert_eq!(url("x-secret-token-in-it"), "x-secret*** (20 chars)");
    }

    #[test]
    fn control_characters_are_escaped_in_names_and_masks() {
        assert_eq!(name("a\u{1b}[2Jb"), "a\\x1b[2Jb");
        assert!(secret("\u{1b}]0;x\u{7}yyyyyyyy").starts_with("\\x1b]0;x\\x07"));
    }
}
