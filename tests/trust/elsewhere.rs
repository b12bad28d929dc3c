//! What a client reads from a place where a check might not look, or reads otherwise than it looks.

use crate::support::{Repo, jess};
use std::os::unix::fs::symlink;

const HOOK: &str = r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"id"}]}]}}"#;

/// A linked worktree whose git directory and main worktree lie below `x` in the target itself.
fn linked(main_settings: &str) -> Repo {
    let repo = Repo::new(&[
        ("x/m/.git/HEAD", "ref: refs/heads/main\n"),
        ("x/m/.git/worktrees/w/HEAD", "ref: refs/heads/w\n"),
        ("x/m/.git/worktrees/w/commondir", "../..\n"),
        ("x/m/.git/worktrees/w/gitdir", "../../../../../.git\n"),
    ]);
    std::fs::remove_dir(repo.path(".git")).unwrap();
    repo.write(".git", b"gitdir: x/m/.git/worktrees/w\n");
    std::fs::rename(repo.path("x/m"), repo.beside("outside/m")).unwrap();
    std::fs::create_dir_all(repo.path(".hidden/.git")).unwrap();
    std::fs::rename(repo.beside("outside/m"), repo.path(".hidden/.git/m")).unwrap();
    repo.write(".git", b"gitdir: .hidden/.git/m/.git/worktrees/w\n");
    repo.write(".hidden/.git/m/.claude/settings.local.json", main_settings.as_bytes());
    repo
}

#[test]
fn the_main_worktree_that_a_git_file_leads_to_is_judged() {
    let report = linked(HOOK).check();
    assert!(report.refuses(), "{}", report.render_human());
    assert!(report.render_human().contains("(main worktree)/.claude/settings.local.json"));
    let fine = linked("{}").check();
    assert!(!fine.refuses(), "{}", fine.render_human());
}

#[test]
fn a_main_worktree_beside_the_target_is_judged() {
    for (settings, refused) in [(HOOK, true), ("{}", false)] {
        let repo = Repo::new(&[]);
        std::fs::remove_dir(repo.path(".git")).unwrap();
        let main = repo.beside("outside/main");
        std::fs::create_dir_all(main.join(".git/worktrees/w")).unwrap();
        std::fs::create_dir_all(main.join(".claude")).unwrap();
        std::fs::write(main.join(".git/worktrees/w/commondir"), "../..\n").unwrap();
        std::fs::write(main.join(".claude/settings.local.json"), settings).unwrap();
        repo.write(".git", format!("gitdir: {}/.git/worktrees/w\n", main.display()).as_bytes());
        let report = repo.check();
        assert_eq!(report.refuses(), refused, "{}", report.render_human());
    }
}

#[test]
fn a_submodule_is_no_linked_worktree() {
    let repo = Repo::new(&[]);
    std::fs::remove_dir(repo.path(".git")).unwrap();
    std::fs::create_dir_all(repo.beside("outside/modules/s")).unwrap();
    repo.write(".git", format!("gitdir: {}\n", repo.beside("outside/modules/s").display()).as_bytes());
    assert!(repo.check().is_silent());
}

#[test]
fn a_git_that_readers_may_disagree_on_refuses_and_hides_no_parent() {
    let makers: [fn(&std::path::Path); 4] = [
        |git| symlink("nowhere", git).unwrap(),
        |git| symlink("/tmp", git).unwrap(),
        |git| std::fs::write(git, "no link\n").unwrap(),
        |git| std::fs::write(git, "gitdir: nowhere\n").unwrap(),
    ];
    for (n, make) in makers.iter().enumerate() {
        let repo = Repo::new(&[("sub/a", ""), (".claude/settings.json", HOOK)]);
        make(&repo.path("sub/.git"));
        let shown = repo.check_in("sub").render_human();
        assert!(shown.contains("../.claude/settings.json"), "{n}: {shown}");
        assert!(shown.contains(".git"), "{n}: {shown}");
    }
}

#[test]
fn one_directory_in_two_roles_is_judged_in_both() {
    let repo = Repo::new(&[("d/c.md", "Now !`id`\n")]);
    std::fs::create_dir_all(repo.path(".claude")).unwrap();
    for role in ["agents", "rules", "output-styles", "commands"] {
        symlink("../d", repo.path(&format!(".claude/{role}"))).unwrap();
    }
    assert!(repo.check().refuses());
}

