//! Links, images and reference definitions, by CommonMark's own grammar of destinations, in whatever block they stand.

use super::url::{self, Target};
use super::{Range, Scanner};

/// Open brackets that are remembered. A link whose opening is forgotten is taken out from its `]` on.
const MAX_OPEN: usize = 16 * 1024;

/// A destination that follows `](` or `]:`.
struct Destination<'a> {
    dest: &'a str,
    /// One past the destination (and its `>`).
    end: usize,
    /// One past the closing parenthesis, when the whole is a well-formed link; for definitions, one past the line.
    closed: Option<usize>,
}

impl<'a> Scanner<'a> {
    pub(super) fn open_bracket(&mut self, at: usize) {
        if !self.escaped(at) {
            let image = at > 0 && self.byte(at - 1) == b'!';
            // What was opened longest ago is closed least likely.
            if self.brackets.len() >= MAX_OPEN {
                self.brackets.drain(..MAX_OPEN / 2);
                self.forgot = true;
            }
            self.brackets.push((at, image));
        }
    }

    /// A `]`: what stands after it decides whether this is a link, an image, a reference use or a definition.
    pub(super) fn close_bracket(&mut self, at: usize) -> Option<Range> {
        let escaped = self.escaped(at);
        let open = if escaped { None } else { self.brackets.pop() };
        let start = open.map_or(at, |(o, image)| if image { o - 1 } else { o });
        let image = open.is_some_and(|o| o.1);
        match self.byte(at + 1) {
            b'(' => self.inline(start, at, image),
            b':' => self.definition(open.map(|o| o.0), at),
            b'[' if image => self.reference_image(start, at),
            // `![[target]]` is how some dialects embed.
            b']' if start > 1
                && !image
                && self.bytes.get(start - 2..start) == Some(b"![")
                && !self.word_before(start - 2) =>
            {
                let inner = self.text.get(start + 1..at)?;
                (url::target(inner) == Target::Outside).then_some((start - 2, at + 2))
            }
            _ if image && self.byte(start + 2) == b'^' && !self.word_before(start) => Some((start, at + 1)),
            _ => None,
        }
    }

    fn inline(&mut self, start: usize, close: usize, image: bool) -> Option<Range> {
        let found = self.destination(close + 2, true);
        let range = self.leaving(start, image, &found);
        // The parser undoes escapes, and knows what a line end is inside the block where it stands.
        self.unsure |= range.is_none() && self.spelled_otherwise(close + 2, found.end);
        range
    }

    /// What goes of a link or an image that begins at `start`, if it leads outside.
    fn leaving(&self, start: usize, image: bool, found: &Destination<'_>) -> Option<Range> {
        if image {
            let calls_a_macro = self.word_before(start) && url::target(found.dest) != Target::Outside;
            return (!calls_a_macro).then_some((start, found.closed.unwrap_or(found.end)));
        }
        let outside = match url::target(found.dest) {
            Target::Outside => true,
            Target::Unknown => {
                let nothing = found.dest.strip_suffix(':').is_some_and(url::is_known);
                found.closed.is_some()
                    && (nothing || !found.dest.contains("::") && !found.dest.ends_with(':'))
            }
            Target::Relative => false,
        };
        (outside && !url::allowed(found.dest, self.policy))
            .then_some((start, found.closed.unwrap_or(found.end)))
    }

    /// `![a][b]`: the definition may stand in another text that is joined to this one.
    fn reference_image(&mut self, start: usize, close: usize) -> Option<Range> {
        if self.word_before(start) {
            return None;
        }
        let label = self.bytes.get(close + 2..).unwrap_or_default();
        // CommonMark: a label has at most 999 characters and no bracket inside.
        let window = label.get(..label.len().min(4000)).unwrap_or_default();
        let len = memchr::memchr2(b']', b'[', window)?;
        if !self.spend(len) || window.get(len) != Some(&b']') {
            return None;
        }
        Some((start, close + 3 + len))
    }

