//! A JSON artefact against the schema that its reader expects.
//!
//! The schema is the operator's; the artefact is not. The artefact is parsed strictly (a key that stands twice is an error,
//! since two readers would see two documents), nesting and size are bounded, patterns run on a linear-time engine, and a
//! `$ref` reaches nothing outside the schema itself: no network, no file.

use super::{Finding, MAX_FINDINGS, secrets};
use crate::sanitise;
use crate::untrusted::Untrusted;
use jsonschema::PatternOptions;
use serde_json::Value;

/// Longest artefact that is validated, in bytes; a longer one is a finding.
pub const MAX_BYTES: usize = 16 << 20;
/// Longest schema that is read, in bytes.
pub const MAX_SCHEMA: usize = 1 << 20;
/// Characters of a JSON pointer that a finding shows.
const POINTER: usize = 256;

/// The schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is longer than [`MAX_SCHEMA`].
    #[error("reading the schema: it is longer than {MAX_SCHEMA} bytes; give a smaller one")]
    TooLong,
    /// It is not JSON.
    #[error("reading the schema: {0}; give a JSON Schema document")]
    Json(&'static str),
    /// It is no schema, or refers to something outside itself.
    #[error(
        "compiling the schema: {0}; references must stay inside the document, patterns must be without look-around"
    )]
    Schema(String),
}

/// A compiled JSON Schema (drafts 4 to 2020-12; the newest where `$schema` names none).
pub struct Schema {
    validator: jsonschema::Validator,
    /// Deepest artefact that is validated: in a schema that refers to itself from several branches of a composition, each
    /// level multiplies the work.
    depth: usize,
}

impl Schema {
    /// Compiles the operator's schema.
    pub fn parse(text: &str) -> Result<Schema, Error> {
        if text.len() > MAX_SCHEMA {
            return Err(Error::TooLong);
        }
        let schema = crate::trust::json::parse(&Untrusted::new(text)).map_err(Error::Json)?;
        Schema::compile(schema.inspect())
    }

    /// [`Schema::parse`], and no object at any depth may have a key that the schema does not name, unless the schema
    /// itself says what else is allowed.
    pub fn parse_closed(text: &str) -> Result<Schema, Error> {
        if text.len() > MAX_SCHEMA {
            return Err(Error::TooLong);
        }
        let schema = crate::trust::json::parse(&Untrusted::new(text)).map_err(Error::Json)?;
        let mut closed = schema.inspect().clone();
        close(&mut closed, false);
        Schema::compile(&closed)
    }

    fn compile(schema: &Value) -> Result<Schema, Error> {
        jsonschema::options()
            .offline()
            .should_validate_formats(true)
            .with_pattern_options(PatternOptions::regex().size_limit(1 << 20))
            .build(schema)
            .map(|validator| Schema { validator, depth: deepest(schema) })
            .map_err(|e| Error::Schema(sanitise::terminal(&e.to_string(), 300)))
    }

    /// What in the artefact does not fit: `schema:KEYWORD at POINTER`, at most [`MAX_FINDINGS`] and one. The pointer is
    /// made of the artefact's own keys: it is cut, escaped, and redacted, and the values are never shown.
    pub fn check(&self, name: &str, artefact: &Untrusted<impl AsRef<str>>) -> Vec<Finding> {
        let about = |kind: String| Finding { file: name.into(), line: 0, kind };
        let text = artefact.inspect().as_ref();
        if text.len() > MAX_BYTES {
            return vec![about("schema:too-large".into())];
        }
        let value = match crate::trust::json::parse(&Untrusted::new(text)) {
            Ok(value) => value,
            Err(reason) => return vec![about(format!("schema:not-json ({reason})"))],
        };
        if nesting(value.inspect()) > self.depth {
            return vec![about("schema:too-deep".into())];
        }
        let mut findings: Vec<Finding> = Vec::new();
        for error in self.validator.iter_errors(value.inspect()) {
            if findings.len() >= MAX_FINDINGS {
                findings.push(about("too-many-findings".into()));
                break;
            }
            let pointer = secrets::redact(error.instance_path().as_str());
            let pointer = if pointer.is_empty() { "/".into() } else { sanitise::terminal(&pointer, POINTER) };
            findings.push(about(format!("schema:{} at {pointer}", error.kind().keyword())));
        }
        findings
    }
}

