//! Figures of transfers, with the names and the meaning that the simulator has.

use anabranch_record::model::{Figure, Measurements, Scope};
use anabranch_scenario::model::Scenario;

use crate::traffic::Outcomes;

/// Adds what transfers have carried in the whole run, and each of their connections.
pub(super) fn add(scenario: &Scenario, outcomes: &Outcomes, measured: &mut Measurements) {
    for (model, transfer) in scenario.transfers.iter().zip(&outcomes.transfers) {
        let mut figure = |name: &str, metric, value| {
            let scope = Scope::Connection(name.to_owned());
            measured.summary.figures.push(Figure { scope, metric, value });
        };
        if let Some(completed) = transfer.completed_at {
            figure(&model.name, "completion_s", completed.saturating_sub(model.start) as f64 / 1e9);
        }
        figure(&model.name, "bytes_transferred", transfer.arrived_bytes as f64);
        figure(&model.name, "chunks_delivered", transfer.delivered.iter().sum::<u64>() as f64);
        figure(&model.name, "chunks_sent_again", transfer.claimed_again as f64);
        for (&connection, &delivered) in model.over.iter().zip(&transfer.delivered) {
            figure(&scenario.connections[connection].name, "chunks_delivered", delivered as f64);
        }
    }
}
