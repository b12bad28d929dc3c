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
    let mut plain = String::with_capacity(LOOK);
    let mut rest = dest;
    let mut steps = 0;
    while plain.len() < LOOK {
        steps += 1;
        if steps > LOOK * 4 {
            return Target::Outside;
        }
        let Some((c, width)) = next_plain(rest) else { break };
        rest = rest.get(width..).unwrap_or_default();
        if c.is_control() || c.is_whitespace() || super::is_bypass(c) {
            continue;
        }
        plain.push(c.to_ascii_lowercase());
        if plain.len() == 2 && plain.bytes().all(|b| b == b'/' || b == b'\\') {
            return Target::Outside;
        }
        match c {
            ':' => {
                let scheme = plain.strip_suffix(':').unwrap_or_default();
                if scheme.is_empty() {
                    return Target::Outside;
                }
                if KNOWN.contains(&scheme) {
                    // `data: string` in a parameter list.
                    return if rest.is_empty() { Target::Unknown } else { Target::Outside };
                }
                let valid = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                    && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
                return match (valid, next_plain(rest)) {
                    (false, _) => Target::Relative,
                    (true, Some((':', _)) | None) => Target::Unknown,
                    (true, Some((c, _))) if c.is_whitespace() => Target::Unknown,
                    (true, Some(_)) => Target::Outside,
                };
            }
            '/' | '\\' if plain.len() > 1 => return Target::Relative,
            '?' | '#' => return Target::Relative,
            _ => {}
        }
    }
    Target::Relative
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
    let first = body.as_bytes().first()?;
    let (name, c) =
        NAMED.iter().find(|(name, _)| name.as_bytes().first() == Some(first) && body.starts_with(name))?;
    let semicolon = body.as_bytes().get(name.len()) == Some(&b';');
    // Only the oldest names work without their semicolon.
    let legacy = matches!(*name, "lt" | "LT" | "gt" | "GT" | "amp" | "AMP" | "nbsp" | "shy");
    (semicolon || legacy).then_some((*c, 1 + name.len() + usize::from(semicolon)))
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
    host.bytes().all(plain) && !dest.contains(['\\', '\n', '\t', '<', '>', '"']) && policy.allows(host)
}
