//! From readings to the series and figures of a run folder, with the simulator's names and meaning.
//!
//! The measuring thread asks when the next reading is [due](Sampler::due), and hands it over with the time at
//! which it was made. Nothing here asks the system.
//!
//! Where the kernel's meaning differs from the simulator's: `retransmits` counts SYNs that were sent again,
//! `drops` counts every packet lost on the subflow's way forth, handshakes and bare acknowledgements
//! included; `timeouts` counts those of SYNs. A kernel does not tell `fast_retransmits`, `duplicates` and
//! `out_of_order_max_bytes` of a connection, nor `reinjections` in segments: `reinjected_bytes` takes its place.

use anabranch_record::model::{Scope, Series, Summary};
use anabranch_scenario::model::{Direction, Measure, Protocol, Scenario, Strips};

use super::{
    Sample, SubflowSample,
    host_memory::HostMemory,
    links::{Link, links_of},
    readings::{ConnectionReading, DatagramReading, LinkReading, Readings},
    subflow::{Totals, Track},
    summary, workload,
};
use crate::{Nanos, plan::Plan};

/// Distance between readings for the means where no series is wanted.
const MEANS_INTERVAL: Nanos = 100_000_000;

const SUBFLOW_SERIES: [&str; 14] = [
    "cwnd_packets",
    "ssthresh_packets",
    "srtt_s",
    "throughput_bps",
    "retransmits",
    "drops",
    "rto_s",
    "pacing_rate_bps",
    "delivery_rate_bps",
    "unacked_packets",
    "lost_packets",
    "peer_window_bytes",
    "rwnd_limited_s",
    "sndbuf_limited_s",
];
const CONNECTION_SERIES: [&str; 3] = ["goodput_bps", "receive_memory_bytes", "send_memory_bytes"];

pub(super) type Points = Vec<(Nanos, f64)>;

/// A mean over readings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    sum: f64,
    n: u32,
}

impl Mean {
    pub(super) fn add(&mut self, value: f64) {
        self.sum += value;
        self.n += 1;
    }

    pub(super) fn get(self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / f64::from(self.n))
    }
}

/// A subflow of the scenario.
#[derive(Clone, Debug)]
pub(super) struct Subflow {
    pub(super) name: String,
    /// The client's, wherever the data come from.
    address: std::net::IpAddr,
    /// The way of the data, in the plan.
    path: usize,
    pub(super) track: Track,
    series: [Points; SUBFLOW_SERIES.len()],
    last_acked: u64,
    pub(super) cwnd: Mean,
    pub(super) srtt_s: Mean,
}

/// A connection of the scenario.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) name: String,
    /// The workload of which it is a member; then it is measured with the others.
    pub(super) member_of: Option<String>,
    pub(super) is_mptcp: bool,
    /// Both ends send.
    pub(super) is_mutual: bool,
    pub(super) has_fallen_back: bool,
    /// Whether that is told as a figure.
    pub(super) may_fall_back: bool,
    pub(super) subflows: Vec<Subflow>,
    pub(super) series: [Points; CONNECTION_SERIES.len()],
    last_delivered: u64,
    pub(super) opened_at: Option<Nanos>,
    pub(super) completed_at: Option<Nanos>,
}

/// What has been counted up to some moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) at: Nanos,
    /// Per connection.
    pub(super) delivered_bytes: Vec<u64>,
    pub(super) downloaded_bytes: Vec<u64>,
    pub(super) reinjected_bytes: Vec<Option<u64>>,
    /// Per connection and subflow: totals, and packets lost.
    pub(super) subflows: Vec<Vec<(Totals, u64)>>,
    pub(super) datagrams: Vec<DatagramReading>,
    pub(super) links: Vec<LinkReading>,
}

impl Counts {
    /// Of the same flows and links, when nothing had happened.
    fn at_the_start(&self) -> Self {
        Self {
            at: 0,
            delivered_bytes: vec![0; self.delivered_bytes.len()],
            downloaded_bytes: vec![0; self.downloaded_bytes.len()],
            reinjected_bytes: self.reinjected_bytes.iter().map(|known| known.map(|_| 0)).collect(),
            subflows: self.subflows.iter().map(|of| vec![Default::default(); of.len()]).collect(),
            datagrams: vec![DatagramReading::default(); self.datagrams.len()],
            links: vec![LinkReading::default(); self.links.len()],
        }
    }
}

