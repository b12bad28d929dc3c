//! The two tiers of `jess run`: which one a run gets, that they end alike, that they nest, and that nothing of a run
//! outlives it, whoever is killed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const TIERS: [&str; 2] = ["full", "landlock"];
const JESS: &str = env!("CARGO_BIN_EXE_jess");

fn run(options: &[&str], command: &[&str]) -> Output {
    Command::new(JESS).arg("run").args(options).arg("--").args(command).output().expect("jess starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A command line in which `user.max_user_namespaces` is 0: it counts inside the namespace that sets it.
fn without_user_namespaces(script: &str, dir: &Path) -> Output {
    let script = format!("echo 0 > /proc/sys/user/max_user_namespaces && {script}");
    Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount-proc",
            "--pid",
            "--fork",
            "/bin/sh",
            "-c",
            &script,
            JESS,
        ])
        .current_dir(dir)
        .output()
        .expect("util-linux is installed")
}

#[test]
fn without_user_namespaces_the_run_is_in_tier_landlock_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let done = without_user_namespaces("exec \"$0\" run --report report -- /bin/echo ran", dir.path());
    assert_eq!(text(&done.stdout), "ran\n", "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("tier landlock, not full"), "{}", text(&done.stderr));
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("report")).unwrap()).unwrap();
    assert_eq!(report["tier"], "landlock");
    assert!(report["weaker"].as_str().unwrap().contains("max_user_namespaces"), "{report}");
}

#[test]
fn a_weaker_tier_than_the_required_one_is_refused_with_3_and_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let done = without_user_namespaces("exec \"$0\" run --require full -- /bin/echo ran", dir.path());
    assert_eq!(done.status.code(), Some(3), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("max_user_namespaces"), "{}", text(&done.stderr));
    let named = run(&["--require", "full", "--tier", "landlock"], &["/bin/echo", "ran"]);
    assert_eq!((named.status.code(), named.stdout.len()), (Some(3), 0), "{}", text(&named.stderr));
}

#[test]
fn a_host_with_user_namespaces_gives_tier_full_in_silence() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report");
    let done = run(&["--report", report.to_str().unwrap()], &["/bin/true"]);
    assert_eq!((done.status.code(), text(&done.stderr)), (Some(0), String::new()));
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!((&report["tier"], &report["weaker"]), (&"full".into(), &serde_json::Value::Null));
}

#[test]
fn both_tiers_end_alike() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let plain = plain.to_str().unwrap();
    for tier in TIERS {
        let tier = ["--tier", tier, "--timeout", "20"];
        let code = |command: &[&str]| run(&tier, command).status.code();
        assert_eq!(code(&["/bin/true"]), Some(0), "{tier:?}");
        assert_eq!(code(&["/bin/sh", "-c", "exit 42"]), Some(42), "{tier:?}");
        assert_eq!(code(&["/bin/sh", "-c", "exit 139"]), Some(139), "{tier:?}");
        assert_eq!(code(&["/bin/sh", "-c", "kill -SEGV $$"]), Some(139), "{tier:?}");
        assert_eq!(code(&["/bin/sh", "-c", "kill -KILL $$"]), Some(137), "{tier:?}");
        assert_eq!(code(&["no-such-program"]), Some(127), "{tier:?}");
        let granted = [&tier[..], &["--ro", plain]].concat();
        assert_eq!(run(&granted, &[plain]).status.code(), Some(126), "{tier:?}");
        let limited = [&tier[..2], &["--timeout", "0.2"]].concat();
        let done = run(&limited, &["/bin/sh", "-c", "echo partial; sleep 9"]);
        assert_eq!((done.status.code(), text(&done.stdout)), (Some(124), "partial\n".into()), "{tier:?}");
        let deaf = run(&limited, &["/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]);
        assert_eq!(deaf.status.code(), Some(124), "{tier:?}");
        let lost = run(&[&tier[..], &["--cwd", "/nonexistent"]].concat(), &["/bin/true"]);
        assert_eq!(lost.status.code(), Some(64), "{tier:?}");
    }
}

/// The processes whose command line holds `mark`.
fn marked(mark: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            text(&line).contains(mark)
        })
        .collect()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

