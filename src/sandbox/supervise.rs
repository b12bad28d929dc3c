//! Outside, while the command runs: streams, the time limit, signals, and how it ended.

use super::denial::{Denials, Kind};
use super::error::Error;
use super::notify::Used;
use super::spec::{Output, Stdin};
use super::status::Record;
use super::terminal::Operator;
use super::{Sandbox, notify, sys};
use crate::exit::Exit;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// How long a stopped command has to end by itself, if the spec does not say.
const GRACE: Duration = Duration::from_secs(2);

/// Signals that are passed on while the command runs.
pub(super) const FORWARDED: [i32; 5] =
    [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGWINCH];

/// A command that runs for this long is likely to stay: the supervisor gives back what it needed to start.
const SETTLED: Duration = Duration::from_millis(200);

/// Bytes that are read at once from a stream.
const CHUNK: usize = 64 << 10;

/// Bytes that are written at once to something that may block: what poll(2) promises for a pipe.
const PIPE_CHUNK: usize = 4096;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Exited(u8),
    /// By a signal.
    Signalled {
        /// Its number.
        signal: u8,
        /// Whether it is one that dumps core.
        core: bool,
    },
    /// Stopped at the time limit.
    TimedOut,
    /// Killed with everything inside, since jess was told to stop (the number of the signal that said so).
    Stopped(u8),
}

impl Ending {
    /// The exit code that says this.
    pub fn exit(self) -> Exit {
        match self {
            Ending::Exited(code) => Exit::child(code),
            Ending::Signalled { signal, .. } | Ending::Stopped(signal) => Exit::signal(signal),
            Ending::TimedOut => Exit::TIMEOUT,
        }
    }
}

/// What became of one output stream.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    /// Bytes that the command wrote.
    pub written: u64,
    /// Bytes of them that were passed on or kept.
    pub passed: u64,
    /// The kept bytes ([`Output::Captured`]).
    pub kept: Vec<u8>,
}

/// A finished run.
#[derive(Debug)]
pub struct Outcome {
    /// How the command ended.
    pub ending: Ending,
    /// From the start of the set-up to the end.
    pub duration: Duration,
    /// What everything inside used together.
    pub usage: libc::rusage,
    /// Standard output.
    pub stdout: Stream,
    /// Standard error.
    pub stderr: Stream,
    /// What the command was refused, as far as the supervisor knows.
    pub denials: Denials,
    /// What it used, with [`super::Watch::Uses`].
    pub used: Option<Used>,
    /// Whether the kernel killed something inside for want of memory.
    pub out_of_memory: bool,
}

