//! Ways to reach the host's network and sockets.

use crate::attempt::{Attempt, Open, Played, Scene, effects, returns};
use crate::plant::{
    Plant, inherited, listening, tcp, udp, unix_abstract, unix_datagram, unix_stream, was_heard,
};
use crate::raw::{call, calls};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

const MSG_FASTOPEN: usize = 0x2000_0000;

pub fn attempts() -> Vec<Attempt> {
    vec![
        effects("tcp_to_the_host", |s| tcp_connect("127.0.0.1", s), was_heard).planted(|_| tcp("127.0.0.1")),
        effects("tcp6_to_the_host", |s| tcp_connect("::1", s), was_heard).planted(|_| tcp("::1")),
        effects("tcp_to_any_address_of_the_host", |s| tcp_connect("0.0.0.0", s), was_heard)
            .planted(|_| tcp("127.0.0.1")),
        effects(
            "tcp_fast_open",
            |s| {
                let socket =
                    call(libc::SYS_socket, &[libc::AF_INET as usize, libc::SOCK_STREAM as usize, 0])?;
                send_inet(socket, s, MSG_FASTOPEN)
            },
            was_heard,
        )
        .planted(|_| tcp("127.0.0.1")),
        effects(
            "multipath_tcp",
            |s| {
                let socket = call(libc::SYS_socket, &[libc::AF_INET as usize, 1, 262])?;
                let address = inet(s);
                calls(libc::SYS_connect, &[socket as usize, address.as_ptr() as usize, 16])
            },
            was_heard,
        )
        .planted(|_| tcp("127.0.0.1")),
        effects("udp_to_the_host", udp_send, was_heard).planted(|_| udp("127.0.0.1")),
        effects(
            "udp6_to_the_host",
            |s| {
                let socket = UdpSocket::bind("[::1]:0").map_err(text)?;
                let port = s.number("port") as u16;
                socket.send_to(b"out", ("::1", port)).map(|_| "sent".into()).map_err(text)
            },
            was_heard,
        )
        .planted(|_| udp("::1")),
        effects(
            "serve_the_host",
            |s| {
                let _listener = TcpListener::bind(("0.0.0.0", s.number("port") as u16)).map_err(text)?;
                std::thread::sleep(Duration::from_millis(400));
                Ok("listened".into())
            },
            was_heard,
        )
        .planted(|_| {
            let port = TcpListener::bind("127.0.0.1:0")
                .and_then(|l| l.local_addr())
                .expect("loopback is there")
                .port();
            listening(move || {
                let end = Instant::now() + Duration::from_secs(3);
                loop {
                    match TcpStream::connect(("127.0.0.1", port)) {
                        Ok(_) => return Ok(()),
                        Err(error) if Instant::now() > end => return Err(error),
                        Err(_) => std::thread::sleep(Duration::from_millis(20)),
                    }
                }
            })
            .word("port", port)
        })
        .open_in_landlock(Open::All),
        effects(
            "tcp_to_the_host_while_the_address_changes",
            |s| {
                let own = TcpListener::bind("127.0.0.1:0").map_err(text)?;
                own.set_nonblocking(true).map_err(text)?;
                let own_port = own.local_addr().map_err(text)?.port();
                let address = Box::leak(Box::new(inet(s)));
                let at = address.as_mut_ptr() as usize;
                let host_port = s.number("port") as u16;
                let stop = &*Box::leak(Box::new(std::sync::atomic::AtomicBool::new(false)));
                let swapper = std::thread::spawn(move || {
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        crate::raw::poke(at + 2, &own_port.to_be_bytes());
                        crate::raw::poke(at + 2, &host_port.to_be_bytes());
                    }
                });
                let mut made = 0;
                let end = Instant::now() + Duration::from_secs(5);
                for _ in (0..300).take_while(|_| Instant::now() < end) {
                    let socket = call(libc::SYS_socket, &[libc::AF_INET as usize, 1, 0])?;
                    made += usize::from(call(libc::SYS_connect, &[socket as usize, at, 16]).is_ok());
                    let _ = call(libc::SYS_close, &[socket as usize]);
                    let _ = own.accept();
                }
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
                let _ = swapper.join();
                if made == 0 { Err("no connection".into()) } else { Ok(format!("{made} connections")) }
            },
            was_heard,
        )
        .planted(|_| tcp("127.0.0.1")),
        effects(
            "tcp_to_the_host_behind_an_own_listener",
            |s| {
                let own = TcpListener::bind(("127.0.0.2", s.number("port") as u16)).map_err(text)?;
                let tried = tcp_connect("127.0.0.1", s);
                drop(own);
                tried
            },
            was_heard,
        )
        .planted(|_| tcp("127.0.0.1")),
        effects(
            "tcp_to_the_host_behind_an_own_listener_of_the_other_family",
            |s| {
                let own = TcpListener::bind(("::1", s.number("port") as u16)).map_err(text)?;
                let tried = tcp_connect("127.0.0.1", s);
                drop(own);
                tried
            },
            was_heard,
        )
        .planted(|_| tcp("127.0.0.1")),
        returns("privileged_port", |_| {
            let mut refused = String::new();
            for port in 600..700 {
                match TcpListener::bind(("127.0.0.1", port)) {
                    Ok(_) => return Ok(port.to_string()),
                    Err(error) => refused = text(error),
                }
            }
            Err(refused)
        })
        .needing_root(),
        effects(
            "tcp_to_a_shared_port_of_the_host",
            |s| {
                let _own = shared_listener(s.number("port") as u16)?;
                // The kernel chooses among the listeners: one of many connections goes to the host's.
                let tried = (0..64).filter(|_| tcp_connect("127.0.0.1", s).is_ok()).count();
                if tried == 0 { Err("no connection".into()) } else { Ok(format!("{tried} connections")) }
            },
            was_heard,
        )
        .planted(|_| {
            let listener = shared_listener(0).expect("loopback is there");
            let port = listener.local_addr().expect("bound").port();
            listening(move || listener.accept().map(drop)).word("port", port)
        }),
        effects("unix_socket_in_a_grant", |s| unix_connect(&s.work("socket")), was_heard)
            .planted(|s| unix_stream(&s.work("socket"))),
        effects("unix_socket_in_a_read_only_grant", |s| unix_connect(&s.lib("socket")), was_heard)
            .planted(|s| unix_stream(&s.lib("socket"))),
        effects("unix_socket_outside", |s| unix_connect(&s.outside("socket")), was_heard)
            .planted(|s| unix_stream(&s.outside("socket"))),
        effects(
            "unix_datagram_in_a_grant",
            |s| {
                let socket = std::os::unix::net::UnixDatagram::unbound().map_err(text)?;
                socket.send_to(b"out", s.work("socket")).map(|_| "sent".into()).map_err(text)
            },
            was_heard,
        )
        .planted(|s| unix_datagram(&s.work("socket"))),
        effects(
            "unix_datagram_from_a_pair",
            |s| {
                let (socket, _other) = std::os::unix::net::UnixDatagram::pair().map_err(text)?;
                socket.send_to(b"out", s.work("socket")).map(|_| "sent".into()).map_err(text)
            },
            was_heard,
        )
        .planted(|s| unix_datagram(&s.work("socket"))),
        effects(
            "unix_abstract",
            |s| {
                use std::os::linux::net::SocketAddrExt;
                let name = std::os::unix::net::SocketAddr::from_abstract_name(s.word("name"));
                std::os::unix::net::UnixStream::connect_addr(&name.map_err(text)?)
                    .map(|_| "connected".into())
                    .map_err(text)
            },
            was_heard,
        )
        .planted(unix_abstract),
        effects(
            "inherited_socket",
            |s| calls(libc::SYS_sendto, &[s.number("fd") as usize, b"x".as_ptr() as usize, 1, 0, 0, 0]),
            was_heard,
        )
        .planted(|_| {
            let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("descriptors");
            let socket = inherited(theirs);
            let hears = listening(move || std::io::Read::read_exact(&mut &ours, &mut [0]));
            Plant { heard: hears.heard, ..socket }
        }),
        returns("sockets_of_the_host", |s| {
            let table = std::fs::read_to_string("/proc/self/net/tcp").map_err(text)?;
            let port = format!(":{:04X} ", s.number("port"));
            if table.contains(&port) { Ok("listed".into()) } else { Err("not listed".into()) }
        })
        .planted(|_| tcp("127.0.0.1"))
        .open_in_landlock(Open::All),
        returns("netlink", |_| socket(libc::AF_NETLINK, libc::SOCK_RAW, 0)),
        returns("vsock_or_alg", |_| {
            socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0).or_else(|_| socket(libc::AF_VSOCK, 1, 0))
        }),
        returns("unix_with_high_bits", |_| {
            calls(libc::SYS_socket, &[libc::AF_UNIX as usize | 1 << 32, libc::SOCK_STREAM as usize, 0])
        }),
        returns("packet_socket", |_| socket(libc::AF_PACKET, libc::SOCK_RAW, 0x0300)).namespaced(),
        returns("raw_socket", |_| socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)).namespaced(),
        returns("raw_socket_6", |_| socket(libc::AF_INET6, libc::SOCK_RAW, 58)).namespaced(),
    ]
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

