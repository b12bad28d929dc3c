//! The same attacks through the real client, with a scripted model that answers with the attacker's tool calls.
//!
//! Attacks that share a setting go through one conversation, a call a turn.

use super::attacks::{Attack, Setting};
use super::world::World;
use super::{Row, Run, calls_of};
use crate::dispatch::Switches;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The scripted model as a process of its own: this one must keep one thread.
pub struct Model {
    process: Child,
    pub url: String,
}

impl Model {
    pub fn start(world: &World, name: &str, turns: &[Value]) -> std::io::Result<Model> {
        let script = world.dir.join(format!("{name}.script"));
        std::fs::write(&script, Value::from(turns).to_string())?;
        let mut process = Command::new(&world.jess)
            .args(["drill", "model"])
            .arg(&script)
            .arg(log(world, name))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut port = String::new();
        if let Some(out) = process.stdout.as_mut() {
            BufReader::new(out).read_line(&mut port)?;
        }
        Ok(Model { process, url: format!("http://127.0.0.1:{}", port.trim()) })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn log(world: &World, name: &str) -> std::path::PathBuf {
    world.dir.join(format!("{name}.log"))
}

/// Runs `attacks` through the client `program`.
pub fn hold(
    world: &mut World,
    program: &Path,
    attacks: &[Attack],
    common: &Path,
    switches: &Switches,
) -> std::io::Result<Vec<Row>> {
    let mut rows = Vec::with_capacity(attacks.len());
    let table = Table { program, switches };
    let (together, alone): (Vec<&Attack>, Vec<&Attack>) =
        attacks.iter().partition(|a| a.setting == Setting::Plain && a.answer.is_none());
    if !together.is_empty() {
        let befores: Vec<_> = together.iter().map(|a| super::before(&a.proof)).collect();
        let calls = calls_of(together.iter().copied());
        let run = table.converse(world, "together", Setting::Plain, &calls, "Nothing to report.", common)?;
        let results = results(&run.transcript);
        let mut next = 0;
        for (attack, before) in together.into_iter().zip(befores) {
            let mine = next..next + attack.calls.len();
            next = mine.end;
            let answers = mine.map(|n| results.get(&call_id(n)).cloned().unwrap_or_default()).collect();
            let run = Run { before, answers: Some(answers), ..run.clone() };
            rows.push(run.judge(world, attack));
        }
    }
    for attack in alone {
        let out = world.out(attack.id)?;
        let answer = attack.answer.clone().unwrap_or_else(|| "Nothing to report.".into());
        let run = table.converse(world, attack.id, attack.setting, &attack.calls, &answer, &out)?;
        rows.push(run.judge(world, attack));
    }
    Ok(rows)
}

fn call_id(n: usize) -> String {
    format!("toolu_drill_{n}")
}

/// The requests in a model's log; what stands between them is their words once more.
fn requests(log: &[u8]) -> impl Iterator<Item = Value> {
    log.split(|b| *b == b'\n')
        .filter(|line| line.starts_with(b"{"))
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter(|request| request["messages"].is_array())
}

/// What the model was told of each call, by the call's id.
fn results(log: &[u8]) -> HashMap<String, String> {
    let mut results = HashMap::new();
    for request in requests(log) {
        let messages = request["messages"].as_array().into_iter().flatten();
        for block in messages.filter_map(|m| m["content"].as_array()).flatten() {
            if let Some(id) = block["tool_use_id"].as_str() {
                let content = &block["content"];
                let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
                results.insert(id.to_owned(), text);
            }
        }
    }
    results
}

/// The client at its table: what stays the same over all conversations.
struct Table<'a> {
    program: &'a Path,
    switches: &'a Switches,
}

impl Table<'_> {
    /// One conversation: each call a turn, then the answer.
    fn converse(
        &self,
        world: &World,
        name: &str,
        setting: Setting,
        calls: &[super::Call],
        answer: &str,
        out: &Path,
    ) -> std::io::Result<Run> {
        let mut turns: Vec<Value> = (0usize..)
        .zip(calls)
        .map(|(n, call)| json!([{"type": "tool_use", "id": call_id(n), "name": call.tool, "input": call.input}]))
        .collect();
        turns.push(json!([{"type": "text", "text": answer}]));
        let model = Model::start(world, name, &turns)?;
        let command =
            ["-p", "Look at this repository.", "--tools", "Bash,Read", "--allowedTools", "Bash,Read"];
        let command =
            std::iter::once(self.program.into()).chain(command.into_iter().map(Into::into)).collect();
        let request = super::request(world, setting, out, command);
        let request = crate::dispatch::Request {
            model: crate::dispatch::ModelSettings { url: Some(model.url.clone()), ..Default::default() },
            ..request
        };
        let result = crate::dispatch::run_with(&request, self.switches);
        let mut transcript = std::fs::read(log(world, name)).unwrap_or_default();
        let asked =
            requests(&transcript).filter(|r| r["tools"].as_array().is_some_and(|t| !t.is_empty())).count();
        if asked > calls.len() {
            transcript.extend_from_slice(super::DONE.as_bytes());
        }
        Ok(Run {
            result: result.into(),
            out: out.to_path_buf(),
            transcript: transcript.into(),
            before: None,
            answers: None,
        })
    }
}
