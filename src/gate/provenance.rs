//! The stamp on a JSON artefact that says who made it and whether to trust it.
//!
//! `provenance: {generator, untrusted, schema_validated}` beside `raptor_schema_version: 2`, in an object or in each
//! element of an array. A stamp that says untrusted is never taken back; one that is missing or malformed reads as
//! untrusted.

use serde_json::{Map, Value, json};

/// The version that stands beside a stamp.
pub const VERSION: u64 = 2;

/// What a stamp says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// Well-formed.
    Ok {
        /// The artefact holds what an outsider may have written.
        untrusted: bool,
    },
    /// Neither stamp nor version.
    Legacy,
    /// A malformed stamp, or a version without one.
    Invalid,
}

impl Stamp {
    /// Everything but a well-formed stamp that says otherwise is untrusted.
    pub const fn untrusted(self) -> bool {
        !matches!(self, Stamp::Ok { untrusted: false })
    }
}

/// Reads the stamp of an artefact; of an array the least trusted of its elements.
pub fn check(artefact: &Value) -> Stamp {
    match artefact {
        Value::Object(object) => check_object(object),
        Value::Array(items) => {
            let rank = |s: &Stamp| match s {
                Stamp::Ok { untrusted: false } => 0,
                Stamp::Ok { untrusted: true } => 1,
                Stamp::Legacy => 2,
                Stamp::Invalid => 3,
            };
            items.iter().map(check).max_by_key(rank).unwrap_or(Stamp::Legacy)
        }
        _ => Stamp::Legacy,
    }
}

fn check_object(object: &Map<String, Value>) -> Stamp {
    let Some(stamp) = object.get("provenance") else {
        return if object.contains_key("raptor_schema_version") { Stamp::Invalid } else { Stamp::Legacy };
    };
    let generator = stamp.get("generator").and_then(Value::as_str).is_some_and(|g| !g.trim().is_empty());
    let untrusted = stamp.get("untrusted").and_then(Value::as_bool);
    let validated = stamp.get("schema_validated").and_then(Value::as_bool);
    let version = object.get("raptor_schema_version").and_then(Value::as_u64) == Some(VERSION);
    match (generator && version && validated.is_some(), untrusted) {
        (true, Some(untrusted)) => Stamp::Ok { untrusted },
        _ => Stamp::Invalid,
    }
}

/// Stamps an artefact. What its present stamp calls untrusted, or does not say well, stays untrusted whatever `untrusted`
/// is; a new artefact (no stamp, no version) takes what the caller says.
pub fn stamp(artefact: &mut Value, generator: &str, untrusted: bool, schema_validated: bool) {
    match artefact {
        Value::Object(object) => {
            let before = check_object(object);
            let untrusted = untrusted || matches!(before, Stamp::Invalid | Stamp::Ok { untrusted: true });
            object.insert(
                "provenance".into(),
                json!({ "generator": generator, "untrusted": untrusted, "schema_validated": schema_validated }),
            );
            object.insert("raptor_schema_version".into(), json!(VERSION));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| stamp(item, generator, untrusted, schema_validated))
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_is_never_taken_back() {
        let mut artefact = json!({ "a": 1 });
        assert_eq!(check(&artefact), Stamp::Legacy);
        stamp(&mut artefact, "scan", true, false);
        stamp(&mut artefact, "other", false, true);
        assert_eq!(check(&artefact), Stamp::Ok { untrusted: true });
        let mut trusted = json!([{}]);
        stamp(&mut trusted, "g", false, true);
        assert_eq!(check(&trusted), Stamp::Ok { untrusted: false });
    }

    #[test]
    fn a_missing_or_malformed_stamp_reads_as_untrusted() {
        for artefact in [
            json!({}),
            json!({ "raptor_schema_version": 2 }),
            json!({ "provenance": true, "raptor_schema_version": 2 }),
            json!({ "provenance": { "generator": "", "untrusted": false, "schema_validated": true }, "raptor_schema_version": 2 }),
            json!({ "provenance": { "generator": "g", "untrusted": "no", "schema_validated": true }, "raptor_schema_version": 2 }),
            json!([]),
            json!("x"),
        ] {
            assert!(check(&artefact).untrusted(), "{artefact}");
        }
    }
}
