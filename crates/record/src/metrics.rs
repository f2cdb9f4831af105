//! The dictionary of figures and series: every metric that a run folder may hold, with its unit and its meaning.
//!
//! Whoever measures something more adds one line here. The reference at the end of `docs/run-folder.md` and the
//! dictionary in `series.parquet` come from these tables, and the engines check what they measure against them in
//! their tests.

use std::fmt::Write as _;

use crate::model::{Measurements, Scope};

/// Which engines measure something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engines {
    /// The simulator and the kernel.
    Both,
    /// The simulator only.
    Sim,
    /// The kernel only.
    Kernel,
}

/// What a metric is measured of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// The whole run.
    Run,
    /// Connections and datagram flows.
    Connection,
    /// Subflows of connections.
    Subflow,
    /// Directions of links, and media.
    Link,
    /// Interfaces of nodes.
    Interface,
    /// Hosts.
    Node,
}

impl Of {
    /// The kind of a scope.
    pub fn scope(scope: &Scope) -> Self {
        match scope {
            Scope::Run => Of::Run,
            Scope::Connection(_) => Of::Connection,
            Scope::Subflow(..) => Of::Subflow,
            Scope::Link(_) => Of::Link,
            Scope::Interface(..) => Of::Interface,
            Scope::Node(_) => Of::Node,
        }
    }

    /// The word for it in `summary.csv`.
    pub fn name(self) -> &'static str {
        match self {
            Of::Run => "run",
            Of::Connection => "connection",
            Of::Subflow => "subflow",
            Of::Link => "link",
            Of::Interface => "interface",
            Of::Node => "node",
        }
    }
}

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// What it is measured of.
    pub of: Of,
    /// Name, with the unit at its end if that is none of "packets" and "1".
    pub name: &'static str,
    /// Unit; `1` for shares, indices and counts of events.
    pub unit: &'static str,
    /// Who measures it.
    pub engines: Engines,
    /// What it is, in a few words.
    pub meaning: &'static str,
}

const fn both(of: Of, name: &'static str, unit: &'static str, meaning: &'static str) -> Metric {
    Metric { of, name, unit, engines: Engines::Both, meaning }
}

const fn sim(of: Of, name: &'static str, unit: &'static str, meaning: &'static str) -> Metric {
    Metric { of, name, unit, engines: Engines::Sim, meaning }
}

const fn kernel(of: Of, name: &'static str, unit: &'static str, meaning: &'static str) -> Metric {
    Metric { of, name, unit, engines: Engines::Kernel, meaning }
}

use Of::{Connection, Interface, Link, Node, Run, Subflow};

