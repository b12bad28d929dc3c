//! Constructs that are longer than the window: what follows is judged as it passes, and nothing is held back but a
//! destination.

use super::autofetch::{REMOVED, TAGS, WINDOW, destination_is_allowed};
use crate::egress::rule::HostRule;

/// What stands in place of a removed destination.
const NOWHERE: &str = "(removed by jess)";

/// A construct that has opened and not closed within the window.
pub(super) enum Long {
    /// The text of an image, up to its closing bracket and its destination; and a tag in it, which counts if the image
    /// never closes.
    Image {
        depth: usize,
        escaped: bool,
        destination: Option<(String, usize)>,
        closed: bool,
        tag: Option<Box<Long>>,
    },
    /// A tag. `loads`: its name or an attribute makes it load what it names. `name`: what was read of it so far.
    Tag { loads: bool, quote: Option<char>, last: char, recent: [u8; 5], name: Option<String> },
}

/// What one character does.
enum Step {
    /// It passes.
    Pass,
    /// It is held, or stands for something that was put out already.
    Taken,
    /// The construct has ended before it.
    Over,
    /// The construct ends with it, and it passes.
    Last,
    /// The construct ends with it, and it is taken.
    LastTaken,
}

impl Long {
    /// The construct at the start of `from`, if it is one that goes on.
    pub(super) fn of(from: &str) -> Option<Long> {
        match from.as_bytes() {
            [b'!', b'[', ..] => {
                Some(Long::Image { depth: 0, escaped: false, destination: None, closed: false, tag: None })
            }
            [b'<', letter, ..] if letter.is_ascii_alphabetic() => {
                let name: String = from.chars().skip(1).take_while(char::is_ascii_alphanumeric).collect();
                let loads = TAGS.contains(&name.to_ascii_lowercase().as_str());
                Some(Long::Tag { loads, quote: None, last: ' ', recent: [0; 5], name: None })
            }
            _ => None,
        }
    }

    /// The same for a construct that was not looked into: a tag of any name is judged by what it names.
    pub(super) fn strict(from: &str) -> Option<Long> {
        match Long::of(from)? {
            Long::Tag { quote, last, recent, name, .. } => {
                Some(Long::Tag { loads: true, quote, last, recent, name })
            }
            image => Some(image),
        }
    }

    /// Passes what belongs to the construct from `text` to `out`. Returns how many bytes that were, and whether it has
    /// ended.
    pub(super) fn push(
        &mut self,
        text: &str,
        hosts: &[HostRule],
        redact: bool,
        out: &mut String,
        found: &mut u64,
    ) -> (usize, bool) {
        for (at, c) in text.char_indices() {
            match self.step(c, hosts, redact, out, found) {
                Step::Pass => out.push(c),
                Step::Taken => {}
                Step::Over => return (at, true),
                Step::Last => {
                    out.push(c);
                    return (at + c.len_utf8(), true);
                }
                Step::LastTaken => return (at + c.len_utf8(), true),
            }
        }
        (text.len(), false)
    }

    /// The block has ended: what is held is no destination.
    pub(super) fn finish(self, out: &mut String) {
        if let Long::Image { destination: Some((held, _)), .. } = self {
            out.push('(');
            out.push_str(&held);
        }
    }

    fn step(&mut self, c: char, hosts: &[HostRule], redact: bool, out: &mut String, found: &mut u64) -> Step {
        match self {
            Long::Image { destination: Some((held, depth)), .. } => {
                *depth = match c {
                    '(' => *depth + 1,
                    ')' => depth.saturating_sub(1),
                    _ => *depth,
                };
                if *depth > 0 && held.len() < WINDOW {
                    held.push(c);
                    return Step::Taken;
                }
                let end = if *depth == 0 { "" } else { "…" };
                let inside = held.trim().trim_start_matches('<');
                let place = inside.split(['>', ' ', '\n', '\t', '"']).next().unwrap_or_default();
                let remote = !end.is_empty() || !destination_is_allowed(place, hosts);
                *found += u64::from(remote);
                if remote && redact {
                    out.push_str(NOWHERE);
                } else {
                    out.push('(');
                    out.push_str(held);
                    out.push(c);
                }
                Step::LastTaken
            }
            Long::Image { closed: true, destination, .. } => {
                if c != '(' {
                    return Step::Over;
                }
                *destination = Some((String::new(), 1));
                Step::Taken
            }
            Long::Image { depth, escaped, closed, tag, .. } => {
                let inner = tag.as_mut().map(|tag| tag.step(c, hosts, redact, out, found));
                let taken = matches!(inner, Some(Step::Taken));
                match (inner, c) {
                    (Some(Step::Last | Step::Over), '<') | (None, '<') => {
                        let (quote, last, recent) = (None, ' ', [0; 5]);
                        let name = Some(String::new());
                        *tag = Some(Box::new(Long::Tag { loads: false, quote, last, recent, name }));
                    }
                    (Some(Step::Last | Step::Over), _) => *tag = None,
                    _ => {}
                }
                match c {
                    _ if *escaped => *escaped = false,
                    '\\' => *escaped = true,
                    '[' => *depth += 1,
                    ']' => {
                        *depth = depth.saturating_sub(1);
                        *closed = *depth == 0;
                    }
                    _ => {}
                }
                if taken { Step::Taken } else { Step::Pass }
            }
            Long::Tag { loads, quote, last, recent, name } => {
                if let Some(letters) = name {
                    if c.is_ascii_alphanumeric() {
                        // No name that matters is longer.
                        if letters.len() < 16 {
                            letters.push(c.to_ascii_lowercase());
                        }
                    } else if letters.is_empty() {
                        return Step::Over;
                    } else {
                        *loads |= TAGS.contains(&letters.as_str());
                        *name = None;
                    }
                }
                recent.rotate_left(1);
                recent[4] = if c.is_ascii() { c.to_ascii_lowercase() as u8 } else { 0 };
                *loads |= recent == b"style";
                let slash = |c: char| c == '/' || c == '\\';
                let step = match c {
                    '>' if quote.is_none() => return Step::Last,
                    // Two slashes name a host; an entity or an escape of CSS may stand for them.
                    '&' | '\\' if *loads => Step::Taken,
                    _ if *loads && slash(c) && slash(*last) => Step::Taken,
                    _ => Step::Pass,
                };
                match *quote {
                    Some(open) if c == open => *quote = None,
                    None if (c == '"' || c == '\'') && *last == '=' => *quote = Some(c),
                    _ => {}
                }
                if !c.is_whitespace() {
                    *last = c;
                }
                if matches!(step, Step::Taken) {
                    *found += 1;
                    if redact {
                        out.push_str(REMOVED);
                    } else {
                        out.push(c);
                    }
                }
                step
            }
        }
    }
}
