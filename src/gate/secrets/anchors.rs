//! One pass over a text for every literal that a secret can begin with or stand behind, in each of the readings.
//!
//! The first four bytes of each literal, or three of a shorter one, are in a bitmap; only where as many bytes of the text
//! are in it too is a literal compared. Ordinary text is passed over at a few instructions a byte, and nothing is compiled
//! when the program starts.

use super::shape::{self, Part};
use super::{Reading, named, rot13, structure};
use std::sync::LazyLock;

/// What a literal belongs to, by its place in the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// A vendor's format.
    Format(usize),
    /// A name that says what its value is; places of the vendors first, then of the generic names.
    Name(usize),
    /// A structure.
    Shape(usize),
}

struct Literal {
    /// As the reading sees it.
    text: Vec<u8>,
    /// Letters count in either case.
    fold: bool,
    owner: Owner,
    reading: Reading,
}

/// A literal that stands in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    pub owner: Owner,
    pub reading: Reading,
    /// First byte of the literal in the text, whatever the reading.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
}

pub(super) struct Anchors {
    literals: Vec<Literal>,
    /// Bit by the hash of the first three bytes of each.
    seen: Box<[u64; WORDS]>,
    /// The same of the four bytes of those that have them, and of the three of the others.
    whole: [Box<[u64; WORDS]>; 2],
    /// Open addressing by the same hash: the bytes, and where their literals start in `lists`. Three bytes have a fourth
    /// of zero, which no literal has.
    slots: Vec<(u32, u32)>,
    /// Places of literals; each list ends with [`END`].
    lists: Vec<u32>,
}

const BITS: u32 = 17;
const SLOTS: usize = 1 << 13;
const END: u32 = u32::MAX;

#[inline(always)]
const fn hash(bytes: u32) -> usize {
    (bytes.wrapping_mul(0x9E37_79B1) >> (32 - BITS)) as usize
}

const WORDS: usize = (1 << BITS) / 64;

#[inline(always)]
fn has(bits: &[u64; WORDS], bytes: u32) -> bool {
    let hash = hash(bytes);
    bits[(hash >> 6) % WORDS] >> (hash & 63) & 1 != 0
}

fn set(bits: &mut [u64; WORDS], bytes: u32) {
    let hash = hash(bytes);
    bits[(hash >> 6) % WORDS] |= 1 << (hash & 63);
}

fn key(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).rev().fold(0, |key, b| key << 8 | u32::from(*b))
}

static ANCHORS: LazyLock<Anchors> = LazyLock::new(Anchors::build);

/// Calls `each` for every literal in `bytes`, in the order of where they start; with `hidden`, the mirrored and the
/// rotated readings too.
pub(super) fn each(bytes: &[u8], hidden: bool, mut each: impl FnMut(Anchor)) {
    let anchors = &*ANCHORS;
    let [long, short] = &anchors.whole;
    for (at, window) in bytes.windows(4).enumerate() {
        let &[a, b, c, d] = window else { continue };
        let four = u32::from_le_bytes([a, b, c, d]);
        let three = four & 0x00FF_FFFF;
        if !has(&anchors.seen, three) {
            continue;
        }
        if has(long, four) {
            anchors.compare(bytes, at, four, 4, hidden, &mut each);
        }
        if has(short, three) {
            anchors.compare(bytes, at, three, 3, hidden, &mut each);
        }
    }
    // The last three bytes have no fourth beside them.
    if let Some(at) = bytes.len().checked_sub(3) {
        let three = key(bytes.get(at..).unwrap_or_default());
        anchors.compare(bytes, at, three, 3, hidden, &mut each);
    }
}

impl Anchors {
    fn build() -> Anchors {
        let mut literals: Vec<Literal> = Vec::new();
        let mut add = |text: &str, fold: bool, owner: Owner, hidden: bool| {
            let text = text.as_bytes().to_vec();
            if hidden {
                let rotated = text.iter().map(|b| rot13(*b)).collect();
                literals.push(Literal { text: rotated, fold, owner, reading: Reading::Rotated });
                literals.push(Literal { text: text.clone(), fold, owner, reading: Reading::Mirrored });
            }
            literals.push(Literal { text, fold, owner, reading: Reading::Forward });
        };
        for (n, name) in named::names().enumerate() {
            add(name, true, Owner::Name(n), false);
        }
        for (n, (_, parts)) in shape::formats().iter().enumerate() {
            match (parts.first(), parts.get(1)) {
                (Some(Part::Literal(text)), Some(Part::Run(class, ..))) if text.len() < 3 => {
                    for next in (b'!'..=b'~').filter(|b| shape::in_class(*class, *b)) {
                        add(&format!("{text}{}", char::from(next)), false, Owner::Format(n), true);
                    }
                }
                (Some(Part::Literal(text)), _) => add(text, false, Owner::Format(n), true),
                _ => {}
            }
        }
        for (n, shape) in structure::SHAPES.iter().enumerate() {
            for literal in shape.literals {
                if shape.then.is_empty() {
                    add(literal, shape.fold, Owner::Shape(n), shape.hidden);
                }
                for next in shape.then.chars() {
                    add(&format!("{literal}{next}"), shape.fold, Owner::Shape(n), shape.hidden);
                }
            }
        }
        Anchors::index(literals)
    }

