//! The Git pre-commit hook that runs `jess check --staged`.

use crate::exit::Exit;
use crate::sanitise;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installs the hook into the repository that holds `dir`, or the working directory.
pub fn run(dir: Option<&Path>) -> Exit {
    match install(dir) {
        Ok(path) => {
            say!("{}: commits are checked from now on", sanitise::path(&path));
            Exit::OK
        }
        Err(why) => {
            tell!("jess init: {}", sanitise::escape(&why, false));
            Exit::REFUSED
        }
    }
}

fn install(dir: Option<&Path>) -> Result<PathBuf, String> {
    let dir = dir.unwrap_or(Path::new("."));
    let mut git = Command::new("git");
    git.args(["rev-parse", "--path-format=absolute", "--git-path", "hooks"]).current_dir(dir);
    let out = git.output().map_err(|e| format!("asking git for its hooks directory: {e}; install git"))?;
    if !out.status.success() {
        return Err(format!("{} is in no Git repository; name one with --dir", sanitise::path(dir)));
    }
    let hooks = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim_end_matches('\n'));
    let jess = std::env::current_exe().map_err(|e| format!("asking for the path of jess: {e}"))?;
    install_pre_commit(&hooks, &jess)
}

/// The text of a Git pre-commit hook that runs `jess` over staged content; any fault blocks the commit.
pub fn pre_commit_script(jess: &Path) -> String {
    let quoted = jess.to_string_lossy().replace('\'', r"'\''");
    format!(
        "#!/bin/sh\n# installed by jess\n'{quoted}' check --staged --fail-on high\ncode=$?\n\
         case $code in 0|2) exit 0 ;; 1) echo 'jess: findings above; commit blocked' >&2; exit 1 ;;\n\
         *) echo \"jess: the check failed with $code; commit blocked\" >&2; exit 1 ;; esac\n"
    )
}

/// Writes the hook into `hooks_dir` with mode 0755; a hook that jess did not write is never replaced.
///
/// # Errors
/// When there is a foreign hook, or the file cannot be written.
pub fn install_pre_commit(hooks_dir: &Path, jess: &Path) -> Result<PathBuf, String> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = hooks_dir.join("pre-commit");
    if let Ok(have) = std::fs::read_to_string(&path)
        && !have.contains("# installed by jess")
    {
        return Err(format!(
            "{} is not ours; add `jess check --staged --fail-on high` to it",
            sanitise::path(&path)
        ));
    } else if path.symlink_metadata().is_ok_and(|m| !m.is_file()) {
        return Err(format!(
            "{} is not a file; remove it or use another hooks directory",
            sanitise::path(&path)
        ));
    }
    let fail = |e: std::io::Error| format!("writing {}: {e}", sanitise::path(&path));
    std::fs::create_dir_all(hooks_dir).map_err(fail)?;
    let new = hooks_dir.join(".pre-commit.jess-new");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o755)
        .open(&new)
        .map_err(fail)?;
    file.write_all(pre_commit_script(jess).as_bytes()).map_err(fail)?;
    std::fs::rename(&new, &path).map_err(fail)?;
    Ok(path)
}
