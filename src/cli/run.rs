//! `jess run`: any command in the sandbox.

use crate::dispatch::{self, Reach, network};
use crate::egress::{self, Config};
use crate::exit::Exit;
use crate::sandbox::profile::{self, Bound, Cpus, Input, LimitSettings, Profile, Seconds, Size, Tools};
use crate::sandbox::{self, Output, Report, Sandbox, Spec, Tier, Watch, Weakened};
use clap::Parser;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

mod observed;
mod target;

/// Runs a command with nothing of the host but read-only system directories and what is granted.
#[derive(clap::Args)]
pub struct Args<N: clap::Args = Network> {
    /// Settings to start from: full, strict, target_run, debug, network-only, none, a profile of your own, or a TOML file [default: full]
    #[arg(long, value_name = "NAME|FILE")]
    profile: Option<String>,
    /// Show this file or directory inside, read-only, at the same place
    #[arg(long, value_name = "PATH")]
    ro: Vec<PathBuf>,
    /// Show this file or directory inside, writable, at the same place
    #[arg(long, value_name = "PATH")]
    rw: Vec<PathBuf>,
    /// As --ro, but nothing where PATH does not exist
    #[arg(long, value_name = "PATH")]
    ro_try: Vec<PathBuf>,
    /// As --rw, but nothing where PATH does not exist
    #[arg(long, value_name = "PATH")]
    rw_try: Vec<PathBuf>,
    /// Show this symbolic link itself, and what it leads to only if that is granted
    #[arg(long, value_name = "PATH")]
    link: Vec<PathBuf>,
    /// Keep this path below a grant out of reach; it need not exist
    #[arg(long, value_name = "PATH")]
    deny: Vec<PathBuf>,
    /// Show the toolchains of your home (all, or these: rustup, cargo, nvm, pyenv, uv, go, sdkman, mise…), read-only
    #[arg(long, value_name = "NAME,…", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    tools: Option<Vec<String>>,
    /// Pass a variable of this environment (K), or set one (K=V)
    #[arg(long, value_name = "K[=V]")]
    env: Vec<OsString>,
    /// Allow sockets of AF_UNIX: also a socket of the host in a grant can then be reached
    #[arg(long)]
    unix_sockets: bool,
    /// Allow the command to trace its own processes
    #[arg(long)]
    ptrace: bool,
    /// Show nothing but processes in /proc
    #[arg(long)]
    bare_proc: bool,
    /// Let the command use every file that you can, and your home (profile network-only)
    #[arg(long)]
    host_files: bool,
    /// Give the command a terminal of its own, with job control and the size of this one
    #[arg(long)]
    tty: bool,
    /// Give the command no input
    #[arg(long)]
    no_stdin: bool,
    /// Stop the command after this many seconds: TERM, the grace, KILL; exit 124
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<Seconds>,
    /// Time that a stopped command has to end by itself [default: 2]
    #[arg(long, value_name = "SECONDS")]
    grace: Option<Seconds>,
    /// Bytes of each output stream that pass; more is counted and dropped [default: 64M]
    #[arg(long, value_name = "SIZE|none")]
    max_output: Option<Bound<Size>>,
    /// Largest file that can be written [default: 10G]
    #[arg(long, value_name = "SIZE|none")]
    max_file: Option<Bound<Size>>,
    /// Processes and threads at once [default: 1024]
    #[arg(long, value_name = "N|none")]
    max_processes: Option<Bound<u64>>,
    /// Open files of each process [default: 4096]
    #[arg(long, value_name = "N|none")]
    max_open_files: Option<Bound<u64>>,
    /// Processor time of each process, seconds [default: 3600]
    #[arg(long, value_name = "SECONDS|none")]
    max_cpu: Option<Bound<Seconds>>,
    /// Address space of each process [default: none]
    #[arg(long, value_name = "SIZE|none")]
    max_address_space: Option<Bound<Size>>,
    /// Memory of all processes together; needs a delegated control group [default: none]
    #[arg(long, value_name = "SIZE|none")]
    max_memory: Option<Bound<Size>>,
    /// Processors that all processes use together, such as 1.5; needs a delegated control group [default: none]
    #[arg(long, value_name = "N|none")]
    max_cpus: Option<Bound<Cpus>>,
    /// Make the run's control group below this one [default: the nearest that is yours]
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,
    /// Size of each of /tmp, /run, /dev/shm and HOME [default: 2G]
    #[arg(long, value_name = "SIZE")]
    scratch: Option<Size>,
    /// Working directory inside [default: this one if it is in a grant or leads to one, else the private HOME]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Refuse (exit 3) anything weaker than this tier: full or landlock [default: landlock]
    #[arg(long, value_name = "TIER")]
    require: Option<Tier>,
    /// Use this tier instead of the best that this host has
    #[arg(long, value_name = "TIER")]
    tier: Option<Tier>,
    /// Act as if the kernel's Landlock were no newer than this ABI
    #[arg(long, value_name = "N", hide = true)]
    landlock_abi: Option<u32>,
    /// Watch for everything that is refused, and name it with the flag that grants it; slows down opening files
    #[arg(long)]
    explain: bool,
    /// Run once without file rules, and write the profile that the command needed to FILE (- is stdout)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["explain", "deny", "host_files"])]
    observe: Option<PathBuf>,
    /// Write a JSON report of the run to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    net: N,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The network of a run, and what is added to it outside.
#[derive(clap::Args)]
pub struct Network {
    #[command(flatten)]
    net: super::net::NetArgs,
    #[command(flatten)]
    credentials: super::net::CredentialArgs,
}

impl<N: clap::Args> Args<N> {
    /// The flags as a profile, the network, and the command.
    fn settings(self) -> (Profile, N, Vec<OsString>) {
        let profile = Profile {
            ro: self.ro,
            rw: self.rw,
            ro_try: self.ro_try,
            rw_try: self.rw_try,
            links: self.link,
            deny: self.deny,
            env: self.env,
            tools: self
                .tools
                .map(|names| if names.is_empty() { Tools::All(true) } else { Tools::Named(names) }),
            cwd: self.cwd,
            report: self.report,
            timeout: self.timeout,
            grace: self.grace,
            stdin: self.no_stdin.then_some(Input::Null),
            tty: self.tty.then_some(true),
            unix_sockets: self.unix_sockets.then_some(true),
            ptrace: self.ptrace.then_some(true),
            bare_proc: self.bare_proc.then_some(true),
            host_files: self.host_files.then_some(true),
            require: self.require,
            tier: self.tier,
            explain: self.explain.then_some(true),
            cgroup: self.cgroup,
            landlock_abi: self.landlock_abi,
            limits: LimitSettings {
                file: self.max_file,
                cpu: self.max_cpu,
                processes: self.max_processes,
                open_files: self.max_open_files,
                address_space: self.max_address_space,
                memory: self.max_memory,
                cpus: self.max_cpus,
                scratch: self.scratch,
                output: self.max_output,
            },
            ..Profile::default()
        };
        (profile, self.net, self.command)
    }
}

/// What a run on the host's files has lost.
const HOST_FILES: &str = "no file rules (profile network-only): the command can read and change every file that you can; the \
                          network, other processes and the kernel's surface stay closed";

/// What a run without isolation has lost.
const UNCONFINED: &str = "no isolation (profile none): the command can read, change and send whatever you can, and reach \
                          every process, socket and network that you can; left are the allowlist of variables, the limits, \
                          and the end of its processes";

/// Runs the command and exits with its status.
pub fn run(args: Args) -> Exit {
    run_with(args, |network| Some(Gateway(network.net.reach(network.credentials))))
}

/// The flags of a network, as `jess-run` knows them: enough to hand them on.
#[derive(clap::Args)]
struct Elsewhere {
    #[arg(long, hide = true)]
    net: Vec<OsString>,
    #[arg(long, hide = true)]
    net_inside: Vec<OsString>,
    #[arg(long, hide = true)]
    resolve: Vec<OsString>,
    #[arg(long, hide = true)]
    cacert: Option<OsString>,
    #[arg(long, hide = true)]
    credential: Vec<OsString>,
}

/// `jess run` without a network. With one, the program becomes `jess run`.
#[derive(clap::Parser)]
#[command(name = "jess-run", version)]
struct Alone {
    #[command(flatten)]
    args: Args<Elsewhere>,
}

/// `jess-run`: the same with little else of jess behind it.
pub fn alone(args: impl IntoIterator<Item = OsString>) -> Exit {
    match Alone::try_parse_from(args) {
        Ok(Alone { args }) if !args.net.net.is_empty() || !args.net.credential.is_empty() => become_jess(),
        Ok(Alone { args }) => run_with(args, |_| None::<Closed>),
        Err(error) => super::usage(&error),
    }
}

/// What serves a run's network.
trait Door {
    /// Gives `spec` the network.
    fn prepare(&self, spec: &mut Spec);
    /// Opens the door of a started run. Closing it gives what was seen there.
    fn open(&self, sandbox: &mut Sandbox) -> Result<Option<Closing>, dispatch::Error>;
}

type Closing = Box<dyn FnOnce() -> egress::Report>;

/// The gateway of this process. Only what names it links TLS, HTTP and the resolver.
struct Gateway(Reach);

impl Door for Gateway {
    fn prepare(&self, spec: &mut Spec) {
        network::prepare(spec, &self.0);
    }

