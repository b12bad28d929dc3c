//! The learned model: a linear classifier over hashed n-grams, scored over sliding windows in one pass.
//!
//! Features of each word: the word, the word with its predecessor, the word as the first of a clause, and the
//! *skeleton* of three words, in which only function words and common imperatives keep their identity. The last kind
//! carries the form of a request over to words that the training data does not have. Weights are one signed byte each
//! in [`SLOTS`] slots, trained by `cargo run --release --example scan_train` and shipped in `patterns/model.bin`.
//! Integer sums over a fixed order make the score the same on every machine.

use super::token::{self, Token};

/// Number of weights; a power of two.
pub const SLOTS: usize = 1 << 18;
/// Words in a step of the window.
pub const STEP: usize = 12;
/// Steps in a window.
pub const STEPS: usize = 3;
/// Windows of a text that is too short to be compared with itself.
pub const FEW: usize = 6;
/// Share of its mean window above [`QUIET`] that a text must exceed the threshold by, in units of the logistic score.
pub const CONTRAST: f32 = 0.6;
/// What the mean window of a text without instructions scores at most.
pub const QUIET: f32 = -3.0;
/// Lower scores count as this one in the mean.
pub const FLOOR: f32 = -6.0;
/// A window is scored only when its words by themselves, without their order, reach this, in units of the logistic score.
/// With the shipped weights, no text of the training data has its best window below −1.4.
pub const GATE: f32 = -1.8;
/// Features of one word.
pub const PER_WORD: usize = 5;

static SHIPPED: &[u8] = include_bytes!("../../patterns/model.bin");
const MAGIC: &[u8; 8] = b"jessmdl2";

/// The shipped weights.
#[derive(Debug, Clone, Copy)]
pub struct Model<'a> {
    weights: &'a [u8; SLOTS],
    /// Sum from which a window counts as a finding.
    pub threshold: i32,
    /// What is added to each window.
    pub bias: i32,
    /// Units of a weight in one unit of the logistic score.
    pub scale: i32,
}

/// A window that scored.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// First word.
    pub first: usize,
    /// One past the last word.
    pub last: usize,
    /// The sum.
    pub score: i32,
}

impl Model<'static> {
    /// The model shipped with the crate; nothing when the file was not trained yet.
    pub fn shipped() -> Option<Model<'static>> {
        Model::read(SHIPPED)
    }
}

impl<'a> Model<'a> {
    /// Reads magic, threshold, bias, scale and weights.
    pub fn read(bytes: &'a [u8]) -> Option<Model<'a>> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (threshold, rest) = rest.split_first_chunk::<4>()?;
        let (bias, rest) = rest.split_first_chunk::<4>()?;
        let (scale, weights) = rest.split_first_chunk::<4>()?;
        Some(Model {
            weights: weights.try_into().ok()?,
            threshold: i32::from_le_bytes(*threshold),
            bias: i32::from_le_bytes(*bias),
            scale: i32::from_le_bytes(*scale),
        })
    }

