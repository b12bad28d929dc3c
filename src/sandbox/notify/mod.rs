//! The supervisor of tier `landlock`: decides about the calls that neither Landlock nor a filter can, and carries them
//! out itself.
//!
//! Whatever a decision depends on is copied from the caller once, and the call is made on a descriptor that the
//! supervisor resolved; the kernel is told to proceed only with calls about which nothing was read from memory. An
//! error here is an error of the call: nothing is let through because it could not be decided.
//!
//! It answers on a thread of its own ([`Service`]): what the command can make slow here holds nobody but the command.

mod caller;
pub(super) mod creation;
mod divided;
mod entry;
mod metadata;
mod network;
mod policy;
pub(super) mod processes;
mod service;
mod shm;
mod unix;
mod witness;

pub use policy::{Closed, ConnectPolicy, OneDoor, Peer, Verdict, Vouched};

use super::denial::{Kind, Notes};
use super::divide::{Division, id_of};
use super::seccomp::{Ruling, calls};
use super::sys::notify as sys;
use caller::{Caller, Object};
use divided::Standing;
use network::Network;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;
pub(super) use service::Service;
use shm::Shm;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
pub(super) use witness::{Scope, Used, Witness};

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
    division: Option<&'a Division>,
    denials: &'a Notes,
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

    /// Where `object` stands, if rights are divided around it.
    fn standing(&self, object: &Object) -> Result<Standing, Errno> {
        self.division.map_or(Ok(Standing::Elsewhere), |division| division.standing(object))
    }

    /// Whether the command may change `object`, and make names in it.
    fn may_change(&self, object: &Object) -> Result<bool, Errno> {
        Ok(self.standing(object)?.is_writable(|| self.is_writable(&object.path)))
    }

    /// Whether it may read it.
    fn may_read(&self, object: &Object) -> Result<bool, Errno> {
        Ok(match self.standing(object)? {
            Standing::Denied => false,
            Standing::Ours { .. } | Standing::Ruled { .. } => true,
            Standing::Elsewhere => self.is_writable(&object.path) || self.is_readable(&object.path),
        })
    }

    /// Whether it may make `name` in `directory`.
    fn may_make(&self, directory: &Object, name: &OsStr) -> Result<bool, Errno> {
        let id = id_of(&rustix::fs::fstat(&directory.fd)?);
        let fixed = self.division.is_some_and(|division| division.fixed(id, name.as_bytes()).is_some());
        Ok(!fixed && self.may_change(directory)?)
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
    /// What is denied below them.
    pub division: Option<Arc<Division>>,
    /// The scratch directory.
    pub scratch: OwnedFd,
    /// Connections.
    pub connect: Arc<dyn ConnectPolicy>,
    /// Where connections that the policy allowed are noted.
    pub vouched: Vouched,
}

/// The supervisor of one run.
pub(super) struct Supervisor {
    listener: Arc<Listener>,
    /// Tier `landlock`: what decisions depend on.
    decider: Option<Decider>,
    /// Where the run is watched.
    witness: Option<Witness>,
    denials: Notes,
}

struct Decider {
    writable: Vec<PathBuf>,
    readable: Vec<PathBuf>,
    division: Option<Arc<Division>>,
    network: Network,
    shm: Shm,
    house: i32,
}

impl Supervisor {
    /// One that decides, in tier `landlock`, by `rules`; `house` is the housekeeper.
    pub fn new(listener: OwnedFd, rules: Rules, house: i32, witness: Option<Witness>) -> Supervisor {
        let decider = Decider {
            writable: rules.writable,
            readable: rules.readable,
            division: rules.division,
            network: Network::new(rules.connect, rules.vouched),
            shm: Shm::new(rules.scratch),
            house,
        };
        Supervisor::with(listener, Some(decider), witness)
    }

    /// One that watches and decides nothing.
    pub fn watching(listener: OwnedFd, witness: Witness) -> Supervisor {
        Supervisor::with(listener, None, Some(witness))
    }

