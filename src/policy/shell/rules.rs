//! What single programs may do to files, processes, services and data.

use super::carry::INITIALISER;
use super::eval::Machine;
use super::options::Options;
use super::search::BLIND;
use super::value::{HOLE, Taint, Val};
use crate::policy::web::Fetcher;
use crate::policy::world::Kind;

impl Machine<'_> {
    /// Its addresses are judged like a fetch tool's, and what lets it reach inside is a person's to say.
    fn jess_fetch(&mut self, args: &[Val]) {
        let mut value_of = "";
        for arg in args.iter().skip(1) {
            let text = arg.text.as_str();
            let flag = text.split('=').next().unwrap_or(text);
            if matches!(flag, "--net-inside" | "--resolve" | "--cacert") {
                self.ask(
                    "guard.switch",
                    "The command lets a fetch reach where no page is. A person has to agree.",
                );
            }
            if text.starts_with('-') && !text.contains(HOLE) {
                value_of = if text.contains('=') { "" } else { text };
            } else {
                if !matches!(
                    value_of,
                    "--timeout" | "--max-bytes" | "--net-inside" | "--resolve" | "--cacert"
                ) {
                    self.address_for(arg, Fetcher::Jess);
                }
                value_of = "";
            }
        }
    }

    pub(super) fn rules(&mut self, base: &str, _name: &Val, args: &[Val], stdin: &Val) -> Val {
        if base == "jess" && args.first().is_some_and(|a| a.text == "fetch") {
            self.jess_fetch(args);
            self.reaches = true;
            return Val::unknown(Taint::NET);
        }
        if self.guard(base, args) || base == "claude" || base == "claude-code" || base == "jess" {
            return Val::unknown(Taint::NONE);
        }
        if SHOWS.contains(&base) && args.iter().any(|a| a.taint.any(Taint::ENV)) {
            return Val::unknown(Taint::ENV);
        }
        match base {
            "git" | "hub" if base == "git" => return self.git(args, stdin),
            "rm" | "rmdir" | "unlink" | "shred" | "trash" | "srm" | "wipe" | "rimraf" | "trash-put" => {
                return self.rm(base, args);
            }
            "cp" | "mv" | "ln" | "install" | "rename" | "link" => return self.copies(base, args, stdin),
            "dd" => return self.dd(args, stdin),
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
                    || names.iter().any(|n| super::expand::secret_variable(n) || n.contains(HOLE));
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
                // `load(FILE)`, `load_str(FILE)`.
                if base == "yq" && args.iter().any(|a| a.text.contains("load")) {
                    self.named_within(args);
                }
                let o = Options::split(
                    args,
                    &[
                        "--arg",
                        "--argjson",
                        "--indent",
                        "-f",
                        "--from-file",
                        "-L",
                        "--rawfile",
                        "--slurpfile",
                        "--tab",
                    ],
                    false,
                );
                // What it prints of an answer is no program, and from outside all the same.
                self.told |= stdin.taint.any(Taint::NET);
                // The first operand is the program.
                let program = usize::from(!o.has(&["-f", "--from-file"]));
                for a in o.operands.iter().skip(program).chain(&o.values(&["-f", "--from-file"])) {
                    self.read_file(a);
                }
                for (i, a) in args.iter().enumerate() {
                    if matches!(a.text.as_str(), "--rawfile" | "--slurpfile")
                        && let Some(file) = args.get(i + 2).cloned()
                    {
                        self.read_file(&file);
                    }
                }
                return Val::unknown(stdin.taint.without(Taint::NET).with(if o.operands.len() > program {
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
        if matches!(base, "artisan" | "manage.py" | "rails" | "rake") {
            self.named_within(args);
        }
        if self.administers(base, args, stdin)
            || self.reveals(base, args)
            || self.databases(base, args, stdin)
        {
            return Val::unknown(Taint::NONE);
        }
        if let Some(out) = self.network(base, args, stdin) {
            self.reaches |= !super::reach::talks_of_itself(args) && !super::reach::stays(base, args);
            self.answered |= out.taint.any(Taint::NET);
            return out;
        }
        self.escapes(base, args, stdin);
        if BLIND.contains(&base) {
            return Val::unknown(Taint::NONE);
        }
        self.unknown_program(base, args, stdin)
    }

    pub(super) fn lists(&mut self, args: &[Val]) -> Val {
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

    /// Programs that are run with a command of their own, or carry one, and yet act on the guard.
    pub(super) fn guard_carried(&mut self, base: &str, args: &[Val]) {
        let names = |words: &[&str]| args.iter().any(|a| words.contains(&a.text.as_str()));
        let traces = match base {
            "prlimit" | "strace" | "ltrace" | "gdb" | "lldb" | "renice" | "gcore" | "perf" => {
                names(&["jess", "jess-hook", "claude", "$PPID"])
                    || args.iter().any(|a| a.text.contains("hook.sock"))
            }
            "fuser" | "lsof" => {
                args.iter().any(|a| a.text.contains("hook.sock")) && names(&["-k", "-ki", "-mk", "-km"])
            }
            _ => false,
        };
        if traces {
            self.deny("guard.kill", "The command takes hold of the guard or the client.");
        }
        let packages = matches!(
            base,
            "cargo"
                | "npm"
                | "pnpm"
                | "yarn"
                | "bun"
                | "pip"
                | "pip3"
                | "pipx"
                | "brew"
                | "apt"
                | "apt-get"
                | "dpkg"
                | "snap"
        );
        if packages
            && names(&["uninstall", "remove", "rm", "purge", "un", "--force", "-f", "--purge"])
            && args
                .iter()
                .any(|a| matches!(a.text.as_str(), "jess" | "claude") || a.text.contains("claude-code"))
        {
            self.deny("guard.switch", "The command removes or replaces the guard or the client.");
        }
    }

    /// The guard, its client and their switches.
    pub(super) fn guard(&mut self, base: &str, args: &[Val]) -> bool {
        let text: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        let names_guard = |t: &str| {
            let t = t.to_lowercase();
            let pattern = regex_like(&t);
            pattern.is_some_and(|p| {
                ["jess", "jess-hook", "jess daemon", "claude", "node claude"].iter().any(|n| p.is_match(n))
            }) || t == "jess"
                || t.contains("jess ")
                || t.starts_with("jess-")
                || t.ends_with("/jess")
                || t == "claude"
                || t.contains("claude ")
                || t.contains("jess.*")
                || t.contains("[j]ess")
                || t.contains("hook.sock")
                || t.contains("claude_pid")
                || t == "hook"
                || t == "daemon"
        };
        match base {
            "kill" | "pkill" | "killall" | "skill" | "xkill" => {
                let all = base == "pkill" && text.iter().any(|t| matches!(*t, "." | ".*" | "^" | ""));
                let group = base == "kill"
                    && text.last() == Some(&"0")
                    && text.iter().all(|t| *t == "0" || t.starts_with('-'));
                if text.iter().any(|t| names_guard(t) || t.trim_start_matches('-') == "$PPID")
                    || all
                    || group
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
                        matches!(
                            *t,
                            "--bare"
                                | "--safe-mode"
                                | "--settings"
                                | "--setting-sources"
                                | "--agents"
                                | "--plugin-dir"
                                | "--add-dir"
                        ) || t.contains("Bash(*)")
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
}

/// `text` as the regular expression that `pkill` takes, where it can be one.
fn regex_like(text: &str) -> Option<regex::Regex> {
    let special = text.contains(['^', '.', '[', '*', '$', '?', '+', '(']);
    (special && text.len() < 64)
        .then(|| regex::RegexBuilder::new(text).size_limit(64 << 10).build().ok())
        .flatten()
}

/// Programs that print their arguments, if only to say that no such file is there.
const SHOWS: &[&str] = &[
    "cd", "ls", "expr", "seq", "factor", "numfmt", "cat", "head", "tail", "stat", "file", "mkdir", "touch",
    "chmod", "chown", "rm", "rmdir", "mv", "cp", "ln", "du", "basename", "dirname", "readlink", "realpath",
    "awk", "gawk", "sed", "figlet", "cowsay", "tr", "wc", "diff", "cmp", "sort", "which", "type", "kill",
    "sleep", "date",
];

/// Programs that are asked for the environment in a way of their own.
pub(super) fn shows_environment(base: &str, args: &[Val], stdin: &Val) -> bool {
    let text: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
    let has = |w: &[&str]| text.iter().any(|t| w.contains(t));
    match base {
        "jq" | "gojq" | "jaq" => text.iter().any(|t| {
            t.contains("$ENV")
                || t.match_indices("env").any(|(at, _)| {
                    let before = t[..at].chars().next_back();
                    let after = t[at + 3..].chars().next();
                    !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '"'))
                        && !after.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '"'))
                })
        }),
        "yq" => text.iter().any(|t| t.contains("env(") || t.contains("strenv")),
        "envsubst" => text.is_empty() && (stdin.text.contains('$') || !stdin.is_known()),
        "make" | "gmake" => has(&["-p", "-pn", "-np", "--print-data-base"]),
        "cmake" => text == ["-E", "environment"],
        "php" => has(&["-i", "--info"]),
        "direnv" => has(&["export", "dump", "exec"]) && !has(&["exec"]),
        "mise" | "asdf" => text.first() == Some(&"env"),
        "foreman" | "honcho" | "env-cmd" | "dotenv" | "dotenvx" | "teller" => {
            has(&["env", "printenv", "list", "get", "show", "ls", "set"]) && !has(&["set"])
        }
        "docker" | "podman" => has(&["inspect"]) && text.iter().any(|t| t.contains("Env")),
        _ => false,
    }
}

/// Programs whose output is meant for `eval`.
pub(super) fn sets_up_a_shell(base: &str, args: &[Val]) -> Option<Val> {
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
