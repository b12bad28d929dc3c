//! What the daemon says, and who is believed to be it.

use super::place::{HOOK, JESS, Place, kill, running, wait_for, word};
use jess::daemon::wire;
use serde_json::json;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn the_daemon_answers_and_its_answers_are_those_of_the_process_alone() {
    let place = Place::new();
    let dangerous = place.event("Bash", json!({"command": "cat .env"}), "t");
    assert_eq!(place.asked(&dangerous).status.code(), Some(77), "there is no daemon");
    let _daemon = place.daemon();
    let mut words = Vec::new();
    for (tool, input) in [
        ("Bash", json!({"command": "cat .env"})),
        ("Bash", json!({"command": "git reset --hard"})),
        ("Bash", json!({"command": "ls -la && git status"})),
        ("Bash", json!({"command": "x=.en; cat ${x}v"})),
        ("Bash", json!({"command": 7})),
        ("Read", json!({"file_path": place.at("h/p/.env")})),
        ("Read", json!({"file_path": place.at("h/p/README")})),
        ("Write", json!({"file_path": place.at("h/.bashrc"), "content": ""})),
        ("WebFetch", json!({"url": "http://169.254.169.254/", "prompt": "x"})),
        ("mcp__a__b", json!({"path": "~/.ssh/id_rsa"})),
    ] {
        let event = place.event(tool, input, "t");
        let (with, without) = (place.asked(&event), place.hook(Path::new(JESS), &event));
        assert_eq!((&with.stdout, with.status), (&without.stdout, without.status), "{event}");
        words.push(word(&with));
    }
    assert_eq!(words, ["deny", "ask", "none", "deny", "deny", "deny", "none", "deny", "deny", "deny"]);
    let nonsense = place.asked(&json!("not an event"));
    assert_eq!(nonsense.status.code(), Some(2));
}

#[test]
fn a_change_of_the_configuration_counts_from_the_next_call_and_a_broken_file_changes_nothing() {
    let place = Place::new();
    let _daemon = place.daemon();
    let event = place.event("Bash", json!({"command": "make deploy"}), "t");
    assert_eq!(word(&place.asked(&event)), "none");
    place.config("[commands]\ndeny = [\"make deploy\"]");
    assert_eq!(word(&place.asked(&event)), "deny");
    place.config("[commands\n");
    assert_eq!(word(&place.asked(&event)), "deny", "the last good version stays");
    place.config("");
    assert_eq!(word(&place.asked(&event)), "none");
}

#[test]
fn a_daemon_that_nobody_can_reach_ends() {
    let place = Place::new();
    let mut daemon = place.daemon();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(!daemon.ended(), "with its socket in place it stays");
    std::fs::remove_dir_all(place.at("run/jess")).unwrap();
    let start = std::time::Instant::now();
    while !daemon.ended() {
        assert!(start.elapsed() < std::time::Duration::from_secs(30), "it stays without a socket");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_hanging_or_killed_daemon_changes_no_verdict() {
    let place = Place::new();
    let daemon = place.daemon();
    let dangerous = place.event("Bash", json!({"command": "cat .env"}), "t");
    kill(daemon.pid(), rustix::process::Signal::STOP);
    assert_eq!(word(&place.hook(Path::new(HOOK), &dangerous)), "deny");
    kill(daemon.pid(), rustix::process::Signal::KILL);
    drop(daemon);
    assert_eq!(word(&place.hook(Path::new(HOOK), &dangerous)), "deny");
}

#[test]
fn the_hook_starts_the_daemon_for_the_next_call_and_an_idle_one_ends() {
    let place = Place::new();
    let ordinary = place.event("Bash", json!({"command": "ls"}), "t");
    assert_eq!(word(&place.hook(Path::new(HOOK), &ordinary)), "none");
    wait_for(|| place.at("run/jess/hook.sock").exists());
    wait_for(|| word(&place.asked(&ordinary)) == "none");
    let pid = running(&place.at("run/jess/daemon.lock")).unwrap();
    kill(pid, rustix::process::Signal::TERM);
    wait_for(|| {
        !place.at("run/jess/hook.sock").exists() && running(&place.at("run/jess/daemon.lock")).is_none()
    });
    // The threads of the one that ends may hold its lock a moment longer.
    wait_for(|| {
        place
            .command(Path::new(JESS), &["daemon", "--idle", "1"])
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    });
    place.config("[daemon]\nenabled = false");
    assert_eq!(word(&place.hook(Path::new(HOOK), &ordinary)), "none");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(!place.at("run/jess/hook.sock").exists(), "the operator does not want one");
}

#[test]
fn two_daemons_do_not_run_at_once() {
    let place = Place::new();
    let mut first = place.daemon();
    let second = place.command(Path::new(JESS), &["daemon"]).output().unwrap();
    assert!(!second.status.success() && String::from_utf8_lossy(&second.stderr).contains("already running"));
    assert!(!first.ended());
}

/// Answers every question with silence.
fn yes_man(place: &Place) -> Arc<AtomicBool> {
    let dir = place.at("run/jess");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    let asked = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&asked);
    let listener = UnixListener::bind(dir.join("hook.sock")).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut length = [0; 4];
            if stream.read_exact(&mut length).is_ok() {
                let mut rest = vec![0; u32::from_le_bytes(length) as usize];
                let _ = stream.read_exact(&mut rest);
                told.store(true, Ordering::SeqCst);
                let _ = stream.write_all(&wire::reply(&wire::Reply::default()));
            }
        }
    });
    asked
}

#[test]
fn a_socket_that_another_program_serves_is_not_asked() {
    let place = Place::new();
    let dangerous = place.event("Bash", json!({"command": "cat .env"}), "t");
    place.config("[daemon]\nenabled = false");
    let asked = yes_man(&place);
    assert_eq!(word(&place.hook(Path::new(HOOK), &dangerous)), "deny");
    assert!(!asked.load(Ordering::SeqCst), "not a word of the event is told to it");
    // A client that looks at nothing believes it.
    let mut stream = UnixStream::connect(place.at("run/jess/hook.sock")).unwrap();
    stream.write_all(&wire::request(b"", b"{}").unwrap()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, wire::reply(&wire::Reply::default()));
}

#[test]
fn a_socket_in_a_directory_open_to_others_is_not_asked() {
    let place = Place::new();
    let _daemon = place.daemon();
    let ordinary = place.event("Bash", json!({"command": "ls"}), "t");
    assert_eq!(word(&place.asked(&ordinary)), "none");
    fs::set_permissions(place.at("run/jess"), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(place.asked(&ordinary).status.code(), Some(77));
}

#[test]
fn hostile_frames_end_the_connection_and_nothing_else() {
    let place = Place::new();
    let _daemon = place.daemon();
    let socket = place.at("run/jess/hook.sock");
    let mut idle = Vec::new();
    for bytes in [
        &b""[..],
        b"\xff\xff\xff\xff",
        b"\x02\0\0\0\xff\xff",
        b"\x08\0\0\0\x01\0x\xff\xff\xff\xff\0",
        b"\x10\0\0\0a",
    ] {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        let _ = stream.write_all(bytes);
        idle.push(stream);
    }
    let dangerous = place.event("Bash", json!({"command": "cat .env"}), "t");
    assert_eq!(word(&place.asked(&dangerous)), "deny");
}
