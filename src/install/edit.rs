//! Settings changed in place: comments, order, indentation and everything else stay.

use super::client::is_ours;
use crate::hook::managed::EVENTS;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

/// The settings with a group of the hook for each event, and none of an earlier installation.
pub fn add(text: &str, group: &dyn Fn(&str) -> Value) -> Result<String, String> {
    let cleaned = remove(text)?;
    let text = cleaned.as_deref().unwrap_or(text);
    let (root, object) = parse(text)?;
    if flag(&object, "disableAllHooks") {
        return Err("it says disableAllHooks: true, so no hook would run; take that out".into());
    }
    let hooks = match object.get("hooks") {
        Some(_) => object.object_value("hooks").ok_or("its `hooks` is no object")?,
        None => object.object_value_or_set("hooks"),
    };
    for event in EVENTS.iter() {
        let groups = match hooks.get(event) {
            Some(_) => hooks.array_value(event).ok_or_else(|| format!("its hooks.{event} is no array"))?,
            None => hooks.array_value_or_set(event),
        };
        groups.append(input(&group(event)));
    }
    Ok(root.to_string())
}

/// The settings without the hook; `None` when it is not in them.
pub fn remove(text: &str) -> Result<Option<String>, String> {
    let (root, object) = parse(text)?;
    let Some(hooks) = object.object_value("hooks") else { return Ok(None) };
    let mut any = false;
    for property in hooks.properties() {
        let Some(groups) = property.array_value() else { continue };
        let removed = remove_from(&groups);
        any |= removed;
        if removed && groups.elements().is_empty() {
            property.remove();
        }
    }
    if any
        && hooks.properties().is_empty()
        && let Some(property) = object.get("hooks")
    {
        property.remove();
    }
    Ok(any.then(|| root.to_string()))
}

/// Takes the handlers out of an event's groups, and groups that held nothing else.
fn remove_from(groups: &CstArray) -> bool {
    let mut any = false;
    for group in groups.elements() {
        let Some(handlers) = group.as_object().and_then(|g| g.array_value("hooks")) else { continue };
        let ours: Vec<_> = handlers
            .elements()
            .into_iter()
            .filter(|h| h.to_serde_value().is_some_and(|v| is_ours(&v)))
            .collect();
        if ours.is_empty() {
            continue;
        }
        any = true;
        ours.into_iter().for_each(|h| h.remove());
        if handlers.elements().is_empty() {
            group.remove();
        }
    }
    any
}

fn parse(text: &str) -> Result<(CstRootNode, CstObject), String> {
    // Refused before it is parsed: the parser here recurses.
    if depth(text) > 64 {
        return Err("it is nested deeper than 64 levels".into());
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root =
        CstRootNode::parse(text, &ParseOptions::default()).map_err(|e| format!("it is not JSON: {e}"))?;
    let object = root.object_value().ok_or("it is no JSON object")?;
    Ok((root, object))
}

/// Most brackets open at once, strings left out of account.
fn depth(text: &str) -> usize {
    let (mut now, mut most): (usize, usize) = (0, 0);
    for b in text.bytes() {
        match b {
            b'{' | b'[' => now += 1,
            b'}' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

fn flag(object: &CstObject, name: &str) -> bool {
    object.get(name).and_then(|p| p.value()).and_then(|v| v.to_serde_value()) == Some(Value::Bool(true))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(b) => CstInputValue::Bool(*b),
        Value::Number(n) => CstInputValue::Number(n.to_string()),
        Value::String(s) => CstInputValue::String(s.clone()),
        Value::Array(a) => CstInputValue::Array(a.iter().map(input).collect()),
        Value::Object(o) => CstInputValue::Object(o.iter().map(|(k, v)| (k.clone(), input(v))).collect()),
    }
}
