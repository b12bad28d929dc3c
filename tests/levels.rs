//! The entry points by level of trust. They need a process with one thread, so this has its own main.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(missing_docs)]

use jess::sandbox::Net;
use jess::sandbox::level::{Task, run_trusted, run_untrusted, run_untrusted_networked};

fn main() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| dir.path().join(name);
    for name in ["target", "out", "outside"] {
        std::fs::create_dir(at(name)).expect("own directory");
        std::fs::write(at(name).join("f"), name).expect("own file");
    }
    let (target, out) = (at("target"), at("out"));
    let script =
        format!("cat {0}/*/f; echo x > {0}/target/new; echo y > {0}/out/new; true", dir.path().display());
    let task = Task { target: Some(&target), out: Some(&out), ..Task::new(["sh", "-c", &script]) };

    let done = run_untrusted(&task).expect("an untrusted run");
    assert_eq!((done.report.tier, done.outcome.stdout.kept.as_slice()), ("full", b"outtarget".as_slice()));
    assert!(!target.join("new").exists() && out.join("new").exists());

    let mut got = None;
    let networked = run_untrusted_networked(&Task::new(["true"]), Net::Listener(3128), |sandbox| {
        got = sandbox.take_sockets().proxy;
    });
    assert_eq!(networked.expect("a networked run").report.tier, "full");
    assert!(got.is_some(), "the door got its socket");

    let done = run_trusted(&task).expect("a trusted run");
    assert_eq!(
        (done.report.tier, done.outcome.stdout.kept.as_slice()),
        ("none", b"outoutsidetarget".as_slice())
    );
    assert!(target.join("new").exists(), "control: nothing holds it");
    println!("levels: 3 entry points hold");
}
