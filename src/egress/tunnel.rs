//! A tunnel: opened by name, dialled by screened address, and held to the name it was opened with.

use super::dial::dial;
use super::event::{Denial, Door, Reason};
use super::head::Target;
use super::hello::{self, Hello};
use super::host::Host;
use super::io::Prefixed;
use super::policy::{Use, authorise};
use super::relay::{Meter, relay};
use super::server::{Attempt, read_head, refuse};
use super::{Shared, http};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The port on which nothing but TLS is let through.
const HTTPS: u16 = 443;

/// Serves `CONNECT host:port`.
pub(super) async fn serve(
    shared: &Arc<Shared>,
    mut inside: TcpStream,
    early: Vec<u8>,
    host: &Host,
    port: u16,
) {
    let mut attempt = Attempt::new(shared, Door::Connect, &host.to_string(), port);
    let opened = async {
        let rule = authorise(shared, host, port, Use::Tunnel)?;
        dial(shared, host, port, rule).await
    };
    let dialled = match opened.await {
        Ok(dialled) => dialled,
        Err(denial) => return refuse(inside, attempt, denial).await,
    };
    attempt.event(|e| e.address = Some(dialled.address));
    if inside.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.is_err() {
        return attempt.ended(Reason::Broken);
    }
    carry(shared, (inside, early), dialled.stream, host, port, attempt).await;
}

/// Lets the connection through if what it says first agrees with the name that it was opened with.
pub(super) async fn carry(
    shared: &Arc<Shared>,
    (mut inside, mut first): (TcpStream, Vec<u8>),
    mut outside: TcpStream,
    host: &Host,
    port: u16,
    mut attempt: Attempt,
) {
    let limits = &shared.config.limits;
    let _ = outside.set_nodelay(true);
    let opening = timeout(limits.head_time, opening(&mut inside, &mut outside, &mut first));
    match opening.await {
        Ok(Opening::Tls(hello)) => {
            attempt.event(|e| e.ech = hello.ech);
            if let Err(denial) = agrees(&hello, host) {
                return attempt.denied(&denial);
            }
        }
        Ok(Opening::Other | Opening::ServerFirst) if port == HTTPS => {
            return attempt.denied(&Denial::new(Reason::NotTls, ""));
        }
        Ok(Opening::Other) if looks_like_http(&first) => {
            drop(outside);
            attempt.ended(Reason::Done);
            return plain_http(shared, Prefixed::new(first, inside), host, port).await;
        }
        Ok(Opening::Other | Opening::ServerFirst) => {}
        Ok(Opening::Ended) => return attempt.ended(Reason::Done),
        Ok(Opening::Bad) => return attempt.denied(&Denial::new(Reason::BadRequest, "")),
        Err(_) => return attempt.denied(&Denial::new(Reason::HeadTimeout, "")),
    }
    let host_bytes = shared.ledger.host_bytes(host);
    let meter = Meter {
        budgets: vec![(&host_bytes, limits.bytes_per_host), (&shared.ledger.run_bytes, limits.bytes_per_run)],
        up: &attempt.up,
        down: &attempt.down,
    };
    let reason = relay(&first, &inside, &outside, limits.idle, &meter).await;
    attempt.ended(reason);
}

/// What the first bytes of a tunnel are.
enum Opening {
    Tls(Hello),
    /// The client spoke first, and not TLS.
    Other,
    /// The server spoke first, as in SSH or SMTP.
    ServerFirst,
    Ended,
    Bad,
}

async fn opening(inside: &mut TcpStream, outside: &mut TcpStream, first: &mut Vec<u8>) -> Opening {
    let mut chunk = [0; 4096];
    loop {
        if let Some(opening) = judge(first) {
            return opening;
        }
        let read = tokio::select! {
            biased;
            read = inside.read(&mut chunk) => read,
            ready = outside.readable(), if first.is_empty() => match ready {
                Ok(()) => return Opening::ServerFirst,
                Err(_) => return Opening::Ended,
            },
        };
        match read {
            Ok(0) | Err(_) if first.is_empty() => return Opening::Ended,
            Ok(0) | Err(_) => return Opening::Bad,
            Ok(n) => first.extend_from_slice(chunk.get(..n).unwrap_or_default()),
        }
    }
}

/// What `first` is, once it can be told.
fn judge(first: &[u8]) -> Option<Opening> {
    if !hello::is_tls(*first.first()?) {
        return Some(Opening::Other);
    }
    match hello::parse(first) {
        Ok(hello) => hello.map(Opening::Tls),
        Err(_) => Some(Opening::Bad),
    }
}

fn agrees(hello: &Hello, host: &Host) -> Result<(), Denial> {
    match (&hello.server_name, host) {
        (None, Host::Address(_)) => Ok(()),
        // A captured connection to 127.0.0.1 is for `localhost` outside, and names nothing.
        (None, Host::Name(name)) if name == "localhost" => Ok(()),
        (None, Host::Name(_)) => Err(Denial::new(Reason::SniMissing, "")),
        (Some(name), host) if Host::parse(name).is_ok_and(|named| named == *host) => Ok(()),
        (Some(_), _) => Err(Denial::new(Reason::SniMismatch, "")),
    }
}

pub(super) fn looks_like_http(first: &[u8]) -> bool {
    let token = first.iter().take_while(|b| b.is_ascii_uppercase()).count();
    token >= 3 && first.get(token).is_none_or(|b| *b == b' ')
}

/// Whether a request for `named` belongs into a tunnel to `host`: the same, or two spellings of the loopback outside.
fn same_place(named: &Host, host: &Host) -> bool {
    let loopback = |h: &Host| match h {
        Host::Address(address) => address.is_loopback(),
        Host::Name(name) => name == "localhost",
    };
    named == host || (loopback(named) && loopback(host))
}

/// Plain HTTP inside a tunnel is served as a forwarded request: what can be read is judged, and the request must name
/// the host that the tunnel was opened for.
pub(super) async fn plain_http(
    shared: &Arc<Shared>,
    mut inside: Prefixed<TcpStream>,
    host: &Host,
    port: u16,
) {
    let attempt = Attempt::new(shared, Door::Http, &host.to_string(), port);
    let mut buf = Vec::new();
    let limit = shared.config.limits.head_time;
    let mut head = match timeout(limit, read_head(shared, &mut inside, &mut buf)).await {
        Ok(Ok(Some(head))) => head,
        Ok(Ok(None)) => return attempt.ended(Reason::Done),
        Ok(Err(denial)) => return refuse(inside, attempt, denial).await,
        Err(_) => {
            return refuse(inside, attempt, Denial::new(Reason::HeadTimeout, "the request took too long"))
                .await;
        }
    };
    match &head.target {
        Target::Origin(Some((named, at))) if same_place(named, host) && at.unwrap_or(80) == port => {}
        _ => {
            let message =
                format!("the request is for another host than {host}:{port}, which it was connected to");
            return refuse(inside, attempt, Denial::new(Reason::HostMismatch, message)).await;
        }
    }
    attempt.forget();
    head.target = Target::Absolute(host.clone(), port);
    http::serve(Arc::clone(shared), Prefixed::new(buf, inside), head).await;
}
