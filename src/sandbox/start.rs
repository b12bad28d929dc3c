//! Starting a run: the pipes, the process inside, and what it hands out.

use super::net;
use super::notify::{self, Closed, OneDoor, Vouched};
use super::plan::{self, Plan};
use super::sys::{self, Cloned};
use super::{
    Error, Failure, Layer, Net, Sandbox, Spec, Step, Tier, Watch, Weakened, cgroup, init, receive_descriptor,
    terminal,
};
use rustix::fd::{AsFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::sync::Arc;
use std::time::Instant;

/// Starts `spec` in the tier that it names, or in the best that the host has. The caller must have one thread.
///
/// # Errors
/// Everything that can be known before the command itself starts; [`Sandbox::supervise`] gives the rest. A host that
/// has no tier as strong as the one that is required is an error, and nothing was run.
pub fn spawn(spec: &Spec, weakened: Weakened) -> Result<Sandbox, Error> {
    sys::require_single_thread().map_err(|threads| Error::Threads { threads })?;
    sys::keep_ended_children();
    spec.limits.check()?;
    if let Some(path) = &spec.cgroup {
        let failed = |reason: cgroup::Absent| Error::Group { path: path.clone(), reason: reason.to_string() };
        cgroup::check(path).map_err(failed)?;
    }
    if spec.unconfined {
        return spawn_landlock(spec, Weakened::unconfined());
    }
    if spec.host_files && (spec.require == Tier::Full || spec.tier == Some(Tier::Full)) {
        return Err(Error::TooWeak { require: Tier::Full, tier: Tier::Landlock });
    }
    if spec.host_files || spec.watch == Watch::Uses {
        return spawn_landlock(spec, weakened);
    }
    match (spec.tier, spec.require) {
        (Some(tier), require) if tier < require => Err(Error::TooWeak { require, tier }),
        (Some(Tier::Full), _) | (None, Tier::Full) => spawn_full(spec, weakened),
        (Some(Tier::Landlock), _) => spawn_landlock(spec, weakened),
        (None, Tier::Landlock) => match spawn_full(spec, weakened) {
            Err(error) if error.lacks_namespaces() => {
                let mut sandbox = spawn_landlock(spec, weakened)?;
                sandbox.weaker = Some(error.to_string());
                Ok(sandbox)
            }
            other => other,
        },
    }
}

/// The ends of a run's pipes that stay outside.
pub(super) struct Outside {
    pub status: OwnedFd,
    pub stdin: OwnedFd,
    pub streams: [OwnedFd; 2],
}

/// The pipes of a run: what stays, and what goes in.
fn pipes() -> Result<(Outside, OwnedFd, [OwnedFd; 3]), Error> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(Error::supervisor("making a pipe"));
    let (status, status_in) = pipe()?;
    let (stdin_in, stdin) = pipe()?;
    let (stdout, stdout_in) = pipe()?;
    let (stderr, stderr_in) = pipe()?;
    Ok((Outside { status, stdin, streams: [stdout, stderr] }, status_in, [stdin_in, stdout_in, stderr_in]))
}

fn spawn_full(spec: &Spec, weakened: Weakened) -> Result<Sandbox, Error> {
    let started = Instant::now();
    let plan = Plan::new(spec, weakened)?;
    if plan.landlock_abi == 0 && spec.require == Tier::Full && weakened.keeps(Layer::Landlock) {
        return Err(Error::NoLandlock);
    }
    let (group, mut unheld) = cgroup::group_of(&spec.limits, spec.cgroup.as_deref());
    if plan.landlock_abi == 0 && weakened.keeps(Layer::Landlock) {
        unheld.push(WITHOUT_LANDLOCK.into());
    }
    let door = door_of(group.as_ref())?;
    let (outside, status_in, stdio) = pipes()?;
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(Error::supervisor("making a pipe"));
    let (go_in, go) =
        if plan.identity.switched { pipe().map(|(r, w)| (Some(r), Some(w)))? } else { (None, None) };
    let (sockets, sockets_in) = if plan.net == Net::Empty { (None, None) } else { channel()? };
    let (terminal, terminal_in) = if plan.tty.is_some() { channel()? } else { (None, None) };
    let (watched, watched_in) = if plan.policy.watched { channel()? } else { (None, None) };
    match sys::clone_into(plan.namespaces).map_err(|errno| Error::Namespaces { errno })? {
        Cloned::Child => {
            drop((outside, go, sockets, terminal, watched));
            let ends = init::Ends {
                status: status_in,
                go: go_in,
                channel: sockets_in,
                terminal: terminal_in,
                watched: watched_in,
                group: door,
                stdio,
            };
            init::main(&plan, ends)
        }
        Cloned::Parent(pid, pidfd) => {
            drop((status_in, stdio, go_in, sockets_in, terminal_in, watched_in, door));
            let mut sandbox = Sandbox::new(pid, pidfd, outside, plan, spec, started);
            sandbox.group = group;
            if let Some(go) = go {
                sandbox.plan.identity.write_maps(&pid.to_string()).map_err(|errno| Error::Engage {
                    failure: Failure::at(Step::IdMap)(errno),
                    item: None,
                })?;
                rustix::io::write(&go, b"G").map_err(Error::supervisor("starting the sandbox"))?;
            }
            if let Some(channel) = sockets {
                sandbox.sockets = net::receive(channel.as_fd()).ok_or_else(|| sandbox.failure())?;
            }
            if let Some(channel) = terminal {
                let master = receive_descriptor(&channel).ok_or_else(|| sandbox.failure())?;
                sandbox.attach(master)?;
            }
            sandbox.await_ready()?;
            if let Some(channel) = watched {
                match receive_descriptor(&channel).zip(sandbox.plan.witness()) {
                    Some((fd, witness)) => {
                        sandbox.supervisor = Some(notify::Supervisor::watching(fd, witness))
                    }
                    None => unheld.push(UNWATCHED.into()),
                }
            } else if spec.watch == Watch::Refusals {
                unheld.push(UNWATCHED.into());
            }
            sandbox.unheld = unheld;
            Ok(sandbox)
        }
    }
}

