//! TCP without a network namespace: the command's own listeners on loopback, and what a [`ConnectPolicy`] allows.
//!
//! The supervisor copies the address, decides, and binds, listens and connects on a copy of the command's descriptor.
//! Landlock forbids the command the same calls (from ABI 4), and seccomp every other family and way to connect.

use super::caller::Caller;
use super::policy::{ConnectPolicy, Peer, Verdict, Vouched, canonical};
use super::unix::{self, UnixSockets};
use super::{Answer, Context};
use crate::sandbox::denial::{Kind, Notes};
use crate::sandbox::sys::notify as sys;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, sockopt};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest `sockaddr` (sockaddr_storage).
const ADDRESS_MAX: u64 = 128;

/// Connections that are under way at once; one more gets EAGAIN.
const PENDING_MAX: usize = 64;

/// Bytes of the kernel's table of sockets that are read.
const TABLE_MAX: u64 = 4 << 20;

/// Sockets that listen, or listened, before those that no longer do are forgotten.
const LISTENERS_MAX: usize = 1024;

/// The network of a run.
#[derive(Debug)]
pub struct Network {
    policy: Arc<dyn ConnectPolicy>,
    vouched: Vouched,
    /// Inodes of sockets on which the command listens or listened.
    own: HashSet<u64>,
    unix: UnixSockets,
    under_way: UnderWay,
}

/// Connections that are being made, by the call that waits for each.
#[derive(Debug, Clone, Default)]
pub struct UnderWay(Arc<Mutex<HashMap<u64, Arc<OwnedFd>>>>);

impl UnderWay {
    fn sockets(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<OwnedFd>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all of them, so that nobody waits for a peer any more.
    pub fn abandon(&self) {
        for socket in self.sockets().values() {
            let _ = rustix::net::shutdown(&**socket, rustix::net::Shutdown::Both);
        }
    }
}

/// An address that the command gave.
enum Given {
    Inet(SocketAddr),
    /// The unspecified address of IPv6, which may stand for both loopbacks, with its port.
    Any6(u16),
    Unix(PathBuf),
    /// AF_UNSPEC: ends an association.
    Unspecified,
}

impl Network {
    pub fn new(policy: Arc<dyn ConnectPolicy>, vouched: Vouched) -> Network {
        let (unix, under_way) = (UnixSockets::default(), UnderWay::default());
        Network { policy, vouched, own: HashSet::new(), unix, under_way }
    }

    /// The connections that are being made.
    pub fn under_way(&self) -> UnderWay {
        self.under_way.clone()
    }

    /// connect(2).
    pub(super) fn connect(
        &mut self,
        caller: &Caller<'_>,
        listener: &Arc<super::Listener>,
        denials: &Notes,
    ) -> Answer {
        match self.try_connect(caller, listener, denials) {
            Ok(answer) => answer,
            Err(errno) => Answer::Return(Err(errno)),
        }
    }

    fn try_connect(
        &mut self,
        caller: &Caller<'_>,
        listener: &Arc<super::Listener>,
        denials: &Notes,
    ) -> Result<Answer, Errno> {
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
                return self.start(caller, listener, socket, address?, None);
            }
            Given::Unix(_) => return Err(Errno::AFNOSUPPORT),
            // Waits for nobody.
            Given::Unspecified => {
                let ended = sys::connect(socket.as_fd(), &(libc::AF_UNSPEC as u16).to_ne_bytes());
                return Ok(Answer::Return(ended.map(|()| 0)));
            }
            Given::Inet(_) if family == AddressFamily::UNIX => return Err(Errno::INVAL),
            Given::Any6(_) if family == AddressFamily::UNIX => return Err(Errno::INVAL),
            Given::Inet(wanted) => wanted,
            Given::Any6(port) => SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
        };
        let own = [Some(wanted), self.bound_for_both(wanted)].into_iter().flatten();
        let mut own = own.filter(|own| own.ip().is_loopback() && self.is_own_listener(*own));
        let (to, through_door) = if let Some(own) = own.next() {
            (own, false)
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
        let address = encode(to, family)?;
        let vouched_for =
            if through_door && to.ip().is_loopback() { Some(self.vouch(&socket, family)?) } else { None };
        let started = self.start(caller, listener, socket, address, vouched_for);
        if let (Err(_), Some(source)) = (&started, vouched_for) {
            self.vouched.forget(source);
        }
        started
    }