impl Sandbox {
    /// Waits for the end of the command: passes its streams, forwards signals that jess gets, stops it at its limit.
    ///
    /// # Errors
    /// The command did not start: the set-up failed, or the program can't be executed.
    pub fn supervise(&mut self) -> Result<Outcome, Error> {
        let signals = sys::signal_fd(&FORWARDED).map_err(Error::supervisor("watching for signals"))?;
        let (out, err) = match self.spec.output {
            Output::Streamed => (Some(rustix::stdio::stdout()), Some(rustix::stdio::stderr())),
            Output::Captured => (None, None),
        };
        let limit = self.spec.limits.output_bytes;
        // The copiers own the only reading ends: when one gives up, the command feels it.
        let [stdout, stderr] = self.streams.take().ok_or(Error::Vanished)?;
        let mut streams = [Copier::new(stdout, out, limit)?, Copier::new(stderr, err, limit)?];
        let mut input = Feeder::new(self.stdin.take(), &self.spec.stdin)?;
        input.end_with_control_d(self.terminal.is_some());
        let operator = self.terminal.as_ref().and_then(|master| master.try_clone().ok()).map(Operator::lend);
        let mut stop =
            Stop::new(self.spec.timeout.map(|t| self.started + t), self.spec.grace.unwrap_or(GRACE));
        let mut slim = false;
        let mut evidence = Evidence::default();
        loop {
            let mut waits = Waits::default();
            let ended = waits.add(self.pidfd.as_fd(), PollFlags::IN);
            let signal = waits.add(signals.as_fd(), PollFlags::IN);
            let stopped = self.stopped.as_ref().map(|fd| waits.add(fd.as_fd(), PollFlags::IN));
            let told = operator.as_ref().map(|_| waits.add(self.status.as_fd(), PollFlags::IN));
            let copies: Vec<_> =
                streams.iter().map(|s| s.interest().map(|(fd, flags)| waits.add(fd, flags))).collect();
            let feed = input.interest().map(|(fd, flags)| waits.add(fd, flags));
            let asked = self.supervisor.as_ref().map(|s| waits.add(s.listener(), PollFlags::IN));
            let made: Vec<_> = self
                .supervisor
                .iter()
                .flat_map(notify::Supervisor::under_way)
                .map(|fd| waits.add(fd, PollFlags::OUT))
                .collect();
            let mut wait = stop.wait_at_most();
            if !slim {
                wait = Some(wait.unwrap_or(SETTLED).min(SETTLED));
            }
            let ready = waits.wait(wait).map_err(Error::supervisor("waiting for the command"))?;
            if !slim && self.started.elapsed() >= SETTLED {
                sys::release_image();
                slim = true;
            }
            let is_ready =
                |index: Option<usize>| index.is_some_and(|i| ready.get(i).copied().unwrap_or(false));
            let unheard = waits.hung_up(asked);
            drop(waits);
            if let Some(supervisor) = &mut self.supervisor {
                // From the last: finishing one moves the last into its place.
                for (index, waited) in made.into_iter().enumerate().rev() {
                    if is_ready(Some(waited)) {
                        supervisor.connected(index);
                    }
                }
                if is_ready(asked) && !unheard {
                    supervisor.serve();
                }
            }
            if unheard {
                // Nobody is left who could ask.
                evidence.take(self.supervisor.take());
            }
            for (stream, index) in streams.iter_mut().zip(copies) {
                if is_ready(index) {
                    stream.step();
                }
            }
            if is_ready(feed) {
                input.step();
            }
            if is_ready(Some(signal)) {
                while let Some(number) = sys::next_signal(signals.as_fd()) {
                    match &operator {
                        Some(operator) if number == libc::SIGWINCH => operator.resize(),
                        _ => self.forward(number, &mut stop),
                    }
                }
            }
            if is_ready(told)
                && self.last.is_none()
                && let Some(operator) = &operator
            {
                match self.record() {
                    Some(Record::Suspended) => self.suspend(operator),
                    other => self.last = other,
                }
            }
            if is_ready(stopped) {
                self.stopped = None;
                self.forward(libc::SIGTERM, &mut stop);
            }
            self.enforce(&mut stop);
            if is_ready(Some(ended)) {
                break;
            }
        }
        let usage = self.reap()?;
        drop(operator);
        // From here on a signal means jess alone: what is left to do may wait for a reader, or take long.
        sys::unblock_signals(&FORWARDED).map_err(Error::supervisor("watching for signals"))?;
        for stream in &mut streams {
            stream.finish();
        }
        let ending = self.ending(&stop)?;
        evidence.take(self.supervisor.take());
        let Evidence { mut denials, used } = evidence;
        let (killed, refused) = self.group.as_ref().map_or((0, 0), super::cgroup::Group::events);
        let limits = &self.spec.limits;
        if let (1.., Some(bytes)) = (killed, limits.memory_bytes) {
            denials.note(Kind::Limit, format!("{bytes} bytes of memory"), Some("--max-memory".into()));
        }
        if let (1.., Some(processes)) = (refused, limits.processes) {
            denials.note(Kind::Limit, format!("{processes} processes"), Some("--max-processes".into()));
        }
        let [stdout, stderr] = streams.map(|s| s.stream);
        let duration = self.started.elapsed();
        Ok(Outcome { ending, duration, usage, stdout, stderr, denials, used, out_of_memory: killed > 0 })
    }

    /// The command was stopped at its terminal: so is jess, with its process group, until the operator goes on.
    fn suspend(&self, operator: &Operator) {
        operator.give_back();
        let _ = sys::kill(0, libc::SIGTSTP);
        operator.take();
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::CONT);
    }

    fn forward(&self, number: i32, stop: &mut Stop) {
        if let Some(signal) = Signal::from_named_raw(number) {
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, signal);
        }
        if matches!(number, libc::SIGTERM | libc::SIGHUP) {
            stop.told(number);
        }
    }

    fn enforce(&self, stop: &mut Stop) {
        match stop.due() {
            Due::Nothing => {}
            Due::Term => {
                let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::TERM);
            }
            Due::Kill => self.kill(),
        }
    }

    fn reap(&mut self) -> Result<libc::rusage, Error> {
        loop {
            match sys::wait(Some(self.pid), true) {
                Ok(Some((ended, usage))) => {
                    self.reaped = true;
                    if libc::WIFSIGNALED(ended.status) {
                        self.keep_house();
                    }
                    return Ok(usage);
                }
                Ok(None) | Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::supervisor("reaping the sandbox")(errno)),
            }
        }
    }

    fn ending(&self, stop: &Stop) -> Result<Ending, Error> {
        let mut record = self.last.or_else(|| self.record());
        while matches!(record, Some(Record::Suspended)) {
            record = self.record();
        }
        match (record, stop.reason) {
            (Some(Record::Failed(failure)), _) => Err(self.explain(failure)),
            (Some(Record::Ready | Record::Suspended), _) => Err(Error::Vanished),
            (_, Reason::TimeLimit) => Ok(Ending::TimedOut),
            (Some(Record::Exited(code)), _) => Ok(Ending::Exited(code)),
            (Some(Record::Signalled { signal, core }), _) => Ok(Ending::Signalled { signal, core }),
            (None, Reason::Told(signal)) => Ok(Ending::Stopped(signal as u8)),
            (None, Reason::None) => Err(Error::Vanished),
        }
    }
}

