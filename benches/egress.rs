//! What the door costs: throughput and latency of a tunnel, and of the model's events, against the same without it, in
//! one interleaved series, and the memory of 2,000 open tunnels.
//!
//! `cargo bench --bench egress`; with `JESS_BENCH_PROXY=ADDR:PORT` another proxy, such as tinyproxy, is measured in the
//! same series (it must allow CONNECT to 127.0.0.2 on any port). This process holds the client, the origin and the door,
//! so its memory is an upper bound for the door's.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use jess::egress::{Config, Credential, Inspection, ModelUpstream, Server};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

const TRANSFER: usize = 1 << 30;
const ROUNDS: usize = 7;
const PINGS: usize = 4000;
const TUNNELS: usize = 2000;
const EVENTS: usize = 2000;
const TOKEN: &str = "jess-bench-token-0123456789";

fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::Builder::new().stack_size(64 * 1024).spawn(move || serve(stream)).unwrap();
        }
    });
    addr
}

/// `b`: sends TRANSFER bytes; anything else is echoed.
fn serve(mut stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut byte = [0];
    while stream.read(&mut byte).is_ok_and(|n| n == 1) {
        if byte[0] == b'b' {
            let block = vec![0; 256 * 1024];
            let mut left = TRANSFER;
            while left > 0 {
                match stream.write(&block[..left.min(block.len())]) {
                    Ok(n) => left -= n,
                    Err(_) => return,
                }
            }
            return;
        }
        if stream.write_all(&byte).is_err() {
            return;
        }
    }
}

fn tunnel(door: SocketAddr, origin: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(door).unwrap();
    stream.set_nodelay(true).unwrap();
    write!(stream, "CONNECT {origin} HTTP/1.1\r\nHost: {origin}\r\n\r\n").unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&head));
        head.push(byte[0]);
    }
    assert_eq!(head.get(8..13), Some(&b" 200 "[..]), "{}", String::from_utf8_lossy(&head));
    stream
}

fn direct(origin: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(origin).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn throughput(mut stream: TcpStream) -> f64 {
    let mut buf = vec![0; 256 * 1024];
    let start = Instant::now();
    stream.write_all(b"b").unwrap();
    let mut total = 0;
    while let Ok(n @ 1..) = stream.read(&mut buf) {
        total += n;
    }
    assert_eq!(total, TRANSFER);
    total as f64 / start.elapsed().as_secs_f64() / 1e9
}

fn ping(mut stream: TcpStream) -> Vec<Duration> {
    let mut byte = [b'x'];
    (0..PINGS)
        .map(|_| {
            let start = Instant::now();
            stream.write_all(&byte).unwrap();
            stream.read_exact(&mut byte).unwrap();
            start.elapsed()
        })
        .collect()
}

/// A model's API that sends one event of 120 bytes of text each time that `go` says so, and says when it did.
fn api(go: Receiver<()>, sent: Sender<Instant>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            stream.set_nodelay(true).unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).unwrap();
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
                .unwrap();
            for n in 0..EVENTS {
                go.recv().unwrap();
                let text = format!("{n:08} {}", "plain words of a model, ".repeat(5));
                let event = format!(
                    "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
                );
                sent.send(Instant::now()).unwrap();
                stream.write_all(event.as_bytes()).unwrap();
            }
        }
    });
    addr
}

/// How long each event takes to arrive.
fn events(at: SocketAddr, go: &Sender<()>, sent: &Receiver<Instant>) -> Vec<Duration> {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_nodelay(true).unwrap();
    let body = "{\"model\":\"claude-opus-5-5\",\"max_tokens\":9,\"stream\":true,\"messages\":[]}";
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nHost: x\r\nx-api-key: {TOKEN}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let (mut seen, mut chunk, mut taken) = (Vec::new(), [0; 4096], Vec::new());
    for n in 0..EVENTS {
        go.send(()).unwrap();
        let mark = format!("{n:08} ");
        let start = sent.recv().unwrap();
        while !seen.windows(mark.len()).any(|w| w == mark.as_bytes()) {
            let n = stream.read(&mut chunk).unwrap();
            assert!(n > 0, "{}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&chunk[..n]);
        }
        taken.push(start.elapsed());
        seen.clear();
    }
    taken
}

fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap());
    values[values.len() / 2]
}

fn rss_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

fn main() {
    let origin = origin();
    let listener = TcpListener::bind((IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).unwrap();
    let door = listener.local_addr().unwrap();
    let (go, wait) = channel();
    let (sent, times) = channel();
    let api = api(wait, sent);
    let key = || Credential::new("a-key-of-the-operator-0123").unwrap();
    let config = Config {
        allow_hosts: vec![format!("127.0.0.2:{}", origin.port()).parse().unwrap()],
        model: Some(ModelUpstream::new(&format!("http://{api}"), key(), TOKEN).unwrap()),
        inspection: Inspection { secrets: vec![key()], ..Inspection::default() },
        ..Config::default()
    };
    let handle = Server::start(listener.into(), config).unwrap();
    let other: Option<SocketAddr> =
        std::env::var("JESS_BENCH_PROXY").ok().map(|a| a.parse().expect("ADDR:PORT"));
    let mut o = Vec::new();
    let (mut d, mut t) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        if let Some(other) = other {
            o.push(throughput(tunnel(other, origin)));
        }
        d.push(throughput(direct(origin)));
        t.push(throughput(tunnel(door, origin)));
    }
    if !o.is_empty() {
        println!("other proxy GB/s: {:.2}", median(o));
    }
    println!(
        "throughput GB/s: direct {:.2}, tunnel {:.2}, ratio {:.2}",
        median(d.clone()),
        median(t.clone()),
        median(t) / median(d)
    );
    let (mut d, mut t) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        d.extend(ping(direct(origin)));
        t.extend(ping(tunnel(door, origin)));
    }
    let (d, t) = (median(d), median(t));
    println!("round trip p50: direct {d:?}, tunnel {t:?}, added {:?}", t.saturating_sub(d));
    let (mut d, mut t) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        d.extend(events(api, &go, &times));
        t.extend(events(door, &go, &times));
    }
    let (d, t) = (median(d), median(t));
    println!("event of a model p50: direct {d:?}, inspected {t:?}, added {:?}", t.saturating_sub(d));
    let before = rss_kib();
    let start = Instant::now();
    let mut held: Vec<_> = (0..TUNNELS).map(|_| tunnel(door, origin)).collect();
    let opened = start.elapsed();
    for stream in &mut held {
        stream.write_all(b"x").unwrap();
    }
    for stream in &mut held {
        stream.read_exact(&mut [0]).unwrap();
    }
    println!(
        "{TUNNELS} tunnels: opened in {opened:?}, RSS {} KiB before, {} KiB with all open and used",
        before,
        rss_kib()
    );
    drop(held);
    let report = handle.stop();
    println!("events: {}", report.events.len());
}
