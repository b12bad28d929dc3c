//! [`Plan`]: a [`Spec`] made concrete before anything is started.
//!
//! All names are resolved, all strings and the seccomp program are built, and (started by root) all granted trees are
//! cloned and id-mapped here, in the caller. The child only carries the plan out.

mod confined;
mod grants;

pub(super) use confined::plan as confined;
pub(super) use grants::open_tree_checked;
use grants::{Resolved, clone_tree, file_id, links, resolve_grants};

use super::divide::Division;
use super::env::HOME;
use super::error::Error;
use super::identity::Identity;
use super::layer::{Layer, Weakened};
use super::notify::{Scope, Witness};
use super::protect::Protection;
use super::scratch::Scratch;
use super::seccomp;
use super::spec::{Access, Content, Inject, Limits, Net, Spec, Watch};
use super::sys::{self, CStrings};
use super::terminal;
use super::tier::Tier;
use super::walk::walk;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Top-level directories that belong to the system and are shown read-only.
pub(super) const SYSTEM_DIRS: [&str; 8] = ["usr", "etc", "bin", "sbin", "lib", "lib64", "lib32", "libx32"];

/// Device nodes of the private /dev.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// What Landlock allows beneath a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rights {
    /// List directories.
    List,
    /// Read and list.
    Look,
    /// Read, list and execute.
    Read,
    /// Everything that makes and changes files, but no device nodes.
    Write,
    /// As `Write`, but what is to be made is made by PID 1.
    Guarded,
    /// Use a device node.
    Device,
    /// Use terminals, with their ioctls.
    Terminal,
}

/// Where the tree of a mount comes from.
pub(super) enum Source {
    /// Cloned in the child from this path.
    Path(PathBuf),
    /// Cloned in the child from this path, if it still is the same file.
    Checked(PathBuf, (u64, u64)),
    /// Cloned by the parent already.
    Tree(OwnedFd),
}

/// A host path that is attached to the private root.
pub(super) struct Bind {
    pub source: Source,
    /// Path inside, without the leading slash.
    pub dest: PathBuf,
    pub directory: bool,
    pub attributes: u64,
}

/// Everything that the child needs.
pub(super) struct Plan {
    pub tier: Tier,
    pub weakened: Weakened,
    pub identity: Identity,
    pub namespaces: i32,
    /// Top-level symbolic links of the host's system directories (name, target).
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Directories that links lead to, without the leading slash.
    pub places: Vec<PathBuf>,
    pub system: Vec<Bind>,
    pub grants: Vec<Bind>,
    pub host_files: Vec<Bind>,
    pub protection: Protection,
    /// Writable places in which PID 1 makes names for the command.
    pub guarded: Vec<PathBuf>,
    /// What the command's own terminal starts with, if it gets one.
    pub tty: Option<terminal::Settings>,
    /// What the seccomp filter is made from.
    pub policy: seccomp::Policy,
    /// Files with given content (path without leading slash, content, mode).
    pub files: Vec<(PathBuf, Vec<u8>, u32)>,
    /// Whether /etc is a directory of its own, with a link to each entry of the host's.
    pub own_etc: bool,
    pub landlock: Vec<(PathBuf, Rights)>,
    /// Tier `landlock`: what is enforced in place of `landlock`, where something below a grant is denied.
    pub division: Option<Arc<Division>>,
    pub landlock_abi: u32,
    pub seccomp: Vec<libc::sock_filter>,
    /// The filter where another jess, around this one, is asked already.
    pub seccomp_alone: Vec<libc::sock_filter>,
    pub net: Net,
    /// Whether /proc shows processes only.
    pub bare_proc: bool,
    pub limits: Limits,
    pub cwd: PathBuf,
    /// Full paths to try, in order.
    pub programs: Vec<CString>,
    pub argv: CStrings,
    pub envp: CStrings,
    /// What did not engage as fully as it could, in words.
    pub notes: Vec<String>,
    /// Tier `landlock`: HOME and TMPDIR.
    pub scratch: Option<Scratch>,
    /// Whether there are no rules for files.
    pub no_file_rules: bool,
    /// Where the run is watched: what it may use.
    pub scope: Option<Scope>,
}

