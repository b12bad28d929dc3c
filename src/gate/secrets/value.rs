//! Where the value of a name stands: `name = value`, `"name": "value"`, `name: type = "value"`, `<name>value</name>`,
//! `key="name" value="value"`, `setName("value")`, `define('NAME', 'value')`.

/// The value that stands after a name at `start..end`: the rest of the identifier, a separator, perhaps quotes. The flag:
/// what stands around says where it ends.
pub(super) fn after(bytes: &[u8], start: usize, end: usize, ends: &mut Ends) -> Option<(usize, usize, bool)> {
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let mut i = end;
    let word = bytes
        .get(i..)?
        .iter()
        .take(33)
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
        .count();
    if word > 32 {
        return None;
    }
    i += word;
    if at(i) == b'>' && tag(bytes, start) {
        let end = ends.bare(bytes, i + 1);
        let closed = bytes.get(end..end + 2) == Some(b"</".as_slice());
        return (closed && end > i + 1).then_some((i + 1, end, true));
    }
    if at(i) == b'(' && setter(bytes, start) {
        return literal(bytes, i + 1, ends);
    }
    let closed = closers(bytes, i);
    i += closed + subscript(bytes, i + closed);
    if at(i) == b',' && closed > 0 && definition(bytes, start) {
        return literal(bytes, i + 1 + gap(bytes, i + 1), ends);
    }
    if closed > 0
        && let Some(next) = value_attribute(bytes, i)
    {
        i = next;
    }
    i += gap(bytes, i);
    i += match (at(i), at(i + 1)) {
        (b':', b'=') | (b'=', b'>') => 2,
        (b'=', b'=') => return None,
        (b':', _) => 1 + kind_of_value(bytes, i + 1),
        (b'=', _) => 1,
        _ => return None,
    };
    i += gap(bytes, i);
    literal(bytes, i, ends).or_else(|| {
        // A quote without its end is no value.
        let bare = !matches!(at(i + slashes(bytes, i)), b'"' | b'\'' | b'`');
        let end = if bare { ends.bare(bytes, i) } else { i };
        (end > i).then_some((i, end, false))
    })
}

/// A quoted value at `from`; in a text that is itself quoted, quotes are escaped.
fn literal(bytes: &[u8], from: usize, ends: &mut Ends) -> Option<(usize, usize, bool)> {
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let is_quote = |b: u8| matches!(b, b'"' | b'\'' | b'`');
    let mut i = from + slashes(bytes, from);
    // Of raw, byte and format strings.
    if i == from && matches!(at(i), b'b' | b'r' | b'u' | b'f' | b'L' | b'@') && is_quote(at(i + 1)) {
        i += 1;
    }
    let quote = at(i);
    if !is_quote(quote) {
        return None;
    }
    i += if at(i + 1) == quote && at(i + 2) == quote { 3 } else { 1 };
    let end = within(bytes, i, ends.quoted(bytes, i, quote)?);
    (end > i).then_some((i, end, true))
}

/// Bytes that are looked at before a name.
const BEFORE: usize = 40;

/// What stands before `start`, without the part of an identifier that leads to it.
fn before(bytes: &[u8], start: usize) -> &[u8] {
    let head = bytes.get(start.saturating_sub(BEFORE)..start).unwrap_or_default();
    let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':');
    head.get(..head.iter().rposition(|b| !part(b)).map_or(0, |at| at + 1)).unwrap_or_default()
}

/// Does the name stand in `<name>`?
fn tag(bytes: &[u8], start: usize) -> bool {
    before(bytes, start).ends_with(b"<")
}

/// Is the name what a method sets: `setPassword(`?
fn setter(bytes: &[u8], start: usize) -> bool {
    let head = |len: usize| bytes.get(start.saturating_sub(len)..start).unwrap_or_default();
    head(3).eq_ignore_ascii_case(b"set") || head(4).eq_ignore_ascii_case(b"set_")
}

/// Is the name the first argument of a call that defines something: `define('NAME'`, `setenv("NAME"`?
fn definition(bytes: &[u8], start: usize) -> bool {
    const CALLS: [&[u8]; 4] = [b"define", b"setenv", b"setproperty", b"setdefault"];
    let head = before(bytes, start).trim_ascii_end();
    let Some(head) = head.strip_suffix(b"\"").or_else(|| head.strip_suffix(b"'")) else { return false };
    let head = head.strip_suffix(b"\\").unwrap_or(head).trim_ascii_end();
    head.strip_suffix(b"(").is_some_and(|head| {
        CALLS.iter().any(|call| {
            head.len()
                .checked_sub(call.len())
                .and_then(|at| head.get(at..))
                .is_some_and(|word| word.eq_ignore_ascii_case(call))
        })
    })
}

/// Where the separator of a `value` attribute or member stands that follows a quoted name at `from`:
/// `key="name" value=`, `"name": "NAME", "value":`.
fn value_attribute(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let between = |b: &u8| b.is_ascii_whitespace() || matches!(b, b',' | b'"' | b'\'' | b'\\');
    let lead = rest.iter().take(16).take_while(|b| between(b)).count();
    let word = rest.get(lead..lead + 5)?;
    if lead == 0 || !word.eq_ignore_ascii_case(b"value") {
        return None;
    }
    let next = from + lead + 5;
    Some(next + closers(bytes, next))
}

/// `[]` or `[32]`, how long it is.
fn subscript(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let digits = rest.iter().skip(1).take(6).take_while(|b| b.is_ascii_digit()).count();
    if rest.first() == Some(&b'[') && rest.get(digits + 1) == Some(&b']') { digits + 2 } else { 0 }
}

