//! Memory that sockets hold: `SO_MEMINFO` of a socket in hand, `INET_DIAG_SKMEMINFO` of a namespace's subflows.
//!
//! A subflow of MPTCP has no file descriptor of its own, so that only `NETLINK_SOCK_DIAG` tells what it
//! holds. The requests and answers are small enough to be written and read here.

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsRawFd as _, BorrowedFd, OwnedFd},
};

use nix::sys::socket::{self, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType};
use socket2::SockRef;

use super::{
    Sample, SubflowSample,
    layout::{address, i32_at, u16_at, u32_at},
    sockets::get_option,
};

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
    fn decode(bytes: &[u8]) -> Option<Self> {
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
    /// Reads `socket` and finds its subflows, which `sample` knows, among the TCP sockets of its namespace.
    ///
    /// # Errors
    /// As [`of_socket`].
    pub fn read(socket: BorrowedFd<'_>, sample: &Sample, tcp: &[SocketMemory]) -> io::Result<Self> {
        // Not Sample::is_mptcp: a connection that has fallen back to TCP still has an MPTCP socket above it.
        let has_subflows = SockRef::from(&socket).protocol()? == Some(socket2::Protocol::MPTCP);
        let mut subflows = Vec::new();
        if has_subflows {
            let ends = |subflow: &SubflowSample| (subflow.local, subflow.remote);
            let is_ours = |of: &&SocketMemory| {
                sample.subflows.iter().any(|subflow| ends(subflow) == (of.local, of.remote))
            };
            subflows.extend(tcp.iter().filter(is_ours).map(|of| of.memory));
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

/// A socket of a namespace and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketMemory {
    /// Local address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// As [`state`](super::SubflowSample::state).
    pub state: u8,
    /// What it holds.
    pub memory: Memory,
}

/// Asks for the memory of all connected sockets of one namespace.
#[derive(Debug)]
pub struct SocketDiag {
    netlink: OwnedFd,
    received: Vec<u8>,
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_HEADER: usize = 16;
const INET_DIAG_SKMEMINFO: u16 = 7;
const INET_DIAG_REQ_PROTOCOL: u16 = 3;
/// Size of `inet_diag_req_v2`.
const REQUEST: usize = 56;
/// Size of `inet_diag_msg`.
const ANSWER: usize = 72;
const STATE_LISTEN: u32 = 10;

impl SocketDiag {
    /// For the namespace that the calling thread is in; it may leave it afterwards.
    ///
    /// # Errors
    /// What `socket(2)` says.
    pub fn open() -> io::Result<Self> {
        let protocol = SockProtocol::NetlinkSockDiag;
        let netlink =
            socket::socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        Ok(Self { netlink, received: vec![0; 1 << 16] })
    }

    /// TCP connections and subflows of MPTCP connections, of both families, without listeners.
    ///
    /// # Errors
    /// What the kernel says; `ENOENT` if it has no `tcp_diag`.
    pub fn tcp(&mut self) -> io::Result<Vec<SocketMemory>> {
        self.all(libc::IPPROTO_TCP)
    }

    /// MPTCP connections of both families, without listeners. Their addresses are those of the first subflow.
    ///
    /// # Errors
    /// What the kernel says; `ENOENT` if it has no `mptcp_diag`.
    pub fn mptcp(&mut self) -> io::Result<Vec<SocketMemory>> {
        self.all(libc::IPPROTO_MPTCP)
    }

    fn all(&mut self, protocol: i32) -> io::Result<Vec<SocketMemory>> {
        let mut sockets = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let request = request(family as u8, protocol as u32);
            socket::send(self.netlink.as_raw_fd(), &request, MsgFlags::empty())?;
            while !self.receive(&mut sockets)? {}
        }
        Ok(sockets)
    }

    /// One datagram of the answer; returns whether it was the last.
    fn receive(&mut self, sockets: &mut Vec<SocketMemory>) -> io::Result<bool> {
        let length = socket::recv(self.netlink.as_raw_fd(), &mut self.received, MsgFlags::empty())?;
        let mut rest = &self.received[..length];
        while let Some((kind, body, after)) = next_message(rest) {
            match i32::from(kind) {
                libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                    let error = i32_at(body, 0).unwrap_or(0);
                    return if error < 0 { Err(io::Error::from_raw_os_error(-error)) } else { Ok(true) };
                }
                _ => sockets.extend(answer(body)),
            }
            rest = after;
        }
        Ok(false)
    }
}

/// A request for every socket of a family and protocol.
fn request(family: u8, protocol: u32) -> Vec<u8> {
    let mut attribute = Vec::new();
    attribute.extend(8_u16.to_ne_bytes());
    attribute.extend(INET_DIAG_REQ_PROTOCOL.to_ne_bytes());
    attribute.extend(protocol.to_ne_bytes());
    let length = NLMSG_HEADER + REQUEST + attribute.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    bytes.extend([0; 8]);
    // The protocol's own field has eight bits, too few for MPTCP; TCP is told in both places, for kernels
    // that do not know the attribute.
    bytes.extend([family, u8::try_from(protocol).unwrap_or(0), 1 << (INET_DIAG_SKMEMINFO - 1), 0]);
    bytes.extend((!(1_u32 << STATE_LISTEN)).to_ne_bytes());
    bytes.resize(NLMSG_HEADER + REQUEST, 0);
    bytes.extend(attribute);
    bytes
}

/// Splits netlink messages: type and body of the first, and what follows it.
fn next_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32_at(bytes, 0)? as usize;
    let body = bytes.get(NLMSG_HEADER..length)?;
    Some((u16_at(bytes, 4)?, body, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// An `inet_diag_msg` with its attributes; nothing if the memory is not among them.
fn answer(bytes: &[u8]) -> Option<SocketMemory> {
    let is_v6 = i32::from(*bytes.first()?) == libc::AF_INET6;
    let port = |at| u16_at(bytes, at).map(u16::from_be);
    let local = SocketAddr::new(address(bytes, 8, is_v6)?, port(4)?);
    let remote = SocketAddr::new(address(bytes, 24, is_v6)?, port(6)?);
    let mut rest = bytes.get(ANSWER..)?;
    loop {
        let length = usize::from(u16_at(rest, 0)?);
        let value = rest.get(4..length)?;
        if u16_at(rest, 2)? == INET_DIAG_SKMEMINFO {
            return Some(SocketMemory {
                local,
                remote,
                state: *bytes.get(1)?,
                memory: Memory::decode(value)?,
            });
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_answer_makes_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = answer(&bytes);
            let mut rest = &bytes[..];
            while let Some((_, body, after)) = next_message(rest) {
                prop_assert!(body.len() + after.len() < rest.len());
                rest = after;
            }
        }

        #[test]
        fn memory_is_found_behind_other_attributes(
            before in prop::collection::vec(any::<u8>(), 0..20),
            values in prop::array::uniform9(any::<u32>()),
        ) {
            let mut bytes = vec![0; ANSWER];
            bytes[0] = libc::AF_INET as u8;
            bytes[4..6].copy_from_slice(&80_u16.to_be_bytes());
            for (kind, value) in [
                (1, before),
                (INET_DIAG_SKMEMINFO, values.iter().flat_map(|value| value.to_ne_bytes()).collect()),
            ] {
                bytes.extend((4 + value.len() as u16).to_ne_bytes());
                bytes.extend(kind.to_ne_bytes());
                bytes.extend(value);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            let found = answer(&bytes).expect("it is there");
            prop_assert_eq!(found.local.port(), 80);
            prop_assert_eq!((found.memory.rmem_alloc, found.memory.drops), (values[0], values[8]));
        }
    }
}
