//! `events.qlog`: what every subflow did and why, event by event, in the form of qlog
//! (draft-ietf-quic-qlog-main-schema), for which QUIC has tools.
//!
//! One trace per subflow, as its opener sees it, and one more where the other end sends data. There is no event schema
//! for TCP; ours is `docs/run-folder.md`'s, close to the one of QUIC: lengths in bytes, offsets from 0 at the first
//! byte of payload, times in milliseconds from the beginning of the run. Events are what packets and timers made
//! change: an event that changes nothing is not there.
//!
//! Left out: timers that are set, and what congestion control keeps to itself. A packet that waits for
//! `send_jitter` is logged when it is made.

use std::{collections::BTreeSet, fmt::Write as _, io, path::PathBuf};

use anabranch_cc::{CaState, SSTHRESH_INFINITE};
use anabranch_link::Nanos;
use anabranch_policy::{Reason, paths::Decision};
use anabranch_scenario::model::Scenario;

use super::{
    Shown, bytes::Bytes, output::Output, paths, paths::Path, paths::Paths, picks::Told, spool::Spool,
};
use crate::{
    packet::{NO_SACK, flags, unwrap},
    signal::Signal,
    tcp::{
        segments::{LOST, RETRANSMITTED},
        sender::Method,
    },
    world::{Endpoint, Phase},
};

/// Namespace of the events, and the address of their schema.
const NAMESPACE: &str = "anabranch-tcp";
const SCHEMA: &str = "urn:anabranch:qlog:events:anabranch-tcp";

/// A log in the making.
pub(super) struct Qlog {
    file: PathBuf,
    name: String,
    spool: Spool,
    /// By the endpoint that sends.
    paths: Vec<Path>,
    traces: Vec<Trace>,
}

/// The trace of an endpoint.
struct Trace {
    /// Everything that stands before its events.
    head: String,
    /// The other end's is left out unless it sends data.
    is_wanted: bool,
    has_events: bool,
    last: Seen,
}

/// What the last events told of an endpoint.
#[derive(Clone, Default)]
struct Seen {
    phase: Option<Phase>,
    /// How often the subflow had ended.
    ended: u32,
    state: &'static str,
    metrics: Metrics,
    timeouts: u64,
    /// Segments taken for lost that have not been sent again.
    lost: BTreeSet<u64>,
}

/// Times in microseconds.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Metrics {
    congestion_window: u64,
    ssthresh: Option<u64>,
    bytes_in_flight: u64,
    packets_in_flight: u64,
    smoothed_rtt_us: u64,
    rtt_variance_us: u64,
    min_rtt_us: u64,
}

impl Metrics {
    fn of(endpoint: &Endpoint) -> Self {
        let sender = &endpoint.sender;
        let segment = u64::from(endpoint.segment_bytes);
        let in_flight = u64::from(sender.in_flight());
        Self {
            congestion_window: u64::from(sender.cwnd) * segment,
            ssthresh: (sender.ssthresh < SSTHRESH_INFINITE).then(|| u64::from(sender.ssthresh) * segment),
            bytes_in_flight: in_flight * segment,
            packets_in_flight: in_flight,
            smoothed_rtt_us: u64::from(sender.rtt.srtt8_us / 8),
            rtt_variance_us: u64::from(sender.rtt.mdev4_us / 4),
            min_rtt_us: u64::from(sender.rtt.min_us),
        }
    }
}

impl Qlog {
    pub(super) fn new(scenario: &Scenario, file: PathBuf) -> Self {
        let paths = Paths::new(scenario).endpoints;
        let mut traces = Vec::new();
        for connection in &scenario.connections {
            for subflow in &connection.subflows {
                for (node, kind) in [(connection.from, "client"), (connection.to, "server")] {
                    let (path, node) = (&paths[traces.len()], &scenario.nodes[node].name);
                    let (group, name) = (&connection.name, &subflow.name);
                    let head = format!(
                        "{{\"title\":\"{group}/{name} at {node}\",\"common_fields\":{{\"group_id\":\"{group}\",\
                         \"tuple\":\"{}-{}\",\"time_format\":\"relative_to_epoch\",\
                         \"reference_time\":{{\"clock_type\":\"monotonic\",\"epoch\":\"unknown\"}}}},\
                         \"vantage_point\":{{\"name\":\"{node}\",\"type\":\"{kind}\"}},\
                         \"event_schemas\":[\"{SCHEMA}\"],\"events\":[",
                        path.from, path.to
                    );
                    let last = Seen { phase: Some(Phase::Closed), ..Seen::default() };
                    traces.push(Trace { head, is_wanted: kind == "client", has_events: false, last });
                }
            }
        }
        let spool = Spool::new(traces.len(), file.with_extension("parts"));
        Self { file, name: scenario.name.clone(), spool, paths, traces }
    }

