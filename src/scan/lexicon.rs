//! The words that rules know, and the search for shapes over a row of words.
//!
//! Every table is flat and may stand in the binary: the build script writes that of the built-in rules, so that starting
//! builds nothing. Matching costs at most [`STEPS`] steps for each place where a shape's rarest element occurs, so the
//! whole is linear.

use super::token::{self, Token};
use std::borrow::Cow;

/// Steps that one attempt may take before it counts as no match.
pub(crate) const STEPS: u32 = 600;
/// Words that an exception may span.
const SPAN: usize = 64;
/// The shortest stem, in folded bytes.
pub(crate) const MIN_STEM: usize = 3;

pub(crate) const URL: u8 = 1;
pub(crate) const EMAIL: u8 = 2;
pub(crate) const ANY: u8 = 4;
pub(crate) const NUMBER: u8 = 8;
pub(crate) const GERUND: u8 = 16;

/// One element of a shape. The derived `Debug` is also how the build script writes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Element {
    /// Sorted word ids, as a range of the pool.
    pub words: (u32, u32),
    /// A range of the phrases.
    pub phrases: (u32, u32),
    /// Words of the longest alternative.
    pub longest: u8,
    pub special: u8,
    pub optional: bool,
    pub start: bool,
    pub gap: u8,
    pub across: bool,
    /// A bit for each word that may start the element, by its id: most words are told off by it.
    pub signature: [u64; 4],
}

impl Element {
    #[inline(always)]
    fn may_start(&self, word: u16) -> bool {
        let bit = usize::from(word) & 255;
        self.signature[bit >> 6] & (1 << (bit & 63)) != 0
    }
}

/// The word is an anchor of a shape.
pub(crate) const ANCHOR: u8 = 1;
/// A regular expression is tried at the word.
pub(crate) const TRIGGER: u8 = 2;
/// Words in a block of [`Around`].
pub(crate) const BLOCK: usize = 4;
/// Blocks to either side that [`Around`] looks at, at most. A shape that reaches further to a side needs nothing there.
pub(crate) const RADIUS: usize = 8;

/// A shape that is tried at a word, and the element of it that has the word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Anchor {
    pub shape: u16,
    pub element: u8,
    /// The word is the whole element, wherever it stands.
    pub alone: bool,
    /// How many blocks to the left and to the right the shape can reach, at most [`RADIUS`].
    pub reach: [u8; 2],
    /// The groups of the elements that must be there on the left and on the right, as in [`Lexicon::gives`].
    pub needs: [u64; 2],
}

/// For each [`BLOCK`] words of a text, which groups of elements its words may start.
#[derive(Debug, Default)]
pub(crate) struct Around(pub Vec<u64>);

/// For each number of blocks, the groups that far to the left and to the right.
type Near = [[u64; 2]; RADIUS + 1];

impl Around {
    /// The groups near word `at`.
    #[inline(always)]
    fn of(&self, at: usize) -> Near {
        const WIDTH: usize = 2 * RADIUS + 1;
        let block = at / BLOCK;
        let mut edge = [0; WIDTH];
        let row = match block.checked_sub(RADIUS).and_then(|from| self.0.get(from..)?.first_chunk()) {
            Some(row) => row,
            // At the head and at the end of the text there are fewer blocks.
            None => {
                let skipped = RADIUS.saturating_sub(block);
                let blocks = self.0.get(block.saturating_sub(RADIUS)..).unwrap_or_default();
                edge.iter_mut().skip(skipped).zip(blocks).for_each(|(e, b)| *e = *b);
                &edge
            }
        };
        let own = row[RADIUS];
        let mut all = [[own; 2]; RADIUS + 1];
        let (mut left, mut right) = (own, own);
        let mut radius = 1;
        while radius <= RADIUS {
            left |= row[RADIUS - radius];
            right |= row[RADIUS + radius];
            all[radius] = [left, right];
            radius += 1;
        }
        all
    }
}

