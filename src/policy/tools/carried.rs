//! What a call carries beside what its tool is known to look at: values of the project's secrets in an address, commands
//! in fields that the schema does not have, programs in the text of a file that other tools run by its name.

use super::secret_denied;
use crate::gate::encoded::Known;
use crate::policy::{Decision, Scope, Verdict, World, paths, shell};
use serde_json::Value;
use std::path::Path;

/// Files of a project whose values must not stand in an address.
const SECRETS: &[&str] = &[".env", ".env.local", ".env.production", ".env.development", ".dev.vars"];
/// Most bytes of such a file that are looked at, and most values of it.
const SECRETS_MAX: usize = 64 * 1024;
const VALUES_MAX: usize = 256;

/// What is said about an address or a search that holds a value of the project's secret files, in whatever encoding.
pub(super) fn secrets(text: &str, scope: &Scope, world: &dyn World) -> Decision {
    let mut values: Vec<String> = Vec::new();
    for dir in [&scope.project, &scope.cwd] {
        for name in SECRETS {
            let read = world.read(&dir.join(name)).unwrap_or_default();
            let read = read.get(..SECRETS_MAX).unwrap_or(&read);
            for line in read.lines().map(str::trim).filter(|l| !l.starts_with('#')) {
                let Some((name, value)) = line.trim_start_matches("export ").split_once('=') else {
                    continue;
                };
                let value = value.trim().trim_matches(['"', '\'']);
                if shell::secret_variable(name.trim()) && !value.is_empty() && values.len() < VALUES_MAX {
                    values.push(value.to_owned());
                    values.push(line.to_owned());
                }
            }
        }
        if scope.cwd == scope.project {
            break;
        }
    }
    if values.is_empty() || Known::once(values.iter().map(String::as_str)).find(text).is_empty() {
        return Decision::SILENT;
    }
    Decision::deny(
        "web.secret",
        "The call carries a value of one of the project's secret files to another machine.",
    )
}

/// Fields of a command's call that are none of the client's and could be taken for the command, or for more of it.
const BESIDE: &[&str] = &["cmd", "cmds", "commands", "args", "argv", "arguments", "script", "shell", "code"];

/// What is said about a command's call for the fields beside its command.
pub(super) fn beside(line: &str, input: &Value, scope: &Scope, world: &dyn World) -> Decision {
    let mut seen = Decision::SILENT;
    for value in BESIDE.iter().filter_map(|key| input.get(*key)) {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            _ => continue,
        };
        for whole in [text.clone(), format!("{line} {text}")] {
            let one = shell::judge(&whole, scope, world);
            if one.rule != "shell.syntax" && !whole.contains('\0') {
                seen = seen.or(one);
            }
        }
    }
    let dir = ["cwd", "workdir", "working_directory", "workingDirectory", "directory"]
        .iter()
        .find_map(|k| input.get(*k));
    if let Some(Value::String(dir)) = dir
        && !dir.contains('\0')
    {
        for path in paths::meanings(dir, &scope.cwd, scope, world) {
            if let Some(what) =
                paths::secret_place(&path, scope).filter(|w| *w == "a directory of credentials")
            {
                seen = seen.or(secret_denied(&path, what));
            }
        }
    }
    seen
}

/// Files in other languages that a build or a test run starts by their names.
#[rustfmt::skip]
const STARTED: &[&str] = &[
    "conftest.py", "setup.py", "noxfile.py", "sitecustomize.py", "usercustomize.py", "build.rs", "gulpfile.js", "gruntfile.js", "rakefile", "webpack.config.js", "vite.config.js", "vite.config.ts", "jest.config.js", "vitest.config.ts", "eslint.config.js", ".pnp.cjs",
];
/// Longest text of such a file that is judged, in bytes, and most commands in it.
const STARTED_MAX: usize = 64 * 1024;
const COMMANDS_MAX: usize = 64;

/// What is said about the text that a call puts into such a file: commands in it that are stopped as commands.
pub(super) fn written(path: &str, input: &Value, scope: &Scope, world: &dyn World) -> Decision {
    let name = Path::new(path).file_name().map(|n| paths::fold(&n.to_string_lossy())).unwrap_or_default();
    if !STARTED.contains(&name.as_str()) {
        return Decision::SILENT;
    }
    let edits = input.get("edits").and_then(Value::as_array).into_iter().flatten();
    let texts = [input.get("content"), input.get("new_string")]
        .into_iter()
        .flatten()
        .chain(edits.filter_map(|e| e.get("new_string")))
        .filter_map(Value::as_str);
    let mut seen = Decision::SILENT;
    let mut judged = 0;
    for text in texts {
        let text = text.get(..STARTED_MAX).unwrap_or(text);
        for literal in
            text.split(['"', '\'', '`']).filter(|l| l.contains(' ') && l.len() > 6 && !l.contains('\n'))
        {
            judged += 1;
            if judged > COMMANDS_MAX {
                return seen;
            }
            let one = shell::judge(literal, scope, world);
            if one.verdict == Verdict::Deny && !one.rule.starts_with("shell.") {
                seen = seen.or(Decision::ask(
                    one.rule,
                    format!(
                        "The file runs with the next build or test, and holds a command that is stopped: {}",
                        one.reason
                    ),
                ));
            }
        }
    }
    seen
}
