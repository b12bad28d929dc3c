//! Programs through which data of this machine leaves: uploaders, deployers, chat and model clients, browsers, servers.

use super::eval::Machine;
use super::net::loopback;
use super::printers::any_phrase;
use super::value::{Taint, Val};
use crate::policy::paths;
use crate::policy::world::Kind;

/// When a program's phrase sends something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// Whatever it is given.
    Always,
    /// When a word or its input holds data of this machine, or a word is a file or a directory here.
    Data,
    /// When a word names a place on another machine.
    Remote,
    /// When the last word does.
    RemoteLast,
}
use When::{Always, Data, Remote, RemoteLast};

/// Programs and phrases (none: always). In order.
#[rustfmt::skip]
const OUTLETS: &[(&str, &[&str], When)] = &[
    ("aichat", &[], Data),
    ("amqp-publish", &[], Data),
    ("apprise", &[], Data),
    ("borg", &["create", "init"], Remote),
    ("buildah", &["push"], Always),
    ("bzr", &["push", "send"], Remote),
    ("cap", &["deploy", "production deploy", "staging deploy"], Always),
    ("chatgpt", &[], Data),
    ("clush", &[], Data),
    ("codex", &[], Data),
    ("crane", &["append", "copy", "cp", "push"], Always),
    ("darcs", &["push", "send"], Always),
    ("duplicity", &[], Remote),
    ("dvc", &["push"], Always),
    ("ffsend", &["u", "up", "upload"], Always),
    ("fossil", &["push", "sync"], Remote),
    ("gcloud", &["app deploy", "functions deploy", "run deploy"], Always),
    ("gemini", &[], Data),
    ("git", &["annex copy", "annex export", "annex move", "annex push", "annex sync", "http-push", "p4 submit", "send-pack", "svn dcommit"], Always),
    ("git-annex", &["copy", "export", "move", "push", "sync"], Always),
    ("glab", &["snippet create"], Always),
    ("gnutls-cli", &[], Data),
    ("grpcurl", &[], Data),
    ("helm", &["cm-push", "push"], Always),
    ("hf", &["upload", "upload-large-folder"], Always),
    ("hg", &["push"], Remote),
    ("huggingface-cli", &["upload", "upload-large-folder"], Always),
    ("ipfs", &["add", "block put", "dag put"], Always),
    ("kafkacat", &[], Data),
    ("kaggle", &["datasets create", "datasets version", "kernels push"], Always),
    ("kamal", &["deploy"], Always),
    ("kcat", &[], Data),
    ("llm", &[], Data),
    ("matrix-commander", &[], Data),
    ("mc", &["cp", "mirror", "mv", "pipe", "put"], Data),
    ("modal", &["deploy"], Always),
    ("mods", &[], Data),
    ("mosquitto_pub", &[], Data),
    ("nats", &["pub", "publish", "req", "request"], Data),
    ("ntfy", &["pub", "publish", "send"], Data),
    ("onionshare", &[], Always),
    ("onionshare-cli", &[], Always),
    ("oras", &["attach", "copy", "cp", "push"], Always),
    ("parallel-ssh", &[], Data),
    ("pdsh", &[], Data),
    ("pscp", &[], Always),
    ("pssh", &[], Data),
    ("railway", &["up"], Always),
    ("restic", &["backup", "copy", "init"], Remote),
    ("rustic", &["backup", "copy", "init"], Remote),
    ("sgpt", &[], Data),
    ("signal-cli", &["send"], Data),
    ("skopeo", &["copy", "sync"], RemoteLast),
    ("slack", &[], Data),
    ("slackcat", &[], Data),
    ("surge", &[], Data),
    ("svn", &["copy", "cp", "import"], Remote),
    ("telegram-send", &[], Data),
    ("toot", &["post", "upload"], Data),
    ("transfer", &[], Data),
    ("twurl", &[], Data),
    ("wandb", &["artifact put", "sync"], Always),
    ("wrangler", &["d1 import", "kv bulk put", "kv key put", "kv:bulk put", "kv:key put", "pages deploy", "r2 object put"], Always),
    ("xdg-email", &[], Data),
];

