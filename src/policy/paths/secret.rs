//! What a secret is, by name and by place.

use super::names::{
    DATA_ENDS, DEBATABLE_NAMES, FIXTURES, KEY_STEMS, MIXED_TAILS, SECRET_DIRS, SECRET_ENDS, SECRET_NAMES,
    SECRET_STEMS, SECRET_TAILS, TEMPLATE_ENDS, TRANSLATIONS,
};
use super::{Secret, is_scratch, parts};
use crate::policy::Scope;
use crate::policy::custom::core;
use crate::policy::world::{Kind, World};
use std::path::{Path, PathBuf};

const OPERATOR: Secret = "a credential of the operator";
const PROJECT: Secret = "a secret file of the project";
const NAMED: Secret = "a file of credentials";
const PLACED: Secret = "a file in a directory for secrets";
const MIXED: Secret = "a configuration that often holds credentials";
const TRANSCRIPT: Secret = "a transcript of the client, which holds what it has ever been shown";

/// Whether a person may agree to reading `path`, which is secret because it is `why`: made-up material of tests, files
/// that are mostly settings. Where `why` says how a search or a program reaches a file, the file counts.
pub fn secret_asks(path: &Path, why: &str) -> bool {
    if [MIXED, PLACED].contains(&why) {
        return true;
    }
    if ![PROJECT, NAMED].contains(&why) && !why.starts_with("a secret file ") {
        return false;
    }
    let parts = parts(path);
    let Some((name, dirs)) = parts.split_last() else { return false };
    dirs.iter().any(|d| FIXTURES.contains(&d.as_str()))
        || DEBATABLE_NAMES.contains(&name.as_str())
        || name.ends_with(".tfvars")
        || name.starts_with(".env.") && name.rsplit('.').next().is_some_and(|end| CODE_ENDS.contains(&end))
}

/// Endings of programs, under which a `.env` is written by few.
const CODE_ENDS: &[&str] = &["ts", "js", "mjs", "cjs", "tsx", "py", "rs", "go", "java", "rb", "php"];

/// Whether reading `path` (as [`super::meanings`] gives it) reads a secret or what lies outside the scopes, and what kind.
pub fn secret(path: &Path, scope: &Scope) -> Option<Secret> {
    let custom = &scope.custom;
    if custom.outside_read(path, is_scratch(path, scope)) {
        return Some("outside the places that the configuration lets be read");
    }
    if custom.secret.fit(path) {
        return Some("a secret by the configuration");
    }
    built_in(path, scope).filter(|_| core(path) || !custom.secret_except.fit(path))
}

/// What the built-in policy takes for a secret.
fn built_in(path: &Path, scope: &Scope) -> Option<Secret> {
    let parts = parts(path);
    let name = parts.last()?.as_str();
    let refs: Vec<&str> = parts.iter().map(String::as_str).collect();
    if let Some(what) = system(&refs) {
        return Some(what);
    }
    if name.ends_with(".pub") {
        return None;
    }
    if secret_dir(&refs) || SECRET_TAILS.iter().any(|t| refs.ends_with(t)) {
        return Some(OPERATOR);
    }
    if transcript(&refs) {
        return Some(TRANSCRIPT);
    }
    if path.parent() == Some(&scope.home) && matches!(name, ".npmrc" | ".yarnrc.yml") {
        return Some(OPERATOR);
    }
    if path.starts_with(&scope.home)
        && MIXED_TAILS.iter().any(|t| refs.ends_with(t))
        && !super::in_project(path, scope)
    {
        return Some(MIXED);
    }
    if name == ".env" || name.starts_with(".env.") || (name.ends_with(".env") && name.len() > 4) {
        return (!env_template(name)).then_some(PROJECT);
    }
    if name.strip_prefix(".env").is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_lowercase())) {
        return (!template(name)).then_some(PROJECT);
    }
    if let [.., dir, _] = refs.as_slice()
        && TRANSLATIONS.contains(dir)
        && !SECRET_NAMES.contains(&name)
    {
        return None;
    }
    if secret_name(name) {
        return Some(NAMED);
    }
    in_secrets(&refs).then_some(PLACED)
}

