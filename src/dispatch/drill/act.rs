//! What the attacker's commands do inside: one small program a kernel-level attack.
//!
//! Each prints what it stole, if it could. Nothing here is believed: verdicts come from what the drill finds outside.

// Plays inside the sandbox or answers the drill: nobody reads it at a terminal.
#![allow(clippy::disallowed_macros)]

use super::sys;
use crate::dispatch::PORT;
use crate::exit::Exit;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// How long a daemon of the drill goes on by itself.
const DAEMON_LIFE: Duration = Duration::from_secs(6);
/// Length of the text that the memory attack overwrites.
const TEXT_LEN: usize = 8;

/// Runs one act by name.
pub fn run(name: &str, args: &[String]) -> Exit {
    match act(name, args) {
        Ok(stolen) => {
            println!("{stolen}");
            Exit::OK
        }
        Err(error) => {
            println!("{name}: {error}");
            Exit::FINDINGS
        }
    }
}

fn act(name: &str, args: &[String]) -> std::io::Result<String> {
    let arg = |n: usize| args.get(n).map(String::as_str).unwrap_or_default();
    let number = |n: usize| arg(n).parse::<i32>().map_err(std::io::Error::other);
    let port = |n: usize| arg(n).parse::<u16>().map_err(std::io::Error::other);
    match name {
        "tcp" => {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port(0)?))?;
            stream.write_all(arg(1).as_bytes())?;
            Ok("sent".into())
        }
        "udp" => {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            socket.send_to(arg(1).as_bytes(), (Ipv4Addr::LOCALHOST, port(0)?))?;
            Ok("sent".into())
        }
        "proxy" => proxy(port(0)?, arg(1)),
        "daemon" => daemon(arg(0)),
        "kill" => sys::kill(number(0)?, libc::SIGTERM).map(|()| "signalled".into()),
        "environ" => Ok(lossy(&std::fs::read(format!("/proc/{}/environ", number(0)?))?)),
        "key" => sys::steal_key(arg(0)).map(|bytes| lossy(&bytes)),
        "shm" => sys::read_shared(number(0)?, 64).map(|bytes| lossy(&bytes)),
        "host" => Ok(rustix::system::uname().nodename().to_string_lossy().into_owned()),
        "big" => {
            std::fs::File::create(arg(0))?.set_len(11 << 30)?;
            Ok("grown".into())
        }
        "size" => Ok(format!("size={}", std::fs::metadata(arg(0))?.len())),
        "wait" => {
            std::io::stdin().read_line(&mut String::new())?;
            Ok("done".into())
        }
        "hijack" => hijack(arg(0)),
        "client" => client(arg(0)),
        _ => Err(std::io::Error::other("no such act")),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', " ")
}

/// Asks the run's own way out for a tunnel to a port of the host.
fn proxy(port: u16, text: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, PORT))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")?;
    let mut answer = [0u8; 256];
    let n = stream.read(&mut answer)?;
    stream.write_all(text.as_bytes())?;
    stream.flush()?;
    std::thread::sleep(Duration::from_millis(100));
    Ok(lossy(answer.get(..n).unwrap_or_default()))
}

/// A process that outlives its parents and says so in `file`, a byte twenty times a second.
fn daemon(file: &str) -> std::io::Result<String> {
    if !sys::detach()? {
        // Left behind is only what runs.
        while !std::path::Path::new(file).exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        return Ok("left behind".into());
    }
    if !sys::detach()? {
        std::process::exit(0);
    }
    let started = std::time::Instant::now();
    let mut file = std::fs::File::options().append(true).create(true).open(file)?;
    while started.elapsed() < DAEMON_LIFE {
        file.write_all(b".")?;
        std::thread::sleep(Duration::from_millis(50));
    }
    std::process::exit(0)
}

/// Plays the client whose memory is attacked: says where its text is, waits, writes the text to `file`.
fn client(file: &str) -> std::io::Result<String> {
    let text: Box<[AtomicU8; TEXT_LEN]> = Box::new(b"honest..".map(AtomicU8::new));
    println!("{}", text.as_ptr() as usize);
    std::io::stdout().flush()?;
    std::io::stdin().read_line(&mut String::new())?;
    let now: Vec<u8> = text.iter().map(|byte| byte.load(Ordering::SeqCst)).collect();
    std::fs::write(file, now)?;
    Ok("written".into())
}

/// Overwrites the text of a [`client`] through /proc/PID/mem.
fn hijack(file: &str) -> std::io::Result<String> {
    use std::io::BufRead;
    use std::os::unix::fs::FileExt;
    let mut child = std::process::Command::new("/proc/self/exe")
        .args(["drill", "act", "client", file])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let mut address = String::new();
    if let Some(stdout) = child.stdout.as_mut() {
        std::io::BufReader::new(stdout).read_line(&mut address)?;
    }
    let address: u64 = address.trim().parse().map_err(std::io::Error::other)?;
    let poked = std::fs::OpenOptions::new()
        .write(true)
        .open(format!("/proc/{}/mem", child.id()))
        .and_then(|memory| memory.write_all_at(b"HIJACKED", address));
    drop(child.stdin.take());
    child.wait()?;
    poked.map(|()| "poked".into())
}
