//! The model's words on their way in: read event by event, inspected, counted, and passed on in order.
//!
//! What is found by [`Autofetch`] or among the run's secrets is handled as [`Action`] says. Text is held back only
//! while a match could still be completed by what follows, and what is held is given out before the block ends, so a
//! stream is never reordered and never loses text. Memory is bounded: one event ([`MAX_EVENT`]), and the windows of at
//! most [`MAX_BLOCKS`] open blocks.

use super::autofetch::Autofetch;
use super::budget::Spent;
use super::openai_stream::Lanes;
use super::scrub::{Scrubber, Scrubbing};
use super::sse::{Framed, end_of_event, framed, read, write_data, write_event};
use crate::egress::credential::Credential;
use crate::egress::rule::HostRule;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Longest event, in bytes. Deltas are small; results of server tools can be large.
pub(super) const MAX_EVENT: usize = 8 * 1024 * 1024;
/// Most blocks open at once. The API opens one at a time.
pub(super) const MAX_BLOCKS: usize = 64;
/// Most blocks of one answer.
pub(super) const MAX_CLOSED: usize = 4096;

/// What happens to something found in the model's words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Action {
    /// It passes, and an alert is raised.
    Mark,
    /// It is replaced, and an alert is raised. In a model's thinking, which is signed, it is only marked.
    #[default]
    Redact,
    /// The answer ends there with an error, and an alert is raised.
    Stop,
}

impl std::str::FromStr for Action {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Action, Self::Err> {
        Ok(match text {
            "mark" => Action::Mark,
            "redact" => Action::Redact,
            "stop" => Action::Stop,
            _ => return Err("the actions are mark, redact and stop"),
        })
    }
}

/// What is looked for in the model's words.
#[derive(Debug, Default)]
pub struct Inspection {
    /// What happens to it.
    pub action: Action,
    /// Canaries and secrets of the run, and the envelope's nonce: text that the model has no reason to write. Looked
    /// for in several encodings; those shorter than 8 bytes are ignored.
    pub secrets: Vec<Credential>,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Events of the Messages API.
    #[default]
    Messages,
    /// Chunks of a chat completion (`chat`), or events of a response.
    OpenAi {
        chat: bool,
        /// The chunk that tells the cost is not passed on.
        hide_usage: bool,
    },
}

/// The answer must not go on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Policy is to stop at what was found.
    Found,
    /// The stream is not what the API sends.
    Malformed,
}

/// Reads one answer.
pub(super) struct Inspector<'g> {
    action: Action,
    hosts: &'g [HostRule],
    secrets: &'g Scrubber,
    dialect: Dialect,
    pub(super) lanes: Lanes<'g>,
    buf: Vec<u8>,
    searched: usize,
    blocks: BTreeMap<(u64, Field), Block<'g>>,
    /// Blocks that have ended.
    closed: BTreeSet<u64>,
    /// Kinds of what was found, with how often.
    pub found: BTreeMap<&'static str, u64>,
    spent: Spent,
    usage_seen: bool,
    /// The count is that of the whole answer.
    usage_final: bool,
    text_bytes: u64,
}

pub(super) struct Block<'g> {
    pub(super) secrets: Scrubbing<'g>,
    pub(super) markup: Autofetch,
    pub(super) field: Field,
}

/// Where a delta keeps its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    Text,
    Json,
    Thinking,
}

impl Field {
    fn of_delta(kind: Option<&str>) -> Option<Field> {
        match kind? {
            "text_delta" => Some(Field::Text),
            "input_json_delta" => Some(Field::Json),
            "thinking_delta" => Some(Field::Thinking),
            _ => None,
        }
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Field::Text => ("text_delta", "text"),
            Field::Json => ("input_json_delta", "partial_json"),
            Field::Thinking => ("thinking_delta", "thinking"),
        }
    }
}

