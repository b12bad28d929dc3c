//! What a path is: a secret, something that runs or is obeyed later, the guard itself.
//!
//! Paths are judged as the file system sees them after [`super::World::resolve`], without regard to case, with
//! zero-width characters removed and full-width letters narrowed, since some file systems fold them.

use super::Scope;
use super::world::{Kind, World, normalise};
use std::path::{Path, PathBuf};

/// Why a path must not be read.
pub type Secret = &'static str;
/// Why a path must not be written.
pub type Protected = &'static str;

/// Every place that `path` can mean: made absolute, then by name alone and by following links.
pub fn meanings(path: &str, base: &Path, scope: &Scope, world: &dyn World) -> Vec<PathBuf> {
    let absolute = unproc(&absolute(path, base, scope), scope);
    let by_links = unproc(&world.resolve(&absolute), scope);
    let by_name = normalise(&absolute);
    if by_name == by_links { vec![by_links] } else { vec![by_links, by_name] }
}

/// `path` with `~`, `file:` and a relative start resolved.
fn absolute(path: &str, base: &Path, scope: &Scope) -> PathBuf {
    let path = path.strip_prefix("file://").map_or(path, |p| p.strip_prefix("localhost").unwrap_or(p));
    if path == "~" {
        return scope.home.clone();
    }
    if let Some(rest) = path.strip_prefix("~/") {
        return scope.home.join(rest);
    }
    base.join(path)
}

/// Takes `/proc/PID/root` and `/proc/PID/cwd` out of a path: they lead anywhere without being a link by name.
fn unproc(path: &Path, scope: &Scope) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..8 {
        let plain = normalise_dots(&path);
        let mut parts = plain.components().skip(1).map(|c| c.as_os_str().to_string_lossy().into_owned());
        if parts.next().as_deref() != Some("proc") || parts.next().is_none() {
            return path;
        }
        let mut door = parts.next();
        let mut skip = 4;
        if door.as_deref() == Some("task") {
            parts.next();
            door = parts.next();
            skip = 6;
        }
        let start = match door.as_deref() {
            Some("root") => PathBuf::from("/"),
            Some("cwd") => scope.cwd.clone(),
            _ => return path,
        };
        path = plain.components().skip(skip).fold(start, |p, c| p.join(c));
    }
    path
}

/// `path` without `.` components; `..` stays.
fn normalise_dots(path: &Path) -> PathBuf {
    path.components().collect()
}

/// A path or name in the form that rules compare.
pub fn fold(text: &str) -> String {
    text.chars()
        .filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}'))
        .map(|c| match c {
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
            c => c,
        })
        .flat_map(char::to_lowercase)
        .collect()
}

fn parts(path: &Path) -> Vec<String> {
    path.components()
        .filter_map(|c| match c {
            std::path::Component::Normal(n) => Some(fold(&n.to_string_lossy())),
            _ => None,
        })
        .collect()
}

const TEMPLATE_ENDS: &[&str] = &[
    "example",
    "examples",
    "sample",
    "template",
    "tmpl",
    "tpl",
    "dist",
    "schema",
    "defaults",
    "md",
    "ts",
    "js",
    "mjs",
    "cjs",
    "tsx",
    "py",
    "rs",
    "go",
    "java",
    "rb",
    "php",
    "html",
    "css",
    "txt.example",
    "j2",
];

