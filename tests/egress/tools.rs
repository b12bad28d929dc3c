//! Real tools, through the door, to a local TLS server. They need the tools, so they run when asked for:
//! `cargo test --test egress -- --ignored`. A tool that is missing is a failure.

use crate::support::{Authority, Door, Origin, PUBLIC, config};
use std::process::Command;

struct Setting {
    authority: Authority,
    origin: Origin,
    door: Door,
}

fn setting() -> Setting {
    let authority = Authority::new();
    let origin = Origin::https(PUBLIC, &authority, &["allowed.test", "denied.test"], "PUBLIC");
    let at = format!("allowed.test:{}", origin.port());
    let door = Door::open(config(&[&at], &[("allowed.test", PUBLIC), ("denied.test", PUBLIC)]));
    Setting { authority, origin, door }
}

impl Setting {
    /// Runs `program` with the proxy variables and the authority's certificate, as a sandbox would.
    fn run(&self, program: &str, args: &[&str]) -> String {
        let proxy = format!("http://{}", self.door.addr);
        let ca = self.authority.file();
        let args: Vec<String> = args
            .iter()
            .map(|a| a.replace("{port}", &self.origin.port().to_string()).replace("{proxy}", &proxy))
            .map(|a| a.replace("{ca}", ca.to_str().unwrap()))
            .collect();
        let mut command = Command::new(program);
        for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"] {
            command.env(name, &proxy);
        }
        for name in [
            "SSL_CERT_FILE",
            "CURL_CA_BUNDLE",
            "NODE_EXTRA_CA_CERTS",
            "GIT_SSL_CAINFO",
            "REQUESTS_CA_BUNDLE",
            "PIP_CERT",
        ] {
            command.env(name, &ca);
        }
        let output = command.env("NO_PROXY", "").env("no_proxy", "").args(&args).output();
        let output = output.unwrap_or_else(|e| panic!("{program} is needed for this test: {e}"));
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }
}

/// The tool reaches the allowed host, and not the other one on the same server.
fn reaches_only_what_is_allowed(program: &str, args: &[&str], arrived: &str) {
    let setting = setting();
    let out = setting.run(program, args);
    assert!(setting.origin.received().contains(arrived), "{program}: {out}");
    let before = setting.origin.received();
    let denied: Vec<String> = args.iter().map(|a| a.replace("allowed.test", "denied.test")).collect();
    let out = setting.run(program, &denied.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(setting.origin.received(), before, "{program}: {out}");
}

#[test]
#[ignore = "needs curl"]
fn curl_goes_through_the_door() {
    reaches_only_what_is_allowed("curl", &["-sS", "https://allowed.test:{port}/curl"], "GET /curl");
}

#[test]
#[ignore = "needs wget"]
fn wget_goes_through_the_door() {
    reaches_only_what_is_allowed(
        "wget",
        &["-qO-", "--tries=1", "--ca-certificate={ca}", "https://allowed.test:{port}/wget"],
        "GET /wget",
    );
}

#[test]
#[ignore = "needs git"]
fn git_over_https_goes_through_the_door() {
    reaches_only_what_is_allowed(
        "git",
        &["ls-remote", "https://allowed.test:{port}/r.git"],
        "GET /r.git/info/refs",
    );
}

#[test]
#[ignore = "needs Python"]
fn python_and_pip_go_through_the_door() {
    let code =
        "import urllib.request; print(urllib.request.urlopen('https://allowed.test:{port}/python').read())";
    reaches_only_what_is_allowed("python3", &["-c", code], "GET /python");
    let index = "https://allowed.test:{port}/simple/";
    let args = [
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--retries",
        "0",
        "--disable-pip-version-check",
        "-i",
        index,
        "jess-nothing",
    ];
    reaches_only_what_is_allowed("python3", &args, "GET /simple/jess-nothing/");
}

#[test]
#[ignore = "needs npm"]
fn npm_goes_through_the_door() {
    let registry = "--registry=https://allowed.test:{port}/npm/";
    let args = ["view", "jess-nothing", registry, "--fetch-retries=0", "--cafile={ca}"];
    reaches_only_what_is_allowed("npm", &args, "GET /npm/jess-nothing");
}
