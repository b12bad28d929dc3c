//! The plan of tier `landlock`: the host's own file system, with rights by path, and a private scratch directory.

use super::{DEVICES, Plan, Rights, SYSTEM_DIRS, assignment, c_strings, links, programs, resolve_grants};
use crate::sandbox::divide::Division;
use crate::sandbox::env;
use crate::sandbox::error::Error;
use crate::sandbox::identity::Identity;
use crate::sandbox::layer::Weakened;
use crate::sandbox::notify::Scope;
use crate::sandbox::protect::Protection;
use crate::sandbox::scratch::Scratch;
use crate::sandbox::seccomp::{self, Shared};
use crate::sandbox::spec::{Access, Spec, Watch};
use crate::sandbox::sys::{self, CStrings};
use crate::sandbox::terminal;
use crate::sandbox::tier::Tier;
use rustix::fs::{AtFlags, CWD};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Entries below /etc that are looked at, where the command is root and some of them are root's alone.
const ETC_MAX: usize = 8192;

/// Directories below /etc that are entered, one in another.
const ETC_DEPTH: usize = 8;

/// Resolves `spec` for tier `landlock`. Makes the scratch directory, and changes nothing else on the host.
pub(in crate::sandbox) fn plan(spec: &Spec, weakened: Weakened) -> Result<Plan, Error> {
    let program = spec.argv.first().ok_or(Error::NoCommand)?;
    if let Some(inject) = spec.inject.first() {
        let what = format!("showing other content at {}", crate::sanitise::path(&inject.dest));
        return Err(Error::NeedsFull { what });
    }
    if let Some(denied) = spec.deny.first().filter(|_| spec.unconfined) {
        return Err(Error::NeedsFull {
            what: format!("denying {} without isolation", crate::sanitise::path(denied)),
        });
    }
    if spec.surface.bare_proc {
        return Err(Error::NeedsFull { what: "a /proc of processes alone".into() });
    }
    let landlock_abi = sys::landlock_abi().min(spec.landlock_abi.unwrap_or(u32::MAX));
    if landlock_abi == 0 && !spec.unconfined {
        return Err(Error::NoLandlock);
    }
    let resolved = resolve_grants(&spec.grants)?;
    // The host's links are there; one that is none is an error here too.
    links(&spec.links)?;
    let granted: Vec<_> = resolved.iter().map(|grant| (grant.path.clone(), grant.access)).collect();
    // What can't be denied, since it is granted.
    Protection::of(&spec.deny, &granted)?;
    let mut landlock = base_rights();
    for grant in &resolved {
        if is_device(&grant.path) {
            return Err(Error::NeedsFull {
                what: format!("granting the device {}", crate::sanitise::path(&grant.path)),
            });
        }
        let rights = match grant.access {
            Access::ReadOnly => Rights::Read,
            Access::ReadWrite => Rights::Write,
        };
        landlock.push((grant.path.clone(), rights));
    }
    if spec.tty {
        landlock.push(("/dev/tty".into(), Rights::Terminal));
    }
    let base = std::env::temp_dir();
    let scratch =
        Scratch::create(&base).map_err(|errno| Error::Scratch { path: base, reason: errno.into() })?;
    landlock.push((scratch.path().to_path_buf(), Rights::Write));
    let environment = with_scratch(&spec.env, &scratch);
    let policy = |supervised| seccomp::Policy {
        unix_sockets: spec.surface.unix_sockets,
        ptrace: spec.surface.ptrace,
        guarded: false,
        shared_directories: false,
        watched: supervised && spec.watch != Watch::Decisions,
        shared: Some(Shared { supervised, landlock_abi }),
    };
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let mut plan = Plan {
        tier: Tier::Landlock,
        weakened,
        identity: Identity { inside: (uid, gid), outside: (uid, gid), switched: false },
        namespaces: 0,
        links: Vec::new(),
        places: Vec::new(),
        system: Vec::new(),
        grants: Vec::new(),
        host_files: Vec::new(),
        files: Vec::new(),
        own_etc: false,
        protection: Protection::default(),
        guarded: Vec::new(),
        tty: spec.tty.then(terminal::Settings::of_operator),
        policy: policy(true),
        bare_proc: false,
        landlock,
        division: None,
        landlock_abi,
        seccomp: seccomp::program(policy(true)),
        seccomp_alone: seccomp::program(policy(false)),
        net: spec.net.clone(),
        limits: spec.limits.clone(),
        cwd: spec.cwd.clone().unwrap_or_else(|| scratch.home()),
        programs: programs(program, &environment)?,
        argv: CStrings::new(c_strings(spec.argv.iter().cloned(), "an argument")?),
        envp: CStrings::new(c_strings(environment.iter().map(assignment), "an environment variable")?),
        notes: if spec.unconfined { Vec::new() } else { notes(uid) },
        scratch: Some(scratch),
        no_file_rules: spec.host_files || spec.watch == Watch::Uses,
        scope: None,
    };
    if plan.policy.watched {
        let observing = spec.watch == Watch::Uses;
        plan.scope = Some(Scope { observing, ..plan.scope_of_rights() });
    }
    if plan.no_file_rules {
        plan.landlock.extend(everything());
        plan.notes.push("no file rules: the command can use every file that jess's caller can".into());
    }
    if !spec.unconfined {
        let read_only =
            granted.iter().filter(|(_, access)| *access == Access::ReadOnly && !plan.no_file_rules);
        let read_only: Vec<_> = read_only.map(|(path, _)| path.clone()).collect();
        plan.divide(&spec.deny, &read_only)?;
    }
    Ok(plan)
}

