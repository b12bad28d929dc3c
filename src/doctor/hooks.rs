//! The hook in the client's settings: does it stand there, does it answer, does anything leave it out. The
//! configuration, and the daemon.

use super::{Check, State};
use crate::config::{self, Places};
use crate::daemon;
use crate::install::{Client, Form, check};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Flags with which a client leaves out hooks that do not stand in managed settings.
const LEAVE_OUT: [&str; 4] = ["--bare", "--safe-mode", "--restricted", "--setting-sources"];

/// Every check of this group, for the working directory as the project.
pub fn checks() -> Vec<Check> {
    let var = |name: &str| std::env::var(name).ok();
    let home = var("HOME").map(PathBuf::from).unwrap_or_else(|| "/".into());
    let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let project = config::project(&var, &cwd);
    let client = Client::find(None);
    let standing = check::look(&check::files(&home, &project), client.as_ref());
    let mut out = vec![of_client(client.as_ref())];
    out.extend(of_settings(&standing));
    out.extend(standing.programs.iter().filter(|p| p.is_file()).map(|p| of_answer(p)));
    out.extend(of_sessions());
    out.push(configuration(&Places::of(&var, &home, &project)));
    out.push(of_daemon(daemon::dir(&var).as_deref()));
    out
}

fn of_client(client: Option<&Client>) -> Check {
    match client {
        None => Check::not("client", State::Limited, "no claude on the PATH")
            .losing(["that a deny blocks is not proved for a client"])
            .remedy("name it: jess init --client FILE"),
        Some(c) if Form::of(Some(c)) == Form::Exec => {
            Check::ok("client", format!("{}, which blocks when a hook fails", c.version))
        }
        Some(c) => Check::not("client", State::Limited, format!("{}, which ignores onFailure", c.version))
            .losing([
                "a hook that fails lets the call run, unless it stands there as the shell line of jess init",
            ])
            .remedy("a client from 2.1.295 on, or jess init, which picks the shell line"),
    }
}

fn of_settings(standing: &check::Standing) -> Vec<Check> {
    let mut out = Vec::new();
    if !standing.installed.is_empty() {
        let files: Vec<String> = standing.installed.iter().map(crate::sanitise::path).collect();
        out.push(Check::ok("installed", files.join(", ")));
    }
    out.extend(standing.faults.iter().map(|fault| {
        let state = if matches!(fault.name, "absent" | "disabled" | "dropped" | "dead") {
            State::Missing
        } else {
            State::Limited
        };
        Check::not(fault.name, state, fault.what.clone()).remedy(fault.remedy.clone())
    }));
    out
}

/// Asks the installed hook about a call that must be denied. A program that does not lie beside this one is not started:
/// a project's settings can name any.
fn of_answer(program: &Path) -> Check {
    let shown = crate::sanitise::path(program);
    let beside = crate::install::hook_of(&super::own_program()).ok();
    let same = |hook: &PathBuf| std::fs::canonicalize(hook).ok() == std::fs::canonicalize(program).ok();
    if !beside.as_ref().is_some_and(same) {
        return Check::not(
            "answer",
            State::Limited,
            format!("{shown} belongs to another installation; it was not asked"),
        )
        .remedy("run that installation's jess doctor, or jess init");
    }
    let said = || -> Option<String> {
        let event = serde_json::json!({
            "hook_event_name": "PreToolUse", "session_id": "doctor", "cwd": "/tmp", "tool_name": "Bash",
            "tool_input": { "command": "cat /etc/shadow" },
        });
        // Judged by this process alone, and kept nowhere.
        let mut child = Command::new(program)
            .env_clear()
            .envs([
                // Where not even root can make anything.
                ("HOME", "/proc/nonexistent"),
                ("PATH", "/usr/bin:/bin"),
                ("JESS_UNTRUSTED_ROOT", "/proc/nonexistent"),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let _ = child.stdin.take()?.write_all(event.to_string().as_bytes());
        let out = child.wait_with_output().ok()?;
        let document: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap_or_default();
        // Denied for what it is, not because the decision cannot be put on record.
        let reason = document.pointer("/hookSpecificOutput/permissionDecisionReason")?.as_str()?;
        if !reason.contains("/etc/shadow") {
            return None;
        }
        document.pointer("/hookSpecificOutput/permissionDecision")?.as_str().map(str::to_owned)
    };
    if said().as_deref() == Some("deny") {
        return Check::ok("answer", format!("{shown} denies what it must"));
    }
    Check::not("answer", State::Missing, format!("{shown} does not deny a read of /etc/shadow"))
        .losing(["every call is blocked, or none, by how the client takes a hook that fails"])
        .remedy("install jess again and run jess init, which proves it")
}

/// Clients that run now without the hook.
fn of_sessions() -> Vec<Check> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let without = entries.flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let words: Vec<String> =
            line.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into_owned()).collect();
        let named = |word: &String| Path::new(word).file_name().is_some_and(|n| n == "claude");
        // By itself, or as the script of an interpreter.
        words.iter().take(2).any(named).then_some(())?;
        let flag = LEAVE_OUT.iter().find(|f| words.iter().any(|w| w.split('=').next() == Some(f)))?;
        Some((pid, *flag))
    });
    without
        .map(|(pid, flag)| {
            Check::not("session", State::Limited, format!("process {pid} is a client started with {flag}"))
                .losing(["hooks outside managed settings do not run in that session"])
                .remedy("jess init --scope managed as root: such hooks run always")
        })
        .collect()
}

fn configuration(places: &Places) -> Check {
    let problems = config::load(places).problems;
    match problems.first() {
        None => Check::ok("configuration", "no faults"),
        Some(first) => {
            Check::not("configuration", State::Limited, crate::sanitise::escape(&first.to_string(), false))
                .remedy("jess config check names every fault")
        }
    }
}

fn of_daemon(dir: Option<&Path>) -> Check {
    match dir {
        None => Check::not("daemon", State::Missing, "neither XDG_RUNTIME_DIR nor HOME")
            .losing(["no daemon; the hook judges by itself, with the same verdict"]),
        Some(dir) if dir.join(daemon::SOCKET).exists() && !daemon::private(dir) => {
            Check::not("daemon", State::Limited, format!("{} is open to others", crate::sanitise::path(dir)))
                .losing(["its daemon is not asked"])
                .remedy("chmod 700 that directory")
        }
        Some(dir) if dir.join(daemon::SOCKET).exists() => Check::ok("daemon", "there is a socket"),
        Some(_) => Check::ok("daemon", "not running; jess-hook starts it"),
    }
}
