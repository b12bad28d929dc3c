//! Credentials that are added outside: the run asks in plain HTTP, the door asks on its behalf over TLS.
//!
//! What is inside a tunnel can't be changed, so a tool is pointed to `http://HOST/…` and reaches `https://HOST/…` with
//! the credential. Methods and the path are held to the rule; the answer is scrubbed of the secret.

use super::credential::{Credential, CredentialError};
use super::event::{Denial, Reason};
use super::gateway::scrub::Scrubber;
use super::host::Host;
use super::rule::{HostRule, RuleError};
use super::source::{KeySource, SourceError};
use base64::Engine as _;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use std::str::FromStr;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Where the credential goes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// `Authorization: Bearer SECRET`
    Bearer,
    /// `Authorization: Basic …` of `USER:PASSWORD`.
    Basic,
    /// A header whose value is the secret.
    Header(HeaderName),
    /// A parameter of the query.
    Query(String),
}

/// `[METHOD,…] HOST[:PORT][/PATH] bearer|basic|header:NAME|query:NAME SOURCE`, as given to `--credential`.
///
/// A request in plain HTTP to HOST, on port 80 or PORT, goes out over TLS to port 443 or PORT.
#[derive(Debug, Clone)]
pub struct Injection {
    rule: HostRule,
    place: Place,
    source: KeySource,
}

/// The text is no such rule, or its secret can't be used.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// The shape is wrong.
    #[error(
        "write [METHOD,…] HOST[:PORT][/PATH], then bearer, basic, header:NAME or query:NAME, then where the secret comes from"
    )]
    Shape,
    /// The host part is wrong.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The source is wrong, or can't be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The secret does not fit.
    #[error(transparent)]
    Credential(#[from] CredentialError),
}

impl FromStr for Injection {
    type Err = InjectError;

    fn from_str(text: &str) -> Result<Injection, InjectError> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let parsed = |word: &&str| Place::parse(word);
        let at = words.iter().position(|w| parsed(w).is_some()).ok_or(InjectError::Shape)?;
        let (rule, rest) = words.split_at(at);
        let (rule, [place, source @ ..]) = (rule, rest) else { return Err(InjectError::Shape) };
        let rule = match rule {
            [host] => format!("http://{}", with_path(host)).parse()?,
            [methods, host] => format!("{methods} http://{}", with_path(host)).parse()?,
            _ => return Err(InjectError::Shape),
        };
        let place = Place::parse(place).ok_or(InjectError::Shape)?;
        Ok(Injection { rule, place, source: source.join(" ").parse()? })
    }
}

/// A rule with a path never opens a tunnel.
fn with_path(host: &str) -> String {
    if host.contains('/') { host.to_owned() } else { format!("{host}/") }
}

impl Place {
    fn parse(word: &str) -> Option<Place> {
        let name = |n: &str| {
            (!n.is_empty() && n.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)))
                .then(|| n.to_owned())
        };
        match word.split_once(':') {
            None if word == "bearer" => Some(Place::Bearer),
            None if word == "basic" => Some(Place::Basic),
            Some(("header", n)) => Some(Place::Header(name(n)?.parse().ok()?)),
            Some(("query", n)) => name(n).map(Place::Query),
            _ => None,
        }
    }
}

impl Injection {
    /// The requests that it is for, which it allows.
    pub fn rule(&self) -> &HostRule {
        &self.rule
    }

    /// Reads the secret.
    pub fn load(&self) -> Result<HostCredential, InjectError> {
        let secret = self.source.read()?;
        let shown = match self.place {
            Place::Bearer => Zeroizing::new(format!("Bearer {}", *secret)),
            Place::Basic => {
                let encoded = base64::engine::general_purpose::STANDARD.encode(secret.as_bytes());
                Zeroizing::new(format!("Basic {encoded}"))
            }
            Place::Header(_) | Place::Query(_) => secret.clone(),
        };
        let scrubber = Arc::new(Scrubber::new([secret.as_str(), shown.as_str()]));
        let credential = Credential::new(shown.as_str())?;
        Ok(HostCredential {
            rule: self.rule.clone(),
            place: self.place.clone(),
            credential,
            secret,
            scrubber,
        })
    }
}

