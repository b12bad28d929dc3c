//! The hook as a process that starts fast: it asks the daemon, and becomes `jess hook` when there is none.
//!
//! `jess` itself links the parser, the scanner, TLS and more; starting it costs more than judging an event. This binary
//! links the question and the answer.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

/// Longest event read; a longer one is refused.
const EVENT_MAX: u64 = 33 << 20;
/// The client takes this status, and no other, for a refusal.
const REFUSED: u8 = 2;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    ExitCode::from(std::panic::catch_unwind(hook).unwrap_or(REFUSED))
}

fn hook() -> u8 {
    let mut event = Vec::with_capacity(16 * 1024);
    if std::io::stdin().lock().take(EVENT_MAX).read_to_end(&mut event).is_err() {
        return refuse("standard input cannot be read");
    }
    let var = |name: &str| std::env::var(name).ok();
    // In a dispatched session there is no daemon of the operator's, and none is started.
    let args: Vec<OsString> = std::env::args_os().skip(1).filter(|a| a != "hook").collect();
    let alone = !args.is_empty() || var("JESS_UNTRUSTED_ROOT").is_some();
    if !alone
        && let Some(dir) = jess::daemon::dir(&var)
        && let Some(reply) = jess::daemon::client::ask(&dir, &jess::daemon::client::environment(), &event)
    {
        if !reply.message.is_empty() {
            let _ = std::io::stderr().write_all(&reply.message);
        }
        let mut out = std::io::stdout().lock();
        if out.write_all(&reply.document).and_then(|()| out.flush()).is_err() {
            return REFUSED;
        }
        return if reply.exit == 0 { 0 } else { REFUSED };
    }
    become_jess(&event, args, alone)
}

/// Turns into `jess hook`, the file beside this one, with the event on standard input.
fn become_jess(event: &[u8], more: Vec<OsString>, alone: bool) -> u8 {
    let Ok(own) = std::env::current_exe() else { return refuse("this program's own path is not known") };
    let stdin = match held(event) {
        Ok(file) => file,
        Err(why) => return refuse(&format!("the event cannot be handed on: {why}")),
    };
    let mut args: Vec<OsString> = vec!["hook".into()];
    if !alone {
        args.push("--start-daemon".into());
    }
    args.extend(more);
    let jess = own.with_file_name("jess");
    let why = Command::new(&jess).args(args).stdin(Stdio::from(stdin)).exec();
    refuse(&format!("{jess:?} cannot be started: {why}; install jess beside jess-hook"))
}

/// A file in memory with the event, at its start.
fn held(event: &[u8]) -> std::io::Result<std::fs::File> {
    use std::io::Seek;
    let mut file: std::fs::File =
        rustix::fs::memfd_create("jess-event", rustix::fs::MemfdFlags::CLOEXEC).map(Into::into)?;
    file.write_all(event)?;
    file.rewind()?;
    Ok(file)
}

fn refuse(why: &str) -> u8 {
    let _ = writeln!(std::io::stderr(), "jess could not judge this and therefore blocks it: {why}");
    REFUSED
}
