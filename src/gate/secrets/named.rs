//! Values beside a name: `datadog_api_key = …`, `"password": "…"`, `X-Api-Key: …`, `export TOKEN=…`.

use super::SecretHit;
use super::shape::in_class;
use super::value::{self, Ends, GENERIC_VALUE};
use aho_corasick::AhoCorasick;
use std::sync::LazyLock;

/// A vendor's name near a value of an alphabet and length that says nothing alone.
const VENDORS: &[(&str, &[&str], u8, usize, usize)] = &[
    (
        "aws-secret-key",
        &["aws_secret", "aws-secret", "awssecret", "secretaccesskey", "secret_access_key"],
        b'B',
        30,
        60,
    ),
    ("aws-session-token", &["aws_session_token", "aws-session-token", "sessiontoken"], b'B', 100, 2000),
    ("azure-storage-key", &["accountkey"], b'B', 40, 100),
    ("azure-shared-access-key", &["sharedaccesskey"], b'B', 40, 64),
    ("azure-client-secret", &["azure_client_secret", "azure-client-secret"], b'P', 30, 48),
    ("azure-devops-token", &["azure_devops", "azdo", "system_accesstoken"], b'L', 52, 52),
    ("azure-openai-key", &["azure_openai", "azureopenai"], b'X', 32, 32),
    ("datadog-key", &["datadog", "dd_api_key", "dd_app_key", "dd-api-key"], b'H', 32, 40),
    ("cloudflare-token", &["cloudflare", "cf_api_token"], b'W', 40, 40),
    ("cloudflare-key", &["cloudflare", "cf_api_key"], b'H', 37, 37),
    ("fastly-token", &["fastly"], b'W', 32, 32),
    ("linode-token", &["linode"], b'H', 64, 64),
    ("vultr-key", &["vultr"], b'U', 36, 36),
    ("heroku-api-key", &["heroku"], b'W', 36, 36),
    ("ngrok-token", &["ngrok"], b'W', 40, 52),
    ("algolia-key", &["algolia"], b'H', 32, 32),
    ("okta-token", &["okta"], b'W', 42, 42),
    ("auth0-secret", &["auth0"], b'W', 48, 86),
    ("pagerduty-token", &["pagerduty", "pager_duty"], b'W', 20, 20),
    ("opsgenie-key", &["opsgenie"], b'W', 36, 36),
    ("rollbar-token", &["rollbar"], b'H', 32, 32),
    ("codecov-token", &["codecov"], b'W', 36, 36),
    ("coveralls-token", &["coveralls"], b'A', 32, 37),
    ("travis-token", &["travis"], b'A', 22, 22),
    ("snyk-token", &["snyk"], b'W', 36, 36),
    ("asana-token", &["asana"], b'W', 32, 60),
    ("trello-token", &["trello"], b'H', 64, 64),
    ("jira-token", &["jira", "confluence"], b'A', 24, 24),
    ("zendesk-token", &["zendesk"], b'A', 40, 40),
    ("intercom-token", &["intercom"], b'Q', 60, 60),
    ("twilio-auth-token", &["twilio"], b'H', 32, 32),
    ("nexmo-secret", &["nexmo", "vonage"], b'A', 16, 16),
    ("mailchimp-key", &["mailchimp"], b'W', 35, 37),
    ("postmark-token", &["postmark"], b'W', 36, 36),
    ("sparkpost-key", &["sparkpost"], b'H', 40, 40),
    ("segment-key", &["segment_write", "segment_api", "segment-write"], b'A', 32, 32),
    ("amplitude-key", &["amplitude"], b'H', 32, 32),
    ("mixpanel-secret", &["mixpanel"], b'H', 32, 32),
    ("cohere-key", &["cohere"], b'A', 40, 40),
    ("mistral-key", &["mistral"], b'A', 32, 32),
    ("ai21-key", &["ai21"], b'A', 32, 32),
    ("wandb-key", &["wandb"], b'H', 40, 40),
    ("etherscan-key", &["etherscan"], b'U', 34, 34),
    ("infura-key", &["infura"], b'H', 32, 32),
    ("alchemy-key", &["alchemy"], b'W', 32, 32),
    ("coinbase-secret", &["coinbase"], b'B', 64, 90),
    ("binance-secret", &["binance"], b'A', 64, 64),
    ("kraken-secret", &["kraken"], b'B', 80, 90),
    ("telegram-token-value", &["telegram"], b'W', 45, 46),
    ("linkedin-secret", &["linkedin"], b'A', 16, 16),
    ("twitter-secret", &["twitter"], b'A', 45, 50),
    ("dropbox-secret", &["dropbox"], b'L', 15, 15),
    ("wireguard-key", &["privatekey", "presharedkey"], b'B', 44, 44),
    ("kubernetes-key-data", &["client-key-data"], b'B', 100, 8000),
    ("docker-auth", &["\"auth\""], b'B', 20, 500),
    ("npmrc-auth", &["_authtoken"], b'Q', 24, 500),
    ("npmrc-basic-auth", &["_auth"], b'B', 16, 500),
    ("rails-master-key", &["rails_master_key"], b'H', 32, 32),
    ("ansible-become-password", &["ansible_become_pass", "ansible_ssh_pass"], b'P', 6, 100),
];

