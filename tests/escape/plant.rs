//! What is on the host for an attempt to find: victims, listeners, files that are open already.

use crate::attempt::{Ran, Scene};
use crate::raw::call;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long a listener is given after the run.
const PATIENCE: Duration = Duration::from_millis(400);

#[derive(Default)]
pub struct Plant {
    /// Told to the play.
    pub words: Vec<(String, String)>,
    pub victim: Option<Victim>,
    /// Gets one message when a listener hears something.
    pub heard: Option<Receiver<()>>,
    pub stdin: Option<File>,
    pub stdout: Option<File>,
    /// Stays open during the run; nobody reads it.
    #[allow(dead_code)]
    pub held: Vec<OwnedFd>,
    /// Removed after the run.
    #[allow(dead_code)]
    pub queue: Option<Queue>,
    #[allow(dead_code)]
    pub removed: Option<Removed>,
    /// Commands in front of the run.
    pub wrapper: Vec<&'static str>,
}

/// A message queue of the host that goes with the plant.
pub struct Queue(pub String);

impl Drop for Queue {
    fn drop(&mut self) {
        let _ = call(libc::SYS_mq_unlink, &[crate::raw::at(&crate::raw::c(&self.0))]);
    }
}

/// A directory of the host that goes with the plant.
pub struct Removed(pub std::path::PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Plant {
    pub fn word(mut self, name: &str, value: impl ToString) -> Plant {
        self.words.push((name.into(), value.to_string()));
        self
    }

    /// Whether a listener heard something.
    pub fn heard(&self) -> bool {
        self.heard.as_ref().is_some_and(|heard| heard.recv_timeout(PATIENCE).is_ok())
    }
}

/// For [`crate::attempt::effects`]: a listener heard something.
pub fn was_heard(_: &Scene, plant: &mut Plant, _: &Ran) -> bool {
    plant.heard()
}

/// A process of the same user that holds the secret in its environment and memory.
pub struct Victim(Child);

impl Victim {
    /// The signal that ended it, if one did.
    pub fn killed_by(&mut self) -> Option<i32> {
        std::thread::sleep(Duration::from_millis(100));
        self.0.try_wait().ok().flatten().and_then(|status| status.signal())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a victim; words `pid`, `address` (of the secret in its memory), `fd` (an open file with the secret), `memory`
/// (a descriptor of memory with it).
pub fn victim(scene: &Scene) -> Plant {
    victim_as(scene, |_| {})
}

fn victim_as(scene: &Scene, prepare: impl FnOnce(&mut Command)) -> Plant {
    let mut command = Command::new(crate::runner::program_path());
    command
        .arg("victim")
        .env("VICTIM_SECRET", &scene.secret)
        .current_dir(scene.outside(""))
        .stdout(Stdio::piped())
        .process_group(0);
    prepare(&mut command);
    let mut child = command.spawn().expect("the victim starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("the victim says where its secret is");
    let mut words = line.split_whitespace();
    let mut next = || words.next().unwrap_or_default().to_owned();
    let plant = Plant::default()
        .word("pid", child.id())
        .word("address", next())
        .word("fd", next())
        .word("memory", next());
    Plant { victim: Some(Victim(child)), ..plant }
}

/// For root: a victim, and an attempt, of a user that nobody else is.
pub fn lone_victim(scene: &Scene) -> Plant {
    let nobody_else = 1_000_000 + u32::from_str_radix(&scene.secret[..6], 16).expect("hexadecimal");
    let mut plant = victim_as(scene, |command| {
        command.uid(nobody_else).gid(nobody_else);
    });
    let option = |name: &str| -> &'static str { format!("--{name}={nobody_else}").leak() };
    plant.wrapper = vec!["setpriv", option("reuid"), option("regid"), "--clear-groups"];
    plant
}

/// A process in a mount namespace of its own, with another file system at the place of the grant and `file` on it, as a
/// container has it; word `pid`.
pub fn contained(scene: &Scene) -> Plant {
    let work = scene.work("");
    let work = work.display();
    let script = format!(
        "mount -t tmpfs none {work} && echo content > {work}/file && chmod 600 {work}/file && echo there && exec sleep 60"
    );
    let options = if rustix::process::geteuid().is_root() { "-m" } else { "-Urm" };
    let mut command = Command::new("unshare");
    command.args([options, "sh", "-c", &script]).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().expect("util-linux is installed");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("it says that it is there");
    assert_eq!(line, "there\n");
    let plant = Plant::default().word("pid", child.id());
    Plant { victim: Some(Victim(child)), ..plant }
}

/// The victim's own main: says where its secret is, then sleeps.
pub fn be_victim() {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    const PR_SET_PTRACER: usize = 0x5961_6d61;
    let _ = call(libc::SYS_prctl, &[PR_SET_PTRACER, usize::MAX]);
    let secret = std::env::var("VICTIM_SECRET").unwrap_or_default().into_bytes();
    let file = File::open("secret").expect("the victim stands in outside/");
    let memory = call(libc::SYS_memfd_create, &[c"memory".as_ptr() as usize, 0]).expect("memory");
    let _ = call(libc::SYS_write, &[memory as usize, secret.as_ptr() as usize, secret.len()]);
    println!("{} {} {memory}", secret.as_ptr() as usize, std::os::fd::AsRawFd::as_raw_fd(&file));
    let _ = std::io::stdout().flush();
    std::thread::sleep(Duration::from_secs(60));
    drop((secret, file));
}

/// Lets `descriptor` be inherited by what is started from here; word `fd`.
pub fn inherited(descriptor: impl Into<OwnedFd>) -> Plant {
    let descriptor: OwnedFd = descriptor.into();
    rustix::io::fcntl_setfd(descriptor.as_fd(), rustix::io::FdFlags::empty()).expect("own descriptor");
    let plant = Plant::default().word("fd", std::os::fd::AsRawFd::as_raw_fd(&descriptor));
    Plant { held: vec![descriptor], ..plant }
}

/// A TCP listener on `address`; word `port`.
pub fn tcp(address: &str) -> Plant {
    let listener = TcpListener::bind((address, 0)).expect("loopback is there");
    let port = listener.local_addr().expect("bound").port();
    let plant = listening(move || {
        let _ = listener.accept()?;
        Ok(())
    });
    plant.word("port", port)
}

/// A UDP socket on `address`; word `port`.
pub fn udp(address: &str) -> Plant {
    let socket = UdpSocket::bind((address, 0)).expect("loopback is there");
    let port = socket.local_addr().expect("bound").port();
    listening(move || socket.recv_from(&mut [0; 16]).map(drop)).word("port", port)
}

/// A listening stream socket of the host at `path`.
pub fn unix_stream(path: &std::path::Path) -> Plant {
    let listener = UnixListener::bind(path).expect("a new path");
    let _ = std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777));
    listening(move || listener.accept().map(drop))
}

/// A datagram socket of the host at `path`.
pub fn unix_datagram(path: &std::path::Path) -> Plant {
    let socket = UnixDatagram::bind(path).expect("a new path");
    let _ = std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777));
    listening(move || socket.recv(&mut [0; 16]).map(drop))
}