/// A credential that is added to requests which a rule covers.
pub struct HostCredential {
    rule: HostRule,
    place: Place,
    /// As it stands in the header or the query.
    credential: Credential,
    /// As it was read.
    secret: Zeroizing<String>,
    scrubber: Arc<Scrubber>,
}

/// Shows what it is for, never the secret.
impl std::fmt::Debug for HostCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostCredential({})", self.rule)
    }
}

impl HostCredential {
    /// The secret as it was read.
    pub(super) fn secret(&self) -> &str {
        &self.secret
    }

    /// Whether this request gets it.
    pub(super) fn is_for(&self, host: &Host, port: u16, method: &str, path: &str) -> bool {
        self.rule.covers(host, port) && self.rule.allows_request(method, path)
    }

    /// Takes the secret out of answers.
    pub(super) fn scrubber(&self) -> Arc<Scrubber> {
        Arc::clone(&self.scrubber)
    }

    /// Adds it; the path that is to be asked for comes back.
    pub(super) fn add(&self, headers: &mut HeaderMap, path: &str) -> Result<Zeroizing<String>, Denial> {
        let secret = self.credential.expose();
        let name = match &self.place {
            Place::Bearer | Place::Basic => hyper::header::AUTHORIZATION,
            Place::Header(name) => name.clone(),
            Place::Query(name) => {
                let (bare, query) = path.split_once('?').unwrap_or((path, ""));
                let doubled = query.split('&').any(|pair| pair.split('=').next() == Some(name.as_str()));
                if doubled || query.contains('%') && query.to_ascii_lowercase().contains(name.as_str()) {
                    let message = format!("the query names {name} itself, which is added outside");
                    return Err(Denial::new(Reason::BadRequest, message));
                }
                let encoded: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
                let and = if query.is_empty() { "" } else { "&" };
                return Ok(Zeroizing::new(format!("{bare}?{query}{and}{name}={encoded}")));
            }
        };
        let fits = |_| Denial::failed(Reason::Broken, "the credential does not fit a header");
        let mut value = HeaderValue::from_str(secret).map_err(fits)?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(Zeroizing::new(path.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(text: &str) -> HostCredential {
        text.parse::<Injection>().unwrap().load().unwrap()
    }

    #[test]
    fn a_credential_goes_where_its_rule_says_and_nowhere_else() {
        let one = loaded("GET,HEAD api.test/repos bearer command:echo s3cret-token");
        let host = |h: &str| Host::parse(h).unwrap();
        assert!(one.is_for(&host("api.test"), 80, "GET", "/repos/a"));
        for (h, port, method, path) in [
            ("api.test", 80, "POST", "/repos/a"),
            ("api.test", 80, "GET", "/user"),
            ("api.test", 80, "GET", "/repos/../user"),
            ("api.test", 8080, "GET", "/repos/a"),
            ("x.api.test", 80, "GET", "/repos/a"),
        ] {
            assert!(!one.is_for(&host(h), port, method, path), "{h}:{port} {method} {path}");
        }
        assert!(!one.rule.opens_tunnels());
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("Bearer own"));
        assert_eq!(one.add(&mut headers, "/repos").unwrap().as_str(), "/repos");
        assert_eq!(headers.get_all("authorization").iter().collect::<Vec<_>>(), ["Bearer s3cret-token"]);
    }

    #[test]
    fn every_place_is_written_as_servers_read_it() {
        let mut headers = HeaderMap::new();
        loaded("a.test basic command:echo user:pass").add(&mut headers, "/").unwrap();
        assert_eq!(headers["authorization"], "Basic dXNlcjpwYXNz");
        loaded("a.test header:X-Token command:echo abc").add(&mut headers, "/").unwrap();
        assert_eq!(headers["x-token"], "abc");
        let query = loaded("a.test query:key command:echo 'a&b c'");
        assert_eq!(query.add(&mut headers, "/x?y=1").unwrap().as_str(), "/x?y=1&key=a%26b+c");
        assert!(query.add(&mut headers, "/x?key=mine").is_err());
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for bad in [
            "",
            "a.test",
            "a.test bearer",
            "a.test bearer sk-ant",
            "get a.test bearer env:X",
            "a.test header: env:X",
            "a b c bearer env:X",
        ] {
            assert!(bad.parse::<Injection>().is_err(), "{bad}");
        }
    }
}
