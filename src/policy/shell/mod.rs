//! Commands: a bash program is parsed, its words are evaluated, every simple command in it is judged.
//!
//! | file | concern |
//! |---|---|
//! | [`limits`] | every bound |
//! | [`parse`] | text → syntax tree |
//! | `value`, `word` | words → values with holes and origins |
//! | `eval`, `simple` | control flow and state; simple commands |
//! | `expand`, `io` | parameters; redirections and files |
//! | `run`, `scripts`, `builtins`, `filters` | which program runs, wrappers, shells, interpreters, builtins |
//! | `carry`, `find`, `remote`, `packages` | programs that run a command in a form of their own |
//! | `rules`, `files`, `search`, `admin`, `data` | what single programs may do |
//! | `git`, `git_config`, `net`, `fetch`, `upload` | git; programs that talk to another machine |
//! | `code`, `literals` | programs in other languages on the command line |

mod admin;
mod builtins;
mod carry;
mod code;
mod data;
mod eval;
mod expand;
mod fetch;
mod files;
mod filters;
mod find;
mod git;
mod git_config;
mod io;
pub mod limits;
mod literals;
mod net;
mod options;
mod packages;
pub mod parse;
mod remote;
mod rules;
mod run;
mod scripts;
mod search;
mod simple;
mod upload;
mod value;
mod word;

use super::{Decision, Scope, World};
use value::{Taint, Val};

pub use data::destructive_sql;
pub use search::seeks_secrets;
pub use value::glob_matches;

/// What may be said about running `command` with bash. Time and memory are bounded by [`limits`].
pub fn judge(command: &str, scope: &Scope, world: &dyn World) -> Decision {
    judge_reaching(command, scope, world).0
}

/// [`judge`], and whether the command talks to another machine.
pub fn judge_reaching(command: &str, scope: &Scope, world: &dyn World) -> (Decision, bool) {
    if command.len() > limits::PROGRAM {
        let denied = Decision::deny(
            "shell.bound",
            format!(
                "The command is longer than {} bytes. Write the data to a file with the Write tool.",
                limits::PROGRAM
            ),
        );
        return (denied, true);
    }
    let mut machine = eval::Machine::new(scope, world);
    let plain = command.replace("\r\n", "\n");
    let out = machine.program(&plain, &Val::default());
    if out.taint.any(Taint::ENV) {
        machine.ask("secret.env", "The command prints variables of the environment that hold credentials. Name the one harmless variable you need.");
    }
    (machine.found, machine.reaches)
}
