//! One simple command: builtins, wrappers that run another, and the rules for the rest.

use super::eval::Machine;
use super::options::Options;
use super::value::{HOLE, Taint, Val};
use super::word::ansi_c;
use super::{code, limits};
use crate::policy::world::Kind;
use crate::policy::{Verdict, paths};
use std::path::{Path, PathBuf};

/// Programs that run the rest of their arguments: options that take a value, operands that come first.
#[rustfmt::skip]
const WRAPPERS: &[(&str, &[&str], usize)] = &[
    ("nohup", &[], 0), ("setsid", &[], 0), ("nice", &["-n"], 0), ("ionice", &["-c", "-n", "-p"], 0), ("chrt", &["-T", "-P", "-D"], 1),
    ("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"], 0), ("timeout", &["-k", "-s", "--kill-after", "--signal"], 1), ("gtimeout", &["-k", "-s"], 1),
    ("time", &["-f", "-o"], 0), ("command", &[], 0), ("builtin", &[], 0), ("exec", &["-a"], 0), ("doas", &["-u", "-C"], 0),
    ("strace", &["-o", "-e", "-p", "-s", "-u", "-E", "-P", "-a", "-b", "-I", "-S", "-O", "-X"], 0), ("ltrace", &["-o", "-e", "-p", "-s", "-u", "-n", "-l", "-x"], 0),
    ("taskset", &[], 1), ("unshare", &["-S", "-G", "-R", "-w", "--root", "--wd", "--setuid", "--setgid", "--map-user", "--map-group"], 0),
    ("nsenter", &["-t", "-S", "-G", "--target"], 0), ("chroot", &[], 1), ("fakeroot", &[], 0), ("catchsegv", &[], 0), ("caffeinate", &["-t", "-w"], 0),
    ("firejail", &[], 0), ("setpriv", &[], 0), ("setarch", &[], 0), ("linux64", &[], 0), ("linux32", &[], 0), ("prlimit", &[], 0), ("numactl", &[], 0), ("cgexec", &["-g"], 0), ("systemd-run", &["-p", "-u", "-E", "--unit", "--property"], 0),
    ("systemd-inhibit", &[], 0), ("dbus-run-session", &[], 0), ("xvfb-run", &["-n", "-s", "-e", "-f", "-p", "-w"], 0), ("unbuffer", &[], 0), ("rlwrap", &[], 0), ("ld-linux-x86-64.so.2", &[], 0), ("ld.so", &[], 0),
    ("torsocks", &[], 0), ("torify", &[], 0), ("proxychains", &["-f"], 0), ("proxychains4", &["-f"], 0), ("valgrind", &[], 0), ("pkexec", &["--user"], 0), ("busybox", &[], 0), ("toybox", &[], 0),
    ("direnv", &[], 2), ("aws-vault", &[], 2), ("dotenv", &["-e", "-f"], 0), ("dotenvx", &[], 1), ("envdir", &[], 1), ("chpst", &["-u", "-e", "-d"], 0), ("softlimit", &[], 0), ("setuidgid", &[], 1), ("gosu", &[], 1), ("su-exec", &[], 1), ("tsocks", &[], 0), ("hyperfine", &["-w", "-r", "-m", "-M", "-s"], 0), ("entr", &[], 0), ("faketime", &[], 1), ("cpulimit", &["-l", "-p"], 0), ("catchsegv", &[], 0), ("ts", &[], 0), ("chronic", &[], 0), ("cronitor", &[], 1), ("noti", &[], 0), ("sem", &[], 0), ("retry", &[], 0), ("trickle", &["-d", "-u"], 0), ("eatmydata", &[], 0), ("bwrap", &[], 0), ("proot", &["-r", "-b", "-w"], 0), ("run-one", &[], 0), ("cached-nix-shell", &[], 0), ("coproc", &[], 0),
];

/// `TOOL SUB… COMMAND`: a launcher with a word before the command.
#[rustfmt::skip]
const LAUNCHERS: &[(&str, &[&str])] = &[
    ("uv", &["run"]), ("poetry", &["run"]), ("pipenv", &["run"]), ("pdm", &["run"]), ("hatch", &["run"]), ("rye", &["run"]), ("pixi", &["run"]), ("conda", &["run"]), ("mamba", &["run"]), ("micromamba", &["run"]),
    ("npm", &["exec", "x"]), ("pnpm", &["exec", "dlx"]), ("yarn", &["exec", "dlx"]), ("bundle", &["exec"]), ("rbenv", &["exec"]), ("pyenv", &["exec"]), ("nodenv", &["exec"]), ("asdf", &["exec"]), ("mise", &["exec", "x"]), ("volta", &["run"]), ("fnm", &["exec"]), ("nvm", &["exec", "run"]),
    ("op", &["run"]), ("doppler", &["run"]), ("infisical", &["run"]), ("perf", &["record", "stat", "trace"]), ("rustup", &["run"]), ("cargo", &["watch"]), ("bun", &["x"]), ("heroku", &["local"]), ("devbox", &["run"]), ("distrobox", &["enter"]), ("flatpak-spawn", &["--host"]), ("toolbox", &["run"]), ("apptainer", &["exec"]), ("singularity", &["exec"]),
];

/// Programs that print or change what they read: their output is as tainted as their input.
#[rustfmt::skip]
const FILTERS: &[&str] = &[
    "cat", "tac", "head", "tail", "sed", "grep", "egrep", "fgrep", "rg", "awk", "gawk", "mawk", "cut", "tr", "sort", "uniq", "tee", "base64", "base32", "xxd", "od", "hexdump", "hd", "rev", "nl", "fold", "fmt", "paste", "column", "expand", "strings", "gzip", "zcat", "xz", "bzip2", "zstd", "openssl", "gpg", "jq", "yq", "less", "more", "pv", "dd", "sponge", "shuf", "split", "iconv", "uuencode", "basenc", "tar", "bat", "perl", "python3", "python", "node", "ruby", "sha256sum", "sha1sum", "md5sum", "cksum", "wc", "jo", "envsubst", "printf", "echo",
];