    /// Writes an event of an endpoint; `fill` writes the members of its data, each with a comma before it.
    fn event(&mut self, endpoint: usize, now: Nanos, name: &str, fill: impl FnOnce(&mut String)) {
        let trace = &mut self.traces[endpoint];
        let separator = if std::mem::replace(&mut trace.has_events, true) { ",\n" } else { "\n" };
        self.spool.append(endpoint, |to| {
            let (whole, rest) = (now / 1_000_000, now % 1_000_000);
            write!(to, "{separator}{{\"time\":{whole}.{rest:06},\"name\":\"{NAMESPACE}:{name}\",\"data\":{{")
                .expect("a string takes all text");
            let begin = to.len();
            fill(to);
            if to.len() > begin {
                to.remove(begin);
            }
            to.push_str("}}");
        });
    }

    /// An endpoint sends a packet. One that is sent again because it is taken for lost has been told of, or is now.
    pub(super) fn sent(&mut self, shown: Shown<'_>, endpoint: &Endpoint) {
        let Shown { now, endpoint: index, packet, bytes, .. } = shown;
        let trace = &mut self.traces[index];
        trace.is_wanted |= packet.has(flags::DATA);
        if packet.has(flags::RETRANSMIT) {
            let number = unwrap(packet.seq, endpoint.sender.una);
            let is_told = trace.last.lost.remove(&number);
            if !is_told && is_lost(endpoint, number) {
                self.tell_lost(now, index, packet.seq, bytes.payload(index, packet), bytes);
            }
        }
        self.event(index, now, "packet_sent", |to| {
            describe(to, shown);
            if packet.has(flags::RETRANSMIT) {
                to.push_str(",\"is_retransmission\":true");
            }
        });
    }

    /// A packet of the endpoint `shown` has come to the other end of the subflow.
    pub(super) fn arrived(&mut self, shown: Shown<'_>) {
        self.event(shown.endpoint ^ 1, shown.now, "packet_received", |to| describe(to, shown));
    }

    /// Something may have changed at an endpoint.
    pub(super) fn look(
        &mut self,
        now: Nanos,
        index: usize,
        endpoint: &Endpoint,
        is_mptcp: bool,
        bytes: &Bytes,
    ) {
        self.look_at_phase(now, index, endpoint, is_mptcp, bytes);
        if endpoint.phase != Phase::Established {
            return;
        }
        self.look_for_losses(now, index, endpoint, bytes);
        let timeouts = u64::from(endpoint.sender.counters.timeouts);
        if std::mem::replace(&mut self.traces[index].last.timeouts, timeouts) < timeouts {
            self.event(index, now, "timeout", |to| {
                member(to, "count", timeouts);
                time(to, "next", endpoint.sender.rtt.rto() / 1000);
            });
        }
        let state = state_of(endpoint);
        let old = std::mem::replace(&mut self.traces[index].last.state, state);
        if old != state {
            self.event(index, now, "congestion_state_updated", |to| {
                if !old.is_empty() {
                    text(to, "old", old);
                }
                text(to, "new", state);
            });
        }
        let metrics = Metrics::of(endpoint);
        let old = std::mem::replace(&mut self.traces[index].last.metrics, metrics);
        if old != metrics {
            self.event(index, now, "metrics_updated", |to| metrics.tell(&old, to));
        }
    }

    fn look_for_losses(&mut self, now: Nanos, index: usize, endpoint: &Endpoint, bytes: &Bytes) {
        let sender = &endpoint.sender;
        let told = &self.traces[index].last.lost;
        if sender.state == CaState::Open && told.is_empty() {
            return;
        }
        let waits = |number: &u64| sender.segments.get(*number).flags & (LOST | RETRANSMITTED) == LOST;
        let lost: BTreeSet<u64> = (sender.una..sender.next).filter(waits).collect();
        let fresh: Vec<u64> = lost.difference(told).copied().collect();
        self.traces[index].last.lost = lost;
        for number in fresh {
            let len = sender.segments.get(number).len;
            self.tell_lost(now, index, number as u32, len, bytes);
        }
    }

    fn tell_lost(&mut self, now: Nanos, index: usize, segment: u32, len: u16, bytes: &Bytes) {
        self.event(index, now, "packet_lost", |to| {
            member(to, "offset", bytes.before(index, segment));
            member(to, "payload_length", u64::from(len));
        });
    }

