//! Credentials for hosts: added outside, to the requests that their rule is for, and never seen inside.

use crate::support::{Authority, Origin, PUBLIC, read_request};
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

const SECRET: &str = "ghp_REAL0123456789abcdefSECRET";

/// A TLS server that echoes the request.
fn echo(authority: &Authority) -> Origin {
    let config = authority.server(&["allowed.test"]);
    Origin::start(PUBLIC, move |stream, log| {
        let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = rustls::StreamOwned::new(connection, stream);
        let request = read_request(&mut stream);
        log.lock().unwrap().extend_from_slice(&request);
        let head =
            format!("HTTP/1.1 200 OK\r\nX-Echo: {SECRET}\r\nContent-Length: {}\r\n\r\n", request.len());
        let _ = stream.write_all(&[head.as_bytes(), &request].concat());
        let _ = stream.flush();
    })
}

fn run(authority: &Authority, flags: &[&str], script: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jess"))
        .args(["run", "--timeout", "60", "--net-inside", "127.0.0.2", "--resolve", "allowed.test=127.0.0.2"])
        .arg("--cacert")
        .arg(authority.file())
        .args(flags)
        .args(["--", "/bin/sh", "-c", script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("TOKEN", SECRET)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn a_request_that_the_rule_is_for_gets_the_credential_and_no_other_does() {
    let authority = Authority::new();
    let origin = echo(&authority);
    let at = format!("allowed.test:{}", origin.port());
    let rule = format!("GET {at}/api bearer env:TOKEN");
    let script = format!(
        "curl -q -sS -i http://{at}/api/a; curl -q -sS -o /dev/null -w '%{{http_code}} ' -d x http://{at}/api/b; \
         curl -q -sS -o /dev/null -w '%{{http_code}} ' http://{at}/other; \
         unset http_proxy HTTP_PROXY; curl -q -sS -i http://{at}/api/bare; env"
    );
    let done = run(&authority, &["--credential", &rule], &script);
    let out = String::from_utf8_lossy(&done.stdout).into_owned();
    let received = origin.received();
    assert_eq!(received.matches(&format!("authorization: Bearer {SECRET}")).count(), 2, "{received} {out}");
    assert!(received.contains("GET /api/a ") && received.contains("GET /api/bare "), "{received}");
    assert!(!received.contains("/api/b ") && !received.contains("/other"), "{received}");
    assert!(out.contains("403 403 "), "{out}");
    assert!(out.contains("[redacted by jess]") && !out.contains(SECRET) && !out.contains("x-echo"), "{out}");
}

#[test]
fn a_credential_goes_into_a_query_and_only_over_verified_tls() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let origin = echo(&authority);
    let at = format!("allowed.test:{}", origin.port());
    let rule = format!("{at} query:key env:TOKEN");
    let script = format!("curl -q -sS http://{at}/x?y=1");
    run(&authority, &["--credential", &rule], &script);
    assert!(origin.received().contains(&format!("GET /x?y=1&key={SECRET} ")), "{}", origin.received());
    let before = origin.received();
    let done = run(&stranger, &["--credential", &rule], &script);
    assert_eq!(origin.received(), before, "{}", String::from_utf8_lossy(&done.stdout));
    assert!(String::from_utf8_lossy(&done.stdout).contains("TLS failed"));
}
