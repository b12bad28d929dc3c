//! Decoded views of a text, each with a map back to the bytes it came from.
//!
//! | views | module |
//! |---|---|
//! | base64, base32, hexadecimal in one run, compressed data in them | [`runs`] |
//! | lists of character codes | [`codes`] |
//! | dumps | [`dumps`] |
//! | URL and string escapes, character references, quoted-printable | [`escapes`] |
//! | separated characters, glued literals, look-alikes, tokens with tags, colours or line ends in them | [`layout`] |
//! | the text backwards, where it could decode to something | [`mirror`] |
//!
//! Ordinary text has little that a decoder could read: each finds the places where its encoding could stand by a look at
//! few bytes, and decodes those alone. All views of a level together are a constant number of times as long as the text.
//! Views of decoded bytes are decoded again, [`DEPTH`] levels in all.

mod codes;
mod dumps;
mod escapes;
mod layout;
mod mirror;
mod runs;

use crate::bits::Class;

/// Encodings on top of each other that are taken off.
pub(super) const DEPTH: usize = 3;
/// Shortest list of character codes, and of single characters, that is read; and shortest decoded text.
const MIN_LIST: usize = 12;

/// What is read out of a text by one decoder.
#[derive(Debug, Default)]
pub(super) struct View {
    pub encoding: &'static str,
    pub text: String,
    /// Offset and length in `text`, and the run of the source it came from; ascending in the first.
    pieces: Vec<(usize, usize, usize, usize)>,
    reach: Reach,
    /// A piece as long as its source is a copy of it, byte for byte.
    pub exact: bool,
    /// Each piece is its source backwards.
    flip: bool,
    /// Worth decoding again.
    pub nested: bool,
    /// Compressed data that is too large to look at.
    pub unread: Vec<(usize, usize)>,
}

/// How far a token can reach from a decoded character.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Over the line: a name may stand before a value.
    #[default]
    Line,
    /// Up to white space.
    Word,
}

impl View {
    fn new(encoding: &'static str) -> View {
        View { encoding, ..View::default() }
    }

    fn piece(&mut self, text: &str, start: usize, end: usize) {
        if text.is_empty() {
            return;
        }
        self.pieces.push((self.text.len(), text.len(), start, end));
        self.text.push_str(text);
    }

    /// A part of the source as it stands, between decoded characters or beside one. Of a long part only what a token
    /// could reach into is kept: what stands by itself belongs to the plain search.
    fn copied(&mut self, text: &str, from: usize, to: usize) {
        /// Most bytes kept after a decoded character, and before the next.
        const AFTER: usize = 512;
        const BEFORE: usize = 128;
        let stops = |b: &u8| match self.reach {
            Reach::Line => *b == b'\n',
            Reach::Word => b.is_ascii_whitespace(),
        };
        let part = text.as_bytes().get(from..to).unwrap_or_default();
        let (first, last) = (from == 0, to == text.len());
        let after = part.iter().take(AFTER).position(stops).unwrap_or(part.len().min(AFTER));
        let before = part.iter().rev().take(BEFORE).position(stops).unwrap_or(part.len().min(BEFORE));
        let head = if first { from } else { text.ceil_char_boundary(from + after) };
        let tail = if last { to } else { text.floor_char_boundary(to - before) };
        if head >= tail && !(first && last) {
            return self.piece(text.get(from..to).unwrap_or_default(), from, to);
        }
        self.piece(text.get(from..head).unwrap_or_default(), from, head);
        self.gap();
        self.piece(text.get(tail..to).unwrap_or_default(), tail, to);
    }

    /// Ends a run, so that nothing is read across it.
    fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// The source bytes behind `from..to` of the view.
    pub fn source(&self, from: usize, to: usize) -> (usize, usize) {
        let (first, last) = (self.place(from), self.place(to.saturating_sub(1).max(from)));
        if self.flip { (last.0, first.1) } else { (first.0, last.1) }
    }

    /// The source bytes behind one byte of the view.
    fn place(&self, at: usize) -> (usize, usize) {
        let next = self.pieces.partition_point(|p| p.0 <= at);
        let Some(&(view_at, width, start, end)) = self.pieces.get(next.saturating_sub(1)) else {
            return (0, 0);
        };
        if self.exact && width == end - start {
            let into = at.saturating_sub(view_at).min(width.saturating_sub(1));
            let byte = if self.flip { end.saturating_sub(into + 1) } else { start + into };
            (byte, byte + 1)
        } else {
            (start, end)
        }
    }
}

/// Every view of `text` that has something in it. With `top`, the views that look at the whole text anew: backwards,
/// folded, glued.
pub(super) fn views(text: &str, top: bool) -> Vec<View> {
    let bytes = text.as_bytes();
    let mut views = Vec::new();
    let long = runs::long(bytes);
    let gathered = runs::gathered(bytes, &long, runs::base64_digit);
    let chains = codes::chains(bytes);
    let escapes: Vec<usize> = Class::of(bytes, |b| (b == b'%') | (b == b'\\') | (b == b'&')).iter().collect();
    runs::base64(&gathered, &mut views);
    runs::base32(bytes, &long, &mut views);
    runs::hex(bytes, &long, &mut views);
    codes::lists(text, &chains, &mut views);
    dumps::dumps(text, &mut views);
    escapes::escapes(text, &escapes, &mut views);
    escapes::quoted_printable(text, &mut views);
    layout::spaced(text, &mut views);
    if top {
        layout::glued(text, &mut views);
        layout::broken(text, &mut views);
        layout::folded(text, &mut views);
        mirror::reversed(text, &gathered, &chains, &escapes, &mut views);
    }
    views.retain(|v| v.text.len() >= MIN_LIST || !v.unread.is_empty());
    views
}

fn number(digits: &[u8], radix: u32) -> Option<u8> {
    let mut value = 0u32;
    for digit in digits {
        value = value.checked_mul(radix)?.checked_add(char::from(*digit).to_digit(radix)?)?;
    }
    u8::try_from(value).ok().filter(|_| !digits.is_empty())
}
