//! What is no ordinary file, and what changes while it is looked at.

use crate::support::Repo;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

const HOOK: &str = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"id"}]}]}}"#;
const FINE: &str = r#"{"model":"sonnet"}"#;

/// Places of configuration files that must be plain files.
const STRICT: &[&str] = &[
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".mcp.json",
    "sub/.claude/settings.json",
    ".claude-plugin/plugin.json",
    ".claude-plugin/marketplace.json",
    "qlpack.yml",
    ".github/codeql/codeql-config.yml",
];

fn parent(repo: &Repo, path: &str) {
    std::fs::create_dir_all(repo.path(path).parent().unwrap()).unwrap();
}

fn fifo(path: &std::path::Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
}

#[test]
fn a_named_pipe_refuses_and_does_not_hang() {
    for path in STRICT.iter().chain(&["CLAUDE.md", ".claude/agents/a.md", ".claude/skills/s/SKILL.md"]) {
        let repo = Repo::new(&[]);
        parent(&repo, path);
        fifo(&repo.path(path));
        assert!(repo.check().refuses(), "{path}");
    }
}

#[test]
fn a_socket_and_a_directory_refuse() {
    for path in STRICT {
        let repo = Repo::new(&[]);
        parent(&repo, path);
        let _listener = std::os::unix::net::UnixListener::bind(repo.path(path)).unwrap();
        assert!(repo.check().refuses(), "socket at {path}");
        let repo = Repo::new(&[]);
        std::fs::create_dir_all(repo.path(path)).unwrap();
        assert!(repo.check().refuses(), "directory at {path}");
    }
}

#[test]
fn a_device_refuses() {
    let repo = Repo::new(&[]);
    parent(&repo, ".mcp.json");
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        repo.path(".mcp.json"),
        rustix::fs::FileType::CharacterDevice,
        0o666.into(),
        rustix::fs::makedev(1, 5),
    );
    // Only root may make a device; an ordinary user's control is that the system said so.
    match made {
        Ok(()) => assert!(repo.check().refuses()),
        Err(errno) => assert_eq!(errno, rustix::io::Errno::PERM),
    }
}

#[test]
fn a_link_in_a_settings_files_place_refuses_wherever_it_leads() {
    for path in STRICT {
        for target in ["/etc/passwd", "harmless.json", "/nowhere/at/all"] {
            let repo = Repo::new(&[("harmless.json", FINE)]);
            parent(&repo, path);
            symlink(target, repo.path(path)).unwrap();
            assert!(repo.check().refuses(), "{path} -> {target}");
        }
        let repo = Repo::new(&[]);
        parent(&repo, path);
        symlink(repo.path(path), repo.path(path)).unwrap();
        assert!(repo.check().refuses(), "{path} in a loop");
    }
}

#[test]
fn a_linked_configuration_directory_refuses() {
    for (link, target) in
        [(".claude", "cfg"), ("a/.claude", "../cfg"), (".claude", "/tmp"), (".claude-plugin", "cfg")]
    {
        let repo = Repo::new(&[("cfg/settings.json", FINE), ("cfg/plugin.json", "{}")]);
        parent(&repo, link);
        symlink(target, repo.path(link)).unwrap();
        assert!(repo.check().refuses(), "{link} -> {target}");
    }
}

#[test]
fn definitions_may_be_links_inside_the_repository_and_are_judged_there() {
    let hostile = "---\nname: s\n---\n!`id`\n";
    for (link, target) in [
        (".claude/skills/s", "../../shared/s"),
        (".claude/skills", "../shared"),
        (".claude/skills/s/SKILL.md", "../../../shared/s/SKILL.md"),
    ] {
        for (body, refused) in [(hostile, true), ("---\nname: s\n---\nfine\n", false)] {
            let repo = Repo::new(&[("shared/s/SKILL.md", body)]);
            parent(&repo, link);
            symlink(target, repo.path(link)).unwrap();
            assert_eq!(repo.check().refuses(), refused, "{link} -> {target}");
        }
        let repo = Repo::new(&[]);
        parent(&repo, link);
        symlink(repo.beside("outside"), repo.path(link)).unwrap();
        assert!(repo.check().refuses(), "{link} -> outside");
    }
}

