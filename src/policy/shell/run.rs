//! One simple command: builtins, wrappers that run another, and the rules for the rest.

use super::environ::assigns;
use super::eval::Machine;
use super::language::Language;
use super::options::Options;
use super::scripts::hollow;
use super::value::{HOLE, Taint, Val};
use super::{language, limits};
use crate::policy::Verdict;

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
pub(super) const FILTERS: &[&str] = &[
    "cat", "tac", "head", "tail", "sed", "grep", "egrep", "fgrep", "rg", "awk", "gawk", "mawk", "cut", "tr", "sort", "uniq", "tee", "base64", "base32", "xxd", "od", "hexdump", "hd", "rev", "nl", "fold", "fmt", "paste", "column", "expand", "strings", "gzip", "zcat", "xz", "bzip2", "zstd", "openssl", "gpg", "jq", "yq", "less", "more", "pv", "dd", "sponge", "shuf", "split", "iconv", "uuencode", "basenc", "tar", "bat", "perl", "python3", "python", "node", "ruby", "sha256sum", "sha1sum", "md5sum", "cksum", "wc", "jo", "envsubst", "printf", "echo",
];

pub(super) const SHELLS: &[&str] = &[
    "sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "fish", "rbash", "csh", "tcsh", "pwsh", "nu", "xonsh",
    "osh", "oil", "ysh", "yash", "rc", "elvish", "ksh93", "posh", "hush", "sash", "bash5", "lksh", "loksh",
    "oksh", "es",
];

