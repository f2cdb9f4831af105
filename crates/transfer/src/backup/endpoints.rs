//! Backups by the kernel's path manager, where it cannot be chosen for our sockets alone.
//!
//! It knows endpoints of the whole network namespace: an address with the flags `subflow backup` gives every connection another
//! subflow from there, which carries data only while no other can. A connection that *begins* at such an address would have its first
//! subflow made a backup too; so an address becomes an endpoint only after its own connection has begun, and is none while that is
//! opened again.
//!
//! Endpoints are everybody's in the namespace. So this is done only where there are none yet, and they are taken away at the end; a sender
//! that is killed leaves them (`ip mptcp endpoint flush` removes them), and the next one leaves those alone. A connection has a second subflow over
//! its own path, too, which is of no use: the kernel notes an address as taken by a first subflow only where it was an endpoint
//! when the kernel first looked.

use std::net::{IpAddr, Ipv4Addr};

use anabranch_netlink::{
    NetlinkError,
    mptcp::{Endpoint, EndpointFlags, Limits, PathManager},
    rtnetlink::Rtnetlink,
};

use super::NoBackups;

/// An address that no machine has.
const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// Endpoints that are ours.
pub(super) struct Endpoints {
    manager: PathManager,
    /// What is added, and which number the kernel gave it.
    added: Vec<(IpAddr, u8)>,
    /// What there was before.
    limits: Option<Limits>,
}

impl Endpoints {
    /// For so many paths; adds nothing yet.
    pub(super) fn begin(mut manager: PathManager, paths: usize) -> Result<Self, NoBackups> {
        if !manager.endpoints()?.is_empty() {
            return Err(NoBackups::EndpointsThere);
        }
        let before = manager.limits()?;
        // The kernel's own limit is eight.
        let wanted =
            Limits { subflows: u32::try_from(paths).unwrap_or(8).min(8).max(before.subflows), ..before };
        manager.set_limits(wanted)?;
        Ok(Self { manager, added: Vec::new(), limits: Some(before) })
    }

    /// Other connections may have subflows from this address.
    pub(super) fn add(&mut self, address: IpAddr) -> Result<(), NetlinkError> {
        if self.added.iter().any(|(known, _)| *known == address) {
            return Ok(());
        }
        self.have_first_subflows_noted()?;
        let flags = EndpointFlags::SUBFLOW | EndpointFlags::BACKUP;
        let known = Rtnetlink::open()?.addresses()?;
        let interface = known.iter().find(|known| known.address == address).map(|known| known.interface);
        self.manager.add_endpoint(&Endpoint { flags, interface, ..Endpoint::new(address) })?;
        let there = self.manager.endpoints()?;
        let added = there.iter().find(|endpoint| endpoint.address == address).map(|endpoint| endpoint.id);
        self.added.extend(added.map(|id| (address, id)));
        Ok(())
    }

    /// Has the kernel note, for each connection, that its first address is no endpoint.
    ///
    /// It looks that up once per connection, when it first has something to do for it. That is when a connection begins if there are endpoints
    /// then, and else when the first one is added: which, if it is the connection's own address and a backup, makes the first subflow a
    /// backup (seen on Linux 6.18 by MP_PRIO). So one is added before, at an address that nobody has (TEST-NET-1, RFC 5737), from which no
    /// subflow can be opened, and taken away again.
    fn have_first_subflows_noted(&mut self) -> Result<(), NetlinkError> {
        let nobody = Endpoint { flags: EndpointFlags::SUBFLOW, ..Endpoint::new(NOBODY) };
        self.manager.add_endpoint(&nobody)?;
        let there = self.manager.endpoints()?;
        match there.iter().find(|endpoint| endpoint.address == NOBODY) {
            Some(endpoint) => self.manager.delete_endpoint(endpoint.id),
            None => Ok(()),
        }
    }

    /// A connection is about to begin at this address.
    pub(super) fn remove(&mut self, address: IpAddr) {
        self.added.retain(|(known, id)| {
            if *known == address {
                // Somebody may have removed it meanwhile.
                let _ = self.manager.delete_endpoint(*id);
            }
            *known != address
        });
    }
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        for (_, id) in &self.added {
            let _ = self.manager.delete_endpoint(*id);
        }
        if let Some(limits) = self.limits.take() {
            let _ = self.manager.set_limits(limits);
        }
    }
}
