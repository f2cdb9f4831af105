//! Interfaces whose energy is reckoned.

use anabranch_policy::energy::Radio;

use super::{Connection, Hop, Scenario, Subflow};

/// The radio by which a node is attached to a link or medium; one of each node and link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interface {
    /// Index of the node.
    pub node: usize,
    /// What it is attached to.
    pub attachment: Attachment,
    /// Constants of the energy models.
    pub radio: Radio,
}

/// Where an interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// At an end of `links[link]`.
    Link {
        /// Index into `Scenario::links`.
        link: usize,
        /// Whether the node sends forward, from a to b.
        sends_forward: bool,
    },
    /// On a medium.
    Medium {
        /// Index into `Scenario::media`.
        medium: usize,
        /// Index of the node among the medium's stations.
        station: usize,
    },
}

impl Interface {
    /// Names of the node and of the link or medium.
    pub fn names<'s>(&self, scenario: &'s Scenario) -> (&'s str, &'s str) {
        let link = match self.attachment {
            Attachment::Link { link, .. } => &scenario.links[link].name,
            Attachment::Medium { medium, .. } => &scenario.media[medium].name,
        };
        (&scenario.nodes[self.node].name, link)
    }

    /// Whether a path goes through it, whichever way.
    pub fn is_on(&self, hops: &[Hop]) -> bool {
        hops.iter().any(|hop| match (*hop, self.attachment) {
            (Hop::Wire { link, .. }, Attachment::Link { link: own, .. }) => link == own,
            (Hop::Medium { medium, from, to }, Attachment::Medium { medium: own, .. }) => {
                medium == own && [from, to].contains(&self.node)
            }
            _ => false,
        })
    }
}

impl Scenario {
    /// The radio that a subflow of a connection goes by: of the interfaces on its path that of the node which opens the
    /// connection, else the first of the file.
    pub fn radio_of(&self, connection: &Connection, subflow: &Subflow) -> Option<Radio> {
        let mut on_path = self.interfaces.iter().filter(|interface| interface.is_on(&subflow.hops));
        let of_opener = on_path.clone().find(|interface| interface.node == connection.from);
        of_opener.or_else(|| on_path.next()).map(|interface| interface.radio)
    }

    /// Of what flows delivered, given by the indices of connections and of datagram flows, the sum over those that have
    /// an interface on a path.
    pub fn delivered_over_interfaces(
        &self,
        of_connection: impl Fn(usize) -> u64,
        of_datagram: impl Fn(usize) -> u64,
    ) -> u64 {
        let is_on = |hops: &[Hop]| self.interfaces.iter().any(|interface| interface.is_on(hops));
        let connections = self.connections.iter().enumerate();
        let connections =
            connections.filter(|(_, model)| model.subflows.iter().any(|subflow| is_on(&subflow.hops)));
        let datagrams = self.datagrams.iter().enumerate().filter(|(_, model)| is_on(&model.hops));
        connections.map(|(index, _)| of_connection(index)).sum::<u64>()
            + datagrams.map(|(index, _)| of_datagram(index)).sum::<u64>()
    }
}
