//! A client that has been turned tries everything it knows to get somewhere else than allowed.

use crate::support::{Authority, Door, INSIDE, NameServer, Origin, PUBLIC, config, get_over_tls, read_all};
use jess::egress::Limits;
use jess::egress::event::{Reason, Verdict};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

/// Spellings of addresses that lead to the operator's own machine or network.
const SPELLINGS: [&str; 26] = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "0x7f.0x0.0x0.0x1",
    "127.0.0.1.",
    "0",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[fe80::1%25lo]",
    "[::1%lo]",
    "[2002:7f00:1::]",
    "%31%32%37.0.0.1",
    "localhost",
    "LOCALHOST.",
    "inside.allowed.test",
];

#[test]
fn no_spelling_of_an_inside_address_is_reached() {
    let inside = Origin::http(INSIDE, "INSIDE");
    let port = inside.port();
    let rules = [format!("allowed.test:{port}"), format!("*.allowed.test:{port}")];
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let door = Door::open(config(&rules, &[("allowed.test", INSIDE), ("inside.allowed.test", INSIDE)]));
    let mut tries = 0;
    for host in SPELLINGS.iter().chain(&["allowed.test"]) {
        let at = format!("{host}:{port}");
        for request in [
            format!("CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n\r\nGET / HTTP/1.1\r\nHost: {at}\r\n\r\n"),
            format!("GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n"),
        ] {
            tries += 1;
            let answer = door.say(request.as_bytes());
            assert!(!answer.contains("INSIDE") && !answer.contains(" 200 "), "{request}: {answer}");
        }
    }
    assert_eq!((tries, inside.connections()), (54, 0));
    let report = door.handle.stop();
    assert!(report.events.iter().all(|e| e.verdict != Verdict::Allowed), "{report:?}");

    // The same machine is reached as soon as the operator lists it, so it was the door that held.
    let listed = Door::open(config(&[&format!("127.0.0.1:{port}")], &[]));
    let answer =
        listed.say(format!("GET http://0x7f.1:{port}/ HTTP/1.1\r\nHost: 0x7f.1:{port}\r\n\r\n").as_bytes());
    assert!(answer.contains("INSIDE") && inside.connections() == 1, "{answer}");
}

