//! What can go wrong.

use std::{fmt, io};

use crate::wire::Malformed;

/// Why a request was not carried out, or an event not read.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The kernel refuses.
    #[error("{request}: {refusal}")]
    Refused {
        /// What was asked, in words.
        request: String,
        /// What the kernel said.
        refusal: Refusal,
    },
    /// The kernel lacks what is asked of.
    #[error("this kernel has no {what}")]
    Unsupported {
        /// What it lacks, and the option that would give it.
        what: &'static str,
    },
    /// The answer makes no sense.
    #[error("{request}: the answer cannot be read: {source}")]
    Malformed {
        /// What was asked, in words.
        request: String,
        /// What is wrong with it.
        source: Malformed,
    },
    /// What was listed changed each time while it was listed.
    #[error("{request}: what is listed has changed while it was, {attempts} times")]
    Unsteady {
        /// What was asked, in words.
        request: String,
        /// How often it was tried.
        attempts: usize,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl NetlinkError {
    /// The error number that the kernel gave, if it gave one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal.errno),
            Self::System { source, .. } => source.raw_os_error(),
            Self::Unsupported { .. } | Self::Malformed { .. } | Self::Unsteady { .. } => None,
        }
    }

    /// For `map_err`: wraps what the system said with what was being done.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}

/// What the kernel said when it refused: an error number, and what the extended acknowledgement adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A positive error number.
    pub errno: i32,
    /// The kernel's words (`NLMSGERR_ATTR_MSG`).
    pub message: Option<String>,
    /// The attribute that it refuses (`NLMSGERR_ATTR_OFFS`).
    pub attribute: Option<String>,
    /// The attribute that it misses (`NLMSGERR_ATTR_MISS_TYPE`).
    pub missing: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(message) = &self.message {
            write!(out, "{message}: ")?;
        }
        write!(out, "{}", io::Error::from_raw_os_error(self.errno))?;
        if let Some(attribute) = &self.attribute {
            write!(out, ", because of the {attribute}")?;
        }
        if let Some(missing) = &self.missing {
            write!(out, ", the {missing} is missing")?;
        }
        if self.errno == libc::EPERM {
            write!(out, "; needs CAP_NET_ADMIN")?;
        }
        Ok(())
    }
}
