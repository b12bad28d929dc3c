//! Rules: what a pattern file says.

use super::finding::Severity;
use super::shape::ShapeError;
use std::path::{Path, PathBuf};

/// A built-in rule, without its examples.
#[derive(Debug)]
pub struct RuleDef {
    /// Stable ID; never reused.
    pub id: &'static str,
    /// Short name.
    pub name: &'static str,
    /// Category, one per pattern file.
    pub category: &'static str,
    /// Severity.
    pub severity: Severity,
    /// What a finding means.
    pub message: &'static str,
    /// What to do about it.
    pub remediation: &'static str,
    /// Further reading.
    pub references: &'static [&'static str],
    pub(crate) needs: &'static [&'static str],
    pub(crate) regex: Option<&'static str>,
    pub(crate) raw: bool,
    pub(crate) near: Option<[usize; 2]>,
}

include!(concat!(env!("OUT_DIR"), "/patterns.rs"));

/// A pattern file, as written.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternFile {
    /// What all its rules are about.
    pub category: String,
    /// Default for rules that name none.
    #[serde(default)]
    pub remediation: String,
    /// Default for rules that name none.
    #[serde(default)]
    pub references: Vec<String>,
    /// Named word lists for `@name` in shapes.
    #[serde(default)]
    pub classes: std::collections::BTreeMap<String, String>,
    /// The rules.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
}

/// A rule, as written in a pattern file.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Stable ID, e.g. `RO001`.
    pub id: String,
    /// Short name in kebab case.
    pub name: String,
    /// Severity.
    pub severity: Severity,
    /// What a finding means.
    pub message: String,
    /// What to do about it.
    #[serde(default)]
    pub remediation: String,
    /// Further reading.
    #[serde(default)]
    pub references: Vec<String>,
    /// Shapes, any of which makes a finding; see [`super::shape`].
    #[serde(default)]
    pub shapes: Vec<String>,
    /// Shapes that, within ten words, say that the text speaks about the matter: the finding is then withheld.
    #[serde(default)]
    pub unless: Vec<String>,
    /// Words near which [`Rule::regex`] is tried. Without one, the rule's code is built in.
    #[serde(default)]
    pub triggers: Vec<String>,
    /// Literal texts of which the regular expression's window must hold one; none means no such condition.
    #[serde(default)]
    pub needs: Vec<String>,
    /// A regular expression, tried from 200 bytes before a trigger to 600 after it, or as [`Rule::near`] says.
    pub regex: Option<String>,
    /// Bytes before and after a trigger that the regular expression sees.
    #[serde(default)]
    pub near: Option<[usize; 2]>,
    /// The regular expression sees only text that was not decoded.
    #[serde(default)]
    pub raw: bool,
    /// Texts that must match.
    #[serde(default)]
    pub examples: Vec<String>,
    /// Texts that come near and must not match.
    #[serde(default)]
    pub near_misses: Vec<String>,
}

/// The built-in pattern files: name and text.
pub fn builtin_files() -> &'static [(&'static str, &'static str)] {
    FILES
}

/// Why a directory of rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// The directory or a file in it cannot be read.
    #[error(
        "reading rules from {}: {source}; check that it exists and is readable",
        crate::sanitise::path(path)
    )]
    Read {
        /// What was read.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A file is no pattern file.
    #[error("{}:{line}: {message}; see `jess explain` for the form of a rule", crate::sanitise::path(path))]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line of the mistake, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A shape is wrong.
    #[error("{}:{line}: rule {id}: {source}", crate::sanitise::path(path))]
    Shape {
        /// The file.
        path: PathBuf,
        /// Line of the rule's ID, from 1.
        line: usize,
        /// The rule.
        id: String,
        /// What is wrong.
        source: ShapeError,
    },
}

/// A pattern file with the text it was read from, for line numbers.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub path: PathBuf,
    pub text: String,
    pub file: PatternFile,
}

impl PatternFile {
    /// Gives each rule the file's defaults.
    pub(crate) fn fill(&mut self) {
        for r in &mut self.rules {
            if r.remediation.is_empty() {
                r.remediation.clone_from(&self.remediation);
            }
            if r.references.is_empty() {
                r.references.clone_from(&self.references);
            }
        }
    }
}

impl Loaded {
    /// Reads `text`, which stands in `path`.
    pub fn parse(path: PathBuf, text: String) -> Result<Loaded, RuleError> {
        let mut file: PatternFile = toml::from_str(&text).map_err(|e| RuleError::Parse {
            path: path.clone(),
            line: e.span().map_or(1, |s| line_at(&text, s.start)),
            message: e.message().to_string(),
        })?;
        file.fill();
        Ok(Loaded { path, text, file })
    }

    /// Line of the first occurrence of `needle`, from 1.
    pub fn line_of(&self, needle: &str) -> usize {
        self.text.find(needle).map_or(1, |at| line_at(&self.text, at))
    }
}

fn line_at(text: &str, at: usize) -> usize {
    text.get(..at).map_or(1, |head| head.matches('\n').count() + 1)
}

/// Reads every `*.toml` of `dir`, in order of name. An unreadable or malformed file is an error.
pub(crate) fn load_dir(dir: &Path) -> Result<Vec<Loaded>, RuleError> {
    let read = |path: &Path, source| RuleError::Read { path: path.to_path_buf(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(|e| read(dir, e))? {
        let path = entry.map_err(|e| read(dir, e))?.path();
        if path.extension().is_some_and(|x| x == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut out = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|e| read(&path, e))?;
        out.push(Loaded::parse(path, text)?);
    }
    Ok(out)
}
