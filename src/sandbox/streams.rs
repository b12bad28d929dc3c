//! The command's streams, as they pass through jess.

use super::error::Error;
use super::spec::Stdin;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// Bytes that are read at once from a stream.
const CHUNK: usize = 64 << 10;

/// Bytes that are written at once to something that may block: what poll(2) promises for a pipe.
const PIPE_CHUNK: usize = 4096;

/// What became of one output stream.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    /// Bytes that the command wrote.
    pub written: u64,
    /// Bytes of them that were passed on or kept.
    pub passed: u64,
    /// The kept bytes ([`super::Output::Captured`]).
    pub kept: Vec<u8>,
    /// Why the rest could not be passed on, if that was not for want of a reader.
    pub lost: Option<std::io::ErrorKind>,
}

/// Copies one output stream, up to a limit; beyond it bytes are counted and dropped.
pub(super) struct Copier {
    source: Option<OwnedFd>,
    target: Option<BorrowedFd<'static>>,
    write_at_most: usize,
    buffer: Vec<u8>,
    pending: std::ops::Range<usize>,
    limit: u64,
    pub stream: Stream,
}

impl Copier {
    pub fn new(source: OwnedFd, target: Option<BorrowedFd<'static>>, limit: u64) -> Result<Copier, Error> {
        set_nonblocking(&source)?;
        let regular = target.is_some_and(|fd| {
            rustix::fs::fstat(fd).is_ok_and(|s| rustix::fs::FileType::from_raw_mode(s.st_mode).is_file())
        });
        Ok(Copier {
            source: Some(source),
            target,
            write_at_most: if regular { CHUNK } else { PIPE_CHUNK },
            buffer: vec![0; CHUNK],
            pending: 0..0,
            limit,
            stream: Stream::default(),
        })
    }

    pub fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match (&self.source, self.target) {
            (_, Some(target)) if !self.pending.is_empty() => Some((target, PollFlags::OUT)),
            (Some(source), _) => Some((source.as_fd(), PollFlags::IN)),
            _ => None,
        }
    }

    pub fn step(&mut self) {
        if self.pending.is_empty() {
            self.read();
        } else {
            self.write();
        }
    }

    /// Reads once. False: nothing more to read now.
    fn read(&mut self) -> bool {
        let Some(source) = &self.source else { return false };
        let n = match rustix::io::read(source, &mut self.buffer) {
            Ok(0) => {
                self.source = None;
                return false;
            }
            Ok(n) => n,
            Err(Errno::INTR) => return true,
            Err(Errno::AGAIN) => return false,
            Err(_) => {
                self.source = None;
                return false;
            }
        };
        self.stream.written += n as u64;
        let room = usize::try_from(self.limit.saturating_sub(self.stream.passed)).unwrap_or(usize::MAX);
        let passed = n.min(room);
        self.stream.passed += passed as u64;
        if self.target.is_some() {
            self.pending = 0..passed;
        } else {
            self.stream.kept.extend_from_slice(self.buffer.get(..passed).unwrap_or_default());
        }
        true
    }

    fn write(&mut self) {
        let Some(target) = self.target else { return self.pending = 0..0 };
        let end = self.pending.end.min(self.pending.start + self.write_at_most);
        let bytes = self.buffer.get(self.pending.start..end).unwrap_or_default();
        match rustix::io::write(target, bytes) {
            Ok(n) => self.pending.start += n,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => {
                // Nobody reads any more: let the command feel it.
                self.lost(errno);
                self.pending = 0..0;
                self.source = None;
            }
        }
    }

    /// A reader that has had enough is no loss.
    fn lost(&mut self, errno: Errno) {
        if errno != Errno::PIPE {
            self.stream.passed -= self.pending.len() as u64;
            self.stream.lost = Some(std::io::Error::from(errno).kind());
        }
    }

    /// Passes on what is left once everything inside has ended.
    pub fn finish(&mut self) {
        loop {
            while let (false, Some(target)) = (self.pending.is_empty(), self.target) {
                let mut poll = [PollFd::from_borrowed_fd(target, PollFlags::OUT)];
                let _ = rustix::event::poll(&mut poll, None);
                self.write();
            }
            if !self.read() {
                return;
            }
        }
    }
}

/// Feeds the command's standard input.
pub(super) struct Feeder {
    source: Option<BorrowedFd<'static>>,
    target: Option<OwnedFd>,
    buffer: Vec<u8>,
    pending: std::ops::Range<usize>,
    /// Whether the end of input is told by a character.
    control_d: bool,
}

impl Feeder {
    pub fn new(target: Option<OwnedFd>, stdin: &Stdin) -> Result<Feeder, Error> {
        if let Some(target) = &target {
            set_nonblocking(target)?;
        }
        let (source, buffer, pending) = match stdin {
            Stdin::Null => (None, Vec::new(), 0..0),
            Stdin::Copied => (Some(rustix::stdio::stdin()), vec![0; PIPE_CHUNK], 0..0),
            Stdin::Bytes(bytes) => (None, bytes.clone(), 0..bytes.len()),
        };
        let mut feeder = Feeder { source, target, buffer, pending, control_d: false };
        feeder.close_when_done();
        Ok(feeder)
    }

    pub fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let target = self.target.as_ref()?;
        if self.pending.is_empty() {
            self.source.map(|source| (source, PollFlags::IN))
        } else {
            Some((target.as_fd(), PollFlags::OUT))
        }
    }

    pub fn step(&mut self) {
        let Some(target) = &self.target else { return };
        if self.pending.is_empty() {
            let Some(source) = self.source else { return };
            match rustix::io::read(source, &mut self.buffer) {
                Ok(n) if n > 0 => self.pending = 0..n,
                Err(Errno::INTR | Errno::AGAIN) => {}
                _ => {
                    self.source = None;
                    if self.control_d {
                        self.buffer = vec![4];
                        self.pending = 0..1;
                    }
                }
            }
        } else {
            match rustix::io::write(target, self.buffer.get(self.pending.clone()).unwrap_or_default()) {
                Ok(n) => self.pending.start += n,
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => self.target = None,
            }
        }
        self.close_when_done();
    }

    /// Of a terminal, closing one side does not end the other's input: Ctrl-D at the start of a line does.
    pub fn end_with_control_d(&mut self, control_d: bool) {
        self.control_d = control_d;
    }

    fn close_when_done(&mut self) {
        if self.source.is_none() && self.pending.is_empty() {
            self.target = None;
        }
    }
}

fn set_nonblocking(fd: &OwnedFd) -> Result<(), Error> {
    rustix::fs::fcntl_getfl(fd)
        .and_then(|flags| rustix::fs::fcntl_setfl(fd, flags | rustix::fs::OFlags::NONBLOCK))
        .map_err(Error::supervisor("preparing a stream"))
}
