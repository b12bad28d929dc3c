//! `jess dispatch` and the model: budgets end a run, and the key is nowhere inside.

use crate::gateway::{api, events, stream_answer};
use crate::support::Origin;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const KEY: &str = "sk-ant-api03-REAL-9f8e7d6c5b4a3210";

struct World {
    dir: tempfile::TempDir,
    api: Origin,
}

impl World {
    /// An API whose every answer costs 100 tokens of input and 200 of output.
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        for name in ["repo", "out", "state"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        std::fs::write(dir.path().join("key"), format!("{KEY}\n")).unwrap();
        World { dir, api: api(|_| stream_answer(&events(&["hello"], 100, 200))) }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn dispatch(&self, flags: &[&str], script: &str) -> Output {
        let mut jess = Command::new(env!("CARGO_BIN_EXE_jess"));
        jess.arg("dispatch").arg("--repo").arg(self.at("repo")).arg("--out").arg(self.at("out"));
        jess.args(["--timeout", "100"]).args(flags).args(["--", "/bin/sh", "-c", script]);
        jess.env_clear().env("PATH", "/usr/bin:/bin").env("XDG_STATE_HOME", self.at("state"));
        jess.env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", self.api.port()));
        if !flags.contains(&"--key") {
            jess.env("ANTHROPIC_API_KEY", KEY);
        }
        jess.stdin(Stdio::null()).output().unwrap()
    }

    fn report(&self) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.at("out").join("jess-run.json")).unwrap()).unwrap()
    }

    /// Answers that the API gave.
    fn answers(&self) -> usize {
        self.api.received().matches("POST /v1/messages").count()
    }
}

