//! Measures the text functions: `measure_text FILE.jsonl` (one object with a `text` a line) prints how many lines are
//! taken for secrets, and how long the openings that cost most take.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::time::Instant;

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
    let plain = "The quick brown fox jumps over the lazy dog; see chapter 4, page 12.\n".repeat(200_000);
    let start = Instant::now();
    jess::envelope::redact_autofetch(&plain);
    println!("plain prose: {:.0} MB/s", plain.len() as f64 / 1e6 / start.elapsed().as_secs_f64());
    for unit in [
        "[",
        "![",
        "<style>",
        "style=",
        "<a ",
        "\"'",
        "<b a=\"",
        "[](",
        "![a][",
        "[]:",
        "<",
        "](<",
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
        let mut times = [0.0f64; 3];
        for (time, run) in times.iter_mut().zip([
            (|t| jess::envelope::redact_autofetch(t).0.len()) as fn(&str) -> usize,
            |t| jess::envelope::neutralise(t).len(),
            |t| jess::gate::secrets::find(t).len(),
        ]) {
            let start = Instant::now();
            std::hint::black_box(run(&text));
            *time = start.elapsed().as_secs_f64() * 1e3;
        }
        println!(
            "1 MB of {unit:?}: autofetch {:.1} ms, neutralise {:.1} ms, secrets {:.1} ms",
            times[0], times[1], times[2]
        );
    }
    Ok(())
}
