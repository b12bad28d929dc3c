//! Instruction files (CLAUDE.md and its kin): which other files they pull into the context.

use super::Sink;
use super::settings::leaves;
use crate::trust::mask;
use crate::trust::report::Class;
use crate::untrusted::Untrusted;
use pulldown_cmark::{Event, Parser, Tag};

/// Imports looked at in one file. Further ones refuse the target.
pub const MAX_IMPORTS: usize = 200;

/// The longest text whose code spans are looked for, in bytes. In a longer one every `@path` counts, in code or not;
/// the Markdown parser's memory is some seventy times its input.
const MAX_MARKDOWN: usize = 262_144;

/// Directories at the top of a file system that projects also use as names of their modules (`@/lib/utils`).
const SHARED_NAMES: &[&str] = &["home", "lib", "media", "private", "run"];

/// Directories at the top of a file system. Anything else after `@/` is a module alias such as `@/components`.
const SYSTEM_DIRECTORIES: &[&str] = &[
    "Applications",
    "Library",
    "Users",
    "Volumes",
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "media",
    "mnt",
    "opt",
    "private",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "tmp",
    "usr",
    "var",
];

/// The paths that `text` imports with `@path`, outside code spans and code blocks, as the client reads them.
pub fn imports(text: &Untrusted<impl AsRef<str>>) -> Vec<Untrusted<String>> {
    let text = text.inspect().as_ref();
    if !text.contains('@') {
        return Vec::new();
    }
    let code = if text.len() > MAX_MARKDOWN { Vec::new() } else { code_ranges(text) };
    let mut code = code.iter().peekable();
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let mut boundary = true;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        while code.peek().is_some_and(|r| r.end <= at) {
            code.next();
        }
        if code.peek().is_some_and(|r| r.start <= at) {
            boundary = true;
            continue;
        }
        if c == '@' && boundary {
            let mut path = String::new();
            while let Some(&(i, c)) = chars.peek() {
                let escaped_space = c == '\\' && bytes.get(i + 1) == Some(&b' ');
                if escaped_space {
                    chars.next();
                    path.push(' ');
                } else if c.is_whitespace() || c == '\\' || code.peek().is_some_and(|r| r.start <= i) {
                    break;
                } else {
                    path.push(c);
                }
                chars.next();
            }
            // A heading fragment is not part of the path; neither is the punctuation of a sentence.
            let path = path.split('#').next().unwrap_or_default();
            let path = path.trim_end_matches([',', ';', ':', '!', '?', ')', ']', '>', '"', '\'', '*']);
            if !path.is_empty() && found.len() <= MAX_IMPORTS {
                found.push(Untrusted::new(path.to_owned()));
            }
            boundary = false;
            continue;
        }
        boundary = c.is_whitespace() || matches!(c, '(' | '[' | '"' | '\'' | '*' | '>' | '<' | '\u{feff}');
    }
    found
}

/// The byte ranges of code, in order and without overlap.
fn code_ranges(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for (event, range) in Parser::new(text).into_offset_iter() {
        let is_code = matches!(event, Event::Code(_) | Event::Start(Tag::CodeBlock(_)));
        if is_code && ranges.last().is_none_or(|last| last.end <= range.start) {
            ranges.push(range);
        }
    }
    ranges
}

/// Where an import leads.
#[derive(Debug, PartialEq, Eq)]
pub enum Import {
    /// Out of the repository.
    Outside,
    /// To this path, relative to the repository's root.
    Inside(String),
    /// Nowhere: no path.
    NoPath,
}

