//! The scan of a tool's result, in the form that sealing needs.

use crate::scan::{Engine, Severity};
use crate::untrusted::Untrusted;

/// What a scan said of a text.
#[derive(Debug, Default, Clone)]
pub struct Findings {
    /// Rules that matched, without repetition, at most [`RULES_MAX`].
    pub rules: Vec<String>,
    /// Whether the text must not reach the model even sealed.
    pub withhold: bool,
}

/// Most rules named.
pub const RULES_MAX: usize = 12;
/// Confidence from which a critical finding withholds the text.
const WITHHOLD: f32 = 0.9;

/// Scans `text`; linear in its length.
pub fn look(text: &str) -> Findings {
    let mut out = Findings::default();
    for finding in Engine::builtin().scan(&Untrusted::new(text)) {
        let rule = finding.rule.to_string();
        out.withhold |= finding.severity == Severity::Critical && finding.confidence >= WITHHOLD;
        if out.rules.len() < RULES_MAX && !out.rules.contains(&rule) {
            out.rules.push(rule);
        }
    }
    out
}
