//! Markup that makes a reader fetch something, taken out.

use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// What stands where auto-fetching markup stood.
pub const MARKER: &str = "[REDACTED-AUTOFETCH-MARKUP]";

static FETCHING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?is)!\[[^\]]*\]\([^)]*\)?",
        r"|!\[[^\]\n]*\]\[[^\]\n]*\]",
        r"|\[[^\]]*\]\(\s*<?\s*(?:[a-z][a-z0-9+.%\t-]*:|//|:)[^)]*\)?",
        r"|^[ ]{0,3}\[[^\]^\n][^\]\n]*\]:\s*\S+",
        r"|</?(?:img|image|iframe|frame|object|embed|video|audio|source|track|input|link|script|base|form|use|bgsound|applet|portal|svg|math|meta|style|a|area|body|table|td|th|button|html|mglyph)(?:[\s/][^>]*)?>?",
        r"|<[a-z][^>]*style\s*=[^>]*url\([^>]*>?",
        r"|@import\s+\S+",
        r"|\bdata:[a-z]+/[a-z0-9.+-]+[^\s,]{0,256},[^\s)]*",
    ))
    .ok()
});

/// `text` with each construct that a Markdown or HTML renderer would fetch replaced by [`MARKER`], and how many there
/// were. Linear in the input.
pub fn redact_autofetch(text: &str) -> (Cow<'_, str>, usize) {
    let Some(fetching) = FETCHING.as_ref() else { return (Cow::Borrowed(MARKER), 1) };
    let mut count = 0;
    let cleaned: String = text.chars().filter(|c| !is_bypass(*c)).collect();
    let out = fetching.replace_all(&cleaned, |_: &regex::Captures| {
        count += 1;
        MARKER
    });
    if count == 0 && cleaned.len() == text.len() {
        (Cow::Borrowed(text), 0)
    } else {
        (Cow::Owned(out.into_owned()), count)
    }
}

/// Characters that split a tag or a scheme for a filter and not for a reader.
fn is_bypass(c: char) -> bool {
    matches!(c as u32,
        0 | 0xAD | 0x34F | 0x180E | 0x200B..=0x200F | 0x2060..=0x2064 | 0xFEFF | 0x202A..=0x202E | 0x2066..=0x2069
        | 0xE0000..=0xE007F)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_fetching_links_are_taken_out() {
        for text in
            ["![a](http://x/y)", "[a](https://x)", "<img src=x>", "<script>x", "[r]: http://x", "@import 'x'"]
        {
            let (out, n) = redact_autofetch(text);
            assert!(n > 0 && out.contains(MARKER), "{text} -> {out}");
        }
    }

    #[test]
    fn ordinary_text_is_kept() {
        for text in
            ["see https://example.org", "vec![0; 10]", "a < b", "[^1]: note", "[a](docs/x.md)", "Vec<String>"]
        {
            assert_eq!(redact_autofetch(text), (Cow::Borrowed(text), 0));
        }
    }
}
