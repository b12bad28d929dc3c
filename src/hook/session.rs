//! Labels of the session and the record of what was decided: the Rule of Two while the session runs.
//!
//! A rises when content from outside came in, B when sensitive material was used, C when something could leave. The
//! call that would bring the third leg is asked about, with the evidence; see [`crate::policy::rule_of_two`].

use super::{Session, event, seal};
use crate::audit::state::{self, Label};
use crate::audit::{Error, Log, Record, arrived};
use crate::policy::{Decision, Verdict};
use std::path::{Path, PathBuf};

/// The rule that holds a session for a person.
const NEEDS_HUMAN: &str = "session.needs_human";
/// The rule for decisions that cannot be put on record.
const UNRECORDED: &str = "audit.unrecorded";
/// Most sessions that one continues.
const ANCESTORS_MAX: usize = 16;

impl Session<'_> {
    /// What the labels say to a call that reaches out of the machine.
    pub(super) fn triangle(&self, account: Option<&str>) -> Decision {
        if !self.event.names_session() {
            return Decision::ask(
                "rule_of_two.unknown",
                "The call names no session, so what it has seen is not known.",
            );
        }
        let kept = self.state_dir().and_then(|dir| Log::open(&dir).map(|_| dir));
        let dir = match kept {
            Ok(dir) => dir,
            Err(why) => {
                return Decision::ask(
                    "rule_of_two.unknown",
                    format!("What this session has seen cannot be kept: {why}."),
                );
            }
        };
        let labels = match self.inherit().and_then(|()| state::labels(&dir, &self.event.session())) {
            Ok(labels) => labels,
            Err(why) => {
                return Decision::ask(
                    "rule_of_two.unknown",
                    format!("What this session has seen is not known: {why}."),
                );
            }
        };
        let evidence = |leg: char| labels.iter().rev().find(|l| l.leg == leg).map(|l| l.evidence.clone());
        let used = account.map(|what| format!("this call uses {what}"));
        match (evidence('A'), evidence('B').or(used)) {
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

    /// Where state is kept.
    fn state_dir(&self) -> Result<PathBuf, Error> {
        self.env.state().ok_or(Error::Nowhere)
    }

    /// Takes over the labels and counts of the sessions whose conversation this one continues. Each is taken once: what a
    /// person cleared since stays cleared.
    pub(super) fn inherit(&self) -> Result<(), Error> {
        let dir = self.state_dir()?;
        let own = self.event.session();
        self.ancestors().iter().try_for_each(|before| state::inherit(&dir, before, &own))
    }

    /// The sessions that a resumed or forked one continues, as far as its transcript tells: by its file's name, and by the
    /// sessions that its first lines name. At most [`ANCESTORS_MAX`].
    fn ancestors(&self) -> Vec<String> {
        let path = Path::new(self.event.text("transcript_path").unwrap_or_default());
        if path.extension().is_none_or(|e| e != "jsonl") {
            return Vec::new();
        }
        let named = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        let text = self.env.world().read(path).unwrap_or_default();
        // Inside a text of the conversation the quotes are escaped, so this is a key.
        let inside = text
            .split("\"sessionId\":")
            .skip(1)
            .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
        let own = self.event.session();
        let mut out: Vec<String> = Vec::new();
        for id in named.as_deref().into_iter().chain(inside).map(event::id) {
            if out.len() >= ANCESTORS_MAX {
                break;
            }
            if !id.is_empty() && id != own && !out.contains(&id) {
                out.push(id);
            }
        }
        out
    }

    /// Labels that a call raises, whether it succeeded or failed, on disk when this returns.
    pub(super) fn raise_after(&self) -> Result<(), Error> {
        let Some(dir) = self.env.state() else { return Ok(()) };
        let tool = self.event.tool();
        let mut legs: Vec<(char, String)> = Vec::new();
        let seen = crate::policy::look(tool, self.event.input(), &self.scope, self.env.world());
        let command = matches!(tool, "Bash" | "Monitor" | "PowerShell");
        match self.outside() {
            // A server of this machine's own is sealed, and is no other machine.
            Some(_) if command && seen.reads_arrived && !seen.reaches => {
                legs.push(('A', format!("{tool} that reads what came from another machine")));
            }
            Some(_) if command && !self.dispatched() && !seen.reaches => {}
            Some(_) if command => legs.push(('A', format!("{tool} that talks to another machine"))),
            Some(origin) => legs.push(('A', format!("{tool} {origin}"))),
            None if seen.reaches && !command => legs.push(('A', tool.to_owned())),
            None => {}
        }
        // The call ran, so a person agreed to it.
        if seen.decision.rule.starts_with("secret.") {
            legs.push(('B', format!("{tool}: {}", seen.decision.reason)));
        }
        if let Some(what) = seen.account {
            legs.push(('B', format!("{tool} with {what}")));
        }
        if seen.reaches {
            legs.push(('C', tool.to_owned()));
        }
        if legs.is_empty() && seen.brought.is_empty() {
            return Ok(());
        }
        // Without a usable directory every later call that reaches out is asked about.
        if Log::open(&dir).is_err() {
            return Ok(());
        }
        for (leg, evidence) in legs {
            state::raise(&dir, &self.event.session(), &Label { leg, time: self.env.now(), evidence })?;
        }
        // What is not kept would be read as the session's own.
        arrived::add(&dir, &self.event.session(), &seen.brought)
    }

    /// Puts a decision on record. Where that cannot be done the configured verdict counts, unless this one is stricter,
    /// and the person is told.
    ///
    /// A denial counts towards the session's limit. A question does not: the person who is asked sees it, and with nobody
    /// there it is a denial and counts as one.
    pub(super) fn record(&self, seen: Decision) -> (Decision, Option<String>) {
        let verdict = match seen.verdict {
            Verdict::Deny => "deny",
            Verdict::Ask => "ask",
            Verdict::None => "none",
        };
        let mut kept = self.append(verdict, seen.rule, &seen.reason);
        if seen.verdict == Verdict::Deny && seen.rule != NEEDS_HUMAN {
            kept = kept.and_then(|()| self.count('d'));
        }
        // A count that cannot be read holds nobody back, and is as good as none.
        let Err(why) = kept.and(self.counted()) else { return (seen, None) };
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
        self.append("deny", "result.unsealed", why).and_then(|()| self.count('f')).err().map(|why| told(&why))
    }

    /// Counts a denial or a result with findings towards the session's limits.
    fn count(&self, what: char) -> Result<(), Error> {
        state::count(&self.state_dir()?, &self.event.session(), what)
    }

    /// How many denials and results with findings the session met.
    fn counted(&self) -> Result<(usize, usize), Error> {
        state::counts(&self.state_dir()?, &self.event.session())
    }

    /// The verdict on every call of a session that has met too many denials or findings: a person has to look at it.
    pub(super) fn needs_human(&self) -> Option<Decision> {
        // What cannot be read is the concern of `record`.
        let (denials, findings) = self.counted().ok()?;
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
            kept = kept.and_then(|()| self.count('f'));
        }
        kept.err().map(|why| told(&why))
    }

    /// The start of what the call is about, without secrets.
    fn target(&self) -> String {
        let input = self.event.input();
        let text = TARGETS.iter().find_map(|key| input.get(*key).and_then(serde_json::Value::as_str));
        let start: String = text.unwrap_or_default().chars().take(TARGET_READ).collect();
        crate::gate::secrets::redact(&start).chars().take(TARGET_MAX).collect()
    }

    fn append(&self, verdict: &str, rule: &str, reason: &str) -> Result<(), Error> {
        let dir = self.state_dir()?;
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
            target: if matches!(verdict, "deny" | "ask") { self.target() } else { String::new() },
        };
        Log::open(&dir).and_then(|log| log.append(&record))
    }
}

/// What a call is about, for the record: the first of these of its input.
const TARGETS: &[&str] =
    &["command", "file_path", "notebook_path", "url", "path", "query", "pattern", "prompt"];
/// Most characters of it on record, and most that are read for secrets.
const TARGET_MAX: usize = 200;
const TARGET_READ: usize = 4096;

/// What the person is told of a record that is missing.
fn told(why: &Error) -> String {
    crate::sanitise::escape(&format!("jess: a decision is not on record: {why}"), false)
}
