//! JSON, with comments and in lines: strings that are escaped, and rows of strings of one list.

use super::stitch::Stitch;
use crate::scan::decode::View;
use jsonc_parser::tokens::Token;
use jsonc_parser::{Scanner, ScannerOptions};

/// Lists inside each other that are told apart.
const DEPTH: usize = 512;
/// Times that the scanner goes on behind what is no JSON.
const AGAIN: usize = 32;

/// Whether a text with this extension and head is JSON.
pub(super) fn is(extension: &str, head: &str) -> bool {
    if matches!(
        extension,
        "json"
            | "jsonc"
            | "json5"
            | "jsonl"
            | "ndjson"
            | "ipynb"
            | "har"
            | "sarif"
            | "geojson"
            | "webmanifest"
    ) {
        return true;
    }
    let head = head.trim_start();
    let Some(rest) = head.strip_prefix(['{', '[']) else { return false };
    let list = head.starts_with('[');
    let next = rest.trim_start().chars().next();
    matches!(next, Some('"')) || list && matches!(next, Some('{' | '['))
}

/// The view of the strings in `text`.
pub(super) fn views(text: &str, out: &mut Vec<View>) {
    let mut stitch = Stitch::default();
    let mut from = 0;
    for _ in 0..AGAIN {
        let Some(rest) = text.get(from..).filter(|r| !r.is_empty()) else { break };
        match strings(text, rest, from, &mut stitch) {
            Some(stopped) => from = text.ceil_char_boundary(stopped),
            None => break,
        }
    }
    out.extend(stitch.view("json string"));
}

/// Reads up to the end, or to what is no JSON, and returns where to go on behind the latter.
fn strings(text: &str, rest: &str, from: usize, stitch: &mut Stitch) -> Option<usize> {
    let mut scanner = Scanner::new(rest, &ScannerOptions::default());
    // For each open bracket, whether it is a list; a row of strings is one block.
    let mut lists: Vec<bool> = Vec::new();
    let mut deeper = 0usize;
    loop {
        let token = match scanner.scan() {
            Ok(Some(token)) => token,
            Ok(None) => break,
            Err(_) => {
                row_ends(stitch);
                return Some(broken(text, from + scanner.token_start(), stitch));
            }
        };
        match token {
            Token::OpenBrace | Token::OpenBracket => {
                row_ends(stitch);
                if lists.len() < DEPTH {
                    lists.push(matches!(token, Token::OpenBracket));
                } else {
                    deeper += 1;
                }
            }
            Token::CloseBrace | Token::CloseBracket => {
                row_ends(stitch);
                match deeper.checked_sub(1) {
                    Some(n) => deeper = n,
                    None => drop(lists.pop()),
                }
            }
            Token::String(_) => {
                let (a, b) = (from + scanner.token_start() + 1, from + scanner.token_end().saturating_sub(1));
                unescape(text.as_bytes(), a, b, stitch);
                if lists.last() != Some(&true) {
                    row_ends(stitch);
                }
            }
            Token::Comma | Token::CommentLine(_) | Token::CommentBlock(_) => {}
            _ => row_ends(stitch),
        }
    }
    row_ends(stitch);
    None
}

/// Steps over what is no JSON at `at`: a string with an escape that is none, or a sign.
fn broken(text: &str, at: usize, stitch: &mut Stitch) -> usize {
    let source = text.as_bytes();
    if source.get(at) != Some(&b'"') {
        let rest = source.get(at + 1..).unwrap_or_default();
        return rest.iter().position(|b| b"\"{}[],:\n".contains(b)).map_or(text.len(), |p| at + 1 + p);
    }
    let mut end = at + 1;
    while let Some(p) = source.get(end..).and_then(|s| memchr::memchr2(b'"', b'\\', s)) {
        end += p;
        if source.get(end) == Some(&b'"') {
            unescape(source, at + 1, end, stitch);
            row_ends(stitch);
            return end + 1;
        }
        end += 2;
    }
    at + 1
}

