//! A patch that an agent wrote, before a person or a pipeline applies it.

mod calls;
mod lists;
mod path;

use super::{Finding, MAX_FINDINGS};
pub use crate::severity::Severity;
use calls::{EXEC, NETWORK};
use lists::{CI, DEPENDENCIES, HOOKS, LOCKS};
use std::path::PathBuf;

/// The severity of a finding's kind. Secrets and fetching markup are critical and high; what is not known is high.
pub fn severity(kind: &str) -> Severity {
    match kind {
        "patch:escaping-path" | "patch:invisible" | "patch:link" | "patch:submodule" => Severity::Critical,
        "patch:outside-scope"
        | "patch:ci"
        | "patch:hook"
        | "patch:binary"
        | "patch:exec-call"
        | "patch:malformed"
        | "patch:unreadable" => Severity::High,
        "patch:dependency" | "patch:lock" | "patch:mode" | "patch:network-call" | "patch:deleted-test" => {
            Severity::Medium
        }
        "patch:removed-check" => Severity::Medium,
        kind if kind.starts_with("secret:") => Severity::Critical,
        _ => Severity::High,
    }
}

/// What a unified diff does that needs a look. `scope` are the path prefixes that it may touch; empty means anywhere.
///
/// Read as `git apply`, `git am` and GNU patch read it: paths quoted or not, with and without a prefix, of every header
/// that names one. What one of them would apply and this does not read (other forms of diff, mails in a transfer
/// encoding, hunks whose lines do not add up) is a finding itself, and so is a text that is no diff. Linear in the input;
/// at most [`MAX_FINDINGS`] and one.
pub fn check(text: &str, scope: &[String]) -> Vec<Finding> {
    let mut check = Check { scope, ..Check::default() };
    for (n, line) in text.strip_suffix('\n').unwrap_or(text).split('\n').enumerate() {
        if check.findings.len() >= MAX_FINDINGS {
            check.findings.push(Finding { file: PathBuf::new(), line: 0, kind: "too-many-findings".into() });
            return check.findings;
        }
        let line = line.strip_suffix('\r').unwrap_or(line);
        if !check.hunk_line(line) {
            check.header(n + 1, line);
        }
    }
    if check.old_left > 0 || check.new_left > 0 {
        check.add(0, "patch:malformed");
    }
    if !check.any && !text.trim().is_empty() {
        check.add(0, "patch:unreadable");
    }
    check.findings
}

/// Do paths of this diff have no `a/` and `b/` before them, as under `diff.noprefix`? Then [`check`] judges them without
/// their first directory too. For an explanation, not for a judgement: lines of hunks are looked at as well.
pub fn lacks_prefixes(text: &str) -> bool {
    let paths = text
        .lines()
        .filter_map(|line| ["diff --git ", "--- ", "+++ "].iter().find_map(|head| line.strip_prefix(head)));
    paths
        .map(|path| path.trim_start_matches('"'))
        .any(|path| path.contains('/') && !path.starts_with('/') && !prefixed(path))
}

/// Begins with what git or a person puts before the path of one side.
fn prefixed(path: &str) -> bool {
    PREFIXES.iter().any(|prefix| path.starts_with(prefix))
}

const PREFIXES: [&str; 6] = ["a/", "b/", "c/", "i/", "o/", "w/"];

#[derive(Default)]
struct Check<'a> {
    scope: &'a [String],
    findings: Vec<Finding>,
    file: PathBuf,
    test: bool,
    /// The `---` or `rename from` path is a test.
    old_test: bool,
    any: bool,
    new_line: usize,
    old_left: usize,
    new_left: usize,
    /// The hunk before has all its lines: more of them belong to nothing.
    after_hunk: bool,
}

