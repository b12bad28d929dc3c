//! Which processes belong to the run, and questions about others.

use super::caller::Caller;
use super::{Answer, Context};
use crate::sandbox::seccomp::calls;
use rustix::io::Errno;
use rustix::process::Pid;
use std::collections::HashMap;

/// Longest chain of parents that is followed.
const GENERATIONS: usize = 8192;

/// What /proc says of a process.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    pub parent: i32,
    pub group: i32,
    pub threads: u64,
}

/// What /proc says of process (or thread) `pid`.
pub fn known(pid: i32) -> Option<Known> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything, also parentheses.
    let end = stat.iter().rposition(|b| *b == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let threads = fields.nth(14)?.parse().ok()?;
    Some(Known { parent, group, threads })
}

/// All processes of this /proc.
pub fn all() -> HashMap<i32, Known> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return HashMap::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, known(pid)?)))
        .collect()
}

/// The descendants of `ancestor` among `processes`.
pub fn below(ancestor: i32, processes: &HashMap<i32, Known>) -> Vec<i32> {
    let is_below = |mut pid: i32| {
        for _ in 0..GENERATIONS {
            match processes.get(&pid) {
                Some(known) if known.parent == ancestor => return true,
                Some(known) if known.parent > 0 => pid = known.parent,
                _ => return false,
            }
        }
        false
    };
    processes.keys().copied().filter(|pid| is_below(*pid)).collect()
}

/// Whether process or thread `pid` descends from `ancestor`.
fn belongs(mut pid: i32, ancestor: i32) -> bool {
    for _ in 0..GENERATIONS {
        match known(pid) {
            Some(known) if known.parent == ancestor => return true,
            Some(known) if known.parent > 1 => pid = known.parent,
            _ => return false,
        }
    }
    false
}

/// The value of a line of /proc/PID/status. The file begins with the name, which may be no text.
pub(super) fn status_field(pid: u32, name: &[u8]) -> Option<String> {
    let status = std::fs::read(format!("/proc/{pid}/status")).ok()?;
    let value = status.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(name))?;
    Some(std::str::from_utf8(value).ok()?.trim().to_owned())
}

/// The process that thread `tid` is of.
pub(super) fn process_of(tid: u32) -> Option<Pid> {
    Pid::from_raw(status_field(tid, b"Tgid:")?.parse().ok()?)
}

/// A call that names a process by number: one of the run's own, or it does not exist.
pub(super) fn on_process(caller: &Caller<'_>, context: &Context<'_>, argument: usize) -> Answer {
    let named = caller.int(argument);
    let priority = [calls::setpriority, calls::getpriority].iter().any(|c| c.is(caller.call.number));
    let io_priority = [calls::ioprio_set, calls::ioprio_get].iter().any(|c| c.is(caller.call.number));
    let known = match (priority, io_priority, caller.int(0)) {
        // PRIO_PROCESS, IOPRIO_WHO_PROCESS
        (true, _, 0) | (_, true, 1) | (false, false, _) => belongs(named, context.house),
        (true, _, 1) | (_, true, 2) => is_own_group(named, context.house),
        _ => false,
    };
    if known { Answer::Proceed } else { Answer::Return(Err(Errno::SRCH)) }
}

/// Whether `group` is a process group of the run: its sessions and groups hold nobody else.
fn is_own_group(group: i32, house: i32) -> bool {
    let processes = all();
    below(house, &processes).iter().any(|pid| processes.get(pid).is_some_and(|known| known.group == group))
}

/// A signal, where Landlock has no scope for them.
pub(super) fn signal(caller: &Caller<'_>, context: &Context<'_>) -> Answer {
    let named = caller.int(0);
    let known = match named {
        // The caller's own group.
        0 => true,
        -1 => return everybody(caller, context),
        group if group < 0 && calls::kill.is(caller.call.number) => {
            is_own_group(group.checked_neg().unwrap_or(0), context.house)
        }
        pid => belongs(pid, context.house),
    };
    if known { Answer::Proceed } else { Answer::Return(Err(Errno::PERM)) }
}

/// kill(-1): all of the run's processes but the caller.
fn everybody(caller: &Caller<'_>, context: &Context<'_>) -> Answer {
    if !calls::kill.is(caller.call.number) {
        return Answer::Return(Err(Errno::INVAL));
    }
    let own = process_of(caller.call.pid);
    for pid in below(context.house, &all()) {
        if Pid::from_raw(pid) != own {
            let _ = crate::sandbox::sys::kill(pid, caller.int(1));
        }
    }
    Answer::Return(Ok(0))
}

/// A signal by descriptor: a pidfd of a process of the run's own, whoever gave it, and no directory of /proc.
pub(super) fn signal_by_descriptor(caller: &Caller<'_>, context: &Context<'_>) -> Result<i64, Errno> {
    use rustix::fd::AsRawFd;
    let pidfd = caller.descriptor(caller.int(0))?;
    let link = rustix::fs::readlink(format!("/proc/self/fd/{}", pidfd.as_raw_fd()), Vec::new())?;
    if link.as_bytes() != b"anon_inode:[pidfd]" {
        return Err(Errno::PERM);
    }
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()));
    let info = info.map_err(|_| Errno::PERM)?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse::<i32>().ok());
    match pid {
        // It has ended.
        Some(-1) => return Err(Errno::SRCH),
        Some(pid) if belongs(pid, context.house) => {}
        _ => return Err(Errno::PERM),
    }
    let number = caller.int(1);
    if number == 0 {
        return Ok(0);
    }
    let signal = rustix::process::Signal::from_named_raw(number).ok_or(Errno::INVAL)?;
    rustix::process::pidfd_send_signal(&pidfd, signal).map(|()| 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_and_others_are_not() {
        let known = |parent| Known { parent, group: 0, threads: 1 };
        let processes = HashMap::from([
            (1, known(0)),
            (10, known(1)),
            (20, known(10)),
            (21, known(20)),
            (30, known(1)),
            // A loop, as a torn reading of /proc may show it.
            (40, known(41)),
            (41, known(40)),
        ]);
        let mut found = below(10, &processes);
        found.sort_unstable();
        assert_eq!(found, [20, 21]);
    }

    #[test]
    fn this_process_descends_from_its_parent() {
        let own = std::process::id() as i32;
        let parent = known(own).unwrap().parent;
        assert!(belongs(own, parent));
        assert!(!belongs(own, own));
        assert!(all().contains_key(&own));
        assert_eq!(process_of(own as u32).unwrap().as_raw_pid(), own);
        assert_eq!(status_field(own as u32, b"Pid:").unwrap(), own.to_string());
    }
}