const SHELLS: &[&str] =
    &["sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "fish", "rbash", "csh", "tcsh", "pwsh"];

impl Machine<'_> {
    /// Judges one command with its arguments; its output.
    pub(super) fn run(&mut self, argv: &[Val], stdin: &Val) -> Val {
        let Some(name) = argv.first() else { return Val::default() };
        if self.found.verdict == Verdict::Deny {
            return Val::unknown(Taint::NONE);
        }
        if self.depth > limits::DEPTH * 2 {
            self.bound("commands inside commands");
            return Val::unknown(Taint::NONE);
        }
        self.depth += 1;
        let out = self.dispatch(name, &argv[1..], stdin);
        self.depth -= 1;
        out
    }

    fn dispatch(&mut self, name: &Val, args: &[Val], stdin: &Val) -> Val {
        let base = name.text.rsplit('/').next().unwrap_or_default().to_owned();
        if base.is_empty() && !name.text.contains(HOLE) {
            return Val::default();
        }
        if base.contains(HOLE) {
            return self.unknown_command(name, args, stdin);
        }
        let mut base = base
            .trim_matches(|c: char| {
                matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{2060}') || c.is_control()
            })
            .to_owned();
        if let Some(alias) = self.state.aliases.get(&base).cloned()
            && self.depth < limits::DEPTH
        {
            let line =
                format!("{alias} {}", args.iter().map(|a| quoted(&a.text)).collect::<Vec<_>>().join(" "));
            self.state.aliases.remove(&base);
            return self.program(&line, stdin);
        }
        if let Some(body) = self.state.functions.get(&base).cloned() {
            return self.call(&base, &body, args.to_vec(), stdin);
        }
        if base.contains(['*', '?', '['])
            && base.len() > 1
            && base != "["
            && base != "[["
            && let Some(real) = self.globbed_command(&name.text)
        {
            base = real;
        }
        if name.text.contains('/') {
            if let Some(out) = self.script(name, args, stdin) {
                return out;
            }
        } else if name.taint.any(Taint::NET) {
            self.deny("run.fetched", "The command's name comes from another machine.");
        }
        if let Some((_, valued, operands)) = WRAPPERS.iter().find(|w| w.0 == base) {
            return self.wrapper(&base, args, valued, *operands, stdin);
        }
        if let Some((_, subs)) = LAUNCHERS.iter().find(|l| l.0 == base)
            && let Some(at) = args.iter().take(6).position(|a| subs.contains(&a.text.as_str()))
        {
            return self.launcher(&base, &args[at + 1..], stdin);
        }
        if SHELLS.contains(&base.as_str()) {
            return self.shell(args, stdin);
        }
        if let Some(language) = code::language(&base) {
            return self.interpreter(language, args, stdin);
        }
        match base.as_str() {
            "env" => self.env(args, stdin),
            "sudo" => {
                let o = Options::split(
                    args,
                    &["-u", "-g", "-h", "-p", "-C", "-T", "-r", "-t", "-D", "-R", "-U", "--user", "--group"],
                    true,
                );
                let mut rest = o.operands.as_slice();
                while rest.first().is_some_and(|a| is_assignment(&a.text)) {
                    rest = &rest[1..];
                }
                if rest.is_empty() && o.has(&["-i", "-s", "--login", "--shell"]) && stdin.text.is_empty() {
                    self.ask("run.root", "The command opens a root shell.");
                }
                if rest.is_empty() && o.has(&["-i", "-s"]) {
                    self.shell(&[], stdin)
                } else {
                    self.run(rest, stdin)
                }
            }
            "su" | "runuser" | "sg" | "script" | "flock" | "watch" | "tmux" | "screen" | "at" | "batch"
            | "xargs" | "parallel" | "find" | "fd" | "fdfind" | "ssh" | "docker" | "podman" | "nerdctl"
            | "kubectl" | "oc" | "npx" | "bunx" | "uvx" | "pipx" | "nix-shell" | "nix" | "make" | "gmake"
            | "trap" | "eval" | "source" | "." | "alias" | "gdb" | "lldb" | "npm" | "yarn" | "pnpm"
            | "bun" | "just" | "docker-compose" | "expect" => self.carrier(&base, args, stdin),
            _ => self.plain(&base, name, args, stdin),
        }
    }

    /// A command whose name nobody knows beforehand.
    fn unknown_command(&mut self, name: &Val, args: &[Val], stdin: &Val) -> Val {
        if name.taint.any(Taint::NET) {
            self.deny("run.fetched", "The command comes from another machine. Save it, show it to the person, and let them run it.");
        } else {
            self.ask(
                "run.unknown",
                "Which program would run is only known when it runs. Write its name out.",
            );
        }
        for arg in args {
            self.read_file(arg);
        }
        for i in 0..args.len().min(4) {
            if !args[i].text.starts_with('-') {
                break;
            }
            if matches!(args[i].text.as_str(), "-c" | "-e") && args.len() > i + 1 {
                self.program(&args[i + 1].text.clone(), stdin);
            }
        }
        Val::unknown(stdin.taint)
    }

    fn wrapper(&mut self, base: &str, args: &[Val], valued: &[&str], operands: usize, stdin: &Val) -> Val {
        if base == "command" && args.first().is_some_and(|a| matches!(a.text.as_str(), "-v" | "-V")) {
            return args.get(1).cloned().unwrap_or_default();
        }
        if base == "exec" && args.is_empty() {
            return Val::default();
        }
        let o = Options::split(args, valued, true);
        for file in o.values(&["-o"]) {
            if matches!(base, "strace" | "ltrace" | "time") {
                self.write_file(&file, true);
            }
        }
        if base == "systemd-run" && o.given.iter().any(|(n, _)| n.starts_with("--on-")) {
            self.ask("persist.schedule", "The command schedules something to run later.");
        }
        let mut rest = o.operands.get(operands..).unwrap_or_default();
        // Options of the wrapper that this table does not know may have taken its operand.
        while rest.first().is_some_and(|a| is_assignment(&a.text) || a.text == "--") {
            rest = &rest[1..];
        }
        if matches!(base, "chroot" | "nsenter" | "unshare") && rest.is_empty() {
            return self.shell(&[], stdin);
        }
        if base == "hyperfine" {
            for text in rest {
                self.program(&text.text, stdin);
            }
            return Val::default();
        }
        if matches!(base, "bwrap" | "firejail" | "proot" | "valgrind" | "prlimit" | "numactl") {
            return self.suffixes(args, stdin);
        }
        self.run(rest, stdin)
    }

    fn launcher(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let o = Options::split(
            args,
            &[
                "--with",
                "--python",
                "-p",
                "--package",
                "--project",
                "-n",
                "--name",
                "--env-file",
                "--extra",
                "--group",
                "--from",
                "-C",
                "--directory",
                "--with-requirements",
            ],
            true,
        );
        for from in o.values(&["--with", "--from", "--package", "-p"]) {
            self.package_source(&from);
        }
        for file in o.values(&["--env-file"]) {
            self.read_file(&file);
        }
        if let Some(code) = o.given.iter().position(|(n, _)| n == "-c" || n == "--call") {
            let _ = code;
            if let Some(text) = o.operands.first() {
                return self.program(&text.text.clone(), stdin);
            }
        }
        let mut rest = o.operands.clone();
        while rest.first().is_some_and(|a| a.text == "--") {
            rest.remove(0);
        }
        if let Some(first) = rest.first() {
            self.package_source(&first.clone());
        }
        let _ = base;
        self.run(&rest, stdin)
    }

    fn env(&mut self, args: &[Val], stdin: &Val) -> Val {
        let mut rest: &[Val] = args;
        let mut line = String::new();
        let mut empty = false;
        while let Some(arg) = rest.first() {
            let text = arg.text.clone();
            rest = &rest[1..];
            match text.as_str() {
                "-u" | "-C" | "--unset" | "--chdir" | "-P" => rest = rest.get(1..).unwrap_or_default(),
                "-S" | "--split-string" => {
                    line = rest.first().map(|a| a.text.clone()).unwrap_or_default();
                    rest = rest.get(1..).unwrap_or_default();
                    break;
                }
                "-i" | "-" | "--ignore-environment" => empty = true,
                t if t.starts_with("-S") => {
                    line = t[2..].to_owned();
                    break;
                }
                t if t.starts_with("--split-string=") => {
                    line = t[15..].to_owned();
                    break;
                }
                t if t.starts_with('-') => {
                    // A cluster that ends in S: `env -iS 'a b'`.
                    if t.ends_with('S') && !t.starts_with("--") {
                        line = rest.first().map(|a| a.text.clone()).unwrap_or_default();
                        rest = rest.get(1..).unwrap_or_default();
                        break;
                    }
                }
                t if is_assignment(t) => {
                    if let Some((name, value)) = t.split_once('=') {
                        self.environment(name, &arg.map(value), rest);
                    }
                }
                _ => {
                    let mut argv = vec![arg.clone()];
                    argv.extend_from_slice(rest);
                    return self.run(&argv, stdin);
                }
            }
        }
        if !line.is_empty() {
            let more: Vec<String> = rest.iter().map(|a| quoted(&a.text)).collect();
            return self.program(&format!("{line} {}", more.join(" ")), stdin);
        }
        if empty { Val::default() } else { Val::unknown(Taint::ENV) }
    }

    /// Variables that make a program run something else.
    pub(super) fn environment(&mut self, name: &str, value: &Val, argv: &[Val]) {
        let text = value.text.clone();
        match name {
            "LD_PRELOAD" | "LD_AUDIT" | "DYLD_INSERT_LIBRARIES" => {
                self.ask("run.preload", format!("{name} loads code into every program the command starts."));
            }
            "BASH_ENV" | "ENV" if text.contains('/') => {
                self.load_script(value);
            }
            "PROMPT_COMMAND"
            | "GIT_EXTERNAL_DIFF"
            | "GIT_SSH_COMMAND"
            | "GIT_SSH"
            | "GIT_PAGER"
            | "PAGER"
            | "MANPAGER"
            | "EDITOR"
            | "VISUAL"
            | "GIT_EDITOR"
            | "GIT_SEQUENCE_EDITOR"
            | "GIT_ASKPASS"
            | "SSH_ASKPASS"
            | "SUDO_ASKPASS"
            | "BROWSER"
            | "RUSTC_WRAPPER"
            | "RUSTC"
            | "CC"
            | "CXX"
            | "AWS_PAGER"
            | "GH_PAGER"
            | "SYSTEMD_PAGER"
            | "GIT_PROXY_COMMAND"
            | "LESSCLOSE"
            | "TAR_OPTIONS"
            | "RSYNC_RSH"
            | "FZF_DEFAULT_COMMAND"
            | "PERL5DB"
            | "SHELL"
            | "MAKEFLAGS"
                if text.contains(' ')
                    || text.contains('/')
                    || matches!(name, "GIT_EXTERNAL_DIFF" | "GIT_SSH_COMMAND") =>
            {
                self.subshell(|m| m.program(text.trim_start_matches('!'), &Val::default()));
            }
            "LESSOPEN" => {
                let plain = text.trim_start_matches(['|', '-']).replace("%s", "x");
                self.subshell(|m| m.program(&plain, &Val::default()));
            }
            "PERL5OPT" | "RUBYOPT" | "PYTHONSTARTUP" | "NODE_OPTIONS" | "PYTHONINSPECT"
                if text.contains("require")
                    || text.contains("import")
                    || text.contains("-M")
                    || text.contains("loader")
                    || name == "PYTHONSTARTUP" =>
            {
                self.ask("run.preload", format!("{name} loads code into the interpreter."));
            }
            n if n.starts_with("GIT_CONFIG_VALUE_") || n == "GIT_CONFIG_PARAMETERS" => {
                self.ask("run.gitconfig", "Git is configured by environment to do something else.");
            }
            _ => {}
        }
        let _ = argv;
    }

    /// A shell with its arguments.
    pub(super) fn shell(&mut self, args: &[Val], stdin: &Val) -> Val {
        let mut rest = args;
        let mut reads_stdin = false;
        while let Some(arg) = rest.first() {
            let text = arg.text.as_str();
            rest = &rest[1..];
            match text {
                "-o" | "+o" | "-O" | "+O" => rest = rest.get(1..).unwrap_or_default(),
                "--rcfile" | "--init-file" => {
                    if let Some(file) = rest.first().cloned() {
                        self.load_script(&file);
                    }
                    rest = rest.get(1..).unwrap_or_default();
                }
                "--" => {}
                t if t.starts_with("--") => {}
                t if (t.starts_with('-') || t.starts_with('+')) && t.len() > 1 => {
                    if t.contains('c') && t.starts_with('-') {
                        while rest.first().is_some_and(|a| a.text.starts_with('-') && a.text.len() > 1) {
                            rest = &rest[1..];
                        }
                        let Some(line) = rest.first().cloned() else { return Val::default() };
                        let args = rest.get(1..).unwrap_or_default().to_vec();
                        return self.text(&line, &args, stdin);
                    }
                    if t.ends_with(['o', 'O']) {
                        rest = rest.get(1..).unwrap_or_default();
                    }
                    reads_stdin |= t.contains('s');
                }
                "-" => {}
                _ => {
                    if reads_stdin {
                        break;
                    }
                    let file = arg.clone();
                    let args = rest.to_vec();
                    if file.text == "/dev/stdin" {
                        return self.text(stdin, &args, &Val::default());
                    }
                    return self.run_script(&file, &args, stdin);
                }
            }
        }
        if stdin.text.is_empty() && stdin.taint == Taint::NONE {
            return Val::default();
        }
        self.text(stdin, &[], &Val::default())
    }

    /// Runs a text as a program: `sh -c`, `eval`, a shell's input.
    pub(super) fn text(&mut self, line: &Val, args: &[Val], stdin: &Val) -> Val {
        if line.taint.any(Taint::NET) {
            self.deny("run.fetched", "The command runs what another machine answers. Save it to a file, read it, and ask the person.");
            return Val::unknown(Taint::NET);
        }
        if line.taint.any(Taint::SECRET.with(Taint::CODED)) || (!line.is_known() && hollow(&line.text)) {
            self.ask(
                "run.unknown",
                "The command runs a text that is only known when it runs. Write the command out.",
            );
            if !line.is_known() {
                return Val::unknown(Taint::NONE);
            }
        }
        let line = line.text.clone();
        let args = args.to_vec();
        let stdin = stdin.clone();
        self.subshell(|m| {
            if let Some(zero) = args.first() {
                m.state.zero = zero.clone();
                m.state.args = args[1..].to_vec();
            }
            m.program(&line, &stdin)
        })
    }

    /// The file behind a path with a slash, when it is a script that can be read. `None`: an ordinary program.
    fn script(&mut self, name: &Val, args: &[Val], stdin: &Val) -> Option<Val> {
        for path in self.meanings(name) {
            if let Some(content) = self.state.files.get(&path).cloned() {
                if content.taint.any(Taint::NET) {
                    self.deny(
                        "run.fetched",
                        "The command runs a file it has just fetched. Show it to the person first.",
                    );
                    return Some(Val::unknown(Taint::NET));
                }
                return Some(self.script_text(&path, &content, args, stdin));
            }
            let system = ["/bin", "/usr", "/sbin", "/opt", "/lib", "/nix", "/snap", "/home/linuxbrew"]
                .iter()
                .any(|s| path.starts_with(s));
            if !system && self.world.kind(&path) == Kind::File {
                let text = self.world.read(&path)?;
                if text.starts_with("#!") || path.extension().is_some_and(|e| e == "sh" || e == "bash") {
                    return Some(self.script_text(&path, &Val { text, taint: Taint::FILE }, args, stdin));
                }
                return None;
            }
        }
        None
    }

    fn script_text(&mut self, path: &Path, content: &Val, args: &[Val], stdin: &Val) -> Val {
        let head = content.text.lines().next().unwrap_or_default().to_owned();
        let interpreter = head.strip_prefix("#!").map(|h| {
            let mut words = h.split_whitespace();
            let first = words.next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
            if first == "env" {
                words.find(|w| !w.starts_with('-')).unwrap_or_default().to_owned()
            } else {
                first.to_owned()
            }
        });
        let language = interpreter.as_deref().and_then(code::language);
        if let Some(language) = language {
            self.code(language, &content.text, false);
            return Val::unknown(stdin.taint);
        }
        let known = Val { text: content.text.replace(HOLE, ""), taint: Taint::NONE };
        if content.text.contains(HOLE) && interpreter.is_none() {
            return Val::unknown(stdin.taint);
        }
        let lenient = self.lenient;
        // A script that was there before may read its project's settings; one that this command wrote may not.
        self.lenient |= content.taint == Taint::FILE;
        let zero = Val::known(path.to_string_lossy());
        let mut all = vec![zero];
        all.extend_from_slice(args);
        let before = self.found.clone();
        let out = self.text(&known, &all, stdin);
        // A file that this parser does not read as bash may still be one for another shell.
        if self.found.rule == "shell.syntax" && before.rule != "shell.syntax" {
            self.found = before;
        }
        self.lenient = lenient;
        out
    }

    /// `bash FILE`, `source FILE`.
    pub(super) fn run_script(&mut self, file: &Val, args: &[Val], stdin: &Val) -> Val {
        let content = self.read_file(file);
        if content.taint.any(Taint::NET) {
            self.deny(
                "run.fetched",
                "The command runs what another machine answered. Show it to the person first.",
            );
            return Val::unknown(Taint::NET);
        }
        if file.text.starts_with("/dev/fd/") || (content.is_known() && !content.text.is_empty()) {
            return self.text(&content, &[vec![file.clone()], args.to_vec()].concat(), stdin);
        }
        for path in self.meanings(file) {
            if let Some(text) = self.world.read(&path) {
                return self.script_text(&path, &Val { text, taint: Taint::FILE }, args, stdin);
            }
        }
        Val::unknown(stdin.taint)
    }

    fn load_script(&mut self, file: &Val) {
        self.run_script(file, &[], &Val::default());
    }

    /// Python, perl, node and their like.
    fn interpreter(&mut self, language: code::Language, args: &[Val], stdin: &Val) -> Val {
        let flags = language.code_flags();
        let mut i = 0;
        let mut ran = false;
        while let Some(arg) = args.get(i) {
            let text = arg.text.as_str();
            if flags.contains(&text)
                || (language.clusters()
                    && text.starts_with('-')
                    && !text.starts_with("--")
                    && text.len() > 2
                    && flags.iter().any(|f| f.len() == 2 && text.ends_with(&f[1..]) && f.len() == 2)
                    && args.len() > i + 1
                    && !text.starts_with("-M")
                    && !text.starts_with("-I"))
            {
                if let Some(code) = args.get(i + 1) {
                    self.tainted_code(code);
                    self.code(language, &code.text, true);
                }
                ran = true;
                i += 2;
                continue;
            }
            if let Some(flag) = flags.iter().find(|f| {
                text.len() > f.len()
                    && text.starts_with(**f)
                    && (f.len() == 2 && !language.clusters() || text.starts_with(&format!("{f}=")))
            }) {
                let code = text[flag.len()..].trim_start_matches('=').to_owned();
                self.code(language, &code, true);
                ran = true;
                i += 1;
                continue;
            }
            if text == "-m" && language == code::Language::Python {
                let rest = args.get(i + 2..).unwrap_or_default().to_vec();
                return self.python_module(args.get(i + 1), &rest, stdin);
            }
            if text.starts_with('-') && text.len() > 1 {
                if let Some(file) = text.strip_prefix("--env-file=") {
                    self.read_file(&arg.map(file));
                }
                if matches!(
                    text,
                    "-r" | "--require" | "--import" | "-W" | "-X" | "-I" | "--env-file" | "--loader"
                ) {
                    i += 1;
                    if let Some(file) = args.get(i).cloned() {
                        self.read_file(&file);
                    }
                }
                i += 1;
                continue;
            }
            break;
        }
        let rest = args.get(i..).unwrap_or_default().to_vec();
        let in_place = matches!(language, code::Language::Perl | code::Language::Ruby)
            && args
                .iter()
                .take(i)
                .any(|a| a.text.starts_with("-i") || a.text.starts_with("-pi") || a.text.starts_with("-ni"));
        if in_place {
            for file in &rest {
                self.write_file(file, false);
            }
        }
        if language == code::Language::Awk {
            return self.awk(&rest, stdin, ran);
        }
        if rest.first().is_some_and(|a| a.text.ends_with("manage.py")) {
            let mut argv = vec![Val::known("manage.py")];
            argv.extend_from_slice(&rest[1..]);
            self.plain("manage.py", &Val::known("manage.py"), &argv[1..], stdin);
        }
        for arg in &rest {
            self.read_file(arg);
            if let Some((_, value)) = arg.text.split_once('=') {
                self.read_file(&arg.map(value));
            }
        }
        if !ran {
            match rest.first() {
                None => {
                    if !stdin.text.is_empty() {
                        self.tainted_code(stdin);
                        self.code(language, &stdin.text, true);
                    }
                }
                Some(a) if a.text == "-" || a.text == "/dev/stdin" => {
                    self.tainted_code(stdin);
                    self.code(language, &stdin.text, true);
                }
                Some(a)
                    if matches!(
                        a.text.as_str(),
                        "run" | "eval" | "install" | "cache" | "compile" | "test" | "bundle"
                    ) && matches!(language, code::Language::Node) =>
                {
                    let target =
                        rest.iter().skip(1).find(|r| !r.text.starts_with('-')).cloned().unwrap_or_default();
                    if a.text == "eval" {
                        self.code(language, &target.text, true);
                    } else if target.text.contains("://") {
                        self.deny("run.fetched", "The command runs code straight from another machine.");
                    }
                }
                Some(file) => {
                    if file.text.contains("://") {
                        self.deny("run.fetched", "The command runs code straight from another machine.");
                    }
                    let content = self.read_file(file);
                    if content.taint.any(Taint::NET) {
                        self.deny(
                            "run.fetched",
                            "The command runs a file it has just fetched. Show it to the person first.",
                        );
                    } else if content.is_known() && !content.text.is_empty() {
                        self.code(language, &content.text, true);
                    } else {
                        for path in self.meanings(file) {
                            if let Some(text) = self.world.read(&path) {
                                self.code(language, &text, false);
                            }
                        }
                    }
                }
            }
        }
        Val::unknown(stdin.taint.without(Taint::NET).with(if rest.is_empty() {
            Taint::NONE
        } else {
            Taint::FILE
        }))
    }

    fn tainted_code(&mut self, code: &Val) {
        if code.taint.any(Taint::NET) {
            self.deny(
                "run.fetched",
                "The command runs code that another machine answers. Save it, read it, and ask the person.",
            );
        } else if code.taint.any(Taint::CODED) || (!code.is_known() && hollow(&code.text)) {
            self.ask("run.unknown", "The command runs code that is only known when it runs. Write it out.");
        }
    }

    fn awk(&mut self, args: &[Val], stdin: &Val, ran: bool) -> Val {
        // `-f prog`, `-v a=b`, `-F x` have been passed over as options; their values stand among the operands.
        let o = Options::split(args, &["-f", "-v", "-F", "-i", "-E"], false);
        let mut operands = o.operands.iter();
        if !ran
            && !o.has(&["-f", "-E"])
            && let Some(program) = operands.next()
        {
            let text = program.text.clone();
            self.tainted_code(program);
            self.code(code::Language::Awk, &text, true);
        }
        let mut taint = stdin.taint;
        for file in operands.cloned().collect::<Vec<_>>() {
            taint = taint.with(self.read_file(&file).taint);
        }
        Val::unknown(taint)
    }

    fn python_module(&mut self, module: Option<&Val>, args: &[Val], stdin: &Val) -> Val {
        let Some(module) = module else { return Val::default() };
        match module.text.as_str() {
            "pip" | "twine" | "uv" | "pipx" | "poetry" | "build" | "awscli" => {
                let mut argv = vec![module.clone()];
                argv.extend_from_slice(args);
                return self.run(&argv, stdin);
            }
            "timeit" | "cProfile" | "trace" | "pdb" | "runpy" | "coverage" | "doctest" => {
                let rest: Vec<Val> =
                    args.iter().filter(|a| !a.text.starts_with('-') && a.text != "run").cloned().collect();
                if module.text == "timeit" {
                    for a in &rest {
                        self.code(code::Language::Python, &a.text, true);
                    }
                } else {
                    return self.interpreter(code::Language::Python, &rest, stdin);
                }
            }
            "http.server" | "SimpleHTTPServer" => {
                for arg in args {
                    for path in self.meanings(arg) {
                        if let Some(what) = paths::secret_place(&path, self.scope) {
                            self.find(crate::policy::tools::secret_denied(&path, what));
                        }
                    }
                }
            }
            _ => {
                for arg in args {
                    self.read_file(arg);
                }
            }
        }
        Val::unknown(stdin.taint)
    }

    /// For wrappers whose options are not known: each suffix that starts with a program's name is judged.
    pub(super) fn suffixes(&mut self, args: &[Val], stdin: &Val) -> Val {
        for (i, arg) in args.iter().enumerate().take(64) {
            let base = arg.text.rsplit('/').next().unwrap_or_default();
            if SHELLS.contains(&base)
                || FILTERS.contains(&base)
                || matches!(
                    base,
                    "rm" | "curl"
                        | "wget"
                        | "nc"
                        | "dd"
                        | "find"
                        | "env"
                        | "sudo"
                        | "cp"
                        | "mv"
                        | "git"
                        | "ssh"
                        | "shred"
                        | "chmod"
                        | "chown"
                        | "kill"
                )
                || code::language(base).is_some()
            {
                self.run(&args[i..], stdin);
                break;
            }
        }
        for arg in args {
            self.read_file(arg);
        }
        Val::unknown(stdin.taint)
    }

    /// Everything that runs nothing else: builtins, then the rules.
    fn plain(&mut self, base: &str, name: &Val, args: &[Val], stdin: &Val) -> Val {
        let first = args.first().map(|a| a.text.as_str()).unwrap_or_default();
        match base {
            ":" | "true" | "false" | "test" | "[" | "sleep" | "wait" | "exit" | "return" | "break"
            | "continue" | "shift" | "umask" | "jobs" | "fg" | "bg" | "disown" | "ulimit" | "hash"
            | "times" | "bind" | "enable" | "compgen" | "complete" | "getopts" | "shopt" | "suspend"
            | "let" | "date" | "whoami" | "hostname" | "uname" | "id" | "arch" | "nproc" | "tty"
            | "clear" | "yes" | "ps" | "top" | "uptime" | "free" | "df" => match base {
                "id" | "whoami" | "hostname" | "uname" => Val::unknown(Taint::FILE),
                _ => Val::unknown(Taint::NONE),
            },
            "echo" => echo(args),
            "printf" => {
                let variable = (first == "-v").then(|| args.get(1).map(|a| a.text.clone())).flatten();
                let out = printf(if variable.is_some() { args.get(2..).unwrap_or_default() } else { args });
                match variable {
                    Some(name) => {
                        self.assign(&name, vec![out]);
                        Val::default()
                    }
                    None => out,
                }
            }
            "set" => {
                if args.is_empty() || first == "-o" && args.len() == 1 {
                    return if args.is_empty() { Val::unknown(Taint::ENV) } else { Val::default() };
                }
                if let Some(at) = args.iter().position(|a| a.text == "--") {
                    self.state.args = args[at + 1..].to_vec();
                } else if !first.starts_with(['-', '+']) {
                    self.state.args = args.to_vec();
                }
                Val::default()
            }
            "export" | "declare" | "typeset" | "readonly" | "local" => {
                let listing = args.iter().all(|a| a.text.starts_with('-'));
                for a in args {
                    if let Some((name, value)) = a.text.split_once('=')
                        && matches!(
                            name,
                            "LD_PRELOAD"
                                | "BASH_ENV"
                                | "PROMPT_COMMAND"
                                | "NODE_OPTIONS"
                                | "GIT_EXTERNAL_DIFF"
                                | "GIT_SSH_COMMAND"
                                | "LESSOPEN"
                                | "PERL5OPT"
                        )
                    {
                        let value = a.map(value);
                        self.environment(name, &value, &[]);
                    }
                }
                if listing && !args.iter().any(|a| a.text.contains('f') || a.text.contains('F')) {
                    Val::unknown(Taint::ENV)
                } else {
                    Val::default()
                }
            }
            "unset" => {
                for a in args {
                    self.state.vars.remove(&a.text);
                    self.state.functions.remove(&a.text);
                }
                Val::default()
            }
            "unalias" => Val::default(),
            "read" | "mapfile" | "readarray" => {
                let o = Options::split(
                    args,
                    &["-p", "-d", "-n", "-N", "-t", "-u", "-i", "-a", "-O", "-s", "-c", "-C"],
                    false,
                );
                let mut names: Vec<String> = o.operands.iter().map(|n| n.text.clone()).collect();
                names.extend(o.values(&["-a"]).into_iter().map(|v| v.text));
                if names.is_empty() {
                    names.push(if base == "read" { "REPLY" } else { "MAPFILE" }.to_owned());
                }
                let line = if base == "read" {
                    stdin.map(stdin.text.lines().next().unwrap_or_default())
                } else {
                    stdin.clone()
                };
                let mut words: Vec<Val> = if line.is_known() {
                    line.text.split_whitespace().map(|w| line.map(w)).collect()
                } else {
                    vec![line.clone()]
                };
                if names.len() == 1 && base == "read" && !o.has(&["-a"]) {
                    words = vec![line];
                }
                for (i, n) in names.iter().enumerate() {
                    let value = if names.len() == 1 {
                        words.clone()
                    } else {
                        vec![
                            words
                                .get(i)
                                .cloned()
                                .unwrap_or_else(|| words.last().cloned().unwrap_or_default()),
                        ]
                    };
                    self.assign(n, value);
                }
                Val::default()
            }
            "cd" | "pushd" | "chdir" => self.cd(base, args),
            "popd" => {
                if let Some(dir) = self.state.dirs.pop() {
                    self.state.oldpwd = Some(self.cwd());
                    self.state.cwds = vec![dir];
                }
                Val::default()
            }
            "dirs" | "pwd" => Val::known(format!("{}\n", self.cwd().display())),
            "basename" => {
                let o = Options::split(args, &["-s"], false);
                o.operands.first().map_or_else(Val::default, |p| {
                    let name = p.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                    let end = o.operands.get(1).map(|e| e.text.clone()).unwrap_or_default();
                    p.map(format!("{}\n", name.strip_suffix(end.as_str()).unwrap_or(name)))
                })
            }
            "dirname" => args.last().map_or_else(Val::default, |p| {
                let dir = p
                    .text
                    .trim_end_matches('/')
                    .rsplit_once('/')
                    .map_or(".", |(d, _)| if d.is_empty() { "/" } else { d });
                p.map(format!("{dir}\n"))
            }),
            "realpath" | "readlink" => match args.last().and_then(|p| self.meanings(p).first().cloned()) {
                Some(path) => Val::known(format!("{}\n", path.display())),
                None => Val::unknown(Taint::NONE),
            },
            "which" | "type" | "whereis" => {
                args.last().map_or_else(Val::default, |a| a.map(format!("{}\n", a.text)))
            }
            "mktemp" => {
                let template = args.iter().find(|a| a.text.contains("XXX")).map(|a| a.text.replace('X', "x"));
                Val::known(
                    template.filter(|t| t.starts_with('/')).unwrap_or_else(|| "/tmp/tmp.jess".to_owned())
                        + "\n",
                )
            }
            "base64" | "base32" | "basenc" | "xxd" | "tr" | "rev" | "uudecode" | "gunzip" | "zcat"
            | "gzip" | "openssl" | "sed" | "tac" | "od" | "hexdump" | "iconv" | "bzip2" | "xz" | "zstd" => {
                self.coder(base, args, stdin)
            }
            "tee" => {
                let o = Options::split(args, &[], false);
                for file in &o.operands {
                    self.write_file(file, !o.has(&["-a", "--append"]));
                    for path in self.meanings(file) {
                        self.state.files.insert(path, stdin.clone());
                    }
                }
                stdin.clone()
            }
            "cat" | "head" | "tail" | "sort" | "uniq" | "nl" | "less" | "more" | "cut" | "fold" | "bat"
            | "batcat" | "column" | "paste" | "strings" | "pr" | "expand" | "shuf" | "most" | "view" => {
                self.show(base, args, stdin)
            }
            _ => self.rules(base, name, args, stdin),
        }
    }

    fn cd(&mut self, base: &str, args: &[Val]) -> Val {
        let o = Options::split(args, &[], false);
        let target = match o.operands.first() {
            None => Val::known(self.scope.home.to_string_lossy()),
            Some(t) if t.text == "-" => Val::known(
                self.state.oldpwd.clone().unwrap_or_else(|| self.scope.cwd.clone()).to_string_lossy(),
            ),
            Some(t) => t.clone(),
        };
        let here = self.cwd();
        let places = self.meanings(&target);
        if base == "pushd" {
            self.state.dirs.push(here.clone());
        }
        self.state.oldpwd = Some(here.clone());
        let mut cwds: Vec<PathBuf> = places.clone();
        // Where it may fail, or leads nobody knows where, the old directory stays possible.
        if places.is_empty() || !places.iter().any(|p| self.world.kind(p) == Kind::Dir) {
            cwds.push(here);
        }
        cwds.truncate(3);
        self.state.cwds = cwds;
        Val::default()
    }

    /// Programs that print files or pass their input on.
    fn show(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let valued: &[&str] = match base {
            "head" | "tail" => &["-n", "-c", "--lines", "--bytes"],
            "sort" => &["-k", "-t", "-o", "-S", "-T", "--key", "--output"],
            "cut" => &["-d", "-f", "-c", "-b", "--delimiter", "--fields"],
            "fold" => &["-w"],
            "column" => &["-s", "-o", "-c"],
            "paste" => &["-d"],
            "shuf" => &["-n", "-i", "-o"],
            _ => &[],
        };
        let o = Options::split(args, valued, false);
        for file in o.values(&["-o", "--output"]) {
            self.write_file(&file, true);
        }
        if o.operands.is_empty() {
            return match base {
                "cut"
                    if stdin.taint.any(Taint::ENV)
                        && o.values(&["-f", "--fields"]).iter().any(|f| f.text == "1") =>
                {
                    Val::unknown(stdin.taint.without(Taint::ENV))
                }
                "cut" => Val::unknown(stdin.taint),
                _ => stdin.clone(),
            };
        }
        let mut out = Val::default();
        for file in o.operands {
            let val = if file.text == "-" { stdin.clone() } else { self.read_file(&file) };
            out.push(&val);
            if val.is_known() && !val.text.is_empty() && !val.text.ends_with('\n') && base != "cat" {
                out.push(&Val::known("\n"));
            }
        }
        out
    }

    /// Decoders and encoders: known input gives known output.
    fn coder(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let valued: &[&str] = match base {
            "base64" | "base32" => &["-w", "--wrap", "-i", "-o"],
            "xxd" => &["-c", "-l", "-s", "-g", "-o"],
            "sed" => &["-e", "-f", "--expression", "--file", "-l"],
            "openssl" => return self.openssl(args, stdin),
            "tr" => &[],
            "od" | "hexdump" => &["-A", "-t", "-N", "-j", "-n", "-s", "-e", "-w"],
            _ => &[],
        };
        let o = Options::split(args, valued, false);
        if base == "sed" {
            return self.sed(&o, stdin);
        }
        let files: Vec<Val> = if base == "tr" {
            Vec::new()
        } else {
            o.operands.iter().filter(|a| a.text != "-").cloned().collect()
        };
        let mut input = if files.is_empty() { stdin.clone() } else { Val::default() };
        for file in &files {
            let val = self.read_file(file);
            input.push(&val);
        }
        let coded = input.taint.with(Taint::CODED);
        let decodes = match base {
            "base64" | "base32" | "basenc" => o.has(&["-d", "-D", "--decode"]),
            "xxd" => o.has(&["-r"]),
            "tr" | "rev" | "tac" => true,
            "uudecode" | "gunzip" | "zcat" | "iconv" => true,
            "gzip" | "bzip2" | "xz" | "zstd" => o.has(&["-d", "--decompress"]),
            _ => false,
        };
        if !decodes {
            return Val::unknown(input.taint);
        }
        if !input.is_known() {
            return Val::unknown(coded);
        }
        let plain = match base {
            "base64" => unbase64(&input.text),
            "xxd" => unhex(&input.text),
            "rev" => Some(input.text.lines().map(|l| l.chars().rev().collect::<String>() + "\n").collect()),
            "tac" => Some(input.text.lines().rev().map(|l| format!("{l}\n")).collect()),
            "tr" => translate(&input.text, &o),
            _ => None,
        };
        match plain {
            Some(text) => Val { text: text.replace(HOLE, ""), taint: input.taint },
            None => Val::unknown(coded),
        }
    }

    fn openssl(&mut self, args: &[Val], stdin: &Val) -> Val {
        let sub = args.first().map(|a| a.text.clone()).unwrap_or_default();
        for file in args {
            self.read_file(file);
        }
        if matches!(sub.as_str(), "s_client" | "s_time") {
            if stdin.taint.any(Taint::LOCAL) {
                self.deny("exfil.socket", "The command sends data of this machine out over TLS.");
            } else if !stdin.text.is_empty() {
                self.ask("net.socket", "The command opens a raw connection.");
            }
            return Val::unknown(Taint::NET);
        }
        if args.iter().any(|a| matches!(a.text.as_str(), "-d" | "-decrypt")) {
            if let Some(text) = unbase64(&stdin.text)
                .filter(|_| stdin.is_known() && (sub == "base64" || args.iter().any(|a| a.text == "-base64")))
            {
                return stdin.map(text);
            }
            return Val::unknown(stdin.taint.with(Taint::CODED));
        }
        Val::unknown(stdin.taint)
    }

    fn sed(&mut self, o: &Options, stdin: &Val) -> Val {
        let mut scripts = o.values(&["-e", "--expression"]);
        let mut files = o.operands.clone();
        if scripts.is_empty() && !o.has(&["-f", "--file"]) && !files.is_empty() {
            scripts.push(files.remove(0));
        }
        let in_place = o.given.iter().any(|(n, _)| n.starts_with("-i") || n == "--in-place" || n == "-i");
        for script in &scripts {
            self.sed_script(&script.text.clone());
        }
        let mut input = if files.is_empty() { stdin.clone() } else { Val::default() };
        for file in &files {
            if in_place {
                self.write_file(file, false);
            }
            let val = self.read_file(file);
            input.push(&val);
        }
        let quiet = scripts.iter().all(|s| s.text == "p" || s.text.is_empty());
        if quiet {
            input
        } else {
            Val::unknown(input.taint.with(if input.is_known() && !input.text.is_empty() {
                Taint::CODED
            } else {
                Taint::NONE
            }))
        }
    }

    /// Commands of sed that read, write or run: `r`, `R`, `w`, `W`, `e` and the `e` and `w` flags of `s`.
    fn sed_script(&mut self, script: &str) {
        for part in script.split([';', '\n']) {
            let part = part.trim_start_matches(|c: char| {
                c.is_ascii_digit() || matches!(c, ',' | '$' | '~' | '+' | '!' | '{' | ' ')
            });
            let part = match part.strip_prefix('/') {
                Some(rest) => {
                    rest.split_once('/').map_or("", |(_, r)| r).trim_start_matches([' ', '!', 'I', 'M', '{'])
                }
                None => part,
            };
            let mut chars = part.chars();
            match chars.next() {
                Some('r' | 'R') => {
                    let file = Val::known(chars.as_str().trim().trim_end_matches('}'));
                    self.read_file(&file);
                }
                Some('w' | 'W') => {
                    let file = Val::known(chars.as_str().trim().trim_end_matches('}'));
                    self.write_file(&file, true);
                }
                Some('e') => {
                    self.program(chars.as_str().trim(), &Val::default());
                }
                Some('s') => {
                    let mut rest = chars;
                    let Some(sep) = rest.next() else { continue };
                    let fields: Vec<&str> = rest.as_str().split(sep).collect();
                    if let [_, to, flags, ..] = fields.as_slice() {
                        let flags_only = flags.split(' ').next().unwrap_or_default();
                        if flags_only.contains('e') {
                            self.program(&to.replace('&', ""), &Val::default());
                        }
                        if let Some((_, file)) = flags.split_once("w ") {
                            let file = Val::known(file.trim());
                            self.write_file(&file, true);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether the text is mostly unknown: its first word is.
fn hollow(text: &str) -> bool {
    text.trim_start().starts_with(HOLE) || text.lines().any(|l| l.trim_start().starts_with(HOLE))
}

pub(super) fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(n, _)| {
        !n.is_empty()
            && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !n.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// One word of a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn echo(args: &[Val]) -> Val {
    let mut escapes = false;
    let mut newline = true;
    let mut rest = args;
    while let Some(a) = rest.first().filter(|a| {
        a.text.len() > 1
            && a.text.starts_with('-')
            && a.text[1..].chars().all(|c| matches!(c, 'n' | 'e' | 'E'))
    }) {
        escapes |= a.text.contains('e');
        newline &= !a.text.contains('n');
        rest = &rest[1..];
    }
    let mut out = Val::default();
    for (i, a) in rest.iter().enumerate() {
        if i > 0 {
            out.push(&Val::known(" "));
        }
        out.push(a);
    }
    if escapes && out.is_known() {
        out.text = ansi_c(&out.text);
    }
    if newline {
        out.push(&Val::known("\n"));
    }
    out
}

fn printf(args: &[Val]) -> Val {
    let Some(format) = args.first() else { return Val::default() };
    let taint = args.iter().fold(Taint::NONE, |t, a| t.with(a.taint));
    if !format.is_known() {
        return Val::unknown(taint);
    }
    let mut out = Val { text: String::new(), taint };
    let mut values = args[1..].iter();
    let mut rounds = 0;
    loop {
        let mut used = false;
        let mut chars = ansi_c(&format.text).chars().collect::<Vec<_>>().into_iter().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(&Val::known(c.to_string()));
                continue;
            }
            let mut spec = String::new();
            for c in chars.by_ref() {
                spec.push(c);
                if c.is_ascii_alphabetic() || c == '%' {
                    break;
                }
            }
            match spec.chars().last() {
                Some('%') => out.push(&Val::known("%")),
                Some(kind) => {
                    used = true;
                    let value = values.next().cloned().unwrap_or_default();
                    let text = match kind {
                        'b' if value.is_known() => ansi_c(&value.text),
                        'c' => value.text.chars().take(1).collect(),
                        'q' => value.text.clone(),
                        'x' | 'X' | 'o' if value.is_known() => value.text.parse::<i64>().map_or_else(
                            |_| HOLE.to_string(),
                            |n| match kind {
                                'o' => format!("{n:o}"),
                                'X' => format!("{n:X}"),
                                _ => format!("{n:x}"),
                            },
                        ),
                        _ => value.text.clone(),
                    };
                    out.push(&value.map(text));
                }
                None => {}
            }
        }
        rounds += 1;
        if !used || values.len() == 0 || rounds > 256 {
            break;
        }
    }
    out
}

fn unbase64(text: &str) -> Option<String> {
    use base64::Engine;
    let clean: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let bytes = base64::engine::general_purpose::STANDARD_NO_PAD.decode(clean.trim_end_matches('=')).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn unhex(text: &str) -> Option<String> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|p| (p[0] * 16 + p[1]) as u8).collect();
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

fn translate(text: &str, o: &Options) -> Option<String> {
    let set = |v: &Val| -> Vec<char> {
        let chars: Vec<char> = ansi_c(&v.text).chars().collect();
        let mut out = Vec::new();
        let mut i = 0;
        while i < chars.len() && out.len() < 512 {
            if chars.get(i + 1) == Some(&'-') && i + 2 < chars.len() {
                out.extend((chars[i] as u32..=chars[i + 2] as u32).take(512).filter_map(char::from_u32));
                i += 3;
            } else {
                out.push(chars[i]);
                i += 1;
            }
        }
        out
    };
    let from = set(o.operands.first()?);
    if from.starts_with(&['[', ':']) {
        return None;
    }
    if o.has(&["-d"]) {
        return Some(text.chars().filter(|c| !from.contains(c)).collect());
    }
    if o.has(&["-s", "-c", "-C"]) {
        return None;
    }
    let to = set(o.operands.get(1)?);
    let last = to.last().copied()?;
    Some(
        text.chars()
            .map(|c| from.iter().rposition(|f| *f == c).map_or(c, |i| to.get(i).copied().unwrap_or(last)))
            .collect(),
    )
}

/// A path that is given as an argument, for callers outside.
pub(super) fn outside(path: &Path, m: &Machine<'_>) -> bool {
    !paths::in_project(path, m.scope) && !paths::is_scratch(path, m.scope)
}
