//! Memory: bytes that buffers hold, looked at with every point of the series.
//!
//! Sending, a connection holds what has been cut into segments and is not acknowledged at the data level; receiving,
//! what has come out of order, at the data level or in a subflow: what is in order the application reads at once.
//! Bytes are payload.
//!
//! Left out, and who could notice: what an application has written and the transport has not taken (it writes when
//! there is room), headers and the kernel's overhead of each packet, which in Linux is about as much as the payload.

use std::collections::BTreeMap;

use anabranch_record::{
    memory::{Gauge, OUT_OF_ORDER, RECEIVE_MEMORY, SEND_MEMORY},
    model::{Figure, Scope, Series},
};
use anabranch_scenario::model::{Protocol, Scenario};

use crate::{engine::heads::Key, world::World};

/// The gauges of a run.
pub(super) struct MemoryMeter {
    connections: Vec<OfConnection>,
    /// By node: hosts at which a connection begins or ends.
    hosts: BTreeMap<usize, OfHost>,
}

struct OfConnection {
    send: Gauge,
    receive: Gauge,
    /// Of MPTCP, at the data level.
    out_of_order: Option<Gauge>,
    subflows: Vec<Gauge>,
}

struct OfHost {
    send: Gauge,
    receive: Gauge,
    /// Bytes in the look that is under way.
    now: [u64; 2],
}

impl MemoryMeter {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let host =
            || OfHost { send: Gauge::new(&SEND_MEMORY), receive: Gauge::new(&RECEIVE_MEMORY), now: [0; 2] };
        let ends = scenario.connections.iter().flat_map(|model| [model.from, model.to]);
        let connections = scenario.connections.iter().map(|model| OfConnection {
            send: Gauge::new(&SEND_MEMORY),
            receive: Gauge::new(&RECEIVE_MEMORY),
            out_of_order: (model.protocol == Protocol::Mptcp).then(|| Gauge::new(&OUT_OF_ORDER)),
            subflows: model.subflows.iter().map(|_| Gauge::new(&OUT_OF_ORDER)).collect(),
        });
        Self { connections: connections.collect(), hosts: ends.map(|node| (node, host())).collect() }
    }

    /// Every gauge with its scope: connections with their subflows, then hosts.
    fn gauges<'a>(&'a self, scenario: &'a Scenario) -> impl Iterator<Item = (Scope, &'a Gauge)> {
        let connections = scenario.connections.iter().zip(&self.connections);
        let of_connections =
            connections.flat_map(|(model, of)| {
                let own = [Some(&of.send), Some(&of.receive), of.out_of_order.as_ref()].into_iter().flatten();
                let own = own.map(move |gauge| (Scope::Connection(model.name.clone()), gauge));
                own.chain(
                    model.subflows.iter().zip(&of.subflows).map(move |(path, gauge)| {
                        (Scope::Subflow(model.name.clone(), path.name.clone()), gauge)
                    }),
                )
            });
        of_connections.chain(self.hosts.iter().flat_map(|(&node, of)| {
            let scope = Scope::Node(scenario.nodes[node].name.clone());
            [(scope.clone(), &of.send), (scope, &of.receive)]
        }))
    }

    /// Mean and peak of every gauge.
    pub(super) fn figures(&self, scenario: &Scenario, figures: &mut Vec<Figure>) {
        for (scope, gauge) in self.gauges(scenario) {
            let of_gauge = gauge.figures().into_iter();
            figures.extend(of_gauge.map(|(metric, value)| Figure { scope: scope.clone(), metric, value }));
        }
    }

    pub(super) fn series(&self, scenario: &Scenario) -> Vec<Series> {
        self.gauges(scenario).map(|(scope, gauge)| gauge.series(scope)).collect()
    }
}

impl<K: Key> World<'_, K> {
    /// Looks at all buffers, if the scenario asks for it: for the series if they are wanted, and inside of the window
    /// for means and peaks.
    pub(super) fn sample_memory(&mut self, is_inside: bool, is_wanted: bool) {
        let Some(mut memory) = self.meter.memory.take() else { return };
        let now = self.now;
        let look = |gauge: &mut Gauge, bytes| {
            if is_wanted {
                gauge.point(now, bytes);
            }
            if is_inside {
                gauge.count(bytes);
            }
        };
        for host in memory.hosts.values_mut() {
            host.now = [0; 2];
        }
        let models = self.scenario.connections.iter();
        for ((connection, model), gauges) in self.connections.iter().zip(models).zip(&mut memory.connections)
        {
            let mut subflows = vec![0; gauges.subflows.len()];
            let (mut send, mut receive, mut out_of_order) = (0, 0, 0);
            for (number, (side, node)) in connection.sides.iter().zip([model.from, model.to]).enumerate() {
                let mut held_by_subflows = 0;
                for (endpoint, subflow) in connection.endpoints(number).zip(&mut subflows) {
                    let held = self.endpoints[endpoint].receiver.held_bytes();
                    *subflow += held;
                    held_by_subflows += held;
                }
                let unacknowledged = side.send.unacknowledged_bytes();
                let unread = side.receive.held_bytes + held_by_subflows;
                send += unacknowledged;
                receive += unread;
                out_of_order += side.receive.held_bytes;
                let host = memory.hosts.get_mut(&node).expect("both ends of a connection are hosts");
                host.now[0] += unacknowledged;
                host.now[1] += unread;
            }
            look(&mut gauges.send, send);
            look(&mut gauges.receive, receive);
            if let Some(gauge) = &mut gauges.out_of_order {
                look(gauge, out_of_order);
            }
            for (gauge, held) in gauges.subflows.iter_mut().zip(subflows) {
                look(gauge, held);
            }
        }
        for host in memory.hosts.values_mut() {
            look(&mut host.send, host.now[0]);
            look(&mut host.receive, host.now[1]);
        }
        self.meter.memory = Some(memory);
    }
}
