//! Dumps that have an offset, bytes in hexadecimal and their characters on each line, as `xxd` and `hexdump -C` write
//! them.

use super::View;

/// Bytes on a line.
const LINE: usize = 16;

/// The bytes of dumps, lines that follow each other put together.
pub(super) fn dumps(text: &str, views: &mut Vec<View>) {
    let bytes = text.as_bytes();
    let mut view = View { nested: true, ..View::new("hex") };
    let (mut at, mut open) = (0, false);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = rest.get(..len).unwrap_or_default();
        let lead = line.iter().take(4).take_while(|b| **b == b' ').count();
        let dumped = line.get(lead..).and_then(dumped);
        if let Some(dumped) = &dumped {
            if !open {
                view.gap();
            }
            view.piece(dumped, at + lead, at + line.trim_ascii_end().len());
        }
        open = dumped.is_some();
        at += len + 1;
    }
    views.push(view);
}

/// The bytes of one line; what is no character of ASCII ends a line of text.
fn dumped(line: &[u8]) -> Option<String> {
    let hex = |from: usize| {
        let rest = line.get(from..).unwrap_or_default();
        rest.iter().take(LINE + 1).take_while(|b| b.is_ascii_hexdigit()).count()
    };
    let blanks =
        |from: usize| line.get(from..).unwrap_or_default().iter().take(3).take_while(|b| **b == b' ').count();
    let offset = hex(0);
    if !(4..=LINE).contains(&offset) {
        return None;
    }
    let mut at = offset + usize::from(line.get(offset) == Some(&b':'));
    let mut text = String::new();
    let mut gap = blanks(at);
    // Two blanks stand in the middle of a line, and before the characters.
    while gap == 1 || (gap == 2 && matches!(text.len(), 0 | 8)) {
        at += gap;
        let len = hex(at);
        if !matches!(len, 2 | 4 | 8 | 16) || text.len() + len / 2 > LINE {
            break;
        }
        for pair in line.get(at..at + len)?.chunks_exact(2) {
            let byte = super::number(pair, 16)?;
            text.push(if matches!(byte, b' '..=b'~') { char::from(byte) } else { '\n' });
        }
        at += len;
        gap = blanks(at);
    }
    (!text.is_empty()).then_some(text)
}
