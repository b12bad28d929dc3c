//! Spec → Plan → spawn: the kernel bounds what a process can do. Knows nothing of agents.
//!
//! ```text
//! supervisor ── clone3 ──▶ PID 1 (init.rs) ── fork ──▶ target
//!     │                       │  maps, mounts, capabilities      │  session, limits, Landlock, seccomp, canary, exec
//!     │◀──── status pipe ─────┴──────────────────────────────────┘
//!     └ supervise.rs: streams, time limit, signals, rusage
//! ```
//!
//! Without user namespaces, in tier `landlock`, a housekeeper stands in for PID 1, and the supervisor also answers the
//! calls that the filter asks about (`notify`).
//!
//! | file | concern |
//! |---|---|
//! | `spec` | what a caller asks for |
//! | `plan` | the same with every name resolved and every string built |
//! | `profile` | named sets of settings, and how they add up to a spec |
//! | `level` | entry points by how far the command is trusted |
//! | `toolchain` | toolchains in a home directory |
//! | `protect` | denied paths below a grant |
//! | `identity` | who the command is |
//! | `terminal` | a terminal of the command's own |
//! | `tier` | how strong it can be here |
//! | `mounts` | the private root |
//! | `net` | the network inside |
//! | `scratch` | HOME and TMPDIR of tier `landlock` |
//! | `cgroup` | where a control group for a run can be made |
//! | `landlock`, `seccomp`, `limits`, `env` | one layer each |
//! | `init` | the order of the steps inside |
//! | `canary` | proof, from inside, that forbidden things fail |
//! | `status` | how the inside reports |
//! | `notify` | calls that the supervisor decides about, in tier `landlock` |
//! | `supervise` | the outside while the command runs |
//! | `streams` | what the command reads and writes |
//! | `crowd` | how many processes there are, in tier `landlock` |
//! | `denial` | what was refused, and the flag that grants it |
//! | `observe` | what was used, as a profile |
//! | `report` | the run as a document |
//! | `walk` | where a path leads |
//! | `sys` | the system calls themselves |

mod canary;
pub mod cgroup;
mod crowd;
pub mod denial;
pub mod env;
mod error;
mod identity;
mod init;
mod landlock;
mod layer;
pub mod level;
mod limits;
mod mounts;
mod net;
mod notify;
pub mod observe;
mod plan;
pub mod profile;
mod protect;
mod report;
mod scratch;
mod seccomp;
mod spec;
mod status;
mod streams;
mod supervise;
mod sys;
mod terminal;
mod tier;
pub mod toolchain;
mod walk;

pub use error::Error;
pub use layer::{Layer, Weakened};
pub use net::Sockets;
pub use notify::{Closed, ConnectPolicy, OneDoor, Peer, Verdict, Vouched};
pub use report::{LayerReport, Report};
pub use spec::{Access, Captured, Content, Grant, Inject, Limits, Net, Output, Spec, Stdin, Surface, Watch};
pub use status::{Failure, Step};
pub use supervise::{Ending, Outcome};
pub use tier::Tier;

use plan::Plan;
use rustix::fd::{AsFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::sync::Arc;
use std::time::Instant;
use sys::Cloned;

/// The Landlock ABI of the running kernel; 0 where Landlock is missing or off.
pub fn landlock_abi() -> u32 {
    sys::landlock_abi()
}

/// What a kernel with this Landlock ABI lacks of what jess asks for, in words.
pub fn landlock_rights_lost(abi: u32) -> Vec<&'static str> {
    landlock::rights_lost(abi)
}

