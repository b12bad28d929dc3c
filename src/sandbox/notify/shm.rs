//! POSIX shared memory and semaphores without the host's /dev/shm, and pseudo-terminals without its /dev/pts.
//!
//! C libraries hold both at fixed places: shared memory as files in /dev/shm, the command's side of a terminal below
//! /dev/pts, where the operator's own are. For a name in /dev/shm the supervisor opens a file of that name in the run's
//! scratch directory; for the other side of a terminal that the command has made it asks the terminal. All other names
//! are the kernel's business, which Landlock decides about: nothing is let through here.

use super::Answer;
use super::caller::Caller;
use crate::sandbox::seccomp::calls;
use crate::sandbox::sys::notify as sys;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::CString;

/// Longest name that is looked at: a longer one is not in /dev/shm.
const NAME_MAX: usize = 4096;

/// Where C libraries keep shared memory.
const PREFIX: &[u8] = b"/dev/shm/";

/// A run's own shared memory.
pub struct Shm {
    scratch: OwnedFd,
    dir: Option<OwnedFd>,
}

/// The name in `path`, if that is a file in /dev/shm.
fn name_in(path: &CString) -> Option<CString> {
    let name = path.as_bytes().strip_prefix(PREFIX)?;
    let plain = !name.is_empty() && !name.contains(&b'/') && name != b"." && name != b"..";
    plain.then(|| CString::new(name).ok())?
}

impl Shm {
    pub fn new(scratch: OwnedFd) -> Shm {
        Shm { scratch, dir: None }
    }

    /// The directory, made when it is first needed.
    fn dir(&mut self) -> Result<&OwnedFd, Errno> {
        let dir = match self.dir.take() {
            Some(dir) => dir,
            None => {
                match rustix::fs::mkdirat(&self.scratch, "shm", Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno),
                }
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                rustix::fs::openat(&self.scratch, "shm", flags, Mode::empty())?
            }
        };
        Ok(self.dir.insert(dir))
    }

    /// The calls by which C libraries use such names; `None`: it is another call.
    pub(super) fn answer(&mut self, caller: &Caller<'_>) -> Option<Answer> {
        let is = |call: calls::Call| call.is(caller.call.number);
        if is(calls::open) || is(calls::openat) {
            return Some(self.open(caller));
        }
        if is(calls::unlink) || is(calls::unlinkat) {
            return Some(self.unlink(caller));
        }
        (is(calls::link) || is(calls::linkat)).then(|| self.link(caller))
    }

    /// open(2) and openat(2) with the flags that C libraries use for shared memory.
    fn open(&mut self, caller: &Caller<'_>) -> Answer {
        let first = if calls::open.is(caller.call.number) { 0 } else { 1 };
        let Some(name) = named(caller, first) else { return Answer::Proceed };
        let flags = OFlags::from_bits_retain(caller.int(first + 1) as u32);
        let mode = Mode::from_raw_mode(caller.int(first + 2) as u32 & 0o700);
        let own = flags & (OFlags::ACCMODE | OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC);
        // The command can make anything of that name, and nothing there may hold this process.
        let always = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self.dir().and_then(|dir| rustix::fs::openat(dir, &name, own | always, mode));
        let opened = opened.and_then(|file| {
            if !flags.contains(OFlags::NONBLOCK) {
                rustix::fs::fcntl_setfl(&file, rustix::fs::fcntl_getfl(&file)? & !OFlags::NONBLOCK)?;
            }
            Ok(file)
        });
        match opened {
            Ok(file) => Answer::Descriptor { fd: file, cloexec: flags.contains(OFlags::CLOEXEC) },
            Err(errno) => Answer::Return(Err(errno)),
        }
    }

    /// unlink(2) and unlinkat(2).
    fn unlink(&mut self, caller: &Caller<'_>) -> Answer {
        let first = if calls::unlink.is(caller.call.number) { 0 } else { 1 };
        let Some(name) = named(caller, first) else { return Answer::Proceed };
        Answer::Return(
            self.dir().and_then(|dir| rustix::fs::unlinkat(dir, &name, AtFlags::empty())).map(|()| 0),
        )
    }

    /// link(2) and linkat(2).
    fn link(&mut self, caller: &Caller<'_>) -> Answer {
        let (from, to) = if calls::link.is(caller.call.number) { (0, 1) } else { (1, 3) };
        let (Some(from), Some(to)) = (named(caller, from), named(caller, to)) else { return Answer::Proceed };
        Answer::Return(
            self.dir().and_then(|dir| rustix::fs::linkat(dir, &from, dir, &to, AtFlags::empty())).map(|()| 0),
        )
    }
}

/// The name in /dev/shm that argument `n` is. What can't be read is not, and the kernel says what it thinks of it.
fn named(caller: &Caller<'_>, n: usize) -> Option<CString> {
    name_in(&caller.string(caller.arg(n), NAME_MAX).ok()?)
}

/// TIOCGPTPEER: the other side of a terminal whose master the command holds.
pub(super) fn terminal_peer(caller: &Caller<'_>) -> Answer {
    let opened = || -> Result<OwnedFd, Errno> {
        let master = caller.descriptor(caller.int(0))?;
        let flags = caller.int(2) & (libc::O_RDWR | libc::O_WRONLY | libc::O_NONBLOCK);
        // Never this process's controlling terminal.
        sys::terminal_peer(master.as_fd(), flags | libc::O_NOCTTY | libc::O_CLOEXEC)
    };
    match opened() {
        Ok(fd) => Answer::Descriptor { fd, cloexec: caller.int(2) & libc::O_CLOEXEC != 0 },
        Err(errno) => Answer::Return(Err(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_in_dev_shm_are_the_run_s() {
        let name = |path: &str| name_in(&CString::new(path).unwrap());
        assert_eq!(name("/dev/shm/sem.x"), Some(c"sem.x".to_owned()));
        for other in ["/dev/shm/", "/dev/shm/..", "/dev/shm/a/b", "/dev/shmx", "dev/shm/x", "/tmp/x", ""] {
            assert_eq!(name(other), None, "{other}");
        }
    }
}
