//! Secrets that have a structure rather than a prefix.

use super::SecretHit;
use aho_corasick::AhoCorasick;
use regex::bytes::{Regex, RegexBuilder};
use std::sync::LazyLock;

pub(super) const KINDS: &[&str] = &[
    "private-key",
    "pgp-private-key",
    "putty-private-key",
    "jwt",
    "url-password",
    "url-token",
    "url-query-secret",
    "bearer-token",
    "basic-auth",
    "authorization-token",
    "azure-ad-secret",
    "slack-webhook",
    "discord-webhook",
    "teams-webhook",
    "telegram-token",
    "discord-token",
    "terraform-token",
    "mailchimp-token",
    "netrc-password",
    "azure-sas",
    "google-service-account",
    "cookie-session",
    "zapier-webhook",
    "gitea-token",
];

/// Kind; literals (in any case) without which the shape cannot match; and the shape, whose group `s`, where there is one,
/// is the secret.
const SHAPES: &[(&str, &[&str], &str)] = &[
    (
        "private-key",
        &["PRIVATE KEY"],
        r"-----BEGIN (?:(?:RSA|EC|DSA|OPENSSH|ENCRYPTED|ANY|SSH2 ENCRYPTED) )?PRIVATE KEY-----(?:[^-]*(?:-----END [A-Z0-9 ]*PRIVATE KEY-----)?)",
    ),
    (
        "pgp-private-key",
        &["PGP PRIVATE KEY"],
        r"-----BEGIN PGP PRIVATE KEY BLOCK-----[^-]*(?:-----END PGP PRIVATE KEY BLOCK-----)?",
    ),
    ("putty-private-key", &["PuTTY-User-Key-File"], r"PuTTY-User-Key-File-[23]: [^\n]*\n(?:[^\n]+\n)*"),
    ("jwt", &[], r"\be[yw][A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{8,}"),
    (
        "url-password",
        &["://"],
        r#"(?i)\b[a-z][a-z0-9+.-]{1,31}://[^\s/:@"'<>\[\](){}]*:(?P<s>[^\s/@"'<>\[\](){}]{3,})@[a-z0-9\[]"#,
    ),
    ("url-token", &["://"], r#"(?i)\bhttps?://(?P<s>[a-z0-9_-]{20,})@[a-z0-9]"#),
    (
        "url-query-secret",
        &["token=", "key=", "auth=", "secret=", "password=", "signature="],
        r#"(?i)[?&](?:access_token|api_?key|auth|client_secret|password|private_token|refresh_token|secret|signature|token|x-amz-signature|x-goog-signature)=(?P<s>[A-Za-z0-9%+/=._~-]{16,})"#,
    ),
    ("azure-sas", &["sig="], r"(?i)\bsig=(?P<s>[A-Za-z0-9%+/]{40,}(?:=|%3d))"),
    ("bearer-token", &["bearer"], r"(?i)\bbearer\s+(?P<s>[A-Za-z0-9._~+/-]{20,}=*)"),
    ("basic-auth", &["basic"], r"(?i)\bbasic\s+(?P<s>[A-Za-z0-9+/]{16,}={0,2})(?:$|[^A-Za-z0-9+/=])"),
    (
        "authorization-token",
        &["authorization"],
        r#"(?i)\bauthorization["']?\s*[:=]\s*["']?(?:token|apikey|key)\s+(?P<s>[A-Za-z0-9._~+/=-]{16,})"#,
    ),
    (
        "azure-ad-secret",
        &["7Q~", "8Q~"],
        r"(?:^|[^A-Za-z0-9_~.-])(?P<s>[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{30,45})",
    ),
    (
        "slack-webhook",
        &["hooks.slack.com"],
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<s>[A-Z0-9]{8,}/[A-Za-z0-9/]{20,})",
    ),
    (
        "discord-webhook",
        &["/webhooks/"],
        r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/(?P<s>\d{17,20}/[A-Za-z0-9_-]{60,})",
    ),
    (
        "teams-webhook",
        &["webhook.office.com"],
        r"\.webhook\.office\.com/webhookb2/(?P<s>[A-Za-z0-9@/-]{60,})",
    ),
    ("zapier-webhook", &["hooks.zapier.com"], r"hooks\.zapier\.com/hooks/catch/(?P<s>\d{4,}/[a-z0-9]{6,})"),
    ("telegram-token", &[":AA"], r"\b(?P<s>\d{8,10}:AA[A-Za-z0-9_-]{33})\b"),
    ("discord-token", &[], r"\b(?P<s>[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38})\b"),
    ("terraform-token", &[".atlasv1."], r"\b(?P<s>[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,})"),
    ("mailchimp-token", &["-us"], r"\b(?P<s>[0-9a-f]{32}-us\d{1,2})\b"),
    ("netrc-password", &["machine"], r"(?i)\bmachine\s+\S+\s+login\s+\S+\s+password\s+(?P<s>\S+)"),
    ("google-service-account", &["private_key_id"], r#""private_key_id"\s*:\s*"(?P<s>[0-9a-f]{40})""#),
    (
        "cookie-session",
        &["cookie:"],
        r"(?i)\b(?:set-)?cookie:[^\n]*?\b(?:session|sessionid|sid|connect\.sid|phpsessid|jsessionid|auth)=(?P<s>[A-Za-z0-9%._-]{16,})",
    ),
    ("gitea-token", &["gitea"], r"(?i)\bgitea[a-z0-9_-]*\s*[:=]\s*(?P<s>[0-9a-f]{40})\b"),
];

/// Bytes before a literal that its shape may begin with.
const BEFORE: usize = 64;
/// Bytes after a literal that its shape may take, and those up to the next white space.
const AFTER: usize = 1024;
/// Of a longer run without white space, the rest is not looked at.
const RUN: usize = 64 * 1024;

static ANCHORS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let literals = SHAPES.iter().flat_map(|s| s.1.iter().copied());
    AhoCorasick::builder().ascii_case_insensitive(true).build(literals).ok()
});
/// Index of the shape that a literal of the automaton belongs to.
static OWNERS: LazyLock<Vec<usize>> =
    LazyLock::new(|| SHAPES.iter().enumerate().flat_map(|(n, s)| s.1.iter().map(move |_| n)).collect());
