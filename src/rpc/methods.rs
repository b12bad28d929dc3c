//! The methods: parameters in, one function of the crate called, its result out.

use super::params::Params;
use super::{Body, Failure};
use crate::envelope::{self, Nonce, family, preflight, probe, profile::Profile, prompt};
use crate::gate::redaction;
use crate::sanitise;
use crate::trust;
use crate::untrusted::Untrusted;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashSet;

type Answer = Result<Value, Failure>;
type Method = fn(&mut Params) -> Answer;

/// Every method, sorted by name.
const METHODS: &[(&str, Method)] = &[
    ("env.intersect", |p| {
        let env = p.env("env")?;
        let given = p.texts("names")?;
        let names = p.needed("names", given)?;
        let named: HashSet<&String> = names.iter().collect();
        let mut found: Vec<&String> = env.iter().map(|v| &v.0).filter(|n| named.contains(n)).collect();
        found.sort();
        found.dedup();
        Ok(json!({ "names": found }))
    }),
    ("env.proxy_url", |p| Ok(json!({ "value": p.text("value")?.trim().trim_end_matches('/') }))),
    ("env.strip", |p| {
        let env = p.env("env")?;
        let given = p.texts("names")?;
        let names: HashSet<String> = p.needed("names", given)?.into_iter().collect();
        let kept: Vec<Value> =
            env.into_iter().filter(|v| !names.contains(&v.0)).map(|(n, v)| json!([n, v])).collect();
        Ok(json!({ "env": kept }))
    }),
    ("envelope.build", envelope_build),
    ("envelope.neutralize", |p| Ok(json!({ "text": envelope::neutralise(&p.text("text")?) }))),
    ("envelope.nonce_leaked", |p| {
        let nonce = p.text("nonce")?;
        Ok(json!({ "leaked": envelope::nonce_leaked(&nonce, &p.text("text")?) }))
    }),
    ("envelope.profile_for", |p| {
        Ok(json!({ "profile": profile_json(&Profile::for_model(&p.text("model")?)) }))
    }),
    ("envelope.render_block", |p| {
        let (block, nonce, profile) = (p.block("block")?, p.text("nonce")?, p.profile("profile")?);
        let text = prompt::render_block(&block, &nonce, &profile, prompt::SENTINEL);
        Ok(json!({ "text": text.map_err(|e| Failure::value(e.to_string()))? }))
    }),
    ("envelope.render_slots", |p| {
        let given = p.slots("slots")?;
        let (slots, profile) = (p.needed("slots", given)?, p.profile("profile")?);
        Ok(
            json!({ "text": prompt::render_slots(&slots, &profile).map_err(|e| Failure::value(e.to_string()))? }),
        )
    }),
    ("envelope.strip_autofetch", |p| Ok(json!({ "text": envelope::redact_autofetch(&p.text("text")?).0 }))),
    ("envelope.system", |p| {
        let system = p.text("system")?;
        Ok(json!({ "text": prompt::system_text(&system, &p.profile("profile")?) }))
    }),
    ("envelope.wrap", |p| {
        let (content, kind, origin) = (p.text("content")?, p.text("kind")?, p.text("origin")?);
        wrap(content, kind, origin)
    }),
    ("envelope.wrap_tool_result", |p| {
        let (content, tool) = (p.text("content")?, p.text("tool")?);
        wrap(content, "tool-result".into(), tool)
    }),
    ("family.bare_id", |p| Ok(json!({ "model": family::bare_id(&p.text("model")?) }))),
    ("family.cross_checker", |p| {
        let producer = p.text("producer")?;
        let given = p.texts("candidates")?;
        Ok(json!({ "model": family::cross_checker(&producer, &p.needed("candidates", given)?) }))
    }),
    ("family.of", |p| Ok(json!({ "family": family::of(&p.text("model")?) }))),
    ("family.provider_for", |p| Ok(json!({ "provider": family::provider_for(&p.text("family")?) }))),
    ("family.provider_of", |p| Ok(json!({ "provider": family::provider_of(&p.text("model")?) }))),
    ("family.resolve", |p| {
        let model = p.text_or_null("model")?.unwrap_or_default();
        let given = p.texts("candidates")?;
        let candidates = p.needed("candidates", given)?;
        Ok(
            json!({ "model": family::resolve(&model, &candidates).map_err(|e| Failure::value(e.to_string()))? }),
        )
    }),
    ("family.routing_id", |p| Ok(json!({ "model": family::routing_id(&p.text("model")?) }))),
    ("family.same", |p| {
        let a = p.text("a")?;
        Ok(json!({ "same": family::same(&a, &p.text("b")?) }))
    }),
    ("family.unknown_message", |p| Ok(json!({ "text": family::unknown_message(&p.text("model")?) }))),
    ("preflight.corpora", |_| Ok(json!({ "corpora": preflight::corpora() }))),
    ("preflight.run", preflight_run),
    ("probe.build", |p| {
        let nonce = Nonce::short();
        let (system, user) =
            probe::build(&p.profile("profile")?, &nonce).map_err(|e| Failure::value(e.to_string()))?;
        Ok(json!({ "system": system, "user": user, "nonce": nonce.as_str() }))
    }),
    ("probe.evaluate", |p| {
        let (response, nonce) = (p.text("response")?, p.text("nonce")?);
        let verdict = probe::evaluate(&Untrusted::new(&response), &nonce);
        Ok(json!({
            "compatible": verdict.compatible, "valid_json": verdict.valid_json, "correct_verdict": verdict.correct_verdict,
            "nonce_leaked": verdict.nonce_leaked, "raw_response": response, "error": verdict.error,
        }))
    }),
    ("redact.is_secret_name", |p| Ok(json!({ "secret": redaction::is_secret_name(&p.text("name")?) }))),
    ("redact.secrets", |p| redacted(p, redaction::free_text)),
    ("redact.urls", |p| redacted(p, redaction::urls)),
    ("rpc.info", |_| {
        let methods: Vec<&str> = METHODS.iter().map(|m| m.0).collect();
        Ok(json!({ "name": "jess", "version": env!("CARGO_PKG_VERSION"), "methods": methods }))
    }),
    ("sanitise.code", |p| {
        let text = p.text("text")?;
        Ok(
            json!({ "text": sanitise::report::code(&text, p.count("max_chars", sanitise::report::CODE_CHARS)?) }),
        )
    }),
    ("sanitise.escape", |p| {
        let text = p.text("text")?;
        Ok(json!({ "text": sanitise::escape(&text, p.flag("preserve_newlines", false)?) }))
    }),
    ("sanitise.harness", |p| {
        let text = p.text("text")?;
        let markers = p.texts("markers")?.unwrap_or_default();
        let markers: Vec<&str> = markers.iter().map(String::as_str).collect();
        let most = p.count("max_chars", sanitise::harness::CHARS)?;
        Ok(json!({ "text": sanitise::harness::text(&text, &markers, most) }))
    }),
    ("sanitise.has_nonprintable", |p| Ok(json!({ "found": sanitise::has_nonprintable(&p.text("text")?) }))),
    ("sanitise.string", |p| {
        let text = p.text("text")?;
        Ok(
            json!({ "text": sanitise::report::string(&text, p.count("max_chars", sanitise::report::STRING_CHARS)?) }),
        )
    }),
    ("sanitise.terminal", |p| {
        let text = p.text("text")?;
        Ok(json!({ "text": sanitise::terminal(&text, p.count("max_len", 256)?) }))
    }),
    ("trust.check", |p| trust_check(p, false)),
    ("trust.codeql_check", |p| trust_check(p, true)),
];