    fn look_at_phase(
        &mut self,
        now: Nanos,
        index: usize,
        endpoint: &Endpoint,
        is_mptcp: bool,
        bytes: &Bytes,
    ) {
        let last = &mut self.traces[index].last;
        if last.ended < endpoint.life.ended {
            // A subflow that is opened again is a new one, of which nothing has been told; counts go on.
            let (phase, timeouts) = (last.phase, last.timeouts);
            *last = Seen { phase, ended: endpoint.life.ended, timeouts, ..Seen::default() };
        }
        let old = last.phase.replace(endpoint.phase);
        if old == Some(endpoint.phase) {
            return;
        }
        let tuple = self.later_tuple(index, endpoint, bytes);
        self.event(index, now, "subflow_state_updated", |to| {
            text(to, "old", phase_name(old.unwrap_or(Phase::Closed)));
            text(to, "new", phase_name(endpoint.phase));
            let opens = match (is_mptcp, endpoint.subflow) {
                (false, _) => "tcp",
                (true, 0) if endpoint.life.ended == 0 => "mp_capable",
                (true, _) => "mp_join",
            };
            text(to, "by", opens);
            if let Some(tuple) = tuple {
                text(to, "tuple", &tuple);
            }
        });
    }

    /// The addresses of a subflow that is being opened again.
    fn later_tuple(&self, index: usize, endpoint: &Endpoint, bytes: &Bytes) -> Option<String> {
        let opener = index & !1;
        let first_packet = [endpoint.sender.next, endpoint.receiver.next][index & 1];
        let life = bytes.life(opener, first_packet as u32);
        if life == 0 || !matches!(endpoint.phase, Phase::SynSent | Phase::SynReceived) {
            return None;
        }
        let Path { mut from, mut to, .. } = self.paths[index];
        let client = if index == opener { &mut from } else { &mut to };
        client.set_port(paths::later_port(client.port(), life, self.paths.len() / 2));
        Some(format!("{from}-{to}"))
    }

    /// The path manager has decided something about the subflow of an endpoint.
    pub(super) fn decided(&mut self, now: Nanos, index: usize, decision: &Decision) {
        self.event(index, now, "path_decision", |to| explain(to, decision.action.name(), &decision.reason));
    }

    /// A scheduler has said something new about the subflow of an endpoint.
    pub(super) fn picked(&mut self, now: Nanos, told: &Told) {
        self.event(told.endpoint, now, "scheduler_decision", |to| explain(to, told.action, &told.reason));
    }

    pub(super) fn has_failed(&self) -> bool {
        self.spool.has_failed()
    }

    /// Puts the traces into the file.
    pub(super) fn finish(self) -> Result<Output, (PathBuf, io::Error)> {
        let mut output = Output::create(self.file);
        let head = format!(
            "{{\"file_schema\":\"urn:ietf:params:qlog:file:contained\",\
             \"serialization_format\":\"application/qlog+json\",\"title\":\"{}\"",
            self.name
        );
        output.write(head.as_bytes());
        let mut open = None;
        self.spool.finish(|number, piece| {
            let trace = &self.traces[number];
            if !trace.is_wanted {
                return;
            }
            if open != Some(number) {
                output.write(if open.is_some() { "]},\n" } else { ",\"traces\":[\n" }.as_bytes());
                output.write(trace.head.as_bytes());
                open = Some(number);
            }
            output.write(piece);
        })?;
        output.write(if open.is_some() { "]}]}\n" } else { "}\n" }.as_bytes());
        Ok(output)
    }
}

/// Whether a segment that is sent again was taken for lost. Recovery by duplicates alone sends nothing else again;
/// with selective acknowledgements there are probes, too.
fn is_lost(endpoint: &Endpoint, number: u64) -> bool {
    match endpoint.sender.method {
        Method::NewReno(_) => true,
        Method::Sack(_) | Method::Rack(_) => endpoint.sender.segments.get(number).flags & LOST != 0,
    }
}

