//! A checked text as a report: places, suppression, the three formats.

use super::finding::{Finding, Severity};
use super::{Engine, baseline, context};
use crate::sanitise;
use serde_json::{Value, json};
use std::fmt::Write as _;

pub use super::sarif::sarif;

/// What one text yielded.
#[derive(Debug, Default)]
pub struct Report {
    /// Name of the file, safe to print.
    pub file: String,
    /// What counts.
    pub findings: Vec<Placed>,
    /// What was held back, with the reason.
    pub withheld: Vec<(Placed, &'static str)>,
}

/// A finding with its place in lines.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The finding.
    pub finding: Finding,
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// Column in characters, from 1.
    pub character: usize,
    /// Line of the last byte, from 1.
    pub end_line: usize,
    /// Column in characters behind the last one, from 1.
    pub end_character: usize,
    /// The matched text, made safe to print; at most 160 characters.
    pub evidence: String,
    /// Hash of rule and matched text, for baselines.
    pub fingerprint: String,
}

/// What decides which findings count.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Context does not lower confidence.
    pub strict: bool,
    /// Findings below are withheld.
    pub min_confidence: f32,
    /// Inline suppression has no effect.
    pub no_suppress: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { strict: false, min_confidence: 0.5, no_suppress: false }
    }
}

/// Scans `text` under the name `file`.
pub fn check(engine: &Engine, file: &str, text: &[u8], policy: Policy) -> Report {
    let mut report = Report { file: sanitise::escape(file, false), ..Report::default() };
    let findings = engine.scan_named(file, text);
    if !findings.is_empty() {
        // Where the list is full, examples in code cannot be told from what they would hide behind it.
        let full = findings.len() >= super::MAX_FINDINGS;
        let map = if full { context::Map::default() } else { context::Map::of(file, text) };
        place(findings, text, &map, Origin::default(), policy, &mut report);
    }
    report
}

/// Where a piece of a text begins.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Origin {
    /// Bytes before it.
    pub bytes: usize,
    /// Line breaks before it.
    pub lines: usize,
    /// Bytes of its first line that stand before it.
    pub column: usize,
    /// Characters of its first line that stand before it.
    pub characters: usize,
}

/// Gives each finding of `text` its place, and puts it among those that count or those that are withheld.
pub(crate) fn place(
    findings: Vec<Finding>,
    text: &[u8],
    map: &context::Map,
    origin: Origin,
    policy: Policy,
    report: &mut Report,
) {
    let (lines, counts) = (line_starts(text), Characters::of(text));
    let suppressed = Suppressions::of(text, origin.bytes == 0);
    for mut f in findings {
        f.context = map.at(f.start, f.end);
        if !policy.strict && !hides(&f) {
            f.confidence *= f.context.factor();
        }
        let (line, column, character) = position(text, &lines, &counts, f.start, origin);
        let (end_line, _, end_character) = position(text, &lines, &counts, f.end, origin);
        let bytes = text.get(f.start..f.end).unwrap_or_default();
        let fingerprint = baseline::fingerprint(&f.rule, bytes);
        let evidence: String = String::from_utf8_lossy(bytes).chars().take(160).collect();
        let evidence = sanitise::escape(&evidence, false);
        let touched = line - origin.lines..=end_line - origin.lines;
        f.start += origin.bytes;
        f.end += origin.bytes;
        let placed =
            Placed { line, column, character, end_line, end_character, evidence, fingerprint, finding: f };
        if !policy.no_suppress && suppressed.covers(&touched, &placed.finding.rule) {
            report.withheld.push((placed, "suppressed"));
        } else if placed.finding.confidence < policy.min_confidence && !policy.strict {
            report.withheld.push((placed, "low confidence"));
        } else {
            report.findings.push(placed);
        }
    }
}

/// Line, column in bytes and column in characters of byte `at`.
fn position(
    text: &[u8],
    lines: &[usize],
    counts: &Characters,
    at: usize,
    origin: Origin,
) -> (usize, usize, usize) {
    let line = lines.partition_point(|s| *s <= at).max(1);
    let start = lines.get(line - 1).copied().unwrap_or(0);
    let characters = counts.before(text, at).saturating_sub(counts.before(text, start));
    let (column, character) = if line == 1 { (origin.column, origin.characters) } else { (0, 0) };
    (origin.lines + line, column + at - start + 1, character + characters + 1)
}

/// How many characters stand before every so many bytes: a line can be as long as its text, and have many findings.
struct Characters(Vec<usize>);

impl Characters {
    const STEP: usize = 4096;

    fn of(text: &[u8]) -> Characters {
        let sums = text.chunks(Self::STEP).scan(0, |sum, chunk| {
            *sum += characters(chunk);
            Some(*sum)
        });
        Characters(std::iter::once(0).chain(sums).collect())
    }

    fn before(&self, text: &[u8], at: usize) -> usize {
        let step = at / Self::STEP;
        let rest = text.get(step * Self::STEP..at).unwrap_or_default();
        self.0.get(step).copied().unwrap_or(0) + characters(rest)
    }
}

