//! `PostToolBatch`: the last event before the results of a turn go to the model.
//!
//! A failed call's output cannot be replaced by any hook. Blocking the batch keeps it from the model, and ends the
//! session: that is done only for text that must not be obeyed and came in unsealed.

use super::{Answer, Session, block, detect, exec, seal};
use crate::audit::Log;
use crate::policy;
use serde_json::Value;

/// Calls of one batch that are looked at.
const CALLS_MAX: usize = 256;

impl Session<'_> {
    pub(super) fn batch(&self) -> Answer {
        let calls = self.event.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten().take(CALLS_MAX) {
            let text = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default();
            let (tool, response) = (text("tool_name"), text("tool_response"));
            if response.is_empty() || self.is_sealed(tool, call, response) || !self.brought_in(tool, call) {
                continue;
            }
            let findings = detect::look(seal::cut(response, seal::TEXT_MAX), self.config.withhold);
            if findings.withhold {
                let why = format!(
                    "jess: a call of {tool} brought in text that must not be obeyed and could not be sealed ({}). \
                     The session ends here; start a new one.",
                    findings.rules.join(", ")
                );
                let fault = self.record_stop(&why);
                return Answer::say(block(&crate::sanitise::escape(&why, false))).telling(fault);
            }
        }
        Answer::silent()
    }

    /// Whether jess has sealed this result: it ran under `jess hook exec`, as every command of a dispatched session does, or
    /// its sealing is on record. The text itself proves nothing, whoever wrote it can write a seal as well.
    fn is_sealed(&self, tool: &str, call: &Value, response: &str) -> bool {
        if !response.contains("<untrusted-") {
            return false;
        }
        let command = call.pointer("/tool_input/command").and_then(Value::as_str).unwrap_or_default();
        let wrapped = exec::unwrap(command, &self.env.jess()).is_some_and(|(_, how)| !how.plain);
        if tool == "Bash" && (self.dispatched() || wrapped) {
            return true;
        }
        let id = call.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
        self.env
            .state()
            .and_then(|dir| Log::open(&dir).ok())
            .is_some_and(|log| log.lately(&self.event.session(), id, "sealed"))
    }

    /// Whether a call of the batch brought in something from outside.
    fn brought_in(&self, tool: &str, call: &Value) -> bool {
        let input = call.get("tool_input").unwrap_or(&Value::Null);
        self.dispatched()
            || policy::look(tool, input, &self.scope, self.env.world()).prints_outside
            || self.origin(tool, input).is_some()
    }
}
