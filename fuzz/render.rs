//! An oracle that shares no code with the redaction: renders with comrak, tokenises with html5gum, and names the first
//! thing that would fetch, link outside or run.

/// The first fetch in the rendered text, if any.
pub fn fetches(text: &str) -> Option<String> {
    let mut options = comrak::Options::default();
    options.render.r#unsafe = true;
    let plain = comrak::markdown_to_html(text, &options);
    options.extension.footnotes = true;
    options.extension.table = true;
    let extended = comrak::markdown_to_html(text, &options);
    // A renderer of HTML alone sees the text as it is.
    [plain.as_str(), extended.as_str(), text].into_iter().find_map(in_html)
}

fn in_html(html: &str) -> Option<String> {
    for token in html5gum::Tokenizer::new(html) {
        let Ok(token) = token;
        let html5gum::Token::StartTag(tag) = token else { continue };
        let name = String::from_utf8_lossy(&tag.name).to_lowercase();
        // By the HTML standard an address is an attribute of elements that it names; style and handlers are anyone's.
        let sign = |b: u8| b.is_ascii() && !b.is_ascii_alphanumeric() && !matches!(b, b'-' | b'_' | b'.' | b':');
        let named = !name.bytes().any(sign);
        for (attribute, value) in &tag.attributes {
            let attribute = String::from_utf8_lossy(attribute).to_lowercase();
            let value = String::from_utf8_lossy(value).into_owned();
            let fetching = matches!(
                attribute.as_str(),
                "src"
                    | "srcset"
                    | "href"
                    | "xlink:href"
                    | "background"
                    | "poster"
                    | "data"
                    | "action"
                    | "formaction"
                    | "ping"
                    | "manifest"
                    | "cite"
            );
            if (fetching && named && outside(&value))
                || (attribute == "style" && value.to_lowercase().contains("url("))
            {
                return Some(format!("<{name} {attribute}={value:?}>"));
            }
            if attribute.starts_with("on") && attribute.len() > 3 && !value.is_empty() {
                return Some(format!("<{name} {attribute}={value:?}>"));
            }
        }
        if name == "script" || name == "style" || name == "base" {
            return Some(format!("<{name}>"));
        }
    }
    None
}

/// By the URL standard, seen from a document of its own: does this leave the document's origin?
fn outside(value: &str) -> bool {
    let Ok(base) = url::Url::parse("https://document.example/dir/page") else { return true };
    match base.join(value.trim()) {
        Ok(url) => url.host_str() != Some("document.example") && !unknown(&url, value),
        Err(_) => false,
    }
}

/// A scheme nobody fetches, as in `std::string`.
fn unknown(url: &url::Url, value: &str) -> bool {
    url.cannot_be_a_base()
        && (value.contains("::")
            || !matches!(url.scheme(), "data" | "javascript" | "vbscript" | "blob" | "about" | "view-source"))
}
