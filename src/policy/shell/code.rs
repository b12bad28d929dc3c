//! Programs in other languages on the command line: their literals, calls and imports.
//!
//! This is no parser of those languages. It takes out string literals, joins the ones that are added up, and looks at
//! what the program could do with them: read or write a path, run a command, delete, talk to another machine.

use super::data::destructive_sql;
use super::eval::Machine;
use super::language::Language;
use super::literals::{environment, globs, joins, literals};
use super::value::{Taint, Val};
use crate::policy::world::Kind;
use crate::policy::{paths, tools, web};

/// Most code that is looked at, in bytes.
const CODE_MAX: usize = 128 * 1024;

#[rustfmt::skip]
const RUNS: &[&str] = &["system", "popen", "exec(", "execSync", "spawn", "check_output", "check_call", "subprocess", "shell_exec", "passthru", "proc_open", "pty.", "os.exec", "execve", "execFile", "Open3", "IO.popen", "%x", "qx", "`", "child_process", "os.execute", "io.popen", "do shell script", "| getline", "|getline", "run(", "backtick", "Process", "shellescape", "Deno.Command", "Bun.$", "| \"", "posix_spawn", "commands.get", "exec \"", "exec '"];
#[rustfmt::skip]
const READS: &[&str] = &["open", "read", "slurp", "cat", "file_get_contents", "fopen", "File.", "IO.", "<F", "<$", "<>", "ARGV", "load", "getline", "include", "require", "createReadStream", "Path(", "copy", "glob", "scandir", "listdir", "walk", "opendir", "readdir", "fileinput", "linecache", "mmap", "lines(", "dofile", "loadfile", "text(", "json(", "file(", "parse", "source", "rename", "symlink", "link", "sqlite", "ConfigParser", "dotenv", "while ((", "\\input", "\\include", "\\verbatiminput", "do \"", "do '"];
#[rustfmt::skip]
const WRITES: &[&str] = &["write", "'w", "\"w", "'a", "\"a", "append", "dump", "copy", "rename", "replace", "symlink", "link(", "chmod", "truncate", "unlink", "remove", "mkdir", "move", "put_contents", ">", "save", "touch", "rmSync", "rm("];
#[rustfmt::skip]
const NETWORK: &[&str] = &["socket", "urllib", "requests", "http", "httpx", "aiohttp", "fetch(", "Net::HTTP", "IO::Socket", "LWP", "smtplib", "ftplib", "telnetlib", "paramiko", "dns.", "gethostby", "getaddrinfo", "XMLHttpRequest", "axios", "net.connect", "createConnection", "curl_", "fsockopen", "stream_socket", "TCPSocket", "open-uri", "/inet/", "WebSocket", "nslookup", "dgram", "got(", "boto", "websocket", "mechanize", "HTTP.", "Mojo", "HTTP::", "dns_get_record", "checkdnsrr", "getmxrr", "webbrowser", "url-retrieve", "url-copy-file", "open-network-stream", "make-network-process", "download.file", "readLines(\"http", "readLines('http", "read.csv(\"http", "read.csv('http", "url(\"http", "url('http", "get(\"http", "get('http", "file_get_contents(\"http", "file_get_contents('http", "Downloads.download", "asyncio.open_connection", "imaplib", "poplib", "xmlrpc", "WWW::"];
/// Modules of Node.js that do, by the names under which they are asked for.
#[rustfmt::skip]
const NODE_NETWORK: &[&str] = &["\"dns", "'dns", "`dns", "node:dns", "\"net\"", "'net'", "`net`", "node:net", "\"tls\"", "'tls'", "node:tls"];
#[rustfmt::skip]
const REMOVES: &[&str] = &["rmtree", "rmSync", "rm_rf", "rm_r", "remove_tree", "removedirs", "rmdirSync", "rimraf", "remove_entry", "remove_dir_all", "deltree", "fs.rm(", "rm(", "remove_dir", "emptyDir", "FileUtils.remove", "unlinkSync", "os.remove", "os.unlink", "shutil.move", "delete_tree", "Deno.remove", "unlink"];
#[rustfmt::skip]
const DECODES: &[&str] = &["b64decode", "base64", "fromhex", "unhexlify", "atob(", "decode64", "decode_base64", "unpack", "codecs.decode", "rot13", "marshal", "zlib.decompress", "String.fromCharCode", "chr(", "pack(", "'hex'", "\"hex\"", "[::-1]", ".reverse(", "reversed("];
#[rustfmt::skip]
const EVALUATES: &[&str] = &["eval ", "Function(", "__import__", "loadstring", "runInThisContext", "vm.run", "vm.Script", "instance_eval", "class_eval", "create_function", "importlib", "runpy", "(eval)"];
/// Some that are methods of harmless things as well: `re.compile(`, `json.load(`, `model.eval()`.
const EVALUATES_BARE: &[&str] = &["eval(", "exec(", "compile(", "load("];

