//! Where the model's API is, the connections to it, and the headers that go there.

use super::api::Api;
use super::scrub::Scrubber;
use crate::egress::Shared;
use crate::egress::credential::{Credential, Scheme};
use crate::egress::event::{Denial, Reason};
use crate::egress::host::Host;
use crate::egress::io::Stream;
use crate::egress::upstream_proxy;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpStream;
use tokio::time::timeout;
use zeroize::Zeroizing;

/// The beta that the API wants named when an OAuth token is used.
const OAUTH_BETA: &str = "oauth-2025-04-20";
/// Most idle connections that are kept for the next request.
const MAX_IDLE: usize = 8;

/// Where the model's API is, and the key to it.
pub struct ModelUpstream {
    tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) path: String,
    pub(super) api: Api,
    pub(super) names: HashMap<String, String>,
    pub(super) credential: Credential,
    placeholder: String,
}

/// The model's API can't be used as configured.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UpstreamError {
    /// The base URL is not one.
    #[error("the model's base URL must be https://HOST[:PORT][/PATH], without user, query or fragment")]
    Url,
    /// A key would travel in the clear.
    #[error("the model's base URL is plain http to another machine; use https (http is for loopback only)")]
    PlainHttp,
    /// The placeholder is too weak to keep others off, or is the key itself.
    #[error("the placeholder token must be at least 16 visible characters and must not be the credential")]
    Placeholder,
}

impl ModelUpstream {
    /// `base_url` is what would be put into ANTHROPIC_BASE_URL outside; `placeholder` is the token that the run holds
    /// in place of `credential`.
    pub fn new(
        base_url: &str,
        credential: Credential,
        placeholder: &str,
    ) -> Result<ModelUpstream, UpstreamError> {
        let uri: Uri = base_url.parse().map_err(|_| UpstreamError::Url)?;
        let authority = uri.authority().ok_or(UpstreamError::Url)?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(UpstreamError::Url),
        };
        if authority.as_str().contains('@') || uri.query().is_some() || base_url.contains('#') {
            return Err(UpstreamError::Url);
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|a| a.is_loopback());
        if !tls && !loopback {
            return Err(UpstreamError::PlainHttp);
        }
        let strong = placeholder.len() >= 16 && placeholder.bytes().all(|b| b.is_ascii_graphic());
        if !strong || placeholder == credential.expose() {
            return Err(UpstreamError::Placeholder);
        }
        Ok(ModelUpstream {
            tls,
            port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            host,
            path: uri.path().trim_end_matches('/').to_owned(),
            api: Api::Anthropic,
            names: HashMap::new(),
            credential,
            placeholder: placeholder.to_owned(),
        })
    }

    /// The same with another shape of API.
    #[must_use]
    pub fn speaking(self, api: Api) -> ModelUpstream {
        ModelUpstream { api, ..self }
    }

    /// The same with other names for models: what the run asks for, and what the API calls it. Policy and prices go
    /// by the run's name.
    #[must_use]
    pub fn with_names(self, names: HashMap<String, String>) -> ModelUpstream {
        ModelUpstream { names, ..self }
    }

    /// The run's token must be there, in either header.
    pub(super) fn authenticate(&self, headers: &HeaderMap) -> Result<(), Denial> {
        let bearer = headers.get(header::AUTHORIZATION).and_then(|v| v.as_bytes().strip_prefix(b"Bearer "));
        let key = headers.get("x-api-key").map(HeaderValue::as_bytes);
        if key.into_iter().chain(bearer).any(|token| same(token, self.placeholder.as_bytes())) {
            return Ok(());
        }
        Err(Denial::new(Reason::BadToken, "the token is not the one that this run was given"))
    }

    /// What the API needs to see of the run's headers, and the real key.
    pub(super) fn headers(&self, given: &HeaderMap) -> Result<HeaderMap, Denial> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let n = name.as_str();
            // By name: others choose a workspace, an organisation or a profile of the operator's.
            let wanted = [
                "content-type",
                "accept",
                "user-agent",
                "x-app",
                "anthropic-version",
                "anthropic-beta",
                "anthropic-dangerous-direct-browser-access",
                "openai-beta",
            ]
            .contains(&n)
                || ["x-stainless-", "x-claude-code-"].iter().any(|prefix| n.starts_with(prefix));
            if wanted {
                headers.append(name.clone(), value.clone());
            }
        }
        let bad = || Denial::failed(Reason::Broken, "the credential does not fit a header");
        let authority = match self.port {
            443 if self.tls => self.host.clone(),
            port if self.host.contains(':') => format!("[{}]:{port}", self.host),
            port => format!("{}:{port}", self.host),
        };
        headers.insert(header::HOST, HeaderValue::try_from(authority).map_err(|_| bad())?);
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let secret = self.credential.expose();
        let (name, text) = match self.credential.scheme() {
            _ if self.api != Api::Anthropic => {
                (header::AUTHORIZATION, Zeroizing::new(format!("Bearer {secret}")))
            }
            Scheme::ApiKey => (HeaderName::from_static("x-api-key"), Zeroizing::new(secret.to_owned())),
            Scheme::Bearer => {
                let known = headers.get_all("anthropic-beta").iter();
                if !known.filter_map(|v| v.to_str().ok()).any(|v| v.contains(OAUTH_BETA)) {
                    headers.append("anthropic-beta", HeaderValue::from_static(OAUTH_BETA));
                }
                (header::AUTHORIZATION, Zeroizing::new(format!("Bearer {secret}")))
            }
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(headers)
    }

    /// A connection to the API. Its address is the operator's choice and is not screened.
    async fn connect(&self, shared: &Shared) -> Result<Box<dyn Stream>, Denial> {
        let failed = |what: &str| Denial::failed(Reason::ConnectFailed, format!("the model's API {what}"));
        let host = Host::parse(&self.host).map_err(|_| failed("has no valid host name"))?;
        let tcp = match shared.config.upstream_proxy.as_ref().filter(|p| p.serves(&host, self.port)) {
            Some(proxy) => upstream_proxy::connect(shared, proxy, &host, self.port).await?,
            None => {
                let addresses = match &host {
                    Host::Address(address) => vec![*address],
                    Host::Name(name) => shared.resolver.lookup(name).await?,
                };
                let at: Vec<_> = addresses.into_iter().map(|a| SocketAddr::new(a, self.port)).collect();
                TcpStream::connect(at.as_slice()).await.map_err(|_| failed("is not reachable"))?
            }
        };
        let _ = tcp.set_nodelay(true);
        if !self.tls {
            return Ok(Box::new(tcp));
        }
        let name = ServerName::try_from(self.host.clone()).map_err(|_| failed("has no valid host name"))?;
        let tls = tokio_rustls::TlsConnector::from(Arc::clone(&shared.tls)).connect(name, tcp).await;
        let tls =
            tls.map_err(|e| Denial::failed(Reason::TlsFailed, format!("the model's API: TLS failed: {e}")))?;
        Ok(Box::new(tls))
    }
}

