//! What a check found, and how it is shown.

use super::approve::{Approval, Change, Seen};
use super::mask;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Findings that are kept in a report. More are counted, and still block.
pub const MAX_FINDINGS: usize = 5_000;

/// Why a finding matters. Also the rule id in SARIF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Runs a command of the repository's choice.
    RunsCommand,
    /// A hook handler.
    Hook,
    /// Approves tool calls, or takes prompts away.
    WidensPermissions,
    /// Sets an environment variable that steers the client or its children.
    Environment,
    /// An MCP server.
    McpServer,
    /// Loads code: plugins, marketplaces, language servers.
    LoadsCode,
    /// Opens a network path, or sends data along one.
    OpensNetwork,
    /// Changes where the model's requests go.
    ModelEndpoint,
    /// Switches a guard off or weakens the client's sandbox.
    WeakensGuard,
    /// Reaches a file outside the repository.
    OutsidePath,
    /// A CodeQL pack or configuration that runs or fetches something.
    CodeQl,
    /// Could not be read or understood.
    Unreadable,
    /// A limit of the check was reached.
    LimitReached,
    /// Unknown key.
    UnknownKey,
    /// Configuration of another agent or editor.
    OtherAgent,
    /// Worth knowing.
    Note,
}

impl Class {
    /// The id, as in JSON and SARIF.
    pub const fn id(self) -> &'static str {
        match self {
            Class::RunsCommand => "runs-command",
            Class::Hook => "hook",
            Class::WidensPermissions => "widens-permissions",
            Class::Environment => "environment",
            Class::McpServer => "mcp-server",
            Class::LoadsCode => "loads-code",
            Class::OpensNetwork => "opens-network",
            Class::ModelEndpoint => "model-endpoint",
            Class::WeakensGuard => "weakens-guard",
            Class::OutsidePath => "outside-path",
            Class::CodeQl => "codeql",
            Class::Unreadable => "unreadable",
            Class::LimitReached => "limit-reached",
            Class::UnknownKey => "unknown-key",
            Class::OtherAgent => "other-agent",
            Class::Note => "note",
        }
    }

    /// One sentence on why it matters.
    pub const fn explain(self) -> &'static str {
        match self {
            Class::RunsCommand => "The client runs this command without asking.",
            Class::Hook => "The client runs this handler on an event, without asking.",
            Class::WidensPermissions => "Tool calls would run that otherwise need a person's approval.",
            Class::Environment => "This variable steers the client or the programs it starts.",
            Class::McpServer => "The client connects to this server; a stdio server is a command.",
            Class::LoadsCode => "The client would load code from a place the repository names.",
            Class::OpensNetwork => "Data could leave by a path the repository names.",
            Class::ModelEndpoint => "The conversation, and the key, would go to another place.",
            Class::WeakensGuard => "A guard of the client would be off or weaker.",
            Class::OutsidePath => "A file outside the repository would be read or written.",
            Class::CodeQl => "CodeQL would run or fetch something the repository names.",
            Class::Unreadable => "What cannot be read cannot be judged, so it is refused.",
            Class::LimitReached => {
                "The check stopped at a limit, so it cannot say that the rest is harmless."
            }
            Class::UnknownKey => "The key is not known to this version of jess.",
            Class::OtherAgent => "Configuration of another agent or editor; Claude Code does not read it.",
            Class::Note => "Worth knowing; it does not block.",
        }
    }
}

/// One thing that was found. Label and value are safe to print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is.
    pub label: String,
    /// What it says, masked.
    pub value: String,
    /// True when it refuses the target.
    pub blocking: bool,
    /// True when it would refuse the target and an approval covers it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
    /// Why it matters.
    pub class: Class,
}

/// The findings of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileReport {
    /// Relative to the target, safe to print; `../` for a parent's file.
    pub path: String,
    /// In the order of the rules.
    pub findings: Vec<Finding>,
}

/// The verdict over one target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    target: String,
    files: BTreeMap<String, Vec<Finding>>,
    kept: usize,
    dropped: usize,
    blocking: usize,
    /// Blocking findings that no approval can cover.
    final_blocking: usize,
    seen: BTreeMap<String, Seen>,
    seen_text: usize,
    changes: Vec<Change>,
}

/// Bytes of text that are kept for differences, over all files of a check.
const MAX_SEEN_TEXT: usize = 4 << 20;
/// Bytes of one such text.
const MAX_SEEN_FILE: usize = 64 << 10;

