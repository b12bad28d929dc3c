//! The private root: a tmpfs that shows system directories read-only, the grants, and nothing else of the host.

use super::plan::{Bind, HOST_ETC, Plan, Source, open_tree_checked};
use super::status::{Failure, Step};
use super::sys;
use super::{env, layer::Layer};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};
use std::ffi::CString;
use std::path::Path;

/// Existing directories, one of which carries the new root until it is pivoted to. Nothing is ever made on the host.
const BASES: [&str; 4] = ["/tmp", "/mnt", "/var", "/usr"];

/// What denied paths are covered with.
const COVER_FILE: &str = ".jess/denied-file";
const COVER_DIRECTORY: &str = ".jess/denied-directory";

/// Parts of procfs that speak of the whole machine; each is covered by /dev/null where it exists.
const MASKED: [&str; 9] = [
    "kcore",
    "keys",
    "key-users",
    "kallsyms",
    "timer_list",
    "sched_debug",
    "sysrq-trigger",
    "kmsg",
    "vmallocinfo",
];

/// Builds the root that `plan` describes and makes it this process's root. Needs CAP_SYS_ADMIN in the mount namespace.
pub fn enter(plan: &Plan) -> Result<(), Failure> {
    let binds: Vec<&Bind> = plan.system.iter().chain(&plan.grants).chain(&plan.host_files).collect();
    // Sources first: the new root may cover them.
    let mut trees = Vec::with_capacity(binds.len());
    for (item, bind) in (0u32..).zip(&binds) {
        trees.push(open_source(bind).map_err(Failure::of(Step::OpenTree, item))?);
    }
    let root = Root::mount().map_err(Failure::at(Step::Root))?;
    root.skeleton(plan).map_err(Failure::at(Step::Root))?;
    let system = plan.system.len();
    for (item, (bind, tree)) in (0u32..).zip(binds.iter().zip(&trees)).take(system) {
        root.attach(bind, tree.as_ref().map(AsFd::as_fd)).map_err(Failure::of(Step::Attach, item))?;
    }
    root.scratch(plan.limits.scratch_bytes)?;
    root.proc(plan.weakened.keeps(Layer::PidNamespace), plan.bare_proc)?;
    if plan.own_etc {
        root.link_etc().map_err(Failure::at(Step::Inject))?;
    }
    for (item, (path, content, mode)) in (0u32..).zip(&plan.files) {
        root.file(path, content, *mode, plan.own_etc).map_err(Failure::of(Step::Inject, item))?;
    }
    for (item, (bind, tree)) in (0u32..).zip(binds.iter().zip(&trees)).skip(system) {
        root.attach(bind, tree.as_ref().map(AsFd::as_fd)).map_err(Failure::of(Step::Attach, item))?;
    }
    root.protect(plan)?;
    for place in &plan.places {
        // What is mounted there has it already.
        let _ = root.make_dir(place);
    }
    for (name, target) in &plan.links {
        root.link(name, target);
    }
    root.pivot()
}

fn open_source(bind: &Bind) -> Result<Option<OwnedFd>, Errno> {
    let tree = match &bind.source {
        Source::Tree(_) => return Ok(None),
        Source::Checked(path, id) => open_tree_checked(path, *id)?,
        Source::Path(path) => rustix::mount::open_tree(
            rustix::fs::CWD,
            path,
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE,
        )?,
    };
    sys::mount_setattr(tree.as_fd(), bind.attributes, bind.directory, None)?;
    Ok(Some(tree))
}

/// The new root while it is built, by descriptor.
struct Root(OwnedFd);

impl Root {
    fn mount() -> Result<Root, Errno> {
        let base = BASES.into_iter().find(|base| Path::new(base).is_dir()).ok_or(Errno::NOENT)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("jess", base, "tmpfs", flags, Some(c"mode=755,size=1m,nr_inodes=8k"))?;
        rustix::process::chdir(base)?;
        rustix::fs::open(".", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map(Root)
    }

    fn skeleton(&self, plan: &Plan) -> Result<(), Errno> {
        // Nobody else has made a name here yet, so none of these can lead elsewhere.
        for dir in ["dev", "dev/pts", "dev/shm", "proc", "tmp", "run"] {
            rustix::fs::mkdirat(&self.0, dir, Mode::from_raw_mode(0o755))?;
        }
        self.make_dir(Path::new(env::HOME).strip_prefix("/").unwrap_or(Path::new("home/jess")))?;
        if plan.own_etc {
            self.make_dir(Path::new("etc"))?;
        }
        for (link, target) in [
            ("dev/ptmx", "pts/ptmx"),
            ("dev/fd", "/proc/self/fd"),
            ("dev/stdin", "/proc/self/fd/0"),
            ("dev/stdout", "/proc/self/fd/1"),
            ("dev/stderr", "/proc/self/fd/2"),
        ] {
            rustix::fs::symlinkat(target, &self.0, link)?;
        }
        Ok(())
    }

    /// Makes the directory `path` and its parents where they are missing, and opens it. Symbolic links on the way are an
    /// error.
    fn make_dir(&self, path: &Path) -> Result<OwnedFd, Errno> {
        match self.open(path) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else { return Err(Errno::INVAL) };
        match rustix::fs::mkdirat(self.make_dir(parent)?, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => self.open(path),
            Err(errno) => Err(errno),
        }
    }

    /// Opens `path` below the root without following a link.
    fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        rustix::fs::openat2(
            &self.0,
            path,
            OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH,
        )
    }

