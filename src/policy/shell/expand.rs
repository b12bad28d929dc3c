//! Parameters and what an expansion makes of them.

use super::eval::Machine;
use super::value::{HOLE, Taint, Val, glob_matches};
use super::word::{ansi_c, join};
use brush_parser::word::{
    Parameter, ParameterExpr, ParameterTestType, ParameterTransformOp, SpecialParameter, SubstringMatchKind,
};

impl Machine<'_> {
    pub(super) fn array(&mut self, name: &str) -> Option<Vec<Val>> {
        if name == "BASH_ARGV" && !self.state.vars.contains_key(name) {
            return Some(super::given::reversed(&self.state.args));
        }
        let alternatives = self.state.vars.get(name)?.clone();
        Some(self.choose(&alternatives))
    }

    /// The value of a plain parameter; `None` when it is known to be unset.
    pub(super) fn lookup(&mut self, p: &Parameter) -> Option<Val> {
        match p {
            Parameter::Positional(n) => self.positional(*n as usize),
            Parameter::Special(s) => match s {
                SpecialParameter::AllPositionalParameters { concatenate: true } => {
                    Some(self.joined_items(&self.state.args))
                }
                SpecialParameter::AllPositionalParameters { .. } => Some(join(&self.state.args)),
                SpecialParameter::ShellName => Some(self.state.zero.clone()),
                SpecialParameter::PositionalParameterCount => {
                    Some(Val::known(self.state.args.len().to_string()))
                }
                _ => Some(Val::unknown(Taint::NONE)),
            },
            Parameter::Named(name) => self.variable(name),
            Parameter::NamedWithIndex { name, index } => {
                let items = self.array(name)?;
                let index = self.single(index);
                match index.text.trim().parse::<i64>() {
                    Ok(i) if i >= 0 => items.get(i as usize).cloned(),
                    Ok(i) => {
                        items.len().checked_sub(i.unsigned_abs() as usize).and_then(|i| items.get(i)).cloned()
                    }
                    Err(_) => Some(join(&items)),
                }
            }
            Parameter::NamedWithAllIndices { name, concatenate: true } => {
                self.array(name).map(|items| self.joined_items(&items))
            }
            Parameter::NamedWithAllIndices { name, .. } => self.array(name).map(|items| join(&items)),
        }
    }

    pub(super) fn variable(&mut self, name: &str) -> Option<Val> {
        if let Some(alternatives) = self.state.vars.get(name).cloned() {
            return self.choose(&alternatives).first().cloned();
        }
        match name {
            "HOME" => return Some(Val::known(self.scope.home.to_string_lossy())),
            "PWD" => return Some(Val::known(self.cwd().to_string_lossy())),
            "OLDPWD" => {
                let old = self.state.oldpwd.clone().unwrap_or_else(|| self.scope.cwd.clone());
                return Some(Val::known(old.to_string_lossy()));
            }
            // The client, or what runs this command for it.
            "PPID" | "CLAUDE_PID" => return Some(Val::known("$PPID")),
            "RANDOM" | "SECONDS" | "LINENO" | "BASHPID" | "EPOCHSECONDS" | "UID" | "EUID" | "SRANDOM" => {
                return Some(Val::unknown(Taint::NONE));
            }
            "0" | "BASH_SOURCE" => return Some(self.state.zero.clone()),
            "IFS" => return Some(Val::known(" \t\n")),
            _ => {}
        }
        let set = self.scope.env.get(name).cloned();
        if secret_variable(name) {
            self.used(name);
            return Some(Val::unknown(Taint::ENV));
        }
        match set {
            Some(v) if !v.contains('\0') => Some(Val::known(v)),
            Some(_) => Some(Val::unknown(Taint::NONE)),
            None => None,
        }
    }

    pub(super) fn parameter(&mut self, e: &ParameterExpr) -> Val {
        use ParameterExpr as E;
        match e {
            E::Parameter { parameter, indirect } => {
                self.named(parameter, *indirect).unwrap_or_else(|| Val::unknown(Taint::NONE))
            }
            E::UseDefaultValues { parameter, indirect, test_type, default_value } => {
                let val = self.named(parameter, *indirect);
                self.or_default(val, test_type, default_value.as_deref())
            }
            E::AssignDefaultValues { parameter, indirect, test_type, default_value } => {
                let val = self.named(parameter, *indirect);
                let val = self.or_default(val, test_type, default_value.as_deref());
                if let Parameter::Named(name) = parameter {
                    self.assign(name, vec![val.clone()]);
                }
                val
            }
            E::UseAlternativeValue { parameter, indirect, alternative_value, .. } => {
                let set = self.named(parameter, *indirect);
                let alternative = self.single(alternative_value.as_deref().unwrap_or_default());
                // Whether it is set is only known for variables of the environment, so the alternative is what counts.
                if set.is_some_and(|s| s.text.is_empty()) { Val::default() } else { alternative }
            }
            E::IndicateErrorIfNullOrUnset { parameter, indirect, .. } => {
                self.named(parameter, *indirect).unwrap_or_else(|| Val::unknown(Taint::NONE))
            }
            E::ParameterLength { .. } => Val::unknown(Taint::NONE),
            E::RemoveSmallestSuffixPattern { parameter, indirect, pattern } => {
                self.trimmed(parameter, *indirect, pattern.as_deref(), false, false)
            }
            E::RemoveLargestSuffixPattern { parameter, indirect, pattern } => {
                self.trimmed(parameter, *indirect, pattern.as_deref(), false, true)
            }
            E::RemoveSmallestPrefixPattern { parameter, indirect, pattern } => {
                self.trimmed(parameter, *indirect, pattern.as_deref(), true, false)
            }
            E::RemoveLargestPrefixPattern { parameter, indirect, pattern } => {
                self.trimmed(parameter, *indirect, pattern.as_deref(), true, true)
            }
            E::Substring { parameter, indirect, offset, length } => {
                if let Some(items) = self.all_items(e) {
                    return join(&items);
                }
                let val = self.known_or_hole(parameter, *indirect);
                let offset = self.single(offset.value.trim());
                let length = length.as_ref().map(|l| self.single(l.value.trim()));
                substring(&val, &offset, length.as_ref())
            }
            E::Transform { parameter, indirect, op } => {
                let val = self.known_or_hole(parameter, *indirect);
                match op {
                    ParameterTransformOp::ToLowerCase => val.map(val.text.to_lowercase()),
                    ParameterTransformOp::ToUpperCase => val.map(val.text.to_uppercase()),
                    ParameterTransformOp::ExpandEscapeSequences => val.map(ansi_c(&val.text)),
                    ParameterTransformOp::CapitalizeInitial => val.map(first(&val.text, true)),
                    ParameterTransformOp::PromptExpand => {
                        if val.text.contains("$(") || val.text.contains('`') {
                            self.single(&val.text)
                        } else {
                            val
                        }
                    }
                    _ => val,
                }
            }
            E::UppercaseFirstChar { parameter, indirect, .. } => {
                let v = self.known_or_hole(parameter, *indirect);
                v.map(first(&v.text, true))
            }
            E::LowercaseFirstChar { parameter, indirect, .. } => {
                let v = self.known_or_hole(parameter, *indirect);
                v.map(first(&v.text, false))
            }
            E::UppercasePattern { parameter, indirect, .. } => {
                let v = self.known_or_hole(parameter, *indirect);
                v.map(v.text.to_uppercase())
            }
            E::LowercasePattern { parameter, indirect, .. } => {
                let v = self.known_or_hole(parameter, *indirect);
                v.map(v.text.to_lowercase())
            }
            E::ReplaceSubstring { parameter, indirect, pattern, replacement, match_kind } => {
                let val = self.known_or_hole(parameter, *indirect);
                let pattern = self.single(pattern);
                let to = self.single(replacement.as_deref().unwrap_or_default());
                replaced(&val, &pattern, &to, match_kind)
            }
            E::VariableNames { .. } | E::MemberKeys { .. } => Val::unknown(Taint::NONE),
        }
    }

    pub(super) fn known_or_hole(&mut self, p: &Parameter, indirect: bool) -> Val {
        self.named(p, indirect).unwrap_or_else(|| Val::unknown(Taint::NONE))
    }

    pub(super) fn named(&mut self, p: &Parameter, indirect: bool) -> Option<Val> {
        let val = self.lookup(p)?;
        // `${!#}`: the parameter of that number.
        if indirect && let Ok(n) = val.text.parse::<u32>() {
            return self.lookup(&Parameter::Positional(n));
        }
        if !indirect {
            return Some(val);
        }
        if val.is_known() {
            self.variable(&val.text)
        } else {
            self.used("?");
            Some(Val::unknown(Taint::ENV))
        }
    }

    /// Notes that a credential of the environment is used.
    pub(super) fn used(&mut self, name: &str) {
        // Beyond the bound nobody knows which ones.
        let name = if self.credentials.len() < 8 { name } else { "?" };
        if !self.credentials.iter().any(|c| c == name) {
            self.credentials.push(name.to_owned());
        }
    }

    pub(super) fn or_default(
        &mut self,
        val: Option<Val>,
        test: &ParameterTestType,
        default: Option<&str>,
    ) -> Val {
        let empty =
            val.as_ref().is_none_or(|v| v.text.is_empty() && matches!(test, ParameterTestType::UnsetOrNull));
        let default = self.single(default.unwrap_or_default());
        match val {
            Some(v) if !empty => v,
            _ => default,
        }
    }

    pub(super) fn trimmed(
        &mut self,
        p: &Parameter,
        indirect: bool,
        pattern: Option<&str>,
        front: bool,
        most: bool,
    ) -> Val {
        let val = self.known_or_hole(p, indirect);
        let pattern = self.single(pattern.unwrap_or_default());
        if val.text.len() > 1024 || !pattern.is_known() {
            return Val::unknown(val.taint);
        }
        let cuts: Vec<usize> = val.text.char_indices().map(|(i, _)| i).chain([val.text.len()]).collect();
        let fits = |cut: &&usize| {
            let part = if front { &val.text[..**cut] } else { &val.text[**cut..] };
            !part.contains(HOLE) && matches_anywhere(&pattern.text, part)
        };
        let cut = if front == most { cuts.iter().rev().find(fits) } else { cuts.iter().find(fits) };
        match cut {
            Some(&cut) if front => val.map(&val.text[cut..]),
            Some(&cut) => val.map(&val.text[..cut]),
            None => val,
        }
    }
}

