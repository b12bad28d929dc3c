//! The daemon's end.
//!
//! [`JUDGES`] threads wait in `accept`; the kernel wakes one for a call, which reads, judges and answers it. So a call
//! costs one switch to the daemon and one back. Signals, idleness and what became of the binary and the socket are
//! the first thread's.

use super::cache::Cache;
use super::wire::{self, Reply, YOURSELF};
use crate::config::{Config, Places};
use crate::hook::{self, Answer, Environment};
use crate::policy::{Snapshot, World};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Events judged at once; more wait in the socket's queue, and their hooks judge by themselves when that takes long.
const JUDGES: usize = 8;
/// How long a client may take to send its event, which lies ready when it connects, and to take the answer.
const CLIENT_PATIENCE: Duration = Duration::from_secs(1);
/// How long calls are waited for at the end; a hook whose daemon ends without an answer judges by itself.
const LAST_CALLS: Duration = Duration::from_secs(2);
/// With every judge busy for this many ticks without an answer the daemon makes way for another.
const STUCK: u32 = 10;
/// How often idleness and a replaced binary or socket are looked for.
const TICK: Duration = Duration::from_secs(1);

/// Why no daemon runs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another one does.
    #[error("a daemon is already running for this user")]
    Running,
    /// The socket could not be made.
    #[error("cannot serve in {dir}: {source}")]
    Io {
        /// The directory of the socket.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Serves until a signal, `idle` without a call, or the binary or the socket is replaced or gone. Blocks.
pub fn serve(dir: &Path, jess: &Path, idle: Duration) -> Result<(), Error> {
    let io = |source| Error::Io { dir: dir.to_path_buf(), source };
    super::make(dir).map_err(io)?;
    let _lock = lock(dir)?;
    let socket = dir.join(super::SOCKET);
    // The lock is held, so a socket that is there belongs to a daemon that is gone.
    match fs::remove_file(&socket) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(io(e)),
        _ => {}
    }
    let listener = UnixListener::bind(&socket).map_err(io)?;
    // Gone already: nobody would ever ask.
    let served = identity(&socket).ok_or_else(|| io(io::ErrorKind::NotFound.into()))?;
    let still = || identity(&socket) == Some(served);
    let shared = Arc::new(Shared {
        jess: jess.to_path_buf(),
        cache: Cache::default(),
        here: place_of(&std::process::id().to_string()),
        started: Instant::now(),
        last: AtomicU64::new(0),
        busy: AtomicUsize::new(0),
        answered: AtomicUsize::new(0),
    });
    let listener = Arc::new(listener);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(io)?;
    // Before the first answer: whoever was answered may send a signal, which must not leave the socket behind.
    let signals = {
        let _in = runtime.enter();
        [signal(SignalKind::terminate()).map_err(io)?, signal(SignalKind::interrupt()).map_err(io)?]
    };
    for _ in 0..JUDGES {
        let (listener, shared) = (Arc::clone(&listener), Arc::clone(&shared));
        // They end with the process.
        std::thread::Builder::new()
            .stack_size(hook::STACK)
            .spawn(move || serve_calls(&listener, &shared))
            .map_err(io)?;
    }
    // The engine is what takes long to make: it is made before the first call needs it.
    let _ = std::thread::Builder::new().spawn(crate::scan::Engine::builtin);
    runtime.block_on(watch(&shared, signals, &still, idle));
    // What stands there now may belong to another daemon.
    if still() {
        let _ = fs::remove_file(&socket);
    }
    let end = Instant::now() + LAST_CALLS;
    while shared.busy.load(Ordering::SeqCst) > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Holds the lock of the daemon and writes the process id into it.
fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join(super::LOCK);
    let io = |source| Error::Io { dir: path.clone(), source };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(&path)
        .map_err(io)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| Error::Running)?;
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(io)?;
    Ok(file)
}

/// What every call shares.
struct Shared {
    jess: PathBuf,
    cache: Cache,
    /// Mount namespace and root directory: a client elsewhere sees other files.
    here: Option<[(u64, u64); 2]>,
    started: Instant,
    /// Seconds after the start at which the last call came.
    last: AtomicU64,
    /// Calls that are being answered.
    busy: AtomicUsize,
    /// Calls that were answered.
    answered: AtomicUsize,
}

/// Returns when there is a reason to end.
async fn watch(shared: &Shared, signals: [Signal; 2], reachable: &dyn Fn() -> bool, idle: Duration) {
    let binary = identity(&shared.jess);
    let [mut term, mut int] = signals;
    let mut tick = tokio::time::interval(TICK);
    let mut stuck = (0, 0);
    loop {
        tokio::select! {
            _ = term.recv() => return,
            _ = int.recv() => return,
            _ = tick.tick() => {
                let quiet = shared.started.elapsed().as_secs().saturating_sub(shared.last.load(Ordering::Relaxed));
                let answered = shared.answered.load(Ordering::SeqCst);
                let all_busy = shared.busy.load(Ordering::SeqCst) >= JUDGES;
                stuck = if all_busy && stuck.0 == answered { (answered, stuck.1 + 1) } else { (answered, 0) };
                // Nobody can reach a daemon whose socket is gone.
                if quiet >= idle.as_secs() || identity(&shared.jess) != binary || !reachable() || stuck.1 >= STUCK {
                    return;
                }
            }
        }
    }
}