    fn open(&self, sandbox: &mut Sandbox) -> Result<Option<Closing>, dispatch::Error> {
        let door = network::open(sandbox, &self.0, Config::default())?;
        Ok(door.map(|handle| Box::new(|| handle.stop()) as Closing))
    }
}

/// No network.
enum Closed {}

impl Door for Closed {
    fn prepare(&self, _: &mut Spec) {}

    fn open(&self, _: &mut Sandbox) -> Result<Option<Closing>, dispatch::Error> {
        Ok(None)
    }
}

/// Turns this process into `jess run`, the file beside this one, with the same arguments.
fn become_jess() -> Exit {
    use std::os::unix::process::CommandExt;
    let own = std::env::current_exe().unwrap_or_else(|_| "/usr/local/bin/jess-run".into());
    let jess = own.with_file_name("jess");
    let why = std::process::Command::new(&jess).arg("run").args(std::env::args_os().skip(1)).exec();
    tell!("jess run: {}: {why}; a network needs jess beside jess-run", crate::sanitise::path(&jess));
    Exit::INTERNAL
}

fn run_with<N: clap::Args, D: Door>(args: Args<N>, door: impl FnOnce(N) -> Option<D>) -> Exit {
    let below = match args.profile.as_deref().map(profile::load).transpose() {
        Ok(loaded) => loaded.unwrap_or_default(),
        Err(error) => {
            tell!("jess run: {error}");
            return Exit::USAGE;
        }
    };
    let observe = args.observe.clone();
    let (flags, network, command) = args.settings();
    let gateway = door(network);
    let settings = flags.over(below.settings);
    let base = settings.clone();
    let report_to = settings.report.clone();
    let writable = [&settings.rw[..], &settings.rw_try[..]].concat();
    if let Some(path) = report_to.as_deref().filter(|path| is_writable_inside(path, &writable)) {
        let path = crate::sanitise::path(path);
        tell!(
            "jess run: writing the report to {path}: the command could forge it there; choose a --report outside --rw"
        );
        return Exit::USAGE;
    }
    // Opened before anything runs, so that a report that can't be written stops the run, not its result.
    let opened = report_to.map(|path| target::Target::open("report", path)).transpose();
    let report_file = match opened {
        Ok(file) => file,
        Err(error) => {
            tell!("jess run: {error}; choose another --report");
            return Exit::USAGE;
        }
    };
    let here = std::env::current_dir().ok();
    let profile_to = match observe.map(observed::Target::open).transpose() {
        Ok(target) => target,
        Err(error) => {
            tell!("jess run: {error}; choose another --observe");
            return Exit::USAGE;
        }
    };
    let spec = settings.spec(command, here.as_deref());
    let spec = spec.map(|mut spec| {
        if profile_to.is_some() {
            tell!("jess run: {}", observed::WARNING);
            spec.watch = Watch::Uses;
            spec.surface.bare_proc = false;
            // What is written to stdout is the profile alone.
            if profile_to.as_ref().is_some_and(observed::Target::is_stdout) {
                spec.output = Output::Aside;
            }
            spec.cwd = spec.cwd.or_else(|| here.clone());
        }
        if let Some(gateway) = &gateway {
            gateway.prepare(&mut spec);
        }
        spec
    });
    let (exit, run, egress) = match spec.and_then(|spec| sandbox::spawn(&spec, Weakened::none())) {
        Ok(mut sandbox) => {
            if sandbox.tier_name() == "none" {
                tell!("jess run: {UNCONFINED}");
            }
            if settings.host_files == Some(true) {
                tell!("jess run: {HOST_FILES}");
            }
            if let Some(why) = sandbox.weaker() {
                tell!("jess run: tier {}, not full: {why}", sandbox.tier());
            }
            let door = match gateway.as_ref().map(|gateway| gateway.open(&mut sandbox)).transpose() {
                Ok(door) => door.flatten(),
                Err(error) => {
                    tell!("jess run: {error}");
                    return error.exit();
                }
            };
            for missing in sandbox.unheld() {
                tell!("jess run: {missing}");
            }
            let result = sandbox.supervise();
            if let (Ok(outcome), Some(target)) = (&result, profile_to)
                && let Err(error) = target.write(outcome, base)
            {
                tell!("jess run: {error}");
                return Exit::INTERNAL;
            }
            explain(&sandbox, &result);
            (exit_of(&result), Report::new(&sandbox, &result), door.map(|close| close()))
        }
        Err(error) => {
            tell!("jess run: {error}");
            (error.exit(), Report::of_failure(&error), None)
        }
    };
    if let Some(file) = report_file {
        let document = serde_json::to_string_pretty(&Document { run, egress });
        let written = document.map_err(std::io::Error::from).map_err(|why| file.error(why));
        if let Err(error) = written.and_then(|document| file.write(&document)) {
            tell!("jess run: {error}");
            return Exit::INTERNAL;
        }
    }
    exit
}

/// The report of a run, with what was seen at its door.
#[derive(serde::Serialize)]
struct Document {
    #[serde(flatten)]
    run: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    egress: Option<egress::Report>,
}

/// Says, of a command that failed, what it was refused last.
fn explain(sandbox: &Sandbox, result: &Result<sandbox::Outcome, sandbox::Error>) {
    let Ok(outcome) = result else { return };
    if outcome.ending == sandbox::Ending::Exited(0) {
        return;
    }
    match outcome.denials.line() {
        Some(line) => tell!("jess run: {line}"),
        None => {
            for hint in sandbox.hints() {
                tell!("jess run: {hint}");
            }
        }
    }
}

fn exit_of(result: &Result<sandbox::Outcome, sandbox::Error>) -> Exit {
    match result {
        Ok(outcome) => {
            let mut lost = false;
            for (name, stream) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
                if let Some(why) = stream.lost {
                    tell!("jess run: passing {name} on: {why}; {} bytes of it arrived", stream.passed);
                    lost = true;
                } else if stream.passed < stream.written {
                    let dropped = stream.written - stream.passed;
                    tell!("jess run: {name} was cut at {} bytes; {dropped} more were dropped", stream.passed);
                }
            }
            match outcome.ending.exit() {
                Exit::OK if lost => Exit::INTERNAL,
                exit => exit,
            }
        }
        Err(error) => {
            tell!("jess run: {error}");
            error.exit()
        }
    }
}

