//! A scenario's transfer as the commands `anabranchd send` and `receive` carry it, in place of the bed's own applications.
//!
//! The command connects from the end that has the file, from one address per path to one address of the receiver, and looks after
//! backups by itself. So of each connection of the transfer only the first subflow is planned, all of them lead to one
//! address, and there are no endpoints.

use anabranch_scenario::model::{Connection, Direction, Protocol, Scenario, Traffic, Transfer};

use super::{CongestionSource, Plan, layout, layout::refuse};
use crate::BedError;

/// What is run in place of the scenario, in which the transfer goes from the end that connects, and its plan.
///
/// # Errors
/// [`BedError::Input`] for what the commands cannot do, with what to change, and as [`plan`](super::plan).
pub fn plan_for_anabranchd(
    scenario: &Scenario,
    seed: u64,
    source: CongestionSource,
) -> Result<(Scenario, Plan), BedError> {
    let transfer = check(scenario)?;
    let carried = carried(scenario, transfer);
    let mut plan = layout::plan(&carried, seed, source)?;
    lead_to_one_address(&mut plan);
    for host in &mut plan.hosts {
        host.sysctls.retain(|(name, _)| name != "net.mptcp.pm_type");
        // Those that a network namespace begins with; the command raises its own.
        host.mptcp_limits = None;
    }
    let note = "anabranchd decides how large chunks are, and opens each path's backups";
    plan.notes.push(format!("{}: {note}", transfer.name));
    Ok((carried, plan))
}

/// The transfer, if the commands can carry what the scenario says.
fn check(scenario: &Scenario) -> Result<&Transfer, BedError> {
    let no = |what: String| refuse(format!("--application anabranchd: {what}; expected --application own"));
    let [transfer] = &scenario.transfers[..] else {
        return Err(no(format!(
            "the commands carry one [[transfer]], the scenario has {}",
            scenario.transfers.len()
        )));
    };
    if let Some(other) = (0..scenario.connections.len()).find(|index| !transfer.over.contains(index)) {
        let name = &scenario.connections[other].name;
        return Err(no(format!(
            "connection {name} is not of the [[transfer]], which is all the commands carry"
        )));
    }
    if transfer.give_up.is_some() {
        return Err(no(format!("transfer {}: give_up is the command's own affair", transfer.name)));
    }
    if !scenario.events.is_empty() {
        return Err(no("subflows are the command's own affair, and cannot have an [[event]]".to_owned()));
    }
    let first = &scenario.connections[transfer.over[0]];
    for (position, &index) in transfer.over.iter().enumerate() {
        let model = &scenario.connections[index];
        let name = &model.name;
        if (model.from, model.to) != (first.from, first.to) {
            return Err(no(format!("connections {} and {name} have other ends", first.name)));
        }
        let settings =
            |of: &Connection| (of.protocol, of.ip_version, of.transport, of.subflows[0].congestion.clone());
        if settings(model) != settings(first) {
            return Err(no(format!(
                "connections {} and {name} differ in protocol, IP version, transport or congestion control",
                first.name
            )));
        }
        if model.transport.pacing && model.protocol == Protocol::Tcp {
            return Err(no(format!("connection {name}: the commands do not pace")));
        }
        let same = transfer.over[..position]
            .iter()
            .find(|&&other| scenario.connections[other].subflows[0].hops == model.subflows[0].hops);
        if let Some(&other) = same {
            let other = &scenario.connections[other].name;
            return Err(no(format!("connections {other} and {name} take the same path")));
        }
    }
    Ok(transfer)
}

/// The scenario with the first subflow of each connection, opened by the end that sends.
fn carried(scenario: &Scenario, transfer: &Transfer) -> Scenario {
    let mut carried = scenario.clone();
    for connection in &mut carried.connections {
        connection.subflows.truncate(1);
        connection.path_manager = None;
        let subflow = &mut connection.subflows[0];
        (subflow.backup, subflow.start) = (false, None);
        if transfer.direction == Direction::Download {
            std::mem::swap(&mut connection.from, &mut connection.to);
            subflow.hops = subflow.hops.iter().rev().map(|hop| hop.reversed()).collect();
        }
        connection.traffic = Traffic::Transfer { start: transfer.start, direction: Direction::Upload };
    }
    carried.transfers[0].direction = Direction::Upload;
    carried
}

/// Answers take the path by which their connection came, whatever the interface of the server's address is.
fn lead_to_one_address(plan: &mut Plan) {
    let Plan { connections, paths, .. } = plan;
    let (first, others) = connections.split_first_mut().expect("a transfer has connections");
    for other in others {
        (other.server_address, other.port) = (first.server_address, first.port);
        for &path in &other.paths {
            paths[path].to = first.server_address;
            paths[path + 1].from = first.server_address;
        }
    }
}
