//! `jess why`: what led to a decision, and what would let the call pass.

use super::failed::Failed;
use crate::audit::time::utc;
use crate::audit::{Record, state};
use crate::exit::Exit;
use crate::policy::ways;
use std::path::Path;

/// Most decisions that are shown; the last ones are.
const SHOWN_MAX: usize = 20;

/// Say why a call was decided as it was: the call, the rule, what the session had met by then, and what would let it pass.
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
    let found: Vec<&Record> = records
        .iter()
        .filter(|r| {
            r.tool_use_id == args.event || r.rule.contains(&args.event) || r.reason.contains(&args.event)
        })
        .collect();
    if found.is_empty() {
        tell!("jess: no decision on record fits {:?}; see jess log", args.event);
        return Exit::FINDINGS;
    }
    let dir = state::dir(|n| std::env::var(n).ok());
    let skipped = found.len().saturating_sub(SHOWN_MAX);
    for record in found.into_iter().skip(skipped) {
        say!("{}", super::log::line(record));
        for line in chain(record, &records, dir.as_deref()) {
            say!("  {}", crate::sanitise::escape(&line, false));
        }
    }
    if skipped > 0 {
        tell!("jess: {skipped} older decisions fit too; give the id of one call, as jess log shows it");
    }
    Exit::OK
}

/// What led to a decision, one fact a line.
fn chain(record: &Record, all: &[Record], dir: Option<&Path>) -> Vec<String> {
    let mut out = Vec::new();
    if !record.target.is_empty() {
        out.push(format!("call      {} {}", record.tool, record.target));
    }
    if !matches!(record.verdict.as_str(), "deny" | "ask") {
        return out;
    }
    if !record.rule.is_empty() {
        out.push(format!("rule      {}", record.rule));
    }
    out.push(format!("session   {}", record.session_id));
    // A session that was cleared since has other labels now than it had then.
    let cleared = all
        .iter()
        .find(|r| r.event == "SessionClear" && r.session_id == record.session_id && r.time >= record.time);
    if let Some(cleared) = cleared {
        out.push(format!("labels    taken away by a person {}: {}", utc(cleared.time), cleared.reason));
    } else {
        out.extend(labels(record, dir));
    }
    let before = all
        .iter()
        .filter(|r| r.session_id == record.session_id && r.time <= record.time && r.verdict == "deny")
        .filter(|r| *r != record)
        .count();
    if before > 0 {
        out.push(format!("before    {before} denials in this session"));
    }
    if record.reason.contains("Nobody is there to agree") {
        out.push("attended  no: with a person there this would be a question".into());
    }
    out.push(format!("passes    {}", ways::out(&record.rule, record.verdict == "ask")));
    out
}

/// What the session had met when the decision fell, with what raised each label.
fn labels(record: &Record, dir: Option<&Path>) -> Vec<String> {
    let Some(dir) = dir else { return Vec::new() };
    match state::labels(dir, &record.session_id) {
        Err(why) => vec![format!("labels    cannot be read: {why}")],
        Ok(labels) => {
            let then: Vec<String> = labels
                .iter()
                .filter(|l| l.time <= record.time)
                .map(|l| {
                    format!("label     {} ({}) since {}: {}", l.leg, meaning(l.leg), utc(l.time), l.evidence)
                })
                .collect();
            if then.is_empty() { vec!["labels    none by then".into()] } else { then }
        }
    }
}

fn meaning(leg: char) -> &'static str {
    match leg {
        'A' => "untrusted content",
        'B' => "sensitive material",
        _ => "effect outside",
    }
}
