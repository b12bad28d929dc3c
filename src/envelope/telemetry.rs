//! How models take their envelopes over a run: what was accepted, refused, and leaked.
//!
//! Nothing here blocks. The operator reads the warnings.

use std::collections::BTreeMap;

/// What became of one response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It fits its schema.
    Accepted,
    /// It did not fit, nor did the one that was asked for again.
    RetryFailed,
    /// There is none.
    Failed,
}

/// Counts of one model.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Responses.
    pub responses: usize,
    /// Of these, those that fit their schema.
    pub accepted: usize,
    /// Those that did not, twice.
    pub retry_failed: usize,
    /// Those that never came.
    pub failed: usize,
    /// Those that repeat the envelope's nonce.
    pub nonce_leaks: usize,
    /// Inputs that a preflight looked at.
    pub preflights: usize,
    /// Of these, those with indicators of injection.
    pub preflight_hits: usize,
}

/// Something that the operator has to know.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Warning {
    /// The model, safe to print.
    pub model: String,
    /// What is wrong.
    pub kind: Kind,
    /// The run's results are in doubt.
    pub critical: bool,
}

/// Kinds of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A response repeats the nonce.
    NonceLeak,
    /// More than 30 % of the responses do not fit their schema.
    SchemaRejections,
    /// More than 20 % of the inputs have indicators of injection.
    PreflightHits,
}

/// Samples below which a rate says nothing.
pub const MIN_SAMPLES: usize = 5;
/// Models that are counted apart; a name is the caller's, but a caller may take it from outside.
pub const MAX_MODELS: usize = 256;

/// Counts of a run. A new run starts with a new one.
#[derive(Debug, Default)]
pub struct Telemetry {
    models: BTreeMap<String, Counts>,
}

impl Telemetry {
    /// Counts a response and whether it repeats the nonce.
    pub fn response(&mut self, model: &str, outcome: Outcome, leaked: bool) {
        let counts = self.of(model);
        counts.responses += 1;
        match outcome {
            Outcome::Accepted => counts.accepted += 1,
            Outcome::RetryFailed => counts.retry_failed += 1,
            Outcome::Failed => counts.failed += 1,
        }
        counts.nonce_leaks += usize::from(leaked);
    }

    /// Counts a look at an input.
    pub fn preflight(&mut self, model: &str, hit: bool) {
        let counts = self.of(model);
        counts.preflights += 1;
        counts.preflight_hits += usize::from(hit);
    }

    fn of(&mut self, model: &str) -> &mut Counts {
        let name = crate::sanitise::terminal(model, 128);
        let full = self.models.len() >= MAX_MODELS && !self.models.contains_key(&name);
        self.models.entry(if full { "(others)".into() } else { name }).or_default()
    }

    /// The counts by model.
    pub fn counts(&self) -> &BTreeMap<String, Counts> {
        &self.models
    }

    /// Each warning once a model, in the order of the names.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut out = Vec::new();
        for (model, counts) in &self.models {
            let mut warn = |kind, critical| out.push(Warning { model: model.clone(), kind, critical });
            if counts.nonce_leaks > 0 {
                warn(Kind::NonceLeak, true);
            }
            let beyond =
                |part: usize, of: usize, percent: usize| of >= MIN_SAMPLES && part * 100 > of * percent;
            if beyond(counts.retry_failed + counts.failed, counts.responses, 30) {
                warn(Kind::SchemaRejections, false);
            }
            if beyond(counts.preflight_hits, counts.preflights, 20) {
                warn(Kind::PreflightHits, true);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(telemetry: &Telemetry) -> Vec<(Kind, bool)> {
        telemetry.warnings().into_iter().map(|w| (w.kind, w.critical)).collect()
    }

    #[test]
    fn a_leaked_nonce_is_critical_and_said_once_a_model() {
        let mut telemetry = Telemetry::default();
        for _ in 0..3 {
            telemetry.response("m", Outcome::Accepted, true);
        }
        telemetry.response("n", Outcome::Accepted, false);
        assert_eq!(kinds(&telemetry), [(Kind::NonceLeak, true)]);
        assert_eq!(telemetry.counts()["m"].nonce_leaks, 3);
    }

    #[test]
    fn rates_count_from_five_samples_on_and_beyond_their_limit() {
        let mut telemetry = Telemetry::default();
        for _ in 0..4 {
            telemetry.response("m", Outcome::RetryFailed, false);
            telemetry.preflight("m", true);
        }
        assert_eq!(kinds(&telemetry), [], "four samples say nothing");
        telemetry.response("m", Outcome::Accepted, false);
        telemetry.preflight("m", false);
        assert_eq!(kinds(&telemetry), [(Kind::SchemaRejections, false), (Kind::PreflightHits, true)]);
        let mut at_the_limit = Telemetry::default();
        for n in 0..10 {
            at_the_limit.response("m", if n < 3 { Outcome::Failed } else { Outcome::Accepted }, false);
            at_the_limit.preflight("m", n < 2);
        }
        assert_eq!(kinds(&at_the_limit), [], "30 and 20 per cent are not beyond");
    }

    #[test]
    fn names_of_models_are_bounded_and_safe_to_print() {
        let mut telemetry = Telemetry::default();
        for n in 0..MAX_MODELS + 50 {
            telemetry.response(&format!("\x1b[2J{n}"), Outcome::Accepted, false);
        }
        assert_eq!(telemetry.counts().len(), MAX_MODELS + 1);
        assert!(telemetry.counts().keys().all(|name| !crate::sanitise::has_nonprintable(name)));
    }
}
