//! Figures of answers, with the names and the rule that the simulator has.

use anabranch_link::Nanos;
use anabranch_record::{
    model::{Figure, Measurements, Scope},
    times,
};
use anabranch_scenario::model::{Scenario, Traffic};

use crate::traffic::Outcomes;

/// Adds the latencies of answers that came within the window.
pub(super) fn add(scenario: &Scenario, outcomes: &Outcomes, measured: &mut Measurements) {
    let window = scenario.measure.from..=scenario.measure.to;
    for (model, outcome) in scenario.connections.iter().zip(&outcomes.connections) {
        if !matches!(model.traffic, Traffic::Telemetry(_) | Traffic::Request(_)) {
            continue;
        }
        let inside = outcome.latencies.iter().filter(|latency| window.contains(&latency.at));
        let taken: Vec<Nanos> = inside.map(|latency| latency.taken).collect();
        let scope = Scope::Connection(model.name.clone());
        let mut figure = |metric, value| {
            measured.summary.figures.push(Figure { scope: scope.clone(), metric, value });
        };
        figure("messages", taken.len() as f64);
        times::LATENCY.of(&taken, figure);
    }
}
