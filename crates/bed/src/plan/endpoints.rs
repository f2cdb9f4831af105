//! What the kernel's path manager is told: endpoints, limits, and events of subflows.
//!
//! Endpoints are a host's, not a connection's, so that what happens to one happens to all connections of the host.

use anabranch_scenario::model::{Action, Connection, Event, Protocol, Scenario};

use super::{
    Endpoint, EventPlan, Role,
    individual::are_alike,
    layout::{Layout, refuse},
};
use crate::{BedError, Nanos};

/// The kernel's bound (`MPTCP_SUBFLOWS_MAX`) on subflows besides the first.
const FURTHER_SUBFLOWS_MAX: usize = 8;

/// The endpoints of each subflow, at the client and at the server.
pub(super) fn of(scenario: &Scenario, model: &Connection) -> Vec<[Option<Endpoint>; 2]> {
    let subflows = model.subflows.iter().enumerate();
    subflows
        .map(|(number, subflow)| {
            let (id, role) = match number {
                _ if subflow.announced => (number, Role::Signal),
                0 => (model.subflows.len(), Role::First),
                _ => (number, Role::Subflow),
            };
            let endpoint =
                Endpoint { id: id as u8, backup: subflow.backup, role, present: subflow.start.is_none() };
            // Connections are opened from their first address in any case; to change it takes an endpoint.
            let is_needed = number > 0 || subflow.backup || has_events(scenario, model, number);
            let endpoint = Some(endpoint).filter(|_| model.protocol == Protocol::Mptcp && is_needed);
            if subflow.announced { [None, endpoint] } else { [endpoint, None] }
        })
        .collect()
}

fn has_events(scenario: &Scenario, model: &Connection, subflow: usize) -> bool {
    scenario
        .events
        .iter()
        .any(|event| event.subflow == subflow && scenario.connections[event.connection].name == model.name)
}

/// Time, subflow and action of what happens to a connection.
fn events_of(scenario: &Scenario, index: usize) -> impl Iterator<Item = (Nanos, usize, Action)> + '_ {
    let own = scenario.events.iter().filter(move |event| event.connection == index);
    own.map(|&Event { at, subflow, action, .. }| (at, subflow, action))
}

impl Layout {
    /// Sets the limits of the path manager at one end of a connection.
    pub(super) fn limit(
        &mut self,
        scenario: &Scenario,
        node: usize,
        model: &Connection,
    ) -> Result<(), BedError> {
        let announced = model.subflows.iter().filter(|subflow| subflow.announced).count();
        // A first subflow that is opened again is one of the others.
        let further = model.subflows.len() - 1 + usize::from(has_events(scenario, model, 0));
        if further > FURTHER_SUBFLOWS_MAX {
            return Err(refuse(format!(
                "connection {} has {} subflows; the kernel's path manager opens at most {}, one of them in place of a \
                 first one that has events",
                model.name,
                model.subflows.len(),
                FURTHER_SUBFLOWS_MAX + 1
            )));
        }
        // A server does not hear of a subflow that an agent closes over a dead link, and counts it beside the one that is opened anew.
        let further = if model.agent.is_some() { FURTHER_SUBFLOWS_MAX } else { further };
        let limits = &mut self.plan.hosts[self.hosts[&node].index].mptcp_limits;
        let (subflows, accepted) = limits.unwrap_or_default();
        let announced = if node == model.from { announced } else { 0 };
        *limits = Some((subflows.max(further as u8), accepted.max(announced as u8)));
        Ok(())
    }

    /// The events of a connection, as those of its addresses.
    pub(super) fn events(&mut self, scenario: &Scenario, index: usize) {
        let plan = &self.plan.connections[index];
        let (host, addresses) = (plan.client, &plan.client_addresses);
        let events = events_of(scenario, index).map(|(at, subflow, action)| EventPlan {
            at,
            host,
            address: addresses[subflow],
            action,
        });
        self.plan.events.extend(events);
    }

    /// Endpoints are a host's, not a connection's: the connection whose subflows this one has too, if any.
    pub(super) fn shared_endpoints(
        &mut self,
        scenario: &Scenario,
        index: usize,
        model: &Connection,
    ) -> Result<Option<usize>, BedError> {
        let accepted = *self.mptcp_servers.entry(model.to).or_insert(index);
        let first = *self.mptcp_clients.entry(model.from).or_insert(index);
        for node in [model.from, model.to] {
            let (Some(&server), Some(&client)) =
                (self.mptcp_servers.get(&node), self.mptcp_clients.get(&node))
            else {
                continue;
            };
            return Err(refuse(format!(
                "node {} opens {} and accepts {}; the kernel's path manager would open subflows for both: give them \
                 nodes of their own",
                scenario.nodes[node].name,
                scenario.connections[client].name,
                scenario.connections[server].name
            )));
        }
        let announces =
            |index: usize| scenario.connections[index].subflows.iter().any(|subflow| subflow.announced);
        let other = &scenario.connections[accepted];
        if other.from != model.from && (announces(accepted) || announces(index)) {
            return Err(refuse(format!(
                "connections {} and {} both end at node {}; the kernel's path manager announces the same addresses to \
                 both: give them nodes of their own, or leave out `announced`",
                other.name, model.name, scenario.nodes[model.to].name
            )));
        }
        if first == index || self.individual.contains(&model.from) {
            return Ok(None);
        }
        let other = &scenario.connections[first];
        if !of(scenario, other).eq(&of(scenario, model))
            || !events_of(scenario, first).eq(events_of(scenario, index))
        {
            return Err(refuse(format!(
                "connections {} and {} both begin at node {} but differ in [[event]], `start` or `announced`; what \
                 happens to an address happens to all connections of a host: give them nodes of their own",
                other.name, model.name, scenario.nodes[model.from].name
            )));
        }
        if !are_alike(other, model) {
            return Err(refuse(format!(
                "connections {} and {} both begin at node {} but differ in subflows, transport or IP version, and have \
                 [[event]], `start` or `announced`; the kernel's path manager, which these are for, opens the same \
                 subflows for all connections of a host: give them nodes of their own",
                other.name, model.name, scenario.nodes[model.from].name
            )));
        }
        Ok(Some(first))
    }
}