/// Collects readings.
#[derive(Clone, Debug)]
pub struct Sampler {
    pub(super) connections: Vec<Connection>,
    /// Names of the datagram flows.
    pub(super) datagrams: Vec<String>,
    pub(super) links: Vec<Link>,
    /// If the scenario asks for it.
    pub(super) memory: Option<HostMemory>,
    pub(super) measure: Measure,
    duration: Nanos,
    interval: Nanos,
    next: Nanos,
    last_at: Nanos,
    missed: u64,
    begin: Option<Counts>,
    end: Option<Counts>,
    latest: Counts,
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}

impl Sampler {
    /// For one run of `scenario`, built as `plan` says.
    pub fn new(scenario: &Scenario, plan: &Plan) -> Self {
        let connections = scenario.connections.iter().zip(&plan.connections).map(|(model, plan)| {
            let ends = plan.client_addresses.iter().zip(&plan.paths);
            // The way back of a path lies behind it.
            let way = model.traffic.data_side();
            let subflow = |(model, (&address, &path)): (&anabranch_scenario::model::Subflow, _)| Subflow {
                name: model.name.clone(),
                address,
                path: path + way,
                track: Track::default(),
                series: Default::default(),
                last_acked: 0,
                cwnd: Mean::default(),
                srtt_s: Mean::default(),
            };
            Connection {
                name: model.name.clone(),
                member_of: model.member_of.clone(),
                is_mptcp: model.protocol == Protocol::Mptcp,
                is_mutual: model.traffic.direction() == Direction::Both,
                has_fallen_back: false,
                may_fall_back: model.protocol == Protocol::Mptcp
                    && scenario.links.iter().any(|link| link.strips != Strips::Nothing),
                subflows: model.subflows.iter().zip(ends).map(subflow).collect(),
                series: Default::default(),
                last_delivered: 0,
                opened_at: None,
                completed_at: None,
            }
        });
        let interval = match scenario.measure.interval {
            0 => MEANS_INTERVAL,
            interval => interval,
        };
        Self {
            connections: connections.collect(),
            datagrams: scenario.datagrams.iter().map(|flow| flow.name.clone()).collect(),
            links: links_of(scenario),
            memory: scenario.measure.memory.then(|| HostMemory::new(scenario)),
            measure: scenario.measure,
            duration: scenario.duration,
            interval,
            next: interval,
            last_at: 0,
            missed: 0,
            begin: None,
            end: None,
            latest: Counts::default(),
        }
    }

    /// When the next reading is wanted: at the multiples of the interval and at both ends of the window, until
    /// the scenario's duration.
    pub fn due(&self) -> Option<Nanos> {
        let from = self.begin.is_none().then_some(self.measure.from);
        let to = self.end.is_none().then_some(self.measure.to);
        from.into_iter().chain(to).chain([self.next]).min().filter(|&due| due <= self.duration)
    }

    /// Points of the series that are missing because readings came later than the next was due.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// MPTCP connections that have turned out to be TCP, by name.
    pub fn fallen_back(&self) -> impl Iterator<Item = &str> {
        self.connections.iter().filter(|of| of.has_fallen_back).map(|of| of.name.as_str())
    }

    /// Subflows that the kernel has not opened so far, by the names of connection and subflow.
    pub fn unopened(&self) -> impl Iterator<Item = (&str, &str)> {
        // Nobody expects a flow to live long enough for all of its subflows.
        let alone = self.connections.iter().filter(|connection| connection.member_of.is_none());
        alone.flat_map(|connection| {
            let unopened = connection.subflows.iter().filter(|subflow| !subflow.track.has_been_open());
            unopened.map(|subflow| (connection.name.as_str(), subflow.name.as_str()))
        })
    }

    /// Takes over what was read at `now`.
    ///
    /// # Panics
    /// If nothing was due yet, or if the readings are not of this scenario.
    pub fn take(&mut self, now: Nanos, readings: &Readings) {
        assert!(self.due().is_some_and(|due| due <= now), "a reading at {now} ns, none is due");
        assert_eq!(readings.connections.len(), self.connections.len(), "one reading per connection");
        for (connection, reading) in self.connections.iter_mut().zip(&readings.connections) {
            connection.update(reading);
        }
        self.latest = self.counts(now, readings);
        if now >= self.next {
            self.sample(now, readings);
        }
        if self.begin.is_none() && now >= self.measure.from {
            // A window from the start on begins with nothing, however late the first reading is.
            let is_whole = self.measure.from == 0;
            self.begin = Some(if is_whole { self.latest.at_the_start() } else { self.latest.clone() });
        }
        if self.end.is_none() && now >= self.measure.to {
            self.end = Some(self.latest.clone());
        }
    }

