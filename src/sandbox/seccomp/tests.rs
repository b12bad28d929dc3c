//! The filter's verdicts, found by running its program.

use super::program::verdict as run;
use super::*;

fn verdict(policy: Policy, arch: u32, nr: i64, args: [u64; 6]) -> u32 {
    run(&program(policy), arch, nr as u32, args)
}

fn here(nr: i64, args: [u64; 6]) -> u32 {
    verdict(Policy::default(), Arch::HERE.audit(), nr, args)
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
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let program = program_for(arch, Policy::default());
        let answers = DENIED.iter().map(|call| (call, EPERM)).chain(ABSENT.iter().map(|call| (call, ENOSYS)));
        for (call, answer) in answers {
            let Some(nr) = call.on(arch) else { continue };
            assert_eq!(run(&program, arch.audit(), nr, [0; 6]), answer, "{} on {arch:?}", call.name);
        }
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
fn the_set_group_id_bit_is_asked_about_where_directories_are_shared() {
    let shared = Policy { shared_directories: true, ..Policy::default() };
    let chmod = |mode| verdict(shared, Arch::HERE.audit(), libc::SYS_fchmodat, [0, 0, mode, 0, 0, 0]);
    assert_eq!((chmod(0o2755), chmod(0o4755), chmod(0o755)), (ASK, EPERM, ALLOW));
    assert_eq!(here(libc::SYS_mkdirat, [0, 0, 0o2755, 0, 0, 0]), ALLOW, "the kernel takes no such bit");
}

#[test]
fn an_allowed_unix_socket_is_the_only_difference_of_that_policy() {
    let open = Policy { unix_sockets: true, ..Policy::default() };
    let unix = |policy| verdict(policy, Arch::HERE.audit(), libc::SYS_socket, [1, 1, 0, 0, 0, 0]);
    assert_eq!(unix(open), ALLOW);
    assert_eq!(unix(Policy::default()), EAFNOSUPPORT);
    assert_eq!(verdict(open, Arch::HERE.audit(), libc::SYS_socket, [16, 3, 0, 0, 0, 0]), EAFNOSUPPORT);
}

/// The filter of tier `landlock` with a supervisor, on the newest Landlock.
fn shared(landlock_abi: u32) -> Policy {
    Policy { shared: Some(Shared { supervised: true, landlock_abi }), ..Policy::default() }
}

const ASK: u32 = libc::SECCOMP_RET_USER_NOTIF;

#[test]
fn in_tier_landlock_metadata_and_connections_are_the_supervisor_s_and_new_processes_are_not() {
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let program = program_for(arch, shared(7));
        let ask = |call: calls::Call, args| call.on(arch).map(|nr| run(&program, arch.audit(), nr, args));
        for call in
            [calls::connect, calls::bind, calls::listen, calls::fchownat, calls::utimensat, calls::setxattr]
        {
            assert_eq!(ask(call, [0; 6]), Some(ASK), "{} on {arch:?}", call.name);
        }
        assert_eq!(ask(calls::fchmod, [3, 0o644, 0, 0, 0, 0]), Some(ASK));
        assert_eq!(ask(calls::fchmod, [3, 0o4755, 0, 0, 0, 0]), Some(EPERM), "set-id bits need no question");
        assert_eq!(ask(calls::fchmod, [3, 0o2755, 0, 0, 0, 0]), Some(ASK), "a directory may have it");
        assert_eq!(ask(calls::clone, [libc::SIGCHLD as u64, 0, 0, 0, 0, 0]), Some(ALLOW));
        for call in [calls::fork, calls::vfork, calls::setpgid] {
            assert!(
                matches!(ask(call, [77, 0, 0, 0, 0, 0]), None | Some(ALLOW)),
                "{} on {arch:?}",
                call.name
            );
        }
        for (call, user) in [(calls::setpriority, 2), (calls::ioprio_set, 3)] {
            assert_eq!(ask(call, [user, 0, 7, 0, 0, 0]), Some(ESRCH), "all processes of the user");
            assert_eq!(ask(call, [user - 2, 0, 7, 0, 0, 0]), Some(ALLOW), "the caller");
            assert_eq!(ask(call, [user - 2, 9, 7, 0, 0, 0]), Some(ASK));
        }
        assert_eq!(ask(calls::clone, [libc::CLONE_NEWUSER as u64, 0, 0, 0, 0, 0]), Some(EPERM));
        assert_eq!(ask(calls::prlimit64, [0; 6]), Some(ALLOW), "the caller itself");
        assert_eq!(ask(calls::prlimit64, [77, 0, 0, 0, 0, 0]), Some(ASK));
        for call in [calls::shmget, calls::mq_open, calls::msgget, calls::pidfd_getfd, calls::file_setattr] {
            assert_eq!(ask(call, [0; 6]), Some(EPERM), "{} on {arch:?}", call.name);
        }
        let open = |flags: i32, mode: u64| ask(calls::openat, [0, 0, flags as u64, mode, 0, 0]);
        assert_eq!(open(libc::O_RDONLY, 0o4755), Some(ALLOW), "opens cost nothing");
        assert_eq!(open(libc::O_WRONLY | libc::O_CREAT, 0o644), Some(ALLOW));
        assert_eq!(open(libc::O_WRONLY | libc::O_CREAT, 0o4755), Some(EPERM));
        let new = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        assert_eq!(open(new, 0o600), Some(ASK), "a new semaphore");
        assert_eq!(open(new, 0o4600), Some(EPERM));
        let copy = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
        assert_eq!(open(copy, 0o600), Some(ALLOW), "what cp and tar make");
        assert_eq!(open(libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC, 0o4777), Some(ASK), "an old one");
    }
}

