//! The seccomp filter: which part of the kernel the command can reach.
//!
//! Loaded last, so that the calls that built the sandbox can be refused too. Three kinds of rule: calls that fail
//! with EPERM, calls that answer ENOSYS so that programs use an older form whose arguments can be checked, and calls
//! whose arguments decide. Argument checks look at the low 32 bits, as the kernel does. A foreign architecture, and the
//! x32 interface, kill the process.

use libc::c_long;
use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W,
    sock_filter,
};

#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH: u32 = 0xc000_00b7;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
const EAFNOSUPPORT: u32 = libc::SECCOMP_RET_ERRNO | libc::EAFNOSUPPORT as u32;

/// Calls that fail with EPERM.
const DENIED: &[c_long] = &[
    // namespaces, mounts, roots
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // open_tree_attr
    467,
    // keyrings are not divided by namespaces
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // other processes' memory and descriptors
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // kernel surface with a long record of escapes, and no use for a build or an analysis
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_vmsplice,
    libc::SYS_lookup_dcookie,
    libc::SYS_fanotify_init,
    // file handles reach files without a path
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // the machine itself
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ustat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_sysfs,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
    // memory placement of other processes
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// Calls whose arguments sit behind a pointer that a filter can't read: programs fall back to the older form.
const ABSENT: &[c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

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

/// Terminal requests that put input into, or take over, a terminal.
const TERMINAL_REQUESTS: [u32; 4] = [0x5412, 0x541d, 0x540e, 0x541c]; // TIOCSTI TIOCCONS TIOCSCTTY TIOCLINUX

/// The plain Linux personality, the query, and a debugger's ADDR_NO_RANDOMIZE.
const PERSONALITIES: [u32; 3] = [0, u32::MAX, 0x0004_0000];

/// TCP with IPPROTO_MPTCP, raw and other protocols pass filters that know TCP by its number alone.
const PROTOCOLS: [u32; 3] = [0, libc::IPPROTO_TCP as u32, libc::IPPROTO_UDP as u32];

/// What the filter leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// Whether new AF_UNIX sockets may be made. Off: a granted directory may hold a socket of the host.
    pub unix_sockets: bool,
}

/// The filter's program.
pub fn program(policy: Policy) -> Vec<sock_filter> {
    let mut p = Program::default();
    p.load(4); // arch
    p.jump(BPF_JEQ, AUDIT_ARCH, 1, 0);
    p.ret(KILL);
    p.load(0); // nr
    #[cfg(target_arch = "x86_64")]
    p.when(BPF_JSET, 0x4000_0000, KILL); // x32
    p.when(BPF_JGE, HIGHEST_KNOWN + 1, ENOSYS);
    for number in DENIED {
        p.when(BPF_JEQ, *number as u32, EPERM);
    }
    for number in ABSENT {
        p.when(BPF_JEQ, *number as u32, ENOSYS);
    }
    p.on(libc::SYS_clone, |b| {
        b.load_arg(0);
        b.when(BPF_JSET, NAMESPACE_FLAGS, EPERM);
        b.ret(ALLOW);
    });
    p.on(libc::SYS_ioctl, |b| {
        b.load_arg(1);
        for request in TERMINAL_REQUESTS {
            b.when(BPF_JEQ, request, EPERM);
        }
        b.ret(ALLOW);
    });
    p.on(libc::SYS_personality, |b| {
        b.load_arg(0);
        for persona in PERSONALITIES {
            b.when(BPF_JEQ, persona, ALLOW);
        }
        b.ret(EPERM);
    });
    set_id_rules(&mut p);
    socket_rules(&mut p, policy);
    p.ret(ALLOW);
    p.0
}

fn set_id_rules(p: &mut Program) {
    // The argument that holds the mode; for the open family it counts only when a file is created.
    let mode_at = |b: &mut Program, arg: u32| {
        b.load_arg(arg);
        b.when(BPF_JSET, SETID, EPERM);
        b.ret(ALLOW);
    };
    for (number, arg) in [
        (libc::SYS_fchmod, 1),
        (libc::SYS_fchmodat, 2),
        (libc::SYS_fchmodat2, 2),
        (libc::SYS_mkdirat, 2),
        (libc::SYS_mknodat, 2),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, 1),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mkdir, 1),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, 1),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_creat, 1),
    ] {
        p.on(number, |b| mode_at(b, arg));
    }
    for (number, flags_arg) in [
        (libc::SYS_openat, 2),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, 1),
    ] {
        p.on(number, |b| {
            b.load_arg(flags_arg);
            // O_TMPFILE's own bit, without O_DIRECTORY, which it includes.
            let creating = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;
            b.jump(BPF_JSET, creating, 1, 0);
            b.ret(ALLOW);
            mode_at(b, flags_arg + 1);
        });
    }
}

