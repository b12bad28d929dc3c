//! Text inside other formats, taken out by a parser of the format.
//!
//! The rules read every text as a row of words across all marks, so what stands in one piece in the source needs no
//! parser. A carrier gives what a reader of the *format* sees as one text although the source has it in pieces, or in
//! other letters: a sentence with links or tags between its words, the cells of a column, the comments of a program, the
//! halves of a string, a scalar that is folded or escaped. Every carrier is a view with a map back to the source.
//!
//! | module | format | parser |
//! |---|---|---|
//! | [`html`] | text, attributes, comments, hidden elements | `html5gum` |
//! | [`markdown`] | text round links and images | `pulldown-cmark` |
//! | [`json`] | strings, and rows of strings | the scanner of `jsonc-parser` |
//! | [`yaml`] | scalars, also of front matter | `saphyr-parser` |
//! | [`toml`] | strings, also of front matter | `toml` |
//! | [`csv`] | cells and columns | `csv-core` |
//! | [`code`] | comments and string literals | our own lexer |
//!
//! Each runs in time linear in the text and keeps at most a few copies of it. Texts longer than [`LIMIT`] are not parsed.
//! Nesting (HTML in a JSON string, base64 in a comment) is handled by the engine: carriers and decoders run on each
//! other's views up to the depth that all views share.

mod code;
mod csv;
mod html;
mod json;
mod markdown;
mod stitch;
mod toml;
mod yaml;

pub(crate) use html::hidden;

use super::decode::View;

/// The longest text that is parsed, in bytes.
pub(crate) const LIMIT: usize = 16 << 20;
/// What is looked at to tell a format without a name, in bytes.
const SNIFF: usize = 4096;

/// Every view of `text`, which stands in `file`, that a parser of its format gives. `file` may be empty; the format then
/// shows in the text. `left` is the budget in bytes and shrinks by what is returned.
pub(crate) fn views(file: &str, text: &[u8], left: &mut usize) -> Vec<View> {
    let mut out = Vec::new();
    if text.len() > LIMIT {
        return out;
    }
    let extension = extension(file);
    html::views(text, &mut out);
    // The other parsers read characters; a text with broken ones is read up to the first of them.
    let valid = match std::str::from_utf8(text) {
        Ok(valid) => valid,
        Err(e) => text.get(..e.valid_up_to()).and_then(|t| std::str::from_utf8(t).ok()).unwrap_or_default(),
    };
    let head = valid.get(..valid.floor_char_boundary(SNIFF)).unwrap_or_default();
    let head = head.trim_start_matches('\u{feff}');
    if json::is(&extension, head) {
        json::views(valid, &mut out);
    } else if extension.is_empty() && !head.contains('\n') {
        markdown::views(valid, &mut out);
    } else if let Some(language) = code::language(&extension, file, head) {
        code::views(valid, language, &mut out);
    } else if let Some(delimiter) = csv::delimiter(&extension, head) {
        csv::views(valid, delimiter, &mut out);
    } else if toml::is(&extension, head) {
        toml::views(valid, &mut out);
    } else if yaml::is(&extension, head) {
        yaml::views(valid, &mut out);
    } else {
        yaml::front_matter(valid, &mut out);
        toml::front_matter(valid, &mut out);
        markdown::views(valid, &mut out);
    }
    out.retain(|v| match left.checked_sub(v.bytes.len()) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    });
    out
}

/// The extension of the name in lower case, without its dot; empty when it has none.
fn extension(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.rsplit_once('.').map(|(_, e)| e.to_ascii_lowercase()).unwrap_or_default()
}

/// For tests: the text of the last view that a parser gives.
#[cfg(test)]
fn last_view(text: &str, views: fn(&str, &mut Vec<View>)) -> String {
    let mut out = Vec::new();
    views(text, &mut out);
    out.pop().map(|v| String::from_utf8_lossy(&v.bytes).trim().to_string()).unwrap_or_default()
}
