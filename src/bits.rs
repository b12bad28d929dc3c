//! Classes of bytes as bits, sixty-four bytes to a word.
//!
//! Ordinary text has little that a search looks for. Telling the class of all bytes of a block at once, without a branch
//! for each, is several times as fast as looking at one after the other, and what is found is then a set bit.

/// Bit n: `is` holds for byte n.
#[inline(always)]
pub(crate) fn word(block: &[u8; 64], is: impl Fn(u8) -> bool + Copy) -> u64 {
    let mut flags = [0u8; 64];
    let mut at = 0;
    while at < 64 {
        flags[at] = is(block[at]) as u8;
        at += 1;
    }
    let (eights, _) = flags.as_chunks::<8>();
    let (mut word, mut n) = (0, 0);
    while n < 8 {
        // Each flag is the lowest bit of its byte; the product has them side by side in its highest byte.
        word |= (u64::from_le_bytes(eights[n]).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (n * 8);
        n += 1;
    }
    word
}

/// Which bytes of a text are of a class.
#[derive(Debug)]
pub(crate) struct Class {
    words: Vec<u64>,
    len: usize,
}

impl Class {
    /// `is` should be a few comparisons without branches.
    #[inline(always)]
    pub(crate) fn of(bytes: &[u8], is: impl Fn(u8) -> bool + Copy) -> Class {
        let (blocks, rest) = bytes.as_chunks::<64>();
        let mut words = vec![0; blocks.len()];
        for (into, block) in words.iter_mut().zip(blocks) {
            *into = word(block, is);
        }
        if !rest.is_empty() {
            let mut last = [0u8; 64];
            for (into, b) in last.iter_mut().zip(rest) {
                *into = *b;
            }
            words.push(word(&last, is) & ((1 << rest.len()) - 1));
        }
        Class { words, len: bytes.len() }
    }

    #[inline(always)]
    fn word(&self, index: usize) -> u64 {
        self.words.get(index).copied().unwrap_or(0)
    }

    /// The first byte of the class from `from` on.
    #[inline(always)]
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let mut index = from / 64;
        let mut word = self.word(index) & (u64::MAX << (from % 64));
        while word == 0 {
            index += 1;
            word = *self.words.get(index)?;
        }
        Some(index * 64 + word.trailing_zeros() as usize)
    }

    /// The first byte from `from` on that is not of the class, or the end of the text.
    #[inline(always)]
    pub(crate) fn next_other(&self, from: usize) -> usize {
        let mut index = from / 64;
        let mut word = !self.word(index) & (u64::MAX << (from % 64));
        while word == 0 {
            index += 1;
            word = !self.word(index);
        }
        (index * 64 + word.trailing_zeros() as usize).min(self.len)
    }

    /// Every byte of the class, in order.
    pub(crate) fn iter(&self) -> Members<'_> {
        Members { words: self.words.iter(), word: 0, next: 0 }
    }

    /// Bytes of the class before one of it.
    pub(crate) fn pairs(&self) -> Class {
        let word = |index| self.word(index) & (self.word(index) >> 1 | self.word(index + 1) << 63);
        Class { words: (0..self.words.len()).map(word).collect(), len: self.len }
    }

    /// Bytes that are not of the class.
    pub(crate) fn others(mut self) -> Class {
        self.words.iter_mut().for_each(|word| *word = !*word);
        let rest = self.len % 64;
        if rest > 0
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << rest) - 1;
        }
        self
    }

    /// Bytes with which a run of `len` of the class begins, itself or inside a longer one; `len` is below 128.
    pub(crate) fn runs(&self, len: usize) -> Class {
        let mut words = self.words.clone();
        let mut done = 1;
        while done < len {
            let step = done.min(len - done);
            // From front to back: a word is read before it changes.
            for index in 0..words.len() {
                let next = words.get(index + 1).copied().unwrap_or(0);
                if let Some(word) = words.get_mut(index) {
                    *word &= *word >> step | next << (64 - step);
                }
            }
            done += step;
        }
        Class { words, len: self.len }
    }

    /// Bytes of both classes of one text.
    pub(crate) fn and(mut self, other: &Class) -> Class {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
        self
    }
}

