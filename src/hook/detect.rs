//! The scan of a tool's result, in the form that sealing needs.

/// What a scan said of a text.
#[derive(Debug, Default, Clone)]
pub struct Findings {
    /// Rules that matched, without repetition, at most [`RULES_MAX`].
    pub rules: Vec<String>,
    /// Whether the text must not reach the model even sealed.
    pub withhold: bool,
}

/// Most rules named.
pub const RULES_MAX: usize = 12;

/// Scans `text`.
pub fn look(_text: &str) -> Findings {
    Findings::default()
}
