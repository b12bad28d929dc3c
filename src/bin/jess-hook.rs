//! The hook as a process that starts fast: it asks the daemon, and judges by itself when there is none.
//!
//! `jess` itself links TLS, HTTP, the argument parser and more; starting it costs more than judging an event. This binary
//! links the question to the daemon and the judge, and where the machine has what that needs it is linked statically.

use jess::daemon;
use jess::exit::Exit;
use jess::hook::process::{self, Process};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The client takes this status, and no other, for a refusal.
const REFUSED: u8 = 2;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    std::panic::catch_unwind(hook).unwrap_or(ExitCode::from(REFUSED))
}

fn hook() -> ExitCode {
    if !process::outlives_file_limit() {
        return refuse("the limit on file sizes would end this process");
    }
    let Ok(own) = std::env::current_exe() else { return refuse("this program's own path is not known") };
    let jess = own.with_file_name("jess");
    let args: Vec<OsString> = std::env::args_os().skip(1).filter(|a| a != "hook").collect();
    if !args.is_empty() {
        return become_jess(&jess, args);
    }
    let Ok(event) = process::read() else { return refuse("standard input cannot be read") };
    let var = |name: &str| std::env::var(name).ok();
    // In a dispatched session there is no daemon of the operator's, and none is started.
    let alone = var("JESS_UNTRUSTED_ROOT").is_some();
    if !alone
        && let Some(dir) = daemon::dir(&var)
        && let Some(reply) = daemon::client::ask(&dir, &jess, &daemon::client::environment(), &event)
    {
        return say(&reply);
    }
    process::judge(&Process::beside(jess, !alone), Some(event)).into()
}

fn say(reply: &daemon::wire::Reply) -> ExitCode {
    if !reply.message.is_empty() {
        let _ = std::io::stderr().write_all(&reply.message);
    }
    // A denial that cannot be written must not turn into silence.
    if !reply.document.is_empty() && process::put(&reply.document).is_err() {
        return Exit::REFUSED.into();
    }
    ExitCode::from(if reply.exit == 0 { 0 } else { REFUSED })
}

/// Turns into `jess hook` with arguments, the file beside this one.
fn become_jess(jess: &Path, args: Vec<OsString>) -> ExitCode {
    let why = Command::new(jess).arg("hook").args(args).exec();
    refuse(&format!("{jess:?} cannot be started: {why}; install jess beside jess-hook"))
}

fn refuse(why: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "jess could not judge this and therefore blocks it: {why}");
    ExitCode::from(REFUSED)
}
