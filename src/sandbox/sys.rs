//! The system calls that no safe wrapper covers. All of the crate's `unsafe` is here.
#![allow(unsafe_code)]

pub mod notify;
pub mod stdio;

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use std::ffi::{CStr, CString, c_char, c_int, c_ulong};
use std::ptr;

/// The result of a raw system call as a `Result`.
fn check(result: libc::c_long) -> Result<libc::c_long, Errno> {
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}

fn last_errno() -> Errno {
    // SAFETY: __errno_location always returns a valid pointer to this thread's errno.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}

/// The two sides of a clone.
pub enum Cloned {
    /// In the new process.
    Child,
    /// In the caller: the new process's id, and a descriptor that refers to it even after it ended.
    Parent(libc::pid_t, OwnedFd),
}

/// Starts a copy of this process in the namespaces of `flags` (CLONE_NEW*), as fork(2) would.
///
/// The caller must be the only thread of its process: the child then may use everything that this process can
/// (allocator locks are free). [`require_single_thread`] checks that.
pub fn clone_into(flags: c_int) -> Result<Cloned, Errno> {
    let mut pidfd: RawFd = -1;
    let mut args = libc::clone_args {
        flags: (flags | libc::CLONE_PIDFD) as u64,
        pidfd: &raw mut pidfd as u64,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: libc::SIGCHLD as u64,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: 0,
    };
    // SAFETY: `args` is a valid clone_args of the size given and outlives the call; `pidfd` is valid for one write.
    // Without CLONE_VM the child has its own copy of memory and continues on a copy of this stack.
    let pid =
        check(unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<libc::clone_args>()) })?;
    if pid == 0 {
        return Ok(Cloned::Child);
    }
    // SAFETY: the call succeeded with CLONE_PIDFD, so `pidfd` is a new descriptor that nobody else owns.
    Ok(Cloned::Parent(pid as libc::pid_t, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

/// fork(2) with a descriptor for the child. The same rule about threads as for [`clone_into`].
pub fn fork_with_pidfd() -> Result<Cloned, Errno> {
    match fork()? {
        None => Ok(Cloned::Child),
        Some(pid) => {
            // Not reaped yet, so the number is still this child's.
            let process = rustix::process::Pid::from_raw(pid).ok_or(Errno::SRCH)?;
            let pidfd = rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty())?;
            Ok(Cloned::Parent(pid, pidfd))
        }
    }
}

/// fork(2) without a descriptor for the child. The same rule about threads as for [`clone_into`].
pub fn fork() -> Result<Option<libc::pid_t>, Errno> {
    // SAFETY: the process has one thread (checked by the caller of the sandbox), so the child may run ordinary code.
    let pid = check(libc::c_long::from(unsafe { libc::fork() }))?;
    Ok((pid != 0).then_some(pid as libc::pid_t))
}

/// Ends this process at once, running no destructor or exit handler of the image that was copied.
pub fn exit_now(code: c_int) -> ! {
    // SAFETY: _exit has no preconditions and does not return.
    unsafe { libc::_exit(code) }
}

/// An error with the number of threads of this process, if that is not one; 0 if /proc does not tell.
pub fn require_single_thread() -> Result<(), usize> {
    match std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count) {
        1 => Ok(()),
        n => Err(n),
    }
}

/// `struct mount_attr` of mount_setattr(2).
#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Read-only.
pub const MOUNT_ATTR_RDONLY: u64 = 0x1;
/// Set-user-id bits have no effect.
pub const MOUNT_ATTR_NOSUID: u64 = 0x2;
/// Device nodes have no effect.
pub const MOUNT_ATTR_NODEV: u64 = 0x4;
const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;

/// Sets `attributes` (MOUNT_ATTR_*) on the mount that `tree` is the root of, and on all mounts below it if
/// `recursive`, and makes them private: what is mounted on the host later does not appear in them.
/// With `idmap`, the owners of files are seen through that user namespace's map.
pub fn mount_setattr(
    tree: BorrowedFd<'_>,
    attributes: u64,
    recursive: bool,
    idmap: Option<BorrowedFd<'_>>,
) -> Result<(), Errno> {
    let attr = MountAttr {
        attr_set: attributes | if idmap.is_some() { MOUNT_ATTR_IDMAP } else { 0 },
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: idmap.map_or(0, |fd| fd.as_raw_fd() as u64),
    };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a valid C string, `attr` is a valid mount_attr of the size given, and both outlive the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

/// Loads a seccomp filter for this thread and its children. Needs no_new_privs.
pub fn load_seccomp(program: &[libc::sock_filter]) -> Result<(), Errno> {
    let len = u16::try_from(program.len()).map_err(|_| Errno::INVAL)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    const SECCOMP_SET_MODE_FILTER: c_int = 1;
    // SAFETY: `program` describes `len` valid instructions that outlive the call; the kernel copies and checks them.
    check(unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &raw const program) })
        .map(drop)
}