/// How long a type and the `=` behind it are, before a string: ` str =`, ` &'static str =`, ` Option<String> =`.
fn kind_of_value(bytes: &[u8], from: usize) -> usize {
    /// Longest type, in bytes.
    const TYPE: usize = 48;
    let rest = bytes.get(from..).unwrap_or_default();
    // Without digits, so that no value passes for a type.
    let part = |b: &u8| {
        b.is_ascii_alphabetic()
            || matches!(b, b' ' | b'_' | b'&' | b'\'' | b'<' | b'>' | b'[' | b']' | b'|' | b'.' | b'?' | b':')
    };
    let len = rest.iter().take(TYPE).take_while(|b| part(b)).count();
    let starts =
        rest.iter().take(TYPE).find(|b| **b != b' ').is_some_and(|b| b.is_ascii_alphabetic() || *b == b'&');
    if !starts || rest.get(len) != Some(&b'=') {
        return 0;
    }
    let gap = gap(bytes, from + len + 1);
    let string = rest.get(len + 1 + gap..).unwrap_or_default();
    let prefixed = matches!(string, [b'b' | b'r' | b'u' | b'f' | b'L' | b'@', b'"' | b'\'', ..]);
    if prefixed || matches!(string, [b'"' | b'\'' | b'`' | b'\\', ..]) { len + 1 } else { 0 }
}

/// Backslashes at `from`, of which an escape inside of escapes has a few.
fn slashes(bytes: &[u8], from: usize) -> usize {
    bytes.get(from..).unwrap_or_default().iter().take(7).take_while(|b| **b == b'\\').count()
}

/// How long the quotes and the bracket are that close a name at `from`; quotes may be escaped.
fn closers(bytes: &[u8], from: usize) -> usize {
    let mut i = from;
    for _ in 0..3 {
        let slashes = slashes(bytes, i);
        i += match bytes.get(i + slashes) {
            Some(b'"' | b'\'' | b'`') => slashes + 1,
            Some(b']') if slashes == 0 => 1,
            _ => break,
        };
    }
    i - from
}

/// Blanks and tabs at `from`, a tab perhaps written as an escape.
fn gap(bytes: &[u8], from: usize) -> usize {
    let mut i = from;
    while i < from + 8 {
        i += match (bytes.get(i), bytes.get(i + 1)) {
            (Some(b' ' | b'\t'), _) => 1,
            (Some(b'\\'), Some(b't')) => 2,
            _ => break,
        };
    }
    i - from
}

/// Does an escape of a JSON or C string begin here that no bare value goes on behind? Other backslashes stand in paths
/// and expressions.
fn escape(rest: &[u8]) -> bool {
    matches!(rest, [b'\\', b'n' | b'r' | b't' | b'u' | b'x' | b'0' | b'"' | b'\'' | b'`' | b'\\', ..])
}

/// The end of a quoted value at `from..end`: at a line end or a tab that is written as an escape, and without the
/// backslashes of an escaped quote.
fn within(bytes: &[u8], from: usize, end: usize) -> usize {
    let value = bytes.get(from..end.min(from + GENERIC_VALUE)).unwrap_or_default();
    let breaks = |at: &usize| matches!(value.get(at + 1), Some(b'n' | b'r' | b't'));
    if let Some(at) = memchr::memchr_iter(b'\\', value).find(breaks) {
        return from + at;
    }
    let value = bytes.get(from..end).unwrap_or_default();
    end - value.iter().rev().take(7).take_while(|b| **b == b'\\').count()
}

/// Longest value that is read, in bytes.
const VALUE: usize = 8192;
/// Longest value that a generic name marks, in bytes.
pub(super) const GENERIC_VALUE: usize = 512;

/// Where values end. Many names may stand before one value: each byte of it is read once.
#[derive(Default)]
pub(super) struct Ends {
    bare: (usize, usize),
    /// For the quotes `"`, `'` and a backtick: up to where no end is, and the end if one is known.
    quoted: [(usize, usize, Option<usize>); 3],
}

impl Ends {
    /// The end of an unquoted value at `from`.
    fn bare(&mut self, bytes: &[u8], from: usize) -> usize {
        let stops = |b: &u8| {
            b.is_ascii_whitespace()
                || matches!(b, b'"' | b'\'' | b'`' | b',' | b';' | b'<' | b'>')
                || matches!(b, b'(' | b')' | b'{' | b'}' | b'[' | b']' | b'|' | b'&')
        };
        let (start, end) = self.bare;
        if !(start..end).contains(&from) {
            let rest = bytes.get(from..).unwrap_or_default();
            let ends =
                |at: usize, b: &u8| stops(b) || (*b == b'\\' && escape(rest.get(at..).unwrap_or_default()));
            let len = rest.iter().enumerate().take(VALUE).take_while(|&(at, b)| !ends(at, b)).count();
            self.bare = (from, from + len);
        }
        self.bare.1
    }

    /// The closing quote of a value at `from`, on the same line.
    fn quoted(&mut self, bytes: &[u8], from: usize, quote: u8) -> Option<usize> {
        let slot = self.quoted.get_mut(match quote {
            b'"' => 0,
            b'\'' => 1,
            _ => 2,
        })?;
        let (start, clear, end) = *slot;
        let known = (start..=clear).contains(&from);
        if known && let Some(end) = end {
            return bytes.get(end).filter(|b| **b == quote).map(|_| end);
        }
        let search = if known { clear } else { from };
        let limit = (from + VALUE).min(bytes.len());
        let rest = bytes.get(search..limit).unwrap_or_default();
        let found = memchr::memchr2(quote, b'\n', rest).map(|at| search + at);
        *slot = (from, found.unwrap_or(limit), found);
        found.filter(|at| bytes.get(*at) == Some(&quote))
    }
}
