//! `jess daemon`: answers `jess-hook` from a warm process.

use crate::config::{self, Places};
use crate::daemon;
use crate::exit::Exit;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Serve hook events to `jess-hook` until a signal or a time without calls.
#[derive(clap::Args)]
pub struct Args {
    /// Seconds without a call after which it ends; the configuration's `daemon.idle_minutes` when left out.
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u64>,
    /// Leave the terminal and the starter's session.
    #[arg(long)]
    detach: bool,
    /// Print a systemd user unit for this binary and do nothing else.
    #[arg(long, conflicts_with_all = ["idle", "detach"])]
    unit: bool,
}

/// Runs it.
pub fn run(args: Args) -> Exit {
    let jess = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    if args.unit {
        say!("{}", unit(&jess));
        return Exit::OK;
    }
    if args.detach {
        // Fails for the leader of a session, which has left it already.
        let _ = rustix::process::setsid();
        let _ = std::env::set_current_dir("/");
    }
    let var = |n: &str| std::env::var(n).ok();
    let Some(dir) = daemon::dir(&var) else {
        tell!("jess: there is neither XDG_RUNTIME_DIR nor HOME, so there is no place for the socket");
        return Exit::USAGE;
    };
    let home = var("HOME").map(PathBuf::from).unwrap_or_else(|| "/".into());
    let idle = args
        .idle
        .map(Duration::from_secs)
        .unwrap_or_else(|| config::load(&Places::of(&var, &home, Path::new("/nonexistent"))).idle);
    match daemon::serve(&dir, &jess, idle) {
        Ok(()) => Exit::OK,
        Err(daemon::Error::Running) if args.detach => Exit::OK,
        Err(why) => {
            tell!("jess: {why}");
            Exit::INTERNAL
        }
    }
}

fn unit(jess: &Path) -> String {
    format!(
        "[Unit]\nDescription=jess hook daemon\n\n[Service]\nExecStart={} daemon --idle 86400\nRestart=always\nRestartSec=1\n\
         NoNewPrivileges=yes\nMemoryMax=256M\nTasksMax=64\nLimitCORE=0\n\n[Install]\nWantedBy=default.target\n",
        jess.to_string_lossy()
    )
}
