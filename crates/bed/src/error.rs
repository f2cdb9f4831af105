//! What can go wrong on the way from a scenario to a run folder.

use std::io;

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BedError {
    /// The machine or the process lacks something: exit code 4. The text says what, and how to get it.
    #[error("{0}")]
    Unavailable(String),
    /// The scenario asks for what a kernel cannot do, or the user is at fault otherwise: exit code 2.
    #[error("{0}")]
    Input(String),
    /// SIGINT or SIGTERM: exit code 130 or 143.
    #[error("interrupted: finished runs are kept")]
    Interrupted {
        /// The signal's number.
        signal: i32,
    },
    /// Another bed runs on this host: exit code 1.
    #[error("{0}")]
    Busy(String),
    /// Everything else: exit code 1.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// A helper program or the kernel answered what was not expected: exit code 1.
    #[error("{0}")]
    Failed(String),
    /// The congestion control could not be loaded.
    #[error(transparent)]
    Kernel(#[from] anabranch_kernel::KernelError),
    /// The run folder could not be written.
    #[error(transparent)]
    Record(#[from] anabranch_record::Error),
}

impl BedError {
    /// For `map_err`: wraps what the system said with what was being done.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
