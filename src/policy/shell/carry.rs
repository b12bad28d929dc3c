//! Programs that run a command given to them in a form of their own.

use super::eval::Machine;
use super::options::Options;
use super::run::quoted;
use super::value::{HOLE, Taint, Val, glob_matches};
use super::{code, limits};
use crate::policy::paths;
use crate::policy::world::Kind;
use std::path::{Path, PathBuf};

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
                        self.state.aliases.insert(name.to_owned(), value.to_owned());
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
                    self.text(&line, &[], stdin);
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
                }
                Val::default()
            }
            "make" | "gmake" => self.make(args, stdin),
            "just" => Val::unknown(stdin.taint),
            "npm" | "yarn" | "pnpm" | "bun" => self.node_package(base, args, stdin),
            "gdb" | "lldb" => {
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
                        if let Some(rest) = line.trim().strip_prefix("spawn ") {
                            self.program(rest, &Val::default());
                        }
                    }
                }
                Val::default()
            }
            _ => self.suffixes(args, stdin),
        }
    }

    /// `eval`: in this shell, not in a subshell.
    fn eval(&mut self, line: &Val, stdin: &Val) -> Val {
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
    fn quiet_script(&mut self, text: &str, stdin: &Val) {
        let before = self.found.clone();
        let lenient = std::mem::replace(&mut self.lenient, true);
        self.program(text, stdin);
        self.lenient = lenient;
        if matches!(self.found.rule, "shell.syntax" | "shell.bound") {
            self.found = before;
        }
    }

    fn xargs(&mut self, args: &[Val], stdin: &Val) -> Val {
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
        let items: Vec<Val> = if input.is_known() {
            input
                .text
                .split(|c: char| c.is_whitespace() || c == HOLE)
                .filter(|w| !w.is_empty())
                .take(limits::FIELDS)
                .map(|w| input.map(w))
                .collect()
        } else {
            input.text.split_whitespace().take(limits::FIELDS).map(|w| input.map(w)).collect()
        };
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
                for item in items.iter().take(limits::ROUNDS) {
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

    fn parallel(&mut self, args: &[Val], stdin: &Val) -> Val {
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
            for item in items.iter().take(limits::ROUNDS) {
                self.text(item, &[], &Val::default());
            }
            return Val::default();
        }
        let line = joined(command);
        for item in items.iter().take(limits::ROUNDS) {
            let text = if line.text.contains('{') {
                line.text.replace("{}", &item.text)
            } else {
                format!("{} {}", line.text, quoted(&item.text))
            };
            self.text(&Val { text, taint: line.taint.with(item.taint) }, &[], &Val::default());
        }
        Val::unknown(Taint::NONE)
    }

    fn find_files(&mut self, args: &[Val], stdin: &Val) -> Val {
        let start = args
            .iter()
            .position(|a| {
                a.text.starts_with(['-', '(', '!'])
                    && a.text.len() > 1
                    && !matches!(a.text.as_str(), "-H" | "-L" | "-P")
                    || a.text == "("
                    || a.text == "!"
            })
            .unwrap_or(args.len());
        let mut roots: Vec<Val> =
            args[..start].iter().filter(|a| !a.text.starts_with('-')).cloned().collect();
        if roots.is_empty() {
            roots.push(Val::known("."));
        }
        let tests = &args[start..];
        let mut names: Vec<String> = Vec::new();
        let mut narrowed = false;
        let mut depth = 6usize;
        let mut i = 0;
        let mut actions: Vec<(Vec<Val>, bool)> = Vec::new();
        let mut deletes = false;
        while let Some(t) = tests.get(i) {
            let value = tests.get(i + 1);
            match t.text.as_str() {
                "-name" | "-iname" | "-path" | "-ipath" | "-wholename" => {
                    if let Some(v) = value {
                        let pattern = v.text.rsplit('/').next().unwrap_or_default().to_owned();
                        if tests
                            .get(i.wrapping_sub(1))
                            .is_none_or(|p| !matches!(p.text.as_str(), "!" | "-not"))
                            && tests.get(i + 2).is_none_or(|n| n.text != "-prune")
                        {
                            narrowed |= !matches!(pattern.as_str(), "*" | ".*" | "");
                            names.push(if t.text.starts_with("-i") {
                                pattern.to_lowercase()
                            } else {
                                pattern
                            });
                        } else if tests.get(i + 2).is_some_and(|n| n.text == "-prune") {
                            narrowed |= true;
                        }
                    }
                    i += 1;
                }
                "-regex" | "-iregex" | "-mtime" | "-mmin" | "-size" | "-newer" | "-user" | "-perm"
                | "-atime" | "-ctime" => {
                    narrowed |=
                        matches!(t.text.as_str(), "-regex" | "-iregex" | "-size" | "-mtime" | "-mmin");
                    i += 1;
                }
                "-empty" => narrowed = true,
                "-maxdepth" => {
                    depth = value.and_then(|v| v.text.parse().ok()).unwrap_or(6);
                    i += 1;
                }
                "-mindepth" | "-type" | "-printf" | "-group" | "-uid" => i += 1,
                "-delete" => deletes = true,
                "-fprint" | "-fprintf" | "-fls" | "-fprint0" => {
                    if let Some(v) = value.cloned() {
                        self.write_file(&v, true);
                    }
                    i += 1;
                }
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let rest = &tests[i + 1..];
                    let end = rest.iter().position(|a| a.text == ";" || a.text == "+").unwrap_or(rest.len());
                    actions.push((rest[..end].to_vec(), true));
                    i += end + 1;
                }
                _ => {}
            }
            i += 1;
        }
        let hits = |m: &Self, name: &str| {
            names.is_empty()
                || names.iter().any(|p| {
                    let _ = m;
                    glob_any(p, name) || glob_any(p, &name.to_lowercase())
                })
        };
        let mut secrets: Vec<PathBuf> = Vec::new();
        for root in roots.clone() {
            for path in self.meanings(&root) {
                if self.is_secret(&path).is_some() {
                    secrets.push(path.clone());
                }
                let below = paths::secrets_below(&path, self.scope, self.world, &|p| {
                    p.file_name().is_some_and(|n| hits(self, &n.to_string_lossy()))
                        && p.strip_prefix(&path).is_ok_and(|r| r.components().count() <= depth)
                });
                secrets.extend(below);
                if let Some(what) = paths::secret_place(&path, self.scope)
                    && !narrowed
                    && what != "a system directory that holds secrets"
                    && !actions.is_empty()
                {
                    let reads = actions.iter().any(|(a, _)| {
                        a.first().is_some_and(|c| {
                            !matches!(c.text.as_str(), "ls" | "echo" | "stat" | "basename" | "file")
                        })
                    });
                    if reads {
                        self.find(crate::policy::tools::secret_denied(&path, what));
                    }
                }
            }
        }
        // A name that only a secret has, below a root that cannot be walked here.
        for pattern in &names {
            for usual in [
                ".env",
                "id_rsa",
                "id_ed25519",
                ".netrc",
                "credentials",
                ".npmrc",
                ".pgpass",
                "secrets.yml",
                ".git-credentials",
                "key.pem",
            ] {
                if glob_any(pattern, usual)
                    && pattern.chars().filter(|c| c.is_alphanumeric()).count() >= 2
                    && !actions.is_empty()
                {
                    secrets.push(self.cwd().join(usual));
                }
            }
        }
        if deletes {
            for root in roots.clone() {
                self.removal(&root, true, narrowed);
            }
        }
        for (action, _) in &actions {
            let removes = action.first().is_some_and(|c| {
                matches!(c.text.rsplit('/').next(), Some("rm" | "shred" | "rmdir" | "unlink"))
            });
            if removes {
                for root in roots.clone() {
                    self.removal(&root, true, narrowed);
                }
                continue;
            }
            let mut targets: Vec<Val> =
                secrets.iter().take(4).map(|s| Val::known(s.to_string_lossy())).collect();
            targets.push(Val {
                text: format!(
                    "{}/{HOLE}",
                    roots.first().map(|r| r.text.trim_end_matches('/').to_owned()).unwrap_or_default()
                ),
                taint: Taint::NONE,
            });
            for target in targets {
                let line: Vec<Val> = action
                    .iter()
                    .map(|a| {
                        if a.text.contains("{}") {
                            Val { text: a.text.replace("{}", &target.text), taint: a.taint }
                        } else {
                            a.clone()
                        }
                    })
                    .collect();
                self.run(&line, stdin);
            }
        }
        let mut out = Val::default();
        for s in secrets.iter().take(8) {
            out.push(&Val::known(format!("{}\n", s.display())));
        }
        for root in roots.iter().filter(|_| !narrowed || secrets.is_empty()) {
            out.push(&Val {
                text: format!("{}/{HOLE}\n", root.text.trim_end_matches('/')),
                taint: Taint::NONE,
            });
        }
        out
    }

    fn fd(&mut self, args: &[Val], stdin: &Val) -> Val {
        let at = args.iter().position(|a| matches!(a.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
        let Some(at) = at else { return Val::unknown(Taint::NONE) };
        let hidden = args[..at].iter().any(|a| {
            a.text.contains('H') && a.text.starts_with('-')
                || a.text.contains("hidden")
                || a.text.contains('u')
        });
        let pattern =
            args[..at].iter().find(|a| !a.text.starts_with('-')).map(|a| a.text.clone()).unwrap_or_default();
        let mut targets = vec![Val::unknown(Taint::NONE)];
        if hidden {
            let cwd = self.cwd();
            let want: String = pattern.chars().filter(|c| c.is_alphanumeric()).collect();
            let below =
                paths::secrets_below(&cwd, self.scope, self.world, &|p| p.to_string_lossy().contains(&want));
            targets.extend(below.iter().map(|p| Val::known(p.to_string_lossy())));
        }
        for target in targets {
            let mut line: Vec<Val> = args[at + 1..]
                .iter()
                .filter(|a| a.text != ";")
                .map(|a| a.map(a.text.replace("{}", &target.text)))
                .collect();
            if !args[at + 1..].iter().any(|a| a.text.contains("{}")) {
                line.push(target);
            }
            self.run(&line, stdin);
        }
        Val::unknown(Taint::NONE)
    }

    fn ssh(&mut self, args: &[Val], stdin: &Val) -> Val {
        self.reaches = true;
        let o = Options::split(
            args,
            &[
                "-p", "-i", "-l", "-o", "-F", "-L", "-R", "-D", "-J", "-W", "-b", "-c", "-E", "-m", "-S",
                "-w", "-e", "-I", "-O", "-Q",
            ],
            true,
        );
        for option in o.values(&["-o"]) {
            let (name, value) = option.text.split_once(['=', ' ']).unwrap_or((&option.text, ""));
            if matches!(
                name.trim().to_lowercase().as_str(),
                "proxycommand" | "localcommand" | "knownhostscommand" | "remotecommand"
            ) {
                let value = value.trim().to_owned();
                self.program(&value, &Val::default());
            }
        }
        if o.has(&["-R", "-D", "-w"]) {
            self.ask("net.tunnel", "The command opens a tunnel into this machine. A person has to agree.");
        }
        for file in o.values(&["-F", "-E"]) {
            self.read_file(&file);
        }
        if stdin.taint.any(Taint::LOCAL) {
            self.deny("exfil.ssh", "The command sends data of this machine to another one.");
        }
        let rest = o.operands.get(1..).unwrap_or_default();
        if !rest.is_empty() {
            let line = joined(rest);
            if line.taint.any(Taint::LOCAL) {
                self.deny("exfil.ssh", "The command sends data of this machine to another one.");
            }
            self.text(&line, &[], &Val::default());
        }
        Val::unknown(Taint::NET)
    }

    fn container(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let mut rest: Vec<Val> = args.to_vec();
        if base != "docker-compose" {
            while rest.first().is_some_and(|a| a.text.starts_with('-')) {
                let valued =
                    matches!(rest[0].text.as_str(), "-H" | "--host" | "-c" | "--context" | "--config");
                if matches!(rest[0].text.as_str(), "-H" | "--host") {
                    self.ask("run.container", "The command talks to another machine's container service.");
                }
                rest.drain(..(1 + usize::from(valued)).min(rest.len()));
            }
        }
        if base == "docker-compose" || rest.first().is_some_and(|a| a.text == "compose") {
            if base != "docker-compose" {
                rest.remove(0);
            }
            while rest.first().is_some_and(|a| a.text.starts_with('-')) {
                let valued = matches!(
                    rest[0].text.as_str(),
                    "-f" | "--file" | "-p" | "--project-name" | "--env-file" | "--profile"
                );
                rest.drain(..(1 + usize::from(valued)).min(rest.len()));
            }
            if rest.first().is_some_and(|a| a.text == "down")
                && rest.iter().any(|a| matches!(a.text.as_str(), "-v" | "--volumes" | "-vt"))
            {
                self.ask("destroy.container", "The command deletes the volumes and the data in them.");
            }
        }
        let sub = rest.first().map(|a| a.text.clone()).unwrap_or_default();
        let mut more: Vec<Val> = rest.get(1..).unwrap_or_default().to_vec();
        let mut sub = sub;
        if matches!(
            sub.as_str(),
            "container" | "image" | "volume" | "system" | "network" | "builder" | "buildx"
        ) {
            let inner = more.first().map(|a| a.text.clone()).unwrap_or_default();
            if matches!(inner.as_str(), "prune" | "rm" | "remove")
                && matches!(sub.as_str(), "volume" | "system")
            {
                self.ask("destroy.container", "The command deletes containers' data. A person has to agree.");
            }
            if sub == "container" && !more.is_empty() {
                sub = inner;
                more.remove(0);
            }
        }
        match sub.as_str() {
            "run" | "exec" | "create" => {
                #[rustfmt::skip]
                let valued = ["-v", "--volume", "--mount", "-e", "--env", "--env-file", "-w", "--workdir", "-u", "--user", "--name", "-p", "--publish", "--network", "--net", "--entrypoint", "-h", "--hostname", "-m", "--memory", "--cpus", "-l", "--label", "--add-host", "--device", "--cap-add", "--security-opt", "--pid", "--ipc", "--ulimit", "--platform", "--pull", "--restart", "--gpus", "--tmpfs", "--index", "--userns", "--uts", "--cgroupns"];
                let o = Options::split(&more, &valued, true);
                if o.has(&["--privileged"])
                    || o.values(&["--pid", "--net", "--network", "--ipc", "--userns", "--uts", "--cgroupns"])
                        .iter()
                        .any(|v| v.text == "host")
                        && o.has(&["--pid", "--userns"])
                    || o.has(&["--device"])
                    || o.values(&["--cap-add"]).iter().any(|c| {
                        matches!(
                            c.text.to_uppercase().trim_start_matches("CAP_"),
                            "ALL" | "SYS_ADMIN" | "SYS_PTRACE" | "SYS_MODULE" | "DAC_READ_SEARCH"
                        )
                    })
                {
                    self.ask("run.container", "The container would be allowed to control this machine.");
                }
                let mut mounts: Vec<(String, String)> = Vec::new();
                for v in o.values(&["-v", "--volume"]) {
                    let mut parts = v.text.split(':');
                    mounts.push((
                        parts.next().unwrap_or_default().to_owned(),
                        parts.next().unwrap_or_default().to_owned(),
                    ));
                }
                for v in o.values(&["--mount"]) {
                    let part = |k: &[&str]| {
                        v.text
                            .split(',')
                            .find_map(|p| {
                                p.split_once('=').filter(|(n, _)| k.contains(n)).map(|(_, v)| v.to_owned())
                            })
                            .unwrap_or_default()
                    };
                    mounts.push((part(&["src", "source"]), part(&["dst", "target", "destination"])));
                }
                for (from, _) in &mounts {
                    if from.is_empty() || !from.contains(['/', '.', '~']) {
                        continue;
                    }
                    let from = Val::known(from.clone());
                    for path in self.meanings(&from) {
                        if path.ends_with("docker.sock")
                            || path.ends_with("podman.sock")
                            || path.ends_with("containerd.sock")
                        {
                            self.ask(
                                "run.container",
                                "The container would control the machine's containers.",
                            );
                        } else if let Some(what) =
                            self.is_secret(&path).or_else(|| paths::secret_place(&path, self.scope))
                        {
                            self.find(crate::policy::tools::secret_denied(&path, what));
                        } else if path.starts_with("/etc")
                            || path == Path::new("/var")
                            || path == Path::new("/usr")
                        {
                            self.ask("run.container", "The container would see the machine's own files.");
                        }
                    }
                }
                for file in o.values(&["--env-file"]) {
                    self.read_file(&file);
                }
                for e in o.values(&["-e", "--env"]) {
                    if e.taint.any(Taint::SECRET) {
                        self.ask("secret.read", "The command hands a secret to a container.");
                    }
                }
                let mut inner: Vec<Val> = o.operands.get(1..).unwrap_or_default().to_vec();
                if let Some(entry) = o.values(&["--entrypoint"]).first() {
                    inner.insert(0, entry.clone());
                }
                // Paths inside lead back through the mounts.
                for a in &mut inner {
                    for (from, to) in &mounts {
                        if !to.is_empty() && a.text.contains(to.as_str()) {
                            a.text = a.text.replace(to.as_str(), from);
                        }
                    }
                }
                if inner.is_empty() { Val::default() } else { self.run(&inner, stdin) }
            }
            "cp" => {
                for a in &more {
                    if !a.text.contains(':') {
                        self.read_file(a);
                    }
                }
                Val::default()
            }
            "push" => {
                self.ask("publish.image", "The command publishes an image. A person has to agree.");
                Val::default()
            }
            "build" => {
                for v in more.iter().filter(|a| {
                    a.text.contains("src=") || a.text.contains("://") && !a.text.starts_with("--")
                }) {
                    match v.text.split("src=").nth(1) {
                        Some(file) => {
                            let file = Val::known(file.split(',').next().unwrap_or_default());
                            self.read_file(&file);
                        }
                        None => self.package_source(v),
                    }
                }
                Val::default()
            }
            _ => Val::unknown(Taint::NONE),
        }
    }

    fn cluster(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let words: Vec<&str> = args.iter().map(|a| a.text.as_str()).filter(|a| !a.starts_with('-')).collect();
        let has = |w: &str| args.iter().any(|a| a.text == w);
        if has("view") && has("--raw")
            || words.first() == Some(&"config")
                && words.contains(&"view")
                && args.iter().any(|a| a.text == "--raw" || a.text.contains("raw"))
        {
            self.deny("secret.read", "The command prints the cluster's credentials.");
        }
        let secrets = matches!(words.as_slice(), ["get" | "describe", "secret" | "secrets", ..])
            || words.iter().any(|w| w.starts_with("secret/") || w.starts_with("secrets/"))
                && words.first() == Some(&"get");
        if secrets
            && args.iter().any(|a| {
                a.text.starts_with("-o")
                    || a.text.starts_with("--output")
                    || a.text.contains("template")
                    || a.text.contains("jsonpath")
            })
        {
            self.deny("secret.read", "The command prints the cluster's secrets.");
        }
        match words.first() {
            Some(&"delete" | &"drain" | &"replace") => self.ask(
                "destroy.cluster",
                format!("{base} would delete objects of a cluster. A person has to agree."),
            ),
            Some(&"create") if words.get(1) == Some(&"token") => {
                self.deny("secret.read", "The command prints a token.")
            }
            Some(&"cp") => {
                for a in args.iter().skip(1) {
                    if !a.text.contains(':') {
                        self.read_file(a);
                    }
                }
            }
            Some(&"exec" | &"run" | &"debug") => {
                if let Some(at) = args.iter().position(|a| a.text == "--") {
                    return self.run(&args[at + 1..], stdin);
                }
            }
            _ => {}
        }
        Val::unknown(Taint::NONE)
    }

    /// A package given by address rather than by name.
    pub(super) fn package_source(&mut self, spec: &Val) {
        let t = spec.text.as_str();
        let remote = t.contains("git+")
            || t.starts_with("http://")
            || t.starts_with("https://")
            || t.starts_with("git@")
            || t.starts_with("git://")
            || t.starts_with("ssh://")
            || t.starts_with("github:")
            || t.starts_with("gitlab:")
            || t.starts_with("bitbucket:")
            || t.starts_with("gist:")
            || t.contains("@ git+")
            || t.contains("@http")
            || t.contains("@git+");
        if remote {
            self.ask(
                "run.fetched",
                "The package comes straight from an address, not from a registry. A person has to agree.",
            );
        }
    }

    fn remote_package(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let o = Options::split(
            args,
            &[
                "-p",
                "--package",
                "--from",
                "--with",
                "--python",
                "-c",
                "--call",
                "--spec",
                "--index-url",
                "-i",
                "--index",
                "--extra-index-url",
                "--registry",
            ],
            true,
        );
        for spec in o.values(&["-p", "--package", "--from", "--with", "--spec"]) {
            self.package_source(&spec);
        }
        if o.has(&["--index-url", "-i", "--extra-index-url", "--index", "--registry"]) && base != "npx"
            || o.has(&["--registry"])
        {
            self.ask("run.fetched", "The package comes from another registry than the usual one.");
        }
        for line in o.values(&["-c", "--call"]) {
            self.text(&line, &[], stdin);
        }
        let mut inner = o.operands.clone();
        if base == "pipx"
            && inner.first().is_some_and(|a| matches!(a.text.as_str(), "run" | "install" | "inject"))
        {
            inner.remove(0);
            let o = Options::split(&inner, &["--spec", "--python", "--index-url", "--pip-args"], true);
            for spec in o.values(&["--spec"]) {
                self.package_source(&spec);
            }
            inner = o.operands;
        }
        if let Some(first) = inner.first().cloned() {
            self.package_source(&first);
            if let Some(at) = first.text.rfind('@').filter(|at| *at > 0) {
                inner[0] = first.map(&first.text[..at]);
            }
        }
        self.run(&inner, stdin)
    }

    /// A recipe is run by a shell: the ones of the goals are read.
    fn make(&mut self, args: &[Val], stdin: &Val) -> Val {
        let o = Options::split(
            args,
            &["-f", "--file", "--makefile", "-C", "--directory", "-j", "-o", "-W", "-I", "-l", "--eval"],
            false,
        );
        for text in o.values(&["--eval"]) {
            self.makefile(&text.text, &[]);
        }
        for a in args {
            if let Some((name, value)) = a.text.split_once('=')
                && matches!(name, "SHELL" | "CC" | "CXX")
            {
                self.program(value, &Val::default());
            }
        }
        let goals: Vec<String> =
            o.operands.iter().filter(|a| !a.text.contains('=')).map(|a| a.text.clone()).collect();
        for file in o.values(&["-f", "--file", "--makefile"]) {
            if file.text == "-" || file.text == "/dev/stdin" {
                self.tainted(stdin);
                self.makefile(&stdin.text.clone(), &goals);
                continue;
            }
            let content = self.read_file(&file);
            self.tainted(&content);
            let text = if content.is_known() {
                content.text
            } else {
                self.meanings(&file).iter().find_map(|p| self.world.read(p)).unwrap_or_default()
            };
            self.makefile(&text, &goals);
        }
        Val::unknown(Taint::NONE)
    }

    fn tainted(&mut self, v: &Val) {
        if v.taint.any(Taint::NET) {
            self.deny("run.fetched", "The command runs what another machine answers.");
        }
    }

    fn makefile(&mut self, text: &str, goals: &[String]) {
        let mut current = String::new();
        let mut first = true;
        let mut wanted = true;
        for line in text.lines().take(2_000) {
            if let Some(recipe) = line.strip_prefix('\t') {
                if wanted {
                    let recipe = recipe
                        .trim_start_matches(['@', '-', '+', ' '])
                        .replace("$$", "$")
                        .replace("$(", "${_make_")
                        .replace(')', "}");
                    let before = self.found.clone();
                    self.subshell(|m| m.program(&recipe, &Val::default()));
                    if self.found.rule == "shell.syntax" {
                        self.found = before;
                    }
                }
            } else if let Some(shell) = line.split("$(shell ").nth(1) {
                let command = shell.trim_end_matches(')').to_owned();
                self.subshell(|m| m.program(&command, &Val::default()));
            } else if let Some((name, rest)) = line.split_once(':')
                && !rest.starts_with('=')
                && !name.starts_with([' ', '#', '.'])
            {
                current = name.trim().to_owned();
                wanted = if goals.is_empty() {
                    first
                } else {
                    goals.iter().any(|g| current.split_whitespace().any(|c| c == g))
                };
                first = false;
                if let Some((_, recipe)) = rest.split_once(';')
                    && wanted
                {
                    let recipe = recipe.trim_start_matches(['@', '-', '+', ' ']).replace("$$", "$");
                    self.subshell(|m| m.program(&recipe, &Val::default()));
                }
            }
        }
        let _ = current;
    }

    fn node_package(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let o = Options::split(
            args,
            &[
                "--registry",
                "-w",
                "--workspace",
                "--prefix",
                "-C",
                "--cwd",
                "--script-shell",
                "--filter",
                "--tag",
                "--otp",
                "-c",
            ],
            false,
        );
        let words: Vec<String> = o.operands.iter().map(|a| a.text.clone()).collect();
        let sub = words.first().map(String::as_str).unwrap_or_default();
        if o.has(&["--registry"]) {
            self.ask("run.fetched", "The packages come from another registry than the usual one.");
        }
        if let Some(shell) = o.values(&["--script-shell"]).first() {
            self.run(std::slice::from_ref(shell), stdin);
        }
        if base == "bun"
            && let Some(at) =
                args.iter().position(|a| matches!(a.text.as_str(), "-e" | "--eval" | "-p" | "--print"))
            && let Some(text) = args.get(at + 1).map(|a| a.text.clone())
        {
            self.code(code::Language::Node, &text, true);
        }
        let sub = if base == "yarn" && sub == "npm" {
            words.get(1).map(String::as_str).unwrap_or_default()
        } else {
            sub
        };
        match sub {
            "publish" | "deprecate" | "unpublish" | "owner" | "access" | "dist-tag" => self.ask(
                "publish.package",
                format!("{base} {sub} changes what others get. A person has to agree."),
            ),
            "token" | "adduser" | "login" | "profile" => self
                .ask("secret.read", format!("{base} {sub} deals with credentials. A person has to do it.")),
            "config" | "set" => {
                if words.get(1).is_some_and(|w| matches!(w.as_str(), "set" | "delete" | "edit"))
                    || sub == "set"
                {
                    self.ask(
                        "persist.config",
                        "The command changes the package manager's configuration for good.",
                    );
                } else if words.iter().any(|w| w.to_lowercase().contains("auth")) {
                    self.deny("secret.read", "The command prints a registry token.");
                } else if words.get(1).is_some_and(|w| w == "list")
                    && args.iter().any(|a| a.text == "--json" || a.text == "-l")
                {
                    self.ask("secret.read", "The listing can hold tokens.");
                }
            }
            "install" | "i" | "add" | "ci" | "update" | "link" => {
                for spec in &o.operands[1..] {
                    self.package_source(spec);
                }
            }
            "exec" | "x" | "dlx" => {
                for line in o.values(&["-c", "--call"]) {
                    self.text(&line, &[], stdin);
                }
                let rest = o.operands.get(1..).unwrap_or_default().to_vec();
                if let Some(first) = rest.first() {
                    self.package_source(first);
                }
                return self.run(&rest, stdin);
            }
            "run" | "run-script" | "test" | "t" | "start" | "stop" | "restart" => {
                let script = if matches!(sub, "run" | "run-script") {
                    words.get(1).cloned()
                } else {
                    Some(if sub == "t" { "test" } else { sub }.to_owned())
                };
                self.package_script(script.as_deref());
            }
            _ if matches!(base, "yarn" | "pnpm" | "bun") => {
                self.package_script(Some(sub));
                if base == "bun" && sub.ends_with(|c: char| c.is_alphanumeric()) && sub.contains('.') {
                    for path in self.meanings(&Val::known(sub)) {
                        if let Some(text) = self.world.read(&path) {
                            self.code(code::Language::Node, &text, false);
                        }
                    }
                }
            }
            _ => {}
        }
        Val::unknown(stdin.taint)
    }

    /// The script of that name in the package, with those before and after it.
    fn package_script(&mut self, name: Option<&str>) {
        let Some(name) = name.filter(|n| !n.is_empty()) else { return };
        let file = self.cwd().join("package.json");
        if self.world.kind(&file) != Kind::File {
            return;
        }
        let Some(package) =
            self.world.read(&file).and_then(|t| serde_json::from_str::<serde_json::Value>(&t).ok())
        else {
            return;
        };
        for key in [format!("pre{name}"), name.to_owned(), format!("post{name}")] {
            if let Some(line) = package.get("scripts").and_then(|s| s.get(&key)).and_then(|s| s.as_str()) {
                let line = line.to_owned();
                let lenient = std::mem::replace(&mut self.lenient, true);
                self.subshell(|m| m.program(&line, &Val::default()));
                self.lenient = lenient;
            }
        }
    }
}

fn glob_any(pattern: &str, name: &str) -> bool {
    glob_matches(&format!("x{pattern}"), &format!("x{name}"))
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
fn initialiser(text: &str) -> bool {
    text.contains(INITIALISER)
}

/// Stands in a value for the output of a known initialiser.
pub(super) const INITIALISER: &str = "\u{e000}jess-initialiser\u{e000}";
