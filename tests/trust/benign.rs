//! Configurations that careful people commit. None may refuse, and what says nothing to worry about is silent.

use crate::support::Repo;

#[rustfmt::skip]
const SETTINGS: &[&str] = &[
    r#"{}"#,
    r#"{"$schema":"https://json.schemastore.org/claude-code-settings.json"}"#,
    r#"{"model":"sonnet"}"#,
    r#"{"model":"claude-opus-4-5","effortLevel":"high","alwaysThinkingEnabled":true}"#,
    r#"{"permissions":{"deny":["Read(./.env)","Read(./.env.*)","Read(./secrets/**)","Bash(curl:*)","WebFetch"]}}"#,
    r#"{"permissions":{"deny":["Bash(rm -rf *)"],"ask":["Bash(git push:*)","Bash(npm publish:*)"]}}"#,
    r#"{"permissions":{"allow":[],"deny":[]}}"#,
    r#"{"permissions":{"defaultMode":"plan"}}"#,
    r#"{"permissions":{"disableBypassPermissionsMode":"disable"}}"#,
    r#"{"includeCoAuthoredBy":false}"#,
    r#"{"attribution":{"commit":"","pr":"","sessionUrl":false}}"#,
    r#"{"outputStyle":"Explanatory","language":"german"}"#,
    r#"{"cleanupPeriodDays":30,"respectGitignore":true}"#,
    r#"{"env":{"NODE_ENV":"test"}}"#,
    r#"{"env":{"RUST_BACKTRACE":"1","RUST_LOG":"debug","CARGO_TERM_COLOR":"always"}}"#,
    r#"{"env":{"PYTHONUNBUFFERED":"1","PYTHONDONTWRITEBYTECODE":"1"}}"#,
    r#"{"env":{"DATABASE_URL":"postgres://localhost/dev","REDIS_URL":"redis://localhost"}}"#,
    r#"{"env":{"BASH_DEFAULT_TIMEOUT_MS":"300000","MAX_THINKING_TOKENS":"8000"}}"#,
    r#"{"env":{"DISABLE_TELEMETRY":"1","CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC":"1"}}"#,
    r#"{"env":{"AWS_REGION":"eu-west-1","TZ":"UTC","LANG":"C.UTF-8"}}"#,
    r#"{"env":{"ANTHROPIC_MODEL":"claude-sonnet-4-5"}}"#,
    r#"{"sandbox":{"enabled":true}}"#,
    r#"{"sandbox":{"enabled":true,"allowUnsandboxedCommands":false,"autoAllowBashIfSandboxed":false}}"#,
    r#"{"sandbox":{"filesystem":{"denyRead":["~/.ssh"],"denyWrite":["./ci"]},"network":{"deniedDomains":["*"]}}}"#,
    r#"{"enableAllProjectMcpServers":false,"disabledMcpjsonServers":["x"]}"#,
    r#"{"deniedMcpServers":[{"serverName":"shell"}],"allowManagedMcpServersOnly":true}"#,
    r#"{"enabledPlugins":{"formatter@team":false}}"#,
    r#"{"hooks":{}}"#,
    r#"{"hooks":{"PreToolUse":[]}}"#,
    r#"{"statusLine":{"type":"static","text":"acme"}}"#,
    r#"{"spinnerTipsEnabled":false,"spinnerVerbs":{"mode":"append","verbs":["Baking"]}}"#,
    r#"{"spinnerTipsOverride":{"excludeDefault":true,"tips":["Run /help"]}}"#,
    r#"{"companyAnnouncements":["Read the guide at docs/guide.md; it is short"]}"#,
    r#"{"worktree":{"baseRef":"fresh","sparsePaths":["packages/app"],"symlinkDirectories":["node_modules"]}}"#,
    r#"{"plansDirectory":"./plans"}"#,
    r#"{"disableSkillShellExecution":true,"disableAutoMode":"disable"}"#,
    r#"{"autoMemoryEnabled":false,"fileCheckpointingEnabled":true}"#,
    r#"{"theme":"dark","editorMode":"vim","verbose":false,"prefersReducedMotion":true}"#,
    r#"{"minimumVersion":"2.1.0","autoUpdatesChannel":"stable"}"#,
    r#"{"defaultShell":"bash","bashOutputMaxChars":20000}"#,
    r#"{"voice":{"autoSubmit":false},"timeZone":"Europe/Zurich"}"#,
];