    /// `[label]: destination` as the first thing of a line, containers aside.
    fn definition(&mut self, open: Option<usize>, close: usize) -> Option<Range> {
        let Some(start) = open else {
            self.unsure |= self.forgot;
            return None;
        };
        let far = start.saturating_sub(1024);
        let head = self.bytes.get(far..start)?;
        let line = memchr::memrchr2(b'\n', b'\r', head).map_or(far, |n| far + n + 1);
        let prefix = self.bytes.get(line..start)?;
        if !containers(prefix) || close == start + 1 {
            return None;
        }
        // So long a row of containers is none that a scanner has to tell from code.
        self.unsure |= line == far && far > 0;
        if prefix.starts_with(b"    ") || prefix.starts_with(b"\t") {
            // Code, or a definition in a list: the block it stands in says which.
            let window = self.bytes.get(close + 2..self.bytes.len().min(close + 258)).unwrap_or_default();
            self.unsure |= window.iter().any(|b| matches!(b, b':' | b'/' | b'&' | b'\\' | b'%'));
            // Some parsers take a destination whose parentheses do not balance; the one that is asked does not.
            if !window.contains(&b'(') {
                return None;
            }
        }
        let footnote = self.byte(start + 1) == b'^';
        if close == start + 1 {
            return None;
        }
        let found = self.destination(close + 2, false);
        if found.dest.is_empty() {
            return None;
        }
        match url::target(found.dest) {
            // An image may use the definition, and an image is fetched without a click.
            Target::Outside if url::allowed(found.dest, self.policy) && !self.has_image() => None,
            // The note stays a note; only what a reader without footnotes takes for a destination goes.
            Target::Outside if footnote => {
                (found.closed.is_some()).then_some((found.end - found.dest.len(), found.end))
            }
            Target::Outside => Some((start, found.closed.unwrap_or(found.end))),
            _ if footnote => None,
            // It leads to a file beside the text, and only an image would fetch that.
            Target::Relative if !self.has_image() => None,
            _ => {
                let path = found.dest.contains(['/', '.', '%', '&', '\\', '#']);
                found.closed.filter(|_| path).map(|end| (start, end))
            }
        }
    }

