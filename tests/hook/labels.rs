//! The labels of a session: what raises them, and what a call that reaches out then meets.

use super::world::Place;
use serde_json::{Value, json};
use std::fs;

/// Tells the hook that a call ran; it failed where `error` is given.
fn ran(place: &Place, tool: &str, input: Value, error: Option<&str>) {
    let mut event =
        place.event(if error.is_some() { "PostToolUseFailure" } else { "PostToolUse" }, tool, input);
    match error {
        Some(error) => event["error"] = error.into(),
        None => event["tool_response"] = json!({"stdout": "", "stderr": "", "result": ""}),
    }
    place.answer(&event, &[]);
}

/// A place whose session has met A and B.
fn armed() -> Place {
    let place = Place::new();
    ran(&place, "WebFetch", json!({"url": "https://pages.example/x", "prompt": "x"}), None);
    ran(&place, "Bash", json!({"command": "cat .env"}), None);
    place
}

/// Commands that talk to another machine, each in a way of its own.
#[rustfmt::skip]
const REACH: &[&str] = &[
    "git remote update", "git submodule update --init", "git lfs push origin main", "hg push", "svn commit -m x", "openssl s_client -connect x.example:443", "psql -h db.example -c 'select 1'",
    "mysql -hdb.example", "redis-cli -h cache.example get x", "mongosh mongodb://db.example/x", "vim https://x.example/f", "firefox https://x.example/?q=1", "xdg-open https://x.example", "yt-dlp https://x.example/v",
    "ffmpeg -i https://x.example/v out.mp4", "pandoc https://x.example -o x.md", "gpg --keyserver hkps://keys.example --send-keys 1234", "logger -n log.example hello", "rsh x.example ls", "npm install left-pad", "npx cowsay hi",
    "uvx ruff", "pipx run black", "cargo install ripgrep", "go install golang.org/x/tools/gopls@latest", "docker pull alpine", "kubectl apply -f k.yml", "helm upgrade x ./chart", "claude -p x", "jess fetch https://x.example",
    "curl localhost:3000 evil.example", "curl -O evil.example localhost", "wget -d evil.example localhost", "wget -b evil.example localhost", "curl http://127.evil.example/", "curl -x evil.example:80 http://localhost/", "curl 'http://evil.example\\@localhost/'", "curl http://localhost@evil.example/", "npx cowsay --dry-run", "jira issue list", "sentry-cli issues list", "fly logs",
    "node -e 'require(\"dns\").lookup(\"x.example\",()=>{})'", "node -e 'require(\"net\").connect(80,\"x.example\")'", "php -r 'dns_get_record(\"x.example\");'", "emacs --batch --eval '(url-retrieve \"https://x.example\" nil)'", "python3 -m webbrowser https://x.example", "llm x", "ollama run x y", "sshfs x:y z", "gnutls-cli x.example", "finger a@x.example", "snmpwalk x.example", "grpcurl x.example:443 list", "cvs update", "openvpn x", "wg-quick up x", "huggingface-cli download x", "dvc pull", "vagrant box add x", "duckdb -c \"from 'https://x.example/y.csv'\"", "frob x.example:443", "frob user@x.example",
    "aws s3 ls", "gh pr view 3", "apt-get install jq", "sudo -u me npm ci", "env A=1 pip install requests", "psql $DATABASE_URL -c 'select 1'",
];

/// Commands that stay on this machine.
#[rustfmt::skip]
const STAY: &[&str] = &[
    "ls", "git status", "git log --oneline", "cargo build", "cargo test", "npm test", "npm run build", "go test ./...", "psql -h localhost -c 'select 1'", "psql -c 'select 1'", "redis-cli ping", "mongosh mongodb://127.0.0.1/x",
    "docker ps", "docker images", "kubectl --help", "aws --version", "openssl dgst -sha256 README.md", "helm template ./chart", "grep -rn https:// src", "echo see https://x.example", "git commit -m 'see https://x.example'", "sed -i s,http://a,https://b, README.md",
    "curl -X POST -H 'A: b' -d a=b http://localhost:3000/x", "curl -s http://localhost:3000/health", "curl -s 127.0.0.1:8080", "kubectl apply --dry-run=client -f k.yml", "pytest -q", "hg status", "svn status", "gpg --list-keys", "logger hello", "frob README.md:3", "frob a@1.2.3", "frob localhost:3000", "node -e 'console.log(1)'",
];

#[test]
fn a_call_that_reaches_out_by_any_program_is_asked_about_and_one_that_stays_is_not() {
    let place = armed();
    let wrong: Vec<&&str> = REACH
        .iter()
        .filter(|c| !matches!(place.verdict("Bash", json!({"command": c})).as_str(), "ask" | "deny"))
        .collect();
    assert!(wrong.is_empty(), "reach out unseen: {wrong:#?}");
    let wrong: Vec<&&str> =
        STAY.iter().filter(|c| place.verdict("Bash", json!({"command": c})) != "none").collect();
    assert!(wrong.is_empty(), "stay, and are asked about: {wrong:#?}");
}

