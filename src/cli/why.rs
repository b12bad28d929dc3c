//! `jess why`: why a decision fell.

use super::failed::Failed;
use crate::exit::Exit;

/// Say why a call was decided as it was.
#[derive(clap::Args)]
pub struct Args {
    /// The call's tool_use_id, or a part of its rule or reason.
    event: String,
}

/// Runs the command.
pub fn run(args: Args) -> Exit {
    let records = match super::log::open().and_then(|l| l.records()) {
        Ok(records) => records,
        Err(why) => return Failed::from(why).tell(),
    };
    let found: Vec<_> = records
        .iter()
        .filter(|r| {
            r.tool_use_id == args.event || r.rule.contains(&args.event) || r.reason.contains(&args.event)
        })
        .collect();
    if found.is_empty() {
        tell!("jess: no decision on record fits {:?}; see jess log", args.event);
        return Exit::FINDINGS;
    }
    for record in found {
        say!("{}", super::log::line(record));
    }
    Exit::OK
}
