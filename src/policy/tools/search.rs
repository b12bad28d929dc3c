//! The client's searches: of names, and of what files hold.

use super::secret_denied;
use crate::policy::{Decision, Scope, World, paths, shell};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Size of a compiled pattern, in bytes.
const PATTERN_MAX: usize = 1 << 20;

/// A directory that a search starts from; the project's own is the default.
fn root(input: &Value, scope: &Scope, world: &dyn World) -> Result<Vec<PathBuf>, Decision> {
    match input.get("path") {
        None | Some(Value::Null) => Ok(vec![scope.cwd.clone()]),
        Some(Value::String(p)) if !p.contains('\0') => Ok(paths::meanings(p, &scope.cwd, scope, world)),
        Some(_) => Err(Decision::deny(
            "input.malformed",
            "`path` is not a plain text, so the call cannot be judged.",
        )),
    }
}

/// What is said about a search for names.
pub(super) fn glob(input: &Value, scope: &Scope, world: &dyn World) -> Decision {
    let roots = match root(input, scope, world) {
        Ok(roots) => roots,
        Err(denied) => return denied,
    };
    let Some(pattern) = input.get("pattern").and_then(Value::as_str) else {
        return Decision::deny(
            "input.malformed",
            "Glob: `pattern` is missing or not a text, so the call cannot be judged.",
        );
    };
    // Names are no secret by themselves, but a listing of a place of secrets has no other use.
    let fixed = pattern.split(['*', '?', '[', '{']).next().unwrap_or_default();
    let fixed = fixed.rsplit_once('/').map_or("", |(dir, _)| if dir.is_empty() { "/" } else { dir });
    for root in &roots {
        for p in paths::meanings(fixed, root, scope, world).iter().chain([root]) {
            if let Some(what) = paths::secret_place(p, scope)
                && what == "a directory of credentials"
            {
                return secret_denied(p, what);
            }
        }
    }
    Decision::SILENT
}

/// A search of the client, as it says it.
struct Search<'a> {
    pattern: &'a str,
    /// Lines are shown, not only names and numbers.
    content: bool,
    /// Globs of the files that are searched; a `!` takes out.
    globs: Vec<&'a str>,
    /// A type of ripgrep's, e.g. `rust`.
    kind: Option<&'a str>,
    any_case: bool,
}

/// What is said about a search of what files hold.
pub(super) fn grep(input: &Value, scope: &Scope, world: &dyn World) -> Decision {
    let roots = match root(input, scope, world) {
        Ok(roots) => roots,
        Err(denied) => return denied,
    };
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let Some(pattern) = text("pattern") else {
        return Decision::deny(
            "input.malformed",
            "Grep: `pattern` is missing or not a text, so the call cannot be judged.",
        );
    };
    let glob = text("glob").unwrap_or_default();
    let search = Search {
        pattern,
        content: text("output_mode") == Some("content"),
        globs: if glob.contains('{') { vec![glob] } else { pieces(glob) },
        kind: text("type"),
        any_case: input.get("-i").and_then(Value::as_bool) == Some(true),
    };
    for root in &roots {
        if let Some(what) = paths::secret(root, scope).or_else(|| paths::secret_place(root, scope)) {
            return secret_denied(root, what);
        }
        let seen = search.below(root, scope, world);
        if seen != Decision::SILENT {
            return seen;
        }
    }
    Decision::SILENT
}

fn pieces(glob: &str) -> Vec<&str> {
    glob.split([',', ' ']).filter(|g| !g.is_empty()).collect()
}