/// Names of secrets that say nothing about their shape. The flag: a password, which may be short.
const GENERIC: &[(&str, bool)] = &[
    ("password", true),
    ("passwd", true),
    ("passphrase", true),
    ("pwd", true),
    ("api_key", false),
    ("api-key", false),
    ("apikey", false),
    ("access_token", false),
    ("access-token", false),
    ("accesstoken", false),
    ("access_key", false),
    ("accesskey", false),
    ("auth_token", false),
    ("auth-token", false),
    ("authtoken", false),
    ("bearer_token", false),
    ("client_secret", false),
    ("client-secret", false),
    ("clientsecret", false),
    ("consumer_secret", false),
    ("encryption_key", false),
    ("signing_key", false),
    ("private_key", false),
    ("refresh_token", false),
    ("refreshtoken", false),
    ("session_token", false),
    ("id_token", false),
    ("service_token", false),
    ("secret", false),
    ("token", false),
    ("credential", false),
    ("webhook_url", false),
];

/// Every name, those of the vendors first.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    VENDORS.iter().flat_map(|v| v.1.iter().copied()).chain(GENERIC.iter().map(|g| g.0))
}

/// Index of the vendor that a name belongs to.
static OWNERS: LazyLock<Vec<usize>> =
    LazyLock::new(|| VENDORS.iter().enumerate().flat_map(|(n, v)| v.1.iter().map(move |_| n)).collect());

pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    VENDORS.iter().map(|v| v.0).chain(["password", "generic-secret"])
}

#[cfg(test)]
pub(super) fn vendor_cases() -> impl Iterator<Item = (&'static str, &'static str, u8, usize, usize)> {
    VENDORS.iter().map(|v| (v.0, v.1[0], v.2, v.3, v.4))
}

/// Reads values behind their names, in the order of the text.
#[derive(Default)]
pub(super) struct Reader {
    /// Up to where a value was taken.
    taken: usize,
    ends: Ends,
}

impl Reader {
    /// The name with the place `index` among [`names`] stands at `start..end`.
    pub(super) fn at(&mut self, bytes: &[u8], index: usize, start: usize, end: usize) -> Option<SecretHit> {
        if start < self.taken {
            return None;
        }
        let goes_on = bytes.get(end).is_some_and(u8::is_ascii_alphabetic);
        let designation = designation(bytes, end);
        let (start, end, quoted) = value::after(bytes, start, end, &mut self.ends)?;
        let value = bytes.get(start..end).unwrap_or_default();
        let kind = match OWNERS.get(index).and_then(|owner| VENDORS.get(*owner)) {
            Some((kind, _, class, min, max)) => {
                let shown = value.ends_with(b"EXAMPLEKEY") || value.ends_with(b"EXAMPLE");
                let fits = (*min..=*max).contains(&value.len()) && value.iter().all(|b| in_class(*class, *b));
                // `_authority`, `_authenticated` and names of types are code.
                let code = kind.starts_with("npmrc-") && (goes_on || !value.iter().any(u8::is_ascii_digit));
                (fits && varied(value) && !code && !shown).then_some(*kind)
            }
            None => GENERIC
                .get(index - OWNERS.len())
                .filter(|_| !designation)
                .and_then(|(_, password)| generic(value, quoted, *password, bytes.get(end))),
        }?;
        self.taken = end;
        Some(SecretHit { kind, start, end })
    }
}

/// Does an identifier with a secret's name go on, from `end`, to name something else: `token_endpoint`, `tokenizer_class`,
/// `credentialsId`?
fn designation(bytes: &[u8], end: usize) -> bool {
    const LAST: &[&[u8]] = &[
        b"endpoint",
        b"name",
        b"class",
        b"file",
        b"path",
        b"dir",
        b"type",
        b"algo",
        b"algorithm",
        b"policy",
        b"provider",
        b"format",
        b"header",
    ];
    let rest = bytes.get(end..).unwrap_or_default();
    let word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let rest = rest.get(..rest.iter().take(32).take_while(|b| word(b)).count()).unwrap_or_default();
    let starts = |with: &[u8]| rest.get(..with.len()).is_some_and(|r| r.eq_ignore_ascii_case(with));
    let last = |with: &[u8]| {
        let at = rest.len().checked_sub(with.len());
        at.and_then(|at| rest.get(at..)).is_some_and(|r| r.eq_ignore_ascii_case(with))
    };
    starts(b"iz")
        || [b"sid".as_slice(), b"s_id", b"s-id"].iter().any(|id| rest.eq_ignore_ascii_case(id))
        || LAST.iter().any(|with| last(with))
}

