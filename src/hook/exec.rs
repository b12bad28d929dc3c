//! A Bash command under a process of jess, so that its output is sealed before the client sees it, and so that it runs in
//! a sandbox of its own.
//!
//! The client cannot replace the output of a *failed* call, so sealing in `PostToolUse` alone would be undone by
//! `cmd; exit 3`. `PreToolUse` therefore replaces the command by `'/path/jess' hook exec … 'COMMAND'`: one simple command
//! whose words are fixed flags and single-quoted texts, which nothing in COMMAND can leave. jess runs `bash -c COMMAND`,
//! in a sandbox where that is asked for, with its output in a pipe, seals what it reads, prints that and exits with the
//! command's own status.

use super::{inner, seal};
use crate::exit::Exit;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Bytes of output kept; what comes after is read and dropped, so that the command does not block.
pub const OUTPUT_MAX: usize = seal::TEXT_MAX;
/// Characters of output shown in one block. The client cuts at 30,000, which would take the end of the block away.
pub const SHOWN_MAX: usize = 27_000;
/// How long output is awaited after the command itself has ended and left children behind.
const GRACE: Duration = Duration::from_millis(300);
/// How often a command in the background has its output sealed and printed.
const STREAM: Duration = Duration::from_secs(1);

/// The sandbox of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// The best that this machine has.
    Any,
    /// Namespaces and all, or the command does not run.
    Full,
}

impl Tier {
    const fn word(self) -> &'static str {
        match self {
            Tier::Any => "landlock",
            Tier::Full => "full",
        }
    }
}

/// How a command is run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wrapping {
    /// Its output is not sealed: it is the project's own.
    pub plain: bool,
    /// It runs in the background: output is sealed and printed while it runs.
    pub stream: bool,
    /// It runs inside the sandbox of a dispatched session: a layer of its own keeps it from the client's files and processes.
    pub inner: bool,
    /// The weakest sandbox that will do, and the project that is writable in it.
    pub sandbox: Option<(Tier, PathBuf)>,
}

/// `text` as one word of a POSIX shell.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The command that runs `command` so.
pub fn wrap(command: &str, jess: &Path, how: &Wrapping) -> String {
    let mut out = format!("{} hook exec", quote(&jess.to_string_lossy()));
    if how.plain {
        out.push_str(" --plain");
    }
    if how.stream {
        out.push_str(" --stream");
    }
    if how.inner {
        out.push_str(" --inner");
    }
    if let Some((tier, project)) = &how.sandbox {
        out.push_str(&format!(" --sandbox {} --project {}", tier.word(), quote(&project.to_string_lossy())));
    }
    out.push_str(" -- ");
    out.push_str(&quote(command));
    out
}

/// The command inside a wrapped one: its words are taken apart, put together again and compared.
pub fn unwrap(command: &str, jess: &Path) -> Option<(String, Wrapping)> {
    let head = format!("{} hook exec ", quote(&jess.to_string_lossy()));
    let mut rest = command.strip_prefix(&head)?;
    let mut how = Wrapping::default();
    if let Some(r) = rest.strip_prefix("--plain ") {
        (how.plain, rest) = (true, r);
    }
    if let Some(r) = rest.strip_prefix("--stream ") {
        (how.stream, rest) = (true, r);
    }
    if let Some(r) = rest.strip_prefix("--inner ") {
        (how.inner, rest) = (true, r);
    }
    for tier in [Tier::Any, Tier::Full] {
        if let Some(r) = rest.strip_prefix(&format!("--sandbox {} --project ", tier.word())) {
            let (project, r) = r.split_once(" -- ")?;
            how.sandbox = Some((tier, PathBuf::from(unquote(project)?)));
            rest = r;
            let inner = unquote(rest)?;
            return (wrap(&inner, jess, &how) == command).then_some((inner, how));
        }
    }
    let inner = unquote(rest.strip_prefix("-- ")?)?;
    (wrap(&inner, jess, &how) == command).then_some((inner, how))
}

fn unquote(word: &str) -> Option<String> {
    Some(word.strip_prefix('\'')?.strip_suffix('\'')?.replace(r"'\''", "'"))
}