impl Check<'_> {
    fn add(&mut self, line: usize, kind: &str) {
        let finding = Finding { file: self.file.clone(), line, kind: kind.to_string() };
        // One file has few kinds for itself; lines come in order.
        if !self.findings.iter().rev().take(64).any(|known| *known == finding) {
            self.findings.push(finding);
        }
    }

    /// Reads a line of a hunk; false when it belongs to none.
    fn hunk_line(&mut self, line: &str) -> bool {
        if self.old_left == 0 && self.new_left == 0 {
            return false;
        }
        let first = line.as_bytes().first();
        let content = line.get(1..).unwrap_or_default();
        match first {
            Some(b'+') if self.new_left > 0 => {
                self.added(self.new_line, content);
                self.new_line += 1;
                self.new_left -= 1;
            }
            Some(b'-') if self.old_left > 0 => {
                self.removed(self.new_line, content);
                self.old_left -= 1;
            }
            Some(b' ') | None if self.old_left > 0 && self.new_left > 0 => {
                self.new_line += 1;
                self.old_left -= 1;
                self.new_left -= 1;
            }
            Some(b'\\') => {}
            _ => {
                self.add(self.new_line, "patch:malformed");
                (self.old_left, self.new_left) = (0, 0);
                return false;
            }
        }
        self.after_hunk = true;
        true
    }

    /// Reads a line outside hunks, the `n`th of the text.
    fn header(&mut self, n: usize, line: &str) {
        // What stands here is read on a terminal; names are judged by themselves.
        let acts =
            |c: char| (c.is_control() && c != '\t') || matches!(c as u32, 0x202A..=0x202E | 0x2066..=0x2069);
        if line.contains(acts) {
            self.add(0, "patch:invisible");
        }
        if line.starts_with("@@") {
            match hunk(line) {
                Some((old, start, new)) => {
                    (self.old_left, self.new_line, self.new_left) = (old, start, new);
                    self.any = true;
                    if new == 0 && start == 0 && self.test {
                        self.add(0, "patch:deleted-test");
                    }
                }
                // More than one parent, or numbers that nobody counts alike.
                None => self.add(0, "patch:malformed"),
            }
            return;
        }
        let after_hunk = std::mem::take(&mut self.after_hunk);
        if let Some(paths) = line.strip_prefix("diff --git ") {
            self.test = false;
            self.old_test = false;
            for path in path::of_git_line(paths) {
                self.path(&path);
            }
        } else if let Some(path) =
            ["diff --cc ", "diff --combined "].iter().find_map(|p| line.strip_prefix(p))
        {
            self.path(&path::unquoted(path));
            self.add(0, "patch:unreadable");
        } else if let Some(path) = line.strip_prefix("--- ") {
            self.old_test = self.header_path(path);
        } else if let Some(path) = line.strip_prefix("+++ ") {
            self.header_path(path);
            if path.split('\t').next().is_some_and(|p| p.trim() == "/dev/null") && self.old_test {
                self.add(0, "patch:deleted-test");
            }
        } else if let Some(path) = line.strip_prefix("Index: ") {
            self.header_path(path);
        } else if let Some(path) =
            ["rename from ", "rename old ", "copy from "].iter().find_map(|p| line.strip_prefix(p))
        {
            self.any = true;
            self.name(&path::unquoted(path));
            self.old_test = self.test && !line.starts_with("copy");
        } else if let Some(path) =
            ["rename to ", "rename new ", "copy to "].iter().find_map(|p| line.strip_prefix(p))
        {
            self.any = true;
            self.name(&path::unquoted(path));
            if self.old_test && !self.test {
                self.add(0, "patch:deleted-test");
            }
        } else if line.starts_with("Binary files ")
            || line.starts_with("GIT binary patch")
            || (line.starts_with("Files ") && line.ends_with(" differ"))
        {
            self.any = true;
            self.add(n, "patch:binary");
        } else if let Some(mode) = ["new mode ", "new file mode "].iter().find_map(|p| line.strip_prefix(p)) {
            self.any = true;
            self.mode(mode, true);
        } else if let Some(mode) = line.strip_prefix("index ").and_then(|i| i.split(' ').nth(1)) {
            self.mode(mode, false);
        } else if line.starts_with("deleted file mode") {
            self.any = true;
            if self.test {
                self.add(0, "patch:deleted-test");
            }
        } else if after_hunk && matches!(line.as_bytes().first(), Some(b'+' | b'-')) && !signature(line) {
            self.add(0, "patch:malformed");
        } else if hides_a_patch(line) {
            self.add(0, "patch:unreadable");
        }
    }

    /// The path of a `---`, `+++` or `Index:` line: up to a tab, and, for those who end a name there, up to a space. Says
    /// whether it is a test's.
    fn header_path(&mut self, line: &str) -> bool {
        let name = line.split('\t').next().unwrap_or(line).trim();
        if name == "/dev/null" {
            return false;
        }
        let path = path::unquoted(name);
        if !name.starts_with('"')
            && let Some((short, _)) = path.split_once(' ')
        {
            let short = short.to_string();
            self.path(&short);
        }
        self.path(&path);
        self.test
    }

    /// Judges a path in each reading that an applier may have of it.
    fn path(&mut self, raw: &str) {
        if raw == "/dev/null" {
            return;
        }
        let readings: &[&str] = match raw.split_once('/') {
            Some((_, rest)) if prefixed(raw) => &[rest],
            // Without a prefix the first directory is taken for one, unless the applier is told otherwise.
            Some((_, rest)) if !raw.starts_with('/') => &[rest, raw],
            _ => &[raw],
        };
        for path in readings {
            self.name(path);
        }
    }

    /// Judges a path as it is.
    fn name(&mut self, path: &str) {
        if self.file.as_os_str() != path {
            self.file = PathBuf::from(path);
            self.judge(path);
        }
    }

    fn judge(&mut self, path: &str) {
        let plain = path::plain(path);
        let name = plain.rsplit('/').next().unwrap_or(&plain).to_string();
        let part = |part: &str| matches!(part, "test" | "tests" | "spec" | "specs" | "testing" | "__tests__");
        self.test = plain.split(['/', '.', '_', '-']).any(part)
            || ["__tests__", "__snapshots__", "e2e/", "cypress/", "unittests/"]
                .iter()
                .any(|t| plain.contains(t))
            || plain.ends_with(".feature")
            || test_class(path.rsplit('/').next().unwrap_or(path));
        let climbs = plain.split('/').any(|part| part == "..");
        let drive = path.as_bytes().get(1) == Some(&b':')
            && path.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
        if path.starts_with('/') || drive || path.contains('\\') || climbs {
            self.add(0, "patch:escaping-path");
        }
        if super::invisible(path) || path.contains(['\u{fffd}', '\r', '\t']) {
            self.add(0, "patch:invisible");
        }
        let inside = |scope: &String| {
            let scope = scope.trim_start_matches("./").trim_end_matches('/');
            matches!(scope, "" | ".")
                || path == scope
                || path.strip_prefix(scope).is_some_and(|rest| rest.starts_with('/'))
        };
        if !self.scope.is_empty() && (climbs || !self.scope.iter().any(inside)) {
            self.add(0, "patch:outside-scope");
        }
        let under = |list: &[&str]| {
            list.iter().any(|p| {
                plain.starts_with(p)
                    || plain
                        .match_indices(p)
                        .any(|(at, _)| plain.as_bytes().get(at.wrapping_sub(1)) == Some(&b'/'))
            })
        };
        if under(CI) {
            self.add(0, "patch:ci");
        }
        if under(HOOKS) || name.ends_with(".pth") || plain.split('/').any(|part| part == ".git") {
            self.add(0, "patch:hook");
        }
        if LOCKS.contains(&name.as_str()) {
            self.add(0, "patch:lock");
        } else if DEPENDENCIES.iter().any(|d| match d.strip_suffix('/') {
            Some(directory) => plain.split('/').any(|part| part == directory),
            // `build` and `workspace` stand by themselves.
            None if matches!(*d, "build" | "workspace") => name == *d,
            None => name.starts_with(d),
        }) || lists::DEPENDENCY_ENDINGS.iter().any(|end| name.ends_with(end))
        {
            self.add(0, "patch:dependency");
        }
    }

    /// An octal mode. A file that is there already may have any that is no link's.
    fn mode(&mut self, text: &str, new: bool) {
        let digits = text.trim_start().split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        match u32::from_str_radix(digits, 8).map(|mode| (mode & 0o170_000, mode & 0o7777)) {
            Ok((0o120_000, _)) => self.add(0, "patch:link"),
            Ok((0o160_000, _)) => self.add(0, "patch:submodule"),
            Ok((0o100_000, 0o644)) => {}
            Ok(_) if !new => {}
            _ => self.add(0, "patch:mode"),
        }
    }

    fn added(&mut self, line: usize, content: &str) {
        if super::invisible(content) || content.contains('\r') {
            self.add(line, "patch:invisible");
        }
        if content.starts_with("Subproject commit ") {
            self.add(line, "patch:submodule");
        }
        let lower = path::code(content);
        if NETWORK.iter().any(|call| lower.contains(call)) {
            self.add(line, "patch:network-call");
        }
        if EXEC.iter().any(|call| lower.contains(call)) {
            self.add(line, "patch:exec-call");
        }
        if calls::SWITCHED_OFF.iter().any(|s| lower.contains(s)) {
            self.add(line, "patch:removed-check");
        }
    }

    fn removed(&mut self, line: usize, content: &str) {
        let lower = content.to_lowercase();
        if calls::CHECKS.iter().any(|s| lower.contains(s)) {
            self.add(line, "patch:removed-check");
        }
    }
}

