//! Decoded views of a text, each with a map back to the bytes it came from.
//!
//! Every decoder walks the text once and yields one view, so that all views of a level together are a constant number of
//! times as long as the text. Views of decoded bytes are decoded again, [`DEPTH`] levels in all.

use crate::gate::secrets;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, Engine as _, GeneralPurpose, GeneralPurposeConfig};
use std::io::Read as _;

/// Encodings on top of each other that are taken off.
pub(super) const DEPTH: usize = 3;
/// What one compressed run may inflate to, in bytes; more is [`View::unread`].
const INFLATED: u64 = 1 << 20;
/// Compressed runs that are inflated in one text; more are [`View::unread`].
const INFLATIONS: usize = 16;

/// Base64 and hexadecimal runs shorter than this hide no token, in bytes of the encoded form.
const MIN_BASE64: usize = 24;
const MIN_HEX: usize = 32;
/// Shortest list of character codes, and of single characters, that is read.
const MIN_LIST: usize = 12;

/// What is read out of a text by one decoder.
#[derive(Debug, Default)]
pub(super) struct View {
    pub encoding: &'static str,
    pub text: String,
    /// Offset in `text`, and the run of the source it came from; ascending in the first.
    pieces: Vec<(usize, usize, usize)>,
    /// A piece as long as its source is a copy of it, byte for byte.
    pub exact: bool,
    /// The source backwards.
    flip: bool,
    /// Worth decoding again.
    pub nested: bool,
    /// Compressed data that is too large to look at.
    pub unread: Vec<(usize, usize)>,
}

impl View {
    fn new(encoding: &'static str) -> View {
        View { encoding, ..View::default() }
    }

    fn piece(&mut self, text: &str, start: usize, end: usize) {
        if text.is_empty() {
            return;
        }
        self.pieces.push((self.text.len(), start, end));
        self.text.push_str(text);
    }

    /// A part of the source as it stands, between decoded characters or beside one. Of a long part only what a token
    /// could reach into is kept: what stands by itself belongs to the plain search.
    fn copied(&mut self, text: &str, from: usize, to: usize) {
        /// Bytes kept after a decoded character and before the next.
        const AFTER: usize = 512;
        const BEFORE: usize = 128;
        let (first, last) = (from == 0, to == text.len());
        let head = if first { from } else { text.ceil_char_boundary((from + AFTER).min(to)) };
        let tail = if last { to } else { text.floor_char_boundary(to.saturating_sub(BEFORE).max(from)) };
        if head >= tail {
            return self.piece(text.get(from..to).unwrap_or_default(), from, to);
        }
        self.piece(text.get(from..head).unwrap_or_default(), from, head);
        self.piece("\n", head, head + 1);
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
        if self.flip {
            return (self.text.len().saturating_sub(to), self.text.len().saturating_sub(from));
        }
        (self.place(from).0, self.place(to.saturating_sub(1).max(from)).1)
    }

    /// The source bytes behind one byte of the view.
    fn place(&self, at: usize) -> (usize, usize) {
        let next = self.pieces.partition_point(|p| p.0 <= at);
        let Some(&(view_at, start, end)) = self.pieces.get(next.saturating_sub(1)) else { return (0, 0) };
        let width = self.pieces.get(next).map_or(self.text.len(), |p| p.0) - view_at;
        if self.exact && width == end - start {
            let byte = start + at.saturating_sub(view_at);
            (byte, byte + 1)
        } else {
            (start, end)
        }
    }
}