impl Schema {
    /// The answer if it fits; else what `again` gives, asked once, if that fits; else nothing. Never an error: an answer
    /// that cannot be had is none.
    pub fn accept(
        &self,
        answer: &Untrusted<impl AsRef<str>>,
        again: impl FnOnce() -> Option<Untrusted<String>>,
    ) -> Option<Untrusted<Value>> {
        let fitting = |text: &str| {
            let text = Untrusted::new(text);
            if self.check("", &text).is_empty() { crate::trust::json::parse(&text).ok() } else { None }
        };
        fitting(answer.inspect().as_ref()).or_else(|| again().and_then(|second| fitting(second.inspect())))
    }
}

/// Steps that the branches of a composition may multiply to.
const STEPS: f64 = 1e6;

/// How deep an artefact may be so that as many branches at each level stay below [`STEPS`]. A schema without references,
/// or with one in compositions, costs no more than its length for each value.
fn deepest(schema: &Value) -> usize {
    let branches = references(schema, false);
    if branches < 2 { usize::MAX } else { (STEPS.ln() / (branches as f64).ln()).ceil() as usize + 1 }
}

/// References inside compositions, where the same value is read once for each, when any reference leads back to what
/// holds it.
fn references(schema: &Value, composed: bool) -> usize {
    match schema {
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| match key.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => usize::from(composed),
                "anyOf" | "oneOf" | "allOf" | "if" | "then" | "else" | "not" | "dependentSchemas" => {
                    references(value, true)
                }
                _ => references(value, composed),
            })
            .sum(),
        Value::Array(items) => items.iter().map(|item| references(item, composed)).sum(),
        _ => 0,
    }
}

/// Levels of arrays and objects; the parser bounds them.
fn nesting(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nesting).max().unwrap_or(0),
        Value::Object(object) => 1 + object.values().map(nesting).max().unwrap_or(0),
        _ => 0,
    }
}