impl Plan {
    /// Resolves `spec` for tier `full`. Nothing is changed on the host.
    pub fn new(spec: &Spec, weakened: Weakened) -> Result<Plan, Error> {
        let program = spec.argv.first().ok_or(Error::NoCommand)?;
        let identity = Identity::choose();
        let mut notes = Vec::new();
        let policy = seccomp::Policy {
            unix_sockets: spec.surface.unix_sockets,
            ptrace: spec.surface.ptrace,
            guarded: false,
            shared_directories: false,
            watched: spec.watch == Watch::Refusals,
            shared: None,
        };
        let mut plan = Plan {
            tier: Tier::Full,
            weakened,
            identity,
            namespaces: namespaces(weakened),
            links: Vec::new(),
            places: Vec::new(),
            system: Vec::new(),
            grants: Vec::new(),
            host_files: Vec::new(),
            protection: Protection::default(),
            guarded: Vec::new(),
            tty: spec.tty.then(terminal::Settings::of_operator),
            policy,
            files: Vec::new(),
            own_etc: spec.inject.iter().any(|i| i.dest.starts_with("/etc"))
                || matches!(spec.net, Net::Captured(_)),
            landlock: Vec::new(),
            division: None,
            landlock_abi: sys::landlock_abi().min(spec.landlock_abi.unwrap_or(u32::MAX)),
            seccomp: seccomp::program(policy),
            seccomp_alone: seccomp::program(seccomp::Policy { watched: false, ..policy }),
            net: spec.net.clone(),
            bare_proc: spec.surface.bare_proc,
            limits: spec.limits.clone(),
            cwd: spec.cwd.clone().unwrap_or_else(|| HOME.into()),
            programs: programs(program, &spec.env)?,
            argv: CStrings::new(c_strings(spec.argv.iter().cloned(), "an argument")?),
            envp: CStrings::new(c_strings(spec.env.iter().map(assignment), "an environment variable")?),
            notes: Vec::new(),
            scratch: None,
            no_file_rules: false,
            scope: None,
        };
        plan.add_system();
        plan.add_user_name();
        if matches!(spec.net, Net::Captured(_)) {
            for (name, text) in super::net::ETC_FILES {
                plan.files.push((Path::new("etc").join(name), text.as_bytes().to_vec(), 0o444));
            }
        }
        let resolved = resolve_grants(&spec.grants)?;
        let granted: Vec<_> = resolved.iter().map(|r| (r.path.clone(), r.access)).collect();
        plan.protection = Protection::of(&spec.deny, &granted)?;
        let idmap = plan.idmap(&resolved, &mut notes);
        for grant in resolved {
            plan.add_grant(grant, idmap.as_ref())?;
        }
        for link in links(&spec.links)? {
            plan.show_link(link);
        }
        for inject in &spec.inject {
            plan.add_inject(inject)?;
        }
        plan.add_landlock_base();
        if spec.tty {
            plan.landlock.push(("/dev/tty".into(), Rights::Terminal));
        }
        plan.share_directories();
        plan.guard()?;
        if plan.policy.watched {
            plan.scope = Some(Scope { own_root: true, ..plan.scope_of_rights() });
        }
        plan.notes.append(&mut notes);
        Ok(plan)
    }

    fn add_system(&mut self) {
        for name in SYSTEM_DIRS {
            let path = Path::new("/").join(name);
            if let Ok(target) = std::fs::read_link(&path) {
                self.links.push((name.into(), target));
            } else if path.is_dir() {
                let dest = if name == "etc" && self.own_etc { HOST_ETC.into() } else { PathBuf::from(name) };
                self.landlock.push((Path::new("/").join(&dest), Rights::Read));
                self.system.push(Bind {
                    source: Source::Path(path),
                    dest,
                    directory: true,
                    attributes: sys::MOUNT_ATTR_RDONLY | sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NODEV,
                });
            }
        }
        for name in DEVICES {
            self.landlock.push((Path::new("/dev").join(name), Rights::Device));
            self.system.push(Bind {
                source: Source::Path(Path::new("/dev").join(name)),
                dest: Path::new("dev").join(name),
                directory: false,
                attributes: sys::MOUNT_ATTR_NOSUID,
            });
        }
    }