/// A stream socket of the host with an abstract name; word `name`.
pub fn unix_abstract(scene: &Scene) -> Plant {
    use std::os::linux::net::SocketAddrExt;
    let name = format!("escape-{}", &scene.secret[..8]);
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("a short name");
    let listener = UnixListener::bind_addr(&address).expect("a new name");
    listening(move || listener.accept().map(drop)).word("name", name)
}

/// Runs `listen` on a thread; a thread that hears nothing ends with the test program.
pub fn listening(listen: impl FnOnce() -> std::io::Result<()> + Send + 'static) -> Plant {
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        if listen().is_ok() {
            let _ = tell.send(());
        }
    });
    Plant { heard: Some(heard), ..Plant::default() }
}

/// A terminal: the master's end, and the slave's path.
pub fn terminal() -> (File, String) {
    let master = File::options().read(true).write(true).open("/dev/ptmx").expect("a new terminal");
    let (mut number, unlock) = (0u32, 0i32);
    let fd = std::os::fd::AsRawFd::as_raw_fd(&master) as usize;
    const TIOCSPTLCK: usize = 0x4004_5431;
    const TIOCGPTN: usize = 0x8004_5430;
    call(libc::SYS_ioctl, &[fd, TIOCSPTLCK, (&raw const unlock) as usize]).expect("own terminal");
    call(libc::SYS_ioctl, &[fd, TIOCGPTN, (&raw mut number) as usize]).expect("own terminal");
    (master, format!("/dev/pts/{number}"))
}
