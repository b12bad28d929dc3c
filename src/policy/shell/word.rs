//! Words → values: quotes, braces, tildes, parameters, substitutions, splitting and globs, as bash does them.

use super::eval::Machine;
use super::limits;
use super::parse;
use super::value::{Field, HOLE, Taint, Val, glob_matches};
use crate::policy::world::Kind;
use brush_parser::ast::Word;
use brush_parser::word::{
    BraceExpressionMember, BraceExpressionOrText, Parameter, ParameterExpr, ParameterTestType,
    ParameterTransformOp, SpecialParameter, SubstringMatchKind, TildeExpr, WordPiece, WordPieceWithSource,
    parse_brace_expansions,
};
use std::path::{Path, PathBuf};

/// Fields under construction.
#[derive(Default)]
struct Builder {
    done: Vec<Field>,
    now: Field,
    begun: bool,
}

impl Builder {
    fn quoted(&mut self, val: &Val) {
        self.begun = true;
        self.now.quoted = true;
        for c in val.text.chars() {
            if matches!(c, '*' | '?' | '[' | '\\') {
                self.now.pattern.push('\\');
            }
            self.now.pattern.push(c);
        }
        self.now.val.push(val);
    }

    fn literal(&mut self, text: &str) {
        self.begun = true;
        self.now.glob |= text.contains(['*', '?', '['])
            || text.contains("@(")
            || text.contains("+(")
            || text.contains("!(");
        self.now.pattern.push_str(text);
        self.now.val.push(&Val::known(text));
    }

    fn end(&mut self) {
        if self.begun && self.done.len() < limits::FIELDS {
            self.done.push(std::mem::take(&mut self.now));
        }
        self.now = Field::default();
        self.begun = false;
    }

    /// The value of an unquoted expansion: split at `separators`.
    fn split(&mut self, val: &Val, separators: &str) {
        let mut rest = val.text.as_str();
        while !rest.is_empty() {
            let at = rest.find(|c| separators.contains(c)).unwrap_or(rest.len());
            let (piece, more) = rest.split_at(at);
            if !piece.is_empty() {
                self.literal(piece);
                self.now.val.taint = self.now.val.taint.with(val.taint);
            }
            rest = more.trim_start_matches(|c| separators.contains(c));
            if rest.len() < more.len() {
                self.end();
            }
        }
        self.now.val.taint = self.now.val.taint.with(val.taint);
    }
}

