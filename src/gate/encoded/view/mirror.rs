//! The parts of a text that could decode to something when they are read backwards. Tokens that stand there as they are
//! belong to the search itself.

use super::View;
use super::runs::Gathered;

/// Bytes around an escape, as it reads backwards, that a token could reach into.
const BEFORE: usize = 512;
const AFTER: usize = 128;

pub(super) fn reversed(
    text: &str,
    gathered: &[Gathered<'_>],
    chains: &[(usize, usize)],
    marks: &[usize],
    views: &mut Vec<View>,
) {
    let mut parts: Vec<(usize, usize)> = gathered.iter().filter_map(Gathered::mirrored).collect();
    parts.extend_from_slice(chains);
    let escapes = marks.iter().filter(|at| escape(text.as_bytes(), **at));
    parts.extend(escapes.map(|at| (at.saturating_sub(BEFORE), (at + AFTER).min(text.len()))));
    parts.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for (from, to) in parts {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    let mut view = View { nested: true, exact: true, flip: true, ..View::new("reversed") };
    for (from, to) in merged {
        let (from, to) = (text.floor_char_boundary(from), text.ceil_char_boundary(to));
        let backwards: String = text.get(from..to).unwrap_or_default().chars().rev().collect();
        view.gap();
        view.piece(&backwards, from, to);
    }
    views.push(view);
}

/// Does `%41`, `\x41`, `\u0041` or `&#65;` end at `at` backwards, with a code of a printable character?
fn escape(bytes: &[u8], at: usize) -> bool {
    let back = |n: usize| at.checked_sub(n).and_then(|i| bytes.get(i)).copied().unwrap_or(0);
    let high = |b: u8| matches!(b, b'2'..=b'7');
    match bytes.get(at) {
        Some(b'%') => high(back(1)) && back(2).is_ascii_hexdigit(),
        Some(b'\\') => match back(1) {
            b'x' => high(back(2)) && back(3).is_ascii_hexdigit(),
            b'u' => back(2).is_ascii_hexdigit() && back(3).is_ascii_hexdigit() || back(2) == b'{',
            b'U' => back(2).is_ascii_hexdigit(),
            b'0'..=b'7' => matches!((back(2), back(3)), (b'0'..=b'7', b'0'..=b'1')),
            _ => false,
        },
        _ => back(1) == b'#' && (back(2).is_ascii_hexdigit() || matches!(back(2), b'x' | b'X')),
    }
}
