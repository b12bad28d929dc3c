//! The shapes of model API that the gateway can stand in front of.
//!
//! | shape | what the run speaks | what goes out |
//! |---|---|---|
//! | [`Api::Anthropic`] | Messages | the same |
//! | [`Api::Bedrock`] | Messages | `InvokeModel` and `InvokeModelWithResponseStream` of Amazon Bedrock, with an API key |
//! | [`Api::Vertex`] | Messages | `rawPredict` and `streamRawPredict` of Google Vertex AI |
//! | [`Api::OpenAi`] | chat completions and responses | the same, to any API of that shape |
//!
//! So an agent that speaks the Messages API needs no setting of its own for another provider: policy, budget and
//! inspection read one shape, and the translation comes last.

use super::upstream::ModelUpstream;
use hyper::Method;
use hyper::header::{ACCEPT, HeaderMap, HeaderValue};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// The version that Bedrock wants named in the body (Amazon Bedrock User Guide, "Anthropic Claude Messages API").
const BEDROCK_VERSION: &str = "bedrock-2023-05-31";
/// The version that Vertex wants named in the body (Claude documentation, "Claude on Vertex AI").
const VERTEX_VERSION: &str = "vertex-2023-10-16";

/// A shape of model API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Api {
    /// Anthropic's Messages API.
    #[default]
    Anthropic,
    /// Claude on Amazon Bedrock. The base URL is `https://bedrock-runtime.REGION.amazonaws.com`.
    Bedrock,
    /// Claude on Google Vertex AI. The base URL ends in `/projects/P/locations/L/publishers/anthropic/models`.
    Vertex,
    /// OpenAI's chat completions and responses. The base URL ends in `/v1`, as clients of that API want it.
    OpenAi,
}

impl std::str::FromStr for Api {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Api, Self::Err> {
        Ok(match text {
            "anthropic" => Api::Anthropic,
            "bedrock" => Api::Bedrock,
            "vertex" => Api::Vertex,
            "openai" => Api::OpenAi,
            _ => return Err("the shapes of API are anthropic, bedrock, vertex and openai"),
        })
    }
}

/// The parts of an API that are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Messages,
    CountTokens,
    Chat,
    Responses,
    Models,
    /// Clients probe the base URL; that needs no upstream.
    Probe,
}

impl Api {
    /// What a request asks for. `None`: nothing that is served.
    pub(super) fn call(self, method: &Method, path: &str) -> Option<Call> {
        use Api::{Anthropic, Bedrock, OpenAi, Vertex};
        match (self, method.as_str(), path) {
            (Anthropic | Bedrock | Vertex, "POST", "/v1/messages") => Some(Call::Messages),
            (Anthropic | Vertex, "POST", "/v1/messages/count_tokens") => Some(Call::CountTokens),
            (OpenAi, "POST", "/v1/chat/completions") => Some(Call::Chat),
            (OpenAi, "POST", "/v1/responses") => Some(Call::Responses),
            (_, "HEAD" | "GET", "/") => Some(Call::Probe),
            (Anthropic | OpenAi, "GET", "/v1/models") => Some(Call::Models),
            (Anthropic | OpenAi, "GET", other) => {
                let id = other.strip_prefix("/v1/models/")?;
                let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.@:".contains(&b);
                (!id.is_empty() && !id.contains("..") && id.bytes().all(plain)).then_some(Call::Models)
            }
            _ => None,
        }
    }
}

/// A request as it goes out.
pub(super) struct Outgoing {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl ModelUpstream {
    /// Puts a judged request into the shape of the API. `query` is given where the API has use for it.
    pub(super) fn outgoing(
        &self,
        call: Call,
        path: &str,
        query: &str,
        body: Option<Map<String, Value>>,
        mut headers: HeaderMap,
    ) -> Outgoing {
        let question = if query.is_empty() { "" } else { "?" };
        let Some(mut body) = body else {
            let path = format!("{}{}{question}{query}", self.path, self.own(path));
            return Outgoing { path, headers, body: Vec::new() };
        };
        let asked = body.get("model").and_then(Value::as_str).unwrap_or_default();
        let model = self.names.get(asked).cloned().unwrap_or_else(|| asked.to_owned());
        let path = match self.api {
            Api::Anthropic | Api::OpenAi => {
                body.insert("model".into(), model.into());
                // There, what is not told otherwise may be stored; servers of the same shape need not know the field.
                if call == Call::Chat && self.host.ends_with("openai.com") {
                    body.insert("store".into(), false.into());
                }
                format!("{}{}{question}{query}", self.path, self.own(path))
            }
            Api::Bedrock => {
                body.shift_remove("model");
                let streams = body.shift_remove("stream") == Some(Value::Bool(true));
                body.insert("anthropic_version".into(), BEDROCK_VERSION.into());
                betas(&headers, &mut body);
                let unwanted = headers.keys().filter(|n| n.as_str().starts_with("anthropic-")).cloned();
                for name in unwanted.collect::<Vec<_>>() {
                    headers.remove(name);
                }
                headers.remove(ACCEPT);
                let action = if streams {
                    headers.insert(ACCEPT, HeaderValue::from_static("application/vnd.amazon.eventstream"));
                    "invoke-with-response-stream"
                } else {
                    "invoke"
                };
                format!("{}/model/{}/{action}", self.path, segment(&model))
            }
            Api::Vertex => {
                body.insert("anthropic_version".into(), VERTEX_VERSION.into());
                headers.remove("anthropic-version");
                if call == Call::CountTokens {
                    body.insert("model".into(), model.into());
                    format!("{}/count-tokens:rawPredict", self.path)
                } else {
                    body.shift_remove("model");
                    let streams = body.get("stream") == Some(&Value::Bool(true));
                    let action = if streams { "streamRawPredict" } else { "rawPredict" };
                    format!("{}/{}:{action}", self.path, segment(&model))
                }
            }
        };
        Outgoing { path, headers, body: serde_json::to_vec(&body).unwrap_or_default() }
    }

