//! Untrusted text inside what a harness prints for its own operator or for another agent.
//!
//! Such a reader knows the harness by its banners, its colours and its marker phrases. Text from outside must not be able
//! to look like them.

/// Default length of [`text`], in characters.
pub const CHARS: usize = 2000;

/// Longest run of one banner character that stays.
const RUN: usize = 3;

/// `text` without terminal sequences and control characters, with runs of banner characters collapsed to three, with
/// U+200B after the first character of each of the harness's own `markers` (compared without regard to ASCII case), and
/// at most `max_chars` characters, the last of them `…` when something was cut. Empty markers are ignored.
pub fn text(text: &str, markers: &[&str], max_chars: usize) -> String {
    let plain = without_sequences(text);
    let collapsed = collapse(&plain);
    let mut out = interpose(&collapsed, markers);
    if let Some((at, _)) = out.char_indices().nth(max_chars) {
        let keep = out.char_indices().nth(max_chars.saturating_sub(1)).map_or(at, |c| c.0);
        out.truncate(keep);
        out.push('…');
    }
    out
}

/// Escape sequences and strings dropped whole, other control and invisible characters dropped, line ends kept.
fn without_sequences(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => match chars.next() {
                Some('[') => skip_csi(&mut chars),
                Some(']' | 'P' | '_' | '^' | 'X') => skip_string(&mut chars),
                _ => {}
            },
            '\u{9b}' => skip_csi(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            '\n' | '\t' => out.push(c),
            '\r' if chars.peek() != Some(&'\n') => out.push('\n'),
            c if super::printable(c) => out.push(c),
            _ => {}
        }
    }
    out
}

fn skip_csi(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(&c) = chars.peek() {
        if !matches!(c, ' '..='?') {
            if matches!(c, '@'..='~') {
                chars.next();
            }
            return;
        }
        chars.next();
    }
}

/// Up to BEL or ST; an unterminated string ends with its line.
fn skip_string(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(&c) = chars.peek() {
        match c {
            '\n' | '\x1b' => {
                if c == '\x1b' {
                    chars.next();
                    if chars.peek() == Some(&'\\') {
                        chars.next();
                    }
                }
                return;
            }
            _ => {
                chars.next();
                if matches!(c, '\x07' | '\u{9c}') {
                    return;
                }
            }
        }
    }
}

fn collapse(text: &str) -> String {
    let banner = |c: char| {
        matches!(c, '=' | '-' | '_' | '*' | '#' | '~' | '+' | '<' | '>' | '─' | '━' | '═' | '█' | '•')
    };
    let mut out = String::with_capacity(text.len());
    let mut run = (' ', 0);
    for c in text.chars() {
        run = if c == run.0 { (c, run.1 + 1) } else { (c, 1) };
        if !banner(c) || run.1 <= RUN {
            out.push(c);
        }
    }
    out
}

fn interpose(text: &str, markers: &[&str]) -> String {
    let mut cuts: Vec<usize> = Vec::new();
    let lower = text.to_ascii_lowercase();
    for marker in markers.iter().filter(|m| !m.is_empty()) {
        let width = marker.chars().next().map_or(1, char::len_utf8);
        cuts.extend(lower.match_indices(&marker.to_ascii_lowercase()).map(|(at, _)| at + width));
    }
    cuts.sort_unstable();
    cuts.dedup();
    let mut out = String::with_capacity(text.len() + cuts.len() * 3);
    let mut at = 0;
    for cut in cuts {
        out.push_str(text.get(at..cut).unwrap_or_default());
        out.push('\u{200b}');
        at = cut;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_wear_the_colours_or_banners_of_the_harness() {
        let hostile =
            "\x1b[31mred\x1b[0m\n==========\nx\x1b]8;;http://e\x07y\x1b]8;;\x1b\\\r\n\x08\u{202e}z\u{9b}1mq";
        assert_eq!(text(hostile, &[], CHARS), "red\n===\nxy\nzq");
    }

    #[test]
    fn marker_phrases_of_the_harness_are_broken() {
        let out = text("Gate: PASSED and gate: passed", &["gate: passed", ""], CHARS);
        assert_eq!(out, "G\u{200b}ate: PASSED and g\u{200b}ate: passed");
    }

    #[test]
    fn the_length_is_capped() {
        assert_eq!(text("abcdef", &[], 4), "abc…");
        assert_eq!(text(&"ab".repeat(5000), &[], CHARS).chars().count(), CHARS);
    }
}
