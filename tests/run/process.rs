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
