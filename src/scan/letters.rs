//! Where words end and what they hash to, many bytes at a time.

use super::token::{CAPITAL, DIGIT, ING, LETTER};
use crate::bits;

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hash of a folded word. The same bytes give the same value everywhere and on every machine.
#[inline]
pub(crate) fn hash(word: &[u8]) -> u64 {
    let (chunks, tail) = word.as_chunks::<8>();
    let h = chunks.iter().fold(0, |h, c| mix(h, u64::from_le_bytes(*c)));
    match tail {
        [] => h,
        tail => mix(h, tail.iter().rev().fold(0, |x, b| x << 8 | u64::from(*b))),
    }
}

#[inline(always)]
fn mix(h: u64, chunk: u64) -> u64 {
    let x = (h ^ chunk).wrapping_mul(MULTIPLIER);
    x ^ (x >> 29)
}

/// The first sixteen bytes of a row of folded letters, for the hashes of what begins it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prefixes([u64; 2]);

impl Prefixes {
    #[inline]
    pub fn of(folded: &[u8]) -> Prefixes {
        let mut bytes = [0u8; 16];
        match folded.first_chunk::<16>() {
            Some(all) => bytes = *all,
            None => bytes.iter_mut().zip(folded).for_each(|(b, f)| *b = *f),
        }
        let whole = u128::from_le_bytes(bytes);
        Prefixes([whole as u64, (whole >> 64) as u64])
    }

    /// [`hash`] of the first `len` bytes, from one up to sixteen and up to what there is.
    #[inline]
    pub fn hash(self, len: usize) -> u64 {
        let [a, b] = self.0;
        let head = mix(0, a & MASKS[len.min(8)]);
        if len > 8 { mix(head, b & MASKS[(len - 8).min(8)]) } else { head }
    }
}

/// For each number of bytes up to eight, a mask of that many.
static MASKS: [u64; 16] = {
    let mut masks = [u64::MAX; 16];
    let mut i = 0;
    while i < 8 {
        masks[i] = (1u64 << (8 * i)) - 1;
        i += 1;
    }
    masks
};
const CASE: u64 = 0x2020_2020_2020_2020;
/// What tells a letter from a digit.
const HIGH: u64 = 0x4040_4040_4040_4040;

/// What there is to know of an ASCII word of letters and digits: its hash, its [`LETTER`], [`DIGIT`], [`CAPITAL`] and
/// [`ING`], and its first three bytes, folded, the first as the lowest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Short {
    pub hash: u64,
    pub flags: u16,
    pub head: u32,
}

impl Short {
    /// The word of the first `len` of these bytes, from one up to eight.
    #[inline(always)]
    pub fn of(bytes: [u8; 8], len: usize) -> Short {
        let chunk = u64::from_le_bytes(bytes);
        let mask = MASKS[len & 15];
        let folded = (chunk | CASE) & mask;
        let (high, all) = (chunk & mask & HIGH, mask & HIGH);
        let kinds = (u16::from(high != 0) * LETTER) | (u16::from(high != all) * DIGIT);
        // A capital is a letter without the bit of case.
        let capital = u16::from(chunk & 0x60 == 0x40) * CAPITAL;
        let last = chunk << ((64 - 8 * len as u32) & 63) >> 40;
        let ing = u16::from((last == TAIL) & (len > 5)) * ING;
        Short { hash: mix(0, folded), flags: kinds | capital | ing, head: folded as u32 & 0x00ff_ffff }
    }
}

/// `ing` as a number; the first letter is the lowest byte.
const TAIL: u64 = u32::from_le_bytes(*b"ing\0") as u64;

/// The same of a word of any length: hash, flags and first three bytes.
#[inline]
pub(crate) fn hash_long(word: &[u8]) -> (u64, u16, u32) {
    let (chunks, tail) = word.as_chunks::<8>();
    let (mut h, mut letters, mut digits) = (0, 0, 0);
    for c in chunks {
        let c = u64::from_le_bytes(*c);
        (letters, digits) = (letters | c, digits | c ^ HIGH);
        h = mix(h, c | CASE);
    }
    if !tail.is_empty() {
        let mask = MASKS[tail.len() & 15];
        let c = match word.last_chunk::<8>() {
            // The last bytes without those before them.
            Some(last) => u64::from_le_bytes(*last) >> ((64 - 8 * tail.len() as u32) & 63),
            None => tail.iter().rev().fold(0, |x, b| x << 8 | u64::from(*b)),
        };
        (letters, digits) = (letters | c, digits | c ^ HIGH & mask);
        h = mix(h, c | CASE & mask);
    }
    let kinds = (u16::from(letters & HIGH != 0) * LETTER) | (u16::from(digits & HIGH != 0) * DIGIT);
    let capital = u16::from(word.first().is_some_and(|c| c & 0x60 == 0x40)) * CAPITAL;
    let ing = u16::from(word.len() > 5 && word.ends_with(b"ing")) * ING;
    let head = word.iter().take(3).rev().fold(0, |x, b| x << 8 | u32::from(*b | 0x20));
    (h, kinds | capital | ing, head)
}

/// For each byte of a text, whether it is an ASCII letter or digit: a bit each, and zeros behind the end.
pub(crate) struct Letters(Vec<u64>);

impl Letters {
    pub fn of(text: &[u8]) -> Letters {
        let mut out = Vec::with_capacity(text.len() / 64 + 2);
        let (blocks, tail) = text.as_chunks::<64>();
        out.extend(blocks.iter().map(|b| bits::word(b, alphanumeric)));
        let mut last = [0u8; 64];
        last.iter_mut().zip(tail).for_each(|(l, b)| *l = *b);
        out.push(bits::word(&last, alphanumeric));
        Letters(out)
    }

    #[inline(always)]
    pub fn has(&self, i: usize) -> bool {
        self.0.get(i >> 6).is_some_and(|w| w >> (i & 63) & 1 != 0)
    }

    /// The bits of the 64 bytes from `i` on.
    #[inline(always)]
    pub fn window(&self, i: usize) -> u64 {
        let (at, shift) = (i >> 6, i & 63);
        match self.0.get(at..at + 2) {
            Some([low, high]) => low >> shift | high << 1 << (63 - shift),
            _ => self.0.get(at).copied().unwrap_or(0) >> shift,
        }
    }

    /// Where the word of more than 63 bytes that holds byte `i` ends.
    #[inline(never)]
    pub fn far_end(&self, i: usize) -> usize {
        let mut at = i >> 6;
        loop {
            at += 1;
            let word = !self.0.get(at).copied().unwrap_or(0);
            if word != 0 {
                return at * 64 + word.trailing_zeros() as usize;
            }
        }
    }
}

#[inline(always)]
fn alphanumeric(b: u8) -> bool {
    ((b | 0x20).wrapping_sub(b'a') < 26) | (b.wrapping_sub(b'0') < 10)
}
