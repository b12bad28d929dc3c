//! Control groups: whether memory, processes and processor time of a whole run can be bounded.

use super::{Check, State};
use crate::sandbox::cgroup::{self, Place};

pub fn checks() -> Vec<Check> {
    let lost =
        "bounds on the memory, processes and processor time of a whole run; limits hold for each process";
    let remedy = "start jess with `systemd-run --user --scope -p Delegate=yes -- jess …`, or in a cgroup v2 that its user owns";
    vec![match cgroup::find() {
        Ok(Place { directory, controllers })
            if cgroup::WANTED.iter().all(|c| controllers.iter().any(|have| have == c)) =>
        {
            Check::ok(
                "delegation",
                format!("{} with {}", crate::sanitise::path(&directory), controllers.join(", ")),
            )
        }
        Ok(Place { directory, controllers }) => Check::not(
            "delegation",
            State::Limited,
            format!(
                "{} with {}",
                crate::sanitise::path(&directory),
                if controllers.is_empty() { "no controller".into() } else { controllers.join(", ") }
            ),
        )
        .losing([lost])
        .remedy(remedy),
        Err(why) => Check::not("delegation", State::Missing, why.to_string()).losing([lost]).remedy(remedy),
    }]
}