    /// A name for the uid inside, where the host's user list has none: many tools look it up.
    fn add_user_name(&mut self) {
        let (uid, gid) = self.identity.inside;
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let known = users.lines().any(|line| line.split(':').nth(2).is_some_and(|id| id == uid.to_string()));
        if !known {
            let users = format!("jess:x:{uid}:{gid}:jess:{HOME}:/bin/sh\n{users}");
            self.files.push(("etc/passwd".into(), users.into_bytes(), 0o444));
        }
    }

    fn idmap(&self, grants: &[Resolved], notes: &mut Vec<String>) -> Option<OwnedFd> {
        if !self.identity.switched || grants.is_empty() {
            return None;
        }
        match self.identity.idmap_namespace() {
            Ok(fd) => Some(fd),
            Err(errno) => {
                notes.push(format!(
                    "grants are used with the rights of uid {}, since id-mapped mounts are not to be had: {errno}",
                    self.identity.outside.0
                ));
                None
            }
        }
    }

    fn add_grant(&mut self, grant: Resolved, idmap: Option<&OwnedFd>) -> Result<(), Error> {
        let Resolved { given, path, access, directory, id } = grant;
        if Path::new(HOME).starts_with(&path) {
            let reason = "it would cover the run's own home, which is in it; grant what you need below it";
            return Err(Error::Grant { path: given, reason: std::io::Error::other(reason) });
        }
        let mut attributes = sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NODEV;
        let rights = match access {
            Access::ReadOnly => {
                attributes |= sys::MOUNT_ATTR_RDONLY;
                Rights::Read
            }
            Access::ReadWrite => Rights::Write,
        };
        let source = if self.identity.switched && self.weakened.keeps(Layer::Mounts) {
            let (tree, mapped) = clone_tree(&path, id, attributes, idmap)
                .map_err(|errno| Error::Grant { path: given.clone(), reason: errno.into() })?;
            if idmap.is_some() && !mapped {
                self.notes.push(format!(
                    "{} is used with the rights of uid {}: its file system has no id-mapped mounts",
                    crate::sanitise::path(&path),
                    self.identity.outside.0
                ));
            }
            Source::Tree(tree)
        } else {
            Source::Checked(path.clone(), id)
        };
        if given != path
            && let Some(walk) = walk(&given, true)
        {
            walk.links.into_iter().for_each(|link| self.show_link(link));
        }
        let dest = path.strip_prefix("/").unwrap_or(&path).to_path_buf();
        self.landlock.push((path, rights));
        self.grants.push(Bind { source, dest, directory, attributes });
        Ok(())
    }

    /// Shows the link at `at`, which holds `target`, and the directory that it leads to, empty but for what is granted in it.
    fn show_link(&mut self, (at, target): (PathBuf, PathBuf)) {
        if let Ok(led) = at.canonicalize()
            && led.is_dir()
            && let Ok(below) = led.strip_prefix("/")
        {
            self.places.push(below.to_path_buf());
        }
        if let Ok(below) = at.strip_prefix("/") {
            self.links.push((below.to_path_buf(), target));
        }
    }

