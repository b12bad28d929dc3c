//! Control groups: limits of all processes together, where one can be made.

use crate::support::{JESS, Ran, World};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A group for these tests in the version 2 hierarchy; removed at the end. `None` where this user can make none.
struct Parent(PathBuf);

impl Parent {
    fn new() -> Option<Parent> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = mounts.lines().find(|l| l.contains(" - cgroup2 "))?.split(' ').nth(4)?.to_owned();
        let directory = Path::new(&mount).join(format!("jess-test-{}", std::process::id()));
        std::fs::create_dir(&directory).ok()?;
        let down: String = ["memory", "pids", "cpu"].map(|c| format!("+{c} ")).concat();
        // All or nothing: where version 1 holds them, there are none.
        let _ = std::fs::write(directory.join("cgroup.subtree_control"), down);
        Some(Parent(directory))
    }

    fn controllers(&self) -> String {
        std::fs::read_to_string(self.0.join("cgroup.subtree_control")).unwrap()
    }

    fn groups(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.0).unwrap().flatten();
        entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()).collect()
    }

    fn until(&self, what: &str, reached: impl Fn(&[PathBuf]) -> bool) -> Vec<PathBuf> {
        let start = Instant::now();
        loop {
            let groups = self.groups();
            if reached(&groups) {
                return groups;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "{what}: {groups:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_limit_that_no_group_can_set_is_named() {
    let world = World::new();
    let report = world.path("report.json");
    // A place where no group can be made, whatever this host has.
    let script = "mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"";
    let ran = Ran::of(
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", JESS, "run"])
            .args(["--max-memory", "64M", "--report"])
            .arg(&report)
            .args(["--", "true"]),
    );
    assert!(ran.code == Some(0) && ran.stderr.contains("not bounded"), "{ran:?}");
    let report: serde_json::Value = serde_json::from_str(&world.read("report.json")).unwrap();
    let layers = report["layers"].as_array().unwrap();
    let limits = layers.iter().find(|l| l["name"] == "limits").unwrap();
    assert_eq!(limits["state"], "degraded", "{report:#}");
    assert_eq!(report["limits"]["memory_bytes"], 64 << 20);
    assert!(world.jess::<&str>(&[], "true").stderr.is_empty(), "control: nobody asked for one");
}

/// The whole life of a group. Where this user can make none (an ordinary user without delegation), that is what is shown.
#[test]
fn a_run_is_in_a_group_of_its_own_which_is_gone_after_it_also_when_jess_is_killed() {
    let Some(parent) = Parent::new() else { return no_group() };
    for tier in ["full", "landlock"] {
        for killed in [false, true] {
            let mut jess = Command::new(JESS)
                .args(["run", "--tier", tier, "--max-memory", "64M", "--max-cpus", "1.5", "--cgroup"])
                .arg(&parent.0)
                .args([
                    "--",
                    "sh",
                    "-c",
                    if killed { "sleep 600 & setsid sleep 600 & sleep 600" } else { "sleep 1" },
                ])
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let joined = |groups: &[PathBuf]| {
                groups
                    .iter()
                    .any(|g| std::fs::read_to_string(g.join("cgroup.procs")).is_ok_and(|p| !p.is_empty()))
            };
            let groups = parent.until("the command joins", joined);
            assert_eq!(groups.len(), 1, "{tier}");
            if parent.controllers().contains("memory") {
                let read = |file: &str| std::fs::read_to_string(groups[0].join(file)).unwrap();
                assert_eq!(read("memory.max").trim(), (64 << 20).to_string());
                assert_eq!(read("cpu.max").trim(), "150000 100000");
                assert_eq!(read("pids.max").trim(), "1024");
            }
            if killed {
                jess.kill().unwrap();
            }
            jess.wait().unwrap();
            parent.until("the group is removed", <[PathBuf]>::is_empty);
        }
    }
}

/// Left by a run whose jess and janitor were both killed: an empty directory that nobody holds.
#[test]
fn a_group_that_was_left_is_removed_by_the_next_run_and_one_in_use_is_not() {
    let Some(parent) = Parent::new() else { return no_group() };
    let left = parent.0.join("jess-left");
    std::fs::create_dir(&left).unwrap();
    let other = parent.0.join("operators-own");
    std::fs::create_dir(&other).unwrap();
    let world = World::new();
    world.jess(&["--max-memory", "64M", "--cgroup", parent.0.to_str().unwrap()], "true").ok();
    assert!(!left.exists() && other.exists());
    std::fs::remove_dir(other).unwrap();
}

#[test]
fn what_is_no_group_of_version_two_is_an_error_that_names_it() {
    let world = World::new();
    world.file("fake/cgroup.procs", "");
    world.file("fake/cgroup.subtree_control", "memory pids cpu");
    let fake = world.path("fake");
    // Where there is a hierarchy of version 1, that is none either.
    let one = Path::new("/sys/fs/cgroup/memory");
    for directory in [fake.as_path(), one] {
        let ran = world.jess(&["--max-memory", "64M", "--cgroup", directory.to_str().unwrap()], "true");
        assert_eq!(ran.code, Some(64), "{ran:?}");
        assert!(ran.stderr.contains(directory.to_str().unwrap()), "{ran:?}");
    }
    assert!(std::fs::read_dir(fake).unwrap().count() == 2, "nothing was made there");
}

/// What there is to see for a user who can make no group.
fn no_group() {
    let world = World::new();
    let ran = world.jess(&["--max-memory", "64M"], "true");
    assert!(ran.code == Some(0) && ran.stderr.contains("not bounded"), "{ran:?}");
}
