//! What a call brought in from another machine and a later call reads.

use super::world::Place;
use serde_json::{Value, json};

const MARK: &str = "words of another machine";

/// Tells the hook that a call ran, and gives what the model gets instead of its result, if anything.
fn ran(place: &Place, tool: &str, input: Value, response: Value) -> Option<Value> {
    let mut event = place.event("PostToolUse", tool, input);
    event["tool_response"] = response;
    let document = place.answer(&event, &[]).document?;
    document["hookSpecificOutput"].get("updatedToolOutput").cloned()
}

fn bash(place: &Place, command: &str) -> Option<Value> {
    let response = json!({"stdout": MARK, "stderr": "", "interrupted": false, "isImage": false});
    ran(place, "Bash", json!({"command": command}), response)
}

/// Whether the session has met untrusted content: with sensitive material on file, a fetch is then asked about.
fn met(place: &Place) -> bool {
    bash(place, "cat .env");
    place.verdict("Bash", json!({"command": "curl -s https://api.example.com/status"})) == "ask"
}

#[rustfmt::skip]
const ARRIVE: &[(&str, &[&str])] = &[
    ("curl -s https://x.example/f -o f.txt", &["cat f.txt", "grep x ./f.txt", "head -1 f.txt | wc", "frob f.txt", "frob --in=f.txt", "rg x .", "python3 f.txt"]),
    ("curl -s https://x.example/f > f.txt", &["cat f.txt"]),
    ("curl -s https://x.example/f | tee f.txt", &["cat f.txt"]),
    ("wget -q https://x.example/f.txt", &["cat f.txt"]),
    ("wget -q -P in https://x.example/f.txt", &["cat in/f.txt"]),
    ("git clone https://x.example/r", &["cat r/README.md", "cd r && ls", "make -C r", "grep -rn x .", "git -C r log"]),
    ("git clone --depth 1 -b main git@x.example:a/r.git /tmp/arrived-r", &["cat /tmp/arrived-r/README.md"]),
    ("gh repo clone a/r", &["cat r/README.md"]),
    ("scp me@x.example:f.txt .", &["cat f.txt"]),
    ("aws s3 cp s3://x/y f.txt", &["cat f.txt"]),
    ("docker cp app:/y f.txt", &["cat f.txt"]),
    ("git fetch origin", &["git show FETCH_HEAD:README.md", "git show origin/pr:README.md", "git log origin/main", "git diff main..origin/main"]),
    ("git pull", &["git show FETCH_HEAD"]),
    ("gh pr checkout 3", &["cat README.md", "ls"]),
];

#[test]
fn what_an_earlier_call_brought_in_is_sealed_and_raises_the_label_whatever_reads_it() {
    for (arrives, reads) in ARRIVE {
        for read in *reads {
            let place = Place::new();
            assert_eq!(
                bash(&place, read),
                None,
                "the control: before `{arrives}`, `{read}` is the session's own"
            );
            bash(&place, arrives);
            let sealed = bash(&place, read).unwrap_or_default().to_string();
            assert!(sealed.contains("<untrusted-"), "{arrives}; {read}: {sealed}");
            assert!(met(&place), "{arrives}; {read}");
        }
    }
}

#[test]
fn tools_on_files_are_sealed_for_what_arrived_and_only_for_that() {
    let place = Place::new();
    bash(&place, "git clone https://x.example/r");
    bash(&place, "curl -s https://x.example/f -o f.txt");
    let p = |s: &str| place.project().join(s).to_string_lossy().into_owned();
    let text = json!({"type": "text", "file": {"filePath": "x", "content": MARK}});
    let found = json!({"mode": "content", "content": MARK, "filenames": []});
    for (tool, input, response) in [
        ("Read", json!({"file_path": p("r/README.md")}), &text),
        ("Read", json!({"file_path": p("src/../f.txt")}), &text),
        ("Grep", json!({"pattern": "x", "path": p("r")}), &found),
        ("Grep", json!({"pattern": "x"}), &found),
        ("Grep", json!({"pattern": "x", "path": p("")}), &found),
    ] {
        assert!(ran(&place, tool, input.clone(), response.clone()).is_some(), "{tool} {input}");
    }
    for (tool, input, response) in [
        ("Read", json!({"file_path": p("README.md")}), &text),
        ("Read", json!({"file_path": p("rx/README.md")}), &text),
        ("Grep", json!({"pattern": "x", "path": p("src")}), &found),
    ] {
        assert_eq!(ran(&place, tool, input.clone(), response.clone()), None, "{tool} {input}");
    }
    assert!(met(&place));
}

#[test]
fn a_copy_of_what_arrived_has_arrived() {
    let place = Place::new();
    bash(&place, "curl -s https://x.example/f -o /tmp/arrived.tgz");
    bash(&place, "cp /tmp/arrived.tgz copy.tgz");
    bash(&place, "tar xf copy.tgz -C docs/in");
    bash(&place, "zcat copy.tgz > plain.txt");
    for read in ["cat docs/in/README.md", "cat plain.txt"] {
        assert!(bash(&place, read).is_some(), "{read}");
    }
    assert_eq!(bash(&place, "cat docs/guide.md"), None);
}

#[test]
fn what_was_only_brought_in_or_comes_from_here_raises_nothing() {
    let place = Place::new();
    for command in [
        "curl -s https://x.example/f -o f.txt",
        "git clone ../q d",
        "cp README.md copy.md",
        "git log -3",
        "cat copy.md",
    ] {
        bash(&place, command);
    }
    assert!(!met(&place));
}

#[test]
fn a_record_of_arrivals_that_cannot_be_read_is_not_taken_for_none() {
    let place = Place::new();
    assert_eq!(bash(&place, "cat README.md"), None);
    let dir = place.path("state/jess/arrived");
    std::fs::create_dir_all(dir.join("s")).unwrap();
    let mut event = place.event("PostToolUse", "Bash", json!({"command": "cat README.md"}));
    event["tool_response"] = json!({"stdout": MARK, "stderr": "", "interrupted": false, "isImage": false});
    let document = place.answer(&event, &[]).document.unwrap();
    assert_eq!(document["continue"], false, "{document}");
}
