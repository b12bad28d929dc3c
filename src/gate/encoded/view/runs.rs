//! Encodings that stand in one run of their alphabet, perhaps wrapped over lines or quoted in pieces.

use super::{MIN_LIST, View, number};
use crate::bits::Class;
use std::borrow::Cow;
use std::io::Read as _;

/// What one compressed run may inflate to, in bytes; more is [`View::unread`].
const INFLATED: u64 = 1 << 20;
/// Compressed runs that are inflated in one text; more are [`View::unread`].
const INFLATIONS: usize = 16;

/// Base64 and hexadecimal runs shorter than this hide no token, in bytes of the encoded form.
const MIN_BASE64: usize = 24;
const MIN_HEX: usize = 32;
/// Pieces shorter than this start no run.
const PIECE: usize = 16;
/// Shortest piece that goes on with a wrapped run.
const NEXT: usize = 4;
/// Most bytes between two pieces.
const GAP: usize = 12;

/// The value of each base64 digit, of both alphabets; `=` counts as part of a run and has none.
const DIGITS: [u8; 256] = {
    let mut table = [OTHER; 256];
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut i = 0;
    while i < 64 {
        table[alphabet[i] as usize] = i as u8;
        i += 1;
    }
    table[b'-' as usize] = 62;
    table[b'_' as usize] = 63;
    table[b'=' as usize] = PAD;
    table
};
const PAD: u8 = 0x40;
const OTHER: u8 = 0xFF;

#[inline(always)]
pub(super) fn base64_digit(b: u8) -> bool {
    DIGITS[b as usize] != OTHER
}

/// Runs of at least [`PIECE`] base64 digits.
pub(super) fn long(bytes: &[u8]) -> Vec<(usize, usize)> {
    let digits = Class::of(bytes, |b| {
        b.is_ascii_alphanumeric() | (b == b'+') | (b == b'/') | (b == b'-') | (b == b'_') | (b == b'=')
    });
    let runs = digits.runs(PIECE);
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(from) = runs.next(at) {
        at = digits.next_other(from + PIECE);
        out.push((from, at));
    }
    out
}

/// Runs of at least [`PIECE`] bytes of `keep` in the `long` runs. A run covers each sixteenth byte, so that most others
/// are not looked at.
fn inside(bytes: &[u8], long: &[(usize, usize)], keep: impl Fn(u8) -> bool) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    for &(first, last) in long {
        let within = bytes.get(..last).unwrap_or_default();
        // Before `start` everything is settled; the last byte of a run that begins there is `start + PIECE - 1` or later.
        let mut start = first;
        while let Some(&probe) = within.get(start + PIECE - 1) {
            if !keep(probe) {
                start += PIECE;
                continue;
            }
            let head = within.get(start..start + PIECE - 1).unwrap_or_default();
            let from = start + head.iter().rposition(|b| !keep(*b)).map_or(0, |at| at + 1);
            let more = within.get(start + PIECE..).unwrap_or_default();
            let end = start + PIECE + more.iter().take_while(|b| keep(**b)).count();
            if end - from >= PIECE {
                out.push((from, end));
            }
            start = end;
        }
    }
    out
}

/// Runs of an alphabet that are broken only by line ends, quotes and joining signs, put together.
pub(super) struct Gathered<'a> {
    run: Cow<'a, [u8]>,
    /// Where in the text it begins.
    start: usize,
    /// Of its further pieces, the offset in `run`, and where in the text they stand.
    places: Vec<(usize, usize)>,
    end: usize,
}

