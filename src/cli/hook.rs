//! `jess hook`: one entry point for every Claude Code hook event.
//!
//! Exits 0 with one JSON document or nothing, or 2; never anything else. A panic, an event that cannot be read and the
//! hook's own deadline all end in a denial.

use crate::config::{Config, Places};
use crate::exit::Exit;
use crate::hook::{self, Answer, DEADLINE, Environment};
use crate::policy::{Disk, World};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};

/// Stack of the thread that judges: deep but bounded nesting must not overflow it. Only touched pages cost memory.
const STACK: usize = 64 << 20;

/// Judge one Claude Code hook event (JSON on standard input).
#[derive(clap::Args)]
pub struct Args {
    /// A configuration file that counts before the operator's.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// For an agent's frontmatter: allow these Bash commands and block every other.
    BashAllowlist(super::allowlist::BashArgs),
    /// For an agent's frontmatter: allow WebFetch to these hosts and block every other.
    WebfetchAllowlist(super::allowlist::WebArgs),
    /// Run a shell command with its output sealed (what a dispatched session's Bash calls are rewritten to).
    #[command(hide = true)]
    Exec {
        /// The command, for bash.
        command: String,
    },
}

/// Runs the command.
pub fn run(args: Args) -> Exit {
    match args.action {
        None => judge(args.config),
        Some(Action::BashAllowlist(args)) => guarded(|| super::allowlist::bash(&args)),
        Some(Action::WebfetchAllowlist(args)) => guarded(|| super::allowlist::webfetch(&args)),
        Some(Action::Exec { command }) => hook::exec::run(&command),
    }
}

/// A hook that panics blocks.
fn guarded(hook: impl FnOnce() -> Exit) -> Exit {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(hook)).unwrap_or(Exit::REFUSED)
}

/// Reads one event, answers it.
pub fn judge(config: Option<PathBuf>) -> Exit {
    let process = Process { config };
    std::panic::set_hook(Box::new(|_| {}));
    let known = Arc::new(Mutex::new(String::new()));
    let (send, receive) = mpsc::channel();
    let noted = Arc::clone(&known);
    let worker = std::thread::Builder::new().name("judge".into()).stack_size(STACK).spawn(move || {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut stdin = Vec::new();
            let limit = hook::event::MAX as u64 + 1;
            match std::io::stdin().lock().take(limit).read_to_end(&mut stdin) {
                Ok(_) => hook::answer_noting(&stdin, &process, &|name| {
                    if let Ok(mut known) = noted.lock() {
                        name.clone_into(&mut known);
                    }
                }),
                Err(_) => Answer::fault("", "standard input cannot be read"),
            }
        }));
        let _ = send.send(outcome);
    });
    let name = || known.lock().map(|n| n.clone()).unwrap_or_default();
    let answer = match worker {
        Err(_) => Answer::fault("", "no thread could be started"),
        Ok(_) => match receive.recv_timeout(DEADLINE) {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Answer::fault(&name(), "an internal error; please report it"),
            Err(_) => Answer::fault(&name(), "it took too long"),
        },
    };
    give(&answer)
}

/// Writes the answer and says with what to exit.
fn give(answer: &Answer) -> Exit {
    if let Some(message) = &answer.message {
        let _ = writeln!(std::io::stderr(), "{message}");
    }
    if let Some(document) = &answer.document {
        let mut line = document.to_string();
        line.push('\n');
        let mut out = std::io::stdout().lock();
        // A denial that cannot be written must not turn into silence.
        if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
            return Exit::REFUSED;
        }
    }
    if answer.exit == 0 { Exit::OK } else { Exit::REFUSED }
}

/// This process.
#[derive(Default)]
struct Process {
    /// A configuration file named on the command line.
    config: Option<PathBuf>,
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
        &Disk
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
        std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into())
    }
}
