//! Which applications the test bed has.

use anabranch_scenario::model::{Connection, Traffic};

/// What of a connection's traffic is not there on a kernel, with what to change.
pub(super) fn missing(model: &Connection) -> Option<&'static str> {
    match model.traffic {
        Traffic::Flows(_) => unreachable!("workloads are connections before a plan is made"),
        Traffic::Relayed => Some("relays run in the simulator only; expected no [[relay]]"),
        Traffic::Telemetry(_)
        | Traffic::Request(_)
        | Traffic::Ftp { .. }
        | Traffic::File { .. }
        | Traffic::Source(_) => None,
    }
}
