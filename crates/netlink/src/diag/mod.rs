//! Connections of Multipath TCP and their subflows as they are now, with their figures (sock_diag(7), `linux/inet_diag.h`,
//! `linux/mptcp.h`, `linux/tcp.h`): what `ss -M` and `ss -ti` show, and what makes good for events that were lost.
//!
//! The kernel only ever appends to `tcp_info` and `mptcp_info`: figures that an older kernel does not tell are `None`, and what a
//! later one adds is passed over.
//!
//! # What it leaves out
//! - Listeners, sockets in TIME_WAIT and TCP connections that are no subflows.
//! - Filters: the kernel goes through all TCP sockets of the network namespace for [`SocketDiag::subflows`], some microseconds
//!   each.
//! - The two lists of one call are not of one moment: a subflow may be listed whose connection was not.

mod abort;
mod connection;
mod memory;
mod subflow;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netlink_sys::protocols::NETLINK_SOCK_DIAG;

pub use connection::Connection;
pub use memory::{Holding, Memory};
pub use subflow::{Figures, Subflow, SubflowFlags};

use crate::{
    NetlinkError,
    mptcp::SubflowAddress,
    socket::Socket,
    wire::{Malformed, Question, Writer},
};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Size of `inet_diag_req_v2`.
const REQUEST: usize = 56;
/// Size of `inet_diag_msg`.
const ANSWER: usize = 72;

/// Attribute of a request: the protocol, for its place in the request has eight bits.
const REQUEST_PROTOCOL: u16 = 3;
/// Attribute of an answer: `tcp_info` or `mptcp_info`.
const INFO: u16 = 2;
/// Attribute of an answer: what the socket holds.
const MEMORY: u16 = 7;
/// Attribute of an answer: what the upper layer of a TCP socket adds.
const ULP_INFO: u16 = 19;
/// Types of attributes below this one are known here.
const END: usize = 20;

/// TIME_WAIT (6), CLOSE (7), LISTEN (10) and NEW_SYN_RECV (12) have no figures.
const STATES: u32 = !(1 << 6 | 1 << 7 | 1 << 10 | 1 << 12);

/// Where a TCP socket stands, by the names of RFC 9293 section 3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    /// Data flow both ways.
    Established,
    /// The handshake is under way, opened here.
    SynSent,
    /// The handshake is under way, opened by the peer.
    SynReceived,
    /// This end has nothing more to send; there are several states of that kind (FIN-WAIT-1, FIN-WAIT-2, CLOSING, LAST-ACK).
    Closing,
    /// The peer has nothing more to send.
    CloseWait,
}

impl TcpState {
    fn of(number: u8) -> Result<Self, Malformed> {
        Ok(match number {
            1 => Self::Established,
            2 => Self::SynSent,
            3 => Self::SynReceived,
            4 | 5 | 9 | 11 => Self::Closing,
            8 => Self::CloseWait,
            _ => return Err(Malformed("a socket is in a state that was not asked for")),
        })
    }

    /// Whether the connection or subflow is open in both directions.
    pub fn is_established(self) -> bool {
        self == Self::Established
    }

    /// Whether its handshake is under way.
    pub fn is_opening(self) -> bool {
        matches!(self, Self::SynSent | Self::SynReceived)
    }

    /// In the words of ss(8).
    pub fn name(self) -> &'static str {
        match self {
            Self::Established => "established",
            Self::SynSent => "syn-sent",
            Self::SynReceived => "syn-recv",
            Self::Closing => "closing",
            Self::CloseWait => "close-wait",
        }
    }
}

/// Lists the sockets of a network namespace, the one that the thread was in when it was opened.
pub struct SocketDiag {
    socket: Socket,
}

