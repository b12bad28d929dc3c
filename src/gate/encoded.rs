//! Secrets behind an encoding: base64, hexadecimal, URL escapes, reversed, taken apart character by character or glued
//! from string literals; and values known to be secret, in any of these forms.
//!
//! Each view is read once, so time stays linear. Views are not read into each other: two encodings on top of each other
//! are the sandbox's and the egress proxy's concern.

use super::secrets::{self, SecretHit};
use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// A hit in an encoded view; offsets are those of the encoded form in the original text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedHit {
    /// The kind of the secret, or `known-value`.
    pub kind: &'static str,
    /// `base64`, `hex`, `url-escaped`, `reversed`, `separated` or `plain`.
    pub encoding: &'static str,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl EncodedHit {
    /// `secret:kind`, with the encoding where there is one.
    pub fn label(&self) -> String {
        match self.encoding {
            "plain" => format!("secret:{}", self.kind),
            encoding => format!("secret:{} ({encoding})", self.kind),
        }
    }
}

/// Every secret of [`secrets::find`] that is hidden by one encoding.
pub fn find(text: &str) -> Vec<EncodedHit> {
    let mut hits = Vec::new();
    runs(
        text,
        24,
        |b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'_' | b'-' | b'='),
        |start, run| {
            if let Some(kind) = base64_secret(run) {
                hits.push(EncodedHit { kind, encoding: "base64", start, end: start + run.len() });
            }
        },
    );
    runs(
        text,
        32,
        |b| b.is_ascii_hexdigit() || matches!(b, b':' | b'\\' | b'x'),
        |start, run| {
            let digits: Vec<u8> = run.replace("\\x", "").bytes().filter(u8::is_ascii_hexdigit).collect();
            if let Some(kind) = unhex(&digits).and_then(|bytes| secret_in(&bytes)) {
                hits.push(EncodedHit { kind, encoding: "hex", start, end: start + run.len() });
            }
        },
    );
    runs(
        text,
        12,
        |b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'<' | b'>'),
        |start, run| {
            if run.bytes().filter(|b| *b == b'%').count() >= 3
                && let Some(kind) = secret_in(&unescape(run))
            {
                hits.push(EncodedHit { kind, encoding: "url-escaped", start, end: start + run.len() });
            }
        },
    );
    reversed(text, &mut hits);
    separated(text, &mut hits);
    hits.sort_by_key(|h| h.start);
    let mut end = 0;
    hits.retain(|h| {
        let keep = h.start >= end;
        if keep {
            end = h.end;
        }
        keep
    });
    hits
}

fn secret_in(bytes: &[u8]) -> Option<&'static str> {
    let text = std::str::from_utf8(bytes).ok()?;
    secrets::find(text)
        .into_iter()
        .map(|h| h.kind)
        .find(|kind| !matches!(*kind, "generic-secret" | "password"))
}

/// Calls `each` with every run of at least `min` bytes that `keep`.
fn runs(text: &str, min: usize, keep: impl Fn(u8) -> bool, mut each: impl FnMut(usize, &str)) {
    let mut start = None;
    for (at, b) in text.bytes().chain([0]).enumerate() {
        match (keep(b), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                if at - from >= min
                    && let Some(run) = text.get(from..at)
                {
                    each(from, run);
                }
                start = None;
            }
            _ => {}
        }
    }
}

fn base64_secret(run: &str) -> Option<&'static str> {
    const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    static STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
    static URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, CONFIG);
    // A run may have a word glued in front of the encoding (`key=`), and may be cut at its end.
    run.split('=').filter(|part| part.len() >= 24).find_map(|part| {
        [&STANDARD, &URL_SAFE].iter().find_map(|engine| {
            let whole = part.get(..part.len() - usize::from(part.len() % 4 == 1))?;
            secret_in(&engine.decode(whole).ok()?)
        })
    })
}

fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    digits
        .chunks_exact(2)
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok()))
        .collect()
}

fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        let hex =
            text.get(at + 1..at + 3).filter(|_| b == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match hex {
            Some(value) => {
                out.push(value);
                at += 3;
            }
            None => {
                out.push(b);
                at += 1;
            }
        }
    }
    out
}

fn reversed(text: &str, hits: &mut Vec<EncodedHit>) {
    let backwards: String = text.chars().rev().collect();
    for SecretHit { kind, start, end } in secrets::find(&backwards) {
        if matches!(kind, "generic-secret" | "password" | "url-password" | "url-query-secret" | "url-token") {
            continue; // prose read backwards has separators in odd places
        }
        hits.push(EncodedHit {
            kind,
            encoding: "reversed",
            start: text.len() - end,
            end: text.len() - start,
        });
    }
}

