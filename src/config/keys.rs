//! Every key: its type, its default, what it does, and what a project may do with it.

use serde_json::{Map, Value, json};

/// What a key in a project's `jess.toml` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Project {
    /// Adds to what the operator says.
    Adds,
    /// Is intersected with what the operator says.
    Narrows,
    /// Counts where it is stricter than what the operator says; a looser value is an error.
    Tightens,
    /// Is an error: it would loosen.
    Refused,
}

/// One key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// `table.key`
    pub name: &'static str,
    /// JSON schema of its value.
    schema: &'static str,
    /// The default, as JSON.
    pub default: &'static str,
    /// One line for a person.
    pub doc: &'static str,
    /// In a project's file.
    pub project: Project,
}

const LIST: &str = r#"{"type":"array","items":{"type":"string"}}"#;

macro_rules! keys {
    ($($name:literal $project:ident $schema:expr, $default:literal, $doc:literal;)*) => {
        /// All of them, in the order of the documentation.
        pub const KEYS: &[Key] = &[$(Key {
            name: $name, schema: $schema, default: $default, doc: $doc, project: Project::$project,
        }),*];
    };
}

keys! {
    "paths.secret" Adds LIST, "[]", "Globs of more files that must not be read. `name` fits at any depth, `./x` in the project, `~/x` at home.";
    "paths.secret_except" Refused LIST, "[]", "Globs of files that may be read although the built-in policy takes them for secrets.";
    "paths.protected" Adds LIST, "[]", "Globs of more files that must not be written.";
    "paths.protected_except" Refused LIST, "[]", "Globs of files that may be written although the built-in policy protects them.";
    "paths.read" Narrows LIST, "[]", "The only places that may be read, beside scratch space. Empty: everywhere but secrets.";
    "paths.write" Narrows LIST, "[]", "The only places that may be written, beside scratch space. Empty: everywhere but protected files.";
    "network.allow" Narrows LIST, "[]", "The only hosts that WebFetch and fetching commands may reach. `example.org`, `*.example.org`. Empty: any.";
    "network.deny" Adds LIST, "[]", "Hosts that must not be reached.";
    "network.private" Refused LIST, "[]", "Hosts of the private network that may be reached without a question.";
    "network.fetch" Tightens r#"{"enum":["any","jess"]}"#, "\"any\"", "`jess`: WebFetch and commands that fetch pages are denied, and told to use `jess fetch URL`.";
    "tools.deny" Adds LIST, "[]", "Globs of tool names that are denied, e.g. `mcp__*__delete_*`.";
    "tools.ask" Adds LIST, "[]", "Globs of tool names that are asked about.";
    "tools.arguments" Adds r#"{"type":"array","items":{"type":"object","required":["tool","argument"],"additionalProperties":false,"properties":{"tool":{"type":"string"},"argument":{"type":"string"},"allow":{"type":"array","items":{"type":"string"}},"deny":{"type":"array","items":{"type":"string"}}}}}"#, "[]", "Rules about arguments: `tool` and `argument` name it, the value must fit one of `allow` (if any) and none of `deny`.";
    "agents.spawn" Tightens r#"{"enum":["allow","ask","deny"]}"#, "\"allow\"", "What starting a subagent meets.";
    "agents.deny" Adds LIST, "[]", "Globs of subagent types that are denied.";
    "commands.deny" Adds LIST, "[]", "Commands that are denied: a program and an ordered subsequence of its arguments, e.g. `terraform apply`.";
    "commands.ask" Adds LIST, "[]", "Commands that are asked about, in the same form.";
    "commands.shell" Tightens r#"{"enum":["full","restricted"]}"#, "\"full\"", "`restricted` holds Bash events to the allow-list of [restricted] as well.";
    "commands.sandbox" Tightens r#"{"enum":["off","landlock","full"]}"#, "\"off\"", "Outside dispatched sessions, Bash commands run under `jess run`: the project writable, the home absent, only the hosts of network.allow. `landlock` takes the best tier there is, `full` that one or none.";
    "restricted.commands" Narrows LIST, "[]", "Programs that the restricted shell runs, by plain name.";
    "restricted.deny" Adds LIST, "[]", "Subcommands that it refuses, in the form of commands.deny.";
    "restricted.deny_flags" Adds LIST, "[]", "Flags that it refuses, with or without a value.";
    "restricted.keep_env" Refused r#"{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}}"#, "{}", "Program → variables that it keeps although they look like credentials.";
    "rules.deny" Adds LIST, "[]", "Rules whose questions become denials; `destroy.*` names all that start so. `jess config rules` lists the names; an unknown one is an error.";
    "rules.off" Refused LIST, "[]", "Rules about commands whose questions are dropped. Denials stay.";
    "scan.withhold_severity" Tightens r#"{"enum":["low","medium","high","critical"]}"#, "\"critical\"", "A text with a finding of at least this severity, and of the confidence below, is withheld from the model.";
    "scan.withhold_confidence" Tightens r#"{"type":"number","minimum":0,"maximum":1}"#, "0.9", "See scan.withhold_severity.";
    "session.attended" Tightens r#"{"enum":["auto","never"]}"#, "\"auto\"", "`never` turns every question into a denial; `auto` believes the client.";
    "session.denials_max" Tightens r#"{"type":"integer","minimum":0}"#, "40", "Denials after which a session needs a person (`jess session clear`); 0 is never.";
    "session.findings_max" Tightens r#"{"type":"integer","minimum":0}"#, "25", "Results with findings after which a session needs a person; 0 is never.";
    "audit.on_failure" Tightens r#"{"enum":["allow","ask","deny"]}"#, "\"ask\"", "What a call meets whose decision cannot be put on record (a full disk, a state directory of somebody else's): `ask` is a denial where nobody is there; `allow` lets it run and says so to the person.";
    "daemon.enabled" Refused r#"{"type":"boolean"}"#, "true", "Whether `jess-hook` starts a daemon.";
    "daemon.idle_minutes" Refused r#"{"type":"integer","minimum":1}"#, "30", "Minutes without a call after which the daemon ends.";
}