/// Every file of a directory, dotted ones among them.
const LISTS: &[&str] =
    &["listdir(", "scandir(", "iterdir(", "opendir", "readdir", "os.walk", "Dir.entries", "Dir.children"];
/// What is in a file.
const OPENS: &[&str] = &[
    "open(",
    "read_text",
    "readFile",
    "File.read",
    "open F",
    "open my",
    "<F>",
    "slurp",
    "file_get_contents",
];
/// Some of them, by name.
const PICKS: &[&str] =
    &["endswith(", "endsWith(", "suffix", "splitext", "extname", "=~", "fnmatch", "grep {", ".test("];

/// Whether a program evaluates a text as code.
fn evaluates(code: &str) -> bool {
    const OWNERS: &[&str] = &["builtins.", "window.", "globalThis.", "global.", "this."];
    let bare = |before: &str| {
        !before.ends_with("->")
            && !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '/'))
            || OWNERS.iter().any(|o| before.ends_with(o))
    };
    EVALUATES.iter().any(|w| code.contains(w))
        || EVALUATES_BARE.iter().any(|w| code.match_indices(w).any(|(at, _)| bare(&code[..at])))
}

impl Machine<'_> {
    /// Judges a program. `inline`: it stands on the command line, so every word of it is the agent's; otherwise it is a
    /// file, and only what no project does is stopped.
    pub(super) fn code(&mut self, language: Language, text: &str, inline: bool) {
        let code = text.get(..CODE_MAX).unwrap_or(text);
        if text.len() > CODE_MAX && inline {
            return self.bound("a program that is too long");
        }
        let literals = literals(code);
        if literals.len() >= super::limits::LITERALS && inline {
            return self.bound("a program with too many texts");
        }
        let has = |words: &[&str]| words.iter().any(|w| code.contains(w));
        // `open(F, "cat x|")`, `open("|cat x")`.
        let piped = |l: &String| l.contains(' ') && (l.trim_end().ends_with('|') || l.starts_with('|'));
        let runs = has(RUNS) || inline && literals.iter().any(piped);
        // Of languages that are hardly known the names of what reads are not known either.
        let says = has(&["display notification", "display dialog", "say "]);
        let reads = has(READS) || language == Language::Awk || language == Language::Other && inline && !says;
        let writes = has(WRITES);
        let network = has(NETWORK)
            || language == Language::Node && has(NODE_NETWORK)
            || literals.iter().any(|l| l.starts_with("/inet/"));
        let mut local = false;
        let home = has(&[
            "expanduser",
            "homedir",
            "Path.home",
            "Dir.home",
            "process.env.HOME",
            "$ENV{HOME}",
            "environ['HOME']",
            "environ[\"HOME\"]",
            "ENV['HOME']",
            "ENV[\"HOME\"]",
            "getenv('HOME')",
            "getenv(\"HOME\")",
            "$HOME",
            "getpwuid",
            "userInfo",
        ]);
        let joined = joins(&literals);
        if language == Language::Other {
            for word in code
                .split(|c: char| c.is_whitespace() || "[](){};\"'".contains(c))
                .filter(|w| w.len() > 3 && w.len() < 256)
                .take(256)
            {
                self.literal(word, inline, reads, writes, home);
            }
        }
        for literal in literals.iter().chain(&joined) {
            if literal.len() > 1024 || literal.contains('\n') || literal.is_empty() {
                continue;
            }
            local |= self.literal(literal, inline, reads, writes, home);
        }
        for path in globs(&literals) {
            for v in self.words(&super::run::quoted(&path).replace("'", "")) {
                if v.text != path {
                    self.literal(&v.text, inline, reads, false, home);
                }
            }
        }
        let carried = if runs { self.code_runs(code, &literals) } else { Taint::NONE };
        // A text that the program evaluates is a program as well.
        if inline && evaluates(code) && self.depth < super::limits::DEPTH {
            self.depth += 1;
            for inner in
                literals.iter().chain(&joined).filter(|l| l.contains('(') && l.len() < code.len()).take(16)
            {
                self.code(language, inner, true);
            }
            self.depth -= 1;
        }
        if inline && has(LISTS) && has(OPENS) && !has(PICKS) {
            for name in self.world.list(&self.cwd()) {
                self.literal(&format!("./{name}"), true, true, false, false);
            }
        }
        if has(REMOVES) {
            self.code_removes(code, &literals, home, inline);
        }
        if inline && environment(language, code, &literals) {
            self.ask("secret.env", "The program prints variables of the environment that hold credentials.");
        }
        let own = literals.iter().any(|l| l.contains("localhost") || l.contains("127.0.0.1"))
            && !literals
                .iter()
                .any(|l| l.contains("://") && !l.contains("localhost") && !l.contains("127.0.0.1"));
        self.reaches |= network;
        // What such a program prints is what it got.
        self.told |= network && inline && !own;
        if network && inline {
            for l in literals.iter().filter(|l| l.starts_with("http://") || l.starts_with("https://")) {
                self.find(web::fetch(l, web::Fetcher::Command, &self.scope.custom));
            }
            let gathers = has(&[
                "os.walk",
                "rglob",
                "readdir",
                "listdir",
                "scandir",
                "glob(",
                "getuser",
                "gethostname",
                "platform.uname",
                "os.environ",
                "process.env",
                "uname",
            ]);
            if !own
                && (local && reads
                    || carried.any(Taint::LOCAL)
                    || gathers && has(&["data=", "post", "POST", "send", "encode", "put("]))
            {
                self.ask(
                    "exfil.code",
                    "The program sends data of this machine to another one. A person has to agree.",
                );
            }
            if evaluates(code) && !own
                || has(&["dup2", "pty.spawn", "STDIN->fdopen", "/bin/sh -i", "net.connect"])
                    && (runs || has(&["dup2"]))
            {
                self.deny(
                    "run.fetched",
                    "The program runs what another machine answers, or hands it a shell.",
                );
            }
            if has(&[
                "socket.socket",
                "IO::Socket",
                "TCPSocket",
                "fsockopen",
                "net.connect",
                "createConnection",
                "/inet/",
                "smtplib",
                "dgram",
            ]) && !own
                && !has(&["bind((", "listen("])
            {
                self.ask("net.socket", "The program opens a raw connection. A person has to agree.");
            }
        }
        if inline
            && has(DECODES)
            && (evaluates(code) || runs)
            && !(language == Language::Node && !evaluates(code) && !runs)
        {
            let harmless =
                !evaluates(code) && !has(&["system", "popen", "subprocess", "child_process", "exec"]);
            if !harmless {
                self.ask("run.hidden", "The program decodes a text and runs it. Write it out.");
            }
        }
        if inline
            && has(DECODES)
            && has(&["open(", "readFile", "File.read", "file_get_contents", "read_text"])
            && !literals.iter().any(|l| l.contains('.') && l.len() > 3)
        {
            self.ask("secret.hidden", "The program reads a file whose name it decodes. Write the name out.");
        }
        if literals.iter().any(|l| destructive_sql(l))
            && has(&["execute", "query", "cursor", "connect", "raw("])
            && inline
        {
            self.ask("destroy.data", "The program destroys data in a database. A person has to agree.");
        }
        if inline {
            self.code_reaches_seats(code);
        }
    }

    /// A literal that may be a path. Says whether it is a file here.
    pub(super) fn literal(
        &mut self,
        literal: &str,
        inline: bool,
        reads: bool,
        writes: bool,
        home: bool,
    ) -> bool {
        let text = literal.trim();
        if [
            "hook.sock",
            "daemon.lock",
            ".local/state/jess",
            ".config/jess",
            "/jess/sessions",
            "/jess/lineage",
            "claude-code/managed",
        ]
        .iter()
        .any(|p| text.contains(p))
        {
            self.deny("guard.files", "The program names the guard's own files; agents leave them alone.");
        }
        let text = text.trim_start_matches(['<', '>', '+']).trim_start();
        // `php://filter/resource=FILE`
        let text = match text.split_once("resource=") {
            Some((filter, file)) if filter.starts_with("php://") => file,
            _ => text,
        };
        if text.is_empty() || text.contains("://") && !text.starts_with("file:") {
            return false;
        }
        let mut candidates = vec![text.to_owned()];
        if home && !text.starts_with(['/', '~']) {
            candidates.push(format!("{}/{text}", self.scope.home.to_string_lossy()));
        }
        if home && text.starts_with("/.") {
            candidates.push(format!("{}{text}", self.scope.home.to_string_lossy()));
        }
        let mut here = false;
        for c in candidates {
            let c = match c.strip_prefix("~/") {
                Some(rest) => format!("{}/{rest}", self.scope.home.to_string_lossy()),
                None => c,
            };
            let c = c
                .replace("$HOME", &self.scope.home.to_string_lossy())
                .replace("${HOME}", &self.scope.home.to_string_lossy());
            let value = Val::known(c.clone());
            for path in self.meanings(&value) {
                let exists = self.world.kind(&path) != Kind::Missing;
                here |= exists && path != self.scope.project && self.world.kind(&path) == Kind::File;
                if let Some(what) = self.is_secret(&path)
                    && reads
                    && (exists || c.contains('/') || c.starts_with('.'))
                    && !(what == "a secret file of the project" && (!inline || self.lenient))
                {
                    self.find(tools::secret_denied(&path, what));
                }
                if writes
                    && inline
                    && (exists || c.contains('/') || c.starts_with('.') || c.ends_with(".md"))
                    && let Some(what) = paths::protected(&path, self.scope)
                    && (what != "a system file" || exists)
                    && !(what == "a system file"
                        && (path.starts_with("/usr")
                            || path.starts_with("/bin")
                            || path.starts_with("/lib")
                            || path == std::path::Path::new("/root")))
                {
                    self.find(tools::protected_denied(&path, what));
                }
                if reads
                    && inline
                    && paths::secret_place(&path, self.scope)
                        .is_some_and(|w| w == "a directory of credentials")
                {
                    self.find(tools::secret_denied(&path, "a directory of credentials"));
                }
            }
        }
        here
    }

    /// Literals that are commands, and lists of literals that are argument vectors.
    pub(super) fn code_runs(&mut self, code: &str, literals: &[String]) -> Taint {
        let before = self.found.clone();
        let mut out = Taint::NONE;
        for l in literals.iter().take(64) {
            let first = l.trim_start_matches(['|', ' ']).split([' ', ';', '|']).next().unwrap_or_default();
            if l.contains([' ', '/', ';'])
                && first.len() > 1
                && !l.contains("://") | l.contains(' ')
                && l.len() < 8192
            {
                let text = l.trim_matches(['|', ' ']).to_owned();
                let ran = self.subshell(|m| m.program(&text, &Val::default()));
                self.told |= ran.taint.any(Taint::NET);
                out = out.with(ran.taint);
                if self.found.rule == "shell.syntax" {
                    self.found = before.clone();
                }
            }
        }
        for start in ["%x", "qx"] {
            for (at, _) in code.match_indices(start).take(4) {
                let rest = &code[at + 2..];
                let Some(open) = rest.chars().next() else { continue };
                let close = match open {
                    '(' => ')',
                    '{' => '}',
                    '[' => ']',
                    '<' => '>',
                    c if c.is_ascii_punctuation() => c,
                    _ => continue,
                };
                if let Some(end) = rest[open.len_utf8()..].find(close) {
                    let line = rest[open.len_utf8()..open.len_utf8() + end].to_owned();
                    let ran = self.subshell(|m| m.program(&line, &Val::default()));
                    self.told |= ran.taint.any(Taint::NET);
                    out = out.with(ran.taint);
                }
            }
        }
        // `['rm', '-rf', path]`, `("cat", ".env")`
        for i in 0..literals.len().min(64) {
            let l = &literals[i];
            if l.contains(' ')
                || !matches!(
                    l.rsplit('/').next().unwrap_or_default(),
                    "rm" | "cat"
                        | "sh"
                        | "bash"
                        | "zsh"
                        | "curl"
                        | "wget"
                        | "git"
                        | "nc"
                        | "cp"
                        | "mv"
                        | "dd"
                        | "python3"
                        | "python"
                        | "node"
                        | "perl"
                        | "ssh"
                        | "scp"
                        | "head"
                        | "tail"
                        | "tar"
                        | "base64"
                        | "find"
                        | "sudo"
                        | "env"
                        | "chmod"
                        | "printenv"
                        | "kill"
                        | "pkill"
                        | "crontab"
                        | "less"
                        | "awk"
                        | "sed"
                )
            {
                continue;
            }
            let mut argv: Vec<Val> =
                literals[i..(i + 8).min(literals.len())].iter().map(|l| Val::known(l.clone())).collect();
            if argv.len() == 1 || (l == "rm" && code.contains("HOME")) {
                argv.push(Val::unknown(Taint::NONE));
            }
            let ran = self.run(&argv, &Val::default());
            self.told |= ran.taint.any(Taint::NET);
            out = out.with(ran.taint);
        }
        out
    }

    pub(super) fn code_removes(&mut self, code: &str, literals: &[String], home: bool, inline: bool) {
        let tree = [
            "rmtree",
            "rmSync",
            "rm_rf",
            "rm_r",
            "remove_tree",
            "rmdirSync",
            "rimraf",
            "remove_entry",
            "remove_dir",
            "fs.rm(",
            "rm(",
            "Deno.remove",
            "emptyDir",
            "FileUtils.remove",
        ]
        .iter()
        .any(|w| code.contains(w));
        let mut named = false;
        for l in literals.iter().filter(|l| {
            !l.is_empty()
                && l.len() < 512
                && !l.contains('\n')
                && !matches!(
                    l.as_str(),
                    "fs" | "fs/promises"
                        | "node:fs"
                        | "utf8"
                        | "shutil"
                        | "fileutils"
                        | "rimraf"
                        | "os"
                        | "path"
                )
        }) {
            if !inline && !l.contains('/') {
                continue;
            }
            let value = Val::known(l.replace("~/", &format!("{}/", self.scope.home.to_string_lossy())));
            let value = if l == "~" { Val::known(self.scope.home.to_string_lossy()) } else { value };
            if l.starts_with(['/', '.', '~'])
                || l.contains('/')
                || self.meanings(&value).iter().any(|p| self.world.kind(p) != Kind::Missing)
            {
                named = true;
                self.removal(&value, tree, false);
            }
        }
        if home && inline && !named {
            self.deny("destroy.tree", "The program deletes the operator's home directory or what is in it.");
        } else if home && inline {
            self.ask("destroy.outside", "The program deletes files in the operator's home directory.");
        } else if tree && !named && inline {
            self.ask(
                "destroy.unknown",
                "What the program deletes is only known when it runs. Name the directory.",
            );
        }
    }
}
