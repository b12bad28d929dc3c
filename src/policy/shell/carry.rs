//! Programs that run a command given to them in a form of their own.

use super::eval::Machine;
use super::limits;
use super::options::Options;
use super::run::quoted;
use super::value::{HOLE, Taint, Val};

impl Machine<'_> {
    pub(super) fn carrier(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        match base {
            "xargs" => self.xargs(args, stdin),
            "parallel" => self.parallel(args, stdin),
            "find" => self.find_files(args, stdin),
            "fd" | "fdfind" => self.fd(args, stdin),
            "eval" => {
                let line = joined(args);
                if initialiser(&line.text) {
                    return Val::default();
                }
                self.eval(&line, stdin)
            }
            "source" | "." => {
                let Some(file) = args.first() else { return Val::default() };
                if initialiser(&file.text) {
                    return Val::default();
                }
                let piped = matches!(file.text.as_str(), "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0");
                let content = if piped { stdin.clone() } else { self.read_file(file) };
                if content.taint.any(Taint::NET) {
                    self.deny(
                        "run.fetched",
                        "The command runs what another machine answers. Show it to the person first.",
                    );
                } else if content.is_known() && !content.text.is_empty() {
                    let text = content.text.clone();
                    return self.program(&text, stdin);
                } else {
                    for path in self.meanings(file) {
                        if let Some(text) = self.world.read(&path) {
                            self.quiet_script(&text, stdin);
                        }
                    }
                }
                Val::default()
            }
            "alias" => {
                for a in args {
                    if let Some((name, value)) = a.text.split_once('=') {
                        // It is used in the next line, or in the next call.
                        let value = value.to_owned();
                        self.subshell(|m| m.program(&value, &Val::default()));
                        self.state.aliases.insert(name.to_owned(), value);
                    }
                }
                Val::default()
            }
            "trap" => {
                if let Some(a) = args.iter().find(|a| !matches!(a.text.as_str(), "--" | "-p" | "-l" | "-")) {
                    let text = a.clone();
                    self.text(&text, &[], &Val::default());
                }
                Val::default()
            }
            "su" | "runuser" | "sg" | "script" | "flock" => {
                let valued = ["-c", "--command", "-s", "-g", "-G", "-w", "-E", "-u", "-I", "-O", "-B", "-T"];
                let o = Options::split(args, &valued, base == "flock");
                for line in o.values(&["-c", "--command"]) {
                    let out = self.text(&line, &[], stdin);
                    self.shown(&out);
                }
                match base {
                    "flock" => {
                        let rest = o.operands.get(1..).unwrap_or_default().to_vec();
                        if rest.first().is_some_and(|a| a.text == "-c") {
                            return self.shell(&rest, stdin);
                        }
                        self.run(&rest, stdin)
                    }
                    "sg" => {
                        for a in o.operands.iter().skip(1) {
                            self.text(a, &[], stdin);
                        }
                        Val::default()
                    }
                    "script" => {
                        for a in &o.operands {
                            self.write_file(a, true);
                        }
                        Val::default()
                    }
                    _ => {
                        if !o.has(&["-c", "--command"]) && !stdin.text.is_empty() {
                            self.text(stdin, &[], &Val::default());
                        }
                        if base == "runuser" && o.has(&["-u"]) {
                            return self.run(&o.operands, stdin);
                        }
                        if base == "runuser" && o.operands.len() > 1 {
                            return self.run(&o.operands[1..], stdin);
                        }
                        Val::default()
                    }
                }
            }
            "watch" => {
                let o = Options::split(args, &["-n", "--interval"], true);
                let line = joined(&o.operands);
                self.text(&line, &[], stdin)
            }
            "tmux" | "screen" => {
                for a in args {
                    if a.text.contains(' ') {
                        let line = a.map(a.text.replace("\\n", "\n"));
                        self.text(&line, &[], stdin);
                    }
                }
                self.suffixes(args, stdin)
            }
            "at" | "batch" => {
                self.ask(
                    "persist.schedule",
                    "The command schedules something to run later. A person has to agree.",
                );
                if !stdin.text.is_empty() {
                    self.text(stdin, &[], &Val::default());
                }
                Val::default()
            }
            "ssh" => self.ssh(args, stdin),
            "docker" | "podman" | "nerdctl" | "docker-compose" => self.container(base, args, stdin),
            "kubectl" | "oc" => self.cluster(base, args, stdin),
            "npx" | "bunx" | "uvx" | "pipx" => self.remote_package(base, args, stdin),
            "nix-shell" | "nix" => {
                let o = Options::split(args, &["--run", "--command", "-c", "-p", "-I", "--argstr"], false);
                for line in o.values(&["--run", "--command"]) {
                    self.text(&line, &[], stdin);
                }
                if let Some(at) = args.iter().position(|a| matches!(a.text.as_str(), "-c" | "--command")) {
                    return self.run(&args[at + 1..], stdin);
                }
                for a in args {
                    self.package_source(a);
                    self.read_file(a);
                }
                // `nix run PACKAGE -- ARGUMENTS`; the arguments can be a program's name and its own.
                match args.iter().position(|a| a.text == "--").and_then(|at| args.get(at + 1..)) {
                    Some(rest) if rest.first().is_some_and(|a| !a.text.starts_with('-')) => {
                        self.run(rest, stdin)
                    }
                    _ => Val::default(),
                }
            }
            "make" | "gmake" => self.make(args, stdin),
            "just" => {
                if let Some(at) = args.iter().position(|a| matches!(a.text.as_str(), "--command" | "-c")) {
                    return self.run(&args[at + 1..], stdin);
                }
                let goals: Vec<String> =
                    args.iter().filter(|a| !a.text.starts_with('-')).map(|a| a.text.clone()).collect();
                self.own_recipes(&["justfile", "Justfile", ".justfile"], &goals);
                Val::unknown(stdin.taint)
            }
            "npm" | "yarn" | "pnpm" | "bun" => self.node_package(base, args, stdin),
            "gdb" | "lldb" => {
                if args.iter().any(|a| a.text == "$PPID") {
                    self.deny("guard.kill", "The command traces the client.");
                }
                let o = Options::split(
                    args,
                    &["-x", "-s", "--source", "--command", "-ex", "-o", "--one-line"],
                    false,
                );
                for file in o.values(&["-x", "-s", "--source", "--command"]) {
                    self.editor_script(&file, stdin);
                }
                for a in args {
                    for start in ["shell ", "!", "platform shell ", "python ", "script "] {
                        if let Some(line) = a.text.strip_prefix(start) {
                            let line = line.to_owned();
                            self.program(&line, stdin);
                        }
                    }
                }
                self.suffixes(args, stdin)
            }
            "expect" => {
                for a in args.iter().chain([stdin]) {
                    for line in a.text.split(['\n', ';']) {
                        for start in ["spawn ", "exec ", "system "] {
                            if let Some(rest) = line.trim().strip_prefix(start) {
                                self.program(rest, &Val::default());
                            }
                        }
                    }
                }
                Val::default()
            }
            _ => self.suffixes(args, stdin),
        }
    }

    /// `eval`: in this shell, not in a subshell.
    pub(super) fn eval(&mut self, line: &Val, stdin: &Val) -> Val {
        if line.taint.any(Taint::NET) {
            self.deny("run.fetched", "The command runs what another machine answers. Save it to a file, read it, and ask the person.");
            return Val::default();
        }
        if !line.is_known() || line.taint.any(Taint::CODED) {
            let opaque =
                line.text.trim_start().starts_with(HOLE) || line.taint.any(Taint::CODED.with(Taint::SECRET));
            if opaque {
                self.ask(
                    "run.unknown",
                    "The command evaluates a text that is only known when it runs. Write it out.",
                );
            }
            if !line.is_known() && opaque {
                return Val::default();
            }
        }
        let text = line.text.clone();
        self.program(&text, stdin)
    }

    /// A script of the machine's own that is sourced: its syntax may be another shell's.
    pub(super) fn quiet_script(&mut self, text: &str, stdin: &Val) {
        let before = self.found.clone();
        let lenient = std::mem::replace(&mut self.lenient, true);
        self.program(text, stdin);
        self.lenient = lenient;
        if matches!(self.found.rule, "shell.syntax" | "shell.bound") {
            self.found = before;
        }
    }

    pub(super) fn xargs(&mut self, args: &[Val], stdin: &Val) -> Val {
        let o = Options::split(
            args,
            &[
                "-I",
                "-n",
                "-P",
                "-d",
                "-L",
                "-s",
                "-a",
                "-E",
                "--replace",
                "--max-args",
                "--max-procs",
                "--delimiter",
                "--arg-file",
                "--max-lines",
            ],
            true,
        );
        let mut input = stdin.clone();
        for file in o.values(&["-a", "--arg-file"]) {
            input = self.read_file(&file);
        }
        let mut argv = o.operands.clone();
        if argv.is_empty() {
            argv.push(Val::known("echo"));
        }
        self.removes_all(&argv, &input);
        let items: Vec<Val> = if input.is_known() {
            input
                .text
                .split(|c: char| c.is_whitespace() || c == HOLE)
                .filter(|w| !w.is_empty())
                .take(limits::ROUNDS_MAX + 1)
                .map(|w| input.map(w))
                .collect()
        } else {
            input.text.split_whitespace().take(limits::ROUNDS_MAX + 1).map(|w| input.map(w)).collect()
        };
        if items.len() > limits::ROUNDS_MAX {
            self.bound("a list of too many names");
        }
        let items =
            if items.is_empty() && !input.text.is_empty() { vec![Val::unknown(input.taint)] } else { items };
        let mark = o
            .values(&["-I", "--replace"])
            .first()
            .map(|v| v.text.clone())
            .or_else(|| o.has(&["-i"]).then(|| "{}".to_owned()));
        match mark {
            Some(mark) if !mark.is_empty() => {
                let mut out = Val::default();
                for item in &self.rounds(items) {
                    let line: Vec<Val> = argv
                        .iter()
                        .map(|a| {
                            if a.text.contains(&mark) {
                                Val {
                                    text: a.text.replace(&mark, &item.text),
                                    taint: a.taint.with(item.taint),
                                }
                            } else {
                                a.clone()
                            }
                        })
                        .collect();
                    let val = self.run(&line, &Val::default());
                    out.push(&val);
                }
                out
            }
            _ => {
                argv.extend(items);
                self.run(&argv, &Val::default())
            }
        }
    }

    pub(super) fn parallel(&mut self, args: &[Val], stdin: &Val) -> Val {
        let o = Options::split(
            args,
            &["-j", "-S", "--jobs", "-a", "-N", "-n", "--colsep", "--joblog", "--results"],
            true,
        );
        let at = o.operands.iter().position(|a| a.text.starts_with(":::")).unwrap_or(o.operands.len());
        let (command, lists) = o.operands.split_at(at);
        let mut items: Vec<Val> = lists.iter().filter(|a| !a.text.starts_with(":::")).cloned().collect();
        if lists.first().is_some_and(|l| l.text == "::::") {
            for file in &items.clone() {
                let content = self.read_file(file);
                items = content.text.lines().map(|l| content.map(l)).collect();
            }
        }
        if lists.is_empty() {
            items = stdin.text.lines().map(|l| stdin.map(l)).collect();
        }
        if command.is_empty() {
            for item in &self.rounds(items) {
                self.text(item, &[], &Val::default());
            }
            return Val::default();
        }
        let line = joined(command);
        for item in &self.rounds(items) {
            let text = if line.text.contains('{') {
                line.text.replace("{}", &item.text)
            } else {
                format!("{} {}", line.text, quoted(&item.text))
            };
            let out = self.text(&Val { text, taint: line.taint.with(item.taint) }, &[], &Val::default());
            self.shown(&out);
        }
        Val::unknown(Taint::NONE)
    }
}

/// Arguments as one line, as `eval` and `ssh` join them.
pub(super) fn joined(args: &[Val]) -> Val {
    let mut out = Val::default();
    for (i, a) in args.iter().enumerate() {
        if i > 0 {
            out.push(&Val::known(" "));
        }
        out.push(a);
    }
    out
}

/// Text that well-known programs print to set up a shell. Their output is a hole here; the mark is left by [`super::rules`].
pub(super) fn initialiser(text: &str) -> bool {
    text.contains(INITIALISER)
}

/// Stands in a value for the output of a known initialiser.
pub(super) const INITIALISER: &str = "\u{e000}jess-initialiser\u{e000}";
