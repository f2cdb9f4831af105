//! The validated scenario: what both engines run.
//!
//! Every reference is an index, every quantity has its base unit, every default has been filled in and
//! every path has been resolved to hops. Nothing in here can be inconsistent; the parser sees to that.

/// A point or span of simulated time, in nanoseconds.
pub type Nanos = u64;

/// A scenario that has passed every check.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Identifier, used for the run folder: letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// One line for tables and plots.
    pub title: String,
    /// Free text; may be empty.
    pub description: String,
    /// Where the set-up comes from (paper, RFC); may be empty.
    pub source: String,
    /// Simulated time.
    pub duration: Nanos,
    /// What is measured and when.
    pub measure: Measure,
    /// Nodes in the order of the file.
    pub nodes: Vec<Node>,
    /// Duplex wires in the order of the file.
    pub links: Vec<Link>,
    /// Shared half-duplex media in the order of the file.
    pub media: Vec<Medium>,
    /// TCP and MPTCP connections in the order of the file.
    pub connections: Vec<Connection>,
    /// UDP flows in the order of the file.
    pub datagrams: Vec<Datagram>,
    /// Link changes, sorted by time, then by their order in the file.
    pub changes: Vec<Change>,
}

/// What is measured and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Start of the window over which the summary counts.
    pub from: Nanos,
    /// End of that window.
    pub to: Nanos,
    /// Distance between two points of the series; 0 writes no series.
    pub interval: Nanos,
}

/// A host or router.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique name.
    pub name: String,
}

/// A duplex wire between two nodes; the two directions are independent.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Unique among links and media.
    pub name: String,
    /// Index of the node at the `forward` direction's start.
    pub a: usize,
    /// Index of the node at the `forward` direction's end.
    pub b: usize,
    /// From `a` to `b`.
    pub forward: Wire,
    /// From `b` to `a`.
    pub reverse: Wire,
}

/// One direction of a wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// Bits per second, above 0.
    pub rate_bps: u64,
    /// Propagation delay.
    pub delay: Nanos,
    /// Drop-tail limit.
    pub queue: QueueLimit,
    /// Random loss.
    pub loss: Loss,
}

/// How much a drop-tail queue holds, the packet in transmission included (as in ns-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// No limit.
    Unlimited,
    /// At least 1.
    Packets(u32),
    /// At least 1.
    Bytes(u64),
}

/// Random loss on a wire or medium, applied after the queue: a lost packet has used the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Nothing is lost.
    None,
    /// Each packet is lost independently with this probability, above 0 and at most 1.
    Bernoulli(f64),
}

/// An 802.11-like shared half-duplex medium: one frame at a time, contention by backoff.
#[derive(Clone, Debug, PartialEq)]
pub struct Medium {
    /// Unique among links and media.
    pub name: String,
    /// Indices of the nodes that share it, at least two.
    pub stations: Vec<usize>,
    /// Data rate of a frame's body, bits per second.
    pub rate_bps: u64,
    /// Rate of the link-layer acknowledgement, bits per second.
    pub basic_rate_bps: u64,
    /// Propagation delay, after the frame has ended.
    pub delay: Nanos,
    /// Queue limit of each station.
    pub queue: QueueLimit,
    /// Frame loss by noise; a frame so lost is retried.
    pub loss: Loss,
    /// Length of a slot.
    pub slot: Nanos,
    /// Short interframe space.
    pub sifs: Nanos,
    /// Preamble and PLCP header, sent before every frame and acknowledgement.
    pub preamble: Nanos,
    /// MAC header and checksum in bytes.
    pub mac_header_bytes: u32,
    /// Smallest contention window minus one is drawn from (15 or 31 in 802.11).
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
    /// Transmissions of one frame before it is given up, at least 1.
    pub retry_limit: u32,
}

/// One hop of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// Over `links[link]`, from a to b if `forward`.
    Wire {
        /// Index into `Scenario::links`.
        link: usize,
        /// Direction.
        forward: bool,
    },
    /// Over `media[medium]` between two of its stations.
    Medium {
        /// Index into `Scenario::media`.
        medium: usize,
        /// Index of the sending node.
        from: usize,
        /// Index of the receiving node.
        to: usize,
    },
}

