//! What later stages need to look at: one look at each word, so that ordinary text costs little more than finding its
//! words.
//!
//! Each list names the words where a stage has something to do. All but one of the tests are exact: a word that is not
//! listed could not have made the stage report anything. The exception is the learned model, see [`model::GATE`].

use super::decode;
use super::lexicon::{ANCHOR, Around, BLOCK, Lexicon, MIN_STEM, TRIGGER};
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
    fn special(&mut self, t: &Token, i: usize, gap: u32, alike: u32, rows: &mut (usize, usize)) {
        if gap as usize >= MORSE {
            self.gaps.push(i as u32);
        }
        let joins = t.flags & GLUE != 0 || t.flags & LINE != 0 && t.word == 0 && gap <= 4;
        if joins && i > 0 {
            self.pieces.push(i as u32 - 1);
        }
        let (singles, codes) = rows;
        *singles = if t.len == 1 && t.flags & SINGLE == 0 { *singles + 1 } else { 0 };
        if *singles == SPELLED || *singles > SPELLED && i % RUN == SPELLED - 1 {
            self.pieces.push((i + 1 - SPELLED) as u32);
        }
        let mixed = t.flags & (DIGIT | LETTER) == DIGIT | LETTER;
        if t.len >= 2 && t.word == 0 && (mixed || t.len >= LONG) || t.flags & ESCAPED != 0 {
            self.pieces.push(i as u32);
        }
        let bytes = t.end - t.start;
        if t.flags & (FOLDED | SINGLE) == 0 {
            if bytes as usize >= decode::MIN_RUN {
                self.runs.push(i as u32);
            } else if alike >= 4 && bytes >= 4 {
                self.runs.push(i as u32 - 4);
            }
        }
        let code = (2..=8).contains(&t.len) && (t.flags & DIGIT != 0 || t.len == 2);
        *codes = if code { *codes + 1 } else { 0 };
        if *codes >= 4 {
            self.codes.push(i as u32 - 3);
        }
    }
}

/// The word is a common one under ROT13, or reversed.
const MARK: u8 = 4;
/// Places in [`Memo`]; a power of two.
const PLACES: usize = 4096;

/// What is known of a word.
#[derive(Debug, Clone, Copy, Default)]
struct About {
    hash: u64,
    gives: u64,
    /// What it weighs by itself inside a clause, and as the first of one.
    plain: [i16; 2],
    word: u16,
    kinds: u8,
}

/// The words met last: most words of a text are among a few hundred, and what is known of them fits the nearest cache.
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
}

impl<'a> Surveyor<'a> {
    pub fn new(lexicon: &'a Lexicon, model: Option<Model<'a>>) -> Surveyor<'a> {
        Surveyor { lexicon, model, memo: Memo::new() }
    }

    #[inline(always)]
    fn about(&mut self, text: &[u8], t: &Token) -> About {
        let place = (t.hash >> 20) as usize % PLACES;
        match self.memo.0.get_mut(place) {
            Some(a) if a.hash == t.hash => *a,
            slot => {
                let about = look(self.lexicon, self.model.as_ref(), text, t);
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
        s.around.0.reserve(tokens.len() / BLOCK + 1);
        s.plain.reserve(tokens.len() / model::STEP + 1);
        // Where the word before ended, how long it was, and how many before it were as long.
        let (mut end, mut length, mut alike) = (0u32, 0u32, 0u32);
        // Single letters, and what may be codes of characters, in a row.
        let mut rows = (0usize, 0usize);
        let mut i = 0usize;
        for step in tokens.chunks_mut(model::STEP) {
            let mut plain = 0;
            for block in step.chunks_mut(BLOCK) {
                let mut gives = 0;
                for t in block {
                    let about = self.about(text, t);
                    t.word = about.word;
                    gives |= about.gives;
                    plain += i32::from(about.plain[usize::from(model::starts(t))]);
                    if about.kinds != 0 {
                        s.list(about.kinds, i);
                    }
                    let (gap, bytes) = (t.start - end, t.end - t.start);
                    end = t.end;
                    alike = if bytes == length { alike + 1 } else { 0 };
                    length = bytes;
                    let special = t.flags & (GLUE | LINE | ESCAPED | DIGIT) != 0
                        || (t.len.wrapping_sub(3) >= LONG - 3)
                        || alike >= 4
                        || gap as usize >= MORSE;
                    if special {
                        s.special(t, i, gap, alike, &mut rows);
                    } else {
                        rows = (0, 0);
                    }
                    i += 1;
                }
                s.around.0.push(gives);
            }
            s.plain.push(plain);
        }
        s.pieces.sort_unstable();
        s.pieces.dedup();
        s.runs.sort_unstable();
        s
    }
}

#[inline(never)]
fn look(lexicon: &Lexicon, model: Option<&Model<'_>>, text: &[u8], t: &Token) -> About {
    let word = lexicon.word(text, t);
    let (gives, mut kinds) = lexicon.about(word);
    if decode::marks().maybe(t.hash) {
        kinds |= MARK;
    }
    let plain = model.map_or([0; 2], |m| m.plain(t));
    About { hash: t.hash, gives, plain, word, kinds }
}

const _: () = assert!(MIN_STEM >= 2);