/// Figures of the summary: over the scenario's window unless they say otherwise.
#[rustfmt::skip]
pub static FIGURES: &[Metric] = &[
    both(Run, "goodput_bps", "bit/s", "sum over the connections"),
    both(Run, "jain_index", "1", "fairness of the connections' goodputs (Jain 1984): 1 if they are equal"),
    both(Run, "packet_hops", "packets", "packets, data or not, carried over one link each, in the whole run"),
    both(Run, "energy_linear_j", "J", "of all interfaces, by the linear model"),
    both(Run, "energy_huang_j", "J", "of all interfaces, by the model with states"),
    both(Run, "energy_huang_tail_j", "J", "of this, in tails"),
    both(Run, "energy_linear_per_bit_j", "J/bit", "by the linear model, per bit delivered by flows over interfaces"),
    both(Run, "energy_huang_per_bit_j", "J/bit", "by the model with states, per bit delivered by flows over interfaces"),
    both(Run, "energy_huang_no_tail_per_bit_j", "J/bit", "the same without tails"),
    both(Run, "bits_per_joule_linear", "bit/J", "delivered by flows over interfaces, per energy by the linear model"),
    both(Run, "bits_per_joule_huang", "bit/J", "delivered by flows over interfaces, per energy by the model with states"),
    both(Run, "bits_per_joule_huang_no_tail", "bit/J", "the same without tails"),
    both(Connection, "goodput_bps", "bit/s", "payload delivered in order to the application"),
    both(Connection, "bytes_delivered", "B", "the same in bytes"),
    both(Connection, "completion_s", "s", "from opening to the delivery of a file's last byte; absent until then"),
    both(Connection, "throughput_bps", "bit/s", "of datagram flows: received, with headers"),
    both(Connection, "packets_sent", "packets", "data packets sent, retransmissions counted; datagrams sent"),
    both(Connection, "packets_received", "packets", "of datagram flows: packets received"),
    both(Connection, "retransmits", "packets", "data packets sent again on the same subflow"),
    both(Connection, "drops", "packets", "data packets lost to queues and to noise"),
    both(Connection, "loss_rate", "1", "`drops` over `packets_sent`"),
    sim(Connection, "reinjections", "packets", "of MPTCP: segments sent again on another subflow, in the whole run"),
    kernel(Connection, "reinjected_bytes", "B", "of MPTCP: data-level bytes sent again"),
    sim(Connection, "copies", "packets", "of the scheduler redundant: segments sent on a further subflow, in the whole run"),
    sim(Connection, "duplicates", "packets", "of MPTCP: segments that came twice, in the whole run"),
    sim(Connection, "out_of_order_max_bytes", "B", "of MPTCP: most that waited for a gap to be filled, in the whole run"),
    both(Connection, "send_memory_peak_bytes", "B", "held for sending at both ends, most of all samples"),
    both(Connection, "send_memory_mean_bytes", "B", "held for sending at both ends, mean over samples"),
    both(Connection, "receive_memory_peak_bytes", "B", "received at both ends and not read, most of all samples"),
    both(Connection, "receive_memory_mean_bytes", "B", "received at both ends and not read, mean over samples"),
    sim(Connection, "out_of_order_peak_bytes", "B", "of MPTCP: out of order at the data level, most of all samples"),
    sim(Connection, "out_of_order_mean_bytes", "B", "of MPTCP: out of order at the data level, mean over samples"),
    both(Connection, "goodput_up_bps", "bit/s", "of transfers in both directions: `goodput_bps` from the opener"),
    both(Connection, "goodput_down_bps", "bit/s", "of transfers in both directions: `goodput_bps` to the opener"),
    both(Connection, "messages", "1", "of telemetry and requests: those that were answered"),
    both(Connection, "latency_mean_s", "s", "of messages: from writing to the whole answer"),
    both(Connection, "latency_p50_s", "s", "of messages: median by nearest rank"),
    both(Connection, "latency_p95_s", "s", "of messages: quantile by nearest rank"),
    both(Connection, "latency_p99_s", "s", "of messages: quantile by nearest rank"),
    both(Connection, "latency_max_s", "s", "of messages: longest"),
    both(Connection, "flows_started", "1", "of workloads: flows opened"),
    both(Connection, "flows_completed", "1", "of workloads: flows delivered"),
    both(Connection, "completion_mean_s", "s", "of workloads: from opening to the last byte's delivery"),
    both(Connection, "completion_p50_s", "s", "of workloads: median by nearest rank"),
    both(Connection, "completion_p95_s", "s", "of workloads: quantile by nearest rank"),
    both(Connection, "completion_p99_s", "s", "of workloads: quantile by nearest rank"),
    both(Connection, "completion_max_s", "s", "of workloads: longest"),
    both(Connection, "bytes_relayed", "B", "of relays: bytes handed on"),
    both(Connection, "buffer_max_bytes", "B", "of relays: most that waited in the buffer"),
    both(Connection, "bytes_transferred", "B", "of transfers: bytes of the file that have arrived, each counted once"),
    both(Connection, "chunks_delivered", "1", "of transfers and their connections: chunks delivered, those that came twice counted twice"),
    both(Connection, "chunks_sent_again", "1", "of transfers: chunks given to another connection because theirs had failed"),
    sim(Connection, "ecn_marks", "packets", "with `ecn`: data packets that arrived with a mark"),
    sim(Connection, "hol_blocked_s", "s", "of MPTCP: time in which data waited at the receiver for earlier data"),
    sim(Connection, "hol_delay_mean_s", "s", "of MPTCP: how long data that waited did so"),
    sim(Connection, "hol_delay_max_s", "s", "of MPTCP: the longest such wait"),
    sim(Connection, "opportunistic_retransmissions", "packets", "of MPTCP: blocked segments sent again on a faster subflow"),
    sim(Connection, "penalisations", "1", "of MPTCP: windows halved because a subflow held up the others"),
    sim(Connection, "joins_refused", "1", "of MPTCP: joins that the way did not let through"),
    sim(Connection, "path_decisions", "1", "of MPTCP with a path manager: decisions that it has carried out"),
    both(Connection, "fallback", "1", "of MPTCP: 1 if the connection went on as TCP"),
    sim(Subflow, "ecn_marks", "packets", "with `ecn`: data packets that arrived with a mark"),
    sim(Subflow, "data_share", "1", "with `measure.scheduling`: part of the connection's packets that the subflow has sent, retransmissions not counted"),
    sim(Subflow, "subflow_failures", "1", "with events or `stale_after`: how often it has become stale"),
    both(Subflow, "throughput_bps", "bit/s", "payload newly acknowledged on the subflow"),
    both(Subflow, "packets_sent", "packets", "data packets sent, retransmissions counted"),
    both(Subflow, "retransmits", "packets", "data packets sent again on the same subflow"),
    both(Subflow, "timeouts", "1", "expiries of the retransmission timer"),
    sim(Subflow, "fast_retransmits", "1", "recovery episodes"),
    both(Subflow, "drops", "packets", "data packets lost to queues and to noise"),
    both(Subflow, "loss_rate", "1", "`drops` over `packets_sent`"),
    both(Subflow, "mean_cwnd_packets", "packets", "congestion window, mean over samples"),
    both(Subflow, "mean_srtt_s", "s", "smoothed round-trip time, mean over samples"),
    both(Subflow, "min_rtt_s", "s", "smallest sample of the round-trip time, in the whole run"),
    sim(Subflow, "out_of_order_peak_bytes", "B", "out of order in the subflow, most of all samples"),
    sim(Subflow, "out_of_order_mean_bytes", "B", "out of order in the subflow, mean over samples"),
    both(Link, "drops", "packets", "packets dropped by the queue, or because the link was down"),
    both(Link, "losses", "packets", "packets lost to noise"),
    both(Link, "marks", "packets", "of links whose queue may mark: packets marked (ECN) instead of dropped"),
    both(Link, "packets", "packets", "packets carried"),
    both(Link, "throughput_bps", "bit/s", "carried, with headers"),
    both(Link, "utilization", "1", "`throughput_bps` over the rate at the beginning"),
    both(Link, "mean_queue_packets", "packets", "queue length, the packet in transmission included; mean over samples"),
    both(Link, "airtime_share", "1", "of media: the part of the window taken by frames and what belongs to them"),
    both(Link, "transmissions", "1", "of media: frames sent, retries counted"),
    both(Link, "collisions", "1", "of media: how often two or more stations sent at once"),
    both(Link, "retries", "1", "of media: frames sent again"),
    both(Interface, "bytes_up", "B", "sent by the node, with headers, lost on the way or not"),
    both(Interface, "bytes_down", "B", "received by the node, with headers"),
    both(Interface, "active_s", "s", "time of the bins with traffic"),
    both(Interface, "promotions", "1", "changes from idle to active"),
    both(Interface, "energy_linear_j", "J", "by the linear model"),
    both(Interface, "energy_huang_j", "J", "by the model with states: the sum of all states"),
    both(Interface, "energy_huang_promotion_j", "J", "of this, in promotions"),
    both(Interface, "energy_huang_active_j", "J", "of this, while bytes move"),
    both(Interface, "energy_huang_tail_j", "J", "of this, in tails"),
    both(Interface, "energy_huang_idle_j", "J", "of this, while idle"),
    both(Interface, "energy_huang_tail_left_j", "J", "rest of the tail at the window's end, not in the sum"),
    both(Interface, "energy_linear_per_bit_j", "J/bit", "by the linear model, per bit carried in both directions"),
    both(Interface, "energy_huang_per_bit_j", "J/bit", "by the model with states, per bit carried in both directions"),
    both(Interface, "energy_huang_no_tail_per_bit_j", "J/bit", "the same without tails"),
    both(Node, "send_memory_peak_bytes", "B", "held for sending by ends at the host, most of all samples"),
    both(Node, "send_memory_mean_bytes", "B", "held for sending by ends at the host, mean over samples"),
    both(Node, "receive_memory_peak_bytes", "B", "received by ends at the host and not read, most of all samples"),
    both(Node, "receive_memory_mean_bytes", "B", "received by ends at the host and not read, mean over samples"),
];

