//! The pipeline that joins trust, Rule of Two, envelope, sandbox, egress, hooks and gates.
//!
//! ```text
//! trust gate ─ Rule of Two ─ envelope(prompt) ─ sandbox ─ agent ─ output gates ─ report
//!                                                │  ▲
//!                 egress: proxy + model gateway ─┘  └ hooks (managed settings, bound read-only inside)
//! ```
//!
//! [`run`] reads in that order. The operator's key is read only after the sandbox was split off, so that PID 1, which
//! starts as a copy of this process, never holds it.

mod client;
mod deliver;
pub mod drill;
mod model;
pub mod network;
mod prompt;
mod switches;

pub use client::{JESS_INSIDE, PORT};
pub use deliver::{Delivered, REPORT, RUN_REPORT};
pub use model::ModelSettings;
pub use network::Reach;
pub(crate) use switches::Switches;

use crate::egress;
use crate::exit::Exit;
use crate::gate::encoded::Known;
use crate::policy::rule_of_two::{self, Attended};
use crate::sandbox::{self, Access, Ending, Grant, Layer, Limits, Net, Output, Spec, Stdin};
use crate::trust;
use crate::untrusted::Untrusted;
use client::Client;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use zeroize::Zeroizing;

/// How long the agent may take to end by itself after its budget is used up, before it is told to.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Bytes of each of the agent's output streams that are kept: an answer, not a data channel. They are held in memory.
const OUTPUT_MAX: u64 = 4 << 20;

/// What to run, over what.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The target: shown inside read-only.
    pub repo: PathBuf,
    /// Where results go: writable inside.
    pub out: PathBuf,
    /// What the run may reach.
    pub reach: Reach,
    /// Lifts the config-poisoning gate, and that alone (invariant I3).
    pub trust_repo: bool,
    /// Files with untrusted text that is sealed and appended to the prompt.
    pub untrusted: Vec<PathBuf>,
    /// Wall-clock limit.
    pub timeout: Option<Duration>,
    /// The model.
    pub model: ModelSettings,
    /// The agent's command line.
    pub command: Vec<OsString>,
}