/// Single characters with something between them: `g h p _ …`, `['g', 'h', …]`, `g-h-p-…`; and literals glued by `+`.
fn separated(text: &str, hits: &mut Vec<EncodedHit>) {
    let mut gathered = String::new();
    let mut from = 0;
    let mut gap = 0;
    let mut alone = true;
    let flush = |gathered: &mut String, from: usize, to: usize, hits: &mut Vec<EncodedHit>| {
        if gathered.len() >= 16
            && let Some(kind) = secret_in(gathered.as_bytes())
        {
            hits.push(EncodedHit { kind, encoding: "separated", start: from, end: to });
        }
        gathered.clear();
    };
    let bytes = text.as_bytes();
    let token = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    for (at, &b) in bytes.iter().enumerate() {
        let next_is_token = bytes.get(at + 1).copied().is_some_and(token);
        if token(b) {
            if alone && !next_is_token && gap <= 6 {
                if gathered.is_empty() {
                    from = at;
                }
                gathered.push(char::from(b));
            } else if next_is_token || !alone {
                flush(&mut gathered, from, at, hits);
            }
            gap = 0;
            alone = false;
        } else {
            gap += 1;
            alone = true;
            if gap > 6 {
                flush(&mut gathered, from, at, hits);
            }
        }
    }
    flush(&mut gathered, from, text.len(), hits);
    glued(text, hits);
}

/// `"ghp_ab" + "cd…"`: string literals joined in code.
fn glued(text: &str, hits: &mut Vec<EncodedHit>) {
    let mut joined = String::with_capacity(text.len());
    let mut origin: Vec<(usize, usize)> = vec![(0, 0)];
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut copied = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\'', bytes.get(at..).unwrap_or_default()) {
        let quote = at + found;
        let between = bytes.get(quote + 1..).unwrap_or_default();
        let len = between
            .iter()
            .take(16)
            .take_while(|b| b.is_ascii_whitespace() || matches!(b, b'+' | b'.' | b'\\' | b','))
            .count();
        let plus = between.get(..len).is_some_and(|gap| gap.iter().any(|b| matches!(b, b'+' | b'.' | b'\\')));
        if plus && between.get(len).is_some_and(|b| matches!(b, b'"' | b'\'')) {
            joined.push_str(text.get(copied..quote).unwrap_or_default());
            copied = quote + len + 2;
            origin.push((joined.len(), copied));
            at = copied;
        } else {
            at = quote + 1;
        }
    }
    if copied == 0 {
        return;
    }
    joined.push_str(text.get(copied..).unwrap_or_default());
    let back = |offset: usize| {
        let index = origin.partition_point(|o| o.0 <= offset).saturating_sub(1);
        origin.get(index).map_or(offset, |(joined_at, text_at)| text_at + (offset - joined_at))
    };
    for hit in secrets::find(&joined) {
        let (start, end) = (back(hit.start), back(hit.end.saturating_sub(1)) + 1);
        if end - start > hit.end - hit.start && !matches!(hit.kind, "generic-secret" | "password") {
            hits.push(EncodedHit { kind: hit.kind, encoding: "separated", start, end });
        }
    }
}

/// Values that must not leave in any form: canaries, and the keys of the run itself.
pub struct Known {
    forms: Option<AhoCorasick>,
    names: Vec<&'static str>,
    collapsed: Option<AhoCorasick>,
}

impl Known {
    /// Shortest value that is looked for, in bytes; shorter ones would be found in ordinary text.
    pub const MIN: usize = 8;

