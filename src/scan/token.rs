//! Words of a text, folded and hashed, in one pass.
//!
//! Everything else reads this stream: shapes (rules), the learned model, triggers of regular expressions and the search
//! for encoded runs. Separators of every kind only set flags on the next word, so spacing, punctuation, hyphens,
//! underscores, table cells, string concatenation and line breaks between words make no difference to a rule.

use super::classes::{ALONE, CLASS, CLOSER, D, GAP, MARKUP, S, U, W};
use super::fold::{self, Kind};
pub(crate) use super::letters::hash;
use super::letters::{Letters, Short, hash_long};

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
/// The byte before this word is a backslash.
pub(crate) const ESCAPED: u16 = 1 << 15;

/// One word: `start..end` are byte offsets of the scanned text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Token {
    pub hash: u64,
    pub start: u32,
    pub end: u32,
    /// Index into the lexicon, 0 when no rule knows the word. Until the words are surveyed, the place of its first letters
    /// among those of stems.
    pub word: u16,
    pub flags: u16,
    /// Number of folded bytes, at most 255.
    pub len: u8,
}

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
    let letters = Letters::of(text);
    let mut seen = Seen::default();
    let mut folded: Vec<u8> = Vec::with_capacity(64);
    let mut gap = SENTENCE | LINE;
    let mut glue = 0u8; // 0 nothing yet, 1 only markup, 2 other
    let mut dot = false;
    let mut i = 0;
    while let Some(&c) = text.get(i) {
        if CLASS[c as usize] & (W | D) != 0 {
            let flags = gap | glue_flag(glue);
            (gap, glue, dot) = (0, 0, false);
            let (end, odd) = row(text, &letters, i, flags, out);
            i = match odd {
                Some(flags) => slow(text, end, flags, &mut folded, out, &mut seen),
                None => end,
            };
            continue;
        }
        let markup = MARKUP[c as usize];
        if markup != 0 {
            gap |= GAP[c as usize];
            glue = glue.max(markup);
            i += 1;
            if c == b'\\' && letters.has(i) {
                gap |= ESCAPED;
            }
            continue;
        }
        if CLASS[c as usize] & S != 0 {
            if c == b' ' && text.get(i + 1) == Some(&b' ') {
                // Indentation and padding.
                let rest = text.get(i..).unwrap_or_default();
                i += rest.iter().position(|b| *b != b' ').unwrap_or(rest.len()) - 1;
            }
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
        if CLASS[c as usize] & U != 0 {
            let before = out.len();
            let (next, kind) = odd(text, i, gap | glue_flag(glue), &mut folded, out, &mut seen);
            i = next;
            if out.len() > before {
                (gap, glue, dot) = (0, 0, false);
            } else if kind == Kind::Separator {
                glue = glue.max(1);
                if ends_sentence(text, i) {
                    gap |= SENTENCE;
                }
            }
            continue;
        }
        match c {
            b':' => {
                gap |= OPENER;
                if text.get(i + 1) == Some(&b'/') && text.get(i + 2) == Some(&b'/') {
                    gap |= SCHEME;
                }
            }
            b'<' => {
                gap |= OPENER;
                // One tag inside a word: its name is not a word of the text.
                if let Some(end) = in_word_tag(text, i).filter(|_| gap & SPACE == 0) {
                    glue = glue.max(1);
                    i = end;
                    continue;
                }
            }
            b'-' if gap & LINE != 0 => gap |= OPENER,
            b'-' => {}
            _ => dot = true,
        }
        glue = 2;
        i += 1;
    }
    seen
}

/// Appends the ASCII words from `i` on that have one character between them; the first stands behind a gap with `flags`.
/// Returns where the last one ends, or where one begins that a character beyond ASCII follows, and the flags of its gap.
#[inline(never)]
fn row(
    text: &[u8],
    letters: &Letters,
    mut i: usize,
    mut flags: u16,
    out: &mut Vec<Token>,
) -> (usize, Option<u16>) {
    loop {
        let window = letters.window(i);
        let len = (!window).trailing_zeros() as usize;
        let end = if len < 64 { i + len } else { letters.far_end(i) };
        let after = text.get(end).copied().unwrap_or(0);
        if after >= 0x80 {
            return (i, Some(flags));
        }
        out.push(ascii(text, i, end, flags));
        flags = ALONE[after as usize];
        if len > 62 || window >> len & 2 == 0 || flags == CLOSER {
            return (end, None);
        }
        i = end + 1;
    }
}