/// Files whose name alone says that they hold secrets.
const SECRET_NAMES: &[&str] = &[
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
    "identity.key",
    ".netrc",
    "_netrc",
    ".authinfo",
    ".authinfo.gpg",
    ".pgpass",
    "pgpass.conf",
    ".my.cnf",
    ".mylogin.cnf",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".dockercfg",
    ".dockerconfigjson",
    ".boto",
    ".s3cfg",
    ".vault-token",
    ".vault_pass",
    ".vault_pass.txt",
    ".vault-password",
    "credentials.tfrc.json",
    ".terraformrc",
    "master.key",
    "application_default_credentials.json",
    ".credentials.json",
    "oauth_creds.json",
    "rclone.conf",
    "wallet.dat",
    "key4.db",
    "key3.db",
    "logins.json",
    "signons.sqlite",
    "cookies.sqlite",
    "login data",
    "login data for account",
    "cookies",
    "web data",
    "wp-config.php",
    "local.settings.json",
    "kubeconfig",
    ".kubeconfig",
    "krb5.keytab",
    ".bash_history",
    ".zsh_history",
    ".sh_history",
    ".ash_history",
    ".fish_history",
    "fish_history",
    ".python_history",
    ".psql_history",
    ".mysql_history",
    ".node_repl_history",
    ".rediscli_history",
    ".irb_history",
    ".claude.json",
    ".smbcredentials",
    ".cifs-credentials",
    ".pgsql_pass",
    ".ldaprc",
    "htpasswd",
    ".envrc",
    ".env",
    ".tfstate",
    ".esmtprc",
    ".msmtprc",
    ".fetchmailrc",
    ".offlineimaprc",
    ".gitlab-token",
    ".github-token",
    ".npm-token",
    ".snyk-token",
    "keystore.properties",
    "signing.properties",
    ".aws-credentials",
];

/// Files that end so hold keys.
const SECRET_ENDS: &[&str] = &[
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".kdb",
    ".ppk",
    ".keytab",
    ".tfstate",
    ".tfstate.backup",
    ".pkcs12",
    ".agekey",
    ".tfvars",
    ".tfvars.json",
    ".mobileprovision",
    ".gpgkey",
    ".secret",
    ".pvk",
];

/// Directories whose content is secret wherever they lie, with the names in them that are not.
const SECRET_DIRS: &[(&[&str], &[&str])] = &[
    (&[".ssh"], &["config", "known_hosts", "known_hosts.old", "authorized_keys"]),
    (&[".aws"], &["config"]),
    (&[".azure"], &[]),
    (&[".gnupg"], &["gpg.conf", "gpg-agent.conf", "pubring.kbx", "dirmngr.conf"]),
    (&[".password-store"], &[]),
    (&[".kube"], &["cache", "http-cache"]),
    (&[".config", "gcloud"], &[]),
    (&[".config", "gh"], &["config.yml"]),
    (&[".config", "hub"], &[]),
    (&[".config", "glab-cli"], &[]),
    (&[".config", "op"], &[]),
    (&[".config", "anthropic"], &[]),
    (&[".config", "github-copilot"], &[]),
    (&[".config", "google-chrome"], &[]),
    (&[".config", "google-chrome-beta"], &[]),
    (&[".config", "chromium"], &[]),
    (&[".config", "bravesoftware"], &[]),
    (&[".config", "microsoft-edge"], &[]),
    (&[".config", "vivaldi"], &[]),
    (&[".config", "opera"], &[]),
    (&[".config", "slack"], &[]),
    (&[".config", "discord"], &[]),
    (&[".config", "signal"], &[]),
    (&[".config", "sops"], &[]),
    (&[".config", "age"], &[]),
    (&[".config", "doctl"], &[]),
    (&[".config", "hcloud"], &[]),
    (&[".config", "stripe"], &[]),
    (&[".config", "ngrok"], &[]),
    (&[".config", "heroku"], &[]),
    (&[".config", "solana"], &[]),
    (&[".config", "filezilla"], &[]),
    (&[".config", "netlify"], &[]),
    (&[".config", "rclone"], &[]),
    (&[".config", "bitwarden"], &[]),
    (&[".config", "bitwarden cli"], &[]),
    (&[".config", "keepassxc"], &[]),
    (&[".config", "sourcegraph"], &[]),
    (&[".ngrok2"], &[]),
    (&[".mozilla"], &[]),
    (&[".thunderbird"], &[]),
    (&[".electrum"], &[]),
    (&[".bitcoin"], &[]),
    (&[".ethereum"], &[]),
    (&[".putty"], &[]),
    (&[".step"], &[]),
    (&[".oci"], &[]),
    (&[".bluemix"], &[]),
    (&[".aliyun"], &[]),
    (&[".minikube", "certs"], &[]),
    (&[".local", "share", "keyrings"], &[]),
    (&[".local", "share", "kwalletd"], &[]),
    (&[".local", "share", "atuin"], &[]),
    (&[".huggingface"], &[]),
    (&["library", "keychains"], &[]),
    (&["library", "cookies"], &[]),
    (&["application support", "google", "chrome"], &[]),
    (&["application support", "firefox"], &[]),
    (&["appdata", "local", "google", "chrome"], &[]),
    (&["run", "secrets"], &[]),
    (&["snap", "firefox"], &[]),
    (&["etc", "ssl", "private"], &[]),
];

