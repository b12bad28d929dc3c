//! Plain HTTP requests: forwarded if a rule allows them, or handed to the model gateway.

use super::Shared;
use super::dial::dial;
use super::event::{Denial, Door, Reason};
use super::gateway::scrub::Scrubber;
use super::head::{Head, Target};
use super::host::Host;
use super::inject::HostCredential;
use super::io::Stream;
use super::policy::{Use, authorise};
use super::rule::HostRule;
use super::server::Attempt;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use zeroize::Zeroizing;

/// Any failure of a body.
pub(super) type BodyError = Box<dyn std::error::Error + Send + Sync>;
/// The body of an answer.
pub(super) type Answer = http_body_util::combinators::UnsyncBoxBody<Bytes, BodyError>;

/// Serves the one request whose head was judged to be `head`; `stream` starts with it.
pub(super) async fn serve<S: Stream + 'static>(shared: Arc<Shared>, stream: S, head: Head) {
    let buffer = shared.config.limits.head_bytes.max(8192) + 8192;
    let headers = shared.config.limits.headers;
    let service = service_fn(|request| {
        let (shared, head) = (Arc::clone(&shared), head.clone());
        async move {
            Ok::<_, Infallible>(match &head.target {
                Target::Absolute(host, port) => forward(shared, request, host, *port, &head.path).await,
                _ => super::gateway::answer(shared, request, &head).await,
            })
        }
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.keep_alive(false).max_buf_size(buffer).max_headers(headers).header_read_timeout(None);
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

async fn forward(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    host: &Host,
    port: u16,
    path: &str,
) -> Response<Answer> {
    let attempt = Attempt::new(&shared, Door::Http, &host.to_string(), port);
    match exchange(&shared, request, host, port, path).await {
        Err(denial) => {
            attempt.denied(&denial);
            refusal(&denial)
        }
        Ok((response, scrubber)) => pump(attempt, response, host.clone(), scrubber),
    }
}

async fn exchange(
    shared: &Shared,
    request: Request<Incoming>,
    host: &Host,
    port: u16,
    path: &str,
) -> Result<(Response<Incoming>, Option<Arc<Scrubber>>), Denial> {
    let method = request.method().as_str();
    let rule = authorise(shared, host, port, Use::Request(method, path))?;
    let credential = shared.config.credentials.iter().find(|c| c.is_for(host, port, method, path));
    let stream: Box<dyn Stream> = match credential {
        Some(_) => over_tls(shared, host, if port == 80 { 443 } else { port }, rule).await?,
        None => Box::new(dial(shared, host, port, rule).await?.stream),
    };
    let failed = || Denial::failed(Reason::ConnectFailed, format!("{host}:{port} broke the connection"));
    let (mut parts, body) = request.into_parts();
    strip_hop_by_hop(&mut parts.headers);
    let authority = if port == 80 { host.to_string() } else { format!("{host}:{port}") };
    parts.headers.insert(header::HOST, HeaderValue::try_from(authority).map_err(|_| failed())?);
    let mut path = Zeroizing::new(path.to_owned());
    if let Some(credential) = credential {
        path = credential.add(&mut parts.headers, &path)?;
        // The answer has to be readable, so that the secret can be taken out.
        parts.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    parts.uri = path.parse().map_err(|_| Denial::new(Reason::BadRequest, "the path is not a path"))?;
    parts.version = hyper::Version::HTTP_11;
    let io = TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.map_err(|_| failed())?;
    tokio::spawn(connection);
    let response = timeout(shared.config.limits.idle, sender.send_request(Request::from_parts(parts, body)));
    let mut response = response.await.map_err(|_| failed())?.map_err(|_| failed())?;
    let scrubber = credential.map(HostCredential::scrubber);
    if let Some(scrubber) = &scrubber {
        if response.headers().contains_key(header::CONTENT_ENCODING) {
            let message = format!("{host}:{port} answers in a coding that was not asked for");
            return Err(Denial::failed(Reason::Broken, message));
        }
        let headers = std::mem::take(response.headers_mut());
        let clean = headers.iter().filter(|(_, value)| !scrubber.finds(value.as_bytes()));
        response.headers_mut().extend(clean.map(|(name, value)| (name.clone(), value.clone())));
        // Its length may change.
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    Ok((response, scrubber))
}

/// A verified TLS connection to `host`.
async fn over_tls(
    shared: &Shared,
    host: &Host,
    port: u16,
    rule: &HostRule,
) -> Result<Box<dyn Stream>, Denial> {
    let failed =
        |what: String| Denial::failed(Reason::TlsFailed, format!("{host}:{port}: TLS failed: {what}"));
    let dialled = dial(shared, host, port, rule).await?;
    let name = host.to_string();
    let name = ServerName::try_from(name.trim_matches(['[', ']']).to_owned());
    let name = name.map_err(|e| failed(e.to_string()))?;
    let connector = tokio_rustls::TlsConnector::from(Arc::clone(&shared.tls));
    let handshake = timeout(shared.config.limits.connect, connector.connect(name, dialled.stream)).await;
    match handshake {
        Ok(Ok(stream)) => Ok(Box::new(stream)),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed("no answer in time".to_owned())),
    }
}

/// Streams the answer to the run, metered and, where a credential was added, scrubbed of it.
fn pump(
    attempt: Attempt,
    response: Response<Incoming>,
    host: Host,
    scrubber: Option<Arc<Scrubber>>,
) -> Response<Answer> {
    let (mut parts, mut body) = response.into_parts();
    strip_hop_by_hop(&mut parts.headers);
    let hint = if scrubber.is_some() { SizeHint::default() } else { body.size_hint() };
    let (sender, answer) = channel(hint);
    tokio::spawn(async move {
        let shared = Arc::clone(attempt.shared());
        let limits = &shared.config.limits;
        let host_bytes = shared.ledger.host_bytes(&host);
        let mut scrubbing = scrubber.as_deref().map(Scrubber::stream);
        let reason = loop {
            let frame = tokio::select! {
                frame = timeout(limits.idle, body.frame()) => frame,
                () = sender.closed() => break Reason::Broken,
            };
            let frame = match frame {
                Err(_) => break Reason::Idle,
                Ok(None) => {
                    let rest = scrubbing.as_mut().map(|s| s.finish()).unwrap_or_default();
                    if !rest.is_empty() && sender.send(Ok(Frame::data(rest.into()))).await.is_err() {
                        break Reason::Broken;
                    }
                    break Reason::Done;
                }
                Ok(Some(Err(_))) => break Reason::Broken,
                Ok(Some(Ok(frame))) => frame,
            };
            let Ok(data) = frame.into_data() else { continue };
            let n = data.len() as u64;
            attempt.down.fetch_add(n, Relaxed);
            let host_used = host_bytes.fetch_add(n, Relaxed) + n;
            let run_used = shared.ledger.run_bytes.fetch_add(n, Relaxed) + n;
            if host_used > limits.bytes_per_host || run_used > limits.bytes_per_run {
                break Reason::BytesExhausted;
            }
            let data = match &mut scrubbing {
                Some(scrubbing) => scrubbing.push(&data).into(),
                None => data,
            };
            if !data.is_empty() && sender.send(Ok(Frame::data(data))).await.is_err() {
                break Reason::Broken;
            }
        };
        if reason != Reason::Done {
            cut(&sender).await;
        }
        attempt.ended(reason);
    });
    Response::from_parts(parts, answer)
}

/// Headers that belong to one connection (RFC 9110 §7.6.1), those that `Connection` names, and those meant for a proxy.
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "proxy-authenticate",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ] {
        headers.remove(name);
    }
}

/// The answer to a request that is not forwarded.
pub(super) fn refusal(denial: &Denial) -> Response<Answer> {
    let mut response = Response::new(full(format!("jess: {}\n", denial.message)));
    *response.status_mut() = StatusCode::from_u16(denial.status()).unwrap_or(StatusCode::FORBIDDEN);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if let Ok(value) = HeaderValue::from_str(&denial.message) {
        headers.insert("x-jess", value);
    }
    response
}

/// A body that is there already.
pub(super) fn full(bytes: impl Into<Bytes>) -> Answer {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body that a task fills. The receiving side holds at most four frames.
pub(super) fn channel(hint: SizeHint) -> (mpsc::Sender<Result<Frame<Bytes>, BodyError>>, Answer) {
    let (sender, frames) = mpsc::channel(4);
    (sender, ChannelBody { frames, hint }.boxed_unsync())
}

/// Ends an answer so that the client sees that it is incomplete, after what was sent has left the buffers.
pub(super) async fn cut(sender: &mpsc::Sender<Result<Frame<Bytes>, BodyError>>) {
    tokio::time::sleep(Duration::from_millis(20)).await;
    let _ = sender.send(Err("cut".into())).await;
}

struct ChannelBody {
    frames: mpsc::Receiver<Result<Frame<Bytes>, BodyError>>,
    hint: SizeHint,
}

impl Body for ChannelBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.frames.poll_recv(cx)
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}
