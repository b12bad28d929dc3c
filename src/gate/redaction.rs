//! Secrets out of free text and out of paths, as hosts of the RPC ask for them.

use super::secrets;
use std::borrow::Cow;

/// Names of values that are secret.
const NAMES: &[&str] = &[
    "api_key",
    "apikey",
    "access_token",
    "accesstoken",
    "auth_token",
    "authtoken",
    "bearer_token",
    "bearertoken",
    "client_secret",
    "clientsecret",
    "consumer_secret",
    "consumersecret",
    "id_token",
    "idtoken",
    "refresh_token",
    "refreshtoken",
    "secret",
    "session_token",
    "sessiontoken",
    "service_token",
    "servicetoken",
    "token",
    "password",
    "passwd",
    "pwd",
    "sig",
    "signature",
    "x-amz-signature",
    "x-amz-credential",
    "x-amz-security-token",
    "x-goog-signature",
    "auth",
    "authorization",
    "private_key",
];
const SUFFIXES: &[&str] = &["token", "secret", "key", "password", "passwd", "pwd"];

const GONE: &str = "[REDACTED]";

/// Does a value of this name count as secret? Trimmed, without regard to case: a known name, or one that ends in `_` or
/// `-` and `token`, `secret`, `key`, `password`, `passwd` or `pwd`.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    NAMES.contains(&name.as_str())
        || SUFFIXES.iter().any(|s| name.strip_suffix(s).is_some_and(|head| head.ends_with(['_', '-'])))
}

/// Secrets in URLs: user part, and the values of secret names in query and fragment. For paths and structured values.
pub fn urls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for colon in memchr::memmem::find_iter(text.as_bytes(), b"://") {
        if colon < at {
            continue;
        }
        let head = text.get(at..colon).unwrap_or_default();
        let scheme = head
            .bytes()
            .rev()
            .take(32)
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'))
            .count();
        if scheme == 0 {
            continue;
        }
        let body_at = colon + 3;
        let rest = text.get(body_at..).unwrap_or_default();
        let len = rest
            .char_indices()
            .find(|(n, c)| *n > 8192 || c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '(' | ')'))
            .map_or(rest.len(), |(n, _)| n);
        out.push_str(text.get(at..body_at).unwrap_or_default());
        out.push_str(&url_body(rest.get(..len).unwrap_or_default()));
        at = body_at + len;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

fn url_body(body: &str) -> String {
    let authority_len = body.find(['/', '?', '#', '\\']).unwrap_or(body.len());
    let (authority, rest) = body.split_at_checked(authority_len).unwrap_or((body, ""));
    let mut out = String::with_capacity(body.len());
    match authority.rsplit_once('@') {
        Some((user, host)) => {
            if let Some((name, _)) = user.split_once(':') {
                out.push_str(name);
                out.push(':');
            }
            out.push_str(GONE);
            out.push('@');
            out.push_str(host);
        }
        None => out.push_str(authority),
    }
    let (before, fragment) = match rest.split_once('#') {
        Some((before, fragment)) => (before, Some(fragment)),
        None => (rest, None),
    };
    match before.split_once('?') {
        Some((path, query)) => {
            out.push_str(path);
            out.push('?');
            out.push_str(&pairs(query));
        }
        None => out.push_str(before),
    }
    if let Some(fragment) = fragment {
        out.push('#');
        out.push_str(&if fragment.contains('=') {
            Cow::Owned(pairs(fragment))
        } else {
            Cow::Borrowed(fragment)
        });
    }
    out
}

fn pairs(query: &str) -> String {
    let mut out = String::with_capacity(query.len());
    for (n, pair) in query.split('&').enumerate() {
        if n > 0 {
            out.push('&');
        }
        match pair.split_once('=') {
            Some((name, value)) if !value.is_empty() && is_secret_name(&percent_decoded(name)) => {
                out.push_str(name);
                out.push('=');
                out.push_str(GONE);
            }
            _ => out.push_str(pair),
        }
    }
    out
}

