//! The seccomp filter: which part of the kernel the command can reach.
//!
//! Loaded last, so that the calls that built the sandbox can be refused too. Four kinds of rule: calls that fail
//! with EPERM, calls that answer ENOSYS so that programs use an older form whose arguments can be checked, calls
//! whose arguments decide, and (in tier `landlock`, where no namespace closes them) calls that the supervisor decides
//! about and carries out itself. Argument checks look at the low 32 bits, as the kernel does. A foreign architecture,
//! and the x32 interface, kill the process.

pub mod calls;
mod program;
mod requests;
mod shared;
#[cfg(test)]
mod tests;
mod watch;

use calls::{Arch, Call};
use libc::sock_filter;
use program::{Program, Test};
pub use shared::{Shared, is_signal, process_argument};
pub use watch::{Plain, Ruling, Touch, Use, touches};

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
/// Asks the supervisor.
const ASK: u32 = libc::SECCOMP_RET_USER_NOTIF;
const EAFNOSUPPORT: u32 = libc::SECCOMP_RET_ERRNO | libc::EAFNOSUPPORT as u32;
const ENOTTY: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOTTY as u32;
const ESRCH: u32 = libc::SECCOMP_RET_ERRNO | libc::ESRCH as u32;

/// Calls that make a name and take no mode.
const MAKING: &[Call] = &[
    calls::rename,
    calls::renameat,
    calls::renameat2,
    calls::link,
    calls::linkat,
    calls::symlink,
    calls::symlinkat,
];

/// Calls that remove one.
const REMOVING: &[Call] = &[calls::unlink, calls::unlinkat, calls::rmdir];

/// Whether `number` is a call that makes, moves or removes a name without opening a file that is there.
pub fn is_naming(number: i32) -> bool {
    let others = [calls::mkdir, calls::mkdirat, calls::mknod, calls::mknodat, calls::creat];
    MAKING.iter().chain(REMOVING).chain(&others).any(|call| call.is(number))
}

/// What a debugger does to the processes that it traces: fails with EPERM without [`Policy::ptrace`].
const TRACING: &[Call] = &[calls::ptrace, calls::process_vm_readv, calls::process_vm_writev];

/// Calls that fail with EPERM.
const DENIED: &[Call] = &[
    // namespaces, mounts, roots
    calls::unshare,
    calls::setns,
    calls::mount,
    calls::umount2,
    calls::pivot_root,
    calls::chroot,
    calls::open_tree,
    calls::open_tree_attr,
    calls::move_mount,
    calls::fsopen,
    calls::fsconfig,
    calls::fsmount,
    calls::fspick,
    calls::mount_setattr,
    // keyrings are not divided by namespaces
    calls::add_key,
    calls::request_key,
    calls::keyctl,
    // other processes' memory
    calls::process_madvise,
    calls::process_mrelease,
    calls::kcmp,
    // kernel surface with a long record of escapes, and no use for a build or an analysis
    calls::bpf,
    calls::userfaultfd,
    calls::perf_event_open,
    calls::io_uring_setup,
    calls::io_uring_enter,
    calls::io_uring_register,
    calls::vmsplice,
    calls::lookup_dcookie,
    calls::fanotify_init,
    // file handles reach files without a path
    calls::name_to_handle_at,
    calls::open_by_handle_at,
    // the machine itself
    calls::init_module,
    calls::finit_module,
    calls::delete_module,
    calls::kexec_load,
    calls::kexec_file_load,
    calls::reboot,
    calls::swapon,
    calls::swapoff,
    calls::acct,
    calls::quotactl,
    calls::quotactl_fd,
    calls::syslog,
    calls::settimeofday,
    calls::clock_settime,
    calls::clock_adjtime,
    calls::adjtimex,
    calls::sethostname,
    calls::setdomainname,
    calls::vhangup,
    calls::nfsservctl,
    calls::iopl,
    calls::ioperm,
    calls::modify_ldt,
    calls::uselib,
    calls::ustat,
    calls::sysfs,
    calls::_sysctl,
    // memory placement of other processes
    calls::migrate_pages,
    calls::move_pages,
];

