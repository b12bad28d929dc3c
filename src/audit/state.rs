//! Where state lies, and the labels of sessions.
//!
//! A session's labels are lines in `sessions/ID`: `A 1700000000 WebFetch https://…`. They are appended and synced before
//! the verdict that depends on them is given, and nothing takes them away but a person.

use super::Error;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Most label lines kept of each leg of one session; the first say what has to be known.
const LINES: usize = 32;
/// Most bytes of a session's labels that are read: all that [`raise`] writes, and more.
const BYTES: u64 = 64 << 10;
/// Looks at an empty file before it counts as damaged, the n-th after n more milliseconds.
const EMPTY_LOOKS: u64 = 8;
/// Most characters of an evidence.
const EVIDENCE: usize = 160;

/// One label with its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// `A` untrusted content, `B` sensitive material, `C` effect outside.
    pub leg: char,
    /// Seconds since 1970, UTC.
    pub time: u64,
    /// What raised it.
    pub evidence: String,
}

/// The state directory: `$XDG_STATE_HOME/jess`, else `~/.local/state/jess`. `None` without a home.
pub fn dir(var: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |p: String| Some(PathBuf::from(p)).filter(|p| p.is_absolute());
    var("XDG_STATE_HOME")
        .and_then(absolute)
        .or_else(|| var("HOME").and_then(absolute).map(|h| h.join(".local/state")))
        .map(|s| s.join("jess"))
}

/// The labels of a session; none when nothing was raised. An error when there is something that cannot be read as
/// labels: then nobody knows what the session has seen.
pub fn labels(dir: &Path, session: &str) -> Result<Vec<Label>, Error> {
    let path = dir.join("sessions").join(session);
    let damaged = || damaged(&path, "labels");
    let Some(text) = record(&path, BYTES, "labels")? else { return Ok(Vec::new()) };
    text.lines().map(|line| parse(line).ok_or_else(damaged)).collect()
}

/// What is said of a record that holds something else than `what`.
pub(super) fn damaged(path: &Path, what: &str) -> Error {
    let why = format!("these are no {what}; a person clears them with `jess session clear`");
    Error::Io { path: path.to_owned(), source: std::io::Error::other(why) }
}

/// The record of a session at `path`, of at most `max` bytes; `None` where there is none. One that is no file, longer, empty
/// or no text is damaged: jess leaves none so.
pub(super) fn record(path: &Path, max: u64, what: &str) -> Result<Option<String>, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK)
        .open(path);
    let file = match file {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(io)?,
    };
    if !file.metadata().map_err(io)?.is_file() {
        return Err(damaged(path, what));
    }
    // One that another hook is just about to write is empty for a moment; one that stays so was emptied.
    for wait in 0..EMPTY_LOOKS {
        if file.metadata().map_err(io)?.len() > 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(wait));
    }
    let mut text = String::new();
    let read = file.take(max + 1).read_to_string(&mut text).map_err(io)? as u64;
    if read == 0 || read > max { Err(damaged(path, what)) } else { Ok(Some(text)) }
}

fn parse(line: &str) -> Option<Label> {
    let mut parts = line.splitn(3, ' ');
    let leg = match parts.next()? {
        "A" => 'A',
        "B" => 'B',
        "C" => 'C',
        _ => return None,
    };
    let time = parts.next()?.parse().ok()?;
    Some(Label { leg, time, evidence: parts.next().unwrap_or_default().to_owned() })
}

