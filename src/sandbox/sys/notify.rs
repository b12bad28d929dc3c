//! seccomp's user notification, and what a supervisor does on behalf of a notified process.

use super::{check, last_errno};
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use std::ffi::{c_int, c_ulong};

// From linux/seccomp.h: _IOWR('!', 0, struct seccomp_notif) and its neighbours.
const NOTIF_RECV: c_ulong = 0xc050_2100;
const NOTIF_SEND: c_ulong = 0xc018_2101;
const NOTIF_ID_VALID: c_ulong = 0x4008_2102;
const NOTIF_ADDFD: c_ulong = 0x4018_2103;
const NOTIF_SET_FLAGS: c_ulong = 0x4008_2104;

const USER_NOTIF_FLAG_CONTINUE: u32 = 1;
const ADDFD_FLAG_SEND: u32 = 2;
const FD_SYNC_WAKE_UP: c_ulong = 1;

/// `struct seccomp_notif`: one call that waits for an answer.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Notification {
    /// Names the call in answers.
    pub id: u64,
    /// The thread that made it.
    pub pid: u32,
    flags: u32,
    /// The call's number.
    pub number: i32,
    arch: u32,
    instruction_pointer: u64,
    /// Its arguments, as they were in registers.
    pub args: [u64; 6],
}

#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

#[repr(C)]
struct AddFd {
    id: u64,
    flags: u32,
    source: u32,
    new: u32,
    new_flags: u32,
}

/// Loads a filter and returns the descriptor on which its notifications arrive. Needs no_new_privs.
///
/// A notified call waits without being interrupted by signals that do not kill, where the kernel can (5.19).
pub fn load_seccomp_with_listener(program: &[libc::sock_filter]) -> Result<OwnedFd, Errno> {
    const SECCOMP_SET_MODE_FILTER: c_int = 1;
    const NEW_LISTENER: c_ulong = 1 << 3;
    const WAIT_KILLABLE_RECV: c_ulong = 1 << 5;
    let len = u16::try_from(program.len()).map_err(|_| Errno::INVAL)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    let load = |flags: c_ulong| {
        // SAFETY: `program` describes `len` valid instructions that outlive the call; the kernel copies and checks them.
        check(unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &raw const program) })
    };
    let fd = match load(NEW_LISTENER | WAIT_KILLABLE_RECV) {
        Err(Errno::INVAL) => load(NEW_LISTENER)?,
        other => other?,
    };
    // SAFETY: the call returned a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Asks the kernel to switch between supervisor and supervised on one processor (6.6); it is faster, not needed.
pub fn wake_synchronously(listener: BorrowedFd<'_>) {
    // SAFETY: this request takes its argument by value.
    let _ = unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_SET_FLAGS, FD_SYNC_WAKE_UP) };
}

/// Asks the scheduler to let this thread run soon after it wakes, in exchange for short turns (a slice of its own for an
/// ordinary thread, 6.12): what a caller waits for before its call is received can be interrupted. Not needed.
pub fn wake_soon() {
    /// The shortest slice that there is, nanoseconds.
    const SLICE: u64 = 100_000;
    /// `struct sched_attr`, as far as it is used.
    #[repr(C)]
    #[derive(Default)]
    struct SchedAttr {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    let mut attr = SchedAttr::default();
    let size = size_of::<SchedAttr>() as u32;
    // SAFETY: both calls get the address of one live sched_attr with its size, for the calling thread.
    unsafe {
        if libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, size, 0) == 0 {
            attr.size = size;
            attr.runtime = SLICE;
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0);
        }
    }
}

/// The next notification. ENOENT: the caller is gone meanwhile.
pub fn receive(listener: BorrowedFd<'_>) -> Result<Notification, Errno> {
    let mut notification = Notification::default();
    // SAFETY: the request writes one seccomp_notif, whose layout Notification has, to the zeroed value given.
    if unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_RECV, &raw mut notification) } < 0 {
        return Err(last_errno());
    }
    Ok(notification)
}