/// Series: one point per `measure.interval`.
#[rustfmt::skip]
pub static SERIES: &[Metric] = &[
    both(Connection, "goodput_bps", "bit/s", "payload delivered in order to the application, since the last point"),
    both(Connection, "send_memory_bytes", "B", "held for sending at both ends: not acknowledged at the data level"),
    both(Connection, "receive_memory_bytes", "B", "received at both ends and not read by the application"),
    sim(Connection, "out_of_order_bytes", "B", "of MPTCP: received out of order at the data level, at both ends"),
    both(Subflow, "cwnd_packets", "packets", "congestion window"),
    both(Subflow, "ssthresh_packets", "packets", "slow-start threshold; absent while it is unbounded"),
    both(Subflow, "srtt_s", "s", "smoothed round-trip time; absent before the first sample"),
    both(Subflow, "throughput_bps", "bit/s", "payload newly acknowledged on the subflow, since the last point"),
    both(Subflow, "retransmits", "packets", "data packets sent again, from the start"),
    both(Subflow, "drops", "packets", "data packets lost to queues and to noise, from the start"),
    kernel(Subflow, "rto_s", "s", "retransmission timeout"),
    kernel(Subflow, "pacing_rate_bps", "bit/s", "rate at which packets are paced; absent without a bound"),
    kernel(Subflow, "delivery_rate_bps", "bit/s", "latest sample of the rate at which packets are delivered"),
    kernel(Subflow, "unacked_packets", "packets", "sent and not acknowledged cumulatively"),
    kernel(Subflow, "lost_packets", "packets", "of these, those that the sender takes for lost"),
    kernel(Subflow, "peer_window_bytes", "B", "window that the peer offers"),
    kernel(Subflow, "rwnd_limited_s", "s", "time for which the peer's window has kept data back, from the start"),
    kernel(Subflow, "sndbuf_limited_s", "s", "time for which the send buffer has kept data back, from the start"),
    sim(Subflow, "out_of_order_bytes", "B", "received out of order in the subflow, at both ends"),
    sim(Subflow, "data_share", "1", "part of the connection's packets since the last point, retransmissions not counted; absent without any"),
    sim(Subflow, "in_subset", "1", "of schedulers that choose a subset: 1 while the subflow is in it"),
    both(Link, "queue_packets", "packets", "queue length, the packet in transmission included"),
    both(Interface, "power_linear_w", "W", "by the linear model; a point at the end of each bin, the mean over it"),
    both(Interface, "power_huang_w", "W", "by the model with states; a point at the end of each bin, the mean over it"),
    both(Node, "send_memory_bytes", "B", "held for sending by the ends at the host"),
    both(Node, "receive_memory_bytes", "B", "received by the ends at the host and not read by the application"),
];

