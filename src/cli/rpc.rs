//! `jess rpc`: the functions of this crate over stdin and stdout.

use crate::exit::Exit;
use crate::rpc;
use std::io::{self, BufReader};

/// Serve hosts in other languages: one JSON request a line on stdin, one reply a line on stdout.
#[derive(clap::Args)]
pub struct Args {}

/// Serves until end of file.
pub fn run(_: Args) -> Exit {
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
