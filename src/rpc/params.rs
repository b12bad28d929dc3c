//! Parameters of a request, checked for type and name.

use super::Failure;
use crate::envelope::profile::{Profile, RolePlacement, TagStyle};
use crate::envelope::prompt::{Block, Slot};
use crate::untrusted::Untrusted;
use serde_json::{Map, Value};

/// The members of an object; each is taken once, and what is left over is an unknown parameter.
pub(super) struct Params {
    members: Map<String, Value>,
    place: &'static str,
}

type Result<T> = std::result::Result<T, Failure>;

impl Params {
    pub(super) fn new(params: Option<Value>) -> Result<Params> {
        match params {
            Some(Value::Object(members)) => Ok(Params { members, place: "params" }),
            _ => Err(Failure::params("\"params\" must be an object")),
        }
    }

    fn inner(value: Value, place: &'static str) -> Result<Params> {
        match value {
            Value::Object(members) => Ok(Params { members, place }),
            _ => Err(Failure::params(format!("{place} must be an object"))),
        }
    }

    /// Fails when anything was given that the method does not know.
    pub(super) fn done(self) -> Result<()> {
        match self.members.keys().next() {
            None => Ok(()),
            Some(name) => Err(Failure::params(format!(
                "unknown parameter in {}: {}",
                self.place,
                crate::sanitise::terminal(name, 64)
            ))),
        }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.members.swap_remove(name).filter(|v| !v.is_null())
    }

    fn wrong(&self, name: &str, wanted: &str) -> Failure {
        Failure::params(format!("{} in {} must be {wanted}", name, self.place))
    }

    pub(super) fn text(&mut self, name: &str) -> Result<String> {
        match self.take(name) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(self.wrong(name, "a string")),
        }
    }

    pub(super) fn text_or_null(&mut self, name: &str) -> Result<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "a string or null")),
        }
    }

    pub(super) fn flag(&mut self, name: &str, default: bool) -> Result<bool> {
        match self.take(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    pub(super) fn count(&mut self, name: &str, default: usize) -> Result<usize> {
        match self.take(name) {
            None => Ok(default),
            Some(value) => value
                .as_u64()
                .and_then(|n| usize::try_from(n).ok())
                .ok_or_else(|| self.wrong(name, "a non-negative integer")),
        }
    }

    pub(super) fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(self.wrong(name, "an array")),
        }
    }

    pub(super) fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(list) = self.list(name)? else { return Ok(None) };
        let texts = list.into_iter().map(|value| match value {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong(name, "an array of strings")),
        });
        texts.collect::<Result<Vec<_>>>().map(Some)
    }

    pub(super) fn needed<T>(&self, name: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| Failure::params(format!("{name} is missing in {}", self.place)))
    }

    pub(super) fn profile(&mut self, name: &str) -> Result<Profile> {
        let given = self.take(name);
        let mut inner = Params::inner(self.needed(name, given)?, "profile")?;
        let label = inner.text("name")?;
        let style = inner.text("tag_style")?;
        let placement = inner.text_or_null("role_placement")?;
        let profile = Profile {
            name: label,
            tag_style: TagStyle::NonceOnly,
            envelope_xml: inner.flag("envelope_xml", true)?,
            datamarking: inner.flag("datamarking", false)?,
            base64_code: inner.flag("base64_code", false)?,
            slot_discipline: inner.flag("slot_discipline", true)?,
            markdown_strip: inner.flag("markdown_strip", true)?,
            role_placement: RolePlacement::UserOnly,
        };
        inner.done()?;
        let shown = |text: &str| crate::sanitise::terminal(text, 64);
        let tag_style = TagStyle::parse(&style)
            .ok_or_else(|| Failure::value(format!("unknown tag_style '{}'", shown(&style))))?;
        let role_placement = match placement {
            None => RolePlacement::UserOnly,
            Some(name) => RolePlacement::parse(&name)
                .ok_or_else(|| Failure::value(format!("unknown role_placement '{}'", shown(&name))))?,
        };
        Ok(Profile { tag_style, role_placement, ..profile })
    }

    pub(super) fn block(&mut self, name: &str) -> Result<Block> {
        let given = self.take(name);
        block(self.needed(name, given)?)
    }

    pub(super) fn blocks(&mut self, name: &str) -> Result<Vec<Block>> {
        self.list(name)?.unwrap_or_default().into_iter().map(block).collect()
    }

    pub(super) fn slots(&mut self, name: &str) -> Result<Option<Vec<Slot>>> {
        let Some(list) = self.list(name)? else { return Ok(None) };
        list.into_iter().map(slot).collect::<Result<Vec<_>>>().map(Some)
    }

    /// Pairs of a name and any JSON value.
    pub(super) fn env(&mut self, name: &str) -> Result<Vec<(String, Value)>> {
        let given = self.list(name)?;
        let list = self.needed(name, given)?;
        list.into_iter()
            .map(|pair| match pair {
                Value::Array(pair) => match <[Value; 2]>::try_from(pair) {
                    Ok([Value::String(name), value]) => Ok((name, value)),
                    _ => Err(self.wrong(name, "an array of [name, value] pairs")),
                },
                _ => Err(self.wrong(name, "an array of [name, value] pairs")),
            })
            .collect()
    }
}

fn block(value: Value) -> Result<Block> {
    let mut inner = Params::inner(value, "block")?;
    let block = Block {
        content: Untrusted::new(inner.text("content")?),
        kind: Untrusted::new(inner.text("kind")?),
        origin: Untrusted::new(inner.text("origin")?),
    };
    inner.done()?;
    Ok(block)
}

fn slot(value: Value) -> Result<Slot> {
    let mut inner = Params::inner(value, "slot")?;
    let name = Untrusted::new(inner.text("name")?);
    let value = Untrusted::new(inner.text("value")?);
    let trust = inner.text("trust")?;
    inner.done()?;
    let trusted = match trust.as_str() {
        "trusted" => true,
        "untrusted" => false,
        _ => return Err(Failure::value("trust must be exactly 'trusted' or 'untrusted'")),
    };
    Ok(Slot { name, value, trusted })
}
