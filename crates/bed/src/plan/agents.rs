//! Nodes on which the device agent runs: its configuration in the names of the bed, and what it sees of links that go down.
//!
//! The scenario has found out which entry decides about which connection, so that the bed's configuration has one entry for each, by
//! the address and port that the bed gives its server. All connections of such a node begin at one address per interface, since
//! the agent opens a subflow from any address of an interface.

use std::net::IpAddr;

use anabranch_agent_config::{Config, ConnectionRule, InterfaceRule, Policy};
use anabranch_scenario::model::{ChangeTarget, Connection, IpVersion, Protocol, Scenario};

use super::{
    AgentPlan, CarrierPlan, Plan,
    layout::{Layout, refuse},
};
use crate::BedError;

/// What an agent's node cannot have.
pub(super) fn check(scenario: &Scenario) -> Result<(), BedError> {
    let has_agent = |node: usize| scenario.nodes[node].agent.is_some();
    let node_name = |node: usize| &scenario.nodes[node].name;
    if let Some(model) = scenario.connections.iter().find(|model| has_agent(model.to)) {
        return Err(refuse(format!(
            "node {} has an agent and accepts {}; the agent would open subflows from the server's address: give the two \
             nodes of their own",
            node_name(model.to),
            model.name
        )));
    }
    let event = scenario.events.iter().find(|event| has_agent(scenario.connections[event.connection].from));
    if let Some(event) = event {
        return Err(refuse(format!(
            "connection {}: [[event]]s act on endpoints, which an agent does not have; leave them out, take its link down by a \
             [[change]], or use the simulator",
            scenario.connections[event.connection].name
        )));
    }
    Ok(())
}

impl Plan {
    /// Whether an interface of a host is without a carrier at times.
    pub(crate) fn loses_carrier(&self, host: usize, interface: &str) -> bool {
        let interfaces = &self.hosts[host].interfaces;
        let mut own = self.agents.iter().filter(|agent| agent.host == host);
        own.any(|agent| {
            agent.carriers.iter().any(|turn| !turn.up && interfaces[turn.interface].name == interface)
        })
    }
}

impl Layout {
    /// The address at which all connections of an agent's node begin, if there is one yet.
    pub(super) fn agents_address(
        &self,
        scenario: &Scenario,
        model: &Connection,
        interface: usize,
        route_options: &[String],
    ) -> Result<Option<IpAddr>, BedError> {
        if scenario.nodes[model.from].agent.is_none() {
            return Ok(None);
        }
        let addresses = &self.plan.hosts[self.hosts[&model.from].index].interfaces[interface].addresses;
        let is_v4 = model.ip_version == IpVersion::V4;
        let Some(address) = addresses.iter().find(|address| address.ip.is_ipv4() == is_v4) else {
            return Ok(None);
        };
        if address.route_options != route_options {
            return Err(refuse(format!(
                "connection {}: at node {}, which has an agent, all connections begin at the same addresses, and this one \
                 differs in its transport from one before it",
                model.name, scenario.nodes[model.from].name
            )));
        }
        Ok(Some(address.ip))
    }

    /// Plans the agents of the hosts.
    pub(super) fn agents(&mut self, scenario: &Scenario) {
        for host in 0..self.plan.hosts.len() {
            let node = self.plan.hosts[host].node;
            let begins = |model: &&Connection| model.from == node && model.protocol == Protocol::Mptcp;
            let Some(config) = scenario.nodes[node].agent.as_deref() else { continue };
            if scenario.connections.iter().any(|model| begins(&model)) {
                let agent = self.agent(scenario, host, config);
                self.plan.agents.push(agent);
            }
        }
    }

    fn agent(&self, scenario: &Scenario, host: usize, config: &Config) -> AgentPlan {
        let interfaces = &self.plan.hosts[host].interfaces;
        // In the order of the configuration, which is that of its paths.
        let mut named: Vec<(usize, InterfaceRule)> = interfaces
            .iter()
            .filter_map(|interface| {
                let place = config.place(&interface.link)?;
                Some((
                    place,
                    // What it would probe is not there.
                    InterfaceRule {
                        name: interface.name.clone(),
                        probe: None,
                        ..config.interfaces[place].clone()
                    },
                ))
            })
            .collect();
        named.sort_by_key(|(place, _)| *place);
        let connections = scenario.connections.iter().zip(&self.plan.connections);
        let connections = connections.filter(|(model, plan)| {
            plan.client == host && model.protocol == Protocol::Mptcp && model.agent.is_some()
        });
        let rule = |(model, plan): (&Connection, &super::ConnectionPlan)| ConnectionRule {
            to: Some(plan.server_address.into()),
            port: Some(plan.port),
            policy: model.path_manager.as_ref().map(|manager| Policy {
                info: anabranch_policy::paths::find(&manager.name).expect("the scenario checked the name"),
                values: manager.params.clone(),
            }),
        };
        // The namespace is the bed's: whoever manages the machine's connections has no part in it.
        let config = Config {
            set_pm_type: true,
            beside_managers: true,
            state: None,
            bpf: config.bpf,
            interfaces: named.into_iter().map(|(_, rule)| rule).collect(),
            connections: connections.map(rule).collect(),
        };
        AgentPlan { host, config: config.to_toml(), carriers: self.carriers(scenario, host) }
    }

    /// A change that takes both directions of a link down is what the host sees, as in the simulator.
    fn carriers(&self, scenario: &Scenario, host: usize) -> Vec<CarrierPlan> {
        let changes = scenario.changes.iter().filter_map(|change| {
            let link = match change.target {
                ChangeTarget::Link { link, forward: true, reverse: true } => &scenario.links[link].name,
                ChangeTarget::Link { .. } => return None,
                ChangeTarget::Medium(medium) => &scenario.media[medium].name,
            };
            let interfaces = &self.plan.hosts[host].interfaces;
            let interface = interfaces.iter().position(|interface| interface.link == *link)?;
            Some(CarrierPlan { at: change.at, interface, up: change.up? })
        });
        changes.collect()
    }
}