/// Files that are secret by where they lie.
const SECRET_TAILS: &[&[&str]] = &[
    &[".docker", "config.json"],
    &[".cargo", "credentials"],
    &[".cargo", "credentials.toml"],
    &[".gem", "credentials"],
    &[".m2", "settings.xml"],
    &[".m2", "settings-security.xml"],
    &[".gradle", "gradle.properties"],
    &[".composer", "auth.json"],
    &[".config", "composer", "auth.json"],
    &[".codex", "auth.json"],
    &[".gemini", "google_accounts.json"],
    &[".fly", "config.yml"],
    &[".railway", "config.json"],
    &[".vercel", "auth.json"],
    &["com.vercel.cli", "auth.json"],
    &[".terraform.d", "credentials.tfrc.json"],
    &[".cache", "huggingface", "token"],
    &[".streamlit", "secrets.toml"],
    &[".config", "pip", "pip.conf"],
    &[".pip", "pip.conf"],
    &[".nuget", "nuget.config"],
    &[".jess", "key"],
    &["containers", "auth.json"],
    &["opencode", "auth.json"],
    &["jess", "mac.key"],
];

/// Whether reading `path` (as [`meanings`] gives it) reads a secret, and what kind.
pub fn secret(path: &Path, scope: &Scope) -> Option<Secret> {
    let parts = parts(path);
    let name = parts.last()?.as_str();
    let refs: Vec<&str> = parts.iter().map(String::as_str).collect();
    match refs.as_slice() {
        ["proc", _, .., "environ"] => return Some("the environment of a process"),
        ["proc", _, .., "mem"] | ["proc", "kcore"] | ["dev", "mem" | "kmem" | "port"] => {
            return Some("memory");
        }
        [
            "etc",
            "shadow" | "gshadow" | "shadow-" | "gshadow-" | "sudoers" | "krb5.keytab" | "master.passwd",
        ]
        | ["etc", "sudoers.d", ..] => return Some("a system password file"),
        ["etc", "ssh", n] if n.ends_with("_key") => return Some("a host key"),
        ["dev", d] if ["sd", "nvme", "vd", "xvd", "mmcblk", "hd", "dm-"].iter().any(|p| d.starts_with(p)) => {
            return Some("a raw disk");
        }
        _ => {}
    }
    if name.ends_with(".pub") {
        return None;
    }
    if secret_dir(&refs) || SECRET_TAILS.iter().any(|t| refs.ends_with(t)) {
        return Some("a credential of the operator");
    }
    if name == ".npmrc" && path.parent() == Some(&scope.home) {
        return Some("a credential of the operator");
    }
    if name == ".env" || name.starts_with(".env.") || (name.ends_with(".env") && name.len() > 4) {
        return (!template(name)).then_some("a secret file of the project");
    }
    if name.starts_with(".env") && name.len() > 4 && !name[4..].starts_with(|c: char| c.is_ascii_lowercase())
    {
        return (!template(name)).then_some("a secret file of the project");
    }
    secret_name(name).then_some("a file of credentials")
}

fn secret_dir(parts: &[&str]) -> bool {
    SECRET_DIRS.iter().any(|(dir, open)| {
        parts
            .windows(dir.len())
            .enumerate()
            .any(|(at, w)| w == *dir && parts.get(at + dir.len()).is_some_and(|below| !open.contains(below)))
    })
}

fn template(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|end| TEMPLATE_ENDS.contains(&end))
        || name.contains("example")
        || name.contains("sample")
        || name.contains("template")
}

