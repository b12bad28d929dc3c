//! Markers that are no tags: turns, chat-template tokens, bracketed and capital words.

use super::BREAK;
use super::names::{BRACKETS, CAPITAL_BRACKETS};
use super::reader::{Name, Reader};

/// Where the colon of a turn marker stands: `Human:` and `Assistant:` at any line start, other roles after a blank line.
/// `body` is the line without what indents, quotes, lists or emphasises it; emphasis and a blank may stand before the
/// colon too.
pub(super) fn turn_marker(body: &str, after_blank: bool) -> Option<usize> {
    const ALWAYS: &[&str] = &["human", "assistant"];
    const AFTER_BLANK: &[&str] = &["system", "user", "developer", "ai"];
    /// Signs between the name and its colon.
    const SIGNS: usize = 8;
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
    let always = ALWAYS.contains(&name.as_str());
    if !(always || after_blank && AFTER_BLANK.contains(&name.as_str())) {
        return None;
    }
    for _ in 0..SIGNS {
        match reader.peek() {
            Some('*' | '_' | '`' | '"' | '\'') => reader.next(),
            Some(' ' | '\t' | ')' | ']' | '\u{a0}') if always => reader.next(),
            _ => break,
        }
    }
    if reader.peek() != Some(':') {
        return None;
    }
    let at = reader.at();
    // Already broken: the character before the colon is ours.
    let head = body.get(..at)?;
    (!head.ends_with(BREAK)).then_some(at)
}

/// After a `<`: does the envelope's tag close here, whatever signs stand before the slash, before the name and between its
/// letters? Read up to the next `<`.
pub(super) fn closes_envelope(mut reader: Reader<'_>) -> bool {
    const NAMES: [&str; 2] = ["untrusted", "antml"];
    /// Signs and blanks in all.
    const SIGNS: usize = 64;
    let (mut name, mut slash, mut signs) = (Name::new(), false, 0);
    let mut backslash = false;
    while let Some(c) = reader.peek() {
        let c = c.to_ascii_lowercase();
        // The backslash that keeps a heading from being one is no slash of a tag.
        slash |= c == '/' || backslash && c != '#';
        backslash = c == '\\';
        if c.is_ascii_alphanumeric() {
            name.push(c);
            if !slash || !NAMES.iter().any(|known| known.starts_with(name.as_str())) {
                return false;
            }
            if NAMES.contains(&name.as_str()) {
                return true;
            }
        } else {
            signs += 1;
            if c == '<' || c.is_alphanumeric() || signs > SIGNS {
                return false;
            }
        }
        reader.next();
    }
    false
}

/// At the `|` after a `<`: `|name|>` or `|name>`, as chat templates write their tokens.
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
    let shut = reader.peek() == Some('>');
    let loose = LOOSE.contains(&name.as_str());
    let tight = !(spaced || broken);
    // `<|name>` has a bar on one side; a shorter name is an operator between two operands.
    let open = shut && !closed && tight && name.len() >= 3;
    // `<|DSML|invoke`: its token is followed by a name.
    let led = closed && tight && name.as_str() == "dsml";
    !name.is_empty()
        && ((shut && closed && (loose || tight)) || open || led || (loose && name.as_str().contains('_')))
}

/// After a `[`: a bracketed marker, also between bars (`[|system|]`); the offset of its `]`. Directly after a word,
/// `[inst]` is an index, as code writes it.
pub(super) fn bracket_token(text: &str, word_before: bool) -> Option<usize> {
    let mut reader = Reader::new(text);
    let closing = reader.skip_filler();
    let barred = reader.peek() == Some('|');
    if barred {
        reader.next();
    }
    let mut name = Name::new();
    let mut capitals = true;
    while let Some(c) = reader.peek() {
        let c = match c {
            // `MARK INPT`, and the underscore as Markdown escapes it.
            ' ' | '\\' if name.as_str() == "mark" => '_',
            '_' if name.as_str() == "mark_" => {
                reader.next();
                continue;
            }
            '-' => '_',
            c => c,
        };
        if !(c.is_ascii_alphanumeric() || c == '_') || name.len() >= 24 {
            break;
        }
        capitals &= !c.is_ascii_lowercase();
        name.push(c.to_ascii_lowercase());
        reader.next();
    }
    if barred {
        let closed = name.len() >= 3 && reader.peek() == Some('|');
        reader.next();
        return (closed && reader.peek() == Some(']')).then_some(reader.at());
    }
    reader.skip_filler_any();
    let name = name.as_str();
    let index = word_before && !closing && !name.starts_with("mark_");
    let known = BRACKETS.contains(&name) || (capitals && CAPITAL_BRACKETS.contains(&name));
    (!index && known && reader.peek() == Some(']')).then_some(reader.at())
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
