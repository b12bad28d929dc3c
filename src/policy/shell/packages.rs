//! Package managers and build tools: what they fetch and which scripts they run.

use super::eval::Machine;
use super::language::Language;
use super::options::Options;
use super::registries;
use super::value::{Taint, Val};
use crate::policy::world::Kind;

impl Machine<'_> {
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

    pub(super) fn remote_package(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
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
        let options: &[&str] = match base {
            "npx" => &["--registry"],
            _ => &["--index-url", "-i", "--extra-index-url", "--index", "--registry"],
        };
        if o.has(options) && !registries::all_usual(&o.values(options)) {
            self.ask("run.fetched", "The package comes from another registry than the usual one.");
        }
        for line in o.values(&["-c", "--call"]) {
            let out = self.text(&line, &[], stdin);
            self.shown(&out);
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
            if o.values(&["--pip-args"]).iter().any(|v| v.text.contains("://"))
                || o.has(&["--index-url"]) && !registries::all_usual(&o.values(&["--index-url"]))
            {
                self.ask("run.fetched", "The package comes from another registry than the usual one.");
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
    pub(super) fn make(&mut self, args: &[Val], stdin: &Val) -> Val {
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
        let mut files = o.values(&["-f", "--file", "--makefile"]);
        for dir in o.values(&["-C", "--directory"]) {
            self.runs_unpacked(&dir);
        }
        self.runs_unpacked(&Val::known("."));
        // One that this command has written.
        if files.is_empty() {
            for name in ["GNUmakefile", "makefile", "Makefile"] {
                let name = Val::known(name);
                if self.meanings(&name).iter().any(|p| self.state.files.contains_key(p)) {
                    files.push(name);
                    break;
                }
            }
        }
        if files.is_empty() {
            let dirs = o.values(&["-C", "--directory"]);
            let dir = dirs.last().cloned().unwrap_or_else(|| Val::known("."));
            self.within(&dir, |m| {
                m.own_recipes(&["GNUmakefile", "makefile", "Makefile"], &goals);
            });
        }
        for file in files {
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

    pub(super) fn tainted(&mut self, v: &Val) {
        if v.taint.any(Taint::NET) {
            self.deny("run.fetched", "The command runs what another machine answers.");
        }
    }

    /// The recipes of the goals in a file of the directory, judged as a script of the project is.
    pub(super) fn own_recipes(&mut self, names: &[&str], goals: &[String]) {
        for name in names {
            let file = Val::known(*name);
            let found = self
                .meanings(&file)
                .iter()
                .find_map(|p| (self.world.kind(p) == Kind::File).then(|| self.world.read(p)).flatten());
            let Some(text) = found else { continue };
            let lenient = std::mem::replace(&mut self.lenient, true);
            let before = self.found.clone();
            // Other tools indent by blanks.
            let text = text.lines().map(|l| match l.strip_prefix("    ") {
                Some(recipe) => format!("\t{}\n", recipe.trim_start()),
                None => format!("{l}\n"),
            });
            self.makefile(&text.collect::<String>(), goals);
            if matches!(self.found.rule, "shell.syntax" | "shell.bound" | "run.unknown") {
                self.found = before;
            }
            self.lenient = lenient;
            return;
        }
    }

    pub(super) fn makefile(&mut self, text: &str, goals: &[String]) {
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

    pub(super) fn node_package(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
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
        // After `--` stands what the script gets.
        let own = args.iter().position(|a| a.text == "--").unwrap_or(args.len());
        let elsewhere = args.iter().enumerate().take(own).any(|(i, a)| {
            a.text.starts_with("--")
                && registries::named(&a.text, args.get(i + 1).map(|v| v.text.as_str()), false)
                    .is_some_and(|named| !registries::usual(&named.value))
        });
        if elsewhere {
            self.ask("run.fetched", "The packages come from another registry than the usual one.");
        }
        if sub == "pkg"
            && words.get(1).is_some_and(|w| w == "set")
            && words.iter().any(|w| w.starts_with("scripts"))
        {
            self.ask(
                "persist.script",
                "The command changes what the package's scripts run. Edit package.json instead.",
            );
        }
        if let Some(shell) = o.values(&["--script-shell"]).first() {
            self.ask("run.unknown", "The scripts would run in another program than the shell.");
            self.run(std::slice::from_ref(shell), stdin);
        }
        for line in o.values(&["-c", "--call"]) {
            self.text(&line, &[], stdin);
        }
        if base == "bun"
            && let Some(at) =
                args.iter().position(|a| matches!(a.text.as_str(), "-e" | "--eval" | "-p" | "--print"))
            && let Some(text) = args.get(at + 1).map(|a| a.text.clone())
        {
            self.code(Language::Node, &text, true);
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
            "explore" => {
                if let Some(at) = args.iter().position(|a| a.text == "--") {
                    return self.run(&args[at + 1..], stdin);
                }
            }
            "env" => return Val::unknown(Taint::ENV),
            "install" | "i" | "add" | "ci" | "update" | "link" => {
                if o.operands.len() == 1 && !args.iter().any(|a| a.text == "--ignore-scripts") {
                    for name in ["install", "prepare"] {
                        self.package_script(Some(name));
                    }
                }
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
                if script.as_deref() == Some("env") {
                    return Val::unknown(Taint::ENV);
                }
                self.package_script(script.as_deref());
            }
            _ if matches!(base, "yarn" | "pnpm" | "bun") => {
                self.package_script(Some(sub));
                if base == "bun" && sub.ends_with(|c: char| c.is_alphanumeric()) && sub.contains('.') {
                    for path in self.meanings(&Val::known(sub)) {
                        if let Some(text) = self.world.read(&path) {
                            self.code(Language::Node, &text, false);
                        }
                    }
                }
            }
            _ => {}
        }
        Val::unknown(stdin.taint)
    }

    /// The script of that name in the package, with those before and after it.
    pub(super) fn package_script(&mut self, name: Option<&str>) {
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
