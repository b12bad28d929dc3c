//! What the machine can enforce, as `jess doctor` sees it.

use crate::support::{JESS, Ran, World};
use serde_json::Value;
use std::process::Command;

fn doctor(world: &World, options: &[&str]) -> Ran {
    let mut command = Command::new(JESS);
    command.arg("doctor").args(options).env("XDG_CACHE_HOME", world.path("cache"));
    Ran::of(command.current_dir("/"))
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {ran:?}"))
}

#[test]
fn a_real_run_decides_the_tier_and_every_mechanism_has_a_result() {
    let world = World::new();
    let ran = doctor(&world, &["--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let found = json(&ran);
    assert_eq!(found["schema"], "jess.doctor/1");
    assert_eq!((&found["tier"], &found["live"]["held"]), (&"full".into(), &true.into()));
    let checks = found["checks"].as_array().unwrap();
    for name in ["landlock", "seccomp", "max-user-namespaces", "delegation", "container"] {
        let check = checks.iter().find(|c| c["name"] == name).unwrap_or_else(|| panic!("no {name}"));
        assert!(check["state"] == "ok" || check["remedy"].is_string() || check["lost"].is_array(), "{check}");
    }
}

#[test]
fn the_result_of_the_real_run_is_kept_until_a_fresh_one_is_asked_for() {
    let world = World::new();
    let cached = |options: &[&str]| json(&doctor(&world, options))["live"]["cached"].clone();
    assert_eq!(cached(&["--format", "json"]), false);
    assert_eq!(cached(&["--format", "json"]), true);
    assert_eq!(cached(&["--format", "json", "--fresh"]), false);
}

#[test]
fn without_user_namespaces_it_says_so_and_what_to_do() {
    let world = World::new();
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" doctor --fresh";
    let mut command = Command::new("unshare");
    command.args(["-Ur", "sh", "-c", script, JESS]).env("XDG_CACHE_HOME", world.path("cache"));
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("tier landlock"), "{ran:?}");
    assert!(ran.stdout.contains("sysctl -w user.max_user_namespaces="), "{ran:?}");
}

#[test]
fn the_apparmor_profile_names_the_program() {
    let ran = doctor(&World::new(), &["--apparmor-profile"]);
    assert!(ran.ok().contains(JESS) && ran.stdout.contains("userns,"), "{ran:?}");
}
