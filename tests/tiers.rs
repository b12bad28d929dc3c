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

/// Loads a filter whose listener is asked about mount(2), as container managers do, and becomes the rest of the command line.
const FOREIGN_LISTENER: &str = r#"
import ctypes, os, struct, sys
c = ctypes.CDLL(None, use_errno=True)
c.prctl(38, 1, 0, 0, 0)
mount = {"x86_64": 165, "aarch64": 40}[os.uname().machine]
code = [(0x20, 0, 0, 0), (0x15, 0, 1, mount), (6, 0, 0, 0x7fc00000), (6, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(code)))
listener = c.syscall({"x86_64": 317, "aarch64": 277}[os.uname().machine], 1, 8, program)
assert listener >= 0, ctypes.get_errno()
os.set_inheritable(listener, True)
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn a_listener_of_another_program_is_not_taken_for_jess() {
    let inner = [JESS, "run", "--tier", "landlock", "--", "/bin/echo", "ran"];
    let control = Command::new(inner[0]).args(&inner[1..]).output().unwrap();
    assert_eq!(text(&control.stdout), "ran\n", "{}", text(&control.stderr));
    let done = Command::new("/usr/bin/python3").args(["-c", FOREIGN_LISTENER]).args(inner).output().unwrap();
    assert_eq!((done.status.code(), text(&done.stdout)), (Some(3), String::new()), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("supervisor"), "{}", text(&done.stderr));
}

#[test]
fn a_run_that_the_run_around_it_supervises_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report");
    let options = format!("--report {}", report.display());
    let done = nested("landlock", dir.path(), &options, "true");
    assert!(text(&done.stderr).contains("inside another run"), "{}", text(&done.stderr));
    assert!(std::fs::read_to_string(report).unwrap().contains("inside another run"));
    assert!(
        !text(&nested("full", dir.path(), "", "true").stderr).contains("inside another run"),
        "the control"
    );
}

#[test]
fn a_run_without_landlock_says_so_and_is_not_what_tier_full_requires() {
    let without = ["--tier", "full", "--landlock-abi", "0"];
    let done = run(&without, &["/bin/echo", "ran"]);
    assert_eq!(text(&done.stdout), "ran\n");
    assert!(text(&done.stderr).contains("Landlock"), "{}", text(&done.stderr));
    let required = run(&[&without[..], &["--require", "full"]].concat(), &["/bin/echo", "ran"]);
    assert_eq!((required.status.code(), text(&required.stdout)), (Some(3), String::new()));
    assert_eq!(text(&run(&["--tier", "full", "--require", "full"], &["/bin/echo", "ran"]).stdout), "ran\n");
}

#[test]
fn a_command_that_ends_the_sandbox_is_not_said_not_to_have_run() {
    let dir = tempfile::tempdir().unwrap();
    for abi in ["4", "99"] {
        let options = [
            "--tier",
            "full",
            "--landlock-abi",
            abi,
            "--timeout",
            "20",
            "--rw",
            dir.path().to_str().unwrap(),
        ];
        let proof = dir.path().join(abi);
        let script = format!("echo did > {}; kill -PWR 1; sleep 0.2; exit 4", proof.display());
        let done = run(&options, &["/bin/sh", "-c", &script]);
        assert_eq!(done.status.code(), Some(4), "{}", text(&done.stderr));
        assert!(proof.exists());
    }
    for tier in TIERS {
        let script = "touch there; exec sleep 86399.25";
        let options = ["--tier", tier, "--rw", ".", "--", "/bin/sh", "-c", script];
        let mut jess = Command::new(JESS);
        jess.arg("run").args(options).current_dir(dir.path()).stderr(Stdio::piped());
        let jess = jess.spawn().unwrap();
        until("the command runs", || dir.path().join("there").exists());
        let own = format!("/proc/{0}/task/{0}/children", jess.id());
        let house = std::fs::read_to_string(own).unwrap();
        kill(house.split_whitespace().next().unwrap().parse().unwrap());
        let done = jess.wait_with_output().unwrap();
        let said = text(&done.stderr);
        assert!(done.status.code() == Some(70) && !said.contains("nothing was run"), "{tier}: {said}");
        std::fs::remove_file(dir.path().join("there")).unwrap();
    }
}

