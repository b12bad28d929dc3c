//! Languages that a program's options can hold code in.

/// Languages with a flag for code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Perl,
    Ruby,
    Node,
    Php,
    Awk,
    Lua,
    Other,
}

/// The language that a program runs.
pub(super) fn language(base: &str) -> Option<Language> {
    let stem = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    Some(match stem {
        "python" | "pypy" | "ipython" | "python3." | "bpython" | "micropython" => Language::Python,
        "perl" => Language::Perl,
        "ruby" | "irb" | "jruby" => Language::Ruby,
        "node" | "nodejs" | "deno" | "tsx" | "ts-node" | "bun" | "qjs" | "d"
            if base != "bun" && base != "d8" =>
        {
            Language::Node
        }
        "php" => Language::Php,
        "awk" | "gawk" | "mawk" | "nawk" => Language::Awk,
        "lua" | "luajit" | "texlua" => Language::Lua,
        "osascript" | "Rscript" | "R" | "julia" | "elixir" | "erl" | "ghc" | "runghc" | "scala"
        | "groovy" | "tclsh" | "guile" | "sbcl" | "swift" | "raku" | "racket" | "clojure" | "nim"
        | "crystal" | "jshell" | "kotlin" | "octave" | "gnuplot" => Language::Other,
        _ => return None,
    })
}

impl Language {
    /// The code that an option holds: empty when it is the next argument, `None` when the option holds none.
    pub fn code_in(self, option: &str) -> Option<&str> {
        let long: &[&str] = match self {
            Language::Node => &["--eval", "--print"],
            Language::Php => &["--run", "--process-begin", "--process-code", "--process-end"],
            Language::Awk => &["--source"],
            Language::Other => &["--eval", "--eval-string", "--execute", "-eval", "-run", "-batch-eval"],
            _ => &[],
        };
        for name in long {
            match option.strip_prefix(name) {
                Some("") => return Some(""),
                Some(rest) if rest.starts_with('=') => return rest.get(1..),
                _ => {}
            }
        }
        let letters = option.strip_prefix('-').filter(|l| !l.starts_with('-'))?;
        // Letters whose value is code, and those whose value is something else.
        let (code, valued) = match self {
            Language::Python => ("c", "mWX"),
            Language::Perl => ("eE", "MmIiFxDC0"),
            Language::Ruby => ("e", "rICEFKxWTi"),
            Language::Node => ("ep", "rC"),
            Language::Php => ("rBER", "dcftz"),
            Language::Lua => ("e", "l"),
            Language::Awk => ("e", "fvFi"),
            Language::Other => ("eEcr", ""),
        };
        if self == Language::Node && letters == "pe" || self == Language::Other && letters.len() > 1 {
            return (letters == "pe").then_some("");
        }
        for (at, letter) in letters.char_indices() {
            if code.contains(letter) {
                return letters.get(at + letter.len_utf8()..);
            }
            if valued.contains(letter) || !letter.is_ascii_alphanumeric() {
                return None;
            }
        }
        None
    }
}

/// Whether a program runs what it has as a text: a command or code of its own.
pub(super) fn executes(code: &str) -> bool {
    const WORDS: &[&str] = &[
        "os.system(",
        "popen",
        "subprocess",
        "check_output",
        "system(",
        "system ",
        "exec ",
        "execSync(",
        "spawn(",
        "spawnSync(",
        "shell_exec",
        "passthru",
        "qx",
        "eval(",
        "eval ",
        "(eval)",
        "os.exec",
        "pty.spawn",
        "child_process",
        "IO.popen",
    ];
    WORDS.iter().any(|w| code.contains(w))
        // Not the one of a regular expression.
        || code.match_indices("exec(").any(|(at, _)| !code[..at].ends_with('.'))
}
