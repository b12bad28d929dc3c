//! The command line and the wrapper: exits, formats, overrides.

use crate::support::{Repo, jess};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const BAD: &str = r#"{"apiKeyHelper":"./key.sh"}"#;

fn run(repo: &Repo, args: &[&str]) -> (Option<i32>, String, String) {
    let out = jess(repo, args, &repo.path(""));
    (out.status.code(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
}

#[test]
fn exits_say_what_happened() {
    let bad = Repo::settings(BAD);
    assert_eq!(run(&bad, &["trust", "check"]).0, Some(2));
    assert_eq!(run(&Repo::settings("{}"), &["trust", "check"]).0, Some(0));
    let missing = |path: &Path| jess(&bad, &["trust", "check"], path).status.code();
    assert_eq!(missing(Path::new("/no/such/place")), Some(64));
    assert_eq!(missing(&bad.path(".claude/settings.json")), Some(64));
    assert_eq!(run(&bad, &["trust", "check", "--unknown"]).0, Some(64));
}

#[test]
fn overrides_speak_on_every_run_and_relax_nothing_that_is_no_configuration() {
    let bad = Repo::settings(BAD);
    for flag in ["--trust-repo", "--trust"] {
        let (code, out, err) = run(&bad, &["trust", "check", flag]);
        assert_eq!(code, Some(0));
        assert!(out.contains("apiKeyHelper") && err.contains("--trust-repo"), "{out}{err}");
    }
    let (code, _, err) = run(&bad, &["trust", "check", "--dry-run"]);
    assert_eq!(code, Some(0));
    assert!(err.contains("suppressed"));
    let (_, _, err) = run(&Repo::settings("{}"), &["trust", "check", "--trust-repo"]);
    assert!(err.contains("--trust-repo"), "said on a clean target too");
    let missing = jess(&bad, &["trust", "check", "--trust-repo"], Path::new("/no/such/place"));
    assert_eq!(missing.status.code(), Some(64));
}

#[test]
fn no_variable_overrides() {
    let bad = Repo::settings(BAD);
    let out = Command::new(env!("CARGO_BIN_EXE_jess"))
        .args(["trust", "check"])
        .arg(bad.path(""))
        .envs(
            ["JESS_TRUST", "JESS_TRUST_REPO", "_RAPTOR_TRUSTED", "RAPTOR_TRUST_REPO", "TRUST_REPO"]
                .map(|n| (n, "1")),
        )
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
}

#[test]
fn json_and_sarif_are_documents_alone_on_stdout() {
    let bad = Repo::settings(BAD);
    let (_, out, _) = run(&bad, &["trust", "check", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["refuse"], true);
    assert_eq!(json["files"][0]["path"], ".claude/settings.json");
    let finding = &json["files"][0]["findings"][0];
    assert_eq!((&finding["label"], &finding["blocking"]), (&"apiKeyHelper".into(), &true.into()));
    let (_, out, _) = run(&bad, &["trust", "check", "--format", "sarif"]);
    let sarif: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"runs-command".into(), &"error".into()));
    let clean = Repo::settings("{}");
    assert_eq!(run(&clean, &["trust", "check"]).1, "");
    let (_, out, _) = run(&clean, &["trust", "check", "--format", "json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&out).unwrap()["refuse"], false);
}

fn wrapper(repo: &Repo, args: &[&str], marker: bool) -> (Option<i32>, String) {
    // The wrapper looks for jess beside itself, so it is installed beside the binary under test.
    let place = repo.beside("install");
    std::fs::create_dir_all(&place).unwrap();
    let script = place.join("raptor-cc-trust-check");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("libexec/raptor-cc-trust-check");
    if !script.exists() {
        // A program that is just being written cannot be started, and a test beside this one may hold a copy open.
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_jess"), place.join("jess")).unwrap();
        std::fs::copy(source, &script).unwrap();
    }
    let mut command = Command::new(&script);
    command.args(args).env_clear().env("HOME", repo.beside("home")).env("PATH", "/nowhere");
    if marker {
        command.env("CLAUDECODE", "1");
    }
    let out = command.output().unwrap();
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn the_wrapper_keeps_raptors_exits() {
    let bad = Repo::settings(BAD);
    let target = bad.path("").to_str().unwrap().to_owned();
    let clean = Repo::settings("{}");
    let good = clean.path("").to_str().unwrap().to_owned();
    let file = bad.path(".claude/settings.json").to_str().unwrap().to_owned();
    for (args, want) in [
        (vec![target.as_str()], 2),
        (vec![good.as_str()], 0),
        (vec![], 0),
        (vec![""], 0),
        (vec!["/no/such/place"], 0),
        (vec!["--trust", &target], 0),
        (vec![&target, "--trust"], 0),
        (vec!["--trust=0", &target], 2),
        (vec!["--trust=yes", &target], 0),
        (vec!["--dry-run", &target], 0),
        (vec!["--dry-run=false", &target], 2),
        (vec!["--unknown", &target], 3),
        (vec![&target, &target], 3),
        (vec!["--", "--trust"], 0),
        (vec!["--", &target], 2),
        (vec![file.as_str()], 2),
    ] {
        assert_eq!(wrapper(&bad, &args, true).0, Some(want), "{args:?}");
    }
    let (code, err) = wrapper(&bad, &[&good], false);
    assert_eq!(code, Some(2));
    assert!(err.contains("CLAUDECODE"));
}

fn hook(args: &[&str], event: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_jess"))
        .arg("hook")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A hook that blocks on its arguments does not read; the write may fail then.
    let _ = child.stdin.take().unwrap().write_all(event.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn the_frontmatter_hooks_allow_in_silence_and_block_with_two() {
    let bash = |command: &str| format!(r#"{{"tool_name":"Bash","tool_input":{{"command":"{command}"}}}}"#);
    let allowed = hook(&["bash-allowlist", "git log"], &bash("git log -1"));
    assert_eq!((allowed.status.code(), allowed.stdout.len()), (Some(0), 0));
    for (args, event) in [
        (vec!["bash-allowlist", "git log"], bash("git log; id")),
        (vec!["bash-allowlist"], bash("git log")),
        (vec!["bash-allowlist", "git log"], "{".to_string()),
        (vec!["bash-allowlist", "--nope"], bash("git log")),
        (vec!["webfetch-allowlist", "--nope"], String::new()),
        (vec!["webfetch-allowlist", "--anchor-file", "/no/such/file"], String::new()),
        (
            vec!["webfetch-allowlist", "a.example"],
            r#"{"tool_name":"WebFetch","tool_input":{"url":"http://a.example"}}"#.to_string(),
        ),
    ] {
        assert_eq!(hook(&args, &event).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn each_anchored_decision_is_logged() {
    let repo = Repo::new(&[]);
    let anchor = repo.beside("anchor");
    std::fs::write(&anchor, "https://bugs.example.org/1\n").unwrap();
    let args = ["webfetch-allowlist", "--anchor-file", anchor.to_str().unwrap()];
    let event = |url: &str| format!(r#"{{"tool_name":"WebFetch","tool_input":{{"url":"{url}"}}}}"#);
    assert_eq!(hook(&args, &event("https://files.example.org/a")).status.code(), Some(0));
    assert_eq!(hook(&args, &event("https://example.net/a")).status.code(), Some(2));
    let log = std::fs::read_to_string(repo.beside("anchor.log")).unwrap();
    assert_eq!(log.lines().count(), 2);
    assert!(log.lines().next().unwrap().contains("\"allowed\":true"));
}
