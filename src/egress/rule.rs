//! The allowlist: which destination a run may reach.

use super::host::{Host, HostError, split_port};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// One entry of the allowlist, as given to `--net`.
///
/// | text | allows |
/// |---|---|
/// | `example.org` | that name, ports 80 and 443 |
/// | `example.org:8443`, `example.org:8000-8099`, `example.org:*` | that name, those ports |
/// | `*.example.org` | every name below it, not `example.org` itself |
/// | `10.1.2.3:5000`, `[fd00::1]:443` | that address, although it is not a public one |
/// | `GET,HEAD http://example.org/pub/` | plain HTTP requests with those methods below that path |
///
/// A rule with methods or a path never opens a tunnel: what is inside a tunnel can't be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    pattern: Pattern,
    ports: Ports,
    methods: Vec<String>,
    path: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Exact(Host),
    Below(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ports {
    Web,
    Range(u16, u16),
}

/// Why a rule's text is not a rule.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RuleError {
    /// The host part is none.
    #[error("network rule `{rule}`: {source}; write HOST, HOST:PORT or *.HOST")]
    Host {
        /// The rule's text.
        rule: String,
        /// What is wrong with the host.
        source: HostError,
    },
    /// The port part is no port, range or `*`.
    #[error("network rule `{0}`: the port must be 1-65535, a range such as 8000-8099, or *")]
    Port(String),
    /// A `*` somewhere else than in front of at least two labels.
    #[error("network rule `{0}`: `*` stands only in front, before at least two labels (*.example.org)")]
    Wildcard(String),
    /// A method that is not one, or a path prefix that is not absolute.
    #[error("network rule `{0}`: expected METHOD[,METHOD] http://HOST[:PORT]/PATH")]
    Request(String),
}

impl FromStr for HostRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let (methods, place) = match text.split_once(' ') {
            Some((methods, place)) => (methods.split(',').map(str::to_owned).collect(), place.trim()),
            None => (Vec::new(), text),
        };
        if !methods.iter().all(|m: &String| !m.is_empty() && m.bytes().all(|b| b.is_ascii_uppercase())) {
            return Err(RuleError::Request(text.into()));
        }
        let bare = place.strip_prefix("http://");
        if bare.is_none() && place.contains("://") {
            return Err(RuleError::Request(text.into()));
        }
        let (authority, path) = match bare.unwrap_or(place).split_once('/') {
            Some((authority, path)) => (authority, Some(format!("/{path}"))),
            None => (bare.unwrap_or(place), None),
        };
        let bracketed = authority.starts_with('[');
        let (host, ports) = match authority.rsplit_once(':') {
            Some((host, ports)) if !bracketed || host.ends_with(']') => (host, Some(ports)),
            _ => (authority, None),
        };
        let ports = match ports {
            None if bare.is_some() => Ports::Range(80, 80),
            None => Ports::Web,
            Some(ports) => Ports::parse(ports).ok_or_else(|| RuleError::Port(text.into()))?,
        };
        Ok(HostRule { pattern: Pattern::parse(host, text)?, ports, methods, path })
    }
}

impl Ports {
    fn parse(text: &str) -> Option<Ports> {
        if text == "*" {
            return Some(Ports::Range(1, u16::MAX));
        }
        let one = |digits: &str| split_port(&format!("p:{digits}")).and_then(|(_, port)| port);
        match text.split_once('-') {
            None => one(text).map(|p| Ports::Range(p, p)),
            Some((low, high)) => {
                let (low, high) = (one(low)?, one(high)?);
                (low <= high).then_some(Ports::Range(low, high))
            }
        }
    }

    fn contain(self, port: u16) -> bool {
        match self {
            Ports::Web => port == 80 || port == 443,
            Ports::Range(low, high) => (low..=high).contains(&port),
        }
    }
}

