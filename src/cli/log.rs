//! `jess log`: the audit trail of decisions.

use super::failed::Failed;
use crate::audit::time::utc;
use crate::audit::{self, Log, Record, otlp, state};
use crate::exit::Exit;

/// Show the audit trail of hook decisions.
#[derive(clap::Args)]
pub struct Args {
    /// Only this session.
    #[arg(long)]
    session: Option<String>,
    /// Only this verdict: deny, ask, none or sealed.
    #[arg(long)]
    verdict: Option<String>,
    /// Only this tool.
    #[arg(long)]
    tool: Option<String>,
    /// Only the last N records.
    #[arg(long, short = 'n')]
    last: Option<usize>,
    /// Check that no line was changed, dropped, moved or cut off.
    #[arg(long)]
    verify: bool,
    /// Send the records to an OpenTelemetry collector (OTLP over HTTP, JSON), e.g. http://127.0.0.1:4318, and print none.
    #[arg(long, value_name = "URL", conflicts_with = "verify")]
    otlp: Option<String>,
    /// text or json (one object a line).
    #[arg(long, default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

/// Opens the log of this user.
pub(super) fn open() -> Result<Log, audit::Error> {
    Log::open(&state::dir(|n| std::env::var(n).ok()).ok_or(audit::Error::Nowhere)?)
}

/// Runs the command.
pub fn run(args: Args) -> Exit {
    show(&args).unwrap_or_else(Failed::tell)
}

fn show(args: &Args) -> Result<Exit, Failed> {
    let log = open()?;
    if args.verify {
        return match log.verify() {
            Ok(n) => {
                say!("{n} records, none changed");
                Ok(Exit::OK)
            }
            Err(why) => {
                tell!("jess: {why}");
                Ok(Exit::FINDINGS)
            }
        };
    }
    let fits = |want: &Option<String>, is: &str| want.as_deref().is_none_or(|w| w == is);
    let mut records = log.records()?;
    records.retain(|r| {
        fits(&args.session, &r.session_id) && fits(&args.verdict, &r.verdict) && fits(&args.tool, &r.tool)
    });
    let skip = args.last.map_or(0, |n| records.len().saturating_sub(n));
    if let Some(address) = &args.otlp {
        let records = records.get(skip..).unwrap_or_default();
        let sent = otlp::send(address, records)?;
        say!("{sent} records sent");
        return Ok(Exit::OK);
    }
    for record in records.iter().skip(skip) {
        if args.format == "json" {
            say!("{}", crate::sanitise::out::json(&serde_json::to_string(record).unwrap_or_default()));
        } else {
            say!("{}", line(record));
        }
    }
    Ok(Exit::OK)
}

/// One record for a terminal. The fields come from events, so control characters are escaped.
pub(super) fn line(r: &Record) -> String {
    let or = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let text = format!(
        "{} {:<6} {} {} {} {} {}",
        utc(r.time),
        r.verdict,
        or(&r.tool_use_id),
        r.event,
        or(&r.tool),
        or(&r.rule),
        r.reason
    );
    crate::sanitise::escape(&text, false)
}
