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
        let len = between.iter().take(24).take_while(|b| glue(b)).count();
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
