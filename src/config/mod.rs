//! The operator's configuration, and a project's, which may only tighten.
//!
//! | file | whose | may |
//! |---|---|---|
//! | named by `--config` | this command | everything |
//! | `$XDG_CONFIG_HOME/jess/config.toml`, else `~/.config/jess/config.toml` | the operator | everything |
//! | `/etc/jess/config.toml` | the machine | everything |
//! | `jess.toml` at the project's root, else the nearest above it in its Git working tree | the project | tighten |
//!
//! A key is taken from the first of the first three files that sets it. A project's file is intersected with the
//! outcome: it adds denials and narrows lists; a key or value that would loosen is a [`Problem`] and has no effect. A
//! file that cannot be read counts as it was when it could be read last; when that is not known, the built-in policy
//! stands and every question is a denial. Nothing here can switch jess off.

pub mod keys;
mod layer;
mod merge;
mod store;

pub use layer::Layer;
pub use merge::{merge, restricted_shell};

use crate::hook::exec::Tier;
use crate::policy::Verdict;
use crate::policy::custom::Custom;
use crate::scan::Severity;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The machine's file.
pub const MACHINE: &str = "/etc/jess/config.toml";
/// The project's file, at its root.
pub const PROJECT: &str = "jess.toml";
/// Most directories in which a project's file is looked for.
const LEVELS_MAX: usize = 64;

/// What counts.
#[derive(Debug, Clone)]
pub struct Config {
    /// For the policy.
    pub custom: Arc<Custom>,
    /// From which severity and confidence a text is withheld.
    pub withhold: (Severity, f32),
    /// Whether nobody is ever there.
    pub unattended: bool,
    /// Denials after which a session needs a person; `None` is never.
    pub denials_max: Option<u32>,
    /// Results with findings after which a session needs a person; `None` is never.
    pub findings_max: Option<u32>,
    /// What a call meets whose decision cannot be put on record.
    pub unrecorded: Verdict,
    /// Whether the hook starts a daemon.
    pub daemon: bool,
    /// How long a daemon waits for a call.
    pub idle: Duration,
    /// The sandbox that Bash commands run in outside dispatched sessions.
    pub sandbox: Option<Tier>,
    /// Hosts that the sandbox reaches.
    pub net: Vec<String>,
    /// What is wrong with the files.
    pub problems: Vec<Problem>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            custom: Arc::default(),
            withhold: (Severity::Critical, 0.9),
            unattended: false,
            denials_max: Some(40),
            findings_max: Some(25),
            unrecorded: Verdict::Ask,
            daemon: true,
            idle: Duration::from_secs(30 * 60),
            sandbox: None,
            net: Vec::new(),
            problems: Vec::new(),
        }
    }
}

/// What is wrong with a file, and what counts instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct Problem {
    /// The file.
    pub file: String,
    /// One sentence. Quotes keys, never values.
    pub what: String,
}

/// Whose a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Named on the command line.
    Flag,
    /// The operator's.
    Operator,
    /// The machine's.
    Machine,
    /// The project's.
    Project,
}

/// Where the files lie.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Places {
    /// A file named on the command line.
    pub flag: Option<PathBuf>,
    /// The operator's file.
    pub operator: Option<PathBuf>,
    /// The machine's file.
    pub machine: PathBuf,
    /// The operator's home.
    pub home: PathBuf,
    /// The directory of the project's file.
    pub project: PathBuf,
    /// Where the last good copies are kept.
    pub state: Option<PathBuf>,
}

impl Places {
    /// The places that an environment names.
    pub fn of(var: &dyn Fn(&str) -> Option<String>, home: &Path, project: &Path) -> Places {
        let absolute = |name: &str| var(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let config = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|h| h.join(".config")));
        Places {
            flag: None,
            operator: config.map(|c| c.join("jess/config.toml")),
            machine: MACHINE.into(),
            home: home.to_path_buf(),
            project: root(project, home).to_path_buf(),
            state: crate::audit::state::dir(var),
        }
    }

    /// The files, the one that counts most first.
    pub fn files(&self) -> impl Iterator<Item = (Origin, PathBuf)> {
        let own = [(Origin::Flag, self.flag.clone()), (Origin::Operator, self.operator.clone())];
        let rest = [
            (Origin::Machine, Some(self.machine.clone())),
            (Origin::Project, Some(self.project.join(PROJECT))),
        ];
        own.into_iter().chain(rest).filter_map(|(o, p)| Some((o, p?)))
    }

    /// Length, change time and inode of each file: when this is the same, so are the files.
    pub fn stamp(&self) -> Vec<Option<(u64, i64, i64, u64)>> {
        use std::os::unix::fs::MetadataExt;
        self.files()
            .map(|(_, p)| std::fs::metadata(p).ok().map(|m| (m.len(), m.ctime(), m.ctime_nsec(), m.ino())))
            .collect()
    }
}

/// The directory whose `jess.toml` counts for `project`: its own, else the nearest above it in its Git working tree.
///
/// A working tree inside of another is a part of it, so that a `git init` takes no file away. Outside of working trees
/// nothing above counts, and neither do the home and what lies above it: such a file can be anybody's.
fn root<'p>(project: &'p Path, home: &Path) -> &'p Path {
    let there = |dir: &Path, name: &str| dir.join(name).symlink_metadata().is_ok();
    if there(project, PROJECT) {
        return project;
    }
    let mut found = None;
    for dir in project.ancestors().take(LEVELS_MAX) {
        if dir.parent().is_none() || home.starts_with(dir) {
            break;
        }
        if found.is_none() && there(dir, PROJECT) {
            found = Some(dir);
        }
        if let Some(found) = found
            && there(dir, ".git")
        {
            return found;
        }
    }
    project
}

/// The project of a command that is started in `cwd`, as the hook takes it: what the client names, if `cwd` lies in it.
pub fn project(var: &dyn Fn(&str) -> Option<String>, cwd: &Path) -> PathBuf {
    var("CLAUDE_PROJECT_DIR")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute() && cwd.starts_with(p))
        .unwrap_or_else(|| cwd.to_path_buf())
}

/// Reads the files. Never fails: what is wrong is in [`Config::problems`].
pub fn load(places: &Places) -> Config {
    let mut problems = Vec::new();
    let mut layers = Vec::new();
    let mut strict = false;
    for (origin, path) in places.files() {
        match store::read(origin, &path, places.state.as_deref()) {
            store::Read::Absent => {}
            store::Read::Good(layer) => layers.push((origin, path, *layer)),
            store::Read::Bad { why, last } => {
                let file = path.to_string_lossy().into_owned();
                let instead = match (&last, origin) {
                    (Some(_), _) => "the version that was last read without fault stays in force",
                    (None, Origin::Project) => "no part of it counts, and every question is a denial",
                    (None, _) => "the built-in policy stands, and every question is a denial",
                };
                problems.push(Problem { file, what: format!("{why}; {instead}") });
                match last {
                    Some(layer) => layers.push((origin, path, *layer)),
                    None => strict = true,
                }
            }
        }
    }
    if layers.is_empty() && !strict {
        return Config::default();
    }
    merge(&layers, places, strict, problems)
}

#[cfg(test)]
mod tests;
