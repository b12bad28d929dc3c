//! A project and a home with planted secrets, and one call of the hook in it.

use jess::config::Config;
use jess::hook::{self, Environment};
use jess::policy::{Disk, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directories of one test. They lie under the build directory, since `/tmp` counts as scratch space.
pub struct Place {
    pub root: tempfile::TempDir,
    /// Denials after which the session needs a person.
    pub denials_max: Option<u32>,
    /// The sandbox of Bash commands.
    pub sandbox: Option<jess::hook::exec::Tier>,
}

const FILES: &[(&str, &str)] = &[
    ("home/.ssh/id_rsa", "key\n"),
    ("home/.ssh/id_ed25519", "key\n"),
    ("home/.ssh/authorized_keys", ""),
    ("home/.aws/credentials", "x\n"),
    ("home/.netrc", "x\n"),
    ("home/.npmrc", "x\n"),
    ("home/.git-credentials", "x\n"),
    ("home/.docker/config.json", "{}\n"),
    ("home/.kube/config", "x\n"),
    ("home/.config/gh/hosts.yml", "x\n"),
    ("home/.claude/settings.json", "{}\n"),
    ("home/.claude/.credentials.json", "{}\n"),
    ("home/.bashrc", "# bash\n"),
    ("home/Documents/thesis.md", "years\n"),
    ("home/p/.env", "API_TOKEN=planted\n"),
    ("home/p/.env.example", "API_TOKEN=\n"),
    ("home/p/.gitignore", ".env\ntarget/\n"),
    ("home/p/README.md", "# app\n"),
    ("home/p/CLAUDE.md", "# app\n"),
    (
        "home/p/package.json",
        "{\"name\":\"app\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"vitest\",\"lint\":\"eslint .\"}}\n",
    ),
    ("home/p/Cargo.toml", "[package]\n"),
    ("home/p/Makefile", "all:\n\techo ok\n"),
    ("home/p/src/main.rs", "fn main() {}\n"),
    ("home/p/src/lib.rs", "\n"),
    ("home/p/src/config.py", "password_min = 12\n"),
    ("home/p/scripts/build.sh", "#!/bin/sh\nexec cargo build\n"),
    ("home/p/scripts/gen.py", "print('x')\n"),
    ("home/p/docs/guide.md", "Guide.\n"),
    ("home/p/data/sales.csv", "a,b,1\n"),
    ("home/p/config/prod.env", "X=planted\n"),
    ("home/p/config/master.key", "x\n"),
    ("home/p/deploy/.env.production", "X=planted\n"),
    ("home/p/secrets.yml", "x: planted\n"),
    ("home/p/terraform.tfstate", "{}\n"),
    ("home/p/server.key", "x\n"),
    ("home/p/target/debug/app", "x\n"),
    ("home/p/node_modules/a/package.json", "{}\n"),
    ("home/p/.git/config", "[core]\n"),
    ("home/p/.git/HEAD", "ref: refs/heads/main\n"),
];

impl Place {
    pub fn new() -> Place {
        // Not below /tmp, which the policy takes for scratch; cargo makes the folder only when it builds.
        fs::create_dir_all(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = tempfile::Builder::new().prefix("hook-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let place = Place { root, denials_max: None, sandbox: None };
        for (path, text) in FILES {
            place.write(path, text);
        }
        place
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(below)
    }

    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub fn project(&self) -> PathBuf {
        self.path("home/p")
    }

    /// What an attended session's hook says to a call: `deny`, `ask`, `none`.
    pub fn verdict(&self, tool: &str, input: Value) -> String {
        let answer = self.answer(&self.event("PreToolUse", tool, input), &[]);
        match &answer.document {
            None => "none".into(),
            Some(d) => d["hookSpecificOutput"]["permissionDecision"].as_str().unwrap_or("none").into(),
        }
    }

    pub fn event(&self, event: &str, tool: &str, input: Value) -> Value {
        json!({
            "session_id": "s", "transcript_path": "/x", "cwd": self.project(), "permission_mode": "default",
            "hook_event_name": event, "tool_name": tool, "tool_input": input, "tool_use_id": "t",
        })
    }

    pub fn answer(&self, event: &Value, more: &[(&str, &str)]) -> hook::Answer {
        self.answer_bytes(event.to_string().as_bytes(), more)
    }

    pub fn answer_bytes(&self, event: &[u8], more: &[(&str, &str)]) -> hook::Answer {
        let mut vars: BTreeMap<String, String> = [
            ("HOME", self.home().to_string_lossy().into_owned()),
            ("CLAUDE_PROJECT_DIR", self.project().to_string_lossy().into_owned()),
            ("CLAUDE_CODE_SESSION_ATTENDED", "1".into()),
            ("PATH", "/usr/bin:/bin".into()),
            ("USER", "u".into()),
            ("ANTHROPIC_API_KEY", "planted".into()),
            ("GITHUB_TOKEN", "planted".into()),
        ]
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v))
        .collect();
        for (k, v) in more {
            vars.insert((*k).into(), (*v).into());
        }
        hook::answer(
            event,
            &Fixed {
                vars,
                state: self.path("state/jess"),
                denials_max: self.denials_max,
                sandbox: self.sandbox,
            },
        )
    }
}

struct Fixed {
    vars: BTreeMap<String, String>,
    state: PathBuf,
    denials_max: Option<u32>,
    sandbox: Option<jess::hook::exec::Tier>,
}

impl Environment for Fixed {
    fn var(&self, name: &str) -> Option<String> {
        self.vars.get(name).cloned()
    }

    fn vars(&self) -> BTreeMap<String, String> {
        self.vars.clone()
    }

    fn world(&self) -> &dyn World {
        &Disk
    }

    fn state(&self) -> Option<PathBuf> {
        Some(self.state.clone())
    }

    fn now(&self) -> u64 {
        1_700_000_000
    }

    fn config(&self, _home: &Path, _project: &Path) -> Arc<Config> {
        // Hundreds of denials in one session are what these tests are about.
        Arc::new(Config {
            denials_max: self.denials_max,
            findings_max: None,
            sandbox: self.sandbox,
            ..Config::default()
        })
    }

    fn jess(&self) -> PathBuf {
        Path::new("/opt/jess").into()
    }
}
