//! Turns `patterns/*.toml` into static tables, so that starting the scanner neither parses TOML nor builds an index: the
//! compiler of shapes runs here. Examples stay out of it; tests and `jess explain` read them from the files themselves.
//! Then sees to it that the programs are linked statically where that can be done.
// What stops a build script is an error of the build, and its message is read by whoever builds.
#![allow(clippy::expect_used, clippy::panic)]

use std::{collections::HashMap, env, fmt::Write as _, fs, path::Path};

#[path = "build/static_link.rs"]
mod static_link;

#[path = "src/bits.rs"]
#[allow(dead_code)]
mod bits;
#[path = "src/scan/classes.rs"]
mod classes;
#[path = "src/scan/fold.rs"]
#[allow(dead_code)]
mod fold;
#[path = "src/scan/letters.rs"]
#[allow(dead_code)]
mod letters;
#[path = "src/scan/lexicon.rs"]
#[allow(dead_code)]
mod lexicon;
#[path = "src/scan/shape.rs"]
mod shape;
#[path = "src/scan/token.rs"]
#[allow(dead_code)]
mod token;

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
    near: Option<[usize; 2]>,
}

fn main() {
    static_link::link();
    println!("cargo::rerun-if-changed=patterns");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/bits.rs");
    for module in ["classes", "fold", "letters", "lexicon", "shape", "token"] {
        println!("cargo::rerun-if-changed=src/scan/{module}.rs");
    }
    let mut paths: Vec<_> = fs::read_dir("patterns")
        .expect("patterns/ is part of the source")
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|x| x == "toml"))
        .collect();
    paths.sort();
    let mut rules = String::new();
    let mut classes = HashMap::new();
    let mut compiler = shape::Compiler::default();
    let mut count = 0u16;
    let mut files = String::new();
    for path in &paths {
        let text = fs::read_to_string(path).expect("a readable pattern file");
        let file: File = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for (name, value) in &file.classes {
            let value =
                value.as_str().unwrap_or_else(|| panic!("{}: class {name}: not a string", path.display()));
            classes.insert(name.clone(), value.to_string());
        }
        for r in &file.rule {
            let remediation = if r.remediation.is_empty() { &file.remediation } else { &r.remediation };
            let references = if r.references.is_empty() { &file.references } else { &r.references };
            writeln!(
                rules,
                "    RuleDef {{ id: {:?}, name: {:?}, category: {:?}, severity: Severity::{}, message: {:?}, remediation: \
                 {:?}, references: &{:?}, needs: &{:?}, regex: {:?}, raw: {}, near: {:?} }},",
                r.id, r.name, file.category, variant(&r.severity), r.message, remediation, references, r.needs, r.regex, r.raw, r.near
            )
            .expect("a string takes any text");
            let wrong = |e| panic!("{}: rule {}: {e}", path.display(), r.id);
            for (shapes, unless) in [(&r.shapes, false), (&r.unless, true)] {
                for s in shapes {
                    compiler.add(count, s, unless, &classes).unwrap_or_else(wrong);
                }
            }
            for t in &r.triggers {
                compiler.trigger(t, count).unwrap_or_else(wrong);
            }
            count += 1;
        }
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let full = fs::canonicalize(path).expect("the file was read");
        writeln!(files, "    ({name:?}, include_str!({:?})),", full.display().to_string()).expect("as above");
    }
    let out = format!(
        "pub(crate) static RULES: &[RuleDef] = &[\n{rules}];\npub(crate) static FILES: &[(&str, &str)] = &[\n{files}];\n"
    );
    let dir = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&dir).join("patterns.rs"), out).expect("OUT_DIR is writable");
    let tables = tables(&compiler.finish(usize::from(count)));
    fs::write(Path::new(&dir).join("tables.rs"), tables).expect("OUT_DIR is writable");
}

/// The lexicon as Rust source: what `Debug` prints of its parts is their source, too.
fn tables(l: &lexicon::Lexicon) -> String {
    let lexicon::Lexicon {
        known,
        exact,
        stems,
        heads,
        stem_bits,
        gives,
        kinds,
        anchor_starts,
        anchors,
        trigger_starts,
        triggers,
        excuse_starts,
        excuses,
        shapes,
        elements,
        pool,
        phrases,
    } = l;
    let mut out = String::from("pub(crate) static LEXICON: Lexicon = Lexicon {\n");
    let mut field = |name: &str, value: &dyn std::fmt::Debug| {
        writeln!(out, "    {name}: Cow::Borrowed(&{value:?}),").expect("a string takes any text");
    };
    field("known", known);
    field("exact", exact);
    field("stems", stems);
    field("heads", heads);
    field("stem_bits", stem_bits);
    field("gives", gives);
    field("kinds", kinds);
    field("anchor_starts", anchor_starts);
    field("anchors", anchors);
    field("trigger_starts", trigger_starts);
    field("triggers", triggers);
    field("excuse_starts", excuse_starts);
    field("excuses", excuses);
    field("shapes", shapes);
    field("elements", elements);
    field("pool", pool);
    field("phrases", phrases);
    out + "};\n"
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
