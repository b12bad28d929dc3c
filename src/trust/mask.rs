//! Makes what was found printable: control characters escaped, secrets cut.

use crate::sanitise::for_terminal;
use crate::untrusted::Untrusted;
use serde_json::Value;
use std::sync::LazyLock;

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

/// `text` without credentials that are recognised by their shape.
fn without_tokens(text: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    for hit in crate::gate::secrets::find(text) {
        if let Some(before) = text.get(at..hit.start) {
            out.push_str(before);
            out.push_str("***");
            at = hit.end;
        }
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// A JSON document's text with its string values masked as a report masks them; keys stay.
pub fn json_text(text: &str) -> String {
    static STRING: LazyLock<Option<regex::Regex>> =
        LazyLock::new(|| regex::Regex::new(r#""((?:[^"\\\n]|\\.)*)"(\s*:)?"#).ok());
    let Some(pattern) = LazyLock::force(&STRING) else { return String::new() };
    let masked = pattern.replace_all(text, |hit: &regex::Captures<'_>| match hit.get(2) {
        Some(_) => hit.get(0).map_or(String::new(), |m| m.as_str().to_owned()),
        None => format!("\"{}\"", secret(hit.get(1).map_or("", |m| m.as_str()))),
    });
    masked.into_owned()
}

/// A key, server or event name.
pub fn name(text: &str) -> String {
    for_terminal(&Untrusted::new(without_tokens(text)), NAME)
}

/// A value that holds no secret (a mode, a boolean, a shape).
pub fn plain(text: &str) -> String {
    for_terminal(&Untrusted::new(without_tokens(text)), VALUE)
}

/// A link's target.
pub fn target(text: &str) -> String {
    for_terminal(&Untrusted::new(without_tokens(text)), TARGET)
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
    fn a_token_is_cut_wherever_it_stands() {
        let token = concat!("ghp_", "0123456789abcdefghijABCDEFGHIJ012345");
        for shown in [plain(token), name(token), target(&format!("x/{token}/y"))] {
            assert!(shown.contains("***") && !shown.contains("0123456789"), "{shown}");
        }
    }

    #[test]
    fn a_documents_values_are_masked_and_its_keys_are_not() {
        assert_eq!(
            json_text(
                "{\"env\": {\"KEY\": \"plain-value-111\"}, \"l\": [\"curl -u bob:hunter2\"], \"n\": 1}"
            ),
            "{\"env\": {\"KEY\": \"plain-va*** (15 chars)\"}, \"l\": [\"curl -u *** (19 chars)\"], \"n\": 1}"
        );
    }

    #[test]
    fn control_characters_are_escaped_in_names_and_masks() {
        assert_eq!(name("a\u{1b}[2Jb"), "a\\x1b[2Jb");
        assert!(secret("\u{1b}]0;x\u{7}yyyyyyyy").starts_with("\\x1b]0;x\\x07"));
    }
}
