//! Inside: the child that becomes PID 1 of the sandbox, and the target process that it starts.
//!
//! The steps, in order; each needs what the ones after it take away:
//!
//! 1. die with the supervisor; forget its environment and its descriptors
//! 2. the user and group maps, the mapped identity
//! 3. loopback, the network's sockets, the host name
//! 4. the private root
//! 5. no capabilities, no_new_privs
//! 6. fork: PID 1 stays, reaps and forwards signals; the target goes on
//! 7. session, standard streams, limits, working directory
//! 8. Landlock
//! 9. seccomp
//! 10. the canary, then exec

use super::house::{keep_house, keep_house_and_make, tidy};
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

impl Ends {
    fn all(&self) -> Vec<BorrowedFd<'_>> {
        let some = [&self.go, &self.channel, &self.terminal, &self.watched, &self.group];
        let some = some.into_iter().flatten().chain([&self.status]).chain(&self.stdio);
        some.map(AsFd::as_fd).collect()
    }
}

/// Everything from clone to exit; never returns.
pub fn main(plan: &Plan, ends: Ends) -> ! {
    let status = ends.status.as_fd();
    // What jess was started with, and has opened, is nobody's business inside: a process there could be made to use it.
    let (trees, house) = plan.descriptors();
    if let Err(errno) = sys::keep_only(&[&ends.all()[..], &trees, &house].concat()) {
        fail(status, Failure::at(Step::Stdio)(errno));
    }
    // Blocked before the fork, so that no end of the target is missed.
    let mut waited = vec![libc::SIGCHLD];
    waited.extend(FORWARDED);
    if plan.tier == Tier::Landlock {
        // In tier `full` the supervisor kills PID 1 itself, and nobody inside is to end it by this signal.
        waited.push(KILL_ALL.as_raw());
    }
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
    let ours =
        slave.iter().chain(asked.iter().flat_map(|(own, theirs)| [own, theirs])).map(AsFd::as_fd).collect();
    if let Err(errno) = sys::keep_only(&[ends.all(), house, ours].concat()) {
        tidy(plan);
        fail(status, Failure::at(Step::Stdio)(errno));
    }
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

/// Loads a filter that asks the supervisor, and hands that its end. Inside another jess that is asked there can be no
/// second one: then the filter is loaded that does without, if the one that is asked shows what it is.
fn load_supervised(plan: &Plan, channel: Option<&OwnedFd>) -> Result<(), Failure> {
    let channel = channel.ok_or(Failure { step: Step::Notify, errno: libc::EBADF, item: 0 })?;
    match sys::notify::load_seccomp_with_listener(&plan.seccomp) {
        Ok(listener) => send_descriptor(channel, listener.as_fd()).map_err(Failure::at(Step::Notify)),
        // The outer supervisor knows nothing of what is denied here. One of another program's decides about nothing.
        Err(Errno::BUSY)
            if plan.division.is_some() || (plan.tier == Tier::Landlock && !is_supervised_by_jess()) =>
        {
            Err(Failure::at(Step::Notify)(Errno::BUSY))
        }
        Err(Errno::BUSY) => {
            sys::load_seccomp(&plan.seccomp_alone).map_err(Failure::at(Step::Seccomp))?;
            rustix::io::write(channel, b"A").map(drop).map_err(Failure::at(Step::Notify))
        }
        Err(errno) => Err(Failure::at(Step::Seccomp)(errno)),
    }
}

/// Whether a supervisor of tier `landlock` decides about this process's calls: to it, process 1 of the host is none of the
/// run's and does not exist. To everybody else it does, and there is no right that this question needs.
fn is_supervised_by_jess() -> bool {
    rustix::thread::sched_getaffinity(rustix::process::Pid::from_raw(1)) == Err(Errno::SRCH)
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
