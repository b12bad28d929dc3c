//! Tools outside the client (MCP servers, tools this version does not know): their arguments by shape.

use super::{Decision, Scope, Verdict, World, paths, shell, web};
use serde_json::Value;

/// Longest text that is searched for credentials, in bytes.
const TEXT_MAX: usize = 1 << 20;

/// Whether `text` holds something shaped like a credential.
pub fn holds_secret(text: &str) -> bool {
    const SHAPES: &[(&str, usize)] = &[
        ("sk-ant-", 20),
        ("sk_live_", 16),
        ("rk_live_", 16),
        ("sk_test_", 20),
        ("sk-proj-", 20),
        ("ghp_", 30),
        ("gho_", 30),
        ("ghs_", 30),
        ("ghu_", 30),
        ("ghr_", 30),
        ("github_pat_", 22),
        ("glpat-", 16),
        ("xoxb-", 20),
        ("xoxp-", 20),
        ("xoxa-", 20),
        ("xoxs-", 20),
        ("xapp-", 20),
        ("npm_", 30),
        ("pypi-", 40),
        ("AKIA", 16),
        ("ASIA", 16),
        ("AIza", 30),
        ("ya29.", 20),
        ("hf_", 30),
        ("dop_v1_", 30),
        ("SG.", 30),
        ("shpat_", 20),
        ("eyJhbGciOi", 40),
        ("cio", 32),
        ("-----BEGIN ", 10),
        ("AGE-SECRET-KEY-", 20),
        ("GOCSPX-", 20),
        ("lin_api_", 20),
        ("ops_ey", 30),
        ("vault:v1:", 20),
        ("hvs.", 20),
    ];
    let text = text.get(..TEXT_MAX).unwrap_or(text);
    SHAPES.iter().any(|(start, more)| {
        text.match_indices(start).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_ascii_alphanumeric()) {
                return false;
            }
            let rest = &text[at + start.len()..];
            if *start == "-----BEGIN " {
                return rest.get(..40.min(rest.len())).is_some_and(|r| r.contains("PRIVATE KEY"));
            }
            rest.chars()
                .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/'))
                .count()
                >= *more
        })
    })
}

/// What may be said about a call of a tool that the client does not implement itself.
pub fn judge(tool: &str, input: &Value, scope: &Scope, world: &dyn World) -> Decision {
    let name = tool.to_lowercase();
    let verb = |words: &[&str]| words.iter().any(|w| name.contains(w));
    let kind = Uses {
        writes: verb(&[
            "write", "edit", "create", "move", "delete", "remove", "append", "save", "update", "put", "copy",
            "rename", "patch",
        ]),
        runs: verb(&["exec", "run", "shell", "command", "terminal", "bash", "process", "spawn"]),
        queries: verb(&["sql", "query", "postgres", "mysql", "sqlite", "database", "db"]),
    };
    let mut answer = Decision::SILENT;
    walk("", input, &mut |key, text, is_key| {
        if answer.verdict < Verdict::Deny {
            let one = value(key, text, is_key, &kind, scope, world);
            answer = std::mem::take(&mut answer).or(one);
        }
    });
    answer
}

struct Uses {
    writes: bool,
    runs: bool,
    queries: bool,
}

/// Every string in `value` with the key it stands under; `serde_json` bounds the depth at 128.
fn walk(key: &str, value: &Value, f: &mut impl FnMut(&str, &str, bool)) {
    match value {
        Value::String(s) => f(key, s, false),
        Value::Array(a) => a.iter().for_each(|v| walk(key, v, f)),
        Value::Object(o) => {
            for (k, v) in o {
                f(k, k, true);
                walk(k, v, f);
            }
        }
        _ => {}
    }
}

fn value(key: &str, text: &str, is_key: bool, uses: &Uses, scope: &Scope, world: &dyn World) -> Decision {
    if holds_secret(text) {
        return Decision::deny(
            "mcp.secret",
            "An argument holds something shaped like a credential. Credentials do not go to tools outside the client.",
        );
    }
    if is_key || text.len() > 64 * 1024 {
        return Decision::SILENT;
    }
    let key = key.to_lowercase();
    if uses.runs
        && matches!(
            key.as_str(),
            "command" | "cmd" | "script" | "shell" | "commands" | "input" | "line" | "args"
        )
    {
        let seen = shell::judge(text, scope, world);
        if seen.verdict > Verdict::None {
            return seen;
        }
    }
    if (uses.queries || key == "sql" || key == "statement") && shell::destructive_sql(text) {
        return Decision::ask("mcp.sql", "The statement destroys data. A person has to agree.");
    }
    let lower = text.trim_start().to_lowercase();
    if lower.starts_with("http://")
        || lower.starts_with("https://")
        || (key.contains("url") && lower.contains("://") && !lower.starts_with("file:"))
    {
        return if text.trim().contains(char::is_whitespace) {
            Decision::SILENT
        } else {
            web::fetch(text, web::Fetcher::Tool, &scope.custom)
        };
    }
    let path_key = [
        "path",
        "file",
        "uri",
        "filename",
        "source",
        "destination",
        "src",
        "dest",
        "dir",
        "directory",
        "root",
        "folder",
        "location",
        "target",
    ]
    .iter()
    .any(|k| key.contains(k));
    let path_text =
        ["/", "~/", "./", "../", "file:"].iter().any(|s| lower.starts_with(s)) || text.starts_with('.');
    if !(path_key || path_text) || text.contains('\n') || text.len() > 4096 {
        return Decision::SILENT;
    }
    for path in paths::meanings(text.trim(), &scope.cwd, scope, world) {
        if let Some(what) = paths::secret(&path, scope) {
            return super::tools::secret_denied(&path, what);
        }
        if uses.writes
            && let Some(what) = paths::protected(&path, scope)
        {
            return super::tools::protected_denied(&path, what);
        }
    }
    Decision::SILENT
}
