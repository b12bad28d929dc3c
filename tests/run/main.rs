//! What a user of `jess run` relies on: paths, profiles, processes, limits, the report.
//!
//! For each thing that must not happen there is a control in the same test that shows it happening without the setting.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(missing_docs)]

mod denials;
mod doctor;
mod group;
mod guards;
mod many;
mod observe;
mod paths;
mod process;
mod profiles;
mod report;
mod support;
mod terminal;
