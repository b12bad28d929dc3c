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
use marker::{bracket_token, chat_token, marker_word, turn_marker};
use names::{SHARED, TAGS, bracket_possible, tag_possible};
use reader::{Name, Reader, spelled};
use std::borrow::Cow;

const BREAK: char = '\u{200b}';

/// `text` with everything broken that could be read as a boundary of an envelope or of a prompt: envelope tags and
/// markers of all styles, chat-template tokens, turn markers and headings at the start of a line. The rest is unchanged;
/// borrowed when nothing is found. Idempotent, linear.
pub fn neutralise(text: &str) -> Cow<'_, str> {
    let mut pass = Pass { text, out: None, copied: 0, line_blank: true, before_blank: true };
    let bytes = text.as_bytes();
    let mut at = 0;
    pass.line_start(0);
    while let Some(&b) = bytes.get(at) {
        if !OPENING[b as usize] {
            if b == b' ' || b == b'\t' || b == b'\r' {
            } else {
                pass.line_blank = false;
            }
            at += 1;
            continue;
        }
        if b == b'\n' {
            pass.before_blank = pass.line_blank;
            pass.line_blank = true;
            pass.line_start(at + 1);
            at += 1;
            continue;
        }
        pass.line_blank = false;
        at = pass.opening(at);
    }
    match pass.out {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(text.get(pass.copied..).unwrap_or_default());
            Cow::Owned(out)
        }
    }
}

const OPENING: [bool; 256] = {
    let mut table = [false; 256];
    let set = b"\n<[&\\%BE";
    let mut i = 0;
    while i < set.len() {
        table[set[i] as usize] = true;
        i += 1;
    }
    let mut high = 0xC2;
    while high < 0xF5 {
        table[high] = true;
        high += 1;
    }
    table
};

struct Pass<'a> {
    text: &'a str,
    out: Option<String>,
    copied: usize,
    /// The line so far holds nothing but blanks.
    line_blank: bool,
    /// The line before holds nothing but blanks, or there is none.
    before_blank: bool,
}

impl<'a> Pass<'a> {
    /// Puts `what` in before `at`.
    fn insert(&mut self, at: usize, what: char) {
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
            Some(b'<') => !tag_possible(after),
            Some(b'[') => !bracket_possible(after),
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
            '<' if could_name && self.tag(at, next)
                || c == '<' && could_name && chat_token(self.rest(next)) =>
            {
                self.insert(next, BREAK)
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

    fn word_before(&self, at: usize) -> bool {
        let head = self.text.get(..at).unwrap_or_default();
        head.chars().rev().find(|c| !invisible(*c)).is_some_and(|c| c.is_alphanumeric() || c == '_')
    }

    /// Does a boundary's tag start here? `open` is the `<`, `from` is what follows it.
    fn tag(&self, open: usize, from: usize) -> bool {
        let mut reader = Reader::new(self.rest(from));
        let closing = reader.skip_filler();
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
        if name.len() < 3 {
            return false; // no boundary has a shorter name
        }
        // `<<SYS>>` has its first bracket before this one.
        let plain = name.rsplit(':').next().unwrap_or(name);
        if ["untrusted", "antml"].iter().any(|p| name.starts_with(p) || plain.starts_with(p)) {
            return true;
        }
        let plain = plain.trim_end_matches(['-', '_']);
        if !TAGS.contains(&plain) {
            return false;
        }
        let after = reader.peek();
        if !matches!(after, None | Some('>' | '/' | ' ' | '\t' | '\n' | '\r' | '\u{a0}' | '&' | '\\')) {
            return false;
        }
        if closing {
            return true;
        }
        if SHARED.contains(&plain) {
            return matches!(plain, "human" | "assistant" | "instructions")
                && after == Some('>')
                && !self.generic(open, from);
        }
        !(after == Some('>') && self.generic(open, from))
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
        if indent > 3 {
            return;
        }
        let body = line.get(indent..).unwrap_or_default();
        let start = at + indent;
        match body.bytes().next() {
            Some(b'#') => {
                let run = body.bytes().take_while(|b| *b == b'#').count();
                let after = body.as_bytes().get(run);
                if run <= 6 && matches!(after, None | Some(b' ' | b'\t' | b'\n' | b'\r')) {
                    self.insert(start, '\\');
                }
            }
            Some(mark @ (b'=' | b'-')) if !self.before_blank => {
                let run = body.bytes().take_while(|b| *b == mark).count();
                let tail = body.get(run..).unwrap_or_default();
                let blanks = tail.bytes().take_while(|b| matches!(b, b' ' | b'\t' | b'\r')).count();
                if matches!(tail.as_bytes().get(blanks), None | Some(b'\n')) {
                    self.insert(start + 1, BREAK);
                }
            }
            // No turn begins with another letter.
            Some(b'a'..=b'z' | b'0'..=b'9' | b' '..=b'%' | b'\''..=b'/' | b'\n') => {}
            Some(b) if b.is_ascii_uppercase() && !matches!(b, b'H' | b'A' | b'S' | b'U' | b'D') => {}
            _ => {
                if let Some(colon) = turn_marker(body, self.before_blank) {
                    self.insert(start + colon, BREAK);
                }
            }
        }
    }
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
