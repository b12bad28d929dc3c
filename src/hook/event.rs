//! The client's events, read leniently.
//!
//! Only what a decision needs is taken out; unknown events, fields and enum values are kept as text and never end the
//! reading. What cannot be read at all is an error, and the caller denies.

use serde_json::{Map, Value};

/// Longest event read, in bytes. The client was seen to send up to a few megabytes (a file's content).
pub const MAX: usize = 32 << 20;

/// Every event that client 2.1.332 names (it prints the list when managed settings hold an unknown one).
pub const ALL: &[&str] = &[
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Notification",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "PreModelSwitch",
    "PostModelSwitch",
    "PermissionRequest",
    "PermissionDenied",
    "Setup",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "Elicitation",
    "ElicitationResult",
    "ConfigChange",
    "WorktreeCreate",
    "WorktreeRemove",
    "InstructionsLoaded",
    "CwdChanged",
    "FileChanged",
    "DirectoryAdded",
    "MessageDisplay",
    "PreSkillShellCommand",
];

/// One event.
#[derive(Debug, Clone)]
pub struct Event {
    fields: Map<String, Value>,
}

/// Why an event could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing on stdin.
    #[error("the hook got no event on standard input")]
    Empty,
    /// More than [`MAX`] bytes.
    #[error("the event is longer than {MAX} bytes")]
    TooLong,
    /// Not one JSON document, or nested deeper than 128.
    #[error("the event is not one JSON document (line {line}, column {column})")]
    NotJson {
        /// Line of the fault, from 1.
        line: usize,
        /// Column of the fault, from 1.
        column: usize,
    },
    /// JSON, but no object.
    #[error("the event is not a JSON object")]
    NotObject,
    /// Neither an event's name nor a tool in it.
    #[error("the event has no hook_event_name")]
    NoName,
}

impl Event {
    /// Reads one event; linear in its length, at most 128 levels deep.
    pub fn parse(bytes: &[u8]) -> Result<Event, Error> {
        if bytes.len() > MAX {
            return Err(Error::TooLong);
        }
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(Error::Empty);
        }
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|e| Error::NotJson { line: e.line(), column: e.column() })?;
        let Value::Object(fields) = value else { return Err(Error::NotObject) };
        let event = Event { fields };
        if event.name().is_empty() { Err(Error::NoName) } else { Ok(event) }
    }

    /// The event's name. An event with a tool and its input but no name is taken for `PreToolUse`, the strictest.
    pub fn name(&self) -> &str {
        match self.text("hook_event_name") {
            Some(name) => ALL.iter().find(|n| n.eq_ignore_ascii_case(name)).copied().unwrap_or(name),
            None if self.fields.contains_key("tool_name") => "PreToolUse",
            None => "",
        }
    }

    /// A field that is a text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.fields.get(key).and_then(Value::as_str)
    }

    /// Any field.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.fields.get(key)
    }

    /// The tool's name; empty when there is none.
    pub fn tool(&self) -> &str {
        self.text("tool_name").unwrap_or_default()
    }

    /// The tool's input; `null` when there is none.
    pub fn input(&self) -> &Value {
        self.fields.get("tool_input").unwrap_or(&Value::Null)
    }

    /// Whether the event names its session as the client does: 1 to 128 letters, digits, `-` and `_`.
    pub fn names_session(&self) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        self.text("session_id").is_some_and(|s| !s.is_empty() && s.len() <= 128 && s.chars().all(plain))
    }

    /// The session in small letters, cut to 128 characters that are safe in a file name.
    pub fn session(&self) -> String {
        id(self.text("session_id").unwrap_or("unknown"))
    }
}

/// A session's id in small letters, cut to 128 characters that are safe in a file name.
pub(super) fn id(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '_' };
    text.chars().take(128).map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_and_values_are_kept_and_harmless() {
        let e = Event::parse(
            br#"{"hook_event_name":"PreToolUse","permission_mode":"future","x":{"y":[1]},"tool_name":"T"}"#,
        )
        .unwrap();
        assert_eq!((e.name(), e.tool()), ("PreToolUse", "T"));
    }

    #[test]
    fn a_name_in_another_case_is_the_same_event() {
        assert_eq!(Event::parse(br#"{"hook_event_name":"pretooluse"}"#).unwrap().name(), "PreToolUse");
    }

    #[test]
    fn what_is_not_one_object_is_an_error() {
        for bad in
            [&b""[..], b" \n", b"[]", b"{}", b"{\"hook_event_name\":\"Stop\"} {}", b"{\"a\":\xff}", b"nul"]
        {
            assert!(Event::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Event::parse("[".repeat(300_000).as_bytes()).is_err());
    }
}
