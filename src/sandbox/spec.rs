//! What a caller asks for: [`Spec`].

use super::error::Error;
use super::notify::ConnectPolicy;
use super::tier::Tier;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a granted path may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read and execute.
    ReadOnly,
    /// Read, execute, write, create and remove.
    ReadWrite,
}

/// A host path that is visible inside at the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// A file or a directory. Symbolic links in it are resolved once, before the run.
    pub path: PathBuf,
    /// What may be done with it.
    pub access: Access,
}

/// A file that exists only inside, read-only, with content given by the caller.
#[derive(Debug, Clone)]
pub struct Inject {
    /// Absolute path inside. Below `/etc`, or below a directory that is not a grant.
    pub dest: PathBuf,
    /// What it holds.
    pub content: Content,
    /// Permission bits, for example `0o444`.
    pub mode: u32,
}

/// Where an injected file's content comes from.
#[derive(Debug, Clone)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The host file at this path, bound read-only.
    HostFile(PathBuf),
}

/// The network inside.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Net {
    /// An empty namespace: loopback only, and nobody there.
    #[default]
    Empty,
    /// As `Empty`, plus one listening TCP socket on 127.0.0.1 at this port, made inside and handed to the caller
    /// ([`super::Sandbox::take_sockets`]): the only way out. In tier `landlock` the socket is on a port of the host's
    /// loopback, connections to this port are led to it, and whoever accepts must ask
    /// [`super::Sandbox::vouched`] about each.
    Listener(u16),
    /// As `Listener`, and whatever is sent to any address arrives at sockets that are handed to the caller too. Names
    /// are known by a resolver on 127.0.0.1:53, which is one of these sockets, and by nothing of the host's. Tier
    /// `landlock` has the listener alone.
    Captured(Captured),
}

/// Ports that the caller serves, inside a namespace in which every address is local.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Port of the listening socket on 127.0.0.1.
    pub proxy: u16,
    /// TCP ports that listen on every address; not `proxy`, each once. Elsewhere, connecting is refused at once.
    pub ports: Vec<u16>,
}

impl Net {
    /// The port of the listening socket on loopback.
    pub(super) fn proxy(&self) -> Option<u16> {
        match self {
            Net::Empty => None,
            Net::Listener(port) => Some(*port),
            Net::Captured(captured) => Some(captured.proxy),
        }
    }
}

/// What the command reads as standard input. It never gets the caller's own descriptor: a file could be reopened
/// for writing through /proc/self/fd.
#[derive(Debug, Clone, Default)]
pub enum Stdin {
    /// End of file at once.
    #[default]
    Null,
    /// The caller's standard input, copied through a pipe.
    Copied,
    /// These bytes, then end of file.
    Bytes(Vec<u8>),
}

/// Where the command's output goes. It always writes to a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Output {
    /// Copied to the caller's own stdout and stderr as it comes.
    #[default]
    Streamed,
    /// Both copied to the caller's own stderr.
    Aside,
    /// Kept in memory ([`super::Outcome::stdout`], [`super::Outcome::stderr`]).
    Captured,
}

/// Resource limits. `None` leaves the inherited value.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Limits {
    /// Largest file that can be written, bytes (RLIMIT_FSIZE). Default 10 GiB.
    pub file_bytes: Option<u64>,
    /// Processor time of each process, seconds (RLIMIT_CPU). Default 3600.
    pub cpu_seconds: Option<u64>,
    /// Processes and threads at once (RLIMIT_NPROC, counted inside). Default 1024.
    pub processes: Option<u64>,
    /// Open descriptors of each process (RLIMIT_NOFILE). Default 4096.
    pub open_files: Option<u64>,
    /// Address space of each process, bytes (RLIMIT_AS). Default none: sanitisers and JIT compilers reserve terabytes.
    pub address_space: Option<u64>,
    /// Memory of all processes together, bytes (memory.max of a control group). Default none.
    pub memory_bytes: Option<u64>,
    /// Processor time of all processes together, in hundredths of a processor (cpu.max of a control group). Default none.
    pub cpu_percent: Option<u32>,
    /// Size of each scratch file system (/tmp, /run, /dev/shm, HOME), bytes. Default 2 GiB; memory is used as it is written.
    pub scratch_bytes: u64,
    /// Output passed on for each stream, bytes; what comes after is read, counted and dropped. Default 64 MiB.
    pub output_bytes: u64,
}

/// Descriptors without which no program can be set up, and bytes of a scratch file system (of 0, tmpfs has no limit).
const LEAST_OPEN_FILES: u64 = 16;
const LEAST_SCRATCH: u64 = 64 << 10;

