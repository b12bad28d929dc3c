//! Secret-shaped strings: found and replaced, never shown.
//!
//! | stage | module | what |
//! |---|---|---|
//! | vendor formats | [`table`] | a literal that starts the token, then runs of known alphabets and lengths |
//! | named values | [`named`] | a vendor's or a generic name, a separator, and a value of the right shape |
//! | structures | [`structure`] | PEM keys, JWT, URLs with userinfo, authorisation headers, chat-hook URLs |
//!
//! Time is linear: one automaton finds every literal, and what is read behind one is bounded or skipped afterwards.

pub mod fingerprint;
mod named;
mod shape;
mod structure;
mod table;

pub use fingerprint::Fingerprinter;

/// Where a secret-shaped string stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretHit {
    /// What it looks like, for example `github-token`.
    pub kind: &'static str,
    /// First byte of the secret.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
}

/// Every secret-shaped string in `text`, in order, without overlaps. Linear in the input.
pub fn find(text: &str) -> Vec<SecretHit> {
    let mut hits = Vec::new();
    shape::find(text, &mut hits);
    structure::find(text, &mut hits);
    named::find(text, &mut hits);
    settled(text, hits)
}

/// [`find`] for text that comes out of a decoder: formats and structures, without values that only a name marks.
pub(super) fn find_formats(text: &str) -> Vec<SecretHit> {
    let mut hits = Vec::new();
    shape::find(text, &mut hits);
    structure::find(text, &mut hits);
    settled(text, hits)
}

pub(super) use shape::starts as format_starts;

fn settled(text: &str, mut hits: Vec<SecretHit>) -> Vec<SecretHit> {
    hits.retain(|h| !text.get(h.start..h.end).is_none_or(|s| s.starts_with("[REDACTED")));
    // A vendor's format says more than a name beside it: equal starts are settled by the order of the stages.
    hits.sort_by_key(|h| h.start);
    let mut kept: Vec<SecretHit> = Vec::with_capacity(hits.len());
    for hit in hits {
        match kept.last_mut() {
            Some(last) if hit.start < last.end => last.end = last.end.max(hit.end),
            _ => kept.push(hit),
        }
    }
    kept
}

/// Every kind that [`find`] can name, sorted.
pub fn kinds() -> Vec<&'static str> {
    let mut kinds: Vec<&'static str> =
        shape::kinds().chain(named::kinds()).chain(structure::KINDS.iter().copied()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// `text` with every secret-shaped string replaced by `[REDACTED:kind]`.
pub fn redact(text: &str) -> String {
    replace(text, |kind| format!("[REDACTED:{kind}]"))
}

/// `text` with every secret-shaped string replaced by what `with` says for its kind.
pub fn replace(text: &str, with: impl Fn(&'static str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for hit in find(text) {
        out.push_str(text.get(at..hit.start).unwrap_or_default());
        out.push_str(&with(hit.kind));
        at = hit.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests;
