//! The YAML head of a Markdown file (agents, commands, skills, rules), read the way the client reads it.

use super::yaml;
use crate::untrusted::Untrusted;
use serde_json::Value;

/// The longest head that is parsed, in bytes. The client (2.1.332) leaves a longer one of an untrusted file unread too.
pub const MAX_HEAD: usize = 65_536;

/// A Markdown file in its parts.
#[derive(Debug)]
pub struct Document {
    /// Every head that a client could see, parsed: none, or several when the client's readings differ.
    pub heads: Vec<Untrusted<Value>>,
    /// Why a head, or the file, could not be read as a client reads it.
    pub malformed: Option<&'static str>,
    /// The whole text. Where the head ends depends on the reading, so the body is looked for in all of it.
    pub text: Untrusted<String>,
}

/// Splits and parses `bytes`. Invalid UTF-8 is replaced, as the client does. UTF-16 is malformed: the client reads it
/// as UTF-8, an editor does not.
///
/// The client (2.1.332) ends a head at a `---` line in one place and at the first `---` anywhere in another, so both
/// are read. A head that is no YAML is tried again with its one-line values quoted, because the client does that too
/// and descriptions with `: ` in them are common.
pub fn read(bytes: &Untrusted<impl AsRef<[u8]>>) -> Document {
    let bytes = bytes.inspect().as_ref();
    let text = decode(bytes);
    let mut document = Document {
        heads: Vec::new(),
        malformed: utf16(bytes).then_some("UTF-16 text"),
        text: Untrusted::new(text.clone()),
    };
    let Some(rest) = after_opening(&text) else { return document };
    let line = closing_line(rest);
    let anywhere = rest.find("---");
    for end in line.into_iter().chain(anywhere.filter(|end| Some(*end) != line)) {
        match parse_head(rest.get(..end).unwrap_or_default()) {
            Ok(heads) => document.heads.extend(heads),
            Err(reason) => document.malformed = Some(reason),
        }
    }
    document
}

/// True for text that starts with the byte order mark of UTF-16.
pub fn utf16(bytes: &[u8]) -> bool {
    matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..])
}

fn parse_head(head: &str) -> Result<Vec<Untrusted<Value>>, &'static str> {
    if head.len() > MAX_HEAD {
        return Err("a head larger than 64 KiB");
    }
    match yaml::parse(&Untrusted::new(head)) {
        Ok(value) => Ok(vec![value]),
        // Only a document that is no YAML gets a second reading: one with an alias or a duplicate key is YAML to the
        // client, and quoting would hide what it says. The client keeps a one-line list as it is; whether it takes
        // one for a list is up to its parser, so it is read both ways.
        Err("not YAML") => {
            let kept = yaml::parse(&Untrusted::new(quote_values(head, true)));
            let quoted = yaml::parse(&Untrusted::new(quote_values(head, false)));
            match (kept, quoted) {
                (Err(reason), Err(_)) => Err(reason),
                (kept, quoted) => Ok(kept.into_iter().chain(quoted).collect()),
            }
        }
        Err(reason) => Err(reason),
    }
}

/// Text of a file a client shows to a model: BOM removed, invalid sequences replaced.
pub fn decode(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()
}

/// White space as JavaScript's `\s` has it: with U+FEFF and without U+0085, unlike Rust's.
pub(crate) fn js_space(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

/// What follows an opening `---` line.
fn after_opening(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("---")?;
    let start = rest.find('\n')? + 1;
    rest.get(..start)?.chars().all(js_space).then(|| rest.get(start..))?
}

/// Where the first `---` line starts.
fn closing_line(rest: &str) -> Option<usize> {
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.strip_prefix("---").is_some_and(|tail| tail.chars().all(js_space)) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

/// The head with the value of each `key: value` line in double quotes, and leading tabs as spaces. `keep_lists` leaves
/// values in brackets alone.
fn quote_values(head: &str, keep_lists: bool) -> String {
    let mut out = String::with_capacity(head.len() + 64);
    for line in head.lines() {
        let tabs = line.len() - line.trim_start_matches('\t').len();
        out.push_str(&"  ".repeat(tabs));
        let line = line.get(tabs..).unwrap_or_default();
        let key_end = line.find(':').unwrap_or(0);
        let (key, value) = line.split_at(key_end);
        let value = value.strip_prefix(':').unwrap_or(value);
        let simple_key =
            !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let text = value.trim_matches(js_space);
        let ends =
            |open: char, close: char| text.len() > 1 && text.starts_with(open) && text.ends_with(close);
        let left = ends('"', '"') || ends('\'', '\'') || (keep_lists && ends('[', ']'));
        if tabs == 0 && simple_key && value.starts_with(js_space) && !text.is_empty() && !left {
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
        let heads: Vec<&Value> = document.heads.iter().map(Untrusted::inspect).collect();
        assert_eq!(
            heads,
            [
                &serde_json::json!({"a": 1, "b": "x---y", "hooks": "z"}),
                &serde_json::json!({"a": 1, "b": "x"})
            ]
        );
        assert!(document.text.inspect().ends_with("y\nhooks: z\n---\nbody"));
    }

    #[test]
    fn what_only_the_loose_reading_sees_is_an_error_when_it_cannot_be_judged() {
        for text in
            ["---\nd: &a x\nx: *a\ntools: Bash ---\n", "---\na: [\nb ---\n", "---\n<<: {tools: Bash}\n---\n"]
        {
            assert!(read(&Untrusted::new(text.as_bytes())).malformed.is_some(), "{text:?}");
        }
    }

    #[test]
    fn a_list_in_a_head_that_needs_quoting_is_read_as_a_list_too() {
        let document = read(&Untrusted::new("---\nd: a: b: c\nallowed-tools: [Bash]\n---\n"));
        let tools: Vec<String> =
            document.heads.iter().map(|h| h.inspect()["allowed-tools"].to_string()).collect();
        assert_eq!(tools, ["[\"Bash\"]", "\"[Bash]\""]);
    }

    #[test]
    fn white_space_is_that_of_the_client() {
        assert_eq!(head("---\u{feff}\ntools: Bash\n---\n")["tools"], "Bash");
        assert_eq!(head("---\u{85}\ntools: Bash\n---\n"), Value::Null);
    }

    #[test]
    fn utf16_and_an_endless_head_are_errors() {
        let mut bytes = vec![0xff, 0xfe];
        bytes.extend("---\nname: w\n---\n".encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(read(&Untrusted::new(bytes)).malformed, Some("UTF-16 text"));
        let head = |n: usize| format!("---\n{}\n---\n", "#".repeat(n - 1));
        assert!(read(&Untrusted::new(head(MAX_HEAD))).malformed.is_none());
        assert!(read(&Untrusted::new(head(MAX_HEAD + 1))).malformed.is_some());
    }
}
