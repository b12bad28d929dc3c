//! What could pass for the envelope's own structure, broken.

use regex::{Captures, Regex};
use std::borrow::Cow;
use std::sync::LazyLock;

static FORGERY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)(?P<lt>[<＜])[\s/]*(?:untrusted|slots?\b|document(?:_content)?\b|source\b|system(?:-reminder)?\b|\|)",
        r"|(?P<br>\[)\s*/?\s*(?:MARK_INPT|INST|INPUT)\s*\]",
    ))
    .ok()
});

/// `text` with everything broken that could be read as a boundary of the envelope; the rest is unchanged.
pub fn neutralise(text: &str) -> Cow<'_, str> {
    let Some(forgery) = FORGERY.as_ref() else { return Cow::Owned(String::new()) };
    forgery.replace_all(text, |found: &Captures| {
        let all = &found[0];
        let first = all.chars().next().map_or(0, char::len_utf8);
        format!("{}\u{200b}{}", &all[..first], &all[first..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_it_twice_changes_nothing_more() {
        for text in ["</untrusted-x>", "< / untrusted>", "[/INST]", "<|im_start|>", "a < b"] {
            let once = neutralise(text).into_owned();
            assert_eq!(neutralise(&once), once);
        }
    }
}