impl Gathered<'_> {
    /// Where in the text the byte of the run stands.
    fn place(&self, at: usize) -> usize {
        match self.places.partition_point(|p| p.0 <= at).checked_sub(1) {
            Some(index) => self.places.get(index).map_or(0, |p| p.1 + (at - p.0)),
            None => self.start + at,
        }
    }

    /// From the first byte to the last, what breaks the run included, when the run could decode to text backwards.
    pub(super) fn mirrored(&self) -> Option<(usize, usize)> {
        let run = &*self.run;
        let base64 = |part: &[u8]| {
            let digit =
                |i: usize| part.len().checked_sub(i + 1).and_then(|at| part.get(at)).map_or(0, |b| *b);
            (0..4).any(|shift| {
                (shift == 0 && magic(&[digit(0), digit(1), digit(2), digit(3)]))
                    || could_read(part.len() - shift, |i| digit(shift + i))
            })
        };
        let longest = |keep: fn(&u8) -> bool| run.split(|b| !keep(b)).map(<[u8]>::len).max().unwrap_or(0);
        let hexadecimal = || match run.iter().all(u8::is_ascii_hexdigit) {
            true => could_read_hex(run.iter().rev().copied()),
            false => longest(u8::is_ascii_hexdigit) >= PIECE,
        };
        let could = run.split(|b| *b == b'=').any(|part| part.len() >= MIN_BASE64 && base64(part))
            || hexadecimal()
            || longest(|b| matches!(b, b'A'..=b'Z' | b'2'..=b'7')) >= PIECE
            || (run.iter().any(u8::is_ascii_digit)
                && longest(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7')) >= PIECE);
        could.then_some((self.start, self.end))
    }
}

/// The `pieces`, runs of `keep`, with what goes on with them; those that are long enough to hide something.
pub(super) fn gathered<'a>(
    bytes: &'a [u8],
    pieces: &[(usize, usize)],
    keep: impl Fn(u8) -> bool + Copy,
) -> Vec<Gathered<'a>> {
    let len = |from: usize| bytes.get(from..).unwrap_or_default().iter().take_while(|b| keep(**b)).count();
    let mut out: Vec<Gathered<'a>> = Vec::new();
    let mut done = 0;
    for &(from, to) in pieces {
        let start = from.max(done);
        if start + PIECE > to {
            continue;
        }
        let mut whole = Cow::Borrowed(bytes.get(start..to).unwrap_or_default());
        let mut places = Vec::new();
        let mut end = to;
        while !whole.ends_with(b"=")
            && let Some(next) = wrapped(bytes, end, keep)
            && let more @ NEXT.. = len(next)
        {
            places.push((whole.len(), next));
            whole.to_mut().extend_from_slice(bytes.get(next..next + more).unwrap_or_default());
            end = next + more;
        }
        if whole.len() >= MIN_BASE64 {
            out.push(Gathered { run: whole, start, places, end });
        }
        done = end + 1;
    }
    out
}

/// Where the run that ends at `end` goes on, when what lies between only wraps it.
fn wrapped(bytes: &[u8], end: usize, keep: impl Fn(u8) -> bool) -> Option<usize> {
    let glue = |b: u8| {
        b.is_ascii_whitespace()
            || matches!(b, b'"' | b'\'' | b'+' | b'\\' | b',' | b'>' | b'.' | b'|')
            // Of comments and lists.
            || matches!(b, b'#' | b'/' | b'*' | b'-')
    };
    let mut at = end;
    while at - end <= GAP {
        let rest = bytes.get(at..).unwrap_or_default();
        // A sign of the alphabet that joins, as `+` does, is no piece by itself.
        let run = rest.iter().take(NEXT).take_while(|b| keep(**b)).count();
        if run == NEXT {
            let between = bytes.get(end..at)?;
            return between.iter().any(|b| matches!(b, b'\n' | b'"' | b'\'')).then_some(at);
        }
        let step = run.max(1);
        if !rest.get(..step)?.iter().all(|b| glue(*b)) {
            return None;
        }
        at += step;
    }
    None
}

/// What of decoded bytes could be text: runs of printable ASCII that are long enough to hold a token. `place` says where
/// the encoding of a byte starts.
fn readable(view: &mut View, bytes: &[u8], end: usize, place: impl Fn(usize) -> usize) {
    const STEP: usize = 16;
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
                let to = (from + STEP).min(at + run);
                let text: String = (from..to).map(|i| char::from(byte(i))).collect();
                let stop = if to < len { place(original(to)) } else { end };
                view.piece(&text, place(original(from)), stop);
                from = to;
            }
        }
        at += run + 1;
    }
}

/// A decoded byte that text could have; zeros stand between the letters of UTF-16.
#[inline(always)]
fn textual(b: u8) -> bool {
    matches!(b, b' '..=b'~' | b'\n' | b'\r' | b'\t' | 0)
}

#[inline(always)]
fn quad(digits: [u8; 4]) -> [u8; 3] {
    let [a, b, c, d] = digits.map(|b| DIGITS[b as usize] & 63);
    [a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]
}

fn head(digits: &[u8]) -> [u8; 4] {
    let at = |i: usize| digits.get(i).copied().unwrap_or(b'A');
    [at(0), at(1), at(2), at(3)]
}

