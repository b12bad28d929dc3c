//! What this machine can enforce, and how to get more: the checks of `jess doctor`.
//!
//! A group of checks is a module with a function `checks`; adding one to [`GROUPS`] is all that a new group needs.
//! Checks look and try, and change nothing. What was found by trying is kept in a file for the same boot of the
//! machine and the same program ([`cache`]).

mod cache;
mod cgroups;
mod container;
mod hooks;
mod kernel;
mod live;
mod namespaces;

pub use live::Live;

use serde::{Deserialize, Serialize};

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// All there.
    Ok,
    /// There, with something missing.
    Limited,
    /// Not there.
    Missing,
}

impl State {
    /// The word in the table.
    pub const fn word(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Missing => "missing",
        }
    }
}

/// One mechanism: what was found, what that means for a run, and what to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Check {
    /// The group it belongs to.
    pub group: String,
    /// Its name, stable within the group.
    pub name: String,
    /// How it stands.
    pub state: State,
    /// What was seen.
    pub found: String,
    /// What is therefore not guaranteed; empty if nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Check {
    /// A check that found `found` in order.
    pub fn ok(name: &str, found: impl Into<String>) -> Check {
        Check {
            group: String::new(),
            name: name.into(),
            state: State::Ok,
            found: found.into(),
            lost: Vec::new(),
            remedy: None,
        }
    }

    /// A check that did not find all.
    pub fn not(name: &str, state: State, found: impl Into<String>) -> Check {
        Check { state, ..Check::ok(name, found) }
    }

    /// With what is not guaranteed.
    pub fn losing<S: Into<String>>(mut self, lost: impl IntoIterator<Item = S>) -> Check {
        self.lost.extend(lost.into_iter().map(Into::into));
        self
    }

    /// With what to do.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Check {
        self.remedy = Some(remedy.into());
        self
    }
}

/// A group of checks.
struct Group {
    name: &'static str,
    checks: fn() -> Vec<Check>,
}

/// Every group, in the order of the table.
const GROUPS: &[Group] = &[
    Group { name: "kernel", checks: kernel::checks },
    Group { name: "namespaces", checks: namespaces::checks },
    Group { name: "cgroups", checks: cgroups::checks },
    Group { name: "container", checks: container::checks },
    Group { name: "hooks", checks: hooks::checks },
];

/// The outcome of all checks.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    /// The name and version of this document's form.
    pub schema: &'static str,
    /// The version of jess.
    pub version: &'static str,
    /// The tier that a run gets here; `none` if it would be refused.
    pub tier: String,
    /// A real run: what engaged, and whether forbidden things failed inside.
    pub live: Live,
    /// Every check.
    pub checks: Vec<Check>,
}

/// The name and version of the document's form.
pub const SCHEMA: &str = "jess.doctor/1";

/// Runs every check. `fresh`: tries again what was found by trying before.
pub fn diagnose(fresh: bool) -> Diagnosis {
    let live = if fresh { None } else { cache::load() };
    let live = live.unwrap_or_else(|| {
        let live = live::run();
        cache::store(&live);
        live
    });
    let checks = GROUPS
        .iter()
        .flat_map(|group| {
            (group.checks)().into_iter().map(|check| Check { group: group.name.into(), ..check })
        })
        .collect();
    Diagnosis { schema: SCHEMA, version: env!("CARGO_PKG_VERSION"), tier: live.tier.clone(), live, checks }
}

impl Diagnosis {
    /// Whether a run is isolated as well as jess can.
    pub fn is_full(&self) -> bool {
        self.tier == "full"
    }
}

/// A file of /proc or /sys, trimmed; `None` where it is not there.
fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The path of the running program, for profiles that name it.
fn own_program() -> std::path::PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "/usr/local/bin/jess".into())
}

/// An AppArmor profile that lets this program make user namespaces, and nothing else that it could not do before.
pub fn apparmor_profile() -> String {
    let program = own_program();
    format!(
        "abi <abi/4.0>,\ninclude <tunables/global>\n\nprofile jess \"{}\" flags=(unconfined) {{\n  userns,\n\n  \
         include if exists <local/jess>\n}}\n",
        program.to_string_lossy().replace(['"', '\n'], "?")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_that_is_not_ok_says_what_to_do_or_what_is_lost() {
        for group in GROUPS {
            for check in (group.checks)() {
                assert!(!check.name.is_empty() && !check.found.is_empty(), "{check:?}");
                if check.state != State::Ok {
                    assert!(check.remedy.is_some() || !check.lost.is_empty(), "{check:?}");
                }
            }
        }
    }

    #[test]
    fn the_apparmor_profile_names_this_program_and_grants_user_namespaces() {
        let profile = apparmor_profile();
        assert!(profile.contains(&*own_program().to_string_lossy()) && profile.contains("userns,"));
    }
}
