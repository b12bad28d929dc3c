//! The thread that serves the listener, and the handle that ends it.

use super::capture::{self, Capture, Names};
use super::event::{Denial, Door, Event, Reason, Verdict};
use super::head::{self, Head, Target};
use super::io::{Prefixed, Stream};
use super::log::Log;
use super::policy::Ledger;
use super::resolve::{Bounds, Resolver};
use super::{Config, Error, Report, Shared, gateway::Gateway, http, tls, tunnel, watch};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Connections beyond the bound that are told so; the others are closed without a word.
const REFUSALS: usize = 64;

/// How long a door may take to close.
const CLOSING: Duration = Duration::from_secs(5);

/// Starts the door of a run.
pub struct Server;

/// A door that is open. Dropping it closes the door.
pub struct Handle {
    shared: Arc<Shared>,
    shutdown: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `listener`, a listening TCP socket in whatever network namespace, on a thread of its own until the
    /// handle is stopped. Connections to the outside are made in the namespace of the caller.
    pub fn start(listener: OwnedFd, mut config: Config) -> Result<Handle, Error> {
        let listener = listening(listener)?;
        let capture = config.capture.take().map(Captured::new).transpose()?;
        let shared = Arc::new(Shared::new(config)?);
        raise_descriptor_limit();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Thread)?;
        let (shutdown, stopped) = oneshot::channel();
        let serving = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("egress".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, capture, serving) => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_timeout(Duration::from_millis(100));
        });
        Ok(Handle { shared, shutdown: Some(shutdown), thread: Some(thread.map_err(Error::Thread)?) })
    }
}

/// A tunnel takes two descriptors, and up to four more while it moves bulk data; the usual soft limit of 1024 is for
/// programs that use `select`.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const WANTED: u64 = 16 * 1024;
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum.unwrap_or(WANTED).min(WANTED);
    if limit.current.is_some_and(|now| now < current) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum });
    }
}

impl Handle {
    /// Closes every connection and returns what happened.
    pub fn stop(mut self) -> Report {
        self.close();
        self.report()
    }

    /// What happened so far. Connections that are still open are not in it.
    pub fn report(&self) -> Report {
        let mut report = self.shared.log.report();
        if let Some(gateway) = &self.shared.gateway {
            gateway.add_to(&mut report);
        }
        report
    }

    /// The operator's secrets that the door knows: none of them may come out of the run.
    pub fn secrets(&self) -> Vec<zeroize::Zeroizing<String>> {
        let hosts = self.shared.config.credentials.iter().map(|c| c.secret().to_owned());
        let model = self.shared.gateway.iter().map(|g| g.secret().to_owned());
        hosts.chain(model).map(zeroize::Zeroizing::new).collect()
    }

