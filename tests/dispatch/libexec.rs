//! `libexec/raptor-run-sandboxed`: RAPTOR's calling convention.

use crate::world::{stderr, stdout};
use std::process::{Command, Output};

fn wrapper(output_dir: Option<&str>, marker: bool, cwd: &std::path::Path, arguments: &[&str]) -> Output {
    // jess is found beside the script, as when both are installed.
    let bin = cwd.join("libexec");
    std::fs::create_dir_all(&bin).unwrap();
    let script = bin.join("raptor-run-sandboxed");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/libexec/raptor-run-sandboxed"), &script).unwrap();
    let _ = std::fs::remove_file(bin.join("jess"));
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_jess"), bin.join("jess")).unwrap();
    let mut command = Command::new(script);
    command.args(arguments).env_clear().current_dir(cwd);
    if marker {
        command.env("_RAPTOR_TRUSTED", "1");
    }
    if let Some(dir) = output_dir {
        command.env("OUTPUT_DIR", dir);
    }
    command.output().unwrap()
}

#[test]
fn it_runs_over_the_current_directory_and_writes_to_output_dir_alone() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    std::fs::write(dir.path().join("input"), "material").unwrap();
    let script = "cat input; echo x > input; echo result > $0/r; env";
    let done = wrapper(out.to_str(), true, dir.path(), &["/bin/sh", "-c", script, out.to_str().unwrap()]);
    assert!(stdout(&done).contains("material"), "{}", stderr(&done));
    assert!(!stdout(&done).contains("_RAPTOR_TRUSTED"), "the marker does not go in");
    assert_eq!(std::fs::read_to_string(out.join("r")).unwrap(), "result\n");
    assert_eq!(std::fs::read_to_string(dir.path().join("input")).unwrap(), "material");
}

#[test]
fn its_exit_codes_are_raptor_s() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let out = out.to_str();
    let run = |arguments: &[&str]| wrapper(out, true, dir.path(), arguments).status.code();
    assert_eq!(run(&["/bin/sh", "-c", "exit 42"]), Some(42));
    assert_eq!(run(&["/bin/sh", "-c", "exit 64"]), Some(64), "a status like jess's own is the command's");
    assert_eq!(run(&["/bin/sh", "-c", "kill -SEGV $$"]), Some(139));
    assert_eq!(run(&["no-such-binary"]), Some(2));
    assert_eq!(run(&[]), Some(1));
    assert_eq!(run(&["--help"]), Some(0));
    assert_eq!(wrapper(out, false, dir.path(), &["/bin/true"]).status.code(), Some(2), "no marker");
    assert_eq!(wrapper(None, true, dir.path(), &["/bin/true"]).status.code(), Some(1));
    assert_eq!(wrapper(Some("relative"), true, dir.path(), &["/bin/true"]).status.code(), Some(1));
    assert_eq!(wrapper(Some("/nonexistent/a/b"), true, dir.path(), &["/bin/true"]).status.code(), Some(1));
}
