//! Plays an attempt outside and inside, and says what it proved.

use crate::attempt::{Attempt, Control, Open, Played, Ran, Scene, Sign, World};
use crate::plant::Plant;
use crate::raw::{call, fork};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Seconds after which a run is killed.
const LIMIT: &str = "20";

/// Fails unless the attempt succeeds outside and fails inside; where it is known to be open, unless it succeeds.
pub fn prove(attempt: &Attempt, world: World) -> Result<(), String> {
    let (got_out, outside) = run(attempt, None)?;
    if !got_out {
        return Err(format!("the control did not succeed, so this proves nothing: {}", describe(&outside)));
    }
    let (got_out, inside) = run(attempt, Some(world))?;
    let root = rustix::process::geteuid().is_root();
    let open = world != World::Full
        && match attempt.open {
            Open::Nobody => false,
            Open::All => true,
            Open::Root => root,
            Open::Users => !root,
        };
    if open && !got_out {
        return Err(format!("known to be open, and closed: {}", describe(&inside)));
    }
    if open {
        return Ok(());
    }
    if got_out {
        return Err(format!("ESCAPED: {}", describe(&inside)));
    }
    let killed = attempt.may_be_killed && inside.status.code() == Some(128 + libc::SIGSYS);
    let ended = attempt.may_be_ended && inside.stderr.contains("--max-processes");
    if inside.played.is_none() && !killed && !ended {
        return Err(format!("inside, the attempt did not get to its end: {}", describe(&inside)));
    }
    Ok(())
}

fn describe(ran: &Ran) -> String {
    format!("played {:?}, {}, stderr: {}", ran.played, ran.status, ran.stderr.trim())
}

/// A copy of this program that every user can execute.
fn program() -> &'static Path {
    static COPY: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = COPY.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("own directory");
        let path = dir.path().join("attempt");
        let this = std::env::current_exe().expect("the test has a path");
        std::fs::copy(this, &path).expect("room for a copy of the test");
        (dir, path)
    });
    path
}

/// The program, for plants that start a process of their own.
pub fn program_path() -> &'static Path {
    program()
}

fn run(attempt: &Attempt, inside: Option<World>) -> Result<(bool, Ran), String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut scene = Scene {
        base: dir.path().canonicalize().map_err(|e| e.to_string())?,
        words: Default::default(),
        secret: random(),
    };
    furnish(&scene).map_err(|e| format!("preparing the scene: {e}"))?;
    let mut plant = (attempt.plant)(&scene);
    scene.words = plant.words.iter().cloned().collect();
    let nonce = random();
    let mut command = command(attempt, &scene, &plant, &nonce, inside);
    let ran = execute(&mut command, &mut plant, &nonce)?;
    let got_out = match attempt.sign {
        Sign::Returned => matches!(ran.played, Some(Ok(_))),
        Sign::Loot => matches!(&ran.played, Some(Ok(loot)) if loot.contains(&scene.secret)),
        Sign::Effect(seen) => seen(&scene, &mut plant, &ran),
    };
    Ok((got_out, ran))
}

fn furnish(scene: &Scene) -> std::io::Result<()> {
    std::fs::set_permissions(&scene.base, PermissionsExt::from_mode(0o755))?;
    for name in ["work", "lib", "outside", "home/.ssh"] {
        std::fs::create_dir_all(scene.base.join(name))?;
    }
    for file in ["outside/secret", "outside/target", "home/.ssh/id_ed25519"] {
        std::fs::write(scene.base.join(file), &scene.secret)?;
    }
    std::fs::write(scene.lib("file"), "as it was")?;
    std::fs::write(scene.work("own"), "own")
}