/// Whether a program starts the one that its arguments name, so that they are judged as that one's.
pub(super) fn starts_another(base: &str) -> bool {
    WRAPPERS.iter().any(|w| w.0 == base)
        || LAUNCHERS.iter().any(|l| l.0 == base)
        || matches!(
            base,
            "at" | "batch"
                | "bunx"
                | "capsh"
                | "expect"
                | "flock"
                | "gdb"
                | "gmake"
                | "just"
                | "lldb"
                | "nerdctl"
                | "nix"
                | "nix-shell"
                | "pipx"
                | "runuser"
                | "screen"
                | "script"
                | "sg"
                | "su"
                | "tmux"
                | "uvx"
        )
}

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
        let around = std::mem::take(&mut self.given);
        let mut out = self.dispatch(name, &argv[1..], stdin);
        if self.given {
            out.taint = out.taint.with(Taint::ARRIVED);
        }
        self.given |= around;
        self.depth -= 1;
        out
    }

    pub(super) fn dispatch(&mut self, name: &Val, args: &[Val], stdin: &Val) -> Val {
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
        let only_programs = std::mem::take(&mut self.only_programs);
        if let Some(alias) = self.state.aliases.get(&base).cloned()
            && !only_programs
            && self.depth < limits::DEPTH
        {
            let line =
                format!("{alias} {}", args.iter().map(|a| quoted(&a.text)).collect::<Vec<_>>().join(" "));
            self.state.aliases.remove(&base);
            return self.program(&line, stdin);
        }
        if let Some(body) = self.state.functions.get(&base).cloned()
            && !only_programs
        {
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
        let refs: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        let custom = self.scope.custom.command(&base, &refs);
        self.find(custom);
        self.notes_reach(&base, args);
        self.notes_arrived(&base, args);
        self.guard_carried(&base, args);
        self.notes_seats(&base, args);
        self.persists(&base, args);
        self.touches(&base, args);
        self.other_agent(&base, args);
        self.prints_credentials(&base, args);
        self.origin(&base, args, stdin);
        self.outlet(&base, args, stdin);
        if super::rules::shows_environment(&base, args, stdin) {
            return Val::unknown(Taint::ENV);
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
        if matches!(base.as_str(), "pwsh" | "powershell")
            && let Some(at) =
                args.iter().position(|a| matches!(a.text.to_lowercase().as_str(), "-c" | "-command"))
        {
            // All that follows is one command.
            let line = super::carry::joined(&args[at + 1..]);
            return if line.text == "-" {
                self.text(stdin, &[], &Val::default())
            } else {
                self.text(&line, &[], stdin)
            };
        }
        if SHELLS.contains(&base.as_str()) {
            return self.shell(args, stdin);
        }
        if let Some(language) = language::language(&base) {
            return self.interpreter(language, args, stdin);
        }
        self.unpacks(&base, args, stdin);
        match base.as_str() {
            "capsh" => match args.iter().position(|a| a.text == "--") {
                Some(at) => self.shell(&args[at + 1..], stdin),
                None => Val::default(),
            },
            "latex" | "pdflatex" | "xelatex" | "lualatex" | "tex" | "m4" | "bc" | "dc" => {
                if args.iter().any(|a| a.text.contains("shell-escape") || a.text.contains("write18")) {
                    self.ask("run.unknown", "The document may run any command. Leave the shell escape out.");
                }
                for text in args.iter().chain([stdin]).cloned().collect::<Vec<_>>() {
                    self.read_file(&text);
                    self.code(Language::Other, &text.text.replace(HOLE, " "), true);
                }
                Val::unknown(stdin.taint)
            }
            "mosh" | "autossh" | "dbclient" => self.carrier("ssh", args, stdin),
            "man" | "info" | "lynx" | "w3m" | "links" | "elinks" | "logger" => {
                for file in args {
                    self.read_file(file);
                }
                self.plain(&base, name, args, stdin)
            }
            "env" => self.env(args, stdin),
            "rgrep" => {
                let mut argv = vec![Val::known("grep"), Val::known("-r")];
                argv.extend_from_slice(args);
                self.run(&argv, stdin)
            }
            "sudo" => {
                let o = Options::split(
                    args,
                    &[
                        "-u", "-g", "-h", "-p", "-C", "-T", "-r", "-t", "-D", "-R", "-U", "--user",
                        "--group", "--chdir",
                    ],
                    true,
                );
                let mut rest = o.operands.as_slice();
                while let Some((name, value)) = rest.first().and_then(assigns) {
                    self.environment(&name, &value);
                    rest = &rest[1..];
                }
                if let Some(dir) = o.values(&["-D", "--chdir"]).first() {
                    let rest = rest.to_vec();
                    return self.within(dir, |m| m.run(&rest, stdin));
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
            | "bun" | "just" | "docker-compose" | "expect" => {
                let before = std::mem::take(&mut self.answered);
                let mut out = self.carrier(&base, args, stdin);
                if self.answered {
                    out.taint = out.taint.with(Taint::ARRIVED);
                }
                self.answered |= before;
                out
            }
            _ => self.plain(&base, name, args, stdin),
        }
    }

    /// A command whose name nobody knows beforehand.
    pub(super) fn unknown_command(&mut self, name: &Val, args: &[Val], stdin: &Val) -> Val {
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

    pub(super) fn wrapper(
        &mut self,
        base: &str,
        args: &[Val],
        valued: &[&str],
        operands: usize,
        stdin: &Val,
    ) -> Val {
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
        while let Some(first) = rest.first() {
            match assigns(first) {
                Some((name, value)) => self.environment(&name, &value),
                None if first.text == "--" => {}
                None => break,
            }
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
        // What a wrapper starts is a program, whatever functions and aliases of this shell are called.
        self.only_programs = true;
        let out = self.run(rest, stdin);
        self.only_programs = false;
        out
    }

    pub(super) fn launcher(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
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
        // `cargo watch -s 'LINE'`, `hatch run 'LINE'`.
        if let Some(line) = rest.first().filter(|a| a.text.contains(' ')).cloned() {
            return self.text(&line, &[], stdin);
        }
        if let Some(first) = rest.first() {
            self.package_source(&first.clone());
        }
        let _ = base;
        self.run(&rest, stdin)
    }

    /// A shell with its arguments.
    pub(super) fn shell(&mut self, args: &[Val], stdin: &Val) -> Val {
        let mut rest = args;
        let mut reads_stdin = false;
        while let Some(arg) = rest.first() {
            let text = arg.text.as_str();
            rest = &rest[1..];
            for long in ["--command=", "--init-command=", "-Command="] {
                if let Some(line) = text.strip_prefix(long) {
                    let line = arg.map(line);
                    return self.text(&line, rest, stdin);
                }
            }
            match text {
                "--command" | "-Command" | "--init-command" | "--commands" => {
                    let Some(line) = rest.first().cloned() else { return Val::default() };
                    return self.text(&line, rest.get(1..).unwrap_or_default(), stdin);
                }
                t if t.to_lowercase().starts_with("-enc") => {
                    self.ask("run.unknown", "The command runs encoded text. Write it out.");
                    return Val::unknown(Taint::NONE);
                }
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
}

/// One word of a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
