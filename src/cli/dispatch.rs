//! `jess dispatch`: an agent over a hostile repository, with only the result coming back.

use crate::dispatch::{self, Error, Request};
use crate::exit::Exit;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Runs an agent over a hostile repository: trust gate, Rule of Two, envelope, sandbox, hooks, egress, output gates.
#[derive(clap::Args)]
pub struct Args {
    /// The repository, or other material, under analysis: read-only inside
    #[arg(long, value_name = "DIR")]
    repo: PathBuf,
    /// An existing directory outside the target for what the agent writes and for the report
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    net: super::net::NetArgs,
    #[command(flatten)]
    credentials: super::net::CredentialArgs,
    #[command(flatten)]
    model: super::model::ModelArgs,
    /// Accept the agent configuration that the target brings along, for this run
    #[arg(long)]
    trust_repo: bool,
    /// Seal this file's text and append it to the prompt (may be repeated)
    #[arg(long, value_name = "FILE")]
    untrusted: Vec<PathBuf>,
    /// Stop the run after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = super::run::seconds)]
    timeout: Option<Duration>,
    /// The agent and its arguments, for example: claude -p "summarise"
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the pipeline, prints the gated answer.
pub fn run(args: Args) -> Exit {
    let model = match args.model.settings() {
        Ok(model) => model,
        Err(what) => {
            tell!("jess dispatch: {what}");
            return Exit::USAGE;
        }
    };
    let request = Request {
        repo: args.repo,
        out: args.out.clone(),
        reach: args.net.reach(args.credentials),
        trust_repo: args.trust_repo,
        untrusted: args.untrusted,
        timeout: args.timeout,
        model,
        command: args.command,
    };
    match dispatch::run(&request) {
        Ok(done) => {
            if done.delivered.findings.is_empty() {
                say!("{}", done.delivered.answer.trim_end_matches('\n'));
            } else {
                tell!("jess dispatch: the output gate refused what came back:");
                for finding in &done.delivered.findings {
                    tell!("  {finding}");
                }
            }
            tell!("jess dispatch: report: {}", crate::sanitise::path(args.out.join(dispatch::REPORT)));
            done.exit()
        }
        Err(error) => {
            if let Error::Poisoned(report) = &error {
                tell!("{}", report.render_human());
            }
            tell!("jess dispatch: {error}");
            error.exit()
        }
    }
}
