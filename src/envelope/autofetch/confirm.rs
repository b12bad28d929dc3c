//! The second reading: a CommonMark parser and an HTML tokeniser look at what the scanner left.

use super::url::{self, Target};
use super::{Policy, Range, replace, scan};
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag};
use std::borrow::Cow;

/// Rounds of reading and taking out before everything is broken.
const ROUNDS: usize = 3;

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
        let again = scan(&replaced, policy).ranges;
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
    // Without what its containers put in front of each line, as a renderer writes it.
    let mut html = Html::default();
    for (event, span) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::Image { dest_url, .. }) if url::target(&dest_url) == Target::Outside => {
                ranges.push((span.start, span.end));
            }
            Event::Start(Tag::Link { link_type: LinkType::Autolink | LinkType::Email, .. }) => {}
            Event::Start(Tag::Link { dest_url, .. }) if leads_out(&dest_url, policy) => {
                ranges.push((span.start, span.end));
            }
            Event::Html(raw) | Event::InlineHtml(raw) => {
                html.push(&raw, (span.start, span.end));
                continue;
            }
            _ => {}
        }
        html.end(ranges);
    }
    html.end(ranges);
}

/// Raw HTML that comes in one piece.
#[derive(Default)]
struct Html {
    raw: String,
    place: Range,
}

impl Html {
    fn push(&mut self, raw: &str, place: Range) {
        if self.raw.is_empty() {
            self.place = place;
        }
        self.raw.push_str(raw);
        self.place.1 = place.1;
    }

    fn end(&mut self, ranges: &mut Vec<Range>) {
        if !self.raw.is_empty() && acts(&self.raw) {
            ranges.push(self.place);
        }
        self.raw.clear();
    }
}

fn leads_out(dest: &str, policy: &Policy) -> bool {
    url::target(dest) == Target::Outside && !url::allowed(dest, policy)
}

/// Does the HTML tokeniser see a value that leads outside?
fn acts(raw: &str) -> bool {
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
    let acting = |token: &html5gum::Token| match token {
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
    };
    // What is rendered after it can close a tag that its end leaves open, in a value or outside of one.
    ["", "x>", "x'>", "x\">"].iter().any(|close| {
        let Ok(tokens) = html5gum::Tokenizer::new(&format!("{raw}{close}")).collect::<Result<Vec<_>, _>>();
        tokens.iter().any(acting)
    })
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
