//! How the agent is started: its program, its command line, its environment, and the hooks around it.

use super::{Error, Places, Switches};
use crate::hook;
use crate::sandbox::{Content, Inject, env};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where jess itself is inside: the hooks run it.
pub const JESS_INSIDE: &str = "/opt/jess/jess";

/// The port of the way out, on the sandbox's own loopback. Any would do: nobody else is there.
pub const PORT: u16 = 61_781;

/// Where the client reads settings that nothing else can override.
const MANAGED_SETTINGS: &str = "/etc/claude-code/managed-settings.json";

/// Tools that Claude Code offers when the command line names none.
const DEFAULT_TOOLS: [&str; 5] = ["Bash", "Edit", "Glob", "Read", "Write"];

/// Arguments of Claude Code that bring tools along, or settings and agents that can allow any.
const OPENING: [&str; 6] =
    ["--mcp-config", "--settings", "--agents", "--plugin-dir", "--plugin-url", "--chrome"];

/// The agent's program, found on this host.
#[derive(Debug)]
pub struct Client {
    program: PathBuf,
    command: Vec<OsString>,
    script: bool,
}

impl Client {
    /// Finds the program of `command` on the caller's PATH, or at its path.
    pub fn find(command: &[OsString]) -> Result<Client, Error> {
        let name = command.first().cloned().unwrap_or_default();
        let fail = |reason| Error::Client { program: PathBuf::from(&name), reason };
        let program = locate(&name).and_then(|p| p.canonicalize()).map_err(fail)?;
        let mut magic = [0u8; 2];
        let script = std::fs::File::open(&program)
            .and_then(|mut f| std::io::Read::read_exact(&mut f, &mut magic))
            .is_ok_and(|()| magic == *b"#!");
        Ok(Client { program, command: command.to_vec(), script })
    }

    /// The same client by its real path, unless something in reach of `repo` could stand in for it.
    pub fn vetted(mut self, repo: &Path) -> Result<Client, Error> {
        self.program = crate::trust::program::vet(&self.program, repo)?;
        Ok(self)
    }

    /// Whether this is Claude Code, by its name.
    pub fn is_claude(&self) -> bool {
        let named = |path: &Path| path.file_name().is_some_and(|n| n == "claude" || n == "claude.exe");
        named(&self.program) || self.command.first().is_some_and(|c| named(Path::new(c)))
    }

    /// The command line inside.
    ///
    /// Claude Code gets only the MCP servers that the operator named, and (unless the operator trusts the target's
    /// configuration) no settings of the target.
    pub fn argv(&self, trust_repo: bool) -> Vec<OsString> {
        let mut argv = vec![self.program.clone().into_os_string()];
        if self.is_claude() {
            argv.push("--strict-mcp-config".into());
            if !trust_repo {
                argv.extend(["--setting-sources".into(), "user".into()]);
            }
        }
        argv.extend(self.command.iter().skip(1).cloned());
        argv
    }

    /// Host paths that the program itself needs. A system path is there anyway.
    pub fn grants(&self) -> Vec<PathBuf> {
        if self.program.starts_with("/usr") {
            return Vec::new();
        }
        // A script of a package brings its neighbours along; a binary, and a script that lies about, is alone.
        let package = self.program.parent().filter(|dir| self.script && is_package(dir));
        vec![package.unwrap_or(&self.program).to_path_buf()]
    }

    /// The tools that the command line asks for, in the client's spelling. A command that is no client counts as a shell.
    ///
    /// Without `--tools`, where nothing is asked before a call (no permission checks, or the target's own settings
    /// with `trust_repo`), every tool of the client counts, as `*`.
    pub fn tools(&self, trust_repo: bool) -> Vec<String> {
        if !self.is_claude() {
            return vec!["Bash".to_owned()];
        }
        let mut tools = Vec::new();
        let mut taking = false;
        let mut replaced = false;
        let mut unasked = trust_repo;
        let mut mode_follows = false;
        for argument in self.command.iter().skip(1) {
            let text = argument.to_string_lossy();
            let (flag, value) = text.split_once('=').map_or((&*text, None), |(f, v)| (f, Some(v)));
            let mode = if std::mem::take(&mut mode_follows) { Some(&*text) } else { None };
            match flag {
                _ if mode.is_some() => unasked |= mode.is_some_and(is_unasked_mode),
                "--dangerously-skip-permissions" | "--allow-dangerously-skip-permissions" => {
                    unasked = true;
                    taking = false;
                }
                "--permission-mode" => {
                    unasked |= value.is_some_and(is_unasked_mode);
                    mode_follows = value.is_none();
                    taking = false;
                }
                _ if OPENING.contains(&flag) => {
                    tools.push("*".to_owned());
                    taking = false;
                }
                "--tools" | "--allowedTools" | "--allowed-tools" => {
                    replaced |= flag == "--tools";
                    taking = value.is_none();
                    tools.extend(split(value.unwrap_or_default()));
                }
                _ if text.starts_with('-') => taking = false,
                _ if taking => tools.extend(split(&text)),
                _ => {}
            }
        }
        if !replaced {
            tools.extend(DEFAULT_TOOLS.map(str::to_owned));
            if unasked {
                tools.push("*".to_owned());
            }
        }
        tools
    }

    /// Adds what the agent needs to `environment`.
    pub fn environment(
        &self,
        environment: &mut Vec<(OsString, OsString)>,
        places: &Places,
        placeholder: &str,
        proxy: bool,
    ) {
        let gateway = format!("http://127.0.0.1:{PORT}");
        for (name, value) in [
            ("ANTHROPIC_BASE_URL", gateway.as_str()),
            ("ANTHROPIC_API_KEY", placeholder),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            // A background result comes back as a prompt, which no hook can rewrite.
            ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
        ] {
            env::set(environment, name, value);
        }
        env::set(environment, "JESS_UNTRUSTED_ROOT", &places.repo);
        env::set(environment, "JESS_OUT", &places.out);
        if proxy {
            super::network::environment(environment);
        }
    }
}

