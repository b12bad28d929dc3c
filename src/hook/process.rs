//! The process that a hook is: one event on standard input, one answer, and a deadline that holds whatever happens.
//!
//! Exits 0 with one JSON document or nothing, or 2; never anything else. A panic, an event that cannot be read and the
//! hook's own deadline all end in a denial.

use super::{Answer, DEADLINE, Environment, STACK, answer_noting, event};
use crate::config::{Config, Places};
use crate::exit::Exit;
use crate::policy::{Snapshot, World};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Answers `event`, or the one on standard input.
///
/// This thread judges and another one keeps the deadline: whoever is first answers. Where the main thread's stack cannot
/// be made deep enough a third one judges.
pub fn judge(process: &Process, event: Option<Vec<u8>>) -> Exit {
    std::panic::set_hook(Box::new(|_| {}));
    if !outlives_file_limit() {
        return give(&Answer::fault("", "the limit on file sizes would end this process"));
    }
    let turn = Arc::new(Turn::default());
    let watched = Arc::clone(&turn);
    let end = Instant::now() + DEADLINE;
    // Ends with the process; it is not waited for.
    let watch = std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::park_timeout(left);
        }
        if watched.take() {
            let exit = give(&Answer::fault(&watched.event(), "it took too long"));
            std::process::exit(i32::from(exit.code()));
        }
    });
    if watch.is_err() {
        return give(&Answer::fault("", "no thread could be started"));
    }
    let answer = if deep_stack() {
        Ok(answer(process, event, &turn))
    } else {
        std::thread::scope(|s| {
            let run = || answer(process, event, &turn);
            let judge = std::thread::Builder::new().stack_size(STACK).spawn_scoped(s, run);
            judge.map(|j| {
                j.join().unwrap_or_else(|_| Answer::fault("", "an internal error; please report it"))
            })
        })
    };
    let answer = answer.unwrap_or_else(|_| Answer::fault("", "no thread could be started"));
    if !turn.take() {
        // The deadline has passed and its thread is writing; it ends the process.
        loop {
            std::thread::park();
        }
    }
    let exit = give(&answer);
    if process.starts_daemon {
        process.start_daemon();
    }
    exit
}

/// Who answers, and for which event.
#[derive(Default)]
struct Turn {
    taken: AtomicBool,
    event: Mutex<String>,
}

impl Turn {
    /// True for the first that asks.
    fn take(&self) -> bool {
        !self.taken.swap(true, Ordering::SeqCst)
    }

    fn event(&self) -> String {
        self.event.lock().map(|e| e.clone()).unwrap_or_default()
    }
}

/// Lets the main thread's stack grow to [`STACK`]: the kernel looks at the limit when the stack is touched, and
/// leaves at least 128 MiB below it free.
fn deep_stack() -> bool {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Stack);
    let wanted = STACK as u64;
    if limit.current.is_none_or(|c| c >= wanted) {
        return true;
    }
    limit.current = Some(wanted);
    setrlimit(Resource::Stack, limit).is_ok()
}

fn answer(process: &Process, event: Option<Vec<u8>>, turn: &Turn) -> Answer {
    let judged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let event = match event.map_or_else(read, Ok) {
            Ok(event) => event,
            Err(_) => return Answer::fault("", "standard input cannot be read"),
        };
        answer_noting(&event, process, &|name| {
            if let Ok(mut event) = turn.event.lock() {
                name.clone_into(&mut event);
            }
        })
    }));
    judged.unwrap_or_else(|_| Answer::fault(&turn.event(), "an internal error; please report it"))
}

/// The event on standard input, at most one byte longer than may be judged.
pub fn read() -> std::io::Result<Vec<u8>> {
    let mut event = Vec::with_capacity(16 << 10);
    std::io::stdin().lock().take(event::MAX as u64 + 1).read_to_end(&mut event)?;
    Ok(event)
}

