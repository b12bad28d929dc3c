//! An observed run gives the profile under which it runs again.

use crate::support::World;

/// A world with things that a command may need, and the names of some.
fn world() -> World {
    let world = World::new();
    world.file("data/input", "one\n");
    world.file("data/unused", "two\n");
    let tool = world.file("tools/tool", "#!/bin/sh\ncat \"$1\"\n");
    std::fs::set_permissions(tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("data", world.path("link")).unwrap();
    std::fs::create_dir(world.path("out")).unwrap();
    world
}

fn script(world: &World) -> String {
    let at = |name: &str| world.path(name).display().to_string();
    format!(
        "{} {}/input > {}/result && mkdir -p {}/sub && echo x > $HOME/own",
        at("tools/tool"),
        at("link"),
        at("out"),
        at("out")
    )
}

#[test]
fn a_second_run_under_the_observed_profile_succeeds_and_has_no_more_than_it_needs() {
    let world = world();
    let script = script(&world);
    let profile = world.path("observed.toml");
    let profile = profile.to_str().unwrap();
    world.jess(&["--observe", profile], &script).ok();
    assert_eq!(world.read("out/result"), "one\n", "the run was a real one");
    for tier in ["full", "landlock"] {
        std::fs::remove_file(world.path("out/result")).unwrap();
        std::fs::remove_dir(world.path("out/sub")).unwrap();
        world.jess(&["--profile", profile, "--tier", tier], &script).ok();
        assert_eq!(world.read("out/result"), "one\n", "{tier}");
        assert_ne!(
            world.jess(&["--tier", tier], &script).code,
            Some(0),
            "control: {tier} without the profile"
        );
        let more = format!(
            "cat {0}/observed.toml; echo x > {0}/tools/new; truncate -s 0 {0}/data/input; true",
            world.path(".").display()
        );
        let ran = world.jess(&["--profile", profile, "--tier", tier], &more);
        assert!(ran.ok().is_empty(), "{tier}: {ran:?}");
        assert!(!world.path("tools/new").exists() && world.read("data/input") == "one\n", "{tier}: {ran:?}");
    }
}

#[test]
fn a_compiler_s_run_is_observed_and_repeated() {
    let world = world();
    world.file(
        "project/main.c",
        "#include <stdio.h>\n#include \"own.h\"\nint main(void) { puts(OWN); return 0; }\n",
    );
    world.file("project/own.h", "#define OWN \"built\"\n");
    let profile = world.path("observed.toml");
    let profile = profile.to_str().unwrap();
    let script = "gcc -O1 main.c -o main && ./main";
    assert_eq!(world.jess(&["--observe", profile], script).ok(), "built");
    assert_eq!(world.jess(&["--profile", profile], script).ok(), "built", "{}", world.read("observed.toml"));
    assert_ne!(world.jess::<&str>(&[], script).code, Some(0), "control");
}

#[test]
fn what_breaks_out_stays_denied_while_observing() {
    let world = world();
    let profile = world.path("observed.toml");
    let script = "python3 - <<'E'\nimport ctypes, os, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n\
                  print(libc.syscall(272, 0x10000000), libc.syscall(101, 16, os.getppid(), 0, 0))\n\
                  for path in ('/proc/self/oom_score_adj', '/proc/sys/kernel/core_pattern', f'/proc/{os.getppid()}/mem'):\n\
                  \x20   try:\n        open(path, 'r+b', buffering=0); print('open', path)\n    except OSError as e: print(e.errno)\n\
                  try:\n    socket.create_connection(('192.0.2.7', 1), 2)\nexcept OSError as e: print(e.errno)\n\
                  try:\n    socket.socket(socket.AF_UNIX)\nexcept OSError as e: print(e.errno)\nE";
    let ran = world.jess(&["--observe", profile.to_str().unwrap()], script);
    assert_eq!(ran.ok(), "-1 -1\n13\n13\n13\n13\n97", "{ran:?}");
    let ran =
        world.jess(&["--observe", profile.to_str().unwrap()], "head -1 /sys/kernel/uevent_seqnum; true");
    assert!(ran.ok().is_empty() && !world.read("observed.toml").contains("/sys"), "{ran:?}");
}

#[test]
fn secrets_of_the_home_are_named_and_not_granted() {
    let world = world();
    let key = world.file("home/.ssh/id_test", "secret");
    let profile = world.path("observed.toml");
    let mut command = std::process::Command::new(crate::support::JESS);
    command.args(["run", "--observe"]).arg(&profile).args(["--", "cat"]).arg(&key);
    command.env("HOME", world.path("home")).current_dir(world.path("project"));
    assert_eq!(crate::support::Ran::of(&mut command).ok(), "secret", "no file rule is enforced");
    let text = world.read("observed.toml");
    assert!(text.contains("not granted") && text.contains("id_test") && !text.contains("ro ="), "{text}");
}

#[test]
fn the_profile_is_not_written_through_a_link_nor_to_a_file_that_was_swapped() {
    let world = world();
    let victim = world.file("victim", "kept");
    std::os::unix::fs::symlink(&victim, world.path("p.toml")).unwrap();
    let link = world.path("p.toml");
    assert_eq!(world.jess(&["--observe", link.to_str().unwrap()], "true").code, Some(64));
    let swapped = world.path("q.toml");
    let script = format!("rm {0}; ln -s {1} {0}", swapped.display(), victim.display());
    let ran = world.jess(&["--observe", swapped.to_str().unwrap()], &script);
    assert!(ran.code == Some(70) && ran.stderr.contains("another file"), "{ran:?}");
    assert_eq!(world.read("victim"), "kept");
}
