//! The report is what its schema says.

use crate::support::World;
use serde_json::Value;

fn schema() -> jsonschema::Validator {
    let text = include_str!("../../docs/report.schema.json");
    jsonschema::validator_for(&serde_json::from_str(text).expect("the schema is JSON"))
        .expect("a valid schema")
}

fn report(world: &World, options: &[&str], script: &str) -> Value {
    let file = world.path("report.json");
    let options = [&["--report", file.to_str().unwrap()], options].concat();
    let ran = world.jess(&options, script);
    serde_json::from_str(&world.read("report.json")).unwrap_or_else(|e| panic!("{e}: {ran:?}"))
}

#[test]
fn every_kind_of_run_gives_a_report_that_the_schema_allows() {
    let schema = schema();
    for (options, script) in [
        (&[][..], "true"),
        (&["--tier", "landlock"], "exit 3"),
        (&["--profile", "strict"], "true"),
        (&["--timeout", "0.5"], "sleep 5"),
        (&[], "kill -SEGV $$"),
        (&["--cwd", "/nowhere"], "true"),
        (&["--ro", "nowhere"], "true"),
        (&["--tier", "landlock", "--require", "full"], "true"),
        (&["--rw", ".", "--deny", "x"], "touch x"),
        (&["--max-processes", "none", "--max-output", "1K"], "head -c 2K /dev/zero"),
    ] {
        let report = report(&World::new(), options, script);
        let errors: Vec<String> =
            schema.iter_errors(&report).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{options:?} {script}: {errors:?}\n{report:#}");
    }
}

#[test]
fn the_schema_refuses_what_no_report_says() {
    let schema = schema();
    let world = World::new();
    let good = report(&world, &[], "true");
    assert!(schema.is_valid(&good), "control");
    for (field, value) in [
        ("tier", Value::from("strong")),
        ("schema", "jess.run/0".into()),
        ("exit", "0".into()),
        ("layers", Value::Null),
        ("unknown", 1.into()),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(!schema.is_valid(&bad), "{field}");
    }
}

#[test]
fn the_limits_of_the_run_are_in_the_report() {
    let world = World::new();
    let report = report(&world, &["--max-processes", "77", "--max-file", "none"], "true");
    assert_eq!((&report["limits"]["processes"], &report["limits"]["file_bytes"]), (&77.into(), &Value::Null));
    assert_eq!(report["limits"]["output_bytes"], 64 << 20);
}

/// Where there are no file rules the command can write to the report's file: what it left there is replaced, and another
/// file in its place is noticed.
#[test]
fn a_report_that_the_command_forged_is_replaced_or_noticed() {
    for options in [&["--profile", "network-only"][..], &["--observe", "/dev/null"]] {
        let world = World::new();
        let file = world.path("report.json");
        let path = file.to_str().unwrap().to_owned();
        let options = [options, &["--report", &path]].concat();
        let written = world.jess(&options, &format!("head -c 50000 /dev/zero > {path}"));
        assert_eq!(written.code, Some(0), "{written:?}");
        let report: serde_json::Value = serde_json::from_str(&world.read("report.json")).unwrap();
        assert_eq!(report["schema"], "jess.run/1");
        let swapped = world.jess(&options, &format!("rm {path}; echo '{{}}' > {path}"));
        assert!(swapped.code == Some(70) && swapped.stderr.contains("another file"), "{swapped:?}");
    }
}