/// The parent of `pid`.
fn parent(pid: i32) -> i32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap_or("0");
    line.trim().parse().unwrap_or(0)
}

/// Scratch directories of runs that were started with `tmp` as TMPDIR.
fn scratch(tmp: &Path) -> Vec<PathBuf> {
    let own = tmp.join(format!("jess-{}", rustix::process::geteuid().as_raw()));
    std::fs::read_dir(own)
        .map_or_else(|_| Vec::new(), |all| all.filter_map(|e| Some(e.ok()?.path())).collect())
}

/// Starts a run with daemons in sessions of their own, waits until they are there, and lets `strike` at it.
fn killed(tier: &str, strike: impl Fn(&mut std::process::Child, i32)) {
    let tmp = tempfile::tempdir().unwrap();
    // A number of seconds that nobody else sleeps.
    static RUNS: AtomicU32 = AtomicU32::new(1000);
    let mark = format!("86400.{}{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let script = format!(
        "touch $TMPDIR/kept; setsid sleep {mark} & setsid sh -c 'trap \"\" TERM; sleep {mark}' & exec sleep {mark}"
    );
    let mut jess = Command::new(JESS)
        .args(["run", "--tier", tier, "--", "/bin/sh", "-c", &script])
        .env("TMPDIR", tmp.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the command starts its daemons", || marked(&format!("sleep\0{mark}")).len() == 3);
    let target = marked(&format!("sleep\0{mark}"))
        .into_iter()
        .find(|pid| parent(parent(*pid)) == jess.id() as i32)
        .expect("the command itself is a grandchild of jess");
    strike(&mut jess, parent(target));
    let _ = jess.wait();
    until("nobody is left", || marked(&format!("sleep\0{mark}")).is_empty());
    until("the scratch directory is gone", || scratch(tmp.path()).is_empty());
}

#[test]
fn when_jess_is_killed_nothing_is_left() {
    for tier in TIERS {
        killed(tier, |jess, _| jess.kill().unwrap());
    }
}

#[test]
fn when_what_keeps_house_inside_is_killed_nothing_is_left() {
    for tier in TIERS {
        killed(tier, |_, house| kill(house));
    }
}

#[test]
fn when_jess_is_told_to_stop_nothing_is_left() {
    for tier in TIERS {
        killed(tier, |jess, _| {
            let pid = rustix::process::Pid::from_raw(jess.id() as i32).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        });
    }
}

#[test]
fn an_ended_run_leaves_no_daemon_and_no_scratch_directory() {
    let tmp = tempfile::tempdir().unwrap();
    let script = "mkdir -p $HOME/a/b; chmod 0 $HOME/a; setsid sleep 86399.5 & exit 3";
    let done = Command::new(JESS)
        .args(["run", "--tier", "landlock", "--", "/bin/sh", "-c", script])
        .env("TMPDIR", tmp.path())
        .status()
        .unwrap();
    assert_eq!(done.code(), Some(3));
    assert_eq!((marked("sleep\u{0}86399.5"), scratch(tmp.path())), (vec![], vec![]));
}

/// Runs `inner` under `jess run --tier landlock` inside `jess run --tier outer`, which grants `dir` for writing.
fn nested(outer: &str, dir: &Path, options: &str, inner: &str) -> Output {
    let script = format!("exec {JESS} run --tier landlock --timeout 20 {options} -- /bin/sh -c '{inner}'");
    let options = ["--tier", outer, "--timeout", "40", "--ro", JESS, "--rw", dir.to_str().unwrap()];
    run(&options, &["/bin/sh", "-c", &script])
}

#[test]
fn a_run_in_tier_landlock_nests_in_both_tiers_and_holds_there() {
    for outer in TIERS {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["mine", "theirs"] {
            std::fs::create_dir(at(name)).unwrap();
            std::fs::write(at(name).join("file"), name).unwrap();
        }
        let options = format!("--rw {}", at("mine").display());
        let (mine, theirs) = (at("mine"), at("theirs"));
        let (mine, theirs) = (mine.display(), theirs.display());
        let inner = format!(
            "echo x > {mine}/new && chmod 600 {mine}/new && echo wrote; \
             cat {theirs}/file; echo x > {theirs}/new; touch $TMPDIR/t && echo scratch; exit 9"
        );
        let done = nested(outer, dir.path(), &options, &inner);
        let out = text(&done.stdout);
        assert_eq!(done.status.code(), Some(9), "in {outer}: {out} {}", text(&done.stderr));
        assert_eq!(out, "wrote\nscratch\n", "in {outer}: {}", text(&done.stderr));
        assert!(!at("theirs/new").exists());
    }
}

#[test]
fn inside_tier_full_a_nested_run_has_a_supervisor_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["mine", "theirs"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let theirs = dir.path().join("theirs");
    let options = format!("--rw {}", dir.path().join("mine").display());
    let inner = format!("chmod 700 {} && echo changed", theirs.display());
    let done = nested("full", dir.path(), &options, &inner);
    assert_eq!(text(&done.stdout), "", "{}", text(&done.stderr));
    // The control: with the grant it works.
    let done = nested("full", dir.path(), &format!("--rw {}", theirs.display()), &inner);
    assert_eq!(text(&done.stdout), "changed\n", "{}", text(&done.stderr));
}

#[test]
fn own_listeners_work_and_a_port_of_the_host_does_not_in_a_nested_run() {
    let dir = tempfile::tempdir().unwrap();
    let script = "import socket as s; l = s.create_server((\"127.0.0.1\", 0)); \
        c = s.create_connection(l.getsockname()); print(\"own\")";
    let inner = format!("/usr/bin/python3 -c \"{}\"", script.replace('"', "\\\""));
    let done = nested("full", dir.path(), "", &inner);
    assert_eq!(text(&done.stdout), "own\n", "{}", text(&done.stderr));
}

/// A shell script that listens at `path` and connects to it, in one process.
fn unix_pair(path: &str) -> String {
    format!(
        "import socket as s; l = s.socket(s.AF_UNIX); l.bind('{path}'); l.listen(); \
         c = s.socket(s.AF_UNIX); c.connect('{path}'); print('own')"
    )
}

#[test]
fn in_tier_landlock_unix_sockets_are_the_run_s_own_alone() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let host = std::os::unix::net::UnixListener::bind(at("host")).unwrap();
    host.set_nonblocking(true).unwrap();
    let options =
        ["--tier", "landlock", "--unix-sockets", "--timeout", "20", "--rw", dir.path().to_str().unwrap()];
    let python = |script: &str| run(&options, &["/usr/bin/python3", "-c", script]);
    let own = python(&unix_pair(&at("own")));
    assert_eq!(text(&own.stdout), "own\n", "{}", text(&own.stderr));
    let relative = python(&format!("import os; os.chdir('{}'); {}", at(""), unix_pair("relative")));
    assert_eq!(text(&relative.stdout), "own\n", "{}", text(&relative.stderr));
    let connect =
        |path: &str| format!("import socket as s; s.socket(s.AF_UNIX).connect('{path}'); print('connected')");
    for script in [
        connect(&at("host")),
        format!("import os; os.symlink('{}', '{}'); {}", at("host"), at("link"), connect(&at("link"))),
        connect("\\0abstract"),
        unix_pair("/tmp/elsewhere"),
    ] {
        let done = python(&script);
        assert_eq!(text(&done.stdout), "", "{script}");
        assert!(text(&done.stderr).contains("PermissionError"), "{script}: {}", text(&done.stderr));
    }
    assert!(host.accept().is_err(), "nobody came");
    // The control: the listener can be reached.
    std::os::unix::net::UnixStream::connect(at("host")).unwrap();
    assert!(host.accept().is_ok());
}
