//! Making an engine: from the tables in the binary, or with rules of the operator's own besides.

use super::engine::Engine;
use super::finding::Severity;
use super::rule::{self, Loaded, Rule, RuleError};
use super::shape::{Compiler, ShapeError};
use super::{model, tables};
use aho_corasick::packed;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What the engine keeps of a rule.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub id: Cow<'static, str>,
    pub name: Cow<'static, str>,
    pub category: Cow<'static, str>,
    pub severity: Severity,
    pub message: Cow<'static, str>,
    pub regex: Option<Pattern>,
}

/// A regular expression that is compiled when its trigger is first seen.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: Cow<'static, str>,
    /// It sees only text that was not decoded.
    pub raw: bool,
    /// The window must hold one of these, unless there are none.
    pub needs: Cow<'static, [&'static str]>,
    own_needs: Vec<String>,
    search: OnceLock<Option<packed::Searcher>>,
    /// Bytes before and after a trigger.
    pub near: [usize; 2],
    compiled: OnceLock<Option<regex::bytes::Regex>>,
}

impl Pattern {
    #[cfg(test)]
    pub(crate) fn check(&self) -> Result<(), regex::Error> {
        build(&self.text).map(drop)
    }

    pub fn get(&self) -> Option<&regex::bytes::Regex> {
        self.compiled.get_or_init(|| build(&self.text).ok()).as_ref()
    }

    /// Whether `window` holds what the expression needs.
    pub fn possible(&self, window: &[u8]) -> bool {
        let needs = || self.needs.iter().copied().chain(self.own_needs.iter().map(String::as_str));
        // All at once, in vectors; on a machine without them, one after the other.
        match self.search.get_or_init(|| {
            packed::Config::new().heuristic_pattern_limits(false).builder().extend(needs()).build()
        }) {
            Some(all) => all.find(window).is_some(),
            None => {
                needs().next().is_none()
                    || needs().any(|n| memchr::memmem::find(window, n.as_bytes()).is_some())
            }
        }
    }
}

/// A regular expression looks this far before and after its trigger word, in bytes, when its rule does not say.
const NEAR: [usize; 2] = [200, 600];
/// It never looks further.
const FAR: usize = 2000;

fn build(text: &str) -> Result<regex::bytes::Regex, regex::Error> {
    regex::bytes::RegexBuilder::new(text)
        .case_insensitive(true)
        .unicode(false)
        .size_limit(1 << 20)
        .dfa_size_limit(1 << 20)
        .build()
}

fn builtin_rules() -> Vec<Compiled> {
    let one = |r: &'static rule::RuleDef| Compiled {
        id: r.id.into(),
        name: r.name.into(),
        category: r.category.into(),
        severity: r.severity,
        message: r.message.into(),
        regex: r.regex.map(|text| Pattern {
            text: text.into(),
            raw: r.raw,
            needs: r.needs.into(),
            own_needs: Vec::new(),
            search: OnceLock::new(),
            near: r.near.unwrap_or(NEAR),
            compiled: OnceLock::new(),
        }),
    };
    rule::RULES.iter().map(one).collect()
}

impl Engine {
    /// The engine with the built-in rules, made once per process. Its tables are part of the binary.
    pub fn builtin() -> &'static Engine {
        static ENGINE: OnceLock<Engine> = OnceLock::new();
        ENGINE.get_or_init(|| Engine {
            rules: builtin_rules(),
            lexicon: tables::LEXICON.clone(),
            model: model::Model::shipped(),
        })
    }

    /// The built-in rules and those of the pattern files in `dir`.
    ///
    /// # Errors
    /// When the directory cannot be read, or any file or rule in it is wrong; the error names file and line.
    pub fn with_dir(dir: &Path) -> Result<Engine, RuleError> {
        let mut b = Builder::default();
        for (name, text) in rule::builtin_files() {
            b.file(&Loaded::parse(PathBuf::from(name), (*text).to_string())?, false)?;
        }
        // What the built-in rules say besides their words is in the binary already.
        b.rules = builtin_rules();
        for loaded in rule::load_dir(dir)? {
            b.file(&loaded, true)?;
        }
        let lexicon = b.compiler.finish(b.rules.len());
        Ok(Engine { rules: b.rules, lexicon, model: model::Model::shipped() })
    }
}

#[derive(Default)]
struct Builder {
    rules: Vec<Compiled>,
    compiler: Compiler,
    classes: HashMap<String, String>,
}

impl Builder {
    /// Adds the rules of a file. Expressions that the tests compile need no check.
    fn file(&mut self, loaded: &Loaded, check: bool) -> Result<(), RuleError> {
        self.classes.extend(loaded.file.classes.iter().map(|(k, v)| (k.clone(), v.clone())));
        for r in &loaded.file.rules {
            let line = loaded.line_of(&format!("{:?}", r.id));
            let parse = |message| RuleError::Parse { path: loaded.path.clone(), line, message };
            if self.rules.iter().any(|have| have.id == r.id) {
                return Err(parse(format!("rule {} exists already", r.id)));
            }
            if let Some(text) = r.regex.as_ref().filter(|_| check) {
                build(text).map_err(|e| parse(format!("rule {}: {e}", r.id)))?;
                if r.triggers.is_empty() {
                    return Err(parse(format!("rule {}: a regex needs triggers", r.id)));
                }
            }
            self.rule(r, &loaded.file.category).map_err(|source| RuleError::Shape {
                path: loaded.path.clone(),
                line,
                id: r.id.clone(),
                source,
            })?;
        }
        Ok(())
    }

    fn rule(&mut self, r: &Rule, category: &str) -> Result<(), ShapeError> {
        let index = u16::try_from(self.rules.len()).map_err(|_| ShapeError::TooMany)?;
        for (shapes, unless) in [(&r.shapes, false), (&r.unless, true)] {
            for s in shapes {
                self.compiler.add(index, s, unless, &self.classes)?;
            }
        }
        for t in &r.triggers {
            self.compiler.trigger(t, index)?;
        }
        self.rules.push(Compiled {
            id: r.id.clone().into(),
            name: r.name.clone().into(),
            category: category.to_string().into(),
            severity: r.severity,
            message: r.message.clone().into(),
            regex: r.regex.clone().map(|text| Pattern {
                text: text.into(),
                raw: r.raw,
                needs: Cow::Borrowed(&[]),
                own_needs: r.needs.clone(),
                search: OnceLock::new(),
                near: r.near.unwrap_or(NEAR).map(|n| n.min(FAR)),
                compiled: OnceLock::new(),
            }),
        });
        Ok(())
    }
}