    fn with(listener: OwnedFd, decider: Option<Decider>, witness: Option<Witness>) -> Supervisor {
        sys::wake_synchronously(listener.as_fd());
        let listener = Arc::new(Listener(listener));
        Supervisor { listener, decider, witness, denials: Notes::default() }
    }

    /// Answers one call.
    fn serve(&mut self) {
        // A caller that was killed meanwhile leaves nothing to answer.
        let Ok(call) = sys::receive(self.listener.0.as_fd()) else { return };
        let id = call.id;
        match self.answer(call) {
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

    fn answer(&mut self, call: sys::Notification) -> Answer {
        let caller = Caller { listener: &self.listener, call };
        if let Some(witness) = &mut self.witness {
            let ruling = witness.rule(&caller);
            match (witness.has_begun(&caller), ruling) {
                (true, Ruling::Allow | Ruling::Ask) => witness.see(&caller, &self.denials),
                (true, Ruling::Refuse(_)) => refused(&caller, &self.denials),
                (false, _) => {}
            }
            match ruling {
                Ruling::Allow => return Answer::Proceed,
                Ruling::Refuse(errno) => return Answer::Return(Err(errno)),
                Ruling::Ask => {}
            }
        }
        match &mut self.decider {
            Some(decider) => decider.decide(&caller, &self.listener, &self.denials),
            None => Answer::Return(Err(Errno::PERM)),
        }
    }
}

/// Notes a call that the filter refuses.
fn refused(caller: &Caller<'_>, denials: &Notes) {
    let number = caller.call.number;
    let is = |call: calls::Call| call.is(number);
    if is(calls::socket) || is(calls::socketpair) {
        let (item, flag) = match caller.int(0) {
            libc::AF_UNIX => ("a socket of AF_UNIX".to_owned(), Some("--unix-sockets".to_owned())),
            libc::AF_INET | libc::AF_INET6 => ("a socket of another type than TCP's".to_owned(), None),
            family => (format!("a socket of family {family}"), None),
        };
        return denials.note(Kind::Socket, item, flag);
    }
    let flag = [calls::ptrace, calls::process_vm_readv, calls::process_vm_writev].into_iter().any(is);
    let name = calls::ALL.iter().find(|call| call.is(number)).map_or("another one", |call| call.name);
    denials.note(Kind::Call, name.to_owned(), flag.then(|| "--ptrace".to_owned()));
}

impl Decider {
    fn decide(&mut self, caller: &Caller<'_>, listener: &Arc<Listener>, denials: &Notes) -> Answer {
        let context = Context {
            writable: &self.writable,
            readable: &self.readable,
            division: self.division.as_deref(),
            denials,
            house: self.house,
        };
        let is = |call: calls::Call| call.is(caller.call.number);
        if let Some(answer) = self.shm.answer(caller) {
            return match (answer, &context.division) {
                (Answer::Proceed, Some(division)) => division.mediate(caller, &context),
                (answer, _) => answer,
            };
        }
        if let Some(division) = context.division.filter(|_| super::seccomp::is_naming(caller.call.number)) {
            return division.mediate(caller, &context);
        }
        if is(calls::ioctl) {
            return shm::terminal_peer(caller);
        }
        if is(calls::connect) {
            return self.network.connect(caller, listener, denials);
        }
        if is(calls::bind) {
            return Answer::Return(self.network.bind(caller, &context));
        }
        if is(calls::listen) {
            return Answer::Return(self.network.listen(caller));
        }
        if is(calls::inotify_add_watch) {
            return Answer::Return(metadata::watch(caller, &context));
        }
        if let Some(argument) = super::seccomp::process_argument(caller.call.number) {
            return processes::on_process(caller, &context, argument);
        }
        if is(calls::pidfd_send_signal) {
            return Answer::Return(processes::signal_by_descriptor(caller, &context));
        }
        if super::seccomp::is_signal(caller.call.number) {
            return processes::signal(caller, &context);
        }
        Answer::Return(metadata::change(caller, &context))
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
