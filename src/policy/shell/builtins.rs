//! Builtins of the shell and plain programs whose output is known.

use super::eval::Machine;
use super::limits;
use super::options::Options;
use super::value::{HOLE, Taint, Val};
use super::word::ansi_c;
use crate::policy::paths;
use crate::policy::world::Kind;
use std::path::{Path, PathBuf};

impl Machine<'_> {
    /// Everything that runs nothing else: builtins, then the rules.
    pub(super) fn plain(&mut self, base: &str, name: &Val, args: &[Val], stdin: &Val) -> Val {
        let first = args.first().map(|a| a.text.as_str()).unwrap_or_default();
        self.latent_arguments(base, args, stdin);
        match base {
            "test" | "[" | ":" | "date" | "ulimit" | "shift" | "exit" | "return" | "umask" | "sleep"
            | "let" | "bg" | "fg"
                if args.iter().any(|a| a.taint.any(Taint::ENV)) && !tests_presence(base, args) =>
            {
                Val::unknown(Taint::ENV)
            }
            // The number of what is around the shell: the name stands for it, so that `kill` sees whose it is.
            "ps" if args.iter().any(|a| {
                let columns = ["ppid=", "pgid=", "sid=", "ppid", "pgid", "sid"];
                columns.contains(&a.text.trim_start_matches("-o"))
            }) =>
            {
                Val::known("$PPID")
            }
            "ps" if args.iter().any(|a| shows_environments(&a.text)) => Val::unknown(Taint::ENV),
            "shift" => {
                self.shift(args);
                Val::default()
            }
            ":" | "true" | "false" | "test" | "[" | "sleep" | "wait" | "exit" | "return" | "break"
            | "continue" | "umask" | "jobs" | "fg" | "bg" | "disown" | "ulimit" | "hash" | "times"
            | "bind" | "enable" | "compgen" | "complete" | "getopts" | "shopt" | "suspend" | "let"
            | "date" | "whoami" | "hostname" | "uname" | "id" | "arch" | "nproc" | "tty" | "clear"
            | "yes" | "ps" | "top" | "uptime" | "free" | "df" => match base {
                "id" | "whoami" | "hostname" | "uname" => Val::unknown(Taint::FILE),
                "yes" if !args.is_empty() => echo(args),
                _ => Val::unknown(Taint::NONE),
            },
            "echo" => echo(args),
            "printf" => {
                let variable = (first == "-v").then(|| args.get(1).map(|a| a.text.clone())).flatten();
                let out = printf(if variable.is_some() { args.get(2..).unwrap_or_default() } else { args });
                match variable {
                    Some(name) => {
                        self.assign(&name, vec![out]);
                        Val::default()
                    }
                    None => out,
                }
            }
            "set" => {
                if args.is_empty() || first == "-o" && args.len() == 1 {
                    return if args.is_empty() { Val::unknown(Taint::ENV) } else { Val::default() };
                }
                if let Some(at) = args.iter().position(|a| a.text == "--") {
                    self.state.args = args[at + 1..].to_vec();
                } else if !first.starts_with(['-', '+']) {
                    self.state.args = args.to_vec();
                }
                Val::default()
            }
            "export" | "declare" | "typeset" | "readonly" | "local" => {
                let listing = args.iter().all(|a| a.text.starts_with('-'));
                for a in args {
                    match a.text.split_once('=') {
                        Some((name, value)) => {
                            let value = a.map(value);
                            self.environment(name, &value);
                        }
                        // Set before, and handed on from here.
                        None if base == "export" => {
                            let given = self.state.vars.get(&a.text).and_then(|v| v.last()?.first().cloned());
                            if let Some(value) = given {
                                self.environment(&a.text, &value);
                            }
                        }
                        None => {
                            if super::expand::secret_variable(&a.text)
                                && args.iter().any(|f| f.text.starts_with('-') && f.text.contains('p'))
                            {
                                return Val::unknown(Taint::ENV);
                            }
                        }
                    }
                }
                if base != "export"
                    && args
                        .iter()
                        .any(|f| f.text.starts_with('-') && f.text.contains('n') && f.text.len() < 4)
                {
                    self.ask(
                        "run.unknown",
                        "A name that stands for another name hides which variable is meant.",
                    );
                }
                if listing && !args.iter().any(|a| a.text.contains('f') || a.text.contains('F')) {
                    Val::unknown(Taint::ENV)
                } else {
                    Val::default()
                }
            }
            "unset" => {
                for a in args {
                    self.state.vars.remove(&a.text);
                    self.state.functions.remove(&a.text);
                }
                Val::default()
            }
            "unalias" => Val::default(),
            "read" | "mapfile" | "readarray" => {
                let o = Options::split(
                    args,
                    &["-p", "-d", "-n", "-N", "-t", "-u", "-i", "-a", "-O", "-s", "-c", "-C"],
                    false,
                );
                let mut names: Vec<String> = o.operands.iter().map(|n| n.text.clone()).collect();
                names.extend(o.values(&["-a"]).into_iter().map(|v| v.text));
                if names.is_empty() {
                    names.push(if base == "read" { "REPLY" } else { "MAPFILE" }.to_owned());
                }
                let line = if base == "read" {
                    stdin.map(stdin.text.lines().next().unwrap_or_default())
                } else {
                    stdin.clone()
                };
                let mut words: Vec<Val> = if line.is_known() {
                    line.text.split_whitespace().map(|w| line.map(w)).collect()
                } else {
                    vec![line.clone()]
                };
                if names.len() == 1 && base == "read" && !o.has(&["-a"]) {
                    words = vec![line];
                }
                for (i, n) in names.iter().enumerate() {
                    let value = if names.len() == 1 {
                        words.clone()
                    } else {
                        vec![
                            words
                                .get(i)
                                .cloned()
                                .unwrap_or_else(|| words.last().cloned().unwrap_or_default()),
                        ]
                    };
                    self.assign(n, value);
                }
                Val::default()
            }
            "cd" | "pushd" | "chdir" if args.iter().any(|a| a.taint.any(Taint::ENV)) => {
                Val::unknown(Taint::ENV)
            }
            "cd" | "pushd" | "chdir" => self.cd(base, args),
            "popd" => {
                if let Some(dir) = self.state.dirs.pop() {
                    self.state.oldpwd = Some(self.cwd());
                    self.state.cwds = vec![dir];
                }
                Val::default()
            }
            "dirs" | "pwd" => Val::known(format!("{}\n", self.cwd().to_string_lossy())),
            "basename" => {
                let o = Options::split(args, &["-s"], false);
                o.operands.first().map_or_else(Val::default, |p| {
                    let name = p.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                    let end = o.operands.get(1).map(|e| e.text.clone()).unwrap_or_default();
                    p.map(format!("{}\n", name.strip_suffix(end.as_str()).unwrap_or(name)))
                })
            }
            "dirname" => args.last().map_or_else(Val::default, |p| {
                let dir = p
                    .text
                    .trim_end_matches('/')
                    .rsplit_once('/')
                    .map_or(".", |(d, _)| if d.is_empty() { "/" } else { d });
                p.map(format!("{dir}\n"))
            }),
            "realpath" | "readlink" => match args.last().and_then(|p| self.meanings(p).first().cloned()) {
                Some(path) => Val::known(format!("{}\n", path.to_string_lossy())),
                None => Val::unknown(Taint::NONE),
            },
            "which" => args.last().map_or_else(Val::default, |a| {
                let slash = a.text.contains('/') || a.text.contains(HOLE);
                a.map(if slash { format!("{}\n", a.text) } else { format!("/usr/bin/{}\n", a.text) })
            }),
            "type" | "whereis" => args.last().map_or_else(Val::default, |a| a.map(format!("{}\n", a.text))),
            "mktemp" => {
                let template = args.iter().find(|a| a.text.contains("XXX")).map(|a| a.text.replace('X', "x"));
                Val::known(
                    template.filter(|t| t.starts_with('/')).unwrap_or_else(|| "/tmp/tmp.jess".to_owned())
                        + "\n",
                )
            }
            "base64" | "base32" | "basenc" | "xxd" | "tr" | "rev" | "uudecode" | "gunzip" | "zcat"
            | "gzip" | "openssl" | "sed" | "tac" | "od" | "hexdump" | "iconv" | "bzip2" | "xz" | "zstd" => {
                self.coder(base, args, stdin)
            }
            "tee" => {
                let o = Options::split(args, &[], false);
                for file in &o.operands {
                    self.write_file(file, !o.has(&["-a", "--append"]));
                    for path in self.meanings(file) {
                        self.state.files.insert(path, stdin.clone());
                    }
                }
                stdin.clone()
            }
            "cat" | "head" | "tail" | "sort" | "uniq" | "nl" | "less" | "more" | "cut" | "fold" | "bat"
            | "batcat" | "column" | "paste" | "strings" | "pr" | "expand" | "shuf" | "most" | "view" => {
                self.show(base, args, stdin)
            }
            _ => self.rules(base, name, args, stdin),
        }
    }

    pub(super) fn cd(&mut self, base: &str, args: &[Val]) -> Val {
        let o = Options::split(args, &[], false);
        let target = match o.operands.first() {
            None => Val::known(self.scope.home.to_string_lossy()),
            Some(t) if t.text == "-" => Val::known(
                self.state.oldpwd.clone().unwrap_or_else(|| self.scope.cwd.clone()).to_string_lossy(),
            ),
            Some(t) => t.clone(),
        };
        let here = self.cwd();
        let places = self.meanings(&target);
        if base == "pushd" {
            self.state.dirs.push(here.clone());
        }
        self.state.oldpwd = Some(here.clone());
        let mut cwds: Vec<PathBuf> = places.clone();
        // Where it may fail, or leads nobody knows where, the old directory stays possible.
        if places.is_empty() || !places.iter().any(|p| self.world.kind(p) == Kind::Dir) {
            cwds.push(here);
        }
        cwds.truncate(3);
        if cwds.iter().any(|p| p.components().count() > limits::CWD && self.world.kind(p) == Kind::Missing) {
            self.bound("a directory too deep among those that are not there");
        }
        self.state.cwds = cwds;
        Val::default()
    }

    /// Programs that print files or pass their input on.
    pub(super) fn show(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let valued: &[&str] = match base {
            "head" | "tail" => &["-n", "-c", "--lines", "--bytes"],
            "sort" => &["-k", "-t", "-o", "-S", "-T", "--key", "--output"],
            "cut" => &["-d", "-f", "-c", "-b", "--delimiter", "--fields"],
            "fold" => &["-w"],
            "column" => &["-s", "-o", "-c"],
            "paste" => &["-d"],
            "shuf" => &["-n", "-i", "-o"],
            _ => &[],
        };
        let o = Options::split(args, valued, false);
        for file in o.values(&["-o", "--output"]) {
            self.write_file(&file, true);
        }
        if o.operands.is_empty() {
            return match base {
                "cut"
                    if stdin.taint.any(Taint::ENV)
                        && o.values(&["-f", "--fields"]).iter().any(|f| f.text == "1") =>
                {
                    Val::unknown(stdin.taint.without(Taint::ENV))
                }
                "cut" => Val::unknown(stdin.taint),
                _ => stdin.clone(),
            };
        }
        let mut out = Val::default();
        for file in o.operands {
            let val = if file.text == "-" { stdin.clone() } else { self.read_file(&file) };
            out.push(&val);
            if val.is_known() && !val.text.is_empty() && !val.text.ends_with('\n') && base != "cat" {
                out.push(&Val::known("\n"));
            }
        }
        out
    }
}

