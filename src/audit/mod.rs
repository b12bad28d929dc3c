//! The append-only record of decisions: one JSON object a line, each bound to all before it by a MAC.
//!
//! `mac` of a line is HMAC-SHA256 under the key in `mac.key` over the line before's `mac` and this line without its own.
//! Whoever cannot read the key cannot change, drop or reorder lines in the middle unseen; `head` holds the last `mac` and
//! the count, so that cutting the end off is seen too. Lines hold names, verdicts, reasons and,
//! of what was stopped or asked about, the start of the command or address without secrets; never contents.

pub mod arrived;
pub mod otlp;
pub mod state;
pub mod time;

use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A log above this many bytes is renamed to `audit.jsonl.1` before the next line.
pub const ROTATE: u64 = 8 << 20;
/// Longest reason kept, in characters.
const REASON_MAX: usize = 400;
/// Most bytes of a log that are read: all that [`Log::append`] writes, and more.
const READ_MAX: u64 = 2 * ROTATE;

/// One decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Record {
    /// Seconds since 1970, UTC.
    pub time: u64,
    /// The client's session.
    pub session_id: String,
    /// The call; empty for events without one.
    pub tool_use_id: String,
    /// The hook event.
    pub event: String,
    /// The tool.
    pub tool: String,
    /// `deny`, `ask`, `none`, or `sealed`.
    pub verdict: String,
    /// The rule that gave it.
    pub rule: String,
    /// What the model was told.
    pub reason: String,
    /// What was stopped or asked about: the start of the command, the file or the address, without secrets. Empty for
    /// everything else.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
}

/// Why the log could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error(
        "cannot use the audit log {}: {source}; check that it is yours and the disk is not full",
        crate::sanitise::path(path)
    )]
    Io {
        /// What was used.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The directory is a link, somebody else's, or open to others.
    #[error("{} is a link, belongs to somebody else or is open to others; move it away", crate::sanitise::path(.0))]
    Unsafe(PathBuf),
    /// There is no place for it.
    #[error(
        "there is no state directory: neither XDG_STATE_HOME nor HOME is an absolute path; set one of them for the client"
    )]
    Nowhere,
    /// The file ends in something that jess did not write.
    #[error(
        "{} ends in what is no record: something else wrote into it; look at it and move it away",
        crate::sanitise::path(path)
    )]
    Foreign {
        /// The log.
        path: PathBuf,
    },
    /// A line does not fit the ones before.
    #[error(
        "line {line} of {} does not fit the lines before it: the log was changed",
        crate::sanitise::path(path)
    )]
    Broken {
        /// The log.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The end is missing.
    #[error("{} ends before the last line that was written: lines are missing", crate::sanitise::path(path))]
    Cut {
        /// The log.
        path: PathBuf,
    },
}

/// A log in a directory.
#[derive(Debug, Clone)]
pub struct Log {
    dir: PathBuf,
}

