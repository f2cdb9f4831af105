//! What the sockets of another program hold: those of the connections to one port, found by `NETLINK_SOCK_DIAG`, since nobody here
//! has a descriptor of theirs. The kernel's figures are those that [`ConnectionMemory`](super::ConnectionMemory) reads of our own.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
};

use anabranch_netlink::diag;

use super::{EndMemory, Memory, SocketDiag, SocketMemory};
use crate::{BedError, host::Namespace};

/// The sockets of one namespace.
pub struct Elsewhere {
    memory: SocketDiag,
    tokens: diag::SocketDiag,
    /// The connection of each subflow that was seen, by its ends.
    known: BTreeMap<[SocketAddr; 2], usize>,
    further: usize,
}

impl Elsewhere {
    /// Of a namespace.
    ///
    /// # Errors
    /// [`BedError::System`], [`BedError::Failed`] if there can be no sockets of netlink.
    pub fn open(namespace: &Namespace) -> Result<Self, BedError> {
        let (memory, tokens) = namespace.enter(|| (SocketDiag::open(), diag::SocketDiag::open()))?;
        let memory = memory.map_err(BedError::system("opening a NETLINK_SOCK_DIAG socket"))?;
        let tokens = tokens.map_err(|error| BedError::Failed(error.to_string()))?;
        Ok(Self { memory, tokens, known: BTreeMap::new(), further: 0 })
    }

    /// What is held in this namespace for the connections between `clients`, one each, and `server`. A connection that was opened
    /// again counts with what is left of the old one.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn read(&mut self, clients: &[IpAddr], server: SocketAddr) -> io::Result<Vec<EndMemory>> {
        let mut held = vec![EndMemory::default(); clients.len()];
        let of = |ends: [SocketAddr; 2]| {
            let other = (ends[0] == server).then_some(ends[1]).or((ends[1] == server).then_some(ends[0]))?;
            clients.iter().position(|client| *client == other.ip())
        };
        let connections = match self.memory.mptcp() {
            // Without Multipath TCP there is TCP.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Vec::new(),
            result => result?,
        };
        for socket in &connections {
            if let Some(connection) = of(ends(socket)) {
                held[connection].send_bytes += u64::from(socket.memory.wmem_queued);
                held[connection].receive_bytes += received(&socket.memory);
            }
        }
        let is_first = |ends: [SocketAddr; 2]| connections.iter().any(|socket| self::ends(socket) == ends);
        let mut further = 0;
        for socket in self.memory.tcp()? {
            let Some(own) = of(ends(&socket)) else { continue };
            if connections.is_empty() {
                held[own].send_bytes += u64::from(socket.memory.wmem_queued);
                held[own].receive_bytes += received(&socket.memory);
                continue;
            }
            let connection = if is_first(ends(&socket)) {
                own
            } else {
                further += 1;
                self.connection_of(ends(&socket), of).unwrap_or(own)
            };
            held[connection].receive_bytes += received(&socket.memory);
        }
        self.further = self.further.max(further);
        Ok(held)
    }

    /// The most subflows besides the first ones that were seen at once.
    pub fn further_subflows(&self) -> usize {
        self.further
    }

    /// The connection of a subflow that is not its first one, by their token.
    fn connection_of(
        &mut self,
        ends: [SocketAddr; 2],
        of: impl Fn([SocketAddr; 2]) -> Option<usize>,
    ) -> Option<usize> {
        if let Some(&known) = self.known.get(&ends) {
            return Some(known);
        }
        let connections = self.tokens.connections().ok()?;
        for subflow in self.tokens.subflows().ok()? {
            let connection = connections.iter().find(|connection| connection.token == subflow.token);
            if let Some(index) = connection.and_then(|found| of([found.address.local, found.address.remote]))
            {
                self.known.insert([subflow.address.local, subflow.address.remote], index);
            }
        }
        self.known.get(&ends).copied()
    }
}

fn ends(socket: &SocketMemory) -> [SocketAddr; 2] {
    [socket.local, socket.remote]
}

/// Received and not taken by the application.
fn received(memory: &Memory) -> u64 {
    u64::from(memory.rmem_alloc) + u64::from(memory.backlog)
}
