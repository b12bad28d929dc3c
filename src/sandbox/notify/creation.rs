//! Names that must not come to be: the calls that make names, in a run of tier `full` with denied paths that do not
//! exist.
//!
//! Landlock gives the command no right to make anything beneath a *guarded root*: a writable place that a denied name
//! lies below. PID 1, which is in the same namespaces and is the same user, makes what the command asks for there, on
//! a directory that it opened itself and compared with the denied ones. For every other place, and for a name that is
//! there already, it tells the kernel to proceed: if the command changes its mind about the path meanwhile, Landlock
//! still refuses what is to be made beneath a guarded root. Nothing depends on memory that was read twice.

use super::Listener;
use super::caller::{Caller, Object};
use super::entry::{Entry, LINK_BYTES, entry, exists, kind, with_umask_of};
use crate::sandbox::protect::Guard;
use crate::sandbox::seccomp::calls;
use crate::sandbox::sys::notify as sys;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

const AT_FDCWD: i32 = libc::AT_FDCWD;

/// Makes names on behalf of the command. Runs in PID 1.
pub(in crate::sandbox) struct Creator<'a> {
    listener: Listener,
    guards: &'a [Guard],
    /// Paths beneath which the command can make nothing by itself.
    roots: &'a [PathBuf],
}

/// What becomes of a call.
enum Made {
    /// The caller gets this.
    Result(i64),
    /// The caller gets this file as a new descriptor.
    File(OwnedFd, OFlags),
    /// The kernel carries the call out.
    Proceed,
}

