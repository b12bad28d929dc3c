//! Inside: the child that becomes PID 1 of the sandbox, and the target process that it starts.
//!
//! The steps, in order; each needs what the ones after it take away:
//!
//! 1. die with the supervisor; forget its environment
//! 2. the user and group maps, the mapped identity
//! 3. loopback, the network's sockets, the host name
//! 4. the private root
//! 5. no capabilities, no_new_privs
//! 6. fork: PID 1 stays, reaps and forwards signals; the target goes on
//! 7. session, standard streams, limits, working directory
//! 8. Landlock
//! 9. seccomp
//! 10. the canary, then exec

use super::layer::Layer;
use super::notify::creation::Creator;
use super::plan::Plan;
use super::status::{Failure, Record, Step};
use super::terminal;
use super::tier::Tier;
use super::{canary, landlock, limits, mounts, net, sys};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::thread::CapabilitySet;

/// Signals that PID 1 passes on to the target's process group.
pub const FORWARDED: [i32; 8] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGCONT,
];

/// Tells the housekeeper of tier `landlock` to end everything: sent by the supervisor, and by the kernel when the
/// supervisor is gone. It means nothing to ordinary programs.
pub const KILL_ALL: Signal = Signal::POWER;

/// The descriptors that the child was given.
pub struct Ends {
    /// The status pipe's writing end.
    pub status: OwnedFd,
    /// Read until the parent has written the id maps, where it does.
    pub go: Option<OwnedFd>,
    /// Where the network's sockets are sent, and in tier `landlock` the filter's notifications.
    pub channel: Option<OwnedFd>,
    /// Tier `full`: where the terminal's other side is sent. Tier `landlock`: the terminal.
    pub terminal: Option<OwnedFd>,
    /// Tier `full`, where the run is watched: where the filter's notifications are sent.
    pub watched: Option<OwnedFd>,
    /// What the target writes to in order to join the run's control group.
    pub group: Option<OwnedFd>,
    /// The target's standard streams.
    pub stdio: [OwnedFd; 3],
}

/// Everything from clone to exit; never returns.
pub fn main(plan: &Plan, ends: Ends) -> ! {
    let status = ends.status.as_fd();
    // Blocked before the fork, so that no end of the target is missed.
    let mut waited = vec![libc::SIGCHLD, KILL_ALL.as_raw()];
    waited.extend(FORWARDED);
    if let Err(errno) = sys::block_signals(&waited) {
        fail(status, Failure::at(Step::Fork)(errno));
    }
    let done = match plan.tier {
        Tier::Full => set_up(plan, &ends),
        Tier::Landlock => set_up_house(plan, &ends),
    };
    let slave = match done.and_then(|()| own_terminal(plan, &ends)) {
        Ok(slave) => {
            Record::Ready.send(status);
            slave
        }
        Err(failure) => {
            tidy(plan);
            fail(status, failure)
        }
    };
    let asked = match guard_channel(plan) {
        Ok(asked) => asked,
        Err(failure) => fail(status, failure),
    };
    match sys::fork() {
        Ok(None) => target(plan, &ends, asked.as_ref().map(|(_, theirs)| theirs), slave.as_ref()),
        Ok(Some(pid)) => {
            let Ends { status, go, channel, terminal, watched, group, stdio } = ends;
            drop((go, channel, terminal, watched, group, stdio, slave));
            match asked {
                Some((own, theirs)) => {
                    drop(theirs);
                    let creator = super::receive_descriptor(&own)
                        .map(|fd| Creator::new(fd, &plan.protection.guards, &plan.guarded));
                    keep_house_and_make(pid, &waited, status.as_fd(), plan, creator)
                }
                None => keep_house(pid, &waited, status.as_fd(), plan),
            }
        }
        Err(errno) => {
            tidy(plan);
            fail(status, Failure::at(Step::Fork)(errno))
        }
    }
}

