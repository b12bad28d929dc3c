//! The private scratch directory of tier `landlock`: HOME and TMPDIR of one run.
//!
//! It is `jess-UID/RANDOM` in the operator's directory for temporary files, open to nobody else, and locked while the
//! run lives. Whoever ends the run removes it: the housekeeper inside, also when jess was killed. Where both were
//! killed at once, the next start finds the directory unlocked and removes it.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// Names that are tried before giving up.
const TRIES: usize = 16;

/// Directories left by others that one start removes at most.
const SWEPT_AT_ONCE: usize = 8;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// One run's directory.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    name: CString,
    parent: OwnedFd,
    /// Holds the lock.
    own: OwnedFd,
}

impl Scratch {
    /// Makes a directory with `home` and `tmp` in it, below `base`.
    pub fn create(base: &Path) -> Result<Scratch, Errno> {
        let uid = rustix::process::geteuid();
        let shared = base.join(format!("jess-{}", uid.as_raw()));
        let (parent_path, parent) = match private_directory(&shared, uid) {
            Ok(parent) => (shared, parent),
            // Somebody else has that name: then a place of one's own, without neighbours to sweep.
            Err(_) => {
                let own = base.join(format!("jess-{}-{}", uid.as_raw(), random()?));
                rustix::fs::mkdir(&own, Mode::RWXU)?;
                let parent = private_directory(&own, uid)?;
                (own, parent)
            }
        };
        for _ in 0..TRIES {
            let name = random()?;
            let c_name = CString::new(name.as_str()).map_err(|_| Errno::INVAL)?;
            match rustix::fs::mkdirat(&parent, &c_name, Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(errno),
            }
            // Between the two calls a sweep may have taken it for a leftover.
            let Ok(own) = rustix::fs::openat(&parent, &c_name, DIRECTORY, Mode::empty()) else { continue };
            if rustix::fs::flock(&own, FlockOperation::NonBlockingLockExclusive).is_err()
                || rustix::fs::fstat(&own)?.st_nlink == 0
            {
                continue;
            }
            for part in ["home", "tmp"] {
                rustix::fs::mkdirat(&own, part, Mode::RWXU)?;
            }
            return Ok(Scratch { path: parent_path.join(name), name: c_name, parent, own });
        }
        Err(Errno::EXIST)
    }

    /// The whole of it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Another descriptor of it.
    pub fn descriptor(&self) -> Result<OwnedFd, Errno> {
        rustix::io::fcntl_dupfd_cloexec(&self.own, 0)
    }

    /// What it is removed by.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.parent.as_fd(), self.own.as_fd()]
    }

    /// HOME of the run.
    pub fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    /// TMPDIR of the run.
    pub fn tmp(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// Removes the directory with all that the run left in it. Nothing of the run may be alive.
    pub fn remove(&self) {
        let _ = empty(self.own.as_fd());
        let _ = rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR);
    }

    /// Removes directories that runs left whose jess and housekeeper were both killed.
    pub fn sweep(&self) {
        let Ok(entries) = Dir::read_from(&self.parent) else { return };
        let stale = entries.filter_map(Result::ok).filter(|e| {
            e.file_name() != self.name.as_c_str() && !matches!(e.file_name().to_bytes(), b"." | b"..")
        });
        let mut removed = 0;
        for entry in stale {
            let name = entry.file_name();
            let Ok(dir) = rustix::fs::openat(&self.parent, name, DIRECTORY, Mode::empty()) else { continue };
            if rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive).is_ok() {
                let _ = empty(dir.as_fd());
                let _ = rustix::fs::unlinkat(&self.parent, name, AtFlags::REMOVEDIR);
                removed += 1;
            }
            if removed == SWEPT_AT_ONCE {
                return;
            }
        }
    }
}

/// Opens the directory at `path`, made if needed. It must be this user's, and open to no one else.
fn private_directory(path: &Path, uid: rustix::fs::Uid) -> Result<OwnedFd, Errno> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    let dir = rustix::fs::open(path, DIRECTORY, Mode::empty())?;
    let stat = rustix::fs::fstat(&dir)?;
    if stat.st_uid != uid.as_raw() || stat.st_mode & 0o077 != 0 {
        return Err(Errno::ACCESS);
    }
    Ok(dir)
}

