//! What can go wrong, and the exit code that tells it.

use std::io;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The machine or the process lacks something: exit code 4. The text says what, and how to get it.
    #[error("{0}")]
    Unavailable(String),
    /// The user is at fault: exit code 2.
    #[error("{0}")]
    Input(String),
    /// The state of the machine does not allow it: exit code 1. The text says what to do.
    #[error("{0}")]
    Refused(String),
    /// Everything else: exit code 1.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// What was asked of the path manager, or of the links, was not done.
    #[cfg(feature = "agent")]
    #[error(transparent)]
    Netlink(#[from] anabranch_netlink::NetlinkError),
    /// The congestion control could not be loaded, read or taken away.
    #[cfg(feature = "cc")]
    #[error(transparent)]
    Pins(#[from] anabranch_kernel::PinError),
}

#[cfg(feature = "agent")]
impl From<anabranch_agent_config::ConfigError> for DeviceError {
    fn from(error: anabranch_agent_config::ConfigError) -> Self {
        Self::Input(error.0)
    }
}

impl DeviceError {
    /// For `map_err`: wraps what the system said with what was being done.
    pub fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::System { what, source: source.into() }
    }

    /// The exit code: 1 failed, 2 wrong usage or bad input, 4 the machine or the process lacks something.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Unavailable(_) => 4,
            Self::Input(_) => 2,
            Self::Refused(_) | Self::System { .. } => 1,
            #[cfg(feature = "agent")]
            Self::Netlink(error) => exit_code_of_netlink(error),
            #[cfg(feature = "cc")]
            Self::Pins(error) => exit_code_of_pins(error),
        }
    }
}

#[cfg(feature = "agent")]
fn exit_code_of_netlink(error: &anabranch_netlink::NetlinkError) -> u8 {
    use anabranch_netlink::NetlinkError;
    match error {
        NetlinkError::Unsupported { .. } => 4,
        error if error.errno() == Some(libc::EPERM) => 4,
        _ => 1,
    }
}

#[cfg(feature = "cc")]
fn exit_code_of_pins(error: &anabranch_kernel::PinError) -> u8 {
    use anabranch_kernel::{KernelError, PinError};
    match error {
        PinError::NotBpffs { .. } => 4,
        PinError::Kernel(error) => match error {
            KernelError::Unknown { .. }
            | KernelError::SimulatorOnly { .. }
            | KernelError::ParameterCount { .. }
            | KernelError::ParameterRange { .. } => 2,
            KernelError::NotBuilt { .. }
            | KernelError::NotPermitted
            | KernelError::NoBtf
            | KernelError::KernelTooOld { .. } => 4,
            _ => 1,
        },
        _ => 1,
    }
}
