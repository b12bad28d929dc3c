//! The environment that a command sets up for another: `env`, assignments, the directory it runs in.

use super::eval::Machine;
use super::run::quoted;
use super::value::{Taint, Val};
use crate::policy::paths;
use crate::policy::world::Kind;

impl Machine<'_> {
    /// Runs `f` with the working directory `dir`.
    pub(super) fn within<T>(&mut self, dir: &Val, f: impl FnOnce(&mut Self) -> T) -> T {
        let saved = self.state.cwds.clone();
        let to = self.meanings(dir);
        if !to.is_empty() {
            self.state.cwds = to;
        }
        let out = f(self);
        self.state.cwds = saved;
        out
    }

    /// A repository or a configuration that git takes in place of its own: its hooks and programs run.
    pub(super) fn repository(&mut self, dir: &Val) {
        let own = self.scope.project.join(".git");
        let places = self.meanings(dir);
        let known = !places.is_empty()
            && places.iter().all(|p| {
                (*p == own || p.starts_with(&own) || paths::in_project(p, self.scope) && p.ends_with(".git"))
                    && !self.state.files.keys().any(|f| f.starts_with(p))
            });
        if !known {
            self.ask("run.gitconfig", "Git would take its hooks and settings from another place.");
        }
    }

    pub(super) fn env(&mut self, args: &[Val], stdin: &Val) -> Val {
        let mut rest: &[Val] = args;
        let mut line = String::new();
        let mut empty = false;
        let mut dir: Option<Val> = None;
        let mut given: Vec<(String, Val)> = Vec::new();
        while let Some(arg) = rest.first() {
            let text = arg.text.clone();
            rest = &rest[1..];
            match text.as_str() {
                "-C" | "--chdir" => {
                    dir = rest.first().cloned();
                    rest = rest.get(1..).unwrap_or_default();
                }
                t if t.starts_with("--chdir=") => dir = Some(arg.map(&t[8..])),
                t if t.starts_with("-C") => dir = Some(arg.map(&t[2..])),
                "-u" | "--unset" | "-P" | "-a" | "--argv0" => rest = rest.get(1..).unwrap_or_default(),
                "-S" | "--split-string" => {
                    line = rest.first().map(|a| a.text.clone()).unwrap_or_default();
                    rest = rest.get(1..).unwrap_or_default();
                    break;
                }
                "-i" | "-" | "--ignore-environment" => empty = true,
                t if t.starts_with("-S") => {
                    line = t[2..].to_owned();
                    break;
                }
                t if t.starts_with("--split-string=") => {
                    line = t[15..].to_owned();
                    break;
                }
                t if t.starts_with('-') => {
                    // A cluster that ends in S: `env -iS 'a b'`.
                    if t.ends_with('S') && !t.starts_with("--") {
                        line = rest.first().map(|a| a.text.clone()).unwrap_or_default();
                        rest = rest.get(1..).unwrap_or_default();
                        break;
                    }
                }
                _ => match assigns(arg) {
                    Some((name, value)) => {
                        self.environment(&name, &value);
                        given.push((name, value));
                    }
                    None => {
                        let mut argv = vec![arg.clone()];
                        argv.extend_from_slice(rest);
                        return self.with_variables(&given, |m| match &dir {
                            Some(dir) => m.within(dir, |m| m.run(&argv, stdin)),
                            None => m.run(&argv, stdin),
                        });
                    }
                },
            }
        }
        if !line.is_empty() {
            let more: Vec<String> = rest.iter().map(|a| quoted(&a.text)).collect();
            let line = format!("{line} {}", more.join(" "));
            return self.with_variables(&given, |m| match &dir {
                Some(dir) => m.within(dir, |m| m.program(&line, stdin)),
                None => m.program(&line, stdin),
            });
        }
        if empty { Val::default() } else { Val::unknown(Taint::ENV) }
    }

    /// Variables that make a program run something else.
    pub(super) fn environment(&mut self, name: &str, value: &Val) {
        self.containers_elsewhere |=
            matches!(name, "DOCKER_HOST" | "DOCKER_CONTEXT" | "DOCKER_CONFIG" | "CONTAINER_HOST");
        let text = value.text.clone();
        match name {
            "LD_PRELOAD"
            | "LD_AUDIT"
            | "DYLD_INSERT_LIBRARIES"
            | "GCONV_PATH"
            | "OPENSSL_CONF"
            | "OPENSSL_MODULES"
            | "OPENSSL_ENGINES"
            | "DOTNET_STARTUP_HOOKS"
            | "PYTHONHOME"
            | "GIO_EXTRA_MODULES"
            | "GTK_MODULES"
            | "QT_PLUGIN_PATH"
                if !text.is_empty() && text != "/dev/null" =>
            {
                self.ask("run.preload", format!("{name} loads code into every program the command starts."));
            }
            "BASH_ENV" | "ENV" if text.contains('/') || text.starts_with('.') => {
                self.load_script(value);
                if self.meanings(value).iter().all(|p| paths::is_scratch(p, self.scope)) {
                    self.ask(
                        "run.preload",
                        format!("{name} runs a file of the scratch space in every shell."),
                    );
                }
            }
            "PATH" | "PYTHONPATH" | "LD_LIBRARY_PATH" | "PERL5LIB" | "RUBYLIB" | "NODE_PATH"
            | "CLASSPATH" | "GIT_EXEC_PATH" | "COMPILER_PATH" | "GCC_EXEC_PREFIX" | "LUA_PATH"
            | "LUA_CPATH" | "GOROOT" => {
                let relative = text.split(':').take(64).any(|d| {
                    name == "PATH"
                        && (matches!(d, "." | "") && !text.is_empty()
                            || d.starts_with("./") && !d.contains("node_modules") && !d.contains("venv"))
                });
                if relative {
                    self.ask("run.preload", "PATH would have programs run out of the working directory.");
                }
                for dir in text.split(':').filter(|d| d.starts_with('/')).take(64) {
                    let dir = std::path::Path::new(dir);
                    let inherited =
                        self.scope.env.get(name).is_some_and(|old| old.split(':').any(|o| dir == o));
                    if !inherited && paths::is_scratch(dir, self.scope) {
                        self.ask("run.preload", format!("{name} has programs run out of the scratch space."));
                    }
                }
            }
            "PROMPT_COMMAND"
            | "GIT_EXTERNAL_DIFF"
            | "GIT_SSH_COMMAND"
            | "GIT_SSH"
            | "GIT_PAGER"
            | "PAGER"
            | "MANPAGER"
            | "EDITOR"
            | "VISUAL"
            | "GIT_EDITOR"
            | "GIT_SEQUENCE_EDITOR"
            | "GIT_ASKPASS"
            | "SSH_ASKPASS"
            | "SUDO_ASKPASS"
            | "BROWSER"
            | "RUSTC_WRAPPER"
            | "RUSTC"
            | "CC"
            | "CXX"
            | "AWS_PAGER"
            | "GH_PAGER"
            | "SYSTEMD_PAGER"
            | "GIT_PROXY_COMMAND"
            | "LESSCLOSE"
            | "TAR_OPTIONS"
            | "RSYNC_RSH"
            | "FZF_DEFAULT_COMMAND"
            | "PERL5DB"
            | "SHELL"
            | "MAKEFLAGS"
            | "RUSTC_WORKSPACE_WRAPPER"
            | "CARGO_BUILD_RUSTC_WRAPPER"
            | "KUBE_EDITOR"
            | "HGEDITOR"
            | "SVN_EDITOR"
            | "SVN_SSH"
            | "CVS_RSH"
            | "BAT_PAGER"
            | "DELTA_PAGER"
            | "PSQL_PAGER"
            | "PSQL_EDITOR"
            | "MYSQL_PAGER"
            | "DOCKER_SSH_COMMAND"
                if text.contains(' ')
                    || text.contains('/')
                    || matches!(name, "GIT_EXTERNAL_DIFF" | "GIT_SSH_COMMAND") =>
            {
                self.subshell(|m| m.program(text.trim_start_matches('!'), &Val::default()));
            }
            "LESSOPEN" => {
                let plain = text.trim_start_matches(['|', '-']).replace("%s", "x");
                self.subshell(|m| m.program(&plain, &Val::default()));
            }
            "JAVA_TOOL_OPTIONS" | "_JAVA_OPTIONS" | "JDK_JAVA_OPTIONS" | "MAVEN_OPTS" | "GRADLE_OPTS"
                if text.contains("-javaagent") || text.contains("-agent") || text.contains("OnError") =>
            {
                self.ask("run.preload", format!("{name} loads code into the virtual machine."));
            }
            "LUA_INIT" => match text.strip_prefix('@') {
                Some(file) => self.load_script(&value.map(file)),
                None => self.code(super::language::Language::Lua, &text, true),
            },
            "PHPRC"
            | "PHP_INI_SCAN_DIR"
            | "R_PROFILE"
            | "R_PROFILE_USER"
            | "PYTHONUSERBASE"
            | "CURL_HOME"
            | "WGETRC"
            | "ZDOTDIR"
            | "INPUTRC"
            | "NETRC"
            | "PIP_CONFIG_FILE"
            | "NPM_CONFIG_USERCONFIG"
            | "npm_config_userconfig"
            | "CARGO_HOME"
                if text.contains('/')
                    && !self
                        .meanings(value)
                        .iter()
                        .all(|p| paths::in_project(p, self.scope) && self.world.kind(p) == Kind::Dir) =>
            {
                self.ask(
                    "run.preload",
                    format!("{name} has a program take its settings from another place."),
                );
            }
            "npm_config_script_shell" | "NPM_CONFIG_SCRIPT_SHELL" => {
                self.ask("run.preload", format!("{name} has scripts run in another program than the shell."));
            }
            "npm_config_registry"
            | "NPM_CONFIG_REGISTRY"
            | "PIP_INDEX_URL"
            | "PIP_EXTRA_INDEX_URL"
            | "UV_INDEX_URL"
            | "UV_EXTRA_INDEX_URL"
            | "UV_DEFAULT_INDEX"
            | "GOPROXY"
            | "BUNDLE_MIRROR__ALL"
            | "CARGO_REGISTRIES_CRATES_IO_INDEX"
                if text.contains("://") && !super::registries::usual(&text) =>
            {
                self.ask(
                    "run.fetched",
                    format!("{name} has packages come from another registry than the usual one."),
                );
            }
            "DOCKER_HOST" | "CONTAINER_HOST" if text.contains("://") && !text.starts_with("unix:") => {
                self.ask("run.container", "The command talks to another machine's container service.");
            }
            "RUSTFLAGS" | "CARGO_ENCODED_RUSTFLAGS"
                if text.contains("linker=")
                    && (text.contains('/') || text.contains(' '))
                    && !text.contains("linker=/usr/bin/") =>
            {
                if let Some((_, linker)) = text.split_once("linker=") {
                    let linker = linker.split([' ', '\u{1f}']).next().unwrap_or_default().to_owned();
                    if linker.contains('/') {
                        self.ask("run.preload", "RUSTFLAGS has another program run in place of the linker.");
                    }
                }
            }
            "CLAUDE_CONFIG_DIR"
            | "XDG_STATE_HOME"
            | "XDG_RUNTIME_DIR"
            | "CLAUDE_CODE_SESSION_ATTENDED"
            | "JESS_UNTRUSTED_ROOT" => {
                self.deny(
                    "guard.switch",
                    format!(
                        "{name} is what the guard and the client find themselves by; agents do not set it."
                    ),
                );
            }
            "XDG_CONFIG_HOME" if !text.is_empty() && !text.ends_with("/.config") => {
                self.ask(
                    "guard.switch",
                    "XDG_CONFIG_HOME is where the guard's configuration lies. A person has to agree.",
                );
            }
            "LESS" if text.contains('!') => {
                if let Some((_, line)) = text.split_once('!') {
                    let line = line.to_owned();
                    self.subshell(|m| m.program(&line, &Val::default()));
                }
            }
            "PS0" | "PS1" | "PS2" | "PS3" | "PS4" => self.expanded(&text),
            n if n.starts_with("GIT_CONFIG_KEY_") => {
                self.ask("run.gitconfig", "Git is configured by environment to do something else.");
            }
            "GOFLAGS" if text.contains("-toolexec") => {
                self.ask("run.preload", "GOFLAGS has another program run in place of the compiler.");
            }
            "MAKEFILES" => {
                for file in text.split_whitespace().take(16) {
                    let content = self.read_file(&value.map(file));
                    self.tainted(&content);
                    self.makefile(&content.text, &[]);
                }
            }
            // What a program appends to on its own.
            "HISTFILE" | "GIT_TRACE" | "GIT_TRACE2" | "GIT_TRACE2_EVENT" | "LESSHISTFILE"
            | "PYTHON_HISTORY" | "NODE_REPL_HISTORY" | "SSLKEYLOGFILE" | "GOCOVERDIR"
                if text.contains('/') =>
            {
                self.write_file(value, false);
            }
            "PERL5OPT" | "RUBYOPT" | "PYTHONSTARTUP" | "NODE_OPTIONS" | "PYTHONINSPECT"
                if text.contains("require")
                    || text.contains("-r")
                    || text.contains("import")
                    || text.contains("-M")
                    || text.contains("loader")
                    || name == "PYTHONSTARTUP" =>
            {
                self.ask("run.preload", format!("{name} loads code into the interpreter."));
            }
            n if n.starts_with("GIT_CONFIG_VALUE_") || n == "GIT_CONFIG_PARAMETERS" => {
                self.ask("run.gitconfig", "Git is configured by environment to do something else.");
            }
            // A function that the next bash finds in its environment under the name of a command.
            n if n.starts_with("BASH_FUNC_") => {
                let program = format!("f {}\nf", text.trim_start());
                self.subshell(|m| m.program(&program, &Val::default()));
                self.ask("run.preload", "A function in the environment takes the place of a command.");
            }
            "GIT_DIR" | "GIT_COMMON_DIR" | "GIT_CONFIG_GLOBAL" | "GIT_CONFIG_SYSTEM" | "GIT_CONFIG"
            | "GIT_TEMPLATE_DIR"
                if text != "/dev/null" && !text.is_empty() =>
            {
                self.repository(value);
            }
            n if n.starts_with("CARGO_TARGET_") && (n.ends_with("_RUNNER") || n.ends_with("_LINKER")) => {
                self.subshell(|m| m.program(&text, &Val::default()));
            }
            _ => {}
        }
    }
}

/// `NAME=VALUE` of an argument. A name is what `env` takes for one, so also `BASH_FUNC_x%%`.
pub(super) fn assigns(arg: &Val) -> Option<(String, Val)> {
    let (name, value) = arg.text.split_once('=')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '%' | '.' | '(' | ')');
    let fits = !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty() && name.chars().all(plain);
    fits.then(|| (name.to_owned(), arg.map(value)))
}
