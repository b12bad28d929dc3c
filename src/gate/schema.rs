//! A JSON artefact against the schema that its reader expects.
//!
//! The schema is the operator's; the artefact is not. The artefact is parsed strictly (a key that stands twice is an error,
//! since two readers would see two documents), nesting and size are bounded, patterns run on a linear-time engine, and a
//! `$ref` reaches nothing outside the schema itself: no network, no file.

use super::{Finding, MAX_FINDINGS, secrets};
use crate::sanitise;
use crate::untrusted::Untrusted;
use jsonschema::PatternOptions;

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
pub struct Schema(jsonschema::Validator);

impl Schema {
    /// Compiles the operator's schema.
    pub fn parse(text: &str) -> Result<Schema, Error> {
        if text.len() > MAX_SCHEMA {
            return Err(Error::TooLong);
        }
        let schema = crate::trust::json::parse(&Untrusted::new(text)).map_err(Error::Json)?;
        jsonschema::options()
            .offline()
            .should_validate_formats(true)
            .with_pattern_options(PatternOptions::regex().size_limit(1 << 20))
            .build(schema.inspect())
            .map(Schema)
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
        let mut findings: Vec<Finding> = Vec::new();
        for error in self.0.iter_errors(value.inspect()) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