impl Log {
    /// The log in `dir`; makes the directory (0700) where it is missing.
    pub fn open(dir: &Path) -> Result<Log, Error> {
        let io = |source| Error::Io { path: dir.to_path_buf(), source };
        let meta = match fs::symlink_metadata(dir) {
            Ok(meta) => meta,
            Err(_) => {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io)?;
                fs::symlink_metadata(dir).map_err(io)?
            }
        };
        if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o022 != 0 {
            return Err(Error::Unsafe(dir.to_path_buf()));
        }
        Ok(Log { dir: dir.to_path_buf() })
    }

    /// The file of the log.
    pub fn path(&self) -> PathBuf {
        self.dir.join("audit.jsonl")
    }

    fn file(&self, name: &str) -> Result<File, Error> {
        let path = self.dir.join(name);
        OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(&path)
            .map_err(|source| Error::Io { path, source })
    }

    /// Runs `f` with the head while no other process uses the log.
    fn locked<T>(&self, f: impl FnOnce(&File) -> Result<T, Error>) -> Result<T, Error> {
        let path = self.dir.join("head");
        let io = |source| Error::Io { path: path.clone(), source };
        let head = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(&path)
            .map_err(io)?;
        rustix::fs::flock(&head, rustix::fs::FlockOperation::LockExclusive).map_err(|e| io(e.into()))?;
        f(&head)
    }

    fn key(&self) -> Result<[u8; 32], Error> {
        let path = self.dir.join("mac.key");
        let io = |source| Error::Io { path: path.clone(), source };
        let mut key = [0; 32];
        match File::open(&path) {
            Ok(mut file) => file.read_exact(&mut key).map_err(io)?,
            Err(_) => {
                getrandom::fill(&mut key).map_err(|e| io(io::Error::other(e.to_string())))?;
                let mut file = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .custom_flags(libc::O_NOFOLLOW)
                    .open(&path)
                    .map_err(io)?;
                if let Err(why) = file.write_all(&key) {
                    // Half a key would be in the way for good.
                    let _ = fs::remove_file(&path);
                    return Err(io(why));
                }
            }
        }
        Ok(key)
    }

    /// Appends one record.
    pub fn append(&self, record: &Record) -> Result<(), Error> {
        self.locked(|head| {
            let path = self.path();
            let io = |source| Error::Io { path: path.clone(), source };
            let key = self.key()?;
            let mut file = self.file("audit.jsonl")?;
            let mut length = file.metadata().map_err(io)?.len();
            let known = Head::read(head);
            let (mut count, mut before) = if known.length == length && length > 0 {
                (known.count, known.mac)
            } else {
                let last = last_line(&mut file, known)
                    .map_err(io)?
                    .ok_or_else(|| Error::Foreign { path: path.clone() })?;
                length = file.metadata().map_err(io)?.len();
                last
            };
            if length > ROTATE {
                fs::rename(&path, self.dir.join("audit.jsonl.1")).map_err(io)?;
                (count, before, length) = (0, String::new(), 0);
                file = self.file("audit.jsonl")?;
            }
            let mut record = record.clone();
            record.reason = record.reason.chars().take(REASON_MAX).collect();
            let body = serde_json::to_string(&record).map_err(|e| io(io::Error::other(e)))?;
            let mac = hmac(&key, &[before.as_bytes(), body.as_bytes()]);
            let line = format!("{},\"mac\":\"{mac}\"}}\n", body.trim_end_matches('}'));
            if let Err(why) = file.write_all(line.as_bytes()) {
                // On a full disk a part may be written; the next line must not be joined to it.
                let _ = file.set_len(length);
                return Err(io(why));
            }
            // In place and of one length: a process killed here leaves the line before, which the next one counts from.
            let head_of = Head { count: count + 1, mac, length: length + line.len() as u64 };
            head.write_all_at(head_of.line().as_bytes(), 0).map_err(io)
        })
    }

    /// Every record, oldest first. Lines that are no record are left out; [`Log::verify`] finds them. At most the first
    /// 16 MiB, twice [`ROTATE`], are read.
    pub fn records(&self) -> Result<Vec<Record>, Error> {
        let Ok(file) = File::open(self.path()) else { return Ok(Vec::new()) };
        Ok(BufReader::new(file.take(READ_MAX))
            .lines()
            .map_while(Result::ok)
            .filter_map(|l| serde_json::from_str(&l).ok())
            .collect())
    }

    /// Whether one of the last records, within 256 KiB of the end, gives this call this verdict.
    pub fn lately(&self, session: &str, call: &str, verdict: &str) -> bool {
        const TAIL: u64 = 256 << 10;
        let Ok(mut file) = File::open(self.path()) else { return false };
        let length = file.metadata().map_or(0, |m| m.len());
        let mut tail = Vec::new();
        let read = file
            .seek(SeekFrom::Start(length.saturating_sub(TAIL)))
            .and_then(|_| file.take(TAIL).read_to_end(&mut tail));
        read.is_ok()
            && String::from_utf8_lossy(&tail).lines().rev().any(|line| {
                line.contains(call)
                    && serde_json::from_str::<Record>(line).is_ok_and(|r| {
                        r.session_id == session && r.tool_use_id == call && r.verdict == verdict
                    })
            })
    }

    /// Checks every line against the ones before; how many there are.
    pub fn verify(&self) -> Result<usize, Error> {
        self.locked(|head| {
            let path = self.path();
            let key = self.key()?;
            let mut text = String::new();
            if let Ok(file) = File::open(&path) {
                let foreign = || Error::Foreign { path: path.clone() };
                let read = file.take(READ_MAX + 1).read_to_string(&mut text).map_err(|_| foreign())?;
                if read as u64 > READ_MAX {
                    return Err(foreign());
                }
            }
            let head = Head::read(head);
            let mut before = String::new();
            let mut count = 0;
            // A process that was killed after its line and before the head leaves the head behind by lines, never ahead.
            let mut met = head.count == 0;
            for (i, line) in text.lines().enumerate() {
                let broken = || Error::Broken { path: path.clone(), line: i + 1 };
                let (body, mac) = line.rsplit_once(",\"mac\":\"").ok_or_else(broken)?;
                let mac = mac.strip_suffix("\"}").ok_or_else(broken)?;
                if hmac(&key, &[before.as_bytes(), format!("{body}}}").as_bytes()]) != mac {
                    return Err(broken());
                }
                mac.clone_into(&mut before);
                count += 1;
                met |= (head.count, &head.mac) == (count, &before);
            }
            if !met {
                return Err(Error::Cut { path: path.clone() });
            }
            Ok(count)
        })
    }
}

