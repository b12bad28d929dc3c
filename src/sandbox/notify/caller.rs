//! The process whose call waits, as the supervisor sees it: its memory, its descriptors, the paths it means.

use super::Listener;
use crate::sandbox::sys::notify as sys;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Longest path, with its end (PATH_MAX).
pub const PATH_BYTES: usize = 4096;

/// Bytes that are read of another process at once: a read never crosses a page that may be missing.
const PAGE: u64 = 4096;

/// `AT_FDCWD`, as it arrives in a register.
const AT_FDCWD: i32 = libc::AT_FDCWD;

/// A caller. Everything that is read of it is read from the process that made the call: each access checks afterwards
/// that the call still waits.
pub struct Caller<'a> {
    pub listener: &'a Listener,
    pub call: sys::Notification,
}

/// A file that a caller named, opened without any right to its content.
pub struct Object {
    pub fd: OwnedFd,
    /// Where it is. A name that leads to it from here too, and not only from another mount namespace.
    pub path: PathBuf,
    /// Whether it is what a descriptor of the caller's is of.
    held: bool,
}

impl Object {
    /// Whether it is the command's own whatever grants say: a pipe, a socket or memory that it holds, which have no place
    /// among the host's files. Those have no name, or one that the kernel made up for a file that never had a link.
    pub fn is_held_and_nowhere(&self) -> bool {
        let unnamed = || rustix::fs::fstat(&self.fd).is_ok_and(|stat| stat.st_nlink == 0);
        self.held && !(self.path.is_absolute() && !(self.is_memory() && unnamed()))
    }

    fn is_memory(&self) -> bool {
        self.path.as_os_str().as_bytes().starts_with(b"/memfd:")
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> Result<bool, Errno> {
        let stat = rustix::fs::fstat(&self.fd)?;
        Ok(rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir())
    }

    /// The name by which this process reaches exactly this file.
    pub fn own_name(&self) -> CString {
        use rustix::fd::AsRawFd;
        CString::new(format!("/proc/self/fd/{}", self.fd.as_raw_fd())).unwrap_or_default()
    }
}

impl Caller<'_> {
    /// Argument `n` as the C int that the kernel takes it for.
    pub fn int(&self, n: usize) -> i32 {
        self.arg(n) as i32
    }

    /// Argument `n`.
    pub fn arg(&self, n: usize) -> u64 {
        self.call.args.get(n).copied().unwrap_or(0)
    }

