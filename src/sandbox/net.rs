//! The network inside: loopback, and sockets that are made here and served from outside.
//!
//! With [`Net::Captured`](super::spec::Net), every address there is belongs to the loopback device of the empty namespace: what a tool sends
//! to anywhere stays inside and arrives at a socket of ours, or fails at once.
//!
//! 1. 198.18.0.1 on `lo`, so that resolver libraries see an IPv4 network;
//! 2. the routes `local 0.0.0.0/0 dev lo` and `local ::/0 dev lo`;
//! 3. TCP sockets that listen on every address, one for each captured port;
//! 4. a UDP socket on 127.0.0.1:53, for a resolver;
//! 5. packet sockets that see the first packet of each attempt (TCP SYN, UDP) to anything but loopback itself, so that
//!    an attempt at a port that nobody serves can be explained.
//!
//! Steps 2 and 5 need CAP_NET_ADMIN and CAP_NET_RAW in the namespace, step 3 below port 1024 CAP_NET_BIND_SERVICE; an
//! ordinary user's namespace gives them, and they are gone before the command runs.

use super::spec::Net;
use super::status::{Failure, Step};
use super::sys;
use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_IND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_LDX, BPF_MSH, BPF_RET,
    BPF_W, sock_filter,
};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RawProtocol, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sockopt,
};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// The address of the loopback device besides 127.0.0.1 (RFC 2544: no real network has it).
const OWN_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The loopback device of a new namespace is its first.
const LOOPBACK_INDEX: u32 = 1;
/// Connections that wait for the proxy, and for each captured port.
const BACKLOG: (i32, i32) = (1024, 128);
/// Descriptors in one message; the kernel passes at most 253 (SCM_MAX_FD).
const BATCH: usize = 64;
/// Bytes that a packet socket keeps of a packet: an IPv6 header and the ports.
const SNAP: u32 = 64;
/// Receive buffer of a packet socket, bytes. A flood loses explanations, nothing else.
const PACKET_BUFFER: usize = 64 * 1024;

/// Files of the run's own /etc that make names known by our resolver, and by nothing of the host's.
pub const ETC_FILES: [(&str, &str); 3] = [
    ("resolv.conf", "nameserver 127.0.0.1\nsearch .\noptions timeout:2 attempts:2\n"),
    ("hosts", "127.0.0.1 localhost jess\n::1 localhost\n"),
    ("nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\n"),
];

/// The sockets that were made inside.
#[derive(Debug, Default)]
pub struct Sockets {
    /// Listens on 127.0.0.1, at the proxy's port.
    pub proxy: Option<OwnedFd>,
    /// UDP on 127.0.0.1:53.
    pub resolver: Option<OwnedFd>,
    /// Listening TCP sockets, one for each captured port, on every address.
    pub captured: Vec<OwnedFd>,
    /// AF_PACKET sockets without link header: IPv4, then IPv6 if the kernel has it.
    pub packets: Vec<OwnedFd>,
}

/// What the descriptors of a message are.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Kind {
    Proxy = b'L',
    Resolver = b'R',
    Captured = b'C',
    Packets = b'P',
    End = b'E',
}

/// Sets the network of `net` up and sends its sockets through `channel`. Runs inside, with the namespace's capabilities.
pub fn enter(net: &Net, channel: BorrowedFd<'_>) -> Result<(), Failure> {
    let socket_failed = Failure::at(Step::Listener);
    let proxy = match net {
        Net::Empty => return Ok(()),
        Net::Listener(port) => *port,
        Net::Captured(captured) => {
            capture(&captured.ports, channel)?;
            captured.proxy
        }
    };
    send(channel, Kind::Proxy, &[listen_on_loopback(proxy).map_err(&socket_failed)?])
        .map_err(&socket_failed)?;
    send(channel, Kind::End, &[]).map_err(&socket_failed)
}

