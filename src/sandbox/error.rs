//! Why a run could not start.

use super::status::{Failure, Step};
use super::tier::Tier;
use rustix::io::Errno;
use std::path::PathBuf;

/// A run that did not start. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request names nothing to run.
    #[error("nothing to run: give a command after `--`")]
    NoCommand,
    /// An argument, path or variable holds a NUL byte, which no program can be given.
    #[error("{what} contains a NUL byte: remove it")]
    Nul {
        /// Which part of the request.
        what: &'static str,
    },
    /// A granted path can't be opened.
    #[error("granting {}: {reason}; check the path, or leave the grant out", crate::sanitise::path(path))]
    Grant {
        /// The path as it was given.
        path: PathBuf,
        /// What the kernel said.
        reason: std::io::Error,
    },
    /// A granted path would replace a part of the sandbox itself.
    #[error(
        "granting {}: this would replace a part of the sandbox itself; grant what is needed below it",
        crate::sanitise::path(path)
    )]
    Reserved {
        /// The path.
        path: PathBuf,
    },
    /// A denied path can't be examined.
    #[error("denying {}: {reason}; check the path", crate::sanitise::path(path))]
    Deny {
        /// The path as it was given.
        path: PathBuf,
        /// What the kernel said.
        reason: std::io::Error,
    },
    /// A denied path is a grant, or has one below it.
    #[error(
        "denying {}: {} is granted; deny something below it, or leave the grant out",
        crate::sanitise::path(path),
        crate::sanitise::path(grant)
    )]
    DenyGrant {
        /// The path as it was given.
        path: PathBuf,
        /// The grant.
        grant: PathBuf,
    },
    /// A denied path does not exist, and nothing here can keep it from being made.
    #[error(
        "denying {}: it does not exist, and making it can't be prevented here; make it first, or grant read-only",
        crate::sanitise::path(path)
    )]
    Unguarded {
        /// The path.
        path: PathBuf,
    },
    /// A run without isolation was asked for, and a tier that it must have.
    #[error(
        "a run without isolation (profile none) has no tier: leave out --require and --tier, or the profile"
    )]
    Contradiction,
    /// A limit under which nothing can run.
    #[error("{what} is {given}; it must be at least {least}")]
    Limit {
        /// Which.
        what: &'static str,
        /// What was asked for.
        given: u64,
        /// What is needed.
        least: u64,
    },
    /// What was named as a control group is none that bounds a run.
    #[error("control group {}: {reason}; choose another --cgroup", crate::sanitise::path(path))]
    Group {
        /// What was named.
        path: PathBuf,
        /// Why it is none.
        reason: String,
    },
    /// A toolchain that was asked for by name is not there.
    #[error("finding toolchain {name}: {}", if *known { "it is not in the home directory".to_owned() } else {
        format!("known are {}", super::toolchain::names().collect::<Vec<_>>().join(", "))
    })]
    Toolchain {
        /// Its name.
        name: String,
        /// Whether jess knows of such a toolchain.
        known: bool,
    },
    /// The caller has more than one thread, so its copy could not run ordinary code.
    #[error(
        "starting a sandbox from a process with {threads} threads (0: /proc is not mounted): start `jess run` as a child, with /proc"
    )]
    Threads {
        /// How many; 0 if /proc does not tell.
        threads: usize,
    },
    /// The kernel refused the namespaces.
    #[error("isolation could not engage: creating namespaces: {errno}; {}", namespace_advice(*errno))]
    Namespaces {
        /// What the kernel said.
        errno: Errno,
    },
    /// The kernel has no Landlock, or it is off.
    #[error(
        "isolation could not engage: this kernel has no Landlock (Linux 5.13, and `landlock` in the lsm= list); nothing was run"
    )]
    NoLandlock,
    /// The host gives a weaker tier than the one that was asked for.
    #[error(
        "isolation could not engage: tier {require} was asked for, and this is tier {tier}; nothing was run"
    )]
    TooWeak {
        /// What was asked for.
        require: Tier,
        /// What was named.
        tier: Tier,
    },
    /// The request holds something that only tier `full` can do.
    #[error(
        "isolation could not engage: tier landlock cannot do this: {what}; leave it out, or use a host where tier full works (jess doctor); nothing was run"
    )]
    NeedsFull {
        /// What.
        what: String,
    },
    /// The private scratch directory can't be made.
    #[error(
        "making a scratch directory in {}: {reason}; set TMPDIR to a directory that you can write to",
        crate::sanitise::path(path)
    )]
    Scratch {
        /// Where.
        path: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// A step of the set-up failed.
    #[error("isolation could not engage: {}{}: {}; nothing was run", failure.step.doing(), on(item.as_ref()), Errno::from_raw_os_error(failure.errno))]
    Engage {
        /// Which, and why.
        failure: Failure,
        /// The path it was about, where there is one.
        item: Option<PathBuf>,
    },
    /// A forbidden thing worked inside.
    #[error("isolation is not effective: inside, {what} was possible; nothing was run")]
    Canary {
        /// What was possible.
        what: &'static str,
    },
    /// The working directory does not exist inside.
    #[error("changing to {} inside: {errno}; grant it with --ro or --rw", crate::sanitise::path(path))]
    Cwd {
        /// The directory.
        path: PathBuf,
        /// What the kernel said.
        errno: Errno,
    },
    /// The program can't be executed.
    #[error("executing {}: {errno}{}", crate::sanitise::path(program), exec_advice(*errno))]
    Exec {
        /// The program.
        program: PathBuf,
        /// What the kernel said.
        errno: Errno,
    },
    /// The inside ended without saying why.
    #[error("the sandbox ended before the command started, without a reason; nothing was run")]
    Vanished,
    /// The inside was ended without saying how the command ended.
    #[error(
        "the sandbox was ended before it could say how the command ended, by somebody else or for want of memory; what the command did until then is done"
    )]
    Lost,
    /// A call of the supervisor failed.
    #[error("{doing}: {errno}")]
    Supervisor {
        /// What was being done.
        doing: &'static str,
        /// What the kernel said.
        errno: Errno,
    },
}