impl SocketDiag {
    /// Opens a socket; needs no privilege.
    ///
    /// # Errors
    /// [`NetlinkError::System`].
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self { socket: Socket::open(NETLINK_SOCK_DIAG)? })
    }

    /// The connections, in the kernel's order: `ss -M`.
    ///
    /// # Errors
    /// [`NetlinkError::Unsupported`] if the kernel cannot list them; [`NetlinkError`].
    pub fn connections(&mut self) -> Result<Vec<Connection>, NetlinkError> {
        const LACKING: &str = "list of connections of Multipath TCP (CONFIG_INET_MPTCP_DIAG)";
        self.list("listing the connections", libc::IPPROTO_MPTCP, LACKING, connection::read)
    }

    /// The subflows of all connections, in the kernel's order: `ss -ti`. Tells them apart from other TCP sockets only with
    /// `CAP_NET_ADMIN`; without it the list is empty.
    ///
    /// # Errors
    /// [`NetlinkError::Unsupported`] if the kernel cannot list them; [`NetlinkError`].
    pub fn subflows(&mut self) -> Result<Vec<Subflow>, NetlinkError> {
        const LACKING: &str = "list of TCP sockets (CONFIG_INET_TCP_DIAG)";
        self.list("listing the subflows", libc::IPPROTO_TCP, LACKING, subflow::read)
    }

    fn list<T>(
        &mut self,
        what: &str,
        protocol: i32,
        lacking: &'static str,
        read: fn(&[u8]) -> Result<Option<T>, Malformed>,
    ) -> Result<Vec<T>, NetlinkError> {
        let mut listed = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let question = Question {
                what: what.to_owned(),
                kind: SOCK_DIAG_BY_FAMILY,
                body: request(family, protocol),
                attributes_at: REQUEST,
                words: |path| (path == [REQUEST_PROTOCOL]).then_some("protocol"),
            };
            let bodies = match self.socket.list(&question) {
                Err(error) if error.errno() == Some(libc::ENOENT) => {
                    return Err(NetlinkError::Unsupported { what: lacking });
                }
                bodies => bodies?,
            };
            let bodies = bodies.iter().filter(|body| body.kind == SOCK_DIAG_BY_FAMILY);
            for item in bodies.filter_map(|body| read(&body.bytes).transpose()) {
                let malformed = |source| NetlinkError::Malformed { request: question.what.clone(), source };
                listed.push(item.map_err(malformed)?);
            }
        }
        Ok(listed)
    }
}

/// An `inet_diag_req_v2` for all sockets of a family and protocol, with `INFO` and `MEMORY`.
fn request(family: i32, protocol: i32) -> Vec<u8> {
    let mut bytes = vec![0; REQUEST];
    bytes[0] = family as u8;
    bytes[1] = u8::try_from(protocol).unwrap_or(u8::MAX);
    bytes[2] = 1 << (INFO - 1) | 1 << (MEMORY - 1);
    bytes[4..8].copy_from_slice(&STATES.to_ne_bytes());
    bytes.extend(Writer::default().u32(REQUEST_PROTOCOL, protocol as u32).into_bytes());
    bytes
}

/// What an `inet_diag_msg` says of every socket.
struct Header {
    state: TcpState,
    address: SubflowAddress,
    interface: Option<u32>,
    /// Until the retransmission timer, if it runs.
    retransmit_in_ms: Option<u32>,
    user: u32,
    inode: u32,
}

/// Value of `idiag_timer` while the retransmission timer runs.
const RETRANSMISSION_TIMER: u8 = 1;

/// An `inet_diag_msg` and the attributes behind it.
fn split(body: &[u8]) -> Result<(Header, &[u8]), Malformed> {
    let (header, attributes) =
        body.split_first_chunk::<ANSWER>().ok_or(Malformed("a socket's message is too short"))?;
    let is_v6 = match i32::from(header[0]) {
        libc::AF_INET => false,
        libc::AF_INET6 => true,
        _ => return Err(Malformed("a socket is of an unknown family")),
    };
    let bytes = |at: usize| -> [u8; 4] { std::array::from_fn(|byte| header[at + byte]) };
    let word = |at: usize| u32::from_ne_bytes(bytes(at));
    let end = |port_at: usize, at: usize| {
        let address: IpAddr = match is_v6 {
            true => Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|byte| header[at + byte])).into(),
            false => Ipv4Addr::from(bytes(at)).into(),
        };
        SocketAddr::new(address, u16::from_be_bytes([header[port_at], header[port_at + 1]]))
    };
    let header = Header {
        state: TcpState::of(header[1])?,
        address: SubflowAddress { local: end(4, 8), remote: end(6, 24) },
        interface: Some(word(40)).filter(|&interface| interface != 0),
        retransmit_in_ms: (header[2] == RETRANSMISSION_TIMER).then(|| word(52)),
        user: word(64),
        inode: word(68),
    };
    Ok((header, attributes))
}

/// Numbers in a structure that may be longer or shorter than the one known here.
struct Structure<'a>(&'a [u8]);

impl Structure<'_> {
    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn u8(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    fn u16(&self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_ne_bytes)
    }

    fn u32(&self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_ne_bytes)
    }

    fn u64(&self, at: usize) -> Option<u64> {
        self.array(at).map(u64::from_ne_bytes)
    }
}
