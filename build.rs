//! Turns `patterns/*.toml` into a static table, so that starting the scanner parses no TOML. Examples stay out of it;
//! tests and `jess explain` read them from the files themselves.
// What stops a build script is an error of the build, and its message is read by whoever builds.
#![allow(clippy::expect_used, clippy::panic)]

use std::{env, fmt::Write as _, fs, path::Path};

#[derive(serde::Deserialize)]
struct File {
    category: String,
    #[serde(default)]
    remediation: String,
    #[serde(default)]
    references: Vec<String>,
    #[serde(default)]
    classes: toml::Table,
    #[serde(default)]
    rule: Vec<Rule>,
}

#[derive(serde::Deserialize)]
struct Rule {
    id: String,
    name: String,
    severity: String,
    message: String,
    #[serde(default)]
    remediation: String,
    #[serde(default)]
    references: Vec<String>,
    #[serde(default)]
    shapes: Vec<String>,
    #[serde(default)]
    unless: Vec<String>,
    #[serde(default)]
    triggers: Vec<String>,
    #[serde(default)]
    needs: Vec<String>,
    regex: Option<String>,
    #[serde(default)]
    raw: bool,
}

fn main() {
    println!("cargo::rerun-if-changed=patterns");
    println!("cargo::rerun-if-changed=build.rs");
    let mut paths: Vec<_> = fs::read_dir("patterns")
        .expect("patterns/ is part of the source")
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|x| x == "toml"))
        .collect();
    paths.sort();
    let mut rules = String::new();
    let mut classes = String::new();
    let mut files = String::new();
    for path in &paths {
        let text = fs::read_to_string(path).expect("a readable pattern file");
        let file: File = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for (name, value) in &file.classes {
            let value =
                value.as_str().unwrap_or_else(|| panic!("{}: class {name}: not a string", path.display()));
            writeln!(classes, "    ({name:?}, {value:?}),").expect("a string takes any text");
        }
        for r in &file.rule {
            let remediation = if r.remediation.is_empty() { &file.remediation } else { &r.remediation };
            let references = if r.references.is_empty() { &file.references } else { &r.references };
            writeln!(
                rules,
                "    RuleDef {{ id: {:?}, name: {:?}, category: {:?}, severity: Severity::{}, message: {:?}, remediation: \
                 {:?}, references: &{:?}, shapes: &{:?}, unless: &{:?}, triggers: &{:?}, needs: &{:?}, regex: {:?}, raw: {} }},",
                r.id, r.name, file.category, variant(&r.severity), r.message, remediation, references, r.shapes,
                r.unless, r.triggers, r.needs, r.regex, r.raw
            )
            .expect("a string takes any text");
        }
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let full = fs::canonicalize(path).expect("the file was read");
        writeln!(files, "    ({name:?}, include_str!({:?})),", full.display().to_string()).expect("as above");
    }
    let out = format!(
        "pub(crate) static RULES: &[RuleDef] = &[\n{rules}];\npub(crate) static CLASSES: &[(&str, &str)] = \
         &[\n{classes}];\npub(crate) static FILES: &[(&str, &str)] = &[\n{files}];\n"
    );
    let dir = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&dir).join("patterns.rs"), out).expect("OUT_DIR is writable");
}

fn variant(severity: &str) -> &'static str {
    match severity {
        "critical" => "Critical",
        "high" => "High",
        "medium" => "Medium",
        "low" => "Low",
        other => panic!("unknown severity {other:?}"),
    }
}
