//! `jess gate`: a document before it leaves.

use super::document::{read, write};
use super::failed::Failed;
use crate::envelope::{self, Policy};
use crate::exit::Exit;
use crate::gate::{self, Finding, encoded::Known, patch, provenance, schema::Schema};
use crate::sanitise;
use crate::untrusted::Untrusted;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Check a document, a patch or a directory before it leaves: exits 2 when something must not.
#[derive(clap::Args)]
pub struct Args {
    /// Files or directories; `-` or nothing is stdin. A link to a file is followed, one to a directory refused.
    paths: Vec<PathBuf>,
    /// Write the cleaned document to stdout instead of a report.
    #[arg(long)]
    redact: bool,
    /// With --redact: fit the document for what a harness prints for its own operator: no terminal sequences, banners
    /// collapsed, 2000 characters.
    #[arg(long, requires = "redact")]
    harness: bool,
    /// With --harness: a phrase of the harness's own that the document must not be able to say; may be repeated.
    #[arg(long, requires = "harness", value_name = "PHRASE")]
    marker: Vec<String>,
    /// The documents are patches: look at what they touch.
    #[arg(long)]
    patch: bool,
    /// Path prefix that a patch may touch; may be repeated.
    #[arg(long, value_name = "PREFIX")]
    scope: Vec<String>,
    /// The documents are JSON artefacts: a missing, malformed or untrusted provenance stamp is a finding.
    #[arg(long)]
    provenance: bool,
    /// The documents are JSON artefacts that must fit this JSON Schema. References outside the file are refused.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// With --schema: a key that the schema does not name is a finding, at any depth.
    #[arg(long, requires = "schema")]
    closed: bool,
    /// File with values that must not leave in any encoding, one a line (8 bytes or more each).
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Host that links may point to, exact or `*.example.org`; may be repeated.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Form of the report.
    #[arg(long, default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

/// Checks each path and reports.
pub fn run(args: Args) -> Exit {
    check(&args).unwrap_or_else(Failed::tell)
}

/// A finding, and the patch that it came from.
struct Listed {
    patch: Option<PathBuf>,
    finding: Finding,
}

fn check(args: &Args) -> Result<Exit, Failed> {
    let stdin = [PathBuf::from("-")];
    let paths = if args.paths.is_empty() { stdin.as_slice() } else { args.paths.as_slice() };
    sensible(args, paths).map_err(Failed::usage)?;
    let known = args.known.as_deref().map(known_values).transpose().map_err(Failed::usage)?;
    let schema = args.schema.as_deref().map(|file| schema_of(file, args.closed)).transpose();
    let schema = schema.map_err(Failed::usage)?;
    let policy = Policy { allow_hosts: args.allow_host.clone(), keep_autolinks: false };
    let mut listed: Vec<Listed> = Vec::new();
    let plain = |finding| Listed { patch: None, finding };
    for path in paths {
        if path.is_dir() {
            let found = gate::check_tree_for(path, known.as_ref(), &policy)
                .map_err(|error| Failed::usage(error.to_string()))?;
            listed.extend(found.into_iter().map(plain));
            continue;
        }
        let text = read(Some(path))?;
        if args.redact {
            let clean = gate::redact_for(&text, known.as_ref(), &policy);
            if args.harness {
                let markers: Vec<&str> = args.marker.iter().map(String::as_str).collect();
                write(&sanitise::harness::text(&clean, &markers, sanitise::harness::CHARS))?;
            } else {
                write(&clean)?;
            }
            return Ok(Exit::OK);
        }
        let name = path.to_string_lossy();
        let found = gate::check_document(&name, &text, known.as_ref(), &policy);
        tell_of_links(&name, text.inspect(), &found, &policy);
        listed.extend(found.into_iter().map(plain));
        if let Some(schema) = &schema {
            listed.extend(schema.check(&name, &text).into_iter().map(plain));
        }
        if args.patch {
            let found = patch::check(text.inspect(), &args.scope);
            let outside = |f: &Finding| f.kind == "patch:outside-scope";
            if found.iter().any(outside) && patch::lacks_prefixes(text.inspect()) {
                tracing::warn!(
                    "{}: its paths have no a/ and b/ before them, so they are judged without their first directory too, as \
                     appliers take it away; make it with `git diff --src-prefix=a/ --dst-prefix=b/`",
                    sanitise::path(path)
                );
            }
            listed.extend(found.into_iter().map(|finding| match finding.file.as_os_str().is_empty() {
                // About the patch itself.
                true => plain(Finding { file: path.clone(), ..finding }),
                false => Listed { patch: Some(path.clone()), finding },
            }));
        }
        if args.provenance
            && let Some(kind) = stamp(&text)
        {
            listed.push(plain(Finding { file: path.clone(), line: 0, kind: kind.into() }));
        }
    }
    // A path or a pointer of the document's own could carry what must not be shown.
    let leaks = |text: &str| {
        let found = gate::check_document("", &Untrusted::new(text), known.as_ref(), &policy);
        found.iter().any(|f| f.kind.starts_with("secret:"))
    };
    for Listed { finding, .. } in &mut listed {
        if leaks(&finding.file.to_string_lossy()) {
            finding.file = PathBuf::from("(a name)");
        }
        if finding.kind.starts_with("schema:") && leaks(&finding.kind) {
            finding.kind.truncate(finding.kind.find(" at ").unwrap_or(finding.kind.len()));
        }
    }
    write(&if args.format == "json" { as_json(&listed) } else { as_text(&listed, paths.len() > 1) })?;
    Ok(if listed.is_empty() { Exit::OK } else { Exit::REFUSED })
}

fn as_json(listed: &[Listed]) -> String {
    let shown = |path: &Path| sanitise::for_terminal(&Untrusted::new(path.to_string_lossy()), 4096);
    let list = listed.iter().map(|Listed { patch, finding }| {
        let mut object = json!({
            "file": shown(&finding.file), "line": finding.line, "kind": finding.kind,
            "severity": patch::severity(&finding.kind).name(),
        });
        if let (Some(patch), Value::Object(members)) = (patch, &mut object) {
            members.insert("patch".into(), shown(patch).into());
        }
        object
    });
    format!("{}\n", Value::Array(list.collect()))
}

/// One finding a line; of `several` documents, the patch first.
fn as_text(listed: &[Listed], several: bool) -> String {
    let line = |Listed { patch, finding }: &Listed| {
        let severity = patch::severity(&finding.kind).name();
        match patch {
            Some(patch) if several => format!("{}: {finding} [{severity}]\n", sanitise::path(patch)),
            _ => format!("{finding} [{severity}]\n"),
        }
    };
    listed.iter().map(line).collect()
}

/// Switches that would do nothing, or let through what nobody means.
fn sensible(args: &Args, paths: &[PathBuf]) -> Result<(), String> {
    let judged = args.patch || args.provenance || args.schema.is_some();
    if args.redact && paths.len() != 1 {
        return Err("--redact takes one document".into());
    }
    if args.redact && judged {
        return Err(
            "--redact cleans a document; check it with --patch, --schema or --provenance by itself".into()
        );
    }
    if args.redact && paths.iter().any(|path| path.is_dir()) {
        return Err("--redact takes a document, not a directory".into());
    }
    if !args.scope.is_empty() && !args.patch {
        return Err("--scope is what a patch may touch: give --patch with it".into());
    }
    if judged && let Some(dir) = paths.iter().find(|path| path.is_dir()) {
        return Err(format!(
            "{} is a directory: --patch, --schema and --provenance take documents; name the files",
            sanitise::path(dir)
        ));
    }
    let shown = |rule: &String| sanitise::for_terminal(&Untrusted::new(rule), 256);
    if let Some(rule) = args.allow_host.iter().find(|rule| !is_host(rule)) {
        return Err(format!(
            "--allow-host {}: give a host name in small letters, or `*.example.org`",
            shown(rule)
        ));
    }
    if let Some(rule) = args.allow_host.iter().find(|rule| is_suffix(rule)) {
        return Err(format!(
            "--allow-host {}: names below it are anyone's to register; give a host, or `*.example.org`",
            shown(rule)
        ));
    }
    Ok(())
}

/// The values that must not leave. A file that gives none to look for is an error: nothing would be looked for.
fn known_values(file: &Path) -> Result<Known, String> {
    let text =
        std::fs::read_to_string(file).map_err(|e| format!("cannot read {}: {e}", sanitise::path(file)))?;
    let values: Vec<&str> = text.lines().map(str::trim).filter(|value| !value.is_empty()).collect();
    let short = values.iter().filter(|value| value.len() < Known::MIN).count();
    if short == values.len() {
        return Err(format!(
            "--known {}: it holds no value of {} bytes or more, so nothing would be looked for; write one value on each line, \
             or leave --known out",
            sanitise::path(file),
            Known::MIN
        ));
    }
    if short > 0 {
        tracing::warn!(
            "--known {}: {short} of its values are shorter than {} bytes and are not looked for",
            sanitise::path(file),
            Known::MIN
        );
    }
    Ok(Known::new(values))
}

fn schema_of(file: &Path, closed: bool) -> Result<Schema, String> {
    let text =
        std::fs::read_to_string(file).map_err(|e| format!("cannot read {}: {e}", sanitise::path(file)))?;
    let parse = if closed { Schema::parse_closed } else { Schema::parse };
    parse(&text).map_err(|e| format!("{}: {e}", sanitise::path(file)))
}

/// What is wrong with the stamp of an artefact.
fn stamp(text: &Untrusted<String>) -> Option<&'static str> {
    // A key that stands twice makes two stamps of one: the strict parser refuses it.
    match crate::trust::json::parse(text).map(|artefact| provenance::check(artefact.inspect())) {
        Ok(provenance::Stamp::Ok { untrusted: false }) => None,
        Ok(provenance::Stamp::Ok { untrusted: true }) => Some("provenance:untrusted"),
        Ok(provenance::Stamp::Legacy) => Some("provenance:missing"),
        Ok(provenance::Stamp::Invalid) => Some("provenance:malformed"),
        Err(_) => Some("provenance:not-json"),
    }
}

