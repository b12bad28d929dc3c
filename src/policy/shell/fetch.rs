//! Programs that fetch an address.

use super::eval::Machine;
use super::net::loopback;
use super::options::Options;
use super::value::{Taint, Val};

impl Machine<'_> {
    pub(super) fn curl(&mut self, args: &[Val], stdin: &Val) -> Val {
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
        for config in o.values(&["-K", "--config"]) {
            let content = if matches!(config.text.as_str(), "-" | "/dev/stdin") {
                stdin.clone()
            } else {
                self.content(&config)
            };
            let mut more: Vec<Val> = Vec::new();
            for line in content.text.lines().take(256) {
                let line = line.trim().trim_start_matches('-');
                let (name, value) = line.split_once(['=', ':', ' ']).unwrap_or((line, ""));
                if name.is_empty() || name.starts_with('#') || matches!(name.trim(), "config" | "K") {
                    continue;
                }
                let dashes = if name.trim().len() == 1 { "-" } else { "--" };
                more.push(Val::known(format!("{dashes}{}", name.trim())));
                if !value.trim().is_empty() {
                    more.push(content.map(value.trim().trim_matches('"')));
                }
            }
            if !content.is_known() || content.text.is_empty() {
                self.ask("exfil.unknown", "What curl would send is in a file of settings that cannot be read here. Write the options out.");
            } else if !more.is_empty() {
                more.extend(o.operands.iter().cloned());
                // What the other options do to the request is not seen in there.
                self.used("?");
                self.curl(&more, &Val::default());
            }
        }
        for file in o.values(&["--netrc-file"]) {
            self.read_file(&file);
        }
        if o.has(&["--netrc", "-n", "--netrc-optional"]) && !own {
            self.ask("secret.use", "The command uses the operator's stored credentials.");
        }
        let mut sent = Taint::NONE;
        let mut auth = Taint::NONE;
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
            "--request",
            "-x",
            "--proxy",
            "--mail-from",
        ]) {
            if super::issuers::is_auth(&text.text) {
                auth = auth.with(text.taint);
            } else {
                sent = sent.with(text.taint);
            }
            if let Some(file) = text.text.strip_prefix('@') {
                sent = sent.with(self.read_file(&text.map(file)).taint).with(Taint::FILE);
            }
            if super::super::mcp::holds_secret(&text.text) && !own {
                self.ask("exfil.secret", "The command sends something shaped like a credential.");
            }
        }
        for token in o.values(&["--oauth2-bearer"]) {
            auth = auth.with(token.taint);
            if super::super::mcp::holds_secret(&token.text) && !own {
                self.ask("exfil.secret", "The command sends something shaped like a credential.");
            }
        }
        let sent = self.without_own_token(&o, &urls, sent, auth);
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
        if urls.iter().any(|u| u.text.get(..5).is_some_and(|s| s.eq_ignore_ascii_case("file:"))) {
            return Val::unknown(Taint::FILE);
        }
        // What the operator's own server answers is no more trusted when it is run.
        if o.has(&["-o", "--output", "-O", "--remote-name"]) {
            Val::default()
        } else {
            Val::unknown(Taint::NET)
        }
    }

    pub(super) fn wget(&mut self, args: &[Val]) -> Val {
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
            "--config",
            "--certificate",
            "--private-key",
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
        for file in o.values(&["--config", "--certificate", "--private-key"]) {
            self.read_file(&file);
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

    pub(super) fn httpie(&mut self, args: &[Val], stdin: &Val) -> Val {
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
}
