//! The hook as a plugin of the client, with a marketplace of one.
//!
//! A plugin comes to machines where jess lies elsewhere, so it names `jess-hook` alone and lets the PATH find it; where
//! it is missing the shell line blocks.

use super::client::Form;
use crate::hook::managed::EVENTS;
use serde_json::{Map, Value, json};
use std::path::Path;

/// The files of the plugin, relative to its root.
pub fn files() -> Vec<(&'static str, Value)> {
    let group =
        |event: &&str| ((*event).to_owned(), json!([Form::Shell.group(event, Path::new("jess-hook"))]));
    let hooks: Map<String, Value> = EVENTS.iter().map(group).collect();
    vec![
        (
            "hooks/hooks.json",
            json!({ "description": "Every tool call judged, every result sealed.", "hooks": hooks }),
        ),
        (
            ".claude-plugin/plugin.json",
            json!({
                "name": "jess",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Judges each tool call and seals each result. Needs jess and jess-hook on the PATH.",
                "license": "MIT OR Apache-2.0",
                "hooks": "./hooks/hooks.json",
            }),
        ),
        (
            ".claude-plugin/marketplace.json",
            json!({
                "name": "jess",
                "owner": { "name": "jess" },
                "plugins": [{ "name": "jess", "source": "./", "description": "Judges each tool call and seals each result." }],
            }),
        ),
    ]
}

/// A file's text.
pub fn text(value: &Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default())
}
