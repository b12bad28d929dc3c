//! The model's words in the shapes of OpenAI's API: chunks of a chat completion, and events of a response.
//!
//! A delta goes through the window of its lane; what a lane holds back is given out before the lane ends. Events that
//! repeat a text as a whole are inspected as a whole. A response's echo of the request is not the model's words.

use super::autofetch::Autofetch;
use super::scrub::Scrubber;
use super::sse::write_data;
use super::stream::{Action, Block, Field, Inspector, MAX_BLOCKS, MAX_CLOSED, Stop};
use crate::egress::rule::HostRule;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Strings of a delta that are the model's words, in a chunk of a chat completion.
const CHAT_TEXTS: [&str; 4] = ["content", "refusal", "reasoning_content", "reasoning"];

/// Keys whose strings are shown to somebody.
const SHOWN: [&str; 7] = ["content", "text", "refusal", "reasoning_content", "reasoning", "delta", "message"];

/// Which text of an answer a delta belongs to: its kind, and two indices within that.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Lane(String, u64, u64);

/// The texts of one answer that are being written.
pub(super) struct Lanes<'g> {
    hosts: &'g [HostRule],
    secrets: &'g Scrubber,
    action: Action,
    open: BTreeMap<Lane, Block<'g>>,
    /// Secrets and markup found since they were last taken.
    found: (u64, u64),
    /// Bytes of the model's words.
    pub bytes: u64,
    /// The first chunk without its words: what is held back goes out in one like it.
    first: Option<Value>,
    /// The answer has ended, and the stream.
    ended: bool,
    done: bool,
    /// Which place an item of a response has.
    items: BTreeMap<String, u64>,
    /// Texts of a response that have ended.
    closed: BTreeSet<Lane>,
}

impl<'g> Lanes<'g> {
    pub(super) fn new(hosts: &'g [HostRule], secrets: &'g Scrubber, action: Action) -> Self {
        Lanes {
            hosts,
            secrets,
            action,
            open: BTreeMap::new(),
            found: (0, 0),
            bytes: 0,
            first: None,
            ended: false,
            done: false,
            items: BTreeMap::new(),
            closed: BTreeSet::new(),
        }
    }

    fn take_found(&mut self) -> (u64, u64) {
        std::mem::take(&mut self.found)
    }

    /// Puts the next text of `lane` through its window; whether that changed it.
    fn push(&mut self, lane: Lane, field: Field, slot: &mut Value) -> Result<bool, Stop> {
        let Value::String(text) = slot else { return Ok(false) };
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        if self.closed.contains(&lane) {
            return Err(Stop::Malformed);
        }
        if self.open.len() >= MAX_BLOCKS && !self.open.contains_key(&lane) {
            return Err(Stop::Malformed);
        }
        let block = self.open.entry(lane).or_insert_with(|| Block::new(self.secrets, field));
        let clean = block.push(text, self.hosts, self.action == Action::Redact);
        Self::count(&mut self.found, block);
        // What is only marked passes as it came, at once.
        let changed = self.action != Action::Mark && clean != *text;
        if changed {
            *text = clean;
        }
        Ok(changed)
    }

    /// What the lane held back.
    fn close(&mut self, lane: &Lane) -> String {
        let Some(mut block) = self.open.remove(lane) else { return String::new() };
        let rest = block.finish(self.hosts, self.action == Action::Redact);
        Self::count(&mut self.found, &mut block);
        if self.action == Action::Mark { String::new() } else { rest }
    }

    fn count(found: &mut (u64, u64), block: &mut Block<'g>) {
        let (secrets, markup) = block.take_found();
        *found = (found.0 + secrets, found.1 + markup);
    }

    /// Inspects every string in `value` as a whole; whether that changed one. Depth is bounded by the JSON reader.
    fn clean(&mut self, key: &str, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                let field = if SHOWN.contains(&key) { Field::Text } else { Field::Json };
                let mut block = Block::new(self.secrets, field);
                let redact = self.action == Action::Redact;
                let mut clean = block.push(text, self.hosts, redact);
                clean.push_str(&block.finish(self.hosts, redact));
                Self::count(&mut self.found, &mut block);
                let changed = self.action != Action::Mark && clean != *text;
                if changed {
                    *text = clean;
                }
                changed
            }
            Value::Array(items) => {
                let mut changed = false;
                for item in items {
                    changed |= self.clean(key, item);
                }
                changed
            }
            Value::Object(fields) => {
                let mut changed = false;
                for (key, value) in fields {
                    changed |= self.clean(key, value);
                }
                changed
            }
            _ => false,
        }
    }
}

