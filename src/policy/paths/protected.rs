//! What must not be written: what runs or is obeyed later, what belongs to the system or to somebody else.

use super::runs::{
    AGENT_DIRS, AGENT_NAMES, AGENT_RUNS, AGENT_TOP_NAMES, CI_RUNS, GIT_HOOKS, HOME_CALM, HOME_DIRS,
    HOME_STARTUP, RUNS_DOT_ENDS, RUNS_ENDS, RUNS_NAMES, RUNS_RUNS, RUNS_STEMS, TOOL_NAMES, TOOL_RUNS,
};
use super::{Protected, in_project, is_scratch, parts};
use crate::policy::Scope;
use crate::policy::custom::core;
use std::path::Path;

const AGENT: Protected = "a file that an agent obeys";
const GIT: Protected = "git's own configuration, hooks or objects";
const CI: Protected = "a file that continuous integration runs";
const RUNS: Protected = "a file that runs by itself";
const STARTUP: Protected = "a start-up or configuration file of the operator";
const AGENT_TOP: Protected = "a file that some agents obey";
const TOOL: Protected = "a setting of a tool that can make it run something";
const HOME_DOT: Protected = "a hidden file of the operator's home";

/// Whether a person may agree to a write that [`protected`] names for this reason; the others are denied.
pub fn protected_asks(why: &str) -> bool {
    [AGENT_TOP, TOOL, HOME_DOT, MEMORY].contains(&why)
}

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

/// Notes that the client writes for its own later sessions.
const MEMORY: Protected = "a note that later sessions obey";

/// What the built-in policy protects.
fn built_in(path: &Path, scope: &Scope) -> Option<Protected> {
    let folded = parts(path);
    let refs: Vec<&str> = folded.iter().map(String::as_str).collect();
    if refs.windows(4).any(|w| matches!(w, [".claude", "projects", _, "memory"])) {
        return Some(MEMORY);
    }
    if let Some(rest) = agent_scratch(&refs) {
        // A worktree's `.git` is a file that says where its repository is.
        return by_name(rest, true).or_else(|| by_tool(rest, rest.len() == 1));
    }
    // What is the project's own `.git` is a directory already; one below it would be another repository.
    let inner =
        path.parent().is_some_and(|p| p != scope.project && p != scope.cwd) && !is_scratch(path, scope);
    by_name(&refs, inner)
        .or_else(|| by_place(path, &refs, scope))
        .or_else(|| by_tool(&refs, at_top(path, scope)))
        .or_else(|| hidden_in_home(path, &refs, scope))
}

/// Whether names that only count at the top of a project count for `path`.
fn at_top(path: &Path, scope: &Scope) -> bool {
    !is_scratch(path, scope) && (!in_project(path, scope) || path.parent() == Some(scope.project.as_path()))
}

/// Whether the names of a path hold one of these runs; `*` is any name.
fn holds(refs: &[&str], runs: &[&[&str]]) -> bool {
    runs.iter().any(|run| {
        refs.windows(run.len()).any(|w| w.iter().zip(*run).all(|(name, r)| *r == "*" || name == r))
    })
}

/// What is protected wherever it lies. `git_file`: a `.git` itself counts.
fn by_name(refs: &[&str], git_file: bool) -> Option<Protected> {
    let name = *refs.last()?;
    if AGENT_NAMES.contains(&name) || refs.iter().any(|p| AGENT_DIRS.contains(p)) || holds(refs, AGENT_RUNS) {
        return Some(AGENT);
    }
    if of_git(refs, git_file) {
        return Some(GIT);
    }
    if holds(refs, CI_RUNS) {
        return Some(CI);
    }
    let package_hook =
        name.ends_with(".pth") && refs.iter().any(|p| matches!(*p, "site-packages" | "dist-packages"));
    if RUNS_NAMES.contains(&name) || runs_by_stem(name) || holds(refs, RUNS_RUNS) || package_hook {
        return Some(RUNS);
    }
    None
}

/// Whether git reads it as its own: what lies in `.git`, a file of that name, and what a bare repository obeys.
fn of_git(refs: &[&str], git_file: bool) -> bool {
    if let Some(at) = refs.iter().position(|p| *p == ".git") {
        return match refs.get(at + 1..).unwrap_or_default() {
            [] => git_file,
            ["commit_editmsg" | "merge_msg" | "description", ..] | ["info", "exclude"] => false,
            _ => true,
        };
    }
    refs.iter().position(|p| p.len() > 4 && p.ends_with(".git")).is_some_and(|at| {
        matches!(
            refs.get(at + 1..).unwrap_or_default(),
            ["config" | "config.worktree" | "head" | "hooks" | "modules" | "worktrees", ..]
                | ["info", "attributes" | "grafts"]
                | ["objects", "info", ..]
        )
    })
}

/// A stem of [`RUNS_STEMS`] with an ending of settings.
fn runs_by_stem(name: &str) -> bool {
    let fits = |stem: &str, end: &str| {
        RUNS_STEMS.contains(&stem)
            && (RUNS_ENDS.contains(&end) || stem.starts_with('.') && RUNS_DOT_ENDS.contains(&end))
    };
    fits(name, "") || name.rsplit_once('.').is_some_and(|(stem, end)| fits(stem, end))
}

/// What a person may reasonably want changed although a tool or an agent obeys it.
fn by_tool(refs: &[&str], top: bool) -> Option<Protected> {
    let name = *refs.last()?;
    if top && AGENT_TOP_NAMES.contains(&name) {
        return Some(AGENT_TOP);
    }
    let hook = matches!(refs, [.., "hooks", n] if GIT_HOOKS.contains(n));
    (hook || TOOL_NAMES.contains(&name) || holds(refs, TOOL_RUNS)).then_some(TOOL)
}

/// The names of `path` below the operator's home or root's.
fn below_home<'a>(path: &Path, refs: &'a [&'a str], scope: &Scope) -> Option<&'a [&'a str]> {
    [scope.home.as_path(), Path::new("/root")].iter().find_map(|home| {
        path.starts_with(home).then(|| refs.get(home.components().count().saturating_sub(1)..)).flatten()
    })
}

/// What is protected because of where it lies.
fn by_place(path: &Path, refs: &[&str], scope: &Scope) -> Option<Protected> {
    let name = *refs.last()?;
    if let Some(rest) = below_home(path, refs, scope) {
        let startup = matches!(rest, [one] if HOME_STARTUP.contains(one));
        if startup || HOME_DIRS.iter().any(|d| rest.starts_with(d)) {
            return Some(STARTUP);
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
    system(refs)
}

/// A hidden file of the home outside the project: settings of some program, nearly always.
fn hidden_in_home(path: &Path, refs: &[&str], scope: &Scope) -> Option<Protected> {
    let rest = below_home(path, refs, scope)?;
    let hidden = rest.first().is_some_and(|n| n.starts_with('.'));
    let own = in_project(path, scope) || path == scope.project;
    (hidden && !own && !HOME_CALM.iter().any(|d| rest.starts_with(d))).then_some(HOME_DOT)
}

/// What lies below a part of `.claude` that the client itself uses as scratch, and is judged by itself: a worktree is a
/// project.
fn agent_scratch<'a>(parts: &'a [&'a str]) -> Option<&'a [&'a str]> {
    let at = parts.iter().position(|p| *p == ".claude")?;
    let below = match *parts.get(at + 1)? {
        "plans" | "todos" | "tmp" => parts.get(at + 2..)?,
        "worktrees" => parts.get(at + 3..).unwrap_or_default(),
        _ => return None,
    };
    Some(agent_scratch(below).unwrap_or(below))
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