/// Whether the file at `path` is below a writable grant: a link that a command left there would lead anywhere, and
/// the command could write the report itself.
fn is_writable_inside(path: &Path, rw: &[PathBuf]) -> bool {
    let Ok(path) = std::path::absolute(path) else { return true };
    let real = path.canonicalize().ok();
    let place = path.parent().and_then(|dir| dir.canonicalize().ok());
    rw.iter()
        .filter_map(|grant| grant.canonicalize().ok())
        .any(|grant| real.iter().chain(&place).any(|p| p.starts_with(&grant)) || path.starts_with(&grant))
}

/// A positive number of seconds, at most a year.
pub(super) fn seconds(text: &str) -> Result<std::time::Duration, String> {
    text.parse::<Seconds>().map(|seconds| seconds.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_below_a_writable_grant_is_noticed_through_links_too() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["rw", "other"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        std::fs::write(at("rw/file"), "").unwrap();
        std::os::unix::fs::symlink(at("rw"), at("alias")).unwrap();
        std::os::unix::fs::symlink(at("rw/file"), at("other/link")).unwrap();
        let rw = [at("rw")];
        for inside in ["rw/new", "rw/file", "alias/new", "other/link"] {
            assert!(is_writable_inside(&at(inside), &rw), "{inside}");
        }
        assert!(!is_writable_inside(&at("other/new"), &rw));
        assert!(!is_writable_inside(&at("rw-beside"), &rw));
    }
}
