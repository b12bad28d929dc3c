//! The model gateway: the run's way to the model's API, with the key added outside.
//!
//! Served are `POST /v1/messages`, `POST /v1/messages/count_tokens`, `GET /v1/models` and `GET /v1/models/ID`, or the
//! like of another shape ([`Api`]); `HEAD /` is answered here. Everything else of the API, batches and files above all, is refused: what is not needed to hold a
//! conversation is a way to act on the operator's account. Request and response headers pass an allowlist.

mod api;
mod autofetch;
mod budget;
mod eventstream;
pub(super) mod fuzz;
mod judge;
mod long;
mod openai;
mod openai_stream;
mod price;
mod scope;
pub(super) mod scrub;
mod sse;
mod stream;
mod upstream;

pub use api::Api;
pub use budget::{Budget, Usage};
pub use judge::ModelPolicy;
pub use price::source_of_prices;
pub use scope::Scope;
pub use stream::{Action, Inspection};
pub use upstream::{ModelUpstream, UpstreamError};

use super::event::{Alert, Denial, Door, Reason, Report, Verdict};
use super::head::Head;
use super::http::{Answer, BodyError, channel, cut, full};
use super::server::Attempt;
use super::{Config, Shared};
use api::Call;
use budget::{Account, Ask, Exhausted, Grant, Spent};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Request, Response, StatusCode};
use judge::Judged;
use price::Price;
use scrub::Scrubber;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use stream::{Dialect, Inspector, Stop};
use tokio::sync::mpsc;
use tokio::time::timeout;
use upstream::{Pool, Sender, response_headers};

/// Part of the budget at which an alert is raised.
const WARN_AT: f64 = 0.8;
/// Longest answer that comes as one document, in bytes.
const MAX_DOCUMENT: usize = 32 * 1024 * 1024;

/// Bodies of requests that are read and judged at once, in KiB, and the values in them: a value takes some eighty bytes
/// of memory, however short it is written.
pub(super) const BODIES: u32 = 64 * 1024;
pub(super) const VALUES: u32 = 1_000_000;

/// The gateway of one run.
pub(super) struct Gateway {
    upstream: ModelUpstream,
    pool: Pool,
    account: Arc<Account>,
    warned: AtomicBool,
    /// The key, which must not come back.
    scrubber: Scrubber,
    /// What the model has no reason to write.
    secrets: Scrubber,
}

impl Gateway {
    pub(super) fn new(upstream: ModelUpstream, config: &Config) -> Gateway {
        let key = upstream.credential.expose();
        let secrets = config.inspection.secrets.iter().map(super::Credential::expose);
        Gateway {
            scrubber: Scrubber::new([key]),
            secrets: Scrubber::new(secrets.chain([key])),
            pool: Pool::default(),
            account: Account::new(config.budget, config.scopes.clone()),
            warned: AtomicBool::new(false),
            upstream,
        }
    }

    /// The key.
    pub(super) fn secret(&self) -> &str {
        self.upstream.credential.expose()
    }

    pub(super) fn add_to(&self, report: &mut Report) {
        (report.usage, report.budget_exhausted) = self.account.usage();
    }
}

/// An answer of the API, and what belongs to it.
struct Answered {
    response: Response<Incoming>,
    sender: Sender,
    grant: Option<Grant>,
    dialect: Dialect,
}

/// Serves a request that is addressed to the listener itself.
pub(super) async fn answer(shared: Arc<Shared>, request: Request<Incoming>, head: &Head) -> Response<Answer> {
    let mut attempt = Attempt::new(&shared, Door::Model, "model", 0);
    let Some(gateway) = &shared.gateway else {
        let message = "this is the door of a sandbox; no model is configured for this run";
        return refuse(attempt, &Denial::new(Reason::NoModel, message));
    };
    attempt.event(|e| (e.host, e.port) = (gateway.upstream.host.clone(), gateway.upstream.port));
    match gateway.exchange(&shared, request, head, &attempt).await {
        Err(denial) => refuse(attempt, &denial),
        Ok(None) => {
            attempt.ended(Reason::Done);
            Response::new(full(""))
        }
        Ok(Some(answered)) => pass_on(attempt, answered),
    }
}

