//! Where state lies, and the labels of sessions.
//!
//! A session's labels are lines in `sessions/ID`: `A 1700000000 WebFetch https://…`. They are appended and synced before
//! the verdict that depends on them is given, and nothing takes them away but a person.

use super::Error;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Most label lines kept for one session.
const LINES: usize = 64;

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

/// The labels of a session.
pub fn labels(dir: &Path, session: &str) -> Vec<Label> {
    let text = fs::read_to_string(dir.join("sessions").join(session)).unwrap_or_default();
    text.lines()
        .filter_map(|l| {
            let mut parts = l.splitn(3, ' ');
            let leg = parts.next()?.chars().next().filter(|c| matches!(c, 'A' | 'B' | 'C'))?;
            let time = parts.next()?.parse().ok()?;
            Some(Label { leg, time, evidence: parts.next().unwrap_or_default().to_owned() })
        })
        .collect()
}

/// Raises a label, on disk when this returns. The same evidence is kept once.
pub fn raise(dir: &Path, session: &str, label: &Label) -> Result<(), Error> {
    let known = labels(dir, session);
    if known.len() >= LINES || known.iter().any(|l| l.leg == label.leg && l.evidence == label.evidence) {
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
    let evidence: String =
        label.evidence.chars().map(|c| if c.is_control() { ' ' } else { c }).take(160).collect();
    file.write_all(format!("{} {} {evidence}\n", label.leg, label.time).as_bytes()).map_err(io)?;
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
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
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

/// How many denials and results with findings a session met.
pub fn counts(dir: &Path, session: &str) -> (usize, usize) {
    let bytes = fs::read(dir.join("counts").join(session)).unwrap_or_default();
    let of = |what: u8| bytes.iter().filter(|b| **b == what).count();
    (of(b'd'), of(b'f'))
}

/// Takes a session's labels and counts away: a person's decision, never the hook's. Whether there were any.
pub fn clear(dir: &Path, session: &str) -> Result<bool, Error> {
    let mut any = false;
    for path in [dir.join("sessions").join(session), dir.join("counts").join(session)] {
        match fs::remove_file(&path) {
            Ok(()) => any = true,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::Io { path, source }),
        }
    }
    Ok(any)
}

/// Sessions that have labels.
pub fn sessions(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir.join("sessions")) else { return Vec::new() };
    let mut out: Vec<String> =
        entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    out.sort();
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
        let seen: Vec<char> = labels(dir.path(), "s").iter().map(|l| l.leg).collect();
        assert_eq!(seen, ['A', 'C'], "a newline in the evidence raises nothing");
    }
}