/// A shape: a range of elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub from: u32,
    pub to: u32,
    pub rule: u16,
}

/// Where a shape matched, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    pub rule: u16,
    pub first: u32,
    pub last: u32,
}

/// The words that rules know, and the shapes that use them.
#[derive(Debug, Default, Clone)]
pub(crate) struct Lexicon {
    /// A bit for each upper half of a hash of a word that is known: most others are told off by it.
    pub known: Cow<'static, [u64]>,
    /// Hash → word id by open addressing: the hash with the id in its low 16 bits; an id of 0 is an empty place.
    pub exact: Cow<'static, [u64]>,
    /// The same for stems, hash and id apart.
    pub stems: Cow<'static, [(u64, u32)]>,
    /// For the first letters of a stem, a bit for each length that stems with them have.
    pub heads: Cow<'static, [(u64, u32)]>,
    /// A bit for each [`stem_bit`].
    pub stem_bits: Cow<'static, [u64]>,
    /// For each word, a bit for each group of elements that it may start.
    pub gives: Cow<'static, [u64]>,
    /// For each word, [`ANCHOR`] and [`TRIGGER`].
    pub kinds: Cow<'static, [u8]>,
    /// What is tried at word `w`: `anchors[anchor_starts[w]..anchor_starts[w + 1]]`.
    pub anchor_starts: Cow<'static, [u32]>,
    pub anchors: Cow<'static, [Anchor]>,
    /// In the same form, rules whose regular expression is tried at a word.
    pub trigger_starts: Cow<'static, [u32]>,
    pub triggers: Cow<'static, [u16]>,
    /// In the same form for each rule, its exceptions: they are tried only near a match.
    pub excuse_starts: Cow<'static, [u32]>,
    pub excuses: Cow<'static, [u16]>,
    pub shapes: Cow<'static, [Shape]>,
    pub elements: Cow<'static, [Element]>,
    pub pool: Cow<'static, [u16]>,
    /// Ranges of the pool.
    pub phrases: Cow<'static, [(u32, u32)]>,
}

/// Where the search for `hash` begins in a table of `size` places, a power of two.
#[inline(always)]
pub(crate) fn place(hash: u64, size: usize) -> usize {
    (hash >> 40) as usize & (size - 1)
}

#[inline(always)]
fn look_up(table: &[(u64, u32)], hash: u64) -> u32 {
    let Some(mask) = table.len().checked_sub(1) else { return 0 };
    let mut at = (hash >> 40) as usize & mask;
    loop {
        match table.get(at) {
            Some((h, value)) if *value != 0 && *h != hash => at = (at + 1) & mask,
            Some((_, value)) => return *value,
            None => return 0,
        }
    }
}

#[inline(always)]
fn list<'a, T>(starts: &[u32], all: &'a [T], at: usize) -> &'a [T] {
    match starts.get(at..at + 2) {
        Some([from, to]) => all.get(*from as usize..*to as usize).unwrap_or_default(),
        _ => &[],
    }
}

/// A place in [`Lexicon::stem_bits`] for the [`head`] of a word.
#[inline(always)]
pub(crate) fn stem_bit(head: u32) -> usize {
    (head.wrapping_mul(0x9e37_79b1) >> 16) as usize
}

/// The first three letters of a folded word as a number; the first is the lowest byte.
#[inline(always)]
pub(crate) fn head(folded: &[u8]) -> u32 {
    folded.iter().take(3).rev().fold(0, |x, b| x << 8 | u32::from(*b))
}

/// A bit for each [`stem_bit`] and each upper half of a hash that rules know.
#[derive(Debug)]
pub(crate) struct Sieve<'a> {
    known: Box<[u64; 1 << 10]>,
    stems: &'a [u64; 1 << 10],
}

