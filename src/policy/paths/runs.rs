//! The names and places that [`super::protected()`] compares with, in the form of [`super::fold`].

/// Shell start-up files and the like, in a home directory.
#[rustfmt::skip]
pub(super) const HOME_STARTUP: &[&str] = &[
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".bash_completion", ".profile", ".zshrc", ".zshenv", ".zprofile",
    ".zlogin", ".zlogout", ".cshrc", ".tcshrc", ".login", ".logout", ".kshrc", ".mkshrc", ".inputrc", ".xprofile", ".xinitrc", ".xserverrc", ".xsession",
    ".xsessionrc", ".xresources", ".pam_environment", ".vimrc", ".gvimrc", ".nvimrc", ".lvimrc", ".viminfo", ".emacs", ".emacs.el", ".spacemacs",
    ".spacemacs.env", ".tmux.conf", ".screenrc", ".wezterm.lua", ".gdbinit", ".lldbinit", ".pythonrc", ".pythonrc.py", ".pythonstartup", ".pylintrc",
    ".pdbrc", ".irbrc", ".pryrc", ".wgetrc", ".curlrc", ".gitconfig", ".hgrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".pip", ".condarc",
    ".gemrc", ".netrc", ".claude.json", ".mcp.json", ".rhosts", ".shosts", ".forward", ".plan", ".asoundrc", ".selected_editor", ".bunfig.toml",
    ".nanorc", ".exrc", ".ideavimrc", ".sqliterc", ".psqlrc", ".my.cnf", ".toprc", ".dmrc", ".editrc", ".rprofile", ".renviron", ".juliarc.jl", ".ghci",
    ".octaverc", ".perldb", ".perltidyrc", ".rustup", ".asdfrc", ".tool-versions", ".mailcap", ".mime.types", ".lessfilter", ".lesskey", ".less",
    ".ansible.cfg", ".terraformrc", ".fzf.bash", ".fzf.zsh", ".fzf", ".procmailrc", ".muttrc", ".dir_colors", ".hushlogin", ".envrc", ".mise.toml",
    ".taskrc", ".bazelrc", ".sbtrc", ".mavenrc", ".antrc", ".latexmkrc", ".rdebugrc", ".byebugrc", ".ripgreprc", ".ssh_environment",
];

/// Directories in a home directory whose content runs or is obeyed.
#[rustfmt::skip]
pub(super) const HOME_DIRS: &[&[&str]] = &[
    &[".ssh"], &[".gnupg"], &[".aws"], &[".kube"], &[".docker"], &[".local", "bin"], &["bin"], &[".cargo", "bin"], &[".cargo", "config.toml"],
    &[".cargo", "config"], &[".cargo", "env"], &[".cargo", "registry", "src"], &["go", "bin"], &[".bun", "bin"], &[".deno", "bin"],
    &[".npm-global", "bin"], &[".yarn", "bin"], &[".krew", "bin"], &[".dotnet", "tools"], &[".pyenv", "shims"], &[".rbenv", "shims"],
    &[".asdf"], &[".sdkman"], &[".nix-profile"], &[".nvm"], &[".oh-my-zsh"], &[".oh-my-bash"], &[".bashrc.d"], &[".zshrc.d"], &[".zsh"], &[".profile.d"],
    &[".config", "autostart"], &[".config", "systemd"], &[".config", "environment.d"], &[".config", "fish"], &[".config", "zsh"], &[".config", "bash"],
    &[".config", "git"], &[".config", "jess"], &[".config", "claude"], &[".config", "pip"], &[".config", "npm"], &[".config", "nvim"],
    &[".config", "direnv"], &[".config", "direnvrc"], &[".config", "mise"], &[".config", "code"], &[".config", "vscodium"], &[".config", "cursor"],
    &[".config", "zed"], &[".config", "emacs"], &[".config", "doom"], &[".config", "helix"], &[".config", "tmux"], &[".config", "kitty"],
    &[".config", "alacritty"], &[".config", "wezterm"], &[".config", "awesome"], &[".config", "openbox"], &[".config", "bspwm"], &[".config", "sxhkd"],
    &[".config", "gdb"], &[".config", "mpv"], &[".config", "go"], &[".config", "lf"], &[".config", "ranger"], &[".config", "mimeapps.list"],
    &[".config", "starship.toml"], &[".config", "dconf"], &[".config", "user-tmpfiles.d"], &[".config", "plasma-workspace"], &[".config", "containers"],
    &[".config", "gh"], &[".config", "sway"], &[".config", "i3"], &[".config", "hypr"], &[".local", "share", "systemd"],
    &[".local", "share", "applications"], &[".local", "share", "dbus-1"], &[".local", "share", "bash-completion"], &[".local", "share", "nvim"],
    &[".local", "share", "gh", "extensions"], &[".local", "share", "direnv"], &[".local", "share", "mise"], &[".local", "share", "nautilus"],
    &[".local", "share", "pnpm"], &[".local", "share", "kio"], &[".local", "lib"], &[".local", "state", "jess"], &[".local", "share", "jess"], &[".jess"],
    &[".claude"], &[".cursor"], &[".codex"], &[".gemini"], &[".vscode"], &[".vscode-server"], &[".vim"], &[".emacs.d"], &[".doom.d"], &[".mozilla"],
    &[".thunderbird"], &[".ipython"], &[".jupyter"], &[".pip"], &[".m2"], &[".gradle", "init.d"], &[".gradle", "init.gradle"],
    &[".gradle", "gradle.properties"], &[".sbt"], &[".password-store"], &["library", "launchagents"], &["library", "application support", "code"],
];

