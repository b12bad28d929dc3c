//! The names and places that [`super::secret()`] compares with, in the form of [`super::fold`].

/// Endings of files that show how a secret file looks, or that are code about one.
#[rustfmt::skip]
pub(super) const TEMPLATE_ENDS: &[&str] = &[
    "example", "examples", "sample", "template", "tmpl", "tpl", "dist", "schema", "defaults", "md", "ts", "js", "mjs", "cjs", "tsx", "py", "rs", "go",
    "java", "rb", "php", "html", "css", "txt.example", "j2",
];

/// Files whose name alone says that they hold secrets.
#[rustfmt::skip]
pub(super) const SECRET_NAMES: &[&str] = &[
    "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "identity.key", ".netrc", "_netrc", ".authinfo", ".authinfo.gpg",
    ".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".pypirc", ".git-credentials", ".htpasswd", ".dockercfg", ".dockerconfigjson", ".boto",
    ".s3cfg", ".vault-token", ".vault_pass", ".vault_pass.txt", ".vault-password", "credentials.tfrc.json", ".terraformrc", "master.key",
    "application_default_credentials.json", ".credentials.json", "oauth_creds.json", "rclone.conf", "wallet.dat", "key4.db", "key3.db", "logins.json",
    "signons.sqlite", "cookies.sqlite", "login data", "login data for account", "cookies", "web data", "wp-config.php", "local.settings.json",
    "kubeconfig", ".kubeconfig", "krb5.keytab", ".bash_history", ".zsh_history", ".sh_history", ".ash_history", ".fish_history", "fish_history",
    ".python_history", ".psql_history", ".mysql_history", ".node_repl_history", ".rediscli_history", ".irb_history", ".claude.json",
    ".smbcredentials", ".cifs-credentials", ".pgsql_pass", ".ldaprc", "htpasswd", ".envrc", ".env", ".tfstate", ".esmtprc", ".msmtprc",
    ".fetchmailrc", ".offlineimaprc", ".gitlab-token", ".github-token", ".npm-token", ".snyk-token", "keystore.properties", "signing.properties",
    ".aws-credentials", "creds.json", "creds.yml", "creds.yaml", ".creds", "deploy_key", "deploy-key", "deploykey", "serviceaccountkey.json",
    "firebase-adminsdk.json", "secring.gpg", "private.asc", "private-key.asc", "token.json", "token.txt", ".token", ".databrickscfg", ".sentryclirc",
    ".mbsyncrc", ".muttrc", ".xauthority", ".iceauthority", ".histfile", ".viminfo", ".lesshst", "state.vscdb",
    "state.vscdb.backup", ".huggingface-token", ".gh-token", ".gitlab-credentials", ".mailrc",
    ".ossutilconfig", ".stripe-token", "debian.cnf", "chap-secrets", "pap-secrets", "ipsec.secrets", "accesstokens.json", "azureprofile.json",
    "msal_token_cache.json", "login.keychain-db", ".pgpass.conf", "sec.conf", ".bw-session", ".op-session",
    ".passwd", ".passwd-s3fs", ".dev.vars", "ssh_host_rsa_key", "ssh_host_ed25519_key", "ssh_host_ecdsa_key",
];

/// Files that end so hold keys.
#[rustfmt::skip]
pub(super) const SECRET_ENDS: &[&str] = &[
    ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".kdb", ".ppk", ".keytab", ".tfstate", ".tfstate.backup", ".pkcs12", ".agekey", ".tfvars",
    ".tfvars.json", ".mobileprovision", ".gpgkey", ".secret", ".pvk", ".keychain", ".keychain-db", ".kwallet", ".ovpn", ".seed", ".mnemonic",
    "-service-account.json", "_service_account.json", ".session.key",
];