/// What `head` says of the log.
#[derive(Debug, Default)]
struct Head {
    /// How many lines there are.
    count: usize,
    /// The last one's `mac`.
    mac: String,
    /// The log's length in bytes. Where the log has another, its end has to be looked at.
    length: u64,
}

impl Head {
    fn read(file: &File) -> Head {
        let mut bytes = [0; 128];
        let n = file.read_at(&mut bytes, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(bytes.get(..n).unwrap_or_default()).into_owned();
        let mut words = text.split_whitespace();
        let count = words.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let mac = words.next().unwrap_or_default().to_owned();
        Head { count, mac, length: words.next().and_then(|n| n.parse().ok()).unwrap_or(0) }
    }

    fn line(&self) -> String {
        format!("{:<20} {} {:<20}\n", self.count, self.mac, self.length)
    }
}

/// Number of lines and the last one's `mac`; `None` when the end is no record. A line that a killed process did not
/// finish is taken off. Reads at most [`READ_MAX`] bytes.
fn last_line(file: &mut File, head: Head) -> io::Result<Option<(usize, String)>> {
    /// More than the longest line that is written.
    const TAIL: u64 = 16 * 1024;
    /// What every line begins with.
    const START: &[u8] = b"{\"time\":";
    let len = file.metadata()?.len();
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL)))?;
    file.take(TAIL).read_to_end(&mut tail)?;
    let end = tail.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let (whole, part) = tail.split_at(end.min(tail.len()));
    // Without a line end in sight, or with another beginning, it is nobody's unfinished line.
    let ours = part.starts_with(START) || START.starts_with(part);
    if !part.is_empty() && !(ours && (end > 0 || len <= TAIL)) {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(whole);
    let mac = match text.lines().last() {
        None => String::new(),
        Some(line) => {
            let record = serde_json::from_str::<Record>(line).is_ok();
            let mac = line.rsplit_once(",\"mac\":\"").and_then(|(_, m)| m.strip_suffix("\"}"));
            match mac.filter(|_| record) {
                Some(mac) => mac.to_owned(),
                None => return Ok(None),
            }
        }
    };
    if !part.is_empty() {
        file.set_len(len - part.len() as u64)?;
    }
    if mac.is_empty() {
        return Ok(Some((0, mac)));
    }
    if mac == head.mac {
        return Ok(Some((head.count, mac)));
    }
    Ok(Some((lines(file)?, mac)))
}

/// How many lines there are in the first [`READ_MAX`] bytes.
fn lines(file: &mut File) -> io::Result<usize> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::new(file.take(READ_MAX));
    let mut count = 0;
    loop {
        let piece = reader.fill_buf()?;
        let length = piece.len();
        if length == 0 {
            return Ok(count);
        }
        count += piece.iter().filter(|b| **b == b'\n').count();
        reader.consume(length);
    }
}

