//! The decoders themselves: pure functions over runs of bytes.

use super::decode::View;
use super::token::Token;
use std::io::Read;

/// ROT13 of ASCII letters.
pub(crate) fn rot13(run: &[u8]) -> Vec<u8> {
    run.iter()
        .map(|b| match b {
            b'a'..=b'z' => (b - b'a' + 13) % 26 + b'a',
            b'A'..=b'Z' => (b - b'A' + 13) % 26 + b'A',
            _ => *b,
        })
        .collect()
}

/// Text rather than noise: valid UTF-8, at most one control character in twenty, and letters and spaces as in words.
pub(crate) fn readable(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let (mut n, mut odd, mut letters) = (0usize, 0usize, 0usize);
    if text.is_ascii() {
        n = bytes.len();
        for b in bytes {
            odd += usize::from(b.is_ascii_control() & !matches!(b, b'\n' | b'\r' | b'\t'));
            letters += usize::from(b.is_ascii_alphanumeric() | (*b == b' '));
        }
    } else {
        for c in text.chars() {
            n += 1;
            odd += usize::from(c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
            letters += usize::from(c.is_alphanumeric() || c == ' ');
        }
    }
    n >= 6 && odd * 20 <= n && letters * 2 >= n
}

/// UTF-16 bytes that hold readable ASCII-heavy text.
pub(crate) fn maybe_utf16(bytes: &[u8]) -> Option<String> {
    let zeros = bytes.iter().filter(|b| **b == 0).count();
    if bytes.len() < 12 || zeros * 5 < bytes.len() * 2 {
        return None;
    }
    let be = bytes.first() == Some(&0);
    utf16(bytes, be).filter(|t| readable(t.as_bytes()))
}

/// UTF-16 to a string; the replacement character stands for what is broken.
pub(crate) fn utf16(bytes: &[u8], be: bool) -> Option<String> {
    let units = bytes.chunks_exact(2).map(|p| match p {
        [a, b] if be => u16::from_be_bytes([*a, *b]),
        [a, b] => u16::from_le_bytes([*a, *b]),
        _ => 0,
    });
    let text: String = char::decode_utf16(units).map(|r| r.unwrap_or('\u{fffd}')).collect();
    (!text.is_empty()).then_some(text)
}

/// Inflates a gzip member to at most `limit` bytes.
pub(crate) fn gunzip(bytes: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    // A truncated member still shows what it began with.
    let _ = flate2::read::GzDecoder::new(bytes).take(limit as u64).read_to_end(&mut out);
    (!out.is_empty()).then_some(out)
}

/// Widens `start..end` over base64 characters and over line breaks or single spaces between pieces of the same run.
pub(crate) fn extend_run(text: &[u8], start: usize, end: usize) -> (usize, usize) {
    const LIMIT: usize = 64 * 1024;
    let in_run = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_');
    let mut from = start;
    while from > 0 && in_run(text[from - 1]) && start - from < 64 {
        from -= 1;
    }
    let mut to = end;
    while to < text.len() && to - from < LIMIT {
        let b = text[to];
        if in_run(b) || b == b'=' {
            to += 1;
            continue;
        }
        if !matches!(b, b' ' | b'\n' | b'\r' | b'\t') {
            break;
        }
        let next = text[to..].iter().take(4).position(|b| !b.is_ascii_whitespace()).map(|p| to + p);
        let Some(next) = next else { break };
        let piece = text[next..].iter().take_while(|b| in_run(**b) || **b == b'=').count();
        let last = text[from..to].iter().rev().take_while(|b| in_run(**b)).count();
        let p = &text[next..next + piece];
        let mixed = p.iter().any(u8::is_ascii_uppercase)
            && p.iter().any(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let hex = p.iter().all(u8::is_ascii_hexdigit) && p.iter().any(u8::is_ascii_digit);
        let ends = matches!(
            text.get(next + piece),
            None | Some(b' ' | b'\n' | b'\r' | b'"' | b'<' | b'`' | b'\'' | b'.')
        );
        if piece == 0 || piece > last.max(4) || !(mixed || hex || p.contains(&b'=')) || !ends {
            break;
        }
        to = next + piece;
    }
    (from, to)
}

/// The run decoded as hex, base32 or base64 (any alphabet, padding optional), whichever fits.
pub(crate) fn base_n(run: &[u8]) -> Option<(&'static str, Vec<u8>)> {
    let clean: Vec<u8> = run.iter().copied().filter(|b| !b.is_ascii_whitespace() && *b != b'=').collect();
    if clean.len() < 12 {
        return None;
    }
    if clean.iter().all(u8::is_ascii_hexdigit) && clean.len().is_multiple_of(2) {
        let bytes = clean
            .chunks_exact(2)
            .filter_map(|p| Some(nibble(p[0])? << 4 | nibble(p[1])?))
            .collect::<Vec<u8>>();
        if readable(&bytes) || bytes.starts_with(&[0x1f, 0x8b]) {
            return Some(("hex", bytes));
        }
    }
    let upper = clean.iter().all(|b| b.is_ascii_uppercase() || (b'2'..=b'7').contains(b));
    let lower = clean.iter().all(|b| b.is_ascii_lowercase() || (b'2'..=b'7').contains(b));
    if upper || lower && clean.iter().any(u8::is_ascii_digit) {
        let bytes = bits(&clean, 5, |b| match b.to_ascii_uppercase() {
            c @ b'A'..=b'Z' => Some(c - b'A'),
            c @ b'2'..=b'7' => Some(c - b'2' + 26),
            _ => None,
        });
        if let Some(bytes) = bytes.filter(|b| readable(b)) {
            return Some(("base32", bytes));
        }
    }
    let bytes = bits(&clean, 6, |b| match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'a'..=b'z' => Some(b - b'a' + 26),
        b'0'..=b'9' => Some(b - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    })?;
    Some(("base64", bytes))
}

fn nibble(b: u8) -> Option<u8> {
    (b as char).to_digit(16).map(|d| d as u8)
}

fn bits(clean: &[u8], width: u32, value: impl Fn(u8) -> Option<u8>) -> Option<Vec<u8>> {
    let (mut acc, mut have) = (0u32, 0u32);
    let mut out = Vec::with_capacity(clean.len() * width as usize / 8);
    for b in clean {
        acc = acc << width | u32::from(value(*b)?);
        have += width;
        if have >= 8 {
            have -= 8;
            out.push((acc >> have) as u8);
            acc &= (1 << have) - 1;
        }
    }
    Some(out)
}

/// Ascii85 between `<~` and `~>`, and runs of 20 or more bytes of the base85 alphabet with few letters' shapes.
pub(crate) fn base85(text: &[u8], out: &mut Vec<View>) {
    let mut at = 0;
    while let Some(p) = memchr::memmem::find(&text[at..], b"<~") {
        let from = at + p;
        let Some(run) = memchr::memmem::find(&text[from + 2..], b"~>").map(|n| &text[from + 2..from + 2 + n])
        else {
            break;
        };
        let end = from + 2 + run.len() + 2;
        if run.len() > 64 * 1024 {
            // Too long for one text; the last opening before the end may start one that is not.
            at = memchr::memmem::rfind(run, b"<~").map_or(end, |n| from + 2 + n);
            continue;
        }
        if let Some(bytes) = ascii85(run).filter(|b| readable(b)) {
            out.push(View::whole("ascii85", bytes, from, end, true));
        }
        at = end;
    }
}

fn ascii85(run: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut acc, mut n) = (0u64, 0);
    for b in run.iter().filter(|b| !b.is_ascii_whitespace()) {
        if *b == b'z' && n == 0 {
            out.extend([0; 4]);
            continue;
        }
        if !(b'!'..=b'u').contains(b) {
            return None;
        }
        acc = acc * 85 + u64::from(b - b'!');
        n += 1;
        if n == 5 {
            out.extend(u32::try_from(acc).ok()?.to_be_bytes());
            (acc, n) = (0, 0);
        }
    }
    if n > 1 {
        for _ in n..5 {
            acc = acc * 85 + 84;
        }
        out.extend(u32::try_from(acc & 0xffff_ffff).ok()?.to_be_bytes().iter().take(n - 1));
    }
    Some(out)
}

/// Number codes that start at word `i`: binary octets, hex pairs, decimal codes. Returns how many words they took.
pub(crate) fn codes(text: &[u8], tokens: &[Token], i: usize, out: &mut Vec<View>) -> usize {
    type Parse = fn(&[u8]) -> Option<u8>;
    let kinds: [(&'static str, Parse, usize); 4] = [
        (
            "binary",
            |w| if w.len() == 8 && w.iter().all(|b| matches!(b, b'0' | b'1')) { radix(w, 2) } else { None },
            6,
        ),
        ("hex", |w| if w.len() == 2 { radix(w, 16) } else { None }, 8),
        (
            "decimal",
            |w| if matches!(w.len(), 2 | 3) { radix(w, 10).filter(|v| (32..127).contains(v)) } else { None },
            8,
        ),
        ("octal", |w| if w.len() == 3 { radix(w, 8).filter(|v| (32..127).contains(v)) } else { None }, 8),
    ];
    // No kind has words of another length.
    if !tokens.get(i).is_some_and(|t| matches!(unprefixed(text, t).len(), 2 | 3 | 8)) {
        return 0;
    }
    for (name, parse, least) in kinds {
        // Most rows are none; that shows in the first few.
        let first = tokens.get(i..i + least).unwrap_or_default();
        if first.len() < least || !first.iter().all(|t| parse(unprefixed(text, t)).is_some()) {
            continue;
        }
        let mut bytes = Vec::new();
        let mut points = Vec::new();
        let mut end = 0;
        for t in tokens.iter().skip(i).take(16 * 1024) {
            if end != 0 && t.start as usize - end > 6 {
                break;
            }
            let Some(v) = parse(unprefixed(text, t)) else { break };
            points.push((bytes.len() as u32, t.start));
            bytes.push(v);
            end = t.end as usize;
        }
        let n = bytes.len();
        if n >= least && readable(&bytes) && bytes.iter().filter(|b| b.is_ascii_alphabetic()).count() * 2 >= n
        {
            let start = tokens.get(i).map_or(0, |t| t.start as usize);
            out.push(View::mapped(name, bytes, points, (start, end), true));
            return n.saturating_sub(1);
        }
        // A long row that is no text is not tried again from its middle.
        if n >= least * 4 {
            return n.saturating_sub(1);
        }
    }
    0
}

fn unprefixed<'a>(text: &'a [u8], t: &Token) -> &'a [u8] {
    let word = text.get(t.start as usize..t.end as usize).unwrap_or_default();
    word.strip_prefix(b"0x").or_else(|| word.strip_prefix(b"x")).unwrap_or(word)
}

