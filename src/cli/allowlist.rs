//! `jess hook bash-allowlist` and `jess hook webfetch-allowlist`: PreToolUse hooks for an agent's frontmatter.
//!
//! Exit 0 and silence lets the call go on to the client's own rules; exit 2 with a reason on stderr blocks it. Every
//! fault blocks.

use crate::exit::Exit;
use crate::policy::allowlist::{self, Hosts};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The largest event that is read, in bytes.
const MAX_EVENT: u64 = 8 << 20;
/// The largest anchor file that is read, in bytes.
const MAX_ANCHOR: u64 = 64 << 10;

/// Allow the Bash commands that start with one of these, and nothing else.
#[derive(clap::Args)]
pub struct BashArgs {
    /// Commands, each one argument: `"git log"` allows `git log` and `git log --oneline`.
    commands: Vec<String>,
}

/// Allow WebFetch to these https hosts, and no others.
#[derive(clap::Args)]
pub struct WebArgs {
    /// Exact hosts.
    hosts: Vec<String>,
    /// Allow any https host.
    #[arg(long, conflicts_with_all = ["hosts", "anchor_file"])]
    https_any: bool,
    /// A file: line 1 is a URL or host whose whole registrable domain is allowed, further lines are exact hosts. Each
    /// decision is appended to FILE.log.
    #[arg(long, value_name = "FILE")]
    anchor_file: Option<PathBuf>,
}

/// Judges a Bash event.
pub fn bash(args: &BashArgs) -> Exit {
    answer(event().and_then(|event| allowlist::bash(&event, &args.commands)))
}

/// Judges a WebFetch event.
pub fn webfetch(args: &WebArgs) -> Exit {
    let verdict = web_verdict(args);
    answer(verdict)
}

fn web_verdict(args: &WebArgs) -> Result<(), String> {
    let mut hosts = Hosts { any: args.https_any, ..Hosts::default() };
    if let Some(file) = &args.anchor_file {
        hosts = Hosts::from_anchor(&read_anchor(file)?)?;
    }
    hosts.exact.extend(args.hosts.iter().cloned());
    let event = event()?;
    let verdict = allowlist::webfetch(&event, &hosts);
    match &args.anchor_file {
        Some(file) => log(file, &event, &verdict).and(verdict),
        None => verdict,
    }
}

/// Opening a pipe must not wait for its other end.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

fn regular(file: std::fs::File) -> std::io::Result<std::fs::File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::Error::other("not a regular file")) }
}

fn read_anchor(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(NONBLOCK)
        .open(file)
        .and_then(regular)
        .and_then(|f| f.take(MAX_ANCHOR).read_to_string(&mut text))
        .map_err(|e| format!("the anchor file cannot be read: {e}"))?;
    Ok(text)
}

/// One JSON line a decision. A decision that cannot be logged is a denial.
fn log(file: &Path, event: &serde_json::Value, verdict: &Result<(), String>) -> Result<(), String> {
    let mut path = file.as_os_str().to_owned();
    path.push(".log");
    let url = event.pointer("/tool_input/url");
    let line = serde_json::json!({
        "url": url, "allowed": verdict.is_ok(), "reason": verdict.as_ref().err(),
    });
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(NONBLOCK)
        .open(path)
        .and_then(regular)
        .and_then(|mut f| f.write_all(format!("{line}\n").as_bytes()))
        .map_err(|e| format!("the decision cannot be logged: {e}"))
}

fn event() -> Result<serde_json::Value, String> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_EVENT + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| format!("standard input cannot be read: {e}"))?;
    if bytes.len() as u64 > MAX_EVENT {
        return Err("the event is too large".to_string());
    }
    serde_json::from_slice(&bytes).map_err(|_| "the event is not JSON".to_string())
}

fn answer(verdict: Result<(), String>) -> Exit {
    match verdict {
        Ok(()) => Exit::OK,
        Err(reason) => {
            tell!("jess: blocked: {reason}");
            Exit::REFUSED
        }
    }
}
