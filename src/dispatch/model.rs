//! The model of a run: where it is, its key, what may be asked and spent.

use super::{Error, PORT};
use crate::audit;
use crate::egress::{Action, Api, Budget, Config, Credential, KeySource, ModelPolicy, ModelUpstream, Scope};
use crate::sandbox::env;
use std::collections::HashMap;
use std::ffi::OsString;
use std::time::{SystemTime, UNIX_EPOCH};
use zeroize::Zeroizing;

/// What the operator's environment says about an API: the variables that may hold the key, in the order in which they
/// count, the one that may hold the URL, and the URL where it doesn't.
struct Known {
    keys: &'static [&'static str],
    url: &'static str,
    default: Option<&'static str>,
}

/// Shortest canary, in bytes.
const CANARY_MIN: usize = 8;

/// Every variable that may hold a key of the operator for a model.
pub(super) const KEY_VARIABLES: [&str; 5] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "OPENAI_API_KEY",
];

fn known(api: Api) -> Known {
    let (keys, url, default): (&[_], _, _) = match api {
        Api::Anthropic => (
            &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
            "ANTHROPIC_BASE_URL",
            Some("https://api.anthropic.com"),
        ),
        Api::Bedrock => (&["AWS_BEARER_TOKEN_BEDROCK"], "ANTHROPIC_BEDROCK_BASE_URL", None),
        Api::Vertex => (&[], "ANTHROPIC_VERTEX_BASE_URL", None),
        Api::OpenAi => (&["OPENAI_API_KEY"], "OPENAI_BASE_URL", Some("https://api.openai.com/v1")),
    };
    Known { keys, url, default }
}

/// What the operator says about the model.
#[derive(Debug, Clone, Default)]
pub struct ModelSettings {
    /// The shape of its API.
    pub api: Api,
    /// Its API. `None`: what the operator's environment names, or the provider's own.
    pub url: Option<String>,
    /// Other names of models: what the agent asks for, and what the API calls it.
    pub names: HashMap<String, String>,
    /// Where the key comes from. `None`: the operator's environment.
    pub key: Option<KeySource>,
    /// Texts that were planted in the target: neither the model nor the results may hold them.
    pub canaries: Vec<KeySource>,
    /// What happens to words of the model that must not leave.
    pub on_leak: Action,
    /// What may be asked for.
    pub policy: ModelPolicy,
    /// What the run may spend.
    pub budget: Budget,
    /// The session that the run belongs to, and what that may spend.
    pub session: Option<(String, Budget)>,
    /// What all runs of this user may spend in a day (UTC).
    pub day: Option<Budget>,
}

impl ModelSettings {
    /// Whether there is a key. Nothing is read: the sandbox is not split off yet.
    pub(super) fn has_key(&self) -> bool {
        self.key.is_some() || known(self.api).keys.iter().any(|name| crate::sandbox::env::process_has(name))
    }

    /// What an agent of this API's own kind needs to find the gateway, besides what every agent gets.
    pub(super) fn environment(&self, environment: &mut Vec<(OsString, OsString)>, placeholder: &str) {
        if self.api == Api::OpenAi {
            let base = format!("http://127.0.0.1:{PORT}/v1");
            env::set(environment, "OPENAI_BASE_URL", base);
            env::set(environment, "OPENAI_API_KEY", placeholder);
        }
    }

    /// Whether the operator said something about a model, so that a run without one is not what was meant.
    pub(super) fn is_asked_for(&self) -> bool {
        self.url.is_some() || self.api != Api::Anthropic || self.budget != Budget::default()
    }

    /// The budgets that are shared with other runs.
    pub(super) fn scopes(&self) -> Result<Vec<Scope>, Error> {
        let mut scopes = Vec::new();
        let mut add = |name: String, flag, budget| -> Result<(), Error> {
            let dir = audit::state::dir(|name| std::env::var(name).ok()).ok_or(Error::NoState)?.join("spend");
            let failed = |reason| Error::Spend { path: dir.clone(), reason };
            scopes.push(Scope::new(&dir, &name, flag, budget).map_err(failed)?);
            Ok(())
        };
        if let Some((name, budget)) = &self.session {
            let flag = flag(*budget, "--session-budget-usd", "--session-budget-tokens");
            add(format!("session {name}"), flag, *budget)?;
        }
        if let Some(budget) = self.day {
            let flag = flag(budget, "--day-budget-usd", "--day-budget-tokens");
            add(format!("day {}", today()), flag, budget)?;
        }
        Ok(scopes)
    }

    /// Reads the canaries: called after the sandbox was split off.
    pub(super) fn canaries(&self) -> Result<Vec<Zeroizing<String>>, Error> {
        let read = |source: &KeySource| {
            let failed = |reason: String| Error::Canary { place: source.to_string(), reason };
            let text = source.read().map_err(|e| failed(e.to_string()))?;
            if text.len() < CANARY_MIN {
                return Err(failed(format!(
                    "it has fewer than {CANARY_MIN} bytes, which ordinary text may have too"
                )));
            }
            Credential::new(text.as_str()).map_err(|_| failed("it must be one line of ASCII".to_owned()))?;
            Ok(text)
        };
        self.canaries.iter().map(read).collect()
    }

    /// Adds the model to the door; `marks` are texts that the model has no reason to write. Reads the key: called after the sandbox was split off.
    pub(super) fn add_to(
        &self,
        config: &mut Config,
        placeholder: &str,
        marks: &[&str],
        scopes: Vec<Scope>,
    ) -> Result<(), Error> {
        let known = known(self.api);
        let url = self.url.clone().or_else(|| std::env::var(known.url).ok());
        let url = url.filter(|url| !url.is_empty());
        let url = url.as_deref().or(known.default).ok_or(Error::NoUrl)?;
        let upstream = ModelUpstream::new(url, self.credential()?, placeholder)?;
        config.model = Some(upstream.speaking(self.api).with_names(self.names.clone()));
        config.inspection.action = self.on_leak;
        for unwritten in marks.iter().copied().chain([placeholder]) {
            config.inspection.secrets.push(Credential::new(unwritten)?);
        }
        config.model_policy = self.policy.clone();
        config.budget = self.budget;
        config.scopes = scopes;
        Ok(())
    }

    fn credential(&self) -> Result<Credential, Error> {
        if let Some(source) = &self.key {
            return Ok(Credential::new(source.read()?.as_str())?);
        }
        let set = |name: &&'static str| Some((*name, std::env::var(name).ok().filter(|v| !v.is_empty())?));
        let (name, secret) = known(self.api).keys.iter().find_map(set).ok_or(Error::NoKey)?;
        Ok(if name == "ANTHROPIC_API_KEY" { Credential::new(secret)? } else { Credential::bearer(secret)? })
    }
}

/// The flag that sets a budget.
fn flag(budget: Budget, dollars: &'static str, tokens: &'static str) -> &'static str {
    if budget.usd.is_some() { dollars } else { tokens }
}

/// The date of now in UTC, `YYYY-MM-DD`.
fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(now.as_secs() / 86_400)
}

/// The Gregorian date of a day since 1970-01-01 (Hinnant's days-from-civil, reversed).
fn date(days: u64) -> String {
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (days, text) in
            [(0, "1970-01-01"), (11_016, "2000-02-29"), (11_017, "2000-03-01"), (20_787, "2026-11-30")]
        {
            assert_eq!(date(days), text);
        }
    }
}
