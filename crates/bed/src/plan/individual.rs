//! Connections of one node that differ in their subflows. The kernel's path manager opens the same ones for all connections of
//! a host, so that of such a host is in user space (`run/joins.rs`).

use std::{collections::BTreeSet, net::IpAddr};

use anabranch_scenario::model::{Connection, Hop, Protocol, Scenario};

use super::{Join, layout::Layout};

/// Whether two connections may share the addresses and endpoints of their host.
pub(super) fn are_alike(one: &Connection, other: &Connection) -> bool {
    let ways = |model: &Connection| -> Vec<(Vec<Hop>, bool)> {
        model.subflows.iter().map(|subflow| (subflow.hops.clone(), subflow.backup)).collect()
    };
    ways(one) == ways(other) && one.transport == other.transport && one.ip_version == other.ip_version
}

/// The nodes at which connections of MPTCP begin that are not alike, and those with an agent. Subflows that come and go with events, later starts or
/// announcements are the kernel's path manager's in any case.
pub(super) fn nodes(scenario: &Scenario) -> BTreeSet<usize> {
    let begin_at = |node: usize| {
        let all = scenario.connections.iter().enumerate();
        all.filter(move |(_, model)| model.from == node && model.protocol == Protocol::Mptcp)
    };
    let is_plain = |(index, model): (usize, &Connection)| {
        scenario.events.iter().all(|event| event.connection != index)
            && model.subflows.iter().all(|subflow| !subflow.announced && subflow.start.is_none())
    };
    let differ = |node: &usize| {
        let first = begin_at(*node).next();
        first.is_some_and(|(_, first)| begin_at(*node).any(|(_, model)| !are_alike(first, model)))
    };
    let has_agent = |node: usize| scenario.nodes[node].agent.is_some() && begin_at(node).next().is_some();
    let individual = |&node: &usize| has_agent(node) || differ(&node) && begin_at(node).all(is_plain);
    (0..scenario.nodes.len()).filter(individual).collect()
}

impl Layout {
    /// The subflows of a connection that user space opens: all but the first, and the first too if it is a backup.
    pub(super) fn joins(&self, scenario: &Scenario, model: &Connection, addresses: &[IpAddr]) -> Vec<Join> {
        // An agent opens them by itself.
        if scenario.nodes[model.from].agent.is_some()
            || model.protocol == Protocol::Tcp
            || !self.individual.contains(&model.from)
        {
            return Vec::new();
        }
        let subflows = model.subflows.iter().zip(addresses).enumerate();
        subflows
            .filter(|(number, (subflow, _))| *number > 0 || subflow.backup)
            .map(|(number, (subflow, &address))| Join { id: number as u8, address, backup: subflow.backup })
            .collect()
    }
}
