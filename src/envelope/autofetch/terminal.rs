//! Control strings that make a terminal open, fetch or show something: hyperlinks (OSC 8), inline files and images
//! (OSC 1337), clipboard (OSC 52), sixel (DCS) and the kitty graphics protocol (APC).

use super::{Range, Scanner};

impl Scanner<'_> {
    /// ESC, or the first byte of a C1 control: an OSC, DCS, APC, PM or SOS string up to its end.
    ///
    /// A string ends at BEL, at ST, at any other escape (which a terminal takes for the end as well) or, unterminated,
    /// at the end of its line.
    pub(super) fn control_string(&mut self, at: usize) -> Option<Range> {
        // A terminal executes a control character between the two and goes on.
        let rest = self.bytes.get(at + 1..).unwrap_or_default();
        let executed = |b: u8| b != 0x1b && b.is_ascii_control();
        let between = match self.byte(at) {
            0x1b => rest.iter().take_while(|b| executed(**b)).count(),
            _ => 0,
        };
        let kind = match (self.byte(at), self.byte(at + 1 + between)) {
            (0x1b, b @ (b']' | b'P' | b'_' | b'^' | b'X')) => b,
            (0xc2, 0x9d) => b']',
            (0xc2, 0x90) => b'P',
            (0xc2, 0x9f) => b'_',
            (0xc2, 0x9e) => b'^',
            (0xc2, 0x98) => b'X',
            _ => return None,
        };
        let body_at = at + 2 + between;
        let body = self.bytes.get(body_at..).unwrap_or_default();
        let mut len = 0;
        let after = loop {
            match body.get(len) {
                None => break len,
                Some(0x07) => break len + 1,
                Some(0x1b) => break if body.get(len + 1) == Some(&b'\\') { len + 2 } else { len },
                Some(0xc2) if body.get(len + 1) == Some(&0x9c) => break len + 2,
                Some(b'\n') if kind == b']' => break len,
                Some(_) => len += 1,
            }
        };
        let content = body.get(..len).unwrap_or_default();
        let acts = match kind {
            b']' => {
                // Control characters inside are dropped.
                let mut seen = content.iter().copied().filter(|b| !executed(*b));
                let number: Vec<u8> = seen.by_ref().take(6).take_while(|b| *b != b';').collect();
                !matches!(
                    number.as_slice(),
                    b"0" | b"1" | b"2" | b"4" | b"10" | b"11" | b"12" | b"104" | b"133"
                )
            }
            _ => true,
        };
        acts.then_some((at, body_at + after))
    }
}
