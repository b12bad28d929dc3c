//! What a secret is, by name and by place.

use super::names::{SECRET_DIRS, SECRET_ENDS, SECRET_NAMES, SECRET_TAILS, TEMPLATE_ENDS};
use super::{Secret, is_scratch, parts};
use crate::policy::Scope;
use crate::policy::custom::core;
use crate::policy::world::{Kind, World};
use std::path::{Path, PathBuf};

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
    match refs.as_slice() {
        ["proc", _, .., "environ"] => return Some("the environment of a process"),
        ["proc", _, .., "mem"] | ["proc", "kcore"] | ["dev", "mem" | "kmem" | "port"] => {
            return Some("memory");
        }
        [
            "etc",
            "shadow" | "gshadow" | "shadow-" | "gshadow-" | "sudoers" | "krb5.keytab" | "master.passwd",
        ]
        | ["etc", "sudoers.d", ..] => return Some("a system password file"),
        ["etc", "ssh", n] if n.ends_with("_key") => return Some("a host key"),
        ["dev", d] if ["sd", "nvme", "vd", "xvd", "mmcblk", "hd", "dm-"].iter().any(|p| d.starts_with(p)) => {
            return Some("a raw disk");
        }
        _ => {}
    }
    if name.ends_with(".pub") {
        return None;
    }
    if secret_dir(&refs) || SECRET_TAILS.iter().any(|t| refs.ends_with(t)) {
        return Some("a credential of the operator");
    }
    if name == ".npmrc" && path.parent() == Some(&scope.home) {
        return Some("a credential of the operator");
    }
    if name == ".env" || name.starts_with(".env.") || (name.ends_with(".env") && name.len() > 4) {
        return (!template(name)).then_some("a secret file of the project");
    }
    if name.starts_with(".env") && name.len() > 4 && !name[4..].starts_with(|c: char| c.is_ascii_lowercase())
    {
        return (!template(name)).then_some("a secret file of the project");
    }
    secret_name(name).then_some("a file of credentials")
}

fn secret_dir(parts: &[&str]) -> bool {
    SECRET_DIRS.iter().any(|(dir, open)| {
        parts
            .windows(dir.len())
            .enumerate()
            .any(|(at, w)| w == *dir && parts.get(at + dir.len()).is_some_and(|below| !open.contains(below)))
    })
}

fn template(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|end| TEMPLATE_ENDS.contains(&end))
        || name.contains("example")
        || name.contains("sample")
        || name.contains("template")
}

/// A name that says "secret" anywhere.
fn secret_name(name: &str) -> bool {
    if template(name) {
        return false;
    }
    if SECRET_NAMES.contains(&name) || SECRET_ENDS.iter().any(|e| name.ends_with(e)) {
        return true;
    }
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, ""));
    let data = matches!(
        end,
        "json"
            | "yml"
            | "yaml"
            | "toml"
            | "ini"
            | "cfg"
            | "conf"
            | "xml"
            | "properties"
            | "txt"
            | "env"
            | "csv"
            | ""
    );
    if end == "pem" || end == "key" || end == "der" || end == "p8" {
        return !["cert", "chain", "ca-", "ca_", "ca", "public", "pub", "bundle", "cacert"]
            .iter()
            .any(|w| stem == *w || (w.len() > 2 && stem.contains(w)));
    }
    if !data {
        return false;
    }
    let stem = stem.trim_start_matches('.');
    matches!(
        stem,
        "secrets"
            | "secret"
            | "credentials"
            | "credential"
            | "client_secret"
            | "service-account"
            | "service_account"
            | "serviceaccount"
            | "service-account-key"
            | "passwords"
            | "vault_pass"
            | "vault-password"
            | "apikeys"
            | "api_keys"
            | "api-keys"
            | "private_key"
            | "private-key"
            | "gcp-key"
            | "gcloud-key"
            | "auth_tokens"
            | "access_tokens"
    ) && !(end.is_empty() && matches!(stem, "secrets" | "secret" | "credential"))
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
    if secret_dir(&refs) {
        return Some("a directory of credentials");
    }
    matches!(refs.as_slice(), ["proc", "x"] | ["proc", _, "x"] | ["etc", "x"])
        .then_some("a system directory that holds secrets")
}

const SKIPPED: &[&str] =
    &[".git", "node_modules", "target", ".venv", "venv", "__pycache__", "dist", "build", ".cache"];

/// The first secret files below `dir` that `accept` lets through (it gets the name), at most a few; the walk ends
/// after 3,000 names or 6 levels, links are not followed.
pub fn secrets_below(
    dir: &Path,
    scope: &Scope,
    world: &dyn World,
    accept: &dyn Fn(&Path) -> bool,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![(dir.to_path_buf(), 0)];
    let mut seen = 0;
    while let Some((dir, depth)) = todo.pop() {
        for name in world.list(&dir) {
            seen += 1;
            if seen > 3_000 || found.len() >= 8 {
                return found;
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
    found
}
