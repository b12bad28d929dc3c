//! How a run ends, and what is left of it.

use crate::support::{JESS, World};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TIERS: [&str; 2] = ["full", "landlock"];

fn report(world: &World, tier: &str, options: &[&str], script: &str) -> (Option<i32>, String, Value) {
    let file = world.path("report.json");
    let options = [&["--tier", tier, "--report", file.to_str().unwrap()], options].concat();
    let ran = world.jess(&options, script);
    let report = serde_json::from_str(&world.read("report.json")).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
    (ran.code, ran.stdout, report)
}

#[test]
fn at_the_time_limit_the_command_is_told_first_and_its_output_is_kept() {
    for tier in TIERS {
        let world = World::new();
        let script = "trap 'echo told; exit' TERM; echo partial; while :; do sleep 0.05; done";
        let (code, stdout, report) = report(&world, tier, &["--timeout", "1"], script);
        assert_eq!((code, stdout.as_str()), (Some(124), "partial\ntold\n"), "{tier}");
        assert_eq!(report["termination"]["kind"], "timeout");
    }
}

#[test]
fn what_ignores_the_time_limit_is_killed_after_the_grace() {
    for tier in TIERS {
        let world = World::new();
        let script = "trap '' TERM; echo partial; while :; do sleep 0.05; done";
        let (code, stdout, _) = report(&world, tier, &["--timeout", "1", "--grace", "0.5"], script);
        assert_eq!((code, stdout.as_str()), (Some(124), "partial\n"), "{tier}");
    }
}

#[test]
fn an_honest_139_is_told_from_a_crash() {
    for tier in TIERS {
        let world = World::new();
        let (code, _, honest) = report(&world, tier, &[], "exit 139");
        assert_eq!((code, &honest["termination"]["kind"]), (Some(139), &"exit".into()), "{tier}");
        assert_eq!(honest["termination"]["signal"], Value::Null);
        let (code, _, crash) = report(&world, tier, &[], "kill -SEGV $$");
        assert_eq!((code, &crash["termination"]["kind"]), (Some(139), &"signal".into()), "{tier}");
        assert_eq!(crash["termination"]["signal"], 11);
    }
}

#[test]
fn a_limit_that_ended_the_command_is_named() {
    for tier in TIERS {
        let world = World::new();
        let (code, _, cpu) = report(&world, tier, &["--max-cpu", "1"], "while :; do :; done");
        assert_eq!((code, &cpu["termination"]["limit"]), (Some(128 + 24), &"cpu".into()), "{tier}");
        let options = ["--rw", ".", "--max-file", "1M"];
        let (_, _, file) = report(&world, tier, &options, "exec head -c 2000000 /dev/zero > large");
        assert_eq!(file["termination"]["limit"], "file", "{tier}: {file}");
        let (_, _, none) = report(&world, tier, &[], "kill -KILL $$");
        assert_eq!(none["termination"]["limit"], Value::Null, "control");
    }
}

/// Ids of processes whose command line holds `mark`.
fn marked(mark: &str) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").expect("proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(mark.len()).any(|part| part == mark.as_bytes())
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

fn entries(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> =
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    found.sort();
    found
}

fn mounts() -> usize {
    std::fs::read_to_string("/proc/self/mounts").expect("proc").lines().count()
}