/// Programs that look a name up. In order.
const LOOKUPS: &[&str] =
    &["adig", "ahost", "avahi-resolve", "avahi-resolve-host-name", "dnslookup", "systemd-resolve"];

/// Programs that open an address. In order.
const BROWSERS: &[&str] = &[
    "brave-browser",
    "browsh",
    "chrome",
    "chromium",
    "chromium-browser",
    "explorer.exe",
    "firefox",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "open",
    "sensible-browser",
    "w3m",
    "webbrowser",
    "wslview",
    "x-www-browser",
    "xdg-open",
];

/// Servers of files that listen on every interface unless they are told otherwise. In order.
const SERVERS: &[&str] = &["darkhttpd", "http-server", "live-server", "miniserve", "serve", "updog", "woof"];

/// Options of curl whose value goes to the other side and that no rule of curl's own looks at. In order.
const CURL_SENDS: &[&str] = &[
    "--expand-header",
    "--expand-json",
    "--expand-url",
    "--proxy-header",
    "--quote",
    "--telnet-option",
    "-Q",
    "-t",
];

impl Machine<'_> {
    /// Judges what `base` would carry out.
    pub(super) fn outlet(&mut self, base: &str, args: &[Val], stdin: &Val) {
        if super::reach::talks_of_itself(args) || self.done() {
            return;
        }
        let words: Vec<&str> =
            args.iter().map(|a| a.text.as_str()).filter(|a| !a.starts_with('-')).take(16).collect();
        if LOOKUPS.binary_search(&base).is_ok() && args.iter().any(|a| a.taint.any(Taint::LOCAL)) {
            self.deny("exfil.dns", "The command puts data of this machine into a name that it looks up.");
        }
        if BROWSERS.binary_search(&base).is_ok()
            || base.starts_with("python") && words.first() == Some(&"webbrowser")
        {
            self.opens(args);
        }
        for (program, phrases, when) in OUTLETS {
            if *program != base || !(phrases.is_empty() || any_phrase(&words, phrases)) {
                continue;
            }
            let leaves = self.leaves(args, stdin, *when);
            self.reaches |= leaves || matches!(when, Always | Data);
            if leaves {
                self.sends_out(base, args, stdin);
            }
        }
        match base {
            "curl" => self.curl_sends(args),
            "tar" | "bsdtar" | "gtar" => self.tape(args),
            "gh" => self.posts_file(args, &words),
            "git" => self.pushes_elsewhere(args),
            "ollama" if args.iter().any(|a| a.text.ends_with("-cloud") || a.text.ends_with(":cloud")) => {
                if self.leaves(args, stdin, Data) {
                    self.sends_out(base, args, stdin);
                }
            }
            _ => self.serves(base, args),
        }
    }

    /// What leaves is a secret, or at least data of this machine.
    fn sends_out(&mut self, base: &str, args: &[Val], stdin: &Val) {
        let taint = args.iter().fold(stdin.taint, |t, a| t.with(a.taint));
        if taint.any(Taint::SECRET.with(Taint::ENV)) {
            self.deny("exfil.secret", format!("{base} would send a secret to another machine."));
        } else {
            self.ask(
                "exfil.copy",
                format!("{base} sends data of this machine elsewhere. A person has to agree."),
            );
        }
    }

    fn leaves(&mut self, args: &[Val], stdin: &Val, when: When) -> bool {
        match when {
            Always => true,
            Remote => args.iter().any(|a| remote(&a.text)),
            RemoteLast => args.last().is_some_and(|a| a.text.contains("://")),
            Data => {
                let hosts: Vec<&Val> = args.iter().filter(|a| host_and_port(&a.text)).collect();
                if !hosts.is_empty() && hosts.iter().all(|a| loopback(&a.text)) {
                    return false;
                }
                stdin.taint.any(Taint::LOCAL)
                    || args.iter().any(|a| a.taint.any(Taint::LOCAL))
                    || args.iter().take(64).any(|a| {
                        let after = a.text.split_once('=').map_or(a.text.as_str(), |(_, v)| v);
                        let file = a.map(after.trim_start_matches('@'));
                        self.meanings(&file).iter().any(|p| self.world.kind(p) != Kind::Missing)
                    })
            }
        }
    }

    /// Addresses that a browser opens.
    fn opens(&mut self, args: &[Val]) {
        for a in args.iter().filter(|a| a.text.contains("://") || a.text.starts_with("mailto:")) {
            self.reaches |= !loopback(&a.text);
            if a.taint.any(Taint::LOCAL) && !loopback(&a.text) {
                self.deny("exfil.address", "The address carries data of this machine.");
            }
        }
    }

    fn curl_sends(&mut self, args: &[Val]) {
        let mut option = "";
        let mut sent = Taint::NONE;
        for a in args {
            let before = std::mem::replace(&mut option, a.text.as_str());
            if CURL_SENDS.binary_search(&before).is_ok() {
                sent = sent.with(a.taint);
            }
            // curl takes it out of its environment by itself.
            let variable = match before {
                "--variable" => Some(a.text.as_str()),
                _ => a.text.strip_prefix("--variable="),
            };
            let name =
                variable.and_then(|v| v.strip_prefix('%')).map(|v| v.split('=').next().unwrap_or_default());
            if name.is_some_and(super::expand::secret_variable) {
                sent = sent.with(Taint::ENV);
            }
        }
        self.sends(sent, false, "curl");
    }

    /// `tar cf HOST:FILE`: the archive goes to another machine.
    fn tape(&mut self, args: &[Val]) {
        if args.iter().any(|a| a.text == "--force-local") {
            return;
        }
        let mut file = false;
        for (i, a) in args.iter().enumerate() {
            let text = a.text.as_str();
            let name = if std::mem::take(&mut file) { Some(text) } else { text.strip_prefix("--file=") };
            let host = name.and_then(|n| n.split_once(':')).map(|(host, _)| host);
            if host.is_some_and(|h| !h.is_empty() && !h.contains('/')) {
                self.ask(
                    "exfil.copy",
                    "tar would write the archive on another machine. A person has to agree.",
                );
            }
            file = text == "--file"
                || text.starts_with('-') && !text.starts_with("--") && text.ends_with('f')
                || i == 0 && !text.starts_with('-') && text.contains('f') && text.len() < 12;
        }
    }

    /// A file of the project, put into an issue or a request at a forge. Notes and scratch files are what is meant to be.
    fn posts_file(&mut self, args: &[Val], words: &[&str]) {
        if !matches!(words, ["issue" | "pr", "comment" | "create" | "edit" | "review", ..]) {
            return;
        }
        let mut option = "";
        for a in args {
            let before = std::mem::replace(&mut option, a.text.as_str());
            let file = match before {
                "--body-file" | "-F" => Some(a.text.as_str()),
                _ => a.text.strip_prefix("--body-file="),
            };
            let Some(file) = file.filter(|f| !f.ends_with(".md") && !f.ends_with(".txt")) else { continue };
            let file = a.map(file);
            if self.meanings(&file).iter().any(|p| {
                paths::in_project(p, self.scope)
                    && self.world.kind(p) == Kind::File
                    && !self.state.files.contains_key(p)
            }) {
                self.ask(
                    "exfil.publish",
                    "The command publishes a file of the project. A person has to agree.",
                );
            }
        }
    }

    /// Pushes whose remote is set for this one command, that take every branch along, or whose remote nobody has set.
    fn pushes_elsewhere(&mut self, args: &[Val]) {
        let mut option = "";
        let mut rest = args;
        let mut elsewhere = false;
        while let Some((a, more)) = rest.split_first() {
            let before = std::mem::replace(&mut option, a.text.as_str());
            if !a.text.starts_with('-') && !matches!(before, "-C" | "-c" | "--git-dir" | "--work-tree") {
                break;
            }
            let key = a.text.split('=').next().unwrap_or_default().to_lowercase();
            elsewhere |= before == "-c"
                && (key == "remote.pushdefault"
                    || key.ends_with(".pushremote")
                    || key.starts_with("remote.") && (key.ends_with("url") || key.ends_with("push")));
            rest = more;
        }
        if rest.first().is_none_or(|a| a.text != "push") {
            return;
        }
        let remote = rest.iter().skip(1).find(|a| !a.text.starts_with('-')).map(|a| a.text.as_str());
        let all = rest.iter().any(|a| matches!(a.text.as_str(), "--all" | "--branches"));
        let usual = |name: &str| matches!(name, "origin" | "upstream");
        let config = self.world.read(&self.scope.project.join(".git/config"));
        let unknown = |name: &str| {
            !usual(name)
                && !name.contains(['/', ':', '.'])
                && config.as_deref().is_some_and(|c| !c.contains(&format!("[remote \"{name}\"]")))
        };
        if elsewhere || remote.is_some_and(|r| all && !usual(r) || unknown(r)) {
            self.ask(
                "exfil.git",
                "The push goes to an address that the repository does not know. A person has to agree.",
            );
        }
    }

    /// Servers of files: they count as a way out, and are asked about when they listen everywhere and a secret lies below.
    fn serves(&mut self, base: &str, args: &[Val]) {
        let has = |names: &[&str]| args.iter().any(|a| names.contains(&a.text.as_str()));
        let served = SERVERS.binary_search(&base).is_ok()
            || base.starts_with("python") && has(&["http.server", "SimpleHTTPServer"])
            || base.starts_with("ruby") && has(&["-run"]) && has(&["httpd"])
            || base == "php" && has(&["-S"])
            || base == "busybox" && has(&["httpd"])
            || base == "caddy" && has(&["file-server"]);
        let own = args.iter().any(|a| {
            let host = a.text.rsplit('=').next().unwrap_or_default();
            loopback(host) && !host.contains("0.0.0.0")
        });
        if !served || own {
            return;
        }
        self.reaches = true;
        // What is neither a switch nor a port is the directory.
        const VERBS: &[&str] = &["0.0.0.0", "::", "SimpleHTTPServer", "file-server", "http.server", "httpd"];
        let mut dirs: Vec<Val> = Vec::new();
        for a in args {
            let value = if a.text.starts_with('-') {
                a.text.split_once('=').map_or("", |(_, v)| v)
            } else {
                a.text.as_str()
            };
            let port = value.bytes().all(|b| b.is_ascii_digit()) || host_and_port(value);
            if !port && !VERBS.contains(&value) {
                dirs.push(a.map(value));
            }
        }
        if dirs.is_empty() {
            dirs.push(Val::known("."));
        }
        for dir in dirs.iter().take(8) {
            for path in self.meanings(dir) {
                if !paths::secrets_below(&path, self.scope, self.world, &|_| true).is_empty() {
                    self.ask(
                        "net.tunnel",
                        "The server would hand a directory with secrets to the whole network. Bind it to 127.0.0.1, or serve another directory.",
                    );
                    return;
                }
            }
        }
    }
}