impl fmt::Debug for ModelUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelUpstream({}:{}{})", self.host, self.port, self.path)
    }
}

/// A request that has no answer.
pub(super) struct NoAnswer {
    pub denial: Denial,
    /// It may have reached the API, and may be charged for.
    pub sent: bool,
}

/// A connection to the API that can carry a request.
pub(super) type Sender = SendRequest<Full<Bytes>>;

/// Connections that carried an answer to its end and can carry another.
#[derive(Default)]
pub(super) struct Pool(Mutex<Vec<Sender>>);

impl Pool {
    pub(super) fn give_back(&self, sender: Sender) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|s| !s.is_closed());
        if idle.len() < MAX_IDLE {
            idle.push(sender);
        }
    }

    fn take(&self) -> Option<Sender> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| idle.pop()).find(|s| s.is_ready())
    }

    /// Sends `request`, over a connection that is there or a new one.
    pub(super) async fn send(
        &self,
        shared: &Shared,
        upstream: &ModelUpstream,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Sender), NoAnswer> {
        let limits = &shared.config.limits;
        let failed = |what: &str| Denial::failed(Reason::ConnectFailed, format!("the model's API {what}"));
        let unsent = |denial| NoAnswer { denial, sent: false };
        let lost = |what: &str| NoAnswer { denial: failed(what), sent: true };
        let mut known = self.take();
        loop {
            let fresh = known.is_none();
            let mut sender = match known.take() {
                Some(sender) => sender,
                None => {
                    let stream = timeout(limits.connect, upstream.connect(shared)).await;
                    let stream = stream.map_err(|_| unsent(failed("did not answer in time")))?;
                    let stream = stream.map_err(unsent)?;
                    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
                    let (sender, connection) =
                        handshake.map_err(|_| unsent(failed("broke the connection")))?;
                    tokio::spawn(connection);
                    sender
                }
            };
            match timeout(limits.idle, sender.try_send_request(request)).await {
                Err(_) => return Err(lost("did not answer in time")),
                Ok(Ok(response)) => return Ok((response, sender)),
                // A kept connection may have been closed meanwhile; what was not sent is sent again, once.
                Ok(Err(mut error)) => match error.take_message() {
                    Some(again) if !fresh => request = again,
                    Some(_) => return Err(unsent(failed("broke the connection"))),
                    None => return Err(lost("broke the connection")),
                },
            }
        }
    }
}

