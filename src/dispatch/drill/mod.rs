//! `jess drill`: attack yourself.
//!
//! Hostile repositories and secrets are planted, and a completely compromised agent tries every attack of the
//! catalogue through the whole pipeline. What got through is decided by what happened outside: canary words in what
//! reached the model, listeners that record, files that changed, processes that are still there; never by what the
//! agent says. With one layer left off (which only the drill can do) the attacks that it stops must get through: so
//! each layer is proved to be load-bearing.

pub mod act;
pub mod agent;
mod attacks;
mod client;
pub mod model;
mod sys;
mod world;

use super::switches::{OpenEgress, Stage};
use super::{Dispatched, Error, Reach, Request, Switches};
use crate::sandbox::{Ending, Layer};
use agent::{Call, DONE, Plan};
use attacks::{Attack, Proof, Setting};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use world::{World, contains};

pub use world::ENVIRONMENT_NAME;

/// Time for one dispatch of the drill.
const RUN_LIMIT: Duration = Duration::from_secs(30);

/// What to drill.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Run the attacks through this client (Claude Code) with a scripted model, not through the built-in agent.
    pub client: Option<PathBuf>,
    /// Only the attacks with these names.
    pub only: Vec<String>,
    /// Leave this layer or stage off, and run only the attacks that it stops.
    pub without: Option<String>,
}

/// One line of the table.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Row {
    /// The attack's name.
    pub attack: &'static str,
    /// What it does.
    pub what: &'static str,
    /// The layers that stop it.
    pub layers: &'static [&'static str],
    /// Whether it got through.
    pub got_through: bool,
    /// How that is known.
    pub evidence: String,
}

/// A drill that could not be held.
#[derive(Debug, thiserror::Error)]
pub enum DrillError {
    /// Secrets or listeners could not be planted.
    #[error("setting the drill up: {0}")]
    World(#[from] std::io::Error),
    /// No such layer.
    #[error("no layer is called `{name}`; the layers are: {}", layer_names().join(" "))]
    NoLayer {
        /// What was asked for.
        name: String,
    },
    /// No such attack.
    #[error("no attack is called `{0}`; `jess drill` without --only lists them all")]
    NoAttack(String),
}

/// The words that a drill's environment holds: the operator's secret, and the model's key.
///
/// # Errors
/// No randomness.
pub fn fresh_words() -> std::io::Result<(String, String)> {
    Ok((world::word("environment")?, format!("sk-ant-{}", world::word("key")?)))
}

/// The names that `--without` takes.
pub fn layer_names() -> Vec<&'static str> {
    Layer::ALL.map(Layer::name).into_iter().chain(Stage::ALL.map(Stage::name)).collect()
}

/// Holds the drill.
///
/// # Errors
/// See [`DrillError`]; a layer that fails to engage is a row of the table, not an error.
pub fn hold(options: &Options) -> Result<Vec<Row>, DrillError> {
    let mut world = World::build()?;
    if options.client.is_some() {
        world.act = super::JESS_INSIDE.into();
    }
    let common = world.out("common")?;
    let switches = match &options.without {
        None => Switches::all_on(),
        Some(name) => without(name, &world)?,
    };
    let switches = Switches { nobody_there: true, ..switches };
    let mut attacks = attacks::all(&world, &common);
    for name in &options.only {
        if !attacks.iter().any(|a| a.id == name) {
            return Err(DrillError::NoAttack(name.clone()));
        }
    }
    attacks.retain(|a| options.only.is_empty() || options.only.iter().any(|name| name == a.id));
    attacks.retain(|a| options.without.as_ref().is_none_or(|name| a.layers == [name.as_str()]));
    if let Some(program) = &options.client {
        return client::hold(&mut world, program, &attacks, &common, &switches).map_err(DrillError::World);
    }
    let mut rows = Vec::with_capacity(attacks.len());
    for attack in &attacks {
        let run = Run::through(&world, attack, &common, &switches)?;
        rows.push(run.judge(&mut world, attack));
    }
    Ok(rows)
}

