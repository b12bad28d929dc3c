//! Markup that makes a reader fetch something, taken out.
//!
//! Two layers. A scanner finds every *opening* of a fetching construct wherever it stands, whatever block it is in, so
//! that no dialect of Markdown or HTML has to agree with ours ([`markdown`], [`html`], [`terminal`]). What it leaves is
//! then read by a CommonMark parser and an HTML tokeniser ([`confirm`]); what these still see as a fetch is taken out
//! too, and if that does not come to rest, every bracket and tag that could matter is broken.
//!
//! Time is linear in the input: scans that could run far ahead draw on a budget of four times the length, and a
//! construct that meets an empty budget is taken for a fetching one.

mod confirm;
mod html;
mod markdown;
mod terminal;
mod url;

pub(crate) use url::entity;

use std::borrow::Cow;

/// What stands where auto-fetching markup stood.
pub const MARKER: &str = "[REDACTED-AUTOFETCH-MARKUP]";

/// Scans before the parsers' reading.
const SCANS: usize = 4;

/// What may stay.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Hosts that a link (never an image) may point to over https: exact names, or `*.example.org` for any depth below.
    pub allow_hosts: Vec<String>,
    /// `<https://…>` stays: a reader must click it.
    pub keep_autolinks: bool,
}

impl Policy {
    fn allows(&self, host: &str) -> bool {
        self.allow_hosts.iter().any(|rule| match rule.strip_prefix("*.") {
            Some(parent) => host.strip_suffix(parent).is_some_and(|sub| sub.len() > 1 && sub.ends_with('.')),
            None => rule == host,
        })
    }
}

/// `text` with each construct that a Markdown, HTML or terminal renderer would fetch replaced by [`MARKER`], and how
/// many there were. Linear in the input; borrowed when nothing changes.
///
/// Invisible characters that split tags and schemes for a filter are deleted first. Bare URLs, relative links, footnotes
/// with text and indented code stay.
pub fn redact_autofetch(text: &str) -> (Cow<'_, str>, usize) {
    redact_autofetch_with(text, &Policy::default())
}

/// [`redact_autofetch`] under a policy for links.
pub fn redact_autofetch_with<'a>(text: &'a str, policy: &Policy) -> (Cow<'a, str>, usize) {
    let mut text = delete_bypass(text);
    let mut found = 0;
    // Taking one construct out can open another that it was part of.
    for _ in 0..SCANS {
        let ranges = scan(&text, policy);
        if ranges.is_empty() {
            break;
        }
        found += ranges.len();
        text = Cow::Owned(replace(&text, &ranges));
    }
    if !confirm::worth_reading(&text) {
        return (text, found);
    }
    let (settled, more) = confirm::settle(text, policy);
    (settled, found + more)
}

/// The lines, from 1, on which fetching markup starts, one entry each. Where only the parsers' second reading finds it,
/// the line is that of the text without what the first took out.
pub fn autofetch_lines(text: &str, policy: &Policy) -> Vec<usize> {
    let text = delete_bypass(text);
    let ranges = scan(&text, policy);
    let mut lines = lines_of(&text, &ranges);
    let rest = if ranges.is_empty() { text } else { Cow::Owned(replace(&text, &ranges)) };
    if confirm::worth_reading(&rest) {
        lines.extend(lines_of(&rest, &confirm::fetches(&rest, policy)));
    }
    lines
}

fn lines_of(text: &str, ranges: &[Range]) -> Vec<usize> {
    let (mut at, mut line) = (0, 1);
    let lines = ranges.iter().map(|&(start, _)| {
        line += memchr::memchr_iter(b'\n', text.as_bytes().get(at..start).unwrap_or_default()).count();
        at = start;
        line
    });
    lines.collect()
}

/// The byte ranges of fetching markup, in order, without overlaps. `text` has no bypass characters.
fn scan(text: &str, policy: &Policy) -> Vec<Range> {
    Scanner::new(text, policy).run()
}

/// Half-open byte range of what is taken out.
type Range = (usize, usize);

/// State of one left-to-right pass.
struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    policy: &'a Policy,
    /// Open brackets: offset, and whether `!` stands before it.
    brackets: Vec<(usize, bool)>,
    found: Vec<Range>,
    /// Steps that look-ahead may still take.
    budget: usize,
    /// From here on there is no `>` (known after the first search that failed).
    no_tag_end_from: usize,
    /// From here on there is no `</style`.
    no_style_end_from: usize,
    line_start: usize,
}

/// Bytes at which the scanner has to look; all others are skipped in a tight loop.
const INTERESTING: [bool; 256] = {
    let mut table = [false; 256];
    let mut i = 0;
    let set = b"[]<@:\n\x1b\xc2";
    while i < set.len() {
        table[set[i] as usize] = true;
        i += 1;
    }
    table
};