impl Hop {
    /// The same hop in the other direction.
    pub fn reversed(self) -> Hop {
        match self {
            Hop::Wire { link, forward } => Hop::Wire { link, forward: !forward },
            Hop::Medium { medium, from, to } => Hop::Medium { medium, from: to, to: from },
        }
    }
}

/// A time that may be drawn from the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Exactly then.
    At(Nanos),
    /// Uniform in `[from, to)`, one draw per connection and seed.
    Uniform {
        /// Earliest.
        from: Nanos,
        /// Bound, above `from`.
        to: Nanos,
    },
}

impl When {
    /// The time, given a source of uniform draws below a bound.
    pub fn draw(self, below: impl FnOnce(u64) -> u64) -> Nanos {
        match self {
            When::At(time) => time,
            When::Uniform { from, to } => from + below(to - from),
        }
    }
}

/// TCP or Multipath TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RFC 9293, one subflow.
    Tcp,
    /// RFC 8684.
    Mptcp,
}

/// Version of the Internet Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// RFC 791: a header of 20 bytes.
    V4,
    /// RFC 8200: a header of 40 bytes.
    V6,
}

/// A TCP or MPTCP connection; data flows from `from` to `to`.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Unique among connections and datagram flows.
    pub name: String,
    /// TCP or MPTCP.
    pub protocol: Protocol,
    /// IP version of every subflow.
    pub ip_version: IpVersion,
    /// Index of the node that opens the connection and sends.
    pub from: usize,
    /// Index of the other node.
    pub to: usize,
    /// What the application sends.
    pub traffic: Traffic,
    /// How the transport behaves.
    pub transport: Transport,
    /// Packet scheduler: `minrtt` or `roundrobin`.
    pub scheduler: String,
    /// At least one; exactly one for TCP. The first opens the connection.
    pub subflows: Vec<Subflow>,
}

/// One subflow with its path.
#[derive(Clone, Debug, PartialEq)]
pub struct Subflow {
    /// Unique in the connection; `0`, `1`, … unless given.
    pub name: String,
    /// From the connection's `from` to its `to`; the way back is the same, reversed.
    pub hops: Vec<Hop>,
    /// Only used when no regular subflow is usable (RFC 8684 section 3.3.8).
    pub backup: bool,
    /// Congestion control of this subflow. Coupled algorithms couple the subflows that share the name.
    pub congestion: Congestion,
}

/// A congestion control with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Congestion {
    /// A name of the registry.
    pub name: String,
    /// The algorithm's parameters as `algorithms/` stores them, all of them, in declaration order.
    pub params: Vec<u32>,
}

/// What an application sends over a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// As much as the transport takes, from `start` until `stop`.
    Ftp {
        /// When the connection is opened.
        start: When,
        /// When the application stops writing; `None`: never.
        stop: Option<Nanos>,
    },
    /// A file of `bytes`.
    File {
        /// When the connection is opened.
        start: When,
        /// At least 1.
        bytes: u64,
    },
}

/// A UDP flow: fixed-size packets at a constant rate, during `on`.
#[derive(Clone, Debug, PartialEq)]
pub struct Datagram {
    /// Unique among connections and datagram flows.
    pub name: String,
    /// Index of the sending node.
    pub from: usize,
    /// Index of the receiving node.
    pub to: usize,
    /// Path from `from` to `to`.
    pub hops: Vec<Hop>,
    /// Bits per second on the wire.
    pub rate_bps: u64,
    /// Size on the wire.
    pub packet_bytes: u32,
    /// IP version; the size on the wire does not depend on it.
    pub ip_version: IpVersion,
    /// Disjoint intervals `[start, end)` in ascending order.
    pub on: Vec<(Nanos, Nanos)>,
    /// Every interval begins up to this much earlier (not before 0) or later, one draw per interval and seed.
    /// Small enough that intervals stay disjoint and none is empty.
    pub phase_jitter: Nanos,
}

