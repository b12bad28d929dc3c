//! Where in a Markdown or HTML document a byte stands, by a CommonMark parser.
//!
//! Only a *closed* fence, a *closed* code span and a real table count: text that merely follows an opening fence, a lone
//! backtick or stands between pipes is prose, so an attacker gains nothing by them.

use super::finding::Context;
use pulldown_cmark::{Event, Options, Parser, Tag};

/// Longest document that is parsed; beyond, everything is prose.
const LIMIT: usize = 8 << 20;

/// Spans of a document with their contexts.
#[derive(Debug, Default)]
pub(crate) struct Map {
    spans: Vec<(usize, usize, Context)>,
}

impl Map {
    /// Reads `text`, which has the name `file`.
    pub fn of(file: &str, text: &[u8]) -> Map {
        let mut map = Map::default();
        let Ok(text) = std::str::from_utf8(text) else { return map };
        if text.len() > LIMIT {
            return map;
        }
        map.comments(text);
        let hidden = super::carrier::hidden(text.as_bytes());
        map.spans.extend(hidden.into_iter().map(|(from, to)| (from, to, Context::Hidden)));
        map.frontmatter(text);
        let lower = file.to_ascii_lowercase();
        let markdown = [".md", ".mdc", ".mdx", ".markdown", ".txt", "-"].iter().any(|e| lower.ends_with(e))
            || !lower.rsplit('/').next().unwrap_or(&lower).contains('.');
        if markdown {
            map.markdown(text);
        }
        map
    }

    fn comments(&mut self, text: &str) {
        let mut at = 0;
        while let Some(p) = text.get(at..).and_then(|t| t.find("<!--")) {
            let from = at + p;
            let Some(len) = text[from..].find("-->") else { break };
            self.spans.push((from, from + len + 3, Context::Comment));
            at = from + len + 3;
        }
    }

    fn frontmatter(&mut self, text: &str) {
        for mark in ["---\n", "+++\n"] {
            if let Some(rest) = text.strip_prefix(mark)
                && let Some(len) = rest.find(&format!("\n{mark}"))
            {
                self.spans.push((0, len + 8, Context::Frontmatter));
            }
        }
    }

    fn markdown(&mut self, text: &str) {
        let options = Options::ENABLE_TABLES | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            let context = match event {
                Event::Start(Tag::CodeBlock(kind)) => {
                    if kind.is_fenced() && closed_fence(&text[range.clone()]) {
                        Context::Fence
                    } else {
                        continue;
                    }
                }
                Event::Start(Tag::Table(_)) => Context::Table,
                Event::Start(Tag::BlockQuote(_)) => Context::Quote,
                Event::Code(code) if !padded(&code, &text[range.clone()]) => Context::CodeSpan,
                _ => continue,
            };
            self.spans.push((range.start, range.end, context));
        }
    }

    /// The context of `start..end`: the least trusting one that holds all of it, a comment or
    /// hidden text before any other.
    pub fn at(&self, start: usize, end: usize) -> Context {
        let inside = self.spans.iter().filter(|(a, b, _)| *a <= start && end <= *b).map(|(_, _, c)| *c);
        let inside: Vec<Context> = inside.collect();
        if let Some(c) = [Context::Comment, Context::Hidden].into_iter().find(|c| inside.contains(c)) {
            return c;
        }
        inside.into_iter().min_by(|a, b| a.factor().total_cmp(&b.factor())).unwrap_or(Context::Prose)
    }
}

/// A span with spaces inside both its marks: two backticks that happen to stand in one paragraph.
fn padded(code: &str, source: &str) -> bool {
    let inner = source.trim_matches('`');
    !code.contains('`') && inner.starts_with([' ', '\n']) && inner.ends_with([' ', '\n'])
}

/// The block ends with a line that closes the fence it began with.
fn closed_fence(block: &str) -> bool {
    let mark = block.trim_start().chars().next().unwrap_or(' ');
    let open = block.trim_start().chars().take_while(|c| *c == mark).count();
    let last = block.trim_end().lines().next_back().unwrap_or_default();
    let last = last.trim_start_matches(['>', ' ']).trim();
    block.trim_end().lines().count() > 1 && last.len() >= open && last.chars().all(|c| c == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Context {
        let at = text.find("PAYLOAD").unwrap();
        Map::of("a.md", text.as_bytes()).at(at, at + 7)
    }

    #[test]
    fn closed_code_is_code_and_open_code_is_prose() {
        assert_eq!(of("```\nPAYLOAD\n```\n"), Context::Fence);
        assert_eq!(of("```\nPAYLOAD\n"), Context::Prose);
        assert_eq!(of("a `PAYLOAD` b"), Context::CodeSpan);
        assert_eq!(of("a ` b PAYLOAD c"), Context::Prose);
        assert_eq!(of("a ` b PAYLOAD c ` d"), Context::Prose);
    }

    #[test]
    fn pipes_alone_make_no_table() {
        assert_eq!(of("| PAYLOAD |"), Context::Prose);
        assert_eq!(of("| a |\n|---|\n| PAYLOAD |\n"), Context::Table);
    }

    #[test]
    fn a_comment_is_a_comment_wherever_it_stands() {
        assert_eq!(of("<!-- PAYLOAD -->"), Context::Comment);
        assert_eq!(of("> PAYLOAD"), Context::Quote);
    }
}
