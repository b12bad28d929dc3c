//! The control group of one run: made before the command, joined by it, removed after it.
//!
//! The directory is `jess-RANDOM` below the [`Place`], locked while the run lives. The supervisor removes it. Should that
//! be killed, a janitor does: a process that waits for nothing but its end, kills what is left in the group and removes
//! it. Where both are killed at once, the next run finds the directory unlocked and removes it.

use super::Place;
use crate::sandbox::spec::Limits;
use crate::sandbox::sys;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::CString;
use std::path::Path;
use std::time::Duration;

/// What the names of groups begin with.
const PREFIX: &str = "jess-";

/// Groups left by others that one start removes at most.
const SWEPT_AT_ONCE: usize = 8;

/// How often removal is tried while processes that were killed end, and how long each time is.
const TRIES: u32 = 1000;
const BETWEEN: Duration = Duration::from_millis(5);

/// Microseconds in which a share of processor time is handed out (cpu.max).
const PERIOD: u64 = 100_000;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A run's group.
#[derive(Debug)]
pub struct Group {
    parent: OwnedFd,
    name: CString,
    /// Holds the lock.
    own: OwnedFd,
    /// Its end tells the janitor that the supervisor is gone.
    _alive: OwnedFd,
    /// What was asked for and is not bounded, and why.
    pub missing: Vec<String>,
}

impl Group {
    /// Makes a group in `place` with `limits`. The caller must have one thread.
    ///
    /// # Errors
    /// The group can't be made, or a limit that its parent hands down can't be set; then there is no group.
    pub fn create(place: &Place, limits: &Limits) -> Result<Group, Errno> {
        let parent = rustix::fs::open(&place.directory, DIRECTORY, Mode::empty())?;
        sweep(&parent);
        let mut bytes = [0u8; 8];
        getrandom::fill(&mut bytes).map_err(|_| Errno::IO)?;
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        let name = CString::new(format!("{PREFIX}{hex}")).map_err(|_| Errno::INVAL)?;
        // The janitor first: from the moment in which the group is there, somebody removes it.
        let (dead, alive) = pipe_with(PipeFlags::CLOEXEC)?;
        janitor(&parent, &name, &dead, &alive)?;
        rustix::fs::mkdirat(&parent, &name, Mode::from_raw_mode(0o755))?;
        let own = rustix::fs::openat(&parent, &name, DIRECTORY, Mode::empty())?;
        rustix::fs::flock(&own, FlockOperation::NonBlockingLockExclusive)?;
        let mut group = Group { parent, name, own, _alive: alive, missing: Vec::new() };
        for (controller, file, value) in wanted(limits) {
            if place.controllers.iter().any(|c| c == controller) {
                group.write(file, &value)?;
            } else {
                group
                    .missing
                    .push(format!("{file} is not set: {} does not hand {controller} down", place.shown()));
            }
        }
        if limits.memory_bytes.is_some() {
            // Where they are there: no way around by swapping, and a run that is out of memory ends as a whole.
            let _ = group.write("memory.swap.max", "0");
            let _ = group.write("memory.oom.group", "1");
        }
        Ok(group)
    }

