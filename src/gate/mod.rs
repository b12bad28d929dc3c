//! What may leave: secrets, auto-fetching markup, patches, schema, provenance.
//!
//! [`check_text`] looks at one document, [`check_tree`] at everything a run wrote. A finding names the file, the line
//! and the kind, never the secret.

mod controls;
pub mod encoded;
pub mod patch;
pub mod provenance;
pub mod redaction;
pub mod schema;
pub mod secrets;
mod tree;

pub use tree::{Error, check_tree, check_tree_for};

use crate::envelope;
use crate::untrusted::Untrusted;
use std::borrow::Cow;
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

/// The kind of a finding about control characters that act on a terminal; one a line.
pub(crate) const TERMINAL: &str = "terminal-control";

/// Findings of one document, or of one tree, that are listed; where there are more, the last says so
/// (`too-many-findings`).
pub const MAX_FINDINGS: usize = 1000;

/// Every finding in one document, at most [`MAX_FINDINGS`] and one; `name` stands as the file in each: secrets, plain
/// and encoded, auto-fetching markup, and control characters that act on a terminal. Linear in the input.
pub fn check_text(name: &str, text: &Untrusted<impl AsRef<str>>) -> Vec<Finding> {
    check_document(name, text, None, &envelope::Policy::default())
}

/// [`check_text`], and any of the `known` values in any encoding, under a policy for links.
pub fn check_document(
    name: &str,
    text: &Untrusted<impl AsRef<str>>,
    known: Option<&encoded::Known>,
    policy: &envelope::Policy,
) -> Vec<Finding> {
    let text = text.inspect().as_ref();
    let mut found: Vec<(usize, String)> =
        leaks(text, known).into_iter().map(|leak| (leak.start, leak.label())).collect();
    found.sort();
    let mut lines = Lines::new(text);
    let mut findings: Vec<Finding> = found
        .into_iter()
        .take(MAX_FINDINGS + 1)
        .map(|(start, kind)| Finding { file: name.into(), line: lines.of(start), kind })
        .collect();
    let fetching = envelope::autofetch_lines(text, policy);
    findings.extend(fetching.into_iter().take(MAX_FINDINGS + 1).map(|line| Finding {
        file: name.into(),
        line,
        kind: "autofetch".into(),
    }));
    let mut lines = Lines::new(text);
    let mut acting: Vec<usize> = Vec::new();
    for line in controls::find(text).map(|at| lines.of(at)) {
        if acting.last() != Some(&line) {
            acting.push(line);
        }
        if acting.len() > MAX_FINDINGS {
            break;
        }
    }
    findings.extend(acting.into_iter().map(|line| Finding {
        file: name.into(),
        line,
        kind: TERMINAL.into(),
    }));
    findings.sort_by_key(|f| f.line);
    if findings.len() > MAX_FINDINGS {
        findings.truncate(MAX_FINDINGS);
        findings.push(Finding { file: name.into(), line: 0, kind: "too-many-findings".into() });
    }
    findings
}

/// Secrets in the order of the text, plain ones and encoded ones, without overlaps.
fn leaks(text: &str, known: Option<&encoded::Known>) -> Vec<encoded::EncodedHit> {
    let scan = secrets::scan(text, true, true);
    let plain = scan.hits.iter().map(|h| encoded::EncodedHit {
        kind: h.kind,
        encoding: "plain",
        start: h.start,
        end: h.end,
    });
    // What stands there as it is is named as such.
    let mut all: Vec<encoded::EncodedHit> = plain.collect();
    all.extend(encoded::search(text, &scan, known));
    all.sort_by_key(|h| h.start);
    let mut kept: Vec<encoded::EncodedHit> = Vec::with_capacity(all.len());
    for hit in all {
        match kept.last_mut() {
            Some(last) if hit.start < last.end => last.end = last.end.max(hit.end),
            _ => kept.push(hit),
        }
    }
    kept
}

/// `text` fit to publish: secrets in any form and auto-fetching markup replaced, and control characters that act on a
/// terminal written out.
pub fn redact(text: &Untrusted<impl AsRef<str>>) -> String {
    redact_for(text, None, &envelope::Policy::default())
}

