//! HTML and what looks like it: text across inline elements, attributes with entities, comments, hidden elements.
//!
//! The tokeniser never enters the states of script, style or title, and a tag or comment that the end of the text cuts
//! off is read again as text: whatever a document leaves open hides nothing that follows from the other pieces.

use super::stitch::Stitch;
use crate::scan::decode::View;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Emitter, Error, ForwardingEmitter, Span, Tokenizer};
use std::convert::Infallible;

/// Elements that stand inside a line of text.
const INLINE: &[&[u8]] = &[
    b"a", b"abbr", b"b", b"bdi", b"bdo", b"big", b"button", b"cite", b"code", b"data", b"del", b"dfn", b"em",
    b"font", b"i", b"img", b"input", b"ins", b"kbd", b"label", b"mark", b"nobr", b"picture", b"q", b"s",
    b"samp", b"small", b"source", b"span", b"strike", b"strong", b"sub", b"sup", b"svg", b"time", b"tt",
    b"u", b"var", b"wbr",
];
/// Elements without an end.
const VOID: &[&[u8]] = &[
    b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"source",
    b"track", b"wbr",
];
/// Elements besides the inline ones that show that a text has HTML in it.
const TELLING: &[&[u8]] = &[
    b"br",
    b"div",
    b"iframe",
    b"li",
    b"meta",
    b"option",
    b"p",
    b"section",
    b"td",
    b"textarea",
    b"th",
    b"tr",
];
/// Times that a text is read again behind something that is left open.
const AGAIN: usize = 16;
/// What is read before a tag and behind it, in bytes.
const AROUND: usize = 1024;
/// Longest `style` attribute that is looked at, in bytes.
const STYLE: usize = 2048;

/// The views of the HTML in `text`.
pub(super) fn views(text: &[u8], out: &mut Vec<View>) {
    let Some(page) = read(text) else { return };
    let all = [
        (page.text, "html text"),
        (page.attributes, "html attribute"),
        (page.comments, "html comment"),
        (page.hidden, "html hidden"),
    ];
    out.extend(all.into_iter().filter_map(|(stitch, name)| stitch.view(name)));
}

/// Byte ranges of text that a browser does not show.
pub(crate) fn hidden(text: &[u8]) -> Vec<(usize, usize)> {
    if text.len() > super::LIMIT {
        return Vec::new();
    }
    read(text).map(|page| page.ranges).unwrap_or_default()
}

/// The parts of `text` that have tags, with what stands around them: the rest has one text in one piece.
fn parts(text: &[u8]) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    let mut read = 0; // a comment goes so far
    let mut close = |from: usize, to: usize| {
        if text.get(from..to).is_some_and(marked_up) {
            out.push((from, to));
        }
    };
    for at in memchr::memchr_iter(b'<', text) {
        let next = text.get(at + 1).copied().unwrap_or(0);
        if !next.is_ascii_alphabetic() && !matches!(next, b'/' | b'!') || at < read {
            continue;
        }
        // A comment goes to its end, whatever is in it.
        let comment = text.get(at..).filter(|t| t.starts_with(b"<!--"));
        let end = comment.and_then(|c| memchr::memmem::find(c, b"-->")).map_or(at, |p| at + p);
        read = end;
        let to = (end + AROUND).min(text.len());
        match &mut open {
            Some((_, reach)) if at.saturating_sub(AROUND) <= *reach => *reach = to,
            _ => {
                if let Some((from, to)) = open.replace((at.saturating_sub(AROUND), to)) {
                    close(from, to);
                }
            }
        }
    }
    if let Some((from, to)) = open {
        close(from, to);
    }
    out
}

/// Whether `text` has a comment or an element that may stand in a line.
fn marked_up(text: &[u8]) -> bool {
    memchr::memchr_iter(b'<', text).any(|at| {
        let rest = text.get(at + 1..).unwrap_or_default();
        if rest.starts_with(b"!--") {
            return true;
        }
        let rest = rest.strip_prefix(b"/").unwrap_or(rest);
        let len = rest.iter().take(10).take_while(|b| b.is_ascii_alphanumeric()).count();
        let mut lower = [0u8; 10];
        lower.iter_mut().zip(rest).take(len).for_each(|(l, b)| *l = b.to_ascii_lowercase());
        let name = lower.get(..len).unwrap_or_default();
        let ends = rest.get(len).is_none_or(|b| matches!(b, b'>' | b'/') || b.is_ascii_whitespace());
        len > 0 && ends && (INLINE.contains(&name) || TELLING.contains(&name))
    })
}

fn read(text: &[u8]) -> Option<Page<'_>> {
    let parts = parts(text);
    let mut page = Page::new(text);
    let mut before = parts.first()?.0;
    for (from, to) in parts {
        page.unread(before, from);
        before = to;
        part(&mut page, from, to);
        page.line_ends();
    }
    page.unread(before, text.len());
    let many = page.comments.pieces() > 1;
    page.comments.close(many);
    let many = page.hidden.pieces() > 1;
    page.hidden.close(many);
    Some(page)
}

