//! Measurement: what is counted and sampled while a run goes on, and its series. The summary is in `summary.rs`.

mod energy;
mod memory;
mod relay;
mod scheduling;
mod summary;
mod transfer;
mod workload;

use anabranch_cc::SSTHRESH_INFINITE;
use anabranch_link::Nanos;
use anabranch_policy::energy::InterfaceMeter;
use anabranch_record::{
    metrics::{self, Engines},
    model::{Measurements, Scope, Series},
};
use anabranch_scenario::model::QueueLimit;

use memory::MemoryMeter;
use scheduling::SchedulingMeter;

use crate::{
    engine::{heads::Key, timers::TimerKind},
    mptcp::waits::Waited,
    net::{LinkCounters, LinkRef},
    tcp::sender::SenderCounters,
    world::{Connection, Side, World},
};

/// Distance between samples for the means where no series is wanted.
const MEANS_INTERVAL: Nanos = 100_000_000;

const SUBFLOW_SERIES: [&str; 6] =
    ["cwnd_packets", "ssthresh_packets", "srtt_s", "throughput_bps", "retransmits", "drops"];

/// What has been counted up to some moment.
#[derive(Clone, Default)]
struct Counts {
    delivered: Vec<Delivered>,
    waited: Vec<Waited>,
    subflows: Vec<SubflowCounts>,
    datagrams: Vec<(u64, u64, u64)>,
    links: Vec<LinkCounters>,
}

/// Bytes delivered to the applications of a connection.
#[derive(Clone, Copy, Default)]
struct Delivered {
    /// To the side that accepted it.
    up: u64,
    /// To the side that opened it.
    down: u64,
}

#[derive(Clone, Copy, Default)]
struct SubflowCounts {
    sender: SenderCounters,
    bytes_acked: u64,
    drops: u64,
    ecn_marks: u64,
}

/// A mean over samples.
#[derive(Clone, Copy, Default)]
struct Mean {
    sum: f64,
    n: u32,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.n += 1;
    }

    fn get(self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / f64::from(self.n))
    }
}

#[derive(Clone, Copy, Default)]
struct SubflowMeans {
    cwnd: Mean,
    srtt_s: Mean,
}

/// The sending end of a subflow that is measured.
#[derive(Clone, Copy)]
struct Sender {
    endpoint: u32,
    /// Whether it is measured by itself, not only as part of a workload.
    alone: bool,
}

/// The state of the measurement.
#[derive(Default)]
pub(crate) struct Meter {
    begin: Option<Counts>,
    end: Option<Counts>,
    /// The measured sender of each subflow.
    senders: Vec<Sender>,
    /// The series of each connection; members of a workload share one.
    series_of: Vec<usize>,
    /// Bytes at the previous sample, per series of connections and per subflow.
    last_delivered: Vec<u64>,
    last_acked: Vec<u64>,
    connection_series: Vec<Vec<(Nanos, f64)>>,
    subflow_series: Vec<[Vec<(Nanos, f64)>; SUBFLOW_SERIES.len()]>,
    link_series: Vec<Vec<(Nanos, f64)>>,
    subflow_means: Vec<SubflowMeans>,
    queue_means: Vec<Mean>,
    /// Links that have a queue to look at, with their names.
    links: Vec<(LinkRef, String)>,
    /// In the order of the scenario's interfaces.
    energy: Vec<InterfaceMeter>,
    /// If it is wanted.
    memory: Option<Box<MemoryMeter>>,
    /// If it is wanted, and there are series.
    scheduling: Option<Box<SchedulingMeter>>,
}

impl Delivered {
    fn to(connection: &Connection) -> Self {
        let [opener, acceptor] = &connection.sides;
        Self { up: acceptor.receive.delivered_bytes, down: opener.receive.delivered_bytes }
    }

    fn total(self) -> u64 {
        self.up + self.down
    }
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}