#[test]
fn in_tier_landlock_sockets_are_tcp_only_and_connect_by_connect_alone() {
    let at = |nr: i64, args| verdict(shared(7), Arch::HERE.audit(), nr, args);
    let socket = |family: i32, kind: i32| at(libc::SYS_socket, [family as u64, kind as u64, 0, 0, 0, 0]);
    assert_eq!(socket(libc::AF_INET, libc::SOCK_STREAM), ALLOW);
    assert_eq!(socket(libc::AF_INET, libc::SOCK_DGRAM), EPERM);
    assert_eq!(socket(libc::AF_INET6, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC), EPERM);
    assert_eq!(socket(libc::AF_UNIX, libc::SOCK_STREAM), EAFNOSUPPORT);
    let fast_open = 0x2000_0000;
    assert_eq!(at(libc::SYS_sendto, [0, 0, 0, fast_open, 0, 0]), EPERM);
    assert_eq!(at(libc::SYS_sendmsg, [0, 0, fast_open, 0, 0, 0]), EPERM);
    assert_eq!(at(libc::SYS_sendmmsg, [0, 0, 0, fast_open, 0, 0]), EPERM);
    assert_eq!(at(libc::SYS_sendto, [0; 6]), ALLOW);
}

#[test]
fn in_tier_landlock_unix_sockets_by_policy_are_no_datagram_sockets() {
    let policy = Policy { unix_sockets: true, ..shared(7) };
    let unix =
        |kind: i32| verdict(policy, Arch::HERE.audit(), libc::SYS_socket, [1, kind as u64, 0, 0, 0, 0]);
    assert_eq!(unix(libc::SOCK_STREAM | libc::SOCK_CLOEXEC), ALLOW);
    assert_eq!(unix(libc::SOCK_SEQPACKET), ALLOW);
    assert_eq!(unix(libc::SOCK_DGRAM), EPERM);
    let inet = verdict(policy, Arch::HERE.audit(), libc::SYS_socket, [2, 1, 0, 0, 0, 0]);
    assert_eq!(inet, ALLOW);
    let netlink = verdict(policy, Arch::HERE.audit(), libc::SYS_socket, [16, 3, 0, 0, 0, 0]);
    assert_eq!(netlink, EAFNOSUPPORT);
}

