//! Commands: a bash program is parsed, its words are evaluated, every simple command in it is judged.
//!
//! | file | concern |
//! |---|---|
//! | [`limits`] | every bound |
//! | [`parse`] | text → syntax tree |
//! | `value`, `word` | words → values with holes and origins |
//! | `eval`, `simple` | control flow and state; simple commands |
//! | `environ`, `given` | the environment and directory that a command sets up for another; its parameters |
//! | `expand`, `io` | parameters; redirections and files |
//! | `run`, `scripts`, `builtins`, `filters` | which program runs, wrappers, shells, interpreters, builtins |
//! | `carry`, `find`, `remote`, `packages` | programs that run a command in a form of their own |
//! | `rules`, `files`, `search`, `admin`, `data` | what single programs may do |
//! | `unlisted`, `touches`, `git_writes` | programs without a rule: what they may read, run and write; what git writes |
//! | `agents`, `printers`, `origins`, `outlets` | other agents; stored credentials; where code comes from; where data goes |
//! | `editors` | editors and pagers with commands of their own; patches |
//! | `latent` | text in quotes that is evaluated all the same |
//! | `git`, `git_config`, `git_names`, `git_push`, `net`, `fetch`, `upload` | git; programs that talk to another machine |
//! | `registries`, `issuers` | where packages come from; tokens that go to who issued them |
//! | `arrive` | files from another machine that later calls read |
//! | `reach`, `tells` | which programs talk to another machine and with whose account; which print what others wrote |
//! | `seats` | ways round the guard's and the client's names; other terminals and process trees |
//! | `code`, `language`, `literals` | programs in other languages on the command line |

mod admin;
mod agents;
mod arrive;
mod builtins;
mod carry;
mod code;
mod data;
mod editors;
mod environ;
mod eval;
mod expand;
mod fetch;
mod files;
mod filters;
mod find;
mod git;
mod git_config;
mod git_names;
mod git_push;
mod git_writes;
mod given;
mod io;
mod issuers;
mod language;
mod latent;
pub mod limits;
mod literals;
mod net;
mod options;
mod origins;
mod outlets;
mod packages;
pub mod parse;
mod printers;
mod reach;
mod registries;
mod remote;
mod rules;
mod run;
mod scripts;
mod search;
mod seats;
mod simple;
mod tells;
mod touches;
mod unlisted;
mod upload;
mod value;
mod word;

use super::{Decision, Scope, World};
use value::{Taint, Val};

pub use data::destructive_sql;
pub use expand::secret_variable;
pub use search::seeks_secrets;
pub use value::glob_matches;

/// What the policy knows of a command.
#[derive(Debug, Default)]
pub struct Seen {
    /// What is said about it.
    pub decision: Decision,
    /// Whether it talks to another machine.
    pub reaches: bool,
    /// Whether it prints what comes from another machine.
    pub prints_outside: bool,
    /// What the operator has an account at and the command uses it, e.g. `a database`.
    pub account: Option<&'static str>,
    /// Whether it reads what the session brought in from another machine before, or has just brought in.
    pub reads_arrived: bool,
    /// Files and directories that it brings in from another machine, absolute.
    pub brought: Vec<std::path::PathBuf>,
}

/// What may be said about running `command` with bash. Time and memory are bounded by [`limits`].
pub fn judge(command: &str, scope: &Scope, world: &dyn World) -> Decision {
    look(command, scope, world).decision
}

/// What may be said about lines that a build tool runs one after the other, as about a script of the project: its own
/// settings are its business, and what is not bash or not known is no finding.
pub fn recipe(lines: &[String], scope: &Scope, world: &dyn World) -> Decision {
    let mut machine = eval::Machine::new(scope, world);
    machine.lenient = true;
    for line in lines {
        let before = machine.found.clone();
        machine.subshell(|m| m.program(line, &Val::default()));
        if matches!(machine.found.rule, "shell.syntax" | "run.unknown") {
            machine.found = before;
        }
    }
    machine.found
}

/// [`judge`], and where the command reaches.
pub fn look(command: &str, scope: &Scope, world: &dyn World) -> Seen {
    if command.len() > limits::PROGRAM {
        let denied = Decision::deny(
            "shell.bound",
            format!(
                "The command is longer than {} bytes. Write the data to a file with the Write tool.",
                limits::PROGRAM
            ),
        );
        return Seen { decision: denied, reaches: true, prints_outside: true, ..Seen::default() };
    }
    let mut machine = eval::Machine::new(scope, world);
    let plain = command.replace("\r\n", "\n");
    let out = machine.program(&plain, &Val::default());
    if out.taint.any(Taint::ENV) {
        machine.ask("secret.env", "The command prints variables of the environment that hold credentials. Name the one harmless variable you need.");
    }
    let allowed = match &scope.custom.restricted {
        Some(restricted) => restricted.judge(command, scope, world),
        None => Decision::SILENT,
    };
    let brought = machine.all_brought();
    let printed = machine.told || out.taint.any(Taint::NET.with(Taint::ARRIVED));
    Seen {
        decision: allowed.or(machine.found),
        reaches: machine.reaches,
        prints_outside: printed || machine.met_arrived,
        account: machine.account,
        reads_arrived: machine.met_arrived,
        brought,
    }
}
