//! Programs: comments without the code between them, and string literals that are put together or escaped.
//!
//! No crate lexes many languages in little space and reports offsets, and a grammar for each language weighs megabytes;
//! what is needed is only where comments and literals begin and end. A wrong guess costs a view, never a finding: the
//! rules read the source itself, too.

use super::json::unescape;
use super::stitch::Stitch;
use crate::scan::decode::View;

/// The longest gap between two literals that are put together, in bytes.
const GAP: usize = 160;
/// The longest literal, in bytes: one that is not closed by then is a sign.
const LITERAL: usize = 256 * 1024;

/// What comments and literals of a language look like.
#[derive(Debug)]
pub(super) struct Language {
    lines: &'static [&'static str],
    blocks: &'static [(&'static str, &'static str)],
    /// Quotation marks; the first that fits counts.
    quotes: &'static [&'static str],
    /// A single quotation mark encloses one character only.
    characters: bool,
}

const C: Language =
    Language { lines: &["//"], blocks: &[("/*", "*/")], quotes: &["\"", "'"], characters: false };
const RUST: Language =
    Language { lines: &["//"], blocks: &[("/*", "*/")], quotes: &["\""], characters: true };
const SCRIPT: Language =
    Language { lines: &["//"], blocks: &[("/*", "*/")], quotes: &["\"", "'", "`"], characters: false };
const PYTHON: Language =
    Language { lines: &["#"], blocks: &[], quotes: &["\"\"\"", "'''", "\"", "'"], characters: false };
const SHELL: Language = Language { lines: &["#"], blocks: &[], quotes: &["\"", "'"], characters: false };
const PHP: Language =
    Language { lines: &["//", "#"], blocks: &[("/*", "*/")], quotes: &["\"", "'"], characters: false };
const SQL: Language =
    Language { lines: &["--"], blocks: &[("/*", "*/")], quotes: &["'", "\""], characters: false };
const LUA: Language =
    Language { lines: &["--"], blocks: &[("--[[", "]]")], quotes: &["\"", "'", "[["], characters: false };
const HASKELL: Language =
    Language { lines: &["--"], blocks: &[("{-", "-}")], quotes: &["\""], characters: true };
const LISP: Language = Language { lines: &[";"], blocks: &[("#|", "|#")], quotes: &["\""], characters: true };
const TEX: Language = Language { lines: &["%"], blocks: &[], quotes: &[], characters: true };
const INI: Language = Language { lines: &["#", ";"], blocks: &[], quotes: &["\""], characters: true };

/// The language of a text with this extension, name and head.
pub(super) fn language(extension: &str, file: &str, head: &str) -> Option<&'static Language> {
    let name = file.rsplit('/').next().unwrap_or(file);
    Some(match extension {
        "c" | "h" | "cc" | "cpp" | "cxx" | "hpp" | "hh" | "java" | "cs" | "m" | "mm" | "swift" | "kt"
        | "kts" | "scala" | "groovy" | "gradle" | "dart" | "proto" | "css" | "scss" | "less" | "sol"
        | "zig" | "v" => &C,
        "rs" => &RUST,
        "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" | "jsx" | "tsx" | "go" | "vue" | "svelte" => &SCRIPT,
        "py" | "pyi" | "pyx" | "jl" | "ex" | "exs" => &PYTHON,
        "sh" | "bash" | "zsh" | "fish" | "ksh" | "rb" | "pl" | "pm" | "r" | "ps1" | "nim" | "mk"
        | "cmake" | "awk" | "tcl" | "nix" => &SHELL,
        "php" | "tf" | "hcl" => &PHP,
        "sql" => &SQL,
        "lua" => &LUA,
        "hs" | "elm" | "adb" | "ads" => &HASKELL,
        "lisp" | "cl" | "el" | "clj" | "cljs" | "scm" | "rkt" | "s" | "asm" => &LISP,
        "tex" | "sty" | "erl" | "bib" => &TEX,
        "ini" | "cfg" | "conf" | "service" | "properties" | "env" => &INI,
        "" => match name {
            "Makefile" | "Dockerfile" | "Rakefile" | "Gemfile" | "Jenkinsfile" => &SHELL,
            _ => return guessed(head),
        },
        _ => return None,
    })
}

