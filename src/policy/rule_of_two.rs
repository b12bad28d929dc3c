//! The Rule of Two: untrusted input, sensitive access and external effect never meet without a person.
//!
//! A run (or a session, or an agent definition) has up to three *legs*:
//!
//! | leg | means | raised by |
//! |---|---|---|
//! | A | untrusted input | reading a target, the web, an MCP server |
//! | B | sensitive access | a shell, an MCP server, anything not named here |
//! | C | external effect | the web, an MCP server, a message, anything not named here |
//!
//! Two legs are fine. All three need a person who can say no, and that person must be *provable*: a terminal that
//! somebody used lately. Environment variables can only take the proof away, because a repository's settings can set
//! variables for every process the client starts.

mod terminal;

pub use terminal::{attended, signs};

use std::fmt;
use thiserror::Error;

/// Which of the three legs a run stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Legs {
    /// A: it reads what an outsider may have written.
    pub a: bool,
    /// B: it can reach something worth stealing or breaking.
    pub b: bool,
    /// C: it can change or reach something outside the run.
    pub c: bool,
}

impl Legs {
    /// Every leg: what an unknown tool counts as.
    pub const ALL: Legs = Legs { a: true, b: true, c: true };

    /// The legs of both.
    #[must_use]
    pub const fn union(self, other: Legs) -> Legs {
        Legs { a: self.a || other.a, b: self.b || other.b, c: self.c || other.c }
    }

    /// True when all three are present.
    pub const fn complete(self) -> bool {
        self.a && self.b && self.c
    }

    /// How many are present, 0–3.
    pub const fn count(self) -> u8 {
        self.a as u8 + self.b as u8 + self.c as u8
    }
}

impl fmt::Display for Legs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            (self.a, "A (untrusted input)"),
            (self.b, "B (sensitive access)"),
            (self.c, "C (external effect)"),
        ];
        let mut first = true;
        for (_, name) in named.iter().filter(|(present, _)| *present) {
            if !first {
                f.write_str(" + ")?;
            }
            f.write_str(name)?;
            first = false;
        }
        if first { f.write_str("none") } else { Ok(()) }
    }
}

/// Whether somebody is there who can refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attended {
    /// A person's terminal is in use.
    Yes,
    /// Nobody is there, or nobody can be proved to be.
    No,
}

/// A run that stands on all three legs with nobody there.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "Rule of Two: this run has {legs} and nobody is there to refuse a step. \
     Either take a leg away (fewer tools, no --net) or start it from a terminal that a person is using"
)]
pub struct Refusal {
    /// The legs of the run.
    pub legs: Legs,
}

/// Whether a run on `legs` may start.
///
/// # Errors
/// [`Refusal`] when all three legs are present and nobody is provably there.
pub fn judge(legs: Legs, attended: Attended) -> Result<(), Refusal> {
    if legs.complete() && attended == Attended::No { Err(Refusal { legs }) } else { Ok(()) }
}

/// The legs of a set of client tools, each in the client's permission-rule spelling (`Read`, `Bash(git log:*)`,
/// `mcp__server__tool`, `*`).
///
/// An unknown name counts as all three. The empty set has none: the caller adds A for a run over a target.
pub fn legs_of_tools(tools: &[&str]) -> Legs {
    tools.iter().map(|tool| legs_of_tool(tool)).fold(Legs::default(), Legs::union)
}

fn legs_of_tool(tool: &str) -> Legs {
    let name = tool.split('(').next().unwrap_or(tool).trim();
    match name {
        "" => Legs::default(),
        "Read" | "Grep" | "Glob" | "LS" | "NotebookRead" | "LSP" => Legs { a: true, ..Legs::default() },
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" | "TodoWrite" | "TaskCreate" | "TaskUpdate"
        | "TaskGet" | "TaskList" | "TaskStop" | "TaskOutput" | "BashOutput" | "KillBash" | "KillShell"
        | "AskUserQuestion" | "EnterPlanMode" | "ExitPlanMode" | "ToolSearch" | "StructuredOutput" => {
            Legs::default()
        }
        "WebFetch" | "WebSearch" => Legs { a: true, b: false, c: true },
        "Bash" | "PowerShell" | "Monitor" => Legs { a: true, b: true, c: false },
        _ => Legs::ALL,
    }
}

/// What [`attended`] looks at, so that it can be judged without a terminal.
#[derive(Debug, Clone, Default)]
pub struct Signs {
    /// The name of a CI marker that is set, or of a client variable that says nobody is there.
    pub says_unattended: Option<String>,
    /// Standard input is a terminal.
    pub stdin_is_terminal: bool,
    /// A process from this one up its parents has a controlling terminal that was used within [`TERMINAL_MAX_AGE_S`].
    pub terminal_in_use: bool,
}

impl Signs {
    /// The verdict over these signs: a terminal in use, and nothing that says that nobody is there.
    pub fn verdict(&self) -> Attended {
        let terminal = self.stdin_is_terminal || self.terminal_in_use;
        if terminal && self.says_unattended.is_none() { Attended::Yes } else { Attended::No }
    }
}

