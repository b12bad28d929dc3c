//! Entry points by how far the command is trusted.
//!
//! They start one command, wait for its end and keep its output. The caller must have one thread; a program with more
//! starts `jess run` as a child.
//!
//! ```no_run
//! use jess::sandbox::level::{Task, run_untrusted};
//!
//! let task = Task { target: Some("/srv/hostile".as_ref()), ..Task::new(["file", "/srv/hostile/a.out"]) };
//! let done = run_untrusted(&task)?;
//! println!("{} bytes, tier {}", done.outcome.stdout.written, done.report.tier);
//! # Ok::<(), jess::sandbox::Error>(())
//! ```

use super::profile;
use super::{Access, Error, Grant, Net, Outcome, Output, Report, Spec, Stdin, Tier, Weakened, env, spawn};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// A command, and what it works on.
#[derive(Debug, Clone, Default)]
pub struct Task<'a> {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// What it reads.
    pub target: Option<&'a Path>,
    /// Where it writes.
    pub out: Option<&'a Path>,
    /// Variables beyond the allowlist.
    pub env: Vec<(OsString, OsString)>,
    /// Wall-clock limit.
    pub timeout: Option<Duration>,
}

impl Task<'_> {
    /// The command `argv`, with nothing to work on.
    pub fn new<S: Into<OsString>>(argv: impl IntoIterator<Item = S>) -> Self {
        Task { argv: argv.into_iter().map(Into::into).collect(), ..Task::default() }
    }

    fn spec(&self) -> Spec {
        let mut variables = env::base_of_process();
        for (name, value) in &self.env {
            env::set(&mut variables, name, value);
        }
        let target = self.target.map(|path| Grant { path: path.into(), access: Access::ReadOnly });
        let out = self.out.map(|path| Grant { path: path.into(), access: Access::ReadWrite });
        Spec {
            argv: self.argv.clone(),
            env: variables,
            grants: target.into_iter().chain(out).collect(),
            stdin: Stdin::Null,
            output: Output::Captured,
            timeout: self.timeout,
            ..Spec::default()
        }
    }
}

/// How a task ended.
#[derive(Debug)]
pub struct Done {
    /// The ending, the output, the use of resources.
    pub outcome: Outcome,
    /// What held.
    pub report: Report,
}

/// Runs a hostile command: tier `full` or nothing, the limits of profile `strict`, no network, no input.
///
/// # Errors
/// What [`spawn`] and [`super::Sandbox::supervise`] say. Where tier `full` is not to be had, nothing is run.
pub fn run_untrusted(task: &Task<'_>) -> Result<Done, Error> {
    run(&Spec { net: Net::Empty, ..strict(task) })
}

/// The same for a command that may reach something: `door` gets the sandbox before the command is waited for, takes its
/// sockets and serves them ([`super::Sandbox::take_sockets`]); `net` says which there are. What `door` returns lives
/// until the end.
///
/// # Errors
/// As for [`run_untrusted`].
pub fn run_untrusted_networked<D>(
    task: &Task<'_>,
    net: Net,
    door: impl FnOnce(&mut super::Sandbox) -> D,
) -> Result<Done, Error> {
    let spec = Spec { net, ..strict(task) };
    let mut sandbox = spawn(&spec, Weakened::none())?;
    let serving = door(&mut sandbox);
    let result = sandbox.supervise();
    drop(serving);
    let report = Report::new(&sandbox, &result);
    result.map(|outcome| Done { outcome, report })
}

/// Runs a command of the operator's own without isolation: the allowlist of variables, the usual limits, and the end
/// of all its processes remain.
///
/// # Errors
/// As for [`run_untrusted`].
pub fn run_trusted(task: &Task<'_>) -> Result<Done, Error> {
    run(&Spec { unconfined: true, ..task.spec() })
}

fn strict(task: &Task<'_>) -> Spec {
    let settings = profile::load("strict").map(|loaded| loaded.settings).unwrap_or_default();
    let mut spec =
        Spec { require: Tier::Full, tier: Some(Tier::Full), limits: settings.limits(), ..task.spec() };
    spec.surface.bare_proc = true;
    spec
}

fn run(spec: &Spec) -> Result<Done, Error> {
    let mut sandbox = spawn(spec, Weakened::none())?;
    let result = sandbox.supervise();
    let report = Report::new(&sandbox, &result);
    result.map(|outcome| Done { outcome, report })
}
