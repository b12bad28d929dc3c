//! What a run was refused, and which flag would grant it.
//!
//! All of it is the supervisor's own: what it decided itself, and calls that it was told of. Nothing is taken from what
//! the command prints.

use crate::sanitise;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Different refusals that are kept, the first and the last of them in equal parts; what was in between is counted.
pub const KEPT: usize = 64;

/// How many of the first are kept.
const FIRST: usize = KEPT / 2;

/// What kind of thing was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Reading a file or a directory, or examining it.
    Read,
    /// Executing a program.
    Execute,
    /// Changing a file, or a name in a directory.
    Write,
    /// Changing a file's mode, owner, times or attributes.
    Metadata,
    /// Connecting to an address.
    Connect,
    /// Making a socket.
    Socket,
    /// Another system call.
    Call,
    /// Reaching a limit.
    Limit,
}

/// One thing that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Denial {
    /// What kind of thing.
    pub kind: Kind,
    /// The path, address or call, fit for a terminal.
    pub item: String,
    /// The flag that grants it; `None` where none does.
    pub flag: Option<String>,
    /// How often.
    pub times: u64,
}

impl std::fmt::Display for Denial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let doing = match self.kind {
            Kind::Read => "reading ",
            Kind::Execute => "executing ",
            Kind::Write => "writing ",
            Kind::Metadata => "changing the metadata of ",
            Kind::Connect => "connecting to ",
            Kind::Socket => "making ",
            Kind::Call => "the call ",
            Kind::Limit => "more than ",
        };
        write!(f, "{doing}{}", self.item)?;
        match &self.flag {
            Some(flag) => write!(f, " (granted by {flag})"),
            None => f.write_str(" (no flag grants it)"),
        }
    }
}

/// The refusals of one run, in the order in which they were first seen.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Denials {
    /// The first and the last different ones, [`KEPT`] in all.
    pub seen: Vec<Denial>,
    /// How many there were in between.
    pub more: u64,
    /// The index of the latest one.
    #[serde(skip)]
    latest: usize,
}

/// Refusals that several threads note. Cloning gives another handle to the same.
#[derive(Debug, Clone, Default)]
pub struct Notes(Arc<Mutex<Denials>>);

impl Notes {
    fn with<T>(&self, what: impl FnOnce(&mut Denials) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// [`Denials::note`].
    pub fn note(&self, kind: Kind, item: String, flag: Option<String>) {
        self.with(|denials| denials.note(kind, item, flag));
    }

    /// [`Denials::path`].
    pub fn path(&self, kind: Kind, path: &Path) {
        self.with(|denials| denials.path(kind, path));
    }

    /// [`Denials::connect`].
    pub fn connect(&self, to: SocketAddr) {
        self.with(|denials| denials.connect(to));
    }

    /// What was noted until now.
    pub fn denials(&self) -> Denials {
        self.with(|denials| denials.clone())
    }
}

impl Denials {
    /// Notes one.
    pub fn note(&mut self, kind: Kind, item: String, flag: Option<String>) {
        let known = self.seen.iter_mut().enumerate().find(|(_, d)| d.kind == kind && d.item == item);
        if let Some((index, known)) = known {
            known.times += 1;
            self.latest = index;
            return;
        }
        if self.seen.len() >= KEPT {
            self.seen.remove(FIRST);
            self.more += 1;
        }
        self.latest = self.seen.len();
        self.seen.push(Denial { kind, item, flag, times: 1 });
    }

    /// Notes a path, with the flag that shows it.
    pub fn path(&mut self, kind: Kind, path: &Path) {
        let item = sanitise::path(path).to_string();
        let flag = match kind {
            Kind::Write | Kind::Metadata => "--rw",
            _ => "--ro",
        };
        let flag = format!("{flag} {item}");
        self.note(kind, item, Some(flag));
    }

    /// Notes an address.
    pub fn connect(&mut self, to: SocketAddr) {
        let flag = (!to.ip().is_loopback()).then(|| format!("--net {to}"));
        self.note(Kind::Connect, to.to_string(), flag);
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// One line for the operator: the last refusal, which is what a command is likeliest to have ended of.
    pub fn line(&self) -> Option<String> {
        let last = self.seen.get(self.latest)?;
        let others = (self.seen.len() as u64 - 1) + self.more;
        Some(match others {
            0 => format!("refused: {last}"),
            others => format!("refused: {last}, and {others} more (--report lists them)"),
        })
    }
}

/// Places that are the run's own inside, whatever is there outside.
const OWN: [&str; 5] = ["/tmp", "/run", "/dev", "/proc", "/sys"];

/// Hints that are given at most.
const HINTS_MAX: usize = 3;

/// The arguments that name files of the host, seen from `here`, that lie beneath none of `shown`.
pub fn hidden_arguments(argv: &[OsString], here: &Path, shown: &[PathBuf]) -> Vec<String> {
    let granted = |path: &Path| {
        shown.iter().any(|root| path.starts_with(root) && !(OWN.iter().any(|own| root == Path::new(own))))
    };
    let arguments = argv.iter().skip(1).map(|argument| {
        let bytes = argument.as_bytes();
        let value = bytes.iter().position(|b| *b == b'=').and_then(|at| bytes.get(at + 1..));
        Path::new(OsStr::from_bytes(value.filter(|_| bytes.starts_with(b"-")).unwrap_or(bytes)))
    });
    arguments
        .filter(|path| !path.as_os_str().is_empty())
        .filter_map(|path| here.join(path).canonicalize().ok())
        .filter(|path| !granted(path) && !["/dev", "/proc", "/sys"].iter().any(|own| path.starts_with(own)))
        .filter(|path| path != Path::new("/"))
        .map(|path| sanitise::path(&path).to_string())
        .map(|path| {
            format!("{path} is not shown inside: --ro {path} shows it; --explain names every refusal")
        })
        .take(HINTS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_refusals_are_counted_and_their_number_is_bounded() {
        let mut denials = Denials::default();
        for n in 0..KEPT + 10 {
            denials.path(Kind::Read, Path::new(&format!("/x/{n}")));
        }
        denials.path(Kind::Read, Path::new("/x/0"));
        assert_eq!((denials.seen.len(), denials.more, denials.seen[0].times), (KEPT, 10, 2));
        assert!(denials.line().unwrap().contains("/x/0 "), "the latest, though it was seen before");
        let last = format!("/x/{}", KEPT + 9);
        assert_eq!(denials.seen.last().unwrap().item, last, "the last ones are kept");
        denials.path(Kind::Read, Path::new(&last));
        assert!(denials.line().unwrap().contains(&last));
    }

    #[test]
    fn a_line_names_the_item_and_the_flag() {
        let mut denials = Denials::default();
        assert_eq!(denials.line(), None);
        denials.connect("192.0.2.1:443".parse().unwrap());
        denials.path(Kind::Write, Path::new("/w\n"));
        let line = denials.line().unwrap();
        assert!(line.contains("--rw /w\\x0a") && line.contains("1 more") && !line.contains('\n'), "{line}");
    }

    #[test]
    fn arguments_that_are_hidden_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        for name in ["shown", "hidden"] {
            std::fs::write(dir.join(name), "").unwrap();
        }
        let argv = ["cat", "shown", "--file=hidden", "missing"].map(OsString::from);
        let hints = hidden_arguments(&argv, &dir, &[dir.join("shown"), "/tmp".into()]);
        assert_eq!(hints.len(), 1, "{hints:?}");
        assert!(hints[0].contains(&format!("--ro {}", dir.join("hidden").display())));
    }
}
