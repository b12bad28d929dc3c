//! Baselines: findings that were accepted, by hash and count, so that only new ones count.

use super::report::Report;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// A baseline file.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Version of the format: 1.
    pub version: u32,
    /// File → fingerprint → how many are accepted.
    pub accepted: BTreeMap<String, BTreeMap<String, usize>>,
}

/// Hash of rule and matched bytes; the place plays no part, so moved lines stay accepted.
pub fn fingerprint(rule: &str, matched: &[u8]) -> String {
    let mut h = Sha256::new();
    h.update(rule.as_bytes());
    h.update([0]);
    h.update(matched);
    h.finalize().iter().take(16).map(|b| format!("{b:02x}")).collect()
}

fn name(file: &str) -> &str {
    file.strip_prefix("./").unwrap_or(file)
}

impl Baseline {
    /// Accepts everything that `reports` found.
    pub fn of(reports: &[Report]) -> Baseline {
        let mut b = Baseline { version: 1, accepted: BTreeMap::new() };
        for r in reports {
            for p in &r.findings {
                let file = b.accepted.entry(name(&r.file).to_string()).or_default();
                *file.entry(p.fingerprint.clone()).or_default() += 1;
            }
        }
        b
    }

    /// Reads a baseline.
    ///
    /// # Errors
    /// When the text is no baseline of version 1.
    pub fn parse(text: &str) -> Result<Baseline, String> {
        let b: Baseline = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if b.version == 1 { Ok(b) } else { Err(format!("version {} is unknown; want 1", b.version)) }
    }

    /// Withholds what is accepted, and returns how many accepted findings of checked files are gone.
    pub fn apply(&self, reports: &mut [Report]) -> usize {
        let mut stale = 0;
        for r in reports {
            let Some(accepted) = self.accepted.get(name(&r.file)) else { continue };
            let mut left = accepted.clone();
            let mut kept = Vec::new();
            for p in r.findings.drain(..) {
                match left.get_mut(&p.fingerprint) {
                    Some(n) if *n > 0 => {
                        *n -= 1;
                        r.withheld.push((p, "baseline"));
                    }
                    _ => kept.push(p),
                }
            }
            r.findings = kept;
            stale += left.values().sum::<usize>();
        }
        stale
    }
}
