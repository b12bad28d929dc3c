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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};

/// Judge one Claude Code hook event (JSON on standard input).
#[derive(clap::Args)]
pub struct Args {
    /// A configuration file that counts before the operator's.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Start the daemon for the next call when the answer is given.
    #[arg(long, hide = true)]
    start_daemon: bool,
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
    Exec(ExecArgs),
}

/// Runs the command.
pub fn run(args: Args) -> Exit {
    match args.action {
        None => judge(Process { config: args.config, starts_daemon: args.start_daemon }),
        Some(Action::BashAllowlist(args)) => guarded(|| super::allowlist::bash(&args)),
        Some(Action::WebfetchAllowlist(args)) => guarded(|| super::allowlist::webfetch(&args)),
        Some(Action::Exec(args)) => exec(args),
    }
}

/// How a rewritten command is run.
#[derive(clap::Args)]
struct ExecArgs {
    /// Do not seal the output.
    #[arg(long)]
    plain: bool,
    /// Seal and print the output while the command runs.
    #[arg(long)]
    stream: bool,
    /// The weakest sandbox that will do: landlock or full.
    #[arg(long, requires = "project", value_parser = ["landlock", "full"])]
    sandbox: Option<String>,
    /// The directory that is writable in the sandbox.
    #[arg(long)]
    project: Option<PathBuf>,
    /// The command, for bash.
    #[arg(last = true, required = true)]
    command: String,
}

fn exec(args: ExecArgs) -> Exit {
    use hook::exec::{Tier, Wrapping};
    let tier = |word: String| if word == "full" { Tier::Full } else { Tier::Any };
    let process = Process::default();
    let how = Wrapping {
        plain: args.plain,
        stream: args.stream,
        sandbox: args.sandbox.map(tier).zip(args.project),
    };
    let net = match &how.sandbox {
        Some((_, project)) => {
            let home = process.var("HOME").map(PathBuf::from).unwrap_or_default();
            process.config(&home, project).net.clone()
        }
        None => Vec::new(),
    };
    let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
    hook::exec::run(&hook::exec::argv(&args.command, &how, &process.jess(), &cwd, &net), &how)
}

/// A hook that panics blocks.
fn guarded(hook: impl FnOnce() -> Exit) -> Exit {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(hook)).unwrap_or(Exit::REFUSED)
}

/// Reads one event, answers it.
///
/// This thread judges and another one keeps the deadline: whoever is first answers. Where the main thread's stack cannot
/// be made deep enough a third one judges.
pub fn judge(process: Process) -> Exit {
    std::panic::set_hook(Box::new(|_| {}));
    let turn = Arc::new(Turn::default());
    let (stop, stopped) = mpsc::channel::<()>();
    let watched = Arc::clone(&turn);
    let watch = std::thread::Builder::new().name("deadline".into()).stack_size(256 << 10).spawn(move || {
        if stopped.recv_timeout(DEADLINE) == Err(mpsc::RecvTimeoutError::Timeout) && watched.take() {
            let exit = give(&Answer::fault(&watched.event(), "it took too long"));
            std::process::exit(i32::from(exit.code()));
        }
    });
    if watch.is_err() {
        return give(&Answer::fault("", "no thread could be started"));
    }
    let answer = if deep_stack() {
        Ok(answer(&process, &turn))
    } else {
        std::thread::scope(|s| {
            let run = || answer(&process, &turn);
            let judge = std::thread::Builder::new().stack_size(hook::STACK).spawn_scoped(s, run);
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
    drop(stop);
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

/// Lets the main thread's stack grow to [`hook::STACK`]: the kernel looks at the limit when the stack is touched, and
/// leaves at least 128 MiB below it free.
fn deep_stack() -> bool {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Stack);
    let wanted = hook::STACK as u64;
    if limit.current.is_none_or(|c| c >= wanted) {
        return true;
    }
    limit.current = Some(wanted);
    setrlimit(Resource::Stack, limit).is_ok()
}

fn answer(process: &Process, turn: &Turn) -> Answer {
    let judged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut stdin = Vec::new();
        let limit = hook::event::MAX as u64 + 1;
        match std::io::stdin().lock().take(limit).read_to_end(&mut stdin) {
            Ok(_) => hook::answer_noting(&stdin, process, &|name| {
                if let Ok(mut event) = turn.event.lock() {
                    name.clone_into(&mut event);
                }
            }),
            Err(_) => Answer::fault("", "standard input cannot be read"),
        }
    }));
    judged.unwrap_or_else(|_| Answer::fault(&turn.event(), "an internal error; please report it"))
}

/// Writes the answer and says with what to exit.
fn give(answer: &Answer) -> Exit {
    if let Some(message) = &answer.message {
        crate::sanitise::out::stderr(message);
    }
    if let Some(document) = &answer.document {
        let mut line = crate::sanitise::out::json(&document.to_string());
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
pub struct Process {
    /// A configuration file named on the command line.
    config: Option<PathBuf>,
    starts_daemon: bool,
}

impl Process {
    /// A hook that starts the daemon for the next one.
    pub fn starting_daemon() -> Process {
        Process { starts_daemon: true, ..Process::default() }
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
