//! The layer around a command of a dispatched session, inside the session's own sandbox.
//!
//! The client and its commands share that sandbox, so without more a command could read the client's transcripts and
//! change its settings, or write into the descriptors of the process that seals its output. A Landlock domain of the
//! command's own takes both away: what the client and jess keep in the home is not granted, and a domain neither traces
//! nor looks into a process outside it (`/proc/PID/mem`, `environ`, `fd`). The network stays that of the session.
//!
//! | out of reach | how |
//! |---|---|
//! | `~/.claude`, `~/.claude.json`, `~/.config/anthropic`, `~/.local/state/jess`, `~/.config/jess` | not granted |
//! | other processes: signals, memory, environment, descriptors | the domain |
//! | the client's key, its messaging token and socket | taken out of the environment |
//!
//! The command gets a home of its own below the temporary directory.

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope, make_bitflags,
};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a command has no business with, below the home.
const HIDDEN: [&str; 5] =
    [".claude", ".claude.json", ".config/anthropic", ".local/state/jess", ".config/jess"];
/// Variables of the client's that a command does not get.
const TAKEN: [&str; 4] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_MESSAGING_SOCKET",
];
/// Most entries of one directory that are granted one by one.
const ENTRIES_MAX: usize = 4096;

/// Prepares the environment of `command`.
pub fn prepare(command: &mut Command) -> io::Result<()> {
    for name in TAKEN {
        command.env_remove(name);
    }
    let home = std::env::var_os("TMPDIR").map_or_else(|| "/tmp".into(), PathBuf::from).join("jess-home");
    std::fs::create_dir_all(&home)?;
    command.env("HOME", home);
    Ok(())
}

/// Puts the calling thread, and what it starts from now on, into the layer. Whether the kernel has what that needs.
pub fn enter(home: Option<OsString>) -> io::Result<bool> {
    let home = home.map_or_else(|| "/nonexistent".into(), PathBuf::from);
    // What the home really is: a link to it would be granted by the other name.
    let real = std::fs::canonicalize(&home).unwrap_or(home);
    let hidden: Vec<PathBuf> = HIDDEN.iter().map(|h| real.join(h)).collect();
    let failed = |e: landlock::RulesetError| io::Error::other(e.to_string());
    let all = AccessFs::from_all(ABI::V9);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .map_err(failed)?
        .scope(Scope::from_all(ABI::V9))
        .map_err(failed)?
        .create()
        .map_err(failed)?;
    // Names can be listed everywhere.
    let root = PathFd::new("/").map_err(|e| io::Error::other(e.to_string()))?;
    ruleset =
        ruleset.add_rule(PathBeneath::new(root, make_bitflags!(AccessFs::{ReadDir}))).map_err(failed)?;
    let mut granted = Vec::new();
    grant(Path::new("/"), &hidden, &mut granted);
    for path in granted {
        let Ok(fd) = PathFd::new(&path) else { continue };
        let rights = if path.is_dir() { all } else { AccessFs::from_file(ABI::V9) };
        ruleset = ruleset.add_rule(PathBeneath::new(fd, rights)).map_err(failed)?;
    }
    Ok(ruleset.restrict_self().map_err(failed)?.ruleset != RulesetStatus::NotEnforced)
}

/// The entries of `dir` that neither are hidden nor hold something hidden; of those that do, what is below.
fn grant(dir: &Path, hidden: &[PathBuf], out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.take(ENTRIES_MAX).flatten() {
        let path = entry.path();
        // A link grants nothing: what it leads to is granted by its own name, or not.
        if entry.file_type().is_ok_and(|t| t.is_symlink()) || hidden.contains(&path) {
            continue;
        }
        if hidden.iter().any(|h| h.starts_with(&path)) {
            grant(&path, hidden, out);
        } else {
            out.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_granted_but_what_is_hidden_and_no_link_leads_there() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for path in
            ["a/x", "home/.claude/t", "home/.config/anthropic/k", "home/.config/git/c", "home/.cargo/c"]
        {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        std::os::unix::fs::symlink("home/.claude", root.join("link")).unwrap();
        let hidden: Vec<PathBuf> = HIDDEN.iter().map(|h| root.join("home").join(h)).collect();
        let mut out = Vec::new();
        grant(&root, &hidden, &mut out);
        out.sort();
        let expected = ["a", "home/.cargo", "home/.config/git"].map(|p| root.join(p));
        assert_eq!(out, expected);
    }
}
