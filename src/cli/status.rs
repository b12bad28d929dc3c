//! `jess status`: sessions and their labels.

use super::failed::Failed;
use crate::audit::{self, state};
use crate::exit::Exit;

/// Show sessions and the labels raised on them.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args) -> Exit {
    let Some(dir) = state::dir(|n| std::env::var(n).ok()) else {
        return Failed::from(audit::Error::Nowhere).tell();
    };
    let mut exit = Exit::OK;
    let sessions = state::sessions(&dir);
    if sessions.is_empty() {
        say!("no session has labels or counts");
    }
    for session in sessions {
        say!("{}", clean(&session));
        match state::counts(&dir, &session) {
            Ok((0, 0)) => {}
            Ok((denials, findings)) => say!("  {denials} denials, {findings} results with findings"),
            Err(why) => {
                tell!("jess: the counts of {} cannot be read: {why}", clean(&session));
                exit = Exit::INTERNAL;
            }
        }
        match state::labels(&dir, &session) {
            Ok(labels) => {
                for label in labels {
                    say!(
                        "  {} {} {}",
                        label.leg,
                        crate::audit::time::utc(label.time),
                        clean(&label.evidence)
                    );
                }
            }
            Err(why) => {
                tell!("jess: the labels of {} cannot be read: {why}", clean(&session));
                exit = Exit::INTERNAL;
            }
        }
    }
    exit
}

fn clean(text: &str) -> String {
    crate::sanitise::escape(text, false)
}
