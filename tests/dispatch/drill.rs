//! The drill, and the proof that each layer is load-bearing.

use crate::world::{jess, stderr, stdout};

fn rows(arguments: &[&str]) -> (Option<i32>, Vec<serde_json::Value>) {
    let done = jess().args(["drill", "--format", "json"]).args(arguments).output().unwrap();
    let rows = serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(&done)));
    (done.status.code(), rows)
}

#[test]
fn nothing_gets_through_the_whole_pipeline() {
    let done = jess().arg("drill").output().unwrap();
    let text = stdout(&done);
    let last = text.lines().last().unwrap_or_default();
    assert_eq!(done.status.code(), Some(0), "{text}{}", stderr(&done));
    let tried: u32 = last.strip_prefix("0 of ").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(tried >= 15, "{last}");
}

/// Every layer and stage is named, so that a new one without an attack of its own fails here.
fn load_bearing(layer: &str) {
    let (code, rows) = rows(&["--without", layer]);
    assert!(!rows.is_empty(), "no attack proves {layer}");
    for row in &rows {
        assert_eq!(row["got_through"], true, "without {layer}: {row}");
    }
    assert_eq!(code, Some(1));
}

#[test]
fn with_any_one_layer_off_the_attacks_that_it_stops_get_through() {
    for layer in jess::dispatch::drill::layer_names() {
        load_bearing(layer);
    }
}

#[test]
fn an_unknown_layer_or_attack_is_a_usage_error() {
    for arguments in [["--without", "hope"], ["--only", "hope"]] {
        let done = jess().arg("drill").args(arguments).output().unwrap();
        assert_eq!(done.status.code(), Some(64), "{}", stderr(&done));
        assert!(stderr(&done).contains("hope"));
    }
}

#[test]
fn only_the_drill_can_leave_a_layer_off() {
    for command in [
        vec!["run", "--without", "mounts", "--", "/bin/true"],
        vec!["dispatch", "--without", "mounts", "--repo", "/tmp", "--out", "/tmp", "--", "/bin/true"],
    ] {
        let done = jess().args(&command).output().unwrap();
        assert_eq!(done.status.code(), Some(64), "{command:?}: {}", stderr(&done));
    }
    // The constructors have no caller outside the drill.
    let mut callers = Vec::new();
    let mut dirs = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                if text.contains("Weakened::without(") || text.contains("Switches::without_") {
                    callers
                        .push(path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string());
                }
            }
        }
    }
    callers.sort();
    assert_eq!(callers, ["src/dispatch/drill/mod.rs", "src/dispatch/switches.rs", "src/sandbox/layer.rs"]);
}
