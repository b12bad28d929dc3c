//! What is allowed works, is counted, and is bounded.

use crate::support::{Authority, Door, INSIDE, Origin, PUBLIC, config, finish, get_over_tls, read_all};
use jess::egress::UpstreamProxy;
use jess::egress::event::{Door as By, Reason, Verdict};
use std::io::{Read, Write};
use std::time::Duration;

fn echo() -> Origin {
    Origin::start(PUBLIC, |mut stream, _| {
        let mut buf = [0; 65536];
        while let Ok(n @ 1..) = stream.read(&mut buf) {
            if stream.write_all(&buf[..n]).is_err() {
                return;
            }
        }
    })
}

#[test]
fn bytes_pass_both_ways_unchanged_and_are_counted() {
    let origin = echo();
    let at = format!("allowed.test:{}", origin.port());
    let door = Door::open(config(&[&at], &[("allowed.test", PUBLIC)]));
    let mut tunnel = door.connect(&at.to_uppercase()).unwrap();
    let sent: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
    let mut writer = tunnel.try_clone().unwrap();
    let copy = sent.clone();
    let writing = std::thread::spawn(move || {
        writer.write_all(&copy).unwrap();
        finish(&writer);
    });
    let mut received = Vec::new();
    tunnel.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert!(received == sent);
    drop(tunnel);
    let report = door.handle.stop();
    let event = report.events.iter().find(|e| e.door == By::Connect).unwrap();
    assert_eq!(
        (event.host.as_str(), event.verdict, event.reason),
        ("allowed.test", Verdict::Allowed, Reason::Done)
    );
    assert_eq!((event.bytes_up, event.bytes_down, event.address), (3_000_000, 3_000_000, Some(PUBLIC)));
}

#[test]
fn a_server_that_speaks_first_is_carried() {
    let origin = Origin::start(PUBLIC, |mut stream, _| {
        let _ = stream.write_all(b"SSH-2.0-server\r\n");
        let mut buf = [0; 64];
        let _ = stream.read(&mut buf);
    });
    let at = format!("allowed.test:{}", origin.port());
    let door = Door::open(config(&[&at], &[("allowed.test", PUBLIC)]));
    let mut tunnel = door.connect(&at).unwrap();
    let mut banner = [0; 16];
    tunnel.read_exact(&mut banner).unwrap();
    assert_eq!(&banner, b"SSH-2.0-server\r\n");
}

#[test]
fn a_tunnel_that_is_open_when_the_run_ends_is_reported() {
    let origin = echo();
    let at = format!("allowed.test:{}", origin.port());
    let door = Door::open(config(&[&at], &[("allowed.test", PUBLIC)]));
    let mut tunnel = door.connect(&at).unwrap();
    tunnel.write_all(b"ping").unwrap();
    tunnel.read_exact(&mut [0; 4]).unwrap();
    let report = door.handle.stop();
    let event = &report.events[0];
    assert_eq!((event.verdict, event.reason, event.bytes_up), (Verdict::Stopped, Reason::RunEnded, 4));
    assert_eq!(read_all(&mut tunnel), "", "the tunnel is closed");
}

#[test]
fn an_idle_tunnel_is_closed_and_a_busy_one_is_not() {
    let origin = echo();
    let at = format!("allowed.test:{}", origin.port());
    let mut config = config(&[&at], &[("allowed.test", PUBLIC)]);
    config.limits.idle = Duration::from_millis(500);
    let door = Door::open(config);
    let mut tunnel = door.connect(&at).unwrap();
    for _ in 0..8 {
        tunnel.write_all(b"ping").unwrap();
        tunnel.read_exact(&mut [0; 4]).unwrap();
        std::thread::sleep(Duration::from_millis(150));
    }
    assert_eq!(read_all(&mut tunnel), "");
    assert_eq!(door.handle.stop().events[0].reason, Reason::Idle);
}

#[test]
fn bytes_beyond_the_bound_of_a_host_are_not_passed() {
    let origin = echo();
    let at = format!("allowed.test:{}", origin.port());
    let mut config = config(&[&at], &[("allowed.test", PUBLIC)]);
    config.limits.bytes_per_host = 100_000;
    let door = Door::open(config);
    let mut tunnel = door.connect(&at).unwrap();
    let mut writer = tunnel.try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(&vec![b'x'; 1_000_000]));
    let mut received = Vec::new();
    let _ = tunnel.read_to_end(&mut received);
    let _ = writing.join().unwrap();
    assert!(received.len() <= 100_000, "{}", received.len());
    drop(tunnel);
    assert_eq!(door.handle.stop().events[0].reason, Reason::BytesExhausted);
}