/// [`redact`] with known values and hosts that links may keep.
pub fn redact_for(
    text: &Untrusted<impl AsRef<str>>,
    known: Option<&encoded::Known>,
    policy: &envelope::Policy,
) -> String {
    let mut text: Cow<'_, str> = Cow::Borrowed(text.inspect().as_ref());
    // Taking one out can bring together what was apart, and stand where a link's text stood.
    for _ in 0..PASSES {
        // Invisible characters go first: they could split a secret for the search and not for a reader.
        let (stripped, _) = envelope::redact_autofetch_with(&text, policy);
        let stripped = controls::written_out(stripped);
        let found = leaks(&stripped, known);
        if found.is_empty() {
            return stripped.into_owned();
        }
        let replaced = without(&stripped, &found);
        text = Cow::Owned(replaced);
    }
    let (stripped, _) = envelope::redact_autofetch_with(&text, policy);
    let stripped = controls::written_out(stripped);
    if leaks(&stripped, known).is_empty() {
        stripped.into_owned()
    } else {
        "[REDACTED: secrets that do not come apart]\n".into()
    }
}

/// `text` with a mark for each of the `leaks`, kept apart from what would make a link or an image of it.
fn without(text: &str, leaks: &[encoded::EncodedHit]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let push = |out: &mut String, part: &str, marked: bool| {
        if marked && part.starts_with(['(', '[', ':']) {
            out.push(' ');
        }
        out.push_str(part);
    };
    for (n, leak) in leaks.iter().enumerate() {
        push(&mut out, text.get(at..leak.start).unwrap_or_default(), n > 0);
        if out.ends_with(['!', ']']) {
            out.push(' ');
        }
        out.push_str(&format!("[REDACTED:{}]", leak.kind));
        at = leak.end;
    }
    push(&mut out, text.get(at..).unwrap_or_default(), !leaks.is_empty());
    out
}

/// Rounds of taking secrets out before the whole text goes.
const PASSES: usize = 4;

/// Holds characters that a reader does not see or that reorder what he sees.
pub(crate) fn invisible(text: &str) -> bool {
    text.chars()
        .any(|c| !c.is_ascii() && !crate::sanitise::printable(c) && !matches!(c, '\u{a0}' | '\u{3000}'))
        || text.chars().any(|c| c.is_ascii_control() && c != '\t' && c != '\r')
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
    fn markup_spread_over_lines_is_found() {
        let findings = check_text("x", &Untrusted::new("a\n<img\nsrc=http://e/s>\n"));
        assert_eq!(findings.len(), 1);
        assert!(check_text("x", &Untrusted::new("a\n<b\nclass=c>\n")).is_empty());
    }

    #[test]
    fn a_flood_of_findings_is_bounded_and_says_so() {
        let at_the_bound = check_text("x", &Untrusted::new("![x](http://e/)\n".repeat(MAX_FINDINGS)));
        assert_eq!(at_the_bound.len(), MAX_FINDINGS);
        let beyond = check_text("x", &Untrusted::new("![x](http://e/)\n".repeat(MAX_FINDINGS + 1)));
        assert_eq!(beyond.len(), MAX_FINDINGS + 1);
        assert_eq!(beyond.last().map(|f| f.kind.as_str()), Some("too-many-findings"));
    }

    #[test]
    fn redacted_text_passes_the_check() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        let dirty = Untrusted::new(format!("{token} <img src=//e>"));
        assert!(!check_text("x", &dirty).is_empty());
        assert!(check_text("x", &Untrusted::new(redact(&dirty))).is_empty());
    }

    #[test]
    fn control_characters_that_act_on_a_terminal_do_not_leave() {
        let dirty = Untrusted::new("ok\n\x1b]0;title\x07 and \x1b[21t\n\u{9b}6n\n\x1b[31mred\x1b[0m\n");
        let shown: Vec<String> = check_text("x", &dirty).iter().map(Finding::to_string).collect();
        assert_eq!(shown, ["x:2: terminal-control", "x:3: terminal-control"]);
        let clean = redact(&dirty);
        assert_eq!(clean, "ok\n\\x1b]0;title\\x07 and \\x1b[21t\n\\x9b6n\n\x1b[31mred\x1b[0m\n");
        assert!(check_text("x", &Untrusted::new(&clean)).is_empty());
    }

    #[test]
    fn the_mark_of_a_secret_is_no_part_of_a_link_or_an_image() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        for form in [
            format!("!{token}(https://evil.example/x.png)"),
            format!("{token}(https://evil.example/)"),
            format!("{token}: https://evil.example/x.png\n\n!{token}\n"),
            format!("!{token}[b]\n\n[b]: //evil.example/x.png\n"),
            format!("[a]{token}\n\n{token}: //evil.example/\n"),
        ] {
            let clean = redact(&Untrusted::new(&form));
            assert!(!clean.contains("](") && !clean.contains("![") && !clean.contains("]:"), "{clean}");
            assert!(check_text("x", &Untrusted::new(&clean)).is_empty(), "{form:?}: {clean:?}");
        }
    }
}
