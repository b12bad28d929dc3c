//! Quarantine for untrusted text on its way to a model.
