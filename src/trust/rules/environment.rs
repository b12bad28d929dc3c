//! Environment variables that a settings file may not set: names by set, by prefix and by pattern.

use super::variables::{HARMLESS, MODEL_NAMES, NAMES, PREFIXES, SUFFIXES};
use super::{Sink, truthy};
use crate::trust::mask;
use crate::trust::report::Class;
use serde_json::Value;

/// Judges the value of an `env` key. Names are compared without regard to case; values are never shown.
pub fn check(sink: &mut Sink, value: &Value) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                if dangerous(name, &text) {
                    sink.names_scripts(&Value::from(text.as_str()));
                    sink.block(Class::Environment, format!("env {}", mask::name(name)), mask::hidden(&text));
                }
            }
        }
        other if truthy(other) => {
            sink.block(Class::Environment, "env (unrecognised shape)", mask::json(other));
        }
        _ => {}
    }
}

/// True when setting `name` to `value` steers the client, or a program that it starts.
pub fn dangerous(name: &str, value: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let harmless = HARMLESS.contains(&upper.as_str())
        || (upper == "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB" && truthy_text(value))
        || (MODEL_NAMES.contains(&upper.as_str()) && plain_model_name(value));
    if harmless {
        return false;
    }
    NAMES.contains(&upper.as_str())
        || PREFIXES.iter().any(|p| upper.starts_with(p))
        || SUFFIXES.iter().any(|s| upper.ends_with(s))
        || !portable_name(name)
        || value.trim_start().starts_with("() {")
}

fn truthy_text(value: &str) -> bool {
    !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off")
}

/// A name a shell could export. Anything else (`BASH_FUNC_x%%`, `A=B`, controls) has a use of its own.
fn portable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A model's name, and no ARN, path or URL that would send the conversation elsewhere.
fn plain_model_name(value: &str) -> bool {
    value.len() <= 64
        && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '[' | ']' | '@'))
}

#[cfg(test)]
mod tests {
    use super::dangerous;

    #[test]
    fn names_are_compared_without_case_and_by_prefix() {
        for name in [
            "http_proxy",
            "Ld_Preload",
            "anthropic_base_url",
            "npm_config_registry",
            "SAGE_X",
            "MY_HTTP_PROXY",
        ] {
            assert!(dangerous(name, "x"), "{name}");
        }
    }

    #[test]
    fn names_that_merely_contain_one_pass() {
        for name in [
            "APP_PATH_PREFIX",
            "DATABASE_URL",
            "NODE_ENV",
            "MY_LD_PRELOAD_NOTE",
            "HOMEPAGE",
            "PORT",
            "DEBUG",
            "AWS_REGION",
        ] {
            assert!(!dangerous(name, "x"), "{name}");
        }
    }

    #[test]
    fn a_model_name_passes_and_an_arn_does_not() {
        assert!(!dangerous("ANTHROPIC_MODEL", "claude-sonnet-4-5[1m]"));
        assert!(dangerous("ANTHROPIC_MODEL", "arn:aws:bedrock:us-east-1:1:inference-profile/x"));
    }

    #[test]
    fn names_no_shell_could_export_are_dangerous() {
        for name in ["", "A=B", "A B", "1A", "BASH_FUNC_ls%%", "A\u{1b}"] {
            assert!(dangerous(name, "x"), "{name:?}");
        }
    }
}
