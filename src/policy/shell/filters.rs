//! Programs that turn text into other text.

use super::eval::Machine;
use super::options::Options;
use super::value::{HOLE, Taint, Val};
use super::word::ansi_c;

impl Machine<'_> {
    /// Decoders and encoders: known input gives known output.
    pub(super) fn coder(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let valued: &[&str] = match base {
            "base64" | "base32" => &["-w", "--wrap", "-i", "-o"],
            "xxd" => &["-c", "-l", "-s", "-g", "-o"],
            "sed" => &["-e", "-f", "--expression", "--file", "-l"],
            "openssl" => return self.openssl(args, stdin),
            "tr" => &[],
            "od" | "hexdump" => &["-A", "-t", "-N", "-j", "-n", "-s", "-e", "-w"],
            _ => &[],
        };
        let o = Options::split(args, valued, false);
        if base == "sed" {
            return self.sed(&o, stdin);
        }
        let files: Vec<Val> = if base == "tr" {
            Vec::new()
        } else {
            o.operands.iter().filter(|a| a.text != "-").cloned().collect()
        };
        let mut input = if files.is_empty() { stdin.clone() } else { Val::default() };
        for file in &files {
            let val = self.read_file(file);
            input.push(&val);
        }
        let coded = input.taint.with(Taint::CODED);
        let decodes = match base {
            "base64" | "base32" | "basenc" => o.has(&["-d", "-D", "--decode"]),
            "xxd" => o.has(&["-r"]),
            "tr" | "rev" | "tac" => true,
            "uudecode" | "gunzip" | "zcat" | "iconv" => true,
            "gzip" | "bzip2" | "xz" | "zstd" => o.has(&["-d", "--decompress"]),
            _ => false,
        };
        if !decodes {
            return Val::unknown(input.taint);
        }
        if !input.is_known() {
            return Val::unknown(coded);
        }
        let plain = match base {
            "base64" => unbase64(&input.text),
            "xxd" => unhex(&input.text),
            "rev" => Some(input.text.lines().map(|l| l.chars().rev().collect::<String>() + "\n").collect()),
            "tac" => Some(input.text.lines().rev().map(|l| format!("{l}\n")).collect()),
            "tr" => translate(&input.text, &o),
            _ => None,
        };
        match plain {
            Some(text) => Val { text: text.replace(HOLE, ""), taint: input.taint },
            None => Val::unknown(coded),
        }
    }

    pub(super) fn openssl(&mut self, args: &[Val], stdin: &Val) -> Val {
        let sub = args.first().map(|a| a.text.clone()).unwrap_or_default();
        for (i, file) in args.iter().enumerate() {
            let before = i.checked_sub(1).and_then(|b| args.get(b)).map_or("", |b| b.text.as_str());
            if matches!(before, "-out" | "-keyout" | "-CAserial" | "-writerand") {
                self.write_file(file, true);
            } else {
                self.read_file(file);
            }
        }
        if matches!(sub.as_str(), "s_client" | "s_time") {
            if stdin.taint.any(Taint::LOCAL) {
                self.deny("exfil.socket", "The command sends data of this machine out over TLS.");
            } else if !stdin.text.is_empty() {
                self.ask("net.socket", "The command opens a raw connection.");
            }
            return Val::unknown(Taint::NET);
        }
        if args.iter().any(|a| matches!(a.text.as_str(), "-d" | "-decrypt")) {
            if let Some(text) = unbase64(&stdin.text)
                .filter(|_| stdin.is_known() && (sub == "base64" || args.iter().any(|a| a.text == "-base64")))
            {
                return stdin.map(text);
            }
            return Val::unknown(stdin.taint.with(Taint::CODED));
        }
        Val::unknown(stdin.taint)
    }

    pub(super) fn sed(&mut self, o: &Options, stdin: &Val) -> Val {
        let mut scripts = o.values(&["-e", "--expression"]);
        let mut files = o.operands.clone();
        if scripts.is_empty() && !o.has(&["-f", "--file"]) && !files.is_empty() {
            scripts.push(files.remove(0));
        }
        for file in o.values(&["-f", "--file"]) {
            let script = if matches!(file.text.as_str(), "-" | "/dev/stdin") {
                stdin.clone()
            } else {
                self.content(&file)
            };
            if script.taint.any(Taint::NET) {
                self.deny("run.fetched", "The command runs what another machine answers.");
            }
            scripts.push(script);
        }
        let in_place = o.given.iter().any(|(n, _)| n.starts_with("-i") || n == "--in-place" || n == "-i");
        for script in &scripts {
            if self.sed_script(&script.text.clone()) && stdin.taint.any(Taint::NET) {
                self.deny("run.fetched", "The command runs what another machine answers.");
            }
        }
        let mut input = if files.is_empty() { stdin.clone() } else { Val::default() };
        for file in &files {
            if in_place {
                self.write_file(file, false);
            }
            let val = self.read_file(file);
            input.push(&val);
        }
        let quiet = scripts.iter().all(|s| s.text == "p" || s.text.is_empty());
        if quiet {
            input
        } else {
            Val::unknown(input.taint.with(if input.is_known() && !input.text.is_empty() {
                Taint::CODED
            } else {
                Taint::NONE
            }))
        }
    }

    /// Commands of sed that read, write or run: `r`, `R`, `w`, `W`, `e` and the `e` and `w` flags of `s`.
    /// Says whether a line of the input may run.
    pub(super) fn sed_script(&mut self, script: &str) -> bool {
        let mut runs = false;
        for part in sed_commands(script) {
            let mut chars = part.chars();
            match chars.next() {
                Some('r' | 'R') => {
                    let file = Val::known(chars.as_str().trim().trim_end_matches('}'));
                    self.read_file(&file);
                }
                Some('w' | 'W') => {
                    let file = Val::known(chars.as_str().trim().trim_end_matches('}'));
                    self.write_file(&file, true);
                }
                Some('e') => {
                    runs |= chars.as_str().trim().is_empty();
                    self.program(chars.as_str().trim(), &Val::default());
                }
                Some('s') => {
                    let Some((to, flags)) = sed_substitution(chars.as_str()) else { continue };
                    let flags_only = flags.split(' ').next().unwrap_or_default();
                    if flags_only.contains('e') {
                        runs = true;
                        self.program(&to.replace('&', ""), &Val::default());
                    }
                    if let Some((_, file)) = flags.split_once("w ") {
                        let file = Val::known(file.trim());
                        self.write_file(&file, true);
                    }
                }
                _ => {}
            }
        }
        // What a substitution made may be run by a lone `e` after it.
        if runs && script.contains('s') {
            let made: Vec<String> = sed_commands(script)
                .iter()
                .filter_map(|p| sed_substitution(p.strip_prefix('s')?))
                .map(|(to, _)| to)
                .collect();
            for to in made.iter().take(16) {
                self.program(&to.replace('&', ""), &Val::default());
            }
        }
        runs
    }
}