/// Says on stderr which of the `findings` are ordinary links, and how to keep them.
fn tell_of_links(name: &str, text: &str, findings: &[Finding], policy: &Policy) {
    let lines: BTreeSet<usize> = findings.iter().filter(|f| f.kind == "autofetch").map(|f| f.line).collect();
    let fetching = findings.iter().filter(|f| f.kind == "autofetch").count();
    if fetching == 0 {
        return;
    }
    let mut hosts: BTreeSet<String> = BTreeSet::new();
    for (n, line) in text.split('\n').enumerate() {
        if !lines.contains(&(n + 1)) {
            continue;
        }
        for (at, scheme) in line.match_indices("https://") {
            let rest = line.get(at + scheme.len()..).unwrap_or_default();
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.'));
            let host = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default().to_ascii_lowercase();
            if host.len() <= 253 && is_host(&host) && !is_suffix(&host) && hosts.len() < HOSTS_TOLD {
                hosts.insert(host);
            }
        }
    }
    let mut allow_hosts = policy.allow_hosts.clone();
    allow_hosts.extend(hosts.iter().cloned());
    let left = envelope::autofetch_lines(text, &Policy { allow_hosts, ..policy.clone() }).len();
    if !hosts.is_empty() && left < fetching {
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        tracing::warn!(
            "{}: {} of the autofetch findings are ordinary https links; `--allow-host HOST` keeps those to a host that you \
             trust: {}",
            sanitise::for_terminal(&Untrusted::new(name), 512),
            fetching - left,
            hosts.join(", ")
        );
    }
}

