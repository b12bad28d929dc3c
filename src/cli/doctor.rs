//! `jess doctor`: what this machine can enforce, and how to get more.

use crate::doctor::{self, Diagnosis};
use crate::exit::Exit;

/// Says what this machine can enforce, why, and how to get more.
///
/// Exits 0 if a run gets tier full and forbidden things fail inside, 1 if it gets less, 3 if it would be refused.
#[derive(clap::Args)]
pub struct Args {
    /// `text`, or `json`
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
    /// Try again what was found by trying before
    #[arg(long)]
    fresh: bool,
    /// Print an AppArmor profile that lets this program make user namespaces, and nothing else
    #[arg(long, exclusive = true)]
    apparmor_profile: bool,
}

/// Runs the checks and prints them.
pub fn run(args: Args) -> Exit {
    if args.apparmor_profile {
        use std::io::Write as _;
        let _ = write!(std::io::stdout(), "{}", doctor::apparmor_profile());
        return Exit::OK;
    }
    let diagnosis = doctor::diagnose(args.fresh);
    if args.format == "json" {
        say!("{}", serde_json::to_string_pretty(&diagnosis).unwrap_or_default());
    } else {
        print(&diagnosis);
    }
    match (diagnosis.is_full(), diagnosis.live.held) {
        (true, true) => Exit::OK,
        (false, true) => Exit::FINDINGS,
        (_, false) => Exit::ISOLATION,
    }
}

fn print(diagnosis: &Diagnosis) {
    let live = &diagnosis.live;
    let cached = if live.cached { " (found earlier on this boot; --fresh tries again)" } else { "" };
    let held = if live.held { "forbidden things fail inside" } else { "runs are refused" };
    say!("tier {}: {held}{cached}", diagnosis.tier);
    if !live.message.is_empty() {
        say!("  {}", live.message);
    }
    for weak in &live.weak {
        say!("  {weak}");
    }
    for check in &diagnosis.checks {
        say!("\n{:8} {}/{}: {}", check.state.word(), check.group, check.name, check.found);
        for lost in &check.lost {
            say!("         not guaranteed: {lost}");
        }
        if let Some(remedy) = &check.remedy {
            say!("         to do: {remedy}");
        }
    }
}
