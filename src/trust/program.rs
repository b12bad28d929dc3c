//! Which program is about to run: resolved once to a real path, and checked so that nothing shadows it.
//!
//! A program is refused when it lies in the target, when it or a directory on its way can be written by everybody
//! (a sticky directory such as `/tmp` is fine while the next step belongs to root or to the caller), and when it
//! belongs to somebody who is neither root nor the caller. Started by root, jess accepts any owner, because root's
//! files are often another user's checkout; it says nothing about group-writable files, which are common there too.

use super::mask;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a program is not run.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("will not run {program}: {at} {reason}; install the program where only you or root can write")]
pub struct Error {
    program: String,
    at: String,
    reason: &'static str,
}

/// The real path of `program`, if nothing and nobody in `target`'s reach can stand in for it.
///
/// # Errors
/// [`struct@Error`], which names the path that is wrong.
pub fn vet(program: &Path, target: &Path) -> Result<PathBuf, Error> {
    let fail = |at: &Path, reason| Error { program: shown(program), at: shown(at), reason };
    let real = std::fs::canonicalize(program).map_err(|_| fail(program, "cannot be resolved"))?;
    let target = std::fs::canonicalize(target).map_err(|_| fail(target, "cannot be resolved"))?;
    if real.starts_with(&target) {
        return Err(fail(&real, "lies in the target"));
    }
    let me = rustix::process::geteuid();
    let ours = |uid: u32| me.is_root() || uid == 0 || uid == me.as_raw();
    let mut below: Option<u32> = None;
    for path in real.ancestors() {
        let meta = std::fs::symlink_metadata(path).map_err(|_| fail(path, "cannot be inspected"))?;
        let mode = meta.permissions().mode();
        let open = mode & 0o002 != 0;
        let sticky = mode & 0o1000 != 0;
        match below {
            None if !meta.is_file() => return Err(fail(path, "is no regular file")),
            None if open => return Err(fail(path, "can be written by everybody")),
            Some(_) if open && !sticky => return Err(fail(path, "can be written by everybody")),
            Some(owner) if open && owner != 0 && owner != me.as_raw() => {
                return Err(fail(
                    path,
                    "can be written by everybody, and the next step belongs to somebody else",
                ));
            }
            _ => {}
        }
        if !ours(meta.uid()) {
            return Err(fail(path, "belongs to somebody else"));
        }
        below = Some(meta.uid());
    }
    Ok(real)
}

fn shown(path: &Path) -> String {
    mask::path(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chmod(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        let (bin, target) = (top.path().join("bin"), top.path().join("target"));
        std::fs::create_dir(&bin).unwrap();
        std::fs::create_dir(&target).unwrap();
        std::fs::write(bin.join("tool"), "#!/bin/sh\n").unwrap();
        chmod(&bin.join("tool"), 0o755);
        (top, bin.join("tool"), target)
    }

    #[test]
    fn a_program_in_private_directories_is_resolved() {
        let (top, tool, target) = place();
        std::os::unix::fs::symlink(&tool, top.path().join("link")).unwrap();
        assert_eq!(vet(&top.path().join("link"), &target).unwrap(), tool.canonicalize().unwrap());
    }

    #[test]
    fn a_program_that_the_target_or_everybody_can_replace_is_refused() {
        let (_top, tool, target) = place();
        std::fs::copy(&tool, target.join("tool")).unwrap();
        assert_eq!(vet(&target.join("tool"), &target).unwrap_err().reason, "lies in the target");
        let (_top, tool, target) = place();
        chmod(&tool, 0o757);
        assert!(vet(&tool, &target).is_err());
        let (_top, tool, target) = place();
        chmod(tool.parent().unwrap(), 0o777);
        assert!(vet(&tool, &target).is_err());
        chmod(tool.parent().unwrap(), 0o1777);
        assert!(vet(&tool, &target).is_ok());
    }

    #[test]
    fn a_directory_is_no_program() {
        let (_top, tool, target) = place();
        assert!(vet(tool.parent().unwrap(), &target).is_err());
    }
}
