//! `jess check`: scan files, directories, stdin, staged content or a diff.

use crate::exit::Exit;
use crate::sanitise;
use crate::scan::baseline::Baseline;
use crate::scan::report::{self, Policy, Report};
use crate::scan::walk::{self, Options, Skipped};
use crate::scan::{Engine, Severity, stream};
use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Report form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
}

/// Scan for text that addresses a model: exit 0 nothing, 1 findings at or above --fail-on, 2 findings below it
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files or directories; `-` is stdin
    paths: Vec<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value = "text", ignore_case = true)]
    format: Format,
    /// Severity from which the exit code is 1
    #[arg(long, default_value = "low")]
    fail_on: Severity,
    /// Withhold findings below this confidence (0 to 1)
    #[arg(long, default_value_t = 0.5)]
    min_confidence: f32,
    /// Context lowers no confidence, nothing is withheld for it
    #[arg(long)]
    strict: bool,
    /// Inline suppression has no effect
    #[arg(long)]
    no_suppress: bool,
    /// Scan what the next commit holds
    #[arg(long)]
    staged: bool,
    /// Scan files that differ from this revision
    #[arg(long, value_name = "REV")]
    diff: Option<String>,
    /// Accept the findings of this file
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write all findings to this file as a baseline and exit 0
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    write_baseline: Option<PathBuf>,
    /// Rules of your own: a directory of pattern files
    #[arg(long, value_name = "DIR")]
    patterns: Option<PathBuf>,
    /// Only paths that match
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
    /// No paths that match
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Read ignored files, too
    #[arg(long)]
    no_ignore: bool,
    /// Read binary files, too
    #[arg(long)]
    all_files: bool,
    /// Skip larger files, in bytes
    #[arg(long, default_value_t = 1 << 30)]
    max_file_size: u64,
    /// Threads; 0 is one for each processor
    #[arg(long, default_value_t = 0)]
    jobs: usize,
    /// No summary on stderr
    #[arg(short, long)]
    quiet: bool,
    /// Print confidence haircut and indicators as JSON; always exits 0
    #[arg(long)]
    preflight: bool,
}

/// `jess check` as a program of its own.
#[derive(clap::Parser)]
#[command(name = "jess-check", version)]
struct Alone {
    #[command(flatten)]
    args: Args,
}

/// `jess-check`: the same with little else of jess behind it.
pub fn alone(args: impl IntoIterator<Item = std::ffi::OsString>) -> Exit {
    match <Alone as clap::Parser>::try_parse_from(args) {
        Ok(Alone { args }) => run(args),
        Err(error) => super::usage(&error),
    }
}

/// Findings of one run beyond this many are counted, not listed.
const MOST_LISTED: usize = 50_000;

enum Work {
    File(PathBuf),
    Staged(String),
    Stdin,
}

/// Runs it.
pub fn run(args: Args) -> Exit {
    match check(&args) {
        Ok(exit) => exit,
        Err((exit, message)) => {
            tell!("jess check: {}", sanitise::escape(&message, false));
            exit
        }
    }
}

type Failure = (Exit, String);

fn internal(e: impl std::fmt::Display) -> Failure {
    (Exit::INTERNAL, e.to_string())
}

fn usage(e: impl std::fmt::Display) -> Failure {
    (Exit::USAGE, e.to_string())
}

