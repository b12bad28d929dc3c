//! Shapes: a small language for the form of a sentence, matched over folded words.
//!
//! A shape is a row of elements. An element is one or more alternatives joined by `|`; `_` joins the words of a phrase;
//! a trailing `*` on a word means any ending; `@name` is a class of words from a pattern file; a trailing `?` makes the
//! element optional. Between elements, `~N` lets up to N other words stand inside the same sentence and `..N` also
//! across sentences; with neither, the words are neighbours. `^` before an element wants it at the start of a clause
//! (sentence, line, list item, quote, tag). `<url>` is a word that starts a URL, `<email>` the host part of an address,
//! `<num>` a word with a digit, `<ing>` a word in -ing, `<any>` any word.
//!
//! ```text
//! ignore|disregard|forget ~3 previous|prior|above ~2 instruction*|rule|rules
//! ```
//!
//! Matching costs at most [`STEPS`] steps for each place where a shape's rarest element occurs, so the whole is linear.

use super::token::{self, ByHash, Token};
use std::collections::HashMap;

/// Steps that one attempt may take before it counts as no match.
pub(crate) const STEPS: u32 = 600;
/// Words that an exception may span.
const SPAN: usize = 64;
/// The widest gap a shape may ask for, in words.
pub(crate) const MAX_GAP: u8 = 40;
/// The shortest stem before `*`, in folded bytes.
pub(crate) const MIN_STEM: usize = 3;

const URL: u8 = 1;
const EMAIL: u8 = 2;
const ANY: u8 = 4;
const NUMBER: u8 = 8;
const GERUND: u8 = 16;

#[derive(Debug)]
struct Element {
    /// Sorted word ids.
    words: Vec<u16>,
    phrases: Vec<Vec<u16>>,
    special: u8,
    optional: bool,
    start: bool,
    gap: u8,
    across: bool,
    /// A bit for each word that may start the element, by its id: most words are told off by it.
    signature: [u64; 4],
}

impl Element {
    fn sign(&mut self) {
        for w in self.words.iter().chain(self.phrases.iter().filter_map(|p| p.first())) {
            let bit = usize::from(*w) & 255;
            self.signature[bit >> 6] |= 1 << (bit & 63);
        }
    }

    #[inline(always)]
    fn may_start(&self, word: u16) -> bool {
        let bit = usize::from(word) & 255;
        self.signature[bit >> 6] & (1 << (bit & 63)) != 0
    }
}

#[derive(Debug)]
struct Shape {
    elements: Vec<Element>,
    rule: u16,
    unless: bool,
}

/// Where a shape matched, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    pub rule: u16,
    pub first: u32,
    pub last: u32,
}

/// The words that rules know, and the shapes that use them.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    /// Open addressing over the upper hash bits: (hash, word id); id 0 is empty.
    table: Vec<(u64, u16)>,
    exact: ByHash<u16>,
    stems: ByHash<u16>,
    stem_bits: Vec<u64>,
    /// For the first three letters of a stem, a bit for each length that stems with them have.
    stem_lengths: ByHash<u32>,
    /// For each word id, (shape, element) pairs that are tried there.
    anchors: Vec<Vec<(u32, u8)>>,
    /// The same, end to end once the lexicon is closed: those of word `w` stand at `anchor_starts[w]..anchor_starts[w + 1]`.
    anchors_flat: Vec<(u32, u8)>,
    anchor_starts: Vec<u32>,
    /// For each word id, regular expressions that are tried there.
    pub triggers: Vec<Vec<u16>>,
    shapes: Vec<Shape>,
    /// For each rule, its exceptions: they are tried only near a match.
    excuses: HashMap<u16, Vec<u32>>,
    texts: Vec<(Vec<u8>, bool)>,
}

/// What is wrong with a shape.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ShapeError {
    /// A class that no file defines.
    #[error("unknown class @{0}")]
    UnknownClass(String),
    /// A gap that is no number or above the limit.
    #[error("bad gap {0:?}: want ~N or ..N with N at most {MAX_GAP}")]
    Gap(String),
    /// A stem that would match too much.
    #[error("stem {0:?} is shorter than {MIN_STEM} letters")]
    Stem(String),
    /// No element to anchor the search on.
    #[error("a shape needs an element of words that is not optional")]
    Empty,
    /// An alternative without a letter or digit.
    #[error("{0:?} has no word in it")]
    NoWord(String),
    /// More distinct words than an index can hold.
    #[error("too many words")]
    TooMany,
}

