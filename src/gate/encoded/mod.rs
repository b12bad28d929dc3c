//! Secrets behind an encoding, and values known to be secret, in any form.
//!
//! The text is read through decoders ([`view`]): base64, base32, hexadecimal and other character codes, URL and string
//! escapes, character references, quoted-printable, compressed data, reversed, ROT13, look-alike and invisible characters,
//! taken apart character by character, split by white space, tags or colours, or glued from string literals; three of
//! them on top of each other. Each is one pass, so time stays linear.

mod known;
mod view;

pub use known::Known;

use super::secrets::{self, Reading, Scan, SecretHit};
use view::View;

/// A hit in an encoded view; offsets are those of the encoded form in the original text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedHit {
    /// The kind of the secret, `known-value`, or `unread` for compressed data that is too large to look at.
    pub kind: &'static str,
    /// `plain`, or the outermost encoding, for example `base64`.
    pub encoding: &'static str,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl EncodedHit {
    /// `secret:kind`, with the encoding where there is one.
    pub fn label(&self) -> String {
        match self.encoding {
            "plain" => format!("secret:{}", self.kind),
            encoding => format!("secret:{} ({encoding})", self.kind),
        }
    }
}

/// Every secret of [`secrets::find`] that is hidden by encodings, in order, without overlaps.
pub fn find(text: &str) -> Vec<EncodedHit> {
    settled(search(text, &secrets::scan(text, false, true), None))
}

/// What [`find`] and the search for known values see, in no order; `scan` is that of `text`, with what is hidden.
pub(super) fn search(text: &str, scan: &Scan, known: Option<&Known>) -> Vec<EncodedHit> {
    let mut hits = known.map(|k| k.find_plain(text)).unwrap_or_default();
    let mut found = hidden(text, scan, true);
    walk(text, 0, known, &mut found);
    hits.extend(found.into_iter().map(|mut hit| {
        hit.start = text.floor_char_boundary(hit.start);
        hit.end = text.ceil_char_boundary(hit.end.max(hit.start + 1));
        hit
    }));
    hits
}

/// Looks into every view of `text`; offsets are those of `text`.
fn walk(text: &str, depth: usize, known: Option<&Known>, hits: &mut Vec<EncodedHit>) {
    for view in view::views(text, depth == 0) {
        let mut inner = secrets_in(&view);
        // The reversed form is a form of its own.
        if let Some(known) = known.filter(|_| view.encoding != "reversed") {
            inner.extend(known.find_plain(&view.text));
        }
        if view.nested && depth + 1 < view::DEPTH {
            walk(&view.text, depth + 1, known, &mut inner);
        }
        for hit in inner {
            let (start, end) = view.source(hit.start, hit.end);
            // In a view that copies most of the text, what stands there as it is belongs to the plain search.
            let decoded = !view.exact || view.encoding == "reversed" || end - start != hit.end - hit.start;
            if decoded {
                hits.push(EncodedHit { encoding: view.encoding, start, end, ..hit });
            }
        }
        hits.extend(view.unread.iter().map(|&(start, end)| EncodedHit {
            kind: "unread",
            encoding: view.encoding,
            start,
            end,
        }));
    }
}

/// The secrets of a view that are no accident of its decoding.
fn secrets_in(view: &View) -> Vec<EncodedHit> {
    // What a decoder makes of ordinary text has no names beside values. What is glued or taken apart may: there it is
    // code that stands around.
    let names = !matches!(view.encoding, "reversed" | "separated" | "broken");
    let scan = secrets::scan(&view.text, names, view.encoding != "reversed");
    let mut found = hidden(&view.text, &scan, false);
    let urls = !matches!(view.encoding, "reversed" | "broken");
    let plain = scan.hits.iter().filter(|h| urls || !h.kind.starts_with("url-"));
    found.extend(plain.map(|h| EncodedHit {
        kind: h.kind,
        encoding: view.encoding,
        start: h.start,
        end: h.end,
    }));
    found
}

/// What another reading of a text shows, or white space split. In a text that is itself decoded, and where a reading is
/// common in words, only what a generator wrote counts.
fn hidden(text: &str, scan: &Scan, top: bool) -> Vec<EncodedHit> {
    let generated = |h: &SecretHit| text.get(h.start..h.end).is_some_and(random);
    let other =
        scan.hidden.iter().filter(|(reading, h)| (top && *reading == Reading::Mirrored) || generated(h));
    let other =
        other.map(|(reading, h)| (if *reading == Reading::Mirrored { "reversed" } else { "rot13" }, h));
    let split = scan.split.iter().filter(|h| generated(h)).map(|h| ("split", h));
    other
        .chain(split)
        .map(|(encoding, h)| EncodedHit { kind: h.kind, encoding, start: h.start, end: h.end })
        .collect()
}

/// Letters of both cases and digits mixed as only a generator mixes them.
fn random(token: &str) -> bool {
    let count = |is: fn(&u8) -> bool| token.as_bytes().iter().filter(|b| is(b)).count();
    let digits = count(u8::is_ascii_digit);
    let (upper, lower) = (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    token.len() >= 20
        && upper + lower >= 6
        && ((digits >= 4 && digits * 8 >= token.len()) || (digits >= 1 && upper >= 4 && lower >= 4))
}

/// In order, without overlaps.
fn settled(mut hits: Vec<EncodedHit>) -> Vec<EncodedHit> {
    hits.sort_by_key(|h| h.start);
    let mut kept: Vec<EncodedHit> = Vec::with_capacity(hits.len());
    for hit in hits {
        match kept.last_mut() {
            Some(last) if hit.start < last.end => last.end = last.end.max(hit.end),
            _ => kept.push(hit),
        }
    }
    kept
}

#[cfg(test)]
mod tests;
