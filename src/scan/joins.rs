//! Words that were taken apart: letter by letter, by markup inside a word, by a line break, by digits for letters, or
//! not separated at all. The result is a second word stream in which such pieces are whole again; it is empty when the
//! text has none.

use super::letters::Prefixes;
use super::lexicon::Lexicon;
use super::survey::{LONG, RUN, SPELLED};
use super::token::{self, DIGIT, FOLDED, GLUE, LETTER, LINE, SINGLE, SPACE, Token};

/// Pieces that make one word, at most.
const PIECES: usize = 24;

/// The second word stream, or an empty one. Only the words `pieces` may change.
pub(crate) fn joined(text: &[u8], tokens: &[Token], pieces: &[u32], lexicon: &Lexicon) -> Vec<Token> {
    /// Only the neighbourhood of a change can give a new match.
    const AROUND: usize = 24;
    let mut out: Vec<Token> = Vec::new();
    let mut scratch = Vec::with_capacity(256);
    let mut from = 0; // tokens before this one are in `out`, or too far from a change
    for i in pieces.iter().map(|i| *i as usize) {
        let Some(t) = tokens.get(i).filter(|_| i >= from) else { continue };
        let replaced = spelled(text, tokens, i, lexicon)
            .or_else(|| glued(text, tokens, i, lexicon, &mut scratch))
            .or_else(|| long(text, t, lexicon, &mut scratch))
            .or_else(|| digits(text, t, lexicon, &mut scratch))
            .or_else(|| after_escape(text, t, lexicon));
        let Some((words, used)) = replaced else { continue };
        if !out.is_empty() {
            let end = (from + AROUND).min(i);
            out.extend_from_slice(tokens.get(from..end).unwrap_or_default());
            from = end;
        }
        out.extend_from_slice(tokens.get(i.saturating_sub(AROUND).max(from)..i).unwrap_or_default());
        out.extend(words);
        from = i + used;
    }
    if !out.is_empty() {
        out.extend_from_slice(tokens.get(from..(from + AROUND).min(tokens.len())).unwrap_or_default());
    }
    out
}

type Replaced = (Vec<Token>, usize);

/// `I g n o r e`, `i.g.n.o.r.e`, letters with symbols between them: five or more single letters in a row.
fn spelled(text: &[u8], tokens: &[Token], i: usize, lexicon: &Lexicon) -> Option<Replaced> {
    let single = |t: &Token| t.len == 1 && t.flags & SINGLE == 0;
    if !single(tokens.get(i)?) || i > 0 && single(&tokens[i - 1]) && !i.is_multiple_of(RUN) {
        return None;
    }
    let n = tokens[i..].iter().take(RUN).take_while(|t| single(t)).count();
    // A row of digits is one of a table.
    if n < SPELLED || tokens[i..i + n].iter().filter(|t| t.flags & LETTER != 0).count() < 3 {
        return None;
    }
    segment(text, tokens.get(i..i + n)?, lexicon).map(|w| (w, n))
}

/// `ig**no**re`, `ig<b>no</b>re`, `igno-⏎re`, `igno⏎re`.
fn glued(
    text: &[u8],
    tokens: &[Token],
    i: usize,
    lexicon: &Lexicon,
    scratch: &mut Vec<u8>,
) -> Option<Replaced> {
    let next = tokens.get(i + 1)?;
    let first = tokens.get(i)?;
    let broken = |t: &Token, before: &Token| {
        t.flags & LINE != 0
            && t.start - before.end <= 4
            && t.flags & SINGLE == 0
            && t.word == 0
            && text.get(before.end as usize..t.start as usize).is_some_and(|g| {
                g.iter().all(|b| matches!(b, b'-' | b'\n' | b'\r')) || g.first() == Some(&b'-')
            })
    };
    if next.flags & GLUE == 0 && !broken(next, first) {
        return None;
    }
    if first.len > 64 {
        return None;
    }
    scratch.clear();
    token::folded_onto(text, first.start as usize, first.end as usize, scratch);
    let mut best = None;
    let mut before = first;
    for (k, t) in tokens.get(i + 1..)?.iter().take(PIECES).enumerate() {
        if t.flags & GLUE == 0 && !broken(t, before) || scratch.len() > 64 {
            break;
        }
        token::folded_onto(text, t.start as usize, t.end as usize, scratch);
        before = t;
        let word = word_of(scratch, lexicon);
        if word != 0 {
            let (flags, hash, len) = (first.flags | FOLDED, token::hash(scratch), scratch.len() as u8);
            best = Some((Token { hash, end: t.end, word, flags, len, ..*first }, k + 2));
        }
    }
    best.map(|(whole, used)| (vec![whole], used))
}