impl Lexicon {
    /// An empty one.
    pub fn new() -> Self {
        Lexicon {
            anchors: vec![Vec::new()],
            triggers: vec![Vec::new()],
            texts: vec![(Vec::new(), false)],
            ..Self::default()
        }
    }

    fn word(&mut self, folded: &[u8], stem: bool) -> Result<u16, ShapeError> {
        let h = token::hash(folded);
        let map = if stem { &mut self.stems } else { &mut self.exact };
        if let Some(id) = map.get(&h) {
            return Ok(*id);
        }
        let id = u16::try_from(self.anchors.len()).map_err(|_| ShapeError::TooMany)?;
        map.insert(h, id);
        self.anchors.push(Vec::new());
        self.triggers.push(Vec::new());
        self.texts.push((folded.to_vec(), stem));
        Ok(id)
    }

    /// The word ids of one alternative: the words it is made of, in order.
    fn phrase(&mut self, text: &str) -> Result<Vec<u16>, ShapeError> {
        let (body, stem) = match text.strip_suffix('*') {
            Some(b) => (b, true),
            None => (text, false),
        };
        // Plain words are folded as they stand; starting the scanner must not take long.
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        if !body.is_empty() && body.split('_').all(|w| !w.is_empty() && w.bytes().all(plain)) {
            let words = body.split('_').count();
            let mut ids = Vec::with_capacity(words);
            for (i, w) in body.split('_').enumerate() {
                let stem = stem && i + 1 == words;
                if stem && w.len() < MIN_STEM {
                    return Err(ShapeError::Stem(text.to_string()));
                }
                ids.push(self.word(w.as_bytes(), stem)?);
            }
            return Ok(ids);
        }
        let mut tokens = Vec::new();
        token::tokenise(body.as_bytes(), &mut tokens);
        let last = tokens.len().checked_sub(1).ok_or_else(|| ShapeError::NoWord(text.to_string()))?;
        let mut ids = Vec::with_capacity(tokens.len());
        for (i, t) in tokens.iter().enumerate() {
            let folded = token::folded(body.as_bytes(), t.start as usize, t.end as usize);
            let stem = stem && i == last && t.flags & token::SINGLE == 0;
            if stem && folded.len() < MIN_STEM {
                return Err(ShapeError::Stem(text.to_string()));
            }
            ids.push(self.word(&folded, stem)?);
        }
        Ok(ids)
    }

    /// Makes regular expression number `regex` run where `word` occurs.
    pub fn trigger(&mut self, word: &str, regex: u16) -> Result<(), ShapeError> {
        let ids = self.phrase(word)?;
        if let Some(list) = ids.first().and_then(|id| self.triggers.get_mut(*id as usize)) {
            list.push(regex);
        }
        Ok(())
    }

    /// Adds the shape `text` for rule number `rule`.
    pub fn add(
        &mut self,
        rule: u16,
        text: &str,
        unless: bool,
        classes: &HashMap<String, String>,
    ) -> Result<(), ShapeError> {
        let mut elements: Vec<Element> = Vec::new();
        let (mut gap, mut across, mut start) = (0u8, false, false);
        for part in text.split_ascii_whitespace() {
            if let Some(n) = part.strip_prefix('~').or_else(|| part.strip_prefix("..")) {
                gap = n
                    .parse()
                    .ok()
                    .filter(|g| *g <= MAX_GAP)
                    .ok_or_else(|| ShapeError::Gap(part.to_string()))?;
                across = part.starts_with('.');
                continue;
            }
            let part = part.strip_prefix('^').inspect(|_| start = true).unwrap_or(part);
            if part.is_empty() {
                continue;
            }
            let (part, optional) = part.strip_suffix('?').map_or((part, false), |p| (p, true));
            let mut element = Element {
                words: Vec::new(),
                phrases: Vec::new(),
                special: 0,
                optional,
                start,
                gap,
                across,
                signature: [0; 4],
            };
            self.alternatives(part, classes, &mut element, 0)?;
            element.words.sort_unstable();
            element.words.dedup();
            elements.push(element);
            (gap, across, start) = (0, false, false);
        }
        if !elements.iter().any(|e| !e.optional && e.special == 0) || elements.len() > 32 {
            return Err(ShapeError::Empty);
        }
        self.shapes.push(Shape { elements, rule, unless });
        Ok(())
    }