fn percent_decoded(name: &str) -> String {
    let mut out = Vec::with_capacity(name.len());
    let mut bytes = name.bytes();
    while let Some(b) = bytes.next() {
        let rest = bytes.as_slice_hex();
        match (b, rest) {
            (b'%', Some(value)) => {
                out.push(value);
                bytes.nth(1);
            }
            _ => out.push(b),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

trait HexAhead {
    fn as_slice_hex(&self) -> Option<u8>;
}

impl HexAhead for std::str::Bytes<'_> {
    fn as_slice_hex(&self) -> Option<u8> {
        let mut ahead = self.clone();
        let (high, low) = (char::from(ahead.next()?).to_digit(16)?, char::from(ahead.next()?).to_digit(16)?);
        u8::try_from(high * 16 + low).ok()
    }
}

/// Secrets in free text: what [`urls`] takes out, authorisation values, and every shape of [`secrets`].
pub fn free_text(text: &str) -> String {
    let text = urls(text);
    secrets::replace(&text, |kind| {
        if kind.ends_with("private-key") { "[REDACTED-PRIVATE-KEY]".into() } else { GONE.into() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_parts_and_secret_parameters_of_urls_go_and_hosts_stay() {
        for (text, clean) in [
            ("https://u:pw@h.example/x", "https://u:[REDACTED]@h.example/x"),
            ("https://tok@h/", "https://[REDACTED]@h/"),
            ("redis://:pw@h:1/0", "redis://:[REDACTED]@h:1/0"),
            (
                "see https://h/p?a=1&Api_Key=zz&b=2#access_token=q ok",
                "see https://h/p?a=1&Api_Key=[REDACTED]&b=2#access_token=[REDACTED] ok",
            ),
            ("https://h/?x%2dtoken=1", "https://h/?x%2dtoken=[REDACTED]"),
            ("https://h/?a=b+c&d=%20#top", "https://h/?a=b+c&d=%20#top"),
            ("Bearer aaaaaaaaaaaaaaaaaaaaaaaa1.txt", "Bearer aaaaaaaaaaaaaaaaaaaaaaaa1.txt"),
        ] {
            assert_eq!(urls(text), clean);
        }
    }

    #[test]
    fn free_text_keeps_prose() {
        for text in ["1//divisor", "the bearer of news", "https://example.org/a?b=c", "basic understanding"] {
            assert_eq!(free_text(text), text);
        }
        assert!(free_text(&format!("Bearer {}", "a1B2".repeat(6))).ends_with("Bearer [REDACTED]"));
    }

    #[test]
    fn each_shape_that_hosts_rely_on_goes_and_what_is_beside_it_stays() {
        let r = |n: usize| "a1B2c3D4e5F6g7H8".repeat(n / 16 + 1)[..n].to_string();
        for (secret, before, after) in [
            (r(24), "Authorization: Bearer ", " x"),
            ("dXNlcjpwYXNzd29yZA==".into(), "Authorization: Basic ", " x"),
            (r(40), "aws_secret_access_key = ", "\n"),
            (format!("1//{}", r(30)), "refresh ", " x"),
            (format!("xoxc-{}", r(20)), "t=", "\n"),
            (r(44), "AccountKey=", ";x"),
            (format!("abc8Q~{}", r(34)), "secret ", " x"),
            (format!("eyJ{}.eyJ{}.{}", r(20), r(20), r(20)), "x ", " y"),
            (format!("ewog{}.ewog{}.{}", r(20), r(20), r(20)), "x ", " y"),
            ("pw0rd-x".into(), "postgres://u:", "@db.example/x"),
            ("pw0rd-x".into(), "mongodb+srv://u:", "@db.example/x"),
            ("pw0rd-x".into(), "redis://:", "@db.example:1/0"),
            ("pw0rd-x".into(), "amqp://u:", "@db.example/x"),
            ("pw0rd-x".into(), "ftp://u:", "@db.example/x"),
        ] {
            let clean = free_text(&format!("{before}{secret}{after}"));
            assert!(!clean.contains(&secret), "{before}{secret} -> {clean}");
            assert!(clean.contains("[REDACTED]") && clean.ends_with(after), "{clean}");
        }
        for parameter in NAMES {
            let clean = urls(&format!("https://h.example/p?{parameter}=zz9&keep=1"));
            assert_eq!(clean, format!("https://h.example/p?{parameter}=[REDACTED]&keep=1"));
        }
        let body = r(64);
        for pem in [
            format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"),
            format!("-----BEGIN PRIVATE KEY-----\n{body}"),
        ] {
            assert_eq!(free_text(&format!("a {pem}")).trim_end(), "a [REDACTED-PRIVATE-KEY]");
        }
    }

    #[test]
    fn secret_names_are_known_by_list_and_suffix() {
        for name in ["token", " API_KEY ", "x-my-key", "db_pwd"] {
            assert!(is_secret_name(name));
        }
        for name in ["monkey", "tokens", "keyboard", ""] {
            assert!(!is_secret_name(name));
        }
    }
}
