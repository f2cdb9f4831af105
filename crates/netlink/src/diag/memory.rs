//! Memory that sockets hold (`INET_DIAG_SKMEMINFO`, `linux/sock_diag.h`): what `ss -tm` and `ss -Mm` show.

use super::{END, MEMORY, SocketDiag, TcpState, ULP_INFO, split, subflow};
use crate::{
    NetlinkError,
    mptcp::{SubflowAddress, Token},
    wire::{Attributes, Malformed},
};

/// What a socket holds, in bytes as the kernel counts: with its own overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Received and not yet taken by the application, out-of-order data included.
    pub receive_bytes: u32,
    /// Received while the socket was in use, waiting to be looked at.
    pub backlog_bytes: u32,
    /// Held for sending: not yet sent, or sent and not acknowledged. A connection of Multipath TCP holds what its subflows hold,
    /// too: theirs are references to the same data.
    pub send_bytes: u32,
}

/// A socket and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Its ends; of a connection of Multipath TCP those of its first subflow.
    pub address: SubflowAddress,
    /// Where it stands.
    pub state: TcpState,
    /// The connection that it is a subflow of, if it is one and this process may know (`CAP_NET_ADMIN`).
    pub connection: Option<Token>,
    /// What it holds.
    pub memory: Memory,
}

impl SocketDiag {
    /// What connections of Multipath TCP hold, without their subflows.
    ///
    /// # Errors
    /// As [`connections`](Self::connections).
    pub fn connections_memory(&mut self) -> Result<Vec<Holding>, NetlinkError> {
        const LACKING: &str = "list of connections of Multipath TCP (CONFIG_INET_MPTCP_DIAG)";
        self.list("listing the connections' memory", libc::IPPROTO_MPTCP, LACKING, read)
    }

    /// What TCP sockets hold, subflows among them.
    ///
    /// # Errors
    /// As [`subflows`](Self::subflows).
    pub fn tcp_memory(&mut self) -> Result<Vec<Holding>, NetlinkError> {
        const LACKING: &str = "list of TCP sockets (CONFIG_INET_TCP_DIAG)";
        self.list("listing the memory of TCP sockets", libc::IPPROTO_TCP, LACKING, read)
    }
}

/// None if the message has no `INET_DIAG_SKMEMINFO`.
pub(super) fn read(body: &[u8]) -> Result<Option<Holding>, Malformed> {
    let (header, attributes) = split(body)?;
    let attributes = Attributes::<END>::read(attributes)?;
    let Some(told) = attributes.bytes(MEMORY) else { return Ok(None) };
    // SK_MEMINFO_RMEM_ALLOC 0, SK_MEMINFO_WMEM_QUEUED 5, SK_MEMINFO_BACKLOG 7.
    let value = |index: usize| -> Result<u32, Malformed> {
        let bytes = told.get(4 * index..4 * index + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_ne_bytes).ok_or(Malformed("the memory of a socket is too short"))
    };
    let memory = Memory { receive_bytes: value(0)?, backlog_bytes: value(7)?, send_bytes: value(5)? };
    let connection = match attributes.bytes(ULP_INFO) {
        Some(told) => subflow::token(told)?,
        None => None,
    };
    Ok(Some(Holding { address: header.address, state: header.state, connection, memory }))
}
