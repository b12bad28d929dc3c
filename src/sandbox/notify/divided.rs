//! Names in divided directories ([`crate::sandbox::divide`]): what Landlock gives no right to, and the command may have.
//!
//! The path is copied once and resolved here; what it leads to is judged by device and inode, going up directory by
//! directory; the call is carried out on the descriptor that was judged. Nothing that the command does by itself moves a
//! directory out of the place it was judged for: the kernel lets it make, move and remove nothing in a divided one. What
//! is elsewhere, or has a rule of its own, is the kernel's to decide about.

use super::caller::{Caller, Object};
use super::entry::{Entry, LINK_BYTES, entry, exists, kind, with_umask_of};
use super::{Answer, Context, without_capabilities};
use crate::sandbox::denial::Kind;
use crate::sandbox::divide::{Division, Id, id_of};
use crate::sandbox::plan::Rights;
use crate::sandbox::seccomp::calls;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

const AT_FDCWD: i32 = libc::AT_FDCWD;

/// How often an open is tried again whose file came and went meanwhile.
const TRIES: usize = 8;

/// Directories that are gone up through. Deeper ones can't be named in one path anyway.
const DEPTH_MAX: usize = 4096;

/// Where a file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is denied, or below what is.
    Denied,
    /// It is in a divided directory, or below one, and no rule leads to it: the supervisor's.
    Ours { writable: bool },
    /// A rule leads to it: the kernel's.
    Ruled { writable: bool },
    /// It is somewhere else.
    Elsewhere,
}

impl Standing {
    /// Whether the command may change what is there; of another place, `elsewhere` says so.
    pub fn is_writable(self, elsewhere: impl FnOnce() -> bool) -> bool {
        match self {
            Standing::Denied => false,
            Standing::Ours { writable } | Standing::Ruled { writable } => writable,
            Standing::Elsewhere => elsewhere(),
        }
    }
}

