//! The canary: before the command starts, forbidden things are tried from where it will stand.
//!
//! If one of them works, the sandbox is not what the report would say, and nothing is run.

use super::layer::{Layer, Weakened};
use super::sys;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// One forbidden thing: its name for the error, the layer that forbids it, and how it is tried.
pub struct Try {
    /// Completes "inside, … was possible".
    pub what: &'static str,
    layer: Layer,
    attempt: fn() -> Result<(), Errno>,
}

/// What is tried. The index is the item of a [`super::Step::Canary`] failure.
pub const TRIES: [Try; 6] = [
    Try {
        what: "making another user namespace",
        layer: Layer::Seccomp,
        attempt: || sys::probe_syscall(libc::SYS_unshare, [libc::CLONE_NEWUSER as u64, 0, 0]),
    },
    Try {
        what: "reaching the kernel's keyrings",
        layer: Layer::Seccomp,
        // KEYCTL_GET_KEYRING_ID of the session keyring.
        attempt: || sys::probe_syscall(libc::SYS_keyctl, [0, -3i64 as u64, 0]),
    },
    Try {
        what: "opening a netlink socket",
        layer: Layer::Seccomp,
        attempt: || sys::probe_syscall(libc::SYS_socket, [libc::AF_NETLINK as u64, libc::SOCK_RAW as u64, 0]),
    },
    Try {
        what: "writing to a system directory",
        layer: Layer::Mounts,
        attempt: || open_for_writing("/usr/.jess-canary"),
    },
    Try {
        what: "writing to the root directory",
        layer: Layer::Mounts,
        attempt: || open_for_writing("/.jess-canary"),
    },
    Try {
        what: "writing to another process through /proc",
        layer: Layer::Landlock,
        attempt: || {
            rustix::fs::open("/proc/self/oom_score_adj", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
                .map(drop)
        },
    },
];

fn open_for_writing(path: &str) -> Result<(), Errno> {
    rustix::fs::open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC, Mode::from_raw_mode(0o600))
        .map(drop)
}

/// Tries everything whose layer is to engage: with `landlock` that layer, and without `host_files` what the rules for
/// files forbid. Returns the index of the first thing that worked.
pub fn sing(weakened: Weakened, landlock: bool, host_files: bool) -> Result<(), u32> {
    for (index, attempt) in (0u32..).zip(&TRIES) {
        let absent =
            (attempt.layer == Layer::Landlock && !landlock) || (attempt.layer == Layer::Mounts && host_files);
        let engaged = weakened.keeps(attempt.layer) && !absent;
        if engaged && (attempt.attempt)().is_ok() {
            return Err(index);
        }
    }
    Ok(())
}
