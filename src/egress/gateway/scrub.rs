//! Takes secrets out of a byte stream, in the encodings that an echo would have.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

/// What stands in place of a secret.
pub(in crate::egress) const REDACTED: &[u8] = b"[redacted by jess]";

/// Finds secrets: as they are, in base64 at every alignment, in hexadecimal, reversed, and as JSON strings and URLs
/// escape them.
pub(in crate::egress) struct Scrubber {
    needles: Vec<Zeroizing<Vec<u8>>>,
}

impl std::fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scrubber(…)")
    }
}

impl Scrubber {
    pub(in crate::egress) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Scrubber {
        let mut needles: Vec<Zeroizing<Vec<u8>>> = Vec::new();
        let mut add = |needle: Vec<u8>| {
            let needle = Zeroizing::new(needle);
            if needle.len() >= 8 && !needles.contains(&needle) {
                needles.push(needle);
            }
        };
        for secret in secrets {
            let bytes = secret.as_bytes();
            add(bytes.to_vec());
            add(bytes.iter().rev().copied().collect());
            add(bytes.iter().flat_map(|b| format!("{b:02x}").into_bytes()).collect());
            add(bytes.iter().flat_map(|b| format!("{b:02X}").into_bytes()).collect());
            for escaped in escapes(secret) {
                add(escaped.into_bytes());
            }
            for skip in 0..3 {
                // With `skip` leading bytes gone, the rest starts on an alphabet boundary at each alignment; the last,
                // incomplete group depends on what follows and is left out.
                let Some(rest) = bytes.get(skip..) else { continue };
                let whole = rest.get(..rest.len() / 3 * 3).unwrap_or_default();
                add(STANDARD_NO_PAD.encode(whole).into_bytes());
                add(URL_SAFE_NO_PAD.encode(whole).into_bytes());
            }
        }
        Scrubber { needles }
    }

    /// Whether any of the secrets is in `bytes`.
    pub(in crate::egress) fn finds(&self, bytes: &[u8]) -> bool {
        self.needles.iter().any(|needle| bytes.windows(needle.len()).any(|w| w == needle.as_slice()))
    }

    /// A stream to scrub.
    pub(in crate::egress) fn stream(&self) -> Scrubbing<'_> {
        Scrubbing { scrubber: self, held: Zeroizing::default(), found: 0 }
    }
}

/// How JSON strings and URLs may write a secret that has other characters than letters, digits, `-`, `_` and `.`.
fn escapes(secret: &str) -> Vec<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if secret.chars().all(plain) {
        return Vec::new();
    }
    let with = |one: &dyn Fn(char) -> String| -> String {
        secret.chars().map(|c| if plain(c) { c.to_string() } else { one(c) }).collect()
    };
    let code = |c: char| u32::from(c);
    vec![
        secret.replace('/', "\\/"),
        with(&|c| format!("\\u{:04x}", code(c))),
        with(&|c| format!("\\u{:04X}", code(c))),
        with(&|c| format!("%{:02x}", code(c))),
        with(&|c| format!("%{:02X}", code(c))),
        with(&|c| if c == ' ' { "+".to_owned() } else { format!("%{:02X}", code(c)) }),
    ]
}

/// The state of one stream: what is held back because a secret could start in it. Never more than the longest secret.
pub(in crate::egress) struct Scrubbing<'s> {
    scrubber: &'s Scrubber,
    held: Zeroizing<Vec<u8>>,
    /// Secrets that were taken out.
    pub found: u64,
}

impl Scrubbing<'_> {
    /// Takes the next bytes and returns those that are safe to pass on.
    pub(in crate::egress) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut buf = std::mem::take(&mut self.held);
        buf.extend_from_slice(bytes);
        let (mut out, mut from, mut at) = (Vec::with_capacity(buf.len()), 0, 0);
        while let Some(rest) = buf.get(at..).filter(|rest| !rest.is_empty()) {
            if let Some(needle) = self.scrubber.needles.iter().find(|n| rest.starts_with(n)) {
                out.extend_from_slice(buf.get(from..at).unwrap_or_default());
                out.extend_from_slice(REDACTED);
                self.found += 1;
                at += needle.len();
                from = at;
            } else if self.scrubber.needles.iter().any(|n| n.starts_with(rest)) {
                break;
            } else {
                at += 1;
            }
        }
        out.extend_from_slice(buf.get(from..at).unwrap_or_default());
        self.held = Zeroizing::new(buf.get(at..).unwrap_or_default().to_vec());
        out
    }

    /// The stream has ended: what was held back is the beginning of nothing.
    pub(in crate::egress) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut *self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &str = "sk-ant-api03-Zq7vX2mB9pLk4RtY8wNc";

    fn scrub(chunks: &[&[u8]]) -> Vec<u8> {
        let scrubber = Scrubber::new([KEY]);
        let mut stream = scrubber.stream();
        let mut out: Vec<u8> = chunks.iter().flat_map(|c| stream.push(c)).collect();
        out.extend(stream.finish());
        out
    }

    #[test]
    fn the_key_is_taken_out_in_each_encoding() {
        let hex: String = KEY.bytes().map(|b| format!("{b:02x}")).collect();
        let mut forms = vec![KEY.to_owned(), hex.to_uppercase(), hex, KEY.chars().rev().collect()];
        for lead in ["", "a", "ab", "abc"] {
            forms.push(base64::engine::general_purpose::STANDARD.encode(format!("{lead}{KEY} tail")));
            forms.push(base64::engine::general_purpose::URL_SAFE.encode(format!("{lead}{KEY} tail")));
        }
        for form in forms {
            let out = scrub(&[b"before ", form.as_bytes(), b" after"]);
            let out = String::from_utf8(out).unwrap();
            assert!(out.contains("[redacted by jess]"), "{form}");
            assert!(out.starts_with("before ") && out.ends_with(" after"), "{out}");
        }
    }

    #[test]
    fn a_key_with_other_characters_is_found_escaped() {
        let scrubber = Scrubber::new(["abc/def+ghi="]);
        for form in
            ["abc\\/def+ghi=", "abc\\u002fdef\\u002bghi\\u003d", "abc%2Fdef%2Bghi%3D", "abc%2fdef%2bghi%3d"]
        {
            assert!(scrubber.finds(format!("x {form} y").as_bytes()), "{form}");
        }
    }

    proptest! {
        #[test]
        fn the_key_never_passes_however_the_stream_is_cut(
            before in "[a-z\\-sk]{0,40}", after in "[a-z\\-]{0,40}", cuts in proptest::collection::vec(0usize..120, 0..12)
        ) {
            let text = format!("{before}{KEY}{after}");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &text.as_bytes()[w[0]..w[1]]).collect();
            let out = String::from_utf8(scrub(&chunks)).unwrap();
            prop_assert_eq!(out, format!("{before}[redacted by jess]{after}"));
        }

        #[test]
        fn other_text_passes_unchanged(chunks in proptest::collection::vec("[sk\\-antpi03 ]{0,30}", 0..10)) {
            let bytes: Vec<&[u8]> = chunks.iter().map(|c| c.as_bytes()).collect();
            prop_assert_eq!(scrub(&bytes), chunks.concat().into_bytes());
        }
    }
}
