//! The walk over a program: state, control flow, redirections. Every simple command ends in [`Machine::run`].
//!
//! Evaluation is abstract and errs towards danger: all branches are taken, loops run a few rounds, a variable that is
//! set in a branch keeps its other values, `cd` to a directory that may not exist leaves both working directories.

use super::io::Io;
use super::limits;
use super::parse::{self, Refused};
use super::value::{HOLE, Taint, Val};
use crate::policy::{Decision, Kind, Scope, Verdict, World, paths};
use brush_parser::ast;
use std::collections::HashMap;
use std::path::PathBuf;
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
    /// Whether `*` also stands for names with a dot in front.
    pub dotglob: bool,
    /// Whether something fetched was unpacked.
    pub unpacked: bool,
    /// Whether a `shift` that may not have happened was met.
    pub shifted: bool,
}

/// The evaluator.
pub(super) struct Machine<'a> {
    pub scope: &'a Scope,
    pub world: &'a dyn World,
    pub state: State,
    pub found: Decision,
    /// Whether a script of the project is being read: its own `.env` is its business.
    pub lenient: bool,
    /// Whether the next command's name stands for a program only.
    pub only_programs: bool,
    /// Whether a command talks to another machine.
    pub reaches: bool,
    /// Where it uses an account of the operator's.
    pub account: Option<&'static str>,
    /// Whether it prints what others wrote elsewhere.
    pub told: bool,
    /// Whether it reads what was brought in from another machine.
    pub met_arrived: bool,
    /// Whether a program that was run printed what another machine answered.
    pub(super) answered: bool,
    /// Whether the command that is being run was given something that was brought in.
    pub(super) given: bool,
    /// What it brings in itself, apart from the files whose content is followed.
    pub brought: Vec<PathBuf>,
    /// Variables with credentials that were used so far, without repetition; `?` for one that is not known.
    pub credentials: Vec<String>,
    /// Whether a variable was set that leads a container client to another service.
    pub containers_elsewhere: bool,
    pub(super) steps: usize,
    pub(super) parsed: usize,
    pub depth: usize,
    /// Branches around the current command.
    pub(super) conditional: usize,
    /// Which alternatives of the variables are looked at, in mixed radix.
    pub(super) choice: usize,
    pub(super) radix: usize,
    pub(super) next_fd: usize,
    /// Functions that are being called.
    pub(super) calls: Vec<String>,
    /// Calls of a function from within itself.
    pub(super) again: usize,
}

impl<'a> Machine<'a> {
    pub fn new(scope: &'a Scope, world: &'a dyn World) -> Machine<'a> {
        Machine {
            scope,
            world,
            state: State { cwds: vec![scope.cwd.clone()], zero: Val::known("bash"), ..State::default() },
            found: Decision::SILENT,
            lenient: false,
            only_programs: false,
            reaches: false,
            account: None,
            told: false,
            met_arrived: false,
            answered: false,
            given: false,
            brought: Vec::new(),
            credentials: Vec::new(),
            containers_elsewhere: false,
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
        let one = self.scope.custom.tuned(one);
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

    pub(super) fn done(&self) -> bool {
        self.found.verdict == Verdict::Deny
    }

    pub fn cwd(&self) -> PathBuf {
        self.state.cwds.first().cloned().unwrap_or_else(|| self.scope.cwd.clone())
    }

    /// The values that the rounds of a loop are evaluated for, see [`limits::ROUNDS`].
    pub(super) fn rounds(&mut self, mut items: Vec<Val>) -> Vec<Val> {
        if items.len() <= limits::ROUNDS {
            return items;
        }
        let rest = items.split_off(limits::ROUNDS);
        for item in rest {
            if !self.is_ordinary(&item) {
                items.push(item);
            }
            if items.len() > limits::ROUNDS_MAX {
                self.bound("a loop over too many values");
                break;
            }
        }
        items
    }

    /// A number, or the name of a file of the project that nothing is said about.
    fn is_ordinary(&mut self, item: &Val) -> bool {
        if item.text.bytes().all(|b| b.is_ascii_digit()) {
            return true;
        }
        let places = self.meanings(item);
        !places.is_empty()
            && places.iter().all(|p| {
                self.world.kind(p) == Kind::File
                    && paths::in_project(p, self.scope)
                    && paths::secret(p, self.scope).is_none()
                    && paths::protected(p, self.scope).is_none()
            })
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
    pub(super) fn maybe<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.conditional += 1;
        let out = f(self);
        self.conditional -= 1;
        out
    }

    /// Runs `f` in a subshell: files stay, everything else is taken back.
    pub fn subshell<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        // Files stay, so they are not copied: many subshells with many files would be quadratic.
        let files = std::mem::take(&mut self.state.files);
        let links = std::mem::take(&mut self.state.links);
        let saved = self.state.clone();
        self.state.files = files;
        self.state.links = links;
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

    pub(super) fn list(&mut self, list: &ast::CompoundList, stdin: &Val) -> Val {
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

    pub(super) fn pipeline(&mut self, pipeline: &ast::Pipeline, stdin: &Val) -> Val {
        let piped = pipeline.seq.len() > 1;
        self.conditional += usize::from(piped);
        let mut input = stdin.clone();
        for command in &pipeline.seq {
            input = self.command(command, &input);
        }
        self.conditional -= usize::from(piped);
        input
    }

    pub(super) fn command(&mut self, command: &ast::Command, stdin: &Val) -> Val {
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
    pub(super) fn test(&mut self, e: &ast::ExtendedTestExpr, depth: usize) {
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
                let name = self.single(&w.value);
                self.latent(&name.text);
            }
            T::BinaryTest(_, a, b) => {
                let left = self.single(&a.value);
                self.latent(&left.text);
                if b.value.contains('$') || b.value.contains('`') {
                    let right = self.single(&b.value);
                    self.latent(&right.text);
                }
            }
        }
    }

    pub(super) fn compound(&mut self, compound: &ast::CompoundCommand, stdin: &Val) -> Val {
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
                let lines_known = stdin.is_known() && !stdin.text.is_empty();
                let lines: Vec<Val> = if lines_known {
                    let lines = stdin.text.lines().map(|l| stdin.map(l)).collect();
                    self.rounds(lines)
                } else {
                    vec![stdin.clone()]
                };
                let mut out = Val::default();
                for line in lines {
                    let val = self.maybe(|m| {
                        // Where the body runs, the condition has run before it.
                        let around =
                            if lines_known { std::mem::take(&mut m.conditional) } else { m.conditional };
                        let mut out = m.list(&c.0, &line);
                        m.conditional = around;
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

    pub(super) fn for_loop(&mut self, c: &ast::ForClauseCommand, stdin: &Val) -> Val {
        let items: Vec<Val> = match &c.values {
            Some(words) => words.iter().flat_map(|w| self.words(&w.value)).collect(),
            None => self.state.args.clone(),
        };
        let mut out = Val::default();
        let all = items.len();
        let items = self.rounds(items);
        let rest = all - items.len();
        for (i, item) in items.into_iter().enumerate() {
            if self.done() {
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
}
