//! `jess check` as a program of its own that starts fast.
//!
//! `jess` itself links the sandbox, TLS, HTTP and more; loading it costs more than scanning a page. This binary links the
//! scanner.

use std::process::ExitCode;

fn main() -> ExitCode {
    jess::cli::check::alone(std::env::args_os()).into()
}
