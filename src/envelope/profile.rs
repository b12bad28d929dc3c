//! How a model family takes its envelope.

use super::family;

/// The tags that a block stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagStyle {
    /// `<untrusted-NONCE …>` … `</untrusted-NONCE>`: the only style whose closing tag cannot be guessed.
    NonceOnly,
    /// `<document index="NONCE">` with source and content.
    AnthropicDocument,
    /// `<untrusted_text id="NONCE" …>`.
    OpenaiUntrustedText,
    /// `[MARK_INPT]` … `[/MARK_INPT]`; carries no nonce.
    SecAlign,
    /// `BEGIN_KIND` … `END_KIND`; carries no nonce.
    BeginEndMarker,
    /// Lines of dashes, for models that do not take tags; carries no nonce.
    Passthrough,
}

impl TagStyle {
    const NAMES: [(TagStyle, &'static str); 6] = [
        (TagStyle::NonceOnly, "nonce-only"),
        (TagStyle::AnthropicDocument, "anthropic-document"),
        (TagStyle::OpenaiUntrustedText, "openai-untrusted-text"),
        (TagStyle::SecAlign, "secalign"),
        (TagStyle::BeginEndMarker, "begin-end-marker"),
        (TagStyle::Passthrough, "passthrough"),
    ];

    /// The style of this name.
    pub fn parse(name: &str) -> Option<TagStyle> {
        TagStyle::NAMES.iter().find(|(_, known)| *known == name).map(|(style, _)| *style)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        TagStyle::NAMES.iter().find(|(style, _)| *style == self).map_or("nonce-only", |(_, name)| name)
    }
}

/// Which message the system text goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolePlacement {
    /// A system message, and a user message with the untrusted part.
    UserOnly,
    /// One user message with both, for models without a system role.
    UserOrSystem,
}

impl RolePlacement {
    /// The placement of this name.
    pub fn parse(name: &str) -> Option<RolePlacement> {
        match name {
            "user-only" => Some(RolePlacement::UserOnly),
            "user-or-system" => Some(RolePlacement::UserOrSystem),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            RolePlacement::UserOnly => "user-only",
            RolePlacement::UserOrSystem => "user-or-system",
        }
    }
}

/// What is done to a block for one model family. The name is a label; behaviour follows the other fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Label.
    pub name: String,
    /// Tags.
    pub tag_style: TagStyle,
    /// The model takes XML tags.
    pub envelope_xml: bool,
    /// A sentinel stands after each white space of the content.
    pub datamarking: bool,
    /// The content is base64.
    pub base64_code: bool,
    /// Identifiers come in `<slot>` elements.
    pub slot_discipline: bool,
    /// Fetching markup is taken out.
    pub markdown_strip: bool,
    /// Where the system text goes.
    pub role_placement: RolePlacement,
}

impl Profile {
    fn of(name: &str, tag_style: TagStyle, datamarking: bool, base64_code: bool) -> Profile {
        let passthrough = tag_style == TagStyle::Passthrough;
        Profile {
            name: name.to_string(),
            tag_style,
            envelope_xml: !passthrough,
            datamarking,
            base64_code,
            slot_discipline: !passthrough,
            markdown_strip: true,
            role_placement: RolePlacement::UserOnly,
        }
    }

    /// For models that nothing is known of: a nonce and plain content.
    pub fn conservative() -> Profile {
        Profile::of("conservative", TagStyle::NonceOnly, false, false)
    }

    /// For a model that fails the probe and an operator who accepts that.
    pub fn passthrough() -> Profile {
        Profile::of("passthrough", TagStyle::Passthrough, false, false)
    }

    /// The built-in profile of a model id; conservative when the id is not known.
    ///
    /// The table has datamarking and base64 on where model vendors' own work supports them. Together they make current
    /// Claude models refuse extraction tasks, so jess's own commands switch both off unless asked ([`Profile::plain`]).
    pub fn for_model(model: &str) -> Profile {
        let lower = model.to_lowercase();
        let bare = family::bare_id(&lower);
        [lower.as_str(), bare.as_str()].into_iter().find_map(by_prefix).unwrap_or_else(Profile::conservative)
    }

    /// The same profile with the content left readable: no sentinels, no base64.
    pub fn plain(self) -> Profile {
        Profile { datamarking: false, base64_code: false, ..self }
    }
}

fn by_prefix(id: &str) -> Option<Profile> {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|p| id.starts_with(p));
    Some(if starts(&["claude-", "anthropic/"]) {
        Profile::of("anthropic-claude", TagStyle::NonceOnly, true, true)
    } else if starts(&["gpt-", "openai/", "o1-", "o3-", "o4-"]) {
        Profile::of("openai-gpt", TagStyle::OpenaiUntrustedText, true, true)
    } else if starts(&["gemini-", "gemini/", "google/"]) {
        Profile::of("google-gemini", TagStyle::NonceOnly, true, true)
    } else if starts(&["llama-", "meta-llama/"]) {
        Profile::of("meta-llama", TagStyle::NonceOnly, true, false)
    } else if starts(&["ollama/"]) {
        Profile::of("ollama-small", TagStyle::NonceOnly, false, false)
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_of_the_table_leads_to_its_own_profile() {
        // A prefix that another one shadows would lead elsewhere.
        for (prefixes, name) in [
            (&["claude-", "anthropic/"][..], "anthropic-claude"),
            (&["gpt-", "openai/", "o1-", "o3-", "o4-"], "openai-gpt"),
            (&["gemini-", "gemini/", "google/"], "google-gemini"),
            (&["llama-", "meta-llama/"], "meta-llama"),
            (&["ollama/"], "ollama-small"),
        ] {
            for prefix in prefixes {
                assert_eq!(Profile::for_model(&format!("{prefix}x")).name, name, "{prefix}");
                assert_eq!(Profile::for_model(&prefix.to_uppercase()).name, name, "{prefix}");
            }
        }
    }

    #[test]
    fn models_find_their_profile_behind_prefixes_and_in_any_case() {
        for (model, name) in [
            ("claude-opus-4", "anthropic-claude"),
            ("Anthropic/claude-x", "anthropic-claude"),
            ("bedrock/us.anthropic.claude-x", "anthropic-claude"),
            ("openrouter/openai/gpt-5", "openai-gpt"),
            ("o3-mini", "openai-gpt"),
            ("GEMINI-2.5-pro", "google-gemini"),
            ("together/meta-llama/llama-3", "meta-llama"),
            ("ollama/qwen", "ollama-small"),
            ("", "conservative"),
            ("unheard-of", "conservative"),
        ] {
            assert_eq!(Profile::for_model(model).name, name, "{model}");
        }
    }
}
