//! What the simulator does and a kernel does not, or not when a scenario says so.

use anabranch_scenario::model::{Connection, PathManager, Protocol, Recovery, Scenario};

/// What of a scenario the test bed cannot do, in words, with what to change.
pub(super) fn mechanics(scenario: &Scenario) -> Option<String> {
    let announced = scenario.events.iter().find_map(|event| {
        let connection = &scenario.connections[event.connection];
        let subflow = &connection.subflows[event.subflow];
        subflow.announced.then_some((&connection.name, &subflow.name))
    });
    if let Some((name, subflow)) = announced {
        return Some(format!(
            "connection {name}: subflow {subflow} is announced; the kernel's path manager can change only subflows that the \
             client opens by itself: leave out its [[event]] or its `announced`, or use the simulator"
        ));
    }
    if let Some(flow) = scenario.connections.iter().find(|flow| flow.transport.recovery == Recovery::Tahoe) {
        let name = &flow.name;
        return Some(format!(
            "connection {name}: Linux does not recover as Tahoe; expected recovery = \"newreno\", or the simulator"
        ));
    }
    scenario.connections.iter().filter(|flow| flow.protocol == Protocol::Mptcp).find_map(of_connection)
}

fn of_connection(connection: &Connection) -> Option<String> {
    let (name, transport) = (&connection.name, &connection.transport);
    if let Some(what) = connection.path_manager.as_ref().and_then(|manager| of_manager(connection, manager)) {
        return Some(format!("connection {name}: {what}"));
    }
    let keys = [
        ("opportunistic_retransmission", transport.opportunistic_retransmission),
        ("penalisation", transport.penalisation),
    ];
    let (key, _) = keys.into_iter().find(|&(_, wanted)| wanted)?;
    Some(format!("connection {name}: Linux has no {key}; leave it out, or use the simulator"))
}

/// The path manager in the kernel opens the subflows of the plan once, to one address of the server.
fn of_manager(connection: &Connection, manager: &PathManager) -> Option<String> {
    let name = &manager.name;
    let info = anabranch_policy::paths::find(name).expect("the scenario checked the name");
    if !info.in_kernel && connection.agent.is_none() {
        return Some(format!(
            "the kernel has no path manager {name}; expected path_manager = \"fullmesh\", or the simulator"
        ));
    }
    if name == "default" && connection.subflows.len() > 1 {
        return Some(
            "with path_manager = \"default\" only the first subflow is opened; leave out the others"
                .to_owned(),
        );
    }
    if connection.subflows.iter().any(|subflow| subflow.announced) {
        return Some(
            "the server has one address per connection; list the subflows to it, or use the simulator"
                .to_owned(),
        );
    }
    None
}