    /// Connects on a thread of its own, which answers. The descriptor's flags and timeouts are the command's, also
    /// while the call is under way, so how long it takes is nobody's to say here.
    fn start(
        &self,
        caller: &Caller<'_>,
        listener: &Arc<super::Listener>,
        socket: OwnedFd,
        to: Vec<u8>,
        vouched_for: Option<SocketAddr>,
    ) -> Result<Answer, Errno> {
        let (id, socket) = (caller.call.id, Arc::new(socket));
        {
            let mut sockets = self.under_way.sockets();
            if sockets.len() >= PENDING_MAX {
                return Err(Errno::AGAIN);
            }
            sockets.insert(id, socket.clone());
        }
        let (under_way, vouched, listener) = (self.under_way.clone(), self.vouched.clone(), listener.clone());
        let connect = move || {
            let result = sys::connect(socket.as_fd(), &to);
            under_way.sockets().remove(&id);
            if let (Err(errno), Some(source)) = (&result, vouched_for)
                && *errno != Errno::INPROGRESS
            {
                vouched.forget(source);
            }
            listener.answer(id, result.map(|()| 0));
        };
        let thread =
            std::thread::Builder::new().name("jess-connect".into()).stack_size(super::service::STACK);
        match thread.spawn(connect) {
            Ok(_) => Ok(Answer::Later),
            Err(_) => {
                self.under_way.sockets().remove(&id);
                Err(Errno::AGAIN)
            }
        }
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

    /// Where else the command's own listener for `wanted` may be: one that is bound to both loopbacks is bound to that of
    /// IPv4, and a connection to the other goes there too.
    fn bound_for_both(&self, wanted: SocketAddr) -> Option<SocketAddr> {
        let other = wanted.ip() == IpAddr::from(Ipv6Addr::LOCALHOST);
        other.then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, wanted.port())))
    }

    /// bind(2): to loopback alone. The unspecified address becomes loopback.
    pub(super) fn bind(&mut self, caller: &Caller<'_>, context: &Context<'_>) -> Result<i64, Errno> {
        let given = address(caller)?;
        let socket = caller.descriptor(caller.int(0))?;
        let family = family(&socket)?;
        let wanted = match given {
            Given::Inet(wanted) if family != AddressFamily::UNIX => wanted,
            Given::Any6(port) if family == AddressFamily::INET6 => any6(&socket, port)?,
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
            let loopback = if family == AddressFamily::INET6 {
                any6(&socket, 0)?
            } else {
                SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
            };
            sys::bind(socket.as_fd(), &encode(loopback, family)?)?;
        } else if !canonical(own).ip().is_loopback() {
            return Err(Errno::ACCESS);
        }
        if self.own.len() >= LISTENERS_MAX {
            self.forget_the_closed();
        }
        // Without sharing, the kernel has nobody else listen there. The table of sockets takes long to read.
        let shares = sockopt::socket_reuseport(&socket)?;
        if self.own.len() >= LISTENERS_MAX || (shares && self.is_foreign(canonical(own_address(&socket)?))) {
            return Err(Errno::ADDRINUSE);
        }
        rustix::net::listen(&socket, caller.int(1))?;
        // The command holds the same socket, and may have changed where it is bound meanwhile.
        if !canonical(own_address(&socket)?).ip().is_loopback() {
            let _ = rustix::net::shutdown(&socket, rustix::net::Shutdown::Both);
            return Err(Errno::ACCESS);
        }
        self.own.insert(rustix::fs::fstat(&socket)?.st_ino);
        Ok(0)
    }

    /// Forgets sockets that listen no longer.
    fn forget_the_closed(&mut self) {
        let tables = TABLES.map(read_table);
        let listening: HashSet<u64> =
            tables.iter().flat_map(|table| listeners(table)).map(|found| found.inode).collect();
        self.own.retain(|inode| listening.contains(inode));
    }

    /// Whether a socket that is not the command's own listens where a connection to `address` could end.
    fn is_foreign(&self, address: SocketAddr) -> bool {
        TABLES.into_iter().any(|table| {
            listeners(&read_table(table))
                .any(|found| found.takes(address) && !self.own.contains(&found.inode))
        })
    }

    /// Whether a socket of the command's own, and of nobody else, listens at `address`. Sockets that share a port
    /// (SO_REUSEPORT) could be the host's in part, and the command's own one could be closed before the connection is made.
    fn is_own_listener(&self, address: SocketAddr) -> bool {
        if self.own.is_empty() {
            return false;
        }
        let mut own = false;
        for table in TABLES {
            for found in listeners(&read_table(table)).filter(|found| found.takes(address)) {
                if !self.own.contains(&found.inode) {
                    return false;
                }
                own |= found.address == address;
            }
        }
        own
    }
}

