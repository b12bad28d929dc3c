//! The system calls of the drill's attacks that no safe wrapper covers.
#![allow(unsafe_code)]

use std::io::{Error, Result};

/// Makes a System V shared memory segment that any local user may read, holding `bytes`. Returns its id.
pub fn share(bytes: &[u8]) -> Result<i32> {
    // SAFETY: shmget takes plain numbers.
    let id = unsafe { libc::shmget(libc::IPC_PRIVATE, bytes.len(), libc::IPC_CREAT | 0o644) };
    if id < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the segment is attached at an address of the kernel's choice, is at least `bytes.len()` long, is written
    // within that length, and is detached before anything else uses the mapping.
    unsafe {
        let at = libc::shmat(id, std::ptr::null(), 0);
        if at as isize == -1 {
            return Err(Error::last_os_error());
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast::<u8>(), bytes.len());
        libc::shmdt(at);
    }
    Ok(id)
}

/// The first `len` bytes of segment `id`.
pub fn read_shared(id: i32, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    // SAFETY: `info` is a valid out parameter; the mapping is read within the size that the kernel reports for the
    // segment, and is detached before the bytes are used.
    unsafe {
        let mut info: libc::shmid_ds = std::mem::zeroed();
        if libc::shmctl(id, libc::IPC_STAT, &raw mut info) != 0 {
            return Err(Error::last_os_error());
        }
        let at = libc::shmat(id, std::ptr::null(), libc::SHM_RDONLY);
        if at as isize == -1 {
            return Err(Error::last_os_error());
        }
        let len = len.min(info.shm_segsz);
        std::ptr::copy_nonoverlapping(at.cast::<u8>(), bytes.as_mut_ptr(), len);
        libc::shmdt(at);
    }
    Ok(bytes)
}

/// Removes segment `id`.
pub fn unshare_segment(id: i32) {
    // SAFETY: IPC_RMID ignores the buffer argument.
    unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
}

/// The session keyring of this process.
const SESSION_KEYRING: libc::c_long = -3;
const KEYCTL_JOIN_SESSION: libc::c_long = 1;
const KEYCTL_SEARCH: libc::c_long = 10;
const KEYCTL_READ: libc::c_long = 11;

/// Puts a key named `name` that holds `value` into a fresh session keyring of this process.
pub fn plant_key(name: &str, value: &[u8]) -> Result<()> {
    let name = std::ffi::CString::new(name)?;
    // SAFETY: a null name makes an anonymous session keyring.
    let joined = unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION, 0) };
    // SAFETY: both strings are valid and end in a nul; the value is valid for its length.
    let added = unsafe {
        libc::syscall(
            libc::SYS_add_key,
            c"user".as_ptr(),
            name.as_ptr(),
            value.as_ptr(),
            value.len(),
            SESSION_KEYRING,
        )
    };
    if joined < 0 || added < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// What the key named `name` in the session keyring holds.
pub fn steal_key(name: &str) -> Result<Vec<u8>> {
    let name = std::ffi::CString::new(name)?;
    let mut bytes = vec![0u8; 256];
    // SAFETY: both strings are valid and end in a nul; the buffer is valid for the length given.
    let read = unsafe {
        let key = libc::syscall(
            libc::SYS_keyctl,
            KEYCTL_SEARCH,
            SESSION_KEYRING,
            c"user".as_ptr(),
            name.as_ptr(),
            0,
        );
        if key < 0 {
            return Err(Error::last_os_error());
        }
        libc::syscall(libc::SYS_keyctl, KEYCTL_READ, key, bytes.as_mut_ptr(), bytes.len())
    };
    if read < 0 {
        return Err(Error::last_os_error());
    }
    bytes.truncate(read as usize);
    Ok(bytes)
}

/// Sends `signal` to process `pid`.
pub fn kill(pid: i32, signal: i32) -> Result<()> {
    // SAFETY: kill takes plain numbers.
    if unsafe { libc::kill(pid, signal) } == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Leaves the process that called for good: forks, lets the parent go on, and gives the child a session of its own.
/// True in the child.
pub fn detach() -> Result<bool> {
    // SAFETY: the drill's acts have one thread, so the child may run ordinary code.
    match unsafe { libc::fork() } {
        -1 => Err(Error::last_os_error()),
        0 => {
            // SAFETY: setsid takes nothing; failure only means that the child leads a group already.
            unsafe { libc::setsid() };
            Ok(true)
        }
        _ => Ok(false),
    }
}
