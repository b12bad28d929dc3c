//! `jess run` as a program of its own that starts fast.
//!
//! `jess` itself links the parser, the scanner, TLS and more; loading it costs as much as half of a sandbox. This binary
//! links the sandbox. A run with `--net` becomes `jess run`, the file beside this one.

use std::process::ExitCode;

fn main() -> ExitCode {
    jess::cli::run::alone(std::env::args_os()).into()
}
