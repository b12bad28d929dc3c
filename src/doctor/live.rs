//! The live canary: a real run, in which jess itself tries forbidden things before the command starts.

use super::own_program;
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};

/// What a real run of `true` showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// `full`, `landlock`, or `none` if the run was refused.
    pub tier: String,
    /// Whether it ended as it should: everything engaged, and what is forbidden failed inside.
    pub held: bool,
    /// What jess said, where it did not.
    pub message: String,
    /// Layers that are not whole, and what is not guaranteed.
    pub weak: Vec<String>,
    /// Whether this is from an earlier run on the same boot with the same program.
    #[serde(default)]
    pub cached: bool,
}

/// Runs `true` under `jess run` and reads its report.
pub fn run() -> Live {
    let none =
        |message: String| Live { tier: "none".into(), held: false, message, weak: Vec::new(), cached: false };
    let dir = std::env::temp_dir().join(format!("jess-doctor-{}-{}", std::process::id(), nonce()));
    if let Err(error) =
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&dir)
    {
        return none(format!("making {}: {error}", crate::sanitise::path(&dir)));
    }
    let report = dir.join("report.json");
    let output = Command::new(own_program())
        .args(["run", "--timeout", "20", "--report"])
        .arg(&report)
        .args(["--", "true"])
        .current_dir("/")
        .stdin(Stdio::null())
        .output();
    let text = std::fs::read(&report);
    let _ = std::fs::remove_dir_all(&dir);
    let output = match output {
        Ok(output) => output,
        Err(error) => return none(format!("starting {}: {error}", crate::sanitise::path(own_program()))),
    };
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let Ok(report) =
        text.map_err(drop).and_then(|t| serde_json::from_slice::<serde_json::Value>(&t).map_err(drop))
    else {
        return none(message);
    };
    let weak = report["layers"].as_array().into_iter().flatten().filter(|layer| layer["state"] != "engaged");
    Live {
        tier: report["tier"].as_str().unwrap_or("none").to_owned(),
        held: output.status.success(),
        message,
        weak: weak
            .map(|layer| {
                let notes = layer["notes"].as_array().into_iter().flatten().filter_map(|n| n.as_str());
                let notes: Vec<&str> = notes.collect();
                let name = layer["name"].as_str().unwrap_or("?");
                let state = layer["state"].as_str().unwrap_or("?");
                format!("{name} {state}: {}", notes.join("; "))
            })
            .collect(),
        cached: false,
    }
}

fn nonce() -> String {
    let mut bytes = [0u8; 8];
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