    fn proc_path(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.call.pid)
    }

    fn check(&self) -> Result<(), Errno> {
        if self.listener.is_waiting(self.call.id) { Ok(()) } else { Err(Errno::SRCH) }
    }

    fn memory(&self) -> Result<OwnedFd, Errno> {
        let memory =
            rustix::fs::open(self.proc_path("mem"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        self.check()?;
        Ok(memory)
    }

    /// `len` bytes at `address` of the caller.
    pub fn bytes(&self, address: u64, len: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; len];
        let memory = self.memory()?;
        match rustix::io::pread(&memory, &mut bytes, address) {
            Ok(n) if n == len => Ok(bytes),
            _ => Err(Errno::FAULT),
        }
    }

    /// The C string at `address` of the caller, of less than `max` bytes.
    pub fn string(&self, address: u64, max: usize) -> Result<CString, Errno> {
        let memory = self.memory()?;
        let mut string = Vec::new();
        while string.len() < max {
            let at = address.checked_add(string.len() as u64).ok_or(Errno::FAULT)?;
            let mut chunk = vec![0; usize::try_from(PAGE - at % PAGE).unwrap_or(1).min(max - string.len())];
            let n = rustix::io::pread(&memory, &mut chunk, at).map_err(|_| Errno::FAULT)?;
            let chunk = chunk.get(..n).unwrap_or_default();
            if chunk.is_empty() {
                return Err(Errno::FAULT);
            }
            match chunk.iter().position(|b| *b == 0) {
                Some(end) => {
                    string.extend_from_slice(chunk.get(..end).unwrap_or_default());
                    return CString::new(string).map_err(|_| Errno::INVAL);
                }
                None => string.extend_from_slice(chunk),
            }
        }
        Err(Errno::NAMETOOLONG)
    }

    /// A copy of the caller's descriptor `number`.
    pub fn descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        /// PIDFD_THREAD (6.9).
        const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);
        let thread = i32::try_from(self.call.pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        // A thread can have descriptors of its own. An older kernel gives those of its process.
        let pidfd = match pidfd_open(thread, THREAD) {
            Err(Errno::INVAL) => {
                let process = super::processes::process_of(self.call.pid).ok_or(Errno::SRCH)?;
                pidfd_open(process, PidfdFlags::empty())?
            }
            other => other?,
        };
        self.check()?;
        sys::copy_descriptor(pidfd.as_fd(), number)
    }

    /// The file behind the caller's descriptor `number`.
    pub fn object_of_descriptor(&self, number: i32) -> Result<Object, Errno> {
        if number < 0 {
            return Err(Errno::BADF);
        }
        let fd = self.path_descriptor(&self.proc_path(&format!("fd/{number}")))?;
        located(fd, true)
    }

    fn path_descriptor(&self, path: &str) -> Result<OwnedFd, Errno> {
        let fd = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| {
            // The entry is missing where the number is of no descriptor.
            if errno == Errno::NOENT { Errno::BADF } else { errno }
        })?;
        self.check()?;
        Ok(fd)
    }

    /// The file that the caller means by the path at `address` relative to `dir`; the last component is followed if
    /// `follow`. An empty path is `dir` itself if `or_dir`.
    pub fn object(&self, dir: i32, address: u64, follow: bool, or_dir: bool) -> Result<Object, Errno> {
        let path = self.string(address, PATH_BYTES)?;
        if path.is_empty() {
            return match (or_dir, dir) {
                (false, _) => Err(Errno::NOENT),
                (true, AT_FDCWD) => located(self.path_descriptor(&self.proc_path("cwd"))?, false),
                (true, number) => self.object_of_descriptor(number),
            };
        }
        self.resolve(dir, Path::new(OsStr::from_bytes(path.as_bytes())), follow)
    }

    /// The file that the caller means by `path` relative to `dir`.
    pub fn resolve(&self, dir: i32, path: &Path, follow: bool) -> Result<Object, Errno> {
        let flags = if follow { OFlags::PATH } else { OFlags::PATH | OFlags::NOFOLLOW };
        self.reach(dir, path, flags)
    }

    /// Opens what the caller means by `path` relative to `dir`. Of the links in /proc that lead to a place without naming
    /// it, those of the caller's own descriptors, directory, root and program are followed, at the beginning of the path:
    /// others lead to what this process can reach, and the caller can't.
    fn reach(&self, dir: i32, path: &Path, flags: OFlags) -> Result<Object, Errno> {
        let path = self.translated(path);
        let flags = flags | OFlags::CLOEXEC;
        let (start, rest) = match self.own_link(&path) {
            Some((link, rest)) if !(rest.as_os_str().is_empty() && flags.contains(OFlags::NOFOLLOW)) => {
                let fd = self.path_descriptor(&link.to_string_lossy())?;
                if rest.as_os_str().is_empty() {
                    let object = located(fd, true)?;
                    let fits = !flags.contains(OFlags::DIRECTORY) || object.is_directory()?;
                    return if fits { Ok(object) } else { Err(Errno::NOTDIR) };
                }
                (Some(fd), rest)
            }
            _ if path.is_absolute() => (None, path.as_path()),
            _ => {
                let start = if dir == AT_FDCWD { "cwd".to_owned() } else { format!("fd/{dir}") };
                (Some(self.path_descriptor(&self.proc_path(&start))?), path.as_path())
            }
        };
        let at = start.as_ref().map_or(CWD, |fd| fd.as_fd());
        let opened = match rustix::fs::openat2(at, rest, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
            // Inside another run there is no such call. Where it leads is checked all the same.
            Err(Errno::NOSYS) => rustix::fs::openat(at, rest, flags, Mode::empty()),
            other => other,
        };
        located(opened?, false)
    }

    /// The link of the caller's own in /proc that `path`, which is translated, begins with, and what follows it.
    fn own_link<'p>(&self, path: &'p Path) -> Option<(PathBuf, &'p Path)> {
        let below = path.strip_prefix("/proc").ok()?;
        let mut names = below.components();
        let number: u32 = names.next()?.as_os_str().to_str()?.parse().ok()?;
        let process = || super::processes::process_of(self.call.pid).map(|pid| pid.as_raw_pid());
        if number != self.call.pid && process() != i32::try_from(number).ok() {
            return None;
        }
        let mut link = PathBuf::from(self.proc_path(names.next()?.as_os_str().to_str()?));
        match link.file_name()?.to_str()? {
            "cwd" | "root" | "exe" => {}
            "fd" => link.push(names.next()?.as_os_str().to_str()?.parse::<u32>().ok()?.to_string()),
            _ => return None,
        }
        Some((link, names.as_path()))
    }

    /// The path at `address` of the caller.
    pub fn path(&self, address: u64) -> Result<CString, Errno> {
        self.string(address, PATH_BYTES)
    }

    /// The directory that the caller means by `path` relative to `dir`.
    pub fn directory(&self, dir: i32, path: &OsStr) -> Result<Object, Errno> {
        self.reach(dir, Path::new(path), OFlags::PATH | OFlags::DIRECTORY)
    }

    /// The caller's file mode creation mask.
    pub fn umask(&self) -> Result<u32, Errno> {
        let mask = super::processes::status_field(self.call.pid, b"Umask:").ok_or(Errno::SRCH)?;
        self.check()?;
        u32::from_str_radix(&mask, 8).map_err(|_| Errno::IO)
    }

    /// `path` with names that mean the caller made to mean it from here too. A link that leads to such a name is
    /// not followed.
    fn translated(&self, path: &Path) -> PathBuf {
        let own = PathBuf::from(format!("/proc/{}", self.call.pid));
        for name in ["/proc/self", "/proc/thread-self"] {
            if let Ok(rest) = path.strip_prefix(name) {
                return own.join(rest);
            }
        }
        for (name, meaning) in
            [("/dev/fd", "fd"), ("/dev/stdin", "fd/0"), ("/dev/stdout", "fd/1"), ("/dev/stderr", "fd/2")]
        {
            if let Ok(rest) = path.strip_prefix(name) {
                let meant = own.join(meaning);
                return if rest.as_os_str().is_empty() { meant } else { meant.join(rest) };
            }
        }
        path.to_path_buf()
    }
}