impl Limits {
    /// Whether something can run under them.
    ///
    /// # Errors
    /// [`Error::Limit`] names the one under which nothing can.
    pub(super) fn check(&self) -> Result<(), Error> {
        for (what, given, least) in [
            ("the limit of open files", self.open_files, LEAST_OPEN_FILES),
            ("the limit of processes", self.processes, 1),
            ("the size of a scratch file system", Some(self.scratch_bytes), LEAST_SCRATCH),
        ] {
            if let Some(given) = given.filter(|given| *given < least) {
                return Err(Error::Limit { what, given, least });
            }
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            file_bytes: Some(10 << 30),
            cpu_seconds: Some(3600),
            processes: Some(1024),
            open_files: Some(4096),
            address_space: None,
            memory_bytes: None,
            cpu_percent: None,
            scratch_bytes: 2 << 30,
            output_bytes: 64 << 20,
        }
    }
}

/// What of the kernel is open to the command beyond the usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Surface {
    /// Sockets of the family AF_UNIX. A listening socket of the host in a granted directory can then be reached.
    pub unix_sockets: bool,
    /// Tracing (`ptrace`) of the command's own processes.
    pub ptrace: bool,
    /// Only processes in /proc: no meminfo, cpuinfo and the like, which some run-times need.
    pub bare_proc: bool,
}

/// A command and all that it may touch. Everything not named here does not exist inside.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The program and its arguments; a program without a slash is looked up in the `PATH` of `env`.
    pub argv: Vec<OsString>,
    /// Working directory inside. `None`: the private HOME.
    pub cwd: Option<PathBuf>,
    /// The environment, complete. [`super::env::base`] gives the allowlisted part of the caller's.
    pub env: Vec<(OsString, OsString)>,
    /// Host paths visible inside.
    pub grants: Vec<Grant>,
    /// Symbolic links that are there inside too. What one leads to is there only if it is granted.
    pub links: Vec<PathBuf>,
    /// Paths below a grant that can be neither read, changed nor made; they need not exist.
    pub deny: Vec<PathBuf>,
    /// Files that exist only inside.
    pub inject: Vec<Inject>,
    /// No isolation: the command can do whatever the caller can. Its environment, its limits and the end of all its
    /// processes at the end remain.
    pub unconfined: bool,
    /// No file rules: the command can use every file that the caller can. The tier is `landlock`.
    pub host_files: bool,
    /// What of the kernel is open beyond the usual.
    pub surface: Surface,
    /// The network.
    pub net: Net,
    /// Limits.
    pub limits: Limits,
    /// Whether the command gets a terminal of its own as standard input, output and error.
    pub tty: bool,
    /// Standard input.
    pub stdin: Stdin,
    /// Standard output and error.
    pub output: Output,
    /// Wall-clock limit. After it: TERM, [`Spec::grace`], then KILL of everything inside.
    pub timeout: Option<Duration>,
    /// How long a stopped command has to end by itself. `None` means two seconds.
    pub grace: Option<Duration>,
    /// The weakest tier that will do. Default `full`.
    pub require: Tier,
    /// This tier and no other. `None`: the best that this host has.
    pub tier: Option<Tier>,
    /// Tier `landlock`: where the command may connect to besides its own listeners. `None`: what `net` says.
    pub connect: Option<Arc<dyn ConnectPolicy>>,
    /// What is written down of the run.
    pub watch: Watch,
    /// The control group below which the run's own is made, where a limit needs one. `None`: the nearest delegated one.
    pub cgroup: Option<PathBuf>,
    /// Acts as if the kernel had no newer Landlock ABI than this, to try what an older kernel gives.
    pub landlock_abi: Option<u32>,
}

/// How closely a run is watched. Each call with a path then waits for the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Watch {
    /// Only what the supervisor decides anyway.
    #[default]
    Decisions,
    /// Every refusal, with its path ([`super::Outcome::denials`]).
    Refusals,
    /// Every use of a path ([`super::Outcome::used`]). No file rule is enforced, and the tier is `landlock`.
    Uses,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            argv: Vec::new(),
            cwd: None,
            env: Vec::new(),
            grants: Vec::new(),
            links: Vec::new(),
            deny: Vec::new(),
            unconfined: false,
            host_files: false,
            surface: Surface::default(),
            inject: Vec::new(),
            net: Net::default(),
            limits: Limits::default(),
            tty: false,
            stdin: Stdin::default(),
            output: Output::default(),
            timeout: None,
            grace: None,
            require: Tier::Full,
            tier: None,
            connect: None,
            watch: Watch::default(),
            cgroup: None,
            landlock_abi: None,
        }
    }
}
