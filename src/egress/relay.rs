//! Moves the bytes of a tunnel.
//!
//! The first bytes of a direction are copied through a buffer that all tunnels share; a direction that has moved
//! [`BULK`] bytes gets a pipe and is spliced, so that bulk data never enters the process. An open tunnel that moves
//! nothing holds no memory of its own, and one whose receiver is slow holds one chunk.

use super::event::Reason;
use rustix::net::Shutdown;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with};
use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

/// Bytes copied at a time.
const CHUNK: usize = 32 * 1024;
/// Bytes of one direction after which it is spliced.
const BULK: u64 = 256 * 1024;
/// Bytes spliced at a time, and the size that is asked for the pipe.
const PIPE: usize = 512 * 1024;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK]);
}

/// What a connection moved, and the counters that it is charged to.
pub(super) struct Meter<'a> {
    /// Counters to charge, each with its limit.
    pub budgets: Vec<(&'a AtomicU64, u64)>,
    /// From the run to the outside.
    pub up: &'a AtomicU64,
    /// From the outside to the run.
    pub down: &'a AtomicU64,
}

impl Meter<'_> {
    /// Charges `n` bytes; false when a limit is passed.
    fn charge(&self, counter: &AtomicU64, n: u64) -> bool {
        counter.fetch_add(n, Relaxed);
        self.budgets.iter().all(|(used, limit)| used.fetch_add(n, Relaxed).saturating_add(n) <= *limit)
    }
}

/// When something was moved last.
struct Clock {
    start: Instant,
    last: AtomicU64,
}

impl Clock {
    fn touch(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Relaxed);
    }

    /// Ends when nothing was moved for `idle`.
    async fn idle_for(&self, idle: Duration) {
        loop {
            let deadline = self.start + Duration::from_millis(self.last.load(Relaxed)) + idle;
            if Instant::now() >= deadline {
                return;
            }
            sleep_until(deadline).await;
        }
    }
}

/// Sends `first` outside, then moves bytes both ways until both sides have ended, one fails, nothing moves for `idle`,
/// or the meter is used up.
pub(super) async fn relay(
    first: &[u8],
    inside: &TcpStream,
    outside: &TcpStream,
    idle: Duration,
    meter: &Meter<'_>,
) -> Reason {
    let clock = Clock { start: Instant::now(), last: AtomicU64::new(0) };
    let both = async {
        let up = async {
            if !meter.charge(meter.up, first.len() as u64) {
                return Reason::BytesExhausted;
            }
            match write_all(outside, first).await {
                Ok(()) => copy(inside, outside, meter, meter.up, &clock).await,
                Err(_) => Reason::Broken,
            }
        };
        let down = copy(outside, inside, meter, meter.down, &clock);
        tokio::pin!(up, down);
        tokio::select! {
            first = &mut up => match first { Reason::Done => down.await, other => other },
            first = &mut down => match first { Reason::Done => up.await, other => other },
        }
    };
    tokio::select! {
        reason = both => reason,
        () = clock.idle_for(idle) => Reason::Idle,
    }
}

async fn copy(
    from: &TcpStream,
    to: &TcpStream,
    meter: &Meter<'_>,
    counter: &AtomicU64,
    clock: &Clock,
) -> Reason {
    let (mut moved, mut pipe) = (0u64, None);
    loop {
        if from.readable().await.is_err() {
            return Reason::Broken;
        }
        if moved >= BULK && pipe.is_none() {
            pipe = Some(Pipe::new());
        }
        let step = match &pipe {
            Some(Some(pipe)) => pipe.step(from, to, meter, counter).await,
            _ => copy_step(from, to, meter, counter).await,
        };
        match step {
            Ok(Step::Moved(n)) => {
                moved = moved.saturating_add(n);
                clock.touch();
            }
            Ok(Step::Nothing) => {}
            Ok(Step::End) => {
                let _ = rustix::net::shutdown(to, Shutdown::Write);
                return Reason::Done;
            }
            Ok(Step::Exhausted) => return Reason::BytesExhausted,
            Err(_) => return Reason::Broken,
        }
    }
}

enum Step {
    Moved(u64),
    Nothing,
    End,
    Exhausted,
}

async fn copy_step(
    from: &TcpStream,
    to: &TcpStream,
    meter: &Meter<'_>,
    counter: &AtomicU64,
) -> io::Result<Step> {
    let step = SCRATCH.with_borrow_mut(|scratch| {
        let n = match from.try_read(scratch) {
            Ok(0) => return Ok(Err(Step::End)),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Err(Step::Nothing)),
            Err(e) => return Err(e),
        };
        if !meter.charge(counter, n as u64) {
            return Ok(Err(Step::Exhausted));
        }
        let bytes = scratch.get(..n).unwrap_or_default();
        let written = match to.try_write(bytes) {
            Ok(written) => written,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
            Err(e) => return Err(e),
        };
        Ok(Ok((n, bytes.get(written..).unwrap_or_default().to_vec())))
    })?;
    match step {
        Err(step) => Ok(step),
        Ok((n, rest)) => {
            write_all(to, &rest).await?;
            Ok(Step::Moved(n as u64))
        }
    }
}

async fn write_all(to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The pipe through which one direction is spliced. It is empty between steps.
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Pipe {
    /// `None` when there are no descriptors left: the direction goes on being copied.
    fn new() -> Option<Pipe> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        // The kernel caps what an ordinary user gets; a smaller pipe only costs speed.
        let _ = rustix::pipe::fcntl_setpipe_size(&write, PIPE);
        Some(Pipe { read, write })
    }

    async fn step(
        &self,
        from: &TcpStream,
        to: &TcpStream,
        meter: &Meter<'_>,
        counter: &AtomicU64,
    ) -> io::Result<Step> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let fill = || Ok(rustix::pipe::splice(from, None, &self.write, None, PIPE, flags)?);
        let n = match from.try_io(Interest::READABLE, fill) {
            Ok(0) => return Ok(Step::End),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Step::Nothing),
            Err(e) => return Err(e),
        };
        if !meter.charge(counter, n as u64) {
            return Ok(Step::Exhausted);
        }
        let mut left = n;
        while left > 0 {
            to.writable().await?;
            let drain = || Ok(rustix::pipe::splice(&self.read, None, to, None, left, flags)?);
            match to.try_io(Interest::WRITABLE, drain) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(m) => left = left.saturating_sub(m),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Step::Moved(n as u64))
    }
}
