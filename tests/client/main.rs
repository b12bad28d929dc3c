//! What the real Claude Code client does, driven by a scripted model, with no way out but loopback.
//!
//! Run with `cargo test --features client-tests --test client` after `tests/support/install-client.sh`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod dispatch;
mod hooks;
mod init;
mod matrix;
mod page;
mod round_trip;