fn socket(family: i32, kind: i32, protocol: i32) -> Played {
    calls(libc::SYS_socket, &[family as usize, kind as usize, protocol as usize])
}

fn tcp_connect(host: &str, scene: &Scene) -> Played {
    TcpStream::connect((host, scene.number("port") as u16)).map(|_| "connected".into()).map_err(text)
}

fn unix_connect(path: &std::path::Path) -> Played {
    std::os::unix::net::UnixStream::connect(path).map(|_| "connected".into()).map_err(text)
}

fn udp_send(scene: &Scene) -> Played {
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(text)?;
    let port = scene.number("port") as u16;
    socket.send_to(b"out", ("127.0.0.1", port)).map(|_| "sent".into()).map_err(text)
}

/// 127.0.0.1 at the scene's port, as the kernel takes it.
fn inet(scene: &Scene) -> [u8; 16] {
    let mut address = [0u8; 16];
    address[0] = libc::AF_INET as u8;
    address[2..4].copy_from_slice(&(scene.number("port") as u16).to_be_bytes());
    address[4..8].copy_from_slice(&[127, 0, 0, 1]);
    address
}

fn send_inet(socket: i64, scene: &Scene, flags: usize) -> Played {
    let address = inet(scene);
    calls(
        libc::SYS_sendto,
        &[socket as usize, b"x".as_ptr() as usize, 1, flags, address.as_ptr() as usize, 16],
    )
}

/// A listener on 127.0.0.1 whose port others of the same user may listen on too.
fn shared_listener(port: u16) -> Result<TcpListener, String> {
    use rustix::net::{AddressFamily, SocketType, bind, listen, socket, sockopt};
    let errno = |errno: rustix::io::Errno| errno.to_string();
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).map_err(errno)?;
    sockopt::set_socket_reuseport(&listener, true).map_err(errno)?;
    bind(&listener, &std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port)).map_err(errno)?;
    listen(&listener, 128).map_err(errno)?;
    Ok(listener.into())
}
