//! The automaton over the formats of [`table`](super::table).

use super::SecretHit;
use super::table::FORMATS;
use aho_corasick::{AhoCorasick, MatchKind};
use std::sync::LazyLock;

/// One part of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Literal(String),
    /// Characters of a class, from `min` to `max` of them.
    Run(u8, usize, usize),
}

struct Compiled {
    anchors: AhoCorasick,
    formats: Vec<(&'static str, Vec<Part>)>,
}

static COMPILED: LazyLock<Option<Compiled>> = LazyLock::new(|| {
    let formats: Vec<(&'static str, Vec<Part>)> =
        FORMATS.iter().filter_map(|(kind, format)| Some((*kind, parse(format)?))).collect();
    let anchors: Vec<&str> = formats
        .iter()
        .filter_map(|(_, parts)| match parts.first() {
            Some(Part::Literal(text)) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let anchors = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&anchors).ok()?;
    Some(Compiled { anchors, formats })
});

pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|(kind, _)| *kind)
}

/// Reads the notation of the table.
pub(super) fn parse(format: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = format;
    while !rest.is_empty() {
        match rest.strip_prefix('{') {
            Some(run) => {
                let (body, after) = run.split_once('}')?;
                let class = *body.as_bytes().first()?;
                let (min, max) = match body.get(1..)? {
                    open if open.ends_with('+') => (open.trim_end_matches('+').parse().ok()?, usize::MAX),
                    range => match range.split_once('-') {
                        Some((min, max)) => (min.parse().ok()?, max.parse().ok()?),
                        None => (range.parse().ok()?, range.parse().ok()?),
                    },
                };
                parts.push(Part::Run(class, min, max));
                rest = after;
            }
            None => {
                let len = rest.find('{').unwrap_or(rest.len());
                parts.push(Part::Literal(rest.get(..len)?.to_string()));
                rest = rest.get(len..)?;
            }
        }
    }
    Some(parts)
}

/// Is `b` in the class?
pub(super) fn in_class(class: u8, b: u8) -> bool {
    match class {
        b'A' => b.is_ascii_alphanumeric(),
        b'H' => matches!(b, b'0'..=b'9' | b'a'..=b'f'),
        b'X' => b.is_ascii_hexdigit(),
        b'U' => matches!(b, b'0'..=b'9' | b'A'..=b'Z'),
        b'L' => matches!(b, b'0'..=b'9' | b'a'..=b'z'),
        b'W' => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'),
        b'Q' => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'='),
        b'P' => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'),
        b'B' => b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'%'),
        b'D' => b.is_ascii_digit(),
        b'2' => matches!(b, b'2'..=b'7' | b'A'..=b'Z'),
        _ => false,
    }
}

/// Where a format that starts at `at` ends.
fn match_at(bytes: &[u8], at: usize, parts: &[Part]) -> Option<usize> {
    let mut end = at;
    for (n, part) in parts.iter().enumerate() {
        match part {
            Part::Literal(text) => {
                let here = bytes.get(end..end + text.len())?;
                if here != text.as_bytes() {
                    return None;
                }
                end += text.len();
            }
            Part::Run(class, min, max) => {
                let run = bytes.get(end..)?.iter().take(*max).take_while(|b| in_class(*class, **b)).count();
                if run < *min {
                    return None;
                }
                end += run;
                let last = n + 1 == parts.len();
                if last && bytes.get(end).is_some_and(|b| in_class(*class, *b) && *b != b'-' && *b != b'=') {
                    return None; // longer than the format allows: something else
                }
            }
        }
    }
    Some(end)
}

pub(super) fn find(text: &str, hits: &mut Vec<SecretHit>) {
    let Some(compiled) = COMPILED.as_ref() else {
        // Without the automaton nothing can be told apart: the whole text is the finding.
        hits.push(SecretHit { kind: "undecided", start: 0, end: text.len() });
        return;
    };
    let bytes = text.as_bytes();
    // What a format has taken is not looked at again for the same format: open runs stay linear.
    let mut taken = vec![0usize; compiled.formats.len()];
    for anchor in compiled.anchors.find_overlapping_iter(text) {
        let index = anchor.pattern().as_usize();
        let (Some((kind, parts)), Some(taken)) = (compiled.formats.get(index), taken.get_mut(index)) else {
            continue;
        };
        let start = anchor.start();
        let inside = start
            .checked_sub(1)
            .and_then(|i| bytes.get(i))
            .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        if start < *taken || (inside && !escaped_letter(bytes, start)) {
            continue;
        }
        if let Some(end) = match_at(bytes, start, parts) {
            *taken = end;
            if mixed(bytes.get(start..end).unwrap_or_default(), parts) {
                hits.push(SecretHit { kind, start, end });
            }
        }
    }
}

/// Where a vendor's format begins that its literal alone tells from prose, each place once.
pub(in crate::gate) fn starts(text: &str) -> Vec<usize> {
    /// Shorter literals stand in ordinary words.
    const TELLING: usize = 4;
    let Some(compiled) = COMPILED.as_ref() else { return Vec::new() };
    let bytes = text.as_bytes();
    let word = |at: usize| {
        at.checked_sub(1).and_then(|i| bytes.get(i)).is_some_and(|b| {
            !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b'`' | b'=' | b':' | b'(' | b',' | b'>')
        })
    };
    let mut starts: Vec<usize> = compiled
        .anchors
        .find_overlapping_iter(text)
        .filter(|m| m.len() >= TELLING && !word(m.start()))
        .map(|m| m.start())
        .collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// A letter before the token that belongs to an escape (`\n`, `%3D`, `\u003d`), not to a word.
fn escaped_letter(bytes: &[u8], start: usize) -> bool {
    let before = bytes.get(start.saturating_sub(6)..start).unwrap_or_default();
    let n = before.len();
    let at = |back: usize| n.checked_sub(back).and_then(|i| before.get(i)).copied().unwrap_or(0);
    at(2) == b'\\'
        || (at(3) == b'%' && at(2).is_ascii_hexdigit() && at(1).is_ascii_hexdigit())
        || (at(6) == b'\\' && at(5) == b'u')
}

/// Short or wordy literals alone prove little: formats with open dashes need a digit, so that `sk-some-long-class-name`
/// is no key.
fn mixed(token: &[u8], parts: &[Part]) -> bool {
    let prefix = match parts.first() {
        Some(Part::Literal(text)) => text.len(),
        _ => 0,
    };
    let wordy = parts.iter().any(|p| matches!(p, Part::Run(b'W' | b'P' | b'Q', ..)));
    let body = token.get(prefix..).unwrap_or_default();
    let longest = body.split(|b| !b.is_ascii_alphanumeric()).map(<[u8]>::len).max().unwrap_or(0);
    !wordy
        || longest >= 20
        || (body.iter().any(u8::is_ascii_digit) && body.iter().any(u8::is_ascii_alphabetic))
}
