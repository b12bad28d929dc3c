//! A tool's result in the tool's own shape, with every text in it sealed.
//!
//! The client ignores a replacement that does not fit the tool's schema and shows the original. So a result of the
//! client's own tools keeps its shape: lists stay lists, objects keep their keys, texts stay texts. What is not sealed
//! is what is known to say nothing: the model's own words from the call's input, words of a fixed list under the keys
//! that hold such words, identifiers and plain file names under the client's own keys, and pictures. A result of an
//! MCP tool may be any content array; there only the block's type, known media types and pictures stay.
//!
//! Bounds: [`TEXTS_MAX`] texts in one result, 64 levels, and [`seal::TEXT_MAX`] bytes of each text.

use super::seal::{self, Seen};
use serde_json::{Map, Value, json};

/// Most texts of one result that are sealed one by one; those after them are withheld.
pub const TEXTS_MAX: usize = 1024;
/// Below this level a value is sealed as one text.
const DEPTH_MAX: usize = 64;
/// Longest identifier or key left as it is, in bytes.
const TOKEN_MAX: usize = 64;
/// Longest file name or path left as it is, in bytes.
const NAME_MAX: usize = 128;

/// Words that the client puts under `type`, `status` and the like.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "text", "image", "notebook", "pdf", "parts", "document", "file_unchanged", "create", "update", "content",
    "files_with_matches", "count", "code", "markdown", "raw", "stream", "stdout", "stderr", "execute_result",
    "display_data", "error", "completed", "running", "pending", "failed", "killed", "stopped", "success", "timeout",
    "not_ready", "ready", "async_launched", "in_progress", "local_bash", "local_agent", "remote_agent", "standard",
    "fast", "priority", "batch", "python", "json", "base64",
];

/// Reason phrases of HTTP (RFC 9110, RFC 6585) that a fetch meets.
#[rustfmt::skip]
const PHRASES: &[&str] = &[
    "OK", "Created", "Accepted", "No Content", "Partial Content", "Multiple Choices", "Moved Permanently", "Found",
    "See Other", "Not Modified", "Temporary Redirect", "Permanent Redirect", "Bad Request", "Unauthorized",
    "Payment Required", "Forbidden", "Not Found", "Method Not Allowed", "Not Acceptable", "Request Timeout",
    "Conflict", "Gone", "Too Many Requests", "Unavailable For Legal Reasons", "Internal Server Error",
    "Not Implemented", "Bad Gateway", "Service Unavailable", "Gateway Timeout",
];

/// Media types that stay as they are.
#[rustfmt::skip]
const MEDIA: &[&str] = &[
    "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf", "application/json",
    "application/octet-stream", "text/plain", "text/html", "text/markdown", "text/csv", "text/xml", "audio/wav",
    "audio/mpeg", "audio/ogg",
];

/// How pictures, documents and sounds begin in base64: PNG, JPEG, GIF, RIFF (WebP, WAV), PDF, ID3, Ogg.
const BINARIES: &[&str] = &["iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "JVBERi", "SUQz", "T2dnUw"];

/// The replacement for a tool's response; `None` where nothing has to be replaced. `input` is the call's.
pub fn response(tool: &str, input: &Value, origin: &str, value: &Value, seen: &mut Seen) -> Option<Value> {
    let mut shape = Shape { tool, origin, input, seen, left: TEXTS_MAX };
    let sealed = match tool {
        "Bash" | "PowerShell" => shape.command(value),
        "Monitor" if value.get("stdout").is_some() => shape.command(value),
        "WebFetch" => shape.page(value),
        _ if tool.starts_with("mcp__") => shape.mcp(value),
        _ => shape.any("", value, 0),
    };
    (sealed != *value).then_some(sealed)
}

/// One result on its way.
struct Shape<'a> {
    tool: &'a str,
    origin: &'a str,
    input: &'a Value,
    seen: &'a mut Seen,
    /// Texts that may still be sealed.
    left: usize,
}