/// Asks the model `times` times and prints each status.
fn ask(times: u32) -> String {
    let body = r#"{"model":"claude-opus-5-5","max_tokens":1000,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    format!(
        "for i in $(seq {times}); do curl -q -s -o /dev/null -w '%{{http_code}} ' -H \"x-api-key: $ANTHROPIC_API_KEY\" \
         -H 'content-type: application/json' -d '{body}' $ANTHROPIC_BASE_URL/v1/messages; done; "
    )
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_budget_ends_the_run_with_its_own_exit_code() {
    let world = World::new();
    let done = world.dispatch(&["--budget-tokens", "800"], &ask(4));
    assert_eq!(done.status.code(), Some(4), "{}", text(&done.stderr));
    assert_eq!(text(&done.stdout).trim(), "200 200 402 402", "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("the budget is used up"), "{}", text(&done.stderr));
    let report = world.report();
    assert_eq!(report["egress"]["budget_exhausted"], true);
    assert_eq!(report["egress"]["usage"]["responses"], 2);
    let enough = world.dispatch(&["--budget-tokens", "80000"], &ask(4));
    assert_eq!((enough.status.code(), text(&enough.stdout).trim()), (Some(0), "200 200 200 200"));
}

#[test]
fn an_agent_that_goes_on_without_a_budget_is_stopped() {
    let world = World::new();
    let done = world.dispatch(&["--budget-usd", "0.0001"], &format!("{} exec sleep 90", ask(1)));
    assert_eq!(done.status.code(), Some(4), "{}", text(&done.stderr));
    assert_eq!((text(&done.stdout).trim(), world.answers()), ("402", 0));
    assert_ne!(world.report()["run"]["termination"]["kind"], "timeout");
}

#[test]
fn a_day_and_a_session_have_one_budget_for_all_their_runs() {
    let world = World::new();
    for flags in
        [&["--day-budget-tokens", "1000"][..], &["--session", "s1", "--session-budget-tokens", "1000"]]
    {
        let before = world.answers();
        let first = world.dispatch(flags, &ask(2));
        assert_eq!(
            (first.status.code(), text(&first.stdout).trim()),
            (Some(0), "200 200"),
            "{}",
            text(&first.stderr)
        );
        let second = world.dispatch(flags, &ask(3));
        assert_eq!(
            (second.status.code(), text(&second.stdout).trim()),
            (Some(4), "200 402 402"),
            "{}",
            text(&second.stderr)
        );
        assert_eq!(world.answers() - before, 3);
    }
    let other = world.dispatch(&["--session", "s2", "--session-budget-tokens", "1000"], &ask(1));
    assert_eq!(text(&other.stdout).trim(), "200");
}

#[test]
fn only_an_allowed_model_is_asked_and_for_no_more_than_allowed() {
    let world = World::new();
    let refused = world.dispatch(&["--allow-model", "claude-haiku*"], &ask(1));
    assert_eq!((text(&refused.stdout).trim(), world.answers()), ("403", 0));
    world.dispatch(&["--allow-model", "claude-opus*", "--max-tokens", "77"], &ask(1));
    assert!(world.api.received().contains("\"max_tokens\":77"), "{}", world.api.received());
}

/// Looks for a pattern in the memory, environment and command line of every process that it may look at, and in every
/// file. The pattern is written so that the program itself does not hold what it looks for.
const SEARCH: &str = r#"
import os, re, stat, sys
pattern = re.compile(b"".join(b"[%c]" % c for c in bytes.fromhex(sys.argv[1])[::-1]))
seen = set()
for pid in {"1", *filter(str.isdigit, os.listdir("/proc"))}:
    for name in ("environ", "cmdline"):
        try: data = open(f"/proc/{pid}/{name}", "rb").read()
        except OSError: continue
        if pattern.search(data): seen.add(name)
    try:
        maps, memory = open(f"/proc/{pid}/maps").read(), open(f"/proc/{pid}/mem", "rb", 0)
    except OSError:
        seen.add("closed-1") if pid == "1" else None
        continue
    for line in maps.splitlines():
        first, last = (int(x, 16) for x in line.split()[0].split("-"))
        if "r" not in line.split()[1] or last - first > 1 << 28: continue
        try:
            memory.seek(first)
            if pattern.search(memory.read(last - first)): seen.add("memory")
        except (OSError, ValueError, OverflowError): pass
for top, dirs, files in os.walk("/"):
    dirs[:] = [d for d in dirs if os.path.join(top, d) not in ("/proc", "/usr", "/.host-etc/ssl")]
    for name in files:
        path = os.path.join(top, name)
        try:
            about = os.stat(path)
            if stat.S_ISREG(about.st_mode) and about.st_size < 1 << 24 and pattern.search(open(path, "rb").read()):
                seen.add("file")
        except OSError: pass
print(*sorted(seen))
"#;

#[test]
fn the_key_is_nowhere_inside() {
    let world = World::new();
    std::fs::write(world.at("repo").join("search.py"), SEARCH).unwrap();
    let search = |needle: &str| {
        let backwards: String = needle.bytes().rev().map(|b| format!("{b:02x}")).collect();
        format!("exec /usr/bin/python3 {} {backwards}", world.at("repo").join("search.py").display())
    };
    let key = world.at("key");
    let from_file = format!("file:{}", key.display());
    let from_command = format!("command:cat {}", key.display());
    for flags in [&[][..], &["--key", &from_file], &["--key", &from_command]] {
        let done = world.dispatch(flags, &format!("{} {}", ask(1), search(KEY)));
        assert_eq!(text(&done.stdout).trim(), "200 closed-1", "{flags:?}: {}", text(&done.stderr));
        assert_eq!(done.status.code(), Some(0));
    }
    assert_eq!(world.api.received().matches(KEY).count(), 3, "the key was used");
    // What is inside is found: the program's own environment, and a file.
    let planted = "planted-0123456789abcdef";
    std::fs::write(world.at("repo").join("planted"), planted).unwrap();
    let control = world.dispatch(&[], &format!("export PLANTED={planted}; {}", search(planted)));
    assert_eq!(text(&control.stdout).trim(), "closed-1 environ file memory", "{}", text(&control.stderr));
}

#[test]
fn a_key_that_cannot_be_read_stops_before_anything_is_asked() {
    let world = World::new();
    let done = world.dispatch(&["--key", "file:/nonexistent/key"], "echo ran");
    assert_eq!((done.status.code(), text(&done.stdout).as_str()), (Some(64), ""), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("/nonexistent/key"));
}

/// A program that knows nothing but the variables of an OpenAI-shaped API.
#[test]
fn an_agent_of_another_api_finds_it_and_its_key_stays_outside() {
    let world = World::new();
    let url = format!("http://127.0.0.1:{}/v1", world.api.port());
    let flags = [
        "--model-api",
        "openai",
        "--model-url",
        &url,
        "--key",
        &format!("file:{}", world.at("key").display()),
        "--allow-model",
        "gpt-x*",
    ];
    let script = "for m in gpt-x-mini other; do curl -q -s -o /dev/null -w '%{http_code} ' -H \"authorization: Bearer $OPENAI_API_KEY\" \
                  -d \"{\\\"model\\\":\\\"$m\\\",\\\"messages\\\":[]}\" $OPENAI_BASE_URL/chat/completions; done";
    let done = world.dispatch(&flags, script);
    let said = text(&done.stdout);
    assert!(said.starts_with("200 403 "), "{said} {}", text(&done.stderr));
    let received = world.api.received();
    assert!(received.starts_with("POST /v1/chat/completions "), "{received}");
    assert!(received.contains(&format!("authorization: Bearer {KEY}")), "{received}");
    assert_eq!(received.matches("POST ").count(), 1, "{received}");
}

#[test]
fn a_canary_passes_neither_the_model_nor_the_results() {
    let mut world = World::new();
    const CANARY: &str = "false-token-5b1c9e7d";
    std::fs::write(world.at("canary"), CANARY).unwrap();
    world.api = api(|_| stream_answer(&events(&["say false-tok", "en-5b1c9e7d twice"], 5, 5)));
    let body = r#"{"model":"claude-opus-5-5","max_tokens":9,"stream":true,"messages":[]}"#;
    let ask = format!(
        "curl -q -s -H \"x-api-key: $ANTHROPIC_API_KEY\" -d '{body}' $ANTHROPIC_BASE_URL/v1/messages | grep -c 'redacted by jess'"
    );
    let source = format!("file:{}", world.at("canary").display());
    let count = |flags: &[&str]| text(&world.dispatch(flags, &ask).stdout).trim().to_owned();
    assert_eq!(count(&[]), "0", "the control");
    assert_eq!(count(&["--canary", &source]), "1");
    assert_eq!(count(&["--canary", &source, "--on-leak", "mark"]), "0");
    std::fs::write(world.at("short"), "abcdefg").unwrap();
    let refused = world.dispatch(&["--canary", &format!("file:{}", world.at("short").display())], "true");
    assert!(!refused.status.success() && text(&refused.stderr).contains("the canary from"), "{refused:?}");
    let reversed: String = CANARY.chars().rev().collect();
    let tell = format!("echo result {reversed}");
    assert_eq!(world.dispatch(&[], &tell).status.code(), Some(0), "the control");
    assert_eq!(world.dispatch(&["--canary", &source], &tell).status.code(), Some(2));
}
