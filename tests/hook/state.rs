//! What a session's state says when it cannot be kept, is somebody else's, or belongs to a session that goes on under
//! another name; and answers that nobody would get.

use super::world::Place;
use jess::audit::state;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const JESS: &str = env!("CARGO_BIN_EXE_jess");
const JESS_HOOK: &str = env!("CARGO_BIN_EXE_jess-hook");

/// Runs `line` in a shell, with the environment of an attended session and `more`, and the event of a Bash call.
fn shell(place: &Place, line: &str, more: &[(&str, &str)], command: &str) -> Output {
    let event = place.event("PreToolUse", "Bash", json!({"command": command})).to_string();
    let mut child = Command::new("sh")
        .args(["-c", line])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("CLAUDE_PROJECT_DIR", place.project())
        .env("CLAUDE_CODE_SESSION_ATTENDED", "1")
        .envs(more.iter().copied())
        .current_dir(place.project())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(event.as_bytes());
    child.wait_with_output().unwrap()
}

/// `deny`, `ask` or `none` of a process that ended with 0; its status otherwise.
fn said(out: &Output) -> String {
    match out.status.code() {
        Some(0) if out.stdout.is_empty() => "none".into(),
        Some(0) => {
            let document: Value = serde_json::from_slice(&out.stdout).unwrap();
            document["hookSpecificOutput"]["permissionDecision"].as_str().unwrap_or("none").into()
        }
        code => format!("{code:?}"),
    }
}

#[test]
fn without_a_place_for_the_record_nothing_runs_unseen() {
    let place = Place::new();
    let (home, config) = (place.home(), place.path("config"));
    let (home, config) = (home.to_string_lossy().into_owned(), config.to_string_lossy().into_owned());
    let line = format!("exec '{JESS}' hook");
    let call = |more: &[(&str, &str)]| shell(&place, &line, more, "ls");
    assert_eq!(said(&call(&[("HOME", &home)])), "none", "the control: with a home it is on record");
    let nowhere: [&[(&str, &str)]; 4] =
        [&[], &[("HOME", "")], &[("HOME", "relative")], &[("HOME", ""), ("XDG_STATE_HOME", "x")]];
    for none in nowhere {
        let out = call(none);
        assert_eq!(said(&out), "ask", "{none:?} {out:?}");
        let alone: Vec<_> = none.iter().copied().chain([("CLAUDE_CODE_SESSION_ATTENDED", "0")]).collect();
        assert_eq!(said(&call(&alone)), "deny", "{none:?}");
    }
    place.write("config/jess/config.toml", "[audit]\non_failure = \"allow\"\n");
    let out = call(&[("XDG_CONFIG_HOME", &config)]);
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(document["hookSpecificOutput"].is_null(), "as configured: {out:?}");
    assert!(document["systemMessage"].as_str().unwrap().contains("not on record"), "and told: {out:?}");
}

#[test]
fn without_a_place_for_labels_a_call_that_reaches_out_is_asked_about() {
    let place = Place::new();
    let config = place.path("config").to_string_lossy().into_owned();
    place.write("config/jess/config.toml", "[audit]\non_failure = \"allow\"\n");
    let fetch = "curl -s https://api.example.com/status";
    let line = format!("exec '{JESS}' hook");
    let state = place.path("state").to_string_lossy().into_owned();
    let kept = [("XDG_CONFIG_HOME", config.as_str()), ("XDG_STATE_HOME", state.as_str())];
    assert_eq!(said(&shell(&place, &line, &kept, fetch)), "none", "the control");
    assert_eq!(said(&shell(&place, &line, &kept[..1], fetch)), "ask");
}

#[test]
fn a_denial_that_nobody_would_get_is_a_status_that_blocks() {
    let place = Place::new();
    let home = place.home().to_string_lossy().into_owned();
    let project = place.project().to_string_lossy().into_owned();
    for binary in [JESS, JESS_HOOK] {
        // A dispatched session starts no daemon.
        let more = [("HOME", home.as_str()), ("JESS_UNTRUSTED_ROOT", project.as_str())];
        let run = |to: &str| shell(&place, &format!("exec '{binary}' hook {to}"), &more, "cat .env");
        assert_eq!(said(&run("")), "deny", "the control");
        for to in [">&-", ">/dev/null", "1<README.md", ">/dev/full"] {
            let out = run(to);
            assert_eq!(out.status.code(), Some(2), "{binary} {to} {out:?}");
        }
    }
}

