//! What later stages need to look at: one look at each word, so that ordinary text costs little more than finding its
//! words.
//!
//! Each list names the words where a stage has something to do. All but one of the tests are exact: a word that is not
//! listed could not have made the stage report anything. The exception is the learned model, see [`model::GATE`].

use super::decode;
use super::lexicon::{ANCHOR, Around, BLOCK, Lexicon, MIN_STEM, Sieve, TRIGGER};
use super::model::{self, Model};
use super::token::{DIGIT, ESCAPED, FOLDED, GLUE, LETTER, LINE, SINGLE, Token};

/// Letters in a row before they may spell a word.
pub(crate) const SPELLED: usize = 5;
/// Single letters that are looked at together, at most.
pub(crate) const RUN: usize = 4096;
/// The shortest word that may be words written together, in letters.
pub(crate) const LONG: u8 = 14;
/// The shortest gap that may hold Morse code, in bytes.
pub(crate) const MORSE: usize = 24;

/// Indices of words, ascending but for [`Survey::pieces`].
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Words that are the anchor of a shape.
    pub anchors: Vec<u32>,
    /// Which groups of elements stand where.
    pub around: Around,
    /// Words at which a regular expression is tried.
    pub triggers: Vec<u32>,
    /// Words that may be part of a word that was taken apart, or hold several.
    pub pieces: Vec<u32>,
    /// Words that may begin an encoded run.
    pub runs: Vec<u32>,
    /// Words that begin a row of four that may be codes of characters.
    pub codes: Vec<u32>,
    /// Words that are common ones under ROT13, or reversed.
    pub marks: Vec<u32>,
    /// Words behind a long gap.
    pub gaps: Vec<u32>,
    /// For each step of the model, the sum of what its words weigh by themselves.
    pub plain: Vec<i32>,
}

impl Survey {
    #[inline]
    fn list(&mut self, kinds: u8, i: usize) {
        if kinds & ANCHOR != 0 {
            self.anchors.push(i as u32);
        }
        if kinds & TRIGGER != 0 {
            self.triggers.push(i as u32);
        }
        if kinds & MARK != 0 {
            self.marks.push(i as u32);
        }
    }

    /// Looks closer at word `i`, which follows the one before after `gap` bytes.
    fn special(&mut self, t: &Token, i: usize, gap: u32) {
        if gap as usize >= MORSE {
            self.gaps.push(i as u32);
        }
        let joins = t.flags & GLUE != 0 || t.flags & LINE != 0 && t.word == 0 && gap <= 4;
        if joins && i > 0 {
            self.pieces.push(i as u32 - 1);
        }
        if t.len >= 2 && t.word == 0 && (mixed(t) || t.len >= LONG) || t.flags & ESCAPED != 0 {
            self.pieces.push(i as u32);
        }
        if t.flags & (FOLDED | SINGLE) == 0 && (t.end - t.start) as usize >= decode::MIN_RUN {
            self.runs.push(i as u32);
        }
    }

    /// Rows of words, whose bits are those of the 64 words from `first` on in `now` and of the 64 before them in `before`.
    fn rows(&mut self, tokens: &[Token], first: usize, now: &Bits, before: &Bits) {
        if now.single != 0 {
            // Where a row gets as long as that, and again in a row that is longer than can be looked at together.
            let long = row(now.single, before.single, SPELLED as u32);
            let again = if first.is_multiple_of(RUN) { 1 << (SPELLED - 1) } else { 0 };
            let longer = row(now.single, before.single, SPELLED as u32 + 1);
            let new = ones(long & (!longer | again));
            self.pieces.extend(new.map(|n| (first + n + 1 - SPELLED) as u32));
        }
        self.codes.extend(ones(row(now.code, before.code, 4)).map(|n| (first + n - 3) as u32));
        for i in ones(row(now.same, before.same, 4)).map(|n| first + n) {
            let Some(t) = tokens.get(i) else { continue };
            let bytes = (t.end - t.start) as usize;
            if t.flags & (FOLDED | SINGLE) == 0 && (4..decode::MIN_RUN).contains(&bytes) {
                self.runs.push(i as u32 - 4);
            }
        }
    }
}

/// Of 64 words, a bit for each that …
#[derive(Debug, Default)]
struct Bits {
    /// … rules may know, or a decoder.
    known: u64,
    /// … needs a closer look.
    special: u64,
    /// … is a single letter.
    single: u64,
    /// … may be the code of a character.
    code: u64,
    /// … is as long as the one before it.
    same: u64,
}

/// The bits at which `n` in a row are set; `before` has the 64 bits before those in `now`.
fn row(now: u64, before: u64, n: u32) -> u64 {
    (0..n).fold(u64::MAX, |all, k| all & (now << k | before >> 1 >> (63 - k)))
}

/// The places of the bits that are set, ascending.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (at < 64).then_some(at)
    })
}

/// The word has letters and digits.
#[inline(always)]
fn mixed(t: &Token) -> bool {
    t.flags & (DIGIT | LETTER) == DIGIT | LETTER
}