/// The ASCII word `text[start..end]` behind a gap with these flags.
#[inline(always)]
fn ascii(text: &[u8], start: usize, end: usize, gap: u16) -> Token {
    let len = end - start;
    let Some(eight) = text.get(start..).and_then(|t| t.first_chunk::<8>()).filter(|_| len <= 8) else {
        return long(text, start, end, gap);
    };
    let Short { hash, flags, head } = Short::of(*eight, len);
    let word = super::lexicon::stem_bit(head) as u16;
    Token { hash, start: start as u32, end: end as u32, word, flags: gap | flags, len: len as u8 }
}

/// The same for a word of more than eight letters, or near the end of the text.
#[inline(never)]
fn long(text: &[u8], start: usize, end: usize, gap: u16) -> Token {
    let word = text.get(start..end).unwrap_or_default();
    let (hash, flags, head) = hash_long(word);
    let len = word.len().min(255) as u8;
    let word = super::lexicon::stem_bit(head) as u16;
    Token { hash, start: start as u32, end: end as u32, word, flags: gap | flags, len }
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
    let tail = text.get(end.saturating_sub(3)..end).unwrap_or_default();
    // 。 ！ ？ । … and the Arabic question mark.
    matches!(
        tail,
        [0xe3, 0x80, 0x82]
            | [0xef, 0xbc, 0x81 | 0x9f]
            | [0xe0, 0xa5, 0xa4]
            | [0xe2, 0x80, 0xa6]
            | [_, 0xd8, 0x9f]
    )
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
        word: super::lexicon::stem_bit(super::lexicon::head(folded)) as u16,
        flags,
        len: folded.len().min(255) as u8,
    });
}

/// The character at `i`, or nothing when the bytes there are not UTF-8.
pub(crate) fn decode(text: &[u8], i: usize) -> Option<(char, usize)> {
    match text.get(i..)? {
        [a @ 0..=0x7f, ..] => Some((char::from(*a), 1)),
        [a @ 0xc2..=0xdf, b @ 0x80..=0xbf, ..] => {
            Some((char::from_u32(u32::from(*a & 0x1f) << 6 | u32::from(*b & 0x3f))?, 2))
        }
        [a @ 0xe0..=0xef, b @ 0x80..=0xbf, c @ 0x80..=0xbf, ..] => {
            let u = u32::from(*a & 0xf) << 12 | u32::from(*b & 0x3f) << 6 | u32::from(*c & 0x3f);
            // A longer form than needed, or half of a pair, is no character.
            Some((char::from_u32(u).filter(|_| u >= 0x800)?, 3))
        }
        [0xf0..=0xf4, ..] => {
            let c = std::str::from_utf8(text.get(i..i + 4)?).ok()?.chars().next()?;
            Some((c, 4))
        }
        _ => None,
    }
}

/// The folded bytes of the word in `text[start..end]`.
pub(crate) fn folded(text: &[u8], start: usize, end: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(end.saturating_sub(start));
    folded_onto(text, start, end, &mut out);
    out
}

/// Appends the folded bytes of the word in `text[start..end]` to `out`.
pub(crate) fn folded_onto(text: &[u8], start: usize, end: usize, out: &mut Vec<u8>) {
    if let Some(word) = text.get(start..end).filter(|w| w.iter().all(u8::is_ascii_alphanumeric)) {
        return out.extend(word.iter().map(|b| b | 0x20));
    }
    let mut i = start;
    while let Some(&b) = text.get(i).filter(|_| i < end) {
        if b < 0x80 {
            if b.is_ascii_alphanumeric() {
                out.push(b | 0x20);
            }
            i += 1;
        } else if let Some((c, len)) = decode(text, i) {
            fold::fold(c, out);
            i += len;
        } else {
            i += 1;
        }
    }
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
            assert_eq!(hash(w.as_bytes()), ascii(padded.as_bytes(), 0, w.len(), 0).hash);
            assert_eq!(hash(w.as_bytes()), ascii(w.to_uppercase().as_bytes(), 0, w.len(), 0).hash);
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
