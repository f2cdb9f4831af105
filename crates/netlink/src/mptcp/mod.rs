//! The generic netlink family `mptcp_pm` (`linux/mptcp_pm.h`, `Documentation/netlink/specs/mptcp_pm.yaml`; ip-mptcp(8)).
//!
//! [`PathManager`] asks, [`Events`] hears. Which commands do something depends on the path manager of a connection, which
//! `net.mptcp.pm_type` (from Linux 6.16 `net.mptcp.path_manager`) gave it when it began ([`Choice`]):
//!
//! | the kernel's own | in user space |
//! |---|---|
//! | [`add_endpoint`](PathManager::add_endpoint) and the other commands for endpoints and limits | [`announce`](PathManager::announce), [`remove`](PathManager::remove), [`create_subflow`](PathManager::create_subflow), [`destroy_subflow`](PathManager::destroy_subflow), [`set_subflow_backup`](PathManager::set_subflow_backup) |
//!
//! All of it needs `CAP_NET_ADMIN` in the user namespace that owns the network namespace, but for reading limits.

mod choice;
mod endpoint;
mod event;
mod manager;
#[cfg(test)]
mod tests;
mod uapi;

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

pub use choice::{Choice, Kept, Turn, keeper};
pub use endpoint::{Endpoint, EndpointFlags};
pub use event::{Announcement, Closed, Connection, Event, Events, Reset, Subflow};
pub use manager::PathManager;

/// What names a connection on this machine: the token that a peer's joins carry (RFC 8684 section 3.2). `ss -M` and
/// `ip mptcp monitor` show it in hexadecimal digits, as this does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

impl fmt::Display for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:08x}", self.0)
    }
}

/// How much the kernel's own path manager does for each connection. At most 8 of either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many addresses that the peer announces are used.
    pub add_addr_accepted: u32,
    /// How many subflows there may be besides the first.
    pub subflows: u32,
}

/// The ends of a subflow, which name it within its connection.
///
/// Addresses of IPv4 on a socket of IPv6 are kept as the kernel gives them, mapped: it wants them so again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubflowAddress {
    /// This machine's end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
}

impl fmt::Display for SubflowAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} > {}", self.local, self.remote)
    }
}

/// A family of addresses as the kernel numbers it.
fn family(address: IpAddr) -> u16 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u16
}
