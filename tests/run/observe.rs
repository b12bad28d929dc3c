//! An observed run gives the profile under which it runs again.

use crate::support::{JESS, Ran, World};
use std::process::Command;

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

/// A world with a home that has a secret in it, and `jess run` as whoever lives there.
fn at_home() -> (World, impl Fn(&World, &[&str], &str) -> Ran) {
    let world = World::new();
    world.file("home/.ssh/id", "KEY\n");
    for name in ["big/dir/one", "big/dir/two", "big/other/three"] {
        world.file(name, &format!("{name}\n"));
    }
    let run = |world: &World, options: &[&str], script: &str| {
        let mut command = Command::new(JESS);
        command.args(["run", "--timeout", "60"]).args(options).args(["--", "bash", "-c", script]);
        Ran::of(command.current_dir(world.path("project")).env("HOME", world.path("home")))
    };
    (world, run)
}

/// What a profile grants, and its comments.
fn grants(profile: &str) -> (Vec<String>, String) {
    let parsed: toml::Table = profile.parse().unwrap_or_else(|e| panic!("{e}: {profile}"));
    let of = |key: &str| parsed.get(key).and_then(|v| v.as_array()).cloned().unwrap_or_default();
    let all = ["ro", "rw", "ro-try", "rw-try"].into_iter().flat_map(of);
    let all = all.map(|path| path.as_str().unwrap().to_owned()).collect();
    (all, profile.lines().filter(|line| line.starts_with('#')).collect::<Vec<_>>().join("\n"))
}

#[test]
fn what_fails_anyway_is_granted_for_nothing() {
    let (world, run) = at_home();
    std::fs::write(world.path("project/old"), "").unwrap();
    let locked = world.path("project/locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
    // To root the kernel's own files are what can't be made.
    let script = "echo x > /nonexistent/a/b; mkdir old; mkdir /sys/new; echo x > /proc/version; rm -f missing; \
                  mv missing old2; rmdir /nonexistent; true";
    let observed = run(&world, &["--observe", "-"], script);
    let (granted, _) = grants(observed.ok());
    assert_eq!(granted, Vec::<String>::new(), "{observed:?}");
    if !rustix::process::geteuid().is_root() {
        let observed =
            run(&world, &["--observe", "-"], "mkdir /foo; echo x >> /etc/passwd; touch locked/new; true");
        assert_eq!(grants(observed.ok()).0, Vec::<String>::new(), "{observed:?}");
    }
    let made = run(&world, &["--observe", "-"], "mkdir new");
    assert_eq!(grants(made.ok()).0, [world.path("project").to_str().unwrap()], "control: what succeeds");
}

#[test]
fn a_secret_behind_a_link_is_named_and_not_granted() {
    let (world, run) = at_home();
    std::os::unix::fs::symlink(world.path("home/.ssh"), world.path("project/assets")).unwrap();
    std::os::unix::fs::symlink(world.path("home"), world.path("homelink")).unwrap();
    let through = world.path("homelink/.ssh/id");
    for script in ["cat assets/id".to_owned(), format!("cat {}", through.display())] {
        let profile = world.path("p.toml");
        let profile = profile.to_str().unwrap();
        assert_eq!(
            run(&world, &["--observe", profile], &script).ok(),
            "KEY",
            "the observed run could read it"
        );
        let text = world.read("p.toml");
        let (granted, comments) = grants(&text);
        assert_eq!(granted, Vec::<String>::new(), "{text}");
        assert!(comments.contains("a secret") && comments.contains(".ssh/id"), "{text}");
        for tier in ["full", "landlock"] {
            let again =
                run(&world, &["--profile", profile, "--tier", tier], &format!("{script}; ls assets/"));
            assert!(!again.stdout.contains("KEY") && !again.stdout.contains("id"), "{tier}: {again:?}");
        }
    }
}

#[test]
fn a_name_made_in_the_home_does_not_grant_the_home() {
    let (world, run) = at_home();
    let home = world.path("home");
    let script = format!("echo h >> {0}/.foo_history && ls {0} > /dev/null", home.display());
    let profile = world.path("p.toml");
    let profile = profile.to_str().unwrap();
    run(&world, &["--observe", profile], &script).ok();
    let text = world.read("p.toml");
    let (granted, comments) = grants(&text);
    assert_eq!(granted, [home.join(".foo_history").to_str().unwrap()], "{text}");
    assert!(comments.contains("would grant more"), "{text}");
    for tier in ["full", "landlock"] {
        let file = home.join(".foo_history");
        let options = ["--profile", profile, "--tier", tier];
        run(&world, &options, &format!("echo h >> {}", file.display())).ok();
        let other = format!("echo h > {0}/other; cat {0}/.ssh/id", home.display());
        let other = run(&world, &options, &other);
        assert!(other.code != Some(0) && !home.join("other").exists(), "{tier}: {other:?}");
    }
}

#[test]
fn links_are_shown_themselves_and_what_is_behind_them_as_far_as_it_was_used() {
    let (world, run) = at_home();
    let project = world.path("project");
    for (link, target) in [("lnk", "../big"), ("dl", "../big/dir"), ("up", "/")] {
        std::os::unix::fs::symlink(target, project.join(link)).unwrap();
    }
    for (script, out) in [
        ("cat lnk/dir/one", "big/dir/one"),
        ("cat dl/../dir/two", "big/dir/two"),
        ("cat dl/../other/three", "big/other/three"),
        ("test -s up/etc/passwd && readlink dl", "../big/dir"),
    ] {
        let profile = world.path("p.toml");
        let profile = profile.to_str().unwrap();
        assert_eq!(run(&world, &["--observe", profile], script).ok(), out);
        for tier in ["full", "landlock"] {
            let options = ["--profile", profile, "--tier", tier];
            assert_eq!(run(&world, &options, script).ok(), out, "{tier}: {script}: {}", world.read("p.toml"));
            let whole = run(&world, &options, "cat lnk/dir/one lnk/dir/two lnk/other/three");
            assert_ne!(whole.stdout.lines().count(), 3, "{tier}: {script}: {}", world.read("p.toml"));
        }
    }
}

#[test]
fn what_can_t_be_granted_or_written_down_does_not_spoil_the_profile() {
    let (world, run) = at_home();
    let odd = "printf x > $'odd\\xff'; cat $'odd\\xff'; ls / > /dev/null && find / -maxdepth 1 > /dev/null";
    let profile = world.path("p.toml");
    let profile = profile.to_str().unwrap();
    run(&world, &["--observe", profile], odd).ok();
    let (_, comments) = grants(&world.read("p.toml"));
    assert!(
        comments.lines().any(|line| line.ends_with(": /")),
        "what was listed and can't be granted: {comments}"
    );
    run(&world, &["--profile", profile], "cat $'odd\\xff'").ok();
    let odd_alone = run(&world, &["--observe", "-", "--ro", "."], "cat /nonexistent $'odd\\xff'; true");
    odd_alone.ok();
}

#[test]
fn what_the_command_writes_to_stdout_is_no_part_of_the_profile() {
    let (world, run) = at_home();
    let observed = run(&world, &["--observe", "-"], "echo 'host-files = true'");
    assert!(observed.stderr.contains("host-files = true"), "{observed:?}");
    assert!(!observed.ok().contains("host-files"), "{observed:?}");
    let strict = run(&world, &["--profile", "strict", "--observe", "-"], "cat /etc/hostname");
    assert!(strict.ok().contains("[limits]"), "{strict:?}");
}
