//! Latency of a `PreToolUse` Bash event, whole process, against starting `/bin/true`, in interleaved series.
//!
//!     cargo bench --bench hook                    # the binaries of this build
//!     rustc -O benches/hook.rs && ./hook FOLDER   # jess and jess-hook in FOLDER
//!
//! Beside wall time it gives processor time (of the calls and, where there is one, the daemon), which says more on a machine
//! that does other things as well.

// A tool for a developer: what stops it is read by whoever runs it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 400;
const SESSIONS: usize = 50;
const COMMAND: &str = "cd src && git status && grep -rn 'foo' . | head -20";

struct Bench {
    hook: PathBuf,
    jess: PathBuf,
    root: PathBuf,
}

impl Bench {
    fn home(&self, name: &str) -> PathBuf {
        let home = self.root.join(name);
        fs::create_dir_all(home.join("p/src")).unwrap();
        fs::create_dir_all(home.join(".config/jess")).unwrap();
        let daemon = if name == "with" { "" } else { "[daemon]\nenabled = false\n" };
        fs::write(home.join(".config/jess/config.toml"), daemon).unwrap();
        home
    }

    fn event(&self, home: &Path, session: &str, command: &str) -> PathBuf {
        let file = self.root.join(format!("{session}.json"));
        let cwd = home.join("p").display().to_string();
        let text = format!(
            r#"{{"session_id":"{session}","transcript_path":"/x","cwd":"{cwd}","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{{"command":"{command}","description":"d"}},"tool_use_id":"toolu_1"}}"#
        );
        fs::write(&file, text).unwrap();
        file
    }

    fn command(&self, program: &Path, home: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", home)
            .env("PATH", "/usr/bin:/bin")
            .env("CLAUDE_CODE_SESSION_ATTENDED", "1")
            .env("CLAUDE_PROJECT_DIR", home.join("p"));
        command
    }

    /// Milliseconds from the start to the end of `program`.
    fn call(&self, program: &Path, home: &Path, event: &Path) -> f64 {
        let mut command = self.command(program, home);
        command.stdin(fs::File::open(event).unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        let status = command.status().unwrap();
        let took = start.elapsed().as_secs_f64() * 1e3;
        assert!(status.success() || status.code() == Some(2));
        took
    }

    fn daemon(&self, home: &Path) -> Child {
        let child =
            self.command(&self.jess, home).args(["daemon", "--idle", "600"]).stdin(Stdio::null()).spawn();
        let socket = home.join(".local/state/jess/run/hook.sock");
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            std::thread::sleep(Duration::from_millis(5));
        }
        child.unwrap()
    }
}

/// Processor seconds of the children that have ended, or of a process.
fn processor(pid: Option<u32>) -> f64 {
    let path = pid.map_or("/proc/self/stat".to_owned(), |p| format!("/proc/{p}/stat"));
    let text = fs::read_to_string(path).unwrap();
    let fields: Vec<f64> =
        text.rsplit(')').next().unwrap().split_whitespace().map(|f| f.parse().unwrap_or(0.0)).collect();
    let at = if pid.is_some() { 11 } else { 13 };
    (fields[at] + fields[at + 1]) / 100.0
}

fn memory(pid: u32) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = |name: &str| {
        let rest = text.lines().find_map(|l| l.strip_prefix(name)).unwrap();
        rest.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
    };
    format!("{:.1} MB now, {:.1} MB at most", line("VmRSS:"), line("VmHWM:"))
}

fn show(name: &str, mut times: Vec<f64>, base: &[f64]) -> Vec<f64> {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| (times.len() as f64 * share) as usize;
    let ratio = |i: usize| base.get(i).map_or(1.0, |b| times[i] / b);
    println!(
        "{name:24} fastest {:6.2}  quarter {:6.2}  median {:6.2}  p99 {:6.2} ms   fastest ×{:.2}  quarter ×{:.2}  median ×{:.2}",
        times[0],
        times[at(0.25)],
        times[at(0.5)],
        times[at(0.99)],
        ratio(0),
        ratio(at(0.25)),
        ratio(at(0.5)),
    );
    times
}