fn capture(ports: &[u16], channel: BorrowedFd<'_>) -> Result<(), Failure> {
    let route_failed = Failure::at(Step::Routes);
    let socket_failed = Failure::at(Step::Listener);
    let netlink = Netlink::open().map_err(&route_failed)?;
    netlink.add_address(OWN_ADDRESS).map_err(&route_failed)?;
    netlink.add_local_route(AddressFamily::INET).map_err(&route_failed)?;
    let v6 = netlink.add_local_route(AddressFamily::INET6).is_ok();
    let sockets = || -> Result<(), Errno> {
        let mut packets = vec![packet_socket(libc::ETH_P_IP, &ipv4_filter())?];
        if v6 {
            packets.push(packet_socket(libc::ETH_P_IPV6, &ipv6_filter())?);
        }
        send(channel, Kind::Packets, &packets)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let resolver = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        rustix::net::bind(&resolver, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 53))?;
        send(channel, Kind::Resolver, &[resolver])?;
        for ports in ports.chunks(BATCH) {
            let at = |port: u16| -> SocketAddr {
                match v6 {
                    true => SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0).into(),
                    false => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port).into(),
                }
            };
            let batch: Result<Vec<OwnedFd>, Errno> =
                ports.iter().map(|port| listener(at(*port), BACKLOG.1)).collect();
            send(channel, Kind::Captured, &batch?)?;
        }
        Ok(())
    };
    sockets().map_err(&socket_failed)
}

/// A listening TCP socket on 127.0.0.1; port 0 is any free one.
pub fn listen_on_loopback(port: u16) -> Result<OwnedFd, Errno> {
    listener(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into(), BACKLOG.0)
}

fn listener(address: SocketAddr, backlog: i32) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&listener, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&listener, false)?;
    }
    rustix::net::bind(&listener, &address)?;
    rustix::net::listen(&listener, backlog)?;
    Ok(listener)
}

fn packet_socket(protocol: i32, filter: &[sock_filter]) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let protocol = RawProtocol::new(u32::from((protocol as u16).to_be())).map(Protocol::from_raw);
    let socket = rustix::net::socket_with(AddressFamily::PACKET, SocketType::DGRAM, flags, protocol)?;
    sys::attach_filter(socket.as_fd(), filter)?;
    sockopt::set_socket_recv_buffer_size(&socket, PACKET_BUFFER)?;
    Ok(socket)
}

/// Passes TCP SYNs, and UDP, to IPv4 addresses other than 127.0.0.0/8.
fn ipv4_filter() -> [sock_filter; 12] {
    [
        op(BPF_LD | BPF_W | BPF_ABS, 16, 0, 0),
        op(BPF_ALU | BPF_AND | BPF_K, 0xff00_0000, 0, 0),
        op(BPF_JMP | BPF_JEQ | BPF_K, 0x7f00_0000, 8, 0),
        op(BPF_LD | BPF_B | BPF_ABS, 9, 0, 0),
        op(BPF_JMP | BPF_JEQ | BPF_K, libc::IPPROTO_UDP as u32, 5, 0),
        op(BPF_JMP | BPF_JEQ | BPF_K, libc::IPPROTO_TCP as u32, 0, 5),
        // The length of the IP header, then the flags of the TCP header: SYN without ACK.
        op(BPF_LDX | BPF_B | BPF_MSH, 0, 0, 0),
        op(BPF_LD | BPF_B | BPF_IND, 13, 0, 0),
        op(BPF_ALU | BPF_AND | BPF_K, 0x12, 0, 0),
        op(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),
        op(BPF_RET | BPF_K, SNAP, 0, 0),
        op(BPF_RET | BPF_K, 0, 0, 0),
    ]
}