/// A name that says "secret" anywhere.
fn secret_name(name: &str) -> bool {
    if template(name) {
        return false;
    }
    if SECRET_NAMES.contains(&name) || SECRET_ENDS.iter().any(|e| name.ends_with(e)) {
        return true;
    }
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, ""));
    let data = matches!(
        end,
        "json"
            | "yml"
            | "yaml"
            | "toml"
            | "ini"
            | "cfg"
            | "conf"
            | "xml"
            | "properties"
            | "txt"
            | "env"
            | "csv"
            | ""
    );
    if end == "pem" || end == "key" || end == "der" || end == "p8" {
        return !["cert", "chain", "ca-", "ca_", "ca", "public", "pub", "bundle", "cacert"]
            .iter()
            .any(|w| stem == *w || (w.len() > 2 && stem.contains(w)));
    }
    if !data {
        return false;
    }
    let stem = stem.trim_start_matches('.');
    matches!(
        stem,
        "secrets"
            | "secret"
            | "credentials"
            | "credential"
            | "client_secret"
            | "service-account"
            | "service_account"
            | "serviceaccount"
            | "service-account-key"
            | "passwords"
            | "vault_pass"
            | "vault-password"
            | "apikeys"
            | "api_keys"
            | "api-keys"
            | "private_key"
            | "private-key"
            | "gcp-key"
            | "gcloud-key"
            | "auth_tokens"
            | "access_tokens"
    ) && !(end.is_empty() && matches!(stem, "secrets" | "secret" | "credential"))
        || stem.starts_with("client_secret")
        || stem.contains("-firebase-adminsdk-")
        || (stem.starts_with("secrets.") || stem.ends_with(".secrets") || stem.starts_with("secrets-"))
}

/// Whether a directory's whole content must not be gathered: a place of secrets, or one that holds them.
pub fn secret_place(path: &Path, scope: &Scope) -> Option<Secret> {
    if path == Path::new("/")
        || scope.home.starts_with(path)
        || path == Path::new("/root")
        || path == Path::new("/home")
    {
        return Some("a tree that holds the operator's credentials");
    }
    let below = path.join("x");
    let parts = parts(&below);
    let refs: Vec<&str> = parts.iter().map(String::as_str).collect();
    if secret_dir(&refs) {
        return Some("a directory of credentials");
    }
    matches!(refs.as_slice(), ["proc", "x"] | ["proc", _, "x"] | ["etc", "x"])
        .then_some("a system directory that holds secrets")
}

const SKIPPED: &[&str] =
    &[".git", "node_modules", "target", ".venv", "venv", "__pycache__", "dist", "build", ".cache"];

/// The first secret files below `dir` that `accept` lets through (it gets the name), at most a few; the walk ends
/// after 3,000 names or 6 levels, links are not followed.
pub fn secrets_below(
    dir: &Path,
    scope: &Scope,
    world: &dyn World,
    accept: &dyn Fn(&Path) -> bool,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![(dir.to_path_buf(), 0)];
    let mut seen = 0;
    while let Some((dir, depth)) = todo.pop() {
        for name in world.list(&dir) {
            seen += 1;
            if seen > 3_000 || found.len() >= 8 {
                return found;
            }
            let path = dir.join(&name);
            if secret(&path, scope).is_some() && accept(&path) && world.kind(&path) == Kind::File {
                found.push(path);
            } else if depth < 6
                && !SKIPPED.contains(&name.as_str())
                && !name.contains('.') | name.starts_with('.')
                && world.kind(&path) == Kind::Dir
                && world.resolve(&path) == path
            {
                todo.push((path, depth + 1));
            }
        }
    }
    found
}

/// Shell start-up files and the like, in a home directory.
const HOME_STARTUP: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".kshrc",
    ".inputrc",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".xsessionrc",
    ".pam_environment",
    ".vimrc",
    ".gvimrc",
    ".emacs",
    ".emacs.el",
    ".tmux.conf",
    ".screenrc",
    ".gdbinit",
    ".lldbinit",
    ".pythonrc",
    ".pythonrc.py",
    ".pythonstartup",
    ".irbrc",
    ".pryrc",
    ".wgetrc",
    ".curlrc",
    ".gitconfig",
    ".hgrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pip",
    ".condarc",
    ".gemrc",
    ".netrc",
    ".claude.json",
    ".mcp.json",
    ".rhosts",
    ".forward",
    ".plan",
    ".asoundrc",
    ".selected_editor",
    ".bunfig.toml",
    ".nanorc",
    ".exrc",
    ".ideavimrc",
    ".sqliterc",
    ".psqlrc",
    ".my.cnf",
    ".toprc",
    ".dmrc",
    ".editrc",
    ".rprofile",
    ".renviron",
    ".juliarc.jl",
    ".ghci",
    ".octaverc",
    ".perldb",
    ".rustup",
    ".asdfrc",
    ".tool-versions-hooks",
];

