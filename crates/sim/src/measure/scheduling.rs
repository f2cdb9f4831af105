//! What schedulers give to subflows, looked at with every point of the series: shares of the data, and subsets.
//!
//! A share is of the packets that the subflows of a connection have sent for the first time since the last point: new data,
//! reinjections and copies, not retransmissions. Where nothing was sent there is no point. What waits in the queue of a subflow
//! counts when it leaves.

use anabranch_link::Nanos;
use anabranch_record::model::{Scope, Series};
use anabranch_scenario::model::{Connection, Protocol, Scenario};

use super::SubflowCounts;
use crate::{engine::heads::Key, world::World};

/// Points by subflow of the scenario, those of TCP and of workloads empty.
#[derive(Default)]
pub(super) struct SchedulingMeter {
    subflows: Vec<OfSubflow>,
}

#[derive(Default)]
struct OfSubflow {
    /// Packets sent for the first time until the last point.
    first_sent: u64,
    share: Vec<(Nanos, f64)>,
    in_subset: Vec<(Nanos, f64)>,
}

/// Packets sent for the first time on a subflow.
pub(super) fn first_sent(counts: &SubflowCounts) -> u64 {
    counts.sender.packets - counts.sender.retransmits
}

/// Whether what schedulers give to its subflows is told.
pub(super) fn is_told(scenario: &Scenario, model: &Connection) -> bool {
    scenario.measure.scheduling && model.protocol == Protocol::Mptcp && model.member_of.is_none()
}

impl SchedulingMeter {
    pub(super) fn new(subflows: usize) -> Self {
        Self { subflows: (0..subflows).map(|_| OfSubflow::default()).collect() }
    }

    pub(super) fn series(self, scenario: &Scenario) -> Vec<Series> {
        let models = scenario.connections.iter().flat_map(|model| {
            model.subflows.iter().map(|path| Scope::Subflow(model.name.clone(), path.name.clone()))
        });
        let mut all = Vec::new();
        for (scope, of) in models.zip(self.subflows) {
            for (metric, points) in [("data_share", of.share), ("in_subset", of.in_subset)] {
                if !points.is_empty() {
                    all.push(Series { scope: scope.clone(), metric, points });
                }
            }
        }
        all
    }
}

impl<K: Key> World<'_, K> {
    /// One point of every subflow, if the scenario asks for them.
    pub(super) fn sample_scheduling(&mut self) {
        let Some(mut meter) = self.meter.scheduling.take() else { return };
        let mut of_subflows = meter.subflows.iter_mut();
        for (connection, model) in self.connections.iter().zip(&self.scenario.connections) {
            let side = usize::from(connection.data_side);
            let mut subflows: Vec<&mut OfSubflow> = of_subflows.by_ref().take(model.subflows.len()).collect();
            if !is_told(self.scenario, model) {
                continue;
            }
            let now = connection.endpoints(side).map(|endpoint| {
                let counters = &self.endpoints[endpoint].sender.counters;
                counters.packets - counters.retransmits
            });
            let since: Vec<u64> = now
                .zip(&mut subflows)
                .map(|(first_sent, of)| first_sent - std::mem::replace(&mut of.first_sent, first_sent))
                .collect();
            let total: u64 = since.iter().sum();
            let subset = connection.sides[side].scheduler.chosen();
            for (index, (of, since)) in subflows.into_iter().zip(since).enumerate() {
                if total > 0 {
                    of.share.push((self.now, since as f64 / total as f64));
                }
                if let Some(subset) = subset {
                    of.in_subset.push((self.now, f64::from(subset >> index & 1)));
                }
            }
        }
        self.meter.scheduling = Some(meter);
    }
}