/// Whether a word names a place on another machine: an address, `HOST:PATH`.
fn remote(text: &str) -> bool {
    let text = if text.starts_with('-') { text.split_once('=').map_or("", |(_, v)| v) } else { text };
    if let Some((scheme, _)) = text.split_once("://") {
        return scheme != "file" && !loopback(text);
    }
    text.split_once(':').is_some_and(|(host, path)| {
        !host.is_empty()
            && !path.is_empty()
            && !host.contains('/')
            && !path.starts_with(':')
            && host.len() > 1
    })
}

/// Whether a word is `HOST:PORT`.
fn host_and_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !port.is_empty() && port.len() < 6 && port.bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_order() {
        assert!(OUTLETS.windows(2).all(|w| w[0].0 < w[1].0));
        for table in [LOOKUPS, BROWSERS, SERVERS, CURL_SENDS] {
            assert!(table.windows(2).all(|w| w[0] < w[1]), "{table:?}");
        }
    }

    #[test]
    fn places_on_other_machines_are_told_from_paths() {
        for text in
            ["evil:x", "sftp:evil.example:/x", "ssh://evil.example/x", "u@evil.example:x", "--repo=evil:x"]
        {
            assert!(remote(text), "{text}");
        }
        for text in ["x", "./a:b", "/a:b", "file:///x", "::archive", "c:", "--verbose", "http://localhost/x"]
        {
            assert!(!remote(text), "{text}");
        }
    }
}
