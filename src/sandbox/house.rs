//! PID 1 of a run, or the housekeeper of tier `landlock`, once the command runs: reaps, forwards signals, says how the
//! command ended, and ends what is left.

use super::init::KILL_ALL;
use super::notify::creation::Creator;
use super::notify::processes::{self, Known};
use super::plan::Plan;
use super::status::Record;
use super::sys;
use super::tier::Tier;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::collections::{HashMap, HashSet};

/// Removes the scratch directory of tier `landlock`. Nothing of the run may be alive.
pub fn tidy(plan: &Plan) {
    if let Some(scratch) = &plan.scratch {
        scratch.remove();
    }
}

/// Forwards signals to the target's group, reaps everything, reports how the target ended, and ends what is left: as
/// PID 1 of a namespace by ending itself, as the housekeeper of tier `landlock` one by one.
pub fn keep_house(target: libc::pid_t, waited: &[i32], status: BorrowedFd<'_>, plan: &Plan) -> ! {
    if let Some(scratch) = &plan.scratch {
        scratch.sweep();
    }
    loop {
        let signal = match sys::wait_signal(waited) {
            Ok(signal) => signal,
            Err(Errno::INTR) => continue,
            Err(_) => leave(plan, 1),
        };
        attend(signal, target, status, plan);
    }
}

/// Does what `signal` asks for; does not return if that was the end.
fn attend(signal: i32, target: libc::pid_t, status: BorrowedFd<'_>, plan: &Plan) {
    if signal == KILL_ALL.as_raw() {
        leave(plan, 0)
    }
    if signal != libc::SIGCHLD {
        // The group exists once the target has made its session; before that, the process alone.
        if sys::kill(-target, signal).is_err() {
            let _ = sys::kill(target, signal);
        }
        return;
    }
    loop {
        match sys::wait(None, false) {
            Ok(Some((ended, _))) if ended.pid == target => {
                report(ended.status, status);
                leave(plan, 0)
            }
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(Errno::INTR) => {}
            Err(_) => leave(plan, 1),
        }
    }
    if plan.tty.is_some() && has_stopped(target) {
        Record::Suspended.send(status);
    }
}

/// Whether the child `pid` was stopped since this was last asked.
fn has_stopped(pid: libc::pid_t) -> bool {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let Some(pid) = Pid::from_raw(pid) else { return false };
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    matches!(waitid(WaitId::Pid(pid), options), Ok(Some(status)) if status.stopped())
}

/// As [`keep_house`], and makes names for the command meanwhile.
pub fn keep_house_and_make(
    target: libc::pid_t,
    waited: &[i32],
    status: BorrowedFd<'_>,
    plan: &Plan,
    mut creator: Option<Creator<'_>>,
) -> ! {
    use rustix::event::{PollFd, PollFlags, poll};
    let Ok(signals) = sys::signal_fd(waited) else { leave(plan, 1) };
    while let Some(making) = &creator {
        let mut fds = [
            PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(making.listener(), PollFlags::IN),
        ];
        let _ = poll(&mut fds, None);
        let [signalled, asked] = fds.map(|fd| fd.revents());
        while let Some(signal) =
            signalled.contains(PollFlags::IN).then(|| sys::next_signal(signals.as_fd())).flatten()
        {
            attend(signal, target, status, plan);
        }
        if asked.contains(PollFlags::IN) {
            making.serve();
        } else if !asked.is_empty() {
            // Nobody is left who could ask.
            creator = None;
        }
    }
    keep_house(target, waited, status, plan)
}

/// The end of PID 1, or of the housekeeper: nothing of the run is left.
fn leave(plan: &Plan, code: i32) -> ! {
    if plan.tier == Tier::Landlock {
        kill_all();
        tidy(plan);
    }
    sys::exit_now(code)
}

/// Kills and reaps every descendant of this process, which must be a subreaper.
///
/// What a killed process leaves behind becomes a child of this one, and is killed in the next round. A child stays until it
/// is reaped here, so its number, and that of the group it is in, are nobody else's: the kernel kills a group in one step
/// that no member can get ahead of by starting others.
pub fn kill_all() {
    let own = rustix::process::getpid().as_raw_pid();
    // 0 where its leader is outside this process namespace. Unknown, no group is killed: it could be this one.
    let own_group = processes::known(own).map(|known| known.group);
    loop {
        match sys::wait(None, false) {
            Ok(Some(_)) | Err(Errno::INTR) => continue,
            Ok(None) => {}
            Err(_) => return,
        }
        let (children, all) = children_of(own);
        let mut groups = HashSet::new();
        for child in &children {
            let group = all.get(child).copied().or_else(|| processes::known(*child));
            let foreign = |group: &i32| *group > 1 && own_group.is_some_and(|own| own != *group);
            let group = group.map(|known| known.group).filter(foreign);
            if let Some(group) = group.filter(|group| groups.insert(*group)) {
                let _ = sys::kill(-group, libc::SIGKILL);
            }
            let _ = sys::kill(*child, libc::SIGKILL);
        }
        // Those that are deeper, where they can be told to be what they were.
        for pid in processes::below(own, &all).into_iter().filter(|pid| !children.contains(pid)) {
            let parent = all.get(&pid).map(|known| known.parent);
            if let Some(process) = Pid::from_raw(pid)
                && let Ok(pidfd) = pidfd_open(process, PidfdFlags::empty())
                && processes::known(pid).map(|known| known.parent) == parent
            {
                let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
            }
        }
        // Somebody ends now; what the killed leave behind is found in the next round.
        let _ = sys::wait(None, true);
    }
}

/// The children of process `own`. Where the kernel does not list them, they are found among all processes, which are then
/// given too.
fn children_of(own: i32) -> (HashSet<i32>, HashMap<i32, Known>) {
    // One thread, so one list.
    match std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")) {
        Ok(list) => {
            (list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(), HashMap::new())
        }
        Err(_) => {
            let all = processes::all();
            (all.iter().filter(|(_, known)| known.parent == own).map(|(pid, _)| *pid).collect(), all)
        }
    }
}

fn report(wait_status: i32, status: BorrowedFd<'_>) {
    let record = if libc::WIFSIGNALED(wait_status) {
        Record::Signalled { signal: libc::WTERMSIG(wait_status) as u8, core: libc::WCOREDUMP(wait_status) }
    } else {
        Record::Exited(libc::WEXITSTATUS(wait_status) as u8)
    };
    record.send(status);
}
