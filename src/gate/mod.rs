//! What may leave: secrets, auto-fetching markup, patches, schema, provenance.
//!
//! [`check_text`] looks at one document, [`check_tree`] at everything a run wrote. A finding names the file, the line
//! and the kind, never the secret.

pub mod redaction;
pub mod secrets;
mod tree;

pub use tree::{Error, check_tree};

use crate::envelope;
use crate::untrusted::Untrusted;
use std::fmt;
use std::path::PathBuf;

/// Something that must not leave as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to the checked directory, or the name the caller gave.
    pub file: PathBuf,
    /// Line, from 1; 0 where the finding is about the file itself.
    pub line: usize,
    /// What was found, for example `secret:github-token` or `autofetch`.
    pub kind: String,
}

/// `file:line: kind`, with the file name made safe for a terminal.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Untrusted::new(self.file.to_string_lossy());
        write!(f, "{}:{}: {}", crate::sanitise::for_terminal(&name, 512), self.line, self.kind)
    }
}

/// Every finding in one document; `name` stands as the file in each.
pub fn check_text(name: &str, text: &Untrusted<impl AsRef<str>>) -> Vec<Finding> {
    let text = text.inspect().as_ref();
    let mut findings = Vec::new();
    let mut lines = Lines::new(text);
    for hit in secrets::find(text) {
        findings.push(Finding {
            file: name.into(),
            line: lines.of(hit.start),
            kind: format!("secret:{}", hit.kind),
        });
    }
    for (line, content) in text.lines().enumerate() {
        let (_, count) = envelope::redact_autofetch(content);
        for _ in 0..count {
            findings.push(Finding { file: name.into(), line: line + 1, kind: "autofetch".into() });
        }
    }
    findings
}

/// `text` fit to publish: secrets and auto-fetching markup replaced.
pub fn redact(text: &Untrusted<impl AsRef<str>>) -> String {
    let cleaned = secrets::redact(text.inspect().as_ref());
    envelope::redact_autofetch(&cleaned).0.into_owned()
}

/// Line numbers for ascending offsets, in one pass over the text.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        Lines { text: text.as_bytes(), at: 0, line: 1 }
    }

    /// The line of `offset`; offsets must not go back.
    fn of(&mut self, offset: usize) -> usize {
        let between = self.text.get(self.at..offset).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', between).count();
        self.at = self.at.max(offset);
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_the_line_and_the_kind_and_not_the_secret() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        let findings =
            check_text("report.md", &Untrusted::new(format!("ok\ntoken {token}\n![x](http://e/)\n")));
        let shown: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert_eq!(shown, ["report.md:2: secret:github-token", "report.md:3: autofetch"]);
    }

    #[test]
    fn redacted_text_passes_the_check() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        let dirty = Untrusted::new(format!("{token} <img src=//e>"));
        assert!(!check_text("x", &dirty).is_empty());
        assert!(check_text("x", &Untrusted::new(redact(&dirty))).is_empty());
    }
}