#[test]
fn a_process_that_connected_is_not_signalled_by_the_descriptor_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let path = path.to_str().unwrap();
    let inside = format!(
        "import ctypes, os, signal, socket as s
l = s.socket(s.AF_UNIX); l.bind('{path}'); l.listen()
c, _ = l.accept()
fd = ctypes.c_int.from_buffer_copy(c.getsockopt(1, 77, 4)).value
try: signal.pidfd_send_signal(fd, 9); print('sent')
except OSError as e: print(e.strerror)"
    );
    let client = || {
        let script = format!(
            "import socket as s, time
c = s.socket(s.AF_UNIX)
while True:
    try: c.connect('{path}'); break
    except OSError: time.sleep(0.02)
c.recv(1)"
        );
        Command::new("/usr/bin/python3").args(["-c", &script]).spawn().unwrap()
    };
    let play = |mut command: Command| {
        let _ = std::fs::remove_file(path);
        let mut client = client();
        let done = command.output().unwrap();
        let _ = client.kill();
        client.wait().unwrap();
        text(&done.stdout)
    };
    let mut control = Command::new("/usr/bin/python3");
    control.args(["-c", &inside]);
    assert_eq!(play(control), "sent\n", "the control");
    for abi in ["5", "99"] {
        let mut command = Command::new(JESS);
        command.args([
            "run",
            "--tier",
            "landlock",
            "--landlock-abi",
            abi,
            "--unix-sockets",
            "--timeout",
            "20",
        ]);
        command.args(["--rw", dir.path().to_str().unwrap(), "--", "/usr/bin/python3", "-c", &inside]);
        assert_eq!(play(command), "Operation not permitted\n", "ABI {abi}");
    }
}

#[test]
fn a_server_on_both_loopbacks_is_reached_by_either_name() {
    let script = "import socket as s
l = s.socket(s.AF_INET6); l.setsockopt(s.IPPROTO_IPV6, s.IPV6_V6ONLY, 0); l.bind(('::', 0)); l.listen()
port = l.getsockname()[1]
for host in '127.0.0.1', '::1': s.create_connection((host, port)); print(host)";
    for tier in TIERS {
        let done = run(&["--tier", tier, "--timeout", "20"], &["/usr/bin/python3", "-c", script]);
        assert_eq!(text(&done.stdout), "127.0.0.1\n::1\n", "{tier}: {}", text(&done.stderr));
    }
}

#[test]
fn a_fork_bomb_is_ended_and_nothing_of_it_is_left() {
    // It has an end of its own, at a few thousand processes.
    let bomb = "b(){ [ $1 -gt 0 ] && { b $(($1-1)) | b $(($1-1)) & }; exec sleep 8.6399; }; b 10; wait";
    let apart =
        "if [ $1 -gt 0 ]; then setsid sh $0 $(($1-1)) & setsid sh $0 $(($1-1)) & fi; exec sleep 8.6399";
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("apart"), apart).unwrap();
    for tier in TIERS {
        for command in [&["bash", "-c", bomb][..], &["sh", "apart", "10"]] {
            let options = ["--tier", tier, "--max-processes", "60", "--timeout", "6", "--rw", "."];
            let mut jess = Command::new(JESS);
            jess.arg("run").args(options).arg("--").args(command).current_dir(dir.path());
            let done = jess.output().unwrap();
            let said = text(&done.stderr);
            // In tier `full` the kernel starts no more, and the rest comes to its own end or to the time limit.
            let codes: &[i32] = if tier == "full" { &[0, 1, 2, 124, 254] } else { &[137] };
            assert!(codes.contains(&done.status.code().unwrap()), "{tier}: {:?} {said}", done.status);
            assert_eq!(marked("sleep\u{0}8.6399"), [0i32; 0], "{tier}");
        }
    }
}