#[test]
fn a_killed_jess_leaves_no_process_directory_or_mount() {
    for (index, options) in
        [&["--tier", "full"][..], &["--tier", "full", "--deny", "x/y", "--tty"], &["--tier", "landlock"]]
            .into_iter()
            .enumerate()
    {
        let world = World::new();
        world.file("tmp/keep", "");
        let mark = format!("61{index}.{}", std::process::id());
        let before = mounts();
        let script =
            format!("(setsid sleep {mark} &) ; (trap '' TERM HUP INT; sleep {mark}) & exec sleep {mark}");
        let mut jess = Command::new(JESS)
            .args(["run", "--rw", "."])
            .args(options)
            .args(["--", "bash", "-c", &script])
            .current_dir(world.path("project"))
            .env("TMPDIR", world.path("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("jess starts");
        // jess and bash have the mark in their lines too, until bash becomes sleep.
        until("the command started", || marked(&mark).len() >= 5);
        jess.kill().expect("own child");
        jess.wait().expect("own child");
        until(&format!("{options:?}: processes are left: {:?}", marked(&mark)), || marked(&mark).is_empty());
        until("the scratch directory is left", || {
            entries(&world.path("tmp")).iter().all(|path| path.is_file() || entries(path).is_empty())
        });
        assert!(entries(&world.path("project")).is_empty(), "{options:?}");
        assert_eq!(mounts(), before);
    }
}

#[test]
fn a_gigabyte_passes_when_it_is_allowed_and_is_counted_when_not() {
    for tier in TIERS {
        let world = World::new();
        let count = |limit: &str| {
            let script =
                format!("{JESS} run --tier {tier} --max-output {limit} -- head -c 1G /dev/zero | wc -c");
            let out = Command::new("bash").args(["-c", &script]).current_dir(world.path("project")).output();
            String::from_utf8_lossy(&out.expect("bash").stdout).trim().to_owned()
        };
        assert_eq!(count("none"), "1073741824", "{tier}");
        let file = world.path("report.json");
        let options = ["--tier", tier, "--max-output", "1M", "--report", file.to_str().unwrap()];
        let ran = world.jess(&options, "head -c 3M /dev/zero");
        assert_eq!((ran.stdout.len(), ran.code), (1 << 20, Some(0)), "{tier}");
        let report: Value = serde_json::from_str(&world.read("report.json")).unwrap();
        assert_eq!(report["output"]["stdout"]["written"], 3 << 20);
        assert!(ran.stderr.contains("cut"), "{ran:?}");
    }
}

/// A call of the command's own that takes without end, decided about outside: the time limit and signals hold all the same.
#[test]
fn a_call_that_takes_without_end_holds_nobody_but_the_command() {
    let world = World::new();
    let script = world.file(
        "project/block.py",
        "import os, socket as s, struct, threading
path = os.environ['TMPDIR'] + '/s'
l = s.socket(s.AF_UNIX); l.bind(path); l.listen(0)
held = []
for _ in range(3):
    c = s.socket(s.AF_UNIX); c.setblocking(False); held.append(c)
    try: c.connect(path)
    except BlockingIOError: pass
c = s.socket(s.AF_UNIX)
def for_ever():
    while True: c.setsockopt(s.SOL_SOCKET, s.SO_SNDTIMEO, struct.pack('ll', 0, 0))
threading.Thread(target=for_ever, daemon=True).start()
print('blocking', flush=True)
c.connect(path)
print('made', flush=True)
",
    );
    let ran = Command::new("timeout")
        .args(["--signal=KILL", "30", JESS, "run", "--tier", "landlock", "--unix-sockets", "--timeout", "2"])
        .args(["--rw", ".", "--", "/usr/bin/python3"])
        .arg(script)
        .current_dir(world.path("project"))
        .output()
        .unwrap();
    assert_eq!(
        (ran.status.code(), &*String::from_utf8_lossy(&ran.stdout)),
        (Some(124), "blocking\n"),
        "{ran:?}"
    );
}

#[test]
fn a_run_with_too_many_processes_is_held_or_ended_and_says_so() {
    let world = World::new();
    let flood = "for i in $(seq 300); do sleep 30 & done; echo flooded";
    let options = ["--tier", "landlock", "--max-processes", "40", "--timeout", "25"];
    let (_, stdout, report) = report(&world, "landlock", &options[2..], flood);
    assert_eq!(stdout, "", "{report:#}");
    let flags = report["denials"]["seen"].as_array().unwrap();
    assert!(flags.iter().any(|d| d["flag"] == "--max-processes"), "{report:#}");
    let ended = &report["termination"];
    if rustix::process::geteuid().is_root() {
        assert_eq!((&ended["signal"], &ended["limit"]), (&9.into(), &"processes".into()), "{report:#}");
    }
    let (code, stdout, _) = self::report(&world, "landlock", &["--max-processes", "400"], flood);
    assert_eq!((code, stdout.as_str()), (Some(0), "flooded\n"), "control: with room for them");
}

#[test]
fn output_that_cannot_be_passed_on_is_an_error_and_a_reader_that_left_is_none() {
    let run = |to: &str| {
        let line = format!("{JESS} run -- echo hi > {to}");
        Command::new("bash").args(["-c", &line]).output().unwrap()
    };
    let full = run("/dev/full");
    assert_eq!(full.status.code(), Some(70), "{full:?}");
    assert!(String::from_utf8_lossy(&full.stderr).contains("stdout"), "{full:?}");
    assert_eq!(run("/dev/null").status.code(), Some(0), "control");
    let left =
        Command::new("bash").args(["-c", &format!("{JESS} run -- seq 100000 | head -1")]).output().unwrap();
    assert_eq!((&*left.stdout, &*left.stderr), (&b"1\n"[..], &b""[..]));
}

#[test]
fn limits_under_which_nothing_can_run_are_errors_that_name_them() {
    let world = World::new();
    for (option, value) in [("--max-open-files", "0"), ("--max-open-files", "3"), ("--scratch", "0")] {
        for tier in TIERS {
            let ran = world.jess(&["--tier", tier, option, value], "true");
            assert!(
                ran.code == Some(64) && ran.stderr.contains("at least"),
                "{tier} {option} {value}: {ran:?}"
            );
        }
    }
    world.jess(&["--max-open-files", "64", "--scratch", "1M"], "true").ok();
}

#[test]
fn a_caller_that_ignores_the_end_of_its_children_still_gets_the_exit_code() {
    let script = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])";
    for tier in TIERS {
        let ran = Command::new("timeout")
            .args(["--signal=KILL", "30", "/usr/bin/python3", "-c", script, JESS, "run", "--tier", tier])
            .args(["--", "sh", "-c", "exit 5"])
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(5), "{tier}: {ran:?}");
    }
}

#[test]
fn a_command_that_stops_itself_at_its_own_terminal_stops_nobody_else() {
    for tier in TIERS {
        let ran = Command::new("timeout")
            .args(["--signal=KILL", "30", JESS, "run", "--tier", tier, "--tty", "--timeout", "1", "--"])
            .args(["sh", "-c", "kill -STOP $$"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(124), "{tier}: {ran:?}");
    }
}
