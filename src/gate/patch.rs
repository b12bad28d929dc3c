//! A patch that an agent wrote, before a person or a pipeline applies it.

use super::Finding;
use std::path::PathBuf;

/// How much a kind of finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth a look.
    Low,
    /// Needs a reason.
    Medium,
    /// Runs or weakens something without anybody asking.
    High,
    /// Leaves the repository, or hides itself.
    Critical,
}

impl Severity {
    /// `low`, `medium`, `high` or `critical`.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

/// The severity of a finding's kind. Secrets and fetching markup are critical and high; what is not known is high.
pub fn severity(kind: &str) -> Severity {
    match kind {
        "patch:escaping-path" | "patch:invisible" | "patch:link" => Severity::Critical,
        "patch:outside-scope"
        | "patch:ci"
        | "patch:hook"
        | "patch:binary"
        | "patch:exec-call"
        | "patch:unreadable" => Severity::High,
        "patch:dependency" | "patch:lock" | "patch:mode" | "patch:network-call" | "patch:deleted-test" => {
            Severity::Medium
        }
        "patch:removed-check" => Severity::Medium,
        kind if kind.starts_with("secret:") => Severity::Critical,
        _ => Severity::High,
    }
}

const CI: &[&str] = &[
    ".github/",
    ".gitlab-ci",
    ".circleci/",
    ".travis.yml",
    "jenkinsfile",
    "azure-pipelines",
    ".buildkite/",
    ".drone.y",
    "bitbucket-pipelines",
    ".woodpecker",
    "cloudbuild.y",
    ".ci/",
    "appveyor.yml",
    ".tekton/",
    ".semaphore/",
];
const HOOKS: &[&str] = &[
    ".git/",
    ".githooks/",
    ".husky/",
    ".pre-commit",
    "lefthook",
    ".claude/",
    ".claude-plugin/",
    ".mcp.json",
    "claude.md",
    "agents.md",
    ".cursor",
    ".vscode/",
    ".idea/",
    ".envrc",
    ".devcontainer",
    ".gitattributes",
    ".gitmodules",
    ".gitconfig",
    "conftest.py",
    ".cargo/config",
    "build.rs",
    ".npmrc",
    ".yarnrc",
    ".bazelrc",
    "jess.toml",
];
const DEPENDENCIES: &[&str] = &[
    "package.json",
    "cargo.toml",
    "requirements",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "pipfile",
    "go.mod",
    "gemfile",
    "pom.xml",
    "build.gradle",
    "composer.json",
    "mix.exs",
    "package.swift",
    "environment.yml",
    "dockerfile",
    "makefile",
    "cmakelists.txt",
];
const LOCKS: &[&str] = &[
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "cargo.lock",
    "poetry.lock",
    "pipfile.lock",
    "go.sum",
    "gemfile.lock",
    "composer.lock",
    "uv.lock",
    "bun.lock",
    "npm-shrinkwrap.json",
    "flake.lock",
    "gradle.lockfile",
];
const NETWORK: &[&str] = &[
    "http://",
    "https://",
    "requests.",
    "urllib",
    "fetch(",
    "axios",
    "xmlhttprequest",
    "curl ",
    "wget ",
    "socket(",
    "tcpstream",
    "reqwest",
    "net.dial",
    "httpclient",
    "websocket",
    "net::http",
    "urlopen",
    "gethostby",
    "nc -",
];
const EXEC: &[&str] = &[
    "system(",
    "popen(",
    "exec(",
    "eval(",
    "execve",
    "subprocess",
    "os.system",
    "child_process",
    "spawn(",
    "command::new",
    "runtime.getruntime",
    "exec.command",
    "processbuilder",
    "dlopen",
    "loadlibrary",
    "pickle.load",
    "yaml.load(",
    "__import__",
    "shell=true",
    "| sh",
    "| bash",
    "function(",
    "invoke-expression",
];

/// What a unified diff does that needs a look. `scope` are the path prefixes that it may touch; empty means anywhere.
/// A text that is no diff is a finding itself. Linear in the input.
pub fn check(text: &str, scope: &[String]) -> Vec<Finding> {
    let mut check = Check { scope, findings: Vec::new(), file: PathBuf::new(), test: false, any: false };
    let (mut new_line, mut old_left, mut new_left) = (0usize, 0usize, 0usize);
    for (n, line) in text.lines().enumerate() {
        if old_left > 0 || new_left > 0 {
            match line.as_bytes().first() {
                Some(b'+') => {
                    check.added(new_line, line.get(1..).unwrap_or_default());
                    new_line += 1;
                    new_left = new_left.saturating_sub(1);
                    continue;
                }
                Some(b'-') => {
                    check.removed(new_line, line.get(1..).unwrap_or_default());
                    old_left = old_left.saturating_sub(1);
                    continue;
                }
                Some(b' ') | None => {
                    new_line += 1;
                    old_left = old_left.saturating_sub(1);
                    new_left = new_left.saturating_sub(1);
                    continue;
                }
                Some(b'\\') => continue,
                _ => (old_left, new_left) = (0, 0),
            }
        }
        if let Some((old, start, new)) = hunk(line) {
            (old_left, new_line, new_left) = (old, start, new);
            check.any = true;
        } else if let Some(paths) = line.strip_prefix("diff --git ") {
            for path in git_paths(paths) {
                check.path(path);
            }
        } else if let Some(path) = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- ")) {
            check.path(path.split('\t').next().unwrap_or(path));
        } else if let Some(path) =
            ["rename to ", "copy to ", "rename from "].iter().find_map(|p| line.strip_prefix(p))
        {
            check.path(path);
        } else if line.starts_with("Binary files ") || line.starts_with("GIT binary patch") {
            check.any = true;
            check.add(n + 1, "patch:binary");
        } else if line.starts_with("new mode ") || line.starts_with("new file mode ") {
            check.any = true;
            if line.ends_with("120000") || line.ends_with("160000") {
                check.add(0, "patch:link");
            } else if !line.ends_with("100644") {
                check.add(0, "patch:mode");
            }
        } else if line.starts_with("deleted file mode") {
            check.any = true;
            if check.test {
                check.add(0, "patch:deleted-test");
            }
        }
    }
    if !check.any && !text.trim().is_empty() {
        check.add(0, "patch:unreadable");
    }
    check.findings.dedup();
    check.findings
}

