//! Secret-shaped strings: found and replaced, never shown.
//!
//! | stage | module | what |
//! |---|---|---|
//! | vendor formats | [`table`] | a literal that starts the token, then runs of known alphabets and lengths |
//! | named values | [`named`], read by [`value`] | a vendor's or a generic name, a separator, and a value of the right shape |
//! | structures | [`forms`], read by [`structure`] | PEM keys, JWT, URLs with userinfo, authorisation headers, chat-hook URLs |
//!
//! Time is linear: one pass finds every literal ([`anchors`]), and what is read behind one is bounded, or read once.

mod anchors;
pub mod fingerprint;
mod forms;
mod named;
mod shape;
mod structure;
mod table;
mod value;

pub use fingerprint::Fingerprinter;

use anchors::Owner;
use shape::{Runs, Source};

/// How a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// As it stands.
    Forward,
    /// Backwards.
    Mirrored,
    /// With each letter thirteen places on.
    Rotated,
}

pub(super) fn rot13(b: u8) -> u8 {
    match b {
        b'a'..=b'm' | b'A'..=b'M' => b + 13,
        b'n'..=b'z' | b'N'..=b'Z' => b - 13,
        b => b,
    }
}

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
    scan(text, true, false).hits
}

/// [`find`] for text that comes out of a decoder: formats and structures, without values that only a name marks.
pub(super) fn find_formats(text: &str) -> Vec<SecretHit> {
    scan(text, false, false).hits
}

/// What one pass over a text finds.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// In order, without overlaps.
    pub hits: Vec<SecretHit>,
    /// Formats and structures that only another reading shows, in no order.
    pub hidden: Vec<(Reading, SecretHit)>,
    /// Vendors' formats that white space splits, in no order.
    pub split: Vec<SecretHit>,
}

/// One pass over `text`: with `names`, values that only a name marks; with `hidden`, the other readings and what white
/// space splits.
pub(super) fn scan(text: &str, names: bool, hidden: bool) -> Scan {
    let bytes = text.as_bytes();
    let mut found = Scan::default();
    let mut named = named::Reader::default();
    let mut structures = structure::Reader::new();
    let mut runs = Runs::default();
    // What a format has taken is not looked at again for the same format.
    let mut taken = vec![0usize; shape::formats().len()];
    let mut windows = [Vec::<(usize, usize)>::new(), Vec::new()];
    let mut beside = Vec::new();
    anchors::each(bytes, hidden, |anchor| match (anchor.owner, anchor.reading) {
        (Owner::Name(index), _) => {
            if names {
                beside.extend(named.at(bytes, index, anchor.start, anchor.end));
            }
        }
        (Owner::Shape(index), Reading::Forward) => {
            structures.at(bytes, index, anchor.start, anchor.end, &mut found.hits);
        }
        (Owner::Shape(index), reading) => {
            let source = Source::new(bytes, reading, anchor.start, anchor.end);
            let window = structure::hidden_window(&source, index, anchor.start, anchor.end, bytes.len());
            let list = windows.get_mut(usize::from(reading == Reading::Rotated));
            if let (Some(window), Some(list)) = (window, list) {
                match list.last_mut() {
                    Some(last) if window.0 <= last.1 => last.1 = last.1.max(window.1),
                    _ => list.push(window),
                }
            }
        }
        (Owner::Format(index), reading) => {
            let Some((kind, parts)) = shape::formats().get(index) else { return };
            let source = Source::new(bytes, reading, anchor.start, anchor.end);
            let forward = reading == Reading::Forward;
            let done = taken.get(index).is_some_and(|taken| forward && anchor.start < *taken);
            if done {
                return;
            }
            if let Some(len) = shape::match_at(&source, parts, &mut runs) {
                let (start, end) = source.span(len);
                let hit = SecretHit { kind, start, end };
                if forward {
                    if let Some(taken) = taken.get_mut(index) {
                        *taken = end;
                    }
                    found.hits.push(hit);
                } else {
                    found.hidden.push((reading, hit));
                }
            } else if forward && hidden {
                let end = shape::joined(bytes, anchor.start, parts);
                found.split.extend(end.map(|end| SecretHit { kind, start: anchor.start, end }));
            }
        }
    });
    structures.finish(text, &mut found.hits);
    found.hits.append(&mut beside);
    found.hits = settled(text, std::mem::take(&mut found.hits));
    for (list, reading) in windows.iter().zip([Reading::Mirrored, Reading::Rotated]) {
        for &window in list {
            hidden_structures(text, window, reading, &mut found.hidden);
        }
    }
    found
}

/// The structures that another reading of a part of the text shows.
fn hidden_structures(
    text: &str,
    window: (usize, usize),
    reading: Reading,
    hits: &mut Vec<(Reading, SecretHit)>,
) {
    let (from, to) = (text.floor_char_boundary(window.0), text.ceil_char_boundary(window.1));
    let Some(part) = text.get(from..to) else { return };
    let read: String = match reading {
        Reading::Mirrored => part.chars().rev().collect(),
        _ => part.chars().map(|c| if c.is_ascii() { char::from(rot13(c as u8)) } else { c }).collect(),
    };
    for hit in find_formats(&read) {
        if hit.kind.starts_with("url-") {
            continue;
        }
        let (start, end) = match reading {
            Reading::Mirrored => (to - hit.end, to - hit.start),
            _ => (from + hit.start, from + hit.end),
        };
        hits.push((reading, SecretHit { start, end, ..hit }));
    }
}

fn settled(text: &str, mut hits: Vec<SecretHit>) -> Vec<SecretHit> {
    // The keys of Amazon's documentation all end alike.
    let shown = |h: &SecretHit, s: &str| h.kind.starts_with("aws-") && s.ends_with("EXAMPLE");
    hits.retain(|h| text.get(h.start..h.end).is_some_and(|s| !s.starts_with("[REDACTED") && !shown(h, s)));
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
        shape::kinds().chain(named::kinds()).chain(structure::kinds()).collect();
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
