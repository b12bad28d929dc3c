//! Untrusted text towards a person, a log, a report or a file name.
//!
//! | towards | function |
//! |---|---|
//! | a terminal, a log, an error message | [`for_terminal`], [`terminal`], [`escape`] |
//! | a Markdown report | [`report::string`], [`report::code`] |
//! | a harness or another agent's prompt that reads our output | [`harness::text`] |
//! | a file name | [`name::component`] |
//!
//! What is printed goes through [`out`] besides, whatever its call site did.

pub mod harness;
pub mod name;
pub(crate) mod out;
pub mod report;

use crate::untrusted::Untrusted;
use std::fmt::Write as _;
use std::sync::LazyLock;

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
        if printable(c) {
            out.push(c);
        } else if (c as u32) < 0x100 {
            let _ = write!(out, "\\x{:02x}", c as u32);
        } else {
            let _ = write!(out, "\\u{{{:x}}}", c as u32);
        }
    }
    out
}

/// `text` with every character that is not printable escaped as `\xHH`, `\uHHHH` or `\UHHHHHHHH` (lower-case digits);
/// with `keep_newlines`, line feed and tab stay. Linear in the input.
///
/// Printable is every character but those of the Unicode categories Cc, Cf, Cn, Co, Cs, Zl, Zp and Zs, and the space.
pub fn escape(text: &str, keep_newlines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if printable(c) || (keep_newlines && matches!(c, '\n' | '\t')) {
            out.push(c);
        } else {
            push_escape(&mut out, c);
        }
    }
    out
}

fn push_escape(out: &mut String, c: char) {
    let _ = match c as u32 {
        n @ ..0x100 => write!(out, "\\x{n:02x}"),
        n @ ..0x10000 => write!(out, "\\u{n:04x}"),
        n => write!(out, "\\U{n:08x}"),
    };
}

/// A path for a message: on one line, escaped, cut at 512 characters.
pub fn path(path: impl AsRef<std::path::Path>) -> String {
    for_terminal(&Untrusted::new(path.as_ref().to_string_lossy()), 512)
}

/// Does `text` hold a character that [`escape`] would escape?
pub fn has_nonprintable(text: &str) -> bool {
    !text.chars().all(printable)
}

/// `text` escaped, then cut at `max_len` characters; what was cut is counted: `...[+N chars]`.
pub fn terminal(text: &str, max_len: usize) -> String {
    let escaped = escape(text, false);
    match escaped.char_indices().nth(max_len) {
        None => escaped,
        Some((at, _)) => {
            let (kept, cut) = escaped.split_at_checked(at).unwrap_or((&escaped, ""));
            format!("{kept}...[+{} chars]", cut.chars().count())
        }
    }
}

/// Shows as itself, on its own line position, and does nothing else.
pub(crate) fn printable(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    let n = c as u32;
    let ranges = NOT_PRINTABLE.as_slice();
    let at = ranges.partition_point(|r| r.1 < n);
    ranges.get(at).is_none_or(|r| n < r.0)
}

/// Sorted ranges of the categories that do not print, from the Unicode tables of `regex-syntax`.
static NOT_PRINTABLE: LazyLock<Vec<(u32, u32)>> = LazyLock::new(|| {
    let class = regex_syntax::parse(r"[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Zl}\p{Zp}\p{Zs}]");
    match class.map(regex_syntax::hir::Hir::into_kind) {
        Ok(regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class))) => {
            class.iter().map(|r| (r.start() as u32, r.end() as u32)).collect()
        }
        // Without the tables nothing beyond ASCII is known to print.
        _ => vec![(0x80, 0x10_FFFF)],
    }
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_never_reach_the_terminal() {
        let hostile = Untrusted::new("a\x1b]8;;http://x\x07b\r\nc\u{202e}d\u{9b}e");
        assert_eq!(for_terminal(&hostile, 100), "a\\x1b]8;;http://x\\x07b\\x0d\\x0ac\\u{202e}d\\x9be");
    }

    #[test]
    fn a_path_is_one_line_that_does_nothing() {
        use std::os::unix::ffi::OsStrExt;
        let hostile = std::ffi::OsStr::from_bytes(b"a\nb\x1b]0;x\x07\xff\xc2\x9b/c d");
        assert_eq!(path(hostile), "a\\x0ab\\x1b]0;x\\x07\u{fffd}\\x9b/c d");
        assert!(path("x".repeat(5000)).len() < 600);
    }

    #[test]
    fn long_text_is_cut_and_says_by_how_much() {
        assert_eq!(for_terminal(&Untrusted::new("abcdef"), 4), "abcd…[+2 chars]");
        assert_eq!(terminal("ab\x1bcd", 4), "ab\\x...[+4 chars]");
        assert_eq!(terminal("abcd", 4), "abcd");
    }

    #[test]
    fn what_does_not_print_is_escaped_and_letters_of_every_script_stay() {
        assert_eq!(
            escape("\r\n\t\x7f\u{85}\u{a0}\u{2028}\u{3000}\u{e0041}\u{e000}\u{378}", false),
            "\\x0d\\x0a\\x09\\x7f\\x85\\xa0\\u2028\\u3000\\U000e0041\\ue000\\u0378"
        );
        assert_eq!(escape("a\nb\tc\r", true), "a\nb\tc\\x0d");
        for text in ["café", "日本語", "עברית", "👍🏽", "❤️", "a b~"] {
            assert_eq!(escape(text, false), text);
            assert!(!has_nonprintable(text));
        }
        assert!(has_nonprintable("a\n"));
        assert_eq!(
            escape("\x1b]52;c;QQ==\x07\x1bP1$r\x1b\\\u{90}\u{9d}8;;x\u{9c}", false),
            "\\x1b]52;c;QQ==\\x07\\x1bP1$r\\x1b\\\\x90\\x9d8;;x\\x9c"
        );
    }
}
