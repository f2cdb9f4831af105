//! The sockets of a namespace and the memory they hold, by `NETLINK_SOCK_DIAG`.
//!
//! A subflow of MPTCP has no file descriptor of its own, so that only this way leads to what it holds. The
//! requests and answers are small enough to be written and read here (`linux/inet_diag.h`).

use std::{
    io, iter,
    net::{IpAddr, SocketAddr},
    os::fd::{AsRawFd as _, OwnedFd},
};

use nix::sys::socket::{self, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType};

use super::{
    layout::{address, i32_at, u16_at, u32_at},
    memory::Memory,
};

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

/// Asks for the memory of the connected sockets of one namespace.
#[derive(Debug)]
pub struct SocketDiag {
    netlink: OwnedFd,
    /// Numbers of the interfaces; 0 stands for none in particular.
    interfaces: Vec<u32>,
    received: Vec<u8>,
    sequence: u32,
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
    /// For the namespace that the calling thread is in, with the interfaces that it has now. The thread may
    /// leave it afterwards.
    ///
    /// # Errors
    /// What `socket(2)` and `if_nameindex(3)` say.
    pub fn open() -> io::Result<Self> {
        let protocol = SockProtocol::NetlinkSockDiag;
        let netlink =
            socket::socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        let named = nix::net::if_::if_nameindex()?;
        let interfaces = iter::once(0).chain(named.iter().map(|interface| interface.index()));
        Ok(Self { netlink, interfaces: interfaces.collect(), received: vec![0; 1 << 16], sequence: 0 })
    }

    /// The TCP socket or subflow with these ends, if there is one that is connected.
    ///
    /// # Errors
    /// What the kernel says. A kernel without `tcp_diag` says `ENOENT`, which is as if there were no sockets.
    pub fn find(&mut self, local: SocketAddr, remote: SocketAddr) -> io::Result<Option<Memory>> {
        // A socket that is bound to an interface, as the path manager's may be, is found only by its number.
        for index in 0..self.interfaces.len() {
            match self.ask(request_one(local, remote, self.interfaces[index])) {
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                result => return result.map(|found| found.first().map(|found| found.memory)),
            }
        }
        Ok(None)
    }

    /// TCP connections and subflows of MPTCP connections, of both families, without listeners. The kernel
    /// looks through all sockets of the host for it: hundreds of times the work of [`find`](Self::find).
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
        let mut sockets = self.ask(request_all(libc::AF_INET, protocol))?;
        sockets.extend(self.ask(request_all(libc::AF_INET6, protocol))?);
        Ok(sockets)
    }

    fn ask(&mut self, mut request: Vec<u8>) -> io::Result<Vec<SocketMemory>> {
        self.sequence = self.sequence.wrapping_add(1);
        request[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        socket::send(self.netlink.as_raw_fd(), &request, MsgFlags::empty())?;
        let mut sockets = Vec::new();
        while !self.receive(&mut sockets)? {}
        Ok(sockets)
    }

    /// One datagram of the answer; returns whether it was the last.
    fn receive(&mut self, sockets: &mut Vec<SocketMemory>) -> io::Result<bool> {
        let length = socket::recv(self.netlink.as_raw_fd(), &mut self.received, MsgFlags::empty())?;
        let mut rest = &self.received[..length];
        let mut is_last = false;
        while let Some(message) = next_message(rest) {
            rest = message.after;
            if message.sequence != self.sequence {
                // The rest of an answer that could not be read to its end.
                continue;
            }
            match i32::from(message.kind) {
                libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                    let error = i32_at(message.body, 0).unwrap_or(0);
                    return if error < 0 { Err(io::Error::from_raw_os_error(-error)) } else { Ok(true) };
                }
                _ => sockets.extend(answer(message.body)),
            }
            is_last = i32::from(message.flags) & libc::NLM_F_MULTI == 0;
        }
        Ok(is_last)
    }
}

/// A request for every socket of a family and protocol.
fn request_all(family: i32, protocol: i32) -> Vec<u8> {
    request(libc::NLM_F_DUMP, family, protocol, &[])
}

/// A request for one TCP socket.
fn request_one(local: SocketAddr, remote: SocketAddr, interface: u32) -> Vec<u8> {
    /// Stands for any cookie.
    const NO_COOKIE: [u8; 8] = [0xff; 8];
    let mut id = Vec::with_capacity(48);
    id.extend(local.port().to_be_bytes());
    id.extend(remote.port().to_be_bytes());
    for end in [local, remote] {
        let begin = id.len();
        match end.ip() {
            IpAddr::V4(ip) => id.extend(ip.octets()),
            IpAddr::V6(ip) => id.extend(ip.octets()),
        }
        id.resize(begin + 16, 0);
    }
    id.extend(interface.to_ne_bytes());
    id.extend(NO_COOKIE);
    let family = if local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    request(0, family, libc::IPPROTO_TCP, &id)
}

/// An `inet_diag_req_v2` that asks for memory, with the socket's identity if it is about one.
fn request(flags: i32, family: i32, protocol: i32, id: &[u8]) -> Vec<u8> {
    let length = NLMSG_HEADER + REQUEST + 8;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes());
    bytes.extend([0; 8]);
    // The protocol's own field has eight bits, too few for MPTCP; TCP is told in both places, for kernels
    // that do not know the attribute.
    let short = u8::try_from(protocol).unwrap_or(0);
    bytes.extend([family as u8, short, 1 << (INET_DIAG_SKMEMINFO - 1), 0]);
    bytes.extend((!(1_u32 << STATE_LISTEN)).to_ne_bytes());
    bytes.extend(id);
    bytes.resize(NLMSG_HEADER + REQUEST, 0);
    bytes.extend(8_u16.to_ne_bytes());
    bytes.extend(INET_DIAG_REQ_PROTOCOL.to_ne_bytes());
    bytes.extend((protocol as u32).to_ne_bytes());
    bytes
}

/// A netlink message and what follows it.
struct Message<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &'a [u8],
    after: &'a [u8],
}

fn next_message(bytes: &[u8]) -> Option<Message<'_>> {
    let length = u32_at(bytes, 0)? as usize;
    Some(Message {
        kind: u16_at(bytes, 4)?,
        flags: u16_at(bytes, 6)?,
        sequence: u32_at(bytes, 8)?,
        body: bytes.get(NLMSG_HEADER..length)?,
        after: bytes.get(length.next_multiple_of(4)..).unwrap_or_default(),
    })
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
            while let Some(message) = next_message(rest) {
                prop_assert!(message.body.len() + message.after.len() < rest.len());
                rest = message.after;
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