/// Secrets of the system, and places that hand out what processes know.
fn system(refs: &[&str]) -> Option<Secret> {
    match refs {
        ["proc", _, .., "environ"] => Some("the environment of a process"),
        ["proc", _, .., "mem"] | ["proc", "kcore"] | ["dev", "mem" | "kmem" | "port"] => Some("memory"),
        [
            "etc",
            "shadow" | "gshadow" | "shadow-" | "gshadow-" | "sudoers" | "krb5.keytab" | "master.passwd",
        ]
        | ["etc", "sudoers.d", ..] => Some("a system password file"),
        ["etc", "ssh", n] if n.ends_with("_key") => Some("a host key"),
        ["dev", d] if ["sd", "nvme", "vd", "xvd", "mmcblk", "hd", "dm-"].iter().any(|p| d.starts_with(p)) => {
            Some("a raw disk")
        }
        ["dev", "input", ..] => Some("what is typed"),
        ["tmp" | "var", .., n] if n.starts_with("krb5cc") => Some("a Kerberos ticket"),
        ["run", "user", _, n, ..] if n.starts_with("krb5cc") || n.starts_with("keyring") || *n == "gnupg" => {
            Some("a keyring")
        }
        _ => None,
    }
}

/// The client's transcripts, by project; its notes and the long results that it reads itself are none.
fn transcript(refs: &[&str]) -> bool {
    let Some(at) = refs.windows(2).position(|w| w == [".claude", "projects"]) else { return false };
    match refs.get(at + 2..).unwrap_or_default() {
        [] | [_, "memory", ..] => false,
        below => !below.contains(&"tool-results") || refs.last().is_some_and(|n| n.ends_with(".jsonl")),
    }
}

fn secret_dir(parts: &[&str]) -> bool {
    SECRET_DIRS.iter().any(|(dir, open)| {
        parts
            .windows(dir.len())
            .enumerate()
            .any(|(at, w)| w == *dir && parts.get(at + dir.len()).is_some_and(|below| !open.contains(below)))
    })
}

/// A file of data or a key in a directory that is named for secrets, below the root's first directory.
fn in_secrets(refs: &[&str]) -> bool {
    let [_, dirs @ .., name] = refs else { return false };
    let (stem, end) = name.rsplit_once('.').unwrap_or((*name, ""));
    dirs.contains(&"secrets")
        && !stem.is_empty()
        && !end.is_empty()
        && !template(name)
        && !matches!(end, "xml" | "csv")
        && (DATA_ENDS.contains(&end) || KEY_ENDS.contains(&end))
        && !matches!(stem, "package" | "tsconfig" | "kustomization" | "readme" | "chart" | "values" | "cargo")
}

/// Endings of keys and certificates.
const KEY_ENDS: &[&str] = &["pem", "key", "der", "p8", "asc", "gpg"];

fn template(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|end| TEMPLATE_ENDS.contains(&end))
        || name.contains("example")
        || name.contains("sample")
        || name.contains("template")
}

/// As [`template`] for a `.env`: its last part says that it is one (`.env.local.example`), an ending of data aside.
/// What follows that part makes a file of its own of it (`.env.example.local`).
fn env_template(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(".env") else { return template(name) };
    let mut ends = rest.rsplit('.').filter(|e| !e.is_empty());
    let last = match ends.next() {
        Some("json" | "yml" | "yaml" | "toml" | "txt") => ends.next(),
        last => last,
    };
    last.is_some_and(|end| {
        TEMPLATE_ENDS.contains(&end) && !CODE_ENDS.contains(&end)
            || end.starts_with("example")
            || end.starts_with("sample")
            || end.starts_with("template")
    })
}

