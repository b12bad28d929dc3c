//! The hook daemon: same verdicts as without it, and nothing lost when it dies.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chaos;
mod place;
mod verdicts;