#[test]
fn what_an_older_landlock_lacks_is_asked_about() {
    let at = |abi, nr: i64, args| verdict(shared(abi), Arch::HERE.audit(), nr, args);
    assert_eq!(at(6, libc::SYS_kill, [1, 9, 0, 0, 0, 0]), ALLOW);
    assert_eq!(at(5, libc::SYS_kill, [1, 9, 0, 0, 0, 0]), ASK);
    assert_eq!(at(7, libc::SYS_truncate, [0; 6]), ASK, "truncation is no right of the domain");
    let truncating = [0, 0, libc::O_TRUNC as u64, 0, 0, 0];
    assert_eq!(at(7, libc::SYS_openat, truncating), EPERM);
    for neither in [3, 3 | libc::O_TRUNC, 3 | libc::O_CREAT] {
        for (call, args) in [
            (libc::SYS_openat, [0, 0, neither as u64, 0, 0, 0]),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_open, [0, neither as u64, 0, 0, 0, 0]),
        ] {
            assert_eq!(at(7, call, args), EPERM, "no right is asked for this access mode: {neither:o}");
        }
    }
    let writing = [0, 0, (libc::O_TRUNC | libc::O_WRONLY) as u64, 0, 0, 0];
    assert_eq!(at(7, libc::SYS_openat, writing), ALLOW);
}

#[test]
fn requests_of_file_systems_change_nothing_and_those_of_terminals_and_sockets_work() {
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let nr = |call: calls::Call| call.on(arch).unwrap();
        let full = program_for(arch, Policy::default());
        let shared = program_for(arch, shared(5));
        let ioctl = |program: &[sock_filter], request: u64| {
            run(program, arch.audit(), nr(calls::ioctl), [0, request, 0, 0, 0, 0])
        };
        for request in [0x4008_6604u64, 0x4008_6602, 0x401c_5820, 0x8901, 0x8902] {
            assert_eq!(ioctl(&shared, request), EPERM, "{request:x}");
        }
        // EXT4_IOC_MIGRATE, FS_IOC_ENABLE_VERITY, FS_IOC_SET_ENCRYPTION_POLICY, one that nobody knows.
        for request in [0x6609u64, 0x4080_6685, 0x800c_6613, 0x1234_f567] {
            assert_eq!(ioctl(&shared, request), ENOTTY, "{request:x}");
        }
        for program in [&full, &shared] {
            for refused in [0x5412u64, 0x5423] {
                assert_eq!(ioctl(program, refused), EPERM, "{refused:x}");
            }
            // BTRFS_IOC_SUBVOL_CREATE
            assert_ne!(ioctl(program, 0x5000_940e), ALLOW);
            // TCGETS, TIOCSCTTY, TIOCSPTLCK, FIONREAD, FIONBIO, FICLONE, FIEMAP, SIOCGIFCONF, FS_IOC_GETFLAGS
            for used in [
                0x5401u64,
                0x540e,
                0x4004_5431,
                0x541b,
                0x5421,
                0x4004_9409,
                0xc020_660b,
                0x8912,
                0x8008_6601,
            ] {
                assert_eq!(ioctl(program, used), ALLOW, "{used:x}");
            }
        }
        let fcntl = |program: &[sock_filter], command: u64| {
            run(program, arch.audit(), nr(calls::fcntl), [0, command, 0, 0, 0, 0])
        };
        for program in [&full, &shared] {
            assert_eq!((fcntl(program, 1024), fcntl(program, 3)), (EPERM, ALLOW));
        }
        assert_eq!((fcntl(&full, 8), fcntl(&shared, 8), fcntl(&shared, 10)), (ALLOW, EPERM, EPERM));
        let newer = program_for(arch, super::tests::shared(7));
        assert_eq!(fcntl(&newer, 8), ALLOW, "Landlock has a scope for the signal");
    }
}

#[test]
fn without_a_supervisor_of_its_own_a_filter_asks_nobody() {
    let policy = Policy { shared: Some(Shared { supervised: false, landlock_abi: 7 }), ..Policy::default() };
    for arch in [Arch::X86_64, Arch::Aarch64] {
        for instruction in program_for(arch, policy) {
            assert!(u32::from(instruction.code) != libc::BPF_RET | libc::BPF_K || instruction.k != ASK);
        }
    }
}
