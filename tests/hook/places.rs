//! Which files must not be read or written, which a person is asked about, and which are ordinary.

use super::world::Place;
use serde_json::{Value, json};

/// Files below the home that run, or are obeyed, later.
#[rustfmt::skip]
const HOME_RUNS: &[&str] = &[
    ".bash_completion", ".local/share/bash-completion/completions/git", ".config/direnvrc", ".config/emacs/init.el", ".config/doom/config.el",
    ".config/helix/config.toml", ".config/zed/settings.json", ".config/VSCodium/User/settings.json", ".config/tmux/tmux.conf", ".config/kitty/kitty.conf",
    ".config/alacritty/alacritty.toml", ".config/wezterm/wezterm.lua", ".config/awesome/rc.lua", ".config/openbox/autostart", ".config/bspwm/bspwmrc",
    ".config/sxhkd/sxhkdrc", ".config/gdb/gdbinit", ".config/mpv/scripts/x.lua", ".config/go/env", ".config/lf/lfrc", ".config/mimeapps.list",
    ".config/starship.toml", ".config/dconf/user", ".wezterm.lua", ".spacemacs", ".doom.d/config.el", ".mailcap", ".lessfilter", ".lesskey", ".ansible.cfg",
    ".terraformrc", ".fzf.bash", ".asdf/asdf.sh", ".sdkman/bin/x", ".nix-profile/bin/x", ".krew/bin/x", ".yarn/bin/x", ".local/share/nvim/site/plugin/x.lua",
    ".local/share/dbus-1/services/x.service", ".local/share/gh/extensions/gh-x/gh-x", ".local/share/direnv/allow/x", ".local/share/mise/x",
    ".local/share/pnpm/x", ".local/share/nautilus/scripts/x", ".local/lib/python3.11/site-packages/requests/__init__.py", ".cargo/registry/src/x/lib.rs",
    ".sbt/1.0/x.sbt", ".gradle/gradle.properties", ".pylintrc", ".jess/key", ".config/a-program-of-the-future/init", ".some-rc",
];

/// Files of a project that run, or are obeyed, later.
#[rustfmt::skip]
const PROJECT_RUNS: &[&str] = &[
    ".gitattributes", ".gitmodules", ".npmrc", ".yarnrc.yml", ".yarn/releases/yarn.cjs", ".pnpmfile.cjs", "bunfig.toml", "mise.toml", ".mise.toml", ".exrc",
    ".nvimrc", ".nvim.lua", ".lvimrc", ".dir-locals.el", ".gdbinit", ".zed/tasks.json", ".zed/settings.json", ".mvn/jvm.config", ".mvn/extensions.xml",
    "gradle/wrapper/gradle-wrapper.properties", ".bazelrc", "vendor/x/.git", "bare.git/config", "bare.git/hooks/post-receive", "x/hooks/post-checkout",
    ".venv/bin/python", "node_modules/.bin/tsc", "azure-pipelines.yaml", "cloudbuild.yml", "buildspec.yaml", ".woodpecker.yaml", ".lintstagedrc.json",
    ".huskyrc.yml", "lefthook-local.yml", ".semaphore/semaphore.yml", ".teamcity/settings.kts", "action.yml", ".github/prompts/x.prompt.md",
    ".github/chatmodes/x.md", ".github/agents/x.md", ".github/instructions/x.md", "opencode.jsonc", "crush.json", ".kilocode/rules/x.md",
    ".trae/rules/x.md", ".augment/rules/x.md", "AGENT.md", ".vscode/settings.json", ".vscode/tasks.json",
];

/// Names that only resemble them.
#[rustfmt::skip]
const PROJECT_ORDINARY: &[&str] = &[
    "docs/conventions.md", "src/mcp.json", "docs/warp.md", "docs/crush.md", "docs/agent.md", ".gitignore", ".editorconfig", "src/hooks/useThing.ts",
    "hooks/README.md", "src/cloudbuild.ts", "docs/azure-pipelines.md", "git/config", "src/action.ts", "bin/tool", "venv.py", ".github/ISSUE_TEMPLATE/bug.md",
    ".github/dependabot.yml", "src/.gitkeep", "tests/fixtures/a.json", "src/config.git.ts",
];