/// Reads `from..to`.
fn part(page: &mut Page<'_>, from: usize, to: usize) {
    let Some(text) = page.source.get(..to) else { return };
    (page.from, page.closed) = (from, from);
    // Behind the last end of a comment, none that begins is closed: each is read as a sign.
    let last = text.get(from..).and_then(|t| memchr::memmem::rfind(t, b"-->")).map_or(from, |p| from + p);
    let opening = memchr::memmem::Finder::new(b"<!--");
    for _ in 0..AGAIN {
        let until = last.max(page.from);
        let unclosed = text.get(until..).and_then(|t| opening.find(t)).map(|p| until + p);
        let Some(rest) = text.get(page.from..unclosed.unwrap_or(to)) else { break };
        let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, span: Span<usize>| {
            page.event(event, span);
            None::<Infallible>
        });
        emitter.naively_switch_states(false);
        for token in Tokenizer::new_with_emitter(rest, Tail { emitter, left: rest.len() as isize }) {
            let Ok(_) = token;
        }
        let Some(open) = page.open.take().or(unclosed.map(|u| u + 4)) else { break };
        page.from = open;
        page.closed = open;
    }
}

/// Takes every character as it is: only what the end of the text cuts off is an error. To look for others costs as much
/// as all the rest of the tokeniser.
struct Tail<E> {
    emitter: E,
    /// Bytes up to the end.
    left: isize,
}

impl<E: Emitter> ForwardingEmitter for Tail<E> {
    type Token = E::Token;

    fn inner(&mut self) -> &mut impl Emitter<Token = E::Token> {
        &mut self.emitter
    }

    fn should_emit_errors(&mut self) -> bool {
        self.left < 16
    }

    fn move_position(&mut self, offset: isize) {
        self.left -= offset;
        self.emitter.move_position(offset);
    }
}

struct Page<'a> {
    source: &'a [u8],
    /// Where the reading began.
    from: usize,
    /// What was read as a whole ends here.
    closed: usize,
    /// Behind the mark of a tag or comment that the end of the text cuts off.
    open: Option<usize>,
    text: Stitch,
    attributes: Stitch,
    comments: Stitch,
    hidden: Stitch,
    ranges: Vec<(usize, usize)>,
    /// The element that hides what is in it, and how many of its name are open.
    hiding: Option<(Vec<u8>, usize)>,
    tag: Vec<u8>,
    attribute: Vec<u8>,
    /// The tag that is being read hides its element.
    hides: bool,
}

impl<'a> Page<'a> {
    fn new(source: &'a [u8]) -> Page<'a> {
        Page {
            source,
            from: 0,
            closed: 0,
            open: None,
            text: Stitch::default(),
            attributes: Stitch::default(),
            comments: Stitch::default(),
            hidden: Stitch::default(),
            ranges: Vec::new(),
            hiding: None,
            tag: Vec::new(),
            attribute: Vec::new(),
            hides: false,
        }
    }

    /// `from..to` has no tags; it is hidden when an element is that is still open.
    fn unread(&mut self, from: usize, to: usize) {
        if self.hiding.is_some() && from < to {
            self.hidden.verbatim(self.source, from, to);
            self.ranges.push((from, to));
        }
    }

    fn event(&mut self, event: CallbackEvent<'_>, span: Span<usize>) {
        let (start, end) = (self.from + span.start, self.from + span.end);
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.hides = false;
                self.tag.clear();
                self.tag.extend_from_slice(name);
                self.boundary(name);
            }
            CallbackEvent::AttributeName { name } => {
                self.attribute.clear();
                self.attribute.extend_from_slice(name.get(..name.len().min(32)).unwrap_or_default());
                self.hides |= name == b"hidden";
            }
            CallbackEvent::AttributeValue { value } => {
                self.hides |= self.attribute == b"style" && hides(value);
                if self.source.get(start..end) != Some(value) && value.len() > 3 {
                    self.attributes.changed(value, self.source, start, end.min(self.source.len()));
                    self.attributes.close(true);
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                self.closed = self.closed.max(end);
                let void = self_closing || VOID.contains(&self.tag.as_slice());
                match &mut self.hiding {
                    Some((name, n)) if *name == self.tag && !void => *n += 1,
                    None if self.hides && !void => self.hiding = Some((self.tag.clone(), 1)),
                    _ => {}
                }
            }
            CallbackEvent::EndTag { name } => {
                self.closed = self.closed.max(end);
                if let Some((hiding, n)) = &mut self.hiding
                    && hiding == name
                {
                    *n -= 1;
                    if *n == 0 {
                        self.hiding = None;
                        self.hidden.between(b"\n");
                    }
                }
                self.boundary(name);
            }
            CallbackEvent::String { value } => {
                self.closed = self.closed.max(end);
                let end = end.min(self.source.len());
                append(&mut self.text, value, self.source, start, end);
                if self.hiding.is_some() {
                    append(&mut self.hidden, value, self.source, start, end);
                    self.ranges.push((start, end));
                }
            }
            CallbackEvent::Comment { value } => {
                self.closed = self.closed.max(end);
                let inner = self.source.get(start..end).and_then(|s| memchr::memmem::find(s, value));
                if let Some(at) = inner.map(|p| start + p) {
                    self.comments.verbatim(self.source, at, at + value.len());
                    self.comments.between(b"\n");
                }
            }
            CallbackEvent::Error(Error::EofInTag | Error::EofInComment | Error::EofInDoctype) => {
                let rest = self.source.get(self.closed..).unwrap_or_default();
                self.open = memchr::memchr(b'<', rest).map(|p| self.closed + p + 1);
            }
            CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => {}
        }
    }

