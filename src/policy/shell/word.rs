//! Words → values: quotes, braces, tildes, parameters, substitutions, splitting and globs, as bash does them.

use super::eval::Machine;
use super::limits;
use super::parse;
use super::value::{Field, Taint, Val, glob_matches};
use crate::policy::world::Kind;
use brush_parser::ast::Word;
use brush_parser::word::{
    BraceExpressionMember, BraceExpressionOrText, Parameter, ParameterExpr, SpecialParameter, TildeExpr,
    WordPiece, WordPieceWithSource, parse_brace_expansions,
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
    pub(super) fn quoted(&mut self, val: &Val) {
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

    pub(super) fn literal(&mut self, text: &str) {
        self.begun = true;
        self.now.glob |= text.contains(['*', '?', '['])
            || text.contains("@(")
            || text.contains("+(")
            || text.contains("!(");
        self.now.pattern.push_str(text);
        self.now.val.push(&Val::known(text));
    }

    pub(super) fn end(&mut self) {
        if self.begun && self.done.len() < limits::FIELDS {
            self.done.push(std::mem::take(&mut self.now));
        }
        self.now = Field::default();
        self.begun = false;
    }

    /// The value of an unquoted expansion: split at `separators`.
    pub(super) fn split(&mut self, val: &Val, separators: &str) {
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

    pub(super) fn joined(&mut self, pieces: &[WordPieceWithSource]) -> Val {
        let mut out = Val::default();
        for piece in pieces {
            let val = self.piece(&piece.piece);
            out.push(&val);
        }
        out
    }

    pub(super) fn braces(&mut self, word: &str) -> Vec<String> {
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

    pub(super) fn fields(&mut self, word: &str) -> Vec<Field> {
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
                let ifs = self.ifs();
                let items = match piece {
                    WordPiece::ParameterExpansion(e) => self.all_items(e),
                    _ => None,
                };
                let items = match items {
                    Some(items) => items,
                    None => vec![self.piece(piece)],
                };
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        b.end();
                    }
                    b.split(item, &ifs);
                }
            }
            other => {
                let val = self.piece(other);
                b.quoted(&val);
            }
        }
    }

    pub(super) fn ifs(&self) -> String {
        match self.state.vars.get("IFS").and_then(|v| v.first()).and_then(|v| v.first()) {
            Some(v) if v.is_known() => v.text.clone(),
            _ => " \t\n".to_owned(),
        }
    }

    /// `"$@"` and `"${a[@]}"`: one field for each item.
    pub(super) fn items(&mut self, e: &ParameterExpr) -> Option<Vec<Val>> {
        match e {
            ParameterExpr::Parameter { parameter, indirect: false } => match parameter {
                Parameter::Special(SpecialParameter::AllPositionalParameters { concatenate: false }) => {
                    Some(self.state.args.clone())
                }
                Parameter::NamedWithAllIndices { name, concatenate: false } => self.array(name),
                _ => None,
            },
            ParameterExpr::Substring { .. } => self.all_items(e),
            _ => None,
        }
    }

    pub(super) fn piece(&mut self, piece: &WordPiece) -> Val {
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

    pub(super) fn tilde(&mut self, t: &TildeExpr) -> Val {
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

    pub(super) fn substitution(&mut self, text: &str) -> Val {
        let saved = self.state.clone();
        // `$(<file)` reads the file.
        let mut out = self.program(text, &Val::default());
        let files = std::mem::take(&mut self.state.files);
        self.state = saved;
        self.state.files = files;
        out.text.truncate(out.text.trim_end_matches('\n').len());
        out
    }

    /// The names that a glob stands for; itself when there are none.
    pub(super) fn glob(&mut self, field: &Field) -> Vec<Val> {
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
                    let dotted = self.state.dotglob && super::find::glob_any(part, &name);
                    if (deep && !name.starts_with('.')) || dotted || glob_matches(part, &name) {
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

pub(super) fn join(items: &[Val]) -> Val {
    let mut out = Val::default();
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(&Val::known(" "));
        }
        out.push(item);
    }
    out
}

pub(super) fn brace_texts(parts: &[BraceExpressionOrText], depth: usize) -> Vec<String> {
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

pub(super) fn brace_member(member: &BraceExpressionMember, depth: usize) -> Vec<String> {
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
