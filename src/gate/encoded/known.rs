//! Values that must not leave in any form.

use super::{EncodedHit, Scan, settled};
use crate::gate::secrets::rot13;
use aho_corasick::automaton::Automaton;
use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored, dfa, nfa};
use base64::Engine as _;

/// Canaries, and the keys of the run itself.
///
/// A value is found whole or in part ([`Known::PART`] bytes of it), in any case, with anything that is no letter or digit
/// between its characters, and behind every encoding that the search for secrets reads.
pub struct Known {
    forms: Option<AhoCorasick>,
    names: Vec<&'static str>,
    collapsed: Collapsed,
}

/// The values without what is no letter or digit.
enum Collapsed {
    None,
    Small(dfa::DFA),
    Large(nfa::contiguous::NFA),
    Once(nfa::noncontiguous::NFA),
}

/// Patterns of up to this many bytes are worth a table for each state.
const SMALL: usize = 16 * 1024;

impl Known {
    /// Shortest value that is looked for, in bytes; shorter ones would be found in ordinary text.
    pub const MIN: usize = 8;
    /// Of a longer value, a part of this many bytes is a finding as well.
    pub const PART: usize = 24;
    /// Longest value whose parts are looked for, in bytes; of a longer one, those of its head.
    const PARTED: usize = 4096;

    /// The values, each at least [`Known::MIN`] bytes; shorter ones are left out.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Known {
        Known::build(values, false)
    }

    /// The same values, for one search of a short text: made in a fraction of the time, and slower for each byte.
    pub fn once<'a>(values: impl IntoIterator<Item = &'a str>) -> Known {
        Known::build(values, true)
    }

    fn build<'a>(values: impl IntoIterator<Item = &'a str>, once: bool) -> Known {
        let mut forms: Vec<Vec<u8>> = Vec::new();
        let mut names = Vec::new();
        let mut collapsed: Vec<Vec<u8>> = Vec::new();
        for value in values.into_iter().filter(|v| v.len() >= Known::MIN) {
            let mut add = |form: Vec<u8>, name| {
                if form.len() >= Known::MIN {
                    forms.push(form);
                    names.push(name);
                }
            };
            let bytes = value.as_bytes();
            let rotated = |bytes: &[u8]| bytes.iter().map(|b| rot13(*b)).collect::<Vec<u8>>();
            add(bytes.to_vec(), "plain");
            add(rotated(bytes), "rot13");
            let parted = bytes.get(..bytes.len().min(Known::PARTED)).unwrap_or_default();
            for part in parted.windows(Known::PART).filter(|_| bytes.len() > Known::PART) {
                add(part.to_vec(), "part");
                add(rotated(part), "rot13");
            }
            add(value.chars().rev().collect::<String>().into_bytes(), "reversed");
            // Decoding a run needs its alignment and its length; these forms stand at any place in any run.
            for lead in 0..3usize {
                let mut shifted = vec![0u8; lead];
                shifted.extend_from_slice(bytes);
                let encoded = base64::engine::general_purpose::STANDARD.encode(&shifted).into_bytes();
                // At each alignment the characters in the middle do not depend on the neighbours.
                let (from, to) = ((lead * 4).div_ceil(3), shifted.len() / 3 * 4);
                let middle = encoded.get(from..to.max(from)).unwrap_or_default();
                let url_safe = middle.iter().map(|b| match b {
                    b'+' => b'-',
                    b'/' => b'_',
                    b => *b,
                });
                add(url_safe.collect(), "base64");
                add(middle.to_vec(), "base64");
            }
            add(base58(bytes), "base58");
            for alphabet in [ASCII85, Z85, RFC1924] {
                for lead in 0..4usize {
                    let mut shifted = vec![0u8; lead];
                    shifted.extend_from_slice(bytes);
                    let skip = if lead == 0 { 0 } else { 5 };
                    add(base85(&shifted, alphabet).get(skip..).unwrap_or_default().to_vec(), "base85");
                }
            }
            let plain: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
            if plain.len() >= Known::MIN {
                collapsed.push(plain.bytes().rev().collect());
                collapsed.push(plain.into_bytes());
            }
        }
        let small = |patterns: &[Vec<u8>]| patterns.iter().map(Vec::len).sum::<usize>() <= SMALL;
        let kind = match (once, small(&forms)) {
            (true, _) => AhoCorasickKind::NoncontiguousNFA,
            (false, true) => AhoCorasickKind::DFA,
            (false, false) => AhoCorasickKind::ContiguousNFA,
        };
        let forms = AhoCorasick::builder().ascii_case_insensitive(true).kind(Some(kind)).build(forms).ok();
        let collapsed = if collapsed.is_empty() {
            Some(Collapsed::None)
        } else if once {
            let mut builder = nfa::noncontiguous::NFA::builder();
            builder.ascii_case_insensitive(true).build(&collapsed).ok().map(Collapsed::Once)
        } else if small(&collapsed) {
            dfa::DFA::builder().ascii_case_insensitive(true).build(&collapsed).ok().map(Collapsed::Small)
        } else {
            let mut builder = nfa::contiguous::NFA::builder();
            builder.ascii_case_insensitive(true).build(&collapsed).ok().map(Collapsed::Large)
        };
        // Without one of the automata nothing can be told apart: `forms` that is none says so.
        let (forms, collapsed) = match collapsed {
            Some(collapsed) => (forms, collapsed),
            None => (None, Collapsed::None),
        };
        Known { forms, names, collapsed }
    }

    /// Every place where one of the values stands, in order, without overlaps.
    pub fn find(&self, text: &str) -> Vec<EncodedHit> {
        let scan = Scan::default();
        settled(
            super::search(text, &scan, Some(self)).into_iter().filter(|h| h.kind == "known-value").collect(),
        )
    }

    /// The values in their forms, without decoding anything.
    pub(super) fn find_plain(&self, text: &str) -> Vec<EncodedHit> {
        let mut hits = Vec::new();
        match &self.forms {
            Some(forms) => {
                for m in forms.find_iter(text).filter(|m| !m.is_empty()) {
                    let encoding = self.names.get(m.pattern().as_usize()).copied().unwrap_or("plain");
                    hits.push(EncodedHit { kind: "known-value", encoding, start: m.start(), end: m.end() });
                }
            }
            // Without the automaton nothing can be told apart: the whole text is the finding.
            None => {
                hits.push(EncodedHit { kind: "known-value", encoding: "plain", start: 0, end: text.len() })
            }
        }
        match &self.collapsed {
            Collapsed::Small(automaton) => through(automaton, text.as_bytes(), &mut hits),
            Collapsed::Large(automaton) => through(automaton, text.as_bytes(), &mut hits),
            Collapsed::Once(automaton) => through(automaton, text.as_bytes(), &mut hits),
            Collapsed::None => {}
        }
        settled(hits)
    }
}

