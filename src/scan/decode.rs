//! Decoded views: what a run of a text says once it is decoded.
//!
//! Each view carries a map back to the bytes it came from. Candidates are found over the word stream, so a text without
//! encoded runs costs next to nothing. Decoded bytes of all views together are bounded by [`budget`]; a gzip member is
//! inflated to at most [`MAX_INFLATED`] bytes.

use super::decoders as d;
use super::invisible;
use super::survey::Survey;
use super::token::{self, Token};
use std::collections::HashSet;
use std::sync::OnceLock;

/// Decoders are applied to each other's output this deep.
pub(crate) const MAX_DEPTH: u8 = 4;
/// What one gzip member may inflate to, in bytes.
pub(crate) const MAX_INFLATED: usize = 256 * 1024;
/// The shortest run that is tried as base64 or base32, in bytes.
pub(crate) const MIN_RUN: usize = 16;

/// Decoded bytes that a text of `len` bytes may yield over all views.
pub(crate) fn budget(len: usize) -> usize {
    len.saturating_mul(2).saturating_add(64 * 1024)
}

/// A decoded run.
#[derive(Debug)]
pub(crate) struct View {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    /// (offset in `bytes`, offset in the source), ascending in the first; reversed views descend in the second.
    points: Vec<(u32, u32)>,
    start: usize,
    end: usize,
    /// The text was hidden on purpose: plain text has no reason to be written like this.
    pub hidden: bool,
}

impl View {
    /// A view whose bytes come from `start..end` as a whole.
    pub fn whole(name: &'static str, bytes: Vec<u8>, start: usize, end: usize, hidden: bool) -> View {
        View { name, bytes, points: Vec::new(), start, end, hidden }
    }

    pub fn mapped(
        name: &'static str,
        bytes: Vec<u8>,
        points: Vec<(u32, u32)>,
        span: (usize, usize),
        hidden: bool,
    ) -> View {
        View { name, bytes, points, start: span.0, end: span.1, hidden }
    }

    /// The source bytes behind `from..to` of this view: never empty, always inside the source run.
    pub fn source(&self, from: usize, to: usize) -> (usize, usize) {
        if self.points.is_empty() {
            return (self.start, self.end);
        }
        let (a, b) = (self.place(from, false), self.place(to.saturating_sub(1), true));
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        let (a, b) = (a.clamp(self.start, self.end), b.clamp(self.start, self.end));
        if a < b { (a, b) } else { (self.start, self.end) }
    }

    fn place(&self, at: usize, end: bool) -> usize {
        let i = self.points.partition_point(|p| p.0 as usize <= at).saturating_sub(1);
        match (self.points.get(i), self.points.get(i + 1)) {
            // As many bytes here as there: the source has them as they are.
            (Some(p), Some(next)) if p.1 < next.1 && next.0 - p.0 == next.1 - p.1 => {
                p.1 as usize + at.saturating_sub(p.0 as usize) + usize::from(end)
            }
            (Some(_), Some(next)) if end => next.1 as usize,
            (Some(_), None) if end => self.end,
            (Some(p), _) => p.1 as usize,
            _ => self.start,
        }
    }
}

/// Common words, rotated and reversed, as hashes; a bit set keeps the look-up of other words cheap.
pub(crate) struct Marks {
    bits: [u64; 1 << 10],
    rotated: HashSet<u64>,
    reversed: HashSet<u64>,
}

const MARKS: &str = "the and you your all ignore previous instructions system prompt this that with reveal password \
    please what how from rules above send for are have";
/// Words whose reverse is a word or an abbreviation.
const PALINDROMIC: &[&str] = &["are", "for", "and", "how", "all", "the", "you"];

