//! The formats of [`table`](super::table), matched where their literal stands.

use super::table::FORMATS;
use super::{Reading, rot13};
use std::sync::LazyLock;

/// One part of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Literal(String),
    /// Characters of a class, from `min` to `max` of them.
    Run(u8, usize, usize),
}

type Format = (&'static str, Vec<Part>);

static PARSED: LazyLock<Vec<Format>> = LazyLock::new(|| {
    FORMATS.iter().map(|(kind, format)| (*kind, parse(format).unwrap_or_default())).collect()
});

/// Kind and parts of each format, in the order of the table.
pub(super) fn formats() -> &'static [Format] {
    &PARSED
}

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

/// The classes of the notation.
const CLASSES: &[u8] = b"AHXULWQPBD2";

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

/// A text in one reading, from a place on. Offsets count in the direction of the reading.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    bytes: &'a [u8],
    reading: Reading,
    /// Forward: the first byte. Mirrored: one past it.
    at: usize,
}

impl<'a> Source<'a> {
    pub(super) fn new(bytes: &'a [u8], reading: Reading, start: usize, end: usize) -> Source<'a> {
        Source { bytes, reading, at: if reading == Reading::Mirrored { end } else { start } }
    }

    /// Where in the text the byte at `offset` stands.
    fn place(&self, offset: usize) -> Option<usize> {
        match self.reading {
            Reading::Mirrored => self.at.checked_sub(offset + 1),
            _ => self.at.checked_add(offset).filter(|at| *at < self.bytes.len()),
        }
    }

    pub(super) fn byte(&self, offset: usize) -> Option<u8> {
        let b = self.bytes.get(self.place(offset)?).copied()?;
        Some(if self.reading == Reading::Rotated { rot13(b) } else { b })
    }

    /// The byte that the reading sees `back` bytes before the place, from 1.
    fn before(&self, back: usize) -> u8 {
        let at = match self.reading {
            Reading::Mirrored => Some(self.at + back - 1),
            _ => self.at.checked_sub(back),
        };
        let b = at.and_then(|at| self.bytes.get(at)).copied().unwrap_or(0);
        if self.reading == Reading::Rotated { rot13(b) } else { b }
    }

    pub(super) fn reading(&self) -> Reading {
        self.reading
    }

    /// The half-open range of the text behind the first `len` bytes.
    pub(super) fn span(&self, len: usize) -> (usize, usize) {
        match self.reading {
            Reading::Mirrored => (self.at.saturating_sub(len), self.at),
            _ => (self.at, self.at + len),
        }
    }

    /// A letter, a digit or `_` stands directly before that no escape (`\n`, `%3D`, `\u003d`) ends with.
    pub(super) fn inside_word(&self) -> bool {
        let at = |back| self.before(back);
        let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let escaped = at(2) == b'\\'
            || (at(3) == b'%' && at(2).is_ascii_hexdigit() && at(1).is_ascii_hexdigit())
            || (at(6) == b'\\' && at(5) == b'u');
        word(at(1)) && !escaped
    }
}

/// Runs of the classes that were read before: many literals may stand in one run, each byte of it is read once.
#[derive(Default)]
pub(super) struct Runs {
    /// By reading and class: a run, or a part of it that reaches to where reading ends.
    spans: [[(usize, usize); CLASSES.len()]; 3],
}

impl Runs {
    /// How many bytes of the class stand at `offset`.
    pub(super) fn len(&mut self, source: &Source<'_>, offset: usize, class: u8) -> usize {
        let Some(place) = source.place(offset) else { return 0 };
        let index = CLASSES.iter().position(|c| *c == class).unwrap_or(0);
        let row = self.spans.get_mut(source.reading as usize);
        let Some(span) = row.and_then(|row| row.get_mut(index)) else { return 0 };
        if !(span.0..span.1).contains(&place) {
            let mut len = 0;
            while source.byte(offset + len).is_some_and(|b| in_class(class, b)) {
                len += 1;
            }
            *span = match source.reading {
                Reading::Mirrored => ((place + 1).saturating_sub(len), place + 1),
                _ => (place, place + len),
            };
        }
        if source.reading == Reading::Mirrored { (place + 1).saturating_sub(span.0) } else { span.1 - place }
    }
}

/// How long the token is that a format reads at the place, if it stands there as a token of its own.
pub(super) fn match_at(source: &Source<'_>, parts: &[Part], runs: &mut Runs) -> Option<usize> {
    if source.inside_word() {
        return None;
    }
    let mut end = 0;
    for (n, part) in parts.iter().enumerate() {
        match part {
            Part::Literal(text) => {
                if !text.bytes().enumerate().all(|(i, b)| source.byte(end + i) == Some(b)) {
                    return None;
                }
                end += text.len();
            }
            Part::Run(class, min, max) => {
                let run = runs.len(source, end, *class).min(*max);
                if run < *min {
                    return None;
                }
                end += run;
                let last = n + 1 == parts.len();
                let next = source.byte(end);
                if last && next.is_some_and(|b| in_class(*class, b) && b != b'-' && b != b'=') {
                    return None; // longer than the format allows: something else
                }
            }
        }
    }
    (mixed(source, end, parts) && varied(source, end, parts)).then_some(end)
}

/// Short literals, and rows of one letter, stand in any base64: there the rest varies as a generator's does.
fn varied(source: &Source<'_>, end: usize, parts: &[Part]) -> bool {
    /// Fewest different characters, and bytes that are looked at.
    const DIFFERENT: u32 = 5;
    const LOOK: usize = 96;
    let Some(Part::Literal(text)) = parts.first() else { return true };
    if text.len() > 3 && !text.ends_with("AAA") {
        return true;
    }
    let (mut seen, mut run, mut longest) = (0u128, 0usize, 0usize);
    for b in (text.len()..end.min(text.len() + LOOK)).filter_map(|i| source.byte(i)).filter(u8::is_ascii) {
        seen |= 1u128 << b;
        run = if b.is_ascii_alphanumeric() { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    // Names of packages and classes begin like the keys of models; words with dashes between are short.
    seen.count_ones() >= DIFFERENT && (text != "sk-" || longest >= 12)
}

/// Short or wordy literals alone prove little: formats with open dashes need a digit, so that `sk-some-long-class-name`
/// is no key.
fn mixed(source: &Source<'_>, end: usize, parts: &[Part]) -> bool {
    /// Bytes of a token that are looked at; a generator has shown itself by then.
    const LOOK: usize = 96;
    if !parts.iter().any(|p| matches!(p, Part::Run(b'W' | b'P' | b'Q', ..))) {
        return true;
    }
    let prefix = match parts.first() {
        Some(Part::Literal(text)) => text.len(),
        _ => 0,
    };
    let (mut digit, mut letter, mut run) = (false, false, 0);
    for b in (prefix..end.min(prefix + LOOK)).filter_map(|i| source.byte(i)) {
        digit |= b.is_ascii_digit();
        letter |= b.is_ascii_alphabetic();
        run = if b.is_ascii_alphanumeric() { run + 1 } else { 0 };
        if run >= 20 || (digit && letter) {
            return true;
        }
    }
    false
}

/// Where a token of the format ends that begins at `start` and that white space splits; none where it is whole.
pub(super) fn joined(bytes: &[u8], start: usize, parts: &[Part]) -> Option<usize> {
    /// Longest token that is put together, in bytes.
    const REACH: usize = 128;
    /// Shorter literals stand in ordinary words.
    const TELLING: usize = 4;
    let telling = matches!(parts.first(), Some(Part::Literal(text)) if text.len() >= TELLING);
    let own = start.checked_sub(1).and_then(|i| bytes.get(i)).is_none_or(|b| {
        b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'=' | b':' | b'(' | b',' | b'>')
    });
    if !telling || !own {
        return None;
    }
    let mut token = [0u8; REACH];
    let mut places = [0usize; REACH];
    let mut len = 0;
    let visible =
        bytes.iter().enumerate().skip(start).take(REACH * 8).filter(|(_, b)| !b.is_ascii_whitespace());
    for (((at, b), into), place) in visible.zip(&mut token).zip(&mut places) {
        (*into, *place) = (*b, at);
        len += 1;
    }
    let source = Source::new(token.get(..len)?, Reading::Forward, 0, 0);
    // What stands behind the end of a token belongs to it only by being joined.
    let end = longest(&source, parts)?;
    let last = *places.get(end.checked_sub(1)?)?;
    (last - start >= end).then_some(last + 1)
}

/// How long the token is, whatever stands behind it.
fn longest(source: &Source<'_>, parts: &[Part]) -> Option<usize> {
    let mut end = 0;
    for part in parts {
        match part {
            Part::Literal(text) => {
                if !text.bytes().enumerate().all(|(i, b)| source.byte(end + i) == Some(b)) {
                    return None;
                }
                end += text.len();
            }
            Part::Run(class, min, max) => {
                let mut len = 0;
                while len < *max && source.byte(end + len).is_some_and(|b| in_class(*class, b)) {
                    len += 1;
                }
                if len < *min {
                    return None;
                }
                end += len;
            }
        }
    }
    Some(end)
}
