//! Words of a text, folded and hashed, in one pass.
//!
//! Everything else reads this stream: shapes (rules), the learned model, triggers of regular expressions and the search
//! for encoded runs. Separators of every kind only set flags on the next word, so spacing, punctuation, hyphens,
//! underscores, table cells, string concatenation and line breaks between words make no difference to a rule.

use super::fold::{self, Kind};

/// The gap before this word ended a sentence.
pub(crate) const SENTENCE: u16 = 1;
/// The gap before this word held a line break.
pub(crate) const LINE: u16 = 1 << 1;
/// The gap before this word held a blank line.
pub(crate) const BLANK: u16 = 1 << 2;
/// The gap before this word held `@`.
pub(crate) const AT: u16 = 1 << 3;
/// The gap before this word held white space.
pub(crate) const SPACE: u16 = 1 << 4;
/// The word had a non-ASCII or invisible character that folding changed.
pub(crate) const FOLDED: u16 = 1 << 5;
/// The gap before this word opened something: a quote, a bracket, a tag, a colon, a bullet.
pub(crate) const OPENER: u16 = 1 << 6;
/// The word has a digit.
pub(crate) const DIGIT: u16 = 1 << 7;
/// The word has a letter.
pub(crate) const LETTER: u16 = 1 << 8;
/// The word starts with a capital.
pub(crate) const CAPITAL: u16 = 1 << 9;
/// The word is written without spaces to its neighbours (Han, kana, Hangul, Thai …).
pub(crate) const SINGLE: u16 = 1 << 10;
/// The gap before this word is only in-word markup (`*`, `` ` ``, `~`, `\`, one tag, symbols), without white space.
pub(crate) const GLUE: u16 = 1 << 11;
/// The gap before this word held `://`.
pub(crate) const SCHEME: u16 = 1 << 12;
/// The gap before this word held a slash.
pub(crate) const SLASH: u16 = 1 << 13;

/// The word ends in `ing` and is longer than five letters.
pub(crate) const ING: u16 = 1 << 14;

/// One word: `start..end` are byte offsets of the scanned text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Token {
    pub hash: u64,
    pub start: u32,
    pub end: u32,
    /// Index into the lexicon, 0 when no rule knows the word.
    pub word: u16,
    pub flags: u16,
    /// Number of folded bytes, at most 255.
    pub len: u8,
}

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hash of a folded word. The same bytes give the same value everywhere and on every machine.
pub(crate) fn hash(word: &[u8]) -> u64 {
    let mut h = 0u64;
    for chunk in word.chunks(8) {
        let mut b = [0u8; 8];
        b.iter_mut().zip(chunk).for_each(|(d, s)| *d = *s);
        h = mix(h, u64::from_le_bytes(b));
    }
    h
}

#[inline(always)]
fn mix(h: u64, chunk: u64) -> u64 {
    let x = (h ^ chunk).wrapping_mul(MULTIPLIER);
    x ^ (x >> 29)
}

/// Hash of the ASCII word `text[start..end]` of letters and digits in any case.
#[inline(always)]
fn hash_ascii(text: &[u8], start: usize, end: usize) -> u64 {
    const CASE: u64 = 0x2020_2020_2020_2020;
    let mut h = 0u64;
    let mut at = start;
    while at < end {
        // Eight bytes at once where the text has them, although the word may end before.
        let chunk = match text.get(at..at + 8).and_then(|c| c.first_chunk::<8>()) {
            Some(c) => u64::from_le_bytes(*c),
            None => {
                let tail = text.get(at..end).unwrap_or_default();
                tail.iter().take(8).enumerate().fold(0u64, |x, (i, b)| x | u64::from(*b) << (8 * i))
            }
        };
        let left = end - at;
        let mask = if left >= 8 { u64::MAX } else { (1u64 << (8 * left)) - 1 };
        h = mix(h, (chunk | CASE) & mask);
        at += 8;
    }
    h
}

const W: u8 = 1; // letter
const D: u8 = 2; // digit
const S: u8 = 4; // space
const U: u8 = 8; // lead or continuation byte of a longer character

static CLASS: [u8; 256] = {
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

/// What the pass saw besides words.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Invisible characters.
    pub invisible: usize,
    /// Tag characters or supplementary variation selectors.
    pub smuggled: usize,
    /// Any byte above 127.
    pub non_ascii: bool,
}

