//! Lists of character codes: hexadecimal (`67 68`, `0x67, 0x68`, `\x67`), decimal, octal and binary.

use super::{MIN_LIST, View, number};
use crate::bits::Class;

/// Longest code, as in `01100111`.
const WORD: usize = 8;
/// Most bytes between two codes.
const GAP: usize = 6;

/// Where codes could stand: [`MIN_LIST`] words or more that could be codes, read forwards or backwards, close to each
/// other.
pub(super) fn chains(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let digits = Class::of(bytes, |b| b.is_ascii_digit());
    let mut settled = 0;
    while let Some(digit) = digits.next(settled) {
        let mut at = digit;
        while at > settled && byte(at - 1).is_ascii_alphanumeric() {
            at -= 1;
        }
        let (start, mut end, mut words) = (at, at, 0);
        loop {
            let word = bytes.get(at..).unwrap_or_default();
            let len = word.iter().take_while(|b| b.is_ascii_alphanumeric()).count();
            if !word.get(..len).is_some_and(could_be_code) {
                at += len;
                break;
            }
            (words, at) = (words + 1, at + len);
            end = at;
            let gap = between(bytes, at);
            if gap > GAP || gap == 0 {
                break;
            }
            at += gap;
            at += called(bytes, at);
        }
        if words >= MIN_LIST {
            out.push((start, end));
        }
        settled = at.max(digit + 1);
    }
    out
}

/// Bytes at `from` that are of no word, up to one more than [`GAP`].
fn between(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.iter().take(GAP + 1).take_while(|b| !b.is_ascii_alphanumeric()).count()
}

/// The name of a function that makes a character of its code.
fn makes_character(word: &[u8]) -> bool {
    [b"chr".as_slice(), b"char", b"chrw"].iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// How long `chr(` is, where it stands before the next code.
fn called(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let word = rest.iter().take(5).take_while(|b| b.is_ascii_alphanumeric()).count();
    let gap = between(bytes, from + word);
    if rest.get(..word).is_some_and(makes_character) && (1..=GAP).contains(&gap) { word + gap } else { 0 }
}

/// Could the word be a code of an ASCII character? Each has a digit; a long one has zeros or a prefix at one end.
fn could_be_code(word: &[u8]) -> bool {
    let ends = |b: &[u8]| b.iter().any(|b| word.first() == Some(b) || word.last() == Some(b));
    word.iter().any(u8::is_ascii_digit)
        && match word.len() {
            ..=3 => true,
            4..=6 => ends(b"0u"),
            _ => word.len() <= WORD && word.iter().all(|b| matches!(b, b'0' | b'1')),
        }
}

pub(super) fn lists(text: &str, chains: &[(usize, usize)], views: &mut Vec<View>) {
    type Read = fn(&[u8]) -> Option<u8>;
    let readers: [(&'static str, Read); 4] = [
        ("hex", |w| {
            let prefixes: [&[u8]; 5] = [b"0x", b"0X", b"x", b"X", b"u00"];
            let digits = prefixes.iter().find_map(|p| w.strip_prefix(*p)).unwrap_or(w);
            (digits.len() == 2).then(|| number(digits, 16)).flatten()
        }),
        ("decimal", |w| (w.len() <= 3).then(|| number(w, 10)).flatten().filter(|b| *b >= 32)),
        ("octal", |w| {
            let digits = w.strip_prefix(b"0o").unwrap_or(w);
            matches!(digits.len(), 2..=4).then(|| number(digits, 8)).flatten().filter(|b| *b >= 32)
        }),
        ("binary", |w| matches!(w.len(), 7 | 8).then(|| number(w, 2)).flatten()),
    ];
    if chains.is_empty() {
        return;
    }
    for (encoding, read) in readers {
        let mut view = View { nested: true, ..View::new(encoding) };
        for &(start, end) in chains {
            list(&mut view, text.as_bytes().get(start..end).unwrap_or_default(), start, read);
        }
        views.push(view);
    }
}

/// The lists of one reader's codes in `chain`, which begins at `base`.
fn list(view: &mut View, chain: &[u8], base: usize, read: fn(&[u8]) -> Option<u8>) {
    let mut list: Vec<u8> = Vec::new();
    let (mut from, mut to) = (0, 0);
    let mut flush = |list: &mut Vec<u8>, from: usize, to: usize| {
        if list.len() >= MIN_LIST {
            view.gap();
            view.piece(&String::from_utf8_lossy(list), base + from, base + to);
        }
        list.clear();
    };
    let mut at = 0;
    while at < chain.len() {
        let rest = chain.get(at..).unwrap_or_default();
        let len = rest.iter().take_while(|b| b.is_ascii_alphanumeric()).count();
        if len == 0 {
            at += 1;
            continue;
        }
        let word = rest.get(..len).unwrap_or_default();
        match read(word).filter(u8::is_ascii) {
            Some(byte) => {
                if list.is_empty() {
                    from = at;
                }
                list.push(byte);
                to = at + len;
            }
            None if makes_character(word) => {}
            None => flush(&mut list, from, to),
        }
        at += len;
    }
    flush(&mut list, from, to);
}
