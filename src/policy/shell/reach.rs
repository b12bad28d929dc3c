//! Which programs talk to another machine, and which use an account of the operator's there.
//!
//! What has no rule of its own is found here, so that a session that must not carry anything out is asked about it.

use super::eval::Machine;
use super::value::{HOLE, Val};

/// Programs that talk to another machine whatever they are told.
const CLIENTS: &[&str] = &[
    "ab",
    "abduco",
    "aider",
    "amp",
    "apt",
    "apt-get",
    "aws",
    "az",
    "bitcoin-cli",
    "bq",
    "bunx",
    "chromium",
    "chromium-browser",
    "claude",
    "claude-code",
    "codex",
    "copilot",
    "cqlsh",
    "cursor-agent",
    "cvs",
    "dnf",
    "dns2tcp",
    "doctl",
    "doggo",
    "droid",
    "fetchmail",
    "finger",
    "firefox",
    "flyctl",
    "gcloud",
    "gemini",
    "getmail",
    "gh",
    "git-lfs",
    "glab",
    "gnutls-cli",
    "google-chrome",
    "grpcurl",
    "gsutil",
    "h2load",
    "hcloud",
    "heroku",
    "hey",
    "iodine",
    "iperf",
    "iperf3",
    "irssi",
    "k6",
    "kafkacat",
    "kcat",
    "links2",
    "linode-cli",
    "mosh",
    "mosquitto_pub",
    "mosquitto_sub",
    "nats",
    "nmap",
    "npx",
    "ntpdate",
    "nuclei",
    "oc",
    "oci",
    "offlineimap",
    "open",
    "opencode",
    "openvpn",
    "pacman",
    "pkg",
    "qwen",
    "rdate",
    "rlogin",
    "rsh",
    "scp",
    "sensible-browser",
    "sftp",
    "slackcat",
    "snmpget",
    "snmpwalk",
    "speedtest",
    "sqlcmd",
    "ssh",
    "sshfs",
    "syncthing",
    "transmission-cli",
    "uvx",
    "vegeta",
    "weechat",
    "wg-quick",
    "whatweb",
    "wrk",
    "x-www-browser",
    "xdg-open",
    "youtube-dl",
    "yt-dlp",
    "yum",
    "zypper",
];

/// Programs that do with one of these words.
const VERBS: &[(&str, &[&str])] = &[
    (
        "npm",
        &[
            "i", "install", "add", "ci", "update", "exec", "x", "view", "search", "audit", "ping", "create",
            "init", "outdated", "login",
        ],
    ),
    ("pnpm", &["i", "install", "add", "update", "dlx", "create", "audit"]),
    ("yarn", &["install", "add", "up", "upgrade", "dlx", "create", "audit"]),
    ("bun", &["i", "install", "add", "update", "x", "create"]),
    ("pip", &["install", "download", "wheel", "index"]),
    ("pip3", &["install", "download", "wheel", "index"]),
    ("pipx", &["install", "run", "upgrade", "inject"]),
    ("uv", &["add", "sync", "lock", "pip", "tool", "publish"]),
    ("poetry", &["add", "install", "update", "publish", "lock"]),
    ("conda", &["install", "create", "update", "search"]),
    ("cargo", &["install", "add", "update", "fetch", "search", "publish", "login"]),
    ("go", &["get", "install", "mod"]),
    ("gem", &["install", "update", "fetch", "push"]),
    ("bundle", &["install", "update", "add"]),
    ("composer", &["install", "require", "update"]),
    ("dotnet", &["restore", "add", "nuget"]),
    (
        "helm",
        &["install", "upgrade", "repo", "pull", "push", "search", "list", "uninstall", "rollback", "get"],
    ),
    ("docker", &["pull", "push", "run", "login", "build", "buildx", "search", "compose"]),
    ("podman", &["pull", "push", "run", "login", "build", "search"]),
    ("nerdctl", &["pull", "push", "run", "login", "build"]),
    ("brew", &["install", "upgrade", "update", "tap", "fetch"]),
    ("snap", &["install", "refresh", "download"]),
    ("flatpak", &["install", "update"]),
    ("hg", &["push", "pull", "clone", "incoming", "outgoing"]),
    ("svn", &["commit", "ci", "checkout", "co", "update", "up", "import", "export", "copy", "mkdir"]),
    ("bzr", &["push", "pull", "branch"]),
    ("fossil", &["push", "pull", "sync", "clone"]),
    ("jj", &["git"]),
    ("openssl", &["s_client", "ocsp", "s_time"]),
    (
        "gpg",
        &[
            "--send-keys",
            "--recv-keys",
            "--search-keys",
            "--refresh-keys",
            "--locate-keys",
            "--fetch-keys",
            "--keyserver",
        ],
    ),
    ("gpg2", &["--send-keys", "--recv-keys", "--search-keys", "--refresh-keys"]),
    ("logger", &["-n", "--server", "-T", "-d"]),
    ("terraform", &["apply", "plan", "init", "destroy", "refresh", "login"]),
    ("tofu", &["apply", "plan", "init", "destroy"]),
    ("pulumi", &["up", "preview", "refresh", "destroy", "login"]),
    ("ansible-playbook", &[""]),
    ("ansible", &[""]),
    (
        "kubectl",
        &[
            "apply",
            "cp",
            "exec",
            "get",
            "create",
            "delete",
            "describe",
            "logs",
            "port-forward",
            "run",
            "patch",
            "edit",
            "replace",
            "scale",
            "rollout",
            "top",
            "proxy",
            "attach",
            "debug",
        ],
    ),
];