/// Secrets of the operator and of the machine; `~` is the home.
#[rustfmt::skip]
const HOME_SECRETS: &[&str] = &[
    "~/.config/pypoetry/auth.toml", "~/.config/scw/config.yaml", "~/.config/fly/config.yml", "~/.config/tea/config.yml",
    "~/.config/configstore/firebase-tools.json", "~/.config/vercel/auth.json", "~/.config/.wrangler/config/default.toml", "~/.config/wandb/settings",
    "~/.config/cloudflared/x.json", "~/.config/JetBrains/x/options/security.xml", "~/.config/remmina/x", "~/.config/weechat/sec.conf",
    "~/.config/Code/User/globalStorage/state.vscdb", "~/.config/gsutil/x", "~/.config/hub", "~/.wrangler/config/default.toml", "~/.supabase/access-token",
    "~/.expo/state.json", "~/.bundle/config", "~/.local/share/uv/credentials/x", "~/.databrickscfg", "~/.snowsql/config", "~/.snowflake/config.toml",
    "~/.dbt/profiles.yml", "~/.kaggle/kaggle.json", "~/.sentryclirc", "~/.circleci/cli.yml", "~/.travis/config.yml", "~/.mc/config.json",
    "~/.cloudflared/cert.pem", "~/.age/key.txt", "~/.op/config", "~/.near-credentials/x", "~/.foundry/keystores/x", "~/.config/Exodus/x",
    "~/.local/share/TelegramDesktop/tdata/x", "~/.purple/accounts.xml", "~/.irssi/config", "~/.mbsyncrc", "~/.muttrc", "~/.Xauthority", "~/.histfile",
    "~/.viminfo", "~/.mongodb/mongosh/mongosh_repl_history", "~/snap/chromium/x", "~/.some_program_history", "~/.cursor/mcp.json",
    "~/.continue/config.json", "~/.claude/projects/-p/s.jsonl", "~/.claude/projects/-p/s/tool-results/x.jsonl", "~/.claude/history.jsonl",
    "~/.claude/shell-snapshots/x.sh", "~/.claude/session-env/s/x", "/etc/wireguard/wg0.conf", "/etc/NetworkManager/system-connections/x",
    "/etc/wpa_supplicant/x.conf", "/etc/kubernetes/admin.conf", "/etc/rancher/k3s/k3s.yaml", "/etc/docker/key.json", "/etc/mysql/debian.cnf",
    "/etc/ppp/chap-secrets", "/etc/ipsec.secrets", "/etc/openvpn/x.conf", "/tmp/krb5cc_0", "/run/user/0/keyring/control", "/dev/input/event0",
];

/// Secrets of a project.
#[rustfmt::skip]
const PROJECT_SECRETS: &[&str] = &[
    "id_rsa.bak", "id_rsa.old", "id_ed25519.txt", "deploy_key", "ca.key", "ca-key.pem", "serviceAccountKey.json", "firebase-adminsdk.json", "creds.json",
    "token.json", "secrets/prod.json", ".secrets/x", "secring.gpg", "private.asc", ".env.js", ".env.sample.real", ".env.example.local", ".env.production.json",
];

/// What only resembles them; the home's part is what the client itself reads.
#[rustfmt::skip]
const READABLE: &[&str] = &[
    ".env.example", ".env.local.example", ".env.example.json", ".env.sample", "i18n/en.key", "src/locales/de.key", "docs/secrets.md", "src/secrets/mod.rs",
    "certs/ca.pem", "certs/public.pem", "tokens.json", ".circleci/config.yml", ".travis.yml", ".vscode/settings.json", "id_rsa.pub", "src/id_rsa_parser.rs",
    ".npmrc", "src/token.rs", "secrets/README.md", "~/.claude/projects/-p/memory/MEMORY.md", "~/.claude/projects/-p/s/tool-results/x.txt",
    "~/.claude/settings.json", "~/.ssh/id_rsa.pub", "/etc/hosts",
];

/// Secrets that a person may reasonably let be read: asked about, not denied.
#[rustfmt::skip]
const DEBATABLE: &[&str] = &[
    "tests/fixtures/key.pem", "tests/fixtures/.env", "src/testdata/id_rsa", "config/secret.yml", "k8s/secrets.yaml", "terraform.tfvars", ".envrc",
    "secrets/prod.json", ".env.js",
];

