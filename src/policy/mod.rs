//! May this tool call happen? Pure decisions, no I/O.
