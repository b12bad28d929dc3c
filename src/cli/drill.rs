//! `jess drill`: attack yourself, and see which layer stops what.

use crate::dispatch::drill::{self, ENVIRONMENT_NAME, Options, Row};
use crate::exit::Exit;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

/// Runs the whole pipeline against a hostile repository with a completely compromised agent.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Run the attacks through this Claude Code binary, with a scripted model
    #[arg(long, value_name = "PATH")]
    client: Option<PathBuf>,
    /// Only this attack (may be repeated)
    #[arg(long, value_name = "ATTACK")]
    only: Vec<String>,
    /// Leave one layer off and run the attacks that it alone stops: they must get through
    #[arg(long, value_name = "LAYER")]
    without: Option<String>,
    /// Print JSON instead of the table
    #[arg(long, value_parser = ["text", "json"], default_value = "text")]
    format: String,
    #[command(subcommand)]
    part: Option<Part>,
}

/// Parts that the drill starts itself.
#[derive(clap::Subcommand)]
enum Part {
    /// The built-in agent
    #[command(hide = true)]
    Agent {
        /// What to do, as JSON
        plan: String,
    },
    /// One attack of the agent's
    #[command(hide = true)]
    Act {
        /// Which
        name: String,
        /// With what
        args: Vec<String>,
    },
    /// The scripted model
    #[command(hide = true)]
    Model {
        /// The turns
        script: PathBuf,
        /// Where requests are noted
        log: PathBuf,
    },
}

/// Holds the drill, or plays one of its parts.
pub fn run(args: Args) -> Exit {
    match &args.part {
        Some(Part::Agent { plan }) => return drill::agent::run(plan),
        Some(Part::Act { name, args }) => return drill::act::run(name, args),
        Some(Part::Model { script, log }) => return drill::model::serve(script, log),
        None => {}
    }
    if std::env::var_os(ENVIRONMENT_NAME).is_none() {
        return start_again();
    }
    let options = Options { client: args.client, only: args.only, without: args.without };
    let rows = match drill::hold(&options) {
        Ok(rows) => rows,
        Err(error) => {
            tell!("jess drill: {error}");
            return if matches!(error, drill::DrillError::World(_)) { Exit::INTERNAL } else { Exit::USAGE };
        }
    };
    let through = rows.iter().filter(|row| row.got_through).count();
    if args.format == "json" {
        say!("{}", crate::sanitise::out::json(&serde_json::to_string_pretty(&rows).unwrap_or_default()));
    } else {
        print_table(&rows);
        say!("{through} of {} attacks got through", rows.len());
    }
    if through == 0 && !rows.is_empty() { Exit::OK } else { Exit::FINDINGS }
}

/// Starts this program again in an environment that holds the drill's own secrets and none of the operator's.
fn start_again() -> Exit {
    let words = drill::fresh_words();
    let (program, (secret, key)) = match (std::env::current_exe(), words) {
        (Ok(program), Ok(words)) => (program, words),
        (Err(error), _) | (_, Err(error)) => {
            tell!("jess drill: setting the drill up: {error}");
            return Exit::INTERNAL;
        }
    };
    let kept = ["PATH", "HOME", "LANG", "TERM", "TMPDIR"]
        .into_iter()
        .filter_map(|n| Some((n, std::env::var_os(n)?)));
    let error = std::process::Command::new(program)
        .args(std::env::args_os().skip(1))
        .env_clear()
        .envs(kept)
        .env(ENVIRONMENT_NAME, secret)
        .env("ANTHROPIC_API_KEY", key)
        .exec();
    tell!("jess drill: starting again: {error}");
    Exit::INTERNAL
}

fn print_table(rows: &[Row]) {
    let width = |f: fn(&Row) -> usize| rows.iter().map(f).max().unwrap_or(0);
    let attack = width(|r| r.what.len());
    let layers = width(|r| r.layers.join(", ").len()).max("stopped by".len());
    say!("{:attack$}  {:layers$}  evidence", "attack", "stopped by");
    for row in rows {
        let by = if row.got_through { "GOT THROUGH".to_owned() } else { row.layers.join(", ") };
        say!("{:attack$}  {by:layers$}  {}", row.what, row.evidence);
    }
}
