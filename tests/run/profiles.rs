//! Profiles.

use crate::support::{JESS, Ran, World};
use std::process::Command;

#[test]
fn a_profile_file_says_what_flags_say() {
    let world = World::new();
    world.file("project/data/f", "content");
    world.file("project/data/.env", "secret");
    world.file(
        "p.toml",
        "ro = ['project/data']\ndeny = ['project/data/.env']\nenv = ['A=1']\ncwd = 'project/data'\ntimeout = 30\n",
    );
    let profile = world.path("p.toml");
    let ran = world.jess(&["--profile", profile.to_str().unwrap()], "pwd; cat f; echo $A; cat .env");
    let data = world.path("project/data");
    assert_eq!(ran.stdout, format!("{}\ncontent1\n", data.display()), "{ran:?}");
}

#[test]
fn flags_come_on_top_of_a_profile() {
    let world = World::new();
    world.file("p.toml", "env = ['A=profile', 'B=profile']\n");
    let profile = world.path("p.toml");
    let options = ["--profile", profile.to_str().unwrap(), "--env", "A=flag"];
    assert_eq!(world.jess(&options, "echo $A $B").ok(), "flag profile");
}

#[test]
fn a_mistake_in_a_profile_stops_the_run_and_names_file_and_line() {
    let world = World::new();
    world.file("p.toml", "ro = []\nwritable = ['/']\n");
    let ran = world.jess(&["--profile", world.path("p.toml").to_str().unwrap()], "echo ran");
    assert!(ran.code == Some(64) && !ran.stdout.contains("ran"), "{ran:?}");
    assert!(ran.stderr.contains("p.toml:2") && ran.stderr.contains("writable"), "{ran:?}");
}

#[test]
fn a_profile_of_one_s_own_is_found_by_name() {
    let world = World::new();
    world.file("config/jess/profiles/mine.toml", "extends = 'debug'\nenv = ['WHO=mine']\n");
    let mut command = Command::new(JESS);
    command.args(["run", "--profile", "mine", "--", "sh", "-c", "echo $WHO"]);
    command.env("XDG_CONFIG_HOME", world.path("config")).current_dir(world.path("project"));
    assert_eq!(Ran::of(&mut command).ok(), "mine");
}

#[test]
fn a_debugger_works_in_profile_debug_alone() {
    let world = World::new();
    let script = "gdb -batch -ex 'break main' -ex run -ex 'print argc * 42' ./m 2>&1 | tail -1";
    let build = "echo 'int main(int argc, char **argv){return 0;}' > m.c && gcc -g m.c -o m";
    world.jess(&["--rw", "."], build).ok();
    assert_eq!(world.jess(&["--rw", ".", "--profile", "debug"], script).ok(), "$1 = 42");
    assert_ne!(world.jess(&["--rw", "."], script).stdout.trim(), "$1 = 42", "control");
}

#[test]
fn profile_none_isolates_nothing_says_so_and_must_be_named() {
    let world = World::new();
    let outside = world.file("outside", "readable");
    let script = format!("cat {}; echo $HOME; ulimit -n; (setsid sleep 77.7 &)", outside.display());
    let report = world.path("report.json");
    let ran = world.jess(&["--profile", "none", "--report", report.to_str().unwrap()], &script);
    assert!(ran.ok().starts_with("readable") && ran.stdout.ends_with("4096\n"), "{ran:?}");
    assert!(ran.stderr.contains("no isolation"), "{ran:?}");
    let report: serde_json::Value = serde_json::from_str(&world.read("report.json")).unwrap();
    assert_eq!(report["tier"], "none");
    let engaged = report["layers"].as_array().unwrap().iter().filter(|l| l["state"] != "off");
    let engaged: Vec<_> = engaged.map(|l| l["name"].as_str().unwrap()).collect();
    assert_eq!(engaged, ["environment", "limits"]);
    assert_ne!(world.jess::<&str>(&[], &script).ok().lines().next(), Some("readable"), "control");
    assert_eq!(world.jess(&["--profile", "none", "--require", "landlock"], "true").code, Some(64));
    assert_eq!(world.jess(&["--profile", "none", "--rw", ".", "--deny", "x"], "true").code, Some(3));
}

#[test]
fn profile_target_run_has_local_sockets() {
    let world = World::new();
    let script = "python3 -c 'import socket as s; a = s.socket(s.AF_UNIX); a.bind(\"x\"); a.listen(); \
                  b = s.socket(s.AF_UNIX); b.connect(\"x\"); print(\"met\")'";
    assert_eq!(world.jess(&["--rw", ".", "--profile", "target_run"], script).ok(), "met");
    assert_ne!(world.jess(&["--rw", "."], script).code, Some(0), "control");
}

#[test]
fn profile_strict_shows_processes_alone_and_gives_no_input() {
    let world = World::new();
    let script =
        "test -e /proc/meminfo && echo machine; test -e /proc/self/status && echo process; ulimit -n";
    assert_eq!(world.jess(&["--profile", "strict"], script).ok(), "process\n1024");
    assert_eq!(world.jess::<&str>(&[], script).ok(), "machine\nprocess\n4096", "control");
}

#[test]
fn profile_network_only_closes_the_network_and_processes_but_no_files() {
    let world = World::new();
    let outside = world.file("outside", "readable");
    let script = format!(
        "cat {0}; echo changed > {0}; echo $HOME; python3 - <<'E'\nimport os, socket\n\
         for f in (lambda: socket.create_connection(('192.0.2.7', 1), 2), lambda: socket.socket(socket.AF_UNIX),\n\
         \x20         lambda: os.kill(os.getppid(), 0), lambda: os.kill({1}, 0)):\n\
         \x20   try:\n        f(); print('done')\n    except OSError as e: print(e.errno)\nE",
        outside.display(),
        std::process::id()
    );
    let ran = world.jess(&["--profile", "network-only"], &script);
    let home = std::env::var("HOME").unwrap_or_else(|_| "/".into());
    assert_eq!(ran.ok(), format!("readable{home}\n13\n97\ndone\n1"), "{ran:?}");
    assert_eq!(world.read("outside"), "changed\n");
    assert!(ran.stderr.contains("no file rules"), "{ran:?}");
    assert_ne!(world.jess::<&str>(&[], &script).stdout.lines().next(), Some("changed"), "control");
    assert_eq!(world.jess(&["--profile", "network-only", "--require", "full"], "true").code, Some(3));
}