/// Prefix and suffix patterns match a leading dot too.
pub(super) fn matches_anywhere(pattern: &str, text: &str) -> bool {
    glob_matches(&format!("x{pattern}"), &format!("x{text}"))
}

pub(super) fn substring(val: &Val, offset: &Val, length: Option<&Val>) -> Val {
    let Ok(offset) = offset.text.trim().parse::<i64>() else { return Val::unknown(val.taint) };
    let chars: Vec<char> = val.text.chars().collect();
    if chars.contains(&HOLE) {
        return Val::unknown(val.taint);
    }
    let len = chars.len() as i64;
    let start = if offset < 0 { (len + offset).max(0) } else { offset.min(len) };
    let end = match length {
        None => len,
        Some(l) => match l.text.trim().parse::<i64>() {
            Ok(n) if n >= 0 => (start + n).min(len),
            Ok(n) => (len + n).max(start),
            Err(_) => return Val::unknown(val.taint),
        },
    };
    val.map(chars.get(start as usize..end as usize).unwrap_or_default().iter().collect::<String>())
}

pub(super) fn replaced(val: &Val, pattern: &Val, to: &Val, kind: &SubstringMatchKind) -> Val {
    if !val.is_known()
        || !pattern.is_known()
        || pattern.text.is_empty()
        || pattern.text.contains(['*', '?', '['])
    {
        return Val::unknown(val.taint.with(to.taint));
    }
    let (text, from) = (&val.text, pattern.text.replace('\\', ""));
    let out = match kind {
        SubstringMatchKind::Anywhere => text.replace(&from, &to.text),
        SubstringMatchKind::FirstOccurrence => text.replacen(&from, &to.text, 1),
        SubstringMatchKind::Prefix => {
            text.strip_prefix(&from).map_or_else(|| text.clone(), |r| format!("{}{r}", to.text))
        }
        SubstringMatchKind::Suffix => {
            text.strip_suffix(&from).map_or_else(|| text.clone(), |r| format!("{r}{}", to.text))
        }
    };
    let mut result = Val { text: String::new(), taint: val.taint.with(to.taint) };
    result.push(&Val::known(out));
    result
}

