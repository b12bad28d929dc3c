//! Texts in a program of another language.

use super::expand::secret_variable;
use super::language::Language;
use super::limits;
use super::word::ansi_c;

/// Whether a program prints the environment.
pub(super) fn environment(language: Language, code: &str, literals: &[String]) -> bool {
    let prints = [
        "print", "console.", "write", "puts", "echo", "say", "p ", "dump", "log(", "inspect", "send", "post",
    ]
    .iter()
    .any(|w| code.contains(w))
        || language == Language::Node;
    let whole = |name: &str| {
        code.match_indices(name).any(|(at, _)| {
            let rest = code[at + name.len()..].trim_start();
            !rest.starts_with(['.', '['])
                || ["items(", "copy(", ".items", ".values", ".copy", ".to_h", ".each", ".inspect", ".map"]
                    .iter()
                    .any(|m| rest.starts_with(m))
        })
    };
    let names = literals.iter().any(|l| {
        l.len() < 64
            && l.contains('_')
            && l.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit())
            && secret_variable(l)
    });
    let access = [
        "environ",
        "getenv",
        "process.env",
        "ENV[",
        "ENV.fetch",
        "$ENV{",
        "%ENV",
        "ENVIRON",
        "$_ENV",
        "Deno.env",
        "ENV.to_h",
    ]
    .iter()
    .any(|w| code.contains(w));
    let member = code.match_indices("process.env.").any(|(at, m)| {
        secret_variable(
            &code[at + m.len()..]
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect::<String>(),
        )
    }) || code.match_indices("$ENV{").any(|(at, m)| {
        secret_variable(
            &code[at + m.len()..]
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect::<String>(),
        )
    });
    prints
        && (names && access
            || member
            || whole("os.environ")
            || whole("process.env")
            || code.contains("%ENV")
            || code.contains("ENV.to_h")
            || code.contains("ENV.each")
            || code.contains("ENV.inspect")
            || language == Language::Awk && code.contains("in ENVIRON")
            || language == Language::Php
                && (code.contains("getenv()") || code.contains("phpinfo") || code.contains("$_ENV)")))
}

/// String literals of most languages: `'…'`, `"…"`, `` `…` ``, escapes resolved; ones that are added up are joined.
pub(super) fn literals(code: &str) -> Vec<String> {
    let chars: Vec<char> = code.chars().collect();
    let mut out: Vec<String> = Vec::new();
    let mut i = 0;
    let mut gap_from: Option<usize> = None;
    while i < chars.len() && out.len() < limits::LITERALS {
        let quote = chars[i];
        if !matches!(quote, '\'' | '"' | '`') {
            i += 1;
            continue;
        }
        let triple = chars.get(i + 1) == Some(&quote) && chars.get(i + 2) == Some(&quote) && quote != '`';
        let start = i + if triple { 3 } else { 1 };
        let mut text = String::new();
        let mut j = start;
        let mut closed = false;
        while let Some(&c) = chars.get(j) {
            if c == '\\' {
                text.push(c);
                if let Some(n) = chars.get(j + 1) {
                    text.push(*n);
                }
                j += 2;
                continue;
            }
            if c == quote && (!triple || chars.get(j + 1) == Some(&quote) && chars.get(j + 2) == Some(&quote))
            {
                closed = true;
                break;
            }
            text.push(c);
            j += 1;
        }
        if !closed {
            // A lone apostrophe, as in a comment.
            i += 1;
            continue;
        }
        let value = if text.contains('\\') { ansi_c(&text) } else { text };
        let gap: String =
            gap_from.map(|g| chars[g..i].iter().filter(|c| !c.is_whitespace()).collect()).unwrap_or_default();
        let glued = gap_from.is_some()
            && matches!(gap.as_str(), "+" | "." | "" | ".." | "<<" | "+b" | "~")
            && !out.is_empty();
        if glued && (!gap.is_empty() || gap_from == Some(i)) {
            if let Some(last) = out.last_mut() {
                last.push_str(&value);
            }
        } else {
            out.push(value);
        }
        i = j + if triple { 3 } else { 1 };
        gap_from = Some(i);
    }
    // perl's bare file names: `<.env>`, `q(…)`.
    for start in ["q(", "q{", "qq(", "qq{", "q/", "q[", "qw("] {
        for (at, _) in code.match_indices(start).take(8) {
            let rest = &code[at + start.len()..];
            let close = match start.chars().last() {
                Some('(') => ')',
                Some('{') => '}',
                Some('[') => ']',
                _ => '/',
            };
            if let Some(end) = rest.find(close) {
                out.extend(rest[..end].split_whitespace().map(str::to_owned));
                out.push(rest[..end].to_owned());
            }
        }
    }
    out
}

/// Neighbouring literals joined as path parts: `join(home, '.ssh', 'id_rsa')`, `home / '.ssh' / 'id_rsa'`.
pub(super) fn joins(literals: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    // `'.%s' % 'env'`, `'.{}'.format('env')`, `sprintf(".%s", "env")`.
    for (i, pattern) in literals.iter().enumerate().take(128) {
        if pattern.len() < 64 && (pattern.contains("%s") || pattern.contains("{}")) {
            let mut text = pattern.clone();
            for part in literals.iter().skip(i + 1).take(3).filter(|p| p.len() < 64) {
                let mark = if text.contains("%s") { "%s" } else { "{}" };
                text = text.replacen(mark, part, 1);
            }
            out.push(text);
        }
    }
    for w in 2..=3 {
        for part in literals.windows(w).take(128) {
            if part.iter().all(|p| !p.is_empty() && p.len() < 64 && !p.contains(' ')) {
                out.push(part.iter().map(|p| p.trim_matches('/')).collect::<Vec<_>>().join("/"));
                out.push(part.concat());
            }
        }
    }
    out
}

pub(super) fn globs(literals: &[String]) -> Vec<String> {
    literals
        .iter()
        .filter(|l| {
            l.len() < 128
                && l.contains(['*', '?', '['])
                && !l.contains([' ', '(', '\\', '\'', '"', '$', '`', '{', ';', '&', '|', '<', '>', '#', '\n'])
                && l.chars().any(|c| c == '.' || c == '/')
        })
        .take(8)
        .cloned()
        .collect()
}