/// Dot directories in a home directory that only keep what can be made again.
pub(super) const HOME_CALM: &[&[&str]] =
    &[&[".cache"], &[".npm", "_cacache"], &[".npm", "_logs"], &[".trash"], &[".local", "share", "trash"]];

/// Files an agent obeys, wherever they lie.
#[rustfmt::skip]
pub(super) const AGENT_NAMES: &[&str] = &[
    "claude.md", "claude.local.md", "agents.md", "agents.override.md", "gemini.md", "qwen.md", ".cursorrules", ".windsurfrules", ".clinerules",
    ".roorules", ".goosehints", ".mcp.json", ".mcp.jsonc", ".claude.json", "copilot-instructions.md", ".rules", ".aider.conf.yml",
    "managed-settings.json", "managed-mcp.json", "jess.toml", ".jess.toml", ".claudeignore", ".cursorignore", ".geminiignore", ".augment-guidelines",
];

/// Files an agent obeys at the top of a project; below it their names are everybody's.
#[rustfmt::skip]
pub(super) const AGENT_TOP_NAMES: &[&str] = &[
    "agent.md", "conventions.md", "crush.md", "crush.json", ".crush.json", "mcp.json", "opencode.json", "opencode.jsonc", "warp.md", "replit.md", "amp.md",
];

/// Directories an agent obeys, wherever they lie.
#[rustfmt::skip]
pub(super) const AGENT_DIRS: &[&str] = &[
    ".claude", ".claude-plugin", ".cursor", ".windsurf", ".clinerules", ".roo", ".codex", ".gemini", ".kiro", ".continue", ".amazonq", ".agents",
    ".opencode", ".junie", ".kilocode", ".trae", ".augment", ".aiassistant", ".qwen", ".crush", ".factory", ".goose", ".jess",
];

/// Runs of names in a path (`*`: any) below which an agent obeys.
#[rustfmt::skip]
pub(super) const AGENT_RUNS: &[&[&str]] = &[
    &[".github", "instructions"], &[".github", "prompts"], &[".github", "chatmodes"], &[".github", "agents"], &[".github", "skills"],
];

/// Runs of names in a path below which continuous integration runs.
#[rustfmt::skip]
pub(super) const CI_RUNS: &[&[&str]] = &[
    &[".github", "workflows"], &[".github", "actions"], &[".gitea", "workflows"], &[".forgejo", "workflows"], &[".circleci", "*"],
    &[".buildkite", "*"], &[".woodpecker", "*"], &[".semaphore", "*"], &[".teamcity", "*"], &[".azure-pipelines", "*"], &[".tekton", "*"],
    &[".gitlab", "ci"], &[".harness", "*"],
];

