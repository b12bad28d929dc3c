use super::*;
use crate::hook::managed::EVENTS;
use serde_json::{Value, json};
use std::fs;

struct Home {
    root: tempfile::TempDir,
}

impl Home {
    fn new() -> Home {
        let home = Home { root: tempfile::tempdir().unwrap() };
        fs::write(home.at("jess"), "").unwrap();
        fs::write(home.at("jess-hook"), "").unwrap();
        home
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    fn file(&self) -> PathBuf {
        self.at("settings.json")
    }

    fn install(&self, form: Form) -> Result<(), Error> {
        install(&self.file(), &self.at("jess-hook"), form, &self.at("state"))
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }
}

const SETTINGS: &str = r#"{
    // why this model
    "model": "opus",
  "permissions": { "allow": ["Bash(ls:*)"],   "deny": [] },
    "hooks": {
        "PreToolUse": [
            { "matcher": "Write", "hooks": [ { "type": "command", "command": "my-linter" } ] } // keep
        ]
    },
    "zeta": 1, "alpha": 2
}
"#;

#[test]
fn installing_keeps_comments_and_order_and_uninstalling_gives_back_every_byte() {
    for before in [SETTINGS, "{}", "{\"a\":1}\n", "", "{\r\n  \"a\": [1, 2],\r\n}\r\n", "\u{feff}{}\n"] {
        let home = Home::new();
        fs::write(home.file(), before).unwrap();
        home.install(Form::Exec).unwrap();
        let after = home.text();
        assert_ne!(after, before);
        if before == SETTINGS {
            for kept in
                ["// why this model", "// keep", "my-linter", "\"allow\": [\"Bash(ls:*)\"],   \"deny\": []"]
            {
                assert!(after.contains(kept), "{kept}\n{after}");
            }
            assert!(
                after.find("zeta") < after.find("alpha") && after.find("model") < after.find("permissions")
            );
        }
        assert_eq!(uninstall(&home.file(), &home.at("state")).unwrap(), Removed::Restored);
        assert_eq!(home.text(), before);
    }
}

#[test]
fn every_event_gets_one_handler_however_often_it_is_installed() {
    let home = Home::new();
    fs::write(home.file(), SETTINGS).unwrap();
    home.install(Form::Shell).unwrap();
    home.install(Form::Exec).unwrap();
    let first = home.text();
    home.install(Form::Exec).unwrap();
    assert_eq!(home.text(), first);
    let plain: String = first.lines().map(|l| l.split(" //").next().unwrap().to_owned() + "\n").collect();
    let plain: String = plain.lines().filter(|l| !l.trim_start().starts_with("//")).collect();
    let settings: Value = serde_json::from_str(&plain).unwrap();
    for event in EVENTS.iter() {
        let ours = settings["hooks"][*event]
            .as_array()
            .unwrap()
            .iter()
            .filter(|g| client::is_ours(&g["hooks"][0]))
            .count();
        assert_eq!(ours, 1, "{event}");
    }
    assert_eq!(settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"], "my-linter");
    assert_eq!(uninstall(&home.file(), &home.at("state")).unwrap(), Removed::Restored);
    assert_eq!(home.text(), SETTINGS, "what it was before the first installation");
}

#[test]
fn where_there_was_no_file_there_is_none_afterwards() {
    let home = Home::new();
    home.install(Form::Exec).unwrap();
    assert!(home.file().exists());
    assert_eq!(uninstall(&home.file(), &home.at("state")).unwrap(), Removed::Restored);
    assert!(!home.file().exists());
    assert_eq!(uninstall(&home.file(), &home.at("state")).unwrap(), Removed::Nothing);
}

#[test]
fn a_file_that_was_changed_since_keeps_its_changes() {
    let home = Home::new();
    fs::write(home.file(), SETTINGS).unwrap();
    home.install(Form::Exec).unwrap();
    fs::write(home.file(), home.text().replace("\"opus\"", "\"sonnet\"")).unwrap();
    assert_eq!(uninstall(&home.file(), &home.at("state")).unwrap(), Removed::Edited);
    let text = home.text();
    assert!(text.contains("sonnet") && text.contains("// keep") && text.contains("my-linter"), "{text}");
    assert!(!text.contains("jess-hook"), "{text}");
}

#[test]
fn settings_that_cannot_carry_a_hook_are_refused_and_left_alone() {
    for bad in
        ["{", "[]", "{\"hooks\": 3}", "{\"hooks\": {\"PreToolUse\": {}}}", "{\"disableAllHooks\": true}"]
    {
        let home = Home::new();
        fs::write(home.file(), bad).unwrap();
        assert!(matches!(home.install(Form::Exec), Err(Error::Settings { .. })), "{bad}");
        assert_eq!(home.text(), bad);
    }
    let home = Home::new();
    fs::write(home.file(), format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))).unwrap();
    assert!(home.install(Form::Exec).is_err());
}