/// Programs that print what others wrote elsewhere: pages of registries, logs, objects.
const TELLS: &[(&str, &[&str])] = &[
    ("npm", &["view", "info", "show", "search", "audit"]),
    ("pnpm", &["view", "info", "search"]),
    ("yarn", &["info"]),
    ("pip", &["index", "search"]),
    ("pip3", &["index", "search"]),
    ("cargo", &["search", "info"]),
    ("gem", &["search", "info"]),
    ("brew", &["info", "search", "home"]),
    ("helm", &["show", "search"]),
    ("docker", &["logs", "search"]),
    ("podman", &["logs", "search"]),
    ("kubectl", &["logs", "describe"]),
    ("oc", &["logs", "describe"]),
    ("heroku", &["logs"]),
    ("vercel", &["logs"]),
    ("fly", &["logs"]),
    ("flyctl", &["logs"]),
    ("yt-dlp", &[""]),
    ("jira", &[""]),
    ("linear", &[""]),
    ("sentry-cli", &["issues", "events"]),
    ("glow", &[""]),
];

/// Databases: on this machine unless something names another.
const DATABASES: &[&str] = &[
    "psql",
    "pg_dump",
    "pg_dumpall",
    "pg_restore",
    "mysql",
    "mysqldump",
    "mariadb",
    "mariadb-dump",
    "mongosh",
    "mongo",
    "mongodump",
    "mongoexport",
    "mongorestore",
    "redis-cli",
    "clickhouse-client",
    "clickhouse",
    "influx",
    "sqlplus",
    "bq",
    "snowsql",
    "usql",
    "pgcli",
    "mycli",
    "cockroach",
];

/// Programs that act with an account of the operator's somewhere else, and what it is.
const ACCOUNTS: &[(&str, &str)] = &[
    ("aws", "a cloud account"),
    ("az", "a cloud account"),
    ("gcloud", "a cloud account"),
    ("gsutil", "a cloud account"),
    ("bq", "a cloud account"),
    ("doctl", "a cloud account"),
    ("hcloud", "a cloud account"),
    ("linode-cli", "a cloud account"),
    ("oci", "a cloud account"),
    ("kubectl", "a cluster"),
    ("oc", "a cluster"),
    ("helm", "a cluster"),
    ("ssh", "another machine"),
    ("mosh", "another machine"),
    ("scp", "another machine"),
    ("sftp", "another machine"),
];

