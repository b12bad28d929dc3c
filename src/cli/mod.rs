//! The command line: one file per subcommand, arguments and printing only.

/// `println!` for documents and tables: a reader that went away is no fault of ours, and no panic.
macro_rules! say {
    ($($part:tt)*) => {{
        crate::sanitise::out::stdout(&format!($($part)*));
    }};
}

/// A message for the operator, on stderr.
macro_rules! tell {
    ($($part:tt)*) => {{
        crate::sanitise::out::stderr(&format!($($part)*));
    }};
}

mod allowlist;
pub mod check;
mod config;
mod daemon;
mod dispatch;
mod doctor;
mod document;
mod drill;
mod explain;
mod failed;
mod fetch;
mod gate;
mod hook;
mod init;
mod log;
mod model;
mod net;
pub mod precommit;
mod rpc;
mod rules;
pub mod run;
mod seal;
mod session;
mod status;
mod trust;
mod why;

use crate::exit::Exit;
use crate::hook::process;
use clap::{Parser, Subcommand};

/// Tethers a coding agent: runs it over hostile material and brings back only what was asked for.
#[derive(Parser)]
#[command(name = "jess", version, about, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// Made once, at the start.
#[allow(clippy::large_enum_variant)]
#[derive(Subcommand)]
enum Command {
    Check(check::Args),
    Rules(rules::Args),
    Explain(explain::Args),
    Config(config::Args),
    Daemon(daemon::Args),
    Init(init::Args),
    Uninstall(init::RemoveArgs),
    Session(session::Args),
    Hook(hook::Args),
    Gate(gate::Args),
    Fetch(fetch::Args),
    Rpc(rpc::Args),
    Seal(seal::Args),
    Log(log::Args),
    Run(Box<run::Args>),
    Status(status::Args),
    Trust(trust::Args),
    Dispatch(dispatch::Args),
    Doctor(doctor::Args),
    Drill(drill::Args),
    Why(why::Args),
}

/// `jess run` by itself.
#[derive(Parser)]
#[command(name = "run", bin_name = "jess run", version)]
struct Run {
    #[command(flatten)]
    args: run::Args,
}

/// `jess check` by itself.
#[derive(Parser)]
#[command(name = "check", bin_name = "jess check", version)]
struct Check {
    #[command(flatten)]
    args: check::Args,
}

/// Runs the command line `args` (the program name first) and says what to exit with.
pub fn run(args: impl IntoIterator<Item = std::ffi::OsString>) -> Exit {
    let args: Vec<std::ffi::OsString> = args.into_iter().collect();
    // The hook runs at every tool call: it pays for neither the argument parser nor the logger.
    if args.len() == 2 && args.get(1).is_some_and(|a| a == "hook") {
        return process::judge(&process::Process::default(), None);
    }
    init_logging();
    // So do a run and a check, once for each command: their own arguments are all that is set up.
    if args.get(1).is_some_and(|a| a == "check") {
        return match Check::try_parse_from(args.into_iter().skip(1)) {
            Ok(check) => check::run(check.args),
            Err(error) => usage(&error),
        };
    }
    if args.get(1).is_some_and(|a| a == "run") {
        return match Run::try_parse_from(args.into_iter().skip(1)) {
            Ok(run) => run::run(run.args),
            Err(error) => usage(&error),
        };
    }
    // The client takes any status but 2 for a fault that blocks nothing.
    let hook = args.get(1).is_some_and(|a| a == "hook");
    match Cli::try_parse_from(args) {
        Ok(cli) => match cli.command {
            Command::Check(args) => check::run(args),
            Command::Rules(args) => rules::run(args),
            Command::Explain(args) => explain::run(args),
            Command::Fetch(args) => fetch::run(args),
            Command::Init(args) => init::run(args),
            Command::Uninstall(args) => init::uninstall(args),
            Command::Daemon(args) => daemon::run(args),
            Command::Config(args) => config::run(args),
            Command::Session(args) => session::run(args),
            Command::Hook(args) => hook::run(args),
            Command::Gate(args) => gate::run(args),
            Command::Seal(args) => seal::run(args),
            Command::Rpc(args) => rpc::run(args),
            Command::Log(args) => log::run(args),
            Command::Status(args) => status::run(args),
            Command::Why(args) => why::run(args),
            Command::Run(args) => run::run(*args),
            Command::Trust(args) => trust::run(args),
            Command::Dispatch(args) => dispatch::run(args),
            Command::Doctor(args) => doctor::run(args),
            Command::Drill(args) => drill::run(args),
        },
        Err(error) if hook && error.use_stderr() => {
            tell!("{}", error.render());
            Exit::REFUSED
        }
        Err(error) => usage(&error),
    }
}

fn usage(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        say!("{}", error.render());
        return Exit::OK;
    }
    // It repeats what was given, and a script may have given it names that others chose.
    tell!("{}", error.render());
    Exit::USAGE
}

/// Logs go to stderr, never to stdout: stdout carries documents.
fn init_logging() {
    let _ = tracing_subscriber::fmt()
        .with_writer(|| crate::sanitise::out::Log)
        .with_max_level(tracing::Level::WARN)
        .without_time()
        .with_target(false)
        .try_init();
}