fn row_ends(stitch: &mut Stitch) {
    let plain = stitch.plain();
    stitch.close(!plain);
}

/// Appends the string `source[from..to]` without its escapes.
pub(super) fn unescape(source: &[u8], from: usize, to: usize, stitch: &mut Stitch) {
    let mut at = from;
    while let Some(p) = source.get(at..to).and_then(|s| memchr::memchr(b'\\', s)).map(|p| at + p) {
        stitch.verbatim(source, at, p);
        let (c, len) = escape(source.get(p..to).unwrap_or_default());
        match c {
            Some(c) => stitch.character(c, p, p + len),
            None => stitch.nothing(),
        }
        at = p + len;
    }
    stitch.verbatim(source, at, to);
}

/// What the escape at the head of `text` stands for, and its length.
fn escape(text: &[u8]) -> (Option<char>, usize) {
    let hex = |from: usize, n: usize| -> Option<u32> {
        let digits = text.get(from..from + n)?;
        digits.iter().try_fold(0u32, |v, b| Some(v << 4 | (*b as char).to_digit(16)?))
    };
    match text.get(1) {
        Some(b'n' | b'r') => (Some('\n'), 2),
        Some(b't') => (Some('\t'), 2),
        Some(b'b' | b'f' | b'v' | b'0') => (Some(' '), 2),
        // The string goes on in the next line.
        Some(b'\n') => (None, 2),
        Some(b'\r') => (None, if text.get(2) == Some(&b'\n') { 3 } else { 2 }),
        Some(b'x') => match hex(2, 2).and_then(char::from_u32) {
            Some(c) => (Some(c), 4),
            None => (None, 2),
        },
        Some(b'U') => match hex(2, 8).and_then(char::from_u32) {
            Some(c) => (Some(c), 10),
            None => (Some('U'), 2),
        },
        Some(b'u') => {
            if text.get(2) == Some(&b'{') {
                let digits = text.iter().skip(3).take(7).position(|b| *b == b'}');
                let c = digits.and_then(|n| hex(3, n)).and_then(char::from_u32);
                return (c, digits.map_or(2, |n| n + 4));
            }
            let Some(unit) = hex(2, 4) else { return (None, 2) };
            let pair = (text.get(6..8) == Some(b"\\u")).then(|| hex(8, 4)).flatten();
            match (unit, pair) {
                (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => {
                    (char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)), 12)
                }
                _ => (char::from_u32(unit), 6),
            }
        }
        Some(b) if b.is_ascii() => (Some(char::from(*b)), 2),
        // A sign of more than one byte stands for itself.
        _ => (None, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(text: &str) -> String {
        crate::scan::carrier::last_view(text, views)
    }

    #[test]
    fn escaped_strings_and_rows_of_strings_are_listed() {
        assert_eq!(view(r#"{"a": "x \ud835\udc22 \"y\" \/", "b": "plain"}"#), "x 𝐢 \"y\" /");
        assert_eq!(view(r#"{"source": ["one tw", "o three\n"], "n": 1}"#), "one two three");
        assert_eq!(view(r#"{"a": "plain"} // {"#), "");
    }

    #[test]
    fn what_is_no_json_hides_nothing_behind_it() {
        assert_eq!(view("{\"a\": \"\\ud800 a\", \u{e9}\u{e9} § \"b\": \"x\\ty\"}"), "a\n\nx\ty");
    }

    #[test]
    fn escapes_are_read_as_serde_json_reads_them() {
        for raw in [r"a\u00e9b", r"\ud83d\ude00", r"a\\n\tb", r"\/\u0041", "é\\\"ü"] {
            let quoted = format!("\"{raw}\"");
            let mut stitch = Stitch::default();
            unescape(quoted.as_bytes(), 1, quoted.len() - 1, &mut stitch);
            stitch.close(true);
            let got = stitch.view("t").unwrap().bytes;
            let want: String = serde_json::from_str(&quoted).unwrap();
            assert_eq!(String::from_utf8(got).unwrap().trim_end_matches('\n'), want);
        }
    }
}
