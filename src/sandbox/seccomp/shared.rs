//! The rules of tier `landlock`: what namespaces close in tier `full`.
//!
//! Objects of the host that have no place in the file system (System V IPC, message queues) are out of reach. Calls
//! that change a file's metadata, reach a socket or name another process go to the supervisor. Calls that start a process
//! do not: a call that waits for the supervisor can be interrupted by a signal before it has been received, and then fails
//! with EINTR if the handler does not restart calls, which no program expects of fork(2).

use super::calls::Arch;
use super::calls::{self, Call};
use super::program::{Program, Test};
use super::{ALLOW, ASK, EPERM, ESRCH, SETID};

/// Objects that live in the host's IPC namespace, and attributes that no descriptor or path check covers.
const DENIED: &[Call] = &[
    calls::shmget,
    calls::shmat,
    calls::shmctl,
    calls::shmdt,
    calls::semget,
    calls::semop,
    calls::semctl,
    calls::semtimedop,
    calls::msgget,
    calls::msgsnd,
    calls::msgrcv,
    calls::msgctl,
    calls::mq_open,
    calls::mq_unlink,
    calls::setxattrat,
    calls::removexattrat,
    calls::file_setattr,
    // another process's descriptors
    calls::pidfd_getfd,
];

/// Metadata of files, watches on them, connections and listeners: the supervisor's.
const ASKED: &[Call] = &[
    calls::chown,
    calls::fchown,
    calls::lchown,
    calls::fchownat,
    calls::utime,
    calls::utimes,
    calls::futimesat,
    calls::utimensat,
    calls::setxattr,
    calls::lsetxattr,
    calls::fsetxattr,
    calls::removexattr,
    calls::lremovexattr,
    calls::fremovexattr,
    calls::inotify_add_watch,
    calls::connect,
    calls::bind,
    calls::listen,
];

/// Calls on a process, with the argument that names it; 0 is the caller itself. setpgid(2) is not among them: the kernel
/// takes the caller and its own children alone.
const ON_PROCESS: &[(Call, u32)] = &[
    (calls::prlimit64, 0),
    (calls::sched_setaffinity, 0),
    (calls::sched_getaffinity, 0),
    (calls::sched_setscheduler, 0),
    (calls::sched_getscheduler, 0),
    (calls::sched_setparam, 0),
    (calls::sched_getparam, 0),
    (calls::sched_setattr, 0),
    (calls::sched_getattr, 0),
    (calls::getpgid, 0),
    (calls::getsid, 0),
    (calls::pidfd_open, 0),
];

/// Calls on a process, a group or all processes of a user, with the first argument that says so of a user (PRIO_USER,
/// IOPRIO_WHO_USER). The second names whom; 0 is the caller, its group, or its user on the whole host.
const ON_PROCESSES: &[(Call, u32)] =
    &[(calls::setpriority, 2), (calls::getpriority, 2), (calls::ioprio_set, 3), (calls::ioprio_get, 3)];

/// Signals, where Landlock has no scope for them (before ABI 6).
const SIGNALS: &[Call] = &[
    calls::kill,
    calls::tkill,
    calls::tgkill,
    calls::rt_sigqueueinfo,
    calls::rt_tgsigqueueinfo,
    calls::pidfd_send_signal,
];

/// Sending calls, with the argument that holds the flags.
const SENDS: &[(Call, u32)] = &[(calls::sendto, 3), (calls::sendmsg, 2), (calls::sendmmsg, 3)];

const MSG_FASTOPEN: u32 = 0x2000_0000;

/// What the filter of tier `landlock` has to do by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// Whether a supervisor listens. Without one (inside another jess in this tier, whose supervisor is asked
    /// instead) the calls pass on.
    pub supervised: bool,
    /// The Landlock ABI: below 6 signals are asked about.
    pub landlock_abi: u32,
}

