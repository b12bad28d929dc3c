//! Granted paths: resolved once, and cloned by what they were then.

use crate::sandbox::env::HOME;
use crate::sandbox::error::Error;
use crate::sandbox::spec::{Access, Grant};
use crate::sandbox::sys;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::OpenTreeFlags;
use std::path::{Path, PathBuf};

/// Places that grants can't replace.
const RESERVED: [&str; 9] = ["/", "/proc", "/sys", "/dev", "/dev/pts", "/dev/shm", "/usr", "/etc", HOME];

/// A grant whose path is known.
pub struct Resolved {
    pub given: PathBuf,
    pub path: PathBuf,
    pub access: Access,
    pub directory: bool,
    pub id: (u64, u64),
}

/// Each of `links` where it really is, with what it holds. One that is none is an error.
pub fn links(links: &[PathBuf]) -> Result<Vec<(PathBuf, PathBuf)>, Error> {
    let one = |path: &PathBuf| {
        let fail = |reason| Error::Grant { path: path.clone(), reason };
        let given = std::path::absolute(path).map_err(fail)?;
        let at = match (given.parent(), given.file_name()) {
            (Some(parent), Some(name)) => parent.canonicalize().map_err(fail)?.join(name),
            _ => return Err(fail(std::io::ErrorKind::InvalidInput.into())),
        };
        let target = at.read_link().map_err(fail)?;
        Ok((at, target))
    };
    links.iter().map(one).collect()
}

/// Resolves every grant once; parents before what is below them, one entry a path (the last one given wins).
pub fn resolve_grants(grants: &[Grant]) -> Result<Vec<Resolved>, Error> {
    let mut resolved: Vec<Resolved> = Vec::with_capacity(grants.len());
    for grant in grants {
        let fail = |reason| Error::Grant { path: grant.path.clone(), reason };
        let given = std::path::absolute(&grant.path).map_err(fail)?;
        let path = given.canonicalize().map_err(fail)?;
        if RESERVED.iter().any(|reserved| Path::new(reserved) == path) || path.starts_with("/proc") {
            return Err(Error::Reserved { path });
        }
        let metadata = path.metadata().map_err(fail)?;
        let id = file_id(&path).map_err(fail)?;
        resolved.retain(|r| r.path != path);
        resolved.push(Resolved { given, path, access: grant.access, directory: metadata.is_dir(), id });
    }
    resolved.sort_by_key(|r| r.path.components().count());
    Ok(resolved)
}

pub fn file_id(path: &Path) -> std::io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().map(|m| (m.dev(), m.ino()))
}

/// Clones the tree at `path` (which must still be file `id`) with `attributes`; id-mapped if the file system can.
pub fn clone_tree(
    path: &Path,
    id: (u64, u64),
    attributes: u64,
    idmap: Option<&OwnedFd>,
) -> rustix::io::Result<(OwnedFd, bool)> {
    let tree = open_tree_checked(path, id)?;
    if let Some(map) = idmap
        && sys::mount_setattr(tree.as_fd(), attributes, true, Some(map.as_fd())).is_ok()
    {
        return Ok((tree, true));
    }
    sys::mount_setattr(tree.as_fd(), attributes, true, None)?;
    Ok((tree, false))
}

/// A detached clone of the tree at `path`, if that is file `id` and no component is a symbolic link.
pub fn open_tree_checked(path: &Path, id: (u64, u64)) -> rustix::io::Result<OwnedFd> {
    let fd = rustix::fs::openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
        rustix::fs::ResolveFlags::NO_SYMLINKS | rustix::fs::ResolveFlags::NO_MAGICLINKS,
    )?;
    let stat = rustix::fs::fstat(&fd)?;
    if (stat.st_dev, stat.st_ino) != id {
        return Err(rustix::io::Errno::STALE);
    }
    rustix::mount::open_tree(
        &fd,
        c"",
        OpenTreeFlags::AT_EMPTY_PATH
            | OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_s_own_places_cannot_be_granted() {
        for path in ["/", "/proc", "/proc/self", "/dev", "/etc"] {
            let grants = [Grant { path: path.into(), access: Access::ReadOnly }];
            assert!(matches!(resolve_grants(&grants), Err(Error::Reserved { .. })), "{path}");
        }
    }

    #[test]
    fn the_last_grant_of_a_path_wins_and_parents_come_first() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let grant = |path: &Path, access| Grant { path: path.into(), access };
        let resolved = resolve_grants(&[
            grant(&inner, Access::ReadWrite),
            grant(dir.path(), Access::ReadWrite),
            grant(dir.path(), Access::ReadOnly),
        ])
        .unwrap();
        assert_eq!(resolved.len(), 2);
        assert_eq!(resolved[0].access, Access::ReadOnly);
        assert!(resolved[1].path.starts_with(&resolved[0].path));
    }
}