/// Hosts that [`tell_of_links`] names at most.
const HOSTS_TOLD: usize = 8;

/// A host name, or `*.` and one.
fn is_host(rule: &str) -> bool {
    let host = rule.strip_prefix("*.").unwrap_or(rule);
    let label = |l: &str| {
        !l.is_empty()
            && !l.starts_with('-')
            && l.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    host.split('.').all(label)
}

/// A public suffix, or `*.` and one: `com`, `*.co.uk`, `*.github.io`; or `*.` and a name below which all names are some.
fn is_suffix(rule: &str) -> bool {
    let suffix = |host: &str| {
        psl::suffix(host.as_bytes())
            .is_some_and(|suffix| suffix.is_known() && suffix.as_bytes() == host.as_bytes())
    };
    match rule.strip_prefix("*.") {
        Some(parent) => suffix(parent) || suffix(&format!("x.{parent}")),
        None => suffix(rule),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_suffix_is_no_host_to_allow() {
        for rule in ["*.com", "com", "*.co.uk", "co.uk", "*.github.io", "*.ck"] {
            assert!(is_host(rule) && is_suffix(rule), "{rule}");
        }
        for rule in ["example.com", "*.example.com", "docs.example.co.uk", "localhost", "*.corp.internal"] {
            assert!(is_host(rule) && !is_suffix(rule), "{rule}");
        }
    }
}