impl Plan {
    /// Takes from the rights what is denied below them, and what grants in `read_only` are not to have.
    fn divide(&mut self, deny: &[PathBuf], read_only: &[PathBuf]) -> Result<(), Error> {
        let divided = Division::of(deny, read_only, &self.landlock).inspect_err(|_| {
            if let Some(scratch) = &self.scratch {
                scratch.remove();
            }
        })?;
        if let Some(division) = divided {
            self.policy.guarded = true;
            self.seccomp = seccomp::program(self.policy);
            self.division = Some(Arc::new(division));
        }
        Ok(())
    }
}

/// File systems that speak for the kernel or for devices, wherever they are mounted.
const KERNEL_S: [&str; 14] = [
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "securityfs",
    "debugfs",
    "tracefs",
    "bpf",
    "configfs",
    "efivarfs",
    "pstore",
    "mqueue",
];

/// Every file of the host, but for what belongs to processes, devices and the kernel.
fn everything() -> Vec<(PathBuf, Rights)> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut kept: Vec<PathBuf> = ["/proc", "/sys", "/dev"].map(PathBuf::from).into();
    kept.extend(mounts.lines().filter_map(kernel_s_mount));
    // Names of what is kept can be listed.
    let mut rights = vec![(PathBuf::from("/"), Rights::List)];
    open_around(Path::new("/"), &kept, &mut rights);
    rights
}

/// The mount point of a line of mountinfo, if its file system is the kernel's.
fn kernel_s_mount(line: &str) -> Option<PathBuf> {
    let (place, kind) = line.split_once(" - ")?;
    let kernel_s = kind.split(' ').next().is_some_and(|kind| KERNEL_S.contains(&kind));
    let escaped = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    let place = place.split(' ').nth(4)?.to_owned();
    let place = escaped.iter().fold(place, |place, (code, meant)| place.replace(code, meant));
    kernel_s.then(|| place.into())
}

/// Opens what is in `dir`, which is on the way to something that is kept, but for what is kept.
fn open_around(dir: &Path, kept: &[PathBuf], rights: &mut Vec<(PathBuf, Rights)>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|t| t.is_symlink()) || kept.contains(&path) {
            continue;
        }
        if kept.iter().any(|kept| kept.starts_with(&path)) {
            open_around(&path, kept, rights);
        } else {
            rights.push((path, Rights::Write));
        }
    }
}

/// Whether `path` is a device node: what its ioctls do is nobody's to decide here.
fn is_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.metadata().is_ok_and(|m| m.file_type().is_char_device() || m.file_type().is_block_device())
}

fn base_rights() -> Vec<(PathBuf, Rights)> {
    let mut rights = Vec::new();
    for name in SYSTEM_DIRS {
        let path = Path::new("/").join(name);
        // A link leads to another of them.
        if path.symlink_metadata().is_ok_and(|m| m.is_dir()) {
            if name == "etc" && rustix::process::geteuid().is_root() {
                readable_by_all(&path, ETC_DEPTH, &mut 0, &mut rights);
            } else {
                rights.push((path, Rights::Read));
            }
        }
    }
    rights.extend(DEVICES.map(|name| (Path::new("/dev").join(name), Rights::Device)));
    rights.push(("/proc".into(), Rights::Look));
    // New terminals, but none of those that are there: the other side comes from the supervisor.
    rights.push(("/dev/ptmx".into(), Rights::Terminal));
    rights
}

