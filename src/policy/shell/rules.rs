//! What single programs may do to files, processes, services and data.

use super::carry::INITIALISER;
use super::eval::Machine;
use super::options::Options;
use super::run::outside;
use super::value::{HOLE, Taint, Val};
use crate::policy::paths;
use crate::policy::tools::{protected_denied, secret_denied, shown};
use crate::policy::world::Kind;
use std::path::{Path, PathBuf};

/// Programs whose path arguments are not read.
#[rustfmt::skip]
const BLIND: &[&str] = &[
    "ls", "stat", "touch", "mkdir", "rmdir", "chmod", "chown", "chgrp", "du", "tree", "exa", "eza", "lsd", "test", "logger", "notify-send", "say", "seq", "expr", "bc", "dc", "printenv", "tput", "stty", "locale", "getconf", "lsof", "fuser", "pgrep", "pidof", "killall5", "man", "info", "apropos", "tldr", "jest", "factor", "cal", "watchman", "ln", "install", "link", "file",
];

/// Whether a search pattern is made to find credentials, or finds every line.
pub fn seeks_secrets(pattern: &str) -> bool {
    let lower = pattern.to_lowercase();
    let plain = lower.trim_matches(|c: char| matches!(c, '^' | '$' | '(' | ')' | '\'' | '"' | '\\' | 'b'));
    if matches!(plain, "" | "." | ".*" | ".+" | "=" | ".*=.*" | "[a-z]" | ":" | "[^ ]" | "[a-z_]+=" | "\\w+=")
    {
        return true;
    }
    [
        "secret",
        "token",
        "passw",
        "passwd",
        "api_key",
        "apikey",
        "api-key",
        "credential",
        "private_key",
        "private key",
        "access_key",
        "bearer",
        "aws_",
        "sk-ant",
        "ghp_",
        "akia",
        "auth_key",
        "client_id",
        "begin rsa",
        "begin openssh",
        "_key",
    ]
    .iter()
    .any(|w| lower.contains(w))
        || matches!(plain, "key" | "keys" | "pass" | "pwd" | "auth")
        || lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| w == "key" || w == "pwd" || w == "pass")
}

/// Whether a statement of SQL (or of a database's own language) destroys data.
pub fn destructive_sql(text: &str) -> bool {
    let upper = text.to_uppercase();
    let words: Vec<&str> =
        upper.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty()).collect();
    let pair = |a: &str, b: &[&str]| words.windows(2).any(|w| w[0] == a && b.contains(&w[1]));
    pair(
        "DROP",
        &["TABLE", "DATABASE", "SCHEMA", "COLLECTION", "USER", "INDEX", "VIEW", "KEYSPACE", "ROLE", "OWNED"],
    ) || words.contains(&"TRUNCATE")
        || upper.contains("DROPDATABASE")
        || upper.contains(".DROP(")
        || upper.contains("DELETEMANY({})")
        || upper.contains(".REMOVE({})")
        || words.iter().any(|w| matches!(*w, "FLUSHALL" | "FLUSHDB"))
        || upper.split(';').any(|s| {
            let w: Vec<&str> = s.split_whitespace().collect();
            (w.first() == Some(&"DELETE") && w.get(1) == Some(&"FROM")
                || w.first() == Some(&"UPDATE") && s.contains(" SET "))
                && !s.contains("WHERE")
        })
}