impl Division {
    /// Where `object` stands.
    pub fn standing(&self, object: &Object) -> Result<Standing, Errno> {
        if !self.is_near(&object.path) {
            return Ok(Standing::Elsewhere);
        }
        if object.is_directory()? {
            return self.climb(object.fd.as_fd(), None);
        }
        let id = id_of(&rustix::fs::fstat(&object.fd)?);
        let (Some(above), Some(name)) = (object.path.parent(), object.path.file_name()) else {
            return Ok(Standing::Elsewhere);
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(above, flags, Mode::empty())?;
        use std::os::unix::ffi::OsStrExt;
        let at = id_of(&rustix::fs::fstat(&directory)?);
        if self.fixed(at, name.as_bytes()) == Some(true) {
            return Ok(Standing::Denied);
        }
        self.climb(directory.as_fd(), self.ruled.get(&id).copied())
    }

    /// Where the directory behind `fd` stands; `rights` are given below it.
    fn climb(&self, fd: BorrowedFd<'_>, rights: Option<Rights>) -> Result<Standing, Errno> {
        let (mut ruled, mut writable) = (rights.is_some(), rights == Some(Rights::Write));
        let mut at: Option<OwnedFd> = None;
        let mut last: Option<Id> = None;
        for _ in 0..DEPTH_MAX {
            let here = at.as_ref().map_or(fd, |fd| fd.as_fd());
            let id = id_of(&rustix::fs::fstat(here)?);
            if self.denied.contains(&id) {
                return Ok(Standing::Denied);
            }
            if let Some(rights) = self.ruled.get(&id) {
                ruled = true;
                writable |= *rights == Rights::Write;
            }
            let root = last == Some(id);
            if self.closed.contains(&id) || (root && ruled) {
                return Ok(Standing::Ruled { writable });
            }
            if let Some(rights) = self.divided.get(&id) {
                writable |= *rights == Rights::Write;
                return Ok(if ruled { Standing::Ruled { writable } } else { Standing::Ours { writable } });
            }
            if root {
                return Ok(Standing::Elsewhere);
            }
            last = Some(id);
            let up = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            at = Some(rustix::fs::openat(here, "..", up, Mode::empty())?);
        }
        Err(Errno::NAMETOOLONG)
    }

    /// Whether `name` in the directory of `entry` stays what it is.
    fn is_fixed(&self, entry: &Entry) -> Result<bool, Errno> {
        let id = id_of(&rustix::fs::fstat(&entry.directory.fd)?);
        Ok(self.fixed(id, entry.name.as_bytes()).is_some())
    }

    /// Carries out a call that names a path, or leaves it to the kernel.
    pub(super) fn mediate(&self, caller: &Caller<'_>, context: &Context<'_>) -> Answer {
        // As the command could by itself: a supervisor of root's has more rights than the command.
        without_capabilities(|| self.carry_out(caller, context))
            .unwrap_or_else(|errno| Answer::Return(Err(errno)))
    }

    fn carry_out(&self, caller: &Caller<'_>, context: &Context<'_>) -> Result<Answer, Errno> {
        let is = |call: calls::Call| call.is(caller.call.number);
        let (int, arg) = (|n: usize| caller.int(n), |n: usize| caller.arg(n));
        if is(calls::open) {
            return self.open(caller, context, (AT_FDCWD, arg(0)), int(1), int(2));
        }
        if is(calls::openat) {
            return self.open(caller, context, (int(0), arg(1)), int(2), int(3));
        }
        if is(calls::creat) {
            let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
            return self.open(caller, context, (AT_FDCWD, arg(0)), flags, int(1));
        }
        if is(calls::rename) {
            return self.rename(caller, context, (AT_FDCWD, arg(0)), (AT_FDCWD, arg(1)), 0);
        }
        if is(calls::renameat) || is(calls::renameat2) {
            let flags = if is(calls::renameat2) { int(4) } else { 0 };
            return self.rename(caller, context, (int(0), arg(1)), (int(2), arg(3)), flags);
        }
        if is(calls::link) {
            return self.link(caller, context, (AT_FDCWD, arg(0)), (AT_FDCWD, arg(1)), 0);
        }
        if is(calls::linkat) {
            return self.link(caller, context, (int(0), arg(1)), (int(2), arg(3)), int(4));
        }
        if is(calls::unlink) {
            return self.remove(caller, context, (AT_FDCWD, arg(0)), 0);
        }
        if is(calls::rmdir) {
            return self.remove(caller, context, (AT_FDCWD, arg(0)), libc::AT_REMOVEDIR);
        }
        if is(calls::unlinkat) {
            return self.remove(caller, context, (int(0), arg(1)), int(2));
        }
        self.make(caller, context)
    }

    fn open(
        &self,
        caller: &Caller<'_>,
        context: &Context<'_>,
        (dir, path): (i32, u64),
        flags: i32,
        mode: i32,
    ) -> Result<Answer, Errno> {
        let flags = OFlags::from_bits_retain(flags as u32);
        if flags.contains(OFlags::PATH) {
            return Ok(Answer::Proceed);
        }
        let creates = flags.contains(OFlags::CREATE);
        let new = creates && flags.contains(OFlags::EXCL);
        for _ in 0..TRIES {
            match caller.object(dir, path, !new && !flags.contains(OFlags::NOFOLLOW), false) {
                // The kernel says that it is there.
                Ok(_) if new => return Ok(Answer::Proceed),
                Ok(object) => return self.open_there(context, &object, flags),
                Err(Errno::NOENT) if creates => {}
                Err(Errno::SRCH) => return Err(Errno::SRCH),
                // So does it say what is wrong with the path.
                Err(_) => return Ok(Answer::Proceed),
            }
            let Some(entry) = entry(caller, dir, path)? else { return Ok(Answer::Proceed) };
            if !self.may_make(context, &entry)? {
                return Ok(Answer::Proceed);
            }
            if entry.slash || flags.contains(OFlags::DIRECTORY) {
                return Err(Errno::ISDIR);
            }
            // A file that is new, and no other: nothing that somebody put there meanwhile is opened, nor waited for.
            let made = flags | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
            let mode = Mode::from_raw_mode(mode as u32 & 0o1777);
            let open = || rustix::fs::openat(&entry.directory.fd, &entry.name, made, mode);
            match with_umask_of(caller, open) {
                Ok(fd) => return Ok(Answer::Descriptor { fd, cloexec: flags.contains(OFlags::CLOEXEC) }),
                // It came meanwhile. A link that leads nowhere is the kernel's.
                Err(Errno::EXIST) if !new && kind(&entry) != Ok(FileType::Symlink) => {}
                Err(Errno::EXIST) if !new => return Ok(Answer::Proceed),
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::AGAIN)
    }

    /// Opens what is there already.
    fn open_there(&self, context: &Context<'_>, object: &Object, flags: OFlags) -> Result<Answer, Errno> {
        let writable = match self.standing(object)? {
            Standing::Ours { writable } => writable,
            Standing::Denied => {
                return Err(refuse(context, object, if writes(flags) { Kind::Write } else { Kind::Read }));
            }
            Standing::Ruled { .. } | Standing::Elsewhere => return Ok(Answer::Proceed),
        };
        if flags.contains(OFlags::TMPFILE) {
            return Err(Errno::OPNOTSUPP);
        }
        let stat = rustix::fs::fstat(&object.fd)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if flags.contains(OFlags::CREATE) => return Err(Errno::ISDIR),
            FileType::Directory | FileType::RegularFile => {}
            // Links, and what an open could wait for.
            _ => return Ok(Answer::Proceed),
        }
        if writes(flags) && !writable {
            context.denials.path(Kind::Write, &object.path);
            return Err(Errno::ACCESS);
        }
        let how = flags - (OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW);
        let how = how | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let fd = rustix::fs::open(object.own_name(), how, Mode::empty())?;
        if !flags.contains(OFlags::NONBLOCK) {
            rustix::fs::fcntl_setfl(&fd, rustix::fs::fcntl_getfl(&fd)? - OFlags::NONBLOCK)?;
        }
        Ok(Answer::Descriptor { fd, cloexec: flags.contains(OFlags::CLOEXEC) })
    }

    /// Whether a new entry is the supervisor's to make; otherwise it is the kernel's.
    fn may_make(&self, context: &Context<'_>, entry: &Entry) -> Result<bool, Errno> {
        match self.standing(&entry.directory)? {
            Standing::Ours { writable: true } if !self.is_fixed(entry)? => Ok(true),
            Standing::Ours { .. } | Standing::Denied => Err(refuse_entry(context, entry)),
            Standing::Ruled { .. } | Standing::Elsewhere => Ok(false),
        }
    }

    /// mkdir, mknod and symlink.
    fn make(&self, caller: &Caller<'_>, context: &Context<'_>) -> Result<Answer, Errno> {
        let is = |call: calls::Call| call.is(caller.call.number);
        let (dir, path, rest) = if [calls::mkdirat, calls::mknodat].into_iter().any(is) {
            (caller.int(0), caller.arg(1), 2)
        } else if is(calls::symlinkat) {
            (caller.int(1), caller.arg(2), 0)
        } else if is(calls::symlink) {
            (AT_FDCWD, caller.arg(1), 0)
        } else {
            (AT_FDCWD, caller.arg(0), 1)
        };
        let Some(entry) = entry(caller, dir, path)? else { return Ok(Answer::Proceed) };
        if exists(&entry) || !self.may_make(context, &entry)? {
            return Ok(Answer::Proceed);
        }
        let (at, name) = (&entry.directory.fd, &entry.name);
        let mode = Mode::from_raw_mode(caller.int(rest) as u32 & 0o1777);
        if is(calls::mkdir) || is(calls::mkdirat) {
            with_umask_of(caller, || rustix::fs::mkdirat(at, name, mode))?;
        } else if is(calls::symlink) || is(calls::symlinkat) {
            let target = caller.string(caller.arg(0), LINK_BYTES)?;
            if target.is_empty() || entry.slash {
                return Err(Errno::NOENT);
            }
            rustix::fs::symlinkat(&target, at, name)?;
        } else {
            let kind = caller.int(rest) as u32 & libc::S_IFMT;
            if !matches!(kind, 0 | libc::S_IFREG) {
                // Opening one can wait without end, which only the kernel may do for the command.
                return Err(Errno::PERM);
            }
            with_umask_of(caller, || rustix::fs::mknodat(at, name, FileType::RegularFile, mode, 0))?;
        }
        Ok(Answer::Return(Ok(0)))
    }

    fn remove(
        &self,
        caller: &Caller<'_>,
        context: &Context<'_>,
        (dir, path): (i32, u64),
        flags: i32,
    ) -> Result<Answer, Errno> {
        let flags = AtFlags::from_bits(flags as u32).ok_or(Errno::INVAL)?;
        let Some(entry) = entry(caller, dir, path)? else { return Ok(Answer::Proceed) };
        let directory = flags.contains(AtFlags::REMOVEDIR);
        if !exists(&entry) || (entry.slash && !directory) || !self.may_make(context, &entry)? {
            return Ok(Answer::Proceed);
        }
        rustix::fs::unlinkat(&entry.directory.fd, &entry.name, flags).map(|()| Answer::Return(Ok(0)))
    }

    fn rename(
        &self,
        caller: &Caller<'_>,
        context: &Context<'_>,
        from: (i32, u64),
        to: (i32, u64),
        flags: i32,
    ) -> Result<Answer, Errno> {
        let (Some(from), Some(to)) = (entry(caller, from.0, from.1)?, entry(caller, to.0, to.1)?) else {
            return Ok(Answer::Proceed);
        };
        let (left, entered) = (self.standing(&from.directory)?, self.standing(&to.directory)?);
        let ours = |standing| matches!(standing, Standing::Ours { .. } | Standing::Denied);
        if !exists(&from) || (!ours(left) && !ours(entered)) {
            return Ok(Answer::Proceed);
        }
        let flags = RenameFlags::from_bits(flags as u32).ok_or(Errno::INVAL)?;
        if flags.contains(RenameFlags::WHITEOUT) {
            return Err(Errno::INVAL);
        }
        for (standing, entry) in [(left, &from), (entered, &to)] {
            if !standing.is_writable(|| context.is_writable(&entry.directory.path)) || self.is_fixed(entry)? {
                return Err(refuse_entry(context, entry));
            }
        }
        if (from.slash || to.slash) && kind(&from)? != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        rustix::fs::renameat_with(&from.directory.fd, &from.name, &to.directory.fd, &to.name, flags)
            .map(|()| Answer::Return(Ok(0)))
    }

    fn link(
        &self,
        caller: &Caller<'_>,
        context: &Context<'_>,
        from: (i32, u64),
        to: (i32, u64),
        flags: i32,
    ) -> Result<Answer, Errno> {
        let Some(entry) = entry(caller, to.0, to.1)? else { return Ok(Answer::Proceed) };
        if flags & !libc::AT_SYMLINK_FOLLOW != 0 || exists(&entry) {
            return Ok(Answer::Proceed);
        }
        let source = match caller.object(from.0, from.1, flags & libc::AT_SYMLINK_FOLLOW != 0, false) {
            Ok(source) => source,
            Err(Errno::SRCH) => return Err(Errno::SRCH),
            Err(_) => return Ok(Answer::Proceed),
        };
        let (left, entered) = (self.standing(&source)?, self.standing(&entry.directory)?);
        let ours = |standing| matches!(standing, Standing::Ours { .. } | Standing::Denied);
        if !ours(left) && !ours(entered) {
            return Ok(Answer::Proceed);
        }
        // A name in a writable place makes writable what it is of.
        if !left.is_writable(|| context.is_writable(&source.path)) {
            return Err(refuse(context, &source, Kind::Write));
        }
        if !entered.is_writable(|| context.is_writable(&entry.directory.path)) || self.is_fixed(&entry)? {
            return Err(refuse_entry(context, &entry));
        }
        if entry.slash {
            return Err(Errno::NOENT);
        }
        let stat = rustix::fs::fstat(&source.fd)?;
        if self.denied.contains(&id_of(&stat))
            || FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
        {
            return Err(Errno::PERM);
        }
        let (at, name) = (&entry.directory.fd, &entry.name);
        rustix::fs::linkat(CWD, source.own_name(), at, name, AtFlags::SYMLINK_FOLLOW)
            .map(|()| Answer::Return(Ok(0)))
    }
}

fn writes(flags: OFlags) -> bool {
    flags & OFlags::ACCMODE != OFlags::RDONLY || flags.contains(OFlags::TRUNC)
}

/// Notes that `object` was refused: no flag grants what was denied.
fn refuse(context: &Context<'_>, object: &Object, kind: Kind) -> Errno {
    context.denials.note(kind, crate::sanitise::path(&object.path).to_string(), None);
    Errno::ACCESS
}

fn refuse_entry(context: &Context<'_>, entry: &Entry) -> Errno {
    use std::os::unix::ffi::OsStrExt;
    let path = entry.directory.path.join(std::ffi::OsStr::from_bytes(entry.name.as_bytes()));
    context.denials.note(Kind::Write, crate::sanitise::path(&path).to_string(), None);
    Errno::ACCESS
}