    fn close(&mut self) {
        if let Some(shutdown) = self.shutdown.take() {
            let _ = shutdown.send(());
        }
        // The run has ended; a connection that is being worked on must not hold up its report.
        if let Some(thread) = self.thread.take() {
            let deadline = Instant::now() + CLOSING;
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    pub(super) fn new(mut config: Config) -> Result<Shared, Error> {
        let tls = tls::client(config.extra_roots.as_deref())?;
        let pinned = std::mem::take(&mut config.pinned_names);
        let servers = std::mem::take(&mut config.name_servers);
        let gateway = config.model.take().map(|model| Gateway::new(model, &config));
        Ok(Shared {
            resolver: Resolver::new(
                pinned,
                servers,
                Bounds {
                    timeout: config.limits.dns,
                    kept: config.limits.dns_kept,
                    a_minute: config.limits.dns_a_minute,
                },
            ),
            log: Log::new(config.on_alert.clone(), config.on_refusal.clone()),
            ledger: Ledger::default(),
            tls,
            gateway,
            bodies: tokio::sync::Semaphore::new(super::gateway::BODIES as usize),
            values: tokio::sync::Semaphore::new(super::gateway::VALUES as usize),
            config,
        })
    }
}

/// The sockets of transparent capture, ready to be served.
struct Captured {
    resolver: std::net::UdpSocket,
    listeners: Vec<TcpListener>,
    packets: Vec<std::net::UdpSocket>,
    names: Arc<Names>,
}

impl Captured {
    fn new(capture: Capture) -> Result<Captured, Error> {
        let resolver = std::net::UdpSocket::from(capture.resolver);
        resolver.set_nonblocking(true).map_err(Error::Listener)?;
        let listeners = capture.listeners.into_iter().map(listening).collect::<Result<_, _>>()?;
        let packets: Vec<_> = capture.packets.into_iter().map(std::net::UdpSocket::from).collect();
        for socket in &packets {
            socket.set_nonblocking(true).map_err(Error::Listener)?;
        }
        Ok(Captured { resolver, listeners, packets, names: Arc::new(Names::new(capture.range)) })
    }
}

fn listening(socket: OwnedFd) -> Result<TcpListener, Error> {
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true).map_err(Error::Listener)?;
    listener.local_addr().map_err(Error::Listener)?;
    Ok(listener)
}

async fn serve(listener: TcpListener, capture: Option<Captured>, shared: Arc<Shared>) {
    let mut doors = JoinSet::new();
    let places = Arc::new(Semaphore::new(shared.config.limits.connections));
    if let Some(Captured { resolver, listeners, packets, names }) = capture {
        let ports: Vec<u16> =
            listeners.iter().filter_map(|l| l.local_addr().ok()).map(|a| a.port()).collect();
        for socket in packets {
            doors.spawn(watch::watch(Arc::clone(&shared), socket, ports.clone(), Arc::clone(&names)));
        }
        if let Ok(socket) = tokio::net::UdpSocket::from_std(resolver) {
            doors.spawn(capture::resolve(Arc::clone(&shared), socket, Arc::clone(&names)));
        }
        for listener in listeners {
            doors.spawn(accept(listener, Some(Arc::clone(&names)), Arc::clone(&shared), Arc::clone(&places)));
        }
    }
    accept(listener, None, shared, places).await;
}

/// Accepts for the proxy, or for capture when there are `names`.
async fn accept(
    listener: TcpListener,
    names: Option<Arc<Names>>,
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let answers = Arc::new(Semaphore::new(REFUSALS));
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) if admitted(&shared, names.is_none(), peer) => stream,
                Ok(_) => continue,
                Err(_) => {
                    // Out of descriptors: those of ending connections come back.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        let shared = Arc::clone(&shared);
        match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => {
                let names = names.clone();
                connections.spawn(async move {
                    let _ = stream.set_nodelay(true);
                    match names {
                        None => connection(shared, stream).await,
                        Some(names) => capture::serve(shared, stream, names).await,
                    }
                    drop(place);
                });
            }
            Err(_) => {
                let denial =
                    Denial::new(Reason::TooManyConnections, "too many connections at once; close some");
                let attempt = Attempt::new(&shared, Door::Connect, "", 0);
                match Arc::clone(&answers).try_acquire_owned() {
                    Ok(place) => {
                        connections.spawn(async move {
                            refuse(stream, attempt, denial).await;
                            drop(place);
                        });
                    }
                    Err(_) => attempt.denied(&denial),
                }
            }
        }
    }
}

/// Whether a connection to the proxy's listener is the run's. Captured ports exist in its own namespace only.
fn admitted(shared: &Shared, proxy: bool, peer: std::net::SocketAddr) -> bool {
    !proxy || shared.config.admits.as_ref().is_none_or(|admits| admits(peer))
}

/// Serves the one request of a connection.
async fn connection(shared: Arc<Shared>, mut stream: TcpStream) {
    let limits = &shared.config.limits;
    let mut buf = Vec::with_capacity(2048);
    let head = match timeout(limits.head_time, read_head(&shared, &mut stream, &mut buf)).await {
        Ok(Ok(Some(head))) => head,
        Ok(Ok(None)) => return,
        Ok(Err(denial)) => return refuse(stream, Attempt::new(&shared, Door::Http, "", 0), denial).await,
        Err(_) => {
            let denial = Denial::new(Reason::HeadTimeout, "the request took too long to arrive");
            return refuse(stream, Attempt::new(&shared, Door::Http, "", 0), denial).await;
        }
    };
    match &head.target {
        Target::Tunnel(host, port) => {
            let early = buf.split_off(head.len);
            tunnel::serve(&shared, stream, early, host, *port).await;
        }
        Target::Absolute(..) | Target::Origin(_) => {
            http::serve(shared, Prefixed::new(buf, stream), head).await
        }
    }
}

