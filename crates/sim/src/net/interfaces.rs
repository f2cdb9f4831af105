//! What interfaces have carried: all bytes on the wire, handshakes, acknowledgements and datagrams included.
//!
//! Bytes count when the packet arrives at the far end or is lost, so those that are sent count a propagation delay late.

use anabranch_scenario::model::Interface;

use super::{Key, MediumHop, Network};
use crate::packet::Packet;

impl<K: Key> Network<K> {
    /// A packet has left its station on a medium, and arrived at the other unless it was given up.
    pub(super) fn tally_medium(&mut self, packet: Packet, has_arrived: bool) {
        let hop = self.routes[packet.route as usize] as usize - self.links.first_medium();
        let MediumHop { medium, station, to } = self.medium_hops[hop];
        let to = has_arrived.then_some(to as usize);
        self.tally.medium_carried(medium as usize, station as usize, to, u32::from(packet.bytes));
    }

    /// Bytes that an interface's node has sent and received by it so far.
    pub(crate) fn carried_by(&self, interface: &Interface) -> (u64, u64) {
        self.links.carried_by(&self.tally, interface)
    }
}