/// The command's own terminal, which this process leads the session of.
fn own_terminal(plan: &Plan, ends: &Ends) -> Result<Option<OwnedFd>, Failure> {
    let (Some(settings), Some(given)) = (&plan.tty, &ends.terminal) else { return Ok(None) };
    let make = || -> Result<OwnedFd, Errno> {
        let slave = match plan.tier {
            Tier::Landlock => given.try_clone().map_err(|_| Errno::MFILE)?,
            Tier::Full => {
                let (master, slave) = settings.open()?;
                send_descriptor(given, master.as_fd())?;
                slave
            }
        };
        // For the moment in which the command comes to the front.
        sys::block_signals(&[libc::SIGTTOU])?;
        terminal::lead(slave.as_fd())?;
        Ok(slave)
    };
    make().map(Some).map_err(Failure::at(Step::Terminal))
}

/// Removes the scratch directory of tier `landlock`. Nothing of the run may be alive.
fn tidy(plan: &Plan) {
    if let Some(scratch) = &plan.scratch {
        scratch.remove();
    }
}

fn fail(status: BorrowedFd<'_>, failure: Failure) -> ! {
    Record::Failed(failure).send(status);
    sys::exit_now(i32::from(crate::exit::Exit::ISOLATION.code()))
}

fn set_up(plan: &Plan, ends: &Ends) -> Result<(), Failure> {
    sys::wipe_environment();
    become_user(plan, ends)?;
    die_with_supervisor(ends.status.as_fd(), Signal::KILL)?;
    if plan.weakened.keeps(Layer::NetNamespace) {
        sys::loopback_up().map_err(Failure::at(Step::Loopback))?;
    }
    if let Some(channel) = &ends.channel {
        net::enter(&plan.net, channel.as_fd())?;
    }
    if plan.weakened.keeps(Layer::HostIdentity) {
        rustix::system::sethostname(b"jess").map_err(Failure::at(Step::HostName))?;
    }
    if plan.weakened.keeps(Layer::Mounts) {
        mounts::enter(plan)?;
    }
    if plan.weakened.keeps(Layer::Capabilities) {
        drop_capabilities().map_err(Failure::at(Step::Capabilities))?;
    } else {
        keep_capabilities().map_err(Failure::at(Step::Capabilities))?;
    }
    rustix::thread::set_no_new_privs(true).map_err(Failure::at(Step::NoNewPrivs))
}

/// The set-up of tier `landlock`: this process becomes the housekeeper, who outlives the supervisor just long enough.
fn set_up_house(plan: &Plan, ends: &Ends) -> Result<(), Failure> {
    sys::wipe_environment();
    // Out of the terminal's reach: what is typed there comes from the supervisor.
    rustix::process::setsid().map_err(Failure::at(Step::Session))?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(Failure::at(Step::Supervisor))?;
    die_with_supervisor(ends.status.as_fd(), KILL_ALL)?;
    let held = rustix::thread::capabilities(None).map_err(Failure::at(Step::Capabilities))?;
    if plan.weakened.keeps(Layer::Capabilities) && !held.permitted.is_empty() {
        // Where the groups can't be dropped they are the caller's own.
        let _ = rustix::thread::set_thread_groups(&[]);
        drop_capabilities().map_err(Failure::at(Step::Capabilities))?;
    }
    rustix::thread::set_no_new_privs(true).map_err(Failure::at(Step::NoNewPrivs))
}

/// The supervisor's death sends this process `signal`, which ends everything inside.
fn die_with_supervisor(status: BorrowedFd<'_>, signal: Signal) -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(signal)).map_err(Failure::at(Step::Supervisor))?;
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(Failure::at(Step::Supervisor))?;
    // It may have died before the line above: then nobody reads the status pipe.
    let mut poll = [rustix::event::PollFd::new(&status, rustix::event::PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut poll, Some(&now)).map_err(Failure::at(Step::Supervisor))?;
    if poll[0].revents().contains(rustix::event::PollFlags::ERR) {
        return Err(Failure { step: Step::Supervisor, errno: libc::EPIPE, item: 0 });
    }
    Ok(())
}

fn become_user(plan: &Plan, ends: &Ends) -> Result<(), Failure> {
    let identity = plan.identity;
    if !identity.switched {
        return identity.write_maps("self").map_err(Failure::at(Step::IdMap));
    }
    let go = ends.go.as_ref().ok_or(Failure { step: Step::IdMap, errno: libc::EBADF, item: 0 })?;
    match rustix::io::retry_on_intr(|| rustix::io::read(go, &mut [0u8; 1])) {
        Ok(1) => {}
        Ok(_) => return Err(Failure { step: Step::IdMap, errno: libc::EPIPE, item: 0 }),
        Err(errno) => return Err(Failure::at(Step::IdMap)(errno)),
    }
    let (uid, gid) = (
        rustix::process::Uid::from_raw(identity.inside.0),
        rustix::process::Gid::from_raw(identity.inside.1),
    );
    let switch = || -> Result<(), Errno> {
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)
    };
    switch().map_err(Failure::at(Step::SetIds))
}