/// Directories in a home directory whose content runs or is obeyed.
const HOME_DIRS: &[&[&str]] = &[
    &[".ssh"],
    &[".gnupg"],
    &[".aws"],
    &[".kube"],
    &[".docker"],
    &[".local", "bin"],
    &["bin"],
    &[".cargo", "bin"],
    &[".cargo", "config.toml"],
    &[".cargo", "config"],
    &[".cargo", "env"],
    &["go", "bin"],
    &[".bun", "bin"],
    &[".deno", "bin"],
    &[".npm-global", "bin"],
    &[".pyenv", "shims"],
    &[".rbenv", "shims"],
    &[".asdf", "shims"],
    &[".nvm"],
    &[".oh-my-zsh"],
    &[".bashrc.d"],
    &[".zshrc.d"],
    &[".profile.d"],
    &[".config", "autostart"],
    &[".config", "systemd"],
    &[".config", "environment.d"],
    &[".config", "fish"],
    &[".config", "zsh"],
    &[".config", "bash"],
    &[".config", "git"],
    &[".config", "jess"],
    &[".config", "claude"],
    &[".config", "pip"],
    &[".config", "npm"],
    &[".config", "nvim"],
    &[".config", "direnv"],
    &[".config", "mise"],
    &[".config", "Code"],
    &[".config", "Cursor"],
    &[".config", "user-tmpfiles.d"],
    &[".config", "plasma-workspace"],
    &[".config", "containers"],
    &[".config", "gh"],
    &[".config", "containers", "systemd"],
    &[".config", "sway"],
    &[".config", "i3"],
    &[".config", "hypr"],
    &[".local", "share", "systemd"],
    &[".local", "share", "applications"],
    &[".local", "state", "jess"],
    &[".local", "share", "jess"],
    &[".claude"],
    &[".cursor"],
    &[".codex"],
    &[".gemini"],
    &[".vscode"],
    &[".vscode-server"],
    &[".vim"],
    &[".emacs.d"],
    &[".mozilla"],
    &[".thunderbird"],
    &[".ipython", "profile_default", "startup"],
    &[".jupyter"],
    &[".pip"],
    &[".m2"],
    &[".gradle", "init.d"],
    &[".gradle", "init.gradle"],
    &[".password-store"],
    &["Library", "LaunchAgents"],
];

/// Files an agent obeys, wherever they lie.
const AGENT_NAMES: &[&str] = &[
    "claude.md",
    "claude.local.md",
    "agents.md",
    "agents.override.md",
    "gemini.md",
    "qwen.md",
    "crush.md",
    "warp.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".roorules",
    ".goosehints",
    ".mcp.json",
    "mcp.json",
    ".claude.json",
    "copilot-instructions.md",
    ".rules",
    ".aider.conf.yml",
    "managed-settings.json",
    "managed-mcp.json",
    "jess.toml",
    "conventions.md",
    "opencode.json",
    ".claudeignore",
    ".cursorignore",
    ".mcp.jsonc",
];

/// Directories an agent obeys, wherever they lie.
const AGENT_DIRS: &[&str] = &[
    ".claude",
    ".claude-plugin",
    ".cursor",
    ".windsurf",
    ".clinerules",
    ".roo",
    ".codex",
    ".gemini",
    ".kiro",
    ".continue",
    ".amazonq",
    ".agents",
    ".opencode",
    ".github/instructions",
    ".junie",
];

/// Files of a project that run by themselves.
const RUNS_NAMES: &[&str] = &[
    ".gitlab-ci.yml",
    ".gitlab-ci.yaml",
    "jenkinsfile",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    ".travis.yml",
    ".drone.yml",
    "appveyor.yml",
    ".appveyor.yml",
    "cloudbuild.yaml",
    "buildspec.yml",
    ".woodpecker.yml",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    "lefthook.yml",
    ".lefthook.yml",
    "lefthook.yaml",
    ".lintstagedrc",
    ".huskyrc",
    ".envrc",
    "sitecustomize.py",
    "usercustomize.py",
    ".gitconfig",
    ".cirrus.yml",
    "codemagic.yaml",
    ".overcommit.yml",
];