pub(super) fn first(text: &str, upper: bool) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(c) if upper => c.to_uppercase().chain(chars).collect(),
        Some(c) => c.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Whether a variable's name says that it holds a credential.
pub fn secret_variable(name: &str) -> bool {
    let upper = name.to_uppercase();
    if matches!(upper.as_str(), "SSH_AUTH_SOCK" | "PWD" | "OLDPWD" | "XAUTHORITY" | "GPG_TTY") {
        return false;
    }
    if matches!(
        upper.as_str(),
        "DATABASE_URL"
            | "DATABASE_DSN"
            | "REDIS_URL"
            | "MONGO_URL"
            | "MONGODB_URI"
            | "SENTRY_DSN"
            | "AMQP_URL"
            | "PGPASSFILE"
            | "KUBECONFIG_DATA"
    ) {
        return true;
    }
    let parts: Vec<&str> = upper.split('_').collect();
    let names = parts.last().is_some_and(|l| {
        matches!(
            *l,
            "NAME"
                | "FILE"
                | "PATH"
                | "DIR"
                | "LENGTH"
                | "LEN"
                | "COUNT"
                | "TYPE"
                | "TTL"
                | "LIMIT"
                | "MIN"
                | "MAX"
        )
    });
    !names
        && (parts.iter().any(|p| {
            matches!(
                *p,
                "KEY"
                    | "KEYS"
                    | "APIKEY"
                    | "TOKEN"
                    | "TOKENS"
                    | "SECRET"
                    | "SECRETS"
                    | "PASSWORD"
                    | "PASSWD"
                    | "PASS"
                    | "PASSPHRASE"
                    | "PWD"
                    | "CREDENTIAL"
                    | "CREDENTIALS"
                    | "CREDS"
                    | "PAT"
                    | "COOKIE"
                    | "AUTH"
                    | "PRIVATE"
                    | "JWT"
            )
        }) || ["APIKEY", "PASSWORD", "SECRETKEY", "ACCESSKEY", "AUTHTOKEN"]
            .iter()
            .any(|w| upper.ends_with(w)))
}
