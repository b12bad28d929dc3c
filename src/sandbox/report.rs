//! A run as a document: which layers held, how the command ended, what it used.

use super::Sandbox;
use super::denial::Denials;
use super::error::Error;
use super::landlock;
use super::layer::Layer;
use super::spec::Limits;
use super::streams::Stream;
use super::supervise::{Ending, Outcome};
use super::tier::Tier;
use serde::Serialize;

/// The name and version of the document's form.
pub const SCHEMA: &str = "jess.run/1";

/// The report of one run (`jess run --report FILE`).
#[derive(Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// `full`: namespaces, private root, Landlock, seccomp; `landlock`: without the namespaces and the root; `none`:
    /// nothing could be started.
    pub tier: &'static str,
    /// Why the tier is weaker than `full`, where nobody asked for that.
    pub weaker: Option<String>,
    /// Each layer, in the order in which it engages.
    pub layers: Vec<LayerReport>,
    /// The limits that the command ran under; absent if nothing could be started.
    pub limits: Option<Limits>,
    /// How the command ended; absent if it did not start.
    pub termination: Option<Termination>,
    /// Why it did not start, and at which step.
    pub failure: Option<FailureReport>,
    /// What jess exited with.
    pub exit: u8,
    /// Wall-clock time from the start of the set-up, milliseconds.
    pub duration_ms: f64,
    /// What everything inside used together.
    pub rusage: Option<Usage>,
    /// The output streams, bytes.
    pub output: Option<Streams>,
    /// What the command was refused, as far as the supervisor knows; absent if it did not start.
    pub denials: Option<Denials>,
    /// Arguments that name files which are not shown inside, where the command failed.
    pub hints: Vec<String>,
}

/// One layer of the sandbox.
#[derive(Debug, Serialize)]
pub struct LayerReport {
    /// Its name.
    pub name: Layer,
    /// `engaged`, `degraded` or `off`.
    pub state: &'static str,
    /// Why it is not fully engaged, and what is therefore not guaranteed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How a command ended.
#[derive(Debug, Serialize)]
pub struct Termination {
    /// `exit`, `signal`, `timeout` or `stopped`.
    pub kind: &'static str,
    /// The command's own status (`exit`).
    pub code: Option<u8>,
    /// The signal's number (`signal`, `stopped`).
    pub signal: Option<u8>,
    /// Whether the signal is one that dumps core.
    pub core: bool,
    /// The limit whose signal ended the command: `cpu`, `file` or `memory`. A command can send itself the same signal.
    pub limit: Option<&'static str>,
}

/// Why a command did not start.
#[derive(Debug, Serialize)]
pub struct FailureReport {
    /// What was being done.
    pub step: Option<&'static str>,
    /// The error in words.
    pub message: String,
}

/// Resource use.
#[derive(Debug, Serialize)]
pub struct Usage {
    /// Processor time in user mode, milliseconds.
    pub user_ms: f64,
    /// Processor time in the kernel, milliseconds.
    pub system_ms: f64,
    /// Largest resident set of one process, KiB.
    pub max_rss_kib: i64,
}

/// Bytes of the two output streams.
#[derive(Debug, Serialize)]
pub struct Streams {
    /// Standard output.
    pub stdout: StreamReport,
    /// Standard error.
    pub stderr: StreamReport,
}

/// Bytes of one output stream.
#[derive(Debug, Serialize)]
pub struct StreamReport {
    /// Written by the command.
    pub written: u64,
    /// Passed on; less than `written` at the limit.
    pub passed: u64,
}

impl From<&Stream> for StreamReport {
    fn from(stream: &Stream) -> Self {
        StreamReport { written: stream.written, passed: stream.passed }
    }
}

impl Report {
    /// The report of a sandbox that was started, with what became of it.
    pub fn new(sandbox: &Sandbox, result: &Result<Outcome, Error>) -> Report {
        let mut report = Report {
            schema: SCHEMA,
            tier: sandbox.tier_name(),
            weaker: sandbox.weaker().map(str::to_owned),
            layers: layers(sandbox),
            limits: Some(sandbox.plan.limits.clone()),
            termination: None,
            failure: None,
            exit: 0,
            duration_ms: sandbox.started.elapsed().as_secs_f64() * 1e3,
            rusage: None,
            output: None,
            denials: None,
            hints: Vec::new(),
        };
        match result {
            Ok(outcome) => {
                report.exit = outcome.ending.exit().code();
                report.duration_ms = outcome.duration.as_secs_f64() * 1e3;
                report.termination = Some(termination(outcome));
                report.denials = Some(outcome.denials.clone());
                if report.exit != 0 && outcome.denials.is_empty() {
                    report.hints = sandbox.hints();
                }
                report.rusage = Some(usage(&outcome.usage));
                report.output =
                    Some(Streams { stdout: (&outcome.stdout).into(), stderr: (&outcome.stderr).into() });
            }
            Err(error) => report.fail(error),
        }
        report
    }