/// The word is a common one under ROT13, or reversed.
const MARK: u8 = 4;
/// Places in [`Memo`]; a power of two.
const PLACES: usize = 2048;

/// What is known of a word that rules may know.
#[derive(Debug, Clone, Copy, Default)]
struct About {
    hash: u64,
    gives: u64,
    word: u16,
    kinds: u8,
}

/// The words met last: most words of rules in a text are among a few hundred, and what is known of them fits the nearest
/// cache.
#[derive(Debug)]
struct Memo(Box<[About; PLACES]>);

impl Memo {
    fn new() -> Memo {
        // No word has this hash at this place, so that nothing is known yet.
        Memo(Box::new([About { hash: u64::MAX, ..About::default() }; PLACES]))
    }
}

/// Surveys texts, one after the other.
#[derive(Debug)]
pub(crate) struct Surveyor<'a> {
    lexicon: &'a Lexicon,
    model: Option<Model<'a>>,
    memo: Memo,
    sieve: Sieve<'a>,
}

impl<'a> Surveyor<'a> {
    pub fn new(lexicon: &'a Lexicon, model: Option<Model<'a>>) -> Surveyor<'a> {
        let sieve = lexicon.sieve(decode::marks().bits());
        Surveyor { lexicon, model, memo: Memo::new(), sieve }
    }

    #[inline(always)]
    fn about(&mut self, text: &[u8], t: &Token) -> About {
        let place = (t.hash >> 20) as usize % PLACES;
        match self.memo.0.get_mut(place) {
            Some(a) if a.hash == t.hash => *a,
            slot => {
                let about = look(self.lexicon, text, t);
                if let Some(slot) = slot {
                    *slot = about;
                }
                about
            }
        }
    }

    /// Looks at each word of `text`, and fills in [`Token::word`].
    pub fn survey(&mut self, text: &[u8], tokens: &mut [Token]) -> Survey {
        const _: () = assert!(model::STEP.is_multiple_of(BLOCK));
        let mut s = Survey::default();
        if let Some(model) = &self.model {
            s.plain =
                tokens.chunks(model::STEP).map(|step| step.iter().map(|t| model.plain(t)).sum()).collect();
        }
        s.around.0.resize(tokens.len().div_ceil(BLOCK), 0);
        let (mut before, mut end, mut length) = (Bits::default(), 0, 0);
        for first in (0..tokens.len()).step_by(64) {
            let until = tokens.len().min(first + 64);
            let Some(block) = tokens.get_mut(first..until) else { break };
            let now = sift(&self.sieve, block, &mut end, &mut length);
            for i in ones(now.known).map(|n| first + n) {
                let Some(t) = tokens.get_mut(i) else { continue };
                let about = self.about(text, t);
                t.word = about.word;
                if let Some(groups) = s.around.0.get_mut(i / BLOCK) {
                    *groups |= about.gives;
                }
                if about.kinds != 0 {
                    s.list(about.kinds, i);
                }
            }
            for i in ones(now.special).map(|n| first + n) {
                let Some(t) = tokens.get(i) else { continue };
                let end = i.checked_sub(1).and_then(|i| tokens.get(i)).map_or(0, |t| t.end);
                s.special(t, i, t.start - end);
            }
            s.rows(tokens, first, &now, &before);
            before = now;
        }
        s.pieces.sort_unstable();
        s.pieces.dedup();
        s.runs.sort_unstable();
        s
    }
}

/// What is to be looked at in a block of 64 words: no branch depends on the text. `end` and `length` are those of the word
/// before.
#[inline(always)]
fn sift(sieve: &Sieve<'_>, block: &mut [Token], end: &mut u32, length: &mut u32) -> Bits {
    let mut bits = Bits::default();
    for (k, t) in block.iter_mut().enumerate() {
        let known = (t.flags & (FOLDED | SINGLE) != 0) | sieve.passes(t.hash, t.word, t.len);
        t.word = 0;
        let (gap, bytes) = (t.start - *end, t.end - t.start);
        let special = (t.flags & (GLUE | LINE | ESCAPED) != 0)
            | mixed(t)
            | (t.len >= LONG)
            | (bytes >= decode::MIN_RUN as u32)
            | (gap >= MORSE as u32);
        let code = (t.len.wrapping_sub(2) <= 6) & ((t.flags & DIGIT != 0) | (t.len == 2));
        let single = (t.len == 1) & (t.flags & SINGLE == 0);
        bits.known |= u64::from(known) << k;
        bits.special |= u64::from(special) << k;
        bits.single |= u64::from(single) << k;
        bits.code |= u64::from(code) << k;
        bits.same |= u64::from(bytes == *length) << k;
        (*end, *length) = (t.end, bytes);
    }
    bits
}

#[inline(never)]
fn look(lexicon: &Lexicon, text: &[u8], t: &Token) -> About {
    let word = lexicon.word(text, t);
    let (gives, mut kinds) = lexicon.about(word);
    if decode::marks().maybe(t.hash) {
        kinds |= MARK;
    }
    About { hash: t.hash, gives, word, kinds }
}

const _: () = assert!(MIN_STEM >= 2);
