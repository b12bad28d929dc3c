//! Programs that talk to other machines: what they send, what they fetch.

use super::eval::Machine;
use super::registries;
use super::value::{HOLE, Taint, Val};
use crate::policy::web::{self, Fetcher};

/// Files that build tools, test runners and shells run because of their name.
const RUN_BY_TOOLS: &[&str] = &[
    "conftest.py",
    "setup.py",
    "noxfile.py",
    "tox.ini",
    "build.rs",
    "package.json",
    "makefile",
    "gnumakefile",
    "justfile",
    "rakefile",
    "gemfile",
    "build.gradle",
    "build.gradle.kts",
    "cmakelists.txt",
    "jenkinsfile",
    "dockerfile",
    "gulpfile.js",
    "gruntfile.js",
    "webpack.config.js",
    "vite.config.js",
    "vite.config.ts",
    "jest.config.js",
    "sitecustomize.py",
    "usercustomize.py",
];

impl Machine<'_> {
    /// The network rules; `None` when `base` is no network program.
    pub(super) fn network(&mut self, base: &str, args: &[Val], stdin: &Val) -> Option<Val> {
        match base {
            "curl" | "curlie" => Some(self.curl(args, stdin)),
            "wget" | "wget2" => Some(self.wget(args)),
            "http" | "https" | "xh" | "httpie" => Some(self.httpie(args, stdin)),
            "aria2c" | "axel" if args.iter().any(|a| a.text.contains("://")) => {
                self.state.unpacked = true;
                for a in args {
                    self.address(a);
                    let name = a.text.rsplit('/').next().unwrap_or_default();
                    if a.text.contains("://") && !name.is_empty() {
                        self.receives(vec![a.map(name)], &Val::unknown(Taint::NET));
                    }
                }
                Some(Val::unknown(Taint::NET))
            }
            "aria2c" | "axel" | "lynx" | "w3m" | "links" | "elinks" | "httrack" => {
                for a in args {
                    self.address(a);
                }
                Some(Val::unknown(Taint::NET))
            }
            "nc" | "ncat" | "netcat" | "socat" | "telnet" | "nc.openbsd" | "nc.traditional" | "pwncat"
            | "websocat" | "wscat" => Some(self.raw(base, args, stdin)),
            "scp" | "sftp" | "rsync" | "rclone" | "lftp" | "ftp" | "tftp" | "ncftpput" | "croc"
            | "wormhole" | "magic-wormhole" | "s3cmd" | "gsutil" | "azcopy" | "mc" | "b2" | "unison"
            | "smbclient" => Some(self.copy_out(base, args, stdin)),
            "dig" | "nslookup" | "host" | "drill" | "ping" | "ping6" | "getent" | "whois" | "traceroute"
            | "tracepath" | "resolvectl" | "dog" | "doggo" | "kdig" | "delv" | "fping" | "hping3" | "mtr"
            | "arping" => {
                for a in args {
                    self.read_options_file(a);
                    if a.taint.any(Taint::LOCAL) {
                        self.deny(
                            "exfil.dns",
                            "The command puts data of this machine into a name that it looks up.",
                        );
                    } else if web::encoded_host(&a.text.to_lowercase()) {
                        self.ask("exfil.dns", "The name that is looked up carries encoded data.");
                    }
                }
                Some(Val::unknown(Taint::NET))
            }
            "mail" | "mailx" | "mutt" | "sendmail" | "msmtp" | "swaks" | "ssmtp" | "s-nail" | "neomutt"
            | "mpack" => {
                for a in args {
                    self.read_file(a);
                }
                self.ask("exfil.mail", "The command sends a mail. A person has to agree.");
                Some(Val::default())
            }
            "ssh-copy-id" | "ngrok" | "cloudflared" | "chisel" | "frpc" | "bore" | "localtunnel" | "lt"
            | "tailscale" | "autossh" | "sshuttle" | "gs-netcat" | "devtunnel" => {
                if args
                    .iter()
                    .any(|a| matches!(a.text.as_str(), "--version" | "version" | "--help" | "status"))
                {
                    return Some(Val::default());
                }
                self.ask("net.tunnel", "The command opens this machine to others. A person has to agree.");
                Some(Val::default())
            }
            "twine" | "flit" | "devpi" => {
                if args.iter().any(|a| matches!(a.text.as_str(), "upload" | "publish" | "push")) {
                    self.ask("publish.package", "The command publishes a package. A person has to agree.");
                }
                Some(Val::default())
            }
            "gem" | "cargo" | "hatch" | "poetry" | "uv" | "mvn" | "gradle" | "dotnet" | "nuget" | "helm"
            | "vsce" | "ovsx" | "pdm" | "lerna" | "goreleaser" | "changeset" | "gradlew" | "mvnw" | "mix"
            | "luarocks" | "cpan-upload" | "conan" | "pod" | "firebase" | "netlify" | "vercel" | "surge"
            | "wrangler" | "flyctl" | "fly" | "heroku" | "eb" | "serverless" | "sls" | "amplify"
            | "gh-pages" | "deployctl" => {
                let verb = args
                    .iter()
                    .find(|a| !a.text.starts_with(['-', '+']))
                    .map(|a| a.text.clone())
                    .unwrap_or_default();
                let dry = args.iter().any(|a| matches!(a.text.as_str(), "--dry-run" | "-n" | "--help"));
                if matches!(
                    verb.as_str(),
                    "publish"
                        | "push"
                        | "yank"
                        | "owner"
                        | "deploy"
                        | "upload"
                        | "publishToMavenLocal"
                        | "release"
                        | "remove"
                        | "hex.publish"
                        | "trunk"
                        | "apps:destroy"
                        | "destroy"
                        | "delete"
                ) && !(dry
                    || base == "cargo" && verb == "remove"
                    || base == "dotnet" && verb == "publish"
                    || base == "uv" && verb == "remove"
                    || base == "poetry" && verb == "remove"
                    || base == "pdm" && verb == "remove")
                    || base == "dotnet" && verb == "nuget" && args.iter().any(|a| a.text == "push")
                    || matches!(base, "vercel" | "surge") && verb.is_empty() && !dry
                {
                    self.ask(
                        "publish.package",
                        format!("{base} {verb} changes what others get. A person has to agree."),
                    );
                }
                if matches!(verb.as_str(), "install" | "add" | "pip") {
                    let mut value = false;
                    for (i, a) in args.iter().enumerate() {
                        let next = args.get(i + 1).map(|v| v.text.as_str());
                        if std::mem::take(&mut value) {
                            continue;
                        }
                        if let Some(named) = registries::named(&a.text, next, base == "uv") {
                            if registries::usual(&named.value) {
                                value = named.next;
                                continue;
                            }
                            if named.value.contains("://") {
                                self.ask(
                                    "run.fetched",
                                    "The packages come from another index than the usual one.",
                                );
                            }
                        }
                        self.package_source(a);
                        if a.text == "--git" && args.get(i + 1).is_some_and(|v| v.text.contains("://"))
                            || a.text.starts_with("--git=")
                        {
                            self.ask(
                                "run.fetched",
                                "The package comes straight from an address. A person has to agree.",
                            );
                        }
                    }
                }
                None
            }
            "go" => {
                if matches!(args.first().map(|a| a.text.as_str()), Some("run" | "install" | "get")) {
                    for a in args {
                        if a.text.contains('@') && a.text.contains('.') && args[0].text == "run" {
                            self.ask("run.fetched", "The command runs code straight from another machine.");
                        }
                    }
                }
                None
            }
            "deno" => {
                if args.iter().any(|a| a.text.contains("://")) {
                    self.deny("run.fetched", "The command runs code straight from another machine.");
                }
                None
            }
            "pip" | "pip3" | "easy_install" | "conda" | "mamba" => {
                let mut value = false;
                for (i, a) in args.iter().enumerate() {
                    if std::mem::take(&mut value) {
                        continue;
                    }
                    let next = args.get(i + 1).map(|v| v.text.as_str());
                    if base.starts_with("pip")
                        && let Some(named) = registries::named(&a.text, next, true)
                    {
                        if registries::usual(&named.value) {
                            value = named.next;
                            continue;
                        }
                        self.ask(
                            "run.fetched",
                            "The packages come from another index than the usual one, or from one that is not checked.",
                        );
                    }
                    self.package_source(a);
                    if matches!(a.text.as_str(), "-r" | "--requirement" | "-c")
                        && let Some(file) = args.get(i + 1)
                    {
                        self.package_source(&file.clone());
                    }
                }
                if args.first().is_some_and(|a| a.text == "config")
                    && args.iter().any(|a| matches!(a.text.as_str(), "set" | "unset" | "edit"))
                {
                    self.ask(
                        "persist.config",
                        "The command changes the package manager's configuration for good.",
                    );
                }
                Some(Val::unknown(stdin.taint))
            }
            "gh" | "glab" | "hub" => Some(self.forge(base, args, stdin)),
            "aws" | "gcloud" | "az" | "doctl" | "ibmcloud" | "oci" | "linode-cli" | "hcloud" => {
                Some(self.cloud(base, args, stdin))
            }
            _ => None,
        }
    }

    pub(super) fn read_options_file(&mut self, a: &Val) {
        if let Some(file) = a.text.strip_prefix("-f").filter(|f| !f.is_empty()) {
            self.read_file(&a.map(file));
        } else if a.text.contains('/') || a.text.starts_with('.') {
            self.read_file(a);
        }
    }

    /// An address that is fetched or that data is sent to.
    pub(super) fn address(&mut self, a: &Val) {
        self.address_for(a, Fetcher::Command);
    }

    pub(super) fn address_for(&mut self, a: &Val, by: Fetcher) {
        if a.taint.any(Taint::LOCAL) {
            self.deny("exfil.address", "The address carries data of this machine.");
        }
        let text = a.text.as_str();
        if text.get(..5).is_some_and(|s| s.eq_ignore_ascii_case("file:")) {
            let file = a.map(text[5..].trim_start_matches("//"));
            self.read_file(&file);
            return;
        }
        let plain = text.replace(HOLE, "x");
        self.find(web::fetch(&plain, by, &self.scope.custom));
    }

    pub(super) fn sends(&mut self, sent: Taint, own: bool, base: &str) {
        if own {
            return;
        }
        if sent.any(Taint::SECRET.with(Taint::ENV)) {
            self.deny("exfil.secret", format!("{base} would send a secret to another machine."));
        } else if sent.any(Taint::FILE) {
            self.ask(
                "exfil.file",
                format!("{base} would send data of this machine to another one. A person has to agree."),
            );
        }
    }

    /// Files that a download makes.
    pub(super) fn fetched(&mut self, files: &[Val], urls: &[Val], named: bool, dir: &[Val]) {
        let mut all: Vec<Val> = files.to_vec();
        if named {
            for u in urls {
                let name = u
                    .text
                    .split(['?', '#'])
                    .next()
                    .unwrap_or_default()
                    .rsplit('/')
                    .next()
                    .unwrap_or_default();
                if !name.is_empty() {
                    all.push(u.map(name));
                }
            }
        }
        for file in all {
            if file.text == "-" {
                continue;
            }
            let file = match dir.first() {
                Some(d) => file.map(format!("{}/{}", d.text, file.text)),
                None => file,
            };
            self.write_file(&file, true);
            if let Some(dir) = dir.first() {
                self.lands_in(dir);
            }
            for path in self.meanings(&file) {
                let name = path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
                if RUN_BY_TOOLS.contains(&name.as_str()) {
                    self.ask("run.fetched", "A tool runs a file of this name by itself. Fetch it under another name and look at it first.");
                }
                if self.state.files.len() < super::limits::FILES {
                    self.state.files.insert(path, Val::unknown(Taint::NET));
                } else {
                    self.bound("a command that writes too many files");
                    break;
                }
            }
        }
    }

    pub(super) fn raw(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let text: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        let listens = text.iter().any(|a| a.starts_with('-') && !a.starts_with("--") && a.contains('l'))
            || text.iter().any(|a| a.to_uppercase().contains("LISTEN"));
        let probes = text.iter().any(|a| a.starts_with('-') && !a.starts_with("--") && a.contains('z'));
        for (i, a) in args.iter().enumerate() {
            if matches!(a.text.as_str(), "-e" | "-c" | "--exec" | "--sh-exec")
                && let Some(line) = args.get(i + 1).cloned()
                && base != "websocat"
            {
                self.deny("run.remote", "The command hands a shell to another machine.");
                self.text(&line, &[], &Val::default());
            }
            let upper = a.text.to_uppercase();
            if base == "socat" {
                if upper.contains("EXEC:") || upper.contains("SYSTEM:") || upper.contains("SHELL:") {
                    self.deny("run.remote", "The command hands a program to a socket.");
                }
                for prefix in ["FILE:", "OPEN:", "GOPEN:", "CREATE:"] {
                    if let Some(at) = upper.find(prefix) {
                        let file =
                            a.text[at + prefix.len()..].split(',').next().unwrap_or_default().to_owned();
                        self.read_file(&a.map(file));
                    }
                }
                if upper.contains("DOCKER.SOCK") {
                    self.ask("net.socket", "The command talks to the machine's containers.");
                }
            }
            if a.taint.any(Taint::LOCAL) {
                self.deny(
                    "exfil.socket",
                    "The command sends data of this machine to another one over a raw connection.",
                );
            }
        }
        let own = text.iter().any(|a| matches!(*a, "localhost" | "127.0.0.1" | "::1"))
            || base == "socat"
                && text.iter().all(|a| {
                    !a.to_uppercase().contains("TCP") || a.contains("localhost") || a.contains("127.0.0.1")
                });
        if stdin.taint.any(Taint::LOCAL) && !own {
            self.deny(
                "exfil.socket",
                "The command sends data of this machine to another one over a raw connection.",
            );
        } else if (!own || listens)
            && !probes
            && !args.is_empty()
            && !text.iter().any(|a| matches!(*a, "-h" | "--help" | "--version"))
        {
            self.ask("net.socket", format!("{base} opens a raw connection. A person has to agree."));
        }
        Val::unknown(Taint::NET)
    }
}

pub(super) fn loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, r)| r);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return false;
    }
    let name = if host.starts_with('[') {
        host.split(']').next().unwrap_or_default().trim_start_matches('[')
    } else {
        host.split(':').next().unwrap_or_default()
    };
    matches!(name, "localhost" | "127.0.0.1" | "::1" | "0.0.0.0") || name.ends_with(".localhost")
}