fn command(attempt: &Attempt, scene: &Scene, plant: &Plant, nonce: &str, inside: Option<World>) -> Command {
    let mut line: Vec<PathBuf> = plant.wrapper.iter().map(PathBuf::from).collect();
    line.extend(["timeout", "--foreground", "--signal=KILL", LIMIT].map(PathBuf::from));
    if let Some(world) = inside {
        line.extend([env!("CARGO_BIN_EXE_jess"), "run"].map(PathBuf::from));
        line.extend(world.options().iter().map(PathBuf::from));
        line.push("--rw".into());
        line.extend([scene.base.join("work"), "--ro".into(), scene.base.join("lib"), "--ro".into()]);
        line.extend([program().into(), "--".into()]);
    } else {
        line.extend([program().into(), "launch".into()]);
    }
    line.extend([program().into(), "play".into(), attempt.name.into()]);
    let namespaced = inside.is_none() && attempt.control == Control::Namespaced;
    line.extend([nonce.into(), if namespaced { "namespaced" } else { "plain" }.into(), scene.base.clone()]);
    let mut command = Command::new(&line[0]);
    command
        .args(&line[1..])
        .args(scene.words.iter().map(|(k, v)| format!("{k}={v}")))
        .env("HOME", scene.base.join("home"))
        .env("ESCAPE_SECRET", &scene.secret)
        .current_dir(scene.base.join("work"));
    command
}

fn execute(command: &mut Command, plant: &mut Plant, nonce: &str) -> Result<Ran, String> {
    let text = |e: std::io::Error| e.to_string();
    // Files, not pipes: a process that outlives the run must not keep this one waiting.
    let (mut stdout, mut stderr) = (tempfile::tempfile().map_err(text)?, tempfile::tempfile().map_err(text)?);
    command.stderr(stderr.try_clone().map_err(text)?);
    match plant.stdout.take() {
        Some(file) => command.stdout(file),
        None => command.stdout(stdout.try_clone().map_err(text)?),
    };
    match plant.stdin.take() {
        Some(file) => command.stdin(file),
        None => command.stdin(Stdio::null()),
    };
    let status = command.status().map_err(text)?;
    let read = |file: &mut std::fs::File| -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map_err(text)?;
        Ok(bytes)
    };
    let mut ran = Ran { status, stdout: read(&mut stdout)?, played: None, stderr: String::new() };
    ran.stderr = String::from_utf8_lossy(&read(&mut stderr)?).into_owned();
    ran.played = ran.stderr.lines().find_map(|line| {
        let (verdict, what) = line.strip_prefix(nonce)?.trim_start().split_once(' ')?;
        Some(if verdict == "got" { Ok(what.to_owned()) } else { Err(what.to_owned()) })
    });
    Ok(ran)
}

fn random() -> String {
    let mut bytes = [0u8; 12];
    getrandom::fill(&mut bytes).expect("the kernel has randomness");
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The play's side: `NAME NONCE plain|namespaced BASE WORD…`.
pub fn play(args: &[String]) {
    let [name, nonce, how, base, words @ ..] = args else { return };
    let scene = Scene {
        base: base.into(),
        words: words
            .iter()
            .filter_map(|w| w.split_once('='))
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect(),
        secret: String::new(),
    };
    let played: Played = match crate::all().into_iter().find(|a| a.name == name) {
        Some(_) if how == "namespaced" && enter_namespaces().is_err() => {
            Err("the control got no namespaces".into())
        }
        Some(attempt) => (attempt.play)(&scene),
        None => return,
    };
    let (verdict, what) = match played {
        Ok(loot) => ("got", loot),
        Err(why) => ("refused", why),
    };
    let _ = writeln!(std::io::stderr(), "{nonce} {verdict} {}", what.replace(['\n', '\0'], " "));
}

/// User, mount, network, UTS and IPC namespaces with every capability in them.
fn enter_namespaces() -> Result<(), String> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC;
    call(libc::SYS_unshare, &[flags as usize])?;
    for (file, content) in
        [("setgroups", "deny".into()), ("uid_map", format!("0 {uid} 1")), ("gid_map", format!("0 {gid} 1"))]
    {
        std::fs::write(format!("/proc/self/{file}"), content).map_err(|e| e.to_string())?;
    }
    let private = (libc::MS_REC | libc::MS_PRIVATE) as usize;
    call(libc::SYS_mount, &[0, c"/".as_ptr() as usize, 0, private]).map(drop)
}

/// Stands in for the supervisor in the control: starts the play and ends as it does.
pub fn launch(args: &[String]) {
    let [program, rest @ ..] = args else { return };
    let Ok(child) = fork() else { return };
    if child == 0 {
        let error = std::os::unix::process::CommandExt::exec(Command::new(program).args(rest));
        eprintln!("{error}");
        crate::raw::exit(127)
    }
    let mut status = 0i32;
    let _ = call(libc::SYS_wait4, &[child as usize, (&raw mut status) as usize]);
    crate::raw::exit(libc::WEXITSTATUS(status))
}
