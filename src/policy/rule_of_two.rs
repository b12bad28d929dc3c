//! Placeholder until the trust owner's module lands.
