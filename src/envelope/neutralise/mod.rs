//! What could pass for the envelope's own structure, broken.
//!
//! At each character that can open a boundary (`<` and `[` in every spelling, entity or look-alike, a marker word, the
//! start of a line) the text is read as a model reads it: look-alikes folded, invisible characters skipped. When what
//! follows names a boundary, one U+200B goes in after the opening. The text stays legible, and running it again changes
//! nothing. Everything else, ordinary code included, comes through byte for byte. A byte is read at most once as an
//! opening and once as a continuation for each kind of boundary, so time is linear.

mod marker;
mod names;
mod reader;

use super::fold::invisible;
use crate::bits::Finder;
use marker::{bracket_token, chat_token, closes_envelope, marker_word, turn_marker};
use names::{SHARED, TAGS, bracket_possible, numbered, tag_possible};
use reader::{Name, Reader, spelled};
use std::borrow::Cow;

const BREAK: char = '\u{200b}';

/// `text` with everything broken that could be read as a boundary of an envelope or of a prompt: envelope tags and
/// markers of all styles, chat-template tokens, turn markers and headings at the start of a line. The rest is unchanged;
/// borrowed when nothing is found. Idempotent, linear.
pub fn neutralise(text: &str) -> Cow<'_, str> {
    let mut pass = Pass { text, out: None, copied: 0, before_blank: true };
    let bytes = text.as_bytes();
    let mut openings = Finder::new(bytes, opening);
    let (mut from, mut line) = (0, 0);
    pass.line_start(0);
    while let Some(at) = openings.next(from) {
        let rest = bytes.get(at..).unwrap_or_default();
        if let Some(width) = line_end(rest) {
            let blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\r');
            pass.before_blank = bytes.get(line..at).is_some_and(|line| line.iter().all(blank));
            line = at + width;
            pass.line_start(line);
            from = line;
        } else if rest.first() == Some(&b'~') {
            pass.tilde(at);
            from = at + 1;
        } else {
            from = pass.opening(at);
        }
    }
    match pass.out {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(text.get(pass.copied..).unwrap_or_default());
            Cow::Owned(out)
        }
    }
}

/// The width of a line end at the start of `rest`: a line feed, a carriage return by itself or with one, a line or
/// paragraph separator.
fn line_end(rest: &[u8]) -> Option<usize> {
    match rest {
        [b'\n', ..] => Some(1),
        [b'\r', b'\n', ..] => Some(2),
        [b'\r', ..] => Some(1),
        [0xE2, 0x80, 0xA8 | 0xA9, ..] => Some(3),
        _ => None,
    }
}

#[inline(always)]
fn opening(b: u8) -> bool {
    (b == b'\n')
        | (b == b'\r')
        | (b == b'~')
        | (b == b'<')
        | (b == b'[')
        | (b == b'&')
        | (b == b'\\')
        | (b == b'%')
        | (b == b'B')
        | (b == b'E')
        | (b >= 0xC2)
}

struct Pass<'a> {
    text: &'a str,
    out: Option<String>,
    copied: usize,
    /// The line before holds nothing but blanks, or there is none.
    before_blank: bool,
}

impl<'a> Pass<'a> {
    /// Puts `what` in before `at`, which must not lie before what was put in already.
    fn insert(&mut self, at: usize, what: char) {
        if at < self.copied {
            return;
        }
        let out = self.out.get_or_insert_with(|| String::with_capacity(self.text.len() + 64));
        out.push_str(self.text.get(self.copied..at).unwrap_or_default());
        out.push(what);
        self.copied = at;
    }

