//! Runs every example and near miss of the built-in pattern files.

use super::{Engine, PatternFile, builtin_files};
use std::collections::BTreeSet;

fn files() -> Vec<PatternFile> {
    let parse = |(name, text): &(&str, &str)| {
        let mut file: PatternFile = toml::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
        file.fill();
        file
    };
    builtin_files().iter().map(parse).collect()
}

#[test]
fn every_example_matches_its_rule_and_no_near_miss_does() {
    let engine = Engine::builtin();
    let mut wrong = Vec::new();
    for file in files() {
        for rule in &file.rules {
            for text in &rule.examples {
                if !engine.scan(text).iter().any(|f| f.rule == rule.id && f.confidence >= 0.5) {
                    wrong.push(format!("{} misses {text:?}", rule.id));
                }
            }
            for text in &rule.near_misses {
                if engine.scan(text).iter().any(|f| f.rule == rule.id && f.confidence >= 0.5) {
                    wrong.push(format!("{} flags {text:?}", rule.id));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_rule_is_complete_and_has_an_id_of_its_own() {
    let mut ids = BTreeSet::new();
    for file in files() {
        for r in file.rules {
            assert!(ids.insert(r.id.clone()), "{} twice", r.id);
            // What the model finds is measured, not listed.
            let enough = r.examples.len() >= 3 && r.near_misses.len() >= 3;
            assert!(enough || r.id.starts_with("LM"), "{} needs three examples of each kind", r.id);
            assert!(
                !r.message.is_empty() && !r.remediation.is_empty() && !r.references.is_empty(),
                "{}",
                r.id
            );
        }
    }
    assert_eq!(ids.len(), Engine::builtin().rules.len(), "a rule did not compile");
}

#[test]
fn every_regular_expression_compiles() {
    for r in &Engine::builtin().rules {
        if let Some(p) = &r.regex {
            assert!(p.check().is_ok(), "{}: {:?}", r.id, p.check());
        }
    }
}