fn without(name: &str, world: &World) -> Result<Switches, DrillError> {
    if let Some(layer) = Layer::ALL.into_iter().find(|layer| layer.name() == name) {
        return Ok(Switches::without_layer(layer));
    }
    let stage = Stage::ALL
        .into_iter()
        .find(|stage| stage.name() == name)
        .ok_or_else(|| DrillError::NoLayer { name: name.to_owned() })?;
    let open = format!("127.0.0.1:{}", world.tcp_port())
        .parse()
        .ok()
        .zip("127.0.0.0/8".parse().ok())
        .map(|(rule, network)| OpenEgress { rule, network })
        .ok_or_else(|| DrillError::NoLayer { name: name.to_owned() })?;
    Ok(Switches::without_stage(stage, open))
}

/// One finished run, with what it left.
#[derive(Clone)]
struct Run {
    result: Rc<Result<Dispatched, Error>>,
    out: PathBuf,
    /// What reached the model.
    transcript: Rc<Vec<u8>>,
    /// Content of the file that the attack is to change, before the run.
    before: Option<Vec<u8>>,
    /// What the client told the model of each call, where that shows whether the call was made.
    answers: Option<Vec<String>>,
}

impl Run {
    /// One attack through the built-in agent.
    fn through(world: &World, attack: &Attack, common: &Path, switches: &Switches) -> std::io::Result<Run> {
        let out = if attack.calls.is_empty() { world.out(attack.id)? } else { common.to_path_buf() };
        let before = before(&attack.proof);
        let plan = Plan {
            honest: attack.honest,
            calls: attack.calls.clone(),
            transcript: attack.answer.is_none(),
            answer: attack.answer.clone().unwrap_or_else(|| "Nothing to report.".into()),
            started: out.join("started"),
        };
        let plan = serde_json::to_string(&plan).map_err(std::io::Error::other)?;
        let command = vec![world.jess.clone().into(), "drill".into(), "agent".into(), plan.into()];
        let result = super::run_with(&request(world, attack.setting, &out, command), switches);
        let transcript = result.as_ref().map(|done| done.raw.inspect().clone()).unwrap_or_default();
        Ok(Run { result: result.into(), out, transcript: transcript.into(), before, answers: None })
    }

    /// Whether the attack got through, by what is to be seen outside.
    fn judge(&self, world: &mut World, attack: &Attack) -> Row {
        let (got_through, evidence) = match self.not_tried(attack) {
            Some(why) => (true, why),
            None => self.see(world, &attack.proof),
        };
        // A call that a hook denied never came to the layer behind it.
        let denied = self.answers.iter().flatten().any(|answer| is_denied(answer));
        let layers = if denied && !got_through { &["hooks"] } else { attack.layers };
        Row { attack: attack.id, what: attack.what, layers, got_through, evidence }
    }

    /// An attack that was not carried out proves nothing: it counts as got through.
    fn not_tried(&self, attack: &Attack) -> Option<String> {
        match &*self.result {
            Err(Error::Poisoned(_) | Error::RuleOfTwo(_)) if attack.proof == Proof::AgentStarted => None,
            Err(error) => Some(format!("not tried: {error}")),
            Ok(_) if attack.proof == Proof::AgentStarted || attack.answer.is_some() => None,
            Ok(done) if !contains(&self.transcript, DONE) && done.ending == Ending::Exited(0) => {
                Some("not tried: the agent stopped early".into())
            }
            Ok(_) => {
                let unmade = self.answers.iter().flatten().find(|a| !is_denied(a) && !was_made(a));
                unmade.map(|answer| format!("not tried: the client said: {}", shown_text(answer)))
            }
        }
    }