/// A started sandbox. Dropping it kills everything inside.
pub struct Sandbox {
    pid: libc::pid_t,
    pidfd: OwnedFd,
    status: OwnedFd,
    stdin: Option<OwnedFd>,
    /// Standard output and error, until they are supervised.
    streams: Option<[OwnedFd; 2]>,
    sockets: Sockets,
    /// Tier `landlock`: decides about calls.
    supervisor: Option<notify::Supervisor>,
    vouched: Option<Vouched>,
    plan: Plan,
    spec: Spec,
    started: Instant,
    reaped: bool,
    weaker: Option<String>,
    /// The other side of the command's own terminal.
    terminal: Option<OwnedFd>,
    /// The last word of the inside, where it came before the end.
    last: Option<status::Record>,
    /// Readable when the command is to be stopped.
    stopped: Option<OwnedFd>,
    /// The run's control group, where a limit needs one.
    group: Option<cgroup::Group>,
    /// What was asked for and does not hold, in words.
    unheld: Vec<String>,
}

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

/// The payload of the kernel's `user` key with this description, that the caller can reach.
///
/// # Errors
/// What request_key(2), keyctl(2) and keyctl_read(3) say; `EINVAL` for a description with a NUL byte.
pub fn read_user_key(description: &str) -> rustix::io::Result<Vec<u8>> {
    let description = std::ffi::CString::new(description).map_err(|_| rustix::io::Errno::INVAL)?;
    sys::read_user_key(&description)
}

/// The ends of a run's pipes that stay outside.
struct Outside {
    status: OwnedFd,
    stdin: OwnedFd,
    streams: [OwnedFd; 2],
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
    let (group, mut unheld) = cgroup::group_of(&spec.limits, spec.cgroup.as_deref());
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
const UNWATCHED: &str = "refusals are not watched for: inside another run that is watched, and with a denied name that does \
                         not exist, there can be no second watcher";

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
                scratch,
                connect,
                vouched,
            };
            // Without a descriptor, another supervisor is asked already, or the set-up failed and says why later.
            let asked = channel.as_ref().and_then(receive_descriptor);
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

fn receive_descriptor(channel: &OwnedFd) -> Option<OwnedFd> {
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0u8; 1];
    rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(
            channel,
            &mut [std::io::IoSliceMut::new(&mut byte)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
    })
    .ok()?;
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    })
}

impl Sandbox {
    fn new(
        pid: libc::pid_t,
        pidfd: OwnedFd,
        outside: Outside,
        plan: Plan,
        spec: &Spec,
        started: Instant,
    ) -> Sandbox {
        let Outside { status, stdin, streams } = outside;
        Sandbox {
            pid,
            pidfd,
            status,
            stdin: (!matches!(spec.stdin, Stdin::Null)).then_some(stdin),
            streams: Some(streams),
            sockets: Sockets::default(),
            supervisor: None,
            vouched: None,
            plan,
            spec: spec.clone(),
            started,
            reaped: false,
            weaker: None,
            terminal: None,
            last: None,
            stopped: None,
            group: None,
            unheld: Vec::new(),
        }
    }

    /// A descriptor by which other threads stop the command: it gets SIGTERM when a byte is written there or the
    /// descriptor is closed, and SIGKILL after the grace.
    pub fn stopper(&mut self) -> Result<OwnedFd, Error> {
        let (stopped, stopper) = pipe_with(PipeFlags::CLOEXEC).map_err(Error::supervisor("making a pipe"))?;
        self.stopped = Some(stopped);
        Ok(stopper)
    }

    /// Keeps the signals that are passed on to the command from every thread that is started after this.
    pub fn hold_signals(&self) -> Result<(), Error> {
        sys::block_signals(&supervise::FORWARDED).map_err(Error::supervisor("watching for signals"))
    }

    /// The tier that this run has.
    pub fn tier(&self) -> Tier {
        self.plan.tier
    }

