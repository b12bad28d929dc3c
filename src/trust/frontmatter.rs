//! The YAML head of a Markdown file (agents, commands, skills, rules), read the way the client reads it.

use super::yaml;
use crate::untrusted::Untrusted;
use serde_json::Value;

/// A Markdown file in its parts.
#[derive(Debug)]
pub struct Document {
    /// Every head that a client could see, parsed: none, one, or two when the client's own two readings differ.
    pub heads: Vec<Untrusted<Value>>,
    /// Why the head between the two `---` lines could not be parsed.
    pub malformed: Option<&'static str>,
    /// What follows the first possible end of the head.
    pub body: Untrusted<String>,
}

/// Splits and parses `bytes`. Invalid UTF-8 is replaced, UTF-16 with a BOM is decoded, as the client does.
///
/// The client (2.1.332) ends a head at a `---` line in one place and at the first `---` anywhere in another, so both
/// are read. A head that is no YAML is tried again with its one-line values quoted, because the client does that too
/// and descriptions with `: ` in them are common.
pub fn read(bytes: &Untrusted<impl AsRef<[u8]>>) -> Document {
    let text = decode(bytes.inspect().as_ref());
    let Some(rest) = after_opening(&text) else {
        return Document { heads: Vec::new(), malformed: None, body: Untrusted::new(text) };
    };
    let line = closing_line(rest);
    let anywhere = rest.find("---").map(|at| (at, at + 3));
    let mut heads = Vec::new();
    let mut malformed = None;
    if let Some((end, _)) = line {
        match parse_head(rest.get(..end).unwrap_or_default()) {
            Ok(head) => heads.push(head),
            Err(reason) => malformed = Some(reason),
        }
    }
    // What only the loose reading sees is often a horizontal rule, which is no YAML for the client either.
    if let Some((end, _)) = anywhere.filter(|(end, _)| line.is_none_or(|(other, _)| other != *end)) {
        heads.extend(parse_head(rest.get(..end).unwrap_or_default()).ok());
    }
    let body = line.into_iter().chain(anywhere).map(|(_, next)| next).min().unwrap_or(0);
    Document { heads, malformed, body: Untrusted::new(rest.get(body..).unwrap_or_default().to_owned()) }
}

fn parse_head(head: &str) -> Result<Untrusted<Value>, &'static str> {
    yaml::parse(&Untrusted::new(head)).or_else(|first| {
        // Only a document that is no YAML gets a second reading: one with an alias or a duplicate key is YAML to the
        // client, and quoting would hide what it says.
        if first == "not YAML" { yaml::parse(&Untrusted::new(quote_values(head))) } else { Err(first) }
    })
}

/// Text of a file a client shows to a model: BOM removed, UTF-16 decoded, invalid sequences replaced.
pub fn decode(bytes: &[u8]) -> String {
    let wide = |little: bool| {
        let units = bytes.get(2..).unwrap_or_default().chunks(2).map(|pair| match *pair {
            [a, b] if little => u16::from_le_bytes([a, b]),
            [a, b] => u16::from_be_bytes([a, b]),
            _ => 0xfffd,
        });
        char::decode_utf16(units).map(|r| r.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xff, 0xfe, ..] => wide(true),
        [0xfe, 0xff, ..] => wide(false),
        _ => {
            let text = String::from_utf8_lossy(bytes);
            text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()
        }
    }
}

/// What follows an opening `---` line.
fn after_opening(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("---")?;
    let start = rest.find('\n')? + 1;
    rest.get(..start)?.trim().is_empty().then(|| rest.get(start..))?
}

/// Where the first `---` line starts, and where the next line does.
fn closing_line(rest: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        let next = at + line.len();
        if line.strip_prefix("---").is_some_and(|tail| tail.trim().is_empty()) {
            return Some((at, next));
        }
        at = next;
    }
    None
}

/// The head with the value of each `key: value` line in double quotes.
fn quote_values(head: &str) -> String {
    let mut out = String::with_capacity(head.len() + 64);
    for line in head.lines() {
        let key_end = line.find(':').unwrap_or(0);
        let (key, value) = line.split_at(key_end);
        let value = value.strip_prefix(':').unwrap_or(value);
        let simple_key =
            !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let text = value.trim();
        let quoted = text.starts_with(['"', '\'', '|', '>']);
        if simple_key && value.starts_with([' ', '\t']) && !text.is_empty() && !quoted {
            out.push_str(key);
            out.push_str(": \"");
            for c in text.chars() {
                if matches!(c, '"' | '\\') {
                    out.push('\\');
                }
                out.push(c);
            }
            out.push('"');
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Value {
        match read(&Untrusted::new(text.as_bytes())).heads.as_slice() {
            [] => Value::Null,
            [first, ..] => first.inspect().clone(),
        }
    }

    #[test]
    fn a_file_without_a_head_is_all_body() {
        assert_eq!(head("# Title\n---\nx: 1\n---\n"), Value::Null);
        assert_eq!(head("---\nnever closed\n"), Value::Null);
        assert_eq!(head("--- x\na: 1\n---\n"), Value::Null);
    }

    #[test]
    fn a_head_with_windows_line_ends_and_a_bom_is_read() {
        assert_eq!(head("\u{feff}---\r\nname: a\r\n---\r\nbody")["name"], "a");
    }

    #[test]
    fn an_unquoted_colon_in_a_description_is_rescued_as_the_client_does() {
        let got = head("---\nname: a\ndescription: Use when: it \"fails\"\nallowed-tools: *\n---\n");
        assert_eq!(got["description"], "Use when: it \"fails\"");
        assert_eq!(got["allowed-tools"], "*");
    }

    #[test]
    fn a_head_that_ends_in_the_middle_of_a_line_is_seen() {
        assert_eq!(
            head("---\npermissionMode: bypassPermissions ---\nbody\n")["permissionMode"],
            "bypassPermissions"
        );
    }

    #[test]
    fn both_readings_of_the_end_are_kept() {
        let text = "---\na: 1\nb: x---y\nhooks: z\n---\nbody";
        let document = read(&Untrusted::new(text.as_bytes()));
        assert_eq!(document.heads.len(), 2);
        assert!(document.body.inspect().starts_with("y\nhooks"));
    }

    #[test]
    fn utf16_is_decoded() {
        let mut bytes = vec![0xff, 0xfe];
        bytes.extend("---\nname: w\n---\n".encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(read(&Untrusted::new(bytes)).heads[0].inspect()["name"], "w");
    }
}
