//! Secret-shaped strings: found and replaced, never shown.

use regex::Regex;
use regex::RegexSet;
use std::sync::LazyLock;

/// Where a secret-shaped string stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretHit {
    /// What it looks like, for example `github-token`.
    pub kind: &'static str,
    /// First byte of the secret.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
}

/// Kind and shape; the capture `s`, where there is one, is the secret.
const SHAPES: &[(&str, &str)] = &[
    ("aws-access-key-id", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    ("aws-secret-key", r#"(?i)aws_?secret_?(?:access_?)?key["']?\s*[:=]\s*["']?(?P<s>[A-Za-z0-9/+=]{40})"#),
    ("github-token", r"\bgh[opusr]_[A-Za-z0-9]{36,}\b"),
    ("github-fine-grained-token", r"\bgithub_pat_[A-Za-z0-9_]{50,}\b"),
    ("gitlab-token", r"\bgl(?:pat|dt|rt|ptt|ft|soat|cbt|imt|agent)-[A-Za-z0-9_-]{20,}"),
    ("slack-token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("slack-app-token", r"\bxapp-\d-[A-Za-z0-9-]{20,}"),
    ("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    ("openai-key", r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{40,}"),
    ("google-api-key", r"\bAIza[A-Za-z0-9_-]{35}\b"),
    ("stripe-key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}\b"),
    ("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi-token", r"\bpypi-AgEI[A-Za-z0-9_-]{50,}"),
    ("huggingface-token", r"\bhf_[A-Za-z0-9]{34,}\b"),
    ("sendgrid-key", r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}\b"),
    (
        "private-key",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:[^-]*-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    ("jwt", r"\be[yw][A-Za-z0-9_-]{10,}\.e[yw][A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("url-password", r#"\b[a-z][a-z0-9+.-]{1,31}://[^\s/:@"'<>]*:(?P<s>[^\s/:@"'<>]+)@"#),
    ("bearer-token", r"(?i)\bbearer\s+(?P<s>[A-Za-z0-9._~+/-]{20,}=*)"),
    (
        "assigned-secret",
        r#"(?i)(?:api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret|secret[_-]?key|passw(?:or)?d)["']?\s*[:=]\s*["']?(?P<s>[A-Za-z0-9+/_.~=-]*[0-9][A-Za-z0-9+/_.~=-]{7,})"#,
    ),
];

static SET: LazyLock<Option<RegexSet>> = LazyLock::new(|| RegexSet::new(SHAPES.iter().map(|s| s.1)).ok());
static EACH: LazyLock<Vec<Option<Regex>>> =
    LazyLock::new(|| SHAPES.iter().map(|s| Regex::new(s.1).ok()).collect());

/// Every secret-shaped string in `text`, in order, without overlaps. Linear in the input.
pub fn find(text: &str) -> Vec<SecretHit> {
    let mut hits = Vec::new();
    let Some(set) = SET.as_ref() else {
        return vec![SecretHit { kind: "undecided", start: 0, end: text.len() }];
    };
    for index in set.matches(text) {
        let (Some((kind, _)), Some(Some(shape))) = (SHAPES.get(index), EACH.get(index)) else { continue };
        for found in shape.captures_iter(text) {
            if let Some(m) = found.name("s").or_else(|| found.get(0)) {
                hits.push(SecretHit { kind, start: m.start(), end: m.end() });
            }
        }
    }
    hits.sort_by_key(|h| (h.start, std::cmp::Reverse(h.end)));
    let mut end = 0;
    hits.retain(|h| {
        let keep = h.start >= end;
        if keep {
            end = h.end;
        }
        keep
    });
    hits
}

/// `text` with every secret-shaped string replaced by `[REDACTED:kind]`.
pub fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for hit in find(text) {
        out.push_str(text.get(at..hit.start).unwrap_or_default());
        out.push_str("[REDACTED:");
        out.push_str(hit.kind);
        out.push(']');
        at = hit.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_compiles() {
        assert!(SET.is_some() && EACH.iter().all(Option::is_some));
    }

    #[test]
    fn prose_is_not_a_secret() {
        assert!(
            find("The password is checked in check_password(); see https://example.org/a:b and 1//divisor")
                .is_empty()
        );
    }
}
