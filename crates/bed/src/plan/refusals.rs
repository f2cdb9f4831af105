//! What the simulator does and a kernel does not, or not when a scenario says so.

use anabranch_scenario::model::{Connection, Protocol, Recovery, Scenario};

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
    let keys = [
        ("opportunistic_retransmission", transport.opportunistic_retransmission),
        ("penalisation", transport.penalisation),
    ];
    let (key, _) = keys.into_iter().find(|&(_, wanted)| wanted)?;
    Some(format!("connection {name}: Linux has no {key}; leave it out, or use the simulator"))
}