impl<'g> Inspector<'g> {
    pub(super) fn new(action: Action, hosts: &'g [HostRule], secrets: &'g Scrubber) -> Self {
        Inspector {
            action,
            hosts,
            secrets,
            dialect: Dialect::Messages,
            lanes: Lanes::new(hosts, secrets, action),
            buf: Vec::new(),
            searched: 0,
            blocks: BTreeMap::new(),
            closed: BTreeSet::new(),
            found: BTreeMap::new(),
            spent: Spent::default(),
            usage_seen: false,
            usage_final: false,
            text_bytes: 0,
        }
    }

    /// The same for another dialect.
    pub(super) fn reading(self, dialect: Dialect) -> Self {
        Inspector { dialect, ..self }
    }

    /// Takes the next bytes of an event stream and returns what may pass.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Stop> {
        self.buf.extend_from_slice(bytes);
        let mut out = Vec::with_capacity(bytes.len());
        let mut buf = std::mem::take(&mut self.buf);
        let (mut start, mut at) = (0, self.searched);
        while let Some(end) = end_of_event(&buf, at) {
            self.event(buf.get(start..end).unwrap_or_default(), &mut out)?;
            (start, at) = (end, end);
        }
        buf.drain(..start);
        self.buf = buf;
        self.searched = self.buf.len().saturating_sub(3);
        if self.buf.len() > MAX_EVENT { Err(Stop::Malformed) } else { Ok(out) }
    }

    /// The stream has ended: what was held back is given out. An event that is cut short is dropped, as any reader
    /// of event streams does.
    pub(super) fn finish(&mut self) -> Result<Vec<u8>, Stop> {
        let mut out = Vec::new();
        if self.dialect != Dialect::Messages {
            self.openai_finish(&mut out)?;
        }
        for (index, _) in self.blocks.keys().copied().collect::<Vec<_>>() {
            self.close_block(index, &mut out)?;
        }
        Ok(out)
    }

    /// Whether the answer said what it cost as a whole. One that was cut had more output than was seen of it.
    pub(super) fn is_final(&self) -> bool {
        self.usage_final
    }

    /// What the answer cost, as far as it is known. Without a final count, output is estimated from what was seen.
    pub(super) fn spent(&self) -> Option<Spent> {
        let seen = self.text_bytes.saturating_add(self.lanes.bytes);
        let output = self.spent.output.max(if self.usage_seen { seen / 5 } else { 0 });
        self.usage_seen.then_some(Spent { output, ..self.spent })
    }

    fn event(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Result<(), Stop> {
        let Framed { name, data } = framed(raw)?;
        if data.is_empty() {
            // A comment keeps a connection alive, and is no event.
            out.extend_from_slice(b":\n\n");
            return Ok(());
        }
        if let Dialect::OpenAi { chat, hide_usage } = self.dialect {
            return match data == b"[DONE]" {
                true => self.openai_done(raw, out),
                false => {
                    let (event, mended) = read(&data)?;
                    self.openai_event(raw, event, mended, chat, hide_usage, out)
                }
            };
        }
        let (mut event, mended) = read(&data)?;
        // A client may go by either.
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        if !name.is_empty() && name != kind.as_bytes() {
            return Err(Stop::Malformed);
        }
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match event.get("type").and_then(Value::as_str) {
            Some("message_start") => {
                self.count(event.get("message").and_then(|m| m.get("usage")));
                let content = event.pointer_mut("/message/content").and_then(Value::as_array_mut);
                let mut changed = mended;
                for block in content.into_iter().flatten() {
                    let before = block.clone();
                    self.whole_block(block)?;
                    changed |= *block != before;
                }
                if changed {
                    write_event(out, "message_start", &event);
                    return Ok(());
                }
            }
            Some("message_delta") => {
                self.usage_final |= event.get("usage").is_some_and(Value::is_object);
                self.count(event.get("usage"));
            }
            Some("content_block_start") => {
                if let Some(block) = event.get_mut("content_block") {
                    let before = block.clone();
                    self.first_of_block(index, block)?;
                    if *block != before || mended {
                        write_event(out, "content_block_start", &event);
                        return Ok(());
                    }
                }
            }
            Some("content_block_delta") => return self.delta(raw, event, index, mended, out),
            Some("content_block_stop") => {
                self.close_block(index, out)?;
                if self.closed.len() >= MAX_CLOSED {
                    return Err(Stop::Malformed);
                }
                self.closed.insert(index);
            }
            _ => {}
        }
        if mended {
            write_data(out, &event)
        } else {
            out.extend_from_slice(raw)
        }
        Ok(())
    }

    /// The text that a block starts with goes on in its deltas.
    fn first_of_block(&mut self, index: u64, block: &mut Value) -> Result<(), Stop> {
        let field = match block.get("type").and_then(Value::as_str) {
            Some("text") => Field::Text,
            Some("thinking") => Field::Thinking,
            _ => return self.whole_block(block),
        };
        let Some(Value::String(text)) = block.get_mut(field.names().1) else { return Ok(()) };
        let clean = self.pass(index, field, text)?;
        if field != Field::Thinking {
            *text = clean;
        }
        Ok(())
    }

    /// Puts the next text of a block through its window.
    fn pass(&mut self, index: u64, field: Field, text: &str) -> Result<String, Stop> {
        self.text_bytes = self.text_bytes.saturating_add(text.len() as u64);
        let key = (index, field);
        // A client may go on with a text that has ended: its two halves would pass by themselves.
        if self.closed.contains(&index) {
            return Err(Stop::Malformed);
        }
        if self.blocks.len() >= MAX_BLOCKS && !self.blocks.contains_key(&key) {
            return Err(Stop::Malformed);
        }
        let (hosts, secrets, redact) = (self.hosts, self.secrets, self.action == Action::Redact);
        let block = self.blocks.entry(key).or_insert_with(|| Block::new(secrets, field));
        let clean = block.push(text, hosts, redact);
        self.tally(key)?;
        // What is only marked passes as it came, at once. What would stop the answer is held back like the rest.
        Ok(if self.action == Action::Mark { text.to_owned() } else { clean })
    }

    fn delta(
        &mut self,
        raw: &[u8],
        mut event: Value,
        index: u64,
        mended: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let field = Field::of_delta(event.pointer("/delta/type").and_then(Value::as_str));
        let Some(field) = field else {
            if mended {
                write_data(out, &event)
            } else {
                out.extend_from_slice(raw)
            }
            return Ok(());
        };
        let name = field.names().1;
        let Some(text) = event.pointer("/delta").and_then(|d| d.get(name)).and_then(Value::as_str) else {
            return Err(Stop::Malformed);
        };
        let clean = self.pass(index, field, text)?;
        let changed = (clean != text && field != Field::Thinking) || mended;
        if !changed {
            out.extend_from_slice(raw);
        } else if !clean.is_empty() || mended {
            if field != Field::Thinking
                && let Some(slot) = event.get_mut("delta").and_then(|d| d.get_mut(name))
            {
                *slot = Value::String(clean);
            }
            write_event(out, "content_block_delta", &event);
        }
        Ok(())
    }

    fn close_block(&mut self, index: u64, out: &mut Vec<u8>) -> Result<(), Stop> {
        let (hosts, redact) = (self.hosts, self.action == Action::Redact);
        for field in [Field::Text, Field::Json, Field::Thinking] {
            let Some(block) = self.blocks.get_mut(&(index, field)) else { continue };
            let rest = block.finish(hosts, redact);
            let (kind, name) = field.names();
            let verdict = self.tally((index, field));
            self.blocks.remove(&(index, field));
            verdict?;
            if self.action != Action::Mark && !rest.is_empty() && field != Field::Thinking {
                let delta = json!({"type": kind, name: rest});
                let event = json!({"type": "content_block_delta", "index": index, "delta": delta});
                write_event(out, "content_block_delta", &event);
            }
        }
        Ok(())
    }

    /// Moves what a block found into the answer's tally.
    fn tally(&mut self, key: (u64, Field)) -> Result<(), Stop> {
        let Some(block) = self.blocks.get_mut(&key) else { return Ok(()) };
        let secrets = std::mem::take(&mut block.secrets.found);
        let markup = std::mem::take(&mut block.markup.found);
        self.note(secrets, markup)
    }

    pub(super) fn note(&mut self, secrets: u64, markup: u64) -> Result<(), Stop> {
        for (kind, n) in [("secret", secrets), ("autofetch", markup)] {
            if n > 0 {
                *self.found.entry(kind).or_default() += n;
            }
        }
        if self.action == Action::Stop && secrets + markup > 0 { Err(Stop::Found) } else { Ok(()) }
    }

    /// Inspects an answer that came as one document, and returns it as it may pass.
    pub(super) fn document(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Stop> {
        if self.dialect != Dialect::Messages {
            return self.openai_document(bytes);
        }
        let mut message: Value = serde_json::from_slice(bytes).map_err(|_| Stop::Malformed)?;
        self.count(message.get("usage"));
        self.usage_final = true;
        let Some(blocks) = message.get_mut("content").and_then(Value::as_array_mut) else {
            return Ok(bytes.to_vec());
        };
        let before = blocks.clone();
        for block in blocks.iter_mut() {
            self.whole_block(block)?;
        }
        if *blocks == before {
            return Ok(bytes.to_vec());
        }
        serde_json::to_vec(&message).map_err(|_| Stop::Malformed)
    }

    /// A block that is there at once.
    fn whole_block(&mut self, block: &mut Value) -> Result<(), Stop> {
        let field = match block.get("type").and_then(Value::as_str) {
            Some("text") => Field::Text,
            Some("thinking") => Field::Thinking,
            _ => Field::Json,
        };
        let name = match field {
            Field::Json => "input",
            other => other.names().1,
        };
        let Some(slot) = block.get_mut(name) else { return Ok(()) };
        let text = match (&*slot, field) {
            (Value::String(text), _) => text.clone(),
            (value, Field::Json) => value.to_string(),
            _ => return Ok(()),
        };
        if text.is_empty() || text == "{}" {
            return Ok(());
        }
        let redact = self.action == Action::Redact;
        let mut state = Block::new(self.secrets, field);
        let mut clean = state.push(&text, self.hosts, redact);
        clean.push_str(&state.finish(self.hosts, redact));
        self.note(state.secrets.found, state.markup.found)?;
        if self.action != Action::Mark && clean != text && field != Field::Thinking {
            *slot = match field {
                Field::Json => serde_json::from_str(&clean).map_err(|_| Stop::Malformed)?,
                _ => Value::String(clean),
            };
        }
        Ok(())
    }

    /// What an answer says that it cost, where it says so once.
    pub(super) fn spend(&mut self, input: u64, cache_read: u64, output: u64) {
        (self.usage_seen, self.usage_final) = (true, true);
        let spent = &mut self.spent;
        (spent.input, spent.cache_read) = (spent.input.max(input), spent.cache_read.max(cache_read));
        spent.output = spent.output.max(output);
    }

    /// Counts are cumulative: the last one holds.
    fn count(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage.filter(|u| u.is_object()) else { return };
        self.usage_seen = true;
        let read = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
        let mut keep = |slot: fn(&mut Spent) -> &mut u64, value: Option<u64>| {
            if let Some(value) = value {
                let slot = slot(&mut self.spent);
                *slot = value.max(*slot);
            }
        };
        keep(|s| &mut s.input, read("/input_tokens"));
        keep(|s| &mut s.output, read("/output_tokens"));
        keep(|s| &mut s.cache_read, read("/cache_read_input_tokens"));
        let hour = read("/cache_creation/ephemeral_1h_input_tokens");
        let written = read("/cache_creation_input_tokens");
        // What the API did on the way, such as compacting, is counted apart.
        let steps = usage.get("iterations").and_then(Value::as_array).into_iter().flatten();
        let sum = |name: &str| -> Option<u64> {
            let each = steps.clone().filter_map(|step| step.get(name).and_then(Value::as_u64));
            Some(each.fold(0, u64::saturating_add))
        };
        keep(|s| &mut s.input, sum("input_tokens"));
        keep(|s| &mut s.output, sum("output_tokens"));
        keep(|s| &mut s.cache_write_1h, hour);
        keep(|s| &mut s.cache_write_5m, written.map(|all| all.saturating_sub(hour.unwrap_or(0))));
    }
}

impl Block<'_> {
    pub(super) fn push(&mut self, text: &str, hosts: &[HostRule], redact: bool) -> String {
        let passed = self.secrets.push(text.as_bytes());
        self.after_secrets(passed, text.len(), hosts, redact)
    }

    pub(super) fn finish(&mut self, hosts: &[HostRule], redact: bool) -> String {
        let passed = self.secrets.finish();
        let mut out = self.after_secrets(passed, 0, hosts, redact);
        if self.field == Field::Text {
            out.push_str(&self.markup.finish(hosts, redact));
        }
        out
    }

    fn after_secrets(&mut self, passed: Vec<u8>, _: usize, hosts: &[HostRule], redact: bool) -> String {
        // Secrets are ASCII, so what is between them is whole characters.
        let text =
            String::from_utf8(passed).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        if self.field == Field::Text { self.markup.push(&text, hosts, redact) } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CANARY: &str = "CANARY-7f3a9c1e5b";

    fn delta(index: u64, text: &str) -> String {
        let event = json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}});
        format!("event: content_block_delta\ndata: {event}\n\n")
    }

    fn stream(texts: &[&str]) -> String {
        let start = json!({"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1,
            "cache_creation_input_tokens": 30, "cache_creation": {"ephemeral_1h_input_tokens": 10}}}});
        let end = json!({"type": "message_delta", "usage": {"output_tokens": 42}});
        let middle: String = texts.iter().map(|t| delta(0, t)).collect();
        format!(
            "event: message_start\ndata: {start}\n\n{middle}event: content_block_stop\ndata: \
             {{\"type\":\"content_block_stop\",\"index\":0}}\n\nevent: message_delta\ndata: {end}\n\n"
        )
    }

    fn text_of(events: &[u8]) -> String {
        let text = String::from_utf8(events.to_vec()).unwrap();
        let events = text.split("\n\n").filter_map(|e| e.split_once("data: ")).map(|(_, d)| d.to_owned());
        let values = events.map(|d| serde_json::from_str::<Value>(&d).unwrap());
        values.filter_map(|v| v.pointer("/delta/text").and_then(Value::as_str).map(str::to_owned)).collect()
    }

    /// What passed, what was found, and what it cost.
    type Ran = (Result<Vec<u8>, Stop>, BTreeMap<&'static str, u64>, Option<Spent>);

    fn run(action: Action, chunks: &[&[u8]]) -> Ran {
        let (hosts, secrets) = (Vec::new(), Scrubber::new([CANARY]));
        let mut inspector = Inspector::new(action, &hosts, &secrets);
        let mut out = Vec::new();
        for chunk in chunks {
            match inspector.push(chunk) {
                Ok(bytes) => out.extend(bytes),
                Err(stop) => return (Err(stop), inspector.found.clone(), inspector.spent()),
            }
        }
        let rest = inspector.finish();
        (rest.map(|rest| [out, rest].concat()), inspector.found.clone(), inspector.spent())
    }

    #[test]
    fn an_innocent_stream_passes_byte_for_byte_and_is_counted() {
        let text = stream(&["Hello ", "world, a < b."]);
        let (out, found, spent) = run(Action::Redact, &[text.as_bytes()]);
        assert_eq!((out.unwrap(), found.len()), (text.into_bytes(), 0));
        let spent = spent.unwrap();
        assert_eq!((spent.input, spent.output, spent.cache_write_5m, spent.cache_write_1h), (7, 42, 20, 10));
    }

    #[test]
    fn what_is_split_over_events_is_found() {
        let texts = ["so CANARY-7f3a", "9c1e5b and ![x", "](https://evil.", "test/a) end"];
        let (out, found, _) = run(Action::Redact, &[stream(&texts).as_bytes()]);
        let text = text_of(&out.unwrap());
        assert_eq!(text, "so [redacted by jess] and [image removed by jess] end");
        assert_eq!((found.get("secret"), found.get("autofetch")), (Some(&1), Some(&1)));
    }

    #[test]
    fn policy_decides_what_happens_to_it() {
        let text = stream(&[CANARY, " tail"]);
        let (out, found, _) = run(Action::Mark, &[text.as_bytes()]);
        assert_eq!((text_of(&out.unwrap()), found.get("secret")), (format!("{CANARY} tail"), Some(&1)));
        assert_eq!(run(Action::Stop, &[text.as_bytes()]).0, Err(Stop::Found));
    }

    #[test]
    fn nothing_of_what_stops_an_answer_has_passed_before() {
        let (hosts, secrets) = (Vec::new(), Scrubber::new([CANARY]));
        let passed = |action: Action| {
            let mut inspector = Inspector::new(action, &hosts, &secrets);
            text_of(&inspector.push(delta(0, "so CANARY-7f3a").as_bytes()).unwrap())
        };
        assert_eq!(passed(Action::Stop), "so ");
        assert_eq!(passed(Action::Mark), "so CANARY-7f3a", "the control");
    }

    #[test]
    fn a_block_that_has_ended_does_not_go_on() {
        let stop = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n";
        let first = delta(0, "![x](https://ev");
        let other = format!("{first}{stop}{}", delta(1, "il.test/a)"));
        assert!(run(Action::Redact, &[other.as_bytes()]).0.is_ok(), "the control");
        let again = format!("{first}{stop}{}", delta(0, "il.test/a)"));
        assert_eq!(run(Action::Redact, &[again.as_bytes()]).0, Err(Stop::Malformed));
    }

    #[test]
    fn a_document_is_inspected_like_a_stream() {
        let (hosts, secrets) = (Vec::new(), Scrubber::new([CANARY]));
        let mut inspector = Inspector::new(Action::Redact, &hosts, &secrets);
        let document = json!({"content": [
            {"type": "text", "text": format!("a {CANARY}")},
            {"type": "tool_use", "input": {"x": {"y": CANARY}}},
        ], "usage": {"input_tokens": 1, "output_tokens": 2}});
        let out = String::from_utf8(inspector.document(document.to_string().as_bytes()).unwrap()).unwrap();
        assert!(!out.contains(CANARY) && out.contains("[redacted by jess]"));
        assert_eq!(inspector.found.get("secret"), Some(&2));
    }

    #[test]
    fn an_endless_event_ends_the_stream() {
        let (hosts, secrets) = (Vec::new(), Scrubber::new([CANARY]));
        let mut inspector = Inspector::new(Action::Redact, &hosts, &secrets);
        let chunk = vec![b'x'; 1 << 20];
        let stopped = (0..10).find_map(|_| inspector.push(&chunk).err());
        assert_eq!(stopped, Some(Stop::Malformed));
    }

    proptest! {
        #[test]
        fn a_stream_is_the_same_however_it_is_cut(
            texts in proptest::collection::vec("[a-z !\\[\\(<]{0,20}", 0..8), cuts in proptest::collection::vec(0usize..2000, 0..20)
        ) {
            let refs: Vec<&str> = texts.iter().map(String::as_str).collect();
            let text = stream(&refs);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &text.as_bytes()[w[0]..w[1]]).collect();
            let out = run(Action::Redact, &chunks).0.unwrap();
            prop_assert_eq!(text_of(&out), texts.concat());
        }
    }
}