#[test]
fn the_form_follows_the_client() {
    let client = |v: &str| Client { program: "claude".into(), version: client::Version::parse(v).unwrap() };
    assert_eq!(Form::of(Some(&client("2.1.332 (Claude Code)"))), Form::Exec);
    assert_eq!(Form::of(Some(&client("2.1.197 (Claude Code)"))), Form::Shell);
    assert_eq!(Form::of(None), Form::Shell);
    assert_eq!(client::Version::parse("claude 2"), None);
}

/// What a shell does with the line, for a hook that is a script.
fn shell_line(hook: &Path, stdin: &str) -> (i32, String) {
    use std::io::Write as _;
    let line = Form::Shell.handler(hook)["command"].as_str().unwrap().to_owned();
    let mut child = std::process::Command::new("sh")
        .args(["-c", &line])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let out = child.wait_with_output().unwrap();
    (out.status.code().unwrap(), String::from_utf8(out.stdout).unwrap())
}

#[test]
fn the_shell_line_turns_every_failure_into_exit_2_and_hands_on_an_answer() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let hook = home.at("it's a jess-hook");
    let script = |text: &str| {
        fs::write(&hook, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        shell_line(&hook, "{\"a\":1}")
    };
    assert_eq!(script("cat"), (0, "{\"a\":1}".into()));
    assert_eq!(script(":"), (0, String::new()));
    for fails in ["exit 1", "exit 2", "exit 127", "kill -9 $$", "echo '{}'; kill -SEGV $$"] {
        assert_eq!(script(fails), (2, String::new()), "{fails}");
    }
    fs::remove_file(&hook).unwrap();
    assert_eq!(shell_line(&hook, ""), (2, String::new()));
}

fn faults(home: &Home, names: &[&str]) -> String {
    let files: Vec<PathBuf> = names.iter().map(|n| home.at(n)).collect();
    check::look(&files, None).faults.iter().map(|f| f.what.clone() + "\n").collect()
}

#[test]
fn disabled_dropped_dead_and_weakly_placed_hooks_are_found() {
    let home = Home::new();
    let names = ["managed.json", "local.json", "project.json", "settings.json"];
    assert!(faults(&home, &names).contains("no settings file"));
    install(&home.at("managed.json"), &home.at("jess-hook"), Form::Exec, &home.at("state")).unwrap();
    fs::write(home.at("project.json"), "{\"disableAllHooks\": true}").unwrap();
    assert_eq!(faults(&home, &names), "", "managed settings are out of a project's reach");
    uninstall(&home.at("managed.json"), &home.at("state")).unwrap();
    home.install(Form::Exec).unwrap();
    let found = faults(&home, &names);
    assert!(found.contains("disableAllHooks") && found.contains("--bare"), "{found}");
    fs::remove_file(home.at("jess-hook")).unwrap();
    assert!(faults(&home, &names).contains("not there"));
    let mut settings: Value = serde_json::from_str(&home.text()).unwrap();
    settings["permissions"] = json!({"allow": "Bash"});
    fs::write(home.file(), settings.to_string()).unwrap();
    assert!(faults(&home, &names).contains("permissions.allow"));
    fs::write(home.file(), format!("// mine\n{settings}")).unwrap();
    assert!(faults(&home, &names).contains("not plain JSON"));
}

#[test]
fn the_plugin_in_the_repository_is_the_one_that_is_made() {
    for (path, value) in plugin::files() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        assert_eq!(
            fs::read_to_string(&here).unwrap_or_default(),
            plugin::text(&value),
            "{path}: run jess init --scope plugin --dir ."
        );
    }
}