/// Calls whose arguments sit behind a pointer that a filter can't read: programs fall back to the older form.
const ABSENT: &[Call] = &[calls::clone3, calls::openat2];

/// The highest call number this table was written for (file_setattr, Linux 6.17); newer ones answer ENOSYS.
const HIGHEST_KNOWN: u32 = 469;

/// The set-user-id and set-group-id bits: files made by the command keep the owner's identity outside.
const SETID: u32 = libc::S_ISUID | libc::S_ISGID;

const NAMESPACE_FLAGS: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;

/// The plain Linux personality, the query, and a debugger's ADDR_NO_RANDOMIZE.
const PERSONALITIES: [u32; 3] = [0, u32::MAX, 0x0004_0000];

/// TCP with IPPROTO_MPTCP, raw and other protocols pass filters that know TCP by its number alone.
const PROTOCOLS: [u32; 3] = [0, libc::IPPROTO_TCP as u32, libc::IPPROTO_UDP as u32];

/// What the filter leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// Whether new AF_UNIX sockets may be made. Off: a granted directory may hold a socket of the host.
    pub unix_sockets: bool,
    /// Whether the command may trace its own processes. Off: nothing is traced.
    pub ptrace: bool,
    /// Whether calls that make a name go to a supervisor ([`super::notify::creation`]), and in tier `landlock` those that
    /// open, move and remove one too (`notify::divided`).
    pub guarded: bool,
    /// Whether PID 1 is asked about chmod with the set-group-id bit, which is no privilege on a directory. Tier `full`
    /// alone.
    pub shared_directories: bool,
    /// Whether the supervisor is told of every path that is used, and of every refusal ([`watch`]).
    pub watched: bool,
    /// Set in tier `landlock`, where the command shares the host's namespaces.
    pub shared: Option<Shared>,
}

impl Policy {
    /// The action for a call that may make a name.
    fn making(self) -> u32 {
        if self.guarded { ASK } else { ALLOW }
    }
}

/// The filter's program.
pub fn program(policy: Policy) -> Vec<sock_filter> {
    program_for(Arch::HERE, policy)
}

fn program_for(arch: Arch, policy: Policy) -> Vec<sock_filter> {
    let mut p = Program::new(arch);
    p.load(4); // arch
    p.jump(Test::Equal, arch.audit(), 1, 0);
    p.ret(KILL);
    p.load(0); // nr
    if arch == Arch::X86_64 {
        p.when(Test::AnyBit, 0x4000_0000, KILL); // x32
    }
    p.when(Test::AtLeast, HIGHEST_KNOWN + 1, ENOSYS);
    if policy.watched {
        watch::rules(&mut p);
    }
    // The most frequent calls first: the kernel answers by itself for a call that no rule names, but it runs this
    // program for each call whose arguments decide.
    open_rules(&mut p, policy);
    p.on(calls::ioctl, |b| requests::ioctl(b, policy.shared));
    p.on(calls::fcntl, |b| requests::fcntl(b, policy.shared));
    p.on(calls::clone, |b| {
        b.load_arg(0);
        b.when(Test::AnyBit, NAMESPACE_FLAGS, EPERM);
        b.ret(ALLOW);
    });
    if let Some(shared) = policy.shared {
        shared.rules(&mut p);
    }
    set_id_rules(&mut p, policy);
    socket_rules(&mut p, policy);
    p.on(calls::personality, |b| {
        b.load_arg(0);
        for persona in PERSONALITIES {
            b.when(Test::Equal, persona, ALLOW);
        }
        b.ret(EPERM);
    });
    if !policy.ptrace {
        for call in TRACING {
            p.always(*call, EPERM);
        }
    }
    for call in DENIED {
        p.always(*call, EPERM);
    }
    for call in ABSENT {
        p.always(*call, ENOSYS);
    }
    let mut program = p.finish(ALLOW);
    if policy.watched {
        watch::tell_of_refusals(&mut program);
    }
    program
}

