//! A text put together from pieces of a source, with the way back.

use crate::scan::decode::View;

/// How far behind the piece before a word is looked for, in bytes.
const AHEAD: usize = 256;
/// The shortest word that is looked for, in bytes.
const WORD: usize = 3;

/// Collects pieces in blocks: a block is kept or dropped as a whole, and blocks are paragraphs of the view.
#[derive(Debug, Default)]
pub(super) struct Stitch {
    bytes: Vec<u8>,
    /// (offset in `bytes`, offset in the source).
    points: Vec<(u32, u32)>,
    /// Where the open block begins, in bytes and in points.
    block: (usize, usize),
    /// Pieces of the open block.
    pieces: usize,
    /// A piece of the open block differs from its source.
    changed: bool,
    /// Where the last piece ended in the source.
    end: usize,
}

impl Stitch {
    /// Appends `source[from..to]` as it is.
    pub fn verbatim(&mut self, source: &[u8], from: usize, to: usize) {
        let Some(piece) = source.get(from..to).filter(|p| !p.is_empty()) else { return };
        // What stands together in the source is one piece.
        if self.pieces == 0 || from != self.end {
            self.pieces += 1;
        }
        self.point(from);
        self.bytes.extend_from_slice(piece);
        self.point(to);
        self.end = to;
    }

    /// Appends `text`, which `source[from..to]` stands for.
    pub fn changed(&mut self, text: &[u8], source: &[u8], from: usize, to: usize) {
        if source.get(from..to) == Some(text) {
            return self.verbatim(source, from, to);
        }
        self.pieces += 1;
        self.changed = true;
        self.point(from);
        let (base, mut at) = (self.bytes.len(), from);
        let mut word = 0;
        for i in 0..=text.len() {
            if text.get(i).is_some_and(|b| b.is_ascii_alphanumeric() || *b >= 0x80) {
                continue;
            }
            if let Some(w) = text.get(word..i).filter(|w| w.len() >= WORD)
                && let Some(near) = source.get(at..to.min(at.saturating_add(AHEAD + w.len())))
                && let Some(p) = find(near, w)
            {
                self.points.push(((base + word) as u32, (at + p) as u32));
                self.points.push(((base + i) as u32, (at + p + w.len()) as u32));
                at += p + w.len();
            }
            word = i + 1;
        }
        self.bytes.extend_from_slice(text);
        self.point(to);
        self.end = to;
    }

    /// Appends one character that `source[from..to]` stands for.
    pub fn character(&mut self, c: char, from: usize, to: usize) {
        self.changed = true;
        self.point(from);
        self.bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        self.point(to);
        self.end = to;
    }

    /// The source has something at this place that stands for nothing.
    pub fn nothing(&mut self) {
        self.changed = true;
    }

    /// Puts `mark` between two pieces.
    pub fn between(&mut self, mark: &[u8]) {
        if self.bytes.len() > self.block.0 {
            self.bytes.extend_from_slice(mark);
        }
    }

    /// Pieces of the open block.
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// The open block is in one piece and as the source has it.
    pub fn plain(&self) -> bool {
        self.pieces <= 1 && !self.changed
    }

    /// Ends the open block and keeps it, or forgets it.
    pub fn close(&mut self, keep: bool) {
        if keep && self.bytes.len() > self.block.0 {
            self.bytes.extend_from_slice(b"\n\n");
        } else {
            self.bytes.truncate(self.block.0);
            self.points.truncate(self.block.1);
        }
        self.block = (self.bytes.len(), self.points.len());
        (self.pieces, self.changed) = (0, false);
    }

    /// The view of the blocks that were kept, unless there are none.
    pub fn view(mut self, name: &'static str) -> Option<View> {
        self.close(false);
        let start = self.points.iter().map(|p| p.1).min()? as usize;
        let end = self.points.iter().map(|p| p.1).max()? as usize;
        Some(View::mapped(name, self.bytes, self.points, (start, end), false))
    }

    fn point(&mut self, source: usize) {
        let point = (self.bytes.len() as u32, source as u32);
        if self.points.last() != Some(&point) {
            self.points.push(point);
        }
    }
}

/// Where `word` first stands in `near`: both are short, and no table is worth its while.
fn find(near: &[u8], word: &[u8]) -> Option<usize> {
    let first = *word.first()?;
    memchr::memchr_iter(first, near).find(|i| near.get(*i..i + word.len()) == Some(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_leads_back_to_the_bytes_it_came_from() {
        let source = b"one two [link](https://x.example) three &eacute;four five";
        let mut s = Stitch::default();
        s.verbatim(source, 0, 8);
        s.verbatim(source, 33, 40);
        s.changed("éfour five".as_bytes(), source, 40, source.len());
        s.close(true);
        let view = s.view("t").unwrap();
        for word in ["one", "three", "four", "five"] {
            let at = memchr::memmem::find(&view.bytes, word.as_bytes()).unwrap();
            let (a, b) = view.source(at, at + word.len());
            let found = std::str::from_utf8(&source[a..b]).unwrap();
            assert!(found == word || word == "four" && found.contains("&eacute;four"), "{found}");
        }
    }

    #[test]
    fn a_block_that_is_not_kept_leaves_nothing() {
        let mut s = Stitch::default();
        s.verbatim(b"abc", 0, 3);
        assert!(s.plain());
        s.close(false);
        assert!(s.view("t").is_none());
    }
}
