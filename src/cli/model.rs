//! The arguments that say what a run may ask of the model, and spend on it.

use crate::dispatch::ModelSettings;
use crate::egress::{Action, Api, Budget, KeySource, ModelPolicy};

/// The model of a run.
#[derive(clap::Args, Debug, Default)]
pub struct ModelArgs {
    /// End the run before it costs more than this many US dollars, by jess's price table
    #[arg(long, value_name = "N", value_parser = dollars)]
    budget_usd: Option<f64>,
    /// End the run before it uses more than this many tokens, cached ones included
    #[arg(long, value_name = "N")]
    budget_tokens: Option<u64>,
    /// The session that this run belongs to, for the budgets of a session
    #[arg(long, value_name = "NAME", value_parser = name)]
    session: Option<String>,
    /// As --budget-usd, for all runs of the session
    #[arg(long, value_name = "N", value_parser = dollars, requires = "session")]
    session_budget_usd: Option<f64>,
    /// As --budget-tokens, for all runs of the session
    #[arg(long, value_name = "N", requires = "session")]
    session_budget_tokens: Option<u64>,
    /// As --budget-usd, for all runs of this user on one day (UTC)
    #[arg(long, value_name = "N", value_parser = dollars)]
    day_budget_usd: Option<f64>,
    /// As --budget-tokens, for all runs of this user on one day (UTC)
    #[arg(long, value_name = "N")]
    day_budget_tokens: Option<u64>,
    /// Allow this model, or with a * at the end the models that start so, and no other (may be repeated)
    #[arg(long, value_name = "MODEL")]
    allow_model: Vec<String>,
    /// Lower the max_tokens of every request to this
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// Where the model's key comes from: env:NAME, file:PATH, command:COMMAND or keyring:DESCRIPTION
    /// [default: ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN]
    #[arg(long, value_name = "SOURCE")]
    key: Option<KeySource>,
    /// A text planted in the target, which neither the model nor the results may hold: env:NAME, file:PATH or
    /// command:COMMAND (may be repeated)
    #[arg(long, value_name = "SOURCE")]
    canary: Vec<KeySource>,
    /// What happens to words of the model that hold a canary, a key or markup that fetches: mark, redact or stop
    /// [default: redact]
    #[arg(long, value_name = "ACTION")]
    on_leak: Option<Action>,
    /// The shape of the model's API: anthropic, bedrock, vertex or openai [default: anthropic]
    #[arg(long, value_name = "SHAPE")]
    model_api: Option<Api>,
    /// The base URL of the model's API [default: ANTHROPIC_BASE_URL, or Anthropic's own]
    #[arg(long, value_name = "URL")]
    model_url: Option<String>,
    /// Call a model that the agent asks for as NAME by another name at the API (may be repeated)
    #[arg(long, value_name = "NAME=THEIRS", value_parser = pair)]
    model_name: Vec<(String, String)>,
}

impl ModelArgs {
    /// The same for the library.
    pub fn settings(self) -> Result<ModelSettings, &'static str> {
        let session = Budget { usd: self.session_budget_usd, tokens: self.session_budget_tokens };
        let day = Budget { usd: self.day_budget_usd, tokens: self.day_budget_tokens };
        let set = |budget: Budget| budget != Budget::default();
        if self.session.is_some() && !set(session) {
            return Err("--session needs --session-budget-usd or --session-budget-tokens");
        }
        Ok(ModelSettings {
            api: self.model_api.unwrap_or_default(),
            url: self.model_url,
            names: self.model_name.into_iter().collect(),
            key: self.key,
            canaries: self.canary,
            on_leak: self.on_leak.unwrap_or_default(),
            policy: ModelPolicy {
                models: self.allow_model,
                max_tokens: self.max_tokens,
                ..ModelPolicy::default()
            },
            budget: Budget { usd: self.budget_usd, tokens: self.budget_tokens },
            session: self.session.map(|name| (name, session)),
            day: set(day).then_some(day),
        })
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    let amount: f64 = text.parse().map_err(|_| "not a number of dollars".to_owned())?;
    if (0.0..=1e9).contains(&amount) { Ok(amount) } else { Err("must be from 0 to 1,000,000,000".to_owned()) }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((ours, theirs)) if !ours.is_empty() && !theirs.is_empty() => {
            Ok((ours.to_owned(), theirs.to_owned()))
        }
        _ => Err("must be NAME=THEIRS".to_owned()),
    }
}

fn name(text: &str) -> Result<String, String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
    if (1..=64).contains(&text.len()) && text.bytes().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("must be 1 to 64 letters, digits, - or _".to_owned())
    }
}
