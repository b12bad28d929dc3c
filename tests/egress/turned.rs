//! A turned client inside a real sandbox, in both tiers: nothing but what was allowed hears of it.

use crate::support::{Authority, Door, INSIDE, Origin, PUBLIC, config, read_request};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const PROGRAM: &str = include_str!("turned_client.py");

/// Servers of which one is allowed, and what they heard.
struct World {
    dir: tempfile::TempDir,
    allowed: Origin,
    tls: Origin,
    /// What nobody inside may reach.
    forbidden: Vec<(&'static str, Origin)>,
    heard: Arc<AtomicUsize>,
    places: serde_json::Value,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("client.py"), PROGRAM).unwrap();
        let inside = Origin::http(INSIDE, "OUTSIDE");
        let redirect = format!("http://127.0.0.1:{}/", inside.port());
        let allowed = Origin::start(PUBLIC, move |mut stream, log| {
            let request = read_request(&mut stream);
            log.lock().unwrap().extend_from_slice(&request);
            let answer = if request.starts_with(b"GET /redirect ") {
                format!("HTTP/1.1 302 Found\r\nLocation: {redirect}\r\nContent-Length: 0\r\n\r\n")
            } else {
                "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nALLOWED".to_owned()
            };
            let _ = stream.write_all(answer.as_bytes());
        });
        let authority = Authority::new();
        let tls = Origin::https(PUBLIC, &authority, &["allowed.test", "other.test"], "OUTSIDE");
        let other = Origin::http(PUBLIC, "OUTSIDE");
        let six = Origin::http("::1".parse().unwrap(), "OUTSIDE");
        let heard = Arc::new(AtomicUsize::new(0));
        let path = dir.path().join("socket");
        let name = format!("jess-test-{}", inside.port());
        let abstract_name = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        for listener in [UnixListener::bind(&path).unwrap(), abstract_name] {
            let heard = Arc::clone(&heard);
            std::thread::spawn(move || {
                for mut stream in listener.incoming().flatten() {
                    heard.fetch_add(1, SeqCst);
                    let _ = stream.read(&mut [0; 100]);
                    let _ = stream.write_all(b"OUTSIDE");
                }
            });
        }
        let mut udp_ports = Vec::new();
        for ip in [INSIDE, "::1".parse().unwrap()] {
            let socket = UdpSocket::bind((ip, 0)).unwrap();
            udp_ports.push(socket.local_addr().unwrap().port());
            let heard = Arc::clone(&heard);
            std::thread::spawn(move || {
                let mut buf = [0; 100];
                while let Ok((_, from)) = socket.recv_from(&mut buf) {
                    heard.fetch_add(1, SeqCst);
                    let _ = socket.send_to(b"OUTSIDE", from);
                }
            });
        }
        let places = serde_json::json!({
            "door": 61_781, "inside": inside.port(), "other": other.port(), "allowed": allowed.port(), "tls": tls.port(),
            "six": six.port(), "udp": udp_ports[0], "udp6": udp_ports[1], "abstract": name, "path": path, "serve": 28_765,
        });
        let forbidden = vec![("inside", inside), ("other", other), ("six", six)];
        World { dir, allowed, tls, forbidden, heard, places }
    }

    fn rules(&self) -> Vec<String> {
        let inside = self.forbidden[0].1.port();
        vec![
            format!("allowed.test:{}", self.allowed.port()),
            format!("allowed.test:{}", self.tls.port()),
            format!("*.allowed.test:{inside}"),
        ]
    }

    fn client(&self) -> String {
        self.dir.path().join("client.py").display().to_string()
    }

    /// Names of the tries whose answer came from where nobody may go, and how many were made.
    fn outcome(printed: &[u8]) -> (Vec<String>, usize, bool) {
        let text = String::from_utf8_lossy(printed).into_owned();
        let (mut reached, mut allowed) = (Vec::new(), false);
        for line in text.lines() {
            match line.strip_suffix(" REACHED") {
                Some("allowed") => allowed = true,
                Some(name) => reached.push(name.to_owned()),
                None => {}
            }
        }
        (reached, text.lines().count(), allowed)
    }
}

fn held_in(tier: &str) {
    let world = World::new();
    let mut jess = Command::new(env!("CARGO_BIN_EXE_jess"));
    jess.args(["run", "--tier", tier, "--timeout", "200", "--net-inside", "127.0.0.2"]);
    jess.args(["--resolve", "allowed.test=127.0.0.2", "--resolve", "inside.allowed.test=127.0.0.1"]);
    for rule in world.rules() {
        jess.args(["--net", &rule]);
    }
    jess.arg("--rw").arg(world.dir.path());
    let done = jess
        .args(["--", "/usr/bin/python3", &world.client(), &world.places.to_string()])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&done.stderr).into_owned();
    let (reached, tries, allowed) = World::outcome(&done.stdout);
    assert_eq!(reached, Vec::<String>::new(), "{tier}: {err}");
    assert!(tries > 100 && allowed, "{tier}: {tries} tries, allowed: {allowed}: {err}");
    for (name, origin) in &world.forbidden {
        assert_eq!((origin.connections(), *name), (0, *name), "{tier}: {}", origin.received());
    }
    assert_eq!(world.heard.load(SeqCst), 0, "{tier}: a datagram or a local socket");
    assert_eq!(world.tls.received(), "", "{tier}: a request under another name");
    assert!(world.allowed.connections() > 0, "{tier}");
}

#[test]
fn a_turned_client_reaches_only_what_was_allowed_in_tier_full() {
    held_in("full");
}

#[test]
fn a_turned_client_reaches_only_what_was_allowed_in_tier_landlock() {
    held_in("landlock");
}

/// The control: the same program without a sandbox, through a door that allows everything.
#[test]
fn the_same_client_gets_out_where_nothing_holds_it() {
    let mut world = World::new();
    let inside = world.forbidden[0].1.port();
    let mut rules: Vec<String> = world.rules();
    rules.extend([format!("127.0.0.1:{inside}"), format!("localhost:{inside}"), format!("[::1]:{inside}")]);
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let mut open = config(&rules, &[("allowed.test", PUBLIC), ("inside.allowed.test", INSIDE)]);
    open.allow_addresses.push("127.0.0.0/8".parse().unwrap());
    let door = Door::open(open);
    world.places["door"] = door.addr.port().into();
    let done = Command::new("/usr/bin/python3")
        .args([&world.client(), &world.places.to_string()])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (reached, _, allowed) = World::outcome(&done.stdout);
    assert!(allowed, "{}", String::from_utf8_lossy(&done.stderr));
    for name in [
        "connect 0x7f.1",
        "connect inside.allowed.test",
        "absolute 2130706433",
        "straight 127.0.0.1",
        "straight 127.0.0.2",
        "straight_by_ipv6",
        "straight_by_mapped_ipv6",
        "fast_open",
        "udp 127.0.0.1",
        "udp ::1",
        "udp_connected",
        "udp_sendmsg",
        "abstract_socket",
        "socket_in_a_granted_directory",
        "follow_a_redirect_inside",
        "a_relay_inside",
    ] {
        assert!(reached.iter().any(|r| r == name), "{name} did not get out; it shows nothing: {reached:?}");
    }
    std::thread::sleep(Duration::from_millis(50));
    assert!(world.heard.load(SeqCst) >= 5);
}