    /// A tag of this name stands between two texts.
    fn boundary(&mut self, name: &[u8]) {
        if name == b"br" {
            self.text.between(b"\n");
        } else if !INLINE.contains(&name) {
            self.line_ends();
        }
    }

    fn line_ends(&mut self) {
        let plain = self.text.plain();
        self.text.close(!plain);
    }
}

/// Appends a text of the page. The tokeniser turns each line break into one byte, which is no difference.
fn append(to: &mut Stitch, value: &[u8], source: &[u8], start: usize, end: usize) {
    let written = source.get(start..end).unwrap_or_default();
    let same = value.len() < written.len() && written.iter().filter(|b| **b != b'\r').eq(value);
    if same { to.verbatim(source, start, end) } else { to.changed(value, source, start, end) }
}

/// Whether a `style` attribute keeps an element from being seen.
fn hides(style: &[u8]) -> bool {
    let style = style.get(..style.len().min(STYLE)).unwrap_or_default();
    let mut flat: Vec<u8> =
        style.iter().filter(|b| !b.is_ascii_whitespace()).map(u8::to_ascii_lowercase).collect();
    flat.push(b';');
    flat.split(|b| *b == b';').any(|declaration| {
        let Some((name, value)) = std::str::from_utf8(declaration).ok().and_then(|d| d.split_once(':'))
        else {
            return false;
        };
        let value = value.trim_end_matches("!important");
        let zero = || value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
        let none = || !zero().is_empty() && zero().chars().all(|c| matches!(c, '0' | '.'));
        match name {
            "display" => value == "none",
            "visibility" => matches!(value, "hidden" | "collapse"),
            "opacity" | "font-size" => none(),
            "left" | "top" | "right" | "text-indent" | "margin-left" => {
                let far = value.strip_prefix('-').map(|v| v.chars().take_while(char::is_ascii_digit).count());
                far.is_some_and(|digits| digits >= 3)
            }
            "color" => matches!(value, "transparent" | "white" | "#fff" | "#ffffff" | "rgba(0,0,0,0)"),
            "clip" => value.starts_with("rect(0") || value.starts_with("rect(1px"),
            "clip-path" => value.starts_with("inset(50%") || value.starts_with("inset(100%"),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: &str, text: &str) -> String {
        let mut out = Vec::new();
        views(text.as_bytes(), &mut out);
        let found = out.into_iter().find(|v| v.name == name);
        found.map(|v| String::from_utf8(v.bytes).unwrap().trim().to_string()).unwrap_or_default()
    }

    #[test]
    fn text_goes_across_inline_elements_and_stops_at_blocks() {
        let text = "<p>one <a href='https://x.example/a-b-c'>two</a> <!-- c -->thr<b>ee</b></p><p>four</p>";
        assert_eq!(view("html text", text), "one two three");
        assert_eq!(view("html text", "<p>one</p><p>two</p>"), "");
    }

    #[test]
    fn attributes_are_listed_when_entities_change_them() {
        assert_eq!(view("html attribute", "<p title='a &quot;b&quot; c' lang='en'>x</p>"), "a \"b\" c");
    }

    #[test]
    fn comments_are_joined_and_hidden_elements_too() {
        assert_eq!(view("html comment", "<!--a--> text <!--b-->"), "a\nb");
        let text = "<p style='display: none'>a</p>x<div hidden>b<div>c</div></div>y";
        assert_eq!(view("html hidden", text), "a\nbc");
        let spans: Vec<&str> = hidden(text.as_bytes()).into_iter().map(|(a, b)| &text[a..b]).collect();
        assert_eq!(spans, ["a", "b", "c"]);
    }

    #[test]
    fn what_is_left_open_hides_nothing_behind_it() {
        for open in ["<!-- ", "<a href=\"", "<script>", "<textarea>", "<title>", "<!doctype "] {
            let text = format!("x {open} y <i>one</i> <b>two</b> three");
            assert!(
                view("html text", &text).contains("one two three"),
                "{open}: {}",
                view("html text", &text)
            );
        }
    }

    #[test]
    fn styles_that_hide() {
        for style in ["display:none", "opacity: 0.0", "font-size:0px", "left:-9999px", "color: #FFF"] {
            assert!(hides(style.as_bytes()), "{style}");
        }
        for style in ["display:block", "opacity:0.5", "font-size:10px", "left:-9px", "color:#333", "opacity"]
        {
            assert!(!hides(style.as_bytes()), "{style}");
        }
    }
}