/// The argument vector: bash, or `jess run` with bash in it.
///
/// The sandbox holds the project, writable, and the toolchains of the home; not the home itself, so neither keys, the
/// client's settings, transcripts and sockets, nor what jess keeps. It reaches the hosts in `net` and no others.
pub fn argv(command: &str, how: &Wrapping, jess: &Path, cwd: &Path, net: &[String]) -> Vec<OsString> {
    let bash = ["bash", "-c", command].map(OsString::from);
    let Some((tier, project)) = &how.sandbox else { return bash.to_vec() };
    let mut out: Vec<OsString> = vec![jess.into(), "run".into(), "--require".into(), tier.word().into()];
    out.extend(["--rw".into(), project.into(), "--tools".into()]);
    for own in [".claude/settings.json", ".claude/settings.local.json", ".mcp.json"] {
        out.extend(["--deny".into(), project.join(own).into()]);
    }
    if cwd.starts_with(project) {
        out.extend(["--cwd".into(), cwd.into()]);
    }
    for host in net {
        out.extend(["--net".into(), host.into()]);
    }
    out.push("--".into());
    out.extend(bash);
    out
}

/// Runs an argument vector, prints its sealed output, and says with what to exit.
pub fn run(argv: &[OsString], how: &Wrapping) -> Exit {
    let Some((program, args)) = argv.split_first() else { return Exit::USAGE };
    let mut command = Command::new(program);
    command.args(args);
    if how.inner
        && let Err(error) = inner::prepare(&mut command)
    {
        crate::sanitise::out::stderr(&format!("jess: no home for the command: {error}"));
        return Exit::ISOLATION;
    }
    if how.plain {
        let error = match how.inner.then(layer).transpose() {
            Ok(_) => command.exec(),
            Err(error) => error,
        };
        crate::sanitise::out::stderr(&format!("jess: cannot run bash: {error}"));
        return Exit::NOT_FOUND;
    }
    let mut printed = false;
    let captured = capture(command, how, &mut |bytes, total| {
        if printed && bytes.is_empty() {
            return;
        }
        printed = true;
        print(bytes, total);
    });
    match captured {
        Ok(exit) => exit,
        Err(error) => {
            crate::sanitise::out::stderr(&format!("jess: cannot run bash: {error}"));
            Exit::NOT_FOUND
        }
    }
}

