//! Programs that find files and do something with them.

use super::eval::Machine;
use super::value::{HOLE, Taint, Val, glob_matches};
use crate::policy::paths;
use std::path::PathBuf;

impl Machine<'_> {
    pub(super) fn find_files(&mut self, args: &[Val], stdin: &Val) -> Val {
        let start = args
            .iter()
            .position(|a| {
                a.text.starts_with(['-', '(', '!'])
                    && a.text.len() > 1
                    && !matches!(a.text.as_str(), "-H" | "-L" | "-P")
                    || a.text == "("
                    || a.text == "!"
            })
            .unwrap_or(args.len());
        let mut roots: Vec<Val> =
            args[..start].iter().filter(|a| !a.text.starts_with('-')).cloned().collect();
        if roots.is_empty() {
            roots.push(Val::known("."));
        }
        let tests = &args[start..];
        let mut names: Vec<String> = Vec::new();
        let mut whole: Vec<String> = Vec::new();
        let mut narrowed = false;
        let mut depth = 6usize;
        let mut i = 0;
        let mut actions: Vec<(Vec<Val>, bool)> = Vec::new();
        let mut deletes = false;
        while let Some(t) = tests.get(i) {
            let value = tests.get(i + 1);
            match t.text.as_str() {
                "-name" | "-iname" | "-path" | "-ipath" | "-wholename" => {
                    if let Some(v) = value {
                        let pattern = v.text.rsplit('/').next().unwrap_or_default().to_owned();
                        if tests
                            .get(i.wrapping_sub(1))
                            .is_none_or(|p| !matches!(p.text.as_str(), "!" | "-not"))
                            && tests.get(i + 2).is_none_or(|n| n.text != "-prune")
                        {
                            narrowed |= !matches!(pattern.as_str(), "*" | ".*" | "");
                            if t.text.contains("path") || t.text == "-wholename" {
                                let of_root = v.text.strip_prefix("./").map(|r| format!("*/{r}"));
                                whole.push(of_root.unwrap_or_else(|| v.text.clone()));
                                i += 2;
                                continue;
                            }
                            names.push(if t.text.starts_with("-i") {
                                pattern.to_lowercase()
                            } else {
                                pattern
                            });
                        } else if tests.get(i + 2).is_some_and(|n| n.text == "-prune") {
                            narrowed |= true;
                        }
                    }
                    i += 1;
                }
                "-regex" | "-iregex" | "-mtime" | "-mmin" | "-size" | "-newer" | "-user" | "-perm"
                | "-atime" | "-ctime" => {
                    narrowed |=
                        matches!(t.text.as_str(), "-regex" | "-iregex" | "-size" | "-mtime" | "-mmin");
                    i += 1;
                }
                "-empty" => narrowed = true,
                "-maxdepth" => {
                    depth = value.and_then(|v| v.text.parse().ok()).unwrap_or(6);
                    i += 1;
                }
                "-mindepth" | "-type" | "-printf" | "-group" | "-uid" => i += 1,
                "-delete" => deletes = true,
                "-fprint" | "-fprintf" | "-fls" | "-fprint0" => {
                    if let Some(v) = value.cloned() {
                        self.write_file(&v, true);
                    }
                    i += 1;
                }
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let rest = &tests[i + 1..];
                    let end = rest.iter().position(|a| a.text == ";" || a.text == "+").unwrap_or(rest.len());
                    actions.push((rest[..end].to_vec(), true));
                    i += end + 1;
                }
                _ => {}
            }
            i += 1;
        }
        let hits = |m: &Self, name: &str| {
            names.is_empty()
                || names.iter().any(|p| {
                    let _ = m;
                    glob_any(p, name) || glob_any(p, &name.to_lowercase())
                })
        };
        let mut secrets: Vec<PathBuf> = Vec::new();
        for root in roots.clone() {
            for path in self.meanings(&root) {
                if self.is_secret(&path).is_some() {
                    secrets.push(path.clone());
                }
                let below = paths::secrets_below(&path, self.scope, self.world, &|p| {
                    p.file_name().is_some_and(|n| hits(self, &n.to_string_lossy()))
                        && whole.iter().all(|w| glob_any(w, &p.to_string_lossy()))
                        && p.strip_prefix(&path).is_ok_and(|r| r.components().count() <= depth)
                });
                secrets.extend(below);
                if let Some(what) = paths::secret_place(&path, self.scope)
                    && !narrowed
                    && what != "a system directory that holds secrets"
                    && !actions.is_empty()
                {
                    let reads = actions.iter().any(|(a, _)| {
                        a.first().is_some_and(|c| {
                            !matches!(c.text.as_str(), "ls" | "echo" | "stat" | "basename" | "file")
                        })
                    });
                    if reads {
                        self.find(crate::policy::tools::secret_denied(&path, what));
                    }
                }
            }
        }
        // A name that only a secret has, below a root that cannot be walked here.
        for pattern in &names {
            for usual in [
                ".env",
                "id_rsa",
                "id_ed25519",
                ".netrc",
                "credentials",
                ".npmrc",
                ".pgpass",
                "secrets.yml",
                ".git-credentials",
                "key.pem",
            ] {
                if glob_any(pattern, usual)
                    && pattern.chars().filter(|c| c.is_alphanumeric()).count() >= 2
                    && !actions.is_empty()
                {
                    secrets.push(self.cwd().join(usual));
                }
            }
        }
        if deletes {
            for root in roots.clone() {
                self.removal(&root, true, narrowed);
            }
        }
        for (action, _) in &actions {
            let removes = action.first().is_some_and(|c| {
                matches!(c.text.rsplit('/').next(), Some("rm" | "shred" | "rmdir" | "unlink"))
            });
            if removes {
                for root in roots.clone() {
                    self.removal(&root, true, narrowed);
                }
                continue;
            }
            let mut targets: Vec<Val> =
                secrets.iter().take(4).map(|s| Val::known(s.to_string_lossy())).collect();
            targets.push(Val {
                text: format!(
                    "{}/{HOLE}",
                    roots.first().map(|r| r.text.trim_end_matches('/').to_owned()).unwrap_or_default()
                ),
                taint: Taint::NONE,
            });
            for target in targets {
                let line: Vec<Val> = action
                    .iter()
                    .map(|a| {
                        if a.text.contains("{}") {
                            Val { text: a.text.replace("{}", &target.text), taint: a.taint }
                        } else {
                            a.clone()
                        }
                    })
                    .collect();
                self.run(&line, stdin);
            }
        }
        let mut out = Val::default();
        for s in secrets.iter().take(8) {
            out.push(&Val::known(format!("{}\n", s.to_string_lossy())));
        }
        for root in roots.iter().filter(|_| !narrowed || secrets.is_empty()) {
            // Some of what is below it, or all.
            let some = if narrowed { HOLE.to_string() } else { String::new() };
            out.push(&Val {
                text: format!("{}/{HOLE}{some}\n", root.text.trim_end_matches('/')),
                taint: Taint::NONE,
            });
        }
        out
    }

    pub(super) fn fd(&mut self, args: &[Val], stdin: &Val) -> Val {
        let at = args.iter().position(|a| matches!(a.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
        let Some(at) = at else { return Val::unknown(Taint::NONE) };
        let hidden = args[..at].iter().any(|a| {
            a.text.contains('H') && a.text.starts_with('-')
                || a.text.contains("hidden")
                || a.text.contains('u')
        });
        let pattern =
            args[..at].iter().find(|a| !a.text.starts_with('-')).map(|a| a.text.clone()).unwrap_or_default();
        let mut targets = vec![Val::unknown(Taint::NONE)];
        if hidden {
            let cwd = self.cwd();
            let want: String = pattern.chars().filter(|c| c.is_alphanumeric()).collect();
            let below =
                paths::secrets_below(&cwd, self.scope, self.world, &|p| p.to_string_lossy().contains(&want));
            targets.extend(below.iter().map(|p| Val::known(p.to_string_lossy())));
        }
        for target in targets {
            let mut line: Vec<Val> = args[at + 1..]
                .iter()
                .filter(|a| a.text != ";")
                .map(|a| a.map(a.text.replace("{}", &target.text)))
                .collect();
            if !args[at + 1..].iter().any(|a| a.text.contains("{}")) {
                line.push(target);
            }
            self.run(&line, stdin);
        }
        Val::unknown(Taint::NONE)
    }
}

pub(super) fn glob_any(pattern: &str, name: &str) -> bool {
    glob_matches(&format!("x{pattern}"), &format!("x{name}"))
}
