//! Nodes, links, media, and how they change.

use std::sync::Arc;

use anabranch_agent_config::Config;

use super::Nanos;

/// A host or router.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique name.
    pub name: String,
    /// What the device agent on it is told; its interfaces are named as the links and media are.
    pub agent: Option<Arc<Config>>,
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
    /// What a middlebox on it removes.
    pub strips: Strips,
}

/// MPTCP options that a middlebox removes from packets of both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strips {
    /// None.
    #[default]
    Nothing,
    /// MP_JOIN.
    Joins,
    /// All of them.
    Mptcp,
}

/// One direction of a wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// Bits per second, above 0; with a trace its mean.
    pub rate_bps: u64,
    /// Propagation delay.
    pub delay: Nanos,
    /// How much the queue holds.
    pub queue: QueueLimit,
    /// Who waits and who is dropped.
    pub discipline: Discipline,
    /// Random loss.
    pub loss: Loss,
    /// Variation of the delay.
    pub jitter: Option<Jitter>,
    /// Index into `Scenario::traces` of what the rate follows.
    pub trace: Option<usize>,
}

impl Wire {
    /// A wire of constant rate and delay with an unlimited drop-tail queue and no loss.
    pub const fn plain(rate_bps: u64, delay: Nanos) -> Self {
        Self {
            rate_bps,
            delay,
            queue: QueueLimit::Unlimited,
            discipline: Discipline::DropTail,
            loss: Loss::None,
            jitter: None,
            trace: None,
        }
    }
}

/// A queue discipline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// First in, first out; what finds the queue full is dropped.
    DropTail,
    /// Random early detection (Floyd and Jacobson 1993).
    Red(Red),
    /// Controlled delay (RFC 8289).
    CoDel(CoDel),
    /// Controlled delay separately for each flow (RFC 8290).
    FqCoDel {
        /// Of each queue.
        codel: CoDel,
        /// Number of queues, at least 1.
        flows: u32,
        /// Bytes that a queue may send per round, at least 1.
        quantum_bytes: u32,
    },
}

impl Discipline {
    /// Whether packets that can be are marked instead of dropped.
    pub fn marks(&self) -> bool {
        match self {
            Self::DropTail => false,
            Self::Red(red) => red.ecn,
            Self::CoDel(codel) | Self::FqCoDel { codel, .. } => codel.ecn,
        }
    }
}

/// Settings of RED; queue lengths in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Below this average nothing is dropped early.
    pub min_packets: u32,
    /// From this average on everything is, unless gentle; above `min_packets`.
    pub max_packets: u32,
    /// Probability of a drop at `max_packets`.
    pub max_p: f64,
    /// Weight of the newest queue length in the average, above 0 and at most 1.
    pub weight: f64,
    /// Whether the probability grows on to 1 at twice `max_packets`.
    pub gentle: bool,
    /// Whether packets that can be are marked instead of dropped.
    pub ecn: bool,
}

/// Settings of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// Acceptable standing delay.
    pub target: Nanos,
    /// Over which the delay must have been above the target; above 0.
    pub interval: Nanos,
    /// Whether packets that can be are marked instead of dropped.
    pub ecn: bool,
}

/// A delay that varies from packet to packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// Twice the mean of the further delay, above 0.
    pub range: Nanos,
    /// How it is distributed.
    pub distribution: JitterDistribution,
    /// Whether packets may overtake.
    pub reorder: bool,
}

/// How a further delay is distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterDistribution {
    /// Uniform in `[0, range)`.
    Uniform,
    /// Exponential.
    Exponential,
    /// Normal with a standard deviation of a sixth of the range, cut at 0 and at the range.
    Normal,
}

/// A recorded rate in the format of mahimahi: times at which [`Trace::OPPORTUNITY_BYTES`] can be sent, repeated at the
/// last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Milliseconds, ascending, several may be equal; the last is above 0.
    pub opportunities_ms: Arc<[u32]>,
}

impl Trace {
    /// What one opportunity can carry.
    pub const OPPORTUNITY_BYTES: u32 = 1500;

    /// After so long it begins again.
    pub fn period(&self) -> Nanos {
        Nanos::from(self.opportunities_ms.last().copied().unwrap_or(0)) * 1_000_000
    }

    /// Bits per second over its length, at least 1.
    pub fn mean_bps(&self) -> u64 {
        let bits = self.opportunities_ms.len() as u128 * u128::from(Self::OPPORTUNITY_BYTES) * 8;
        ((bits * 1_000_000_000 / u128::from(self.period().max(1))) as u64).max(1)
    }
}

/// How much a queue holds, the packet in transmission included (as in ns-2).
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
    /// Losses in bursts: a channel of two states, which may change before each packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability of a change from good to bad.
        p: f64,
        /// Probability of a change from bad to good, above 0.
        r: f64,
        /// Loss in the good state.
        loss_good: f64,
        /// Loss in the bad state.
        loss_bad: f64,
    },
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
