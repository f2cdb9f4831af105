//! Interfaces and their addresses as they are now.

use std::net::{IpAddr, SocketAddr};

use anabranch_netlink::{
    NetlinkError,
    rtnetlink::{Address, Link, Rtnetlink},
};

/// `RT_SCOPE_LINK`: addresses from this scope on do not lead beyond the link.
const SCOPE_LINK: u8 = 253;

/// What the kernel lists of links and addresses.
pub(super) struct Network {
    rtnetlink: Rtnetlink,
    links: Vec<Link>,
    addresses: Vec<Address>,
}

impl Network {
    pub(super) fn open() -> Result<Self, NetlinkError> {
        let mut network = Self { rtnetlink: Rtnetlink::open()?, links: Vec::new(), addresses: Vec::new() };
        network.renew()?;
        Ok(network)
    }

    /// Lists anew: what events would have told, and what they could not.
    pub(super) fn renew(&mut self) -> Result<(), NetlinkError> {
        self.links = self.rtnetlink.links()?;
        self.addresses = self.rtnetlink.addresses()?;
        Ok(())
    }

    /// By number.
    pub(super) fn links(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(|link| !link.is_loopback)
    }

    pub(super) fn link(&self, number: u32) -> Option<&Link> {
        self.links.iter().find(|link| link.index == number)
    }

    /// The interface that has an address.
    pub(super) fn interface_of(&self, address: IpAddr) -> Option<u32> {
        let found = self.addresses.iter().find(|other| other.address == address);
        found.map(|address| address.interface)
    }

    /// An address of an interface at which a subflow to `remote` may begin: `preferred` if it still is one.
    pub(super) fn local(&self, interface: u32, remote: SocketAddr, preferred: IpAddr) -> Option<IpAddr> {
        let mut usable = self.addresses.iter().filter(|address| {
            address.interface == interface
                && address.is_usable
                && address.scope < SCOPE_LINK
                && address.address.is_ipv4() == remote.is_ipv4()
        });
        if usable.clone().any(|address| address.address == preferred) {
            return Some(preferred);
        }
        let lasting = usable.clone().find(|address| !address.is_deprecated);
        lasting.or_else(|| usable.next()).map(|address| address.address)
    }

    /// Whether an interface can carry packets as far as the kernel knows.
    pub(super) fn is_up(&self, interface: u32) -> bool {
        self.link(interface).is_some_and(|link| link.is_up && link.is_running)
    }
}
