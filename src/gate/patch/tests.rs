use super::*;

fn kinds(patch: &str, scope: &[&str]) -> Vec<String> {
    let scope: Vec<String> = scope.iter().map(|s| s.to_string()).collect();
    check(patch, &scope)
        .into_iter()
        .map(|f| format!("{}:{} {}", f.file.to_string_lossy(), f.line, f.kind))
        .collect()
}

fn adding(path: &str, line: &str) -> String {
    format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,3 @@\n a\n+{line}\n b\n")
}

#[test]
fn a_plain_fix_in_scope_is_silent() {
    assert_eq!(kinds(&adding("src/a.c", "if (n > 64) return;"), &["src"]), Vec::<String>::new());
    assert_eq!(kinds("", &[]), Vec::<String>::new());
}

#[test]
fn files_that_act_by_themselves_are_named() {
    for (path, kind) in [
        (".github/workflows/x.yml", "patch:ci"),
        (".husky/pre-commit", "patch:hook"),
        ("sub/.claude/settings.json", "patch:hook"),
        ("package.json", "patch:dependency"),
        ("Cargo.lock", "patch:lock"),
        ("../x", "patch:escaping-path"),
        ("/etc/passwd", "patch:escaping-path"),
    ] {
        assert!(kinds(&adding(path, "x"), &[]).iter().any(|k| k.ends_with(kind)), "{path}");
    }
    assert_eq!(kinds(&adding("srcx/a.c", "x"), &["src"]), ["srcx/a.c:0 patch:outside-scope"]);
}

#[test]
fn added_calls_and_hidden_characters_are_named_with_their_line() {
    assert_eq!(kinds(&adding("a.py", "os.system(x)"), &[]), ["a.py:2 patch:exec-call"]);
    assert_eq!(kinds(&adding("a.py", "requests.get(u)"), &[]), ["a.py:2 patch:network-call"]);
    assert_eq!(kinds(&adding("a.py", "x\u{202e}y"), &[]), ["a.py:2 patch:invisible"]);
}

#[test]
fn modes_links_binaries_and_deleted_tests_are_named() {
    let head = "diff --git a/tests/t.py b/tests/t.py\n";
    assert_eq!(kinds(&format!("{head}old mode 100644\nnew mode 100755\n"), &[]), ["tests/t.py:0 patch:mode"]);
    assert_eq!(kinds(&format!("{head}new file mode 120000\n"), &[]), ["tests/t.py:0 patch:link"]);
    assert_eq!(
        kinds(&format!("{head}Binary files a/x and b/x differ\n"), &[]),
        ["tests/t.py:2 patch:binary"]
    );
    assert_eq!(kinds(&format!("{head}deleted file mode 100644\n"), &[]), ["tests/t.py:0 patch:deleted-test"]);
    let removed = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1 @@\n a\n-assert x\n";
    assert_eq!(kinds(removed, &[]), ["x.py:2 patch:removed-check"]);
}

#[test]
fn a_removed_line_that_looks_like_a_header_is_content() {
    let patch = "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n--- a/.github/x\n+++ b/.github/x\n";
    assert_eq!(kinds(patch, &[]), Vec::<String>::new());
}

#[test]
fn text_that_is_no_patch_is_a_finding() {
    assert_eq!(kinds("hello", &[]), [":0 patch:unreadable"]);
}

/// The kinds alone, each once.
fn seen(patch: &str, scope: &[&str]) -> std::collections::BTreeSet<String> {
    kinds(patch, scope).into_iter().filter_map(|k| k.rsplit(' ').next().map(str::to_string)).collect()
}

#[track_caller]
fn has(patch: &str, scope: &[&str], kind: &str) {
    let seen = seen(patch, scope);
    assert!(seen.contains(kind), "{kind} not in {seen:?} of {patch:?}");
}

const FINE: &str = "diff --git a/src/a.c b/src/a.c\n--- a/src/a.c\n+++ b/src/a.c\n@@ -1,1 +1,2 @@\n a\n+b\n";