fn radix(w: &[u8], base: u32) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(w).ok()?, base).ok()
}

/// Runs of escapes: `%41`, `\x41`, `\u0041`, `\101`, `&#65;`, `&#x41;`, named entities, `=41`. The view is the run with
/// its surroundings, decoded.
pub(crate) fn escapes(text: &[u8], out: &mut Vec<View>) {
    /// Bytes around an escape that belong to its view; escapes that are closer share one.
    const AROUND: usize = 96;
    let mut at = 0;
    let mut found: Vec<(usize, char, usize)> = Vec::new();
    while let Some(first) = next_escape(text, at) {
        let from = first.saturating_sub(AROUND).max(at);
        let from = (from..=first).find(|i| utf8_start(text, *i)).unwrap_or(first);
        let (mut i, mut last, mut letters, mut run, mut longest) = (from, first, 0usize, 0usize, 0usize);
        let mut kind = "";
        found.clear();
        while let Some(p) = text.get(i..).and_then(|t| memchr::memchr3(b'%', b'\\', b'&', t)).map(|p| i + p) {
            if p >= last + AROUND {
                break;
            }
            if p > i {
                run = 0;
            }
            let Some((c, len, k)) = escape(text, p) else {
                run = 0;
                i = p + 1;
                continue;
            };
            let letter = c.is_ascii_alphanumeric();
            letters += usize::from(letter);
            run += usize::from(letter || c == ' ');
            longest = longest.max(run);
            kind = k;
            i = p + len;
            last = i;
            found.push((p, c, len));
        }
        let mut end = (last + AROUND).min(text.len()).max(i.min(text.len()));
        while !utf8_start(text, end) {
            end += 1;
        }
        at = end.max(first + 1);
        // What decodes to signs alone, such as `&lt;`, says nothing new.
        if letters > 0 || kind == "url" {
            let (mut bytes, mut points) = (Vec::with_capacity(end - from), vec![(0, from as u32)]);
            let mut i = from;
            for (p, c, len) in &found {
                bytes.extend_from_slice(text.get(i..*p).unwrap_or_default());
                points.push((bytes.len() as u32, *p as u32));
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                i = p + len;
                points.push((bytes.len() as u32, i as u32));
            }
            bytes.extend_from_slice(text.get(i..end).unwrap_or_default());
            out.push(View::mapped(kind, bytes, points, (from, end), longest >= 8));
        }
    }
}

