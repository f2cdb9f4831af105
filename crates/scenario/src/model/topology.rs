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
