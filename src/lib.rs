//! jess tethers a coding agent: it runs Claude Code, or any command, over material that attacks it, and brings back
//! only what was asked for.
//!
//! | module | concern |
//! |---|---|
//! | [`untrusted`] | `Untrusted<T>`: text from outside, as a type |
//! | [`exit`] | every exit code |
//! | [`cli`] | one file per subcommand: arguments and printing |
//! | [`config`] | the operator's configuration; a project's, which may only tighten |
//! | [`trust`] | what a repository may not bring along |
//! | [`scan`] | text → findings |
//! | [`severity`] | how grave a finding is |
//! | [`envelope`] | untrusted text towards a model |
//! | [`gate`] | what may leave |
//! | [`policy`] | may this tool call happen |
//! | [`hook`] | the Claude Code hook protocol |
//! | [`install`] | the hook in a client's settings, and the proof that it blocks |
//! | [`daemon`] | the hook protocol's answers from a warm process |
//! | [`sandbox`] | Spec → Plan → spawn |
//! | [`egress`] | the only way out, and the model gateway |
//! | [`audit`] | decisions on record, sessions and their labels |
//! | [`dispatch`] | the pipeline that joins them all |
//! | [`doctor`] | what this machine can enforce |
//! | [`rpc`] | the same functions for hosts in other languages |
//! | [`sanitise`] | untrusted text towards a terminal, a log or a file name |

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_macros))]

pub mod audit;
mod bits;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod dispatch;
pub mod doctor;
pub mod egress;
pub mod envelope;
pub mod exit;
pub mod gate;
pub mod hook;
pub mod install;
pub mod policy;
pub mod rpc;
pub mod sandbox;
pub mod sanitise;
pub mod scan;
pub mod severity;
pub mod trust;
pub mod untrusted;
