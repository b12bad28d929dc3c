//! The model gateway: the run's way to the model's API, with the key added outside.
//!
//! Served are `POST /v1/messages`, `POST /v1/messages/count_tokens`, `GET /v1/models` and `GET /v1/models/ID`; `HEAD /`
//! is answered here. Everything else of the API, batches and files above all, is refused: what is not needed to hold a
//! conversation is a way to act on the operator's account. Request and response headers pass an allowlist.

mod scrub;

use super::Shared;
use super::credential::{Credential, Scheme};
use super::event::{Denial, Door, Reason, Report};
use super::head::Head;
use super::http::{Answer, channel, full};
use super::io::Stream;
use super::server::Attempt;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use scrub::Scrubber;
use serde::Serialize;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The beta that the API wants named when an OAuth token is used.
const OAUTH_BETA: &str = "oauth-2025-04-20";

/// Where the model's API is, and the key to it.
pub struct ModelUpstream {
    tls: bool,
    host: String,
    port: u16,
    path: String,
    credential: Credential,
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
            credential,
            placeholder: placeholder.to_owned(),
        })
    }
}

impl fmt::Debug for ModelUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelUpstream({}:{}{})", self.host, self.port, self.path)
    }
}

/// What the model cost so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Answers to requests for a message.
    pub responses: u64,
}

/// The gateway of one run.
pub(super) struct Gateway {
    upstream: ModelUpstream,
    scrubber: Scrubber,
}

impl Gateway {
    pub(super) fn new(upstream: ModelUpstream) -> Gateway {
        let scrubber = Scrubber::new([upstream.credential.expose()]);
        Gateway { upstream, scrubber }
    }

    pub(super) fn add_to(&self, _report: &mut Report) {}
}

/// The parts of the API that are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Messages,
    CountTokens,
    Models,
    /// Clients probe the base URL; that needs no upstream.
    Probe,
}

impl Call {
    fn of(method: &Method, path: &str) -> Option<Call> {
        match (method.as_str(), path) {
            ("POST", "/v1/messages") => Some(Call::Messages),
            ("POST", "/v1/messages/count_tokens") => Some(Call::CountTokens),
            ("GET", "/v1/models") => Some(Call::Models),
            ("HEAD" | "GET", "/") => Some(Call::Probe),
            ("GET", other) => {
                let id = other.strip_prefix("/v1/models/")?;
                let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.@:".contains(&b);
                (!id.is_empty() && !id.contains("..") && id.bytes().all(plain)).then_some(Call::Models)
            }
            _ => None,
        }
    }
}

/// Serves a request that is addressed to the listener itself.
pub(super) async fn answer(shared: Arc<Shared>, request: Request<Incoming>, head: &Head) -> Response<Answer> {
    let mut attempt = Attempt::new(&shared, Door::Model, "model", 0);
    let Some(gateway) = &shared.gateway else {
        let message = "this is the door of a sandbox; no model is configured for this run";
        return refuse(attempt, &Denial::new(Reason::NoModel, message));
    };
    attempt.event(|e| (e.host, e.port) = (gateway.upstream.host.clone(), gateway.upstream.port));
    match gateway.exchange(&shared, request, head).await {
        Err(denial) => refuse(attempt, &denial),
        Ok(None) => {
            attempt.ended(Reason::Done);
            Response::new(full(""))
        }
        Ok(Some(response)) => pump(attempt, response),
    }
}

