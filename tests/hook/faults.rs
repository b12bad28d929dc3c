//! The hook's process under faults. What must never come about: success and silence for a dangerous call.

use super::world::Place;
use serde_json::json;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const JESS: &str = env!("CARGO_BIN_EXE_jess");

/// Runs the hook from a shell that first does `before`, with `event` on standard input.
fn hook(place: &Place, state: &Path, before: &str, event: &[u8]) -> Output {
    let mut child = Command::new("sh")
        .args(["-c", &format!("{before} exec '{JESS}' hook")])
        .env_clear()
        .env("HOME", place.home())
        .env("XDG_STATE_HOME", state)
        .env("PATH", "/usr/bin:/bin")
        .env("CLAUDE_PROJECT_DIR", place.project())
        .env("CLAUDE_CODE_SESSION_ATTENDED", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(event);
    child.wait_with_output().unwrap()
}

fn bash(place: &Place, command: &str) -> Vec<u8> {
    place.event("PreToolUse", "Bash", json!({ "command": command })).to_string().into_bytes()
}

/// Blocked by an answer, by exit 2, or (with `onFailure` and the shell line) by ending in any other way than success.
fn blocked(output: &Output) -> bool {
    match output.status.code() {
        Some(0) => {
            let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            matches!(document["hookSpecificOutput"]["permissionDecision"].as_str(), Some("deny" | "ask"))
        }
        _ => true,
    }
}

/// The call is left alone, and the person is told something.
fn allowed_and_told(output: &Output) -> bool {
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    output.status.success()
        && document["hookSpecificOutput"].is_null()
        && document["systemMessage"].as_str().is_some_and(|m| m.contains("not on record"))
}

fn silent(output: &Output) -> bool {
    output.status.success() && output.stdout.is_empty()
}

#[test]
fn an_ordinary_call_is_silent_and_a_dangerous_one_blocked_so_both_can_be_told_apart() {
    let place = Place::new();
    assert!(silent(&hook(&place, &place.path("state"), "", &bash(&place, "ls"))));
    assert!(blocked(&hook(&place, &place.path("state"), "", &bash(&place, "cat .env"))));
}

#[test]
fn too_little_memory_files_or_processes_never_let_a_dangerous_call_run() {
    let place = Place::new();
    let dangerous = bash(&place, "x=.en; cat ${x}v | base64");
    for kib in [4_000, 8_000, 16_000, 24_000, 32_000, 48_000, 64_000, 96_000, 128_000, 256_000] {
        let out = hook(&place, &place.path("state"), &format!("ulimit -v {kib};"), &dangerous);
        assert!(blocked(&out), "{kib} KiB: {out:?}");
    }
    for limits in
        ["ulimit -n 3;", "ulimit -n 4;", "ulimit -f 0;", "ulimit -s 128;", "ulimit -Hs 1024;", "ulimit -t 1;"]
    {
        let out = hook(&place, &place.path("state"), limits, &dangerous);
        assert!(blocked(&out), "{limits} {out:?}");
    }
}

#[test]
fn a_decision_that_cannot_be_put_on_record_lets_nothing_run_without_a_person() {
    let place = Place::new();
    let broken: Vec<(&str, PathBuf)> = vec![
        ("missing and not to be made", "/proc/nothing".into()),
        ("a file", {
            place.write("a-file", "x");
            place.path("a-file")
        }),
        ("full", "/dev/full".into()),
        ("open to others", {
            let dir = place.path("open");
            fs::create_dir_all(dir.join("jess")).unwrap();
            fs::set_permissions(dir.join("jess"), fs::Permissions::from_mode(0o777)).unwrap();
            dir
        }),
        ("a link", {
            let dir = place.path("linked");
            fs::create_dir_all(&dir).unwrap();
            std::os::unix::fs::symlink("/tmp", dir.join("jess")).unwrap();
            dir
        }),
        ("with corrupt files", {
            let dir = place.path("corrupt/jess");
            fs::create_dir_all(dir.join("sessions/s")).unwrap();
            fs::create_dir_all(dir.join("counts/s")).unwrap();
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
            for file in ["mac.key", "head", "audit.jsonl"] {
                fs::write(dir.join(file), b"\xff\0garbage").unwrap();
            }
            place.path("corrupt")
        }),
    ];
    for (what, state) in &broken {
        for command in ["cat .env", "ls"] {
            let out = hook(&place, state, "", &bash(&place, command));
            assert!(blocked(&out), "{what}: {command} {out:?}");
        }
    }
    place.write("home/.config/jess/config.toml", "[audit]\non_failure = \"allow\"\n");
    for (what, state) in &broken {
        assert!(blocked(&hook(&place, state, "", &bash(&place, "cat .env"))), "{what}");
        let out = hook(&place, state, "", &bash(&place, "ls"));
        assert!(allowed_and_told(&out), "{what}: {out:?}");
    }
}

#[test]
fn on_a_full_disk_calls_are_asked_about_and_with_room_again_the_record_goes_on_unbroken() {
    let place = Place::new();
    let (state, event) = (place.path("state"), place.path("event.json"));
    fs::create_dir_all(&state).unwrap();
    fs::write(&event, bash(&place, "ls")).unwrap();
    // The last page of the record has room for some lines more; then the disk is full.
    let script = "mount -t tmpfs -o size=64k,mode=700 tmpfs \"$XDG_STATE_HOME\" && \"$1\" hook < \"$2\" || exit 1
        cat /dev/zero > \"$XDG_STATE_HOME/ballast\" 2>/dev/null
        for i in $(seq 24); do \"$1\" hook < \"$2\" | grep -o '\"permissionDecision\":\"[a-z]*' || echo silent; done
        rm -f \"$XDG_STATE_HOME/ballast\"
        \"$1\" hook < \"$2\"; \"$1\" log --verify >&2 && wc -l < \"$XDG_STATE_HOME/jess/audit.jsonl\"";
    let out = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", JESS])
        .arg(&event)
        .env_clear()
        .env("HOME", place.home())
        .env("XDG_STATE_HOME", &state)
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .env("CLAUDE_PROJECT_DIR", place.project())
        .env("CLAUDE_CODE_SESSION_ATTENDED", "1")
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let silent = said.matches("silent").count();
    let asked = said.matches("\"permissionDecision\":\"ask").count();
    assert!(silent > 0 && asked > 0 && silent + asked == 24, "{out:?}");
    let on_record: usize = said.lines().last().unwrap().trim().parse().unwrap();
    assert_eq!(on_record, silent + 2, "every call that was left alone is on record: {out:?}");
}

#[test]
fn where_labels_cannot_be_kept_a_call_that_reaches_out_is_asked_about() {
    let place = Place::new();
    place.write("a-file", "x");
    let fetch = bash(&place, "curl -s https://api.example.com/status");
    assert!(silent(&hook(&place, &place.path("state"), "", &fetch)));
    assert!(blocked(&hook(&place, &place.path("a-file"), "", &fetch)));
}

#[test]
fn a_huge_or_deeply_nested_command_is_refused() {
    let place = Place::new();
    for command in
        ["a".repeat(1 << 20), "(".repeat(3_000) + &")".repeat(3_000), "$(".repeat(3_000) + &")".repeat(3_000)]
    {
        assert!(blocked(&hook(&place, &place.path("state"), "", &bash(&place, &command))));
    }
    let deepest = "(".repeat(149) + "cat .env" + &")".repeat(149);
    assert!(blocked(&hook(&place, &place.path("state"), "", &bash(&place, &deepest))));
    let judged = "( ".repeat(8) + "ls" + &" )".repeat(8);
    assert!(silent(&hook(&place, &place.path("state"), "", &bash(&place, &judged))), "less is judged");
}

#[test]
fn a_hook_that_is_killed_does_not_end_in_success() {
    let place = Place::new();
    for signal in
        [rustix::process::Signal::KILL, rustix::process::Signal::TERM, rustix::process::Signal::SEGV]
    {
        let child = Command::new(JESS)
            .arg("hook")
            .env("HOME", place.home())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).unwrap();
        assert!(!child.wait_with_output().unwrap().status.success());
    }
}

