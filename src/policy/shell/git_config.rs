//! Settings of git that run something.

use super::eval::Machine;
use super::options::Options;
use super::value::Val;

impl Machine<'_> {
    pub(super) fn config_value(&mut self, key: &str, value: &str) {
        self.ask(
            "run.gitconfig",
            format!("{key} makes git run or trust something else. A person has to agree."),
        );
        let line = value.trim_start_matches('!').to_owned();
        let before = self.found.clone();
        self.subshell(|m| m.program(&line, &Val::default()));
        if self.found.rule == "shell.syntax" {
            self.found = before;
        }
    }

    pub(super) fn git_config(&mut self, args: &[Val]) {
        let o = Options::split(args, &["-f", "--file", "--blob", "--type", "--default", "--comment"], false);
        let mut words = o.operands.clone();
        if words.first().is_some_and(|w| {
            matches!(
                w.text.as_str(),
                "set" | "get" | "list" | "unset" | "edit" | "rename-section" | "remove-section"
            )
        }) {
            let verb = words.remove(0).text;
            if verb == "edit" {
                self.ask("persist.gitconfig", "The command edits git's configuration.");
            }
        }
        let reads = o.has(&["--get", "--list", "-l", "--get-all", "--get-regexp", "--get-urlmatch"])
            || words.len() < 2;
        if let Some(key) = words.first()
            && !reads
            && runs(&key.text)
        {
            self.ask(
                "persist.gitconfig",
                format!(
                    "{} makes git run or trust something else from now on. A person has to agree.",
                    key.text.chars().take(60).collect::<String>()
                ),
            );
            if let Some(value) = words.get(1).filter(|v| v.text.starts_with('!')) {
                let line = value.text[1..].to_owned();
                self.program(&line, &Val::default());
            }
        }
        for file in o.values(&["-f", "--file"]) {
            if reads {
                self.read_file(&file);
            } else {
                self.write_file(&file, false);
            }
        }
    }
}

/// Configuration keys whose value git runs, or that lead it elsewhere.
pub(super) fn runs(key: &str) -> bool {
    let key = key.to_lowercase();
    let (section, name) =
        (key.split('.').next().unwrap_or_default(), key.rsplit('.').next().unwrap_or_default());
    matches!(
        key.as_str(),
        "core.hookspath"
            | "core.fsmonitor"
            | "core.sshcommand"
            | "core.editor"
            | "core.pager"
            | "core.gitproxy"
            | "core.askpass"
            | "core.attributesfile"
            | "core.alternaterefscommand"
            | "sequence.editor"
            | "diff.external"
            | "interactive.difffilter"
            | "init.templatedir"
            | "include.path"
            | "gpg.program"
            | "uploadpack.packobjectshook"
            | "web.browser"
            | "core.worktree"
            | "http.proxy"
            | "http.sslverify"
            | "safe.directory"
    ) || matches!(section, "alias" | "credential" | "includeif" | "url" | "filter" | "pager" | "protocol")
        || matches!(
            name,
            "textconv"
                | "command"
                | "cmd"
                | "driver"
                | "program"
                | "clean"
                | "smudge"
                | "process"
                | "helper"
                | "insteadof"
                | "pushinsteadof"
                | "receivepack"
                | "uploadpack"
                | "vcs"
                | "browser"
                | "sslverify"
                | "proxy"
        )
}

/// Whether a value of such a key has git run nothing and trust nothing else: a switch, or a program that only shows.
pub(super) fn runs_nothing(key: &str, value: &str) -> bool {
    let key = key.to_lowercase();
    let (section, name) =
        (key.split('.').next().unwrap_or_default(), key.rsplit('.').next().unwrap_or_default());
    let switch_on = || matches!(value.to_lowercase().as_str(), "true" | "yes" | "on" | "1");
    match key.as_str() {
        "core.pager" | "core.editor" | "sequence.editor" => {
            matches!(value, "cat" | "true" | "less" | ":" | "")
        }
        "core.fsmonitor" => matches!(value, "false" | ""),
        "protocol.version" => matches!(value, "0" | "1" | "2"),
        "diff.external" | "core.askpass" => value.is_empty(),
        // The whole list of helpers is emptied.
        "credential.helper" => value.is_empty(),
        _ if section == "pager" => matches!(value, "cat" | "true" | "false" | "less" | ""),
        _ if section == "http" && name == "sslverify" => switch_on(),
        _ if section == "filter" => match name {
            "smudge" | "clean" | "process" => value.is_empty(),
            "required" => switch_on() || matches!(value, "false" | "no" | "off" | "0"),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_runs_nothing_is_told_from_one_that_does() {
        for (key, value) in [
            ("core.pager", "cat"),
            ("sequence.editor", ":"),
            ("Sequence.Editor", "true"),
            ("protocol.version", "2"),
            ("http.sslVerify", "true"),
            ("diff.external", ""),
            ("pager.log", "false"),
            ("credential.helper", ""),
            ("filter.lfs.smudge", ""),
            ("core.fsmonitor", "false"),
        ] {
            assert!(runs(key) && runs_nothing(key, value), "{key}={value}");
        }
        for (key, value) in [
            ("core.pager", "sh x"),
            ("sequence.editor", "./x"),
            ("protocol.ext.allow", "always"),
            ("http.sslVerify", "false"),
            ("http.proxy", "true"),
            ("diff.external", "cat"),
            ("pager.log", "true; sh x"),
            ("credential.helper", "store"),
            ("filter.lfs.smudge", "cat"),
            ("core.fsmonitor", "true"),
            ("core.hooksPath", ""),
            ("core.sshCommand", "cat"),
            ("alias.z", "true"),
            ("include.path", ""),
            ("safe.directory", ""),
        ] {
            assert!(runs(key) && !runs_nothing(key, value), "{key}={value}");
        }
    }
}
