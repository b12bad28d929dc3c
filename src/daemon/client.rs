//! The hook's end: one question, one answer, or nothing.

use super::wire::{self, Reply};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long an answer is waited for. After that the hook process judges by itself, within its own deadline.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// Asks the daemon whose socket lies in `dir`. `None` when there is none, it is somebody else's, it runs another program
/// than `jess`, or it does not answer.
pub fn ask(dir: &Path, jess: &Path, env: &[u8], event: &[u8]) -> Option<Reply> {
    if !super::private(dir) {
        return None;
    }
    let frame = wire::request(env, event)?;
    let mut stream = UnixStream::connect(dir.join(super::SOCKET)).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    if peer.uid != rustix::process::geteuid() || !runs(peer.pid, jess) {
        return None;
    }
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(&frame).ok()?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let length = u32::from_le_bytes(length) as usize;
    // An answer may hold a sealed result, somewhat longer than what came in.
    if length > 4 * wire::FRAME_MAX {
        return None;
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).ok()?;
    wire::read_reply(&bytes).filter(|r| r.exit != wire::YOURSELF)
}

/// Whether process `pid` runs the file `jess`. A program of the same user that has put its own socket in the daemon's
/// place does not; one that goes to the length of becoming `jess` afterwards, with the socket in another process of its
/// own, is not told apart.
fn runs(pid: rustix::process::Pid, jess: &Path) -> bool {
    let file = |path: &Path| std::fs::metadata(path).map(|m| (m.dev(), m.ino())).ok();
    let running = file(Path::new(&format!("/proc/{}/exe", pid.as_raw_nonzero())));
    running.is_some() && running == file(jess)
}

/// This process's environment as a block of `NAME=VALUE`, each ended by a NUL.
pub fn environment() -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let mut out = Vec::with_capacity(4096);
    for (name, value) in std::env::vars_os() {
        out.extend(name.as_bytes());
        out.push(b'=');
        out.extend(value.as_bytes());
        out.push(0);
    }
    out
}
