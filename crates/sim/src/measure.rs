//! Measurement: the series, the window of the summary, and the summary itself.

use anabranch_cc::SSTHRESH_INFINITE;
use anabranch_link::Nanos;
use anabranch_record::model::{Figure, Measurements, Scope, Series, Summary};
use anabranch_scenario::model::QueueLimit;

use crate::{
    engine::{heads::Key, timers::TimerKind},
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
    subflows: Vec<SubflowCounts>,
    datagrams: Vec<(u64, u64, u64)>,
    links: Vec<LinkCounters>,
}

#[derive(Clone, Copy, Default)]
struct SubflowCounts {
    sender: SenderCounters,
    bytes_acked: u64,
    drops: u64,
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
            }
        };
        Counts {
            delivered_bytes: self.connections.iter().map(|c| c.sides[1].receive.delivered_bytes).collect(),
            subflows: (0..self.endpoints.len() / 2).map(subflow).collect(),
            datagrams: self.datagrams.iter().map(|d| (d.sent, d.received, d.received_bytes)).collect(),
            links: self.all_links().map(|link| self.net.counters(link)).collect(),
        }
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

    fn summary(&self, begin: &Counts, end: &Counts) -> Summary {
        let window_s = seconds(self.scenario.measure.to - self.scenario.measure.from);
        let mut figures = Vec::new();
        let goodputs = self.connection_figures(&mut figures, begin, end, window_s);
        self.datagram_figures(&mut figures, begin, end, window_s);
        self.link_figures(&mut figures, begin, end, window_s);
        let mut run = |metric, value| figures.push(Figure { scope: Scope::Run, metric, value });
        let total: f64 = goodputs.iter().sum();
        run("goodput_bps", total);
        let squares: f64 = goodputs.iter().map(|x| x * x).sum();
        if squares > 0.0 {
            run("jain_index", total * total / (goodputs.len() as f64 * squares));
        }
        run("packet_hops", self.net.hops as f64);
        Summary { figures }
    }

    fn connection_figures(
        &self,
        figures: &mut Vec<Figure>,
        begin: &Counts,
        end: &Counts,
        window_s: f64,
    ) -> Vec<f64> {
        let mut goodputs = Vec::new();
        let mut first_subflow = 0;
        for (index, model) in self.scenario.connections.iter().enumerate() {
            let connection = &self.connections[index];
            let scope = Scope::Connection(model.name.clone());
            let mut figure = |metric, value| figures.push(Figure { scope: scope.clone(), metric, value });
            let subflows = first_subflow..first_subflow + model.subflows.len();
            first_subflow = subflows.end;
            let bytes = end.delivered_bytes[index] - begin.delivered_bytes[index];
            let goodput = bytes as f64 * 8.0 / window_s;
            goodputs.push(goodput);
            figure("goodput_bps", goodput);
            figure("bytes_delivered", bytes as f64);
            if let Some(completed) = connection.completed_at {
                figure("completion_s", seconds(completed - connection.opened_at));
            }
            let total = |count: &dyn Fn(&SubflowCounts) -> u64| -> u64 {
                subflows.clone().map(|s| count(&end.subflows[s]) - count(&begin.subflows[s])).sum()
            };
            let sent = total(&|s| s.sender.packets);
            let drops = total(&|s| s.drops);
            figure("packets_sent", sent as f64);
            figure("retransmits", total(&|s| s.sender.retransmits) as f64);
            figure("drops", drops as f64);
            figure("loss_rate", drops as f64 / (sent as f64).max(1.0));
            if connection.is_mptcp() {
                figure("reinjections", connection.sides[0].send.reinjections as f64);
                figure("duplicates", connection.sides[1].receive.duplicates as f64);
                figure("out_of_order_max_bytes", connection.sides[1].receive.held_bytes_max as f64);
            }
            for (subflow, path) in subflows.zip(&model.subflows) {
                let scope = Scope::Subflow(model.name.clone(), path.name.clone());
                let counts = (begin.subflows[subflow], end.subflows[subflow]);
                self.subflow_figures(figures, &scope, subflow, counts, window_s);
            }
        }
        goodputs
    }

    fn subflow_figures(
        &self,
        figures: &mut Vec<Figure>,
        scope: &Scope,
        index: usize,
        (begin, end): (SubflowCounts, SubflowCounts),
        window_s: f64,
    ) {
        let mut figure = |metric, value| figures.push(Figure { scope: scope.clone(), metric, value });
        let sent = end.sender.packets - begin.sender.packets;
        let drops = end.drops - begin.drops;
        figure("throughput_bps", (end.bytes_acked - begin.bytes_acked) as f64 * 8.0 / window_s);
        figure("packets_sent", sent as f64);
        figure("retransmits", (end.sender.retransmits - begin.sender.retransmits) as f64);
        figure("timeouts", (end.sender.timeouts - begin.sender.timeouts) as f64);
        figure("fast_retransmits", (end.sender.recoveries - begin.sender.recoveries) as f64);
        figure("drops", drops as f64);
        figure("loss_rate", drops as f64 / (sent as f64).max(1.0));
        let means = self.meter.subflow_means[index];
        if let Some(cwnd) = means.cwnd.get() {
            figure("mean_cwnd_packets", cwnd);
        }
        if let Some(srtt_s) = means.srtt_s.get() {
            figure("mean_srtt_s", srtt_s);
        }
        let min_us = self.endpoints[2 * index].sender.rtt.min_us;
        if min_us > 0 {
            figure("min_rtt_s", f64::from(min_us) / 1e6);
        }
    }

    fn datagram_figures(&self, figures: &mut Vec<Figure>, begin: &Counts, end: &Counts, window_s: f64) {
        for (index, model) in self.scenario.datagrams.iter().enumerate() {
            let (begin, end) = (begin.datagrams[index], end.datagrams[index]);
            let scope = Scope::Connection(model.name.clone());
            let mut figure = |metric, value| figures.push(Figure { scope: scope.clone(), metric, value });
            figure("packets_sent", (end.0 - begin.0) as f64);
            figure("packets_received", (end.1 - begin.1) as f64);
            figure("throughput_bps", (end.2 - begin.2) as f64 * 8.0 / window_s);
        }
    }

    fn link_figures(&self, figures: &mut Vec<Figure>, begin: &Counts, end: &Counts, window_s: f64) {
        let wires = 2 * self.scenario.links.len();
        for (index, (link, name)) in self.meter.links.iter().enumerate() {
            let (position, rate_bps) = match *link {
                LinkRef::Wire(wire) => {
                    let model = &self.scenario.links[wire / 2];
                    (wire, if wire % 2 == 0 { model.forward.rate_bps } else { model.reverse.rate_bps })
                }
                LinkRef::Medium(medium) => (wires + medium, self.scenario.media[medium].rate_bps),
            };
            let (begin, end) = (begin.links[position], end.links[position]);
            let scope = Scope::Link(name.clone());
            let mut figure = |metric, value| figures.push(Figure { scope: scope.clone(), metric, value });
            figure("drops", (end.drops - begin.drops) as f64);
            figure("losses", (end.losses - begin.losses) as f64);
            figure("packets", (end.packets - begin.packets) as f64);
            let bits = (end.bytes - begin.bytes) as f64 * 8.0;
            figure("throughput_bps", bits / window_s);
            figure("utilization", bits / window_s / rate_bps as f64);
            if let Some(queue) = self.meter.queue_means[index].get() {
                figure("mean_queue_packets", queue);
            }
        }
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