fn send_descriptor(socket: &OwnedFd, fd: BorrowedFd<'_>) -> Result<(), Errno> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [fd];
    if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(Errno::NOBUFS);
    }
    rustix::net::sendmsg(socket, &[std::io::IoSlice::new(b"L")], &mut control, SendFlags::empty()).map(drop)
}

fn drop_capabilities() -> Result<(), Errno> {
    use rustix::thread::{CapabilitiesSecureBits as Bits, CapabilitySets};
    rustix::thread::clear_ambient_capability_set()?;
    let locked = Bits::NO_ROOT
        | Bits::NO_ROOT_LOCKED
        | Bits::NO_SETUID_FIXUP
        | Bits::NO_SETUID_FIXUP_LOCKED
        | Bits::KEEP_CAPS_LOCKED
        | Bits::NO_CAP_AMBIENT_RAISE
        | Bits::NO_CAP_AMBIENT_RAISE_LOCKED;
    rustix::thread::set_capabilities_secure_bits(locked)?;
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(errno),
        }
    }
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )
}

/// For the drill: what a run would be if capabilities were not dropped and reached the program.
fn keep_capabilities() -> Result<(), Errno> {
    let mut sets = rustix::thread::capabilities(None)?;
    sets.inheritable = sets.permitted;
    rustix::thread::set_capabilities(None, sets)?;
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if sets.permitted.contains(capability) {
            rustix::thread::configure_capability_in_ambient_set(capability, true)?;
        }
    }
    Ok(())
}

/// Forwards signals to the target's group, reaps everything, reports how the target ended, and ends what is left: as
/// PID 1 of a namespace by ending itself, as the housekeeper of tier `landlock` one by one.
fn keep_house(target: libc::pid_t, waited: &[i32], status: BorrowedFd<'_>, plan: &Plan) -> ! {
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

/// Where the target sends PID 1 the descriptor of its filter, where that is asked.
fn guard_channel(plan: &Plan) -> Result<Option<(OwnedFd, OwnedFd)>, Failure> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    if !plan.asks_init() {
        return Ok(None);
    }
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map(Some)
        .map_err(Failure::at(Step::Notify))
}