    fn add_inject(&mut self, inject: &Inject) -> Result<(), Error> {
        let dest = inject.dest.strip_prefix("/").unwrap_or(&inject.dest).to_path_buf();
        match &inject.content {
            Content::Bytes(bytes) => self.files.push((dest, bytes.clone(), inject.mode)),
            Content::HostFile(path) => {
                let fail = |reason| Error::Grant { path: path.clone(), reason };
                let path = path.canonicalize().map_err(fail)?;
                let id = file_id(&path).map_err(fail)?;
                let attributes = sys::MOUNT_ATTR_RDONLY | sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NODEV;
                let source = if self.identity.switched && self.weakened.keeps(Layer::Mounts) {
                    Source::Tree(clone_tree(&path, id, attributes, None).map_err(|e| fail(e.into()))?.0)
                } else {
                    Source::Checked(path, id)
                };
                self.host_files.push(Bind { source, dest, directory: false, attributes });
            }
        }
        self.landlock.push((inject.dest.clone(), Rights::Read));
        Ok(())
    }

    /// Takes from the command, everywhere above a denied name that does not exist, the right to make names, and has the
    /// calls that make one go to PID 1.
    fn guard(&mut self) -> Result<(), Error> {
        let guards = &self.protection.guards;
        let Some(first) = guards.first() else { return Ok(()) };
        if self.landlock_abi == 0 {
            return Err(Error::Unguarded { path: first.directory.join(&first.name) });
        }
        for (path, rights) in &mut self.landlock {
            if *rights == Rights::Write && guards.iter().any(|guard| guard.directory.starts_with(&*path)) {
                *rights = Rights::Guarded;
                self.guarded.push(path.clone());
            }
        }
        // There can be one that is asked, and that is PID 1.
        self.policy.watched = false;
        self.seccomp = seccomp::program(seccomp::Policy { guarded: true, ..self.policy });
        Ok(())
    }

    /// Where a writable grant hands its group down (a directory with the set-group-id bit), PID 1 is asked about that bit:
    /// what is made there has it too, and chmod, cp and tar send it along.
    fn share_directories(&mut self) {
        use std::os::unix::fs::PermissionsExt;
        let shared = |(path, rights): &(PathBuf, Rights)| {
            let directory = || path.metadata().ok().filter(std::fs::Metadata::is_dir);
            *rights == Rights::Write && directory().is_some_and(|m| m.permissions().mode() & 0o2000 != 0)
        };
        if !self.policy.watched && self.landlock.iter().any(shared) {
            self.policy.shared_directories = true;
            self.seccomp = seccomp::program(self.policy);
        }
    }

    /// Whether PID 1 is asked about some calls.
    pub fn asks_init(&self) -> bool {
        self.policy.shared_directories || !self.guarded.is_empty()
    }

    fn add_landlock_base(&mut self) {
        if self.weakened.keeps(Layer::Mounts) {
            self.landlock.push(("/".into(), Rights::List));
        }
        if self.own_etc {
            self.landlock.push(("/etc".into(), Rights::Read));
        }
        self.landlock.push(("/proc".into(), Rights::Look));
        self.landlock.push(("/dev/pts".into(), Rights::Terminal));
        for scratch in ["/tmp", "/run", "/dev/shm", HOME] {
            self.landlock.push((scratch.into(), Rights::Write));
        }
    }

    /// The witness of a run that is watched.
    pub fn witness(&self) -> Option<Witness> {
        let scope = self.scope.clone()?;
        Some(Witness::new(seccomp::Plain::of(self.policy), scope))
    }

    /// What the rights that are planned now allow.
    fn scope_of_rights(&self) -> Scope {
        Scope { readable: self.readable(), writable: self.writable(), ..Scope::default() }
    }

    /// Real paths beneath which the command may write, for the supervisor of tier `landlock`.
    pub fn writable(&self) -> Vec<PathBuf> {
        self.paths_with(|rights| matches!(rights, Rights::Write | Rights::Guarded))
    }

    /// Real paths beneath which it may read.
    pub fn readable(&self) -> Vec<PathBuf> {
        self.paths_with(|rights| matches!(rights, Rights::Read | Rights::Write | Rights::Guarded))
    }

    fn paths_with(&self, wanted: impl Fn(Rights) -> bool) -> Vec<PathBuf> {
        let granted = self.landlock.iter().filter(|(_, rights)| wanted(*rights));
        granted.map(|(path, _)| path.canonicalize().unwrap_or_else(|_| path.clone())).collect()
    }

