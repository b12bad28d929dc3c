//! How many processes and threads a run of tier `landlock` has.
//!
//! Nothing there counts them in the kernel: RLIMIT_NPROC counts all processes of the user on the host and does not bind
//! root, and a control group needs delegation. So the supervisor looks, fifty times a second. Who reaches the limit
//! cannot start more until there is room again (its processes get a soft RLIMIT_NPROC that the user is beyond already,
//! which gives EAGAIN as elsewhere). That is a courtesy: a hostile command takes it back, and root is not bound by it.
//! A run that has more than it may all the same is ended.

use super::notify::processes;
use rustix::process::{Pid, Resource, Rlimit};
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// How often processes are looked at, and how often where there are many on the host.
const EVERY: Duration = Duration::from_millis(20);
const EVERY_IN_A_CROWD: Duration = Duration::from_millis(5);

/// The part of a processor that looking may take, one in this many, and the longest pause that is made for it.
const SHARE: u32 = 10;
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// How often newcomers are looked for before the rest is left to the next look.
const ROUNDS: usize = 4;

/// The soft limit of processes that may start no more: the user has more already.
const NONE: u64 = 1;

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// There is room.
    Room,
    /// There is none: until there is, none can be started.
    Full,
    /// There are more than there may be.
    Overrun,
}

/// The processes of one run, counted.
#[derive(Debug)]
pub struct Crowd {
    limit: u64,
    /// More than this many end the run.
    most: u64,
    house: i32,
    own: Rlimit,
    load: Option<File>,
    /// The process number that the kernel gave last.
    newest: u64,
    full: bool,
    next: Instant,
}

impl Crowd {
    /// That of the descendants of `house`, which may be `limit` processes and threads.
    pub fn new(limit: u64, house: i32) -> Crowd {
        // Root is bound by no soft limit.
        let grace = if rustix::process::geteuid().is_root() { 0 } else { (limit / 2).max(32) };
        Crowd {
            limit,
            most: limit.saturating_add(grace),
            house,
            own: rustix::process::getrlimit(Resource::Nproc),
            load: File::open("/proc/loadavg").ok(),
            newest: 0,
            full: false,
            next: Instant::now() + EVERY,
        }
    }

    /// How long until the next look is due.
    pub fn next_look(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Looks, if it is time.
    pub fn look(&mut self) -> Seen {
        if Instant::now() < self.next {
            return if self.full { Seen::Full } else { Seen::Room };
        }
        let began = processor_time();
        let (threads, newest) = self.of_the_kernel();
        let started = newest != self.newest;
        self.newest = newest;
        let seen = if !self.full && (!started || threads <= self.limit) { Seen::Room } else { self.count() };
        let pause = if threads > self.limit / 2 && started { EVERY_IN_A_CROWD } else { EVERY };
        let spent = processor_time().saturating_sub(began);
        self.next = Instant::now() + pause.max((spent * SHARE).min(PAUSE_MAX));
        seen
    }

    /// Threads on the whole host, and the process number that was given last: of those that are not more than the limit
    /// the run's are not either, and where none was given none was started. Where the kernel does not say, there may be
    /// any number.
    fn of_the_kernel(&self) -> (u64, u64) {
        let unknown = (u64::MAX, self.newest.wrapping_add(1));
        let mut text = [0u8; 128];
        let Some(n) = self.load.as_ref().and_then(|load| load.read_at(&mut text, 0).ok()) else {
            return unknown;
        };
        text.get(..n).and_then(of_load).unwrap_or(unknown)
    }

    fn count(&mut self) -> Seen {
        let (mut found, threads) = members(self.house, self.most);
        if threads > self.most {
            return Seen::Overrun;
        }
        if threads < self.limit {
            if std::mem::take(&mut self.full) {
                self.allow(&found, self.own.current);
            }
            return Seen::Room;
        }
        self.full = true;
        let mut bound = HashSet::new();
        for _ in 0..ROUNDS {
            found.retain(|pid| bound.insert(*pid));
            if found.is_empty() {
                break;
            }
            self.allow(&found, Some(NONE));
            let (now, threads) = members(self.house, self.most);
            if threads > self.most {
                return Seen::Overrun;
            }
            found = now;
        }
        Seen::Full
    }

    fn allow(&self, members: &[i32], current: Option<u64>) {
        let limit = Rlimit { current, maximum: self.own.maximum };
        for pid in members.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            let _ = rustix::process::prlimit(Some(pid), Resource::Nproc, limit);
        }
    }
}

/// The threads of the whole host, and the process number that was given last, from the content of /proc/loadavg.
fn of_load(text: &[u8]) -> Option<(u64, u64)> {
    let mut fields = std::str::from_utf8(text).ok()?.split_ascii_whitespace().skip(3);
    let (_, threads) = fields.next()?.split_once('/')?;
    Some((threads.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The threads of the whole host now.
pub fn threads_of_the_host() -> Option<u64> {
    of_load(&std::fs::read("/proc/loadavg").ok()?).map(|(threads, _)| threads)
}

/// What this thread has had of a processor: on a busy machine looking takes long and costs no more.
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The processes below `house`, and their threads together. Not many more than `most` are looked at.
fn members(house: i32, most: u64) -> (Vec<i32>, u64) {
    let (mut found, mut threads) = (Vec::new(), 0);
    let mut parents = vec![house];
    while let Some(parent) = parents.pop() {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{parent}/task")) else { continue };
        for task in tasks.flatten() {
            threads += u64::from(parent != house);
            match std::fs::read_to_string(task.path().join("children")) {
                Ok(children) => {
                    let children =
                        children.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
                    let before = parents.len();
                    parents.extend(children);
                    found.extend_from_slice(parents.get(before..).unwrap_or_default());
                }
                // A kernel without that file (CONFIG_PROC_CHILDREN).
                Err(_) if parent == house => return by_parents(house),
                Err(_) => {}
            }
        }
        if threads > most {
            break;
        }
    }
    (found, threads)
}

/// The same by the parents of all processes of the host.
fn by_parents(house: i32) -> (Vec<i32>, u64) {
    let all = processes::all();
    let found = processes::below(house, &all);
    let threads = found.iter().filter_map(|pid| all.get(pid)).map(|known| known.threads.max(1)).sum();
    (found, threads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    struct Sleeper(Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn sleeper() -> Sleeper {
        Sleeper(Command::new("sleep").arg("60").spawn().unwrap())
    }

    #[test]
    fn processes_and_their_threads_are_counted_alike_in_both_ways() {
        let own = std::process::id() as i32;
        let child = sleeper();
        let pid = child.0.id() as i32;
        let (found, threads) = members(own, 1 << 20);
        assert!(found.contains(&pid) && threads >= 1, "{found:?}");
        let (found, threads) = by_parents(own);
        assert!(found.contains(&pid) && threads >= 1, "{found:?}");
    }

    #[test]
    fn a_full_house_is_told_and_an_overrun_one_too() {
        let house = sleeper();
        let mut crowd = Crowd::new(1, house.0.id() as i32);
        crowd.next = Instant::now();
        assert_eq!(crowd.look(), Seen::Room, "nobody is below it");
        let own = std::process::id() as i32;
        let (_a, _b) = (sleeper(), sleeper());
        let mut crowd = Crowd { most: 0, ..Crowd::new(1, own) };
        assert_eq!(crowd.count(), Seen::Overrun);
    }
}
