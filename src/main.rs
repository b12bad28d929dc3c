//! argv → command → exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    jess::cli::run(std::env::args_os()).into()
}
