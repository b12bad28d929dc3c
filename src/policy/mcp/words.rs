//! What a tool does, by the words of its name.

use serde_json::Value;

/// Most characters of a name that are looked at.
const NAME_MAX: usize = 512;

#[rustfmt::skip]
const WRITES: &[&str] = &[
    "write", "edit", "create", "move", "delete", "remove", "append", "save", "update", "put", "copy", "rename", "patch", "set", "insert", "apply",
    "replace", "modify", "touch", "mv", "cp", "rm", "unlink", "rmdir", "store", "add", "upload", "overwrite", "truncate", "mkdir", "make", "new", "install",
    "download", "export", "dump", "sync", "link", "symlink", "chmod", "chown", "extract", "unzip", "restore", "change", "generate", "render", "push", "commit",
];

#[rustfmt::skip]
const DELETES: &[&str] = &[
    "delete", "remove", "rm", "rmdir", "unlink", "destroy", "erase", "purge", "wipe", "trash", "clear", "clean", "empty", "del",
];

#[rustfmt::skip]
const RUNS: &[&str] = &[
    "exec", "execute", "executor", "run", "runner", "shell", "command", "commands", "cmd", "terminal", "term", "tmux", "pty", "console", "bash", "zsh", "sh",
    "process", "spawn", "eval", "evaluate", "ssh", "powershell", "repl", "container", "docker", "kubectl", "interpreter", "interpret", "invoke", "jupyter",
    "ipython", "notebook", "sandbox", "workflow", "script",
];

/// Of [`RUNS`], those whose plain text is a command too.
#[rustfmt::skip]
const SHELLS: &[&str] = &[
    "exec", "execute", "shell", "command", "cmd", "terminal", "term", "tmux", "pty", "console", "bash", "zsh", "sh", "spawn", "ssh", "powershell",
];

/// Words of tools whose code is JavaScript.
#[rustfmt::skip]
const JAVASCRIPT: &[&str] = &[
    "js", "javascript", "node", "nodejs", "deno", "bun", "browser", "playwright", "puppeteer", "chrome", "devtools", "page", "webpage", "typescript",
];

/// Words of tools whose code is Python.
const PYTHON: &[&str] =
    &["py", "python", "python3", "jupyter", "ipython", "notebook", "pandas", "ide", "kernel"];

#[rustfmt::skip]
const DATABASES: &[&str] = &[
    "sql", "postgres", "postgresql", "pg", "mysql", "mariadb", "sqlite", "sqlite3", "database", "databases", "db", "supabase", "duckdb", "bigquery",
    "snowflake", "clickhouse", "neon", "planetscale", "turso", "redis", "valkey", "mongo", "mongodb", "cassandra", "oracle", "mssql", "sqlserver", "dynamodb",
];

/// Words of tools that look something up in texts: their queries are prose.
const TEXTS: &[&str] = &["doc", "docs", "documentation", "search", "library", "web", "knowledge", "wiki"];

#[rustfmt::skip]
const BROWSERS: &[&str] = &[
    "browser", "browse", "playwright", "puppeteer", "selenium", "webdriver", "navigate", "goto", "chrome", "chromium", "firefox", "devtools", "screenshot", "lighthouse", "cypress", "stagehand",
];

/// Words of tools whose paths lie on another machine.
#[rustfmt::skip]
const REMOTE: &[&str] = &[
    "github", "gitlab", "bitbucket", "gitea", "forgejo", "codeberg", "azure", "devops", "notion", "confluence", "jira", "s3", "gdrive", "drive", "dropbox",
    "sharepoint", "onedrive", "box", "linear", "slack",
];

/// Words of tools that keep notes of their own: nothing of anybody's is lost with them.
const OWN: &[&str] = &[
    "memory",
    "knowledge",
    "todo",
    "todos",
    "task",
    "tasks",
    "thought",
    "thinking",
    "cache",
    "session",
    "tab",
];

const LISTS: &[&str] =
    &["list", "ls", "tree", "search", "find", "walk", "glob", "grep", "directory", "index", "scan", "dir"];

/// Verbs whose doing cannot be taken back, or is seen by others.
#[rustfmt::skip]
const CONSEQUENCES: &[&str] = &[
    "delete", "destroy", "drop", "purge", "wipe", "erase", "terminate", "merge", "send", "publish", "unpublish", "transfer", "pay", "charge", "refund",
    "purchase", "buy", "sell", "withdraw", "deploy", "undeploy", "revoke", "grant", "invite", "share", "tweet", "shutdown", "reboot", "uninstall", "rollback",
];

