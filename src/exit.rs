//! Every exit code, in one place.
//!
//! A command that ran a child exits with the child's own code; the codes here are jess's own, plus the
//! conventions of a shell for a child that could not run or was stopped.

use std::process::ExitCode;

/// What a jess command ends with.
///
/// `check` has its own meaning for 1 and 2 ([`Exit::FINDINGS`], [`Exit::MINOR_FINDINGS`]); errors never use them there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(u8);

impl Exit {
    /// Everything asked for was done.
    pub const OK: Exit = Exit(0);
    /// `check`: findings at or above `--fail-on`. `drill`: an attack got through.
    pub const FINDINGS: Exit = Exit(1);
    /// A gate refused (trust, Rule of Two, output); a hook blocked.
    pub const REFUSED: Exit = Exit(2);
    /// `check`: findings, all below `--fail-on`.
    pub const MINOR_FINDINGS: Exit = Exit(2);
    /// The isolation that was asked for could not engage; nothing was run.
    pub const ISOLATION: Exit = Exit(3);
    /// The run was ended because its budget is used up.
    pub const BUDGET: Exit = Exit(4);
    /// The command line is wrong (`EX_USAGE`).
    pub const USAGE: Exit = Exit(64);
    /// jess itself failed (`EX_SOFTWARE`).
    pub const INTERNAL: Exit = Exit(70);
    /// The run was stopped at its time limit.
    pub const TIMEOUT: Exit = Exit(124);
    /// The command was found and could not be executed.
    pub const CANNOT_EXECUTE: Exit = Exit(126);
    /// The command was not found.
    pub const NOT_FOUND: Exit = Exit(127);

    /// The child's own exit status.
    pub const fn child(code: u8) -> Exit {
        Exit(code)
    }

    /// A child killed by signal `signal` (1–64): 128 + N.
    pub const fn signal(signal: u8) -> Exit {
        Exit(128u8.saturating_add(signal))
    }

    /// The number a shell sees.
    pub const fn code(self) -> u8 {
        self.0
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.0)
    }
}
