//! The engine: text in, findings out.

use super::builder::Compiled;
use super::finding::{Context, Finding, Severity};
use super::lexicon::{Hit, Lexicon};
use super::rule;
use super::survey::{Survey, Surveyor};
use super::text::ScanText;
use super::token::{self, Token};
use super::{carrier, decode, joins, mention, model, structure};
use std::borrow::Cow;
use std::collections::HashMap;

/// Of the findings of one text beyond this many, only those are kept that are more severe than all before.
pub const MAX_FINDINGS: usize = 1000;
/// Findings that are collected before those that overlap are put together.
const COLLECTED: usize = 4 * MAX_FINDINGS;
/// Texts are scanned in chunks of this many bytes.
const CHUNK: usize = 64 * 1024;
/// Chunks overlap by this many bytes, so that what is shorter is never cut.
const OVERLAP: usize = 4 * 1024;
/// What a regular expression needs is shorter than this, in bytes.
const NEEDS: usize = 64;
/// An exception counts this many words from a finding.
const NEAR: usize = 10;

/// Rules, ready to run. Regular expressions are compiled on first use.
#[derive(Debug)]
pub struct Engine {
    pub(crate) rules: Vec<Compiled>,
    pub(crate) lexicon: Lexicon,
    pub(crate) model: Option<model::Model<'static>>,
}