/// What a write to `path` (as [`meanings`] gives it) would change that it must not, if anything.
pub fn protected(path: &Path, scope: &Scope) -> Option<Protected> {
    let folded = parts(path);
    let refs: Vec<&str> = folded.iter().map(String::as_str).collect();
    let name = *refs.last()?;
    if AGENT_NAMES.contains(&name) || refs.iter().any(|p| AGENT_DIRS.contains(p)) {
        if agent_scratch(&refs) {
            return None;
        }
        return Some("a file that an agent obeys");
    }
    if let Some(at) = refs.iter().position(|p| *p == ".git")
        && !matches!(refs.get(at + 1), None | Some(&"commit_editmsg" | &"merge_msg" | &"description"))
        && refs.get(at + 1..) != Some(&["info", "exclude"])
    {
        return Some("git's own configuration, hooks or objects");
    }
    if refs.windows(2).any(|w| {
        matches!(
            w,
            [".github", "workflows" | "actions"]
                | [".circleci", _]
                | [".buildkite", _]
                | [".woodpecker", _]
                | [".gitea", "workflows"]
                | [".forgejo", "workflows"]
        )
    }) {
        return Some("a file that continuous integration runs");
    }
    if RUNS_NAMES.contains(&name) {
        return Some("a file that runs by itself");
    }
    if refs.iter().any(|p| matches!(*p, ".husky" | ".githooks" | ".devcontainer"))
        || refs.windows(2).any(|w| {
            matches!(
                w,
                [".vscode", "tasks.json" | "settings.json" | "launch.json" | "mcp.json"]
                    | [".idea", "workspace.xml" | "runconfigurations"]
                    | ["site-packages" | "dist-packages", _]
            ) && (w[0] != "site-packages" && w[0] != "dist-packages" || name.ends_with(".pth"))
        })
    {
        return Some("a file that runs by itself");
    }
    for home in [scope.home.as_path(), Path::new("/root")] {
        if let Ok(rest) = path.strip_prefix(home) {
            let rest: Vec<String> =
                rest.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
            if rest.len() == 1 && HOME_STARTUP.contains(&fold(&rest[0]).as_str()) {
                return Some("a start-up or configuration file of the operator");
            }
            if HOME_DIRS
                .iter()
                .any(|d| rest.len() >= d.len() && d.iter().zip(&rest).all(|(a, b)| fold(a) == fold(b)))
            {
                return Some("a start-up or configuration file of the operator");
            }
        }
    }
    if name == "authorized_keys" || name == "authorized_keys2" {
        return Some("a file that grants access");
    }
    if scope.home.parent() == path.parent() && path != scope.home && path.parent() == Some(Path::new("/home"))
    {
        return Some("another user's home");
    }
    if path.starts_with("/root") && !scope.home.starts_with("/root") {
        return Some("another user's home");
    }
    system(&refs)
}

/// Parts of `.claude` that the client itself uses as scratch.
fn agent_scratch(parts: &[&str]) -> bool {
    parts
        .iter()
        .position(|p| *p == ".claude")
        .is_some_and(|at| matches!(parts.get(at + 1), Some(&"plans" | &"worktrees" | &"todos" | &"tmp")))
        && !AGENT_NAMES.contains(parts.last().unwrap_or(&""))
}

fn system(parts: &[&str]) -> Option<Protected> {
    match parts {
        [] => Some("the root directory"),
        [
            "etc" | "usr" | "bin" | "sbin" | "lib" | "lib32" | "lib64" | "boot" | "sys" | "opt" | "system"
            | "library" | "efi",
            ..,
        ] => Some("a system file"),
        ["var", "spool", ..]
        | ["var", "lib", ..]
        | ["var", "www", ..]
        | ["var"]
        | ["var", "log", ..]
        | ["home"] => Some("a system file"),
        ["proc", rest @ ..] if !matches!(rest, [_, "fd", ..]) => Some("a kernel interface"),
        ["dev", d, ..] => (!matches!(
            *d,
            "null"
                | "zero"
                | "full"
                | "stdout"
                | "stderr"
                | "stdin"
                | "tty"
                | "fd"
                | "shm"
                | "pts"
                | "tcp"
                | "udp"
                | "random"
                | "urandom"
        ))
        .then_some("a device"),
        ["run", "user", _, rest @ ..] => {
            matches!(rest, ["jess", ..] | ["systemd", ..] | ["bus"]).then_some("a system socket")
        }
        ["run", ..] => Some("a system file"),
        _ => None,
    }
}

