//! `jess gate`: a document before it leaves.

use crate::exit::Exit;
use crate::gate::{self, Finding, encoded::Known, patch, provenance, schema::Schema};
use crate::untrusted::Untrusted;
use crate::{envelope, sanitise};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Check a document, a patch or a directory before it leaves: exits 2 when something must not.
#[derive(clap::Args)]
pub struct Args {
    /// Files or directories; `-` or nothing is stdin.
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
    match check(&args) {
        Ok(exit) => exit,
        Err(message) => {
            tracing::error!("{message}");
            Exit::USAGE
        }
    }
}

fn check(args: &Args) -> Result<Exit, String> {
    let shown = |path: &Path| sanitise::for_terminal(&Untrusted::new(path.to_string_lossy()), 512);
    let values = match &args.known {
        Some(file) => {
            std::fs::read_to_string(file).map_err(|e| format!("cannot read {}: {e}", shown(file)))?
        }
        None => String::new(),
    };
    let known = args.known.as_ref().map(|_| Known::new(values.lines().map(str::trim)));
    let schema = match &args.schema {
        Some(file) => {
            let text =
                std::fs::read_to_string(file).map_err(|e| format!("cannot read {}: {e}", shown(file)))?;
            let parse = if args.closed { Schema::parse_closed } else { Schema::parse };
            Some(parse(&text).map_err(|e| format!("{}: {e}", shown(file)))?)
        }
        None => None,
    };
    let policy = envelope::Policy { allow_hosts: args.allow_host.clone(), keep_autolinks: false };
    let stdin = [PathBuf::from("-")];
    let paths = if args.paths.is_empty() { stdin.as_slice() } else { args.paths.as_slice() };
    if args.redact && paths.len() != 1 {
        return Err("--redact takes one document".into());
    }
    let judged = args.patch || args.provenance || args.schema.is_some();
    if args.redact && judged {
        return Err(
            "--redact cleans a document; check it with --patch, --schema or --provenance by itself".into()
        );
    }
    if !args.scope.is_empty() && !args.patch {
        return Err("--scope is what a patch may touch: give --patch with it".into());
    }
    if judged && let Some(dir) = paths.iter().find(|path| path.is_dir()) {
        return Err(format!(
            "{} is a directory: --patch, --schema and --provenance take documents; name the files",
            shown(dir)
        ));
    }
    if let Some(rule) = args.allow_host.iter().find(|rule| !is_host(rule)) {
        return Err(format!(
            "--allow-host {}: give a host name in small letters, or `*.example.org`",
            sanitise::for_terminal(&Untrusted::new(rule), 256)
        ));
    }
    let mut findings: Vec<Finding> = Vec::new();
    for path in paths {
        if path.is_dir() {
            if args.redact {
                return Err("--redact takes a document, not a directory".into());
            }
            findings.extend(gate::check_tree_for(path, known.as_ref(), &policy).map_err(|e| e.to_string())?);
            continue;
        }
        let text = super::seal::read(Some(path)).map_err(|e| format!("cannot read {}: {e}", shown(path)))?;
        if args.redact {
            let clean = gate::redact_for(&text, known.as_ref(), &policy);
            if args.harness {
                let markers: Vec<&str> = args.marker.iter().map(String::as_str).collect();
                return write(&sanitise::harness::text(&clean, &markers, sanitise::harness::CHARS));
            }
            return write(&clean);
        }
        let name = path.to_string_lossy();
        findings.extend(gate::check_document(&name, &text, known.as_ref(), &policy));
        if let Some(schema) = &schema {
            findings.extend(schema.check(&name, &text));
        }
        if args.patch {
            findings.extend(patch::check(text.inspect(), &args.scope));
        }
        if args.provenance {
            // A key that stands twice makes two stamps of one: the strict parser refuses it.
            let stamp =
                crate::trust::json::parse(&text).map(|artefact| provenance::check(artefact.inspect()));
            let kind = match stamp {
                Ok(provenance::Stamp::Ok { untrusted: false }) => continue,
                Ok(provenance::Stamp::Ok { untrusted: true }) => "provenance:untrusted",
                Ok(provenance::Stamp::Legacy) => "provenance:missing",
                Ok(provenance::Stamp::Invalid) => "provenance:malformed",
                Err(_) => "provenance:not-json",
            };
            findings.push(Finding { file: path.clone(), line: 0, kind: kind.into() });
        }
    }
    // A path or a pointer of the document's own could carry what must not be shown.
    let leaks = |text: &str| {
        let found = gate::check_document("", &Untrusted::new(text), known.as_ref(), &policy);
        found.iter().any(|f| f.kind.starts_with("secret:"))
    };
    for finding in &mut findings {
        if leaks(&finding.file.to_string_lossy()) {
            finding.file = PathBuf::from("(a name)");
        }
        if finding.kind.starts_with("schema:") && leaks(&finding.kind) {
            finding.kind.truncate(finding.kind.find(" at ").unwrap_or(finding.kind.len()));
        }
    }
    let report = if args.format == "json" {
        let list: Vec<Value> = findings
            .iter()
            .map(|f| {
                let file = sanitise::for_terminal(&Untrusted::new(f.file.to_string_lossy()), 4096);
                json!({ "file": file, "line": f.line, "kind": f.kind, "severity": patch::severity(&f.kind).name() })
            })
            .collect();
        format!("{}\n", Value::Array(list))
    } else {
        findings.iter().map(|f| format!("{f} [{}]\n", patch::severity(&f.kind).name())).collect()
    };
    write(&report)?;
    Ok(if findings.is_empty() { Exit::OK } else { Exit::REFUSED })
}

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

fn write(text: &str) -> Result<Exit, String> {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Ok(Exit::OK),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::OK),
        Err(error) => Err(format!("cannot write the report: {error}")),
    }
}