    /// The file form of a model.
    pub fn write(weights: &[i8], threshold: i32, bias: i32, scale: i32) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(threshold.to_le_bytes());
        out.extend(bias.to_le_bytes());
        out.extend(scale.to_le_bytes());
        out.extend(weights.iter().map(|w| *w as u8));
        out
    }

    #[inline(always)]
    fn weight(&self, slot: u32) -> i32 {
        i32::from(self.weights[slot as usize & (SLOTS - 1)] as i8)
    }

    /// What a word weighs by itself.
    #[inline(always)]
    pub(crate) fn plain(&self, t: &Token) -> i32 {
        let word = identity(t);
        self.weight(slot(word)) + self.weight(slot(word.wrapping_add(place(starts(t)))))
    }

    /// What the words of step `n` weigh, in their order.
    fn step(&self, tokens: &[Token], n: usize) -> i32 {
        let first = n * STEP;
        let mut state = State::new();
        for t in tokens.get(first.saturating_sub(2)..first).unwrap_or_default() {
            state.features(t);
        }
        let words = tokens.get(first..tokens.len().min(first + STEP)).unwrap_or_default();
        words.iter().map(|t| state.features(t).into_iter().map(|slot| self.weight(slot)).sum::<i32>()).sum()
    }

    /// Calls `found` for each window at or above `threshold` and the text's own allowance. `plain` has for each step
    /// what its words weigh by themselves.
    pub(crate) fn windows(
        &self,
        tokens: &[Token],
        plain: Option<&[i32]>,
        threshold: i32,
        found: impl FnMut(Window),
    ) {
        let steps = tokens.len().div_ceil(STEP);
        let count = if steps == 0 { 0 } else { steps.saturating_sub(STEPS) + 1 };
        let gate = (GATE * self.scale as f32) as i32;
        let passes = |from: usize| {
            let sums = plain.and_then(|p| p.get(from..p.len().min(from + STEPS)));
            sums.is_none_or(|s| s.iter().sum::<i32>() >= gate)
        };
        // Each step is added up when the first window needs it.
        let mut sums: Vec<Option<i32>> = vec![None; steps];
        let mut score = |from: usize| {
            let all = sums.iter_mut().enumerate().skip(from).take(STEPS);
            let sum: i32 = all.map(|(n, s)| *s.get_or_insert_with(|| self.step(tokens, n))).sum();
            let last = (from * STEP + STEP * STEPS).min(tokens.len());
            Window { first: from * STEP, last, score: self.bias + sum }
        };
        let best: Vec<Window> = (0..count)
            .filter(|from| passes(*from))
            .map(&mut score)
            .filter(|w| w.score >= threshold)
            .collect();
        if best.is_empty() {
            return;
        }
        let all: Vec<Window> = (0..count).map(score).collect();
        let threshold = threshold.saturating_add(self.allowance(&all));
        best.into_iter().filter(|w| w.score >= threshold).for_each(found);
    }

    /// What a text that is full of instructions must exceed the threshold by. A manual for agents is one order after
    /// the other; an injection stands out from what is round it.
    fn allowance(&self, windows: &[Window]) -> i32 {
        if windows.len() < FEW {
            return 0;
        }
        let floor = (FLOOR * self.scale as f32) as i64;
        let best = windows.iter().map(|w| i64::from(w.score)).max().unwrap_or(0).max(floor);
        let sum: i64 = windows.iter().map(|w| i64::from(w.score).max(floor)).sum::<i64>() - best;
        let mean = sum / (windows.len() as i64 - 1) - (QUIET * self.scale as f32) as i64;
        ((mean.max(0) as f32) * CONTRAST) as i32
    }

    /// The `n` n-grams that add most to the window, with their weights, as the text has them.
    pub(crate) fn explain(
        &self,
        text: &[u8],
        tokens: &[Token],
        window: Window,
        n: usize,
    ) -> Vec<(String, i32)> {
        let mut state = State::new();
        let mut all: Vec<(i32, &[u8])> = Vec::new();
        for (i, t) in tokens.iter().enumerate().take(window.last).skip(window.first.saturating_sub(2)) {
            let slots = state.features(t);
            if i < window.first {
                continue;
            }
            for (k, slot) in slots.iter().enumerate() {
                let back = [0, 1, 0, 2, 1][k.min(4)];
                let from = tokens.get(i.saturating_sub(back)).map_or(t.start, |f| f.start) as usize;
                let w = self.weight(*slot);
                if w > 0 {
                    all.push((w, text.get(from..t.end as usize).unwrap_or_default()));
                }
            }
        }
        all.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        all.dedup_by(|a, b| a.1 == b.1);
        all.into_iter().take(n).map(|(w, words)| (String::from_utf8_lossy(words).into_owned(), w)).collect()
    }
}