impl<'a> Scanner<'a> {
    fn new(text: &'a str, policy: &'a Policy) -> Self {
        Scanner {
            text,
            bytes: text.as_bytes(),
            policy,
            brackets: Vec::new(),
            found: Vec::new(),
            budget: text.len().saturating_mul(4).saturating_add(4096),
            no_tag_end_from: usize::MAX,
            no_style_end_from: usize::MAX,
            line_start: 0,
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    fn run(mut self) -> Vec<Range> {
        let mut at = 0;
        while let Some(&b) = self.bytes.get(at) {
            if !INTERESTING[b as usize] {
                at += 1;
                continue;
            }
            let end = match b {
                b'\n' => {
                    self.line_start = at + 1;
                    None
                }
                b'[' => {
                    self.open_bracket(at);
                    None
                }
                b']' => self.close_bracket(at),
                b'<' => self.tag(at),
                b'@' => self.css_import(at),
                b':' => self.data_uri(at),
                _ => self.control_string(at),
            };
            at = match end {
                Some((start, end)) => {
                    self.take(start, end);
                    end.max(at + 1)
                }
                None => at + 1,
            };
        }
        self.found
    }

    /// Records a range; ranges that it covers or touches from behind melt into it.
    fn take(&mut self, mut start: usize, end: usize) {
        while let Some(&(s, e)) = self.found.last() {
            if e <= start {
                break;
            }
            start = start.min(s);
            self.found.pop();
        }
        self.found.push((start, end));
        while self.brackets.last().is_some_and(|b| b.0 >= start) {
            self.brackets.pop();
        }
        if let Some(newline) = memchr::memrchr(b'\n', self.bytes.get(start..end).unwrap_or_default()) {
            self.line_start = start + newline + 1;
        }
    }

    /// Draws `steps` from the budget; false when it is spent.
    fn spend(&mut self, steps: usize) -> bool {
        match self.budget.checked_sub(steps) {
            Some(rest) => {
                self.budget = rest;
                true
            }
            None => false,
        }
    }
}

/// `text` with every range replaced by the marker. Where what follows would make a link of the marker's own brackets,
/// a space keeps them apart. Of markers with nothing but blanks between them two are written: a flood of openings must
/// not grow into a larger one.
fn replace(text: &str, ranges: &[Range]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut row = 0;
    for &(start, end) in ranges {
        let Some(between) = text.get(at..start) else { continue };
        row = if between.bytes().all(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')) { row + 1 } else { 0 };
        if row > 1 && out.ends_with(MARKER) {
            out.extend(between.matches('\n'));
            if !out.ends_with(MARKER) {
                row = 0;
                out.push_str(MARKER);
            }
            at = end;
            continue;
        }
        push_apart(&mut out, between);
        if out.ends_with(MARKER) {
            out.push(' ');
        }
        out.push_str(MARKER);
        at = end;
    }
    push_apart(&mut out, text.get(at..).unwrap_or_default());
    out
}

fn push_apart(out: &mut String, text: &str) {
    if text.starts_with(['(', '[', ':']) && out.ends_with(MARKER) {
        out.push(' ');
    }
    out.push_str(text);
}

/// Characters that split a tag or a scheme for a filter and not for a reader: NUL, soft hyphen, zero-width and joining
/// characters, bidirectional controls, invisible operators, tag characters; and a variation selector between two
/// letters, where it selects nothing.
fn delete_bypass(text: &str) -> Cow<'_, str> {
    let first = text
        .bytes()
        .position(|b| b == 0 || matches!(b, 0xC2 | 0xCC | 0xD8 | 0xE1 | 0xE2 | 0xE3 | 0xEF | 0xF3));
    let Some(first) = first else { return Cow::Borrowed(text) };
    let (head, tail) = text.split_at_checked(first).unwrap_or(("", text));
    let mut out: Option<String> = None;
    let mut before = head.chars().next_back().unwrap_or(' ');
    let mut chars = tail.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let selector = matches!(c as u32, 0xFE00..=0xFE0F)
            && (before.is_ascii_alphanumeric() || matches!(before, '<' | '/'))
            && chars.peek().is_some_and(|(_, next)| next.is_ascii_alphanumeric());
        if selector || is_bypass(c) {
            out.get_or_insert_with(|| {
                let mut kept = String::with_capacity(text.len());
                kept.push_str(head);
                kept.push_str(tail.get(..at).unwrap_or_default());
                kept
            });
        } else {
            before = c;
            if let Some(out) = &mut out {
                out.push(c);
            }
        }
    }
    out.map_or(Cow::Borrowed(text), Cow::Owned)
}

pub(crate) fn is_bypass(c: char) -> bool {
    matches!(c as u32,
        0 | 0xAD | 0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180E | 0x200B..=0x200F
        | 0x202A..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFEFF | 0xFFA0 | 0xE0000..=0xE0FFF)
}

#[cfg(test)]
mod tests;