pub(super) fn echo(args: &[Val]) -> Val {
    let mut escapes = false;
    let mut newline = true;
    let mut rest = args;
    while let Some(a) = rest.first().filter(|a| {
        a.text.len() > 1
            && a.text.starts_with('-')
            && a.text[1..].chars().all(|c| matches!(c, 'n' | 'e' | 'E'))
    }) {
        escapes |= a.text.contains('e');
        newline &= !a.text.contains('n');
        rest = &rest[1..];
    }
    let mut out = Val::default();
    for (i, a) in rest.iter().enumerate() {
        if i > 0 {
            out.push(&Val::known(" "));
        }
        out.push(a);
    }
    if escapes && out.is_known() {
        out.text = ansi_c(&out.text);
    }
    if newline {
        out.push(&Val::known("\n"));
    }
    out
}

pub(super) fn printf(args: &[Val]) -> Val {
    let args = if args.first().is_some_and(|a| a.text == "--") { &args[1..] } else { args };
    let Some(format) = args.first() else { return Val::default() };
    let taint = args.iter().fold(Taint::NONE, |t, a| t.with(a.taint));
    if !format.is_known() {
        return Val::unknown(taint);
    }
    let mut out = Val { text: String::new(), taint };
    let mut values = args[1..].iter();
    let mut rounds = 0;
    loop {
        let mut used = false;
        let mut chars = ansi_c(&format.text).chars().collect::<Vec<_>>().into_iter().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(&Val::known(c.to_string()));
                continue;
            }
            let mut spec = String::new();
            for c in chars.by_ref() {
                spec.push(c);
                if c.is_ascii_alphabetic() || c == '%' {
                    break;
                }
            }
            match spec.chars().last() {
                Some('%') => out.push(&Val::known("%")),
                Some(kind) => {
                    used = true;
                    let value = values.next().cloned().unwrap_or_default();
                    let text = match kind {
                        'b' if value.is_known() => ansi_c(&value.text),
                        'c' => value.text.chars().take(1).collect(),
                        'q' => value.text.clone(),
                        'x' | 'X' | 'o' if value.is_known() => value.text.parse::<i64>().map_or_else(
                            |_| HOLE.to_string(),
                            |n| match kind {
                                'o' => format!("{n:o}"),
                                'X' => format!("{n:X}"),
                                _ => format!("{n:x}"),
                            },
                        ),
                        _ => value.text.clone(),
                    };
                    out.push(&value.map(text));
                }
                None => {}
            }
        }
        rounds += 1;
        if !used || values.len() == 0 {
            break;
        }
        if rounds >= limits::ROUNDS_MAX {
            out.push(&Val::unknown(taint));
            break;
        }
    }
    out
}

/// A path that is given as an argument, for callers outside.
pub(super) fn outside(path: &Path, m: &Machine<'_>) -> bool {
    !paths::in_project(path, m.scope) && !paths::is_scratch(path, m.scope)
}

/// Whether an argument of `ps` has it print the environment of processes: `e` without a dash.
fn shows_environments(arg: &str) -> bool {
    !arg.starts_with('-')
        && !arg.contains(['=', '/'])
        && arg.contains('e')
        && arg.chars().all(|c| c.is_ascii_lowercase())
}

/// `[ -n "$TOKEN" ]` and its like, which say only whether a variable is set.
fn tests_presence(base: &str, args: &[Val]) -> bool {
    match base {
        ":" => true,
        "test" | "[" => args.iter().any(|a| matches!(a.text.as_str(), "-n" | "-z")) || args.len() <= 2,
        _ => false,
    }
}