/// Settings that a person may reasonably want changed: asked about, not denied.
const CHANGEABLE: &[&str] = &[
    ".vscode/settings.json",
    ".npmrc",
    ".gitattributes",
    "mise.toml",
    "AGENT.md",
    "node_modules/.bin/x",
    "hooks/pre-commit",
];

fn at(place: &Place, path: &str) -> String {
    match path.strip_prefix("~/") {
        Some(below) => place.home().join(below).to_string_lossy().into_owned(),
        None => place.project().join(path).to_string_lossy().into_owned(),
    }
}

fn read(place: &Place, path: &str) -> String {
    place.verdict("Read", json!({"file_path": at(place, path)}))
}

fn write(place: &Place, path: &str) -> String {
    place.verdict("Write", json!({"file_path": at(place, path), "content": "x"}))
}

fn redirected(place: &Place, path: &str) -> String {
    place.verdict("Bash", json!({"command": format!("echo x > {}", at(place, path))}))
}

fn differing(cases: &[&str], verdict: impl Fn(&str) -> String, fits: impl Fn(&str) -> bool) -> String {
    let wrong = |c: &&&str| !fits(&verdict(c));
    cases.iter().filter(wrong).copied().collect::<Vec<_>>().join("\n")
}

#[test]
fn what_runs_later_in_a_home_is_not_written() {
    let place = Place::new();
    let missed = differing(HOME_RUNS, |p| redirected(&place, &format!("~/{p}")), |v| v != "none");
    assert_eq!(missed, "");
    for path in ["~/.cache/app/x", "/tmp/.bashrc"] {
        assert_eq!(redirected(&place, path), "none", "{path}");
    }
}

#[test]
fn what_runs_later_in_a_project_is_not_written() {
    let place = Place::new();
    assert_eq!(differing(PROJECT_RUNS, |p| write(&place, p), |v| v != "none"), "");
    assert_eq!(differing(PROJECT_RUNS, |p| redirected(&place, p), |v| v != "none"), "");
    assert_eq!(differing(PROJECT_ORDINARY, |p| write(&place, p), |v| v == "none"), "");
    assert_eq!(differing(PROJECT_ORDINARY, |p| redirected(&place, p), |v| v == "none"), "");
}

#[test]
fn credentials_of_the_operator_and_the_machine_are_not_read() {
    let place = Place::new();
    assert_eq!(differing(HOME_SECRETS, |p| read(&place, p), |v| v != "none"), "");
}

#[test]
fn credentials_of_a_project_are_not_read() {
    let place = Place::new();
    assert_eq!(differing(PROJECT_SECRETS, |p| read(&place, p), |v| v != "none"), "");
}

#[test]
fn what_only_resembles_a_secret_is_read_in_silence() {
    let place = Place::new();
    place.write(
        "home/p/.npmrc",
        "registry=https://registry.npmjs.org/\n//r.example/:_authToken=${NPM_TOKEN}\n",
    );
    assert_eq!(differing(READABLE, |p| read(&place, p), |v| v == "none"), "");
}

#[test]
fn settings_are_secret_once_a_token_is_in_them() {
    let place = Place::new();
    for (name, text) in [
        (".npmrc", "//registry.npmjs.org/:_authToken=planted\n"),
        (".yarnrc.yml", "npmAuthToken: planted\n"),
        ("pip.conf", "[global]\nindex-url = https://u:planted@pypi.example/simple\n"),
    ] {
        assert_eq!(read(&place, name), "none", "{name}");
        place.write(&format!("home/p/{name}"), text);
        assert_eq!(read(&place, name), "ask", "{name}");
    }
}

#[test]
fn a_person_is_asked_where_one_may_agree() {
    let place = Place::new();
    assert_eq!(differing(DEBATABLE, |p| read(&place, p), |v| v == "ask"), "");
    assert_eq!(differing(CHANGEABLE, |p| write(&place, p), |v| v == "ask"), "");
    for path in [".env", "config/prod.env", "server.key", "~/.ssh/id_rsa"] {
        assert_eq!(read(&place, path), "deny", "{path}");
    }
    for path in [".mcp.json", "CLAUDE.md", ".git/config", "lefthook.yml", "~/.bashrc"] {
        assert_eq!(write(&place, path), "deny", "{path}");
    }
}