impl Gateway {
    async fn exchange(
        &self,
        shared: &Shared,
        request: Request<Incoming>,
        head: &Head,
        attempt: &Attempt,
    ) -> Result<Option<Answered>, Denial> {
        let (path, query) = head.path.split_once('?').unwrap_or((&head.path, ""));
        let call = self.upstream.api.call(request.method(), path).ok_or_else(|| {
            Denial::new(Reason::PathNotServed, "this part of the model's API is not served to a run")
        })?;
        if call == Call::Probe {
            return Ok(None);
        }
        if !query.bytes().all(|b| b.is_ascii_alphanumeric() || b"=&_-.".contains(&b)) || query.len() > 256 {
            return Err(Denial::new(Reason::BadRequest, "the query has characters that the API never needs"));
        }
        self.upstream.authenticate(request.headers())?;
        let (parts, body) = request.into_parts();
        // Held until the request is sent.
        let (_room, _values);
        let (judged, grant) = match call {
            Call::Models | Call::Probe => (None, None),
            Call::Messages | Call::CountTokens | Call::Chat | Call::Responses => {
                let room =
                    body.size_hint().upper().unwrap_or(shared.config.limits.model_request_bytes as u64);
                let room = u32::try_from(room.div_ceil(1024)).unwrap_or(BODIES).min(BODIES);
                _room = shared.bodies.acquire_many(room).await;
                let body = read_body(body, shared).await?;
                let values = u32::try_from(judge::values(&body)).unwrap_or(VALUES).min(VALUES);
                _values = shared.values.acquire_many(values).await;
                let (judged, grant) = self.admit(shared, &body, call).await?;
                (Some(judged), grant)
            }
        };
        let dialect = match call {
            Call::Chat | Call::Responses => {
                let chat = call == Call::Chat;
                Dialect::OpenAi { chat, hide_usage: judged.as_ref().is_some_and(|j| j.hide_usage) }
            }
            _ => Dialect::Messages,
        };
        let body = judged.map(|j| j.into_body(grant.as_ref().map_or(u64::MAX, |g| g.output)));
        let headers = self.upstream.headers(&parts.headers)?;
        let out = self.upstream.outgoing(call, path, query, body, headers);
        attempt.up.fetch_add(out.body.len() as u64, Relaxed);
        let mut upstream = Request::new(Full::new(out.body.into()));
        *upstream.method_mut() = parts.method;
        *upstream.uri_mut() =
            out.path.parse().map_err(|_| Denial::new(Reason::BadRequest, "the path is not a path"))?;
        *upstream.headers_mut() = out.headers;
        let sent = self.pool.send(shared, &self.upstream, upstream).await;
        let (response, sender) = match (sent, grant) {
            (Err(none), grant) => {
                match grant {
                    Some(grant) if !none.sent => grant.release(),
                    // It may have been answered, and is charged in full.
                    other => drop(other),
                }
                return Err(none.denial);
            }
            (Ok((response, sender)), Some(grant)) if response.status().is_success() => {
                let grant = Some(grant);
                return check(&response).map(|()| Some(Answered { response, sender, grant, dialect }));
            }
            (Ok(sent), Some(grant)) => {
                // The API charges nothing for an answer that is an error.
                grant.release();
                sent
            }
            (Ok(sent), None) => sent,
        };
        check(&response).map(|()| Some(Answered { response, sender, grant: None, dialect }))
    }