    fn write(&self, file: &str, value: &str) -> Result<(), Errno> {
        let fd = rustix::fs::openat(&self.own, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::io::write(&fd, value.as_bytes()).map(drop)
    }

    /// What a process writes `0` to in order to join.
    pub fn door(&self) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(&self.own, "cgroup.procs", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
    }

    /// Kills everything in the group at once, where the kernel can (5.14).
    pub fn kill(&self) {
        let _ = self.write("cgroup.kill", "1");
    }

    /// How often the kernel killed for want of memory, and refused a process.
    pub fn events(&self) -> (u64, u64) {
        let count = |file: &str, key: &str| {
            let fd = rustix::fs::openat(&self.own, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
            let mut text = [0u8; 512];
            let n = fd.and_then(|fd| rustix::io::read(&fd, &mut text)).unwrap_or(0);
            counted(&String::from_utf8_lossy(text.get(..n).unwrap_or_default()), key)
        };
        (count("memory.events", "oom_kill"), count("pids.events", "max"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove(&self.parent, &self.name, &self.own);
    }
}

/// Controller, file and value of each limit that only a group can set.
fn wanted(limits: &Limits) -> Vec<(&'static str, &'static str, String)> {
    let mut wanted = Vec::new();
    if let Some(bytes) = limits.memory_bytes {
        wanted.push(("memory", "memory.max", bytes.to_string()));
    }
    if let Some(percent) = limits.cpu_percent {
        wanted.push(("cpu", "cpu.max", format!("{} {PERIOD}", u64::from(percent) * (PERIOD / 100))));
    }
    if let Some(processes) = limits.processes {
        wanted.push(("pids", "pids.max", processes.to_string()));
    }
    wanted
}

/// The number behind `key` in a file of counters.
fn counted(text: &str, key: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(name, _)| *name == key).and_then(|(_, count)| count.trim().parse().ok()).unwrap_or(0)
}

/// Removes the group; kills what is in it until nothing is.
fn remove(parent: &OwnedFd, name: &CString, own: &OwnedFd) {
    for _ in 0..TRIES {
        match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Err(Errno::BUSY) => {}
            _ => return,
        }
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        if let Ok(kill) = rustix::fs::openat(own, "cgroup.kill", flags, Mode::empty()) {
            let _ = rustix::io::write(&kill, b"1");
        }
        std::thread::sleep(BETWEEN);
    }
}

/// Removes groups of runs that are gone with their janitors.
fn sweep(parent: &OwnedFd) {
    let Ok(entries) = Dir::read_from(parent) else { return };
    let left =
        entries.filter_map(Result::ok).filter(|e| e.file_name().to_bytes().starts_with(PREFIX.as_bytes()));
    let mut removed = 0;
    for entry in left {
        let name = entry.file_name().to_owned();
        let Ok(own) = rustix::fs::openat(parent, &name, DIRECTORY, Mode::empty()) else { continue };
        if rustix::fs::flock(&own, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // Just made and not locked yet, or left: one that nobody is in may go, and its run makes an error of it.
            let _ = rustix::fs::unlinkat(parent, &name, AtFlags::REMOVEDIR);
            removed += 1;
        }
        if removed == SWEPT_AT_ONCE {
            return;
        }
    }
}

/// Starts the process that removes the group when nobody holds `alive` any more.
fn janitor(parent: &OwnedFd, name: &CString, dead: &OwnedFd, alive: &OwnedFd) -> Result<(), Errno> {
    if sys::fork()?.is_some() {
        return Ok(());
    }
    // No terminal, signal or stream of the operator's is this process's business.
    let _ = rustix::process::setsid();
    let _ = sys::block_signals(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE]);
    if let Ok(null) = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        for number in 0..3 {
            let _ = sys::dup_to_standard(null.as_fd(), number);
        }
    }
    sys::close_here(alive.as_fd());
    while let Ok(1) | Err(Errno::INTR) = rustix::io::read(dead, &mut [0u8; 1]) {}
    if let Ok(own) = rustix::fs::openat(parent, name, DIRECTORY, Mode::empty()) {
        remove(parent, name, &own);
    }
    sys::exit_now(0)
}

impl Place {
    fn shown(&self) -> String {
        crate::sanitise::path(&self.directory).to_string()
    }
}

impl Limits {
    /// Whether only a control group can set one of them.
    pub(in crate::sandbox) fn need_group(&self) -> bool {
        self.memory_bytes.is_some() || self.cpu_percent.is_some()
    }
}

/// The group of a run with `limits`, below `parent` if one is named, and what of the limits is not bounded, in words.
pub fn group_of(limits: &Limits, parent: Option<&Path>) -> (Option<Group>, Vec<String>) {
    if !limits.need_group() {
        return (None, Vec::new());
    }
    let unbounded =
        |why: String| format!("memory and processor shares of all processes together are not bounded: {why}");
    let place = match parent.map_or_else(super::find, super::named) {
        Ok(place) => place,
        Err(reason) => return (None, vec![unbounded(reason.to_string())]),
    };
    // Another start may have taken a group that was just made for one that was left.
    match Group::create(&place, limits).or_else(|_| Group::create(&place, limits)) {
        Ok(group) => {
            let missing = group.missing.clone();
            (Some(group), missing)
        }
        Err(errno) => (None, vec![unbounded(format!("making a group in {}: {errno}", place.shown()))]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        let limits = Limits { memory_bytes: Some(1 << 20), cpu_percent: Some(150), ..Limits::default() };
        let written: Vec<_> =
            wanted(&limits).into_iter().map(|(_, file, value)| format!("{file}={value}")).collect();
        assert_eq!(written, ["memory.max=1048576", "cpu.max=150000 100000", "pids.max=1024"]);
    }

    #[test]
    fn counters_are_found_by_their_whole_name() {
        assert_eq!(counted("low 1\noom 2\noom_kill 3\noom_group_kill 4\n", "oom_kill"), 3);
        assert_eq!(counted("", "max"), 0);
    }
}
