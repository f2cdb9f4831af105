//! Routes (`struct rtmsg`).

use std::net::IpAddr;

use super::split;
use crate::wire::{Attributes, Malformed, attributes::ip};

pub(super) const HEADER: usize = 12;

const DESTINATION: u16 = 1;
const INTERFACE: u16 = 4;
const GATEWAY: u16 = 5;
const METRIC: u16 = 6;
const PREFERRED_SOURCE: u16 = 7;
const MULTIPATH: u16 = 9;
const TABLE: u16 = 15;
const VIA: u16 = 18;
const END: usize = 19;

/// Flag of an entry that the kernel keeps for one destination.
const CLONED: u32 = 0x200;
/// Length of `struct rtnexthop`.
const NEXT_HOP: usize = 8;

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where it leads, and how many bits of that count: 0 for a default route.
    pub destination: IpAddr,
    /// See `destination`.
    pub prefix_length: u8,
    /// What becomes of its packets.
    pub kind: RouteKind,
    /// The table that it is in: 254 is the main one.
    pub table: u32,
    /// Of two routes to the same place the one with the lower metric counts.
    pub metric: u32,
    /// The address that sockets get that are not bound to one.
    pub preferred_source: Option<IpAddr>,
    /// Where packets go next; more than one if the kernel spreads flows over them, none if they go nowhere.
    pub next_hops: Vec<NextHop>,
}

/// Where a route's packets go next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// Number of the link.
    pub interface: u32,
    /// The router; none if the destination is on the link. May be of another family than the route (RFC 9229).
    pub gateway: Option<IpAddr>,
}

/// What becomes of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// They are forwarded.
    Unicast,
    /// They are this machine's.
    Local,
    /// They go nowhere, and the sender hears of it or not: `blackhole`, `unreachable`, `prohibit`.
    Refused,
    /// Something else, by the kernel's number (`RTN_*`).
    Other(u8),
}

impl Route {
    /// Whether it leads everywhere, by forwarding.
    pub fn is_default(&self) -> bool {
        self.prefix_length == 0 && self.kind == RouteKind::Unicast
    }

    /// Where its packets go next if they leave by that link.
    pub fn next_hop_by(&self, interface: u32) -> Option<NextHop> {
        self.next_hops.iter().copied().find(|hop| hop.interface == interface)
    }
}

/// None if the message is not about IPv4 or IPv6, or about an entry for one destination that the kernel keeps.
pub(super) fn read(body: &[u8]) -> Result<Option<Route>, Malformed> {
    let (header, attributes) = split::<HEADER>(body)?;
    let [family, prefix_length, _, _, table, _, _, kind, flags @ ..] = *header;
    let unspecified: IpAddr = match i32::from(family) {
        libc::AF_INET => std::net::Ipv4Addr::UNSPECIFIED.into(),
        libc::AF_INET6 => std::net::Ipv6Addr::UNSPECIFIED.into(),
        _ => return Ok(None),
    };
    if u32::from_ne_bytes(flags) & CLONED != 0 {
        return Ok(None);
    }
    let attributes = Attributes::<END>::read(attributes)?;
    let destination = attributes.ip(DESTINATION)?.unwrap_or(unspecified);
    if destination.is_ipv4() != unspecified.is_ipv4() {
        return Err(Malformed("a destination is of the wrong family"));
    }
    let own = match attributes.u32(INTERFACE)? {
        Some(interface) => Some(NextHop { interface, gateway: gateway(&attributes)? }),
        None => None,
    };
    let mut next_hops: Vec<NextHop> = own.into_iter().collect();
    if let Some(bytes) = attributes.bytes(MULTIPATH) {
        next_hops.extend(several(bytes)?);
    }
    Ok(Some(Route {
        destination,
        prefix_length,
        kind: match kind {
            libc::RTN_UNICAST => RouteKind::Unicast,
            libc::RTN_LOCAL => RouteKind::Local,
            libc::RTN_BLACKHOLE | libc::RTN_UNREACHABLE | libc::RTN_PROHIBIT => RouteKind::Refused,
            kind => RouteKind::Other(kind),
        },
        table: attributes.u32(TABLE)?.unwrap_or(u32::from(table)),
        metric: attributes.u32(METRIC)?.unwrap_or(0),
        preferred_source: attributes.ip(PREFERRED_SOURCE)?,
        next_hops,
    }))
}

fn gateway(attributes: &Attributes<'_, END>) -> Result<Option<IpAddr>, Malformed> {
    if let Some(gateway) = attributes.ip(GATEWAY)? {
        return Ok(Some(gateway));
    }
    // `struct rtvia`: a family in two bytes, then the address.
    attributes.bytes(VIA).map(|via| ip(via.get(2..).unwrap_or_default())).transpose()
}

fn several(mut rest: &[u8]) -> Result<Vec<NextHop>, Malformed> {
    const WRONG: Malformed = Malformed("the length of a next hop does not fit");
    let mut next_hops = Vec::new();
    while let Some(header) = rest.first_chunk::<NEXT_HOP>() {
        let [low, high, _, _, interface @ ..] = *header;
        let length = usize::from(u16::from_ne_bytes([low, high]));
        let attributes = Attributes::<END>::read(rest.get(NEXT_HOP..length).ok_or(WRONG)?)?;
        next_hops.push(NextHop { interface: u32::from_ne_bytes(interface), gateway: gateway(&attributes)? });
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    if rest.is_empty() { Ok(next_hops) } else { Err(WRONG) }
}
