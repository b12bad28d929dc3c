//! Secrets that have a structure rather than a prefix.

use super::forms::Form;
pub(super) use super::forms::{SHAPES, kinds};
use super::shape::Source;
use super::{Reading, SecretHit, named};
use regex::bytes::{Regex, RegexBuilder};
use std::sync::OnceLock;

/// Bytes before a literal that its shape may begin with.
pub(super) const BEFORE: usize = 96;
/// Bytes after a literal that its shape may take, and those up to the next white space.
pub(super) const AFTER: usize = 1024;
/// Of a longer run without white space, the rest is not looked at.
const RUN: usize = 64 * 1024;

/// Over bytes: without Unicode classes the automata stay small, and offsets fall on ASCII all the same. Each is compiled
/// when its literal first stands in a text.
static COMPILED: [OnceLock<Option<Regex>>; SHAPES.len()] = [const { OnceLock::new() }; SHAPES.len()];

fn compiled(index: usize) -> Option<&'static Regex> {
    let Form::Regex(pattern) = SHAPES.get(index)?.form else { return None };
    COMPILED.get(index)?.get_or_init(|| RegexBuilder::new(pattern).unicode(false).build().ok()).as_ref()
}

/// Reads structures at their literals, in the order of the text.
pub(super) struct Reader {
    /// By shape: where its expression is run at the end.
    windows: [Vec<(usize, usize)>; SHAPES.len()],
    space: Next,
    /// Up to where a token of three parts was read.
    jwt: usize,
    /// One past the authority that was read last, and whether it says who the user is.
    authority: (usize, Option<(usize, usize)>),
}

impl Reader {
    pub(super) fn new() -> Reader {
        Reader {
            windows: [const { Vec::new() }; SHAPES.len()],
            space: Next::default(),
            jwt: 0,
            authority: (0, None),
        }
    }

    /// A literal of shape `index` stands at `start..end`.
    pub(super) fn at(
        &mut self,
        bytes: &[u8],
        index: usize,
        start: usize,
        end: usize,
        hits: &mut Vec<SecretHit>,
    ) {
        let Some(shape) = SHAPES.get(index) else { return };
        if matches!(shape.form, Form::ByHand) {
            if let Some((start, end)) = self.by_hand(bytes, shape.kind, start, end) {
                hits.push(SecretHit { kind: shape.kind, start, end });
            }
            return;
        }
        if !plausible(bytes, shape.kind, start, end) {
            return;
        }
        let from = start.saturating_sub(BEFORE);
        let to = self.space.at_or_after(bytes, (end + AFTER).min(bytes.len()));
        let Some(windows) = self.windows.get_mut(index) else { return };
        match windows.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => windows.push((from, to)),
        }
    }

    /// Runs the expressions where their literals were.
    pub(super) fn finish(mut self, text: &str, hits: &mut Vec<SecretHit>) {
        let bytes = text.as_bytes();
        for (index, (shape, windows)) in SHAPES.iter().zip(&mut self.windows).enumerate() {
            if windows.is_empty() {
                continue;
            }
            let kind = shape.kind;
            let Some(regex) = compiled(index) else {
                // Without the expression nothing can be told apart: what stands there is the finding.
                let at = windows.iter().map(|w| SecretHit { kind: "undecided", start: w.0, end: w.1 });
                hits.extend(at.filter(|h| text.get(h.start..h.end).is_some()));
                continue;
            };
            // Keys are spread over lines.
            if kind.ends_with("private-key") || kind == "ansible-vault" {
                let from = windows.first().map_or(0, |w| w.0);
                *windows = vec![(from, bytes.len())];
            }
            for &(from, to) in windows.iter() {
                let mut at = from;
                let window = bytes.get(..to).unwrap_or_default();
                while let Some(found) = regex.captures_at(window, at) {
                    let Some(whole) = found.get(0) else { break };
                    at = whole.end().max(at + 1);
                    let secret = found.name("s").unwrap_or(whole);
                    let span = (secret.start(), secret.end());
                    if text.get(span.0..span.1).is_some_and(|secret| accept(kind, secret)) {
                        hits.push(SecretHit { kind, start: span.0, end: span.1 });
                    }
                    if at > window.len() {
                        break;
                    }
                }
            }
        }
    }

    fn by_hand(&mut self, bytes: &[u8], kind: &str, start: usize, end: usize) -> Option<(usize, usize)> {
        match kind {
            "jwt" => {
                // Later literals of a run that is no token would only read less of it.
                if start < self.jwt {
                    return None;
                }
                let (span, read) = jwt(bytes, start);
                self.jwt = read;
                span
            }
            "discord-token" => discord(bytes, start),
            "url-password" | "url-token" => {
                if self.authority.0 != end {
                    self.authority = (end, user_part(bytes, end));
                }
                let (from, to) = self.authority.1?;
                let user = bytes.get(from..to)?;
                let span = match (kind, memchr::memchr(b':', user)) {
                    // A service's default, as `postgres:postgres`.
                    ("url-password", Some(colon)) if same(user, colon) => return None,
                    ("url-password", Some(colon)) => (from + colon + 1, to),
                    ("url-token", None) if to - from >= 20 && http(bytes, start) => (from, to),
                    _ => return None,
                };
                let secret = std::str::from_utf8(bytes.get(span.0..span.1)?).ok()?;
                let long = kind == "url-token" || secret.len() >= 3;
                (long && scheme(bytes, start) && accept(kind, secret)).then_some(span)
            }
            _ => None,
        }
    }
}