    fn rest(&self, at: usize) -> &'a str {
        self.text.get(at..).unwrap_or_default()
    }

    /// Looks at a possible opening and says where to go on.
    fn opening(&mut self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let after = bytes.get(at + 1..).unwrap_or_default();
        let settled = match bytes.get(at) {
            Some(b'<') if could_name(after.first()) => !tag_possible(after),
            // Signs can stand before a closing slash.
            Some(b'<') => after.first().is_none_or(|b| !b.is_ascii_punctuation() || *b == b'<'),
            Some(b'[') => !could_name(after.first()) || !bracket_possible(after),
            // Of an escape the second character tells.
            Some(b'\\' | b'%') => after.first().is_some_and(|b| b.is_ascii() && !escape(*b)),
            Some(b'B') => after.first().is_some_and(|b| b.is_ascii_alphanumeric() && *b != b'E'),
            Some(b'E') => after.first().is_some_and(|b| b.is_ascii_alphanumeric() && *b != b'N'),
            _ => false,
        };
        if settled {
            return at + 1;
        }
        let Some((c, width)) = spelled(self.rest(at)) else {
            return at + self.rest(at).chars().next().map_or(1, char::len_utf8);
        };
        let next = at + width;
        if self.rest(next).starts_with(BREAK) {
            return next;
        }
        let could_name = could_name(self.text.as_bytes().get(next));
        match c {
            '<' => {
                let mut reader = Reader::new(self.rest(next));
                let closing = reader.skip_filler();
                let boundary = match reader.peek() {
                    Some('|') if could_name => chat_token(reader),
                    Some(c) if could_name && (c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':')) => {
                        self.tag(at, next, closing, reader)
                    }
                    _ => false,
                };
                if boundary || closes_envelope(Reader::new(self.rest(next))) {
                    self.insert(next, BREAK);
                }
            }
            '[' if could_name => {
                if let Some(close) = bracket_token(self.rest(next), self.word_before(at)) {
                    self.insert(next, BREAK);
                    self.insert(next + close, BREAK);
                }
            }
            'B' | 'E' if !self.word_before(at) => {
                if let Some(underscore) = marker_word(self.rest(at)) {
                    self.insert(at + underscore, BREAK);
                }
            }
            _ => {}
        }
        next
    }

    fn follows(&self, at: usize, what: char) -> bool {
        self.text.get(..at).is_some_and(|head| head.ends_with(what))
    }

    fn word_before(&self, at: usize) -> bool {
        let head = self.text.get(..at).unwrap_or_default();
        head.chars().rev().find(|c| !invisible(*c)).is_some_and(|c| c.is_alphanumeric() || c == '_')
    }

    /// Does a boundary's tag start here? `open` is the `<`, `from` is what follows it, `reader` stands at the name.
    fn tag(&self, open: usize, from: usize, closing: bool, mut reader: Reader<'_>) -> bool {
        let mut name = Name::new();
        while let Some(c) = reader.peek() {
            let c = c.to_ascii_lowercase();
            if !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':')) || name.len() >= 32 {
                break;
            }
            name.push(c);
            reader.next();
        }
        let name = name.as_str();
        let after = reader.peek();
        if name.len() < 3 {
            // `<s>` begins a text for some tokenizers; `S` is a type, and `f<s>` has an argument.
            return name == "s"
                && after == Some('>')
                && !self.rest(from).starts_with('S')
                && (closing || !(self.word_before(open) || self.follows(open, '<')));
        }
        // `<<SYS>>` has its first bracket before this one.
        let plain = name.rsplit(':').next().unwrap_or(name);
        if ["untrusted", "antml"].iter().any(|p| name.starts_with(p) || plain.starts_with(p)) {
            return true;
        }
        // An element of a framework that speaks of the page, `<svelte:document>`.
        if !closing && name.starts_with("svelte:") {
            return false;
        }
        if after == Some('|') {
            // `<turn|>`
            reader.next();
            return reader.peek() == Some('>') && !self.word_before(open);
        }
        let plain = plain.trim_end_matches(['-', '_']);
        if !TAGS.contains(&plain) && !numbered(plain) {
            return false;
        }
        if closing {
            // Whatever is no part of a name ends it; `</system.web>` goes on.
            return after != Some('.') || {
                reader.next();
                !reader.peek().is_some_and(|c| c.is_ascii_alphanumeric())
            };
        }
        if !matches!(after, None | Some('>' | '/' | ' ' | '\t' | '\n' | '\r' | '\u{a0}' | '&' | '\\')) {
            return false;
        }
        if after == Some('>') && self.included(open, from) {
            return false;
        }
        if SHARED.contains(&plain) {
            return matches!(plain, "human" | "assistant" | "instructions" | "instruction" | "user")
                && after == Some('>')
                && !self.generic(open, from);
        }
        !(after == Some('>') && self.generic(open, from))
    }

    /// `#include <system>`, with nothing else on its line.
    fn included(&self, open: usize, from: usize) -> bool {
        /// Bytes of such a line on either side; a longer one is none.
        const MOST: usize = 64;
        let bytes = self.text.as_bytes();
        let before = bytes.get(open.saturating_sub(MOST)..open).unwrap_or_default();
        // With a blank behind its sign it would be a heading.
        let directive = before.rsplit(|b| *b == b'\n').next().unwrap_or_default().trim_ascii();
        let rest = bytes.get(from..).unwrap_or_default();
        let rest = rest.get(..MOST).unwrap_or(rest);
        let line = rest.split(|b| *b == b'\n').next().unwrap_or_default().trim_ascii_end();
        matches!(directive, b"#include" | b"#import")
            && line.strip_suffix(b">").is_some_and(|name| name.iter().all(u8::is_ascii_alphanumeric))
    }

    /// `]~b]`, `]~!b[` and `[e~[`, the tokens of a family that has its signs around a tilde.
    fn tilde(&mut self, at: usize) {
        let bytes = self.text.as_bytes();
        let before = bytes.get(at.saturating_sub(2)..at).unwrap_or_default();
        let after = bytes.get(at + 1..).unwrap_or_default();
        let role = before.ends_with(b"]") && (after.starts_with(b"b]") || after.starts_with(b"!b["));
        if role || (before == b"[e" && after.starts_with(b"[")) {
            self.insert(at, BREAK);
        }
    }

    /// `Ident<Document>`: a type with a type argument, as code writes it.
    fn generic(&self, open: usize, from: usize) -> bool {
        let mut letters = self.rest(from).chars();
        let camel = letters.next().is_some_and(|c| c.is_ascii_uppercase())
            && letters.next().is_some_and(|c| c.is_ascii_lowercase());
        camel && (self.word_before(open) || self.text.get(..open).is_some_and(|head| head.ends_with("::")))
    }

    /// Headings, underlines of headings and turn markers at the start of the line at `at`.
    fn line_start(&mut self, at: usize) {
        let line = self.rest(at);
        let indent = line.bytes().take(4).take_while(|b| *b == b' ').count();
        if indent <= 3 {
            self.heading(at + indent);
        }
        // What indents, quotes, lists or emphasises the line.
        let lead = line
            .bytes()
            .take_while(|b| {
                matches!(
                    b,
                    b' ' | b'\t'
                        | b'>'
                        | b'*'
                        | b'_'
                        | b'-'
                        | b'+'
                        | b'('
                        | b'['
                        | b'"'
                        | b'\''
                        | b'`'
                        | b'#'
                )
            })
            .count();
        let body = line.get(lead..).unwrap_or_default();
        match body.as_bytes().first() {
            // No turn begins with another letter or sign.
            Some(b'H' | b'A' | b'S' | b'U' | b'D' | b'&' | b'\\' | b'%') => {}
            Some(b) if !b.is_ascii() || b.is_ascii_control() => {}
            _ => return,
        }
        let plain = (lead == indent && indent <= 3) || line.bytes().take(lead).all(|b| b == b'*');
        if let Some(colon) = turn_marker(body, self.before_blank && plain) {
            self.insert(at + lead + colon, BREAK);
        }
    }

    /// A heading or the underline of one at `at`, behind its indentation.
    fn heading(&mut self, at: usize) {
        let body = self.rest(at);
        match body.bytes().next() {
            Some(b'#') => {
                let run = body.bytes().take_while(|b| *b == b'#').count();
                let after = body.as_bytes().get(run);
                if run <= 6 && matches!(after, None | Some(b' ' | b'\t' | b'\n' | b'\r')) {
                    self.insert(at, '\\');
                }
            }
            Some(mark @ (b'=' | b'-')) if !self.before_blank => {
                let run = body.bytes().take_while(|b| *b == mark).count();
                let tail = body.get(run..).unwrap_or_default();
                let blanks = tail.bytes().take_while(|b| matches!(b, b' ' | b'\t' | b'\r')).count();
                if matches!(tail.as_bytes().get(blanks), None | Some(b'\n')) {
                    self.insert(at + 1, BREAK);
                }
            }
            _ => {}
        }
    }
}

/// Does the character after a backslash or a percent sign spell a bracket with it?
fn escape(b: u8) -> bool {
    matches!(b | 0x20, b'u' | b'x') || matches!(b, b'0'..=b'7')
}

/// Can a name, a slash or a bar stand at this byte? Most openings in code are settled here.
fn could_name(byte: Option<&u8>) -> bool {
    byte.is_some_and(|b| {
        b.is_ascii_alphabetic()
            || b.is_ascii_whitespace()
            || matches!(b, b'/' | b'\\' | b'|' | b'&' | b'%')
            || b.is_ascii_control()
            || !b.is_ascii()
    })
}

#[cfg(test)]
mod tests;