/// The feature slots of each step of a text.
pub(crate) fn features(tokens: &[Token]) -> Vec<Vec<u32>> {
    let mut state = State::new();
    tokens.chunks(STEP).map(|chunk| chunk.iter().flat_map(|t| state.features(t)).collect()).collect()
}

struct State {
    kept: &'static [u64],
    one: u64,
    two: u64,
    skeleton_one: u64,
    skeleton_two: u64,
}

const K: u64 = 0xd6e8_feb8_6659_fd93;

#[inline(always)]
fn slot(x: u64) -> u32 {
    (x.wrapping_mul(K) >> 46) as u32
}

/// The word begins a clause.
#[inline(always)]
pub(crate) fn starts(t: &Token) -> bool {
    t.flags & (token::SENTENCE | token::OPENER | token::LINE) != 0
}

/// Words with digits are alike.
#[inline(always)]
fn identity(t: &Token) -> u64 {
    match t.flags & (token::DIGIT | token::LETTER) {
        f if f & token::DIGIT == 0 => t.hash,
        f if f & token::LETTER != 0 => 3,
        _ => 5,
    }
}

#[inline(always)]
fn place(start: bool) -> u64 {
    if start { 0x9999_7777 } else { 0x3333_1111 }
}

impl State {
    fn new() -> State {
        State { kept: kept(), one: 0, two: 0, skeleton_one: 0, skeleton_two: 0 }
    }

    #[inline(always)]
    fn features(&mut self, t: &Token) -> [u32; PER_WORD] {
        let start = starts(t);
        let word = identity(t);
        let bit = (t.hash >> 50) as usize;
        let kept = self.kept.get(bit >> 6).is_some_and(|w| w & (1 << (bit & 63)) != 0);
        let skeleton = if kept {
            t.hash
        } else if t.flags & token::DIGIT != 0 {
            7
        } else if t.flags & token::SCHEME != 0 || t.flags & token::AT != 0 {
            11
        } else if t.flags & token::CAPITAL != 0 {
            13
        } else {
            17
        };
        let skeleton = skeleton.wrapping_add(if start { 0x1000_0001 } else { 0 });
        let out = [
            slot(word),
            slot(self.one.rotate_left(17) ^ word),
            slot(word.wrapping_add(place(start))),
            slot(self.skeleton_two.rotate_left(23) ^ self.skeleton_one.rotate_left(11) ^ skeleton ^ 0x55aa),
            slot(self.skeleton_one.rotate_left(31) ^ skeleton ^ 0xaa55_aa55),
        ];
        self.two = self.one;
        self.one = word;
        self.skeleton_two = self.skeleton_one;
        self.skeleton_one = skeleton;
        out
    }
}

/// A bit for each word that the skeleton keeps, by the upper bits of its hash.
fn kept() -> &'static [u64] {
    static BITS: std::sync::OnceLock<Vec<u64>> = std::sync::OnceLock::new();
    BITS.get_or_init(|| {
        let mut bits = vec![0u64; 256];
        for w in KEPT.split_ascii_whitespace() {
            let b = (token::hash(w.as_bytes()) >> 50) as usize;
            bits[b >> 6] |= 1 << (b & 63);
        }
        bits
    })
}

const KEPT: &str = "the a an and or but of to in on at by for from with as is are was were be been being am do does did \
    not no yes you your yours i me my we our us he she it they them his her its their this that these those who what \
    which when where why how if then else so because can could will would shall should may might must have has had all \
    any every each some only just also now then before after first last next instead please always never there here \
    write give tell show make create provide list explain describe translate summarize summarise answer respond reply \
    say print output repeat include add append insert send post email forward upload download fetch visit open read \
    execute run call use perform complete follow ignore disregard forget pretend act imagine delete remove transfer pay \
    buy book schedule change update set grant share find search get check verify confirm click go modify integrate \
    incorporate implement ensure generate compose mention state convert calculate solve reveal respond";