/// Appends the words of `text` to `out`. Linear; a word longer than 4 GiB cannot occur because callers cut text into
/// chunks.
pub(crate) fn tokenise(text: &[u8], out: &mut Vec<Token>) -> Seen {
    let mut seen = Seen::default();
    let mut folded: Vec<u8> = Vec::with_capacity(64);
    let mut gap = SENTENCE | LINE;
    let mut glue = 0u8; // 0 nothing yet, 1 only markup, 2 other
    let mut dot = false;
    let mut i = 0;
    let n = text.len();
    while i < n {
        let c = text[i];
        let class = CLASS[c as usize];
        if class & (W | D) != 0 {
            let start = i;
            let mut all = class;
            i += 1;
            while i < n {
                let k = CLASS[text[i] as usize];
                if k & (W | D) == 0 {
                    break;
                }
                all |= k;
                i += 1;
            }
            if i < n && CLASS[text[i] as usize] & U != 0 {
                i = slow(text, start, gap | glue_flag(glue), &mut folded, out, &mut seen);
            } else {
                let mut flags = gap | glue_flag(glue);
                flags |= if all & D != 0 { DIGIT } else { 0 } | if all & W != 0 { LETTER } else { 0 };
                flags |= if c.is_ascii_uppercase() { CAPITAL } else { 0 };
                flags |= if i - start > 5 && matches!(text.get(i - 3..i), Some(b"ing")) { ING } else { 0 };
                out.push(Token {
                    hash: hash_ascii(text, start, i),
                    start: start as u32,
                    end: i as u32,
                    word: 0,
                    flags,
                    len: (i - start).min(255) as u8,
                });
            }
            gap = 0;
            glue = 0;
            dot = false;
            continue;
        }
        if class & S != 0 {
            if dot {
                gap |= SENTENCE;
            }
            gap |= SPACE;
            if c == b'\n' || c == b'\r' {
                let crlf = c == b'\r' && text.get(i + 1) == Some(&b'\n');
                if !crlf {
                    gap |= if gap & LINE != 0 { BLANK } else { LINE };
                }
            }
            glue = 2;
            i += 1;
            continue;
        }
        if class & U != 0 {
            let before = out.len();
            let (next, kind) = odd(text, i, gap | glue_flag(glue), &mut folded, out, &mut seen);
            i = next;
            if out.len() > before {
                gap = 0;
                glue = 0;
                dot = false;
            } else if kind == Kind::Separator {
                glue = glue.max(1);
                if ends_sentence(text, i) {
                    gap |= SENTENCE;
                }
            }
            continue;
        }
        match c {
            b'.' | b'!' | b'?' | b';' => {
                dot = true;
                glue = 2;
            }
            b'@' => {
                gap |= AT;
                glue = 2;
            }
            b':' => {
                gap |= OPENER;
                glue = 2;
                if text.get(i + 1) == Some(&b'/') && text.get(i + 2) == Some(&b'/') {
                    gap |= SCHEME;
                }
            }
            b'/' => {
                gap |= SLASH;
                glue = 2;
            }
            b'*' | b'`' | b'~' | b'\\' | b'_' => {
                glue = glue.max(1);
                if c == b'*' || c == b'`' {
                    gap |= OPENER;
                }
            }
            b'<' => {
                gap |= OPENER;
                // One tag inside a word: its name is not a word of the text.
                match in_word_tag(text, i) {
                    Some(end) if gap & SPACE == 0 => {
                        glue = glue.max(1);
                        i = end;
                        continue;
                    }
                    _ => glue = 2,
                }
            }
            b'"' | b'\'' | b'(' | b'[' | b'{' | b'>' | b'|' | b'#' | b'=' => {
                gap |= OPENER;
                glue = 2;
            }
            b'-' => {
                if gap & LINE != 0 {
                    gap |= OPENER;
                }
                glue = 2;
            }
            _ => glue = 2,
        }
        i += 1;
    }
    seen
}

fn glue_flag(glue: u8) -> u16 {
    if glue == 1 { GLUE } else { 0 }
}

/// The end of a short inline tag at `i` that stands between two letters.
fn in_word_tag(text: &[u8], i: usize) -> Option<usize> {
    if i == 0 || CLASS[text[i - 1] as usize] & (W | U) == 0 {
        return None;
    }
    let window = &text[i..text.len().min(i + 48)];
    let close = window.iter().position(|b| *b == b'>')?;
    let name = window.get(1..close)?;
    let name = name.strip_prefix(b"/").unwrap_or(name);
    let len = name.iter().take_while(|b| b.is_ascii_alphanumeric()).count();
    let inline = matches!(
        &name.get(..len)?.to_ascii_lowercase()[..],
        b"b" | b"i"
            | b"u"
            | b"s"
            | b"em"
            | b"strong"
            | b"span"
            | b"font"
            | b"a"
            | b"mark"
            | b"wbr"
            | b"small"
            | b"sub"
            | b"sup"
            | b"tt"
            | b"code"
            | b"bdi"
            | b"bdo"
            | b"ins"
            | b"del"
    );
    let next = text.get(i + close + 1)?;
    (inline && (CLASS[*next as usize] & (W | U) != 0 || *next == b'<')).then_some(i + close + 1)
}

fn ends_sentence(text: &[u8], end: usize) -> bool {
    let tail = &text[..end];
    ["。", "！", "？", "।", "؟", "…"].iter().any(|m| tail.ends_with(m.as_bytes()))
}