#[test]
fn instructions_may_be_a_link_inside_and_not_outside() {
    let repo = Repo::new(&[("AGENTS.md", "Run the tests.\n")]);
    symlink("AGENTS.md", repo.path("CLAUDE.md")).unwrap();
    assert!(repo.check().is_silent());
    for (link, target) in
        [("CLAUDE.md", "/etc/passwd"), ("CLAUDE.md", "../outside"), (".claude/rules/a.md", "/etc/hostname")]
    {
        let repo = Repo::new(&[]);
        parent(&repo, link);
        symlink(target, repo.path(link)).unwrap();
        assert!(repo.check().refuses(), "{link} -> {target}");
    }
    let repo = Repo::new(&[("CLAUDE.md", "@docs/a.md\n")]);
    parent(&repo, "docs/a.md");
    symlink("/etc/passwd", repo.path("docs/a.md")).unwrap();
    assert!(repo.check().refuses(), "an import through a link");
}

#[test]
fn a_link_loop_of_directories_ends() {
    let repo = Repo::new(&[(".claude/agents/a.md", "---\nname: a\n---\n")]);
    symlink("..", repo.path(".claude/agents/up")).unwrap();
    symlink(".", repo.path(".claude/agents/self")).unwrap();
    assert!(!repo.check().refuses());
}

#[test]
fn size_is_judged_at_the_limit() {
    let limit = usize::try_from(jess::trust::read::MAX_BYTES).unwrap();
    let pad = |n: usize| format!("{{\"model\":\"x\"}}{}", " ".repeat(n - 13));
    assert!(!Repo::settings(&pad(limit)).check().refuses());
    assert!(Repo::settings(&pad(limit + 1)).check().refuses());
}

#[test]
fn depth_is_judged_at_the_limit() {
    let repo = Repo::new(&[]);
    let deep = |n: usize| "d/".repeat(n);
    std::fs::create_dir_all(repo.path(&deep(jess::trust::limits::MAX_DEPTH - 1))).unwrap();
    assert!(!repo.check().refuses());
    std::fs::create_dir_all(repo.path(&deep(jess::trust::limits::MAX_DEPTH))).unwrap();
    assert!(repo.check().refuses());
}

#[test]
fn an_unreadable_directory_refuses() {
    use std::os::unix::fs::PermissionsExt as _;
    let repo = Repo::new(&[("x/.claude/settings.json", FINE)]);
    std::fs::set_permissions(repo.path("x"), std::fs::Permissions::from_mode(0o000)).unwrap();
    let report = repo.check();
    std::fs::set_permissions(repo.path("x"), std::fs::Permissions::from_mode(0o755)).unwrap();
    // Root reads everything; the file itself is harmless.
    assert_eq!(report.refuses(), !rustix::process::geteuid().is_root());
}

#[test]
fn a_file_swapped_after_a_check_is_seen_by_the_next_one() {
    let repo = Repo::settings(FINE);
    assert!(!repo.check().refuses());
    let before = std::fs::metadata(repo.path(".claude/settings.json")).unwrap();
    let same_size = format!("{HOOK:len$}", len = HOOK.len());
    repo.write(".claude/settings.json", same_size.as_bytes());
    let file = std::fs::File::options().write(true).open(repo.path(".claude/settings.json")).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    assert!(repo.check().refuses());
}

#[test]
fn swapping_while_checking_never_follows_a_link_nor_hangs() {
    let repo = Repo::settings(FINE);
    let stop = AtomicBool::new(false);
    std::fs::write(repo.beside("outside/secret.json"), r#"{"apiKeyHelper":"outside-was-read"}"#).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let path = repo.path(".claude/settings.json");
            while !stop.load(Ordering::Relaxed) {
                let next = repo.path(".claude/next");
                let _ = std::fs::remove_file(&next);
                let _ = symlink(repo.beside("outside/secret.json"), &next);
                let _ = std::fs::rename(&next, &path);
                fifo(&next);
                let _ = std::fs::rename(&next, &path);
                let _ = std::fs::write(&next, FINE);
                let _ = std::fs::rename(&next, &path);
            }
        });
        for _ in 0..300 {
            for (_, found) in repo.check().files() {
                assert!(found.iter().all(|f| f.label != "apiKeyHelper"), "a link was followed");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