/// The language of a text without a name, when its lines end or begin as those of programs do.
fn guessed(head: &str) -> Option<&'static Language> {
    if let Some(line) = head.strip_prefix("#!").and_then(|h| h.lines().next()) {
        return Some(if line.contains("python") { &PYTHON } else { &SHELL });
    }
    let lines: Vec<&str> =
        head.lines().map(str::trim_end).filter(|l| !l.trim().is_empty()).take(60).collect();
    let ends = lines.iter().filter(|l| l.ends_with([';', '{', '}'])).count();
    let starts =
        |words: &[&str]| lines.iter().filter(|l| words.iter().any(|w| l.trim_start().starts_with(w))).count();
    if ends >= 2 && ends * 5 >= lines.len() * 2 {
        let rust = starts(&["fn ", "pub ", "use ", "impl ", "let mut "]) > 1;
        return Some(if rust { &RUST } else { &SCRIPT });
    }
    let python = starts(&["def ", "import ", "from ", "class ", "return ", "elif ", "except", "if __name__"]);
    (python >= 2 && python * 8 >= lines.len()).then_some(&PYTHON)
}

/// The views of the comments and literals in `text`.
pub(super) fn views(text: &str, language: &Language, out: &mut Vec<View>) {
    let source = text.as_bytes();
    let (mut comments, mut literals) = (Stitch::default(), Stitch::default());
    let mut first = [false; 256];
    let opening = language.lines.iter().chain(language.blocks.iter().map(|(o, _)| o)).chain(language.quotes);
    opening.filter_map(|m| m.as_bytes().first()).for_each(|b| {
        if let Some(slot) = first.get_mut(usize::from(*b)) {
            *slot = true;
        }
    });
    if language.characters
        && let Some(slot) = first.get_mut(usize::from(b'\''))
    {
        *slot = true;
    }
    let (mut at, mut last) = (0usize, None::<usize>);
    // For each kind of quotation mark, up to where one that opens is not closed.
    let mut unclosed = [0usize; 4];
    while let Some(p) = source.get(at..).and_then(|s| s.iter().position(|b| first[usize::from(*b)])) {
        let i = at + p;
        let rest = source.get(i..).unwrap_or_default();
        let starts = |mark: &str| rest.starts_with(mark.as_bytes());
        if let Some((open, close)) = language.blocks.iter().find(|(open, _)| starts(open)) {
            let inner = i + open.len();
            let end = source.get(inner..).and_then(|s| memchr::memmem::find(s, close.as_bytes()));
            let end = end.map_or(source.len(), |p| inner + p);
            comments.verbatim(source, inner, end);
            comments.between(b"\n");
            at = end + close.len();
        } else if let Some(mark) = language.lines.iter().find(|m| starts(m)).filter(|_| begins(source, i)) {
            let inner = i + mark.len();
            let end = memchr::memchr(b'\n', rest).map_or(source.len(), |p| i + p);
            comments.verbatim(source, inner.min(end), end);
            comments.between(b"\n");
            at = end;
        } else if let Some((kind, mark)) = language.quotes.iter().enumerate().find(|(_, m)| starts(m)) {
            let inner = i + mark.len();
            let known = unclosed.get(kind).is_some_and(|u| i < *u);
            let closed = if known { Err(0) } else { closing(source, inner, mark) };
            let end = match closed {
                Ok(end) => Some(end),
                Err(_) if known => None,
                Err(until) => {
                    if let Some(slot) = unclosed.get_mut(kind) {
                        *slot = until;
                    }
                    None
                }
            };
            let Some(end) = end else {
                at = inner;
                continue;
            };
            if !last.is_some_and(|l| joins(source.get(l..i).unwrap_or_default())) {
                row_ends(&mut literals);
            }
            unescape(source, inner, end, &mut literals);
            at = end + mark.len();
            last = Some(at);
        } else if language.characters && rest.first() == Some(&b'\'') {
            at = i + character(rest);
        } else {
            at = i + 1;
        }
    }
    row_ends(&mut literals);
    out.extend(literals.view("string literal"));
    let many = comments.pieces() > 1;
    comments.close(many);
    out.extend(comments.view("code comment"));
}

