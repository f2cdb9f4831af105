//! Which sockets use a congestion control, by `NETLINK_SOCK_DIAG` (sock_diag(7), `linux/inet_diag.h`).
//!
//! Left out: a socket that is neither bound nor connected, which the kernel does not list.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use nix::sys::socket::SockProtocol;
use serde::Serialize;

use super::netlink::{Netlink, attributes, text, u16_at};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_CONG: u16 = 4;
/// Size of `inet_diag_msg`.
const ANSWER: usize = 72;
/// Bits of `idiag_states`: all but TIME_WAIT (6) and NEW_SYN_RECV (12), which have no congestion control.
const STATES: u32 = !(1 << 6 | 1 << 12);
/// Names of the states as ss(8) has them, by number.
const STATE_NAMES: [&str; 12] = [
    "unconn",
    "established",
    "syn-sent",
    "syn-recv",
    "fin-wait-1",
    "fin-wait-2",
    "time-wait",
    "closed",
    "close-wait",
    "last-ack",
    "listening",
    "closing",
];

/// A TCP socket or a subflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SocketInUse {
    /// Name of its congestion control in the kernel.
    pub congestion: String,
    /// Local address and port.
    pub local: SocketAddr,
    /// The peer's address and port; zeros if it listens.
    pub remote: SocketAddr,
    /// State as ss(8) names it.
    pub state: &'static str,
}

/// All TCP sockets and subflows of the namespace that the thread is in.
///
/// # Errors
/// What the kernel says; one without `tcp_diag` says `ENOENT`.
pub(super) fn list() -> io::Result<Vec<SocketInUse>> {
    let mut netlink = Netlink::open(SockProtocol::NetlinkSockDiag)?;
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let answer = netlink.ask(SOCK_DIAG_BY_FAMILY, libc::NLM_F_DUMP, &request(family))?;
        found.extend(answer.iter().filter_map(|message| socket(&message.body)));
    }
    Ok(found)
}

/// An `inet_diag_req_v2` for all TCP sockets of a family, with their congestion control.
fn request(family: i32) -> [u8; 56] {
    let mut bytes = [0; 56];
    bytes[0] = family as u8;
    bytes[1] = libc::IPPROTO_TCP as u8;
    bytes[2] = 1 << (INET_DIAG_CONG - 1);
    bytes[4..8].copy_from_slice(&STATES.to_ne_bytes());
    bytes
}

/// Reads an `inet_diag_msg` with its attributes; nothing if the congestion control is not among them.
fn socket(bytes: &[u8]) -> Option<SocketInUse> {
    let is_v6 = i32::from(*bytes.first()?) == libc::AF_INET6;
    let address = |at: usize| -> Option<IpAddr> {
        let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
        Some(match is_v6 {
            true => Ipv6Addr::from(octets).to_canonical(),
            false => Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]).into(),
        })
    };
    let port = |at| u16_at(bytes, at).map(u16::from_be);
    let name = attributes(bytes.get(ANSWER..)?).find(|(kind, _)| *kind == INET_DIAG_CONG)?.1;
    Some(SocketInUse {
        congestion: text(name).to_owned(),
        local: SocketAddr::new(address(8)?, port(4)?),
        remote: SocketAddr::new(address(24)?, port(6)?),
        state: STATE_NAMES.get(usize::from(*bytes.get(1)?)).copied().unwrap_or("unknown"),
    })
}

impl std::fmt::Display for SocketInUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.remote.port() {
            0 => write!(f, "{} {}", self.state, self.local),
            _ => write!(f, "{} {} -> {}", self.state, self.local, self.remote),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::netlink::push_attribute, *};

    #[test]
    fn a_socket_is_read_with_its_congestion_control_behind_other_attributes() {
        let mut bytes = vec![0; ANSWER];
        bytes[0] = libc::AF_INET as u8;
        bytes[1] = 1;
        bytes[4..6].copy_from_slice(&5001u16.to_be_bytes());
        bytes[6..8].copy_from_slice(&40000u16.to_be_bytes());
        bytes[8..12].copy_from_slice(&[10, 0, 0, 1]);
        bytes[24..28].copy_from_slice(&[10, 0, 0, 2]);
        push_attribute(&mut bytes, 2, &[1, 2, 3]);
        assert_eq!(socket(&bytes), None);
        push_attribute(&mut bytes, INET_DIAG_CONG, b"ab_lia\0");
        let found = socket(&bytes).expect("it has a congestion control");
        assert_eq!(found.congestion, "ab_lia");
        assert_eq!(found.to_string(), "established 10.0.0.1:5001 -> 10.0.0.2:40000");
    }

    #[test]
    fn a_listener_has_no_peer_and_ipv4_over_ipv6_is_shown_as_ipv4() {
        let mut bytes = vec![0; ANSWER];
        bytes[0] = libc::AF_INET6 as u8;
        bytes[1] = 10;
        bytes[4..6].copy_from_slice(&80u16.to_be_bytes());
        bytes[18..24].copy_from_slice(&[0xff, 0xff, 192, 0, 2, 1]);
        push_attribute(&mut bytes, INET_DIAG_CONG, b"reno\0");
        assert_eq!(socket(&bytes).expect("complete").to_string(), "listening 192.0.2.1:80");
    }
}