impl Error {
    /// An error of the supervisor's own while doing `doing`.
    pub(super) fn supervisor(doing: &'static str) -> impl Fn(Errno) -> Error {
        move |errno| Error::Supervisor { doing, errno }
    }

    /// Whether the request is wrong, rather than the machine.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Error::NoCommand
                | Error::Nul { .. }
                | Error::Grant { .. }
                | Error::Reserved { .. }
                | Error::Deny { .. }
                | Error::DenyGrant { .. }
                | Error::Toolchain { .. }
                | Error::Contradiction
                | Error::Limit { .. }
                | Error::Group { .. }
                | Error::Cwd { .. }
        )
    }

    /// The exit code of a command that ended with this error.
    pub fn exit(&self) -> crate::exit::Exit {
        use crate::exit::Exit;
        match self {
            e if e.is_usage() => Exit::USAGE,
            Error::Exec { errno, .. } if matches!(*errno, Errno::NOENT | Errno::NOTDIR) => Exit::NOT_FOUND,
            Error::Exec { .. } => Exit::CANNOT_EXECUTE,
            Error::Supervisor { .. } | Error::Threads { .. } | Error::Lost => Exit::INTERNAL,
            _ => Exit::ISOLATION,
        }
    }

    /// Whether the host, not the request, keeps tier `full` from engaging: a weaker tier may still do.
    pub(super) fn lacks_namespaces(&self) -> bool {
        match self {
            Error::Namespaces { .. } => true,
            Error::Engage { failure, .. } => {
                (failure.step as u8) >= Step::IdMap as u8
                    && (failure.step as u8) < Step::Capabilities as u8
                    && matches!(
                        Errno::from_raw_os_error(failure.errno),
                        Errno::PERM
                            | Errno::ACCESS
                            | Errno::NOSYS
                            | Errno::INVAL
                            | Errno::NOSPC
                            | Errno::OPNOTSUPP
                    )
            }
            _ => false,
        }
    }

    /// The step that failed, for the report.
    pub fn step(&self) -> Option<Step> {
        match self {
            Error::Engage { failure, .. } => Some(failure.step),
            Error::Exec { .. } => Some(Step::Exec),
            Error::Cwd { .. } => Some(Step::Cwd),
            Error::Canary { .. } => Some(Step::Canary),
            _ => None,
        }
    }
}

fn on(item: Option<&PathBuf>) -> String {
    item.map(|path| format!(" ({})", crate::sanitise::path(path))).unwrap_or_default()
}

fn namespace_advice(errno: Errno) -> &'static str {
    match errno {
        Errno::NOSPC => "user namespaces are switched off here: raise /proc/sys/user/max_user_namespaces",
        Errno::PERM | Errno::ACCESS => {
            "unprivileged user namespaces are forbidden here: on Ubuntu set kernel.apparmor_restrict_unprivileged_userns=0, \
             in a container allow the clone and unshare calls"
        }
        Errno::NOSYS | Errno::INVAL => {
            "this kernel has no user namespaces or no clone3: use Linux 5.12 or later"
        }
        _ => "see user_namespaces(7)",
    }
}

fn exec_advice(errno: Errno) -> &'static str {
    match errno {
        Errno::NOENT | Errno::NOTDIR => {
            "; inside, only system directories and granted paths exist (--ro PATH)"
        }
        _ => "",
    }
}
