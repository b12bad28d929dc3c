//! From the bytes of one file to its findings.

use super::limits::Spent;
use super::place::Place;
use super::read::{self, Content};
use super::report::{Class, Report};
use super::rules::{Sink, codeql, hooks, markdown, mcp, memory, other, plugin, settings, truthy};
use super::{frontmatter, json, mask, yaml};
use crate::untrusted::Untrusted;
use serde_json::Value;
use std::collections::HashSet;
use std::os::fd::BorrowedFd;

/// Imports are followed this far, one file into the next. The client (2.1.332) stops at five.
const MAX_IMPORT_DEPTH: usize = 5;

/// Directories that the scripts of one command line are looked for in.
const MAX_BASES: usize = 12;

/// Paths that are tried as scripts in one check.
const MAX_SCRIPTS: usize = 100_000;

/// What a file is to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Settings,
    Mcp,
    PluginMcp,
    Manifest,
    Marketplace,
    /// A plugin's hooks file.
    Hooks,
    /// `hooks/hooks.json` where no plugin is known to be: judged only when it has that shape.
    MaybeHooks,
    Lsp,
    Monitors,
    Schedule,
    Agent,
    Command,
    Skill,
    Style,
    Memory,
    CodeQlPack,
    CodeQlConfig,
    Other(&'static str),
    /// A file in `.claude` that is no configuration: only its hash matters, to an approval.
    Evidence,
}

impl Kind {
    /// True for a file that must be a regular file in its own place: a link or a directory there refuses.
    pub(super) const fn strict(self) -> bool {
        !matches!(
            self,
            Kind::Agent
                | Kind::Command
                | Kind::Skill
                | Kind::Style
                | Kind::Memory
                | Kind::MaybeHooks
                | Kind::Other(_)
        )
    }

    /// True for a file that never refuses.
    pub(super) const fn informs(self) -> bool {
        matches!(self, Kind::Other(_) | Kind::MaybeHooks | Kind::Evidence)
    }
}

