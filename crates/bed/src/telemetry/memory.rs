//! Memory that sockets hold: of a socket in hand by `SO_MEMINFO`, of its subflows by [`SocketDiag`].

use std::{io, os::fd::BorrowedFd};

use socket2::SockRef;

use super::{Sample, diag::SocketDiag, layout::u32_at, sockets::get_option};

/// What a socket holds, in bytes (`linux/sock_diag.h`). Memory counts with the kernel's own overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Received and not yet taken by the application, out-of-order data included.
    pub rmem_alloc: u32,
    /// Bound of the receive buffer.
    pub rcvbuf: u32,
    /// Handed to the device and not yet sent.
    pub wmem_alloc: u32,
    /// Bound of the send buffer.
    pub sndbuf: u32,
    /// Set aside for later use.
    pub fwd_alloc: u32,
    /// Held for sending: not yet sent, or sent and not acknowledged.
    pub wmem_queued: u32,
    /// Socket options and filters.
    pub optmem: u32,
    /// Received while the socket was in use, waiting to be looked at.
    pub backlog: u32,
    /// Packets that were dropped for want of memory or otherwise.
    pub drops: u32,
}

impl Memory {
    /// Nothing if the kernel is older than 4.12.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let value = |index: usize| u32_at(bytes, 4 * index);
        Some(Self {
            rmem_alloc: value(0)?,
            rcvbuf: value(1)?,
            wmem_alloc: value(2)?,
            sndbuf: value(3)?,
            fwd_alloc: value(4)?,
            wmem_queued: value(5)?,
            optmem: value(6)?,
            backlog: value(7)?,
            drops: value(8)?,
        })
    }
}

/// Reads the socket itself; of MPTCP that is the connection without its subflows.
///
/// # Errors
/// What `getsockopt(2)` says; [`io::ErrorKind::Unsupported`] if the kernel is older than 4.12.
pub fn of_socket(socket: BorrowedFd<'_>) -> io::Result<Memory> {
    let mut bytes = [0; 64];
    let length = get_option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut bytes)?;
    Memory::decode(&bytes[..length]).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// What a connection holds at one end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionMemory {
    /// The socket of the application.
    pub socket: Memory,
    /// The subflows of an MPTCP socket, as far as they were found; of TCP, none.
    pub subflows: Vec<Memory>,
}

impl ConnectionMemory {
    /// Reads `socket` and the subflows that `sample` tells of; `diag` is of its namespace.
    ///
    /// # Errors
    /// As [`of_socket`] and [`SocketDiag::find`].
    pub fn read(socket: BorrowedFd<'_>, sample: &Sample, diag: &mut SocketDiag) -> io::Result<Self> {
        let mut subflows = Vec::new();
        // Not Sample::is_mptcp: a connection that has fallen back to TCP still has an MPTCP socket above it.
        if SockRef::from(&socket).protocol()? == Some(socket2::Protocol::MPTCP) {
            for subflow in &sample.subflows {
                subflows.extend(diag.find(subflow.local, subflow.remote)?);
            }
        }
        Ok(Self { socket: of_socket(socket)?, subflows })
    }

    /// Everything received that the application has not taken: a packet belongs to a subflow or, moved up,
    /// to the connection, never to both.
    pub fn receive_bytes(&self) -> u64 {
        let all = self.subflows.iter().chain([&self.socket]);
        all.map(|memory| u64::from(memory.rmem_alloc) + u64::from(memory.backlog)).sum()
    }

    /// Everything held for sending. The connection holds data until it is acknowledged at the data level;
    /// what subflows hold are references to the same data and are not added.
    pub fn send_bytes(&self) -> u64 {
        u64::from(self.socket.wmem_queued)
    }
}