impl Gateway {
    async fn exchange(
        &self,
        shared: &Shared,
        request: Request<Incoming>,
        head: &Head,
    ) -> Result<Option<Response<Incoming>>, Denial> {
        let (path, query) = head.path.split_once('?').unwrap_or((&head.path, ""));
        let call = Call::of(request.method(), path).ok_or_else(|| {
            Denial::new(Reason::PathNotServed, "this part of the model's API is not served to a run")
        })?;
        if call == Call::Probe {
            return Ok(None);
        }
        if !query.bytes().all(|b| b.is_ascii_alphanumeric() || b"=&_-.".contains(&b)) || query.len() > 256 {
            return Err(Denial::new(Reason::BadRequest, "the query has characters that the API never needs"));
        }
        self.authenticate(request.headers())?;
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, shared.config.limits.model_request_bytes);
        let read = timeout(shared.config.limits.idle, body.collect()).await;
        let body = match read {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(_)) => {
                return Err(Denial::new(Reason::BadRequest, "the request is too large or cut short"));
            }
            Err(_) => return Err(Denial::new(Reason::Idle, "the request took too long to arrive")),
        };
        let mut upstream = Request::new(Full::new(body));
        *upstream.method_mut() = parts.method;
        let question = if query.is_empty() { "" } else { "?" };
        *upstream.uri_mut() = format!("{}{path}{question}{query}", self.upstream.path)
            .parse()
            .map_err(|_| Denial::new(Reason::BadRequest, "the path is not a path"))?;
        *upstream.headers_mut() = self.headers(&parts.headers)?;
        let response = self.send(shared, upstream).await?;
        if response.status().is_redirection() {
            return Err(Denial::failed(
                Reason::RedirectRefused,
                "the model's API redirects; that is not followed",
            ));
        }
        if response.headers().contains_key(header::CONTENT_ENCODING) {
            return Err(Denial::failed(
                Reason::Broken,
                "the model's API answers in a coding that was not asked for",
            ));
        }
        Ok(Some(response))
    }

    fn authenticate(&self, headers: &HeaderMap) -> Result<(), Denial> {
        let bearer = headers.get(header::AUTHORIZATION).and_then(|v| v.as_bytes().strip_prefix(b"Bearer "));
        let key = headers.get("x-api-key").map(HeaderValue::as_bytes);
        let ours = |token: &[u8]| same(token, self.upstream.placeholder.as_bytes());
        if key.into_iter().chain(bearer).any(ours) {
            return Ok(());
        }
        Err(Denial::new(Reason::BadToken, "the token is not the one that this run was given"))
    }

    /// What the API needs to see of the run's headers, and the real key.
    fn headers(&self, given: &HeaderMap) -> Result<HeaderMap, Denial> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let n = name.as_str();
            let wanted = ["content-type", "accept", "user-agent", "x-app"].contains(&n)
                || n.starts_with("anthropic-")
                || n.starts_with("x-stainless-")
                || n.starts_with("x-claude-");
            if wanted {
                headers.append(name.clone(), value.clone());
            }
        }
        let bad = || Denial::failed(Reason::Broken, "the credential does not fit a header");
        let authority = match self.upstream.port {
            443 if self.upstream.tls => self.upstream.host.clone(),
            port if self.upstream.host.contains(':') => format!("[{}]:{port}", self.upstream.host),
            port => format!("{}:{port}", self.upstream.host),
        };
        headers.insert(header::HOST, HeaderValue::try_from(authority).map_err(|_| bad())?);
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let secret = self.upstream.credential.expose();
        let (name, text) = match self.upstream.credential.scheme() {
            Scheme::ApiKey => {
                (header::HeaderName::from_static("x-api-key"), zeroize::Zeroizing::new(secret.to_owned()))
            }
            Scheme::Bearer => {
                let known = headers.get_all("anthropic-beta").iter();
                if !known.filter_map(|v| v.to_str().ok()).any(|v| v.contains(OAUTH_BETA)) {
                    headers.append("anthropic-beta", HeaderValue::from_static(OAUTH_BETA));
                }
                (header::AUTHORIZATION, zeroize::Zeroizing::new(format!("Bearer {secret}")))
            }
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(headers)
    }

    async fn send(
        &self,
        shared: &Shared,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Denial> {
        let limits = &shared.config.limits;
        let failed = |what: &str| Denial::failed(Reason::ConnectFailed, format!("the model's API {what}"));
        let stream = timeout(limits.connect, self.connect(shared)).await;
        let stream = stream.map_err(|_| failed("did not answer in time"))??;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|_| failed("broke the connection"))?;
        tokio::spawn(connection);
        let response = timeout(limits.idle, sender.send_request(request)).await;
        response.map_err(|_| failed("did not answer in time"))?.map_err(|_| failed("broke the connection"))
    }

    /// A connection to the API. Its address is the operator's choice and is not screened.
    async fn connect(&self, shared: &Shared) -> Result<Box<dyn Stream>, Denial> {
        let (host, port) = (self.upstream.host.as_str(), self.upstream.port);
        let failed = |what: &str| Denial::failed(Reason::ConnectFailed, format!("the model's API {what}"));
        let parsed = super::host::Host::parse(host).map_err(|_| failed("has no valid host name"))?;
        let tcp = match shared.config.upstream_proxy.as_ref().filter(|p| p.serves(&parsed, port)) {
            Some(proxy) => super::upstream_proxy::connect(shared, proxy, &parsed, port).await?,
            None => {
                let addresses = match &parsed {
                    super::host::Host::Address(address) => vec![*address],
                    super::host::Host::Name(name) => shared.resolver.lookup(name).await?,
                };
                let at: Vec<_> = addresses.into_iter().map(|a| std::net::SocketAddr::new(a, port)).collect();
                TcpStream::connect(at.as_slice()).await.map_err(|_| failed("is not reachable"))?
            }
        };
        let _ = tcp.set_nodelay(true);
        if !self.upstream.tls {
            return Ok(Box::new(tcp));
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|_| failed("has no valid host name"))?;
        let tls = tokio_rustls::TlsConnector::from(Arc::clone(&shared.tls)).connect(name, tcp).await;
        let tls =
            tls.map_err(|e| Denial::failed(Reason::TlsFailed, format!("the model's API: TLS failed: {e}")))?;
        Ok(Box::new(tls))
    }
}

