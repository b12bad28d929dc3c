//! The pipeline that joins trust, envelope, sandbox, egress, hooks and gates.