    /// The values, each at least [`Known::MIN`] bytes; shorter ones are left out.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Known {
        let mut forms: Vec<String> = Vec::new();
        let mut names = Vec::new();
        let mut collapsed = Vec::new();
        for value in values.into_iter().filter(|v| v.len() >= Known::MIN) {
            let mut add = |form: String, name| {
                forms.push(form);
                names.push(name);
            };
            add(value.to_string(), "plain");
            add(value.chars().rev().collect(), "reversed");
            add(value.bytes().map(|b| format!("{b:02x}")).collect(), "hex");
            add(value.bytes().map(|b| format!("%{b:02x}")).collect(), "url-escaped");
            add(value.bytes().map(|b| format!("\\x{b:02x}")).collect(), "hex");
            for lead in 0..3usize {
                // At each alignment the characters in the middle do not depend on the neighbours.
                let mut bytes = vec![0u8; lead];
                bytes.extend_from_slice(value.as_bytes());
                for engine in
                    [&base64::engine::general_purpose::STANDARD, &base64::engine::general_purpose::URL_SAFE]
                {
                    let encoded = engine.encode(&bytes);
                    let from = (lead * 4).div_ceil(3);
                    let to = bytes.len() / 3 * 4;
                    add(encoded.get(from..to.max(from)).unwrap_or_default().to_string(), "base64");
                }
            }
            let plain: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
            if plain.len() >= Known::MIN {
                collapsed.push(plain);
            }
        }
        let build = |forms: &[String]| AhoCorasick::builder().ascii_case_insensitive(true).build(forms).ok();
        Known { forms: build(&forms), names, collapsed: build(&collapsed) }
    }

    /// Every place where one of the values stands.
    pub fn find(&self, text: &str) -> Vec<EncodedHit> {
        let mut hits = Vec::new();
        if let Some(forms) = &self.forms {
            for m in forms.find_iter(text).filter(|m| !m.is_empty()) {
                let encoding = self.names.get(m.pattern().as_usize()).copied().unwrap_or("plain");
                hits.push(EncodedHit { kind: "known-value", encoding, start: m.start(), end: m.end() });
            }
        }
        if let Some(collapsed) = &self.collapsed {
            let places: Vec<(usize, char)> =
                text.char_indices().filter(|(_, c)| c.is_ascii_alphanumeric()).collect();
            let plain: String = places.iter().map(|p| p.1).collect();
            for m in collapsed.find_iter(&plain) {
                if let (Some(first), Some(last)) = (places.get(m.start()), places.get(m.end() - 1)) {
                    let (start, end) = (first.0, last.0 + 1);
                    if !hits.iter().any(|h| h.start < end && start < h.end) {
                        hits.push(EncodedHit { kind: "known-value", encoding: "separated", start, end });
                    }
                }
            }
        }
        hits.sort_by_key(|h| h.start);
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> String {
        format!("ghp_{}", "a1B2c3D4e5F6".repeat(3))
    }

    fn forms(token: &str) -> Vec<(&'static str, String)> {
        let quoted: Vec<String> = token.chars().map(|c| format!("'{c}'")).collect();
        let spaced: Vec<String> = token.chars().map(String::from).collect();
        vec![
            ("base64", base64::engine::general_purpose::STANDARD.encode(token)),
            ("base64", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(format!("token: {token}"))),
            ("hex", token.bytes().map(|b| format!("{b:02x}")).collect()),
            ("hex", token.bytes().map(|b| format!("\\x{b:02x}")).collect()),
            ("url-escaped", token.bytes().map(|b| format!("%{b:02X}")).collect()),
            ("reversed", token.chars().rev().collect()),
            ("separated", format!("[{}]", quoted.join(", "))),
            ("separated", spaced.join(" ")),
            ("separated", spaced.join("-")),
            ("separated", format!("\"{}\" + \"{}\"", &token[..12], &token[12..])),
        ]
    }

    #[test]
    fn a_secret_is_found_behind_each_encoding() {
        for (encoding, form) in forms(&token()) {
            let text = format!("before {form} after");
            let hits = find(&text);
            assert!(
                hits.iter().any(|h| h.encoding == encoding && h.start <= 9 && h.end + 8 >= text.len() - 6),
                "{encoding} {form} {hits:?}"
            );
        }
    }

    #[test]
    fn a_known_value_is_found_in_every_form() {
        let value = "Canary-93vQx7-Lm42";
        let known = Known::new([value, "short"]);
        for (encoding, form) in forms(value) {
            assert!(!known.find(&format!("x {form} y")).is_empty(), "{encoding} {form}");
        }
        assert!(known.find(&value.to_lowercase()).len() == 1);
        assert!(known.find("short Canary-93").is_empty());
    }

    #[test]
    fn ordinary_encoded_data_is_nothing() {
        for text in [
            "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "data SGVsbG8gd29ybGQsIHRoaXMgaXMgYSBwbGFpbiBzZW50ZW5jZQ==",
            "a b c d e f g h i j k l m n o p q r s t u v w x y z",
            "path%20with%20many%20spaces%2Fand%2Fslashes",
        ] {
            assert_eq!(find(text), [], "{text}");
        }
    }
}