/// As [`keep_house`], and makes names for the command meanwhile.
fn keep_house_and_make(
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
/// Children are killed by number: they stay until they are reaped here. What is deeper becomes a child when its parent
/// is gone, and is killed in the same round only by a descriptor that is known to be it.
pub fn kill_all() {
    use super::notify::processes;
    use rustix::process::{Pid, PidfdFlags};
    let own = rustix::process::getpid().as_raw_pid();
    loop {
        match sys::wait(None, false) {
            Ok(Some(_)) | Err(Errno::INTR) => continue,
            Ok(None) => {}
            Err(_) => return,
        }
        let all = processes::all();
        for pid in processes::below(own, &all) {
            let parent = all.get(&pid).map(|known| known.parent);
            if parent == Some(own) {
                let _ = sys::kill(pid, libc::SIGKILL);
            } else if let Some(process) = Pid::from_raw(pid)
                && let Ok(pidfd) = rustix::process::pidfd_open(process, PidfdFlags::empty())
                && processes::known(pid).map(|known| known.parent) == parent
            {
                let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
            }
        }
        // Somebody ends now; what the killed leave behind is found in the next round.
        let _ = sys::wait(None, true);
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

/// Loads a filter that asks the supervisor, and hands that its end. Inside another jess that is asked there can be no
/// second one: then the filter is loaded that does without.
fn load_supervised(plan: &Plan, channel: Option<&OwnedFd>) -> Result<(), Failure> {
    let channel = channel.ok_or(Failure { step: Step::Notify, errno: libc::EBADF, item: 0 })?;
    match sys::notify::load_seccomp_with_listener(&plan.seccomp) {
        Ok(listener) => send_descriptor(channel, listener.as_fd()).map_err(Failure::at(Step::Notify)),
        Err(Errno::BUSY) => {
            sys::load_seccomp(&plan.seccomp_alone).map_err(Failure::at(Step::Seccomp))?;
            rustix::io::write(channel, b"A").map(drop).map_err(Failure::at(Step::Notify))
        }
        Err(errno) => Err(Failure::at(Step::Seccomp)(errno)),
    }
}

fn target(plan: &Plan, ends: &Ends, asked: Option<&OwnedFd>, slave: Option<&OwnedFd>) -> ! {
    let status = ends.status.as_fd();
    match prepare(plan, ends, asked, slave) {
        Ok(()) => {}
        Err(failure) => fail(status, failure),
    }
    let mut answer = Errno::NOENT;
    for program in &plan.programs {
        match sys::exec(program, &plan.argv, &plan.envp) {
            Errno::NOENT | Errno::NOTDIR => {}
            errno => {
                answer = errno;
                break;
            }
        }
    }
    fail(status, Failure::at(Step::Exec)(answer))
}

fn prepare(
    plan: &Plan,
    ends: &Ends,
    asked: Option<&OwnedFd>,
    slave: Option<&OwnedFd>,
) -> Result<(), Failure> {
    match slave {
        Some(slave) => terminal::come_to_front(slave.as_fd()).map_err(Failure::at(Step::Terminal))?,
        None => rustix::process::setsid().map(drop).map_err(Failure::at(Step::Session))?,
    }
    sys::reset_signals().map_err(Failure::at(Step::Session))?;
    for (number, end) in (0..).zip(&ends.stdio) {
        sys::dup_to_standard(slave.unwrap_or(end).as_fd(), number).map_err(Failure::at(Step::Stdio))?;
    }
    sys::close_on_exec_from(3).map_err(Failure::at(Step::Stdio))?;
    if let Some(group) = &ends.group {
        rustix::io::write(group, b"0").map(drop).map_err(Failure::at(Step::Group))?;
    }
    if plan.weakened.keeps(Layer::Limits) {
        limits::apply(&plan.limits, plan.tier).map_err(Failure::at(Step::Limits))?;
    }
    rustix::process::chdir(&plan.cwd).map_err(Failure::at(Step::Cwd))?;
    let landlock = plan.weakened.keeps(Layer::Landlock) && plan.landlock_abi > 0;
    if landlock {
        landlock::enter(plan).map_err(Failure::at(Step::Landlock))?;
    }
    if plan.weakened.keeps(Layer::Seccomp) {
        match plan.tier {
            Tier::Full if asked.is_some() => {
                let channel = asked.ok_or(Failure { step: Step::Notify, errno: libc::EBADF, item: 0 })?;
                match sys::notify::load_seccomp_with_listener(&plan.seccomp) {
                    Ok(listener) => {
                        send_descriptor(channel, listener.as_fd()).map_err(Failure::at(Step::Notify))?;
                    }
                    // Inside another run that is asked: shared directories alone can be done without.
                    Err(Errno::BUSY) if plan.guarded.is_empty() => {
                        sys::load_seccomp(&plan.seccomp_alone).map_err(Failure::at(Step::Seccomp))?;
                        rustix::io::write(channel, b"A").map(drop).map_err(Failure::at(Step::Notify))?;
                    }
                    Err(errno) => return Err(Failure::at(Step::Seccomp)(errno)),
                }
            }
            Tier::Full if ends.watched.is_some() => load_supervised(plan, ends.watched.as_ref())?,
            Tier::Full => sys::load_seccomp(&plan.seccomp).map_err(Failure::at(Step::Seccomp))?,
            Tier::Landlock => load_supervised(plan, ends.channel.as_ref())?,
        }
    }
    canary::sing(plan.weakened, landlock, plan.no_file_rules).map_err(|item| Failure {
        step: Step::Canary,
        errno: 0,
        item,
    })
}