    /// Judges the request and finds it a place in the budget.
    async fn admit(
        &self,
        shared: &Shared,
        body: &[u8],
        call: Call,
    ) -> Result<(Judged, Option<Grant>), Denial> {
        let (policy, hosts) = (&shared.config.model_policy, &shared.config.allow_hosts);
        let judged = match call {
            Call::Chat | Call::Responses => openai::judge(body, call, policy, hosts)?,
            _ => judge::judge(body, call == Call::CountTokens, policy, hosts)?,
        };
        if call == Call::CountTokens {
            return Ok((judged, None));
        }
        let ask = Ask {
            price: Price::of(&judged.model),
            input: judged.estimate,
            output: judged.max_tokens,
            least: judged.least_tokens,
        };
        match self.account.admit(ask).await {
            Ok(grant) => Ok((judged, Some(grant))),
            Err(Exhausted) => {
                self.alert_budget(shared);
                let (usage, _) = self.account.usage();
                let (name, flag) = self.account.exhausted_by();
                let tokens = usage.input_tokens
                    + usage.output_tokens
                    + usage.cache_read_tokens
                    + usage.cache_write_tokens;
                let message = format!(
                    "what is left of the budget ({name}) is not enough for this request: the run has used {:.4} \
                     dollars, {tokens} tokens; {flag} sets it",
                    usage.usd
                );
                if let Some(on_exhausted) = &shared.config.on_exhausted {
                    on_exhausted();
                }
                Err(Denial::new(Reason::BudgetExhausted, message))
            }
        }
    }

    /// Charges the answer, and says so when the budget runs out.
    fn settle(&self, shared: &Shared, grant: Grant, inspector: &Inspector<'_>) {
        match inspector.spent() {
            Some(spent) if inspector.is_final() => grant.settle(spent),
            // An answer that was cut cost what was seen of it and what was on the way.
            Some(spent) => {
                let output = spent.output.max(grant.output);
                grant.settle(Spent { output, ..spent });
            }
            // An answer without a count is charged in full.
            None => drop(grant),
        }
        self.alert_budget(shared);
    }

    fn alert_budget(&self, shared: &Shared) {
        let (usage, exhausted) = self.account.usage();
        let used = self.account.used();
        let tokens =
            usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
        if exhausted {
            shared.log.alert_once(Alert::BudgetExhausted { usd: usage.usd, tokens });
        } else if used >= WARN_AT && !self.warned.swap(true, Relaxed) {
            shared.log.alert_once(Alert::BudgetLow { used, usd: usage.usd, tokens });
        }
    }
}

async fn read_body(body: Incoming, shared: &Shared) -> Result<Bytes, Denial> {
    let limits = &shared.config.limits;
    match timeout(limits.idle, Limited::new(body, limits.model_request_bytes).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(Denial::new(Reason::BadRequest, "the request is too large or cut short")),
        Err(_) => Err(Denial::new(Reason::Idle, "the request took too long to arrive")),
    }
}

fn check(response: &Response<Incoming>) -> Result<(), Denial> {
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
    Ok(())
}

/// Streams the API's answer to the run: scrubbed of the key, and inspected.
fn pass_on(attempt: Attempt, answered: Answered) -> Response<Answer> {
    let shared = Arc::clone(attempt.shared());
    let (parts, body) = answered.response.into_parts();
    let (sender, answer) = channel(SizeHint::default());
    let mut out = Response::new(answer);
    *out.status_mut() = parts.status;
    if let Some(gateway) = &shared.gateway {
        *out.headers_mut() = response_headers(&parts.headers, &gateway.scrubber);
    }
    let shape = Shape::of(parts.status, &parts.headers, answered.grant.is_some());
    if shape == Shape::Frames {
        out.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    }
    let (connection, grant, dialect) = (answered.sender, answered.grant, answered.dialect);
    tokio::spawn(async move {
        let shared = Arc::clone(attempt.shared());
        let Some(gateway) = &shared.gateway else { return };
        let config = &shared.config;
        let mut inspector =
            Inspector::new(config.inspection.action, &config.allow_hosts, &gateway.secrets).reading(dialect);
        let reason = pump(&shared, gateway, body, shape, &mut inspector, &sender, &attempt).await;
        for (kind, count) in &inspector.found {
            shared.log.alert(Alert::ModelOutput { kind: (*kind).to_owned(), count: *count });
        }
        if let Some(grant) = grant {
            gateway.settle(&shared, grant, &inspector);
        }
        match reason {
            Reason::Done => gateway.pool.give_back(connection),
            // The client was told why, in a well-formed answer.
            Reason::ResponseStopped => {}
            _ => cut(&sender).await,
        }
        attempt.ended(reason);
    });
    out
}

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Events,
    /// Events in Amazon's framing.
    Frames,
    Document,
    /// An error, or a list of models: scrubbed, and not a model's words.
    Other,
}

