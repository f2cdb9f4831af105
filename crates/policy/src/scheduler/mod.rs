//! Packet schedulers: which subflow carries the next data-level segment.
//!
//! A scheduler is one file with a type that implements [`Scheduler`] and a constant with its name and parameters, and one
//! line in the registry. It is a pure state machine: what it sees are its arguments, time included. What is cheap to tell
//! of every subflow comes as a slice of [`Candidate`]s; the rest it asks for ([`Details`]), so that minRTT and
//! round-robin pay for nothing that they do not look at. Choosing takes a number of steps that is linear in the number of
//! subflows.
//!
//! Where real numbers are compared, only sums, differences, products, quotients and conversions are used: they are the
//! same on every machine.

mod blest;
mod daps;
mod dedicated;
mod dmptcp;
mod ecf;
pub(crate) mod ee;
mod emptcp;
mod emtcp;
mod es;
mod linux;
mod minrtt;
mod otias;
mod redundant;
mod registry;
mod roundrobin;
pub mod rounds;
pub(crate) mod subset;
#[cfg(test)]
mod testing;
mod weighted;
#[cfg(test)]
mod whys;

use crate::Reason;
pub use minrtt::fastest;
pub use registry::{Facts, SCHEDULERS, SchedulerInfo, SchedulerParam, SchedulerUnit, Sends, Setup, find};

/// A subflow as every scheduler sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Candidate {
    /// Established, and not recovering from a timeout.
    pub usable: bool,
    /// The window has room for a packet.
    pub has_room: bool,
    /// Only to be used when no other is usable.
    pub backup: bool,
    /// Has carried this segment before, or has it in its queue.
    pub carried: bool,
    /// Smoothed round-trip time times 8, in microseconds; 0 before the first sample.
    pub srtt8_us: u32,
}

/// The ssthresh of a subflow that has not lost anything yet.
pub const SSTHRESH_INFINITE: u32 = 0x7fff_ffff;

/// What more there is to know of a subflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subflow {
    /// Congestion window in segments, at least 1.
    pub cwnd: u32,
    /// Slow-start threshold in segments; [`SSTHRESH_INFINITE`] before the first loss, unless the scenario gives one.
    pub ssthresh: u32,
    /// Segments taken to be in the network.
    pub in_flight: u32,
    /// Segments that are sent and not acknowledged on the subflow.
    pub unacknowledged: u32,
    /// Segments that it has been given and has not sent.
    pub queued: u32,
    /// Payload of a full segment.
    pub segment_bytes: u32,
    /// Mean deviation of the round-trip time times 4, in microseconds (RFC 6298's RTTVAR).
    pub mdev4_us: u32,
    /// What it may send, or what Linux would pace it at, in bytes of payload per second; `None` before the first sample of
    /// the round-trip time.
    pub pacing_bytes_per_s: Option<u64>,
    /// Data packets sent since the start, retransmissions included.
    pub packets: u64,
    /// Those among them that were retransmissions.
    pub retransmits: u64,
}

/// What there is to know of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Connection {
    /// Time since the start, in microseconds.
    pub now_us: u64,
    /// Bytes that the application has written and no subflow has been given; `u64::MAX`: without end.
    pub unsent_bytes: u64,
    /// Bytes given to subflows and not acknowledged at the data level.
    pub unacknowledged_bytes: u64,
    /// What the receiver allows beyond what it has acknowledged; `u64::MAX`: everything.
    pub window_bytes: u64,
    /// Segments that were sent again on another subflow, since the start.
    pub reinjections: u64,
}

/// What a scheduler can ask for while it chooses.
pub trait Details {
    /// Of the candidate with this index.
    fn subflow(&self, index: usize) -> Subflow;
    /// Of the connection.
    fn connection(&self) -> Connection;
}

/// A scheduler's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// This subflow, by index, which has room, sends it now.
    Subflow(usize),
    /// This subflow, by index, sends it when its window has room and what it has been given before has left.
    Queue(usize),
    /// None now: a subflow that should carry it is full.
    Wait,
    /// Every usable subflow has carried this segment.
    AllCarried,
}

/// Chooses a subflow for one segment.
pub trait Scheduler {
    /// Called for the oldest segment that has to be sent, again and again until the answer is [`Pick::Wait`] or nothing is
    /// left; `subflows` in the order of the scenario, at most 32. A segment that has been carried before is a reinjection.
    fn pick(&mut self, subflows: &[Candidate], details: &dyn Details) -> Pick;

    /// Why it has just answered this to the same arguments: asked only when somebody wants to know, and before anything that
    /// it was shown has changed. The reason is about the subflow picked or, if the answer was [`Pick::Wait`], about the one
    /// with room that minRTT would have taken.
    fn why(&self, subflows: &[Candidate], details: &dyn Details, answer: Answer) -> Reason;

    /// The subflows that it uses now, one bit each, if it chooses a subset.
    fn chosen(&self) -> Option<u32> {
        None
    }
}

/// What a scheduler is asked the reason of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This subflow was picked.
    Takes(usize),
    /// This subflow has room and is left alone.
    Leaves(usize),
}

impl Answer {
    /// What there is to ask about a pick: nothing if no subflow could have carried the segment.
    pub fn of(picked: Pick, subflows: &[Candidate]) -> Option<Self> {
        match (picked, fastest(subflows)) {
            (Pick::Subflow(index) | Pick::Queue(index), _) => Some(Self::Takes(index)),
            (Pick::Wait, Pick::Subflow(index)) => Some(Self::Leaves(index)),
            (Pick::Wait | Pick::AllCarried, _) => None,
        }
    }

    /// The subflow that it is about.
    pub fn subflow(self) -> usize {
        let (Self::Takes(index) | Self::Leaves(index)) = self;
        index
    }
}

/// Classes of RFC 8684 section 3.3.8: backup subflows count only while no regular one is usable.
pub fn eligible(subflows: &[Candidate]) -> impl Iterator<Item = (usize, &Candidate)> {
    let regular = subflows.iter().any(|subflow| subflow.usable && !subflow.backup);
    subflows.iter().enumerate().filter(move |(_, subflow)| subflow.usable && !(regular && subflow.backup))
}

/// What to answer when no eligible subflow has room and has not carried the segment.
fn none_has_room(subflows: &[Candidate]) -> Pick {
    let mut eligible = eligible(subflows).peekable();
    if eligible.peek().is_some() && eligible.all(|(_, subflow)| subflow.carried) {
        Pick::AllCarried
    } else {
        Pick::Wait
    }
}

/// Whether a subflow has carried the segment, so that it is a reinjection: those go where minRTT sends them.
fn is_again(subflows: &[Candidate]) -> bool {
    subflows.iter().any(|subflow| subflow.carried)
}