/// Directories whose content is secret wherever they lie, with the names in them that are not.
#[rustfmt::skip]
pub(super) const SECRET_DIRS: &[(&[&str], &[&str])] = &[
    (&[".ssh"], &["config", "known_hosts", "known_hosts.old", "authorized_keys"]), (&[".aws"], &["config"]), (&[".azure"], &[]),
    (&[".gnupg"], &["gpg.conf", "gpg-agent.conf", "pubring.kbx", "dirmngr.conf"]), (&[".password-store"], &[]),
    (&[".kube"], &["cache", "http-cache"]), (&[".config", "gcloud"], &[]), (&[".config", "gh"], &["config.yml"]), (&[".config", "hub"], &[]),
    (&[".config", "glab-cli"], &[]), (&[".config", "op"], &[]), (&[".config", "anthropic"], &[]), (&[".config", "github-copilot"], &[]),
    (&[".config", "google-chrome"], &[]), (&[".config", "google-chrome-beta"], &[]), (&[".config", "chromium"], &[]),
    (&[".config", "bravesoftware"], &[]), (&[".config", "microsoft-edge"], &[]), (&[".config", "vivaldi"], &[]), (&[".config", "opera"], &[]),
    (&[".config", "slack"], &[]), (&[".config", "discord"], &[]), (&[".config", "signal"], &[]), (&[".config", "sops"], &[]),
    (&[".config", "age"], &[]), (&[".config", "doctl"], &[]), (&[".config", "hcloud"], &[]), (&[".config", "stripe"], &[]),
    (&[".config", "ngrok"], &[]), (&[".config", "heroku"], &[]), (&[".config", "solana"], &[]), (&[".config", "filezilla"], &[]),
    (&[".config", "netlify"], &[]), (&[".config", "rclone"], &[]), (&[".config", "bitwarden"], &[]), (&[".config", "bitwarden cli"], &[]),
    (&[".config", "keepassxc"], &[]), (&[".config", "sourcegraph"], &[]), (&[".ngrok2"], &[]), (&[".mozilla"], &[]), (&[".thunderbird"], &[]),
    (&[".electrum"], &[]), (&[".bitcoin"], &[]), (&[".ethereum"], &[]), (&[".putty"], &[]), (&[".step"], &[]), (&[".oci"], &[]), (&[".bluemix"], &[]),
    (&[".aliyun"], &[]), (&[".minikube", "certs"], &[]), (&[".local", "share", "keyrings"], &[]), (&[".local", "share", "kwalletd"], &[]),
    (&[".local", "share", "atuin"], &[]), (&[".huggingface"], &[]), (&["library", "keychains"], &[]), (&["library", "cookies"], &[]),
    (&["application support", "google", "chrome"], &[]), (&["application support", "firefox"], &[]), (&["appdata", "local", "google", "chrome"], &[]),
    (&["run", "secrets"], &[]), (&["snap", "firefox"], &[]), (&["etc", "ssl", "private"], &[]), (&[".config", "scw"], &[]),
    (&[".config", "fly"], &[]), (&[".config", "tea"], &[]), (&[".config", "configstore"], &[]), (&[".config", "vercel"], &[]),
    (&[".config", ".wrangler"], &[]), (&[".wrangler", "config"], &[]), (&[".config", "wandb"], &[]), (&[".config", "cloudflared"], &[]),
    (&[".config", "remmina"], &[]), (&[".config", "exodus"], &[]), (&[".config", "gsutil"], &[]),
    (&[".config", "neonctl"], &[]), (&[".config", "turso"], &[]), (&[".config", "planetscale"], &[]), (&[".config", "supabase"], &[]),
    (&[".config", "railway"], &[]), (&[".config", "doppler"], &[]), (&[".config", "akeyless"], &[]), (&[".config", "infisical"], &[]),
    (&[".config", "gitlab"], &[]), (&[".config", "1password"], &[]), (&[".config", "nordvpn"], &[]),
    (&[".config", "protonvpn"], &[]), (&[".config", "signal-desktop"], &[]), (&[".config", "element"], &[]), (&[".config", "telegram"], &[]),
    (&[".config", "mongocli"], &[]), (&[".config", "atlascli"], &[]), (&[".config", "confluent"], &[]), (&[".config", "databricks"], &[]),
    (&[".config", "linode-cli"], &[]), (&[".config", "argocd"], &[]), (&[".config", "jira"], &[]), (&[".talos"], &[]), (&[".twilio-cli"], &[]), (&[".local", "share", "signal-cli"], &[]),
    (&[".config", "snowflake"], &[]), (&[".config", "linode"], &[]),
    (&[".config", "vultr"], &[]), (&[".config", "ovh"], &[]), (&[".config", "civo"], &[]), (&[".snowsql"], &[]),
    (&[".snowflake"], &[]), (&[".kaggle"], &[]), (&[".mc"], &[]), (&[".cloudflared"], &[]), (&[".age"], &[]),
    (&[".op"], &[]), (&[".near-credentials"], &[]), (&[".near"], &[]), (&[".foundry", "keystores"], &[]), (&[".brownie", "accounts"], &[]),
    (&[".solana"], &[]), (&[".config", "sui"], &[]), (&["telegramdesktop", "tdata"], &[]), (&[".purple"], &[]),
    (&[".doppler"], &[]), (&[".infisical"], &[]),
    (&[".secrets"], &["readme.md", ".gitkeep", ".gitignore", "example", "baseline"]), (&[".gcloud"], &[]),
    (&[".pulumi", "credentials"], &[]), (&[".config", "pulumi"], &[]),
    (&[".azure-devops"], &[]), (&[".local", "share", "uv", "credentials"], &[]), (&[".local", "share", "pypoetry"], &[]),
    (&[".local", "share", "signal"], &[]), (&[".local", "share", "telegramdesktop"], &[]), (&[".local", "share", "evolution"], &[]),
    (&[".local", "share", "gnome-keyring"], &[]), (&[".local", "share", "networkmanagement"], &[]), (&[".config", "evolution"], &[]),
    (&[".config", "goa-1.0"], &[]), (&["snap", "chromium"], &[]), (&["snap", "brave"], &[]), (&["application support", "bravesoftware"], &[]),
    (&["application support", "microsoft edge"], &[]), (&["application support", "chromium"], &[]), (&["application support", "slack"], &[]),
    (&["application support", "signal"], &[]), (&["appdata", "local", "bravesoftware"], &[]),
    (&["appdata", "local", "microsoft", "credentials"], &[]), (&["appdata", "roaming", "microsoft", "protect"], &[]),
    (&["appdata", "roaming", "mozilla"], &[]), (&["etc", "wireguard"], &[]), (&["etc", "networkmanager", "system-connections"], &[]),
    (&["etc", "wpa_supplicant"], &[]), (&["etc", "kubernetes"], &["manifests"]), (&["etc", "rancher"], &[]), (&["etc", "openvpn"], &[]),
    (&["etc", "letsencrypt", "live"], &[]), (&["etc", "letsencrypt", "archive"], &[]), (&["etc", "pki", "private"], &[]),
    (&["etc", "ipsec.d", "private"], &[]), (&["etc", "ceph"], &[]), (&["etc", "munge"], &[]), (&["var", "lib", "kubelet"], &[]),
    (&["var", "lib", "rancher"], &[]), (&["var", "lib", "mysql"], &[]), (&["var", "lib", "postgresql"], &[]), (&["var", "lib", "sss"], &[]),
    (&["var", "lib", "jenkins", "secrets"], &[]), (&["var", "run", "secrets"], &[]), (&[".claude", "shell-snapshots"], &[]),
    (&[".claude", "session-env"], &[]), (&[".claude", "paste-cache"], &[]), (&[".claude", "file-history"], &[]), (&[".claude", "debug"], &[]),
    (&[".claude", "backups"], &[]), (&[".codex", "sessions"], &[]), (&[".gemini", "tmp"], &[]), (&[".cursor", "chats"], &[]),
    (&[".local", "share", "opencode"], &[]),
];

