//! Decoders of what is written in signs that carry no letters: zero-width characters, tags, selectors, Morse code.

use super::decode::View;
use super::decoders::readable;
use super::survey::MORSE;
use super::token::{self, Token};

/// Bits written as two kinds of zero-width characters, eight to a byte.
pub(crate) fn zero_width(text: &[u8], out: &mut Vec<View>) {
    let mut i = 0;
    let mut run: Vec<(char, usize)> = Vec::new();
    loop {
        let next = text.get(i..).and_then(|t| memchr::memchr2(0xe2, 0xef, t)).map(|p| i + p);
        let found = next.and_then(|at| token::decode(text, at).map(|(c, len)| (c, at, len)));
        let zero = found.filter(|(c, ..)| matches!(*c as u32, 0x200b..=0x200d | 0x2060..=0x2064 | 0xfeff));
        let joined = zero.is_some_and(|(_, at, _)| run.last().is_none_or(|(c, l)| l + c.len_utf8() == at));
        if !joined {
            bits_view(&run, out);
            run.clear();
        }
        match (zero, next) {
            (Some((c, at, len)), _) => {
                run.push((c, at));
                i = at + len;
            }
            (None, Some(at)) => i = at + 1,
            (None, None) => return,
        }
    }
}

fn bits_view(run: &[(char, usize)], out: &mut Vec<View>) {
    let (Some((first, start)), Some((last, end))) = (run.first(), run.last()) else { return };
    if run.len() < 48 {
        return;
    }
    for one in [*first, run.iter().map(|(c, _)| *c).find(|c| c != first).unwrap_or(*first)] {
        let bytes: Vec<u8> = run
            .chunks_exact(8)
            .map(|b| b.iter().fold(0u8, |acc, (c, _)| acc << 1 | u8::from(*c == one)))
            .collect();
        if readable(&bytes) {
            out.push(View::whole("zero-width", bytes, *start, end + last.len_utf8(), true));
            return;
        }
    }
}

/// Text carried by tag characters, or by variation selectors as bytes.
pub(crate) fn smuggled(text: &[u8], out: &mut Vec<View>) {
    let mut i = 0;
    let (mut tags, mut tag_points): (Vec<u8>, Vec<(u32, u32)>) = (Vec::new(), Vec::new());
    let (mut sel, mut sel_points): (Vec<u8>, Vec<(u32, u32)>) = (Vec::new(), Vec::new());
    let (mut first, mut last) = (usize::MAX, 0);
    while let Some(p) = text.get(i..).and_then(|t| memchr::memchr2(0xf3, 0xef, t)) {
        let at = i + p;
        let Some((c, len)) = token::decode(text, at) else {
            i = at + 1;
            continue;
        };
        i = at + len;
        let u = c as u32;
        match u {
            0xe0020..=0xe007e => {
                tag_points.push((tags.len() as u32, at as u32));
                tags.push((u - 0xe0000) as u8);
            }
            0xe0100..=0xe01ef => {
                sel_points.push((sel.len() as u32, at as u32));
                sel.push((u - 0xe0100 + 16) as u8);
            }
            0xfe00..=0xfe0f if !sel.is_empty() => {
                sel_points.push((sel.len() as u32, at as u32));
                sel.push((u - 0xfe00) as u8);
            }
            _ => continue,
        }
        first = first.min(at);
        last = at + len;
    }
    if tags.len() >= 3 {
        out.push(View::mapped("tags", tags, tag_points, (first, last), true));
    }
    if sel.len() >= 3 && readable(&sel) {
        out.push(View::mapped("variation-selectors", sel, sel_points, (first, last), true));
    }
}

/// Morse code in the gaps between words: those before the words `gaps`, and the last.
pub(crate) fn morse(text: &[u8], tokens: &[Token], gaps: &[u32], out: &mut Vec<View>) {
    let end = |i: usize| i.checked_sub(1).and_then(|i| tokens.get(i)).map_or(0, |t| t.end as usize);
    let inner = gaps.iter().filter_map(|i| Some((end(*i as usize), tokens.get(*i as usize)?.start as usize)));
    for (from, to) in inner.chain([(end(tokens.len()), text.len())]) {
        if let Some(gap) = text.get(from..to).filter(|g| g.len() >= MORSE) {
            decode_morse(gap, from, out);
        }
    }
}

fn decode_morse(gap: &[u8], at: usize, out: &mut Vec<View>) {
    if gap.iter().filter(|b| matches!(b, b'.' | b'-')).count() * 2 < gap.len() {
        return;
    }
    let mut bytes = Vec::new();
    for part in gap.split(|b| *b == b' ' || *b == b'\n').take(4096) {
        match part {
            b"" => {}
            b"/" | b"|" => bytes.push(b' '),
            _ => match CODE.iter().find(|(code, _)| code.as_bytes() == part) {
                Some((_, c)) => bytes.push(*c),
                None => return,
            },
        }
    }
    if bytes.len() >= 8 && bytes.iter().collect::<std::collections::HashSet<_>>().len() >= 5 {
        out.push(View::whole("morse", bytes, at, at + gap.len(), true));
    }
}

const CODE: &[(&str, u8)] = &[
    (".-", b'a'),
    ("-...", b'b'),
    ("-.-.", b'c'),
    ("-..", b'd'),
    (".", b'e'),
    ("..-.", b'f'),
    ("--.", b'g'),
    ("....", b'h'),
    ("..", b'i'),
    (".---", b'j'),
    ("-.-", b'k'),
    (".-..", b'l'),
    ("--", b'm'),
    ("-.", b'n'),
    ("---", b'o'),
    (".--.", b'p'),
    ("--.-", b'q'),
    (".-.", b'r'),
    ("...", b's'),
    ("-", b't'),
    ("..-", b'u'),
    ("...-", b'v'),
    (".--", b'w'),
    ("-..-", b'x'),
    ("-.--", b'y'),
    ("--..", b'z'),
    (".-.-.-", b'.'),
    ("--..--", b','),
    (".----", b'1'),
    ("..---", b'2'),
    ("...--", b'3'),
    ("....-", b'4'),
    (".....", b'5'),
    ("-....", b'6'),
    ("--...", b'7'),
    ("---..", b'8'),
    ("----.", b'9'),
    ("-----", b'0'),
];
