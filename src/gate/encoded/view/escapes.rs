//! Characters written as escapes inside the text.

use super::{Reach, View, number};

/// The text with URL escapes, string escapes and character references read.
///
/// `marks` are the places of `%`, `\` and `&`.
pub(super) fn escapes(text: &str, marks: &[usize], views: &mut Vec<View>) {
    let mut view = View { nested: true, exact: true, ..View::new("escaped") };
    let mut copied = 0;
    let mut any = 0;
    for &here in marks {
        let inside = here < copied;
        let Some((c, width)) = text.get(here..).filter(|_| !inside).and_then(unescape) else { continue };
        view.copied(text, copied, here);
        view.piece(c.encode_utf8(&mut [0; 4]), here, here + width);
        any += 1;
        copied = here + width;
    }
    if any > 0 {
        view.copied(text, copied, text.len());
        views.push(view);
    }
}

/// A character written as an escape, and the escape's length.
fn unescape(text: &str) -> Option<(char, usize)> {
    let bytes = text.as_bytes();
    let digits = |from: usize, to: usize, radix| {
        text.get(from..to)
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|d| u32::from_str_radix(d, radix).ok())
            .and_then(char::from_u32)
    };
    match (bytes.first()?, bytes.get(1)?) {
        (b'%', b'u') => digits(2, 6, 16).map(|c| (c, 6)),
        (b'%', _) => digits(1, 3, 16).map(|c| (c, 3)),
        (b'\\', b'x') => digits(2, 4, 16).map(|c| (c, 4)),
        (b'\\', b'u') if bytes.get(2) == Some(&b'{') => {
            let len = bytes.iter().skip(3).take(8).position(|b| *b == b'}')?;
            digits(3, 3 + len, 16).map(|c| (c, len + 4))
        }
        (b'\\', b'u') => digits(2, 6, 16).map(|c| (c, 6)),
        (b'\\', b'U') => digits(2, 10, 16).map(|c| (c, 10)),
        (b'\\', b'0'..=b'7') => digits(1, 4, 8).map(|c| (c, 4)).or_else(|| digits(1, 3, 8).map(|c| (c, 3))),
        (b'\\', b'/' | b'"' | b'_' | b'-' | b'.') => Some((char::from(*bytes.get(1)?), 2)),
        (b'&', _) => crate::envelope::entity(text),
        _ => None,
    }
}

/// `=41` and soft line ends, where there are several.
pub(super) fn quoted_printable(text: &str, views: &mut Vec<View>) {
    let mut view = View { nested: true, exact: true, reach: Reach::Word, ..View::new("quoted-printable") };
    let (mut copied, mut any) = (0, 0);
    for at in memchr::memchr_iter(b'=', text.as_bytes()) {
        if at < copied {
            continue;
        }
        let after = text.as_bytes().get(at + 1..).unwrap_or_default();
        let (piece, width) = match after {
            [b'\r', b'\n', ..] => (None, 3),
            [b'\n', ..] => (None, 2),
            [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => match number(&[*a, *b], 16) {
                Some(byte @ 0x20..0x7f) => (Some(char::from(byte)), 3),
                _ => continue,
            },
            _ => continue,
        };
        view.copied(text, copied, at);
        if let Some(c) = piece {
            view.piece(c.encode_utf8(&mut [0; 4]), at, at + width);
        }
        copied = at + width;
        any += 1;
    }
    if any > 0 {
        view.copied(text, copied, text.len());
        views.push(view);
    }
}