/// Calls `method`; parameters that it did not take are an error. `line` is the request as it is written.
pub(super) fn call(method: &str, params: Option<Value>, line: &str) -> Result<Body, Failure> {
    let Ok(index) = METHODS.binary_search_by(|m| m.0.cmp(method)) else {
        return Err(Failure::new("UnknownMethod", format!("no method '{}'", sanitise::terminal(method, 64))));
    };
    // What asks who answers need not know what to ask.
    let params = if method == "rpc.info" { params.or_else(|| Some(json!({}))) } else { params };
    let mut params = Params::new(params)?;
    let result = match METHODS.get(index) {
        Some((_, function)) => function(&mut params),
        None => return Err(Failure::new("Internal", "the method table has a hole")),
    };
    let result = result?;
    params.done()?;
    if method == "env.strip"
        && let Some(text) = stripped_as_written(line)
    {
        return Ok(Body::Written(text));
    }
    Ok(Body::Value(result))
}

/// The result of `env.strip` with each value as it is written in the request: a number that is read and written again
/// could be another one.
fn stripped_as_written(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Asked<'a> {
        #[serde(borrow)]
        params: Env<'a>,
    }
    #[derive(Deserialize)]
    struct Env<'a> {
        #[serde(borrow)]
        env: Vec<(String, &'a RawValue)>,
        names: Vec<String>,
    }
    #[derive(Serialize)]
    struct Kept<'a> {
        env: Vec<(String, &'a RawValue)>,
    }
    let Asked { params: Env { mut env, names } } = serde_json::from_str(line).ok()?;
    let names: HashSet<String> = names.into_iter().collect();
    env.retain(|(name, _)| !names.contains(name));
    serde_json::to_string(&Kept { env }).ok()
}

