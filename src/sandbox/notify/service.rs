//! The thread on which a supervisor answers.
//!
//! The thread that watches the run's time, signals and streams is another one, and never waits for this one: a command
//! can make a call of its own take long (a name on a slow file system, a peer that does not accept), and only the
//! command waits for it.

use super::network::UnderWay;
use super::{Supervisor, Used, sys};
use crate::sandbox::denial::{Denials, Notes};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::CapabilitySet;
use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the thread has to end once nobody is left who could ask. One that takes longer ends with the process.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of the stack of a thread that answers.
pub const STACK: usize = 256 << 10;

/// A supervisor at work.
pub(in crate::sandbox) struct Service {
    denials: Notes,
    used: Option<Arc<Mutex<Used>>>,
    under_way: Option<UnderWay>,
    /// Closing it ends the thread.
    stop: OwnedFd,
    ended: Receiver<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Service {
    /// Sets `supervisor` to work.
    pub fn start(mut supervisor: Supervisor) -> io::Result<Service> {
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC)?;
        let (tell, ended) = channel();
        let denials = supervisor.denials.clone();
        let used = supervisor.witness.as_ref().map(super::Witness::used);
        let under_way = supervisor.decider.as_ref().map(|decider| decider.network.under_way());
        let thread =
            std::thread::Builder::new().name("jess-calls".into()).stack_size(STACK).spawn(move || {
                // One that only watches does nothing on anybody's behalf.
                if supervisor.decider.is_some() {
                    lend_no_rights();
                }
                sys::wake_soon();
                serve(&mut supervisor, &stopped);
                let _ = tell.send(());
            })?;
        Ok(Service { denials, used, under_way, stop, ended, thread })
    }

    /// What was refused until now.
    pub fn notes(&self) -> &Notes {
        &self.denials
    }

    /// Ends it, and gives what was seen. Nothing of the run may be alive.
    pub fn end(self) -> (Denials, Option<Used>) {
        drop(self.stop);
        if let Some(under_way) = &self.under_way {
            under_way.abandon();
        }
        if self.ended.recv_timeout(PATIENCE).is_ok() {
            let _ = self.thread.join();
        }
        let used = self.used.map(|used| used.lock().unwrap_or_else(PoisonError::into_inner).clone());
        (self.denials.denials(), used)
    }
}

fn serve(supervisor: &mut Supervisor, stopped: &OwnedFd) {
    loop {
        let listener = supervisor.listener.clone();
        let mut waits = [
            PollFd::from_borrowed_fd(listener.0.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(stopped.as_fd(), PollFlags::IN),
        ];
        if poll(&mut waits, None).is_err() {
            continue;
        }
        let [asked, stop] = waits.map(|wait| wait.revents());
        if asked.contains(PollFlags::IN) {
            supervisor.serve();
        } else if !stop.is_empty() || !asked.is_empty() {
            return;
        }
    }
}

/// Started by root, this thread keeps the right to look into the command's processes and no other: what it does on the
/// command's behalf, the command could do by itself.
fn lend_no_rights() {
    let Ok(held) = rustix::thread::capabilities(None) else { return };
    let effective = held.permitted & CapabilitySet::SYS_PTRACE;
    let _ = rustix::thread::set_capabilities(None, rustix::thread::CapabilitySets { effective, ..held });
}
