//! `jess trust`: what a repository may not bring along.

use crate::exit::Exit;
use crate::trust;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use std::io::Write as _;
use std::path::PathBuf;

/// Check the agent configuration that a repository brings along.
#[derive(ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Refuse a repository whose agent configuration runs code, widens permissions or redirects the model.
    Check(CheckArgs),
}

#[derive(ClapArgs)]
struct CheckArgs {
    /// Report, and do not refuse on configuration. Relaxes nothing else.
    #[arg(long, alias = "trust")]
    trust_repo: bool,
    /// Report what would be refused, and exit with 0.
    #[arg(long)]
    dry_run: bool,
    /// How to print the findings.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The repository.
    repo: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Exit {
    match args.command {
        Command::Check(args) => check(&args),
    }
}

fn check(args: &CheckArgs) -> Exit {
    let report = match trust::check(&args.repo) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("jess: {error}");
            return match error {
                trust::Error::Target { .. } => Exit::USAGE,
                trust::Error::Io { .. } => Exit::INTERNAL,
            };
        }
    };
    let text = match args.format {
        Format::Text => report.render(args.trust_repo),
        Format::Json => format!("{:#}\n", report.to_json()),
    };
    if let Err(error) = std::io::stdout().write_all(text.as_bytes()) {
        eprintln!("jess: cannot print the findings: {error}");
        return Exit::INTERNAL;
    }
    if !report.refuses() {
        return Exit::OK;
    }
    if args.trust_repo {
        eprintln!(
            "jess: --trust-repo: agent configuration is not refused on this run; every other guard stays on"
        );
        return Exit::OK;
    }
    if args.dry_run {
        eprintln!("jess: --dry-run suppressed the refusal");
        return Exit::OK;
    }
    Exit::REFUSED
}
