//! TCP without a network namespace: the command's own listeners on loopback, and what a [`ConnectPolicy`] allows.
//!
//! The supervisor copies the address, decides, and binds, listens and connects on a copy of the command's descriptor.
//! Landlock forbids the command the same calls (from ABI 4), and seccomp every other family and way to connect.

use super::caller::Caller;
use super::policy::{ConnectPolicy, Peer, Verdict, Vouched, canonical};
use super::unix::{self, UnixSockets};
use super::{Answer, Context};
use crate::sandbox::denial::{Denials, Kind};
use crate::sandbox::sys::notify as sys;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, sockopt};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Longest `sockaddr` (sockaddr_storage).
const ADDRESS_MAX: u64 = 128;

/// Connections that are under way at once; one more gets EAGAIN.
const PENDING_MAX: usize = 64;

/// How long a connect may hold the supervisor before it goes on in the background. On loopback it is done at once.
const PATIENCE: Duration = Duration::from_millis(4);

/// Bytes of the kernel's table of sockets that are read.
const TABLE_MAX: u64 = 4 << 20;

/// The network of a run.
#[derive(Debug)]
pub struct Network {
    policy: Arc<dyn ConnectPolicy>,
    vouched: Vouched,
    /// Inodes of sockets on which the command listens or listened.
    own: HashSet<u64>,
    unix: UnixSockets,
    pending: Vec<Pending>,
}

/// A blocking connect that goes on.
#[derive(Debug)]
struct Pending {
    id: u64,
    socket: OwnedFd,
    vouched_for: Option<SocketAddr>,
}

/// An address that the command gave.
enum Given {
    Inet(SocketAddr),
    Unix(PathBuf),
    /// AF_UNSPEC: ends an association.
    Unspecified,
}

impl Network {
    pub fn new(policy: Arc<dyn ConnectPolicy>, vouched: Vouched) -> Network {
        Network { policy, vouched, own: HashSet::new(), unix: UnixSockets::default(), pending: Vec::new() }
    }

    /// Descriptors of connections under way: they become writable when one is made or has failed.
    pub fn under_way(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.pending.iter().map(|p| p.socket.as_fd())
    }

    /// Answers for connection `index` of [`Network::under_way`].
    pub fn finish(&mut self, listener: &super::Listener, index: usize) {
        if index >= self.pending.len() {
            return;
        }
        let done = self.pending.swap_remove(index);
        let result = match sockopt::socket_error(&done.socket) {
            Ok(Ok(())) => Ok(0),
            Ok(Err(errno)) | Err(errno) => Err(errno),
        };
        if let (Err(_), Some(source)) = (&result, done.vouched_for) {
            self.vouched.forget(source);
        }
        listener.answer(done.id, result);
    }

    /// connect(2).
    pub fn connect(&mut self, caller: &Caller<'_>, denials: &mut Denials) -> Answer {
        match self.try_connect(caller, denials) {
            Ok(Some(())) => Answer::Return(Ok(0)),
            Ok(None) => Answer::Later,
            Err(errno) => Answer::Return(Err(errno)),
        }
    }

    /// `None`: it goes on in the background.
    fn try_connect(&mut self, caller: &Caller<'_>, denials: &mut Denials) -> Result<Option<()>, Errno> {
        let given = address(caller)?;
        let socket = caller.descriptor(caller.int(0))?;
        let family = family(&socket)?;
        let wanted = match given {
            Given::Unix(path) if family == AddressFamily::UNIX => {
                let address = self.unix.address_of(caller, &path).inspect_err(|errno| {
                    if *errno == Errno::ACCESS {
                        denials.note(Kind::Connect, crate::sanitise::path(&path).to_string(), None);
                    }
                });
                return self.start(&socket, &address?).map(Some);
            }
            Given::Unix(_) => return Err(Errno::AFNOSUPPORT),
            Given::Unspecified => {
                return sys::connect(socket.as_fd(), &(libc::AF_UNSPEC as u16).to_ne_bytes()).map(Some);
            }
            Given::Inet(_) if family == AddressFamily::UNIX => return Err(Errno::INVAL),
            Given::Inet(wanted) => wanted,
        };
        let (to, through_door) = if wanted.ip().is_loopback() && self.is_own_listener(wanted) {
            (wanted, false)
        } else {
            match self.policy.judge(Peer::Tcp(wanted)) {
                Verdict::Allow => (wanted, true),
                Verdict::Redirect(to) => (to, true),
                Verdict::Refuse => {
                    denials.connect(wanted);
                    return Err(Errno::ACCESS);
                }
            }
        };
        let vouched_for =
            if through_door && to.ip().is_loopback() { Some(self.vouch(&socket, family)?) } else { None };
        let result = self.start(&socket, &encode(to, family)?);
        match result {
            Err(Errno::INPROGRESS) if !is_nonblocking(&socket) => {
                if self.pending.len() >= PENDING_MAX {
                    return Err(Errno::AGAIN);
                }
                self.pending.push(Pending { id: caller.call.id, socket, vouched_for });
                Ok(None)
            }
            Ok(()) => Ok(Some(())),
            Err(errno) => {
                if let (Some(source), false) = (vouched_for, errno == Errno::INPROGRESS) {
                    self.vouched.forget(source);
                }
                Err(errno)
            }
        }
    }

