//! Text that is taken apart, or written with characters that only look like its own.

use super::{MIN_LIST, Reach, View};

/// Most bytes between two characters.
const GAP: usize = 6;

/// Single characters with the same few bytes between each two: `g h p _`, `'g', 'h'`, `g-h-p`.
pub(super) fn spaced(text: &str, views: &mut Vec<View>) {
    let bytes = text.as_bytes();
    let mut view = View::new("separated");
    let mut done = 0;
    for (from, to) in sparse(bytes) {
        let mut at = from.max(done);
        while at < to {
            match list(bytes, at) {
                Some((gap, count)) if count >= MIN_LIST => {
                    let end = at + (count - 1) * (gap + 1) + 1;
                    let list: Vec<u8> =
                        (at..end).step_by(gap + 1).filter_map(|i| bytes.get(i).copied()).collect();
                    view.gap();
                    view.piece(&String::from_utf8_lossy(&list), at, end);
                    at = end;
                }
                _ => at += 1,
            }
        }
        done = at;
    }
    views.push(view);
}

/// Where lists could begin: in a list no two letters or digits stand side by side, so that of bytes seven apart three in
/// a row begin no such pair.
fn sparse(bytes: &[u8]) -> Vec<(usize, usize)> {
    const STEP: usize = 7;
    let letter = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let mut out = Vec::new();
    let mut row = 0;
    for at in (0..bytes.len()).step_by(STEP) {
        if letter(at) && letter(at + 1) {
            if row >= 3 {
                out.push((at.saturating_sub((row + 1) * STEP), at));
            }
            row = 0;
        } else {
            row += 1;
        }
    }
    if row >= 3 {
        out.push((bytes.len().saturating_sub((row + 2) * STEP), bytes.len()));
    }
    out
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
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = memchr::memchr3(b'"', b'\'', b'`', bytes.get(at..).unwrap_or_default()) {
        let quote = at + found;
        let between = bytes.get(quote + 1..).unwrap_or_default();
        let glue =
            |b: &u8| b.is_ascii_whitespace() || matches!(b, b'+' | b'.' | b'\\' | b',' | b'&' | b'~' | b'|');
        let len = between.iter().take(24).take_while(|b| glue(b)).count();
        if between.get(len).is_some_and(|b| matches!(b, b'"' | b'\'' | b'`')) {
            view.copied(text, copied, quote);
            copied = quote + len + 2;
            at = copied;
        } else {
            at = quote + 1;
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
    let (mut start, mut at) = (0, 0);
    while let Some(found) = next_special(bytes, at) {
        let Some(c) = text.get(found..).and_then(|rest| rest.chars().next()) else { break };
        at = found + c.len_utf8();
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

/// The next byte that begins a character outside ASCII, or is a control character that nothing shows.
fn next_special(bytes: &[u8], from: usize) -> Option<usize> {
    const STEP: usize = 32;
    let special = |b: u8| !matches!(b, b' '..=b'~' | b'\t'..=b'\r');
    let rest = bytes.get(from..)?;
    let clear =
        rest.chunks_exact(STEP).take_while(|step| !step.iter().fold(false, |any, b| any | special(*b)));
    let at = clear.count() * STEP;
    rest.get(at..)?.iter().position(|b| special(*b)).map(|n| from + at + n)
}
