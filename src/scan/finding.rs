//! What a scan reports.

pub use crate::severity::Severity;
use crate::untrusted::Untrusted;
use std::borrow::Cow;

/// Where in a document a finding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Context {
    /// Running text, or a format that is not told apart.
    Prose,
    /// An HTML or Markdown comment.
    Comment,
    /// Text that a browser does not show.
    Hidden,
    /// Metadata at the head of a document.
    Frontmatter,
    /// A block quote.
    Quote,
    /// A table cell.
    Table,
    /// A code span.
    CodeSpan,
    /// A closed code fence.
    Fence,
    /// A parsed value of a known kind of file.
    Structural,
}

impl Context {
    /// The factor that the context puts on a finding's confidence.
    pub const fn factor(self) -> f32 {
        match self {
            Context::Prose | Context::Comment | Context::Hidden | Context::Structural => 1.0,
            Context::Frontmatter | Context::Quote => 0.9,
            Context::Table | Context::CodeSpan => 0.4,
            Context::Fence => 0.3,
        }
    }

    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Context::Prose => "prose",
            Context::Comment => "comment",
            Context::Hidden => "hidden",
            Context::Frontmatter => "frontmatter",
            Context::Quote => "quote",
            Context::Table => "table",
            Context::CodeSpan => "code-span",
            Context::Fence => "fence",
            Context::Structural => "structural",
        }
    }
}

/// One place in a text that addresses a model, or gives an agent what it should not have.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Stable ID of the rule.
    pub rule: Cow<'static, str>,
    /// Name of the rule.
    pub name: Cow<'static, str>,
    /// Category of the rule.
    pub category: Cow<'static, str>,
    /// Severity of the rule.
    pub severity: Severity,
    /// From 0 to 1: how sure the scanner is that this is meant, given view and context.
    pub confidence: f32,
    /// First byte in the original text.
    pub start: usize,
    /// One past the last byte in the original text.
    pub end: usize,
    /// What was found, in our own words.
    pub message: Cow<'static, str>,
    /// The view that showed it: `text`, `normalised`, or a chain of decoders such as `base64 > rot13`.
    pub view: Cow<'static, str>,
    /// Where it stands.
    pub context: Context,
    /// The decoded text, when the view is not the original; at most 200 characters.
    pub decoded: Option<Untrusted<String>>,
    /// For the learned model: the n-grams that weighed most.
    pub because: Vec<Untrusted<String>>,
}