/// Executes `program`. Returns only if that failed.
pub fn exec(program: &CStr, argv: &CStrings, envp: &CStrings) -> Errno {
    // SAFETY: `program` and every string of both arrays are valid, and both arrays end in a null pointer.
    unsafe { libc::execve(program.as_ptr(), argv.pointers(), envp.pointers()) };
    last_errno()
}

/// A null-terminated array of C strings, as execve(2) takes it.
pub struct CStrings {
    /// Owns what `pointers` points to.
    _strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl CStrings {
    /// Prepares `strings`, so that nothing is allocated between fork and exec.
    pub fn new(strings: Vec<CString>) -> CStrings {
        let mut pointers: Vec<*const c_char> = strings.iter().map(|s| s.as_ptr()).collect();
        pointers.push(ptr::null());
        CStrings { _strings: strings, pointers }
    }

    fn pointers(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

/// Calls `each` with every variable of this process's environment, as `NAME=value`, in place.
///
/// Nothing is copied: a variable that is looked at and not kept leaves no trace in memory that a copy of this process
/// would carry. Call it from a process with one thread, which changes no variable meanwhile.
pub fn each_variable(mut each: impl FnMut(&[u8])) {
    // SAFETY: `environ` is null or a null-terminated array of valid C strings. Nobody writes to it meanwhile: this
    // crate never sets variables, and the slice given to `each` does not outlive the call.
    unsafe {
        let mut entry = libc_environ();
        while !entry.is_null() && !(*entry).is_null() {
            each(CStr::from_ptr(*entry).to_bytes());
            entry = entry.add(1);
        }
    }
}

/// Overwrites the environment that this process was started with, in place.
///
/// PID 1 of a sandbox is a copy of the supervisor: after this, none of the operator's variables is left in its
/// memory where /proc/1/environ would show it. No code of this process may use environment variables afterwards.
pub fn wipe_environment() {
    // SAFETY: the process has one thread, so nobody reads or writes the environment at the same time. `environ` is a
    // null-terminated array of pointers to writable, nul-terminated strings, put there by the kernel or by setenv.
    unsafe {
        let mut entry = libc_environ();
        if entry.is_null() {
            return;
        }
        while !(*entry).is_null() {
            let string = *entry;
            ptr::write_bytes(string, 0, libc::strlen(string));
            *entry = ptr::null_mut();
            entry = entry.add(1);
        }
    }
}

fn libc_environ() -> *mut *mut c_char {
    unsafe extern "C" {
        static mut environ: *mut *mut c_char;
    }
    // SAFETY: `environ` is defined by the C library; reading the pointer itself is a plain load.
    unsafe { environ }
}

/// A descriptor that becomes readable when one of `signals` is pending; the signals are blocked until
/// [`unblock_signals`].
pub fn signal_fd(signals: &[c_int]) -> Result<OwnedFd, Errno> {
    // SAFETY: `set` is initialised by sigemptyset before any other use, and outlives the calls.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        check(libc::c_long::from(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut())))?;
        let fd = check(libc::c_long::from(libc::signalfd(
            -1,
            &raw const set,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        )))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// The number of the next pending signal of a [`signal_fd`].
pub fn next_signal(fd: BorrowedFd<'_>) -> Option<c_int> {
    let mut buffer = [0u8; size_of::<libc::signalfd_siginfo>()];
    match rustix::io::read(fd, &mut buffer) {
        Ok(n) if n == buffer.len() => Some(i32::from_ne_bytes([buffer[0], buffer[1], buffer[2], buffer[3]])),
        _ => None,
    }
}

/// Waits for the next of `signals`, which must be blocked. Returns its number.
pub fn wait_signal(signals: &[c_int]) -> Result<c_int, Errno> {
    // SAFETY: `set` is initialised by sigemptyset before use; a null info pointer is allowed.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        check(libc::c_long::from(libc::sigwaitinfo(&raw const set, ptr::null_mut()))).map(|n| n as c_int)
    }
}

/// Has ended children wait to be reaped, whatever this process was started with: a caller that ignores SIGCHLD hands that
/// down, and the kernel then forgets them.
pub fn keep_ended_children() {
    // SAFETY: SIG_DFL is a valid disposition.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Lets `signals` reach this thread again.
pub fn unblock_signals(signals: &[c_int]) -> Result<(), Errno> {
    signal_mask(libc::SIG_UNBLOCK, signals)
}

/// Blocks `signals` in this thread.
pub fn block_signals(signals: &[c_int]) -> Result<(), Errno> {
    signal_mask(libc::SIG_BLOCK, signals)
}

/// Gives this process the default action for every signal and an empty mask, as a new program expects it.
pub fn reset_signals() -> Result<(), Errno> {
    for signal in 1..=64 {
        // SAFETY: SIG_DFL is a valid disposition; numbers that can't be changed give an error that is of no interest.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    signal_mask(libc::SIG_SETMASK, &[])
}

fn signal_mask(how: c_int, signals: &[c_int]) -> Result<(), Errno> {
    // SAFETY: `set` is initialised by sigemptyset before use.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        check(libc::c_long::from(libc::sigprocmask(how, &raw const set, ptr::null_mut()))).map(drop)
    }
}

/// How a child ended, and what it used.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// Which child.
    pub pid: libc::pid_t,
    /// Its wait status.
    pub status: c_int,
}

/// Reaps one ended child (any, or `pid`). `None`: children exist and none has ended (with `block` false).
pub fn wait(pid: Option<libc::pid_t>, block: bool) -> Result<Option<(Ended, libc::rusage)>, Errno> {
    let mut status = 0;
    let flags = libc::__WALL | if block { 0 } else { libc::WNOHANG };
    // SAFETY: an all-zero rusage is a valid value, and wait4 writes to both out parameters, which outlive the call.
    let (found, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let found = libc::wait4(pid.unwrap_or(-1), &raw mut status, flags, &raw mut usage);
        (check(libc::c_long::from(found))?, usage)
    };
    Ok((found != 0).then_some((Ended { pid: found as libc::pid_t, status }, usage)))
}

/// Sends `signal` to `pid` (or, negative, to a process group).
pub fn kill(pid: libc::pid_t, signal: c_int) -> Result<(), Errno> {
    // SAFETY: kill takes plain numbers.
    check(libc::c_long::from(unsafe { libc::kill(pid, signal) })).map(drop)
}

/// Brings the loopback interface of this network namespace up. Needs CAP_NET_ADMIN in it.
pub fn loopback_up() -> Result<(), Errno> {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: an all-zero ifreq is valid; the name fits its field with a terminating nul; the union member that is
    // written is the one that SIOCSIFFLAGS reads.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as c_char;
        request.ifr_name[1] = b'o' as c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
        check(libc::c_long::from(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)))
            .map(drop)
    }
}

/// The payload of the `user` key with this description, from the caller's thread, process, session or user keyring.
pub fn read_user_key(description: &CStr) -> Result<Vec<u8>, Errno> {
    const KEYCTL_SEARCH: c_int = 10;
    const KEYCTL_READ: c_int = 11;
    const KEY_SPEC_USER_KEYRING: c_int = -4;
    // The kernel's largest payload of a user key is 32,767 bytes (add_key(2)).
    let mut payload = vec![0u8; 32 * 1024];
    // SAFETY: both strings are valid and outlive the calls; a null callout makes request_key search only. The buffer is
    // valid for its length, and the kernel writes at most that.
    let length = unsafe {
        let kind = c"user".as_ptr();
        let found =
            check(libc::syscall(libc::SYS_request_key, kind, description.as_ptr(), ptr::null::<c_char>(), 0));
        let key = match found {
            Ok(key) => key,
            Err(_) => check(libc::syscall(
                libc::SYS_keyctl,
                KEYCTL_SEARCH,
                KEY_SPEC_USER_KEYRING,
                kind,
                description.as_ptr(),
                0,
            ))?,
        };
        check(libc::syscall(libc::SYS_keyctl, KEYCTL_READ, key, payload.as_mut_ptr(), payload.len()))?
    };
    payload.truncate(usize::try_from(length).unwrap_or(0));
    Ok(payload)
}

/// Lets `socket` receive only what the classic BPF `program` returns a length for.
pub fn attach_filter(socket: BorrowedFd<'_>, program: &[libc::sock_filter]) -> Result<(), Errno> {
    let len = u16::try_from(program.len()).map_err(|_| Errno::INVAL)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: `program` describes `len` valid instructions that outlive the call; the kernel copies and checks them.
    check(libc::c_long::from(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    }))
    .map(drop)
}