/// Writes the answer and says with what to exit.
fn give(answer: &Answer) -> Exit {
    if let Some(message) = &answer.message {
        crate::sanitise::out::stderr(message);
    }
    if let Some(document) = &answer.document {
        let mut line = crate::sanitise::out::json(&document.to_string());
        line.push('\n');
        // A denial that cannot be written must not turn into silence.
        if put(line.as_bytes()).is_err() {
            return Exit::REFUSED;
        }
    }
    if answer.exit == 0 { Exit::OK } else { Exit::REFUSED }
}

/// Writes `bytes` to standard output, or says why nobody gets them.
///
/// A standard output that was closed is `/dev/null` by now (the runtime opens it), and one that is open for reading alone
/// takes everything in silence when it is written to through `std`. Both are errors here.
pub fn put(bytes: &[u8]) -> std::io::Result<()> {
    /// Major 1, minor 3 (`Documentation/admin-guide/devices.txt` of the kernel).
    const NULL_DEVICE: u64 = 0x103;
    let out = std::io::stdout();
    let stat = rustix::fs::fstat(&out)?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_char_device() && stat.st_rdev == NULL_DEVICE {
        return Err(std::io::Error::other("standard output is closed or leads nowhere"));
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::write(&out, rest) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(n) => rest = rest.get(n..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(why) => return Err(why.into()),
        }
    }
    Ok(())
}

/// Sees to it that writing beyond a limit on file sizes is an error and not the end of the process (SIGXFSZ), which a
/// client without `onFailure` takes for silence. Whether it could; only a limit that the files of jess can reach is worth
/// the effort.
pub fn outlives_file_limit() -> bool {
    use rustix::process::{Resource, getrlimit};
    if getrlimit(Resource::Fsize).current.is_none_or(|limit| limit >= 4 * crate::audit::ROTATE) {
        return true;
    }
    // A handler stays for the life of the process, whatever becomes of the runtime that set it.
    let handler = std::panic::catch_unwind(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let _in = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(libc::SIGXFSZ)).map(drop)
    });
    matches!(handler, Ok(Ok(())))
}

/// This process.
#[derive(Debug, Default)]
pub struct Process {
    /// A configuration file named on the command line.
    config: Option<PathBuf>,
    starts_daemon: bool,
    /// The jess binary where this one is another.
    jess: Option<PathBuf>,
    world: Snapshot,
}

impl Process {
    /// `jess hook`, with a configuration file that counts before the operator's.
    pub fn new(config: Option<PathBuf>) -> Process {
        Process { config, ..Process::default() }
    }

    /// A binary that lies beside `jess`, and starts the daemon for the next call when `starts_daemon`.
    pub fn beside(jess: PathBuf, starts_daemon: bool) -> Process {
        Process { starts_daemon, jess: Some(jess), ..Process::default() }
    }

    /// Starts the daemon, unless the operator does not want one. It leaves this session and holds none of its files.
    fn start_daemon(&self) {
        use std::process::{Command, Stdio};
        let home = self.var("HOME").map(PathBuf::from).unwrap_or_default();
        if !self.config(&home, Path::new("/nonexistent")).daemon {
            return;
        }
        let kept = ["HOME", "PATH", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "LANG"];
        let env = kept.iter().filter_map(|k| std::env::var_os(k).map(|v| (k, v)));
        let _ = Command::new(self.jess())
            .args(["daemon", "--detach"])
            .env_clear()
            .envs(env)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
    }
}

impl Environment for Process {
    fn var(&self, name: &str) -> Option<String> {
        std::env::var_os(name).map(|v| v.to_string_lossy().into_owned())
    }

    fn vars(&self) -> BTreeMap<String, String> {
        std::env::vars_os()
            .map(|(k, v)| (k.to_string_lossy().into_owned(), v.to_string_lossy().into_owned()))
            .collect()
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
        let places = Places { flag: self.config.clone(), ..Places::of(&|n| self.var(n), home, project) };
        Arc::new(crate::config::load(&places))
    }

    fn jess(&self) -> PathBuf {
        self.jess.clone().or_else(|| std::env::current_exe().ok()).unwrap_or_else(|| "/proc/self/exe".into())
    }
}
