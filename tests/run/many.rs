//! Many sandboxes at once.

use crate::support::{JESS, World};
use std::process::{Command, Stdio};

#[test]
fn two_hundred_sandboxes_at_once_all_finish() {
    for tier in ["full", "landlock"] {
        let world = World::new();
        let started: Vec<_> = (0..200)
            .map(|n| {
                let mut command = Command::new(JESS);
                command.args([
                    "run",
                    "--tier",
                    tier,
                    "--",
                    "sh",
                    "-c",
                    &format!("echo {n} > $HOME/n; cat $HOME/n"),
                ]);
                command.current_dir(world.path("project")).stdin(Stdio::null());
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("jess starts")
            })
            .collect();
        for (n, child) in started.into_iter().enumerate() {
            let done = child.wait_with_output().expect("it ends");
            assert_eq!(String::from_utf8_lossy(&done.stdout), format!("{n}\n"), "{tier}: {done:?}");
        }
    }
}
