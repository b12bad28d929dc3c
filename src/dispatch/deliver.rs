//! What comes back: the gates over what the agent returned and wrote, and the report.

use crate::envelope::Policy;
use crate::gate::{self, Finding, encoded::Known};
use crate::untrusted::Untrusted;
use crate::{egress, sandbox, sanitise};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The agent's answer, fit to read, in the directory for results.
pub const REPORT: &str = "report.md";
/// What jess did and saw, beside it.
pub const RUN_REPORT: &str = "jess-run.json";

/// What the agent returned, as the name of a file in findings.
const ANSWER: &str = "(the agent's answer)";

/// The results could not be checked or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The gates could not look at everything.
    #[error(transparent)]
    Gate(#[from] gate::Error),
    /// A report could not be written.
    #[error("writing {}: {reason}; is something of the agent's in its place?", crate::sanitise::path(path))]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
}

/// What was delivered.
#[derive(Debug)]
pub struct Delivered {
    /// The answer, with secrets and auto-fetching markup replaced, safe for a terminal.
    pub answer: String,
    /// What the gates found; empty means that everything was looked at and nothing found.
    pub findings: Vec<Finding>,
}

#[derive(Serialize)]
struct RunReport<'a> {
    schema: &'static str,
    provenance: Provenance,
    run: &'a sandbox::Report,
    egress: &'a egress::Report,
    findings: Vec<FindingReport>,
    stderr: String,
}

/// Says what the results are worth.
#[derive(Serialize)]
struct Provenance {
    generator: &'static str,
    untrusted: bool,
    schema_validated: bool,
}

#[derive(Serialize)]
struct FindingReport {
    file: String,
    line: usize,
    kind: String,
}

/// What is in the place of a report, set aside under this ending.
const ASIDE: &str = ".from-agent";

/// Gates the answer and everything under `out`, for secrets and for the run's own `keys` in any encoding, and writes both
/// reports there. With `on` false (the drill) nothing is gated.
pub fn deliver(
    out: &Path,
    answer: &Untrusted<Vec<u8>>,
    stderr: &Untrusted<Vec<u8>>,
    run: &sandbox::Report,
    seen: &egress::Report,
    keys: &Known,
    on: bool,
) -> Result<Delivered, Error> {
    let policy = Policy::default();
    let answer = Untrusted::new(String::from_utf8_lossy(answer.inspect()).into_owned());
    let (text, findings) = if on {
        let mut findings = gate::check_document(ANSWER, &answer, Some(keys), &policy);
        if run.output.as_ref().is_some_and(|o| o.stdout.passed < o.stdout.written) {
            findings.push(Finding { file: ANSWER.into(), line: 0, kind: "too-large".into() });
        }
        findings.extend(gate::check_tree_for(out, Some(keys), &policy)?);
        (printable(&gate::redact_for(&answer, Some(keys), &policy)), findings)
    } else {
        (answer.inspect().clone(), Vec::new())
    };
    let directory =
        rustix::fs::open(out, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|e| Error::Write { path: out.to_path_buf(), reason: e.into() })?;
    let report = RunReport {
        schema: "jess.dispatch/1",
        provenance: Provenance { generator: "jess dispatch", untrusted: true, schema_validated: false },
        run,
        egress: seen,
        findings: findings
            .iter()
            .map(|f| FindingReport {
                file: sanitise::for_terminal(&Untrusted::new(f.file.to_string_lossy()), 4096),
                line: f.line,
                kind: f.kind.clone(),
            })
            .collect(),
        stderr: printable(&gate::redact_for(
            &Untrusted::new(String::from_utf8_lossy(stderr.inspect())),
            Some(keys),
            &policy,
        )),
    };
    let json = serde_json::to_vec_pretty(&report)
        .map_err(|e| Error::Write { path: out.join(RUN_REPORT), reason: e.into() })?;
    write(&directory, RUN_REPORT, &json)
        .map_err(|e| Error::Write { path: out.join(RUN_REPORT), reason: e.into() })?;
    write(&directory, REPORT, text.as_bytes())
        .map_err(|e| Error::Write { path: out.join(REPORT), reason: e.into() })?;
    Ok(Delivered { answer: text, findings })
}

/// `text` with what a terminal would act on made visible; line breaks and tabs stay.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            out.push('\n');
        }
        for (n, field) in line.split('\t').enumerate() {
            if n > 0 {
                out.push('\t');
            }
            out.push_str(&sanitise::for_terminal(&Untrusted::new(field), usize::MAX));
        }
    }
    out
}

/// Replaces `name` by a new file. A link of the agent's in its place is replaced, never followed.
fn write(directory: &rustix::fd::OwnedFd, name: &str, content: &[u8]) -> rustix::io::Result<()> {
    // A name that the agent can't have taken.
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).map_err(|_| Errno::IO)?;
    let fresh = format!(".{name}.{:016x}", u64::from_ne_bytes(random));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, &fresh, flags, Mode::from_raw_mode(0o644))?;
    let mut rest = content;
    while !rest.is_empty() {
        let n = rustix::io::retry_on_intr(|| rustix::io::write(&file, rest))?;
        rest = rest.get(n..).unwrap_or_default();
    }
    let rename = || match rustix::fs::renameat(directory, &fresh, directory, name) {
        // A directory of the agent's: it was looked at, and stays, under another name.
        Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
            set_aside(directory, name)?;
            rustix::fs::renameat(directory, &fresh, directory, name)
        }
        other => other,
    };
    rename().inspect_err(|_| {
        let _ = rustix::fs::unlinkat(directory, &fresh, AtFlags::empty());
    })
}

fn set_aside(directory: &rustix::fd::OwnedFd, name: &str) -> rustix::io::Result<()> {
    for n in 0..1000 {
        let aside = format!("{name}{ASIDE}-{n}");
        match rustix::fs::renameat_with(directory, name, directory, &aside, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            other => return other,
        }
    }
    Err(Errno::EXIST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_the_place_of_the_report_is_replaced_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "keep").unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join(REPORT)).unwrap();
        let fd = rustix::fs::open(dir.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        write(&fd, REPORT, b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "keep");
        assert_eq!(std::fs::read_to_string(dir.path().join(REPORT)).unwrap(), "new");
    }

    #[test]
    fn a_directory_in_the_place_of_the_report_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(REPORT).join("inner")).unwrap();
        std::fs::create_dir(dir.path().join(format!("{REPORT}{ASIDE}-0"))).unwrap();
        let fd = rustix::fs::open(dir.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        write(&fd, REPORT, b"new").unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join(REPORT)).unwrap(), "new");
        assert!(dir.path().join(format!("{REPORT}{ASIDE}-1/inner")).is_dir());
    }

    #[test]
    fn terminal_control_in_an_answer_is_made_visible_and_lines_stay() {
        assert_eq!(printable("a\tb\n\x1b[2Jc"), "a\tb\n\\x1b[2Jc");
    }
}