fn main() {
    let folder = std::env::args().skip(1).find(|a| !a.starts_with('-')).map(PathBuf::from);
    let beside = |name: &str, built: Option<&'static str>| match (&folder, built) {
        (Some(f), _) => f.join(name),
        (None, Some(b)) => b.into(),
        (None, None) => panic!("name the folder of jess and jess-hook"),
    };
    let root = std::env::temp_dir().join(format!("jess-bench-{}", std::process::id()));
    fs::create_dir_all(&root).unwrap();
    let bench = Bench {
        hook: beside("jess-hook", option_env!("CARGO_BIN_EXE_jess-hook")),
        jess: beside("jess", option_env!("CARGO_BIN_EXE_jess")),
        root,
    };
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("{} rounds, load {}", ROUNDS, load.split(' ').next().unwrap_or_default());
    let (with, without) = (bench.home("with"), bench.home("without"));
    let mut daemon = bench.daemon(&with);
    one_by_one(&bench, &with, &without, daemon.id());
    at_once(&bench, &with);
    for n in 0..1_000 {
        let event = bench.event(&with, &format!("many-{n}"), COMMAND);
        bench.call(&bench.hook, &with, &event);
        fs::remove_file(event).unwrap();
    }
    println!("daemon after 1,000 sessions: {}", memory(daemon.id()));
    bounds(&bench, &with, &without);
    println!("daemon at the end: {}", memory(daemon.id()));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let _ = fs::remove_dir_all(&bench.root);
}

fn one_by_one(bench: &Bench, with: &Path, without: &Path, daemon: u32) {
    let nothing = Path::new("/bin/true");
    let (a, b) = (bench.event(with, "a", COMMAND), bench.event(without, "b", COMMAND));
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    let mut used = [0.0; 3];
    for _ in 0..ROUNDS / 20 {
        for (i, (program, home, event)) in
            [(nothing, with, &a), (&*bench.hook, with, &a), (&*bench.hook, without, &b)]
                .into_iter()
                .enumerate()
        {
            let before = processor(None) + processor(Some(daemon));
            for _ in 0..20 {
                times[i].push(bench.call(program, home, event));
            }
            used[i] += processor(None) + processor(Some(daemon)) - before;
        }
    }
    let [t, w, o] = times;
    let base = show("/bin/true", t, &[]);
    show("hook, with daemon", w, &base);
    show("hook, without daemon", o, &base);
    let each = used.map(|s| s * 1e3 / ROUNDS as f64);
    println!(
        "processor time a call, daemon's included: /bin/true {:.2} ms; with daemon {:.2} ms, ×{:.2}; without {:.2} ms, ×{:.2}",
        each[0],
        each[1],
        each[1] / each[0],
        each[2],
        each[2] / each[0]
    );
}

/// Sessions that each make a call every second or so, as agents do; every other call starts `/bin/true` instead.
fn at_once(bench: &Bench, with: &Path) {
    let all: Vec<(Vec<f64>, Vec<f64>)> = std::thread::scope(|s| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|n| {
                s.spawn(move || {
                    let event = bench.event(with, &format!("at-once-{n}"), COMMAND);
                    let mut seed = n as u64 + 1;
                    let (mut hook, mut nothing) = (Vec::new(), Vec::new());
                    for _ in 0..16 {
                        for (program, times) in
                            [(&*bench.hook, &mut hook), (Path::new("/bin/true"), &mut nothing)]
                        {
                            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                            std::thread::sleep(Duration::from_millis((seed >> 33) % 1_000));
                            times.push(bench.call(program, with, &event));
                        }
                    }
                    (hook, nothing)
                })
            })
            .collect();
        sessions.into_iter().map(|s| s.join().unwrap()).collect()
    });
    println!("{SESSIONS} sessions at once, a call each every half second:");
    let base = show("  /bin/true", all.iter().flat_map(|a| a.1.clone()).collect(), &[]);
    show("  hook", all.iter().flat_map(|a| a.0.clone()).collect(), &base);
}

/// The bounds: a command of 1 MB, and 3,000 nested parentheses.
fn bounds(bench: &Bench, with: &Path, without: &Path) {
    let long = format!("echo {}", "a".repeat(1 << 20));
    let nested = format!("{}rm -rf /{}", "(".repeat(3_000), ")".repeat(3_000));
    for (name, command) in [("1 MB command", long), ("3,000 parentheses", nested)] {
        for (how, home) in [("with", with), ("without", without)] {
            let event = bench.event(home, "bound", &command);
            let mut times: Vec<f64> = (0..20).map(|_| bench.call(&bench.hook, home, &event)).collect();
            times.sort_by(f64::total_cmp);
            println!("{name}, {how} daemon: fastest {:.1}, median {:.1} ms", times[0], times[10]);
        }
    }
    let _ = std::io::stdout().flush();
}
