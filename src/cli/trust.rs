//! `jess trust`: what a repository may not bring along.

use crate::exit::Exit;
use crate::trust;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};

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
    /// Score agent definitions by the Rule of Two, with the narrowest fix for each.
    Agents(AgentsArgs),
    /// Record that you looked at what a repository brings along; any change brings the findings back.
    Approve(TargetArgs),
    /// Forget an approval.
    Revoke(TargetArgs),
    /// Show every approval.
    List,
}

#[derive(ClapArgs)]
struct TargetArgs {
    /// The repository.
    repo: PathBuf,
}

#[derive(ClapArgs)]
struct AgentsArgs {
    /// End with 2 when an agent's verdict is this or worse.
    #[arg(long, value_enum)]
    fail_on: Option<Level>,
    /// How to print the audit.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// A repository, a plugin, or a directory of agent definitions.
    dir: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Level {
    FloorSafe,
    NeedsTightening,
    NeedsHitl,
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
    Sarif,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Exit {
    match args.command {
        Command::Check(args) => check(&args),
        Command::Agents(args) => agents(&args),
        Command::Approve(args) => approve(&args.repo),
        Command::Revoke(args) => revoke(&args.repo),
        Command::List => list(),
    }
}

fn check(args: &CheckArgs) -> Exit {
    let report = match trust::check(&args.repo) {
        Ok(report) => report,
        Err(error) => return no_verdict(&error),
    };
    let text = match args.format {
        Format::Text => report.render(args.trust_repo),
        Format::Json => crate::sanitise::out::json(&format!("{:#}\n", report.to_json())),
        Format::Sarif => match trust::sarif::render(&report) {
            Ok(text) => crate::sanitise::out::json(&(text + "\n")),
            Err(error) => return internal(&format!("cannot write SARIF: {error}")),
        },
    };
    if let Some(exit) = print(&text) {
        return exit;
    }
    if args.trust_repo {
        tell!(
            "jess: --trust-repo: agent configuration is not refused on this run; every other guard stays on"
        );
        return Exit::OK;
    }
    if !report.refuses() {
        return Exit::OK;
    }
    if args.dry_run {
        tell!("jess: --dry-run suppressed the refusal");
        return Exit::OK;
    }
    Exit::REFUSED
}

fn agents(args: &AgentsArgs) -> Exit {
    let audits = match trust::agents::audit(&args.dir) {
        Ok(audits) => audits,
        Err(error) => return no_verdict(&error),
    };
    let text = match args.format {
        Format::Text => trust::agents::render(&audits),
        Format::Json => {
            crate::sanitise::out::json(&format!("{:#}\n", serde_json::json!({ "agents": audits })))
        }
        Format::Sarif => {
            tell!("jess: trust agents prints text or json");
            return Exit::USAGE;
        }
    };
    if let Some(exit) = print(&text) {
        return exit;
    }
    let limit = match args.fail_on {
        None => return Exit::OK,
        Some(Level::FloorSafe) => trust::agents::Verdict::FloorSafe,
        Some(Level::NeedsTightening) => trust::agents::Verdict::NeedsTightening,
        Some(Level::NeedsHitl) => trust::agents::Verdict::NeedsHitl,
    };
    if audits.iter().any(|audit| audit.verdict >= limit) { Exit::REFUSED } else { Exit::OK }
}

fn approve(repo: &Path) -> Exit {
    match trust::approve(repo, &trust::Options::default()) {
        Ok(report) => {
            if let Some(exit) = print(&report.render_human()) {
                return exit;
            }
            tell!(
                "jess: approved as it is now; any change brings the findings back (jess trust revoke undoes this)"
            );
            Exit::OK
        }
        Err(error @ trust::approve::Error::NotApprovable { .. }) => {
            tell!("jess: {error}");
            Exit::REFUSED
        }
        Err(error) => internal(&error.to_string()),
    }
}

fn revoke(repo: &Path) -> Exit {
    let Some(place) = trust::approve::Place::from_environment() else {
        return internal(&trust::approve::Error::NoPlace.to_string());
    };
    // A target that is gone can still be revoked by the path under which it was approved.
    let real = std::fs::canonicalize(repo).unwrap_or_else(|_| repo.to_owned());
    match place.revoke(&real) {
        Ok(true) => Exit::OK,
        Ok(false) => {
            tell!("jess: there is no approval of this target (jess trust list shows all)");
            Exit::USAGE
        }
        Err(error) => internal(&error.to_string()),
    }
}

fn list() -> Exit {
    let Some(place) = trust::approve::Place::from_environment() else { return Exit::OK };
    match place.list() {
        Ok(records) => {
            let lines: String = records
                .iter()
                .map(|(target, at, files)| {
                    format!("{}\t{files} files\t{at}\n", crate::sanitise::path(target))
                })
                .collect();
            print(&lines).unwrap_or(Exit::OK)
        }
        Err(error) => internal(&error.to_string()),
    }
}

fn no_verdict(error: &trust::Error) -> Exit {
    tell!("jess: {error}");
    match error {
        trust::Error::Target { .. } => Exit::USAGE,
        trust::Error::Io { .. } => Exit::INTERNAL,
    }
}

fn internal(message: &str) -> Exit {
    tell!("jess: {message}");
    Exit::INTERNAL
}

/// Prints to stdout; the exit code when that fails.
fn print(text: &str) -> Option<Exit> {
    // Nothing to print is no line.
    if text.is_empty() {
        return None;
    }
    crate::sanitise::out::print(text).err().map(|e| internal(&format!("cannot print: {e}")))
}