    /// Attaches the clone of `bind` at its place, made if needed.
    fn attach(&self, bind: &Bind, tree: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
        let tree = match (&bind.source, tree) {
            (Source::Tree(tree), _) => tree.as_fd(),
            (_, Some(tree)) => tree,
            (_, None) => return Err(Errno::BADF),
        };
        let place = match self.open(&bind.dest) {
            Ok(place) => place,
            Err(Errno::NOENT) => {
                self.make_place(&bind.dest, bind.directory)?;
                self.open(&bind.dest)?
            }
            Err(errno) => return Err(errno),
        };
        move_mount(tree, place.as_fd())
    }

    /// Pins and covers what [`super::protect`] says. A path that went away meanwhile is an error.
    fn protect(&self, plan: &Plan) -> Result<(), Failure> {
        let protection = &plan.protection;
        let inside = |path: &Path| {
            let path = path.strip_prefix("/").unwrap_or(path);
            match path.strip_prefix("etc") {
                Ok(rest) if plan.own_etc => Path::new(HOST_ETC).join(rest),
                _ => path.to_path_buf(),
            }
        };
        let mut item = 0u32;
        for pin in &protection.pins {
            self.pin(&inside(pin)).map_err(Failure::of(Step::Protect, item))?;
            item += 1;
        }
        for mask in &protection.masks {
            self.cover(&inside(&mask.path), mask.directory).map_err(Failure::of(Step::Protect, item))?;
            item += 1;
        }
        Ok(())
    }

    /// Mounts what is at `path` onto itself, so that it can't be renamed.
    fn pin(&self, path: &Path) -> Result<(), Errno> {
        let place = self.open(path)?;
        let flags = OpenTreeFlags::AT_EMPTY_PATH
            | OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let tree = rustix::mount::open_tree(&place, c"", flags)?;
        move_mount(tree.as_fd(), place.as_fd())
    }

    /// Mounts something empty onto `path` that its owner may not even read: permission bits can't be changed on a
    /// read-only mount.
    fn cover(&self, path: &Path, directory: bool) -> Result<(), Errno> {
        let place = self.open(path)?;
        let cover = Path::new(if directory { COVER_DIRECTORY } else { COVER_FILE });
        if let Err(Errno::NOENT) = self.open(cover) {
            if directory {
                self.make_dir(cover)?;
                rustix::fs::chmodat(&self.0, cover, Mode::empty(), AtFlags::empty())?;
            } else {
                self.create(cover, b"", 0)?;
            }
        }
        let flags =
            OpenTreeFlags::AT_EMPTY_PATH | OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree = rustix::mount::open_tree(self.open(cover)?, c"", flags)?;
        let attributes = sys::MOUNT_ATTR_RDONLY | sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NODEV;
        sys::mount_setattr(tree.as_fd(), attributes, false, None)?;
        move_mount(tree.as_fd(), place.as_fd())
    }

    fn make_place(&self, path: &Path, directory: bool) -> Result<(), Errno> {
        if directory {
            return self.make_dir(path).map(drop);
        }
        self.create(path, b"", 0o444).map(drop)
    }

    fn create(&self, path: &Path, content: &[u8], mode: u32) -> Result<OwnedFd, Errno> {
        let parent = self.make_dir(path.parent().unwrap_or(Path::new("")))?;
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = rustix::fs::openat(&parent, name, flags, Mode::from_raw_mode(mode & 0o777))?;
        let mut rest = content;
        while !rest.is_empty() {
            let n = rustix::io::retry_on_intr(|| rustix::io::write(&fd, rest))?;
            rest = rest.get(n..).unwrap_or_default();
        }
        Ok(fd)
    }

    /// A file that exists only inside. In the host's own /etc it covers the file of that name.
    fn file(&self, path: &Path, content: &[u8], mode: u32, own_etc: bool) -> Result<(), Errno> {
        if path.starts_with("etc") && !own_etc {
            let Ok(place) = self.open(path) else { return Ok(()) };
            let hidden = Path::new(".jess").join(path);
            self.create(&hidden, content, mode)?;
            let tree = rustix::mount::open_tree(
                self.open(&hidden)?,
                c"",
                OpenTreeFlags::AT_EMPTY_PATH
                    | OpenTreeFlags::OPEN_TREE_CLONE
                    | OpenTreeFlags::OPEN_TREE_CLOEXEC,
            )?;
            sys::mount_setattr(tree.as_fd(), sys::MOUNT_ATTR_RDONLY, false, None)?;
            return move_mount(tree.as_fd(), place.as_fd());
        }
        if path.starts_with("etc")
            && let Some(name) = path.file_name()
        {
            let parent = self.make_dir(path.parent().unwrap_or(Path::new("etc")))?;
            let _ = rustix::fs::unlinkat(parent, name, AtFlags::empty());
        }
        self.create(path, content, mode).map(drop)
    }

