//! Settings of hosts at which two connections meet in a relay.

use anabranch_scenario::model::Scenario;

/// Settings of those who receive, and of those who send.
const OF_RECEIVERS: [&str; 2] = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_moderate_rcvbuf"];
const OF_SENDERS: [&str; 1] = ["net.ipv4.tcp_wmem"];

/// Whether a setting says nothing about a connection at one of its ends, because a relay there only receives from it or only
/// sends over it; the relay's other connection may want it otherwise.
pub(super) fn is_idle(scenario: &Scenario, connection: usize, node: usize, setting: &str) -> bool {
    let model = &scenario.connections[connection];
    scenario.relays.iter().any(|relay| {
        (relay.input == connection && node == model.to && OF_SENDERS.contains(&setting))
            || (relay.output == connection && node == model.from && OF_RECEIVERS.contains(&setting))
    })
}
