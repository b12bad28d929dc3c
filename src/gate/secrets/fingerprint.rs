//! A name for a secret that does not tell the secret.

use std::fmt::Write as _;

/// Names secrets by a keyed digest: equal secrets of one run get equal names, and nobody without the key can test a
/// guess against a name. The key is drawn at random and lives in this value alone.
pub struct Fingerprinter {
    key: ring::hmac::Key,
}

impl Default for Fingerprinter {
    fn default() -> Self {
        Fingerprinter::new()
    }
}

impl Fingerprinter {
    /// A fresh key from the system's random source.
    pub fn new() -> Fingerprinter {
        let mut bytes = [0u8; 32];
        if getrandom::fill(&mut bytes).is_err() {
            std::process::abort(); // a guessable key would make every name a test for guesses
        }
        Fingerprinter { key: ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &bytes) }
    }

    /// Twelve hexadecimal digits for `secret`.
    pub fn name(&self, secret: &str) -> String {
        let tag = ring::hmac::sign(&self.key, secret.as_bytes());
        tag.as_ref().iter().take(6).fold(String::with_capacity(12), |mut out, b| {
            let _ = write!(out, "{b:02x}");
            out
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stable_within_a_run_and_differ_between_runs() {
        let (a, b) = (Fingerprinter::new(), Fingerprinter::new());
        assert_eq!(a.name("x"), a.name("x"));
        assert_ne!(a.name("x"), a.name("y"));
        assert_ne!(a.name("x"), b.name("x"));
        assert_eq!(a.name("x").len(), 12);
    }
}