#[test]
fn made_up_material_is_none_when_it_leads_to_a_real_secret() {
    let place = Place::new();
    place.write("home/p/tests/fixtures/x", "");
    std::os::unix::fs::symlink("../../.env", place.project().join("tests/fixtures/.env")).unwrap();
    assert_eq!(read(&place, "tests/fixtures/.env"), "deny");
}

#[test]
fn writes_outside_the_project_are_asked_about() {
    let place = Place::new();
    for path in ["~/other/Makefile", "~/notes.md", "/srv/app/x.py", "/mnt/x", "/media/x"] {
        assert_eq!(write(&place, path), "ask", "{path}");
    }
    for path in ["src/new.rs", "/tmp/x/new.rs", "~/.claude/plans/next.md"] {
        assert_eq!(write(&place, path), "none", "{path}");
    }
}

#[test]
fn a_file_that_points_to_a_repository_is_protected_where_none_is() {
    let place = Place::new();
    assert_eq!(write(&place, "sub/.git"), "deny");
    std::fs::remove_dir_all(place.project().join(".git")).unwrap();
    assert_eq!(write(&place, ".git"), "deny");
    assert_eq!(write(&place, ".gitx"), "none");
}

/// A project whose `.env` is not ignored.
fn open() -> Place {
    let place = Place::new();
    place.write("home/p/.gitignore", "target/\n");
    place.write("home/p/.env", "DB_URL=planted\nAPI_TOKEN=sk_live_planted0000\n");
    place
}

#[test]
fn searches_do_not_print_or_try_out_a_secret() {
    let place = open();
    let cases: Vec<Value> = vec![
        json!({"pattern": "DB_", "output_mode": "content"}),
        json!({"pattern": "sk_live", "output_mode": "content"}),
        json!({"pattern": "db_url", "-i": true, "output_mode": "content"}),
        json!({"pattern": "TOKEN", "type": "all", "output_mode": "content"}),
        json!({"pattern": "DB_", "glob": ".*", "output_mode": "content"}),
        json!({"pattern": "DB_", "glob": ".???", "output_mode": "content"}),
        json!({"pattern": "DB_", "glob": "!x", "output_mode": "content"}),
        json!({"pattern": "DB_", "glob": ".e*", "output_mode": "content"}),
        json!({"pattern": "DB_", "glob": "{.env,x}", "output_mode": "content"}),
        json!({"pattern": "^API_TOKEN=sk_live_p", "output_mode": "count"}),
        json!({"pattern": "^API_TOKEN=sk_live_p"}),
        json!({"pattern": "^API_TOKEN=sk_live_wrong"}),
        json!({"pattern": "x", "path": ".."}),
    ];
    let missed: Vec<String> = cases
        .iter()
        .filter(|i| place.verdict("Grep", (*i).clone()) == "none")
        .map(ToString::to_string)
        .collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    // Also where it is ignored: a glob selects what is ignored.
    let ignored = Place::new();
    assert_ne!(
        ignored.verdict("Grep", json!({"pattern": "API", "glob": ".*", "output_mode": "content"})),
        "none"
    );
}

#[test]
fn searches_that_a_secret_does_not_answer_are_silent() {
    let place = open();
    for input in [
        json!({"pattern": "fn main", "output_mode": "content"}),
        json!({"pattern": "TODO|FIXME", "output_mode": "content"}),
        json!({"pattern": "DB_", "type": "rust", "output_mode": "content"}),
        json!({"pattern": "DB_", "glob": "*.rs", "output_mode": "content"}),
        json!({"pattern": "DB_", "glob": "src/**", "output_mode": "content"}),
        json!({"pattern": "DB_URL"}),
        json!({"pattern": "impl Foo: Bar", "output_mode": "count"}),
        json!({"pattern": "let x = 1;", "output_mode": "content", "-n": true}),
    ] {
        assert_eq!(place.verdict("Grep", input.clone()), "none", "{input}");
    }
}
