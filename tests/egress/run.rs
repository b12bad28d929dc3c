//! `jess run --net`: the network of a real sandbox, through the proxy variables and without them.

use crate::support::{INSIDE, Origin, PUBLIC};
use std::process::{Command, Output, Stdio};

/// Runs `script` under `jess run` with `flags`; 127.0.0.2 is the public internet, and `allowed.test` is there.
fn run(flags: &[&str], script: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jess"))
        .args(["run", "--timeout", "60", "--net-inside", "127.0.0.2"])
        .args(["--resolve", "allowed.test=127.0.0.2", "--resolve", "denied.test=127.0.0.2"])
        .args(flags)
        .args(["--", "/bin/sh", "-c", script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// A shell prefix without which curl would use the proxy.
const BARE: &str = "unset HTTP_PROXY http_proxy HTTPS_PROXY https_proxy;";

#[test]
fn an_allowed_host_is_reached_with_and_without_the_proxy_variables() {
    let origin = Origin::http(PUBLIC, "PUBLIC");
    let port = origin.port();
    let rule = format!("allowed.test:{port}");
    let script = format!(
        "curl -q -sS http://{rule}/by-proxy; {BARE} curl -q -sS http://{rule}/bare; curl -q -sS http://denied.test:{port}/"
    );
    let done = run(&["--net", &rule], &script);
    let (out, err) = said(&done);
    assert_eq!(out, "PUBLICPUBLIC", "{err}");
    let received = origin.received();
    assert!(received.contains("GET /by-proxy ") && received.contains("GET /bare "), "{received}");
    assert!(
        err.contains("jess: denied.test:443 is not allowed for this run; --net denied.test:443"),
        "{err}"
    );

    let before = origin.connections();
    let none = run(
        &[],
        &format!(
            "curl -q -sS http://{rule}/; {BARE} curl -q -sS --resolve allowed.test:{port}:127.0.0.2 http://{rule}/"
        ),
    );
    assert_eq!(
        (said(&none).0.as_str(), origin.connections()),
        ("", before),
        "without --net there is no way out"
    );
}

#[test]
fn what_is_refused_fails_at_once_and_one_line_says_what_would_allow_it() {
    let origin = Origin::http(PUBLIC, "PUBLIC");
    let port = origin.port();
    let script = r#"
import errno, socket
def tcp(host, port):
    try:
        with socket.create_connection((host, port), 20) as s:
            s.settimeout(20)
            s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            return s.recv(12).decode()
    except OSError as e:
        return errno.errorcode.get(e.errno, type(e).__name__)
def udp(host, port):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((host, port))
        s.settimeout(20)
        try:
            s.send(b"x"); s.recv(1)
        except OSError as e:
            return errno.errorcode.get(e.errno, type(e).__name__)
print(tcp("192.0.2.7", 80), tcp("192.0.2.7", 22), tcp("2001:db8::7", 80), tcp("2001:db8::7", 22))
print(tcp("allowed.test", 22), tcp("127.0.0.1", PORT), tcp("169.254.169.254", 80), tcp("127.0.0.2", PORT))
print(udp("192.0.2.7", 443), udp("2001:db8::7", 53))
"#
    .replace("PORT", &port.to_string());
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("client.py");
    std::fs::write(&program, script).unwrap();
    let rule = format!("allowed.test:{port}");
    let done = run(
        &["--net", &rule, "--ro", dir.path().to_str().unwrap()],
        &format!("exec /usr/bin/python3 {}", program.display()),
    );
    let (out, err) = said(&done);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines,
        [
            "HTTP/1.1 403 ECONNREFUSED HTTP/1.1 403 ECONNREFUSED",
            "ECONNREFUSED ECONNRESET HTTP/1.1 403 ECONNRESET",
            "ECONNREFUSED ECONNREFUSED"
        ],
        "{err}"
    );
    for place in [
        "192.0.2.7:80",
        "192.0.2.7:22",
        "[2001:db8::7]:80",
        "[2001:db8::7]:22",
        "allowed.test:22",
        "169.254.169.254:80",
    ] {
        let line = format!("jess: {place} is not allowed for this run; --net {place} would allow it\n");
        assert_eq!(err.matches(&line).count(), 1, "{place}: {err}");
    }
    for place in ["192.0.2.7:443", "[2001:db8::7]:53"] {
        assert_eq!(err.matches(&format!("jess: UDP to {place} is closed")).count(), 1, "{place}: {err}");
    }
    assert_eq!(origin.connections(), 0);
}

#[test]
fn an_address_and_the_loopback_outside_are_reached_when_a_rule_names_them() {
    let (outside, origin) = (Origin::http(INSIDE, "OPERATOR"), Origin::http(PUBLIC, "PUBLIC"));
    let (inside, public) = (outside.port(), origin.port());
    let script = format!(
        "{BARE} curl -q -sS http://localhost:{inside}/; curl -q -sS http://127.0.0.1:{inside}/; curl -q -sS http://127.0.0.2:{public}/"
    );
    let local = format!("localhost:{inside}");
    let address = format!("127.0.0.2:{public}");
    let (out, err) = said(&run(&["--net", &local, "--net", &address], &script));
    assert_eq!(out, "OPERATOROPERATORPUBLIC", "{err}");
    let before = outside.connections();
    let (out, err) = said(&run(&["--net", "allowed.test"], &script));
    assert_eq!((out.as_str(), outside.connections()), ("", before), "{err}");
}

#[test]
fn a_rule_with_too_many_ports_says_so_to_tools_that_ignore_the_proxy() {
    let origin = Origin::http(PUBLIC, "PUBLIC");
    let at = format!("allowed.test:{}", origin.port());
    let script = format!("curl -q -sS http://{at}/; {BARE} curl -q -sS http://{at}/");
    let (out, err) = said(&run(&["--net", "allowed.test:*"], &script));
    assert_eq!(out, "PUBLIC", "{err}");
    assert!(err.contains(&format!("--net {at} would open it for every tool")), "{err}");
}

#[test]
fn the_report_has_what_was_seen_at_the_door() {
    let origin = Origin::http(PUBLIC, "PUBLIC");
    let at = format!("allowed.test:{}", origin.port());
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report.json");
    let script = format!("curl -q -sS http://{at}/; {BARE} curl -q -sS http://192.0.2.7:81/");
    let done = run(&["--net", &at, "--report", report.to_str().unwrap()], &script);
    let read: serde_json::Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    assert_eq!((&read["schema"], &read["tier"]), (&"jess.run/1".into(), &"full".into()), "{}", said(&done).1);
    let events = read["egress"]["events"].as_array().unwrap();
    let ended = |host: &str| events.iter().find(|e| e["host"] == host).map(|e| e["verdict"].clone());
    assert_eq!(ended("allowed.test"), Some("allowed".into()), "{read}");
    assert_eq!(ended("192.0.2.7"), Some("denied".into()), "{read}");
}