/// Adds what everybody may read below `dir`: to root without capabilities, files of root's alone are open too. True if
/// that is all of it; then nothing was added.
fn whole(dir: &Path, depth: usize, seen: &mut usize, rights: &mut Vec<(PathBuf, Rights)>) -> bool {
    let (Some(depth), Ok(entries)) = (depth.checked_sub(1), std::fs::read_dir(dir)) else { return false };
    let before = rights.len();
    let mut all = true;
    let mut readable = Vec::new();
    for entry in entries.flatten() {
        *seen += 1;
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_symlink() {
            continue;
        }
        let path = entry.path();
        let open = *seen <= ETC_MAX
            && rustix::fs::statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|s| s.st_mode & 0o004 != 0 && (!kind.is_dir() || s.st_mode & 0o001 != 0));
        if open && (!kind.is_dir() || whole(&path, depth, seen, rights)) {
            readable.push(path);
        } else {
            all = false;
        }
    }
    if all {
        rights.truncate(before);
        return true;
    }
    rights.push((dir.to_path_buf(), Rights::List));
    rights.extend(readable.into_iter().map(|path| (path, Rights::Read)));
    false
}

fn readable_by_all(dir: &Path, depth: usize, seen: &mut usize, rights: &mut Vec<(PathBuf, Rights)>) {
    if whole(dir, depth, seen, rights) {
        rights.push((dir.to_path_buf(), Rights::Read));
    }
}

/// The environment with HOME and TMPDIR at their places of this run.
fn with_scratch(given: &[(OsString, OsString)], scratch: &Scratch) -> Vec<(OsString, OsString)> {
    let mut environment = given.to_vec();
    for (name, inside, here) in [("HOME", env::HOME, scratch.home()), ("TMPDIR", "/tmp", scratch.tmp())] {
        if environment.iter().any(|(n, value)| n == name && value == OsStr::new(inside)) {
            env::set(&mut environment, name, here);
        }
    }
    environment
}

/// What this tier does not hold by itself.
fn notes(uid: u32) -> Vec<String> {
    let mut notes = vec![
        "names, sizes and times of files outside the grants can be seen",
        "command lines and states of other processes can be read in /proc",
        "the command's own listeners on loopback can be reached by other processes of this host",
        "the scratch directory has no size limit of its own",
    ];
    if uid == 0 {
        notes.push("started by root: the command is uid 0, without any capability");
    }
    notes.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_is_root_s_alone_stays_closed_and_the_rest_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        mode(dir.path(), 0o755);
        for name in ["clean", "mixed", "closed"] {
            std::fs::create_dir(at(name)).unwrap();
            mode(&at(name), 0o755);
        }
        mode(&at("closed"), 0o700);
        for (name, bits) in [
            ("passwd", 0o644),
            ("shadow", 0o640),
            ("clean/a", 0o644),
            ("mixed/key", 0o600),
            ("mixed/pub", 0o644),
        ] {
            std::fs::write(at(name), "").unwrap();
            mode(&at(name), bits);
        }
        let mut rights = Vec::new();
        readable_by_all(dir.path(), ETC_DEPTH, &mut 0, &mut rights);
        let read: Vec<PathBuf> =
            rights.iter().filter(|(_, r)| *r == Rights::Read).map(|(p, _)| p.clone()).collect();
        for open in ["passwd", "clean", "mixed/pub"] {
            assert!(read.contains(&at(open)), "{open}: {read:?}");
        }
        for closed in ["shadow", "mixed", "mixed/key", "closed"] {
            assert!(!read.contains(&at(closed)), "{closed}: {read:?}");
        }
        assert!(!read.contains(&dir.path().to_path_buf()));
    }

    #[test]
    fn what_is_the_kernel_s_stays_closed_wherever_it_is_mounted() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["plain", "chroot/proc/1", "chroot/etc"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        let line = format!("9 8 0:5 / {}/chroot/proc rw - proc proc rw", base.display());
        let kept = [kernel_s_mount(&line).unwrap()];
        assert_eq!(kernel_s_mount("9 8 0:5 / /home rw - ext4 /dev/sda rw"), None);
        assert_eq!(kernel_s_mount("9 8 0:5 / /a\\040b rw - sysfs s rw"), Some("/a b".into()));
        let mut rights = Vec::new();
        open_around(&base, &kept, &mut rights);
        let mut paths: Vec<_> = rights.into_iter().map(|(path, _)| path).collect();
        paths.sort();
        assert_eq!(paths, [base.join("chroot/etc"), base.join("plain")]);
    }

    #[test]
    fn what_landlock_cannot_express_is_an_error_that_names_it_and_two_ways_out() {
        for deny in ["/proc/self/environ", "/dev/null"] {
            let spec = Spec { argv: vec!["true".into()], deny: vec![deny.into()], ..Spec::default() };
            let error = plan(&spec, Weakened::none()).err().unwrap();
            assert!(
                error.to_string().contains("leave it out, or use a host where tier full works"),
                "{error}"
            );
            assert_eq!(error.exit(), crate::exit::Exit::ISOLATION);
        }
    }
}
