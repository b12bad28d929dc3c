//! What the hook says to tool calls: dangerous ones are stopped, ordinary ones meet silence, broken ones are denied.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arrived;
mod codes;
mod dangerous;
mod faults;
mod found;
mod fuzz;
mod known;
mod labels;
mod near;
mod ordinary;
mod places;
mod programs;
mod protocol;
mod recipes;
mod sealing;
mod state;
mod tools;
mod why;
#[cfg(test)]
mod world;

use serde_json::json;
use world::Place;

#[test]
fn every_dangerous_command_is_stopped() {
    let place = Place::new();
    let missed: Vec<&str> = dangerous::COMMANDS
        .iter()
        .copied()
        .filter(|c| place.verdict("Bash", json!({ "command": c })) == "none")
        .collect();
    assert!(dangerous::COMMANDS.len() >= 300);
    assert!(
        missed.is_empty(),
        "{} of {} not stopped:\n{}",
        missed.len(),
        dangerous::COMMANDS.len(),
        missed.join("\n")
    );
}

#[test]
fn every_ordinary_command_meets_silence() {
    let place = Place::new();
    let noisy: Vec<String> = ordinary::COMMANDS
        .iter()
        .map(|c| (c, place.answer(&place.event("PreToolUse", "Bash", json!({ "command": c })), &[])))
        .filter_map(|(c, a)| {
            a.document.map(|d| format!("{c}   {}", d["hookSpecificOutput"]["permissionDecisionReason"]))
        })
        .collect();
    assert!(ordinary::COMMANDS.len() >= 200);
    assert!(noisy.is_empty(), "{} of {} noisy:\n{}", noisy.len(), ordinary::COMMANDS.len(), noisy.join("\n"));
}
