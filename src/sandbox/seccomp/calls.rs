//! System calls by name, with their numbers on each architecture.
//!
//! The numbers are written down here, not taken from the C library's headers, so that the table of every architecture
//! is built, and tested, on any of them.

/// An architecture whose table jess has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "the table of the other architecture is built by tests alone")]
pub enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    /// The one that this program runs on.
    #[cfg(target_arch = "x86_64")]
    pub const HERE: Arch = Arch::X86_64;
    /// The one that this program runs on.
    #[cfg(target_arch = "aarch64")]
    pub const HERE: Arch = Arch::Aarch64;

    /// Its number in `seccomp_data` (AUDIT_ARCH_*).
    pub const fn audit(self) -> u32 {
        match self {
            Arch::X86_64 => 0xc000_003e,
            Arch::Aarch64 => 0xc000_00b7,
        }
    }
}

/// One system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The kernel's name for it.
    pub name: &'static str,
    x86_64: Option<u32>,
    aarch64: Option<u32>,
}

impl Call {
    /// Its number on `arch`, where that has it.
    pub const fn on(self, arch: Arch) -> Option<u32> {
        match arch {
            Arch::X86_64 => self.x86_64,
            Arch::Aarch64 => self.aarch64,
        }
    }

    /// Whether `number` is this call on the architecture that this program runs on.
    pub fn is(self, number: i32) -> bool {
        self.on(Arch::HERE).is_some_and(|own| i64::from(own) == i64::from(number))
    }
}

macro_rules! calls {
    (@number -) => { None };
    (@number $number:literal) => { Some($number) };
    ($($name:ident $x86_64:tt $aarch64:tt)+) => {
        $(
            #[allow(missing_docs, non_upper_case_globals)]
            pub const $name: Call = Call {
                name: stringify!($name),
                x86_64: calls!(@number $x86_64),
                aarch64: calls!(@number $aarch64),
            };
        )+
        /// Every call that has a name here.
        pub const ALL: &[Call] = &[$($name),+];
    };
}

// name, number on x86-64, number on aarch64; a dash where the architecture has no such call.
calls! {
    open 2 -
    stat 4 -
    lstat 6 -
    access 21 -
    execve 59 221
    chdir 80 49
    rmdir 84 -
    readlink 89 -
    newfstatat 262 -
    fstatat - 79
    readlinkat 267 78
    faccessat 269 48
    execveat 322 281
    statx 332 291
    faccessat2 439 439
    ioctl 16 29
    shmget 29 194
    shmat 30 196
    shmctl 31 195
    socket 41 198
    connect 42 203
    sendto 44 206
    sendmsg 46 211
    bind 49 200
    listen 50 201
    socketpair 53 199
    clone 56 220
    fork 57 -
    vfork 58 -
    kill 62 129
    fcntl 72 25
    semget 64 190
    semop 65 193
    semctl 66 191
    shmdt 67 197
    msgget 68 186
    msgsnd 69 189
    msgrcv 70 188
    msgctl 71 187
    truncate 76 45
    rename 82 -
    mkdir 83 -
    creat 85 -
    link 86 -
    unlink 87 -
    symlink 88 -
    chmod 90 -
    fchmod 91 52
    chown 92 -
    fchown 93 55
    lchown 94 -
    ptrace 101 117
    syslog 103 116
    setpgid 109 154
    getpgid 121 155
    getsid 124 156
    rt_sigqueueinfo 129 138
    utime 132 -
    mknod 133 -
    uselib 134 -
    personality 135 92
    ustat 136 -
    sysfs 139 -
    getpriority 140 141
    setpriority 141 140
    sched_setparam 142 118
    sched_getparam 143 121
    sched_setscheduler 144 119
    sched_getscheduler 145 120
    vhangup 153 58
    modify_ldt 154 -
    pivot_root 155 41
    _sysctl 156 -
    adjtimex 159 171
    chroot 161 51
    acct 163 89
    settimeofday 164 170
    mount 165 40
    umount2 166 39
    swapon 167 224
    swapoff 168 225
    reboot 169 142
    sethostname 170 161
    setdomainname 171 162
    iopl 172 -
    ioperm 173 -
    init_module 175 105
    delete_module 176 106
    quotactl 179 60
    nfsservctl 180 42
    setxattr 188 5
    lsetxattr 189 6
    fsetxattr 190 7
    removexattr 197 14
    lremovexattr 198 15
    fremovexattr 199 16
    tkill 200 130
    sched_setaffinity 203 122
    sched_getaffinity 204 123
    lookup_dcookie 212 18
    semtimedop 220 192
    clock_settime 227 112
    tgkill 234 131
    utimes 235 -
    mq_open 240 180
    mq_unlink 241 181
    kexec_load 246 104
    add_key 248 217
    request_key 249 218
    keyctl 250 219
    ioprio_set 251 30
    ioprio_get 252 31
    inotify_add_watch 254 27
    migrate_pages 256 238
    openat 257 56
    mkdirat 258 34
    mknodat 259 33
    renameat 264 38
    symlinkat 266 36
    renameat2 316 276
    fchownat 260 54
    futimesat 261 -
    unlinkat 263 35
    linkat 265 37
    fchmodat 268 53
    unshare 272 97
    vmsplice 278 75
    move_pages 279 239
    utimensat 280 88
    rt_tgsigqueueinfo 297 240
    perf_event_open 298 241
    fanotify_init 300 262
    prlimit64 302 261
    name_to_handle_at 303 264
    open_by_handle_at 304 265
    clock_adjtime 305 266
    sendmmsg 307 269
    setns 308 268
    process_vm_readv 310 270
    process_vm_writev 311 271
    kcmp 312 272
    finit_module 313 273
    sched_setattr 314 274
    sched_getattr 315 275
    kexec_file_load 320 294
    bpf 321 280
    userfaultfd 323 282
    pidfd_send_signal 424 424
    io_uring_setup 425 425
    io_uring_enter 426 426
    io_uring_register 427 427
    open_tree 428 428
    move_mount 429 429
    fsopen 430 430
    fsconfig 431 431
    fsmount 432 432
    fspick 433 433
    pidfd_open 434 434
    clone3 435 435
    openat2 437 437
    pidfd_getfd 438 438
    process_madvise 440 440
    mount_setattr 442 442
    quotactl_fd 443 443
    process_mrelease 448 448
    fchmodat2 452 452
    setxattrat 463 463
    removexattrat 466 466
    open_tree_attr 467 467
    file_setattr 469 469
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's own tables, as an independent crate has them.
    #[test]
    fn every_number_is_the_kernel_s_on_both_architectures() {
        for call in ALL {
            let x86_64 = call.name.parse::<syscalls::x86_64::Sysno>().ok().map(|n| n as u32);
            assert_eq!(call.on(Arch::X86_64), x86_64, "{} on x86-64", call.name);
            let aarch64 = call.name.parse::<syscalls::aarch64::Sysno>().ok().map(|n| n as u32);
            assert_eq!(call.on(Arch::Aarch64), aarch64, "{} on aarch64", call.name);
        }
    }

    #[test]
    fn the_architecture_is_the_one_that_this_runs_on() {
        assert!(openat.is(libc::SYS_openat as i32) && !openat.is(libc::SYS_socket as i32));
        assert!(!clone3.is(-1));
    }
}