/// HMAC-SHA256 (RFC 2104) in hexadecimal, over parts with their lengths in front.
fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> String {
    let pad = |byte: u8| {
        let mut block = [byte; 64];
        block.iter_mut().zip(key).for_each(|(b, k)| *b ^= k);
        block
    };
    let mut inner = Sha256::new_with_prefix(pad(0x36));
    for part in parts {
        inner.update((part.len() as u64).to_be_bytes());
        inner.update(part);
    }
    let outer = Sha256::new_with_prefix(pad(0x5c)).chain_update(inner.finalize()).finalize();
    outer.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_of(n: usize) -> (tempfile::TempDir, Log) {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(&dir.path().join("jess")).unwrap();
        for i in 0..n {
            let reason = format!("reason {i}, with \"quotes\" and }}}}");
            log.append(&Record { tool: format!("T{i}"), reason, ..Record::default() }).unwrap();
        }
        (dir, log)
    }

    #[test]
    fn an_untouched_log_verifies_and_reads_back() {
        let (_dir, log) = log_of(5);
        assert_eq!(log.verify().unwrap(), 5);
        assert_eq!(log.records().unwrap()[4].tool, "T4");
    }

    #[test]
    fn a_changed_dropped_swapped_or_cut_line_is_found() {
        let changes: [fn(&mut Vec<String>); 4] =
            [|l| l[2] = l[2].replace("T2", "T9"), |l| drop(l.remove(1)), |l| l.swap(1, 2), |l| drop(l.pop())];
        for change in changes {
            let (_dir, log) = log_of(5);
            let mut lines: Vec<String> =
                fs::read_to_string(log.path()).unwrap().lines().map(str::to_owned).collect();
            change(&mut lines);
            fs::write(log.path(), lines.join("\n") + "\n").unwrap();
            assert!(log.verify().is_err());
        }
    }

    #[test]
    fn a_process_killed_while_writing_breaks_nothing() {
        let (_dir, log) = log_of(3);
        let head = fs::read_to_string(log.dir.join("head")).unwrap();
        log.append(&Record { tool: "T3".into(), ..Record::default() }).unwrap();
        fs::write(log.dir.join("head"), head).unwrap();
        assert_eq!(log.verify().unwrap(), 4, "killed between the line and the head");
        OpenOptions::new().append(true).open(log.path()).unwrap().write_all(b"{\"time\":1,\"sess").unwrap();
        log.append(&Record { tool: "T4".into(), ..Record::default() }).unwrap();
        assert_eq!(log.verify().unwrap(), 5, "killed in the middle of a line");
    }

    #[test]
    fn a_log_that_ends_in_what_is_no_record_is_not_written_to() {
        let ends: [&[u8]; 5] = [
            b"\xff\x00garbage\n",
            b"garbage without an end",
            b"{\"time\":1,\"note\":\"no record\"}\n",
            b"\n",
            &[b'x'; 40_000],
        ];
        for end in ends {
            let (_dir, log) = log_of(3);
            OpenOptions::new().append(true).open(log.path()).unwrap().write_all(end).unwrap();
            let before = fs::metadata(log.path()).unwrap().len();
            assert!(matches!(log.append(&Record::default()), Err(Error::Foreign { .. })), "{end:?}");
            assert_eq!(fs::metadata(log.path()).unwrap().len(), before, "nothing is taken off");
        }
    }

    #[test]
    fn no_more_of_a_log_is_read_than_one_can_be_long() {
        let (_dir, log) = log_of(1);
        let file = OpenOptions::new().write(true).open(log.path()).unwrap();
        file.set_len(READ_MAX + 1).unwrap();
        assert!(matches!(log.verify(), Err(Error::Foreign { .. })));
        assert_eq!(log.records().unwrap().len(), 1);
        assert!(matches!(log.append(&Record::default()), Err(Error::Foreign { .. })));
    }

    #[test]
    fn a_directory_open_to_others_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("jess");
        fs::DirBuilder::new().mode(0o777).create(&open).unwrap();
        fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        assert!(matches!(Log::open(&open), Err(Error::Unsafe(_))));
    }
}