    /// Connects for at most [`PATIENCE`].
    fn start(&self, socket: &OwnedFd, to: &[u8]) -> Result<(), Errno> {
        if is_nonblocking(socket) {
            return sys::connect(socket.as_fd(), to);
        }
        // The limit is the socket's own: the command's value is put back. It can send nothing before it is connected.
        let own = sockopt::socket_timeout(socket, sockopt::Timeout::Send)?;
        sockopt::set_socket_timeout(socket, sockopt::Timeout::Send, Some(PATIENCE))?;
        let result = sys::connect(socket.as_fd(), to);
        let _ = sockopt::set_socket_timeout(socket, sockopt::Timeout::Send, own);
        result
    }

    /// Gives `socket` a source address and notes it, before the other side can see it.
    fn vouch(&self, socket: &OwnedFd, family: AddressFamily) -> Result<SocketAddr, Errno> {
        let mut source = own_address(socket)?;
        if source.port() == 0 {
            let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            sys::bind(socket.as_fd(), &encode(loopback, family)?)?;
            source = own_address(socket)?;
        }
        if self.vouched.expect(source) { Ok(source) } else { Err(Errno::AGAIN) }
    }

    /// bind(2): to loopback alone. The unspecified address becomes loopback.
    pub(super) fn bind(&mut self, caller: &Caller<'_>, context: &Context<'_>) -> Result<i64, Errno> {
        let given = address(caller)?;
        let socket = caller.descriptor(caller.int(0))?;
        let family = family(&socket)?;
        let wanted = match given {
            Given::Inet(wanted) if family != AddressFamily::UNIX => wanted,
            Given::Unix(path) if family == AddressFamily::UNIX => {
                return self.unix.bind(caller, context, &socket, &path).map(|()| 0);
            }
            _ => return Err(Errno::AFNOSUPPORT),
        };
        if !wanted.ip().is_loopback() {
            return Err(Errno::ACCESS);
        }
        sys::bind(socket.as_fd(), &encode(wanted, family)?).map(|()| 0)
    }

    /// listen(2): on loopback, and noted as the command's own.
    pub fn listen(&mut self, caller: &Caller<'_>) -> Result<i64, Errno> {
        let socket = caller.descriptor(caller.int(0))?;
        let family = family(&socket)?;
        if family == AddressFamily::UNIX {
            return rustix::net::listen(&socket, caller.int(1)).map(|()| 0);
        }
        let own = own_address(&socket)?;
        if own.port() == 0 {
            let ip: IpAddr = if family == AddressFamily::INET6 {
                Ipv6Addr::LOCALHOST.into()
            } else {
                Ipv4Addr::LOCALHOST.into()
            };
            sys::bind(socket.as_fd(), &encode(SocketAddr::new(ip, 0), family)?)?;
        } else if !canonical(own).ip().is_loopback() {
            return Err(Errno::ACCESS);
        }
        rustix::net::listen(&socket, caller.int(1))?;
        self.own.insert(rustix::fs::fstat(&socket)?.st_ino);
        Ok(0)
    }

    /// Whether a socket of the command's own listens at `address`. Another process may have taken the port since.
    fn is_own_listener(&self, address: SocketAddr) -> bool {
        !self.own.is_empty()
            && ["/proc/self/net/tcp", "/proc/self/net/tcp6"].into_iter().any(|table| {
                listeners(&read_table(table), address.port()).any(|inode| self.own.contains(&inode))
            })
    }
}

fn read_table(path: &str) -> String {
    use std::io::Read;
    let mut text = String::new();
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.take(TABLE_MAX).read_to_string(&mut text);
    }
    text
}

/// Inodes of the sockets that listen on `port`, in the form of /proc/net/tcp.
fn listeners(table: &str, port: u16) -> impl Iterator<Item = u64> {
    const LISTENING: &str = "0A";
    table.lines().skip(1).filter_map(move |line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let local = fields.next()?;
        let state = fields.nth(1)?;
        let inode = fields.nth(5)?;
        let (_, own) = local.rsplit_once(':')?;
        (state == LISTENING && u16::from_str_radix(own, 16) == Ok(port)).then(|| inode.parse().ok())?
    })
}

/// The TCP or UDP address that a connection goes to.
pub fn peer(caller: &Caller<'_>) -> Option<SocketAddr> {
    match address(caller) {
        Ok(Given::Inet(to)) => Some(to),
        _ => None,
    }
}

