//! The Rule-of-Two audit, over agents with the tool lists of a real analysis framework.

use crate::support::{Repo, jess};
use jess::trust::agents::audit;

/// Name, description, tools, PreToolUse hook (matcher, command), verdict.
///
/// The tool lists are RAPTOR's. Its own table calls the archive agent needs-tightening; with an unlimited shell next
/// to WebFetch it stands on all three legs, since a shell can read anything and either tool can send it.
type Agent =
    (&'static str, &'static str, Option<&'static str>, Option<(&'static str, &'static str)>, &'static str);

#[rustfmt::skip]
const AGENTS: &[Agent] = &[
    ("audit-reviewer", "Reviews one function", Some("Read, Grep, Glob, Bash"), None, "needs-tightening"),
    (
        "coverage-analyzer",
        "Measures coverage",
        Some("Read, Write, Edit, Bash, Grep, Glob"),
        None,
        "needs-tightening",
    ),
    (
        "crash-analyzer",
        "Finds the cause of a crash",
        Some("Read, Write, Edit, Bash, Grep, Glob"),
        None,
        "needs-tightening",
    ),
    (
        "function-trace-generator",
        "Traces calls",
        Some("Read, Write, Edit, Bash, Grep, Glob"),
        None,
        "needs-tightening",
    ),
    (
        "crash-analysis-checker",
        "Checks an analysis",
        Some("Read, Write, Bash, Grep, Glob"),
        None,
        "needs-tightening",
    ),
    (
        "crash-analysis-agent",
        "Leads an analysis",
        Some("Read, Write, Edit, Bash, Grep, Glob, Task"),
        None,
        "needs-tightening",
    ),
    (
        "exploitability-validator-agent",
        "Weighs a bug",
        Some("Read, Write, Edit, Bash, Grep, Glob, Task"),
        None,
        "needs-tightening",
    ),
    (
        "crash-report-fetcher",
        "Fetches a report",
        Some("Read, Write, WebFetch"),
        Some(("WebFetch", "webfetch-domain-allowlist.py --anchor-file x")),
        "needs-tightening",
    ),
    (
        "oss-evidence-verifier",
        "Compares evidence with its source",
        Some("Read, Write, Bash"),
        None,
        "needs-tightening",
    ),
    (
        "oss-hypothesis-checker",
        "Compares a hypothesis with verified evidence",
        Some("Read, Write"),
        None,
        "tight",
    ),
    (
        "oss-report-generator",
        "Writes the report from confirmed hypotheses",
        Some("Read, Write"),
        None,
        "tight",
    ),
    ("oss-hypothesis-former", "Forms hypotheses from evidence", Some("Read, Write"), None, "floor-safe"),
    (
        "oss-investigator-gh-archive",
        "Queries the archive",
        Some("Bash, Read, Write"),
        Some(("Bash", "jess hook bash-allowlist bq")),
        "needs-tightening",
    ),
    (
        "oss-investigator-github",
        "Asks the API",
        Some("Bash, Read, Write, WebFetch"),
        Some(("WebFetch", "jess hook webfetch-allowlist api.github.com")),
        "needs-hitl",
    ),
    (
        "oss-investigator-ioc-extractor",
        "Collects indicators",
        Some("Read, Write, WebFetch"),
        Some(("WebFetch", "jess hook webfetch-allowlist --https-any")),
        "needs-tightening",
    ),
    (
        "oss-investigator-local-git",
        "Reads a clone",
        Some("Bash, Read, Write, Glob, Grep"),
        None,
        "needs-tightening",
    ),
    (
        "oss-investigator-wayback",
        "Finds deleted pages",
        Some("Bash, Read, Write, WebFetch"),
        Some(("WebFetch", "jess hook webfetch-allowlist web.archive.org")),
        "needs-hitl",
    ),
    ("offsec-specialist", "Attacks", None, None, "needs-hitl"),
];

fn framework() -> Repo {
    let repo = Repo::new(&[]);
    for (name, description, tools, hook, _) in AGENTS {
        let tools = tools.map(|t| format!("tools: {t}\n")).unwrap_or_default();
        let hook = hook.map(|(matcher, command)| {
            format!("hooks:\n  PreToolUse:\n    - matcher: {matcher}\n      hooks:\n        - type: command\n          command: \"{command}\"\n")
        });
        let text = format!(
            "---\nname: {name}\ndescription: {description}\n{tools}{}---\nBody.\n",
            hook.unwrap_or_default()
        );
        repo.write(&format!(".claude/agents/{name}.md"), text.as_bytes());
    }
    repo
}

#[test]
fn each_agent_of_the_framework_has_its_verdict_and_a_reason() {
    let audits = audit(&framework().path("")).unwrap();
    assert_eq!(audits.len(), AGENTS.len());
    for (name, _, _, _, verdict) in AGENTS {
        let found = audits.iter().find(|a| a.name == *name).unwrap();
        assert_eq!(found.verdict.name(), *verdict, "{name}: {:?}", found.reasons);
        assert!(!found.reasons.is_empty() || *verdict == "tight", "{name}");
        assert!(!found.fixes.is_empty() || *verdict != "needs-hitl", "{name}");
    }
}

#[test]
fn fail_on_decides_the_exit() {
    let repo = framework();
    let run = |args: &[&str]| jess(&repo, args, &repo.path("")).status.code();
    assert_eq!(run(&["trust", "agents"]), Some(0));
    assert_eq!(run(&["trust", "agents", "--fail-on", "needs-hitl"]), Some(2));
    let tight = Repo::new(&[(".claude/agents/a.md", "---\ntools: Read\n---\n")]);
    let run = |args: &[&str]| jess(&tight, args, &tight.path("")).status.code();
    assert_eq!(run(&["trust", "agents", "--fail-on", "needs-hitl"]), Some(0));
    assert_eq!(run(&["trust", "agents", "--fail-on", "floor-safe"]), Some(2));
}

#[test]
fn json_holds_legs_reasons_and_fixes() {
    let repo = framework();
    let out = jess(&repo, &["trust", "agents", "--format", "json"], &repo.path(""));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let agent = json["agents"].as_array().unwrap().iter().find(|a| a["name"] == "offsec-specialist").unwrap();
    assert_eq!((&agent["a"], &agent["b"], &agent["c"]), (&true.into(), &true.into(), &true.into()));
    assert_eq!(agent["verdict"], "needs-hitl");
    assert!(agent["fixes"][0].as_str().unwrap().contains("tools"));
}

#[test]
fn a_definition_that_cannot_be_read_counts_as_everything() {
    let repo = Repo::new(&[(".claude/agents/a.md", "---\ntools: [Read\n---\n")]);
    assert_eq!(audit(&repo.path("")).unwrap()[0].verdict.name(), "needs-hitl");
}
