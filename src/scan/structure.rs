//! Rules over parsed metadata: front matter is read by a YAML or TOML parser, not by a regular expression, so that quoting,
//! lists, order of keys, comments and flow style make no difference.

use saphyr_parser::{Event, Parser};
use toml::de::{DeTable, DeValue};

/// The longest front matter that is read, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// The most events of the parser that are read.
const MAX_EVENTS: usize = 20_000;

/// Where front matter grants every tool: byte ranges of the values. Front matter begins in the first line, with or
/// without a byte order mark, and is closed.
pub(crate) fn wildcard_tools(text: &[u8]) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    if let Some((offset, head)) = front_matter(text, "+++") {
        return in_toml(offset, head);
    }
    let Some((offset, head)) = front_matter(text, "---") else { return out };
    // The key whose value comes next, at the outermost level, and how deep the parser is.
    let (mut key, mut depth, mut expects_key) = (None::<bool>, 0usize, true);
    for event in Parser::new_from_str(head).take(MAX_EVENTS) {
        // What cannot be parsed no client reads either.
        let Ok((event, span)) = event else { break };
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => depth += 1,
            Event::MappingEnd | Event::SequenceEnd => {
                depth = depth.saturating_sub(1);
                if depth <= 1 {
                    (key, expects_key) = (None, true);
                }
            }
            Event::Scalar(word, ..) if depth == 1 && expects_key => {
                key = Some(grants(&word));
                expects_key = false;
            }
            Event::Scalar(value, ..) => {
                if key == Some(true) && value.split([',', ' ']).any(everything) {
                    let byte = |chars| head.char_indices().nth(chars).map_or(head.len(), |(at, _)| at);
                    let (start, end) = (byte(span.start.index()), byte(span.end.index()));
                    out.push((offset + start, offset + end.max(start + 1)));
                }
                if depth == 1 {
                    (key, expects_key) = (None, true);
                }
            }
            Event::Alias(_) if depth == 1 => (key, expects_key) = (None, true),
            _ => {}
        }
    }
    out
}

fn in_toml(offset: usize, head: &str) -> Vec<(usize, usize)> {
    // What cannot be parsed no client reads either.
    let Ok(table) = DeTable::parse(head) else { return Vec::new() };
    let all = |tools: &str| tools.split([',', ' ']).any(everything);
    let granted = table.get_ref().iter().filter(|(key, _)| grants(key.get_ref())).flat_map(|(_, value)| {
        match value.get_ref() {
            DeValue::Array(list) => list.iter().collect(),
            _ => vec![value],
        }
    });
    granted
        .filter(|v| v.get_ref().as_str().is_some_and(all))
        .map(|v| (offset + v.span().start, offset + v.span().end))
        .collect()
}

fn grants(key: &str) -> bool {
    let plain: String = key.chars().filter(char::is_ascii_alphabetic).collect();
    matches!(plain.to_ascii_lowercase().as_str(), "tools" | "allowedtools")
}

fn everything(tool: &str) -> bool {
    matches!(tool.trim(), "*" | "Bash(*)" | "Bash()" | "Bash(:*)" | "Bash(*:*)")
}

/// Offset and text between two lines `mark`.
fn front_matter<'a>(text: &'a [u8], mark: &str) -> Option<(usize, &'a str)> {
    let bom = if text.starts_with(&[0xef, 0xbb, 0xbf]) { 3 } else { 0 };
    let rest = text.get(bom..)?.strip_prefix(mark.as_bytes())?;
    let line = rest.iter().take(MAX_BYTES).position(|b| *b == b'\n')?;
    if !rest.get(..line)?.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let from = bom + 3 + line + 1;
    let body = text.get(from..text.len().min(from + MAX_BYTES))?;
    let end = match body.starts_with(mark.as_bytes()) {
        true => 0,
        false => memchr::memmem::find(body, format!("\n{mark}").as_bytes())? + 1,
    };
    Some((from, std::str::from_utf8(body.get(..end)?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(text: &str) -> Vec<&str> {
        wildcard_tools(text.as_bytes()).into_iter().map(|(a, b)| &text[a..b]).collect()
    }

    #[test]
    fn every_way_to_write_the_value_is_read() {
        for text in [
            "---\ntools: \"*\"\n---\n",
            "---\r\nname: é\r\ntools: '*'\r\n---\r\n",
            "---\n\"allowed-tools\" : [ Read , \"*\" ]\n---\n",
            "---\nallowed-tools:\n  - Read\n  - Bash(*)\n---\n",
            "---\n{name: x, tools: 'Read, Bash(*)'}\n---\n",
            "---\ntools: &a '*'\n---\n",
            "+++\nname = \"x\"\nallowed-tools = [\"Read\", \"*\"]\n+++\n",
            "\u{feff}+++\r\ntools = 'Read, Bash(*)'\r\n+++\r\n",
            "\u{feff}---\nallowedTools: >-\n  Read,\n  Bash(*)\n---\n",
        ] {
            assert_eq!(granted(text).len(), 1, "{text}");
            assert!(granted(text)[0].contains('*'), "{text}: {:?}", granted(text));
        }
    }

    #[test]
    fn what_is_no_front_matter_or_no_grant_is_none() {
        for text in [
            "---\ntools: Read, Grep\n---\n",
            "---\nallowed-tools: Bash(git status:*)\n---\n",
            "---\ndescription: the tools are '*'\nnested:\n  tools: x\n---\n",
            "text\n---\ntools: '*'\n---\n",
            "---\ntools: '*'\n",
            "tools: '*'\n",
            "+++\ntools = \"Read\"\n[other]\ntools = \"*\"\n+++\n",
        ] {
            assert!(granted(text).is_empty(), "{text}");
        }
    }
}
