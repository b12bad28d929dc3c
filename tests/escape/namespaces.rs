//! Namespaces, mounts and roots.

use crate::attempt::{Attempt, Open, Played, Scene, effects, returns};
use crate::raw::{at, c, call, calls, exit, fork};

pub fn attempts() -> Vec<Attempt> {
    vec![
        returns("unshare_user", |_| calls(libc::SYS_unshare, &[libc::CLONE_NEWUSER as usize])),
        returns("unshare_user_and_mount", |_| {
            calls(libc::SYS_unshare, &[(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) as usize])
        }),
        returns("unshare_mount", |_| calls(libc::SYS_unshare, &[libc::CLONE_NEWNS as usize])).namespaced(),
        returns("unshare_pid", |_| calls(libc::SYS_unshare, &[libc::CLONE_NEWPID as usize])).namespaced(),
        returns("unshare_net", |_| calls(libc::SYS_unshare, &[libc::CLONE_NEWNET as usize])).namespaced(),
        returns("unshare_uts", |_| calls(libc::SYS_unshare, &[libc::CLONE_NEWUTS as usize])).namespaced(),
        returns("unshare_ipc", |_| calls(libc::SYS_unshare, &[libc::CLONE_NEWIPC as usize])).namespaced(),
        returns("unshare_time", |_| calls(libc::SYS_unshare, &[0x80])).namespaced(),
        returns("clone_user", |_| {
            in_child(call(libc::SYS_clone, &[(libc::CLONE_NEWUSER | libc::SIGCHLD) as usize]))
        }),
        returns("clone_user_with_high_bits", |_| {
            in_child(call(libc::SYS_clone, &[(libc::CLONE_NEWUSER | libc::SIGCHLD) as usize | 1 << 40]))
        }),
        returns("clone3_user", clone3_user),
        returns("setns_own_network", |_| {
            let file = std::fs::File::open("/proc/self/ns/net").map_err(|e| e.to_string())?;
            calls(libc::SYS_setns, &[fd(&file), libc::CLONE_NEWNET as usize])
        })
        .namespaced(),
        returns("setns_by_pidfd", |_| {
            let pidfd = call(libc::SYS_pidfd_open, &[std::process::id() as usize])?;
            calls(libc::SYS_setns, &[pidfd as usize, libc::CLONE_NEWNET as usize])
        })
        .namespaced(),
        returns("mount_tmpfs", |scene| mount_tmpfs(&scene.work("."))).namespaced(),
        returns("mount_bind_of_the_root", |scene| {
            calls(
                libc::SYS_mount,
                &[at(&c("/")), at(&c(scene.work("."))), 0, (libc::MS_BIND | libc::MS_REC) as usize],
            )
        })
        .namespaced(),
        returns("mount_proc", |scene| {
            // A procfs needs a pid namespace of its own; the control makes one by its child.
            call(libc::SYS_unshare, &[libc::CLONE_NEWPID as usize]).ok();
            let child = fork()?;
            if child == 0 {
                let proc = c("proc");
                let done = call(libc::SYS_mount, &[at(&proc), at(&c(scene.work("."))), at(&proc), 0]);
                exit(i32::from(done.is_err()));
            }
            waited(child)
        })
        .namespaced(),
        effects("remount_a_read_only_grant", remount, wrote_lib).namespaced(),
        effects("mount_setattr_on_a_read_only_grant", setattr, wrote_lib).namespaced(),
        returns("new_mount_api_tmpfs", new_mount_api).namespaced(),
        returns("open_tree_clone_of_the_root", |_| {
            let flags = 1 | libc::O_CLOEXEC as usize;
            calls(libc::SYS_open_tree, &[libc::AT_FDCWD as usize, at(&c("/usr")), flags])
        })
        .namespaced(),
        returns("move_mount_over_tmp", |_| {
            let tree = call(libc::SYS_open_tree, &[libc::AT_FDCWD as usize, at(&c("/usr")), 1])?;
            let (empty, tmp) = (c(""), c("/tmp"));
            calls(libc::SYS_move_mount, &[tree as usize, at(&empty), libc::AT_FDCWD as usize, at(&tmp), 4])
        })
        .namespaced(),
        returns("pivot_root", |_| {
            // Inside, /tmp is a mount already; the control makes it one.
            let _ = mount_tmpfs(std::path::Path::new("/tmp"));
            std::fs::create_dir_all("/tmp/old").map_err(|e| e.to_string())?;
            calls(libc::SYS_pivot_root, &[at(&c("/tmp")), at(&c("/tmp/old"))])
        })
        .namespaced(),
        returns("umount_tmp", |_| {
            let _ = mount_tmpfs(std::path::Path::new("/tmp"));
            calls(libc::SYS_umount2, &[at(&c("/tmp")), libc::MNT_DETACH as usize])
        })
        .namespaced(),
        returns("chroot", |scene| calls(libc::SYS_chroot, &[at(&c(scene.work(".")))])).namespaced(),
        returns("sethostname", |_| calls(libc::SYS_sethostname, &[at(&c("taken")), 5])).namespaced(),
        returns("setdomainname", |_| calls(libc::SYS_setdomainname, &[at(&c("taken")), 5])).namespaced(),
        returns("effective_capabilities", |_| {
            let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
            let held = status.lines().any(|line| {
                line.strip_prefix("CapEff:")
                    .or(line.strip_prefix("CapBnd:"))
                    .is_some_and(|bits| u64::from_str_radix(bits.trim(), 16).is_ok_and(|bits| bits != 0))
            });
            if held { Ok("capabilities".into()) } else { Err("none".into()) }
        })
        .open_in_landlock(Open::Users),
        returns("uid_zero_of_the_kernel", |_| {
            let map = std::fs::read_to_string("/proc/self/uid_map").map_err(|e| e.to_string())?;
            let outside = map.split_whitespace().nth(1).unwrap_or_default();
            if outside == "0" { Ok("kernel uid 0".into()) } else { Err(format!("uid {outside}")) }
        })
        .needing_root()
        .open_in_landlock(Open::Root),
    ]
}

