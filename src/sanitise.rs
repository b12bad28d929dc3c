//! Untrusted text towards a person: terminals, logs, error messages.

use crate::untrusted::Untrusted;
use std::fmt::Write as _;

/// `text` with everything that is not printable escaped, cut to `max_chars` characters (then `…[+N chars]`).
///
/// Control characters (C0, C1, DEL), bidirectional and zero-width controls, line and paragraph separators, tags and
/// private-use characters become `\xHH` or `\u{…}`. Linear in the input.
pub fn for_terminal(text: &Untrusted<impl AsRef<str>>, max_chars: usize) -> String {
    let text = text.inspect().as_ref();
    let mut out = String::with_capacity(text.len().min(max_chars.saturating_mul(4)));
    let mut chars = text.chars();
    for (n, c) in chars.by_ref().enumerate() {
        if n == max_chars {
            let _ = write!(out, "…[+{} chars]", chars.count() + 1);
            break;
        }
        push_escaped(&mut out, c);
    }
    out
}

/// `text` with every character that is not printable escaped as `\xHH`, `\uHHHH` or `\UHHHHHHHH`; with
/// `keep_newlines`, line feed and tab stay.
pub fn escape(text: &str, keep_newlines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' if keep_newlines => out.push(c),
            c if !is_unsafe(c) => out.push(c),
            c => {
                let _ = match c as u32 {
                    n @ ..0x100 => write!(out, "\\x{n:02x}"),
                    n @ ..0x10000 => write!(out, "\\u{n:04x}"),
                    n => write!(out, "\\U{n:08x}"),
                };
            }
        }
    }
    out
}

fn push_escaped(out: &mut String, c: char) {
    match c {
        c if is_unsafe(c) && (c as u32) < 0x100 => {
            let _ = write!(out, "\\x{:02x}", c as u32);
        }
        c if is_unsafe(c) => {
            let _ = write!(out, "\\u{{{:x}}}", c as u32);
        }
        c => out.push(c),
    }
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c as u32,
            0xAD | 0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F
            | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0
            | 0xFFF0..=0xFFFB | 0xE000..=0xF8FF | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A
            | 0xE0000..=0xE0FFF | 0xF0000..=0x10FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_never_reach_the_terminal() {
        let hostile = Untrusted::new("a\x1b]8;;http://x\x07b\r\nc\u{202e}d\u{9b}e");
        assert_eq!(for_terminal(&hostile, 100), "a\\x1b]8;;http://x\\x07b\\x0d\\x0ac\\u{202e}d\\x9be");
    }

    #[test]
    fn long_text_is_cut_and_says_by_how_much() {
        assert_eq!(for_terminal(&Untrusted::new("abcdef"), 4), "abcd…[+2 chars]");
    }
}