#[test]
fn a_path_is_judged_in_every_reading_that_an_applier_has_of_it() {
    let scope = &["src"][..];
    assert_eq!(kinds(FINE, scope), Vec::<String>::new(), "the control");
    let hunk = "@@ -1,1 +1,2 @@\n a\n+b\n";
    for name in [
        "\"b/\\056github/workflows/x.yml\"",
        "\"b/src/\\056\\056/\\056github/x\"",
        "src/.github/workflows/x.yml",
        ".github/workflows/x.yml",
        "b/.github/workflows/x.yml\t2026-01-01 00:00:00",
        "b/.github/workflows/x.yml 2026-01-01 00:00:00",
        "b/.GitHub/Workflows/x.yml",
        "b/./.github/workflows/x.yml",
        "b/.github./workflows/x.yml",
        "b/.github::$INDEX_ALLOCATION/x.yml",
        "b/\u{ff0e}github/workflows/x.yml",
        "b/.g\u{456}thub/workflows/x.yml",
        "b/.gi\u{200c}thub/workflows/x.yml",
    ] {
        for patch in [format!("--- {name}\n+++ {name}\n{hunk}"), format!("--- a/src/a.c\n+++ {name}\n{hunk}")]
        {
            has(&patch, &[], "patch:ci");
            has(&patch, scope, "patch:outside-scope");
        }
    }
    for (name, kind) in [
        ("b/src/../../x", "patch:escaping-path"),
        ("b/C:/Windows/x", "patch:escaping-path"),
        ("b/src\\x", "patch:escaping-path"),
        ("b/git~1/hooks/x", "patch:hook"),
        ("b/src/.git/hooks/x", "patch:hook"),
        ("b/.git /config", "patch:hook"),
        ("\"b/src/a\\nb\"", "patch:invisible"),
        ("\"b/src/a\\377\"", "patch:invisible"),
        ("b/src/a\u{202e}c.x", "patch:invisible"),
    ] {
        has(&format!("--- {name}\n+++ {name}\n{hunk}"), &[], kind);
    }
}

#[test]
fn a_git_line_alone_names_its_files() {
    for (line, kind) in [
        ("a/.github/x b/.github/x", "patch:ci"),
        ("\"a/\\056github/x\" \"b/\\056github/x\"", "patch:ci"),
        ("a/src/x \"b/\\056github/x\"", "patch:ci"),
        (".github/x .github/x", "patch:ci"),
        ("a/src/x b/.github/w b/src/x b/.github/w", "patch:ci"),
        ("a/x y/.husky/z b/x y/.husky/z", "patch:hook"),
    ] {
        has(&format!("diff --git {line}\nnew file mode 100644\nindex 0000000..e69de29\n"), &[], kind);
    }
    assert_eq!(
        kinds("diff --git a/src/a b b/src/a b\nnew file mode 100644\n", &["src"]),
        Vec::<String>::new()
    );
}

#[test]
fn renames_and_copies_are_changes_of_both_names() {
    let moved = |from: &str, to: &str, verb: &str| {
        format!("diff --git a/{from} b/{to}\nsimilarity index 100%\n{verb} from {from}\n{verb} to {to}\n")
    };
    assert_eq!(
        kinds(&moved("src/a", "src/b", "rename"), &["src"]),
        Vec::<String>::new(),
        "a move alone is a patch"
    );
    has(&moved("src/a", ".github/b", "rename"), &["src"], "patch:ci");
    has(&moved("etc/a", "src/b", "copy"), &["src"], "patch:outside-scope");
    has(&moved("tests/t.rs", "src/t.rs.bak", "rename"), &[], "patch:deleted-test");
    assert!(!seen(&moved("tests/t.rs", "tests/u.rs", "rename"), &[]).contains("patch:deleted-test"));
    has("rename old tests/t.rs\nrename new src/t\n", &[], "patch:deleted-test");
}

#[test]
fn a_test_that_goes_is_named_in_each_way_it_can_go() {
    has("--- a/tests/t.py\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n", &[], "patch:deleted-test");
    has("--- a/tests/t.py\n+++ b/tests/t.py\n@@ -1,1 +0,0 @@\n-x\n", &[], "patch:deleted-test");
    has("diff --git a/tests/t b/tests/t\ndeleted file mode 100644\n", &[], "patch:deleted-test");
    assert!(
        !seen("--- a/src/t.py\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n", &[]).contains("patch:deleted-test")
    );
    for line in
        ["@pytest.mark.skipif(True)", "it.skip('x')", "cargo test || true", "requests.get(u, verify=False)"]
    {
        has(&adding("a.py", line), &[], "patch:removed-check");
    }
}