/// What the run gets to see of the API's headers.
pub(super) fn response_headers(given: &HeaderMap, scrubber: &Scrubber) -> HeaderMap {
    const WANTED: [&str; 6] =
        ["content-type", "request-id", "retry-after", "retry-after-ms", "x-should-retry", "cache-control"];
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let wanted = WANTED.contains(&name.as_str()) || name.as_str().starts_with("anthropic-ratelimit-");
        if wanted && !scrubber.finds(value.as_bytes()) {
            headers.append(name.clone(), value.clone());
        }
    }
    headers
}

/// Equality whose time depends on the lengths only.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(url: &str) -> Result<ModelUpstream, UpstreamError> {
        ModelUpstream::new(url, Credential::new("sk-ant-real-key-000").unwrap(), "jess-placeholder-token")
    }

    #[test]
    fn a_key_never_travels_in_the_clear() {
        assert_eq!(upstream("http://api.example.org").unwrap_err(), UpstreamError::PlainHttp);
        assert!(upstream("http://127.0.0.1:8080").is_ok() && upstream("http://[::1]:80/x").is_ok());
        for bad in ["ftp://a", "api.example.org", "https://user@a", "https://a?x=1", "https://a#b", ""] {
            assert_eq!(upstream(bad).unwrap_err(), UpstreamError::Url, "{bad}");
        }
    }

    #[test]
    fn a_weak_placeholder_is_refused() {
        let key = || Credential::new("sk-ant-real-key-000").unwrap();
        for weak in ["", "short", "has a space in the middle", "sk-ant-real-key-000"] {
            let made = ModelUpstream::new("https://a.example", key(), weak);
            assert_eq!(made.unwrap_err(), UpstreamError::Placeholder, "{weak}");
        }
    }

    #[test]
    fn only_known_headers_go_out_and_the_key_replaces_the_token() {
        let mut given = HeaderMap::new();
        for (name, value) in [
            ("x-api-key", "jess-placeholder-token"),
            ("authorization", "Bearer jess-placeholder-token"),
            ("cookie", "a=b"),
            ("x-forwarded-for", "1.2.3.4"),
            ("anthropic-version", "2023-06-01"),
            ("anthropic-workspace-id", "wrkspc_other"),
            ("anthropic-user-profile-id", "u"),
            ("host", "127.0.0.1:1"),
        ] {
            given.insert(name, HeaderValue::from_static(value));
        }
        let sent = upstream("https://api.example.org").unwrap().headers(&given).unwrap();
        let mut names: Vec<&str> = sent.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept-encoding", "anthropic-version", "host", "x-api-key"]);
        assert_eq!(sent.get("x-api-key").unwrap(), "sk-ant-real-key-000");
        assert_eq!(sent.get("host").unwrap(), "api.example.org");
    }

    #[test]
    fn an_oauth_token_goes_out_as_bearer_with_its_beta() {
        let key = Credential::new("sk-ant-oat01-real").unwrap();
        let upstream = ModelUpstream::new("https://a.example", key, "jess-placeholder-token").unwrap();
        let sent = upstream.headers(&HeaderMap::new()).unwrap();
        assert_eq!(sent.get("authorization").unwrap(), "Bearer sk-ant-oat01-real");
        assert_eq!(sent.get("anthropic-beta").unwrap(), OAUTH_BETA);
    }
}
