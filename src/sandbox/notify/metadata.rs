//! Metadata of files: Landlock leaves chmod, chown, times and attributes open on every file of the user, so the
//! supervisor carries them out, on files beneath a grant for writing and on no other.

use super::caller::{Caller, Object};
use super::{Context, without_capabilities};
use crate::sandbox::denial::Kind;
use crate::sandbox::seccomp::calls;
use crate::sandbox::sys::notify as sys;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Mode, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;

/// The largest value of an extended attribute (XATTR_SIZE_MAX).
const XATTR_MAX: u64 = 65536;

/// The longest name of one, with its end.
const XATTR_NAME: usize = 256;

const AT_EMPTY_PATH: i32 = libc::AT_EMPTY_PATH;
const AT_SYMLINK_NOFOLLOW: i32 = libc::AT_SYMLINK_NOFOLLOW;
const AT_FDCWD: i32 = libc::AT_FDCWD;

/// The calls that change a file's metadata.
pub fn change(caller: &Caller<'_>, context: &Context<'_>) -> Result<i64, Errno> {
    let is = |call: calls::Call| call.is(caller.call.number);
    let object = target(caller, &is)?;
    if !context.may_change(&object)? && !object.is_held_and_nowhere() {
        context.denials.path(Kind::Metadata, &object.path);
        return Err(Errno::PERM);
    }
    let change = prepare(caller, &is)?;
    // The set-group-id bit of a directory says what group files in it get, and is no privilege.
    if change.sets_group_id() && !object.is_directory()? {
        return Err(Errno::PERM);
    }
    // As the command could by itself: a supervisor of root's has more rights than the command.
    without_capabilities(|| change.apply(&object)).map(|()| 0)
}

/// chmod with the set-group-id bit in tier `full`, where the mounts say what may be changed: on directories alone.
pub fn share(caller: &Caller<'_>) -> Result<i64, Errno> {
    let is = |call: calls::Call| call.is(caller.call.number);
    let object = target(caller, &is)?;
    match prepare(caller, &is)? {
        change @ Change::Mode(_) if object.is_directory()? => change.apply(&object).map(|()| 0),
        _ => Err(Errno::PERM),
    }
}

/// The file that the call is about.
fn target(caller: &Caller<'_>, is: &dyn Fn(calls::Call) -> bool) -> Result<Object, Errno> {
    let by_descriptor =
        [calls::fchmod, calls::fchown, calls::fsetxattr, calls::fremovexattr].into_iter().any(is);
    if by_descriptor {
        return caller.object_of_descriptor(caller.int(0));
    }
    let at_flags = |n: usize| caller.int(n);
    let (flags, known) = if is(calls::fchownat) {
        (at_flags(4), AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)
    } else if is(calls::utimensat) || is(calls::fchmodat2) {
        (at_flags(3), AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)
    } else {
        (0, 0)
    };
    if flags & !known != 0 {
        return Err(Errno::INVAL);
    }
    let with_directory =
        [calls::fchmodat, calls::fchmodat2, calls::fchownat, calls::utimensat, calls::futimesat];
    let link_itself = [calls::lchown, calls::lsetxattr, calls::lremovexattr].into_iter().any(is)
        || flags & AT_SYMLINK_NOFOLLOW != 0;
    if with_directory.into_iter().any(is) {
        // utimensat and futimesat take no path for the descriptor itself.
        if (is(calls::utimensat) || is(calls::futimesat)) && caller.arg(1) == 0 {
            return caller.object_of_descriptor(caller.int(0));
        }
        return caller.object(caller.int(0), caller.arg(1), !link_itself, flags & AT_EMPTY_PATH != 0);
    }
    caller.object(AT_FDCWD, caller.arg(0), !link_itself, false)
}

/// A change with everything copied from the caller.
enum Change {
    Mode(u32),
    Owner(Option<u32>, Option<u32>),
    Times(Timestamps),
    SetAttribute { name: std::ffi::CString, value: Vec<u8>, flags: u32 },
    RemoveAttribute(std::ffi::CString),
    Truncate(u64),
}

