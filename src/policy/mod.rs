//! May this tool call happen? Pure decisions, no I/O of their own.
//!
//! [`judge`] takes a tool's name and input and answers with a [`Decision`]. What it has to know of the machine (where a
//! path leads, what a directory holds, what a script says) it asks of a [`World`], so that a test can pass in one that
//! never was.
//!
//! Every step is bounded: see [`shell::limits`] for commands and [`World`] for files. At a bound the verdict is
//! [`Verdict::Deny`], with a reason that says which bound.

pub mod allowlist;
pub mod custom;
pub(crate) mod mcp;
pub mod paths;
pub mod restricted;
pub mod rule_names;
pub mod rule_of_two;
pub mod shell;
pub(crate) mod tools;
pub mod ways;
pub mod web;
pub mod world;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

pub use tools::{judge, look};
pub use world::{Disk, Kind, Snapshot, World};

/// What to do with a tool call. Ordered: a later one is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Verdict {
    /// Nothing to say: the client's own rules apply.
    #[default]
    None,
    /// A person decides.
    Ask,
    /// The call must not happen.
    Deny,
}

/// A verdict, the rule that gave it, and what the model is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// What to do.
    pub verdict: Verdict,
    /// Stable name of the rule, e.g. `secret.read`; empty without a verdict.
    pub rule: &'static str,
    /// One or two sentences: what was seen, and what to do instead. Never holds a secret's value.
    pub reason: String,
}

impl Decision {
    /// Nothing to say.
    pub const SILENT: Decision = Decision { verdict: Verdict::None, rule: "", reason: String::new() };

    /// A denial.
    pub fn deny(rule: &'static str, reason: impl Into<String>) -> Decision {
        Decision { verdict: Verdict::Deny, rule, reason: reason.into() }
    }

    /// A question to a person.
    pub fn ask(rule: &'static str, reason: impl Into<String>) -> Decision {
        Decision { verdict: Verdict::Ask, rule, reason: reason.into() }
    }

    /// The stricter of two; the first one where they are equal.
    pub fn or(self, other: Decision) -> Decision {
        if other.verdict > self.verdict { other } else { self }
    }
}

/// Where a call happens.
///
/// Everything in it comes from the client or from the environment and is only a hint: nothing in a `Scope` can turn a
/// denial into silence that the default would have denied, except the directories that are known to be scratch.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The operator's home directory, absolute.
    pub home: PathBuf,
    /// Working directory of the call, absolute.
    pub cwd: PathBuf,
    /// Root of the project, absolute.
    pub project: PathBuf,
    /// Directories where anything may be deleted: `/tmp` and `TMPDIR`.
    pub scratch: Vec<PathBuf>,
    /// Environment variables a command would inherit.
    pub env: BTreeMap<String, String>,
    /// Material under analysis (`JESS_UNTRUSTED_ROOT`); scripts below it are as untrusted as a download.
    pub untrusted_root: Option<PathBuf>,
    /// Files and directories that the session brought in from other machines before this call, absolute.
    pub arrived: Arc<Vec<PathBuf>>,
    /// What the operator, the machine and the project add.
    pub custom: Arc<custom::Custom>,
}

/// A tool's input, as the client sent it.
pub type Input = Value;