/// Resolves `path`, imported by a file in `directory` (relative to the repository's root), by its words alone.
pub fn resolve(directory: &str, path: &str) -> Import {
    if let Some(rest) = path.strip_prefix('/') {
        let first = rest.split('/').next().unwrap_or_default();
        let dotted = rest.split('/').any(|part| part.starts_with('.'));
        let alias = SHARED_NAMES.contains(&first) && !dotted && !secret_name(path);
        let system = SYSTEM_DIRECTORIES.contains(&first) && !alias;
        return if system || std::path::Path::new(path).exists() { Import::Outside } else { Import::NoPath };
    }
    // The client's own guide has people keep personal instructions there.
    let personal = path.strip_prefix("~/.claude/").and_then(|rest| rest.strip_suffix(".md"));
    if personal.is_some_and(|name| !name.contains(['/', '\\'])) {
        return Import::NoPath;
    }
    if path.starts_with("~/") || path.starts_with("~\\") {
        return Import::Outside;
    }
    if path.starts_with('~') {
        return Import::NoPath;
    }
    let joined = format!("{directory}/{path}");
    let joined = joined.trim_start_matches('/');
    // The client takes `$` literally, so it is no reason to think that the path leaves.
    if leaves(&joined.replace('$', "_")) {
        return Import::Outside;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Import::Inside(parts.join("/"))
}

/// True for a file that holds credentials by its name.
pub fn secret_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let template =
        [".example", ".sample", ".template", ".dist", ".md", ".pub"].iter().any(|e| name.ends_with(e));
    if template {
        return false;
    }
    name == ".env"
        || name.starts_with(".env.")
        || matches!(
            name.as_str(),
            ".netrc" | ".npmrc" | ".pypirc" | ".git-credentials" | ".htpasswd" | ".pgpass"
        )
        || matches!(
            name.as_str(),
            "id_rsa" | "id_ed25519" | "id_ecdsa" | "id_dsa" | "credentials" | "credentials.json"
        )
        || [".pem", ".key", ".p12", ".pfx", ".kdbx", ".jks", ".keystore"].iter().any(|e| name.ends_with(e))
}

/// Reports an import that leaves the repository.
pub fn outside(sink: &mut Sink, path: &Untrusted<String>) {
    sink.block(Class::OutsidePath, "import from outside", mask::target(path.inspect()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        imports(&Untrusted::new(text)).iter().map(|p| p.inspect().clone()).collect()
    }

    #[test]
    fn imports_are_found_where_the_client_finds_them() {
        assert_eq!(
            found("@a.md and @~/.ssh/id_rsa, (@../b c)\n- @x\\ y.md\n"),
            ["a.md", "~/.ssh/id_rsa", "../b", "x y.md"]
        );
        assert_eq!(found("see @docs/style.md#tabs."), ["docs/style.md"]);
    }

    #[test]
    fn code_and_addresses_are_no_imports() {
        assert!(
            found("mail a@b.example; `@~/.ssh/id_rsa`\n\n```\n@/etc/passwd\n```\n\n    @/etc/shadow\n")
                .is_empty()
        );
    }

    #[test]
    fn a_fence_that_is_closed_does_not_hide_what_follows() {
        assert_eq!(found("```\ncode\n```\n@/etc/passwd\n"), ["/etc/passwd"]);
    }

    #[test]
    fn paths_resolve_by_their_words() {
        assert_eq!(resolve("", "a/../b.md"), Import::Inside("b.md".into()));
        assert_eq!(resolve("packages/a", "../../root.md"), Import::Inside("root.md".into()));
        assert_eq!(resolve("packages/a", "../../../x"), Import::Outside);
        assert_eq!(resolve("", "docs/../../outside/n.md"), Import::Outside);
        assert_eq!(resolve("", "/etc/passwd"), Import::Outside);
        assert_eq!(resolve("", "/components/Button-that-is-no-file"), Import::NoPath);
        assert_eq!(resolve("", "~/x"), Import::Outside);
        assert_eq!(resolve("", "~/.claude/my-instructions.md"), Import::NoPath);
        assert_eq!(resolve("", "~/.claude/projects/x.md"), Import::Outside);
        assert_eq!(resolve("", "/lib/utils"), Import::NoPath);
        assert_eq!(resolve("", "/home/someone/.ssh/id_rsa"), Import::Outside);
        assert_eq!(resolve("", "/home/someone/id_rsa"), Import::Outside);
    }

    #[test]
    fn in_a_text_too_long_to_parse_code_counts_too() {
        let text = |n: usize| format!("```\n@/etc/passwd\n```\n{}", "x".repeat(n - 21));
        assert_eq!(text(MAX_MARKDOWN).len(), MAX_MARKDOWN);
        assert!(found(&text(MAX_MARKDOWN)).is_empty());
        assert_eq!(found(&text(MAX_MARKDOWN + 1)), ["/etc/passwd"]);
    }
}
