//! `jess config`: what counts, and what is wrong with the files.

use crate::config::{self, Places, keys};
use crate::exit::Exit;
use std::path::PathBuf;

/// Check the configuration, or show its keys and schema.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Read the operator's, the machine's and the project's file and say what is wrong with them (exit 2).
    Check {
        /// A file that counts before the operator's.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// The project; the working directory when left out, and then the file above it in the same Git working tree.
        #[arg(long, value_name = "DIR")]
        project: Option<PathBuf>,
    },
    /// List every key with its default, what a project may do with it, and what it does.
    Keys,
    /// List the names of all rules, for rules.deny and rules.off.
    Rules,
    /// Print the JSON schema of a configuration file.
    Schema,
}

/// Runs it.
pub fn run(args: Args) -> Exit {
    match args.action {
        Action::Keys => {
            for key in keys::KEYS {
                let project = match key.project {
                    keys::Project::Adds => "adds",
                    keys::Project::Narrows => "narrows",
                    keys::Project::Tightens => "tightens",
                    keys::Project::Refused => "may not",
                };
                say!("{:26} {:11} project: {:9} {}", key.name, key.default, project, key.doc);
            }
            Exit::OK
        }
        Action::Rules => {
            for name in crate::policy::rule_names::RULES {
                say!("{name}");
            }
            Exit::OK
        }
        Action::Schema => {
            say!("{}", serde_json::to_string_pretty(&keys::schema()).unwrap_or_default());
            Exit::OK
        }
        Action::Check { config, project } => check(config, project),
    }
}

fn check(flag: Option<PathBuf>, project: Option<PathBuf>) -> Exit {
    let var = |n: &str| std::env::var(n).ok();
    let absolute = project.map(|p| std::path::absolute(&p).unwrap_or(p));
    let project = absolute
        .or_else(|| std::env::current_dir().ok().map(|cwd| config::project(&var, &cwd)))
        .unwrap_or_else(|| "/".into());
    let home = var("HOME").map(PathBuf::from).unwrap_or_else(|| "/".into());
    let places = Places { flag, ..Places::of(&var, &home, &project) };
    for (origin, path) in places.files() {
        let there = if path.exists() { "" } else { " (absent)" };
        say!("{:9} {}{there}", format!("{origin:?}").to_lowercase(), crate::sanitise::path(path));
    }
    let config = config::load(&places);
    for problem in &config.problems {
        tell!("jess: {}", crate::sanitise::escape(&problem.to_string(), false));
    }
    if config.problems.is_empty() {
        say!("no faults");
        Exit::OK
    } else {
        Exit::REFUSED
    }
}
