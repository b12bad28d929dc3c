//! The two doors to the operator's terminal. Whatever is printed goes through one of them, so that a name, a message or a
//! document from outside cannot act on the terminal even where its own call site forgot it.

use std::io::{self, Write};

/// `text` and a line end on stdout. A reader that went away is no error.
pub(crate) fn stdout(text: &str) {
    let _ = print(text);
}

/// `text` and a line end on stdout.
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut clean = lines(text);
    if !clean.ends_with('\n') {
        clean.push('\n');
    }
    let mut out = io::stdout().lock();
    out.write_all(clean.as_bytes())?;
    out.flush()
}

/// `text` and a line end on stderr. There is nobody to tell when that fails.
pub(crate) fn stderr(text: &str) {
    let mut clean = lines(text);
    if !clean.ends_with('\n') {
        clean.push('\n');
    }
    let _ = io::stderr().lock().write_all(clean.as_bytes());
}

/// `text` with everything escaped that does not print, but line ends, tabs, and the U+200B that sealing puts in.
pub(crate) fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if super::printable(c) || matches!(c, '\n' | '\t' | '\u{200b}') {
            out.push(c);
        } else {
            super::push_escape(&mut out, c);
        }
    }
    out
}

/// A JSON document with everything that does not print written as `\u` escapes: the same document, fit for a terminal.
pub(crate) fn json(document: &str) -> String {
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        if c.is_ascii() || super::printable(c) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// The writer of the log: what an event says about things from outside is escaped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stderr().lock().write_all(lines(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_lines_and_nothing_acts_on_the_terminal() {
        assert_eq!(
            lines("a\tb\n\x1b[2Jc\u{9b}d\u{202e}e\rf\u{200b}g\u{e0041}"),
            "a\tb\n\\x1b[2Jc\\x9bd\\u202ee\\x0df\u{200b}g\\U000e0041"
        );
    }

    #[test]
    fn a_json_document_stays_the_same_document() {
        let value = serde_json::json!({ "k\u{202e}\u{e0041}": "\u{9b}\x1b[2J\n日本 \"q\\\"" });
        for text in [value.to_string(), format!("{value:#}")] {
            let shown = json(&text);
            assert!(
                shown
                    .chars()
                    .all(|c| c == '\n' || !(c.is_control() || matches!(c, '\u{202e}' | '\u{e0041}'))),
                "{shown:?}"
            );
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
    }
}
