//! A terminal of the command's own (`--tty`).
//!
//! In tier `full` it is made from the run's private devpts, in tier `landlock` from the host's. The process above the
//! command (PID 1, or the housekeeper) leads the session, so that the command's process group is not an orphaned one
//! and can be stopped. The operator's terminal is raw meanwhile: what is typed goes to the private one, whose line
//! discipline turns Ctrl-C and Ctrl-Z into signals inside. Nothing inside ever holds the operator's terminal.

use super::sys;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, Winsize};

/// The size where the operator has no terminal.
const SIZE: Winsize = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };

/// What a new terminal starts with.
#[derive(Clone)]
pub struct Settings {
    size: Winsize,
    modes: Option<Termios>,
}

impl Settings {
    /// Those of the operator's terminal, if standard input is one.
    pub fn of_operator() -> Settings {
        let own = rustix::stdio::stdin();
        Settings { size: size_of(own), modes: rustix::termios::tcgetattr(own).ok() }
    }

    /// A new terminal: the side that reads what the command writes, and the command's side.
    pub fn open(&self) -> Result<(OwnedFd, OwnedFd), Errno> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let master = rustix::fs::open("/dev/ptmx", flags, Mode::empty())?;
        let slave = sys::terminal_peer(master.as_fd())?;
        if let Some(modes) = &self.modes {
            rustix::termios::tcsetattr(&slave, OptionalActions::Now, modes)?;
        }
        rustix::termios::tcsetwinsize(&master, self.size)?;
        Ok((master, slave))
    }
}

fn size_of(terminal: BorrowedFd<'_>) -> Winsize {
    rustix::termios::tcgetwinsize(terminal)
        .ok()
        .filter(|size| size.ws_row > 0 && size.ws_col > 0)
        .unwrap_or(SIZE)
}

/// Makes `slave` the terminal of this process, which becomes the leader of a session if it is none.
pub fn lead(slave: BorrowedFd<'_>) -> Result<(), Errno> {
    match rustix::process::setsid() {
        Ok(_) | Err(Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    rustix::process::ioctl_tiocsctty(slave)
}

/// Makes this process a group of its own in the session, in the foreground of `slave`. SIGTTOU must be blocked.
pub fn come_to_front(slave: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::process::setpgid(None, None)?;
    rustix::termios::tcsetpgrp(slave, rustix::process::getpid())
}

/// The operator's terminal while it belongs to the command. Dropping it gives it back as it was.
pub struct Operator {
    /// Its modes, if standard input is a terminal.
    saved: Option<Termios>,
    master: OwnedFd,
}

impl Operator {
    /// Passes the operator's terminal, if there is one, to the terminal behind `master`.
    pub fn lend(master: OwnedFd) -> Operator {
        let saved = rustix::termios::tcgetattr(rustix::stdio::stdin()).ok();
        let operator = Operator { saved, master };
        operator.take();
        operator
    }

    /// Whether there is an operator's terminal, and this process's group is in its foreground.
    pub fn is_in_front(&self) -> bool {
        let front = rustix::termios::tcgetpgrp(rustix::stdio::stdin());
        self.saved.is_some() && front.is_ok_and(|group| group == rustix::process::getpgrp())
    }

    /// Takes it: raw, and the private terminal in its size.
    pub fn take(&self) {
        let Some(saved) = &self.saved else { return };
        let mut raw = saved.clone();
        raw.make_raw();
        let _ = rustix::termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &raw);
        self.resize();
    }

    /// Gives it back.
    pub fn give_back(&self) {
        if let Some(saved) = &self.saved {
            let _ = rustix::termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, saved);
        }
    }

    /// Gives the private terminal the operator's size; the kernel tells the command.
    pub fn resize(&self) {
        if self.saved.is_some() {
            let _ = rustix::termios::tcsetwinsize(&self.master, size_of(rustix::stdio::stdin()));
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.give_back();
    }
}
