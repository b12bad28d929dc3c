//! Model output towards a Markdown report.

use crate::envelope;

/// Default length of [`string`], in characters.
pub const STRING_CHARS: usize = 500;
/// Default length of [`code`], in characters.
pub const CODE_CHARS: usize = 10_000;

/// `text` fit to stand in a Markdown report: fetching markup out, characters that start a heading, list rule, quote,
/// table or emphasis at the start of a line out, non-printables escaped, at most `max_chars` characters (the last is `…`
/// when something was cut). Bare URLs, lists and markup within a line stay.
pub fn string(text: &str, max_chars: usize) -> String {
    let (text, _) = envelope::redact_autofetch(text);
    let mut out = String::with_capacity(text.len());
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            out.push('\n');
        }
        if is_rule(line) {
            continue;
        }
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        let (lead, body) = line.split_at_checked(indent).unwrap_or(("", line));
        out.push_str(lead);
        out.push_str(body.trim_start_matches(['`', '*', '_', '#', '|', '>']));
    }
    cap(super::escape(&out, true), max_chars)
}

/// A line that underlines a heading, rules off or delimits a table.
fn is_rule(line: &str) -> bool {
    let line = line.strip_suffix('\r').unwrap_or(line);
    line.contains(['-', '=']) && line.chars().all(|c| matches!(c, ' ' | '\t' | '|' | ':' | '-' | '='))
}

/// `text` fit for a fenced code block: non-printables escaped, runs of three or more backticks broken by U+200B, at most
/// `max_chars` characters.
pub fn code(text: &str, max_chars: usize) -> String {
    let escaped = super::escape(text, true);
    let mut out = String::with_capacity(escaped.len());
    let mut rest = escaped.as_str();
    while let Some(at) = rest.find("```") {
        let run = rest.get(at..).unwrap_or_default().bytes().take_while(|b| *b == b'`').count();
        out.push_str(rest.get(..at + 2).unwrap_or_default());
        out.push('\u{200b}');
        // A run of any length is left in pieces of two.
        let mut left = run - 2;
        while left > 2 {
            out.push_str("``\u{200b}");
            left -= 2;
        }
        out.push_str("``".get(..left).unwrap_or_default());
        rest = rest.get(at + run..).unwrap_or_default();
    }
    out.push_str(rest);
    cap(out, max_chars)
}

fn cap(text: String, max_chars: usize) -> String {
    if text.chars().nth(max_chars).is_none() {
        return text;
    }
    let mut out: String = text.chars().take(max_chars.saturating_sub(1)).collect();
    if max_chars > 0 {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_markup_is_defanged_and_markup_within_a_line_stays() {
        let text = "# T\n  > q\n|a|b|\n|-|-|\n===\n- item\n1. one\na *b* # c\n**bold** x";
        assert_eq!(string(text, 500), " T\n   q\na|b|\n\n\n- item\n1. one\na *b* # c\nbold** x");
        assert_eq!(string("#\u{200d}# x", 500), " x");
    }

    #[test]
    fn fetching_markup_is_gone_from_reports() {
        for text in [
            "<image x=1>",
            "<input src=//e>",
            "<frame src=//e>",
            "<track src=//e>",
            "<a/href=//e>",
            "<p style='a:url(//e)'>",
        ] {
            let clean = string(text, 500);
            assert!(
                clean.contains("REDACTED-AUTOFETCH-MARKUP") && !clean.contains("//e"),
                "{text} -> {clean}"
            );
        }
        assert_eq!(string("<b>x</b> https://example.org", 500), "<b>x</b> https://example.org");
    }

    #[test]
    fn the_cap_counts_the_ellipsis() {
        assert_eq!(string("abcdef", 4), "abc…");
        assert_eq!(string("abcd", 4), "abcd");
        assert_eq!(string(&"x".repeat(600), STRING_CHARS).chars().count(), 500);
    }

    #[test]
    fn code_keeps_code_and_cannot_close_its_fence() {
        assert_eq!(code("#include <x>\n*ptr = 1;\x1b", 100), "#include <x>\n*ptr = 1;\\x1b");
        assert_eq!(code("```", 100), "``\u{200b}`");
        for n in 3..12 {
            let fenced = code(&"`".repeat(n), 100);
            assert!(!fenced.contains("```"), "{n}");
            assert_eq!(fenced.matches('`').count(), n);
        }
    }
}
