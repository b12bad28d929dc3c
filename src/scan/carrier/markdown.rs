//! Markdown: the text of a paragraph without the targets of its links and images.
//!
//! Only paragraphs that have a link are parsed: in every other the words stand as a reader sees them.

use super::stitch::Stitch;
use crate::scan::decode::View;
use pulldown_cmark::{BrokenLink, CowStr, Event, Options, Parser, TagEnd};

/// The longest paragraph that is parsed at once, in bytes; a longer one is cut.
const PARAGRAPH: usize = 64 * 1024;
/// What is read of a paragraph before its first link and behind one that no other follows so soon, in bytes: further off, the
/// words stand together in the source.
const AROUND: usize = 1024;

/// The view of the paragraphs with links in `text`.
pub(super) fn views(text: &str, out: &mut Vec<View>) {
    let mut stitch = Stitch::default();
    let mut done = 0;
    while let Some(p) = text.as_bytes().get(done..).and_then(link) {
        let at = done + p;
        let from = text.ceil_char_boundary(done.max(at.saturating_sub(AROUND)));
        let before = text.as_bytes().get(from..at).unwrap_or_default();
        let from = from + memchr::memmem::rfind(before, b"\n\n").map_or(0, |p| p + 2);
        let rest = text.as_bytes().get(at..text.len().min(from + PARAGRAPH)).unwrap_or_default();
        let mut last = 0;
        let end = loop {
            // Up to where the paragraph ends, or no link follows for long.
            let near = rest.get(last..rest.len().min(last + AROUND)).unwrap_or_default();
            let paragraph = memchr::memmem::find(near, b"\n\n");
            let near = near.get(..paragraph.unwrap_or(near.len())).unwrap_or_default();
            match near.get(1..).and_then(last_link) {
                Some(p) => last += 1 + p,
                None => break at + last + near.len(),
            }
        };
        let end = text.ceil_char_boundary(end.max(at + 2));
        paragraph(text, from, end, &mut stitch);
        done = end;
    }
    out.extend(stitch.view("markdown text"));
}

/// Where a link may end its text.
fn link(text: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b']', text).find(|i| matches!(text.get(i + 1), Some(b'(' | b'[')))
}

/// The same, the last one.
fn last_link(text: &[u8]) -> Option<usize> {
    memchr::memrchr_iter(b']', text).find(|i| matches!(text.get(i + 1), Some(b'(' | b'[')))
}

fn paragraph(text: &str, from: usize, end: usize, stitch: &mut Stitch) {
    let Some(source) = text.get(from..end) else { return };
    let any = |_: BrokenLink<'_>| Some((CowStr::from("#"), CowStr::from("")));
    let parser = Parser::new_with_broken_link_callback(source, Options::ENABLE_TABLES, Some(any));
    for (event, range) in parser.into_offset_iter() {
        let (a, b) = (from + range.start, from + range.end);
        match event {
            Event::Text(t) | Event::Code(t) => stitch.changed(t.as_bytes(), text.as_bytes(), a, b),
            Event::SoftBreak | Event::HardBreak => stitch.between(b"\n"),
            Event::End(
                TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Item | TagEnd::TableCell | TagEnd::CodeBlock,
            ) => {
                let plain = stitch.plain();
                stitch.close(!plain);
            }
            _ => {}
        }
    }
    let plain = stitch.plain();
    stitch.close(!plain);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(text: &str) -> String {
        crate::scan::carrier::last_view(text, views)
    }

    #[test]
    fn link_targets_and_images_are_cut_out() {
        assert_eq!(view("a\n\none [two](https://x.example/y \"t\") three\n\nb"), "one two three");
        assert_eq!(view("one [two][ref] ![three](i.png) four"), "one two three four");
        assert_eq!(view("no link (here)"), "");
    }
}
