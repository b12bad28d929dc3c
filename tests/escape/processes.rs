//! Other processes, the supervisor, and what outlives a run.

use crate::attempt::{Attempt, Open, Played, Scene, effects, loots, returns};
use crate::plant::{Plant, lone_victim, victim};
use crate::raw::{at, c, call, calls, exit, fork};
use std::os::unix::process::parent_id;
use std::time::Duration;

pub fn attempts() -> Vec<Attempt> {
    vec![
        effects("kill_a_process", |s| calls(libc::SYS_kill, &[pid(s), 9]), |_, p, _| killed(p))
            .planted(victim),
        effects("tgkill_a_process", |s| calls(libc::SYS_tgkill, &[pid(s), pid(s), 9]), |_, p, _| killed(p))
            .planted(victim),
        effects(
            "kill_by_pidfd",
            |s| {
                let pidfd = call(libc::SYS_pidfd_open, &[pid(s), 0])?;
                calls(libc::SYS_pidfd_send_signal, &[pidfd as usize, 9, 0, 0])
            },
            |_, p, _| killed(p),
        )
        .planted(victim),
        effects(
            "kill_by_directory_of_proc",
            |s| {
                let path = c(format!("/proc/{}", pid(s)));
                let flags = (libc::O_RDONLY | libc::O_DIRECTORY) as usize;
                let dir = call(libc::SYS_openat, &[libc::AT_FDCWD as usize, at(&path), flags])?;
                calls(libc::SYS_pidfd_send_signal, &[dir as usize, 9, 0, 0])
            },
            |_, p, _| killed(p),
        )
        .planted(victim),
        effects("kill_a_group", |s| calls(libc::SYS_kill, &[pid(s).wrapping_neg(), 9]), |_, p, _| killed(p))
            .planted(victim),
        effects(
            "queue_a_signal",
            |s| {
                let mut info = [0i32; 32];
                (info[0], info[2]) = (9, -1);
                calls(libc::SYS_rt_sigqueueinfo, &[pid(s), 9, info.as_ptr() as usize])
            },
            |_, p, _| killed(p),
        )
        .planted(victim),
        effects(
            "signal_the_supervisors_group",
            |_| {
                // SIGUSR1 kills whoever does not expect it, but not this process.
                let blocked = 1u64 << (libc::SIGUSR1 - 1);
                call(libc::SYS_rt_sigprocmask, &[0, (&raw const blocked) as usize, 0, 8])?;
                calls(libc::SYS_kill, &[0, libc::SIGUSR1 as usize])
            },
            |_, _, ran| !ran.status.success(),
        )
        .planted(|_| Plant { wrapper: vec!["setsid", "-w"], ..Plant::default() }),
        effects(
            "kill_the_supervisor",
            |_| {
                let sent = call(libc::SYS_kill, &[parent_id() as usize, 9]);
                std::thread::sleep(Duration::from_millis(50));
                sent.map(|_| "sent".into())
            },
            |_, _, ran| !ran.status.success(),
        ),
        loots("environment_of_the_supervisor", |_| proc_file(parent_id() as usize, "environ")),
        returns("attach_to_the_supervisor", |_| {
            const PTRACE_SEIZE: usize = 0x4206;
            calls(libc::SYS_ptrace, &[PTRACE_SEIZE, parent_id() as usize, 0, 0])
        }),
        returns("descriptors_of_the_supervisor", |_| {
            std::fs::read_dir(format!("/proc/{}/fd", parent_id()))
                .map(|_| "listed".into())
                .map_err(|e| e.to_string())
        })
        .open_in_landlock(Open::Root),
        loots("environment_of_a_process", |s| proc_file(pid(s), "environ")).planted(victim),
        returns("command_line_of_a_process", |s| proc_file(pid(s), "cmdline"))
            .planted(victim)
            .open_in_landlock(Open::All),
        loots("file_in_a_process_s_directory", |s| proc_file(pid(s), "cwd/secret")).planted(victim),
        loots("open_file_of_a_process", |s| proc_file(pid(s), &format!("fd/{}", s.word("fd"))))
            .planted(victim),
        loots("memory_of_a_process_by_proc", |s| {
            use std::os::unix::fs::FileExt;
            let memory = std::fs::File::open(format!("/proc/{}/mem", pid(s))).map_err(|e| e.to_string())?;
            let mut bytes = [0u8; 24];
            memory.read_exact_at(&mut bytes, s.number("address") as u64).map_err(|e| e.to_string())?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        })
        .planted(victim),
        loots("memory_of_a_process_by_call", |s| {
            let mut bytes = [0u8; 24];
            let local = [bytes.as_mut_ptr() as usize, bytes.len()];
            let remote = [s.number("address") as usize, bytes.len()];
            let args = [pid(s), local.as_ptr() as usize, 1, remote.as_ptr() as usize, 1, 0];
            call(libc::SYS_process_vm_readv, &args)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        })
        .planted(victim),
        returns("write_memory_of_a_process", |s| {
            let bytes = [b'x'; 4];
            let local = [bytes.as_ptr() as usize, 4];
            let remote = [s.number("address") as usize, 4];
            let args = [pid(s), local.as_ptr() as usize, 1, remote.as_ptr() as usize, 1, 0];
            calls(libc::SYS_process_vm_writev, &args)
        })
        .planted(victim),
        returns("attach_to_a_process", |s| {
            const PTRACE_SEIZE: usize = 0x4206;
            calls(libc::SYS_ptrace, &[PTRACE_SEIZE, pid(s), 0, 0])
        })
        .planted(victim),
        returns("trace_own_child", |_| {
            let child = fork()?;
            if child == 0 {
                exit(i32::from(call(libc::SYS_ptrace, &[0]).is_err()));
            }
            let mut status = 0i32;
            call(libc::SYS_wait4, &[child as usize, (&raw mut status) as usize])?;
            if status == 0 { Ok("traced".into()) } else { Err("refused".into()) }
        }),
        loots("descriptor_of_a_process", |s| {
            let pidfd = call(libc::SYS_pidfd_open, &[pid(s), 0])?;
            let fd = call(libc::SYS_pidfd_getfd, &[pidfd as usize, s.number("fd") as usize, 0])?;
            std::fs::read_to_string(format!("/proc/self/fd/{fd}")).map_err(|e| e.to_string())
        })
        .planted(victim),
        returns("compare_processes", |s| {
            calls(libc::SYS_kcmp, &[std::process::id() as usize, pid(s), 0, 0, 0])
        })
        .planted(victim),
        returns("limits_of_a_process", |s| {
            let limit = [64u64, 64];
            let nofile = libc::RLIMIT_NOFILE as usize;
            calls(libc::SYS_prlimit64, &[pid(s), nofile, limit.as_ptr() as usize, 0])
        })
        .planted(victim),
        effects(
            "kill_by_the_owner_of_a_descriptor",
            |s| signal_by_owner(pid(s), false),
            |_, plant, _| killed(plant),
        )
        .planted(victim),
        effects(
            "kill_by_the_owner_of_a_descriptor_by_ioctl",
            |s| signal_by_owner(pid(s), true),
            |_, plant, _| killed(plant),
        )
        .planted(victim),
        effects(
            "priority_of_all_processes_of_the_user",
            |_| calls(libc::SYS_setpriority, &[2, 0, 5]),
            |s, _, _| nice_of(pid(s)) == Some(5),
        )
        .planted(lone_victim)
        .needing_root(),
        returns("priority_of_a_process", |s| calls(libc::SYS_setpriority, &[0, pid(s), 10])).planted(victim),
        returns("io_priority_of_a_process", |s| {
            calls(libc::SYS_ioprio_set, &[1, pid(s), (3 << 13) as usize])
        })
        .planted(victim),
        returns("affinity_of_a_process", |s| {
            let mask = 1u64;
            calls(libc::SYS_sched_setaffinity, &[pid(s), 8, (&raw const mask) as usize])
        })
        .planted(victim),
        returns("process_group_of_a_process", |s| calls(libc::SYS_getpgid, &[pid(s)])).planted(victim),
        effects(
            "daemon_that_outlives_the_run",
            |s| daemon(s, false),
            |s, _, _| {
                std::thread::sleep(Duration::from_millis(900));
                s.work("late").exists()
            },
        ),
        effects(
            "daemon_that_ignores_signals",
            |s| daemon(s, true),
            |s, _, _| {
                std::thread::sleep(Duration::from_millis(900));
                s.work("late").exists()
            },
        ),
    ]
}