/// Reads up to the end of the head, and whatever came with it. `None`: the client left before it said anything.
pub(super) async fn read_head<S: Stream>(
    shared: &Shared,
    stream: &mut S,
    buf: &mut Vec<u8>,
) -> Result<Option<Head>, Denial> {
    let limits = &shared.config.limits;
    let bad = |e: head::HeadError| {
        let reason = if e == head::HOST_MISMATCH { Reason::HostMismatch } else { Reason::BadRequest };
        Denial::new(reason, e.to_string())
    };
    let mut seen = 0;
    loop {
        if let Some(end) = head::end_of_head(buf, seen).map_err(bad)? {
            let head = buf.get(..end).unwrap_or_default();
            return head::parse(head, limits.headers).map(Some).map_err(bad);
        }
        seen = buf.len();
        if seen >= limits.head_bytes {
            return Err(Denial::new(Reason::BadRequest, "the request's head is too long"));
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) if buf.is_empty() => return Ok(None),
            Ok(0) | Err(_) => return Err(Denial::new(Reason::BadRequest, "the request is cut short")),
            Ok(n) => buf.extend_from_slice(chunk.get(..n).unwrap_or_default()),
        }
    }
}

/// Ends the attempt, and answers with the reason.
pub(super) async fn refuse<S: Stream>(stream: S, attempt: Attempt, denial: Denial) {
    // On record before the client hears of it: the run may end while the answer is on its way.
    attempt.denied(&denial);
    last_words(stream, &plain_answer(&denial)).await;
}

/// Sends `answer` and closes, so that the client gets to read it.
pub(super) async fn last_words<S: Stream>(mut stream: S, answer: &[u8]) {
    let _ = timeout(Duration::from_secs(5), async {
        stream.write_all(answer).await?;
        stream.shutdown().await?;
        // A close with unread bytes resets the connection, and the client would lose the answer.
        let mut sink = [0; 4096];
        let mut left: usize = 1 << 20;
        while let Ok(n @ 1..) = stream.read(&mut sink).await {
            left = left.saturating_sub(n);
            if left == 0 {
                break;
            }
        }
        std::io::Result::Ok(())
    })
    .await;
}

pub(super) fn plain_answer(denial: &Denial) -> Vec<u8> {
    let status = denial.status();
    let phrase =
        hyper::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason()).unwrap_or("Refused");
    let body = format!("jess: {}\n", denial.message);
    format!(
        "HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         X-Jess: {}\r\nConnection: close\r\n\r\n{body}",
        body.len(),
        denial.message,
    )
    .into_bytes()
}

/// One attempt to get out. It is recorded when it ends, also when it is cut by the end of the run.
pub(super) struct Attempt {
    shared: Arc<Shared>,
    event: Option<Event>,
    start: Instant,
    pub up: AtomicU64,
    pub down: AtomicU64,
}

impl Attempt {
    pub(super) fn new(shared: &Arc<Shared>, door: Door, host: &str, port: u16) -> Self {
        let event = Event::new(door, host, port).ended(Verdict::Stopped, Reason::RunEnded);
        Attempt {
            shared: Arc::clone(shared),
            event: Some(event),
            start: Instant::now(),
            up: 0.into(),
            down: 0.into(),
        }
    }

    pub(super) fn event(&mut self, change: impl FnOnce(&mut Event)) {
        if let Some(event) = &mut self.event {
            change(event);
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn denied(mut self, denial: &Denial) {
        self.event(|e| {
            e.address = denial.address.or(e.address);
            (e.verdict, e.reason) = (denial.verdict, denial.reason);
        });
    }

    /// The attempt goes on under another name.
    pub(super) fn forget(mut self) {
        self.event = None;
    }

    pub(super) fn ended(mut self, reason: Reason) {
        let verdict = match reason {
            Reason::Done | Reason::Broken => Verdict::Allowed,
            _ => Verdict::Stopped,
        };
        self.event(|e| (e.verdict, e.reason) = (verdict, reason));
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(mut event) = self.event.take() {
            event.bytes_up = self.up.load(Relaxed);
            event.bytes_down = self.down.load(Relaxed);
            event.duration_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.shared.log.record(event);
        }
    }
}
