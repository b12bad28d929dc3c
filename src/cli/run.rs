//! `jess run`: any command in the sandbox.

use crate::exit::Exit;
use crate::sandbox::{self, Access, Grant, Report, Spec, Stdin, Tier, Weakened, env};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs a command with nothing of the host but read-only system directories and what is granted.
#[derive(clap::Args)]
pub struct Args {
    /// Show this file or directory inside, read-only, at the same place
    #[arg(long, value_name = "PATH")]
    ro: Vec<PathBuf>,
    /// Show this file or directory inside, writable, at the same place
    #[arg(long, value_name = "PATH")]
    rw: Vec<PathBuf>,
    /// Pass a variable of this environment (K), or set one (K=V)
    #[arg(long, value_name = "K[=V]")]
    env: Vec<OsString>,
    /// Stop the command after this many seconds: TERM, two seconds, KILL; exit 124
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Working directory inside [default: this one if it is in a grant or leads to one, else the private HOME]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Refuse (exit 3) anything weaker than this tier: full or landlock
    #[arg(long, value_name = "TIER", default_value = "landlock")]
    require: Tier,
    /// Use this tier instead of the best that this host has
    #[arg(long, value_name = "TIER")]
    tier: Option<Tier>,
    /// Act as if the kernel's Landlock were no newer than this ABI
    #[arg(long, value_name = "N", hide = true)]
    landlock_abi: Option<u32>,
    /// Write a JSON report of the run to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command and exits with its status.
pub fn run(args: Args) -> Exit {
    let report_to = args.report.clone();
    if let Some(path) = report_to.as_deref().filter(|path| is_writable_inside(path, &args.rw)) {
        let path = path.display();
        eprintln!(
            "jess run: writing the report to {path}: the command could forge it there; choose a --report outside --rw"
        );
        return Exit::USAGE;
    }
    // Opened before anything runs, so that a report that can't be written stops the run, not its result.
    let report_file = match report_to.as_deref().map(std::fs::File::create).transpose() {
        Ok(file) => file,
        Err(error) => {
            let path = report_to.unwrap_or_default();
            eprintln!("jess run: writing the report to {}: {error}; choose another --report", path.display());
            return Exit::USAGE;
        }
    };
    let spec = spec(args);
    let (exit, report) = match sandbox::spawn(&spec, Weakened::none()) {
        Ok(mut sandbox) => {
            if let Some(why) = sandbox.weaker() {
                eprintln!("jess run: tier {}, not full: {why}", sandbox.tier());
            }
            let result = sandbox.supervise();
            (exit_of(&result), Report::new(&sandbox, &result))
        }
        Err(error) => {
            eprintln!("jess run: {error}");
            (error.exit(), Report::of_failure(&error))
        }
    };
    if let Some(file) = report_file
        && let Err(error) = serde_json::to_writer_pretty(file, &report)
    {
        eprintln!("jess run: writing the report: {error}");
        return Exit::INTERNAL;
    }
    exit
}

fn exit_of(result: &Result<sandbox::Outcome, sandbox::Error>) -> Exit {
    match result {
        Ok(outcome) => {
            for (name, stream) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
                if stream.passed < stream.written {
                    let dropped = stream.written - stream.passed;
                    eprintln!(
                        "jess run: {name} was cut at {} bytes; {dropped} more were dropped",
                        stream.passed
                    );
                }
            }
            outcome.ending.exit()
        }
        Err(error) => {
            eprintln!("jess run: {error}");
            error.exit()
        }
    }
}

fn spec(args: Args) -> Spec {
    let grant = |access| move |path| Grant { path, access };
    let grants: Vec<Grant> = args
        .ro
        .into_iter()
        .map(grant(Access::ReadOnly))
        .chain(args.rw.into_iter().map(grant(Access::ReadWrite)))
        .collect();
    let mut environment = env::base_of_process();
    for variable in args.env {
        set_variable(&mut environment, &variable);
    }
    let cwd = match args.cwd {
        Some(dir) => Some(std::path::absolute(&dir).unwrap_or(dir)),
        None => std::env::current_dir().ok().filter(|dir| exists_inside(dir, &grants)),
    };
    Spec {
        argv: args.command,
        cwd,
        env: environment,
        grants,
        stdin: Stdin::Copied,
        timeout: args.timeout,
        require: args.require,
        tier: args.tier,
        landlock_abi: args.landlock_abi,
        ..Spec::default()
    }
}

/// `K=V` sets, `K` passes the caller's value if there is one.
fn set_variable(environment: &mut Vec<(OsString, OsString)>, variable: &OsString) {
    use std::os::unix::ffi::OsStrExt;
    let bytes = variable.as_bytes();
    match bytes.iter().position(|b| *b == b'=') {
        Some(at) => {
            let (name, value) = bytes.split_at(at);
            let value = value.get(1..).unwrap_or_default();
            env::set(environment, std::ffi::OsStr::from_bytes(name), std::ffi::OsStr::from_bytes(value));
        }
        None => {
            if let Some(value) = std::env::var_os(variable) {
                env::set(environment, variable, value);
            }
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

/// Whether `dir` is there inside: in a grant, or on the way to one (so that relative arguments mean what they mean here).
fn exists_inside(dir: &Path, grants: &[Grant]) -> bool {
    let mut granted = grants.iter().filter_map(|g| g.path.canonicalize().ok());
    granted.any(|granted| dir.starts_with(&granted) || granted.starts_with(dir))
}

/// A positive number of seconds, at most a year.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|d| !d.is_zero() && *d <= Duration::from_secs(366 * 86400))
        .ok_or_else(|| "must be above 0 and at most a year".to_owned())
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
