//! Text → findings: what in this text addresses a model that should not?