/// Closes every object of a schema. The branches of a composition are left open: their parent is closed over all of them.
fn close(schema: &mut Value, composed: bool) {
    let Value::Object(object) = schema else { return };
    let composes =
        ["allOf", "anyOf", "oneOf", "if", "$ref", "dependentSchemas"].iter().any(|k| object.contains_key(*k));
    let has_keys = object.contains_key("properties")
        || object
            .get("type")
            .is_some_and(|t| t == "object" || t.as_array().is_some_and(|a| a.iter().any(|t| t == "object")));
    let says = ["additionalProperties", "unevaluatedProperties", "patternProperties"]
        .iter()
        .any(|k| object.contains_key(*k));
    for (key, value) in object.iter_mut() {
        match key.as_str() {
            "properties" | "patternProperties" | "$defs" | "definitions" => {
                if let Value::Object(named) = value {
                    named.values_mut().for_each(|inner| close(inner, false));
                }
            }
            "items" | "additionalProperties" | "contains" | "additionalItems" | "unevaluatedItems"
                if value.is_object() =>
            {
                close(value, false);
            }
            "items" | "prefixItems" => {
                if let Value::Array(list) = value {
                    list.iter_mut().for_each(|inner| close(inner, false));
                }
            }
            "anyOf" | "oneOf" | "allOf" => {
                if let Value::Array(list) = value {
                    let part = composed || has_keys || key == "allOf";
                    list.iter_mut().for_each(|inner| close(inner, part));
                }
            }
            "if" | "then" | "else" | "not" => close(value, true),
            _ => {}
        }
    }
    if has_keys && !says && !composed {
        let keyword = if composes { "unevaluatedProperties" } else { "additionalProperties" };
        object.insert(keyword.into(), Value::Bool(false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_schema_refuses_an_extra_key_at_any_depth() {
        let text = r##"{
            "type": "object",
            "properties": {
                "list": { "type": "array", "items": { "type": "object", "properties": { "a": {} } } },
                "dict": { "type": "object", "additionalProperties": { "type": "object", "properties": { "a": {} } } },
                "optional": { "anyOf": [{ "type": "object", "properties": { "a": {} } }, { "type": "null" }] },
                "both": { "allOf": [{ "properties": { "a": {} } }], "type": "object", "properties": { "b": {} } },
                "tree": { "$ref": "#/$defs/node" },
                "free": { "type": "object", "additionalProperties": true }
            },
            "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } }
        }"##;
        let (open, closed) = (Schema::parse(text).unwrap(), Schema::parse_closed(text).unwrap());
        let fits = |schema: &Schema, text: &str| schema.check("a", &Untrusted::new(text)).is_empty();
        for extra in [
            r#"{"x": 1}"#,
            r#"{"list": [{"a": 1}, {"x": 1}]}"#,
            r#"{"dict": {"k": {"x": 1}}}"#,
            r#"{"optional": {"x": 1}}"#,
            r#"{"both": {"a": 1, "b": 2, "x": 1}}"#,
            r#"{"tree": {"next": {"next": {"x": 1}}}}"#,
        ] {
            assert!(fits(&open, extra), "the control: {extra}");
            assert!(!fits(&closed, extra), "{extra}");
        }
        let whole = r#"{"list": [{"a": 1}], "dict": {"k": {"a": 1}}, "optional": null, "both": {"a": 1, "b": 2},
            "tree": {"next": {"next": {}}}, "free": {"x": 1}}"#;
        assert!(fits(&closed, whole));
    }

    #[test]
    fn an_answer_is_asked_for_again_once_and_then_there_is_none() {
        let schema =
            Schema::parse_closed(r#"{"type": "object", "properties": {"n": {"type": "integer"}}}"#).unwrap();
        let good = || Some(Untrusted::new("{\"n\": 1}".to_string()));
        let never = || -> Option<Untrusted<String>> { panic!("a good answer is not asked for again") };
        assert!(schema.accept(&Untrusted::new("{\"n\": 1}"), never).is_some());
        assert!(schema.accept(&Untrusted::new("{\"m\": 1}"), good).is_some());
        let mut asked = 0;
        let bad = || {
            asked += 1;
            Some(Untrusted::new("{\"m\": 1}".to_string()))
        };
        assert!(schema.accept(&Untrusted::new("no"), bad).is_none());
        assert_eq!(asked, 1);
        assert!(schema.accept(&Untrusted::new("no"), || None).is_none());
    }

    const SCHEMA: &str = r##"{
        "type": "object", "required": ["title", "items"], "additionalProperties": false,
        "properties": {
            "title": { "type": "string", "maxLength": 10 },
            "items": { "type": "array", "items": { "$ref": "#/$defs/item" } }
        },
        "$defs": { "item": { "type": "object", "properties": { "id": { "type": "string", "pattern": "^[a-z]+$" } }, "additionalProperties": false } }
    }"##;

    fn kinds(text: &str) -> Vec<String> {
        Schema::parse(SCHEMA)
            .unwrap()
            .check("a.json", &Untrusted::new(text))
            .into_iter()
            .map(|f| f.kind)
            .collect()
    }

    #[test]
    fn an_artefact_that_fits_is_silent() {
        assert_eq!(kinds(r#"{"title": "ok", "items": [{"id": "a"}, {}]}"#), Vec::<String>::new());
    }

    #[test]
    fn what_does_not_fit_is_named_by_keyword_and_pointer_and_not_by_value() {
        assert_eq!(kinds(r#"{"title": "ok"}"#), ["schema:required at /"]);
        assert_eq!(kinds(r#"{"title": 1, "items": []}"#), ["schema:type at /title"]);
        assert_eq!(
            kinds(r#"{"title": "ok", "items": [{"id": "a"}, {"id": "SECRET-VALUE"}]}"#),
            ["schema:pattern at /items/1/id"]
        );
        // An unexpected key at any depth.
        assert_eq!(
            kinds(r#"{"title": "ok", "items": [{"x": "exfiltrated"}]}"#),
            ["schema:additionalProperties at /items/0"]
        );
    }

    #[test]
    fn a_hostile_key_is_cut_escaped_and_redacted_in_the_pointer() {
        let schema = Schema::parse(r#"{"additionalProperties": {"type": "string"}}"#).unwrap();
        let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        for key in [format!("x\\u001b[2J{}", "y".repeat(4000)), token.clone(), "\\u202e".into()] {
            let found = schema.check("a", &Untrusted::new(format!("{{\"{key}\": 1}}")));
            assert_eq!(found.len(), 1);
            let shown = found[0].to_string();
            assert!(
                shown.len() < 500 && !shown.contains(&token) && !crate::sanitise::has_nonprintable(&shown),
                "{shown}"
            );
        }
    }

    #[test]
    fn two_documents_in_one_are_no_document() {
        assert_eq!(
            kinds(r#"{"title": "a", "title": "b", "items": []}"#),
            ["schema:not-json (duplicate key)"]
        );
        assert_eq!(kinds("{} {}"), ["schema:not-json (text after the document)"]);
        assert_eq!(kinds(&"[".repeat(5000)), ["schema:not-json (nested too deeply)"]);
    }

    #[test]
    fn a_reference_never_leaves_the_schema() {
        // The control: the same reference within the document compiles.
        assert!(Schema::parse(r##"{"$ref": "#/$defs/a", "$defs": {"a": {}}}"##).is_ok());
        for outside in
            ["http://127.0.0.1:9/s.json", "https://example.org/s.json", "file:///etc/passwd", "other.json"]
        {
            let error = Schema::parse(&format!("{{\"$ref\": \"{outside}\"}}")).err();
            assert!(matches!(error, Some(Error::Schema(_))), "{outside}");
        }
    }

    #[test]
    fn a_pattern_that_would_backtrack_runs_in_linear_time_or_is_refused() {
        let schema = Schema::parse(r#"{"pattern": "^(a+)+$"}"#).unwrap();
        let hostile = format!("\"{}b\"", "a".repeat(50_000));
        assert_eq!(schema.check("a", &Untrusted::new(hostile)).len(), 1);
        assert!(Schema::parse(r#"{"pattern": "(?=a)b"}"#).is_err());
    }

    #[test]
    fn branches_that_multiply_are_bounded_by_the_depth_of_the_artefact() {
        let schema = Schema::parse(
            r##"{"oneOf": [{"items": {"$ref": "#"}, "minItems": 1}, {"items": {"$ref": "#"}, "minItems": 1}, {"type": "number"}]}"##,
        )
        .unwrap();
        let nested = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
        let found = schema.check("a", &Untrusted::new(nested(25)));
        assert_eq!(found[0].kind, "schema:too-deep");
        assert!(schema.check("a", &Untrusted::new(nested(3))).iter().all(|f| f.kind != "schema:too-deep"));
        // The control: a schema that refers to itself once takes the same depth.
        let list = Schema::parse(r##"{"anyOf": [{"items": {"$ref": "#"}}, {"type": "number"}]}"##).unwrap();
        assert!(list.check("a", &Untrusted::new(nested(25))).is_empty());
    }

    #[test]
    fn a_flood_of_errors_is_bounded_and_says_so() {
        let schema = Schema::parse(r#"{"items": {"type": "string"}}"#).unwrap();
        let flood = |n: usize| format!("[{}1]", "1,".repeat(n - 1));
        assert_eq!(schema.check("a", &Untrusted::new(flood(MAX_FINDINGS))).len(), MAX_FINDINGS);
        let beyond = schema.check("a", &Untrusted::new(flood(MAX_FINDINGS * 3)));
        assert_eq!(beyond.len(), MAX_FINDINGS + 1);
        assert_eq!(beyond.last().unwrap().kind, "too-many-findings");
        assert_eq!(schema.check("a", &Untrusted::new(" ".repeat(MAX_BYTES + 1)))[0].kind, "schema:too-large");
    }
}