/// Files of a project that run by themselves.
pub(super) const RUNS_NAMES: &[&str] =
    &["jenkinsfile", ".envrc", "sitecustomize.py", "usercustomize.py", ".gitconfig", "lint-staged.config.js"];

/// Stems of files of a project that run by themselves, under any ending in [`RUNS_ENDS`].
#[rustfmt::skip]
pub(super) const RUNS_STEMS: &[&str] = &[
    ".gitlab-ci", "azure-pipelines", "bitbucket-pipelines", ".travis", ".drone", "appveyor", ".appveyor", "cloudbuild", "buildspec", ".woodpecker",
    ".pre-commit-config", "lefthook", ".lefthook", "lefthook-local", ".lefthook-local", ".lintstagedrc", ".huskyrc", ".cirrus", "codemagic", ".overcommit",
    ".simple-git-hooks", "simple-git-hooks", "wercker", "bitrise",
];

/// Endings of settings.
pub(super) const RUNS_ENDS: &[&str] = &["yml", "yaml", "json", "jsonc", "toml"];
/// Further endings, for a stem that starts with a dot.
pub(super) const RUNS_DOT_ENDS: &[&str] = &["", "js", "cjs", "mjs", "ts", "cts", "mts"];

/// Runs of names in a path whose files run by themselves.
#[rustfmt::skip]
pub(super) const RUNS_RUNS: &[&[&str]] = &[
    &[".husky"], &[".githooks"], &[".devcontainer"], &[".cargo", "config"], &[".cargo", "config.toml"], &[".vscode", "tasks.json"],
    &[".vscode", "launch.json"], &[".vscode", "mcp.json"], &[".idea", "workspace.xml"], &[".idea", "runconfigurations"], &[".zed", "tasks.json"],
    &[".zed", "debug.json"], &[".fleet", "run.json"],
];

/// Settings of a project's tools that can make them run something or fetch from elsewhere; often edited for good reasons.
#[rustfmt::skip]
pub(super) const TOOL_NAMES: &[&str] = &[
    ".gitattributes", ".gitmodules", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.mjs", "bunfig.toml", "mise.toml", ".mise.toml",
    "mise.local.toml", ".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".local.vimrc", ".dir-locals.el", ".dir-locals-2.el", ".gdbinit", ".lldbinit",
    ".bazelrc", ".bazeliskrc", ".pylintrc", ".pdbrc", ".rdebugrc", ".byebugrc", ".irbrc", ".pryrc", ".ghci", ".rprofile", ".psqlrc", ".sqliterc",
    "action.yml", "action.yaml", "pip.conf", "nuget.config", ".sbtopts", ".jvmopts",
];

/// Runs of names in a path with such settings, and programs that others run by name.
#[rustfmt::skip]
pub(super) const TOOL_RUNS: &[&[&str]] = &[
    &[".vscode", "settings.json"], &[".zed", "*"], &[".fleet", "*"], &[".mvn", "*"], &["wrapper", "gradle-wrapper.properties"],
    &["wrapper", "gradle-wrapper.jar"], &[".bundle", "config"], &[".venv", "bin", "*"], &["venv", "bin", "*"], &[".venv", "scripts", "*"],
    &["node_modules", ".bin", "*"], &[".yarn", "releases"], &[".yarn", "plugins"], &["site-packages", "*"], &["dist-packages", "*"],
    &[".mise", "tasks"], &[".config", "mise"],
];

/// Git's hooks: a file of this name in a directory `hooks` runs where the directory becomes a repository's.
#[rustfmt::skip]
pub(super) const GIT_HOOKS: &[&str] = &[
    "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit",
    "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update", "post-receive", "post-update", "reference-transaction",
    "push-to-checkout", "pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman", "post-index-change",
];
