//! Secrets that have a structure rather than a prefix.

use super::SecretHit;
use regex::{Regex, RegexSet};
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

/// Kind, and a shape whose group `s`, where there is one, is the secret.
const SHAPES: &[(&str, &str)] = &[
    (
        "private-key",
        r"-----BEGIN (?:(?:RSA|EC|DSA|OPENSSH|ENCRYPTED|ANY|SSH2 ENCRYPTED) )?PRIVATE KEY-----(?:[^-]*(?:-----END [A-Z0-9 ]*PRIVATE KEY-----)?)",
    ),
    (
        "pgp-private-key",
        r"-----BEGIN PGP PRIVATE KEY BLOCK-----[^-]*(?:-----END PGP PRIVATE KEY BLOCK-----)?",
    ),
    ("putty-private-key", r"PuTTY-User-Key-File-[23]: [^\n]*\n(?:[^\n]+\n)*"),
    ("jwt", r"\be[yw][A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{8,}"),
    (
        "url-password",
        r#"(?i)\b[a-z][a-z0-9+.-]{1,31}://[^\s/:@"'<>\[\](){}]*:(?P<s>[^\s/@"'<>\[\](){}]{3,})@[a-z0-9\[]"#,
    ),
    ("url-token", r#"(?i)\bhttps?://(?P<s>[a-z0-9_-]{20,})@[a-z0-9]"#),
    (
        "url-query-secret",
        r#"(?i)[?&](?:access_token|api_?key|auth|client_secret|password|private_token|refresh_token|secret|signature|token|x-amz-signature|x-goog-signature)=(?P<s>[A-Za-z0-9%+/=._~-]{16,})"#,
    ),
    ("azure-sas", r"(?i)\bsig=(?P<s>[A-Za-z0-9%+/]{40,}(?:=|%3d))"),
    ("bearer-token", r"(?i)\bbearer\s+(?P<s>[A-Za-z0-9._~+/-]{20,}=*)"),
    ("basic-auth", r"(?i)\bbasic\s+(?P<s>[A-Za-z0-9+/]{16,}={0,2})(?:$|[^A-Za-z0-9+/=])"),
    (
        "authorization-token",
        r#"(?i)\bauthorization["']?\s*[:=]\s*["']?(?:token|apikey|key)\s+(?P<s>[A-Za-z0-9._~+/=-]{16,})"#,
    ),
    ("azure-ad-secret", r"(?:^|[^A-Za-z0-9_~.-])(?P<s>[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{30,45})"),
    (
        "slack-webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<s>[A-Z0-9]{8,}/[A-Za-z0-9/]{20,})",
    ),
    ("discord-webhook", r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/(?P<s>\d{17,20}/[A-Za-z0-9_-]{60,})"),
    ("teams-webhook", r"\.webhook\.office\.com/webhookb2/(?P<s>[A-Za-z0-9@/-]{60,})"),
    ("zapier-webhook", r"hooks\.zapier\.com/hooks/catch/(?P<s>\d{4,}/[a-z0-9]{6,})"),
    ("telegram-token", r"\b(?P<s>\d{8,10}:AA[A-Za-z0-9_-]{33})\b"),
    ("discord-token", r"\b(?P<s>[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38})\b"),
    ("terraform-token", r"\b(?P<s>[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,})"),
    ("mailchimp-token", r"\b(?P<s>[0-9a-f]{32}-us\d{1,2})\b"),
    ("netrc-password", r"(?i)\bmachine\s+\S+\s+login\s+\S+\s+password\s+(?P<s>\S+)"),
    ("google-service-account", r#""private_key_id"\s*:\s*"(?P<s>[0-9a-f]{40})""#),
    (
        "cookie-session",
        r"(?i)\b(?:set-)?cookie:[^\n]*?\b(?:session|sessionid|sid|connect\.sid|phpsessid|jsessionid|auth)=(?P<s>[A-Za-z0-9%._-]{16,})",
    ),
    ("gitea-token", r"(?i)\bgitea[a-z0-9_-]*\s*[:=]\s*(?P<s>[0-9a-f]{40})\b"),
];

/// Literals without which none of the shapes can match: the fast way past ordinary text.
static SET: LazyLock<Option<RegexSet>> = LazyLock::new(|| RegexSet::new(SHAPES.iter().map(|s| s.1)).ok());
static EACH: LazyLock<Vec<Option<Regex>>> =
    LazyLock::new(|| SHAPES.iter().map(|s| Regex::new(s.1).ok()).collect());

pub(super) fn find(text: &str, hits: &mut Vec<SecretHit>) {
    let Some(set) = SET.as_ref() else {
        hits.push(SecretHit { kind: "undecided", start: 0, end: text.len() });
        return;
    };
    for index in set.matches(text) {
        let (Some((kind, _)), Some(Some(shape))) = (SHAPES.get(index), EACH.get(index)) else { continue };
        for found in shape.captures_iter(text) {
            let Some(m) = found.name("s").or_else(|| found.get(0)) else { continue };
            if accept(kind, m.as_str()) {
                hits.push(SecretHit { kind, start: m.start(), end: m.end() });
            }
        }
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
    SET.is_some() && EACH.iter().all(Option::is_some) && KINDS.len() == SHAPES.len()
}
