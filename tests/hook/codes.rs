//! What the commands around the hook end with: 64 for what the caller can put right, and what they did otherwise.

use super::world::Place;
use std::fs;
use std::process::{Command, Output};

fn jess(place: &Place, dir: &str, args: &[&str], more: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jess"))
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .envs(more.iter().copied())
        .current_dir(place.path(dir))
        .output()
        .unwrap()
}

fn code(out: &Output) -> Option<i32> {
    out.status.code()
}

#[test]
fn a_mistake_of_the_caller_is_no_fault_of_jess() {
    let place = Place::new();
    let home = place.home().to_string_lossy().into_owned();
    // Without a home there is no place for what these show: set one.
    for args in
        [["log"].as_slice(), &["status"], &["why", "secret.read"], &["uninstall"], &["init", "--no-proof"]]
    {
        let out = jess(&place, "home/p", args, &[]);
        assert_eq!(code(&out), Some(64), "{args:?} {out:?}");
    }
    let at = |args: &[&str]| jess(&place, "home/p", args, &[("HOME", &home)]);
    assert_eq!(code(&at(&["log"])), Some(0), "the control");
    assert_eq!(code(&at(&["log", "--otlp", "no address"])), Some(64));
    assert_eq!(code(&at(&["uninstall", "--scope", "plugin"])), Some(64));
    assert_eq!(code(&at(&["init", "--client", "/nowhere/claude"])), Some(64));
    assert_eq!(code(&at(&["session", "clear", "s", "--reason", " "])), Some(64));
    assert_eq!(code(&at(&["why", "no.such"])), Some(1), "nothing fits");
    // Settings that the client drops as a whole.
    place.write("home/.claude/settings.json", "{ no settings");
    let out = at(&["init", "--no-proof"]);
    assert_eq!(code(&out), Some(64), "{out:?}");
    // A place that is none.
    place.write("home/p/file", "x");
    let out = at(&["init", "--scope", "plugin", "--dir", "file/below"]);
    assert_eq!(code(&out), Some(64), "{out:?}");
}

#[test]
fn the_configuration_is_checked_from_every_directory_of_the_project() {
    let place = Place::new();
    let home = place.home().to_string_lossy().into_owned();
    place.write("home/p/jess.toml", "[rules]\ndeny = [\"destroy.gti\"]\n");
    fs::create_dir_all(place.path("home/p/src/deep")).unwrap();
    for dir in ["home/p", "home/p/src/deep"] {
        let out = jess(&place, dir, &["config", "check"], &[("HOME", &home)]);
        let told = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(code(&out), Some(2), "{dir} {out:?}");
        for part in ["jess.toml", "destroy.gti", "destroy.git"] {
            assert!(told.contains(part), "{dir} {part}: {told}");
        }
    }
    place.write("home/p/jess.toml", "[rules]\ndeny = [\"destroy.git\"]\n");
    assert_eq!(code(&jess(&place, "home/p/src/deep", &["config", "check"], &[("HOME", &home)])), Some(0));
    let rules = jess(&place, "home/p", &["config", "rules"], &[]);
    assert!(String::from_utf8_lossy(&rules.stdout).lines().any(|l| l == "destroy.git"), "{rules:?}");
}
