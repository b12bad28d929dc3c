//! Markers that are no tags: turns, chat-template tokens, bracketed and capital words.

use super::BREAK;
use super::names::BRACKETS;
use super::reader::{Name, Reader};

/// Where the colon of a turn marker stands: `Human:` and `Assistant:` at any line start, other roles after a blank line.
pub(super) fn turn_marker(body: &str, after_blank: bool) -> Option<usize> {
    const ALWAYS: &[&str] = &["human", "assistant"];
    const AFTER_BLANK: &[&str] = &["system", "user", "developer", "ai"];
    let mut reader = Reader::new(body);
    let mut name = Name::new();
    let mut first_upper = false;
    while let Some(c) = reader.peek() {
        if !c.is_ascii_alphabetic() {
            break;
        }
        if name.is_empty() {
            first_upper = c.is_ascii_uppercase();
        }
        name.push(c.to_ascii_lowercase());
        if name.len() > 9 || !first_upper {
            return None;
        }
        reader.next();
    }
    let known = ALWAYS.contains(&name.as_str()) || (after_blank && AFTER_BLANK.contains(&name.as_str()));
    if !known || reader.peek() != Some(':') {
        return None;
    }
    let at = reader.at();
    // Already broken: the character before the colon is ours.
    let head = body.get(..at)?;
    (!head.ends_with(BREAK)).then_some(at)
}

/// At the `|` after a `<`: `|name|>`, as chat templates write their tokens.
pub(super) fn chat_token(mut reader: Reader<'_>) -> bool {
    const LOOSE: &[&str] = &[
        "im_start",
        "im_end",
        "im_sep",
        "system",
        "user",
        "assistant",
        "endoftext",
        "eot_id",
        "end",
        "start",
    ];
    reader.next();
    let spaced = reader.skip_filler_any();
    let mut name = Name::new();
    let mut broken = false;
    while let Some(c) = reader.peek() {
        let c = c.to_ascii_lowercase();
        if !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':')) || name.len() >= 64 {
            break;
        }
        name.push(c);
        reader.next();
    }
    if reader.peek().is_some_and(char::is_whitespace) {
        broken = true;
        reader.skip_filler_any();
    }
    let closed = reader.peek() == Some('|');
    if closed {
        reader.next();
        reader.skip_filler_any();
    }
    let shut = closed && reader.peek() == Some('>');
    let loose = LOOSE.contains(&name.as_str());
    !name.is_empty() && ((shut && (loose || !(spaced || broken))) || (loose && name.as_str().contains('_')))
}

/// After a `[`: a bracketed marker; the offset of its `]`. Directly after a word, `[inst]` is an index, as code writes it.
pub(super) fn bracket_token(text: &str, word_before: bool) -> Option<usize> {
    let mut reader = Reader::new(text);
    let closing = reader.skip_filler();
    let mut name = Name::new();
    while let Some(c) = reader.peek() {
        if !(c.is_ascii_alphanumeric() || c == '_' || c == '-') || name.len() >= 24 {
            break;
        }
        name.push(if c == '-' { '_' } else { c.to_ascii_lowercase() });
        reader.next();
    }
    reader.skip_filler_any();
    let index = word_before && !closing && !name.as_str().starts_with("mark_");
    (!index && BRACKETS.contains(&name.as_str()) && reader.peek() == Some(']')).then_some(reader.at())
}

/// At a `B` or `E`: `BEGIN_X` or `END_X` in capitals; the offset after the underscore.
pub(super) fn marker_word(text: &str) -> Option<usize> {
    let mut reader = Reader::new(text);
    let mut word = Name::new();
    while let Some(c) = reader.peek() {
        if !c.is_ascii_uppercase() || word.len() > 5 {
            break;
        }
        word.push(c);
        reader.next();
    }
    if !matches!(word.as_str(), "BEGIN" | "END") || reader.peek() != Some('_') {
        return None;
    }
    reader.next();
    let at = reader.at();
    let ours = text.get(at..).is_some_and(|rest| rest.starts_with(BREAK));
    (!ours && reader.peek().is_some_and(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit()))
        .then_some(at)
}
