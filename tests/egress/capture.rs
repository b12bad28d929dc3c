//! Tools that know nothing of a proxy: they ask a resolver, and connect to what it answers.
//!
//! The synthetic range is 127.99.0.0/16 here, which every Linux loopback device receives without set-up.

use crate::support::{Authority, Door, NameServer, Origin, PUBLIC, config, get_over_tls, read_all};
use jess::egress::event::{Door as By, Reason};
use jess::egress::{Capture, Config};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

struct Inside {
    resolver: SocketAddr,
    port: u16,
}

/// Opens a door with capture, whose captured port is the origin's, so that a tool needs no port of its own.
fn open(mut config: Config, port: u16) -> (Door, Inside) {
    let resolver = UdpSocket::bind("127.0.0.1:0").unwrap();
    // Any free address of the range would do for a listener on one port; 0.0.0.0 takes them all in a real sandbox.
    let listener = TcpListener::bind(("127.99.0.2", port)).unwrap();
    let inside = Inside { resolver: resolver.local_addr().unwrap(), port };
    config.capture = Some(Capture {
        resolver: resolver.into(),
        listeners: vec![listener.into()],
        packets: Vec::new(),
        range: "127.99.0.0/16".parse().unwrap(),
    });
    (Door::open(config), inside)
}

impl Inside {
    /// The response code and the addresses for a question of type `kind` (1 A, 28 AAAA, 16 TXT).
    fn ask(&self, name: &str, kind: u16) -> Option<(u8, Vec<Ipv4Addr>)> {
        let mut packet = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            packet.push(label.len() as u8);
            packet.extend(label.bytes());
        }
        packet.extend([0, (kind >> 8) as u8, kind as u8, 0, 1]);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        socket.send_to(&packet, self.resolver).unwrap();
        let mut buf = [0; 1500];
        let n = socket.recv(&mut buf).ok()?;
        let answers = u16::from_be_bytes([buf[6], buf[7]]) as usize;
        let mut addresses = Vec::new();
        for i in 0..answers {
            let end = n - (answers - 1 - i) * 16;
            addresses.push(Ipv4Addr::new(buf[end - 4], buf[end - 3], buf[end - 2], buf[end - 1]));
        }
        Some((buf[3] & 15, addresses))
    }

    fn connect(&self, name: &str) -> TcpStream {
        let (_, addresses) = self.ask(name, 1).unwrap();
        let stream = TcpStream::connect((addresses[0], self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream
    }
}

#[test]
fn a_tool_without_proxy_settings_reaches_an_allowed_name_and_is_held_to_it() {
    let authority = Authority::new();
    let origin = Origin::https(PUBLIC, &authority, &["allowed.test", "other.test"], "PUBLIC");
    let at = format!("allowed.test:{}", origin.port());
    let (door, inside) = open(config(&[&at], &[("allowed.test", PUBLIC)]), origin.port());
    let answer = get_over_tls(inside.connect("ALLOWED.test"), authority.client(), "allowed.test");
    assert!(answer.unwrap().contains("PUBLIC"));
    let fronted = get_over_tls(inside.connect("allowed.test"), authority.client(), "other.test");
    assert!(fronted.is_err(), "{fronted:?}");
    let events = door.handle.stop().events;
    let captured =
        |r: Reason| events.iter().any(|e| e.door == By::Capture && e.host == "allowed.test" && e.reason == r);
    assert!(captured(Reason::Done) && captured(Reason::SniMismatch), "{events:?}");
}

#[test]
fn plain_http_is_captured_and_judged_by_method_and_path() {
    let origin = Origin::http(PUBLIC, "PUBLIC");
    let at = format!("allowed.test:{}", origin.port());
    let (_door, inside) =
        open(config(&[&format!("GET http://{at}/pub/")], &[("allowed.test", PUBLIC)]), origin.port());
    let ask = |line: &str, host: &str| {
        let mut stream = inside.connect("allowed.test");
        write!(stream, "{line} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        read_all(&mut stream)
    };
    assert!(ask("GET /pub/x", &at).contains("PUBLIC"));
    assert!(ask("POST /pub/x", &at).starts_with("HTTP/1.1 403"));
    assert!(ask("GET /other", &at).starts_with("HTTP/1.1 403"));
    assert!(ask("GET /pub/x", "other.test").starts_with("HTTP/1.1 400"));
    assert_eq!(origin.connections(), 1);
}

#[test]
fn the_resolver_answers_allowed_names_only_and_asks_nobody() {
    let outside = NameServer::start(|_, _| vec![Ipv4Addr::new(127, 0, 0, 2)]);
    let mut config = config(&["allowed.test", "*.wild.test"], &[]);
    config.name_servers = vec![outside.addr];
    config.limits.wildcard_names = 3;
    let listener = TcpListener::bind("127.99.0.2:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let (door, inside) = open(config, port);
    let (code, addresses) = inside.ask("allowed.test", 1).unwrap();
    assert!(code == 0 && addresses[0].octets()[..2] == [127, 99], "{code} {addresses:?}");
    assert_eq!(inside.ask("allowed.test", 28), Some((0, vec![])), "no IPv6, at once");
    assert_eq!(inside.ask("allowed.test", 16), Some((0, vec![])), "no TXT");
    for name in ["evil.test", "c2VjcmV0.evil.test", "allowed.test.evil.test", "wild.test"] {
        assert_eq!(inside.ask(name, 1), Some((3, vec![])), "{name}");
    }
    let allowed = (0..10).filter(|n| inside.ask(&format!("n{n}.wild.test"), 1).unwrap().0 == 0).count();
    assert_eq!(allowed, 3);
    let long = format!("{}.{}.wild.test", "a".repeat(60), "b".repeat(60));
    assert_eq!(inside.ask(&long, 1).unwrap().0, 3);
    assert_eq!(outside.asked(), Vec::<String>::new());
    let events = door.handle.stop().events;
    assert!(events.iter().any(|e| e.door == By::Resolve && e.host.contains("evil.test")), "{events:?}");
}