#[test]
fn a_refusal_names_the_flag_that_would_allow_it() {
    let door = Door::open(config(&["allowed.test"], &[("allowed.test", PUBLIC)]));
    let refused = door.connect("other.test:443").expect_err("refused");
    assert!(refused.contains("--net other.test:443 would allow it"), "{refused}");
    let refused = door.connect("allowed.test:22").expect_err("refused");
    assert!(refused.contains("--net allowed.test:22"), "{refused}");
    let reasons: Vec<_> = door.handle.stop().events.iter().map(|e| e.reason).collect();
    assert_eq!(reasons, [Reason::HostNotAllowed, Reason::PortNotAllowed]);
}

#[test]
fn methods_and_paths_of_plain_http_are_held_to_the_rule() {
    let origin = Origin::http(PUBLIC, "PUBLIC");
    let at = format!("allowed.test:{}", origin.port());
    let door = Door::open(config(&[&format!("GET,HEAD http://{at}/pub/")], &[("allowed.test", PUBLIC)]));
    let ask = |method: &str, path: &str| {
        door.say(format!("{method} http://{at}{path} HTTP/1.1\r\nHost: {at}\r\n\r\n").as_bytes())
    };
    assert!(ask("GET", "/pub/a").contains("PUBLIC"));
    for (method, path) in
        [("POST", "/pub/a"), ("GET", "/private"), ("GET", "/pub/../private"), ("GET", "/pub/%2e%2e/private")]
    {
        assert!(ask(method, path).starts_with("HTTP/1.1 403"), "{method} {path}");
    }
    assert!(door.connect(&at).is_err(), "no tunnel by such a rule");
    assert_eq!(origin.connections(), 1);
}

#[test]
fn hop_by_hop_headers_and_proxy_logins_are_not_passed_on() {
    let origin = Origin::http(PUBLIC, "PUBLIC");
    let at = format!("allowed.test:{}", origin.port());
    let door = Door::open(config(&[&at], &[("allowed.test", PUBLIC)]));
    let answer = door.say(
        format!(
            "POST http://{at}/x HTTP/1.1\r\nHost: {at}\r\nProxy-Authorization: Basic eA==\r\nConnection: x-drop\r\n\
             X-Drop: 1\r\nX-Keep: 1\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        )
        .as_bytes(),
    );
    assert!(answer.contains("PUBLIC"), "{answer}");
    let received = origin.received().to_ascii_lowercase();
    assert!(received.starts_with("post /x http/1.1\r\n") && received.contains("x-keep: 1"), "{received}");
    for gone in ["proxy-authorization", "x-drop", "upgrade"] {
        assert!(!received.contains(gone), "{gone} in {received}");
    }
}

#[test]
fn the_operators_own_proxy_is_used_with_its_login_and_the_screen_still_holds() {
    let authority = Authority::new();
    let origin = Origin::https(PUBLIC, &authority, &["allowed.test"], "PUBLIC");
    let target = origin.addr;
    let proxy = Origin::start(INSIDE, move |mut client, log| {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|n| n == 1) {
            head.push(byte[0]);
        }
        log.lock().unwrap().extend_from_slice(&head);
        let mut upstream = std::net::TcpStream::connect(target).unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        let (mut up, mut down) = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut up, &mut down));
        let _ = std::io::copy(&mut client, &mut upstream);
    });
    let at = format!("allowed.test:{}", origin.port());
    let blocked = format!("blocked.test:{}", origin.port());
    let mut config = config(&[&at, &blocked], &[("allowed.test", PUBLIC), ("blocked.test", INSIDE)]);
    config.upstream_proxy =
        Some(UpstreamProxy::new(&format!("http://user:pass@{}", proxy.addr), "").unwrap());
    let door = Door::open(config);
    let answer = get_over_tls(door.connect(&at).unwrap(), authority.client(), "allowed.test");
    assert!(answer.unwrap().contains("PUBLIC"));
    assert!(proxy.received().contains("Proxy-Authorization: Basic dXNlcjpwYXNz"), "{}", proxy.received());
    assert!(door.connect(&blocked).is_err());
    assert_eq!(proxy.connections(), 1);
}
