//! Preflight: a glance at a text before it is analysed. It never blocks; it says how much less to trust what follows.

use super::{Engine, Severity};
use std::collections::BTreeMap;

/// What a glance found.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Preflight {
    /// Factor for the confidence of whatever is concluded from the text: 1 nothing seen, down to 0.3.
    pub haircut: f32,
    /// Rule → how often.
    pub indicators: BTreeMap<String, usize>,
}

/// Looks at `text`. A hit is advice: the caller goes on with its analysis.
pub fn preflight_bytes(text: &[u8]) -> Preflight {
    let mut indicators = BTreeMap::new();
    let mut haircut = 1.0f32;
    for f in Engine::builtin().scan_bytes(text) {
        haircut -= f.confidence
            * match f.severity {
                Severity::Critical => 0.4,
                Severity::High => 0.25,
                Severity::Medium => 0.1,
                Severity::Low => 0.03,
            };
        *indicators.entry(f.rule.into_owned()).or_insert(0) += 1;
    }
    Preflight { haircut: haircut.max(0.3), indicators }
}

/// The same for text.
pub fn preflight<T: super::ScanText + ?Sized>(text: &T) -> Preflight {
    preflight_bytes(text.bytes())
}
