//! `jess fetch`: one page, safely, as text.
//!
//! A hop is screened before it is dialled, a redirect is a new hop, and what arrives is bounded in size and time. What
//! it is, is told by looking at it, not by what the server says. HTML becomes text by a WHATWG tokenizer.

use super::Config;
use super::dial::dial;
use super::event::{Denial, Reason};
use super::host::Host;
use super::io::Stream;
use super::rule::HostRule;
use super::{Error, Shared};
use crate::untrusted::Untrusted;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

mod text;

/// How a page is fetched.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// Bytes of the page. What is longer is cut, and marked so.
    pub max_bytes: usize,
    /// Time for the whole of it, redirects included.
    pub time: Duration,
    /// Redirects that are followed.
    pub redirects: usize,
    /// Plain http is fetched as it is, rather than refused.
    pub allow_http: bool,
}

impl Default for FetchOptions {
    fn default() -> FetchOptions {
        FetchOptions { max_bytes: 4 << 20, time: Duration::from_secs(30), redirects: 5, allow_http: false }
    }
}

/// What was fetched.
#[derive(Debug)]
pub struct Page {
    /// Where it came from in the end.
    pub url: Untrusted<String>,
    /// The server's status code.
    pub status: u16,
    /// What it is, by looking at it.
    pub kind: Kind,
    /// The page as text.
    pub text: Untrusted<String>,
    /// There was more than [`FetchOptions::max_bytes`].
    pub cut: bool,
}

/// What a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// HTML, which was turned into text.
    Html,
    /// Any other text.
    Text,
}

/// The page could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The URL is none that can be fetched.
    #[error("{0}")]
    Url(String),
    /// A hop was refused or failed.
    #[error("fetching: {0}")]
    Hop(String),
    /// Too many redirects.
    #[error("fetching: more than {0} redirects")]
    Redirects(usize),
    /// It took too long.
    #[error("fetching took longer than {} s; --timeout allows more", .0.as_secs())]
    Time(Duration),
    /// It is no text.
    #[error("what came is not text ({0}); only text is shown to an agent")]
    Binary(&'static str),
    /// The fetcher could not start.
    #[error(transparent)]
    Start(#[from] Error),
}

/// Fetches `url`. The allowlist of `config` decides if it is not empty; otherwise any public host will do.
///
/// # Errors
///
/// See [`FetchError`]; none of them quotes what the server sent.
pub fn fetch(url: &str, config: Config, options: &FetchOptions) -> Result<Page, FetchError> {
    let shared = Shared::new(config)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Thread)?;
    // The timer needs the runtime's context, so it is made inside.
    let outcome = runtime.block_on(async { timeout(options.time, follow(&shared, url, options)).await });
    runtime.shutdown_background();
    outcome.map_err(|_| FetchError::Time(options.time))?
}

impl FetchError {
    /// The same for a place that a page chose: its name is the page's own words.
    fn of_redirect(self) -> FetchError {
        let what = match self {
            FetchError::Hop(_) => {
                "the redirect leads to a host that is not allowed, not public or not reachable"
            }
            FetchError::Url(_) => "the redirect leads to a URL that is not fetched",
            other => return other,
        };
        FetchError::Hop(what.into())
    }
}

async fn follow(shared: &Shared, url: &str, options: &FetchOptions) -> Result<Page, FetchError> {
    let mut url =
        Url::parse(url).map_err(|_| FetchError::Url("the URL is not one; write https://HOST/PATH".into()))?;
    for hop in 0..=options.redirects {
        let asked = request(shared, &url, options).await;
        let response = asked.map_err(|error| if hop == 0 { error } else { error.of_redirect() })?;
        let location =
            response.headers().get(header::LOCATION).filter(|_| response.status().is_redirection());
        let Some(location) = location else {
            return page(&url, response, options).await;
        };
        let bad = || FetchError::Hop("the redirect leads to no URL".into());
        let next = location.to_str().ok().and_then(|l| url.join(l).ok()).ok_or_else(bad)?;
        if url.scheme() == "https" && next.scheme() != "https" {
            return Err(FetchError::Hop("the redirect leads from https to something else".into()));
        }
        tracing::debug!(hop, "redirected");
        url = next;
    }
    Err(FetchError::Redirects(options.redirects))
}