fn random() -> Result<String, Errno> {
    let mut bytes = [0u8; 8];
    getrandom::fill(&mut bytes).map_err(|_| Errno::IO)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Removes everything in `top`. Whoever filled it chose names, modes and depth: directories are opened one at a time
/// and their own directories are moved up into `top` first, so that neither stack nor descriptors grow with depth.
fn empty(top: BorrowedFd<'_>) -> Result<(), Errno> {
    let _ = rustix::fs::fchmod(top, Mode::RWXU);
    let mut moved = 0u64;
    // Each round either removes a directory or ends.
    loop {
        let mut left = false;
        for (name, directory) in entries(top)? {
            if !directory {
                let _ = rustix::fs::unlinkat(top, &name, AtFlags::empty());
                continue;
            }
            if rustix::fs::unlinkat(top, &name, AtFlags::REMOVEDIR).is_ok() {
                continue;
            }
            let _ = rustix::fs::chmodat(top, &name, Mode::RWXU, AtFlags::empty());
            let dir = rustix::fs::openat(top, &name, DIRECTORY, Mode::empty())?;
            for (below, directory) in entries(dir.as_fd())? {
                if !directory {
                    rustix::fs::unlinkat(&dir, &below, AtFlags::empty())?;
                } else if rustix::fs::unlinkat(&dir, &below, AtFlags::REMOVEDIR).is_err() {
                    // Moving a directory rewrites its "..", so it must be writable itself.
                    let _ = rustix::fs::chmodat(&dir, &below, Mode::RWXU, AtFlags::empty());
                    loop {
                        moved += 1;
                        let up = format!("up-{moved}");
                        match rustix::fs::renameat_with(
                            &dir,
                            &below,
                            top,
                            &up,
                            rustix::fs::RenameFlags::NOREPLACE,
                        ) {
                            Err(Errno::EXIST) => {}
                            other => break other?,
                        }
                    }
                    left = true;
                }
            }
            rustix::fs::unlinkat(top, &name, AtFlags::REMOVEDIR)?;
        }
        if !left {
            return Ok(());
        }
    }
}

/// Names in `dir`, and whether each is a directory.
fn entries(dir: BorrowedFd<'_>) -> Result<Vec<(CString, bool)>, Errno> {
    let mut all = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let directory = match entry.file_type() {
            FileType::Directory => true,
            FileType::Unknown => rustix::fs::statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory),
            _ => false,
        };
        all.push((entry.file_name().to_owned(), directory));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn whatever_a_run_leaves_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(base.path()).unwrap();
        assert_eq!(scratch.home().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let outside = base.path().join("outside");
        std::fs::write(&outside, "stays").unwrap();
        std::os::unix::fs::symlink(base.path(), scratch.tmp().join("link")).unwrap();
        std::fs::write(scratch.tmp().join("up-1"), "in the way").unwrap();
        let locked = scratch.tmp().join("a/b");
        std::fs::create_dir_all(locked.join("c")).unwrap();
        std::fs::set_permissions(&locked, PermissionsExt::from_mode(0o000)).unwrap();
        // Deeper than any path may be long.
        let mut dir = rustix::fs::open(scratch.home(), DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&dir, "d", Mode::RWXU).unwrap();
            dir = rustix::fs::openat(&dir, "d", DIRECTORY, Mode::empty()).unwrap();
        }
        drop(dir);
        scratch.remove();
        assert!(!scratch.path().exists());
        assert_eq!(std::fs::read_to_string(outside).unwrap(), "stays");
    }

    #[test]
    fn a_directory_whose_run_is_gone_is_swept_and_a_live_one_stays() {
        let base = tempfile::tempdir().unwrap();
        let gone = Scratch::create(base.path()).unwrap();
        let path = gone.path().to_path_buf();
        drop(gone);
        let live = Scratch::create(base.path()).unwrap();
        let next = Scratch::create(base.path()).unwrap();
        next.sweep();
        assert!(!path.exists() && live.path().exists() && next.path().exists());
    }

    #[test]
    fn a_parent_that_is_somebody_else_s_or_a_link_is_not_used() {
        let base = tempfile::tempdir().unwrap();
        let elsewhere = base.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let uid = rustix::process::geteuid().as_raw();
        std::os::unix::fs::symlink(&elsewhere, base.path().join(format!("jess-{uid}"))).unwrap();
        let scratch = Scratch::create(base.path()).unwrap();
        assert!(scratch.home().is_dir());
        assert_eq!(std::fs::read_dir(elsewhere).unwrap().count(), 0);
    }
}