/// The open family: no set-id bits in a mode that counts, which it does only when a file is created.
fn open_rules(p: &mut Program, policy: Policy) {
    for (call, flags_arg) in [(calls::openat, 2), (calls::open, 1)] {
        p.on(call, |b| {
            b.load_arg(flags_arg);
            // O_TMPFILE's own bit, without O_DIRECTORY, which it includes.
            let creating = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;
            match policy.shared {
                None => {
                    b.jump(Test::AnyBit, creating, 1, 0);
                    b.ret(ALLOW);
                    mode_at(b, flags_arg + 1, policy.making());
                }
                Some(shared) => shared.open(b, flags_arg, creating, policy.making()),
            }
        });
    }
}

/// Refuses set-id bits in the mode that argument `arg` holds, else `otherwise`.
fn mode_at(b: &mut Program, arg: u32, otherwise: u32) {
    b.load_arg(arg);
    b.when(Test::AnyBit, SETID, EPERM);
    b.ret(otherwise);
}

fn set_id_rules(p: &mut Program, policy: Policy) {
    // What chmod is answered with the set-group-id bit, and without: on a directory the bit is no privilege, and only who
    // resolves the path knows what it names.
    let (shared, plain) = match policy.shared {
        Some(shared) if shared.supervised => (ASK, ASK),
        None if policy.shared_directories => (ASK, ALLOW),
        _ => (EPERM, ALLOW),
    };
    for (call, arg) in [(calls::fchmod, 1), (calls::fchmodat, 2), (calls::fchmodat2, 2), (calls::chmod, 1)] {
        p.on(call, |b| {
            b.load_arg(arg);
            b.when(Test::AnyBit, libc::S_ISUID, EPERM);
            b.when(Test::AnyBit, libc::S_ISGID, shared);
            b.ret(plain);
        });
    }
    for (call, arg) in [(calls::mknodat, 2), (calls::mknod, 1), (calls::creat, 1)] {
        p.on(call, |b| mode_at(b, arg, policy.making()));
    }
    // Of mkdir's mode the kernel takes neither bit.
    if policy.guarded {
        for call in [calls::mkdirat, calls::mkdir].iter().chain(MAKING) {
            p.always(*call, ASK);
        }
        for call in REMOVING.iter().filter(|_| policy.shared.is_some()) {
            p.always(*call, ASK);
        }
    }
}

fn socket_rules(p: &mut Program, policy: Policy) {
    p.on(calls::socket, |b| {
        b.load_arg(0);
        if policy.unix_sockets {
            // By type in tier `landlock`: a datagram socket sends to any other without connecting.
            match policy.shared {
                None => b.when(Test::Equal, libc::AF_UNIX as u32, ALLOW),
                Some(_) => {
                    b.jump(Test::Equal, libc::AF_UNIX as u32, 0, 7);
                    b.load_arg(1);
                    b.and(0xf);
                    b.when(Test::Equal, libc::SOCK_STREAM as u32, ALLOW);
                    b.when(Test::Equal, libc::SOCK_SEQPACKET as u32, ALLOW);
                    b.ret(EPERM);
                }
            }
        }
        b.jump(Test::Equal, libc::AF_INET as u32, 2, 0);
        b.jump(Test::Equal, libc::AF_INET6 as u32, 1, 0);
        b.ret(EAFNOSUPPORT);
        b.load_arg(1);
        b.and(0xf);
        b.jump(Test::Equal, libc::SOCK_STREAM as u32, 2, 0);
        let datagrams = if policy.shared.is_some() { 0 } else { 1 };
        b.jump(Test::Equal, libc::SOCK_DGRAM as u32, datagrams, 0);
        b.ret(EPERM);
        b.load_arg(2);
        for protocol in PROTOCOLS {
            b.when(Test::Equal, protocol, ALLOW);
        }
        b.ret(EPERM);
    });
    p.on(calls::socketpair, |b| {
        if policy.unix_sockets && policy.shared.is_none() {
            b.ret(ALLOW);
            return;
        }
        // A datagram pair can still send to any socket by address; stream and seqpacket pairs can't.
        b.load_arg(0);
        b.jump(Test::Equal, libc::AF_UNIX as u32, 1, 0);
        b.ret(EPERM);
        b.load_arg(1);
        b.and(0xf);
        b.when(Test::Equal, libc::SOCK_STREAM as u32, ALLOW);
        b.when(Test::Equal, libc::SOCK_SEQPACKET as u32, ALLOW);
        b.ret(EPERM);
    });
}
