//! The daemon's end.

use super::cache::Cache;
use super::wire::{self, Reply, YOURSELF};
use crate::config::{Config, Places};
use crate::hook::{self, Answer, Environment};
use crate::policy::{Disk, World};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

/// Events judged at once.
const JUDGES: usize = 8;
/// Clients connected at once; more wait in the socket's queue.
const CLIENTS: usize = 256;
/// How long a client may take to send its event and to take the answer.
const CLIENT_PATIENCE: Duration = Duration::from_secs(5);
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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(JUDGES)
        .thread_keep_alive(Duration::from_secs(60))
        .thread_stack_size(hook::STACK)
        .build()
        .map_err(io)?;
    let outcome = runtime.block_on(async {
        let listener = UnixListener::bind(&socket)?;
        run(listener, jess, &socket, idle).await
    });
    outcome.map_err(io)
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
}

async fn run(listener: UnixListener, jess: &Path, socket: &Path, idle: Duration) -> io::Result<()> {
    // Gone already: nobody would ever ask.
    let served = identity(socket).ok_or(io::ErrorKind::NotFound)?;
    let still = || identity(socket) == Some(served);
    let outcome = answer(listener, jess, still, idle).await;
    // What stands there now may belong to another daemon.
    if still() {
        let _ = fs::remove_file(socket);
    }
    outcome
}

/// Answers calls while `reachable` and until there is another reason to end.
async fn answer(
    listener: UnixListener,
    jess: &Path,
    reachable: impl Fn() -> bool,
    idle: Duration,
) -> io::Result<()> {
    let shared = Arc::new(Shared {
        jess: jess.to_path_buf(),
        cache: Cache::default(),
        here: place_of(&std::process::id().to_string()),
        started: Instant::now(),
        last: AtomicU64::new(0),
    });
    let binary = identity(jess);
    // The engine is what takes long to make: it is made before the first call needs it.
    tokio::task::spawn_blocking(crate::scan::Engine::builtin);
    let clients = Arc::new(Semaphore::new(CLIENTS));
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            _ = term.recv() => return Ok(()),
            _ = int.recv() => return Ok(()),
            _ = tick.tick() => {
                let quiet = shared.started.elapsed().as_secs().saturating_sub(shared.last.load(Ordering::Relaxed));
                // Nobody can reach a daemon whose socket is gone.
                if quiet >= idle.as_secs() || identity(jess) != binary || !reachable() {
                    return Ok(());
                }
            }
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // Out of descriptors: the clients judge by themselves meanwhile.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                };
                shared.last.store(shared.started.elapsed().as_secs(), Ordering::Relaxed);
                let (shared, clients) = (Arc::clone(&shared), Arc::clone(&clients));
                tokio::spawn(async move {
                    let Ok(_permit) = clients.acquire().await else { return };
                    let _ = tokio::time::timeout(CLIENT_PATIENCE, client(stream, shared)).await;
                });
            }
        }
    }
}

async fn client(mut stream: UnixStream, shared: Arc<Shared>) -> io::Result<()> {
    let peer = stream.peer_cred()?;
    if peer.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let length = stream.read_u32_le().await? as usize;
    if length > wire::FRAME_MAX {
        return Ok(());
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    let same_place =
        shared.here.is_some() && peer.pid().and_then(|p| place_of(&p.to_string())) == shared.here;
    let reply = if same_place {
        tokio::task::spawn_blocking(move || judge(&bytes, &shared)).await.unwrap_or_else(|_| yourself())
    } else {
        yourself()
    };
    stream.write_all(&wire::reply(&reply)).await
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
    let caller = Caller { vars, shared };
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
}

impl Environment for Caller<'_> {
    fn var(&self, name: &str) -> Option<String> {
        self.vars.get(name).cloned()
    }

    fn vars(&self) -> BTreeMap<String, String> {
        self.vars.clone()
    }

    fn world(&self) -> &dyn World {
        &Disk
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
