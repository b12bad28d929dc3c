//! A filter that also tells the supervisor what the command uses and what it is refused, and the verdict of the filter
//! without that.
//!
//! The watched filter asks about every call that takes a path, and wherever the plain one refuses. The supervisor runs
//! the plain program on the registers of the call and answers what that says, so watching never opens anything: only a
//! call that the plain filter allows goes on.

use super::calls::{self, Arch, Call};
use super::program::{Program, Test, verdict};
use super::{ALLOW, ASK, EAFNOSUPPORT, EPERM, Policy};
use libc::sock_filter;
use rustix::io::Errno;

/// What a call does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    /// Examines it.
    Look,
    /// Reads or lists it.
    Read,
    /// Executes it.
    Execute,
    /// Changes its content.
    Write,
    /// Makes it where it is not there.
    Make,
    /// Replaces, moves or removes the name.
    Name,
}

/// A path argument: the argument that names its directory, if there is one, and the path itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// What is done.
    pub kind: Use,
    /// The argument with the directory's descriptor.
    pub directory: Option<usize>,
    /// The argument with the path.
    pub path: usize,
}

/// Calls with one path whose use does not depend on flags: the use, the directory's argument, the path's.
const PLAIN: &[(Call, Use, Option<usize>, usize)] = &[
    (calls::stat, Use::Look, None, 0),
    (calls::lstat, Use::Look, None, 0),
    (calls::access, Use::Look, None, 0),
    (calls::readlink, Use::Look, None, 0),
    (calls::readlinkat, Use::Look, Some(0), 1),
    (calls::faccessat, Use::Look, Some(0), 1),
    (calls::faccessat2, Use::Look, Some(0), 1),
    (calls::newfstatat, Use::Look, Some(0), 1),
    (calls::fstatat, Use::Look, Some(0), 1),
    (calls::statx, Use::Look, Some(0), 1),
    (calls::chdir, Use::Look, None, 0),
    (calls::execve, Use::Execute, None, 0),
    (calls::execveat, Use::Execute, Some(0), 1),
    (calls::creat, Use::Make, None, 0),
    (calls::truncate, Use::Write, None, 0),
    (calls::mkdir, Use::Make, None, 0),
    (calls::mkdirat, Use::Make, Some(0), 1),
    (calls::mknod, Use::Make, None, 0),
    (calls::mknodat, Use::Make, Some(0), 1),
    (calls::rmdir, Use::Name, None, 0),
    (calls::unlink, Use::Name, None, 0),
    (calls::unlinkat, Use::Name, Some(0), 1),
    (calls::symlink, Use::Make, None, 1),
    (calls::symlinkat, Use::Make, Some(1), 2),
];

/// The uses, directories' arguments and paths' arguments of a call with two paths.
type Pair = [(Use, Option<usize>, usize); 2];

/// Calls with two paths.
const PAIRS: &[(Call, Pair)] = &[
    (calls::rename, [(Use::Name, None, 0), (Use::Name, None, 1)]),
    (calls::renameat, [(Use::Name, Some(0), 1), (Use::Name, Some(2), 3)]),
    (calls::renameat2, [(Use::Name, Some(0), 1), (Use::Name, Some(2), 3)]),
    (calls::link, [(Use::Read, None, 0), (Use::Make, None, 1)]),
    (calls::linkat, [(Use::Read, Some(0), 1), (Use::Make, Some(2), 3)]),
];

/// Calls that examine a descriptor when they are given this flag, with the argument that holds the flags.
const BY_DESCRIPTOR: &[(Call, u32)] = &[(calls::newfstatat, 3), (calls::fstatat, 3), (calls::statx, 2)];

/// Asks about every call with a path, and about connections.
pub(super) fn rules(p: &mut Program) {
    for (call, flags) in BY_DESCRIPTOR {
        p.on(*call, |b| {
            b.load_arg(*flags);
            b.when(Test::AnyBit, libc::AT_EMPTY_PATH as u32, ALLOW);
            b.ret(ASK);
        });
    }
    for call in [calls::open, calls::openat, calls::connect] {
        p.always(call, ASK);
    }
    for (call, ..) in PLAIN {
        p.always(*call, ASK);
    }
    for (call, ..) in PAIRS {
        p.always(*call, ASK);
    }
}

/// Asks wherever the program refuses.
pub(super) fn tell_of_refusals(program: &mut [sock_filter]) {
    let ret = (libc::BPF_RET | libc::BPF_K) as u16;
    for i in program.iter_mut().filter(|i| i.code == ret && matches!(i.k, EPERM | EAFNOSUPPORT)) {
        i.k = ASK;
    }
}

