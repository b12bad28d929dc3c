//! Scripts and interpreters: files that run, code on the command line, standard input that is code.

use super::eval::Machine;
use super::language;
use super::language::Language;
use super::limits;
use super::options::Options;
use super::run::{FILTERS, SHELLS};
use super::value::{HOLE, Taint, Val};
use crate::policy::paths;
use crate::policy::world::Kind;
use std::path::Path;

impl Machine<'_> {
    /// The file behind a path with a slash, when it is a script that can be read. `None`: an ordinary program.
    pub(super) fn script(&mut self, name: &Val, args: &[Val], stdin: &Val) -> Option<Val> {
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
        self.runs_unpacked(name);
        None
    }

    pub(super) fn script_text(&mut self, path: &Path, content: &Val, args: &[Val], stdin: &Val) -> Val {
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
        let language = interpreter.as_deref().and_then(language::language);
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
        self.runs_unpacked(file);
        Val::unknown(stdin.taint)
    }

    pub(super) fn load_script(&mut self, file: &Val) {
        self.run_script(file, &[], &Val::default());
    }

    /// Python, perl, node and their like.
    pub(super) fn interpreter(&mut self, language: Language, args: &[Val], stdin: &Val) -> Val {
        if language == Language::Awk
            && !args.iter().any(|a| ["-e", "--source"].iter().any(|f| a.text.starts_with(f)))
        {
            return self.awk(args, stdin, false);
        }
        let mut i = 0;
        let mut ran = false;
        let mut inline = Val::default();
        let mut modules = String::new();
        while let Some(arg) = args.get(i) {
            let text = arg.text.as_str();
            if let Some(attached) = language.code_in(text) {
                let code =
                    if attached.is_empty() { args.get(i + 1).cloned() } else { Some(arg.map(attached)) };
                if let Some(code) = code {
                    self.tainted_code(&code);
                    self.code(language, &format!("{modules}{}", code.text), true);
                    inline.push(&code);
                    inline.push(&Val::known("\n"));
                }
                ran = true;
                i += if attached.is_empty() { 2 } else { 1 };
                continue;
            }
            if text == "-m" && language == Language::Python {
                let rest = args.get(i + 2..).unwrap_or_default().to_vec();
                return self.python_module(args.get(i + 1), &rest, stdin);
            }
            if text.starts_with('-') && text.len() > 1 {
                if let Some(module) = text.strip_prefix("-M").filter(|_| language == Language::Perl) {
                    modules.push_str(&format!("use {module};\n"));
                }
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
        if !ran && matches!(language, Language::Other | Language::Php) {
            self.named_within(&rest);
        }
        if ran {
            self.code_in_data(&inline.text, &rest, stdin);
        }
        let in_place = matches!(language, Language::Perl | Language::Ruby)
            && args
                .iter()
                .take(i)
                .any(|a| a.text.starts_with("-i") || a.text.starts_with("-pi") || a.text.starts_with("-ni"));
        if in_place {
            for file in &rest {
                self.write_file(file, false);
            }
        }
        if language == Language::Awk {
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
                    ) && matches!(language, Language::Node) =>
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
        let of_code = if inline.taint.any(Taint::ENV) { Taint::ENV } else { Taint::NONE };
        Val::unknown(stdin.taint.without(Taint::NET).with(of_code).with(if rest.is_empty() {
            Taint::NONE
        } else {
            Taint::FILE
        }))
    }

    /// A program that runs what it is given: its arguments, its input, a variable.
    fn code_in_data(&mut self, code: &str, args: &[Val], stdin: &Val) {
        let has = |words: &[&str]| words.iter().any(|w| code.contains(w));
        if !language::executes(code) {
            return;
        }
        let before = self.found.clone();
        if has(&["argv", "ARGV", "arg[", "$@", "$1"]) && !args.is_empty() {
            let quoted: Vec<Val> = if args.len() == 1 {
                args.to_vec()
            } else {
                args.iter().map(|a| a.map(super::run::quoted(&a.text))).collect()
            };
            self.text(&super::carry::joined(&quoted), &[], &Val::default());
        }
        if has(&[
            "stdin",
            "STDIN",
            "input(",
            "readline",
            "gets",
            "<>",
            "$_",
            "readFileSync(0",
            "fileinput",
            "/dev/fd/0",
        ]) && !stdin.text.is_empty()
        {
            self.text(stdin, &[], &Val::default());
        }
        if has(&["environ", "getenv", "process.env", "ENV"]) {
            let given: Vec<Val> = self
                .state
                .vars
                .iter()
                .filter(|(name, _)| !name.is_empty() && code.contains(name.as_str()))
                .flat_map(|(_, values)| values.iter().flatten().cloned())
                .take(limits::ALTERNATIVES)
                .collect();
            for value in given {
                self.text(&value, &[], &Val::default());
            }
        }
        // Data in another language than the shell's is no fault by itself.
        if self.found.rule == "shell.syntax" && before.rule != "shell.syntax" {
            self.found = before;
            self.ask("run.unknown", "The command runs code that it is given as data. Write the code out.");
        }
    }

    pub(super) fn tainted_code(&mut self, code: &Val) {
        if code.taint.any(Taint::NET) {
            self.deny(
                "run.fetched",
                "The command runs code that another machine answers. Save it, read it, and ask the person.",
            );
        } else if code.taint.any(Taint::CODED) || (!code.is_known() && hollow(&code.text)) {
            self.ask("run.unknown", "The command runs code that is only known when it runs. Write it out.");
        }
    }

    pub(super) fn awk(&mut self, args: &[Val], stdin: &Val, ran: bool) -> Val {
        // `-f prog`, `-v a=b`, `-F x` have been passed over as options; their values stand among the operands.
        let o = Options::split(args, &["-f", "-v", "-F", "-i", "-E"], false);
        // A library that gawk takes in, and shows where it is none.
        for file in o.values(&["-i"]) {
            self.read_file(&file);
        }
        for file in o.values(&["-f", "-E"]) {
            let program = if matches!(file.text.as_str(), "-" | "/dev/stdin") {
                stdin.clone()
            } else {
                self.read_file(&file)
            };
            self.tainted_code(&program);
            if program.is_known() {
                self.code(Language::Awk, &program.text, true);
            }
        }
        for value in o.values(&["-v"]) {
            if let Some((_, value)) = value.text.split_once('=') {
                let value = Val::known(value);
                self.read_file(&value);
                if o.operands.first().is_some_and(|p| ["system(", "|"].iter().any(|w| p.text.contains(w))) {
                    self.text(&value, &[], &Val::default());
                }
            }
        }
        let mut operands = o.operands.iter();
        if !ran
            && !o.has(&["-f", "-E"])
            && let Some(program) = operands.next()
        {
            let text = program.text.clone();
            self.tainted_code(program);
            let runs = ["system(", "getline", "| \"", "|\""].iter().any(|w| text.contains(w));
            if stdin.taint.any(Taint::NET) && runs {
                self.deny("run.fetched", "The command runs what another machine answers.");
            } else if text.contains("system($")
                || text.contains("system( $")
                || text.contains("$0|")
                || text.contains("$0 |")
            {
                self.text(stdin, &[], &Val::default());
            }
            self.code(Language::Awk, &text, true);
        }
        let mut taint = stdin.taint;
        for file in operands.cloned().collect::<Vec<_>>() {
            taint = taint.with(self.read_file(&file).taint);
        }
        Val::unknown(taint)
    }

    pub(super) fn python_module(&mut self, module: Option<&Val>, args: &[Val], stdin: &Val) -> Val {
        let Some(module) = module else { return Val::default() };
        match module.text.as_str() {
            "code" | "idlelib" => return self.interpreter(Language::Python, args, stdin),
            "dotenv" => self.ask("secret.env", "The command prints the values of an .env file."),
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
                        self.code(Language::Python, &a.text, true);
                    }
                } else {
                    return self.interpreter(Language::Python, &rest, stdin);
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
        if args.len() > limits::SUFFIXES {
            self.bound("a wrapper with too many words");
        }
        for (i, arg) in args.iter().enumerate().take(limits::SUFFIXES) {
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
                || language::language(base).is_some()
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
}

/// Whether the text is mostly unknown: its first word is.
pub(super) fn hollow(text: &str) -> bool {
    text.trim_start().starts_with(HOLE) || text.lines().any(|l| l.trim_start().starts_with(HOLE))
}
