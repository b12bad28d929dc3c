//! The walk over a program: state, control flow, redirections. Every simple command ends in [`Machine::run`].
//!
//! Evaluation is abstract and errs towards danger: all branches are taken, loops run a few rounds, a variable that is
//! set in a branch keeps its other values, `cd` to a directory that may not exist leaves both working directories.

use super::limits;
use super::parse::{self, Refused};
use super::value::{HOLE, Taint, Val};
use crate::policy::world::Kind;
use crate::policy::{Decision, Scope, Verdict, World, paths, web};
use brush_parser::ast;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What a running shell would remember.
#[derive(Clone, Default)]
pub(super) struct State {
    /// Alternatives of each variable; an array has several items.
    pub vars: HashMap<String, Vec<Vec<Val>>>,
    pub functions: HashMap<String, Rc<ast::FunctionBody>>,
    pub aliases: HashMap<String, String>,
    /// `$1` and so on.
    pub args: Vec<Val>,
    /// `$0`.
    pub zero: Val,
    /// Working directories that are possible, the likeliest first.
    pub cwds: Vec<PathBuf>,
    pub oldpwd: Option<PathBuf>,
    pub dirs: Vec<PathBuf>,
    /// Files written by this program.
    pub files: HashMap<PathBuf, Val>,
    /// Links made by this program.
    pub links: HashMap<PathBuf, PathBuf>,
    /// Descriptors opened to the network.
    pub sockets: Vec<i32>,
}

/// The evaluator.
pub(super) struct Machine<'a> {
    pub scope: &'a Scope,
    pub world: &'a dyn World,
    pub state: State,
    pub found: Decision,
    /// Whether a script of the project is being read: its own `.env` is its business.
    pub lenient: bool,
    /// Whether a command talks to another machine.
    pub reaches: bool,
    steps: usize,
    parsed: usize,
    pub depth: usize,
    /// Branches around the current command.
    conditional: usize,
    /// Which alternatives of the variables are looked at, in mixed radix.
    choice: usize,
    radix: usize,
    next_fd: usize,
    /// Functions that are being called.
    calls: Vec<String>,
    /// Calls of a function from within itself.
    again: usize,
}