impl Sieve<'_> {
    /// Whether rules may know the word with this hash, this [`stem_bit`] and this length; a word of other letters than
    /// ASCII they may know at any rate.
    #[inline(always)]
    pub fn passes(&self, hash: u64, stem: u16, len: u8) -> bool {
        let known = self.known[(hash >> 54) as usize] >> (hash >> 48 & 63);
        let stem = self.stems[usize::from(stem >> 6)] >> (stem & 63);
        (known | stem & u64::from(usize::from(len) >= MIN_STEM)) & 1 != 0
    }
}

impl Lexicon {
    /// The id of the word of `t`, or 0.
    #[inline(always)]
    pub fn word(&self, text: &[u8], t: &Token) -> u16 {
        match self.exact(t.hash) {
            0 if usize::from(t.len) >= MIN_STEM => self.stem(text, t),
            word => word,
        }
    }

    /// Fills in [`Token::word`].
    #[cfg(test)]
    pub fn resolve(&self, text: &[u8], tokens: &mut [Token]) {
        for t in tokens {
            t.word = self.word(text, t);
        }
    }

    /// What tells most words off; those whose bit is in `more` pass, too.
    pub fn sieve(&self, more: &[u64; 1 << 10]) -> Sieve<'_> {
        // The compiler gives both this length.
        static ALL: [u64; 1 << 10] = [u64::MAX; 1 << 10];
        let own = self.known.as_ref().try_into().unwrap_or(&ALL);
        let stems = self.stem_bits.as_ref().try_into().unwrap_or(&ALL);
        let mut known = Box::new(*more);
        known.iter_mut().zip(own).for_each(|(k, o)| *k |= o);
        Sieve { known, stems }
    }

    /// The id of the exact word with this hash, or 0.
    #[inline(always)]
    pub fn exact(&self, hash: u64) -> u16 {
        let bit = (hash >> 48) as usize;
        if self.known.get(bit >> 6).is_none_or(|w| w >> (bit & 63) & 1 == 0) {
            return 0;
        }
        let Some(mask) = self.exact.len().checked_sub(1) else { return 0 };
        let mut at = (hash >> 40) as usize & mask;
        loop {
            match self.exact.get(at) {
                Some(e) if e & 0xffff != 0 && (e ^ hash) >> 16 != 0 => at = (at + 1) & mask,
                Some(e) => return *e as u16,
                None => return 0,
            }
        }
    }

    /// Groups of elements that `word` may start, and its kinds.
    #[inline(always)]
    pub fn about(&self, word: u16) -> (u64, u8) {
        let at = usize::from(word);
        (self.gives.get(at).copied().unwrap_or(0), self.kinds.get(at).copied().unwrap_or(0))
    }

    #[inline(always)]
    fn stem(&self, text: &[u8], t: &Token) -> u16 {
        let start = t.start as usize;
        if t.flags & token::FOLDED == 0 {
            let Some([a, b, c]) = text.get(start..start + 3) else { return 0 };
            let bit = stem_bit(head(&[a | 0x20, b | 0x20, c | 0x20]));
            if self.stem_bits.get(bit >> 6).is_none_or(|w| w & (1 << (bit & 63)) == 0) {
                return 0;
            }
            let mut lower = [0u8; 32];
            let word = text.get(start..(t.end as usize).min(start + 32)).unwrap_or_default();
            lower.iter_mut().zip(word).for_each(|(l, b)| *l = b | 0x20);
            return self.stem_slow(lower.get(..word.len()).unwrap_or_default());
        }
        self.stem_slow(&token::folded(text, start, (t.end as usize).min(start + 256)))
    }

    /// The longest stem that starts the folded word.
    pub fn stem_slow(&self, folded: &[u8]) -> u16 {
        let Some(first) = folded.get(..MIN_STEM) else { return 0 };
        let bit = stem_bit(head(first));
        if self.stem_bits.get(bit >> 6).is_none_or(|w| w & (1 << (bit & 63)) == 0) {
            return 0;
        }
        let lengths = look_up(&self.heads, token::hash(first));
        if lengths == 0 {
            return 0;
        }
        (MIN_STEM..=folded.len().min(31))
            .rev()
            .filter(|len| lengths & (1 << len) != 0)
            .filter_map(|len| folded.get(..len))
            .map(|prefix| look_up(&self.stems, token::hash(prefix)) as u16)
            .find(|word| *word != 0)
            .unwrap_or(0)
    }

    /// Rules whose regular expression is tried at `word`.
    #[inline(always)]
    pub fn triggers(&self, word: u16) -> &[u16] {
        list(&self.trigger_starts, &self.triggers, usize::from(word))
    }

    /// Finds every shape in `tokens` (resolved) that has an anchor among `places`, calling `found` for each. `around`
    /// tells which shapes cannot be there.
    pub fn matches(
        &self,
        tokens: &[Token],
        places: impl Iterator<Item = usize>,
        around: Option<&Around>,
        mut found: impl FnMut(Hit),
    ) {
        for at in places {
            let Some(t) = tokens.get(at) else { continue };
            let near = around.map_or([[u64::MAX; 2]; RADIUS + 1], |a| a.of(at));
            for anchor in list(&self.anchor_starts, &self.anchors, usize::from(t.word)) {
                let [left, right] = anchor.reach;
                let left = near[usize::from(left) % (RADIUS + 1)][0];
                let right = near[usize::from(right) % (RADIUS + 1)][1];
                if anchor.needs[0] & !left | anchor.needs[1] & !right != 0 {
                    continue;
                }
                let Some(shape) = self.shapes.get(usize::from(anchor.shape)) else { continue };
                let mut search = self.search(shape, usize::from(anchor.element), tokens);
                let hit = if anchor.alone { search.around(at, 1) } else { search.at(at) };
                if let Some((first, last)) = hit {
                    found(Hit { rule: shape.rule, first: first as u32, last: last as u32 });
                }
            }
        }
    }

    /// Whether an exception of the hit's rule stands within `near` words of it.
    pub fn excused(&self, tokens: &[Token], hit: &Hit, near: usize) -> bool {
        let from = (hit.first as usize).saturating_sub(near + SPAN);
        let to = (hit.last as usize + near + 1).min(tokens.len());
        let excuses = list(&self.excuse_starts, &self.excuses, usize::from(hit.rule));
        excuses.iter().filter_map(|s| self.shapes.get(usize::from(*s))).any(|s| {
            (from..to).any(|at| {
                let found = self.search(s, 0, tokens).at(at);
                found.is_some_and(|(_, last)| last + near >= hit.first as usize)
            })
        })
    }

    fn search<'a>(&'a self, shape: &Shape, anchor: usize, tokens: &'a [Token]) -> Search<'a> {
        let elements = self.elements.get(shape.from as usize..shape.to as usize).unwrap_or_default();
        Search { lexicon: self, elements, anchor, tokens, steps: STEPS }
    }
}

