//! A report as SARIF 2.1.0, for code scanning.

use super::report::{Class, Report};
use serde_sarif::sarif::{
    ArtifactLocation, Location, Message, MultiformatMessageString, PhysicalLocation, ReportingDescriptor,
    Result as SarifResult, ResultLevel, Run, Sarif, Tool, ToolComponent,
};
use std::collections::BTreeSet;

/// The document, pretty-printed.
///
/// # Errors
/// A serialisation fault, which would be a defect.
pub fn render(report: &Report) -> Result<String, serde_json::Error> {
    let mut classes: BTreeSet<Class> = BTreeSet::new();
    let mut results = Vec::new();
    for (path, findings) in report.files() {
        for finding in findings {
            classes.insert(finding.class);
            let artifact = ArtifactLocation::builder().uri(uri(path)).build();
            let place = PhysicalLocation::builder().artifact_location(artifact).build();
            let level = if finding.blocking { ResultLevel::Error } else { ResultLevel::Note };
            let text = format!("{}: {}. {}", finding.label, finding.value, finding.class.explain());
            results.push(
                SarifResult::builder()
                    .rule_id(finding.class.id().to_owned())
                    .level(level)
                    .message(Message::builder().text(text).build())
                    .locations(vec![Location::builder().physical_location(place).build()])
                    .build(),
            );
        }
    }
    let rules: Vec<ReportingDescriptor> = classes.iter().map(|class| descriptor(*class)).collect();
    let driver = ToolComponent::builder()
        .name("jess")
        .version(env!("CARGO_PKG_VERSION").to_owned())
        .rules(rules)
        .build();
    let run = Run::builder().tool(Tool::builder().driver(driver).build()).results(results).build();
    let sarif = Sarif::builder()
        .version(serde_sarif::sarif::Version::V2_1_0.to_string())
        .schema(serde_sarif::sarif::SCHEMA_URL.to_owned())
        .runs(vec![run])
        .build();
    serde_json::to_string_pretty(&sarif)
}

fn descriptor(class: Class) -> ReportingDescriptor {
    let text = MultiformatMessageString::builder().text(class.explain().to_owned()).build();
    ReportingDescriptor::builder().id(class.id()).short_description(text).build()
}

/// A path as a relative URI: what is neither unreserved nor `/` is percent-encoded.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
