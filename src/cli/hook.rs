//! `jess hook`: one entry point for every Claude Code hook event.

use crate::exit::Exit;
use crate::hook::process::{Process, judge, outlives_file_limit};
use crate::hook::{self, Environment};
use std::path::PathBuf;

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
    Exec(ExecArgs),
}

/// Runs the command.
pub fn run(args: Args) -> Exit {
    match args.action {
        None => judge(&Process::new(args.config), None),
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
    /// Keep the command from the client's files and processes (inside the sandbox of a dispatched session).
    #[arg(long)]
    inner: bool,
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
        inner: args.inner,
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
    if !outlives_file_limit() {
        return Exit::REFUSED;
    }
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(hook)).unwrap_or(Exit::REFUSED)
}