fn wrap(content: String, kind: String, origin: String) -> Answer {
    let nonce = Nonce::short();
    let block = prompt::Block {
        content: Untrusted::new(content),
        kind: Untrusted::new(kind),
        origin: Untrusted::new(origin),
    };
    let text = prompt::render_block(&block, nonce.as_str(), &Profile::conservative(), prompt::SENTINEL);
    Ok(json!({ "text": text.map_err(|e| Failure::value(e.to_string()))?, "nonce": nonce.as_str() }))
}

fn envelope_build(p: &mut Params) -> Answer {
    let (system, profile) = (p.text("system")?, p.profile("profile")?);
    let (blocks, slots) = (p.blocks("blocks")?, p.slots("slots")?.unwrap_or_default());
    let nonce = Nonce::short();
    let messages = prompt::build(&system, &profile, &blocks, &slots, &nonce)
        .map_err(|e| Failure::value(e.to_string()))?;
    let messages: Vec<Value> =
        messages.into_iter().map(|m| json!({ "role": m.role, "content": m.content })).collect();
    Ok(json!({ "messages": messages, "nonce": nonce.as_str() }))
}

fn profile_json(profile: &Profile) -> Value {
    json!({
        "name": profile.name, "tag_style": profile.tag_style.name(), "envelope_xml": profile.envelope_xml,
        "datamarking": profile.datamarking, "base64_code": profile.base64_code, "slot_discipline": profile.slot_discipline,
        "markdown_strip": profile.markdown_strip, "role_placement": profile.role_placement.name(),
    })
}

fn preflight_run(p: &mut Params) -> Answer {
    let (content, names, strict) = (p.text("content")?, p.texts("corpora")?, p.flag("strict", false)?);
    let loaded = preflight::corpora();
    if let Some(unknown) = names.iter().flatten().find(|n| !loaded.contains(&n.as_str())) {
        return Err(Failure::value(format!(
            "unknown corpus '{}'; loaded: {}",
            sanitise::terminal(unknown, 64),
            loaded.join(", ")
        )));
    }
    if strict && loaded.is_empty() {
        return Err(Failure::new("RuntimeError", "no injection corpora are loaded"));
    }
    let found = preflight::look(&content, names.as_deref());
    Ok(json!({
        "has_injection_indicators": !found.indicators.is_empty(), "indicators": found.indicators,
        "confidence_haircut": found.confidence_haircut,
    }))
}

