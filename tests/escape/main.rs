//! Ways out of `jess run`, each tried for real.
//!
//! An attempt is played twice by a copy of this program: once without a sandbox, where it must succeed, and once under
//! `jess run`, where it must not: in tier `full`, in tier `landlock`, and there once more as on an older kernel. What decides is what happened: the secret that came out, the file that changed, the
//! listener that heard something, the call that returned; never a failed command by itself. An attempt that did not
//! get as far as its own verdict inside proves nothing, and fails.
//!
//! `cargo test --test escape` runs all; a name as argument runs some. Attempts whose control needs root are shown as
//! ignored to an ordinary user.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unsafe_code)] // The attempts are raw system calls; `raw.rs` alone makes them.
#![allow(missing_docs)]

mod attempt;
mod files;
mod kernel;
mod limits;
mod namespaces;
mod network;
mod plant;
mod processes;
mod raw;
mod runner;

use attempt::{Attempt, Open, World};
use libtest_mimic::{Arguments, Trial};

/// How many attempts there are at least.
const AT_LEAST: usize = 100;

fn all() -> Vec<Attempt> {
    [
        namespaces::attempts(),
        files::attempts(),
        processes::attempts(),
        kernel::attempts(),
        network::attempts(),
        limits::attempts(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The threat table names every attempt that is open in tier `landlock`, and no other.
fn written_down() -> Result<(), String> {
    let table = include_str!("../../docs/threats/sandbox.md");
    let (_, open) = table.split_once("## Open in tier `landlock`").ok_or("the section is missing")?;
    for attempt in all() {
        let named = open.contains(&format!("`{}`", attempt.name));
        if named != (attempt.open != Open::Nobody) {
            return Err(format!("{}: the section names it: {named}", attempt.name));
        }
    }
    Ok(())
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    match args.get(1).map(String::as_str) {
        Some("play") => return runner::play(&args[2..]),
        Some("victim") => return plant::be_victim(),
        Some("launch") => return runner::launch(&args[2..]),
        _ => {}
    }
    let root = rustix::process::geteuid().is_root();
    let attempts = all().len();
    let mut trials: Vec<Trial> = World::ALL
        .into_iter()
        .flat_map(|world| all().into_iter().map(move |attempt| (world, attempt)))
        .map(|(world, attempt)| {
            let ignored = attempt.control == attempt::Control::Root && !root;
            let name = format!("{}{}", world.prefix(), attempt.name);
            Trial::test(name, move || runner::prove(&attempt, world).map_err(Into::into))
                .with_ignored_flag(ignored)
        })
        .collect();
    trials.push(Trial::test("what_is_open_in_tier_landlock_is_written_down", || {
        written_down().map_err(Into::into)
    }));
    trials.push(Trial::test("there_are_enough_attempts", move || {
        if attempts < AT_LEAST { Err(format!("{attempts} attempts").into()) } else { Ok(()) }
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
