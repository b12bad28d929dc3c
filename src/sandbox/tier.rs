//! How strongly a run is isolated.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A tier, weaker before stronger. What each holds is in `docs/guide/sandbox.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Landlock, seccomp, resource limits, a private scratch directory and a supervisor that decides about what those
    /// can't; on hosts without user namespaces. The command shares the host's process list, network and /proc.
    Landlock,
    /// Namespaces, a private root, and all of the above that still has work to do.
    Full,
}

impl Tier {
    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Landlock => "landlock",
            Tier::Full => "full",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Tier {
    type Err = String;
    fn from_str(text: &str) -> Result<Tier, String> {
        match text {
            "full" => Ok(Tier::Full),
            "landlock" => Ok(Tier::Landlock),
            _ => Err("the tiers are full and landlock".to_owned()),
        }
    }
}

impl Serialize for Tier {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Tier {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written_and_full_is_stronger() {
        for tier in [Tier::Landlock, Tier::Full] {
            assert_eq!(tier.name().parse(), Ok(tier));
        }
        assert!("none".parse::<Tier>().is_err());
        assert!(Tier::Full > Tier::Landlock);
    }
}
