//! Why a command could not do what was asked, and whose fault it is.

use crate::exit::Exit;
use crate::{audit, install};
use std::io::ErrorKind;

/// What is told, and what the command ends with.
#[derive(Debug)]
pub(super) struct Failed {
    exit: Exit,
    why: String,
}

impl Failed {
    /// What was asked for cannot be done as it was asked: the caller can put it right.
    pub(super) fn usage(why: impl Into<String>) -> Failed {
        Failed { exit: Exit::USAGE, why: why.into() }
    }

    /// jess itself failed.
    pub(super) fn internal(why: impl Into<String>) -> Failed {
        Failed { exit: Exit::INTERNAL, why: why.into() }
    }

    /// A file operation that failed. A place that is not there, is none, or may not be used is the caller's to change.
    pub(super) fn io(kind: ErrorKind, why: impl Into<String>) -> Failed {
        match kind {
            ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::ReadOnlyFilesystem => Failed::usage(why),
            _ => Failed::internal(why),
        }
    }

    /// Tells the person; what the command ends with.
    pub(super) fn tell(self) -> Exit {
        tell!("jess: {}", self.why);
        self.exit
    }
}

impl From<audit::Error> for Failed {
    fn from(error: audit::Error) -> Failed {
        let why = error.to_string();
        match error {
            audit::Error::Io { source, .. } => Failed::io(source.kind(), why),
            audit::Error::Nowhere | audit::Error::Unsafe(_) => Failed::usage(why),
            audit::Error::Foreign { .. } | audit::Error::Broken { .. } | audit::Error::Cut { .. } => {
                Failed::internal(why)
            }
        }
    }
}

impl From<audit::otlp::Error> for Failed {
    fn from(error: audit::otlp::Error) -> Failed {
        let why = error.to_string();
        match error {
            audit::otlp::Error::Address(_) => Failed::usage(why),
            audit::otlp::Error::Io { .. } | audit::otlp::Error::Refused { .. } => Failed::internal(why),
        }
    }
}

impl From<install::Error> for Failed {
    fn from(error: install::Error) -> Failed {
        let why = error.to_string();
        match error {
            install::Error::Io { source, .. } => Failed::io(source.kind(), why),
            install::Error::Settings { .. } => Failed::usage(why),
            install::Error::NoHook(_) => Failed::internal(why),
        }
    }
}