/// Whether `path` is scratch space, where anything may be deleted. A home or project that lies in scratch space is none.
pub fn is_scratch(path: &Path, scope: &Scope) -> bool {
    let own = |p: &Path| path.starts_with(p) || p.starts_with(path);
    scope.scratch.iter().any(|s| path.starts_with(s) && path != s)
        && !own(&scope.home)
        && !own(&scope.project)
}

/// Whether `path` lies in the project (not the project's root itself).
pub fn in_project(path: &Path, scope: &Scope) -> bool {
    path.starts_with(&scope.project) && path != scope.project
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope {
            home: "/home/u".into(),
            cwd: "/home/u/p".into(),
            project: "/home/u/p".into(),
            scratch: vec!["/tmp".into()],
            ..Scope::default()
        }
    }

    #[test]
    fn secrets_are_known_by_name_and_place() {
        for path in [
            "/home/u/p/.env",
            "/home/u/p/a/.env.production",
            "/home/u/.ssh/id_rsa",
            "/root/.ssh/deploy",
            "/home/u/.aws/credentials",
            "/home/u/p/.ENV",
            "/proc/1/environ",
            "/etc/shadow",
            "/home/u/.config/gh/hosts.yml",
            "/home/u/.npmrc",
            "/home/u/p/server.key",
            "/home/u/p/terraform.tfstate",
            "/home/u/p/config/secrets.yml",
            "/home/u/p/prod.env",
            "/home/u/p/.e\u{200b}nv",
        ] {
            assert!(secret(Path::new(path), &scope()).is_some(), "{path}");
        }
    }

    #[test]
    fn look_alikes_are_not_secrets() {
        for path in [
            "/home/u/p/.env.example",
            "/home/u/p/src/env.ts",
            "/home/u/p/src/credentials.rs",
            "/home/u/p/.npmrc",
            "/home/u/.ssh/id_rsa.pub",
            "/home/u/.ssh/known_hosts",
            "/home/u/p/token.rs",
            "/home/u/p/.environment/x",
            "/home/u/p/cacert.pem",
            "/home/u/p/docs/secrets.md",
            "/home/u/p/environment.yml",
        ] {
            assert!(secret(Path::new(path), &scope()).is_none(), "{path}");
        }
    }

    #[test]
    fn what_runs_or_is_obeyed_later_is_protected() {
        for path in [
            "/home/u/.bashrc",
            "/home/u/p/.claude/settings.json",
            "/home/u/p/sub/CLAUDE.md",
            "/home/u/p/.git/hooks/pre-commit",
            "/home/u/p/.github/workflows/x.yml",
            "/etc/cron.d/x",
            "/home/u/.local/bin/git",
            "/home/u/p/.mcp.json",
            "/home/u/.config/systemd/user/x.service",
            "/dev/sda",
            "/usr/bin/git",
            "/home/u/p/.git/config",
        ] {
            assert!(protected(Path::new(path), &scope()).is_some(), "{path}");
        }
        for path in [
            "/home/u/p/src/main.rs",
            "/home/u/p/README.md",
            "/tmp/x",
            "/dev/null",
            "/home/u/p/.gitignore",
            "/home/u/p/docs/a.md",
        ] {
            assert!(protected(Path::new(path), &scope()).is_none(), "{path}");
        }
    }

    #[test]
    fn doors_in_proc_are_seen_through() {
        let s = scope();
        assert_eq!(unproc(Path::new("/proc/self/root/etc/shadow"), &s), Path::new("/etc/shadow"));
        assert_eq!(unproc(Path::new("/proc/1/root/proc/2/cwd/.env"), &s), Path::new("/home/u/p/.env"));
        assert_eq!(unproc(Path::new("/proc/self/environ"), &s), Path::new("/proc/self/environ"));
    }
}