/// Over bytes: without Unicode classes the automata stay small, and offsets fall on ASCII all the same.
static EACH: LazyLock<Vec<Option<Regex>>> =
    LazyLock::new(|| SHAPES.iter().map(|s| RegexBuilder::new(s.2).unicode(false).build().ok()).collect());

pub(super) fn find(text: &str, hits: &mut Vec<SecretHit>) {
    let Some(anchors) = ANCHORS.as_ref() else {
        hits.push(SecretHit { kind: "undecided", start: 0, end: text.len() });
        return;
    };
    let bytes = text.as_bytes();
    let mut windows: Vec<Vec<(usize, usize)>> = vec![Vec::new(); SHAPES.len()];
    let mut space = Next::default();
    for anchor in anchors.find_overlapping_iter(text) {
        let owner = OWNERS.get(anchor.pattern().as_usize()).copied().unwrap_or(usize::MAX);
        let Some(windows) = windows.get_mut(owner) else { continue };
        let from = anchor.start().saturating_sub(BEFORE);
        let to = space.at_or_after(bytes, (anchor.end() + AFTER).min(bytes.len()));
        match windows.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => windows.push((from, to)),
        }
    }
    for (index, (kind, literals, _)) in SHAPES.iter().enumerate() {
        let (Some(Some(shape)), Some(windows)) = (EACH.get(index), windows.get_mut(index)) else { continue };
        // Keys spread over lines, and shapes without a literal, are looked for in the whole text.
        if literals.is_empty() || (kind.ends_with("private-key") && !windows.is_empty()) {
            *windows = vec![(0, bytes.len())];
        }
        for &(from, to) in windows.iter() {
            let mut at = from;
            let window = bytes.get(..to).unwrap_or_default();
            while let Some(found) = shape.captures_at(window, at) {
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
        "url-password" => {
            !matches!(secret, "password" | "pass" | "pwd" | "PASSWORD" | "PASS")
                && !secret.starts_with(['$', '{', '<', '*', '%'])
        }
        "url-token" | "bearer-token" | "url-query-secret" => digits && !secret.contains("..."),
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
    ANCHORS.is_some() && EACH.iter().all(Option::is_some) && KINDS.len() == SHAPES.len()
}
