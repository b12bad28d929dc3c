//! Programs that talk to other machines: what they send, what they fetch.

use super::eval::Machine;
use super::options::Options;
use super::value::{HOLE, Taint, Val};
use crate::policy::web::{self, Fetcher};

impl Machine<'_> {
    /// The network rules; `None` when `base` is no network program.
    pub(super) fn network(&mut self, base: &str, args: &[Val], stdin: &Val) -> Option<Val> {
        match base {
            "curl" | "curlie" => Some(self.curl(args, stdin)),
            "wget" | "wget2" => Some(self.wget(args)),
            "http" | "https" | "xh" | "httpie" => Some(self.httpie(args, stdin)),
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
                    for (i, a) in args.iter().enumerate() {
                        self.package_source(a);
                        if matches!(a.text.as_str(), "--git" | "--index" | "--registry")
                            && args.get(i + 1).is_some_and(|v| v.text.contains("://"))
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
                for (i, a) in args.iter().enumerate() {
                    self.package_source(a);
                    let index =
                        ["--index-url", "-i", "--extra-index-url", "--find-links", "-f", "--trusted-host"];
                    if base.starts_with("pip")
                        && index.iter().any(|x| a.text == *x || a.text.starts_with(&format!("{x}=")))
                    {
                        let value = args.get(i + 1).map(|v| v.text.clone()).unwrap_or_default();
                        if !(value.contains("pypi.org")
                            || a.text.contains("pypi.org")
                            || value.contains("download.pytorch.org")
                            || a.text.contains("download.pytorch.org"))
                        {
                            self.ask(
                                "run.fetched",
                                "The packages come from another index than the usual one.",
                            );
                        }
                    }
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

    fn read_options_file(&mut self, a: &Val) {
        if let Some(file) = a.text.strip_prefix("-f").filter(|f| !f.is_empty()) {
            self.read_file(&a.map(file));
        } else if a.text.contains('/') || a.text.starts_with('.') {
            self.read_file(a);
        }
    }

    /// An address that is fetched or that data is sent to.
    fn address(&mut self, a: &Val) {
        if a.taint.any(Taint::LOCAL) {
            self.deny("exfil.address", "The address carries data of this machine.");
        }
        let text = a.text.as_str();
        if text.starts_with("file:") {
            let file = a.map(text.trim_start_matches("file://"));
            self.read_file(&file);
            return;
        }
        let plain = text.replace(HOLE, "x");
        self.find(web::fetch(&plain, Fetcher::Command));
    }

    fn curl(&mut self, args: &[Val], stdin: &Val) -> Val {
        #[rustfmt::skip]
        let valued = ["-o", "--output", "-d", "--data", "--data-raw", "--data-ascii", "--data-binary", "--data-urlencode", "--url-query", "-F", "--form", "--form-string", "-T", "--upload-file", "--json", "-H", "--header", "-b", "--cookie", "-c", "--cookie-jar", "-u", "--user", "-A", "--user-agent", "-e", "--referer", "-X", "--request", "-x", "--proxy", "-K", "--config", "-m", "--max-time", "--connect-timeout", "--retry", "-w", "--write-out", "-r", "--range", "-E", "--cert", "--key", "--cacert", "--capath", "--unix-socket", "--abstract-unix-socket", "--resolve", "--connect-to", "-D", "--dump-header", "--stderr", "--trace", "--trace-ascii", "--url", "-C", "--retry-delay", "--retry-max-time", "--limit-rate", "--netrc-file", "-z", "--interface", "--dns-servers", "--doh-url", "--output-dir", "-Q", "--quote", "-t", "-y", "-Y", "--oauth2-bearer", "--aws-sigv4", "--proto", "--tlsv", "--max-redirs", "--ciphers", "--socks5", "--socks5-hostname", "--preproxy", "--variable", "--expand-data", "--hsts", "--alt-svc", "--mail-from", "--mail-rcpt"];
        let o = Options::split(args, &valued, false);
        let mut urls = o.operands.clone();
        urls.extend(o.values(&["--url"]));
        let own = !urls.is_empty() && urls.iter().all(|u| loopback(&u.text));
        for u in &urls {
            self.address(u);
        }
        for socket in o.values(&["--unix-socket", "--abstract-unix-socket"]) {
            self.ask(
                "net.socket",
                format!(
                    "The command talks to the local service behind {}.",
                    super::super::tools::shown(std::path::Path::new(&socket.text))
                ),
            );
        }
        for config in o.values(&["-K", "--config", "--netrc-file"]) {
            self.read_file(&config);
            if config.text == "-" {
                for word in stdin.text.split(['"', ' ', '\n']).filter(|w| w.contains("://")) {
                    self.address(&Val { text: word.to_owned(), taint: stdin.taint });
                }
            }
        }
        let mut sent = Taint::NONE;
        for data in o.values(&[
            "-d",
            "--data",
            "--data-ascii",
            "--data-binary",
            "--data-urlencode",
            "--json",
            "--expand-data",
            "--variable",
            "--url-query",
        ]) {
            let (_, file) = data
                .text
                .split_once('@')
                .filter(|(n, _)| {
                    n.is_empty() || n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '%')
                })
                .unwrap_or(("", ""));
            sent = sent.with(data.taint);
            if file == "-" {
                sent = sent.with(stdin.taint);
            } else if !file.is_empty() {
                sent = sent.with(self.read_file(&data.map(file)).taint).with(Taint::FILE);
            }
        }
        for form in o.values(&["-F", "--form"]) {
            sent = sent.with(form.taint);
            if let Some((_, v)) = form.text.split_once('=')
                && let Some(file) = v.strip_prefix(['@', '<'])
            {
                let file = file.split([';', ',']).next().unwrap_or_default();
                sent = sent.with(if file == "-" {
                    stdin.taint
                } else {
                    self.read_file(&form.map(file)).taint.with(Taint::FILE)
                });
            }
        }
        for file in o.values(&["-T", "--upload-file"]) {
            sent = sent.with(if matches!(file.text.as_str(), "-" | ".") {
                stdin.taint.with(Taint::FILE)
            } else {
                self.read_file(&file).taint.with(Taint::FILE)
            });
        }
        for text in o.values(&[
            "--data-raw",
            "--form-string",
            "-H",
            "--header",
            "-b",
            "--cookie",
            "-u",
            "--user",
            "-A",
            "--user-agent",
            "-e",
            "--referer",
            "-X",
            "--oauth2-bearer",
            "--request",
            "-x",
            "--proxy",
            "--mail-from",
        ]) {
            sent = sent.with(text.taint);
            if let Some(file) = text.text.strip_prefix('@') {
                sent = sent.with(self.read_file(&text.map(file)).taint).with(Taint::FILE);
            }
            if super::super::mcp::holds_secret(&text.text) && !own {
                self.ask("exfil.secret", "The command sends something shaped like a credential.");
            }
        }
        for file in o.values(&["-b", "--cookie"]) {
            if !file.text.contains('=') {
                self.read_file(&file);
            }
        }
        for file in o.values(&["-E", "--cert", "--key"]) {
            self.read_file(&file);
        }
        self.sends(sent, own, "curl");
        self.fetched(
            &o.values(&["-o", "--output"]),
            &urls,
            o.has(&["-O", "--remote-name", "-J", "--remote-name-all"]),
            &o.values(&["--output-dir"]),
        );
        for file in
            o.values(&["-c", "--cookie-jar", "-D", "--dump-header", "--trace", "--trace-ascii", "--stderr"])
        {
            if file.text != "-" {
                self.write_file(&file, true);
            }
        }
        if urls.iter().any(|u| u.text.starts_with("file:")) {
            return Val::unknown(Taint::FILE);
        }
        // What the operator's own server answers is no more trusted when it is run.
        if o.has(&["-o", "--output", "-O", "--remote-name"]) {
            Val::default()
        } else {
            Val::unknown(Taint::NET)
        }
    }

    fn sends(&mut self, sent: Taint, own: bool, base: &str) {
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
    fn fetched(&mut self, files: &[Val], urls: &[Val], named: bool, dir: &[Val]) {
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
            for path in self.meanings(&file) {
                self.state.files.insert(path, Val::unknown(Taint::NET));
            }
        }
    }

    fn wget(&mut self, args: &[Val]) -> Val {
        let valued = [
            "-O",
            "--output-document",
            "-P",
            "--directory-prefix",
            "-o",
            "-a",
            "-i",
            "--input-file",
            "-U",
            "--user-agent",
            "-t",
            "-T",
            "--timeout",
            "--tries",
            "--header",
            "--post-data",
            "--post-file",
            "--body-data",
            "--body-file",
            "--method",
            "--user",
            "--password",
            "-e",
            "--execute",
            "--load-cookies",
            "--save-cookies",
            "-l",
            "-A",
            "-R",
            "-D",
            "-w",
            "--limit-rate",
            "--referer",
            "--ca-certificate",
            "--use-askpass",
        ];
        let o = Options::split(args, &valued, false);
        let urls = o.operands.clone();
        let own = !urls.is_empty() && urls.iter().all(|u| loopback(&u.text));
        for u in &urls {
            self.address(u);
        }
        let mut sent = Taint::NONE;
        for file in o.values(&["--post-file", "--body-file", "-i", "--input-file", "--load-cookies"]) {
            sent = sent.with(self.read_file(&file).taint).with(Taint::FILE);
        }
        if o.has(&["-i", "--input-file"]) && !o.has(&["--post-file", "--body-file"]) {
            sent = Taint::NONE;
        }
        for data in o.values(&[
            "--post-data",
            "--body-data",
            "--header",
            "--user",
            "--password",
            "-U",
            "--user-agent",
            "--referer",
        ]) {
            sent = sent.with(data.taint);
        }
        for line in o.values(&["-e", "--execute", "--use-askpass"]) {
            if line.text.contains("askpass") {
                let command = line.text.split('=').next_back().unwrap_or_default().to_owned();
                self.program(&command, &Val::default());
            }
        }
        self.sends(sent, own, "wget");
        let out = o.values(&["-O", "--output-document"]);
        let named = out.is_empty();
        self.fetched(&out, &urls, named, &o.values(&["-P", "--directory-prefix"]));
        if out.iter().any(|f| f.text == "-" || f.text == "/dev/stdout") {
            Val::unknown(Taint::NET)
        } else {
            Val::default()
        }
    }

    fn httpie(&mut self, args: &[Val], stdin: &Val) -> Val {
        let mut sent = stdin.taint;
        let mut own = false;
        for a in args.iter().filter(|a| !a.text.starts_with('-')) {
            if matches!(a.text.as_str(), "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS") {
                continue;
            }
            if let Some((_, file)) = a.text.split_once('@').filter(|(n, _)| !n.contains(['/', '.'])) {
                sent = sent.with(self.read_file(&a.map(file)).taint).with(Taint::FILE);
            } else if a.text.contains('=')
                || a.text.contains(":") && !a.text.contains('/') && !a.text.starts_with(':')
            {
                sent = sent.with(a.taint);
                if let Some((_, file)) = a.text.split_once("=@").or_else(|| a.text.split_once(":=@")) {
                    sent = sent.with(self.read_file(&a.map(file)).taint).with(Taint::FILE);
                }
            } else {
                own |= loopback(&a.text) || a.text.starts_with(':');
                if !a.text.starts_with(':') {
                    self.address(a);
                }
            }
        }
        self.sends(sent, own, "http");
        Val::unknown(Taint::NET)
    }

    fn raw(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
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

    fn copy_out(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let o = Options::split(
            args,
            &[
                "-e",
                "--rsh",
                "-i",
                "-P",
                "-o",
                "-F",
                "-S",
                "-c",
                "-l",
                "--exclude",
                "--include",
                "--exclude-from",
                "--files-from",
                "--rsync-path",
                "--filter",
                "-f",
                "-J",
                "--password-file",
                "-b",
                "-u",
            ],
            false,
        );
        for shell in o.values(&["-e", "--rsh", "--rsync-path"]) {
            if base == "rsync" {
                self.text(&shell, &[], &Val::default());
            } else if base == "lftp" {
                if shell.text.contains("put") || shell.text.contains("mirror -R") {
                    self.ask("exfil.copy", "The command copies files to another machine.");
                }
                if let Some(line) = shell.text.split('!').nth(1) {
                    let line = line.to_owned();
                    self.program(&line, &Val::default());
                }
            }
        }
        for option in o.values(&["-o", "-S"]) {
            if base == "scp" || base == "sftp" {
                let value = option
                    .text
                    .split_once('=')
                    .filter(|(n, _)| n.to_lowercase() == "proxycommand")
                    .map(|(_, v)| v.to_owned());
                if let Some(line) = value.or_else(|| (option.text.contains('/')).then(|| option.text.clone()))
                {
                    self.program(&line, &Val::default());
                }
            }
        }
        let ops = &o.operands;
        let remote = |v: &Val| {
            let t = v.text.as_str();
            t.contains("://")
                || (t.contains(':')
                    && !t.starts_with(['/', '.'])
                    && !t.split(':').next().unwrap_or_default().contains('/'))
        };
        match base {
            "ftp" | "tftp" | "ncftpput" | "croc" | "wormhole" | "magic-wormhole" | "smbclient" | "sftp" => {
                let sends = base != "croc" && base != "wormhole" && base != "magic-wormhole"
                    || ops.first().is_some_and(|a| a.text == "send");
                if sends
                    && (stdin.text.contains("put")
                        || !stdin.is_known()
                        || matches!(
                            base,
                            "croc" | "wormhole" | "magic-wormhole" | "ncftpput" | "tftp" | "smbclient"
                        ))
                {
                    self.ask(
                        "exfil.copy",
                        format!("{base} copies files to another machine. A person has to agree."),
                    );
                }
                if base == "sftp" || base == "ftp" {
                    self.ask("net.transfer", format!("{base} opens a file transfer. A person has to agree."));
                }
            }
            "rclone" | "s3cmd" | "gsutil" | "azcopy" | "mc" | "b2" | "lftp" | "unison" => {
                let verb = ops.first().map(|a| a.text.clone()).unwrap_or_default();
                if matches!(
                    verb.as_str(),
                    "copy"
                        | "sync"
                        | "move"
                        | "copyto"
                        | "moveto"
                        | "put"
                        | "cp"
                        | "mv"
                        | "rsync"
                        | "mirror"
                        | "upload_file"
                        | "upload-file"
                        | "file"
                        | "bisync"
                        | "rcat"
                        | "serve"
                        | "mount"
                ) && (ops.last().is_some_and(remote)
                    || matches!(
                        verb.as_str(),
                        "put" | "upload-file" | "upload_file" | "rcat" | "serve" | "mirror"
                    ))
                {
                    self.ask(
                        "exfil.copy",
                        format!("{base} copies files to another machine. A person has to agree."),
                    );
                }
                if matches!(
                    verb.as_str(),
                    "delete" | "purge" | "rb" | "rm" | "del" | "deletefile" | "cleanup" | "config"
                ) {
                    self.ask(
                        "destroy.cloud",
                        format!("{base} {verb} deletes or reveals data elsewhere. A person has to agree."),
                    );
                }
            }
            _ => {
                if let Some((to, from)) = ops.split_last()
                    && remote(to)
                    && from.iter().any(|f| !remote(f))
                {
                    self.ask(
                        "exfil.copy",
                        format!("{base} copies files to another machine. A person has to agree."),
                    );
                } else if let Some((to, from)) = ops.split_last() {
                    self.write_file(to, false);
                    self.gathers(from, args);
                }
                if base == "rsync"
                    && args.iter().any(|a| a.text.starts_with("--delete"))
                    && let Some(to) = ops.last().filter(|t| !remote(t)).cloned()
                {
                    self.removal(&to, true, false);
                }
            }
        }
        for a in ops {
            if !remote(a) {
                self.read_file(a);
            }
            if a.taint.any(Taint::LOCAL) && remote(a) {
                self.deny("exfil.address", "The address carries data of this machine.");
            }
        }
        Val::unknown(Taint::NET)
    }

    /// GitHub and its like.
    fn forge(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let words: Vec<&str> = args.iter().map(|a| a.text.as_str()).filter(|a| !a.starts_with('-')).collect();
        for a in args {
            if a.taint.any(Taint::SECRET.with(Taint::ENV)) {
                self.deny("exfil.secret", format!("{base} would publish a secret."));
            }
        }
        let valued = [
            "--body-file",
            "-F",
            "-b",
            "--body",
            "-t",
            "--title",
            "-f",
            "--field",
            "--raw-field",
            "--input",
            "-R",
            "--repo",
            "-H",
            "--header",
            "-X",
            "--method",
            "-q",
            "--jq",
            "-d",
            "--desc",
            "--notes",
            "-n",
            "--notes-file",
        ];
        let o = Options::split(args, &valued, false);
        for file in o.values(&["--body-file", "--input", "--notes-file"]) {
            self.read_file(&file);
        }
        for field in o.values(&["-F", "--field"]) {
            if let Some((_, file)) = field.text.split_once("=@") {
                self.read_file(&field.map(file));
            } else if !field.text.contains('=') {
                self.read_file(&field);
            }
        }
        match words.as_slice() {
            ["auth", "token", ..] => self.deny("secret.read", "The command prints the access token."),
            ["auth", "status", ..]
                if args.iter().any(|a| matches!(a.text.as_str(), "-t" | "--show-token")) =>
            {
                self.deny("secret.read", "The command prints the access token.")
            }
            ["auth", "login" | "refresh" | "setup-git" | "logout", ..] => {
                self.ask("persist.access", format!("{base} auth changes who the machine acts as."))
            }
            ["gist", "create" | "edit", ..] => {
                self.ask("exfil.publish", "The command publishes files. A person has to agree.")
            }
            ["repo", "delete" | "archive" | "rename" | "edit" | "transfer", ..] => self.ask(
                "destroy.repository",
                "The command changes or deletes a repository for others. A person has to agree.",
            ),
            ["repo", "create", ..] => self.ask(
                "exfil.publish",
                "The command makes a repository for others to see. A person has to agree.",
            ),
            ["release", "create" | "delete" | "upload" | "edit", ..] => {
                self.ask("publish.release", "The command changes a release. A person has to agree.")
            }
            ["secret" | "variable", "set" | "delete" | "remove", ..]
            | ["ssh-key" | "gpg-key" | "deploy-key", "add" | "delete", ..]
            | ["repo", "deploy-key", ..] => {
                self.ask(
                    "persist.access",
                    "The command changes keys or secrets of a repository. A person has to agree.",
                );
            }
            ["workflow", "run" | "enable" | "disable", ..]
            | ["extension", "install" | "upgrade", ..]
            | ["alias", "set" | "import", ..]
            | ["codespace", ..] => {
                self.ask(
                    "run.elsewhere",
                    format!(
                        "{base} {} runs or installs something. A person has to agree.",
                        words.join(" ").chars().take(40).collect::<String>()
                    ),
                );
            }
            ["pr", "merge", ..] if args.iter().any(|a| a.text == "--admin") => {
                self.ask("persist.access", "The command merges past the checks.")
            }
            ["issue" | "pr" | "run", "delete", ..] => {
                self.ask("destroy.repository", "The command deletes something for others.")
            }
            ["api", ..] => {
                let method = o.values(&["-X", "--method"]).first().map(|v| v.text.to_uppercase());
                let writes = method.as_deref().is_some_and(|m| m != "GET")
                    || method.is_none()
                        && o.has(&["-f", "-F", "--field", "--raw-field", "--input"])
                        && !words.iter().any(|w| w.contains("graphql"));
                if writes {
                    self.ask(
                        "exfil.publish",
                        "The command changes something at the forge. A person has to agree.",
                    );
                }
            }
            _ => {}
        }
        if words.first() == Some(&"gist") && stdin.taint.any(Taint::LOCAL) {
            self.deny("exfil.publish", "The command publishes data of this machine.");
        }
        Val::unknown(Taint::NET)
    }

    fn cloud(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let words: Vec<String> =
            args.iter().map(|a| a.text.clone()).filter(|a| !a.starts_with('-')).collect();
        let line = words.join(" ");
        let verb = |list: &[&str]| {
            words.iter().take(5).any(|w| list.iter().any(|v| w == v || w.starts_with(&format!("{v}-"))))
        };
        for a in args {
            self.read_file(a);
            if let Some((_, file)) = a.text.split_once("file://").or_else(|| a.text.split_once("fileb://")) {
                self.read_file(&a.map(file));
            }
        }
        if verb(&[
            "delete",
            "terminate",
            "rb",
            "destroy",
            "deregister",
            "remove",
            "purge",
            "rm",
            "wipe",
            "schedule-key-deletion",
            "put-bucket-policy",
            "empty",
        ]) || args.iter().any(|a| a.text == "--delete")
        {
            self.ask(
                "destroy.cloud",
                format!("{base} would delete something in the cloud. A person has to agree."),
            );
        }
        if [
            "get-secret-value",
            "get-session-token",
            "get-federation-token",
            "export-credentials",
            "print-access-token",
            "print-identity-token",
            "get-access-token",
            "get-login-password",
            "get-authorization-token",
            "assume-role",
            "secrets versions access",
            "keyvault secret show",
            "account get-access-token",
            "get-credentials",
            "configure get",
            "configure export",
            "print-refresh-token",
            "list-keys",
            "get-parameter",
            "storage account keys",
            "keys list",
            "acr credential show",
            "describe-secret",
        ]
        .iter()
        .any(|s| {
            line.contains(s)
                && (s != &"get-parameter" || args.iter().any(|a| a.text == "--with-decryption"))
                && s != &"describe-secret"
        }) {
            self.deny("secret.read", format!("{base} would print a credential."));
        }
        if verb(&[
            "create-access-key",
            "create-user",
            "attach-user-policy",
            "attach-role-policy",
            "put-user-policy",
            "create-login-profile",
            "add-iam-policy-binding",
            "authorize-security-group-ingress",
            "create-key",
            "update-assume-role-policy",
            "put-role-policy",
        ]) {
            self.ask("persist.access", format!("{base} would change who has access. A person has to agree."));
        }
        let copies = words.iter().any(|w| {
            matches!(w.as_str(), "cp" | "sync" | "mv" | "put-object" | "upload" | "upload-batch" | "rsync")
        });
        let to =
            words.iter().rev().find(|w| w.contains("://") || w.contains('/')).cloned().unwrap_or_default();
        if copies
            && (["s3://", "gs://", "https://"].iter().any(|p| to.starts_with(p))
                || words.iter().any(|w| matches!(w.as_str(), "put-object" | "upload" | "upload-batch")))
        {
            self.ask("exfil.copy", format!("{base} copies files to the cloud. A person has to agree."));
        }
        if stdin.taint.any(Taint::LOCAL) && copies {
            self.deny("exfil.copy", format!("{base} copies data of this machine to the cloud."));
        }
        Val::unknown(Taint::NET)
    }
}

fn loopback(url: &str) -> bool {
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
