//! Tools outside the client (MCP servers, tools this version does not know): their arguments by shape.

mod keys;
mod words;

use super::world::Kind;
use super::{Decision, Scope, Verdict, World, paths, shell, tools, web};
use keys::{
    CHOICE_KEYS, CODE_KEYS, COMMAND_KEYS, CONTENT_KEYS, DIR_WORDS, HOST_WORDS, NAME_WORDS, PATH_WORDS,
    PROSE_WORDS, SAMPLES, SCHEMES, SHELL_KEYS, STARTS, URL_WORDS, WRITTEN_KEYS,
};
use serde_json::{Map, Value};
use std::net::Ipv4Addr;
use std::path::Path;
use words::{Uses, words};

/// Longest text that is taken for an address or a path, in bytes; beyond [`shell::limits::PROGRAM`] a command is denied.
const PLACE_MAX: usize = 4096;
/// Most paths of one call that are judged; at the bound a person is asked.
const PLACES_MAX: usize = 2_000;
/// Most commands of one call that are judged; at the bound a person is asked.
const COMMANDS_MAX: usize = 64;
/// Longest text that is read as JSON inside JSON, in bytes, and as a text that may hold a password.
const INNER_MAX: usize = 64 * 1024;

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
    let uses = Uses::of(tool);
    let consequence = uses.consequence;
    let makes_public = uses.makes && words::public(input);
    let mut call =
        Call { uses, scope, world, found: Decision::SILENT, places: 0, commands: 0, deletes_here: false };
    call.visit("", input, false);
    let Call { found, deletes_here, .. } = call;
    let asked = match consequence {
        Some(verb) if !deletes_here => Decision::ask(
            "mcp.consequence",
            format!("The tool can {verb} what is not easily brought back. A person has to agree."),
        ),
        _ if makes_public => Decision::ask(
            "mcp.public",
            "What the tool makes would be everybody's to see. A person has to agree.",
        ),
        _ => Decision::SILENT,
    };
    found.or(asked)
}

/// A name in the form that lists of keys have.
fn flat(key: &str) -> String {
    key.chars().filter(|c| c.is_alphanumeric()).take(64).flat_map(char::to_lowercase).collect()
}

/// `text` as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// An argument vector as a command line.
fn joined(items: &[Value]) -> Option<String> {
    let words: Option<Vec<String>> = items.iter().map(|v| v.as_str().map(quoted)).collect();
    words.filter(|w| !w.is_empty()).map(|w| w.join(" "))
}

/// One call while it is judged.
struct Call<'a> {
    uses: Uses,
    scope: &'a Scope,
    world: &'a dyn World,
    found: Decision,
    places: usize,
    commands: usize,
    /// A path of this machine is deleted, and has been judged.
    deletes_here: bool,
}