impl Search<'_> {
    fn below(&self, root: &Path, scope: &Scope, world: &dyn World) -> Decision {
        let aimed = self.globs.iter().any(|g| !g.starts_with('!') && aims(g));
        if aimed && self.globs.iter().any(|g| [".env", ".env*", "*.env", ".env.*"].contains(&name_of(g))) {
            return secret_denied(Path::new(&self.globs.join(" ")), "a pattern for secret files");
        }
        let seeks = shell::seeks_secrets(self.pattern) || shaped(self.pattern);
        // A number or a name says whether a guess is right.
        let guesses = seeks || self.pattern.contains(['=', ':']);
        if !(self.content || aimed || guesses) {
            return Decision::SILENT;
        }
        // Ripgrep leaves out what is ignored, unless a glob selects it.
        let ignored = if self.globs.is_empty() {
            world.read(&scope.project.join(".gitignore")).unwrap_or_default()
        } else {
            String::new()
        };
        let hits = paths::secrets_below(root, scope, world, &|p| {
            let name = p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            self.takes(p, &name, root) && !ignored.lines().any(|l| l.trim().trim_start_matches('/') == name)
        });
        let plain = self.globs.is_empty() && self.kind.is_none();
        for hit in &hits {
            if aimed {
                return secret_denied(hit, "a secret file that the glob selects");
            }
            let text = world.read(hit).unwrap_or_default();
            let shown = self.content && (plain && seeks || self.finds(&text, false));
            if shown || guesses && self.finds(&text, true) {
                return secret_denied(hit, "a secret file that the search would print");
            }
        }
        if !self.content && shaped(self.pattern) && !hits.is_empty() {
            return Decision::ask(
                "secret.read",
                "The search tries out what a credential is. A person has to agree.",
            );
        }
        Decision::SILENT
    }

    /// Whether a file is searched.
    fn takes(&self, path: &Path, name: &str, root: &Path) -> bool {
        let below = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
        let fits = |glob: &str| {
            let whole = if glob.contains('/') {
                glob.trim_start_matches('/').to_owned()
            } else {
                format!("**/{glob}")
            };
            globset::Glob::new(&whole).is_ok_and(|g| g.compile_matcher().is_match(&below))
        };
        let (out, only): (Vec<&str>, Vec<&str>) =
            self.globs.iter().copied().partition(|g| g.starts_with('!'));
        if out.iter().any(|g| fits(g.trim_start_matches('!'))) {
            return false;
        }
        (only.is_empty() || only.iter().any(|g| fits(g))) && self.kind.is_none_or(|kind| of_kind(name, kind))
    }

    /// Whether the pattern finds a line of a file, or, for `values`, more of it than the names in it.
    fn finds(&self, text: &str, values: bool) -> bool {
        let regex = regex::RegexBuilder::new(self.pattern)
            .case_insensitive(self.any_case)
            .multi_line(true)
            .size_limit(PATTERN_MAX)
            .build();
        let Ok(regex) = regex else { return shell::seeks_secrets(self.pattern) };
        if !values {
            return regex.is_match(text);
        }
        text.lines().any(|line| {
            let name_ends = line.find(['=', ':']).map_or(0, |at| at + 1);
            regex.find_iter(line).any(|m| m.end() > name_ends && !m.is_empty())
        })
    }
}

/// The last part of a glob.
fn name_of(glob: &str) -> &str {
    glob.rsplit('/').next().unwrap_or(glob)
}

/// Whether a glob is made for hidden files or for secrets.
fn aims(glob: &str) -> bool {
    glob.split(['{', '}', ',', '/', ' ']).any(|part| {
        part.starts_with('.') && part.contains(|c: char| c.is_alphanumeric())
            || ["env", "secret", "credential", "id_rsa", "netrc", "tfvars"].iter().any(|w| part.contains(w))
    })
}

/// Whether a pattern begins like a credential.
fn shaped(pattern: &str) -> bool {
    let lower = pattern.to_lowercase();
    [
        "sk_live",
        "sk-ant",
        "sk-proj",
        "ghp_",
        "gho_",
        "github_pat",
        "glpat",
        "akia",
        "xoxb",
        "xoxp",
        "eyjhb",
        "-----begin",
    ]
    .iter()
    .any(|s| lower.contains(s))
}

/// Whether one of ripgrep's types takes a file of this name that holds secrets.
fn of_kind(name: &str, kind: &str) -> bool {
    let end = name.rsplit('.').next().unwrap_or_default();
    match kind {
        "all" => true,
        "sh" => end == "env" || name.starts_with(".env"),
        "config" => matches!(end, "cfg" | "conf" | "config" | "ini"),
        "yaml" => matches!(end, "yml" | "yaml"),
        "tf" | "terraform" | "hcl" => matches!(end, "tfvars" | "tfstate" | "json"),
        other => end == other,
    }
}