impl Pattern {
    fn parse(host: &str, rule: &str) -> Result<Pattern, RuleError> {
        let parsed = |h: &str| Host::parse(h).map_err(|source| RuleError::Host { rule: rule.into(), source });
        let Some(base) = host.strip_prefix("*.") else {
            if host.contains('*') {
                return Err(RuleError::Wildcard(rule.into()));
            }
            return parsed(host).map(Pattern::Exact);
        };
        match parsed(base)? {
            Host::Name(name) if name.contains('.') => Ok(Pattern::Below(name)),
            _ => Err(RuleError::Wildcard(rule.into())),
        }
    }
}

impl HostRule {
    /// Whether the rule covers this destination at all, for some request.
    pub fn covers(&self, host: &Host, port: u16) -> bool {
        self.covers_host(host) && self.ports.contain(port)
    }

    /// Whether the rule covers this host on some port.
    pub fn covers_host(&self, host: &Host) -> bool {
        match (&self.pattern, host) {
            (Pattern::Exact(exact), host) => exact == host,
            (Pattern::Below(base), Host::Name(name)) => below(name, base).is_some(),
            (Pattern::Below(_), Host::Address(_)) => false,
        }
    }

    /// The ports that the rule names.
    pub fn port_ranges(&self) -> Vec<std::ops::RangeInclusive<u16>> {
        match self.ports {
            Ports::Web => vec![80..=80, 443..=443],
            Ports::Range(low, high) => vec![low..=high],
        }
    }

    /// Whether the rule lets a tunnel be opened, whose inside nobody sees.
    pub fn opens_tunnels(&self) -> bool {
        self.methods.is_empty() && self.path.is_none()
    }

    /// Whether a request with this method and path may be made to a destination that the rule [covers](Self::covers).
    ///
    /// A path that could be read as another one (dot segments, escaped slashes or dots, backslashes, doubled slashes)
    /// satisfies no rule that has a path.
    pub fn allows_request(&self, method: &str, path: &str) -> bool {
        let method_ok = self.methods.is_empty() || self.methods.iter().any(|m| m == method);
        let path_ok = match &self.path {
            None => true,
            Some(prefix) => unambiguous(path) && path_is_below(path, prefix),
        };
        method_ok && path_ok
    }

    /// The labels that the destination adds under a wildcard, if that is how the rule covers it.
    pub fn wildcard_part<'h>(&self, host: &'h Host) -> Option<&'h str> {
        match (&self.pattern, host) {
            (Pattern::Below(base), Host::Name(name)) => below(name, base),
            _ => None,
        }
    }

    /// Whether the operator named this very machine-local destination with its port, which then needs no public
    /// address: an address literal, or `localhost`.
    pub fn names_local_destination(&self) -> bool {
        let explicit_port = matches!(self.ports, Ports::Range(..));
        match &self.pattern {
            Pattern::Exact(Host::Address(_)) => explicit_port,
            Pattern::Exact(Host::Name(name)) => explicit_port && name == "localhost",
            Pattern::Below(_) => false,
        }
    }
}

fn below<'n>(name: &'n str, base: &str) -> Option<&'n str> {
    name.strip_suffix(base)?.strip_suffix('.').filter(|labels| !labels.is_empty())
}

fn unambiguous(path: &str) -> bool {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let lower = path.to_ascii_lowercase();
    let escaped = ["%2e", "%2f", "%5c", "%25", "%00"].iter().any(|e| lower.contains(e));
    !escaped
        && !path.contains('\\')
        && !path.contains("//")
        && !path.split('/').any(|s| s == "." || s == "..")
}

fn path_is_below(path: &str, prefix: &str) -> bool {
    match path.strip_prefix(prefix) {
        Some(rest) => prefix.ends_with('/') || rest.is_empty() || rest.starts_with(['/', '?']),
        None => false,
    }
}

