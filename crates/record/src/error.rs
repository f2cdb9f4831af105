//! What a caller of this crate can meet.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// Why a run folder could not be written or read.
#[derive(Debug)]
pub enum Error {
    /// The place for the run cannot be written to; nothing has been left there.
    Unwritable {
        /// The folder that could not be made.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The scenario's name cannot be the name of a folder.
    Name(String),
    /// A file could not be written; the unfinished folder has been removed.
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The folder holds no run.
    NotARun(PathBuf),
    /// The folder holds a run that is not what its manifest says.
    Damaged {
        /// The run folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A run cannot be given to other programs in the form that was asked for.
    Export {
        /// The run folder.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The engine handed over something that cannot be recorded.
    Measurements(String),
}

impl Error {
    pub(crate) fn write(path: &Path, source: impl Into<io::Error>) -> Self {
        Error::Write { path: path.to_owned(), source: source.into() }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Error::Damaged { path: path.to_owned(), reason: reason.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unwritable { path, source } => {
                write!(
                    f,
                    "{}: cannot write runs here: {source}; choose another place with --out",
                    path.display()
                )
            }
            Error::Name(name) => {
                write!(
                    f,
                    "scenario name {name:?} cannot name a folder: expected letters, digits, `-`, `_`, `.`"
                )
            }
            Error::Write { path, source } => write!(f, "{}: cannot write: {source}", path.display()),
            Error::NotARun(path) => {
                write!(f, "{}: not a run folder: it has no readable run.json", path.display())
            }
            Error::Damaged { path, reason } => write!(f, "{}: damaged run folder: {reason}", path.display()),
            Error::Export { path, reason } => write!(f, "{}: cannot be exported: {reason}", path.display()),
            Error::Measurements(what) => {
                write!(f, "the engine measured something that cannot be recorded: {what}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Unwritable { source, .. } | Error::Write { source, .. } => Some(source),
            Error::Name(_)
            | Error::NotARun(_)
            | Error::Damaged { .. }
            | Error::Export { .. }
            | Error::Measurements(_) => None,
        }
    }
}
