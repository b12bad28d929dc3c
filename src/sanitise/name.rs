//! Identifiers from outside, as one safe path component.

use crate::untrusted::Untrusted;

/// Longest component that is made, in bytes.
pub const MAX_BYTES: usize = 80;

/// `id` as a single path component of `[A-Za-z0-9._-]`, 1 to 80 bytes.
///
/// It never is `.` or `..`, never starts with a dot or a dash (no hidden file, no option), and never holds two dots in a
/// row. Where a character had to go or the end was cut, eight hexadecimal digits of a digest of the whole identifier
/// are added, so that two identifiers do not become one name.
pub fn component(id: &Untrusted<impl AsRef<str>>) -> String {
    let id = id.inspect().as_ref();
    let mut out = String::with_capacity(id.len().min(MAX_BYTES));
    let mut changed = id.is_empty();
    for c in id.chars() {
        let leading = out.is_empty() && matches!(c, '.' | '-');
        let pair = c == '.' && out.ends_with('.');
        if (c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')) && !leading && !pair {
            out.push(c);
        } else {
            changed = true;
            if !out.ends_with('_') {
                out.push('_');
            }
        }
        if out.len() > MAX_BYTES {
            changed = true;
            break;
        }
    }
    if changed {
        out.truncate(MAX_BYTES - 9);
        out.push('-');
        out.push_str(&format!("{:08x}", fnv(id)));
        if out.starts_with('-') {
            out.insert(0, '_');
        }
    }
    out
}

/// FNV-1a folded to 32 bits: tells names apart, guards nothing.
fn fnv(text: &str) -> u32 {
    let hash =
        text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_safe_identifier_is_its_own_name() {
        for id in ["finding-12", "CVE-2024-1234", "a.b_c", "x"] {
            assert_eq!(component(&Untrusted::new(id)), id);
        }
    }

    #[test]
    fn no_identifier_leaves_its_directory() {
        let long = "x".repeat(500);
        for id in [
            "",
            ".",
            "..",
            "../../etc/passwd",
            "/etc/passwd",
            "a/../b",
            "-rf",
            ".hidden",
            "a\0b",
            "a..b",
            "é",
            "CON\u{202e}",
            &long,
        ] {
            let name = component(&Untrusted::new(id));
            assert!(!name.is_empty() && name.len() <= MAX_BYTES, "{id:?} -> {name}");
            assert!(
                name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')),
                "{name}"
            );
            assert!(!name.starts_with(['.', '-']) && !name.contains(".."), "{id:?} -> {name}");
        }
    }

    #[test]
    fn different_identifiers_keep_different_names() {
        let names: std::collections::HashSet<String> =
            ["a/b", "a:b", "a b", "a_b", "A/b"].iter().map(|id| component(&Untrusted::new(id))).collect();
        assert_eq!(names.len(), 5);
    }
}