impl Inspector<'_> {
    /// The mark at the end of a stream, after which nothing comes.
    pub(super) fn openai_done(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Result<(), Stop> {
        self.openai_finish(out)?;
        self.lanes.done = true;
        out.extend_from_slice(raw);
        Ok(())
    }

    /// One event of a stream; `mended` when it must be written anew.
    pub(super) fn openai_event(
        &mut self,
        raw: &[u8],
        mut event: Value,
        mended: bool,
        chat: bool,
        hide_usage: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        if self.lanes.done {
            return Err(Stop::Malformed);
        }
        let changed = if chat {
            self.count_openai(event.get("usage"));
            let empty = event.get("choices").and_then(Value::as_array).is_none_or(Vec::is_empty);
            if hide_usage && empty && event.get("usage").is_some_and(Value::is_object) {
                return Ok(());
            }
            self.chunk(&mut event, out)?
        } else {
            self.count_openai(event.pointer("/response/usage"));
            self.response_event(&mut event, out)?
        };
        let (secrets, markup) = self.lanes.take_found();
        self.note(secrets, markup)?;
        if changed || mended {
            write_data(out, &event)
        } else {
            out.extend_from_slice(raw)
        }
        Ok(())
    }

    /// A chunk of a chat completion.
    fn chunk(&mut self, event: &mut Value, out: &mut Vec<u8>) -> Result<bool, Stop> {
        let mut changed = false;
        if self.lanes.first.is_none() {
            let mut first = event.clone();
            first["choices"] = Value::Null;
            first["usage"] = Value::Null;
            self.lanes.first = Some(first);
        }
        let fields = event.as_object_mut().ok_or(Stop::Malformed)?;
        for (key, value) in fields.iter_mut().filter(|(key, _)| *key != "choices") {
            changed |= self.lanes.clean(key, value);
        }
        let choices = match fields.get_mut("choices") {
            Some(Value::Array(choices)) => choices,
            None | Some(Value::Null) => return Ok(changed),
            Some(_) => return Err(Stop::Malformed),
        };
        // One answer was asked for; a client may put the texts of several together.
        let [choice] = choices.as_mut_slice() else {
            return if choices.is_empty() { Ok(changed) } else { Err(Stop::Malformed) };
        };
        if choice.get("index").is_some_and(|i| i.as_u64() != Some(0)) {
            return Err(Stop::Malformed);
        }
        let ends = choice.get("finish_reason").and_then(Value::as_str).is_some_and(|r| !r.is_empty());
        let before = self.lanes.bytes;
        for (key, value) in choice.as_object_mut().into_iter().flatten() {
            changed |= match key.as_str() {
                "delta" => self.chat_delta(value)?,
                // A whole message in a stream is what some servers end with.
                key => self.lanes.clean(key, value),
            };
        }
        if self.lanes.ended && self.lanes.bytes > before {
            return Err(Stop::Malformed);
        }
        if ends {
            self.lanes.ended = true;
            changed |= self.end_choice(0, choice, out);
        }
        Ok(changed)
    }

    fn chat_delta(&mut self, delta: &mut Value) -> Result<bool, Stop> {
        let mut changed = false;
        for (key, value) in delta.as_object_mut().into_iter().flatten() {
            changed |= match (key.as_str(), &mut *value) {
                (key, Value::String(_)) if CHAT_TEXTS.contains(&key) => {
                    self.lanes.push(Lane(key.into(), 0, 0), Field::Text, value)?
                }
                ("tool_calls", Value::Array(calls)) => {
                    let mut changed = false;
                    for call in calls {
                        let at = call.get("index").and_then(Value::as_u64).unwrap_or(0);
                        for (key, value) in call.as_object_mut().into_iter().flatten() {
                            changed |= self.call(key, at, value)?;
                        }
                    }
                    changed
                }
                ("function_call", value) => self.call("function_call", 0, value)?,
                (key, value) => self.lanes.clean(key, value),
            };
        }
        Ok(changed)
    }

    /// A part of a tool call: what it is called with comes in pieces.
    fn call(&mut self, kind: &str, at: u64, part: &mut Value) -> Result<bool, Stop> {
        let Value::Object(fields) = part else { return Ok(self.lanes.clean(kind, part)) };
        let mut changed = false;
        for (key, value) in fields {
            changed |= match key.as_str() {
                "arguments" | "input" if value.is_string() => {
                    self.lanes.push(Lane(kind.into(), 0, at), Field::Json, value)?
                }
                key => self.lanes.clean(key, value),
            };
        }
        Ok(changed)
    }

    /// Gives out what the lanes of a choice held back: in `choice`, where that has a text of the same lane, or before.
    fn end_choice(&mut self, index: u64, choice: &mut Value, out: &mut Vec<u8>) -> bool {
        let mut changed = false;
        let lanes: Vec<Lane> = self.lanes.open.keys().filter(|l| l.1 == index).cloned().collect();
        for lane in lanes {
            let rest = self.lanes.close(&lane);
            if rest.is_empty() {
                continue;
            }
            let slot = choice.get_mut("delta").and_then(|d| d.get_mut(lane.0.as_str()));
            if let Some(Value::String(text)) = slot {
                text.push_str(&rest);
                changed = true;
            } else {
                self.write_rest(&lane, rest, out);
            }
        }
        changed
    }

    fn write_rest(&self, Lane(kind, index, at): &Lane, rest: String, out: &mut Vec<u8>) {
        let delta = match kind.as_str() {
            "function" => json!({"tool_calls": [{"index": at, "function": {"arguments": rest}}]}),
            "custom" => json!({"tool_calls": [{"index": at, "custom": {"input": rest}}]}),
            "function_call" => json!({"function_call": {"arguments": rest}}),
            text => json!({text: rest}),
        };
        let mut event = self.lanes.first.clone().unwrap_or_else(|| json!({}));
        event["choices"] = json!([{"index": index, "delta": delta, "finish_reason": null}]);
        write_data(out, &event);
    }

    /// An event of a response.
    fn response_event(&mut self, event: &mut Value, out: &mut Vec<u8>) -> Result<bool, Stop> {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let at = |event: &Value, key: &str| event.get(key).and_then(Value::as_u64);
        let item = at(event, "output_index").unwrap_or(0);
        let part = at(event, "content_index").or(at(event, "summary_index")).unwrap_or(0);
        if let Some(id) = event.get("item_id").and_then(Value::as_str) {
            let known = self.lanes.items.len();
            let place = self.lanes.items.entry(id.to_owned()).or_insert(item);
            if *place != item || known > MAX_BLOCKS * 64 || id.len() > 1024 {
                return Err(Stop::Malformed);
            }
        }
        if kind.len() > 256 {
            return Err(Stop::Malformed);
        }
        if let Some(base) = kind.strip_suffix(".delta") {
            let shown = base.ends_with("text") || base.ends_with("refusal");
            let field = if shown { Field::Text } else { Field::Json };
            if let Some(slot) = event.get_mut("delta").filter(|d| d.is_string()) {
                return self.lanes.push(Lane(base.to_owned(), item, part), field, slot);
            }
        }
        if let Some(base) = kind.strip_suffix(".done") {
            let lane = Lane(base.to_owned(), item, part);
            let rest = self.lanes.close(&lane);
            if self.lanes.closed.len() >= MAX_CLOSED {
                return Err(Stop::Malformed);
            }
            self.lanes.closed.insert(lane);
            if !rest.is_empty() {
                let mut last = json!({"type": format!("{base}.delta"), "delta": rest});
                for key in ["item_id", "output_index", "content_index", "summary_index", "sequence_number"] {
                    if let Some(value) = event.get(key) {
                        last[key] = value.clone();
                    }
                }
                write_data(out, &last);
            }
        }
        let mut changed = false;
        for (key, value) in event.as_object_mut().into_iter().flatten() {
            match (key.as_str(), value) {
                ("response", response) => {
                    if let Some(output) = response.get_mut("output") {
                        changed |= self.lanes.clean("output", output);
                    }
                }
                (key, value) => changed |= self.lanes.clean(key, value),
            }
        }
        Ok(changed)
    }

    /// The stream ends: what is held back is given out.
    pub(super) fn openai_finish(&mut self, out: &mut Vec<u8>) -> Result<(), Stop> {
        for lane in self.lanes.open.keys().cloned().collect::<Vec<_>>() {
            let rest = self.lanes.close(&lane);
            if rest.is_empty() {
                continue;
            }
            if lane.0.contains('.') {
                let kind = format!("{}.delta", lane.0);
                let event =
                    json!({"type": kind, "output_index": lane.1, "content_index": lane.2, "delta": rest});
                write_data(out, &event);
            } else {
                self.write_rest(&lane, rest, out);
            }
        }
        let (secrets, markup) = self.lanes.take_found();
        self.note(secrets, markup)
    }

    /// An answer that came as one document.
    pub(super) fn openai_document(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Stop> {
        let mut answer: Value = serde_json::from_slice(bytes).map_err(|_| Stop::Malformed)?;
        self.count_openai(answer.get("usage"));
        let mut changed = false;
        for key in ["choices", "output"] {
            if let Some(part) = answer.get_mut(key) {
                changed |= self.lanes.clean(key, part);
            }
        }
        let (secrets, markup) = self.lanes.take_found();
        self.note(secrets, markup)?;
        if changed { serde_json::to_vec(&answer).map_err(|_| Stop::Malformed) } else { Ok(bytes.to_vec()) }
    }

    fn count_openai(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage.filter(|u| u.is_object()) else { return };
        let read = |names: [&str; 2]| names.iter().find_map(|n| usage.pointer(n).and_then(Value::as_u64));
        let input = read(["/prompt_tokens", "/input_tokens"]).unwrap_or(0);
        let cached = read(["/prompt_tokens_details/cached_tokens", "/input_tokens_details/cached_tokens"]);
        let output = read(["/completion_tokens", "/output_tokens"]).unwrap_or(0);
        // Some servers leave reasoning out of the output, and have it in the total.
        let total = usage.get("total_tokens").and_then(Value::as_u64).unwrap_or(0);
        let output = output.max(total.saturating_sub(input));
        self.spend(input.saturating_sub(cached.unwrap_or(0)), cached.unwrap_or(0), output);
    }
}

impl<'g> Block<'g> {
    pub(super) fn new(secrets: &'g Scrubber, field: Field) -> Self {
        Block { secrets: secrets.stream(), markup: Autofetch::default(), field }
    }

    fn take_found(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.secrets.found), std::mem::take(&mut self.markup.found))
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::Dialect;
    use super::*;

    const CANARY: &str = "CANARY-7f3a9c1e5b";

    /// Input, cached input, output.
    type Tokens = (u64, u64, u64);

    fn run(action: Action, hide_usage: bool, events: &[Value]) -> (Result<String, Stop>, Option<Tokens>) {
        let (hosts, secrets) = (Vec::new(), Scrubber::new([CANARY]));
        let chat = !events.iter().any(|e| e.get("type").is_some());
        let mut inspector =
            Inspector::new(action, &hosts, &secrets).reading(Dialect::OpenAi { chat, hide_usage });
        let text: String =
            events.iter().map(|e| format!("data: {e}\n\n")).collect::<String>() + "data: [DONE]\n\n";
        let mut out = Vec::new();
        for chunk in text.as_bytes().chunks(11) {
            match inspector.push(chunk) {
                Ok(bytes) => out.extend(bytes),
                Err(stop) => return (Err(stop), None),
            }
        }
        out.extend(inspector.finish().unwrap());
        let spent = inspector.spent().map(|s| (s.input, s.cache_read, s.output));
        (Ok(String::from_utf8(out).unwrap()), spent)
    }

    fn chunk(delta: Value, finish: Value) -> Value {
        json!({"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    }

    fn usage() -> Value {
        json!({"id": "c1", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}}})
    }

    /// The text that a client puts together.
    fn content(stream: &str) -> String {
        let events = stream.lines().filter_map(|l| l.strip_prefix("data: ")).filter(|d| *d != "[DONE]");
        let values: Vec<Value> = events.map(|d| serde_json::from_str(d).unwrap()).collect();
        values.iter().filter_map(|v| v.pointer("/choices/0/delta/content").and_then(Value::as_str)).collect()
    }

    #[test]
    fn an_innocent_chat_passes_byte_for_byte_and_is_counted() {
        let events = [
            chunk(json!({"content": "Hello "}), Value::Null),
            chunk(json!({"content": "a < b"}), json!("stop")),
            usage(),
        ];
        let (out, spent) = run(Action::Redact, false, &events);
        let same: String =
            events.iter().map(|e| format!("data: {e}\n\n")).collect::<String>() + "data: [DONE]\n\n";
        assert_eq!((out.unwrap(), spent), (same, Some((6, 3, 4))));
    }

    #[test]
    fn a_count_that_was_not_asked_for_stays_outside() {
        let (out, spent) =
            run(Action::Redact, true, &[chunk(json!({"content": "x"}), json!("stop")), usage()]);
        assert!(!out.unwrap().contains("usage") && spent == Some((6, 3, 4)));
    }

    #[test]
    fn what_is_split_over_chunks_is_found_and_nothing_is_lost() {
        let texts = ["so CANARY-7f3a", "9c1e5b and ![x", "](https://evil.", "test/a) end ![open"];
        let mut events: Vec<Value> =
            texts.iter().map(|t| chunk(json!({"content": t}), Value::Null)).collect();
        events.push(chunk(json!({}), json!("stop")));
        let out = run(Action::Redact, false, &events).0.unwrap();
        assert_eq!(content(&out), "so [redacted by jess] and [image removed by jess] end ![open");
        assert!(out.find("![open").unwrap() < out.find("\"stop\"").unwrap());
        assert_eq!(run(Action::Stop, false, &events).0, Err(Stop::Found));
    }

    #[test]
    fn the_arguments_of_a_call_are_inspected() {
        let call = |text: &str| json!({"tool_calls": [{"index": 1, "function": {"arguments": text}}]});
        let events = [
            chunk(call("{\"q\":\"CANARY-7f3a"), Value::Null),
            chunk(call("9c1e5b\"}"), Value::Null),
            chunk(json!({}), json!("tool_calls")),
        ];
        let out = run(Action::Redact, false, &events).0.unwrap();
        assert!(!out.contains("9c1e5b") && out.contains("[redacted by jess]"), "{out}");
    }

    #[test]
    fn a_response_is_inspected_in_its_deltas_and_where_it_repeats_itself() {
        let delta = |text: &str| json!({"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0, "delta": text});
        let whole = format!("a {CANARY} ![x](https://evil.test/a)");
        let events = [
            json!({"type": "response.created", "response": {"instructions": format!("never say {CANARY}"), "output": []}}),
            delta("a CANARY-7f"),
            delta("3a9c1e5b ![x](https://e"),
            delta("vil.test/a"),
            delta(") ![t"),
            json!({"type": "response.output_text.done", "item_id": "i", "output_index": 0, "content_index": 0, "text": whole}),
            json!({"type": "response.completed", "response": {"instructions": format!("never say {CANARY}"),
                "output": [{"type": "message", "content": [{"type": "output_text", "text": whole}]}],
                "usage": {"input_tokens": 7, "output_tokens": 200, "input_tokens_details": {"cached_tokens": 0}}}}),
        ];
        let (out, spent) = run(Action::Redact, false, &events);
        let out = out.unwrap();
        assert!(!out.contains("evil.test") && spent == Some((7, 0, 200)), "{out}");
        assert_eq!(out.matches(CANARY).count(), 2, "the echo of the request is not the model's: {out}");
        assert!(out.find("\"![t\"").unwrap() < out.find("output_text.done\"").unwrap(), "{out}");
    }

    #[test]
    fn a_text_of_a_response_that_has_ended_does_not_go_on() {
        let delta = |item: u64, text: &str| json!({"type": "response.output_text.delta", "output_index": item, "content_index": 0, "delta": text});
        let done =
            json!({"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "x"});
        let first = delta(0, "![x](https://ev");
        assert!(run(Action::Redact, false, &[first.clone(), done.clone(), delta(1, "il.test/a)")]).0.is_ok());
        let again = run(Action::Redact, false, &[first, done, delta(0, "il.test/a)")]).0;
        assert_eq!(again, Err(Stop::Malformed));
    }

    #[test]
    fn a_document_is_inspected() {
        let (hosts, secrets) = (Vec::new(), Scrubber::new([CANARY]));
        let document = json!({"choices": [{"message": {"content": format!("a {CANARY} ![x](http://e.test)"),
            "tool_calls": [{"function": {"arguments": format!("{{\"x\":\"{CANARY}\"}}")}}]}}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
        let mut inspector = Inspector::new(Action::Redact, &hosts, &secrets)
            .reading(Dialect::OpenAi { chat: true, hide_usage: false });
        let out = String::from_utf8(inspector.document(document.to_string().as_bytes()).unwrap()).unwrap();
        assert!(!out.contains(CANARY) && !out.contains("e.test"), "{out}");
        assert_eq!((inspector.found.get("secret"), inspector.found.get("autofetch")), (Some(&2), Some(&1)));
    }
}