impl<'a> Machine<'a> {
    pub fn new(scope: &'a Scope, world: &'a dyn World) -> Machine<'a> {
        Machine {
            scope,
            world,
            state: State { cwds: vec![scope.cwd.clone()], zero: Val::known("bash"), ..State::default() },
            found: Decision::SILENT,
            lenient: false,
            reaches: false,
            steps: 0,
            parsed: 0,
            depth: 0,
            conditional: 0,
            choice: 0,
            radix: 1,
            next_fd: 63,
            calls: Vec::new(),
            again: 0,
        }
    }

    pub fn deny(&mut self, rule: &'static str, reason: impl Into<String>) {
        self.find(Decision::deny(rule, reason));
    }

    pub fn ask(&mut self, rule: &'static str, reason: impl Into<String>) {
        self.find(Decision::ask(rule, reason));
    }

    pub fn find(&mut self, one: Decision) {
        self.found = std::mem::take(&mut self.found).or(one);
    }

    pub fn bound(&mut self, what: &str) {
        self.deny(
            "shell.bound",
            format!("The command is beyond what can be judged: {what}. Split it into smaller calls."),
        );
    }

    pub fn refused(&mut self, refused: Refused) {
        match refused {
            Refused::Bound => self.bound("too long or nested too deeply"),
            Refused::Syntax => self.deny("shell.syntax", "The command is not valid bash, so what would run cannot be judged. Check quotes, brackets and here-documents."),
        }
    }

    fn done(&self) -> bool {
        self.found.verdict == Verdict::Deny
    }

    pub fn cwd(&self) -> PathBuf {
        self.state.cwds.first().cloned().unwrap_or_else(|| self.scope.cwd.clone())
    }

    /// One alternative of a value, by the current choice.
    pub fn choose(&mut self, alternatives: &[Vec<Val>]) -> Vec<Val> {
        let n = alternatives.len().max(1);
        let at = if n > 1 {
            let at = (self.choice / self.radix) % n;
            self.radix = self.radix.saturating_mul(n);
            at
        } else {
            0
        };
        alternatives.get(at).cloned().unwrap_or_default()
    }

    pub fn assign(&mut self, name: &str, value: Vec<Val>) {
        let slot = self.state.vars.entry(name.to_owned()).or_default();
        if self.conditional == 0 {
            slot.clear();
        } else if slot.is_empty() {
            slot.push(vec![Val::unknown(Taint::NONE)]);
        }
        if !slot.contains(&value) {
            if slot.len() >= limits::ALTERNATIVES {
                slot.truncate(limits::ALTERNATIVES - 1);
                slot.push(vec![Val::unknown(Taint::CODED)]);
            } else {
                slot.push(value);
            }
        }
    }

    /// Runs `f` as something that may happen or not.
    fn maybe<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.conditional += 1;
        let out = f(self);
        self.conditional -= 1;
        out
    }

    /// Runs `f` in a subshell: files stay, everything else is taken back.
    pub fn subshell<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let saved = self.state.clone();
        let conditional = std::mem::take(&mut self.conditional);
        let out = f(self);
        let files = std::mem::take(&mut self.state.files);
        let links = std::mem::take(&mut self.state.links);
        self.state = saved;
        self.state.files = files;
        self.state.links = links;
        self.conditional = conditional;
        out
    }

    /// Parses and evaluates a program; its output.
    pub fn program(&mut self, text: &str, stdin: &Val) -> Val {
        if self.done() {
            return Val::unknown(Taint::NONE);
        }
        self.parsed += text.len();
        if self.depth >= limits::DEPTH || self.parsed > limits::PARSED {
            self.bound("programs inside programs");
            return Val::unknown(Taint::NONE);
        }
        if text.contains(HOLE) && text.trim_matches(|c: char| c == HOLE || c.is_whitespace()).is_empty() {
            return Val::unknown(Taint::NONE);
        }
        // A hole inside a program is an argument nobody knows; the shape around it can still be judged.
        let shown =
            if text.contains(HOLE) { text.replace(HOLE, "${_jess_unknown}") } else { text.to_owned() };
        let parsed = parse::program(&shown);
        let program = match parsed {
            Ok(program) => program,
            Err(refused) => {
                self.refused(refused);
                return Val::unknown(Taint::NONE);
            }
        };
        self.depth += 1;
        let mut out = Val::default();
        for list in &program.complete_commands {
            let val = self.list(list, stdin);
            out.push(&val);
        }
        self.depth -= 1;
        out
    }

    fn list(&mut self, list: &ast::CompoundList, stdin: &Val) -> Val {
        let mut out = Val::default();
        for item in &list.0 {
            let and_or = &item.0;
            let val = self.pipeline(&and_or.first, stdin);
            out.push(&val);
            for more in &and_or.additional {
                let (ast::AndOr::And(p) | ast::AndOr::Or(p)) = more;
                let val = match more {
                    ast::AndOr::And(_) => self.pipeline(p, stdin),
                    ast::AndOr::Or(_) => self.maybe(|m| m.pipeline(p, stdin)),
                };
                out.push(&val);
            }
            if self.done() {
                break;
            }
        }
        out
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline, stdin: &Val) -> Val {
        let piped = pipeline.seq.len() > 1;
        self.conditional += usize::from(piped);
        let mut input = stdin.clone();
        for command in &pipeline.seq {
            input = self.command(command, &input);
        }
        self.conditional -= usize::from(piped);
        input
    }

    fn command(&mut self, command: &ast::Command, stdin: &Val) -> Val {
        if self.done() {
            return Val::unknown(Taint::NONE);
        }
        self.steps += 1;
        if self.steps > limits::STEPS {
            self.bound("more commands than are looked at");
            return Val::unknown(Taint::NONE);
        }
        match command {
            ast::Command::Simple(simple) => self.simple(simple, stdin),
            ast::Command::Compound(compound, redirects) => {
                let mut io = Io { stdin: stdin.clone(), ..Io::default() };
                for r in redirects.iter().flat_map(|r| &r.0) {
                    self.redirect(r, &mut io);
                }
                let out = self.compound(compound, &io.stdin);
                self.deliver(out, &io)
            }
            ast::Command::Function(f) => {
                self.state.functions.insert(f.fname.value.clone(), Rc::new(f.body.clone()));
                Val::default()
            }
            ast::Command::ExtendedTest(test, redirects) => {
                let mut io = Io::default();
                for r in redirects.iter().flat_map(|r| &r.0) {
                    self.redirect(r, &mut io);
                }
                self.test(&test.expr, 0);
                Val::default()
            }
        }
    }

    /// Words of a test are expanded for what runs in them.
    fn test(&mut self, e: &ast::ExtendedTestExpr, depth: usize) {
        use ast::ExtendedTestExpr as T;
        if depth > 64 {
            return self.bound("a test nested too deeply");
        }
        match e {
            T::And(a, b) | T::Or(a, b) => {
                self.test(a, depth + 1);
                self.test(b, depth + 1);
            }
            T::Not(a) | T::Parenthesized(a) => self.test(a, depth + 1),
            T::UnaryTest(_, w) => {
                self.single(&w.value);
            }
            T::BinaryTest(_, a, b) => {
                self.single(&a.value);
                if b.value.contains('$') || b.value.contains('`') {
                    self.single(&b.value);
                }
            }
        }
    }

    fn compound(&mut self, compound: &ast::CompoundCommand, stdin: &Val) -> Val {
        use ast::CompoundCommand as C;
        match compound {
            C::BraceGroup(group) => self.list(&group.list, stdin),
            C::Subshell(sub) => self.subshell(|m| m.list(&sub.list, stdin)),
            C::IfClause(c) => {
                let mut out = self.list(&c.condition, stdin);
                let val = self.maybe(|m| m.list(&c.then, stdin));
                out.push(&val);
                for e in c.elses.iter().flatten() {
                    if let Some(condition) = &e.condition {
                        let val = self.maybe(|m| m.list(condition, stdin));
                        out.push(&val);
                    }
                    let val = self.maybe(|m| m.list(&e.body, stdin));
                    out.push(&val);
                }
                out
            }
            C::ForClause(c) => self.for_loop(c, stdin),
            C::WhileClause(c) | C::UntilClause(c) => {
                // A loop that reads gets one line each round.
                let lines: Vec<Val> = if stdin.is_known() && !stdin.text.is_empty() {
                    stdin.text.lines().take(limits::ROUNDS).map(|l| stdin.map(l)).collect()
                } else {
                    vec![stdin.clone()]
                };
                let mut out = Val::default();
                for line in lines {
                    let val = self.maybe(|m| {
                        let mut out = m.list(&c.0, &line);
                        let body = m.list(&c.1.list, &line);
                        out.push(&body);
                        out
                    });
                    out.push(&val);
                    if self.done() {
                        break;
                    }
                }
                out
            }
            C::CaseClause(c) => {
                self.single(&c.value.value);
                let mut out = Val::default();
                for case in &c.cases {
                    for p in &case.patterns {
                        if p.value.contains(['$', '`']) {
                            self.single(&p.value);
                        }
                    }
                    if let Some(list) = &case.cmd {
                        let val = self.maybe(|m| m.list(list, stdin));
                        out.push(&val);
                    }
                }
                out
            }
            C::Arithmetic(a) => {
                self.arithmetic(&a.expr.value);
                Val::default()
            }
            C::ArithmeticForClause(c) => {
                for e in [&c.initializer, &c.condition, &c.updater].into_iter().flatten() {
                    self.arithmetic(&e.value);
                }
                self.maybe(|m| m.list(&c.body.list, stdin))
            }
            C::Coprocess(c) => self.subshell(|m| m.command(&c.body, stdin)),
        }
    }

    fn for_loop(&mut self, c: &ast::ForClauseCommand, stdin: &Val) -> Val {
        let items: Vec<Val> = match &c.values {
            Some(words) => words.iter().flat_map(|w| self.words(&w.value)).collect(),
            None => self.state.args.clone(),
        };
        let mut out = Val::default();
        let rest = items.len().saturating_sub(limits::ROUNDS);
        for (i, item) in items.into_iter().enumerate() {
            if i >= limits::ROUNDS || self.done() {
                break;
            }
            self.conditional += usize::from(i > 0);
            self.state.vars.insert(c.variable_name.clone(), vec![vec![item]]);
            let val = self.list(&c.body.list, stdin);
            out.push(&val);
            self.conditional -= usize::from(i > 0);
        }
        if rest > 0 {
            self.state.vars.insert(c.variable_name.clone(), vec![vec![Val::unknown(Taint::NONE)]]);
            let val = self.list(&c.body.list, stdin);
            out.push(&val);
        }
        out
    }

    /// Calls a function with its arguments.
    pub fn call(&mut self, name: &str, body: &Rc<ast::FunctionBody>, args: Vec<Val>, stdin: &Val) -> Val {
        let round = self.calls.iter().filter(|c| *c == name).count();
        if round > 0 {
            self.again += 1;
            if self.again > 1 && (name == ":" || self.conditional > 0 && round > 1) {
                self.ask("destroy.processes", "The function starts itself again and again.");
            }
        }
        if self.depth >= limits::DEPTH || round > 3 {
            // A function that calls itself has been looked at.
            return Val::unknown(Taint::NONE);
        }
        let body = Rc::clone(body);
        let saved = std::mem::replace(&mut self.state.args, args);
        self.depth += 1;
        self.calls.push(name.to_owned());
        let mut io = Io { stdin: stdin.clone(), ..Io::default() };
        for r in body.1.iter().flat_map(|r| &r.0) {
            self.redirect(r, &mut io);
        }
        let out = self.compound(&body.0, &io.stdin);
        self.depth -= 1;
        self.calls.pop();
        self.state.args = saved;
        self.deliver(out, &io)
    }

    fn simple(&mut self, c: &ast::SimpleCommand, stdin: &Val) -> Val {
        let mut last = Val::default();
        let mut choice = 0;
        loop {
            (self.choice, self.radix) = (choice, 1);
            last.push(&self.simple_once(c, stdin));
            let choices = self.radix;
            choice += 1;
            if choice >= choices || self.done() {
                break;
            }
            if choice >= limits::CHOICES {
                self.ask(
                    "shell.choices",
                    "The command depends on more values than can be told apart. Write it out.",
                );
                break;
            }
        }
        (self.choice, self.radix) = (0, 1);
        last
    }

    fn simple_once(&mut self, c: &ast::SimpleCommand, stdin: &Val) -> Val {
        let mut io = Io { stdin: stdin.clone(), ..Io::default() };
        let mut assignments: Vec<(String, Vec<Val>, bool)> = Vec::new();
        for item in c.prefix.iter().flat_map(|p| &p.0) {
            match item {
                ast::CommandPrefixOrSuffixItem::AssignmentWord(a, _) => assignments.push(self.assignment(a)),
                ast::CommandPrefixOrSuffixItem::IoRedirect(r) => self.redirect(r, &mut io),
                _ => {}
            }
        }
        let mut argv: Vec<Val> = Vec::new();
        if let Some(word) = &c.word_or_name {
            argv.extend(self.words(&word.value));
        }
        for item in c.suffix.iter().flat_map(|s| &s.0) {
            match item {
                ast::CommandPrefixOrSuffixItem::Word(w) => {
                    let more = self.words(&w.value);
                    argv.extend(more);
                }
                ast::CommandPrefixOrSuffixItem::AssignmentWord(a, w) => {
                    let (name, value, append) = self.assignment(a);
                    let text = match value.as_slice() {
                        [one] => one.map(format!("{name}={}", one.text)),
                        _ => Val::known(w.value.clone()),
                    };
                    let declares = argv.first().is_some_and(|a| {
                        matches!(
                            a.text.as_str(),
                            "export" | "declare" | "typeset" | "local" | "readonly" | "alias"
                        )
                    });
                    if declares && argv[0].text != "alias" {
                        self.set(&name, value, append);
                    }
                    argv.push(text);
                }
                ast::CommandPrefixOrSuffixItem::IoRedirect(r) => self.redirect(r, &mut io),
                ast::CommandPrefixOrSuffixItem::ProcessSubstitution(kind, sub) => {
                    let val = self.process(kind, sub);
                    argv.push(val);
                }
            }
        }
        if argv.is_empty() {
            for (name, value, append) in assignments {
                self.set(&name, value, append);
            }
            let nothing = Val::default();
            // `$(<file)` and `> file`.
            let out = if c.word_or_name.is_none() { io.stdin.clone() } else { nothing };
            return if io.redirected_in { out } else { self.deliver(Val::default(), &io) };
        }
        for (name, value, _) in &assignments {
            self.environment(name, value.first().unwrap_or(&Val::default()), &argv);
        }
        let shadowed: Vec<(String, Option<Vec<Vec<Val>>>)> =
            assignments.iter().map(|(n, ..)| (n.clone(), self.state.vars.get(n).cloned())).collect();
        let special = matches!(
            argv.first().map(|a| a.text.as_str()),
            Some("eval" | "." | "source" | "export" | "exec")
        );
        for (name, value, _) in assignments {
            self.state.vars.insert(name, vec![value]);
        }
        let (choice, radix) = (self.choice, self.radix);
        let out = self.run(&argv, &io.stdin);
        (self.choice, self.radix) = (choice, radix);
        if !special {
            for (name, old) in shadowed {
                match old {
                    Some(old) => self.state.vars.insert(name, old),
                    None => self.state.vars.remove(&name),
                };
            }
        }
        self.deliver(out, &io)
    }

    fn assignment(&mut self, a: &ast::Assignment) -> (String, Vec<Val>, bool) {
        let name = match &a.name {
            ast::AssignmentName::VariableName(n) => n.clone(),
            ast::AssignmentName::ArrayElementName(n, i) => {
                self.single(i);
                n.clone()
            }
        };
        let element = matches!(a.name, ast::AssignmentName::ArrayElementName(..));
        let value = match &a.value {
            ast::AssignmentValue::Scalar(w) => vec![self.single(&w.value)],
            ast::AssignmentValue::Array(items) => {
                items.iter().flat_map(|(_, w)| self.words(&w.value)).collect()
            }
        };
        (name, value, a.append || element)
    }

    fn set(&mut self, name: &str, value: Vec<Val>, append: bool) {
        let value = if append {
            let mut old = self.state.vars.get(name).and_then(|v| v.first()).cloned().unwrap_or_default();
            match (old.len(), value.as_slice()) {
                (1, [more]) => {
                    old[0].push(more);
                    // `a+=x` may also be an array's new item.
                    old
                }
                _ => {
                    old.extend(value);
                    old.truncate(limits::FIELDS);
                    old
                }
            }
        } else {
            value
        };
        self.assign(name, value);
    }

    /// `<(…)` and `>(…)`: a file that holds the output.
    fn process(&mut self, kind: &ast::ProcessSubstitutionKind, sub: &ast::SubshellCommand) -> Val {
        let input = match kind {
            ast::ProcessSubstitutionKind::Read => Val::default(),
            ast::ProcessSubstitutionKind::Write => Val::unknown(Taint::FILE),
        };
        let out = self.subshell(|m| m.list(&sub.list, &input));
        let path = format!("/dev/fd/{}", self.next_fd);
        self.next_fd += 1;
        let taint = out.taint;
        self.state.files.insert(PathBuf::from(&path), out);
        Val { text: path, taint }
    }

    fn redirect(&mut self, r: &ast::IoRedirect, io: &mut Io) {
        use ast::{IoFileRedirectKind as K, IoFileRedirectTarget as T};
        match r {
            ast::IoRedirect::HereDocument(fd, doc) => {
                let mut val = self.heredoc(&doc.doc, doc.requires_expansion);
                if doc.remove_tabs {
                    val.text =
                        val.text.lines().map(|l| l.trim_start_matches('\t')).collect::<Vec<_>>().join("\n")
                            + "\n";
                }
                if fd.is_none_or(|f| f == 0) {
                    io.stdin = val;
                }
            }
            ast::IoRedirect::HereString(_, w) => {
                let mut val = self.single(&w.value);
                val.push(&Val::known("\n"));
                io.stdin = val;
            }
            ast::IoRedirect::OutputAndError(w, _) => {
                let target = self.single(&w.value);
                self.output(&target, io);
            }
            ast::IoRedirect::File(fd, kind, target) => match (kind, target) {
                (K::Read | K::ReadAndWrite, T::Filename(w)) => {
                    for file in self.words(&w.value) {
                        let is_net = self.socket(&file, &Val::default());
                        if is_net {
                            self.state.sockets.push(fd.unwrap_or(0));
                        }
                        let val = if is_net { Val::unknown(Taint::NET) } else { self.read_file(&file) };
                        if fd.is_none_or(|f| f == 0) {
                            io.stdin = val;
                            io.redirected_in = true;
                        }
                    }
                }
                (K::Read | K::ReadAndWrite, T::ProcessSubstitution(kind, sub)) => {
                    let val = self.process(kind, sub);
                    io.stdin = self.read_file(&val);
                    io.redirected_in = true;
                }
                (K::Write | K::Append | K::Clobber, T::Filename(w)) => {
                    for file in self.words(&w.value) {
                        if fd.is_none_or(|f| f == 1) {
                            io.appends = matches!(kind, K::Append);
                            self.output(&file, io);
                        } else if !self.socket(&file, &Val::default()) {
                            self.write_file(&file, !matches!(kind, K::Append));
                        }
                    }
                }
                (K::Write | K::Append | K::Clobber, T::ProcessSubstitution(_, sub)) => {
                    io.substitution = Some(sub.clone());
                }
                (K::DuplicateOutput, T::Duplicate(w)) => {
                    let target = self.single(&w.value);
                    if target.text.parse::<i32>().is_err()
                        && target.text != "-"
                        && !target.text.ends_with('-')
                    {
                        self.output(&target, io);
                    }
                }
                (_, T::Duplicate(w)) => {
                    self.single(&w.value);
                }
                (_, T::ProcessSubstitution(kind, sub)) => {
                    self.process(kind, sub);
                }
                _ => {}
            },
        }
    }

    fn output(&mut self, target: &Val, io: &mut Io) {
        if !target.text.starts_with("/dev/tcp/") && !target.text.starts_with("/dev/udp/") {
            self.write_file(target, !io.appends);
        }
        io.targets.push(target.clone());
    }

    /// Sends a command's output where its redirections say.
    fn deliver(&mut self, out: Val, io: &Io) -> Val {
        if let Some(sub) = &io.substitution {
            self.subshell(|m| m.list(&sub.list, &out));
            return Val::default();
        }
        let Some(target) = io.targets.last() else { return out };
        for target in &io.targets {
            self.socket(target, &out);
        }
        if matches!(
            target.text.as_str(),
            "/dev/stdout" | "/dev/stderr" | "/dev/tty" | "/dev/fd/1" | "/dev/fd/2"
        ) {
            return out;
        }
        for path in self.meanings(target) {
            let mut all = if io.appends {
                self.state.files.get(&path).cloned().unwrap_or_default()
            } else {
                Val::default()
            };
            all.push(&out);
            if self.state.files.len() < 256 {
                self.state.files.insert(path, all);
            }
        }
        Val::default()
    }

    /// A redirection to `/dev/tcp/…`: whether it is one.
    fn socket(&mut self, target: &Val, data: &Val) -> bool {
        let Some(rest) =
            target.text.strip_prefix("/dev/tcp/").or_else(|| target.text.strip_prefix("/dev/udp/"))
        else {
            return false;
        };
        let (host, port) = rest.split_once('/').unwrap_or((rest, ""));
        let own = matches!(host, "localhost" | "127.0.0.1" | "::1");
        self.reaches |= !own;
        if data.taint.any(Taint::LOCAL) && !own {
            self.deny(
                "exfil.socket",
                "The command sends data of this machine to another one over a raw connection.",
            );
        } else if !own {
            self.ask(
                "net.socket",
                format!("The command opens a raw connection to {host}. A person has to agree."),
            );
        } else {
            self.find(web::fetch(&format!("http://{host}:{port}/"), web::Fetcher::Command));
        }
        true
    }

    /// Every place that a path argument can mean, links made by this program included.
    pub fn meanings(&mut self, file: &Val) -> Vec<PathBuf> {
        if file.text.contains(HOLE) || file.text.is_empty() || file.text.len() > 64 * 1024 {
            return Vec::new();
        }
        let mut out = Vec::new();
        let cwds = self.state.cwds.clone();
        let scope = Scope { cwd: self.cwd(), ..Scope::default() };
        let scope = Scope { home: self.scope.home.clone(), project: self.scope.project.clone(), ..scope };
        for cwd in &cwds {
            // `~` has been expanded by the shell already.
            let text =
                if file.text.starts_with('~') { format!("./{}", file.text) } else { file.text.clone() };
            for path in paths::meanings(&text, cwd, &scope, self.world) {
                let mut path = path;
                for _ in 0..4 {
                    let led = self.state.links.iter().find_map(|(link, to)| {
                        path.strip_prefix(link)
                            .ok()
                            .map(|rest| if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) })
                    });
                    match led {
                        Some(to) if to != path => path = to,
                        _ => break,
                    }
                }
                if !out.contains(&path) {
                    out.push(path);
                }
            }
        }
        out
    }

    /// Reads a file: denied when it is a secret, else what it holds.
    pub fn read_file(&mut self, file: &Val) -> Val {
        // The output of a command that gives several lines where one path was wanted.
        if file.text.contains('\n') && file.text.len() < 4096 {
            for line in file.text.lines().take(16).filter(|l| !l.is_empty() && l.len() < 512) {
                let line = file.map(line);
                self.read_file(&line);
            }
        }
        let mut content = Val::unknown(Taint::FILE.with(file.taint));
        for path in self.meanings(file) {
            if let Some(known) = self.state.files.get(&path) {
                content = known.clone();
                continue;
            }
            if self.is_secret(&path).is_some() {
                self.deny_secret(&path);
                content.taint = content.taint.with(Taint::SECRET);
            }
            if path == Path::new("/dev/null")
                || path == Path::new("/dev/stdin")
                || path == Path::new("/dev/zero")
            {
                content = Val::default();
            }
        }
        // A path that is not known in full can still have a secret's form, or end in a secret's name.
        if !file.is_known() && file.text.starts_with('/') {
            let path = PathBuf::from(file.text.replace(HOLE, "1"));
            if self.is_secret(&path).is_some() {
                self.deny_secret(&path);
            }
        }
        if !file.is_known()
            && let Some((_, known)) = file.text.rsplit_once(HOLE)
            && let Some(tail) = known.strip_prefix('/').or(Some(known).filter(|k| k.starts_with(".env")))
            && !tail.is_empty()
        {
            let path = Path::new("/unknown").join(tail.trim_start_matches('/'));
            if self.is_secret(&path).is_some() {
                self.deny_secret(&path);
            }
        }
        content
    }

    /// Whether reading `path` reads a secret.
    pub fn is_secret(&self, path: &Path) -> Option<&'static str> {
        let what = paths::secret(path, self.scope)?;
        if what == "a secret file of the project" && self.world.kind(path) == Kind::Dir {
            return None;
        }
        Some(what)
    }

    pub fn deny_secret(&mut self, path: &Path) {
        if let Some(what) = self.is_secret(path) {
            if self.lenient && what == "a secret file of the project" {
                return;
            }
            self.find(crate::policy::tools::secret_denied(path, what));
        }
    }

    /// Writes a file: denied when it is protected.
    pub fn write_file(&mut self, file: &Val, truncates: bool) {
        for path in self.meanings(file) {
            if let Some(what) = paths::protected(&path, self.scope) {
                self.find(crate::policy::tools::protected_denied(&path, what));
            } else if truncates
                && !paths::in_project(&path, self.scope)
                && !paths::is_scratch(&path, self.scope)
                && !path.starts_with("/dev")
                && path.starts_with(&self.scope.home)
                && self.world.kind(&path) == Kind::File
                && !self.state.files.contains_key(&path)
            {
                self.ask(
                    "destroy.overwrite",
                    format!("{} lies outside the project and would be overwritten.", path.display()),
                );
            }
        }
        if !file.is_known()
            && let Some((_, tail)) = file.text.rsplit_once(HOLE)
            && let Some(tail) = tail.strip_prefix('/')
            && !tail.is_empty()
        {
            let path = self.scope.home.join(tail);
            if let Some(what) = paths::protected(&path, self.scope) {
                self.find(crate::policy::tools::protected_denied(&path, what));
            }
        }
    }
}

/// Redirections of one command.
#[derive(Default)]
struct Io {
    stdin: Val,
    redirected_in: bool,
    targets: Vec<Val>,
    appends: bool,
    substitution: Option<ast::SubshellCommand>,
}
