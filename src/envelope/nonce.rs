//! The unguessable part of an envelope.

use std::fmt;

/// Lower-case hexadecimal digits from the system's random source.
#[derive(Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// 128 bits, 32 digits.
    pub fn fresh() -> Nonce {
        Nonce::of_bytes::<16>()
    }

    /// 64 bits, 16 digits: the width that the RPC protocol fixes.
    pub fn short() -> Nonce {
        Nonce::of_bytes::<8>()
    }

    fn of_bytes<const N: usize>() -> Nonce {
        let mut bytes = [0u8; N];
        if getrandom::fill(&mut bytes).is_err() {
            // A guessable nonce would be a forged boundary: there is nothing sensible to do without a random source.
            std::process::abort();
        }
        Nonce(bytes.iter().map(|b| format!("{b:02x}")).collect())
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Shows that there is a nonce, not which: logs are read by models too.
impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(…)")
    }
}

/// Does `nonce` stand in `text` as a token of its own, that is, with no hexadecimal digit directly before or after?
///
/// Case-sensitive; an empty nonce is nowhere.
pub fn nonce_leaked(nonce: &str, text: &str) -> bool {
    if nonce.is_empty() {
        return false;
    }
    let hex = |b: Option<&u8>| b.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    // Occurrences may overlap only when the nonce is periodic, so each start is looked at on its own.
    memchr::memmem::find_iter(bytes, nonce.as_bytes())
        .any(|at| !hex(at.checked_sub(1).and_then(|i| bytes.get(i))) && !hex(bytes.get(at + nonce.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_inside_a_longer_run_of_digits_is_no_leak() {
        let nonce = "0123456789abcdef";
        assert!(nonce_leaked(nonce, "see 0123456789abcdef."));
        assert!(nonce_leaked(nonce, "0x0123456789abcdef"));
        assert!(!nonce_leaked(nonce, "a0123456789abcdef"));
        assert!(!nonce_leaked(nonce, "0123456789abcdef0"));
        assert!(!nonce_leaked(nonce, "0123456789ABCDEF"));
        assert!(!nonce_leaked("", "anything"));
        assert!(!nonce_leaked(nonce, ""));
    }
}