/// The key of a name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| k.name == name)
}

/// A JSON schema (draft 2020-12) of a configuration file, as an editor takes it.
pub fn schema() -> Value {
    let mut tables: Map<String, Value> = Map::new();
    for key in KEYS {
        let (table, name) = key.name.split_once('.').unwrap_or(("", key.name));
        let mut one: Value = serde_json::from_str(key.schema).unwrap_or(Value::Null);
        if let Some(o) = one.as_object_mut() {
            o.insert("description".into(), key.doc.into());
            o.insert("default".into(), serde_json::from_str(key.default).unwrap_or(Value::Null));
        }
        let entry = tables
            .entry(table.to_owned())
            .or_insert_with(|| json!({"type": "object", "additionalProperties": false, "properties": {}}));
        if let Some(p) = entry.get_mut("properties").and_then(Value::as_object_mut) {
            p.insert(name.to_owned(), one);
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "jess configuration",
        "type": "object",
        "additionalProperties": false,
        "properties": tables,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layer;

    /// A file that sets every key to its default.
    fn everything() -> String {
        let mut out = String::new();
        for key in KEYS {
            let (table, name) = key.name.split_once('.').unwrap();
            if !out.contains(&format!("[{table}]")) {
                out.push_str(&format!("[{table}]\n"));
            }
            out.push_str(&format!("{name} = {}\n", key.default));
        }
        out
    }

    #[test]
    fn every_key_of_the_table_is_read_and_no_other() {
        Layer::parse(&everything()).unwrap();
        for key in KEYS {
            let misspelt = format!(
                "[{}]\n{}x = {}\n",
                key.name.split_once('.').unwrap().0,
                key.name.split_once('.').unwrap().1,
                key.default
            );
            assert!(Layer::parse(&misspelt).is_err(), "{misspelt}");
        }
    }

    #[test]
    fn the_schema_takes_the_defaults_and_refuses_a_misspelt_key() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        let value = |text: &str| serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
        assert!(validator.is_valid(&value(&everything())));
        assert!(!validator.is_valid(&value("[paths]\nsecrets = []\n")));
        assert!(!validator.is_valid(&value("[agents]\nspawn = \"never\"\n")));
    }
}