/// Runs the automaton over the letters and digits alone.
fn through(automaton: &impl Automaton, bytes: &[u8], hits: &mut Vec<EncodedHit>) {
    let Ok(start) = automaton.start_state(Anchored::No) else { return };
    let mut state = start;
    for (at, b) in bytes.iter().enumerate().filter(|(_, b)| b.is_ascii_alphanumeric()) {
        state = automaton.next_state(Anchored::No, state, *b);
        if automaton.is_special(state) && automaton.is_match(state) {
            let len = automaton.pattern_len(automaton.match_pattern(state, 0));
            let letters = bytes.get(..=at).unwrap_or_default().iter().enumerate().rev();
            let mut letters = letters.filter(|(_, b)| b.is_ascii_alphanumeric());
            let first = letters.nth(len.saturating_sub(1)).map_or(at, |(first, _)| first);
            hits.push(EncodedHit { kind: "known-value", encoding: "separated", start: first, end: at + 1 });
            state = start;
        }
    }
}

const ASCII85: &[u8; 85] =
    b"!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstu";
const Z85: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
const RFC1924: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// The whole groups of four bytes; what is left over depends on what follows.
fn base85(bytes: &[u8], alphabet: &[u8; 85]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() / 4 * 5);
    for group in bytes.chunks_exact(4) {
        let mut value = group.iter().fold(0u32, |n, b| (n << 8) | u32::from(*b));
        let mut digits = [0u8; 5];
        for digit in digits.iter_mut().rev() {
            *digit = alphabet[(value % 85) as usize];
            value /= 85;
        }
        out.extend_from_slice(&digits);
    }
    out
}

/// The value alone, as wallets and short links write it; of the first 256 bytes.
fn base58(bytes: &[u8]) -> Vec<u8> {
    const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let mut digits: Vec<u8> = Vec::new();
    for byte in bytes.iter().take(256) {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += u32::from(*digit) << 8;
            *digit = (carry % 58) as u8;
            carry /= 58;
        }
        while carry > 0 {
            digits.push((carry % 58) as u8);
            carry /= 58;
        }
    }
    digits.iter().rev().map(|d| ALPHABET[*d as usize]).collect()
}
