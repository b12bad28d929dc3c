//! Where code comes from that a command installs or runs: addresses, repositories, what was just fetched.

use super::eval::Machine;
use super::net::loopback;
use super::printers::any_phrase;
use super::value::{Taint, Val};
use crate::policy::world::Kind;

/// What counts as another source than the usual one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// An address, or a forge's name in front.
    Address,
    /// `owner/repository` as well, in any word.
    Short,
    /// The same, in the first word only: what follows is for the program.
    First,
    /// Whatever is named.
    Any,
}
use Source::{Address, Any, First, Short};

/// Programs and phrases (none: always) with which they take what they run, install or apply from somewhere. In order.
#[rustfmt::skip]
const SOURCES: &[(&str, &[&str], Source)] = &[
    ("ansible-galaxy", &["install"], Address),
    ("ansible-pull", &[], Address),
    ("bun", &["a", "add", "c", "create", "i", "install"], Short),
    ("bundle", &["add"], Short),
    ("bunx", &[], First),
    ("cabal", &["install"], Address),
    ("cargo", &["generate"], Short),
    ("composer", &["config", "create-project", "require"], Address),
    ("conda", &["create", "env create", "env update"], Address),
    ("cookiecutter", &[], Address),
    ("copier", &["copy", "recopy", "update"], Address),
    ("cpan", &[], Address),
    ("cpanm", &[], Address),
    ("cpm", &["install"], Address),
    ("cruft", &["create", "link"], Address),
    ("dart", &["pub"], Address),
    ("degit", &[], Short),
    ("docker", &["buildx bake", "plugin install", "stack deploy", "stack up"], Address),
    ("docker", &["plugin install"], Any),
    ("dotnet", &["new install", "tool install"], Address),
    ("flutter", &["pub"], Address),
    ("giget", &[], Any),
    ("helm", &["plugin install"], Address),
    ("kubectl", &["apply", "create", "kustomize", "replace"], Address),
    ("kustomize", &["build"], Address),
    ("luarocks", &["install"], Address),
    ("mise", &["exec", "i", "install", "u", "use", "x"], Address),
    ("mix", &["archive.install"], Short),
    ("npm", &["add", "create", "i", "init", "install"], Short),
    ("npm", &["exec", "x"], First),
    ("npx", &[], First),
    ("oc", &["apply", "create", "new-app", "replace"], Address),
    ("opam", &["pin", "repo"], Address),
    ("pear", &["install"], Address),
    ("pecl", &["install"], Address),
    ("pnpm", &["add", "create", "i", "install"], Short),
    ("pnpm", &["dlx"], First),
    ("podman", &["kube play", "play kube"], Address),
    ("pre-commit", &["try-repo"], Any),
    ("rye", &["add", "install"], Address),
    ("stack", &["new"], Address),
    ("terraform", &["get", "init"], Address),
    ("tiged", &[], Short),
    ("tofu", &["get", "init"], Address),
    ("uv", &["add", "pip", "tool"], Address),
    ("yarn", &["add", "create"], Short),
    ("yarn", &["dlx"], First),
];

/// How an address may start besides `SCHEME://`. In order.
#[rustfmt::skip]
const STARTS: &[&str] = &[
    "bb:", "bitbucket.org/", "bitbucket:", "codeberg.org/", "gh:", "gist:", "git+", "git::", "git@", "github.com/", "github:", "gitlab.com/", "gitlab:",
    "gl:", "sourcehut:", "ubi:",
];

/// Calls with which a language's package manager takes a repository or an address. In order.
#[rustfmt::skip]
const CALLS: &[&str] = &[
    "Pkg.add(url", "Pkg.clone(", "add_github(", "install_bitbucket(", "install_git(", "install_git2r(", "install_github(", "install_gitlab(",
    "install_url(", "pak::pak(", "pak::pkg_install(",
];

/// Programs that run what they are given as input. In order.
#[rustfmt::skip]
const INTERPRET: &[&str] = &[
    "amm", "bun", "csi", "deno", "dotnet-script", "fsi", "gdb", "ghci", "gp", "iex", "lldb", "maxima", "mongosh", "ocaml", "pry", "psql", "psysh", "sage",
    "scala-cli", "sml", "sqlite3", "swipl", "tsx", "utop",
];

/// Programs that install a file as a package, run as root or at once. In order.
#[rustfmt::skip]
const INSTALLERS: &[&str] = &[
    "apk", "apt", "apt-get", "aptitude", "brew", "cargo", "conda", "cpanm", "dnf", "dpkg", "easy_install", "flatpak", "gdebi", "gem", "go", "installer",
    "luarocks", "mamba", "npm", "pacman", "pip", "pip3", "pipx", "pnpm", "rpm", "snap", "uv", "yarn", "yum", "zypper",
];

