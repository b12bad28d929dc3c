//! Entry points for the fuzz targets: each runs one stage and checks what must hold for any input.

use super::survey::Surveyor;
use super::token::{self, Token};
use super::{Engine, decode, joins};

/// Tokens and joined words lie inside the text, in order.
///
/// # Panics
/// When they do not.
#[allow(clippy::panic)]
pub fn normalise(text: &[u8]) {
    let mut tokens: Vec<Token> = Vec::new();
    token::tokenise(text, &mut tokens);
    let lexicon = &Engine::builtin().lexicon;
    let found = Surveyor::new(lexicon, None).survey(text, &mut tokens);
    let mut before = 0;
    for t in &tokens {
        assert!(before <= t.start as usize && t.start < t.end && t.end as usize <= text.len(), "{t:?}");
        before = t.end as usize;
    }
    for t in joins::joined(text, &tokens, &found.pieces, lexicon) {
        assert!(t.start < t.end && t.end as usize <= text.len(), "{t:?}");
    }
}

/// Every decoded view stays within the budget and maps back into the text.
///
/// # Panics
/// When one does not.
pub fn decode(text: &[u8]) {
    let mut tokens: Vec<Token> = Vec::new();
    let seen = token::tokenise(text, &mut tokens);
    let found = Surveyor::new(&Engine::builtin().lexicon, None).survey(text, &mut tokens);
    let mut left = decode::budget(text.len());
    let all = left;
    let mut decoded = 0;
    for view in decode::views(text, &tokens, &seen, &found, &mut left) {
        decoded += view.bytes.len();
        let n = view.bytes.len();
        for (a, b) in [(0, 1), (0, n), (n / 2, n / 2 + 1), (n.saturating_sub(1), n), (n, n + 1)] {
            let (start, end) = view.source(a, b);
            assert!(start < end && end <= text.len(), "{} {a}..{b} gives {start}..{end}", view.name);
        }
    }
    assert!(decoded + left <= all);
}

/// A context exists for every place of any document.
pub fn context(text: &str) {
    let map = super::context::Map::of("a.md", text.as_bytes());
    for at in (0..text.len()).step_by(7) {
        let _ = map.at(at, at + 1);
    }
}

/// Findings of the whole engine lie inside the text, whatever its format is said to be, and every report can be written.
///
/// # Panics
/// When one does not.
pub fn engine(text: &[u8]) {
    use super::report;
    const NAMES: [&str; 9] = ["", "a.html", "a.md", "a.json", "a.yaml", "a.toml", "a.csv", "a.rs", "a.py"];
    let name =
        text.last().and_then(|b| NAMES.get(usize::from(*b) % NAMES.len())).copied().unwrap_or_default();
    for f in Engine::builtin().scan_named(name, text) {
        assert!(f.start < f.end && f.end <= text.len(), "{f:?}");
        assert!((0.0..=1.0).contains(&f.confidence), "{f:?}");
    }
    let one = [report::check(Engine::builtin(), "a.md", text, report::Policy::default())];
    let _ = (report::text(&one, true), report::json(&one), report::sarif(&one));
}
