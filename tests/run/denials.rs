//! What a failed run was refused is named, with the flag that grants it.

use crate::support::{Ran, World};
use serde_json::Value;

const TIERS: [&str; 2] = ["full", "landlock"];

/// A run with `options`, and its report.
fn run(world: &World, options: &[&str], script: &str) -> (Ran, Value) {
    let file = world.path("report.json");
    let ran = world.jess(&[&["--report", file.to_str().unwrap()], options].concat(), script);
    let report = serde_json::from_str(&world.read("report.json")).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
    (ran, report)
}

fn flags(report: &Value) -> Vec<String> {
    let seen = report["denials"]["seen"].as_array().expect("a list").iter();
    seen.map(|d| d["flag"].as_str().unwrap_or("-").to_owned()).collect()
}

#[test]
fn a_refused_path_is_named_last_and_its_flag_makes_the_run_succeed() {
    for tier in TIERS {
        let world = World::new();
        let outside = world.file("outside", "content");
        let script = format!("cat {} 2>/dev/null", outside.display());
        let (ran, report) = run(&world, &["--tier", tier, "--explain"], &script);
        assert_eq!(ran.code, Some(1), "{tier}: {ran:?}");
        let flag = format!("--ro {}", outside.display());
        assert_eq!(flags(&report), [flag.as_str()], "{tier}: {report:#}");
        assert!(ran.stderr.trim_end().lines().last().unwrap().contains(&flag), "{tier}: {ran:?}");
        let (granted, report) =
            run(&world, &["--tier", tier, "--explain", "--ro", outside.to_str().unwrap()], &script);
        assert_eq!(granted.ok(), "content", "{tier}");
        assert!(flags(&report).is_empty() && granted.stderr.is_empty(), "{tier}: {granted:?}");
    }
}

#[test]
fn refused_writes_programs_and_sockets_are_named_too() {
    for tier in TIERS {
        let world = World::new();
        let dir = world.path("project");
        let tool = world.file("tool", "#!/bin/sh\necho tool\n");
        std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let script = format!(
            "echo x > {0}/new; {1}; python3 -c 'import socket; socket.socket(socket.AF_UNIX)'; exit 1",
            dir.display(),
            tool.display()
        );
        let (_, report) = run(&world, &["--tier", tier, "--explain", "--ro", "."], &script);
        let flags = flags(&report);
        for flag in [
            format!("--rw {}/new", dir.display()),
            format!("--ro {}", tool.display()),
            "--unix-sockets".into(),
        ] {
            assert!(flags.contains(&flag), "{tier}: {flag}: {report:#}");
        }
    }
}

#[test]
fn refused_connections_are_named_with_their_address() {
    let connect = "python3 -c 'import socket; socket.create_connection((\"192.0.2.7\", 443), 3)' 2>/dev/null";
    let world = World::new();
    // Where the supervisor decides about connections, nothing needs to be watched.
    for options in [&["--tier", "landlock"][..], &["--tier", "full", "--explain"]] {
        let (ran, report) = run(&world, options, connect);
        assert_eq!(flags(&report), ["--net 192.0.2.7:443"], "{options:?}: {ran:?}");
        assert!(ran.stderr.contains("connecting to 192.0.2.7:443"), "{options:?}: {ran:?}");
    }
}

#[test]
fn what_the_command_prints_is_no_evidence() {
    for tier in TIERS {
        let world = World::new();
        let (_, report) =
            run(&world, &["--tier", tier, "--explain"], "echo 'cat: /root/x: Permission denied' >&2; exit 1");
        assert!(flags(&report).is_empty(), "{tier}: {report:#}");
    }
}

#[test]
fn a_hidden_argument_of_a_failed_command_is_named_without_watching() {
    let world = World::new();
    let outside = world.file("outside", "content");
    let ran =
        Ran::of(std::process::Command::new(crate::support::JESS).args(["run", "--", "cat"]).arg(&outside));
    let last = ran.stderr.trim_end().lines().last().unwrap_or_default().to_owned();
    assert!(last.contains(&format!("--ro {}", outside.display())), "{ran:?}");
    let ran =
        Ran::of(std::process::Command::new(crate::support::JESS).args(["run", "--", "cat", "/nonexistent"]));
    assert!(!ran.stderr.contains("--ro"), "control: {ran:?}");
}

/// Refusals of a watched run are decided by the filter's plain program: the call fails as it does unwatched.
#[test]
fn a_watched_run_is_refused_the_same() {
    let script = "python3 - <<'E'\nimport ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n\
                  def call(*args):\n    r = libc.syscall(*args)\n    return r, ctypes.get_errno() if r < 0 else 0\n\
                  print(call(272, 0x10000000), call(250, 0, -3, 0), call(41, 16, 3, 0), call(435, 0, 0), call(165, 0, 0, 0, 0, 0))\nE";
    for tier in TIERS {
        let world = World::new();
        let plain = world.jess(&["--tier", tier], script);
        let watched = world.jess(&["--tier", tier, "--explain"], script);
        assert_eq!(plain.ok(), watched.ok(), "{tier}");
        assert!(plain.stdout.contains("(-1, 1)") && !plain.stdout.contains("(0, 0)"), "{tier}: {plain:?}");
    }
}