/// The Landlock ABI of the running kernel; 0 where Landlock is missing or off.
pub fn landlock_abi() -> u32 {
    const LANDLOCK_CREATE_RULESET_VERSION: c_ulong = 1;
    // SAFETY: with this flag the kernel takes a null attribute of size 0 and only returns a number.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<u8>(),
            0usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(abi).unwrap_or(0)
}

/// Gives back the pages of this program's and its libraries' files that cannot have been changed. What is used again is
/// read again, from the page cache.
pub fn release_image() {
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, _: *mut libc::c_void) -> c_int {
        // SAFETY: the C library passes a valid description of one loaded object, with `dlpi_phnum` headers.
        unsafe {
            let info = &*info;
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
            const PAGE: u64 = 4096;
            for header in headers {
                // Segments that nothing writes to, relocation included: private copies of a file, unchanged.
                if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0 {
                    let start = (info.dlpi_addr + header.p_vaddr).next_multiple_of(PAGE);
                    let end = (info.dlpi_addr + header.p_vaddr + header.p_memsz) & !(PAGE - 1);
                    if start < end {
                        libc::madvise(
                            start as *mut libc::c_void,
                            (end - start) as usize,
                            libc::MADV_DONTNEED,
                        );
                    }
                }
            }
        }
        0
    }
    // SAFETY: the callback has the right type and takes no data. Dropping unchanged file pages changes nothing that can
    // be read, also not the code that runs.
    unsafe { libc::dl_iterate_phdr(Some(each), ptr::null_mut()) };
}