#[test]
fn with_nothing_to_say_it_does_not_matter_where_an_answer_would_go() {
    let place = Place::new();
    let home = place.home().to_string_lossy().into_owned();
    for to in [">&-", ">/dev/null"] {
        let out = shell(&place, &format!("exec '{JESS}' hook {to}"), &[("HOME", &home)], "ls");
        assert_eq!(out.status.code(), Some(0), "{to} {out:?}");
    }
}

#[test]
fn a_limit_on_file_sizes_is_an_answer_and_no_signal_and_does_no_harm_that_stays() {
    let place = Place::new();
    let home = place.home().to_string_lossy().into_owned();
    let run = |before: &str, command: &str| {
        shell(&place, &format!("{before} exec '{JESS}' hook"), &[("HOME", &home)], command)
    };
    for (command, answer) in [("ls", "ask"), ("cat .env", "deny")] {
        let out = run("ulimit -f 0;", command);
        assert_eq!(said(&out), answer, "{command} {out:?}");
    }
    assert_eq!(said(&run("", "ls")), "none", "without the limit it is on record again");
    assert_eq!(said(&run("ulimit -f 0;", "ls")), "ask", "with a log that is there");
}

#[test]
fn an_allow_list_s_hook_outlives_a_limit_on_file_sizes_too() {
    let place = Place::new();
    place.write("anchor", "https://a.example\n");
    let line = |before: &str| {
        format!(
            "{before} exec '{JESS}' hook webfetch-allowlist --anchor-file '{}'",
            place.path("anchor").display()
        )
    };
    for before in ["", "ulimit -f 0;"] {
        let out = shell(&place, &line(before), &[], "ls");
        assert_eq!(out.status.code(), Some(2), "{before} {out:?}");
    }
}

#[test]
fn a_record_that_ends_in_what_is_none_is_said_and_left_as_it_is() {
    let place = Place::new();
    let (log, ls) = ("state/jess/audit.jsonl", json!({"command": "ls"}));
    assert_eq!(place.verdict("Bash", ls.clone()), "none");
    for end in ["garbage\n".to_owned(), "x".repeat(1 << 20)] {
        let whole = fs::read(place.path(log)).unwrap();
        fs::OpenOptions::new().append(true).open(place.path(log)).unwrap().write_all(end.as_bytes()).unwrap();
        let changed = fs::metadata(place.path(log)).unwrap().len();
        let event = place.event("PreToolUse", "Bash", ls.clone());
        let document = place.answer(&event, &[]).document.unwrap();
        assert_eq!(document["hookSpecificOutput"]["permissionDecision"], "ask");
        assert!(document["systemMessage"].as_str().unwrap().contains("no record"), "{document}");
        assert_eq!(fs::metadata(place.path(log)).unwrap().len(), changed);
        fs::write(place.path(log), whole).unwrap();
        assert_eq!(place.verdict("Bash", ls.clone()), "none", "put right, it goes on");
    }
}

