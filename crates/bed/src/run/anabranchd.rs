//! Figures of a transfer that the commands have carried, in place of those that only our own applications know.

use anabranch_record::model::{Figure, Measurements, Scope};
use anabranch_scenario::model::Scenario;

use crate::traffic::anabranchd::Carried;

/// What the sender has printed, in the run folder.
const REPORT: &str = "anabranchd.json";

/// Puts them in. What a connection delivered is what the sender says of its path.
pub(super) fn import(scenario: &Scenario, carried: &Carried, measured: &mut Measurements) {
    let transfer = &scenario.transfers[0];
    // Not per bit: nobody knows what was delivered over the window.
    let is_energy = |metric: &str| metric.starts_with("energy_") && !metric.contains("per_bit");
    let is_memory = |metric: &str| metric.contains("_memory_");
    let is_known = |figure: &Figure| match &figure.scope {
        Scope::Connection(_) => figure.metric == "drops" || is_memory(figure.metric),
        Scope::Subflow(..) => figure.metric == "drops",
        Scope::Run => figure.metric == "packet_hops" || is_energy(figure.metric),
        Scope::Link(_) | Scope::Interface(..) | Scope::Node(_) => true,
    };
    measured.summary.figures.retain(is_known);
    measured.series.retain(|series| match &series.scope {
        Scope::Connection(_) => is_memory(series.metric),
        Scope::Subflow(..) => series.metric == "drops",
        Scope::Run | Scope::Link(_) | Scope::Interface(..) | Scope::Node(_) => true,
    });
    let mut figure = |name: &str, metric, value| {
        let scope = Scope::Connection(name.to_owned());
        measured.summary.figures.push(Figure { scope, metric, value });
    };
    if let Some(completed) = carried.completed_at {
        figure(&transfer.name, "completion_s", (completed - carried.began_at) as f64 / 1e9);
    }
    let sum =
        |of: fn(&crate::traffic::anabranchd::PathReport) -> u64| carried.paths.iter().map(of).sum::<u64>();
    let arrived =
        if carried.completed_at.is_some() { transfer.size_bytes } else { sum(|path| path.arrived_bytes) };
    figure(&transfer.name, "bytes_transferred", arrived as f64);
    figure(&transfer.name, "chunks_delivered", sum(|path| path.chunks) as f64);
    for (&connection, path) in transfer.over.iter().zip(&carried.paths) {
        let name = &scenario.connections[connection].name;
        figure(name, "bytes_delivered", path.arrived_bytes as f64);
        figure(name, "chunks_delivered", path.chunks as f64);
    }
    measured.attachments.push((REPORT.to_owned(), carried.json.clone()));
}

/// Facts of a run for its environment, by name.
pub(super) fn facts(carried: &Carried) -> impl Iterator<Item = (&'static str, f64)> + '_ {
    let reconnected: u64 = carried.paths.iter().map(|path| path.connections.saturating_sub(1)).sum();
    let resident = [
        ("sender_resident_peak_bytes", carried.sender_resident_bytes),
        ("receiver_resident_peak_bytes", carried.receiver_resident_bytes),
        ("connections_opened_again", Some(reconnected)),
        ("sender_started_us", Some(carried.began_at / 1000)),
    ];
    resident.into_iter().filter_map(|(name, value)| value.map(|value| (name, value as f64)))
}
