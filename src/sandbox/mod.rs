//! Spec → Plan → spawn: the kernel bounds what a process can do. Knows nothing of agents.
//!
//! ```text
//! supervisor ── clone3 ──▶ PID 1 (init.rs) ── fork ──▶ target
//!     │                       │  maps, mounts, capabilities      │  session, limits, Landlock, seccomp, canary, exec
//!     │◀──── status pipe ─────┴──────────────────────────────────┘
//!     └ supervise.rs: streams, time limit, signals, rusage
//! ```
//!
//! | file | concern |
//! |---|---|
//! | `spec` | what a caller asks for |
//! | `plan` | the same with every name resolved and every string built |
//! | `identity` | who the command is |
//! | `mounts` | the private root |
//! | `landlock`, `seccomp`, `limits`, `env` | one layer each |
//! | `init` | the order of the steps inside |
//! | `canary` | proof, from inside, that forbidden things fail |
//! | `status` | how the inside reports |
//! | `supervise` | the outside while the command runs |
//! | `report` | the run as a document |
//! | `sys` | the system calls themselves |

mod canary;
pub mod env;
mod error;
mod identity;
mod init;
mod landlock;
mod layer;
mod limits;
mod mounts;
mod plan;
mod report;
mod seccomp;
mod spec;
mod status;
mod supervise;
mod sys;

pub use error::Error;
pub use layer::{Layer, Weakened};
pub use report::{LayerReport, Report};
pub use spec::{Access, Content, Grant, Inject, Limits, Net, Output, Spec, Stdin};
pub use status::{Failure, Step};
pub use supervise::{Ending, Outcome};

use plan::Plan;
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, pipe_with};
use std::time::Instant;
use sys::Cloned;

/// A started sandbox. Dropping it kills everything inside.
pub struct Sandbox {
    pid: libc::pid_t,
    pidfd: OwnedFd,
    status: OwnedFd,
    stdin: Option<OwnedFd>,
    /// Standard output and error, until they are supervised.
    streams: Option<[OwnedFd; 2]>,
    listener: Option<OwnedFd>,
    plan: Plan,
    spec: Spec,
    started: Instant,
    reaped: bool,
}

/// Starts `spec`. The caller must have one thread.
///
/// # Errors
/// Everything that can be known before the command starts inside; [`Sandbox::supervise`] gives the rest.
pub fn spawn(spec: &Spec, weakened: Weakened) -> Result<Sandbox, Error> {
    let started = Instant::now();
    sys::require_single_thread().map_err(|threads| Error::Threads { threads })?;
    let plan = Plan::new(spec, weakened)?;
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(Error::supervisor("making a pipe"));
    let (status, status_in) = pipe()?;
    let (stdin_in, stdin) = pipe()?;
    let (stdout, stdout_in) = pipe()?;
    let (stderr, stderr_in) = pipe()?;
    let (go_in, go) =
        if plan.identity.switched { pipe().map(|(r, w)| (Some(r), Some(w)))? } else { (None, None) };
    let (listener, listener_in) = if plan.listener.is_some() { channel()? } else { (None, None) };
    match sys::clone_into(plan.namespaces).map_err(|errno| Error::Namespaces { errno })? {
        Cloned::Child => {
            drop((status, stdin, stdout, stderr, go, listener));
            let ends = init::Ends {
                status: status_in,
                go: go_in,
                listener: listener_in,
                stdio: [stdin_in, stdout_in, stderr_in],
            };
            init::main(&plan, ends)
        }
        Cloned::Parent(pid, pidfd) => {
            drop((status_in, stdin_in, stdout_in, stderr_in, go_in, listener_in));
            let stdin = (!matches!(spec.stdin, Stdin::Null)).then_some(stdin);
            let mut sandbox = Sandbox {
                pid,
                pidfd,
                status,
                stdin,
                streams: Some([stdout, stderr]),
                listener: None,
                plan,
                spec: spec.clone(),
                started,
                reaped: false,
            };
            if let Some(go) = go {
                sandbox.plan.identity.write_maps(&pid.to_string()).map_err(|errno| Error::Engage {
                    failure: Failure::at(Step::IdMap)(errno),
                    item: None,
                })?;
                rustix::io::write(&go, b"G").map_err(Error::supervisor("starting the sandbox"))?;
            }
            if let Some(channel) = listener {
                sandbox.listener = Some(receive_listener(&channel).ok_or_else(|| sandbox.failure())?);
            }
            Ok(sandbox)
        }
    }
}

fn channel() -> Result<(Option<OwnedFd>, Option<OwnedFd>), Error> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map(|(a, b)| (Some(a), Some(b)))
        .map_err(Error::supervisor("making a socket pair"))
}

fn receive_listener(channel: &OwnedFd) -> Option<OwnedFd> {
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
    /// The listening socket that was made inside ([`Net::Listener`]), once.
    pub fn take_listener(&mut self) -> Option<OwnedFd> {
        self.listener.take()
    }

    /// The reason that the inside gave for ending before the command ran.
    fn failure(&self) -> Error {
        let mut bytes = [0; status::RECORD_LEN];
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.status, &mut bytes)) {
            Ok(status::RECORD_LEN) => match status::Record::decode(&bytes) {
                Some(status::Record::Failed(failure)) => self.explain(failure),
                _ => Error::Vanished,
            },
            _ => Error::Vanished,
        }
    }

    fn explain(&self, failure: Failure) -> Error {
        let errno = rustix::io::Errno::from_raw_os_error(failure.errno);
        match failure.step {
            Step::Exec => {
                Error::Exec { program: self.spec.argv.first().map(Into::into).unwrap_or_default(), errno }
            }
            Step::Cwd => Error::Cwd { path: self.plan.cwd.clone(), errno },
            Step::Canary => Error::Canary {
                what: canary::TRIES.get(failure.item as usize).map_or("something forbidden", |t| t.what),
            },
            _ => Error::Engage { failure, item: self.plan.item(failure) },
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, rustix::process::Signal::KILL);
            let _ = sys::wait(Some(self.pid), true);
        }
    }
}
