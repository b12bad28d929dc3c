//! The door of a sandbox, tried by a hostile client against real servers on loopback.

mod capture;
mod gateway;
mod hostile;
mod support;
mod tunnel;