    /// The descriptors that the inside needs: first trees to attach, then what a directory is removed by.
    pub fn descriptors(&self) -> (Vec<BorrowedFd<'_>>, Vec<BorrowedFd<'_>>) {
        let binds = self.system.iter().chain(&self.grants).chain(&self.host_files);
        let trees = binds.filter_map(|bind| match &bind.source {
            Source::Tree(tree) => Some(tree.as_fd()),
            _ => None,
        });
        let scratch = self.scratch.iter().flat_map(Scratch::descriptors);
        (trees.collect(), scratch.collect())
    }

    /// The item that a failed step is about.
    pub fn item(&self, failure: super::status::Failure) -> Option<PathBuf> {
        use super::status::Step;
        let index = failure.item as usize;
        match failure.step {
            Step::OpenTree | Step::Attach => self
                .system
                .iter()
                .chain(&self.grants)
                .chain(&self.host_files)
                .nth(index)
                .map(|b| Path::new("/").join(&b.dest)),
            Step::Protect => {
                let masks = self.protection.masks.iter().map(|mask| &mask.path);
                self.protection.pins.iter().chain(masks).nth(index).cloned()
            }
            Step::Inject => self.files.get(index).map(|(path, _, _)| Path::new("/").join(path)),
            _ => None,
        }
    }
}

/// Where the host's /etc is when the run has a directory of its own there.
pub(super) const HOST_ETC: &str = ".host-etc";

fn namespaces(weakened: Weakened) -> i32 {
    let mut flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS;
    for (layer, flag) in [
        (Layer::PidNamespace, libc::CLONE_NEWPID),
        (Layer::NetNamespace, libc::CLONE_NEWNET),
        (Layer::IpcNamespace, libc::CLONE_NEWIPC),
        (Layer::HostIdentity, libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP),
    ] {
        if weakened.keeps(layer) {
            flags |= flag;
        }
    }
    flags
}

fn assignment((name, value): &(OsString, OsString)) -> OsString {
    let mut both = name.clone();
    both.push("=");
    both.push(value);
    both
}

fn c_strings(strings: impl Iterator<Item = OsString>, what: &'static str) -> Result<Vec<CString>, Error> {
    strings.map(|s| CString::new(s.into_vec()).map_err(|_| Error::Nul { what })).collect()
}

/// The paths to try for `program`: itself if it has a slash, else each directory of the run's PATH.
fn programs(program: &OsStr, env: &[(OsString, OsString)]) -> Result<Vec<CString>, Error> {
    let nul = |_| Error::Nul { what: "the program's name" };
    if program.is_empty() {
        return Err(Error::NoCommand);
    }
    if program.as_bytes().contains(&b'/') {
        return Ok(vec![CString::new(program.as_bytes()).map_err(nul)?]);
    }
    let path =
        env.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new(super::env::PATH), |(_, value)| value);
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| CString::new(dir.join(program).into_os_string().into_vec()).map_err(nul))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::spec::Grant;

    #[test]
    fn a_program_name_is_looked_up_in_the_run_s_own_path() {
        let env = vec![("PATH".into(), "/a:relative:/b".into())];
        let tried = programs(OsStr::new("tool"), &env).unwrap();
        assert_eq!(tried, [c"/a/tool".to_owned(), c"/b/tool".to_owned()]);
        assert_eq!(programs(OsStr::new("./tool"), &env).unwrap(), [c"./tool".to_owned()]);
    }

    #[test]
    fn a_grant_that_does_not_exist_is_named() {
        let spec = Spec {
            argv: vec!["true".into()],
            grants: vec![Grant { path: "/nonexistent/x".into(), access: Access::ReadOnly }],
            ..Spec::default()
        };
        let error = Plan::new(&spec, Weakened::none()).err().unwrap();
        assert!(error.to_string().contains("/nonexistent/x") && error.is_usage());
    }
}