fn fd(file: &std::fs::File) -> usize {
    std::os::fd::AsRawFd::as_raw_fd(file) as usize
}

/// Ends the child that a clone made, and passes its number on.
fn in_child(cloned: Result<i64, String>) -> Played {
    match cloned? {
        0 => exit(0),
        child => waited(child),
    }
}

fn waited(child: i64) -> Played {
    let mut status = 0i32;
    call(libc::SYS_wait4, &[child as usize, (&raw mut status) as usize])?;
    if status == 0 { Ok("done".into()) } else { Err(format!("the child ended with {status:#x}")) }
}

fn clone3_user(_: &Scene) -> Played {
    let args = [libc::CLONE_NEWUSER as u64, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0];
    in_child(call(libc::SYS_clone3, &[args.as_ptr() as usize, size_of_val(&args)]))
}

fn mount_tmpfs(place: &std::path::Path) -> Played {
    let tmpfs = c("tmpfs");
    calls(libc::SYS_mount, &[at(&tmpfs), at(&c(place)), at(&tmpfs), 0])
}

fn remount(scene: &Scene) -> Played {
    let lib = c(scene.lib("."));
    let flags = (libc::MS_REMOUNT | libc::MS_BIND) as usize;
    let remounted = call(libc::SYS_mount, &[0, at(&lib), 0, flags]);
    write_lib(scene).map_err(|e| format!("remount {remounted:?}, write {e}"))
}

fn setattr(scene: &Scene) -> Played {
    let attributes = [0u64, 1, 0, 0];
    let lib = c(scene.lib("."));
    let cleared = call(
        libc::SYS_mount_setattr,
        &[libc::AT_FDCWD as usize, at(&lib), 0, attributes.as_ptr() as usize, size_of_val(&attributes)],
    );
    write_lib(scene).map_err(|e| format!("mount_setattr {cleared:?}, write {e}"))
}

fn write_lib(scene: &Scene) -> Played {
    std::fs::write(scene.lib("file"), "changed").map(|()| "wrote".into()).map_err(|e| e.to_string())
}

fn wrote_lib(scene: &Scene, _: &mut crate::plant::Plant, _: &crate::attempt::Ran) -> bool {
    std::fs::read_to_string(scene.lib("file")).is_ok_and(|text| text != "as it was")
}

fn new_mount_api(scene: &Scene) -> Played {
    const FSCONFIG_CMD_CREATE: usize = 6;
    let context = call(libc::SYS_fsopen, &[at(&c("tmpfs")), 0])? as usize;
    call(libc::SYS_fsconfig, &[context, FSCONFIG_CMD_CREATE, 0, 0, 0])?;
    let mount = call(libc::SYS_fsmount, &[context, 0, 0])? as usize;
    let (empty, place) = (c(""), c(scene.work(".")));
    calls(libc::SYS_move_mount, &[mount, at(&empty), libc::AT_FDCWD as usize, at(&place), 4])
}