#[test]
fn careful_settings_are_silent() {
    assert!(SETTINGS.len() >= 40);
    for json in SETTINGS {
        for path in
            [".claude/settings.json", ".claude/settings.local.json", "packages/a/.claude/settings.json"]
        {
            let report = Repo::new(&[(path, json)]).check();
            let said = report.render_human();
            let notes_alone = said.is_empty() || json.contains("spinnerTipsOverride");
            assert!(!report.refuses() && notes_alone, "{json}\n{said}");
        }
    }
}

#[rustfmt::skip]
const FILES: &[(&str, &str)] = &[
    ("CLAUDE.md", "# App\n\nYou MUST run `pnpm test`. Never edit generated files.\n\nSee @docs/style.md and @README.\n"),
    ("CLAUDE.md", "Import components from @/components/ui and types from @types/node; ask @alice.\n"),
    ("CLAUDE.md", "---\n\n# Title\n\n---\n\nText\n"),
    ("packages/a/CLAUDE.md", "See @../../docs/style.md\n"),
    ("CLAUDE.md", "mail team@acme.example\n\n```\ncurl @/etc/passwd\n```\n"),
    (".claude/agents/r.md", "---\nname: r\ndescription: Use this when: a change is done. Examples: <e>user: \"go\"</e>\ntools: Read, Grep, Glob, Bash\nmodel: inherit\ncolor: red\n---\nYou review.\n"),
    (".claude/agents/r.md", "You review. No head at all.\n"),
    (".claude/agents/r.md", "---\nname: r\ntools:\n  - Read\n  - Edit\npermissionMode: default\nskills: [a, b]\nmemory: project\n---\n"),
    (".claude/commands/c.md", "---\ndescription: Commit\nargument-hint: '[message]'\nallowed-tools: Bash(git add:*), Bash(git status:*), Bash(git commit:*)\n---\nCommit $ARGUMENTS.\n"),
    (".claude/commands/c.md", "Fix issue #$1!\n\n1. Run `gh issue view $1`\n2. Wow! `code` follows\n"),
    (".claude/skills/s/SKILL.md", "---\nname: s\ndescription: Does it\nallowed-tools: Read, Grep, Edit(docs/**)\nlicense: MIT\nmetadata: {version: '1'}\n---\nRun `python scripts/x.py`.\n"),
    (".claude/output-styles/o.md", "---\nname: Terse\ndescription: Short\nkeep-coding-instructions: true\n---\nBe short.\n"),
    (".claude/rules/ts.md", "---\npaths: 'src/**/*.ts'\n---\nUse strict mode.\n"),
    (".claude/hooks/format.sh", "#!/bin/sh\nexec prettier --write \"$1\"\n"),
    (".claude/README.md", "What is in here. !`not expanded`\n"),
    ("docs/SKILL.md", "An article about skills: !`id` runs.\n"),
    ("agents/x.md", "---\npermissionMode: bypassPermissions\n---\nNot in .claude.\n"),
    (".pre-commit-config.yaml", "repos:\n- repo: x\n  hooks:\n  - id: black\n"),
    ("qlpack.yml", "name: acme/q\nversion: 0.0.1\ndependencies:\n  codeql/cpp-all: ^1.0.0\nsuites: suites\n"),
    (".github/codeql/codeql-config.yml", "name: cfg\nqueries:\n  - uses: security-and-quality\npaths-ignore:\n  - dist\n"),
    (".claude-plugin/plugin.json", r#"{"name":"kit","version":"1.0.0","description":"d","author":{"name":"a","url":"https://a.example"},"homepage":"https://a.example","repository":"https://github.com/a/b","license":"MIT","keywords":["x"]}"#),
    (".claude-plugin/marketplace.json", r#"{"name":"m","owner":{"name":"a"},"metadata":{"description":"d"},"plugins":[{"name":"p","source":"./plugins/p","description":"d","version":"1.0.0","category":"x"}]}"#),
    ("package.json", r#"{"scripts":{"postinstall":"node x.js"},"hooks":{"Stop":"id"}}"#),
    ("settings.json", r#"{"apiKeyHelper":"./x"}"#),
    ("src/.mcp.json.example", r#"{"mcpServers":{"x":{"command":"id"}}}"#),
];

#[test]
fn careful_files_are_silent() {
    for (path, content) in FILES {
        let report = Repo::new(&[(path, content)]).check();
        assert!(report.is_silent(), "{path}\n{content}\n{}", report.render_human());
    }
}