/// Every view of `text` that has something in it. With `top`, the views that look at the whole text anew: reversed,
/// folded, joined, ROT13.
pub(super) fn views(text: &str, top: bool) -> Vec<View> {
    let mut views = Vec::new();
    base64(text, &mut views);
    base32(text, &mut views);
    hex(text, &mut views);
    codes(text, &mut views);
    escapes(text, &mut views);
    quoted_printable(text, &mut views);
    spaced(text, &mut views);
    if top {
        glued(text, &mut views);
        joined(text, &mut views);
        folded(text, &mut views);
        reversed(text, &mut views);
        rot13(text, &mut views);
    }
    views.retain(|v| v.text.len() >= MIN_LIST || !v.unread.is_empty());
    views
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

/// Runs of an alphabet that are broken only by line ends, quotes and joining signs, put together.
struct Gathered {
    run: String,
    /// Offset in `run`, and where in the text it stands.
    places: Vec<(usize, usize)>,
    end: usize,
}

impl Gathered {
    /// Where in the text the byte of the run stands.
    fn place(&self, at: usize) -> usize {
        let index = self.places.partition_point(|p| p.0 <= at).saturating_sub(1);
        self.places.get(index).map_or(0, |p| p.1 + (at - p.0))
    }
}

/// Pieces shorter than `piece` start no run.
fn gathered(text: &str, piece: usize, keep: impl Fn(u8) -> bool) -> Vec<Gathered> {
    let bytes = text.as_bytes();
    let mut out: Vec<Gathered> = Vec::new();
    runs(text, 4, keep, |at, run| {
        let wrapped = out.last().is_some_and(|last| {
            let gap = bytes.get(last.end..at).unwrap_or_default();
            let glue = |b: &u8| {
                b.is_ascii_whitespace()
                    || matches!(b, b'"' | b'\'' | b'+' | b'\\' | b',' | b'>' | b'.' | b'|')
            };
            let ends = |b: &u8| matches!(b, b'\n' | b'"' | b'\'');
            gap.len() <= 12 && gap.iter().all(glue) && gap.iter().any(ends) && !last.run.ends_with('=')
        });
        match (wrapped, out.last_mut()) {
            (true, Some(last)) => {
                last.places.push((last.run.len(), at));
                last.run.push_str(run);
                last.end = at + run.len();
            }
            _ if run.len() >= piece => {
                out.push(Gathered { run: run.to_owned(), places: vec![(0, at)], end: at + run.len() });
            }
            _ => {}
        }
    });
    out
}

/// What of decoded bytes could be text: runs of printable ASCII that are long enough to hold a token. `place` says where
/// the encoding of a byte starts.
fn readable(view: &mut View, bytes: &[u8], end: usize, place: impl Fn(usize) -> usize) {
    const PIECE: usize = 16;
    // UTF-16 is Latin text with zeros in between.
    let zeros = memchr::memchr_iter(0, bytes).count();
    let kept: Vec<usize> = match zeros * 4 >= bytes.len() {
        true => (0..bytes.len()).filter(|i| bytes.get(*i) != Some(&0)).collect(),
        false => Vec::new(),
    };
    let original = |i: usize| if kept.is_empty() { i } else { kept.get(i).copied().unwrap_or(bytes.len()) };
    let len = if kept.is_empty() { bytes.len() } else { kept.len() };
    let byte = |i: usize| bytes.get(original(i)).copied().unwrap_or(0);
    let mut at = 0;
    while at < len {
        let printable = |b: u8| b.is_ascii_graphic() || matches!(b, b' ' | b'\n' | b'\r' | b'\t');
        let run = (at..len).take_while(|i| printable(byte(*i))).count();
        if run >= MIN_LIST {
            view.gap();
            let mut from = at;
            while from < at + run {
                let to = (from + PIECE).min(at + run);
                let text: String = (from..to).map(|i| char::from(byte(i))).collect();
                let stop = if to < len { place(original(to)) } else { end };
                view.piece(&text, place(original(from)), stop);
                from = to;
            }
        }
        at += run + 1;
    }
}

/// Base64 and base64url, at each of the four alignments: a word may be glued in front.
fn base64(text: &str, views: &mut Vec<View>) {
    const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    static ENGINE: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
    let keep = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'_' | b'-' | b'=');
    let mut view = View { nested: true, ..View::new("base64") };
    let mut inflations = 0;
    for found in gathered(text, 16, keep) {
        let mut at = 0;
        for part in found.run.split('=') {
            let from = at;
            at += part.len() + 1;
            if part.len() < MIN_BASE64 {
                continue;
            }
            let digit = |b: u8| match b {
                b'-' => b'+',
                b'_' => b'/',
                b => b,
            };
            let standard: Vec<u8> = part.bytes().map(digit).collect();
            for shift in 0..4 {
                let rest = standard.get(shift..).unwrap_or_default();
                let whole = rest.get(..rest.len() - usize::from(rest.len() % 4 == 1)).unwrap_or_default();
                let Ok(bytes) = ENGINE.decode(whole) else { continue };
                if shift > 0 || !inflated(&mut view, &bytes, found.place(from), found.end, &mut inflations) {
                    let end = found.place(from + part.len() - 1) + 1;
                    readable(&mut view, &bytes, end, |i| found.place(from + shift + i / 3 * 4 + i % 3));
                }
            }
        }
    }
    views.push(view);
}