/// Where the kernel lists the sockets of this network.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

fn read_table(path: &str) -> String {
    use std::io::Read;
    let mut text = String::new();
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.take(TABLE_MAX).read_to_string(&mut text);
    }
    text
}

/// A socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    /// Where, with an IPv4 address inside an IPv6 one as IPv4.
    address: SocketAddr,
    inode: u64,
}

impl Found {
    /// Whether it gets connections to `to`. The unspecified address of IPv6 takes those of IPv4 too.
    fn takes(&self, to: SocketAddr) -> bool {
        let everywhere = self.address.ip().is_unspecified() && (self.address.is_ipv6() || to.is_ipv4());
        self.address.port() == to.port() && (everywhere || self.address.ip() == to.ip())
    }
}

/// The listening sockets in a table in the form of /proc/net/tcp.
fn listeners(table: &str) -> impl Iterator<Item = Found> {
    const LISTENING: &str = "0A";
    table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let local = fields.next()?;
        let state = fields.nth(1)?;
        let inode = fields.nth(5)?;
        (state == LISTENING)
            .then(|| Some(Found { address: local_address(local)?, inode: inode.parse().ok()? }))?
    })
}

/// An address as the kernel writes it: words of the machine's order, in hexadecimal.
fn local_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.rsplit_once(':')?;
    let mut bytes = Vec::with_capacity(16);
    for word in address.as_bytes().chunks(8) {
        if word.len() != 8 {
            return None;
        }
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let ip = match (<[u8; 4]>::try_from(bytes.as_slice()), <[u8; 16]>::try_from(bytes.as_slice())) {
        (Ok(four), _) => IpAddr::from(four),
        (_, Ok(sixteen)) => IpAddr::from(sixteen).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// The TCP or UDP address that a connection goes to.
pub fn peer(caller: &Caller<'_>) -> Option<SocketAddr> {
    match address(caller) {
        Ok(Given::Inet(to)) => Some(to),
        Ok(Given::Any6(port)) => Some(SocketAddr::from((Ipv6Addr::LOCALHOST, port))),
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
        IpAddr::V6(ip) if ip.is_unspecified() => return Ok(Given::Any6(port)),
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

/// The loopback that stands for the unspecified address of IPv6: that of IPv4 where `socket` takes both, since a socket can be
/// bound to one alone, and most programs ask for that one.
fn any6(socket: &OwnedFd, port: u16) -> Result<SocketAddr, Errno> {
    let both = !sockopt::ipv6_v6only(socket)?;
    let ip: IpAddr = if both { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    Ok(SocketAddr::new(ip, port))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn given(bytes: &[u8]) -> Option<SocketAddr> {
        match decode(bytes) {
            Ok(Given::Inet(address)) => Some(address),
            Ok(Given::Any6(port)) => Some(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))),
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
        assert_eq!(round("[::]:8", AddressFamily::INET6), Some(at("[::]:8")));
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
    fn only_listening_sockets_are_found_with_their_address() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1 0 100 0 0 10 0
   2: 00000000000000000000000001000000:1F91 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4244 1 0 100 0 0 10 0
   3: 0000000000000000FFFF00000200007F:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4245 1 0 100 0 0 10 0
garbage";
        let found = |address: &str, inode| Found { address: at(address), inode };
        assert_eq!(
            listeners(table).collect::<Vec<_>>(),
            [found("127.0.0.1:8080", 4242), found("[::1]:8081", 4244), found("127.0.0.2:80", 4245)]
        );
        assert_eq!(local_address("0100007F"), None);
        assert_eq!(local_address("01:0001"), None);
    }

    #[test]
    fn a_listener_takes_what_its_address_covers() {
        let takes = |own: &str, to: &str| Found { address: at(own), inode: 1 }.takes(at(to));
        assert!(takes("127.0.0.1:80", "127.0.0.1:80") && takes("0.0.0.0:80", "127.0.0.1:80"));
        assert!(takes("[::]:80", "127.0.0.1:80") && takes("[::]:80", "[::1]:80"));
        for (own, to) in [
            ("127.0.0.2:80", "127.0.0.1:80"),
            ("[::1]:80", "127.0.0.1:80"),
            ("0.0.0.0:80", "[::1]:80"),
            ("127.0.0.1:81", "127.0.0.1:80"),
        ] {
            assert!(!takes(own, to), "{own} {to}");
        }
    }
}