/// Files that are secret by where they lie.
#[rustfmt::skip]
pub(super) const SECRET_TAILS: &[&[&str]] = &[
    &[".docker", "config.json"], &[".cargo", "credentials"], &[".cargo", "credentials.toml"], &[".gem", "credentials"], &[".m2", "settings.xml"],
    &[".m2", "settings-security.xml"], &[".gradle", "gradle.properties"], &[".composer", "auth.json"], &[".config", "composer", "auth.json"],
    &[".codex", "auth.json"], &[".gemini", "google_accounts.json"], &[".fly", "config.yml"], &[".railway", "config.json"], &[".vercel", "auth.json"],
    &["com.vercel.cli", "auth.json"], &[".terraform.d", "credentials.tfrc.json"], &[".cache", "huggingface", "token"],
    &[".streamlit", "secrets.toml"], &[".config", "pip", "pip.conf"], &[".pip", "pip.conf"], &[".nuget", "nuget.config"], &[".jess", "key"],
    &["containers", "auth.json"], &["opencode", "auth.json"], &["jess", "mac.key"], &[".config", "hub"], &[".config", "pypoetry", "auth.toml"],
    &[".config", "weechat", "sec.conf"], &[".config", "irssi", "config"], &[".bundle", "config"], &[".dbt", "profiles.yml"],
    &[".circleci", "cli.yml"], &[".travis", "config.yml"], &[".irssi", "config"], &[".claude", "history.jsonl"], &[".codex", "history.jsonl"],
    &["options", "security.xml"], &["etc", "docker", "key.json"], &[".expo", "state.json"], &[".mongodb", "mongosh", "mongosh_repl_history"],
    &[".sbt", "credentials"], &[".ivy2", ".credentials"], &[".lein", "credentials.clj.gpg"], &[".hex", "hex.config"],
    &[".pub-cache", "credentials.json"], &[".config", "dart", "pub-credentials.json"], &[".config", "nuget", "nuget.config"],
    &[".config", "hatch", "auth.toml"], &[".config", "gitui", "key"], &[".cargo", "registry-token"], &[".deno", "token"],
    &[".jupyter", "jupyter_server_config.json"], &[".ansible", "galaxy_token"], &[".helm", "repository", "repositories.yaml"],
    &[".config", "helm", "repositories.yaml"], &[".config", "helm", "registry", "config.json"], &[".config", "aerc", "accounts.conf"],
    &[".config", "neomutt", "neomuttrc"], &[".config", "himalaya", "config.toml"], &[".config", "msmtp", "config"], &[".config", "isyncrc"],
    &[".supabase", "access-token"], &[".netlify", "config.json"], &[".vault", "token"], &[".config", "dbt", "profiles.yml"],
];