/// Judges files of one repository.
pub(super) struct Judge<'a> {
    boundary: BorrowedFd<'a>,
    /// How the boundary is written, seen from the target (`""`, `"../"`, …).
    up: String,
    /// The target, relative to the boundary; `None` for a boundary that does not hold it.
    target: Option<Vec<u8>>,
    /// Places that manifests name for definitions.
    components: Vec<(Vec<u8>, Place)>,
    spent: Spent,
    imported: HashSet<String>,
    /// Paths that were tried as scripts.
    noted: HashSet<String>,
    /// Those that are directories.
    directories: HashSet<String>,
    /// Note the hashes of scripts too.
    evidence: bool,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        boundary: BorrowedFd<'a>,
        up: String,
        target: Option<Vec<u8>>,
        evidence: bool,
        spent: Spent,
    ) -> Self {
        Judge {
            boundary,
            up,
            target,
            components: Vec::new(),
            spent,
            imported: HashSet::new(),
            noted: HashSet::new(),
            directories: HashSet::new(),
            evidence,
        }
    }

    /// What the check has spent so far.
    pub(super) fn spent(&mut self) -> &mut Spent {
        &mut self.spent
    }

    /// The next place that a manifest names for definitions.
    pub(super) fn take_component(&mut self) -> Option<(Vec<u8>, Place)> {
        self.components.pop()
    }

    /// Takes the count along to another boundary; [`Judge::give_spent`] brings it back.
    pub(super) fn take_spent(&mut self) -> Spent {
        std::mem::take(&mut self.spent)
    }

    /// Goes on counting from `spent`.
    pub(super) fn give_spent(&mut self, spent: Spent) {
        self.spent = spent;
    }

    /// True when files that are no configuration are wanted for an approval.
    pub(super) fn wants_evidence(&self) -> bool {
        self.evidence
    }

    /// Nothing in the repository may reach beyond this directory.
    pub(super) fn boundary(&self) -> BorrowedFd<'a> {
        self.boundary
    }

    /// A path relative to the boundary, as seen from the target. Not yet safe to print.
    pub(super) fn shown(&self, path: &[u8]) -> String {
        let inside = self.target.as_deref().and_then(|target| match path.strip_prefix(target)? {
            [] => Some(&b"."[..]),
            [b'/', rest @ ..] => Some(rest),
            rest if target.is_empty() => Some(rest),
            _ => None,
        });
        match inside {
            Some(rest) => String::from_utf8_lossy(rest).into_owned(),
            None => format!("{}{}", self.up, String::from_utf8_lossy(path)),
        }
    }

    /// Judges what was read at `path` and adds to `report`.
    pub(super) fn content(&mut self, report: &mut Report, path: &[u8], kind: Kind, content: Content) {
        let size = if let Content::Bytes(bytes) = &content { bytes.inspect().len() } else { 0 };
        self.spent.file(size);
        if self.spent.over() {
            return;
        }
        let mut sink = Sink::default();
        match content {
            Content::Absent => return,
            Content::Bytes(bytes) => {
                if !matches!(kind, Kind::Other(_)) {
                    report.see(&self.shown(path), bytes.inspect());
                }
                self.bytes(report, path, kind, &bytes, &mut sink);
            }
            // A script too large to read could change under an approval.
            Content::TooLarge if kind == Kind::Evidence => {
                sink.block(Class::LimitReached, "cannot be approved", "a script larger than the limit");
            }
            _ if kind.informs() => {
                if let Kind::Other(label) = kind {
                    other::check(&mut sink, label, None);
                }
            }
            Content::Link(target) => sink.block(Class::Unreadable, "symlink", mask::target(target.inspect())),
            Content::Special(what) => sink.unreadable(what),
            Content::TooLarge => sink.unreadable(&format!("larger than {} bytes", read::MAX_BYTES)),
            Content::Unreadable(errno) => sink.unreadable(&format!("cannot read: {errno}")),
        }
        if self.evidence {
            self.scripts(report, path, &sink.take_commands());
        }
        let shown = self.shown(path);
        report.add(&shown, sink.into_findings());
    }

    /// Notes the hashes of the repository's files that command lines name.
    fn scripts(&mut self, report: &mut Report, path: &[u8], commands: &[String]) {
        let project = String::from_utf8_lossy(self.target.as_deref().unwrap_or_default()).into_owned();
        let beside = String::from_utf8_lossy(path).into_owned();
        let beside = beside.rsplit_once('/').map_or("", |(dir, _)| dir).to_owned();
        for command in commands {
            // `cd tools && ./x.sh`: a directory that the command names is a place to look in as well.
            let mut bases =
                vec![project.clone(), beside.clone(), beside.trim_end_matches(".claude").to_owned()];
            let words = command.split(|c: char| c.is_whitespace() || "\"'`;&|()<>={},".contains(c));
            for word in words.filter(|w| !w.is_empty()) {
                let word = word
                    .trim_start_matches("$CLAUDE_PROJECT_DIR/")
                    .trim_start_matches("$CLAUDE_PLUGIN_ROOT/")
                    .trim_start_matches('/')
                    .trim_end_matches([':', '*']);
                for base in bases.clone() {
                    let memory::Import::Inside(found) = memory::resolve(&base, word) else { continue };
                    // Run-times add these endings by themselves.
                    for ending in ["", ".js", ".mjs", ".cjs", ".ts", ".py", ".sh"] {
                        if self.script(report, &format!("{found}{ending}")) && bases.len() < MAX_BASES {
                            bases.push(found.clone());
                        }
                    }
                }
            }
        }
    }

    /// Notes the hash of one script. True when the path is a directory.
    fn script(&mut self, report: &mut Report, path: &str) -> bool {
        if self.directories.contains(path) {
            return true;
        }
        if path.is_empty() || self.spent.over() || !self.noted.insert(path.to_owned()) {
            return false;
        }
        if self.noted.len() > MAX_SCRIPTS {
            if self.noted.len() == MAX_SCRIPTS + 1 {
                let mut sink = Sink::default();
                sink.block(Class::LimitReached, "cannot be approved", "commands with too many words");
                report.add(".", sink.into_findings());
            }
            return false;
        }
        match read::beneath(self.boundary, path.as_bytes()) {
            Content::Bytes(bytes) => {
                self.spent.file(bytes.inspect().len());
                report.see(&self.shown(path.as_bytes()), bytes.inspect());
            }
            Content::TooLarge => {
                let mut sink = Sink::default();
                sink.block(Class::LimitReached, "cannot be approved", "a script larger than the limit");
                report.add(&self.shown(path.as_bytes()), sink.into_findings());
            }
            Content::Special("directory") => return self.directories.insert(path.to_owned()),
            _ => {}
        }
        false
    }

    fn bytes(
        &mut self,
        report: &mut Report,
        path: &[u8],
        kind: Kind,
        bytes: &Untrusted<Vec<u8>>,
        sink: &mut Sink,
    ) {
        match kind {
            Kind::Settings => with_json(sink, bytes, settings::check),
            Kind::Mcp => with_json(sink, bytes, |s, v| mcp::check_file(s, v, false)),
            Kind::PluginMcp => with_json(sink, bytes, |s, v| mcp::check_file(s, v, true)),
            Kind::Hooks => with_json(sink, bytes, |s, v| plugin::check_part(s, plugin::Part::Hooks, v)),
            Kind::Lsp => with_json(sink, bytes, |s, v| plugin::check_part(s, plugin::Part::Lsp, v)),
            Kind::Monitors => with_json(sink, bytes, |s, v| plugin::check_part(s, plugin::Part::Monitors, v)),
            Kind::Schedule => with_json(sink, bytes, |s, v| {
                if truthy(v.get("tasks").unwrap_or(v)) {
                    s.block(Class::RunsCommand, "scheduled tasks", mask::json(v));
                }
            }),
            Kind::MaybeHooks => {
                if let Ok(value) = json::parse(bytes)
                    && let Some(events @ Value::Object(_)) = value.inspect().get("hooks")
                {
                    hooks::check(sink, events);
                }
            }
            Kind::Manifest => {
                let mut parts = Vec::new();
                with_json(sink, bytes, |s, v| parts = plugin::check_manifest(s, v));
                self.parts(report, path, &parts);
            }
            Kind::Marketplace => {
                let mut parts = Vec::new();
                with_json(sink, bytes, |s, v| parts = plugin::check_marketplace(s, v));
                self.parts(report, path, &parts);
            }
            Kind::CodeQlPack => with_yaml(sink, bytes, codeql::check_pack),
            Kind::CodeQlConfig => with_yaml(sink, bytes, codeql::check_config),
            Kind::Agent => markdown::check(sink, markdown::Kind::Agent, &frontmatter::read(bytes)),
            Kind::Style => markdown::check(sink, markdown::Kind::Style, &frontmatter::read(bytes)),
            Kind::Command | Kind::Skill => {
                let kind = if kind == Kind::Skill { markdown::Kind::Skill } else { markdown::Kind::Command };
                let document = frontmatter::read(bytes);
                markdown::check(sink, kind, &document);
                self.imports(report, path, &document.text, sink, 0);
                // `@$ARGUMENTS/etc/passwd` is an import of /etc/passwd when no arguments are given.
                for text in markdown::expansions(&document) {
                    self.imports(report, path, &Untrusted::new(text), sink, 0);
                }
            }
            Kind::Memory => {
                if frontmatter::utf16(bytes.inspect()) {
                    sink.unreadable("UTF-16 text");
                }
                let text = Untrusted::new(frontmatter::decode(bytes.inspect()));
                self.imports(report, path, &text, sink, 0);
            }
            Kind::Other(label) => other::check(sink, label, Some(bytes)),
            Kind::Evidence => {}
        }
    }

    /// Reads the files that a manifest names. They are relative to the plugin, the parent of `.claude-plugin`.
    fn parts(&mut self, report: &mut Report, manifest: &[u8], parts: &[(plugin::Part, String)]) {
        let manifest = String::from_utf8_lossy(manifest).into_owned();
        let plugin = manifest.rsplitn(3, '/').nth(2).unwrap_or("").to_owned();
        for (part, name) in parts {
            let memory::Import::Inside(path) = memory::resolve(&plugin, name) else { continue };
            if !self.imported.insert(format!("{part:?} {path}")) {
                continue;
            }
            let kind = match part {
                plugin::Part::Hooks => Kind::Hooks,
                plugin::Part::Mcp => Kind::PluginMcp,
                plugin::Part::Lsp => Kind::Lsp,
                plugin::Part::Monitors => Kind::Monitors,
                plugin::Part::Commands => {
                    self.components.push((path.into_bytes(), Place::Commands));
                    continue;
                }
                plugin::Part::Agents => {
                    self.components.push((path.into_bytes(), Place::Agents));
                    continue;
                }
                plugin::Part::Skills => {
                    self.components.push((path.into_bytes(), Place::Skills));
                    continue;
                }
                plugin::Part::Styles => {
                    self.components.push((path.into_bytes(), Place::Styles));
                    continue;
                }
            };
            let content = read::beneath(self.boundary, path.as_bytes());
            self.content(report, path.as_bytes(), kind, content);
        }
    }

    /// Follows `@path` imports. Each file is read once in a check.
    fn imports(
        &mut self,
        report: &mut Report,
        path: &[u8],
        text: &Untrusted<String>,
        sink: &mut Sink,
        depth: usize,
    ) {
        let found = memory::imports(text);
        if found.len() > memory::MAX_IMPORTS {
            sink.block(Class::LimitReached, "imports", format!("more than {}", memory::MAX_IMPORTS));
        }
        let path = String::from_utf8_lossy(path).into_owned();
        let directory = path.rsplit_once('/').map_or("", |(dir, _)| dir);
        for import in found.iter().take(memory::MAX_IMPORTS) {
            let inside = match memory::resolve(directory, import.inspect()) {
                memory::Import::NoPath => continue,
                memory::Import::Outside => {
                    memory::outside(sink, import);
                    continue;
                }
                memory::Import::Inside(path) => path,
            };
            if inside.is_empty() || self.spent.over() || self.imported.contains(&inside) {
                continue;
            }
            match read::beneath(self.boundary, inside.as_bytes()) {
                Content::Absent | Content::Special("directory") => {}
                Content::Bytes(bytes) if memory::secret_name(&inside) => {
                    self.spent.bytes(bytes.inspect().len());
                    sink.block(
                        Class::OutsidePath,
                        "import of a credential file",
                        mask::target(import.inspect()),
                    );
                }
                Content::Bytes(bytes) => {
                    self.imported.insert(inside.clone());
                    self.spent.file(bytes.inspect().len());
                    report.see(&self.shown(inside.as_bytes()), bytes.inspect());
                    if depth < MAX_IMPORT_DEPTH {
                        let text = Untrusted::new(frontmatter::decode(bytes.inspect()));
                        self.imports(report, inside.as_bytes(), &text, sink, depth + 1);
                    }
                }
                Content::Special(what) => {
                    sink.block(
                        Class::Unreadable,
                        "import",
                        format!("{}: {what}", mask::target(import.inspect())),
                    );
                }
                Content::TooLarge => {
                    sink.block(Class::LimitReached, "import", "larger than the limit, not followed")
                }
                Content::Link(_) | Content::Unreadable(_) => {
                    sink.block(Class::OutsidePath, "import through a link", mask::target(import.inspect()));
                }
            }
        }
    }
}

fn with_json(sink: &mut Sink, bytes: &Untrusted<Vec<u8>>, rule: impl FnOnce(&mut Sink, &Value)) {
    match json::parse(bytes) {
        Ok(value) => rule(sink, value.inspect()),
        Err(reason) => sink.unreadable(reason),
    }
}

fn with_yaml(sink: &mut Sink, bytes: &Untrusted<Vec<u8>>, rule: impl FnOnce(&mut Sink, &Value)) {
    let text = match std::str::from_utf8(bytes.inspect()) {
        Ok(text) => Untrusted::new(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(_) => return sink.unreadable("not UTF-8 text"),
    };
    match yaml::parse(&text) {
        Ok(value) => rule(sink, value.inspect()),
        Err(reason) => sink.unreadable(reason),
    }
}
