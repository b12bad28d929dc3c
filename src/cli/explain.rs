//! `jess explain ID`: what a rule means and what to do.

use crate::exit::Exit;
use crate::sanitise;
use crate::scan::{PatternFile, builtin_files};

/// Say what a rule means, with examples that match and near misses that do not
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The rule, e.g. RO001
    id: String,
}

/// Runs it.
pub fn run(args: Args) -> Exit {
    for (_, text) in builtin_files() {
        let Ok(mut file) = toml::from_str::<PatternFile>(text) else { continue };
        file.fill();
        let Some(r) = file.rules.iter().find(|r| r.id.eq_ignore_ascii_case(&args.id)) else { continue };
        say!("{} {} ({}, {})\n", r.id, r.name, r.severity.name(), file.category);
        say!("{}\n\nWhat to do: {}", r.message, r.remediation);
        for (title, list) in
            [("Matches:", &r.examples), ("Does not match:", &r.near_misses), ("See:", &r.references)]
        {
            if !list.is_empty() {
                say!("\n{title}");
                list.iter().for_each(|e| say!("  {}", sanitise::escape(e, false)));
            }
        }
        return Exit::OK;
    }
    tell!("jess explain: no rule {}; `jess rules` lists them", sanitise::escape(&args.id, false));
    Exit::USAGE
}
