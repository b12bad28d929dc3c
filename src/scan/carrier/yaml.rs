//! YAML: scalars that are folded, escaped or indented, of whole files and of front matter.
//!
//! The parser can hold some two hundred times a piece while it looks for the end of a key, so a long document goes
//! through in pieces that begin at a line without indentation.

use super::stitch::Stitch;
use crate::scan::decode::View;
use saphyr_parser::{Event, Parser, ScalarStyle};

/// Bytes of a document that are parsed at once.
const PIECE: usize = 32 * 1024;
/// Events of one piece that are read.
const EVENTS: usize = 100_000;

/// Whether a text with this extension and head is YAML.
pub(super) fn is(extension: &str, head: &str) -> bool {
    if matches!(extension, "yml" | "yaml") {
        return true;
    }
    if !extension.is_empty() || head.starts_with("---\n") {
        return false;
    }
    let lines: Vec<&str> = head.lines().filter(|l| !l.trim().is_empty()).take(12).collect();
    let pair = |l: &&&str| {
        let key = l.trim_start().trim_start_matches("- ");
        key.split_once(':').is_some_and(|(k, v)| {
            let key = k.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '"'));
            !k.is_empty() && key && (v.is_empty() || v.starts_with(' '))
        })
    };
    let pairs = lines.iter().filter(pair).count();
    pairs >= 1 && lines.first().is_some_and(|l| pair(&l)) && pairs * 3 >= lines.len()
}

/// The view of the scalars in `text`.
pub(super) fn views(text: &str, out: &mut Vec<View>) {
    let mut stitch = Stitch::default();
    let mut from = 0;
    while from < text.len() {
        let end = cut(text, from);
        scalars(text, from, end, &mut stitch);
        from = end;
    }
    out.extend(stitch.view("yaml scalar"));
}

/// The view of the scalars in front matter between `---` and `---`.
pub(super) fn front_matter(text: &str, out: &mut Vec<View>) {
    let Some((from, end)) = fenced(text, "---") else { return };
    let mut stitch = Stitch::default();
    scalars(text, from, end, &mut stitch);
    out.extend(stitch.view("yaml scalar"));
}

/// What stands between a first line `mark` and the next one, at most 64 KiB.
pub(super) fn fenced(text: &str, mark: &str) -> Option<(usize, usize)> {
    let bom = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let rest = text.get(bom..)?.strip_prefix(mark)?;
    let line = rest.as_bytes().iter().take(64).position(|b| *b == b'\n')?;
    if !rest.get(..line)?.trim().is_empty() {
        return None;
    }
    let from = bom + mark.len() + line + 1;
    let body = text.get(from..text.floor_char_boundary(from + 64 * 1024))?;
    let end = if body.starts_with(mark) { 0 } else { body.find(&format!("\n{mark}"))? + 1 };
    Some((from, from + end))
}

/// Where the piece that begins at `from` ends: before a line without indentation where there is one.
fn cut(text: &str, from: usize) -> usize {
    let most = text.floor_char_boundary(from + PIECE);
    if most >= text.len() {
        return text.len();
    }
    let piece = text.as_bytes().get(from..most).unwrap_or_default();
    let line = memchr::memrchr_iter(b'\n', piece)
        .find(|i| piece.get(i + 1).is_some_and(|b| !matches!(b, b' ' | b'\n' | b'\r' | b'-' | b'#')));
    line.or_else(|| memchr::memrchr(b'\n', piece)).map_or(most, |i| from + i + 1)
}

fn scalars(text: &str, from: usize, end: usize, stitch: &mut Stitch) {
    let Some(piece) = text.get(from..end) else { return };
    // Places are counted in characters.
    let bytes: Vec<u32> = match piece.is_ascii() {
        true => Vec::new(),
        false => piece.char_indices().map(|(i, _)| i as u32).collect(),
    };
    let byte = |chars: usize| match bytes.is_empty() {
        true => chars.min(piece.len()),
        false => bytes.get(chars).map_or(piece.len(), |b| *b as usize),
    };
    for event in Parser::new_from_str(piece).take(EVENTS) {
        let Ok((event, span)) = event else { break };
        let Event::Scalar(value, style, ..) = event else { continue };
        let (a, b) = (byte(span.start.index()), byte(span.end.index()));
        let Some(written) = piece.get(a..b) else { continue };
        let folded = written.trim_end().contains('\n');
        if folded || style == ScalarStyle::DoubleQuoted && written.contains('\\') {
            stitch.changed(value.as_bytes(), text.as_bytes(), from + a, from + b);
            stitch.close(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(text: &str) -> String {
        crate::scan::carrier::last_view(text, views)
    }

    #[test]
    fn folded_and_escaped_scalars_are_listed() {
        assert_eq!(view("é: 1\na: \"one tw\\\n  o three\"\nb: plain\n"), "one two three");
        assert_eq!(view("a: >\n    one\n    two\nb: plain\n"), "one two");
        assert_eq!(view("a: plain\n"), "");
    }

    #[test]
    fn a_long_document_goes_through_in_pieces() {
        let mut text = "key: value\n".repeat(10_000);
        text.push_str("last: \"tw\\\n  o\"\n");
        assert_eq!(view(&text), "two");
    }

    #[test]
    fn front_matter_is_what_stands_between_two_marks() {
        assert_eq!(fenced("---\na: 1\n---\nb", "---"), Some((4, 9)));
        assert_eq!(fenced("\u{feff}+++\r\na = 1\r\n+++\nb", "+++"), Some((8, 15)));
        assert_eq!(fenced("---\na: 1\n", "---"), None);
        assert_eq!(fenced("--- x\na: 1\n---\n", "---"), None);
    }
}