    fn counts(&self, now: Nanos, readings: &Readings) -> Counts {
        let reinjected =
            |reading: &ConnectionReading| reading.sender.as_ref().and_then(|of| of.bytes_retrans);
        let last_reinjected = self.latest.reinjected_bytes.iter().copied().chain(std::iter::repeat(None));
        let subflows = |connection: &Connection| {
            let lost = |subflow: &Subflow| readings.lost_on_paths[subflow.path];
            connection.subflows.iter().map(|subflow| (subflow.track.totals(), lost(subflow))).collect()
        };
        Counts {
            at: now,
            delivered_bytes: readings.connections.iter().map(|of| of.delivered_bytes).collect(),
            downloaded_bytes: readings.connections.iter().map(|of| of.downloaded_bytes).collect(),
            reinjected_bytes: readings
                .connections
                .iter()
                .zip(last_reinjected)
                .map(|(reading, last)| reinjected(reading).or(last))
                .collect(),
            subflows: self.connections.iter().map(subflows).collect(),
            datagrams: readings.datagrams.clone(),
            links: readings.links.clone(),
        }
    }

    /// One point of every series, and one value for every mean.
    fn sample(&mut self, now: Nanos, readings: &Readings) {
        // A late reading stands for the last time at which one was due.
        let due = now / self.interval * self.interval;
        self.missed += (due - self.next) / self.interval;
        self.next = due + self.interval;
        let moment = Moment {
            now,
            since_s: seconds(now - self.last_at),
            is_inside: (self.measure.from..=self.measure.to).contains(&due),
            is_wanted: self.measure.interval > 0,
        };
        self.last_at = now;
        for (connection, reading) in self.connections.iter_mut().zip(&readings.connections) {
            connection.sample(&moment, reading, &readings.lost_on_paths);
        }
        if let Some(memory) = &mut self.memory {
            memory.look(now, &readings.connections, moment.is_inside, moment.is_wanted);
        }
        for link in &mut self.links {
            let queued = f64::from(readings.links[link.position].queued);
            if moment.is_inside {
                link.queue.add(queued);
            }
            if moment.is_wanted {
                link.series.push((now, queued));
            }
        }
    }

    /// The figures over the window; `None` if the run has ended before the window did.
    pub fn summary(&self) -> Option<Summary> {
        let (begin, end) = (self.begin.as_ref()?, self.end.as_ref()?);
        let hops = self.latest.links.iter().map(|link| link.packets).sum();
        (end.at > begin.at).then(|| summary::summary(self, begin, end, hops))
    }

    /// Bytes that a connection has delivered over the window, by index.
    ///
    /// # Panics
    /// If the window has not ended, or if there is no such flow.
    pub fn delivered_bytes(&self, connection: usize) -> u64 {
        let [begin, end] = self.window();
        end.delivered_bytes[connection] - begin.delivered_bytes[connection]
    }

    /// The same of a datagram flow.
    ///
    /// # Panics
    /// As [`Sampler::delivered_bytes`].
    pub fn received_bytes(&self, datagram: usize) -> u64 {
        let [begin, end] = self.window();
        end.datagrams[datagram].received_bytes - begin.datagrams[datagram].received_bytes
    }

    fn window(&self) -> [&Counts; 2] {
        [&self.begin, &self.end].map(|counts| counts.as_ref().expect("the window has ended"))
    }

    /// The series, in the simulator's order; the kernel's own follow those that both have.
    pub fn series(self) -> Vec<Series> {
        let mut all = Vec::new();
        all.extend(workload::series(&self.connections));
        for connection in self.connections.into_iter().filter(|connection| connection.member_of.is_none()) {
            let scope = Scope::Connection(connection.name.clone());
            let own = CONNECTION_SERIES.into_iter().zip(connection.series);
            all.extend(own.map(|(metric, points)| Series { scope: scope.clone(), metric, points }));
            for subflow in connection.subflows {
                let scope = Scope::Subflow(connection.name.clone(), subflow.name);
                let own = SUBFLOW_SERIES.into_iter().zip(subflow.series);
                all.extend(own.map(|(metric, points)| Series { scope: scope.clone(), metric, points }));
            }
        }
        all.extend(self.links.into_iter().map(|link| Series {
            scope: Scope::Link(link.name),
            metric: "queue_packets",
            points: link.series,
        }));
        all.extend(self.memory.iter().flat_map(HostMemory::series));
        all
    }
}