impl Machine<'_> {
    /// Notes what `base` reaches and with which account.
    pub(super) fn notes_reach(&mut self, base: &str, args: &[Val]) {
        let only_shown = matches!(base, "kubectl" | "oc" | "helm")
            && args.iter().any(|a| matches!(a.text.as_str(), "--dry-run" | "--dry-run=client"));
        if talks_of_itself(args) || only_shown {
            return;
        }
        let verb =
            |words: &[&str]| args.iter().take(8).any(|a| words.contains(&a.text.as_str())) || words == [""];
        let reaches = CLIENTS.contains(&base)
            || VERBS.iter().any(|(program, words)| *program == base && verb(words))
            || base.starts_with("firefox")
            || base.starts_with("google-chrome")
            || super::tells::reaches(base, args);
        let database =
            DATABASES.contains(&base) && args.iter().enumerate().any(|(i, a)| elsewhere(a, args.get(i + 1)));
        self.reaches |= reaches || database;
        let told = TELLS.iter().any(|(program, words)| *program == base && verb(words));
        self.told |= database || told || super::tells::prints(base, args);
        // A container's log and a page that lies here come from this machine.
        self.reaches |= told && !matches!(base, "docker" | "podman" | "glow");
        let account = ACCOUNTS.iter().find(|(program, _)| *program == base && reaches);
        let own = stays(base, args)
            || matches!(
                (base, args.first().map(|a| a.text.as_str())),
                ("helm", Some("search" | "repo" | "pull" | "template" | "lint" | "show"))
            )
            || matches!(
                args.iter().map(|a| a.text.as_str()).take(2).collect::<Vec<_>>().as_slice(),
                ["configure" | "config", "list" | "get"]
                    | ["config", "view" | "current-context" | "get-contexts" | "use-context"]
            );
        if own {
            // Nobody's account is used.
        } else if let Some((_, what)) = account {
            self.account = Some(what);
        } else if database {
            self.account = Some("a database");
        } else if base == "gh"
            && verb(&["api", "secret", "gist", "variable", "codespace", "ssh-key", "gpg-key", "auth"])
        {
            self.account = Some("an account at a forge");
        }
    }

    /// An argument that is an address has a program without rules of its own talk to it.
    pub(super) fn notes_addresses(&mut self, args: &[Val]) {
        let named = args.iter().any(|a| {
            super::tells::names_machine(&a.text)
                && !self
                    .meanings(&a.map(a.text.split(':').next().unwrap_or_default()))
                    .iter()
                    .any(|p| self.world.kind(p) != crate::policy::Kind::Missing)
        });
        let addressed = args.iter().any(|a| {
            let text = a.text.trim_start_matches(['"', '\'']);
            text.split_once("://").is_some_and(|(scheme, rest)| {
                !scheme.is_empty()
                    && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
                    && scheme != "file"
                    && !local(rest)
            }) || text.contains("'http://")
                || text.contains("'https://")
                || text.contains("'s3://")
        });
        self.reaches |= named || addressed;
        // What a program without rules prints of an address is what it got there.
        self.told |= addressed;
    }
}

/// Whether an argument of a database's client names another machine, or nobody knows which.
fn elsewhere(arg: &Val, next: Option<&Val>) -> bool {
    let text = arg.text.as_str();
    match text {
        "-h" | "--host" => next.is_some_and(|n| !local(&n.text)),
        _ if text.starts_with("--host=") => !local(&text[7..]),
        _ if text.starts_with("-h") && text.len() > 2 && !text.starts_with("-he") => !local(&text[2..]),
        _ => match text.split_once("://") {
            Some((_, rest)) => !local(rest.rsplit_once('@').map_or(rest, |(_, host)| host)),
            None => {
                text.contains("host=")
                    && !text.contains("host=/")
                    && !text.contains("host=localhost")
                    && !text.contains("host=127.")
                    || text.starts_with(HOLE)
            }
        },
    }
}

/// Whether the host at the start of `rest` is this machine.
pub(super) fn local(rest: &str) -> bool {
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_lowercase();
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None if host == "::1" => "::1",
        None => host.split(':').next().unwrap_or_default(),
    };
    matches!(name, "" | "localhost" | "::1")
        || name.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
        || name.ends_with(".localhost")
}

/// Options of curl whose value is no address. Other programs take some of the same letters for switches.
const PLAIN_VALUES: &[&str] = &[
    "-d",
    "--data",
    "--data-raw",
    "--data-binary",
    "--data-urlencode",
    "--json",
    "-H",
    "--header",
    "-X",
    "--request",
    "-o",
    "--output",
    "-F",
    "--form",
    "-u",
    "--user",
    "-b",
    "-c",
    "-A",
    "--user-agent",
    "-w",
    "--write-out",
    "-m",
    "--max-time",
    "--connect-timeout",
    "--retry",
];

/// Whether every address among the arguments is this machine's own. What could be an address and is no known option's
/// value counts as one.
pub(super) fn stays(base: &str, args: &[Val]) -> bool {
    let mut own = 0;
    let mut value = false;
    for a in args {
        let text = a.text.as_str();
        if std::mem::take(&mut value) {
            continue;
        }
        if text.starts_with('-') && !text.contains("://") {
            value = base == "curl" && PLAIN_VALUES.contains(&text);
            // A way round, whatever the address says.
            if ["--proxy", "-x", "--preproxy", "--socks", "--resolve", "--connect-to", "-K", "--config", "-J"]
                .iter()
                .any(|o| text.starts_with(o))
            {
                return false;
            }
            continue;
        }
        let host = text.split_once("://").map_or(text, |(_, rest)| rest);
        if host.is_empty() || !local(host) {
            return false;
        }
        own += 1;
    }
    own > 0
}

/// Whether a program is only asked what it is.
pub(super) fn talks_of_itself(args: &[Val]) -> bool {
    !args.is_empty()
        && args
            .iter()
            .all(|a| matches!(a.text.as_str(), "--version" | "-V" | "version" | "--help" | "-h" | "help"))
}