pub(crate) fn marks() -> &'static Marks {
    static CELL: OnceLock<Marks> = OnceLock::new();
    CELL.get_or_init(|| {
        let words = || MARKS.split_ascii_whitespace();
        let rotated: HashSet<u64> = words().map(|w| token::hash(&d::rot13(w.as_bytes()))).collect();
        let backwards = |w: &str| token::hash(&w.bytes().rev().collect::<Vec<u8>>());
        let reversed: HashSet<u64> = words().filter(|w| !PALINDROMIC.contains(w)).map(backwards).collect();
        let mut bits = [0u64; 1 << 10];
        for h in rotated.iter().chain(&reversed) {
            let b = (h >> 48) as usize;
            bits[b >> 6] |= 1 << (b & 63);
        }
        Marks { bits, rotated, reversed }
    })
}

impl Marks {
    /// A bit for each upper half of a hash.
    pub fn bits(&self) -> &[u64; 1 << 10] {
        &self.bits
    }

    #[inline(always)]
    pub fn maybe(&self, hash: u64) -> bool {
        self.bits[(hash >> 54) as usize] >> (hash >> 48 & 63) & 1 != 0
    }
}

/// Every decoded view of `text`, whose words are `tokens`. `left` is the budget and shrinks by what is returned.
pub(crate) fn views(
    text: &[u8],
    tokens: &[Token],
    seen: &token::Seen,
    survey: &Survey,
    left: &mut usize,
) -> Vec<View> {
    let mut out = Vec::new();
    runs(text, tokens, &survey.runs, &mut out);
    codes(text, tokens, &survey.codes, &mut out);
    marked(text, tokens, &survey.marks, &mut out);
    invisible::morse(text, tokens, &survey.gaps, &mut out);
    d::base85(text, &mut out);
    d::escapes(text, &mut out);
    d::quoted_printable(text, &mut out);
    if seen.invisible >= 48 {
        invisible::zero_width(text, &mut out);
    }
    if seen.smuggled > 0 {
        invisible::smuggled(text, &mut out);
    }
    utf16(text, &mut out);
    out.retain(|v| match left.checked_sub(v.bytes.len()) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    });
    out
}

/// UTF-16 without or with a mark, at the head of the text.
fn utf16(text: &[u8], out: &mut Vec<View>) {
    let head = text.get(..text.len().min(64)).unwrap_or_default();
    let little = head.iter().skip(1).step_by(2).filter(|b| **b == 0).count();
    let big = head.iter().step_by(2).filter(|b| **b == 0).count();
    let bom = head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]);
    if head.len() >= 8 && (bom || little * 5 >= head.len() * 2 || big * 5 >= head.len() * 2) {
        let be = head.starts_with(&[0xfe, 0xff]) || !head.starts_with(&[0xff, 0xfe]) && big > little;
        if let Some(bytes) = d::utf16(text, be) {
            let n = bytes.chars().count().max(1);
            let mut points = Vec::with_capacity(n / 8 + 1);
            for (i, (at, _)) in bytes.char_indices().enumerate() {
                if i % 8 == 0 {
                    points.push((at as u32, (i * 2) as u32));
                }
            }
            out.push(View::mapped("utf-16", bytes.into_bytes(), points, (0, text.len()), false));
        }
    }
}

/// Runs of one long word, or of base64 lines: base64, base32, hex.
fn runs(text: &[u8], tokens: &[Token], candidates: &[u32], out: &mut Vec<View>) {
    let mut reached = 0;
    for i in candidates.iter().map(|i| *i as usize) {
        let Some(t) = tokens.get(i) else { continue };
        let (start, end) = (t.start as usize, t.end as usize);
        if start < reached || t.flags & (token::FOLDED | token::SINGLE) != 0 {
            continue;
        }
        let long = end - start >= MIN_RUN;
        // Split at intervals: eight or more pieces of at least four bytes that look like base64.
        let split = !long && {
            let next = tokens.get(i + 1..i + 5).unwrap_or_default();
            next.iter().filter(|n| mixed(text, n)).count() >= 3
        };
        if !(split || long && coded(text.get(start..end).unwrap_or_default())) {
            continue;
        }
        let (from, to) = d::extend_run(text, start, end);
        reached = to;
        let Some(run) = text.get(from..to) else { continue };
        if let Some((name, bytes)) = d::base_n(run) {
            let readable = d::readable(&bytes);
            if readable || bytes.starts_with(&[0x1f, 0x8b]) {
                push_binary(name, bytes, from, to, out);
                continue;
            }
            if let Some(text16) = d::maybe_utf16(&bytes) {
                out.push(View::whole(name, text16.into_bytes(), from, to, true));
                continue;
            }
        }
    }
}

