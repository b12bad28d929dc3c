//! A token that goes to the service that issued it: a question instead of a denial.
//!
//! Only the plain case counts: one or more `https` addresses of the issuer's own interface, the token alone in the header
//! that is made for it, nothing else of this machine in the request, and no option that could lead it elsewhere.

use super::eval::Machine;
use super::options::Options;
use super::value::{HOLE, Taint, Val};
use url::{Host, Url};

/// Variables with tokens, and the host of who issued them. Hosts where one customer reads what another sends are not here.
const ISSUERS: &[(&[&str], &str)] = &[
    (&["GITHUB_TOKEN", "GH_TOKEN"], "api.github.com"),
    (&["GITLAB_TOKEN", "GITLAB_PRIVATE_TOKEN"], "gitlab.com"),
    (&["OPENAI_API_KEY"], "api.openai.com"),
    (&["ANTHROPIC_API_KEY"], "api.anthropic.com"),
    (&["NPM_TOKEN"], "registry.npmjs.org"),
    (&["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"], "huggingface.co"),
    (&["CLOUDFLARE_API_TOKEN"], "api.cloudflare.com"),
    (&["DIGITALOCEAN_ACCESS_TOKEN"], "api.digitalocean.com"),
    (&["SENTRY_AUTH_TOKEN"], "sentry.io"),
    (&["LINEAR_API_KEY"], "api.linear.app"),
];

/// Options of curl that lead a request nowhere else and show no header of it. `-L` is none: not every header stays behind.
const OPTIONS: &[&str] = &[
    "-s",
    "--silent",
    "-S",
    "--show-error",
    "-f",
    "--fail",
    "-i",
    "--include",
    "-I",
    "--head",
    "-G",
    "--get",
    "-H",
    "--header",
    "-X",
    "--request",
    "-o",
    "--output",
    "-O",
    "--remote-name",
    "-d",
    "--data",
    "--data-raw",
    "--json",
    "-m",
    "--max-time",
    "--connect-timeout",
    "--retry",
    "--compressed",
    "--oauth2-bearer",
    "--url",
];

impl Machine<'_> {
    /// What a request of curl carries, without the token that goes to its issuer; that is asked about.
    pub(super) fn without_own_token(&mut self, o: &Options, urls: &[Val], sent: Taint, auth: Taint) -> Taint {
        let whole = sent.with(auth);
        if auth.any(Taint::SECRET.with(Taint::FILE)) || !auth.any(Taint::ENV) || sent.any(Taint::LOCAL) {
            return whole;
        }
        if !o.given.iter().all(|(name, _)| OPTIONS.contains(&name.as_str())) {
            return whole;
        }
        let Some(host) = issuer(&self.credentials) else { return whole };
        if urls.is_empty() || !urls.iter().all(|u| leads_to(&u.text, host)) {
            return whole;
        }
        self.ask(
            "secret.use",
            format!(
                "curl would send {} to {host}, which issued it. A person has to agree.",
                self.credentials.join(", ")
            ),
        );
        whole.without(Taint::ENV)
    }
}

/// Whether a header is one for a token, with nothing else in it.
pub(super) fn is_auth(header: &str) -> bool {
    let Some((name, value)) = header.split_once(':') else { return false };
    let value = value.trim_start();
    let token = match name.to_ascii_lowercase().as_str() {
        "authorization" => {
            value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("token ")).unwrap_or(value)
        }
        "private-token" | "x-api-key" => value,
        _ => return false,
    };
    token.chars().eq([HOLE])
}

/// The one host that issued all of these variables.
fn issuer(names: &[String]) -> Option<&'static str> {
    let of =
        |name: &String| ISSUERS.iter().find(|(all, _)| all.contains(&name.as_str())).map(|(_, host)| *host);
    let host = of(names.first()?)?;
    names.iter().all(|n| of(n) == Some(host)).then_some(host)
}

/// Whether an address is the host's, however a program reads it. Braces and brackets stand for several addresses.
fn leads_to(text: &str, host: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_graphic() && !b"\\@{}[]".contains(&b))
        && Url::parse(text).is_ok_and(|url| {
            url.scheme() == "https" && url.port().is_none() && url.host() == Some(Host::Domain(host))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_issuers_own_address_is_one() {
        assert!(leads_to("https://api.github.com/user?x=1", "api.github.com"));
        assert!(leads_to("https://API.github.com", "api.github.com"));
        for url in [
            "http://api.github.com/user",
            "api.github.com/user",
            "https://api.github.com.attacker.example/",
            "https://api.github.com@x.attacker.example/",
            "https://api.github.com\\@x.attacker.example/",
            "https://{api.github.com,x.attacker.example}/",
            "https://api.github.com:8443/",
            "https://x.attacker.example/api.github.com",
            "https://api.github.com/\0",
        ] {
            assert!(!leads_to(url, "api.github.com"), "{url:?}");
        }
    }

    #[test]
    fn a_header_for_a_token_holds_it_alone() {
        for header in
            ["Authorization: Bearer \0", "authorization:token \0", "PRIVATE-TOKEN: \0", "x-api-key:\0"]
        {
            assert!(is_auth(header), "{header:?}");
        }
        for header in [
            "X: \0",
            "Authorization: Bearer \0\0",
            "Authorization: Bearer a\0",
            "Authorization: Basic \0",
            "\0",
        ] {
            assert!(!is_auth(header), "{header:?}");
        }
    }

    #[test]
    fn tokens_of_two_issuers_have_none() {
        let of = |names: &[&str]| issuer(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["GH_TOKEN", "GITHUB_TOKEN"]), Some("api.github.com"));
        assert_eq!(of(&["GITHUB_TOKEN", "NPM_TOKEN"]), None);
        assert_eq!(of(&["DB_PASSWORD"]), None);
        assert_eq!(of(&[]), None);
    }
}