fn run(bytes: &[u8], from: usize, most: usize, keep: impl Fn(u8) -> bool) -> usize {
    bytes.get(from..).unwrap_or_default().iter().take(most).take_while(|b| keep(**b)).count()
}

fn url_safe(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
}

fn word(b: Option<&u8>) -> bool {
    b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

/// A letter, a digit or `_` stands before `at` that is not the end of an escape such as `\n`.
fn word_before(bytes: &[u8], at: usize) -> bool {
    let back = |n: usize| at.checked_sub(n).and_then(|at| bytes.get(at));
    let escaped = back(2) == Some(&b'\\') && matches!(back(1), Some(b'n' | b'r' | b't'));
    word(back(1)) && !escaped
}

/// Three runs with dots between; and up to where no other can begin that this one was none.
fn jwt(bytes: &[u8], start: usize) -> (Option<(usize, usize)>, usize) {
    if word_before(bytes, start) {
        return (None, start);
    }
    let mut at = start;
    let mut first = start;
    for (n, least) in [12usize, 10, 8].into_iter().enumerate() {
        let len = run(bytes, at, usize::MAX, url_safe);
        at += len;
        if n == 0 {
            first = at;
        }
        if len < least {
            return (None, first);
        }
        if n < 2 {
            if bytes.get(at) != Some(&b'.') {
                return (None, first);
            }
            at += 1;
        }
    }
    (Some((start, at)), at)
}

/// `ID.TIME.MAC`, each of a known length.
fn discord(bytes: &[u8], start: usize) -> Option<(usize, usize)> {
    if word_before(bytes, start) {
        return None;
    }
    let mut at = start;
    for (n, (least, most)) in [(24, 28), (6, 6), (27, 38)].into_iter().enumerate() {
        let len = run(bytes, at, most + 1, url_safe);
        if !(least..=most).contains(&len) {
            return None;
        }
        at += len;
        if n < 2 {
            if bytes.get(at) != Some(&b'.') {
                return None;
            }
            at += 1;
        }
    }
    Some((start, at))
}

/// What stands before the `@` of an authority that begins at `from`, when a host follows.
fn user_part(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let ends = |b: u8| {
        b.is_ascii_whitespace()
            || matches!(b, b'/' | b'@' | b'"' | b'\'' | b'<' | b'>')
            || matches!(b, b'[' | b']' | b'(' | b')' | b'{' | b'}')
    };
    let at = from + run(bytes, from, usize::MAX, |b| !ends(b));
    let host = bytes.get(at + 1).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'[');
    (bytes.get(at) == Some(&b'@') && host).then_some((from, at))
}