fn redacted(p: &mut Params, clean: fn(&str) -> String) -> Answer {
    let text = p.text("text")?;
    Ok(if p.flag("reveal", false)? { json!({ "text": text }) } else { json!({ "text": clean(&text) }) })
}

/// Does the report's path belong to the CodeQL check?
fn is_codeql(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let pack = ["codeql-pack.yml", "codeql-pack.yaml", "qlpack.yml", "qlpack.yaml"].contains(&name);
    pack || path.contains(".github/codeql/")
}

fn trust_check(p: &mut Params, codeql: bool) -> Answer {
    let (repo, overridden, own) = (p.text("repo")?, p.flag("override", false)?, p.text_or_null("own_root")?);
    let nothing = json!({ "refuse": false, "report": "", "files": [] });
    if repo.is_empty() || repo.contains('\0') {
        return Ok(nothing);
    }
    let Ok(resolved) = std::fs::canonicalize(&repo) else { return Ok(nothing) };
    if own.is_some_and(|own| !own.is_empty() && std::fs::canonicalize(own).is_ok_and(|own| own == resolved)) {
        return Ok(nothing);
    }
    let subject = if codeql { "CodeQL pack config" } else { "Claude Code config" };
    let target = sanitise::terminal(&resolved.to_string_lossy(), 4096);
    let options = trust::Options { parents: false, home: None, ..trust::Options::default() };
    let report = match trust::check_with(&resolved, &options) {
        Ok(report) => report,
        // No verdict is a refusal.
        Err(error) => {
            let value = sanitise::terminal(&error.to_string(), 120);
            return Ok(json!({
                "refuse": !overridden,
                "report": format!("jess: {target} has dangerous {subject}:\n  .\n    oversized/unreadable  {value}\n"),
                "files": [{ "path": ".", "findings": [{ "label": "oversized/unreadable", "value": value, "blocking": true }] }],
            }));
        }
    };
    let silent = |f: &&trust::Finding| {
        f.blocking
            || !matches!(
                f.class,
                trust::report::Class::UnknownKey
                    | trust::report::Class::OtherAgent
                    | trust::report::Class::Note
            )
    };
    let files: Vec<(&str, Vec<&trust::Finding>)> = report
        .files()
        .filter(|(path, _)| is_codeql(path) == codeql)
        .map(|(path, findings)| (path, findings.iter().filter(silent).collect::<Vec<_>>()))
        .filter(|(_, findings)| !findings.is_empty())
        .collect();
    let blocking = files.iter().any(|(_, findings)| findings.iter().any(|f| f.blocking));
    let mut text = String::new();
    if !files.is_empty() {
        text = match (blocking, overridden) {
            (true, true) => format!("jess: {target} has dangerous {subject} (trust override active):\n"),
            (true, false) => format!("jess: {target} has dangerous {subject}:\n"),
            (false, _) => format!("jess: {target} has {subject}:\n"),
        };
    }
    for (path, findings) in &files {
        let width = findings.iter().map(|f| f.label.chars().count()).max().unwrap_or(0) + 2;
        text.push_str(&format!("  {path}\n"));
        for f in findings {
            text.push_str(&format!("    {:width$}{}\n", f.label, f.value));
        }
    }
    let listed: Vec<Value> = files
        .iter()
        .map(|(path, findings)| {
            let findings: Vec<Value> = findings
                .iter()
                .map(|f| json!({ "label": f.label, "value": f.value, "blocking": f.blocking }))
                .collect();
            json!({ "path": path, "findings": findings })
        })
        .collect();
    Ok(json!({ "refuse": blocking && !overridden, "report": text, "files": listed }))
}

#[cfg(test)]
pub(super) fn names() -> Vec<&'static str> {
    METHODS.iter().map(|m| m.0).collect()
}