/// When a reading was made and what it counts for.
struct Moment {
    now: Nanos,
    /// Time since the previous point.
    since_s: f64,
    /// Counts for the means.
    is_inside: bool,
    /// Gives points.
    is_wanted: bool,
}

impl Connection {
    fn update(&mut self, reading: &ConnectionReading) {
        (self.opened_at, self.completed_at) = (reading.opened_at, reading.completed_at);
        for subflow in &mut self.subflows {
            subflow.update(reading.sender.as_ref());
        }
        if let Some(sample) = &reading.sender {
            self.has_fallen_back |= self.is_mptcp && !sample.is_mptcp;
        }
    }

    fn sample(&mut self, moment: &Moment, reading: &ConnectionReading, lost: &[u64]) {
        let bytes = reading.delivered_bytes - self.last_delivered;
        self.last_delivered = reading.delivered_bytes;
        let alone = self.member_of.is_none();
        let memory = reading.memory_of_both_ends().filter(|_| alone);
        let values = [
            Some(bytes as f64 * 8.0 / moment.since_s),
            memory.map(|of| of.receive_bytes as f64),
            memory.map(|of| of.send_bytes as f64),
        ];
        moment.push(&mut self.series, values);
        for subflow in self.subflows.iter_mut().filter(|_| alone) {
            subflow.sample(moment, lost[subflow.path]);
        }
    }

    /// From opening to completion.
    pub(super) fn completion(&self) -> Option<Nanos> {
        let (opened, completed) = self.opened_at.zip(self.completed_at)?;
        Some(completed - opened)
    }

    /// Whether another one is a member of the same workload.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.member_of.is_some() && self.member_of == other.member_of
    }
}

impl Subflow {
    fn update(&mut self, sample: Option<&Sample>) {
        match sample {
            Some(sample) => {
                let ours = |subflow: &&SubflowSample| {
                    [subflow.local, subflow.remote].iter().any(|end| end.ip() == self.address)
                };
                self.track.update(sample.subflows.iter().filter(ours));
            }
            None => self.track.lose_sight(),
        }
    }

    fn sample(&mut self, moment: &Moment, lost: u64) {
        if !self.track.has_been_open() {
            return;
        }
        let totals = self.track.totals();
        let bytes = totals.bytes_acked - self.last_acked;
        self.last_acked = totals.bytes_acked;
        let now = self.track.current();
        let value = |of: fn(&SubflowSample) -> Option<f64>| now.and_then(of);
        let cwnd = value(|of| Some(f64::from(of.cwnd_packets)));
        let srtt_s = value(|of| (of.srtt_us > 0).then(|| f64::from(of.srtt_us) / 1e6));
        if moment.is_inside {
            cwnd.into_iter().for_each(|cwnd| self.cwnd.add(cwnd));
            srtt_s.into_iter().for_each(|srtt_s| self.srtt_s.add(srtt_s));
        }
        let values = [
            cwnd,
            value(|of| of.ssthresh_packets.map(f64::from)),
            srtt_s,
            Some(bytes as f64 * 8.0 / moment.since_s),
            Some(totals.retransmits as f64),
            Some(lost as f64),
            value(|of| Some(f64::from(of.rto_us) / 1e6)),
            value(|of| of.pacing_rate_bps.map(|rate| rate as f64)),
            value(|of| Some(of.delivery_rate_bps as f64)),
            value(|of| Some(f64::from(of.unacked_packets))),
            value(|of| Some(f64::from(of.lost_packets))),
            value(|of| Some(f64::from(of.snd_wnd_bytes))),
            Some(totals.rwnd_limited_us as f64 / 1e6),
            Some(totals.sndbuf_limited_us as f64 / 1e6),
        ];
        moment.push(&mut self.series, values);
    }
}

impl Moment {
    /// Adds one point to each series that has a value.
    fn push<const N: usize>(&self, series: &mut [Points; N], values: [Option<f64>; N]) {
        if self.is_wanted {
            for (points, value) in series.iter_mut().zip(values) {
                points.extend(value.map(|value| (self.now, value)));
            }
        }
    }
}
