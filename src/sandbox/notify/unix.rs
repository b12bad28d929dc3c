//! AF_UNIX where it is open at all: sockets that the run has bound itself, below its grants for writing, and no other.

use super::Context;
use super::caller::{Caller, Object};
use crate::sandbox::sys::notify as sys;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, OFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Sockets that a run can have bound; one more gets ENOSPC.
const BOUND_MAX: usize = 512;

/// The sockets of a run, by device and inode. An open descriptor of each keeps its inode from being used again.
#[derive(Debug, Default)]
pub struct UnixSockets {
    own: HashMap<(u64, u64), OwnedFd>,
}

/// The path in a `sockaddr_un`. Names without a path are the host's, and not open.
pub fn path_in(bytes: &[u8]) -> Result<PathBuf, Errno> {
    let path = bytes.get(2..).unwrap_or_default();
    let end = path.iter().position(|b| *b == 0).unwrap_or(path.len());
    let path = path.get(..end).unwrap_or_default();
    if path.is_empty() { Err(Errno::ACCESS) } else { Ok(PathBuf::from(OsStr::from_bytes(path))) }
}

/// A `sockaddr_un` with `path`.
fn address(path: &[u8]) -> Result<Vec<u8>, Errno> {
    const PATH_MAX: usize = 108;
    if path.len() >= PATH_MAX {
        return Err(Errno::NAMETOOLONG);
    }
    let mut bytes = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    bytes.extend_from_slice(path);
    bytes.push(0);
    Ok(bytes)
}

impl UnixSockets {
    /// bind(2): the directory must be writable to the command, and the name new.
    pub(super) fn bind(
        &mut self,
        caller: &Caller<'_>,
        context: &Context<'_>,
        socket: &OwnedFd,
        path: &Path,
    ) -> Result<(), Errno> {
        let name: OsString = path.file_name().ok_or(Errno::ADDRINUSE)?.to_os_string();
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let dir = caller.resolve(libc::AT_FDCWD, parent, true)?;
        if !context.may_make(&dir, &name)? {
            return Err(Errno::ACCESS);
        }
        if self.own.len() >= BOUND_MAX {
            self.own.retain(|_, fd| rustix::fs::fstat(&*fd).is_ok_and(|s| s.st_nlink > 0));
        }
        if self.own.len() >= BOUND_MAX {
            return Err(Errno::NOSPC);
        }
        let place = [dir.own_name().as_bytes(), b"/", name.as_bytes()].concat();
        sys::bind(socket.as_fd(), &address(&place)?)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&dir.fd, &name, flags, rustix::fs::Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        // Whoever swapped the name has lost the socket.
        if FileType::from_raw_mode(stat.st_mode) == FileType::Socket
            && stat.st_uid == rustix::process::geteuid().as_raw()
            && is_silent(&file, socket)
        {
            self.own.insert((stat.st_dev, stat.st_ino), file);
        }
        Ok(())
    }

    /// The address at which this process reaches the run's own socket that `path` means to the caller.
    pub(super) fn address_of(&self, caller: &Caller<'_>, path: &Path) -> Result<Vec<u8>, Errno> {
        let object: Object = caller.resolve(libc::AT_FDCWD, path, true)?;
        let stat = rustix::fs::statat(&object.fd, "", AtFlags::EMPTY_PATH)?;
        match self.own.get(&(stat.st_dev, stat.st_ino)) {
            Some(file) => {
                use rustix::fd::AsRawFd;
                address(format!("/proc/self/fd/{}", file.as_raw_fd()).as_bytes())
            }
            None => Err(Errno::ACCESS),
        }
    }
}

/// Whether nobody listens on the socket behind `file`, which is of the type of `like`: the one that was just bound does
/// not yet, since listening is this thread's to allow, and one of the host's that was put in its place does. The kernel
/// tells who a bound file is of only to whoever administers the network.
fn is_silent(file: &OwnedFd, like: &OwnedFd) -> bool {
    use rustix::fd::AsRawFd;
    let probe = || -> Result<(), Errno> {
        let kind = rustix::net::sockopt::socket_type(like)?;
        let flags = rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK;
        let probe = rustix::net::socket_with(rustix::net::AddressFamily::UNIX, kind, flags, None)?;
        sys::connect(probe.as_fd(), &address(format!("/proc/self/fd/{}", file.as_raw_fd()).as_bytes())?)
    };
    probe() == Err(Errno::CONNREFUSED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_somebody_listens_on_is_not_the_one_that_was_just_bound() {
        use rustix::net::{AddressFamily, SocketType, socket};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let bound = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        sys::bind(bound.as_fd(), &address(path.as_os_str().as_bytes()).unwrap()).unwrap();
        let file =
            rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, rustix::fs::Mode::empty()).unwrap();
        assert!(is_silent(&file, &bound));
        rustix::net::listen(&bound, 0).unwrap();
        assert!(!is_silent(&file, &bound), "one that listens");
        assert!(!is_silent(&file, &bound), "one whose queue is full");
        let other = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        assert!(!is_silent(&file, &other), "one of another type");
    }

    #[test]
    fn a_path_ends_at_its_nul_and_other_names_are_closed() {
        let own = address(b"/tmp/x").unwrap();
        assert_eq!(path_in(&own), Ok(PathBuf::from("/tmp/x")));
        assert_eq!(path_in(&[1, 0]), Err(Errno::ACCESS));
        assert_eq!(path_in(&[1, 0, 0, b'a']), Err(Errno::ACCESS), "an abstract name");
        assert!(address(&[b'x'; 108]).is_err());
    }
}