/// Modes in which the client does not ask before a call that no rule allows.
fn is_unasked_mode(mode: &str) -> bool {
    !matches!(mode, "default" | "manual" | "plan" | "acceptEdits" | "dontAsk")
}

/// Whether `dir` holds one package and nothing else of the operator's: a manifest, and it is not a home or above one.
fn is_package(dir: &Path) -> bool {
    let above_home = std::env::var_os("HOME")
        .and_then(|home| Path::new(&home).canonicalize().ok())
        .is_none_or(|home| home.starts_with(dir));
    !above_home && dir.join("package.json").is_file()
}

/// Splits a list of tools at commas and spaces that are not in parentheses.
fn split(list: &str) -> Vec<String> {
    let mut depth = 0usize;
    list.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c == ' ')
    })
    .filter(|tool| !tool.is_empty())
    .map(str::to_owned)
    .collect()
}

/// A fresh token for one run: it opens the gateway of this run and nothing else.
pub fn placeholder() -> String {
    let mut bytes = [0u8; 24];
    // Without randomness there is no token that others can't guess; an empty one is refused by the gateway.
    match getrandom::fill(&mut bytes) {
        Ok(()) => bytes.iter().fold(String::from("jess-run-"), |token, byte| token + &format!("{byte:02x}")),
        Err(_) => String::new(),
    }
}

/// The hooks and the program that they run. With stages switched off (the drill), fewer hooks.
pub fn inject(switches: &Switches) -> std::io::Result<Vec<Inject>> {
    let jess = std::env::current_exe()?.canonicalize()?;
    let mut settings = hook::managed_settings(Path::new(JESS_INSIDE));
    if let Some(hooks) = settings.get_mut("hooks").and_then(serde_json::Value::as_object_mut) {
        if !switches.hooks {
            hooks.retain(|event, _| event.starts_with("Post"));
        }
        if !switches.seal {
            hooks.retain(|event, _| !event.starts_with("Post"));
        }
    }
    Ok(vec![
        Inject { dest: JESS_INSIDE.into(), content: Content::HostFile(jess), mode: 0o555 },
        Inject {
            dest: MANAGED_SETTINGS.into(),
            content: Content::Bytes(settings.to_string().into_bytes()),
            mode: 0o444,
        },
    ])
}

fn locate(name: &OsStr) -> std::io::Result<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        rustix::fs::access(&path, rustix::fs::Access::EXEC_OK)?;
        return Ok(path);
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| env::PATH.into());
    std::env::split_paths(&path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|file| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok())
        .ok_or_else(|| std::io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(command: &[&str]) -> Client {
        Client {
            program: command[0].into(),
            command: command.iter().map(OsString::from).collect(),
            script: false,
        }
    }

    #[test]
    fn the_requested_tools_are_read_in_every_spelling() {
        let named = client(&["/x/claude", "--tools", "Read,Bash(git log:*, x)", "Grep", "-p", "hi"]);
        assert_eq!(named.tools(false), ["Read", "Bash(git log:*, x)", "Grep"]);
        let allowed = client(&["/x/claude", "-p", "hi", "--allowedTools=WebFetch"]);
        assert_eq!(allowed.tools(false)[0], "WebFetch");
        assert!(allowed.tools(false).contains(&"Bash".to_owned()), "the default tools stay");
    }

    #[test]
    fn another_program_counts_as_a_shell() {
        assert_eq!(client(&["/bin/true"]).tools(false), ["Bash"]);
    }

    #[test]
    fn arguments_that_let_any_tool_run_count_as_every_tool() {
        let every = |more: &[&str], trust| {
            let command = [&["/x/claude", "-p", "hi"], more].concat();
            client(&command).tools(trust).contains(&"*".to_owned())
        };
        for open in [
            &["--dangerously-skip-permissions"][..],
            &["--permission-mode", "bypassPermissions"],
            &["--permission-mode=auto"],
            &["--mcp-config", "/x.json"],
            &["--mcp-config=/x.json", "--tools", "Read"],
            &["--settings", "{}"],
            &["--agents={}"],
            &["--allowedTools", "Read", "--dangerously-skip-permissions"],
        ] {
            assert!(every(open, false), "{open:?}");
        }
        assert!(every(&[], true), "the target's settings may allow any tool");
        for closed in [
            &[][..],
            &["--permission-mode", "plan"],
            &["--permission-mode", "acceptEdits", "--allowedTools", "Read"],
            &["--tools", "Read,Bash", "--dangerously-skip-permissions"],
        ] {
            assert!(!every(closed, false), "{closed:?}");
        }
    }

    #[test]
    fn a_script_brings_its_package_along_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("agent");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        let client = Client { program: program.clone(), command: vec!["agent".into()], script: true };
        assert_eq!(client.grants(), [program.as_path()]);
        std::fs::write(dir.path().join("package.json"), "{}").unwrap();
        assert_eq!(client.grants(), [dir.path()]);
    }

    #[test]
    fn the_target_s_own_servers_and_settings_are_left_out() {
        let argv = client(&["/x/claude", "-p", "hi"]).argv(false);
        assert!(argv.contains(&"--strict-mcp-config".into()) && argv.contains(&"--setting-sources".into()));
        assert!(!client(&["/x/claude"]).argv(true).contains(&"--setting-sources".into()));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Client::find(&["no-such-agent".into()]).unwrap_err();
        assert!(error.to_string().contains("no-such-agent"));
    }
}
