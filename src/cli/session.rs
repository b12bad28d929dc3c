//! `jess session clear`: a person takes the labels and counts of a session away.

use super::failed::Failed;
use crate::audit::{self, Record, state};
use crate::exit::Exit;
use crate::policy::rule_of_two::{self, Attended};

/// Manage sessions.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Take a session's labels and counts away. Only a person at a terminal can; the reason goes on record.
    Clear {
        /// The session, as `jess status` shows it.
        id: String,
        /// Why.
        #[arg(long)]
        reason: String,
    },
}

/// Runs it.
pub fn run(args: Args) -> Exit {
    let Action::Clear { id, reason } = args.action;
    if reason.trim().is_empty() {
        tell!("jess: give a reason: it goes on record");
        return Exit::USAGE;
    }
    if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
        tell!("jess: {:?} is no session; see jess status", crate::sanitise::escape(&id, false));
        return Exit::USAGE;
    }
    if rule_of_two::attended() != Attended::Yes {
        tell!("jess: labels are taken away by a person at a terminal, and nobody is there; run this by hand");
        return Exit::REFUSED;
    }
    match clear(&id, &reason) {
        Ok(true) => {
            say!("{id}: labels and counts taken away");
            Exit::OK
        }
        Ok(false) => {
            tell!("jess: {id} has no labels and no counts; see jess status");
            Exit::FINDINGS
        }
        Err(why) => Failed::from(why).tell(),
    }
}

/// On record first: what cannot be recorded does not happen.
fn clear(id: &str, reason: &str) -> Result<bool, audit::Error> {
    let dir = state::dir(|n| std::env::var(n).ok()).ok_or(audit::Error::Nowhere)?;
    if !state::sessions(&dir).iter().any(|s| s == id) {
        return Ok(false);
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let record = Record {
        time: now,
        session_id: id.to_owned(),
        event: "SessionClear".into(),
        verdict: "cleared".into(),
        rule: "session.clear".into(),
        reason: reason.to_owned(),
        ..Record::default()
    };
    super::log::open()?.append(&record)?;
    state::clear(&dir, id)
}