impl Shape<'_> {
    fn text(&mut self, text: &str) -> String {
        if text.trim().is_empty() {
            return text.to_owned();
        }
        let Some(left) = self.left.checked_sub(1) else {
            self.seen.withheld += 1;
            return format!(
                "[jess withheld {} bytes: the result holds more than {TEXTS_MAX} texts]",
                text.len()
            );
        };
        self.left = left;
        seal::text(text, self.tool, self.origin, self.seen)
    }

    /// A text as it is, anything else as its JSON: one sealed text.
    fn one(&mut self, value: &Value) -> String {
        match value {
            Value::String(s) => self.text(s),
            Value::Null => String::new(),
            other => self.text(&other.to_string()),
        }
    }

    /// Any value in its own shape.
    fn any(&mut self, key: &str, value: &Value, depth: usize) -> Value {
        match value {
            Value::String(s) if harmless(key, s, self.input) => value.clone(),
            Value::String(s) => self.text(s).into(),
            Value::Array(_) | Value::Object(_) if depth >= DEPTH_MAX => self.one(value).into(),
            Value::Array(list) if list.len() > 1 && list.iter().all(Value::is_string) => self.list(key, list),
            Value::Array(list) => list.iter().map(|v| self.any(key, v, depth + 1)).collect(),
            Value::Object(object) => {
                let mut out = Map::new();
                for (key, value) in object {
                    let sealed = self.any(key, value, depth + 1);
                    out.insert(self.key(key), sealed);
                }
                Value::Object(out)
            }
            other => other.clone(),
        }
    }

    /// A list of texts: those that say nothing, and all others as one sealed text.
    fn list(&mut self, key: &str, list: &[Value]) -> Value {
        let mut out = Vec::new();
        let mut others = Vec::new();
        for text in list.iter().filter_map(Value::as_str) {
            if harmless(key, text, self.input) {
                out.push(Value::from(text));
            } else {
                others.push(text);
            }
        }
        if !others.is_empty() {
            out.push(self.text(&others.join("\n")).into());
        }
        Value::Array(out)
    }

    /// A key that is no plain name is a text like any other.
    fn key(&mut self, key: &str) -> String {
        if token(key) { key.to_owned() } else { self.text(key) }
    }

    fn command(&mut self, value: &Value) -> Value {
        let mut out = Map::new();
        match value {
            Value::Object(object) => {
                for (key, value) in object {
                    let sealed = match (key.as_str(), value) {
                        // The client would point the model at the unsealed file.
                        ("persistedOutputPath" | "persistedOutputSize", _) => continue,
                        ("stdout", Value::String(s)) if picture_uri(s) => value.clone(),
                        ("stdout" | "stderr", _) => self.one(value).into(),
                        _ => self.any(key, value, 1),
                    };
                    out.insert(self.key(key), sealed);
                }
            }
            other => {
                out.insert("stdout".into(), self.one(other).into());
            }
        }
        for key in ["stdout", "stderr"] {
            out.entry(key).or_insert_with(|| "".into());
        }
        for key in ["interrupted", "isImage"] {
            out.entry(key).or_insert(Value::Bool(false));
        }
        Value::Object(out)
    }

    fn page(&mut self, value: &Value) -> Value {
        let mut out = Map::new();
        if let Value::Object(object) = value {
            for (key, value) in object {
                let sealed = if key == "result" { self.one(value).into() } else { self.any(key, value, 1) };
                out.insert(self.key(key), sealed);
            }
        }
        if !out.contains_key("result") {
            out.insert("result".into(), self.one(value).into());
        }
        let url = self.origin;
        for (key, value) in
            [("bytes", json!(0)), ("code", json!(200)), ("codeText", json!("OK")), ("durationMs", json!(0))]
                .into_iter()
                .chain([("url", json!(url))])
        {
            out.entry(key).or_insert(value);
        }
        Value::Object(out)
    }

    /// A result from a tool outside the client: a text or a content array, the shapes that both client versions take.
    fn mcp(&mut self, value: &Value) -> Value {
        let list = match value {
            Value::Null => return Value::Null,
            Value::String(s) => return self.text(s).into(),
            Value::Array(list) => list,
            Value::Object(object) => match object.get("content") {
                Some(Value::Array(list)) if !list.is_empty() => list,
                _ => return Value::Array(vec![self.block(value)]),
            },
            _ => return Value::Array(vec![self.block(value)]),
        };
        let mut out = Vec::with_capacity(list.len());
        for item in list {
            self.item(item, &mut out);
        }
        Value::Array(out)
    }

    /// A value of no known shape as a block of text.
    fn block(&mut self, value: &Value) -> Value {
        json!({ "type": "text", "text": self.one(value) })
    }

    /// One block of a content array.
    fn item(&mut self, value: &Value, out: &mut Vec<Value>) {
        let field = |key: &str| value.get(key).and_then(Value::as_str);
        let media = |key: &str| field(key).filter(|m| MEDIA.contains(m));
        match (field("type"), value.as_object()) {
            (Some("text"), Some(object)) if field("text").is_some() => {
                let text = self.text(field("text").unwrap_or_default());
                out.push(json!({ "type": "text", "text": text }));
                self.rest(object, &["type", "text"], out);
            }
            (Some(kind @ ("image" | "audio")), Some(object)) => {
                let source = value.get("source").unwrap_or(&Value::Null);
                let inner = |key: &str| source.get(key).and_then(Value::as_str).unwrap_or_default();
                let whole = field("data").filter(|d| binary(d)).zip(media("mimeType"));
                if let Some((data, mime)) = whole {
                    out.push(json!({ "type": kind, "data": data, "mimeType": mime }));
                    self.rest(object, &["type", "data", "mimeType"], out);
                } else if inner("type") == "base64"
                    && binary(inner("data"))
                    && MEDIA.contains(&inner("media_type"))
                {
                    let source = json!({
                        "type": "base64", "media_type": inner("media_type"), "data": inner("data"),
                    });
                    out.push(json!({ "type": kind, "source": source }));
                    self.rest(object, &["type", "source"], out);
                } else {
                    out.push(self.block(value));
                }
            }
            (Some("resource"), Some(object)) => {
                let Some(resource) = value.get("resource").and_then(Value::as_object) else {
                    out.push(self.block(value));
                    return;
                };
                let sealed = self.fields(resource);
                out.push(json!({ "type": "resource", "resource": sealed }));
                self.rest(object, &["type", "resource"], out);
            }
            (Some("resource_link"), Some(object)) => {
                let mut sealed = self.fields(object);
                sealed.insert("type".into(), "resource_link".into());
                out.push(Value::Object(sealed));
            }
            _ => out.push(self.block(value)),
        }
    }

    /// The fields of a resource or of a link to one. A media type that is not known, and what describes the block to
    /// the client alone, is left out.
    fn fields(&mut self, object: &Map<String, Value>) -> Map<String, Value> {
        let mut out = Map::new();
        for (key, value) in object {
            let sealed = match (key.as_str(), value) {
                ("type" | "annotations" | "_meta" | "icons", _) => continue,
                ("mimeType", Value::String(m)) if MEDIA.contains(&m.as_str()) => value.clone(),
                ("mimeType", _) => continue,
                ("blob", Value::String(b)) if binary(b) => value.clone(),
                (_, Value::Number(_) | Value::Bool(_) | Value::Null) => value.clone(),
                _ => self.one(value).into(),
            };
            out.insert(self.key(key), sealed);
        }
        out
    }

    /// Fields of a block beyond those it is known to have, as a block of text. What is for the client alone is left out.
    fn rest(&mut self, object: &Map<String, Value>, known: &[&str], out: &mut Vec<Value>) {
        const CLIENT: [&str; 4] = ["annotations", "_meta", "cache_control", "citations"];
        let rest: Map<String, Value> = object
            .iter()
            .filter(|(key, _)| !known.contains(&key.as_str()) && !CLIENT.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !rest.is_empty() {
            out.push(self.block(&Value::Object(rest)));
        }
    }
}