#[test]
fn modes_are_read_as_numbers() {
    let head = "diff --git a/src/x b/src/x\n";
    for (line, kind) in [
        ("new file mode 0120000", "patch:link"),
        ("new file mode 120000 x", "patch:link"),
        ("index 1234567..89abcde 120000", "patch:link"),
        ("new mode 160000", "patch:submodule"),
        ("index 1234567..89abcde 160000", "patch:submodule"),
        ("new file mode 100755", "patch:mode"),
        ("new mode 104755", "patch:mode"),
        ("new mode rwx", "patch:mode"),
    ] {
        has(&format!("{head}{line}\n"), &[], kind);
    }
    let module = "--- a/lib\n+++ b/lib\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n";
    has(module, &[], "patch:submodule");
    assert_eq!(
        kinds(
            &format!("{head}index 1234567..89abcde 100755\n--- a/src/x\n+++ b/src/x\n@@ -1 +1 @@\n-a\n+b\n"),
            &[]
        ),
        Vec::<String>::new()
    );
}

#[test]
fn what_is_no_text_is_named() {
    for body in [
        "GIT binary patch\nliteral 3\nKc$~\n\nliteral 0\nHcmV?d00001\n",
        "Binary files a/src/x and b/src/x differ\n",
        "Files a/src/x and b/src/x differ\n",
    ] {
        has(&format!("diff --git a/src/x b/src/x\n{body}"), &[], "patch:binary");
    }
    for line in ["a\0b", "a\rb", "a\x1b[2Kb", "a\u{2066}b", "a\u{200b}b"] {
        has(&adding("src/x", line), &[], "patch:invisible");
    }
    has(&FINE.replace("@@\n", "@@ f\x1b[2K\n"), &[], "patch:invisible");
}

#[test]
fn hunks_that_do_not_add_up_are_named() {
    let head = "--- a/src/x\n+++ b/src/x\n";
    for hunk in [
        "@@ -1,1 +1,1 @@\n a\n+extra\n",
        "@@ -1,1 +1,2 @@\n a\nno prefix\n",
        "@@ -1,3 +1,4 @@\n a\n+b\n",
        "@@ -1,1 +1,99999999999999999999999 @@\n a\n+b\n",
        "@@ -1,1 +1,2@@\n a\n+b\n",
        "@@@ -1,1 -1,1 +1,2 @@@\n  a\n++b\n",
    ] {
        has(&format!("{head}{hunk}"), &[], "patch:malformed");
    }
    let mail = format!(
        "From 1 Mon Sep 17\nSubject: [PATCH] x\n\n- a list\n+ another\n---\n src/a.c | 1 +\n\n{FINE}-- \n2.39.0\n"
    );
    assert_eq!(kinds(&mail, &["src"]), Vec::<String>::new(), "a mail of format-patch");
}

#[test]
fn patches_in_a_form_that_is_not_read_are_named() {
    for hidden in [
        "*** .github/x\n--- .github/x\n***************\n*** 1,1 ****\n! a\n--- 1,1 ----\n! b\n",
        "1c1\n< a\n---\n> b\n",
        "3,4d\n",
        "  --- a/.github/x\n  +++ b/.github/x\n  @@ -1 +1 @@\n  -a\n  +b\n",
        "- --- a/.github/x\n- +++ b/.github/x\n- @@ -1 +1 @@\n- -a\n- +b\n",
        "From x Mon\nContent-Transfer-Encoding: base64\n\nZGlmZg==\n",
        "From x Mon\nContent-Type: text/plain; charset=\"UTF-7\"\n\n+AC0-\n",
        "diff --cc src/a.c\nindex 1,2..3\n",
    ] {
        has(&format!("{FINE}{hidden}"), &[], "patch:unreadable");
    }
    has("Index: .github/workflows/x.yml\n", &[], "patch:ci");
}

#[test]
fn calls_are_recognised_in_every_spelling_that_runs() {
    for (line, kind) in [
        ("OS.System (x)", "patch:exec-call"),
        ("\u{ff4f}\u{ff53}.system(x)", "patch:exec-call"),
        ("\\u0065val(x)", "patch:exec-call"),
        ("\\u{65}val(x)", "patch:exec-call"),
        ("getattr(os, 'sys' + 'tem')", "patch:exec-call"),
        ("echo x | bash", "patch:exec-call"),
        ("exec 3<>/dev/tcp/e.example/80", "patch:network-call"),
        ("navigator.sendBeacon(u)", "patch:network-call"),
    ] {
        has(&adding("src/x", line), &[], kind);
    }
}

#[test]
fn carriage_returns_at_line_ends_change_nothing() {
    let patch = adding(".github/x", "os.system(x)").replace('\n', "\r\n");
    has(&patch, &["src"], "patch:outside-scope");
    has(&patch, &[], "patch:exec-call");
    assert!(!seen(&patch, &[]).contains("patch:invisible"));
}

