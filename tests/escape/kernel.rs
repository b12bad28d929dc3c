//! Kernel surface that a build or an analysis has no use for.

use crate::attempt::{Attempt, loots, returns};
use crate::plant::{Plant, Queue};
use crate::raw::{at, c, call, calls, peek};

/// The key of the System V objects that plants make: one for each test program.
fn key() -> usize {
    0x6a65_0000 | (std::process::id() as usize & 0xffff)
}

pub fn attempts() -> Vec<Attempt> {
    let mut all = vec![
        returns("io_uring", |_| {
            let parameters = [0u8; 120];
            calls(libc::SYS_io_uring_setup, &[4, parameters.as_ptr() as usize])
        }),
        returns("keyring_of_the_session", |_| calls(libc::SYS_keyctl, &[0, -3i64 as usize, 1])),
        returns("add_a_key", |_| {
            let (kind, name) = (c("user"), c("escape"));
            calls(libc::SYS_add_key, &[at(&kind), at(&name), at(&name), 6, -2i64 as usize])
        }),
        returns("request_a_key", |_| {
            let (kind, name) = (c("user"), c("escape"));
            call(libc::SYS_add_key, &[at(&kind), at(&name), at(&name), 6, -2i64 as usize])?;
            calls(libc::SYS_request_key, &[at(&kind), at(&name), 0, 0])
        }),
        returns("userfaultfd", |_| calls(libc::SYS_userfaultfd, &[1])),
        returns("perf_event", |_| {
            // A software event of this process, user mode only: type 1, size 64, config 0, exclude kernel and hv.
            let mut attributes = [0u64; 8];
            attributes[0] = 64 << 32 | 1;
            attributes[5] = 0b110_0000;
            calls(libc::SYS_perf_event_open, &[attributes.as_ptr() as usize, 0, usize::MAX, usize::MAX, 0])
        }),
        returns("bpf_map", |_| {
            let attributes = [2u32, 4, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0];
            calls(libc::SYS_bpf, &[0, attributes.as_ptr() as usize, size_of_val(&attributes)])
        })
        .needing_root(),
        returns("vmsplice", |_| {
            let (mut pipe, byte) = ([0i32; 2], [1u8]);
            call(libc::SYS_pipe2, &[pipe.as_mut_ptr() as usize, 0])?;
            let part = [byte.as_ptr() as usize, 1];
            calls(libc::SYS_vmsplice, &[pipe[1] as usize, part.as_ptr() as usize, 1, 0])
        }),
        returns("personality_read_implies_exec", |_| calls(libc::SYS_personality, &[0x0040_0000])),
        returns("clock_state", |_| {
            let state = [0u8; 256];
            calls(libc::SYS_adjtimex, &[state.as_ptr() as usize])
        }),
        returns("set_the_clock_to_now", |_| {
            let mut now = [0i64; 2];
            call(libc::SYS_clock_gettime, &[0, now.as_mut_ptr() as usize])?;
            calls(libc::SYS_clock_settime, &[0, now.as_ptr() as usize])
        })
        .needing_root(),
        returns("kernel_log", |_| calls(libc::SYS_syslog, &[10])).needing_root(),
        returns("accounting_off", |_| calls(libc::SYS_acct, &[0])).needing_root(),
        returns("migrate_pages", |_| {
            let node = 1u64;
            let at = (&raw const node) as usize;
            calls(libc::SYS_migrate_pages, &[0, 2, at, at])
        }),
        returns("move_pages", |_| calls(libc::SYS_move_pages, &[0, 0, 0, 0, 0, 0])),
        returns("realtime_scheduling", |_| {
            let priority = 1i32;
            calls(libc::SYS_sched_setscheduler, &[0, 1, (&raw const priority) as usize])
        })
        .needing_root(),
        returns("higher_priority", |_| calls(libc::SYS_setpriority, &[0, 0, -20i64 as usize])).needing_root(),
        loots("shared_memory_of_the_host", |s| {
            let id = call(libc::SYS_shmget, &[s.number("key") as usize, 4096, 0])?;
            let address = call(libc::SYS_shmat, &[id as usize, 0, 0])?;
            Ok(String::from_utf8_lossy(&peek(address as usize, 24)).into_owned())
        })
        .planted(shared_memory),
        returns("message_queue_of_the_host", |s| calls(libc::SYS_msgget, &[s.number("key") as usize, 0]))
            .planted(|_| {
                let _ = call(libc::SYS_msgget, &[key(), 0o1666]);
                Plant::default().word("key", key())
            }),
        returns("semaphore_of_the_host", |s| calls(libc::SYS_semget, &[s.number("key") as usize, 1, 0]))
            .planted(|_| {
                let _ = call(libc::SYS_semget, &[key(), 1, 0o1666]);
                Plant::default().word("key", key())
            }),
        returns("posix_queue_of_the_host", |s| {
            calls(libc::SYS_mq_open, &[at(&c(s.word("name"))), libc::O_RDONLY as usize, 0, 0])
        })
        .planted(|s| {
            let name = format!("escape-{}", &s.secret[..8]);
            let flags = (libc::O_CREAT | libc::O_RDWR) as usize;
            let _ = call(libc::SYS_mq_open, &[at(&c(&name)), flags, 0o666, 0]);
            Plant { queue: Some(Queue(name.clone())), ..Plant::default() }.word("name", name)
        }),
        returns("type_into_a_terminal", |s| {
            let flags = (libc::O_RDWR | libc::O_NOCTTY) as usize;
            let terminal = call(libc::SYS_openat, &[-100i64 as usize, at(&c("/dev/ptmx")), flags])?;
            let byte = b'x';
            let _ = s;
            calls(libc::SYS_ioctl, &[terminal as usize, 0x5412, (&raw const byte) as usize])
        })
        .needing_root(),
    ];
    #[cfg(target_arch = "x86_64")]
    all.extend([
        returns("thirty_two_bit_calls", |_| match crate::raw::getpid_by_int80() {
            pid if pid > 0 => Ok(pid.to_string()),
            error => Err(error.to_string()),
        })
        .may_be_killed(),
        returns("local_descriptor_table", |_| {
            let entry = [0u32, 0, 0xfffff, 0b101_0001];
            calls(libc::SYS_modify_ldt, &[1, entry.as_ptr() as usize, 16])
        }),
        returns("file_system_types", |_| calls(libc::SYS_sysfs, &[3])),
    ]);
    all
}

fn shared_memory(scene: &crate::attempt::Scene) -> Plant {
    let key = 0x6a66_0000 | (std::process::id() as usize & 0xffff);
    let id = call(libc::SYS_shmget, &[key, 4096, 0o1666]).unwrap_or(-1) as usize;
    if let Ok(address) = call(libc::SYS_shmat, &[id, 0, 0]) {
        crate::raw::poke(address as usize, scene.secret.as_bytes());
        let _ = call(libc::SYS_shmdt, &[address as usize]);
    }
    Plant::default().word("key", key)
}
