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

use crate::bits::Finder;
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
        let scanned = scan(&text, policy);
        if scanned.ranges.is_empty() {
            if !scanned.unsure {
                return (text, found);
            }
            break;
        }
        found += scanned.ranges.len();
        text = Cow::Owned(replace(&text, &scanned.ranges));
    }
    let (settled, more) = confirm::settle(text, policy);
    (settled, found + more)
}

/// The lines, from 1, on which fetching markup starts, one entry each. Where only the parsers' second reading finds it,
/// the line is that of the text without what the first took out.
pub fn autofetch_lines(text: &str, policy: &Policy) -> Vec<usize> {
    let text = delete_bypass(text);
    let Scanned { ranges, unsure } = scan(&text, policy);
    let mut lines = lines_of(&text, &ranges);
    let rest = if ranges.is_empty() { text } else { Cow::Owned(replace(&text, &ranges)) };
    if unsure {
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

/// What one pass sees.
struct Scanned {
    /// Fetching markup, in order, without overlaps.
    ranges: Vec<Range>,
    /// Something is left that a parser could read otherwise: it spreads over lines in a way that depends on the block it
    /// stands in, or a destination is spelled with escapes.
    unsure: bool,
}

/// Reads `text`, which has no bypass characters.
fn scan(text: &str, policy: &Policy) -> Scanned {
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
    unsure: bool,
    /// Open brackets are no longer remembered.
    forgot: bool,
    /// The next `>`, as long as it is ahead.
    next_tag_end: usize,
    /// The next `>` or `[`, and the next `//`, for declarations, likewise.
    next_declaration_end: usize,
    next_slashes: usize,
    /// The next byte that ends the media type of a `data:` address, likewise.
    next_media_end: usize,
    /// The next `&`, likewise.
    next_reference: usize,
    /// Is there an image anywhere, once it was asked for?
    image: Option<bool>,
    /// The bare destination that was read last, when nothing in it closes a parenthesis.
    bare: Range,
}

/// Bytes at which the scanner has to look.
#[inline(always)]
fn interesting(b: u8) -> bool {
    (b == b'[') | (b == b']') | (b == b'<') | (b == b'@') | (b == b':') | (b == 0x1b) | (b == 0xc2)
}

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
            unsure: false,
            forgot: false,
            next_tag_end: 0,
            next_declaration_end: 0,
            next_slashes: 0,
            next_media_end: 0,
            next_reference: 0,
            image: None,
            bare: (0, 0),
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    fn run(mut self) -> Scanned {
        let mut marks = Finder::new(self.bytes, interesting);
        let mut from = 0;
        while let Some(at) = marks.next(from) {
            let end = match self.byte(at) {
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
            from = match end {
                Some((start, end)) => {
                    self.take(start, end);
                    end.max(at + 1)
                }
                None => at + 1,
            };
        }
        Scanned { ranges: self.found, unsure: self.unsure }
    }

    /// Notes a line end inside a construct when the next line begins as a quotation does: in a block quote the `>` is no
    /// part of the construct.
    fn line_end_inside(&mut self, from: usize, to: usize) {
        let breaks =
            self.bytes.get(from..to).is_some_and(|gap| gap.iter().any(|b| matches!(b, b'\n' | b'\r')));
        if !breaks {
            return;
        }
        let rest = self.bytes.get(from..).unwrap_or_default();
        let gap = rest.iter().take(256).take_while(|b| b.is_ascii_whitespace()).count();
        self.unsure |= gap == 256 || rest.get(gap) == Some(&b'>');
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
    let bytes = text.as_bytes();
    let mut out: Option<String> = None;
    let (mut copied, mut at) = (0, 0);
    let mut candidates = Finder::new(bytes, leads);
    while let Some(found) = candidates.next(at) {
        let Some(c) = text.get(found..).and_then(|rest| rest.chars().next()) else { break };
        at = found + c.len_utf8();
        let selector = matches!(c as u32, 0xFE00..=0xFE0F) && {
            // What was deleted meanwhile no longer stands between the two.
            let kept = text.get(copied..found).unwrap_or_default();
            let before =
                kept.chars().next_back().or_else(|| out.as_ref().and_then(|o| o.chars().next_back()));
            before.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, '<' | '/'))
                && bytes.get(at).is_some_and(u8::is_ascii_alphanumeric)
        };
        if selector || is_bypass(c) {
            let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
            out.push_str(text.get(copied..found).unwrap_or_default());
            copied = at;
        }
    }
    match out {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(text.get(copied..).unwrap_or_default());
            Cow::Owned(out)
        }
    }
}

/// First bytes of characters that [`is_bypass`] names, and of variation selectors.
#[inline(always)]
fn leads(b: u8) -> bool {
    (b == 0)
        | (b == 0xC2)
        | (b == 0xCD)
        | (b == 0xD8)
        | (b == 0xE1)
        | (b == 0xE2)
        | (b == 0xE3)
        | (b == 0xEF)
        | (b == 0xF3)
}

pub(crate) fn is_bypass(c: char) -> bool {
    matches!(c as u32,
        0 | 0xAD | 0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180E | 0x200B..=0x200F
        | 0x202A..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFEFF | 0xFFA0 | 0xE0000..=0xE0FFF)
}

#[cfg(test)]
mod tests;
