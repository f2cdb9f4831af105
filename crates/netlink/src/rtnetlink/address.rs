//! Addresses of links (`struct ifaddrmsg`).

use std::net::IpAddr;

use super::split;
use crate::wire::{Attributes, Malformed};

pub(super) const HEADER: usize = 8;

const ADDRESS: u16 = 1;
const LOCAL: u16 = 2;
const FLAGS: u16 = 8;
const END: usize = 9;

const DAD_FAILED: u32 = 0x08;
const DEPRECATED: u32 = 0x20;
const TENTATIVE: u32 = 0x40;

/// An address of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The link's number.
    pub interface: u32,
    /// The address of this machine.
    pub address: IpAddr,
    /// How many of its bits are the network's.
    pub prefix_length: u8,
    /// How far it is valid: 0 everywhere, 253 on the link, 254 on this machine (`RT_SCOPE_*`).
    pub scope: u8,
    /// Sockets can be bound to it: it is not being looked for on the link, nor was it found there (RFC 4862 section 5.4).
    pub is_usable: bool,
    /// New connections had better use another (RFC 4862 section 5.5.4).
    pub is_deprecated: bool,
}

/// None if the message is not about IPv4 or IPv6.
pub(super) fn read(body: &[u8]) -> Result<Option<Address>, Malformed> {
    let (header, attributes) = split::<HEADER>(body)?;
    let [family, prefix_length, short_flags, scope, index @ ..] = *header;
    let is_v4 = match i32::from(family) {
        libc::AF_INET => true,
        libc::AF_INET6 => false,
        _ => return Ok(None),
    };
    let attributes = Attributes::<END>::read(attributes)?;
    // On a link between two ends, `ADDRESS` is the other end.
    let address = match attributes.ip(LOCAL)? {
        Some(address) => address,
        None => attributes.ip(ADDRESS)?.ok_or(Malformed("an address is missing"))?,
    };
    if address.is_ipv4() != is_v4 {
        return Err(Malformed("an address is of the wrong family"));
    }
    let flags = attributes.u32(FLAGS)?.unwrap_or(u32::from(short_flags));
    Ok(Some(Address {
        interface: u32::from_ne_bytes(index),
        address,
        prefix_length,
        scope,
        is_usable: flags & (TENTATIVE | DAD_FAILED) == 0,
        is_deprecated: flags & DEPRECATED != 0,
    }))
}
