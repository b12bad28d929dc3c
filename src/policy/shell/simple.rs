//! Simple commands: assignments, functions, words, redirections, then the program.

use super::io::Io;
use super::limits;
use super::value::{Taint, Val};
use brush_parser::ast;
use std::rc::Rc;

use super::eval::Machine;
impl Machine<'_> {
    /// Calls a function with its arguments.
    pub(super) fn call(
        &mut self,
        name: &str,
        body: &Rc<ast::FunctionBody>,
        args: Vec<Val>,
        stdin: &Val,
    ) -> Val {
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

    pub(super) fn simple(&mut self, c: &ast::SimpleCommand, stdin: &Val) -> Val {
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

    pub(super) fn simple_once(&mut self, c: &ast::SimpleCommand, stdin: &Val) -> Val {
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
            self.environment(name, value.first().unwrap_or(&Val::default()));
            if name.starts_with("PS") {
                self.latent_value(name, value);
            }
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

    pub(super) fn assignment(&mut self, a: &ast::Assignment) -> (String, Vec<Val>, bool) {
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

    pub(super) fn set(&mut self, name: &str, value: Vec<Val>, append: bool) {
        self.latent_value(name, &value);
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
}
