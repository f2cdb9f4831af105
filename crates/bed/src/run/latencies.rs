//! Figures of answers, with the names and the rule that the simulator has.

use anabranch_link::Nanos;
use anabranch_record::{
    model::{Figure, Measurements, Scope},
    quantile::nearest_rank,
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
        let mut taken: Vec<Nanos> = inside.map(|latency| latency.taken).collect();
        taken.sort_unstable();
        let scope = Scope::Connection(model.name.clone());
        let mut figure = |metric, value| {
            measured.summary.figures.push(Figure { scope: scope.clone(), metric, value });
        };
        figure("messages", taken.len() as f64);
        let Some(&max) = taken.last() else { continue };
        let seconds = |nanos: Nanos| nanos as f64 / 1e9;
        figure("latency_mean_s", taken.iter().map(|&nanos| seconds(nanos)).sum::<f64>() / taken.len() as f64);
        for (percent, name) in [(50, "latency_p50_s"), (95, "latency_p95_s"), (99, "latency_p99_s")] {
            figure(name, seconds(nearest_rank(&taken, percent)));
        }
        figure("latency_max_s", seconds(max));
    }
}