/// Is the word before the colon the word behind it?
fn same(user: &[u8], colon: usize) -> bool {
    let (name, password) = (user.get(..colon), user.get(colon + 1..));
    name == password && name.is_some_and(|name| name.iter().all(u8::is_ascii_alphabetic))
}

/// A scheme of two letters or more ends at `colon`.
fn scheme(bytes: &[u8], colon: usize) -> bool {
    let head = bytes.get(colon.saturating_sub(33)..colon).unwrap_or_default();
    let len = head
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'))
        .count();
    let scheme = head.get(head.len() - len..).unwrap_or_default();
    len >= 2 && scheme.get(..len - 1).is_some_and(|s| s.iter().any(u8::is_ascii_alphabetic))
}

fn http(bytes: &[u8], colon: usize) -> bool {
    let head = bytes.get(colon.saturating_sub(5)..colon).unwrap_or_default();
    let ends = |scheme: &[u8]| {
        head.len() >= scheme.len()
            && head.get(head.len() - scheme.len()..).is_some_and(|h| h.eq_ignore_ascii_case(scheme))
    };
    ends(b"https") || ends(b"http")
}

/// Could the structure stand at its literal? A few bytes settle most of what ordinary text has.
fn plausible(bytes: &[u8], kind: &str, start: usize, end: usize) -> bool {
    let next = |from: usize| bytes.get(from).copied().unwrap_or(0);
    let base64 = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    match kind {
        "bearer-token" | "basic-auth" => {
            let gap = run(bytes, end, AFTER, |b| b.is_ascii_whitespace());
            gap > 0
                && run(bytes, end + gap, 16, |b| base64(b) || matches!(b, b'.' | b'_' | b'~' | b'-')) == 16
        }
        "url-query-secret" => {
            run(bytes, end, 16, |b| base64(b) || matches!(b, b'%' | b'=' | b'.' | b'_' | b'~' | b'-')) == 16
        }
        "azure-sas" => run(bytes, end, 40, |b| base64(b) || b == b'%') == 40,
        "telegram-token" => {
            start.checked_sub(1).is_some_and(|at| next(at).is_ascii_digit())
                && run(bytes, end, 33, url_safe) == 33
        }
        "azure-key" => start.checked_sub(33).is_some_and(|at| run(bytes, at, 33, base64) == 33),
        "azure-signed-key" => {
            start.checked_sub(52).is_some_and(|at| run(bytes, at, 52, |b| b.is_ascii_alphanumeric()) == 52)
        }
        "newrelic-license-key" => start.checked_sub(36).is_some_and(|at| run(bytes, at, 36, hex) == 36),
        // An option follows the name of a command; a value follows the name of an option.
        "command-password" => {
            let line = bytes.get(end..bytes.len().min(end + 256)).unwrap_or_default();
            next(start) == b'-' || memchr::memmem::find(line, b"-").is_some()
        }
        "mailchimp-token" => start.checked_sub(32).is_some_and(|at| run(bytes, at, 32, hex) == 32),
        "netrc-password" => {
            let window = bytes.get(end..bytes.len().min(end + AFTER)).unwrap_or_default();
            let gap = run(window, 0, AFTER, |b| b.is_ascii_whitespace());
            let name = run(window, gap, AFTER, |b| !b.is_ascii_whitespace());
            let space = run(window, gap + name, AFTER, |b| b.is_ascii_whitespace());
            let login = gap + name + space;
            gap > 0
                && (login >= window.len()
                    || window.get(gap..gap + name).is_some_and(|n| n.contains(&b'\\'))
                    || window.get(login..login + 5).is_some_and(|l| l.eq_ignore_ascii_case(b"login")))
        }
        "authorization-token" => {
            let gap = run(bytes, end, AFTER, |b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\''));
            matches!(next(end + gap), b':' | b'=') || gap == AFTER
        }
        "gitea-token" => {
            let name = run(bytes, end, AFTER, url_safe);
            let gap = run(bytes, end + name, AFTER, |b| b.is_ascii_whitespace());
            matches!(next(end + name + gap), b':' | b'=') || name + gap >= AFTER
        }
        _ => true,
    }
}