fn utf8_start(text: &[u8], i: usize) -> bool {
    text.get(i).is_none_or(|b| b & 0xc0 != 0x80)
}

fn next_escape(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let rest = text.get(at..)?;
        let a = memchr::memchr3(b'%', b'\\', b'&', rest);
        let p = at + a?;
        if escape(text, p).is_some_and(|(c, _, _)| c != '\n' && c != '\t') {
            return Some(p);
        }
        at = p + 1;
    }
}

/// The character that the escape at `i` stands for, its length, and its kind.
fn escape(text: &[u8], i: usize) -> Option<(char, usize, &'static str)> {
    let rest = text.get(i..)?;
    let hex = |from: usize, n: usize| -> Option<u32> {
        let digits = rest.get(from..from + n)?;
        digits.iter().try_fold(0u32, |acc, b| Some(acc << 4 | (*b as char).to_digit(16)?))
    };
    let ok = |v: u32, len: usize, kind| char::from_u32(v).filter(|c| *c != '\0').map(|c| (c, len, kind));
    match rest.first()? {
        b'%' => ok(hex(1, 2)?, 3, "url").filter(|(c, _, _)| c.is_ascii()),
        b'\\' => match rest.get(1)? {
            b'x' => ok(hex(2, 2)?, 4, "escape"),
            b'u' if rest.get(2) == Some(&b'{') => {
                let n = rest.iter().skip(3).take(6).position(|b| *b == b'}')?;
                ok(hex(3, n)?, n + 4, "escape")
            }
            b'u' => ok(hex(2, 4)?, 6, "escape"),
            b'0'..=b'3' => {
                let digits = rest.get(1..4)?;
                let v = digits.iter().try_fold(0u32, |acc, b| Some(acc << 3 | (*b as char).to_digit(8)?))?;
                ok(v, 4, "escape")
            }
            b'n' | b'r' => Some(('\n', 2, "escape")),
            b't' => Some(('\t', 2, "escape")),
            _ => None,
        },
        b'&' => {
            let end = rest.iter().take(12).position(|b| *b == b';')?;
            let name = rest.get(1..end)?;
            if let Some(number) = name.strip_prefix(b"#") {
                let (digits, base) = match number.strip_prefix(b"x").or_else(|| number.strip_prefix(b"X")) {
                    Some(h) => (h, 16),
                    None => (number, 10),
                };
                let v = u32::from_str_radix(std::str::from_utf8(digits).ok()?, base).ok()?;
                return ok(v, end + 1, "entity");
            }
            let c = match name {
                b"nbsp" | b"ensp" | b"emsp" | b"thinsp" => ' ',
                b"shy" | b"zwj" | b"zwnj" => '\u{200b}',
                b"eacute" | b"egrave" | b"ecirc" | b"euml" => 'e',
                b"aacute" | b"agrave" | b"acirc" | b"auml" | b"aring" | b"atilde" => 'a',
                b"oacute" | b"ograve" | b"ocirc" | b"ouml" | b"oslash" | b"otilde" => 'o',
                b"iacute" | b"igrave" | b"icirc" | b"iuml" | b"imath" => 'i',
                b"uacute" | b"ugrave" | b"ucirc" | b"uuml" => 'u',
                b"ntilde" => 'n',
                b"ccedil" => 'c',
                b"lt" => '<',
                b"gt" => '>',
                b"amp" => '&',
                b"quot" => '"',
                b"lowbar" => '_',
                _ => return None,
            };
            Some((c, end + 1, "entity"))
        }
        _ => None,
    }
}