impl<'a> Creator<'a> {
    pub fn new(listener: OwnedFd, guards: &'a [Guard], roots: &'a [PathBuf]) -> Creator<'a> {
        sys::wake_synchronously(listener.as_fd());
        Creator { listener: Listener(listener), guards, roots }
    }

    /// Becomes readable when a call waits.
    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.0.as_fd()
    }

    /// Answers one call.
    pub fn serve(&self) {
        let Ok(call) = sys::receive(self.listener.0.as_fd()) else { return };
        let caller = Caller { listener: &self.listener, call };
        let id = caller.call.id;
        match self.make(&caller) {
            Ok(Made::Result(value)) => self.listener.answer(id, Ok(value)),
            Ok(Made::Proceed) => sys::proceed(self.listener.0.as_fd(), id),
            Ok(Made::File(file, flags)) => {
                let close_on_exec = flags.contains(OFlags::CLOEXEC);
                if let Err(errno) =
                    sys::answer_with_fd(self.listener.0.as_fd(), id, file.as_fd(), close_on_exec)
                {
                    self.listener.answer(id, Err(errno));
                }
            }
            Err(errno) => self.listener.answer(id, Err(errno)),
        }
    }

    fn make(&self, caller: &Caller<'_>) -> Result<Made, Errno> {
        let is = |call: calls::Call| call.is(caller.call.number);
        let int = |n: usize| caller.int(n);
        if [calls::chmod, calls::fchmod, calls::fchmodat, calls::fchmodat2].into_iter().any(is) {
            return super::metadata::share(caller).map(Made::Result);
        }
        if is(calls::open) {
            return self.open(caller, AT_FDCWD, caller.arg(0), int(1), int(2));
        }
        if is(calls::openat) {
            return self.open(caller, int(0), caller.arg(1), int(2), int(3));
        }
        if is(calls::creat) {
            let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
            return self.open(caller, AT_FDCWD, caller.arg(0), flags, int(1));
        }
        if is(calls::rename) {
            return self.rename(caller, (AT_FDCWD, caller.arg(0)), (AT_FDCWD, caller.arg(1)), 0);
        }
        if is(calls::renameat) || is(calls::renameat2) {
            let flags = if is(calls::renameat2) { int(4) } else { 0 };
            return self.rename(caller, (int(0), caller.arg(1)), (int(2), caller.arg(3)), flags);
        }
        if is(calls::link) {
            return self.link(caller, (AT_FDCWD, caller.arg(0)), (AT_FDCWD, caller.arg(1)), 0);
        }
        if is(calls::linkat) {
            return self.link(caller, (int(0), caller.arg(1)), (int(2), caller.arg(3)), int(4));
        }
        let (dir, path, rest) = if [calls::mkdirat, calls::mknodat].into_iter().any(is) {
            (int(0), caller.arg(1), 2)
        } else if is(calls::symlinkat) {
            (int(1), caller.arg(2), 0)
        } else if is(calls::symlink) {
            (AT_FDCWD, caller.arg(1), 0)
        } else {
            (AT_FDCWD, caller.arg(0), 1)
        };
        let Some(entry) = self.new_entry(caller, dir, path)? else { return Ok(Made::Proceed) };
        let (at, name) = (&entry.directory.fd, &entry.name);
        let mode = Mode::from_raw_mode(int(rest) as u32 & 0o1777);
        if is(calls::mkdir) || is(calls::mkdirat) {
            with_umask_of(caller, || rustix::fs::mkdirat(at, name, mode))?;
        } else if is(calls::symlink) || is(calls::symlinkat) {
            let target = caller.string(caller.arg(0), LINK_BYTES)?;
            if target.is_empty() || entry.slash {
                return Err(Errno::NOENT);
            }
            rustix::fs::symlinkat(&target, at, name)?;
        } else {
            let kind = match int(rest) as u32 & libc::S_IFMT {
                0 => FileType::RegularFile,
                kind => FileType::from_raw_mode(kind),
            };
            if !matches!(kind, FileType::RegularFile | FileType::Fifo | FileType::Socket) {
                return Err(Errno::PERM);
            }
            with_umask_of(caller, || rustix::fs::mknodat(at, name, kind, mode, 0))?;
        }
        Ok(Made::Result(0))
    }

    /// The entry that a call wants to make; `None` where the kernel can carry the call out by itself.
    fn new_entry(&self, caller: &Caller<'_>, dir: i32, path: u64) -> Result<Option<Entry>, Errno> {
        let Some(entry) = entry(caller, dir, path)? else { return Ok(None) };
        if !self.is_beneath(&entry.directory) || exists(&entry) {
            return Ok(None);
        }
        self.admit(&entry)?;
        Ok(Some(entry))
    }

    fn is_beneath(&self, directory: &Object) -> bool {
        self.roots.iter().any(|root| directory.path.starts_with(root))
    }

    /// Refuses a denied name. Names that differ in case alone are one where a file system says so, so they count as one.
    fn admit(&self, entry: &Entry) -> Result<(), Errno> {
        let stat = rustix::fs::fstat(&entry.directory.fd)?;
        let denied = |guard: &Guard| {
            guard.id == (stat.st_dev, stat.st_ino)
                && guard.name.as_bytes().eq_ignore_ascii_case(entry.name.as_bytes())
        };
        if self.guards.iter().any(denied) { Err(Errno::ACCESS) } else { Ok(()) }
    }

    fn open(&self, caller: &Caller<'_>, dir: i32, path: u64, flags: i32, mode: i32) -> Result<Made, Errno> {
        let flags = OFlags::from_bits_retain(flags as u32);
        if !flags.contains(OFlags::CREATE) || flags.intersects(OFlags::PATH | OFlags::DIRECTORY) {
            return Ok(Made::Proceed);
        }
        let Some(entry) = self.new_entry(caller, dir, path)? else { return Ok(Made::Proceed) };
        if entry.slash {
            return Err(Errno::ISDIR);
        }
        // A file that is new, and no other: nothing that somebody put there meanwhile is opened, nor waited for.
        let made = flags | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        let mode = Mode::from_raw_mode(mode as u32 & 0o1777);
        let open = || rustix::fs::openat(&entry.directory.fd, &entry.name, made, mode);
        match with_umask_of(caller, open) {
            Ok(file) => Ok(Made::File(file, flags)),
            Err(Errno::EXIST) if !flags.contains(OFlags::EXCL) => Ok(Made::Proceed),
            Err(errno) => Err(errno),
        }
    }

    fn rename(
        &self,
        caller: &Caller<'_>,
        from: (i32, u64),
        to: (i32, u64),
        flags: i32,
    ) -> Result<Made, Errno> {
        let (Some(from), Some(to)) = (entry(caller, from.0, from.1)?, entry(caller, to.0, to.1)?) else {
            return Ok(Made::Proceed);
        };
        // From or to another place the kernel moves nothing: each is a mount of its own, and nothing can be made beneath a root.
        if !self.is_beneath(&from.directory) || !self.is_beneath(&to.directory) {
            return Ok(Made::Proceed);
        }
        let flags = RenameFlags::from_bits(flags as u32).ok_or(Errno::INVAL)?;
        self.admit(&to)?;
        if flags.contains(RenameFlags::EXCHANGE) {
            self.admit(&from)?;
        }
        if (from.slash || to.slash) && kind(&from)? != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        rustix::fs::renameat_with(&from.directory.fd, &from.name, &to.directory.fd, &to.name, flags)?;
        Ok(Made::Result(0))
    }

    fn link(&self, caller: &Caller<'_>, from: (i32, u64), to: (i32, u64), flags: i32) -> Result<Made, Errno> {
        if flags & !libc::AT_SYMLINK_FOLLOW != 0 {
            return Ok(Made::Proceed);
        }
        let Some(entry) = self.new_entry(caller, to.0, to.1)? else { return Ok(Made::Proceed) };
        if entry.slash {
            return Err(Errno::NOENT);
        }
        let source = caller.object(from.0, from.1, flags & libc::AT_SYMLINK_FOLLOW != 0, false)?;
        let (at, name) = (&entry.directory.fd, &entry.name);
        rustix::fs::linkat(CWD, source.own_name(), at, name, AtFlags::SYMLINK_FOLLOW)?;
        Ok(Made::Result(0))
    }
}
