//! Links, addresses and routes of a network namespace (rtnetlink(7)): what there is, and what changes.
//!
//! Read are a few attributes of each, all from messages that later kernels have only added to. So a message with something new in
//! it is read as before.
//!
//! # What it leaves out
//! - Rules: which table a packet's route is looked up in is not known here.
//! - Nexthop objects (`ip nexthop`): of routes that use them the kernel gives interface and gateway too, which are read.
//! - Routes that are not of IPv4 or IPv6, and ports of bridges.

mod address;
mod event;
mod link;
mod route;
#[cfg(test)]
mod tests;

use netlink_sys::protocols::NETLINK_ROUTE;

pub use address::Address;
pub use event::{Event, Events};
pub use link::Link;
pub use route::{NextHop, Route, RouteKind};

use crate::{
    NetlinkError,
    socket::Socket,
    wire::{Malformed, Question},
};

mod kind {
    pub(super) const NEW_LINK: u16 = 16;
    pub(super) const DEL_LINK: u16 = 17;
    pub(super) const GET_LINK: u16 = 18;
    pub(super) const NEW_ADDR: u16 = 20;
    pub(super) const DEL_ADDR: u16 = 21;
    pub(super) const GET_ADDR: u16 = 22;
    pub(super) const NEW_ROUTE: u16 = 24;
    pub(super) const DEL_ROUTE: u16 = 25;
    pub(super) const GET_ROUTE: u16 = 26;
}

/// Reads links, addresses and routes of a network namespace, the one that the thread was in when it was opened.
pub struct Rtnetlink {
    socket: Socket,
}

impl Rtnetlink {
    /// Opens a socket; needs no privilege.
    ///
    /// # Errors
    /// [`NetlinkError::System`].
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self { socket: Socket::open(NETLINK_ROUTE)? })
    }

    /// All links, as `ip link show`.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn links(&mut self) -> Result<Vec<Link>, NetlinkError> {
        let body = vec![0; link::HEADER];
        self.list("listing the links", kind::GET_LINK, kind::NEW_LINK, body, link::read)
    }

    /// The addresses of all links, as `ip address show`.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn addresses(&mut self) -> Result<Vec<Address>, NetlinkError> {
        let body = vec![0; address::HEADER];
        self.list("listing the addresses", kind::GET_ADDR, kind::NEW_ADDR, body, address::read)
    }

    /// The routes of all tables, those of IPv4 first, as `ip route show table all`.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn routes(&mut self) -> Result<Vec<Route>, NetlinkError> {
        let mut routes = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut body = vec![0; route::HEADER];
            body[0] = family as u8;
            let read = |body: &[u8]| match body.first() {
                // A kernel without the family lists the others.
                Some(&other) if i32::from(other) != family => Ok(None),
                _ => route::read(body),
            };
            routes.extend(self.list("listing the routes", kind::GET_ROUTE, kind::NEW_ROUTE, body, read)?);
        }
        Ok(routes)
    }

    /// The default routes by a link, in any table: of IPv4 first, those with lower metrics before others.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn default_routes(&mut self, interface: u32) -> Result<Vec<Route>, NetlinkError> {
        let mut routes = self.routes()?;
        routes.retain(|route| route.is_default() && route.next_hop_by(interface).is_some());
        routes.sort_by_key(|route| (route.destination.is_ipv6(), route.metric));
        Ok(routes)
    }

    fn list<T>(
        &mut self,
        what: &str,
        kind: u16,
        answers: u16,
        body: Vec<u8>,
        read: impl Fn(&[u8]) -> Result<Option<T>, Malformed>,
    ) -> Result<Vec<T>, NetlinkError> {
        let attributes_at = body.len();
        let question = Question { what: what.to_owned(), kind, body, attributes_at, words: |_| None };
        let bodies = self.socket.list(&question)?;
        let bodies = bodies.iter().filter(|body| body.kind == answers);
        let read = bodies.filter_map(|body| read(&body.bytes).transpose());
        read.collect::<Result<_, _>>()
            .map_err(|source| NetlinkError::Malformed { request: question.what.clone(), source })
    }
}

/// The header of a message, and what follows it.
fn split<const N: usize>(body: &[u8]) -> Result<(&[u8; N], &[u8]), Malformed> {
    body.split_first_chunk().ok_or(Malformed("a message is too short"))
}