/// A copy of a key under the key's name: `id_rsa.bak`, `id_rsa_old`.
fn key_copy(name: &str) -> bool {
    KEY_STEMS.iter().any(|stem| {
        name.strip_prefix(stem).is_some_and(|rest| {
            let end = rest.trim_start_matches(['.', '-', '_']);
            end.len() < rest.len()
                && [
                    "bak", "old", "txt", "orig", "save", "key", "pem", "copy", "backup", "1", "2", "new",
                    "prod",
                ]
                .contains(&end)
        })
    })
}

/// A name that says "secret" anywhere.
fn secret_name(name: &str) -> bool {
    if template(name) {
        return false;
    }
    if SECRET_NAMES.contains(&name)
        || SECRET_ENDS.iter().any(|e| name.ends_with(e))
        || key_copy(name)
        || name.starts_with('.') && name.ends_with("_history")
    {
        return true;
    }
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, ""));
    if matches!(end, "pem" | "key" | "der" | "p8") {
        let private = end == "key" || ["key", "priv"].iter().any(|w| stem.contains(w));
        let public = if private {
            stem.contains("pub")
        } else {
            ["cert", "chain", "ca-", "ca_", "ca", "public", "pub", "bundle", "cacert"]
                .iter()
                .any(|w| stem == *w || (w.len() > 2 && stem.contains(w)))
        };
        return !public;
    }
    if !DATA_ENDS.contains(&end) {
        return false;
    }
    let stem = stem.trim_start_matches('.');
    SECRET_STEMS.contains(&stem)
        && !(end.is_empty() && matches!(stem, "secrets" | "secret" | "credential" | "creds"))
        || stem.starts_with("client_secret")
        || stem.contains("-firebase-adminsdk-")
        || (stem.starts_with("secrets.") || stem.ends_with(".secrets") || stem.starts_with("secrets-"))
}

/// Whether a directory's whole content must not be gathered: a place of secrets, or one that holds them.
pub fn secret_place(path: &Path, scope: &Scope) -> Option<Secret> {
    if path == Path::new("/")
        || scope.home.starts_with(path)
        || path == Path::new("/root")
        || path == Path::new("/home")
    {
        return Some("a tree that holds the operator's credentials");
    }
    let below = path.join("x");
    let parts = parts(&below);
    let refs: Vec<&str> = parts.iter().map(String::as_str).collect();
    if secret_dir(&refs) || transcript(&refs) {
        return Some("a directory of credentials");
    }
    matches!(refs.as_slice(), ["proc", "x"] | ["proc", _, "x"] | ["etc", "x"])
        .then_some("a system directory that holds secrets")
}

const SKIPPED: &[&str] =
    &[".git", "node_modules", "target", ".venv", "venv", "__pycache__", "dist", "build", ".cache"];

/// The first secret files below `dir` that `accept` lets through (it gets the path), at most a few, those first that nobody
/// is asked about; the walk ends after 3,000 names (300 outside the home and the project) or 6 levels, links are not followed.
pub fn secrets_below(
    dir: &Path,
    scope: &Scope,
    world: &dyn World,
    accept: &dyn Fn(&Path) -> bool,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![(dir.to_path_buf(), 0)];
    let mut seen = 0;
    let near = dir.starts_with(&scope.home) || dir.starts_with(&scope.project);
    let most = if near { 3_000 } else { 300 };
    while let Some((dir, depth)) = todo.pop() {
        for name in world.list(&dir) {
            seen += 1;
            if seen > most || found.len() >= 8 {
                return sorted(found);
            }
            let path = dir.join(&name);
            if secret(&path, scope).is_some() && accept(&path) && world.kind(&path) == Kind::File {
                found.push(path);
            } else if depth < 6
                && !SKIPPED.contains(&name.as_str())
                && !name.contains('.') | name.starts_with('.')
                && world.kind(&path) == Kind::Dir
                && world.resolve(&path) == path
            {
                todo.push((path, depth + 1));
            }
        }
    }
    sorted(found)
}

fn sorted(mut found: Vec<PathBuf>) -> Vec<PathBuf> {
    found.sort_by_key(|p| secret_asks(p, PROJECT));
    found
}
