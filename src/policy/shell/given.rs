//! What a command is given: positional parameters, slices of them and of arrays, variables for one program.

use super::eval::Machine;
use super::limits;
use super::value::{Taint, Val};
use brush_parser::word::{Parameter, ParameterExpr, SpecialParameter};

impl Machine<'_> {
    /// `shift N`. In a branch that may not be taken the old parameters stay possible, see [`Machine::positional`].
    pub(super) fn shift(&mut self, args: &[Val]) {
        let by = match args.first() {
            None => 1,
            Some(n) => n.text.trim().parse::<usize>().unwrap_or(0),
        };
        if self.conditional > 0 || args.first().is_some_and(|n| !n.is_known()) {
            self.state.shifted = true;
        } else if by <= self.state.args.len() {
            self.state.args.drain(..by);
        }
    }

    /// `$n`: what stands there, and after a `shift` that may have happened also the secrets further on.
    pub(super) fn positional(&mut self, n: usize) -> Option<Val> {
        let Some(at) = n.checked_sub(1) else { return Some(self.state.zero.clone()) };
        if !self.state.shifted {
            return self.state.args.get(at).cloned();
        }
        let all = self.state.args.clone();
        let mut possible: Vec<Vec<Val>> = vec![all.get(at).cloned().into_iter().collect()];
        for later in all.iter().skip(n) {
            if possible.len() < limits::ALTERNATIVES
                && self.meanings(later).iter().any(|p| self.is_secret(p).is_some())
            {
                possible.push(vec![later.clone()]);
            }
        }
        self.choose(&possible).first().cloned()
    }

    /// The items of `$@`, `$*`, `${a[@]}`, `${a[*]}` and of their slices.
    pub(super) fn all_items(&mut self, e: &ParameterExpr) -> Option<Vec<Val>> {
        match e {
            ParameterExpr::Parameter { parameter, indirect: false } => self.list_of(parameter),
            ParameterExpr::Substring { parameter, indirect: false, offset, length } => {
                let mut items = self.list_of(parameter)?;
                if matches!(parameter, Parameter::Special(_)) {
                    items.insert(0, self.state.zero.clone());
                }
                let offset = self.single(offset.value.trim());
                let length = length.as_ref().map(|l| self.single(l.value.trim()));
                Some(slice(items, &offset, length.as_ref()))
            }
            _ => None,
        }
    }

    fn list_of(&mut self, parameter: &Parameter) -> Option<Vec<Val>> {
        match parameter {
            Parameter::Special(SpecialParameter::AllPositionalParameters { .. }) => {
                Some(self.state.args.clone())
            }
            Parameter::NamedWithAllIndices { name, .. } => self.array(name),
            _ => None,
        }
    }

    /// Items in one text: `"$*"` puts the first character of `IFS` between them.
    pub(super) fn joined_items(&self, items: &[Val]) -> Val {
        let between: String = self.ifs().chars().take(1).collect();
        let mut out = Val::default();
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                out.push(&Val::known(between.clone()));
            }
            out.push(item);
        }
        out
    }

    /// Runs `f` with variables that only one command gets.
    pub(super) fn with_variables<T>(&mut self, given: &[(String, Val)], f: impl FnOnce(&mut Self) -> T) -> T {
        let old: Vec<(String, Option<Vec<Vec<Val>>>)> =
            given.iter().map(|(name, _)| (name.clone(), self.state.vars.get(name).cloned())).collect();
        for (name, value) in given {
            self.state.vars.insert(name.clone(), vec![vec![value.clone()]]);
        }
        let out = f(self);
        for (name, old) in old {
            match old {
                Some(old) => self.state.vars.insert(name, old),
                None => self.state.vars.remove(&name),
            };
        }
        out
    }
}

/// The part of a list that `:offset:length` names; all of it, and their origin, where the numbers are not known.
fn slice(items: Vec<Val>, offset: &Val, length: Option<&Val>) -> Vec<Val> {
    let number = |v: &Val| v.text.trim().parse::<i64>().ok();
    let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let Some(offset) = number(offset) else { return items };
    let start = if offset < 0 { len.saturating_add(offset).max(0) } else { offset.min(len) };
    let end = match length.map(number) {
        None => len,
        Some(Some(n)) if n >= 0 => start.saturating_add(n).min(len),
        Some(Some(n)) => len.saturating_add(n).max(start),
        Some(None) => len,
    };
    let (start, end) = (usize::try_from(start).unwrap_or(0), usize::try_from(end).unwrap_or(0));
    items.get(start..end).map(<[Val]>::to_vec).unwrap_or_default()
}

/// The arguments that a shell was given, the last one first, as `BASH_ARGV` has them.
pub(super) fn reversed(args: &[Val]) -> Vec<Val> {
    let mut all: Vec<Val> = args.iter().rev().cloned().collect();
    if all.is_empty() {
        all.push(Val::unknown(Taint::NONE));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_those_of_bash() {
        let items = || ["a", "b", "c", "d"].map(Val::known).to_vec();
        let text = |v: Vec<Val>| v.iter().map(|v| v.text.clone()).collect::<Vec<_>>().join(" ");
        let at = |o: &str, l: Option<&str>| text(slice(items(), &Val::known(o), l.map(Val::known).as_ref()));
        assert_eq!(at("1", None), "b c d");
        assert_eq!(at("-1", None), "d");
        assert_eq!(at("1", Some("2")), "b c");
        assert_eq!(at("0", Some("-1")), "a b c");
        assert_eq!(at("9", None), "");
        assert_eq!(at("x", None), "a b c d");
    }
}