/// The rule in the syntax that it is read from.
impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.methods.is_empty() {
            write!(f, "{} ", self.methods.join(","))?;
        }
        if !self.opens_tunnels() {
            f.write_str("http://")?;
        }
        match &self.pattern {
            Pattern::Exact(host) => write!(f, "{host}")?,
            Pattern::Below(base) => write!(f, "*.{base}")?,
        }
        match self.ports {
            Ports::Web => {}
            Ports::Range(1, u16::MAX) => f.write_str(":*")?,
            Ports::Range(low, high) if low == high => write!(f, ":{low}")?,
            Ports::Range(low, high) => write!(f, ":{low}-{high}")?,
        }
        f.write_str(self.path.as_deref().unwrap_or(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> HostRule {
        text.parse().unwrap_or_else(|e| panic!("{e}"))
    }

    fn covers(text: &str, host: &str, port: u16) -> bool {
        rule(text).covers(&Host::parse(host).expect(host), port)
    }

    #[test]
    fn a_bare_host_means_the_web_ports() {
        assert!(covers("example.org", "EXAMPLE.org.", 443) && covers("example.org", "example.org", 80));
        assert!(!covers("example.org", "example.org", 22));
        assert!(covers("example.org:22", "example.org", 22) && !covers("example.org:22", "example.org", 443));
        assert!(covers("example.org:8000-8010", "example.org", 8010));
        assert!(!covers("example.org:8000-8010", "example.org", 8011));
        assert!(covers("example.org:*", "example.org", 1));
    }

    #[test]
    fn a_wildcard_covers_names_below_it_only() {
        assert!(
            covers("*.example.org", "a.example.org", 443) && covers("*.example.org", "a.b.example.org", 443)
        );
        for outside in ["example.org", "badexample.org", "example.org.evil.test", "a.example.com"] {
            assert!(!covers("*.example.org", outside, 443), "{outside}");
        }
        assert_eq!(
            rule("*.example.org").wildcard_part(&Host::parse("a.b.example.org").unwrap()),
            Some("a.b")
        );
    }

    #[test]
    fn an_address_is_covered_only_by_its_own_listing() {
        assert!(covers("127.0.0.1:80", "0x7f.1", 80) && covers("[::1]:80", "[0:0::1]", 80));
        assert!(!covers("*.example.org", "1.2.3.4", 443) && !covers("127.0.0.1:80", "127.0.0.2", 80));
    }

    #[test]
    fn a_rule_with_methods_or_path_sees_only_what_it_can_judge() {
        let pub_only = rule("GET,HEAD http://deb.example.org/pub/");
        assert!(!pub_only.opens_tunnels());
        assert!(pub_only.allows_request("GET", "/pub/a.deb?x=1"));
        for (method, path) in [
            ("POST", "/pub/a"),
            ("GET", "/private"),
            ("GET", "/pub/../private"),
            ("GET", "/pub/%2e%2e/x"),
            ("GET", "/pub/..%2fx"),
            ("GET", "/pub\\..\\x"),
            ("GET", "/pub//x"),
            ("GET", "/pub/%252e"),
        ] {
            assert!(!pub_only.allows_request(method, path), "{method} {path}");
        }
        let exact = rule("http://h.example.org/a");
        assert!(exact.allows_request("PUT", "/a/b") && exact.allows_request("GET", "/a?q"));
        assert!(!exact.allows_request("GET", "/ab"));
    }

    #[test]
    fn text_that_is_no_rule_says_what_to_write() {
        for bad in [
            "",
            "*",
            "*.org",
            "a.*.org",
            "a:0",
            "a:9-1",
            "a:x",
            "*.1.2.3.4",
            "https://a/",
            "get http://a/",
            "a b c",
            "user@a",
        ] {
            let error = bad.parse::<HostRule>().expect_err(bad).to_string();
            assert!(error.starts_with("network rule `"), "{error}");
        }
    }

    #[test]
    fn a_rule_prints_as_it_is_read() {
        for text in [
            "example.org",
            "*.example.org:8443",
            "a.b:1-2",
            "a.b:*",
            "[::1]:80",
            "GET,HEAD http://a.b:80/pub/",
        ] {
            assert_eq!(rule(text).to_string(), text);
        }
    }
}