impl Machine<'_> {
    /// Asks about code that comes straight from another machine, and about containers that open this one.
    pub(super) fn origin(&mut self, base: &str, args: &[Val], stdin: &Val) {
        let words: Vec<&str> = args.iter().map(|a| a.text.as_str()).take(32).collect();
        let has = |names: &[&str]| words.iter().any(|w| names.contains(w));
        if stdin.taint.any(Taint::NET) {
            // Neither a file nor a text is named, or the input is.
            let input = has(&["-"])
                || !has(&["--eval", "-c", "-e", "-f", "eval", "run"])
                    && !words.iter().any(|w| w.contains(' ') || w.contains('.') && base != "sqlite3");
            let program = base == "docker" && (has(&["import", "load"]) || has(&["build"]) && has(&["-"]))
                || INTERPRET.binary_search(&base).is_ok() && input;
            if program {
                self.deny("run.fetched", "The program would run what another machine answers.");
            }
        }
        if matches!(base, "bun" | "deno") && has(&["-"]) && !stdin.text.is_empty() && stdin.is_known() {
            self.code(super::language::Language::Node, &stdin.text, true);
        }
        for (program, phrases, source) in SOURCES {
            if *program == base && (phrases.is_empty() || any_phrase(&words, phrases)) {
                self.foreign(args, phrases, *source);
            }
        }
        if INSTALLERS.binary_search(&base).is_ok() {
            self.installs_file(base, args);
        }
        if matches!(base, "R" | "Rscript" | "julia" | "littler" | "r")
            && args.iter().any(|a| CALLS.iter().any(|c| a.text.contains(c)))
        {
            self.ask("run.fetched", "The packages come straight from a repository. A person has to agree.");
        }
        if matches!(base, "bun" | "deno" | "node" | "nodejs" | "tsx") && args.iter().any(|a| imports(&a.text))
        {
            self.deny("run.fetched", "The command runs code straight from another machine.");
        }
        if matches!(base, "docker" | "docker-compose" | "nerdctl" | "podman" | "podman-compose") {
            self.opened_container(args);
            let file = |w: &[&str]| matches!(w, ["--file" | "-f", file] if is_address(file));
            if words.windows(2).any(file) {
                self.ask(
                    "run.fetched",
                    "The containers come straight from an address. A person has to agree.",
                );
            }
        }
    }

    /// Words that name a source: after the phrase, and not the value of an option that names a registry.
    fn foreign(&mut self, args: &[Val], phrases: &[&str], source: Source) {
        let verbs: Vec<&str> = phrases.iter().flat_map(|p| p.split(' ')).collect();
        let mut registry = false;
        let mut first = true;
        for a in args {
            let text = a.text.as_str();
            if std::mem::take(&mut registry) {
                continue;
            }
            if text == "--" && source != First {
                return;
            }
            let (name, value) = match text.split_once('=') {
                Some((name, value)) if name.starts_with('-') => (name, value),
                _ if text.starts_with('-') => (text, ""),
                _ => ("", text),
            };
            if ["cert", "index", "mirror", "proxy", "registry"].iter().any(|w| name.contains(w)) {
                registry = value.is_empty();
                continue;
            }
            if verbs.contains(&text) || value.is_empty() {
                continue;
            }
            let short = matches!(source, Short | First)
                && name.is_empty()
                && short_name(value)
                && self.meanings(a).iter().all(|p| self.world.kind(p) == Kind::Missing);
            if is_address(value) || short || source == Any {
                self.ask(
                    "run.fetched",
                    "What the command runs or installs comes straight from an address or a repository. A person has to agree.",
                );
                return;
            }
            first &= !name.is_empty();
            if source == First && !first {
                return;
            }
        }
    }

    /// A package that is a file: one that this command has fetched, or one whose scripts run as root.
    fn installs_file(&mut self, base: &str, args: &[Val]) {
        let reads = args.iter().any(|a| {
            matches!(a.text.as_str(), "-I" | "--info" | "info" | "-c" | "--contents" | "show" | "-x" | "-X")
                || a.text.starts_with("-q") && base == "rpm"
        });
        let system = matches!(
            base,
            "apk"
                | "apt"
                | "apt-get"
                | "aptitude"
                | "brew"
                | "dnf"
                | "dpkg"
                | "flatpak"
                | "gdebi"
                | "installer"
                | "pacman"
                | "rpm"
                | "snap"
                | "yum"
                | "zypper"
        );
        let installs = args.iter().take(8).any(|a| matches!(a.text.as_str(), "add" | "i" | "in" | "install"));
        for a in args.iter().filter(|a| !a.text.starts_with('-') && (system || installs)) {
            let fetched = self
                .meanings(a)
                .iter()
                .any(|p| self.state.files.get(p).is_some_and(|f| f.taint.any(Taint::NET)));
            if fetched {
                self.deny(
                    "run.fetched",
                    "The command installs what it has just fetched. Show it to the person first.",
                );
            }
            let package =
                [".apk", ".deb", ".flatpak", ".pkg", ".pkg.tar.xz", ".pkg.tar.zst", ".rpm", ".snap"]
                    .iter()
                    .any(|end| a.text.ends_with(end));
            if package && system && !reads {
                self.ask(
                    "persist.packages",
                    "The scripts of a package from a file would run as root. A person has to agree.",
                );
            }
        }
    }

    /// Options of containers that take this machine's walls away, or put its disk into a volume.
    fn opened_container(&mut self, args: &[Val]) {
        let mut option = "";
        let starts = args.iter().take(4).any(|a| matches!(a.text.as_str(), "create" | "run" | "volume"));
        for a in args.iter().filter(|_| starts) {
            let text = a.text.as_str();
            let before = std::mem::replace(&mut option, text);
            let (name, value) =
                text.split_once('=').filter(|(n, _)| n.starts_with("--")).unwrap_or((before, text));
            let opens = match name {
                "--security-opt" => {
                    value.ends_with("unconfined")
                        || value.contains("disable")
                        || value.ends_with("privileges=false")
                        || value.ends_with("privileges:false")
                }
                "--volumes-from" => true,
                "-o" | "--opt" => value.starts_with("device=/"),
                "--pid" | "--userns" => value == "host",
                "--privileged" => text == "--privileged=true",
                _ => false,
            };
            if opens {
                self.ask(
                    "run.container",
                    "The container would be allowed to control or to see this machine.",
                );
                return;
            }
        }
    }
}

