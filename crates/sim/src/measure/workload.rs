//! Figures of workloads: their members are measured together.
//!
//! A flow counts as started if it was opened within the window, and as completed if its last byte was delivered within
//! it; times are of those that have completed.

use anabranch_record::{
    model::{Figure, Scope},
    times,
};
use anabranch_scenario::model;

use super::Counts;
use crate::{engine::heads::Key, world::World};

/// The series of each connection: one of its own, or that of its workload.
pub(super) fn series_of(connections: &[model::Connection]) -> Vec<usize> {
    let mut next = 0;
    let mut before: Option<&str> = None;
    let series = connections.iter().map(|connection| {
        let workload = connection.member_of.as_deref();
        if workload.is_none() || workload != before {
            next += 1;
        }
        before = workload;
        next - 1
    });
    series.collect()
}

impl<K: Key> World<'_, K> {
    /// Adds the figures of all workloads and returns their goodputs.
    pub(super) fn workload_figures(
        &self,
        figures: &mut Vec<Figure>,
        begin: &Counts,
        end: &Counts,
        window_s: f64,
    ) -> Vec<f64> {
        let models = &self.scenario.connections;
        let mut goodputs = Vec::new();
        let mut first = 0;
        for group in models.chunk_by(|a, b| a.member_of.is_some() && a.member_of == b.member_of) {
            let members = first..first + group.len();
            first = members.end;
            let Some(name) = &group[0].member_of else { continue };
            let scope = Scope::Connection(name.clone());
            let mut figure = |metric, value| figures.push(Figure { scope: scope.clone(), metric, value });
            let bytes: u64 =
                members.clone().map(|at| end.delivered[at].total() - begin.delivered[at].total()).sum();
            let goodput = bytes as f64 * 8.0 / window_s;
            goodputs.push(goodput);
            figure("goodput_bps", goodput);
            figure("bytes_delivered", bytes as f64);

            let connections = &self.connections[members];
            let window = self.scenario.measure.from..=self.scenario.measure.to;
            let started = connections.iter().filter(|of| window.contains(&of.opened_at)).count();
            let completed = connections.iter().filter_map(|of| Some((of.completed_at?, of.opened_at)));
            let times: Vec<u64> =
                completed.filter(|(at, _)| window.contains(at)).map(|(at, opened)| at - opened).collect();
            figure("flows_started", started as f64);
            figure("flows_completed", times.len() as f64);
            times::COMPLETION.of(&times, &mut figure);

            let subflows = connections.iter().flat_map(|connection| {
                let first = connection.first as usize / 2;
                first..first + connection.subflows as usize
            });
            let (mut sent, mut again, mut drops, mut marks) = (0, 0, 0, 0);
            for subflow in subflows {
                let (begin, end) = (begin.subflows[subflow], end.subflows[subflow]);
                sent += end.sender.packets - begin.sender.packets;
                again += end.sender.retransmits - begin.sender.retransmits;
                drops += end.drops - begin.drops;
                marks += end.ecn_marks - begin.ecn_marks;
            }
            figure("packets_sent", sent as f64);
            figure("retransmits", again as f64);
            figure("drops", drops as f64);
            figure("loss_rate", drops as f64 / (sent as f64).max(1.0));
            if group[0].transport.ecn {
                figure("ecn_marks", marks as f64);
            }
        }
        goodputs
    }
}