/// Compressed bytes, inflated; false when they are none.
fn inflated(view: &mut View, bytes: &[u8], start: usize, end: usize, inflations: &mut usize) -> bool {
    let (plain, whole) = match bytes {
        [0x1f, 0x8b, 8, ..] | [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] if *inflations >= INFLATIONS => {
            view.unread.push((start, end));
            return true;
        }
        [0x1f, 0x8b, 8, ..] => inflate(flate2::read::GzDecoder::new(bytes)),
        [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => inflate(flate2::read::ZlibDecoder::new(bytes)),
        _ => return false,
    };
    if plain.is_empty() {
        return false;
    }
    *inflations += 1;
    view.gap();
    view.piece(&String::from_utf8_lossy(&plain), start, end);
    if !whole {
        view.unread.push((start, end));
    }
    true
}

fn inflate(reader: impl std::io::Read) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    let _ = reader.take(INFLATED + 1).read_to_end(&mut out);
    let whole = out.len() as u64 <= INFLATED;
    (out, whole)
}

/// Base32 of either case, at each of the eight alignments.
fn base32(text: &str, views: &mut Vec<View>) {
    let mut view = View { nested: true, ..View::new("base32") };
    for keep in [
        (|b: u8| matches!(b, b'A'..=b'Z' | b'2'..=b'7')) as fn(u8) -> bool,
        |b| matches!(b, b'a'..=b'z' | b'2'..=b'7'),
    ] {
        for found in gathered(text, 16, keep) {
            if found.run.len() < MIN_BASE64 || !found.run.bytes().any(|b| b.is_ascii_digit()) {
                continue;
            }
            for shift in 0..8 {
                let bytes = unbase32(found.run.as_bytes().get(shift..).unwrap_or_default());
                readable(&mut view, &bytes, found.end, |i| found.place(shift + i * 8 / 5));
            }
        }
    }
    views.push(view);
}

fn unbase32(digits: &[u8]) -> Vec<u8> {
    let (mut bits, mut held) = (0u32, 0u32);
    let mut out = Vec::with_capacity(digits.len() * 5 / 8);
    for digit in digits.iter().map(u8::to_ascii_uppercase) {
        let value = if digit.is_ascii_alphabetic() { digit - b'A' } else { digit.wrapping_sub(b'2') + 26 };
        held = (held << 5) | u32::from(value & 31);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits) as u8);
        }
    }
    out
}

/// Hexadecimal digits in one run, at both alignments.
fn hex(text: &str, views: &mut Vec<View>) {
    let mut view = View { nested: true, ..View::new("hex") };
    for found in gathered(text, 16, |b| b.is_ascii_hexdigit()) {
        if found.run.len() < MIN_HEX {
            continue;
        }
        for shift in 0..2 {
            let digits = found.run.as_bytes().get(shift..).unwrap_or_default();
            let bytes: Vec<u8> = digits.chunks_exact(2).filter_map(|pair| number(pair, 16)).collect();
            readable(&mut view, &bytes, found.end, |i| found.place(shift + i * 2));
        }
    }
    views.push(view);
}

fn number(digits: &[u8], radix: u32) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

