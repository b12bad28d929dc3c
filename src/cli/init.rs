//! `jess init` and `jess uninstall`: the hook in a client's settings.

use super::failed::Failed;
use crate::audit::{self, state};
use crate::exit::Exit;
use crate::install::{self, Client, Form, Removed, plugin, prove};
use std::path::{Path, PathBuf};

/// Whose settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Scope {
    /// ~/.claude/settings.json
    User,
    /// .claude/settings.json of a project
    Project,
    /// /etc/claude-code/managed-settings.json, which no project and no switch leaves out; needs root
    Managed,
    /// A plugin with a marketplace, in a directory
    Plugin,
}

/// Install the hook into Claude Code's settings and prove that it blocks.
///
/// Exits 0 when the hook stands and blocks, 2 when the installed client does not block.
#[derive(clap::Args)]
pub struct Args {
    /// Whose settings
    #[arg(long, value_enum, default_value = "user")]
    scope: Scope,
    /// The project, or where the plugin is made; the working directory when left out
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The client; the `claude` on the PATH when left out
    #[arg(long, value_name = "FILE")]
    client: Option<PathBuf>,
    /// Do not run the client to prove it
    #[arg(long)]
    no_proof: bool,
    /// Install a Git hook instead, which runs `jess check --staged` before each commit; a foreign hook is left alone
    #[arg(long, conflicts_with_all = ["scope", "client", "no_proof"])]
    pre_commit: bool,
}

/// Take the hook out of Claude Code's settings; a file that nobody changed since is as it was, byte for byte.
#[derive(clap::Args)]
pub struct RemoveArgs {
    /// Whose settings
    #[arg(long, value_enum, default_value = "user")]
    scope: Scope,
    /// The project, or where the plugin lies; the working directory when left out
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Installs.
pub fn run(args: Args) -> Exit {
    if args.pre_commit {
        return super::precommit::run(args.dir.as_deref());
    }
    init(&args).unwrap_or_else(Failed::tell)
}

/// Takes out.
pub fn uninstall(args: RemoveArgs) -> Exit {
    match remove(&args) {
        Ok(()) => Exit::OK,
        Err(failed) => failed.tell(),
    }
}

fn directory(dir: Option<&PathBuf>) -> Result<PathBuf, Failed> {
    let dir = match dir {
        Some(d) => std::path::absolute(d),
        None => std::env::current_dir(),
    };
    dir.map_err(|e| Failed::usage(format!("the directory is not known: {e}")))
}

fn settings(scope: Scope, dir: Option<&PathBuf>) -> Result<PathBuf, Failed> {
    Ok(match scope {
        Scope::User => {
            let home = std::env::var("HOME").map_err(|_| Failed::usage("there is no HOME"))?;
            let own = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
            own.unwrap_or_else(|| Path::new(&home).join(".claude")).join("settings.json")
        }
        Scope::Managed => install::MANAGED.into(),
        Scope::Project | Scope::Plugin => directory(dir)?.join(".claude/settings.json"),
    })
}

fn state_dir() -> Result<PathBuf, Failed> {
    Ok(state::dir(|n| std::env::var(n).ok()).ok_or(audit::Error::Nowhere)?)
}

fn init(args: &Args) -> Result<Exit, Failed> {
    if args.scope == Scope::Plugin {
        let dir = directory(args.dir.as_ref())?;
        for (path, value) in plugin::files() {
            let file = dir.join(path);
            let put = || -> std::io::Result<()> {
                std::fs::create_dir_all(file.parent().unwrap_or(&dir))?;
                std::fs::write(&file, plugin::text(&value))
            };
            put().map_err(|e| {
                Failed::io(e.kind(), format!("cannot write {}: {e}", crate::sanitise::path(&file)))
            })?;
            say!("wrote {}", crate::sanitise::path(&file));
        }
        let dir = crate::sanitise::path(&dir);
        say!(
            "install it with the client: claude plugin marketplace add {dir}, then claude plugin install jess@jess"
        );
        return Ok(Exit::OK);
    }
    let jess = std::env::current_exe()
        .and_then(|p| p.canonicalize())
        .map_err(|e| Failed::internal(format!("the path of jess is not known: {e}")))?;
    let hook = install::hook_of(&jess)?;
    let client = Client::find(args.client.as_deref());
    if let (None, Some(named)) = (&client, &args.client) {
        let named = crate::sanitise::path(named);
        return Err(Failed::usage(format!("{named} does not say a version; is it Claude Code?")));
    }
    let form = Form::of(client.as_ref());
    let file = settings(args.scope, args.dir.as_ref())?;
    install::install(&file, &hook, form, &state_dir()?)?;
    say!("installed in {}", crate::sanitise::path(&file));
    // What the client does not read protects nobody, however well it is written.
    let standing = install::check::look(std::slice::from_ref(&file), client.as_ref());
    let dropped: Vec<_> = standing.faults.into_iter().filter(|f| f.name == "dropped").collect();
    if !dropped.is_empty() {
        for fault in dropped {
            tell!("jess: nothing is guarded yet: {}; {}, and see jess doctor", fault.what, fault.remedy);
        }
        return Ok(Exit::REFUSED);
    }
    let Some(client) = client else {
        say!("no client was found, so nothing is proved; the hook is in the form that every version honours");
        return Ok(Exit::OK);
    };
    let how = if form == Form::Exec {
        "the program itself, onFailure: block"
    } else {
        "a shell line that blocks on every failure"
    };
    say!("for client {} at {}: {how}", client.version, crate::sanitise::path(&client.program));
    if args.no_proof {
        return Ok(Exit::OK);
    }
    let proofs = prove::prove(&client, &hook, form).map_err(|e| Failed::internal(e.to_string()))?;
    for proof in &proofs {
        say!("{} {}", if proof.holds { "proved:" } else { "NOT SO:" }, proof.what);
    }
    if proofs.iter().all(|p| p.holds) {
        return Ok(Exit::OK);
    }
    tell!("jess: this client does not do what the hook needs; do not rely on it (jess doctor may say why)");
    Ok(Exit::REFUSED)
}

fn remove(args: &RemoveArgs) -> Result<(), Failed> {
    if args.scope == Scope::Plugin {
        return Err(Failed::usage(
            "take a plugin out with the client: claude plugin uninstall jess@jess, then claude plugin marketplace remove jess; then \
             delete the directory that jess init made",
        ));
    }
    let file = settings(args.scope, args.dir.as_ref())?;
    match install::uninstall(&file, &state_dir()?)? {
        Removed::Restored => say!("{} is as it was before", crate::sanitise::path(&file)),
        Removed::Edited => {
            say!("the hook is out of {}; what else changed in it stays", crate::sanitise::path(&file))
        }
        Removed::Nothing => say!("the hook is not in {}", crate::sanitise::path(&file)),
    }
    Ok(())
}
