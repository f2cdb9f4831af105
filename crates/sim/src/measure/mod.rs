//! Measurement: what is counted and sampled while a run goes on, and its series. The summary is in `summary.rs`.

mod summary;

use anabranch_cc::SSTHRESH_INFINITE;
use anabranch_link::Nanos;
use anabranch_record::model::{Measurements, Scope, Series};
use anabranch_scenario::model::QueueLimit;

use crate::{
    engine::{heads::Key, timers::TimerKind},
    mptcp::waits::Waited,
    net::{LinkCounters, LinkRef},
    tcp::sender::SenderCounters,
    world::World,
};

/// Distance between samples for the means where no series is wanted.
const MEANS_INTERVAL: Nanos = 100_000_000;

const SUBFLOW_SERIES: [&str; 6] =
    ["cwnd_packets", "ssthresh_packets", "srtt_s", "throughput_bps", "retransmits", "drops"];

/// What has been counted up to some moment.
#[derive(Clone, Default)]
struct Counts {
    delivered_bytes: Vec<u64>,
    waited: Vec<Waited>,
    subflows: Vec<SubflowCounts>,
    datagrams: Vec<(u64, u64, u64)>,
    links: Vec<LinkCounters>,
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

/// The state of the measurement.
#[derive(Default)]
pub(crate) struct Meter {
    begin: Option<Counts>,
    end: Option<Counts>,
    /// Bytes at the previous sample, per connection and subflow.
    last_delivered: Vec<u64>,
    last_acked: Vec<u64>,
    connection_series: Vec<Vec<(Nanos, f64)>>,
    subflow_series: Vec<[Vec<(Nanos, f64)>; SUBFLOW_SERIES.len()]>,
    link_series: Vec<Vec<(Nanos, f64)>>,
    subflow_means: Vec<SubflowMeans>,
    queue_means: Vec<Mean>,
    /// Links that have a queue to look at, with their names.
    links: Vec<(LinkRef, String)>,
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
        meter.last_delivered = vec![0; self.connections.len()];
        meter.last_acked = vec![0; subflows];
        meter.subflow_means = vec![SubflowMeans::default(); subflows];
        meter.queue_means = vec![Mean::default(); meter.links.len()];
        if let Some(points) = scenario.duration.checked_div(scenario.measure.interval) {
            let points = points as usize;
            let empty = || Vec::with_capacity(points);
            meter.connection_series = (0..self.connections.len()).map(|_| empty()).collect();
            meter.subflow_series = (0..subflows).map(|_| std::array::from_fn(|_| empty())).collect();
            meter.link_series = (0..meter.links.len()).map(|_| empty()).collect();
        }
        self.timers.push(self.sampling_interval(), TimerKind::Sample, 0);
        self.timers.push(scenario.measure.from, TimerKind::Window, 0);
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
        if self.meter.begin.is_none() {
            self.meter.begin = Some(counts);
            self.timers.push(self.scenario.measure.to, TimerKind::Window, 0);
        } else {
            self.meter.end = Some(counts);
        }
    }

    fn counts(&self) -> Counts {
        let subflow = |index: usize| {
            let sender = &self.endpoints[2 * index].sender;
            SubflowCounts {
                sender: sender.counters,
                bytes_acked: sender.bytes_acked,
                drops: self.net.lost_to(2 * index as u32 + 1),
                ecn_marks: self.endpoints[2 * index + 1].ecn.marks,
            }
        };
        Counts {
            delivered_bytes: self.connections.iter().map(|c| c.sides[1].receive.delivered_bytes).collect(),
            waited: if self.scenario.measure.head_of_line { self.waited() } else { Vec::new() },
            subflows: (0..self.endpoints.len() / 2).map(subflow).collect(),
            datagrams: self.datagrams.iter().map(|d| (d.sent, d.received, d.received_bytes)).collect(),
            links: self.all_links().map(|link| self.net.counters(link)).collect(),
        }
    }

    fn waited(&self) -> Vec<Waited> {
        let waits = self.connections.iter().map(|connection| &connection.sides[1].receive.waits);
        waits.map(|waits| waits.as_ref().map(|waits| waits.until(self.now)).unwrap_or_default()).collect()
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
        for (index, connection) in self.connections.iter().enumerate() {
            let delivered = connection.sides[1].receive.delivered_bytes;
            if wanted {
                let bytes = delivered - meter.last_delivered[index];
                meter.connection_series[index].push((now, bytes as f64 * 8.0 / seconds(interval)));
            }
            meter.last_delivered[index] = delivered;
        }
        for index in 0..self.endpoints.len() / 2 {
            let endpoint = &self.endpoints[2 * index];
            let sender = &endpoint.sender;
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
                Some(self.net.lost_to(2 * index as u32 + 1) as f64),
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
        self.timers.push(now + interval, TimerKind::Sample, 0);
    }

    /// What the run has measured.
    pub(crate) fn measurements(mut self) -> Measurements {
        let begin = self.meter.begin.take().expect("the window begins before the run ends");
        let end = self.meter.end.take().expect("and ends with it at the latest");
        Measurements { summary: self.summary(&begin, &end), series: self.series(), ..Measurements::default() }
    }

    fn series(&mut self) -> Vec<Series> {
        let meter = std::mem::take(&mut self.meter);
        let mut all = Vec::new();
        let mut subflows = meter.subflow_series.into_iter();
        let connections = self.scenario.connections.iter().zip(meter.connection_series);
        for (model, points) in connections {
            let name = || model.name.clone();
            all.push(Series { scope: Scope::Connection(name()), metric: "goodput_bps", points });
            for (path, columns) in model.subflows.iter().zip(subflows.by_ref()) {
                let scope = Scope::Subflow(name(), path.name.clone());
                let named = SUBFLOW_SERIES.iter().zip(columns);
                all.extend(named.map(|(metric, points)| Series { scope: scope.clone(), metric, points }));
            }
        }
        for ((_, name), points) in meter.links.into_iter().zip(meter.link_series) {
            all.push(Series { scope: Scope::Link(name), metric: "queue_packets", points });
        }
        all
    }
}