/// Whether a text of the client's own tools says nothing that an outsider chose.
fn harmless(key: &str, text: &str, input: &Value) -> bool {
    let own = || input.as_object().is_some_and(|o| o.values().any(|v| v.as_str() == Some(text)));
    let known = match key {
        "type" => WORDS.contains(&text) || MEDIA.contains(&text),
        "status" | "task_type" | "retrieval_status" | "mode" | "cellType" | "cell_type" | "output_type"
        | "language" | "service_tier" | "speed" => WORDS.contains(&text),
        "codeText" => PHRASES.contains(&text),
        "mimeType" | "media_type" => MEDIA.contains(&text),
        "tool_use_id" | "agentId" | "agentType" | "task_id" | "shellId" | "bash_id" | "backgroundTaskId"
        | "harnessSectionHash" | "resolvedModel" | "commandName" => token(text),
        "filePath" | "filename" | "filenames" | "outputFile" | "matches" => name(text),
        "base64" | "data" | "image_data" => binary(text),
        _ => false,
    };
    text.trim().is_empty() || known || own()
}

/// An identifier: letters, digits, `_`, `-` and `.`, at most [`TOKEN_MAX`].
fn token(text: &str) -> bool {
    (1..=TOKEN_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

/// A plain file name or path, or a tool's name: no blanks and nothing that means something elsewhere, at most [`NAME_MAX`].
fn name(text: &str) -> bool {
    (1..=NAME_MAX).contains(&text.len()) && text.split('/').all(|part| part.is_empty() || token(part))
}

/// The base64 of a picture, document or sound.
fn binary(text: &str) -> bool {
    BINARIES.iter().any(|b| text.starts_with(b))
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='))
}

/// A picture that a command printed, as the client hands it on.
fn picture_uri(text: &str) -> bool {
    text.strip_prefix("data:")
        .and_then(|t| t.split_once(";base64,"))
        .is_some_and(|(media, data)| MEDIA.contains(&media) && binary(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(tool: &str, r: Value) -> Value {
        response(tool, &Value::Null, "x", &r, &mut Seen::default()).unwrap()
    }

    #[test]
    fn each_tool_keeps_its_schema() {
        let v = sealed(
            "Bash",
            json!({"stdout":"hi","stderr":"","interrupted":false,"isImage":false,"persistedOutputPath":"/x"}),
        );
        assert!(
            v["stdout"].as_str().unwrap().contains("<untrusted-")
                && v["stderr"] == ""
                && v.get("persistedOutputPath").is_none()
        );
        let v = sealed(
            "WebFetch",
            json!({"bytes":1,"code":200,"codeText":"OK","result":"page","durationMs":1,"url":"u"}),
        );
        assert!(v["result"].as_str().unwrap().contains("page") && v["code"] == 200 && v["codeText"] == "OK");
        let v = sealed(
            "Read",
            json!({"type":"text","file":{"filePath":"/a","content":"alpha","numLines":1,"startLine":1,"totalLines":1}}),
        );
        assert!(v["file"]["content"].as_str().unwrap().contains("<untrusted-"));
        assert_eq!((&v["type"], &v["file"]["filePath"]), (&json!("text"), &json!("/a")));
        assert_eq!(v["file"]["numLines"], 1);
        let v = sealed(
            "mcp__a__b",
            json!([{"type":"text","text":"says"},{"type":"resource","resource":{"uri":"u","text":"deep"}}]),
        );
        assert!(
            v[0]["text"].as_str().unwrap().contains("<untrusted-")
                && v[1]["resource"]["text"].as_str().unwrap().contains("<untrusted-")
        );
        let v = sealed("mcp__a__b", json!({"k":"v"}));
        assert!(v[0]["text"].as_str().unwrap().contains("<untrusted-"));
        let v = sealed(
            "Agent",
            json!({"status":"completed","content":[{"type":"text","text":"done"}],"agentId":"a"}),
        );
        assert!(v["content"][0]["text"].as_str().unwrap().contains("done") && v["agentId"] == "a");
        assert_eq!((&v["status"], &v["content"][0]["type"]), (&json!("completed"), &json!("text")));
    }

    #[test]
    fn a_credential_does_not_survive_sealing() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let v = sealed("mcp__a__b", json!(format!("token {token}")));
        assert!(!v.to_string().contains(&token));
    }

    #[test]
    fn what_says_nothing_is_left() {
        let none = |tool: &str, input: Value, r: Value| response(tool, &input, "x", &r, &mut Seen::default());
        let patch = json!({"filePath":"/p/b.txt","oldString":"bee","newString":"wasp","structuredPatch":[],"userModified":false});
        let input = json!({"file_path":"/p/b.txt","old_string":"bee","new_string":"wasp"});
        assert_eq!(none("Edit", input, patch.clone()), None);
        assert!(none("Edit", json!({}), patch).is_some(), "words of somebody else");
        let picture = json!([{"type":"image","data":"iVBORw0KGgoAAAA=","mimeType":"image/png"}]);
        assert_eq!(none("mcp__a__b", json!({}), picture), None);
        let names = json!({"filenames":["src/main.rs","a.txt"],"numFiles":2});
        assert_eq!(none("Glob", json!({}), names), None);
    }

    #[test]
    fn beyond_the_bound_texts_are_withheld_and_deep_values_sealed_whole() {
        let many: Value = (0..TEXTS_MAX + 2).map(|i| json!({"text": format!("EVIL {i}")})).collect();
        let v = sealed("FutureTool", many);
        let last = |i: usize| v[i]["text"].as_str().unwrap().to_owned();
        assert!(last(TEXTS_MAX - 1).contains("<untrusted-"));
        assert!(last(TEXTS_MAX).contains("withheld") && !last(TEXTS_MAX).contains("EVIL"));
        let mut deep = json!("EVIL");
        for _ in 0..100 {
            deep = json!([deep]);
        }
        assert!(sealed("FutureTool", deep).to_string().contains("<untrusted-"));
    }
}