    /// The path below the base URL: that of an OpenAI-shaped API has its `/v1` in the base URL.
    fn own<'p>(&self, path: &'p str) -> &'p str {
        if self.api == Api::OpenAi { path.strip_prefix("/v1").unwrap_or(path) } else { path }
    }
}

/// Moves the beta header into the body, where Bedrock reads it.
fn betas(headers: &HeaderMap, body: &mut Map<String, Value>) {
    let given = headers.get_all("anthropic-beta").iter().filter_map(|v| v.to_str().ok());
    let named: Vec<Value> =
        given.flat_map(|v| v.split(',')).map(str::trim).filter(|v| !v.is_empty()).map(Value::from).collect();
    if !named.is_empty() {
        body.insert("anthropic_beta".into(), named.into());
    }
}

/// One segment of a path, whatever characters the name of a model has.
fn segment(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    match out.as_str() {
        "." | ".." => out.replace('.', "%2E"),
        _ => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::Credential;
    use serde_json::json;

    fn out(api: Api, url: &str, call: Call, body: Value) -> (String, Value, HeaderMap) {
        let key = Credential::new("a-real-key-0000").unwrap();
        let names = [("claude-a-20250929".to_owned(), "us.anthropic.claude-a-20250929-v1:0".to_owned())];
        let upstream = ModelUpstream::new(url, key, "jess-placeholder-token")
            .unwrap()
            .speaking(api)
            .with_names(names.into_iter().collect());
        let mut given = HeaderMap::new();
        given.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        given.insert("anthropic-beta", HeaderValue::from_static("one-1, two-2"));
        given.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let Value::Object(body) = body else { panic!() };
        let path = if call == Call::CountTokens { "/v1/messages/count_tokens" } else { "/v1/messages" };
        let out = upstream.outgoing(call, path, "beta=true", Some(body), given);
        (out.path, serde_json::from_slice(&out.body).unwrap(), out.headers)
    }

    #[test]
    fn bedrock_gets_the_model_in_the_path_and_versions_and_betas_in_the_body() {
        let asked = json!({"model": "claude-a-20250929", "max_tokens": 5, "stream": true, "messages": []});
        let url = "https://bedrock-runtime.us-east-1.amazonaws.com";
        let (path, body, headers) = out(Api::Bedrock, url, Call::Messages, asked);
        assert_eq!(path, "/model/us.anthropic.claude-a-20250929-v1%3A0/invoke-with-response-stream");
        let expected = json!({"max_tokens": 5, "messages": [], "anthropic_version": BEDROCK_VERSION, "anthropic_beta": ["one-1", "two-2"]});
        assert_eq!(body, expected);
        assert!(!headers.contains_key("anthropic-beta") && !headers.contains_key("anthropic-version"));
        let whole = json!({"model": "other", "max_tokens": 5, "messages": []});
        assert_eq!(out(Api::Bedrock, url, Call::Messages, whole).0, "/model/other/invoke");
    }

    #[test]
    fn vertex_gets_the_model_in_the_path_and_counts_by_a_name_of_its_own() {
        let url = "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models";
        let prefix = "/v1/projects/p/locations/l/publishers/anthropic/models";
        let asked = json!({"model": "claude-b@20250929", "max_tokens": 5, "stream": true, "messages": []});
        let (path, body, headers) = out(Api::Vertex, url, Call::Messages, asked);
        assert_eq!(path, format!("{prefix}/claude-b@20250929:streamRawPredict"));
        assert_eq!(
            body,
            json!({"max_tokens": 5, "stream": true, "messages": [], "anthropic_version": VERTEX_VERSION})
        );
        assert!(headers.contains_key("anthropic-beta"));
        let count = json!({"model": "claude-b@20250929", "messages": []});
        let (path, body, _) = out(Api::Vertex, url, Call::CountTokens, count);
        assert_eq!(path, format!("{prefix}/count-tokens:rawPredict"));
        assert_eq!(body.get("model").unwrap(), "claude-b@20250929");
    }

    #[test]
    fn a_model_name_stays_one_segment_of_the_path() {
        for (name, expected) in [
            ("a/../../b", "a%2F..%2F..%2Fb"),
            ("..", "%2E%2E"),
            ("x?y#z", "x%3Fy%23z"),
            ("a\r\nb", "a%0D%0Ab"),
        ] {
            assert_eq!(segment(name), expected);
        }
    }

    #[test]
    fn each_shape_serves_its_conversation_and_nothing_else() {
        let served = |api: Api, path: &str| api.call(&Method::POST, path).is_some();
        assert!(served(Api::OpenAi, "/v1/chat/completions") && served(Api::OpenAi, "/v1/responses"));
        for path in ["/v1/messages", "/v1/files", "/v1/assistants", "/v1/batches", "/v1/responses/r1/cancel"]
        {
            assert!(!served(Api::OpenAi, path), "{path}");
        }
        for api in [Api::Anthropic, Api::Bedrock, Api::Vertex] {
            assert!(served(api, "/v1/messages") && !served(api, "/v1/chat/completions"));
            assert!(!served(api, "/v1/messages/batches"));
        }
    }
}
