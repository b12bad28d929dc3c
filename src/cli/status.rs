//! `jess status`: sessions and their labels.

use crate::audit::state;
use crate::exit::Exit;

/// Show sessions and the labels raised on them.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args) -> Exit {
    let Some(dir) = state::dir(|n| std::env::var(n).ok()) else {
        tell!("jess: there is no HOME, so there are no sessions");
        return Exit::INTERNAL;
    };
    for session in state::sessions(&dir) {
        say!("{}", clean(&session));
        for label in state::labels(&dir, &session) {
            say!("  {} {} {}", label.leg, crate::audit::time::utc(label.time), clean(&label.evidence));
        }
    }
    Exit::OK
}

fn clean(text: &str) -> String {
    crate::sanitise::escape(text, false)
}