fn check(args: &Args) -> Result<Exit, Failure> {
    if !(0.0..=1.0).contains(&args.min_confidence) {
        return Err(usage("--min-confidence wants a number from 0 to 1"));
    }
    let own;
    let engine = match &args.patterns {
        Some(dir) => {
            own = Engine::with_dir(dir).map_err(usage)?;
            &own
        }
        None => Engine::builtin(),
    };
    let options = Options {
        include: args.include.clone(),
        exclude: args.exclude.clone(),
        max_file_size: args.max_file_size,
        no_ignore: args.no_ignore,
        all_files: args.all_files,
    };
    let mut skipped = Skipped::default();
    let work = gather(args, &options, &mut skipped)?;
    if args.preflight {
        return preflight(work, &options);
    }
    let policy =
        Policy { strict: args.strict, min_confidence: args.min_confidence, no_suppress: args.no_suppress };
    let files = work.len();
    let mut reports = scan_all(engine, work, &options, policy, args, &mut skipped)?;
    if let Some(path) = &args.write_baseline {
        let text = serde_json::to_string_pretty(&Baseline::of(&reports)).map_err(internal)?;
        std::fs::write(path, text + "\n")
            .map_err(|e| internal(format!("writing {}: {e}", sanitise::path(path))))?;
        return Ok(Exit::OK);
    }
    let mut stale = 0;
    if let Some(path) = &args.baseline {
        let read = |e: String| usage(format!("reading the baseline {}: {e}", sanitise::path(path)));
        let text = std::fs::read_to_string(path).map_err(|e| read(e.to_string()))?;
        stale = Baseline::parse(&text).map_err(read)?.apply(&mut reports);
    }
    // What is not listed counts.
    let worst = reports.iter().flat_map(|r| &r.findings).map(|p| p.finding.severity).max();
    let unlisted = cap(&mut reports);
    let mut out = std::io::stdout().lock();
    let written = match args.format {
        Format::Text => {
            let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            out.write_all(report::text(&reports, colour).as_bytes())
        }
        Format::Json => writeln!(out, "{}", report::json(&reports)),
        Format::Sarif => writeln!(out, "{}", report::sarif(&reports)),
    };
    if let Err(e) = written
        && e.kind() != std::io::ErrorKind::BrokenPipe
    {
        return Err(internal(format!("writing the report: {e}")));
    }
    if unlisted > 0 {
        tell!("jess check: {unlisted} findings more are not listed");
    }
    if !args.quiet {
        summary(&reports, files, skipped, stale);
    }
    Ok(match worst {
        None => Exit::OK,
        Some(s) if s >= args.fail_on => Exit::FINDINGS,
        Some(_) => Exit::MINOR_FINDINGS,
    })
}

fn gather(args: &Args, options: &Options, skipped: &mut Skipped) -> Result<Vec<Work>, Failure> {
    let mut work = Vec::new();
    if args.staged {
        work.extend(walk::staged().map_err(internal)?.into_iter().map(Work::Staged));
    }
    if let Some(rev) = &args.diff {
        work.extend(walk::changed_since(rev).map_err(internal)?.into_iter().map(Work::File));
    }
    if args.paths.is_empty() && !args.staged && args.diff.is_none() {
        return Err(usage("name a file, a directory, `-`, --staged or --diff REV"));
    }
    for path in &args.paths {
        if path.as_os_str() == "-" {
            work.push(Work::Stdin);
            continue;
        }
        let (files, left_out) = walk::files(path, options).map_err(usage)?;
        // A file named on the command line must be readable: an error, not a count.
        if files.as_slice() == [path.clone()] {
            std::fs::File::open(path).map_err(|e| usage(format!("reading {}: {e}", sanitise::path(path))))?;
        }
        skipped.add(left_out);
        work.extend(files.into_iter().map(Work::File));
    }
    Ok(work)
}

fn scan_all(
    engine: &Engine,
    work: Vec<Work>,
    options: &Options,
    policy: Policy,
    args: &Args,
    skipped: &mut Skipped,
) -> Result<Vec<Report>, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if args.jobs == 0 { cores } else { args.jobs }.clamp(1, 64).min(work.len().max(1));
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Report)>> = Mutex::new(Vec::new());
    let left_out = Mutex::new(Skipped::default());
    let failed: Mutex<Option<String>> = Mutex::new(None);
    let progress = !args.quiet && std::io::stderr().is_terminal() && work.len() > 500;
    let each = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = work.get(i) else { break };
            if progress && i.is_multiple_of(500) {
                let _ = write!(std::io::stderr(), "\rjess check: {i} of {} files", work.len());
            }
            let report = match one(engine, item, options, policy) {
                Ok(report) => report,
                Err(Fault::Skipped(s)) => {
                    if let Ok(mut all) = left_out.lock() {
                        all.add(s);
                    }
                    continue;
                }
                Err(Fault::Failed(why)) => {
                    if let Ok(mut first) = failed.lock() {
                        first.get_or_insert(why);
                    }
                    continue;
                }
            };
            let empty = report.findings.is_empty() && report.withheld.is_empty();
            // A baseline has to see the clean files, too: their entries are stale.
            if (!empty || args.baseline.is_some())
                && let Ok(mut all) = done.lock()
            {
                all.push((i, report));
            }
        }
    };
    if threads == 1 {
        each();
    } else {
        std::thread::scope(|s| {
            for _ in 0..threads {
                s.spawn(each);
            }
        });
    }
    if progress {
        tell!("");
    }
    skipped.add(left_out.into_inner().unwrap_or_default());
    if let Some(why) = failed.into_inner().unwrap_or_default() {
        return Err((Exit::INTERNAL, why));
    }
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(i, _)| *i);
    Ok(done.into_iter().map(|(_, r)| r).collect())
}

