//! Grants and denials.

use crate::support::{TIERS, World, in_tier};

/// A project as a client has it: with secrets, hooks and configuration that its owner does not want to hand out.
fn project() -> World {
    let world = World::new();
    world.file("project/.env", "TOKEN=secret");
    world.file("project/.git/hooks/pre-commit", "#!/bin/sh");
    world.file("project/.git/config", "[core]");
    world.file("project/.mcp.json", "{}");
    world.file("project/.claude/settings.json", "{}");
    world
}

const PRECIOUS: [&str; 4] = [".env", ".git/hooks", ".mcp.json", ".claude"];

/// `--rw . --deny …` for everything precious.
fn denying() -> Vec<&'static str> {
    let deny = PRECIOUS.into_iter().flat_map(|path| ["--deny", path]);
    ["--rw", "."].into_iter().chain(deny).collect()
}

/// A descriptor that gives no right, opened again.
const OPEN_AGAIN: &str =
    "python3 -c 'import os; f = os.open(\".env\", os.O_PATH); print(open(f\"/proc/self/fd/{f}\").read())'";

const LINK_BY_DESCRIPTOR: &str = "python3 -c 'import ctypes, os
f = os.open(\".env\", os.O_PATH)
ctypes.CDLL(None).linkat(-100, f\"/proc/self/fd/{f}\".encode(), -100, b\"l\", 0x400); print(open(\"l\").read())'";

#[test]
fn denied_paths_below_a_writable_project_can_be_neither_read_nor_changed() {
    for (attempt, path) in [
        ("cat .env", ".env"),
        ("cp .env copy", ".env"),
        ("echo x >> .env", ".env"),
        ("rm -f .env", ".env"),
        ("mv .env moved", ".env"),
        ("echo x > new && mv new .env", ".env"),
        ("ln .env hard", ".env"),
        ("chmod 777 .env && cat .env", ".env"),
        ("ls .claude/settings.json", ".claude/settings.json"),
        ("rm -r .claude", ".claude/settings.json"),
        ("echo x > .claude/new", ".claude/new"),
        ("echo x > .git/hooks/post-commit", ".git/hooks/post-commit"),
        ("chmod 777 .git/hooks; echo x > .git/hooks/post-commit", ".git/hooks/post-commit"),
        (
            "mv .git/hooks .git/old && mkdir .git/hooks && echo x > .git/hooks/post-commit",
            ".git/hooks/post-commit",
        ),
        ("mv .git old && mkdir -p .git/hooks && echo x > .git/hooks/post-commit", ".git/hooks/post-commit"),
        ("rm -r .git; mkdir -p .git/hooks && echo x > .git/hooks/post-commit", ".git/hooks/post-commit"),
        ("echo '{\"x\":1}' > .mcp.json", ".mcp.json"),
        ("ln -sf /etc/passwd .mcp.json", ".mcp.json"),
        ("touch -d 1990-01-01 .env", ".env"),
        ("truncate -s 0 .env", ".env"),
        ("command ls .claude | grep settings", ".claude/settings.json"),
        ("exec 5<.env; cat <&5", ".env"),
        ("cat /proc/self/cwd/.env", ".env"),
        ("ln -s .env l && cat l", ".env"),
        ("ln -s . l && cat l/.env", ".env"),
        (OPEN_AGAIN, ".env"),
        (LINK_BY_DESCRIPTOR, ".env"),
    ] {
        let control = project();
        assert_eq!(control.jess(&["--rw", "."], attempt).code, Some(0), "control: {attempt}");

        for tier in TIERS {
            // Names can be seen there.
            if tier == "landlock" && attempt.starts_with("ls ") {
                continue;
            }
            let world = project();
            let before = world.read(&format!("project/{path}"));
            let ran = world.jess(&in_tier(tier, &denying()), attempt);
            assert_ne!(ran.code, Some(0), "{tier}: {attempt}: {ran:?}");
            assert!(!ran.stdout.contains("secret"), "{tier}: {attempt}: {ran:?}");
            assert_eq!(world.read(&format!("project/{path}")), before, "{tier}: {attempt}");
            for precious in PRECIOUS {
                assert!(
                    world.path("project").join(precious).exists(),
                    "{tier}: {attempt}: {precious} is gone"
                );
            }
        }
    }
}

#[test]
fn the_rest_of_a_project_with_denied_paths_works_as_usual() {
    for tier in TIERS {
        let world = project();
        let script = "echo a > new && mkdir -p d/e && mv new d/e/f && cat d/e/f && echo x >> .git/config && echo y > .git/index";
        assert_eq!(world.jess(&in_tier(tier, &denying()), script).ok(), "a");
        assert_eq!(
            (world.read("project/d/e/f"), world.read("project/.git/index")),
            ("a\n".into(), "y\n".into())
        );
    }
}

#[test]
fn protecting_paths_leaves_nothing_in_the_tree() {
    for tier in TIERS {
        let world = project();
        let before = world.tree();
        world.jess(&in_tier(tier, &denying()), "true").ok();
        assert_eq!(world.tree(), before, "{tier}");
    }
}

#[test]
fn denied_paths_below_a_read_only_project_can_t_be_read() {
    let world = project();
    assert!(world.jess(&["--ro", "."], "cat .env").ok().contains("secret"), "control");
    for tier in TIERS {
        let ran = world.jess(&in_tier(tier, &["--ro", ".", "--deny", ".env"]), "cat .env");
        assert!(ran.code != Some(0) && !ran.stdout.contains("secret"), "{tier}: {ran:?}");
        let script = "cat .mcp.json; echo x > n || echo x > .mcp.json || rm .mcp.json";
        let ran = world.jess(&in_tier(tier, &["--ro", ".", "--deny", ".env"]), script);
        assert!(ran.code != Some(0) && ran.stdout.contains("{}"), "{tier}: {ran:?}");
    }
}

#[test]
fn a_denied_link_can_be_neither_read_nor_replaced() {
    let linked = || {
        let world = World::new();
        world.file("project/conf/env", "secret");
        std::os::unix::fs::symlink("conf/env", world.path("project/.env")).unwrap();
        world
    };
    for attempt in ["cat .env", "cat conf/env", "rm .env && echo x > .env", "mv conf c && cat c/env"] {
        assert_eq!(linked().jess(&["--rw", "."], attempt).code, Some(0), "control: {attempt}");
        for tier in TIERS {
            let world = linked();
            let ran = world.jess(&in_tier(tier, &["--rw", ".", "--deny", ".env"]), attempt);
            assert!(ran.code != Some(0) && !ran.stdout.contains("secret"), "{tier}: {attempt}: {ran:?}");
            assert_eq!(world.read("project/.env"), "secret", "{tier}: {attempt}");
        }
    }
}

#[test]
fn a_system_path_can_be_denied() {
    let world = World::new();
    assert!(world.jess::<&str>(&[], "cat /etc/hostname /etc/os-release").ok().contains("NAME"), "control");
    for tier in TIERS {
        let options = in_tier(tier, &["--deny", "/etc/os-release"]);
        assert_ne!(world.jess(&options, "cat /etc/os-release").code, Some(0), "{tier}");
        world.jess(&options, "cat /etc/hostname").ok();
    }
}

#[test]
fn a_read_only_grant_below_a_writable_one_can_t_be_moved_away() {
    let attempt = "mv .git old && mkdir -p .git/hooks && echo x > .git/hooks/post-commit";
    assert_eq!(project().jess(&["--rw", "."], attempt).code, Some(0), "control");
    for tier in TIERS {
        let world = project();
        let options = in_tier(tier, &["--rw", ".", "--ro", ".git/hooks"]);
        assert_ne!(world.jess(&options, attempt).code, Some(0), "{tier}");
        for attempt in
            ["echo x > .git/hooks/post-commit", "echo x >> .git/hooks/pre-commit", "rm .git/hooks/pre-commit"]
        {
            assert_ne!(world.jess(&options, attempt).code, Some(0), "{tier}: {attempt}");
        }
        assert_eq!(world.read("project/.git/hooks/post-commit"), "", "{tier}");
        assert_eq!(
            world.jess(&options, "cat .git/hooks/pre-commit; echo y > .git/index").ok(),
            "#!/bin/sh",
            "{tier}"
        );
    }
}

#[test]
fn a_grant_that_does_not_exist_is_named_and_one_to_try_is_left_out() {
    let world = World::new();
    for flag in ["--ro", "--rw"] {
        let ran = world.jess(&[flag, "no/such/path"], "echo ran");
        assert!(ran.code == Some(64) && ran.stderr.contains("no/such/path"), "{ran:?}");
        assert!(!ran.stdout.contains("ran"));
        let try_flag = format!("{flag}-try");
        assert_eq!(world.jess(&[&try_flag, "no/such/path"], "echo ran").ok(), "ran");
    }
    world.file("project/there", "content");
    assert_eq!(world.jess(&["--ro-try", "there"], "cat there").ok(), "content");
    assert_ne!(world.jess::<&str>(&[], "cat there").code, Some(0), "control");
}

#[test]
fn a_denied_grant_is_refused() {
    let world = project();
    let ran = world.jess(&["--rw", ".", "--deny", "."], "echo ran");
    assert!(ran.code == Some(64) && !ran.stdout.contains("ran") && ran.stderr.contains("denying"), "{ran:?}");
}

#[test]
fn work_trees_submodules_and_bare_repositories_work() {
    let world = World::new();
    let git = "git -c protocol.file.allow=always -c user.email=a@b -c user.name=n";
    let set_up = format!(
        "git init -q main; {git} -C main commit -q --allow-empty -m first; git -C main worktree add -q ../tree; \
         git clone -q --bare main bare.git; git init -q super; {git} -C super submodule --quiet add ../main sub"
    );
    world.jess(&["--rw", "."], &set_up).ok();
    let commit =
        format!("echo x > f && git add f && {git} commit -qm second && git log --format=%s | head -1");
    let main = world.path("project/main/.git");
    let grants = ["--rw", "tree", "--rw", main.to_str().unwrap(), "--deny", "main/.git/hooks"];
    assert_eq!(world.jess(&grants, &format!("cd tree && {commit}")).ok(), "second");
    assert_eq!(world.jess(&["--rw", "super"], &format!("cd super/sub && {commit}")).ok(), "second");
    assert_eq!(world.jess(&["--ro", "bare.git"], "git -C bare.git log --format=%s").ok(), "first");
}

#[test]
fn a_home_directory_can_be_the_project_with_its_secrets_denied() {
    let world = World::new();
    world.file("project/.ssh/id_ed25519", "secret");
    world.file("project/.bashrc", "# mine");
    let options = ["--rw", ".", "--deny", ".ssh", "--ro", ".bashrc"];
    let ran = world.jess(&options, "pwd; echo x > work; cat .ssh/id_ed25519; echo x >> .bashrc");
    assert!(ran.stdout.contains(world.path("project").to_str().unwrap()), "{ran:?}");
    assert!(!ran.stdout.contains("secret"), "{ran:?}");
    assert_eq!((world.read("project/work"), world.read("project/.bashrc")), ("x\n".into(), "# mine".into()));
}

#[test]
fn projects_below_tmp_and_var_tmp_work() {
    for dir in ["/tmp", "/var/tmp"] {
        let world = World::within(dir.as_ref());
        world.file("project/f", "content");
        assert_eq!(world.jess(&["--rw", "."], "cat f; echo y > g").ok(), "content");
        assert_eq!(world.read("project/g"), "y\n");
    }
}

#[test]
fn a_grant_by_way_of_a_link_is_resolved_once() {
    let world = World::new();
    world.file("real/f", "content");
    world.file("other/f", "other");
    std::os::unix::fs::symlink(world.path("real"), world.path("project/link")).unwrap();
    let link = world.path("project/link");
    let ran = world
        .jess(&["--ro", "link"], &format!("cat {}/f; echo; ls {}", link.display(), world.path("").display()));
    assert_eq!(ran.ok().lines().next(), Some("content"));
    assert!(!ran.stdout.contains("other"), "{ran:?}");
}

#[test]
fn toolchains_of_the_home_are_shown_read_only_and_found_by_name() {
    let world = World::new();
    let tool = world.file("home/.cargo/bin/my-tool", "#!/bin/sh\necho tool of $CARGO_HOME");
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.file("home/.cargo/credentials.toml", "secret");
    let home = world.path("home");
    let run = |options: &[&str], script: &str| {
        let mut command = std::process::Command::new(crate::support::JESS);
        command.arg("run").args(options).args(["--", "bash", "-c", script]).env("HOME", &home);
        command.env_remove("CARGO_HOME").env_remove("RUSTUP_HOME");
        command.env("PATH", format!("{}/.cargo/bin:/usr/bin:/bin", home.display()));
        crate::support::Ran::of(command.current_dir(world.path("project")))
    };
    assert_eq!(run(&["--tools"], "my-tool").ok(), format!("tool of {}/.cargo", home.display()));
    assert_eq!(run(&["--tools=cargo"], "my-tool").code, Some(0));
    assert_ne!(run(&[], "my-tool").code, Some(0), "control");
    assert_ne!(run(&["--tools"], "echo x > $CARGO_HOME/bin/new").code, Some(0));
    assert!(!run(&["--tools"], "cat $CARGO_HOME/credentials.toml").stdout.contains("secret"));
    let missing = run(&["--tools=go"], "true");
    assert!(missing.code == Some(64) && missing.stderr.contains("go"), "{missing:?}");
}
