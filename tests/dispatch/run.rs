//! `jess run`: exit codes, streams, limits, and what is left behind.

use crate::world::{jess, stderr, stdout};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn run(arguments: &[&str]) -> std::process::Output {
    jess().arg("run").args(arguments).output().unwrap()
}

#[test]
fn the_child_s_status_is_jess_s_own() {
    for (script, code) in [("true", 0), ("exit 42", 42), ("kill -TERM $$", 143), ("kill -SEGV $$", 139)] {
        assert_eq!(run(&["--", "/bin/sh", "-c", script]).status.code(), Some(code), "{script}");
    }
    assert_eq!(run(&["--", "no-such-program"]).status.code(), Some(127));
    assert_eq!(run(&["--", "/etc/passwd"]).status.code(), Some(126));
}

#[test]
fn an_honest_139_is_no_segmentation_fault_in_the_report() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("r.json");
    for (script, kind) in [("exit 139", "exit"), ("kill -SEGV $$", "signal")] {
        let done = run(&["--report", report.to_str().unwrap(), "--", "/bin/sh", "-c", script]);
        assert_eq!(done.status.code(), Some(139));
        let read: serde_json::Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
        assert_eq!(read["termination"]["kind"], kind, "{read}");
        assert_eq!(read["exit"], 139);
    }
}

#[test]
fn standard_input_goes_in_and_output_comes_out() {
    let mut child = jess()
        .args(["run", "--", "/bin/sh", "-c", "cat; echo err >&2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hello").unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!((stdout(&done).as_str(), stderr(&done).as_str()), ("hello", "err\n"));
}

#[test]
fn output_beyond_the_limit_is_counted_and_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("r.json");
    let done =
        run(&["--report", report.to_str().unwrap(), "--", "/bin/sh", "-c", "head -c 70000000 /dev/zero"]);
    assert_eq!(done.stdout.len(), 64 << 20);
    assert!(stderr(&done).contains("was cut"), "{}", stderr(&done));
    let read: serde_json::Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    assert_eq!(read["output"]["stdout"]["written"], 70_000_000);
}

#[test]
fn a_command_that_ignores_term_is_killed_at_its_limit_and_its_output_kept() {
    let started = Instant::now();
    let done = run(&[
        "--timeout",
        "0.5",
        "--",
        "/bin/sh",
        "-c",
        "trap '' TERM; echo early; while :; do sleep 1; done",
    ]);
    assert_eq!(done.status.code(), Some(124));
    assert_eq!(stdout(&done), "early\n");
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_reader_that_goes_away_ends_the_command() {
    let done = std::process::Command::new("/bin/sh")
        .args(["-c", "\"$0\" run -- yes | head -n 1", env!("CARGO_BIN_EXE_jess")])
        .output()
        .unwrap();
    assert_eq!(stdout(&done), "y\n");
}

#[test]
fn killing_jess_kills_everything_inside() {
    let dir = tempfile::tempdir().unwrap();
    let beat = dir.path().join("beat");
    let script =
        format!("(setsid sh -c 'while :; do date +%N > {}; sleep 0.05; done' &) ; sleep 60", beat.display());
    let mut child = jess()
        .args(["run", "--rw", dir.path().to_str().unwrap(), "--", "/bin/sh", "-c", &script])
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while !beat.exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(beat.exists(), "the daemon runs");
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    std::thread::sleep(Duration::from_millis(300));
    let last = std::fs::read(&beat).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(std::fs::read(&beat).unwrap(), last, "nothing beats after the end");
}

#[test]
fn a_stop_signal_reaches_the_command() {
    let child = jess()
        .args([
            "run",
            "--",
            "/bin/sh",
            "-c",
            "trap 'echo told; exit 7' TERM; echo ready; while :; do sleep 0.1; done",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(child.id() as i32).unwrap(),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!((stdout(&done).as_str(), done.status.code()), ("ready\ntold\n", Some(7)));
}

#[test]
fn grants_that_do_not_exist_and_files_that_do_not_open_are_named() {
    let done = run(&["--ro", "/nonexistent/grant", "--", "/bin/true"]);
    assert_eq!(done.status.code(), Some(64));
    assert!(stderr(&done).contains("/nonexistent/grant"));
    let done = run(&["--report", "/nonexistent/r.json", "--", "/bin/true"]);
    assert_eq!(done.status.code(), Some(64));
    let done = run(&["--cwd", "/nonexistent", "--", "/bin/true"]);
    assert_eq!(done.status.code(), Some(64));
}

#[test]
fn relative_paths_mean_inside_what_they_mean_outside() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("given")).unwrap();
    std::fs::write(dir.path().join("given/file"), "content").unwrap();
    std::fs::write(dir.path().join("kept"), "secret").unwrap();
    let from_here =
        |arguments: &[&str]| jess().arg("run").args(arguments).current_dir(dir.path()).output().unwrap();
    let done = from_here(&["--ro", "given", "--", "/bin/cat", "given/file"]);
    assert_eq!(stdout(&done), "content", "{}", stderr(&done));
    let done = from_here(&["--ro", "given", "--cwd", "given", "--", "/bin/cat", "file"]);
    assert_eq!(stdout(&done), "content", "{}", stderr(&done));
    let done = from_here(&["--ro", "given", "--", "/bin/cat", "kept"]);
    assert_ne!(done.status.code(), Some(0), "what is beside the grant is not there");
}