/// Quoted-printable: `=49` and soft line breaks. Two of them close together make a view.
pub(crate) fn quoted_printable(text: &[u8], out: &mut Vec<View>) {
    const NEAR: usize = 200;
    const AROUND: usize = 96;
    let mut at = 0;
    while let Some((first, _)) = next_printable(text, at) {
        let mut last = first;
        let mut n = 1;
        let mut i = first + 1;
        while let Some((next, _)) = next_printable(text, i).filter(|(next, _)| next - last <= NEAR) {
            last = next;
            n += 1;
            i = next + 1;
        }
        let from = first.saturating_sub(AROUND).max(at);
        let from = (from..=first).find(|i| utf8_start(text, *i)).unwrap_or(first);
        let mut end = (last + AROUND).min(text.len());
        while !utf8_start(text, end) {
            end += 1;
        }
        at = end.max(first + 1);
        if n < 2 {
            continue;
        }
        let (mut bytes, mut points) = (Vec::with_capacity(end - from), vec![(0, from as u32)]);
        let mut i = from;
        while let Some((p, len)) = next_printable(text, i).filter(|(p, _)| *p < end) {
            bytes.extend_from_slice(text.get(i..p).unwrap_or_default());
            points.push((bytes.len() as u32, p as u32));
            let code = text.get(p + 1..p + 3).filter(|c| c.iter().all(u8::is_ascii_hexdigit));
            bytes.extend(code.and_then(|c| radix(c, 16)));
            i = p + len;
            points.push((bytes.len() as u32, i as u32));
        }
        bytes.extend_from_slice(text.get(i..end).unwrap_or_default());
        out.push(View::mapped("quoted-printable", bytes, points, (from, end), false));
    }
}

