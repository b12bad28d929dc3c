//! Programs that print what others wrote, and programs that talk to another machine without being known for it.

use super::value::{HOLE, Val};

/// Programs that print what another machine, a container or another model says, and the words with which they do; none:
/// always.
#[rustfmt::skip]
const PRINTS: &[(&str, &[&str])] = &[
    ("links2", &[]), ("browsh", &[]), ("carbonyl", &[]), ("edbrowse", &[]), ("ldapsearch", &[]), ("grpcurl", &[]), ("grpc_cli", &[]), ("evans", &[]), ("websocat", &[]), ("wscat", &[]),
    ("mosquitto_sub", &[]), ("kafka-console-consumer", &[]), ("kafka-console-consumer.sh", &[]), ("kcat", &["-C"]), ("kafkacat", &["-C"]), ("nats", &["sub", "request", "get"]), ("rabbitmqadmin", &["get"]), ("redis-cli", &["SUBSCRIBE", "subscribe"]),
    ("snmpwalk", &[]), ("snmpget", &[]), ("snmpbulkwalk", &[]), ("finger", &[]), ("whois", &[]), ("stern", &[]), ("wrangler", &["tail"]), ("kubetail", &[]), ("himalaya", &["message", "envelope", "read", "list"]), ("notmuch", &["show", "search", "reply"]),
    ("mutt", &["-f"]), ("neomutt", &["-f"]), ("mail", &["-p", "-e", "-f"]), ("gcalcli", &[]), ("mu", &["view", "find"]), ("git", &["ls-remote"]), ("svn", &["cat", "log", "blame", "ls", "list"]), ("cvs", &["log", "annotate", "rlog"]), ("hg", &["incoming"]),
    ("docker", &["exec", "attach", "logs", "search"]), ("podman", &["exec", "attach", "logs", "search"]), ("nerdctl", &["exec", "logs"]), ("kubectl", &["exec", "attach", "cp"]), ("oc", &["exec", "rsh", "attach"]), ("ansible", &["-m", "-a"]), ("salt", &["cmd.run"]),
    ("claude", &["-p", "--print"]), ("codex", &["exec", "e"]), ("gemini", &["-p", "--prompt"]), ("llm", &[]), ("aichat", &[]), ("ollama", &["run"]), ("mods", &[]), ("sgpt", &[]), ("opencode", &["run"]), ("goose", &["run"]), ("cursor-agent", &["-p", "--print"]), ("aider", &["--message", "-m"]),
    ("huggingface-cli", &["repo", "models"]), ("newsboat", &["-x"]), ("rsstail", &[]), ("gopher", &[]), ("gemget", &[]),
];

/// Programs that print, or make something readable of, an address that they are given.
#[rustfmt::skip]
const OPENS: &[&str] = &[
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "brave", "microsoft-edge", "firefox", "playwright", "puppeteer", "npx", "bunx", "pandoc", "exiftool", "ffmpeg", "ffprobe", "mediainfo", "duckdb",
    "vim", "vi", "nvim", "ex", "view", "emacs", "deno", "lynx", "wkhtmltopdf", "monolith", "trafilatura", "readable", "percollate", "glow", "mdcat", "feh", "identify", "convert", "magick", "tesseract", "pdftotext", "xmllint", "xsltproc", "openapi-generator", "swagger-cli", "quicktype", "gdal_translate", "ogrinfo", "gdalinfo",
];

/// Programs that talk to another machine, and the words with which they do; none: whenever they are given anything.
#[rustfmt::skip]
const CLIENTS: &[(&str, &[&str])] = &[
    ("llm", &[]), ("aichat", &[]), ("mods", &[]), ("sgpt", &[]), ("ollama", &["run", "pull", "push"]), ("sshfs", &[]), ("gnutls-cli", &[]), ("finger", &[]), ("rdate", &[]), ("snmpwalk", &[]), ("snmpget", &[]), ("snmpset", &[]), ("grpcurl", &[]), ("ldapsearch", &[]), ("ldapmodify", &[]), ("cvs", &[]),
    ("iodine", &[]), ("dns2tcp", &[]), ("dns2tcpc", &[]), ("openvpn", &[]), ("wg-quick", &["up"]), ("huggingface-cli", &[]), ("hf", &[]), ("dvc", &["pull", "push", "fetch"]), ("wandb", &[]), ("vagrant", &["box", "up", "login", "cloud"]), ("packer", &["build", "init"]), ("salt", &[]), ("keybase", &[]), ("transmission-cli", &[]), ("aria2c", &[]),
    ("wrangler", &["dev", "tail", "deploy", "kv", "r2", "login"]), ("rustup", &["update", "install", "toolchain"]), ("nix", &["run", "shell", "build", "flake"]), ("guix", &["pull", "install"]), ("mise", &["install", "use"]), ("asdf", &["install"]), ("nvm", &["install"]), ("pyenv", &["install"]), ("stern", &[]), ("himalaya", &[]), ("gcalcli", &[]),
    ("links2", &[]), ("browsh", &[]), ("mosquitto_sub", &[]), ("kafka-console-consumer", &[]), ("kafka-console-producer", &[]), ("ntpdig", &[]), ("sntp", &[]), ("torify", &[]), ("proxychains", &[]), ("rtorrent", &[]), ("magic-wormhole", &[]), ("wormhole", &[]), ("croc", &[]), ("ipfs", &["add", "cat", "get", "pin"]),
    ("svn", &["cat", "log", "ls", "list"]), ("git-annex", &["get", "copy", "sync"]), ("restic", &["backup", "restore", "snapshots", "copy"]), ("rclone", &["copy", "copyto", "sync", "move", "cat", "lsf", "ls"]), ("mc", &["cp", "cat", "mirror"]), ("skopeo", &[]), ("oras", &[]), ("crane", &[]),
];

