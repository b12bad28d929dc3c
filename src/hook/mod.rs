//! The Claude Code hook protocol: events in, decisions out, fail closed.
