//! The supervisor of tier `landlock`: decides about the calls that neither Landlock nor a filter can, and carries them
//! out itself.
//!
//! Whatever a decision depends on is copied from the caller once, and the call is made on a descriptor that the
//! supervisor resolved; the kernel is told to proceed only with calls about which nothing was read from memory. An
//! error here is an error of the call: nothing is let through because it could not be decided.

mod caller;
pub(super) mod creation;
mod metadata;
mod network;
mod policy;
pub(super) mod processes;
mod shm;
mod unix;

pub use policy::{Closed, ConnectPolicy, OneDoor, Peer, Verdict, Vouched};

use super::seccomp::calls;
use super::sys::notify as sys;
use caller::Caller;
use network::Network;
use processes::Population;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;
use shm::Shm;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where notifications arrive.
pub(super) struct Listener(OwnedFd);

impl Listener {
    fn is_waiting(&self, id: u64) -> bool {
        sys::is_waiting(self.0.as_fd(), id)
    }

    fn answer(&self, id: u64, result: Result<i64, Errno>) {
        sys::answer(self.0.as_fd(), id, result);
    }
}

/// What becomes of a call.
enum Answer {
    /// The caller gets this.
    Return(Result<i64, Errno>),
    /// The kernel carries the call out.
    Proceed,
    /// The caller gets a copy of this descriptor.
    Descriptor { fd: OwnedFd, cloexec: bool },
    /// The answer comes when a connection is made.
    Later,
}

/// What decisions depend on besides the call.
struct Context<'a> {
    writable: &'a [PathBuf],
    readable: &'a [PathBuf],
    population: &'a mut Population,
    /// The housekeeper: all of the run's processes descend from it.
    house: i32,
}

impl Context<'_> {
    fn is_writable(&self, path: &Path) -> bool {
        is_beneath(path, self.writable)
    }

    fn is_readable(&self, path: &Path) -> bool {
        is_beneath(path, self.readable)
    }
}

/// Whether `path` is one of `roots`, or beneath one.
fn is_beneath(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}

/// What a supervisor decides by.
pub(super) struct Rules {
    /// Real paths beneath which metadata may change.
    pub writable: Vec<PathBuf>,
    /// Real paths beneath which files may be watched too.
    pub readable: Vec<PathBuf>,
    /// Processes and threads at once.
    pub processes: Option<u64>,
    /// The scratch directory.
    pub scratch: OwnedFd,
    /// Connections.
    pub connect: Arc<dyn ConnectPolicy>,
    /// Where connections that the policy allowed are noted.
    pub vouched: Vouched,
}

/// The supervisor of one run.
pub(super) struct Supervisor {
    listener: Listener,
    writable: Vec<PathBuf>,
    readable: Vec<PathBuf>,
    population: Population,
    network: Network,
    shm: Shm,
    house: i32,
}

impl Supervisor {
    pub fn new(listener: OwnedFd, rules: Rules, house: i32) -> Supervisor {
        sys::wake_synchronously(listener.as_fd());
        Supervisor {
            listener: Listener(listener),
            writable: rules.writable,
            readable: rules.readable,
            population: Population::new(rules.processes),
            network: Network::new(rules.connect, rules.vouched),
            shm: Shm::new(rules.scratch),
            house,
        }
    }

    /// Becomes readable when a call waits.
    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.0.as_fd()
    }

    /// Become writable when a connection is made or failed; answered by [`Supervisor::connected`].
    pub fn under_way(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.network.under_way()
    }

    /// Answers for the connection at `index` of [`Supervisor::under_way`].
    pub fn connected(&mut self, index: usize) {
        self.network.finish(&self.listener, index);
    }

    /// Answers one call.
    pub fn serve(&mut self) {
        // A caller that was killed meanwhile leaves nothing to answer.
        let Ok(call) = sys::receive(self.listener.0.as_fd()) else { return };
        let id = call.id;
        match self.decide(call) {
            Answer::Return(result) => self.listener.answer(id, result),
            Answer::Proceed => sys::proceed(self.listener.0.as_fd(), id),
            Answer::Descriptor { fd, cloexec } => {
                if let Err(errno) = sys::answer_with_fd(self.listener.0.as_fd(), id, fd.as_fd(), cloexec) {
                    self.listener.answer(id, Err(errno));
                }
            }
            Answer::Later => {}
        }
    }

    fn decide(&mut self, call: sys::Notification) -> Answer {
        let caller = Caller { listener: &self.listener, call };
        let mut context = Context {
            writable: &self.writable,
            readable: &self.readable,
            population: &mut self.population,
            house: self.house,
        };
        let is = |call: calls::Call| call.is(caller.call.number);
        if [calls::clone, calls::fork, calls::vfork].into_iter().any(is) {
            return processes::start(&mut context);
        }
        if [calls::open, calls::openat].into_iter().any(is) {
            return self.shm.open(&caller);
        }
        if [calls::unlink, calls::unlinkat].into_iter().any(is) {
            return self.shm.unlink(&caller);
        }
        if [calls::link, calls::linkat].into_iter().any(is) {
            return self.shm.link(&caller);
        }
        if is(calls::ioctl) {
            return shm::terminal_peer(&caller);
        }
        if is(calls::connect) {
            return self.network.connect(&caller);
        }
        if is(calls::bind) {
            return Answer::Return(self.network.bind(&caller, &context));
        }
        if is(calls::listen) {
            return Answer::Return(self.network.listen(&caller));
        }
        if is(calls::inotify_add_watch) {
            return Answer::Return(metadata::watch(&caller, &context));
        }
        if let Some(argument) = super::seccomp::process_argument(call.number) {
            return processes::on_process(&caller, &context, argument);
        }
        if is(calls::pidfd_send_signal) {
            return Answer::Return(processes::signal_by_descriptor(&caller));
        }
        if super::seccomp::is_signal(call.number) {
            return processes::signal(&caller, &context);
        }
        Answer::Return(metadata::change(&caller, &context))
    }
}

/// Does `what` with no effective capability: a supervisor that is root must not lend its rights to the command.
fn without_capabilities<T>(what: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    let held = rustix::thread::capabilities(None)?;
    if held.effective.is_empty() {
        return what();
    }
    let none = rustix::thread::CapabilitySets { effective: CapabilitySet::empty(), ..held };
    rustix::thread::set_capabilities(None, none)?;
    let result = what();
    rustix::thread::set_capabilities(None, held)?;
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beneath_is_by_whole_names() {
        let roots = [PathBuf::from("/a/b")];
        assert!(is_beneath(Path::new("/a/b"), &roots) && is_beneath(Path::new("/a/b/c"), &roots));
        assert!(!is_beneath(Path::new("/a/bc"), &roots) && !is_beneath(Path::new("/a"), &roots));
    }
}