fn socket_rules(p: &mut Program, policy: Policy) {
    p.on(libc::SYS_socket, |b| {
        b.load_arg(0);
        if policy.unix_sockets {
            b.when(BPF_JEQ, libc::AF_UNIX as u32, ALLOW);
        }
        b.jump(BPF_JEQ, libc::AF_INET as u32, 2, 0);
        b.jump(BPF_JEQ, libc::AF_INET6 as u32, 1, 0);
        b.ret(EAFNOSUPPORT);
        b.load_arg(1);
        b.and(0xf);
        b.jump(BPF_JEQ, libc::SOCK_STREAM as u32, 2, 0);
        b.jump(BPF_JEQ, libc::SOCK_DGRAM as u32, 1, 0);
        b.ret(EPERM);
        b.load_arg(2);
        for protocol in PROTOCOLS {
            b.when(BPF_JEQ, protocol, ALLOW);
        }
        b.ret(EPERM);
    });
    p.on(libc::SYS_socketpair, |b| {
        if policy.unix_sockets {
            b.ret(ALLOW);
            return;
        }
        // A datagram pair can still send to any socket by address; stream and seqpacket pairs can't.
        b.load_arg(0);
        b.jump(BPF_JEQ, libc::AF_UNIX as u32, 1, 0);
        b.ret(EPERM);
        b.load_arg(1);
        b.and(0xf);
        b.when(BPF_JEQ, libc::SOCK_STREAM as u32, ALLOW);
        b.when(BPF_JEQ, libc::SOCK_SEQPACKET as u32, ALLOW);
        b.ret(EPERM);
    });
}

/// A program under construction. Every block that [`Program::on`] adds ends in a return, so blocks are independent.
#[derive(Default)]
struct Program(Vec<sock_filter>);

impl Program {
    fn push(&mut self, code: u32, k: u32, jt: u8, jf: u8) {
        self.0.push(sock_filter { code: code as u16, jt, jf, k });
    }