/// Prints some output as one sealed block. `total` is how much there was.
fn print(bytes: &[u8], total: usize) {
    let text = String::from_utf8_lossy(bytes);
    let shown =
        text.char_indices().nth(SHOWN_MAX).map_or(&*text, |(at, _)| text.get(..at).unwrap_or_default());
    let mut seen = seal::Seen::default();
    let mut sealed = seal::text(shown, "Bash", "", &mut seen);
    if total > shown.len() {
        sealed.push_str(&format!(
            "\n[jess: cut after {} of {total} bytes; write the output to a file and read parts of that]",
            shown.len()
        ));
    }
    if let Some(note) = seen.note() {
        sealed.push('\n');
        sealed.push_str(&note);
    }
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(sealed.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}

/// Enters the command's own layer.
fn layer() -> std::io::Result<()> {
    if !inner::enter(std::env::var_os("HOME"))? {
        crate::sanitise::out::stderr(
            "jess: this kernel has no Landlock, so the command shares the client's files",
        );
    }
    Ok(())
}

/// Runs a command and hands its output to `give`: at the end, or also every [`STREAM`] while it runs. At most
/// [`OUTPUT_MAX`] bytes at a time, with the whole length.
fn capture(
    mut command: Command,
    how: &Wrapping,
    give: &mut dyn FnMut(&[u8], usize),
) -> std::io::Result<Exit> {
    let (reader, writer) = std::io::pipe()?;
    command
        .stdout(Stdio::from(std::os::fd::OwnedFd::from(writer.try_clone()?)))
        .stderr(Stdio::from(std::os::fd::OwnedFd::from(writer)));
    // The layer is a thread's: this one, which seals, stays outside of it and out of the command's reach.
    let mut child = if how.inner {
        let start = std::thread::scope(|s| s.spawn(|| layer().and_then(|()| command.spawn())).join());
        start.unwrap_or_else(|_| Err(std::io::Error::other("the thread of the command ended")))?
    } else {
        command.spawn()?
    };
    // The command holds copies of the pipe's writing end; without this the reading end would never see its end.
    drop(command);
    let (send, receive) = mpsc::sync_channel::<Vec<u8>>(64);
    std::thread::spawn(move || {
        let mut reader = reader;
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(n) = reader.read(&mut buffer) {
            if n == 0 || send.send(buffer.get(..n).unwrap_or_default().to_vec()).is_err() {
                break;
            }
        }
    });
    let mut kept = Vec::new();
    let mut total = 0;
    let mut ended = None;
    let mut given = Instant::now();
    loop {
        match receive.recv_timeout(if ended.is_some() { GRACE } else { Duration::from_millis(20) }) {
            Ok(piece) => {
                total += piece.len();
                let room = OUTPUT_MAX.saturating_sub(kept.len()).min(piece.len());
                kept.extend_from_slice(piece.get(..room).unwrap_or_default());
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) if ended.is_some() => break,
            Err(mpsc::RecvTimeoutError::Timeout) => ended = child.try_wait()?,
        }
        if how.stream && total > 0 && given.elapsed() >= STREAM {
            give(&kept, total);
            kept.clear();
            (total, given) = (0, Instant::now());
        }
    }
    give(&kept, total);
    let status = match ended {
        Some(status) => status,
        None => child.wait()?,
    };
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => Exit::child(code as u8),
        (None, Some(signal)) => Exit::signal(signal as u8),
        (None, None) => Exit::INTERNAL,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bash(line: &str, stream: bool) -> (Vec<(String, usize)>, Exit) {
        let mut command = Command::new("bash");
        command.args(["-c", line]);
        let mut seen = Vec::new();
        let how = Wrapping { stream, ..Wrapping::default() };
        let exit = capture(command, &how, &mut |bytes, total| {
            seen.push((String::from_utf8_lossy(bytes).into_owned(), total));
        });
        (seen, exit.unwrap())
    }

    #[test]
    fn wrapping_is_recognised_and_cannot_be_forged() {
        let jess = Path::new("/opt/jess");
        let ways = [
            Wrapping::default(),
            Wrapping { plain: true, stream: true, inner: true, ..Wrapping::default() },
            Wrapping {
                sandbox: Some((Tier::Any, "/home/u/it's -- a project".into())),
                ..Wrapping::default()
            },
            Wrapping { plain: true, sandbox: Some((Tier::Full, "/p".into())), ..Wrapping::default() },
        ];
        for how in &ways[..2] {
            let wrapped = wrap("echo 'a'; exit 3", jess, how);
            assert_eq!(unwrap(&wrapped, jess), Some(("echo 'a'; exit 3".into(), how.clone())), "{wrapped}");
        }
        let wrapped = wrap("echo ' -- '", jess, &ways[3]);
        assert_eq!(unwrap(&wrapped, jess), Some(("echo ' -- '".into(), ways[3].clone())), "{wrapped}");
        // A project with a separator in its name is at worst not recognised, and then wrapped once more.
        assert!(unwrap(&wrap("x", jess, &ways[2]), jess).is_none_or(|(c, _)| c == "x"));
        for forged in [
            "'/opt/jess' hook exec -- 'true'; cat x",
            "'/opt/jess' hook exec -- 'a' 'b'",
            "'/opt/jess' hook exec -- 'a';'b'",
            "'/opt/other' hook exec -- 'a'",
            "'/opt/jess' hook exec -- \"a\"",
            "'/opt/jess' hook exec 'a'",
            "'/opt/jess' hook exec --stream --plain -- 'a'",
            "'/opt/jess' hook exec --sandbox none --project '/p' -- 'a'",
            "'/opt/jess' hook exec --sandbox full --project '/p'; id -- 'a'",
        ] {
            assert!(unwrap(forged, jess).is_none(), "{forged}");
        }
    }

    #[test]
    fn output_of_a_failing_command_is_captured_with_its_status() {
        let (seen, exit) = bash("echo out; echo err >&2; exit 3", false);
        assert_eq!((seen, exit), (vec![("out\nerr\n".into(), 8)], Exit::child(3)));
    }

    #[test]
    fn a_child_left_behind_does_not_hold_the_answer() {
        assert_eq!(bash("sleep 30 & echo done", false).0, [("done\n".to_owned(), 5)]);
    }

    #[test]
    fn in_the_background_output_comes_while_the_command_runs() {
        let (seen, _) = bash("echo first; sleep 1.3; echo second", true);
        assert!(
            seen.len() >= 2 && seen[0].0 == "first\n" && seen.iter().any(|s| s.0.contains("second")),
            "{seen:?}"
        );
        assert_eq!(bash("echo first; sleep 1.3; echo second", false).0.len(), 1);
    }

    #[test]
    fn a_sandboxed_command_has_the_project_and_not_the_home() {
        let how = Wrapping { sandbox: Some((Tier::Any, "/home/u/p".into())), ..Wrapping::default() };
        let argv =
            argv("ls", &how, Path::new("/opt/jess"), Path::new("/home/u/p/src"), &["a.example".into()]);
        let line = argv.iter().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
        assert!(line.starts_with("/opt/jess run --require landlock --rw /home/u/p --tools"), "{line}");
        assert!(line.ends_with("--cwd /home/u/p/src --net a.example -- bash -c ls"), "{line}");
        assert!(!line.contains("--rw /home/u "), "{line}");
    }
}
