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
//! | `divide` | the same in tier `landlock` |
//! | `identity` | who the command is |
//! | `terminal` | a terminal of the command's own |
//! | `tier` | how strong it can be here |
//! | `mounts` | the private root |
//! | `net` | the network inside |
//! | `scratch` | HOME and TMPDIR of tier `landlock` |
//! | `cgroup` | where a control group for a run can be made |
//! | `landlock`, `seccomp`, `limits`, `env` | one layer each |
//! | `start` | the outside until the command runs |
//! | `init` | the order of the steps inside |
//! | `house` | PID 1, or the housekeeper, while the command runs |
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
mod divide;
pub mod env;
mod error;
mod house;
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
mod start;
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
pub use start::spawn;
pub use status::{Failure, Step};
pub use supervise::{Ending, Outcome};
pub(crate) use sys::stdio;
pub use tier::Tier;

use plan::Plan;
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, pipe_with};
use start::{Outside, UNWATCHED};
use std::time::Instant;

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

/// The payload of the kernel's `user` key with this description, that the caller can reach.
///
/// # Errors
/// What request_key(2), keyctl(2) and keyctl_read(3) say; `EINVAL` for a description with a NUL byte.
pub fn read_user_key(description: &str) -> rustix::io::Result<Vec<u8>> {
    let description = std::ffi::CString::new(description).map_err(|_| rustix::io::Errno::INVAL)?;
    sys::read_user_key(&description)
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
            house::kill_all();
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
            Step::Notify if failure.errno == libc::EBUSY => Error::NeedsFull {
                what: "being supervised where a supervisor that is not jess's, or that knows nothing of what is denied \
                       here, is asked already (of a container manager, or of the run around this one)"
                    .into(),
            },
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