/// A dispatch that did not start, or whose result could not be delivered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The target is not a directory that can be read.
    #[error(
        "reading the target {}: {reason}; give a readable directory with --repo",
        crate::sanitise::path(path)
    )]
    Repo {
        /// The target.
        path: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// The place for results is none.
    #[error(
        "using {} for results: {reason}; make the directory first and give it with --out",
        crate::sanitise::path(path)
    )]
    Out {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// Results inside the target would be target material.
    #[error(
        "{} and the target {} contain one another: choose an --out outside the target",
        crate::sanitise::path(out),
        crate::sanitise::path(repo)
    )]
    Nested {
        /// The directory for results.
        out: PathBuf,
        /// The target.
        repo: PathBuf,
    },
    /// The agent's program can't be found.
    #[error(
        "finding the agent `{}`: {reason}; install it, or give its full path after `--`",
        crate::sanitise::path(program)
    )]
    Client {
        /// The program.
        program: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// There is no key for the model.
    #[error(
        "no key for the model: set ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN (OPENAI_API_KEY, AWS_BEARER_TOKEN_BEDROCK with --model-api openai, bedrock), or say with --key where it comes from; it stays outside the sandbox"
    )]
    NoKey,
    /// A canary can't be used.
    #[error("the canary from {place}: {reason}; give a text of one line that stands nowhere else")]
    Canary {
        /// The source.
        place: String,
        /// Why.
        reason: String,
    },
    /// Nothing says where the model's API is.
    #[error("where the model's API is depends on your account: give its base URL with --model-url")]
    NoUrl,
    /// The key can't be used.
    #[error("using the model's key: {0}")]
    Key(#[from] egress::CredentialError),
    /// The key can't be read.
    #[error("the model's key: {0}")]
    KeySource(#[from] egress::SourceError),
    /// A credential for a host can't be used.
    #[error("--credential for {host}: {source}")]
    HostCredential {
        /// The rule that it is for.
        host: String,
        /// Why.
        source: egress::InjectError,
    },
    /// There is no place for what is spent over several runs.
    #[error("a budget for a session or a day is kept below $XDG_STATE_HOME or $HOME: set one of them")]
    NoState,
    /// What was spent can't be read or written.
    #[error(
        "keeping count of what is spent in {}: {reason}; move what is there out of the way",
        crate::sanitise::path(path)
    )]
    Spend {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// The model's address can't be used.
    #[error("using the model's API: {0}")]
    Upstream(#[from] egress::UpstreamError),
    /// A file with untrusted text can't be read.
    #[error("reading the untrusted text {}: {reason}; give a readable file of at most {} MiB", crate::sanitise::path(path), prompt::MAX_BYTES >> 20)]
    Prompt {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// The target could not be checked.
    #[error(transparent)]
    Trust(#[from] trust::Error),
    /// Something in the target's reach could stand in for the client.
    #[error(transparent)]
    Shadowed(#[from] trust::program::Error),
    /// The target brings configuration that acts on the agent.
    #[error(
        "the target brings configuration that acts on the agent; refused (invariant I3). Remove it, or accept it for this run with --trust-repo"
    )]
    Poisoned(Box<trust::Report>),
    /// All three legs, and nobody there.
    #[error(transparent)]
    RuleOfTwo(#[from] rule_of_two::Refusal),
    /// The sandbox did not start.
    #[error(transparent)]
    Sandbox(#[from] sandbox::Error),
    /// The egress did not start.
    #[error(transparent)]
    Egress(#[from] egress::Error),
    /// jess can't find its own program, which the hooks inside need.
    #[error("finding jess's own program: {0}; start jess by its full path")]
    OwnProgram(std::io::Error),
    /// The results could not be checked or written.
    #[error(transparent)]
    Deliver(#[from] deliver::Error),
}

impl Error {
    /// The exit code of a dispatch that ended with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Error::Poisoned(_) | Error::RuleOfTwo(_) | Error::Shadowed(_) => Exit::REFUSED,
            Error::Trust(_) => Exit::USAGE,
            Error::Client { .. } => Exit::NOT_FOUND,
            Error::Sandbox(error) => error.exit(),
            Error::Egress(_) | Error::OwnProgram(_) | Error::Deliver(_) => Exit::INTERNAL,
            _ => Exit::USAGE,
        }
    }
}

/// A finished dispatch.
#[derive(Debug)]
pub struct Dispatched {
    /// How the agent ended.
    pub ending: Ending,
    /// What was delivered, and what the gates found.
    pub delivered: Delivered,
    /// What the agent returned, as it came.
    pub(crate) raw: Untrusted<Vec<u8>>,
    /// What was seen at the door.
    pub egress: egress::Report,
}

impl Dispatched {
    /// The exit code: a gate's refusal before the agent's own status.
    pub fn exit(&self) -> Exit {
        match () {
            () if !self.delivered.findings.is_empty() => Exit::REFUSED,
            () if self.out_of_budget() => Exit::BUDGET,
            () => self.ending.exit(),
        }
    }

    /// Whether the model refused an answer since a budget was used up, which ends the run.
    pub fn out_of_budget(&self) -> bool {
        self.egress.events.iter().any(|e| e.reason == egress::event::Reason::BudgetExhausted)
    }
}

/// Runs the whole pipeline. The caller must have one thread.
///
/// # Errors
/// See [`Error`]; nothing is written to `out` then.
pub fn run(request: &Request) -> Result<Dispatched, Error> {
    run_with(request, &Switches::all_on())
}

pub(crate) fn run_with(request: &Request, switches: &Switches) -> Result<Dispatched, Error> {
    let places = Places::resolve(request)?;
    let client = Client::find(&request.command)?.vetted(&places.repo)?;
    if switches.trust {
        check_trust(&places.repo, request.trust_repo)?;
    }
    if switches.rule_of_two {
        check_rule_of_two(&client, request, switches)?;
    }
    let sealed = prompt::seal(&request.untrusted, &request.repo, switches.envelope)?;
    let (stdin, nonce) = sealed.map(|sealed| (sealed.text, sealed.nonce)).unzip();
    let needs_model = client.is_claude();
    let has_key = request.model.has_key();
    if (needs_model || request.model.is_asked_for()) && !has_key {
        return Err(Error::NoKey);
    }
    let placeholder = client::placeholder();
    let spec = spec(request, &places, &client, stdin, &placeholder, switches)?;

    let scopes = request.model.scopes()?;

    let mut sandbox = sandbox::spawn(&spec, switches.sandbox)?;
    let canaries = request.model.canaries()?;
    let mut config = egress_config(switches);
    if has_key {
        let marks: Vec<&str> = canaries.iter().map(|c| c.as_str()).chain(nonce.as_deref()).collect();
        request.model.add_to(&mut config, &placeholder, &marks, scopes)?;
    }
    config.on_exhausted = Some(stop_soon(sandbox.stopper()?));
    let door = network::open(&mut sandbox, &request.reach, config)?;
    let result = sandbox.supervise();
    let known = keys_of_run(&placeholder, door.as_ref(), &canaries);
    let seen = door.map(egress::Handle::stop).unwrap_or_default();

    let report = sandbox::Report::new(&sandbox, &result);
    let outcome = result?;
    let raw = Untrusted::new(outcome.stdout.kept);
    let delivered = deliver::deliver(
        &places.out,
        &raw,
        &Untrusted::new(outcome.stderr.kept),
        &report,
        &seen,
        &known,
        switches.gate,
    )?;
    Ok(Dispatched { ending: outcome.ending, delivered, raw, egress: seen })
}

/// The two directories of a run, resolved.
struct Places {
    repo: PathBuf,
    out: PathBuf,
}

impl Places {
    fn resolve(request: &Request) -> Result<Places, Error> {
        let repo =
            directory(&request.repo).map_err(|reason| Error::Repo { path: request.repo.clone(), reason })?;
        std::fs::read_dir(&repo).map_err(|reason| Error::Repo { path: repo.clone(), reason })?;
        let out =
            directory(&request.out).map_err(|reason| Error::Out { path: request.out.clone(), reason })?;
        rustix::fs::access(&out, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
            .map_err(|errno| Error::Out { path: out.clone(), reason: errno.into() })?;
        if out.starts_with(&repo) || repo.starts_with(&out) {
            return Err(Error::Nested { out, repo });
        }
        Ok(Places { repo, out })
    }
}

fn directory(path: &Path) -> std::io::Result<PathBuf> {
    let path = path.canonicalize()?;
    if path.is_dir() { Ok(path) } else { Err(std::io::ErrorKind::NotADirectory.into()) }
}

fn check_trust(repo: &Path, trust_repo: bool) -> Result<(), Error> {
    let report = trust::check(repo)?;
    if trust_repo {
        crate::sanitise::out::stderr(&format!(
            "{}jess: --trust-repo: agent configuration is not refused on this run; every other guard stays on",
            report.render(true)
        ));
        return Ok(());
    }
    if !report.refuses() {
        return Ok(());
    }
    Err(Error::Poisoned(Box::new(report)))
}

fn check_rule_of_two(client: &Client, request: &Request, switches: &Switches) -> Result<(), Error> {
    let tools = client.tools(request.trust_repo);
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    let mut legs = rule_of_two::legs_of_tools(&tools);
    legs.a = true;
    legs.c |= !request.reach.all_rules().is_empty();
    let attended =
        if legs.complete() && !switches.nobody_there { rule_of_two::attended() } else { Attended::No };
    rule_of_two::judge(legs, attended)?;
    Ok(())
}

fn spec(
    request: &Request,
    places: &Places,
    client: &Client,
    stdin: Option<String>,
    placeholder: &str,
    switches: &Switches,
) -> Result<Spec, Error> {
    let mut env = if switches.sandbox.keeps(Layer::Environment) {
        sandbox::env::base_of_process()
    } else {
        let mut all: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        sandbox::env::set(&mut all, "HOME", sandbox::env::HOME);
        all
    };
    client.environment(&mut env, places, placeholder, !request.reach.all_rules().is_empty());
    request.model.environment(&mut env, placeholder);
    if !switches.key
        && let Some(key) = model::KEY_VARIABLES.iter().find_map(std::env::var_os)
    {
        sandbox::env::set(&mut env, "ANTHROPIC_API_KEY", key);
    }
    let mut grants = vec![
        Grant { path: places.repo.clone(), access: Access::ReadOnly },
        Grant { path: places.out.clone(), access: Access::ReadWrite },
    ];
    grants.extend(client.grants().into_iter().map(|path| Grant { path, access: Access::ReadOnly }));
    let net = match switches.sandbox.keeps(Layer::NetNamespace) {
        true => network::net(&request.reach.all_rules()),
        false => Net::Listener(PORT),
    };
    Ok(Spec {
        argv: client.argv(request.trust_repo),
        cwd: Some(places.repo.clone()),
        env,
        grants,
        inject: client::inject(switches).map_err(Error::OwnProgram)?,
        net,
        limits: Limits { output_bytes: OUTPUT_MAX, ..Limits::default() },
        stdin: stdin.map_or(Stdin::Null, |text| Stdin::Bytes(text.into_bytes())),
        output: Output::Captured,
        timeout: request.timeout,
        ..Spec::default()
    })
}

/// What must not come back in any encoding: the token and the canaries of this run, and the operator's keys, which never
/// were inside.
fn keys_of_run(placeholder: &str, door: Option<&egress::Handle>, canaries: &[Zeroizing<String>]) -> Known {
    let keys: Vec<String> = model::KEY_VARIABLES.iter().filter_map(|name| std::env::var(name).ok()).collect();
    let secrets = door.map(egress::Handle::secrets).unwrap_or_default();
    let read = secrets.iter().chain(canaries).map(|secret| secret.as_str());
    Known::new(keys.iter().map(|key| key.trim()).chain(read).chain([placeholder]))
}

fn egress_config(switches: &Switches) -> egress::Config {
    let mut config = egress::Config::default();
    if let Some(open) = &switches.open_egress {
        config.allow_hosts.push(open.rule.clone());
        config.allow_addresses.push(open.network);
    }
    config
}

/// Stops the command, [`LAST_WORDS`] after it was first called. Dropping the stopper would stop it too.
fn stop_soon(stopper: OwnedFd) -> Arc<dyn Fn() + Send + Sync> {
    let stopper = Arc::new(stopper);
    let called = AtomicBool::new(false);
    Arc::new(move || {
        if called.swap(true, Relaxed) {
            return;
        }
        crate::sanitise::out::stderr("jess dispatch: the budget is used up; the run ends");
        let stopper = Arc::clone(&stopper);
        std::thread::spawn(move || {
            std::thread::sleep(LAST_WORDS);
            let _ = rustix::io::write(&stopper, b"S");
        });
    })
}