/// `ignoreallpreviousinstructions`, `ignoreAllPreviousInstructions`.
fn long(text: &[u8], t: &Token, lexicon: &Lexicon, scratch: &mut Vec<u8>) -> Option<Replaced> {
    if t.len < LONG || t.word != 0 || t.flags & (DIGIT | SINGLE) != 0 || t.end - t.start > 400 {
        return None;
    }
    // Written together, the first word still stands first.
    scratch.clear();
    token::folded_onto(text, t.start as usize, (t.end as usize).min(t.start as usize + 32), scratch);
    let known = |from: usize| {
        let word = Prefixes::of(scratch.get(from..).unwrap_or_default());
        (3..=12.min(scratch.len().saturating_sub(from))).any(|len| lexicon.exact(word.hash(len)) != 0)
    };
    if !known(0) && !known(1) {
        return None;
    }
    let letters: Vec<Token> = (t.start..t.end)
        .filter(|i| text.get(*i as usize).is_some_and(|b| b & 0xc0 != 0x80))
        .map(|i| Token {
            start: i,
            end: i + 1,
            flags: if i == t.start { t.flags } else { 0 },
            len: 1,
            ..Token::default()
        })
        .collect();
    segment(text, &letters, lexicon).map(|w| (w, 1))
}

/// `\nprevious`: the letter of a line-break escape is not part of the word behind it.
fn after_escape(text: &[u8], t: &Token, lexicon: &Lexicon) -> Option<Replaced> {
    let start = t.start as usize;
    if start == 0
        || text.get(start - 1) != Some(&b'\\')
        || !matches!(text.get(start), Some(b'n' | b'r' | b't'))
    {
        return None;
    }
    let folded = token::folded(text, start + 1, t.end as usize);
    let word = word_of(&folded, lexicon);
    let flags = t.flags | LINE | token::SPACE | FOLDED;
    let whole = Token { hash: token::hash(&folded), start: t.start + 1, word, flags, ..*t };
    (word != 0).then_some((vec![whole], 1))
}

/// `1gn0r3`: digits and signs for letters.
fn digits(text: &[u8], t: &Token, lexicon: &Lexicon, scratch: &mut Vec<u8>) -> Option<Replaced> {
    if t.flags & (DIGIT | LETTER) != DIGIT | LETTER || t.len > 24 || t.word != 0 {
        // A word of digits alone (`7815`) is left as it is.
        return None;
    }
    let bytes = text.get(t.start as usize..t.end as usize).unwrap_or_default();
    let ones: &[u8] = if bytes.contains(&b'1') || !bytes.is_ascii() { b"il" } else { b"i" };
    for one in ones.iter().copied() {
        scratch.clear();
        token::folded_onto(text, t.start as usize, t.end as usize, scratch);
        for b in scratch.iter_mut() {
            *b = match *b {
                b'0' => b'o',
                b'1' => one,
                b'2' => b'z',
                b'3' => b'e',
                b'4' => b'a',
                b'5' => b's',
                b'6' => b'g',
                b'7' => b't',
                b'8' => b'b',
                b'9' => b'g',
                other => other,
            };
        }
        let word = word_of(scratch, lexicon);
        if word != 0 && scratch.len() > 2 {
            let whole = Token { hash: token::hash(scratch), word, flags: t.flags | FOLDED, ..*t };
            return Some((vec![whole], 1));
        }
    }
    None
}

fn word_of(folded: &[u8], lexicon: &Lexicon) -> u16 {
    match lexicon.exact(token::hash(folded)) {
        0 if folded.len() >= 4 => lexicon.stem_slow(folded),
        id => id,
    }
}

/// Cuts a row of letters into the longest words that rules know. Nothing when fewer than two are there.
fn segment(text: &[u8], letters: &[Token], lexicon: &Lexicon) -> Option<Vec<Token>> {
    let mut folded = Vec::with_capacity(letters.len());
    let mut index = Vec::with_capacity(letters.len());
    for (i, t) in letters.iter().enumerate() {
        let start = t.start as usize;
        match text.get(start) {
            Some(b) if t.end == t.start + 1 && b.is_ascii_alphanumeric() => folded.push(b | 0x20),
            _ => {
                let end = (t.end as usize).max(start + token::decode(text, start).map_or(1, |(_, l)| l));
                token::folded_onto(text, start, end, &mut folded);
            }
        }
        index.resize(folded.len(), i);
    }
    let mut out = Vec::new();
    let mut known = 0;
    let mut at = 0;
    while at < folded.len() {
        let longest = (folded.len() - at).min(16);
        let letters_on = Prefixes::of(folded.get(at..).unwrap_or_default());
        let found = (2..=longest).rev().find_map(|len| {
            let word = lexicon.exact(letters_on.hash(len));
            (word != 0).then_some((len, word))
        });
        let (len, word) = found.unwrap_or((1, 0));
        known += if word != 0 && len > 3 { 1 } else { 0 };
        let (a, b) = (*index.get(at)?, *index.get(at + len - 1)?);
        let flags = letters.get(a)?.flags & !SPACE | FOLDED | LETTER;
        out.push(Token {
            hash: letters_on.hash(len),
            start: letters.get(a)?.start,
            end: letters.get(b)?.end,
            word,
            flags: if at == 0 { flags } else { flags & !token::SENTENCE },
            len: len as u8,
        });
        at += len;
    }
    // Letters between known words are dropped, so that gaps count words.
    out.retain(|t| t.word != 0);
    (known >= 2).then_some(out)
}
