//! Figures and series of workloads, whose members are measured together, as the simulator defines them: a flow counts as
//! started if it was opened within the window, and as completed if its last byte was delivered within it.
//!
//! A flow that begins and ends between two readings is counted all the same, for its sockets stay open until the run ends.

use anabranch_record::{
    model::{Figure, Scope, Series},
    times,
};

use super::{
    sampler::{Connection, Counts, Points, Sampler},
    subflow::Totals,
};

/// Adds the figures of all workloads and returns their goodputs.
pub(super) fn figures(
    all: &mut Vec<Figure>,
    sampler: &Sampler,
    (begin, end): (&Counts, &Counts),
    window_s: f64,
) -> Vec<f64> {
    let mut goodputs = Vec::new();
    let mut first = 0;
    for group in sampler.connections.chunk_by(Connection::is_beside) {
        let members = first..first + group.len();
        first = members.end;
        let Some(name) = &group[0].member_of else { continue };
        let scope = Scope::Connection(name.clone());
        let mut figure = |metric, value| all.push(Figure { scope: scope.clone(), metric, value });
        let bytes = |of: &Counts| of.delivered_bytes[members.clone()].iter().sum::<u64>();
        let bytes = bytes(end) - bytes(begin);
        let goodput = bytes as f64 * 8.0 / window_s;
        goodputs.push(goodput);
        figure("goodput_bps", goodput);
        figure("bytes_delivered", bytes as f64);

        let window = sampler.measure.from..=sampler.measure.to;
        let started = group.iter().filter(|of| of.opened_at.is_some_and(|at| window.contains(&at))).count();
        let completed = group.iter().filter(|of| of.completed_at.is_some_and(|at| window.contains(&at)));
        let times: Vec<u64> = completed.filter_map(Connection::completion).collect();
        figure("flows_started", started as f64);
        figure("flows_completed", times.len() as f64);
        times::COMPLETION.of(&times, &mut figure);

        let total = |of: &Counts, count: fn(&Totals) -> u64| -> u64 {
            of.subflows[members.clone()].iter().flatten().map(|(totals, _)| count(totals)).sum()
        };
        // All members take the paths of the first.
        let lost = |of: &Counts| of.subflows[members.start].iter().map(|(_, lost)| lost).sum::<u64>();
        let packets = |totals: &Totals| totals.packets;
        let retransmits = |totals: &Totals| totals.retransmits;
        let (sent, drops) = (total(end, packets) - total(begin, packets), lost(end) - lost(begin));
        figure("packets_sent", sent as f64);
        figure("retransmits", (total(end, retransmits) - total(begin, retransmits)) as f64);
        figure("drops", drops as f64);
        figure("loss_rate", drops as f64 / (sent as f64).max(1.0));
    }
    goodputs
}

/// The goodput of each workload over time: the sum over its members, which have their points at the same times.
pub(super) fn series(connections: &[Connection]) -> impl Iterator<Item = Series> + '_ {
    connections.chunk_by(Connection::is_beside).filter_map(|group| {
        let scope = Scope::Connection(group[0].member_of.clone()?);
        let mut points: Points = group[0].series[0].clone();
        for member in &group[1..] {
            for ((_, sum), (_, value)) in points.iter_mut().zip(&member.series[0]) {
                *sum += value;
            }
        }
        Some(Series { scope, metric: "goodput_bps", points })
    })
}