impl Machine<'_> {
    pub(super) fn rules(&mut self, base: &str, name: &Val, args: &[Val], stdin: &Val) -> Val {
        if self.guard(base, args) || base == "claude" || base == "claude-code" || base == "jess" {
            return Val::unknown(Taint::NONE);
        }
        match base {
            "git" | "hub" if base == "git" => return self.git(args, stdin),
            "rm" | "rmdir" | "unlink" | "shred" | "trash" | "srm" | "wipe" | "rimraf" | "trash-put" => {
                return self.rm(base, args);
            }
            "cp" | "mv" | "ln" | "install" | "rename" | "link" => return self.copies(base, args),
            "dd" => return self.dd(args),
            "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" | "ugrep" | "zgrep" | "ripgrep" | "pcregrep"
            | "pcre2grep" | "xzgrep" => return self.grep(base, args, stdin),
            "tar" | "zip" | "7z" | "7za" | "cpio" | "rar" | "ar" | "bsdtar" | "unzip" | "zipinfo" | "pax"
            | "star" | "mksquashfs" | "genisoimage" | "jar" | "restic" | "borg" => {
                return self.archive(base, args, stdin);
            }
            "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" => return self.mode(base, args),
            "touch" | "mkdir" | "truncate" | "fallocate" | "mkfifo" | "mknod" => {
                let o = Options::split(args, &["-m", "-d", "-t", "-r", "-s", "-l", "-o", "--size"], false);
                for f in &o.operands {
                    if base != "mkdir" || f.text.contains(".git/hooks") {
                        self.write_file(f, base == "truncate");
                    }
                }
                return Val::default();
            }
            "printenv" => {
                let names: Vec<&str> =
                    args.iter().map(|a| a.text.as_str()).filter(|a| !a.starts_with('-')).collect();
                let secret = names.is_empty()
                    || names.iter().any(|n| super::word::secret_variable(n) || n.contains(HOLE));
                return Val::unknown(if secret { Taint::ENV } else { Taint::NONE });
            }
            "compgen" | "declare" => return Val::unknown(Taint::NONE),
            // What it prints is a process number; the name stands for it here, so that `kill` sees whose it is.
            "pgrep" | "pidof" => return super::carry::joined(args),
            "history" | "fc" => {
                if !args.iter().any(|a| matches!(a.text.as_str(), "-c" | "-d" | "-w")) {
                    self.ask("secret.read", "The command prints the operator's command history.");
                }
                return Val::default();
            }
            "ls" | "stat" | "du" | "tree" | "exa" | "eza" | "lsd" => return self.lists(args),
            "jq" | "yq" => {
                for a in args.iter().skip(1) {
                    self.read_file(a);
                }
                return Val::unknown(stdin.taint.without(Taint::NET).with(if args.len() > 1 {
                    Taint::FILE
                } else {
                    Taint::NONE
                }));
            }
            _ => {}
        }
        if let Some(text) = sets_up_a_shell(base, args) {
            return text;
        }
        if self.administers(base, args, stdin)
            || self.reveals(base, args)
            || self.databases(base, args, stdin)
        {
            return Val::unknown(Taint::NONE);
        }
        if let Some(out) = self.network(base, args, stdin) {
            self.reaches = true;
            return out;
        }
        self.escapes(base, args, stdin);
        if BLIND.contains(&base) {
            return Val::unknown(Taint::NONE);
        }
        self.unknown_program(name, args, stdin)
    }

    /// A program without rules of its own: its arguments may be paths that it reads.
    fn unknown_program(&mut self, _name: &Val, args: &[Val], stdin: &Val) -> Val {
        let mut taint = stdin.taint.without(Taint::ENV);
        for a in args {
            for part in [
                a.text.as_str(),
                a.text.split_once('=').map_or("", |(_, v)| v),
                a.text.trim_start_matches('@'),
            ] {
                if part.is_empty() || part.len() > 4096 || part.contains('\n') {
                    continue;
                }
                let file = a.map(part);
                if self.meanings(&file).iter().any(|p| {
                    self.is_secret(p).is_some()
                        && (self.world.kind(p) != Kind::Missing
                            || part.contains('/')
                            || part.starts_with('.'))
                }) {
                    self.read_file(&file);
                }
                if !a.is_known() {
                    self.read_file(&file);
                }
            }
            if self
                .meanings(a)
                .iter()
                .any(|p| self.world.kind(p) == Kind::File || self.state.files.contains_key(p))
            {
                taint = taint.with(Taint::FILE);
            }
            taint = taint.with(a.taint.without(Taint::ENV));
        }
        self.suffix_runs(args, stdin);
        Val::unknown(taint)
    }

    /// An unknown program may be a wrapper: a suffix that deletes or runs a text is judged as if it ran.
    fn suffix_runs(&mut self, args: &[Val], stdin: &Val) {
        for (i, a) in args.iter().enumerate().take(16) {
            let base = a.text.rsplit('/').next().unwrap_or_default();
            let next = args.get(i + 1).map(|n| n.text.as_str()).unwrap_or_default();
            let runs = matches!(base, "rm" | "shred") && next.starts_with('-')
                || matches!(base, "sh" | "bash" | "zsh" | "dash")
                    && next.starts_with('-')
                    && next.contains('c')
                || matches!(base, "cat" | "head" | "tail" | "base64" | "less")
                    && !next.is_empty()
                    && i > 0
                    && args[i - 1].text == "--";
            if runs {
                self.run(&args[i..], stdin);
                return;
            }
        }
    }

    fn lists(&mut self, args: &[Val]) -> Val {
        // Names are no secret; the ones that are known help the commands that read them.
        let mut out = Val::default();
        let hidden = args.iter().any(|a| a.text.starts_with('-') && a.text.contains(['a', 'A']));
        let dirs: Vec<Val> = args.iter().filter(|a| !a.text.starts_with('-')).cloned().collect();
        let dirs = if dirs.is_empty() { vec![Val::known(".")] } else { dirs };
        for d in &dirs {
            for path in self.meanings(d) {
                if self.world.kind(&path) == Kind::Dir {
                    for n in
                        self.world.list(&path).into_iter().filter(|n| hidden || !n.starts_with('.')).take(64)
                    {
                        out.push(&Val::known(format!("{n}\n")));
                    }
                } else {
                    out.push(&Val::known(format!("{}\n", d.text)));
                }
            }
        }
        out.push(&Val::unknown(Taint::FILE));
        out
    }

    /// The guard, its client and their switches.
    fn guard(&mut self, base: &str, args: &[Val]) -> bool {
        let text: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        let names_guard = |t: &str| {
            let t = t.to_lowercase();
            t == "jess"
                || t.contains("jess ")
                || t.starts_with("jess-")
                || t.ends_with("/jess")
                || t == "claude"
                || t.contains("claude ")
                || t.contains("jess.*")
                || t.contains("[j]ess")
        };
        match base {
            "kill" | "pkill" | "killall" | "skill" | "xkill" => {
                if text.iter().any(|t| names_guard(t))
                    || args.iter().any(|a| a.taint.any(Taint::CODED) || names_guard(&a.text))
                {
                    self.deny("guard.kill", "The command stops the guard or the client.");
                }
                if text.iter().any(|t| matches!(*t, "-1" | "1"))
                    && text.last().is_some_and(|t| matches!(*t, "-1" | "1"))
                    && (text.len() > 1 || text == ["1"])
                {
                    self.ask("destroy.processes", "The command signals every process, or the first one.");
                }
                if text.iter().any(|t| matches!(*t, "systemd" | "init" | "sshd" | "dbus-daemon" | "dockerd"))
                    || text.windows(2).any(|w| w[0] == "-u")
                {
                    self.ask("destroy.processes", "The command stops services of the machine.");
                }
                true
            }
            "jess" => {
                let sub = text.iter().find(|t| !t.starts_with('-')).copied().unwrap_or_default();
                if matches!(sub, "uninstall" | "init" | "daemon" | "session" | "install" | "config" | "trust")
                    && text != ["trust", "check"]
                    && !(sub == "trust" && text.contains(&"check") && !text.contains(&"--trust-repo"))
                    && !text.contains(&"--help")
                {
                    self.deny(
                        "guard.switch",
                        format!("jess {sub} changes the guard itself; only a person does that."),
                    );
                }
                if text
                    .iter()
                    .any(|t| *t == "--trust-repo" || t.starts_with("--require=none") || *t == "--tier")
                {
                    self.ask("guard.switch", "The command lifts a gate. A person has to agree.");
                }
                if sub == "hook"
                    && text.contains(&"exec")
                    && let Some(line) = args.last().cloned()
                {
                    self.text(&line, &[], &Val::default());
                }
                if sub == "run"
                    && let Some(at) = text.iter().position(|t| *t == "--")
                {
                    self.run(&args[at + 1..], &Val::default());
                }
                true
            }
            "claude" | "claude-code" | "cli.js" => {
                let joined = text.join(" ");
                if text.iter().any(|t| t.starts_with("--dangerously") || t.starts_with("--allow-dangerously"))
                    || joined.contains("bypassPermissions")
                    || text.iter().any(|t| {
                        matches!(*t, "--bare" | "--safe-mode" | "--settings" | "--setting-sources")
                            || t.starts_with("--settings=")
                            || t.starts_with("--setting-sources=")
                            || t.starts_with("--mcp-config")
                    })
                {
                    self.deny("guard.client", "The command starts the client without its guards.");
                } else if text.first().is_some_and(|s| {
                    matches!(
                        *s,
                        "mcp"
                            | "config"
                            | "plugin"
                            | "plugins"
                            | "install"
                            | "setup-token"
                            | "update"
                            | "auth"
                    )
                }) && text.iter().any(|s| {
                    matches!(
                        *s,
                        "add"
                            | "add-json"
                            | "set"
                            | "remove"
                            | "install"
                            | "enable"
                            | "disable"
                            | "setup-token"
                            | "add-from-claude-desktop"
                            | "marketplace"
                            | "uninstall"
                            | "login"
                            | "logout"
                    )
                }) {
                    self.ask("guard.client", "The command changes what the client runs or obeys.");
                }
                true
            }
            "codex" | "gemini" | "cursor-agent" | "copilot" | "opencode" | "aider" | "amp" | "droid"
            | "qwen" => {
                let joined = text.join(" ");
                if joined.contains("--yolo")
                    || joined.contains("--dangerously")
                    || joined.contains("--full-auto")
                    || joined.contains("--approval-mode")
                    || joined.contains("--yes-always")
                    || joined.contains("danger-full-access")
                    || joined.contains("--allow-all")
                    || text.contains(&"-y")
                {
                    self.ask("guard.client", "The command starts another agent without its guards.");
                }
                false
            }
            "npm" | "systemctl" if text.iter().any(|t| names_guard(t) || t.starts_with("jess")) => {
                self.deny("guard.switch", "The command changes the guard itself.");
                true
            }
            _ => false,
        }
    }

    /// Deletes below `target`: judged by where it lies. `narrowed`: only files with certain names.
    pub(super) fn removal(&mut self, target: &Val, recursive: bool, narrowed: bool) {
        let text = target.text.clone();
        if !target.is_known() {
            let head = text.split(HOLE).next().unwrap_or_default();
            if recursive {
                let base = self.meanings(&Val::known(
                    head.rsplit_once('/').map_or("", |(d, _)| if d.is_empty() { "/" } else { d }),
                ));
                let inside = !head.is_empty()
                    && base.iter().all(|p| {
                        paths::in_project(p, self.scope)
                            || paths::is_scratch(p, self.scope)
                            || *p == self.scope.project
                                && head.ends_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_')
                            || self.scope.scratch.contains(p)
                    })
                    && !base.is_empty();
                if !inside {
                    self.ask(
                        "destroy.unknown",
                        "What would be deleted is only known when the command runs. Name the directory.",
                    );
                }
            }
            return;
        }
        let slash = text.ends_with('/');
        for path in self.meanings(target) {
            // Without a trailing slash, rm deletes a link and not what it leads to.
            let path = if slash { path } else { self.parent_resolved(target).unwrap_or(path) };
            if paths::is_scratch(&path, self.scope) {
                continue;
            }
            let git = path.ends_with(".git") || path.components().any(|c| c.as_os_str() == ".git");
            if self.scope.home.starts_with(&path)
                || path == Path::new("/")
                || path.parent() == Some(Path::new("/")) && recursive
            {
                self.deny(
                    "destroy.tree",
                    format!("{} would be deleted with everything in it.", shown(&path)),
                );
            } else if self.scope.project.starts_with(&path) && recursive && !narrowed {
                self.deny(
                    "destroy.tree",
                    format!(
                        "{} is the project or holds it. Delete the one directory that is meant.",
                        shown(&path)
                    ),
                );
            } else if git {
                self.deny("destroy.git", "The repository's history would be deleted.");
            } else if let Some(what) = paths::protected(&path, self.scope)
                && !(path.starts_with(&self.scope.project) && what.contains("integration"))
            {
                self.find(protected_denied(&path, what));
            } else if self.is_secret(&path).is_some() && outside(&path, self) {
                self.ask(
                    "destroy.secret",
                    format!("{} holds credentials and would be deleted.", shown(&path)),
                );
            } else if !paths::in_project(&path, self.scope) && path != self.scope.project {
                if recursive {
                    self.deny(
                        "destroy.outside",
                        format!("{} lies outside the project. Ask the person to delete it.", shown(&path)),
                    );
                } else if !path.starts_with("/dev") {
                    self.ask("destroy.outside", format!("{} lies outside the project.", shown(&path)));
                }
            }
        }
    }

    /// A path whose parent is resolved and whose last component is not followed.
    fn parent_resolved(&self, target: &Val) -> Option<PathBuf> {
        let text = target.text.trim_end_matches('/');
        let path = self.cwd().join(text);
        let name = path.file_name()?.to_owned();
        let name_text = name.to_string_lossy();
        if name_text == ".." || name_text == "." || text.ends_with("/.") || text.ends_with("..") {
            return None;
        }
        Some(self.world.resolve(path.parent()?).join(name))
    }

    fn rm(&mut self, base: &str, args: &[Val]) -> Val {
        let o = Options::split(args, &["-n", "--iterations", "-s", "--size", "--interactive"], false);
        let recursive = o.has(&["-r", "-R", "--recursive", "-d", "--dir"])
            || base == "rimraf"
            || args.iter().any(|a| a.text.starts_with("--rec"));
        let flags = if base == "shred" { &["-x"][..] } else { &[] };
        let _ = flags;
        let mut seen_root = 0;
        let in_root: Vec<PathBuf> =
            self.world.list(&self.scope.project).into_iter().map(|n| self.scope.project.join(n)).collect();
        for t in &o.operands {
            // A glob that nothing matched, after an unknown or an empty start.
            if t.text.starts_with(HOLE) && t.text.contains("/*") || t.text == "/*" || t.text == "/" {
                self.deny("destroy.tree", "The command could delete the whole file system.");
            }
            if matches!(
                t.text.as_str(),
                "*" | "./*" | ".*" | "./.*" | ".[!.]*" | "./.[!.]*" | "./" | "." | ".."
            ) && recursive
            {
                self.ask("destroy.tree", "The command deletes everything in the directory.");
            }
            self.guard_binary(t);
            self.removal(t, recursive, false);
            if recursive && self.meanings(t).iter().any(|p| in_root.contains(p)) {
                seen_root += 1;
            }
            if base == "shred" {
                for path in self.meanings(t) {
                    if self.is_secret(&path).is_some() || path.starts_with("/dev") {
                        self.ask("destroy.secret", format!("{} would be destroyed.", shown(&path)));
                    }
                }
            }
        }
        // A glob that took in nearly all of the project.
        if recursive && in_root.len() >= 4 && seen_root * 4 >= in_root.len() * 3 {
            self.ask("destroy.tree", "The command deletes nearly everything in the project.");
        }
        Val::default()
    }

    fn copies(&mut self, base: &str, args: &[Val]) -> Val {
        let o = Options::split(
            args,
            &["-t", "--target-directory", "-S", "--suffix", "-m", "-o", "-g", "--mode", "--owner", "--group"],
            false,
        );
        let mut ops = o.operands.clone();
        let to = match o.values(&["-t", "--target-directory"]).first() {
            Some(t) => Some(t.clone()),
            None if base == "install" && o.has(&["-d"]) => None,
            None if ops.len() > 1 => ops.pop(),
            None if base == "ln" => Some(Val::known(".")),
            None => None,
        };
        let Some(to) = to else { return Val::default() };
        let into_dir =
            self.meanings(&to).iter().any(|p| self.world.kind(p) == Kind::Dir) || to.text.ends_with('/');
        for from in &ops {
            let name = from.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
            let target = if into_dir {
                to.map(format!("{}/{name}", to.text.trim_end_matches('/')))
            } else {
                to.clone()
            };
            let links = base == "ln" || base == "link";
            // A link's own place is written, not what it leads to.
            self.write_file(&target, !o.has(&["-n", "--no-clobber"]) && !links);
            if links {
                let at = self.parent_resolved(&target);
                if let Some(at) = at {
                    if let Some(what) = paths::protected(&at, self.scope) {
                        self.find(protected_denied(&at, what));
                    }
                    let base_dir = at.parent().map(Path::to_path_buf).unwrap_or_default();
                    let leads =
                        if o.has(&["-s", "--symbolic"]) && !from.text.starts_with('/') && from.is_known() {
                            self.world.resolve(&base_dir.join(&from.text))
                        } else {
                            match self.meanings(from).first() {
                                Some(p) => p.clone(),
                                None => continue,
                            }
                        };
                    if self.is_secret(&leads).is_some()
                        || (paths::secret_place(&leads, self.scope).is_some() && leads != Path::new("/"))
                    {
                        self.find(secret_denied(&leads, "a secret that a link would expose"));
                    }
                    if self.state.links.len() < 64 {
                        self.state.links.insert(at, leads);
                    }
                }
                continue;
            }
            let sources = self.meanings(from);
            if base == "mv" {
                self.guard_binary(from);
                if sources.iter().any(|p| p.ends_with(".git")) {
                    self.ask("destroy.git", "The repository's history would be moved away.");
                }
            }
            for path in &sources {
                if self.is_secret(path).is_some() {
                    let stays = base == "mv"
                        && self
                            .meanings(&target)
                            .iter()
                            .any(|t| self.is_secret(t).is_some() && paths::in_project(t, self.scope));
                    let template = false;
                    if !stays && !template {
                        self.read_file(from);
                        let content = Val::unknown(Taint::SECRET);
                        for t in self.meanings(&target) {
                            self.state.files.insert(t, content.clone());
                        }
                    }
                } else if let Some(content) = self.state.files.get(path).cloned() {
                    for t in self.meanings(&target) {
                        self.state.files.insert(t, content.clone());
                    }
                }
                if base == "mv" {
                    let gone = to.text == "/dev/null";
                    let anywhere = outside(path, self) && self.world.kind(path) != Kind::Missing;
                    if gone
                        || (anywhere
                            && path.starts_with(&self.scope.home)
                            && !self.state.files.contains_key(path))
                    {
                        self.ask("destroy.move", format!("{} would be moved away.", shown(path)));
                    }
                    if let Some(what) = paths::protected(path, self.scope) {
                        self.find(protected_denied(path, what));
                    }
                }
            }
        }
        if o.has(&["-r", "-R", "-a", "--recursive", "--archive"]) {
            self.gathers(&ops, args);
        }
        Val::default()
    }

    /// Directories that are taken as a whole: they must not hold secrets.
    pub(super) fn gathers(&mut self, dirs: &[Val], args: &[Val]) {
        let excluded: Vec<String> = args
            .iter()
            .enumerate()
            .filter_map(|(i, a)| {
                a.text.strip_prefix("--exclude=").map(str::to_owned).or_else(|| {
                    matches!(a.text.as_str(), "--exclude" | "-x" | "--exclude-dir")
                        .then(|| args.get(i + 1).map(|v| v.text.clone()).unwrap_or_default())
                })
            })
            .collect();
        for d in dirs {
            for path in self.meanings(d) {
                if let Some(what) = paths::secret_place(&path, self.scope) {
                    self.find(secret_denied(&path, what));
                    continue;
                }
                if self.world.kind(&path) != Kind::Dir {
                    continue;
                }
                let hits = paths::secrets_below(&path, self.scope, self.world, &|p| {
                    !excluded.iter().any(|e| {
                        p.file_name().is_some_and(|n| {
                            super::value::glob_matches(
                                &format!("x{}", e.trim_start_matches("./")),
                                &format!("x{}", n.to_string_lossy()),
                            )
                        })
                    })
                });
                if let Some(hit) = hits.first() {
                    self.find(secret_denied(hit, "a secret file in the directory that is taken as a whole"));
                }
            }
        }
    }

    /// The guard's own program, and the client's.
    fn guard_binary(&mut self, target: &Val) {
        let name = target.text.trim_end().rsplit('/').next().unwrap_or_default();
        if matches!(name, "jess" | "claude")
            && self.meanings(target).iter().all(|p| outside(p, self) || self.world.kind(p) == Kind::Missing)
        {
            self.deny("guard.binary", "The command takes the guard or the client out of the way.");
        }
    }

    fn dd(&mut self, args: &[Val]) -> Val {
        let mut taint = Taint::NONE;
        for a in args {
            if let Some(file) = a.text.strip_prefix("if=") {
                taint = taint.with(self.read_file(&a.map(file)).taint);
            } else if let Some(file) = a.text.strip_prefix("of=") {
                self.write_file(&a.map(file), true);
            }
        }
        Val::unknown(taint)
    }

    /// Searches that print lines.
    pub(super) fn searches(
        &mut self,
        pattern: &str,
        roots: Vec<Val>,
        hidden: bool,
        filter: Option<&[String]>,
    ) {
        for root in roots {
            for path in self.meanings(&root) {
                if self.is_secret(&path).is_some() {
                    self.deny_secret(&path);
                    continue;
                }
                if self.world.kind(&path) == Kind::File {
                    continue;
                }
                if let Some(what) = paths::secret_place(&path, self.scope)
                    && hidden
                    && what != "a system directory that holds secrets"
                {
                    self.find(secret_denied(&path, what));
                }
                if !hidden {
                    continue;
                }
                let hits = paths::secrets_below(&path, self.scope, self.world, &|p| {
                    filter.is_none_or(|f| {
                        f.is_empty()
                            || f.iter().any(|g| {
                                p.file_name().is_some_and(|n| {
                                    super::value::glob_matches(
                                        &format!("x{g}"),
                                        &format!("x{}", n.to_string_lossy()),
                                    )
                                })
                            })
                    })
                });
                let aimed = filter.is_some_and(|f| {
                    f.iter().any(|g| g.starts_with(".e") || g.contains("env") || g.starts_with(".*"))
                });
                if let Some(hit) = hits.first()
                    && (seeks_secrets(pattern) || pattern.contains(HOLE) || aimed)
                {
                    self.find(secret_denied(hit, "a secret file that the search would print"));
                }
            }
        }
    }

    fn grep(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let valued: &[&str] = if matches!(base, "rg" | "ripgrep") {
            &[
                "-e",
                "--regexp",
                "-f",
                "--file",
                "-g",
                "--glob",
                "--iglob",
                "-t",
                "--type",
                "-T",
                "-A",
                "-B",
                "-C",
                "-m",
                "--max-count",
                "--max-depth",
                "-d",
                "-j",
                "-M",
                "--sort",
                "-r",
                "--replace",
                "-E",
                "--pre",
                "--pre-glob",
            ]
        } else {
            &[
                "-e",
                "--regexp",
                "-f",
                "--file",
                "-A",
                "-B",
                "-C",
                "-m",
                "--max-count",
                "--include",
                "--exclude",
                "--exclude-dir",
                "-d",
                "-D",
                "--color",
                "--label",
                "-G",
                "--ignore",
            ]
        };
        let o = Options::split(args, valued, false);
        let mut ops = o.operands.clone();
        for file in o.values(&["-f", "--file"]) {
            self.read_file(&file);
        }
        for line in o.values(&["--pre"]) {
            self.run(&[line], &Val::default());
        }
        let mut patterns = o.values(&["-e", "--regexp"]);
        if patterns.is_empty() && !o.has(&["-f", "--file", "--files"]) && !ops.is_empty() {
            patterns.push(ops.remove(0));
        }
        let pattern = patterns.iter().map(|p| p.text.clone()).collect::<Vec<_>>().join("|");
        let quiet = o.has(&["-q", "--quiet", "-c", "--count", "-l", "--files-with-matches", "-L"]);
        let rg = matches!(base, "rg" | "ripgrep" | "ag" | "ack");
        let recursive = rg || o.has(&["-r", "-R", "--recursive"]) || base == "ugrep" && o.has(&["-r"]);
        let mut taint = stdin.taint;
        if taint.any(Taint::ENV)
            && !o.has(&["-v", "--invert-match"])
            && !seeks_secrets(&pattern)
            && pattern.chars().filter(|c| c.is_ascii_alphabetic()).count() >= 3
            && !pattern.contains(HOLE)
            && !pattern.contains(".*")
        {
            taint = taint.without(Taint::ENV);
        }
        if quiet && taint.any(Taint::ENV) {
            taint = taint.without(Taint::ENV);
        }
        let files: Vec<Val> = ops.clone();
        if recursive {
            let hidden = if rg {
                o.given.iter().any(|(n, _)| {
                    matches!(n.as_str(), "-u" | "--hidden" | "--no-ignore" | "-." | "--unrestricted")
                })
            } else {
                true
            };
            let filter: Vec<String> = o
                .values(&["--include", "-g", "--glob", "--iglob"])
                .into_iter()
                .map(|v| v.text)
                .filter(|g| !g.starts_with('!'))
                .collect();
            let excluded: Vec<String> =
                o.values(&["--exclude", "--ignore"]).into_iter().map(|v| v.text).collect();
            let skips = excluded.iter().any(|e| e.contains("env"))
                || o.values(&["-g", "--glob"])
                    .iter()
                    .any(|g| g.text.starts_with('!') && g.text.contains("env"))
                || o.has(&["-t", "--type"]);
            let aimed = filter.iter().any(|g| g.starts_with('.') || g.contains("env"));
            let roots = if files.is_empty() { vec![Val::known(".")] } else { files.clone() };
            if !skips && (!quiet || aimed) {
                self.searches(&pattern, roots.clone(), hidden || aimed, Some(&filter));
            } else {
                for r in &roots {
                    for p in self.meanings(r) {
                        self.deny_secret(&p);
                    }
                }
            }
            return Val::unknown(taint.with(Taint::FILE));
        }
        for f in &files {
            if quiet && o.has(&["-q", "--quiet", "-c", "--count", "-l"]) {
                continue;
            }
            taint = taint.with(self.read_file(f).taint);
        }
        if files.is_empty() && !stdin.text.is_empty() {
            let inverted = o.has(&["-v", "--invert-match"]);
            return Val { text: matching(&stdin.text, &pattern, inverted), taint };
        }
        Val::unknown(taint)
    }

    fn archive(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        for a in args {
            for start in [
                "--to-command=",
                "--checkpoint-action=exec=",
                "--use-compress-program=",
                "--info-script=",
                "--rsh-command=",
                "-I",
            ] {
                if let Some(line) = a
                    .text
                    .strip_prefix(start)
                    .filter(|l| !l.is_empty() && l.chars().any(|c| c == ' ' || c == '/'))
                {
                    let line = line.to_owned();
                    self.program(&line, stdin);
                }
            }
        }
        for (i, a) in args.iter().enumerate() {
            if matches!(
                a.text.as_str(),
                "--to-command"
                    | "-I"
                    | "--use-compress-program"
                    | "-F"
                    | "--info-script"
                    | "-TT"
                    | "--unzip-command"
            ) && let Some(line) = args.get(i + 1).cloned()
            {
                self.text(&line, &[], stdin);
            }
        }
        let first = args.first().map(|a| a.text.clone()).unwrap_or_default();
        let flags: String =
            if first.starts_with("--") { String::new() } else { first.trim_start_matches('-').to_owned() };
        let lists = base == "tar" && flags.contains('t') || matches!(base, "zipinfo");
        let extracts = (matches!(base, "tar" | "bsdtar")
            && (flags.contains('x') || args.iter().any(|a| a.text == "--extract")))
            || matches!(base, "unzip")
            || matches!(base, "7z" | "rar" | "ar" | "jar") && flags.starts_with('x');
        let mut dir = None;
        for (i, a) in args.iter().enumerate() {
            if matches!(a.text.as_str(), "-C" | "--directory" | "-d") {
                dir = args.get(i + 1).cloned();
            } else if let Some(d) = a.text.strip_prefix("--directory=") {
                dir = Some(a.map(d));
            }
        }
        if extracts || lists {
            if let Some(d) = &dir {
                let inner = d.map(format!("{}/x", d.text));
                self.write_file(&inner, false);
                for p in self.meanings(d) {
                    if p == Path::new("/") || p == self.scope.home {
                        self.ask(
                            "persist.extract",
                            "The archive would be unpacked over the operator's own files.",
                        );
                    }
                }
            }
            if args.iter().any(|a| matches!(a.text.as_str(), "-P" | "--absolute-names")) {
                self.ask("persist.extract", "The archive may write anywhere.");
            }
            return Val::unknown(stdin.taint);
        }
        let saved = self.state.cwds.clone();
        if let Some(d) = &dir {
            let to = self.meanings(d);
            if !to.is_empty() {
                self.state.cwds = to;
            }
        }
        let skip = usize::from(!first.starts_with('-') || matches!(base, "tar") && !first.starts_with("--"));
        let mut operands: Vec<Val> = Vec::new();
        let mut takes = flags.contains('f') && base == "tar"
            || matches!(base, "zip" | "7z" | "7za" | "rar" | "jar" | "mksquashfs");
        let mut iter = args.iter().enumerate();
        while let Some((i, a)) = iter.next() {
            if (i < skip && base != "zip") || a.text.starts_with('-') && a.text.len() > 1 {
                if matches!(
                    a.text.as_str(),
                    "-f" | "--file" | "-C" | "--directory" | "-T" | "-X" | "--exclude" | "-x" | "-o" | "-I"
                ) && let Some((_, v)) = iter.next()
                    && a.text == "-f"
                {
                    self.write_file(v, true);
                    takes = false;
                }
                continue;
            }
            if takes {
                if a.text != "-" {
                    self.write_file(a, true);
                }
                takes = false;
                continue;
            }
            operands.push(a.clone());
        }
        for a in &operands {
            self.read_file(a);
        }
        if base == "cpio" || base == "pax" {
            for name in stdin.text.split_whitespace().take(64) {
                self.read_file(&stdin.map(name));
            }
        }
        self.gathers(&operands, args);
        self.state.cwds = saved;
        Val::unknown(Taint::FILE)
    }

    fn mode(&mut self, base: &str, args: &[Val]) -> Val {
        let o = Options::split(args, &["--reference"], false);
        let recursive = o.has(&["-R", "--recursive"]);
        let how = o.operands.first().map(|a| a.text.clone()).unwrap_or_default();
        if base == "chmod"
            && (how.contains("+s")
                || how.contains("u+s")
                || how.len() == 4
                    && matches!(how.as_bytes().first(), Some(b'2' | b'4' | b'6' | b'7'))
                    && how.chars().all(|c| c.is_ascii_digit()))
        {
            self.ask("persist.setuid", "The file would run with another user's rights.");
        }
        // `chmod -x FILE`: the mode looks like an option.
        let minus = base == "chmod"
            && args.iter().any(|a| {
                a.text.len() > 1
                    && a.text.starts_with('-')
                    && a.text[1..].chars().all(|c| "rwxstX".contains(c))
            });
        let skip = usize::from(!minus && (base != "chattr" || !how.contains(['/', '.'])));
        for t in o.operands.iter().skip(skip) {
            self.guard_binary(t);
            for path in self.meanings(t) {
                if recursive && outside(&path, self) && !self.scope.home.starts_with(&path) {
                    self.ask(
                        "destroy.mode",
                        format!("The rights of everything in {} would change.", shown(&path)),
                    );
                }
                if recursive && (self.scope.home.starts_with(&path) || path == self.scope.home) {
                    self.deny(
                        "destroy.mode",
                        format!("The rights of everything in {} would change.", shown(&path)),
                    );
                } else if let Some(what) = paths::protected(&path, self.scope) {
                    if base == "chmod" && what.contains("integration") {
                        continue;
                    }
                    let hook = how.contains('x') || how.chars().all(|c| c.is_ascii_digit());
                    let in_project = path.starts_with(&self.scope.project);
                    if !in_project && !path.components().any(|c| c.as_os_str() == ".ssh")
                        || (in_project && hook && path.components().any(|c| c.as_os_str() == ".git"))
                        || path.components().any(|c| c.as_os_str() == ".claude")
                    {
                        self.find(protected_denied(&path, what));
                    } else if how.contains('7') && self.is_secret(&path).is_some() || how == "777" {
                        self.ask("persist.mode", "The file would be open to everybody.");
                    }
                } else if self.is_secret(&path).is_some()
                    && (how.ends_with('4')
                        || how.ends_with('6')
                        || how.ends_with('7')
                        || how.contains("o+")
                        || how.contains("a+"))
                {
                    self.ask("persist.mode", "A secret would be open to everybody.");
                }
            }
        }
        Val::default()
    }

    /// Programs that change the machine: services, accounts, disks, schedules, packages, power.
    fn administers(&mut self, base: &str, args: &[Val], stdin: &Val) -> bool {
        let text: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        let has = |w: &[&str]| text.iter().any(|t| w.contains(t));
        let help = has(&["--help", "--version"]);
        if help {
            return false;
        }
        match base {
            "crontab" => {
                if !has(&["-l"]) {
                    self.ask(
                        "persist.schedule",
                        "The command changes what runs on a schedule. A person has to agree.",
                    );
                }
            }
            "systemctl" | "service" | "rc-service" | "rc-update" | "update-rc.d" | "chkconfig"
            | "initctl" | "launchctl" | "loginctl" | "sv" => {
                let read = has(&[
                    "status",
                    "show",
                    "list-units",
                    "is-active",
                    "is-enabled",
                    "cat",
                    "list-timers",
                    "list-unit-files",
                    "list",
                    "print",
                    "is-failed",
                    "get-default",
                    "--status-all",
                    "list-sessions",
                    "list-jobs",
                    "list-dependencies",
                ]);
                if !read {
                    self.ask(
                        "persist.service",
                        format!("{base} changes a service of the machine. A person has to agree."),
                    );
                }
            }
            "vagrant" | "multipass" | "virsh" | "VBoxManage" | "qm" | "lxc" | "incus" => {
                if has(&["destroy", "delete", "undefine", "unregistervm", "purge", "rm"]) {
                    self.ask(
                        "destroy.machine",
                        format!("{base} would delete a machine. A person has to agree."),
                    );
                }
            }
            "killall5" => self.ask("destroy.processes", "The command signals every process."),
            "shutdown" | "reboot" | "poweroff" | "halt" | "init" | "telinit" | "kexec"
            | "systemd-sysusers" => self.ask("destroy.power", "The command stops the machine."),
            "mkfs" | "wipefs" | "fdisk" | "sfdisk" | "parted" | "sgdisk" | "gdisk" | "cfdisk" | "mkswap"
            | "blkdiscard" | "hdparm" | "cryptsetup" | "pvremove" | "vgremove" | "lvremove" | "zpool"
            | "zfs" | "mdadm" | "badblocks" | "nvme" | "dmsetup" | "losetup" | "swapoff" | "umount"
            | "mount" | "fsck" | "diskutil" | "e2fsck" | "resize2fs" | "tune2fs" | "btrfs" => {
                if !(has(&["-l", "--list", "list", "status", "info", "-n"])
                    || base == "mount" && text.is_empty())
                {
                    self.ask(
                        "destroy.disk",
                        format!("{base} changes disks or mounts. A person has to agree."),
                    );
                }
            }
            _ if base.starts_with("mkfs.") || base.starts_with("fsck.") => {
                self.ask("destroy.disk", "The command overwrites a file system.")
            }
            "useradd" | "usermod" | "userdel" | "groupadd" | "groupmod" | "groupdel" | "adduser"
            | "deluser" | "passwd" | "chpasswd" | "gpasswd" | "visudo" | "vipw" | "chsh" | "chfn"
            | "newusers" | "pwconv" | "dscl" | "sysadminctl" => {
                self.ask(
                    "persist.account",
                    format!("{base} changes accounts of the machine. A person has to agree."),
                );
            }
            "setcap"
            | "insmod"
            | "modprobe"
            | "rmmod"
            | "sysctl"
            | "iptables"
            | "ip6tables"
            | "nft"
            | "ufw"
            | "firewall-cmd"
            | "setenforce"
            | "aa-disable"
            | "aa-teardown"
            | "apparmor_parser"
            | "auditctl"
            | "update-alternatives"
            | "alternatives"
            | "ldconfig"
            | "update-ca-certificates"
            | "trust"
            | "certutil"
            | "spctl"
            | "csrutil"
            | "tccutil"
            | "defaults"
            | "dpkg-divert"
            | "authselect"
            | "pam-auth-update"
            | "grub-install"
            | "update-grub"
            | "efibootmgr"
            | "bcdedit"
            | "reg"
            | "ip"
            | "route"
            | "ifconfig"
            | "tc"
            | "nmcli"
            | "hostnamectl"
            | "timedatectl"
            | "localectl" => {
                let reads = match base {
                    "sysctl" => !has(&["-w", "-p"]) && !text.iter().any(|t| t.contains('=')),
                    "iptables" | "ip6tables" => has(&["-L", "-S", "-nL", "--list", "-vnL"]),
                    "nft" | "ufw" => has(&["list", "status"]),
                    "ip" | "route" | "ifconfig" | "nmcli" | "tc" => {
                        !has(&["add", "del", "delete", "set", "flush", "replace", "up", "down"])
                    }
                    "ldconfig" => has(&["-p"]),
                    "hostnamectl" | "timedatectl" | "localectl" => {
                        text.is_empty() || has(&["status", "show"])
                    }
                    "defaults" => has(&["read"]),
                    _ => false,
                };
                if !reads {
                    self.ask(
                        "persist.system",
                        format!("{base} changes how the machine works or is guarded. A person has to agree."),
                    );
                }
            }
            "terraform" | "tofu" | "terragrunt" | "pulumi" | "cdk" | "cdktf" | "sam" | "ansible"
            | "ansible-playbook" | "chef" | "puppet" | "salt" | "helm" | "helmfile" | "packer" | "nomad"
            | "consul" => {
                let acts = has(&[
                    "destroy",
                    "apply",
                    "delete",
                    "uninstall",
                    "up",
                    "taint",
                    "deploy",
                    "import",
                    "rollback",
                    "upgrade",
                    "install",
                    "force-unlock",
                ]) || text.windows(2).any(|w| matches!(w, ["state", "rm" | "push" | "mv"]))
                    || base == "ansible"
                    || base == "ansible-playbook" && !has(&["--check", "--syntax-check"]);
                if acts {
                    self.ask(
                        "destroy.infrastructure",
                        format!("{base} would change running infrastructure. A person has to agree."),
                    );
                }
                if has(&["output"]) && has(&["-raw", "-json"])
                    || text.windows(2).any(|w| matches!(w, ["state", "pull" | "show"]))
                    || has(&["--show-secrets"])
                {
                    self.ask("secret.read", "The output can hold secrets.");
                }
            }
            "vault" | "consul-template" => {
                if has(&["read", "get", "print", "list", "login", "kv", "token", "unwrap"]) {
                    self.deny("secret.read", "The command prints secrets.");
                }
            }
            "apt" | "apt-get" | "aptitude" | "dnf" | "yum" | "zypper" | "pacman" | "apk" | "snap"
            | "flatpak" | "dpkg" | "rpm" | "brew" | "port" | "nix-env" | "emerge" => {
                if has(&[
                    "remove",
                    "purge",
                    "autoremove",
                    "uninstall",
                    "erase",
                    "-R",
                    "-Rns",
                    "-Rs",
                    "-e",
                    "del",
                    "--purge",
                    "add-repository",
                ]) || text
                    .iter()
                    .any(|t| t.contains("://") || t.ends_with(".deb") && t.starts_with("http"))
                {
                    self.ask(
                        "persist.packages",
                        format!("{base} removes or adds software of unusual origin. A person has to agree."),
                    );
                }
                if let Some(at) = text.iter().position(|t| *t == "-o") {
                    let option = text.get(at + 1).copied().unwrap_or_default();
                    if option.contains("Invoke") {
                        let line = option.split_once('=').map(|(_, v)| v.to_owned()).unwrap_or_default();
                        self.program(&line, stdin);
                    }
                }
            }
            "add-apt-repository" | "apt-key" | "rpmkeys" => {
                self.ask("persist.packages", "The command trusts another source of software.")
            }
            "code" | "cursor" | "codium" | "code-insiders" | "windsurf" => {
                if text.iter().any(|t| t.contains("extension") && !t.contains("list")) {
                    self.ask("persist.editor", "The command installs something into the editor.");
                }
            }
            "docker-machine" | "minikube" | "kind" | "k3d" | "eksctl" | "kops" => {
                if has(&["rm", "delete", "stop"]) {
                    self.ask(
                        "destroy.cluster",
                        format!("{base} would delete a cluster or a machine. A person has to agree."),
                    );
                }
            }
            "ssh-add" | "ssh-keygen" => {
                let o = Options::split(
                    args,
                    &["-f", "-t", "-b", "-C", "-N", "-P", "-m", "-I", "-s", "-R", "-F"],
                    false,
                );
                for file in o.values(&["-f"]) {
                    if o.has(&["-y", "-p", "-e"]) {
                        self.read_file(&file);
                    } else if !o.has(&["-l", "-F", "-R"]) {
                        self.write_file(&file, true);
                    }
                }
                if base == "ssh-add" && !has(&["-l", "-L"]) {
                    self.ask("secret.use", "The command loads or drops keys of the operator.");
                }
                return true;
            }
            "ssh-agent" | "keychain" => return false,
            _ => return false,
        }
        true
    }

    /// Programs that print credentials.
    fn reveals(&mut self, base: &str, args: &[Val]) -> bool {
        let text: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        let has = |w: &[&str]| text.iter().any(|t| w.contains(t));
        let hit = match base {
            "gpg" | "gpg2" => {
                text.iter().any(|t| t.starts_with("--export-secret"))
                    || has(&[
                        "--export-secret-keys",
                        "--export-secret-subkeys",
                        "--decrypt",
                        "-d",
                        "--export-ownertrust",
                        "--delete-secret-keys",
                        "--delete-secret-key",
                    ])
            }
            "pass" | "gopass" | "passage" => {
                !has(&["ls", "list", "find", "--help", "version"]) && !text.is_empty()
            }
            "security" => {
                text.iter().any(|t| t.starts_with("find-") || t.starts_with("dump-") || *t == "export")
            }
            "secret-tool" | "kwallet-query" | "lssecret" | "keyring" => true,
            "op" | "bw" | "lpass" | "dashlane" | "keepassxc-cli" | "rbw" | "1password" => {
                !has(&["--version", "--help", "status"]) && !text.is_empty()
            }
            "sops" | "ansible-vault" | "age" | "eyaml" | "git-crypt" | "blackbox_cat" => {
                has(&[
                    "-d",
                    "--decrypt",
                    "decrypt",
                    "view",
                    "edit",
                    "exec-env",
                    "exec-file",
                    "unlock",
                    "decrypt-file",
                ]) || text.iter().any(|t| t.starts_with("dec"))
            }
            "heroku" | "vercel" | "netlify" | "flyctl" | "fly" | "railway" | "doppler" | "wrangler"
            | "supabase" | "firebase" | "stripe" | "infisical" | "chamber" | "eas" | "render" => {
                text.iter().any(|t| {
                    matches!(
                        *t,
                        "config"
                            | "env"
                            | "secrets"
                            | "variables"
                            | "env:get"
                            | "config:get"
                            | "env:list"
                            | "auth:token"
                            | "env:pull"
                    )
                }) && !has(&["set", "--help"])
            }
            "getfattr" => false,
            "unshadow" | "john" | "hashcat" | "mimipenguin" | "lazagne" => true,
            "strings" | "gcore" | "gdbserver" => base == "gcore",
            "xclip" | "xsel" | "pbpaste" | "wl-paste" => {
                has(&["-o", "--output"]) || matches!(base, "pbpaste" | "wl-paste")
            }
            "import" | "scrot" | "screencapture" | "gnome-screenshot" | "grim" => false,
            "journalctl" | "dmesg" => false,
            "ps" => false,
            _ => false,
        };
        if hit {
            self.deny("secret.read", format!("{base} would print credentials of the operator."));
            for a in args {
                self.read_file(a);
            }
        }
        hit
    }

    fn databases(&mut self, base: &str, args: &[Val], stdin: &Val) -> bool {
        if !matches!(
            base,
            "psql"
                | "mysql"
                | "mariadb"
                | "sqlite3"
                | "sqlite"
                | "mongo"
                | "mongosh"
                | "redis-cli"
                | "cqlsh"
                | "sqlcmd"
                | "sqlplus"
                | "clickhouse-client"
                | "duckdb"
                | "dropdb"
                | "dropuser"
                | "mysqladmin"
                | "pg_dump"
                | "pg_dumpall"
                | "mysqldump"
                | "bq"
                | "snowsql"
                | "usql"
                | "influx"
                | "mongodump"
                | "cockroach"
                | "valkey-cli"
                | "pgcli"
                | "mycli"
                | "litecli"
                | "createuser"
                | "rails"
                | "rake"
                | "prisma"
                | "alembic"
                | "sequelize"
                | "knex"
                | "artisan"
                | "manage.py"
                | "etcdctl"
                | "mongorestore"
                | "pg_restore"
        ) {
            return false;
        }
        let text: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        if matches!(base, "dropdb" | "dropuser")
            || base == "mysqladmin" && text.contains(&"drop")
            || text.iter().any(|t| {
                matches!(
                    *t,
                    "db:drop"
                        | "db:reset"
                        | "db:migrate:reset"
                        | "db:schema:load"
                        | "migrate:fresh"
                        | "migrate:reset"
                        | "flush"
                        | "db:wipe"
                        | "db:purge"
                )
            })
            || base == "prisma" && text.iter().any(|t| *t == "reset" || *t == "--force-reset")
            || base == "etcdctl" && text.contains(&"del")
            || base == "pg_restore" && text.contains(&"--clean")
            || base == "mongorestore" && text.contains(&"--drop")
        {
            self.ask("destroy.data", format!("{base} would delete data. A person has to agree."));
        }
        let mut lines: Vec<Val> = args.to_vec();
        lines.push(stdin.clone());
        for a in &lines {
            if destructive_sql(&a.text) {
                self.ask("destroy.data", "The statement destroys data. A person has to agree.");
            }
            for start in ["\\!", ".shell ", ".system ", "system ", ".sh "] {
                for (at, _) in a.text.match_indices(start).take(4) {
                    if at == 0 || a.text[..at].ends_with(['\n', ';', ' ']) {
                        let line = a.text[at + start.len()..].lines().next().unwrap_or_default().to_owned();
                        self.program(line.trim(), &Val::default());
                    }
                }
            }
            let upper = a.text.to_uppercase();
            if upper.contains("TO PROGRAM")
                || upper.contains("FROM PROGRAM")
                || upper.contains("XP_CMDSHELL")
                || upper.contains("INTO OUTFILE")
                || upper.contains("SYS_EXEC")
            {
                self.ask("run.database", "The statement makes the database run a program or write a file.");
                if let Some(line) = a.text.split('\'').nth(1) {
                    let line = line.to_owned();
                    self.program(&line, &Val::default());
                }
            }
            for word in a
                .text
                .split(['\'', '"', ' ', '(', ')', ',', '\n', '='])
                .filter(|w| w.len() > 1 && w.len() < 512)
                .take(64)
            {
                let file = Val::known(word.trim_start_matches('@'));
                if self.meanings(&file).iter().any(|p| self.is_secret(p).is_some()) {
                    self.read_file(&file);
                }
            }
        }
        true
    }

    /// Editors, pagers and others that can be told to run a command or read a file.
    fn escapes(&mut self, base: &str, args: &[Val], stdin: &Val) {
        let commands: Vec<(usize, &str)> =
            args.iter().enumerate().map(|(i, a)| (i, a.text.as_str())).collect();
        match base {
            "vim" | "vi" | "nvim" | "ex" | "view" | "ed" | "nano" | "emacs" | "less" | "more" | "most"
            | "man" | "gvim" | "vimdiff" | "kak" | "hx" | "micro" => {
                for (i, t) in &commands {
                    let value = args.get(i + 1).map(|v| v.text.clone()).unwrap_or_default();
                    let line = match *t {
                        "-c" | "--cmd" | "-e" | "--eval" | "--execute" => value,
                        "-P" | "--pager" if base == "man" => {
                            self.program(&value, &Val::default());
                            continue;
                        }
                        t if t.starts_with("+") => t[1..].to_owned(),
                        _ => continue,
                    };
                    let plain = line.trim_start_matches(':');
                    if let Some(at) = plain.find('!')
                        && (plain.starts_with('!')
                            || plain.starts_with("r !")
                            || plain.starts_with("read !")
                            || plain.starts_with("w !")
                            || plain.starts_with("%!")
                            || plain.starts_with("silent !")
                            || plain.starts_with("term"))
                    {
                        let command = plain[at + 1..].to_owned();
                        self.program(&command, stdin);
                    }
                    for start in ["r ", "read ", "e ", "edit ", "tabe ", "sp ", "source ", "so "] {
                        if let Some(file) = plain.strip_prefix(start) {
                            self.read_file(&Val::known(file.trim()));
                        }
                    }
                    for start in ["w ", "w! ", "write ", "saveas "] {
                        if let Some(file) = plain.strip_prefix(start).filter(|f| !f.starts_with('!')) {
                            self.write_file(&Val::known(file.trim()), true);
                        }
                    }
                    if plain.contains("system(")
                        || plain.contains("shell-command")
                        || plain.contains("call-process")
                        || plain.contains("jobstart(")
                    {
                        for piece in plain.split(['"', '\'']).skip(1).step_by(2) {
                            self.program(piece, &Val::default());
                        }
                    }
                    for piece in plain.split(['"', '\'']).skip(1).step_by(2) {
                        self.read_file(&Val::known(piece));
                    }
                }
                if base == "ed" || base == "ex" {
                    for line in stdin.text.lines() {
                        if let Some(command) = line.trim().strip_prefix('!') {
                            self.program(command, &Val::default());
                        } else if let Some(file) = line.strip_prefix("r ").or_else(|| line.strip_prefix("e "))
                        {
                            self.read_file(&Val::known(file));
                        } else if let Some(file) = line.strip_prefix("w ") {
                            self.write_file(&Val::known(file), true);
                        }
                    }
                }
            }
            "patch" => {
                for a in args {
                    if !a.text.starts_with('-') {
                        self.write_file(a, false);
                    }
                }
                for line in stdin.text.lines().take(2_000) {
                    if let Some(file) = line.strip_prefix("+++ ") {
                        let file = file.split('\t').next().unwrap_or_default();
                        let file = file.strip_prefix("b/").unwrap_or(file);
                        self.write_file(&Val::known(file), false);
                    }
                }
            }
            "sponge" => {
                for a in args {
                    self.write_file(a, true);
                }
            }
            "split" | "csplit" => {
                if let Some(a) = args.iter().find(|a| a.text.starts_with("--filter=")) {
                    let line = a.text[9..].to_owned();
                    self.program(&line, stdin);
                }
            }
            "entr"
            | "watchexec"
            | "nodemon"
            | "reflex"
            | "cargo-watch"
            | "concurrently"
            | "npm-run-all"
            | "foreman"
            | "honcho"
            | "start-server-and-test"
            | "wait-on" => {
                for a in args {
                    if a.text.contains(' ') {
                        let line = a.text.clone();
                        let before = self.found.clone();
                        self.program(&line, stdin);
                        if self.found.rule == "shell.syntax" {
                            self.found = before;
                        }
                    }
                }
                self.suffixes(args, stdin);
            }
            _ => {}
        }
    }
}