/// Raises a label, on disk when this returns. The same evidence is kept once.
pub fn raise(dir: &Path, session: &str, label: &Label) -> Result<(), Error> {
    let evidence: String =
        label.evidence.chars().map(|c| if c.is_control() { ' ' } else { c }).take(EVIDENCE).collect();
    let known = labels(dir, session)?;
    let mut same = known.iter().filter(|l| l.leg == label.leg);
    if same.clone().count() >= LINES || same.any(|l| l.evidence == evidence) {
        return Ok(());
    }
    let sessions = dir.join("sessions");
    let path = sessions.join(session);
    let io = |source| Error::Io { path: path.clone(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&sessions).map_err(io)?;
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(&path)
        .map_err(io)?;
    keep(&mut file, &path, &format!("{} {} {evidence}\n", label.leg, label.time))
}

/// Appends `lines` to a record, on disk when this returns.
pub(super) fn keep(file: &mut fs::File, path: &Path, lines: &str) -> Result<(), Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let written = file.write_all(lines.as_bytes());
    if written.is_err() && file.metadata().is_ok_and(|m| m.len() == 0) {
        // An empty file would say that somebody emptied it; the failure is said all the same.
        fs::remove_file(path).map_err(io)?;
    }
    written.map_err(io)?;
    file.sync_data().map_err(io)
}

/// Most events counted for one session; more say nothing new.
const COUNT_MAX: u64 = 64 * 1024;

/// Counts a denial (`d`) or a result with findings (`f`) of a session, on disk when this returns.
pub fn count(dir: &Path, session: &str, what: char) -> Result<(), Error> {
    let counts = dir.join("counts");
    let path = counts.join(session);
    let io = |source| Error::Io { path: path.clone(), source };
    let open = || {
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK)
            .open(&path)
    };
    let mut file = match open() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&counts).map_err(io)?;
            open().map_err(io)?
        }
        other => other.map_err(io)?,
    };
    if file.metadata().map_err(io)?.len() >= COUNT_MAX {
        return Ok(());
    }
    file.write_all(&[what as u8]).map_err(io)
}

/// How many denials and results with findings a session met. An error when what is there cannot be read as counts.
pub fn counts(dir: &Path, session: &str) -> Result<(usize, usize), Error> {
    let path = dir.join("counts").join(session);
    let bytes = read(&path, COUNT_MAX).map_err(|source| Error::Io { path: path.clone(), source })?;
    let of = |what: u8| bytes.iter().filter(|b| **b == what).count();
    Ok((of(b'd'), of(b'f')))
}

/// The bytes of a regular file, at most `max`; none where nothing is there.
fn read(path: &Path, max: u64) -> std::io::Result<Vec<u8>> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK)
        .open(path);
    let file = match file {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("this is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Takes the labels and counts of session `from` over into `to`, which continues its conversation; on disk when this
/// returns. Done once for each: what a person takes away from `to` later does not come back.
pub fn inherit(dir: &Path, from: &str, to: &str) -> Result<(), Error> {
    let lineage = dir.join("lineage");
    let path = lineage.join(to);
    let io = |source| Error::Io { path: path.clone(), source };
    let known = read(&path, BYTES).map_err(io)?;
    if String::from_utf8_lossy(&known).lines().any(|line| line == from) {
        return Ok(());
    }
    for label in labels(dir, from)? {
        raise(dir, to, &label)?;
    }
    super::arrived::add(dir, to, &super::arrived::paths(dir, from)?)?;
    let (denials, findings) = counts(dir, from)?;
    if counts(dir, to)? == (0, 0) {
        for what in std::iter::repeat_n('d', denials).chain(std::iter::repeat_n('f', findings)) {
            count(dir, to, what)?;
        }
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&lineage).map_err(io)?;
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK)
        .open(&path)
        .map_err(io)?;
    file.write_all(format!("{from}\n").as_bytes()).map_err(io)
}

/// Takes a session's labels and counts away: a person's decision, never the hook's. Whether there were any.
pub fn clear(dir: &Path, session: &str) -> Result<bool, Error> {
    let mut any = false;
    for place in ["sessions", "counts", "arrived"] {
        let path = dir.join(place).join(session);
        match fs::remove_file(&path) {
            Ok(()) => any = true,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::Io { path, source }),
        }
    }
    Ok(any)
}

