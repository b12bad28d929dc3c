//! The readers, without a file system: what the fuzz targets and the benches call. Not part of the interface.

use super::rules::{Sink, codeql, markdown, mcp, memory, plugin, settings};
use super::{frontmatter, json, yaml};
use crate::untrusted::Untrusted;

/// Label and value of each finding over `data` as every kind of JSON file.
pub fn json(data: &[u8]) -> Vec<String> {
    let mut sink = Sink::default();
    match json::parse(&Untrusted::new(data)) {
        Ok(value) => {
            let value = value.inspect();
            settings::check(&mut sink, value);
            mcp::check_file(&mut sink, value, true);
            plugin::check_manifest(&mut sink, value);
            plugin::check_marketplace(&mut sink, value);
        }
        Err(reason) => sink.unreadable(reason),
    }
    lines(sink)
}

/// The same over `data` as an agent and as a skill.
pub fn markdown(data: &[u8]) -> Vec<String> {
    let mut sink = Sink::default();
    let document = frontmatter::read(&Untrusted::new(data));
    markdown::check(&mut sink, markdown::Kind::Agent, &document);
    markdown::check(&mut sink, markdown::Kind::Skill, &document);
    lines(sink)
}

/// The same over `data` as a CodeQL pack and as its configuration.
pub fn codeql(data: &[u8]) -> Vec<String> {
    let mut sink = Sink::default();
    match yaml::parse(&Untrusted::new(String::from_utf8_lossy(data))) {
        Ok(value) => {
            codeql::check_pack(&mut sink, value.inspect());
            codeql::check_config(&mut sink, value.inspect());
        }
        Err(reason) => sink.unreadable(reason),
    }
    lines(sink)
}

/// How many imports `data` has as an instruction file, and how many lead out.
pub fn imports(data: &[u8]) -> (usize, usize) {
    let found = memory::imports(&Untrusted::new(frontmatter::decode(data)));
    let out = found.iter().filter(|p| memory::resolve("a/b", p.inspect()) == memory::Import::Outside).count();
    (found.len(), out)
}

fn lines(sink: Sink) -> Vec<String> {
    sink.into_findings().into_iter().map(|f| format!("{} {}", f.label, f.value)).collect()
}