/// Names, after a key's own, that copies of it carry: `id_rsa.bak`.
pub(super) const KEY_STEMS: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss"];

/// Stems of files of data (see [`DATA_ENDS`]) that hold credentials.
#[rustfmt::skip]
pub(super) const SECRET_STEMS: &[&str] = &[
    "secrets", "secret", "credentials", "credential", "creds", "client_secret", "service-account", "service_account", "serviceaccount",
    "serviceaccountkey", "service-account-key", "service_account_key", "passwords", "vault_pass", "vault-password", "apikeys", "api_keys", "api-keys",
    "private_key", "private-key", "gcp-key", "gcloud-key", "auth_tokens", "access_tokens", "firebase-adminsdk", "deploy_key", "deploy-key",
];

/// Endings of files of data, without the dot.
#[rustfmt::skip]
pub(super) const DATA_ENDS: &[&str] = &[
    "json", "yml", "yaml", "toml", "ini", "cfg", "conf", "xml", "properties", "txt", "env", "csv", "bak", "old", "",
];

/// Directories of made-up material for tests: what looks like a secret in them is asked about, not denied.
#[rustfmt::skip]
pub(super) const FIXTURES: &[&str] = &[
    "fixtures", "fixture", "__fixtures__", "testdata", "test-data", "test_data", "testfixtures", "mocks", "__mocks__",
];

/// Directories of translations: a `.key` file in them is a text.
pub(super) const TRANSLATIONS: &[&str] =
    &["i18n", "l10n", "locale", "locales", "lang", "langs", "languages", "translations"];

/// Files below a home that hold credentials next to ordinary settings.
pub(super) const MIXED_TAILS: &[&[&str]] = &[
    &[".cursor", "mcp.json"],
    &[".continue", "config.json"],
    &[".continue", "config.yaml"],
    &[".codeium", "windsurf", "mcp_config.json"],
    &[".gemini", "settings.json"],
];

/// Names of secrets of a project that a person may reasonably let be read: mostly settings, or mostly made up.
#[rustfmt::skip]
pub(super) const DEBATABLE_NAMES: &[&str] = &[
    ".envrc", "secret.yml", "secret.yaml", "secret.json", "secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml", "token.json", "token.txt",
    "creds.json", "creds.yml", "creds.yaml", "terraform.tfvars", "terraform.tfvars.json",
];
