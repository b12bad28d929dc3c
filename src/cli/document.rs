//! Documents in and out: whole, or an error.

use super::failed::Failed;
use crate::sandbox::stdio;
use crate::sanitise;
use crate::untrusted::Untrusted;
use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Bytes of a named file that are read; a longer one is an error. A file of a directory has the same bound.
pub(super) const MAX_FILE: u64 = 64 << 20;

/// The file, or stdin for `-` and nothing, as untrusted text. Bytes that are not UTF-8 become U+FFFD, and a line on stderr
/// says so. A name that is a link is followed.
///
/// # Errors
/// Stdin is closed, the name is no regular file, it is larger than [`MAX_FILE`], reading fails.
pub(super) fn read(file: Option<&Path>) -> Result<Untrusted<String>, Failed> {
    let file = file.filter(|f| f.as_os_str() != "-");
    let name = file.map_or_else(|| "stdin".to_string(), sanitise::path);
    let bytes = match file {
        Some(file) => named(file),
        None => stdin(),
    };
    let bytes = bytes.map_err(|why| Failed::usage(format!("cannot read {name}: {why}")))?;
    Ok(Untrusted::new(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            tracing::warn!(
                "{name} is not UTF-8 from byte {} on: what is no text is read as U+FFFD",
                error.utf8_error().valid_up_to()
            );
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        }
    }))
}

fn stdin() -> Result<Vec<u8>, String> {
    if stdio::stdin_was_closed() {
        return Err("it is closed; give it a document, or </dev/null for an empty one".into());
    }
    // The stream of the standard library takes a descriptor that cannot be read for an empty one.
    let mut bytes = Vec::new();
    copy_of(rustix::stdio::stdin())
        .and_then(|mut stdin| stdin.read_to_end(&mut bytes))
        .map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// Opens without waiting for a writer and without a terminal of its own; what was opened is what is judged.
fn named(file: &Path) -> Result<Vec<u8>, String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = match rustix::fs::open(file, flags, Mode::empty()) {
        Ok(fd) => fd,
        // So a socket answers.
        Err(rustix::io::Errno::NXIO) => return Err(no_file("a socket")),
        Err(error) => return Err(io::Error::from(error).to_string()),
    };
    let stat = rustix::fs::fstat(&fd).map_err(|e| io::Error::from(e).to_string())?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Fifo => return Err(no_file("a fifo")),
        FileType::Directory => return Err("it is a directory; name the files".into()),
        _ => return Err(no_file("a device")),
    }
    let mut bytes = Vec::new();
    File::from(fd).take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("it is larger than {} MiB; give it in parts", MAX_FILE >> 20));
    }
    Ok(bytes)
}

fn no_file(what: &str) -> String {
    format!("it is {what}, which need not end; give what it holds on stdin, and `-` for the name")
}

/// Writes `text` to stdout, all of it. A reader that went away is no error.
///
/// # Errors
/// Stdout is closed, or what is behind it does not take the text.
pub(super) fn write(text: &str) -> Result<(), Failed> {
    if stdio::stdout_was_closed() {
        return Err(Failed::usage("cannot write to stdout: it is closed; give it a place to go"));
    }
    // Neither a buffer, whose end could be lost, nor a stream that takes a closed descriptor for success.
    match copy_of(rustix::stdio::stdout()).and_then(|mut stdout| stdout.write_all(text.as_bytes())) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failed::internal(format!("cannot write to stdout: {error}"))),
    }
}

fn copy_of(stream: BorrowedFd<'_>) -> io::Result<File> {
    Ok(File::from(rustix::io::fcntl_dupfd_cloexec(stream, 0)?))
}
