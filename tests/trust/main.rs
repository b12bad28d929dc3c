//! What a repository may not bring along: the gate seen from outside, over repositories made for each case.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
mod approve;
mod benign;
mod command;
mod elsewhere;
mod files;
mod hostile;
mod rules;
mod support;