impl Report {
    /// An empty report on `target`.
    pub(super) fn new(target: &str) -> Report {
        Report { target: mask::path(target), ..Report::default() }
    }

    /// Adds what was found in `path` (not yet safe to print).
    pub(super) fn add(&mut self, path: &str, findings: Vec<Finding>) {
        for finding in findings {
            self.blocking += usize::from(finding.blocking);
            let judged = !matches!(finding.class, Class::Unreadable | Class::LimitReached);
            self.final_blocking += usize::from(finding.blocking && !judged);
            if self.kept == MAX_FINDINGS {
                self.dropped += 1;
                continue;
            }
            self.kept += 1;
            self.files.entry(mask::path(path)).or_default().push(finding);
        }
    }

    /// Notes what was read at `path`, for approvals.
    pub(super) fn see(&mut self, path: &str, bytes: &[u8]) {
        let keep = bytes.len() <= MAX_SEEN_FILE && self.seen_text + bytes.len() <= MAX_SEEN_TEXT;
        self.seen_text += if keep { bytes.len() } else { 0 };
        self.seen.insert(path.to_owned(), Seen::new(bytes, keep));
    }

    /// Every file that was read, for an approval.
    pub(super) fn seen(&self) -> &BTreeMap<String, Seen> {
        &self.seen
    }

    /// Findings that no approval can cover.
    pub fn not_approvable(&self) -> usize {
        self.final_blocking
    }

    /// Lifts what `approval` covers, when nothing has changed since; otherwise notes the changes.
    pub(super) fn apply(&mut self, approval: &Approval) {
        self.changes = approval.changes(&self.seen);
        if !self.changes.is_empty() || self.dropped > 0 {
            return;
        }
        for finding in self.files.values_mut().flatten() {
            let judged = !matches!(finding.class, Class::Unreadable | Class::LimitReached);
            if finding.blocking && judged {
                finding.blocking = false;
                finding.approved = true;
                self.blocking -= 1;
            }
        }
    }

    /// How the target differs from what was approved; empty without an approval.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// True when the target must not be handed to an agent.
    pub fn refuses(&self) -> bool {
        self.blocking > 0
    }

    /// True when nothing at all was found.
    pub fn is_silent(&self) -> bool {
        self.files.is_empty()
    }

    /// The files with findings, by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[Finding])> {
        self.files.iter().map(|(path, findings)| (path.as_str(), findings.as_slice()))
    }

    /// `{refuse, files: [{path, findings: [{label, value, blocking, class}]}]}`.
    pub fn to_json(&self) -> serde_json::Value {
        let files: Vec<FileReport> = self
            .files()
            .map(|(path, findings)| FileReport { path: path.to_owned(), findings: findings.to_vec() })
            .collect();
        let mut json = serde_json::json!({ "refuse": self.refuses(), "files": files });
        if self.dropped > 0 {
            json["not_shown"] = self.dropped.into();
        }
        if !self.changes.is_empty() {
            json["changed_since_approval"] = serde_json::json!(self.changes);
        }
        json
    }

    /// A table for a person; empty when there is nothing to say. `overridden`: the operator said `--trust-repo`.
    pub fn render(&self, overridden: bool) -> String {
        if self.is_silent() {
            return String::new();
        }
        let head = match (self.refuses(), overridden) {
            (true, true) => " has dangerous agent configuration (--trust-repo given, not refused):",
            (true, false) => " has dangerous agent configuration:",
            (false, _) => " has agent configuration:",
        };
        let mut out = format!("jess: {}{head}\n", self.target);
        for (path, findings) in self.files() {
            let _ = writeln!(out, "  {path}");
            let width = findings.iter().map(|f| f.label.chars().count()).max().unwrap_or(0) + 2;
            for f in findings {
                let mark = match (f.blocking, f.approved) {
                    (true, _) => "block",
                    (false, true) => "approved",
                    (false, false) => "info",
                };
                let _ = writeln!(out, "    {mark:8}  {:width$}{}", f.label, f.value);
            }
        }
        if self.dropped > 0 {
            let _ = writeln!(out, "  and {} more findings", self.dropped);
        }
        if !self.changes.is_empty() {
            out.push_str("  changed since it was approved, so the approval is void:\n");
        }
        for change in &self.changes {
            let _ = writeln!(out, "    {:8}  {}", change.what, change.path);
            for line in &change.diff {
                let _ = writeln!(out, "      {line}");
            }
        }
        out
    }

    /// [`Report::render`] without an override.
    pub fn render_human(&self) -> String {
        self.render(false)
    }
}