struct Check<'a> {
    scope: &'a [String],
    findings: Vec<Finding>,
    file: PathBuf,
    test: bool,
    any: bool,
}

impl Check<'_> {
    fn add(&mut self, line: usize, kind: &str) {
        let finding = Finding { file: self.file.clone(), line, kind: kind.to_string() };
        if self.findings.last() != Some(&finding) {
            self.findings.push(finding);
        }
    }

    fn path(&mut self, raw: &str) {
        let raw = raw.trim().trim_matches('"');
        if raw == "/dev/null" {
            return;
        }
        let path = raw.strip_prefix("a/").or_else(|| raw.strip_prefix("b/")).unwrap_or(raw);
        if self.file.as_os_str() == path {
            return;
        }
        self.file = PathBuf::from(path);
        let lower = path.to_lowercase();
        let name = lower.rsplit('/').next().unwrap_or(&lower).to_string();
        self.test = lower
            .split(['/', '.', '_', '-'])
            .any(|part| matches!(part, "test" | "tests" | "spec" | "specs" | "testing"));
        if path.starts_with('/') || path.split(['/', '\\']).any(|part| part == "..") || path.contains('\\') {
            self.add(0, "patch:escaping-path");
        }
        if super::invisible(path) {
            self.add(0, "patch:invisible");
        }
        let inside = |scope: &String| {
            path == scope
                || path.strip_prefix(scope.trim_end_matches('/')).is_some_and(|r| r.starts_with('/'))
        };
        if !self.scope.is_empty() && !self.scope.iter().any(inside) {
            self.add(0, "patch:outside-scope");
        }
        let under =
            |list: &[&str]| list.iter().any(|p| lower.starts_with(p) || lower.contains(&format!("/{p}")));
        if under(CI) {
            self.add(0, "patch:ci");
        }
        if under(HOOKS) {
            self.add(0, "patch:hook");
        }
        if LOCKS.contains(&name.as_str()) {
            self.add(0, "patch:lock");
        } else if DEPENDENCIES.iter().any(|d| name.starts_with(d)) {
            self.add(0, "patch:dependency");
        }
    }

    fn added(&mut self, line: usize, content: &str) {
        if super::invisible(content) {
            self.add(line, "patch:invisible");
        }
        let lower = content.to_lowercase();
        if NETWORK.iter().any(|call| lower.contains(call)) {
            self.add(line, "patch:network-call");
        }
        if EXEC.iter().any(|call| lower.contains(call)) {
            self.add(line, "patch:exec-call");
        }
        if [
            "#[ignore",
            "@skip",
            "skipif",
            ".skip(",
            "xit(",
            "t.skip",
            "@disabled",
            "noqa",
            "nosec",
            "eslint-disable",
            "# type: ignore",
        ]
        .iter()
        .any(|s| lower.contains(s))
        {
            self.add(line, "patch:removed-check");
        }
    }

    fn removed(&mut self, line: usize, content: &str) {
        let lower = content.to_lowercase();
        if ["assert", "#[test]", "def test_", "expect(", " it(", "func test", "@test", "should"]
            .iter()
            .any(|s| lower.contains(s))
        {
            self.add(line, "patch:removed-check");
        }
    }
}

/// Lines of the old side, start and lines of the new side of `@@ -a,b +c,d @@`.
fn hunk(line: &str) -> Option<(usize, usize, usize)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => Some(1),
    };
    let start = new.split(',').next()?.parse().ok()?;
    Some((count(old)?, start, count(new)?))
}

/// The two paths of a `diff --git` line; names with spaces are told apart by their equal halves.
fn git_paths(line: &str) -> Vec<&str> {
    match line.find(" b/") {
        Some(at) => vec![line.get(..at).unwrap_or_default(), line.get(at + 1..).unwrap_or_default()],
        None => line.split(' ').collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(patch: &str, scope: &[&str]) -> Vec<String> {
        let scope: Vec<String> = scope.iter().map(|s| s.to_string()).collect();
        check(patch, &scope)
            .into_iter()
            .map(|f| format!("{}:{} {}", f.file.to_string_lossy(), f.line, f.kind))
            .collect()
    }

    fn adding(path: &str, line: &str) -> String {
        format!(
            "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,3 @@\n a\n+{line}\n b\n"
        )
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
        assert_eq!(
            kinds(&format!("{head}old mode 100644\nnew mode 100755\n"), &[]),
            ["tests/t.py:0 patch:mode"]
        );
        assert_eq!(kinds(&format!("{head}new file mode 120000\n"), &[]), ["tests/t.py:0 patch:link"]);
        assert_eq!(
            kinds(&format!("{head}Binary files a/x and b/x differ\n"), &[]),
            ["tests/t.py:2 patch:binary"]
        );
        assert_eq!(
            kinds(&format!("{head}deleted file mode 100644\n"), &[]),
            ["tests/t.py:0 patch:deleted-test"]
        );
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
}
