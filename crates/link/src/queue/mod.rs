//! Queue disciplines of a shaped link: who waits, who goes next, who is dropped or marked.
//!
//! A discipline is one file and one line in `new`. The link asks it for the next packet when its transmitter is
//! free. "Held" is what waits and what is in transmission, as for the drop-tail queue of a plain wire: limits and RED's
//! average count that.

mod codel;
mod drop_tail;
mod fq_codel;
mod red;

use std::collections::VecDeque;

pub use codel::CoDelConfig;
pub use fq_codel::FqCoDelConfig;
pub use red::RedConfig;

use crate::{Frame, Limit, Nanos, Rng};

/// Which discipline, and its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueConfig {
    /// First in, first out; what finds the queue full is dropped.
    DropTail,
    /// Random early detection.
    Red(RedConfig),
    /// Controlled delay.
    CoDel(CoDelConfig),
    /// Controlled delay, separately for each flow.
    FqCoDel(FqCoDelConfig),
}

/// An amount of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) packets: u32,
    pub(crate) bytes: u64,
}

impl Held {
    pub(crate) fn and(self, other: Held) -> Held {
        Held { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }

    /// Whether a further packet of `bytes` would be too much.
    fn leaves_no_room(self, limit: Limit, bytes: u32) -> bool {
        match limit {
            Limit::Unlimited => false,
            Limit::Packets(packets) => self.packets >= packets,
            Limit::Bytes(most) => self.bytes + u64::from(bytes) > most,
        }
    }

    fn exceeds(self, limit: Limit) -> bool {
        match limit {
            Limit::Unlimited => false,
            Limit::Packets(packets) => self.packets > packets,
            Limit::Bytes(bytes) => self.bytes > bytes,
        }
    }
}

/// What a discipline does. Dropped packets go to `gone`.
pub(crate) trait Discipline<P>: Send {
    /// A packet comes; `sending` is in transmission. The packet or others may be dropped.
    fn enqueue(&mut self, now: Nanos, packet: P, sending: Held, gone: &mut dyn FnMut(P));

    /// The transmitter is free: the packet that goes next. Packets may be dropped on the way to it.
    fn dequeue(&mut self, now: Nanos, gone: &mut dyn FnMut(P)) -> Option<P>;

    /// Nothing waits, and the transmitter is idle from now on.
    fn rest(&mut self, _now: Nanos) {}

    /// The rate of the link has changed.
    fn set_rate(&mut self, _rate_bps: u64) {}

    /// What waits.
    fn waiting(&self) -> Held;

    /// Drops all that waits.
    fn clear(&mut self, gone: &mut dyn FnMut(P));

    /// Packets marked instead of dropped since the start.
    fn marked(&self) -> u64 {
        0
    }
}

/// An empty queue. `rng` is for disciplines that draw.
pub(crate) fn new<P: Frame>(
    config: QueueConfig,
    limit: Limit,
    rate_bps: u64,
    rng: Rng,
) -> Box<dyn Discipline<P>> {
    match config {
        QueueConfig::DropTail => Box::new(drop_tail::DropTail::new(limit)),
        QueueConfig::Red(config) => Box::new(red::Red::new(config, limit, rate_bps, rng)),
        QueueConfig::CoDel(config) => Box::new(codel::CoDel::new(config, limit)),
        QueueConfig::FqCoDel(config) => Box::new(fq_codel::FqCoDel::new(config, limit)),
    }
}

/// Packets in order, with the times at which they came.
struct Fifo<P> {
    packets: VecDeque<(Nanos, P)>,
    bytes: u64,
}

impl<P: Frame> Fifo<P> {
    fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }

    fn push(&mut self, now: Nanos, packet: P) {
        self.bytes += u64::from(packet.bytes());
        self.packets.push_back((now, packet));
    }

    fn pop(&mut self) -> Option<(Nanos, P)> {
        let (since, packet) = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes());
        Some((since, packet))
    }

    fn held(&self) -> Held {
        Held { packets: self.packets.len() as u32, bytes: self.bytes }
    }

    fn clear(&mut self, gone: &mut dyn FnMut(P)) {
        self.bytes = 0;
        self.packets.drain(..).for_each(|(_, packet)| gone(packet));
    }
}

/// Marks a packet instead of dropping it, if both sides can: RFC 3168 section 5.
fn mark<P: Frame>(ecn: bool, packet: &mut P, marked: &mut u64) -> bool {
    let marks = ecn && packet.is_ecn_capable();
    if marks {
        packet.mark();
        *marked += 1;
    }
    marks
}

#[cfg(test)]
mod testing;