/// Where another reading has to be looked at for shape `index`, whose literal it sees at `start..end`.
pub(super) fn hidden_window(
    source: &Source<'_>,
    index: usize,
    start: usize,
    end: usize,
    len: usize,
) -> Option<(usize, usize)> {
    /// Bytes that a structure may take after its literal in a hidden reading.
    const REACH: usize = 4096;
    let shape = SHAPES.get(index)?;
    if matches!(shape.form, Form::ByHand) {
        // A token by itself: its first characters tell most words from it.
        let literal = end - start;
        let long = (literal..24).all(|i| source.byte(i).is_some_and(|b| url_safe(b) || b == b'.'));
        if source.inside_word() || !long {
            return None;
        }
    }
    Some(match source.reading() {
        Reading::Mirrored => (start.saturating_sub(REACH), (end + BEFORE).min(len)),
        _ => (start.saturating_sub(BEFORE), (end + REACH).min(len)),
    })
}

fn hex(b: u8) -> bool {
    matches!(b, b'0'..=b'9' | b'a'..=b'f')
}

/// Where the next white space is; what was read once is not read again.
#[derive(Default)]
struct Next {
    from: usize,
    found: usize,
}

impl Next {
    fn at_or_after(&mut self, bytes: &[u8], at: usize) -> usize {
        if !(self.from..=self.found).contains(&at) || self.found == 0 {
            let rest = bytes.get(at..).unwrap_or_default();
            let run = rest.iter().take(RUN).take_while(|b| !b.is_ascii_whitespace()).count();
            (self.from, self.found) = (at, at + run);
        }
        self.found
    }
}

/// What a regular language cannot say.
fn accept(kind: &str, secret: &str) -> bool {
    let digits = secret.bytes().any(|b| b.is_ascii_digit());
    match kind {
        // A header or the mention of one, without a key behind it, is documentation.
        "private-key" | "pgp-private-key" => secret
            .split("-----")
            .nth(2)
            .is_some_and(|body| body.bytes().filter(u8::is_ascii_alphanumeric).count() >= 16),
        "url-password" | "jdbc-password" => {
            !matches!(secret, "password" | "pass" | "pwd" | "PASSWORD" | "PASS")
                && !secret.starts_with(['$', '{', '<', '*', '%'])
        }
        "url-token" | "bearer-token" | "url-query-secret" | "authorization-token" => {
            digits && !secret.contains("...")
        }
        "command-password" | "securestring-password" | "pgpass-password" => named::password(secret),
        "command-token" => named::secret(secret),
        // Lengths of private keys of the curves and of RSA.
        "jwk-private-key" => digits && matches!(secret.len(), 43 | 64 | 76 | 86..=88 | 171 | 342 | 512 | 683),
        "basic-auth" => {
            secret.bytes().any(|b| b.is_ascii_uppercase())
                && secret.bytes().any(|b| b.is_ascii_lowercase())
                && (digits || secret.ends_with('='))
        }
        _ => true,
    }
}

#[cfg(test)]
pub(super) fn compiles() -> bool {
    let expressions = SHAPES.iter().enumerate().filter(|(_, shape)| matches!(shape.form, Form::Regex(_)));
    expressions.into_iter().all(|(index, _)| compiled(index).is_some())
}
