//! Raw HTML, SVG, MathML and CSS that fetches, scripts or submits.

use super::url::{self, Target};
use super::{Range, Scanner};

/// Elements that fetch, run or send by themselves. Taken out with whatever attributes they have.
const FETCHING: &[&str] = &[
    "img",
    "image",
    "iframe",
    "frame",
    "frameset",
    "object",
    "embed",
    "video",
    "audio",
    "source",
    "track",
    "input",
    "link",
    "script",
    "base",
    "form",
    "use",
    "bgsound",
    "applet",
    "portal",
    "svg",
    "math",
    "meta",
    "style",
    "mglyph",
    "area",
    "feimage",
    "foreignobject",
    "animate",
    "set",
    "layer",
    "ilayer",
    "xml",
    "isindex",
    "keygen",
    "param",
    "fencedframe",
    "webview",
    "annotation-xml",
    "handler",
    "listener",
    "import",
    "stylesheet",
];

/// By length, the first letters of [`FETCHING`], as bits from `a` on: most elements are settled by them.
const FETCHING_BY_LENGTH: [u32; 20] = {
    let mut table = [0; 20];
    let mut i = 0;
    while i < FETCHING.len() {
        let name = FETCHING[i].as_bytes();
        table[name.len()] |= 1 << (name[0] - b'a');
        i += 1;
    }
    table
};

/// Elements whose content, too, acts: they go even without attributes and in the middle of a word.
const ACTIVE: &[&str] = &["script", "style", "svg", "iframe", "applet"];

/// Of [`FETCHING`], those that do nothing without an attribute that says what: as names of types, tags of documentation
/// and words in angle brackets they stand in ordinary text.
const ARMED: &[&str] = &[
    "object", "embed", "input", "link", "meta", "param", "import", "set", "source", "track", "area",
    "handler",
];

/// Attributes that arm them, besides [`ATTRIBUTES`].
const ARMING: &[&str] = &["value", "values", "to", "from", "by", "attributename", "http-equiv", "type"];

/// What the attributes of an element can do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    /// One with a name of letters of any script, digits, `-`, `_`, `.` and `:`.
    Plain,
    /// One of [`ARMED`].
    Armed,
    /// One whose name no language has: of its attributes only those act that act anywhere.
    Unnamed,
}

/// Attributes that fetch, navigate, submit or style on some element.
const ATTRIBUTES: &[&str] = &[
    "src",
    "srcset",
    "srcdoc",
    "href",
    "xlink:href",
    "background",
    "poster",
    "data",
    "action",
    "formaction",
    "cite",
    "manifest",
    "ping",
    "longdesc",
    "profile",
    "codebase",
    "classid",
    "archive",
    "code",
    "dynsrc",
    "lowsrc",
    "icon",
    "imagesrcset",
    "style",
    "usemap",
    "itemid",
    "itemtype",
    "definitionurl",
    "altimg",
    "attributionsrc",
    "nohref",
    "fill",
    "filter",
    "mask",
    "clip-path",
    "marker-start",
    "marker-mid",
    "marker-end",
    "cursor",
    "stroke",
    "content",
    "base",
    "datasrc",
];

