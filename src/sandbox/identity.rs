//! Who the command is: the user and group maps.
//!
//! Inside, the command has one user and one group, neither of them 0. Started by an ordinary user it is that user
//! (single-id maps need no privilege). Started by root it must not be kernel uid 0, which reads root-only files
//! without any capability and escapes RLIMIT_NPROC (measured on Linux 6.18): it becomes a host uid of its own, and
//! grants are id-mapped so that the operator's files are the command's files.

use super::sys::{self, Cloned};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fmt::Write as _;

/// The uid and gid inside when the operator's own can't be kept.
const INSIDE: u32 = 1000;

/// First host uid for commands started by root. Above what systemd and the common allocators of sub-ids hand out.
const OUTSIDE_BASE: u32 = 1_900_000_000;

/// The ids of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Uid and gid inside the user namespace.
    pub inside: (u32, u32),
    /// Uid and gid in the caller's namespace.
    pub outside: (u32, u32),
    /// Whether `outside` is another user than the caller: then the parent writes the maps, and grants are id-mapped.
    pub switched: bool,
}

impl Identity {
    /// The identity for a run started by the calling process.
    pub fn choose() -> Identity {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        if uid == 0 {
            let outside = OUTSIDE_BASE + (rustix::process::getpid().as_raw_pid() as u32 & 0x003f_ffff);
            if is_mapped("/proc/self/uid_map", outside) && is_mapped("/proc/self/gid_map", outside) {
                return Identity { inside: (INSIDE, INSIDE), outside: (outside, outside), switched: true };
            }
            // Root of a container whose map is too small for another user: it is no kernel uid 0 either.
            return Identity { inside: (INSIDE, INSIDE), outside: (uid, gid), switched: false };
        }
        Identity { inside: (uid, if gid == 0 { INSIDE } else { gid }), outside: (uid, gid), switched: false }
    }

    /// Writes the maps of the process with this `/proc` directory name (`self`, or a pid).
    ///
    /// Groups: an unprivileged writer must deny setgroups first, and its supplementary groups stay; for a switched
    /// identity setgroups stays possible, so that the child can drop them.
    pub fn write_maps(&self, process: &str) -> Result<(), Errno> {
        if !self.switched {
            write_proc(process, "setgroups", "deny")?;
        }
        write_proc(process, "uid_map", &format!("{} {} 1", self.inside.0, self.outside.0))?;
        write_proc(process, "gid_map", &format!("{} {} 1", self.inside.1, self.outside.1))
    }

    /// A user namespace whose map shows uid and gid 0 of a file system as this identity (and all others as
    /// themselves), for id-mapped mounts. Needs root.
    pub fn idmap_namespace(&self) -> Result<OwnedFd, Errno> {
        let (hold_read, hold_write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        match sys::clone_into(libc::CLONE_NEWUSER)? {
            Cloned::Child => {
                drop(hold_write);
                let _ = rustix::io::read(&hold_read, &mut [0u8; 1]);
                sys::exit_now(0)
            }
            Cloned::Parent(pid, _pidfd) => {
                let opened = self.open_idmap(pid);
                drop(hold_write);
                let _ = sys::wait(Some(pid), true);
                opened
            }
        }
    }

    fn open_idmap(&self, pid: libc::pid_t) -> Result<OwnedFd, Errno> {
        let map = |outside: u32| {
            let mut lines = format!("0 {outside} 1\n");
            let _ = write!(lines, "1 1 {}", outside - 1);
            lines
        };
        let process = pid.to_string();
        write_proc(&process, "uid_map", &map(self.outside.0))?;
        write_proc(&process, "gid_map", &map(self.outside.1))?;
        rustix::fs::open(format!("/proc/{pid}/ns/user"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    }
}

fn write_proc(process: &str, file: &str, content: &str) -> Result<(), Errno> {
    let fd =
        rustix::fs::open(format!("/proc/{process}/{file}"), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(fd.as_fd(), content.as_bytes()).map(drop)
}

/// Whether `id` has a mapping in the id map of /proc at `path`.
fn is_mapped(path: &str, id: u32) -> bool {
    std::fs::read_to_string(path).is_ok_and(|map| covers(&map, id))
}

fn covers(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let mut fields = line.split_whitespace().map(str::parse::<u64>);
        match (fields.next(), fields.next(), fields.next()) {
            (Some(Ok(first)), Some(Ok(_)), Some(Ok(count))) => {
                (first..first + count).contains(&u64::from(id))
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_uid_zero_inside() {
        let identity = Identity::choose();
        assert_ne!(identity.inside.0, 0);
        assert_ne!(identity.inside.1, 0);
    }

    #[test]
    fn root_becomes_another_kernel_user() {
        if rustix::process::geteuid().is_root() && is_mapped("/proc/self/uid_map", OUTSIDE_BASE + 0x003f_ffff)
        {
            let identity = Identity::choose();
            assert!(identity.switched);
            assert_ne!(identity.outside.0, 0);
        } else {
            assert!(!Identity::choose().switched);
        }
    }

    #[test]
    fn an_id_map_line_covers_its_range_only() {
        let map = "         0          0      65536\n    100000     100000          1\n";
        assert!(covers(map, 0) && covers(map, 65535) && covers(map, 100_000));
        assert!(!covers(map, 65536) && !covers(map, 100_001));
        assert!(!covers("garbage", 0));
    }
}
