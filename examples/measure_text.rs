//! Measures the text functions: `measure_text FILE.jsonl` (one object with a `text` a line) prints how many lines are
//! taken for secrets, and how long the openings that cost most take.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

/// Processor time of this thread: what else the machine does does not count.
struct Instant(std::time::Duration);

impl Instant {
    fn now() -> Instant {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Instant(std::time::Duration::new(now.tv_sec as u64, now.tv_nsec as u32))
    }

    fn elapsed(&self) -> std::time::Duration {
        Instant::now().0 - self.0
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: measure_text FILE.jsonl")?;
    let show = std::env::args().nth(2);
    let mut texts = Vec::new();
    for line in std::fs::read_to_string(path)?.lines() {
        let value: serde_json::Value = serde_json::from_str(line)?;
        if let Some(text) = value["text"].as_str() {
            texts.push(text.to_string());
        }
    }
    let (mut lines, mut hit_lines, mut fetch, mut changed) = (0usize, 0usize, 0usize, 0usize);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for text in &texts {
        lines += text.lines().count();
        let hits = jess::gate::secrets::find(text);
        let mut at: Vec<usize> = hits.iter().map(|h| text[..h.start].matches('\n').count()).collect();
        at.dedup();
        hit_lines += at.len();
        for hit in hits {
            *kinds.entry(hit.kind).or_default() += 1;
            if show.as_deref() == Some(hit.kind) {
                let from = text.floor_char_boundary(hit.start.saturating_sub(30));
                println!("  {:?}", &text[from..text.ceil_char_boundary((hit.end + 5).min(text.len()))]);
            }
        }
        fetch += usize::from(jess::envelope::redact_autofetch(text).1 > 0);
        changed += usize::from(jess::envelope::neutralise(text).as_ref() != text);
    }
    println!("{lines} lines, {hit_lines} with a secret ({:.4} %)", 100.0 * hit_lines as f64 / lines as f64);
    println!("{kinds:?}");
    println!("{} documents, {fetch} with fetching markup, {changed} changed by neutralise", texts.len());
    let all = texts.join("\n");
    for (name, run) in [
        ("redact_autofetch", (|t| jess::envelope::redact_autofetch(t).0.len()) as fn(&str) -> usize),
        ("neutralise", |t| jess::envelope::neutralise(t).len()),
        ("secrets", |t| jess::gate::secrets::find(t).len()),
    ] {
        let start = Instant::now();
        run(&all);
        println!("{name}: {:.0} MB/s", all.len() as f64 / 1e6 / start.elapsed().as_secs_f64());
    }
    let known = jess::gate::encoded::Known::new(["Canary-93vQx7-Lm42-and-more-of-it"]);
    let document = jess::untrusted::Untrusted::new(all.clone());
    let start = Instant::now();
    let findings =
        jess::gate::check_document("x", &document, Some(&known), &jess::envelope::Policy::default());
    println!(
        "whole gate: {:.0} MB/s ({} findings)",
        all.len() as f64 / 1e6 / start.elapsed().as_secs_f64(),
        findings.len()
    );
    let (mut encoded, mut encoded_lines) = (BTreeMap::<String, usize>::new(), 0);
    for text in &texts {
        let hits = jess::gate::encoded::find(text);
        encoded_lines += hits.len();
        for hit in hits {
            *encoded.entry(hit.label()).or_default() += 1;
            if show.as_deref() == Some(hit.encoding) {
                println!("  {:?}", &text[hit.start..hit.end.min(text.ceil_char_boundary(hit.start + 200))]);
            }
        }
    }
    println!(
        "encoded: {encoded_lines} hits ({:.4} % of lines) {encoded:?}",
        100.0 * encoded_lines as f64 / lines as f64
    );
    let requests: Vec<String> = (0..50_000)
        .map(|n| format!("{{\"id\": {n}, \"method\": \"envelope.wrap_tool_result\", \"params\": {{\"content\": \"line {n} of a result with <b>text</b>\", \"tool\": \"Read\"}}}}"))
        .collect();
    let start = Instant::now();
    for request in &requests {
        std::hint::black_box(jess::rpc::answer(request.as_bytes()));
    }
    println!("rpc: {:.0} requests/s", requests.len() as f64 / start.elapsed().as_secs_f64());
    let plain = "The quick brown fox jumps over the lazy dog; see chapter 4, page 12.\n".repeat(200_000);
    let code = include_str!("../src/gate/tree.rs").repeat(800);
    for (name, text) in [("prose", &plain), ("code", &code)] {
        for (function, run) in [
            ("redact_autofetch", (|t| jess::envelope::redact_autofetch(t).0.len()) as fn(&str) -> usize),
            ("neutralise", |t| jess::envelope::neutralise(t).len()),
            ("secrets", |t| jess::gate::secrets::find(t).len()),
            ("encoded", |t| jess::gate::encoded::find(t).len()),
            ("whole gate", |t| {
                jess::gate::check_text("x", &jess::untrusted::Untrusted::new(t.to_string())).len()
            }),
        ] {
            let start = Instant::now();
            std::hint::black_box(run(text));
            println!(
                "{name}, {function}: {:.0} MB/s",
                text.len() as f64 / 1e6 / start.elapsed().as_secs_f64()
            );
        }
    }
    for unit in [
        "[",
        "![",
        "<style>",
        "style=",
        "<a ",
        "\"'",
        "<a b=\"'",
        "<p a='\"' b=\"'\" ",
        "<b a=\"",
        "[](",
        "![a][",
        "[]:",
        "<",
        "](<",
        "](",
        "data:,",
        "<b ",
        "<b style='",
        "[a](b",
        "<svg ",
        "[^a]: ",
        "> ",
        "- ",
        "`",
        "*a ",
        "<!--",
        "\\[",
        "&lt;",
        "# ",
        "BEGIN_",
        "<|",
        "sk-",
        "password=",
        "a://b:c@",
        "key-",
    ] {
        let text = unit.repeat((1 << 20) / unit.len());
        let mut times = [0.0f64; 4];
        for (time, run) in times.iter_mut().zip([
            (|t| jess::envelope::redact_autofetch(t).0.len()) as fn(&str) -> usize,
            |t| jess::envelope::neutralise(t).len(),
            |t| jess::gate::secrets::find(t).len(),
            |t| jess::gate::encoded::find(t).len(),
        ]) {
            *time = f64::MAX;
            for _ in 0..3 {
                let start = Instant::now();
                std::hint::black_box(run(&text));
                *time = time.min(start.elapsed().as_secs_f64() * 1e3);
            }
        }
        println!(
            "1 MB of {unit:?}: autofetch {:.1} ms, neutralise {:.1} ms, secrets {:.1} ms, encoded {:.1} ms",
            times[0], times[1], times[2], times[3]
        );
    }
    Ok(())
}