/// Whether the call `id` still waits: what was read of its process until now was that process's.
pub fn is_waiting(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the request reads one u64.
    unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_ID_VALID, &raw const id) == 0 }
}

fn respond(listener: BorrowedFd<'_>, response: &Response) {
    // A caller that is gone needs no answer.
    // SAFETY: the request reads one seccomp_notif_resp, whose layout Response has.
    let _ = unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_SEND, std::ptr::from_ref(response)) };
}

/// Lets the call return `result`.
pub fn answer(listener: BorrowedFd<'_>, id: u64, result: Result<i64, Errno>) {
    let (value, error) = match result {
        Ok(value) => (value, 0),
        Err(errno) => (0, -errno.raw_os_error()),
    };
    respond(listener, &Response { id, value, error, flags: 0 });
}

/// Lets the kernel carry the call out. Only for calls about which nothing was decided from memory that the caller can
/// change: plain numbers, or where the kernel's own checks are all that is needed.
pub fn proceed(listener: BorrowedFd<'_>, id: u64) {
    respond(listener, &Response { id, value: 0, error: 0, flags: USER_NOTIF_FLAG_CONTINUE });
}

/// Gives the caller a copy of `fd` (with close-on-exec if `cloexec`), whose number is what its call returns.
pub fn answer_with_fd(
    listener: BorrowedFd<'_>,
    id: u64,
    fd: BorrowedFd<'_>,
    cloexec: bool,
) -> Result<(), Errno> {
    let add = AddFd {
        id,
        flags: ADDFD_FLAG_SEND,
        source: fd.as_raw_fd() as u32,
        new: 0,
        new_flags: if cloexec { libc::O_CLOEXEC as u32 } else { 0 },
    };
    // SAFETY: the request reads one seccomp_notif_addfd, whose layout AddFd has.
    if unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_ADDFD, &raw const add) } < 0 {
        return Err(last_errno());
    }
    Ok(())
}

/// A copy of descriptor `number` of the process that `pidfd` is.
pub fn copy_descriptor(pidfd: BorrowedFd<'_>, number: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: plain numbers; the call returns a new descriptor that nobody else owns.
    unsafe {
        let fd = check(libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), number, 0))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// Connects `socket` to `address`, a `sockaddr` in bytes.
pub fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> Result<(), Errno> {
    // SAFETY: address and length describe one live buffer; the kernel copies it and needs no alignment.
    let result = unsafe {
        libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), address.len() as libc::socklen_t)
    };
    check(libc::c_long::from(result)).map(drop)
}

/// Binds `socket` to `address`, a `sockaddr` in bytes.
pub fn bind(socket: BorrowedFd<'_>, address: &[u8]) -> Result<(), Errno> {
    // SAFETY: as for `connect`.
    let result =
        unsafe { libc::bind(socket.as_raw_fd(), address.as_ptr().cast(), address.len() as libc::socklen_t) };
    check(libc::c_long::from(result)).map(drop)
}

/// The watch of inotify_add_watch(2).
pub fn inotify_add_watch(inotify: BorrowedFd<'_>, path: &std::ffi::CStr, mask: u32) -> Result<i64, Errno> {
    // SAFETY: the path is a valid C string that outlives the call.
    let watch = unsafe { libc::inotify_add_watch(inotify.as_raw_fd(), path.as_ptr(), mask) };
    check(libc::c_long::from(watch))
}

/// Opens the other side of the terminal whose master is `master`.
pub fn terminal_peer(master: BorrowedFd<'_>, flags: c_int) -> Result<OwnedFd, Errno> {
    /// _IO('T', 0x41)
    const TIOCGPTPEER: c_ulong = 0x5441;
    // SAFETY: this request takes its argument by value and returns a new descriptor that nobody else owns.
    unsafe {
        let fd = check(libc::c_long::from(libc::ioctl(master.as_raw_fd(), TIOCGPTPEER, flags)))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}