/// A terminal nobody touched for this long (24 h, in seconds) proves no person.
pub const TERMINAL_MAX_AGE_S: u64 = 86_400;

/// Variables that CI systems set. Any of them, with a value that is not false, means that nobody is there.
pub const CI_MARKERS: &[&str] = &[
    "JESS_CI",
    "RAPTOR_CI",
    "CI",
    "CONTINUOUS_INTEGRATION",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "CIRCLECI",
    "TRAVIS",
    "JENKINS_URL",
    "JENKINS_HOME",
    "TEAMCITY_VERSION",
    "TF_BUILD",
    "BUILDKITE",
    "DRONE",
    "BAMBOO_BUILDKEY",
    "CODEBUILD_BUILD_ID",
    "CIRRUS_CI",
    "WOODPECKER",
    "APPVEYOR",
    "BITBUCKET_BUILD_NUMBER",
    "SEMAPHORE",
];

/// The name of the first variable of `lookup` that says that nobody is there.
///
/// `CLAUDE_CODE_SESSION_ATTENDED` is set by the client to `1` or `0`; only `0` means something here, because a
/// repository's settings can set it to `1`.
pub fn says_unattended(lookup: impl Fn(&str) -> Option<String>) -> Option<String> {
    let falsy = |v: &str| matches!(v.trim().to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off");
    let truthy = |name: &&str| lookup(name).is_some_and(|v| !falsy(&v));
    if let Some(name) = CI_MARKERS.iter().chain(&["RAPTOR_NONINTERACTIVE"]).find(|n| truthy(n)) {
        return Some((*name).to_string());
    }
    let attended = "CLAUDE_CODE_SESSION_ATTENDED";
    lookup(attended).filter(|v| falsy(v)).map(|_| attended.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
        move |name| pairs.iter().find(|(k, _)| *k == name).map(|(_, v)| v.to_string())
    }

    #[test]
    fn all_three_legs_need_a_person() {
        let refusal = judge(Legs::ALL, Attended::No).unwrap_err().to_string();
        for part in
            ["A (untrusted input)", "B (sensitive access)", "C (external effect)", "terminal", "--net"]
        {
            assert!(refusal.contains(part), "{part} missing in: {refusal}");
        }
        assert!(judge(Legs::ALL, Attended::Yes).is_ok());
    }

    #[test]
    fn any_two_legs_pass_unattended() {
        for legs in
            [Legs { a: false, ..Legs::ALL }, Legs { b: false, ..Legs::ALL }, Legs { c: false, ..Legs::ALL }]
        {
            assert!(judge(legs, Attended::No).is_ok(), "{legs}");
        }
    }

    #[test]
    fn tools_raise_their_legs() {
        assert_eq!(legs_of_tools(&["Read", "Grep"]), Legs { a: true, b: false, c: false });
        assert_eq!(legs_of_tools(&["Write", "Edit"]), Legs::default());
        assert_eq!(legs_of_tools(&["Read", "Bash(git log:*)"]), Legs { a: true, b: true, c: false });
        assert_eq!(legs_of_tools(&["WebFetch(domain:example.org)"]), Legs { a: true, b: false, c: true });
        assert_eq!(legs_of_tools(&["Bash", "WebFetch"]), Legs::ALL);
        assert_eq!(legs_of_tools(&["mcp__x__y"]), Legs::ALL);
        assert_eq!(legs_of_tools(&["*"]), Legs::ALL);
        assert_eq!(legs_of_tools(&["SomethingNew"]), Legs::ALL);
    }

    #[test]
    fn a_ci_marker_beats_a_terminal() {
        let signs = Signs {
            says_unattended: says_unattended(env(&[("GITHUB_ACTIONS", "true")])),
            stdin_is_terminal: true,
            terminal_in_use: true,
        };
        assert_eq!(signs.verdict(), Attended::No);
    }

    #[test]
    fn a_false_ci_marker_is_no_marker() {
        for value in ["", "0", "false", "No", "OFF"] {
            let lookup = |name: &str| (name == "CI").then(|| value.to_string());
            assert_eq!(says_unattended(lookup), None, "CI={value}");
        }
    }

    #[test]
    fn no_variable_makes_a_run_attended() {
        let signs = Signs {
            says_unattended: says_unattended(env(&[("CLAUDE_CODE_SESSION_ATTENDED", "1"), ("CI", "0")])),
            ..Signs::default()
        };
        assert_eq!(signs.verdict(), Attended::No);
    }

    #[test]
    fn the_client_saying_unattended_counts() {
        assert!(says_unattended(env(&[("CLAUDE_CODE_SESSION_ATTENDED", "0")])).is_some());
    }

    #[test]
    fn a_terminal_in_use_proves_a_person() {
        let signs = Signs { terminal_in_use: true, ..Signs::default() };
        assert_eq!(signs.verdict(), Attended::Yes);
    }
}