impl Engine {
    /// The built-in rules.
    pub fn catalogue(&self) -> &'static [rule::RuleDef] {
        rule::RULES
    }

    /// Everything found in `text`, in order of place. Linear in the length of the text.
    pub fn scan<T: ScanText + ?Sized>(&self, text: &T) -> Vec<Finding> {
        self.scan_bytes(text.bytes())
    }

    /// The same over bytes, which need not be UTF-8.
    pub fn scan_bytes(&self, text: &[u8]) -> Vec<Finding> {
        self.scan_named("", text)
    }

    /// The same over the bytes of `file`, whose extension tells the format; without one, the format shows in the text.
    pub fn scan_named(&self, file: &str, text: &[u8]) -> Vec<Finding> {
        let mut out = Vec::new();
        let mut surveyor = Surveyor::new(&self.lexicon, self.model);
        self.chunks(text, Place::default(), &mut surveyor, None, &mut out);
        let mut left = decode::budget(text.len());
        self.carriers(file, text, Place::default(), &mut surveyor, &mut left, &mut out);
        let grants = structure::wildcard_tools(text);
        if let Some(rule) = self.rules.iter().position(|r| r.id == "AC013").filter(|_| !grants.is_empty()) {
            let one = |(start, end)| self.finding(rule as u16, start, end, "front matter".into(), 1.0);
            out.extend(grants.into_iter().map(one));
        }
        out.sort_by(|a, b| (a.start, a.end, &a.rule).cmp(&(b.start, b.end, &b.rule)));
        let mut kept: Vec<Finding> = Vec::with_capacity(out.len().min(MAX_FINDINGS));
        let mut last: HashMap<Cow<'static, str>, usize> = HashMap::new();
        // Of two that overlap, the surer one counts, and then the one that stands in the text itself.
        let rank = |f: &Finding| (f.confidence, f.decoded.is_none());
        // The findings are as many as that only when the list was filled on purpose.
        let mut worst = out.get(..MAX_FINDINGS).and_then(worst_of);
        for f in out {
            if kept.len() >= MAX_FINDINGS && !tops(&f, &mut worst) {
                continue;
            }
            if let Some(have) = last.get(&f.rule).and_then(|i| kept.get_mut(*i))
                && f.start < have.end
            {
                if rank(&f) > rank(have) {
                    *have = f;
                }
                continue;
            }
            last.insert(f.rule.clone(), kept.len());
            kept.push(f);
        }
        kept
    }

    /// Findings of the passes over the source alone, without what parsers take out of it: what a test compares with.
    #[doc(hidden)]
    pub fn scan_source(&self, text: &[u8]) -> Vec<Finding> {
        let mut out = Vec::new();
        self.chunks(text, Place::default(), &mut Surveyor::new(&self.lexicon, self.model), None, &mut out);
        out
    }

    /// Scans `text` in overlapping chunks, so that memory stays bounded whatever the length. Without a budget, each chunk
    /// has its own.
    fn chunks(
        &self,
        text: &[u8],
        place: Place,
        surveyor: &mut Surveyor<'_>,
        mut budget: Option<&mut usize>,
        out: &mut Vec<Finding>,
    ) {
        let mut from = 0;
        loop {
            let end = (from + CHUNK).min(text.len());
            let Some(chunk) = text.get(from..end) else { break };
            let mut own = decode::budget(chunk.len());
            let left = budget.as_deref_mut().unwrap_or(&mut own);
            let before = out.len();
            self.pass(chunk, place, surveyor, left, out);
            for f in out.iter_mut().skip(before) {
                f.start += from;
                f.end += from;
            }
            // What fills the list must not hide what comes after it.
            if out.len() > COLLECTED {
                let more = out.split_off(before.max(COLLECTED));
                let mut worst = worst_of(out);
                out.extend(more.into_iter().filter(|f| tops(f, &mut worst)));
            }
            if end == text.len() {
                break;
            }
            from = end - OVERLAP;
            while text.get(from).is_some_and(|b| b & 0xc0 == 0x80) {
                from += 1;
            }
        }
    }

    /// What parsers of formats take out of `text`, and what is in that.
    fn carriers(
        &self,
        file: &str,
        text: &[u8],
        place: Place,
        surveyor: &mut Surveyor<'_>,
        left: &mut usize,
        out: &mut Vec<Finding>,
    ) {
        if place.depth >= decode::MAX_DEPTH {
            return;
        }
        let inside = Place { depth: place.depth + 1, ..place };
        for view in carrier::views(file, text, left) {
            let at = out.len();
            self.chunks(&view.bytes, inside, surveyor, Some(left), out);
            // The text of a page holds no format but Markdown, and that parser steps over tags by itself.
            if !matches!(view.name, "html text" | "markdown text") {
                self.carriers("", &view.bytes, inside, surveyor, left, out);
            }
            lift(&view, at, out);
        }
    }

    /// One text at one depth: rules, model, then what it decodes to.
    fn pass(
        &self,
        text: &[u8],
        place: Place,
        surveyor: &mut Surveyor<'_>,
        left: &mut usize,
        out: &mut Vec<Finding>,
    ) {
        let mut tokens = Vec::with_capacity(text.len() / 5 + 16);
        let seen = token::tokenise(text, &mut tokens);
        let survey = surveyor.survey(text, &mut tokens);
        self.shapes(text, &tokens, Some(&survey), out);
        self.regexes(text, &tokens, &survey.triggers, place.depth, out);
        let joined = joins::joined(text, &tokens, &survey.pieces, &self.lexicon);
        if !joined.is_empty() {
            self.shapes(text, &joined, None, out);
        }
        self.learned(text, &tokens, &survey, place, out);
        if place.depth >= decode::MAX_DEPTH {
            return;
        }
        let inside = Place { depth: place.depth + 1, decoded: true };
        for view in decode::views(text, &tokens, &seen, &survey, left) {
            let at = out.len();
            self.pass(&view.bytes, inside, surveyor, left, out);
            self.carriers("", &view.bytes, inside, surveyor, left, out);
            let had = out.len() > at;
            lift(&view, at, out);
            if view.hidden && (had || !place.decoded) {
                self.hidden(&view, had, out);
            }
        }
    }

    /// The features of `text` and of all it decodes to: one list of steps for each view. For training.
    #[doc(hidden)]
    pub fn instances(&self, text: &[u8]) -> Vec<Vec<Vec<u32>>> {
        let mut out = Vec::new();
        let text = text.get(..text.len().min(CHUNK)).unwrap_or_default();
        let mut left = decode::budget(text.len());
        self.collect(text, 0, &mut left, &mut out);
        out
    }

    fn collect(&self, text: &[u8], depth: u8, left: &mut usize, out: &mut Vec<Vec<Vec<u32>>>) {
        let mut tokens = Vec::new();
        let seen = token::tokenise(text, &mut tokens);
        let survey = Surveyor::new(&self.lexicon, None).survey(text, &mut tokens);
        out.push(model::features(&tokens));
        if depth < decode::MAX_DEPTH {
            for view in decode::views(text, &tokens, &seen, &survey, left) {
                self.collect(&view.bytes, depth + 1, left, out);
            }
        }
    }

    /// A run that was written so that a reader does not see what it says.
    fn hidden(&self, view: &decode::View, had: bool, out: &mut Vec<Finding>) {
        let id = match view.name {
            "tags" | "variation-selectors" => "EN003",
            _ if sentence(&view.bytes) || had => "EN004",
            _ => return,
        };
        let Some(rule) = self.rules.iter().position(|r| r.id == id) else { return };
        let (start, end) = view.source(0, view.bytes.len());
        let mut f = self.finding(rule as u16, start, end, view.name.into(), 1.0);
        let text: String = String::from_utf8_lossy(&view.bytes).chars().take(200).collect();
        f.decoded = Some(crate::untrusted::Untrusted::new(text));
        out.push(f);
    }

    fn learned(&self, text: &[u8], tokens: &[Token], survey: &Survey, place: Place, out: &mut Vec<Finding>) {
        // What a parser puts together, the model has seen in the source.
        let Some(model) = self.model.filter(|_| place.depth == 0 || place.decoded) else { return };
        let mut best: Option<model::Window> = None;
        let threshold = if place.decoded { model.threshold / 2 } else { model.threshold };
        let mut windows = Vec::new();
        // A decoded view is short, and its threshold lower.
        let plain = (!place.decoded).then_some(survey.plain.as_slice());
        model.windows(tokens, plain, threshold, |w| match &mut best {
            Some(b) if w.first < b.last => {
                if w.score > b.score {
                    *b = w;
                }
            }
            _ => windows.extend(best.replace(w)),
        });
        windows.extend(best);
        if windows.is_empty() {
            return;
        }
        let Some(rule) = self.rules.iter().position(|r| r.id == "LM001") else { return };
        for w in windows {
            let (Some(a), Some(b)) = (tokens.get(w.first), tokens.get(w.last.saturating_sub(1))) else {
                continue;
            };
            let (start, end) = (a.start as usize, (b.end as usize).max(a.end as usize));
            let over = (w.score - threshold) as f32 / threshold.abs().max(1) as f32;
            let mut f = self.finding(rule as u16, start, end, "text".into(), (0.8 + over * 0.2).min(0.99));
            f.because = model
                .explain(text, tokens, w, 5)
                .into_iter()
                .map(|(s, _)| crate::untrusted::Untrusted::new(s))
                .collect();
            out.push(f);
        }
    }

    fn shapes(&self, text: &[u8], tokens: &[Token], survey: Option<&Survey>, out: &mut Vec<Finding>) {
        let mut hits: Vec<(Hit, bool)> = Vec::new();
        // For each rule, up to where its last match reaches.
        let mut covered = vec![0u32; self.rules.len()];
        let each = |hit: Hit| {
            let Some(reach) = covered.get_mut(hit.rule as usize).filter(|r| hit.first >= **r) else { return };
            // A match that an exception takes back hides no other.
            let excused = self.lexicon.excused(tokens, &hit, NEAR);
            *reach = if excused { hit.first + 1 } else { hit.last + 1 };
            hits.push((hit, excused));
        };
        match survey {
            Some(s) => {
                let places = s.anchors.iter().map(|i| *i as usize);
                self.lexicon.matches(tokens, places, Some(&s.around), each);
            }
            None => self.lexicon.matches(tokens, 0..tokens.len(), None, each),
        }
        if hits.is_empty() {
            return;
        }
        let base = if survey.is_some() { "text" } else { "normalised" };
        let discusses = survey.is_some() && mention::discusses(tokens);
        for (hit, excused) in hits {
            let (Some(first), Some(last)) = (tokens.get(hit.first as usize), tokens.get(hit.last as usize))
            else {
                continue;
            };
            let span = tokens.get(hit.first as usize..=hit.last as usize).unwrap_or_default();
            let normalised = span.iter().any(|t| t.flags & token::FOLDED != 0);
            let view = if normalised { "normalised" } else { base };
            let quoted = discusses && mention::quoted(text, first.start as usize, last.end as usize);
            let confidence = if excused || quoted { 0.3 } else { 1.0 };
            out.push(self.finding(
                hit.rule,
                first.start as usize,
                last.end as usize,
                view.into(),
                confidence,
            ));
        }
    }

    fn regexes(&self, text: &[u8], tokens: &[Token], triggers: &[u32], depth: u8, out: &mut Vec<Finding>) {
        // For each rule, how far the text was searched already.
        let mut reached = vec![0usize; self.rules.len()];
        // For each rule, up to where the text has nothing that its expression needs.
        let mut empty = vec![0usize; self.rules.len()];
        for t in triggers.iter().filter_map(|i| tokens.get(*i as usize)) {
            for r in self.lexicon.triggers(t.word) {
                let pattern = self.rules.get(usize::from(*r)).and_then(|c| c.regex.as_ref());
                let (reach, empty) = (reached.get_mut(usize::from(*r)), empty.get_mut(usize::from(*r)));
                let (Some(pattern), Some(reach), Some(empty)) = (pattern, reach, empty) else { continue };
                let (start, end) = (t.start as usize, t.end as usize);
                let [before, after] = pattern.near;
                // A match that holds this trigger was in the window of one before.
                if pattern.raw && depth > 0 || *reach != 0 && end + after / 2 <= *reach {
                    continue;
                }
                let from = start.saturating_sub(before);
                let to = (end + after).min(text.len());
                *reach = to;
                // What is needed may begin before the place that is known to have none.
                let unknown = from.max(empty.saturating_sub(NEEDS));
                if text.get(unknown..to).is_none_or(|w| !pattern.possible(w)) {
                    *empty = to;
                    continue;
                }
                let Some(window) = text.get(from..to) else { continue };
                let Some(regex) = pattern.get() else { continue };
                for m in regex.find_iter(window).take(4) {
                    out.push(self.finding(*r, from + m.start(), from + m.end(), "text".into(), 1.0));
                }
            }
        }
    }

    fn finding(
        &self,
        rule: u16,
        start: usize,
        end: usize,
        view: Cow<'static, str>,
        confidence: f32,
    ) -> Finding {
        let r = &self.rules[rule as usize];
        Finding {
            rule: r.id.clone(),
            name: r.name.clone(),
            category: r.category.clone(),
            severity: r.severity,
            confidence,
            start,
            end,
            message: r.message.clone(),
            view,
            context: Context::Prose,
            decoded: None,
            because: Vec::new(),
        }
    }
}