/// The same for IPv6 without extension headers, and all addresses but `::1`.
fn ipv6_filter() -> [sock_filter; 16] {
    [
        op(BPF_LD | BPF_W | BPF_ABS, 24, 0, 0),
        op(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 6),
        op(BPF_LD | BPF_W | BPF_ABS, 28, 0, 0),
        op(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 4),
        op(BPF_LD | BPF_W | BPF_ABS, 32, 0, 0),
        op(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
        op(BPF_LD | BPF_W | BPF_ABS, 36, 0, 0),
        op(BPF_JMP | BPF_JEQ | BPF_K, 1, 7, 0),
        op(BPF_LD | BPF_B | BPF_ABS, 6, 0, 0),
        op(BPF_JMP | BPF_JEQ | BPF_K, libc::IPPROTO_UDP as u32, 4, 0),
        op(BPF_JMP | BPF_JEQ | BPF_K, libc::IPPROTO_TCP as u32, 0, 4),
        op(BPF_LD | BPF_B | BPF_ABS, 53, 0, 0),
        op(BPF_ALU | BPF_AND | BPF_K, 0x12, 0, 0),
        op(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),
        op(BPF_RET | BPF_K, SNAP, 0, 0),
        op(BPF_RET | BPF_K, 0, 0, 0),
    ]
}

const fn op(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

/// A routing socket of the kernel's.
struct Netlink(OwnedFd);

impl Netlink {
    fn open() -> Result<Netlink, Errno> {
        // Protocol 0 of this family is NETLINK_ROUTE.
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .map(Netlink)
    }

    /// `ip address add ADDRESS/32 dev lo`
    fn add_address(&self, address: Ipv4Addr) -> Result<(), Errno> {
        let mut body = vec![libc::AF_INET as u8, 32, 0, libc::RT_SCOPE_HOST];
        body.extend(LOOPBACK_INDEX.to_ne_bytes());
        for kind in [libc::IFA_LOCAL, libc::IFA_ADDRESS] {
            attribute(&mut body, kind, address.octets());
        }
        self.ask(libc::RTM_NEWADDR, &body)
    }

    /// `ip route add local default dev lo table local`
    fn add_local_route(&self, family: AddressFamily) -> Result<(), Errno> {
        let family = if family == AddressFamily::INET { libc::AF_INET } else { libc::AF_INET6 };
        let mut body = vec![
            family as u8,
            0,
            0,
            0,
            libc::RT_TABLE_LOCAL,
            libc::RTPROT_BOOT,
            libc::RT_SCOPE_HOST,
            libc::RTN_LOCAL,
        ];
        body.extend([0; 4]);
        attribute(&mut body, libc::RTA_OIF, LOOPBACK_INDEX.to_ne_bytes());
        self.ask(libc::RTM_NEWROUTE, &body)
    }

    /// Sends one request and reads its acknowledgement.
    fn ask(&self, kind: u16, body: &[u8]) -> Result<(), Errno> {
        const HEADER: usize = 16;
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
        let length = u32::try_from(HEADER + body.len()).map_err(|_| Errno::INVAL)?;
        let mut request = length.to_ne_bytes().to_vec();
        request.extend(kind.to_ne_bytes());
        request.extend(flags.to_ne_bytes());
        request.extend([0; 8]);
        request.extend(body);
        rustix::net::send(&self.0, &request, SendFlags::empty())?;
        let mut answer = [0u8; 1024];
        let (n, _) =
            rustix::io::retry_on_intr(|| rustix::net::recv(&self.0, &mut answer[..], RecvFlags::empty()))?;
        let code: Option<[u8; 4]> =
            answer.get(..n).and_then(|a| a.get(HEADER..HEADER + 4)).and_then(|code| code.try_into().ok());
        match code.map(i32::from_ne_bytes) {
            Some(0) => Ok(()),
            Some(code) if code < 0 => Err(Errno::from_raw_os_error(-code)),
            _ => Err(Errno::BADMSG),
        }
    }
}

fn attribute(body: &mut Vec<u8>, kind: u16, value: [u8; 4]) {
    body.extend(8u16.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
}

fn send(channel: BorrowedFd<'_>, kind: Kind, fds: &[OwnedFd]) -> Result<(), Errno> {
    let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(Errno::NOBUFS);
    }
    let byte = [kind as u8];
    rustix::net::sendmsg(channel, &[std::io::IoSlice::new(&byte)], &mut control, SendFlags::empty()).map(drop)
}

/// Takes what [`enter`] sends. `None`: the inside ended before it had sent everything.
pub fn receive(channel: BorrowedFd<'_>) -> Option<Sockets> {
    let mut sockets = Sockets::default();
    loop {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0u8; 1];
        let received = rustix::io::retry_on_intr(|| {
            let into = &mut [std::io::IoSliceMut::new(&mut byte)];
            rustix::net::recvmsg(channel, into, &mut control, RecvFlags::CMSG_CLOEXEC)
        });
        if received.ok()?.bytes != 1 {
            return None;
        }
        let fds = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        let mut fds = fds.flatten();
        match byte {
            [b] if b == Kind::Proxy as u8 => sockets.proxy = fds.next(),
            [b] if b == Kind::Resolver as u8 => sockets.resolver = fds.next(),
            [b] if b == Kind::Captured as u8 => sockets.captured.extend(fds),
            [b] if b == Kind::Packets as u8 => sockets.packets.extend(fds),
            [b] if b == Kind::End as u8 => return Some(sockets),
            _ => return None,
        }
    }
}
