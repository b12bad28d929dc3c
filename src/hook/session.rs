//! Labels of the session and the record of what was decided: the Rule of Two while the session runs.
//!
//! A rises when content from outside came in, B when sensitive material was used, C when something could leave. The
//! call that would bring the third leg is asked about, with the evidence; see [`crate::policy::rule_of_two`].

use super::{Session, seal};
use crate::audit::state::{self, Label};
use crate::audit::{Error, Log, Record};
use crate::policy::{Decision, Verdict};

/// The rule that holds a session for a person.
const NEEDS_HUMAN: &str = "session.needs_human";
/// The rule for decisions that cannot be put on record.
const UNRECORDED: &str = "audit.unrecorded";

impl Session<'_> {
    /// What the labels say to a call that reaches out of the machine.
    pub(super) fn triangle(&self) -> Decision {
        let Some(dir) = self.env.state() else { return Decision::SILENT };
        if let Err(why) = Log::open(&dir) {
            return Decision::ask(
                "rule_of_two.unknown",
                format!("What this session has seen cannot be kept: {why}."),
            );
        }
        let labels = state::labels(&dir, &self.event.session());
        let evidence = |leg: char| labels.iter().rev().find(|l| l.leg == leg).map(|l| l.evidence.clone());
        match (evidence('A'), evidence('B')) {
            (Some(a), Some(b)) => Decision::ask(
                "rule_of_two.third",
                format!(
                    "This session has read untrusted content ({a}) and used sensitive material ({b}); this call could carry \
                     it out. A person has to agree, or start a new session for it."
                ),
            ),
            _ => Decision::SILENT,
        }
    }

    /// Labels that a finished call raises, on disk when this returns.
    pub(super) fn raise_after(&self) -> Result<(), Error> {
        let Some(dir) = self.env.state() else { return Ok(()) };
        let tool = self.event.tool();
        let mut legs: Vec<(char, String)> = Vec::new();
        if let Some(origin) = self.outside() {
            legs.push(('A', format!("{tool} {origin}")));
        }
        let may_matter =
            matches!(tool, "Bash" | "Monitor" | "WebFetch" | "WebSearch" | "Read" | "Edit" | "Grep")
                || tool.starts_with("mcp__");
        if may_matter {
            let seen = crate::policy::look(tool, self.event.input(), &self.scope, self.env.world());
            // The call ran, so a person agreed to it.
            if seen.decision.rule.starts_with("secret.") {
                legs.push(('B', format!("{tool}: {}", seen.decision.reason)));
            }
            if seen.reaches {
                legs.push(('C', tool.to_owned()));
                if tool == "Bash" {
                    legs.push(('A', "Bash that talks to another machine".to_owned()));
                }
            }
        }
        if legs.is_empty() {
            return Ok(());
        }
        // Without a usable directory every later call that reaches out is asked about.
        if Log::open(&dir).is_err() {
            return Ok(());
        }
        for (leg, evidence) in legs {
            state::raise(&dir, &self.event.session(), &Label { leg, time: self.env.now(), evidence })?;
        }
        Ok(())
    }

    /// Puts a decision on record. Where that cannot be done the configured verdict counts, unless this one is stricter,
    /// and the person is told.
    pub(super) fn record(&self, seen: Decision) -> (Decision, Option<String>) {
        let verdict = match seen.verdict {
            Verdict::Deny => "deny",
            Verdict::Ask => "ask",
            Verdict::None => "none",
        };
        let mut kept = self.append(verdict, seen.rule, &seen.reason);
        if seen.verdict == Verdict::Deny && seen.rule != NEEDS_HUMAN {
            kept = kept.and(self.count('d'));
        }
        let Err(why) = kept else { return (seen, None) };
        let instead = Decision {
            verdict: self.config.unrecorded,
            rule: UNRECORDED,
            reason: format!(
                "What jess decides cannot be put on record: {why}. `audit.on_failure` says what then counts."
            ),
        };
        (self.for_whom(seen.or(instead)), Some(told(&why)))
    }

    /// As [`Self::record`] for what is stopped anyway.
    pub(super) fn record_stop(&self, why: &str) -> Option<String> {
        self.append("deny", "result.unsealed", why).and(self.count('f')).err().map(|why| told(&why))
    }

    /// Counts a denial or a result with findings towards the session's limits.
    fn count(&self, what: char) -> Result<(), Error> {
        match self.env.state() {
            Some(dir) => state::count(&dir, &self.event.session(), what),
            None => Ok(()),
        }
    }

    /// The verdict on every call of a session that has met too many denials or findings: a person has to look at it.
    pub(super) fn needs_human(&self) -> Option<Decision> {
        let dir = self.env.state()?;
        let (denials, findings) = state::counts(&dir, &self.event.session());
        let over = |n: usize, most: Option<u32>| most.is_some_and(|m| n >= m as usize);
        if !over(denials, self.config.denials_max) && !over(findings, self.config.findings_max) {
            return None;
        }
        let reason = format!(
            "This session needs a person: it met {denials} denials and {findings} results with findings. After a look at \
             `jess log --session {id}`, the person lifts this with `jess session clear {id} --reason TEXT`.",
            id = self.event.session()
        );
        Some(if self.attended {
            Decision::ask(NEEDS_HUMAN, reason)
        } else {
            Decision::deny(NEEDS_HUMAN, reason)
        })
    }

    pub(super) fn record_sealed(&self, seen: &seal::Seen) -> Option<String> {
        let reason = format!(
            "{} bytes, {} secrets taken out, {} withheld, rules: {}",
            seen.bytes,
            seen.secrets,
            seen.withheld,
            seen.rules.join(" ")
        );
        let mut kept = self.append("sealed", "", &reason);
        if !seen.rules.is_empty() {
            kept = kept.and(self.count('f'));
        }
        kept.err().map(|why| told(&why))
    }

    fn append(&self, verdict: &str, rule: &str, reason: &str) -> Result<(), Error> {
        let Some(dir) = self.env.state() else { return Ok(()) };
        let text = |key: &str| self.event.text(key).unwrap_or_default().chars().take(128).collect::<String>();
        let record = Record {
            time: self.env.now(),
            session_id: self.event.session(),
            tool_use_id: text("tool_use_id"),
            event: self.event.name().chars().take(64).collect(),
            tool: text("tool_name"),
            verdict: verdict.to_owned(),
            rule: rule.to_owned(),
            reason: reason.to_owned(),
        };
        Log::open(&dir).and_then(|log| log.append(&record))
    }
}

/// What the person is told of a record that is missing.
fn told(why: &Error) -> String {
    crate::sanitise::escape(&format!("jess: a decision is not on record: {why}"), false)
}
