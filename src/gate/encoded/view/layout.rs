//! Text that is taken apart, or written with characters that only look like its own.

use super::{MIN_LIST, View};

/// Single characters with the same few bytes between each two: `g h p _`, `'g', 'h'`, `g-h-p`.
pub(super) fn spaced(text: &str, views: &mut Vec<View>) {
    const GAP: usize = 6;
    let bytes = text.as_bytes();
    let mut view = View::new("separated");
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        if !b.is_ascii_alphanumeric() || bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric) {
            at += 1;
            continue;
        }
        let after = bytes.get(at + 1..).unwrap_or_default();
        let gap = after.iter().take(GAP + 1).take_while(|b| !b.is_ascii_alphanumeric()).count();
        let separator = after.get(..gap).unwrap_or_default();
        if gap == 0 || gap > GAP {
            at += 1;
            continue;
        }
        let next = |end: usize| {
            let stands = bytes.get(end..end + gap) == Some(separator);
            bytes.get(end + gap).filter(|b| stands && b.is_ascii_graphic())
        };
        let mut end = at + 1;
        let mut count = 1;
        while next(end).is_some() {
            end += gap + 1;
            count += 1;
        }
        if count >= MIN_LIST {
            let list: Vec<u8> = (at..end).step_by(gap + 1).filter_map(|i| bytes.get(i).copied()).collect();
            view.gap();
            view.piece(&String::from_utf8_lossy(&list), at, end);
            at = end;
        } else {
            at += 1;
        }
    }
    views.push(view);
}

/// `"ghp_ab" + "cd…"`, `'a' . 'b'`, `"a" "b"`: string literals joined in code.
pub(super) fn glued(text: &str, views: &mut Vec<View>) {
    let mut view = View { exact: true, ..View::new("separated") };
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
        // A letter of another script that passes for nothing is text like any other.
        if !invisible(c) && !seen.is_ascii() {
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
