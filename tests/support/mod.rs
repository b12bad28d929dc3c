//! What integration tests share: a scripted model, the pinned real client, and a place with no way out but loopback.
//!
//! Use it with `mod support;` (or `#[path = "../support/mod.rs"] mod support;` from a test in a folder of its own).

#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod client;
pub mod isolation;
pub mod model;

pub use client::Client;
pub use model::{Block, Conversation, Script, ScriptedModel, ToolResult, Turn, text, tool};
