//! Denied paths that do not exist.

use crate::support::World;

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

        let world = project();
        let ran = world.jess(&denying(), attempt);
        assert!(made(&world).is_empty(), "{attempt}: made {:?}: {ran:?}", made(&world));
        assert!(world.path("project/.git/hooks").is_dir(), "{attempt}");
    }
}

#[test]
fn another_spelling_of_a_denied_name_is_denied_too() {
    let world = project();
    assert_ne!(world.jess(&denying(), "echo x > .MCP.json").code, Some(0));
    assert!(!world.path("project/.MCP.json").exists());
}

#[test]
fn guarding_names_leaves_nothing_in_the_tree() {
    let world = project();
    let before = world.tree();
    world.jess(&denying(), "true").ok();
    assert_eq!(world.tree(), before);
}

#[test]
fn everything_else_can_be_made_as_usual() {
    for (script, last) in [
        ("umask 077; echo x > n; stat -c %a n", "600"),
        ("umask 002; mkdir n; stat -c %a n", "775"),
        ("echo a > n; echo b >> n; cat n | tr -d '\\n'", "ab"),
        ("set -C; echo a > n; (echo b > n) 2>/dev/null || cat n", "a"),
        ("mkdir -p a/b/c && mv a/b x && ls x", "c"),
        ("echo x > /tmp/g && mv /tmp/g g && cat g", "x"),
        ("mv g h 2>/dev/null || echo absent", "absent"),
        ("echo new > n && mv n f && cat f", "new"),
        ("ln f hard && ln -s f soft && stat -c %h soft hard | tail -1", "2"),
        ("mkfifo p && (echo through > p & cat p)", "through"),
        ("mkdir d 2>/dev/null || echo there", "there"),
        ("echo x > d 2>/dev/null || echo directory", "directory"),
        ("echo x > nowhere/n 2>/dev/null || echo absent", "absent"),
        ("cd d && touch ../n && ls ../n", "../n"),
        ("touch /tmp/t ~/h && echo scratch", "scratch"),
        ("ln -s n dangling; echo x > n; cat dangling", "x"),
        ("rm -r d && mkdir d && ls -a d | wc -l | tr -d ' '", "2"),
        ("seq 2000 | xargs touch && ls | wc -l | tr -d ' '", "2002"),
        (
            "git init -q r && cd r && git config user.email a@b && git config user.name n && echo x > f && git add f && git commit -qm m && git log --format=%s",
            "m",
        ),
        ("echo 'int main(void){return 42;}' > m.c && gcc m.c -o m; ./m; echo $?", "42"),
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
        let world = project();
        let ran = world.jess(&denying(), script);
        assert_eq!(ran.stdout.trim_end().lines().next_back(), Some(last), "{script}: {ran:?}");
    }
}

#[test]
fn a_signal_stops_a_run_with_guarded_names_and_its_status_is_its_own() {
    let world = project();
    assert_eq!(world.jess(&denying(), "exit 7").code, Some(7));
    assert_eq!(world.jess(&denying(), "kill -SEGV $$").code, Some(139));
    let options = [&["--timeout", "1"][..], &denying()[..]].concat();
    assert_eq!(world.jess(&options, "while :; do echo x > n; done").code, Some(124));
}