#[test]
fn counts_that_cannot_be_read_are_not_taken_for_none() {
    let place = Place::new();
    let ls = json!({"command": "ls"});
    assert_eq!(place.verdict("Bash", ls.clone()), "none");
    fs::create_dir_all(place.path("state/jess/counts")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", place.path("state/jess/counts/s")).unwrap();
    assert_eq!(place.verdict("Bash", ls), "ask");
}

/// Tells the hook that a call of session `s` ran.
fn ran(place: &Place, tool: &str, input: Value) {
    let mut event = place.event("PostToolUse", tool, input);
    event["tool_response"] = json!({"stdout": "", "stderr": "", "result": ""});
    place.answer(&event, &[]);
}

/// What a fetch meets in session `id`, whose transcript is at `transcript`.
fn fetch(place: &Place, id: &str, transcript: &Path) -> String {
    let mut event =
        place.event("PreToolUse", "Bash", json!({"command": "curl -s https://api.example.com/status"}));
    event["session_id"] = id.into();
    event["transcript_path"] = transcript.to_string_lossy().into();
    let document = place.answer(&event, &[]).document;
    document.map_or("none".into(), |d| {
        d["hookSpecificOutput"]["permissionDecision"].as_str().unwrap_or("none").into()
    })
}

/// A session starts so; whether anything was told.
fn starts(place: &Place, id: &str, source: &str, transcript: &Path) -> bool {
    let event = json!({
        "hook_event_name": "SessionStart", "session_id": id, "source": source, "cwd": place.project(),
        "transcript_path": transcript,
    });
    place.answer(&event, &[]).document.is_some()
}

#[test]
fn a_session_that_continues_another_s_transcript_has_met_what_that_one_met() {
    let place = Place::new();
    ran(&place, "WebFetch", json!({"url": "https://pages.example/x", "prompt": "x"}));
    ran(&place, "Bash", json!({"command": "cat .env"}));
    let line = |id: &str| {
        format!(
            "{{\"type\":\"user\",\"message\":{{\"content\":\"\\\"sessionId\\\":\\\"s\\\"\"}},\"sessionId\":\"{id}\"}}\n"
        )
    };
    let at = |name: &str| place.path(&format!("home/.claude/projects/p/{name}.jsonl"));
    // A file that the old session began, under the new session's name.
    place.write("home/.claude/projects/p/fork.jsonl", &(line("s") + &line("fork")));
    assert!(!starts(&place, "fork", "resume", &at("fork")));
    fs::remove_file(at("fork")).unwrap();
    assert_eq!(fetch(&place, "fork", &at("fork")), "ask", "taken over at the start, and kept");
    // The old session's own file.
    starts(&place, "other", "resume", &at("s"));
    assert_eq!(fetch(&place, "other", &at("other")), "ask");
    // A transcript that is only written after the start.
    starts(&place, "late", "resume", &at("late"));
    place.write("home/.claude/projects/p/late.jsonl", &(line("s") + &line("late")));
    assert_eq!(fetch(&place, "late", &at("late")), "ask");
    // Another conversation, in which only a text looks like a session's key.
    place.write("home/.claude/projects/p/new.jsonl", &line("new"));
    starts(&place, "new", "startup", &at("new"));
    assert_eq!(fetch(&place, "new", &at("new")), "none", "the control");
    // A person's decision stays.
    state::clear(&place.path("state/jess"), "late").unwrap();
    assert_eq!(fetch(&place, "late", &at("late")), "none");
}

#[test]
fn labels_of_a_continued_session_that_cannot_be_read_are_said_and_asked_about() {
    let place = Place::new();
    place.write("state/jess/sessions/s", "nothing to see\n");
    fs::set_permissions(place.path("state/jess"), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .unwrap();
    let old = place.path("home/.claude/projects/p/s.jsonl");
    assert!(starts(&place, "new", "resume", &old));
    assert_eq!(fetch(&place, "new", &old), "ask");
    assert_eq!(fetch(&place, "apart", &place.path("home/.claude/projects/p/apart.jsonl")), "none");
}

#[test]
fn a_session_that_needs_a_person_runs_no_skill_command_and_nothing_unattended() {
    let place = Place { denials_max: Some(2), ..Place::new() };
    let alone = [("CLAUDE_CODE_SESSION_ATTENDED", "0")];
    let ask = |event: &str, more: &[(&str, &str)]| {
        place.answer(&place.event(event, "Bash", json!({"command": "ls"})), more).document
    };
    assert_eq!(ask("PreSkillShellCommand", &[]), None, "the control");
    assert_eq!(ask("PermissionRequest", &alone), None, "the control");
    for _ in 0..2 {
        place.verdict("Bash", json!({"command": "cat .env"}));
    }
    let stopped = ask("PreSkillShellCommand", &[]).unwrap();
    assert_eq!(stopped["hookSpecificOutput"]["permissionDecision"], "deny");
    let stopped = ask("PermissionRequest", &alone).unwrap();
    assert_eq!(stopped["hookSpecificOutput"]["decision"]["behavior"], "deny");
    assert_eq!(ask("PermissionRequest", &[]), None, "the client is asking the person already");
    let later = place.answer(&place.event("PreFutureUse", "Bash", json!({"command": "ls"})), &[]);
    assert_eq!(later.exit, 2, "an event of a later client");
}

#[test]
fn questions_count_where_nobody_is_there_to_answer_them() {
    let place = Place { denials_max: Some(3), ..Place::new() };
    let reset = place.event("PreToolUse", "Bash", json!({"command": "git reset --hard"}));
    let alone = [("CLAUDE_CODE_SESSION_ATTENDED", "0")];
    for _ in 0..6 {
        place.answer(&reset, &[]);
    }
    assert_eq!(place.verdict("Bash", json!({"command": "ls"})), "none", "a person saw each of them");
    for _ in 0..3 {
        place.answer(&reset, &alone);
    }
    assert_eq!(place.verdict("Bash", json!({"command": "ls"})), "ask");
}

/// Settings with the hook for every tool in the events that matter.
fn installed() -> Value {
    let group = |event: &str| json!([jess::install::Form::Exec.group(event, Path::new("/opt/jess-hook"))]);
    json!({"hooks": {
        "PreToolUse": group("PreToolUse"), "PostToolUse": group("PostToolUse"), "ConfigChange": group("ConfigChange"),
    }})
}

/// Whether a change of a settings file below the place to `text` stays out.
fn stays_out(place: &Place, file: &str, text: &str, more: &[(&str, &str)]) -> bool {
    place.write(file, text);
    let event = json!({
        "hook_event_name": "ConfigChange", "session_id": "s", "cwd": place.project(), "source": "project_settings",
        "file_path": place.path(file),
    });
    place.answer(&event, more).document.is_some_and(|d| d["decision"] == "block")
}

const PROJECT: &str = "home/p/.claude/settings.json";
const USER: &str = "home/.claude/settings.json";

#[test]
fn settings_that_would_loosen_the_guard_stay_out_and_ordinary_ones_do_not() {
    let place = Place::new();
    place.write(USER, &installed().to_string());
    for ordinary in [
        json!({}),
        json!({"permissions": {"allow": ["Bash(ls)"], "defaultMode": "acceptEdits"}}),
        json!({"model": "opus", "env": {"RUST_LOG": "info"}, "disableAllHooks": false}),
        json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "notify"}]}]}}),
    ] {
        let text = ordinary.to_string();
        assert!(!stays_out(&place, PROJECT, &text, &[]), "{text}");
        assert!(stays_out(&place, PROJECT, &text, &[("CLAUDE_CODE_SESSION_ATTENDED", "0")]), "{text}");
    }
    for loose in [
        json!({"disableAllHooks": true}),
        json!({"disableAllHooks": "true"}),
        json!({"disableAllHooks": 1}),
        json!({"allowManagedHooksOnly": true}),
        json!({"permissions": {"defaultMode": "bypassPermissions"}}),
        json!({"env": {"XDG_STATE_HOME": "/tmp/x", "CLAUDE_CODE_SESSION_ATTENDED": "1"}}),
        json!({"env": {"JESS_OUT": "/"}}),
        json!([1]),
    ] {
        let text = loose.to_string();
        assert!(stays_out(&place, PROJECT, &text, &[]), "{text}");
    }
    for broken in ["", "{", "{} // comment", "{\"model\": 7}", "{\"permissions\": {\"deny\": \"x\"}}"] {
        assert!(stays_out(&place, PROJECT, broken, &[]), "{broken}");
    }
}

