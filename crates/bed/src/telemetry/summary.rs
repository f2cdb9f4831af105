//! The figures of a run over its window, as the simulator's `measure/summary.rs` defines them.

use anabranch_record::model::{Figure, Scope, Summary};

use super::{
    sampler::{Connection, Counts, Sampler, Subflow},
    subflow::Totals,
    workload,
};
use crate::Nanos;

/// Collects figures of one scope.
struct Figures<'a> {
    all: &'a mut Vec<Figure>,
    scope: Scope,
}

impl Figures<'_> {
    fn add(&mut self, metric: &'static str, value: f64) {
        self.all.push(Figure { scope: self.scope.clone(), metric, value });
    }

    fn add_some(&mut self, metric: &'static str, value: Option<f64>) {
        if let Some(value) = value {
            self.add(metric, value);
        }
    }
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}

/// Figures from `begin` to `end`, whose times differ; rates are over the time that lies between them.
pub(super) fn summary(sampler: &Sampler, begin: &Counts, end: &Counts, packet_hops: u64) -> Summary {
    let window_s = seconds(end.at - begin.at);
    let mut all = Vec::new();
    let mut goodputs = Vec::new();
    for (index, connection) in sampler.connections.iter().enumerate() {
        if connection.member_of.is_some() {
            continue;
        }
        let bytes = end.delivered_bytes[index] - begin.delivered_bytes[index];
        goodputs.push(bytes as f64 * 8.0 / window_s);
        connection_figures(&mut all, connection, index, (begin, end), window_s);
    }
    goodputs.extend(workload::figures(&mut all, sampler, (begin, end), window_s));
    for (index, name) in sampler.datagrams.iter().enumerate() {
        let (begin, end) = (begin.datagrams[index], end.datagrams[index]);
        let mut figures = Figures { all: &mut all, scope: Scope::Connection(name.clone()) };
        figures.add("packets_sent", (end.sent - begin.sent) as f64);
        figures.add("packets_received", (end.received - begin.received) as f64);
        figures.add("throughput_bps", (end.received_bytes - begin.received_bytes) as f64 * 8.0 / window_s);
    }
    for link in &sampler.links {
        let (begin, end) = (begin.links[link.position], end.links[link.position]);
        let mut figures = Figures { all: &mut all, scope: Scope::Link(link.name.clone()) };
        figures.add("drops", (end.drops - begin.drops) as f64);
        figures.add("losses", (end.losses - begin.losses) as f64);
        if link.marks {
            figures.add("marks", (end.marks - begin.marks) as f64);
        }
        figures.add("packets", (end.packets - begin.packets) as f64);
        let rate_bps = (end.bytes - begin.bytes) as f64 * 8.0 / window_s;
        figures.add("throughput_bps", rate_bps);
        figures.add("utilization", rate_bps / link.rate_bps as f64);
        figures.add_some("mean_queue_packets", link.queue.get());
        if let (Some(begin), Some(end)) = (begin.air, end.air) {
            for (metric, value) in end.since(begin).figures(window_s) {
                figures.add(metric, value);
            }
        }
    }
    let mut run = Figures { all: &mut all, scope: Scope::Run };
    let total: f64 = goodputs.iter().sum();
    run.add("goodput_bps", total);
    let squares: f64 = goodputs.iter().map(|x| x * x).sum();
    if squares > 0.0 {
        run.add("jain_index", total * total / (goodputs.len() as f64 * squares));
    }
    run.add("packet_hops", packet_hops as f64);
    if let Some(memory) = &sampler.memory {
        all.extend(memory.figures(sampler.connections.iter().map(|of| of.name.as_str())));
    }
    Summary { figures: all }
}

/// What a subflow has counted at both ends of the window.
type Window = [(Totals, u64); 2];

fn difference([(begin, _), (end, _)]: &Window, count: impl Fn(&Totals) -> u64) -> u64 {
    count(end) - count(begin)
}

fn drops(&[(_, begin), (_, end)]: &Window) -> u64 {
    end - begin
}

fn connection_figures(
    all: &mut Vec<Figure>,
    connection: &Connection,
    index: usize,
    (begin, end): (&Counts, &Counts),
    window_s: f64,
) {
    let mut figures = Figures { all, scope: Scope::Connection(connection.name.clone()) };
    let bytes = end.delivered_bytes[index] - begin.delivered_bytes[index];
    figures.add("goodput_bps", bytes as f64 * 8.0 / window_s);
    figures.add("bytes_delivered", bytes as f64);
    if connection.is_mutual {
        let down = end.downloaded_bytes[index] - begin.downloaded_bytes[index];
        for (metric, bytes) in [("goodput_up_bps", bytes - down), ("goodput_down_bps", down)] {
            figures.add(metric, bytes as f64 * 8.0 / window_s);
        }
    }
    figures.add_some("completion_s", connection.completion().map(seconds));
    let windows = begin.subflows[index].iter().zip(&end.subflows[index]);
    let windows: Vec<Window> = windows.map(|(&begin, &end)| [begin, end]).collect();
    let sent: u64 = windows.iter().map(|window| difference(window, |of| of.packets)).sum();
    let again: u64 = windows.iter().map(|window| difference(window, |of| of.retransmits)).sum();
    let dropped: u64 = windows.iter().map(drops).sum();
    figures.add("packets_sent", sent as f64);
    figures.add("retransmits", again as f64);
    figures.add("drops", dropped as f64);
    figures.add("loss_rate", dropped as f64 / (sent as f64).max(1.0));
    if let Some(end) = end.reinjected_bytes[index] {
        let begin = begin.reinjected_bytes[index].unwrap_or(0);
        figures.add("reinjected_bytes", (end - begin) as f64);
    }
    if connection.may_fall_back {
        figures.add("fallback", f64::from(u8::from(connection.has_fallen_back)));
    }
    for (subflow, window) in connection.subflows.iter().zip(&windows) {
        let scope = Scope::Subflow(connection.name.clone(), subflow.name.clone());
        subflow_figures(&mut Figures { all: figures.all, scope }, subflow, window, window_s);
    }
}

fn subflow_figures(figures: &mut Figures<'_>, subflow: &Subflow, window: &Window, window_s: f64) {
    let sent = difference(window, |of| of.packets) as f64;
    let dropped = drops(window) as f64;
    figures.add("throughput_bps", difference(window, |of| of.bytes_acked) as f64 * 8.0 / window_s);
    figures.add("packets_sent", sent);
    figures.add("retransmits", difference(window, |of| of.retransmits) as f64);
    let [(begin, _), (end, _)] = window;
    let timeouts = end.timeouts.zip(begin.timeouts).map(|(end, begin)| (end - begin) as f64);
    figures.add_some("timeouts", timeouts);
    figures.add("drops", dropped);
    figures.add("loss_rate", dropped / sent.max(1.0));
    figures.add_some("mean_cwnd_packets", subflow.cwnd.get());
    figures.add_some("mean_srtt_s", subflow.srtt_s.get());
    figures.add_some("min_rtt_s", subflow.track.min_rtt_us().map(|time| f64::from(time) / 1e6));
}
