//! Files outside the grants, read-only grants, and what is left of them through /proc.

use crate::attempt::{Attempt, Open, Played, Ran, Scene, effects, loots, returns};
use crate::plant::{Plant, Removed, inherited, terminal};
use crate::raw::{at, c, call, calls};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;

/// The file of [`crate::plant::contained`], as others see it.
fn contained(s: &Scene) -> std::path::PathBuf {
    under(&format!("/proc/{}/root", s.number("pid")), &s.work("file"))
}

/// The victim's memory, as others see it.
fn memory(s: &Scene) -> std::path::PathBuf {
    format!("/proc/{}/fd/{}", s.number("pid"), s.number("memory")).into()
}

pub fn attempts() -> Vec<Attempt> {
    let mut all = vec![
        loots("read_outside", |s| read(&s.outside("secret"))),
        loots("read_home", |s| read(&s.base.join("home/.ssh/id_ed25519"))),
        loots("read_by_parent_directory", |s| read(&s.work("../outside/secret"))),
        loots("read_by_symlink_in_a_grant", |s| {
            std::os::unix::fs::symlink(s.outside("secret"), s.work("link")).map_err(text)?;
            read(&s.work("link"))
        }),
        loots("read_by_proc_self_root", |s| read(&under("/proc/self/root", &s.outside("secret")))),
        loots("read_by_proc_parent_root", |s| {
            let root = format!("/proc/{}/root", std::os::unix::process::parent_id());
            read(&under(&root, &s.outside("secret")))
        }),
        loots("read_by_proc_self_cwd", |_| read(Path::new("/proc/self/cwd/../outside/secret"))),
        loots("read_by_openat2", |s| {
            let how = [libc::O_RDONLY as u64, 0, 0];
            let path = c(s.outside("secret"));
            let fd = call(
                libc::SYS_openat2,
                &[libc::AT_FDCWD as usize, at(&path), how.as_ptr() as usize, size_of_val(&how)],
            )?;
            read(Path::new(&format!("/proc/self/fd/{fd}")))
        }),
        loots("read_by_hard_link", |s| {
            fs::hard_link(s.outside("secret"), s.work("hard")).map_err(text)?;
            read(&s.work("hard"))
        }),
        loots("read_by_rename", |s| {
            fs::rename(s.outside("secret"), s.work("moved")).map_err(text)?;
            read(&s.work("moved"))
        }),
        loots("read_by_inherited_directory", |s| {
            let path = c("secret");
            let fd = call(libc::SYS_openat, &[s.number("fd") as usize, at(&path), 0])?;
            read(Path::new(&format!("/proc/self/fd/{fd}")))
        })
        .planted(|s| inherited(fs::File::open(s.outside("")).expect("furnished"))),
        loots("read_inherited_file", |s| {
            let mut bytes = [0u8; 24];
            let args = [s.number("fd") as usize, bytes.as_mut_ptr() as usize, bytes.len(), 0];
            call(libc::SYS_pread64, &args)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        })
        .planted(|s| inherited(fs::File::open(s.outside("secret")).expect("furnished"))),
        returns("list_outside", |s| fs::read_dir(s.outside("")).map(|_| "listed".into()).map_err(text)),
        returns("stat_outside", |s| fs::metadata(s.outside("secret")).map(|_| "seen".into()).map_err(text))
            .open_in_landlock(Open::All),
        loots("attribute_outside", |s| {
            let (path, name) = (c(s.outside("secret")), c("user.escape"));
            let mut value = [0u8; 64];
            let args = [at(&path), at(&name), value.as_mut_ptr() as usize, value.len()];
            let n = call(libc::SYS_getxattr, &args)? as usize;
            Ok(String::from_utf8_lossy(value.get(..n).unwrap_or_default()).into_owned())
        })
        .planted(|s| {
            let (path, name) = (c(s.outside("secret")), c("user.escape"));
            let args = [at(&path), at(&name), s.secret.as_ptr() as usize, s.secret.len(), 0];
            call(libc::SYS_setxattr, &args).expect("the file system has attributes");
            Plant::default()
        })
        .open_in_landlock(Open::All),
        returns("watch_outside", |s| {
            let fd = call(libc::SYS_inotify_init1, &[0])?;
            calls(libc::SYS_inotify_add_watch, &[fd as usize, at(&c(s.outside("."))), 2])
        }),
        returns("execute_outside", |s| {
            let program = s.outside("program");
            std::process::Command::new(program).status().map(|_| "ran".into()).map_err(text)
        })
        .planted(|s| {
            fs::copy("/bin/true", s.outside("program")).expect("room");
            Plant::default()
        }),
        effects("create_outside", |s| write(&s.outside("new")), |s, _, _| s.outside("new").exists()),
        effects("overwrite_outside", |s| write(&s.outside("target")), target_changed),
        effects(
            "append_outside",
            |s| {
                let mut file = fs::File::options().append(true).open(s.outside("target")).map_err(text)?;
                file.write_all(b"x").map(|()| "wrote".into()).map_err(text)
            },
            target_changed,
        ),
        effects(
            "truncate_outside",
            |s| calls(libc::SYS_truncate, &[at(&c(s.outside("target"))), 0]),
            target_changed,
        ),
        effects(
            "chmod_in_another_mount_namespace",
            |s| chmod(&contained(s), 0o777),
            |s, _, _| mode(&contained(s)) == 0o777,
        )
        .planted(crate::plant::contained),
        effects(
            "truncate_in_another_mount_namespace",
            |s| calls(libc::SYS_truncate, &[at(&c(contained(s))), 0]),
            |s, _, _| fs::metadata(contained(s)).is_ok_and(|m| m.len() == 0),
        )
        .planted(crate::plant::contained),
        returns("watch_in_another_mount_namespace", |s| {
            let fd = call(libc::SYS_inotify_init1, &[0])?;
            calls(libc::SYS_inotify_add_watch, &[fd as usize, at(&c(contained(s))), 2])
        })
        .planted(crate::plant::contained),
        effects(
            "truncate_memory_of_another_process",
            |s| calls(libc::SYS_truncate, &[at(&c(memory(s))), 0]),
            |s, _, _| fs::metadata(memory(s)).is_ok_and(|m| m.len() == 0),
        )
        .planted(crate::plant::victim),
        // Access mode 3: neither reading nor writing, as for requests to devices.
        effects(
            "truncate_outside_in_neither_access_mode",
            |s| {
                let path = c(s.outside("target"));
                let flags = (libc::O_TRUNC | libc::O_ACCMODE) as usize;
                calls(libc::SYS_openat, &[libc::AT_FDCWD as usize, at(&path), flags])
            },
            target_changed,
        ),
        returns("open_outside_in_neither_access_mode", |s| {
            let path = c(s.outside("target"));
            calls(libc::SYS_openat, &[libc::AT_FDCWD as usize, at(&path), libc::O_ACCMODE as usize])
        }),
        effects(
            "remove_outside",
            |s| fs::remove_file(s.outside("target")).map(|()| "removed".into()).map_err(text),
            target_changed,
        ),
        effects(
            "replace_outside_by_rename",
            |s| fs::rename(s.work("own"), s.outside("target")).map(|()| "renamed".into()).map_err(text),
            target_changed,
        ),
        effects(
            "write_by_symlink_in_a_grant",
            |s| {
                std::os::unix::fs::symlink(s.outside("target"), s.work("link")).map_err(text)?;
                write(&s.work("link"))
            },
            target_changed,
        ),
        effects(
            "make_directory_outside",
            |s| fs::create_dir(s.outside("dir")).map(|()| "made".into()).map_err(text),
            |s, _, _| s.outside("dir").exists(),
        ),
        effects(
            "chmod_outside",
            |s| chmod(&s.outside("target"), 0o777),
            |s, _, _| mode(&s.outside("target")) == 0o777,
        ),
        effects("touch_outside", |s| touch(&s.outside("target")), |s, _, _| old(&s.outside("target"))),
        effects("write_read_only_grant", |s| write(&s.lib("file")), lib_changed),
        effects(
            "write_read_only_grant_by_descriptor",
            |s| {
                let file = fs::File::open(s.lib("file")).map_err(text)?;
                let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
                write(Path::new(&format!("/proc/self/fd/{fd}")))
            },
            lib_changed,
        ),
        effects(
            "remove_from_read_only_grant",
            |s| fs::remove_file(s.lib("file")).map(|()| "removed".into()).map_err(text),
            lib_changed,
        ),
        effects(
            "link_into_read_only_grant",
            |s| fs::hard_link(s.lib("file"), s.work("hard")).map(|()| "linked".into()).map_err(text),
            |s, _, _| s.work("hard").exists(),
        ),
        effects(
            "chmod_read_only_grant",
            |s| chmod(&s.lib("file"), 0o777),
            |s, _, _| mode(&s.lib("file")) == 0o777,
        ),
        effects(
            "fchmod_on_a_read_only_descriptor",
            |s| {
                let file = fs::File::open(s.lib("file")).map_err(text)?;
                calls(libc::SYS_fchmod, &[std::os::fd::AsRawFd::as_raw_fd(&file) as usize, 0o777])
            },
            |s, _, _| mode(&s.lib("file")) == 0o777,
        ),
        effects("touch_read_only_grant", |s| touch(&s.lib("file")), |s, _, _| old(&s.lib("file"))),
        effects(
            "chmod_by_a_name_in_proc",
            |s| {
                let file = fs::File::open(s.lib("file")).map_err(text)?;
                let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
                chmod(Path::new(&format!("/proc/self/fd/{fd}")), 0o777)
            },
            |s, _, _| mode(&s.lib("file")) == 0o777,
        ),
        effects(
            "chmod_by_a_link_in_a_grant",
            |s| {
                std::os::unix::fs::symlink(s.outside("target"), s.work("link")).map_err(text)?;
                chmod(&s.work("link"), 0o777)
            },
            |s, _, _| mode(&s.outside("target")) == 0o777,
        ),
        effects(
            "chmod_of_a_directory_descriptor",
            |s| {
                let dir = fs::File::open(s.lib(".")).map_err(text)?;
                let fd = std::os::fd::AsRawFd::as_raw_fd(&dir) as usize;
                let at_empty_path = libc::AT_EMPTY_PATH as usize;
                calls(libc::SYS_fchmodat2, &[fd, at(&c("")), 0o777, at_empty_path])
            },
            |s, _, _| mode(&s.lib(".")) == 0o777,
        ),
        effects(
            "chmod_outside_while_the_name_changes",
            |s| {
                race(&s.work("own"), &s.outside("target"), |path| {
                    call(libc::SYS_fchmodat, &[libc::AT_FDCWD as usize, path, 0o777]).is_ok()
                })
            },
            |s, _, _| mode(&s.outside("target")) == 0o777,
        ),
        effects(
            "attribute_by_a_read_only_descriptor",
            |s| {
                let file = fs::File::open(s.lib("file")).map_err(text)?;
                let fd = std::os::fd::AsRawFd::as_raw_fd(&file) as usize;
                let name = c("user.escape");
                calls(libc::SYS_fsetxattr, &[fd, at(&name), at(&name), 4, 0])
            },
            |s, _, _| {
                let (path, name) = (c(s.lib("file")), c("user.escape"));
                call(libc::SYS_getxattr, &[at(&path), at(&name), 0, 0]).is_ok()
            },
        ),
        effects(
            "no_dump_flag_on_a_read_only_grant",
            |s| {
                let file = fs::File::open(s.lib("file")).map_err(text)?;
                let fd = std::os::fd::AsRawFd::as_raw_fd(&file) as usize;
                let mut flags = 0i64;
                call(libc::SYS_ioctl, &[fd, 0x8008_6601, (&raw mut flags) as usize])?;
                flags |= 0x40;
                calls(libc::SYS_ioctl, &[fd, 0x4008_6602, (&raw const flags) as usize])
            },
            |s, _, _| {
                let file = fs::File::open(s.lib("file")).expect("furnished");
                let fd = std::os::fd::AsRawFd::as_raw_fd(&file) as usize;
                let mut flags = 0i64;
                let _ = call(libc::SYS_ioctl, &[fd, 0x8008_6601, (&raw mut flags) as usize]);
                flags & 0x40 != 0
            },
        ),
        returns("lease_on_a_read_only_grant", |s| {
            let file = fs::File::open(s.lib("file")).map_err(text)?;
            let fd = std::os::fd::AsRawFd::as_raw_fd(&file) as usize;
            const F_SETLEASE: usize = 1024;
            calls(libc::SYS_fcntl, &[fd, F_SETLEASE, libc::F_RDLCK as usize])
        }),
        returns("line_discipline_of_an_own_terminal", |_| {
            let master = fs::File::options().read(true).write(true).open("/dev/ptmx").map_err(text)?;
            let fd = std::os::fd::AsRawFd::as_raw_fd(&master) as usize;
            let (unlock, plain) = (0i32, 0i32);
            const TIOCSPTLCK: usize = 0x4004_5431;
            const TIOCSETD: usize = 0x5423;
            call(libc::SYS_ioctl, &[fd, TIOCSPTLCK, (&raw const unlock) as usize])?;
            calls(libc::SYS_ioctl, &[fd, TIOCSETD, (&raw const plain) as usize])
        }),
        effects(
            "change_the_group_of_a_read_only_grant",
            |s| {
                calls(
                    libc::SYS_fchownat,
                    &[libc::AT_FDCWD as usize, at(&c(s.lib("file"))), usize::MAX, 12345, 0],
                )
            },
            |s, _, _| {
                std::os::unix::fs::MetadataExt::gid(&fs::metadata(s.lib("file")).expect("furnished")) == 12345
            },
        )
        .needing_root(),
        loots("scratch_of_another_run", |s| read(Path::new(s.word("scratch")))).planted(|s| {
            use std::os::unix::fs::DirBuilderExt;
            let uid = rustix::process::geteuid().as_raw();
            let name = &s.secret[..8];
            let dir = std::env::temp_dir().join(format!("jess-{uid}-neighbour-{name}"));
            fs::DirBuilder::new().mode(0o700).create(&dir).expect("a new name");
            fs::write(dir.join("secret"), &s.secret).expect("own directory");
            Plant { removed: Some(Removed(dir.clone())), ..Plant::default() }
                .word("scratch", dir.join("secret").display())
        }),
        returns("setxattr_on_read_only_grant", |s| {
            let (path, name) = (c(s.lib("file")), c("user.escape"));
            calls(libc::SYS_setxattr, &[at(&path), at(&name), name.as_ptr() as usize, 4, 0])
        }),
        effects(
            "set_user_id_bit_in_a_grant",
            |s| chmod(&s.work("own"), 0o4755),
            |s, _, _| mode(&s.work("own")) & 0o4000 != 0,
        ),
        effects(
            "set_group_id_bit_at_creation",
            |s| {
                let flags = (libc::O_CREAT | libc::O_WRONLY) as usize;
                let path = c(s.work("made"));
                calls(libc::SYS_openat, &[libc::AT_FDCWD as usize, at(&path), flags, 0o2755])
            },
            |s, _, _| s.work("made").exists() && mode(&s.work("made")) & 0o2000 != 0,
        ),
        effects("leave_a_file_in_tmp", |s| write(&shared("/tmp", s)), |s, _, _| left(&shared("/tmp", s))),
        effects(
            "leave_a_file_in_var_tmp",
            |s| write(&shared("/var/tmp", s)),
            |s, _, _| left(&shared("/var/tmp", s)),
        ),
        effects(
            "leave_a_file_in_dev_shm",
            |s| write(&shared("/dev/shm", s)),
            |s, _, _| left(&shared("/dev/shm", s)),
        ),
        effects("reopen_standard_input_for_writing", |_| write(Path::new("/proc/self/fd/0")), target_changed)
            .planted(|s| Plant {
                stdin: Some(fs::File::open(s.outside("target")).expect("furnished")),
                ..Plant::default()
            }),
        effects(
            "truncate_the_log_that_is_standard_output",
            |_| {
                let log = fs::File::options().write(true).truncate(true).open("/proc/self/fd/1");
                log.map(|_| "truncated".into()).map_err(text)
            },
            target_changed,
        )
        .planted(|s| Plant {
            stdout: Some(fs::File::options().append(true).open(s.outside("target")).expect("furnished")),
            ..Plant::default()
        }),
        loots("read_the_operators_terminal", |s| {
            let mut terminal = fs::File::open(s.word("terminal")).map_err(text)?;
            let mut bytes = [0u8; 64];
            let n = terminal.read(&mut bytes).map_err(text)?;
            Ok(String::from_utf8_lossy(&bytes[..n]).into_owned())
        })
        .planted(|s| {
            let (mut master, path) = terminal();
            // The slave is held open: what is typed into a terminal that nobody has open is lost.
            let slave = fs::File::options().read(true).write(true).open(&path).expect("own terminal");
            master.write_all(format!("{}\n", s.secret).as_bytes()).expect("own terminal");
            Plant { held: vec![master.into(), slave.into()], ..Plant::default() }.word("terminal", path)
        }),
        returns("handle_of_a_file", |s| {
            let mut handle = [0u32; 40];
            handle[0] = 128;
            let (mut mount, path) = (0i32, c(s.work("own")));
            calls(
                libc::SYS_name_to_handle_at,
                &[
                    libc::AT_FDCWD as usize,
                    at(&path),
                    handle.as_mut_ptr() as usize,
                    (&raw mut mount) as usize,
                    0,
                ],
            )
        }),
        returns("fanotify", |_| calls(libc::SYS_fanotify_init, &[0x200, 0])),
        returns("write_proc_self_oom_score_adj", |_| {
            fs::write("/proc/self/oom_score_adj", "900").map(|()| "wrote".into()).map_err(text)
        }),
        returns("read_shadow", |_| fs::read("/etc/shadow").map(|_| "read".into()).map_err(text))
            .needing_root(),
        returns("open_system_setting_for_writing", |_| {
            let open = fs::File::options().write(true).open("/proc/sys/kernel/core_pattern");
            open.map(|_| "opened".into()).map_err(text)
        })
        .needing_root(),
        returns("make_a_device_node", |s| {
            let node = c(s.work("node"));
            let mode = (libc::S_IFCHR | 0o666) as usize;
            calls(libc::SYS_mknodat, &[libc::AT_FDCWD as usize, at(&node), mode, 0x101])
        })
        .needing_root(),
        returns("create_in_usr", |_| {
            let path = "/usr/.escape-attempt";
            let made = fs::write(path, "x");
            let _ = fs::remove_file(path);
            made.map(|()| "made".into()).map_err(text)
        })
        .needing_root(),
        returns("create_in_etc", |_| {
            let path = "/etc/.escape-attempt";
            let made = fs::write(path, "x");
            let _ = fs::remove_file(path);
            made.map(|()| "made".into()).map_err(text)
        })
        .needing_root(),
    ];
    all.extend([
        returns("read_kernel_symbols", |_| not_empty("/proc/kallsyms")).open_in_landlock(Open::All),
        returns("read_kernel_keys", |_| not_empty("/proc/key-users")).open_in_landlock(Open::All),
        returns("list_sys", |_| fs::read_dir("/sys/kernel").map(|_| "listed".into()).map_err(text)),
        returns("list_cgroups", |_| fs::read_dir("/sys/fs/cgroup").map(|_| "listed".into()).map_err(text)),
        loots("read_the_operators_environment", |_| {
            std::env::var("ESCAPE_SECRET").map_err(|e| e.to_string())
        }),
    ]);
    all
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

fn read(path: &Path) -> Played {
    fs::read_to_string(path).map_err(text)
}

fn not_empty(path: &str) -> Played {
    let mut bytes = [0u8; 16];
    match fs::File::open(path).and_then(|mut file| file.read(&mut bytes)) {
        Ok(0) => Err("empty".into()),
        Ok(_) => Ok("content".into()),
        Err(error) => Err(text(error)),
    }
}

fn under(root: &str, path: &Path) -> std::path::PathBuf {
    Path::new(root).join(path.strip_prefix("/").unwrap_or(path))
}

fn write(path: &Path) -> Played {
    fs::write(path, "escaped").map(|()| "wrote".into()).map_err(text)
}

/// Makes `attempt` on the name of a file that is the run's own while another thread swaps it for one that is not.
fn race(own: &Path, other: &Path, attempt: fn(usize) -> bool) -> Played {
    use std::os::unix::ffi::OsStrExt;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    const LENGTH: usize = 4096;
    let padded = |path: &Path| {
        let mut bytes = path.as_os_str().as_bytes().to_vec();
        bytes.resize(LENGTH, 0);
        bytes
    };
    let (own, other) = (padded(own), padded(other));
    // One buffer that both threads use, by address as the kernel does.
    let shared = Box::leak(vec![0u8; LENGTH].into_boxed_slice()).as_mut_ptr() as usize;
    static STOP: AtomicBool = AtomicBool::new(false);
    static SWAPS: AtomicUsize = AtomicUsize::new(0);
    let swapper = std::thread::spawn(move || {
        while !STOP.load(Ordering::Relaxed) {
            // On one processor each state lasts for a turn of the other thread, on two for a few calls.
            for state in [&own, &other] {
                crate::raw::poke(shared, state);
                std::thread::yield_now();
            }
            SWAPS.fetch_add(1, Ordering::Relaxed);
        }
    });
    // Until both had their turn often enough, however busy the machine is.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
    let (mut calls, mut done) = (0, 0);
    while std::time::Instant::now() < end && (calls < 500 || SWAPS.load(Ordering::Relaxed) < 500) {
        done += usize::from(attempt(shared));
        calls += 1;
        if calls % 8 == 0 {
            std::thread::yield_now();
        }
    }
    STOP.store(true, Ordering::SeqCst);
    let _ = swapper.join();
    if done == 0 { Err("no call was let through".into()) } else { Ok(format!("{done} calls")) }
}

fn chmod(path: &Path, mode: u32) -> Played {
    calls(libc::SYS_fchmodat, &[libc::AT_FDCWD as usize, at(&c(path)), mode as usize])
}

fn touch(path: &Path) -> Played {
    let times = [1i64, 0, 1, 0];
    let path = c(path);
    calls(libc::SYS_utimensat, &[libc::AT_FDCWD as usize, at(&path), times.as_ptr() as usize, 0])
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).map_or(0, |m| m.permissions().mode() & 0o7777)
}

fn old(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).is_ok_and(|m| m.mtime() == 1)
}

fn target_changed(scene: &Scene, _: &mut Plant, _: &Ran) -> bool {
    fs::read_to_string(scene.outside("target")).map_or(true, |content| content != scene.secret)
}

fn lib_changed(scene: &Scene, _: &mut Plant, _: &Ran) -> bool {
    fs::read_to_string(scene.lib("file")).map_or(true, |content| content != "as it was")
}

/// A name in a shared directory, the same on both sides.
fn shared(dir: &str, scene: &Scene) -> std::path::PathBuf {
    let name = scene.base.file_name().unwrap_or_default().to_string_lossy();
    Path::new(dir).join(format!("escape{name}"))
}

fn left(path: &Path) -> bool {
    fs::remove_file(path).is_ok()
}
