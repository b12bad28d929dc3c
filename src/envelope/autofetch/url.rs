//! What a destination points at, read the way renderers read it.

use super::Policy;

/// Where a destination leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// Stays where the document is: relative path, fragment, nothing.
    Relative,
    /// A scheme that is no known one, written directly before `::` or spaces, as code does (`std::string`).
    Unknown,
    /// Leads somewhere: a scheme, or `//host`.
    Outside,
}

/// Schemes that a renderer acts on, or that an operating system hands to a program.
const KNOWN: &[&str] = &[
    "http",
    "https",
    "ws",
    "wss",
    "ftp",
    "ftps",
    "sftp",
    "file",
    "data",
    "javascript",
    "vbscript",
    "livescript",
    "blob",
    "mailto",
    "tel",
    "sms",
    "ssh",
    "git",
    "svn",
    "ldap",
    "smb",
    "cid",
    "mid",
    "about",
    "view-source",
    "chrome",
    "vscode",
    "vscode-insiders",
    "cursor",
    "ms-msdt",
    "search-ms",
    "jar",
    "feed",
    "intent",
    "magnet",
    "irc",
    "x-apple",
    "itms",
    "slack",
    "zoommtg",
    "steam",
    "gopher",
    "dict",
    "tftp",
    "rtsp",
    "filesystem",
    "resource",
    "ms-word",
    "ms-excel",
];

/// Characters of a destination that are looked at for its scheme; a destination that hides it longer leads outside.
const LOOK: usize = 80;

/// Reads the start of `dest` as Markdown (backslash escapes, entities) and URL parsers (percent escapes, dropped tabs
/// and line ends, backslash as slash) do, and says where it leads. Looks at no more than a bounded number of bytes.
pub(super) fn target(dest: &str) -> Target {
    let mut scheme = [0u8; LOOK];
    let (mut len, mut slashes) = (0, 0);
    let mut rest = dest;
    for _ in 0..LOOK * 4 {
        let Some((c, width)) = next_plain(rest) else { return Target::Relative };
        rest = rest.get(width..).unwrap_or_default();
        if c.is_control() || c.is_whitespace() || super::is_bypass(c) {
            continue;
        }
        match c.to_ascii_lowercase() {
            '/' | '\\' if len == 0 => {
                slashes += 1;
                if slashes == 2 {
                    return Target::Outside;
                }
            }
            // What begins with a slash has no scheme.
            _ if slashes > 0 => return Target::Relative,
            ':' => return schemed(scheme.get(..len).unwrap_or_default(), rest),
            c @ ('a'..='z' | '0'..='9' | '+' | '-' | '.') if len > 0 || c.is_ascii_alphabetic() => {
                match scheme.get_mut(len) {
                    Some(place) => *place = c as u8,
                    None => return Target::Relative,
                }
                len += 1;
            }
            // No scheme holds another character.
            _ => return Target::Relative,
        }
    }
    Target::Outside
}

/// Is it a scheme that a renderer or an operating system acts on?
pub(super) fn is_known(scheme: &str) -> bool {
    KNOWN.iter().any(|known| known.eq_ignore_ascii_case(scheme))
}

/// Where a destination leads whose scheme ends before `rest`.
fn schemed(scheme: &[u8], rest: &str) -> Target {
    if scheme.is_empty() {
        return Target::Outside;
    }
    if KNOWN.iter().any(|known| known.as_bytes() == scheme) {
        // `data: string` in a parameter list.
        return if rest.is_empty() { Target::Unknown } else { Target::Outside };
    }
    match next_plain(rest) {
        Some((':', _)) | None => Target::Unknown,
        Some((c, _)) if c.is_whitespace() => Target::Unknown,
        Some(_) => Target::Outside,
    }
}