    fn link(&self, path: &Path, target: &Path) {
        let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else { return };
        if let Ok(parent) = self.make_dir(parent) {
            // Where something is already there, the name already means something inside.
            let _ = rustix::fs::symlinkat(target, parent, name);
        }
    }

    /// Fills the run's own /etc with a link to each entry of the host's.
    fn link_etc(&self) -> Result<(), Errno> {
        let host = rustix::fs::openat(
            &self.0,
            HOST_ETC,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let etc = self.open(Path::new("etc"))?;
        for entry in rustix::fs::Dir::read_from(&host)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b".." | b"claude-code") {
                continue;
            }
            let mut target = format!("/{HOST_ETC}/").into_bytes();
            target.extend_from_slice(name.to_bytes());
            let target = CString::new(target).map_err(|_| Errno::INVAL)?;
            rustix::fs::symlinkat(&target, &etc, name)?;
        }
        Ok(())
    }

    fn scratch(&self, bytes: u64) -> Result<(), Failure> {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let home = Path::new(env::HOME).strip_prefix("/").unwrap_or(Path::new("home/jess"));
        for (place, mode) in
            [(Path::new("tmp"), 1777), (Path::new("run"), 755), (Path::new("dev/shm"), 1777), (home, 700)]
        {
            let options = CString::new(format!("mode={mode},size={bytes},nr_inodes=1m")).unwrap_or_default();
            rustix::mount::mount("jess", place, "tmpfs", flags, Some(options.as_c_str()))
                .map_err(Failure::at(Step::Scratch))?;
        }
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
        rustix::mount::mount(
            "devpts",
            "dev/pts",
            "devpts",
            flags,
            Some(c"newinstance,ptmxmode=0666,mode=0620"),
        )
        .map_err(Failure::at(Step::Devpts))
    }

    fn proc(&self, own_pids: bool, bare: bool) -> Result<(), Failure> {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let options = if bare { c"hidepid=2,subset=pid" } else { c"hidepid=2" };
        let mounted = rustix::mount::mount("proc", "proc", "proc", flags, Some(options));
        if !own_pids {
            // The drill without a pid namespace may not make a procfs; it shows the host's.
            return mounted.or_else(|_| self.host_proc()).map_err(Failure::at(Step::Proc));
        }
        mounted.map_err(Failure::at(Step::Proc))?;
        let mask = || -> Result<(), Errno> {
            let proc = self.open(Path::new("proc"))?;
            for name in MASKED {
                match self.open(&Path::new("proc").join(name)) {
                    Ok(place) => move_mount(clone(&self.0, c"dev/null")?.as_fd(), place.as_fd())?,
                    Err(Errno::NOENT) => {}
                    Err(errno) => return Err(errno),
                }
            }
            let sys_tree = match clone(&proc, c"sys") {
                Err(Errno::NOENT) if bare => return Ok(()),
                tree => tree?,
            };
            sys::mount_setattr(sys_tree.as_fd(), sys::MOUNT_ATTR_RDONLY, false, None)?;
            move_mount(sys_tree.as_fd(), self.open(Path::new("proc/sys"))?.as_fd())
        };
        mask().map_err(Failure::at(Step::ProcMask))
    }

    fn host_proc(&self) -> Result<(), Errno> {
        let tree = rustix::mount::open_tree(
            rustix::fs::CWD,
            c"/proc",
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE,
        )?;
        move_mount(tree.as_fd(), self.open(Path::new("proc"))?.as_fd())
    }

    fn pivot(self) -> Result<(), Failure> {
        let pivot = || -> Result<(), Errno> {
            rustix::process::fchdir(&self.0)?;
            rustix::process::pivot_root(".", ".")?;
            rustix::mount::unmount(".", UnmountFlags::DETACH)?;
            rustix::process::chdir("/")
        };
        pivot().map_err(Failure::at(Step::Pivot))?;
        let read_only = || -> Result<(), Errno> {
            let root =
                rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            let attributes = sys::MOUNT_ATTR_RDONLY | sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NODEV;
            sys::mount_setattr(root.as_fd(), attributes, false, None)
        };
        read_only().map_err(Failure::at(Step::ReadOnly))
    }
}

fn clone(dir: &OwnedFd, path: &std::ffi::CStr) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    rustix::mount::open_tree(dir, path, flags)
}

fn move_mount(tree: BorrowedFd<'_>, place: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(tree, c"", place, c"", flags)
}