/// See [`Class::iter`].
pub(crate) struct Members<'a> {
    words: std::slice::Iter<'a, u64>,
    word: u64,
    /// One past the last byte of `word`.
    next: usize,
}

impl Iterator for Members<'_> {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        while self.word == 0 {
            self.word = *self.words.next()?;
            self.next += 64;
        }
        let at = self.next - 64 + self.word.trailing_zeros() as usize;
        self.word &= self.word - 1;
        Some(at)
    }
}

/// The next byte of a class, for a reader that moves on by itself and back at most a little.
pub(crate) struct Finder<'a, F> {
    bytes: &'a [u8],
    is: F,
    /// Which block `word` is of.
    index: usize,
    word: u64,
}

impl<'a, F: Fn(u8) -> bool + Copy> Finder<'a, F> {
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8], is: F) -> Self {
        let mut finder = Finder { bytes, is, index: 0, word: 0 };
        finder.read(0);
        finder
    }

    #[inline(always)]
    fn read(&mut self, index: usize) {
        let (blocks, rest) = self.bytes.as_chunks::<64>();
        self.index = index;
        self.word = match blocks.get(index) {
            Some(block) => word(block, self.is),
            None if index == blocks.len() => {
                let of = rest.iter().enumerate().filter(|(_, b)| (self.is)(**b));
                of.fold(0, |word, (at, _)| word | 1 << at)
            }
            None => 0,
        };
    }

    /// The first byte of the class from `from` on.
    #[inline(always)]
    pub(crate) fn next(&mut self, from: usize) -> Option<usize> {
        let last = self.bytes.len() / 64;
        if from / 64 != self.index {
            self.read(from / 64);
        }
        let mut word = self.word & (u64::MAX << (from % 64));
        while word == 0 {
            if self.index >= last {
                return None;
            }
            self.read(self.index + 1);
            word = self.word;
        }
        Some(self.index * 64 + word.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Vec<u8> {
        // Runs of every length up to 100, at every place in a word.
        let mut text = Vec::new();
        for len in 0..100usize {
            text.extend(std::iter::repeat_n(b'a', len));
            text.extend(std::iter::repeat_n(b' ', 1 + len % 3));
        }
        text.extend_from_slice(b"\xff\x00a\x7fa");
        text
    }

    #[test]
    fn each_byte_of_a_class_is_a_bit_and_no_other() {
        for cut in 0..130 {
            let text = &text()[cut..];
            let expected: Vec<usize> = (0..text.len()).filter(|at| text[*at] == b'a').collect();
            let class = Class::of(text, |b| b == b'a');
            assert_eq!(class.iter().collect::<Vec<_>>(), expected);
            let mut finder = Finder::new(text, |b| b == b'a');
            for from in 0..=text.len() {
                let next = expected.iter().copied().find(|at| *at >= from);
                assert_eq!(class.next(from), next);
                assert_eq!(finder.next(from), next);
                let other = (from..text.len()).find(|at| text[*at] != b'a').unwrap_or(text.len());
                assert_eq!(class.next_other(from), other);
            }
            let others: Vec<usize> = (0..text.len()).filter(|at| text[*at] != b'a').collect();
            assert_eq!(class.others().iter().collect::<Vec<_>>(), others);
        }
    }

    #[test]
    fn runs_of_a_length_are_found_where_they_begin() {
        let text = text();
        let class = Class::of(&text, |b| b == b'a');
        for len in [1, 2, 3, 16, 22, 63, 64, 65] {
            let expected: Vec<usize> = (0..text.len())
                .filter(|at| text.get(*at..at + len).is_some_and(|run| run.iter().all(|b| *b == b'a')))
                .collect();
            assert_eq!(class.runs(len).iter().collect::<Vec<_>>(), expected, "{len}");
        }
        assert_eq!(class.pairs().iter().collect::<Vec<_>>(), class.runs(2).iter().collect::<Vec<_>>());
    }
}
