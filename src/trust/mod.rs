//! What a repository may not bring along: agent configuration that runs code, opens a network path, widens
//! permissions, redirects the model or switches a guard off.
//!
//! [`check`] reads the target's configuration once, by descriptor, and judges the bytes it read. A verdict is a value
//! of [`Report`]; nothing stores it for later, so whoever is about to start an agent calls [`check`] again.
//!
//! One pass goes through these modules in order: [`walk`] finds the files, [`read`] reads each with limits, [`json`],
//! [`yaml`] and [`frontmatter`] parse as the client parses, [`rules`] judge, [`report`] prints.
//!
//! | limit | value | reached |
//! |---|---|---|
//! | entries walked | [`limits::MAX_ENTRIES`] | blocks |
//! | directory depth | [`limits::MAX_DEPTH`] | blocks |
//! | configuration files read | [`limits::MAX_FILES`] | blocks |
//! | bytes read from them together | [`limits::MAX_TOTAL_BYTES`] | blocks |
//! | bytes of one file | [`read::MAX_BYTES`] | blocks |
//! | bytes of a head or a YAML file | [`yaml::MAX_BYTES`] | blocks |
//! | nesting of one document | [`json::MAX_DEPTH`] | blocks |
//! | findings kept | [`report::MAX_FINDINGS`] | the rest are counted; they still block |

pub mod agents;
pub mod approve;
mod around;
pub mod frontmatter;
#[doc(hidden)]
pub mod fuzz;
pub mod json;
mod judge;
pub mod limits;
pub mod mask;
mod place;
pub mod program;
pub mod read;
pub mod report;
pub mod rules;
pub mod sarif;
pub mod walk;
pub mod yaml;

pub use report::{FileReport, Finding, Report};

use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a check could give no verdict. A caller that gets one of these refuses.
#[derive(Debug, Error)]
pub enum Error {
    /// The target is missing or no directory.
    #[error("cannot check {path}: {reason}; name a directory that exists")]
    Target {
        /// The target, made safe to print.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The target exists and could not be opened or read.
    #[error("cannot read {path} while checking its agent configuration: {source}; check its permissions")]
    Io {
        /// The path, made safe to print.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// How far a check looks.
#[derive(Debug, Clone)]
pub struct Options {
    /// Also read the configuration in the target's parent directories, as the client does. Default true.
    pub parents: bool,
    /// The operator's home directory: configuration directly in it is the operator's own. Default `$HOME`.
    pub home: Option<PathBuf>,
    /// Where approvals are kept; `None` ignores them. Default [`approve::Place::from_environment`].
    pub approvals: Option<approve::Place>,
    /// Also note the hashes of scripts, which an approval needs. Set by itself when there is an approval.
    pub evidence: bool,
}

impl Default for Options {
    fn default() -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|h| h.is_absolute());
        Options { parents: true, home, approvals: approve::Place::from_environment(), evidence: false }
    }
}

/// Checks the agent configuration that `repo` brings along, and that of its parent directories.
///
/// # Errors
/// [`enum@Error`] when there is no verdict: the target is missing, no directory, or unreadable. Refuse then.
pub fn check(repo: &Path) -> Result<Report, Error> {
    check_with(repo, &Options::default())
}

/// [`check`] with explicit options.
///
/// # Errors
/// As [`check`].
pub fn check_with(repo: &Path, options: &Options) -> Result<Report, Error> {
    let approval = match (&options.approvals, std::fs::canonicalize(repo)) {
        (Some(place), Ok(real)) => match place.load(&real) {
            Ok(approval) => approval,
            Err(error) => {
                tracing::warn!("approvals are ignored: {error}");
                None
            }
        },
        _ => None,
    };
    let options = Options { evidence: options.evidence || approval.is_some(), ..options.clone() };
    let mut report = walk::run(repo, &options)?;
    if let Some(approval) = &approval {
        report.apply(approval);
    }
    Ok(report)
}

/// Records that a person has looked at what `repo` brings along, as it is now. Returns what was approved.
///
/// # Errors
/// [`approve::Error`]; also when the check gives no verdict.
pub fn approve(repo: &Path, options: &Options) -> Result<Report, approve::Error> {
    let shown = || mask::path(&repo.to_string_lossy());
    let place = options.approvals.as_ref().ok_or(approve::Error::NoPlace)?;
    let io = |doing, source| approve::Error::Io { doing, path: shown(), source };
    let real = std::fs::canonicalize(repo).map_err(|e| io("resolve", e))?;
    let options = Options { evidence: true, approvals: None, ..options.clone() };
    let report = walk::run(&real, &options).map_err(|e| io("check", std::io::Error::other(e.to_string())))?;
    if report.not_approvable() > 0 {
        return Err(approve::Error::NotApprovable { path: shown(), count: report.not_approvable() });
    }
    place.save(&real, report.seen())?;
    Ok(report)
}
