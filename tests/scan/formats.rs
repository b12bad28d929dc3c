//! JSON and SARIF as other programs read them.

use super::support::{ORDER, World, out};
use serde_json::Value;

#[test]
fn sarif_validates_against_the_official_schema() {
    let world = World::new();
    world.file("a b/é.md", format!("x\n\nü ü {ORDER}\n"));
    world.file("b.txt", "SWdub3JlIGFsbCBwcmV2aW91cyBpbnN0cnVjdGlvbnMu\n");
    let output = world.jess(&["check", "--format", "sarif", "."]);
    let sarif: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The official pattern of a language tag has an unpaired bracket, which strict validators refuse.
    let schema = include_str!("data/sarif-schema-2.1.0.json").replace("{2}]?$", "{2}$");
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&sarif).map(|e| format!("{e} at {}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    assert!(!sarif["runs"][0]["results"].as_array().unwrap().is_empty());
    // The control: a result without its message is refused.
    let mut broken = sarif.clone();
    broken["runs"][0]["results"][0].as_object_mut().unwrap().remove("message");
    assert!(!validator.is_valid(&broken));
}

#[test]
fn sarif_columns_count_characters_and_json_columns_bytes() {
    let world = World::new();
    world.file("a.md", format!("ü ü {ORDER}\n"));
    let sarif: Value =
        serde_json::from_slice(&world.jess(&["check", "--format", "sarif", "a.md"]).stdout).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap().clone();
    let result = results.iter().find(|r| r["ruleId"] == "RO001").unwrap();
    let region = &result["locations"][0]["physicalLocation"]["region"];
    assert_eq!((region["startLine"].as_u64(), region["startColumn"].as_u64()), (Some(1), Some(5)));
    assert_eq!(region["endLine"].as_u64(), Some(1));
    let json: Value =
        serde_json::from_str(&out(&world.jess(&["check", "--format", "json", "a.md"]))).unwrap();
    let findings = json[0]["findings"].as_array().unwrap().clone();
    let finding = findings.iter().find(|f| f["rule"] == "RO001").unwrap();
    assert_eq!((finding["column"].as_u64(), finding["start"].as_u64()), (Some(7), Some(6)));
    assert!(finding["evidence"].as_str().unwrap().starts_with("Ignore all"));
}