/// One hop: judged, screened, dialled, asked.
async fn request(
    shared: &Shared,
    url: &Url,
    options: &FetchOptions,
) -> Result<Response<Incoming>, FetchError> {
    let tls = match url.scheme() {
        "https" => true,
        "http" if options.allow_http => false,
        "http" => {
            return Err(FetchError::Url(
                "the URL is plain http; --allow-http fetches it all the same".into(),
            ));
        }
        _ => return Err(FetchError::Url("only http and https are fetched".into())),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(FetchError::Url("a URL with a user or a password is not fetched".into()));
    }
    let no_host = || FetchError::Url("the URL names no host".into());
    let host = Host::parse(url.host_str().ok_or_else(no_host)?).map_err(|_| no_host())?;
    let port = url.port_or_known_default().ok_or_else(no_host)?;
    let hop = |denial: Denial| FetchError::Hop(denial.message);
    let rule = rule(shared, &host, port, url.path()).map_err(hop)?;
    let dialled = dial(shared, &host, port, &rule).await.map_err(hop)?;
    let stream: Box<dyn Stream> = if tls {
        let name = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|_| no_host())?;
        let tls =
            tokio_rustls::TlsConnector::from(Arc::clone(&shared.tls)).connect(name, dialled.stream).await;
        // The cause may quote names out of the server's certificate.
        let why = "no certificate for that name from an authority that is trusted, or no TLS";
        Box::new(tls.map_err(|_| FetchError::Hop(format!("TLS with {host}:{port} failed: {why}")))?)
    } else {
        Box::new(dialled.stream)
    };
    let broken = || FetchError::Hop(format!("{host}:{port} broke the connection"));
    let handshake =
        hyper::client::conn::http1::Builder::new().max_headers(100).handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(|_| broken())?;
    tokio::spawn(connection);
    let default = url.port().is_none();
    let authority = if default { host.to_string() } else { format!("{host}:{port}") };
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = path.parse().map_err(|_| FetchError::Url("the URL's path can't be sent".into()))?;
    let headers = request.headers_mut();
    headers.insert(header::HOST, HeaderValue::try_from(authority).map_err(|_| no_host())?);
    headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("jess/", env!("CARGO_PKG_VERSION"))));
    headers.insert(header::ACCEPT, HeaderValue::from_static("text/html, text/plain;q=0.9, */*;q=0.5"));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    sender.send_request(request).await.map_err(|_| broken())
}

/// The rule that allows this hop. Without an allowlist every name is allowed, and the screen still holds.
fn rule(shared: &Shared, host: &Host, port: u16, path: &str) -> Result<HostRule, Denial> {
    let rules = &shared.config.allow_hosts;
    if !rules.is_empty() {
        let allowed = rules.iter().find(|r| r.covers(host, port) && r.allows_request("GET", path));
        return allowed.cloned().ok_or_else(|| Denial::not_allowed(host, port, false));
    }
    let any = match host {
        Host::Name(name) if name == "localhost" => None,
        Host::Name(name) => format!("{name}:*").parse().ok(),
        Host::Address(address) => {
            let public = super::screen::screen(*address, &shared.config.allow_addresses).is_ok();
            public.then(|| format!("{host}:*").parse().ok()).flatten()
        }
    };
    any.ok_or_else(|| {
        Denial::new(
            Reason::AddressBlocked,
            format!("{host} is not a public host; --net {host}:{port} would allow it"),
        )
    })
}

async fn page(url: &Url, response: Response<Incoming>, options: &FetchOptions) -> Result<Page, FetchError> {
    let status = response.status().as_u16();
    if response.headers().contains_key(header::CONTENT_ENCODING) {
        return Err(FetchError::Binary("compressed, which was not asked for"));
    }
    let mut body = response.into_body();
    let (mut bytes, mut cut) = (Vec::new(), false);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| FetchError::Hop("the page broke off".into()))?;
        let Ok(data) = frame.into_data() else { continue };
        let room = options.max_bytes.saturating_sub(bytes.len());
        bytes.extend_from_slice(data.get(..room.min(data.len())).unwrap_or_default());
        if data.len() > room {
            cut = true;
            break;
        }
    }
    let (kind, text) = text::read(&bytes).map_err(FetchError::Binary)?;
    Ok(Page { url: Untrusted::new(url.to_string()), status, kind, text: Untrusted::new(text), cut })
}