/// Words and small numbers with signs between, which name a thing: `next_page_token_2024_v2`, `jenkins-ssh-key-2024-01`.
fn worded(value: &[u8]) -> bool {
    let vowel = |b: &u8| matches!(b.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u' | b'y');
    let piece = |piece: &[u8]| {
        let letters = piece.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let (word, number) = piece.split_at(letters);
        let same_case = word.iter().skip(1).all(u8::is_ascii_lowercase);
        number.len() <= 4
            && number.iter().all(u8::is_ascii_digit)
            && same_case
            && (letters <= 3 || word.iter().any(vowel))
            && letters <= 14
    };
    let pieces = || value.split(|b| matches!(b, b'_' | b'-' | b'.' | b'/' | b':'));
    pieces().count() >= 4 && pieces().all(piece)
}

/// An absolute path, or one of this directory or the user's.
fn path(value: &[u8]) -> bool {
    let first = value.get(1..).unwrap_or_default().split(|b| *b == b'/').next().unwrap_or_default();
    let rooted = value.first() == Some(&b'/')
        && first.len() >= 2
        && first.len() + 1 < value.len()
        && first.iter().all(u8::is_ascii_alphabetic);
    rooted || value.starts_with(b"./") || value.starts_with(b"../") || value.starts_with(b"~/")
}

/// Could it be a password, where one stands?
pub(super) fn password(value: &str) -> bool {
    generic(value.as_bytes(), true, true, None).is_some()
}

/// Could it be a key or a token, where one stands?
pub(super) fn secret(value: &str) -> bool {
    generic(value.as_bytes(), true, false, None).is_some()
}

/// Judges a value whose name says only that it is secret.
fn generic(value: &[u8], quoted: bool, password: bool, next: Option<&u8>) -> Option<&'static str> {
    if !quoted && matches!(next, Some(b'(' | b'[' | b'{' | b'<' | b'|')) {
        return None;
    }
    if value.len() > GENERIC_VALUE || !value.is_ascii() || !varied(value) || placeholder(value) {
        return None;
    }
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = value.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let others = value.len() - digits - letters;
    if value.iter().any(|b| b.is_ascii_whitespace() || matches!(b, b'<' | b'>' | b'{' | b'}' | b'\\')) {
        return None;
    }
    if path(value) {
        return None;
    }
    if password {
        // Code assigns calls and paths to passwords; a literal one mixes letters with digits.
        let dotted = !quoted
            && value.contains(&b'.')
            && value.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_'));
        let literal = digits > 0 && letters > 0 && value.len() >= 6 && !dotted && value.len() <= 128;
        let strong = quoted
            && others > 1
            && letters > 3
            && value.len() >= 8
            && !value.contains(&b'/')
            && !value.contains(&b'.')
            && !value.contains(&b'_')
            && !value.contains(&b'-');
        return (literal || strong).then_some("password");
    }
    let plain = value.iter().all(|b| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'+' | b'/' | b'=' | b'~' | b':')
    });
    let apart = value.starts_with(b"/")
        || value.windows(3).any(|w| w == b"://")
        || value.windows(2).any(|w| w == b"::");
    (plain
        && !apart
        && !worded(value)
        && value.len() >= 16
        && digits >= 2
        && letters >= 4
        && entropy(value) >= 3.2)
        .then_some("generic-secret")
}

/// More than a handful of different characters.
fn varied(value: &[u8]) -> bool {
    let mut seen = [false; 256];
    for b in value {
        seen[*b as usize] = true;
    }
    seen.iter().filter(|s| **s).count() >= 5
}

static PLACEHOLDERS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    const WORDS: &[&str] = &[
        "example",
        "changeme",
        "change_me",
        "change-me",
        "your",
        "xxxx",
        "placeholder",
        "dummy",
        "sample",
        "redacted",
        "test",
        "todo",
        "<",
        "${",
        "$(",
        "{{",
        "%(",
        "env.",
        "secrets.",
        "...",
        "****",
        "process.env",
        "os.environ",
        "insert",
        "fake",
        "replace",
        "mypass",
        "1234567",
        "abcdef",
        "getenv",
        "password1",
        "my-",
        "my_",
        "foo",
        "localhost",
        "null",
        "none",
    ];
    AhoCorasick::builder().ascii_case_insensitive(true).build(WORDS).ok()
});

/// Stands for a secret in documentation.
fn placeholder(value: &[u8]) -> bool {
    matches!(value.first(), Some(b'$' | b'%' | b'@' | b'&' | b'*' | b'<' | b'{' | b'#'))
        || PLACEHOLDERS.as_ref().is_none_or(|words| {
            // A generator writes short words by accident: these count only as words of their own.
            let letter =
                |at: Option<usize>| at.and_then(|at| value.get(at)).is_some_and(u8::is_ascii_alphanumeric);
            words.find_overlapping_iter(value).any(|m| {
                let long = m.end() - m.start() >= 6;
                let word =
                    value.get(m.start()..m.end()).is_some_and(|w| w.iter().all(u8::is_ascii_alphabetic));
                long || !word || !letter(m.start().checked_sub(1)) && !letter(Some(m.end()))
            })
        })
}

/// Bits per character, by frequency.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    for b in value {
        counts[*b as usize] += 1;
    }
    let n = value.len() as f64;
    counts.iter().filter(|c| **c > 0).map(|c| f64::from(*c) / n).map(|p| -p * p.log2()).sum()
}
