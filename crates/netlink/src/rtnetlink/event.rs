//! What changes.

use netlink_sys::protocols::NETLINK_ROUTE;

use super::{Address, Link, Route, address, kind, link, route};
use crate::{
    Listener, NetlinkError, Notification,
    socket::Socket,
    wire::{Malformed, Message},
};

/// `RTNLGRP_LINK`, `_IPV4_IFADDR`, `_IPV4_ROUTE`, `_IPV6_IFADDR` and `_IPV6_ROUTE` of `linux/rtnetlink.h`.
const GROUPS: [u32; 5] = [1, 5, 7, 9, 11];

/// What happened to a link, an address or a route.
///
/// A link that goes down takes routes of IPv4 with it, of which the kernel tells nothing: after
/// [`LinkChanged`](Event::LinkChanged) with a link that is not up, its routes are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A link is new, or something of it has changed, perhaps nothing that is read here.
    LinkChanged(Link),
    /// A link is gone.
    LinkGone(Link),
    /// An address is new or has changed, as when it becomes usable.
    AddressChanged(Address),
    /// An address is gone.
    AddressGone(Address),
    /// A route is new or has replaced another.
    RouteChanged(Route),
    /// A route is gone.
    RouteGone(Route),
    /// Something else, from a later kernel or about what is not read here.
    Unknown {
        /// Type of the message (`RTM_*`).
        kind: u16,
    },
    /// An event that is known and whose content cannot be understood: as if it were lost.
    Unreadable,
    /// Events were lost, since they came faster than they were read: all may have changed.
    Lost,
}

/// Hears of links, addresses and routes of a network namespace.
pub type Events = Listener<Event>;

impl Events {
    /// Begins to hear; of what was before there is no event. Needs no privilege.
    ///
    /// # Errors
    /// [`NetlinkError::System`].
    pub fn open() -> Result<Self, NetlinkError> {
        let socket = Socket::open(NETLINK_ROUTE)?;
        for group in GROUPS {
            socket.join(group).map_err(NetlinkError::system("joining the groups of rtnetlink"))?;
        }
        Self::new(socket)
    }
}

impl Notification for Event {
    const LOST: Self = Self::Lost;
    const UNREADABLE: Self = Self::Unreadable;

    fn read(message: &Message<'_>) -> Self {
        match read(message) {
            Ok(Some(event)) => event,
            Ok(None) => Self::Unknown { kind: message.kind },
            Err(_) => Self::Unreadable,
        }
    }
}

fn read(message: &Message<'_>) -> Result<Option<Event>, Malformed> {
    let body = message.body;
    Ok(match message.kind {
        kind::NEW_LINK => link::read(body)?.map(Event::LinkChanged),
        kind::DEL_LINK => link::read(body)?.map(Event::LinkGone),
        kind::NEW_ADDR => address::read(body)?.map(Event::AddressChanged),
        kind::DEL_ADDR => address::read(body)?.map(Event::AddressGone),
        kind::NEW_ROUTE => route::read(body)?.map(Event::RouteChanged),
        kind::DEL_ROUTE => route::read(body)?.map(Event::RouteGone),
        _ => None,
    })
}