    /// The report of a sandbox that could not be started at all.
    pub fn of_failure(error: &Error) -> Report {
        let mut report = Report {
            schema: SCHEMA,
            tier: "none",
            weaker: None,
            layers: Vec::new(),
            limits: None,
            termination: None,
            failure: None,
            exit: 0,
            duration_ms: 0.0,
            rusage: None,
            output: None,
            denials: None,
            hints: Vec::new(),
        };
        report.fail(error);
        report
    }

    fn fail(&mut self, error: &Error) {
        self.exit = error.exit().code();
        self.failure =
            Some(FailureReport { step: error.step().map(super::Step::doing), message: error.to_string() });
    }
}

/// What is missing and is no limit.
const OF_FILES: [&str; 2] = [super::start::WITHOUT_LANDLOCK, super::start::SUPERVISED_OUTSIDE];

fn layers(sandbox: &Sandbox) -> Vec<LayerReport> {
    let plan = &sandbox.plan;
    Layer::ALL
        .into_iter()
        .map(|name| {
            let notes = match name {
                Layer::Landlock => {
                    let lost = landlock::rights_lost(plan.landlock_abi).into_iter().map(str::to_owned);
                    let open = plan.notes.iter().filter(|_| plan.tier == Tier::Landlock).cloned();
                    lost.chain(open)
                        .chain(sandbox.unheld.iter().filter(|why| OF_FILES.contains(&why.as_str())).cloned())
                        .collect()
                }
                Layer::Mounts if plan.tier == Tier::Full => plan.notes.clone(),
                Layer::Limits => sandbox
                    .unheld
                    .iter()
                    .filter(|why| *why != super::UNWATCHED && !OF_FILES.contains(&why.as_str()))
                    .cloned()
                    .collect(),
                _ => Vec::new(),
            };
            let needs_namespaces = matches!(
                name,
                Layer::Mounts
                    | Layer::PidNamespace
                    | Layer::NetNamespace
                    | Layer::IpcNamespace
                    | Layer::HostIdentity
            );
            let absent = (plan.tier == Tier::Landlock && needs_namespaces)
                || !plan.weakened.keeps(name)
                || (name == Layer::Landlock && plan.landlock_abi == 0);
            let state = if absent {
                "off"
            } else if notes.is_empty() {
                "engaged"
            } else {
                "degraded"
            };
            LayerReport { name, state, notes }
        })
        .collect()
}

fn termination(outcome: &Outcome) -> Termination {
    let ending = outcome.ending;
    let (kind, code, signal, core) = match ending {
        Ending::Exited(code) => ("exit", Some(code), None, false),
        Ending::Signalled { signal, core } => ("signal", None, Some(signal), core),
        Ending::TimedOut => ("timeout", None, None, false),
        Ending::Stopped(signal) => ("stopped", None, Some(signal), false),
    };
    let limit = match ending {
        Ending::Signalled { signal, .. } if i32::from(signal) == libc::SIGXCPU => Some("cpu"),
        Ending::Signalled { signal, .. } if i32::from(signal) == libc::SIGXFSZ => Some("file"),
        Ending::Signalled { signal, .. } if i32::from(signal) == libc::SIGKILL && outcome.out_of_memory => {
            Some("memory")
        }
        Ending::Signalled { signal, .. } if i32::from(signal) == libc::SIGKILL && outcome.overcrowded => {
            Some("processes")
        }
        _ => None,
    };
    Termination { kind, code, signal, core, limit }
}

fn usage(usage: &libc::rusage) -> Usage {
    let ms = |t: libc::timeval| t.tv_sec as f64 * 1e3 + t.tv_usec as f64 / 1e3;
    Usage { user_ms: ms(usage.ru_utime), system_ms: ms(usage.ru_stime), max_rss_kib: usage.ru_maxrss }
}