impl Machine<'_> {
    /// The fields of a word, globs expanded.
    pub(super) fn words(&mut self, word: &str) -> Vec<Val> {
        let mut out = Vec::new();
        for text in self.braces(word) {
            for field in self.fields(&text) {
                if field.glob {
                    out.extend(self.glob(&field));
                } else {
                    out.push(field.val);
                }
                if out.len() > limits::FIELDS {
                    self.bound("a word that becomes too many");
                    return out;
                }
            }
        }
        out
    }

    /// A word where bash neither splits nor globs: an assignment, a redirection, `case`.
    pub(super) fn single(&mut self, word: &str) -> Val {
        match parse::pieces(word) {
            Ok(pieces) => self.joined(&pieces),
            Err(refused) => {
                self.refused(refused);
                Val::unknown(Taint::NONE)
            }
        }
    }

    /// The body of a here-document.
    pub(super) fn heredoc(&mut self, doc: &Word, expand: bool) -> Val {
        if !expand {
            return Val::known(doc.value.clone());
        }
        match parse::heredoc_pieces(&doc.value) {
            Ok(pieces) => self.joined(&pieces),
            Err(refused) => {
                self.refused(refused);
                Val::unknown(Taint::NONE)
            }
        }
    }

    fn joined(&mut self, pieces: &[WordPieceWithSource]) -> Val {
        let mut out = Val::default();
        for piece in pieces {
            let val = self.piece(&piece.piece);
            out.push(&val);
        }
        out
    }

    fn braces(&mut self, word: &str) -> Vec<String> {
        if !word.contains('{') || !(word.contains(',') || word.contains("..")) || word.len() > 4096 {
            return vec![word.to_owned()];
        }
        let mut out = match parse_brace_expansions(word, &parse::options()) {
            Ok(Some(parts)) => brace_texts(&parts, 0),
            _ => vec![word.to_owned()],
        };
        if out.len() >= limits::FIELDS {
            self.bound("a brace expansion that becomes too many words");
            out.truncate(limits::FIELDS);
        }
        out
    }

    fn fields(&mut self, word: &str) -> Vec<Field> {
        let pieces = match parse::pieces(word) {
            Ok(pieces) => pieces,
            Err(refused) => {
                self.refused(refused);
                return vec![Field { val: Val::unknown(Taint::NONE), ..Field::default() }];
            }
        };
        let mut b = Builder::default();
        for piece in &pieces {
            self.build(&piece.piece, &mut b);
        }
        b.end();
        b.done
    }

    fn build(&mut self, piece: &WordPiece, b: &mut Builder) {
        match piece {
            WordPiece::Text(t) => b.literal(t),
            WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                b.begun = true;
                b.now.quoted = true;
                for p in inner {
                    if let WordPiece::ParameterExpansion(e) = &p.piece
                        && let Some(items) = self.items(e)
                    {
                        let last = items.len().saturating_sub(1);
                        for (i, item) in items.iter().enumerate() {
                            b.quoted(item);
                            if i < last {
                                b.end();
                            }
                        }
                        continue;
                    }
                    let val = self.piece(&p.piece);
                    b.quoted(&val);
                }
            }
            WordPiece::ParameterExpansion(_)
            | WordPiece::CommandSubstitution(_)
            | WordPiece::BackquotedCommandSubstitution(_)
            | WordPiece::ArithmeticExpression(_) => {
                let val = self.piece(piece);
                let ifs = self.ifs();
                b.split(&val, &ifs);
            }
            other => {
                let val = self.piece(other);
                b.quoted(&val);
            }
        }
    }

    fn ifs(&self) -> String {
        match self.state.vars.get("IFS").and_then(|v| v.first()).and_then(|v| v.first()) {
            Some(v) if v.is_known() => v.text.clone(),
            _ => " \t\n".to_owned(),
        }
    }

    /// `"$@"` and `"${a[@]}"`: one field for each item.
    fn items(&mut self, e: &ParameterExpr) -> Option<Vec<Val>> {
        match e {
            ParameterExpr::Parameter { parameter, indirect: false } => match parameter {
                Parameter::Special(SpecialParameter::AllPositionalParameters { concatenate: false }) => {
                    Some(self.state.args.clone())
                }
                Parameter::NamedWithAllIndices { name, concatenate: false } => self.array(name),
                _ => None,
            },
            ParameterExpr::Substring { parameter: Parameter::NamedWithAllIndices { name, .. }, .. } => {
                self.array(name)
            }
            _ => None,
        }
    }

    fn piece(&mut self, piece: &WordPiece) -> Val {
        match piece {
            WordPiece::Text(t) | WordPiece::SingleQuotedText(t) => Val::known(t.clone()),
            WordPiece::AnsiCQuotedText(t) => Val::known(ansi_c(t)),
            WordPiece::EscapeSequence(t) => {
                let plain = t.strip_prefix('\\').unwrap_or(t);
                Val::known(if plain == "\n" { "" } else { plain })
            }
            WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                self.joined(inner)
            }
            WordPiece::TildeExpansion(t) => self.tilde(t),
            WordPiece::ParameterExpansion(e) => self.parameter(e),
            WordPiece::CommandSubstitution(c) => self.substitution(c),
            WordPiece::BackquotedCommandSubstitution(c) => {
                let plain = c.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\");
                self.substitution(&plain)
            }
            WordPiece::ArithmeticExpression(e) => self.arithmetic(&e.value),
        }
    }

    /// `$((…))`: a number; substitutions in it run.
    pub(super) fn arithmetic(&mut self, text: &str) -> Val {
        if let Ok(n) = text.trim().parse::<i64>() {
            return Val::known(n.to_string());
        }
        if text.contains('$') || text.contains('`') {
            self.single(&format!("\"{}\"", text.replace('"', "")));
        }
        Val::unknown(Taint::NONE)
    }

    fn tilde(&mut self, t: &TildeExpr) -> Val {
        let path = match t {
            TildeExpr::Home => self.scope.home.clone(),
            TildeExpr::UserHome(u) if u == "root" => "/root".into(),
            TildeExpr::UserHome(u) => match self.scope.home.file_name() {
                Some(own) if own.to_string_lossy() == *u => self.scope.home.clone(),
                _ => PathBuf::from("/home").join(u),
            },
            TildeExpr::WorkingDir => self.cwd(),
            TildeExpr::OldWorkingDir => self.state.oldpwd.clone().unwrap_or_else(|| self.scope.cwd.clone()),
            _ => self.state.dirs.last().cloned().unwrap_or_else(|| self.cwd()),
        };
        Val::known(path.to_string_lossy())
    }

    fn substitution(&mut self, text: &str) -> Val {
        let saved = self.state.clone();
        // `$(<file)` reads the file.
        let mut out = self.program(text, &Val::default());
        let files = std::mem::take(&mut self.state.files);
        self.state = saved;
        self.state.files = files;
        out.text.truncate(out.text.trim_end_matches('\n').len());
        out
    }

    fn array(&mut self, name: &str) -> Option<Vec<Val>> {
        let alternatives = self.state.vars.get(name)?.clone();
        Some(self.choose(&alternatives))
    }

    /// The value of a plain parameter; `None` when it is known to be unset.
    fn lookup(&mut self, p: &Parameter) -> Option<Val> {
        match p {
            Parameter::Positional(0) => Some(self.state.zero.clone()),
            Parameter::Positional(n) => self.state.args.get(*n as usize - 1).cloned(),
            Parameter::Special(s) => match s {
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
            Parameter::NamedWithAllIndices { name, .. } => self.array(name).map(|items| join(&items)),
        }
    }

    fn variable(&mut self, name: &str) -> Option<Val> {
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
            "RANDOM" | "SECONDS" | "LINENO" | "BASHPID" | "EPOCHSECONDS" | "PPID" | "UID" | "EUID"
            | "SRANDOM" => {
                return Some(Val::unknown(Taint::NONE));
            }
            "0" | "BASH_SOURCE" => return Some(self.state.zero.clone()),
            "IFS" => return Some(Val::known(" \t\n")),
            _ => {}
        }
        let set = self.scope.env.get(name).cloned();
        if secret_variable(name) {
            return Some(Val::unknown(Taint::ENV));
        }
        match set {
            Some(v) if !v.contains('\0') => Some(Val::known(v)),
            Some(_) => Some(Val::unknown(Taint::NONE)),
            None => None,
        }
    }

    fn parameter(&mut self, e: &ParameterExpr) -> Val {
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

    fn known_or_hole(&mut self, p: &Parameter, indirect: bool) -> Val {
        self.named(p, indirect).unwrap_or_else(|| Val::unknown(Taint::NONE))
    }

    fn named(&mut self, p: &Parameter, indirect: bool) -> Option<Val> {
        let val = self.lookup(p)?;
        if !indirect {
            return Some(val);
        }
        if val.is_known() { self.variable(&val.text) } else { Some(Val::unknown(Taint::ENV)) }
    }

    fn or_default(&mut self, val: Option<Val>, test: &ParameterTestType, default: Option<&str>) -> Val {
        let empty =
            val.as_ref().is_none_or(|v| v.text.is_empty() && matches!(test, ParameterTestType::UnsetOrNull));
        let default = self.single(default.unwrap_or_default());
        match val {
            Some(v) if !empty => v,
            _ => default,
        }
    }

    fn trimmed(
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

    /// The names that a glob stands for; itself when there are none.
    fn glob(&mut self, field: &Field) -> Vec<Val> {
        let pattern = &field.pattern;
        let plain = |p: &str| {
            !p.contains(['*', '?', '[']) && !p.contains("@(") && !p.contains("!(") && !p.contains("+(")
        };
        let base = if pattern.starts_with('/') { PathBuf::from("/") } else { self.cwd() };
        let mut found: Vec<(PathBuf, String)> =
            vec![(base, if pattern.starts_with('/') { "/".into() } else { String::new() })];
        let parts: Vec<&str> = pattern.split('/').filter(|p| !p.is_empty()).collect();
        let last = parts.len().saturating_sub(1);
        for (i, part) in parts.iter().enumerate() {
            let mut next = Vec::new();
            for (dir, shown) in &found {
                if plain(part) || *part == "." || *part == ".." {
                    let name = part.replace('\\', "");
                    next.push((dir.join(&name), format!("{shown}{name}{}", if i < last { "/" } else { "" })));
                    continue;
                }
                let deep = *part == "**";
                for name in self.world.list(&self.world.resolve(dir)) {
                    if (deep && !name.starts_with('.')) || glob_matches(part, &name) {
                        next.push((
                            dir.join(&name),
                            format!("{shown}{name}{}", if i < last { "/" } else { "" }),
                        ));
                    }
                    if next.len() > 256 {
                        break;
                    }
                }
            }
            found = next;
        }
        let mut out: Vec<Val> = found
            .into_iter()
            .filter(|(path, _)| self.world.kind(&self.world.resolve(path)) != Kind::Missing)
            .take(256)
            .map(|(_, shown)| Val { text: shown, taint: field.val.taint })
            .collect();
        // A secret that does not exist yet, or cannot be listed, may still be meant.
        let name = pattern.rsplit('/').next().unwrap_or_default();
        if out.is_empty() && name.chars().filter(|c| c.is_alphanumeric()).count() > 0 {
            for usual in [".env", "id_rsa", "id_ed25519", "shadow", "credentials", "environ"] {
                if glob_matches(name, usual) {
                    let dir = pattern
                        .strip_suffix(name)
                        .unwrap_or_default()
                        .replace(['*', '?'], "1")
                        .replace("[0-9]", "1");
                    out.push(Val::known(format!("{dir}{usual}")));
                }
            }
        }
        if out.is_empty() { vec![field.val.clone()] } else { out }
    }

    /// Whether a command name may stand for a glob of a file in `/bin`.
    pub(super) fn globbed_command(&self, name: &str) -> Option<String> {
        let base = Path::new(name).file_name()?.to_string_lossy().into_owned();
        [
            "cat", "rm", "sh", "bash", "curl", "nc", "head", "tail", "less", "more", "base64", "cp", "mv",
            "dd", "wget", "python3", "tac", "nl", "od", "xxd", "strings",
        ]
        .into_iter()
        .find(|c| glob_matches(&base, c))
        .map(str::to_owned)
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

fn join(items: &[Val]) -> Val {
    let mut out = Val::default();
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(&Val::known(" "));
        }
        out.push(item);
    }
    out
}

/// Prefix and suffix patterns match a leading dot too.
fn matches_anywhere(pattern: &str, text: &str) -> bool {
    glob_matches(&format!("x{pattern}"), &format!("x{text}"))
}

fn substring(val: &Val, offset: &Val, length: Option<&Val>) -> Val {
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

fn replaced(val: &Val, pattern: &Val, to: &Val, kind: &SubstringMatchKind) -> Val {
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

fn first(text: &str, upper: bool) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(c) if upper => c.to_uppercase().chain(chars).collect(),
        Some(c) => c.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

fn brace_texts(parts: &[BraceExpressionOrText], depth: usize) -> Vec<String> {
    let mut out = vec![String::new()];
    for part in parts {
        let choices: Vec<String> = match part {
            BraceExpressionOrText::Text(t) => vec![t.clone()],
            BraceExpressionOrText::Expr(members) if depth < 8 => {
                members.iter().flat_map(|m| brace_member(m, depth + 1)).take(limits::FIELDS).collect()
            }
            BraceExpressionOrText::Expr(_) => Vec::new(),
        };
        let mut next = Vec::new();
        'all: for head in &out {
            for tail in &choices {
                if next.len() >= limits::FIELDS {
                    break 'all;
                }
                next.push(format!("{head}{tail}"));
            }
        }
        out = next;
    }
    out
}

fn brace_member(member: &BraceExpressionMember, depth: usize) -> Vec<String> {
    let count = |start: i64, end: i64, step: i64| {
        let step = step.unsigned_abs().max(1) as i64;
        let n = ((end - start).unsigned_abs() / step as u64 + 1).min(limits::FIELDS as u64) as i64;
        (0..n).map(move |i| if start <= end { start + i * step } else { start - i * step })
    };
    match member {
        BraceExpressionMember::NumberSequence { start, end, increment } => {
            count((*start).clamp(-1 << 40, 1 << 40), (*end).clamp(-1 << 40, 1 << 40), *increment)
                .map(|n| n.to_string())
                .collect()
        }
        BraceExpressionMember::CharSequence { start, end, increment } => {
            count(*start as i64, *end as i64, *increment)
                .filter_map(|n| char::from_u32(n as u32))
                .map(String::from)
                .collect()
        }
        BraceExpressionMember::Child(parts) => brace_texts(parts, depth),
    }
}

/// `$'…'`, `printf` and `echo -e` escapes.
pub fn ansi_c(text: &str) -> String {
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            let mut b = [0; 4];
            bytes.extend_from_slice(c.encode_utf8(&mut b).as_bytes());
            continue;
        }
        let number = |radix: u32, most: usize, chars: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            let mut n = None;
            for _ in 0..most {
                match chars.peek().and_then(|c| c.to_digit(radix)) {
                    Some(d) => {
                        n = Some(n.unwrap_or(0u32).wrapping_mul(radix).wrapping_add(d));
                        chars.next();
                    }
                    None => break,
                }
            }
            n
        };
        match chars.next() {
            Some('n') => bytes.push(b'\n'),
            Some('t') => bytes.push(b'\t'),
            Some('r') => bytes.push(b'\r'),
            Some('a') => bytes.push(7),
            Some('b') => bytes.push(8),
            Some('e' | 'E') => bytes.push(27),
            Some('f') => bytes.push(12),
            Some('v') => bytes.push(11),
            Some('x') => {
                if chars.peek() == Some(&'{') {
                    chars.next();
                }
                match number(16, 2, &mut chars) {
                    Some(n) => bytes.push(n as u8),
                    None => bytes.extend_from_slice(b"\\x"),
                }
                if chars.peek() == Some(&'}') {
                    chars.next();
                }
            }
            Some(u @ ('u' | 'U')) => {
                let n = number(16, if u == 'u' { 4 } else { 8 }, &mut chars);
                let c = n.and_then(char::from_u32).unwrap_or('\u{fffd}');
                let mut b = [0; 4];
                bytes.extend_from_slice(c.encode_utf8(&mut b).as_bytes());
            }
            Some(d @ '0'..='7') => {
                let mut n = d.to_digit(8).unwrap_or(0);
                let most = if d == '0' { 3 } else { 2 };
                for _ in 0..most {
                    match chars.peek().and_then(|c| c.to_digit(8)) {
                        Some(d) => {
                            n = n * 8 + d;
                            chars.next();
                        }
                        None => break,
                    }
                }
                bytes.push(n as u8);
            }
            Some('c') => {
                if let Some(c) = chars.next() {
                    bytes.push((c as u32 as u8) & 0x1f);
                }
            }
            Some(c) => {
                if !matches!(c, '\\' | '\'' | '"' | '?') {
                    bytes.push(b'\\');
                }
                let mut b = [0; 4];
                bytes.extend_from_slice(c.encode_utf8(&mut b).as_bytes());
            }
            None => bytes.push(b'\\'),
        }
    }
    bytes.retain(|b| *b != 0);
    String::from_utf8_lossy(&bytes).into_owned()
}