    fn alternatives(
        &mut self,
        part: &str,
        classes: &HashMap<String, String>,
        element: &mut Element,
        depth: u8,
    ) -> Result<(), ShapeError> {
        for alternative in part.split('|').filter(|a| !a.is_empty()) {
            if let Some(name) = alternative.strip_prefix('@') {
                let class = classes.get(name).filter(|_| depth < 4);
                let class = class.ok_or_else(|| ShapeError::UnknownClass(name.to_string()))?.clone();
                for w in class.split_ascii_whitespace() {
                    self.alternatives(w, classes, element, depth + 1)?;
                }
                continue;
            }
            match alternative {
                "<url>" => element.special |= URL,
                "<email>" => element.special |= EMAIL,
                "<any>" => element.special |= ANY,
                "<num>" => element.special |= NUMBER,
                "<ing>" => element.special |= GERUND,
                _ => {
                    let ids = self.phrase(alternative)?;
                    match ids.as_slice() {
                        [one] => element.words.push(*one),
                        _ => element.phrases.push(ids),
                    }
                }
            }
        }
        Ok(())
    }

    /// Closes the lexicon: joins stems with the words they cover, chooses anchors, builds the tables.
    pub fn finish(&mut self) {
        self.stem_bits = vec![0; 1 << 10];
        for (folded, stem) in &self.texts {
            if *stem {
                let bit = stem_bit(folded);
                self.stem_bits[bit >> 6] |= 1 << (bit & 63);
                let head = token::hash(folded.get(..MIN_STEM).unwrap_or_default());
                *self.stem_lengths.entry(head).or_insert(0) |= 1 << folded.len().min(31);
            }
        }
        let covers = self.stem_covers();
        for shape in &mut self.shapes {
            for e in &mut shape.elements {
                let more: Vec<u16> =
                    e.words.iter().filter_map(|w| covers.get(w)).flatten().copied().collect();
                if !more.is_empty() {
                    e.words.extend(more);
                    e.words.sort_unstable();
                    e.words.dedup();
                }
                let mut extra = Vec::new();
                for p in &e.phrases {
                    if let Some(list) = p.last().and_then(|w| covers.get(w)) {
                        for w in list {
                            let mut q = p.clone();
                            if let Some(l) = q.last_mut() {
                                *l = *w;
                            }
                            extra.push(q);
                        }
                    }
                }
                e.phrases.extend(extra);
            }
        }
        let commonness = self.commonness();
        for (s, shape) in self.shapes.iter().enumerate() {
            if shape.unless {
                self.excuses.entry(shape.rule).or_default().push(s as u32);
                continue;
            }
            let mut best: Option<(u64, usize)> = None;
            for (i, e) in shape.elements.iter().enumerate() {
                if e.optional || e.special != 0 {
                    continue;
                }
                let cost = e.words.iter().chain(e.phrases.iter().filter_map(|p| p.first()));
                let cost: u64 = cost.map(|w| commonness.get(*w as usize).copied().unwrap_or(40)).sum();
                if best.is_none_or(|(c, _)| cost < c) {
                    best = Some((cost, i));
                }
            }
            let Some((_, i)) = best else { continue };
            let e = &shape.elements[i];
            let mut firsts: Vec<u16> =
                e.words.iter().copied().chain(e.phrases.iter().filter_map(|p| p.first().copied())).collect();
            // A phrase may start with a word that a stem covers.
            firsts.sort_unstable();
            firsts.dedup();
            for w in firsts {
                self.anchors[w as usize].push((s as u32, i as u8));
            }
        }
        self.anchor_starts.push(0);
        for list in std::mem::take(&mut self.anchors) {
            self.anchors_flat.extend(list);
            self.anchor_starts.push(self.anchors_flat.len() as u32);
        }
        for e in self.shapes.iter_mut().flat_map(|s| &mut s.elements) {
            e.sign();
        }
        let size = (self.exact.len() * 2).next_power_of_two().max(16);
        self.table = vec![(0, 0); size];
        for (h, id) in &self.exact {
            let mut at = (*h >> 40) as usize & (size - 1);
            while self.table[at].1 != 0 {
                at = (at + 1) & (size - 1);
            }
            self.table[at] = (*h, *id);
        }
    }

