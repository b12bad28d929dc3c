//! Text that is taken apart, or written with characters that only look like its own.

use super::{MIN_LIST, Reach, View};
use crate::bits::Class;

/// Most bytes between two characters.
const GAP: usize = 6;

/// Single characters with the same few bytes between each two: `g h p _`, `'g', 'h'`, `g-h-p`.
pub(super) fn spaced(text: &str, views: &mut Vec<View>) {
    let bytes = text.as_bytes();
    let mut view = View::new("separated");
    let letters = Class::of(bytes, |b| b.is_ascii_alphanumeric());
    // In a list no two letters or digits stand side by side.
    let sparse = letters.pairs().others().runs((MIN_LIST - 1) * 2);
    let mut done = 0;
    for at in letters.and(&sparse).iter() {
        if at < done {
            continue;
        }
        let Some((gap, count)) = list(bytes, at).filter(|(_, count)| *count >= MIN_LIST) else { continue };
        let end = at + (count - 1) * (gap + 1) + 1;
        let list: Vec<u8> = (at..end).step_by(gap + 1).filter_map(|i| bytes.get(i).copied()).collect();
        view.gap();
        view.piece(&String::from_utf8_lossy(&list), at, end);
        done = end;
    }
    views.push(view);
}

/// How many characters a list has that begins at `at`, and the bytes between each two.
fn list(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    bytes.get(at).filter(|b| b.is_ascii_alphanumeric())?;
    let after = bytes.get(at + 1..)?;
    let gap = after.iter().take(GAP + 1).take_while(|b| !b.is_ascii_alphanumeric()).count();
    if gap == 0 || gap > GAP {
        return None;
    }
    let separator = after.get(..gap)?;
    // Most words end here: the next one is longer than a character.
    if after.get(gap + 1) != separator.first() {
        return None;
    }
    let (mut end, mut count) = (at + 1, 1);
    while bytes.get(end..end + gap) == Some(separator)
        && bytes.get(end + gap).is_some_and(u8::is_ascii_graphic)
    {
        end += gap + 1;
        count += 1;
    }
    Some((gap, count))
}

/// `"ghp_ab" + "cd…"`, `'a' . 'b'`, `"a" "b"`: string literals joined in code.
pub(super) fn glued(text: &str, views: &mut Vec<View>) {
    let mut view = View { exact: true, reach: Reach::Word, ..View::new("separated") };
    let bytes = text.as_bytes();
    let mut copied = 0;
    let quotes = Class::of(bytes, |b| (b == b'"') | (b == b'\'') | (b == b'`'));
    for quote in quotes.iter() {
        if quote < copied {
            continue;
        }
        let between = bytes.get(quote + 1..).unwrap_or_default();
        let glue =
            |b: &u8| b.is_ascii_whitespace() || matches!(b, b'+' | b'.' | b'\\' | b',' | b'&' | b'~' | b'|');
        let len = concat(between).unwrap_or_else(|| between.iter().take(24).take_while(|b| glue(b)).count());
        if between.get(len).is_some_and(|b| matches!(b, b'"' | b'\'' | b'`')) {
            view.copied(text, copied, quote);
            copied = quote + len + 2;
        }
    }
    if copied > 0 {
        view.copied(text, copied, text.len());
        views.push(view);
    }
}

/// How long `.concat(` is, with the white space around it.
fn concat(bytes: &[u8]) -> Option<usize> {
    const CALL: &[u8] = b".concat(";
    let spaces = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take(8).take_while(|b| b.is_ascii_whitespace() || **b == b')').count()
    };
    let end = spaces(0) + CALL.len();
    let stands = bytes.get(..end).is_some_and(|head| head.ends_with(CALL));
    stands.then(|| end + spaces(end))
}