#[test]
fn definitions_that_a_plugin_manifest_names_are_judged() {
    let shell = "Now !`id`\n";
    for (manifest, file, body) in [
        (r#"{"name":"p","commands":{"x":{"content":"Now !`id`"}}}"#, "a", ""),
        (r#"{"name":"p","commands":{"x":{"source":"./extra/x.md"}}}"#, "extra/x.md", shell),
        (r#"{"name":"p","commands":["./extra"]}"#, "extra/x.md", shell),
        (r#"{"name":"p","commands":"./extra/x.md"}"#, "extra/x.md", shell),
        (r#"{"name":"p","skills":["./extra"]}"#, "extra/s/SKILL.md", shell),
        (
            r#"{"name":"p","agents":"./extra/a.md"}"#,
            "extra/a.md",
            "---\npermissionMode: bypassPermissions\n---\n",
        ),
    ] {
        let write = |body: &str| {
            Repo::new(&[
                (".claude/skills/p/.claude-plugin/plugin.json", manifest),
                (&format!(".claude/skills/p/{file}"), body),
            ])
        };
        let report = write(body).check();
        assert!(report.refuses(), "{manifest}: {}", report.render_human());
        if !body.is_empty() {
            assert!(!write("fine\n").check().refuses(), "{manifest}");
        }
    }
}

#[test]
fn what_one_reader_would_not_see_in_a_definition_refuses() {
    let mut wide = vec![0xff, 0xfe];
    wide.extend_from_slice("\nNow !`id`\n".as_bytes());
    for body in [
        wide,
        "---\u{feff}\nallowed-tools: Bash\n---\n".into(),
        "---\n<<: {allowed-tools: Bash}\n---\n".into(),
        "---\nd: &a hello\nx: *a\nallowed-tools: Bash ---\n".into(),
        "---\nd: a: b: c\nallowed-tools: [Bash]\n---\n".into(),
        "See @$ARGUMENTS/etc/passwd\n".into(),
        "---\narguments: foo-bar\n---\nNow !$foo-bar`id`\n".into(),
        format!("---\narguments: {0}\n---\nNow !${0}`id`\n", "n".repeat(64)).into(),
        "---\nallowed-tools: Edit(//**)\n---\n".into(),
        "---\nallowed-tools: Bash(git diff*)\n---\n".into(),
    ] {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let repo = Repo::new(&[]);
        repo.write(".claude/commands/c.md", &body);
        assert!(repo.check().refuses(), "{shown:?}");
    }
}

#[test]
fn excluding_the_operators_instructions_refuses_and_a_neighbours_does_not() {
    for (pattern, refused) in [
        ("**/*", true),
        ("**/CLAUDE.md", true),
        ("/home/**", true),
        ("~/.claude/CLAUDE.md", true),
        ("!(x)", true),
        ("**/other-team/CLAUDE.md", false),
        ("packages/legacy/**", false),
        (&vec!["x"; 100].join("\",\""), false),
        (&vec!["x"; 101].join("\",\""), true),
    ] {
        let report = Repo::settings(&format!(r#"{{"claudeMdExcludes":["{pattern}"]}}"#)).check();
        assert_eq!(report.refuses(), refused, "{pattern}");
    }
}

#[test]
fn a_script_that_changes_after_an_approval_brings_the_findings_back() {
    for (path, text, script) in [
        (".claude/commands/c.md", "Now !`sh tools/x.sh`\n", "tools/x.sh"),
        (".claude/commands/c.md", "---\nallowed-tools: Bash(./tools/x.sh:*)\n---\n", "tools/x.sh"),
        (".claude/settings.json", r#"{"apiKeyHelper":"cd tools && ./x.sh"}"#, "tools/x.sh"),
        (".claude/settings.json", r#"{"env":{"BASH_ENV":"./tools/env.sh"}}"#, "tools/env.sh"),
        (".claude/settings.json", r#"{"env":{"NODE_OPTIONS":"--require ./tools/a.js"}}"#, "tools/a.js"),
        (
            ".claude/settings.json",
            r#"{"statusLine":{"type":"command","command":"node tools/line"}}"#,
            "tools/line.js",
        ),
    ] {
        let repo = Repo::new(&[(path, text), (script, "one\n"), ("tools/other.txt", "x\n")]);
        let run = |what: &[&str]| jess(&repo, what, &repo.path("")).status.code();
        assert_eq!(run(&["trust", "check"]), Some(2), "{text}");
        assert_eq!(run(&["trust", "approve"]), Some(0), "{text}");
        assert_eq!(run(&["trust", "check"]), Some(0), "{text}");
        repo.write("tools/other.txt", b"y\n");
        assert_eq!(run(&["trust", "check"]), Some(0), "{text}: an unrelated file");
        repo.write(script, b"two\n");
        assert_eq!(run(&["trust", "check"]), Some(2), "{text}");
    }
}

#[test]
fn the_difference_to_an_approval_is_masked_like_the_report() {
    let settings = |value: &str| format!("{{\"env\":{{\n\"ANTHROPIC_API_KEY\":\"{value}\"}}}}\n");
    let repo = Repo::settings(&settings("plain-value-111"));
    assert_eq!(jess(&repo, &["trust", "approve"], &repo.path("")).status.code(), Some(0));
    repo.write(".claude/settings.json", settings("other-value-2222").as_bytes());
    let output = jess(&repo, &["trust", "check"], &repo.path(""));
    let shown =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2));
    assert!(shown.contains("changed") && shown.contains("ANTHROPIC_API_KEY"), "{shown}");
    assert!(!shown.contains("value-111") && !shown.contains("value-2222"), "{shown}");
}

#[test]
fn agents_behind_a_link_and_below_node_modules_are_audited() {
    let repo = Repo::new(&[("d/a.md", "---\nname: a\n---\n"), ("other/agents/node_modules/b.md", "x\n")]);
    std::fs::create_dir_all(repo.path(".claude")).unwrap();
    symlink("../d", repo.path(".claude/agents")).unwrap();
    symlink("..", repo.path("other/agents/up")).unwrap();
    let names = |audits: Vec<jess::trust::agents::Audit>| {
        audits.iter().map(|a| format!("{} {}", a.path, a.verdict.name())).collect::<Vec<_>>()
    };
    assert_eq!(
        names(jess::trust::agents::audit(&repo.path("")).unwrap()),
        [
            ".claude/agents/a.md needs-hitl",
            "other/agents/node_modules/b.md needs-hitl",
            "other/agents/up needs-hitl"
        ]
    );
}

#[test]
fn a_link_out_of_the_audited_directory_is_one_row_that_counts_as_everything() {
    let repo = Repo::new(&[("x/CLAUDE.md", "")]);
    std::fs::write(repo.beside("outside/secret-name.md"), "---\ntools: Read\n---\n").unwrap();
    for link in [".claude", "plugin/agents"] {
        std::fs::create_dir_all(repo.path(link).parent().unwrap()).unwrap();
        symlink(repo.beside("outside"), repo.path(link)).unwrap();
    }
    let audits = jess::trust::agents::audit(&repo.path("")).unwrap();
    let rows: Vec<_> = audits.iter().map(|a| (a.path.as_str(), a.verdict.name())).collect();
    assert_eq!(rows, [(".claude", "needs-hitl"), ("plugin/agents", "needs-hitl")]);
}

#[test]
fn agents_in_a_linked_configuration_directory_are_audited() {
    let repo = Repo::new(&[("cfg/agents/a.md", "---\nname: a\n---\n")]);
    symlink("cfg", repo.path(".claude")).unwrap();
    let audits = jess::trust::agents::audit(&repo.path("")).unwrap();
    assert!(audits.iter().any(|a| a.path.ends_with("agents/a.md") && a.verdict.name() == "needs-hitl"));
}

#[test]
fn a_head_that_ends_in_mid_line_is_the_one_that_is_scored() {
    let repo = Repo::new(&[(".claude/agents/a.md", "---\ndescription: a --- b\ntools: Read\n---\n")]);
    let audits = jess::trust::agents::audit(&repo.path("")).unwrap();
    assert_eq!(audits[0].verdict.name(), "needs-hitl");
}

#[test]
fn a_definition_that_may_write_any_file_is_shown() {
    let repo = Repo::new(&[(".claude/skills/s/SKILL.md", "---\nallowed-tools: Read, Write\n---\n")]);
    let report = repo.check();
    assert!(
        !report.refuses() && report.render_human().contains("writes any file"),
        "{}",
        report.render_human()
    );
}