#[test]
fn a_scope_of_everything_lets_everything_in() {
    for scope in [".", "./", "src/", "./src"] {
        assert_eq!(kinds(FINE, &[scope]), Vec::<String>::new(), "{scope}");
    }
    has(FINE, &["lib"], "patch:outside-scope");
}

#[test]
fn a_flood_of_findings_is_bounded_and_says_so() {
    let flood =
        adding("src/x", "x").replace("+x\n", &"+os.system(x)\n".repeat(5000)).replace("+1,3", "+1,5002");
    let found = check(&flood, &[]);
    assert_eq!(found.len(), crate::gate::MAX_FINDINGS + 1);
    assert_eq!(found.last().map(|f| f.kind.as_str()), Some("too-many-findings"));
}

#[test]
fn other_forms_of_diff_are_no_way_around() {
    let good = "--- a/src/x.py\n+++ b/src/x.py\n@@ -1,1 +1,1 @@\n-a\n+b\n";
    for (name, more) in [
        (
            "a context diff with eight stars",
            "*** a/.github/x.yml\n--- b/x\n********\n*** 1,3 ****\n".to_string(),
        ),
        ("an ed script with zeros", format!("Index: a/src/x.py\n{}2c\nx\n.\n", "0".repeat(60))),
        ("an ed script with commas", "2,,2c\nx\n.\n".to_string()),
        ("an ed script with three numbers", "1,2,3c\nx\n.\n".to_string()),
        ("a normal diff with blanks", format!("2c2{}\n< a\n---\n> b\n", " ".repeat(90))),
    ] {
        assert!(!kinds(&format!("{good}{more}"), &[]).is_empty(), "{name}");
    }
    assert_eq!(kinds(good, &[]), Vec::<String>::new());
}

#[test]
fn files_that_agents_editors_and_builders_read_are_named() {
    for (path, kind) in [
        (".claude.json", "patch:hook"),
        ("CLAUDE.local.md", "patch:hook"),
        (".kiro/hooks/a.json", "patch:hook"),
        ("hooks/pre-commit", "patch:hook"),
        (".forgejo/workflows/x.yml", "patch:ci"),
        ("action.yml", "patch:ci"),
        ("src/App.csproj", "patch:dependency"),
        ("BUILD", "patch:dependency"),
        ("dev.Dockerfile", "patch:dependency"),
        ("go.work.sum", "patch:lock"),
    ] {
        assert!(kinds(&adding(path, "x"), &[]).iter().any(|k| k.ends_with(kind)), "{path}");
    }
    for path in ["src/hooks/useThing.ts", "src/build_info.c", "src/workspaces.rs", "src/latest.java"] {
        assert_eq!(kinds(&adding(path, "x"), &[]), Vec::<String>::new(), "{path}");
    }
}

#[test]
fn a_deleted_test_class_is_a_deleted_test() {
    for path in [
        "src/FooTest.java",
        "FooTests.cs",
        "src/FooSpec.scala",
        "TestFoo.py",
        "e2e/login.js",
        "f/login.feature",
    ] {
        let patch = format!("diff --git a/{path} b/{path}\ndeleted file mode 100644\n");
        assert!(kinds(&patch, &[]).iter().any(|k| k.ends_with("patch:deleted-test")), "{path}");
    }
    let other = "diff --git a/src/Latest.java b/src/Latest.java\ndeleted file mode 100644\n";
    assert!(!kinds(other, &[]).iter().any(|k| k.ends_with("patch:deleted-test")));
}

#[test]
fn calls_that_run_or_connect_are_named_in_each_language_and_ordinary_code_is_not() {
    for (line, kind) in [
        ("execSync(cmd)", "exec-call"),
        ("subprocess.check_output(cmd)", "exec-call"),
        ("Process.Start(cmd)", "exec-call"),
        ("torch.load(path)", "exec-call"),
        ("python3 -c 'x'", "exec-call"),
        ("http.Post(u)", "network-call"),
        ("httpx.get(u)", "network-call"),
        ("git clone git@h:x", "network-call"),
    ] {
        assert!(kinds(&adding("a.x", line), &[]).iter().any(|k| k.ends_with(kind)), "{line}");
    }
    for line in [
        "func add(a int) int {",
        "let v: Vec<(u8, u8)> = vec![];",
        "self.forgot(x)",
        "button.disconnect(x)",
        "sync with it",
    ] {
        assert_eq!(kinds(&adding("a.x", line), &[]), Vec::<String>::new(), "{line}");
    }
}