fn prepare(caller: &Caller<'_>, is: &dyn Fn(calls::Call) -> bool) -> Result<Change, Errno> {
    if is(calls::fchmod) || is(calls::chmod) {
        return Ok(Change::Mode(caller.int(1) as u32));
    }
    if is(calls::fchmodat) || is(calls::fchmodat2) {
        return Ok(Change::Mode(caller.int(2) as u32));
    }
    let id = |n: usize| Some(caller.int(n) as u32).filter(|id| *id != u32::MAX);
    if is(calls::chown) || is(calls::fchown) || is(calls::lchown) {
        return Ok(Change::Owner(id(1), id(2)));
    }
    if is(calls::fchownat) {
        return Ok(Change::Owner(id(2), id(3)));
    }
    if is(calls::utimensat) {
        return times(caller, caller.arg(2), 1, true);
    }
    if is(calls::futimesat) {
        return times(caller, caller.arg(2), 1000, true);
    }
    if is(calls::utimes) {
        return times(caller, caller.arg(1), 1000, true);
    }
    if is(calls::utime) {
        return times(caller, caller.arg(1), 0, false);
    }
    if is(calls::truncate) {
        return Ok(Change::Truncate(caller.arg(1)));
    }
    let name = caller.string(caller.arg(1), XATTR_NAME)?;
    if [calls::removexattr, calls::lremovexattr, calls::fremovexattr].into_iter().any(is) {
        return Ok(Change::RemoveAttribute(name));
    }
    if caller.arg(3) > XATTR_MAX {
        return Err(Errno::TOOBIG);
    }
    let value = caller.bytes(caller.arg(2), usize::try_from(caller.arg(3)).unwrap_or(0))?;
    Ok(Change::SetAttribute { name, value, flags: caller.int(4) as u32 })
}

/// The two times at `address`; no address means now. `fraction` is what their second word counts, in nanoseconds; of
/// utime(2), which has no second words, the pair is two numbers of seconds.
fn times(caller: &Caller<'_>, address: u64, fraction: i64, split: bool) -> Result<Change, Errno> {
    let now = Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
    if address == 0 {
        return Ok(Change::Times(Timestamps { last_access: now, last_modification: now }));
    }
    let words = caller.bytes(address, if split { 32 } else { 16 })?;
    let word = |n: usize| {
        words.get(8 * n..8 * n + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, i64::from_ne_bytes)
    };
    let time = |n: usize| -> Result<Timespec, Errno> {
        if !split {
            return Ok(Timespec { tv_sec: word(n), tv_nsec: 0 });
        }
        let (seconds, part) = (word(2 * n), word(2 * n + 1));
        if fraction == 1 {
            return Ok(Timespec { tv_sec: seconds, tv_nsec: part });
        }
        if !(0..1_000_000).contains(&part) {
            return Err(Errno::INVAL);
        }
        Ok(Timespec { tv_sec: seconds, tv_nsec: part * fraction })
    };
    Ok(Change::Times(Timestamps { last_access: time(0)?, last_modification: time(1)? }))
}

impl Change {
    fn sets_group_id(&self) -> bool {
        matches!(self, Change::Mode(mode) if mode & libc::S_ISGID != 0)
    }

    fn apply(&self, object: &Object) -> Result<(), Errno> {
        let name = object.own_name();
        match self {
            Change::Mode(mode) => rustix::fs::chmod(&name, Mode::from_raw_mode(mode & 0o7777)),
            Change::Owner(uid, gid) => rustix::fs::chownat(
                &object.fd,
                "",
                uid.map(rustix::fs::Uid::from_raw),
                gid.map(rustix::fs::Gid::from_raw),
                AtFlags::EMPTY_PATH,
            ),
            Change::Times(times) => {
                match rustix::fs::utimensat(&object.fd, "", times, AtFlags::EMPTY_PATH) {
                    // Before Linux 5.8. A link itself can't be named this way.
                    Err(Errno::INVAL) => {
                        rustix::fs::utimensat(rustix::fs::CWD, &name, times, AtFlags::empty())
                    }
                    other => other,
                }
            }
            Change::SetAttribute { name: attribute, value, flags } => {
                let flags = XattrFlags::from_bits(*flags).ok_or(Errno::INVAL)?;
                rustix::fs::setxattr(&name, attribute, value, flags)
            }
            Change::RemoveAttribute(attribute) => rustix::fs::removexattr(&name, attribute),
            Change::Truncate(length) => {
                let file = rustix::fs::open(
                    &name,
                    rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC | rustix::fs::OFlags::NONBLOCK,
                    Mode::empty(),
                )?;
                rustix::fs::ftruncate(&file, *length)
            }
        }
    }
}

/// A watch on a file: only where the command may read.
pub fn watch(caller: &Caller<'_>, context: &Context<'_>) -> Result<i64, Errno> {
    const IN_DONT_FOLLOW: u32 = 0x0200_0000;
    let mask = caller.int(2) as u32;
    let object = caller.object(AT_FDCWD, caller.arg(1), mask & IN_DONT_FOLLOW == 0, false)?;
    if !context.may_read(&object)? {
        return Err(Errno::ACCESS);
    }
    let inotify = caller.descriptor(caller.int(0))?;
    let name = object.own_name();
    without_capabilities(|| sys::inotify_add_watch(inotify.as_fd(), &name, mask & !IN_DONT_FOLLOW))
}
