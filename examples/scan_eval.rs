//! Detection and false positives by kind: `cargo run --release --example scan_eval -- ATTACKS BENIGN`, for any data in
//! the evaluation format (JSONL, plain or gzipped). Counts findings of severity high or above, confidence 0.5 or above.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use jess::scan::eval::{Item, core_benign, read_items};
use jess::scan::report::{Policy, check};
use jess::scan::{Engine, Severity};
use std::collections::BTreeMap;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [attacks, benign, rest @ ..] = args.as_slice() else {
        eprintln!("usage: scan_eval ATTACKS BENIGN [--list]");
        std::process::exit(64);
    };
    let list = rest.iter().any(|a| a == "--list");
    let items: Vec<Item> = read_items(attacks, true).into_iter().chain(read_items(benign, false)).collect();
    let mut kinds: BTreeMap<(bool, &str), (usize, usize)> = BTreeMap::new();
    let mut rules: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let (mut core, mut core_all, mut agent, mut agent_all) = (0, 0, 0, 0);
    for i in &items {
        let report = check(Engine::builtin(), "-", i.text.as_bytes(), Policy::default());
        let high = report.findings.iter().filter(|p| p.finding.severity >= Severity::High);
        let mut ids: Vec<String> = high.map(|p| p.finding.rule.to_string()).collect();
        ids.sort();
        ids.dedup();
        let hit = !ids.is_empty();
        let e = kinds.entry((i.attack, &i.kind)).or_default();
        e.0 += usize::from(hit);
        e.1 += 1;
        if i.attack && matches!(i.kind.as_str(), "indirect" | "encoded" | "tool-poisoning") {
            agent += usize::from(hit);
            agent_all += 1;
        }
        if !i.attack && core_benign(&i.kind) {
            core += usize::from(hit);
            core_all += 1;
        }
        if list && hit != i.attack {
            println!("{} {} {} {}", if i.attack { "missed" } else { "false" }, i.kind, i.id, ids.join(" "));
        }
        for id in ids {
            let e = rules.entry(id).or_default();
            if i.attack { e.0 += 1 } else { e.1 += usize::from(core_benign(&i.kind)) }
        }
    }
    let percent = |a: usize, b: usize| 100.0 * a as f64 / b.max(1) as f64;
    for ((attack, kind), (a, b)) in &kinds {
        println!(
            "{} {kind:22} {a:5} of {b:5}  {:5.1} %",
            if *attack { "attack" } else { "benign" },
            percent(*a, *b)
        );
    }
    println!(
        "agent content {:.1} % at {:.2} % of core benign",
        percent(agent, agent_all),
        percent(core, core_all)
    );
    for (id, (a, b)) in rules {
        println!("rule {id}: {a} attacks, {b} core benign");
    }
}