/// What the supervisor of calls knows at the end.
#[derive(Default)]
struct Evidence {
    denials: Denials,
    used: Option<Used>,
}

impl Evidence {
    fn take(&mut self, supervisor: Option<notify::Supervisor>) {
        if let Some(supervisor) = supervisor {
            self.denials = supervisor.denials().clone();
            self.used = supervisor.used().cloned();
        }
    }
}

/// Why and when a command is stopped.
struct Stop {
    deadline: Option<Instant>,
    grace: Duration,
    reason: Reason,
    kill_at: Option<Instant>,
    killed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    None,
    TimeLimit,
    Told(i32),
}

enum Due {
    Nothing,
    Term,
    Kill,
}

impl Stop {
    fn new(deadline: Option<Instant>, grace: Duration) -> Stop {
        Stop { deadline, grace, reason: Reason::None, kill_at: None, killed: false }
    }

    fn told(&mut self, signal: i32) {
        if self.reason == Reason::None {
            self.reason = Reason::Told(signal);
            self.kill_at = Some(Instant::now() + self.grace);
        }
    }

    fn due(&mut self) -> Due {
        let now = Instant::now();
        if self.kill_at.is_some_and(|at| now >= at) && !self.killed {
            self.killed = true;
            return Due::Kill;
        }
        if self.reason == Reason::None && self.deadline.is_some_and(|at| now >= at) {
            self.reason = Reason::TimeLimit;
            self.kill_at = Some(now + self.grace);
            return Due::Term;
        }
        Due::Nothing
    }

    fn wait_at_most(&self) -> Option<Duration> {
        let next = match (self.kill_at, self.reason) {
            _ if self.killed => return None,
            (Some(at), _) => Some(at),
            (None, _) => self.deadline,
        };
        next.map(|at| at.saturating_duration_since(Instant::now()))
    }
}

#[derive(Default)]
struct Waits<'a>(Vec<PollFd<'a>>);

impl<'a> Waits<'a> {
    fn add(&mut self, fd: BorrowedFd<'a>, flags: PollFlags) -> usize {
        self.0.push(PollFd::from_borrowed_fd(fd, flags));
        self.0.len() - 1
    }

    /// Whether the other side of entry `index` is gone and there is nothing to read.
    fn hung_up(&self, index: Option<usize>) -> bool {
        let entry = index.and_then(|i| self.0.get(i));
        entry.is_some_and(|e| {
            let seen = e.revents();
            seen.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
                && !seen.contains(PollFlags::IN)
        })
    }

    fn wait(&mut self, at_most: Option<Duration>) -> Result<Vec<bool>, Errno> {
        let timeout = at_most.map(|t| Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(t.subsec_nanos()),
        });
        match rustix::event::poll(&mut self.0, timeout.as_ref()) {
            Ok(_) => Ok(self.0.iter().map(|p| !p.revents().is_empty()).collect()),
            Err(Errno::INTR) => Ok(vec![false; self.0.len()]),
            Err(errno) => Err(errno),
        }
    }
}

/// Copies one output stream, up to a limit; beyond it bytes are counted and dropped.
struct Copier {
    source: Option<OwnedFd>,
    target: Option<BorrowedFd<'static>>,
    write_at_most: usize,
    buffer: Vec<u8>,
    pending: std::ops::Range<usize>,
    limit: u64,
    stream: Stream,
}

impl Copier {
    fn new(source: OwnedFd, target: Option<BorrowedFd<'static>>, limit: u64) -> Result<Copier, Error> {
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

    fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match (&self.source, self.target) {
            (_, Some(target)) if !self.pending.is_empty() => Some((target, PollFlags::OUT)),
            (Some(source), _) => Some((source.as_fd(), PollFlags::IN)),
            _ => None,
        }
    }

    fn step(&mut self) {
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
            Err(_) => {
                // Nobody reads any more: let the command feel it.
                self.pending = 0..0;
                self.source = None;
            }
        }
    }

    /// Passes on what is left once everything inside has ended.
    fn finish(&mut self) {
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
struct Feeder {
    source: Option<BorrowedFd<'static>>,
    target: Option<OwnedFd>,
    buffer: Vec<u8>,
    pending: std::ops::Range<usize>,
    /// Whether the end of input is told by a character.
    control_d: bool,
}

impl Feeder {
    fn new(target: Option<OwnedFd>, stdin: &Stdin) -> Result<Feeder, Error> {
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

    fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let target = self.target.as_ref()?;
        if self.pending.is_empty() {
            self.source.map(|source| (source, PollFlags::IN))
        } else {
            Some((target.as_fd(), PollFlags::OUT))
        }
    }

    fn step(&mut self) {
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
    fn end_with_control_d(&mut self, control_d: bool) {
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