/// Tokens with something inside that a reader does not see as a part of the text: tags, colours of a terminal, the mark of
/// a line that goes on, blanks of other widths.
pub(super) fn broken(text: &str, views: &mut Vec<View>) {
    let bytes = text.as_bytes();
    let mut view = View { exact: true, reach: Reach::Word, ..View::new("broken") };
    let token = |at: usize| {
        let of_token = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'=');
        bytes.get(at).is_some_and(of_token)
    };
    let starts = Class::of(bytes, |b| {
        (b == b'<') | (b == 0x1b) | (b == b'\\') | (b == 0xC2) | (b == 0xE2) | (b == 0xE3)
    });
    let (mut copied, mut looked) = (0, 0);
    for found in starts.iter() {
        if found < looked || !found.checked_sub(1).is_some_and(token) {
            continue;
        }
        let mut end = found;
        while let Some(len) = unseen(bytes.get(end..).unwrap_or_default()) {
            end += len;
        }
        looked = end;
        if end > found && token(end) {
            view.copied(text, copied, found);
            copied = end;
        }
    }
    if copied > 0 {
        view.copied(text, copied, text.len());
        views.push(view);
    }
}

/// How long the tag, the terminal sequence, the line end or the blank is that `rest` begins with.
fn unseen(rest: &[u8]) -> Option<usize> {
    /// Longest tag and longest sequence, in bytes.
    const TAG: usize = 64;
    const SEQUENCE: usize = 16;
    match rest {
        [b'<', b'a'..=b'z' | b'A'..=b'Z' | b'/' | b'!', ..] => {
            let inside = rest.iter().skip(1).take(TAG).position(|b| matches!(b, b'<' | b'>'))?;
            (rest.get(inside + 1) == Some(&b'>')).then_some(inside + 2)
        }
        [0x1b, b'[', rest @ ..] => {
            let parameters = |b: &&u8| matches!(**b, b'0'..=b'9' | b';' | b':');
            let len = rest.iter().take(SEQUENCE).take_while(parameters).count();
            rest.get(len).filter(|b| b.is_ascii_alphabetic()).map(|_| len + 3)
        }
        [b'\\', b'\n', ..] => Some(2),
        [b'\\', b'\r', b'\n', ..] => Some(3),
        // No-break space and middle dot; spaces of fixed widths; the ideographic space.
        [0xC2, 0xA0 | 0xB7, ..] => Some(2),
        [0xE2, 0x80, 0x80..=0x8A | 0xAF, ..] | [0xE3, 0x80, 0x80, ..] => Some(3),
        _ => None,
    }
}

/// The text as a reader sees it: look-alikes folded, invisible characters gone.
pub(super) fn folded(text: &str, views: &mut Vec<View>) {
    use crate::envelope::{fold, invisible};
    let bytes = text.as_bytes();
    let mut view = View { exact: true, ..View::new("look-alikes") };
    let mut start = 0;
    // What begins a character outside ASCII that passes for another or is not seen, or is a control character.
    let special = |b: u8| (b < b'\t') | ((b > b'\r') & (b < b' ')) | (b == 0x7f) | (b >= 0xC2);
    for found in Class::of(bytes, special).iter() {
        if matches!(bytes.get(found), Some(0xE4..=0xE9 | 0xEB..=0xED)) {
            continue; // Han and Hangul: themselves
        }
        let Some(c) = text.get(found..).and_then(|rest| rest.chars().next()) else { continue };
        let at = found + c.len_utf8();
        let seen = fold(c);
        // A character that passes for none of a token's, or stands by itself, is text like any other.
        let token = |b: Option<&u8>| {
            b.is_some_and(|b| {
                b.is_ascii_alphanumeric() || !b.is_ascii() || matches!(b, b'_' | b'-' | b'.' | b'=')
            })
        };
        let beside = token(bytes.get(found.wrapping_sub(1))) || token(bytes.get(at));
        let passes =
            invisible(c) || seen.is_ascii_alphanumeric() || (seen.is_ascii() && "_-.=:/+~".contains(seen));
        if !passes || !beside {
            continue;
        }
        if found > start {
            view.copied(text, start, found);
        }
        if !invisible(c) {
            view.piece(seen.encode_utf8(&mut [0; 4]), found, at);
        }
        start = at;
    }
    if start > 0 {
        view.copied(text, start, text.len());
        views.push(view);
    }
}
