//! `jess init` with the real client: what it proves is so, and it says when it is not.

use crate::support::client::{Client, Place};
use crate::support::isolation::loopback_only;
use std::path::Path;
use std::process::{Command, Output};

fn init(place: &Place, client: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jess"))
        .args(["init", "--client"])
        .arg(client)
        .env("HOME", place.root())
        .env_remove("XDG_STATE_HOME")
        .env_remove("CLAUDE_CONFIG_DIR")
        .output()
        .unwrap()
}

#[test]
fn installing_proves_that_a_deny_and_a_missing_binary_block_and_uninstalling_restores() {
    loopback_only(|| {
        let place = Place::new();
        let settings = place.root().join(".claude/settings.json");
        std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
        let before = "{\n  \"model\": \"opus\"\n}\n";
        std::fs::write(&settings, before).unwrap();
        let out = init(&place, Client::pinned().path());
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && said.matches("proved:").count() == 3, "{out:?}");
        assert!(std::fs::read_to_string(&settings).unwrap().contains("onFailure"));
        let out = Command::new(env!("CARGO_BIN_EXE_jess"))
            .arg("uninstall")
            .env("HOME", place.root())
            .env_remove("XDG_STATE_HOME")
            .env_remove("CLAUDE_CONFIG_DIR")
            .output()
            .unwrap();
        assert!(out.status.success());
        assert_eq!(std::fs::read_to_string(&settings).unwrap(), before);
    });
}

#[test]
fn a_client_that_leaves_hooks_out_is_found_out() {
    loopback_only(|| {
        let place = Place::new();
        let real = Client::pinned();
        let deaf = place.program(
            "claude",
            &format!(
                "#!/bin/sh\ncase $1 in --version) exec '{0}' \"$@\";; esac\nexec '{0}' --safe-mode \"$@\"\n",
                real.path().display()
            ),
        );
        let out = init(&place, &deaf);
        let said = String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.code(), Some(2), "{out:?}");
        assert!(
            said.contains("proved: an ordinary call runs") && said.matches("NOT SO").count() == 2,
            "{said}"
        );
    });
}

/// Runs the client's own command for plugins; what it said.
fn plugin(place: &Place, args: &[&str]) -> String {
    let out = Command::new(Client::pinned().path())
        .arg("plugin")
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", place.root())
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .output()
        .unwrap();
    assert!(out.status.success(), "{args:?} {out:?}");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn a_plugin_is_installed_and_taken_out_by_the_client() {
    loopback_only(|| {
        let place = Place::new();
        let dir = place.root().join("plugin");
        let jess = |args: &[&str]| {
            let mut jess = Command::new(env!("CARGO_BIN_EXE_jess"));
            jess.args(args).arg("--dir").arg(&dir).env("HOME", place.root()).output().unwrap()
        };
        assert!(jess(&["init", "--scope", "plugin"]).status.success());
        let settings = || std::fs::read_to_string(place.root().join(".claude/settings.json")).unwrap();
        plugin(&place, &["marketplace", "add", dir.to_str().unwrap()]);
        plugin(&place, &["install", "jess@jess"]);
        assert!(settings().contains("jess@jess") && plugin(&place, &["list"]).contains("jess@jess"));
        // jess itself takes nothing out here, and says who does.
        let out = jess(&["uninstall", "--scope", "plugin"]);
        assert_eq!(out.status.code(), Some(64), "{out:?}");
        assert!(
            String::from_utf8_lossy(&out.stderr).contains("claude plugin uninstall jess@jess"),
            "{out:?}"
        );
        plugin(&place, &["uninstall", "jess@jess"]);
        plugin(&place, &["marketplace", "remove", "jess"]);
        assert!(!settings().contains("jess") && !plugin(&place, &["list"]).contains("jess@jess"));
    });
}
