//! The status pipe: how the inside tells the outside what became of a run.
//!
//! One close-on-exec pipe carries fixed-size records. A set-up failure names its step and errno, so it cannot be
//! mistaken for the command's own exit; the command can't forge a record, since its copy of the pipe closes at exec
//! and PID 1's can't be opened (PID 1 is not dumpable).

use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// Where in the set-up something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Step {
    /// The supervisor went away before the set-up was done.
    Supervisor = 1,
    /// Writing the user and group maps.
    IdMap,
    /// Becoming the mapped user.
    SetIds,
    /// Bringing the loopback interface up.
    Loopback,
    /// Routing every address to the loopback interface.
    Routes,
    /// Making the listening sockets inside.
    Listener,
    /// Setting the host name.
    HostName,
    /// Cloning a host path for the private root; the value is the index of the mount.
    OpenTree,
    /// Mounting the new root.
    Root,
    /// Attaching a path to the private root; the value is the index of the mount.
    Attach,
    /// Covering or pinning a path below a grant; the value is its index.
    Protect,
    /// Mounting a scratch file system.
    Scratch,
    /// Mounting devpts.
    Devpts,
    /// Mounting procfs.
    Proc,
    /// Hiding a part of procfs.
    ProcMask,
    /// Writing a file that exists only inside; the value is its index.
    Inject,
    /// Changing to the new root.
    Pivot,
    /// Making the root read-only.
    ReadOnly,
    /// Dropping capabilities.
    Capabilities,
    /// Setting no_new_privs.
    NoNewPrivs,
    /// Starting the target process.
    Fork,
    /// Making a terminal for the command.
    Terminal,
    /// Making the target a session of its own.
    Session,
    /// Connecting its standard streams.
    Stdio,
    /// Setting a resource limit.
    Limits,
    /// Changing to the working directory.
    Cwd,
    /// Entering the Landlock domain.
    Landlock,
    /// Loading the seccomp filter.
    Seccomp,
    /// A forbidden thing worked: the value says which (index into [`super::canary::TRIES`]).
    Canary,
    /// Executing the program.
    Exec,
    /// Handing the supervisor its end of the filter.
    Notify,
    /// Joining the control group.
    Group,
}

impl Step {
    const ALL: [Step; 32] = [
        Step::Supervisor,
        Step::IdMap,
        Step::SetIds,
        Step::Loopback,
        Step::Routes,
        Step::Listener,
        Step::HostName,
        Step::OpenTree,
        Step::Root,
        Step::Attach,
        Step::Protect,
        Step::Scratch,
        Step::Devpts,
        Step::Proc,
        Step::ProcMask,
        Step::Inject,
        Step::Pivot,
        Step::ReadOnly,
        Step::Capabilities,
        Step::NoNewPrivs,
        Step::Fork,
        Step::Terminal,
        Step::Session,
        Step::Stdio,
        Step::Limits,
        Step::Cwd,
        Step::Landlock,
        Step::Seccomp,
        Step::Canary,
        Step::Exec,
        Step::Notify,
        Step::Group,
    ];

    /// What was being done, for an error message.
    pub const fn doing(self) -> &'static str {
        match self {
            Step::Supervisor => "waiting for the supervisor",
            Step::IdMap => "writing the user and group maps",
            Step::SetIds => "becoming the mapped user",
            Step::Loopback => "bringing up the loopback interface",
            Step::Routes => "routing every address to the loopback interface",
            Step::Listener => "making the listening sockets inside",
            Step::HostName => "setting the host name",
            Step::OpenTree => "cloning a host path for the private root",
            Step::Root => "mounting the new root",
            Step::Attach => "attaching a path to the private root",
            Step::Protect => "protecting a path below a grant",
            Step::Scratch => "mounting a scratch file system",
            Step::Devpts => "mounting devpts",
            Step::Proc => "mounting a fresh /proc",
            Step::ProcMask => "hiding a part of /proc",
            Step::Inject => "writing a file that exists only inside",
            Step::Pivot => "changing to the new root",
            Step::ReadOnly => "making the root read-only",
            Step::Capabilities => "dropping capabilities",
            Step::NoNewPrivs => "setting no_new_privs",
            Step::Fork => "starting the target process",
            Step::Terminal => "making a terminal for the command",
            Step::Session => "making the target a session of its own",
            Step::Stdio => "connecting the standard streams",
            Step::Limits => "setting a resource limit",
            Step::Cwd => "changing to the working directory",
            Step::Landlock => "entering the Landlock domain",
            Step::Seccomp => "loading the seccomp filter",
            Step::Canary => "checking that forbidden things fail",
            Step::Exec => "executing the program",
            Step::Notify => "handing the supervisor its end of the filter",
            Step::Group => "joining the control group",
        }
    }

    fn from_byte(byte: u8) -> Option<Step> {
        Step::ALL.into_iter().find(|step| *step as u8 == byte)
    }
}

