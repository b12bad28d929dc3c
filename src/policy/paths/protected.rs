//! What must not be written: what runs or is obeyed later, what belongs to the system or to somebody else.

use super::names::{AGENT_DIRS, AGENT_NAMES, HOME_DIRS, HOME_STARTUP, RUNS_NAMES};
use super::{Protected, fold, is_scratch, parts};
use crate::policy::Scope;
use crate::policy::custom::core;
use std::path::Path;

/// What a write to `path` (as [`super::meanings`] gives it) would change that it must not, if anything.
pub fn protected(path: &Path, scope: &Scope) -> Option<Protected> {
    let custom = &scope.custom;
    if custom.outside_write(path, is_scratch(path, scope)) {
        return Some("outside the places that the configuration lets be written");
    }
    if custom.protected.fit(path) {
        return Some("protected by the configuration");
    }
    built_in(path, scope).filter(|_| core(path) || !custom.protected_except.fit(path))
}

/// What the built-in policy protects.
fn built_in(path: &Path, scope: &Scope) -> Option<Protected> {
    let folded = parts(path);
    let refs: Vec<&str> = folded.iter().map(String::as_str).collect();
    let name = *refs.last()?;
    if AGENT_NAMES.contains(&name) || refs.iter().any(|p| AGENT_DIRS.contains(p)) {
        if agent_scratch(&refs) {
            return None;
        }
        return Some("a file that an agent obeys");
    }
    if let Some(at) = refs.iter().position(|p| *p == ".git")
        && !matches!(refs.get(at + 1), None | Some(&"commit_editmsg" | &"merge_msg" | &"description"))
        && refs.get(at + 1..) != Some(&["info", "exclude"])
    {
        return Some("git's own configuration, hooks or objects");
    }
    if refs.windows(2).any(|w| {
        matches!(
            w,
            [".github", "workflows" | "actions"]
                | [".circleci", _]
                | [".buildkite", _]
                | [".woodpecker", _]
                | [".gitea", "workflows"]
                | [".forgejo", "workflows"]
        )
    }) {
        return Some("a file that continuous integration runs");
    }
    if RUNS_NAMES.contains(&name) {
        return Some("a file that runs by itself");
    }
    if refs.iter().any(|p| matches!(*p, ".husky" | ".githooks" | ".devcontainer"))
        || refs.windows(2).any(|w| {
            matches!(
                w,
                [".cargo", "config" | "config.toml"]
                    | [".vscode", "tasks.json" | "settings.json" | "launch.json" | "mcp.json"]
                    | [".idea", "workspace.xml" | "runconfigurations"]
                    | ["site-packages" | "dist-packages", _]
            ) && (w[0] != "site-packages" && w[0] != "dist-packages" || name.ends_with(".pth"))
        })
    {
        return Some("a file that runs by itself");
    }
    for home in [scope.home.as_path(), Path::new("/root")] {
        if let Ok(rest) = path.strip_prefix(home) {
            let rest: Vec<String> =
                rest.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
            if rest.len() == 1 && HOME_STARTUP.contains(&fold(&rest[0]).as_str()) {
                return Some("a start-up or configuration file of the operator");
            }
            if HOME_DIRS
                .iter()
                .any(|d| rest.len() >= d.len() && d.iter().zip(&rest).all(|(a, b)| fold(a) == fold(b)))
            {
                return Some("a start-up or configuration file of the operator");
            }
        }
    }
    if name == "authorized_keys" || name == "authorized_keys2" {
        return Some("a file that grants access");
    }
    if scope.home.parent() == path.parent() && path != scope.home && path.parent() == Some(Path::new("/home"))
    {
        return Some("another user's home");
    }
    if path.starts_with("/root") && !scope.home.starts_with("/root") {
        return Some("another user's home");
    }
    system(&refs)
}

/// Parts of `.claude` that the client itself uses as scratch.
fn agent_scratch(parts: &[&str]) -> bool {
    parts
        .iter()
        .position(|p| *p == ".claude")
        .is_some_and(|at| matches!(parts.get(at + 1), Some(&"plans" | &"worktrees" | &"todos" | &"tmp")))
        && !AGENT_NAMES.contains(parts.last().unwrap_or(&""))
}

fn system(parts: &[&str]) -> Option<Protected> {
    match parts {
        [] => Some("the root directory"),
        [
            "etc" | "usr" | "bin" | "sbin" | "lib" | "lib32" | "lib64" | "boot" | "sys" | "opt" | "system"
            | "library" | "efi",
            ..,
        ] => Some("a system file"),
        ["var", "spool", ..]
        | ["var", "lib", ..]
        | ["var", "www", ..]
        | ["var"]
        | ["var", "log", ..]
        | ["home"] => Some("a system file"),
        ["proc", rest @ ..] if !matches!(rest, [_, "fd", ..]) => Some("a kernel interface"),
        ["dev", d, ..] => (!matches!(
            *d,
            "null"
                | "zero"
                | "full"
                | "stdout"
                | "stderr"
                | "stdin"
                | "tty"
                | "fd"
                | "shm"
                | "pts"
                | "tcp"
                | "udp"
                | "random"
                | "urandom"
        ))
        .then_some("a device"),
        ["run", "user", _, rest @ ..] => {
            matches!(rest, ["jess", ..] | ["systemd", ..] | ["bus"]).then_some("a system socket")
        }
        ["run", ..] => Some("a system file"),
        _ => None,
    }
}