/// Whether `args` hold one of `words`, or anything where there are none.
fn says(args: &[Val], words: &[&str]) -> bool {
    if words.is_empty() {
        return !args.is_empty();
    }
    args.iter().take(8).any(|a| words.contains(&a.text.as_str()))
}

/// Whether the command prints what others wrote elsewhere.
pub(super) fn prints(base: &str, args: &[Val]) -> bool {
    let objects = matches!(base, "kubectl" | "oc")
        && says(args, &["get"])
        && args.iter().any(|a| {
            ["-oyaml", "-ojson", "--output", "-ojsonpath", "-ogo-template"]
                .iter()
                .any(|o| a.text.starts_with(o))
                || a.text == "-o"
        });
    PRINTS.iter().any(|(program, words)| *program == base && says(args, words))
        || objects
        || OPENS.contains(&base) && args.iter().any(|a| names_address(&a.text))
        || journal(base, args)
}

/// Whether the command talks to another machine.
pub(super) fn reaches(base: &str, args: &[Val]) -> bool {
    CLIENTS.iter().any(|(program, words)| *program == base && says(args, words))
        || base.starts_with("python") && says(args, &["webbrowser"])
        || OPENS.contains(&base) && args.iter().any(|a| names_address(&a.text))
}

/// Logs of servers hold what strangers sent.
fn journal(base: &str, args: &[Val]) -> bool {
    base == "journalctl"
        && args.iter().any(|a| {
            ["nginx", "apache", "httpd", "caddy", "sshd", "postfix"].iter().any(|s| a.text.contains(s))
        })
        || args.iter().any(|a| {
            let text = a.text.as_str();
            text.starts_with("/var/log/")
                && (text.contains("access") || text.contains("nginx") || text.contains("apache"))
                || text.starts_with("/var/mail/")
                || text.starts_with("/var/spool/mail/")
        })
}

/// Whether an address of another machine stands anywhere in a text.
fn names_address(text: &str) -> bool {
    ["http://", "https://", "ftp://", "s3://"].iter().any(|scheme| {
        text.match_indices(scheme).any(|(at, _)| {
            text.get(at + scheme.len()..)
                .is_some_and(|rest| !super::reach::local(rest) || rest.starts_with(HOLE))
        })
    })
}

/// Whether an argument names a machine without a scheme: `host.example:443`, `user@host.example`.
pub(super) fn names_machine(text: &str) -> bool {
    if text.len() > 253 || text.contains(['/', ' ', '\n', HOLE]) {
        return false;
    }
    let host_of = |host: &str| {
        let last = host.rsplit('.').next().unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        host.contains('.')
            && !host.starts_with('.')
            && host.chars().all(plain)
            && (last.len() >= 2 && last.chars().all(|c| c.is_ascii_alphabetic())
                || host.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| !ip.is_loopback()))
    };
    if let Some((user, host)) = text.split_once('@') {
        let host = host.split(':').next().unwrap_or_default();
        return !user.is_empty() && !user.starts_with('-') && host_of(host);
    }
    text.split_once(':').is_some_and(|(host, port)| port.parse::<u16>().is_ok() && host_of(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_told_from_a_line_of_a_file_and_a_version_of_a_package() {
        for yes in ["x.example:443", "user@x.example", "me@x.example:f", "10.0.0.7:80"] {
            assert!(names_machine(yes), "{yes}");
        }
        for no in [
            "main",
            "a@1.2.3",
            "@scope/name",
            "localhost:3000",
            "127.0.0.1:80",
            "src/main.rs:10",
            "a:b",
            "12:30",
            "--x=a@b",
        ] {
            assert!(!names_machine(no), "{no}");
        }
    }
}