/// Lists of character codes: hexadecimal (`67 68`, `0x67, 0x68`, `\x67`), decimal, octal and binary.
fn codes(text: &str, views: &mut Vec<View>) {
    type Read = fn(&str) -> Option<u8>;
    let readers: [(&'static str, Read); 4] = [
        ("hex", |w| {
            let digits =
                ["0x", "0X", "x", "X", "u00", "u{"].iter().find_map(|p| w.strip_prefix(p)).unwrap_or(w);
            (digits.len() == 2).then(|| number(digits.as_bytes(), 16)).flatten()
        }),
        ("decimal", |w| (w.len() <= 3).then(|| number(w.as_bytes(), 10)).flatten().filter(|b| *b >= 32)),
        ("octal", |w| {
            let digits = w.strip_prefix("0o").unwrap_or(w);
            matches!(digits.len(), 2..=4).then(|| number(digits.as_bytes(), 8)).flatten().filter(|b| *b >= 32)
        }),
        ("binary", |w| matches!(w.len(), 7 | 8).then(|| number(w.as_bytes(), 2)).flatten()),
    ];
    for (encoding, read) in readers {
        let mut view = View { nested: true, ..View::new(encoding) };
        let mut list: Vec<u8> = Vec::new();
        let (mut from, mut to) = (0, 0);
        let mut flush = |list: &mut Vec<u8>, from: usize, to: usize| {
            if list.len() >= MIN_LIST {
                view.gap();
                view.piece(&String::from_utf8_lossy(list), from, to);
            }
            list.clear();
        };
        runs(
            text,
            1,
            |b| b.is_ascii_alphanumeric(),
            |at, word| match read(word).filter(|b| b.is_ascii()) {
                Some(byte) => {
                    if list.is_empty() || at - to > 6 {
                        flush(&mut list, from, to);
                        from = at;
                    }
                    list.push(byte);
                    to = at + word.len();
                }
                None => flush(&mut list, from, to),
            },
        );
        flush(&mut list, from, to);
        views.push(view);
    }
}

/// The text with URL escapes, string escapes and character references read.
fn escapes(text: &str, views: &mut Vec<View>) {
    let mut view = View { nested: true, exact: true, ..View::new("escaped") };
    let mut at = 0;
    let mut copied = 0;
    let mut any = 0;
    while let Some(found) = memchr::memchr3(b'%', b'\\', b'&', text.as_bytes().get(at..).unwrap_or_default())
    {
        let here = at + found;
        let rest = text.get(here..).unwrap_or_default();
        match unescape(rest) {
            Some((c, width)) => {
                view.copied(text, copied, here);
                view.piece(c.encode_utf8(&mut [0; 4]), here, here + width);
                any += 1;
                at = here + width;
                copied = at;
            }
            None => at = here + 1,
        }
    }
    if any > 0 {
        view.copied(text, copied, text.len());
        views.push(view);
    }
}

/// A character written as an escape, and the escape's length.
fn unescape(text: &str) -> Option<(char, usize)> {
    let bytes = text.as_bytes();
    let digits = |from: usize, to: usize, radix| {
        text.get(from..to)
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|d| u32::from_str_radix(d, radix).ok())
            .and_then(char::from_u32)
    };
    match (bytes.first()?, bytes.get(1)?) {
        (b'%', b'u') => digits(2, 6, 16).map(|c| (c, 6)),
        (b'%', _) => digits(1, 3, 16).map(|c| (c, 3)),
        (b'\\', b'x') => digits(2, 4, 16).map(|c| (c, 4)),
        (b'\\', b'u') if bytes.get(2) == Some(&b'{') => {
            let len = bytes.iter().skip(3).take(8).position(|b| *b == b'}')?;
            digits(3, 3 + len, 16).map(|c| (c, len + 4))
        }
        (b'\\', b'u') => digits(2, 6, 16).map(|c| (c, 6)),
        (b'\\', b'U') => digits(2, 10, 16).map(|c| (c, 10)),
        (b'\\', b'0'..=b'7') => digits(1, 4, 8).map(|c| (c, 4)).or_else(|| digits(1, 3, 8).map(|c| (c, 3))),
        (b'\\', b'/' | b'"' | b'_' | b'-' | b'.') => Some((char::from(*bytes.get(1)?), 2)),
        (b'&', _) => crate::envelope::entity(text),
        _ => None,
    }
}

/// `=41` and soft line ends, where there are several.
fn quoted_printable(text: &str, views: &mut Vec<View>) {
    let mut view = View { nested: true, exact: true, ..View::new("quoted-printable") };
    let (mut copied, mut any) = (0, 0);
    for at in memchr::memchr_iter(b'=', text.as_bytes()) {
        if at < copied {
            continue;
        }
        let after = text.as_bytes().get(at + 1..).unwrap_or_default();
        let (piece, width) = match after {
            [b'\r', b'\n', ..] => (None, 3),
            [b'\n', ..] => (None, 2),
            [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => match number(&[*a, *b], 16) {
                Some(byte @ 0x20..0x7f) => (Some(char::from(byte)), 3),
                _ => continue,
            },
            _ => continue,
        };
        view.copied(text, copied, at);
        if let Some(c) = piece {
            view.piece(c.encode_utf8(&mut [0; 4]), at, at + width);
        }
        copied = at + width;
        any += 1;
    }
    if any > 0 {
        view.copied(text, copied, text.len());
        views.push(view);
    }
}

/// Single characters with the same few bytes between each two: `g h p _`, `'g', 'h'`, `g-h-p`.
fn spaced(text: &str, views: &mut Vec<View>) {
    const GAP: usize = 6;
    let bytes = text.as_bytes();
    let mut view = View::new("separated");
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        let after = bytes.get(at + 1..(at + 1 + GAP + 1).min(bytes.len())).unwrap_or_default();
        let gap = after.iter().take_while(|b| !b.is_ascii_alphanumeric()).count();
        if !b.is_ascii_alphanumeric() || gap == 0 || gap > GAP {
            at += 1;
            continue;
        }
        let separator = bytes.get(at + 1..at + 1 + gap).unwrap_or_default();
        let mut list = vec![b];
        let mut end = at + 1;
        while bytes.get(end..end + gap) == Some(separator)
            && let Some(next) = bytes.get(end + gap).filter(|b| b.is_ascii_graphic())
        {
            list.push(*next);
            end += gap + 1;
        }
        if list.len() >= MIN_LIST {
            view.gap();
            view.piece(&String::from_utf8_lossy(&list), at, end);
            at = end;
        } else {
            at += 1;
        }
    }
    views.push(view);
}

