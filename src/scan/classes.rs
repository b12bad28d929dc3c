//! What a byte is to the search for words, as tables.

use super::token::{AT, DIGIT, ESCAPED, GLUE, LETTER, LINE, OPENER, SLASH, SPACE};

/// Letter.
pub(crate) const W: u8 = 1;
/// Digit.
pub(crate) const D: u8 = 2;
/// Space.
pub(crate) const S: u8 = 4;
/// Lead or continuation byte of a longer character.
pub(crate) const U: u8 = 8;

/// What a byte is.
pub(crate) static CLASS: [u8; 256] = {
    let mut t = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        t[i] = match i as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => W,
            b'0'..=b'9' => D,
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => S,
            0x80..=0xff => U,
            _ => 0,
        };
        i += 1;
    }
    t
};

/// What a character between words adds to the flags of the next one.
pub(crate) static GAP: [u16; 256] = {
    let mut t = [0u16; 256];
    let openers = b"*`\"'([{>|#=";
    let mut i = 0;
    while i < openers.len() {
        t[openers[i] as usize] = OPENER;
        i += 1;
    }
    t[b'@' as usize] = AT;
    t[b'/' as usize] = SLASH;
    t
};

/// Flags of a word behind a gap of this one character; [`CLOSER`] where it needs a closer look.
pub(crate) static ALONE: [u16; 256] = {
    let mut t = [0u16; 256];
    let mut i = 0;
    while i < 256 {
        t[i] = GAP[i]
            | match i as u8 {
                0x80..=0xff | b'<' => CLOSER,
                b':' => OPENER,
                b'\\' => GLUE | ESCAPED,
                b'*' | b'`' | b'~' | b'_' => GLUE,
                b'\n' | b'\r' => SPACE | LINE,
                b' ' | b'\t' | 0x0b | 0x0c => SPACE,
                _ => 0,
            };
        i += 1;
    }
    t
};
/// No gap gives a word these flags.
pub(crate) const CLOSER: u16 = DIGIT | LETTER;

/// 1 for a character that may stand as markup inside a word, 2 for one that ends it, 0 for one that needs a closer look.
pub(crate) static MARKUP: [u8; 256] = {
    let mut t = [2u8; 256];
    let inside = b"*`~\\_";
    let mut i = 0;
    while i < inside.len() {
        t[inside[i] as usize] = 1;
        i += 1;
    }
    let special = b" \t\n\r\x0b\x0c.!?;:<-";
    i = 0;
    while i < special.len() {
        t[special[i] as usize] = 0;
        i += 1;
    }
    i = 0x80;
    while i < 256 {
        t[i] = 0;
        i += 1;
    }
    t
};