    /// For each stem, the exact words and longer stems that it also covers.
    fn stem_covers(&self) -> HashMap<u16, Vec<u16>> {
        let mut covers: HashMap<u16, Vec<u16>> = HashMap::new();
        for (id, (text, _)) in self.texts.iter().enumerate().skip(1) {
            let Some(head) = text.get(..MIN_STEM) else { continue };
            let Some(lengths) = self.stem_lengths.get(&token::hash(head)) else { continue };
            for len in (MIN_STEM..=text.len().min(31)).filter(|len| lengths & (1 << len) != 0) {
                let Some(prefix) = text.get(..len) else { break };
                if let Some(stem) = self.stems.get(&token::hash(prefix))
                    && usize::from(*stem) != id
                {
                    covers.entry(*stem).or_default().push(id as u16);
                }
            }
        }
        covers
    }

    /// How often a word of the lexicon is met, in hundredths of an occurrence in 100,000 words.
    fn commonness(&self) -> Vec<u64> {
        // A word that is not in the list is rare; a stem stands for several words.
        let mut out: Vec<u64> = self.texts.iter().map(|(_, stem)| if *stem { 300 } else { 40 }).collect();
        for line in FREQUENCIES.lines() {
            let Some((word, count)) = line.split_once(' ') else { continue };
            if let Some(id) = self.exact.get(&token::hash(word.as_bytes()))
                && let Some(slot) = out.get_mut(*id as usize)
            {
                *slot = count.parse::<u64>().unwrap_or(0) * 100;
            }
        }
        out
    }

    /// Fills in [`Token::word`].
    pub fn resolve(&self, text: &[u8], tokens: &mut [Token]) {
        let mask = self.table.len().wrapping_sub(1);
        if self.table.is_empty() {
            return;
        }
        for t in tokens {
            t.word = self.look_up(t.hash, mask);
            if t.word == 0 && t.len as usize >= MIN_STEM {
                t.word = self.stem(text, t);
            }
        }
    }

    #[inline(always)]
    fn look_up(&self, hash: u64, mask: usize) -> u16 {
        let mut at = (hash >> 40) as usize & mask;
        loop {
            let (h, id) = self.table[at];
            if id == 0 || h == hash {
                return id;
            }
            at = (at + 1) & mask;
        }
    }

    /// The id of the exact word with this hash, or 0.
    pub fn exact(&self, hash: u64) -> u16 {
        if self.table.is_empty() { 0 } else { self.look_up(hash, self.table.len() - 1) }
    }

