//! What is mounted on the host during a run does not appear in the run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;

/// Starts `jess run` below a shared mount, in a mount namespace of its own, then mounts a file system into what was
/// granted. Prints what the run then sees of it, and what this namespace sees.
const SCRIPT: &str = r#"
set -e
mount --make-rshared /
mkdir "$DIR/sub"
"$JESS" run --ro "$DIR" -- sh -c 'echo ready > /dev/stderr; sleep 1; ls "$0/sub"; grep "$0" /proc/self/mountinfo' "$DIR" \
    > "$OUT/inside" 2> "$OUT/ready" &
until grep -q ready "$OUT/ready"; do sleep 0.02; done
mount -t tmpfs late "$DIR/sub"
touch "$DIR/sub/late"
ls "$DIR/sub" > "$OUT/outside"
wait
"#;

#[test]
fn a_mount_made_later_on_the_host_stays_outside() {
    let (granted, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let status = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "--propagation", "shared", "sh", "-c", SCRIPT])
        .env("JESS", env!("CARGO_BIN_EXE_jess"))
        .env("DIR", granted.path())
        .env("OUT", out.path())
        .status()
        .unwrap();
    assert!(status.success());
    let read = |name: &str| std::fs::read_to_string(out.path().join(name)).unwrap();
    assert_eq!(read("outside"), "late\n", "the mount was made");
    let inside = read("inside");
    assert!(inside.contains("mountinfo") || inside.contains(" - "), "the run saw its grant: {inside}");
    assert!(
        !inside.contains("late") && !inside.contains("shared:") && !inside.contains("master:"),
        "{inside}"
    );
}
