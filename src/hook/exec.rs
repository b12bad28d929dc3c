//! A Bash command under a process of jess, so that its output is sealed before the client sees it.
//!
//! The client cannot replace the output of a *failed* call, so sealing in `PostToolUse` alone would be undone by
//! `cmd; exit 3`. `PreToolUse` therefore replaces the command by `'/path/jess' hook exec 'COMMAND'`: one simple command
//! with one single-quoted word, which nothing in COMMAND can leave. jess runs `bash -c COMMAND` with its output in a
//! pipe, seals what it reads, prints that and exits with the command's own status.

use super::seal;
use crate::exit::Exit;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Bytes of output kept; what comes after is read and dropped, so that the command does not block.
pub const OUTPUT_MAX: usize = seal::TEXT_MAX;
/// How long output is awaited after the command itself has ended and left children behind.
const GRACE: Duration = Duration::from_millis(300);

/// `text` as one word of a POSIX shell.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The command that runs `command` sealed.
pub fn wrap(command: &str, jess: &Path) -> String {
    format!("{} hook exec {}", quote(&jess.to_string_lossy()), quote(command))
}

/// Whether `command` is exactly what [`wrap`] makes: its one word is unquoted, quoted again and compared.
pub fn is_wrapped(command: &str, jess: &Path) -> bool {
    unwrap(command, jess).is_some()
}

/// The command inside a wrapped one.
pub fn unwrap(command: &str, jess: &Path) -> Option<String> {
    let head = format!("{} hook exec ", quote(&jess.to_string_lossy()));
    let word = command.strip_prefix(&head)?;
    let inner = word.strip_prefix('\'')?.strip_suffix('\'')?.replace(r"'\''", "'");
    (wrap(&inner, jess) == command).then_some(inner)
}

/// Runs `command` in bash, prints its sealed output, and says with what to exit.
pub fn run(command: &str) -> Exit {
    match capture(command) {
        Ok((bytes, total, exit)) => {
            let text = String::from_utf8_lossy(&bytes);
            let mut seen = seal::Seen::default();
            let mut sealed = seal::text(&text, "Bash", "", &mut seen);
            if total > bytes.len() {
                sealed.push_str(&format!("\n[jess: cut after {} of {total} bytes]", bytes.len()));
            }
            if let Some(note) = seen.note() {
                sealed.push('\n');
                sealed.push_str(&note);
            }
            let mut out = std::io::stdout().lock();
            let _ = out
                .write_all(sealed.as_bytes())
                .and_then(|()| out.write_all(b"\n"))
                .and_then(|()| out.flush());
            exit
        }
        Err(error) => {
            crate::sanitise::out::stderr(&format!("jess: cannot run bash: {error}"));
            Exit::NOT_FOUND
        }
    }
}

/// Output (at most [`OUTPUT_MAX`] bytes), its whole length, and the exit.
fn capture(command: &str) -> std::io::Result<(Vec<u8>, usize, Exit)> {
    let (reader, writer) = std::io::pipe()?;
    let mut child = Command::new("bash")
        .arg("-c")
        .arg(command)
        .stdout(Stdio::from(std::os::fd::OwnedFd::from(writer.try_clone()?)))
        .stderr(Stdio::from(std::os::fd::OwnedFd::from(writer)))
        .spawn()?;
    let (send, receive) = mpsc::channel::<Vec<u8>>();
    std::thread::spawn(move || {
        let mut reader = reader;
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(n) = reader.read(&mut buffer) {
            if n == 0 || send.send(buffer.get(..n).unwrap_or_default().to_vec()).is_err() {
                break;
            }
        }
    });
    let mut kept = Vec::new();
    let mut total = 0;
    let mut ended = None;
    loop {
        match receive.recv_timeout(if ended.is_some() { GRACE } else { Duration::from_millis(20) }) {
            Ok(piece) => {
                total += piece.len();
                let room = OUTPUT_MAX.saturating_sub(kept.len()).min(piece.len());
                kept.extend_from_slice(piece.get(..room).unwrap_or_default());
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) if ended.is_some() => break,
            Err(mpsc::RecvTimeoutError::Timeout) => ended = child.try_wait()?,
        }
    }
    let status = match ended {
        Some(status) => status,
        None => child.wait()?,
    };
    let exit = match (status.code(), status.signal()) {
        (Some(code), _) => Exit::child(code as u8),
        (None, Some(signal)) => Exit::signal(signal as u8),
        (None, None) => Exit::INTERNAL,
    };
    Ok((kept, total, exit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_is_recognised_and_cannot_be_forged() {
        let jess = Path::new("/opt/jess");
        let wrapped = wrap("echo 'a'; exit 3", jess);
        assert_eq!(unwrap(&wrapped, jess).as_deref(), Some("echo 'a'; exit 3"));
        for forged in [
            "'/opt/jess' hook exec 'true'; cat x",
            "'/opt/jess' hook exec 'a' 'b'",
            "'/opt/jess' hook exec 'a';'b'",
            "'/opt/other' hook exec 'a'",
            "'/opt/jess' hook exec \"a\"",
        ] {
            assert!(!is_wrapped(forged, jess), "{forged}");
        }
    }

    #[test]
    fn output_of_a_failing_command_is_captured_with_its_status() {
        let (bytes, total, exit) = capture("echo out; echo err >&2; exit 3").unwrap();
        assert_eq!((String::from_utf8(bytes).unwrap().as_str(), total), ("out\nerr\n", 8));
        assert_eq!(exit, Exit::child(3));
    }

    #[test]
    fn a_child_left_behind_does_not_hold_the_answer() {
        let (bytes, ..) = capture("sleep 30 & echo done").unwrap();
        assert_eq!(bytes, b"done\n");
    }
}