/// Verbs that only look.
#[rustfmt::skip]
const LOOKS: &[&str] = &[
    "get", "list", "read", "search", "fetch", "describe", "show", "find", "view", "count", "check", "query", "explain", "preview", "validate", "lookup",
];

/// The verb of [`CONSEQUENCES`] that the name of an operation starts with.
pub(super) fn consequence(operation: &str) -> Option<&'static str> {
    let first = words(operation).into_iter().next()?;
    CONSEQUENCES.iter().find(|verb| **verb == first).copied()
}

/// What a call does, as far as names tell.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// Paths among the arguments are written.
    pub writes: bool,
    /// Paths among the arguments are deleted.
    pub deletes: bool,
    /// Something among the arguments runs.
    pub runs: bool,
    /// Plain text among the arguments is a command.
    pub shell: bool,
    /// Code is JavaScript.
    pub javascript: bool,
    /// Code is Python.
    pub python: bool,
    /// Text among the arguments is a database's.
    pub queries: bool,
    /// Addresses are opened in a browser of this machine.
    pub browses: bool,
    /// Paths lie on another machine.
    pub remote: bool,
    /// Paths are listed or searched.
    pub lists: bool,
    /// The verb whose doing a person has to agree to.
    pub consequence: Option<&'static str>,
    /// A thing is made.
    pub makes: bool,
}

impl Uses {
    /// Of a tool's name: `mcp__SERVER__TOOL`, or a name alone.
    pub fn of(tool: &str) -> Uses {
        let (server, verb) = match tool.strip_prefix("mcp__") {
            Some(rest) => rest.split_once("__").unwrap_or(("", rest)),
            None => ("", tool),
        };
        let (server, own) = (words(server), words(verb));
        let here = |list: &[&str]| own.iter().any(|w| list.contains(&w.as_str()));
        let any = |list: &[&str]| here(list) || server.iter().any(|w| list.contains(&w.as_str()));
        let looks = own.first().is_some_and(|w| LOOKS.contains(&w.as_str()));
        let shell = any(SHELLS);
        let consequence = CONSEQUENCES.iter().find(|c| own.iter().any(|w| w == *c)).copied();
        Uses {
            writes: here(WRITES),
            deletes: here(DELETES),
            runs: any(RUNS),
            shell,
            javascript: any(JAVASCRIPT),
            python: any(PYTHON),
            queries: any(DATABASES) || here(&["query"]) && !any(TEXTS),
            browses: any(BROWSERS),
            remote: any(REMOTE),
            lists: here(LISTS),
            // What is sent to a terminal is a command, and is judged as one.
            consequence: consequence.filter(|c| !(looks || any(OWN) || *c == "send" && shell)),
            makes: here(&[
                "create", "make", "new", "update", "set", "fork", "edit", "change", "add", "upload",
            ]),
        }
    }
}

/// The words of a name in lower case, at most [`NAME_MAX`] characters of it: they end where no letter or digit follows, and
/// where a capital follows a small letter.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut small = false;
    for c in name.chars().take(NAME_MAX) {
        if (!c.is_alphanumeric() || c.is_uppercase() && small) && !word.is_empty() {
            out.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        small = c.is_lowercase() || c.is_numeric();
    }
    if !word.is_empty() {
        out.push(word);
    }
    out
}

/// Whether the arguments say that what is made is everybody's to see.
pub(super) fn public(input: &Value) -> bool {
    let Some(map) = input.as_object() else { return false };
    map.iter().any(|(key, value)| match (words(key).last().map(String::as_str), value) {
        (Some("public"), Value::Bool(true)) | (Some("private" | "secret"), Value::Bool(false)) => true,
        (Some("visibility" | "access" | "acl"), Value::String(s)) => {
            words(s).iter().any(|w| matches!(w.as_str(), "public" | "everyone" | "world"))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_by_whole_words() {
        assert_eq!(words("executeCode"), ["execute", "code"]);
        assert_eq!(words("query-docs"), ["query", "docs"]);
        assert_eq!(words("browser_navigate2"), ["browser", "navigate2"]);
        let computer = Uses::of("mcp__computer__read");
        assert!(!computer.writes && !computer.runs);
        assert!(Uses::of("mcp__fs__set_contents").writes);
        assert!(Uses::of("mcp__docker__container").runs);
        assert!(!Uses::of("mcp__context7__query-docs").queries);
        assert_eq!(Uses::of("mcp__gmail__send_email").consequence, Some("send"));
        assert_eq!(Uses::of("mcp__gitlab__get_merge_request").consequence, None);
        assert_eq!(Uses::of("mcp__memory__delete_entities").consequence, None);
        assert_eq!(Uses::of("mcp__term__send_keys").consequence, None);
    }
}
