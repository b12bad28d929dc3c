//! Paths and code as those who apply and run them read them.

use unicode_normalization::UnicodeNormalization;

/// A name as git writes it: in double quotes with the escapes of C, or bare.
pub(super) fn unquoted(text: &str) -> String {
    quoted(text).map_or_else(|| text.trim_end().to_string(), |(name, _)| name)
}

/// The name at the start of `text` when it stands in quotes, and what follows it. Bytes that are no UTF-8 become U+FFFD.
fn quoted(text: &str) -> Option<(String, &str)> {
    let body = text.strip_prefix('"')?;
    let bytes = body.as_bytes();
    let mut out: Vec<u8> = Vec::new();
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            b'"' => {
                let rest = body.get(at + 1..).unwrap_or_default();
                return Some((String::from_utf8_lossy(&out).into_owned(), rest));
            }
            b'\\' => {
                let (byte, width) = match *bytes.get(at + 1)? {
                    b'a' => (7, 2),
                    b'b' => (8, 2),
                    b't' => (9, 2),
                    b'n' => (10, 2),
                    b'v' => (11, 2),
                    b'f' => (12, 2),
                    b'r' => (13, 2),
                    b'0'..=b'7' => {
                        let digits =
                            bytes.get(at + 1..)?.iter().take(3).take_while(|b| matches!(b, b'0'..=b'7'));
                        let value = digits.clone().fold(0u32, |n, b| n * 8 + u32::from(b - b'0'));
                        ((value & 0xFF) as u8, 1 + digits.count())
                    }
                    other => (other, 2),
                };
                out.push(byte);
                at += width;
            }
            b => {
                out.push(b);
                at += 1;
            }
        }
    }
}

/// The paths of a `diff --git` line: where it can be cut in more than one way, those of every way.
pub(super) fn of_git_line(line: &str) -> Vec<String> {
    let line = line.trim_end();
    if line.contains('"') {
        let mut paths = Vec::new();
        let mut rest = line;
        while !rest.is_empty() {
            match quoted(rest) {
                Some((name, after)) => {
                    paths.push(name);
                    rest = after.trim_start();
                }
                None => {
                    let end = rest.find(" \"").unwrap_or(rest.len());
                    paths.push(rest.get(..end).unwrap_or_default().to_string());
                    rest = rest.get(end..).unwrap_or_default().trim_start();
                }
            }
        }
        return paths;
    }
    // Equal halves, behind the prefixes: the name of both sides.
    let middle = line.len() / 2;
    if let (Some(old), Some(new), Some(" ")) =
        (line.get(..middle), line.get(middle + 1..), line.get(middle..=middle))
    {
        let bare = |half: &str| half.split_once('/').map_or(half.to_string(), |(_, rest)| rest.to_string());
        if old == new || bare(old) == bare(new) {
            return vec![old.to_string(), new.to_string()];
        }
    }
    match line.find(" b/") {
        Some(at) => vec![
            line.get(..at).unwrap_or_default().to_string(),
            line.get(at + 1..).unwrap_or_default().to_string(),
        ],
        None => line.split(' ').map(str::to_string).collect(),
    }
}

/// A path as the file systems that fold most see it: lower case, one form for each letter, nothing invisible, no blanks and
/// dots at the end of a part, no empty parts.
pub(super) fn plain(path: &str) -> String {
    let folded: String = letters(path);
    let part = |part: &str| match part {
        "." | ".." => part.to_string(),
        part => part.split(':').next().unwrap_or_default().trim_end_matches([' ', '.']).to_string(),
    };
    let parts: Vec<String> =
        folded.split(['/', '\\']).map(part).filter(|part| !part.is_empty() && part != ".").collect();
    parts.join("/")
}

/// Code as a compiler reads its names: compatibility forms folded, escapes in identifiers read, blanks before an opening
/// parenthesis gone, lower case.
pub(super) fn code(line: &str) -> String {
    if line.is_ascii() && !line.contains('\\') && !line.contains(" (") && !line.contains("\t(") {
        return line.to_ascii_lowercase();
    }
    let text = letters(&unescaped(line));
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '(' {
            out.truncate(out.trim_end_matches([' ', '\t']).len());
        }
        out.push(c);
    }
    out
}

/// `\u0065` and `\u{65}` read, where they spell a character that shows.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\u") {
        out.push_str(rest.get(..at).unwrap_or_default());
        let digits = rest.get(at + 2..).unwrap_or_default();
        let (hex, width) = match digits.strip_prefix('{') {
            Some(inner) => {
                let len = inner.bytes().take(8).take_while(u8::is_ascii_hexdigit).count();
                (inner.get(..len), len + 4)
            }
            None => (digits.get(..4), 6),
        };
        let c = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
        match (c.filter(char::is_ascii_graphic), rest.get(at + width..)) {
            (Some(c), Some(after)) => {
                out.push(c);
                rest = after;
            }
            _ => {
                out.push_str("\\u");
                rest = digits;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Lower-case letters without look-alikes and without what shows nothing.
fn letters(text: &str) -> String {
    if text.bytes().all(|b| matches!(b, b' '..=b'~' | b'\t')) {
        return text.to_ascii_lowercase();
    }
    text.chars()
        .filter(|c| !crate::envelope::invisible(*c) || *c == '\t')
        .map(crate::envelope::fold)
        .nfkc()
        .map(crate::envelope::fold)
        .collect::<String>()
        .to_lowercase()
}