/// Characters of a run; a byte that begins none counts as one with its followers.
pub(crate) fn characters(run: &[u8]) -> usize {
    run.iter().filter(|b| **b & 0xc0 != 0x80).count()
}

/// Hiding is as suspicious in a fence or table as elsewhere.
fn hides(f: &Finding) -> bool {
    f.rule == "EN003"
}

fn line_starts(text: &[u8]) -> Vec<usize> {
    std::iter::once(0).chain(memchr::memchr_iter(b'\n', text).map(|i| i + 1)).collect()
}

/// `jess:ignore ID`, `jess:ignore-next-line ID`, `jess:ignore-file ID` (first ten lines), each behind a comment mark.
struct Suppressions(Vec<(usize, String)>);

const WHOLE: usize = 0;

impl Suppressions {
    fn of(text: &[u8], first: bool) -> Suppressions {
        let mut out = Vec::new();
        let (mut line, mut counted) = (1, 0);
        for at in memchr::memmem::find_iter(text, b"jess:ignore").take(1000) {
            line += memchr::memchr_iter(b'\n', &text[counted..at]).count();
            counted = at;
            let head = text[..at].iter().rposition(|b| *b == b'\n').map_or(0, |p| p + 1);
            let before = String::from_utf8_lossy(&text[head..at]);
            if !["#", "//", "<!--", "/*", ";", "--", "%"].iter().any(|m| before.contains(m)) {
                continue;
            }
            let end = text[at..].iter().position(|b| *b == b'\n').map_or(text.len(), |p| at + p);
            let rest = String::from_utf8_lossy(&text[at + "jess:ignore".len()..end]);
            let (target, ids) = match (rest.strip_prefix("-next-line"), rest.strip_prefix("-file")) {
                (Some(ids), _) => (line + 1, ids),
                (_, Some(_)) if line > 10 || !first => continue,
                (_, Some(ids)) => (WHOLE, ids),
                _ => (line, rest.as_ref()),
            };
            let is_id =
                |w: &&str| w.len() == 5 && w.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
            out.extend(ids.split([' ', ',']).filter(is_id).map(|id| (target, id.to_string())));
        }
        Suppressions(out)
    }

    fn covers(&self, touched: &std::ops::RangeInclusive<usize>, rule: &str) -> bool {
        self.0.iter().any(|(l, id)| (touched.contains(l) || *l == WHOLE) && id == rule)
    }
}

fn one(p: &Placed) -> Value {
    let f = &p.finding;
    let mut v = json!({
        "rule": f.rule, "name": f.name, "severity": f.severity, "confidence": (f.confidence * 100.0).round() / 100.0,
        "start": f.start, "end": f.end, "line": p.line, "column": p.column, "view": f.view, "context": f.context,
        "message": f.message, "evidence": p.evidence,
    });
    if let (Some(map), Some(d)) = (v.as_object_mut(), &f.decoded) {
        map.insert("decoded".into(), json!(sanitise::for_terminal(d, 200)));
    }
    if let (Some(map), false) = (v.as_object_mut(), f.because.is_empty()) {
        let because: Vec<String> = f.because.iter().map(|b| sanitise::for_terminal(b, 60)).collect();
        map.insert("because".into(), json!(because));
    }
    v
}

/// The array that `--format json` prints: one object for each file with findings, kept or withheld.
pub fn json(reports: &[Report]) -> Value {
    let files = reports.iter().filter(|r| !r.findings.is_empty() || !r.withheld.is_empty()).map(|r| {
        let withheld: Vec<Value> = r
            .withheld
            .iter()
            .map(|(p, why)| {
                let mut v = one(p);
                if let Some(map) = v.as_object_mut() {
                    map.insert("withheld".into(), json!(why));
                }
                v
            })
            .collect();
        json!({"file": r.file, "findings": r.findings.iter().map(one).collect::<Vec<_>>(), "withheld": withheld})
    });
    Value::Array(files.collect())
}

/// The text form, with colour when asked.
pub fn text(reports: &[Report], colour: bool) -> String {
    let mut out = String::new();
    for r in reports {
        for p in &r.findings {
            let f = &p.finding;
            let (on, off) = match (colour, f.severity) {
                (false, _) => ("", ""),
                (true, Severity::Critical | Severity::High) => ("\x1b[31m", "\x1b[0m"),
                (true, Severity::Medium) => ("\x1b[33m", "\x1b[0m"),
                (true, Severity::Low) => ("\x1b[36m", "\x1b[0m"),
            };
            let _ = writeln!(
                out,
                "{}:{}:{}: {on}{}{off} {} {} [{}, {}, {:.2}]\n    | {}",
                r.file,
                p.line,
                p.column,
                f.severity.name(),
                f.rule,
                f.message,
                f.view,
                f.context.name(),
                f.confidence,
                p.evidence
            );
            if let Some(d) = &f.decoded {
                let _ = writeln!(out, "    = {}", sanitise::for_terminal(d, 160));
            }
            if !f.because.is_empty() {
                let because: Vec<String> = f.because.iter().map(|b| sanitise::for_terminal(b, 40)).collect();
                let _ = writeln!(out, "    because: {}", because.join(" · "));
            }
        }
    }
    out
}
