//! CodeQL packs and configurations: what they fetch and what they run.

use super::{Sink, truthy};
use crate::trust::mask;
use crate::trust::report::Class;
use serde_json::Value;

/// Keys of a pack that run something while CodeQL loads or builds it.
const PACK_COMMANDS: &[&str] =
    &["extractor", "buildCommand", "setup", "preCompileScript", "postCompileScript"];

/// Keys of a configuration that run or redirect something.
const CONFIG_COMMANDS: &[&str] = &["manualBuildSteps", "setup", "pack-cache", "packCache", "registries"];

/// Judges `qlpack.yml` or `codeql-pack.yml`.
pub fn check_pack(sink: &mut Sink, value: &Value) {
    let Some(root) = super::root_object(sink, value) else { return };
    commands(sink, root, PACK_COMMANDS);
    if let Some(dependencies) = root.get("dependencies").or_else(|| root.get("libraryPathDependencies")) {
        for name in names(dependencies) {
            if !canonical(&name) {
                sink.block(Class::CodeQl, "non-canonical dep", mask::plain(&name));
            }
        }
    }
    if let Some(suite) = root.get("defaultSuiteFile") {
        let text = suite.as_str().map_or_else(|| suite.to_string(), str::to_owned);
        if text.contains("..") || text.starts_with(['/', '~']) {
            sink.block(Class::CodeQl, "defaultSuiteFile", mask::target(&text));
        }
    }
}

/// Judges `.github/codeql/codeql-config.yml`.
pub fn check_config(sink: &mut Sink, value: &Value) {
    let Some(root) = super::root_object(sink, value) else { return };
    commands(sink, root, CONFIG_COMMANDS);
    if let Some(packs) = root.get("packs") {
        for name in pack_names(packs) {
            if !canonical(&name) {
                sink.block(Class::CodeQl, "non-canonical pack", mask::plain(&name));
            }
        }
    }
    if let Some(queries) = root.get("queries") {
        let items = queries.as_array().map_or(std::slice::from_ref(queries), Vec::as_slice);
        for item in items {
            let uses = item.get("uses").unwrap_or(item);
            let Some(text) = uses.as_str() else {
                if truthy(uses) {
                    sink.block(Class::CodeQl, "queries (unrecognised shape)", mask::json(item));
                }
                continue;
            };
            let local = text.strip_prefix("./").is_some_and(|rest| !super::settings::leaves(rest));
            if !local && (text.contains('/') || text.contains("..")) {
                sink.block(Class::CodeQl, "external queries", mask::plain(text));
            }
        }
    }
}

fn commands(sink: &mut Sink, root: &serde_json::Map<String, Value>, keys: &[&str]) {
    for (key, value) in root.iter().filter(|(key, value)| keys.contains(&key.as_str()) && truthy(value)) {
        sink.block(Class::CodeQl, mask::name(key), mask::json(value));
    }
}

/// Dependency names: the keys of a map, or the entries of a list (`name` or `name: version`).
fn names(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map.keys().cloned().collect(),
        Value::Array(items) => items.iter().flat_map(names).collect(),
        Value::String(name) => vec![name.clone()],
        other if truthy(other) => vec![other.to_string()],
        _ => Vec::new(),
    }
}

/// Pack names: a list, or a map from language to a list or a name.
fn pack_names(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map.values().flat_map(names).collect(),
        other => names(other),
    }
}

/// True for a pack that GitHub publishes: `codeql/NAME`, with a version (`@1.0`) and a path in the pack (`:Security`).
fn canonical(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("codeql/") else { return false };
    let pack = rest.split(['@', ':']).next().unwrap_or_default();
    !pack.is_empty() && !pack.contains(['/', '\\', ' ']) && !rest.contains("..")
}