fn pid(scene: &Scene) -> usize {
    scene.number("pid") as usize
}

fn killed(plant: &mut Plant) -> bool {
    plant.victim.as_mut().is_some_and(|victim| victim.killed_by() == Some(9))
}

fn proc_file(pid: usize, name: &str) -> Played {
    let bytes = std::fs::read(format!("/proc/{pid}/{name}")).map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Makes `pid` the one whom a socket tells, by SIGKILL, that there is something to read.
fn signal_by_owner(pid: usize, by_ioctl: bool) -> Played {
    const FIOSETOWN: usize = 0x8901;
    const F_SETSIG: usize = 10;
    let (own, other) = std::os::unix::net::UnixStream::pair().map_err(|e| e.to_string())?;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&own) as usize;
    let owner = pid as i32;
    if by_ioctl {
        call(libc::SYS_ioctl, &[fd, FIOSETOWN, (&raw const owner) as usize])?;
    } else {
        call(libc::SYS_fcntl, &[fd, libc::F_SETOWN as usize, pid])?;
    }
    call(libc::SYS_fcntl, &[fd, F_SETSIG, 9])?;
    call(libc::SYS_fcntl, &[fd, libc::F_SETFL as usize, (libc::O_ASYNC | libc::O_NONBLOCK) as usize])?;
    std::io::Write::write_all(&mut &other, b"x").map_err(|e| e.to_string())?;
    std::thread::sleep(std::time::Duration::from_millis(50));
    Ok("told".into())
}

/// The nice value that /proc shows.
fn nice_of(pid: usize) -> Option<i64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok()
}

/// Forks twice into a session of its own, and writes a file half a second later.
fn daemon(scene: &Scene, deaf: bool) -> Played {
    if fork()? != 0 {
        return Ok("started".into());
    }
    let _ = call(libc::SYS_setsid, &[]);
    if fork().unwrap_or(1) != 0 {
        exit(0);
    }
    if deaf {
        let all = !0u64;
        let _ = call(libc::SYS_rt_sigprocmask, &[0, (&raw const all) as usize, 0, 8]);
    }
    std::thread::sleep(Duration::from_millis(500));
    let _ = std::fs::write(scene.work("late"), "late");
    exit(0)
}