impl Call<'_> {
    fn say(&mut self, seen: Decision) {
        self.found = std::mem::take(&mut self.found).or(seen);
    }

    /// Every string in `value` with the key it stands under; `serde_json` bounds the depth at 128. `inner`: it comes out of
    /// a string itself.
    fn visit(&mut self, key: &str, value: &Value, inner: bool) {
        if self.found.verdict == Verdict::Deny {
            return;
        }
        match value {
            Value::String(text) => self.text(key, text, inner),
            Value::Array(items) => {
                let name = flat(key);
                let vector = COMMAND_KEYS.contains(&name.as_str()) || self.uses.shell && name == "args";
                let first = items.first().and_then(Value::as_str);
                match joined(items) {
                    Some(line) if vector && first.is_some_and(|f| !f.contains(char::is_whitespace)) => {
                        self.command(&line, true);
                        items.iter().for_each(|item| self.visit("", item, inner));
                    }
                    _ => items.iter().for_each(|item| self.visit(key, item, inner)),
                }
            }
            Value::Object(map) => {
                self.object(map);
                for (key, value) in map {
                    self.key(key);
                    self.visit(key, value, inner);
                }
            }
            _ => {}
        }
    }

    /// What several members of one object mean together.
    fn object(&mut self, map: &Map<String, Value>) {
        let strings = |list: &'static [&'static str]| {
            map.iter().filter_map(move |(k, v)| {
                let last = words(k).pop()?;
                list.contains(&last.as_str()).then_some(v.as_str()?)
            })
        };
        let written = map.keys().any(|k| WRITTEN_KEYS.contains(&flat(k).as_str()));
        if written && !self.uses.lists && strings(PATH_WORDS).next().is_some() {
            self.uses.writes = true;
        }
        let program = map.iter().find(|(k, _)| COMMAND_KEYS.contains(&flat(k).as_str()));
        let args =
            map.iter().find(|(k, _)| matches!(flat(k).as_str(), "args" | "arguments" | "argv" | "params"));
        if let (Some((_, Value::String(program))), Some((_, Value::Array(args)))) = (program, args)
            && let Some(args) = joined(args)
        {
            self.command(&format!("{program} {args}"), self.uses.runs);
        }
        let pairs: Vec<String> = strings(DIR_WORDS)
            .take(4)
            .flat_map(|dir| {
                strings(NAME_WORDS)
                    .filter(move |name| *name != dir)
                    .take(4)
                    .map(move |name| format!("{}/{name}", dir.trim_end_matches('/')))
            })
            .filter(|path| !path.contains(char::is_whitespace))
            .collect();
        for path in pairs {
            self.place("path", &path);
        }
    }

    /// A member's name can carry what a value can.
    fn key(&mut self, key: &str) {
        if holds_secret(key) {
            self.say(credential());
        }
        if key.starts_with(['/', '~', '.']) || key.contains('/') || is_file_address(key) {
            self.place("", key);
        }
    }

    fn text(&mut self, key: &str, text: &str, inner: bool) {
        if holds_secret(text) {
            return self.say(credential());
        }
        if text.len() <= INNER_MAX && holds_password(text) {
            self.say(Decision::ask(
                "mcp.secret",
                "An argument holds something that looks like a password or key. A person has to agree.",
            ));
        }
        let name = flat(key);
        if CONTENT_KEYS.contains(&name.as_str()) {
            return;
        }
        let key_words = words(key);
        let prose = key_words.iter().any(|w| PROSE_WORDS.contains(&w.as_str()));
        if !prose {
            self.programs(&name, text);
        }
        if CHOICE_KEYS.contains(&name.as_str())
            && let Some(verb) = words::consequence(text)
        {
            self.say(Decision::ask(
                "mcp.consequence",
                format!("The call can {verb} what is not easily brought back. A person has to agree."),
            ));
        }
        if !prose && !matches!(name.as_str(), "query" | "q" | "text" | "search" | "pattern") {
            self.unkeyed(text);
        }
        let queries =
            self.uses.queries && !prose || matches!(name.as_str(), "sql" | "statement" | "statements");
        if queries && shell::destructive_sql(text) {
            self.say(Decision::ask("mcp.sql", "The statement destroys data. A person has to agree."));
        }
        let trimmed = text.trim();
        if !inner
            && trimmed.len() <= INNER_MAX
            && trimmed.starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str::<Value>(trimmed)
        {
            return self.visit(key, &value, true);
        }
        if !self.address(&key_words, trimmed) {
            self.place(key, trimmed);
        }
    }

    /// Text that runs.
    fn programs(&mut self, name: &str, text: &str) {
        if COMMAND_KEYS.contains(&name) {
            self.command(text, self.uses.shell);
        } else if self.uses.shell && SHELL_KEYS.contains(&name) {
            self.command(text, false);
        }
        if self.uses.runs && CODE_KEYS.contains(&name) {
            let (js, py) = (self.uses.javascript, self.uses.python);
            if py || !js {
                self.command(&format!("python3 -c {}", quoted(text)), false);
            }
            if js || !py {
                self.command(&format!("node -e {}", quoted(text)), false);
            }
            if !js && !py && !self.uses.shell && !COMMAND_KEYS.contains(&name) {
                self.command(text, false);
            }
        }
    }

    /// A text under any name that starts like a command and is one that is stopped.
    fn unkeyed(&mut self, text: &str) {
        let first = text.split_whitespace().next().unwrap_or_default();
        let starts = STARTS.contains(&first.rsplit('/').next().unwrap_or_default());
        if !starts || text.len() > PLACE_MAX || text.contains('\0') {
            return;
        }
        self.commands += 1;
        if self.commands > COMMANDS_MAX {
            return self.say(bound());
        }
        let seen = shell::judge(text, self.scope, self.world);
        if seen.verdict == Verdict::Deny && !seen.rule.starts_with("shell.") {
            let reason = format!("An argument is a command that is stopped: {}", seen.reason);
            self.say(Decision::ask(seen.rule, reason));
        }
    }

    /// Judges a command line. `certain`: it is one, so that what cannot be read is denied.
    fn command(&mut self, line: &str, certain: bool) {
        self.commands += 1;
        if self.commands > COMMANDS_MAX {
            return self.say(bound());
        }
        if line.contains('\0') {
            return;
        }
        let seen = shell::judge(line, self.scope, self.world);
        if certain || seen.rule != "shell.syntax" {
            self.say(seen);
        }
    }

    /// Judges an address; `false` when the text is none.
    fn address(&mut self, key: &[String], text: &str) -> bool {
        let keyed = |list: &[&str]| key.iter().any(|w| list.contains(&w.as_str()));
        let spaced = text.contains(char::is_whitespace);
        let scope = self.scope;
        let custom = &scope.custom;
        let scheme =
            text.split_once(':').filter(|(s, _)| s.len() <= 16).map(|(s, rest)| (s.to_lowercase(), rest));
        if let Some((scheme, rest)) = scheme
            && SCHEMES.contains(&scheme.as_str())
            && (rest.starts_with(['/', '\\']) || matches!(scheme.as_str(), "javascript" | "view-source"))
        {
            if !spaced || keyed(URL_WORDS) && scheme == "javascript" {
                let own = self.uses.browses && web::own_server(text);
                let seen = if own { Decision::SILENT } else { web::fetch(text, web::Fetcher::Tool, custom) };
                self.say(seen);
            }
            return true;
        }
        if spaced || text.is_empty() || text.len() > PLACE_MAX || text.starts_with(['/', '.', '~']) {
            return false;
        }
        let head = text.split(['/', ':', '?']).next().unwrap_or_default();
        let number = head.parse::<Ipv4Addr>().is_ok();
        let host =
            number || head.eq_ignore_ascii_case("localhost") || head.contains('.') && !head.ends_with('.');
        if host && keyed(URL_WORDS) && !text.contains("://") && !self.is_there(text) {
            let own = self.uses.browses && web::own_server(text);
            let seen = if own {
                Decision::SILENT
            } else {
                web::fetch(&format!("http://{text}"), web::Fetcher::Tool, custom)
            };
            let stopped = seen.verdict > Verdict::None;
            self.say(seen);
            return stopped;
        }
        if number || keyed(HOST_WORDS) && !text.contains("://") {
            // A machine to connect to: the developer's own are ordinary, those that hand out credentials are not.
            let seen = web::fetch(&format!("http://{text}"), web::Fetcher::Command, custom);
            if matches!(seen.rule, "web.metadata" | "web.data" | "web.secret" | "web.denied" | "web.scope") {
                self.say(seen);
            }
            return number;
        }
        false
    }

    fn is_there(&self, text: &str) -> bool {
        paths::meanings(text, &self.scope.cwd, self.scope, self.world)
            .iter()
            .any(|p| self.world.kind(p) != Kind::Missing)
    }

    /// Judges a text that may be a path, as it is and with its percent signs decoded.
    fn place(&mut self, key: &str, text: &str) {
        if text.is_empty() || text.len() > PLACE_MAX || text.contains(['\n', '\0']) {
            return;
        }
        let keyed = words(key).iter().any(|w| PATH_WORDS.contains(&w.as_str()));
        let spaced = text.contains(char::is_whitespace);
        let absolute = text.starts_with(['/', '~']) || is_file_address(text);
        if !(keyed || absolute || text.starts_with('.') || !spaced && text.contains('/')) {
            return;
        }
        // Prose that starts like a path is none, unless the path is there.
        if spaced && !(keyed && absolute && flat(key).contains("path")) && !self.is_there(text) {
            return;
        }
        self.one_place(text);
        let decoded = paths::percent_decoded(text);
        if decoded != text && !decoded.contains(['\n', '\0']) {
            self.one_place(&decoded);
        }
    }

    fn one_place(&mut self, text: &str) {
        self.places += 1;
        if self.places > PLACES_MAX {
            return self.say(bound());
        }
        let mut texts = vec![text];
        if let Some(at) = text.find(['*', '?', '[', '{']) {
            self.pattern(text);
            let dir = text.get(..at).and_then(|t| t.rsplit_once('/')).map_or(".", |(dir, _)| dir);
            texts.push(if dir.is_empty() { "/" } else { dir });
        }
        for text in texts {
            for path in paths::meanings(text, &self.scope.cwd, self.scope, self.world) {
                self.one_path(&path);
            }
        }
    }

    fn one_path(&mut self, path: &Path) {
        if let Some(what) = paths::secret(path, self.scope)
            && !(self.world.kind(path) == Kind::Dir && path.ends_with(".env"))
        {
            self.say_of_path(tools::secret_denied(path, what));
        } else if let Some(what) = paths::secret_place(path, self.scope) {
            if what == "a directory of credentials" {
                self.say_of_path(tools::secret_denied(path, what));
            } else if self.uses.lists && what == "a tree that holds the operator's credentials" {
                self.say(Decision::ask(
                    "secret.read",
                    format!("{} is {what}. Name the directory that is meant.", tools::shown(path)),
                ));
            }
        }
        if self.uses.writes
            && let Some(what) = paths::protected(path, self.scope)
        {
            self.say_of_path(tools::protected_denied(path, what));
        }
        if self.uses.deletes && !self.uses.remote {
            self.deletes_here = true;
            let how = if self.world.kind(path) == Kind::Dir { "-rf" } else { "-f" };
            self.command(&format!("rm {how} -- {}", quoted(&path.to_string_lossy())), true);
        }
    }

    /// A denial that names a path counts for this machine; on another one a person is asked.
    fn say_of_path(&mut self, seen: Decision) {
        let verdict = if self.uses.remote { seen.verdict.min(Verdict::Ask) } else { seen.verdict };
        self.say(Decision { verdict, ..seen });
    }

    /// A pattern that is made for secrets.
    fn pattern(&mut self, text: &str) {
        let last = text.rsplit('/').next().unwrap_or_default();
        let mut alternatives =
            last.split(['{', '}', ',']).filter(|a| a.contains(|c: char| c.is_alphanumeric() || c == '?'));
        let made = |a: &str| SAMPLES.iter().any(|s| shell::glob_matches(a, s)) && !a.starts_with("*.");
        let env = |a: &str| matches!(a, "*.env" | "*.env*" | "*.env.*" | "*env" | "*env*");
        if last == ".*" || alternatives.any(|a| made(a) || env(a)) {
            self.say(Decision::ask(
                "secret.read",
                "The pattern fits files that hold secrets. Name the files that are meant.",
            ));
        }
    }
}

/// Whether a text is a `file:` address, in any case.
fn is_file_address(text: &str) -> bool {
    text.get(..5).is_some_and(|s| s.eq_ignore_ascii_case("file:"))
}

/// Whether a text holds a password or key under its name, or in the form of one.
pub fn holds_password(text: &str) -> bool {
    text.len() >= 12 && !crate::gate::secrets::find(text).is_empty()
}

fn credential() -> Decision {
    Decision::deny(
        "mcp.secret",
        "An argument holds something shaped like a credential. Credentials do not go to tools outside the client.",
    )
}

fn bound() -> Decision {
    Decision::ask(
        "mcp.bound",
        "The call names more paths or commands than can be judged. Make smaller calls.",
    )
}