/// Keeps the first findings of a run, and says how many it left out.
fn cap(reports: &mut [Report]) -> usize {
    let mut room = MOST_LISTED;
    let mut out = 0;
    for r in reports {
        out += r.findings.len().saturating_sub(room);
        r.findings.truncate(room);
        room -= r.findings.len();
    }
    out
}

enum Fault {
    Skipped(Skipped),
    Failed(String),
}

/// Checks one text.
fn one(engine: &Engine, item: &Work, options: &Options, policy: Policy) -> Result<Report, Fault> {
    match item {
        Work::Staged(name) => {
            let bytes = walk::staged_content(name).map_err(|e| Fault::Failed(e.to_string()))?;
            Ok(report::check(engine, name, &bytes, policy))
        }
        Work::File(path) => {
            let reader = walk::open(path, options).map_err(Fault::Skipped)?;
            let unreadable = |_| Fault::Skipped(Skipped { unreadable: 1, ..Skipped::default() });
            stream::check_reader(engine, &path.to_string_lossy(), reader, policy).map_err(unreadable)
        }
        Work::Stdin => {
            let failed = |e| Fault::Failed(format!("reading stdin: {e}"));
            let mut stdin = std::io::stdin().lock();
            let limited = stdin.by_ref().take(options.max_file_size);
            let report = stream::check_reader(engine, "-", limited, policy).map_err(failed)?;
            let mut more = [0u8; 1];
            match stdin.read(&mut more) {
                Ok(0) => Ok(report),
                _ => Err(Fault::Failed(format!(
                    "stdin is longer than --max-file-size {}; raise it",
                    options.max_file_size
                ))),
            }
        }
    }
}

fn preflight(work: Vec<Work>, options: &Options) -> Result<Exit, Failure> {
    for item in work {
        let mut bytes = Vec::new();
        let read = |e: std::io::Error| internal(e);
        let name = match item {
            Work::Staged(name) => {
                bytes = walk::staged_content(&name).map_err(internal)?;
                name
            }
            Work::Stdin => {
                std::io::stdin().lock().take(options.max_file_size).read_to_end(&mut bytes).map_err(read)?;
                "-".to_string()
            }
            Work::File(p) => {
                let reader = walk::open(&p, options);
                let mut reader = reader
                    .map_err(|_| usage(format!("reading {}: not a readable text", sanitise::path(&p))))?;
                reader.read_to_end(&mut bytes).map_err(read)?;
                p.to_string_lossy().into_owned()
            }
        };
        let p = crate::scan::preflight_bytes(&bytes);
        let line = serde_json::json!({
            "file": sanitise::escape(&name, false), "haircut": p.haircut, "indicators": p.indicators,
        });
        say!("{line}");
    }
    Ok(Exit::OK)
}

fn summary(reports: &[Report], files: usize, skipped: Skipped, stale: usize) {
    let found: usize = reports.iter().map(|r| r.findings.len()).sum();
    let withheld: usize = reports.iter().map(|r| r.withheld.len()).sum();
    let mut text = format!("{found} findings, {withheld} withheld, {files} texts");
    if skipped.total() > 0 {
        text.push_str(&format!(
            "; skipped {} (too large {}, binary {}, special {}, unreadable {})",
            skipped.total(),
            skipped.large,
            skipped.binary,
            skipped.special,
            skipped.unreadable
        ));
    }
    if stale > 0 {
        text.push_str(&format!("; {stale} baseline entries are stale"));
    }
    tell!("{text}");
}
