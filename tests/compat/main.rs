//! Ordinary work that must go on as usual under `jess run`, in both tiers.
//!
//! Each case is a shell script that runs in an empty directory granted for writing, and must end with the line that
//! the case expects. Tools are those that `.ci/run` installs; a missing tool fails the case.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;

const TIERS: [&str; 2] = ["full", "landlock"];

/// Runs `script` under `jess run` in `tier` and checks the last line of its output.
fn works(tier: &str, script: &str, last_line: &str) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let output = jess(tier, dir.path(), &[], script).output().expect("jess starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stdout.lines().next_back() == Some(last_line),
        "{}\nexpected last: {last_line}\nstdout: {stdout}\nstderr: {stderr}",
        output.status
    );
}

fn jess(tier: &str, dir: &Path, options: &[&str], script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jess"));
    command.args(["run", "--tier", tier, "--timeout", "120", "--rw"]).arg(dir).args(options);
    command.args(["--", "bash", "-euo", "pipefail", "-c", script]).current_dir(dir);
    command
}

macro_rules! works {
    ($($name:ident: $script:expr => $last:expr;)+) => {
        mod full {
            $(#[test] fn $name() { super::works("full", $script, $last) })+
        }
        mod landlock {
            $(#[test] fn $name() { super::works("landlock", $script, $last) })+
        }
        /// How many of the table there are.
        const TABLE: usize = [$(stringify!($name)),+].len();
    };
}

works! {
    shell_pipeline: "seq 100 | grep 7 | sort -rn | head -3 | tail -1" => "79";
    here_document: "n=3; cat <<END | wc -l | tr -d ' '\na\nb $n\nc\nEND" => "3";
    process_substitution: "diff <(seq 3) <(seq 3) && echo same" => "same";
    background_jobs: "for i in 1 2 3; do sleep 0.05 & done; wait; echo waited" => "waited";
    traps_and_signals: "trap 'echo caught' USR1; kill -USR1 $$; sleep 0.01" => "caught";
    locale: "LC_ALL=C.UTF-8; export LC_ALL; printf 'ä' | wc -m | tr -d ' '" => "1";
    time_zone: "TZ=UTC0 date -d @0 +%Y" => "1970";
    sed_and_awk: "printf 'a 1\nb 2\n' | sed s/a/c/ | awk '{s += $2} END {print s}'" => "3";
    perl: "perl -MPOSIX -e 'print POSIX::floor(3.7), qq(\n)'" => "3";
    find_and_xargs: "mkdir -p a/b; touch a/1 a/b/2; find . -type f -print0 | xargs -0 -n1 basename | sort | tail -1" => "2";
    tar_round_trip: "mkdir d; echo x > d/f; tar czf d.tgz d; rm -r d; tar xzf d.tgz; cat d/f" => "x";
    who_am_i: "id -un >/dev/null; echo named" => "named";
    devices: "head -c 4 /dev/urandom | wc -c >/dev/null; echo lost >/dev/null; head -c 2 /dev/zero | od -An -tx1 | tr -d ' '" => "0000";
    private_home_and_tmp: "echo a > ~/f; t=$(mktemp); echo b > $t; cat ~/f $t | tr -d '\n'; echo" => "ab";
    fifo: "mkfifo p; (echo through > p &); cat p" => "through";
    symlinks_and_hard_links: "echo x > a; ln a b; ln -s b c; cat c; stat -c %h a" => "2";
    rename_across_directories: "mkdir x y; echo moved > x/f; mv x/f y/g; cat y/g" => "moved";
    modes_and_times: "touch -d @0 f; chmod 640 f; stat -c '%a %Y' f" => "640 0";
    deep_directories: "p=.; for i in $(seq 200); do p=$p/d; done; mkdir -p $p; echo deep > $p/f; find . -name f -exec cat {} +" => "deep";
    ten_thousand_files: "seq 10000 | xargs touch; ls | wc -l | tr -d ' '" => "10000";
    file_locks: "exec 9>lock; flock 9; flock -n lock true || echo held" => "held";
    compile_and_run: "echo 'int main(void){return 42;}' > m.c; gcc -O2 m.c -o m; r=0; ./m || r=$?; echo $r" => "42";
    compile_with_threads: "printf '#include <pthread.h>\n#include <stdio.h>\nvoid*f(void*x){return x;}int main(void){pthread_t t;pthread_create(&t,0,f,0);pthread_join(t,0);puts(\"joined\");}' > t.c; gcc t.c -o t -pthread; ./t" => "joined";
    address_sanitizer_without_a_fault: "printf 'int main(void){return 0;}' > a.c; gcc -fsanitize=address a.c -o a && ./a && echo clean" => "clean";
    address_sanitizer: "printf '#include <stdlib.h>\nint main(void){char*p=malloc(4);free(p);return p[0];}' > a.c; gcc -fsanitize=address a.c -o a; (./a 2>&1 || true) | grep -o heap-use-after-free | sort -u || true" => "heap-use-after-free";
    make_in_parallel: "printf 'all: a b c d\n%%:\n\t@sleep 0.05; echo $@ > $@\n' > Makefile; make -s -j4; cat a b c d | tr -d '\n'; echo" => "abcd";
    git_commit: "git init -q; git config user.email a@b.c; git config user.name n; echo x > f; git add f; git commit -qm m; git log --format=%s" => "m";
    git_clone_and_worktree: "git init -q o; cd o; git -c user.email=a@b -c user.name=n commit -q --allow-empty -m first; git clone -q . ../c; git worktree add -q ../w; git -C ../w log --format=%s" => "first";
    python: "/usr/bin/python3 -c 'import json, ssl, ctypes; print(json.dumps([1]))'" => "[1]";
    python_subprocess: "/usr/bin/python3 -c 'import subprocess as s; print(s.run([\"echo\", \"hi\"], capture_output=True, text=True).stdout.strip())'" => "hi";
    python_multiprocessing: "cat > m.py <<'END'\nimport multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n    with m.get_context('fork').Pool(2) as p: print(sum(p.map(f, range(4))))\nEND\n/usr/bin/python3 m.py" => "14";
    python_asyncio: "/usr/bin/python3 -c 'import asyncio; print(asyncio.run(asyncio.sleep(0.01, \"slept\")))'" => "slept";
    python_sqlite: "/usr/bin/python3 -c 'import sqlite3; c = sqlite3.connect(\"d.db\"); c.execute(\"create table t(x)\"); c.execute(\"insert into t values(7)\"); c.commit(); print(c.execute(\"select x from t\").fetchone()[0])'" => "7";
    python_venv: "/usr/bin/python3 -m venv --without-pip v; v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'" => "True";
    python_shared_memory: "/usr/bin/python3 -c 'from multiprocessing import Lock, Value; v = Value(\"i\", 5); Lock(); print(v.value)'" => "5";
    own_server_and_client: "/usr/bin/python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & echo served > f; for i in $(seq 100); do if curl -sf http://127.0.0.1:8123/f; then break; fi; sleep 0.05; done; kill %1" => "served";
    pseudo_terminal: "/usr/bin/python3 -c 'import os, pty; m, s = pty.openpty(); print(os.isatty(s))'" => "True";
    node: "node -e 'const c = require(\"crypto\"); console.log(c.createHash(\"sha256\").update(\"\").digest(\"hex\").slice(0, 8))'" => "e3b0c442";
    node_child_and_server: "node -e 'const h = require(\"http\"); const s = h.createServer((q, r) => r.end(\"hello\")).listen(0, \"127.0.0.1\", () => h.get({port: s.address().port, host: \"127.0.0.1\"}, r => r.on(\"data\", d => { console.log(String(d)); s.close(); process.exit(); })))'" => "hello";
    openssl: "openssl genpkey -algorithm ed25519 -out k; openssl pkey -in k -pubout | head -1" => "-----BEGIN PUBLIC KEY-----";
    ssh_keygen: "ssh-keygen -q -t ed25519 -N '' -f k; cut -d' ' -f1 k.pub" => "ssh-ed25519";
    gpg: "gpg --version | head -1 | cut -d' ' -f1" => "gpg";
    dash_pipelines: "dash -c 'i=0; while [ $i -lt 100 ]; do echo x | cat | wc -c >/dev/null || exit 1; i=$((i+1)); done; echo $i'" => "100";
    make_of_pipelines: "printf 'all: %s\n' \"$(seq -s ' ' 60)\" > Makefile; for i in $(seq 60); do printf '%s:\n\t@echo x|cat|wc -c >/dev/null\n' $i >> Makefile; done; make -s -j4 SHELL=/bin/dash && echo made" => "made";
    fork_between_signals: "printf 'import os, signal\nsignal.signal(signal.SIGALRM, lambda *a: None)\nsignal.setitimer(signal.ITIMER_REAL, .0007, .0007)\nfor _ in range(300):\n    p = os.fork()\n    if p == 0: os._exit(0)\n    os.waitpid(p, 0)\nsignal.setitimer(signal.ITIMER_REAL, 0)\nprint(300)\n' > f.py; /usr/bin/python3 f.py" => "300";
    a_terminal_for_a_child: "/usr/bin/python3 -c 'import pty; pty.spawn([\"/bin/sh\", \"-c\", \"test -t 0 && : > /dev/tty && echo on a terminal\"])' | tr -d '\r'" => "on a terminal";
    a_name_that_is_no_text: "printf 'import ctypes, socket\nctypes.CDLL(None).prctl(15, b\"half\" + bytes([195]), 0, 0, 0)\nl = socket.create_server((\"127.0.0.1\", 0))\nsocket.create_connection(l.getsockname())\nprint(\"named\")\n' > n.py; /usr/bin/python3 n.py" => "named";
    descriptors_of_a_thread_s_own: "printf '#define _GNU_SOURCE\n#include <sched.h>\n#include <stdio.h>\n#include <unistd.h>\n#include <arpa/inet.h>\n#include <sys/socket.h>\nchar st[65536];volatile int done;int f(void*x){int s=socket(2,1,0);dup2(s,60);struct sockaddr_in a={2,0,{htonl(0x7f000001)}};done=bind(60,(void*)&a,sizeof a)||listen(60,1)?1:2;for(;;)pause();}int main(void){clone(f,st+60000,CLONE_VM|CLONE_SIGHAND|CLONE_THREAD|CLONE_FS,0);while(!done)usleep(1000);puts(done==2?\"own\":\"failed\");fflush(stdout);_exit(0);}' > d.c; gcc d.c -o d; ./d" => "own";
    mode_of_memory_and_pipes: "/usr/bin/python3 -c 'import os; os.fchmod(os.memfd_create(\"m\"), 0o400); os.fchmod(os.pipe()[0], 0o600); print(\"changed\")'" => "changed";
    many_connections_at_once: "/usr/bin/python3 -c 'import socket as s, threading as t; l = s.create_server((\"127.0.0.1\", 0), backlog=64); a = l.getsockname(); c = [t.Thread(target=lambda: s.create_connection(a).recv(1)) for _ in range(40)]; [x.start() for x in c]; [l.accept()[0].close() for _ in c]; [x.join() for x in c]; print(len(c))'" => "40";
    large_memory: "/usr/bin/python3 -c 'print(len(bytearray(256 << 20)) >> 20)'" => "256";
    many_threads: "/usr/bin/python3 -c 'import threading as t; e = t.Event(); l = [t.Thread(target=e.wait) for _ in range(200)]; [x.start() for x in l]; e.set(); [x.join() for x in l]; print(len(l))'" => "200";
}

/// Tier `landlock` has no UDP: nothing there could keep it on the command's own loopback.
#[test]
fn own_udp_in_tier_full() {
    let script = "/usr/bin/python3 -c 'import socket as s; a = s.socket(2, 2); a.bind((\"127.0.0.1\", 0)); b = s.socket(2, 2); b.sendto(b\"datagram\", a.getsockname()); print(a.recv(16).decode())'";
    works("full", script, "datagram");
}

/// With room for few processes at once, many can run one after another.
#[test]
fn processes_that_have_ended_take_no_room() {
    for tier in TIERS {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let script = "for i in $(seq 400); do /bin/true; done; echo ran";
        let output =
            jess(tier, dir.path(), &["--max-processes", "16"], script).output().expect("jess starts");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ran\n", "{tier}: {output:?}");
    }
}

/// A team's directory: what is made in it has its group, and the bit that says so.
#[test]
fn directories_that_hand_their_group_down_work() {
    use std::os::unix::fs::PermissionsExt;
    for tier in TIERS {
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o2775)).expect("own directory");
        let script = "mkdir d; chmod 2755 d; chmod g+s d; cp -a d e; tar cf d.tar d; rm -r d; tar xpf d.tar; \
                      git init -q --shared g; stat -c %a d e";
        let output = jess(tier, dir.path(), &[], script).output().expect("jess starts");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "2755\n2755\n", "{tier}: {output:?}");
        // The same bit on a file is a privilege.
        let script = ": > f; chmod 2755 f || echo refused; stat -c %a f";
        let output =
            jess(tier, dir.path(), &[], &format!("umask 022; {script}")).output().expect("jess starts");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "refused\n644\n", "{tier}: {output:?}");
    }
}