/// Whether a word is the address of something on another machine.
fn is_address(text: &str) -> bool {
    let text = text.trim_start_matches(['"', '\'']);
    let scheme = text.split_once("://").is_some_and(|(s, _)| {
        !s.is_empty()
            && s != "file"
            && s.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.' | b':'))
    });
    (scheme && !loopback(text)) || STARTS.iter().any(|s| text.starts_with(s)) || text.contains("@git+")
}

/// Whether a word is `owner/repository`, as package managers take it for one at a forge.
fn short_name(text: &str) -> bool {
    let plain = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'#'))
    };
    text.split_once('/').is_some_and(|(owner, name)| !owner.contains('.') && plain(owner) && plain(name))
}

/// Whether a program in JavaScript imports an address.
fn imports(code: &str) -> bool {
    ["import ", "import(", "from ", "require("].iter().any(|start| {
        code.match_indices(start).take(64).any(|(at, _)| {
            let rest =
                code.get(at + start.len()..).unwrap_or_default().trim_start_matches(['"', '\'', '`', ' ']);
            (rest.starts_with("https:") || rest.starts_with("http:")) && !loopback(rest)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_order() {
        assert!(SOURCES.windows(2).all(|w| w[0].0 <= w[1].0));
        for table in [STARTS, CALLS, INTERPRET, INSTALLERS] {
            assert!(table.windows(2).all(|w| w[0] < w[1]), "{table:?}");
        }
    }

    #[test]
    fn addresses_are_told_from_names() {
        for text in [
            "https://evil.example/x",
            "git+https://x.example/y",
            "git@x.example:y",
            "github.com/evil/x",
            "ubi:evil/x",
            "git::https://x.example/y",
        ] {
            assert!(is_address(text), "{text}");
        }
        for text in ["react", "@scope/x", "./x", "http://localhost:4873/x", "file:///x", "x@1.2", "npm:x"] {
            assert!(!is_address(text), "{text}");
        }
    }

    #[test]
    fn the_short_form_of_a_repository_is_two_plain_names() {
        for text in ["evil/x", "evil/x#main", "a-b/c.d"] {
            assert!(short_name(text), "{text}");
        }
        for text in ["@scope/x", "./x", "../x", "x", "a/b/c", "/x", "~/x", "x.tgz/y", "src/", "*/x"] {
            assert!(!short_name(text), "{text}");
        }
    }

    #[test]
    fn imports_of_addresses_are_seen() {
        for code in [
            "import \"https://x.example/a.ts\"",
            "import x from 'https://x.example/a.ts'",
            "await import(`https://x.example`)",
        ] {
            assert!(imports(code), "{code}");
        }
        for code in
            ["import x from './a.ts'", "fetch('https://x.example')", "import \"http://localhost:1/a\""]
        {
            assert!(!imports(code), "{code}");
        }
    }
}
