//! Outside, while the command runs: streams, the time limit, signals, and how it ended.

use super::crowd::{Crowd, Seen};
use super::denial::{Denials, Kind};
use super::error::Error;
use super::notify::{Service, Used};
use super::spec::Output;
use super::status::Record;
use super::streams::{Copier, Feeder, Stream};
use super::terminal::Operator;
use super::tier::Tier;
use super::{Sandbox, sys};
use crate::exit::Exit;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd};
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
    /// Whether the run was ended for having more processes than it may.
    pub overcrowded: bool,
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
            Output::Aside => (Some(rustix::stdio::stderr()), Some(rustix::stdio::stderr())),
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
        let service = self.supervisor.take().map(Service::start).transpose();
        let service = service.map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
            Error::supervisor("starting the thread that answers calls")(errno)
        })?;
        let mut crowd = self.crowd();
        loop {
            let mut waits = Waits::default();
            let ended = waits.add(self.pidfd.as_fd(), PollFlags::IN);
            let signal = waits.add(signals.as_fd(), PollFlags::IN);
            let stopped = self.stopped.as_ref().map(|fd| waits.add(fd.as_fd(), PollFlags::IN));
            let told = operator.as_ref().map(|_| waits.add(self.status.as_fd(), PollFlags::IN));
            let copies: Vec<_> =
                streams.iter().map(|s| s.interest().map(|(fd, flags)| waits.add(fd, flags))).collect();
            let feed = input.interest().map(|(fd, flags)| waits.add(fd, flags));
            let mut wait = stop.wait_at_most();
            if !slim {
                wait = Some(wait.unwrap_or(SETTLED).min(SETTLED));
            }
            if let Some(crowd) = &crowd {
                let look = crowd.next_look();
                wait = Some(wait.unwrap_or(look).min(look));
            }
            let ready = waits.wait(wait).map_err(Error::supervisor("waiting for the command"))?;
            if !slim && self.started.elapsed() >= SETTLED {
                sys::release_image();
                slim = true;
            }
            let is_ready =
                |index: Option<usize>| index.is_some_and(|i| ready.get(i).copied().unwrap_or(false));
            drop(waits);
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
            match crowd.as_mut().map(Crowd::look) {
                Some(Seen::Full) => note_full(service.as_ref()),
                Some(Seen::Overrun) => {
                    note_full(service.as_ref());
                    stop.overcrowded();
                }
                _ => {}
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
        let (mut denials, used) = service.map_or_else(Default::default, Service::end);
        let ending = self.ending(&stop)?;
        let overcrowded = stop.reason == Reason::Overcrowded;
        if overcrowded && denials.is_empty() {
            denials.note(Kind::Limit, ALLOWED.into(), Some("--max-processes".into()));
        }
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
        let out_of_memory = killed > 0;
        Ok(Outcome { ending, duration, usage, stdout, stderr, denials, used, out_of_memory, overcrowded })
    }

    /// Tier `landlock`: who counts the run's processes, where no control group does.
    fn crowd(&self) -> Option<Crowd> {
        let counted = self.plan.tier == Tier::Landlock && self.group.is_none();
        let limit = self.plan.limits.processes.filter(|_| counted)?;
        Some(Crowd::new(limit, self.pid))
    }

    /// The command was stopped at its terminal: so is jess, with its process group, until the operator goes on.
    /// Without a terminal whose foreground jess is in there is no operator who could, and the command alone is stopped.
    fn suspend(&self, operator: &Operator) {
        if !operator.is_in_front() {
            return;
        }
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
            (Some(Record::Ready | Record::Suspended), _) => Err(Error::Lost),
            (_, Reason::TimeLimit) => Ok(Ending::TimedOut),
            (None, Reason::Overcrowded) => Ok(Ending::Signalled { signal: libc::SIGKILL as u8, core: false }),
            (Some(Record::Exited(code)), _) => Ok(Ending::Exited(code)),
            (Some(Record::Signalled { signal, core }), _) => Ok(Ending::Signalled { signal, core }),
            (None, Reason::Told(signal)) => Ok(Ending::Stopped(signal as u8)),
            (None, Reason::None) => Err(Error::Lost),
        }
    }
}

/// What a run has too many of.
const ALLOWED: &str = "the allowed processes";

fn note_full(service: Option<&Service>) {
    if let Some(service) = service {
        service.notes().note(Kind::Limit, ALLOWED.to_owned(), Some("--max-processes".to_owned()));
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
    Overcrowded,
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

    /// Too many processes: killed at once.
    fn overcrowded(&mut self) {
        if !self.killed {
            self.reason = Reason::Overcrowded;
            self.kill_at = Some(Instant::now());
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