/// The commands of a script without their addresses. Addresses may hold any separator, escaped or in brackets.
fn sed_commands(script: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = script;
    while !rest.is_empty() && out.len() < 256 {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}'));
        loop {
            let before = rest.len();
            rest = rest.trim_start_matches(|c: char| {
                c.is_ascii_digit() || matches!(c, ',' | '$' | '~' | '+' | '!' | '{' | ' ')
            });
            let separator = match rest.strip_prefix('\\') {
                Some(custom) => custom.chars().next(),
                None => rest.starts_with('/').then_some('/'),
            };
            if let Some(separator) = separator {
                let start = if rest.starts_with('/') { 1 } else { 1 + separator.len_utf8() };
                let body = rest.get(start..).unwrap_or_default();
                let Some(end) = unescaped(body, separator) else { return out };
                rest =
                    body.get(end + separator.len_utf8()..).unwrap_or_default().trim_start_matches(['I', 'M']);
            }
            if rest.len() == before {
                break;
            }
        }
        // File names and commands go on to the end of the line, a substitution over its own separators.
        let end = match rest.chars().next() {
            Some('r' | 'R' | 'w' | 'W' | 'e' | 'a' | 'i' | 'c') => rest.find('\n').unwrap_or(rest.len()),
            Some(kind @ ('s' | 'y')) => {
                let body = &rest[kind.len_utf8()..];
                let separator = body.chars().next().unwrap_or('/');
                let mut at = kind.len_utf8() + separator.len_utf8();
                for _ in 0..2 {
                    match rest.get(at..).and_then(|r| unescaped(r, separator)) {
                        Some(next) => at += next + separator.len_utf8(),
                        None => at = rest.len(),
                    }
                }
                let flags = rest.get(at..).unwrap_or_default();
                let stop = if flags.contains('w') { flags.find('\n') } else { flags.find([';', '\n', '}']) };
                at.min(rest.len()) + stop.unwrap_or(flags.len())
            }
            _ => rest.find([';', '\n', '}']).unwrap_or(rest.len()),
        };
        let (command, after) = rest.split_at(end.min(rest.len()));
        if !command.is_empty() {
            out.push(command.to_owned());
        }
        rest = after;
    }
    out
}

