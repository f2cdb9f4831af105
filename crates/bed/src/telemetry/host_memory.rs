//! What connections and hosts hold in their buffers: means and peaks over the readings, where the scenario asks for
//! them, under the simulator's names.

use std::collections::BTreeMap;

use anabranch_record::{
    memory::{Gauge, RECEIVE_MEMORY, SEND_MEMORY},
    model::{Figure, Scope, Series},
};
use anabranch_scenario::model::Scenario;

use super::readings::{ConnectionReading, EndMemory};
use crate::Nanos;

/// Gauges of sending and receiving.
type Gauges = [Gauge; 2];

fn gauges() -> Gauges {
    [Gauge::new(&SEND_MEMORY), Gauge::new(&RECEIVE_MEMORY)]
}

fn both(memory: EndMemory) -> [u64; 2] {
    [memory.send_bytes, memory.receive_bytes]
}

/// The gauges of a run.
#[derive(Clone, Debug)]
pub(super) struct HostMemory {
    /// Nodes of both ends of each connection.
    ends: Vec<[usize; 2]>,
    connections: Vec<Gauges>,
    /// By node.
    hosts: BTreeMap<usize, (String, Gauges)>,
}

impl HostMemory {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let ends: Vec<_> = scenario.connections.iter().map(|model| [model.from, model.to]).collect();
        let host = |&node: &usize| (node, (scenario.nodes[node].name.clone(), gauges()));
        Self {
            connections: ends.iter().map(|_| gauges()).collect(),
            hosts: ends.as_flattened().iter().map(host).collect(),
            ends,
        }
    }

    /// Takes over one reading of all connections; what no socket tells is left out.
    pub(super) fn look(&mut self, now: Nanos, readings: &[ConnectionReading], inside: bool, wanted: bool) {
        let mut of_hosts: BTreeMap<usize, [u64; 2]> = BTreeMap::new();
        for ((reading, ends), gauges) in readings.iter().zip(&self.ends).zip(&mut self.connections) {
            for (&node, memory) in ends.iter().zip(reading.memory) {
                let sum = of_hosts.entry(node).or_default();
                for (sum, bytes) in sum.iter_mut().zip(memory.map_or([0; 2], both)) {
                    *sum += bytes;
                }
            }
            if let Some(memory) = reading.memory_of_both_ends().filter(|_| inside) {
                gauges.iter_mut().zip(both(memory)).for_each(|(gauge, bytes)| gauge.count(bytes));
            }
        }
        for (node, sums) in of_hosts {
            let (_, gauges) = self.hosts.get_mut(&node).expect("every end is at a host");
            for (gauge, bytes) in gauges.iter_mut().zip(sums) {
                if inside {
                    gauge.count(bytes);
                }
                if wanted {
                    gauge.point(now, bytes);
                }
            }
        }
    }

    /// Means and peaks of the connections, by the scenario's names, and of the hosts.
    pub(super) fn figures<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<Figure> {
        let connections = names.zip(&self.connections);
        let connections = connections.map(|(name, gauges)| (Scope::Connection(name.to_owned()), gauges));
        let hosts = self.hosts.values().map(|(name, gauges)| (Scope::Node(name.clone()), gauges));
        let of_scope = |(scope, gauges): (Scope, &Gauges)| {
            let figures = gauges.iter().flat_map(Gauge::figures).collect::<Vec<_>>().into_iter();
            figures.map(move |(metric, value)| Figure { scope: scope.clone(), metric, value })
        };
        connections.chain(hosts).flat_map(of_scope).collect()
    }

    /// What hosts have held over time; that of connections is among their own series.
    pub(super) fn series(&self) -> Vec<Series> {
        let of_host = |(name, gauges): &(String, Gauges)| {
            gauges.each_ref().map(|gauge| gauge.series(Scope::Node(name.clone())))
        };
        self.hosts.values().flat_map(of_host).collect()
    }
}
