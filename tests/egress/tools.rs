//! Real tools, through the door, to a local TLS server. `.ci/run prerequisites` installs them; a tool that is missing is
//! a failure.

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
        for name in ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"] {
            command.env(name, &ca);
        }
        // The operator's own settings could name another proxy.
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("GIT_TERMINAL_PROMPT", "0");
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
fn curl_goes_through_the_door() {
    reaches_only_what_is_allowed("curl", &["-q", "-sS", "https://allowed.test:{port}/curl"], "GET /curl");
}

#[test]
fn wget_goes_through_the_door() {
    reaches_only_what_is_allowed(
        "wget",
        &["--no-config", "-qO-", "--tries=1", "--ca-certificate={ca}", "https://allowed.test:{port}/wget"],
        "GET /wget",
    );
}

#[test]
fn git_over_https_goes_through_the_door() {
    reaches_only_what_is_allowed(
        "git",
        &["ls-remote", "https://allowed.test:{port}/r.git"],
        "GET /r.git/info/refs",
    );
}

#[test]
fn python_goes_through_the_door() {
    let code =
        "import urllib.request; print(urllib.request.urlopen('https://allowed.test:{port}/python').read())";
    reaches_only_what_is_allowed("python3", &["-c", code], "GET /python");
}
