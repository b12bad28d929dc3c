//! Measures the text functions: `measure_text FILE.jsonl [PART [KIND]]` with a file of ordinary texts (one object with a
//! `text` a line). Parts: `lines` (how many are taken for secrets; with a kind, which), `rates`, `openings`; without one,
//! all. Times are processor time of the thread, the best of several rounds.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use jess::untrusted::Untrusted;
use std::collections::BTreeMap;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: measure_text FILE.jsonl [lines|rates|openings [KIND]]")?;
    let part = args.next();
    let show = args.next();
    let wanted = |name: &str| part.as_deref().is_none_or(|part| part == name);
    let mut texts = Vec::new();
    for line in std::fs::read_to_string(path)?.lines() {
        let value: serde_json::Value = serde_json::from_str(line)?;
        if let Some(text) = value["text"].as_str() {
            texts.push(text.to_string());
        }
    }
    if wanted("lines") {
        lines(&texts, show.as_deref());
    }
    if wanted("rates") {
        rates(&texts.join("\n"), show.as_deref());
    }
    if wanted("openings") {
        openings(show.as_deref());
    }
    Ok(())
}

/// Processor time of this thread: what else the machine does does not count.
fn processor() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Seconds of the fastest of `rounds`.
fn fastest<T>(rounds: usize, mut run: impl FnMut() -> T) -> f64 {
    let round = |_| {
        let start = processor();
        std::hint::black_box(run());
        processor() - start
    };
    (0..rounds).map(round).fold(f64::MAX, f64::min)
}

fn lines(texts: &[String], show: Option<&str>) {
    let (mut lines, mut hit_lines, mut fetch, mut changed) = (0usize, 0usize, 0usize, 0usize);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut encoded, mut encoded_lines) = (BTreeMap::<String, usize>::new(), 0);
    for text in texts {
        lines += text.lines().count();
        let hits = jess::gate::secrets::find(text);
        let mut at: Vec<usize> = hits.iter().map(|h| text[..h.start].matches('\n').count()).collect();
        at.dedup();
        hit_lines += at.len();
        for hit in hits {
            *kinds.entry(hit.kind).or_default() += 1;
            if show == Some(hit.kind) {
                let from = text.floor_char_boundary(hit.start.saturating_sub(30));
                println!("  {:?}", &text[from..text.ceil_char_boundary((hit.end + 5).min(text.len()))]);
            }
        }
        fetch += usize::from(jess::envelope::redact_autofetch(text).1 > 0);
        changed += usize::from(jess::envelope::neutralise(text).as_ref() != text);
        let hits = jess::gate::encoded::find(text);
        encoded_lines += hits.len();
        for hit in hits {
            *encoded.entry(hit.label()).or_default() += 1;
            if show == Some(hit.encoding) {
                println!("  {:?}", &text[hit.start..hit.end.min(text.ceil_char_boundary(hit.start + 200))]);
            }
        }
    }
    let share = |n: usize| 100.0 * n as f64 / lines as f64;
    println!("{lines} lines, {hit_lines} with a secret ({:.4} %) {kinds:?}", share(hit_lines));
    println!("{encoded_lines} encoded ({:.4} %) {encoded:?}", share(encoded_lines));
    println!("{} documents, {fetch} with fetching markup, {changed} changed by neutralise", texts.len());
}

