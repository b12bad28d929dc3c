//! Where a command in tier `landlock` may connect to: the hook for whoever runs the network outside.

use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Where the command wants to connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Peer {
    /// TCP. An IPv4 address inside an IPv6 one is given as IPv4, the unspecified address as loopback.
    Tcp(SocketAddr),
}

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The supervisor connects the command's socket to where it wanted.
    Allow,
    /// The supervisor connects it to this address instead.
    Redirect(SocketAddr),
    /// The command gets EACCES.
    Refuse,
}

/// Decides about each connection that does not go to a listener of the command's own.
///
/// The supervisor copies the address once, asks, and connects a copy of the descriptor itself: what the command writes
/// to its memory meanwhile changes nothing. It is called from the thread that supervises, so it must not block.
pub trait ConnectPolicy: fmt::Debug + Send + Sync {
    /// Decides about one connection.
    fn judge(&self, peer: Peer) -> Verdict;
}

/// No connection but to the command's own listeners.
#[derive(Debug, Clone, Copy, Default)]
pub struct Closed;

impl ConnectPolicy for Closed {
    fn judge(&self, _: Peer) -> Verdict {
        Verdict::Refuse
    }
}

/// Connections to one port of loopback go to a listener outside; all others are refused.
///
/// It stands in for the listener that tier `full` makes inside the command's network namespace
/// ([`super::super::Net::Listener`]): the command's address stays the same in both tiers.
#[derive(Debug, Clone, Copy)]
pub struct OneDoor {
    /// The port that the command connects to.
    pub port: u16,
    /// The listener outside.
    pub outside: SocketAddr,
}

impl ConnectPolicy for OneDoor {
    fn judge(&self, peer: Peer) -> Verdict {
        match peer {
            Peer::Tcp(address) if address.ip().is_loopback() && address.port() == self.port => {
                Verdict::Redirect(self.outside)
            }
            _ => Verdict::Refuse,
        }
    }
}

/// Most source addresses that wait for their connection to be accepted.
const VOUCHED_MAX: usize = 4096;

/// The source addresses of connections that the supervisor made.
///
/// A listener on the host's loopback can be reached by every user of the host. Whoever accepts on it asks
/// [`Vouched::admits`] and closes what it does not know. Cloning gives another handle to the same set.
#[derive(Debug, Clone, Default)]
pub struct Vouched(Arc<Mutex<HashSet<SocketAddr>>>);

impl Vouched {
    /// Whether the supervisor made the connection that comes from `peer`. True once for each connection.
    pub fn admits(&self, peer: SocketAddr) -> bool {
        self.set().remove(&canonical(peer))
    }

    /// Notes a connection that is about to be made from `source`. False: too many wait already.
    pub(super) fn expect(&self, source: SocketAddr) -> bool {
        let mut set = self.set();
        let room = set.len() < VOUCHED_MAX;
        if room {
            set.insert(canonical(source));
        }
        room
    }

    /// Takes a note back: the connection was not made.
    pub(super) fn forget(&self, source: SocketAddr) {
        self.set().remove(&canonical(source));
    }

    fn set(&self) -> std::sync::MutexGuard<'_, HashSet<SocketAddr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `address` with an IPv4 address inside an IPv6 one as IPv4.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_door_opens_for_its_port_of_loopback_alone() {
        let door = OneDoor { port: 8118, outside: at("127.0.0.1:40000") };
        let judge = |address: &str| door.judge(Peer::Tcp(at(address)));
        assert_eq!(judge("127.0.0.1:8118"), Verdict::Redirect(at("127.0.0.1:40000")));
        assert_eq!(judge("[::1]:8118"), Verdict::Redirect(at("127.0.0.1:40000")));
        assert_eq!(judge("127.0.0.1:40000"), Verdict::Refuse);
        assert_eq!(judge("192.0.2.1:8118"), Verdict::Refuse);
    }

    #[test]
    fn a_connection_is_vouched_for_once() {
        let vouched = Vouched::default();
        assert!(!vouched.admits(at("127.0.0.1:1000")));
        assert!(vouched.expect(at("[::ffff:127.0.0.1]:1000")));
        assert!(vouched.admits(at("127.0.0.1:1000")));
        assert!(!vouched.admits(at("127.0.0.1:1000")));
        assert!(vouched.expect(at("127.0.0.1:1")));
        vouched.forget(at("127.0.0.1:1"));
        assert!(!vouched.admits(at("127.0.0.1:1")));
    }
}
