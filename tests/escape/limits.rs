//! Resource use without bound.

use crate::attempt::{Attempt, Open, effects, returns};
use crate::raw::{call, exit, fork};
use std::io::Write;

pub fn attempts() -> Vec<Attempt> {
    vec![
        // In tier `landlock` processes are counted by looking: some more than a thousand can be there for a moment.
        returns("twice_a_thousand_processes", |_| {
            let mut children = Vec::new();
            let stopped = loop {
                match fork() {
                    Ok(0) => {
                        let forever = [600i64, 0];
                        let _ = call(libc::SYS_nanosleep, &[forever.as_ptr() as usize, 0]);
                        exit(0);
                    }
                    Ok(child) => children.push(child),
                    Err(error) => break Err(error),
                }
                if children.len() > 2100 {
                    break Ok(children.len().to_string());
                }
            };
            if stopped.is_ok() {
                std::thread::sleep(std::time::Duration::from_secs(3));
            }
            for child in children {
                let _ = call(libc::SYS_kill, &[child as usize, 9]);
                let _ = call(libc::SYS_wait4, &[child as usize, 0, 0, 0]);
            }
            stopped
        })
        .may_be_ended(),
        returns("more_than_four_thousand_descriptors", |_| {
            let mut limit = [0u64; 2];
            let nofile = libc::RLIMIT_NOFILE as usize;
            call(libc::SYS_prlimit64, &[0, nofile, 0, limit.as_mut_ptr() as usize])?;
            limit[0] = limit[1];
            call(libc::SYS_prlimit64, &[0, nofile, limit.as_ptr() as usize, 0])?;
            for _ in 0..5000 {
                call(libc::SYS_dup, &[2])?;
            }
            Ok("5000".into())
        }),
        returns("file_of_eleven_gibibytes", |scene| {
            ignore(libc::SIGXFSZ)?;
            let file = std::fs::File::create(scene.work("large")).map_err(|e| e.to_string())?;
            file.set_len(11 << 30).map(|()| "made".into()).map_err(|e| e.to_string())
        }),
        returns("scratch_of_three_gibibytes", |_| {
            let path = std::env::temp_dir().join(format!("escape-{}", std::process::id()));
            let file = std::fs::File::create(&path).map_err(|e| e.to_string())?;
            let fd = std::os::fd::AsRawFd::as_raw_fd(&file) as usize;
            let filled = crate::raw::calls(libc::SYS_fallocate, &[fd, 0, 0, 3 << 30]);
            let _ = std::fs::remove_file(&path);
            filled
        })
        .open_in_landlock(Open::All),
        effects(
            "output_of_seventy_megabytes",
            |_| {
                let mut stdout = std::io::stdout().lock();
                for _ in 0..70 {
                    stdout.write_all(&[b'x'; 1 << 20]).map_err(|e| e.to_string())?;
                }
                Ok("written".into())
            },
            |_, _, ran| ran.stdout.len() > 64 << 20,
        ),
        returns("raise_the_descriptor_limit", |_| {
            let limit = [8192u64, 8192];
            crate::raw::calls(
                libc::SYS_prlimit64,
                &[0, libc::RLIMIT_NOFILE as usize, limit.as_ptr() as usize, 0],
            )
        }),
    ]
}

fn ignore(signal: i32) -> Result<i64, String> {
    let action = [libc::SIG_IGN as u64, 0, 0, 0];
    call(libc::SYS_rt_sigaction, &[signal as usize, action.as_ptr() as usize, 0, 8])
}