/// The paths of a call.
pub fn touches(number: i32, args: [u64; 6]) -> Vec<Touch> {
    let by_flags = |flags: u64, directory, path| {
        let flags = flags as i32;
        let kind = if flags & libc::O_PATH != 0 {
            Use::Look
        } else if flags & (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) != 0 {
            Use::Make
        } else if flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0 {
            Use::Write
        } else {
            Use::Read
        };
        vec![Touch { kind, directory, path }]
    };
    if calls::open.is(number) {
        return by_flags(args[1], None, 0);
    }
    if calls::openat.is(number) {
        return by_flags(args[2], Some(0), 1);
    }
    if let Some((_, kind, directory, path)) = PLAIN.iter().find(|(call, ..)| call.is(number)) {
        return vec![Touch { kind: *kind, directory: *directory, path: *path }];
    }
    let pair = PAIRS.iter().find(|(call, _)| call.is(number));
    pair.into_iter()
        .flat_map(|(_, paths)| paths)
        .map(|(kind, directory, path)| Touch { kind: *kind, directory: *directory, path: *path })
        .collect()
}

/// What the filter without watching says about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// The kernel carries it out.
    Allow,
    /// It fails with this.
    Refuse(Errno),
    /// The supervisor decides.
    Ask,
}

/// The filter without watching.
pub struct Plain(Vec<sock_filter>);

impl Plain {
    /// That of `policy`.
    pub fn of(policy: Policy) -> Plain {
        Plain(super::program(Policy { watched: false, ..policy }))
    }

    /// Its answer. What it would kill for, or does not know, is refused.
    pub fn rule(&self, number: i32, args: [u64; 6]) -> Ruling {
        let action = verdict(&self.0, Arch::HERE.audit(), number as u32, args);
        let errno = (action & libc::SECCOMP_RET_DATA) as i32;
        match action & libc::SECCOMP_RET_ACTION_FULL {
            ALLOW => Ruling::Allow,
            ASK => Ruling::Ask,
            libc::SECCOMP_RET_ERRNO => Ruling::Refuse(Errno::from_raw_os_error(errno)),
            _ => Ruling::Refuse(Errno::PERM),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shared;
    use super::*;

    fn policies() -> [Policy; 2] {
        let shared = Shared { supervised: true, landlock_abi: 7 };
        [Policy::default(), Policy { shared: Some(shared), ..Policy::default() }]
    }

    /// Every call, with arguments that decide: whatever the watched filter lets pass by itself, the plain one does too,
    /// and where it asks, the plain one is never to kill.
    #[test]
    fn watching_opens_nothing() {
        let arch = Arch::HERE.audit();
        let values = [0, 1, 2, 16, 0o4755, 0x5412, 0x1000_0000, 0x1000, 0x0400_0040, u64::MAX];
        for policy in policies() {
            let (plain, watched) =
                (Plain::of(policy), super::super::program(Policy { watched: true, ..policy }));
            for number in 0..480 {
                for value in values {
                    for at in 0..4 {
                        let mut args = [0; 6];
                        args[at] = value;
                        let told = verdict(&watched, arch, number, args);
                        let ruled = plain.rule(number as i32, args);
                        match told {
                            ALLOW => assert_eq!(ruled, Ruling::Allow, "{number} {args:?}"),
                            ASK => {}
                            refused => {
                                let errno = Errno::from_raw_os_error((refused & 0xffff) as i32);
                                assert_eq!(ruled, Ruling::Refuse(errno), "{number} {args:?}");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_refusal_is_told_and_stays_one() {
        let policy = Policy::default();
        let watched = super::super::program(Policy { watched: true, ..policy });
        for call in [calls::ptrace, calls::mount, calls::unshare] {
            let number = call.on(Arch::HERE).unwrap();
            assert_eq!(verdict(&watched, Arch::HERE.audit(), number, [0; 6]), ASK);
            assert_eq!(Plain::of(policy).rule(number as i32, [0; 6]), Ruling::Refuse(Errno::PERM));
        }
    }

    #[test]
    fn opens_are_told_apart_by_their_flags() {
        let kind = |flags: i32| touches(libc::SYS_openat as i32, [0, 0, flags as u64, 0, 0, 0])[0].kind;
        assert_eq!(kind(libc::O_RDONLY | libc::O_CLOEXEC), Use::Read);
        assert_eq!(kind(libc::O_RDONLY | libc::O_DIRECTORY), Use::Read);
        assert_eq!(kind(libc::O_PATH | libc::O_DIRECTORY), Use::Look);
        assert_eq!(kind(libc::O_WRONLY | libc::O_APPEND), Use::Write);
        assert_eq!(kind(libc::O_RDWR | libc::O_CREAT), Use::Make);
        assert_eq!(touches(libc::SYS_linkat as i32, [0; 6]).len(), 2);
        assert!(touches(libc::SYS_read as i32, [0; 6]).is_empty());
    }
}