#[test]
fn settings_that_take_the_hook_away_or_narrow_it_stay_out() {
    let place = Place::new();
    let whole = installed();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut settings = whole.clone();
        change(&mut settings["hooks"]);
        settings.to_string()
    };
    assert!(!stays_out(&place, USER, &whole.to_string(), &[]), "the control");
    let without = [
        "{}".to_owned(),
        "{\"hooks\":{}}".to_owned(),
        changed(&|h| h["PreToolUse"] = json!([])),
        changed(&|h| h["PostToolUse"] = Value::Null),
        changed(&|h| h["PreToolUse"][0]["matcher"] = "Read".into()),
        changed(&|h| h["PreToolUse"][0]["hooks"][0]["command"] = "/bin/true".into()),
        changed(&|h| h["PreToolUse"][0]["hooks"][0]["timeout"] = 0.into()),
        changed(&|h| h["PreToolUse"][0]["hooks"][0]["async"] = true.into()),
    ];
    for text in &without {
        assert!(stays_out(&place, USER, text, &[]), "{text}");
    }
    // Where it stands elsewhere too, nothing is lost.
    place.write(PROJECT, &whole.to_string());
    assert!(!stays_out(&place, USER, "{}", &[]));
    fs::remove_file(place.path(PROJECT)).unwrap();
    let plugin = [("CLAUDE_PLUGIN_ROOT", "/x")];
    assert!(!stays_out(&place, USER, "{}", &plugin), "a plugin's hook is in no settings file");
    assert!(stays_out(&place, USER, "{\"env\":{\"PATH\":\"/tmp/x\"}}", &plugin), "and is found by the PATH");
}