impl Scanner<'_> {
    /// A `<`: a tag, an autolink, a processing instruction.
    pub(super) fn tag(&mut self, at: usize) -> Option<Range> {
        let first = self.byte(at + 1);
        if first == b'?' {
            let target = self.bytes.get(at + 2..at + 16).unwrap_or_default();
            return target
                .eq_ignore_ascii_case(b"xml-stylesheet")
                .then(|| (at, self.tag_end(at + 16, None).0));
        }
        if first == b'!' {
            return self.declaration(at);
        }
        if !first.is_ascii_alphabetic() {
            return None;
        }
        let name_end = at + 1 + self.name_len(at + 1);
        if let Some(range) = self.autolink(at, name_end) {
            return Some(range);
        }
        let name = self.text.get(at + 1..name_end)?;
        let local =
            memchr::memrchr(b':', name.as_bytes()).and_then(|colon| name.get(colon + 1..)).unwrap_or(name);
        let first = local.as_bytes().first().map_or(0, |b| b | 0x20);
        let possible = FETCHING_BY_LENGTH
            .get(local.len())
            .is_some_and(|letters| first.is_ascii_lowercase() && letters >> (first - b'a') & 1 != 0);
        let one = |known: &str| known.len() == local.len() && known.as_bytes().first() == Some(&first);
        let is = |set: &[&str]| {
            possible && set.iter().any(|known| one(known) && local.eq_ignore_ascii_case(known))
        };
        if is(&["style"]) {
            return Some((at, self.style_end(name_end)));
        }
        let gap = self.bytes.get(name_end..).unwrap_or_default().iter();
        let gap = gap.take(256).take_while(|b| b.is_ascii_whitespace() || **b == b'/').count();
        // Nothing but white space and slashes up to the `>`.
        let bare = gap < 64 && self.byte(name_end + gap) == b'>';
        self.line_end_inside(name_end, name_end + gap);
        let armed = is(ARMED);
        if !armed && is(FETCHING) {
            let generic =
                bare && at > 0 && (self.byte(at - 1).is_ascii_alphanumeric() || self.byte(at - 1) == b'_');
            if generic && !is(ACTIVE) {
                return None; // `Vec<Image>`: a type; as HTML, an element without attributes that fetches nothing
            }
            let end = self.tag_end(name_end, None).0;
            return Some((at, self.within_a_paragraph(name_end, end)));
        }
        if bare {
            return None;
        }
        let named =
            |b: u8| b.is_ascii_alphanumeric() || !b.is_ascii() || matches!(b, b'-' | b'_' | b'.' | b':');
        let element = match armed {
            true => Element::Armed,
            false if name.bytes().all(named) && self.byte(name_end) != b'"' => Element::Plain,
            false => Element::Unnamed,
        };
        let mut acts = false;
        let (end, decided) = self.tag_end(name_end, Some((&mut acts, element)));
        let end = if element == Element::Unnamed { name_end } else { self.within_a_paragraph(name_end, end) };
        (acts || !decided).then_some((at, end))
    }

    /// The end of what is taken out of a tag whose name ends at `name_end`. Without its opening the rest of a tag is text: where it
    /// spreads over an empty line, which is hardly a tag but the next `>` of a program or a sentence, it stays.
    fn within_a_paragraph(&mut self, name_end: usize, end: usize) -> usize {
        let inside = self.bytes.get(name_end..end).unwrap_or_default();
        let mut blank = false;
        for b in inside.iter().skip_while(|b| !matches!(b, b'\n' | b'\r')) {
            match b {
                b'\n' if blank => return name_end,
                b'\n' => blank = true,
                b' ' | b'\t' | b'\r' => {}
                _ => blank = false,
            }
        }
        end
    }

    /// `<!ENTITY …>`, and a `<!DOCTYPE …>` that names an address: what an XML reader loads.
    fn declaration(&mut self, at: usize) -> Option<Range> {
        let word = |word: &[u8]| {
            self.bytes.get(at + 2..at + 2 + word.len()).is_some_and(|here| here.eq_ignore_ascii_case(word))
        };
        let (entity, document) = (word(b"entity"), word(b"doctype"));
        if !entity && !document {
            return None;
        }
        // Each search goes on where the last one ended.
        let rest = |from| self.bytes.get(from..).unwrap_or_default();
        if self.next_declaration_end <= at {
            let len = memchr::memchr2(b'>', b'[', rest(at));
            self.next_declaration_end = len.map_or(self.bytes.len(), |len| at + len);
        }
        if self.next_slashes <= at {
            let len = memchr::memmem::find(rest(at), b"//");
            self.next_slashes = len.map_or(self.bytes.len(), |len| at + len);
        }
        let end = self.next_declaration_end.min(at + 4096).min(self.bytes.len());
        let end = (0..4).map(|back| end - back.min(end)).find(|end| self.text.is_char_boundary(*end))?;
        let closed = usize::from(end == self.next_declaration_end && self.byte(end) == b'>');
        (entity || self.next_slashes < end).then_some((at, end + closed))
    }

    fn name_len(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let name = |b: &u8| !b.is_ascii_whitespace() && !matches!(b, b'/' | b'>' | b'<' | b'"');
        let len = rest.iter().take(64).take_while(|b| name(b)).count();
        // A longer name is cut between two characters.
        (0..4)
            .map(|back| len - back.min(len))
            .find(|len| self.text.is_char_boundary(from + len))
            .unwrap_or(len)
    }

    /// `<scheme:…>` with a scheme that leads somewhere and no white space inside.
    fn autolink(&mut self, at: usize, name_end: usize) -> Option<Range> {
        let name = self.text.get(at + 1..name_end)?;
        name.contains(':').then_some(())?;
        let rest = self.bytes.get(at + 1..)?;
        let len = rest.iter().take_while(|b| !b.is_ascii_whitespace() && !matches!(b, b'<' | b'>')).count();
        if !self.spend(len) {
            return Some((at, name_end));
        }
        if rest.get(len) != Some(&b'>') {
            return None;
        }
        let dest = self.text.get(at + 1..at + 1 + len)?;
        let leads = url::target(dest) == Target::Outside || dest.strip_suffix(':').is_some_and(url::is_known);
        let outside = leads && !url::allowed(dest, self.policy);
        let scripted = dest
            .get(..5)
            .is_some_and(|s| !s.eq_ignore_ascii_case("http:") && !s.eq_ignore_ascii_case("https"));
        (outside && (scripted || !self.policy.keep_autolinks)).then_some((at, at + len + 2))
    }

    /// One past the `>` of a tag whose name ends at `from`, by the attribute states of the HTML tokeniser, and whether
    /// the tag was read to its end. With `acts`, sets it when an attribute of such an element fetches, submits, styles or
    /// scripts.
    ///
    /// An unclosed tag ends where its name does: the rest is plain text once the opening is gone.
    fn tag_end(&mut self, from: usize, mut acts: Option<(&mut bool, Element)>) -> (usize, bool) {
        if from >= self.no_tag_end_from {
            return self.unclosed(from, acts);
        }
        if self.next_tag_end < from {
            match memchr::memchr(b'>', self.bytes.get(from..).unwrap_or_default()) {
                Some(len) => self.next_tag_end = from + len,
                None => {
                    self.no_tag_end_from = from;
                    return self.tag_end(from, acts);
                }
            }
        }
        let mut at = from;
        loop {
            // Before an attribute name.
            let skipped = self.run_len(at, |b| b.is_ascii_whitespace() || b == b'/');
            self.line_end_inside(at, at + skipped);
            at += skipped;
            match self.byte(at) {
                b'>' => return (at + 1, true),
                0 if at >= self.bytes.len() => return self.unclosed(from, acts),
                _ => {}
            }
            // The name; a leading `=` belongs to it.
            let name_at = at;
            at += 1;
            at += self.run_len(at, |b| !b.is_ascii_whitespace() && !matches!(b, b'/' | b'>' | b'='));
            if let Some((acts, element)) = &mut acts {
                **acts |= self.attribute_acts(name_at, at, *element);
            }
            let gap = self.run_len(at, |b| b.is_ascii_whitespace());
            self.line_end_inside(at, at + gap);
            if self.byte(at + gap) == b'=' {
                at += gap + 1;
                let gap = self.run_len(at, |b| b.is_ascii_whitespace());
                self.line_end_inside(at, at + gap);
                at += gap;
                at = match self.byte(at) {
                    quote @ (b'"' | b'\'') => {
                        match memchr::memchr(quote, self.bytes.get(at + 1..).unwrap_or_default()) {
                            Some(len) => {
                                self.budget = self.budget.saturating_sub(len / 8);
                                at + len + 2
                            }
                            None => return self.unclosed(from, acts),
                        }
                    }
                    b'>' => at,
                    _ => at + self.run_len(at, |b| !b.is_ascii_whitespace() && b != b'>'),
                };
            }
            if !self.spend(at - name_at.min(at)) {
                return (from, false);
            }
        }
    }

    fn unclosed(&mut self, from: usize, acts: Option<(&mut bool, Element)>) -> (usize, bool) {
        if let Some((acts, element)) = acts
            && element != Element::Unnamed
        {
            // Joined to other text it may be closed: it goes if it holds anything like an attribute.
            let rest = self.bytes.get(from..).unwrap_or_default();
            *acts |= memchr::memchr(b'=', rest.get(..rest.len().min(256)).unwrap_or_default()).is_some();
        }
        (from, true)
    }

    fn run_len(&mut self, from: usize, keep: impl Fn(u8) -> bool) -> usize {
        let len = self.bytes.get(from..).unwrap_or_default().iter().take_while(|b| keep(**b)).count();
        self.budget = self.budget.saturating_sub(len / 8);
        len
    }

    fn attribute_acts(&self, from: usize, to: usize, element: Element) -> bool {
        let Some(name) = self.text.get(from..to) else { return true };
        let handler = name.get(..2).is_some_and(|on| on.eq_ignore_ascii_case("on")) && name.len() > 3;
        if name.len() > 32 && !handler {
            return false;
        }
        // In SVG and XML any prefix may be bound to the name space of links.
        let local = name.rsplit(':').next().unwrap_or(name);
        let one_of = |set: &[&str]| {
            set.iter().any(|known| name.eq_ignore_ascii_case(known) || local.eq_ignore_ascii_case(known))
        };
        let known = match element {
            Element::Plain => one_of(ATTRIBUTES),
            Element::Armed => one_of(ATTRIBUTES) || one_of(ARMING),
            Element::Unnamed => name.eq_ignore_ascii_case("style"),
        };
        if !handler && !known {
            return false;
        }
        // An attribute without a value does nothing.
        let rest = self.bytes.get(to..).unwrap_or_default();
        rest.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'=')
            && (element == Element::Armed || !self.harmless_value(name, to))
    }

    /// Attributes that matter only with certain values: a fragment as destination, presentation without a reference.
    fn harmless_value(&self, name: &str, to: usize) -> bool {
        let rest = self.bytes.get(to..).unwrap_or_default();
        // One `=` with white space around it; a second one belongs to the value.
        let space = |from: usize| {
            rest.iter().skip(from).take(64).take_while(|b| b.is_ascii_whitespace()).count() + from
        };
        let equals = space(0);
        let lead = space(equals + 1);
        // Only the quote that opens a value closes it.
        let quote = rest.get(lead).copied().filter(|b| matches!(b, b'"' | b'\''));
        let from = lead + usize::from(quote.is_some());
        let value = rest.get(from..rest.len().min(from + 4096)).unwrap_or_default();
        let ends = |b: &u8| match quote {
            Some(quote) => *b == quote,
            None => b.is_ascii_whitespace() || *b == b'>',
        };
        let end = value.iter().position(ends).unwrap_or(value.len());
        let value = value.get(..end).unwrap_or_default();
        if equals >= 64 || lead - equals > 64 || end == 4096 {
            return false;
        }
        let presentation = [
            "style",
            "fill",
            "filter",
            "mask",
            "clip-path",
            "marker-start",
            "marker-mid",
            "marker-end",
            "cursor",
            "stroke",
            "content",
        ];
        if presentation.iter().any(|p| name.eq_ignore_ascii_case(p)) {
            // Without parentheses, escapes and references there is no url(), image-set() or expression().
            return !value.iter().any(|b| matches!(b, b'(' | b'\\' | b'&' | b'@'));
        }
        name.eq_ignore_ascii_case("href") && value.starts_with(b"#")
    }

    /// One past `</style…>`, or past the opening tag when the element is not closed.
    fn style_end(&mut self, from: usize) -> usize {
        let (open_end, _) = self.tag_end(from, None);
        if open_end < self.no_style_end_from {
            let rest = self.bytes.get(open_end..).unwrap_or_default();
            for lt in memchr::memmem::find_iter(rest, b"</") {
                if rest.get(lt + 2..lt + 7).is_some_and(|name| name.eq_ignore_ascii_case(b"style")) {
                    let close = open_end + lt + 7;
                    return self.tag_end(close, None).0;
                }
            }
            self.no_style_end_from = open_end;
        }
        open_end
    }

    /// `@import` with a string or `url(…)`: CSS that stands in a text of its own.
    pub(super) fn css_import(&mut self, at: usize) -> Option<Range> {
        let word = self.bytes.get(at + 1..at + 7)?;
        if !word.eq_ignore_ascii_case(b"import") {
            return None;
        }
        let gap = self.run_len(at + 7, |b| b.is_ascii_whitespace());
        let value = at + 7 + gap;
        let url = self.bytes.get(value..value + 4).is_some_and(|u| u.eq_ignore_ascii_case(b"url("));
        let close = match self.byte(value) {
            quote @ (b'"' | b'\'') => quote,
            _ if url => b')',
            _ => return None,
        };
        let rest = self.bytes.get(value + 1..)?;
        let len = memchr::memchr2(close, b'\n', rest).unwrap_or(rest.len());
        Some((at, value + 1 + len + usize::from(rest.get(len) == Some(&close))))
    }

    /// `data:type/subtype;…,payload` as a token of its own.
    #[inline]
    pub(super) fn data_uri(&mut self, colon: usize) -> Option<Range> {
        let start = colon.checked_sub(4)?;
        if !self.bytes.get(start..colon)?.eq_ignore_ascii_case(b"data") {
            return None;
        }
        let before = start.checked_sub(1).map_or(b' ', |i| self.byte(i));
        if before.is_ascii_alphanumeric() || matches!(before, b'_' | b'-' | b'.' | b'$') || !before.is_ascii()
        {
            return None;
        }
        let rest = self.bytes.get(colon + 1..)?;
        if self.next_media_end <= colon {
            let ends = |b: &u8| *b == b',' || b.is_ascii_whitespace() || *b == b'<';
            self.next_media_end = colon + 1 + rest.iter().position(ends).unwrap_or(rest.len());
        }
        let window = rest.get(..rest.len().min(512)).unwrap_or_default();
        let comma = Some(self.next_media_end - colon - 1).filter(|comma| *comma < window.len())?;
        let media = window.get(..comma)?;
        let slash = media.iter().position(|b| *b == b'/');
        let typed = slash
            .is_some_and(|s| s > 0 && media.get(..s).is_some_and(|t| t.iter().all(u8::is_ascii_alphabetic)));
        if window.get(comma) != Some(&b',') || !(typed || media.is_empty() || media.starts_with(b";")) {
            return None;
        }
        let payload = rest.get(comma + 1..).unwrap_or_default();
        let end = payload
            .iter()
            .position(|b| b.is_ascii_whitespace() || matches!(b, b')' | b'"' | b'\'' | b'<' | b'>'));
        let end = end.unwrap_or(payload.len());
        (end > 0).then_some((start, colon + 1 + comma + 1 + end))
    }
}