    /// The tier's name, `none` for a run that is not isolated.
    pub fn tier_name(&self) -> &'static str {
        if self.spec.unconfined { "none" } else { self.plan.tier.name() }
    }

    /// Why the tier is weaker than `full`, where nobody asked for that.
    pub fn weaker(&self) -> Option<&str> {
        self.weaker.as_deref()
    }

    /// What was asked for and does not hold, in words.
    pub fn unheld(&self) -> &[String] {
        &self.unheld
    }

    /// Arguments of the command that are files here and are not shown inside, with the flag that shows them: what may
    /// have made it fail, where nothing was seen.
    pub fn hints(&self) -> Vec<String> {
        let here = std::env::current_dir().unwrap_or_default();
        denial::hidden_arguments(&self.spec.argv, &here, &self.plan.readable())
    }

    /// Tier `landlock`: which connections to the proxy's socket of [`Sandbox::take_sockets`] are the command's. In tier `full`
    /// nobody else can reach it, and there is nothing to ask.
    pub fn vouched(&self) -> Option<Vouched> {
        self.vouched.clone()
    }

    /// Makes `master` what the command reads from and writes to.
    fn attach(&mut self, master: OwnedFd) -> Result<(), Error> {
        let copy = || {
            master
                .try_clone()
                .map_err(|_| Error::supervisor("copying a descriptor")(rustix::io::Errno::MFILE))
        };
        if let Some([stdout, _]) = &mut self.streams {
            *stdout = copy()?;
        }
        if self.stdin.is_some() {
            self.stdin = Some(copy()?);
        }
        self.terminal = Some(master);
        Ok(())
    }

    /// Waits for the set-up of everything but the command's own process.
    fn await_ready(&mut self) -> Result<(), Error> {
        match self.record() {
            Some(status::Record::Ready) => Ok(()),
            Some(status::Record::Failed(failure)) => Err(self.explain(failure)),
            _ => Err(Error::Vanished),
        }
    }

    fn record(&self) -> Option<status::Record> {
        let mut bytes = [0; status::RECORD_LEN];
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.status, &mut bytes)) {
            Ok(status::RECORD_LEN) => status::Record::decode(&bytes),
            _ => None,
        }
    }

    /// Ends everything inside at once.
    fn kill(&self) {
        if let Some(group) = &self.group {
            group.kill();
        }
        let signal = match self.plan.tier {
            // The pid namespace ends with its PID 1.
            Tier::Full => rustix::process::Signal::KILL,
            // The housekeeper has to live to do it.
            Tier::Landlock => init::KILL_ALL,
        };
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, signal);
    }

    /// After the housekeeper of tier `landlock` was killed itself: what it would have done. Everything that descends
    /// from this process is taken for the run's.
    fn keep_house(&self) {
        if self.plan.tier == Tier::Landlock {
            init::kill_all();
            if let Some(scratch) = &self.plan.scratch {
                scratch.remove();
            }
        }
    }

    /// The sockets that were made inside (for another [`Net`] than `Empty`), once.
    pub fn take_sockets(&mut self) -> Sockets {
        std::mem::take(&mut self.sockets)
    }

    /// The reason that the inside gave for ending before the command ran.
    fn failure(&self) -> Error {
        match self.record() {
            Some(status::Record::Failed(failure)) => self.explain(failure),
            _ => Error::Vanished,
        }
    }

    fn explain(&self, failure: Failure) -> Error {
        let errno = || rustix::io::Errno::from_raw_os_error(failure.errno);
        match failure.step {
            Step::Exec => Error::Exec {
                program: self.spec.argv.first().map(Into::into).unwrap_or_default(),
                errno: errno(),
            },
            Step::Cwd => Error::Cwd { path: self.plan.cwd.clone(), errno: errno() },
            Step::Canary => Error::Canary {
                what: canary::TRIES.get(failure.item as usize).map_or("something forbidden", |t| t.what),
            },
            _ => Error::Engage { failure, item: self.plan.item(failure) },
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        self.kill();
        if let Ok(Some((ended, _))) = sys::wait(Some(self.pid), true)
            && libc::WIFSIGNALED(ended.status)
        {
            self.keep_house();
        }
    }
}