/// The highest severity of the findings that count.
pub(crate) fn worst_of(found: &[Finding]) -> Option<Severity> {
    found.iter().filter(|f| f.confidence >= 0.5).map(|f| f.severity).max()
}

/// Whether `f` counts and is more severe than `worst`, which it then becomes.
pub(crate) fn tops(f: &Finding, worst: &mut Option<Severity>) -> bool {
    let tops = f.confidence >= 0.5 && Some(f.severity) > *worst;
    if tops {
        *worst = Some(f.severity);
    }
    tops
}

/// How a text came about.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Views it stands in.
    depth: u8,
    /// One of them was decoded, not only taken out of a format.
    decoded: bool,
}

/// Moves the findings `out[at..]` from `view` to its source.
fn lift(view: &decode::View, at: usize, out: &mut [Finding]) {
    for f in out.iter_mut().skip(at) {
        let decoded = view.bytes.get(f.start..f.end).unwrap_or_default();
        if f.decoded.is_none() {
            let text: String = String::from_utf8_lossy(decoded).chars().take(200).collect();
            f.decoded = Some(crate::untrusted::Untrusted::new(text));
        }
        (f.start, f.end) = view.source(f.start, f.end.max(f.start + 1));
        f.view = match f.view.as_ref() {
            "text" | "normalised" => view.name.into(),
            inner => format!("{} > {inner}", view.name).into(),
        };
    }
}

/// Words as in a sentence: at least three, mostly letters, with lower case.
fn sentence(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let words =
        text.split_whitespace().filter(|w| w.chars().filter(|c| c.is_alphabetic()).count() >= 2).count();
    let n = text.chars().count();
    let letters = text.chars().filter(|c| c.is_alphabetic() || *c == ' ').count();
    words >= 3 && letters * 4 >= n * 3
}
