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

/// Scans `text`; linear in its length. A finding of at least this severity and confidence withholds it.
pub fn look(text: &str, withhold: (Severity, f32)) -> Findings {
    let mut out = Findings::default();
    for finding in Engine::builtin().scan(&Untrusted::new(text)) {
        let rule = finding.rule.to_string();
        out.withhold |= finding.severity >= withhold.0 && finding.confidence >= withhold.1;
        if out.rules.len() < RULES_MAX && !out.rules.contains(&rule) {
            out.rules.push(rule);
        }
    }
    out
}