/// A failed step: which, why, and of which item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The step.
    pub step: Step,
    /// The kernel's answer; 0 where there is none.
    pub errno: i32,
    /// Which item of the plan, where the step has several.
    pub item: u32,
}

impl Failure {
    /// A failure of a step that has no items.
    pub fn at(step: Step) -> impl Fn(Errno) -> Failure {
        Failure::of(step, 0)
    }

    /// A failure with item `item` of a step.
    pub fn of(step: Step, item: u32) -> impl Fn(Errno) -> Failure {
        move |errno| Failure { step, errno: errno.raw_os_error(), item }
    }
}

/// What one record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// The set-up of PID 1 is done; only the command's own process is still to be made.
    Ready,
    /// The command was stopped at its terminal.
    Suspended,
    /// The set-up failed; the command did not run.
    Failed(Failure),
    /// The command ended by itself with this status.
    Exited(u8),
    /// A signal ended the command.
    Signalled {
        /// Its number.
        signal: u8,
        /// Whether a core would have been dumped.
        core: bool,
    },
}

/// Bytes of a record on the pipe: below PIPE_BUF, so that a write is atomic.
pub const RECORD_LEN: usize = 12;

impl Record {
    fn encode(self) -> [u8; RECORD_LEN] {
        let mut bytes = [0; RECORD_LEN];
        match self {
            Record::Ready => bytes[0] = b'R',
            Record::Suspended => bytes[0] = b'Z',
            Record::Failed(failure) => {
                bytes[0] = b'F';
                bytes[1] = failure.step as u8;
                bytes[4..8].copy_from_slice(&failure.errno.to_le_bytes());
                bytes[8..12].copy_from_slice(&failure.item.to_le_bytes());
            }
            Record::Exited(code) => {
                bytes[0] = b'E';
                bytes[1] = code;
            }
            Record::Signalled { signal, core } => {
                bytes[0] = b'S';
                bytes[1] = signal;
                bytes[2] = u8::from(core);
            }
        }
        bytes
    }

    /// The record in `bytes`; `None` if it is none that this version writes.
    pub fn decode(bytes: &[u8; RECORD_LEN]) -> Option<Record> {
        let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match bytes[0] {
            b'R' => Some(Record::Ready),
            b'Z' => Some(Record::Suspended),
            b'F' => Some(Record::Failed(Failure {
                step: Step::from_byte(bytes[1])?,
                errno: i32::from_le_bytes(word(4)),
                item: u32::from_le_bytes(word(8)),
            })),
            b'E' => Some(Record::Exited(bytes[1])),
            b'S' => Some(Record::Signalled { signal: bytes[1], core: bytes[2] != 0 }),
            _ => None,
        }
    }

    /// Writes the record. A write that fails has no reader left to tell.
    pub fn send(self, pipe: BorrowedFd<'_>) {
        let _ = rustix::io::retry_on_intr(|| rustix::io::write(pipe, &self.encode()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_survives_the_pipe() {
        let mut records = vec![
            Record::Ready,
            Record::Suspended,
            Record::Exited(0),
            Record::Exited(255),
            Record::Signalled { signal: 9, core: true },
        ];
        records.extend(Step::ALL.map(|step| Record::Failed(Failure { step, errno: 13, item: 7 })));
        for record in records {
            assert_eq!(Record::decode(&record.encode()), Some(record));
        }
    }

    #[test]
    fn an_unknown_record_is_not_taken_for_success() {
        assert_eq!(Record::decode(&[0; RECORD_LEN]), None);
        let mut bytes = Record::Failed(Failure { step: Step::Exec, errno: 2, item: 0 }).encode();
        bytes[1] = 200;
        assert_eq!(Record::decode(&bytes), None);
    }
}