#[test]
fn there_are_enough_workloads() {
    const { assert!(TABLE >= 40) }
}

#[test]
fn sixty_megabytes_pass_through_standard_output_whole() {
    for tier in TIERS {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let output = jess(tier, dir.path(), &[], "head -c 60000000 /dev/zero").output().expect("jess starts");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 60_000_000));
    }
}

#[test]
fn cargo_builds_a_crate_offline() {
    for tier in TIERS {
        let toolchain =
            Command::new("rustc").args(["--print", "sysroot"]).output().expect("rustc is on PATH");
        let toolchain = String::from_utf8_lossy(&toolchain.stdout).trim().to_owned();
        let dir = tempfile::tempdir().expect("a temporary directory");
        let script = format!(
            "export PATH={toolchain}/bin:$PATH; cargo init -q --vcs none --name tiny . && cargo run -q --offline"
        );
        let output = jess(tier, dir.path(), &["--ro", &toolchain], &script).output().expect("jess starts");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(stdout.trim(), "Hello, world!", "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_pipe_into_jess_is_the_command_s_input() {
    for tier in TIERS {
        use std::io::Write;
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut command = jess(tier, dir.path(), &[], "tr a-z A-Z");
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().expect("jess starts");
        child.stdin.take().expect("piped").write_all(b"loud").expect("the command reads");
        assert_eq!(child.wait_with_output().expect("it ends").stdout, b"LOUD");
    }
}
