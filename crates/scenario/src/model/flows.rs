//! Connections, subflows, datagram flows and what applications send.

use anabranch_draw::{ByteTime, Departures, Pattern, Rng, Streams};

use anabranch_policy::energy::Linear;

use super::{Hop, Nanos, Traffic, Transport};

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

/// A TCP or MPTCP connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Unique among connections and datagram flows.
    pub name: String,
    /// The workload of which it is a member, if any.
    pub member_of: Option<String>,
    /// TCP or MPTCP.
    pub protocol: Protocol,
    /// IP version of every subflow.
    pub ip_version: IpVersion,
    /// Index of the node that opens the connection.
    pub from: usize,
    /// Index of the other node.
    pub to: usize,
    /// What the application sends.
    pub traffic: Traffic,
    /// How the transport behaves.
    pub transport: Transport,
    /// Packet scheduler.
    pub scheduler: Scheduler,
    /// At least one; exactly one for TCP. The first opens the connection.
    pub subflows: Vec<Subflow>,
    /// Which of them there are; `None`: all, opened as `transport.join` says.
    pub path_manager: Option<PathManager>,
    /// By subflow, where the agent of the node `from` manages them by `path_manager`.
    pub agent: Option<Vec<AgentPath>>,
}

/// What the configuration of an agent says of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentPath {
    /// Its interface is a spare one for this policy. The first subflow is opened as a regular one all the same.
    pub spare: bool,
    /// What the radio of its interface takes.
    pub radio: Option<Linear>,
}

/// A path manager with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathManager {
    /// A name of the registry (`anabranch_policy::paths`).
    pub name: String,
    /// Its parameters as the registry stores them, all of them, in declaration order.
    pub params: Vec<u64>,
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
    /// Segments in a turn of weighted round-robin.
    pub weight: u32,
    /// When it is opened, if that is not as soon as it may; [`Event`](super::Event)s hold that too.
    pub start: Option<Nanos>,
    /// Whether it joins when the node `to` has announced the address that it leads to (RFC 8684 section 3.4.1).
    pub announced: bool,
    /// What it may carry in one period of the path manager `cost`: both directions, with headers.
    pub cap_bytes: Option<u64>,
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

/// A packet scheduler with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduler {
    /// A name of the registry.
    pub name: String,
    /// Its parameters as the registry stores them, all of them, in the order of the registry.
    pub params: Vec<u32>,
}

/// A UDP flow: fixed-size packets, during `on`.
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
    /// Bits per second on the wire while the pattern is on.
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
    /// How packets lie within the intervals.
    pub pattern: Pattern,
}

impl Connection {
    /// The stream of the draws of the application.
    pub fn application_draws(&self, streams: Streams) -> Rng {
        streams.stream(&format!("application/{}", self.name))
    }
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

    /// When the packets leave, with the draws of a seed.
    pub fn departures(&self, streams: Streams) -> Departures {
        let mut phases = streams.stream(&format!("datagram/{}", self.name));
        let intervals = self.intervals(|bound| phases.below(bound));
        Departures::new(intervals, self.gap(), self.pattern, || self.pattern_draws(streams))
    }

    /// From one packet to the next while the pattern is on.
    pub fn gap(&self) -> Nanos {
        ByteTime::new(self.rate_bps).of(self.packet_bytes).max(1)
    }

    /// The stream of the draws of the pattern.
    pub fn pattern_draws(&self, streams: Streams) -> Rng {
        streams.stream(&format!("datagram/{}/pattern", self.name))
    }
}