/// The lines that a search lets through; lines that are not known stay, and all stay when the pattern cannot be read.
fn matching(text: &str, pattern: &str, inverted: bool) -> String {
    let regex = regex::RegexBuilder::new(pattern).size_limit(1 << 16).build();
    text.lines()
        .filter(|l| l.contains(HOLE) || regex.as_ref().map_or(true, |r| r.is_match(l) != inverted))
        .map(|l| format!("{l}\n"))
        .collect()
}

/// Programs whose output is meant for `eval`.
fn sets_up_a_shell(base: &str, args: &[Val]) -> Option<Val> {
    let text: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
    let has = |w: &[&str]| text.iter().any(|t| w.contains(t));
    let known = match base {
        "ssh-agent" => text.is_empty() || has(&["-s", "-c", "-k"]) && text.len() == 1,
        "dircolors" | "lesspipe" | "lesspipe.sh" | "resize" | "tset" => true,
        "brew" => has(&["shellenv"]),
        "direnv" => has(&["hook", "export"]),
        "pyenv" | "rbenv" | "nodenv" | "jenv" | "goenv" | "plenv" | "phpenv" | "starship" | "zoxide"
        | "atuin" | "fasd" | "mcfly" | "oh-my-posh" | "pyenv-virtualenv" => {
            has(&["init", "-", "virtualenv-init", "--init"])
        }
        "fnm" | "volta" | "opam" | "luarocks" | "vfox" | "proto" => {
            has(&["env", "path", "activate", "config"])
        }
        "mise" | "asdf" | "rtx" | "pixi" => {
            has(&["activate", "env", "hook-env", "exec", "shell-hook", "completion"])
        }
        "conda" | "mamba" | "micromamba" => {
            text.iter().any(|t| t.starts_with("shell.") || *t == "shell") || has(&["hook"])
        }
        "thefuck" => has(&["--alias"]),
        "register-python-argcomplete" => true,
        "minikube" | "docker-machine" | "podman" => has(&["docker-env", "podman-env", "env"]),
        "keychain" => has(&["--eval"]),
        "fzf" => has(&["--bash", "--zsh"]),
        "gh" | "kubectl" | "helm" | "docker" | "rustup" | "npm" | "jj" | "uv" | "poetry" | "just"
        | "cargo" | "pip" | "deno" | "bun" | "pnpm" | "argocd" | "flux" | "kind" | "minio" => {
            has(&["completion", "completions", "generate-shell-completion", "gen-completions"])
                || base == "poetry" && has(&["activate"])
        }
        "vcvars" | "setvars.sh" | "perl" => base == "perl" && text.iter().any(|t| t.contains("local::lib")),
        "assume" | "gimme-aws-creds" => false,
        _ => false,
    };
    known.then(|| Val::known(INITIALISER))
}