/// The argument that names a process, where `number` is a call on one.
pub fn process_argument(number: i32) -> Option<usize> {
    let named = ON_PROCESS.iter().find(|(call, _)| call.is(number)).map(|(_, argument)| *argument as usize);
    named.or_else(|| ON_PROCESSES.iter().any(|(call, _)| call.is(number)).then_some(1))
}

/// Whether `number` is a call that sends a signal.
pub fn is_signal(number: i32) -> bool {
    SIGNALS.iter().any(|call| call.is(number))
}

impl Shared {
    /// The action for a call that the supervisor decides about.
    pub fn asked(self) -> u32 {
        if self.supervised { ASK } else { ALLOW }
    }

    /// truncate(2): the supervisor's, or nobody's.
    fn truncation(self) -> u32 {
        if self.supervised { ASK } else { EPERM }
    }

    /// Whether signals are decided about here, since Landlock has no scope for them.
    pub(super) fn signals_are_asked_about(self) -> bool {
        self.landlock_abi < 6
    }

    /// The open family. Argument `flags` is loaded. The flags with which C libraries open shared memory and semaphores,
    /// and otherwise temporary files, are asked about: the supervisor answers for those in /dev/shm. The others get `otherwise`.
    pub(super) fn open(self, b: &mut Program, flags: u32, creating: u32, otherwise: u32) {
        // The mode that neither reads nor writes needs no right of Landlock's, and truncates, locks and asks devices.
        b.and(libc::O_ACCMODE as u32);
        b.when(Test::Equal, libc::O_ACCMODE as u32, EPERM);
        b.load_arg(flags);
        // Truncation by a descriptor for reading needs no right to write.
        b.jump(Test::AnyBit, libc::O_TRUNC as u32, 0, 3);
        b.and(libc::O_ACCMODE as u32);
        b.when(Test::Equal, libc::O_RDONLY as u32, EPERM);
        b.load_arg(flags);
        b.jump(Test::AnyBit, creating, 0, 3);
        b.load_arg(flags + 1);
        b.when(Test::AnyBit, SETID, EPERM);
        const OLD: (i32, i32) = (libc::O_NOFOLLOW | libc::O_ACCMODE, libc::O_NOFOLLOW | libc::O_RDWR);
        const MAKING: i32 = libc::O_CREAT | libc::O_EXCL;
        for (bits, value) in [OLD, (MAKING | libc::O_ACCMODE, MAKING | libc::O_RDWR)] {
            b.load_arg(flags);
            b.and(bits as u32);
            b.when(Test::Equal, value as u32, self.asked());
        }
        b.ret(otherwise);
    }

    pub(super) fn rules(self, p: &mut Program) {
        for (call, flags) in SENDS {
            p.on(*call, |b| {
                // A fast open connects without connect(2).
                b.load_arg(*flags);
                b.when(Test::AnyBit, MSG_FASTOPEN, EPERM);
                b.ret(ALLOW);
            });
        }
        for call in DENIED {
            p.always(*call, EPERM);
        }
        for call in ASKED {
            p.always(*call, self.asked());
        }
        for (call, process) in ON_PROCESS {
            p.on(*call, |b| {
                b.load_arg(*process);
                b.when(Test::Equal, 0, ALLOW);
                b.ret(self.asked());
            });
        }
        for (call, of_user) in ON_PROCESSES {
            p.on(*call, |b| {
                b.load_arg(0);
                b.when(Test::Equal, *of_user, ESRCH);
                b.load_arg(1);
                b.when(Test::Equal, 0, ALLOW);
                b.ret(self.asked());
            });
        }
        // Names of shared memory, by the calls that the C library of the architecture uses.
        let names = match p.arch() {
            Arch::X86_64 => [calls::link, calls::unlink],
            Arch::Aarch64 => [calls::linkat, calls::unlinkat],
        };
        for call in names {
            p.always(call, self.asked());
        }
        if self.signals_are_asked_about() {
            for call in SIGNALS {
                p.always(*call, self.asked());
            }
        }
        p.always(calls::truncate, self.truncation());
    }
}