/// The next character as a parser would see it, and how many bytes spell it.
fn next_plain(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    match first {
        '%' => {
            let value = text.get(1..3).and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(u8::is_ascii);
            Some(value.map_or((first, 1), |b| (char::from(b), 3)))
        }
        '&' => Some(entity(text).unwrap_or((first, 1))),
        '\\' => match text.get(1..2).map(str::as_bytes) {
            Some([b]) if b.is_ascii_punctuation() => Some((char::from(*b), 2)),
            _ => Some((first, 1)),
        },
        _ => Some((first, first.len_utf8())),
    }
}

/// A character reference at the start of `text`: any numeric one, and the named ones for characters that a scheme,
/// an authority or white space can hold. The closing semicolon may be missing, as HTML allows.
pub(crate) fn entity(text: &str) -> Option<(char, usize)> {
    const NAMED: &[(&str, char)] = &[
        ("colon", ':'),
        ("sol", '/'),
        ("bsol", '\\'),
        ("Tab", '\t'),
        ("NewLine", '\n'),
        ("period", '.'),
        ("plus", '+'),
        ("percnt", '%'),
        ("num", '#'),
        ("quest", '?'),
        ("commat", '@'),
        ("lpar", '('),
        ("rpar", ')'),
        ("lsqb", '['),
        ("lbrack", '['),
        ("rsqb", ']'),
        ("rbrack", ']'),
        ("excl", '!'),
        ("nbsp", '\u{a0}'),
        ("shy", '\u{ad}'),
        ("ZeroWidthSpace", '\u{200b}'),
        ("lt", '<'),
        ("LT", '<'),
        ("gt", '>'),
        ("GT", '>'),
        ("amp", '&'),
        ("AMP", '&'),
        ("vert", '|'),
        ("verbar", '|'),
        ("VerticalLine", '|'),
        ("lowbar", '_'),
        ("hyphen", '-'),
    ];
    const LONGEST: usize = 14;
    const OLDEST: &[(&str, char)] = &[
        ("lt", '<'),
        ("LT", '<'),
        ("gt", '>'),
        ("GT", '>'),
        ("amp", '&'),
        ("AMP", '&'),
        ("nbsp", '\u{a0}'),
        ("shy", '\u{ad}'),
    ];
    let body = text.strip_prefix('&')?;
    if let Some(number) = body.strip_prefix('#') {
        let (radix, digits, lead) = match number.strip_prefix(['x', 'X']) {
            Some(digits) => (16, digits, 3),
            None => (10, number, 2),
        };
        // Leading zeros are legal without limit; sixteen digits are more than any writer needs.
        let len = digits.bytes().take(16).take_while(|b| char::from(*b).is_digit(radix)).count();
        let value = u32::from_str_radix(digits.get(..len).filter(|d| !d.is_empty())?, radix).ok()?;
        let semicolon = usize::from(digits.as_bytes().get(len) == Some(&b';'));
        return Some((char::from_u32(value).unwrap_or('\u{fffd}'), lead + len + semicolon));
    }
    let len = body.bytes().take(LONGEST + 1).take_while(u8::is_ascii_alphabetic).count();
    let name = body.get(..len)?;
    if body.as_bytes().get(len) == Some(&b';')
        && let Some((_, c)) = NAMED.iter().find(|(known, _)| *known == name)
    {
        return Some((*c, len + 2));
    }
    // The oldest names work without their semicolon.
    OLDEST.iter().find(|(known, _)| name.starts_with(known)).map(|(known, c)| (*c, 1 + known.len()))
}

/// May a link to `dest` stay: https, a plain host of the allowlist, no user part, no escapes before the path.
pub(super) fn allowed(dest: &str, policy: &Policy) -> bool {
    if policy.allow_hosts.is_empty() {
        return false;
    }
    let Some(rest) = dest.strip_prefix("https://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.strip_suffix(":443").unwrap_or(host);
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'-';
    let named = host.starts_with(|c: char| c.is_ascii_alphanumeric());
    named
        && host.bytes().all(plain)
        && !dest.contains(['\\', '\n', '\t', '<', '>', '"'])
        && policy.allows(host)
}
