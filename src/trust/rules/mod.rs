//! The rules, one concern a file. Each takes a parsed document and adds to a [`Sink`].
//!
//! [`settings`] and [`environment`] are data tables; the others judge shapes.

pub mod codeql;
pub mod command;
pub mod environment;
pub mod hooks;
pub mod markdown;
pub mod mcp;
pub mod memory;
pub mod other;
pub mod plugin;
pub mod settings;
mod variables;

use super::mask;
use super::report::{Class, Finding};
use serde_json::Value;

/// Collects the findings of one file.
#[derive(Debug, Default)]
pub struct Sink {
    findings: Vec<Finding>,
    commands: Vec<String>,
}

/// Command lines of one file whose scripts are noted for an approval.
const MAX_COMMANDS: usize = 500;

impl Sink {
    /// Something that refuses the target. `label` and `value` are already safe to print.
    pub fn block(&mut self, class: Class, label: impl Into<String>, value: impl Into<String>) {
        self.push(class, label.into(), value.into(), true);
    }

    /// Something worth knowing.
    pub fn info(&mut self, class: Class, label: impl Into<String>, value: impl Into<String>) {
        self.push(class, label.into(), value.into(), false);
    }

    /// A document that could not be read or understood.
    pub fn unreadable(&mut self, reason: &str) {
        self.block(Class::Unreadable, "(malformed)", format!("treated as dangerous: {reason}"));
    }

    /// Notes every string of `value` as part of a command line, so that an approval covers the scripts it names.
    pub fn names_scripts(&mut self, value: &Value) {
        match value {
            Value::String(text) if self.commands.len() < MAX_COMMANDS => self.commands.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| self.names_scripts(item)),
            Value::Object(map) => map.values().for_each(|item| self.names_scripts(item)),
            _ => {}
        }
    }

    /// The command lines that were noted.
    pub(in crate::trust) fn take_commands(&mut self) -> Vec<String> {
        std::mem::take(&mut self.commands)
    }

    /// What was collected.
    pub fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    fn push(&mut self, class: Class, label: String, value: String, blocking: bool) {
        self.findings.push(Finding { label, value, blocking, approved: false, class });
    }
}

/// False for null, false, 0, "", [] and {}: a value that switches nothing on.
pub(crate) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(b) => *b,
        Value::Number(n) => n.as_f64() != Some(0.0),
        Value::String(s) => !s.is_empty(),
        Value::Array(a) => !a.is_empty(),
        Value::Object(o) => !o.is_empty(),
    }
}

/// The object inside, or a blocking finding when the document's root is something else.
pub(crate) fn root_object<'v>(
    sink: &mut Sink,
    value: &'v Value,
) -> Option<&'v serde_json::Map<String, Value>> {
    let object = value.as_object();
    if object.is_none() {
        sink.unreadable("the root is not an object");
    }
    object
}

/// A label of a key path, safe to print.
pub(crate) fn label(path: &str) -> String {
    mask::name(path)
}