fn row_ends(stitch: &mut Stitch) {
    let plain = stitch.plain();
    stitch.close(!plain);
}

/// A mark of a line comment counts at the beginning of a line, or behind a space or a sign: not inside `https://`, `$#`.
fn begins(source: &[u8], at: usize) -> bool {
    at.checked_sub(1)
        .and_then(|i| source.get(i))
        .is_none_or(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | b';' | b'{' | b'}' | b')' | b','))
}

/// Where the literal that begins at `from` is closed, or up to where it is not. One of a single mark ends with its line,
/// unless it goes on.
fn closing(source: &[u8], from: usize, mark: &str) -> Result<usize, usize> {
    let close = if mark == "[[" { "]]" } else { mark };
    let last = close.as_bytes().first().copied().unwrap_or(b'"');
    let many = close.len() > 1 || close == "`";
    let most = source.len().min(from + LITERAL);
    let mut at = from;
    loop {
        let rest = source.get(at..most).unwrap_or_default();
        let p = memchr::memchr3(last, b'\\', b'\n', rest).ok_or(most)?;
        match rest.get(p) {
            Some(b'\\') => at += p + 2,
            Some(b'\n') if !many => return Err(at + p),
            Some(b'\n') => at += p + 1,
            _ if source.get(at + p..).is_some_and(|s| s.starts_with(close.as_bytes())) => return Ok(at + p),
            _ => at += p + 1,
        }
    }
}

/// Length of the character literal at the head of `rest`, or of its mark alone.
fn character(rest: &[u8]) -> usize {
    let escaped = rest.get(1) == Some(&b'\\');
    let end = rest.iter().take(14).skip(if escaped { 3 } else { 2 }).position(|b| *b == b'\'');
    match end {
        Some(p) if escaped || p <= 3 => p + if escaped { 4 } else { 3 },
        _ => 1,
    }
}

/// What may stand between two literals that make one: signs, and no word but those of calls that join.
fn joins(gap: &[u8]) -> bool {
    gap.len() <= GAP
        && gap.iter().all(|b| {
            b.is_ascii_whitespace() || matches!(b, b'+' | b'.' | b',' | b'\\' | b'&' | b'|' | b'(' | b')')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: &str, language: &Language, text: &str) -> String {
        let mut out = Vec::new();
        views(text, language, &mut out);
        let found = out.into_iter().find(|v| v.name == name);
        found.map(|v| String::from_utf8(v.bytes).unwrap().trim().to_string()).unwrap_or_default()
    }

    #[test]
    fn comments_are_read_without_the_code_between_them() {
        let text =
            "let a = f(\"// no\"); // one\nlet b: &'static str = g('\\'', '\"'); /* two */ x // three\n";
        assert_eq!(view("code comment", &RUST, text), "one\n two \n three");
        assert_eq!(view("code comment", &PYTHON, "a = '#' # one\nb = 1 # two\n"), "one\n two");
    }

    #[test]
    fn literals_side_by_side_are_one_text() {
        assert_eq!(
            view("string literal", &C, "x = \"one tw\" \"o\" +\n  \" three\"; y(\"z\");"),
            "one two three"
        );
        assert_eq!(view("string literal", &PYTHON, "x = '''a\n\\x41''' \n"), "a\nA");
        assert_eq!(view("string literal", &C, "x = \"one\"; y = \"two\";"), "");
    }

    #[test]
    fn a_quotation_mark_alone_hides_nothing_behind_it() {
        assert_eq!(view("code comment", &C, "don't // one\nx // two\n"), "one\n two");
    }

    #[test]
    fn programs_without_a_name_show_in_their_lines() {
        assert!(language("", "", "int a;\nint main() {\n  return 0;\n}\n").is_some());
        assert!(language("", "", "import os\nfrom a import b\nx = 1\n").is_some());
        assert!(language("", "", "Dear all,\nthe import of goods is late.\nBye;\n").is_none());
        assert!(language("md", "a.md", "int a;\nint b;\n").is_none());
    }
}
