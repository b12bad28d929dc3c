//! The text as a model reads it.

use crate::envelope::autofetch::entity;
use crate::envelope::fold::{fold, invisible};

/// Is itself, visible, and starts no other spelling.
fn plain(b: u8) -> bool {
    matches!(b, b' '..=b'~' | b'\t' | b'\n' | b'\r') && !matches!(b, b'&' | b'\\' | b'%')
}

/// A short ASCII name, without an allocation for each opening of a text.
pub(super) struct Name {
    bytes: [u8; Name::MAX],
    len: usize,
}

impl Name {
    /// Longest name that is kept; what is longer is no boundary's.
    const MAX: usize = 64;

    pub(super) fn new() -> Name {
        Name { bytes: [0; Name::MAX], len: 0 }
    }

    /// Adds an ASCII character.
    pub(super) fn push(&mut self, c: char) {
        if let (Some(place), Ok(byte)) = (self.bytes.get_mut(self.len), u8::try_from(c)) {
            *place = byte;
            self.len += 1;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn as_str(&self) -> &str {
        self.bytes.get(..self.len).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

/// The character that is spelled at the start of `text`, folded, and its width: itself, an entity, or an escape that a
/// decoder or a model reads as the character.
pub(super) fn spelled(text: &str) -> Option<(char, usize)> {
    let c = text.chars().next()?;
    match c {
        '&' => entity(text).map(|(c, width)| (fold(c), width)),
        '\\' | '%' => {
            let width = match text.as_bytes() {
                [b'%', b'3', b'c' | b'C', ..] => 3,
                [b'\\', b'7', b'4', ..] => 3,
                [b'\\', b'x' | b'X', b'3', b'c' | b'C', ..] | [b'\\', b'0', b'7', b'4', ..] => 4,
                [b'\\', b'u' | b'U', b'0', b'0', b'3', b'c' | b'C', ..] => 6,
                [b'\\', b'u' | b'U', b'{', b'3', b'c' | b'C', b'}', ..] => 6,
                _ => return None,
            };
            Some(('<', width))
        }
        c => Some((fold(c), c.len_utf8())),
    }
}

/// Reads folded characters; invisible ones are passed over.
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Reader { text, at: 0 }
    }

    /// Where it stands.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next visible character, folded; moves past invisible ones only when there is one.
    pub(super) fn peek(&mut self) -> Option<char> {
        if let Some(b) = self.text.as_bytes().get(self.at).filter(|b| plain(**b)) {
            return Some(char::from(*b));
        }
        // A reference to a character in plain sight.
        if self.text.as_bytes().get(self.at).is_some_and(|b| matches!(b, b'&' | b'\\' | b'%')) {
            let rest = self.text.get(self.at..)?;
            return spelled(rest).map(|s| s.0).or_else(|| rest.chars().next());
        }
        let mut ahead = self.at;
        for c in self.text.get(self.at..)?.chars() {
            if !invisible(c) {
                // The first letter after a break stays where the break is, so that its offset can be told.
                self.at = ahead;
                return Some(match spelled(self.text.get(ahead..)?) {
                    Some((c, _)) => c,
                    None => fold(c),
                });
            }
            ahead += c.len_utf8();
        }
        None
    }

    pub(super) fn next(&mut self) {
        if self.text.as_bytes().get(self.at).is_some_and(|b| plain(*b)) {
            self.at += 1;
            return;
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        let width = spelled(rest).map(|s| s.1).or_else(|| rest.chars().next().map(char::len_utf8));
        self.at += width.unwrap_or(0);
    }

    /// Passes white space and slashes; true if there was a slash.
    pub(super) fn skip_filler(&mut self) -> bool {
        let mut slash = false;
        while let Some(c) = self.peek() {
            if c == '/' || c == '\\' {
                slash = true;
            } else if !c.is_whitespace() {
                break;
            }
            self.next();
        }
        slash
    }

    pub(super) fn skip_filler_any(&mut self) -> bool {
        let mut any = false;
        while self.peek().is_some_and(char::is_whitespace) {
            any = true;
            self.next();
        }
        any
    }
}
