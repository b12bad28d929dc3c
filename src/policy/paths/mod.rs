//! What a path is: a secret, something that runs or is obeyed later, the guard itself.
//!
//! Paths are judged as the file system sees them after [`super::World::resolve`], without regard to case, with
//! zero-width characters removed and full-width letters narrowed, since some file systems fold them.

mod names;
mod protected;
mod runs;
mod secret;

pub use protected::{protected, protected_asks};
pub use secret::{secret, secret_asks, secret_place, secrets_below};

use super::Scope;
use super::world::{World, normalise};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Why a path must not be read.
pub type Secret = &'static str;
/// Why a path must not be written.
pub type Protected = &'static str;

/// Every place that `path` can mean: made absolute, then by name alone and by following links.
pub fn meanings(path: &str, base: &Path, scope: &Scope, world: &dyn World) -> Vec<PathBuf> {
    let absolute = unproc(&absolute(path, base, scope), scope);
    let by_links = unproc(&world.resolve(&absolute), scope);
    let by_name = normalise(&absolute);
    if by_name == by_links { vec![by_links] } else { vec![by_links, by_name] }
}

/// `path` with `~`, `file:` and a relative start resolved.
fn absolute(path: &str, base: &Path, scope: &Scope) -> PathBuf {
    let named = local(path);
    let path: &str = &named;
    if path == "~" {
        return scope.home.clone();
    }
    if let Some(rest) = path.strip_prefix("~/") {
        return scope.home.join(rest);
    }
    base.join(path)
}

/// The path that a `file:` address in any case names, with its percent signs decoded; other text as it is.
fn local(text: &str) -> Cow<'_, str> {
    let Some((_, rest)) = text.split_once(':').filter(|(s, _)| s.eq_ignore_ascii_case("file")) else {
        return text.into();
    };
    let path = rest.strip_prefix("//").unwrap_or(rest);
    let host = path.find('/').and_then(|at| path.split_at_checked(at));
    match host {
        Some((host, path)) if host.is_empty() || host.eq_ignore_ascii_case("localhost") => {
            percent_decoded(path)
        }
        _ if rest.starts_with('/') => percent_decoded(path),
        // A file whose name starts so.
        _ => text.into(),
    }
}

/// `text` with `%41` and its kin decoded once; what is no UTF-8 afterwards is replaced.
pub fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return text.into();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = |i: usize| bytes.get(i).and_then(|b| char::from(*b).to_digit(16));
        match (byte, hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned().into()
}

/// Takes `/proc/PID/root` and `/proc/PID/cwd` out of a path: they lead anywhere without being a link by name.
fn unproc(path: &Path, scope: &Scope) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..8 {
        let plain = normalise_dots(&path);
        let mut parts = plain.components().skip(1).map(|c| c.as_os_str().to_string_lossy().into_owned());
        if parts.next().as_deref() != Some("proc") || parts.next().is_none() {
            return path;
        }
        let mut door = parts.next();
        let mut skip = 4;
        if door.as_deref() == Some("task") {
            parts.next();
            door = parts.next();
            skip = 6;
        }
        let start = match door.as_deref() {
            Some("root") => PathBuf::from("/"),
            Some("cwd") => scope.cwd.clone(),
            _ => return path,
        };
        path = plain.components().skip(skip).fold(start, |p, c| p.join(c));
    }
    path
}

/// `path` without `.` components; `..` stays.
fn normalise_dots(path: &Path) -> PathBuf {
    path.components().collect()
}

/// A path or name in the form that rules compare.
pub fn fold(text: &str) -> String {
    text.chars()
        .filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}'))
        .map(|c| match c {
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
            c => c,
        })
        .flat_map(char::to_lowercase)
        .collect()
}

fn parts(path: &Path) -> Vec<String> {
    path.components()
        .filter_map(|c| match c {
            std::path::Component::Normal(n) => Some(fold(&n.to_string_lossy())),
            _ => None,
        })
        .collect()
}

/// Whether `path` is scratch space, where anything may be deleted. A home or project that lies in scratch space is none.
pub fn is_scratch(path: &Path, scope: &Scope) -> bool {
    let own = |p: &Path| path.starts_with(p) || p.starts_with(path);
    scope.scratch.iter().any(|s| path.starts_with(s) && path != s)
        && !own(&scope.home)
        && !own(&scope.project)
}

/// Whether `path` lies in the project (not the project's root itself).
pub fn in_project(path: &Path, scope: &Scope) -> bool {
    path.starts_with(&scope.project) && path != scope.project
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope {
            home: "/home/u".into(),
            cwd: "/home/u/p".into(),
            project: "/home/u/p".into(),
            scratch: vec!["/tmp".into()],
            ..Scope::default()
        }
    }

    #[test]
    fn secrets_are_known_by_name_and_place() {
        for path in [
            "/home/u/p/.env",
            "/home/u/p/a/.env.production",
            "/home/u/.ssh/id_rsa",
            "/root/.ssh/deploy",
            "/home/u/.aws/credentials",
            "/home/u/p/.ENV",
            "/proc/1/environ",
            "/etc/shadow",
            "/home/u/.config/gh/hosts.yml",
            "/home/u/.npmrc",
            "/home/u/p/server.key",
            "/home/u/p/terraform.tfstate",
            "/home/u/p/config/secrets.yml",
            "/home/u/p/prod.env",
            "/home/u/p/.e\u{200b}nv",
        ] {
            assert!(secret(Path::new(path), &scope()).is_some(), "{path}");
        }
    }

    #[test]
    fn look_alikes_are_not_secrets() {
        for path in [
            "/home/u/p/.env.example",
            "/home/u/p/src/env.ts",
            "/home/u/p/src/credentials.rs",
            "/home/u/p/.npmrc",
            "/home/u/.ssh/id_rsa.pub",
            "/home/u/.ssh/known_hosts",
            "/home/u/p/token.rs",
            "/home/u/p/.environment/x",
            "/home/u/p/cacert.pem",
            "/home/u/p/docs/secrets.md",
            "/home/u/p/environment.yml",
        ] {
            assert!(secret(Path::new(path), &scope()).is_none(), "{path}");
        }
    }

    #[test]
    fn what_runs_or_is_obeyed_later_is_protected() {
        for path in [
            "/home/u/.bashrc",
            "/home/u/p/.claude/settings.json",
            "/home/u/p/sub/CLAUDE.md",
            "/home/u/p/.git/hooks/pre-commit",
            "/home/u/p/.github/workflows/x.yml",
            "/etc/cron.d/x",
            "/home/u/.local/bin/git",
            "/home/u/p/.mcp.json",
            "/home/u/.config/systemd/user/x.service",
            "/dev/sda",
            "/usr/bin/git",
            "/home/u/p/.git/config",
        ] {
            assert!(protected(Path::new(path), &scope()).is_some(), "{path}");
        }
        for path in [
            "/home/u/p/src/main.rs",
            "/home/u/p/README.md",
            "/tmp/x",
            "/dev/null",
            "/home/u/p/.gitignore",
            "/home/u/p/docs/a.md",
        ] {
            assert!(protected(Path::new(path), &scope()).is_none(), "{path}");
        }
    }

    #[test]
    fn doors_in_proc_are_seen_through() {
        let s = scope();
        assert_eq!(unproc(Path::new("/proc/self/root/etc/shadow"), &s), Path::new("/etc/shadow"));
        assert_eq!(unproc(Path::new("/proc/1/root/proc/2/cwd/.env"), &s), Path::new("/home/u/p/.env"));
        assert_eq!(unproc(Path::new("/proc/self/environ"), &s), Path::new("/proc/self/environ"));
    }
}
