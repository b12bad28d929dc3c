//! Denied paths that do not exist.

use crate::support::{TIERS, World, in_tier};

/// A git repository without the files that are denied.
fn project() -> World {
    let world = World::new();
    world.file("project/.git/hooks/README", "none");
    world.file("project/f", "content");
    world.file("project/d/e/f", "content");
    world
}

const DENIED: [&str; 4] = [".env", ".mcp.json", ".claude/settings.json", ".git/hooks/pre-commit"];

fn denying() -> Vec<&'static str> {
    let deny = DENIED.into_iter().flat_map(|path| ["--deny", path]);
    ["--rw", "."].into_iter().chain(deny).collect()
}

fn made(world: &World) -> Vec<&'static str> {
    DENIED.into_iter().filter(|path| world.path("project").join(path).symlink_metadata().is_ok()).collect()
}

const LINK_A_NAMELESS_FILE: &str = "python3 -c 'import ctypes, os
f = os.open(\".\", os.O_TMPFILE | os.O_WRONLY)
ctypes.CDLL(None).linkat(-100, f\"/proc/self/fd/{f}\".encode(), -100, b\".mcp.json\", 0x400)'";

const EXCHANGE: &str = "python3 -c 'import ctypes, os
os.rename(\"f\", \"g\"); os.mkdir(\".tmp\"); os.rename(\"g\", \".tmp/x\")
c = ctypes.CDLL(None)
open(\".tmp/.mcp.json\", \"w\"); os.chdir(\".tmp\")
c.renameat2(-100, b\".mcp.json\", -100, b\"../.mcp.json\", 0)'";

/// A thread changes the name while the call is on its way.
const RACE: &str = "cat > r.c <<'END'
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static volatile char name[] = \"amcp.json\";
static volatile int done;
static void *flip(void *x) { while (!done) { name[0] = '.'; name[0] = 'a'; } return x; }
int main(void) {
  pthread_t t; pthread_create(&t, 0, flip, 0);
  for (int i = 0; i < 20000; i++) { int f = open((char *)name, O_CREAT | O_WRONLY, 0600); if (f >= 0) close(f); unlink(\"amcp.json\"); }
  done = 1; pthread_join(t, 0); return 0;
}
END
gcc -O2 -pthread r.c -o r && ./r";

#[test]
fn a_denied_name_that_does_not_exist_can_t_be_made_in_any_way() {
    for attempt in [
        "echo x > .mcp.json",
        "echo x > .env",
        "mkdir -p .claude && echo x > .claude/settings.json",
        "mkdir c && echo x > c/settings.json && mv c .claude",
        "echo x > .git/hooks/pre-commit",
        "cp f .git/hooks/pre-commit",
        "mv .git g && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
        "mv .git/hooks .git/h && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
        "mv f .mcp.json",
        "ln f .mcp.json",
        "ln -s /etc/passwd .mcp.json",
        "mkfifo .mcp.json",
        "mkdir .mcp.json",
        "cd d/e && echo x > ../../.mcp.json",
        "echo x > \"$PWD/.mcp.json\"",
        "echo x > ./d/.././/.mcp.json",
        "ln -s . here && echo x > here/.mcp.json",
        "ln -s .mcp.json there && echo x > there",
        "echo x > /proc/self/cwd/.mcp.json",
        "exec 5<.; echo x > /proc/self/fd/5/.mcp.json",
        "python3 -c 'import os; os.open(\".mcp.json\", os.O_CREAT, dir_fd=os.open(\".\", 0))'",
        "python3 -c 'import os; os.mknod(\".mcp.json\")'",
        "echo x > /tmp/f && cp /tmp/f .mcp.json",
        "echo x > f2 && (sleep 0.1; mv f2 .mcp.json)",
        LINK_A_NAMELESS_FILE,
        EXCHANGE,
        RACE,
    ] {
        let control = project();
        control.jess(&["--rw", "."], attempt);
        assert!(!made(&control).is_empty(), "control: {attempt}");

        for tier in TIERS {
            let world = project();
            let ran = world.jess(&in_tier(tier, &denying()), attempt);
            assert!(made(&world).is_empty(), "{tier}: {attempt}: made {:?}: {ran:?}", made(&world));
            assert!(world.path("project/.git/hooks").is_dir(), "{tier}: {attempt}");
        }
    }
}

#[test]
fn another_spelling_of_a_denied_name_is_denied_too() {
    for tier in TIERS {
        let world = project();
        assert_ne!(world.jess(&in_tier(tier, &denying()), "echo x > .MCP.json").code, Some(0), "{tier}");
        assert!(!world.path("project/.MCP.json").exists(), "{tier}");
    }
}

#[test]
fn guarding_names_leaves_nothing_in_the_tree() {
    for tier in TIERS {
        let world = project();
        let before = world.tree();
        world.jess(&in_tier(tier, &denying()), "true").ok();
        assert_eq!(world.tree(), before, "{tier}");
    }
}

#[test]
fn everything_else_can_be_made_as_usual() {
    for (script, last) in [
        ("umask 077; echo x > n; stat -c %a n", "600"),
        ("umask 002; mkdir n; stat -c %a n", "775"),
        ("echo a > n; echo b >> n; cat n | tr -d '\\n'", "ab"),
        ("set -C; echo a > n; (echo b > n) 2>/dev/null || cat n", "a"),
        ("mkdir -p a/b/c && mv a/b x && ls x", "c"),
        ("echo x > $TMPDIR/g && mv $TMPDIR/g g && cat g", "x"),
        ("mv g h 2>/dev/null || echo absent", "absent"),
        ("echo new > n && mv n f && cat f", "new"),
        ("ln f hard && ln -s f soft && stat -c %h soft hard | tail -1", "2"),
        ("mkfifo p && (echo through > p & cat p)", "through"),
        ("mkdir d 2>/dev/null || echo there", "there"),
        ("echo x > d 2>/dev/null || echo directory", "directory"),
        ("echo x > nowhere/n 2>/dev/null || echo absent", "absent"),
        ("cd d && touch ../n && ls ../n", "../n"),
        ("touch $TMPDIR/t ~/h && echo scratch", "scratch"),
        ("ln -s n dangling; echo x > n; cat dangling", "x"),
        ("rm -r d && mkdir d && ls -a d | wc -l | tr -d ' '", "2"),
        ("seq 2000 | xargs touch && ls | wc -l | tr -d ' '", "2002"),
        (
            "git init -q r && cd r && git config user.email a@b && git config user.name n && echo x > f && git add f && git commit -qm m && git log --format=%s",
            "m",
        ),
        ("echo 'int main(void){return 42;}' > m.c && gcc m.c -o d/m; d/m; echo $?", "42"),
        (
            "rm -r d; printf 'all: a b c d\\n%%:\\n\\t@echo $@ > $@\\n' > Makefile; make -s -j4; cat a b c d | tr -d '\\n'",
            "abcd",
        ),
        (
            "python3 -c 'import sqlite3; c = sqlite3.connect(\"d.db\"); c.execute(\"create table t(x)\"); c.commit(); print(7)'",
            "7",
        ),
        (
            "python3 -c 'import ctypes, os\nf = os.open(\".\", os.O_TMPFILE | os.O_WRONLY)\nprint(ctypes.CDLL(None).linkat(-100, f\"/proc/self/fd/{f}\".encode(), -100, b\"n\", 0x400))'",
            "0",
        ),
        ("tar czf t.gz f d && mkdir u && tar xzf t.gz -C u && cat u/d/e/f", "content"),
    ] {
        for tier in TIERS {
            // What an open could wait for, and files without a name, are not made there in tier `landlock`.
            if tier == "landlock" && (script.contains("mkfifo") || script.contains("O_TMPFILE")) {
                continue;
            }
            let world = project();
            let ran = world.jess(&in_tier(tier, &denying()), script);
            assert_eq!(ran.stdout.trim_end().lines().next_back(), Some(last), "{tier}: {script}: {ran:?}");
        }
    }
}

#[test]
fn a_signal_stops_a_run_with_guarded_names_and_its_status_is_its_own() {
    for tier in TIERS {
        let world = project();
        let options = in_tier(tier, &denying());
        assert_eq!(world.jess(&options, "exit 7").code, Some(7));
        assert_eq!(world.jess(&options, "kill -SEGV $$").code, Some(139));
        let options = [&["--timeout", "1"][..], &options].concat();
        assert_eq!(world.jess(&options, "while :; do echo x > n; done").code, Some(124));
    }
}

/// Renames what is beside the directory that standard input of process `PID` is.
const BY_A_DESCRIPTOR: &str = "exec 9<&0 </dev/null; python3 -c 'import os, sys
for n in range(20):
    for a, b in (\"outside/secret\", \"project/stolen\"), (\"project/f\", \"outside/planted\"):
        try: os.rename(f\"/proc/PID/fd/{n}/../{a}\", f\"/proc/PID/fd/{n}/../{b}\")
        except OSError: pass
    try: os.chmod(f\"/proc/PID/fd/{n}/../outside\", 0o2777)
    except OSError: pass
'";

#[test]
fn directories_that_jess_was_started_with_lead_nowhere() {
    use std::os::unix::fs::PermissionsExt;
    let scene = || {
        let world = project();
        world.file("outside/secret", "SECRET");
        let shared = std::fs::Permissions::from_mode(0o2775);
        std::fs::set_permissions(world.path("project"), shared).expect("own directory");
        world
    };
    let is_whole = |world: &World| {
        let mode = std::fs::metadata(world.path("outside")).expect("it stays").permissions().mode();
        world.read("outside/secret") == "SECRET"
            && !world.path("project/stolen").exists()
            && !world.path("outside/planted").exists()
            && mode & 0o7777 != 0o2777
    };
    let directory = |world: &World| std::fs::File::open(world.path("project")).expect("own directory");
    let control = scene();
    let script = BY_A_DESCRIPTOR.replace("PID", "self");
    let done = std::process::Command::new("bash").args(["-c", &script]).stdin(directory(&control)).status();
    assert!(done.expect("bash starts").success() && !is_whole(&control), "the control");

    let script = BY_A_DESCRIPTOR.replace("PID", "1");
    for tier in TIERS {
        let world = scene();
        let mut command = std::process::Command::new(crate::support::JESS);
        command.args(["run", "--timeout", "60"]).args(in_tier(tier, &denying())).args(["--", "bash", "-c"]);
        command.arg(&script).current_dir(world.path("project")).stdin(directory(&world));
        let ran = crate::support::Ran::of(&mut command);
        assert!(is_whole(&world), "{tier}: {ran:?}");
    }
}

#[test]
fn a_denied_program_is_not_executed_and_new_ones_are_where_they_can_be() {
    let script = "mkdir -p d t; for at in d t . $TMPDIR; do cp /bin/true $at/new; $at/new && echo $at; done; secret/tool && echo denied";
    for tier in TIERS {
        let scene = || {
            let world = project();
            std::fs::create_dir(world.path("project/secret")).expect("own directory");
            std::fs::copy("/bin/true", world.path("project/secret/tool")).expect("a program");
            world
        };
        assert!(scene().jess(&["--rw", "."], script).stdout.contains("denied"), "the control");
        let world = scene();
        let ran = world.jess(&in_tier(tier, &["--rw", ".", "--deny", "secret"]), script);
        let executed: Vec<&str> =
            ran.stdout.lines().map(|at| if at.starts_with('/') { "scratch" } else { at }).collect();
        let all = ["d", "t", ".", "scratch"];
        let expected = if tier == "full" { &all[..] } else { &["d", "scratch"] };
        assert_eq!(executed, expected, "{tier}: {ran:?}");
    }
}

#[test]
fn programs_that_use_a_divided_project_at_once_get_what_they_ask_for() {
    let script = "for i in $(seq 6); do (for j in $(seq 25); do echo $i-$j > f$i-$j && mkdir d$i-$j && mv f$i-$j d$i-$j/f && \
                  grep -qx $i-$j d$i-$j/f && rm -r d$i-$j || echo lost; done) & done; wait; ls | tr '\\n' ' '";
    for tier in TIERS {
        let world = project();
        assert_eq!(world.jess(&in_tier(tier, &denying()), script).ok(), "d f", "{tier}");
    }
}