    fn index(literals: Vec<Literal>) -> Anchors {
        let mut keys: Vec<(u32, u32)> = Vec::new();
        for (n, literal) in literals.iter().enumerate() {
            let mut head: Vec<u8> = literal.text.iter().take(4).copied().collect();
            if literal.reading == Reading::Mirrored {
                head.reverse();
            }
            // Each spelling of letters that count in either case.
            for case in 0..if literal.fold { 1u32 << head.len() } else { 1 } {
                let spelled: Vec<u8> = head
                    .iter()
                    .enumerate()
                    .map(|(i, b)| if case >> i & 1 == 1 { flipped(*b) } else { *b })
                    .collect();
                keys.push((key(&spelled), n as u32));
            }
        }
        keys.sort_unstable();
        keys.dedup();
        let mut seen = Box::new([0u64; WORDS]);
        let mut whole = [Box::new([0u64; WORDS]), Box::new([0u64; WORDS])];
        let mut slots = vec![(0u32, END); SLOTS];
        let mut lists = Vec::with_capacity(keys.len() * 2);
        for group in keys.chunk_by(|a, b| a.0 == b.0) {
            let Some(&(key, _)) = group.first() else { continue };
            set(&mut seen, key & 0x00FF_FFFF);
            let [long, short] = &mut whole;
            set(if key >> 24 == 0 { short } else { long }, key);
            let mut at = hash(key) % SLOTS;
            while slots.get(at).is_some_and(|slot| slot.1 != END) {
                at = (at + 1) % SLOTS;
            }
            if let Some(slot) = slots.get_mut(at) {
                *slot = (key, lists.len() as u32);
            }
            lists.extend(group.iter().map(|k| k.1));
            lists.push(END);
        }
        Anchors { literals, seen, whole, slots, lists }
    }

    #[inline(never)]
    fn compare(
        &self,
        bytes: &[u8],
        at: usize,
        key: u32,
        width: usize,
        hidden: bool,
        each: &mut impl FnMut(Anchor),
    ) {
        let mut slot = hash(key) % SLOTS;
        let list = loop {
            match self.slots.get(slot) {
                Some(&(_, END)) | None => return,
                Some(&(known, list)) if known == key => break list,
                Some(_) => slot = (slot + 1) % SLOTS,
            }
        };
        for &n in self.lists.get(list as usize..).unwrap_or_default() {
            let Some(literal) = self.literals.get(n as usize) else { return };
            let len = literal.text.len();
            let (start, end) = match literal.reading {
                Reading::Mirrored => match (at + width).checked_sub(len) {
                    Some(start) if hidden => (start, at + width),
                    _ => continue,
                },
                Reading::Rotated if !hidden => continue,
                _ => (at, at + len),
            };
            let Some(here) = bytes.get(start..end) else { continue };
            let stands = match (literal.reading, literal.fold) {
                (Reading::Mirrored, true) => {
                    here.iter().rev().zip(&literal.text).all(|(a, b)| a.eq_ignore_ascii_case(b))
                }
                (Reading::Mirrored, false) => here.iter().rev().eq(literal.text.iter()),
                (_, true) => here.eq_ignore_ascii_case(&literal.text),
                (_, false) => here == literal.text,
            };
            if stands {
                each(Anchor { owner: literal.owner, reading: literal.reading, start, end });
            }
        }
    }
}

/// The other case of a letter.
fn flipped(b: u8) -> u8 {
    if b.is_ascii_alphabetic() { b ^ 0x20 } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_literal_is_found_at_every_place_and_in_every_reading() {
        let mut longest = 0;
        for literal in &ANCHORS.literals {
            let mut spelled = literal.text.clone();
            if literal.reading == Reading::Mirrored {
                spelled.reverse();
            }
            if literal.fold {
                spelled.iter_mut().step_by(2).for_each(|b| *b = flipped(*b));
            }
            longest = longest.max(spelled.len());
            for (before, after) in [("", ""), ("x", ""), ("", "y"), ("é ", " é")] {
                let text = [before.as_bytes(), &spelled, after.as_bytes()].concat();
                let mut found = false;
                each(&text, true, |anchor| {
                    found |= anchor.owner == literal.owner
                        && anchor.reading == literal.reading
                        && anchor.start == before.len()
                        && anchor.end == before.len() + spelled.len();
                });
                assert!(found, "{:?} {:?}", String::from_utf8_lossy(&spelled), literal.reading);
            }
        }
        assert!(longest > 10, "the table is not empty");
    }

    #[test]
    fn the_table_has_room() {
        let used = ANCHORS.slots.iter().filter(|slot| slot.1 != END).count();
        assert!(used * 2 < SLOTS, "{used}");
    }
}
