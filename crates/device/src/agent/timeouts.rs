//! Where the agent hears of retransmission timeouts, of which netlink has no event: from the kernel at once by a BPF program, or by
//! looking when the next one is due.

use std::os::fd::BorrowedFd;

use anabranch_netlink::mptcp::Token;

use crate::DeviceError;

/// A retransmission timeout of a subflow of any connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timeout {
    pub(super) token: Token,
    pub(super) local_port: u16,
    pub(super) remote_port: u16,
    /// In a row.
    pub(super) timeouts: u32,
}

/// What tells of them.
pub(super) struct Timeouts {
    #[cfg(feature = "cc")]
    kernel: Option<anabranch_kernel::Timeouts>,
    /// Why the kernel does not.
    why_not: Option<String>,
}

impl Timeouts {
    /// Has the kernel tell, if that is wanted and can be.
    pub(super) fn open(is_wanted: bool) -> Self {
        match is_wanted {
            false => Self::without("bpf = false".to_owned()),
            true => Self::hear(),
        }
    }

    #[cfg(feature = "cc")]
    fn hear() -> Self {
        match anabranch_kernel::Timeouts::hear() {
            Ok(kernel) => Self { kernel: Some(kernel), why_not: None },
            Err(error) => Self::without(error.to_string()),
        }
    }

    #[cfg(not(feature = "cc"))]
    fn hear() -> Self {
        Self::without("built without the feature cc".to_owned())
    }

    fn without(why: String) -> Self {
        Self {
            #[cfg(feature = "cc")]
            kernel: None,
            why_not: Some(why),
        }
    }

    /// Why the kernel does not tell; nothing if it does.
    pub(super) fn why_not(&self) -> Option<&str> {
        self.why_not.as_deref()
    }

    /// Readable when there is something to take.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        #[cfg(feature = "cc")]
        return self.kernel.as_ref().map(std::os::fd::AsFd::as_fd);
        #[cfg(not(feature = "cc"))]
        None
    }

    /// What has been told since the last call, in order.
    pub(super) fn take(&mut self) -> Result<Vec<Timeout>, DeviceError> {
        #[cfg(feature = "cc")]
        if let Some(kernel) = &mut self.kernel {
            let told = kernel
                .take()
                .map_err(|error| DeviceError::system("reading timeouts")(std::io::Error::other(error)))?;
            let timeout = |told: anabranch_kernel::Timeout| Timeout {
                token: Token(told.token),
                local_port: told.local_port,
                remote_port: told.remote_port,
                timeouts: told.timeouts,
            };
            return Ok(told.into_iter().map(timeout).collect());
        }
        Ok(Vec::new())
    }
}
