//! Nodes, links, media, and how they change.

use super::Nanos;

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