    /// Reads a destination at `from`, after optional white space: `<…>` or balanced, and what follows it.
    fn destination(&mut self, from: usize, inline: bool) -> Destination<'a> {
        let mut at = self.skip_space(from);
        self.line_end_inside(from, at);
        // The next line of a definition in a quotation begins with the quotation's own mark.
        if !inline && self.bytes.get(from..at).is_some_and(|gap| gap.contains(&b'\n') || gap.contains(&b'\r'))
        {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let marks = rest.iter().take_while(|b| matches!(b, b'>' | b' ' | b'\t')).count();
            at += if self.spend(marks) { marks } else { 0 };
        }
        let (dest, end) = if self.byte(at) == b'<' {
            let inner = self.bytes.get(at + 1..).unwrap_or_default();
            let len =
                inner.iter().position(|b| matches!(b, b'>' | b'<' | b'\n' | b'\r')).unwrap_or(inner.len());
            let len = if self.spend(len) { len } else { 0 };
            let dest = self.text.get(at + 1..at + 1 + len).unwrap_or_default();
            (dest, at + 1 + len + usize::from(self.byte(at + 1 + len) == b'>'))
        } else {
            let end = self.bare_end(at, inline);
            match self.split_by_tabs(at, end) {
                Some(whole) if inline => (self.text.get(at..whole).unwrap_or_default(), whole),
                _ => (self.text.get(at..end).unwrap_or_default(), end),
            }
        };
        let closed = if inline { self.inline_close(end) } else { self.definition_close(end) };
        Destination { dest, end, closed }
    }

    /// A scheme with tabs or line ends inside, which URL parsers drop: the end of what they read as one destination.
    fn split_by_tabs(&self, at: usize, end: usize) -> Option<usize> {
        matches!(self.byte(end), b'\t' | b'\n' | b'\r').then_some(())?;
        let window = self.bytes.get(at..self.bytes.len().min(at + 256)).unwrap_or_default();
        let len = window.iter().position(|b| matches!(b, b')' | b' ')).unwrap_or(0);
        let whole = self.text.get(at..at + len)?;
        (url::target(whole) == Target::Outside).then_some(at + len)
    }

    fn bare_end(&mut self, at: usize, inline: bool) -> usize {
        // Where no parenthesis closes, a destination that begins further on ends at the same place.
        let (from, to) = self.bare;
        if (from..to).contains(&at) {
            return to;
        }
        let (mut depth, mut closes) = (0usize, false);
        let mut end = at;
        let limit = self.bytes.len().min(at.saturating_add(self.budget));
        while let Some(&b) = self.bytes.get(end).filter(|_| end < limit) {
            match b {
                b' ' | b'\n' | b'\t' | b'\r' => break,
                b'\\' if self.byte(end + 1).is_ascii_punctuation() => end += 1,
                b'(' => depth += 1,
                b')' if inline && depth == 0 => break,
                b')' => {
                    depth = depth.saturating_sub(1);
                    closes = true;
                }
                _ => {}
            }
            end += 1;
        }
        let mut end = end.min(self.bytes.len());
        self.budget = self.budget.saturating_sub(end.saturating_sub(at));
        let whole = end < limit || end == self.bytes.len();
        self.bare = if whole && inline && !closes { (at, end) } else { (0, 0) };
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        end
    }

    /// One past the `)` when an optional title and white space lead there.
    fn inline_close(&mut self, end: usize) -> Option<usize> {
        let at = self.skip_space(end);
        if self.byte(at) == b')' {
            return Some(at + 1);
        }
        let after = self.title(at).filter(|_| at > end)?;
        let at = self.skip_space(after);
        (self.byte(at) == b')').then_some(at + 1)
    }

    /// One past the last byte of the definition when nothing but an optional title follows on the line.
    fn definition_close(&mut self, end: usize) -> Option<usize> {
        let blank_to = |from: usize| {
            let rest = self.bytes.get(from..).unwrap_or_default();
            let gap = rest.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
            matches!(rest.get(gap), None | Some(b'\n' | b'\r'))
        };
        if blank_to(end) {
            return Some(end);
        }
        let gap = self
            .bytes
            .get(end..)
            .unwrap_or_default()
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t'))
            .count();
        let after = self.title(end + gap).filter(|_| gap > 0)?;
        let rest = self.bytes.get(after..).unwrap_or_default();
        let tail = rest.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
        matches!(rest.get(tail), None | Some(b'\n' | b'\r')).then_some(after)
    }

    /// One past a title in `"…"`, `'…'` or `(…)`.
    fn title(&mut self, at: usize) -> Option<usize> {
        let close = match self.byte(at) {
            q @ (b'"' | b'\'') => q,
            b'(' => b')',
            _ => return None,
        };
        let mut end = at + 1;
        loop {
            // What is looked through is drawn from the budget, found or not.
            let rest = self.bytes.get(end..self.bytes.len().min(end.saturating_add(self.budget)))?;
            let found = memchr::memchr2(close, b'\\', rest);
            let spent = self.spend(found.map_or(rest.len(), |len| len + 1));
            let len = found.filter(|_| spent)?;
            end += len + 1;
            if rest.get(len) == Some(&close) {
                return Some(end);
            }
            end += 1;
        }
    }

    fn skip_space(&mut self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let len = rest.iter().take_while(|b| b.is_ascii_whitespace() || **b == 0x0b).count();
        if self.spend(len) { from + len } else { from }
    }

    /// Is what stands in `from..to` between a bracket and the end of a destination more than plain characters?
    fn spelled_otherwise(&mut self, from: usize, to: usize) -> bool {
        /// A scheme, or two slashes, stand within these.
        const WINDOW: usize = 256;
        let window = self.bytes.get(from..to.min(from + WINDOW)).unwrap_or_default();
        let lead = window.iter().take_while(|b| b.is_ascii_whitespace()).count();
        lead > 16
            || window.iter().take(lead).any(|b| matches!(b, b'\n' | b'\r'))
            || self.reference_before(from, from + window.len())
    }

    /// Does a `&` stand in `from..to`? Each search goes on where the last one ended.
    fn reference_before(&mut self, from: usize, to: usize) -> bool {
        if self.next_reference < from {
            let len = memchr::memchr(b'&', self.bytes.get(from..).unwrap_or_default());
            self.next_reference = len.map_or(self.bytes.len(), |len| from + len);
        }
        self.next_reference < to
    }

    /// Is there anything that could use a definition as an image?
    fn has_image(&mut self) -> bool {
        *self.image.get_or_insert_with(|| memchr::memmem::find(self.bytes, b"![").is_some())
    }

    /// A backslash stands before `at` and is not escaped itself.
    fn escaped(&self, at: usize) -> bool {
        let run = self
            .bytes
            .get(..at)
            .unwrap_or_default()
            .iter()
            .rev()
            .take_while(|b| **b == b'\\')
            .take(64)
            .count();
        run % 2 == 1
    }

    /// `name!` or `!!` directly before: a macro call or a negation, not an image.
    fn word_before(&self, at: usize) -> bool {
        at > 0 && matches!(self.byte(at - 1), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'!')
    }
}

/// Is `prefix` what containers put before the first thing of a line: quotes, lists, task boxes, footnotes, and the terms
/// and letters of other dialects?
fn containers(mut prefix: &[u8]) -> bool {
    loop {
        let plain =
            |b: &u8| matches!(b, b' ' | b'\t' | b'>' | b'-' | b'*' | b'+' | b'.' | b')' | b':' | b'0'..=b'9');
        let skipped = prefix.iter().take_while(|b| plain(b)).count();
        prefix = prefix.get(skipped..).unwrap_or_default();
        let letters = prefix.iter().take(5).take_while(|b| b.is_ascii_alphabetic()).count();
        let step = match prefix {
            [] => return true,
            [b'[', b' ' | b'x' | b'X', b']', ..] => 3,
            [b'[', b'^', ..] => match memchr::memmem::find(prefix, b"]:") {
                Some(end) => end + 2,
                None => return false,
            },
            _ if (1..5).contains(&letters) && matches!(prefix.get(letters), Some(b'.' | b')')) => letters + 1,
            _ => return false,
        };
        prefix = prefix.get(step..).unwrap_or_default();
    }
}