    fn load(&mut self, offset: u32) {
        self.push(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
    }

    /// The low 32 bits of argument `n` (little-endian machines only, which are all that are supported).
    fn load_arg(&mut self, n: u32) {
        self.load(16 + 8 * n);
    }

    fn and(&mut self, mask: u32) {
        self.push(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    }

    fn jump(&mut self, test: u32, k: u32, jt: u8, jf: u8) {
        self.push(BPF_JMP | test | BPF_K, k, jt, jf);
    }

    fn ret(&mut self, action: u32) {
        self.push(BPF_RET | BPF_K, action, 0, 0);
    }

    fn when(&mut self, test: u32, k: u32, action: u32) {
        self.jump(test, k, 0, 1);
        self.ret(action);
    }

    /// A block that decides about call `number`. It must return on every way, and be shorter than 256 instructions.
    fn on(&mut self, number: c_long, block: impl FnOnce(&mut Program)) {
        let mut body = Program::default();
        block(&mut body);
        debug_assert!(body.0.len() < 256);
        self.jump(BPF_JEQ, number as u32, 0, body.0.len() as u8);
        self.0.extend(body.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel would, for one call.
    fn verdict(policy: Policy, arch: u32, nr: i64, args: [u64; 6]) -> u32 {
        let mut data = [0u8; 64];
        data[0..4].copy_from_slice(&(nr as u32).to_le_bytes());
        data[4..8].copy_from_slice(&arch.to_le_bytes());
        for (n, arg) in args.iter().enumerate() {
            data[16 + 8 * n..24 + 8 * n].copy_from_slice(&arg.to_le_bytes());
        }
        let program = program(policy);
        let (mut pc, mut a) = (0usize, 0u32);
        loop {
            let i = program[pc];
            pc += 1;
            let code = u32::from(i.code);
            if code == BPF_LD | BPF_W | BPF_ABS {
                let at = i.k as usize;
                a = u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
            } else if code == BPF_ALU | BPF_AND | BPF_K {
                a &= i.k;
            } else if code == BPF_RET | BPF_K {
                return i.k;
            } else {
                let taken = match code & 0xf0 {
                    BPF_JEQ => a == i.k,
                    BPF_JGE => a >= i.k,
                    BPF_JSET => a & i.k != 0,
                    other => panic!("jump {other:#x}"),
                };
                pc += usize::from(if taken { i.jt } else { i.jf });
            }
        }
    }

    fn here(nr: i64, args: [u64; 6]) -> u32 {
        verdict(Policy::default(), AUDIT_ARCH, nr, args)
    }

    #[test]
    fn foreign_architectures_and_x32_kill() {
        assert_eq!(verdict(Policy::default(), 0x4000_0003, 1, [0; 6]), KILL);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(here(0x4000_0000 | libc::SYS_read, [0; 6]), KILL);
        assert_eq!(here(libc::SYS_read, [0; 6]), ALLOW);
    }

    #[test]
    fn every_denied_call_is_denied_and_unknown_ones_do_not_exist() {
        for nr in DENIED {
            assert_eq!(here(*nr, [0; 6]), EPERM, "{nr}");
        }
        for nr in ABSENT {
            assert_eq!(here(*nr, [0; 6]), ENOSYS, "{nr}");
        }
        assert_eq!(here(i64::from(HIGHEST_KNOWN) + 1, [0; 6]), ENOSYS);
    }

    #[test]
    fn clone_makes_threads_and_no_namespaces() {
        assert_eq!(here(libc::SYS_clone, [libc::CLONE_VM as u64, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(here(libc::SYS_clone, [libc::CLONE_NEWUSER as u64, 0, 0, 0, 0, 0]), EPERM);
    }

    #[test]
    fn high_bits_of_an_argument_change_nothing() {
        let high = 1u64 << 32;
        assert_eq!(here(libc::SYS_socket, [high | libc::AF_UNIX as u64, 1, 0, 0, 0, 0]), EAFNOSUPPORT);
        assert_eq!(here(libc::SYS_ioctl, [0, high | 0x5412, 0, 0, 0, 0]), EPERM);
        assert_eq!(here(libc::SYS_fchmod, [3, high | 0o4755, 0, 0, 0, 0]), EPERM);
    }

    #[test]
    fn sockets_are_tcp_and_udp_only() {
        let socket = |family: i32, kind: i32, protocol: i32| {
            here(libc::SYS_socket, [family as u64, kind as u64, protocol as u64, 0, 0, 0])
        };
        assert_eq!(socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0), ALLOW);
        assert_eq!(socket(libc::AF_INET6, libc::SOCK_DGRAM, libc::IPPROTO_UDP), ALLOW);
        assert_eq!(socket(libc::AF_INET, libc::SOCK_RAW, 0), EPERM);
        assert_eq!(socket(libc::AF_INET, libc::SOCK_STREAM, 262), EPERM); // MPTCP
        for family in [libc::AF_UNIX, libc::AF_NETLINK, libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG, 44] {
            assert_eq!(socket(family, libc::SOCK_STREAM, 0), EAFNOSUPPORT, "{family}");
        }
    }

    #[test]
    fn a_datagram_pair_is_refused_and_a_stream_pair_is_not() {
        let pair = |kind: i32| here(libc::SYS_socketpair, [libc::AF_UNIX as u64, kind as u64, 0, 0, 0, 0]);
        assert_eq!(pair(libc::SOCK_STREAM | libc::SOCK_CLOEXEC), ALLOW);
        assert_eq!(pair(libc::SOCK_SEQPACKET), ALLOW);
        assert_eq!(pair(libc::SOCK_DGRAM), EPERM);
    }

    #[test]
    fn set_id_bits_are_refused_wherever_a_mode_goes() {
        assert_eq!(here(libc::SYS_fchmodat, [0, 0, 0o755, 0, 0, 0]), ALLOW);
        assert_eq!(here(libc::SYS_fchmodat, [0, 0, 0o4755, 0, 0, 0]), EPERM);
        assert_eq!(here(libc::SYS_fchmodat2, [0, 0, 0o2755, 0, 0, 0]), EPERM);
        let create = libc::O_CREAT as u64;
        assert_eq!(here(libc::SYS_openat, [0, 0, create, 0o4755, 0, 0]), EPERM);
        assert_eq!(here(libc::SYS_openat, [0, 0, create, 0o644, 0, 0]), ALLOW);
        assert_eq!(here(libc::SYS_openat, [0, 0, libc::O_TMPFILE as u64, 0o4755, 0, 0]), EPERM);
        // Without O_CREAT the fourth argument is whatever the register held.
        assert_eq!(here(libc::SYS_openat, [0, 0, libc::O_DIRECTORY as u64, 0o4755, 0, 0]), ALLOW);
    }

    #[test]
    fn an_allowed_unix_socket_is_the_only_difference_of_that_policy() {
        let open = Policy { unix_sockets: true };
        let unix = |policy| verdict(policy, AUDIT_ARCH, libc::SYS_socket, [1, 1, 0, 0, 0, 0]);
        assert_eq!(unix(open), ALLOW);
        assert_eq!(unix(Policy::default()), EAFNOSUPPORT);
        assert_eq!(verdict(open, AUDIT_ARCH, libc::SYS_socket, [16, 3, 0, 0, 0, 0]), EAFNOSUPPORT);
    }
}
