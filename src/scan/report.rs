//! A checked text as a report: places, suppression, the three formats.

use super::finding::{Finding, Severity};
use super::{Engine, baseline, context};
use crate::sanitise;
use serde_json::{Value, json};
use std::fmt::Write as _;

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
    let mut findings = engine.scan_bytes(text);
    if findings.is_empty() {
        return Report { file: sanitise::escape(file, false), ..Report::default() };
    }
    let map = context::Map::of(file, text);
    let lines = line_starts(text);
    let suppressed = Suppressions::of(text);
    let mut report = Report { file: sanitise::escape(file, false), ..Report::default() };
    for mut f in findings.drain(..) {
        f.context = map.at(f.start, f.end);
        if !policy.strict && !hides(&f) {
            f.confidence *= f.context.factor();
        }
        let line = lines.partition_point(|s| *s <= f.start).max(1);
        let column = f.start - lines.get(line - 1).copied().unwrap_or(0) + 1;
        let bytes = text.get(f.start..f.end).unwrap_or_default();
        let fingerprint = baseline::fingerprint(&f.rule, bytes);
        let evidence: String = String::from_utf8_lossy(bytes).chars().take(160).collect();
        let placed =
            Placed { line, column, evidence: sanitise::escape(&evidence, false), fingerprint, finding: f };
        if !policy.no_suppress && suppressed.covers(line, &placed.finding.rule) {
            report.withheld.push((placed, "suppressed"));
        } else if placed.finding.confidence < policy.min_confidence && !policy.strict {
            report.withheld.push((placed, "low confidence"));
        } else {
            report.findings.push(placed);
        }
    }
    report
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
    fn of(text: &[u8]) -> Suppressions {
        let mut out = Vec::new();
        for at in memchr::memmem::find_iter(text, b"jess:ignore").take(1000) {
            let line = memchr::memchr_iter(b'\n', &text[..at]).count() + 1;
            let head = text[..at].iter().rposition(|b| *b == b'\n').map_or(0, |p| p + 1);
            let before = String::from_utf8_lossy(&text[head..at]);
            if !["#", "//", "<!--", "/*", ";", "--", "%"].iter().any(|m| before.contains(m)) {
                continue;
            }
            let end = text[at..].iter().position(|b| *b == b'\n').map_or(text.len(), |p| at + p);
            let rest = String::from_utf8_lossy(&text[at + "jess:ignore".len()..end]);
            let (target, ids) = match (rest.strip_prefix("-next-line"), rest.strip_prefix("-file")) {
                (Some(ids), _) => (line + 1, ids),
                (_, Some(_)) if line > 10 => continue,
                (_, Some(ids)) => (WHOLE, ids),
                _ => (line, rest.as_ref()),
            };
            let is_id =
                |w: &&str| w.len() == 5 && w.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
            out.extend(ids.split([' ', ',']).filter(is_id).map(|id| (target, id.to_string())));
        }
        Suppressions(out)
    }

    fn covers(&self, line: usize, rule: &str) -> bool {
        self.0.iter().any(|(l, id)| (*l == line || *l == WHOLE) && id == rule)
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

/// SARIF 2.1.0.
pub fn sarif(reports: &[Report]) -> Value {
    let mut rules: Vec<Value> = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    let mut results = Vec::new();
    for r in reports {
        for p in &r.findings {
            let f = &p.finding;
            let level = match f.severity {
                Severity::Critical | Severity::High => "error",
                Severity::Medium => "warning",
                Severity::Low => "note",
            };
            let score = match f.severity {
                Severity::Critical => "9.5",
                Severity::High => "8.0",
                Severity::Medium => "5.0",
                Severity::Low => "2.0",
            };
            let index = ids.iter().position(|i| *i == f.rule).unwrap_or_else(|| {
                ids.push(f.rule.to_string());
                rules.push(json!({
                    "id": f.rule, "name": f.name, "shortDescription": {"text": f.message},
                    "defaultConfiguration": {"level": level},
                    "properties": {"security-severity": score, "tags": ["security", f.category]},
                }));
                ids.len() - 1
            });
            results.push(json!({
                "ruleId": f.rule, "ruleIndex": index, "level": level,
                "message": {"text": format!("{} [{}]", f.message, f.view)},
                "locations": [{"physicalLocation": {
                    "artifactLocation": {"uri": uri(&r.file)},
                    "region": {"startLine": p.line, "startColumn": p.column, "byteOffset": f.start,
                               "byteLength": f.end - f.start},
                }}],
                "partialFingerprints": {"jess/v1": p.fingerprint},
                "properties": {"confidence": f.confidence, "context": f.context.name()},
            }));
        }
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "jess", "version": env!("CARGO_PKG_VERSION"), "rules": rules,
                     "informationUri": "https://github.com/jess-sandbox/jess"}},
            "columnKind": "unicodeCodePoints", "results": results,
        }],
    })
}

/// The path as a relative URI reference.
fn uri(path: &str) -> String {
    let mut out = String::new();
    for b in path.strip_prefix("./").unwrap_or(path).bytes() {
        if b.is_ascii_alphanumeric() || b"/._-~".contains(&b) {
            out.push(b as char);
        } else {
            let _ = write!(out, "%{b:02X}");
        }
    }
    out
}
