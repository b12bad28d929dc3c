//! Were the standard streams open when this process began?
//!
//! Rust's runtime puts /dev/null in the place of a stream that is closed before `main` runs: a closed input then reads as
//! an empty one, and what is written to a closed output is gone without an error. This looks before the runtime does.

use std::sync::atomic::{AtomicBool, Ordering};

static STDIN_CLOSED: AtomicBool = AtomicBool::new(false);
static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Called by the loader, before the runtime and `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD takes no pointer; on a number that is no open descriptor it fails and does nothing.
    let closed = |fd| unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0;
    STDIN_CLOSED.store(closed(0), Ordering::Relaxed);
    STDOUT_CLOSED.store(closed(1), Ordering::Relaxed);
}

/// Stdin was closed when this process began (`<&-`): what reads as empty is no empty document.
pub fn stdin_was_closed() -> bool {
    // Naming it keeps the linker from leaving it out.
    let _ = std::hint::black_box(&LOOK);
    STDIN_CLOSED.load(Ordering::Relaxed)
}

/// Stdout was closed when this process began (`>&-`): what is written to it is gone.
pub fn stdout_was_closed() -> bool {
    let _ = std::hint::black_box(&LOOK);
    STDOUT_CLOSED.load(Ordering::Relaxed)
}
