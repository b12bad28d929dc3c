//! The restricted shell: an allow-list of programs, and nothing of the shell itself.
//!
//! A command line is one program with its arguments. Quoting works; every character that means something to a shell
//! outside quotes (and `$`, backquote and `!` inside double quotes) refuses the line. What is left is what the program
//! gets, so what is judged is what runs.

use super::custom::{subsequence, word_fits};
use super::{Decision, Scope, World, paths};
use std::collections::BTreeMap;
use std::path::Path;

/// The allow-list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restricted {
    /// Names of programs that may run; plain names, no paths.
    pub commands: Vec<String>,
    /// Programs with an ordered subsequence of arguments that must not occur: `git remote add`.
    pub deny: Vec<Vec<String>>,
    /// Flags that no program may get, with or without a value.
    pub deny_flags: Vec<String>,
    /// Program → variables that it keeps although they look like credentials.
    pub keep_env: BTreeMap<String, Vec<String>>,
}

/// Longest line, in bytes, and most words.
const LINE_MAX: usize = 16 * 1024;
const WORDS_MAX: usize = 512;

impl Restricted {
    /// What is said about a command line.
    pub fn judge(&self, line: &str, scope: &Scope, world: &dyn World) -> Decision {
        match words(line).and_then(|argv| self.judge_argv(&argv, scope, world)) {
            Ok(()) => Decision::SILENT,
            Err(why) => Decision::deny("restricted", format!("The restricted shell refuses this: {why}.")),
        }
    }

    /// Why an argument vector must not run, if it must not.
    pub fn judge_argv(&self, argv: &[String], scope: &Scope, world: &dyn World) -> Result<(), String> {
        let Some((program, args)) = argv.split_first() else { return Err("there is no command".into()) };
        if !self.commands.iter().any(|c| c == program) {
            let all = self.commands.join(", ");
            return Err(format!("{program:?} is not one of the allowed programs ({all})"));
        }
        let refs: Vec<&str> = args.iter().map(String::as_str).collect();
        if let Some(rule) = self.deny.iter().find(|r| subsequence(r, program, &refs)) {
            return Err(format!("`{}` is denied", rule.join(" ")));
        }
        for arg in args {
            if let Some(flag) = self.deny_flags.iter().find(|f| word_fits(f, arg)) {
                return Err(format!("the flag {flag} is denied"));
            }
            if let Some(path) = candidates(arg).into_iter().find(|p| !confined(p, scope, world)) {
                return Err(format!("{path:?} leads out of the workspace"));
            }
        }
        Ok(())
    }

    /// The environment that `program` gets: without variables shaped like credentials, except those it may keep.
    pub fn environment(&self, program: &str, env: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let name =
            Path::new(program).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let kept = self.keep_env.get(&name);
        env.into_iter()
            .filter(|(k, v)| {
                kept.is_some_and(|names| names.contains(k))
                    || !(super::shell::secret_variable(k) || super::mcp::holds_secret(v))
            })
            .collect()
    }
}

/// Splits a line as a shell would, or says which part of it only a shell would understand.
fn words(line: &str) -> Result<Vec<String>, String> {
    if line.len() > LINE_MAX {
        return Err(format!("the line is longer than {LINE_MAX} bytes"));
    }
    let mut out: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => out.extend(word.take()),
            '\'' => {
                let w = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(c) => push(w, c)?,
                        None => return Err("a quote is not closed".into()),
                    }
                }
            }
            '"' => {
                let w = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some(c @ ('$' | '`' | '!' | '\\')) => {
                            return Err(format!("{c:?} inside double quotes"));
                        }
                        Some(c) => push(w, c)?,
                        None => return Err("a quote is not closed".into()),
                    }
                }
            }
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '{' | '}' | '[' | ']' | '$' | '`' | '\\' | '*'
            | '?' | '~' | '#' | '!' | '^' | '\n' | '\r' => {
                return Err(format!("{c:?} means something to a shell; quote it or leave it out"));
            }
            '=' if out.is_empty() && word.is_some() => return Err("a variable is set".into()),
            c => push(word.get_or_insert_default(), c)?,
        }
        if out.len() > WORDS_MAX {
            return Err(format!("more than {WORDS_MAX} words"));
        }
    }
    out.extend(word);
    Ok(out)
}

fn push(word: &mut String, c: char) -> Result<(), String> {
    if c.is_control() {
        return Err("a control character".into());
    }
    word.push(c);
    Ok(())
}