/// Why a run is not watched although it was asked for.
pub(super) const UNWATCHED: &str = "refusals are not watched for: inside another run that is watched, and with a denied name that does \
                         not exist, there can be no second watcher";

/// What tier `full` lacks without Landlock.
pub(super) const WITHOUT_LANDLOCK: &str = "this kernel has no Landlock (Linux 5.13, and `landlock` in the lsm= list): files of /proc, and FIFOs of the \
                                host in a read-only grant, can be written to; --require full refuses that";

/// What a run inside another one of tier `landlock` lacks.
pub(super) const SUPERVISED_OUTSIDE: &str = "inside another run: changes of metadata, connections and questions about processes follow the rules of that \
                                  run, not of this one";

/// What a process writes `0` to in order to join `group`.
fn door_of(group: Option<&cgroup::Group>) -> Result<Option<OwnedFd>, Error> {
    group.map(cgroup::Group::door).transpose().map_err(Error::supervisor("opening the control group"))
}

fn spawn_landlock(spec: &Spec, weakened: Weakened) -> Result<Sandbox, Error> {
    let started = Instant::now();
    let plan = plan::confined(spec, weakened)?;
    let (group, unheld) = cgroup::group_of(&spec.limits, spec.cgroup.as_deref());
    let door = door_of(group.as_ref())?;
    let vouched = Vouched::default();
    let scratch = plan.scratch.as_ref().ok_or(Error::Vanished)?;
    let scratch = scratch.descriptor().map_err(Error::supervisor("opening the scratch directory"))?;
    let mut connect = spec.connect.clone().unwrap_or_else(|| Arc::new(Closed));
    let mut listener = None;
    if let Some(port) = plan.net.proxy() {
        let (socket, outside) = loopback_listener().map_err(Error::supervisor("making a listener"))?;
        listener = Some(socket);
        if spec.connect.is_none() {
            connect = Arc::new(OneDoor { port, outside });
        }
    }
    // Should the housekeeper be killed, what it leaves comes here.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(Error::supervisor("becoming a subreaper"))?;
    let (outside, status_in, stdio) = pipes()?;
    let (channel, channel_in) = channel()?;
    let terminal = plan.tty.as_ref().map(terminal::Settings::open).transpose();
    let (master, slave) = terminal.map_err(Error::supervisor("making a terminal"))?.unzip();
    match sys::fork_with_pidfd().map_err(Error::supervisor("starting the housekeeper"))? {
        Cloned::Child => {
            drop((outside, channel, listener, master));
            let ends = init::Ends {
                status: status_in,
                go: None,
                channel: channel_in,
                terminal: slave,
                watched: None,
                group: door,
                stdio,
            };
            init::main(&plan, ends)
        }
        Cloned::Parent(pid, pidfd) => {
            drop((status_in, stdio, channel_in, slave, door));
            let mut sandbox = Sandbox::new(pid, pidfd, outside, plan, spec, started);
            sandbox.group = group;
            sandbox.unheld = unheld;
            if let Some(master) = master {
                sandbox.attach(master)?;
            }
            sandbox.sockets.proxy = listener;
            sandbox.vouched = Some(vouched.clone());
            sandbox.await_ready()?;
            let rules = notify::Rules {
                writable: sandbox.plan.writable(),
                readable: sandbox.plan.readable(),
                division: sandbox.plan.division.clone(),
                scratch,
                connect,
                vouched,
            };
            // Without a descriptor, another supervisor is asked already, or the set-up failed and says why later.
            let asked = channel.as_ref().and_then(receive_descriptor);
            if asked.is_none() && !spec.unconfined {
                sandbox.unheld.push(SUPERVISED_OUTSIDE.into());
            }
            let witness = sandbox.plan.witness();
            sandbox.supervisor = asked.map(|fd| notify::Supervisor::new(fd, rules, pid, witness));
            Ok(sandbox)
        }
    }
}

/// A listening socket on a free port of the host's loopback.
fn loopback_listener() -> Result<(OwnedFd, std::net::SocketAddr), rustix::io::Errno> {
    let listener = net::listen_on_loopback(0)?;
    let address = rustix::net::getsockname(&listener)?.try_into()?;
    Ok((listener, address))
}

fn channel() -> Result<(Option<OwnedFd>, Option<OwnedFd>), Error> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map(|(a, b)| (Some(a), Some(b)))
        .map_err(Error::supervisor("making a socket pair"))
}
