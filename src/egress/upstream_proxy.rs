//! The operator's own proxy, where the machine has no direct way out.

use super::Shared;
use super::credential::Credential;
use super::event::{Denial, Reason};
use super::host::{Host, split_port};
use super::rule::HostRule;
use base64::Engine as _;
use std::fmt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use zeroize::Zeroizing;

/// Longest answer head that is read from the proxy, in bytes.
const MAX_ANSWER: usize = 8 * 1024;

/// An HTTP proxy that takes CONNECT, between jess and the outside.
///
/// Names are resolved and screened by jess first, then given to the proxy by name, so that its own rules apply. What
/// the proxy resolves the name to is the proxy's word.
pub struct UpstreamProxy {
    host: String,
    port: u16,
    login: Option<Credential>,
    direct: Vec<HostRule>,
    direct_all: bool,
}

/// The text is no proxy.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the proxy must be http://[USER:PASSWORD@]HOST[:PORT]")]
pub struct ProxyError;

impl UpstreamProxy {
    /// From the values of HTTPS_PROXY and NO_PROXY. `no_proxy` is a comma-separated list of names (which cover the
    /// names below them), addresses, either with a port, or `*`; entries of another shape are ignored.
    pub fn new(url: &str, no_proxy: &str) -> Result<UpstreamProxy, ProxyError> {
        let rest = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
        if rest.contains("://") || rest.is_empty() {
            return Err(ProxyError);
        }
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(percent_decode(login)), place),
            None => (None, rest),
        };
        let login = login.map(|login| {
            let encoded = base64::engine::general_purpose::STANDARD.encode(login.as_bytes());
            Credential::new(format!("Basic {encoded}"))
        });
        let (host, port) = split_port(place).ok_or(ProxyError)?;
        Host::parse(host).map_err(|_| ProxyError)?;
        let mut direct = Vec::new();
        for entry in no_proxy.split(',').map(str::trim).filter(|e| !e.is_empty() && *e != "*") {
            let name = entry.trim_start_matches("*.").trim_start_matches('.');
            let any_port = if split_port(name).is_some_and(|(_, port)| port.is_some()) { "" } else { ":*" };
            direct.extend(format!("{name}{any_port}").parse::<HostRule>().ok());
            direct.extend(format!("*.{name}{any_port}").parse::<HostRule>().ok());
        }
        Ok(UpstreamProxy {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: port.unwrap_or(8080),
            login: login.transpose().map_err(|_| ProxyError)?,
            direct,
            direct_all: no_proxy.split(',').any(|e| e.trim() == "*"),
        })
    }

    /// Whether `host` is reached through the proxy rather than directly.
    pub fn serves(&self, host: &Host, port: u16) -> bool {
        !self.direct_all && !self.direct.iter().any(|rule| rule.covers(host, port))
    }
}

/// Shows where, never the login.
impl fmt::Debug for UpstreamProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpstreamProxy({}:{})", self.host, self.port)
    }
}

fn percent_decode(text: &str) -> Zeroizing<String> {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&b) = bytes.get(at) {
        let escape = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (b, escape) {
            (b'%', Some(value)) => {
                out.push(value);
                at += 3;
            }
            _ => {
                out.push(b);
                at += 1;
            }
        }
    }
    Zeroizing::new(String::from_utf8_lossy(&out).into_owned())
}

/// A tunnel to `host` through `proxy`.
pub(super) async fn connect(
    shared: &Shared,
    proxy: &UpstreamProxy,
    host: &Host,
    port: u16,
) -> Result<TcpStream, Denial> {
    let failed = |what: &str| {
        Denial::failed(Reason::ConnectFailed, format!("{host}:{port}: the proxy outside {what}"))
    };
    let handshake = async {
        let stream = TcpStream::connect((proxy.host.as_str(), proxy.port)).await;
        let mut stream = stream.map_err(|_| failed("is not reachable"))?;
        let mut ask = Zeroizing::new(format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n"));
        if let Some(login) = &proxy.login {
            ask.push_str("Proxy-Authorization: ");
            ask.push_str(login.expose());
            ask.push_str("\r\n");
        }
        ask.push_str("\r\n");
        stream.write_all(ask.as_bytes()).await.map_err(|_| failed("hung up"))?;
        let mut answer = Vec::new();
        // Byte by byte: what follows the empty line belongs to the tunnel.
        while !answer.ends_with(b"\r\n\r\n") {
            let byte = stream.read_u8().await.map_err(|_| failed("hung up"))?;
            answer.push(byte);
            if answer.len() > MAX_ANSWER {
                return Err(failed("answered too much"));
            }
        }
        match answer.get(9..12) {
            Some(b"200") if answer.starts_with(b"HTTP/1.") => Ok(stream),
            Some(b"407") => Err(failed("wants a login; put it into the proxy's URL")),
            _ => Err(failed("refused")),
        }
    };
    timeout(shared.config.limits.connect, handshake)
        .await
        .unwrap_or_else(|_| Err(failed("did not answer in time")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serves(no_proxy: &str, host: &str, port: u16) -> bool {
        UpstreamProxy::new("http://proxy.test:3128", no_proxy)
            .unwrap()
            .serves(&Host::parse(host).unwrap(), port)
    }

    #[test]
    fn no_proxy_covers_names_below_and_ports() {
        assert!(serves("", "a.test", 443) && !serves("*", "a.test", 443));
        for entry in ["internal.test", ".internal.test", "*.internal.test"] {
            assert!(
                !serves(entry, "a.internal.test", 443) && serves(entry, "notinternal.test", 443),
                "{entry}"
            );
        }
        assert!(!serves("x, 10.0.0.1", "10.0.0.1", 80) && !serves("a.test:80", "a.test", 80));
        assert!(serves("a.test:80", "a.test", 443));
    }

    #[test]
    fn the_login_never_shows() {
        let proxy = UpstreamProxy::new("http://user:p%40ss@proxy.test:3128/", "").unwrap();
        assert_eq!(format!("{proxy:?}"), "UpstreamProxy(proxy.test:3128)");
        assert_eq!(proxy.login.unwrap().expose(), "Basic dXNlcjpwQHNz");
    }

    #[test]
    fn other_schemes_are_no_proxy() {
        for bad in ["socks5://a:1", "https://a:1", "", "http://", "http://a:b:c"] {
            assert_eq!(UpstreamProxy::new(bad, "").err(), Some(ProxyError), "{bad}");
        }
    }
}