/// The entry of a metric in one of the tables.
pub fn find(table: &'static [Metric], of: Of, name: &str) -> Option<&'static Metric> {
    table.iter().find(|metric| metric.of == of && metric.name == name)
}

/// What an engine (`sim` or `kernel`) has measured and the tables do not know as its own; empty if all is well.
pub fn unregistered(engine: Engines, measured: &Measurements) -> Vec<String> {
    let unknown = |table: &'static [Metric], what: &str, scope: &Scope, name: &str| {
        let known = find(table, Of::scope(scope), name)
            .is_some_and(|metric| metric.engines == Engines::Both || metric.engines == engine);
        (!known).then(|| format!("{what} {name} of a {}", Of::scope(scope).name()))
    };
    let figures =
        measured.summary.figures.iter().filter_map(|one| unknown(FIGURES, "figure", &one.scope, one.metric));
    let series = measured.series.iter().filter_map(|one| unknown(SERIES, "series", &one.scope, one.metric));
    let mut all: Vec<String> = figures.chain(series).collect();
    all.sort();
    all.dedup();
    all
}

/// The tables in Markdown, for `docs/run-folder.md`.
pub fn reference() -> String {
    let mut text = String::new();
    for (title, table) in [("Figures", FIGURES), ("Series", SERIES)] {
        write!(text, "### {title}\n\n| of | metric | unit | engine | what it is |\n|---|---|---|---|---|\n")
            .expect("a string takes all text");
        for metric in table {
            let engine = match metric.engines {
                Engines::Both => "both",
                Engines::Sim => "sim",
                Engines::Kernel => "kernel",
            };
            let Metric { of, name, unit, meaning, .. } = metric;
            writeln!(text, "| {} | `{name}` | {unit} | {engine} | {meaning} |", of.name())
                .expect("a string takes all text");
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Figure, Series, Summary};

    #[test]
    fn a_metric_is_there_once_per_table_and_named_for_its_unit() {
        for table in [FIGURES, SERIES] {
            for (index, metric) in table.iter().enumerate() {
                assert_eq!(
                    find(table, metric.of, metric.name),
                    Some(&table[index]),
                    "{} is there twice",
                    metric.name
                );
                let ending = match metric.unit {
                    "bit/s" => "_bps",
                    "s" => "_s",
                    "J" => "_j",
                    "W" => "_w",
                    "J/bit" => "_per_bit_j",
                    _ => "",
                };
                assert!(metric.name.ends_with(ending), "{} in {}", metric.name, metric.unit);
                assert!(
                    !metric.meaning.is_empty() && !metric.meaning.contains(['|', '\n']),
                    "{}",
                    metric.name
                );
            }
        }
    }

    #[test]
    fn what_is_not_registered_for_an_engine_is_named() {
        let figure = |metric| Figure { scope: Scope::Connection("c".into()), metric, value: 1.0 };
        let series = |metric| Series { scope: Scope::Link("l".into()), metric, points: Vec::new() };
        let measured = Measurements {
            summary: Summary { figures: vec![figure("goodput_bps"), figure("reinjections")] },
            series: vec![series("queue_packets"), series("colour")],
            ..Measurements::default()
        };
        assert_eq!(unregistered(Engines::Sim, &measured), ["series colour of a link"]);
        let of_kernel = ["figure reinjections of a connection", "series colour of a link"];
        assert_eq!(unregistered(Engines::Kernel, &measured), of_kernel);
    }
}