impl Metrics {
    /// Those that have changed.
    fn tell(&self, old: &Self, to: &mut String) {
        for (name, old, new) in [
            ("congestion_window", Some(old.congestion_window), Some(self.congestion_window)),
            ("ssthresh", old.ssthresh, self.ssthresh),
            ("bytes_in_flight", Some(old.bytes_in_flight), Some(self.bytes_in_flight)),
            ("packets_in_flight", Some(old.packets_in_flight), Some(self.packets_in_flight)),
        ] {
            if let Some(value) = new.filter(|_| new != old) {
                member(to, name, value);
            }
        }
        for (name, old_us, new_us) in [
            ("smoothed_rtt", old.smoothed_rtt_us, self.smoothed_rtt_us),
            ("rtt_variance", old.rtt_variance_us, self.rtt_variance_us),
            ("min_rtt", old.min_rtt_us, self.min_rtt_us),
        ] {
            if new_us != old_us {
                time(to, name, new_us);
            }
        }
    }
}

fn state_of(endpoint: &Endpoint) -> &'static str {
    let sender = &endpoint.sender;
    match sender.state {
        CaState::Recovery => "recovery",
        CaState::Loss => "loss",
        CaState::Cwr => "reduction",
        CaState::Open | CaState::Disorder if sender.cwnd < sender.ssthresh => "slow_start",
        CaState::Open | CaState::Disorder => "congestion_avoidance",
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Closed => "closed",
        Phase::SynSent => "syn_sent",
        Phase::SynReceived => "syn_received",
        Phase::PreEstablished => "pre_established",
        Phase::Established => "established",
    }
}

/// The members that tell of a packet.
fn describe(to: &mut String, Shown { endpoint, packet, sacks, bytes, .. }: Shown<'_>) {
    let payload = bytes.payload(endpoint, packet);
    write!(to, ",\"raw\":{{\"length\":{},\"payload_length\":{payload}}},\"flags\":[", packet.bytes)
        .expect("a string takes all text");
    let begin = to.len();
    for (flag, name) in [
        (flags::SYN, "syn"),
        (flags::ACK, "ack"),
        (flags::PUSH, "psh"),
        (flags::ECE, "ece"),
        (flags::CWR, "cwr"),
        (flags::CE, "ce"),
        (flags::MP_CAPABLE, "mp_capable"),
        (flags::MP_JOIN, "mp_join"),
    ] {
        if packet.has(flag) {
            push_name(to, begin, name);
        }
    }
    if let Some(signal) = Signal::of(packet) {
        push_name(
            to,
            begin,
            match signal {
                Signal::Reset => "rst",
                Signal::Priority { backup: true } => "mp_prio_backup",
                Signal::Priority { backup: false } => "mp_prio_regular",
                Signal::AddAddress(_) => "add_addr",
                Signal::AddAddressEcho(_) => "add_addr_echo",
                Signal::RemoveAddress(_) => "remove_addr",
            },
        );
    }
    to.push(']');
    member(to, "offset", bytes.before(endpoint, packet.seq));
    if packet.has(flags::ACK) {
        member(to, "ack", bytes.before(endpoint ^ 1, packet.ack));
    }
    if packet.sack != NO_SACK {
        to.push_str(",\"sack\":[");
        for (index, &(from, end)) in sacks.peek(packet.sack).as_slice().iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let [from, end] = [from, end].map(|segment| bytes.before(endpoint ^ 1, segment));
            write!(to, "{comma}[{from},{end}]").expect("a string takes all text");
        }
        to.push(']');
    }
    if packet.has(flags::DATA_ACK) {
        if packet.has(flags::DATA) {
            member(to, "data_offset", bytes.data_before(endpoint, packet.data_seq));
        }
        member(to, "data_ack", bytes.data_before(endpoint ^ 1, packet.data_ack));
    }
    if packet.has(flags::WINDOW) {
        member(to, "window", u64::from(packet.wnd));
    }
}

/// Another member of the list that begins at `begin`.
fn push_name(to: &mut String, begin: usize, name: &str) {
    let comma = if to.len() > begin { "," } else { "" };
    write!(to, "{comma}\"{name}\"").expect("a string takes all text");
}

/// What is done, why, and the numbers that decided it.
fn explain(to: &mut String, action: &str, reason: &Reason) {
    text(to, "action", action);
    text(to, "reason", reason.code);
    for (name, value) in &reason.numbers {
        write!(to, ",\"{name}\":{value}").expect("a string takes all text");
    }
}

fn member(to: &mut String, name: &str, value: u64) {
    write!(to, ",\"{name}\":{value}").expect("a string takes all text");
}

fn text(to: &mut String, name: &str, value: &str) {
    write!(to, ",\"{name}\":\"{value}\"").expect("a string takes all text");
}

/// A time in milliseconds.
fn time(to: &mut String, name: &str, time_us: u64) {
    write!(to, ",\"{name}\":{}.{:03}", time_us / 1000, time_us % 1000).expect("a string takes all text");
}
