//! Byte streams: one that gives back what was read too far, and the relay between two.

use super::event::Reason;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, sleep_until};

/// Any stream that a request can be served on or sent over.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A stream whose first bytes were read already.
pub(super) struct Prefixed<S> {
    prefix: Vec<u8>,
    at: usize,
    inner: S,
}

impl<S> Prefixed<S> {
    pub(super) fn new(prefix: Vec<u8>, inner: S) -> Self {
        Prefixed { prefix, at: 0, inner }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prefixed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let rest = this.prefix.get(this.at..).unwrap_or_default();
        if rest.is_empty() {
            return Pin::new(&mut this.inner).poll_read(cx, buf);
        }
        let n = rest.len().min(buf.remaining());
        buf.put_slice(rest.get(..n).unwrap_or_default());
        this.at += n;
        if this.at == this.prefix.len() {
            this.prefix = Vec::new();
            this.at = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prefixed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Bytes that a host and the run may still move, and what this connection moved.
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
    pub(super) fn charge(&self, counter: &AtomicU64, n: u64) -> bool {
        counter.fetch_add(n, Relaxed);
        self.budgets.iter().all(|(used, limit)| used.fetch_add(n, Relaxed) + n <= *limit)
    }
}

/// Bytes that are moved at a time in each direction.
const BUFFER: usize = 64 * 1024;

/// Moves bytes both ways until both sides have ended, one fails, nothing moves for `idle`, or the meter is used up.
pub(super) async fn relay<A: Stream, B: Stream>(
    inside: A,
    outside: B,
    idle: Duration,
    meter: &Meter<'_>,
) -> Reason {
    let (inside_read, inside_write) = tokio::io::split(inside);
    let (outside_read, outside_write) = tokio::io::split(outside);
    let start = Instant::now();
    let last = AtomicU64::new(0);
    let both = async {
        let up = copy(inside_read, outside_write, meter, meter.up, (&start, &last));
        let down = copy(outside_read, inside_write, meter, meter.down, (&start, &last));
        tokio::pin!(up, down);
        tokio::select! {
            first = &mut up => match first { Reason::Done => down.await, other => other },
            first = &mut down => match first { Reason::Done => up.await, other => other },
        }
    };
    tokio::select! {
        reason = both => reason,
        () = idle_for(idle, start, &last) => Reason::Idle,
    }
}

async fn copy<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mut from: R,
    mut to: W,
    meter: &Meter<'_>,
    counter: &AtomicU64,
    (start, last): (&Instant, &AtomicU64),
) -> Reason {
    let mut buffer = vec![0; BUFFER];
    loop {
        let n = match from.read(&mut buffer).await {
            Ok(0) => {
                let _ = to.shutdown().await;
                return Reason::Done;
            }
            Ok(n) => n,
            Err(_) => return Reason::Broken,
        };
        last.store(millis(start.elapsed()), Relaxed);
        if !meter.charge(counter, n as u64) {
            return Reason::BytesExhausted;
        }
        let Some(bytes) = buffer.get(..n) else { return Reason::Broken };
        if to.write_all(bytes).await.is_err() {
            return Reason::Broken;
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Ends when nothing was noted in `last` (milliseconds after `start`) for `idle`.
async fn idle_for(idle: Duration, start: Instant, last: &AtomicU64) {
    loop {
        let deadline = start + Duration::from_millis(last.load(Relaxed)) + idle;
        if Instant::now() >= deadline {
            return;
        }
        sleep_until(deadline).await;
    }
}
