//! Figures of relays, with the names and the meaning that the simulator has.

use anabranch_record::model::{Figure, Measurements, Scope};
use anabranch_scenario::model::Scenario;

use crate::traffic::Outcomes;

/// Adds what relays have carried and held in the whole run.
pub(super) fn add(scenario: &Scenario, outcomes: &Outcomes, measured: &mut Measurements) {
    for (model, relay) in scenario.relays.iter().zip(&outcomes.relays) {
        let scope = Scope::Connection(model.name.clone());
        let mut figure = |metric, value| {
            measured.summary.figures.push(Figure { scope: scope.clone(), metric, value });
        };
        let [input, output] = [model.input, model.output].map(|index| &outcomes.connections[index]);
        if let Some((completed, opened)) = output.completed_at.zip(input.opened_at) {
            figure("completion_s", (completed - opened) as f64 / 1e9);
        }
        figure("bytes_relayed", input.delivered_bytes as f64);
        figure("buffer_max_bytes", relay.held_max_bytes as f64);
    }
}