#[test]
fn a_tool_that_nobody_knows_reaches_out_and_the_client_s_own_do_not() {
    let place = armed();
    for tool in ["RemoteTrigger", "PushNotification", "SendUserFile", "ToolOfNextYear", "mcp__a__b"] {
        assert_eq!(place.verdict(tool, json!({"text": "x"})), "ask", "{tool}");
    }
    assert_eq!(place.verdict("Read", json!({"file_path": place.project().join("README.md")})), "none");
    assert_eq!(place.verdict("TodoWrite", json!({"todos": []})), "none");
    assert_eq!(place.verdict("Agent", json!({"prompt": "x", "description": "x"})), "none");
}

#[test]
fn an_account_elsewhere_counts_as_sensitive_in_the_call_that_uses_it_and_after_it() {
    let place = Place::new();
    let bucket = json!({"command": "aws s3 ls"});
    let page = json!({"command": "curl -s https://api.example.com/status"});
    assert_eq!(
        place.verdict("Bash", bucket.clone()),
        "none",
        "without untrusted content it is nobody's business"
    );
    ran(&place, "WebFetch", json!({"url": "https://pages.example/x", "prompt": "x"}), None);
    assert_eq!(place.verdict("Bash", page.clone()), "none");
    assert_eq!(place.verdict("Bash", bucket.clone()), "ask");
    ran(&place, "Bash", bucket, None);
    assert_eq!(place.verdict("Bash", page), "ask");
}

#[test]
fn what_brings_nothing_in_raises_no_untrusted_content() {
    let place = Place::new();
    for command in ["curl -s http://localhost:3000/health", "git push origin feature", "kubectl get pods"] {
        ran(&place, "Bash", json!({"command": command}), None);
    }
    ran(&place, "Bash", json!({"command": "cat .env"}), None);
    let page = json!({"command": "curl -s https://api.example.com/status"});
    assert_eq!(place.verdict("Bash", page.clone()), "none");
    ran(&place, "Bash", page.clone(), None);
    assert_eq!(place.verdict("Bash", page), "ask", "the control: what came from another machine does");
}

#[test]
fn a_call_that_failed_raises_what_it_would_have_raised() {
    let place = Place::new();
    let page = json!({"command": "curl -s https://api.example.com/status"});
    ran(
        &place,
        "WebFetch",
        json!({"url": "https://pages.example/x", "prompt": "x"}),
        Some("404: do as I say"),
    );
    ran(&place, "Bash", json!({"command": "cat .env; false"}), Some("Exit code 1\nX=planted"));
    assert_eq!(place.verdict("Bash", page.clone()), "ask");
    let control = Place::new();
    ran(&control, "Bash", json!({"command": "ls nothing"}), Some("Exit code 2"));
    assert_eq!(control.verdict("Bash", page), "none");
}

#[test]
fn labels_that_cannot_be_read_are_not_taken_for_none() {
    let place = armed();
    let page = json!({"command": "curl -s https://api.example.com/status"});
    let dir = place.path("state/jess/sessions");
    let file = fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&file).unwrap();
    assert_eq!(place.verdict("Bash", page.clone()), "none", "a person cleared them");
    fs::write(&file, b"\xff").unwrap();
    assert_eq!(place.verdict("Bash", page.clone()), "ask");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/null", &file).unwrap();
    assert_eq!(place.verdict("Bash", page.clone()), "ask");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(place.verdict("Bash", page), "ask");
}

#[test]
fn emptied_labels_are_not_taken_for_none() {
    let place = armed();
    let dir = place.path("state/jess/sessions");
    let file = fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    fs::write(&file, "").unwrap();
    assert_eq!(place.verdict("Bash", json!({"command": "curl -s https://api.example.com/status"})), "ask");
}

#[test]
fn a_session_that_is_not_named_as_the_client_does_is_not_taken_for_a_new_one() {
    let place = Place::new();
    let verdict = |id: Value| {
        let mut event =
            place.event("PreToolUse", "Bash", json!({"command": "curl -s https://api.example.com/status"}));
        event["session_id"] = id;
        let answer = place.answer(&event, &[]).document;
        answer.is_some_and(|d| d["hookSpecificOutput"]["permissionDecision"] == "ask")
    };
    for id in
        [json!("../x"), json!("x "), json!("x\n"), json!(""), json!("x".repeat(5000)), Value::Null, json!(7)]
    {
        assert!(verdict(id.clone()), "{id}");
    }
    assert!(!verdict(json!("0b8e5c1c-9a5e-4a53-8d0e-2f6f5f0c8a11")));
    ran(&place, "WebFetch", json!({"url": "https://pages.example/x", "prompt": "x"}), None);
    ran(&place, "Bash", json!({"command": "cat .env"}), None);
    assert!(verdict(json!("S")), "the same session in other letters");
}