impl Datagram {
    /// The intervals with their phases, given a source of uniform draws below a bound; one draw per interval,
    /// also where no interval is left.
    pub fn intervals(&self, mut below: impl FnMut(u64) -> u64) -> impl Iterator<Item = (Nanos, Nanos)> {
        let jitter = self.phase_jitter;
        let shifted = self
            .on
            .iter()
            .map(move |&(from, to)| ((from + below(2 * jitter + 1)).saturating_sub(jitter), to));
        shifted.filter(|&(from, to)| from < to)
    }
}

/// How lost packets are recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// RFC 6582, by duplicate acknowledgements.
    NewReno,
    /// RFC 6675, by selective acknowledgements.
    Sack,
}

/// When the further subflows of an MPTCP connection are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// Together with the first one (ns-2 patches do so).
    Immediately,
    /// When the connection is fully established, at the first data acknowledgement (RFC 8684 section 3.1).
    Established,
}

/// How the retransmission timeout is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoRule {
    /// RFC 6298: `max(min_rto, srtt + max(G, 4 rttvar))`, G being the clock granularity.
    Rfc6298,
    /// Linux: `srtt + max(min_rto, 4 rttvar)`.
    Linux,
}

/// Delayed acknowledgements (RFC 1122 section 4.2.3.2, RFC 5681 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// At the latest after this long; with `timeout_max` above it, the least delay of an adaptive timer.
    pub timeout: Nanos,
    /// At the latest at this many full-sized segments.
    pub every: u32,
    /// Bound of the adaptive timer; at least `timeout`.
    pub timeout_max: Nanos,
    /// Segments acknowledged at once at the start, after a pause and after a duplicate; 0: none, and neither are
    /// those that let the window grow or end what the application has written.
    pub quick: u32,
}

/// Transport settings of one connection, after profile and overrides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transport {
    /// Payload of a full segment.
    pub segment_bytes: u32,
    /// Headers of a data packet.
    pub header_bytes: u32,
    /// Size of a packet without payload.
    pub ack_bytes: u32,
    /// Initial congestion window in packets.
    pub initial_window: u32,
    /// Initial ssthresh in packets; `None`: unbounded.
    pub initial_ssthresh: Option<u32>,
    /// Upper bound of the congestion window in packets; `None`: unbounded.
    pub window_cap: Option<u32>,
    /// RTO before the first sample.
    pub initial_rto: Nanos,
    /// Lower bound of the RTO (see `rto_rule`).
    pub min_rto: Nanos,
    /// Clock granularity G of RFC 6298.
    pub rto_granularity: Nanos,
    /// Upper bound of the RTO.
    pub max_rto: Nanos,
    /// Formula.
    pub rto_rule: RtoRule,
    /// `None`: every data packet is acknowledged at once.
    pub delayed_ack: Option<DelayedAck>,
    /// RFC 3042.
    pub limited_transmit: bool,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Receive buffer in bytes, of the connection (shared by the subflows); `None`: unlimited.
    pub receive_buffer: Option<u64>,
    /// Whether the window offered grows up to `receive_buffer` with what the application reads.
    pub receive_buffer_tuning: bool,
    /// Send buffer in bytes, of the connection; `None`: unlimited.
    pub send_buffer: Option<u64>,
    /// Whether data is paced by the window and the smoothed RTT.
    pub pacing: bool,
    /// Opening of further subflows.
    pub join: Join,
    /// A random processing time in `[0, send_jitter)` before each data packet of the sender, in order
    /// (ns-2's `overhead_`); breaks phase effects.
    pub send_jitter: Nanos,
}

/// A change of a link while the scenario runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// When.
    pub at: Nanos,
    /// What it changes.
    pub target: ChangeTarget,
    /// New rate.
    pub rate_bps: Option<u64>,
    /// New delay; a packet never overtakes one that left before it.
    pub delay: Option<Nanos>,
    /// New loss.
    pub loss: Option<Loss>,
    /// `Some(false)`: packets that arrive or are queued are dropped until `Some(true)`.
    pub up: Option<bool>,
}

/// Which link a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeTarget {
    /// `links[link]`; at least one of the directions.
    Link {
        /// Index into `Scenario::links`.
        link: usize,
        /// From a to b.
        forward: bool,
        /// From b to a.
        reverse: bool,
    },
    /// `media[medium]`.
    Medium(usize),
}
