//! Which vendor a model id belongs to, behind aggregators and regional prefixes.

/// How many prefixes an id may wear.
const PEELS: usize = 5;
const REGIONS: &[&str] = &["us.", "eu.", "au.", "apac.", "global."];
const VENDORS: &[(&str, &str)] =
    &[("anthropic.", "anthropic"), ("meta.", "meta"), ("mistral.", "mistral"), ("cohere.", "cohere")];
const AGGREGATORS: &[&str] = &[
    "together/",
    "groq/",
    "openrouter/",
    "orcarouter/",
    "fireworks/",
    "deepinfra/",
    "perplexity/",
    "replicate/",
    "bedrock/",
];
const PROVIDERS: &[(&str, &str)] = &[
    ("anthropic/", "anthropic"),
    ("openai/", "openai"),
    ("gemini/", "google"),
    ("google/", "google"),
    ("meta-llama/", "meta"),
    ("mistral/", "mistral"),
    ("mistralai/", "mistral"),
    ("ollama/", "ollama"),
    ("cohere/", "cohere"),
];
const STEMS: &[(&str, &str)] = &[
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini", "google"),
    ("llama", "meta"),
    ("mistral", "mistral"),
    ("mixtral", "mistral"),
    ("command", "cohere"),
];

/// `text` without `prefix`, compared without regard to ASCII case.
fn strip<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    text.get(..prefix.len()).filter(|head| head.eq_ignore_ascii_case(prefix))?;
    text.get(prefix.len()..)
}

/// The id without its prefixes, and the family that a vendor segment names.
fn peel(model: &str) -> (&str, Option<&'static str>) {
    let mut rest = model;
    let mut vendor = None;
    for _ in 0..PEELS {
        if let Some(inner) = REGIONS.iter().chain(AGGREGATORS).find_map(|p| strip(rest, p)) {
            rest = inner;
        } else if let Some((inner, family)) =
            VENDORS.iter().find_map(|(p, f)| strip(rest, p).map(|r| (r, *f)))
        {
            rest = inner;
            vendor = vendor.or(Some(family));
        } else {
            break;
        }
    }
    (rest, vendor)
}

/// The family of a model id: anthropic, openai, google, meta, mistral, ollama, cohere or unknown.
pub fn of(model: &str) -> &'static str {
    let (rest, vendor) = peel(model);
    if let Some(family) = vendor {
        return family;
    }
    if let Some((_, family)) = PROVIDERS.iter().find(|(p, _)| strip(rest, p).is_some()) {
        return family;
    }
    STEMS
        .iter()
        .find(|(stem, _)| strip(rest, stem).is_some_and(|tail| tail.is_empty() || tail.starts_with('-')))
        .map_or("unknown", |(_, family)| family)
}

/// Are both of one known family?
pub fn same(a: &str, b: &str) -> bool {
    of(a) != "unknown" && of(a) == of(b)
}

/// The id without region, vendor, aggregator and provider; its case is kept.
pub fn bare_id(model: &str) -> String {
    let (rest, _) = peel(model);
    let bare = ["anthropic/", "openai/", "gemini/", "ollama/", "mistral/", "cohere/"]
        .iter()
        .find_map(|provider| strip(rest, provider))
        .unwrap_or(rest);
    bare.to_string()
}

/// The id as the provider behind the aggregators wants it.
pub fn routing_id(model: &str) -> String {
    let mut rest = model;
    for _ in 0..PEELS {
        match AGGREGATORS.iter().find_map(|p| strip(rest, p)) {
            Some(inner) => rest = inner,
            None => break,
        }
    }
    rest.to_string()
}

/// Who serves the model: `bedrock` when a vendor segment is there, else the family's provider.
pub fn provider_of(model: &str) -> &'static str {
    if peel(model).1.is_some() { "bedrock" } else { provider_for(of(model)) }
}

/// Who serves a family; empty when nobody is known.
pub fn provider_for(family: &str) -> &'static str {
    match family {
        "anthropic" => "anthropic",
        "openai" => "openai",
        "google" => "gemini",
        "meta" | "ollama" => "ollama",
        "mistral" => "mistral",
        "cohere" => "cohere",
        _ => "",
    }
}

/// A shorthand fits more than one model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ambiguous model shorthand '{model}': matches {names}. Pass the full model name to disambiguate.")]
pub struct Ambiguous {
    /// The shorthand.
    pub model: String,
    /// What it fits, sorted, comma-separated.
    pub names: String,
}

/// The candidate that a shorthand (one hyphen token of its bare id, at least three characters, no number) means.
pub fn resolve(model: &str, candidates: &[String]) -> Result<Option<String>, Ambiguous> {
    let wanted = model.to_lowercase();
    if wanted.chars().count() < 3 || wanted.contains(['/', '.']) || wanted.chars().all(char::is_numeric) {
        return Ok(None);
    }
    let mut fits: Vec<&String> = candidates
        .iter()
        .filter(|c| !c.is_empty())
        .filter(|c| bare_id(c).to_lowercase().replace('.', "-").split('-').any(|token| token == wanted))
        .collect();
    fits.sort();
    fits.dedup();
    match fits.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some((*one).clone())),
        many => Err(Ambiguous {
            model: model.to_string(),
            names: many.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(", "),
        }),
    }
}

/// One line for the operator about an id that no family claims.
pub fn unknown_message(model: &str) -> String {
    format!(
        "cannot tell the family of model '{}'; write it as claude-…, gpt-…, or provider/model",
        crate::sanitise::terminal(model, 256)
    )
}

/// The first candidate of another, known family.
pub fn cross_checker(producer: &str, candidates: &[String]) -> Option<String> {
    let own = of(producer);
    candidates.iter().find(|c| of(c) != "unknown" && of(c) != own).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_ids_keep_their_family_and_are_served_by_bedrock() {
        assert_eq!(of("bedrock/us.anthropic.claude-x"), "anthropic");
        assert_eq!(provider_of("bedrock/us.anthropic.claude-x"), "bedrock");
        assert_eq!(of("openrouter/mistralai/mixtral-8x7b"), "mistral");
        assert_eq!(of("O3"), "openai");
        assert_eq!(of("o30"), "unknown");
        assert_eq!(routing_id("bedrock/anthropic.claude-x"), "anthropic.claude-x");
        assert_eq!(bare_id("openrouter/openai/GPT-5"), "GPT-5");
        assert!(!same("x", "x") && same("claude-1", "anthropic/y"));
    }

    #[test]
    fn a_shorthand_means_one_candidate_or_is_refused() {
        let list: Vec<String> =
            ["claude-opus-4", "claude-haiku-4", "", "claude-opus-4"].iter().map(|s| s.to_string()).collect();
        assert_eq!(resolve("opus", &list).unwrap().as_deref(), Some("claude-opus-4"));
        assert_eq!(resolve("op", &list).unwrap(), None);
        let error = resolve("claude", &list).unwrap_err().to_string();
        assert!(
            error.starts_with("ambiguous model shorthand 'claude': matches claude-haiku-4, claude-opus-4. "),
            "{error}"
        );
    }

    #[test]
    fn the_checker_is_the_first_of_another_known_family() {
        let list: Vec<String> =
            ["x", "claude-2", "gpt-5", "gemini-1"].iter().map(|s| s.to_string()).collect();
        assert_eq!(cross_checker("claude-1", &list).as_deref(), Some("gpt-5"));
        assert_eq!(cross_checker("claude-1", &list[..2]), None);
    }
}
