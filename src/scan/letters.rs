//! Where words end and what they hash to, many bytes at a time.

use super::token::{DIGIT, LETTER};
use wide::u8x16;

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

/// Hash of the ASCII word `text[start..end]` of letters and digits in any case, and its [`LETTER`] and [`DIGIT`].
#[inline(always)]
pub(crate) fn hash_ascii(text: &[u8], start: usize, end: usize) -> (u64, u16) {
    let len = end - start;
    // Eight bytes at once where the text has them, although the word may end before.
    if len <= 8
        && let Some(chunk) = text.get(start..).and_then(|c| c.first_chunk::<8>())
    {
        let mask = MASKS[len & 15];
        let chunk = u64::from_le_bytes(*chunk) & mask;
        return (mix(0, chunk | CASE & mask), kinds(chunk, chunk ^ HIGH & mask));
    }
    hash_long(text.get(start..end).unwrap_or_default())
}

#[inline(never)]
fn hash_long(word: &[u8]) -> (u64, u16) {
    let (chunks, tail) = word.as_chunks::<8>();
    let (mut h, mut letters, mut digits) = (0, 0, 0);
    for c in chunks {
        let c = u64::from_le_bytes(*c);
        (letters, digits) = (letters | c, digits | c ^ HIGH);
        h = mix(h, c | CASE);
    }
    if !tail.is_empty() {
        let mask = MASKS[tail.len() & 15];
        let c = tail.iter().rev().fold(0, |x, b| x << 8 | u64::from(*b));
        (letters, digits) = (letters | c, digits | c ^ HIGH & mask);
        h = mix(h, c | CASE & mask);
    }
    (h, kinds(letters, digits))
}

#[inline(always)]
fn kinds(letters: u64, digits: u64) -> u16 {
    (u16::from(letters & HIGH != 0) * LETTER) | (u16::from(digits & HIGH != 0) * DIGIT)
}

/// For each byte of a text, whether it is an ASCII letter or digit: a bit each, and zeros behind the end.
pub(crate) struct Letters(Vec<u64>);

impl Letters {
    pub fn of(text: &[u8]) -> Letters {
        let mut out = Vec::with_capacity(text.len() / 64 + 2);
        let (blocks, tail) = text.as_chunks::<64>();
        out.extend(blocks.iter().map(sixty_four));
        let mut last = [0u8; 64];
        last.iter_mut().zip(tail).for_each(|(l, b)| *l = *b);
        out.push(sixty_four(&last));
        Letters(out)
    }

    #[inline(always)]
    pub fn has(&self, i: usize) -> bool {
        self.0.get(i >> 6).is_some_and(|w| w >> (i & 63) & 1 != 0)
    }

    /// Where the word that holds byte `i` ends.
    #[inline(always)]
    pub fn end(&self, i: usize) -> usize {
        let mut at = i >> 6;
        let rest = !self.0.get(at).copied().unwrap_or(0) >> (i & 63);
        if rest != 0 {
            return i + rest.trailing_zeros() as usize;
        }
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
fn sixty_four(block: &[u8; 64]) -> u64 {
    let (parts, _) = block.as_chunks::<16>();
    parts.iter().enumerate().fold(0, |mask, (k, part)| {
        let v = u8x16::new(*part);
        let letter = ((v | u8x16::splat(0x20)) - u8x16::splat(b'a')).simd_lt(u8x16::splat(26));
        let digit = (v - u8x16::splat(b'0')).simd_lt(u8x16::splat(10));
        mask | u64::from((letter | digit).to_bitmask() & 0xffff) << (16 * k)
    })
}