/// A word that can be the beginning of readable text in base64, base32 or hex. Lower-case letters alone cannot: the
/// second of each four characters of base64 holds two bits of one letter and the upper bits of the next, which gives a
/// capital or a digit in every second group; hexadecimal text has digits, and base32 is upper-case or has digits.
fn coded(word: &[u8]) -> bool {
    word.iter().any(|b| !b.is_ascii_lowercase())
}

fn mixed(text: &[u8], t: &Token) -> bool {
    let w = text.get(t.start as usize..t.end as usize).unwrap_or_default();
    w.iter().any(u8::is_ascii_uppercase) && w.iter().any(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

fn push_binary(name: &'static str, bytes: Vec<u8>, from: usize, to: usize, out: &mut Vec<View>) {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        if let Some(inflated) = d::gunzip(&bytes, MAX_INFLATED) {
            out.push(View::whole("gzip", inflated, from, to, true));
        }
    } else {
        out.push(View::whole(name, bytes, from, to, true));
    }
}

/// Rows of number codes.
fn codes(text: &[u8], tokens: &[Token], candidates: &[u32], out: &mut Vec<View>) {
    let mut from = 0;
    for i in candidates.iter().map(|i| *i as usize).filter(|i| *i < tokens.len()) {
        if i >= from {
            from = i + 1 + d::codes(text, tokens, i, out);
        }
    }
}

/// Views that show in the words: ROT13 and reversed text.
fn marked(text: &[u8], tokens: &[Token], candidates: &[u32], out: &mut Vec<View>) {
    let marks = marks();
    let (mut rot_hits, mut rev_hits): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    for i in candidates.iter().map(|i| *i as usize) {
        let Some(t) = tokens.get(i) else { continue };
        if t.flags & (token::FOLDED | token::DIGIT) == 0 && (3..=12).contains(&t.len) {
            if marks.rotated.contains(&t.hash) {
                rot_hits.push(i);
            }
            if marks.reversed.contains(&t.hash) {
                rev_hits.push(i);
            }
        }
    }
    for (hits, name) in [(rot_hits, "rot13"), (rev_hits, "reversed")] {
        let mut k = 0;
        while k + 1 < hits.len() {
            let (a, mut b) = (hits[k], hits[k]);
            let mut n = 1;
            while let Some(h) = hits.get(k + 1) {
                if h - b > 12 {
                    break;
                }
                b = *h;
                n += 1;
                k += 1;
            }
            k += 1;
            if n >= 2 {
                let (Some(f), Some(l)) =
                    (tokens.get(a.saturating_sub(12)), tokens.get((b + 12).min(tokens.len() - 1)))
                else {
                    continue;
                };
                let (from, to) = (f.start as usize, l.end as usize);
                let Some(run) = text.get(from..to) else { continue };
                if name == "rot13" {
                    let points = (0..run.len()).step_by(4).map(|o| (o as u32, (from + o) as u32)).collect();
                    out.push(View::mapped("rot13", d::rot13(run), points, (from, to), true));
                } else {
                    let bytes = String::from_utf8_lossy(run).chars().rev().collect::<String>().into_bytes();
                    let points = (0..bytes.len())
                        .step_by(4)
                        .map(|o| (o as u32, to.saturating_sub(o) as u32))
                        .collect();
                    out.push(View::mapped("reversed", bytes, points, (from, to), true));
                }
            }
        }
    }
}
