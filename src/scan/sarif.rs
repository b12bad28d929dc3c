//! SARIF 2.1.0, for code-scanning services.

use super::finding::Severity;
use super::report::Report;
use super::rule::RULES;
use serde_json::{Value, json};
use std::fmt::Write as _;

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
                    "help": {"text": help(&f.rule)},
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
                    "region": {"startLine": p.line, "startColumn": p.character, "endLine": p.end_line,
                               "endColumn": p.end_character, "byteOffset": f.start, "byteLength": f.end - f.start},
                }}],
                "partialFingerprints": {"jess/v1": p.fingerprint},
                "properties": {"confidence": f.confidence, "context": f.context.name()},
            }));
        }
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "jess", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "columnKind": "unicodeCodePoints", "results": results,
        }],
    })
}

/// What to do about a finding of `rule`.
fn help(rule: &str) -> &'static str {
    RULES.iter().find(|r| r.id == rule).map_or("See the rule's own file.", |r| r.remediation)
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