/// One attempt to match a shape with its anchor at a given word.
struct Search<'a> {
    lexicon: &'a Lexicon,
    elements: &'a [Element],
    anchor: usize,
    tokens: &'a [Token],
    steps: u32,
}

impl Search<'_> {
    /// First and last token of the match.
    fn at(&mut self, at: usize) -> Option<(usize, usize)> {
        let len = self.element_at(self.elements.get(self.anchor)?, at)?;
        self.around(at, len)
    }

    /// The same, when the anchor is known to match `len` words.
    fn around(&mut self, at: usize, len: usize) -> Option<(usize, usize)> {
        let last = self.forward(self.anchor + 1, at + len)?;
        let first = self.backward(self.anchor, at)?;
        Some((first, last))
    }

    /// Length in words when `e` matches at `at`.
    #[inline(always)]
    fn element_at(&self, e: &Element, at: usize) -> Option<usize> {
        let t = self.tokens.get(at)?;
        if e.special == 0 && !e.may_start(t.word) {
            return None;
        }
        self.element_slow(e, at, t)
    }

    fn element_slow(&self, e: &Element, at: usize, t: &Token) -> Option<usize> {
        if e.start && t.flags & (token::SENTENCE | token::OPENER | token::LINE) == 0 && at != 0 {
            return None;
        }
        let url = || self.tokens.get(at + 1).is_some_and(|n| n.flags & token::SCHEME != 0);
        let email = || t.flags & token::AT != 0 && t.flags & token::SPACE == 0;
        let special = |bit| e.special & bit != 0;
        if special(ANY)
            || special(URL) && url()
            || special(EMAIL) && email()
            || special(NUMBER) && t.flags & token::DIGIT != 0
            || special(GERUND) && t.flags & token::ING != 0
        {
            return Some(1);
        }
        if t.word == 0 || !e.may_start(t.word) {
            return None;
        }
        let pool = &self.lexicon.pool;
        let phrases = self.lexicon.phrases.get(e.phrases.0 as usize..e.phrases.1 as usize);
        for p in phrases.unwrap_or_default() {
            let words = pool.get(p.0 as usize..p.1 as usize).unwrap_or_default();
            let row = self.tokens.get(at..at + words.len());
            if row.is_some_and(|row| row.iter().zip(words).all(|(t, w)| t.word == *w)) {
                return Some(words.len());
            }
        }
        let words = pool.get(e.words.0 as usize..e.words.1 as usize).unwrap_or_default();
        words.binary_search(&t.word).is_ok().then_some(1)
    }

    fn sentence_at(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|t| t.flags & token::SENTENCE != 0)
    }

    /// Matches elements `k..` from token `at` on; returns the last token of the match.
    fn forward(&mut self, k: usize, at: usize) -> Option<usize> {
        let elements = self.elements;
        let Some(e) = elements.get(k) else { return at.checked_sub(1) };
        for skip in 0..=usize::from(e.gap) {
            self.steps = self.steps.checked_sub(1)?;
            let i = at + skip;
            if i >= self.tokens.len() || !e.across && self.sentence_at(i) {
                break;
            }
            if let Some(len) = self.element_at(e, i)
                && let Some(last) = self.forward(k + 1, i + len)
            {
                return Some(last);
            }
        }
        if e.optional { self.forward(k + 1, at) } else { None }
    }

    /// Matches elements `..k` so that element `k` starts at token `at`; returns the first token of the match.
    fn backward(&mut self, k: usize, at: usize) -> Option<usize> {
        let Some(j) = k.checked_sub(1) else { return Some(at) };
        let elements = self.elements;
        let (e, next) = (elements.get(j)?, elements.get(k)?);
        let (gap, across) = (usize::from(next.gap), next.across);
        for skip in 0..=gap {
            let Some(end) = at.checked_sub(skip) else { break };
            if !across && self.sentence_at(end) {
                break;
            }
            for len in 1..=usize::from(e.longest) {
                self.steps = self.steps.checked_sub(1)?;
                let Some(i) = end.checked_sub(len) else { break };
                if self.element_at(e, i) == Some(len)
                    && let Some(first) = self.backward(j, i)
                {
                    return Some(first);
                }
            }
        }
        // The gap of a skipped element falls away; the gap of element `k` counts to the one before it.
        if e.optional && j > 0 {
            return self.backward_skipping(j, k, at);
        }
        (e.optional && j == 0).then_some(at)
    }

    fn backward_skipping(&mut self, j: usize, k: usize, at: usize) -> Option<usize> {
        let elements = self.elements;
        let before = elements.get(j.checked_sub(1)?)?;
        let (skipped, e) = (elements.get(j)?, elements.get(k)?);
        let (gap, across) = (usize::from(e.gap.max(skipped.gap)), e.across);
        for skip in 0..=gap {
            let i = at.checked_sub(skip)?.checked_sub(1)?;
            self.steps = self.steps.checked_sub(1)?;
            if self.sentence_at(i + 1) && !across {
                return None;
            }
            if self.element_at(before, i) == Some(1)
                && let Some(first) = self.backward(j - 1, i)
            {
                return Some(first);
            }
        }
        None
    }
}
