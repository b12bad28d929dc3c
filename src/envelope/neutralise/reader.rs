//! The text as a model reads it.

use crate::envelope::autofetch::entity;
use crate::envelope::fold::{fold, invisible};
use unicode_normalization::UnicodeNormalization;

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
        '&' => reference(text).map(|(c, width)| (fold(c), width)),
        '\\' | '%' => escaped(text.as_bytes()),
        c => Some((fold(c), c.len_utf8())),
    }
}

/// A character reference, also with any number of leading zeros, of a bracket that only HTML 5 names, or of one whose
/// ampersand is one itself, `&amp;lt;`.
fn reference(text: &str) -> Option<(char, usize)> {
    const BRACKETS: &[(&str, char)] = &[
        ("Lt;", '<'),
        ("nvlt;", '<'),
        ("lang;", '<'),
        ("langle;", '<'),
        ("laquo;", '<'),
        ("lsaquo;", '<'),
        ("Gt;", '>'),
        ("nvgt;", '>'),
        ("rang;", '>'),
        ("rangle;", '>'),
        ("raquo;", '>'),
        ("rsaquo;", '>'),
    ];
    let bytes = text.as_bytes();
    let mut lead = 1;
    while bytes.get(lead..).is_some_and(|rest| rest.starts_with(b"amp;")) {
        lead += 4;
    }
    let rest = text.get(lead..)?;
    if let Some(number) = rest.strip_prefix('#') {
        let (radix, digits, mark) = match number.strip_prefix(['x', 'X']) {
            Some(digits) => (16, digits, 2),
            None => (10, number, 1),
        };
        let zeros = digits.bytes().take_while(|b| *b == b'0').count();
        let significant = digits.get(zeros..)?;
        let len = significant.bytes().take(8).take_while(|b| char::from(*b).is_digit(radix)).count();
        if zeros + len > 0 {
            let value = u32::from_str_radix(significant.get(..len)?, radix).unwrap_or(0);
            let semicolon = usize::from(significant.as_bytes().get(len) == Some(&b';'));
            let c = char::from_u32(value).unwrap_or('\u{fffd}');
            return Some((c, lead + mark + zeros + len + semicolon));
        }
    }
    if let Some((name, c)) = BRACKETS.iter().find(|(name, _)| rest.starts_with(name)) {
        return Some((*c, lead + name.len()));
    }
    if lead > 1 && rest.starts_with(['l', 'L', 'g', 'G']) {
        // Only these names of the list below begin a boundary behind a second ampersand.
        let short: String = std::iter::once('&').chain(rest.chars().take(3)).collect();
        if let Some((c, width)) = entity(&short) {
            return Some((c, lead + width - 1));
        }
    }
    entity(text)
}

/// An escape of URLs (`%3c`, `%253c`, `%u003c`) or of a programming language (`\x3c`, `\x{3c}`, `\u003c`, `\u{3c}`,
/// `\U0000003c`, `\74`) that spells something that shows, folded, and its width.
fn escaped(bytes: &[u8]) -> Option<(char, usize)> {
    let (value, width) = match bytes {
        [b'%', b'u' | b'U', rest @ ..] => (number(rest, 4, 16)?, 6),
        [b'%', rest @ ..] => {
            let mut signs = 0;
            // A percent sign that is escaped itself.
            while rest.get(signs..).is_some_and(|rest| rest.starts_with(b"25"))
                && rest.get(signs + 2..).is_some_and(|rest| number(rest, 2, 16).is_some())
            {
                signs += 2;
            }
            (number(rest.get(signs..)?, 2, 16)?, 1 + signs + 2)
        }
        [b'\\', b'u' | b'U' | b'x' | b'X', b'{', rest @ ..] => {
            let len = rest.iter().take(8).take_while(|b| b.is_ascii_hexdigit()).count();
            let closed = rest.get(len) == Some(&b'}');
            (number(rest, len, 16).filter(|_| closed)?, 3 + len + 1)
        }
        [b'\\', b'x' | b'X', rest @ ..] => (number(rest, 2, 16)?, 4),
        [b'\\', b'u' | b'U', rest @ ..] => match number(rest, 8, 16) {
            Some(value) if rest.starts_with(b"0000") && bytes.get(1) == Some(&b'U') => (value, 10),
            _ => (number(rest, 4, 16)?, 6),
        },
        [b'\\', rest @ ..] => match number(rest, 3, 8) {
            Some(value) if value < 0x80 => (value, 4),
            _ => (number(rest, 2, 8)?, 3),
        },
        _ => return None,
    };
    let c = fold(char::from_u32(value)?);
    (c == ' ' || c.is_ascii_graphic()).then_some((c, width))
}

/// The number that the first `len` digits of `bytes` are.
fn number(bytes: &[u8], len: usize, radix: u32) -> Option<u32> {
    let digits = bytes.get(..len).filter(|digits| !digits.is_empty())?;
    digits.iter().try_fold(0u32, |n, b| n.checked_mul(radix)?.checked_add(char::from(*b).to_digit(radix)?))
}

/// The ASCII letter or digit under an accent, or in a form that is another way to write it; else `c`.
fn bare(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    std::iter::once(c).nfkd().next().filter(char::is_ascii_alphanumeric).unwrap_or(c)
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

    /// The next visible character, folded and without an accent; moves past invisible ones only when there is one.
    pub(super) fn peek(&mut self) -> Option<char> {
        if let Some(b) = self.text.as_bytes().get(self.at).filter(|b| plain(**b)) {
            return Some(char::from(*b));
        }
        let mut ahead = self.at;
        loop {
            let rest = self.text.get(ahead..)?;
            let first = rest.chars().next()?;
            let (c, width) = spelled(rest).unwrap_or((first, first.len_utf8()));
            if !invisible(c) {
                // The first letter after a break stays where the break is, so that its offset can be told.
                self.at = ahead;
                return Some(bare(c));
            }
            ahead += width;
        }
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