/// A non-ASCII character outside a word.
fn odd(
    text: &[u8],
    i: usize,
    flags: u16,
    folded: &mut Vec<u8>,
    out: &mut Vec<Token>,
    seen: &mut Seen,
) -> (usize, Kind) {
    seen.non_ascii = true;
    let Some((c, len)) = decode(text, i) else { return (i + 1, Kind::Separator) };
    folded.clear();
    let kind = fold::fold(c, folded);
    match kind {
        Kind::Separator => (i + len, kind),
        Kind::Invisible => {
            note(c, seen);
            (i + len, kind)
        }
        Kind::Single => {
            push(out, folded, i, i + len, flags | SINGLE | LETTER);
            (i + len, kind)
        }
        Kind::Word => (slow(text, i, flags, folded, out, seen), kind),
    }
}

fn note(c: char, seen: &mut Seen) {
    seen.invisible += 1;
    if matches!(c as u32, 0xe0000..=0xe01ef) {
        seen.smuggled += 1;
    }
}

/// A word that has, or is followed by, non-ASCII characters. Returns where it ends.
fn slow(
    text: &[u8],
    start: usize,
    mut flags: u16,
    folded: &mut Vec<u8>,
    out: &mut Vec<Token>,
    seen: &mut Seen,
) -> usize {
    folded.clear();
    let mut i = start;
    let mut end = start;
    while i < text.len() {
        let b = text[i];
        let class = CLASS[b as usize];
        if class & (W | D) != 0 {
            flags |= if class & D != 0 { DIGIT } else { LETTER };
            folded.push(b | 0x20);
            i += 1;
            end = i;
            continue;
        }
        if class & U == 0 {
            break;
        }
        seen.non_ascii = true;
        let Some((c, len)) = decode(text, i) else { break };
        let before = folded.len();
        match fold::fold(c, folded) {
            Kind::Word => {
                flags |= LETTER | FOLDED;
                i += len;
                end = i;
            }
            Kind::Invisible => {
                note(c, seen);
                flags |= FOLDED;
                i += len;
            }
            Kind::Single | Kind::Separator => {
                folded.truncate(before);
                break;
            }
        }
        if folded.len() > 4096 {
            break;
        }
    }
    if folded.is_empty() {
        return i.max(start + 1);
    }
    push(out, folded, start, end, flags);
    i
}

fn push(out: &mut Vec<Token>, folded: &[u8], start: usize, end: usize, flags: u16) {
    out.push(Token {
        hash: hash(folded),
        start: start as u32,
        end: end as u32,
        word: 0,
        flags,
        len: folded.len().min(255) as u8,
    });
}

/// The character at `i`, or nothing when the bytes there are not UTF-8.
pub(crate) fn decode(text: &[u8], i: usize) -> Option<(char, usize)> {
    let b = *text.get(i)?;
    let len = match b {
        0..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    let c = std::str::from_utf8(text.get(i..i + len)?).ok()?.chars().next()?;
    Some((c, len))
}

/// The folded bytes of the word in `text[start..end]`.
pub(crate) fn folded(text: &[u8], start: usize, end: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(end.saturating_sub(start));
    let mut i = start;
    while i < end {
        let b = text[i];
        if b < 0x80 {
            if b.is_ascii_alphanumeric() {
                out.push(b | 0x20);
            }
            i += 1;
        } else if let Some((c, len)) = decode(text, i) {
            fold::fold(c, &mut out);
            i += len;
        } else {
            i += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        tokenise(text.as_bytes(), &mut out);
        out.iter()
            .map(|t| String::from_utf8(folded(text.as_bytes(), t.start as usize, t.end as usize)).unwrap())
            .collect()
    }

    #[test]
    fn separators_of_every_kind_give_the_same_words() {
        for text in
            ["Ignore all rules", "ignore-all_rules", "ignore,\n\nall|rules", "\"ignore \" + 'all' + rules"]
        {
            assert_eq!(words(text), ["ignore", "all", "rules"], "{text}");
        }
    }

    #[test]
    fn ascii_and_folded_words_hash_alike() {
        for w in ["ignore", "instructions", "abcdefgh", "previousinstructions1"] {
            let padded = format!("{} and more", w.to_uppercase());
            assert_eq!(hash(w.as_bytes()), hash_ascii(padded.as_bytes(), 0, w.len()));
            assert_eq!(hash(w.as_bytes()), hash_ascii(w.to_uppercase().as_bytes(), 0, w.len()));
        }
    }

    #[test]
    fn han_characters_are_words_of_their_own() {
        assert_eq!(words("忽略 all"), ["忽", "略", "all"]);
    }

    #[test]
    fn offsets_stay_inside_the_text_for_any_bytes() {
        let mut seed = 7u32;
        for _ in 0..2000 {
            let text: Vec<u8> = (0..40)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (seed >> 24) as u8
                })
                .collect();
            let mut out = Vec::new();
            tokenise(&text, &mut out);
            for t in out {
                assert!(t.start < t.end && t.end as usize <= text.len());
            }
        }
    }
}
