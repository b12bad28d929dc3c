//! TOML: strings that are escaped or go over several lines, of whole files and of front matter.

use super::stitch::Stitch;
use super::yaml::fenced;
use crate::scan::decode::View;
use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

/// The longest document that is parsed, in bytes: its tree is some tens of times as large.
const LONGEST: usize = 512 * 1024;

/// Whether a text with this extension and head is TOML.
pub(super) fn is(extension: &str, head: &str) -> bool {
    if extension == "toml" {
        return true;
    }
    let mut lines = head.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else { return false };
    let table = |l: &str| {
        let name = l.trim_start_matches('[').trim_end_matches(']');
        l.starts_with('[') && l.ends_with(']') && !name.is_empty() && name.chars().all(bare)
    };
    extension.is_empty() && (table(first) || pair(first)) && (table(second) || pair(second))
}

fn bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

fn pair(line: &str) -> bool {
    line.split_once(" = ").is_some_and(|(k, v)| {
        k.chars().all(bare) && v.starts_with(|c: char| c.is_ascii_digit() || "\"'[{tf-+".contains(c))
    })
}

/// The view of the strings in `text`.
pub(super) fn views(text: &str, out: &mut Vec<View>) {
    document(text, 0, text.len(), out);
}

/// The view of the strings in front matter between `+++` and `+++`.
pub(super) fn front_matter(text: &str, out: &mut Vec<View>) {
    if let Some((from, end)) = fenced(text, "+++") {
        document(text, from, end, out);
    }
}

fn document(text: &str, from: usize, end: usize, out: &mut Vec<View>) {
    let Some(source) = text.get(from..end).filter(|s| s.len() <= LONGEST) else { return };
    let Ok(table) = DeTable::parse(source) else { return };
    let mut stitch = Stitch::default();
    // The parser stops nesting at 80.
    for value in table.get_ref().values() {
        strings(value, text, from, &mut stitch);
    }
    out.extend(stitch.view("toml string"));
}

fn strings(value: &Spanned<DeValue<'_>>, text: &str, from: usize, stitch: &mut Stitch) {
    match value.get_ref() {
        DeValue::String(s) => {
            let (a, b) = (from + value.span().start, from + value.span().end);
            let written = text.get(a..b).unwrap_or_default();
            if written.contains(['\\', '\n']) {
                stitch.changed(s.as_bytes(), text.as_bytes(), a, b);
                stitch.close(true);
            }
        }
        DeValue::Array(all) => all.iter().for_each(|v| strings(v, text, from, stitch)),
        DeValue::Table(all) => all.values().for_each(|v| strings(v, text, from, stitch)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_and_long_strings_are_listed() {
        let mut out = Vec::new();
        views("[a]\nb = \"\"\"one tw\\\n   o three\"\"\"\nc = 'plain'\nd = [\"\\U0001D422\"]\n", &mut out);
        assert_eq!(String::from_utf8(out.pop().unwrap().bytes).unwrap(), "one two three\n\n𝐢\n\n");
    }

    #[test]
    fn what_is_no_toml_is_not_taken_for_it() {
        assert!(is("", "# x\n[package]\nname = \"x\"\n"));
        assert!(!is("", "[link] (x)\n\nText = more text here\n"));
        assert!(!is("md", "[package]\nname = \"x\"\n"));
    }
}
