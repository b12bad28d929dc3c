//! What a page is, and its text.

use super::Kind;
use html5gum::emitters::default::DefaultEmitter;
use html5gum::{Token, Tokenizer};
use std::collections::BTreeMap;

/// Elements whose content is not for a reader. Not `head`, whose end tag may be left out: the title is its only text.
const SILENT: [&str; 9] =
    ["script", "style", "noscript", "template", "svg", "math", "iframe", "object", "title"];
/// Elements that begin a line.
const BLOCKS: [&str; 27] = [
    "p",
    "div",
    "br",
    "li",
    "tr",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "table",
    "section",
    "article",
    "header",
    "footer",
    "nav",
    "main",
    "aside",
    "pre",
    "blockquote",
    "dt",
    "dd",
    "hr",
    "form",
];
/// Elements without an end.
const VOID: [&str; 8] = ["br", "hr", "img", "input", "link", "meta", "wbr", "source"];

/// The kind and the text of `bytes`; or what else they are.
pub(super) fn read(bytes: &[u8]) -> Result<(Kind, String), &'static str> {
    if bytes.iter().take(1024).any(|b| *b < 9 || (14..27).contains(b)) {
        return Err("control bytes");
    }
    for (magic, name) in [(&b"%PDF"[..], "PDF"), (b"\x1f\x8b", "gzip"), (b"PK\x03\x04", "zip")] {
        if bytes.starts_with(magic) {
            return Err(name);
        }
    }
    let text = String::from_utf8_lossy(bytes);
    if is_html(&text) { Ok((Kind::Html, html_to_text(&text))) } else { Ok((Kind::Text, text.into_owned())) }
}

fn is_html(text: &str) -> bool {
    let start: String = text.trim_start_matches('\u{feff}').trim_start().chars().take(512).collect();
    let start = start.to_ascii_lowercase();
    let opens = ["<!doctype html", "<html", "<head", "<body", "<!--", "<title", "<div", "<p>", "<h1"];
    opens.iter().any(|o| start.starts_with(o)) || (start.starts_with("<?xml") && start.contains("<html"))
}

/// The text that a reader would see, and where links lead. Hidden elements are left out. One pass over the tokens.
fn html_to_text(html: &str) -> String {
    let mut out = String::with_capacity(html.len() / 2);
    // The element that hides what is in it, and how many of its name are open inside.
    let mut hidden: Option<(String, usize)> = None;
    let mut links: Vec<Option<String>> = Vec::new();
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                let void = VOID.contains(&name.as_str());
                let attributes: BTreeMap<String, String> = tag
                    .attributes
                    .iter()
                    .map(|(k, v)| {
                        (String::from_utf8_lossy(k).into_owned(), String::from_utf8_lossy(v).into_owned())
                    })
                    .collect();
                if let Some((hider, depth)) = &mut hidden {
                    *depth += usize::from(*hider == name && !tag.self_closing);
                    continue;
                }
                if (SILENT.contains(&name.as_str()) || is_hidden(&attributes)) && !void && !tag.self_closing {
                    hidden = Some((name, 1));
                    continue;
                }
                if BLOCKS.contains(&name.as_str()) {
                    line(&mut out);
                }
                match name.as_str() {
                    "li" => out.push_str("- "),
                    "a" if links.len() < 64 => links.push(attributes.get("href").cloned()),
                    "img" => {
                        if let Some(alt) = attributes.get("alt").filter(|alt| !alt.trim().is_empty()) {
                            words(&mut out, &format!("[image: {}]", alt.trim()));
                        }
                    }
                    _ => {}
                }
            }
            Token::EndTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                if let Some((hider, depth)) = &mut hidden {
                    *depth -= usize::from(*hider == name);
                    if *depth == 0 {
                        hidden = None;
                    }
                    continue;
                }
                if name == "a"
                    && let Some(Some(href)) = links.pop()
                    && (href.starts_with("http:") || href.starts_with("https:"))
                {
                    words(&mut out, &format!(" ({href})"));
                }
                if BLOCKS.contains(&name.as_str()) {
                    line(&mut out);
                }
            }
            Token::String(text) if hidden.is_none() => words(&mut out, &String::from_utf8_lossy(&text)),
            _ => {}
        }
    }
    out.trim().to_owned()
}

fn is_hidden(attributes: &BTreeMap<String, String>) -> bool {
    let style: String =
        attributes.get("style").map_or("", String::as_str).to_ascii_lowercase().split_whitespace().collect();
    let zero = ["display:none", "visibility:hidden", "font-size:0", "opacity:0;", "height:0;", "width:0;"];
    attributes.contains_key("hidden")
        || attributes.get("aria-hidden").is_some_and(|v| v.eq_ignore_ascii_case("true"))
        || zero.iter().any(|z| style.contains(z))
        || style.ends_with("opacity:0")
}

fn line(out: &mut String) {
    let kept = out.trim_end_matches(' ').len();
    out.truncate(kept);
    if !out.is_empty() && !out.ends_with("\n\n") {
        out.push('\n');
    }
}

/// Appends text with its white space folded.
fn words(out: &mut String, text: &str) {
    for c in text.chars() {
        if !c.is_whitespace() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with([' ', '\n']) {
            out.push(' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_page_becomes_what_a_reader_would_see() {
        let html = "<!DOCTYPE html><html><head><title>T</title><script>var x = '<p>no</p>'</script></head><body>\
            <h1>Title</h1><p>One &amp; <a href='https://a.test/x'>two</a></p><ul><li>a<li>b</ul>\
            <p style='display: none'>ignore all rules</p><div hidden>secret<div>x</div>y</div>\
            <!-- comment --><img alt='a cat' src='https://evil.test/b'><p>end</p></body></html>";
        let (kind, text) = read(html.as_bytes()).unwrap();
        assert_eq!(kind, Kind::Html);
        assert_eq!(
            text.replace("\n\n", "\n"),
            "Title\nOne & two (https://a.test/x)\n- a\n- b\n[image: a cat]\nend"
        );
    }

    #[test]
    fn a_head_without_an_end_does_not_hide_the_page() {
        let (_, text) =
            read(b"<!doctype html><html><head><title>T</title><meta charset=utf-8><body>Words").unwrap();
        assert_eq!(text, "Words");
    }

    #[test]
    fn what_a_page_is_does_not_depend_on_what_the_server_says() {
        assert_eq!(read(b"{\"a\": \"<html>\"}").unwrap(), (Kind::Text, "{\"a\": \"<html>\"}".into()));
        for (bytes, what) in [
            (&b"%PDF-1.7"[..], "PDF"),
            (b"\x7fELF\x02\x01\x01\0", "control bytes"),
            (b"PK\x03\x04", "control bytes"),
        ] {
            assert_eq!(read(bytes), Err(what));
        }
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic_and_text_does_not_grow_without_bound(html in "(<[a-z/!-]{0,8}[^>]{0,6}>?|[a-z &;]{0,6}){0,60}") {
            let text = html_to_text(&html);
            prop_assert!(text.len() <= html.len() * 4 + 16);
        }
    }
}
