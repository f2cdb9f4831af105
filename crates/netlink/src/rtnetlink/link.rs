//! Links (`struct ifinfomsg`).

use super::split;
use crate::wire::{Attributes, Malformed};

pub(super) const HEADER: usize = 16;

const NAME: u16 = 3;
const MTU: u16 = 4;
/// `struct rtnl_link_stats64`: packets received and sent, then bytes received and sent.
const STATISTICS: u16 = 23;
const END: usize = 24;

/// An interface of the network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub index: u32,
    /// Its name, which may change.
    pub name: String,
    /// It is switched on (`IFF_UP`).
    pub is_up: bool,
    /// Its lower layer works: a cable, an association, a bearer (`IFF_LOWER_UP`).
    pub is_lower_up: bool,
    /// It can carry packets as far as the kernel knows, which needs both of these, and no pending authentication (`IFF_RUNNING`,
    /// RFC 2863).
    pub is_running: bool,
    /// It leads back to this machine.
    pub is_loopback: bool,
    /// Longest packet in bytes, if the message says.
    pub mtu: Option<u32>,
    /// Bytes received and sent since the link is there, if the message says.
    pub carried_bytes: Option<u64>,
}

/// None if the message is about something else, as the port of a bridge.
pub(super) fn read(body: &[u8]) -> Result<Option<Link>, Malformed> {
    let (header, attributes) = split::<HEADER>(body)?;
    if i32::from(header[0]) != libc::AF_UNSPEC {
        return Ok(None);
    }
    let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|byte| header[at + byte]));
    let attributes = Attributes::<END>::read(attributes)?;
    let flags = word(8);
    let has = |flag: libc::c_int| flags & flag as u32 != 0;
    Ok(Some(Link {
        index: word(4),
        name: attributes.text(NAME).ok_or(Malformed("a link has no name"))?,
        is_up: has(libc::IFF_UP),
        is_lower_up: has(libc::IFF_LOWER_UP),
        is_running: has(libc::IFF_RUNNING),
        is_loopback: has(libc::IFF_LOOPBACK),
        mtu: attributes.u32(MTU)?,
        carried_bytes: attributes.bytes(STATISTICS).and_then(carried_bytes),
    }))
}

fn carried_bytes(statistics: &[u8]) -> Option<u64> {
    let number = |at: usize| Some(u64::from_ne_bytes(statistics.get(at..at + 8)?.try_into().ok()?));
    Some(number(16)?.wrapping_add(number(24)?))
}