/// The next `=XX` or soft line break from `at` on, and its length.
fn next_printable(text: &[u8], mut at: usize) -> Option<(usize, usize)> {
    loop {
        let p = at + memchr::memchr(b'=', text.get(at..)?)?;
        match text.get(p + 1..).unwrap_or_default() {
            [b'\r', b'\n', ..] => return Some((p, 3)),
            [b'\n', ..] => return Some((p, 2)),
            [a, b, ..] if upper_hex(*a) && upper_hex(*b) => return Some((p, 3)),
            _ => at = p + 1,
        }
    }
}

fn upper_hex(b: u8) -> bool {
    b.is_ascii_digit() || (b'A'..=b'F').contains(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ascii85_views(text: &str) -> usize {
        let mut out = Vec::new();
        base85(text.as_bytes(), &mut out);
        out.len()
    }

    #[test]
    fn marks_that_share_a_byte_are_no_text_and_end_nothing() {
        for text in ["<~>", "<~", "~><~", "x<X<~>", "<~<~>", "<~~>"] {
            assert_eq!(ascii85_views(text), 0, "{text}");
        }
    }

    #[test]
    fn an_opening_long_before_does_not_hide_a_text() {
        let hidden = "<~87cURD]i,\"Ebo80~>";
        assert_eq!(ascii85_views(hidden), 1);
        assert_eq!(ascii85_views(&format!("<~{}{hidden}", "x".repeat(70_000))), 1);
    }
}
