//! `jess rpc`: the functions of this crate over stdin and stdout.

use super::failed::Failed;
use crate::exit::Exit;
use crate::rpc;
use crate::sandbox::stdio;
use std::io::{self, BufReader};

/// Serve hosts in other languages: one JSON request a line on stdin, one reply a line on stdout.
#[derive(clap::Args)]
pub struct Args {}

/// Serves until end of file.
pub fn run(_: Args) -> Exit {
    if stdio::stdin_was_closed() || stdio::stdout_was_closed() {
        return Failed::usage("cannot serve requests: stdin or stdout is closed").tell();
    }
    match rpc::serve(BufReader::with_capacity(1 << 16, io::stdin().lock()), io::stdout().lock()) {
        Ok(()) => Exit::OK,
        // The host is gone: there is nobody left to tell.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::OK,
        Err(error) => {
            tracing::error!("cannot serve requests: {error}");
            Exit::INTERNAL
        }
    }
}