#[test]
fn cloud_metadata_is_not_reached_by_name_or_by_literal() {
    let metadata = [169, 254, 169, 254];
    let names = [("metadata.allowed.test", Ipv4Addr::from(metadata).into())];
    let door = Door::open(config(&["*.allowed.test", "169.254.169.0:80"], &names));
    for host in ["metadata.allowed.test", "169.254.169.254", "0xa9fea9fe", "[::ffff:a9fe:a9fe]"] {
        let answer =
            door.say(format!("GET http://{host}/latest HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        assert!(answer.starts_with("HTTP/1.1 403"), "{host}: {answer}");
    }
    let report = door.handle.stop();
    assert!(report.events.iter().any(|e| e.reason == Reason::AddressBlocked), "{report:?}");
    assert!(!report.alerts.is_empty());
}

#[test]
fn a_name_that_is_bound_anew_does_not_lead_inside() {
    let inside = Origin::http(INSIDE, "INSIDE");
    let port = inside.port();
    let public = Origin::http(PUBLIC, "PUBLIC");
    // The first answer is public, every later one inside: whoever asks twice loses.
    let names = NameServer::start(|_, before| match before {
        0 => vec![Ipv4Addr::new(127, 0, 0, 2)],
        _ => vec![Ipv4Addr::LOCALHOST],
    });
    let mut config =
        config(&[&format!("rebind.test:{port}"), &format!("rebind.test:{}", public.port())], &[]);
    config.name_servers = vec![names.addr];
    config.limits.dns_kept = Duration::ZERO;
    let door = Door::open(config);
    let get = |port: u16| {
        door.say(
            format!("GET http://rebind.test:{port}/ HTTP/1.1\r\nHost: rebind.test:{port}\r\n\r\n").as_bytes(),
        )
    };
    assert!(get(public.port()).contains("PUBLIC"), "the control is reached");
    for _ in 0..3 {
        let answer = get(port);
        assert!(!answer.contains("INSIDE"), "{answer}");
    }
    assert_eq!(inside.connections(), 0);
}

#[test]
fn an_answer_with_one_public_and_one_inside_address_leads_only_to_the_public_one() {
    // A port that is free on both addresses: another test may hold the first one inside.
    let (public, inside) = (0..50)
        .find_map(|_| {
            let public = Origin::http(PUBLIC, "PUBLIC");
            let inside = std::net::TcpListener::bind((INSIDE, public.port())).ok()?;
            Some((public, inside))
        })
        .expect("the same port inside");
    let port = public.port();
    inside.set_nonblocking(true).unwrap();
    let names = NameServer::start(|_, _| vec![Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)]);
    let mut config = config(&[&format!("mixed.test:{port}")], &[]);
    config.name_servers = vec![names.addr];
    let door = Door::open(config);
    let answer = door
        .say(format!("GET http://mixed.test:{port}/ HTTP/1.1\r\nHost: mixed.test:{port}\r\n\r\n").as_bytes());
    assert!(answer.contains("PUBLIC"), "{answer}");
    assert!(inside.accept().is_err(), "nothing came inside");
}

#[test]
fn names_outside_the_allowlist_are_never_asked_outside() {
    let names = NameServer::start(|_, _| vec![Ipv4Addr::new(127, 0, 0, 2)]);
    let mut config = config(&["allowed.test", "*.wild.test"], &[]);
    config.name_servers = vec![names.addr];
    config.limits.wildcard_names = 5;
    let door = Door::open(config);
    let secret = "c2VjcmV0".repeat(8);
    for host in ["evil.test", "secret.evil.test", "x.allowed.test", "allowed.test.evil.test", "wild.test"] {
        door.connect(&format!("{host}:443")).expect_err("refused");
    }
    assert_eq!(names.asked(), Vec::<String>::new());
    // Under a wildcard, names are bounded in length and in number.
    door.connect(&format!("{secret}.wild.test:443")).expect_err("too long");
    assert_eq!(names.asked(), Vec::<String>::new());
    for n in 0..50 {
        let _ = door.connect(&format!("chunk{n}.wild.test:443"));
    }
    let mut asked = names.asked();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), 5, "{asked:?}");
}

#[test]
fn a_name_server_hears_no_secret_by_how_often_it_is_asked() {
    // Its answers have a lifetime of 0, so that it would be asked each time.
    let asked = |limits: fn(&mut Limits), names: &[&str]| {
        let server = NameServer::start(|_, _| vec![Ipv4Addr::LOCALHOST]);
        let mut config = config(&["*.wild.test"], &[]);
        config.name_servers = vec![server.addr];
        limits(&mut config.limits);
        let door = Door::open(config);
        for name in names {
            door.connect(&format!("{name}.wild.test:443")).expect_err("its address is inside");
        }
        server.asked().len()
    };
    let one_name = ["a"; 8];
    assert!(asked(|limits| limits.dns_kept = Duration::ZERO, &one_name) >= 8, "the control is heard");
    assert_eq!(asked(|_| {}, &one_name), 1);
    let many = ["a", "b", "c", "d", "e", "f"];
    assert_eq!(asked(|_| {}, &many), 6, "the control is heard");
    assert_eq!(asked(|limits| limits.dns_a_minute = 2, &many), 2);
}