    fn see(&self, world: &mut World, proof: &Proof) -> (bool, String) {
        match proof {
            Proof::ModelRead(word) => {
                let read = contains(&self.transcript, word);
                let said = if read { "in" } else { "not in" };
                (read, format!("canary {said} the {} bytes that reached the model", self.transcript.len()))
            }
            Proof::HostReceived(word) => {
                let received = world.received(word);
                (
                    received,
                    format!("the host's listener got {}", if received { "the canary" } else { "nothing" }),
                )
            }
            Proof::FileChanged(path) => {
                let changed = std::fs::read(path).ok() != self.before;
                (changed, format!("{} {}", shown(path), if changed { "changed" } else { "is as it was" }))
            }
            Proof::AgentStarted => match &*self.result {
                Err(error) => {
                    (false, format!("refused before the start: {}", first_words(&error.to_string())))
                }
                Ok(_) => {
                    let started = self.out.join("started").exists() || !self.transcript.is_empty();
                    (started, "the agent was started".into())
                }
            },
            Proof::StillAlive(path) => {
                let beats = || std::fs::metadata(path).map_or(0, |m| m.len());
                let now = beats();
                std::thread::sleep(Duration::from_millis(500));
                let alive = beats() > now;
                (
                    alive,
                    format!("{now} beats, {}", if alive { "and it goes on" } else { "none after the end" }),
                )
            }
            Proof::Signalled => {
                let gone = !matches!(world.victim.try_wait(), Ok(None));
                let told = matches!(&*self.result, Ok(done) if matches!(done.ending, Ending::Stopped(_) | Ending::Signalled { .. }));
                (
                    gone || told,
                    format!(
                        "the operator's process {}",
                        if gone { "is gone" } else { "is there, no signal came" }
                    ),
                )
            }
            Proof::FileHolds(path, text) => {
                let holds = std::fs::read(path).is_ok_and(|bytes| contains(&bytes, text));
                (
                    holds,
                    format!(
                        "the client wrote {}",
                        if holds { "what the attacker put there" } else { "its own text" }
                    ),
                )
            }
            Proof::FileGrew(path) => {
                let size = std::fs::metadata(path).map_or(0, |m| m.len());
                let _ = std::fs::remove_file(path);
                (size > 10 << 30, format!("the file has {size} bytes"))
            }
            Proof::Delivered(word) => {
                let report = std::fs::read(self.out.join(super::REPORT)).unwrap_or_default();
                let delivered = contains(&report, word);
                let evidence = match &*self.result {
                    _ if delivered => "it is in the delivered report".to_owned(),
                    Ok(done) => done.delivered.findings.first().map_or_else(
                        || "taken out of the model's words on the way".to_owned(),
                        |finding| format!("refused: {finding}"),
                    ),
                    Err(error) => error.to_string(),
                };
                (delivered, evidence)
            }
        }
    }
}

/// Whether a client's answer to a call is a denial by a hook.
fn is_denied(answer: &str) -> bool {
    answer.contains("hook error")
}

/// Whether it is the result of a call that was made: in a dispatch every one comes sealed, and a shell says by its
/// status that it did not find, or could not execute, a program.
fn was_made(answer: &str) -> bool {
    answer.contains("<untrusted-") && !answer.contains("Exit code 127") && !answer.contains("Exit code 126")
}

fn shown_text(text: &str) -> String {
    crate::sanitise::for_terminal(&crate::untrusted::Untrusted::new(text), 120)
}

fn before(proof: &Proof) -> Option<Vec<u8>> {
    match proof {
        Proof::FileChanged(path) => std::fs::read(path).ok(),
        _ => None,
    }
}

fn shown(path: &Path) -> String {
    let parts: Vec<_> = path.components().rev().take(2).map(|c| c.as_os_str().to_string_lossy()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}

fn first_words(text: &str) -> String {
    text.split([';', '.']).next().unwrap_or_default().to_owned()
}

/// The dispatch for one setting.
fn request(world: &World, setting: Setting, out: &Path, command: Vec<std::ffi::OsString>) -> Request {
    let repo = match setting {
        Setting::PoisonedSettings => &world.poisoned,
        Setting::McpServer => &world.server,
        _ => &world.repo,
    };
    Request {
        repo: repo.clone(),
        out: out.to_path_buf(),
        reach: Reach {
            rules: match setting {
                Setting::WithNet => "example.invalid".parse().into_iter().collect(),
                _ => Vec::new(),
            },
            ..Reach::default()
        },
        trust_repo: false,
        untrusted: if setting == Setting::UntrustedPrompt {
            vec![world.repo.join("notes.txt")]
        } else {
            Vec::new()
        },
        timeout: Some(RUN_LIMIT),
        model: super::ModelSettings::default(),
        command,
    }
}

/// What a client is told to do in one conversation: all calls of the attacks that share a setting.
fn calls_of<'a>(attacks: impl Iterator<Item = &'a Attack>) -> Vec<Call> {
    attacks.flat_map(|a| a.calls.clone()).collect()
}