/// `"ghp_ab" + "cd…"`, `'a' . 'b'`, `"a" "b"`: string literals joined in code.
fn glued(text: &str, views: &mut Vec<View>) {
    let mut view = View { exact: true, ..View::new("separated") };
    let bytes = text.as_bytes();
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = memchr::memchr3(b'"', b'\'', b'`', bytes.get(at..).unwrap_or_default()) {
        let quote = at + found;
        let between = bytes.get(quote + 1..).unwrap_or_default();
        let glue =
            |b: &u8| b.is_ascii_whitespace() || matches!(b, b'+' | b'.' | b'\\' | b',' | b'&' | b'~' | b'|');
        let len = between.iter().take(24).take_while(|b| glue(b)).count();
        if between.get(len).is_some_and(|b| matches!(b, b'"' | b'\'' | b'`')) {
            view.copied(text, copied, quote);
            copied = quote + len + 2;
            at = copied;
        } else {
            at = quote + 1;
        }
    }
    if copied > 0 {
        view.copied(text, copied, text.len());
        views.push(view);
    }
}

/// From each beginning of a vendor's format on, the text without white space: a token that was wrapped or spaced out.
fn joined(text: &str, views: &mut Vec<View>) {
    /// Longest token that is put together, in bytes.
    const REACH: usize = 128;
    let mut view = View { exact: true, ..View::new("split") };
    for start in secrets::format_starts(text) {
        let rest = text.get(start..).unwrap_or_default();
        let mut end = start;
        let mut broken = false;
        view.gap();
        let from = view.text.len();
        for (at, c) in rest.char_indices() {
            if view.text.len() - from >= REACH {
                break;
            }
            if c.is_whitespace() {
                broken = true;
                continue;
            }
            end = start + at + c.len_utf8();
            view.piece(rest.get(at..at + c.len_utf8()).unwrap_or_default(), start + at, end);
        }
        if !broken || end == start {
            view.text.truncate(from);
            while view.pieces.last().is_some_and(|p| p.0 >= from) {
                view.pieces.pop();
            }
        }
    }
    views.push(view);
}

/// The text as a reader sees it: look-alikes folded, invisible characters gone.
fn folded(text: &str, views: &mut Vec<View>) {
    use crate::envelope::{fold, invisible};
    let plain = |c: char| c.is_ascii() && !invisible(c);
    if text.chars().all(plain) {
        return;
    }
    let mut view = View { exact: true, ..View::new("look-alikes") };
    let mut start = 0;
    for (at, c) in text.char_indices().filter(|(_, c)| !plain(*c)) {
        let end = at + c.len_utf8();
        if at > start {
            view.copied(text, start, at);
        }
        if !invisible(c) {
            view.piece(fold(c).encode_utf8(&mut [0; 4]), at, end);
        }
        start = end;
    }
    view.copied(text, start, text.len());
    views.push(view);
}

fn reversed(text: &str, views: &mut Vec<View>) {
    let backwards = text.chars().rev().collect();
    views.push(View { text: backwards, nested: true, flip: true, ..View::new("reversed") });
}

fn rot13(text: &str, views: &mut Vec<View>) {
    let rotated = text.chars().map(|c| match c {
        'a'..='m' | 'A'..='M' => char::from(c as u8 + 13),
        'n'..='z' | 'N'..='Z' => char::from(c as u8 - 13),
        c => c,
    });
    let mut view = View { exact: true, ..View::new("rot13") };
    view.piece(&rotated.collect::<String>(), 0, text.len());
    views.push(view);
}
