//! The scanner as its users run it: evasions and honest sentences, the command line, the formats.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod carriers;
mod command;
mod evasions;
mod formats;
mod honest;
mod support;