/// Closes a descriptor of a copy of this process that never returns to its owner.
pub fn close_here(fd: BorrowedFd<'_>) {
    // SAFETY: only forked processes that end by `exit_now` call this, so the owner's drop never runs in them.
    unsafe { libc::close(fd.as_raw_fd()) };
}

/// Closes every descriptor but `kept`, in a copy of this process that never returns to their owners, and makes the standard
/// streams ones of /dev/null. Numbers below 3 in `kept` are not kept.
pub fn keep_only(kept: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let null = rustix::fs::open(
        "/dev/null",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    for standard in 0..=2 {
        dup_to_standard(null.as_fd(), standard)?;
    }
    let mut numbers: Vec<u32> = kept.iter().filter_map(|fd| u32::try_from(fd.as_raw_fd()).ok()).collect();
    numbers.sort_unstable();
    let mut first = 3;
    for number in numbers.into_iter().chain([u32::MAX]) {
        if number > first {
            // SAFETY: only forked processes that end by `exit_now` call this, so no owner's drop runs in them.
            check(unsafe { libc::syscall(libc::SYS_close_range, first, number - 1, 0) })?;
        }
        first = first.max(number.saturating_add(1));
    }
    std::mem::forget(null);
    Ok(())
}

/// Marks every descriptor from `first` on close-on-exec.
pub fn close_on_exec_from(first: RawFd) -> Result<(), Errno> {
    const CLOSE_RANGE_CLOEXEC: c_int = 4;
    // SAFETY: close_range with CLOEXEC closes nothing now; it only sets a flag on existing descriptors.
    check(unsafe { libc::syscall(libc::SYS_close_range, first as u32, u32::MAX, CLOSE_RANGE_CLOEXEC) })
        .map(drop)
}

/// Unlocks the terminal behind `master` and opens its other side, by no path.
pub fn terminal_peer(master: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let unlock: c_int = 0;
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the first request reads one int; the second takes its argument by value and returns a new descriptor
    // that nobody else owns.
    unsafe {
        check(libc::c_long::from(libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlock)))?;
        let peer = check(libc::c_long::from(libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags)))?;
        Ok(OwnedFd::from_raw_fd(peer as RawFd))
    }
}

/// Makes `to` a copy of `from`, without close-on-exec. `to` must be 0, 1 or 2.
pub fn dup_to_standard(from: BorrowedFd<'_>, to: RawFd) -> Result<(), Errno> {
    debug_assert!((0..=2).contains(&to));
    // SAFETY: dup2 replaces a standard stream of a process that is about to exec; nothing in it owns that number.
    check(libc::c_long::from(unsafe { libc::dup2(from.as_raw_fd(), to) })).map(drop)
}

/// The bare `unshare(CLONE_NEWUSER)`, `keyctl` and `socket` tries of the canary: numbers in, errno out.
pub fn probe_syscall(number: libc::c_long, args: [c_ulong; 3]) -> Result<(), Errno> {
    // SAFETY: called only with the canary's fixed numbers, whose arguments are plain integers (no pointers).
    check(unsafe { libc::syscall(number, args[0], args[1], args[2]) }).map(drop)
}