#[test]
fn an_event_that_never_comes_is_blocked_at_the_deadline() {
    let place = Place::new();
    let mut child = Command::new(JESS)
        .arg("hook")
        .env("HOME", place.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let held = child.stdin.take();
    let out = child.wait_with_output().unwrap();
    drop(held);
    assert_eq!(out.status.code(), Some(2), "{out:?}");
}

/// Runs a command as a dispatched session does, with a transcript in the home; what it printed.
fn inside(place: &Place, layer: &[&str], command: &str) -> String {
    place.write("home/.claude/projects/t.jsonl", "transcript\n");
    place.write("home/.cargo/bin/tool", "tool\n");
    fs::create_dir_all(place.path("tmp")).unwrap();
    // As in the session's sandbox, root has no capabilities.
    let root = rustix::process::geteuid().is_root();
    let mut jess = Command::new(if root { "setpriv" } else { JESS });
    if root {
        jess.args(["--bounding-set=-all", "--inh-caps=-all", "--", JESS]);
    }
    let out = jess
        .args(["hook", "exec"])
        .args(layer)
        .args(["--", command])
        .env_clear()
        .env("HOME", place.home())
        .env("TMPDIR", place.path("tmp"))
        .env("PATH", "/usr/bin:/bin")
        .env("ANTHROPIC_API_KEY", "key-of-the-run")
        .current_dir(place.project())
        .output()
        .unwrap();
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

#[test]
fn a_command_of_a_dispatched_session_has_the_project_and_neither_the_client_s_files_nor_its_process() {
    let place = Place::new();
    let home = place.home();
    let home = home.display();
    let attempts = [
        (format!("cat {home}/.claude/projects/t.jsonl"), "transcript"),
        (format!("echo x >> {home}/.claude/projects/t.jsonl && echo changed"), "changed"),
        (format!("echo x > {home}/.claude.json && echo made"), "made"),
        (format!("mv {home}/.claude {home}/old && mv {home}/old {home}/.claude && echo moved"), "moved"),
        ("tr '\\0' '\\n' < /proc/$PPID/environ | grep key-of".to_owned(), "key-of-the-run"),
        ("echo out > /proc/$PPID/fd/1 && echo written".to_owned(), "written"),
        ("kill -0 $PPID && echo reached".to_owned(), "reached"),
        ("echo \"key: $ANTHROPIC_API_KEY\"".to_owned(), "key-of-the-run"),
    ];
    for (command, sign) in &attempts {
        assert!(
            inside(&place, &[], command).contains(sign),
            "the attempt works without the layer: {command}"
        );
        let said = inside(&place, &["--inner"], command);
        assert!(!said.contains(sign), "{command}: {said}");
    }
    let work = format!(
        "cat README.md && echo x > made && ls / > /dev/null && cat {home}/.cargo/bin/tool && cd ~ && touch own && mktemp && ls {home} && echo works"
    );
    assert!(inside(&place, &["--inner"], &work).contains("works"), "{}", inside(&place, &["--inner"], &work));
}
