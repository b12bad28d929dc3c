//! The door of a sandbox, tried by a hostile client against real servers on loopback.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod capture;
mod dispatch;
mod fetch;
mod gateway;
mod hostile;
mod inject;
mod run;
mod shapes;
mod support;
mod tools;
mod tunnel;
mod turned;