impl<K: Key> World<'_, K> {
    /// Prepares the meter and its timers.
    pub(crate) fn begin_measuring(&mut self) {
        let scenario = self.scenario;
        let subflows = self.endpoints.len() / 2;
        let meter = &mut self.meter;
        meter.series_of = workload::series_of(&scenario.connections);
        let series = meter.series_of.last().map_or(0, |last| last + 1);
        for (model, connection) in scenario.connections.iter().zip(&self.connections) {
            let endpoints = connection.endpoints(usize::from(connection.data_side));
            let alone = model.member_of.is_none();
            meter.senders.extend(endpoints.map(|endpoint| Sender { endpoint: endpoint as u32, alone }));
        }
        for (index, link) in scenario.links.iter().enumerate() {
            for (direction, wire, suffix) in [(0, &link.forward, ""), (1, &link.reverse, "/reverse")] {
                if wire.queue != QueueLimit::Unlimited {
                    meter
                        .links
                        .push((LinkRef::Wire(2 * index + direction), format!("{}{suffix}", link.name)));
                }
            }
        }
        for (index, medium) in scenario.media.iter().enumerate() {
            meter.links.push((LinkRef::Medium(index), medium.name.clone()));
        }
        meter.last_delivered = vec![0; series];
        meter.last_acked = vec![0; subflows];
        meter.subflow_means = vec![SubflowMeans::default(); subflows];
        meter.queue_means = vec![Mean::default(); meter.links.len()];
        if let Some(points) = scenario.duration.checked_div(scenario.measure.interval) {
            let points = points as usize;
            let empty = || Vec::with_capacity(points);
            meter.connection_series = (0..series).map(|_| empty()).collect();
            let columns =
                |sender: &Sender| std::array::from_fn(|_| if sender.alone { empty() } else { Vec::new() });
            meter.subflow_series = meter.senders.iter().map(columns).collect();
            meter.link_series = (0..meter.links.len()).map(|_| empty()).collect();
        }
        meter.memory = scenario.measure.memory.then(|| Box::new(MemoryMeter::new(scenario)));
        let points = scenario.measure.scheduling && scenario.measure.interval > 0;
        meter.scheduling = points.then(|| Box::new(SchedulingMeter::new(subflows)));
        self.timers.push(self.sampling_interval(), TimerKind::Sample, 0);
        self.timers.push(scenario.measure.from, TimerKind::Window, 0);
        self.begin_energy();
    }

    fn sampling_interval(&self) -> Nanos {
        match self.scenario.measure.interval {
            0 => MEANS_INTERVAL,
            interval => interval,
        }
    }

    /// The measurement window begins.
    pub(crate) fn mark_window(&mut self) {
        let counts = self.counts();
        self.mark_energy(self.meter.begin.is_none());
        if self.meter.begin.is_none() {
            self.meter.begin = Some(counts);
            self.timers.push(self.scenario.measure.to, TimerKind::Window, 0);
        } else {
            self.meter.end = Some(counts);
        }
    }

    fn counts(&self) -> Counts {
        let subflow = |index: usize| {
            let endpoint = self.meter.senders[index].endpoint;
            let sender = &self.endpoints[endpoint as usize].sender;
            SubflowCounts {
                sender: sender.counters,
                bytes_acked: sender.bytes_acked,
                drops: self.net.lost_to(endpoint ^ 1),
                ecn_marks: self.endpoints[endpoint as usize ^ 1].ecn.marks,
            }
        };
        Counts {
            delivered: self.connections.iter().map(Delivered::to).collect(),
            waited: if self.scenario.measure.head_of_line { self.waited() } else { Vec::new() },
            subflows: (0..self.endpoints.len() / 2).map(subflow).collect(),
            datagrams: self.datagrams.iter().map(|d| (d.sent, d.received, d.received_bytes)).collect(),
            links: self.all_links().map(|link| self.net.counters(link)).collect(),
        }
    }

    fn waited(&self) -> Vec<Waited> {
        let until = |side: &Side| side.receive.waits.as_ref().map(|waits| waits.until(self.now));
        let of_both = |connection: &Connection| {
            let [opener, acceptor] = connection.sides.each_ref().map(|side| until(side).unwrap_or_default());
            opener.and(acceptor)
        };
        self.connections.iter().map(of_both).collect()
    }

    fn all_links(&self) -> impl Iterator<Item = LinkRef> + use<K> {
        let wires = (0..2 * self.scenario.links.len()).map(LinkRef::Wire);
        wires.chain((0..self.scenario.media.len()).map(LinkRef::Medium))
    }

    /// One point of every series, and one sample for every mean.
    pub(crate) fn sample(&mut self) {
        let interval = self.sampling_interval();
        let wanted = self.scenario.measure.interval > 0;
        let inside = (self.scenario.measure.from..=self.scenario.measure.to).contains(&self.now);
        let now = self.now;
        let meter = &mut self.meter;
        let mut delivered = vec![0; meter.last_delivered.len()];
        for (connection, &series) in self.connections.iter().zip(&meter.series_of) {
            delivered[series] += Delivered::to(connection).total();
        }
        for (index, delivered) in delivered.into_iter().enumerate() {
            if wanted {
                let bytes = delivered - meter.last_delivered[index];
                meter.connection_series[index].push((now, bytes as f64 * 8.0 / seconds(interval)));
            }
            meter.last_delivered[index] = delivered;
        }
        for (index, &Sender { endpoint, .. }) in meter.senders.iter().enumerate().filter(|(_, of)| of.alone) {
            let sender = &self.endpoints[endpoint as usize].sender;
            let srtt_s = f64::from(sender.rtt.srtt8_us) / 8e6;
            if inside {
                let means = &mut meter.subflow_means[index];
                means.cwnd.add(f64::from(sender.cwnd));
                if srtt_s > 0.0 {
                    means.srtt_s.add(srtt_s);
                }
            }
            if !wanted {
                continue;
            }
            let bytes = sender.bytes_acked - meter.last_acked[index];
            meter.last_acked[index] = sender.bytes_acked;
            let values = [
                Some(f64::from(sender.cwnd)),
                (sender.ssthresh < SSTHRESH_INFINITE).then_some(f64::from(sender.ssthresh)),
                (srtt_s > 0.0).then_some(srtt_s),
                Some(bytes as f64 * 8.0 / seconds(interval)),
                Some(sender.counters.retransmits as f64),
                Some(self.net.lost_to(endpoint ^ 1) as f64),
            ];
            for (series, value) in meter.subflow_series[index].iter_mut().zip(values) {
                series.extend(value.map(|value| (now, value)));
            }
        }
        for (index, &(link, _)) in meter.links.iter().enumerate() {
            let queued = f64::from(self.net.queued(now, link));
            if inside {
                meter.queue_means[index].add(queued);
            }
            if wanted {
                meter.link_series[index].push((now, queued));
            }
        }
        self.sample_memory(inside, wanted);
        self.sample_scheduling();
        self.timers.push(now + interval, TimerKind::Sample, 0);
    }

    /// What the run has measured.
    pub(crate) fn measurements(mut self) -> Measurements {
        let begin = self.meter.begin.take().expect("the window begins before the run ends");
        let end = self.meter.end.take().expect("and ends with it at the latest");
        let summary = self.summary(&begin, &end);
        let measured = Measurements { summary, series: self.series(), ..Measurements::default() };
        let unknown = || metrics::unregistered(Engines::Sim, &measured);
        debug_assert!(unknown().is_empty(), "crates/record/src/metrics.rs lacks {:?}", unknown());
        measured
    }

    fn series(&mut self) -> Vec<Series> {
        let meter = std::mem::take(&mut self.meter);
        let mut all = Vec::new();
        let mut subflows = meter.subflow_series.into_iter();
        let mut connections = meter.connection_series.into_iter();
        let mut workload = None;
        for model in &self.scenario.connections {
            let name = || model.name.clone();
            if model.member_of.is_none() || model.member_of != workload {
                workload = model.member_of.clone();
                let scope = Scope::Connection(workload.clone().unwrap_or_else(name));
                all.extend(connections.next().map(|points| Series { scope, metric: "goodput_bps", points }));
            }
            for (path, columns) in model.subflows.iter().zip(subflows.by_ref()) {
                if workload.is_some() {
                    continue;
                }
                let scope = Scope::Subflow(name(), path.name.clone());
                let named = SUBFLOW_SERIES.iter().zip(columns);
                all.extend(named.map(|(metric, points)| Series { scope: scope.clone(), metric, points }));
            }
        }
        for ((_, name), points) in meter.links.into_iter().zip(meter.link_series) {
            all.push(Series { scope: Scope::Link(name), metric: "queue_packets", points });
        }
        if self.scenario.measure.interval > 0 {
            all.extend(meter.memory.iter().flat_map(|memory| memory.series(self.scenario)));
            all.extend(energy::series(self.scenario, meter.energy));
            all.extend(meter.scheduling.into_iter().flat_map(|of| of.series(self.scenario)));
        }
        all
    }
}