/// The address argument of connect and bind, copied once.
fn address(caller: &Caller<'_>) -> Result<Given, Errno> {
    let len = caller.arg(2) & 0xffff_ffff;
    if !(2..=ADDRESS_MAX).contains(&len) {
        return Err(Errno::INVAL);
    }
    decode(&caller.bytes(caller.arg(1), usize::try_from(len).unwrap_or(2))?)
}

/// A `sockaddr`: TCP addresses only, an IPv4 address inside an IPv6 one as IPv4, the unspecified address as loopback.
fn decode(bytes: &[u8]) -> Result<Given, Errno> {
    let family = u16::from_ne_bytes(part(bytes, 0).ok_or(Errno::INVAL)?);
    let port = u16::from_be_bytes(part(bytes, 2).unwrap_or_default());
    let ip = match i32::from(family) {
        libc::AF_UNSPEC => return Ok(Given::Unspecified),
        libc::AF_INET => {
            let four: [u8; 4] = part(bytes, 4).filter(|_| bytes.len() >= 16).ok_or(Errno::INVAL)?;
            IpAddr::from(four)
        }
        libc::AF_INET6 => {
            let sixteen: [u8; 16] = part(bytes, 8).ok_or(Errno::INVAL)?;
            IpAddr::from(sixteen).to_canonical()
        }
        libc::AF_UNIX => return unix::path_in(bytes).map(Given::Unix),
        _ => return Err(Errno::AFNOSUPPORT),
    };
    let ip = match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(Given::Inet(SocketAddr::new(ip, port)))
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// `address` as a `sockaddr` for a socket of `family`.
fn encode(address: SocketAddr, family: AddressFamily) -> Result<Vec<u8>, Errno> {
    if family == AddressFamily::INET6 {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let address = SocketAddrV6::new(ip, address.port(), 0, 0);
        let mut bytes = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
        bytes.extend(address.port().to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(address.ip().octets());
        bytes.extend([0; 4]);
        return Ok(bytes);
    }
    let SocketAddr::V4(address) = address else { return Err(Errno::AFNOSUPPORT) };
    let address: SocketAddrV4 = address;
    let mut bytes = (libc::AF_INET as u16).to_ne_bytes().to_vec();
    bytes.extend(address.port().to_be_bytes());
    bytes.extend(address.ip().octets());
    bytes.extend([0; 8]);
    Ok(bytes)
}

/// The family of a socket. There is none but these that this tier lets a command have.
fn family(socket: &OwnedFd) -> Result<AddressFamily, Errno> {
    let family = sockopt::socket_domain(socket)?;
    if [AddressFamily::INET, AddressFamily::INET6, AddressFamily::UNIX].contains(&family) {
        Ok(family)
    } else {
        Err(Errno::OPNOTSUPP)
    }
}

fn own_address(socket: &OwnedFd) -> Result<SocketAddr, Errno> {
    SocketAddr::try_from(rustix::net::getsockname(socket)?).map_err(|_| Errno::AFNOSUPPORT)
}

fn is_nonblocking(socket: &OwnedFd) -> bool {
    rustix::fs::fcntl_getfl(socket).is_ok_and(|flags| flags.contains(rustix::fs::OFlags::NONBLOCK))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(bytes: &[u8]) -> Option<SocketAddr> {
        match decode(bytes) {
            Ok(Given::Inet(address)) => Some(address),
            _ => None,
        }
    }

    #[test]
    fn addresses_survive_both_ways_in_their_plain_form() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let round = |address: &str, family| given(&encode(at(address), family).unwrap());
        assert_eq!(round("192.0.2.1:80", AddressFamily::INET), Some(at("192.0.2.1:80")));
        assert_eq!(round("192.0.2.1:80", AddressFamily::INET6), Some(at("192.0.2.1:80")));
        assert_eq!(round("[2001:db8::1]:443", AddressFamily::INET6), Some(at("[2001:db8::1]:443")));
        assert_eq!(round("0.0.0.0:8", AddressFamily::INET), Some(at("127.0.0.1:8")));
        assert_eq!(round("[::]:8", AddressFamily::INET6), Some(at("[::1]:8")));
        assert!(encode(at("[::1]:8"), AddressFamily::INET).is_err());
    }

    #[test]
    fn short_and_foreign_addresses_are_errors() {
        assert!(matches!(decode(&[0, 0]), Ok(Given::Unspecified)));
        assert!(decode(&[2, 0]).is_err() && decode(&[2]).is_err());
        assert!(decode(&[2, 0, 0, 80, 127, 0, 0, 1]).is_err());
        assert!(decode(&[10, 0, 0, 80, 0, 0]).is_err());
        assert_eq!(decode(&[16, 0, 0, 0]).err(), Some(Errno::AFNOSUPPORT));
    }

    #[test]
    fn only_listening_sockets_of_the_port_are_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1 0 100 0 0 10 0
   2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4244 1 0 100 0 0 10 0
garbage";
        assert_eq!(listeners(table, 8080).collect::<Vec<_>>(), [4242]);
    }
}