/// Could as many digits decode to [`MIN_LIST`] bytes of text? These hold three whole groups; of three groups in a row one
/// is looked at, and its neighbours only if that one is text.
#[inline(always)]
fn could_read(len: usize, digit: impl Fn(usize) -> u8) -> bool {
    let text = |group: usize| {
        let digits = [digit(group * 4), digit(group * 4 + 1), digit(group * 4 + 2), digit(group * 4 + 3)];
        quad(digits).into_iter().all(textual)
    };
    let groups = len / 4;
    (2..groups).step_by(3).any(|group| {
        text(group) && {
            let before = (1..=2).take_while(|back| text(group - back)).count();
            let after = (group + 1..groups).take(2).take_while(|next| text(*next)).count();
            before + after >= 2
        }
    })
}

/// Could hexadecimal digits decode to [`MIN_LIST`] bytes of text, at one of the two alignments?
fn could_read_hex(digits: impl Iterator<Item = u8>) -> bool {
    // The digit before, and how many bytes of text ended with it and with the one before.
    let (mut last, mut rows) = (None, [0usize; 2]);
    for digit in digits {
        let [ended, row] = &mut rows;
        let text = last.is_some_and(|last| number(&[last, digit], 16).is_some_and(textual));
        *row = if text { *row + 1 } else { 0 };
        if *row >= MIN_LIST {
            return true;
        }
        std::mem::swap(ended, row);
        last = Some(digit);
    }
    false
}

fn decoded(digits: &[u8], out: &mut Vec<u8>) {
    out.clear();
    for group in digits.chunks(4) {
        let bytes = quad(head(group));
        out.extend_from_slice(bytes.get(..group.len() - 1).unwrap_or_default());
    }
}

/// Base64 and base64url, at each of the four alignments: a word may be glued in front.
pub(super) fn base64(gathered: &[Gathered<'_>], views: &mut Vec<View>) {
    let mut view = View { nested: true, ..View::new("base64") };
    let mut inflations = 0;
    let mut bytes = Vec::new();
    for found in gathered {
        let mut at = 0;
        for part in found.run.split(|b| *b == b'=') {
            let from = at;
            at += part.len() + 1;
            if part.len() < MIN_BASE64 {
                continue;
            }
            for shift in 0..4 {
                let rest = part.get(shift..).unwrap_or_default();
                let compressed = shift == 0 && magic(&head(rest));
                if !compressed && !could_read(rest.len(), |i| rest.get(i).copied().unwrap_or(0)) {
                    continue;
                }
                decoded(rest, &mut bytes);
                if !compressed || !inflated(&mut view, &bytes, found.place(from), found.end, &mut inflations)
                {
                    let end = found.place(from + part.len() - 1) + 1;
                    readable(&mut view, &bytes, end, |i| found.place(from + shift + i / 3 * 4 + i % 3));
                }
            }
        }
    }
    views.push(view);
}

/// Digits of the first bytes of gzip and of zlib data.
fn magic(head: &[u8; 4]) -> bool {
    matches!(quad(*head), [0x1f, 0x8b, 8] | [0x78, 0x01 | 0x5e | 0x9c | 0xda, _])
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
pub(super) fn base32(bytes: &[u8], long: &[(usize, usize)], views: &mut Vec<View>) {
    let mut view = View { nested: true, ..View::new("base32") };
    for keep in [
        (|b: u8| matches!(b, b'A'..=b'Z' | b'2'..=b'7')) as fn(u8) -> bool,
        |b| matches!(b, b'a'..=b'z' | b'2'..=b'7'),
    ] {
        for found in gathered(bytes, &inside(bytes, long, keep), keep) {
            if !found.run.iter().any(u8::is_ascii_digit) {
                continue;
            }
            for shift in 0..8 {
                let bytes = unbase32(found.run.get(shift..).unwrap_or_default());
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
pub(super) fn hex(bytes: &[u8], long: &[(usize, usize)], views: &mut Vec<View>) {
    let mut view = View { nested: true, ..View::new("hex") };
    let keep = |b: u8| b.is_ascii_hexdigit();
    for found in gathered(bytes, &inside(bytes, long, keep), keep) {
        if found.run.len() < MIN_HEX || !could_read_hex(found.run.iter().copied()) {
            continue;
        }
        for shift in 0..2 {
            let digits = found.run.get(shift..).unwrap_or_default();
            let bytes: Vec<u8> = digits.chunks_exact(2).filter_map(|pair| number(pair, 16)).collect();
            readable(&mut view, &bytes, found.end, |i| found.place(shift + i * 2));
        }
    }
    views.push(view);
}
