//! What can be scanned.

/// Text that can be scanned: plain, or untrusted.
pub trait ScanText {
    /// Its bytes.
    fn bytes(&self) -> &[u8];
}

impl ScanText for str {
    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl ScanText for String {
    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl<T: AsRef<str>> ScanText for crate::untrusted::Untrusted<T> {
    fn bytes(&self) -> &[u8] {
        self.inspect().as_ref().as_bytes()
    }
}