/// `FooTest.java`, `FooSpec.scala`, `TestFoo.py`: the word begins with a capital, and none of its letters go on.
fn test_class(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    ["Test", "Tests", "Spec", "Specs"].iter().any(|word| {
        stem.ends_with(word)
            || stem
                .strip_prefix(word)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '_'))
    })
}

/// Lines of the old side, start and lines of the new side of `@@ -a,b +c,d @@`.
fn hunk(line: &str) -> Option<(usize, usize, usize)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let number =
        |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<usize>().ok()).flatten();
    let range = |range: &str| match range.split_once(',') {
        Some((start, count)) => Some((number(start)?, number(count)?)),
        None => Some((number(range)?, 1)),
    };
    let ((_, old), (start, new)) = (range(old)?, range(new)?);
    Some((old, start, new))
}

/// `-- `, as mails end.
fn signature(line: &str) -> bool {
    line.trim_end() == "--" || line.starts_with("--- ") || line.starts_with("+++ ") || line == "---"
}

/// A line outside hunks after which an applier could read a patch that this does not: the commands of other forms of
/// diff, a hunk that is indented or quoted, a mail in a transfer encoding or a character set that spells ASCII otherwise.
fn hides_a_patch(line: &str) -> bool {
    let inner = line.trim_start_matches([' ', '\t', 'X']);
    let inner = inner.strip_prefix("- ").unwrap_or(inner);
    if inner.len() < line.len() && inner.starts_with("@@ -") && hunk(inner).is_some() {
        return true;
    }
    // GNU patch takes eight stars for the head of a context diff's hunk.
    if line.starts_with("********") || command(inner) {
        return true;
    }
    let Some((name, value)) = line.split_once(':') else { return false };
    let value = value.to_lowercase();
    match name.trim().to_lowercase().as_str() {
        "content-transfer-encoding" => !matches!(value.trim(), "7bit" | "8bit" | "binary"),
        "content-type" => value.split("charset=").nth(1).is_some_and(|set| {
            let set = set.trim_start_matches(['"', '\'']);
            !["utf-8", "us-ascii", "iso-8859-", "windows-125"].iter().any(|known| set.starts_with(known))
        }),
        _ => false,
    }
}

/// `3,4c5`, as normal diffs and ed scripts have.
fn command(line: &str) -> bool {
    // An applier reads any number of digits, and commas as it likes.
    let range = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit())
            && text.bytes().all(|b| b.is_ascii_digit() || b == b',')
    };
    let Some((old, new)) = line.split_once(['a', 'c', 'd', 'i', 's']) else { return false };
    let new = new.trim_end();
    range(old) && (new.is_empty() || range(new))
}

#[cfg(test)]
mod tests;