type Function = (&'static str, fn(&str) -> usize);

const FUNCTIONS: [Function; 4] = [
    ("redact_autofetch", |t| jess::envelope::redact_autofetch(t).0.len()),
    ("neutralise", |t| jess::envelope::neutralise(t).len()),
    ("secrets", |t| jess::gate::secrets::find(t).len()),
    ("secrets and encoded", |t| jess::gate::encoded::find(t).len()),
];

fn rates(documents: &str, only: Option<&str>) {
    let prose = "The quick brown fox jumps over the lazy dog; see chapter 4, page 12.\n".repeat(100_000);
    let code = include_str!("../src/gate/tree.rs").repeat(600);
    let known = jess::gate::encoded::Known::new(["Canary-93vQx7-Lm42-and-more-of-it"]);
    for (name, text) in [("documents", documents), ("prose", &prose), ("code", &code)] {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        for (function, run) in FUNCTIONS {
            let seconds = fastest(7, || run(text));
            println!("{name}, {function}: {:.0} MB/s", text.len() as f64 / 1e6 / seconds);
        }
        let document = Untrusted::new(text);
        for (function, known) in [("whole gate", None), ("whole gate, a known value", Some(&known))] {
            let policy = jess::envelope::Policy::default();
            let seconds = fastest(7, || jess::gate::check_document("x", &document, known, &policy).len());
            println!("{name}, {function}: {:.0} MB/s", text.len() as f64 / 1e6 / seconds);
        }
    }
    if only.is_some() {
        return;
    }
    let request = |n| {
        format!(
            "{{\"id\": {n}, \"method\": \"envelope.wrap_tool_result\", \"params\": {{\"content\": \"line {n} of a result with <b>text</b>\", \"tool\": \"Read\"}}}}"
        )
    };
    let requests: Vec<String> = (0..50_000).map(request).collect();
    let seconds =
        fastest(3, || requests.iter().map(|r| jess::rpc::answer(r.as_bytes()).len()).sum::<usize>());
    println!("rpc, in the process: {:.0} requests/s", requests.len() as f64 / seconds);
}

/// What is asked of these is 20 ms in the first two functions.
const ASKED: [&str; 6] = ["[", "![", "<style>", "style=", "<a ", "\"'"];

/// Spellings of their kind, and other openings.
const OTHERS: &[&str] = &[
    "<a b=\"'",
    "<p a='\"' b=\"'\" ",
    "<b a=\"",
    "<b a=\"'\" ",
    "'\"'",
    "\"'\"'",
    "<a href=",
    "<a href='",
    "<a href=\"",
    "<img src=",
    "<img src=\"",
    "<svg><style>",
    "<style",
    "<style ",
    "<style></style",
    "<<<<",
    "<div style=",
    "<div style='",
    "[](",
    "![](",
    "![a][",
    "![a][b]",
    "[]:",
    "[a]: ",
    "<",
    "](<",
    "](",
    "](a",
    "](\\",
    "](/",
    "[a](b ",
    "[a](b \"",
    "[[",
    "]]",
    "]",
    "![[",
    "[!",
    "data:,",
    "data:",
    "<b ",
    "<b",
    "</b ",
    "<b/",
    "<b =",
    "<b style='",
    "[a](b",
    "<svg ",
    "<a:",
    "<http:",
    "[^a]: ",
    "> ",
    "> <b ",
    "> [a](b\n",
    "- ",
    "`",
    "*a ",
    "<!--",
    "<!DOCTYPE ",
    "<?xml-stylesheet ",
    "@import ",
    "@import url(",
    "\\[",
    "\\<",
    "&lt;",
    "%3c",
    "\\u003c",
    "＜",
    "\u{200b}<",
    "<\u{200b}",
    "# ",
    "=\n",
    "a\n-\n",
    "Human:\n",
    "BEGIN_",
    "<|",
    "<|im_start|>",
    "[INST]",
    "<untrusted-",
    "\x1b]8;;",
    "sk-",
    "password=",
    "a://b:c@",
    "key-",
    "eyJ",
    "aa ",
    "a b ",
    "\\x41",
    "%41",
    "&#65;",
    "=41",
];

fn openings(only: Option<&str>) {
    for unit in ASKED.iter().chain(OTHERS).filter(|unit| only.is_none_or(|only| **unit == only)) {
        let text = unit.repeat((1 << 20) / unit.len());
        let times: Vec<String> = FUNCTIONS
            .iter()
            .map(|(name, run)| {
                let time = fastest(5, || run(&text)) * 1e3;
                format!("{name} {time:.1}{}", if time > 20.0 { " (!)" } else { "" })
            })
            .collect();
        println!("1 MB of {unit:?}, ms: {}", times.join(", "));
    }
}