impl Shape {
    /// A model's words (`paid`) are inspected whatever the API calls them.
    fn of(status: StatusCode, headers: &HeaderMap, paid: bool) -> Shape {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
        let kind = kind.to_ascii_lowercase();
        match kind.split(';').next().map(str::trim) {
            Some("text/event-stream") => Shape::Events,
            Some("application/vnd.amazon.eventstream") if status.is_success() => Shape::Frames,
            Some("application/json") if status.is_success() => Shape::Document,
            _ if paid => Shape::Document,
            _ => Shape::Other,
        }
    }
}

type Out = mpsc::Sender<Result<Frame<Bytes>, BodyError>>;

async fn pump(
    shared: &Shared,
    gateway: &Gateway,
    mut body: Incoming,
    shape: Shape,
    inspector: &mut Inspector<'_>,
    out: &Out,
    attempt: &Attempt,
) -> Reason {
    let mut scrubbing = gateway.scrubber.stream();
    let mut document = Vec::new();
    let mut frames = eventstream::Decoder::default();
    loop {
        let frame = tokio::select! {
            frame = timeout(shared.config.limits.idle, body.frame()) => frame,
            () = out.closed() => return Reason::Broken,
        };
        let (clean, ended) = match frame {
            Err(_) => return Reason::Idle,
            Ok(Some(Err(_))) => return Reason::Broken,
            Ok(None) if !frames.is_whole() => return Reason::Broken,
            Ok(None) => (scrubbing.finish(), true),
            Ok(Some(Ok(frame))) => {
                let data = frame.into_data().unwrap_or_default();
                attempt.down.fetch_add(data.len() as u64, Relaxed);
                let data = match shape {
                    Shape::Frames => match frames.push(&data) {
                        Ok(events) => events.into(),
                        Err(eventstream::Malformed) => return stopped(Stop::Malformed, shape, out).await,
                    },
                    _ => data,
                };
                (scrubbing.push(&data), false)
            }
        };
        let passed = match shape {
            Shape::Other => Ok(clean),
            Shape::Events | Shape::Frames => inspector.push(&clean).and_then(|mut passed| {
                if ended {
                    passed.extend(inspector.finish()?);
                }
                Ok(passed)
            }),
            Shape::Document => {
                document.extend_from_slice(&clean);
                match (document.len() > MAX_DOCUMENT, ended) {
                    (true, _) => Err(Stop::Malformed),
                    (false, true) => inspector.document(&document),
                    (false, false) => Ok(Vec::new()),
                }
            }
        };
        let passed = match passed {
            Ok(passed) => passed,
            Err(stop) => return stopped(stop, shape, out).await,
        };
        if !passed.is_empty() && out.send(Ok(Frame::data(passed.into()))).await.is_err() {
            return Reason::Broken;
        }
        if ended {
            return Reason::Done;
        }
    }
}

/// Tells the client why its answer ends, in the shape that it reads.
async fn stopped(stop: Stop, shape: Shape, out: &Out) -> Reason {
    let (reason, message) = match stop {
        Stop::Found => {
            (Reason::ResponseStopped, "jess: the answer held what must not leave, and was stopped")
        }
        Stop::Malformed => (Reason::Broken, "jess: the model's API sent what can't be read"),
    };
    let error = serde_json::json!({"type": "error", "error": {"type": "api_error", "message": message}});
    let text = match shape {
        Shape::Events | Shape::Frames => format!("event: error\ndata: {error}\n\n"),
        Shape::Document | Shape::Other => error.to_string(),
    };
    let _ = out.send(Ok(Frame::data(text.into()))).await;
    reason
}

/// A refusal in the shape of the API's own errors.
fn refuse(attempt: Attempt, denial: &Denial) -> Response<Answer> {
    attempt.denied(denial);
    let kind = match (denial.verdict, denial.status()) {
        (_, 402) => "billing_error",
        (_, 401) => "authentication_error",
        (_, 404) => "not_found_error",
        (_, 400) => "invalid_request_error",
        (_, 429) => "rate_limit_error",
        (Verdict::Failed, _) => "api_error",
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
    if denial.verdict == Verdict::Denied {
        headers.insert("x-should-retry", HeaderValue::from_static("false"));
    }
    response
}