/// Every part of an argument that a program could take for a path.
fn candidates(arg: &str) -> Vec<&str> {
    let mut out = vec![arg];
    // The rest of an address is no path.
    let address = |at: usize| {
        ["http", "https", "ssh", "git"].iter().any(|s| arg.get(..at).is_some_and(|b| b.ends_with(s)))
            && arg.get(at..).is_some_and(|r| r.starts_with("://"))
    };
    out.extend(
        arg.match_indices(['=', ':', '@', ','])
            .filter(|(at, _)| !address(*at))
            .filter_map(|(at, _)| arg.get(at + 1..)),
    );

    if arg.starts_with('-') && !arg.starts_with("--") {
        // A value attached to a short flag: -I/etc.
        out.extend(arg.char_indices().skip(2).take(1).filter_map(|(at, _)| arg.get(at..)));
    }
    out.retain(|p| !p.is_empty());
    out
}

/// Whether a part is no path, or one that stays in the workspace, also when links are followed.
fn confined(part: &str, scope: &Scope, world: &dyn World) -> bool {
    if part.starts_with('~') {
        return false;
    }
    let pathlike = part.contains('/') || part == ".." || !part.starts_with('-');
    if !pathlike {
        return true;
    }
    if part.contains("://") && !part.starts_with("file:") {
        return true;
    }
    paths::meanings(part, &scope.cwd, scope, world)
        .iter()
        .all(|p| p.starts_with(&scope.project) || p == Path::new("/dev/null"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Disk, Verdict};

    fn shell() -> Restricted {
        let rule = |t: &str| t.split(' ').map(str::to_owned).collect::<Vec<_>>();
        Restricted {
            commands: ["git", "ls", "cargo", "grep", "gh"].map(str::to_owned).to_vec(),
            deny: vec![rule("git push"), rule("git remote add"), rule("git config")],
            deny_flags: vec!["--exec".into(), "--upload-pack".into(), "-c".into()],
            keep_env: BTreeMap::from([("gh".to_owned(), vec!["GH_TOKEN".to_owned()])]),
        }
    }

    fn verdict(line: &str) -> Verdict {
        let scope = Scope {
            home: "/home/u".into(),
            cwd: "/home/u/p".into(),
            project: "/home/u/p".into(),
            scratch: vec!["/tmp".into()],
            ..Scope::default()
        };
        shell().judge(line, &scope, &Disk).verdict
    }

    #[test]
    fn what_is_on_the_list_runs() {
        for line in [
            "git status",
            "git log --oneline -n 5",
            "ls -la src/policy",
            "grep -rn 'rm -rf $HOME' docs",
            "git commit -m \"fix: a; b\"",
            "cargo test --lib policy::tests",
            "git show HEAD:src/main.rs",
            "git clone https://example.org/x.git sub/x",
        ] {
            assert_eq!(verdict(line), Verdict::None, "{line}");
        }
    }

    #[test]
    fn what_is_not_is_refused() {
        for line in [
            "",
            "rm x",
            "/usr/bin/git status",
            "./git status",
            "git status; rm -rf x",
            "git status && ls",
            "git log | sh",
            "ls $(id)",
            "ls `id`",
            "ls \"$(id)\"",
            "ls > x",
            "ls &",
            "ls *",
            "ls ~",
            "X=1 ls",
            "git status\nid",
            "git push",
            "git -C sub push origin",
            "git remote -v add o https://x.example",
            "git --exec=sh status",
            "git --exec sh",
            "git -c core.pager=sh log",
            "git clone --upload-pack=/tmp/x y",
            "ls /etc",
            "ls /tmp/x",
            "git clone https://example.org/x.git /tmp/x",
            "ls ../..",
            "ls src/../../other",
            "ls --file=/etc/passwd",
            "ls --file=//etc/passwd",
            "grep -f/etc/shadow x",
            "git show x:../../../etc/passwd",
            "ls 'unclosed",
            "gi\\t status",
            "ls /proc/self/root/etc",
        ] {
            assert_eq!(verdict(line), Verdict::Deny, "{line:?}");
        }
    }

    #[test]
    fn credentials_reach_only_the_program_that_is_named() {
        let env: BTreeMap<String, String> =
            [("GH_TOKEN", "x"), ("PATH", "/bin"), ("AWS_SECRET_ACCESS_KEY", "y")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into();
        let names = |p: &str| shell().environment(p, env.clone()).into_keys().collect::<Vec<_>>();
        assert_eq!(names("git"), ["PATH"]);
        assert_eq!(names("gh"), ["GH_TOKEN", "PATH"]);
    }
}