#[test]
fn smuggling_shapes_never_reach_the_origin() {
    let origin = Origin::http(PUBLIC, "PUBLIC");
    let port = origin.port();
    let door = Door::open(config(&[&format!("allowed.test:{port}")], &[("allowed.test", PUBLIC)]));
    let at = format!("allowed.test:{port}");
    let line = format!("POST http://{at}/ HTTP/1.1\r\nHost: {at}\r\n");
    let second = format!("GET http://{at}/SMUGGLED HTTP/1.1\r\nHost: {at}\r\n\r\n");
    let shapes = [
        format!("{line}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{second}"),
        format!("{line}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{second}"),
        format!("{line}Content-Length: 0\r\nContent-Length: 5\r\n\r\n{second}"),
        format!("{line}Content-Length: 0, 5\r\n\r\n{second}"),
        format!("{line}Content-Length: -1\r\n\r\n{second}"),
        format!("{line}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n{second}"),
        format!("{line}Transfer-Encoding: gzip\r\n\r\n{second}"),
        format!("{line}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{second}"),
        format!("{line}Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n{second}"),
        format!("{line}X: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{second}"),
        format!("{line}X: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{second}"),
        format!("{line}Host: other.test\r\n\r\n{second}"),
        format!("POST http://{at}/ HTTP/1.1\r\nHost: other.test\r\n\r\n{second}"),
        format!("POST http://other.test@{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n{second}"),
        format!("POST http://{at}/\u{0} HTTP/1.1\r\nHost: {at}\r\n\r\n{second}"),
        format!("POST http://{at}/ x HTTP/1.1\r\nHost: {at}\r\n\r\n{second}"),
        format!("{line}Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{second}"),
        format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{second}"),
    ];
    for shape in &shapes {
        let answer = door.say(shape.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 400"), "{shape}: {answer}");
    }
    assert_eq!(origin.connections(), 0);
    // A well-formed request with another behind it: the second is never read.
    let answer = door.say(format!("{line}Content-Length: 0\r\n\r\n{second}").as_bytes());
    assert!(answer.contains("PUBLIC"), "the control is reached: {answer}");
    assert!(!origin.received().contains("SMUGGLED"), "{}", origin.received());
}

#[test]
fn a_tunnel_carries_only_the_name_it_was_opened_for() {
    let authority = Authority::new();
    let origin = Origin::https(PUBLIC, &authority, &["allowed.test", "other.test"], "PUBLIC");
    let at = format!("allowed.test:{}", origin.port());
    let door = Door::open(config(&[&at], &[("allowed.test", PUBLIC)]));
    let fronted = get_over_tls(door.connect(&at).unwrap(), authority.client(), "other.test");
    assert!(fronted.is_err(), "{fronted:?}");
    let unnamed = get_over_tls(door.connect(&at).unwrap(), authority.client(), "127.0.0.2");
    assert!(unnamed.is_err(), "{unnamed:?}");
    assert_eq!(origin.received(), "");
    let control = get_over_tls(door.connect(&at).unwrap(), authority.client(), "allowed.test");
    assert!(control.unwrap().contains("PUBLIC"));
    let reasons: Vec<_> = door.handle.stop().events.iter().map(|e| e.reason).collect();
    assert!(reasons.contains(&Reason::SniMismatch) && reasons.contains(&Reason::SniMissing), "{reasons:?}");
}

#[test]
fn plain_http_in_a_tunnel_is_held_to_the_name_too() {
    let origin = Origin::http(PUBLIC, "PUBLIC");
    let at = format!("allowed.test:{}", origin.port());
    let door = Door::open(config(&[&at], &[("allowed.test", PUBLIC)]));
    let mut tunnel = door.connect(&at).unwrap();
    write!(tunnel, "GET / HTTP/1.1\r\nHost: fronted.test\r\n\r\n").unwrap();
    assert!(read_all(&mut tunnel).starts_with("HTTP/1.1 400"));
    assert_eq!(origin.received(), "");
    let mut tunnel = door.connect(&at).unwrap();
    write!(tunnel, "GET / HTTP/1.1\r\nHost: {at}\r\n\r\n").unwrap();
    assert!(read_all(&mut tunnel).contains("PUBLIC"), "the control is reached");
}

#[test]
fn port_443_carries_nothing_but_tls() {
    // No privilege is needed: the door refuses before it matters whether anything listens there.
    let listener = std::net::TcpListener::bind((PUBLIC, 443));
    let Ok(listener) = listener else {
        assert_ne!(rustix::process::geteuid().as_raw(), 0, "root can bind port 443");
        return;
    };
    let door = Door::open(config(&["allowed.test:443"], &[("allowed.test", PUBLIC)]));
    let mut tunnel = door.connect("allowed.test:443").unwrap();
    tunnel.write_all(b"SSH-2.0-tunnel\r\n").unwrap();
    let (mut outside, _) = listener.accept().unwrap();
    assert_eq!(read_all(&mut tunnel), "");
    assert_eq!(read_all(&mut outside), "", "nothing was passed on");
    assert!(door.handle.stop().events.iter().any(|e| e.reason == Reason::NotTls));
}

#[test]
fn the_door_is_no_way_to_another_proxy_or_back_to_itself() {
    let door = Door::open(config(&["allowed.test"], &[("allowed.test", PUBLIC)]));
    let own = door.addr;
    for target in [own.to_string(), format!("localhost:{}", own.port()), format!("[::1]:{}", own.port())] {
        assert!(door.connect(&target).is_err(), "{target}");
    }
    for scheme in ["https", "ftp", "socks5", "file", "gopher", "unix"] {
        let answer = door
            .say(format!("GET {scheme}://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n").as_bytes());
        assert!(answer.starts_with("HTTP/1.1 400"), "{scheme}: {answer}");
    }
    // SOCKS4, SOCKS5, TLS to the proxy itself, HTTP/0.9.
    for bytes in [
        &b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00\r\n\r\n"[..],
        b"\x05\x01\x00\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
        b"GET /\r\n\r\n",
    ] {
        let answer = door.say(bytes);
        assert!(answer.starts_with("HTTP/1.1 400"), "{bytes:?}: {answer}");
    }
}

#[test]
fn a_redirect_is_handed_back_and_its_target_is_judged_like_any_other() {
    let origin = Origin::start(PUBLIC, |mut stream, _| {
        crate::support::read_request(&mut stream);
        let _ = stream.write_all(
            b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n",
        );
    });
    let at = format!("allowed.test:{}", origin.port());
    let door = Door::open(config(&[&at], &[("allowed.test", PUBLIC)]));
    let answer = door.say(format!("GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 302"), "{answer}");
    let answer = door.say(b"GET http://169.254.169.254/latest HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[test]
fn a_flood_of_headers_or_a_slow_head_is_cut() {
    let mut config = config(&["allowed.test"], &[("allowed.test", PUBLIC)]);
    config.limits.head_time = Duration::from_millis(400);
    let door = Door::open(config);
    let many = format!(
        "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n{}\r\n",
        "X: 1\r\n".repeat(100_000)
    );
    assert!(door.say(many.as_bytes()).starts_with("HTTP/1.1 400"));
    let long =
        format!("GET http://allowed.test/{} HTTP/1.1\r\nHost: allowed.test\r\n\r\n", "a".repeat(1 << 20));
    assert!(door.say(long.as_bytes()).starts_with("HTTP/1.1 400"));
    let mut slow = TcpStream::connect(door.addr).unwrap();
    slow.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let start = Instant::now();
    let (mut answer, mut chunk) = (Vec::new(), [0; 1024]);
    while start.elapsed() < Duration::from_secs(10) {
        let _ = slow.write_all(b"G");
        match slow.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => answer.extend_from_slice(&chunk[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    assert!(answer.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&answer));
}

#[test]
fn connections_beyond_the_bound_are_refused_and_the_others_go_on() {
    let origin = Origin::http(PUBLIC, "PUBLIC");
    let at = format!("allowed.test:{}", origin.port());
    let mut config = config(&[&at], &[("allowed.test", PUBLIC)]);
    config.limits.connections = 4;
    let door = Door::open(config);
    let held: Vec<_> = (0..4).map(|_| door.connect(&at).unwrap()).collect();
    let refused = door.connect(&at).expect_err("the fifth is refused");
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    drop(held);
    let reached = (0..50).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        door.connect(&at).is_ok()
    });
    assert!(reached, "places come back");
}

#[test]
fn a_relay_inside_reaches_no_more_than_its_client() {
    let inside = Origin::http(INSIDE, "INSIDE");
    let door = Door::open(config(&["allowed.test"], &[("allowed.test", PUBLIC)]));
    let behind = door.addr;
    // A process in the sandbox that forwards bytes to the door.
    let relay = Origin::start(INSIDE, move |mut client, _| {
        let mut upstream = TcpStream::connect(behind).unwrap();
        let request = crate::support::read_request(&mut client);
        let _ = upstream.write_all(&request);
        let _ = client.write_all(read_all(&mut upstream).as_bytes());
    });
    let mut client = TcpStream::connect(relay.addr).unwrap();
    let at = inside.addr;
    write!(client, "GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n").unwrap();
    assert!(read_all(&mut client).starts_with("HTTP/1.1 403"));
    assert_eq!(inside.connections(), 0);
}
