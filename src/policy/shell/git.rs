//! git: what destroys work, what leaves, what configures it to run something.

use super::eval::Machine;
use super::git_config::{runs, runs_nothing};
use super::git_names::names_only;
use super::options::Options;
use super::run::quoted;
use super::value::{HOLE, Taint, Val};

impl Machine<'_> {
    pub(super) fn git(&mut self, args: &[Val], stdin: &Val) -> Val {
        let mut rest = args;
        let saved = self.state.cwds.clone();
        let mut aliases: Vec<(String, String)> = Vec::new();
        while let Some(a) = rest.first() {
            let text = a.text.clone();
            match text.as_str() {
                "--config-env" => {
                    // The value stands in a variable, so nobody knows it here.
                    if let Some((key, value)) = rest.get(1).and_then(|v| v.text.split_once('='))
                        && runs(key)
                    {
                        let (key, value) = (key.to_owned(), format!("${value}"));
                        self.config_value(&key, &value);
                    }
                    rest = rest.get(2..).unwrap_or_default();
                }
                "-c" => {
                    if let Some(v) = rest.get(1) {
                        let (key, value) = v.text.split_once('=').unwrap_or((&v.text, "true"));
                        let (key, value) = (key.to_owned(), value.to_owned());
                        if let Some(name) = key.to_lowercase().strip_prefix("alias.") {
                            aliases.push((name.to_owned(), value));
                        } else if runs(&key) && !runs_nothing(&key, &value) {
                            self.config_value(&key, &value);
                        }
                    }
                    rest = rest.get(2..).unwrap_or_default();
                }
                "-C" => {
                    if let Some(dir) = rest.get(1) {
                        let to = self.meanings(dir);
                        if !to.is_empty() {
                            self.state.cwds = to;
                        }
                    }
                    rest = rest.get(2..).unwrap_or_default();
                }
                "--git-dir" => {
                    if let Some(dir) = rest.get(1).cloned() {
                        self.repository(&dir);
                    }
                    rest = rest.get(2..).unwrap_or_default();
                }
                "--work-tree" | "--namespace" | "--exec-path" | "--super-prefix" => {
                    rest = rest.get(2..).unwrap_or_default()
                }
                t if t.starts_with("--git-dir=") => {
                    self.repository(&a.map(&t[10..]));
                    rest = &rest[1..];
                }
                t if t.starts_with('-') => {
                    if let Some((key, value)) =
                        t.strip_prefix("--config-env=").and_then(|c| c.split_once('='))
                        && runs(key)
                    {
                        let (key, value) = (key.to_owned(), format!("${value}"));
                        self.config_value(&key, &value);
                    }
                    if let Some(dir) = t.strip_prefix("--exec-path=") {
                        let _ = dir;
                        self.ask("run.gitconfig", "Git would run programs from another place.");
                    }
                    rest = &rest[1..];
                }
                _ => break,
            }
        }
        let Some(sub) = rest.first().cloned() else {
            self.state.cwds = saved;
            return Val::default();
        };
        let args = rest[1..].to_vec();
        if sub.text.contains(HOLE) {
            self.ask("run.unknown", "Which git command would run is only known when it runs.");
        }
        let out = if let Some((_, value)) = aliases.iter().find(|(n, _)| *n == sub.text.to_lowercase()) {
            let tail: Vec<String> = args.iter().map(|a| quoted(&a.text)).collect();
            let line = match value.strip_prefix('!') {
                Some(shell) => format!("{shell} {}", tail.join(" ")),
                None => format!("git {value} {}", tail.join(" ")),
            };
            self.program(&line, stdin)
        } else {
            self.git_command(&sub.text, &args, stdin)
        };
        self.state.cwds = saved;
        out
    }

    pub(super) fn git_command(&mut self, sub: &str, args: &[Val], stdin: &Val) -> Val {
        self.git_writes(sub, args);
        // Git takes the start of a long option for the whole of it.
        let has = |names: &[&str]| {
            args.iter().any(|a| {
                let text = a.text.split('=').next().unwrap_or_default();
                names
                    .iter()
                    .any(|n| *n == text || n.starts_with("--") && text.len() > 4 && n.starts_with(text))
            })
        };
        let cluster = |letter: char| {
            args.iter().any(|a| {
                a.text.starts_with('-')
                    && !a.text.starts_with("--")
                    && a.text.len() > 1
                    && a.text[1..].contains(letter)
            })
        };
        let words: Vec<&Val> = args.iter().filter(|a| !a.text.starts_with('-')).collect();
        let first = words.first().map(|w| w.text.clone()).unwrap_or_default();
        let paths_after = args.iter().position(|a| a.text == "--").map(|at| args[at + 1..].to_vec());
        let wide = |v: &[Val]| {
            v.iter().any(|p| {
                matches!(p.text.as_str(), "." | "./" | "*" | ":/" | ":/*" | ".." | "" | ":")
                    || p.text.contains('*')
                    || p.text.contains(HOLE)
                    || p.text.starts_with(":(")
                    || p.text.starts_with(":!")
            })
        };
        if matches!(
            sub,
            "commit" | "tag" | "branch" | "checkout" | "switch" | "notes" | "config" | "update-ref" | "stash"
        ) && args.iter().any(|a| a.taint.any(Taint::SECRET.with(Taint::ENV)))
        {
            self.ask("exfil.git", "The command puts a credential into the repository.");
        }
        for file in Options::split(args, &["-F", "--file"], false).values(&["-F", "--file"]) {
            if matches!(sub, "tag" | "notes" | "merge") {
                self.read_file(&file);
            }
        }
        self.reaches |= matches!(
            sub,
            "push" | "fetch" | "pull" | "clone" | "ls-remote" | "send-email" | "lfs" | "svn" | "p4"
        ) || matches!(
            (sub, first.as_str()),
            ("remote", "update" | "show" | "prune") | ("submodule", "update" | "add" | "sync")
        ) || sub == "archive" && args.iter().any(|a| a.text.starts_with("--remote"));
        match sub {
            "reset" if has(&["--hard", "--merge", "--keep"]) => {
                self.ask(
                    "destroy.git",
                    "git reset --hard throws uncommitted work away. Use git stash, or ask the person.",
                );
            }
            "checkout" | "restore" | "switch" => {
                let staged_only = sub == "restore" && has(&["--staged", "-S"]) && !has(&["--worktree", "-W"]);
                let targets: Vec<Val> = match (&paths_after, sub) {
                    (Some(p), _) => p.clone(),
                    (None, "restore") => words.iter().map(|w| (*w).clone()).collect(),
                    (None, _) => words
                        .iter()
                        .filter(|w| matches!(w.text.as_str(), "." | "./" | ":/" | "*"))
                        .map(|w| (*w).clone())
                        .collect(),
                };
                let everything = wide(&targets)
                    || targets.iter().any(|t| {
                        let places = self.meanings(t);
                        places.contains(&self.scope.project)
                            || places.iter().any(|p| self.world.kind(p) == crate::policy::Kind::Dir)
                    })
                    || targets.len() > 8;
                if (!staged_only && !targets.is_empty() && everything)
                    || has(&["-f", "--force", "--discard-changes"])
                    || sub == "checkout" && cluster('B')
                    || sub == "switch" && (cluster('C') || has(&["--force-create"]))
                {
                    self.ask("destroy.git", format!("git {sub} would throw uncommitted work away. Use git stash, or name the one file."));
                }
                for t in &targets {
                    self.git_path(t, false);
                }
            }
            "clean" if (cluster('f') || has(&["--force"])) && !(cluster('n') || has(&["--dry-run"])) => {
                self.ask("destroy.git", "git clean deletes files that git does not know. Show the person the list first (git clean -n).");
            }
            "stash" if matches!(first.as_str(), "drop" | "clear") => {
                self.ask("destroy.git", "The command deletes stashed work.")
            }
            "branch"
                if cluster('D')
                    || cluster('M')
                    || cluster('C')
                    || (cluster('f') || has(&["--force"])) && !words.is_empty() =>
            {
                self.ask(
                    "destroy.git",
                    "The command deletes or moves a branch whose work may not be merged. Use git branch -d.",
                )
            }
            "tag" if cluster('d') || has(&["--delete"]) => {
                self.ask("destroy.git", "The command deletes a tag.")
            }
            "push" => self.git_push(args, &words),
            "reflog" if matches!(first.as_str(), "expire" | "delete") => {
                self.ask("destroy.git", "The command deletes the history that could bring work back.")
            }
            "gc" if args.iter().any(|a| a.text.starts_with("--prune") && a.text != "--prune=never") => {
                self.ask("destroy.git", "The command deletes what could bring work back.")
            }
            "prune" | "filter-branch" | "filter-repo" | "update-ref" | "replace" | "fast-import" => {
                if sub != "update-ref"
                    || has(&["-d", "--stdin"])
                    || cluster('d')
                    || first.starts_with("refs/heads/")
                {
                    self.ask(
                        "destroy.git",
                        format!("git {sub} rewrites or deletes history. A person has to agree."),
                    );
                }
                for (i, a) in args.iter().enumerate() {
                    if a.text.ends_with("-filter")
                        && let Some(line) = args.get(i + 1).cloned()
                    {
                        self.text(&line, &[], &Val::default());
                    }
                }
            }
            "read-tree" if has(&["--reset"]) || cluster('u') => {
                self.ask("destroy.git", "The command throws uncommitted work away.")
            }
            "checkout-index" if cluster('f') || has(&["--force"]) => {
                self.ask("destroy.git", "The command throws uncommitted work away.")
            }
            "lfs" if matches!(first.as_str(), "prune" | "migrate") => {
                self.ask("destroy.git", "The command deletes or rewrites large files of the history.")
            }
            "init" | "clone" if has(&["--template"]) => {
                self.ask("run.gitconfig", "The repository would get hooks from another place.");
            }
            "worktree" if first == "remove" && (has(&["--force"]) || cluster('f')) => {
                self.ask("destroy.git", "The command deletes a work tree with what is in it.")
            }
            "submodule" => {
                if first == "foreach" {
                    let at = args.iter().position(|a| a.text == "foreach").map_or(0, |i| i + 1);
                    let rest: Vec<Val> =
                        args[at..].iter().skip_while(|a| a.text.starts_with("--")).cloned().collect();
                    let line = super::carry::joined(&rest);
                    self.text(&line, &[], &Val::default());
                } else if first == "deinit" && (has(&["--all", "--force"]) || cluster('f')) {
                    self.ask("destroy.git", "The command deletes submodules' work trees.");
                }
            }
            "rm" => {
                for w in &words {
                    let t = (*w).clone();
                    self.git_path(w, false);
                    if !has(&["--cached"])
                        && (wide(std::slice::from_ref(&t)))
                        && (cluster('r') || cluster('f'))
                    {
                        self.ask("destroy.git", "The command deletes the whole work tree.");
                    }
                }
            }
            "config" => self.git_config(args),
            "remote" => {
                if matches!(first.as_str(), "add" | "set-url") {
                    if let Some(url) = words.last() {
                        let host = url.text.clone();
                        self.state.vars.insert(
                            format!(
                                "_git_remote_{}",
                                words.get(1).map(|w| w.text.as_str()).unwrap_or_default()
                            ),
                            vec![vec![Val::known(host)]],
                        );
                    }
                    if first == "set-url" {
                        self.ask(
                            "persist.gitconfig",
                            "The command changes where the repository's work goes. A person has to agree.",
                        );
                    }
                }
            }
            "bisect" if first == "run" => {
                let at = args.iter().position(|a| a.text == "run").map_or(args.len(), |i| i + 1);
                return self.run(&args[at..], stdin);
            }
            "apply" | "am"
                if !has(&[
                    "--stat",
                    "--numstat",
                    "--summary",
                    "--check",
                    "--abort",
                    "--continue",
                    "--skip",
                    "--quit",
                ]) =>
            {
                let dirs = Options::split(args, &["--directory"], false).values(&["--directory"]);
                let dir = dirs.first().cloned().unwrap_or_else(|| Val::known("."));
                let mut texts: Vec<Val> = Vec::new();
                for file in words.iter().filter(|w| w.text != "-") {
                    texts.push(self.content(file));
                }
                if texts.is_empty() {
                    texts.push(stdin.clone());
                }
                for text in texts {
                    self.within(&dir, |m| m.patched(&text));
                }
            }
            "rebase" | "difftool" | "mergetool" | "grep" | "send-email" | "archive" | "bundle"
            | "request-pull" | "instaweb" | "daemon" | "http-push" => {
                let o = Options::split(
                    args,
                    &[
                        "-x",
                        "--exec",
                        "--extcmd",
                        "-O",
                        "--open-files-in-pager",
                        "-e",
                        "-f",
                        "--upload-pack",
                        "--remote",
                    ],
                    false,
                );
                for line in o.values(&["-x", "--exec", "--extcmd"]) {
                    if sub == "rebase" || sub == "difftool" {
                        self.text(&line, &[], &Val::default());
                    }
                }
                for a in args {
                    for start in ["--open-files-in-pager=", "--extcmd=", "--exec=", "-O"] {
                        if let Some(line) = a.text.strip_prefix(start).filter(|l| !l.is_empty()) {
                            let line = line.to_owned();
                            if !matches!(line.as_str(), "less" | "more" | "cat" | "vim" | "vi") {
                                self.ask("run.gitconfig", "Git would run another program.");
                            }
                            self.program(&line, &Val::default());
                        }
                    }
                }
                if matches!(sub, "send-email" | "instaweb" | "daemon" | "http-push") {
                    self.ask(
                        "exfil.git",
                        format!("git {sub} makes the repository's content leave. A person has to agree."),
                    );
                }
                if sub == "grep" {
                    for w in words.iter().skip(1) {
                        self.read_file(w);
                    }
                }
                if sub == "grep" && (has(&["--no-index", "--untracked"])) {
                    let roots: Vec<Val> = words.iter().skip(1).map(|w| (*w).clone()).collect();
                    self.searches(
                        &first,
                        if roots.is_empty() { vec![Val::known(".")] } else { roots },
                        true,
                        None,
                    );
                }
            }
            "clone" | "fetch" | "pull" | "ls-remote" => {
                let o = Options::split(
                    args,
                    &[
                        "-u",
                        "--upload-pack",
                        "--exec",
                        "-c",
                        "--config",
                        "-b",
                        "--branch",
                        "--depth",
                        "-o",
                        "--origin",
                        "--template",
                        "--reference",
                        "-j",
                    ],
                    false,
                );
                for line in o.values(&["-u", "--upload-pack", "--exec"]) {
                    self.text(&line, &[], &Val::default());
                }
                for c in o.values(&["-c", "--config"]) {
                    if let Some((key, value)) = c.text.split_once('=')
                        && runs(key)
                    {
                        let (key, value) = (key.to_owned(), value.to_owned());
                        self.config_value(&key, &value);
                    }
                }
                for u in &o.operands {
                    if u.text.starts_with("ext::") || u.text.starts_with("fd::") || u.text.starts_with('-') {
                        self.deny("run.gitconfig", "The address makes git run a command.");
                    }
                    if u.taint.any(Taint::LOCAL) {
                        self.deny("exfil.address", "The address carries data of this machine.");
                    }
                }
                if sub == "clone"
                    && let Some(to) = o.operands.get(1)
                {
                    self.write_file(to, false);
                }
            }
            "credential" | "credential-cache" | "credential-store" | "credential-osxkeychain" => {
                if matches!(first.as_str(), "fill" | "get") {
                    self.deny("secret.read", "The command prints stored credentials.");
                }
            }
            "diff" | "show" | "log" | "blame" | "cat-file" | "annotate" | "apply" | "hash-object"
            | "check-attr" | "whatchanged" | "format-patch" | "range-diff" => {
                if has(&["--output"]) || args.iter().any(|a| a.text.starts_with("--output=")) {
                    for a in args {
                        if let Some(file) = a.text.strip_prefix("--output=") {
                            self.write_file(&a.map(file), true);
                        }
                    }
                }
                if names_only(sub, args) {
                    return Val::unknown(Taint::FILE);
                }
                for w in args {
                    self.git_path(w, true);
                    if let Some((_, p)) = w.text.split_once(':') {
                        self.git_path(&w.map(p), true);
                    }
                }
            }
            "add" | "stage" => {
                let forced = cluster('f') || has(&["--force"]);
                for w in &words {
                    for path in self.meanings(w) {
                        if self.is_secret(&path).is_some() {
                            self.ask("exfil.git", "The command puts a secret file into the repository. Add it to .gitignore instead.");
                        }
                    }
                    if forced && wide(&[(*w).clone()]) {
                        self.ask("exfil.git", "The command adds ignored files too, secrets among them.");
                    }
                }
            }
            "update-index" | "check-ignore" | "ls-files" | "status" | "commit" | "mv" => {
                if sub == "status" && (cluster('v') || has(&["--verbose"])) {
                    for w in &words {
                        self.git_path(w, true);
                    }
                }
                if sub == "ls-files" && (cluster('o') || has(&["--others"])) {
                    return self.find_files(&[Val::known(".")], stdin);
                }
                if sub == "mv" {
                    for w in &words {
                        self.git_path(w, true);
                        self.git_path(w, false);
                    }
                    if let [from @ .., to] = words.as_slice() {
                        for w in from {
                            let name = w.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                            let into = to.map(format!("{}/{name}", to.text.trim_end_matches('/')));
                            self.write_file(&into, false);
                        }
                    }
                }
                if sub == "commit" {
                    let o = Options::split(
                        args,
                        &[
                            "-F",
                            "--file",
                            "-t",
                            "--template",
                            "-m",
                            "--message",
                            "-C",
                            "-c",
                            "--author",
                            "--date",
                            "--trailer",
                        ],
                        false,
                    );
                    for file in o.values(&["-F", "--file", "-t", "--template"]) {
                        self.read_file(&file);
                    }
                }
            }
            _ => {}
        }
        let prints = matches!(
            sub,
            "diff"
                | "show"
                | "log"
                | "blame"
                | "archive"
                | "bundle"
                | "cat-file"
                | "grep"
                | "format-patch"
                | "ls-files"
        );
        Val::unknown(if prints { Taint::FILE } else { Taint::NONE })
    }
}