/// How often a file that is moved meanwhile is looked for.
const MOVES: usize = 3;

/// Finds out where the file behind `fd` is. One that is not there from here is not to be had: the name of a file in
/// another mount namespace, or on a file system that was taken away, may be that of another file here.
fn located(mut fd: OwnedFd, held: bool) -> Result<Object, Errno> {
    for _ in 0..MOVES {
        let path = path_of(fd.as_fd())?;
        let object = Object { fd, path, held };
        if object.is_held_and_nowhere() || is_here(&object)? {
            return Ok(object);
        }
        fd = object.fd;
    }
    Err(Errno::ACCESS)
}

/// Whether the name of `object` leads to it from this process's root.
fn is_here(object: &Object) -> Result<bool, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let quiet = AtFlags::NO_AUTOMOUNT | AtFlags::SYMLINK_NOFOLLOW;
    let own = rustix::fs::statx(&object.fd, "", AtFlags::EMPTY_PATH, wanted)?;
    if !object.path.is_absolute() || own.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
        return Ok(false);
    }
    let at = |path: &Path| rustix::fs::statx(CWD, path, quiet, wanted);
    let id = |s: &rustix::fs::Statx| (s.stx_dev_major, s.stx_dev_minor, s.stx_ino, s.stx_mnt_id);
    if own.stx_nlink > 0 {
        match at(&object.path) {
            Ok(there) => return Ok(id(&there) == id(&own)),
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => return Err(errno),
        }
    }
    // Its name was removed: it is still of the mount that its directory is of.
    let above = object.path.ancestors().skip(1).find_map(|above| at(above).ok());
    Ok(above.is_some_and(|above| above.stx_mnt_id == own.stx_mnt_id))
}

fn path_of(fd: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    use rustix::fd::AsRawFd;
    let link = rustix::fs::readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new())?;
    // Of a removed file the kernel says so behind its name. A file whose name ends like that is still there.
    let removed = rustix::fs::statat(fd, "", AtFlags::EMPTY_PATH)?.st_nlink == 0;
    let bytes = link.as_bytes();
    let name = if removed { bytes.strip_suffix(b" (deleted)").unwrap_or(bytes) } else { bytes };
    Ok(PathBuf::from(OsStr::from_bytes(name)))
}
