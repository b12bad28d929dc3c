//! The second reading: a CommonMark parser and an HTML tokeniser look at what the scanner left.

use super::url::{self, Target};
use super::{Policy, Range, replace, scan};
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag};
use std::borrow::Cow;

/// Rounds of reading and taking out before everything is broken.
const ROUNDS: usize = 3;

/// Is there anything left that a parser could make a link, a definition or an element of?
///
/// Relative links and plain elements are common; a parser is worth its time only where a destination might lead out, so
/// the look is for a scheme or `//` near brackets, or for a tag with an attribute.
pub(super) fn worth_reading(text: &str) -> bool {
    let bytes = text.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    memchr::memchr2_iter(b']', b'<', bytes).any(|at| match byte(at) {
        b']' => matches!(byte(at + 1), b'(' | b':') && may_lead_out(bytes, at + 2),
        _ => byte(at + 1).is_ascii_alphabetic() && tag_with_value(bytes, at + 1),
    })
}

/// Something in the bytes that a short destination has could make it lead outside: a colon, two slashes, an escape.
fn may_lead_out(bytes: &[u8], at: usize) -> bool {
    let window = bytes.get(at..bytes.len().min(at + 256)).unwrap_or_default();
    let end = memchr::memchr(b')', window).unwrap_or(window.len());
    let dest = window.get(..end).unwrap_or_default();
    let acts =
        |pair: &[u8]| matches!(pair, [b':' | b'&' | b'\\' | b'%' | b'<' | b'\n', ..] | [b'/', b'/', ..]);
    end == 256 || dest.windows(2).any(acts) || dest.last().is_some_and(|b| acts(&[*b, 0]))
}

/// A `=` within the bytes that a small tag has. Larger ones are the scanner's alone.
fn tag_with_value(bytes: &[u8], at: usize) -> bool {
    let window = bytes.get(at..bytes.len().min(at + 256)).unwrap_or_default();
    let end = memchr::memchr2(b'>', b'=', window);
    end.is_some_and(|end| window.get(end) == Some(&b'='))
}

/// `text` after the parsers found nothing more to take out, and how much they did take out.
pub(super) fn settle<'a>(mut text: Cow<'a, str>, policy: &Policy) -> (Cow<'a, str>, usize) {
    let mut count = 0;
    for _ in 0..ROUNDS {
        let ranges = fetches(&text, policy);
        if ranges.is_empty() {
            return (text, count);
        }
        count += ranges.len();
        let replaced = replace(&text, &ranges);
        let again = scan(&replaced, policy);
        text = Cow::Owned(if again.is_empty() { replaced } else { replace(&replaced, &again) });
    }
    if fetches(&text, policy).is_empty() { (text, count) } else { (Cow::Owned(broken(&text)), count + 1) }
}

/// What a parser, with and without the common extensions, would fetch or link to outside.
pub(super) fn fetches(text: &str, policy: &Policy) -> Vec<Range> {
    let mut ranges = Vec::new();
    read(text, Options::empty(), policy, &mut ranges);
    if text.contains("[^") || text.contains('|') {
        let extended = Options::ENABLE_FOOTNOTES | Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        read(text, extended, policy, &mut ranges);
    }
    ranges.sort_unstable();
    let mut merged: Vec<Range> = Vec::new();
    for (start, end) in ranges {
        match merged.last_mut() {
            Some(last) if start < last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

fn read(text: &str, options: Options, policy: &Policy, ranges: &mut Vec<Range>) {
    let parser = Parser::new_ext(text, options);
    for (_, definition) in parser.reference_definitions().iter() {
        if leads_out(&definition.dest, policy) {
            ranges.push((definition.span.start, definition.span.end));
        }
    }
    let mut html: Option<(usize, usize)> = None;
    for (event, span) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::Image { dest_url, .. }) if url::target(&dest_url) == Target::Outside => {
                ranges.push((span.start, span.end));
            }
            Event::Start(Tag::Link { link_type: LinkType::Autolink | LinkType::Email, .. }) => {}
            Event::Start(Tag::Link { dest_url, .. }) if leads_out(&dest_url, policy) => {
                ranges.push((span.start, span.end));
            }
            Event::Html(_) | Event::InlineHtml(_) => match &mut html {
                Some(run) if run.1 == span.start => run.1 = span.end,
                _ => {
                    if let Some(run) = html.replace((span.start, span.end)) {
                        element(text, run, ranges);
                    }
                }
            },
            _ => {}
        }
    }
    if let Some(run) = html {
        element(text, run, ranges);
    }
}

fn leads_out(dest: &str, policy: &Policy) -> bool {
    url::target(dest) == Target::Outside && !url::allowed(dest, policy)
}

/// Takes a run of raw HTML out when the HTML tokeniser sees a value in it that leads outside.
fn element(text: &str, (start, end): Range, ranges: &mut Vec<Range>) {
    const LEADING: &[&[u8]] = &[
        b"src",
        b"srcset",
        b"href",
        b"xlink:href",
        b"background",
        b"poster",
        b"data",
        b"action",
        b"formaction",
        b"ping",
        b"manifest",
        b"style",
        b"srcdoc",
        b"cite",
        b"longdesc",
        b"codebase",
        b"imagesrcset",
    ];
    let Some(raw) = text.get(start..end) else { return };
    let Ok(tokens) = html5gum::Tokenizer::new(raw).collect::<Result<Vec<_>, _>>();
    let acts = tokens.iter().any(|token| match token {
        html5gum::Token::StartTag(tag) => tag.attributes.iter().any(|(name, value)| {
            let value = String::from_utf8_lossy(value);
            let presentation = name.as_slice() == b"style";
            (presentation && value.contains(['(', '\\', '@']))
                || (!presentation
                    && LEADING.contains(&name.as_slice())
                    && url::target(&value) == Target::Outside)
                || (name.starts_with(b"on") && !value.is_empty())
        }),
        _ => false,
    });
    if acts {
        ranges.push((start, end));
    }
}

/// Every character pair that links, defines or opens an element, pulled apart.
fn broken(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            (']', Some('(' | ':' | '[')) => out.push_str("] "),
            ('<', Some(next)) if next.is_ascii_alphabetic() => out.push_str("&lt;"),
            _ => out.push(c),
        }
    }
    out
}