/// Where `separator` stands that is neither escaped nor in brackets.
fn unescaped(text: &str, separator: char) -> Option<usize> {
    let (mut escaped, mut bracket) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => bracket = true,
            ']' => bracket = false,
            _ if c == separator && !bracket => return Some(at),
            _ => {}
        }
    }
    None
}

/// Replacement and flags of what follows the `s` of a substitution.
fn sed_substitution(text: &str) -> Option<(String, String)> {
    let separator = text.chars().next()?;
    let body = text.get(separator.len_utf8()..)?;
    let from = unescaped(body, separator)?;
    let body = body.get(from + separator.len_utf8()..)?;
    // Brackets mean nothing in a replacement.
    let mut escaped = false;
    let to = body.char_indices().find(|(_, c)| {
        let ends = *c == separator && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    let to = to.map_or(body.len(), |(at, _)| at);
    let flags = body.get(to + separator.len_utf8()..).unwrap_or_default();
    Some((body[..to].replace(&format!("\\{separator}"), &separator.to_string()), flags.to_owned()))
}

pub(super) fn unbase64(text: &str) -> Option<String> {
    use base64::Engine;
    let clean: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let bytes = base64::engine::general_purpose::STANDARD_NO_PAD.decode(clean.trim_end_matches('=')).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn unhex(text: &str) -> Option<String> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|p| (p[0] * 16 + p[1]) as u8).collect();
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn translate(text: &str, o: &Options) -> Option<String> {
    let set = |v: &Val| -> Vec<char> {
        let chars: Vec<char> = ansi_c(&v.text).chars().collect();
        let mut out = Vec::new();
        let mut i = 0;
        while i < chars.len() && out.len() < 512 {
            if chars.get(i + 1) == Some(&'-') && i + 2 < chars.len() {
                out.extend((chars[i] as u32..=chars[i + 2] as u32).take(512).filter_map(char::from_u32));
                i += 3;
            } else {
                out.push(chars[i]);
                i += 1;
            }
        }
        out
    };
    let from = set(o.operands.first()?);
    if from.starts_with(&['[', ':']) {
        return None;
    }
    if o.has(&["-d"]) {
        return Some(text.chars().filter(|c| !from.contains(c)).collect());
    }
    if o.has(&["-s", "-c", "-C"]) {
        return None;
    }
    let to = set(o.operands.get(1)?);
    let last = to.last().copied()?;
    Some(
        text.chars()
            .map(|c| from.iter().rposition(|f| *f == c).map_or(c, |i| to.get(i).copied().unwrap_or(last)))
            .collect(),
    )
}