/// Streams the API's answer to the run, scrubbed of the key.
fn pump(attempt: Attempt, response: Response<Incoming>) -> Response<Answer> {
    let shared = Arc::clone(attempt.shared());
    let (parts, mut body) = response.into_parts();
    let (sender, answer) = channel(SizeHint::default());
    let mut out = Response::new(answer);
    *out.status_mut() = parts.status;
    if let Some(gateway) = &shared.gateway {
        *out.headers_mut() = response_headers(&parts.headers, &gateway.scrubber);
    }
    tokio::spawn(async move {
        let Some(gateway) = &shared.gateway else { return };
        let mut scrubbing = gateway.scrubber.stream();
        let idle = shared.config.limits.idle;
        let reason = loop {
            let frame = tokio::select! {
                frame = timeout(idle, body.frame()) => frame,
                () = sender.closed() => break Reason::Broken,
            };
            let data = match frame {
                Err(_) => break Reason::Idle,
                Ok(None) => break Reason::Done,
                Ok(Some(Err(_))) => break Reason::Broken,
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            };
            attempt.down.fetch_add(data.len() as u64, Relaxed);
            let clean = scrubbing.push(&data);
            if !clean.is_empty() && sender.send(Ok(Frame::data(clean.into()))).await.is_err() {
                break Reason::Broken;
            }
        };
        let rest = scrubbing.finish();
        if !rest.is_empty() {
            let _ = sender.send(Ok(Frame::data(rest.into()))).await;
        }
        if reason != Reason::Done {
            let _ = sender.send(Err("cut".into())).await;
        }
        attempt.ended(reason);
    });
    out
}

fn response_headers(given: &HeaderMap, scrubber: &Scrubber) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let n = name.as_str();
        let wanted = [
            "content-type",
            "request-id",
            "retry-after",
            "retry-after-ms",
            "x-should-retry",
            "cache-control",
        ]
        .contains(&n)
            || n.starts_with("anthropic-");
        if wanted && !scrubber.finds(value.as_bytes()) {
            headers.append(name.clone(), value.clone());
        }
    }
    headers
}

fn refuse(attempt: Attempt, denial: &Denial) -> Response<Answer> {
    attempt.denied(denial);
    let kind = match denial.status() {
        401 => "authentication_error",
        404 => "not_found_error",
        400 => "invalid_request_error",
        429 => "rate_limit_error",
        502 | 504 => "api_error",
        _ => "permission_error",
    };
    let body = serde_json::json!({
        "type": "error",
        "error": {"type": kind, "message": format!("jess: {}", denial.message)},
    });
    let mut response = Response::new(full(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(denial.status()).unwrap_or(StatusCode::FORBIDDEN);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("x-should-retry", HeaderValue::from_static("false"));
    response
}

/// Equality whose time depends on the lengths only.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y)) == 0
}