/// Sessions that have labels or counts.
pub fn sessions(dir: &Path) -> Vec<String> {
    let mut out: Vec<String> = ["sessions", "counts", "arrived"]
        .into_iter()
        .filter_map(|place| fs::read_dir(dir.join(place)).ok())
        .flat_map(|entries| entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()))
        .collect();
    out.sort();
    out.dedup();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_rise_and_stay() {
        let dir = tempfile::tempdir().unwrap();
        let a = Label { leg: 'A', time: 7, evidence: "WebFetch https://a.example\nB 1 forged".into() };
        raise(dir.path(), "s", &a).unwrap();
        raise(dir.path(), "s", &Label { leg: 'C', time: 8, evidence: "Bash".into() }).unwrap();
        let seen: Vec<char> = labels(dir.path(), "s").unwrap().iter().map(|l| l.leg).collect();
        assert_eq!(seen, ['A', 'C'], "a newline in the evidence raises nothing");
    }

    #[test]
    fn however_often_one_leg_is_raised_there_is_room_for_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let raise =
            |leg, evidence: String| raise(dir.path(), "s", &Label { leg, time: 1, evidence }).unwrap();
        for i in 0..3 * LINES {
            raise('A', format!("WebFetch https://{i}.example/{}", "x".repeat(EVIDENCE)));
            raise('A', format!("WebFetch https://long.example/{}", "x".repeat(EVIDENCE)));
        }
        raise('B', "Read .env".into());
        let all = labels(dir.path(), "s").unwrap();
        assert_eq!(all.iter().filter(|l| l.leg == 'A').count(), LINES);
        assert_eq!(
            all.iter().filter(|l| l.evidence.contains("long.example")).count(),
            1,
            "cut texts are the same too"
        );
        assert_eq!(all.last().map(|l| l.leg), Some('B'));
    }

    #[test]
    fn a_session_that_continues_another_takes_over_what_that_one_met_once() {
        let dir = tempfile::tempdir().unwrap();
        raise(dir.path(), "old", &Label { leg: 'A', time: 1, evidence: "WebFetch".into() }).unwrap();
        count(dir.path(), "old", 'd').unwrap();
        inherit(dir.path(), "old", "new").unwrap();
        assert_eq!(labels(dir.path(), "new").unwrap(), labels(dir.path(), "old").unwrap());
        assert_eq!(counts(dir.path(), "new").unwrap(), (1, 0));
        clear(dir.path(), "new").unwrap();
        inherit(dir.path(), "old", "new").unwrap();
        assert_eq!(labels(dir.path(), "new").unwrap(), [], "a person cleared them");
        fs::write(dir.path().join("sessions/damaged"), "nothing to see\n").unwrap();
        assert!(inherit(dir.path(), "damaged", "new").is_err());
    }

    #[test]
    fn counts_that_cannot_be_read_are_an_error_and_not_no_counts() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(counts(dir.path(), "s").unwrap(), (0, 0));
        let at = dir.path().join("counts");
        fs::create_dir_all(at.join("dir")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at.join("link")).unwrap();
        for name in ["dir", "link"] {
            assert!(counts(dir.path(), name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_read_as_labels_is_an_error_and_not_no_labels() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(labels(dir.path(), "s").unwrap(), []);
        let sessions = dir.path().join("sessions");
        fs::create_dir(&sessions).unwrap();
        fs::write(sessions.join("bytes"), b"A 1 x\n\xff\n").unwrap();
        fs::write(sessions.join("words"), "nothing to see\n").unwrap();
        fs::write(sessions.join("emptied"), "").unwrap();
        fs::write(sessions.join("long"), "A 1 x\n".repeat(BYTES as usize)).unwrap();
        fs::create_dir(sessions.join("dir")).unwrap();
        std::os::unix::fs::symlink("/dev/null", sessions.join("link")).unwrap();
        for name in ["bytes", "words", "emptied", "long", "dir", "link"] {
            assert!(labels(dir.path(), name).is_err(), "{name}");
        }
        let file = dir.path().join("file");
        fs::create_dir(&file).unwrap();
        fs::write(file.join("sessions"), "").unwrap();
        assert!(labels(&file, "s").is_err(), "a file where the directory should be");
    }
}
