//! What a repository may not bring along: the gate seen from outside, over repositories made for each case.

mod agents;
mod approve;
mod benign;
mod command;
mod files;
mod hostile;
mod rules;
mod support;
