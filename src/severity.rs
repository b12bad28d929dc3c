//! How grave a finding is: one scale for scanner, gates and configuration.

/// How much harm a finding stands for when it is real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Names a concept, or may be an artefact.
    Low,
    /// Honest documents say it, too.
    Medium,
    /// Rarely benign.
    High,
    /// No plausible benign reading.
    Critical,
}

impl Severity {
    /// `low`, `medium`, `high` or `critical`.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

impl std::str::FromStr for Severity {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s.to_ascii_lowercase().as_str() {
            "low" => Ok(Severity::Low),
            "medium" => Ok(Severity::Medium),
            "high" => Ok(Severity::High),
            "critical" => Ok(Severity::Critical),
            _ => Err(format!("unknown severity {s:?}: want low, medium, high or critical")),
        }
    }
}
