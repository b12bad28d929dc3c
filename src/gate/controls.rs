//! Control characters that act on the terminal of whoever reads a document: they move, erase, ask the terminal to type an
//! answer, set its title, switch it over.

use crate::bits::Finder;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Parameters that are looked through for the letter that ends a sequence.
const MAX_PARAMETERS: usize = 64;

/// First bytes of what could act: C0 but tab, line ends and form feed; DEL; the lead byte of C1.
#[inline(always)]
fn candidate(b: u8) -> bool {
    ((b < 0x20) & (b != b'\t') & (b != b'\n') & (b != b'\r') & (b != 0x0c)) | (b == 0x7f) | (b == 0xc2)
}

/// Offsets of control characters that act, in order. Colours, and erasing to the end of the line as progress bars do, are
/// left alone: `ESC [ … m` and `ESC [ … K`. Linear in the text.
pub(super) fn find(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let mut marks = Finder::new(bytes, candidate);
    let mut from = 0;
    std::iter::from_fn(move || {
        while let Some(at) = marks.next(from) {
            let rest = bytes.get(at..).unwrap_or_default();
            let (len, acts) = match rest {
                [0xc2, 0x80..=0x9f, ..] => (2, true),
                [0xc2, ..] => (1, false),
                [0x1b, b'[', sequence @ ..] => match harmless(sequence) {
                    Some(len) => (2 + len, false),
                    None => (1, true),
                },
                _ => (1, true),
            };
            from = at + len;
            if acts {
                return Some(at);
            }
        }
        None
    })
}

/// The length of the parameters and the final letter of a sequence that only colours or erases to the end of the line.
fn harmless(sequence: &[u8]) -> Option<usize> {
    let parameter = |b: &&u8| b.is_ascii_digit() || matches!(b, b';' | b':');
    let len = sequence.iter().take(MAX_PARAMETERS).take_while(parameter).count();
    matches!(sequence.get(len), Some(b'm' | b'K')).then_some(len + 1)
}

/// `text` with each of them written out, as `\x1b`; borrowed when there is none.
pub(super) fn written_out(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut out: Option<String> = None;
    let mut copied = 0;
    for at in find(&text) {
        let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) else { continue };
        let out = out.get_or_insert_with(|| String::with_capacity(text.len() + text.len() / 8));
        out.push_str(text.get(copied..at).unwrap_or_default());
        let _ = write!(out, "\\x{:02x}", u32::from(c));
        copied = at + c.len_utf8();
    }
    match out {
        None => text,
        Some(mut out) => {
            out.push_str(text.get(copied..).unwrap_or_default());
            Cow::Owned(out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_found_and_written_out() {
        for (text, clean) in [
            ("a\x1b]0;t\x07b", "a\\x1b]0;t\\x07b"),
            ("\x1b[21t", "\\x1b[21t"),
            ("\x1b[6n\x1b[>c\x05", "\\x1b[6n\\x1b[>c\\x05"),
            ("\x1bc\x1b[?1049h\x1b[2J\x1b[5i", "\\x1bc\\x1b[?1049h\\x1b[2J\\x1b[5i"),
            ("\u{9b}31m\u{90}x\u{9c}", "\\x9b31m\\x90x\\x9c"),
            ("a\x08b\x7f\0", "a\\x08b\\x7f\\x00"),
            ("\x1b[1\x1bm", "\\x1b[1\\x1bm"),
            ("\x1b[", "\\x1b["),
        ] {
            assert!(find(text).next().is_some(), "{text:?}");
            let written = written_out(Cow::Borrowed(text));
            assert_eq!(written, clean);
            assert!(find(&written).next().is_none(), "{written:?}");
        }
    }

    #[test]
    fn colours_and_the_white_space_of_text_stay() {
        for text in [
            "a\tb\r\n\x0c",
            "\x1b[1;31merror\x1b[0m",
            "\x1b[38:2:1:2:3mx\x1b[m",
            "50 %\r\x1b[K100 %",
            "café £ Â",
            "日本語",
        ] {
            assert!(find(text).next().is_none(), "{text:?}");
            assert!(matches!(written_out(Cow::Borrowed(text)), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn parameters_without_an_end_cost_no_more_than_their_length() {
        let flood = "\x1b[1;".repeat(100_000) + &format!("\x1b[{}m", "1;".repeat(MAX_PARAMETERS));
        assert_eq!(find(&flood).count(), 100_001);
    }
}
