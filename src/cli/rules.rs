//! `jess rules`: the detection library, one line a rule.

use crate::exit::Exit;
use crate::scan::Engine;
use serde_json::json;

/// Report form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

/// List the rules of `jess check`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Runs it.
pub fn run(args: Args) -> Exit {
    let rules = Engine::builtin().catalogue();
    match args.format {
        Format::Text => {
            for r in rules {
                say!("{:6} {:8} {:22} {}", r.id, r.severity.name(), r.category, r.name);
            }
        }
        Format::Json => {
            let all: Vec<_> = rules
                .iter()
                .map(|r| {
                    json!({"id": r.id, "name": r.name, "category": r.category, "severity": r.severity,
                           "message": r.message, "remediation": r.remediation, "references": r.references})
                })
                .collect();
            say!("{}", serde_json::Value::Array(all));
        }
    }
    Exit::OK
}
