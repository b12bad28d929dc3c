//! Runs a test where the only network is loopback.
//!
//! The body runs in a second copy of the test binary, in a network namespace of its own, so it needs neither root nor
//! a wrapper around `cargo test`. Where the whole test run has no other network already, it runs at once. Needs `unshare`, `setpriv` (util-linux), `timeout` (coreutils) and `ip` (iproute2).

use std::process::{Command, Stdio};

/// Set in the second copy. It is a request, not a proof: the copy looks at its interfaces itself.
const INSIDE: &str = "JESS_TEST_LOOPBACK_ONLY";
/// Seconds after which the second copy is stopped.
const LIMIT: &str = "600";

/// Runs `body`, which must be the whole body of a test, with no way out but loopback.
///
/// # Panics
/// When `body` does, when the namespace cannot be made, or when it has another interface than loopback.
pub fn loopback_only<F: FnOnce()>(body: F) {
    if std::env::var_os(INSIDE).is_some() {
        assert_eq!(interfaces(), ["lo"], "the test must have no way out but loopback");
        return body();
    }
    if interfaces() == ["lo"] && loopback_is_up() {
        return body();
    }
    let test = test_name::<F>();
    let namespace: &[&str] = if rustix::process::geteuid().is_root() {
        &["--net"]
    } else {
        &["--user", "--map-current-user", "--keep-caps", "--net"]
    };
    let output = Command::new("timeout")
        .args(["--kill-after=5", LIMIT, "unshare"])
        .args(namespace)
        .args(["--", "sh", "-c"])
        .arg(r#"ip link set lo up && exec setpriv --inh-caps=-all --ambient-caps=-all -- "$@""#)
        .arg("sh")
        .arg(std::env::current_exe().expect("the test binary has a path"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .stdin(Stdio::null())
        .output()
        .expect("`timeout` must be installed (coreutils)");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{test}, with loopback only, ended with {} (124: stopped after {LIMIT} s)\n{stdout}\n{stderr}",
        output.status,
    );
}

/// The name libtest knows the test by, which is where its closure was written.
fn test_name<F>() -> &'static str {
    let closure = std::any::type_name::<F>();
    let path = closure.split("::{{closure}}").next().unwrap_or(closure);
    path.split_once("::").map_or(path, |(_crate, test)| test)
}

fn loopback_is_up() -> bool {
    let listener = std::net::TcpListener::bind("127.0.0.1:0");
    listener.and_then(|l| std::net::TcpStream::connect(l.local_addr()?)).is_ok()
}

fn interfaces() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").expect("procfs is mounted");
    table.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim().to_string())).collect()
}