/// One judge: answers call after call.
fn serve_calls(listener: &UnixListener, shared: &Shared) {
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Out of descriptors: the clients judge by themselves meanwhile.
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        shared.busy.fetch_add(1, Ordering::SeqCst);
        shared.last.store(shared.started.elapsed().as_secs(), Ordering::Relaxed);
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client(&stream, shared)));
        shared.answered.fetch_add(1, Ordering::SeqCst);
        shared.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

fn client(mut stream: &UnixStream, shared: &Shared) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid != rustix::process::geteuid() {
        return Ok(());
    }
    let end = Instant::now() + CLIENT_PATIENCE;
    stream.set_read_timeout(Some(CLIENT_PATIENCE))?;
    let mut length = [0; 4];
    read_by(stream, &mut length, end)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > wire::FRAME_MAX {
        return Ok(());
    }
    let mut bytes = vec![0; length];
    read_by(stream, &mut bytes, end)?;
    let same_place = shared.here.is_some() && place_of(&peer.pid.to_string()) == shared.here;
    let reply = if same_place { judge(&bytes, shared) } else { yourself() };
    let reply = wire::reply(&reply);
    // A short one fits the socket's buffer, whether it is read or not.
    if reply.len() > 32 << 10 {
        stream.set_write_timeout(Some(CLIENT_PATIENCE))?;
    }
    stream.write_all(&reply)
}

/// Fills `bytes` by `end`, however slowly they come.
fn read_by(mut stream: &UnixStream, bytes: &mut [u8], end: Instant) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        if Instant::now() >= end {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match stream.read(rest) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => rest = rest.get_mut(n..).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn yourself() -> Reply {
    Reply { exit: YOURSELF, ..Reply::default() }
}

/// Judges one request; a panic leaves it to the client.
fn judge(bytes: &[u8], shared: &Shared) -> Reply {
    let Some(request) = wire::read_request(bytes) else { return yourself() };
    let mut vars = BTreeMap::new();
    for entry in request.env.split(|b| *b == 0).filter(|e| !e.is_empty()) {
        let text = String::from_utf8_lossy(entry);
        // A name may start with `=`, as std::env takes it.
        if let Some(at) = text.char_indices().skip(1).find(|(_, c)| *c == '=').map(|(at, _)| at) {
            vars.insert(text[..at].to_owned(), text[at + 1..].to_owned());
        }
    }
    let caller = Caller { vars, shared, world: Snapshot::default() };
    let judged =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hook::answer(request.event, &caller)));
    match judged {
        Ok(Answer { document, message, exit }) => Reply {
            exit,
            document: document
                .map(|d| format!("{}\n", crate::sanitise::out::json(&d.to_string())).into_bytes())
                .unwrap_or_default(),
            message: crate::sanitise::out::lines(&message.unwrap_or_default()).into_bytes(),
        },
        Err(_) => yourself(),
    }
}

/// Device and inode of a process's mount namespace and root directory.
fn place_of(pid: &str) -> Option<[(u64, u64); 2]> {
    let id = |path: String| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    Some([id(format!("/proc/{pid}/ns/mnt"))?, id(format!("/proc/{pid}/root/"))?])
}

/// Which file the binary is.
fn identity(jess: &Path) -> Option<(u64, u64, i64)> {
    fs::metadata(jess).ok().map(|m| (m.dev(), m.ino(), m.mtime()))
}

/// The hook process that asks: its environment, this process's disk.
struct Caller<'a> {
    vars: BTreeMap<String, String>,
    shared: &'a Shared,
    world: Snapshot,
}

impl Environment for Caller<'_> {
    fn var(&self, name: &str) -> Option<String> {
        self.vars.get(name).cloned()
    }

    fn vars(&self) -> BTreeMap<String, String> {
        self.vars.clone()
    }

    fn world(&self) -> &dyn World {
        &self.world
    }

    fn state(&self) -> Option<PathBuf> {
        crate::audit::state::dir(|name| self.var(name))
    }

    fn now(&self) -> u64 {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs())
    }

    fn config(&self, home: &Path, project: &Path) -> Arc<Config> {
        self.shared.cache.get(&Places::of(&|n| self.var(n), home, project))
    }

    fn jess(&self) -> PathBuf {
        self.shared.jess.clone()
    }
}