    #[inline(always)]
    fn stem(&self, text: &[u8], t: &Token) -> u16 {
        let start = t.start as usize;
        if t.flags & token::FOLDED == 0 {
            let Some([a, b, c]) = text.get(start..start + 3) else { return 0 };
            let bit = stem_bit(&[a | 0x20, b | 0x20, c | 0x20]);
            if self.stem_bits[bit >> 6] & (1 << (bit & 63)) == 0 {
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
        let Some(head) = folded.get(..MIN_STEM) else { return 0 };
        let Some(lengths) = self.stem_lengths.get(&token::hash(head)) else { return 0 };
        let longest = folded.len().min(31);
        (MIN_STEM..=longest)
            .rev()
            .filter(|len| lengths & (1 << len) != 0)
            .find_map(|len| folded.get(..len).and_then(|p| self.stems.get(&token::hash(p))).copied())
            .unwrap_or(0)
    }

    /// Finds every shape in `tokens` (resolved), calling `found` for each.
    pub fn matches(&self, tokens: &[Token], mut found: impl FnMut(Hit)) {
        for (at, t) in tokens.iter().enumerate() {
            if t.word == 0 {
                continue;
            }
            let Some([from, to]) = self.anchor_starts.get(t.word as usize..t.word as usize + 2) else {
                continue;
            };
            for (shape, element) in self.anchors_flat.get(*from as usize..*to as usize).unwrap_or_default() {
                let shape = &self.shapes[*shape as usize];
                let mut steps = STEPS;
                if let Some((first, last)) = attempt(shape, *element as usize, tokens, at, &mut steps) {
                    found(Hit { rule: shape.rule, first: first as u32, last: last as u32 });
                }
            }
        }
    }

    /// Whether an exception of the hit's rule stands within `near` words of it.
    pub fn excused(&self, tokens: &[Token], hit: &Hit, near: usize) -> bool {
        let Some(excuses) = self.excuses.get(&hit.rule) else { return false };
        let from = (hit.first as usize).saturating_sub(near + SPAN);
        let to = (hit.last as usize + near + 1).min(tokens.len());
        excuses.iter().filter_map(|s| self.shapes.get(*s as usize)).any(|s| {
            (from..to).any(|at| {
                let mut steps = STEPS;
                attempt(s, 0, tokens, at, &mut steps)
                    .is_some_and(|(_, last)| last + near >= hit.first as usize)
            })
        })
    }
}

fn stem_bit(folded: &[u8]) -> usize {
    let mut x = 0u32;
    for b in folded.iter().take(3) {
        x = (x << 8) | u32::from(*b);
    }
    (x.wrapping_mul(0x9e37_79b1) >> 16) as usize
}

/// Length in words when `e` matches at `at`.
fn element_at(e: &Element, tokens: &[Token], at: usize) -> Option<usize> {
    let t = tokens.get(at)?;
    if e.special == 0 && !e.may_start(t.word) {
        return None;
    }
    if e.start && t.flags & (token::SENTENCE | token::OPENER | token::LINE) == 0 && at != 0 {
        return None;
    }
    let url = || tokens.get(at + 1).is_some_and(|n| n.flags & token::SCHEME != 0);
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
    for p in &e.phrases {
        if p.iter().enumerate().all(|(k, w)| tokens.get(at + k).is_some_and(|t| t.word == *w)) {
            return Some(p.len());
        }
    }
    e.words.binary_search(&t.word).is_ok().then_some(1)
}

fn attempt(s: &Shape, anchor: usize, tokens: &[Token], at: usize, steps: &mut u32) -> Option<(usize, usize)> {
    let len = element_at(s.elements.get(anchor)?, tokens, at)?;
    let last = forward(s, anchor + 1, tokens, at + len, steps)?;
    let first = backward(s, anchor, tokens, at, steps)?;
    Some((first, last))
}

/// Matches elements `k..` from token `at` on; returns the last token of the match.
fn forward(s: &Shape, k: usize, tokens: &[Token], at: usize, steps: &mut u32) -> Option<usize> {
    let Some(e) = s.elements.get(k) else { return at.checked_sub(1) };
    for skip in 0..=e.gap as usize {
        *steps = steps.checked_sub(1)?;
        let i = at + skip;
        let Some(t) = tokens.get(i) else { break };
        if !e.across && t.flags & token::SENTENCE != 0 {
            break;
        }
        if let Some(len) = element_at(e, tokens, i)
            && let Some(last) = forward(s, k + 1, tokens, i + len, steps)
        {
            return Some(last);
        }
    }
    if e.optional { forward(s, k + 1, tokens, at, steps) } else { None }
}

/// Matches elements `..k` so that element `k` starts at token `at`; returns the first token of the match.
fn backward(s: &Shape, k: usize, tokens: &[Token], at: usize, steps: &mut u32) -> Option<usize> {
    let Some(j) = k.checked_sub(1) else { return Some(at) };
    let e = &s.elements[j];
    let (gap, across) = (s.elements[k].gap as usize, s.elements[k].across);
    let longest = e.phrases.iter().map(Vec::len).max().unwrap_or(1).max(1);
    for skip in 0..=gap {
        let Some(end) = at.checked_sub(skip) else { break };
        if skip > 0 || !across {
            let crossed = tokens.get(end).is_some_and(|t| t.flags & token::SENTENCE != 0);
            if crossed && !across {
                break;
            }
        }
        for len in 1..=longest {
            *steps = steps.checked_sub(1)?;
            let Some(i) = end.checked_sub(len) else { break };
            if element_at(e, tokens, i) == Some(len)
                && let Some(first) = backward(s, j, tokens, i, steps)
            {
                return Some(first);
            }
        }
    }
    // The gap of a skipped element falls away; the gap of element `k` counts to the one before it.
    if e.optional && j > 0 {
        return backward_skipping(s, j, k, tokens, at, steps);
    }
    (e.optional && j == 0).then_some(at)
}

fn backward_skipping(
    s: &Shape,
    j: usize,
    k: usize,
    tokens: &[Token],
    at: usize,
    steps: &mut u32,
) -> Option<usize> {
    let before = &s.elements[j - 1];
    let e = &s.elements[k];
    let gap = usize::from(e.gap.max(s.elements[j].gap));
    for skip in 0..=gap {
        let i = at.checked_sub(skip)?.checked_sub(1)?;
        *steps = steps.checked_sub(1)?;
        if tokens.get(i + 1).is_some_and(|t| t.flags & token::SENTENCE != 0) && !e.across {
            return None;
        }
        if element_at(before, tokens, i) == Some(1)
            && let Some(first) = backward(s, j - 1, tokens, i, steps)
        {
            return Some(first);
        }
    }
    None
}

/// Occurrences of common words in 100,000 words of ordinary technical text: `word count` a line.
static FREQUENCIES: &str = include_str!("../../patterns/frequencies.txt");

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(shapes: &[&str], text: &str) -> usize {
        let mut lex = Lexicon::new();
        for s in shapes {
            lex.add(0, s, false, &HashMap::new()).unwrap();
        }
        lex.finish();
        let mut tokens = Vec::new();
        token::tokenise(text.as_bytes(), &mut tokens);
        lex.resolve(text.as_bytes(), &mut tokens);
        let mut n = 0;
        lex.matches(&tokens, |_| n += 1);
        n
    }

    #[test]
    fn gaps_are_bounded_and_stay_in_the_sentence() {
        let s = &["ignore ~2 instructions"];
        assert_eq!(hits(s, "ignore all previous instructions"), 1);
        assert_eq!(hits(s, "ignore all of the previous instructions"), 0);
        assert_eq!(hits(s, "ignore it. Previous instructions stand"), 0);
        assert_eq!(hits(&["ignore ..3 instructions"], "ignore it. Previous instructions stand"), 1);
    }

    #[test]
    fn stems_phrases_optionals_and_starts() {
        assert_eq!(hits(&["игнориру* ~2 инструкци*"], "Игнорируй предыдущие инструкции"), 1);
        assert_eq!(hits(&["忽略 ~4 指令"], "请忽略之前的指令"), 1);
        assert_eq!(hits(&["system_prompt ~1 leak*"], "system prompt was leaked"), 1);
        assert_eq!(hits(&["please? send this? mail"], "send mail"), 1);
        assert_eq!(hits(&["please send this? mail"], "please send mail"), 1);
        assert_eq!(hits(&["^send mail"], "to send mail"), 0);
        assert_eq!(hits(&["^send mail"], "first. Send mail"), 1);
        assert_eq!(hits(&["send ~3 to <url>"], "send it to https://x.example/y"), 1);
        assert_eq!(hits(&["mail ~3 <email>"], "mail it to bob@x.example"), 1);
    }

    #[test]
    fn a_bad_shape_is_an_error() {
        let mut lex = Lexicon::new();
        let none = HashMap::new();
        assert_eq!(lex.add(0, "a ~99 b", false, &none), Err(ShapeError::Gap("~99".into())));
        assert_eq!(lex.add(0, "@nope", false, &none), Err(ShapeError::UnknownClass("nope".into())));
        assert_eq!(lex.add(0, "<url>", false, &none), Err(ShapeError::Empty));
        assert_eq!(lex.add(0, "ab*", false, &none), Err(ShapeError::Stem("ab*".into())));
    }
}
